// SPDX-License-Identifier: GPL-2.0
/*
 * Asking for a block along the links of the nodes, to read the block or to own it.
 * ownership.c has the answers of the asked nodes, and the reasons why a node may be asked
 * again.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "internal.h"
#include "trace.h"

/* Timeout of a request for a block, with the turns of all nodes in front, in jiffies */
#define KDSM_OWN_TIMEOUT	(60 * HZ)
/* Interval at which a queued node asks along the links again, in jiffies */
#define KDSM_QUEUE_CHECK	HZ
/* Back-off before asking again for a block that other nodes take over, in us */
#define KDSM_RETRY_MIN		50
#define KDSM_RETRY_MAX		2000
/* Largest number of consecutive lost messages that a request survives */
#define KDSM_UNHEARD_MAX		3

/* As kdsm_block_ask(), with what kdsm_chase_known() returned. -EHOSTDOWN: the node is excluded. */
static int kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int node, enum kdsm_message_type type,
		    const struct kdsm_wire_handover *handover,
		    struct kdsm_wire_answer *answer)
{
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.index = cpu_to_le64(block->index),
		.clock = cpu_to_le64(READ_ONCE(coherence->clock)),
		.handover = *handover,
	};

	if (test_bit(node, coherence->excluded))
		return -EHOSTDOWN;
	return kdsm_block_ask(coherence, node, type, &wire, answer);
}

int kdsm_block_ask(struct kdsm_coherence *coherence, unsigned int node,
		   enum kdsm_message_type type, const struct kdsm_wire_block *wire,
		   struct kdsm_wire_answer *answer)
{
	unsigned int length = sizeof(*answer);
	int err;

	/* Fields that the peer does not send read as 0 */
	memset(answer, 0, sizeof(*answer));
	err = kdsm_message(coherence->fabric, node, type, wire,
			   kdsm_handover_cut(&wire->handover, sizeof(*wire)), answer, &length);
	if (err == -ESTALE)
		WRITE_ONCE(coherence->outcast, true);
	if (err)
		return err;
	if (!kdsm_wire_handover_fits(length, sizeof(*answer)) ||
	    le16_to_cpu(answer->answer) > KDSM_ANSWER_RETRY ||
	    le16_to_cpu(answer->node) >= coherence->nodes ||
	    !kdsm_handover_sane(coherence, &answer->handover))
		return -EIO;
	return 0;
}

/* State of a walk along the links */
struct kdsm_chase {
	enum kdsm_message_type type;
	unsigned int node;		/* node to ask next */
	/* The newest hand-over heard of, and the node that it was made to */
	struct kdsm_wire_handover handover;
	unsigned int owner;
	/* Policy release: a later owner than owner, which a notice named; or KDSM_NOBODY */
	unsigned int hint;
	bool is_ahead;			/* began with hint; asks along the links if that fails */
	unsigned int hops, lost, pause;
	unsigned long end;		/* timeout, in jiffies */
};

/* Start from this node's own link */
static void kdsm_chase_start(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_chase *chase)
{
	kdsm_block_learn(coherence, block);
	chase->node = block->owner;
	chase->owner = block->owner;
	chase->hint = block->hint;
	kdsm_handover_put(coherence, block, &chase->handover);
}

/*
 * Begin with the writer that the newest notice names: mostly it still owns the block, while links
 * lead through all nodes that owned the block since this node did.
 */
static void kdsm_chase_ahead(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_chase *chase)
{
	kdsm_chase_start(coherence, block, chase);
	if (chase->hint == KDSM_NOBODY || chase->hint == coherence->node)
		return;
	chase->node = chase->hint;
	chase->is_ahead = true;
}

/*
 * A request tells the asked node of the hand-over to it, if this node knows that, or, if no link
 * leads to the asked node, the number of the newest hand-over that this node has heard of.
 */
static struct kdsm_wire_handover kdsm_chase_known(const struct kdsm_chase *chase)
{
	const __le16 nobody = cpu_to_le16(KDSM_NOBODY);
	struct kdsm_wire_handover known = {};

	if (chase->node == chase->owner && chase->handover.from != nobody)
		return chase->handover;
	if (chase->is_ahead && chase->node == chase->hint && chase->node != chase->owner) {
		known.number = chase->handover.number;
		known.from = nobody;
	}
	return known;
}

/*
 * Go on to the node that the answer names. A link is followed only if it is newer than the
 * newest hand-over heard of; an answer without a number names the asked node's successor.
 * Returns -EAGAIN if the caller has to back off first.
 */
static int kdsm_chase_follow(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_chase *chase, const struct kdsm_wire_answer *answer)
{
	u64 number = le64_to_cpu(answer->handover.number);
	int err;

	chase->node = le16_to_cpu(answer->node);
	if (number > le64_to_cpu(chase->handover.number)) {
		chase->owner = chase->node;
		chase->handover = answer->handover;
	} else if (number || chase->node == coherence->node) {
		chase->node = chase->owner;
		return -EAGAIN;
	}
	if (chase->node != coherence->node)
		return 0;
	/* The hand-over is to this node, which has not received it yet */
	mutex_lock(&block->lock);
	err = kdsm_handover_get(coherence, block, &answer->handover);
	kdsm_chase_start(coherence, block, chase);
	mutex_unlock(&block->lock);
	return err ?: -EAGAIN;
}

/* The block is lost with the node. */
static void kdsm_chase_lost(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int node)
{
	if (READ_ONCE(block->lost))
		return;
	WRITE_ONCE(block->lost, true);
	trace_kdsm_event(KDSM_EVENT_BLOCK_LOST, node, coherence->id, "",
			 kdsm_block_offset(coherence, block->index));
}

/* Ask one node. Returns 0 with an answer, -EAGAIN to ask again after a back-off, or an error. */
static int kdsm_chase_step(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_chase *chase, struct kdsm_wire_answer *answer)
{
	const struct kdsm_wire_handover known = kdsm_chase_known(chase);
	unsigned int node;
	bool is_gone;
	int err;

	err = kdsm_ask(coherence, block, chase->node, chase->type, &known, answer);
	/* The node has no such region, so it came up again */
	is_gone = err == -ENOENT;
	if (is_gone)
		err = -EHOSTDOWN;
	/* Repeat a message that the node may not have handled */
	if (err && !kdsm_message_was_heard(err) && err != -EHOSTDOWN && err != -ENOMEM &&
	    ++chase->lost <= KDSM_UNHEARD_MAX)
		return -EAGAIN;
	/*
	 * The block need not be lost with an unreachable node that once had it: hint is the
	 * writer that a later notice named, and a node writes a block only after it became
	 * the owner. So hint knows a newer hand-over than this node's own link. Links met
	 * on the way may be newer still, so forget these: otherwise the chase would reject
	 * hint's link as too old. A chase that began with hint asks along its own links first.
	 *
	 * A node that lacks memory is alive and may be the owner, so its error ends the chase.
	 * hint may be waiting for this node; if the chase asked hint instead, the two nodes could
	 * wait for each other.
	 */
	if (err && err != -ENOMEM && err != -ENOBUFS && chase->hint != KDSM_NOBODY &&
	    chase->hint != coherence->node) {
		mutex_lock(&block->lock);
		node = chase->hint;
		kdsm_chase_start(coherence, block, chase);
		mutex_unlock(&block->lock);
		if (!chase->is_ahead) {
			chase->node = node;
			chase->hint = KDSM_NOBODY;
		}
		chase->is_ahead = false;
		chase->lost = 0;
		return -EAGAIN;
	}
	/* The asked node takes no hand-over from a node that it has excluded */
	if (err == -EHOSTDOWN &&
	    (is_gone || kdsm_is_gone(coherence, chase->node) ||
	     (known.number && known.from != cpu_to_le16(KDSM_NOBODY))))
		kdsm_chase_lost(coherence, block, chase->node);
	if (err)
		return err;
	chase->lost = 0;
	switch (le16_to_cpu(answer->answer)) {
	case KDSM_ANSWER_ASK:
		return kdsm_chase_follow(coherence, block, chase, answer);
	case KDSM_ANSWER_RETRY:
		/* To OWN: hint may wait for this node; see kdsm_own_refuses() */
		if (chase->type == KDSM_MESSAGE_BLOCK_OWN)
			chase->node = chase->owner;
		return -EAGAIN;
	}
	return 0;
}

/* Whether another message has brought what the chase is about */
static bool kdsm_chase_is_over(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block, const struct kdsm_chase *chase)
{
	if (chase->type == KDSM_MESSAGE_BLOCK_OWN)
		return READ_ONCE(block->role) != KDSM_ROLE_WAITING;
	return coherence->is_strict && READ_ONCE(block->reading) == KDSM_READING_LENT;
}

/*
 * Ask along the links until a node answers anything but ASK, or until another message has
 * brought what the chase is about.
 */
static int kdsm_chase(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct kdsm_chase *chase, struct kdsm_wire_answer *answer)
{
	int err;

	for (;;) {
		if (kdsm_chase_is_over(coherence, block, chase)) {
			/* If that ends before the caller sees it, an older answer does not count */
			answer->answer = cpu_to_le16(KDSM_ANSWER_RETRY);
			return 0;
		}
		/*
		 * Clear the flag before asking. Each of these makes the answer void, and sets the
		 * flag: LEND or GRANT with a status, LEND before its answer, INVALIDATE,
		 * kdsm_coherence_untied()
		 */
		WRITE_ONCE(block->again, false);
		err = kdsm_chase_step(coherence, block, chase, answer);
		if (err && err != -EAGAIN)
			return err;
		if (!err && le16_to_cpu(answer->answer) != KDSM_ANSWER_ASK)
			return 0;
		/*
		 * A walk takes more steps than twice the number of nodes only if the block keeps
		 * moving, or in a circle of successors that nodes have left and joined again. Back
		 * off, and leave the circle.
		 */
		if (!err && ++chase->hops % (2 * coherence->nodes))
			continue;
		if (!err)
			chase->node = chase->owner;
		if (time_after(jiffies, chase->end))
			return -ETIMEDOUT;
		usleep_range(chase->pause, 2 * chase->pause);
		chase->pause = min(2 * chase->pause, (unsigned int)KDSM_RETRY_MAX);
	}
}

int kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	struct kdsm_chase chase = {
		.type = KDSM_MESSAGE_BLOCK_READ,
		.pause = KDSM_RETRY_MIN,
		.end = jiffies + KDSM_OWN_TIMEOUT,
	};
	struct kdsm_wire_answer answer;
	int err;

	mutex_lock(&block->lock);
	kdsm_chase_ahead(coherence, block, &chase);
	mutex_unlock(&block->lock);
	err = kdsm_chase(coherence, block, &chase, &answer);
	if (err)
		return err;
	if (le16_to_cpu(answer.answer) != KDSM_ANSWER_YES ||
	    le16_to_cpu(answer.handover.from) == KDSM_NOBODY)
		return -EIO;
	mutex_lock(&block->lock);
	kdsm_ownership_link(coherence, block, chase.node, le64_to_cpu(answer.handover.number));
	mutex_unlock(&block->lock);
	*from = le16_to_cpu(answer.handover.from);
	*wts = le64_to_cpu(answer.handover.wts);
	*rts = le64_to_cpu(answer.handover.rts);
	return 0;
}

/*
 * Wait for a queued request until its turn, or until this node has to ask again: along the links,
 * because the node in front may wait for this node by now (ownership.c)
 */
static void kdsm_chase_wait(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_chase *chase)
{
	chase->pause = KDSM_RETRY_MIN;
	wait_event_timeout(coherence->wait, kdsm_chase_is_over(coherence, block, chase) ||
			   READ_ONCE(block->again), KDSM_QUEUE_CHECK);
	chase->node = chase->owner;
	chase->hint = READ_ONCE(block->hint);
}

/* Take up what the chase for a copy returned. -EAGAIN: ask again, after a wait if QUEUED. */
static int kdsm_borrowed(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 const struct kdsm_chase *chase, const struct kdsm_wire_answer *answer,
			 int err)
{
	lockdep_assert_held(&block->lock);
	if (block->reading == KDSM_READING_LENT)
		return 0;
	if (err)
		return err;
	if (le16_to_cpu(answer->answer) == KDSM_ANSWER_RETRY || block->again)
		return -EAGAIN;
	if (le16_to_cpu(answer->answer) == KDSM_ANSWER_QUEUED) {
		kdsm_ownership_link(coherence, block, le16_to_cpu(answer->node),
				    le64_to_cpu(answer->handover.number));
		block->wanted = max(block->wanted, le64_to_cpu(answer->handover.wts));
		block->lender = chase->node;
		WRITE_ONCE(block->reading, KDSM_READING_QUEUED);
		return -EAGAIN;
	}
	if (le16_to_cpu(answer->answer) != KDSM_ANSWER_YES ||
	    le16_to_cpu(answer->handover.from) == KDSM_NOBODY)
		return -EIO;
	kdsm_ownership_link(coherence, block, chase->node, le64_to_cpu(answer->handover.number));
	kdsm_ownership_lent(coherence, block, le16_to_cpu(answer->handover.from),
			    le64_to_cpu(answer->handover.wts));
	return block->reading == KDSM_READING_LENT ? 0 : -EAGAIN;
}

int kdsm_ownership_borrow(struct kdsm_coherence *coherence, struct kdsm_block *block,
			  unsigned int *from, u64 *wts)
{
	struct kdsm_chase chase = {
		.type = KDSM_MESSAGE_BLOCK_READ,
		.pause = KDSM_RETRY_MIN,
		.end = jiffies + KDSM_OWN_TIMEOUT,
	};
	struct kdsm_wire_answer answer;
	bool is_queued;
	int err;

	mutex_lock(&block->lock);
	kdsm_chase_start(coherence, block, &chase);
	for (;;) {
		mutex_unlock(&block->lock);
		err = kdsm_chase(coherence, block, &chase, &answer);
		mutex_lock(&block->lock);
		err = kdsm_borrowed(coherence, block, &chase, &answer, err);
		if (err != -EAGAIN)
			break;
		if (time_after(jiffies, chase.end)) {
			err = -ETIMEDOUT;
			break;
		}
		is_queued = block->reading == KDSM_READING_QUEUED;
		mutex_unlock(&block->lock);
		if (is_queued)
			kdsm_chase_wait(coherence, block, &chase);
		else
			usleep_range(KDSM_RETRY_MIN, 2 * KDSM_RETRY_MIN);
		mutex_lock(&block->lock);
		if (block->reading == KDSM_READING_QUEUED)
			WRITE_ONCE(block->reading, KDSM_READING_ASKING);
	}
	*from = block->lender;
	*wts = block->wts;
	mutex_unlock(&block->lock);
	return err;
}

/*
 * The asked node has just handed the block over, unless another message has brought a hand-over to
 * this node meanwhile
 */
static int kdsm_ownership_got(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      const struct kdsm_wire_answer *answer)
{
	bool is_waiting;
	int err;

	mutex_lock(&block->lock);
	is_waiting = block->role == KDSM_ROLE_WAITING;
	err = kdsm_handover_get(coherence, block, &answer->handover);
	if (!err && block->role == KDSM_ROLE_WAITING)
		err = -EIO;
	block->direct = !err && is_waiting && answer->owned;
	mutex_unlock(&block->lock);
	return err;
}

/* Wait until the block is handed over to this node */
static int kdsm_ownership_wait(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       struct kdsm_chase *chase)
{
	struct kdsm_wire_answer answer;
	int err;

	for (;;) {
		err = kdsm_chase(coherence, block, chase, &answer);
		if (err || READ_ONCE(block->role) != KDSM_ROLE_WAITING)
			return err;
		if (le16_to_cpu(answer.answer) == KDSM_ANSWER_YES)
			return kdsm_ownership_got(coherence, block, &answer);
		if (time_after(jiffies, chase->end))
			return -ETIMEDOUT;
		kdsm_chase_wait(coherence, block, chase);
	}
}

int kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	struct kdsm_chase chase = {
		.type = KDSM_MESSAGE_BLOCK_OWN,
		.pause = KDSM_RETRY_MIN,
		.end = jiffies + KDSM_OWN_TIMEOUT,
	};
	int err;

	mutex_lock(&block->lock);
	block->direct = false;
	if (block->role == KDSM_ROLE_GRANTED) {
		WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
		goto taking;
	}
	/*
	 * Become WAITING before asking: as soon as the owner knows this node, the owner may
	 * send other nodes here.
	 */
	WRITE_ONCE(block->role, KDSM_ROLE_WAITING);
	kdsm_chase_ahead(coherence, block, &chase);
	mutex_unlock(&block->lock);
	err = kdsm_ownership_wait(coherence, block, &chase);
	mutex_lock(&block->lock);
	if (block->role != KDSM_ROLE_TAKING) {
		err = err ?: -EIO;
		kdsm_ownership_leave(coherence, block, err);	/* drops the lock */
		return err;
	}
taking:
	*from = block->from;
	*wts = block->from_wts;
	*rts = block->from_rts;
	mutex_unlock(&block->lock);
	return 0;
}
