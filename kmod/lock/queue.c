// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of nodes for a lock, by tickets. To queue takes one fetch-and-add and at
 * most one more remote operation, however many others do so at the same time.
 *
 * The word, at its home, holds the next ticket, and how many nodes are *outstanding*,
 * and the sum of their ids: who queues adds itself to all three. The value before tells
 * it all it needs:
 *
 * - Nobody was outstanding: it has the lock.
 * - One was: that is the sum, so it is told (LOCK_TELL) who comes next.
 * - Several were: it writes its id to the ring, at the place of its ticket.
 *
 * The holder hands the lock over to the node with the next ticket (LOCK_HAND, the
 * baton), whose name it knows because it was told, or from the baton. Then it is no
 * more than a debt, which the baton carries: outstanding, but served. If it knows
 * nobody, it tries to make the word say that nobody is outstanding, by one
 * compare-and-swap: all that it would replace is known to it, if nobody waits. If
 * somebody does, the word says who: the tickets between its own and the next one,
 * whose names are in the ring, and travel with the baton from then on. So many waiters
 * are found with one atomic and one read, and hand-overs between them are a message
 * each. When a debt is large the holder takes it off the word.
 *
 * If all but one of the names are in the ring, the missing one is what is left of the
 * sum. So it is no matter that the one with the ticket after a holder without debt may
 * have told it rather than written. Of several that are missing, those that had more
 * than one before them are on their way.
 *
 * A holder without debt that knows of nobody can keep the lock as long as it likes:
 * who comes sees a count of 1 and tells it. One with debt has to get rid of it first,
 * by the same compare-and-swap, which leaves only itself.
 *
 * What gets lost. An atomic whose answer is lost may have been done. Of those of a
 * holder the word tells: nobody else changes what it adds up to but by queueing. Of
 * one that queues it does not: the node is in DOUBT then; see lock_doubt.c. Who looks
 * for names and misses several for long asks all nodes (LOOK): those in doubt whose ids
 * make up the rest of the sum are it, and if they are not, their ids add up all the same.
 *
 * TELL and HAND are said again until they are answered; each ticket is handed over
 * once, and who hears of one that it has had says yes. A waiter that waits long asks
 * all others, which makes the holder look at the word.
 *
 * Words and rings are in memory that is not mapped by programs. What a message or a
 * peer's memory says is checked all the same; what cannot be is said by a kernel that
 * is wrong or hostile, and spoils this lock.
 *
 * Locking: the spinlock guards the state against messages. It is not held over the
 * network, and callbacks are called without it.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/string.h>

#include "queue.h"

void kdsm_queue_init(struct kdsm_queue *queue)
{
	spin_lock_init(&queue->lock);
	spin_lock_init(&queue->together);
	queue->state = KDSM_QUEUE_NONE;
	queue->told = KDSM_NOBODY;
	queue->from = KDSM_NOBODY;
	queue->handing = KDSM_NOBODY;
}

int kdsm_queue_start(struct kdsm_queue *queue, unsigned long states)
{
	int ret = 0;

	spin_lock_bh(&queue->lock);
	if (!(states & BIT(queue->state)))
		ret = 1;
	else if (queue->frozen)
		ret = -EAGAIN;
	else
		queue->busy = true;
	spin_unlock_bh(&queue->lock);
	return ret;
}

void kdsm_queue_end(struct kdsm_queue *queue)
{
	spin_lock_bh(&queue->lock);
	queue->busy = false;
	spin_unlock_bh(&queue->lock);
}

int kdsm_queue_run(struct kdsm_queue *queue, unsigned long states,
		   int (*step)(struct kdsm_queue *queue))
{
	int err = kdsm_queue_start(queue, states);

	if (err)
		return min(err, 0);
	err = step(queue);
	kdsm_queue_end(queue);
	return err;
}

void kdsm_queue_set(struct kdsm_queue *queue, enum kdsm_queue_state state)
{
	/* For kdsm_queue_state(), which is without the lock. */
	WRITE_ONCE(queue->state, state);
}

void kdsm_queue_take(struct kdsm_queue *queue)
{
	queue->ticket = queue->baton.ticket;
	queue->held = queue->ticket;
	queue->held_at = ktime_get_ns();
	queue->has_held = true;
	queue->looked = false;
	queue->renewing = false;
	queue->moved = false;
	queue->passes = 0;
	queue->waiters = 0;
	queue->uncertain = false;
	queue->baton.id = kdsm_queue_id(queue);
	kdsm_queue_set(queue, KDSM_QUEUE_HELD);
}

void kdsm_queue_forget_leave(struct kdsm_queue *queue)
{
	queue->handing = KDSM_NOBODY;
	queue->uncertain = false;
	queue->paying = false;
	queue->tries = 0;
}

/* ---- the home ---- */

/*
 * The epoch, and the tie that holds with it: what is posted with that tie is done only if
 * the home has not given up this node since.
 */
static int kdsm_queue_do_meet(struct kdsm_queue *queue)
{
	struct kdsm_wire_lock_state reply;
	unsigned int tries = 3, length;
	struct kdsm_wire_lock wire;
	u64 tie = 0;
	int err;

	if (queue->met || !queue->recovers)
		return 0;
	spin_lock_bh(&queue->lock);
	queue->asks_again = false;
	spin_unlock_bh(&queue->lock);
	if (queue->home != queue->node) {
		kdsm_queue_name(queue, &wire, 0);
		/* The first message to a node may be what makes the tie. */
		do {
			tie = kdsm_fabric_tie(queue->fabric, queue->home);
			length = sizeof(reply);
			/* Not counted: mostly it is done when the lock is opened. */
			err = kdsm_message(queue->fabric, queue->home, KDSM_MESSAGE_LOCK_MEET,
					   &wire, sizeof(wire), &reply, &length);
			if (err)
				return err == -EBUSY ? -EAGAIN : err == -ENOENT ? -EHOSTDOWN : err;
			if (length != sizeof(reply))
				return -EIO;
		} while ((!tie || tie != kdsm_fabric_tie(queue->fabric, queue->home)) && --tries);
		if (!tries)
			return -EAGAIN;
	}
	spin_lock_bh(&queue->together);
	spin_lock_bh(&queue->lock);
	if (queue->home != queue->node) {
		queue->epoch = le32_to_cpu(reply.epoch);
		queue->flat = queue->deep && reply.state;
	}
	queue->tie = tie;
	queue->met = !queue->asks_again;
	spin_unlock_bh(&queue->lock);
	kdsm_queue_meet_children(queue);
	spin_unlock_bh(&queue->together);
	return queue->met ? 0 : -EAGAIN;
}

int kdsm_queue_meet(struct kdsm_queue *queue)
{
	return kdsm_queue_run(queue, BIT(KDSM_QUEUE_NONE), kdsm_queue_do_meet);
}

/* ---- queueing ---- */

/* Let whoever goes before this node find it. */
static void kdsm_queue_publish(struct kdsm_queue *queue)
{
	struct kdsm_wire_lock wire;
	int err;

	if (queue->before == KDSM_NOBODY) {
		err = kdsm_ring_write(queue, queue->ticket, queue->node);
	} else {
		kdsm_queue_name(queue, &wire, queue->ticket);
		err = kdsm_queue_send(queue, queue->before, KDSM_MESSAGE_LOCK_TELL, &wire,
				      sizeof(wire), NULL);
	}
	/* It does not know its own ticket yet, or was not reached: poll does it again. */
	if (!err)
		queue->published = true;
}

/* The ticket came: it is HELD if count, of those before it, is 0. */
static void kdsm_queue_entered(struct kdsm_queue *queue, u32 ticket, unsigned int count,
			       unsigned int before)
{
	bool waits = false;

	queue->stats.entered++;
	spin_lock_bh(&queue->lock);
	if (queue->told_ticket != ((ticket + 1) & KDSM_TICKET_MASK))
		queue->told = KDSM_NOBODY;
	if (!count) {
		kdsm_queue_take_alone(queue, ticket);
		queue->stats.free++;
	} else {
		queue->ticket = ticket;
		queue->before = count == 1 ? before : KDSM_NOBODY;
		queue->published = false;
		kdsm_queue_set(queue, KDSM_QUEUE_WAITING);
		waits = true;
	}
	spin_unlock_bh(&queue->lock);
	if (waits)
		kdsm_queue_publish(queue);
}

void kdsm_queue_take_alone(struct kdsm_queue *queue, u32 ticket)
{
	memset(&queue->baton, 0, sizeof(queue->baton));
	queue->baton.ticket = ticket;
	queue->from = KDSM_NOBODY;
	kdsm_queue_take(queue);
}

/* ENTERING, and the answer is lost: DOUBT, and err, if it cannot be told yet. */
static int kdsm_queue_lost(struct kdsm_queue *queue, int err)
{
	spin_lock_bh(&queue->lock);
	queue->tail_known = false;
	kdsm_queue_set(queue, KDSM_QUEUE_DOUBT);
	spin_unlock_bh(&queue->lock);
	kdsm_queue_resolve(queue, false);
	return kdsm_queue_state(queue) == KDSM_QUEUE_HELD ? 0 : err;
}

static void kdsm_queue_begin(struct kdsm_queue *queue)
{
	spin_lock_bh(&queue->lock);
	queue->told = KDSM_NOBODY;
	kdsm_queue_set(queue, KDSM_QUEUE_ENTERING);
	spin_unlock_bh(&queue->lock);
}

static u64 kdsm_queue_mine(const struct kdsm_queue *queue)
{
	return KDSM_WORD_TAIL + KDSM_WORD_COUNT + kdsm_queue_id(queue);
}

static int kdsm_queue_do_enter(struct kdsm_queue *queue)
{
	u32 count, sum;
	u64 word;
	int err;

	err = kdsm_queue_do_meet(queue);
	if (err)
		return err;
	kdsm_queue_begin(queue);
	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, kdsm_queue_mine(queue), 0, &word);
	if (err)
		return kdsm_queue_lost(queue, err);
	count = kdsm_word_count(word);
	sum = kdsm_word_sum(word);
	/*
	 * One that is no node cannot be told: LOOK finds it, if there is any. And this
	 * one may be counted for another of its element, which is just leaving.
	 */
	kdsm_queue_entered(queue, kdsm_word_tail(word), count,
			   kdsm_queue_is_peer(queue, sum - 1) ? sum - 1 : KDSM_NOBODY);
	return 0;
}

int kdsm_queue_enter(struct kdsm_queue *queue)
{
	return kdsm_queue_run(queue, BIT(KDSM_QUEUE_NONE), kdsm_queue_do_enter);
}

static int kdsm_queue_do_try(struct kdsm_queue *queue)
{
	u64 word, old;
	int err;

	err = kdsm_queue_do_meet(queue);
	if (err)
		return err;
	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (err)
		return err;
	if (kdsm_word_count(word))
		return -EBUSY;
	kdsm_queue_begin(queue);
	err = kdsm_queue_atomic(queue, KDSM_OP_CAS, 0, word + kdsm_queue_mine(queue), word, &old);
	if (err)
		return kdsm_queue_lost(queue, err);
	if (old == word) {
		kdsm_queue_entered(queue, kdsm_word_tail(word), 0, KDSM_NOBODY);
		return 0;
	}
	spin_lock_bh(&queue->lock);
	kdsm_queue_set(queue, KDSM_QUEUE_NONE);
	spin_unlock_bh(&queue->lock);
	return -EBUSY;
}

int kdsm_queue_try(struct kdsm_queue *queue)
{
	int err = kdsm_queue_start(queue, BIT(KDSM_QUEUE_NONE));

	if (err > 0)
		return kdsm_queue_state(queue) == KDSM_QUEUE_HELD ? 0 : -EBUSY;
	if (!err) {
		err = kdsm_queue_do_try(queue);
		kdsm_queue_end(queue);
	}
	return err == -EAGAIN ? -EBUSY : err;
}

/* ---- waiting ---- */

int kdsm_queue_ask(struct kdsm_queue *queue, unsigned int node,
		   struct kdsm_queue_place *place)
{
	struct kdsm_wire_lock_state reply;
	struct kdsm_wire_lock wire;
	int err;

	memset(place, 0, sizeof(*place));
	kdsm_queue_name(queue, &wire, queue->ticket);
	err = kdsm_queue_send(queue, node, KDSM_MESSAGE_LOCK_LOOK, &wire, sizeof(wire), &reply);
	if (err)
		/* One that does not know the lock has no part in it. */
		return err == -ENOENT ? 0 : err;
	place->state = le16_to_cpu(reply.state);
	place->has_held = le16_to_cpu(reply.has_held);
	place->ticket = le32_to_cpu(reply.ticket);
	place->held = le32_to_cpu(reply.held);
	return place->state <= KDSM_QUEUE_LEAVING && place->ticket <= KDSM_TICKET_MASK &&
	       place->held <= KDSM_TICKET_MASK ? 0 : -EIO;
}

int kdsm_queue_poll(struct kdsm_queue *queue, bool look)
{
	struct kdsm_queue_place place;
	bool silent = false, found = false;
	enum kdsm_queue_state state;
	unsigned int node;
	int err;

	/* While it is frozen there is nothing to do but to wait. */
	err = kdsm_queue_start(queue, BIT(KDSM_QUEUE_DOUBT) | BIT(KDSM_QUEUE_WAITING));
	if (err)
		return 0;
	state = kdsm_queue_state(queue);
	if (state == KDSM_QUEUE_DOUBT)
		err = kdsm_queue_resolve(queue, true);
	else if (state == KDSM_QUEUE_WAITING && !queue->published)
		kdsm_queue_publish(queue);
	kdsm_queue_end(queue);
	if (state != KDSM_QUEUE_WAITING)
		return err;
	for (node = 0; look && node < queue->nodes; node++) {
		if (!kdsm_queue_is_peer(queue, node))
			continue;
		err = kdsm_queue_ask(queue, node, &place);
		if (err) {
			silent = true;
			if (!kdsm_message_was_heard(err) && node != queue->home)
				queue->ops->missed(queue, node, false);
		} else {
			found |= place.state != KDSM_QUEUE_NONE &&
				 place.state != KDSM_QUEUE_WAITING;
		}
	}
	/* If nobody else has it, it is with one that does not answer. */
	return silent && !found ? -EHOSTDOWN : 0;
}
