// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: a program touches a block. Read misses, first writes, and the
 * write set that they fill.
 */
#include <linux/mm.h>

#include "access.h"

/* An entry is at the end of a list, or in none. */
static void kdsm_entry_place(struct kdsm_coherence *coherence, struct list_head *entry,
			     struct list_head *list)
{
	spin_lock(&coherence->lock);
	list_del_init(entry);
	if (list)
		list_add_tail(entry, list);
	spin_unlock(&coherence->lock);
}

void kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       bool is_cached)
{
	kdsm_entry_place(coherence, &block->cached, is_cached ? &coherence->cached : NULL);
}

void kdsm_block_dirty(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      bool is_dirty)
{
	kdsm_entry_place(coherence, &block->dirty, is_dirty ? &coherence->dirty : NULL);
}

/* A notice that the floor has passed does not help: a copy would be too old at once. */
bool kdsm_block_writer_known(struct kdsm_coherence *coherence,
			     const struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	return block->writer != KDSM_NOBODY && block->wanted &&
	       block->wanted >= READ_ONCE(coherence->signature.floor);
}

bool kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			u64 wts, u64 rts)
{
	u64 floor;

	lockdep_assert_held(&block->lock);
	block->wts = wts;
	block->rts = rts;
	/*
	 * In the list first, then the look at the floor: an acquire that raises it
	 * finds the block there, or has raised it before.
	 */
	kdsm_block_cached(coherence, block, true);
	spin_lock(&coherence->lock);
	floor = coherence->signature.floor;
	spin_unlock(&coherence->lock);
	if (block->wanted > wts || rts < floor) {
		kdsm_block_cached(coherence, block, false);
		return false;
	}
	block->writer = KDSM_NOBODY;
	block->state = list_empty(&block->dirty) ? KDSM_BLOCK_READABLE : KDSM_BLOCK_WRITABLE;
	return true;
}

/* The block, into the frame or bounce, and what comes along. */
static int kdsm_block_bring(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int from, struct kdsm_bounce *bounce,
			    const struct kdsm_ahead *ahead)
{
	struct kdsm_fetch fetch;
	int err;

	err = kdsm_fetch_begin(&fetch, coherence, coherence->frames,
			       1 + (ahead ? ahead->count : 0));
	if (err)
		return err;
	kdsm_fetch_add(&fetch, block, from, bounce);
	kdsm_ahead_add(&fetch, ahead);
	return kdsm_fetch_end(&fetch);
}

/*
 * Try to bring content that is new enough: from who is known to have written it, or
 * from the owner. Drops the lock meanwhile. Positive: it has to be tried again, as
 * an acquire asked for more, or the writer is gone, while an owner may be there.
 */
static int kdsm_block_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   struct kdsm_bounce *bounce, kdsm_map_t map, void *arg)
{
	bool known = kdsm_block_writer_known(coherence, block);
	u64 wts = block->wanted, rts = block->wanted;
	struct kdsm_ahead *ahead = NULL;
	unsigned int from = block->writer;
	bool retry;
	int err = 0;

	mutex_unlock(&block->lock);
	if (known)
		ahead = kdsm_ahead_begin(coherence, block);
	else
		err = kdsm_ownership_read(coherence, block, &from, &wts, &rts);
	if (!err)
		err = kdsm_block_bring(coherence, block, from, bounce, ahead);
	retry = err && ahead;
	kdsm_ahead_end(coherence, ahead, !err, map, arg);
	/* Maybe it was one of those that were to come along. */
	if (retry)
		err = kdsm_block_bring(coherence, block, from, bounce, NULL);
	mutex_lock(&block->lock);
	if (err && known) {
		block->writer = KDSM_NOBODY;
		return 1;
	}
	if (err)
		return err;
	if (known)
		kdsm_coherence_count(coherence, FAST_READS, 1);
	else
		kdsm_coherence_count(coherence, SLOW_READS, 1);
	if (bounce)
		kdsm_twin_merge(coherence, block, bounce, true);
	return !kdsm_block_brought(coherence, block, wts, rts);
}

/*
 * Bring content that is new enough. Drops the lock meanwhile; what an acquire asks
 * for in that time is looked at again.
 */
static int kdsm_block_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block,
				kdsm_map_t map, void *arg)
{
	struct kdsm_bounce *bounce = NULL;
	int err;

	if (block->twin) {
		bounce = kdsm_bounce_alloc(coherence);
		if (!bounce)
			return -ENOMEM;
	}
	do {
		err = kdsm_block_read(coherence, block, bounce, map, arg);
	} while (err > 0);
	kdsm_bounce_free(bounce);
	return err;
}

/* From readable to writable, into the write set. An owner needs no twin. */
static int kdsm_block_upgrade(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	int err;

	if (!kdsm_block_is_owned(block) && !block->twin) {
		err = kdsm_twin_make(coherence, block);
		if (err)
			return err;
	}
	block->state = KDSM_BLOCK_WRITABLE;
	block->idle = 0;
	kdsm_block_dirty(coherence, block, true);
	kdsm_coherence_count(coherence, UPGRADES, 1);
	return 0;
}

/* Of the policy; see kdsm_coherence_access(). */
int kdsm_release_access(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
			kdsm_map_t map, void *arg)
{
	int err = 0;

	mutex_lock(&block->lock);
	if (block->state == KDSM_BLOCK_INVALID) {
		kdsm_block_begin(coherence, block);
		if (block->state == KDSM_BLOCK_INVALID)
			err = kdsm_block_read_miss(coherence, block, map, arg);
		kdsm_block_end(coherence, block);
	}
	/* Another acquire may have come since: programs that race see that. */
	if (!err && write && block->state == KDSM_BLOCK_READABLE)
		err = kdsm_block_upgrade(coherence, block);
	/* It is about to be written, whatever becomes of the page table's note. */
	if (!err && block->state == KDSM_BLOCK_WRITABLE)
		block->modified |= write;
	if (!err && block->state != KDSM_BLOCK_INVALID)
		err = map(arg, block->index, block->state == KDSM_BLOCK_WRITABLE);
	mutex_unlock(&block->lock);
	return err;
}

void kdsm_coherence_unmapped(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	struct kdsm_block *block;
	u64 i;

	for (i = first; i <= last; i++) {
		/* A table that is not there has no writable block. */
		if (!READ_ONCE(coherence->tables[i >> KDSM_TABLE_SHIFT])) {
			i |= KDSM_TABLE_SIZE - 1;
			continue;
		}
		block = kdsm_block(coherence, i);
		mutex_lock(&block->lock);
		/* Or invalid: an acquire may not have harvested it yet. */
		if (!list_empty(&block->dirty))
			block->modified = true;
		mutex_unlock(&block->lock);
	}
}
