// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Results of stolen tasks that return to the node of their owner, each by one put into the
 * task's place in the owner's deque; and puts that no worker waits for. The encoding of
 * results is in message.c.
 *
 * The node of the owner zeroes the words that a result is put into when a thief takes the
 * task, before the thief can know the task (kmod/fabric/steal.c, lib/core/steal.c). So no
 * earlier put to these words is in flight at that time. The notification of the put wakes an
 * owner that sleeps on the first of these words, the bell.
 */
#include <stddef.h>
#include "internal.h"

/* ---- puts that no worker waits for ---- */

/* Wait for a put, so that *put can be used again. */
static void complete(struct kd_worker *w, struct kd_task_put *put)
{
	int ret;

	if (!put->used)
		return;
	put->used = false;
	ret = kdsm_complete(w->tasks->region, &put->ticket, KDSM_FOREVER);
	if (ret)
		kd_task_give_up(w, ret, put->op.node);
}

void kd_task_flush(struct kd_worker *w)
{
	struct kd_task_put *put;
	int ret;

	for (put = w->puts; put < w->puts + KD_TASK_PUTS; put++) {
		if (!put->used)
			continue;
		put->used = false;
		ret = kdsm_complete(w->tasks->region, &put->ticket, KDSM_FOREVER);
		if (ret)
			kd_task_fail(w->tasks, ret, put->op.node);
	}
}

void kd_task_put(struct kd_worker *w, unsigned int node, uint64_t place, const void *from,
		 size_t length)
{
	struct kd_task_put *put = &w->puts[w->next_put++ % KD_TASK_PUTS];
	int ret;

	complete(w, put);
	put->op = kdsm_op_put(node, place, from, length);
	put->op.flags = KDSM_OP_NOTIFY;
	ret = kdsm_submit(w->tasks->region, &put->op, 1, &put->ticket);
	put->used = !ret;
	if (ret == -EAGAIN) {
		/* The threads of the process have too much in flight: wait within the call. */
		ret = kdsm_vector(w->tasks->region, &put->op, 1);
	}
	if (ret)
		kd_task_give_up(w, ret, node);
}

/* ---- results ---- */

_Static_assert(offsetof(struct kdsm_task, bell) + 8 == offsetof(struct kdsm_task, data),
	       "a result is one put");

bool kd_task_result_came(struct kd_worker *w, struct kdsm_task *task)
{
	const struct kdsm_task_type *type = kd_task_type(task->type);
	uint64_t words[1 + sizeof(task->data) / 8];

	if (!type) {
		kd_task_give_up(w, -EPROTO, w->tasks->node);
		return false;
	}
	/*
	 * kd_task_arrived() cannot tell the put from a ring of this node in the first byte of
	 * the bell, because both leave this byte nonzero. Hence compare the whole bell.
	 */
	if (!kd_task_arrived(words, &task->bell, 1 + kd_task_words(type->result)) ||
	    words[0] != KD_RESULT_BELL)
		return false;
	kd_task_decode(task->data, words + 1, type->result);
	return true;
}

void kd_task_send_result(struct kd_worker *w, const struct kdsm_task_origin *origin,
			 const struct kdsm_task *task)
{
	const struct kdsm_task_type *type = kd_task_type(origin->type);
	uint64_t words[1 + sizeof(task->data) / 8] = { KD_RESULT_BELL };
	uint64_t place = kd_slot_place(w->tasks, origin->worker, origin->slot) +
			 offsetof(struct kdsm_task, bell);
	unsigned int count = 1 + kd_task_words(type->result);

	kd_task_encode(words + 1, task->data, type->result);
	if (origin->node == w->tasks->node) {
		/*
		 * A thief of this node stole the task back from another node. The owner still
		 * waits for a result in the form of a put, so store the same words.
		 */
		while (count--)
			__atomic_store_n(kdsm_word(w->tasks->region, place) + count,
					 words[count], __ATOMIC_SEQ_CST);
		w->tasks->region->backend->wake(w->tasks->region, place);
		return;
	}
	kd_count(&w->counts.results, 1);
	kd_task_put(w, origin->node, place, words, count * sizeof(*words));
}
