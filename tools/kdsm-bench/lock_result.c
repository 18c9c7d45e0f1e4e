// SPDX-License-Identifier: GPL-2.0
/* lock: the numbers of a line, from the totals of all nodes, and their spread over rounds. */
#include <math.h>
#include <stdlib.h>
#include "common/waits.h"
#include "lock.h"

const char *const lock_value_names[LOCK_VALUES] = {
	[LOCK_LOCKS] = "locks",
	[LOCK_RATE] = "locks_per_second",
	[LOCK_P50] = "lock_p50_us",
	[LOCK_P99] = "lock_p99_us",
	[LOCK_P999] = "lock_p999_us",
	[LOCK_LONGEST] = "lock_longest_us",
	[LOCK_WRITE_P50] = "write_lock_p50_us",
	[LOCK_WRITE_P99] = "write_lock_p99_us",
	[LOCK_WRITE_LONGEST] = "write_lock_longest_us",
	[LOCK_BOTH_P50] = "lock_unlock_p50_us",
	[LOCK_BOTH_P99] = "lock_unlock_p99_us",
	[LOCK_FAIRNESS] = "fairness",
	[LOCK_REMOTE] = "remote_per_lock",
	[LOCK_LOCK_REMOTE] = "remote_of_lock",
	[LOCK_UNLOCK_REMOTE] = "remote_of_unlock",
	[LOCK_HANDOVERS_P50] = "handovers_p50",
	[LOCK_HANDOVERS_P99] = "handovers_p99",
	[LOCK_HANDOVERS_LONGEST] = "handovers_longest",
};

/* ---- adding up threads and nodes ---- */

void lock_times_add(struct lock_times *sum, const struct lock_times *times)
{
	unsigned int i;

	histogram_add_all(&sum->reading, &times->reading);
	histogram_add_all(&sum->writing, &times->writing);
	histogram_add_all(&sum->both, &times->both);
	for (i = 0; i < LOCK_HANDOVERS; i++)
		sum->handovers.classes[i] += times->handovers.classes[i];
	if (times->handovers.longest > sum->handovers.longest)
		sum->handovers.longest = times->handovers.longest;
	sum->reads += times->reads;
	sum->writes += times->writes;
	sum->half_reads += times->half_reads;
	sum->half_writes += times->half_writes;
}

void lock_totals_add(struct lock_totals *all, const struct lock_totals *one)
{
	unsigned int i;

	lock_times_add(&all->times, &one->times);
	all->locks += one->locks;
	all->remote += one->remote;
	all->counted += one->counted;
	all->pairs += one->pairs;
	all->lock_remote += one->lock_remote;
	all->unlock_remote += one->unlock_remote;
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		all->waits[i] += one->waits[i];
	if (one->longest_wait > all->longest_wait)
		all->longest_wait = one->longest_wait;
	if (one->elapsed > all->elapsed)
		all->elapsed = one->elapsed;
	if (one->error)
		all->error = one->error;
}

/* ---- numbers ---- */

static double ratio(double sum, double number)
{
	return number ? sum / number : NAN;
}

/* The number of hand-overs that this percentage of the waits does not exceed */
static uint64_t handovers_of(const struct lock_handovers *handovers, unsigned int percent)
{
	uint64_t count = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < LOCK_HANDOVERS; i++)
		count += handovers->classes[i];
	for (i = 0; i < LOCK_HANDOVERS - 1; i++) {
		sum += handovers->classes[i];
		if (sum * 100 >= count * percent)
			return i;
	}
	return handovers->longest;
}

/* An acquisition without a wait is left out. */
static double fairness_of(const struct lock_totals *totals)
{
	struct kdsm_lock_info info = { .stats[KDSM_LOCK_STAT_LONGEST] = totals->longest_wait };
	unsigned int i;

	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		info.waits[i] = totals->waits[i];
	return waits_fairness(&info);
}

static void times_of(const struct lock_times *times, double *value)
{
	struct histogram all = times->reading;
	bool wrote = times->writing.count;

	histogram_add_all(&all, &times->writing);
	value[LOCK_P50] = histogram_permille(&all, 500);
	value[LOCK_P99] = histogram_permille(&all, 990);
	value[LOCK_P999] = histogram_permille(&all, 999);
	value[LOCK_LONGEST] = all.longest / 1e3;
	value[LOCK_WRITE_P50] = wrote ? histogram_permille(&times->writing, 500) : NAN;
	value[LOCK_WRITE_P99] = wrote ? histogram_permille(&times->writing, 990) : NAN;
	value[LOCK_WRITE_LONGEST] = wrote ? times->writing.longest / 1e3 : NAN;
	value[LOCK_BOTH_P50] = histogram_permille(&times->both, 500);
	value[LOCK_BOTH_P99] = histogram_permille(&times->both, 990);
}

void lock_result_of(const struct lock_round *round, const struct lock_totals *totals,
		    struct lock_result *result)
{
	const struct lock_handovers *handovers = &totals->times.handovers;
	bool counts = round->benchmark->counts && round->writers;
	double *value = result->value;

	value[LOCK_LOCKS] = totals->locks;
	value[LOCK_RATE] = totals->elapsed ? totals->locks * 1e9 / totals->elapsed : 0;
	times_of(&totals->times, value);
	value[LOCK_FAIRNESS] = fairness_of(totals);
	value[LOCK_REMOTE] = ratio(totals->remote, totals->counted);
	value[LOCK_LOCK_REMOTE] = ratio(totals->lock_remote, totals->pairs);
	value[LOCK_UNLOCK_REMOTE] = ratio(totals->unlock_remote, totals->pairs);
	value[LOCK_HANDOVERS_P50] = counts ? handovers_of(handovers, 50) : NAN;
	value[LOCK_HANDOVERS_P99] = counts ? handovers_of(handovers, 99) : NAN;
	value[LOCK_HANDOVERS_LONGEST] = counts ? handovers->longest : NAN;
}

/* ---- spread ---- */

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

/* A number is measured in all rounds or in none. */
void lock_result_median(const struct lock_result *results, unsigned int count,
			struct lock_result *median)
{
	double list[MAX_REPEAT];
	unsigned int i, k;

	for (i = 0; i < LOCK_VALUES; i++) {
		for (k = 0; k < count; k++)
			list[k] = results[k].value[i];
		qsort(list, count, sizeof(*list), compare);
		median->value[i] = (list[count / 2] + list[(count - 1) / 2]) / 2;
		median->least[i] = list[0];
		median->most[i] = list[count - 1];
	}
}
