/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A heap in a coherent region: malloc(), free() and the like for the threads of all nodes.
 * A node may use and free what another node allocated; pointers are valid on all nodes.
 *
 * The region is divided into chunks of whole blocks. A chunk holds objects of one size
 * that one node allocated, or is a part of one larger object, so that nodes do not share
 * blocks by accident. Bitmaps in a partitioned region, which all nodes change by
 * compare-and-swap, record which objects are in use. The coherent region holds nothing but
 * objects. No process holds a lock that another process needs, so a program that dies
 * leaves a usable heap. Its objects, those whose free is put off, and a chunk that it was
 * just taking or freeing stay allocated.
 *
 * A node's writes to an object that it frees must not reach the next user of the memory.
 * So kdsm_free() puts off the free of an object that another node allocated, and of any
 * object of more than an eighth of a chunk, until 256 objects, or 1/64 of the region, are
 * put off. Then the freeing node releases the region once, as by kdsm_release(), and a node
 * acquires this release before it reuses the memory.
 *
 * Each node has a share, an equal part of the region. Allocation costs no remote operation
 * while the node's share has room, and several after that. Freeing an object that this node
 * allocated in its share costs none. A large object takes whole chunks, and a few remote
 * operations for each chunk on another node. The memory of a small object stays with its
 * node, for objects of the same size.
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
 * checks. All processes that create the heap give the same value. The flag costs 32 bytes
 * or more for each object, and a release for each free that would be put off without it.
 */
#define KDSM_HEAP_DEBUG	(1U << 0)
/* In this process: print the reason and abort() if kdsm_free() finds an error. */
#define KDSM_HEAP_ABORT	(1U << 1)

/*
 * Return the number of bytes that a heap needs of every part of the partitioned region, if
 * the coherent region has size bytes, blocks of block_size bytes (0: 4096) and this number
 * of nodes (0: 1). It is about 1/64 of a node's share of the coherent region.
 */
uint64_t kdsm_heap_sync_size(uint64_t size, uint32_t block_size, unsigned int nodes);

/*
 * Create a heap of the whole of region, or open the one that is there; all processes of a
 * job may call it at the same time. The heap uses kdsm_heap_sync_size() bytes at offset, a
 * multiple of 64, of every part of sync, which are zero at first. The caller keeps both
 * regions open for writing as long as the heap, and closes *heap with kdsm_heap_close(). On
 * failure *heap is NULL.
 *
 * A struct kdsm_heap belongs to the process that made it: after fork() the child opens its
 * own.
 *
 * -EINVAL	an unknown flag or a bad offset; region and sync have different struct kdsm;
 *		the heap exists and its KDSM_HEAP_DEBUG differs from flags; or the bytes are
 *		not those of a heap
 * -ERANGE	the bytes are not inside the part
 * -EFBIG	region has less than one chunk (64 KiB, or a larger block) for each node
 * -EOPNOTSUPP	region is partitioned, or sync is coherent
 * -ENOMEM	this process has no memory
 * others	those of kdsm_cas()
 */
int kdsm_heap_create(struct kdsm_region *region, struct kdsm_region *sync,
		     uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/*
 * Open a heap that exists, as kdsm_heap_create() does. The heap decides whether
 * KDSM_HEAP_DEBUG is in force. -ENOENT: there is no heap.
 */
int kdsm_heap_open(struct kdsm_region *region, struct kdsm_region *sync,
		   uint64_t offset, unsigned int flags, struct kdsm_heap **heap);

/*
 * Free the objects whose free this process put off, and close this process's view of the
 * heap, even on failure. The heap and its objects stay. NULL is ignored. Errors: those of
 * kdsm_heap_flush(), and the objects that it could not free stay allocated.
 */
int kdsm_heap_close(struct kdsm_heap *heap);

/*
 * Free the objects whose free this process put off.
 *
 * -EINVAL	one of the objects had been freed before; the others are free
 * errors of kdsm_release()	all of them stay put off
 * errors of operations on sync	all of them stay put off, or some stay allocated for good
 */
int kdsm_heap_flush(struct kdsm_heap *heap);

/*
 * Allocate size bytes (0 counts as 1). The address is a multiple of alignment, a power of
 * two, at most 4096; 0 stands for 16. The content is undefined. The caller, or any thread
 * of any node, frees *memory with kdsm_free(). On failure *memory is NULL.
 *
 * -ENOMEM	the heap, or this process, has no memory
 * -EINVAL	alignment is not a power of two, or is above 4096
 * errors of kdsm_acquire() and of operations on sync	there may be room, but it could not
 *		be used
 */
int kdsm_allocate(struct kdsm_heap *heap, size_t alignment, size_t size, void **memory);

/*
 * kdsm_allocate() in the form of the C functions. kdsm_calloc() fills the object with
 * zeros. They return NULL on failure, for whatever reason.
 */
void *kdsm_malloc(struct kdsm_heap *heap, size_t size);
void *kdsm_calloc(struct kdsm_heap *heap, size_t count, size_t size);
void *kdsm_aligned_alloc(struct kdsm_heap *heap, size_t alignment, size_t size);
/*
 * Change the size of an object as realloc() does; an object that moves has an alignment of
 * 16. size 0 counts as 1 and does not free the object. With memory NULL the call is
 * kdsm_malloc(). If the call returns NULL, the old object is unchanged.
 */
void *kdsm_realloc(struct kdsm_heap *heap, void *memory, size_t size);

/*
 * Free an object that any node allocated. NULL is ignored.
 *
 * -EINVAL	memory is not an object: freed before, or never allocated. Without
 *		KDSM_HEAP_DEBUG the second free of another node's object fails a later call
 *		that flushes, or no call
 * -EOVERFLOW	with KDSM_HEAP_DEBUG: the bytes before or after the object were overwritten,
 *		or this node has not acquired what the object's user wrote
 * errors of kdsm_heap_flush()	the object, or others that were put off, may stay allocated
 */
int kdsm_free(struct kdsm_heap *heap, void *memory);

/*
 * Return the number of bytes of an object that a program may use: at least as many as it
 * asked for, or exactly as many with KDSM_HEAP_DEBUG. 0: memory is not an object of this
 * heap.
 */
size_t kdsm_usable_size(struct kdsm_heap *heap, const void *memory);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_HEAP_H */
