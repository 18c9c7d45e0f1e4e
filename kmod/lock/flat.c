// SPDX-License-Identifier: GPL-2.0
/*
 * A tree of queues when nodes die. See lock_tree.c for the tree and lock_recover.c for how a
 * queue is written anew.
 *
 * Only the queue of all nodes, the root, is written anew, and from then on it is the only
 * one: the lock is flat, as one of kind DMCS. For the home of a smaller element's queue
 * may be what died; the lock may be in a message of a smaller queue, which the home of a
 * larger one does not see; and a node that was only away from the home of the root may
 * queue in a smaller one still. All that is no matter if nobody looks at the smaller
 * ones any more. They are for speed: who has the lock is who has the root.
 *
 * So a node that freezes the root freezes its part of the smaller queues (its children), and
 * says only what it is in the root. If the lock is on its way with one of them, it says to
 * whom. When it resumes, it is in none of them, and they stay frozen: no task does
 * anything with them, and messages of another epoch are refused. Who waited there
 * queues for the root. Who comes later is told by the home, with the epoch (LOCK_MEET).
 *
 * The lock called together makes that one step, for messages: of those of the queues it is
 * taken first. In between the children cannot change: each frozen queue refuses what
 * comes, and a task that works on one is waited for (busy).
 */
#include <linux/string.h>

#include "queue.h"

struct kdsm_queue *kdsm_queue_root(struct kdsm_queue *queue)
{
	while (queue->parent)
		queue = queue->parent;
	return queue;
}

bool kdsm_queue_freeze_children(struct kdsm_queue *queue)
{
	bool busy = false;

	while ((queue = queue->child)) {
		spin_lock_bh(&queue->lock);
		queue->frozen = true;
		busy |= queue->busy;
		spin_unlock_bh(&queue->lock);
	}
	return !busy;
}

void kdsm_queue_meet_children(struct kdsm_queue *queue)
{
	struct kdsm_queue *child = queue;

	while ((child = child->child)) {
		spin_lock_bh(&child->lock);
		child->epoch = queue->epoch;
		child->frozen = queue->frozen || queue->flat || !queue->met;
		spin_unlock_bh(&child->lock);
	}
}

void kdsm_queue_drop_children(struct kdsm_queue *queue)
{
	while ((queue = queue->child)) {
		spin_lock_bh(&queue->lock);
		queue->frozen = true;
		queue->told = KDSM_NOBODY;
		queue->before = KDSM_NOBODY;
		queue->renewing = false;
		queue->waiters = 0;
		kdsm_queue_forget_leave(queue);
		memset(&queue->baton, 0, sizeof(queue->baton));
		kdsm_queue_set(queue, KDSM_QUEUE_NONE);
		spin_unlock_bh(&queue->lock);
	}
}

/*
 * Who waits may have told the one that is counted, or this node when another had the
 * lock: both forget it, so nothing that was told before counts.
 */
static void kdsm_queue_come_along(struct kdsm_queue *queue, const struct kdsm_carried *carried)
{
	struct kdsm_baton *baton = &queue->baton;

	spin_lock_bh(&queue->lock);
	/* If it is not that, another node is wrong. */
	if (queue->state == KDSM_QUEUE_NONE) {
		memset(baton, 0, sizeof(*baton));
		baton->ticket = carried->ticket;
		kdsm_queue_take(queue);
		baton->id = carried->id;
		baton->debt = carried->debt;
		baton->debt_sum = carried->debt_sum;
		baton->flags = carried->flags;
		queue->passes = carried->passes;
		queue->moved = true;
		queue->told = KDSM_NOBODY;
	}
	spin_unlock_bh(&queue->lock);
}

static void kdsm_queue_do_unpack(struct kdsm_queue *queue)
{
	struct kdsm_queue *above = queue;
	unsigned int i, count = 0;

	/* The state was seen without the lock. Once it is HELD nothing changes what came. */
	spin_lock_bh(&queue->lock);
	if (queue->state == KDSM_QUEUE_HELD) {
		count = queue->baton.count;
		queue->baton.count = 0;
	}
	spin_unlock_bh(&queue->lock);
	/* No more than there are queues above, as was checked when it came. */
	for (i = 0; i < count; i++) {
		above = above->parent;
		kdsm_queue_come_along(above, &queue->baton.carried[i]);
	}
}

void kdsm_queue_unpack(struct kdsm_queue *queue)
{
	struct kdsm_queue *root = kdsm_queue_root(queue);

	if (queue == root)
		return;
	spin_lock_bh(&root->together);
	kdsm_queue_do_unpack(queue);
	spin_unlock_bh(&root->together);
}

void kdsm_queue_unpack_children(struct kdsm_queue *queue)
{
	while ((queue = queue->child))
		kdsm_queue_do_unpack(queue);
}

struct kdsm_queue *kdsm_queue_carrier(struct kdsm_queue *queue)
{
	struct kdsm_queue *child = queue;

	/* Those in between went along, too. */
	while (kdsm_queue_state(child) == KDSM_QUEUE_HELD && child->child)
		child = child->child;
	return kdsm_queue_state(child) == KDSM_QUEUE_LEAVING ? child : queue;
}

u32 kdsm_queue_flags(const struct kdsm_queue *queue)
{
	u32 flags = 0;

	for (; queue; queue = queue->child)
		flags |= queue->baton.flags;
	return flags & KDSM_BATON_LOCK;
}
