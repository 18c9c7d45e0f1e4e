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
