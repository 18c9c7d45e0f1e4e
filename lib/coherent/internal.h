/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations shared by the files of the heap: its words in the partitioned region, and
 * the chunks that these words describe. Other folders use <kdsm/heap.h>.
 *
 * The words of chunk i are at its home, node i / per_node. A node allocates from the chunks
 * at its own home first. The layout in each part, beginning at the heap's offset:
 *
 *	head	node 0: identifies the heap
 *	floor	covers the timestamps of all releases by nodes that freed memory at this
 *		home. A node acquires the floor before it reuses memory that other nodes
 *		freed. The floor only rises.
 *	chunks	one word each: free, or the use of the chunk
 *	used	bitmaps of objects in use, one for each chunk
 *	freed	bitmaps of those objects in use that other nodes have freed
 *
 * Words change by compare-and-swap only.
 */
#ifndef KDSM_HEAP_INT_H
#define KDSM_HEAP_INT_H

#include <kdsm/heap.h>
#include "core/core.h"

#define KD_HEAP_GRAIN	16		/* size of the smallest object, in bytes */
#define KD_HEAP_CLASSES	128
#define KD_HEAP_PENDING	256		/* bound of postponed frees */

enum {
	KD_HEAP_HEAD = 0,
	KD_HEAP_FLOOR = 64,
	KD_HEAP_CHUNKS = 128,
};

struct kd_heap_layout {
	uint64_t chunk;			/* in bytes; a power of two and whole blocks */
	uint64_t chunks, per_node;
	uint64_t words;			/* of a bitmap */
	uint64_t used;			/* offset of the bitmaps, relative to the heap */
};

/*
 * An object whose free is postponed. A large object has its descriptor in desc and no slot.
 */
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
	uint64_t *known;		/* cached descriptors of small-object chunks */
	uint64_t hint[KD_HEAP_CLASSES];	/* chunk + 1 and word that had room recently */

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
	KD_HEAP_CHANGING,		/* in transition to another kind */
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

int kd_heap_read(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		 uint64_t *value);
/* Read many words as hints: words of other nodes may be torn. */
int kd_heap_glance(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		   uint64_t *words, size_t count);
/*
 * Set or clear bits. *changed receives the bits that changed; changed may be NULL. from is
 * a guess of the current word.
 */
int kd_heap_set(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		uint64_t from, uint64_t bits, uint64_t *changed);
int kd_heap_clear(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		  uint64_t from, uint64_t bits, uint64_t *changed);
/*
 * Release the region. *floor receives the timestamp that an acquire needs to see this
 * release.
 */
int kd_heap_release(struct kdsm_heap *heap, uint64_t *floor);
/* Record that memory at home was freed after a release that returned floor. */
int kd_heap_raise(struct kdsm_heap *heap, unsigned int home, uint64_t floor);
/* Acquire the releases of all nodes that freed memory at home. */
int kd_heap_catch_up(struct kdsm_heap *heap, unsigned int home);

/* ---- heap_slot.c: small objects ---- */

unsigned int kd_slot_class(uint64_t size);
uint64_t kd_slot_size(unsigned int class);
/* Size of the largest small object, in bytes */
uint64_t kd_slot_max(const struct kdsm_heap *heap);
int kd_slot_alloc(struct kdsm_heap *heap, unsigned int class, uint64_t *offset);
/*
 * Caller is the node that allocates from the chunk. Returns -EINVAL if the slot was not in
 * use.
 */
int kd_slot_free(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);
/* Returns 0 if the slot is in use, otherwise -EINVAL. */
int kd_slot_check(struct kdsm_heap *heap, uint64_t chunk, uint64_t slot);

/* ---- heap_run.c: large objects ---- */

int kd_run_alloc(struct kdsm_heap *heap, uint64_t size, uint64_t *offset);
/*
 * The two steps of freeing a run. After kd_run_leave() no other thread can free the run;
 * kd_run_leave() returns -EINVAL if another one already has. kd_run_finish() makes the
 * chunks free.
 */
int kd_run_leave(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);
int kd_run_finish(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk);

/* ---- heap_free.c: memory to be released before it becomes free ---- */

int kd_free_later(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk, uint64_t slot);
/* Perform the postponed frees now. *any receives whether there were any. */
int kd_free_flush(struct kdsm_heap *heap, bool *any);

#endif /* KDSM_HEAP_INT_H */
