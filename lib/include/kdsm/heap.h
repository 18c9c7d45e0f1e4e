/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A heap in a coherent region: malloc() and friends, from any thread of any node.
 * What one node allocates another may use and free; pointers are valid on all nodes.
 *
 * The region is divided into chunks of whole blocks. A chunk holds objects of one size
 * that one node allocates, or is part of one larger object; so nodes share no block by
 * accident. Which objects are in use is written in bitmaps in a partitioned region,
 * which all nodes change by compare-and-swap; nothing but objects is in the coherent
 * region, no lock is ever held, and a program that dies leaves the heap whole, with its
 * objects in it.
 *
 * Allocating takes no remote operation while there is room in the node's own share (an
 * equal part of the region), and several once that is used up. Freeing an object that
 * this node allocated takes none; freeing that of another is put off until there are
 * 256 of them, or 1/64 of the region: then the region is released, as by kdsm_release(),
 * and the node that allocated them acquires that when it runs out of room. So what the
 * freeing node wrote to an object cannot reach who gets the memory next. An object of
 * more than an eighth of a chunk takes whole chunks, and a few remote operations a
 * chunk; freeing it is put off in any case, as any node may get them.
 *
 * As with any memory of the region, a node that is given a pointer must acquire what
 * the giver released before it follows it; and so must who frees an object that others
 * have used. Freeing is not using: it orders nothing between the program's own threads.
 *
 * Memory of small objects is used again for objects of the same size by the same node.
 * All nodes must stay while the heap is used: one that restarts has forgotten its share.
 */
#ifndef KDSM_HEAP_H
#define KDSM_HEAP_H

#include <kdsm/coherent.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kdsm_heap;

/*
 * Find overruns and double frees: objects lie between guard bytes, which are looked at
 * when they are freed. All nodes must agree on it. Costs memory (32 bytes an object),
 * and a release for each object of another node that is freed.
 */
#define KDSM_HEAP_DEBUG	(1U << 0)
/* In this process: on -EINVAL and -EOVERFLOW of kdsm_free() say why and abort(). */
#define KDSM_HEAP_ABORT	(1U << 1)

/*
 * Bytes of every part of the partitioned region that a heap takes, for a coherent
 * region of so many bytes and of blocks of block_size (0: 4096): 1/64 of the node's
 * share and a little.
 */
uint64_t kdsm_heap_sync_size(uint64_t size, uint32_t block_size, unsigned int nodes);

/*
 * Make a heap of all of region, or open the one that is there; all programs of a job
 * may call it at once. Its words are kdsm_heap_sync_size() bytes at offset (a multiple
 * of 64) of every part of sync, zero at first. The heap does not own the regions, which
 * must stay open while it is.
 *
 * A struct kdsm_heap belongs to the process that made it: after fork() the child opens
 * its own.
 *
 * -EINVAL: bad flags or alignment, region and sync of two clusters, or the heap has the
 * other KDSM_HEAP_DEBUG or its words are something else. -ERANGE: it does not fit into
 * a part. -EFBIG: region has no room for a chunk a node, 64 KiB or a block at least.
 * -EOPNOTSUPP: the regions have the wrong policies. -ENOMEM. Errors of kdsm_cas().
 */
int kdsm_heap_create(struct kdsm_region *region, struct kdsm_region *sync,
		     uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/* The same, if it exists, with the KDSM_HEAP_DEBUG that it has. -ENOENT: it does not. */
int kdsm_heap_open(struct kdsm_region *region, struct kdsm_region *sync,
		   uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/*
 * Free what was put off. Objects of the heap stay. NULL is ignored. Errors as of
 * kdsm_heap_flush(); the struct is gone all the same.
 */
int kdsm_heap_close(struct kdsm_heap *heap);

/*
 * Free now what was put off. Errors: those of kdsm_release(), after which it stays put
 * off; those of operations on sync, after which some of it may be lost, as memory that
 * stays allocated; -EINVAL: an object among it had been freed already.
 */
int kdsm_heap_flush(struct kdsm_heap *heap);

/*
 * Allocate size bytes (0: as 1), aligned to alignment, a power of two of at most 4096;
 * 0: 16. The content is undefined. The object is the caller's until it is freed.
 *
 * -ENOMEM: no room, or too large; -EINVAL: alignment; and errors of kdsm_acquire() and
 * of operations on sync, when that is why there is no room.
 */
int kdsm_allocate(struct kdsm_heap *heap, size_t alignment, size_t size, void **memory);

/* Those of C by kdsm_allocate(); NULL where that gives an error. */
void *kdsm_malloc(struct kdsm_heap *heap, size_t size);
void *kdsm_calloc(struct kdsm_heap *heap, size_t count, size_t size);
void *kdsm_aligned_alloc(struct kdsm_heap *heap, size_t alignment, size_t size);
/*
 * As realloc() of C, with an alignment of 16; memory NULL: as kdsm_malloc(). When it
 * gives NULL the old object stays as it is.
 */
void *kdsm_realloc(struct kdsm_heap *heap, void *memory, size_t size);

/*
 * Free an object, of whatever node. NULL is ignored.
 *
 * -EINVAL: there is no such object: it has been freed already, or never was. Without
 * KDSM_HEAP_DEBUG a second free of another node's is told by a later call, or not at
 * all. -EOVERFLOW: with KDSM_HEAP_DEBUG, bytes before or behind it were written, or what
 * its owner wrote has not been acquired here. After other errors, which are those of
 * kdsm_heap_flush(), it is not freed, and the call can be repeated.
 */
int kdsm_free(struct kdsm_heap *heap, void *memory);

/*
 * Bytes that may be used, at least those asked for (with KDSM_HEAP_DEBUG: those). 0: no
 * object of this heap.
 */
size_t kdsm_usable_size(struct kdsm_heap *heap, const void *memory);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_HEAP_H */
