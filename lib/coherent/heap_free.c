// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Freeing memory that another node may allocate next: the freeing node must release the
 * region first. Frees are postponed and share one release, because a release for each
 * object would complete the writes to a block once for each object in the block.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"

static bool is_run(const struct kd_pending *pending)
{
	return kd_heap_kind(pending->desc) == KD_HEAP_LARGE;
}

static int by_place(const void *one, const void *other)
{
	const struct kd_pending *a = one, *b = other;

	if (a->chunk != b->chunk)
		return a->chunk < b->chunk ? -1 : 1;
	return (a->slot > b->slot) - (a->slot < b->slot);
}

/* Release the region for all pending frees, and raise the floors at the homes. */
static int publish(struct kdsm_heap *heap)
{
	unsigned int i, home, last, told = ~0U;
	uint64_t floor;
	int ret;

	ret = kd_heap_release(heap, &floor);
	for (i = 0; i < heap->pending_count && !ret; i++) {
		const struct kd_pending *pending = &heap->pending[i];

		home = kd_heap_home(heap, pending->chunk);
		last = home;
		if (is_run(pending))
			last = kd_heap_home(heap, pending->chunk +
					    kd_heap_length(pending->desc) - 1);
		for (; home <= last && !ret; home++)
			if (home != told)
				ret = kd_heap_raise(heap, home, floor);
		told = last;
	}
	return ret;
}

/* Words of the freed bitmaps, with the bits to set in each */
struct marks {
	struct kdsm_op ops[KD_HEAP_PENDING];
	uint64_t bits[KD_HEAP_PENDING];
	unsigned int count;
};

/* Returns -EINVAL if a slot is pending twice. */
static int collect(const struct kdsm_heap *heap, struct marks *marks)
{
	uint64_t chunk = ~0ULL, word = ~0ULL, bit;
	unsigned int i;
	int error = 0;

	marks->count = 0;
	for (i = 0; i < heap->pending_count; i++) {
		const struct kd_pending *pending = &heap->pending[i];

		if (is_run(pending))
			continue;
		if (pending->chunk != chunk || pending->slot / 64 != word) {
			chunk = pending->chunk;
			word = pending->slot / 64;
			marks->ops[marks->count] =
				kdsm_op_cas(kd_heap_home(heap, chunk),
					    kd_heap_freed_place(heap, chunk, word), 0, 0);
			marks->bits[marks->count++] = 0;
		}
		bit = 1ULL << pending->slot % 64;
		if (marks->bits[marks->count - 1] & bit)
			error = -EINVAL;
		marks->bits[marks->count - 1] |= bit;
		marks->ops[marks->count - 1].operand = marks->bits[marks->count - 1];
	}
	return error;
}

/*
 * Set the bits of all words with one vector of compare-and-swaps, and retry the words that
 * had another value than expected. Returns -EINVAL if a slot had been freed before. If a
 * compare-and-swap fails with an error, the caller cannot know whether it took effect, and
 * setting a bit twice could free the slot's next object. So mark() does not retry this word,
 * and its slots may be lost.
 */
static int mark(struct kdsm_heap *heap, struct marks *marks)
{
	unsigned int i, left;
	int error = 0;

	while (marks->count) {
		kdsm_vector(heap->sync, marks->ops, marks->count);
		for (i = 0, left = 0; i < marks->count; i++) {
			struct kdsm_op *op = &marks->ops[i];

			if (op->status && !error)
				error = op->status;
			if (op->status || op->result == op->compare)
				continue;
			if (op->result & marks->bits[i])
				error = -EINVAL;
			op->compare = op->result;
			op->operand = op->result | marks->bits[i];
			marks->bits[left] = marks->bits[i];
			marks->ops[left++] = *op;
		}
		marks->count = left;
	}
	return error;
}

/* Perform the postponed frees. Caller holds heap->lock. If publish() fails, all stay pending. */
static int flush(struct kdsm_heap *heap)
{
	struct marks marks;
	unsigned int i;
	int ret, error;

	if (!heap->pending_count)
		return 0;
	qsort(heap->pending, heap->pending_count, sizeof(heap->pending[0]), by_place);
	ret = publish(heap);
	if (ret)
		return ret;
	error = collect(heap, &marks);
	ret = mark(heap, &marks);
	ret = ret ? ret : error;
	for (i = 0; i < heap->pending_count; i++) {
		if (!is_run(&heap->pending[i]))
			continue;
		error = kd_run_finish(heap, heap->pending[i].desc, heap->pending[i].chunk);
		ret = ret ? ret : error;
	}
	heap->pending_count = 0;
	heap->pending_bytes = 0;
	return ret;
}

int kd_free_flush(struct kdsm_heap *heap, bool *any)
{
	int ret;

	kd_mutex_lock(&heap->lock);
	*any = heap->pending_count;
	ret = flush(heap);
	kd_mutex_unlock(&heap->lock);
	return ret;
}

/*
 * Flush when the list is full, when the pending objects make up 1/64 of the heap, and
 * always in debug mode.
 */
static bool must_flush(const struct kdsm_heap *heap)
{
	return heap->pending_count == KD_HEAP_PENDING || (heap->flags & KDSM_HEAP_DEBUG) ||
	       heap->pending_bytes >= heap->layout.chunks * heap->layout.chunk / 64;
}

static int add(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk, uint64_t slot, bool *freed)
{
	bool large = kd_heap_kind(desc) == KD_HEAP_LARGE;
	int ret = 0;

	/* The list is still full because the last flush failed. */
	if (heap->pending_count == KD_HEAP_PENDING)
		ret = flush(heap);
	if (!ret && large)
		ret = kd_run_leave(heap, desc, chunk);
	if (ret)
		return ret;
	heap->pending[heap->pending_count++] = (struct kd_pending){ desc, chunk, slot };
	*freed = true;
	heap->pending_bytes += large ? kd_heap_length(desc) * heap->layout.chunk :
				       kd_slot_size(kd_heap_class(desc));
	if (must_flush(heap))
		ret = flush(heap);
	/*
	 * If the release failed, all objects are still pending, this one included, and a later
	 * flush frees them. So this free has succeeded.
	 */
	return heap->pending_count ? 0 : ret;
}

int kd_free_later(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk, uint64_t slot,
		  bool *freed)
{
	int ret;

	kd_mutex_lock(&heap->lock);
	ret = add(heap, desc, chunk, slot, freed);
	kd_mutex_unlock(&heap->lock);
	return ret;
}
