// SPDX-License-Identifier: GPL-2.0
/*
 * Policy strict: a block has one writer or many readers, and all programs are sequentially
 * consistent. The protocol follows Ivy's dynamic distributed manager (Li and Hudak 1989).
 * The owner knows the nodes with copies. A node that wants to write becomes the owner,
 * takes over the set of readers and has the readers unmap their copies. Links lead to the
 * owner (ownership.c). As in Myrland's thesis (4.3), a node keeps a block that it got for a
 * lease, so that two nodes that compete for a block both make progress. Readers wait in the same
 * queue as writers, each at the node that was at its end, and are served together.
 *
 * The owner's copy is writable only while there are no readers. Why no two nodes disagree:
 * before a reader fetches content from the owner's frame, the owner unmaps the frame under the
 * block's lock, and from then on maps it only for reading. An owner makes the frame writable
 * again only after every reader has answered that its copy is gone or never arrived. A reader
 * that has been lent a copy answers after it has fetched the copy and kept it for a lease. A reader
 * that does not know of its loan yet notes the timestamp (wts) of the content to come, and refuses
 * older loans from then on. Each takeover for a write raises the timestamp.
 *
 * A LEND may arrive at any time later, also after a writer has struck the reader off. So a reader
 * takes up a LEND only from the node that queued its present request, and only if the LEND has at
 * least the hand-over number and wts of the answer QUEUED. Either that node made such a loan after
 * the answer, or it had not given the block away nor raised wts between the loan and the answer. In
 * both cases the reader is in the set of readers. A node that has been given up asks again: no
 * answer to an earlier request counts any more.
 *
 * A reader that died is struck off. A node that came up again has no copy. A node that this node
 * gave up (kdsm_fabric_is_away()) may only have been unreachable: it drops all copies before it
 * and this node exchange anything else (kdsm_coherence_untied()). Until then its programs may
 * read old content, so they are not sequentially consistent in two cases: another node that did
 * not give it up sends it newer content of another block, or both nodes gave each other up and
 * both write.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "internal.h"

/*
 * Interval between requests to readers whose leases have not ended, in us, and timeout of these
 * requests, in jiffies
 */
#define KDSM_INVALIDATE_PAUSE	50
#define KDSM_INVALIDATE_TIMEOUT	(60 * HZ)
/*
 * Time that a reader may hold a request back until its lease has ended, in ns, and shortest and
 * longest interval between looks at the lease, in us
 */
#define KDSM_KEEP_MAX		(8000 * NSEC_PER_USEC)
#define KDSM_KEEP_PAUSE		20
#define KDSM_KEEP_PAUSE_MAX	160
/* Interval between requests to a reader that cannot be reached, in us */
#define KDSM_DOWN_PAUSE		10000
/*
 * Longest time that a node keeps a block for a program that waits for it and does not run, in ns:
 * another program may keep the processor for a tick
 */
#define KDSM_LATE		(4000 * NSEC_PER_USEC)

/* ---- leases ---- */

/*
 * A reader that lost its copy asks the new owner one message later. So an owner keeps the block for
 * longer than that takes, or else the request would run after the block from node to node.
 */
u64 kdsm_strict_lease(const struct kdsm_coherence *coherence)
{
	u64 lease = READ_ONCE(coherence->lease);

	return lease ? max_t(u64, lease, min(READ_ONCE(coherence->fetch_time), KDSM_LATE)) : 0;
}

/* Fetch content, which is_kept (kdsm_block_kept()) or not, and learn how long that takes */
static int kdsm_strict_fetch(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     const struct kdsm_source *source, u64 wts, bool is_kept)
{
	u64 mean = READ_ONCE(coherence->fetch_time), since = ktime_get_ns(), took;
	int err;

	if (is_kept)
		err = kdsm_block_kept(coherence, block, source->memory, source->node, wts, NULL);
	else
		err = kdsm_block_content(coherence, block, source, wts, NULL);
	/* By time 0 nobody has written the block, and nothing is fetched */
	if (err || !wts)
		return err;
	took = min_t(u64, ktime_get_ns() - since, NSEC_PER_SEC);
	WRITE_ONCE(coherence->fetch_time, mean - mean / 8 + took / 8);
	return 0;
}

static bool kdsm_is_writer(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_TAKING || kdsm_block_is_owned(block);
}

/* A reader needs its copy for one access only: its next request reaches an owner in its lease */
static u64 kdsm_lease_time(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	return kdsm_is_writer(block) ? kdsm_strict_lease(coherence) : READ_ONCE(coherence->lease);
}

static void kdsm_lease_begin(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	WRITE_ONCE(block->lease_end, ktime_get_ns() + kdsm_lease_time(coherence, block));
}

/* The lease begins as soon as the program that waits for the block runs, or is late */
static void kdsm_lease_await(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	block->awaited = true;
	WRITE_ONCE(block->lease_end,
		   ktime_get_ns() + KDSM_LATE + kdsm_lease_time(coherence, block));
}

static bool kdsm_lease_is_over(const struct kdsm_block *block)
{
	return ktime_get_ns() >= block->lease_end;
}

/* ---- losing a block ---- */

static int kdsm_strict_handover(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (!kdsm_lease_is_over(block))
		return -EAGAIN;
	if (block->state != KDSM_BLOCK_INVALID)
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	kdsm_coherence_count(coherence, MIGRATIONS, 1);
	return 0;
}

int kdsm_readers_alloc(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (!block->readers)
		block->readers = bitmap_zalloc(coherence->nodes, GFP_KERNEL_ACCOUNT);
	if (!block->waiting)
		block->waiting = bitmap_zalloc(coherence->nodes, GFP_KERNEL_ACCOUNT);
	return block->readers && block->waiting ? 0 : -ENOMEM;
}

static int kdsm_strict_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int to, u64 clock, u64 *wts, u64 *rts)
{
	lockdep_assert_held(&block->lock);
	/*
	 * This node may also have been granted the block and have failed to fetch the
	 * content. Then the content stays unchanged where it is, and the set of readers
	 * stays with the block, until a node takes the block over. On -EAGAIN the sets exist.
	 */
	if (kdsm_readers_alloc(coherence, block))
		return -ENOMEM;
	if (kdsm_block_is_owned(block) && !kdsm_lease_is_over(block))
		return -EAGAIN;
	if (block->state == KDSM_BLOCK_WRITABLE)
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_READABLE);
	__set_bit(to, block->readers);
	return 0;
}

/*
 * Whether a loan for this node's queued request may be in flight when the writer asks for copies.
 * If so, the lender has lent after it queued the request. Then either the lender itself is the
 * writer, or the lender has handed the block over since, and the writer's hand-over is newer than
 * the newest one that this node knows. A late message of an earlier turn has neither. Caller holds
 * the block's lock.
 */
static bool kdsm_loan_may_come(const struct kdsm_block *block, unsigned int writer, u64 handover)
{
	return block->reading == KDSM_READING_QUEUED &&
	       (handover > block->handover ||
		(handover == block->handover && writer == block->lender));
}

/*
 * Node writer waits for this node before it writes content with timestamp wts. Until then the
 * frame of node from has the content before that. If the message is late, the writer no longer
 * waits. Return 0 if this node has no older copy; from then on it takes none. -EAGAIN: this node
 * still keeps an older copy. -EINVAL: this node is the writer.
 */
static int kdsm_copy_end(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int writer, unsigned int from, u64 handover, u64 wts)
{
	bool may_come = kdsm_loan_may_come(block, writer, handover);

	kdsm_ownership_link(coherence, block, writer, handover);
	if (kdsm_is_writer(block))
		return -EINVAL;
	if (wts <= block->wanted)
		return 0;
	/*
	 * INVALIDATE overtook LEND: the former owner has counted this node among the readers. If
	 * that is this node itself, it only remembers wts.
	 */
	if (may_come && from != coherence->node)
		kdsm_ownership_lent(coherence, block, from, wts - 1);
	if (block->reading == KDSM_READING_LENT)
		return -EAGAIN;
	if (block->state == KDSM_BLOCK_READABLE) {
		if (!kdsm_lease_is_over(block))
			return -EAGAIN;
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
		kdsm_coherence_count(coherence, INVALIDATIONS, 1);
	}
	/* The answer to the request in flight may be that a loan follows, which is too old now */
	if (block->reading == KDSM_READING_ASKING)
		WRITE_ONCE(block->again, true);
	block->wanted = wts;
	return 0;
}

/* Repeat kdsm_copy_end() while that returns -EAGAIN: most leases end soon */
static int kdsm_copy_end_wait(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      unsigned int writer, const struct kdsm_wire_handover *wire)
{
	u64 end = ktime_get_ns() + KDSM_KEEP_MAX;
	unsigned int pause = KDSM_KEEP_PAUSE;
	int err;

	for (;;) {
		mutex_lock(&block->lock);
		err = kdsm_copy_end(coherence, block, writer, le16_to_cpu(wire->from),
				    le64_to_cpu(wire->number), le64_to_cpu(wire->wts));
		mutex_unlock(&block->lock);
		/* The writer then sends no second request */
		if (err != -EAGAIN || ktime_get_ns() >= end)
			return err;
		usleep_range(pause, 2 * pause);
		pause = min(2 * pause, KDSM_KEEP_PAUSE_MAX);
	}
}

/* A node that is about to write asks this node to give up its copy */
int kdsm_coherence_serve_invalidate(struct kdsm_coherence *coherence,
				    struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	if (!coherence->is_strict)
		err = -EOPNOTSUPP;
	else if (!kdsm_handover_sane(coherence, &wire.handover) || !wire.handover.wts ||
		 le16_to_cpu(wire.handover.from) == KDSM_NOBODY)
		err = -EINVAL;
	else
		err = kdsm_copy_end_wait(coherence, block, request->from, &wire.handover);
	kdsm_block_put(coherence, block);
	return err;
}

/*
 * Drop a copy that no owner may count any more, or that arrives at this moment, and let no answer
 * to an earlier request bring one. A LEND that arrives later is late: see kdsm_loan_get().
 */
void kdsm_strict_forget(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (kdsm_is_writer(block))
		return;
	if (block->state == KDSM_BLOCK_READABLE)
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	if (block->reading != KDSM_READING_NONE) {
		WRITE_ONCE(block->reading, KDSM_READING_ASKING);
		WRITE_ONCE(block->again, true);
		wake_up_all(&coherence->wait);
	}
}

/*
 * This node may have been excluded (lost.c), so no block stays mapped: kdsm_strict_access() maps
 * none before this node has asked. Blocks without a structure are mapped, too, if nobody wrote
 * them.
 */
void kdsm_strict_untied(struct kdsm_coherence *coherence)
{
	struct kdsm_block *block;
	u64 i;

	for (i = 0; (block = kdsm_block_next(coherence, &i, coherence->blocks - 1)); i++) {
		mutex_lock(&block->lock);
		kdsm_strict_forget(coherence, block);
		mutex_unlock(&block->lock);
		kdsm_block_put(coherence, block);
		cond_resched();
	}
	kdsm_pages_unmap(coherence, 0, kdsm_block_offset(coherence, coherence->blocks));
}

/* ---- getting a block ---- */

/* Whether a reader that answered err has no copy, or will drop it before this node reaches it */
static bool kdsm_reader_is_gone(struct kdsm_coherence *coherence, unsigned int reader, int err)
{
	if (err == -ENOENT || test_bit(reader, coherence->excluded))
		return true;
	if (!err || kdsm_message_was_heard(err) ||
	    !kdsm_fabric_is_away(coherence->fabric, reader))
		return false;
	/* Wait until no fetch of the reader from this node is in flight */
	kdsm_fabric_give_up(coherence->fabric, reader, true);
	return true;
}

/* Requests to all readers of a block to give up their copies */
struct kdsm_recall {
	struct kdsm_wire_block wire;
	struct kdsm_broadcast *broadcast;	/* in flight, or NULL */
	int *statuses;				/* by reader */
};

static int kdsm_recall_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_recall *recall)
{
	struct kdsm_wire_block *wire = &recall->wire;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	struct kdsm_broadcast *broadcast;

	bitmap_copy(nodes, block->readers, coherence->nodes);
	broadcast = kdsm_broadcast_begin(coherence->fabric, nodes,
					 KDSM_MESSAGE_BLOCK_INVALIDATE, wire,
					 kdsm_handover_cut(&wire->handover, sizeof(*wire)));
	recall->broadcast = IS_ERR(broadcast) ? NULL : broadcast;
	return PTR_ERR_OR_ZERO(broadcast);
}

/*
 * Ask all readers at once to give up their copies, while this node fetches the content, which node
 * from keeps. The block is busy and its role is TAKING, so no new reader gets a copy, and only this
 * task changes readers. kdsm_recall_end() must follow.
 */
static int kdsm_recall_begin(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     unsigned int from, struct kdsm_recall *recall)
{
	*recall = (struct kdsm_recall) {
		.wire.id = cpu_to_le32(coherence->id),
		.wire.index = cpu_to_le64(block->index),
		.wire.handover.number = cpu_to_le64(block->handover),
		.wire.handover.wts = cpu_to_le64(block->wts),
		.wire.handover.from = cpu_to_le16(from),
	};
	__clear_bit(coherence->node, block->readers);
	if (bitmap_empty(block->readers, coherence->nodes))
		return 0;
	recall->statuses = kvcalloc(coherence->nodes, sizeof(*recall->statuses), GFP_KERNEL);
	return recall->statuses ? kdsm_recall_ask(coherence, block, recall) : -ENOMEM;
}

/*
 * Wait for the answers, and strike off the readers that have no copies any more. Returns 0; -EAGAIN
 * or -EHOSTDOWN to ask those that are left again; or another error, after which a reader may still
 * have its copy.
 */
static int kdsm_recall_wait(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_recall *recall)
{
	unsigned int reader;
	int result, err;

	result = kdsm_broadcast_end(recall->broadcast, recall->statuses, MAX_SCHEDULE_TIMEOUT,
				    TASK_UNINTERRUPTIBLE);
	recall->broadcast = NULL;
	if (result)
		return result;
	for_each_set_bit(reader, block->readers, coherence->nodes) {
		err = recall->statuses[reader];
		if (!err || kdsm_reader_is_gone(coherence, reader, err)) {
			__clear_bit(reader, block->readers);
			continue;
		}
		/* A lost message may be the first sign that the reader is down: repeat it */
		if (!kdsm_message_was_heard(err) && err != -ENOMEM)
			err = -EHOSTDOWN;
		if (!result || result == -EAGAIN || (result == -EHOSTDOWN && err != -EAGAIN))
			result = err;
	}
	return result;
}

/*
 * Returns 0 when all readers have given up their copies. With err, which kdsm_recall_begin() or the
 * fetch returned, wait for the first answers only, and return err.
 */
static int kdsm_recall_end(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_recall *recall, int err)
{
	unsigned long end = jiffies + KDSM_INVALIDATE_TIMEOUT;
	unsigned int pause;
	int result = 0;

	while (recall->broadcast) {
		result = kdsm_recall_wait(coherence, block, recall);
		/* Ask again until the readers answer, or this node gives them up */
		if (err || (result != -EAGAIN && result != -EHOSTDOWN))
			break;
		if (time_after(jiffies, end)) {
			result = result == -EAGAIN ? -ETIMEDOUT : result;
			break;
		}
		pause = result == -EAGAIN ? KDSM_INVALIDATE_PAUSE : KDSM_DOWN_PAUSE;
		usleep_range(pause, 4 * pause);
		result = kdsm_recall_ask(coherence, block, recall);
	}
	kvfree(recall->statuses);
	return err ?: result;
}

/* Fetch a copy. Caller holds the block's lock; the function drops the lock meanwhile. */
static int kdsm_strict_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_source source = { .memory = coherence->frames };
	bool is_lent, is_down = false;
	u64 wts;
	int err;

	for (;;) {
		WRITE_ONCE(block->reading, KDSM_READING_ASKING);
		mutex_unlock(&block->lock);
		source.since = kdsm_memory_drops(coherence->frames);
		err = kdsm_ownership_borrow(coherence, block, &source.node, &wts);
		is_lent = !err;
		if (is_lent)
			err = kdsm_strict_fetch(coherence, block, &source, wts, false);
		mutex_lock(&block->lock);
		kdsm_coherence_count(coherence, SLOW_READS, 1);
		/* The lender may have evicted the content */
		if (err == -ESTALE && !READ_ONCE(coherence->outcast))
			continue;
		/* It may have died after it gave the block away: ask the new owner, once */
		if (err && is_lent && !is_down && source.node != block->owner) {
			is_down = true;
			continue;
		}
		/* kdsm_strict_forget() may have ended the loan */
		if (err || block->reading == KDSM_READING_LENT)
			break;
	}
	WRITE_ONCE(block->reading, KDSM_READING_NONE);
	if (err)
		return err;
	WRITE_ONCE(block->state, KDSM_BLOCK_READABLE);
	kdsm_lease_begin(coherence, block);
	return 0;
}

/*
 * Become the only node with the block. Caller holds the block's lock; the function drops
 * the lock meanwhile.
 */
static int kdsm_strict_write_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_source source = { .memory = coherence->frames, .node = coherence->node };
	u64 wts = block->wts, rts;
	struct kdsm_recall recall;
	bool has_copy;
	int err;

	/* Before asking: a node that has no memory for the sets refuses a hand-over */
	err = kdsm_readers_alloc(coherence, block);
	/* An owner that evicted a block without content has no memory for it */
	err = err ?: kdsm_block_room(coherence, block, true);
	if (err)
		return err;
	if (kdsm_block_is_owned(block)) {
		/* A node that asks from now on is queued, as if this node had just got the block */
		WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
		mutex_unlock(&block->lock);
	} else {
		mutex_unlock(&block->lock);
		err = kdsm_ownership_take(coherence, block, &source.node, &wts, &rts);
		if (err) {
			mutex_lock(&block->lock);
			return err;
		}
	}
	/* From here on no other node has a reason to invalidate this node's copy */
	mutex_lock(&block->lock);
	block->wts = wts + 1;
	block->wanted = block->wts;
	/*
	 * A former owner struck this node off, so the copy may be old. A repeated hand-over of a
	 * block that nobody has written lists no readers (kdsm_given_fits()).
	 */
	if (wts && source.node != coherence->node && block->state != KDSM_BLOCK_INVALID &&
	    !test_bit(coherence->node, block->readers))
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	has_copy = block->state != KDSM_BLOCK_INVALID;
	mutex_unlock(&block->lock);
	err = kdsm_recall_begin(coherence, block, source.node, &recall);
	if (!err && !has_copy)
		err = kdsm_strict_fetch(coherence, block, &source, wts, true);
	err = kdsm_recall_end(coherence, block, &recall, err);
	mutex_lock(&block->lock);
	if (err) {
		/*
		 * Without the content, give up the takeover. With the content, this node becomes
		 * the owner despite the error, and keeps its access.
		 */
		if (!has_copy && source.node != coherence->node) {
			/* Readers that gave up their copies take only newer ones from now on */
			block->from_wts = block->wts;
			mutex_unlock(&block->lock);
			kdsm_ownership_fail(coherence, block);
			mutex_lock(&block->lock);
			return err;
		}
	} else {
		WRITE_ONCE(block->state, KDSM_BLOCK_WRITABLE);
	}
	kdsm_lease_begin(coherence, block);
	kdsm_ownership_taken(coherence, block);		/* drops the lock */
	mutex_lock(&block->lock);
	return err;
}

static enum kdsm_block_state kdsm_strict_need(bool write)
{
	return write ? KDSM_BLOCK_WRITABLE : KDSM_BLOCK_READABLE;
}

static int kdsm_strict_access(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool write, kdsm_map_t map, void *arg)
{
	int err;

	mutex_lock(&block->lock);
	if (kdsm_block_is_leaving(coherence, block)) {
		err = -EBUSY;
	} else if (block->state < kdsm_strict_need(write) || kdsm_is_doubtful(coherence)) {
		err = block->busy ? -EBUSY : -EAGAIN;
	} else {
		if (block->awaited)
			kdsm_lease_begin(coherence, block);
		block->awaited = false;
		err = map(arg, block->index, block->state == KDSM_BLOCK_WRITABLE);
	}
	mutex_unlock(&block->lock);
	return err;
}

static int kdsm_strict_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   bool write, bool awaited)
{
	enum kdsm_block_state need = kdsm_strict_need(write);
	bool missed = false;
	int err = 0;

	mutex_lock(&block->lock);
	while (!err && block->state < need) {
		missed = true;
		kdsm_block_begin(coherence, block);
		if (block->state < need)
			err = write ? kdsm_strict_write_miss(coherence, block) :
				      kdsm_strict_read_miss(coherence, block);
		kdsm_block_end(coherence, block);
	}
	if (!err && missed)
		block->lost = false;
	if (!err && missed && awaited)
		kdsm_lease_await(coherence, block);
	mutex_unlock(&block->lock);
	return err;
}

static int kdsm_strict_wipe(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts)
{
	int err;

	lockdep_assert_held(&block->lock);
	err = kdsm_readers_alloc(coherence, block);
	if (!err && block->state != KDSM_BLOCK_INVALID)
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	err = err ?: kdsm_block_clear(coherence, block);
	if (err)
		return err;
	/* No other node has a copy: each dropped its own when it accepted the claim */
	bitmap_zero(block->readers, coherence->nodes);
	block->wts = ts;
	block->wanted = ts;
	block->lost = false;
	WRITE_ONCE(block->state, KDSM_BLOCK_READABLE);
	kdsm_lease_begin(coherence, block);
	return 0;
}

/* Take ownership as a write would */
static int kdsm_strict_own(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	return kdsm_strict_get(coherence, block, true, false);
}

const struct kdsm_policy_ops kdsm_policy_strict = {
	.access = kdsm_strict_access,
	.get = kdsm_strict_get,
	.handover = kdsm_strict_handover,
	.lend = kdsm_strict_lend,
	.own = kdsm_strict_own,
	.wipe = kdsm_strict_wipe,
};
