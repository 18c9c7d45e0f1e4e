// SPDX-License-Identifier: GPL-2.0
/*
 * Who owns a block. A node that wants a block asks along links. The owner hands it
 * over at once; a node that waits for it itself, or has not finished taking it
 * over, notes who comes next, if nobody does yet, and grants it later; everybody
 * else names whom to ask instead. So those who want a block form one queue over the
 * nodes, each knowing its successor (the block lock with link chasing of Endo's
 * dissertation, 3.4.2; the queue is that of an MCS lock).
 *
 * Hand-overs of a block are numbered. A node's link is to whom the block went by the
 * newest hand-over that the node knows of; the one it leads to knows a newer one, or
 * has the block. So links alone make no circle, and end at who has it. A node with a
 * successor leads there instead, which is a promise only. A successor that has given
 * up has an old link; who asks does not follow a link that is older than what it has
 * heard of already, but goes back, and waits. So nobody is queued behind one that is
 * queued behind it: along a link n it comes to a node that had the block after
 * hand-over n, and waits for it again now; so that one has heard of n + 1. Of those in
 * a circle the one that has heard of the newest could not have come to be in it.
 *
 * Messages may get lost, heard or not, and may be heard long after their sender was
 * told that they are lost. So what a node said it says again when asked again. Who
 * is next is told that it is next. Who made the last hand-over that it knows of says
 * all of it again to everybody that it sends on: to the node that it was made to, if
 * that asks again; or to another, who then asks that node, and tells it. There the
 * hand-over counts as if it had come from who made it; it may be that the node has
 * given up, or never knew that it was still asking. What is said then is what was
 * said first, and the content has not changed: nobody has newer content before
 * somebody has taken this over, and the policies' handover() leaves it as it is until
 * then. Who is queued asks now and then whether it still is. As a number is used
 * once, and only the node that the block went to can take it up, once, there is one
 * owner whatever is heard late, or twice.
 *
 * What is granted to a node may not be wanted there any more. Such a node holds the
 * place for who asks next, and tells that where the content still is.
 *
 * What is lost are blocks whose owner, or the node to which they were handed over,
 * is gone for good: nobody else may ever take them, as that node could be alive, and
 * have written. Who wants such a block gets an error, at the latest after
 * KDSM_OWN_TIMEOUT (chase.c). A node that came up anew has no part of the regions that were
 * there before (directory.c), so it does not answer with what it has forgotten.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/ktime.h>
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
	/* Policy strict: the set of readers goes with the ownership. */
	if (!block->readers)
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
	if (!kdsm_handover_sane(coherence, wire) ||
	    (block->role != KDSM_ROLE_WAITING && block->role != KDSM_ROLE_NONE))
		return -EINVAL;
	if (coherence->policy == &kdsm_policy_strict) {
		/* Who asks has room for it before; see kdsm_strict_write_miss(). */
		if (!block->readers)
			return -EINVAL;
		bitmap_zero(block->readers, coherence->nodes);
		for (i = 0; i < coherence->nodes; i++)
			if (le64_to_cpu(wire->readers[i / 64]) & 1ULL << i % 64)
				__set_bit(i, block->readers);
	}
	block->handover = le64_to_cpu(wire->number);
	block->given = false;
	block->owner = coherence->node;
	block->hint = KDSM_NOBODY;
	block->from = le16_to_cpu(wire->from);
	block->from_wts = le64_to_cpu(wire->wts);
	block->from_rts = le64_to_cpu(wire->rts);
	WRITE_ONCE(block->role, block->role == KDSM_ROLE_WAITING ? KDSM_ROLE_TAKING :
								   KDSM_ROLE_GRANTED);
	wake_up_all(&coherence->wait);
	return 0;
}

/* The block is this node's, and goes to another: from.. is where the content is. */
static void kdsm_hand_over(struct kdsm_block *block, unsigned int to)
{
	lockdep_assert_held(&block->lock);
	block->role = KDSM_ROLE_NONE;
	block->owner = to;
	block->handover++;
	block->given = true;
}

/* As its owner, if the policy lets it go. */
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
	kdsm_hand_over(block, to);
	return 0;
}

/* ---- granting ---- */

struct kdsm_grant {
	unsigned int next;
	struct kdsm_wire_block wire;
};

/*
 * To who was queued, if somebody was: the hand-over that was made. Or status says
 * that there is none, and that it may ask again, from here on.
 */
static void kdsm_grant_fill(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_grant *grant, int status)
{
	*grant = (struct kdsm_grant) {
		.next = block->next,
		.wire = {
			.id = cpu_to_le32(coherence->id),
			.status = cpu_to_le32(status),
			.index = cpu_to_le64(block->index),
		},
	};
	block->next = KDSM_NOBODY;
	if (!status)
		kdsm_handover_put(coherence, block, &grant->wire.handover);
}

/* If it does not arrive, who waits for it will ask for it. */
static void kdsm_grant_send(struct kdsm_coherence *coherence, const struct kdsm_grant *grant)
{
	if (grant->next != KDSM_NOBODY)
		kdsm_message(coherence->fabric, grant->next, KDSM_MESSAGE_BLOCK_GRANT,
			     &grant->wire,
			     kdsm_handover_cut(&grant->wire.handover, sizeof(grant->wire)),
			     NULL, NULL);
}

void kdsm_ownership_fail(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_grant grant = { .next = KDSM_NOBODY };

	mutex_lock(&block->lock);
	if (block->next == KDSM_NOBODY) {
		block->role = KDSM_ROLE_GRANTED;
	} else {
		kdsm_hand_over(block, block->next);
		kdsm_grant_fill(coherence, block, &grant, 0);
	}
	mutex_unlock(&block->lock);
	kdsm_grant_send(coherence, &grant);
}

void kdsm_ownership_leave(struct kdsm_coherence *coherence, struct kdsm_block *block, int err)
{
	struct kdsm_grant grant;

	lockdep_assert_held(&block->lock);
	block->role = KDSM_ROLE_NONE;
	kdsm_grant_fill(coherence, block, &grant, err);
	mutex_unlock(&block->lock);
	kdsm_grant_send(coherence, &grant);
}

/* Pass it on when the lease is over. */
static void kdsm_ownership_owe(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	spin_lock(&coherence->lock);
	if (list_empty(&block->owed))
		list_add_tail(&block->owed, &coherence->owed);
	spin_unlock(&coherence->lock);
	queue_work(system_unbound_wq, &coherence->owed_work);
}

/*
 * With the block's lock: hand the block over to the next, if there is one and the
 * policy lets it go; then there is a grant to be sent.
 */
static void kdsm_ownership_pass(struct kdsm_coherence *coherence, struct kdsm_block *block,
				struct kdsm_grant *grant)
{
	int err;

	lockdep_assert_held(&block->lock);
	grant->next = KDSM_NOBODY;
	if (!kdsm_block_is_owned(block) || block->next == KDSM_NOBODY)
		return;
	err = kdsm_owner_hand_over(coherence, block, block->next);
	if (err == -EAGAIN)
		kdsm_ownership_owe(coherence, block);
	else
		kdsm_grant_fill(coherence, block, grant, err);
}

void kdsm_ownership_taken(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_grant grant;

	lockdep_assert_held(&block->lock);
	block->role = KDSM_ROLE_OWNER;
	kdsm_ownership_pass(coherence, block, &grant);
	mutex_unlock(&block->lock);
	kdsm_grant_send(coherence, &grant);
}

/* ---- what waits for the end of a lease ---- */

/* In the order in which they were asked for, so about that of their leases. */
void kdsm_ownership_owed_work(struct work_struct *work)
{
	struct kdsm_coherence *coherence =
		container_of(work, struct kdsm_coherence, owed_work);
	struct kdsm_grant grant;
	struct kdsm_block *block;
	u64 now, end;

	for (;;) {
		spin_lock(&coherence->lock);
		block = list_first_entry_or_null(&coherence->owed, struct kdsm_block, owed);
		if (block)
			list_del_init(&block->owed);
		spin_unlock(&coherence->lock);
		if (!block)
			return;
		now = ktime_get_ns();
		end = READ_ONCE(block->lease_end);
		if (end > now)
			usleep_range((end - now) / NSEC_PER_USEC + 1,
				     (end - now) / NSEC_PER_USEC + 50);
		mutex_lock(&block->lock);
		kdsm_ownership_pass(coherence, block, &grant);
		mutex_unlock(&block->lock);
		kdsm_grant_send(coherence, &grant);
	}
}

/* ---- being asked ---- */

struct kdsm_block *kdsm_asked_block(struct kdsm_coherence *coherence,
				    const struct kdsm_request *request,
				    struct kdsm_wire_block *wire)
{
	struct kdsm_block *block;

	if (!kdsm_wire_handover_fits(request->length, sizeof(*wire)))
		return ERR_PTR(-EINVAL);
	/* Behind what came there may be anything. */
	memset(wire, 0, sizeof(*wire));
	memcpy(wire, request->data, request->length);
	if (le64_to_cpu(wire->index) >= coherence->blocks)
		return ERR_PTR(-EINVAL);
	block = kdsm_block(coherence, le64_to_cpu(wire->index));
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

/* Yes to OWN; or this node is not it: ask whom the block was handed to. */
static int kdsm_answer_handover(struct kdsm_coherence *coherence, struct kdsm_block *block,
				struct kdsm_request *request, enum kdsm_answer what)
{
	struct kdsm_wire_answer *answer = request->reply;

	kdsm_answer(request, what, block->owner);
	kdsm_handover_put(coherence, block, &answer->handover);
	request->reply_length = kdsm_handover_cut(&answer->handover, sizeof(*answer));
	return 0;
}

/* Yes to READ. */
static int kdsm_answer_content(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       struct kdsm_request *request, u64 clock, unsigned int from,
			       u64 *wts, u64 *rts)
{
	struct kdsm_wire_answer *answer = request->reply;
	int err;

	err = coherence->policy->lend(coherence, block, request->from, clock, wts, rts);
	if (err == -EAGAIN)
		return kdsm_answer(request, KDSM_ANSWER_RETRY, 0);
	if (err)
		return err;
	kdsm_answer(request, KDSM_ANSWER_YES, coherence->node);
	answer->handover.number = cpu_to_le64(block->handover);
	answer->handover.from = cpu_to_le16(from);
	answer->handover.wts = cpu_to_le64(*wts);
	answer->handover.rts = cpu_to_le64(*rts);
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
	if (clock > KDSM_CLOCK_MAX)
		return -EINVAL;
	mutex_lock(&block->lock);
	err = kdsm_handover_get(coherence, block, &wire.handover);
	if (err)
		goto unlock;
	switch (block->role) {
	case KDSM_ROLE_OWNER:
		err = kdsm_answer_content(coherence, block, request, clock, coherence->node,
					  &block->wts, &block->rts);
		break;
	case KDSM_ROLE_GRANTED:
		err = kdsm_answer_content(coherence, block, request, clock, block->from,
					  &block->from_wts, &block->from_rts);
		break;
	case KDSM_ROLE_NONE:
		err = kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_ASK);
		break;
	default:
		err = kdsm_answer(request, KDSM_ANSWER_RETRY, 0);
	}
unlock:
	mutex_unlock(&block->lock);
	return err;
}

/* The block is here, or comes, and nobody is next: it is for who asks. */
static int kdsm_own(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    struct kdsm_request *request)
{
	int err = -EAGAIN;

	if (block->role == KDSM_ROLE_OWNER) {
		err = kdsm_owner_hand_over(coherence, block, request->from);
	} else if (block->role == KDSM_ROLE_GRANTED) {
		kdsm_hand_over(block, request->from);
		err = 0;
	}
	if (!err)
		return kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_YES);
	if (err != -EAGAIN)
		return err;
	block->next = request->from;
	if (block->role == KDSM_ROLE_OWNER)
		kdsm_ownership_owe(coherence, block);
	return kdsm_answer(request, KDSM_ANSWER_QUEUED, 0);
}

int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	/* A node is never led to itself, see kdsm_chase_follow(). */
	if (request->from == coherence->node)
		return -EINVAL;
	mutex_lock(&block->lock);
	err = kdsm_handover_get(coherence, block, &wire.handover);
	if (err)
		goto unlock;
	if (block->next == request->from)
		err = kdsm_answer(request, KDSM_ANSWER_QUEUED, 0);
	else if (block->next != KDSM_NOBODY)
		err = kdsm_answer(request, KDSM_ANSWER_ASK, block->next);
	else if (block->role == KDSM_ROLE_NONE)
		err = kdsm_answer_handover(coherence, block, request, KDSM_ANSWER_ASK);
	else
		err = kdsm_own(coherence, block, request);
unlock:
	mutex_unlock(&block->lock);
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
	return err;
}
