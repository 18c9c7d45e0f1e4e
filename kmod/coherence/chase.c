// SPDX-License-Identifier: GPL-2.0
/*
 * Asking for a block: along the links of the nodes, to read it or to own it. What
 * the asked nodes do is in ownership.c, and why they may be asked again.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include "internal.h"

/* What a block may take to come: every holder in front has to be quick. */
#define KDSM_OWN_TIMEOUT	(60 * HZ)
/* Who is queued makes sure of it so often. */
#define KDSM_QUEUE_CHECK	HZ
/* A block that others take over is asked for again after, in microseconds. */
#define KDSM_RETRY_MIN		50
#define KDSM_RETRY_MAX		2000
/* Messages that may get lost in a row. */
#define KDSM_LOST_MAX		3

/* handover: one to the asked node, or NULL. */
static int kdsm_ask_with(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int node, enum kdsm_message_type type,
			 const struct kdsm_wire_handover *handover,
			 struct kdsm_wire_answer *answer)
{
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.index = cpu_to_le64(block->index),
		.clock = cpu_to_le64(READ_ONCE(coherence->clock)),
	};
	unsigned int length = sizeof(*answer);
	int err;

	if (handover)
		wire.handover = *handover;
	/* What is not sent back is 0. */
	memset(answer, 0, sizeof(*answer));
	err = kdsm_message(coherence->fabric, node, type, &wire,
			   kdsm_handover_cut(&wire.handover, sizeof(wire)), answer, &length);
	/* No such region there: it came up anew. */
	if (err == -ENOENT)
		return -EHOSTDOWN;
	if (err)
		return err;
	if (!kdsm_wire_handover_fits(length, sizeof(*answer)) ||
	    le16_to_cpu(answer->answer) > KDSM_ANSWER_RETRY ||
	    le16_to_cpu(answer->node) >= coherence->nodes ||
	    !kdsm_handover_sane(coherence, &answer->handover))
		return -EIO;
	return 0;
}

int kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
	     unsigned int node, enum kdsm_message_type type,
	     struct kdsm_wire_answer *answer)
{
	return kdsm_ask_with(coherence, block, node, type, NULL, answer);
}

/* On the way along the links. */
struct kdsm_chase {
	enum kdsm_message_type type;
	unsigned int node;		/* to be asked */
	/* The newest hand-over heard of, and to whom it was. */
	struct kdsm_wire_handover handover;
	unsigned int owner;
	unsigned int hint;		/* whom to ask if nobody is there */
	unsigned int hops, lost, pause;
	unsigned long end;		/* jiffies */
};

/* From the own link on. */
static void kdsm_chase_start(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_chase *chase)
{
	lockdep_assert_held(&block->lock);
	chase->node = block->owner;
	chase->owner = block->owner;
	chase->hint = block->hint;
	kdsm_handover_put(coherence, block, &chase->handover);
}

/*
 * It was sent on, by a link, if that is not older than what is known; or to who is
 * next at the asked node. -EAGAIN: not yet.
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
	/* It was to this very node, which has not heard of it. */
	mutex_lock(&block->lock);
	err = kdsm_handover_get(coherence, block, &answer->handover);
	kdsm_chase_start(coherence, block, chase);
	mutex_unlock(&block->lock);
	return err ?: -EAGAIN;
}

/* 0: answered. -EAGAIN: ask again. */
static int kdsm_chase_step(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_chase *chase, struct kdsm_wire_answer *answer)
{
	unsigned int node;
	int err;

	err = kdsm_ask_with(coherence, block, chase->node, chase->type,
			    chase->node == chase->owner ? &chase->handover : NULL, answer);
	/* Who may not have heard is asked again. */
	if (err && !kdsm_message_was_heard(err) && err != -EHOSTDOWN &&
	    ++chase->lost <= KDSM_LOST_MAX)
		return -EAGAIN;
	/*
	 * Not that the block is lost with a node that once had it: a later notice said
	 * who wrote the block, and nobody writes it who does not become its owner. So
	 * that node knows a newer hand-over than the link here; but maybe than no link
	 * on the way, so those are forgotten. But one that lacks memory is there, and may be
	 * the owner; who waits for this node would be asked instead, and wait for ever.
	 */
	if (err && err != -ENOMEM && chase->hint != KDSM_NOBODY && chase->hint != coherence->node) {
		mutex_lock(&block->lock);
		node = chase->hint;
		kdsm_chase_start(coherence, block, chase);
		mutex_unlock(&block->lock);
		chase->node = node;
		chase->hint = KDSM_NOBODY;
		chase->lost = 0;
		return -EAGAIN;
	}
	if (err)
		return err;
	chase->lost = 0;
	switch (le16_to_cpu(answer->answer)) {
	case KDSM_ANSWER_ASK:
		return kdsm_chase_follow(coherence, block, chase, answer);
	case KDSM_ANSWER_RETRY:
		return -EAGAIN;
	}
	return 0;
}

/*
 * Ask along the links until the answer is no other node; for ownership, until this
 * node is not waiting any more.
 */
static int kdsm_chase(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct kdsm_chase *chase, struct kdsm_wire_answer *answer)
{
	int err;

	for (;;) {
		if (chase->type == KDSM_MESSAGE_BLOCK_OWN &&
		    READ_ONCE(block->role) != KDSM_ROLE_WAITING)
			return 0;
		err = kdsm_chase_step(coherence, block, chase, answer);
		if (err && err != -EAGAIN)
			return err;
		if (!err && le16_to_cpu(answer->answer) != KDSM_ANSWER_ASK)
			return 0;
		/* Further than there are nodes only if it moves all the time. */
		if (!err && ++chase->hops % (2 * coherence->nodes))
			continue;
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
	kdsm_chase_start(coherence, block, &chase);
	mutex_unlock(&block->lock);
	err = kdsm_chase(coherence, block, &chase, &answer);
	if (err)
		return err;
	if (le16_to_cpu(answer.answer) != KDSM_ANSWER_YES ||
	    le16_to_cpu(answer.handover.from) == KDSM_NOBODY)
		return -EIO;
	mutex_lock(&block->lock);
	/* So whatever this node had handed over has arrived. */
	if (block->role == KDSM_ROLE_NONE && chase.node != coherence->node &&
	    le64_to_cpu(answer.handover.number) > block->handover) {
		block->owner = chase.node;
		block->handover = le64_to_cpu(answer.handover.number);
		block->given = false;
		block->hint = KDSM_NOBODY;
	}
	mutex_unlock(&block->lock);
	*from = le16_to_cpu(answer.handover.from);
	*wts = le64_to_cpu(answer.handover.wts);
	*rts = le64_to_cpu(answer.handover.rts);
	return 0;
}

/* Until the block is handed over to this node. */
static int kdsm_ownership_wait(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       struct kdsm_chase *chase)
{
	struct kdsm_wire_answer answer;
	int err;

	for (;;) {
		/* Before asking: what is said from then on is not missed. */
		WRITE_ONCE(block->again, false);
		err = kdsm_chase(coherence, block, chase, &answer);
		if (err || READ_ONCE(block->role) != KDSM_ROLE_WAITING)
			return err;
		if (le16_to_cpu(answer.answer) == KDSM_ANSWER_YES) {
			mutex_lock(&block->lock);
			err = kdsm_handover_get(coherence, block, &answer.handover);
			if (!err && block->role == KDSM_ROLE_WAITING)
				err = -EIO;
			mutex_unlock(&block->lock);
			return err;
		}
		if (time_after(jiffies, chase->end))
			return -ETIMEDOUT;
		chase->pause = KDSM_RETRY_MIN;
		wait_event_timeout(coherence->wait,
				   READ_ONCE(block->role) != KDSM_ROLE_WAITING ||
				   READ_ONCE(block->again), KDSM_QUEUE_CHECK);
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
	if (block->role == KDSM_ROLE_GRANTED) {
		block->role = KDSM_ROLE_TAKING;
		goto taking;
	}
	/*
	 * Waiting before asking: as soon as the owner knows of this node, others
	 * may be sent here.
	 */
	block->role = KDSM_ROLE_WAITING;
	kdsm_chase_start(coherence, block, &chase);
	mutex_unlock(&block->lock);
	err = kdsm_ownership_wait(coherence, block, &chase);
	mutex_lock(&block->lock);
	if (block->role != KDSM_ROLE_TAKING) {
		err = err ?: -EIO;
		kdsm_ownership_leave(coherence, block, err);	/* unlocks */
		return err;
	}
taking:
	*from = block->from;
	*wts = block->from_wts;
	*rts = block->from_rts;
	mutex_unlock(&block->lock);
	return 0;
}
