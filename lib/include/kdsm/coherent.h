/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coherent regions: memory that every node maps whole, at the same address, and accesses
 * by loads and stores. kdsm_coherent(7) describes the memory model.
 *
 * With policy KDSM_POLICY_RELEASE a program without data races sees one memory, as the
 * threads of one machine do. A read on one node sees a write on another if the writer's
 * node released the region after the write and the reader's node acquired the resulting
 * signature, or one merged from it, before the read. The barrier below and the locks of
 * <kdsm/lock.h> release and acquire by themselves, and so do the atomic operations below.
 * A mutex, a semaphore or an atomic instruction in the coherent region orders nothing
 * between nodes; words to wait for belong in a partitioned region.
 *
 * Between two releases several nodes may write different bytes of one block: the writes
 * are merged. If two nodes write the same byte, that is a data race, and one write is
 * lost.
 *
 * With policy KDSM_POLICY_STRICT all nodes see every write at once, and the program need
 * not release or acquire.
 *
 * Conventions are those of <kdsm/kdsm.h>. A function that takes a coherent region fails
 * with -EOPNOTSUPP for a partitioned one; a function that takes a partitioned region fails
 * with -EOPNOTSUPP for a coherent one.
 */
#ifndef KDSM_COHERENT_H
#define KDSM_COHERENT_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- regions ---- */

/*
 * Open the coherent region name as kdsm_region_open() does, and its companion: the
 * partitioned region with ".sync" behind the name, for words to synchronise by.
 *
 * attr describes the coherent region; policy 0 means KDSM_POLICY_RELEASE. The companion
 * has sync_size bytes on each node, at least 1, and takes mode and KDSM_REGION_KEEP from
 * attr. With attr NULL both regions must exist, and sync_size is ignored.
 *
 * The caller closes both with kdsm_region_close(). On failure both pointers are NULL and
 * nothing is open. Errors are those of kdsm_region_open(), and
 * -EINVAL	the name with ".sync" is longer than KDSM_NAME_SIZE - 1
 * -EOPNOTSUPP	attr asks for a partitioned region; or attr is NULL, and name is one
 * -EFBIG	sync_size times the number of nodes overflows
 */
int kdsm_region_open_coherent(struct kdsm *kdsm, const char *name,
			      const struct kdsm_region_attr *attr, uint64_t sync_size,
			      struct kdsm_region **region, struct kdsm_region **sync);

/*
 * Return the home of the block that has the byte at offset: the node that owns the block
 * until another node writes it. The first accesses of the home to the block need no
 * network. Groups of KDSM_CYCLE_BLOCKS blocks go round the nodes, or, in a region that was
 * created with KDSM_REGION_CONTIGUOUS, each node has one range of blocks, in the order of
 * nodes. All ranges have the same number of blocks, but the last ones may have fewer or
 * none. The home needs no memory for a block that another node writes first: memory lies
 * where it is first touched.
 *
 * -EOPNOTSUPP	the region is partitioned: the home is offset / kdsm_region_part_size()
 * -ERANGE	offset is not inside the region
 * -ENOTTY	the module is older than this library
 */
int kdsm_region_home(struct kdsm_region *region, uint64_t offset);

/* ---- release and acquire ---- */

/*
 * Release: complete the writes that the threads and processes of this node have made to
 * the region so far. Unless signature is NULL, store in *signature which blocks these
 * writes changed, and all writes of the signatures that this node has acquired.
 *
 * The cost grows with the number of blocks written since the last release. A block that
 * only this node writes costs nothing remote. With policy STRICT, and the local backend,
 * a release is a memory fence, and the signature is empty.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -EFAULT	signature is not accessible memory
 * -ENOMEM	this node has no memory for the call
 * -EHOSTDOWN, -EIO, -ETIMEDOUT	a node that owns a written block does not answer
 * After an error some writes may not be complete; the caller may repeat the call.
 */
int kdsm_release(struct kdsm_region *region, struct kdsm_signature *signature);

/*
 * Acquire: from now on the threads and processes of this node see the writes that
 * *signature lists. Writes of this node that are not released yet stay in place.
 *
 * The call makes stale copies of blocks invalid, without remote operations; the next
 * access to such a block fetches it. With policy STRICT, and the local backend, an
 * acquire is a memory fence.
 *
 * -EINVAL	signature is NULL or malformed
 * -EOPNOTSUPP	the region is partitioned
 * -EFAULT	signature is not accessible memory
 * -ENOMEM	this node has no memory for the call; some copies may still be stale, and
 *		the caller may repeat the call
 */
int kdsm_acquire(struct kdsm_region *region, const struct kdsm_signature *signature);

/*
 * A signature is a struct kdsm_signature of <kdsm/uapi.h>. Its first
 * KDSM_SIGNATURE_BYTES(signature->count) bytes may be copied and sent by any means. It
 * is valid only for the region whose release made it.
 */

/* Initialise *signature so that it lists no writes. */
void kdsm_signature_init(struct kdsm_signature *signature);

/*
 * Add the writes that *other lists to *signature. Both were made by kdsm_release(),
 * kdsm_signature_init() or this function.
 *
 * If the sum has more than KDSM_NOTICES_MAX notices, the function joins notices of
 * neighbouring blocks. If joins do not suffice, the function drops the oldest notices, and
 * raises the floor to the timestamp of the newest dropped one (W. Endo, dissertation,
 * section 3.4.5). An acquire of the result then sees at least the writes of both
 * signatures, but may make more copies invalid.
 */
void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other);

/*
 * Acquire a range: accesses of this node to the blocks that overlap length bytes at offset
 * see all that any node released before this call, by kdsm_release() or by kdsm_flush() of
 * these bytes. No signature is needed. Writes of this node that are not released yet stay
 * in place.
 *
 * The cost grows with the number of these blocks that this node holds; copies of other
 * blocks stay. The call does no remote operations. The next access to each block asks its
 * owner, and moves no data if the copy is still current. A later kdsm_release() of this
 * node passes on what others wrote to those of these blocks that this node has read since.
 * With length 0, policy STRICT, and the local backend, the call does nothing.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -ERANGE	the bytes are not inside the region
 * -ENOMEM	this node has no memory for the call; some copies may still be stale, and
 *		the caller may repeat the call
 */
int kdsm_refresh(struct kdsm_region *region, uint64_t offset, uint64_t length);

/* Size of a place for one signature and its value, in bytes. */
#define KDSM_SIGNATURE_PLACE 3136

/*
 * Put a signature, and then value, into the KDSM_SIGNATURE_PLACE bytes at offset of a
 * node's part of sync, and wake the threads that wait there. offset is a multiple of 8,
 * and the bytes are zero at first. The call does one vector of two puts, of the bytes in
 * use only.
 *
 * A place holds one signature. The caller puts the next one only after the receiver has
 * read this one, and with another value. The first value is not 0. Errors: those of
 * kdsm_put(). -EINVAL: offset is not a multiple of 8.
 */
int kdsm_signature_put(struct kdsm_region *sync, unsigned int node, uint64_t offset,
		       const struct kdsm_signature *signature, uint64_t value);

/*
 * Wait until value is at offset of this node's part of sync, for timeout at most, and
 * store the signature that was put with this value in *signature. A signal does not end
 * the wait.
 *
 * -ETIMEDOUT	value did not arrive in time
 * -EPROTO	the place does not hold a signature
 * -EINVAL, -ERANGE, -EOPNOTSUPP, -ENOMEM	as kdsm_wait()
 */
int kdsm_signature_wait(struct kdsm_region *sync, uint64_t offset, uint64_t value,
			uint64_t timeout, struct kdsm_signature *signature);

/* ---- hints ---- */

/*
 * Hints for the blocks that overlap length bytes at offset. A hint does work now that
 * would delay the program later. A hint changes only the time that accesses take: what a
 * program reads, and what the program has to release and acquire, is the same without the
 * hint. An access of another node may undo a hint at any time. A call returns when the
 * work is done. With length 0, and with the local backend, a hint does nothing.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -ERANGE	the bytes are not inside the region
 * -EACCES	the region is open for reading only (kdsm_pin())
 * -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT	the hint did not reach some of the blocks
 */

/* Fetch copies, as if every block were read; several blocks a round trip. */
int kdsm_prefetch(struct kdsm_region *region, uint64_t offset, uint64_t length);

/*
 * Complete this node's writes to these blocks, so that the next kdsm_release() has less to
 * do. The program still needs this release, because only its signature tells other nodes
 * of the writes; except for nodes that call kdsm_refresh() after this call. With policy
 * STRICT the call does nothing.
 */
int kdsm_flush(struct kdsm_region *region, uint64_t offset, uint64_t length);

/*
 * Become the owner of these blocks, so that releases of this node cost nothing remote for
 * them. With policy RELEASE this lasts until another node writes a block and releases;
 * with policy STRICT it makes the blocks writable here until another node accesses them.
 */
int kdsm_pin(struct kdsm_region *region, uint64_t offset, uint64_t length);

/* ---- atomic operations ---- */

/*
 * Atomic operations on the word of size bytes, 4 or 8, at offset, a multiple of size. All
 * nodes may operate on a word at the same time: the operations have one order, and each
 * acts on the value that the one before it left, whatever copies nodes have. Atomic
 * instructions on the mapped memory are atomic against operations of the same node only,
 * and plain loads may return older values.
 *
 * order is 0, or a sum of
 * KDSM_ATOMIC_RELEASE	release the region first, as kdsm_release() does
 * KDSM_ATOMIC_ACQUIRE	see what was released by those operations with KDSM_ATOMIC_RELEASE that
 *			come before this one in the order of the word
 *
 * Operands have the low size bytes of a uint64_t. Unless former is NULL, the functions
 * store the value before the operation in *former.
 *
 * The node of the caller becomes the owner of the block. As long as it stays the owner, an
 * operation is one system call and needs no network, except for what a release needs. So a
 * word that many nodes change at the same time moves from node to node; put such words in
 * blocks of their own. After another node owned the block, KDSM_ATOMIC_ACQUIRE invalidates
 * all copies of this node that are older, on any block; the next read of a copy that did not
 * change moves no data. With policy STRICT, and the local backend, the operations are
 * instructions of the CPU on the mapped memory.
 *
 * -EINVAL	size is neither 4 nor 8; offset is no multiple of size; or order is unknown
 * -EOPNOTSUPP	the region is partitioned: see kdsm_faa() and kdsm_cas()
 * -ERANGE	the word is not inside the region
 * -EACCES	the region is open for reading only
 * -ENOTTY	the module is older than this library
 * -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT	the operation has not taken effect
 */
int kdsm_atomic_load(struct kdsm_region *region, uint64_t offset, unsigned int size,
		     unsigned int order, uint64_t *value);
/* Store value. */
int kdsm_atomic_exchange(struct kdsm_region *region, uint64_t offset, unsigned int size,
			 unsigned int order, uint64_t value, uint64_t *former);
/* Add; the sum wraps. */
int kdsm_atomic_add(struct kdsm_region *region, uint64_t offset, unsigned int size,
		    unsigned int order, uint64_t add, uint64_t *former);
/* Store desired if the word equals expected: then *former equals expected. */
int kdsm_atomic_cas(struct kdsm_region *region, uint64_t offset, unsigned int size,
		    unsigned int order, uint64_t expected, uint64_t desired,
		    uint64_t *former);

/* ---- data races ---- */

/*
 * Store up to count data races that this node found in the region, from number *next on, the
 * oldest first; *next is 0 for the first call. Return how many were stored, and store the number
 * to go on with in *next. struct kdsm_race in <kdsm/uapi.h> says what is known of a race, which
 * races a node finds, and which it cannot find.
 *
 * A node keeps its KDSM_RACES_MAX newest races, and at most KDSM_RACES_MERGE of one merge. Unless
 * lost is NULL, the call stores in *lost how many races before *next it passed over because the
 * node does not keep them. Races stay until the region goes, and any number of programs may read
 * them. Each node has found other races, so a program looks on every node, after the barrier or
 * release that ends the part of the program in doubt. With policy STRICT, and the local backend,
 * there are none.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -EFAULT	races is not accessible memory
 * -ENOTTY	the module is older than this library
 * -ENOMEM	this node has no memory for the call
 */
int kdsm_races(struct kdsm_region *region, struct kdsm_race *races, unsigned int count,
	       uint64_t *next, uint64_t *lost);

/* ---- lost blocks ---- */

/*
 * A block is lost if the node that owned it died: accesses to it raise SIGBUS. A release that
 * cannot publish writes to it publishes all others, and then fails with -EHOSTDOWN, until the block
 * is discarded or the node is back. All other blocks stay usable.
 *
 * Store the offsets of up to count lost blocks, in ascending order, from offset *next on; *next is
 * 0 for the first call. Return how many were stored, and store the offset to go on with in *next. A
 * node lists the blocks that its programs have tried to use, and did not get. The local backend has
 * none.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -EFAULT	offsets is not accessible memory
 * -ENOTTY	the module is older than this library
 * -ENOMEM	this node has no memory for the call
 */
int kdsm_region_lost(struct kdsm_region *region, uint64_t *offsets, unsigned int count,
		     uint64_t *next);

/*
 * Make the lost blocks that overlap length bytes from offset on usable again, on all nodes: they
 * read as zeros, and unreleased writes to them are dropped. Blocks that are not lost keep their
 * content. Any nodes may discard the same blocks concurrently. The function asks all nodes about
 * each block of the range that this node does not own. Afterwards the nodes that died have no part
 * of the region, even if they were only unreachable: there, accesses raise SIGBUS and calls fail
 * with -ESTALE.
 *
 * -EOPNOTSUPP	the region is partitioned
 * -ERANGE	the range is not in the region
 * -EACCES	this program may only read the region
 * -EHOSTDOWN, -ETIMEDOUT	for a minute a node did not answer, or could reach the missing
 *		one; the other blocks are discarded
 * -ESTALE	other nodes took this node for dead, and discarded blocks
 * -EOVERFLOW	a block was discarded 16,382 times; the other blocks are discarded
 * -ENOTTY	the module is older than this library
 * -ENOMEM	a node has no memory for the call
 */
int kdsm_region_discard(struct kdsm_region *region, uint64_t offset, uint64_t length);

/* ---- barrier ---- */

/*
 * A barrier for any number of threads, of any number of processes, on each node. After
 * it every participant sees what any of them wrote to the coherent region before it.
 *
 * The last thread to arrive on a node releases the region for the node. The nodes form a
 * tree, with four children a node. A node merges its children's signatures with its own,
 * and sends the sum up; the root sends the sum of all down again, and every node acquires
 * it. A node sends one message up and at most four down, each into a place that no other
 * node writes. (Combining tree: Yew, Tzeng, Lawrie, "Distributing Hot-Spot
 * Addressing in Large-Scale Multiprocessors", 1987. Arity and one place for each sender:
 * Mellor-Crummey, Scott, "Algorithms for Scalable Synchronization on Shared-Memory
 * Multiprocessors", 1991.)
 *
 * The barrier uses KDSM_TREE_BARRIER_SIZE bytes at offset, a multiple of 64, of every
 * part of sync. The bytes are zero at first, and used for nothing else while the region
 * lives. All state of the barrier is in these bytes, so a struct kdsm_tree_barrier is
 * constant after init: threads may share one, and a process may make another one for the
 * same bytes later. The caller keeps the regions open as long as it uses the barrier.
 * There is nothing to destroy.
 */
#define KDSM_TREE_BARRIER_SIZE	16384
#define KDSM_TREE_BARRIER_ARITY	4

struct kdsm_tree_barrier {
	struct kdsm_region *region, *sync;
	uint64_t offset;
	uint32_t participants;		/* threads on this node */
	/* Node numbers; the root is its own parent. */
	uint16_t parent, children[KDSM_TREE_BARRIER_ARITY];
	uint8_t child_count;
	uint8_t order;			/* index among the children of its parent */
};

/*
 * Fill *barrier, which the caller owns. participants[k] is the number of threads of node
 * k that take part, 0 or more. The array has one entry a node and the same values on every
 * node; the library reads it only during the call. NULL means one thread on each node.
 * With region NULL the barrier makes no region consistent.
 *
 * -EINVAL	offset is not a multiple of 64; sync and region were opened with different
 *		struct kdsm; or no node has a participant
 * -ERANGE	the bytes are not inside the part
 * -EOPNOTSUPP	sync is coherent, or region is not
 */
int kdsm_tree_barrier_init(struct kdsm_tree_barrier *barrier, struct kdsm_region *region,
			   struct kdsm_region *sync, uint64_t offset,
			   const uint32_t *participants);

/*
 * Wait until all participants have arrived, for timeout at most. A signal does not end
 * the wait.
 *
 * After a failure the barrier cannot be used again, on any node; other nodes may have
 * passed this round. Unless culprit is NULL, the call stores in *culprit the node that
 * caused the failure, as far as this node can tell. If a whole subtree does not arrive,
 * *culprit is the top node of the subtree.
 *
 * -ETIMEDOUT	a participant on node *culprit, or below it, did not arrive in time
 * -EPIPE	operations on node *culprit have failed for 30 seconds, or another
 *		participant reported the failure. The end of a process on a live node
 *		shows only as a timeout
 * -EINVAL	the bytes do not belong to this barrier; or more threads of this node
 *		arrived than take part; or no thread of this node takes part, in which
 *		case the barrier stays usable
 * -EPROTO	node *culprit sent no valid signature
 * others	those of kdsm_release(), kdsm_acquire() and operations on sync
 */
int kdsm_tree_barrier_wait(const struct kdsm_tree_barrier *barrier, uint64_t timeout,
			   unsigned int *culprit);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_COHERENT_H */
