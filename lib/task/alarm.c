// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waking the workers of other nodes; wake.c wakes those of this node.
 *
 * The neighbours of a node are the nodes whose numbers differ from its own in one bit. When
 * a worker of a node begins to sleep on the bell, it puts 1 into the word "hungry" of the
 * neighbours, and then into their alarm, which busy workers look at. A worker that has a
 * task to give away zeroes both words and rings the bells of the hungry nodes, whose workers
 * then steal from its node. The worker zeroes the alarm before it reads hungry, and a hungry
 * node puts the alarm after hungry, so no hungry node is forgotten. If the number of nodes is
 * no power of two, each node but node 0 still has a neighbour of a lower number: the one
 * without the node's highest bit. So the neighbours connect all nodes, and work reaches all.
 */
#include <stddef.h>
#include "internal.h"

/* The neighbour whose number differs in this bit; it may not exist. */
static unsigned int neighbour(const struct kdsm_tasks *tasks, unsigned int line)
{
	return tasks->node ^ 1u << line;
}

/* Ring the bells of the hungry neighbours, if this worker has a task for them. */
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
		/* Publish a task, because the kernel hands out public tasks only. */
		if (!kd_task_offered(tasks, w->number))
			kd_task_offer(w, end);
		/* The time makes the value differ from every earlier value of the bell. */
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
	unsigned int count = 0, bad = 0;
	int ret;

	for (line = 0; line < KD_TASK_LINES; line++) {
		if (neighbour(tasks, line) >= tasks->nodes)
			continue;
		ops[count++] = kdsm_op_put(neighbour(tasks, line),
					   kd_node_place(tasks, offsetof(struct kd_task_node,
									 hungry[line])),
					   one, sizeof(one));
		/* The put to alarm follows the put to hungry. Pairs with poke(). */
		ops[count] = kdsm_op_put(neighbour(tasks, line),
					 kd_node_place(tasks, offsetof(struct kd_task_node,
								       alarm)),
					 one, sizeof(one));
		ops[count++].flags = KDSM_OP_NOTIFY;
	}
	kd_count(&w->counts.hungry, count);
	ret = count ? kdsm_vector(tasks->region, ops, count) : 0;
	/*
	 * Do not call kd_task_give_up(): its longjmp() would leave the caller counted in
	 * sleepers. The caller calls kd_task_check() later.
	 */
	if (!ret)
		return;
	while (bad < count && !ops[bad].status)
		bad++;
	kd_task_fail(tasks, ret == -EHOSTDOWN ? -EOWNERDEAD : ret,
		     bad < count ? ops[bad].node : tasks->node);
}
