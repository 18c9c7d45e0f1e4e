/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The histogram of a lock's waits, which has no acquisitions without a wait. Of info, these
 * functions use the histogram and the longest wait only.
 */
#ifndef COMMON_WAITS_H
#define COMMON_WAITS_H

#include <stdint.h>
#include <kdsm/uapi.h>

/* Number of waits */
uint64_t waits_count(const struct kdsm_lock_info *info);
/*
 * The median of the waits in ns, 0 if there are none. The estimate spreads the waits of a class
 * of the histogram evenly over the class.
 */
double waits_median(const struct kdsm_lock_info *info);
/* The longest wait divided by the median, 0 if there are no waits */
double waits_fairness(const struct kdsm_lock_info *info);

#endif /* COMMON_WAITS_H */
