/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the heap share: its words in the partitioned region, and the
 * chunks that they describe.
 *
 * Chunk i has its words at home, the node i / per_node, and a node allocates from the
 * chunks at home first. In a part, from the heap's offset on:
 *
 *	head	node 0: what heap this is
 *	floor	timestamps up to it: releases by nodes that freed something at home here.
 *		Who takes memory that others freed acquires it first. Only ever raised.
 *	chunks	a word each: free, or what it is used for
 *	used	bitmaps of objects in use, one a chunk
 *	freed	bitmaps of those of them that other nodes have freed
 *
 * Words are changed by compare-and-swap alone.
 */
#ifndef KDSM_HEAP_INT_H
#define KDSM_HEAP_INT_H

#include <kdsm/heap.h>
#include "core/core.h"

#define KD_HEAP_GRAIN	16		/* the smallest object */
#define KD_HEAP_CLASSES	128
#define KD_HEAP_PENDING	256		/* frees that are put off */

enum {
	KD_HEAP_HEAD = 0,
	KD_HEAP_FLOOR = 64,
	KD_HEAP_CHUNKS = 128,
};

struct kd_heap_layout {
	uint64_t chunk;			/* bytes, a power of two, whole blocks */
	uint64_t chunks, per_node;
	uint64_t words;			/* of a bitmap */
	uint64_t used;			/* offset of the bitmaps from the heap's */
};

/* An object that is to be freed; of a large one the word as it was, and no slot. */
struct kd_pending {
	uint64_t desc, chunk, slot;
};

struct kdsm_heap {
	struct kdsm_region *region, *sync;
	uint64_t offset;
	unsigned int flags, node, nodes;
	uint8_t *base;
	struct kd_heap_layout layout;
	uint64_t seen;			/* floors up to this are acquired */
	uint64_t *known;		/* words of chunks of small objects: they stay */
	uint64_t hint[KD_HEAP_CLASSES];	/* chunk + 1 and word with room lately */

	pthread_mutex_t lock;		/* of what follows */
	unsigned int pending_count;
	uint64_t pending_bytes;
	struct kd_pending pending[KD_HEAP_PENDING];
};

/* ---- the word of a chunk: kind, class, node, length in chunks ---- */

enum kd_heap_kind {
	KD_HEAP_FREE = 0,
	KD_HEAP_SMALL,			/* objects of one class, of one node */
	KD_HEAP_LARGE,			/* the first of an object of several */
	KD_HEAP_TAIL,			/* another of it */
	KD_HEAP_CHANGING,		/* somebody is making it one of the others */
};

static inline uint64_t kd_heap_desc(enum kd_heap_kind kind, unsigned int class,
				    unsigned int node, uint64_t length)
{
	return kind | class << 8 | node << 16 | length << 32;
}

static inline enum kd_heap_kind kd_heap_kind(uint64_t desc)
{
	return desc & 0xff;
}

static inline unsigned int kd_heap_class(uint64_t desc)
{
	return desc >> 8 & 0xff;
}

static inline unsigned int kd_heap_node(uint64_t desc)
{
	return desc >> 16 & 0xffff;
}

static inline uint64_t kd_heap_length(uint64_t desc)
{
	return desc >> 32;
}

/* ---- places ---- */

static inline unsigned int kd_heap_home(const struct kdsm_heap *heap, uint64_t chunk)
{
	return chunk / heap->layout.per_node;
}

static inline uint64_t kd_heap_chunk_place(const struct kdsm_heap *heap, uint64_t chunk)
{
	return heap->offset + KD_HEAP_CHUNKS + chunk % heap->layout.per_node * 8;
}

static inline uint64_t kd_heap_used_place(const struct kdsm_heap *heap, uint64_t chunk,
					  uint64_t word)
{
	return heap->offset + heap->layout.used +
	       (chunk % heap->layout.per_node * 2 * heap->layout.words + word) * 8;
}

static inline uint64_t kd_heap_freed_place(const struct kdsm_heap *heap, uint64_t chunk,
					   uint64_t word)
{
	return kd_heap_used_place(heap, chunk, heap->layout.words + word);
}

/* Chunks at a node: from *first on so many. */
static inline uint64_t kd_heap_share(const struct kdsm_heap *heap, unsigned int node,
				     uint64_t *first)
{
	uint64_t begin = node * heap->layout.per_node;
	uint64_t left = begin < heap->layout.chunks ? heap->layout.chunks - begin : 0;

	*first = begin;
	return left < heap->layout.per_node ? left : heap->layout.per_node;
}

/* ---- heap_word.c: words, and the order of memory that others freed ---- */

int kd_heap_read(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		 uint64_t *value);
/* Many, as a guess: they may be torn. */
int kd_heap_glance(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		   uint64_t *words, size_t count);
/*
 * Set bits, or clear them: *changed (may be NULL) are those that were not so before.
 * From is a guess of what the word is.
 */
int kd_heap_set(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		uint64_t from, uint64_t bits, uint64_t *changed);
int kd_heap_clear(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		  uint64_t from, uint64_t bits, uint64_t *changed);
/* Release, and what an acquire must reach to see it. */
int kd_heap_release(struct kdsm_heap *heap, uint64_t *floor);
/* Memory at that home was freed after a release that gave floor. */
int kd_heap_raise(struct kdsm_heap *heap, unsigned int home, uint64_t floor);
/* Acquire what those released who freed memory at that home. */
int kd_heap_catch_up(struct kdsm_heap *heap, unsigned int home);

/* ---- heap_slot.c: small objects ---- */

unsigned int kd_slot_class(uint64_t size);
uint64_t kd_slot_size(unsigned int class);
/* The largest that is small. */
uint64_t kd_slot_max(const struct kdsm_heap *heap);
int kd_slot_alloc(struct kdsm_heap *heap, unsigned int class, uint64_t *offset);
/* By the node that allocates there. -EINVAL: it was not in use. */
int kd_slot_free(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);
/* Whether it is in use; 0 or -EINVAL. */
int kd_slot_check(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);

/* ---- heap_run.c: large objects ---- */

int kd_run_alloc(struct kdsm_heap *heap, uint64_t size, uint64_t *offset);
/* The two ends of freeing one: nobody else can (-EINVAL: somebody did); it is free. */
int kd_run_leave(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);
int kd_run_finish(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);

/* ---- heap_free.c: what is to be released before it is free ---- */

int kd_free_later(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk, uint64_t slot);
/* Do it now; *any: there was something. */
int kd_free_flush(struct kdsm_heap *heap, bool *any);

#endif /* KDSM_HEAP_INT_H */
