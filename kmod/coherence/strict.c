// SPDX-License-Identifier: GPL-2.0
/*
 * Policy strict: one writer or many readers a block, sequentially consistent for
 * all programs. After Ivy's dynamic distributed manager (Li and Hudak 1989): the
 * owner knows who has copies; who wants to write becomes the owner, takes over
 * the set of readers and has their copies unmapped; links lead to the owner
 * (ownership.c). After Myrland's thesis (4.3) a node keeps what it got for a
 * lease, so that two that fight over a block both make progress.
 *
 * The owner's copy is writable only while there are no readers. Why no two nodes
 * disagree: content is fetched from the owner's frame after the owner has unmapped it,
 * under the block's lock; an owner makes it writable again only after every reader
 * has said that its copy is gone, or never came: a reader that is fetching is told so
 * by stale, and asks again.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "internal.h"

/* A reader that still has its lease is asked again after, in microseconds. */
#define KDSM_INVALIDATE_PAUSE	50
#define KDSM_INVALIDATE_TIMEOUT	(60 * HZ)

/* ---- leases ---- */

static void kdsm_lease_begin(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	block->lease_end = ktime_get_ns() + READ_ONCE(coherence->lease);
}

static bool kdsm_lease_is_over(const struct kdsm_block *block)
{
	return ktime_get_ns() >= block->lease_end;
}

/* ---- losing a block ---- */

/*
 * Nobody here can use it any more, or for reading only. To protect it from writing is
 * not enough for that: of an entry that is dirty mprotect makes a writable one, without
 * a fault.
 */
static void kdsm_strict_unmap(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      enum kdsm_block_state state)
{
	block->state = state;
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

/* Room for the set of readers. With the block's lock; stays until exit. */
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
	 * This node may also have been granted the block and have failed to bring the
	 * content: that stays as it is, where it is, until somebody takes it over, and
	 * with it the set of readers.
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

/* The owner wants this node's copy gone. */
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
	/* What is being fetched at this moment is not to be used. */
	if (what == KDSM_ANSWER_YES)
		block->stale = true;
	err = kdsm_answer(request, what, 0);
	mutex_unlock(&block->lock);
	return err;
}

/* ---- getting a block ---- */

/* Have a reader's copy unmapped. One that cannot be reached has no access either. */
static int kdsm_reader_invalidate(struct kdsm_coherence *coherence, struct kdsm_block *block,
				  unsigned int reader)
{
	unsigned long end = jiffies + KDSM_INVALIDATE_TIMEOUT;
	struct kdsm_wire_answer answer;
	int err;

	for (;;) {
		err = kdsm_ask(coherence, block, reader, KDSM_MESSAGE_BLOCK_INVALIDATE, &answer);
		if (err || le16_to_cpu(answer.answer) == KDSM_ANSWER_YES)
			return err;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(KDSM_INVALIDATE_PAUSE, 4 * KDSM_INVALIDATE_PAUSE);
	}
}

/*
 * With the block busy and the role TAKING, which keeps new readers away: all
 * copies but this node's are gone when it returns 0.
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

/* Bring a copy. Drops the lock meanwhile. */
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
	block->state = KDSM_BLOCK_READABLE;
	kdsm_lease_begin(coherence, block);
	return 0;
}

/* Become the only one who has it. Drops the lock meanwhile. */
static int kdsm_strict_write_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int from = coherence->node;
	bool has_copy;
	u64 wts, rts;
	int err;

	/* Before asking: an owner whose set has no room would be lost with the block. */
	err = kdsm_readers_alloc(coherence, block);
	if (err)
		return err;
	if (kdsm_block_is_owned(block)) {
		/* Who asks meanwhile waits, as if this node had just got it. */
		block->role = KDSM_ROLE_TAKING;
		mutex_unlock(&block->lock);
	} else {
		mutex_unlock(&block->lock);
		err = kdsm_ownership_take(coherence, block, &from, &wts, &rts);
		if (err) {
			mutex_lock(&block->lock);
			return err;
		}
	}
	/* From here on nobody but this node can make the copy here invalid. */
	mutex_lock(&block->lock);
	has_copy = block->state != KDSM_BLOCK_INVALID;
	mutex_unlock(&block->lock);
	if (!has_copy)
		err = kdsm_block_fetch(coherence, block, coherence->frames, from, NULL);
	if (!err)
		err = kdsm_readers_invalidate(coherence, block);
	mutex_lock(&block->lock);
	if (err) {
		/* Readable is what it is, if it was; who waits gets it as owner. */
		if (!has_copy && from != coherence->node) {
			mutex_unlock(&block->lock);
			kdsm_ownership_fail(coherence, block);
			mutex_lock(&block->lock);
			return err;
		}
	} else {
		block->state = KDSM_BLOCK_WRITABLE;
	}
	kdsm_lease_begin(coherence, block);
	kdsm_ownership_taken(coherence, block);		/* unlocks */
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

/* A hint: as if it were written. */
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
