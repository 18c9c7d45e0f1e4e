/* SPDX-License-Identifier: GPL-2.0 */
/* What the histogram of a lock's waits tells. Who had not to wait is not in it. */
#ifndef KDSMCTL_WAITS_H
#define KDSMCTL_WAITS_H

#include <stdint.h>
#include <linux/kdsm.h>

/* Of these functions info has only the waits and the longest of them. */

uint64_t waits_count(const struct kdsm_lock_info *info);
/*
 * ns, as exactly as the histogram tells: they are taken to be spread evenly over their
 * class. 0: there were none.
 */
double waits_median(const struct kdsm_lock_info *info);
/* The longest over the median. 0: there were none. */
double waits_fairness(const struct kdsm_lock_info *info);

#endif /* KDSMCTL_WAITS_H */
