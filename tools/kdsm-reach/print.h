/* SPDX-License-Identifier: GPL-2.0 */
/* Output of kdsm-reach. */
#ifndef PRINT_H
#define PRINT_H

#include <kdsm/reach.h>

/*
 * The result as text, in two parts: print_known() prints the model, the states and the verdicts,
 * and print_text() the rest. print_json() prints all. If the search failed after the call of
 * print_known(), there are no deadlocks and no traces.
 */
void print_known(const struct kdsm_reach_options *options,
		 const struct kdsm_reach_result *result);
void print_text(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		bool failed);
void print_json(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		bool failed);

/* Counters of this node's workers, on stderr, for developers of kdsm. */
void print_counts(const struct kdsm_reach_result *result);

#endif /* PRINT_H */
