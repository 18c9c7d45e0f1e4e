// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stealing from another node: the thief's half of the operation KDSM_OP_STEAL. The half of
 * the victim's kernel is kmod/fabric/steal.c. Results return by puts: result.c.
 *
 * One active message asks the kernel of the victim's node, which answers however busy the
 * workers are. The kernel hands out public tasks only. If no task is public, the kernel sets
 * the attention of the workers of its node, as a thief of that node does. A busy worker then
 * publishes tasks when it next spawns or syncs, and the thief's next try finds them.
 *
 * The victim's kernel does not ring the worker that waits for the stolen task, or for a proxy
 * that stood for the task. The worker looks at the task many times before its first sleep,
 * and the kernel stores the thief's mark within a microsecond of taking the task, so the
 * worker sees the mark before it sleeps. There is one exception: the worker waits for a task
 * that a thief of its own node took, and a thief of another node then steals the proxy. In
 * this case the worker sleeps on the wrong word, but only until its nap ends (steal.c).
 */
#include <string.h>
#include "internal.h"

/* A theft, with memory for the tasks behind it */
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

/*
 * Check what another node sent, and fill in the sizes of the arguments, which the kernel does
 * not know.
 */
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
