/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A heap in a coherent region: malloc() and its like for the threads of all nodes. A node
 * may use and free what another node allocated; pointers are valid on all nodes.
 *
 * The region is divided into chunks of whole blocks. A chunk holds objects of one size
 * that one node allocated, or is a part of one larger object, so that nodes do not share
 * blocks by accident. Bitmaps in a partitioned region, which all nodes change by
 * compare-and-swap, record which objects are in use. The coherent region holds nothing but
 * objects. No lock is ever held, and a program that dies leaves the heap intact with its
 * objects in it.
 *
 * What a node wrote to an object that it frees must not reach the next user of the memory.
 * So freeing an object of another node, and any object of more than an eighth of a chunk,
 * is put off until there are 256 of them, or 1/64 of the region. Then the region is
 * released once, as by kdsm_release(), and the owner of the memory acquires that before it
 * reuses the memory.
 *
 * Allocation costs no remote operation while the node has room in its share, an equal
 * part of the region, and several after that. Freeing an object that this node allocated
 * costs none. A large object takes whole chunks, and a few remote operations for each.
 * Memory of a small object is reused for objects of the same size by the same node.
 *
 * As with any memory of the region, a node that gets a pointer acquires what the giver
 * released before it follows the pointer, and so does a node that frees an object that
 * another node used. Freeing orders nothing between the program's own threads.
 *
 * All nodes must stay up while the heap is used: a node that restarts has lost its share.
 */
#ifndef KDSM_HEAP_H
#define KDSM_HEAP_H

#include <kdsm/coherent.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kdsm_heap;

/* Flags of kdsm_heap_create() and kdsm_heap_open() */

/*
 * Find overruns and double frees: objects lie between guard bytes, which kdsm_free()
 * checks. All processes give the same value. Costs 32 bytes or more for each object, and a
 * release for each freed object of another node.
 */
#define KDSM_HEAP_DEBUG	(1U << 0)
/* In this process: print the reason and abort() if kdsm_free() finds an error. */
#define KDSM_HEAP_ABORT	(1U << 1)

/*
 * Bytes that a heap needs of every part of the partitioned region, about 1/64 of a node's
 * share of a coherent region of size bytes and blocks of block_size bytes (0: 4096).
 */
uint64_t kdsm_heap_sync_size(uint64_t size, uint32_t block_size, unsigned int nodes);

/*
 * Create a heap of the whole of region, or open the one that is there; all processes of a
 * job may call it at the same time. The heap uses kdsm_heap_sync_size() bytes at offset, a
 * multiple of 64, of every part of sync, which are zero at first. The caller keeps both
 * regions open as long as the heap, and closes it with kdsm_heap_close(). On failure *heap
 * is NULL.
 *
 * A struct kdsm_heap belongs to the process that made it: after fork() the child opens its
 * own.
 *
 * -EINVAL	an unknown flag or a bad offset; region and sync have different struct kdsm;
 *		the heap has the other KDSM_HEAP_DEBUG; or the words are not a heap's
 * -ERANGE	the words are not inside the part
 * -EFBIG	region has no room for a chunk (64 KiB or a block) for each node
 * -EOPNOTSUPP	region is partitioned, or sync is coherent
 * -ENOMEM	this process has no memory
 * others	those of kdsm_cas()
 */
int kdsm_heap_create(struct kdsm_region *region, struct kdsm_region *sync,
		     uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/* Open a heap that exists, with its KDSM_HEAP_DEBUG. -ENOENT: there is none. */
int kdsm_heap_open(struct kdsm_region *region, struct kdsm_region *sync,
		   uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/*
 * Free the objects that were put off and close this process's view of the heap, even on
 * failure. The heap and its objects stay. NULL is ignored. Errors: those of
 * kdsm_heap_flush().
 */
int kdsm_heap_close(struct kdsm_heap *heap);

/*
 * Free the objects that were put off.
 *
 * -EINVAL	one of them had been freed before
 * errors of kdsm_release()	they stay put off
 * errors of operations on sync	some of them may stay allocated
 */
int kdsm_heap_flush(struct kdsm_heap *heap);

/*
 * Allocate size bytes (0 counts as 1). The address is a multiple of alignment, a power of
 * two, at most 4096; 0 stands for 16. The content is undefined. The caller, or any thread
 * of any node, frees *memory with kdsm_free(). On failure *memory is NULL.
 *
 * -ENOMEM	the heap has no room for it
 * -EINVAL	alignment is not a power of two, or too large
 * errors of kdsm_acquire() and of operations on sync	there may be room, but it could not
 *		be used
 */
int kdsm_allocate(struct kdsm_heap *heap, size_t alignment, size_t size, void **memory);

/* kdsm_allocate() in the form of the C functions; NULL on failure. */
void *kdsm_malloc(struct kdsm_heap *heap, size_t size);
void *kdsm_calloc(struct kdsm_heap *heap, size_t count, size_t size);
void *kdsm_aligned_alloc(struct kdsm_heap *heap, size_t alignment, size_t size);
/*
 * Change the size of an object as realloc() does, with an alignment of 16. NULL for memory:
 * kdsm_malloc(). If it returns NULL, the old object is unchanged.
 */
void *kdsm_realloc(struct kdsm_heap *heap, void *memory, size_t size);

/*
 * Free an object that any node allocated. NULL is ignored.
 *
 * -EINVAL	memory is not an object: freed before, or never allocated. Without
 *		KDSM_HEAP_DEBUG the second free of another node's object fails a later call,
 *		or none
 * -EOVERFLOW	with KDSM_HEAP_DEBUG: bytes before or after the object were written, or what
 *		its owner wrote was not acquired here
 * errors of kdsm_heap_flush()	the object, or others that were put off, may stay allocated
 */
int kdsm_free(struct kdsm_heap *heap, void *memory);

/*
 * Number of bytes of an object that may be used, at least as many as were asked for (with
 * KDSM_HEAP_DEBUG exactly as many). 0: not an object of this heap.
 */
size_t kdsm_usable_size(struct kdsm_heap *heap, const void *memory);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_HEAP_H */
