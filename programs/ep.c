// SPDX-License-Identifier: GPL-2.0
/*
 * EP of the NAS Parallel Benchmarks ("embarrassingly parallel"): pairs of Gaussian numbers, made
 * from uniform numbers by Marsaglia's polar method, their sums, and their number in each square
 * ring. Members share only their results.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "frame.h"
#include "random.h"

#define SEED	271828183
#define BATCH	(1 << 16)	/* pairs; a member computes whole batches */
#define RINGS	10

struct sums {
	double xy[2];
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

static struct sums total;

static const struct size *size_of(const struct frame *frame)
{
	return &sizes[frame->class == 'W'];
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
		sums->xy[0] += x;
		sums->xy[1] += y;
	}
}

static bool is_close(double is, double expected)
{
	return fabs((is - expected) / expected) <= 1 / 1e8;
}

static bool work(struct frame *frame)
{
	const struct size *size = size_of(frame);

	frame_begin(frame);
	KDSM_JOB_FOR(frame->job, i, size->pairs / BATCH)
		do_batch(i, &total);
	kdsm_job_allreduce(frame->job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, total.xy, 2);
	kdsm_job_allreduce(frame->job, KDSM_JOB_UINT64, KDSM_JOB_SUM, total.rings, RINGS);
	frame_end(frame);
	return is_close(total.xy[0], size->x) && is_close(total.xy[1], size->y);
}

static void print(const struct frame *frame)
{
	const struct size *size = size_of(frame);
	int ring;

	printf("%" PRIu64 " pairs; sums %.15e %.15e, to be %.15e %.15e\nin rings:",
	       size->pairs, total.xy[0], total.xy[1], size->x, size->y);
	for (ring = 0; ring < RINGS; ring++)
		printf(" %" PRIu64, total.rings[ring]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.doc = "Sums of Gaussian numbers, as EP of the NAS Parallel Benchmarks has it.",
		.work = work,
		.print = print,
	};

	return frame_main(argc, argv, &program);
}
