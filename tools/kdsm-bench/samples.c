// SPDX-License-Identifier: GPL-2.0
/* Times of calls, and their summary. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"
#include "mark.h"

uint64_t now_ns(void)
{
	struct timespec ts;

	if (in_virtual_run())
		return kdsm_virtual_now();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Touch the memory here, so that no measurement has a page fault. */
int samples_init(struct samples *samples, unsigned int room)
{
	samples->count = 0;
	samples->room = room;
	samples->ns = malloc((room + 1ULL) * sizeof(*samples->ns));
	if (!samples->ns)
		return -ENOMEM;
	memset(samples->ns, 1, (room + 1ULL) * sizeof(*samples->ns));
	return 0;
}

/* The mark is the last instruction before the measured operation. */
uint64_t samples_begin(const struct samples *samples)
{
	uint64_t begin = now_ns();

	if (samples)
		mark_place(MARK_BEGIN);
	return begin;
}

/* The mark is the first instruction after the measured operation. */
void samples_end(struct samples *samples, uint64_t begin)
{
	if (!samples)
		return;
	mark_place(MARK_END);
	samples_add(samples, now_ns() - begin);
}

void samples_add(struct samples *samples, uint64_t ns)
{
	if (samples->count < samples->room)
		samples->ns[samples->count++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest time that this part of the samples, in permille, does not exceed. */
static double permille(const struct samples *samples, unsigned int part)
{
	uint64_t rank = (samples->count * (uint64_t)part + 999) / 1000;

	return samples->ns[rank ? rank - 1 : 0] / 1000.0;
}

void samples_summarise(struct samples *samples, struct summary *summary)
{
	double sum = 0;
	unsigned int i;

	memset(summary, 0, sizeof(*summary));
	if (!samples->count)
		return;
	qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
	for (i = 0; i < samples->count; i++)
		sum += samples->ns[i];
	summary->min = permille(samples, 0);
	summary->median = permille(samples, 500);
	summary->mean = sum / samples->count / 1000;
	summary->p90 = permille(samples, 900);
	summary->p99 = permille(samples, 990);
	summary->p999 = permille(samples, 999);
	summary->max = permille(samples, 1000);
}

void samples_free(struct samples *samples)
{
	free(samples->ns);
	samples->ns = NULL;
}
