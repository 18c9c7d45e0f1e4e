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
 */
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "coherence.h"

/* A copy may be used until so much later than it was asked for, in timestamps. */
#define KDSM_LEASE		16
/* What a granted block may take to come: every holder in front has to be quick. */
#define KDSM_GRANT_TIMEOUT	(60 * HZ)
/* A block that others take over is asked for again after, in microseconds. */
#define KDSM_RETRY_MIN		50
#define KDSM_RETRY_MAX		2000
#define KDSM_RETRY_TIMEOUT	(60 * HZ)

/* ---- asking ---- */

static int kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
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
	}
}

int kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	struct kdsm_wire_answer answer;
	int err;

	*from = READ_ONCE(block->owner);
	err = kdsm_chase(coherence, block, from, KDSM_MESSAGE_BLOCK_READ, &answer);
	if (err)
		return err;
	if (le16_to_cpu(answer.answer) != KDSM_ANSWER_YES)
		return -EIO;
	*wts = le64_to_cpu(answer.wts);
	*rts = le64_to_cpu(answer.rts);
	return 0;
}

static int kdsm_grant(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      unsigned int node, int status, u64 wts, u64 rts)
{
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.status = cpu_to_le32(status),
		.index = cpu_to_le64(block->index),
		.wts = cpu_to_le64(wts),
		.rts = cpu_to_le64(rts),
	};

	return kdsm_message(coherence->fabric, node, KDSM_MESSAGE_BLOCK_GRANT, &wire,
			    sizeof(wire), NULL, NULL);
}

/* It did not come. Who waits behind this node will not get it either. */
void kdsm_ownership_lost(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 int status)
{
	unsigned int next;

	mutex_lock(&block->lock);
	block->role = KDSM_ROLE_NONE;
	next = block->next;
	block->next = KDSM_NOBODY;
	mutex_unlock(&block->lock);
	if (next != KDSM_NOBODY)
		kdsm_grant(coherence, block, next, status, 0, 0);
}

int kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts)
{
	struct kdsm_wire_answer answer;
	unsigned int node;
	int err;

	/*
	 * Waiting before asking: as soon as the owner knows of this node, others
	 * may be sent here.
	 */
	mutex_lock(&block->lock);
	block->role = KDSM_ROLE_WAITING;
	node = block->owner;
	mutex_unlock(&block->lock);

	err = kdsm_chase(coherence, block, &node, KDSM_MESSAGE_BLOCK_OWN, &answer);
	if (!err && le16_to_cpu(answer.answer) == KDSM_ANSWER_YES) {
		mutex_lock(&block->lock);
		block->role = KDSM_ROLE_TAKING;
		block->from = node;
		block->wts = le64_to_cpu(answer.wts);
		block->rts = le64_to_cpu(answer.rts);
		mutex_unlock(&block->lock);
	} else if (!err) {
		if (!wait_event_timeout(coherence->wait,
					READ_ONCE(block->role) == KDSM_ROLE_TAKING,
					KDSM_GRANT_TIMEOUT))
			err = -ETIMEDOUT;
		else if (block->from == KDSM_NOBODY)
			err = -EIO;
	}
	if (err) {
		kdsm_ownership_lost(coherence, block, err);
		return err;
	}
	*from = block->from;
	*wts = block->wts;
	*rts = block->rts;
	return 0;
}

void kdsm_ownership_taken(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int next = block->next;
	u64 wts, rts;
	int err = 0;

	lockdep_assert_held(&block->lock);
	block->role = KDSM_ROLE_OWNER;
	block->next = KDSM_NOBODY;
	if (next != KDSM_NOBODY) {
		/* Links have led to it since it was queued. */
		err = kdsm_release_handover(coherence, block);
		if (!err)
			block->role = KDSM_ROLE_NONE;
		else
			block->owner = coherence->node;
	}
	wts = block->wts;
	rts = block->rts;
	mutex_unlock(&block->lock);
	if (next == KDSM_NOBODY)
		return;
	if (kdsm_grant(coherence, block, next, err, wts, rts) == -EINVAL && !err) {
		/* It has given up waiting, and is there to say so: nobody else owns it. */
		mutex_lock(&block->lock);
		block->role = KDSM_ROLE_OWNER;
		mutex_unlock(&block->lock);
	}
}

/* ---- being asked ---- */

static struct kdsm_block *kdsm_asked_block(struct kdsm_coherence *coherence,
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

static int kdsm_answer(struct kdsm_request *request, enum kdsm_answer what,
		       const struct kdsm_block *block)
{
	struct kdsm_wire_answer *answer = request->reply;

	*answer = (struct kdsm_wire_answer) {
		.answer = cpu_to_le16(what),
		.node = cpu_to_le16(what == KDSM_ANSWER_ASK ? block->owner : 0),
		.wts = cpu_to_le64(block->wts),
		.rts = cpu_to_le64(block->rts),
	};
	request->reply_length = sizeof(*answer);
	return 0;
}

int kdsm_coherence_serve_read(struct kdsm_coherence *coherence,
			      struct kdsm_request *request)
{
	const struct kdsm_wire_block *wire = request->data;
	struct kdsm_block *block = kdsm_asked_block(coherence, request);
	enum kdsm_answer what = KDSM_ANSWER_RETRY;
	u64 clock;
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	clock = le64_to_cpu(wire->clock);
	if (clock > KDSM_CLOCK_MAX)
		return -EINVAL;
	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_OWNER) {
		/*
		 * From here on the next write timestamp is above it, whoever
		 * gives it: the read timestamp goes with the ownership.
		 */
		what = KDSM_ANSWER_YES;
		block->rts = max(block->rts, max(block->wts, clock) + KDSM_LEASE);
	} else if (block->role == KDSM_ROLE_NONE) {
		what = KDSM_ANSWER_ASK;
	}
	err = kdsm_answer(request, what, block);
	mutex_unlock(&block->lock);
	return err;
}

int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request)
{
	struct kdsm_block *block = kdsm_asked_block(coherence, request);
	enum kdsm_answer what = KDSM_ANSWER_ASK;
	int err = 0;

	if (IS_ERR(block))
		return PTR_ERR(block);
	if (request->from == coherence->node)
		return -EINVAL;
	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_OWNER) {
		err = kdsm_release_handover(coherence, block);
		if (!err) {
			what = KDSM_ANSWER_YES;
			block->role = KDSM_ROLE_NONE;
			block->owner = request->from;
		}
	} else if (block->role != KDSM_ROLE_NONE && block->next == KDSM_NOBODY) {
		what = KDSM_ANSWER_QUEUED;
		block->next = request->from;
		block->owner = request->from;
	}
	if (!err)
		err = kdsm_answer(request, what, block);
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
	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_WAITING) {
		block->from = wire->status ? KDSM_NOBODY : request->from;
		block->wts = le64_to_cpu(wire->wts);
		block->rts = le64_to_cpu(wire->rts);
		WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
	} else {
		err = -EINVAL;
	}
	mutex_unlock(&block->lock);
	wake_up_all(&coherence->wait);
	return err;
}
