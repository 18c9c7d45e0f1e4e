// SPDX-License-Identifier: GPL-2.0
/*
 * Dense matrix multiplication, C = A B. Each worker fills an equal share of the rows of A and
 * B, and computes the same rows of C from its rows of A and all of B.
 *
 * Freivalds' check verifies the result: for a random vector r, C r equals A (B r). All numbers
 * are integers below 2^53, so the comparison is exact; a wrong C passes with a probability of
 * at most 1 in 2^20. Each worker checks the rows of the next worker.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "random.h"

#define BOUND	8		/* largest absolute value of an element of A and B */
#define RANDOM	(1 << 20)	/* elements of r are below */

static struct spread a, b, c;		/* of rows */
static struct spread br;		/* B r, one number for each row */

static uint64_t size_of(const struct job *job)
{
	return job->class == 'W' ? 1024 : 256;
}

static void layout(struct job *job)
{
	uint64_t n = size_of(job);

	a = job_spread(job, n, n * sizeof(double));
	b = job_spread(job, n, n * sizeof(double));
	c = job_spread(job, n, n * sizeof(double));
	br = job_spread(job, n, sizeof(double));
}

static double entry(unsigned int matrix, uint64_t place)
{
	return (double)(mix((uint64_t)matrix << 32 | place) % (2 * BOUND + 1)) - BOUND;
}

static double random_entry(uint64_t i)
{
	return mix((uint64_t)2 << 32 | i) % RANDOM;
}

/* Row i of C: the sum of the rows of B, each times an element of row i of A. */
static void multiply(uint64_t n, uint64_t i)
{
	const double *row = spread_at(&a, i), *other;
	double *to = spread_at(&c, i);
	uint64_t j, k;

	memset(to, 0, n * sizeof(*to));
	for (k = 0; k < n; k++) {
		other = spread_at(&b, k);
		for (j = 0; j < n; j++)
			to[j] += row[k] * other[j];
	}
}

static double times_random(uint64_t n, const double *row)
{
	double sum = 0;
	uint64_t j;

	for (j = 0; j < n; j++)
		sum += row[j] * random_entry(j);
	return sum;
}

static bool check(uint64_t n, uint64_t i)
{
	const double *row = spread_at(&a, i);
	double sum = 0;
	uint64_t k;

	for (k = 0; k < n; k++)
		sum += row[k] * *(double *)spread_at(&br, k);
	return sum == times_random(n, spread_at(&c, i));
}

/* Blocks of B, except those that this node has written itself */
static uint64_t blocks_needed(const struct job *job)
{
	uint64_t n = size_of(job), bytes, blocks = 0;
	unsigned int i;

	for (i = 0; i < job->nodes; i++) {
		if (i == job->node)
			continue;
		bytes = (share(n, i + 1, job->nodes) - share(n, i, job->nodes)) * b.size;
		blocks += (bytes + job->block_size - 1) / job->block_size;
	}
	return blocks;
}

static bool work(struct worker *worker)
{
	const struct job *job = worker->job;
	uint64_t n = size_of(job), i, j;
	uint64_t first = share(n, worker->rank, job->workers);
	uint64_t end = share(n, worker->rank + 1, job->workers);
	unsigned int next = (worker->rank + 1) % job->workers;
	bool good = true;

	for (i = first; i < end; i++)
		for (j = 0; j < n; j++) {
			((double *)spread_at(&a, i))[j] = entry(0, i * n + j);
			((double *)spread_at(&b, i))[j] = entry(1, i * n + j);
		}

	worker_begin(worker);
	for (i = first; i < end; i++)
		multiply(n, i);
	if (worker->first && !job->packed)
		worker_expects(worker, blocks_needed(job));
	worker_end(worker);

	for (i = first; i < end; i++)
		*(double *)spread_at(&br, i) = times_random(n, spread_at(&b, i));
	worker_barrier(worker);
	for (i = share(n, next, job->workers); i < share(n, next + 1, job->workers); i++)
		good &= check(n, i);
	return good;
}

static void print(const struct job *job, const struct total *total)
{
	uint64_t n = size_of(job);
	double trace = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		trace += ((double *)spread_at(&c, i))[i];
	printf("%" PRIu64 " x %" PRIu64 ", trace %.0f; %.1f million multiplications a second\n",
	       n, n, trace, (double)(n * n * n) * 1e3 / (double)total->ns);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "matmul",
		.doc = "Multiply two dense matrices, of 256 rows and columns (S) or 1024 (W).",
		.layout = layout,
		.work = work,
		.print = print,
	};

	return job_main(argc, argv, &program);
}
