/* SPDX-License-Identifier: GPL-2.0 */
/* What kdsm-reach prints. Functions that return int: 0 or a negative errno. */
#ifndef PRINT_H
#define PRINT_H

#include "reach/reach.h"

int print_text(const struct kd_reach_options *options, const struct kd_reach_result *result);
int print_json(const struct kd_reach_options *options, const struct kd_reach_result *result);

/* One line on stderr that the next one overwrites, and its end. */
void print_progress(void *context, const struct kd_progress *progress);
void print_progress_end(void);

/* A line on stderr, while progress may be shown. */
void print_warning(void *context, const char *text);

/* Counters of this node's workers, on stderr: for those who work on kdsm. */
void print_counts(const struct kd_reach_result *result);

#endif /* PRINT_H */
