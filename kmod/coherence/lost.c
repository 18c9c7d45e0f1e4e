// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that are lost with a node: listing those that this node has met, and discarding them.
 *
 * A node that discards a block, the claimer, becomes its owner, with zeros as content. It needs the
 * consent of all nodes but the missing ones, which it cannot reach or which came up again. The
 * phases, each a message to every other node:
 *
 * LOOK		Does a node have the block, or is a hand-over to a living node under way? Then the
 *		block is not lost, and only the link of the claimer is corrected.
 * PREPARE	The node promises to take no later part in a claim with a lower ballot, and excludes
 *		the missing nodes from the region. It answers as to LOOK.
 * TAKE		If the ballot is still the one promised, the node links to the claimer by a
 *		hand-over number above all others of the block, so late hand-overs have no effect. A
 *		node that has the block refuses, and renumbers its ownership above the claim.
 * DONE		Policy release: the node drops its copy and its unreleased writes to the block.
 *
 * Why a block has one owner. Numbers only grow, so equal sums of the numbers that LOOK and PREPARE
 * found show that at one moment in between no living node had the block or was being given it. From
 * PREPARE on, living nodes take up no hand-over of a missing node. So only a claim can make an
 * owner, and each of two claimers needs all living nodes. Of two claims, the one with the higher
 * ballot ends the other at each node that it prepares, before or after that node accepted the
 * other. If a claim has made an owner, all nodes had accepted it; so a later PREPARE finds that
 * owner, and an earlier one has lost its promises. A claim changes the claimer last, and only if
 * the claimer itself has accepted no other.
 *
 * Each node of a network that fell apart may claim a block without the other. So a node excludes a
 * missing node from the region for good. A missing node that is alive learns that it was given up
 * before it exchanges anything else with the node that excluded it (kdsm_coherence_untied()). It
 * then asks, before its programs acquire or, policy strict, access anything, and if it was
 * excluded, it is an outcast: it has no part of the region any more. No node claims a block while
 * another living node can reach a missing one.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "internal.h"

/*
 * The number of a claim: in the bits from KDSM_CLAIM_SHIFT on, how often the block was claimed; in
 * the 10 bits below, the claimer. Hand-overs after the claim count on from there, in 38 bits.
 */
#define KDSM_CLAIM_SHIFT	48
#define KDSM_CLAIMER_SHIFT	38
/* Ballots have the claimer in their low bits, too */
#define KDSM_BALLOT_SHIFT	10
/* Timeout of a discard of one block, in jiffies, and back-off before it tries again, in us */
#define KDSM_CLAIM_TIMEOUT	(60 * HZ)
#define KDSM_CLAIM_PAUSE_MIN	200
#define KDSM_CLAIM_PAUSE_MAX	20000

/* ---- answering a claimer ---- */

static bool kdsm_is_in(const struct kdsm_wire_handover *wire, unsigned int node)
{
	return node < KDSM_MAX_NODES && le64_to_cpu(wire->readers[node / 64]) & 1ULL << node % 64;
}

static bool kdsm_is_missing(const struct kdsm_coherence *coherence,
			    const struct kdsm_wire_handover *claim, unsigned int node)
{
	return kdsm_is_in(claim, node) || test_bit(node, coherence->excluded);
}

/*
 * Whether this node misses the nodes that the claimer misses, and excludes them in PREPARE. It
 * excludes them before it looks: then a node that comes back meanwhile either is not away any more,
 * or finds that it was excluded. -EBUSY: not yet; the fabric gives up a node that does not answer.
 */
static int kdsm_missing_agree(struct kdsm_coherence *coherence, unsigned int from,
			      const struct kdsm_wire_block *wire)
{
	bool prepare = le32_to_cpu(wire->status) == KDSM_CLAIM_PREPARE;
	struct kdsm_wire_block probe = { .id = wire->id, .index = wire->index };
	unsigned int node;
	int err = 0;

	for (node = 0; node < coherence->nodes; node++) {
		if (!kdsm_is_in(&wire->handover, node) || test_bit(node, coherence->excluded))
			continue;
		if (node == from)
			return -EINVAL;
		/* The claimer will find that this node is back */
		if (node == coherence->node)
			return -EBUSY;
		if (prepare)
			set_bit(node, coherence->excluded);
		/* Pairs with the order of a greeting and the question of kdsm_doubts_ask() */
		smp_mb();
		if (kdsm_fabric_is_away(coherence->fabric, node))
			continue;
		clear_bit(node, coherence->excluded);
		kdsm_message_start(coherence->fabric, node, KDSM_MESSAGE_BLOCK_CLAIM, &probe,
				   kdsm_handover_cut(&probe.handover, sizeof(probe)));
		err = -EBUSY;
	}
	return err;
}

/* Whether the ballot counts: a new one in PREPARE, the one promised in TAKE. */
static bool kdsm_ballot_counts(struct kdsm_coherence *coherence,
			       const struct kdsm_wire_block *wire)
{
	u64 ballot = le64_to_cpu(wire->clock);
	bool counts = true;

	spin_lock(&coherence->lock);
	if (le32_to_cpu(wire->status) == KDSM_CLAIM_PREPARE) {
		counts = ballot > coherence->promised;
		coherence->promised = max(coherence->promised, ballot);
	} else if (le32_to_cpu(wire->status) == KDSM_CLAIM_TAKE) {
		counts = ballot == coherence->promised;
	}
	spin_unlock(&coherence->lock);
	return counts;
}

/* This node has the block, or was granted it and can get the content from a node that lives */
static bool kdsm_block_is_here(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block,
			       const struct kdsm_wire_handover *claim)
{
	return kdsm_block_is_owned(block) ||
	       (block->role == KDSM_ROLE_GRANTED &&
		!kdsm_is_missing(coherence, claim, block->from));
}

/* Accept a claim of node from. The claimer waits for the block itself, so it queues others. */
static void kdsm_claim_accept(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      unsigned int from, u64 number)
{
	block->handover = number;
	block->given = false;
	block->taken = true;
	block->hint = KDSM_NOBODY;
	WRITE_ONCE(block->owner, from);
	if (from == coherence->node)
		WRITE_ONCE(block->role, KDSM_ROLE_WAITING);
	else if (block->role == KDSM_ROLE_GRANTED)
		WRITE_ONCE(block->role, KDSM_ROLE_NONE);
	if (coherence->is_strict)
		kdsm_strict_forget(coherence, block);
}

/* The answer of this node to LOOK, PREPARE and TAKE of node from */
static void kdsm_claim_hear(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int from, const struct kdsm_wire_block *wire,
			    struct kdsm_wire_answer *answer)
{
	u64 number = le64_to_cpu(wire->handover.number), ts;
	bool counts = kdsm_ballot_counts(coherence, wire);
	struct kdsm_wire_handover *handover = &answer->handover;

	memset(answer, 0, sizeof(*answer));
	mutex_lock(&block->lock);
	counts &= number > block->handover;
	answer->answer = cpu_to_le16(KDSM_ANSWER_ASK);
	if (block->role == KDSM_ROLE_TAKING) {
		answer->answer = cpu_to_le16(KDSM_ANSWER_RETRY);
	} else if (kdsm_block_is_here(coherence, block, &wire->handover)) {
		answer->answer = cpu_to_le16(KDSM_ANSWER_YES);
		/* Nodes that accepted the claim take up only hand-overs with higher numbers */
		if (counts) {
			block->handover = number + 1;
			block->taken = true;
		}
	} else if (counts) {
		kdsm_claim_accept(coherence, block, from, number);
	}
	ts = max3(block->wts, block->wanted, block->rts);
	answer->node = cpu_to_le16(block->owner);
	handover->number = cpu_to_le64(block->handover);
	handover->from = cpu_to_le16(block->given || block->role == KDSM_ROLE_GRANTED ?
				     block->from : KDSM_NOBODY);
	mutex_unlock(&block->lock);
	spin_lock(&coherence->lock);
	handover->wts = cpu_to_le64(max(ts, coherence->clock));
	handover->rts = cpu_to_le64(coherence->promised);
	spin_unlock(&coherence->lock);
}

/* The claim has succeeded. -EAGAIN: ask again, because a task of this node uses the block. */
static int kdsm_claim_done(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   unsigned int from, u64 ts)
{
	int err = -EAGAIN;

	if (coherence->is_strict)
		return 0;
	/* A release waits for other nodes under the fence: a handler does not wait for that */
	if (!mutex_trylock(&coherence->fence))
		return -EAGAIN;
	mutex_lock(&block->lock);
	if (!block->busy) {
		kdsm_release_forget(coherence, block, from, ts);
		err = 0;
	}
	mutex_unlock(&block->lock);
	mutex_unlock(&coherence->fence);
	return err;
}

int kdsm_coherence_serve_claim(struct kdsm_coherence *coherence,
			       struct kdsm_request *request)
{
	struct kdsm_wire_answer *answer = request->reply;
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	u32 phase;
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	phase = le32_to_cpu(wire.status);
	if (phase > KDSM_CLAIM_DONE || !kdsm_handover_sane(coherence, &wire.handover) ||
	    le64_to_cpu(wire.handover.number) == KDSM_CLOCK_MAX ||
	    le64_to_cpu(wire.clock) > KDSM_CLOCK_MAX || request->from == coherence->node)
		err = -EINVAL;
	else if (phase == KDSM_CLAIM_DONE)
		err = kdsm_claim_done(coherence, block, request->from,
				      le64_to_cpu(wire.handover.wts));
	else if (phase == KDSM_CLAIM_TAKE)
		err = 0;
	else
		err = kdsm_missing_agree(coherence, request->from, &wire);
	if (!err && phase != KDSM_CLAIM_DONE) {
		kdsm_claim_hear(coherence, block, request->from, &wire, answer);
		request->reply_length = kdsm_handover_cut(&answer->handover, sizeof(*answer));
	}
	kdsm_block_put(coherence, block);
	return err;
}

/* ---- claiming ---- */

/* An attempt of this node to discard a block, and then those that follow it */
struct kdsm_claim {
	struct kdsm_coherence *coherence;
	struct kdsm_block *block;
	bool ask_missing;	/* LOOK asks missing nodes, too: one may be back, or be up again */
	DECLARE_BITMAP(away, KDSM_MAX_NODES);	/* cannot be reached, or are excluded */
	DECLARE_BITMAP(missing, KDSM_MAX_NODES);	/* these, and nodes without the region */
	/* The answers of the nodes in this phase: */
	u64 sum;		/* of the numbers of the newest hand-overs that they know */
	u64 newest;		/* the largest of these, */
	unsigned int owner;	/* the node that it was made to, */
	unsigned int maker;	/* the node that says so, and made it if given is set */
	bool given;		/* and whether its maker still repeats it, with content */
	unsigned int holder;	/* the node that has the block; KDSM_NOBODY: none */
	u64 held;		/* the hand-over to the holder */
	bool refused;		/* a node does not take part, or takes the block over */
	u64 ts, promised;	/* largest timestamp and ballot */
	/* Of the claim: */
	u64 number, ballot;
	bool discarded;		/* it has succeeded */
};

static void kdsm_claim_note(struct kdsm_claim *claim, unsigned int node,
			    const struct kdsm_wire_answer *answer, u64 number)
{
	u64 newest = le64_to_cpu(answer->handover.number);
	unsigned int from = le16_to_cpu(answer->handover.from);
	bool yes = le16_to_cpu(answer->answer) == KDSM_ANSWER_YES;
	bool is_gone = from != KDSM_NOBODY && test_bit(from, claim->missing);
	bool given = from != KDSM_NOBODY && !is_gone && !yes;

	claim->sum += newest;
	claim->ts = max(claim->ts, le64_to_cpu(answer->handover.wts));
	claim->promised = max(claim->promised, le64_to_cpu(answer->handover.rts));
	if (newest > claim->newest)
		claim->given = false;
	if (newest >= claim->newest) {
		claim->newest = newest;
		claim->owner = le16_to_cpu(answer->node);
		claim->maker = given || !claim->given ? node : claim->maker;
		claim->given |= given;
	}
	if (yes && !is_gone) {
		claim->holder = node;
		claim->held = newest;
	} else {
		claim->refused |= le16_to_cpu(answer->answer) == KDSM_ANSWER_RETRY ||
				  (number && newest != number);
	}
}

/* Ask one other node. -EHOSTDOWN: it was not heard. */
static int kdsm_claim_ask(struct kdsm_claim *claim, unsigned int node,
			  struct kdsm_wire_block *wire, u64 number)
{
	struct kdsm_coherence *coherence = claim->coherence;
	struct kdsm_wire_answer answer;
	int err;

	err = kdsm_block_ask(coherence, node, KDSM_MESSAGE_BLOCK_CLAIM, wire, &answer);
	if (!err)
		kdsm_claim_note(claim, node, &answer, number);
	return err && !kdsm_message_was_heard(err) && err != -ENOMEM ? -EHOSTDOWN : err;
}

/*
 * Find whether a node is missing, which answered err to LOOK: it has no part of the region any
 * more, was excluded before, or is away. *changed: it was not, or was, before. Returns another
 * error of a node that is not missing.
 */
static int kdsm_claim_count(struct kdsm_claim *claim, unsigned int node, int err, bool *changed)
{
	struct kdsm_coherence *coherence = claim->coherence;
	bool is_away, is_missing;

	is_away = err != -ENOENT && (test_bit(node, coherence->excluded) ||
				     (err == -EHOSTDOWN &&
				      kdsm_fabric_is_away(coherence->fabric, node)));
	is_missing = is_away || err == -ENOENT;
	*changed |= is_away != test_bit(node, claim->away) ||
		    is_missing != test_bit(node, claim->missing);
	__assign_bit(node, claim->away, is_away);
	__assign_bit(node, claim->missing, is_missing);
	return is_missing ? 0 : err;
}

/* Have all nodes that are not missing answer in a phase, this node first */
static int kdsm_claim_phase(struct kdsm_claim *claim, enum kdsm_claim_phase phase)
{
	struct kdsm_coherence *coherence = claim->coherence;
	u64 number = phase == KDSM_CLAIM_TAKE ? claim->number : 0;
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.status = cpu_to_le32(phase),
		.index = cpu_to_le64(claim->block->index),
		.clock = cpu_to_le64(phase == KDSM_CLAIM_LOOK ? 0 : claim->ballot),
		.handover.number = cpu_to_le64(number),
		.handover.from = cpu_to_le16(coherence->node),
	};
	const unsigned long *set = phase == KDSM_CLAIM_TAKE ? claim->missing : claim->away;
	struct kdsm_wire_answer answer;
	bool changed = false, busy = false;
	unsigned int i, node;
	int err;

	for_each_set_bit(i, set, coherence->nodes)
		wire.handover.readers[i / 64] |= cpu_to_le64(1ULL << i % 64);
	claim->sum = 0;
	claim->newest = 0;
	claim->given = false;
	claim->holder = KDSM_NOBODY;
	claim->refused = false;
	err = phase == KDSM_CLAIM_TAKE ? 0 : kdsm_missing_agree(coherence, coherence->node, &wire);
	if (err)
		return err;
	kdsm_claim_hear(coherence, claim->block, coherence->node, &wire, &answer);
	kdsm_claim_note(claim, coherence->node, &answer, number);
	for (i = 1; i < coherence->nodes; i++) {
		node = (coherence->node + i) % coherence->nodes;
		if ((phase != KDSM_CLAIM_LOOK || !claim->ask_missing) &&
		    test_bit(node, claim->missing))
			continue;
		err = kdsm_claim_ask(claim, node, &wire, number);
		if (phase == KDSM_CLAIM_LOOK)
			err = kdsm_claim_count(claim, node, err, &changed);
		/*
		 * The node can reach one that this node misses. That one may be an outcast, which
		 * only its own answer tells.
		 */
		busy |= err == -EBUSY;
		if (err && (err != -EBUSY || phase != KDSM_CLAIM_LOOK))
			return err;
	}
	if (busy)
		return -EBUSY;
	/* The set of missing nodes was another one when nodes were asked */
	return changed ? -EAGAIN : 0;
}

/* Whether a node has the block or is about to get it, by the newest hand-over */
static bool kdsm_claim_is_held(const struct kdsm_claim *claim)
{
	if (claim->holder != KDSM_NOBODY)
		return claim->held == claim->newest;
	return claim->given && !test_bit(claim->owner, claim->missing);
}

/* Whether the node that the link leads to has the block, which is the most frequent case */
static bool kdsm_claim_is_near(struct kdsm_claim *claim)
{
	struct kdsm_block *block = claim->block;
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(claim->coherence->id),
		.index = cpu_to_le64(block->index),
	};
	unsigned int node = READ_ONCE(block->owner);

	claim->holder = KDSM_NOBODY;
	claim->newest = 0;
	return node != claim->coherence->node && !test_bit(node, claim->missing) &&
	       !kdsm_claim_ask(claim, node, &wire, 0) && claim->holder == node;
}

/* All nodes have accepted the claim: the block is here, and zero. -EAGAIN: not any more. */
static int kdsm_claim_commit(struct kdsm_claim *claim)
{
	struct kdsm_coherence *coherence = claim->coherence;
	struct kdsm_block *block = claim->block;
	int err = -EAGAIN;

	mutex_lock(&block->lock);
	if (block->role == KDSM_ROLE_WAITING && block->handover == claim->number)
		err = coherence->policy->wipe(coherence, block, claim->ts);
	if (err) {
		mutex_unlock(&block->lock);
		return err;
	}
	kdsm_ownership_taken(coherence, block);		/* drops the lock */
	claim->discarded = true;
	return 0;
}

/*
 * The claim did not succeed: leave the queue. If a node was found to have the block, link to it.
 * Else nodes that this node had accept the claim are sent on to a missing node, so that they see an
 * error.
 */
static void kdsm_claim_abort(struct kdsm_claim *claim)
{
	struct kdsm_coherence *coherence = claim->coherence;
	struct kdsm_block *block = claim->block;
	unsigned int to = claim->holder;
	bool granted;

	if (to == KDSM_NOBODY)
		to = find_next_bit(claim->missing, coherence->nodes, 0);
	if (to == coherence->nodes)
		to = (coherence->node + 1) % coherence->nodes;
	mutex_lock(&block->lock);
	granted = block->role == KDSM_ROLE_TAKING;
	if (!granted && block->handover == claim->number && block->owner == coherence->node) {
		block->handover++;
		WRITE_ONCE(block->owner, to);
	}
	if (!granted && block->role == KDSM_ROLE_WAITING) {
		kdsm_ownership_leave(coherence, block, -EAGAIN);	/* drops the lock */
		return;
	}
	mutex_unlock(&block->lock);
	if (granted)
		kdsm_ownership_fail(coherence, block);
}

/* Wait before another attempt, each time for longer */
static void kdsm_claim_pause(unsigned int *pause)
{
	usleep_range(*pause, 2 * *pause);
	*pause = min(2 * *pause, (unsigned int)KDSM_CLAIM_PAUSE_MAX);
}

/* Have a node drop what it has of the former content, unless it has no part of the region */
static int kdsm_claim_tell_node(struct kdsm_coherence *coherence, unsigned int node,
				const struct kdsm_wire_block *wire, unsigned long end)
{
	unsigned int pause = KDSM_CLAIM_PAUSE_MIN;
	int err;

	for (;;) {
		err = kdsm_message(coherence->fabric, node, KDSM_MESSAGE_BLOCK_CLAIM, wire,
				   kdsm_handover_cut(&wire->handover, sizeof(*wire)), NULL, NULL);
		if (!err || err == -ENOENT || err == -ESTALE ||
		    kdsm_fabric_is_away(coherence->fabric, node))
			return 0;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		kdsm_claim_pause(&pause);
	}
}

/* Policy release: have the nodes drop what they have of the former content */
static int kdsm_claim_tell(struct kdsm_claim *claim, unsigned long end)
{
	struct kdsm_coherence *coherence = claim->coherence;
	const struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.status = cpu_to_le32(KDSM_CLAIM_DONE),
		.index = cpu_to_le64(claim->block->index),
		.handover.wts = cpu_to_le64(claim->ts),
		.handover.from = cpu_to_le16(coherence->node),
	};
	unsigned int node;
	int err = 0;

	if (coherence->is_strict)
		return 0;
	for (node = 0; node < coherence->nodes && !err; node++)
		if (node != coherence->node && !test_bit(node, claim->missing))
			err = kdsm_claim_tell_node(coherence, node, &wire, end);
	return err;
}

/*
 * The block is not lost: have the link of this node lead to the node that has it. If that node does
 * not know yet, the maker of the hand-over is asked when a node on the way is missing.
 */
static void kdsm_claim_link(struct kdsm_claim *claim)
{
	struct kdsm_block *block = claim->block;

	mutex_lock(&block->lock);
	block->lost = false;
	if (claim->holder != KDSM_NOBODY)
		kdsm_ownership_link(claim->coherence, block, claim->holder, claim->held);
	else
		block->hint = claim->maker;
	/* Without the missing nodes, the way from the first owner on may not be found again */
	block->taken = true;
	mutex_unlock(&block->lock);
}

/* Discard the block, which this node does not own. -EAGAIN, -EBUSY, -EHOSTDOWN: try again. */
static int kdsm_claim_run(struct kdsm_claim *claim)
{
	struct kdsm_coherence *coherence = claim->coherence;
	u64 sum, claims;
	int err;

	err = kdsm_claim_phase(claim, KDSM_CLAIM_LOOK);
	if (err)
		return err;
	if (claim->refused)
		return -EAGAIN;
	/* A holder with an older number has to be renumbered: another claimer gave up */
	if (kdsm_claim_is_held(claim)) {
		kdsm_claim_link(claim);
		return 0;
	}
	sum = claim->sum;
	claim->ballot = (((claim->promised >> KDSM_BALLOT_SHIFT) + 1) << KDSM_BALLOT_SHIFT) |
			coherence->node;
	err = kdsm_claim_phase(claim, KDSM_CLAIM_PREPARE);
	if (err)
		return err;
	if (claim->refused || claim->promised != claim->ballot || claim->sum != sum)
		return -EAGAIN;
	claims = (claim->newest >> KDSM_CLAIM_SHIFT) + 1;
	if (claims >= KDSM_CLOCK_MAX >> KDSM_CLAIM_SHIFT || claim->ts >= KDSM_CLOCK_MAX)
		return -EOVERFLOW;
	claim->number = (claims << KDSM_CLAIM_SHIFT) | ((u64)coherence->node << KDSM_CLAIMER_SHIFT);
	err = kdsm_claim_phase(claim, KDSM_CLAIM_TAKE);
	claim->ts++;
	if (!err && (claim->refused || claim->holder != KDSM_NOBODY))
		err = -EAGAIN;
	err = err ?: kdsm_claim_commit(claim);
	if (err)
		kdsm_claim_abort(claim);
	return err;
}

/*
 * Try once to discard the block. A release waits under the fence for a busy block, so the fence
 * comes first. No handler waits for it.
 */
static int kdsm_claim_try(struct kdsm_claim *claim)
{
	struct kdsm_coherence *coherence = claim->coherence;
	struct kdsm_block *block = claim->block;
	bool is_owned;
	int err = 0;

	if (!coherence->is_strict)
		mutex_lock(&coherence->fence);
	mutex_lock(&block->lock);
	kdsm_block_begin(coherence, block);
	is_owned = kdsm_block_is_owned(block);
	mutex_unlock(&block->lock);
	if (!is_owned)
		err = kdsm_claim_run(claim);
	mutex_lock(&block->lock);
	kdsm_block_end(coherence, block);
	mutex_unlock(&block->lock);
	if (!coherence->is_strict)
		mutex_unlock(&coherence->fence);
	return err;
}

/* Discard the block if it is lost */
static int kdsm_block_discard(struct kdsm_claim *claim, struct kdsm_block *block)
{
	unsigned long end = jiffies + KDSM_CLAIM_TIMEOUT;
	unsigned int pause = KDSM_CLAIM_PAUSE_MIN;
	int err;

	claim->block = block;
	claim->discarded = false;
	if (kdsm_claim_is_near(claim)) {
		WRITE_ONCE(block->lost, false);
		return 0;
	}
	for (;;) {
		err = kdsm_claim_try(claim);
		if ((err != -EAGAIN && err != -EBUSY && err != -EHOSTDOWN) ||
		    time_after(jiffies, end))
			break;
		/* To ask a silent node takes seconds */
		claim->ask_missing = err == -EBUSY;
		kdsm_claim_pause(&pause);
	}
	claim->ask_missing = false;
	if (claim->discarded)
		err = kdsm_claim_tell(claim, end);
	return err == -EAGAIN || err == -EBUSY ? -ETIMEDOUT : err;
}

/* Discard the block of this number if it is lost */
static int kdsm_claim_index(struct kdsm_claim *claim, u64 index)
{
	struct kdsm_coherence *coherence = claim->coherence;
	struct kdsm_block *block;
	int err;

	err = kdsm_doubts_ask(coherence, index);
	if (err)
		return err;
	block = kdsm_block_get(coherence, index);
	if (!block)
		return -ENOMEM;
	if (READ_ONCE(block->role) != KDSM_ROLE_OWNER)
		err = kdsm_block_discard(claim, block);
	kdsm_block_put(coherence, block);
	return err;
}

int kdsm_coherence_discard(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	struct kdsm_claim *claim = kzalloc(sizeof(*claim), GFP_KERNEL);
	u64 count = last - first + 1, at, i;
	struct kdsm_patience patience;
	int err = 0, result = 0;

	if (!claim)
		return -ENOMEM;
	claim->coherence = coherence;
	bitmap_copy(claim->away, coherence->excluded, coherence->nodes);
	bitmap_copy(claim->missing, coherence->excluded, coherence->nodes);
	/* Nodes that discard the same range begin at different places, and rarely meet */
	at = div_u64(count * coherence->node, coherence->nodes);
	for (i = 0; i < count && err != -ENOMEM && err != -ESTALE && err != -EINTR; i++) {
		patience = kdsm_patience_begin(coherence);
		do {
			err = signal_pending(current) ? -EINTR :
			      kdsm_claim_index(claim, first + at);
		} while (kdsm_evict_wait(coherence, &err, &patience));
		at = at + 1 < count ? at + 1 : 0;
		result = err == -EINTR ? err : result ?: err;
		cond_resched();
	}
	kfree(claim);
	return result;
}

/* ---- nodes that were excluded ---- */

void kdsm_coherence_untied(struct kdsm_coherence *coherence, unsigned int node)
{
	spin_lock(&coherence->lock);
	__set_bit(node, coherence->doubts);
	coherence->untied++;
	spin_unlock(&coherence->lock);
	if (coherence->is_strict)
		kdsm_strict_untied(coherence);
}

int kdsm_doubts_ask(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_wire_block wire = {
		.id = cpu_to_le32(coherence->id),
		.index = cpu_to_le64(index),
	};
	struct kdsm_wire_answer answer;
	unsigned int node, untied;
	int err;

	for_each_set_bit(node, coherence->doubts, coherence->nodes) {
		untied = READ_ONCE(coherence->untied);
		err = kdsm_block_ask(coherence, node, KDSM_MESSAGE_BLOCK_CLAIM, &wire, &answer);
		/* A node that this node gave up in turn says so when they meet again */
		if (err && !kdsm_message_was_heard(err) &&
		    !kdsm_fabric_is_away(coherence->fabric, node))
			return -EHOSTDOWN;
		spin_lock(&coherence->lock);
		if (coherence->untied == untied)
			__clear_bit(node, coherence->doubts);
		spin_unlock(&coherence->lock);
	}
	return READ_ONCE(coherence->outcast) ? -ESTALE : 0;
}

/* ---- listing ---- */

unsigned int kdsm_coherence_lost(struct kdsm_coherence *coherence, u64 *list, unsigned int room,
				 u64 *next)
{
	struct kdsm_glance glance;
	unsigned int count = 0;
	u64 i = kdsm_block_at(coherence, *next);

	for (; i < coherence->blocks && count < room &&
	     kdsm_block_glance(coherence, &i, coherence->blocks - 1, &glance); i++) {
		if (glance.lost)
			list[count++] = kdsm_block_offset(coherence, i);
		cond_resched();
	}
	*next = kdsm_block_offset(coherence, count == room ? i : coherence->blocks);
	return count;
}
