// SPDX-License-Identifier: GPL-2.0
/*
 * theft [CALLS]: node 0 steals one task from a deque of node 1 with each call, and puts the
 * task's result into the task's place. Each step is between two marks (mark.h). Node 1 holds
 * the deque and sleeps.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdsm/kdsm.h>
#include <kdsm/uapi_task.h>

#include "kdsm-bench/mark.h"

#define WARMUP	20	/* calls before the first mark */
#define MAX	4096	/* upper bound of CALLS */
#define TYPE	7	/* type of the tasks, which are never run */
#define TIMEOUT	60000000000	/* time to wait for the other node, in ns */

/* Offsets in the part of node 1, in bytes */
#define CREW	64UL
#define WORKER	128UL
#define DEQUE	4096UL
#define PART	(DEQUE + (MAX + WARMUP + 1) * sizeof(struct kdsm_task))

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_barrier barrier;
static unsigned int calls = 200;

static void check(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "theft: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void open_all(void)
{
	const struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = PART * 2 };

	check(kdsm_open(0, &kdsm), "opening the cluster");
	check(kdsm_region_open(kdsm, "theft", &attr, &region), "opening a region");
	kdsm_barrier_init(&barrier, region, 0);
}

static void meet(void)
{
	check(kdsm_barrier_wait(&barrier, TIMEOUT), "waiting for the other node");
}

static void fill(void)
{
	char *part = kdsm_region_part(region);
	struct kdsm_task_worker *worker = (void *)(part + WORKER);
	struct kdsm_task_crew *crew = (void *)(part + CREW);
	struct kdsm_task *tasks = (void *)(part + DEQUE);
	unsigned int i;

	for (i = 0; i < calls + WARMUP; i++)
		tasks[i].type = TYPE;
	worker->ends = (uint64_t)(calls + WARMUP) << 32;
	crew->used = 1;
}

static void steal(struct kdsm_theft *theft)
{
	struct kdsm_op op;

	*theft = (struct kdsm_theft){
		.workers = WORKER, .deques = DEQUE, .stride = 128, .count = 1,
		.deque = calls + WARMUP, .thief = 2, .most = 1,
	};
	op = kdsm_op_steal(1, CREW, theft);
	check(kdsm_vector(region, &op, 1), "stealing");
	check(theft->taken == 1 ? 0 : -ENOENT, "what was stolen");
}

/* Put a result of 8 bytes, with the bell before it, which would wake a waiting owner. */
static void give_result(struct kdsm_theft *theft)
{
	uint64_t place = kdsm_theft_task(theft, 0, kdsm_theft_tasks(theft)[0].origin.slot);
	uint64_t result[] = { 1, kdsm_theft_tasks(theft)[0].origin.slot };
	struct kdsm_op op = kdsm_op_put(1, place + offsetof(struct kdsm_task, bell), result,
					sizeof(result));

	op.flags = KDSM_OP_NOTIFY;
	check(kdsm_vector(region, &op, 1), "putting a result");
}

static void measure(void)
{
	union {
		struct kdsm_theft theft;
		unsigned char room[sizeof(struct kdsm_theft) + sizeof(struct kdsm_task_packed)];
	} loot;
	unsigned int i;

	for (i = 0; i < calls + WARMUP; i++) {
		if (i >= WARMUP)
			mark_place(MARK_BEGIN);
		steal(&loot.theft);
		if (i >= WARMUP)
			mark_place(MARK_MIDDLE);
		give_result(&loot.theft);
		if (i >= WARMUP)
			mark_place(MARK_END);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		calls = atoi(argv[1]);
	if (!calls || calls > MAX) {
		fputs("usage: theft [CALLS]\n", stderr);
		return 2;
	}
	open_all();
	if (kdsm_node(kdsm) == 1)
		fill();
	meet();
	if (kdsm_node(kdsm) == 0)
		measure();
	meet();
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return 0;
}
