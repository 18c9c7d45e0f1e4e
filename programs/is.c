// SPDX-License-Identifier: GPL-2.0
/*
 * IS of the NAS Parallel Benchmarks ("integer sort"): ten iterations change two keys and rank
 * all keys by counting; for each iteration five ranks are published. In the end the keys are
 * sorted by their ranks.
 *
 * Each member counts its share of the keys in a table of its own, and then adds up its share
 * of the key values over the tables of all members. When they sort, all nodes write different
 * words of the same blocks concurrently.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "random.h"

#define SEED		314159265
#define ITERATIONS	10
#define TESTS		5

struct size {
	uint64_t keys, values;		/* number of keys, which are below values */
	/* Published: the ranks of the keys at these places. */
	uint64_t place[TESTS], rank[TESTS];
	/*
	 * In iteration i the rank of the first "rising" of these keys is rank + i + add, and
	 * the rank of the others is rank - i: compared with the iteration before, one more key
	 * is below small keys, and one less is below large keys.
	 */
	int rising, add;
};

static const struct size sizes[] = {
	{	/* S */
		1 << 16, 1 << 11,
		{ 48427, 17148, 23627, 62548, 4431 },
		{ 0, 18, 346, 64917, 65463 },
		3, 0,
	}, {	/* W */
		1 << 20, 1 << 16,
		{ 357773, 934767, 875723, 898999, 404505 },
		{ 1249, 11698, 1039987, 1043896, 1048018 },
		2, -2,
	},
};

static struct kdsm_spread keys, ranks;
static struct kdsm_spread counts;	/* for each member, a table over the values */
static uint32_t *sorted;

static const struct size *size_of(const struct frame *frame)
{
	return &sizes[frame->class == 'W'];
}

static void allocate(const struct frame *frame)
{
	const struct size *size = size_of(frame);

	kdsm_job_spread(frame->job, size->keys, sizeof(uint32_t), &keys);
	/* The rank of a value is the number of keys that are not larger. */
	kdsm_job_spread(frame->job, size->values, sizeof(uint32_t), &ranks);
	kdsm_job_spread(frame->job, frame->size, size->values * sizeof(uint32_t), &counts);
	sorted = kdsm_job_alloc(frame->job, size->keys * sizeof(*sorted));
}

static uint32_t *key_at(uint64_t i)
{
	return kdsm_spread_at(&keys, i);
}

static uint32_t *rank_at(uint64_t value)
{
	return kdsm_spread_at(&ranks, value);
}

static uint32_t *counts_of(uint32_t rank)
{
	return kdsm_spread_at(&counts, rank);
}

/* A member's share, first to end - 1 */
struct range {
	uint64_t first, end;
};

static struct range range_of(const struct frame *frame, uint64_t count)
{
	return (struct range) {
		kdsm_share(count, frame->rank, frame->size),
		kdsm_share(count, frame->rank + 1, frame->size),
	};
}

/* Make this member's keys. Each key is the sum of four random numbers. */
static void make_keys(const struct frame *frame)
{
	const struct size *size = size_of(frame);
	struct range mine = range_of(frame, size->keys);
	uint64_t state = lcg_skip(SEED, 4 * mine.first), i;
	double sum;

	for (i = mine.first; i < mine.end; i++) {
		sum = lcg_next(&state);
		sum += lcg_next(&state);
		sum += lcg_next(&state);
		sum += lcg_next(&state);
		*key_at(i) = (uint32_t)(size->values / 4 * sum);
	}
}

static void set_key(struct range mine, uint64_t i, uint32_t value)
{
	if (mine.first <= i && i < mine.end)
		*key_at(i) = value;
}

/* Count the keys of this member, then sum over its share of the values, then rank. */
static void rank_keys(struct frame *frame, int iteration)
{
	const struct size *size = size_of(frame);
	struct range mine = range_of(frame, size->keys);
	struct range values = range_of(frame, size->values);
	uint32_t *count = counts_of(frame->rank), k;
	uint64_t i, sum = 0, below;

	set_key(mine, iteration, iteration);
	set_key(mine, iteration + ITERATIONS, size->values - iteration);
	memset(count, 0, size->values * sizeof(*count));
	for (i = mine.first; i < mine.end; i++)
		count[*key_at(i)]++;
	kdsm_job_barrier(frame->job);

	for (i = values.first; i < values.end; i++) {
		for (k = 0; k < frame->size; k++)
			sum += counts_of(k)[i];
		*rank_at(i) = sum;
	}
	below = sum;
	kdsm_job_scan(frame->job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &below, 1);
	for (i = values.first; i < values.end; i++)
		*rank_at(i) += below - sum;
	kdsm_job_barrier(frame->job);
}

/* Whether the ranks equal those published. */
static bool check_ranks(const struct frame *frame, int iteration)
{
	const struct size *size = size_of(frame);
	uint64_t expected, key;
	bool good = true;
	int i;

	for (i = 0; i < TESTS; i++) {
		key = *key_at(size->place[i]);
		if (i < size->rising)
			expected = size->rank[i] + iteration + size->add;
		else
			expected = size->rank[i] - iteration;
		good &= key > 0 && key < size->values && *rank_at(key - 1) == expected;
	}
	return good;
}

/*
 * In the sorted array, the keys of one value are grouped by member. Replace each count by the
 * place where the member's keys begin.
 */
static void share_out_places(const struct frame *frame)
{
	struct range values = range_of(frame, size_of(frame)->values);
	uint64_t i, place, next;
	uint32_t k;

	place = values.first ? *rank_at(values.first - 1) : 0;
	for (i = values.first; i < values.end; i++)
		for (k = 0; k < frame->size; k++) {
			next = place + counts_of(k)[i];
			counts_of(k)[i] = place;
			place = next;
		}
}

static bool sort_keys(struct frame *frame)
{
	const struct size *size = size_of(frame);
	struct range mine = range_of(frame, size->keys);
	uint32_t *place = counts_of(frame->rank);
	uint64_t i, change = 0;
	bool good = true;

	share_out_places(frame);
	kdsm_job_barrier(frame->job);
	for (i = mine.first; i < mine.end; i++) {
		uint32_t key = *key_at(i);

		good &= place[key] < size->keys;
		if (place[key] < size->keys)
			sorted[place[key]++] = key;
		change -= mix(key);
	}
	kdsm_job_barrier(frame->job);
	for (i = mine.first; i < mine.end; i++) {
		good &= !i || sorted[i - 1] <= sorted[i];
		change += mix(sorted[i]);
	}
	/* The sorted keys are the same keys as before, as far as the sums tell. */
	kdsm_job_allreduce(frame->job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &change, 1);
	return good && !change;
}

static bool work(struct frame *frame)
{
	bool good = true;
	int i;

	allocate(frame);
	make_keys(frame);
	rank_keys(frame, 1);	/* the benchmark begins with an iteration that is not measured */

	frame_begin(frame);
	for (i = 1; i <= ITERATIONS; i++) {
		rank_keys(frame, i);
		/* Keys and ranks do not change until this member reaches the next barrier. */
		if (frame->rank == (uint32_t)i % frame->size)
			good &= check_ranks(frame, i);
	}
	frame_end(frame);
	return good & sort_keys(frame);
}

static void print(const struct frame *frame)
{
	const struct size *size = size_of(frame);
	const struct total *total = &frame->total;

	printf("%" PRIu64 " keys below %" PRIu64 ", %d iterations; %.2f million keys a second\n",
	       size->keys, size->values, ITERATIONS,
	       (double)size->keys * ITERATIONS * 1e3 / (double)total->ns);
	if (frame->nodes > 1)
		printf("remote operations an iteration: %.1f of coherence, %.1f of barriers\n",
		       (double)(total->gets + total->messages) / ITERATIONS,
		       (double)total->puts / ITERATIONS);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.doc = "Rank and sort integers, as IS of the NAS Parallel Benchmarks has it.",
		.work = work,
		.print = print,
	};

	return frame_main(argc, argv, &program);
}
