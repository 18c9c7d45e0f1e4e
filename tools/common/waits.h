/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The histogram of a lock's waits. An acquisition that did not wait is not in it. Of info,
 * these functions use the histogram and the longest wait only.
 */
#ifndef COMMON_WAITS_H
#define COMMON_WAITS_H

#include <stdint.h>
#include <linux/kdsm.h>

uint64_t waits_count(const struct kdsm_lock_info *info);
/*
 * The median in ns, as exactly as the histogram allows: waits count as spread evenly over
 * their class. 0: there are none.
 */
double waits_median(const struct kdsm_lock_info *info);
/* The longest wait over the median. 0: there are none. */
double waits_fairness(const struct kdsm_lock_info *info);

#endif /* COMMON_WAITS_H */
