// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: an acquire. Copies that may lack writes covered by the signature become
 * invalid. They are unmapped in ranges, with one TLB flush each.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "internal.h"

/*
 * Invalidate a copy that is too old. Unreleased writes in the copy stay, and are merged
 * when the block is next read or released. This node needs no twin of a copy without writes.
 * The memory of the twin stays unchanged, for a node that the block was handed over to and that
 * has not read the twin yet (see kdsm_release_handover()).
 */
static int kdsm_block_invalidate(struct kdsm_coherence *coherence, struct kdsm_block *block,
				 struct kdsm_picks *victims)
{
	struct kdsm_picked *victim;

	lockdep_assert_held(&block->lock);
	victim = kdsm_picks_add(victims, block);
	if (!victim)
		return -ENOMEM;
	kdsm_block_hold(coherence, block);
	victim->writable = block->state == KDSM_BLOCK_WRITABLE;
	if (block->state != KDSM_BLOCK_WRITABLE)
		block->twin = false;
	WRITE_ONCE(block->state, KDSM_BLOCK_INVALID);
	kdsm_block_cached(coherence, block, false);
	kdsm_coherence_count(coherence, INVALIDATIONS, 1);
	return 0;
}

/*
 * Invalidate a copy if it may lack what a notice demands. A summary, which names no writer, is a
 * floor of its blocks, so it is compared with rts. A copy with a smaller rts may still be current,
 * because perhaps no node wrote the block: whole stays set, so that the owner can renew the copy.
 */
static int kdsm_copy_check(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts,
			   bool is_summary, struct kdsm_picks *victims)
{
	int err = 0;

	kdsm_coherence_count(coherence, LOOKED, 1);
	mutex_lock(&block->lock);
	if (block->state != KDSM_BLOCK_INVALID && !kdsm_block_is_owned(block) &&
	    ts > (is_summary ? block->rts : block->wts)) {
		err = kdsm_block_invalidate(coherence, block, victims);
		block->whole &= err || is_summary;
	}
	mutex_unlock(&block->lock);
	return err;
}

/* Invalidate the copies here that lack what a notice names */
static int kdsm_acquire_notice(struct kdsm_coherence *coherence,
			       const struct kdsm_notice *notice, struct kdsm_picks *victims)
{
	u64 i = notice->first, last = notice->first + notice->count - 1;
	struct kdsm_block *block;
	int err = 0;

	for (; !err && (block = kdsm_block_next(coherence, &i, last)); i++) {
		if (kdsm_notice_writer(notice, i) != coherence->node)
			err = kdsm_copy_check(coherence, block, notice->ts,
					      kdsm_notice_is_summary(notice), victims);
		kdsm_block_put(coherence, block);
	}
	return err;
}

/*
 * Compare the copies in a range with the summaries in the node's own signature. The summaries were
 * made after the last acquire, and may demand more than the notices that it looked at.
 */
static int kdsm_acquire_raised(struct kdsm_coherence *coherence, struct kdsm_raised range,
			       struct kdsm_picks *victims)
{
	u64 i = range.first, floor;
	struct kdsm_block *block;
	int err = 0;

	for (; !err && range.end && (block = kdsm_block_next(coherence, &i, range.end - 1)); i++) {
		spin_lock(&coherence->lock);
		floor = kdsm_signature_floor(&coherence->signature, i);
		spin_unlock(&coherence->lock);
		err = kdsm_copy_check(coherence, block, floor, true, victims);
		kdsm_block_put(coherence, block);
	}
	return err;
}

/* Invalidate the copy of a block if it ends below floor */
static int kdsm_lease_end(struct kdsm_coherence *coherence, u64 index, u64 floor,
			  struct kdsm_picks *victims)
{
	struct kdsm_block *block = kdsm_block_find(coherence, index);
	int err = 0;

	if (!block)
		return 0;
	mutex_lock(&block->lock);
	/* Else another task took the block, or has fetched it again */
	if (block->cached && block->rts < floor)
		err = kdsm_block_invalidate(coherence, block, victims);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

/* Look at the copies of a lease. *rts becomes the smallest that stays valid, or U64_MAX. */
static int kdsm_lease_walk(struct kdsm_coherence *coherence, const struct kdsm_lease *lease,
			   u64 floor, struct kdsm_picks *victims, u64 *rts)
{
	bool is_whole = lease == &coherence->leases.whole;
	u64 last = is_whole ? coherence->blocks - 1 : lease->first + KDSM_LEASE_BLOCKS - 1, i;
	struct kdsm_glance glance;
	int err = 0;

	*rts = U64_MAX;
	for (i = lease->first; !err && kdsm_block_glance(coherence, &i, last, &glance); i++) {
		kdsm_coherence_count(coherence, LOOKED, 1);
		if (glance.cached && glance.rts < floor)
			err = kdsm_lease_end(coherence, i, floor, victims);
		else if (glance.cached && is_whole)
			kdsm_lease_cover(coherence, i, glance.rts);	/* memory may be back */
		else if (glance.cached)
			*rts = min(*rts, glance.rts);
	}
	return err;
}

/* Invalidate the copies whose validity ends below floor. -ENOMEM. */
static int kdsm_acquire_floor(struct kdsm_coherence *coherence, u64 floor,
			      struct kdsm_picks *victims)
{
	struct kdsm_lease *lease;
	int err = 0;
	u64 rts;

	lockdep_assert_held(&coherence->fence);
	while (!err && (lease = kdsm_lease_take(coherence, floor))) {
		err = kdsm_lease_walk(coherence, lease, floor, victims, &rts);
		kdsm_lease_put(coherence, lease, err ? 0 : rts);
	}
	return err;
}

/*
 * Merge a signature into that of the node. Sets the bits of the notices that are news. Copies need
 * not be compared with the others: these are below the floor, or an earlier acquire merged them, or
 * newer notices of the same blocks, and looked at the copies then. Caller holds coherence->fence.
 * Returns the range of blocks whose copies no acquire has compared with the summaries of the node.
 */
static struct kdsm_raised kdsm_acquire_merge(struct kdsm_coherence *coherence,
					     const struct kdsm_signature *signature, u64 clock,
					     unsigned long *news)
{
	const struct kdsm_notice *notice;
	struct kdsm_raised raised;
	unsigned int i;

	spin_lock(&coherence->lock);
	WRITE_ONCE(coherence->clock, max(coherence->clock, clock));
	kdsm_signature_raise(&coherence->signature, signature->floor);
	for (i = 0; i < signature->count; i++) {
		notice = &signature->notices[i];
		if (kdsm_signature_add(&coherence->signature, notice, &coherence->raised))
			__set_bit(i, news);
	}
	raised = coherence->raised;
	coherence->raised.end = 0;
	spin_unlock(&coherence->lock);
	return raised;
}

static int kdsm_news_compare(const void *a, const void *b, const void *notices)
{
	const struct kdsm_notice *one = (const struct kdsm_notice *)notices + *(const u8 *)a;
	const struct kdsm_notice *other = (const struct kdsm_notice *)notices + *(const u8 *)b;

	return one->first < other->first ? -1 : one->first > other->first;
}

/*
 * Look at the copies that the news are about, in order of their blocks: to sort the notices, and
 * not the victims, saves half of the instructions.
 */
static int kdsm_acquire_news(struct kdsm_coherence *coherence,
			     const struct kdsm_signature *signature, const unsigned long *news,
			     struct kdsm_raised raised, struct kdsm_picks *victims)
{
	u64 floor = READ_ONCE(coherence->signature.floor);
	u8 order[KDSM_NOTICES_MAX];
	unsigned int i, count = 0;
	int err;

	BUILD_BUG_ON(KDSM_NOTICES_MAX > 256);
	for_each_set_bit(i, news, KDSM_NOTICES_MAX)
		order[count++] = i;
	sort_r(order, count, sizeof(*order), kdsm_news_compare, NULL, signature->notices);
	for (i = 0; i < count; i++) {
		err = kdsm_acquire_notice(coherence, &signature->notices[order[i]], victims);
		if (err)
			return err;
	}
	err = kdsm_acquire_raised(coherence, raised, victims);
	return err ?: kdsm_acquire_floor(coherence, floor, victims);
}

/* Look at all copies, after an acquire that lacked memory has ended before it saw all of them */
static int kdsm_acquire_all(struct kdsm_coherence *coherence, struct kdsm_picks *victims)
{
	const u64 last = coherence->blocks - 1;
	const struct kdsm_notice *notice;
	struct kdsm_block *block;
	bool is_summary;
	int err = 0;
	u64 i, ts;

	for (i = 0; !err && (block = kdsm_block_next(coherence, &i, last)); i++) {
		spin_lock(&coherence->lock);
		notice = kdsm_signature_find(&coherence->signature, i, coherence->node);
		ts = notice ? notice->ts : 0;
		is_summary = notice && kdsm_notice_is_summary(notice);
		spin_unlock(&coherence->lock);
		err = kdsm_copy_check(coherence, block, ts, is_summary, victims);
		kdsm_block_put(coherence, block);
	}
	/* Notices that no longer are in the signature are below its floor */
	return err ?: kdsm_acquire_floor(coherence, READ_ONCE(coherence->signature.floor), victims);
}

/*
 * Find which blocks of a run were modified, before the run is unmapped. Unmodified blocks
 * leave the write set.
 */
static void kdsm_run_retire(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
			    size_t n)
{
	size_t i;
	int err;

	kdsm_pages_protect(coherence, kdsm_block_offset(coherence, run->block->index),
			   n * kdsm_block_size(coherence, run->block->index));
	err = kdsm_run_harvest(coherence, run, n);
	for (i = 0; i < n; i++) {
		struct kdsm_block *block = run[i].block;

		if (!run[i].writable)
			continue;
		mutex_lock(&block->lock);
		if (err)
			block->modified = true;		/* unknown, so assume it */
		if (!block->modified && block->state == KDSM_BLOCK_INVALID) {
			block->twin = false;
			kdsm_block_dirty(coherence, block, false);
		}
		mutex_unlock(&block->lock);
	}
}

/*
 * Unmap the blocks that became invalid. A block that is fetched again and written before its
 * range is unmapped loses the dirty bit with the mapping, and therefore counts as modified. No
 * release can miss the write in between, because the caller holds coherence->fence.
 */
static void kdsm_victims_unmap(struct kdsm_coherence *coherence,
			       struct kdsm_picks *victims)
{
	size_t i, j, n;

	kdsm_picked_sort(victims->list, victims->count);
	for (i = 0; i < victims->count; i += n) {
		struct kdsm_picked *run = &victims->list[i];

		n = kdsm_run_length(coherence, run, victims->count - i);
		for (j = 0; j < n && !run[j].writable; j++)
			;
		if (j < n)
			kdsm_run_retire(coherence, run, n);
		kdsm_pages_unmap(coherence, kdsm_block_offset(coherence, run->block->index),
				 n * kdsm_block_size(coherence, run->block->index));
		kdsm_coherence_count(coherence, FLUSHES, 1);
		for (j = 0; j < n; j++)
			kdsm_block_unmapped(run[j].block);
	}
}

/* Unmap what the acquire found, and say that it has ended. From then on atomics rely on it. */
static void kdsm_acquire_end(struct kdsm_coherence *coherence, u64 floor,
			     struct kdsm_picks *victims, int err)
{
	coherence->behind = err;
	kdsm_victims_unmap(coherence, victims);
	if (err || floor <= coherence->acquired)
		return;
	/* Pairs with smp_load_acquire() in kdsm_atomic_acquires() */
	smp_store_release(&coherence->acquired, floor);
}

int kdsm_acquire_until(struct kdsm_coherence *coherence, u64 floor)
{
	struct kdsm_picks victims = {};
	int err;

	lockdep_assert_held(&coherence->fence);
	spin_lock(&coherence->lock);
	WRITE_ONCE(coherence->clock, max(coherence->clock, floor));
	kdsm_signature_raise(&coherence->signature, floor);
	spin_unlock(&coherence->lock);
	if (coherence->behind)
		err = kdsm_acquire_all(coherence, &victims);
	else
		err = kdsm_acquire_floor(coherence, floor, &victims);
	kdsm_acquire_end(coherence, floor, &victims, err);
	kdsm_picks_free(coherence, &victims);
	return err;
}

int kdsm_release_acquire(struct kdsm_coherence *coherence,
			 const struct kdsm_signature *signature)
{
	DECLARE_BITMAP(news, KDSM_NOTICES_MAX) = {};
	struct kdsm_picks victims = {};
	struct kdsm_raised raised;
	unsigned int writer;
	u64 clock;
	int err;

	clock = kdsm_signature_newest(signature, &writer);
	if (clock > KDSM_CLOCK_MAX)
		return -EINVAL;

	mutex_lock(&coherence->fence);
	/* Merge first: a task that fetches content from now on checks it against the result */
	raised = kdsm_acquire_merge(coherence, signature, clock, news);
	if (coherence->behind)
		err = kdsm_acquire_all(coherence, &victims);
	else
		err = kdsm_acquire_news(coherence, signature, news, raised, &victims);
	kdsm_acquire_end(coherence, signature->floor, &victims, err);
	mutex_unlock(&coherence->fence);
	kdsm_picks_free(coherence, &victims);
	return err;
}

/* ---- blocks of a range ---- */

/*
 * Have the next access to the block ask its owner. The frame may still be current, so the owner may
 * renew the copy. A read miss in flight does not count: see kdsm_block_brought().
 */
static int kdsm_block_refresh(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      struct kdsm_picks *victims)
{
	int err = 0;

	kdsm_coherence_count(coherence, LOOKED, 1);
	mutex_lock(&block->lock);
	if (!kdsm_block_is_owned(block)) {
		block->ask = true;
		if (block->state != KDSM_BLOCK_INVALID)
			err = kdsm_block_invalidate(coherence, block, victims);
	} else if (block->wts == block->from_wts) {
		/* The last takeover may have brought writes that no notice has named */
		kdsm_block_tell(coherence, block, coherence->node, block->wts);
	}
	mutex_unlock(&block->lock);
	return err;
}

/*
 * Blocks that are missing in the table have no copy here, but what notices or stamps promise of
 * them may be older than what was released. So they ask their owner when they enter the table; see
 * kdsm_block_get().
 */
int kdsm_release_refresh(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	struct kdsm_picks victims = {};
	struct kdsm_block *block;
	int err = 0;
	u64 i;

	mutex_lock(&coherence->fence);
	xa_lock(&coherence->table);
	coherence->ask_first = coherence->ask_end ? min(coherence->ask_first, first) : first;
	coherence->ask_end = max(coherence->ask_end, last + 1);
	xa_unlock(&coherence->table);
	for (i = first; !err && (block = kdsm_block_next(coherence, &i, last)); i++) {
		err = kdsm_block_refresh(coherence, block, &victims);
		kdsm_block_put(coherence, block);
	}
	kdsm_victims_unmap(coherence, &victims);
	mutex_unlock(&coherence->fence);
	kdsm_picks_free(coherence, &victims);
	return err;
}
