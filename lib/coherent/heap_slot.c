// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small objects of the heap: slots of one size in a chunk, one bit for each slot.
 *
 * One node allocates from a chunk. It takes a slot by setting the slot's bit in used, and
 * frees a slot by clearing this bit. To free a slot, another node sets the slot's bit in
 * freed, after it has released the region (heap_free.c). An allocator that finds no room
 * clears bits in freed, which makes these slots its own; then it acquires the releases; and
 * then it clears the same bits in used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define BATCH	64	/* number of bitmap words that are read together */
#define LOOKS	16	/* number of chunks to try while free chunks exist */

/* ---- classes: 16 bytes apart up to 128, then four to each power of two ---- */

unsigned int kd_slot_class(uint64_t size)
{
	unsigned int group;
	uint64_t base;

	if (size <= 128)
		return size ? (size - 1) / KD_HEAP_GRAIN : 0;
	group = 63 - __builtin_clzll(size - 1) - 7;
	base = 128ULL << group;
	return 8 + 4 * group + (size - 1 - base) / (base / 4);
}

uint64_t kd_slot_size(unsigned int class)
{
	uint64_t base;

	if (class < 8)
		return (class + 1) * KD_HEAP_GRAIN;
	base = 128ULL << (class - 8) / 4;
	return base + ((class - 8) % 4 + 1) * (base / 4);
}

uint64_t kd_slot_max(const struct kdsm_heap *heap)
{
	return heap->layout.chunk / 8;
}

static uint64_t slots_of(const struct kdsm_heap *heap, unsigned int class)
{
	return heap->layout.chunk / kd_slot_size(class);
}

/* The bits of a word that stand for slots */
static uint64_t mask_of(const struct kdsm_heap *heap, unsigned int class, uint64_t word)
{
	uint64_t left = slots_of(heap, class) - 64 * word;

	return left < 64 ? (1ULL << left) - 1 : ~0ULL;
}

/* ---- taking a slot ---- */

/* Take a slot of one word, seen being a guess of it. Returns -ENOMEM if all are taken. */
static int take_bit(struct kdsm_heap *heap, uint64_t chunk, uint64_t word,
		    uint64_t seen, uint64_t mask, unsigned int *bit)
{
	uint64_t place = kd_heap_used_place(heap, chunk, word), former;
	int ret;

	for (; ~seen & mask; seen = former) {
		*bit = __builtin_ctzll(~seen & mask);
		ret = kdsm_cas(heap->sync, kd_heap_home(heap, chunk), place, seen,
			       seen | 1ULL << *bit, &former);
		if (ret || former == seen)
			return ret;
	}
	return -ENOMEM;
}

/* Take a slot of the chunk, searching from word start on. Returns -ENOMEM if all are taken. */
static int take(struct kdsm_heap *heap, uint64_t chunk, unsigned int class,
		uint64_t start, uint64_t *offset)
{
	uint64_t total = (slots_of(heap, class) + 63) / 64, done, word, n, i;
	uint64_t seen[BATCH];
	unsigned int bit = 0;
	int ret;

	for (done = 0; done < total; done += n) {
		word = (start + done) % total;
		n = total - word < total - done ? total - word : total - done;
		n = n < BATCH ? n : BATCH;
		ret = kd_heap_glance(heap, kd_heap_home(heap, chunk),
				     kd_heap_used_place(heap, chunk, word), seen, n);
		if (ret)
			return ret;
		for (i = 0; i < n; i++) {
			ret = take_bit(heap, chunk, word + i, seen[i],
				       mask_of(heap, class, word + i), &bit);
			if (ret == -ENOMEM)
				continue;
			if (ret)
				return ret;
			*offset = chunk * heap->layout.chunk +
				  (64 * (word + i) + bit) * kd_slot_size(class);
			__atomic_store_n(&heap->hint[class], (chunk + 1) << 32 | (word + i),
					 __ATOMIC_RELAXED);
			return 0;
		}
	}
	return -ENOMEM;
}

/* ---- collecting slots that other nodes freed ---- */

/* Clear the bits of some words of freed: their slots then belong to the caller alone. */
static int claim_freed(struct kdsm_heap *heap, uint64_t chunk, uint64_t word,
		       uint64_t *bits, uint64_t count, bool *any)
{
	unsigned int home = kd_heap_home(heap, chunk);
	uint64_t i;
	int ret;

	ret = kd_heap_glance(heap, home, kd_heap_freed_place(heap, chunk, word), bits, count);
	for (i = 0; i < count; i++) {
		/* After an error, claim none of the remaining words. */
		if (!bits[i] || ret) {
			bits[i] = 0;
			continue;
		}
		ret = kd_heap_clear(heap, home, kd_heap_freed_place(heap, chunk, word + i),
				    bits[i], ~0ULL, &bits[i]);
		if (ret)
			bits[i] = 0;
		*any |= bits[i] != 0;
	}
	return ret;
}

/*
 * Clear the bits of the claimed slots in used. Without reuse, because the acquire failed, set
 * them in freed again, for a later attempt.
 */
static int settle(struct kdsm_heap *heap, uint64_t chunk, uint64_t word,
		  const uint64_t *bits, uint64_t count, bool reuse)
{
	unsigned int home = kd_heap_home(heap, chunk);
	uint64_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++) {
		if (!bits[i])
			continue;
		if (reuse)
			ret = kd_heap_clear(heap, home,
					    kd_heap_used_place(heap, chunk, word + i),
					    bits[i], bits[i], NULL);
		else
			ret = kd_heap_set(heap, home,
					  kd_heap_freed_place(heap, chunk, word + i),
					  0, bits[i], NULL);
	}
	return ret;
}

/* Make slots available that other nodes freed. Returns -ENOMEM if there are none. */
static int collect(struct kdsm_heap *heap, uint64_t chunk, unsigned int class)
{
	uint64_t total = (slots_of(heap, class) + 63) / 64, word, n;
	uint64_t bits[BATCH];
	bool found = false;
	int ret, failed;

	for (word = 0; word < total; word += n) {
		bool any = false;

		n = total - word < BATCH ? total - word : BATCH;
		ret = claim_freed(heap, chunk, word, bits, n, &any);
		if (any) {
			failed = kd_heap_catch_up(heap, kd_heap_home(heap, chunk));
			ret = ret ? ret : failed;
			failed = settle(heap, chunk, word, bits, n, !failed);
			ret = ret ? ret : failed;
		}
		if (ret)
			return ret;
		found |= any;
	}
	return found ? 0 : -ENOMEM;
}

static int take_or_collect(struct kdsm_heap *heap, uint64_t chunk, unsigned int class,
			   uint64_t *offset)
{
	int ret = take(heap, chunk, class, 0, offset);

	if (ret == -ENOMEM) {
		ret = collect(heap, chunk, class);
		if (!ret)
			ret = take(heap, chunk, class, 0, offset);
	}
	return ret;
}

/* ---- finding a chunk ---- */

/* The chunks of a home node, with their descriptors as last read */
struct share {
	uint64_t first, count;
	uint64_t *descs;
};

/*
 * Search the chunks of this node and class, beginning at start, for room. Give up after
 * looks full chunks, so that the time to allocate does not grow with the number of objects
 * while free chunks exist.
 */
static int search(struct kdsm_heap *heap, const struct share *share, unsigned int class,
		  uint64_t start, unsigned int looks, uint64_t *offset)
{
	uint64_t desc = kd_heap_desc(KD_HEAP_SMALL, class, heap->node, 0);
	uint64_t i, at;
	int ret;

	for (i = 0; i < share->count && looks; i++) {
		at = (start + i) % share->count;
		if (share->descs[at] != desc)
			continue;
		looks--;
		ret = take_or_collect(heap, share->first + at, class, offset);
		if (ret != -ENOMEM)
			return ret;
	}
	return -ENOMEM;
}

/*
 * Turn a free chunk into one of this node and class, and take a slot there. Other threads of
 * this node may take slots as soon as they see the new descriptor. So acquire the writes of
 * the chunk's former users before storing the descriptor.
 */
static int claim(struct kdsm_heap *heap, const struct share *share, unsigned int class,
		 uint64_t *offset)
{
	uint64_t desc = kd_heap_desc(KD_HEAP_SMALL, class, heap->node, 0);
	uint64_t i, chunk, place, former;
	unsigned int home;
	int ret, given;

	for (i = 0; i < share->count; i++) {
		if (share->descs[i])
			continue;
		chunk = share->first + i;
		home = kd_heap_home(heap, chunk);
		place = kd_heap_chunk_place(heap, chunk);
		ret = kdsm_cas(heap->sync, home, place, KD_HEAP_FREE, KD_HEAP_CHANGING, &former);
		if (ret)
			return ret;
		if (former != KD_HEAP_FREE)
			continue;
		ret = kd_heap_catch_up(heap, home);
		given = kdsm_cas(heap->sync, home, place, KD_HEAP_CHANGING,
				 ret ? KD_HEAP_FREE : desc, NULL);
		if (ret || given)
			return ret ? ret : given;
		return take(heap, chunk, class, 0, offset);
	}
	return -ENOMEM;
}

static bool any_free(const struct share *share)
{
	uint64_t i;

	for (i = 0; i < share->count; i++)
		if (!share->descs[i])
			return true;
	return false;
}

/* Take a slot of a chunk whose home is this node. hint: chunk + 1 to search behind, or 0. */
static int alloc_at(struct kdsm_heap *heap, unsigned int home, unsigned int class,
		    uint64_t hint, uint64_t *offset)
{
	struct share share;
	uint64_t start = 0;
	bool some;
	int ret;

	share.count = kd_heap_share(heap, home, &share.first);
	if (!share.count)
		return -ENOMEM;
	share.descs = malloc(share.count * sizeof(*share.descs));
	if (!share.descs)
		return -ENOMEM;
	ret = kd_heap_glance(heap, home, kd_heap_chunk_place(heap, share.first), share.descs,
			     share.count);
	if (!ret) {
		if (hint && kd_heap_home(heap, hint - 1) == home)
			start = hint - share.first;
		some = any_free(&share);
		ret = search(heap, &share, class, start, some ? LOOKS : ~0U, offset);
		if (ret == -ENOMEM && some)
			ret = claim(heap, &share, class, offset);
		if (ret == -ENOMEM && some)
			ret = search(heap, &share, class, start, ~0U, offset);
	}
	free(share.descs);
	return ret;
}

int kd_slot_alloc(struct kdsm_heap *heap, unsigned int class, uint64_t *offset)
{
	uint64_t hint = __atomic_load_n(&heap->hint[class], __ATOMIC_RELAXED);
	int ret = -ENOMEM, error = 0;
	unsigned int i;

	if (hint)
		ret = take(heap, (hint >> 32) - 1, class, hint & 0xffffffff, offset);
	/* Begin with this node's own chunks. Skip a node that cannot be reached. */
	for (i = 0; i < heap->nodes && ret; i++) {
		if (ret != -ENOMEM)
			error = ret;
		ret = alloc_at(heap, (heap->node + i) % heap->nodes, class, hint >> 32, offset);
	}
	return ret == -ENOMEM && error ? error : ret;
}

/* ---- freeing ---- */

int kd_slot_free(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot)
{
	uint64_t place = kd_heap_used_place(heap, chunk, slot / 64), changed, seen;
	unsigned int home = kd_heap_home(heap, chunk);
	int ret;

	ret = kd_heap_glance(heap, home, place, &seen, 1);
	if (!ret)
		ret = kd_heap_clear(heap, home, place, seen, 1ULL << slot % 64, &changed);
	if (ret)
		return ret;
	return changed ? 0 : -EINVAL;
}

int kd_slot_check(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot)
{
	unsigned int home = kd_heap_home(heap, chunk);
	uint64_t used, freed;
	int ret;

	ret = kd_heap_read(heap, home, kd_heap_used_place(heap, chunk, slot / 64), &used);
	if (!ret)
		ret = kd_heap_read(heap, home, kd_heap_freed_place(heap, chunk, slot / 64),
				   &freed);
	if (ret)
		return ret;
	return (used & ~freed) >> slot % 64 & 1 ? 0 : -EINVAL;
}
