// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waking the workers of other nodes.
 *
 * The neighbours of a node are those whose numbers differ from its own in one bit. When the
 * workers of a node begin to sleep, the node puts 1 into hungry of its neighbours, and then
 * into their alarm, which busy workers look at. A worker that has a task to give away zeroes
 * both words and rings the bell of the hungry nodes, whose workers then steal from it.
 * The worker zeroes the alarm before it reads hungry, and a hungry node puts the alarm after
 * hungry, so no hungry node is forgotten. Where the number of nodes is no power of two,
 * clearing the highest bit still leads from any node to node 0: work reaches all nodes.
 */
#include <stddef.h>
#include "internal.h"

static unsigned int neighbour(const struct kdsm_tasks *tasks, unsigned int line)
{
	return tasks->node ^ 1u << line;
}

/* Ring the bells of the hungry neighbours, if there is a task for them. */
static void poke(struct kd_worker *w, const struct kdsm_task *end)
{
	struct kdsm_tasks *tasks = w->tasks;
	unsigned int line;
	uint64_t value;

	if (!kd_task_offered(tasks, w->number) && end <= w->fast.split)
		return;
	__atomic_exchange_n(&tasks->own->alarm, 0, __ATOMIC_SEQ_CST);
	for (line = 0; line < KD_TASK_LINES && neighbour(tasks, line) < KDSM_MAX_NODES; line++) {
		if (neighbour(tasks, line) >= tasks->nodes ||
		    !__atomic_exchange_n(&tasks->own->hungry[line], 0, __ATOMIC_SEQ_CST))
			continue;
		/* The kernel gives away public tasks only. */
		if (!kd_task_offered(tasks, w->number))
			kd_task_offer(w, end);
		/* Differs from every earlier value. */
		value = (kdsm_now() & ~(uint64_t)KD_BELL_NODE) | tasks->node;
		kd_count(&w->counts.pokes, 1);
		kd_task_put(w, neighbour(tasks, line),
			    kd_node_place(tasks, offsetof(struct kd_task_node, bell)), &value,
			    sizeof(value));
	}
}

void kd_task_answer_alarm(struct kd_worker *w, const struct kdsm_task *end)
{
	if (__atomic_load_n(&w->tasks->own->alarm, __ATOMIC_RELAXED))
		poke(w, end);
}

void kd_task_hungry(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	const uint8_t one[8] = { 1 };
	unsigned int line;
	struct kdsm_op ops[2 * KD_TASK_LINES];
	unsigned int count = 0;
	int ret;

	for (line = 0; line < KD_TASK_LINES; line++) {
		if (neighbour(tasks, line) >= tasks->nodes)
			continue;
		ops[count++] = kdsm_op_put(neighbour(tasks, line),
					   kd_node_place(tasks, offsetof(struct kd_task_node,
									 hungry[line])),
					   one, sizeof(one));
		/* After the put to hungry. */
		ops[count] = kdsm_op_put(neighbour(tasks, line),
					 kd_node_place(tasks, offsetof(struct kd_task_node,
								       alarm)),
					 one, sizeof(one));
		ops[count++].flags = KDSM_OP_NOTIFY;
	}
	kd_count(&w->counts.hungry, count);
	ret = count ? kdsm_vector(tasks->region, ops, count) : 0;
	/* The caller counts as a sleeper, so it must not leave from here: it checks later. */
	if (ret)
		kd_task_fail(tasks, ret == -EHOSTDOWN ? -EOWNERDEAD : ret, tasks->node);
}
