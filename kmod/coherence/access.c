// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: a program touches a block. Read misses, first writes, and the
 * write set that they fill.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

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

u64 kdsm_block_need(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	return max3(block->wanted, max(block->wts, block->rts),
		    READ_ONCE(coherence->signature.floor));
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
	block->state = kdsm_block_valid_state(block);
	return true;
}

/* ---- read misses ---- */

/*
 * A read miss. What is brought replaces what is in the frame; if there are writes in
 * that which are not released (there is a twin), it is merged with them.
 */
struct kdsm_miss {
	struct kdsm_block *block;
	struct kdsm_bounce *bounce;	/* for content that is to be looked at first */
	bool merge;
	bool known;			/* from: the writer, not the owner */
	bool here;			/* from: this node */
	unsigned int from;
	u64 wts, rts;			/* of what was brought */
	u64 need;			/* the least read timestamp that is of use */
};

/* From who wrote it, with others that come along. */
static int kdsm_miss_from_writer(struct kdsm_coherence *coherence, struct kdsm_miss *miss,
				 kdsm_map_t map, void *arg)
{
	struct kdsm_memory *frames = coherence->frames;
	struct kdsm_bounce *bounce = miss->merge ? miss->bounce : NULL;
	struct kdsm_ahead *ahead;
	struct kdsm_fetch fetch;
	bool alone;
	int err;

	ahead = kdsm_ahead_begin(coherence, miss->block, KDSM_NOBODY);
	alone = !ahead;
	err = kdsm_fetch_begin(&fetch, coherence, frames, ahead ? 1 + ahead->count : 1);
	if (!err) {
		kdsm_fetch_add(&fetch, miss->block, miss->from, bounce);
		kdsm_ahead_add(&fetch, ahead);
		err = kdsm_fetch_end(&fetch);
	}
	kdsm_ahead_end(coherence, ahead, !err, map, arg);
	/* Maybe it was one of those that were to come along. */
	if (err && !alone)
		err = kdsm_block_fetch(coherence, miss->block, frames, miss->from, bounce);
	return err;
}

/*
 * Read the block's stamp and content where the owner may be, at once: what the
 * content is good until, or 0. Into the bounce, since it may as well be older than
 * what is in the frame here, which others may be told to read. Others come along.
 */
static u64 kdsm_miss_probe(struct kdsm_coherence *coherence, struct kdsm_miss *miss,
			   unsigned int node, kdsm_map_t map, void *arg)
{
	struct kdsm_memory *frames = coherence->frames;
	struct kdsm_ahead *ahead;
	struct kdsm_fetch fetch;
	bool is_here = false;
	u64 good = 0;

	ahead = kdsm_ahead_begin(coherence, miss->block, node);
	if (!kdsm_fetch_begin(&fetch, coherence, frames, 1)) {
		kdsm_fetch_stamps(&fetch, miss->block, node, ahead ? ahead->stamps : 1);
		kdsm_fetch_add(&fetch, miss->block, node, miss->bounce);
		if (!kdsm_fetch_end(&fetch))
			good = kdsm_stamp_value(fetch.stamps);
		if (good && good >= miss->need)
			is_here = kdsm_ahead_fetch(coherence, ahead, miss->block, fetch.stamps);
		kfree(fetch.stamps);
	}
	kdsm_ahead_end(coherence, ahead, is_here, map, arg);
	return good;
}

/* From the owner, or who was it not long ago. */
static int kdsm_miss_from_owner(struct kdsm_coherence *coherence, struct kdsm_miss *miss,
				kdsm_map_t map, void *arg)
{
	unsigned int node = READ_ONCE(miss->block->owner);
	u64 good = 0;
	int err;

	/* A block that nobody told this node of may never have been written. */
	if (miss->need && node != coherence->node)
		good = kdsm_miss_probe(coherence, miss, node, map, arg);
	if (good && good >= miss->need) {
		miss->wts = good;
		miss->rts = good;
		return 0;
	}
	err = kdsm_ownership_read(coherence, miss->block, &miss->from, &miss->wts, &miss->rts);
	if (err)
		return err;
	/*
	 * From here on its way to a new owner, who has not come yet: the frame has it,
	 * besides what was written here since.
	 */
	miss->here = miss->from == coherence->node;
	if (miss->here)
		return 0;
	/* The newest write is in what was promised: only the promise was too short. */
	if (good && miss->from == node && miss->wts <= good)
		return 0;
	return kdsm_block_fetch(coherence, miss->block, coherence->frames, miss->from,
				miss->bounce);
}

/* What is in the bounce goes into the frame. */
static int kdsm_miss_settle(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	unsigned int i;
	void *page;

	if (miss->here)
		return 0;
	if (miss->merge) {
		kdsm_twin_merge(coherence, miss->block, miss->bounce, true);
		return 0;
	}
	for (i = 0; !miss->known && i < miss->bounce->count; i++) {
		page = kdsm_block_page(coherence, coherence->frames, miss->block, i);
		if (IS_ERR(page))
			return PTR_ERR(page);
		copy_page(page, miss->bounce->pages[i]);
	}
	return 0;
}

/*
 * Try to bring content that is new enough. Drops the lock meanwhile; what an acquire
 * asks for in that time is looked at afterwards. Positive: it has to be tried
 * again, for more than was asked for, or as the writer is gone, while an owner may be
 * there.
 */
static int kdsm_miss_try(struct kdsm_coherence *coherence, struct kdsm_miss *miss,
			 kdsm_map_t map, void *arg)
{
	struct kdsm_block *block = miss->block;
	int err = 0;

	miss->known = kdsm_block_writer_known(coherence, block);
	miss->here = false;
	miss->merge = block->twin;
	miss->from = block->writer;
	miss->wts = block->wanted;
	miss->rts = block->wanted;
	miss->need = kdsm_block_need(coherence, block);
	mutex_unlock(&block->lock);
	if (!miss->bounce && (miss->merge || !miss->known))
		miss->bounce = kdsm_bounce_alloc(coherence);
	if (!miss->bounce && (miss->merge || !miss->known))
		err = -ENOMEM;
	else if (miss->known)
		err = kdsm_miss_from_writer(coherence, miss, map, arg);
	else
		err = kdsm_miss_from_owner(coherence, miss, map, arg);
	mutex_lock(&block->lock);
	if (err && miss->known) {
		block->writer = KDSM_NOBODY;
		return 1;
	}
	if (!err)
		err = kdsm_miss_settle(coherence, miss);
	if (err)
		return err;
	if (miss->known)
		kdsm_coherence_count(coherence, FAST_READS, 1);
	else
		kdsm_coherence_count(coherence, SLOW_READS, 1);
	return !kdsm_block_brought(coherence, block, miss->wts, miss->rts);
}

static int kdsm_block_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block,
				kdsm_map_t map, void *arg)
{
	struct kdsm_miss miss = { .block = block };
	int err;

	do {
		err = kdsm_miss_try(coherence, &miss, map, arg);
	} while (err > 0);
	kdsm_bounce_free(miss.bounce);
	return err;
}

/* ---- access ---- */

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
