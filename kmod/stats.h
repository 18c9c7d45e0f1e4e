/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of remote operations: one set per peer and CPU, added up when they are read */
#ifndef KDSM_STATS_H
#define KDSM_STATS_H

#include <linux/percpu.h>
#include <kdsm/uapi_netlink.h>

struct kdsm_counters {
	u64 count[KDSM_STAT_COUNT];
};

/* Add to a counter of this CPU. Any context. */
static inline void kdsm_count_add(struct kdsm_counters __percpu *counters,
				  enum kdsm_stat stat, u64 n)
{
	this_cpu_add(counters->count[stat], n);
}

static inline void kdsm_count(struct kdsm_counters __percpu *counters,
			      enum kdsm_stat stat)
{
	kdsm_count_add(counters, stat, 1);
}

/* Set the KDSM_STAT_COUNT values at sums to the sums over all CPUs. Any context. */
void kdsm_counters_sum(struct kdsm_counters __percpu *counters, u64 *sums);

#endif /* KDSM_STATS_H */
