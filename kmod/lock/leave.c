// SPDX-License-Identifier: GPL-2.0
/*
 * Leaving the queue for a lock: is anybody next, and who, and handing over. See
 * lock_queue.c.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/string.h>

#include "queue.h"

/* A debt above this is taken off the word. */
#define KDSM_DEBT_PAY		(KDSM_DEBT_MAX / 2)

/*
 * Who has a ticket has its name in the ring soon, and knows it: so often both are tried
 * at once. Every so many calls all nodes are asked.
 */
#define KDSM_RING_TRIES		16
#define KDSM_FIND_AFTER		16

/* Before what is on its way is looked for again, for the i-th time. */
static void kdsm_queue_pause(unsigned int i)
{
	usleep_range(5 << i / 4, 20 << i / 4);
}

/* ---- looking for successors ---- */

static u64 kdsm_queue_next(const struct kdsm_queue *queue)
{
	return (queue->ticket + 1) & KDSM_TICKET_MASK;
}

/* The word is not what is known: somebody waits. -EIO: it makes no sense. */
static int kdsm_queue_waiters(struct kdsm_queue *queue, u64 word)
{
	u32 mine = queue->baton.debt_sum + queue->baton.id;
	u32 waiters = kdsm_ticket_distance(kdsm_queue_next(queue), kdsm_word_tail(word));

	if (!waiters || kdsm_word_count(word) != waiters + queue->baton.debt + 1 ||
	    kdsm_word_sum(word) <= mine)
		return -EIO;
	queue->waiters = waiters;
	queue->rest = kdsm_word_sum(word) - mine;
	return 0;
}

/*
 * Several are missing for long. Write for them what they could not: those that know
 * their tickets, and of those in doubt such whose ids make up what is left of the sum.
 * Should one of them have no ticket after all, and another its, the sum is right still:
 * for that, all that may have a ticket are to be considered, so the word is read first,
 * and who may have one that is newer is no candidate.
 */
static int kdsm_queue_find(struct kdsm_queue *queue)
{
	u32 first = queue->ticket + 1, rest, places[KDSM_DOUBTERS_MAX], set;
	struct kdsm_doubter doubters[KDSM_DOUBTERS_MAX];
	unsigned int node, doubts = 0, count = 0, at, i, n;
	struct kdsm_queue_place place;
	u64 word;
	int err;

	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (!err)
		err = kdsm_queue_waiters(queue, word);
	if (err)
		return err;
	rest = queue->rest;
	for (node = 0; node < queue->nodes; node++) {
		if (!kdsm_queue_is_peer(queue, node))
			continue;
		err = kdsm_queue_ask(queue, node, &place);
		if (err && !kdsm_message_was_heard(err))
			queue->ops->missed(queue, node, true);
		if (err)
			return err;
		if (place.state == KDSM_QUEUE_ENTERING)
			return -EAGAIN;
		at = kdsm_ticket_distance(first, place.ticket);
		if (place.state == KDSM_QUEUE_DOUBT && doubts < KDSM_DOUBTERS_MAX &&
		    at - 1 < queue->waiters)
			kdsm_doubter_add(doubters, doubts++, node + 1, at);
		if (place.state != KDSM_QUEUE_WAITING || at >= queue->waiters)
			continue;
		err = kdsm_ring_write(queue, place.ticket, node);
		if (err)
			return err;
	}
	for (at = 0; at < queue->waiters; at += n) {
		n = min(queue->waiters - at, KDSM_RING_WINDOW);
		err = kdsm_ring_read(queue, first + at, n);
		if (err)
			return err;
		for (i = 0; i < n; i++) {
			node = kdsm_ring_node(queue, i, first + at + i);
			if (node != KDSM_NOBODY) {
				rest -= node + 1;
				doubts = kdsm_doubters_drop(doubters, doubts, node + 1);
			} else if (count < KDSM_DOUBTERS_MAX) {
				places[count++] = at + i;
			} else {
				return -EAGAIN;
			}
		}
	}
	set = kdsm_doubters_choose(doubters, doubts, places, count, rest);
	if (!set)
		return -EAGAIN;
	for (i = 0, at = 0; i < doubts && !err; i++)
		if (set >> i & 1)
			err = kdsm_ring_write(queue, (first + places[at++]) & KDSM_TICKET_MASK,
					      doubters[i].id - 1);
	return err;
}

/* Who waits, from the ring: at least the first, or an error. */
static int kdsm_queue_gather(struct kdsm_queue *queue)
{
	u32 first = queue->ticket + 1, sum = 0, missing = 0, hole = 0, known = 0, i, n, at;
	u16 *successors = queue->baton.successors;
	unsigned int node;
	int err;

	for (at = 0; at < queue->waiters; at += n) {
		/* More than the baton carries is read only for the sake of the sum. */
		if (at >= KDSM_SUCCESSORS_MAX && !missing)
			break;
		n = min(queue->waiters - at, KDSM_RING_WINDOW);
		err = kdsm_ring_read(queue, first + at, n);
		if (err)
			return err;
		for (i = 0; i < n; i++) {
			node = kdsm_ring_node(queue, i, first + at + i);
			if (at + i < KDSM_SUCCESSORS_MAX)
				successors[at + i] = node;
			if (node != KDSM_NOBODY)
				sum += node + 1;
			else if (!missing++)
				hole = at + i;
		}
	}
	if (missing == 1) {
		node = queue->rest - sum - 1;
		if (!kdsm_queue_is_peer(queue, node))
			return -EAGAIN;
		if (hole < KDSM_SUCCESSORS_MAX)
			successors[hole] = node;
	} else if (!missing && at >= queue->waiters && sum != queue->rest) {
		return -EAGAIN;
	}
	while (known < queue->waiters && known < KDSM_SUCCESSORS_MAX &&
	       successors[known] != KDSM_NOBODY)
		known++;
	if (!known)
		return -EAGAIN;
	queue->baton.known = known;
	queue->baton.flags &= ~KDSM_BATON_MORE;
	if (known < queue->waiters)
		queue->baton.flags |= KDSM_BATON_MORE;
	return 0;
}

/* ---- the word ---- */

/* What the word is while nobody waits. */
static u64 kdsm_queue_known(const struct kdsm_queue *queue)
{
	const struct kdsm_baton *baton = &queue->baton;

	return kdsm_queue_next(queue) * KDSM_WORD_TAIL + (baton->debt + 1) * KDSM_WORD_COUNT +
	       baton->debt_sum + baton->id;
}

static void kdsm_queue_no_debt(struct kdsm_queue *queue)
{
	queue->baton.debt = 0;
	queue->baton.debt_sum = 0;
}

/*
 * Whether the word was made what was attempted is not known. 0: it was, and the
 * attempt is over. -EAGAIN: it was not. Other errors: it is still not known.
 */
static int kdsm_queue_was_done(struct kdsm_queue *queue)
{
	u32 waiters, count, since;
	bool done;
	u64 word;
	int err;

	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (err)
		return err;
	waiters = kdsm_ticket_distance(kdsm_queue_next(queue), kdsm_word_tail(word));
	count = kdsm_word_count(word);
	/*
	 * While this node is outstanding, so are all that came after it. If it is not
	 * any more, others may have come and gone, but no more are outstanding than came.
	 */
	done = count != waiters + queue->baton.debt + 1 || word == queue->attempted;
	since = kdsm_ticket_distance(kdsm_word_tail(queue->attempted), kdsm_word_tail(word));
	if (done && kdsm_word_count(queue->attempted) && count != since + 1)
		return -EIO;
	queue->uncertain = false;
	return done ? 0 : -EAGAIN;
}

/*
 * Change the word from what is known to this node and those that wait, or no waiters,
 * by a compare-and-swap. -EAGAIN: it is not that; *word is what it is.
 */
static int kdsm_queue_attempt(struct kdsm_queue *queue, u64 wanted, u64 *word)
{
	u64 known = kdsm_queue_known(queue);
	int err;

	queue->attempted = wanted;
	err = kdsm_queue_atomic(queue, KDSM_OP_CAS, 0, wanted, known, word);
	queue->uncertain = err != 0;
	if (err)
		return err;
	return *word == known ? 0 : -EAGAIN;
}

/* The word was made what was attempted, for this node to stay in it; or it was not. */
static void kdsm_queue_stays(struct kdsm_queue *queue, bool stays)
{
	struct kdsm_baton *baton = &queue->baton;

	spin_lock_bh(&queue->lock);
	if (stays) {
		kdsm_queue_no_debt(queue);
		baton->id = kdsm_queue_id(queue);
		queue->moved = false;
		queue->ticket = (kdsm_word_tail(queue->attempted) - 1) & KDSM_TICKET_MASK;
		queue->held = queue->ticket;
		baton->ticket = queue->ticket;
	}
	/* This node may have been told of a ticket before it knew that it has the one before. */
	if (queue->renewing && queue->told_ticket != kdsm_queue_next(queue))
		queue->told = KDSM_NOBODY;
	queue->renewing = false;
	spin_unlock_bh(&queue->lock);
}

/*
 * If nobody waits, this node is the only one outstanding from now on (keep), or
 * nobody is. 1: so it is. 0: somebody waits.
 *
 * It may be another node that is counted for this one. To take its place, this one leaves
 * and queues again, with the next ticket, in the same step: by the tickets it can be told
 * whether that was done if the answer is lost, which the ids do not tell.
 */
static int kdsm_queue_settle(struct kdsm_queue *queue, bool keep)
{
	u64 wanted = kdsm_queue_next(queue) * KDSM_WORD_TAIL, word;
	int err = 0;

	if (keep)
		wanted += KDSM_WORD_COUNT + kdsm_queue_id(queue);
	else if (queue->ops->leaving)
		err = queue->ops->leaving(queue, true);
	if (err)
		return err;
	if (keep && queue->baton.id != kdsm_queue_id(queue)) {
		wanted += KDSM_WORD_TAIL;
		spin_lock_bh(&queue->lock);
		queue->renewing = true;
		spin_unlock_bh(&queue->lock);
	}
	err = kdsm_queue_attempt(queue, wanted, &word);
	if (keep && (!err || err == -EAGAIN))
		kdsm_queue_stays(queue, !err);
	if (!err)
		queue->baton.flags &= ~KDSM_BATON_MORE;
	if (err != -EAGAIN)
		return err ?: 1;
	return kdsm_queue_waiters(queue, word);
}

static int kdsm_queue_do_ascertain(struct kdsm_queue *queue)
{
	int err;

	if (!queue->uncertain)
		return 0;
	err = kdsm_queue_was_done(queue);
	if (err && err != -EAGAIN)
		return err;
	kdsm_queue_stays(queue, !err);
	return 0;
}

int kdsm_queue_ascertain(struct kdsm_queue *queue)
{
	if (!queue->uncertain)
		return 0;
	return kdsm_queue_run(queue, BIT(KDSM_QUEUE_HELD), kdsm_queue_do_ascertain);
}

static int kdsm_queue_do_check(struct kdsm_queue *queue)
{
	struct kdsm_baton *baton = &queue->baton;
	int ret;

	ret = kdsm_queue_do_ascertain(queue);
	if (ret)
		return ret;
	ret = kdsm_queue_is_unsure(queue) ? kdsm_queue_settle(queue, true) : 1;
	/* Those that wait are looked for when it is handed over. */
	if (!ret)
		baton->flags |= KDSM_BATON_MORE;
	return min(ret, 0);
}

int kdsm_queue_check(struct kdsm_queue *queue)
{
	if (!kdsm_queue_is_unsure(queue) || kdsm_queue_is_wanted(queue))
		return 0;
	return kdsm_queue_run(queue, BIT(KDSM_QUEUE_HELD), kdsm_queue_do_check);
}

/* Take a large debt off the word. */
static int kdsm_queue_pay(struct kdsm_queue *queue)
{
	u64 debt = queue->baton.debt * KDSM_WORD_COUNT + queue->baton.debt_sum, word;
	u32 waiters;
	int err;

	if (queue->paying) {
		err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
		if (err)
			return err;
		waiters = kdsm_ticket_distance(kdsm_queue_next(queue), kdsm_word_tail(word));
		queue->paying = false;
		if (kdsm_word_count(word) == waiters + 1) {
			kdsm_queue_no_debt(queue);
			return 0;
		}
	}
	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, -debt, 0, &word);
	queue->paying = err != 0;
	if (!err)
		kdsm_queue_no_debt(queue);
	return err;
}

/* ---- handing over ---- */

/*
 * The locks of the queues above go along, as far as this node has them. Who was told
 * there that somebody waits does not tell who that is: it is found in the ring, or by the
 * sum. Until the other has answered, it may have them, and nothing is done with them here.
 */
static unsigned int kdsm_queue_pack(struct kdsm_queue *queue, struct kdsm_wire_carried *wire)
{
	unsigned int count = 0;

	while ((queue = queue->parent) && kdsm_queue_state(queue) == KDSM_QUEUE_HELD) {
		const struct kdsm_baton *baton = &queue->baton;

		wire->level = cpu_to_le16(queue->level);
		wire->id = cpu_to_le16(baton->id);
		wire->ticket = cpu_to_le32(baton->ticket);
		wire->debt = cpu_to_le32(baton->debt);
		wire->debt_sum = cpu_to_le32(baton->debt_sum);
		wire->passes = cpu_to_le32(queue->passes);
		wire->flags = cpu_to_le32(kdsm_queue_is_wanted(queue) ? KDSM_BATON_MORE : 0);
		wire++;
		count++;
	}
	return count;
}

/* To the node with the next ticket, which is known. */
static int kdsm_queue_hand(struct kdsm_queue *queue)
{
	const struct kdsm_baton *baton = &queue->baton;
	struct kdsm_wire_lock_hand wire;
	unsigned int i, left = baton->known - 1, count;
	int err = 0;

	BUILD_BUG_ON(sizeof(wire) > KDSM_MESSAGE_ROOM);
	if (queue->ops->leaving)
		err = queue->ops->leaving(queue, false);
	if (err)
		return err;

	/*
	 * As long as there is no answer that node may have it. What is said again is of the
	 * same epoch: whoever has heard of a newer one has said whether it has it.
	 */
	spin_lock_bh(&queue->lock);
	if (queue->handing == KDSM_NOBODY)
		queue->hand_epoch = queue->epoch;
	queue->handing = baton->successors[0];
	spin_unlock_bh(&queue->lock);
	kdsm_queue_name(queue, &wire.lock, kdsm_queue_next(queue));
	wire.lock.epoch = cpu_to_le32(queue->hand_epoch);
	wire.debt = cpu_to_le32(baton->debt + 1);
	wire.debt_sum = cpu_to_le32(baton->debt_sum + baton->id);
	wire.flags = cpu_to_le32(baton->flags);
	wire.known = cpu_to_le16(left);
	for (i = 0; i < left; i++)
		wire.successors[i] = cpu_to_le16(baton->successors[i + 1]);
	count = kdsm_queue_pack(queue, kdsm_wire_carried(&wire, left));
	wire.count = cpu_to_le16(count);
	err = kdsm_queue_send(queue, baton->successors[0], KDSM_MESSAGE_LOCK_HAND, &wire,
			      kdsm_wire_hand_size(left, count), NULL);
	/* One that does not know the lock may have, before it came up anew. */
	if (kdsm_message_was_heard(err) && err != -ENOENT) {
		spin_lock_bh(&queue->lock);
		queue->handing = KDSM_NOBODY;
		spin_unlock_bh(&queue->lock);
	}
	return err;
}

static void kdsm_queue_left(struct kdsm_queue *queue, enum kdsm_queue_state state)
{
	spin_lock_bh(&queue->lock);
	queue->tries = 0;
	kdsm_queue_set(queue, state);
	spin_unlock_bh(&queue->lock);
}

/* What went along is gone, too. */
static void kdsm_queue_packed(struct kdsm_queue *queue)
{
	while ((queue = queue->parent) && kdsm_queue_state(queue) == KDSM_QUEUE_HELD)
		kdsm_queue_left(queue, KDSM_QUEUE_NONE);
}

/* Find out who is next, by the word and the ring. */
static int kdsm_queue_search(struct kdsm_queue *queue)
{
	unsigned int i;
	int err;

	if (++queue->tries % KDSM_FIND_AFTER == 0) {
		err = kdsm_queue_find(queue);
		if (err)
			return err;
	}
	for (i = 0; i < KDSM_RING_TRIES; i++) {
		err = kdsm_queue_gather(queue);
		if (err != -EAGAIN)
			return err;
		kdsm_queue_pause(i);
	}
	return err;
}

/* Hand it over. While it is frozen: find out whether it was. */
static int kdsm_queue_pass(struct kdsm_queue *queue)
{
	unsigned int i;
	int err;

	/* Who has just queued may be found before it knows its ticket. */
	for (i = 0; i < KDSM_RING_TRIES; i++) {
		err = kdsm_queue_hand(queue);
		/* What comes after an answer would be new. */
		if (err != -EBUSY || READ_ONCE(queue->frozen))
			break;
		kdsm_queue_pause(i);
	}
	if (err == -EBUSY)
		return -EAGAIN;
	if (err == -ESTALE) {
		/* It does not wait with that ticket: what is known is wrong. */
		spin_lock_bh(&queue->lock);
		queue->told = KDSM_NOBODY;
		queue->baton.known = 0;
		queue->waiters = 0;
		spin_unlock_bh(&queue->lock);
		return -EAGAIN;
	}
	if (err)
		return err;
	queue->stats.handed++;
	kdsm_queue_packed(queue);
	kdsm_queue_left(queue, KDSM_QUEUE_NONE);
	return 0;
}

static int kdsm_queue_do_leave(struct kdsm_queue *queue, bool keep)
{
	struct kdsm_baton *baton = &queue->baton;
	int err;

	spin_lock_bh(&queue->lock);
	/* It was lost, and given to this node again: whoever leaves does not know that. */
	if (queue->regained) {
		spin_unlock_bh(&queue->lock);
		return -EAGAIN;
	}
	/* What somebody is to be told cannot be told by a word that says that it is free. */
	keep |= baton->flags & (KDSM_BATON_DEAD | KDSM_BATON_LOST);
	kdsm_queue_set(queue, KDSM_QUEUE_LEAVING);
	queue->looked = false;
	spin_unlock_bh(&queue->lock);
	if (queue->uncertain) {
		err = kdsm_queue_was_done(queue);
		if (!err && !kdsm_word_count(queue->attempted)) {
			queue->stats.freed++;
			kdsm_queue_left(queue, KDSM_QUEUE_NONE);
			return 0;
		}
		if (err && err != -EAGAIN)
			return err;
		kdsm_queue_stays(queue, !err);
	}
	spin_lock_bh(&queue->lock);
	/* Of a baton with names this is the first of them. */
	if (!baton->known && queue->told != KDSM_NOBODY) {
		baton->known = 1;
		baton->successors[0] = queue->told;
	}
	spin_unlock_bh(&queue->lock);
	while (!baton->known) {
		if (!queue->waiters) {
			err = kdsm_queue_settle(queue, keep);
			if (err < 0)
				return err;
			if (err) {
				queue->stats.freed += !keep;
				kdsm_queue_left(queue, keep ? KDSM_QUEUE_HELD : KDSM_QUEUE_NONE);
				return 0;
			}
		}
		err = kdsm_queue_search(queue);
		if (err)
			return err;
	}
	if (baton->debt >= KDSM_DEBT_PAY) {
		err = kdsm_queue_pay(queue);
		if (err)
			return err;
	}
	return kdsm_queue_pass(queue);
}

int kdsm_queue_leave(struct kdsm_queue *queue, bool keep)
{
	int err = kdsm_queue_start(queue, BIT(KDSM_QUEUE_HELD) | BIT(KDSM_QUEUE_LEAVING));
	struct kdsm_queue *root = kdsm_queue_root(queue);
	bool asks;

	if (err > 0)
		return 0;
	if (!err) {
		err = kdsm_queue_do_leave(queue, keep);
		kdsm_queue_end(queue);
		return err;
	}
	/* Not while it resumes. */
	spin_lock_bh(&root->together);
	spin_lock_bh(&queue->lock);
	asks = queue->frozen && queue->state == KDSM_QUEUE_LEAVING &&
	       queue->handing != KDSM_NOBODY && queue->handing != queue->node;
	queue->busy |= asks;
	spin_unlock_bh(&queue->lock);
	spin_unlock_bh(&root->together);
	if (asks) {
		err = kdsm_queue_pass(queue);
		kdsm_queue_end(queue);
	}
	return err;
}
