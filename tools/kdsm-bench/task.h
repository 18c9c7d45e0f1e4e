/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of kdsm-bench task share. */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include "bench.h"
#include "tiles.h"
#include "work.h"

struct bench {
	struct run *run;
	const struct task_options *options;
	struct kdsm_tasks_attr attr;
	uint64_t bytes;		/* of a job */
	unsigned int jobs;	/* so far, the same on all nodes */
	struct matrices matrices;
	struct tiles tiles;	/* the same, spread over the nodes */
};

struct program {
	const char *name;
	int (*run)(struct bench *bench, struct kdsm_tasks *tasks, uint64_t *result);
	uint64_t (*plain)(struct bench *bench);
	uint64_t (*spawned)(const struct bench *bench, uint64_t result);	/* tasks */
	bool (*fits)(unsigned int nodes);	/* NULL: any number of them */
};

extern const struct program bench_programs[];
#define BENCH_PROGRAMS 5

/* Those in memory. */
int bench_matrices_init(struct bench *bench);
/* Those in the region, at offset (a multiple of 8) of every part. Node 0 fills them. */
uint64_t bench_matrices_bytes(unsigned int nodes);
int bench_matrices_spread(struct bench *bench, uint64_t offset);
void bench_matrices_free(struct bench *bench);

#endif /* BENCH_TASK_H */
