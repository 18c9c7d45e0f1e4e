// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: an acquire. Copies that may lack what the signature tells of
 * become invalid, and are unmapped in ranges, one flush of TLBs each.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "coherence.h"
#include "vm.h"

/* Neighbours that are unmapped together. */
#define KDSM_RUN_MAX	4096U

/* Blocks that became invalid, to be unmapped. */
struct kdsm_victims {
	struct kdsm_victim {
		struct kdsm_block *block;
		bool writable;		/* was */
	} *list;
	size_t count, room;
};

static int kdsm_victims_add(struct kdsm_victims *victims, struct kdsm_block *block)
{
	struct kdsm_victim *list;

	if (victims->count == victims->room) {
		size_t room = max_t(size_t, 64, 2 * victims->room);

		list = kvmalloc_array(room, sizeof(*list), GFP_KERNEL);
		if (!list)
			return -ENOMEM;
		if (victims->count)
			memcpy(list, victims->list, victims->count * sizeof(*list));
		kvfree(victims->list);
		victims->list = list;
		victims->room = room;
	}
	list = &victims->list[victims->count++];
	list->block = block;
	list->writable = block->state == KDSM_BLOCK_WRITABLE;
	return 0;
}

/*
 * The copy is too old. What was written in it stays, and is merged when the block
 * is next read or released. The twin of a copy without writes is of no use: it
 * was kept for whom the block was handed to, who is done with it (see
 * kdsm_release_handover()).
 */
static int kdsm_block_invalidate(struct kdsm_coherence *coherence, struct kdsm_block *block,
				 struct kdsm_victims *victims)
{
	int err;

	lockdep_assert_held(&block->lock);
	err = kdsm_victims_add(victims, block);
	if (err)
		return err;
	if (block->state != KDSM_BLOCK_WRITABLE)
		block->twin = false;
	block->state = KDSM_BLOCK_INVALID;
	kdsm_block_cached(coherence, block, false);
	kdsm_coherence_count(coherence, INVALIDATIONS, 1);
	return 0;
}

/* Somebody wrote these blocks. What this node owns has that in it. */
static int kdsm_acquire_notice(struct kdsm_coherence *coherence,
			       const struct kdsm_notice *notice,
			       struct kdsm_victims *victims)
{
	struct kdsm_block *block;
	int err = 0;
	u64 i;

	for (i = notice->first; i < notice->first + notice->count && !err; i++) {
		block = kdsm_block(coherence, i);
		if (!block)
			return -ENOMEM;
		mutex_lock(&block->lock);
		if (!kdsm_block_is_owned(block) && notice->ts > block->wts &&
		    notice->ts > block->wanted) {
			if (block->state != KDSM_BLOCK_INVALID)
				err = kdsm_block_invalidate(coherence, block, victims);
			if (!err) {
				block->wanted = notice->ts;
				block->writer = notice->writer;
			}
		}
		mutex_unlock(&block->lock);
	}
	return err;
}

/* Copies that are good until less than floor are not good any more. */
static int kdsm_acquire_floor(struct kdsm_coherence *coherence, u64 floor,
			      struct kdsm_victims *victims)
{
	struct kdsm_block *block;
	LIST_HEAD(seen);
	int err = 0;

	/* Each once: it goes to seen, or out of the list. */
	spin_lock(&coherence->lock);
	while (!list_empty(&coherence->cached) && !err) {
		block = list_first_entry(&coherence->cached, struct kdsm_block, cached);
		list_move_tail(&block->cached, &seen);
		spin_unlock(&coherence->lock);
		mutex_lock(&block->lock);
		if (block->state != KDSM_BLOCK_INVALID && !kdsm_block_is_owned(block) &&
		    block->rts < floor)
			err = kdsm_block_invalidate(coherence, block, victims);
		mutex_unlock(&block->lock);
		spin_lock(&coherence->lock);
	}
	list_splice_tail(&seen, &coherence->cached);
	spin_unlock(&coherence->lock);
	return err;
}

static int kdsm_victim_compare(const void *a, const void *b)
{
	const struct kdsm_victim *one = a, *other = b;

	return one->block->index < other->block->index ? -1 :
	       one->block->index > other->block->index;
}

/*
 * Before they are unmapped, n neighbours: which of them were modified? The others
 * leave the write set.
 */
static void kdsm_victims_harvest(struct kdsm_coherence *coherence,
				 struct kdsm_victim *victims, size_t n)
{
	unsigned int pages = kdsm_block_size(coherence) >> PAGE_SHIFT;
	u64 offset = kdsm_block_offset(coherence, victims->block);
	u64 length = n * kdsm_block_size(coherence);
	unsigned long *bitmap;
	size_t i;

	bitmap = kvcalloc(BITS_TO_LONGS(n * pages), sizeof(long), GFP_KERNEL);
	kdsm_vm_protect(coherence->region, offset, length);
	if (bitmap)
		kdsm_vm_harvest(coherence->region, offset, length, bitmap);
	for (i = 0; i < n; i++) {
		struct kdsm_block *block = victims[i].block;

		if (!victims[i].writable)
			continue;
		mutex_lock(&block->lock);
		if (!bitmap ||
		    find_next_bit(bitmap, (i + 1) * pages, i * pages) < (i + 1) * pages)
			block->modified = true;
		if (!block->modified && block->state == KDSM_BLOCK_INVALID) {
			block->twin = false;
			kdsm_block_dirty(coherence, block, false);
		}
		mutex_unlock(&block->lock);
	}
	kvfree(bitmap);
}

/*
 * A block that was brought back and written before its range is unmapped loses
 * the page table's note of that: it counts as modified. No release can miss that
 * in between, as the fence is held.
 */
static void kdsm_victims_unmap(struct kdsm_coherence *coherence,
			       struct kdsm_victims *victims)
{
	size_t i, n;

	sort(victims->list, victims->count, sizeof(*victims->list), kdsm_victim_compare, NULL);
	for (i = 0; i < victims->count; i += n) {
		struct kdsm_victim *victim = &victims->list[i];
		u64 first = victim->block->index;
		bool writable = victim->writable;

		for (n = 1; i + n < victims->count && n < KDSM_RUN_MAX; n++) {
			if (victim[n].block->index != first + n)
				break;
			writable |= victim[n].writable;
		}
		if (writable)
			kdsm_victims_harvest(coherence, victim, n);
		kdsm_vm_unmap(coherence->region, first << coherence->block_shift,
			      n << coherence->block_shift);
		kdsm_coherence_count(coherence, FLUSHES, 1);
		kdsm_coherence_unmapped(coherence, first, first + n - 1);
	}
}

int kdsm_release_acquire(struct kdsm_coherence *coherence,
			 const struct kdsm_signature *signature)
{
	struct kdsm_victims victims = {};
	unsigned int i;
	u64 clock;
	int err = 0;

	clock = signature->floor;
	for (i = 0; i < signature->count; i++)
		clock = max(clock, signature->notices[i].ts);
	if (clock > KDSM_CLOCK_MAX)
		return -EINVAL;

	mutex_lock(&coherence->fence);
	/*
	 * The floor and the clock first: who brings content from now on looks at
	 * them, so that it is good enough.
	 */
	spin_lock(&coherence->lock);
	coherence->clock = max(coherence->clock, clock);
	kdsm_signature_merge(&coherence->signature, signature);
	clock = coherence->signature.floor;
	spin_unlock(&coherence->lock);
	for (i = 0; i < signature->count && !err; i++)
		if (signature->notices[i].writer != coherence->node)
			err = kdsm_acquire_notice(coherence, &signature->notices[i], &victims);
	if (!err)
		err = kdsm_acquire_floor(coherence, clock, &victims);
	kdsm_victims_unmap(coherence, &victims);
	mutex_unlock(&coherence->fence);
	kvfree(victims.list);
	return err;
}
