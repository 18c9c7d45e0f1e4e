/* SPDX-License-Identifier: GPL-2.0 */
/* Signals of kdsm-reach: SIGINT and SIGTERM stop a search, SIGUSR1 lets it report. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <kdsm/reach.h>

/*
 * signals_begin() handles SIGUSR1 while there is no search. Between signals_catch() and
 * signals_release(), the first SIGINT or SIGTERM stops the search, and a second one ends the
 * process. signals_release() returns the number of the signal that stopped the search, or 0.
 */
void signals_begin(void);
void signals_catch(struct kdsm_reach *reach);
int signals_release(void);

#endif /* SIGNALS_H */
