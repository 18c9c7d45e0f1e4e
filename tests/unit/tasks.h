/* SPDX-License-Identifier: GPL-2.0 */
/* Common setup of the tests of tasks on one node: a local job, and tasks of known values */
#ifndef TASK_TEST_H
#define TASK_TEST_H

#include "unit.h"
#include "../../tools/kdsm-bench/work.h"

#define OFFSET	128
#define DEQUE	128

struct job {
	struct kdsm *kdsm;
	struct kdsm_region *region;
	struct kdsm_tasks_attr attr;
	struct kdsm_tasks *tasks;
};

static inline void job_region(struct job *job)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };

	job->attr.argsz = sizeof(job->attr);
	attr.size = OFFSET + kdsm_tasks_bytes(&job->attr);

	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &job->kdsm), 0);
	assert_int_equal(kdsm_region_open(job->kdsm, "tasks", &attr, &job->region), 0);
}

static inline void job_open(struct job *job, uint32_t workers, uint32_t deque, uint32_t steal)
{
	job->attr = (struct kdsm_tasks_attr){
		.argsz = sizeof(struct kdsm_tasks_attr),
		.workers = workers, .deque = deque, .steal = steal, .node_workers = 32,
		.stack = 8 << 20,
	};
	job_region(job);
	assert_int_equal(kdsm_tasks_open(job->region, OFFSET, &job->attr, &job->tasks), 0);
}

static inline void job_close(struct job *job)
{
	kdsm_tasks_close(job->tasks);
	kdsm_region_close(job->region);
	kdsm_close(job->kdsm);
}

static inline void known_values(struct kdsm_tasks *tasks, unsigned int fast)
{
	struct board board = { .all = (1 << 8) - 1 };
	uint64_t result = 0;

	assert_int_equal(KDSM_RUN(tasks, &result, fib, 20 + fast), 0);
	assert_int_equal(result, plain_fib(20 + fast));
	assert_int_equal(KDSM_RUN(tasks, &result, queens, board), 0);
	assert_int_equal(result, 92);
	assert_int_equal(KDSM_RUN(tasks, &result, uts, uts_root(UTS_T1_SEED, 4 + fast / 2)), 0);
	assert_int_equal(result, plain_uts(uts_root(UTS_T1_SEED, 4 + fast / 2)));
}

#endif /* TASK_TEST_H */
