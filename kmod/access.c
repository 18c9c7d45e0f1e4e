// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: a program touches a block. Read misses, first writes, and the
 * write set that they fill.
 */
#include <linux/mm.h>

#include "coherence.h"

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

/*
 * Bring content that is new enough. Drops the lock meanwhile; what an acquire asks
 * for in that time is looked at again. A notice that the floor has passed does not
 * help: a copy from there would be too old at once.
 */
static int kdsm_block_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_bounce *bounce = NULL;
	u64 wts, rts, floor;
	unsigned int from;
	bool known;
	int err;

	if (block->twin) {
		bounce = kdsm_bounce_alloc(coherence);
		if (!bounce)
			return -ENOMEM;
	}
	do {
		floor = READ_ONCE(coherence->signature.floor);
		known = block->writer != KDSM_NOBODY && block->wanted >= floor &&
			block->wanted;
		from = block->writer;
		wts = block->wanted;
		rts = block->wanted;
		mutex_unlock(&block->lock);
		err = 0;
		if (!known)
			err = kdsm_ownership_read(coherence, block, &from, &wts, &rts);
		if (!err)
			err = kdsm_block_fetch(coherence, block, coherence->frames, from, bounce);
		mutex_lock(&block->lock);
		if (err && known) {
			/* The writer is gone; an owner may be there. */
			block->writer = KDSM_NOBODY;
			continue;
		}
		if (err)
			break;
		if (known)
			kdsm_coherence_count(coherence, FAST_READS, 1);
		else
			kdsm_coherence_count(coherence, SLOW_READS, 1);
		if (bounce)
			kdsm_twin_merge(coherence, block, bounce, true);
		block->wts = wts;
		block->rts = rts;
		/*
		 * In the list first, then the look at the floor: an acquire that raises
		 * it finds the block there, or has raised it before.
		 */
		kdsm_block_cached(coherence, block, true);
		spin_lock(&coherence->lock);
		floor = coherence->signature.floor;
		spin_unlock(&coherence->lock);
	} while (err || block->wanted > wts || rts < floor);
	kdsm_bounce_free(bounce);
	if (err) {
		kdsm_block_cached(coherence, block, false);
		return err;
	}
	block->writer = KDSM_NOBODY;
	block->state = list_empty(&block->dirty) ? KDSM_BLOCK_READABLE : KDSM_BLOCK_WRITABLE;
	return 0;
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
			int (*map)(void *arg, bool writable), void *arg)
{
	int err = 0;

	mutex_lock(&block->lock);
	if (block->state == KDSM_BLOCK_INVALID) {
		kdsm_block_begin(coherence, block);
		if (block->state == KDSM_BLOCK_INVALID)
			err = kdsm_block_read_miss(coherence, block);
		kdsm_block_end(coherence, block);
	}
	/* Another acquire may have come since: programs that race see that. */
	if (!err && write && block->state == KDSM_BLOCK_READABLE)
		err = kdsm_block_upgrade(coherence, block);
	/* It is about to be written, whatever becomes of the page table's note. */
	if (!err && block->state == KDSM_BLOCK_WRITABLE)
		block->modified |= write;
	if (!err && block->state != KDSM_BLOCK_INVALID)
		err = map(arg, block->state == KDSM_BLOCK_WRITABLE);
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
