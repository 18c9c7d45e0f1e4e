// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: runs of neighbouring blocks. The mappings of a run are changed together,
 * with one TLB flush.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "internal.h"

/* Maximum length of a run, in blocks */
#define KDSM_RUN_MAX	4096U

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

size_t kdsm_run_length(const struct kdsm_picked *picked, size_t count)
{
	size_t n = 1;

	while (n < count && n < KDSM_RUN_MAX &&
	       picked[n].block->index == picked->block->index + n)
		n++;
	return n;
}

int kdsm_run_harvest(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
		     size_t n)
{
	unsigned long pages = kdsm_block_size(coherence) >> PAGE_SHIFT, end;
	unsigned long *bitmap;
	size_t i;

	bitmap = kvcalloc(BITS_TO_LONGS(n * pages), sizeof(long), GFP_KERNEL);
	if (!bitmap)
		return -ENOMEM;
	if (!kdsm_pages_harvest(coherence, kdsm_block_offset(coherence, run->block),
				n * kdsm_block_size(coherence), bitmap))
		goto free;
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
free:
	kvfree(bitmap);
	return 0;
}
