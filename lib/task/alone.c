// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A worker of no pool: spawn and sync work as ever, with a deque that is its own memory,
 * and everything is run by the caller. So there is one code for both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "internal.h"

/* It is touched as deep as tasks go. What finds it full is run at once. */
#define DEQUE	(1U << 16)

struct alone {
	struct kd_worker worker;	/* first */
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
