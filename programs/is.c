// SPDX-License-Identifier: GPL-2.0
/*
 * IS of the NAS Parallel Benchmarks ("integer sort"): ten iterations change two keys and rank
 * all keys by counting; for each iteration five ranks are published. In the end the keys are
 * sorted by their ranks.
 *
 * Each worker counts its share of the keys in a table of its own, and then adds up its share
 * of the key values over the tables of all workers. When they sort, all nodes write different
 * words of the same blocks concurrently.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
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

/* Sums of a worker that the others read. */
struct slot {
	_Alignas(64) uint64_t count;	/* number of keys in its share of the values */
	uint64_t before, after;		/* sums over its keys before and after sorting */
};

static struct spread keys, ranks, slots;
static uint32_t **counts;		/* for each worker, a table over the values */
static uint32_t *sorted;

static const struct size *size_of(const struct job *job)
{
	return &sizes[job->class == 'W'];
}

static void layout(struct job *job)
{
	const struct size *size = size_of(job);
	unsigned int i;

	keys = job_spread(job, size->keys, sizeof(uint32_t));
	/* The rank of a value is the number of keys that are not larger. */
	ranks = job_spread(job, size->values, sizeof(uint32_t));
	slots = job_spread(job, job->workers, sizeof(struct slot));
	sorted = job_alloc(job, size->keys * sizeof(*sorted));
	if (!counts)
		counts = calloc(job->workers, sizeof(*counts));
	if (!counts)
		abort();
	for (i = 0; i < job->workers; i++)
		counts[i] = job_alloc(job, size->values * sizeof(*counts[i]));
}

static uint32_t *key_at(uint64_t i)
{
	return spread_at(&keys, i);
}

static uint32_t *rank_at(uint64_t value)
{
	return spread_at(&ranks, value);
}

static struct slot *slot_at(unsigned int rank)
{
	return spread_at(&slots, rank);
}

/* A worker's share, first to end - 1 */
struct range {
	uint64_t first, end;
};

static struct range range_of(const struct worker *worker, uint64_t count)
{
	return (struct range) {
		share(count, worker->rank, worker->job->workers),
		share(count, worker->rank + 1, worker->job->workers),
	};
}

/* Make this worker's keys. Each key is the sum of four random numbers. */
static void make_keys(const struct worker *worker)
{
	const struct size *size = size_of(worker->job);
	struct range mine = range_of(worker, size->keys);
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

/* Count the keys of this worker, then sum over its share of the values, then rank. */
static void rank_keys(struct worker *worker, int iteration)
{
	const struct job *job = worker->job;
	const struct size *size = size_of(job);
	struct range mine = range_of(worker, size->keys);
	struct range values = range_of(worker, size->values);
	uint32_t *count = counts[worker->rank];
	uint64_t i, sum = 0, below = 0;
	unsigned int k;

	set_key(mine, iteration, iteration);
	set_key(mine, iteration + ITERATIONS, size->values - iteration);
	memset(count, 0, size->values * sizeof(*count));
	for (i = mine.first; i < mine.end; i++)
		count[*key_at(i)]++;
	worker_barrier(worker);

	for (i = values.first; i < values.end; i++) {
		for (k = 0; k < job->workers; k++)
			sum += counts[k][i];
		*rank_at(i) = sum;
	}
	slot_at(worker->rank)->count = sum;
	worker_barrier(worker);

	for (k = 0; k < worker->rank; k++)
		below += slot_at(k)->count;
	for (i = values.first; i < values.end; i++)
		*rank_at(i) += below;
	worker_barrier(worker);
}

/* Whether the ranks equal those published. */
static bool check_ranks(const struct job *job, int iteration)
{
	const struct size *size = size_of(job);
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
 * In the sorted array, the keys of one value are grouped by worker. Replace each count by the
 * place where the worker's keys begin.
 */
static void share_out_places(const struct worker *worker)
{
	const struct job *job = worker->job;
	struct range values = range_of(worker, size_of(job)->values);
	uint64_t i, place, next;
	unsigned int k;

	place = values.first ? *rank_at(values.first - 1) : 0;
	for (i = values.first; i < values.end; i++)
		for (k = 0; k < job->workers; k++) {
			next = place + counts[k][i];
			counts[k][i] = place;
			place = next;
		}
}

static bool sort_keys(struct worker *worker)
{
	const struct job *job = worker->job;
	const struct size *size = size_of(job);
	struct range mine = range_of(worker, size->keys);
	uint32_t *place = counts[worker->rank];
	struct slot *slot = slot_at(worker->rank);
	uint64_t i, before = 0, after = 0;
	bool good = true;
	unsigned int k;

	share_out_places(worker);
	worker_barrier(worker);
	for (i = mine.first; i < mine.end; i++) {
		uint32_t key = *key_at(i);

		good &= place[key] < size->keys;
		if (place[key] < size->keys)
			sorted[place[key]++] = key;
		before += mix(key);
	}
	worker_barrier(worker);
	for (i = mine.first; i < mine.end; i++) {
		good &= !i || sorted[i - 1] <= sorted[i];
		after += mix(sorted[i]);
	}
	slot->before = before;
	slot->after = after;
	worker_barrier(worker);
	/* The sorted keys are the same keys as before, as far as the sums tell. */
	for (k = 0; k < job->workers; k++)
		before += slot_at(k)->before - slot_at(k)->after;
	return good && before == slot->before;
}

static uint64_t blocks_of(const struct job *job, const uint32_t *first, const uint32_t *end)
{
	uint64_t from = (uintptr_t)first / job->block_size;
	uint64_t to = ((uintptr_t)end + job->block_size - 1) / job->block_size;

	return first < end ? to - from : 0;
}

/*
 * Blocks that this node reads in an iteration because other nodes wrote them: its share of the
 * values in their tables, and one block of sums of each node with a lower number. (The few
 * ranks that check_ranks() reads are not counted.)
 */
static uint64_t blocks_needed(const struct job *job)
{
	uint64_t values = size_of(job)->values, blocks = job->node;
	uint64_t first = share(values, job->node, job->nodes);
	uint64_t end = share(values, job->node + 1, job->nodes);
	unsigned int i;

	for (i = 0; i < job->workers; i++)
		if (i / job->per_node != job->node)
			blocks += blocks_of(job, counts[i] + first, counts[i] + end);
	return blocks;
}

static bool work(struct worker *worker)
{
	const struct job *job = worker->job;
	bool good = true;
	int i;

	make_keys(worker);
	rank_keys(worker, 1);	/* the benchmark begins with an iteration that is not measured */

	worker_begin(worker);
	for (i = 1; i <= ITERATIONS; i++) {
		rank_keys(worker, i);
		/* Keys and ranks do not change until this worker reaches the next barrier. */
		if (worker->rank == i % job->workers)
			good &= check_ranks(job, i);
	}
	if (worker->first && !job->packed)
		worker_expects(worker, ITERATIONS * blocks_needed(job));
	worker_end(worker);
	return good & sort_keys(worker);
}

static void print(const struct job *job, const struct total *total)
{
	const struct size *size = size_of(job);

	printf("%" PRIu64 " keys below %" PRIu64 ", %d iterations; %.2f million keys a second\n",
	       size->keys, size->values, ITERATIONS,
	       (double)size->keys * ITERATIONS * 1e3 / (double)total->ns);
	if (job->nodes > 1)
		printf("remote operations an iteration: %.1f of coherence, %.1f of barriers\n",
		       (double)(total->gets + total->messages) / ITERATIONS,
		       (double)total->puts / ITERATIONS);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "is",
		.doc = "Rank and sort integers, as IS of the NAS Parallel Benchmarks has it.",
		.layout = layout,
		.work = work,
		.print = print,
	};

	return job_main(argc, argv, &program);
}
