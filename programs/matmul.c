// SPDX-License-Identifier: GPL-2.0
/*
 * Dense matrix multiplication, C = A B. Each member fills an equal share of the rows of A and
 * B, and computes the same rows of C from its rows of A and all of B.
 *
 * Freivalds' check verifies the result: for a random vector r, C r equals A (B r). All numbers
 * are integers below 2^53, so the comparison is exact; a wrong C passes with a probability of
 * at most 1 in 2^20. Each member checks the rows of the next one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "random.h"

#define BOUND	8		/* largest absolute value of an element of A and B */
#define RANDOM	(1 << 20)	/* elements of r are below */

static struct kdsm_spread a, b, c;	/* of rows */
static struct kdsm_spread br;		/* B r, one number for each row */

static uint64_t size_of(const struct frame *frame)
{
	return frame->class == 'W' ? 1024 : 256;
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
	const double *row = kdsm_spread_at(&a, i), *other;
	double *to = kdsm_spread_at(&c, i);
	uint64_t j, k;

	memset(to, 0, n * sizeof(*to));
	for (k = 0; k < n; k++) {
		other = kdsm_spread_at(&b, k);
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
	const double *row = kdsm_spread_at(&a, i);
	double sum = 0;
	uint64_t k;

	for (k = 0; k < n; k++)
		sum += row[k] * *(double *)kdsm_spread_at(&br, k);
	return sum == times_random(n, kdsm_spread_at(&c, i));
}

/* Blocks of B, except those that this node has written itself */
static uint64_t blocks_needed(const struct frame *frame)
{
	uint64_t n = size_of(frame), block = kdsm_region_block_size(kdsm_job_region(frame->job));
	uint64_t blocks = 0, bytes;
	uint32_t i;

	for (i = 0; i < frame->size; i++) {
		if (!is_elsewhere(frame, i))
			continue;
		bytes = (kdsm_share(n, i + 1, frame->size) - kdsm_share(n, i, frame->size)) *
			b.size;
		blocks += (bytes + block - 1) / block;
	}
	return blocks;
}

static bool work(struct frame *frame)
{
	uint64_t n = size_of(frame), i, j;
	uint32_t next = (frame->rank + 1) % frame->size;
	bool good = true;

	kdsm_job_spread(frame->job, n, n * sizeof(double), &a);
	kdsm_job_spread(frame->job, n, n * sizeof(double), &b);
	kdsm_job_spread(frame->job, n, n * sizeof(double), &c);
	kdsm_job_spread(frame->job, n, sizeof(double), &br);
	KDSM_JOB_FOR(frame->job, k, n)
		for (j = 0; j < n; j++) {
			((double *)kdsm_spread_at(&a, k))[j] = entry(0, k * n + j);
			((double *)kdsm_spread_at(&b, k))[j] = entry(1, k * n + j);
		}

	frame_begin(frame);
	KDSM_JOB_FOR(frame->job, k, n)
		multiply(n, k);
	frame_expects(frame, blocks_needed(frame));
	frame_end(frame);

	KDSM_JOB_FOR(frame->job, k, n)
		((double *)kdsm_spread_at(&br, k))[0] = times_random(n, kdsm_spread_at(&b, k));
	kdsm_job_barrier(frame->job);
	for (i = kdsm_share(n, next, frame->size); i < kdsm_share(n, next + 1, frame->size); i++)
		good &= check(n, i);
	return good;
}

static void print(const struct frame *frame)
{
	uint64_t n = size_of(frame);
	double trace = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		trace += ((double *)kdsm_spread_at(&c, i))[i];
	printf("%" PRIu64 " x %" PRIu64 ", trace %.0f; %.1f million multiplications a second\n",
	       n, n, trace, (double)(n * n * n) * 1e3 / (double)frame->total.ns);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.doc = "Multiply two dense matrices, of 256 rows and columns (S) or 1024 (W).",
		.work = work,
		.print = print,
	};

	return frame_main(argc, argv, &program);
}
