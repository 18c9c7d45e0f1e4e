// SPDX-License-Identifier: GPL-2.0
/*
 * A node that tried to queue for a lock, and does not know whether it has: the answer
 * to its fetch-and-add was lost. See lock_queue.c.
 *
 * It reads the word. What it may have is a ticket below the tail that it sees then.
 *
 * - Nobody is outstanding: it has none.
 * - One is, with its id: that is its ticket, and the lock is its.
 * - It is told who comes next (TELL): who tells has seen just that.
 * - The baton comes, with a ticket that can be its own: it takes it.
 * - A ticket that was given later was served: it has none.
 *
 * None of that happens if the lock is nobody's: the one that found nobody outstanding
 * is in doubt itself, and those that came after it, too, or they wait. So it asks all
 * nodes. If none has ever had the lock with one of the tickets that are outstanding, and
 * none is just being given one, then it is nobody's: whoever has it, or last handed it
 * over, is among those outstanding. Those in doubt are found by the sum. The first of
 * them, by what they know of their tickets, is to have the lock. As others may come to
 * another conclusion at the same time, it claims the lock by a compare-and-swap on
 * a word of its own; there is one claim for a ticket. That it may be another's ticket
 * does no harm, since that one will be given this one's.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/string.h>

#include "queue.h"

/* Into the order of before; there are few. */
void kdsm_doubter_add(struct kdsm_doubter *doubters, unsigned int count, u32 id, u32 before)
{
	for (; count && (doubters[count - 1].before > before ||
			 (doubters[count - 1].before == before && doubters[count - 1].id > id));
	     count--)
		doubters[count] = doubters[count - 1];
	doubters[count].id = id;
	doubters[count].before = before;
}

unsigned int kdsm_doubters_drop(struct kdsm_doubter *doubters, unsigned int count, u32 id)
{
	unsigned int i, left = 0;

	for (i = 0; i < count; i++)
		if (doubters[i].id != id)
			doubters[left++] = doubters[i];
	return left;
}

u32 kdsm_doubters_choose(const struct kdsm_doubter *doubters, unsigned int n,
			 const u32 *places, unsigned int count, u32 sum)
{
	unsigned int i, chosen;
	u32 set, left;

	for (set = 1; set < 1U << n; set++) {
		left = sum;
		chosen = 0;
		for (i = 0; i < n; i++) {
			if (!(set >> i & 1))
				continue;
			if (chosen == count || places[chosen++] >= doubters[i].before)
				break;
			left -= doubters[i].id;
		}
		if (i == n && chosen == count && !left)
			return set;
	}
	return 0;
}

/* Have the lock with a ticket that nobody else claims. -EBUSY: somebody has. */
static int kdsm_queue_claim(struct kdsm_queue *queue, u32 ticket)
{
	u64 mine = 1ULL << 63 | (u64)ticket << 16 | kdsm_queue_id(queue), claim, old;
	bool granted;
	int err;

	err = kdsm_queue_atomic(queue, KDSM_OP_FAA, KDSM_CLAIM_OFFSET, 0, 0, &claim);
	if (err)
		return err;
	/* It may be this one's, of an attempt whose answer was lost. */
	if (claim != mine) {
		if (claim >> 16 == mine >> 16)
			return -EBUSY;
		err = kdsm_queue_atomic(queue, KDSM_OP_CAS, KDSM_CLAIM_OFFSET, mine, claim, &old);
		if (err)
			return err;
		if (old != claim)
			return -EBUSY;
	}
	spin_lock_bh(&queue->lock);
	granted = queue->state == KDSM_QUEUE_DOUBT;
	if (granted) {
		if (queue->told_ticket != ((ticket + 1) & KDSM_TICKET_MASK))
			queue->told = KDSM_NOBODY;
		kdsm_queue_take_alone(queue, ticket);
	}
	spin_unlock_bh(&queue->lock);
	if (granted)
		queue->ops->granted(queue);
	return 0;
}

static void kdsm_queue_no_doubt(struct kdsm_queue *queue)
{
	spin_lock_bh(&queue->lock);
	if (queue->state == KDSM_QUEUE_DOUBT)
		kdsm_queue_set(queue, KDSM_QUEUE_NONE);
	spin_unlock_bh(&queue->lock);
}

/*
 * Ask all nodes, some time after the word was this. 1: the lock is nobody's, and this
 * node is to claim it, with the oldest ticket that is outstanding.
 */
static int kdsm_queue_scan(struct kdsm_queue *queue, u64 word)
{
	u32 count = kdsm_word_count(word), sum = kdsm_word_sum(word), at, set;
	u32 head = (kdsm_word_tail(word) - count) & KDSM_TICKET_MASK;
	struct kdsm_doubter doubters[KDSM_DOUBTERS_MAX];
	unsigned long *waiting = (void *)queue->window;
	unsigned int doubts = 0, missing = 0, node;
	u32 places[KDSM_DOUBTERS_MAX];
	struct kdsm_queue_place place;
	bool unknown = false, had = false;
	int err;

	BUILD_BUG_ON(sizeof(queue->window) * 8 < KDSM_OUTSTANDING_MAX);
	if (count > KDSM_OUTSTANDING_MAX)
		return -EIO;
	bitmap_zero(waiting, KDSM_OUTSTANDING_MAX);
	for (node = 0; node < queue->nodes; node++) {
		if (!kdsm_queue_has(queue, node)) {
			continue;
		} else if (node == queue->node) {
			place.state = KDSM_QUEUE_DOUBT;
			place.ticket = queue->tail;
			place.has_held = queue->has_held;
			place.held = queue->held;
		} else {
			err = kdsm_queue_ask(queue, node, &place);
			if (err && !kdsm_message_was_heard(err))
				queue->ops->missed(queue, node, true);
			if (err) {
				unknown = true;
				continue;
			}
		}
		if (place.has_held &&
		    kdsm_ticket_distance(queue->tail, place.held) < KDSM_TICKETS_RECENT) {
			/* The tickets that this one's can be have all been served. */
			kdsm_queue_no_doubt(queue);
			return 0;
		}
		had |= place.has_held &&
		       kdsm_ticket_distance(head, place.held) < KDSM_TICKETS_RECENT;
		unknown |= place.state == KDSM_QUEUE_ENTERING;
		at = kdsm_ticket_distance(head, place.ticket);
		if (place.state == KDSM_QUEUE_WAITING && at < count) {
			__set_bit(at, waiting);
			sum -= node + 1;
		} else if (place.state == KDSM_QUEUE_DOUBT && at - 1 < count) {
			if (doubts == KDSM_DOUBTERS_MAX)
				unknown = true;
			else
				kdsm_doubter_add(doubters, doubts++, node + 1, at);
		}
	}
	if (unknown || had)
		return 0;
	for (at = 0; at < count; at++) {
		if (test_bit(at, waiting))
			continue;
		if (missing == KDSM_DOUBTERS_MAX)
			return 0;
		places[missing++] = at;
	}
	if (!missing || places[0])
		return 0;
	set = kdsm_doubters_choose(doubters, doubts, places, missing, sum);
	return set && doubters[__ffs(set)].id == kdsm_queue_id(queue);
}

int kdsm_queue_resolve(struct kdsm_queue *queue, bool scan)
{
	bool head = false;
	u32 ticket, count;
	u64 word;
	int ret;

	ret = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
	if (ret)
		return ret;
	count = kdsm_word_count(word);
	ticket = (kdsm_word_tail(word) - count) & KDSM_TICKET_MASK;
	if (!count) {
		kdsm_queue_no_doubt(queue);
		return 0;
	}
	spin_lock_bh(&queue->lock);
	if (!queue->tail_known) {
		queue->tail = kdsm_word_tail(word);
		queue->tail_known = true;
	}
	if (queue->told != KDSM_NOBODY) {
		ticket = (queue->told_ticket - 1) & KDSM_TICKET_MASK;
		head = kdsm_queue_may_be_mine(queue, ticket);
	} else {
		/* Unless it was this node's, and is with another of its element now. */
		head = count == 1 && kdsm_word_sum(word) == kdsm_queue_id(queue) &&
		       !kdsm_queue_had(queue, ticket);
	}
	spin_unlock_bh(&queue->lock);
	if (!head && scan && kdsm_queue_state(queue) == KDSM_QUEUE_DOUBT) {
		ticket = (kdsm_word_tail(word) - count) & KDSM_TICKET_MASK;
		ret = kdsm_queue_scan(queue, word);
		head = ret > 0;
		if (ret < 0)
			return ret;
	}
	if (!head || kdsm_queue_state(queue) != KDSM_QUEUE_DOUBT)
		return 0;
	ret = kdsm_queue_claim(queue, ticket);
	if (ret != -EBUSY)
		return ret;
	/* Another has claimed that ticket, and this one will be given its. */
	spin_lock_bh(&queue->lock);
	queue->told = KDSM_NOBODY;
	spin_unlock_bh(&queue->lock);
	return 0;
}
