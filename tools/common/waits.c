// SPDX-License-Identifier: GPL-2.0
/* The histogram of a lock's waits, see waits.h. */
#include "common/waits.h"

uint64_t waits_count(const struct kdsm_lock_info *info)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		sum += info->waits[i];
	return sum;
}

double waits_median(const struct kdsm_lock_info *info)
{
	double half = waits_count(info) / 2.0, sum = 0, median = 0;
	int i;

	for (i = 0; i < KDSM_LOCK_WAITS && sum < half; i++) {
		if (sum + info->waits[i] >= half)
			median = (1ULL << i) * (1 + (half - sum) / info->waits[i]);
		sum += info->waits[i];
	}
	if (median > info->stats[KDSM_LOCK_STAT_LONGEST])
		median = info->stats[KDSM_LOCK_STAT_LONGEST];
	return median;
}

double waits_fairness(const struct kdsm_lock_info *info)
{
	double median = waits_median(info);

	return median ? info->stats[KDSM_LOCK_STAT_LONGEST] / median : 0;
}
