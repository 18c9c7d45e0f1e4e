// SPDX-License-Identifier: GPL-2.0
/*
 * Ownership of blocks: hand-overs, the queue of nodes that want a block, and the answers to
 * nodes that ask for a block. The asking side is in chase.c.
 *
 * A node that wants a block asks along links. The owner hands the block over at once. A
 * node that waits for the block itself, or has not finished taking the block over, notes
 * the asking node as its successor, if it has none yet, and grants the block to the
 * successor later. Every other node names a node to ask instead. So the nodes that want a
 * block form one queue, in which each node knows its successor (the queue lock with
 * probable owners of Endo's dissertation, 3.5.4; the queue is that of an MCS lock).
 *
 * Hand-overs of a block are numbered. A node's link leads to the node that got the block by
 * the newest hand-over known to this node. That other node knows a newer hand-over, or has
 * the block. So links alone form no cycle, and they end at the node that has the block. A
 * node with a successor names the successor instead of its link, and a successor is only a
 * promise: a successor that has given up waiting has an old link. Therefore an asking node
 * never follows a link that is older than the newest hand-over it has heard of. It goes
 * back and retries later.
 *
 * The queue has no cycle either, unless nodes leave it. An asking node that follows link n
 * reaches a node that had the block after hand-over n. If that node waits for the block again
 * now, it has heard of hand-over n + 1. So each node that was queued through a link is behind a
 * node that has heard of a newer hand-over. A node that was queued through successors is behind
 * a node that waits for the one that has the block.
 *
 * Policy release: an asking node begins with the writer that the newest notice names, which mostly
 * got the block later than the node that the link leads to. No link leads to the writer, so the
 * asking node says which hand-over it has heard of. If the writer waits for the block itself, and
 * has not heard of a newer hand-over, the writer refuses the asking node, which goes along its
 * links instead. So a node that was queued through a notice is behind a node that has heard of a
 * newer hand-over, too, or behind the one that has the block.
 *
 * A node leaves the queue because of an error, and may ask for the block again at once. Its
 * former predecessor has sent other nodes to it meanwhile. So one of these nodes may be queued
 * behind it although it is queued behind that node by now, and both wait, while other nodes are
 * sent from one to the other. Therefore a queued node asks along the links from time to time, and
 * when it is told to ask again. It never asks the node in front of it instead. A node that is sent
 * on too often asks along the links again, too. Of the nodes of a cycle, and those that are sent
 * round it, the one that has heard of the newest hand-over then asks the node that got the block
 * by this hand-over. That node has the block, or has heard of a newer hand-over, so it is outside
 * of the cycle.
 *
 * A message may be lost before or after the receiver handles it, and may be handled long
 * after the sender got an error for it. So a node repeats its answer when it is asked
 * again:
 *
 * - A node that is the successor already gets the answer that it is queued.
 * - A node that made the newest hand-over it knows of repeats the whole hand-over to every
 *   node that it sends on. If the receiver of the hand-over asks again, the receiver takes
 *   the hand-over up. Any other node asks the receiver next, and passes the hand-over on in
 *   that request. The receiver treats such a hand-over as if the request had come from the
 *   node that made the hand-over. The receiver may have given up, or may not know that a
 *   request of its own was still in flight.
 * - A repeated hand-over says the same as at first, and the content is still the same: no
 *   node has newer content before the receiver has taken the block over, and the content
 *   that handover() of the policies left stays unchanged until then.
 * - A queued node asks again from time to time.
 *
 * A number is used once, and only the node that the block went to takes it up, once. So the
 * block has one owner, whatever messages arrive late or twice.
 *
 * Policy strict: readers wait in the same queue. A node with a place in the queue, and without a
 * successor, notes a reader that asks in waiting; with a successor it names the successor. When the
 * node owns the block and its lease has ended, it lends copies to all noted readers together, and
 * then hands the block over. A successor that asked after the node got the block (late) is alone in
 * the queue, and the node still notes readers. Otherwise two writers would pass the block to each
 * other faster than a reader can follow.
 *
 * A node may be granted a block that no task there wants any more. Such a node holds the
 * place for the next node that asks, and tells that node where the content still is.
 *
 * A block is lost if its owner, or the node that it was handed over to, is gone for good.
 * No other node may ever take such a block, because the missing node could be alive and
 * could have written. A node that wants the block gets an error, at the latest after
 * KDSM_OWN_TIMEOUT (chase.c). A node that came up again has no part of the regions that
 * existed before (directory.c), so it does not answer with forgotten content.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "internal.h"

/* ---- hand-overs ---- */

void kdsm_handover_put(const struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       struct kdsm_wire_handover *wire)
{
	unsigned int i;

	lockdep_assert_held(&block->lock);
	*wire = (struct kdsm_wire_handover) {
		.number = cpu_to_le64(block->handover),
		.from = cpu_to_le16(KDSM_NOBODY),
	};
	if (!block->given)
		return;
	wire->wts = cpu_to_le64(block->from_wts);
	wire->rts = cpu_to_le64(block->from_rts);
	wire->from = cpu_to_le16(block->from);
	/* Policy strict: the set of readers is handed over with the ownership */
	if (!coherence->is_strict || !block->readers)
		return;
	for_each_set_bit(i, block->readers, coherence->nodes)
		wire->readers[i / 64] |= cpu_to_le64(1ULL << i % 64);
}

unsigned int kdsm_handover_cut(const struct kdsm_wire_handover *wire, unsigned int whole)
{
	unsigned int i;

	for (i = 0; i < KDSM_READERS_WORDS; i++)
		if (wire->readers[i])
			return whole;
	return whole - KDSM_READERS_SIZE;
}

bool kdsm_handover_sane(const struct kdsm_coherence *coherence,
			const struct kdsm_wire_handover *wire)
{
	unsigned int from = le16_to_cpu(wire->from);

	return le64_to_cpu(wire->number) <= KDSM_CLOCK_MAX &&
	       le64_to_cpu(wire->wts) <= KDSM_CLOCK_MAX &&
	       le64_to_cpu(wire->rts) <= KDSM_CLOCK_MAX &&
	       (from < coherence->nodes || from == KDSM_NOBODY);
}

int kdsm_handover_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      const struct kdsm_wire_handover *wire)
{
	unsigned int i;

	lockdep_assert_held(&block->lock);
	if (le64_to_cpu(wire->number) <= block->handover ||
	    le16_to_cpu(wire->from) == KDSM_NOBODY)
		return 0;
	/* Another node repeats the hand-over of an excluded node: the block is lost */
	if (kdsm_handover_sane(coherence, wire) &&
	    test_bit(le16_to_cpu(wire->from), coherence->excluded))
		return -EHOSTDOWN;
	if (!kdsm_handover_sane(coherence, wire) ||
	    (block->role != KDSM_ROLE_WAITING && block->role != KDSM_ROLE_NONE))
		return -EINVAL;
	if (coherence->is_strict) {
		/* A node that gave up waiting may have freed the set */
		if (kdsm_readers_alloc(coherence, block))
			return -ENOMEM;
		bitmap_zero(block->readers, coherence->nodes);
		for (i = 0; i < coherence->nodes; i++)
			if (le64_to_cpu(wire->readers[i / 64]) & 1ULL << i % 64)
				__set_bit(i, block->readers);
	}
	block->handover = le64_to_cpu(wire->number);
	block->given = false;
	block->taken = true;
	WRITE_ONCE(block->owner, coherence->node);
	block->hint = KDSM_NOBODY;
	block->from = le16_to_cpu(wire->from);
	block->from_wts = le64_to_cpu(wire->wts);
	block->from_rts = le64_to_cpu(wire->rts);
	WRITE_ONCE(block->role, block->role == KDSM_ROLE_WAITING ? KDSM_ROLE_TAKING :
								   KDSM_ROLE_GRANTED);
	wake_up_all(&coherence->wait);
	return 0;
}

/*
 * Hand over a block that this node owns or was granted. The caller has set from, from_wts and
 * from_rts, which say where the content is.
 */
static void kdsm_hand_over(struct kdsm_block *block, unsigned int to)
{
	lockdep_assert_held(&block->lock);
	WRITE_ONCE(block->role, KDSM_ROLE_NONE);
	WRITE_ONCE(block->owner, to);
	block->handover++;
	block->given = true;
}

/* Hand over a block that this node owns, if the policy allows it */
static int kdsm_owner_hand_over(struct kdsm_coherence *coherence, struct kdsm_block *block,
				unsigned int to)
{
	int err;

	err = coherence->policy->handover(coherence, block);
	if (err)
		return err;
	block->from = coherence->node;
	block->from_wts = block->wts;
	block->from_rts = block->rts;
	block->unread = block->wts;
	kdsm_hand_over(block, to);
	return 0;
}

/* ---- lending and granting to nodes that wait ---- */

/* Messages to the nodes that wait behind this node */
struct kdsm_turn {
	DECLARE_BITMAP(readers, KDSM_MAX_NODES);
	unsigned int next;
	struct kdsm_wire_block lend, grant;
};

static void kdsm_turn_init(struct kdsm_coherence *coherence, const struct kdsm_block *block,
			   struct kdsm_turn *turn)
{
	memset(turn, 0, sizeof(*turn));
	turn->next = KDSM_NOBODY;
	turn->lend.id = cpu_to_le32(coherence->id);
	turn->lend.index = cpu_to_le64(block->index);
	turn->grant = turn->lend;
}

/*
 * Fill in the lends for the waiting readers, and forget these readers. With status 0 the content
 * is in the frame of this node. Another status tells the readers to ask again.
 */
static void kdsm_turn_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_turn *turn, int status)
{
	if (!kdsm_readers_wait(coherence, block))
		return;
	bitmap_copy(turn->readers, block->waiting, coherence->nodes);
	bitmap_zero(block->waiting, coherence->nodes);
	turn->lend.status = cpu_to_le32(status);
	if (status)
		return;
	turn->lend.handover.number = cpu_to_le64(block->handover);
	turn->lend.handover.wts = cpu_to_le64(block->wts);
	turn->lend.handover.from = cpu_to_le16(coherence->node);
}

/*
 * Fill in a grant for the successor, if there is one, and forget the successor. With status
 * 0 the grant carries the hand-over that this node made. Another status tells the successor
 * that the block does not come, and that the successor has to ask again.
 */
static void kdsm_turn_grant(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_turn *turn, int status)
{
	turn->next = block->next;
	turn->grant.status = cpu_to_le32(status);
	block->next = KDSM_NOBODY;
	if (!status)
		kdsm_handover_put(coherence, block, &turn->grant.handover);
}

/*
 * Send the messages, and wait for no reply, so that a silent node delays no other. If a message is
 * lost, the waiting node asks again, and gets the hand-over or the copy as the answer.
 */
static void kdsm_turn_send(struct kdsm_coherence *coherence, const struct kdsm_turn *turn)
{
	kdsm_broadcast_start(coherence->fabric, turn->readers, KDSM_MESSAGE_BLOCK_LEND,
			     &turn->lend, kdsm_handover_cut(&turn->lend.handover,
							    sizeof(turn->lend)));
	if (turn->next != KDSM_NOBODY)
		kdsm_message_start(coherence->fabric, turn->next, KDSM_MESSAGE_BLOCK_GRANT,
				   &turn->grant, kdsm_handover_cut(&turn->grant.handover,
								   sizeof(turn->grant)));
}

/* Forget a successor that was excluded since it asked */
static void kdsm_successor_check(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (block->next != KDSM_NOBODY && test_bit(block->next, coherence->excluded))
		block->next = KDSM_NOBODY;
}

void kdsm_ownership_fail(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_turn turn;

	mutex_lock(&block->lock);
	kdsm_turn_init(coherence, block, &turn);
	/* A granted block is lent at once */
	kdsm_turn_lend(coherence, block, &turn, -EAGAIN);
	kdsm_successor_check(coherence, block);
	if (block->next == KDSM_NOBODY) {
		WRITE_ONCE(block->role, KDSM_ROLE_GRANTED);
	} else {
		kdsm_hand_over(block, block->next);
		kdsm_turn_grant(coherence, block, &turn, 0);
	}
	mutex_unlock(&block->lock);
	kdsm_turn_send(coherence, &turn);
}

void kdsm_ownership_leave(struct kdsm_coherence *coherence, struct kdsm_block *block, int err)
{
	struct kdsm_turn turn;

	lockdep_assert_held(&block->lock);
	WRITE_ONCE(block->role, KDSM_ROLE_NONE);
	kdsm_turn_init(coherence, block, &turn);
	kdsm_turn_lend(coherence, block, &turn, err);
	kdsm_turn_grant(coherence, block, &turn, err);
	mutex_unlock(&block->lock);
	kdsm_turn_send(coherence, &turn);
}

/* Let the work item lend the block and hand it over when the lease ends */
static void kdsm_ownership_owe(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	spin_lock(&coherence->lock);
	if (list_empty(&block->owed))
		list_add_tail(&block->owed, &coherence->owed);
	spin_unlock(&coherence->lock);
	queue_work(system_highpri_wq, &coherence->owed_work);
}

/* Lend the block to all waiting readers together. -EAGAIN: the lease has not ended. */
static int kdsm_owner_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_turn *turn)
{
	unsigned int reader;
	int err;

	if (!kdsm_readers_wait(coherence, block))
		return 0;
	for_each_set_bit(reader, block->waiting, coherence->nodes) {
		err = coherence->policy->lend(coherence, block, reader, 0, &block->wts,
					      &block->rts);
		if (err)
			return err;
	}
	kdsm_turn_lend(coherence, block, turn, 0);
	return 0;
}

/*
 * If this node owns the block, and the policy allows it, lend the block to the readers that wait,
 * and then hand it over to the successor, if there is one. The successor finds the readers in the
 * set that it gets with the block, and waits until each has had its copy for a lease. Caller holds
 * the block's lock, and sends *turn after it drops the lock.
 */
static void kdsm_ownership_pass(struct kdsm_coherence *coherence, struct kdsm_block *block,
				struct kdsm_turn *turn)
{
	int err;

	lockdep_assert_held(&block->lock);
	kdsm_turn_init(coherence, block, turn);
	kdsm_successor_check(coherence, block);
	if (!kdsm_block_is_owned(block))
		return;
	err = kdsm_owner_lend(coherence, block, turn);
	if (!err && block->next == KDSM_NOBODY)
		return;
	if (!err)
		err = kdsm_owner_hand_over(coherence, block, block->next);
	if (err == -ENOMEM)
		kdsm_evict_answer(coherence);
	if (err == -EAGAIN)
		kdsm_ownership_owe(coherence, block);
	else
		kdsm_turn_grant(coherence, block, turn, err);
}

void kdsm_ownership_taken(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_turn turn;

	lockdep_assert_held(&block->lock);
	WRITE_ONCE(block->role, KDSM_ROLE_OWNER);
	block->unread = false;
	kdsm_ownership_pass(coherence, block, &turn);
	mutex_unlock(&block->lock);
	kdsm_turn_send(coherence, &turn);
}

/* ---- blocks that nodes wait for until the end of a lease ---- */

/*
 * This work item handles the blocks in the order in which nodes asked for them, which is about
 * the order in which their leases end. The work item waits for leases only, so a block is late by
 * at most the lease of another block, and by KDSM_LATE (strict.c) more if that block is kept for a
 * program that does not run.
 */
void kdsm_ownership_owed_work(struct work_struct *work)
{
	struct kdsm_coherence *coherence =
		container_of(work, struct kdsm_coherence, owed_work);
	struct kdsm_turn turn;
	struct kdsm_block *block;
	u64 now, end;

	for (;;) {
		spin_lock(&coherence->lock);
		block = list_first_entry_or_null(&coherence->owed, struct kdsm_block, owed);
		if (block) {
			kdsm_block_hold(coherence, block);
			list_del_init(&block->owed);
		}
		spin_unlock(&coherence->lock);
		if (!block)
			return;
		now = ktime_get_ns();
		/* The end comes closer when the program runs that the block is kept for */
		end = min(READ_ONCE(block->lease_end),
			  now + max_t(u64, kdsm_strict_lease(coherence), KDSM_LEASE_DEFAULT));
		if (end > now)
			usleep_range((end - now) / NSEC_PER_USEC + 1,
				     (end - now) / NSEC_PER_USEC + 50);
		mutex_lock(&block->lock);
		kdsm_ownership_pass(coherence, block, &turn);
		mutex_unlock(&block->lock);
		kdsm_block_put(coherence, block);
		kdsm_turn_send(coherence, &turn);
	}
}

/* ---- answering other nodes ---- */

struct kdsm_block *kdsm_asked_block(struct kdsm_coherence *coherence,
				    const struct kdsm_request *request,
				    struct kdsm_wire_block *wire)
{
	struct kdsm_block *block;

	if (!kdsm_wire_handover_fits(request->length, sizeof(*wire)))
		return ERR_PTR(-EINVAL);
	/* An outcast has no part of the region any more */
	if (READ_ONCE(coherence->outcast))
		return ERR_PTR(-ENOENT);
	if (test_bit(request->from, coherence->excluded))
		return ERR_PTR(-ESTALE);
	/* The bytes behind the received ones are undefined */
	memset(wire, 0, sizeof(*wire));
	memcpy(wire, request->data, request->length);
	if (le64_to_cpu(wire->index) >= coherence->blocks)
		return ERR_PTR(-EINVAL);
	block = kdsm_block_get(coherence, le64_to_cpu(wire->index));
	return block ?: ERR_PTR(-ENOMEM);
}

int kdsm_answer(struct kdsm_request *request, enum kdsm_answer what, unsigned int node)
{
	struct kdsm_wire_answer *answer = request->reply;

	*answer = (struct kdsm_wire_answer) {
		.answer = cpu_to_le16(what),
		.node = cpu_to_le16(node),
	};
	request->reply_length = kdsm_handover_cut(&answer->handover, sizeof(*answer));
	return 0;
}

/* Answer with the newest hand-over: YES to OWN, or ASK the node that the block went to */
static int kdsm_answer_handover(struct kdsm_coherence *coherence, struct kdsm_block *block,
				struct kdsm_request *request, enum kdsm_answer what)
{
	struct kdsm_wire_answer *answer = request->reply;

	kdsm_answer(request, what, block->owner);
	kdsm_handover_put(coherence, block, &answer->handover);
	request->reply_length = kdsm_handover_cut(&answer->handover, sizeof(*answer));
	return 0;
}

/* Answer YES to READ */
static int kdsm_answer_content(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       struct kdsm_request *request, u64 clock, unsigned int from,
			       u64 *wts, u64 *rts)
{
	struct kdsm_wire_answer *answer = request->reply;
	int err;

	err = coherence->policy->lend(coherence, block, request->from, clock, wts, rts);
	if (err)
		return err;
	kdsm_answer(request, KDSM_ANSWER_YES, coherence->node);
	answer->handover.number = cpu_to_le64(block->handover);
	answer->handover.from = cpu_to_le16(from);
	answer->handover.wts = cpu_to_le64(*wts);
	answer->handover.rts = cpu_to_le64(*rts);
	return 0;
}

/*
 * The block is here or on its way: lend a copy, or note the asking node among the readers that
 * wait, or send it on to the end of the queue. Under policy release no set of readers exists.
 */
static int kdsm_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     struct kdsm_request *request, u64 clock)
{
	struct kdsm_wire_answer *answer = request->reply;
	int err = -EAGAIN;

	if (block->role == KDSM_ROLE_GRANTED)
		err = kdsm_answer_content(coherence, block, request, clock, block->from,
					  &block->from_wts, &block->from_rts);
	else if (block->role == KDSM_ROLE_OWNER && block->next == KDSM_NOBODY &&
		 !kdsm_readers_wait(coherence, block))
		err = kdsm_answer_content(coherence, block, request, clock, coherence->node,
					  &block->wts, &block->rts);
	if (err != -EAGAIN)
		return err;
	if (!coherence->is_strict || !block->waiting)
		return kdsm_answer(request, KDSM_ANSWER_RETRY, 0);
	if (!test_bit(request->from, block->waiting)) {
		if (block->next != KDSM_NOBODY && block->next != request->from && !block->late)
			return kdsm_answer(request, KDSM_ANSWER_ASK, block->next);
		__set_bit(request->from, block->waiting);
	}
	if (block->role == KDSM_ROLE_OWNER)
		kdsm_ownership_owe(coherence, block);
	/* By these the reader knows a loan that this node made before, and that has ended */
	kdsm_answer(request, KDSM_ANSWER_QUEUED, block->owner);
	answer->handover.number = cpu_to_le64(block->handover);
	answer->handover.wts = cpu_to_le64(block->wts);
	return 0;
}

int kdsm_coherence_serve_read(struct kdsm_coherence *coherence,
			      struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	u64 clock;
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	clock = le64_to_cpu(wire.clock);
	mutex_lock(&block->lock);
	err = clock > KDSM_CLOCK_MAX ? -EINVAL :
				       kdsm_handover_get(coherence, block, &wire.handover);
	if (err)
		goto unlock;
	if (block->role == KDSM_ROLE_NONE)
		err = kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_ASK);
	else
		err = kdsm_read(coherence, block, request, clock);
unlock:
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

/*
 * The block is here or on its way, and has no successor: hand it over to the asking node,
 * or make that node the successor
 */
static int kdsm_own(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    struct kdsm_request *request)
{
	struct kdsm_wire_answer *answer = request->reply;
	bool is_owned = kdsm_block_is_owned(block);
	int err = -EAGAIN;

	/* The memory for the twin, which the next owner would read, is about to go */
	if (kdsm_block_is_closed(coherence, block))
		return kdsm_answer(request, KDSM_ANSWER_RETRY, 0);
	/* Readers that wait came first */
	if (block->role == KDSM_ROLE_OWNER && !kdsm_readers_wait(coherence, block)) {
		err = kdsm_owner_hand_over(coherence, block, request->from);
	} else if (block->role == KDSM_ROLE_GRANTED) {
		kdsm_hand_over(block, request->from);
		err = 0;
	}
	if (!err) {
		kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_YES);
		answer->owned = cpu_to_le32(is_owned);
		return 0;
	}
	if (err == -ENOMEM)
		return kdsm_evict_answer(coherence);
	if (err != -EAGAIN)
		return err;
	block->next = request->from;
	block->late = block->role != KDSM_ROLE_WAITING;
	if (block->role == KDSM_ROLE_OWNER)
		kdsm_ownership_owe(coherence, block);
	return kdsm_answer(request, KDSM_ANSWER_QUEUED, 0);
}

/*
 * Whether to send the asking node back to its links, because no link led it here. This node waits
 * for the block, and has not heard of a newer hand-over than the asking node, so it may be queued
 * behind that node.
 */
static bool kdsm_own_refuses(const struct kdsm_block *block, const struct kdsm_wire_handover *wire)
{
	return block->role == KDSM_ROLE_WAITING && le16_to_cpu(wire->from) == KDSM_NOBODY &&
	       le64_to_cpu(wire->number) >= block->handover;
}

int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	mutex_lock(&block->lock);
	/* No node is led to itself; see kdsm_chase_follow() */
	err = request->from == coherence->node ? -EINVAL :
	      kdsm_handover_get(coherence, block, &wire.handover);
	if (err)
		goto unlock;
	if (block->next == request->from)
		err = kdsm_answer(request, KDSM_ANSWER_QUEUED, 0);
	else if (kdsm_own_refuses(block, &wire.handover))
		err = kdsm_answer(request, KDSM_ANSWER_RETRY, 0);
	else if (block->next != KDSM_NOBODY)
		err = kdsm_answer(request, KDSM_ANSWER_ASK, block->next);
	else if (block->role == KDSM_ROLE_NONE)
		err = kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_ASK);
	else
		err = kdsm_own(coherence, block, request);
unlock:
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

int kdsm_coherence_serve_grant(struct kdsm_coherence *coherence,
			       struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	int err = 0;

	if (IS_ERR(block))
		return PTR_ERR(block);
	mutex_lock(&block->lock);
	if (wire.status) {
		WRITE_ONCE(block->again, true);
		wake_up_all(&coherence->wait);
	} else {
		err = kdsm_handover_get(coherence, block, &wire.handover);
	}
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

void kdsm_ownership_link(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int node, u64 number)
{
	lockdep_assert_held(&block->lock);
	/* A newer hand-over exists, so the hand-over that this node made has arrived */
	if (block->role != KDSM_ROLE_NONE || node == coherence->node || number <= block->handover)
		return;
	WRITE_ONCE(block->owner, node);
	block->handover = number;
	block->given = false;
	block->hint = KDSM_NOBODY;
}

void kdsm_ownership_lent(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int from, u64 wts)
{
	lockdep_assert_held(&block->lock);
	if (wts < block->wanted || (block->reading != KDSM_READING_ASKING &&
				    block->reading != KDSM_READING_QUEUED))
		return;
	block->lender = from;
	block->wts = wts;
	WRITE_ONCE(block->reading, KDSM_READING_LENT);
	wake_up_all(&coherence->wait);
}

/*
 * Take up a loan from the node that queued this node, if that node made the loan after that, or
 * still counts it. Any other LEND is late.
 */
static void kdsm_loan_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
			  unsigned int lender, const struct kdsm_wire_handover *wire)
{
	bool is_late = le64_to_cpu(wire->number) < block->handover;

	lockdep_assert_held(&block->lock);
	kdsm_ownership_link(coherence, block, lender, le64_to_cpu(wire->number));
	/* The answer QUEUED may follow */
	if (block->reading == KDSM_READING_ASKING)
		WRITE_ONCE(block->again, true);
	else if (block->reading == KDSM_READING_QUEUED && lender == block->lender && !is_late)
		kdsm_ownership_lent(coherence, block, lender, le64_to_cpu(wire->wts));
}

int kdsm_coherence_serve_lend(struct kdsm_coherence *coherence,
			      struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	int err = 0;

	if (IS_ERR(block))
		return PTR_ERR(block);
	mutex_lock(&block->lock);
	if (!coherence->is_strict) {
		err = -EOPNOTSUPP;
	} else if (!kdsm_handover_sane(coherence, &wire.handover) ||
		   (!wire.status && le16_to_cpu(wire.handover.from) != request->from)) {
		err = -EINVAL;
	} else if (wire.status) {
		WRITE_ONCE(block->again, true);
		wake_up_all(&coherence->wait);
	} else {
		kdsm_loan_get(coherence, block, request->from, &wire.handover);
	}
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}
