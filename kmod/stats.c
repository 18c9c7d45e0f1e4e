// SPDX-License-Identifier: GPL-2.0
/* Summing counters. See stats.h. */
#include <linux/cpumask.h>
#include <linux/string.h>

#include "stats.h"

/* Sums may be a little behind, never torn: they are read one by one. */
void kdsm_counters_sum(struct kdsm_counters __percpu *counters, u64 *sums)
{
	unsigned int cpu, i;

	memset(sums, 0, KDSM_STAT_COUNT * sizeof(*sums));
	for_each_possible_cpu(cpu)
		for (i = 0; i < KDSM_STAT_COUNT; i++)
			sums[i] += READ_ONCE(per_cpu_ptr(counters, cpu)->count[i]);
}
