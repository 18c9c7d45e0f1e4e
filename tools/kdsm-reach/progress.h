/* SPDX-License-Identifier: GPL-2.0 */
/* Progress and warnings of kdsm-reach on standard error */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <kdsm/reach.h>

/* The user gave no interval. */
#define PROGRESS_DEFAULT	UINT64_MAX

/*
 * Select how to report: interval in ns is 0 for no reports but those that SIGUSR1 asks for, or
 * PROGRESS_DEFAULT, which is a line that is overwritten on a terminal, and elsewhere a line
 * every minute. Fills in functions and interval of *options.
 */
void progress_choose(struct kdsm_reach_options *options, uint64_t interval, bool json);

/* Erase the line of progress on a terminal. */
void progress_end(void);

#endif /* PROGRESS_H */
