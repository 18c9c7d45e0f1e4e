// SPDX-License-Identifier: GPL-2.0
/*
 * The queue for a lock as Schmid, Besta and Hoefler have it (KDSM_LOCK_CAS), to compare
 * with: the word names the last in the queue, who queues replaces that name by its own,
 * and tells the one before, which hands the lock over to it. As devices have no swap,
 * that takes compare-and-swaps in a loop, which fail whenever another was quicker.
 *
 * The word is that of lock_queue.c, with a count of 1 and the id of the last, or of 0.
 * Tickets are counted all the same, so that nothing is taken for what was long ago.
 * There is no ring, and no debt.
 */
#include <linux/delay.h>
#include <linux/err.h>

#include "queue.h"

/* Who leaves waits for the one behind it to tell it, so often at once. */
#define KDSM_CAS_TRIES		50

static u64 kdsm_cas_word(u32 tail, u32 count, u32 id)
{
	return (tail & KDSM_TICKET_MASK) * KDSM_WORD_TAIL + count * KDSM_WORD_COUNT + id;
}

/* What came before the ticket that this node has or may have. */
static void kdsm_cas_got(struct kdsm_queue *queue)
{
	u32 sum = kdsm_word_sum(queue->seen);

	kdsm_queue_entered(queue, kdsm_word_tail(queue->seen), kdsm_word_count(queue->seen),
			   sum && sum <= queue->nodes ? sum - 1 : KDSM_NOBODY);
}

int kdsm_cas_enter(struct kdsm_queue *queue)
{
	u64 old, mine;
	int err;

	/* What was seen last is the guess. */
	for (;;) {
		mine = kdsm_cas_word(kdsm_word_tail(queue->seen) + 1, 1, kdsm_queue_id(queue));
		err = kdsm_queue_atomic(queue, KDSM_OP_CAS, 0, mine, queue->seen, &old);
		if (err)
			return kdsm_queue_lost(queue, err);
		if (old == queue->seen)
			break;
		queue->seen = old;
	}
	kdsm_cas_got(queue);
	queue->seen = mine;
	return 0;
}

/*
 * DOUBT: the word was seen, or this node's compare-and-swap has replaced it. If that is
 * gone, too, whoever has the ticket knows of it; and if it is this node's, who comes
 * after it says so.
 */
int kdsm_cas_resolve(struct kdsm_queue *queue)
{
	u32 ticket = kdsm_word_tail(queue->seen);
	struct kdsm_queue_place place;
	bool mine = false, none;
	unsigned int node;
	u64 word;
	int err;

	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (err)
		return err;
	spin_lock_bh(&queue->lock);
	queue->tail = (ticket + 1) & KDSM_TICKET_MASK;
	queue->tail_known = true;
	mine = word == kdsm_cas_word(ticket + 1, 1, kdsm_queue_id(queue)) ||
	       (queue->told != KDSM_NOBODY &&
		queue->told_ticket == ((ticket + 1) & KDSM_TICKET_MASK));
	spin_unlock_bh(&queue->lock);
	/* Nobody has been given that ticket. */
	none = kdsm_ticket_distance(kdsm_word_tail(word), ticket) < KDSM_TICKETS_RECENT;
	/* It was this node's, before. */
	none |= queue->has_held && kdsm_ticket_distance(ticket, queue->held) < KDSM_TICKETS_RECENT;
	for (node = 0; node < queue->nodes && !mine && !none; node++)
		none = node != queue->node && !kdsm_queue_ask(queue, node, &place) &&
		       ((place.state >= KDSM_QUEUE_WAITING && place.ticket == ticket) ||
			(place.has_held && kdsm_ticket_distance(ticket, place.held) <
						   KDSM_TICKETS_RECENT));
	spin_lock_bh(&queue->lock);
	mine &= queue->state == KDSM_QUEUE_DOUBT;
	if (none && queue->state == KDSM_QUEUE_DOUBT)
		kdsm_queue_set(queue, KDSM_QUEUE_NONE);
	spin_unlock_bh(&queue->lock);
	if (!mine || none)
		return 0;
	kdsm_cas_got(queue);
	queue->seen = kdsm_cas_word(ticket + 1, 1, kdsm_queue_id(queue));
	if (kdsm_queue_state(queue) == KDSM_QUEUE_HELD)
		queue->ops->granted(queue);
	return 0;
}

/*
 * LEAVING: whether the word was changed to no one is not known. 0: it was. -EAGAIN: it
 * was not. -EBUSY: others came, and will tell this node, or have the lock.
 */
int kdsm_cas_was_done(struct kdsm_queue *queue, u64 known, u64 attempted)
{
	struct kdsm_queue_place place;
	unsigned int node;
	u64 word;
	int err;

	if (READ_ONCE(queue->told) != KDSM_NOBODY)
		return -EAGAIN;
	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (err)
		return err;
	if (word == known)
		return -EAGAIN;
	if (word == attempted)
		return 0;
	for (node = 0; node < queue->nodes; node++)
		if (node != queue->node && !kdsm_queue_ask(queue, node, &place) &&
		    place.has_held &&
		    kdsm_ticket_distance(queue->ticket, place.held) - 1 < KDSM_TICKETS_RECENT)
			return 0;
	return -EBUSY;
}

/* LEAVING: somebody is behind. 0: told. */
int kdsm_cas_await(struct kdsm_queue *queue)
{
	unsigned int i;
	int err = -EAGAIN;

	for (i = 0; i < KDSM_CAS_TRIES && err; i++) {
		if (i)
			usleep_range(5, 20);
		spin_lock_bh(&queue->lock);
		if (queue->told != KDSM_NOBODY) {
			queue->baton.known = 1;
			queue->baton.successors[0] = queue->told;
			err = 0;
		}
		spin_unlock_bh(&queue->lock);
	}
	return err;
}
