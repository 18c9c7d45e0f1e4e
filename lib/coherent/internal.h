/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations that the files of the heap share: the heap's words in the partitioned region,
 * and the chunks that these words describe. Other folders use <kdsm/heap.h>.
 *
 * The words of chunk i are in the part of its home, node i / per_node. A node allocates from
 * the chunks whose home it is first. The layout in each part, beginning at the heap's offset:
 *
 *	head	on node 0 only: identifies the heap
 *	floor	the greatest timestamp of the releases by nodes that freed memory of this
 *		home's chunks. A node acquires the floor before it reuses memory that other
 *		nodes freed. The floor only rises.
 *	chunks	a descriptor for each chunk: KD_HEAP_FREE, or the use of the chunk
 *	bitmaps	for each chunk "used", the slots in use, and behind it "freed", those of
 *		these slots that other nodes have freed
 *
 * Words change by compare-and-swap only.
 */
#ifndef KDSM_HEAP_INT_H
#define KDSM_HEAP_INT_H

#include <kdsm/heap.h>
#include "core/core.h"

#define KD_HEAP_GRAIN	16		/* size of the smallest object, in bytes */
#define KD_HEAP_CLASSES	128		/* bound of the size classes of small objects */
#define KD_HEAP_PENDING	256		/* most frees that a process postpones */

/* Offsets of words in a part, relative to the heap, in bytes */
enum {
	KD_HEAP_HEAD = 0,
	KD_HEAP_FLOOR = 64,
	KD_HEAP_CHUNKS = 128,
};

struct kd_heap_layout {
	uint64_t chunk;			/* in bytes; a power of two and whole blocks */
	uint64_t chunks, per_node;	/* chunks of the heap, and of a home */
	uint64_t words;			/* words of a bitmap */
	uint64_t used;			/* offset of the bitmaps, relative to the heap, in bytes */
};

/* An object whose free is postponed, with the descriptor of its chunk. Large: slot is 0. */
struct kd_pending {
	uint64_t desc, chunk, slot;
};

struct kdsm_heap {
	struct kdsm_region *region, *sync;
	uint64_t offset;
	unsigned int flags, node, nodes;
	uint8_t *base;
	struct kd_heap_layout layout;
	uint64_t seen;			/* this node has acquired floors up to this one */
	uint64_t *known;		/* by chunk: descriptor of small objects, or 0 */
	/* By class: chunk + 1 << 32 | word of the last slot that was taken; 0: none */
	uint64_t hint[KD_HEAP_CLASSES];

	pthread_mutex_t lock;		/* protects the fields below */
	unsigned int pending_count;
	uint64_t pending_bytes;
	struct kd_pending pending[KD_HEAP_PENDING];
};

/* ---- the descriptor of a chunk: kind, class, node, length in chunks ---- */

enum kd_heap_kind {
	KD_HEAP_FREE = 0,
	KD_HEAP_SMALL,			/* objects of one class, of one node */
	KD_HEAP_LARGE,			/* first chunk of a large object */
	KD_HEAP_TAIL,			/* further chunk of a large object */
	KD_HEAP_CHANGING,		/* a node is changing the kind */
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

/* ---- places: offsets in the part of a chunk's home, in bytes ---- */

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

/* Returns the number of chunks at a node; *first is the first of them. */
static inline uint64_t kd_heap_share(const struct kdsm_heap *heap, unsigned int node,
				     uint64_t *first)
{
	uint64_t begin = node * heap->layout.per_node;
	uint64_t left = begin < heap->layout.chunks ? heap->layout.chunks - begin : 0;

	*first = begin;
	return left < heap->layout.per_node ? left : heap->layout.per_node;
}

/* ---- heap_word.c: words, and the order of memory that other nodes freed ---- */

/* Read a word whole. Returns 0 or a negative errno, as all functions below that return int. */
int kd_heap_read(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		 uint64_t *value);
/* Read many words as hints: words of other nodes may be torn. */
int kd_heap_glance(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		   uint64_t *words, size_t count);
/*
 * Set or clear bits of a word. Unless changed is NULL, the functions store the bits that they
 * changed in *changed. from is a guess of the current word.
 */
int kd_heap_set(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		uint64_t from, uint64_t bits, uint64_t *changed);
int kd_heap_clear(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		  uint64_t from, uint64_t bits, uint64_t *changed);
/* Release the region, and store in *floor the floor that makes an acquire see this release. */
int kd_heap_release(struct kdsm_heap *heap, uint64_t *floor);
/* Raise the floor of home: this node frees memory there after a release that gave floor. */
int kd_heap_raise(struct kdsm_heap *heap, unsigned int home, uint64_t floor);
/* Acquire the releases of all nodes that freed memory at home. */
int kd_heap_catch_up(struct kdsm_heap *heap, unsigned int home);

/* ---- heap_slot.c: small objects ---- */

/* The smallest class whose slots have at least size bytes */
unsigned int kd_slot_class(uint64_t size);
/* Size of the slots of a class, in bytes */
uint64_t kd_slot_size(unsigned int class);
/* Size of the largest small object, in bytes */
uint64_t kd_slot_max(const struct kdsm_heap *heap);
/* Take a slot. *offset is its offset in the region. Returns -ENOMEM if there is no room. */
int kd_slot_alloc(struct kdsm_heap *heap, unsigned int class, uint64_t *offset);
/*
 * Free a slot on the node that allocates from the chunk. Returns -EINVAL if the slot was not
 * in use.
 */
int kd_slot_free(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);
/* Returns 0 if the slot is in use, otherwise -EINVAL. */
int kd_slot_check(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);

/* ---- heap_run.c: large objects ---- */

/* Allocate a run of whole chunks for size bytes. *offset is its offset in the region. */
int kd_run_alloc(struct kdsm_heap *heap, uint64_t size, uint64_t *offset);
/*
 * The two steps of freeing a run. kd_run_leave() ensures that no other thread frees the run;
 * it returns -EINVAL if another thread already has. kd_run_finish() makes the chunks free.
 */
int kd_run_leave(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);
int kd_run_finish(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);

/* ---- heap_free.c: frees that need a release of the region first ---- */

/*
 * Postpone the free of an object. May perform all postponed frees. Sets *freed if the caller no
 * longer owns the object: an error then concerns the postponed frees, not only this object.
 */
int kd_free_later(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk, uint64_t slot,
		  bool *freed);
/* Perform the postponed frees now, and store in *any whether there were any. */
int kd_free_flush(struct kdsm_heap *heap, bool *any);

#endif /* KDSM_HEAP_INT_H */
