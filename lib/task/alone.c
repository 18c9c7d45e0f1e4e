// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A worker that belongs to no pool. Its deque is private memory, and the calling thread runs
 * every task that the worker spawns. So code that is written as tasks also runs without a
 * pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "internal.h"

/*
 * Size of the deque, in tasks. The kernel allocates an element's page on first use. A task
 * that is spawned when the deque is full runs at once.
 */
#define DEQUE	(1U << 16)

struct alone {
	struct kd_worker worker;	/* first, for kd_task_alone_free() */
	struct kdsm_tasks tasks;
	struct kd_task_node node;
	struct kd_task_shared shared;
};

#define DEQUE_BYTES ((DEQUE + 1) * sizeof(struct kdsm_task))

int kd_task_alone_new(struct kdsm_worker **worker, struct kdsm_task **head, void *context)
{
	struct alone *alone = aligned_alloc(64, (sizeof(*alone) + 63) / 64 * 64);
	struct kd_worker *w;

	if (!alone)
		return -ENOMEM;
	memset(alone, 0, sizeof(*alone));
	w = &alone->worker;
	w->deque = mmap(NULL, DEQUE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->deque == MAP_FAILED) {
		free(alone);
		return -ENOMEM;
	}
	alone->tasks.nodes = 1;
	alone->tasks.own = &alone->node;
	w->tasks = &alone->tasks;
	w->shared = &alone->shared;
	w->fast = (struct kdsm_worker){
		.split = w->deque,
		.limit = w->deque + DEQUE,
		.attention = &alone->shared.attention,
		.alarm = &alone->node.alarm,
		.context = context,
	};
	*worker = &w->fast;
	*head = w->deque;
	return 0;
}

void kd_task_alone_free(struct kdsm_worker *worker)
{
	struct kd_worker *w = kd_worker(worker);

	if (!w)
		return;
	munmap(w->deque, DEQUE_BYTES);
	free(w->full);
	free(w);
}
