/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coherent regions: memory that all nodes map whole, at the same address, and use
 * by plain loads and stores.
 *
 * A program without data races sees one memory, as threads of one machine do. What
 * orders two accesses on different nodes is a release by the node of the first,
 * after it, and an acquire by the node of the second, before it, of what that
 * release gave (a signature), or of a signature merged from that. The barrier below
 * does both. A mutex, a signal or an atomic in the coherent region orders nothing
 * between nodes: words to synchronise by belong in a partitioned region, and
 * kdsm_region_open_coherent() opens one beside the coherent one.
 *
 * Several nodes may write different bytes of one block between two releases; the
 * writes are merged. Two that write the same byte have a data race: one wins.
 *
 * Conventions are those of <kdsm/kdsm.h>. A coherent region is one of policy
 * KDSM_POLICY_RELEASE here; a partitioned one gives -EOPNOTSUPP where a coherent
 * one is expected, and the other way round.
 */
#ifndef KDSM_COHERENT_H
#define KDSM_COHERENT_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- regions ---- */

/*
 * Open the coherent region name, as kdsm_region_open() with attr does (its policy
 * 0 means KDSM_POLICY_RELEASE), and beside it the partitioned region "name.sync" of
 * sync_size bytes a node, 1 at least, for words to synchronise by. The flags KEEP
 * and the mode of attr hold for both; EXCL for the coherent one. With attr NULL both
 * must exist, and sync_size is ignored.
 *
 * Both are closed with kdsm_region_close(), the caller's to do.
 *
 * Errors: those of kdsm_region_open(); -EINVAL: the name is too long to have .sync
 * appended; -EOPNOTSUPP: attr has another policy, or name is a partitioned region.
 * On failure nothing is open.
 */
int kdsm_region_open_coherent(struct kdsm *kdsm, const char *name,
			      const struct kdsm_region_attr *attr, uint64_t sync_size,
			      struct kdsm_region **region, struct kdsm_region **sync);

/* ---- release and acquire ---- */

/*
 * Complete all writes that any thread or process of this node has made to the
 * region, up to now, and store what tells of them, and of all that this node has
 * acquired, in *signature, which is the caller's (NULL: not wanted). A call costs as
 * much as there is written since the last one: nothing over the network for blocks
 * that only this node writes.
 *
 * The local backend: a full memory fence and an empty signature.
 *
 * Errors: those of KDSM_IOC_RELEASE in <linux/kdsm.h>; after one, call again or give
 * up: some writes may not be complete.
 */
int kdsm_release(struct kdsm_region *region, struct kdsm_signature *signature);

/*
 * From now on all threads and processes of this node see the writes that signature
 * tells of. What this node has written itself and not released stays as it is.
 *
 * -EINVAL: no signature (NULL, or bytes that no release made). Other errors: those
 * of KDSM_IOC_ACQUIRE; some of what is seen may be too old then, call again.
 */
int kdsm_acquire(struct kdsm_region *region, const struct kdsm_signature *signature);

/*
 * Signatures are struct kdsm_signature of <linux/kdsm.h>: bytes which may be copied
 * and sent, of which the first KDSM_SIGNATURE_BYTES(signature->count) matter.
 * They belong to the region whose release made them.
 */

/* One that tells of nothing. */
void kdsm_signature_init(struct kdsm_signature *signature);

/*
 * Let *signature also tell of what *other tells of. It stays within
 * KDSM_NOTICES_MAX notices: of more, the oldest go and raise the floor to the newest
 * of them, so that an acquire sees at least as much, and has to fetch more again
 * (Endo's dissertation, 3.4.5). Both are as kdsm_release(), kdsm_signature_init()
 * or this made them; of others no more than KDSM_NOTICES_MAX notices are looked at.
 */
void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other);

/*
 * Hand a signature to a node: put it, and then value, into the KDSM_SIGNATURE_PLACE
 * bytes at offset (8-byte aligned, zero at first) of the node's part of sync, and wake
 * who waits there. One vector of two puts of as many bytes as are in use. The place
 * holds one signature: the receiver must have got it before the next is put, and
 * value must differ from that of the one before.
 *
 * Errors: those of kdsm_put().
 */
#define KDSM_SIGNATURE_PLACE 3136

int kdsm_signature_put(struct kdsm_region *sync, unsigned int node, uint64_t offset,
		       const struct kdsm_signature *signature, uint64_t value);

/*
 * Wait until value has arrived at offset of the own part of sync, and store what was
 * put with it in *signature. timeout in ns, or KDSM_FOREVER; signals do not end it.
 *
 * -ETIMEDOUT; -EPROTO: what is there is no signature; errors of kdsm_wait().
 */
int kdsm_signature_wait(struct kdsm_region *sync, uint64_t offset, uint64_t value,
			struct kdsm_signature *signature, uint64_t timeout);

/* ---- hints ---- */

/*
 * To have something done now, for the blocks that have bytes in length bytes at offset,
 * which later would keep a program waiting. What a program reads, and what it has to
 * release and acquire, is the same with and without them. They return when it is done,
 * and promise nothing: what other nodes do next may undo it. length 0 is nothing.
 *
 * The local backend does nothing.
 *
 * -EOPNOTSUPP: a partitioned region. -ERANGE: not inside the region. -EACCES: the region
 * was opened without permission to write (kdsm_pin). Other errors: those of
 * KDSM_IOC_ADVISE in <linux/kdsm.h>; some blocks are as they were then.
 */

/* Have copies here, as if all of it were read: several blocks a round trip. */
int kdsm_prefetch(struct kdsm_region *region, uint64_t offset, uint64_t length);

/*
 * Release what this node wrote there, and nothing else, so that there is less to do
 * for the next kdsm_release(), which is needed all the same: its signature is what tells
 * others. With policy strict: nothing.
 */
int kdsm_flush(struct kdsm_region *region, uint64_t offset, uint64_t length);

/*
 * Become the owner, so that releases of this node cost nothing there, until another
 * node writes there and releases (or, with policy strict, reads or writes it). There is
 * nothing to take back.
 */
int kdsm_pin(struct kdsm_region *region, uint64_t offset, uint64_t length);

/* ---- barrier ---- */

/*
 * A barrier for any number of threads of any number of processes on each node: what
 * was written to the coherent region before it by any participant is seen by all of
 * them after it.
 *
 * The last one to arrive on a node releases for the node. Then signatures go up a
 * tree of nodes, four children a node, merged on the way, and the sum comes down
 * again and is acquired (a combining tree: Yew, Tzeng, Lawrie 1987; the arity and
 * that each waits at a place of its own: Mellor-Crummey, Scott, "Algorithms for
 * scalable synchronization", 1991). A node sends one message up and at most four
 * down, each to a place that nobody else writes.
 *
 * The words of a barrier are KDSM_TREE_BARRIER_SIZE bytes at offset (a multiple of
 * 64) of every part of sync, zero at first, and used for nothing else while the
 * region lives. Their state is all there, so a struct kdsm_tree_barrier is not changed
 * after init: threads may share one, or a process open another on the same words
 * later. It holds the regions but does not own them, and there is nothing to destroy.
 */
#define KDSM_TREE_BARRIER_SIZE	16384
#define KDSM_TREE_BARRIER_ARITY	4

struct kdsm_tree_barrier {
	struct kdsm_region *region, *sync;
	uint64_t offset;
	uint32_t participants;		/* on this node */
	uint16_t parent, children[KDSM_TREE_BARRIER_ARITY];	/* nodes */
	uint8_t child_count;
	uint8_t order;			/* which child of its parent this is */
};

/*
 * participants[k] is how many threads of node k take part, 0 or more, and the same
 * array (of as many as there are nodes; read only during the call) on every node; NULL:
 * one on each. region NULL: a barrier that makes no region consistent.
 *
 * -EINVAL: offset is not aligned, sync belongs to another struct kdsm than region,
 * or there are no participants at all. -ERANGE: it does not fit into a part.
 */
int kdsm_tree_barrier_init(struct kdsm_tree_barrier *barrier, struct kdsm_region *region,
			   struct kdsm_region *sync, uint64_t offset,
			   const uint32_t *participants);

/*
 * Wait until all have come. After any failure the barrier is broken for all nodes,
 * for good; others may still have passed this time. *culprit (may be NULL) is then
 * the node on whose account it failed, as far as can be seen from here: of a
 * subtree that does not come it is the top.
 *
 * -ETIMEDOUT	somebody on node *culprit did not come in timeout ns
 * -EPIPE	node *culprit cannot be reached, or gave up (on a live node the end of
 *		a process is seen by a timeout only)
 * -EINVAL	the words are not those of this barrier, or more have come than
 *		participants on this node; if there should be none here nothing
 *		is broken by it
 * -EPROTO	node *culprit sent no signature
 * others	from kdsm_release(), kdsm_acquire() and operations on sync
 */
int kdsm_tree_barrier_wait(const struct kdsm_tree_barrier *barrier, uint64_t timeout,
			   unsigned int *culprit);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_COHERENT_H */
