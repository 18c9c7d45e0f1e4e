// SPDX-License-Identifier: GPL-2.0
/* Adding up the counters of stats.h over all CPUs */
#include <linux/cpumask.h>
#include <linux/string.h>

#include "stats.h"

/*
 * A sum may lack increments that happen concurrently, and the sums are not of the same
 * instant. READ_ONCE() prevents torn values.
 */
void kdsm_counters_sum(struct kdsm_counters __percpu *counters, u64 *sums)
{
	unsigned int cpu, i;

	memset(sums, 0, KDSM_STAT_COUNT * sizeof(*sums));
	for_each_possible_cpu(cpu)
		for (i = 0; i < KDSM_STAT_COUNT; i++)
			sums[i] += READ_ONCE(per_cpu_ptr(counters, cpu)->count[i]);
}

void kdsm_durations_sum(struct kdsm_durations __percpu *durations, enum kdsm_latency what,
			u64 *sum, u64 *counts)
{
	unsigned int cpu, i;

	*sum = 0;
	memset(counts, 0, KDSM_LATENCY_CLASSES * sizeof(*counts));
	for_each_possible_cpu(cpu) {
		const struct kdsm_durations *from = per_cpu_ptr(durations, cpu);

		*sum += READ_ONCE(from->sum[what]);
		for (i = 0; i < KDSM_LATENCY_CLASSES; i++)
			counts[i] += READ_ONCE(from->count[what][i]);
	}
}
