// SPDX-License-Identifier: GPL-2.0
/*
 * Who owns a block. Every node has a link: whom to ask. A node that wants a block
 * asks along the links. The owner hands it over at once; a node that waits for it
 * itself, or has not finished taking it over, notes who comes next, if nobody
 * does yet, and grants it later; everybody else names whom to ask instead. So
 * those who want a block form one queue over the nodes, each knowing its
 * successor, and the newest is where links lead to (the block lock with link
 * chasing of Endo's dissertation, 3.4.2; the queue is that of an MCS lock).
 *
 * Links lead forward: from a node to one that had the block, or was promised it,
 * after it. So there is no circle, and nobody is queued behind itself: who waits
 * was asked by the one in front of it only.
 *
 * What is granted to a node may not be wanted there any more, as it gave up
 * waiting, or could not bring the content. Such a node holds the place for who
 * asks next, and tells that where the content still is. One that is told that it
 * will not get the block leads back to whom it asked last. For a while there may
 * then be a circle, which ends with the grant that some node in it waits for.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "coherence.h"

/* What a granted block may take to come: every holder in front has to be quick. */
#define KDSM_GRANT_TIMEOUT	(60 * HZ)
/* A block that others take over is asked for again after, in microseconds. */
#define KDSM_RETRY_MIN		50
#define KDSM_RETRY_MAX		2000
#define KDSM_RETRY_TIMEOUT	(60 * HZ)

/* ---- asking ---- */

int kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
	     unsigned int node, enum kdsm_message_type type,
	     struct kdsm_wire_answer *answer)
{
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.index = cpu_to_le64(block->index),
		.clock = cpu_to_le64(READ_ONCE(coherence->clock)),
	};
	unsigned int length = sizeof(*answer);
	int err;

	err = kdsm_message(coherence->fabric, node, type, &wire, sizeof(wire), answer, &length);
	if (err)
		return err;
	if (length != sizeof(*answer) || le16_to_cpu(answer->answer) > KDSM_ANSWER_RETRY ||
	    le16_to_cpu(answer->node) >= coherence->nodes)
		return -EIO;
	return 0;
}

/*
 * Ask along the links from *node on, until the answer is no other node. Who is
 * being asked while it is about to hand over says so, and is asked again.
 */
static int kdsm_chase(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      unsigned int *node, enum kdsm_message_type type,
		      struct kdsm_wire_answer *answer)
{
	unsigned long end = jiffies + KDSM_RETRY_TIMEOUT;
	unsigned int pause = KDSM_RETRY_MIN, hops = 0;
	int err;

	for (;;) {
		err = kdsm_ask(coherence, block, *node, type, answer);
		if (err)
			return err;
		switch (le16_to_cpu(answer->answer)) {
		case KDSM_ANSWER_YES:
		case KDSM_ANSWER_QUEUED:
			return 0;
		case KDSM_ANSWER_ASK:
			*node = le16_to_cpu(answer->node);
			/* Further than there are nodes only if it moves all the time. */
			if (*node != coherence->node && ++hops % (2 * coherence->nodes))
				continue;
			break;
		}
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(pause, 2 * pause);
		pause = min(2 * pause, (unsigned int)KDSM_RETRY_MAX);
		if (type != KDSM_MESSAGE_BLOCK_OWN)
			continue;
		/* Granted at last to one that had given up waiting, and wants it again? */
		if (READ_ONCE(block->role) != KDSM_ROLE_WAITING) {
			answer->answer = cpu_to_le16(KDSM_ANSWER_QUEUED);
			return 0;
		}
		if (*node == coherence->node)
			*node = READ_ONCE(block->owner);
	}
}

int kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	unsigned int node = READ_ONCE(block->owner);
	struct kdsm_wire_answer answer;
	int err;

	err = kdsm_chase(coherence, block, &node, KDSM_MESSAGE_BLOCK_READ, &answer);
	if (err)
		return err;
	if (le16_to_cpu(answer.answer) != KDSM_ANSWER_YES)
		return -EIO;
	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_NONE && node != coherence->node)
		block->owner = node;
	mutex_unlock(&block->lock);
	*from = le16_to_cpu(answer.node);
	*wts = le64_to_cpu(answer.wts);
	*rts = le64_to_cpu(answer.rts);
	return 0;
}

/* ---- granting ---- */

/* Policy strict: the set of readers goes with the ownership. To the wire, ... */
static void kdsm_readers_put(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     void *readers)
{
	__le64 *wire = readers;
	unsigned int i;

	if (!block->readers)
		return;
	for_each_set_bit(i, block->readers, coherence->nodes)
		wire[i / 64] |= cpu_to_le64(1ULL << i % 64);
	bitmap_zero(block->readers, coherence->nodes);
}

/* ... and from it. -ENOMEM */
static int kdsm_readers_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const void *readers)
{
	const __le64 *wire = readers;
	unsigned int i;

	for (i = 0; i < coherence->nodes; i++) {
		if (!(le64_to_cpu(wire[i / 64]) & 1ULL << i % 64))
			continue;
		if (!block->readers)
			block->readers = bitmap_zalloc(coherence->nodes, GFP_KERNEL_ACCOUNT);
		if (!block->readers)
			return -ENOMEM;
		__set_bit(i, block->readers);
	}
	return 0;
}

struct kdsm_grant {
	unsigned int next;
	struct kdsm_wire_block wire;
};

/* With the block's lock: node from has the content. Or it will not come: status. */
static void kdsm_grant_fill(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_grant *grant, int status, unsigned int from,
			    u64 wts, u64 rts)
{
	*grant = (struct kdsm_grant) {
		.next = block->next,
		.wire = {
			.id = cpu_to_le32(coherence->id),
			.status = cpu_to_le32(status),
			.index = cpu_to_le64(block->index),
			.wts = cpu_to_le64(wts),
			.rts = cpu_to_le64(rts),
			.node = cpu_to_le32(from),
		},
	};
	block->next = KDSM_NOBODY;
	if (!status && grant->next != KDSM_NOBODY)
		kdsm_readers_put(coherence, block, grant->wire.readers);
}

/* To who was queued, if somebody was. A node that is gone takes along what it got. */
static void kdsm_grant_send(struct kdsm_coherence *coherence, const struct kdsm_grant *grant)
{
	if (grant->next != KDSM_NOBODY)
		kdsm_message(coherence->fabric, grant->next, KDSM_MESSAGE_BLOCK_GRANT,
			     &grant->wire, sizeof(grant->wire), NULL, NULL);
}

void kdsm_ownership_fail(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_grant grant;

	mutex_lock(&block->lock);
	kdsm_grant_fill(coherence, block, &grant, 0, block->from, block->from_wts,
			block->from_rts);
	if (grant.next == KDSM_NOBODY) {
		block->role = KDSM_ROLE_GRANTED;
		block->owner = coherence->node;
	} else {
		/* Links have led to it since it was queued. */
		block->role = KDSM_ROLE_NONE;
	}
	mutex_unlock(&block->lock);
	kdsm_grant_send(coherence, &grant);
}

/* It will not come: who waits behind this node will not get it either. */
static void kdsm_give_up(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int asked, int status)
{
	struct kdsm_grant grant;

	lockdep_assert_held(&block->lock);
	block->role = KDSM_ROLE_NONE;
	if (asked != coherence->node)
		block->owner = asked;
	kdsm_grant_fill(coherence, block, &grant, status, 0, 0, 0);
	mutex_unlock(&block->lock);
	kdsm_grant_send(coherence, &grant);
}

int kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	struct kdsm_wire_answer answer;
	unsigned int node;
	int err;

	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_GRANTED) {
		block->role = KDSM_ROLE_TAKING;
		goto granted;
	}
	/*
	 * Waiting before asking: as soon as the owner knows of this node, others
	 * may be sent here.
	 */
	block->role = KDSM_ROLE_WAITING;
	node = block->owner;
	mutex_unlock(&block->lock);

	err = kdsm_chase(coherence, block, &node, KDSM_MESSAGE_BLOCK_OWN, &answer);
	if (!err && le16_to_cpu(answer.answer) == KDSM_ANSWER_QUEUED &&
	    !wait_event_timeout(coherence->wait, READ_ONCE(block->role) != KDSM_ROLE_WAITING,
				KDSM_GRANT_TIMEOUT))
		err = -ETIMEDOUT;

	mutex_lock(&block->lock);
	if (!err && le16_to_cpu(answer.answer) == KDSM_ANSWER_YES) {
		block->from = le16_to_cpu(answer.node);
		block->from_wts = le64_to_cpu(answer.wts);
		block->from_rts = le64_to_cpu(answer.rts);
		block->role = KDSM_ROLE_TAKING;
		err = kdsm_readers_get(coherence, block, answer.readers);
	} else if (block->role != KDSM_ROLE_TAKING) {
		err = err ?: -EIO;
	} else {
		err = block->from == KDSM_NOBODY ? -EIO : 0;
	}
	if (err) {
		kdsm_give_up(coherence, block, node, err);	/* unlocks */
		return err;
	}
granted:
	*from = block->from;
	*wts = block->from_wts;
	*rts = block->from_rts;
	mutex_unlock(&block->lock);
	return 0;
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
	err = coherence->policy->handover(coherence, block);
	if (err == -EAGAIN) {
		kdsm_ownership_owe(coherence, block);
		return;
	}
	/* Links have led to the next since it was queued. */
	if (err)
		block->owner = coherence->node;
	else
		block->role = KDSM_ROLE_NONE;
	kdsm_grant_fill(coherence, block, grant, err, coherence->node, block->wts, block->rts);
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
				    const struct kdsm_request *request)
{
	const struct kdsm_wire_block *wire = request->data;
	struct kdsm_block *block;

	if (request->length != sizeof(*wire) ||
	    le64_to_cpu(wire->index) >= coherence->blocks)
		return ERR_PTR(-EINVAL);
	block = kdsm_block(coherence, le64_to_cpu(wire->index));
	return block ?: ERR_PTR(-ENOMEM);
}

int kdsm_answer(struct kdsm_request *request, enum kdsm_answer what,
		unsigned int node, u64 wts, u64 rts)
{
	struct kdsm_wire_answer *answer = request->reply;

	*answer = (struct kdsm_wire_answer) {
		.answer = cpu_to_le16(what),
		.node = cpu_to_le16(node),
		.wts = cpu_to_le64(wts),
		.rts = cpu_to_le64(rts),
	};
	request->reply_length = sizeof(*answer);
	return 0;
}

int kdsm_coherence_serve_read(struct kdsm_coherence *coherence,
			      struct kdsm_request *request)
{
	const struct kdsm_wire_block *wire = request->data;
	struct kdsm_block *block = kdsm_asked_block(coherence, request);
	u64 clock;
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	clock = le64_to_cpu(wire->clock);
	if (clock > KDSM_CLOCK_MAX)
		return -EINVAL;
	mutex_lock(&block->lock);
	switch (block->role) {
	case KDSM_ROLE_OWNER:
		err = coherence->policy->lend(coherence, block, request->from, clock, &block->wts,
					      &block->rts);
		if (!err)
			err = kdsm_answer(request, KDSM_ANSWER_YES, coherence->node,
					  block->wts, block->rts);
		break;
	case KDSM_ROLE_GRANTED:
		err = coherence->policy->lend(coherence, block, request->from, clock,
					      &block->from_wts, &block->from_rts);
		if (!err)
			err = kdsm_answer(request, KDSM_ANSWER_YES, block->from,
					  block->from_wts, block->from_rts);
		break;
	case KDSM_ROLE_NONE:
		err = kdsm_answer(request, KDSM_ANSWER_ASK, block->owner, 0, 0);
		break;
	default:
		err = -EAGAIN;
	}
	if (err == -EAGAIN)
		err = kdsm_answer(request, KDSM_ANSWER_RETRY, 0, 0, 0);
	mutex_unlock(&block->lock);
	return err;
}

/* The block is here, or comes, and nobody is next: it is for who asks. */
static int kdsm_own(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    struct kdsm_request *request)
{
	struct kdsm_wire_answer *answer = request->reply;
	int err = -EAGAIN;

	if (block->role == KDSM_ROLE_OWNER) {
		err = coherence->policy->handover(coherence, block);
		if (!err)
			kdsm_answer(request, KDSM_ANSWER_YES, coherence->node, block->wts,
				    block->rts);
	} else if (block->role == KDSM_ROLE_GRANTED) {
		err = kdsm_answer(request, KDSM_ANSWER_YES, block->from, block->from_wts,
				  block->from_rts);
	}
	if (err == -EAGAIN) {
		/* Not yet. */
		block->next = request->from;
		block->owner = request->from;
		if (block->role == KDSM_ROLE_OWNER)
			kdsm_ownership_owe(coherence, block);
		return kdsm_answer(request, KDSM_ANSWER_QUEUED, 0, 0, 0);
	}
	if (err)
		return err;
	kdsm_readers_put(coherence, block, answer->readers);
	block->role = KDSM_ROLE_NONE;
	block->owner = request->from;
	return 0;
}

int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request)
{
	struct kdsm_block *block = kdsm_asked_block(coherence, request);
	int err = 0;

	if (IS_ERR(block))
		return PTR_ERR(block);
	mutex_lock(&block->lock);
	if (request->from == coherence->node) {
		/* Led back here while some node in the circle waits for a grant. */
		err = kdsm_answer(request, KDSM_ANSWER_RETRY, 0, 0, 0);
	} else if (block->role == KDSM_ROLE_NONE || block->next != KDSM_NOBODY) {
		err = kdsm_answer(request, KDSM_ANSWER_ASK, block->owner, 0, 0);
	} else {
		err = kdsm_own(coherence, block, request);
	}
	mutex_unlock(&block->lock);
	return err;
}

int kdsm_coherence_serve_grant(struct kdsm_coherence *coherence,
			       struct kdsm_request *request)
{
	const struct kdsm_wire_block *wire = request->data;
	struct kdsm_block *block = kdsm_asked_block(coherence, request);
	int err = 0;

	if (IS_ERR(block))
		return PTR_ERR(block);
	if (le32_to_cpu(wire->node) >= coherence->nodes ||
	    le64_to_cpu(wire->wts) > KDSM_CLOCK_MAX || le64_to_cpu(wire->rts) > KDSM_CLOCK_MAX)
		return -EINVAL;
	mutex_lock(&block->lock);
	if (block->role != KDSM_ROLE_WAITING && block->role != KDSM_ROLE_NONE) {
		err = -EINVAL;
	} else if (wire->status) {
		block->from = KDSM_NOBODY;
		if (block->role == KDSM_ROLE_WAITING)
			WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
	} else {
		block->from = le32_to_cpu(wire->node);
		block->from_wts = le64_to_cpu(wire->wts);
		block->from_rts = le64_to_cpu(wire->rts);
		if (kdsm_readers_get(coherence, block, wire->readers))
			block->from = KDSM_NOBODY;
		if (block->role == KDSM_ROLE_NONE) {
			/* It came too late. */
			block->owner = coherence->node;
			block->role = KDSM_ROLE_GRANTED;
		} else {
			WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
		}
	}
	mutex_unlock(&block->lock);
	wake_up_all(&coherence->wait);
	return err;
}
