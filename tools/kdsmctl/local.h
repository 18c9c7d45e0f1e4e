/* SPDX-License-Identifier: GPL-2.0 */
/* Which node of a configuration this machine is */
#ifndef KDSMCTL_LOCAL_H
#define KDSMCTL_LOCAL_H

#include "config.h"

/*
 * Return the number of the only node that has an address of this machine, or -1 with a sentence
 * in error. path is the file's name in the sentence.
 */
int local_node(const struct config *config, const char *path, char *error,
	       size_t error_size);

#endif /* KDSMCTL_LOCAL_H */
