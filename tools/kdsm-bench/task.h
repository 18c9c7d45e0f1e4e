/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench task: declarations that its files share. */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include "bench.h"
#include "tiles.h"
#include "work.h"

#define BENCH_PROGRAMS 5

struct bench {
	struct run *run;
	const struct task_options *options;
	struct kdsm_tasks_attr attr;
	uint64_t bytes;		/* of the deques of a job in each part */
	unsigned int jobs;	/* number so far, the same on all nodes */
	struct matrices matrices;
	struct tiles tiles;	/* the same matrices, spread over the nodes */
	struct simulated *simulated;	/* NULL: no virtual run */
};

/* Virtual runs of the programs: with one worker of one node, to compare with, and then with all */
struct simulated {
	bool alone;			/* the run is the first one */
	double seconds[BENCH_PROGRAMS];	/* virtual times of the first run */
};

struct program {
	const char *name;
	int (*run)(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result);
	uint64_t (*plain)(struct bench *bench);
	/* Number of tasks that a run spawns */
	uint64_t (*spawned)(const struct bench *bench, uint64_t result);
	/* Whether it is for such a run; NULL: for any */
	bool (*fits)(const struct run *run);
};

extern const struct program bench_programs[];

/* Allocate the matrices in memory of the process. */
int bench_matrices_init(struct bench *bench);
/* Matrices in the region, at offset (a multiple of 8) of every part. Node 0 fills them. */
uint64_t bench_matrices_bytes(unsigned int nodes);
int bench_matrices_spread(struct bench *bench, uint64_t offset);
void bench_matrices_free(struct bench *bench);

#endif /* BENCH_TASK_H */
