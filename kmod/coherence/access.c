// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: read misses of programs, first writes to blocks, and the write set, which
 * blocks join at the first write.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

void kdsm_block_dirty(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      bool is_dirty)
{
	lockdep_assert_held(&block->lock);
	block->dirty = is_dirty;
	xa_lock(&coherence->table);
	if (is_dirty)
		__xa_set_mark(&coherence->table, block->index, KDSM_DIRTY_MARK);
	else
		__xa_clear_mark(&coherence->table, block->index, KDSM_DIRTY_MARK);
	xa_unlock(&coherence->table);
}

/* Ignore notices below the floor: a copy fetched for such a notice would be stale immediately */
bool kdsm_block_writer_known(struct kdsm_coherence *coherence,
			     const struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	return block->writer != KDSM_NOBODY && block->wanted &&
	       !test_bit(block->writer, coherence->excluded) &&
	       block->wanted >= READ_ONCE(coherence->signature.floor);
}

u64 kdsm_block_need(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	return max3(block->wanted, max(block->wts, block->rts),
		    READ_ONCE(coherence->signature.floor));
}

bool kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int from, u64 wts, u64 rts)
{
	u64 floor;

	lockdep_assert_held(&block->lock);
	if (from != KDSM_NOBODY)
		block->origin = from;
	block->wts = wts;
	WRITE_ONCE(block->rts, rts);
	block->whole = true;
	/*
	 * Enter the leases before reading the floor and the notices: an acquire either finds the
	 * block there or has merged its signature already.
	 */
	kdsm_block_cached(coherence, block, true);
	kdsm_block_learn(coherence, block);
	spin_lock(&coherence->lock);
	floor = coherence->signature.floor;
	spin_unlock(&coherence->lock);
	if (block->wanted > wts || rts < floor || block->ask) {
		kdsm_block_cached(coherence, block, false);
		return false;
	}
	block->writer = KDSM_NOBODY;
	block->lost = false;
	WRITE_ONCE(block->state, kdsm_block_valid_state(block));
	return true;
}

/* ---- read misses ---- */

/*
 * A read miss. The fetched content replaces the content of the frame. A block with a twin
 * has unreleased writes in its frame; the fetched content is merged with them.
 */
struct kdsm_miss {
	struct kdsm_block *block;
	struct kdsm_bounce *bounce;	/* content that is checked before it enters the frame */
	bool merge;
	bool known;			/* from is the writer that a notice names, not the owner */
	bool ask;			/* only the owner can tell whether content is new enough */
	bool here;			/* the frame of this node has the content already */
	bool whole;			/* as in block, when the miss began */
	bool changing;			/* guess: see kdsm_miss_expects_change() */
	bool renewed;			/* the frame has all writes, though the lease has ended */
	unsigned int from;		/* node that the content comes from */
	u64 wts, rts;			/* of the fetched content */
	u64 need;			/* least read timestamp that the content must have */
	u64 wanted;			/* timestamp that a notice named */
	u64 have;			/* the frame has all writes up to this, if whole */
};

/*
 * A miss that finds an old copy guesses whether the content has changed. The guess is what the
 * block's last miss found, or, without one, a change if so many such misses of the region in
 * succession have found one. Misses that know the writer do not count.
 */
#define KDSM_CHANGES	8U

static bool kdsm_miss_expects_change(const struct kdsm_coherence *coherence,
				     const struct kdsm_block *block)
{
	if (!block->whole)
		return true;
	return block->missed ? block->changing : READ_ONCE(coherence->changes) == KDSM_CHANGES;
}

static void kdsm_miss_note(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   const struct kdsm_miss *miss)
{
	unsigned int changes = READ_ONCE(coherence->changes);

	block->missed = miss->whole;
	block->changing = miss->whole && !miss->renewed;
	/* Concurrent misses may count as one: it is a guess */
	if (miss->whole && !miss->known)
		WRITE_ONCE(coherence->changes, miss->renewed ? 0 : min(changes + 1, KDSM_CHANGES));
}

/* The newest write has this timestamp: find whether the frame of this node has it */
static bool kdsm_miss_has(struct kdsm_miss *miss, u64 wts)
{
	miss->renewed = miss->whole && wts <= miss->have;
	return miss->renewed;
}

/* Make the pages that receive the content. -ENOMEM. */
static int kdsm_miss_bounce(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	if (!miss->bounce)
		miss->bounce = kdsm_bounce_alloc(coherence, miss->block);
	return miss->bounce ? 0 : -ENOMEM;
}

/* Fetch from the writer, together with the blocks of the read-ahead */
static int kdsm_miss_from_writer(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	/* A notice tells where the content was, at any time before: -ESTALE if it was evicted */
	const struct kdsm_source source = { .memory = coherence->frames, .node = miss->from };
	struct kdsm_memory *frames = coherence->frames;
	struct kdsm_bounce *bounce;
	struct kdsm_ahead *ahead;
	struct kdsm_fetch fetch;
	bool alone;
	int err;

	err = miss->merge ? kdsm_miss_bounce(coherence, miss) : 0;
	if (err)
		return err;
	bounce = miss->merge ? miss->bounce : NULL;
	ahead = kdsm_ahead_begin(coherence, miss->block, KDSM_NOBODY);
	alone = !ahead;
	err = kdsm_fetch_begin(&fetch, coherence, frames, 0, miss->block,
			       ahead ? 1 + ahead->count : 1);
	if (!err) {
		kdsm_fetch_add(&fetch, miss->block, miss->from, bounce);
		kdsm_ahead_add(&fetch, ahead);
		err = kdsm_fetch_end(&fetch);
	}
	kdsm_ahead_end(coherence, ahead, !err);
	/* A block of the read-ahead may have failed: fetch the missed block alone */
	if (err && !alone)
		err = kdsm_block_fetch(coherence, miss->block, &source, bounce);
	return err;
}

/*
 * Read the block's stamp and then its content from node, which may be the owner, in one
 * chain. If the copy here is expected to be current, read the stamp alone, and the content only if
 * it is not. Returns the timestamp that the stamp promises, or 0. The content goes into the
 * bounce, because it may be older than the content of the frame here, and a frame that
 * other nodes may read must not get older content (stamp.c). Blocks of the read-ahead come
 * along. *moved: the bounce has the content.
 */
static u64 kdsm_miss_probe(struct kdsm_coherence *coherence, struct kdsm_miss *miss,
			   unsigned int node, bool *moved)
{
	const struct kdsm_source source = {
		.memory = coherence->frames,
		.node = node,
		.since = kdsm_memory_drops(coherence->frames),
	};
	struct kdsm_ahead *ahead;
	struct kdsm_fetch fetch;
	bool is_here = false;
	u64 good = 0, wts;

	ahead = kdsm_ahead_begin(coherence, miss->block, node);
	if (!kdsm_fetch_begin(&fetch, coherence, source.memory, source.since, miss->block, 1)) {
		kdsm_fetch_stamps(&fetch, miss->block, node, ahead ? ahead->stamps : 1);
		*moved = miss->changing && !kdsm_miss_bounce(coherence, miss);
		if (*moved)
			kdsm_fetch_add(&fetch, miss->block, node, miss->bounce);
		if (!kdsm_fetch_end(&fetch))
			good = kdsm_stamp_value(fetch.stamps, &wts);
		*moved = *moved && good;
		if (good && good >= miss->need) {
			if (!kdsm_miss_has(miss, wts) && !*moved)
				*moved = !kdsm_miss_bounce(coherence, miss) &&
					 !kdsm_block_fetch(coherence, miss->block, &source,
							   miss->bounce);
			is_here = kdsm_ahead_fetch(coherence, ahead, miss->block, fetch.stamps,
						   source.since);
		}
		kfree(fetch.stamps);
	}
	kdsm_ahead_end(coherence, ahead, is_here);
	return good;
}

/* Fetch from the node that the link leads to, if its stamp suffices, or else ask the owner */
static int kdsm_miss_from_owner(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	struct kdsm_source source = { .memory = coherence->frames };
	unsigned int node = READ_ONCE(miss->block->owner);
	bool moved = false;
	u64 good = 0, newest;
	int err;

	/* Without a demand the block may never have been written: ask the owner at once */
	if (miss->need && node != coherence->node && !miss->ask)
		good = kdsm_miss_probe(coherence, miss, node, &moved);
	if (good >= miss->need && (moved || miss->renewed)) {
		miss->here = miss->renewed;
		miss->from = node;
		miss->wts = good;
		miss->rts = good;
		return 0;
	}
	source.since = kdsm_memory_drops(coherence->frames);
	err = kdsm_ownership_read(coherence, miss->block, &miss->from, &newest, &miss->rts);
	if (err)
		return err;
	/*
	 * This node has handed the block over, and the new owner has not taken it over yet.
	 * So the frame here has the content, and the later writes of this node.
	 */
	miss->here = miss->from == coherence->node || kdsm_miss_has(miss, newest);
	/*
	 * The owner has all writes that are not lost. The write that the notice demands may not be
	 * among them, because the block was discarded, or because no node wrote it (a summary).
	 */
	miss->wts = max(newest, min(miss->rts, miss->wanted));
	if (miss->here)
		return 0;
	/* The bounce already has the newest write; only the stamp promised too little */
	if (moved && miss->from == node && newest <= good)
		return 0;
	source.node = miss->from;
	err = kdsm_miss_bounce(coherence, miss);
	/* For newest 0 no node has content, and kdsm_block_content() makes zeros */
	return err ?: kdsm_block_content(coherence, miss->block, &source, newest, miss->bounce);
}

/* Move the content from the bounce into the frame */
static int kdsm_miss_settle(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	unsigned int i;
	void *page;

	if (miss->here)
		return 0;
	if (miss->merge) {
		kdsm_twin_merge(coherence, miss->block, miss->bounce, miss->from, true);
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

void kdsm_block_tell(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		     unsigned int from, u64 wts)
{
	const struct kdsm_notice notice = {
		.ts = wts, .first = block->index, .count = 1, .writer = from,
	};

	spin_lock(&coherence->lock);
	WRITE_ONCE(coherence->clock, max(coherence->clock, notice.ts));
	kdsm_signature_add(&coherence->signature, &notice, &coherence->raised);
	spin_unlock(&coherence->lock);
}

/*
 * Try to fetch content that is new enough. Caller holds the block's lock; the function
 * drops the lock meanwhile, and afterwards checks the demands of acquires that came in
 * between. A positive return value asks for a retry: an acquire demanded more, or the
 * writer cannot be reached while an owner may be reachable.
 */
static int kdsm_miss_try(struct kdsm_coherence *coherence, struct kdsm_miss *miss)
{
	struct kdsm_block *block = miss->block;
	int err;

	kdsm_block_learn(coherence, block);
	miss->ask = block->ask;
	block->ask = false;
	miss->known = !miss->ask && kdsm_block_writer_known(coherence, block);
	miss->here = false;
	miss->renewed = false;
	miss->whole = block->whole;
	miss->changing = kdsm_miss_expects_change(coherence, block);
	miss->have = block->wts;
	miss->merge = block->twin;
	miss->from = block->writer;
	miss->wts = block->wanted;
	miss->rts = block->wanted;
	miss->need = kdsm_block_need(coherence, block);
	miss->wanted = block->wanted;
	mutex_unlock(&block->lock);
	if (miss->known)
		err = kdsm_miss_from_writer(coherence, miss);
	else
		err = kdsm_miss_from_owner(coherence, miss);
	mutex_lock(&block->lock);
	if (err && miss->known) {
		block->writer = KDSM_NOBODY;
		return 1;
	}
	/* Evicted since this node heard where it is: ask again */
	if (err == -ESTALE && !READ_ONCE(coherence->outcast)) {
		block->ask |= miss->ask;
		return 1;
	}
	if (!err)
		err = kdsm_miss_settle(coherence, miss);
	block->ask |= err && miss->ask;
	if (err)
		return err;
	if (miss->ask)
		kdsm_block_tell(coherence, block, miss->from, miss->wts);
	if (miss->known)
		kdsm_coherence_count(coherence, FAST_READS, 1);
	else
		kdsm_coherence_count(coherence, SLOW_READS, 1);
	if (miss->renewed)
		kdsm_coherence_count(coherence, RENEWALS, 1);
	kdsm_miss_note(coherence, block, miss);
	return !kdsm_block_brought(coherence, block, miss->here ? KDSM_NOBODY : miss->from,
				   miss->wts, miss->rts);
}

static int kdsm_block_read_miss(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_miss miss = { .block = block };
	int err;

	do {
		err = kdsm_miss_try(coherence, &miss);
	} while (err > 0);
	kdsm_bounce_free(miss.bounce);
	return err;
}

/* ---- access ---- */

/*
 * Make a readable block writable and add it to the write set. An owner needs no twin. But an owner
 * of a block that nobody has written may have no frame for it: allocate the frame now, because a
 * release must not publish a block without content.
 */
static int kdsm_block_upgrade(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	int err = 0;

	if (kdsm_block_is_owned(block))
		err = PTR_ERR_OR_ZERO(kdsm_block_page(coherence, coherence->frames, block, 0));
	else if (!block->twin)
		err = kdsm_twin_make(coherence, block);
	if (err)
		return err;
	WRITE_ONCE(block->state, KDSM_BLOCK_WRITABLE);
	block->idle = 0;
	kdsm_block_dirty(coherence, block, true);
	kdsm_coherence_count(coherence, UPGRADES, 1);
	return 0;
}

/* See kdsm_coherence_access() */
int kdsm_release_access(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
			kdsm_map_t map, void *arg)
{
	int err = 0;

	mutex_lock(&block->lock);
	if (kdsm_block_is_leaving(coherence, block))
		err = -EBUSY;
	else if (block->state == KDSM_BLOCK_INVALID)
		err = block->busy ? -EBUSY : -EAGAIN;
	else if (write && block->state == KDSM_BLOCK_READABLE)
		err = kdsm_block_upgrade(coherence, block);
	/* Note the coming write, because the page table may lose the dirty bit before a harvest */
	if (!err && block->state == KDSM_BLOCK_WRITABLE)
		block->modified |= write;
	if (!err)
		err = map(arg, block->index, block->state == KDSM_BLOCK_WRITABLE);
	WRITE_ONCE(block->ahead, false);
	mutex_unlock(&block->lock);
	if (!err)
		kdsm_ahead_use(coherence, block, map, arg);
	return err;
}

/* See kdsm_coherence_get(). Only an acquire of this node can take the content away again. */
int kdsm_release_get(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
		     bool awaited)
{
	int err = 0;

	mutex_lock(&block->lock);
	if (block->state == KDSM_BLOCK_INVALID) {
		kdsm_block_begin(coherence, block);
		if (block->state == KDSM_BLOCK_INVALID)
			err = kdsm_block_read_miss(coherence, block);
		kdsm_block_end(coherence, block);
	}
	mutex_unlock(&block->lock);
	return err;
}

void kdsm_block_unmapped(struct kdsm_block *block)
{
	mutex_lock(&block->lock);
	/* An invalid block counts as well: its acquire may not have harvested it yet */
	if (block->dirty)
		block->modified = true;
	mutex_unlock(&block->lock);
}

void kdsm_coherence_unmapped(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	struct kdsm_block *block;
	u64 i;

	/* Policy strict has no write set */
	if (coherence->is_strict)
		return;
	for (i = first; (block = kdsm_block_dirty_next(coherence, &i, last)); i++) {
		kdsm_block_unmapped(block);
		kdsm_block_put(coherence, block);
	}
}
