/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coherence of the blocks of one region: the interface for the other folders, and the state
 * that both policies share. Every node has a frame for every block, in a memory as large as
 * the region. This folder decides which frames hold valid content and which node owns the
 * newest content.
 *
 * The files of this folder know the fabric's messages and operations and the mapping
 * functions of struct kdsm_mapping_ops. They know neither verbs nor page tables, so the
 * simulator (tests/sim) runs them unmodified.
 */
#ifndef KDSM_COHERENCE_H
#define KDSM_COHERENCE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_netlink.h>

#include "fabric/fabric.h"

/* ---- signatures ---- */

/*
 * A release hands a signature to an acquire: a bounded list of write notices, and a
 * timestamp (floor) below which notices may be missing (Endo's dissertation, 3.4.5). The
 * layout is in <kdsm/uapi.h>. Notices are ordered by timestamp, the oldest first. Every
 * write without a notice in the list has a timestamp of at most floor.
 *
 * A notice without a writer (KDSM_NOBODY) is a summary: a floor of its blocks. A summary stands for
 * all writes to its blocks up to its timestamp, and perhaps no node wrote some of them. A notice
 * with shares names several writers; see kdsm_notice_writer().
 */

/*
 * Blocks first..end-1 include all blocks of which joins demand newer content than the joined
 * notices did. end is 0 if there are none.
 */
struct kdsm_raised {
	u64 first, end;
};

/**
 * kdsm_signature_init() - make a signature empty
 * @signature: the signature, which the caller guards
 *
 * Context: any, as for all functions on signatures.
 */
void kdsm_signature_init(struct kdsm_signature *signature);

/**
 * kdsm_signature_add() - add a write notice to a signature
 * @signature: the signature, which the caller guards
 * @notice: blocks first..first+count-1 were written by writer, at ts
 * @raised: extended to the blocks of which a join demands newer content than the joined notices
 *
 * The list leaves out blocks that a notice of the same or a later time covers. So a node
 * that writes the same blocks repeatedly occupies one notice. When the list is full, the function
 * joins notices of neighbouring blocks. If joins do not suffice, it drops the oldest notices and
 * raises the floor.
 *
 * Return: true if the notice was new.
 */
bool kdsm_signature_add(struct kdsm_signature *signature, const struct kdsm_notice *notice,
			struct kdsm_raised *raised);

/**
 * kdsm_signature_raise() - raise the floor of a signature
 * @signature: the signature, which the caller guards
 * @floor: the floor; a lower one has no effect
 *
 * The notices that the floor covers leave the list.
 */
void kdsm_signature_raise(struct kdsm_signature *signature, u64 floor);

/**
 * kdsm_signature_newest() - the newest timestamp of a signature
 * @signature: the signature
 * @writer: receives the node whose notice has that timestamp, or KDSM_NOBODY if only the floor or
 *	a summary has it
 *
 * Return: the timestamp. If releases made the signature, the clock of @writer, or of some node if
 * @writer is KDSM_NOBODY, has reached the timestamp.
 */
u64 kdsm_signature_newest(const struct kdsm_signature *signature, unsigned int *writer);

/* Whether a notice is a summary, which names no writer */
static inline bool kdsm_notice_is_summary(const struct kdsm_notice *notice)
{
	return notice->writer == KDSM_NOBODY;
}

/**
 * kdsm_notice_writer() - the writer of a block that a notice names
 * @notice: the notice
 * @index: the block
 *
 * Return: the node, or KDSM_NOBODY if the notice is a summary.
 */
static inline unsigned int kdsm_notice_writer(const struct kdsm_notice *notice, u64 index)
{
	return notice->writer + (notice->share ? (index - notice->first) / notice->share : 0);
}

/**
 * kdsm_signature_find() - the newest notice of another node about a block
 * @signature: the signature, whose notices are in order
 * @index: the block
 * @node: this node
 *
 * Return: the notice, or NULL if there is none.
 */
const struct kdsm_notice *kdsm_signature_find(const struct kdsm_signature *signature, u64 index,
					      unsigned int node);

/**
 * kdsm_signature_floor() - timestamp up to which notices of a block may be missing
 * @signature: the signature
 * @index: the block
 *
 * Return: the floor of the signature, or the timestamp of the newest summary that has the block, if
 * that is larger.
 */
u64 kdsm_signature_floor(const struct kdsm_signature *signature, u64 index);

/**
 * kdsm_signature_flatten() - replace the notices of a signature by a floor
 * @signature: the signature
 *
 * An acquire of the result makes at least as much visible, and invalidates more copies. It does
 * not depend on what the notices claim, so it does no harm if they are false.
 */
void kdsm_signature_flatten(struct kdsm_signature *signature);

/**
 * kdsm_signature_sane() - check a signature that comes from a program
 * @signature: the signature to check
 * @nodes: number of nodes in the cluster
 * @blocks: number of blocks in the region
 *
 * The function checks neither the timestamps nor the order of the notices.
 *
 * Return: true if all notices have blocks of the region, and writers that are nodes of the cluster
 * or, in summaries, KDSM_NOBODY.
 */
bool kdsm_signature_sane(const struct kdsm_signature *signature, unsigned int nodes,
			 u64 blocks);

/* ---- blocks of a region ---- */

struct kdsm_region;

/* Default lease of policy strict: shortest time that a node keeps a block, in ns */
#define KDSM_LEASE_DEFAULT	(100 * NSEC_PER_USEC)

/* Largest valid timestamp; timestamps are logical */
#define KDSM_CLOCK_MAX	(1ULL << 62)

/* Eviction frees pieces of this size, as log2 of bytes. The simulator sets a smaller value. */
#ifndef KDSM_EVICT_SHIFT
#define KDSM_EVICT_SHIFT	KDSM_CHUNK_SHIFT
#endif
#define KDSM_NO_CHUNK		U64_MAX

/* Marks in kdsm_coherence.table: structures and records; policy release: blocks of the write set */
#define KDSM_BLOCK_MARK		XA_MARK_0
#define KDSM_DIRTY_MARK		XA_MARK_1

/* A range of the region that has blocks of one size: segment.c */
struct kdsm_block_segment {
	u64 offset;		/* of its first byte */
	u64 first;		/* its first block */
	unsigned int shift;	/* size of a block, as log2 of bytes */
};

/* The leases of neighbouring blocks: lease.c */
struct kdsm_lease {
	struct rb_node by_rts;		/* empty while an acquire compares the copies */
	struct rb_node by_first;
	u64 first;			/* of the blocks */
	u64 rts;			/* no copy of them ends before this; U64_MAX: no copy */
};

struct kdsm_leases {
	struct rb_root_cached by_rts;
	struct rb_root by_first;
	struct kdsm_lease whole;	/* of all blocks: for copies without memory for a lease */
	u64 count;			/* of leases in by_first */
};

/* Number of concurrent sequences of read misses that the read-ahead distinguishes */
#define KDSM_STREAMS		4U

/* Access that this node has to its frame of a block */
enum kdsm_block_state {
	KDSM_BLOCK_INVALID = 0,		/* mapped nowhere */
	KDSM_BLOCK_READABLE,		/* mapped read-only, if at all */
	KDSM_BLOCK_WRITABLE,		/* in the write set; may be mapped writable */
};

/* Place of this node in the queue for ownership of a block */
enum kdsm_block_role {
	KDSM_ROLE_NONE = 0,
	KDSM_ROLE_WAITING,	/* has asked for the block and has not been granted it */
	/* Granted, but no task here takes the block over: the next node that asks gets the block */
	KDSM_ROLE_GRANTED,
	KDSM_ROLE_TAKING,	/* granted; the takeover is not finished */
	KDSM_ROLE_OWNER,	/* has the newest released content */
};

/* Request of this node for a copy of a block, policy strict */
enum kdsm_block_reading {
	KDSM_READING_NONE = 0,
	KDSM_READING_ASKING,	/* a task asks along the links; an owner may have lent a copy */
	KDSM_READING_QUEUED,	/* the last asked node will send LEND */
	/* A task fetches content that stays where it is until this node answers INVALIDATE */
	KDSM_READING_LENT,
};

/*
 * One block, as this node sees it. lock protects the page table entries of the block and all
 * other fields, but coherence->lock protects owed, and the lock of coherence->table protects users,
 * idlers, idle_since and record. A task holds lock for short, local work only, and never during a
 * message or a remote operation. lock nests inside mmap_lock; coherence->lock and the locks that
 * the mapping functions take nest inside lock (Documentation/design/lock-order.md).
 */
struct kdsm_block {
	struct mutex lock;	/* see above */
	u64 index;
	u64 handover;		/* number of the newest hand-over known here; the first is 1 */
	/* As of the newest hand-over: timestamps of the content; from has the content */
	u64 from_wts, from_rts;
	u64 wts, rts;		/* of the content here: write timestamp, end of validity */
	/*
	 * Newest timestamp that a notice (see kdsm_block_learn()) or, policy strict, a writer
	 * demanded; 0: none
	 */
	u64 wanted;
	/* Policy strict: */
	u64 lease_end;		/* end of the lease, in ns of ktime */
	struct list_head owed;	/* on coherence->owed, while nodes wait for the end of the lease */
	unsigned long *readers;	/* nodes with copies; handed over with the block. NULL: none */
	unsigned long *waiting;	/* nodes to lend copies to after the lease. NULL: none */

	struct list_head idlers;	/* on coherence->idlers, or empty */
	unsigned long idle_since;	/* in jiffies */
	void *record;		/* for when the block is idle again; NULL: to be allocated then */
	u32 users;		/* number of references; see kdsm_block_get() in internal.h */
	u16 owner;		/* node that got the block by the newest hand-over known here */
	u16 next;		/* successor of this node in the queue, or KDSM_NOBODY */
	u16 from;		/* node that has the content as of the newest hand-over */
	u16 hint;		/* a later owner of the block than owner; KDSM_NOBODY: unknown */
	union {
		struct {	/* policy strict */
			u16 lender;	/* LENT: node to fetch from; QUEUED: node that will lend */
			u8 reading;	/* enum kdsm_block_reading */
			bool awaited;	/* a program waits; the lease begins when it runs */
		};
		struct {	/* policy release */
			/* Node that wrote what this node lacks; KDSM_NOBODY: unknown */
			u16 writer;
			u16 origin;	/* node whose frame the content came from, as writer */
			bool ahead;	/* read-ahead brought it, and no program has used it */
			u8 idle : 4;	/* consecutive releases that found no write */
			u8 lease : 3;	/* as owner: length of leases, as log2, in KDSM_LEASE */
			bool changing : 1;	/* the last miss had a copy, which was old */
		};
	};
	u8 state;		/* enum kdsm_block_state */
	u8 role;		/* enum kdsm_block_role */
	bool busy;		/* a task uses the network for the block; other tasks wait */
	bool late;		/* next asked after this node got the block */
	bool again;		/* what the node in front answered does not hold; ask again */
	bool lost;		/* a missing node kept a task from the block */
	/* Bit-fields share a word, so tasks access them only with lock held */
	bool given : 1;		/* this node made the newest hand-over; repeats it when asked */
	bool taken : 1;		/* number and link must be remembered: of a hand-over or a claim */
	bool unread : 1;	/* handed over, and the next owner may not have read the content */
	bool dirty : 1;		/* policy release: in the write set; has KDSM_DIRTY_MARK */
	bool cached : 1;	/* the same: valid and not owned, so a lease (lease.c) covers it */
	bool twin : 1;		/* the same: the twin holds the content of the last merge */
	bool modified : 1;	/* the same: unpublished writes that page tables may not show */
	bool whole : 1;		/* the same: the frame has all writes up to wts, in any state */
	bool direct : 1;	/* the same: from owned the block when this node asked it */
	bool ask : 1;		/* the same: only the owner can tell whether content is new */
	bool missed : 1;	/* the same: the last miss had a copy, so changing counts */
};

struct kdsm_coherence;

/*
 * Use block index, which is readable now and, if writable is set, writable: usually, make page
 * table entries for its pages. arg is the arg of kdsm_coherence_access(). The policy calls the
 * function for the block that the program touched and, after that, for each block that
 * read-ahead brought. The policy holds the block's lock, so that a task that takes the block
 * away under that lock misses no page table entry. 0 or -errno.
 */
typedef int (*kdsm_map_t)(void *arg, u64 index, bool writable);

/*
 * Operations of a policy. The caller holds the block's lock unless the comment says
 * otherwise.
 */
struct kdsm_policy_ops {
	/* See kdsm_coherence_access(). Takes the block's lock itself. */
	int (*access)(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
		      kdsm_map_t map, void *arg);
	/*
	 * See kdsm_coherence_get(). Takes the block's lock itself. awaited: a program calls
	 * access() as soon as it runs.
	 */
	int (*get)(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
		   bool awaited);
	/*
	 * Prepare the hand-over of a block that this node owns. Returns -EAGAIN if the
	 * block cannot leave before lease_end, -ENOMEM if the block stays here.
	 */
	int (*handover)(struct kdsm_coherence *coherence, struct kdsm_block *block);
	/*
	 * Prepare to lend a copy to node to. This node owns the block or was granted it.
	 * clock is the clock of node to. *wts and *rts are the timestamps of the content; lend
	 * may raise *rts. Returns -EAGAIN if the block cannot be lent before lease_end, or
	 * -ENOMEM.
	 */
	int (*lend)(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int to, u64 clock, u64 *wts, u64 *rts);
	/*
	 * See kdsm_coherence_release() and kdsm_coherence_acquire(). The caller holds no
	 * lock. NULL: the policy has nothing to do.
	 */
	int (*release)(struct kdsm_coherence *coherence, struct kdsm_signature *signature);
	int (*acquire)(struct kdsm_coherence *coherence,
		       const struct kdsm_signature *signature);
	/*
	 * Release the writes to blocks first..last. The caller holds no lock. NULL: nothing
	 * to do.
	 */
	int (*flush)(struct kdsm_coherence *coherence, u64 first, u64 last);
	/* See kdsm_coherence_atomic(). The caller holds no lock. NULL: CPUs can do the same. */
	int (*atomic)(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct kdsm_atomic *atomic, bool wait);
	/* Make blocks first..last current. The caller holds no lock. NULL: nothing to do. */
	int (*refresh)(struct kdsm_coherence *coherence, u64 first, u64 last);
	/*
	 * Become the owner of the block. The caller holds coherence->fence, or works for a task
	 * that does. 0 or -errno.
	 */
	int (*own)(struct kdsm_coherence *coherence, struct kdsm_block *block);
	/*
	 * Make the frame of a discarded block zero, as content written at ts, and readable, before
	 * this node becomes the owner. -ENOMEM: nothing happened. The caller has made the block
	 * busy and, policy release, holds the fence.
	 */
	int (*wipe)(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts);
};

extern const struct kdsm_policy_ops kdsm_policy_release, kdsm_policy_strict;

/*
 * Calls up, to the mappings of the region in all processes of this node. region is
 * coherence->region. Offsets and lengths are in bytes, multiples of the page size. Each
 * call may sleep.
 */
struct kdsm_mapping_ops {
	/* Unmap the range: the next access to it faults. */
	void (*unmap)(struct kdsm_region *region, u64 offset, u64 length);
	/*
	 * Set the bits of the pages that programs wrote since the pages were mapped
	 * writable or last harvested. Bit 0 is the first page of the range. Mappings stay
	 * writable. Returns whether it set any bit. While a process unmaps part of the
	 * region, harvest may set all bits. After harvest, the caller checks each block
	 * without a set bit for the mark that kdsm_coherence_unmapped() makes.
	 */
	bool (*harvest)(struct kdsm_region *region, u64 offset, u64 length,
			unsigned long *bitmap);
	/* Write-protect the range. Earlier writes can still be harvested. */
	void (*protect)(struct kdsm_region *region, u64 offset, u64 length);
};

/* All blocks of one region on this node */
struct kdsm_coherence {
	struct kdsm_region *region;	/* argument of the mapping functions */
	const struct kdsm_mapping_ops *mapping;
	/* Make the largest region that shares the exhausted memory evict, too. May sleep. */
	void (*share)(struct kdsm_region *region);
	struct kdsm_fabric *fabric;
	struct kdsm_memory *frames;
	struct kdsm_memory *twins, *stamps;	/* policy release only */
	u32 id;				/* of the region */
	const struct kdsm_policy_ops *policy;
	bool is_strict;			/* policy is strict */
	u64 blocks;
	u64 group;			/* number of neighbouring blocks that have the same home */
	/* In ascending order, and behind them one that begins at the end of the region */
	struct kdsm_block_segment segments[KDSM_MAX_SEGMENTS + 1];
	const struct kdsm_block_segment *last_segment;
	unsigned int node, nodes;
	wait_queue_head_t wait;		/* tasks that wait until a block is not busy, or granted */

	/*
	 * The blocks that this node holds, owns or has owned, and those that tasks use at this
	 * moment, by index. A block that is missing has the state of a new one. An entry is a
	 * structure or, for a block that no task uses, a record or a value (record.c).
	 */
	struct xarray table;
	/* Protected by the lock of table: */
	u64 structures, memos;		/* numbers of these entries, */
	u64 records;			/* and of all records, also those that structures keep */
	/* Structures that no task uses, the one that was used last at the end, and their number */
	struct list_head idlers;
	u64 idler_count;
	struct delayed_work idlers_work;	/* makes records of them after a while */

	/* Nodes that lost their part of the region, because this node took them for dead: lost.c */
	DECLARE_BITMAP(excluded, KDSM_MAX_NODES);
	/* Nodes that gave up this node, and may have excluded it; under lock, as is untied */
	DECLARE_BITMAP(doubts, KDSM_MAX_NODES);
	unsigned int untied;		/* number of times that a node became one of these */
	bool outcast;			/* another node has excluded this node */
	u64 promised;			/* under lock: this node takes part in no earlier ballot */

	/* Policy strict only: */
	u64 lease;			/* shortest time that a node keeps a block, in ns */
	u64 fetch_time;			/* mean time in which content arrives, in ns */
	struct work_struct owed_work;	/* lends and hands over the blocks of owed */
	struct list_head owed;		/* blocks that nodes wait for until the end of the lease */

	/* Eviction: evict.c */
	struct work_struct evict_work;
	u64 leaving;			/* chunk whose blocks programs do not get; KDSM_NO_CHUNK */
	u64 closed;			/* chunk whose blocks no task makes busy; KDSM_NO_CHUNK */
	unsigned int rounds;		/* evicted chunks, and times that none could be evicted */
	unsigned int hungry;		/* tasks that lack memory of this node; under lock */
	u64 needed;			/* chunk that a task waited for last */
	u64 hand;			/* chunk to begin with; for evict_work only, like taker */
	unsigned int taker;		/* node that took blocks over last */
	/* Chunks that the kernel or another region asked for, and that are not evicted yet */
	unsigned int reclaim;
	struct shrinker *shrinker;

	struct mutex fence;		/* serialises releases, acquires and OWN of the region */
	/* Policy release only, except lock and stats: */
	bool behind;			/* an acquire ended early; under fence */
	/* Floor of the newest acquire that has ended: no copy here lacks earlier writes */
	u64 acquired;
	/* A harvest has cleared dirty bits, and has not marked the blocks yet; under fence */
	bool harvesting;
	/* Blocks that were refreshed are among these; protected by the lock of table */
	u64 ask_first, ask_end;
	/* Protects owed, leases, clock, signature, raised, streams, stream, races */
	spinlock_t lock;
	u64 clock;			/* newest timestamp that this node knows */
	struct kdsm_signature signature;	/* all writes that happened before this point */
	/* Blocks whose copies no acquire has compared with the summaries of signature yet */
	struct kdsm_raised raised;
	struct kdsm_leases leases;	/* of valid copies that are not owned */
	struct kdsm_stream {
		u64 next;		/* index of the next miss if the sequence continues */
		unsigned int window;	/* number of blocks that the last miss brought along */
	} streams[KDSM_STREAMS];	/* sequences of read misses */
	unsigned int stream;		/* index of the stream to replace next */
	unsigned int changes;		/* misses in succession that found newer content, up to 8 */
	struct kdsm_race_ring *races;	/* made when the first race is found */
	atomic64_t stats[KDSM_COHERENCE_COUNT];
};

/**
 * kdsm_blocks_init() - set up the allocator of struct kdsm_block for all regions
 *
 * The caller calls it once, before it makes the first region.
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_blocks_init(void);

/**
 * kdsm_blocks_exit() - free the allocator of struct kdsm_block, after the last region is gone
 */
void kdsm_blocks_exit(void);

/**
 * kdsm_coherence_init() - set up the coherence of a region on this node
 * @coherence: the structure to set up
 * @fabric: the fabric that carries messages and operations
 * @nodes: number of nodes that take part in the region
 * @id: id of the region
 * @policy: KDSM_POLICY_RELEASE or KDSM_POLICY_STRICT
 * @size: size of the region, in bytes; a multiple of the block size of the last segment
 * @segments: the segments of the region; see kdsm_segments_sane()
 * @count: number of segments
 * @contiguous: whether all blocks of a home are neighbours; see KDSM_REGION_CONTIGUOUS
 *
 * The caller then sets region, mapping, share and frames and, for policy release, twins and
 * stamps. frames and twins are memories of the region's whole size; stamps has
 * kdsm_stamps_size() bytes.
 */
void kdsm_coherence_init(struct kdsm_coherence *coherence, struct kdsm_fabric *fabric,
			 unsigned int nodes, u32 id, u32 policy, u64 size,
			 const struct kdsm_region_segment *segments, u32 count, bool contiguous);

/**
 * kdsm_coherence_exit() - free the blocks
 * @coherence: the coherence of a region that no task uses any more
 */
void kdsm_coherence_exit(struct kdsm_coherence *coherence);

/**
 * kdsm_coherence_access() - use a block, if no other node has to be asked
 * @coherence: the coherence of the region
 * @index: the block
 * @write: true if the program writes
 * @map: called under the block's lock, for this block and, under their locks, for blocks that
 *    read-ahead brought along with it
 * @arg: argument of @map
 *
 * Sleeps, and waits for no network. Caller may hold mmap_lock, but holds no lock that nests
 * inside mmap_lock.
 *
 * Return: 0, -ERANGE, -ENOMEM, or the value that @map returned for this block; -EAGAIN: the
 * caller needs kdsm_coherence_get() first; -EBUSY: so it does, but another task gets the block
 * already.
 */
int kdsm_coherence_access(struct kdsm_coherence *coherence, u64 index, bool write,
			  kdsm_map_t map, void *arg);

/**
 * kdsm_coherence_get() - make a block readable or writable on this node, for a program
 * @coherence: the coherence of the region
 * @index: the block
 * @write: true if the program writes
 *
 * The program calls kdsm_coherence_access() next. Under policy strict this node keeps the block for
 * some time, in which the program can do so. If the program is late, and another node has got the
 * block, that call returns -EAGAIN, and the program calls this function again.
 *
 * Sleeps, and waits for the network. Caller holds no lock.
 *
 * Return: 0, -ERANGE, -EIO, -EHOSTDOWN, -ETIMEDOUT, -ENOMEM, or -ESTALE: other nodes took this one
 * for dead and discarded blocks, so it has no part of the region any more.
 */
int kdsm_coherence_get(struct kdsm_coherence *coherence, u64 index, bool write);

/**
 * kdsm_coherence_is_busy() - whether a task of this node uses the network for a block
 * @coherence: the coherence of the region; the end of that wakes the tasks on @coherence->wait
 * @index: a block of the region
 *
 * Context: a task, which may be about to sleep.
 *
 * Return: true or false.
 */
bool kdsm_coherence_is_busy(struct kdsm_coherence *coherence, u64 index);

/**
 * kdsm_coherence_release() - publish all earlier writes of this node's programs
 * @coherence: the coherence of the region
 * @signature: NULL, or the signature to fill in, which is for the acquirer
 *
 * Sleeps. Caller does not hold mmap_lock, which nests inside coherence->fence.
 *
 * Return: 0, or an error as of kdsm_coherence_get(). After an error some writes are not
 * published.
 */
int kdsm_coherence_release(struct kdsm_coherence *coherence,
			   struct kdsm_signature *signature);

/**
 * kdsm_coherence_clock() - the newest timestamp that this node knows
 * @coherence: the coherence of the region
 *
 * Context: any.
 *
 * Return: the timestamp. It never falls.
 */
static inline u64 kdsm_coherence_clock(const struct kdsm_coherence *coherence)
{
	return READ_ONCE(coherence->clock);
}

/**
 * kdsm_coherence_acquire() - make visible here what the releaser had written or seen
 * @coherence: the coherence of the region
 * @signature: the signature that the release filled in
 *
 * Sleeps. Caller does not hold mmap_lock, which nests inside coherence->fence.
 *
 * Return: 0, -EINVAL, -ENOMEM, or -EHOSTDOWN or -ESTALE as of kdsm_coherence_get(). After any but
 * the first two, some copies may be stale.
 */
int kdsm_coherence_acquire(struct kdsm_coherence *coherence,
			   const struct kdsm_signature *signature);

/**
 * kdsm_coherence_advise() - follow a hint about a range of blocks; see KDSM_IOC_ADVISE
 * @coherence: the coherence of the region
 * @advice: the hint
 * @first: first block of the range
 * @last: last block of the range; the region has this block
 *
 * Sleeps. Caller does not hold mmap_lock, which nests inside coherence->fence.
 *
 * Return: 0, -EINTR if a signal arrived, or an error as of kdsm_coherence_get().
 */
int kdsm_coherence_advise(struct kdsm_coherence *coherence, enum kdsm_advice advice,
			  u64 first, u64 last);

/**
 * kdsm_coherence_atomic() - perform an atomic operation on a word; see KDSM_IOC_ATOMIC
 * @coherence: the coherence of the region
 * @atomic: the operation, whose flags, opcode, size and alignment are valid; receives the result
 * @wait: whether to wait for the network
 *
 * If the operation has KDSM_ATOMIC_RELEASE, the caller has called kdsm_coherence_release().
 *
 * Sleeps. Caller does not hold mmap_lock, which nests inside coherence->fence.
 *
 * Return: 0; -EOPNOTSUPP, -ERANGE; -EAGAIN: the caller has to call again, and wait; or an
 * error as of kdsm_coherence_get(). After an error the operation has not taken effect.
 */
int kdsm_coherence_atomic(struct kdsm_coherence *coherence, struct kdsm_atomic *atomic, bool wait);

/**
 * kdsm_coherence_lost() - list the lost blocks that this node has met; see KDSM_IOC_LOST
 * @coherence: the coherence of the region
 * @list: receives the offsets of the blocks in the region, in ascending order
 * @room: number of offsets that @list has room for
 * @next: offset to begin at; receives that of the end of the list, or the size of the region
 *
 * Return: number of offsets in @list.
 */
unsigned int kdsm_coherence_lost(struct kdsm_coherence *coherence, u64 *list, unsigned int room,
				 u64 *next);

/**
 * kdsm_coherence_discard() - make the lost blocks of a range zero; see KDSM_IOC_DISCARD
 * @coherence: the coherence of the region
 * @first: first block of the range
 * @last: last block of the range; the region has this block
 *
 * Sleeps, and waits for the network. Caller holds no lock.
 *
 * Return: 0, -EINTR if a signal arrived, or the first error, after all blocks were tried.
 */
int kdsm_coherence_discard(struct kdsm_coherence *coherence, u64 first, u64 last);

/**
 * kdsm_coherence_unmapped() - mark blocks whose page tables lost their dirty bits
 * @coherence: the coherence of the region
 * @first: first block of the range
 * @last: last block of the range
 *
 * Mappings of the range are gone, together with their dirty bits. So each block of the
 * range that is in the write set counts as modified. mapping->harvest() must set all bits
 * from before the first dirty bit is dropped until this call has returned. Otherwise a
 * release between the two would find neither the dirty bit nor the mark.
 *
 * Takes the locks of the blocks, and waits for no network. Caller may hold mmap_lock.
 */
void kdsm_coherence_unmapped(struct kdsm_coherence *coherence, u64 first, u64 last);

/**
 * kdsm_coherence_untied() - drop the copies that other nodes may not count any more
 * @coherence: the coherence of the region
 * @node: the peer
 *
 * A peer gave up this node, see peer_untied() of struct kdsm_fabric_config. An owner that gave up
 * a node writes although that node may have a copy (policy strict), and may have excluded it
 * (lost.c).
 *
 * Takes the locks of the blocks, and waits for no network.
 */
void kdsm_coherence_untied(struct kdsm_coherence *coherence, unsigned int node);

/**
 * kdsm_coherence_stats() - read the counters of a region on this node
 * @coherence: the coherence of the region
 * @stats: receives KDSM_COHERENCE_COUNT values, which may be of different instants
 */
void kdsm_coherence_stats(struct kdsm_coherence *coherence, u64 *stats);

/**
 * kdsm_coherence_counters() - read the counters of a region on this node, in little time
 * @coherence: the coherence of the region
 * @stats: receives KDSM_COHERENCE_COUNT values; the current numbers of blocks are 0
 *
 * Context: any.
 */
void kdsm_coherence_counters(const struct kdsm_coherence *coherence, u64 *stats);

/**
 * kdsm_coherence_metadata() - estimate the memory of the structures and the table of a region
 * @coherence: the coherence of the region
 *
 * Frames, twins, stamps and, for policy strict, sets of readers are not included.
 *
 * Return: bytes on this node. The error is below 10 % if the table has long runs of blocks, because
 * the function assumes full nodes of the table.
 */
u64 kdsm_coherence_metadata(struct kdsm_coherence *coherence);

/**
 * kdsm_coherence_races() - read the data races that this node found; see KDSM_IOC_RACES
 * @coherence: the coherence of the region
 * @list: receives the races, the oldest first
 * @room: number of races that @list has room for
 * @next: number of the first race to read; receives that of the first one that is left
 * @lost: receives the number of races in between that are not kept
 *
 * Return: number of races in @list.
 */
unsigned int kdsm_coherence_races(struct kdsm_coherence *coherence, struct kdsm_race *list,
				  unsigned int room, u64 *next, u64 *lost);

/**
 * kdsm_coherence_reclaim() - evict chunks in the background
 * @coherence: the coherence of the region
 * @chunks: number of chunks to evict; 0: evict only while the region exceeds its limit
 *
 * The work item gives up the rest as soon as a search finds no chunk that it can evict.
 *
 * Context: any.
 */
void kdsm_coherence_reclaim(struct kdsm_coherence *coherence, unsigned int chunks);

/**
 * kdsm_coherence_evictable() - upper bound of the memory that eviction could free
 * @coherence: the coherence of the region
 *
 * Context: any.
 *
 * Return: bytes; 0 if this node cannot evict anything.
 */
u64 kdsm_coherence_evictable(const struct kdsm_coherence *coherence);

/**
 * kdsm_shrinker_start() - register a shrinker, by which the kernel asks for memory of the region
 * @coherence: the coherence of a region, with all fields set
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_shrinker_start(struct kdsm_coherence *coherence);

/**
 * kdsm_shrinker_stop() - unregister the shrinker of a region
 * @coherence: the coherence of the region
 *
 * The caller calls it before kdsm_coherence_exit(), because the shrinker queues the work item.
 */
void kdsm_shrinker_stop(struct kdsm_coherence *coherence);

/*
 * Handlers of KDSM_MESSAGE_BLOCK_READ, OWN, GRANT, LEND, INVALIDATE, CLAIM and PUSH. They sleep,
 * and return the status for the reply, 0 or -errno. -ESTALE: this node has excluded the asking one.
 */
int kdsm_coherence_serve_read(struct kdsm_coherence *coherence,
			      struct kdsm_request *request);
int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request);
int kdsm_coherence_serve_grant(struct kdsm_coherence *coherence,
			       struct kdsm_request *request);
int kdsm_coherence_serve_lend(struct kdsm_coherence *coherence,
			      struct kdsm_request *request);
int kdsm_coherence_serve_invalidate(struct kdsm_coherence *coherence,
				    struct kdsm_request *request);
int kdsm_coherence_serve_claim(struct kdsm_coherence *coherence,
			       struct kdsm_request *request);
int kdsm_coherence_serve_push(struct kdsm_coherence *coherence,
			      struct kdsm_request *request);

/* The home of a block: the node that owns it until the first hand-over */
static inline unsigned int kdsm_block_first_owner(const struct kdsm_coherence *coherence,
						  u64 index)
{
	return index / coherence->group % coherence->nodes;
}

/* ---- segments ---- */

/**
 * kdsm_segments_sane() - check the segments of a region
 * @segments: the segments, from a program or from the wire
 * @count: number of segments, which may be invalid; @segments has min(@count, KDSM_MAX_SEGMENTS)
 * @size: size of the region, in bytes
 *
 * Context: any.
 *
 * Return: true if the segments are as KDSM_IOC_REGION_OPEN demands.
 */
bool kdsm_segments_sane(const struct kdsm_region_segment *segments, u32 count, u64 size);

/* The segment of a block. The search begins at the last one, so one segment takes one compare. */
static inline const struct kdsm_block_segment *
kdsm_segment_of(const struct kdsm_coherence *coherence, u64 index)
{
	const struct kdsm_block_segment *segment = coherence->last_segment;

	while (index < segment->first)
		segment--;
	return segment;
}

/* Size of a block, in bytes */
static inline u64 kdsm_block_size(const struct kdsm_coherence *coherence, u64 index)
{
	return 1ULL << kdsm_segment_of(coherence, index)->shift;
}

/* Offset of a block in the region, in bytes; for index coherence->blocks, the size of the region */
static inline u64 kdsm_block_offset(const struct kdsm_coherence *coherence, u64 index)
{
	const struct kdsm_block_segment *segment = kdsm_segment_of(coherence, index);

	return segment->offset + ((index - segment->first) << segment->shift);
}

/* The block that has the byte at an offset; coherence->blocks or more for one behind the region */
static inline u64 kdsm_block_at(const struct kdsm_coherence *coherence, u64 offset)
{
	const struct kdsm_block_segment *segment = coherence->last_segment;

	while (offset < segment->offset)
		segment--;
	return segment->first + ((offset - segment->offset) >> segment->shift);
}

/**
 * kdsm_stamps_size() - size of the memory coherence->stamps
 * @blocks: number of blocks in the region
 *
 * Return: the size, in bytes.
 */
u64 kdsm_stamps_size(u64 blocks);

#endif /* KDSM_COHERENCE_H */
