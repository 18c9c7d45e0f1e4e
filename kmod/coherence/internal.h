/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that the files of this folder share. Other folders include coherence.h only. */
#ifndef KDSM_COHERENCE_INTERNAL_H
#define KDSM_COHERENCE_INTERNAL_H

#include <linux/bitmap.h>

#include "coherence/coherence.h"

/* ---- the mappings of the region: see struct kdsm_mapping_ops ---- */

static inline void kdsm_pages_unmap(struct kdsm_coherence *coherence, u64 offset, u64 length)
{
	coherence->mapping->unmap(coherence->region, offset, length);
}

static inline bool kdsm_pages_harvest(struct kdsm_coherence *coherence, u64 offset, u64 length,
				      unsigned long *bitmap)
{
	return coherence->mapping->harvest(coherence->region, offset, length, bitmap);
}

static inline void kdsm_pages_protect(struct kdsm_coherence *coherence, u64 offset, u64 length)
{
	coherence->mapping->protect(coherence->region, offset, length);
}

/* ---- block.c ---- */

/*
 * Return the block, or NULL without memory. The caller gets a reference, and drops the reference by
 * kdsm_block_put(), when it does not hold the block's lock. A task uses a block only while it has a
 * reference.
 */
struct kdsm_block *kdsm_block_get(struct kdsm_coherence *coherence, u64 index);
/* As kdsm_block_get(), but return NULL if the table has neither a structure nor a record */
struct kdsm_block *kdsm_block_find(struct kdsm_coherence *coherence, u64 index);
/*
 * As kdsm_block_get(), for the first block from *index to last that has a structure or a record.
 * Sets *index to the number of the block. NULL: there is none.
 */
struct kdsm_block *kdsm_block_next(struct kdsm_coherence *coherence, u64 *index, u64 last);
/* The same for the first block of the write set, which may leave the set meanwhile */
struct kdsm_block *kdsm_block_dirty_next(struct kdsm_coherence *coherence, u64 *index, u64 last);
/* Get another reference. Caller has one, or holds coherence->lock and found the block in a list. */
void kdsm_block_hold(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Drop a reference. After the last one the structure goes, at once or some time later, and leaves
 * in the table what the protocol must remember (record.c).
 */
void kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block);
/* State of a block that a task looks at without a reference */
struct kdsm_glance {
	u8 state;		/* enum kdsm_block_state */
	bool owned, lost;
	/* Policy release: see kdsm_block_is_written() and struct kdsm_block */
	bool written, cached, ahead;
	u64 wts, rts;
};

/*
 * Look at the first block from *index to last that has a structure or a record. Sets *index to the
 * number of the block. Returns false if there is none.
 */
bool kdsm_block_glance(struct kdsm_coherence *coherence, u64 *index, u64 last,
		       struct kdsm_glance *glance);
/* Return page i of the block in a memory, or ERR_PTR(-ENOMEM) */
void *kdsm_block_page(struct kdsm_coherence *coherence, struct kdsm_memory *memory,
		      const struct kdsm_block *block, unsigned int i);

/* Make records of the structures that no task has used for a second */
void kdsm_idlers_work(struct work_struct *work);
/* Free all blocks. No task may use them any more. */
void kdsm_blocks_free(struct kdsm_coherence *coherence);

/* Make the pages of a block in the frame zero. -ENOMEM: nothing happened. */
int kdsm_block_clear(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/*
 * Unmap the block. The new state says whether programs of this node may still fault it in for
 * reading. Write protection would not be enough for policy strict: mprotect makes a dirty entry
 * writable again without a fault. Caller holds the block's lock.
 */
void kdsm_block_unmap(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      enum kdsm_block_state state);

/* ---- record.c ---- */

/* Set in the entry of a record, which is aligned to 8 bytes, and not in that of a structure */
#define KDSM_RECORD_TAG	4UL

int kdsm_records_init(void);
void kdsm_records_exit(void);
/* Size of a record, in bytes */
size_t kdsm_record_size(const struct kdsm_coherence *coherence);

static inline bool kdsm_entry_is_record(const void *entry)
{
	return !xa_is_value(entry) && (unsigned long)entry & KDSM_RECORD_TAG;
}

/* The structure that an entry of the table points to, or NULL */
static inline struct kdsm_block *kdsm_entry_block(void *entry)
{
	return xa_is_value(entry) || kdsm_entry_is_record(entry) ? NULL : entry;
}

/*
 * The next three are for a block that no task uses. Caller holds the lock of the table.
 *
 * Whether this node keeps no copy, twin or writes of the block, for itself or for another node
 */
bool kdsm_block_is_bare(const struct kdsm_coherence *coherence, const struct kdsm_block *block);
/* Whether a bare block may leave the table, because a new structure would do the same */
bool kdsm_block_is_new(const struct kdsm_coherence *coherence, const struct kdsm_block *block);
/* Return a record of the block as an entry, or -ENOMEM. NULL: the block must stay a structure. */
void *kdsm_record_pack(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Fill in a structure, which otherwise is that of a new block, from an entry of the table that is a
 * value or a record. A record belongs to the structure from then on.
 */
void kdsm_block_unpack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
		       void *entry);
/* Policy strict: the set of readers that the record has, or NULL */
unsigned long *kdsm_record_readers(const struct kdsm_coherence *coherence, const void *entry);
/* Free a record, but not the set of readers. Caller holds the lock of the table. */
void kdsm_record_free(struct kdsm_coherence *coherence, void *entry);
/*
 * Return a value entry of the table with all that this node must remember of a bare block, or NULL
 * if that does not fit
 */
void *kdsm_block_memo(const struct kdsm_coherence *coherence, const struct kdsm_block *block);
void kdsm_record_glance(const struct kdsm_coherence *coherence, const void *entry,
			struct kdsm_glance *glance);

/* ---- lease.c ---- */

void kdsm_leases_init(struct kdsm_coherence *coherence);
void kdsm_leases_free(struct kdsm_coherence *coherence);
/*
 * The copy of the block has become valid until rts, or is not valid any more. Caller holds the
 * block's lock, and lowers rts only while the copy is not valid.
 */
void kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       bool is_cached);
/* A lease covers so many neighbouring blocks */
#define KDSM_LEASE_BLOCKS	64

/* Note that the copy of a block is valid until rts */
void kdsm_lease_cover(struct kdsm_coherence *coherence, u64 index, u64 rts);
/*
 * Take the lease that ends first from the tree, if it ends before floor, or return NULL. Until
 * kdsm_lease_put() its rts is that of the copies that become valid meanwhile.
 */
struct kdsm_lease *kdsm_lease_take(struct kdsm_coherence *coherence, u64 floor);
/* rts: the smallest of the copies that stay valid, or U64_MAX */
void kdsm_lease_put(struct kdsm_coherence *coherence, struct kdsm_lease *lease, u64 rts);

/* ---- segment.c ---- */

/* Set up the segments and the number of blocks. Caller has checked kdsm_segments_sane(). */
void kdsm_segments_init(struct kdsm_coherence *coherence,
			const struct kdsm_region_segment *segments, u32 count, u64 size);

/* The first block behind the segment that has block index */
static inline u64 kdsm_segment_end(const struct kdsm_coherence *coherence, u64 index)
{
	return kdsm_segment_of(coherence, index)[1].first;
}

/* ---- stamp.c ---- */

/*
 * A writer stores the two words separately. A reader that finds that check does not match
 * has read the stamp while it was being written, and ignores that stamp.
 */
struct kdsm_stamp {
	__le64 good;	/* the frame has all writes with timestamps up to this */
	/*
	 * Low 32 bits: how much older the newest of these writes is, at most; no write has a
	 * timestamp in between. High 32 bits: a checksum of all other bits.
	 */
	__le64 check;
} __packed;

static inline u64 kdsm_stamp_offset(u64 index)
{
	return index * sizeof(struct kdsm_stamp);
}

/* Number of stamps from this block's to the end of their page: one read can fetch these */
static inline unsigned int kdsm_stamps_left(const struct kdsm_block *block)
{
	u64 offset = kdsm_stamp_offset(block->index);

	return (PAGE_SIZE - offset % PAGE_SIZE) / sizeof(struct kdsm_stamp);
}

/*
 * Take back what the stamp of block index promised. This node does not own the block, or nobody has
 * written it. So no task raises the stamp concurrently, and a reader may find the promise or none.
 * Needs no lock.
 */
void kdsm_stamp_clear(struct kdsm_coherence *coherence, u64 index);
/* Promise the block's read timestamp. This node is the owner. Caller holds the block's lock. */
void kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/*
 * Return the timestamp that a stamp promises, or 0 if the stamp promises nothing or is torn. *wts
 * becomes the timestamp of the newest write up to then: content that has all writes up to *wts has
 * all writes that the stamp promises.
 */
u64 kdsm_stamp_value(const struct kdsm_stamp *stamp, u64 *wts);

/* ---- fetch.c ---- */

/* Pages that receive the content of a block */
struct kdsm_bounce {
	unsigned int count;
	void *pages[];
};

struct kdsm_bounce *kdsm_bounce_alloc(struct kdsm_coherence *coherence,
				      const struct kdsm_block *block);
void kdsm_bounce_free(struct kdsm_bounce *bounce);
/* Where the content of a block is */
struct kdsm_source {
	struct kdsm_memory *memory;	/* coherence->frames, or coherence->twins */
	unsigned int node;
	/*
	 * kdsm_memory_drops() of that memory when this node had not begun to find out that the
	 * content is there: -ESTALE if the node has evicted it since. 0: if it ever has.
	 */
	u64 since;
};

/*
 * Fetch the content of a block into bounce, or into the frame of this node if bounce is NULL.
 * Posts one remote read for each contiguous piece of local memory, 4 to 64 KiB, in chains, and
 * sleeps until all reads are done. Caller holds no block's lock.
 */
int kdsm_block_fetch(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		     const struct kdsm_source *source, struct kdsm_bounce *bounce);
/*
 * As kdsm_block_fetch(), for content of time wts. By time 0 nobody has written the block, or, in
 * policy release, released a write, so the content is zeros. Then the other node needs no memory
 * for the block.
 */
int kdsm_block_content(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       const struct kdsm_source *source, u64 wts, struct kdsm_bounce *bounce);

/*
 * As kdsm_block_content(), for content that node keeps until this node has it. So if the read fails
 * because this node has just heard that node evicted the chunk at some time, it reads again.
 */
int kdsm_block_kept(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		    struct kdsm_memory *memory, unsigned int node, u64 wts,
		    struct kdsm_bounce *bounce);

/* Remote reads that are collected, and posted together when ops is full and at the end */
struct kdsm_fetch {
	struct kdsm_coherence *coherence;
	struct kdsm_memory *memory;
	struct kdsm_operation *ops;
	struct kdsm_stamp *stamps;	/* NULL: no stamps are read */
	u64 since;			/* see struct kdsm_source */
	unsigned int count, room;	/* of ops */
	int err;			/* the first error */
};

/*
 * Begin to fetch about this many blocks, of the size of block, from the frames or twins of other
 * nodes. -ENOMEM: the caller must not call kdsm_fetch_end().
 */
int kdsm_fetch_begin(struct kdsm_fetch *fetch, struct kdsm_coherence *coherence,
		     struct kdsm_memory *memory, u64 since, const struct kdsm_block *block,
		     unsigned int blocks);
/* Add one block of that node. The content goes into bounce, or into the local frame if NULL. */
void kdsm_fetch_add(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		    unsigned int node, struct kdsm_bounce *bounce);
/*
 * Read stamps before content: the stamp of block, which is the first block to be added and
 * is read from the same node, and the stamps of the count - 1 blocks after it. count is at
 * most kdsm_stamps_left(). After kdsm_fetch_end() the stamps are in fetch->stamps, which
 * the caller frees.
 */
void kdsm_fetch_stamps(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		       unsigned int node, unsigned int count);
/* Wait for all reads. 0 or -errno; after an error, any part of the content may be missing. */
int kdsm_fetch_end(struct kdsm_fetch *fetch);

/* ---- ownership.c and chase.c ---- */

/*
 * Send one message about a block, and check the answer. -ENOENT: the node has no such region.
 * -ESTALE: the node has excluded this one.
 */
int kdsm_block_ask(struct kdsm_coherence *coherence, unsigned int node,
		   enum kdsm_message_type type, const struct kdsm_wire_block *wire,
		   struct kdsm_wire_answer *answer);

/*
 * Join the queue for the block and wait until it is granted to this node, by asking along
 * the links. On success the role is TAKING, *from is the node whose twin has the content,
 * and *wts and *rts are the timestamps of that content. Caller has made the block busy.
 * Errors, after which the caller may retry: -EHOSTDOWN, -EIO, -ETIMEDOUT (after a minute),
 * -ENOMEM.
 */
int kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts);
/*
 * Give up a takeover because the content cannot be fetched. The block goes to the node that
 * is queued behind this node, or else to the next node that asks, which may be this node
 * again.
 */
void kdsm_ownership_fail(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Finish a takeover: the role changes from TAKING to OWNER. Then hand the block over if a
 * node is queued behind this node. Caller holds the block's lock; the function drops the
 * lock.
 */
void kdsm_ownership_taken(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Policy release: find the owner and have the owner raise its read timestamp. *from is the node
 * whose frame has the content; *wts and *rts are the timestamps of that content. Caller has made
 * the block busy and does not hold its lock. Errors as of kdsm_ownership_take().
 */
int kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts);
/*
 * Policy strict: join the queue for the block and wait until a node lends a copy, or return the
 * node of a copy that is lent already. *from is the node whose frame has the content of time *wts.
 * Caller has set reading to ASKING, has made the block busy, and does not hold its lock. Errors as
 * of kdsm_ownership_take().
 */
int kdsm_ownership_borrow(struct kdsm_coherence *coherence, struct kdsm_block *block,
			  unsigned int *from, u64 *wts);
/*
 * A node lends a copy with this timestamp, from the frame of node from: change reading to LENT,
 * unless this node does not ask, or a writer demanded newer content. Caller holds the block's
 * lock.
 */
void kdsm_ownership_lent(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int from, u64 wts);
/*
 * Set the link of this node to a node that got the block by hand-over number, if that is newer.
 * Caller holds the block's lock.
 */
void kdsm_ownership_link(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int node, u64 number);

/* Lend and hand over the blocks that nodes waited for until the end of a lease */
void kdsm_ownership_owed_work(struct work_struct *work);
/*
 * For handlers of messages. kdsm_asked_block() returns the block that the message is about, with a
 * reference for the caller, and fills in wire; fields that the sender left out are 0. It returns
 * ERR_PTR(-EINVAL) or ERR_PTR(-ENOMEM) on errors. kdsm_answer() fills in an answer without a
 * hand-over.
 */
struct kdsm_block *kdsm_asked_block(struct kdsm_coherence *coherence,
				    const struct kdsm_request *request,
				    struct kdsm_wire_block *wire);
int kdsm_answer(struct kdsm_request *request, enum kdsm_answer what, unsigned int node);

/*
 * Fill in the number of the newest hand-over known here and, if this node made that
 * hand-over, the rest of it. Caller holds the block's lock.
 */
void kdsm_handover_put(const struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       struct kdsm_wire_handover *wire);
/*
 * Return how many bytes of a message to send. The message has whole bytes and ends with the
 * hand-over; the set of readers is left out if it is empty.
 */
unsigned int kdsm_handover_cut(const struct kdsm_wire_handover *wire, unsigned int whole);
bool kdsm_handover_sane(const struct kdsm_coherence *coherence,
			const struct kdsm_wire_handover *wire);
/*
 * Take up a hand-over to this node, whichever message carried it. A hand-over that this
 * node knows already has no effect. -EINVAL: the hand-over is impossible. -EHOSTDOWN: it is from a
 * node that this node has excluded, so the block is lost. Caller holds the block's lock.
 */
int kdsm_handover_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      const struct kdsm_wire_handover *wire);
/*
 * Stop waiting for the block, because of err. This node tells the node that is queued behind
 * it to ask along the links again. Caller holds the block's lock; the function drops the lock.
 */
void kdsm_ownership_leave(struct kdsm_coherence *coherence, struct kdsm_block *block, int err);

/* ---- take.c ---- */

/* Take over item i of arg, if it has to be. Several tasks call it at the same time. 0 or -errno. */
typedef int (*kdsm_take_t)(struct kdsm_coherence *coherence, void *arg, u64 i);

/*
 * Call take for items 0 to count - 1, several at the same time; probably wanted of them, at least
 * one, wait for the network. size is that of the largest block, in bytes. stops: begin no more
 * after an error. Returns the first error.
 */
int kdsm_take_many(struct kdsm_coherence *coherence, u64 count, u64 wanted, u64 size, bool stops,
		   kdsm_take_t take, void *arg);

/* ---- evict.c ---- */

/* The chunk that has a block */
static inline u64 kdsm_chunk_of(const struct kdsm_coherence *coherence, u64 index)
{
	return kdsm_block_offset(coherence, index) >> KDSM_EVICT_SHIFT;
}

/* Whether programs wait until the block has left. Caller holds the block's lock. */
static inline bool kdsm_block_is_leaving(const struct kdsm_coherence *coherence,
					 const struct kdsm_block *block)
{
	return READ_ONCE(coherence->leaving) == kdsm_chunk_of(coherence, block->index);
}

/* Whether all tasks wait until the block has left */
static inline bool kdsm_block_is_closed(const struct kdsm_coherence *coherence,
					const struct kdsm_block *block)
{
	return READ_ONCE(coherence->closed) == kdsm_chunk_of(coherence, block->index);
}

void kdsm_evict_work(struct work_struct *work);

/* ---- room.c ---- */

/*
 * A node that is full needs a chunk for twins before it can hand blocks over, and another node may
 * be unable to evict anything before that. So twins may exceed all bounds, by these numbers of
 * chunks. The second one is free whenever the work item needs it, because no other task uses it.
 */
#define KDSM_SPARE_HANDOVER	1
#define KDSM_SPARE_PUSH		2

/* Whether an allocation of a chunk failed in the last seconds, and eviction may free a chunk */
bool kdsm_evict_helps(const struct kdsm_coherence *coherence);
/*
 * This node lacks memory to hand a block over: evict a chunk in the background. Returns -ENOBUFS,
 * so that the task that asks for the block drops its locks, waits, and asks again, or -ENOMEM if no
 * eviction helps.
 */
int kdsm_evict_answer(struct kdsm_coherence *coherence);
/* Make memory for the twin of a block, which another node reads to take the block over. -ENOMEM. */
int kdsm_evict_spare(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/* Evict a chunk in the background. Any context. */
void kdsm_evict_start(struct kdsm_coherence *coherence);
/* How long a task waits for memory */
struct kdsm_patience {
	unsigned long end;		/* in jiffies */
	unsigned int rounds;		/* coherence->rounds, before the task last tried */
	bool is_hungry;			/* counts in coherence->hungry */
};

/* A task is about to try something that may need memory */
struct kdsm_patience kdsm_patience_begin(const struct kdsm_coherence *coherence);
/*
 * It returned *err: if memory was missing, here (-ENOMEM) or on another node (-ENOBUFS), wait until
 * there may be some, and return whether to try again. False with -ENOMEM: that will not help.
 * Caller holds no lock, has made no block busy, and calls again after each try, until it is false.
 */
bool kdsm_evict_wait(struct kdsm_coherence *coherence, int *err, struct kdsm_patience *patience);
/* Make the pages that an access to the block needs: 0 or -ENOMEM */
int kdsm_block_room(struct kdsm_coherence *coherence, const struct kdsm_block *block, bool write);

/* ---- lost.c ---- */

/*
 * Ask the nodes that gave up this node whether they excluded it. index is any block of the region.
 * -EHOSTDOWN: a node did not answer. -ESTALE: this node is excluded.
 */
int kdsm_doubts_ask(struct kdsm_coherence *coherence, u64 index);
/* Whether this node has to call kdsm_doubts_ask(), or is excluded */
static inline bool kdsm_is_doubtful(const struct kdsm_coherence *coherence)
{
	return !bitmap_empty(coherence->doubts, coherence->nodes) ||
	       READ_ONCE(coherence->outcast);
}

/* Whether this node has given up a node that has not come back since, or has excluded it */
static inline bool kdsm_is_gone(const struct kdsm_coherence *coherence, unsigned int node)
{
	return kdsm_fabric_is_away(coherence->fabric, node) ||
	       test_bit(node, coherence->excluded);
}

/*
 * Policy strict: allocate the sets of readers, which live as long as the structure. -ENOMEM. Caller
 * holds the block's lock.
 */
int kdsm_readers_alloc(struct kdsm_coherence *coherence, struct kdsm_block *block);
/* Policy strict: how long this node keeps a block that it owns, in ns */
u64 kdsm_strict_lease(const struct kdsm_coherence *coherence);
/*
 * Policy strict: give up any copy, and any loan, of a block of a missing node. Caller holds lock.
 */
void kdsm_strict_forget(struct kdsm_coherence *coherence, struct kdsm_block *block);
/* Policy strict: see kdsm_coherence_untied() */
void kdsm_strict_untied(struct kdsm_coherence *coherence);
/*
 * Policy release: drop the copy of a block that node from has discarded, and the unreleased writes
 * to it, unless the content here is newer than ts. Caller holds the block's lock and the fence.
 */
void kdsm_release_forget(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int from, u64 ts);

/* ---- policy release: release.c, acquire.c, access.c, run.c, twin.c; busy blocks: block.c ---- */

int kdsm_release_acquire(struct kdsm_coherence *coherence,
			 const struct kdsm_signature *signature);
/*
 * Acquire all that was released up to a timestamp that the clock of a node has reached. Caller
 * holds coherence->fence and no block's lock. 0 or -ENOMEM.
 */
int kdsm_acquire_until(struct kdsm_coherence *coherence, u64 floor);
int kdsm_release_refresh(struct kdsm_coherence *coherence, u64 first, u64 last);
int kdsm_release_access(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
			kdsm_map_t map, void *arg);
int kdsm_release_get(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
		     bool awaited);
/* Move the block into or out of the write set. Caller holds the block's lock. */
void kdsm_block_dirty(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      bool is_dirty);
/* See kdsm_coherence_unmapped(), which does this for each block of a range */
void kdsm_block_unmapped(struct kdsm_block *block);
/*
 * Take up the newest notice that names the block, if it is news: set wanted, writer and hint. A
 * notice changes nothing in blocks that this node does not hold, so a task learns of the notice
 * before it looks for the block's content. Caller holds the block's lock.
 */
void kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * kdsm_block_begin() waits until no task uses the network for the block, and makes the
 * block busy; kdsm_block_end() ends that. Caller holds the block's lock; begin may drop and
 * retake the lock.
 */
void kdsm_block_begin(struct kdsm_coherence *coherence, struct kdsm_block *block);
void kdsm_block_end(struct kdsm_coherence *coherence, struct kdsm_block *block);

/*
 * Publish this node's writes to the block up to now. The writes get a timestamp of at least ts
 * that is above all read timestamps of the block, and a notice. If the block continues the
 * range of *notice at the same timestamp, *notice grows by the block. Otherwise *notice enters
 * the signature, and a new notice begins; kdsm_notice_flush() enters the last one. Returns the
 * timestamp. Caller holds the block's lock, and this node owns the block or is taking it over.
 */
u64 kdsm_block_publish(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts,
		       struct kdsm_notice *notice);
void kdsm_notice_flush(struct kdsm_coherence *coherence, struct kdsm_notice *notice);
/*
 * Become the owner of a block, and merge the unreleased writes of this node with the content
 * that other nodes released. Unless any is set, do nothing for a block without unreleased
 * writes. If another node is queued for the block already, the hand-over to that node
 * publishes the writes. Unless NULL, *atomic is performed before the block can go to another node;
 * after an error it was not performed. Caller holds coherence->fence.
 */
int kdsm_block_take(struct kdsm_coherence *coherence, struct kdsm_block *block, bool any,
		    struct kdsm_atomic *atomic);

/* ---- atomic.c ---- */

int kdsm_release_atomic(struct kdsm_coherence *coherence, struct kdsm_block *block,
			struct kdsm_atomic *atomic, bool wait);
/*
 * This node is taking over the block, and has its content: acquire if the operation says so, and
 * perform it. 0 or -ENOMEM. Caller holds coherence->fence and the block's lock, which the function
 * may drop meanwhile, and has made the block busy.
 */
int kdsm_atomic_taken(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct kdsm_atomic *atomic);

/*
 * word.c: perform the operation on the aligned 8 bytes that contain the word, and return whether it
 * stored. Programs of this node may change all of the 8 bytes concurrently.
 */
bool kdsm_word_update(atomic64_t *bytes, struct kdsm_atomic *atomic);

/* Copy the frame into the twin. -ENOMEM. Caller holds the block's lock. */
int kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
/* Merge the content of node from into the frame. Caller holds the block's lock; the twin exists. */
void kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     const struct kdsm_bounce *theirs, unsigned int from, bool keep);

/*
 * Whether the twin of node from, which hands the block over with this write timestamp, is what the
 * frame here had before the unreleased writes of this node. Caller holds the block's lock.
 */
bool kdsm_twin_is_here(const struct kdsm_block *block, unsigned int from, u64 wts);

/* ---- race.c ---- */

/*
 * Count a race, and give it a number. If keep is set, trace it and keep it for
 * kdsm_coherence_races(). Takes coherence->lock, and may sleep.
 */
void kdsm_race_found(struct kdsm_coherence *coherence, const struct kdsm_race *race, bool keep);
void kdsm_races_free(struct kdsm_coherence *coherence);

/* A block that a release or an acquire works on */
struct kdsm_picked {
	struct kdsm_block *block;
	bool modified;		/* release: has writes to publish */
	bool writable;		/* acquire: was writable before it became invalid */
};

/* Such blocks, with references */
struct kdsm_picks {
	struct kdsm_picked *list;
	size_t count, room;
};

/*
 * Add a block, and take over a reference from the caller. Valid until the next call. NULL: there is
 * no memory, and the caller keeps the reference.
 */
struct kdsm_picked *kdsm_picks_add(struct kdsm_picks *picks, struct kdsm_block *block);
/* Drop the references, and free the list */
void kdsm_picks_free(struct kdsm_coherence *coherence, struct kdsm_picks *picks);
/* Sort by index of the block */
void kdsm_picked_sort(struct kdsm_picked *picked, size_t count);
/* Return how many of count sorted blocks, from the first on, are neighbours in one segment */
size_t kdsm_run_length(const struct kdsm_coherence *coherence, const struct kdsm_picked *picked,
		       size_t count);
/*
 * Harvest the dirty bits of a run of n blocks into the modified flags of the blocks. Caller
 * holds coherence->fence and none of the blocks' locks. -ENOMEM: nothing was harvested.
 */
int kdsm_run_harvest(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
		     size_t n);

/* Harvest the dirty bits of one block into modified. -ENOMEM. Caller holds the block's lock. */
int kdsm_block_harvest(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Whether programs of this node may have written to the block although the last harvest found no
 * write: since then, or before a harvest by another task that has not marked the block yet. May
 * set modified. Caller holds the block's lock.
 */
bool kdsm_block_in_doubt(struct kdsm_coherence *coherence, struct kdsm_block *block);

/* ---- access.c and prefetch.c ---- */

/*
 * Whether a notice names the writer of content that is new enough. Caller holds the block's
 * lock.
 */
bool kdsm_block_writer_known(struct kdsm_coherence *coherence,
			     const struct kdsm_block *block);
/*
 * Least read timestamp that content must have to be useful here. Caller holds the block's
 * lock.
 */
u64 kdsm_block_need(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/*
 * The frame has received content with these timestamps from the frame of node from, or already had
 * that content (KDSM_NOBODY). If the content is new enough, makes the block valid and returns true.
 * Returns false if an acquire demanded newer content meanwhile. Caller holds the block's lock and
 * has made the block busy.
 */
bool kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int from, u64 wts, u64 rts);

/*
 * The program sees writes by a refresh, without the writers' signatures. So the signature of this
 * node gets a notice, for the nodes that the program tells. All writes up to wts are in the frame
 * of node from.
 */
void kdsm_block_tell(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		     unsigned int from, u64 wts);

/* Blocks that read-ahead brings along with a read miss; each is busy */
struct kdsm_ahead {
	struct kdsm_stream *stream;
	unsigned int stamps;		/* number of stamps to read, from the missed block's on */
	unsigned int count;
	struct kdsm_ahead_block {
		struct kdsm_block *block;
		bool known;		/* from is the writer that a notice names, not the owner */
		bool same;		/* the copy here is still current: nothing is fetched */
		unsigned int from;
		u64 wts;		/* of the content there; 0: read from its stamp later */
	} list[];
};

/*
 * Choose the blocks to bring along with a read miss. Caller has made the missed block busy
 * and does not hold its lock. owner is the node whose stamps the caller is about to read,
 * or KDSM_NOBODY. Returns NULL if no block comes along. Caller always calls
 * kdsm_ahead_end().
 */
struct kdsm_ahead *kdsm_ahead_begin(struct kdsm_coherence *coherence,
				    const struct kdsm_block *block, unsigned int owner);
/* Add the content of all blocks of the read-ahead to a fetch. ahead may be NULL. */
void kdsm_ahead_add(struct kdsm_fetch *fetch, const struct kdsm_ahead *ahead);
/*
 * Fetch the blocks whose writers are known or whose stamps promise enough, and drop the others.
 * stamps begins with the stamp of the missed block. since is as in struct kdsm_source. Returns
 * false if content may be missing. ahead may be NULL.
 */
bool kdsm_ahead_fetch(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead,
		      const struct kdsm_block *block, const struct kdsm_stamp *stamps, u64 since);
/*
 * End the read-ahead and free ahead, which may be NULL. If is_here is set, all content has
 * arrived: make the blocks valid. Caller holds no block's lock.
 */
void kdsm_ahead_end(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead, bool is_here);
/*
 * A program uses block: have it use the blocks that read-ahead brought along with block, too.
 * Caller holds no block's lock.
 */
void kdsm_ahead_use(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		    kdsm_map_t map, void *arg);

/* Add n to a counter of the region, named without KDSM_COHERENCE_ */
#define kdsm_coherence_count(coherence, which, n)				\
	atomic64_add(n, &(coherence)->stats[KDSM_COHERENCE_##which])

/* Policy strict: whether nodes wait for this one to lend copies. Caller holds the block's lock. */
static inline bool kdsm_readers_wait(const struct kdsm_coherence *coherence,
				     const struct kdsm_block *block)
{
	return coherence->is_strict && block->waiting &&
	       !bitmap_empty(block->waiting, coherence->nodes);
}

static inline bool kdsm_block_is_owned(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_OWNER;
}

/* Policy release: whether programs may have written to the block since the last release */
static inline bool kdsm_block_is_written(const struct kdsm_coherence *coherence,
					 const struct kdsm_block *block)
{
	return !coherence->is_strict && (block->modified || block->dirty);
}

/*
 * Whether the block has content that its owner must keep. Whatever time others promised for a block
 * that nobody has written, it is zeros.
 */
static inline bool kdsm_block_has_content(const struct kdsm_coherence *coherence,
					  const struct kdsm_block *block)
{
	return block->wts || kdsm_block_is_written(coherence, block);
}

/* State of a block with valid content under policy release */
static inline enum kdsm_block_state kdsm_block_valid_state(const struct kdsm_block *block)
{
	return block->dirty ? KDSM_BLOCK_WRITABLE : KDSM_BLOCK_READABLE;
}

#endif /* KDSM_COHERENCE_INTERNAL_H */
