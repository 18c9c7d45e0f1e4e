/* SPDX-License-Identifier: GPL-2.0 */
/* Output of kdsm-reach. */
#ifndef PRINT_H
#define PRINT_H

#include <kdsm/reach.h>

void print_text(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result);
void print_json(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result);

/* Write a line of progress to stderr over the previous one; print_progress_end() erases it. */
void print_progress(void *context, const struct kdsm_reach_progress *progress);
void print_progress_end(void);

/* Write a warning to stderr, in place of a line of progress. */
void print_warning(void *context, const char *text);

/* Counters of this node's workers, on stderr, for developers of kdsm. */
void print_counts(const struct kdsm_reach_result *result);

#endif /* PRINT_H */
