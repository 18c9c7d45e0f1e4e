/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of remote operations, one set per peer and CPU, and of durations, one set per CPU. They
 * are added up when they are read.
 */
#ifndef KDSM_STATS_H
#define KDSM_STATS_H

#include <linux/log2.h>
#include <linux/minmax.h>
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

/* Durations by class; the classes are those of KDSM_A_LATENCY_COUNTS */
struct kdsm_durations {
	u64 sum[KDSM_LATENCY_COUNT];	/* in ns */
	u64 count[KDSM_LATENCY_COUNT][KDSM_LATENCY_CLASSES];
};

/* Count a duration on this CPU. Any context. */
static inline void kdsm_duration(struct kdsm_durations __percpu *durations,
				 enum kdsm_latency what, u64 ns)
{
	unsigned int class = min_t(unsigned int, ilog2(ns | 1), KDSM_LATENCY_CLASSES - 1);

	this_cpu_add(durations->sum[what], ns);
	this_cpu_inc(durations->count[what][class]);
}

/* Set *sum and the KDSM_LATENCY_CLASSES values at counts to those of all CPUs. Any context. */
void kdsm_durations_sum(struct kdsm_durations __percpu *durations, enum kdsm_latency what,
			u64 *sum, u64 *counts);

#endif /* KDSM_STATS_H */
