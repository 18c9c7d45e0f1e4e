// SPDX-License-Identifier: GPL-2.0
/*
 * Policy strict: a block has one writer or many readers, and all programs are sequentially
 * consistent. The protocol follows Ivy's dynamic distributed manager (Li and Hudak 1989).
 * The owner knows the nodes with copies. A node that wants to write becomes the owner,
 * takes over the set of readers and has the readers unmap their copies. Links lead to the
 * owner (ownership.c). As in Myrland's thesis (4.3), a node keeps a block that it got for a
 * lease, so that two nodes that compete for a block both make progress.
 *
 * The owner's copy is writable only while there are no readers. Why no two nodes disagree:
 * before a reader fetches content from the owner's frame, the owner unmaps the frame under the
 * block's lock, and from then on maps it only for reading. An owner makes the frame writable
 * again only after every reader has answered that its copy is gone or never arrived. A reader
 * that is fetching at that time finds stale set, and asks again.
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
 * Interval between requests to a reader whose lease has not ended, in us, and timeout of these
 * requests, in jiffies
 */
#define KDSM_INVALIDATE_PAUSE	50
#define KDSM_INVALIDATE_TIMEOUT	(60 * HZ)
/* Interval between requests to a reader that cannot be reached, in us */
#define KDSM_DOWN_PAUSE		10000

/* ---- leases ---- */

static void kdsm_lease_begin(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	WRITE_ONCE(block->lease_end, ktime_get_ns() + READ_ONCE(coherence->lease));
}

static bool kdsm_lease_is_over(const struct kdsm_block *block)
{
	return ktime_get_ns() >= block->lease_end;
}

/* ---- losing a block ---- */

/*
 * Unmap the block. The new state says whether programs of this node may still fault it in
 * for reading. Write protection would not be enough: mprotect makes a dirty entry writable
 * again without a fault.
 */
static void kdsm_strict_unmap(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      enum kdsm_block_state state)
{
	WRITE_ONCE(block->state, state);
	kdsm_pages_unmap(coherence, kdsm_block_offset(coherence, block),
			 kdsm_block_size(coherence));
	kdsm_coherence_count(coherence, FLUSHES, 1);
}

static int kdsm_strict_handover(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (!kdsm_lease_is_over(block))
		return -EAGAIN;
	if (block->state != KDSM_BLOCK_INVALID)
		kdsm_strict_unmap(coherence, block, KDSM_BLOCK_INVALID);
	kdsm_coherence_count(coherence, MIGRATIONS, 1);
	return 0;
}

/* Allocate the set of readers, which lives until exit. Caller holds the block's lock. */
static int kdsm_readers_alloc(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (!block->readers)
		block->readers = bitmap_zalloc(coherence->nodes, GFP_KERNEL_ACCOUNT);
	return block->readers ? 0 : -ENOMEM;
}

static int kdsm_strict_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int to, u64 clock, u64 *wts, u64 *rts)
{
	lockdep_assert_held(&block->lock);
	/*
	 * This node may also have been granted the block and have failed to fetch the
	 * content. Then the content stays unchanged where it is, and the set of readers
	 * stays with the block, until a node takes the block over.
	 */
	if (block->next != KDSM_NOBODY || !kdsm_lease_is_over(block))
		return -EAGAIN;
	if (kdsm_readers_alloc(coherence, block))
		return -ENOMEM;
	if (block->state == KDSM_BLOCK_WRITABLE)
		kdsm_strict_unmap(coherence, block, KDSM_BLOCK_READABLE);
	__set_bit(to, block->readers);
	return 0;
}

/* The owner asks this node to give up its copy */
int kdsm_coherence_serve_invalidate(struct kdsm_coherence *coherence,
				    struct kdsm_request *request)
{
	struct kdsm_wire_block wire;
	struct kdsm_block *block = kdsm_asked_block(coherence, request, &wire);
	enum kdsm_answer what = KDSM_ANSWER_YES;
	int err;

	if (IS_ERR(block))
		return PTR_ERR(block);
	if (coherence->policy != &kdsm_policy_strict)
		return -EOPNOTSUPP;
	mutex_lock(&block->lock);
	if (kdsm_block_is_owned(block)) {
		mutex_unlock(&block->lock);
		return -EINVAL;
	}
	if (block->state == KDSM_BLOCK_READABLE && !kdsm_lease_is_over(block)) {
		what = KDSM_ANSWER_RETRY;
	} else if (block->state == KDSM_BLOCK_READABLE) {
		kdsm_strict_unmap(coherence, block, KDSM_BLOCK_INVALID);
		kdsm_coherence_count(coherence, INVALIDATIONS, 1);
	}
	/* Content that is being fetched at this moment must not be used */
	if (what == KDSM_ANSWER_YES)
		block->stale = true;
	err = kdsm_answer(request, what, 0);
	mutex_unlock(&block->lock);
	return err;
}

/* Drop a copy that no owner may count any more, or that arrives at this moment */
static void kdsm_copy_drop(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	mutex_lock(&block->lock);
	if (block->role != KDSM_ROLE_TAKING && !kdsm_block_is_owned(block)) {
		if (block->state == KDSM_BLOCK_READABLE)
			kdsm_strict_unmap(coherence, block, KDSM_BLOCK_INVALID);
		block->stale = true;
	}
	mutex_unlock(&block->lock);
}

void kdsm_coherence_untied(struct kdsm_coherence *coherence)
{
	struct kdsm_block *table;
	u64 i, j;

	if (coherence->policy != &kdsm_policy_strict)
		return;
	for (i = 0; i < coherence->blocks; i += KDSM_TABLE_SIZE) {
		/* Pairs with cmpxchg() in kdsm_block() */
		table = smp_load_acquire(&coherence->tables[i >> KDSM_TABLE_SHIFT]);
		for (j = 0; table && j < KDSM_TABLE_SIZE; j++)
			kdsm_copy_drop(coherence, &table[j]);
		cond_resched();
	}
}

/* ---- getting a block ---- */

/* Whether a reader that answered err has no copy, or will drop it before this node reaches it */
static bool kdsm_reader_is_gone(struct kdsm_coherence *coherence, unsigned int reader, int err)
{
	if (err == -ENOENT)
		return true;
	if (!err || kdsm_message_was_heard(err) ||
	    !kdsm_fabric_is_away(coherence->fabric, reader))
		return false;
	/* Wait until no fetch of the reader from this node is in flight */
	kdsm_fabric_give_up(coherence->fabric, reader, true);
	return true;
}

/* Have a reader unmap its copy. An error means that the reader may still have the copy. */
static int kdsm_reader_invalidate(struct kdsm_coherence *coherence, struct kdsm_block *block,
				  unsigned int reader)
{
	unsigned long end = jiffies + KDSM_INVALIDATE_TIMEOUT;
	struct kdsm_wire_answer answer;
	unsigned int pause;
	int err;

	for (;;) {
		err = kdsm_ask(coherence, block, reader, KDSM_MESSAGE_BLOCK_INVALIDATE, &answer);
		if (!err && le16_to_cpu(answer.answer) == KDSM_ANSWER_YES)
			return 0;
		if (kdsm_reader_is_gone(coherence, reader, err))
			return 0;
		/* Ask again until the reader answers, or this node gives it up */
		if (err && err != -EHOSTDOWN)
			return err;
		if (time_after(jiffies, end))
			return err ?: -ETIMEDOUT;
		pause = err ? KDSM_DOWN_PAUSE : KDSM_INVALIDATE_PAUSE;
		usleep_range(pause, 4 * pause);
	}
}

/*
 * Have all other nodes give up their copies; returns 0 when all have done so. The block is
 * busy and its role is TAKING, so no new reader gets a copy.
 */
static int kdsm_readers_invalidate(struct kdsm_coherence *coherence,
				   struct kdsm_block *block)
{
	unsigned int reader;
	int err;

	if (!block->readers)
		return 0;
	for_each_set_bit(reader, block->readers, coherence->nodes) {
		if (reader != coherence->node) {
			err = kdsm_reader_invalidate(coherence, block, reader);
			if (err)
				return err;
		}
		__clear_bit(reader, block->readers);
	}
	return 0;
}

/* Fetch a copy. Caller holds the block's lock; the function drops the lock meanwhile. */
static int kdsm_strict_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int from;
	u64 wts, rts;
	int err;

	do {
		block->stale = false;
		mutex_unlock(&block->lock);
		err = kdsm_ownership_read(coherence, block, &from, &wts, &rts);
		if (!err)
			err = kdsm_block_fetch(coherence, block, coherence->frames, from, NULL);
		mutex_lock(&block->lock);
		if (err)
			return err;
		kdsm_coherence_count(coherence, SLOW_READS, 1);
	} while (block->stale);
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
	unsigned int from = coherence->node;
	bool has_copy;
	u64 wts, rts;
	int err;

	/* Before asking: a node that has no set refuses a hand-over, which would lose the block */
	err = kdsm_readers_alloc(coherence, block);
	if (err)
		return err;
	if (kdsm_block_is_owned(block)) {
		/* A node that asks from now on is queued, as if this node had just got the block */
		WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
		mutex_unlock(&block->lock);
	} else {
		mutex_unlock(&block->lock);
		err = kdsm_ownership_take(coherence, block, &from, &wts, &rts);
		if (err) {
			mutex_lock(&block->lock);
			return err;
		}
	}
	/* From here on no other node has a reason to invalidate this node's copy */
	mutex_lock(&block->lock);
	/* A former owner struck this node off, so the copy may be old */
	if (from != coherence->node && block->state != KDSM_BLOCK_INVALID &&
	    !test_bit(coherence->node, block->readers))
		kdsm_strict_unmap(coherence, block, KDSM_BLOCK_INVALID);
	has_copy = block->state != KDSM_BLOCK_INVALID;
	mutex_unlock(&block->lock);
	if (!has_copy)
		err = kdsm_block_fetch(coherence, block, coherence->frames, from, NULL);
	if (!err)
		err = kdsm_readers_invalidate(coherence, block);
	mutex_lock(&block->lock);
	if (err) {
		/*
		 * Without the content, give up the takeover. With the content, this node becomes
		 * the owner despite the error, and keeps its access.
		 */
		if (!has_copy && from != coherence->node) {
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

static int kdsm_strict_access(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool write, kdsm_map_t map, void *arg)
{
	enum kdsm_block_state need = write ? KDSM_BLOCK_WRITABLE : KDSM_BLOCK_READABLE;
	int err = 0;

	mutex_lock(&block->lock);
	while (!err && block->state < need) {
		kdsm_block_begin(coherence, block);
		if (block->state < need)
			err = write ? kdsm_strict_write_miss(coherence, block) :
				      kdsm_strict_read_miss(coherence, block);
		kdsm_block_end(coherence, block);
	}
	if (!err)
		err = map(arg, block->index, block->state == KDSM_BLOCK_WRITABLE);
	mutex_unlock(&block->lock);
	return err;
}

static int kdsm_strict_own_map(void *arg, u64 index, bool writable)
{
	return 0;
}

/* Take ownership as a write would */
static int kdsm_strict_own(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	return kdsm_strict_access(coherence, block, true, kdsm_strict_own_map, NULL);
}

const struct kdsm_policy_ops kdsm_policy_strict = {
	.access = kdsm_strict_access,
	.handover = kdsm_strict_handover,
	.lend = kdsm_strict_lend,
	.own = kdsm_strict_own,
};
