/* SPDX-License-Identifier: GPL-2.0 */
/* A program that listens at the module's port, where a node expects its peer. */
#ifndef KDSM_TESTS_IMPOSTOR_H
#define KDSM_TESTS_IMPOSTOR_H

#include "attack.h"

enum impostor_mode {
	IMPOSTOR_LIAR = 'l',	/* does not know the key: sends a wrong proof */
	IMPOSTOR_KIND = 'k',	/* knows the key, and answers every request with 8 zeros */
	IMPOSTOR_MUTE = 'm',	/* knows the key, takes requests, and never answers */
	IMPOSTOR_END = 'e',
};

/*
 * Listen at scene->own, and accept connections. Read modes from file, and answer each with a dot;
 * return after IMPOSTOR_END.
 */
void impostor_run(const struct scene *scene, int file);

#endif /* KDSM_TESTS_IMPOSTOR_H */
