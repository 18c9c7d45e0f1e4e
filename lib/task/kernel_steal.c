// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stealing from another node by its kernel: one active message, KDSM_OP_STEAL, which is
 * answered however busy the victim is. What the kernel gives away was public; where
 * nothing is, it asks the workers of its node for attention, as a thief there would, and
 * one that is busy makes tasks public when it next spawns or syncs, for the thief's next
 * try. Results go back by puts: result.c.
 *
 * The victim's kernel does not ring the worker that waits for the task, or for a proxy that
 * stood for it. A worker looks at a task many times before it first sleeps, so it sees a
 * mark that comes within a microsecond of the taking; only a worker that waits for a task
 * that a thief of its own node handed on sleeps at the wrong place, and no longer than its
 * nap (steal.c).
 */
#include <string.h>
#include "internal.h"

union loot {
	struct kdsm_theft theft;
	unsigned char room[sizeof(struct kdsm_theft) +
			   KDSM_THEFT_MOST * sizeof(struct kdsm_task_packed)];
};

static void prepare(const struct kd_worker *w, uint32_t preferred, struct kdsm_theft *theft)
{
	const struct kdsm_tasks *tasks = w->tasks;

	*theft = (struct kdsm_theft){
		.workers = kd_shared_place(tasks, 0),
		.deques = kd_slot_place(tasks, 0, 0),
		.stride = sizeof(struct kd_task_shared),
		.count = tasks->node_workers,
		.deque = tasks->deque,
		.first = preferred,
		.thief = KD_THIEF_OF(tasks->node, w->number),
		.proxy = kd_task_proxy.id,
		.most = tasks->steal == KDSM_STEAL_HALF ? KDSM_THEFT_MOST : 1,
	};
}

static bool is_sane(const struct kd_worker *w, const struct kdsm_task_origin *origin)
{
	const struct kdsm_tasks *tasks = w->tasks;
	const struct kdsm_task_type *type = kd_task_type(origin->type);

	return type && type->arguments == origin->bytes && origin->bytes <= KDSM_TASK_BYTES &&
	       origin->node < tasks->nodes && origin->worker < tasks->node_workers &&
	       origin->slot < tasks->deque;
}

/* The kernel does not know how large the arguments of a task are. */
static int check(const struct kd_worker *w, struct kdsm_theft *theft)
{
	struct kdsm_task_packed *tasks = kdsm_theft_tasks(theft);
	const struct kdsm_task_type *type;
	uint32_t i;

	for (i = 0; i < theft->taken; i++) {
		type = kd_task_type(tasks[i].origin.type);
		if (!type)
			return -EPROTO;
		tasks[i].origin.bytes = type->arguments;
		if (!is_sane(w, &tasks[i].origin))
			return -EPROTO;
	}
	return 0;
}

unsigned int kd_task_rob(struct kd_worker *w, unsigned int node, uint32_t preferred,
			 struct kdsm_task_packed *packed)
{
	union loot loot;
	struct kdsm_theft *theft = &loot.theft;
	struct kdsm_op op;
	int ret;

	prepare(w, preferred, theft);
	op = kdsm_op_steal(node, kd_node_place(w->tasks, offsetof(struct kd_task_node, crew)),
			   theft);
	kd_count(&w->counts.requests, 1);
	ret = kdsm_vector(w->tasks->region, &op, 1);
	if (!ret)
		ret = check(w, theft);
	if (ret)
		kd_task_give_up(w, ret, node);
	if (!theft->taken)
		kd_count(theft->busy ? &w->counts.empty : &w->counts.refused, 1);
	memcpy(packed, kdsm_theft_tasks(theft), theft->taken * sizeof(*packed));
	return theft->taken;
}
