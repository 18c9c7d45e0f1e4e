// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of nodes for a lock when nodes die. Its home writes it anew, of those that
 * live, in their order. See lock_queue.c for the queue and lock_death.c for who is dead.
 *
 * 1. The home freezes its own part, and gives up who does not answer: whatever such a
 *    node has posted has landed then, or never will (kdsm_fabric_give_up()). Should it
 *    only have been away, it has to learn from the home before it queues again.
 * 2. Each node freezes (LOCK_FREEZE, of the next epoch): it neither queues nor hands
 *    over, and says what it is, as soon as it has heard of all that it has posted. What it
 *    has handed over without an answer it asks for again; it says to whom that was.
 * 3. When all have said so, the home decides. Who has the lock keeps it, unless it may
 *    have handed it over to one that is dead. If nobody has it, the first who waits gets
 *    it with KDSM_BATON_DEAD; if nobody waits, the home itself, which keeps it until
 *    somebody comes: a word that says "free" could not tell that a holder has died.
 * 4. The word is replaced by a compare-and-swap, with new tickets and no debt. Who is
 *    next is told to each (LOCK_RESUME), so that the ring is not needed for them. The home
 *    resumes last, since who is not in the queue has to ask it first (LOCK_MEET).
 *
 * Messages carry the epoch, so that nothing of before is taken for something of now. When
 * a node dies meanwhile it begins again, with a newer epoch if some have resumed already.
 * Of those that say again what they were before they should have resumed, tickets are
 * older, and so they come first; and as long as nobody says that it has the lock, it is
 * given with DEAD.
 *
 * A node whose own compare-and-swap, which was to free the lock, was not answered is taken
 * for one that handed it over.
 */
#include <linux/err.h>
#include <linux/string.h>

#include "queue.h"

/* ---- every node ---- */

/* Does the home still count on this node? Not if it has given it up. */
static bool kdsm_queue_is_tied(const struct kdsm_queue *queue)
{
	return !queue->recovers || queue->home == queue->node ||
	       (queue->met && kdsm_fabric_tie(queue->fabric, queue->home) == queue->tie);
}

bool kdsm_queue_is_out(struct kdsm_queue *queue, bool *had)
{
	*had = false;
	if (!queue->met || kdsm_queue_is_tied(queue))
		return false;
	spin_lock_bh(&queue->together);
	kdsm_queue_unpack_children(queue);
	spin_lock_bh(&queue->lock);
	*had = queue->state == KDSM_QUEUE_HELD || queue->state == KDSM_QUEUE_LEAVING;
	queue->met = false;
	queue->frozen = false;
	queue->reported = false;
	queue->said_handing = false;
	queue->told = KDSM_NOBODY;
	queue->regained = false;
	kdsm_queue_forget_leave(queue);
	kdsm_queue_set(queue, KDSM_QUEUE_NONE);
	spin_unlock_bh(&queue->lock);
	kdsm_queue_drop_children(queue);
	spin_unlock_bh(&queue->together);
	return true;
}

/* May the word say that nobody has the lock, since this node wrote that? */
static bool kdsm_queue_may_be_free(const struct kdsm_queue *queue)
{
	return queue->uncertain && !kdsm_word_count(queue->attempted);
}

/* May it freeze for that epoch? -EBUSY: not yet. -ESTALE: it has resumed from that. 1: no part. */
static int kdsm_queue_begin_freeze(struct kdsm_queue *queue, u32 epoch)
{
	int err = 0;

	spin_lock_bh(&queue->lock);
	if (!kdsm_queue_is_tied(queue)) {
		/* Whatever it does next, it asks the home first, or again. */
		queue->asks_again = true;
		err = 1;
	} else if ((s32)(epoch - queue->epoch) < 0 ||
		   (epoch == queue->epoch && !queue->reported)) {
		/* That may be one that was long on its way. */
		err = -ESTALE;
	} else {
		queue->frozen = true;
		if (queue->busy)
			err = -EBUSY;
	}
	spin_unlock_bh(&queue->lock);
	if (!err || err == -EBUSY)
		err = kdsm_queue_freeze_children(queue) ? err : -EBUSY;
	return err;
}

/* With together, and nothing can change. */
static void kdsm_queue_report(struct kdsm_queue *queue, u32 epoch, struct kdsm_member *report)
{
	struct kdsm_queue *carrier;
	bool again;

	kdsm_queue_unpack_children(queue);
	carrier = kdsm_queue_carrier(queue);
	/* The home may have given it to another since this node said that. */
	again = queue->reported && epoch != queue->epoch && queue->said_handing;
	spin_lock_bh(&carrier->lock);
	if (again)
		carrier->handing = queue->node;
	report->state = carrier->state;
	report->to = carrier->handing;
	report->flags = carrier->baton.flags & (KDSM_BATON_DEAD | KDSM_BATON_LOST);
	spin_unlock_bh(&carrier->lock);
	spin_lock_bh(&queue->lock);
	queue->epoch = epoch;
	queue->reported = true;
	report->ticket = queue->ticket;
	if (report->state != KDSM_QUEUE_LEAVING)
		report->to = KDSM_NOBODY;
	else if (kdsm_queue_may_be_free(queue))
		report->to = queue->node;
	if (report->state != KDSM_QUEUE_HELD && report->state != KDSM_QUEUE_LEAVING)
		report->flags = 0;
	queue->said = report->state;
	queue->said_handing |= report->to != KDSM_NOBODY;
	spin_unlock_bh(&queue->lock);
	kdsm_queue_meet_children(queue);
}

/* -EBUSY: ask again. -ESTALE: it has resumed from that epoch. */
static int kdsm_queue_freeze(struct kdsm_queue *queue, u32 epoch, struct kdsm_member *report)
{
	int err;

	memset(report, 0, sizeof(*report));
	report->to = KDSM_NOBODY;
	report->state = KDSM_QUEUE_NONE;
	spin_lock_bh(&queue->together);
	err = kdsm_queue_begin_freeze(queue, epoch);
	if (!err)
		kdsm_queue_report(queue, epoch, report);
	spin_unlock_bh(&queue->together);
	return min(err, 0);
}

int kdsm_queue_serve_freeze(struct kdsm_queue *queue, struct kdsm_request *request)
{
	struct kdsm_wire_lock_report *reply = request->reply;
	const struct kdsm_wire_lock *wire = request->data;
	struct kdsm_member report;
	int err;

	if (!queue->recovers || request->length != sizeof(*wire) ||
	    request->from != queue->home || request->from == queue->node)
		return -EINVAL;
	err = kdsm_queue_freeze(queue, le32_to_cpu(wire->epoch), &report);
	if (err)
		return err;
	reply->state = cpu_to_le16(report.state);
	reply->to = cpu_to_le16(report.to);
	reply->ticket = cpu_to_le32(report.ticket);
	reply->flags = cpu_to_le32(report.flags);
	reply->reserved = 0;
	request->reply_length = sizeof(*reply);
	return 0;
}

/* With the spinlock: all that was known of others is void. */
static void kdsm_queue_renew(struct kdsm_queue *queue, const struct kdsm_member *member)
{
	queue->ticket = member->ticket;
	queue->told = member->next;
	queue->before = KDSM_NOBODY;
	queue->published = true;
	queue->waiters = 0;
	kdsm_queue_forget_leave(queue);
}

/* -EBUSY: say it again. -EINVAL: it cannot be. */
static int kdsm_queue_resume(struct kdsm_queue *queue, u32 epoch,
			     const struct kdsm_member *member)
{
	bool granted = false, wanted = false, resumed = false;
	int err = 0;
	u32 flags;

	spin_lock_bh(&queue->together);
	spin_lock_bh(&queue->lock);
	/* It has no part; or this is said again, and it may be about to freeze again. */
	if (!kdsm_queue_is_tied(queue) || !queue->reported || epoch != queue->epoch)
		goto unlock;
	spin_unlock_bh(&queue->lock);
	/* It may be asking again whether it has handed the lock over. */
	resumed = kdsm_queue_freeze_children(queue);
	flags = kdsm_queue_flags(queue);
	spin_lock_bh(&queue->lock);
	if (queue->busy || !resumed) {
		err = -EBUSY;
		goto unlock;
	}
	switch (member->state) {
	case KDSM_QUEUE_NONE:
		if (queue->said == KDSM_QUEUE_HELD || queue->said == KDSM_QUEUE_WAITING) {
			err = -EINVAL;
			goto unlock;
		}
		kdsm_queue_renew(queue, member);
		kdsm_queue_set(queue, KDSM_QUEUE_NONE);
		break;
	case KDSM_QUEUE_WAITING:
		if (queue->state != KDSM_QUEUE_WAITING) {
			err = -EINVAL;
			goto unlock;
		}
		kdsm_queue_renew(queue, member);
		break;
	default:
		granted = member->flags & KDSM_BATON_DEAD;
		if (granted ? queue->state != KDSM_QUEUE_WAITING && queue->home != queue->node :
			      queue->state != KDSM_QUEUE_HELD &&
			      queue->state != KDSM_QUEUE_LEAVING) {
			granted = false;
			err = -EINVAL;
			goto unlock;
		}
		kdsm_queue_renew(queue, member);
		if (granted) {
			kdsm_queue_take_alone(queue, member->ticket);
			queue->baton.flags = member->flags;
			queue->regained = true;
		} else {
			queue->held = member->ticket;
			queue->baton.ticket = member->ticket;
			queue->baton.debt = 0;
			queue->baton.debt_sum = 0;
			queue->baton.known = 0;
			queue->baton.flags = flags;
			/* It may have come along, and another be counted for it. */
			queue->baton.id = kdsm_queue_id(queue);
			queue->moved = false;
			wanted = queue->state == KDSM_QUEUE_HELD && queue->told != KDSM_NOBODY;
		}
		break;
	}
	queue->frozen = false;
	queue->reported = false;
	queue->said_handing = false;
	queue->flat = queue->deep;
unlock:
	spin_unlock_bh(&queue->lock);
	if (resumed && !err)
		kdsm_queue_drop_children(queue);
	spin_unlock_bh(&queue->together);
	if (granted)
		queue->ops->granted(queue);
	if (wanted)
		queue->ops->wanted(queue);
	return err;
}

int kdsm_queue_serve_resume(struct kdsm_queue *queue, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_resume *wire = request->data;
	struct kdsm_member member = { .to = KDSM_NOBODY };

	if (!queue->recovers || request->length != sizeof(*wire) ||
	    request->from != queue->home || request->from == queue->node)
		return -EINVAL;
	member.state = le16_to_cpu(wire->state);
	member.next = le16_to_cpu(wire->next);
	member.ticket = le32_to_cpu(wire->lock.ticket);
	member.flags = le32_to_cpu(wire->flags);
	if ((member.state != KDSM_QUEUE_NONE && member.state != KDSM_QUEUE_WAITING &&
	     member.state != KDSM_QUEUE_HELD) || member.ticket > KDSM_TICKET_MASK ||
	    member.flags & ~(KDSM_BATON_DEAD | KDSM_BATON_LOST) ||
	    (member.next != KDSM_NOBODY && member.next >= queue->nodes) ||
	    member.next == queue->node)
		return -EINVAL;
	return kdsm_queue_resume(queue, le32_to_cpu(wire->lock.epoch), &member);
}

/* ---- the home: asking ---- */

/* Its own part freezes first. 1: there is nothing to do. */
static int kdsm_recover_begin(struct kdsm_queue *queue, const struct kdsm_recovery *recovery,
			      struct kdsm_member *report)
{
	bool busy;
	u64 word;
	int err;

	if (!queue->recovering && queue->round == recovery->round)
		return 1;
	spin_lock_bh(&queue->lock);
	busy = queue->busy;
	queue->frozen = true;
	spin_unlock_bh(&queue->lock);
	if (busy)
		return -EAGAIN;
	if (!queue->recovering) {
		err = kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word);
		if (err)
			return -EAGAIN;
		/*
		 * That nobody is outstanding is not enough: one may wait for the answer of a
		 * dead one that it handed over to. That nobody ever queued is; or tickets
		 * have just wrapped.
		 */
		if (!word && !recovery->idle) {
			spin_lock_bh(&queue->together);
			spin_lock_bh(&queue->lock);
			queue->frozen = false;
			spin_unlock_bh(&queue->lock);
			kdsm_queue_meet_children(queue);
			spin_unlock_bh(&queue->together);
			return 1;
		}
	}
	err = kdsm_queue_freeze(queue, queue->epoch + (!queue->recovering || queue->resuming),
				report);
	if (err)
		return -EAGAIN;
	queue->recovering = true;
	queue->resuming = false;
	return 0;
}

/* One node. -EAGAIN, -EHOSTDOWN: as kdsm_queue_recover(). */
static int kdsm_recover_ask(struct kdsm_queue *queue, unsigned int node,
			    struct kdsm_member *member)
{
	struct kdsm_wire_lock_report reply;
	unsigned int length = sizeof(reply);
	struct kdsm_wire_lock wire;
	int err;

	memset(member, 0, sizeof(*member));
	member->to = KDSM_NOBODY;
	member->state = KDSM_QUEUE_NONE;
	kdsm_queue_name(queue, &wire, 0);
	queue->stats.messages++;
	err = kdsm_message(queue->fabric, node, KDSM_MESSAGE_LOCK_FREEZE, &wire, sizeof(wire),
			   &reply, &length);
	if (!kdsm_message_was_heard(err)) {
		/* Whatever it had posted has landed or never will. */
		member->away = kdsm_fabric_is_away(queue->fabric, node);
		return member->away ? 0 : -EHOSTDOWN;
	}
	if (err == -ENOENT || err == -EINVAL) {
		/* It came up anew, or has never heard of the lock. */
		member->away = true;
		return 0;
	}
	if (err == -ESTALE) {
		/* It has resumed already: all are asked again. */
		queue->resuming = true;
		return -EAGAIN;
	}
	if (err)
		return -EAGAIN;
	member->state = le16_to_cpu(reply.state);
	member->to = le16_to_cpu(reply.to);
	member->ticket = le32_to_cpu(reply.ticket);
	member->flags = le32_to_cpu(reply.flags) & (KDSM_BATON_DEAD | KDSM_BATON_LOST);
	if (length != sizeof(reply) || member->state > KDSM_QUEUE_LEAVING ||
	    member->state == KDSM_QUEUE_ENTERING || member->ticket > KDSM_TICKET_MASK ||
	    (member->to != KDSM_NOBODY && member->to >= queue->nodes)) {
		member->state = KDSM_QUEUE_NONE;
		member->to = KDSM_NOBODY;
	}
	return 0;
}

/* ---- the home: deciding ---- */

/* LEAVING: may somebody have it who is dead, or nobody? -EAGAIN: it will say. */
static int kdsm_recover_is_gone(const struct kdsm_recovery *recovery, unsigned int node)
{
	const struct kdsm_member *member = &recovery->nodes[node];

	if (member->state != KDSM_QUEUE_LEAVING || member->to == KDSM_NOBODY)
		return 0;
	return member->to == node || recovery->nodes[member->to].away ? 1 : -EAGAIN;
}

/* Into the order of tickets: the oldest, of those before tail, first. */
static void kdsm_recover_add(struct kdsm_recovery *recovery, unsigned int count, u32 tail,
			     unsigned int node)
{
	u32 age = kdsm_ticket_distance(recovery->nodes[node].ticket, tail);
	u16 *order = recovery->order;

	for (; count && kdsm_ticket_distance(recovery->nodes[order[count - 1]].ticket, tail) < age;
	     count--)
		order[count] = order[count - 1];
	order[count] = node;
}

/* Who is what from now on, by the word as it is. How many are in the queue. */
static int kdsm_recover_decide(struct kdsm_queue *queue, struct kdsm_recovery *recovery, u64 word)
{
	struct kdsm_member *nodes = recovery->nodes, *member;
	u32 tail = kdsm_word_tail(word), flags = KDSM_BATON_DEAD;
	unsigned int node, count = 0, i, holder = KDSM_NOBODY;
	int gone;

	for (node = 0; node < queue->nodes; node++) {
		member = &nodes[node];
		gone = kdsm_recover_is_gone(recovery, node);
		if (gone < 0)
			return gone;
		if (gone)
			flags |= member->flags & KDSM_BATON_LOST;
		else if (member->state == KDSM_QUEUE_HELD || member->state == KDSM_QUEUE_LEAVING)
			holder = node;
		else if (member->state == KDSM_QUEUE_WAITING)
			kdsm_recover_add(recovery, count++, tail, node);
	}
	/* The last may have left while others were asked. */
	if (!kdsm_word_count(word)) {
		count = 0;
		holder = KDSM_NOBODY;
	} else if (holder != KDSM_NOBODY || !count) {
		memmove(&recovery->order[1], recovery->order, count++ * sizeof(*recovery->order));
		recovery->order[0] = holder != KDSM_NOBODY ? holder : queue->node;
	}
	for (node = 0; node < queue->nodes; node++) {
		nodes[node].state = KDSM_QUEUE_NONE;
		nodes[node].next = KDSM_NOBODY;
		nodes[node].flags = 0;
	}
	for (i = 0; i < count; i++) {
		member = &nodes[recovery->order[i]];
		member->state = i ? KDSM_QUEUE_WAITING : KDSM_QUEUE_HELD;
		member->ticket = (tail + i) & KDSM_TICKET_MASK;
		member->next = i + 1 < count ? recovery->order[i + 1] : KDSM_NOBODY;
	}
	if (count && holder == KDSM_NOBODY)
		nodes[recovery->order[0]].flags = flags;
	return count;
}

/* ---- the home: writing ---- */

static u64 kdsm_recover_word(const struct kdsm_queue *queue,
			     const struct kdsm_recovery *recovery, unsigned int count, u64 word)
{
	u64 tail = (kdsm_word_tail(word) + count) & KDSM_TICKET_MASK;
	unsigned int i;
	u32 sum = 0;

	for (i = 0; i < count; i++)
		sum += recovery->order[i] + 1;
	return tail * KDSM_WORD_TAIL + count * KDSM_WORD_COUNT + sum;
}

static int kdsm_recover_tell(struct kdsm_queue *queue, unsigned int node,
			     const struct kdsm_member *member)
{
	struct kdsm_wire_lock_resume wire;
	int err;

	kdsm_queue_name(queue, &wire.lock, member->ticket);
	wire.state = cpu_to_le16(member->state);
	wire.next = cpu_to_le16(member->next);
	wire.flags = cpu_to_le32(member->flags);
	err = kdsm_queue_send(queue, node, KDSM_MESSAGE_LOCK_RESUME, &wire, sizeof(wire), NULL);
	if (!kdsm_message_was_heard(err))
		return -EHOSTDOWN;
	/* What makes no sense to it, or is not known to it any more, it has to bear. */
	return err == -EBUSY || err == -EAGAIN ? -EAGAIN : 0;
}

int kdsm_queue_recover(struct kdsm_queue *queue, struct kdsm_recovery *recovery)
{
	struct kdsm_member *nodes = recovery->nodes;
	unsigned int node;
	u64 word, wanted, old;
	bool again = false;
	int count, err;

	err = kdsm_recover_begin(queue, recovery, &nodes[queue->node]);
	if (err)
		return min(err, 0);
	for (node = 0; node < queue->nodes; node++) {
		if (node == queue->node)
			continue;
		err = kdsm_recover_ask(queue, node, &nodes[node]);
		recovery->node = node;
		if (err == -EHOSTDOWN)
			return err;
		again |= err != 0;
	}
	if (again || kdsm_queue_atomic(queue, KDSM_OP_FAA, 0, 0, 0, &word))
		return -EAGAIN;
	count = kdsm_recover_decide(queue, recovery, word);
	if (count < 0)
		return count;
	wanted = count ? kdsm_recover_word(queue, recovery, count, word) : word;
	err = kdsm_queue_atomic(queue, KDSM_OP_CAS, 0, wanted, word, &old);
	if (err || old != word)
		return -EAGAIN;
	queue->resuming = true;
	for (node = 0; node < queue->nodes; node++) {
		if (node == queue->node || nodes[node].away)
			continue;
		err = kdsm_recover_tell(queue, node, &nodes[node]);
		recovery->node = node;
		if (err)
			return err;
	}
	err = kdsm_queue_resume(queue, queue->epoch, &nodes[queue->node]);
	if (err == -EBUSY)
		return -EAGAIN;
	queue->recovering = false;
	queue->resuming = false;
	queue->round = recovery->round;
	return 0;
}
