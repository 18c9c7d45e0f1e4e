// SPDX-License-Identifier: GPL-2.0
/*
 * EP of the NAS Parallel Benchmarks ("embarrassingly parallel"): pairs of Gaussian numbers, made
 * from uniform numbers by Marsaglia's polar method, their sums, and their number in each square
 * ring. Workers share only their results.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "job.h"
#include "random.h"

#define SEED	271828183
#define BATCH	(1 << 16)	/* pairs; a worker computes whole batches */
#define RINGS	10

/* The results of a worker, in shared memory */
struct sums {
	_Alignas(128) double x;
	double y;
	uint64_t rings[RINGS];
};

struct size {
	uint64_t pairs;
	double x, y;		/* published sums */
};

static const struct size sizes[] = {
	{ 1 << 24, -3.247834652034740e3, -6.958407078382297e3 },	/* S */
	{ 1 << 25, -2.863319731645753e3, -6.320053679109499e3 },	/* W */
};

static struct spread all_sums;

static const struct size *size_of(const struct job *job)
{
	return &sizes[job->class == 'W'];
}

static void layout(struct job *job)
{
	all_sums = job_spread(job, job->workers, sizeof(struct sums));
}

static void do_batch(uint64_t number, struct sums *sums)
{
	uint64_t state = lcg_skip(SEED, number * 2 * BATCH);
	double x, y, t;
	int i;

	for (i = 0; i < BATCH; i++) {
		x = 2 * lcg_next(&state) - 1;
		y = 2 * lcg_next(&state) - 1;
		t = x * x + y * y;
		if (t > 1)
			continue;
		t = sqrt(-2 * log(t) / t);
		x *= t;
		y *= t;
		sums->rings[(int)fmax(fabs(x), fabs(y))]++;
		sums->x += x;
		sums->y += y;
	}
}

static struct sums sum_up(const struct job *job)
{
	struct sums total = { 0 };
	const struct sums *sums;
	unsigned int i, ring;

	for (i = 0; i < job->workers; i++) {
		sums = spread_at(&all_sums, i);
		total.x += sums->x;
		total.y += sums->y;
		for (ring = 0; ring < RINGS; ring++)
			total.rings[ring] += sums->rings[ring];
	}
	return total;
}

static bool is_close(double is, double expected)
{
	return fabs((is - expected) / expected) <= 1 / 1e8;
}

static bool work(struct worker *worker)
{
	const struct job *job = worker->job;
	const struct size *size = size_of(job);
	uint64_t batches = size->pairs / BATCH, i;
	struct sums mine = { 0 }, total;

	worker_begin(worker);
	for (i = share(batches, worker->rank, job->workers);
	     i < share(batches, worker->rank + 1, job->workers); i++)
		do_batch(i, &mine);
	*(struct sums *)spread_at(&all_sums, worker->rank) = mine;
	if (worker->first && !job->packed)
		worker_expects(worker, job->nodes - 1);
	worker_barrier(worker);
	total = sum_up(job);
	worker_end(worker);
	return is_close(total.x, size->x) && is_close(total.y, size->y);
}

static void print(const struct job *job, const struct total *total)
{
	const struct size *size = size_of(job);
	struct sums sums = sum_up(job);
	int ring;

	(void)total;
	printf("%" PRIu64 " pairs; sums %.15e %.15e, to be %.15e %.15e\nin rings:",
	       size->pairs, sums.x, sums.y, size->x, size->y);
	for (ring = 0; ring < RINGS; ring++)
		printf(" %" PRIu64, sums.rings[ring]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "ep",
		.doc = "Sums of Gaussian numbers, as EP of the NAS Parallel Benchmarks has it.",
		.layout = layout,
		.work = work,
		.print = print,
	};

	return job_main(argc, argv, &program);
}
