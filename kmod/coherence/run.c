// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: runs of neighbouring blocks. The mappings of a run are changed together,
 * with one TLB flush. And the harvest of dirty bits, of a run or of one block.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "internal.h"

/* Maximum length of a run, in blocks */
#define KDSM_RUN_MAX	4096U

struct kdsm_picked *kdsm_picks_add(struct kdsm_picks *picks, struct kdsm_block *block)
{
	struct kdsm_picked *list;

	if (picks->count == picks->room) {
		size_t room = max_t(size_t, 64, 2 * picks->room);

		list = kvmalloc_array(room, sizeof(*list), GFP_KERNEL);
		if (!list)
			return NULL;
		if (picks->count)
			memcpy(list, picks->list, picks->count * sizeof(*list));
		kvfree(picks->list);
		picks->list = list;
		picks->room = room;
	}
	list = &picks->list[picks->count++];
	*list = (struct kdsm_picked) { .block = block };
	return list;
}

void kdsm_picks_free(struct kdsm_coherence *coherence, struct kdsm_picks *picks)
{
	size_t i;

	for (i = 0; i < picks->count; i++)
		kdsm_block_put(coherence, picks->list[i].block);
	kvfree(picks->list);
}

static int kdsm_picked_compare(const void *a, const void *b)
{
	const struct kdsm_picked *one = a, *other = b;

	return one->block->index < other->block->index ? -1 :
	       one->block->index > other->block->index;
}

/* Most lists are in order already, because programs write and fetch blocks in order. */
void kdsm_picked_sort(struct kdsm_picked *picked, size_t count)
{
	size_t i;

	for (i = 1; i < count; i++)
		if (kdsm_picked_compare(&picked[i - 1], &picked[i]) > 0)
			break;
	if (i < count)
		sort(picked, count, sizeof(*picked), kdsm_picked_compare, NULL);
}

size_t kdsm_run_length(const struct kdsm_coherence *coherence, const struct kdsm_picked *picked,
		       size_t count)
{
	u64 first = picked->block->index, most;
	size_t n = 1;

	most = min_t(u64, KDSM_RUN_MAX, kdsm_segment_end(coherence, first) - first);
	while (n < count && n < most && picked[n].block->index == first + n)
		n++;
	return n;
}

int kdsm_block_harvest(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	u64 size = kdsm_block_size(coherence, block->index);
	unsigned long *bitmap;

	lockdep_assert_held(&block->lock);
	bitmap = bitmap_zalloc(size >> PAGE_SHIFT, GFP_KERNEL);
	if (!bitmap)
		return -ENOMEM;
	if (kdsm_pages_harvest(coherence, kdsm_block_offset(coherence, block->index), size,
			       bitmap)) {
		block->modified = true;
		kdsm_coherence_count(coherence, FLUSHES, 1);
	}
	bitmap_free(bitmap);
	return 0;
}

bool kdsm_block_in_doubt(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&block->lock);
	if (!block->dirty)
		return false;
	if (kdsm_block_harvest(coherence, block) || block->modified)
		return true;
	/* Pairs with smp_mb() in kdsm_run_harvest(), which has cleared the bits missing here */
	smp_mb();
	return READ_ONCE(coherence->harvesting);
}

int kdsm_run_harvest(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
		     size_t n)
{
	u64 size = kdsm_block_size(coherence, run->block->index);
	unsigned long pages = size >> PAGE_SHIFT, end;
	unsigned long *bitmap;
	size_t i;

	bitmap = kvcalloc(BITS_TO_LONGS(n * pages), sizeof(long), GFP_KERNEL);
	if (!bitmap)
		return -ENOMEM;
	WRITE_ONCE(coherence->harvesting, true);
	smp_mb();	/* before dirty bits are cleared; pairs with kdsm_block_in_doubt() */
	if (!kdsm_pages_harvest(coherence, kdsm_block_offset(coherence, run->block->index),
				n * size, bitmap))
		goto done;
	kdsm_coherence_count(coherence, FLUSHES, 1);
	for (i = 0; i < n; i++) {
		struct kdsm_block *block = run[i].block;

		end = (i + 1) * pages;
		if (find_next_bit(bitmap, end, i * pages) == end)
			continue;
		mutex_lock(&block->lock);
		block->modified = true;
		mutex_unlock(&block->lock);
	}
done:
	/* All blocks are marked; a task that holds a block's lock and sees this sees the mark */
	smp_store_release(&coherence->harvesting, false);
	kvfree(bitmap);
	return 0;
}
