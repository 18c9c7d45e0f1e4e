/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coherence of the blocks of one region: what its policies share. Every node has
 * a frame for every block, in a memory as large as the region; here is which of
 * them are good, and who has the newest content.
 *
 * The files of this folder know the fabric's messages and operations and the mapping
 * functions of struct kdsm_mapping_ops, and nothing of verbs or page tables. They also
 * run in the simulator (tests/sim), unmodified.
 */
#ifndef KDSM_COHERENCE_H
#define KDSM_COHERENCE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/kdsm.h>
#include <linux/kdsm_netlink.h>

#include "fabric/fabric.h"

/* ---- signatures ---- */

/*
 * Signatures: what a release hands to an acquire. A bounded list of write
 * notices, and a timestamp below which notices may be missing (Endo's
 * dissertation, 3.4.5).
 */
/*
 * In memory as in <linux/kdsm.h>. Notices are ordered by timestamp, the oldest
 * first. All writes that are not listed have timestamps of at most floor.
 */
void kdsm_signature_init(struct kdsm_signature *signature);
/*
 * Add a notice: blocks first..first+count-1 were written by writer, at ts. What is
 * listed already, or was written again since, is not listed: so who writes the same
 * blocks again and again takes the room of one notice. When the list is full the
 * oldest goes and raises the floor. True: it was new.
 */
bool kdsm_signature_add(struct kdsm_signature *signature,
			const struct kdsm_notice *notice);
/* Add all of other, and its floor. */
void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other);
/* Is it one that a module made: for so many nodes and blocks? */
bool kdsm_signature_sane(const struct kdsm_signature *signature, unsigned int nodes,
			 u64 blocks);

/* ---- blocks of a region ---- */

struct kdsm_region;

/* A node keeps what it got for so long, in ns, unless told otherwise. */
#define KDSM_LEASE_DEFAULT	(100 * NSEC_PER_USEC)

/* No timestamp is above this. */
#define KDSM_CLOCK_MAX	(1ULL << 62)

/* Blocks in one table. */
#define KDSM_TABLE_SHIFT	9
#define KDSM_TABLE_SIZE		BIT(KDSM_TABLE_SHIFT)

/* Sequences of read misses that are told apart. */
#define KDSM_STREAMS		4U

/* What this node may do with its frame. */
enum kdsm_block_state {
	KDSM_BLOCK_INVALID = 0,		/* mapped nowhere */
	KDSM_BLOCK_READABLE,		/* mapped for reading, if at all */
	KDSM_BLOCK_WRITABLE,		/* in the write set; mapped as programs like */
};

/* Where this node stands in the queue for ownership. */
enum kdsm_block_role {
	KDSM_ROLE_NONE = 0,
	KDSM_ROLE_WAITING,	/* asked, not granted */
	KDSM_ROLE_GRANTED,	/* but nobody here takes over; passed on to who asks */
	KDSM_ROLE_TAKING,	/* granted; not yet done with taking over */
	KDSM_ROLE_OWNER,	/* has the newest released content */
};

/*
 * One block, as this node sees it. The lock guards all of it and the mapping of
 * the block; it is held for short, local work only and never over a message or a
 * remote operation. Nests inside mmap_lock; inside it: the region's lock, and
 * what vm takes.
 */
struct kdsm_block {
	struct mutex lock;	/* guards all of this */
	u64 index;
	u8 state;		/* enum kdsm_block_state */
	u8 role;		/* enum kdsm_block_role */
	bool busy;		/* a task is at it over the network; others wait */
	bool twin;		/* the twin holds the content as last merged */
	bool modified;		/* not published yet, and page tables may not tell */
	u8 idle;		/* releases that found it not modified */
	u16 owner;		/* who had the block after the newest hand-over known here */
	u16 next;		/* whom to hand it to when done; KDSM_NOBODY */
	u64 handover;		/* its number; the first is that to its first owner */
	bool given;		/* this node made it, and says so again if asked */
	bool again;		/* WAITING: what it waits for may not come; ask again */
	u16 writer;		/* who wrote what this node lacks; KDSM_NOBODY: unknown */
	u16 hint;		/* who had the block after owner; KDSM_NOBODY: unknown */
	/* What was said with that hand-over: who has the content, and its */
	u16 from;
	u64 from_wts, from_rts;
	u64 wts, rts;		/* of the content here: written at, good until */
	u64 wanted;		/* timestamp of what writer wrote */
	/* strict: */
	bool stale;		/* what is being fetched is not to be used */
	u64 lease_end;		/* in ns of ktime: not to be taken away before */
	unsigned long *readers;	/* who has copies; goes with hand-overs. NULL: nobody */
	struct list_head owed;	/* in coherence->owed, while next waits for the lease */
	struct list_head dirty;		/* in coherence->dirty, while in the write set */
	struct list_head cached;	/* in coherence->cached, while valid and not owned */
};

struct kdsm_coherence;

/*
 * Map a block of that index as far as it is of use to the caller, which gave arg:
 * the one that it touched, and, before that, any that came along for reading. With
 * the block's lock held, so that the mapping cannot be missed by who takes the
 * block away.
 */
typedef int (*kdsm_map_t)(void *arg, u64 index, bool writable);

/* What makes a policy. Called with the block's lock held, where nothing else is said. */
struct kdsm_policy_ops {
	/* See kdsm_coherence_access(); takes the lock. */
	int (*access)(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
		      kdsm_map_t map, void *arg);
	/*
	 * This node is the owner and is about to lose the block to another. -EAGAIN:
	 * not before lease_end. -ENOMEM: it stays.
	 */
	int (*handover)(struct kdsm_coherence *coherence, struct kdsm_block *block);
	/*
	 * This node is the owner, or was granted the block, and another wants a copy
	 * of the content with these timestamps. -EAGAIN: not now.
	 */
	int (*lend)(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int to, u64 clock, u64 *wts, u64 *rts);
	/* See kdsm_coherence_release() and acquire; without locks. NULL: nothing to do. */
	int (*release)(struct kdsm_coherence *coherence, struct kdsm_signature *signature);
	int (*acquire)(struct kdsm_coherence *coherence,
		       const struct kdsm_signature *signature);
	/* Hints; without locks. Release some blocks; NULL: nothing to do. */
	int (*flush)(struct kdsm_coherence *coherence, u64 first, u64 last);
	/* Become the owner. */
	int (*own)(struct kdsm_coherence *coherence, struct kdsm_block *block);
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
	 * writable or last harvested; bit 0 is the first page of the range. Mappings
	 * stay writable. Returns whether it set any bit. While a process unmaps part of
	 * the region, harvest may set all bits. After harvest, the caller looks at each
	 * block that has no bit for the mark of kdsm_coherence_unmapped().
	 */
	bool (*harvest)(struct kdsm_region *region, u64 offset, u64 length,
			unsigned long *bitmap);
	/* Write-protect the range. Earlier writes can still be harvested. */
	void (*protect)(struct kdsm_region *region, u64 offset, u64 length);
};

/* The blocks of one region on this node. */
struct kdsm_coherence {
	struct kdsm_region *region;	/* for mapping */
	const struct kdsm_mapping_ops *mapping;
	struct kdsm_fabric *fabric;
	struct kdsm_memory *frames;
	struct kdsm_memory *twins, *stamps;	/* release only */
	u32 id;				/* of the region */
	const struct kdsm_policy_ops *policy;
	u64 blocks;
	unsigned int block_shift;
	unsigned int node, nodes;
	wait_queue_head_t wait;		/* for the end of busy, and for grants */

	struct kdsm_block **tables;	/* each made when first needed; see kdsm_block() */

	/* strict: */
	u64 lease;			/* ns that a node keeps what it got, at least */
	struct work_struct owed_work;
	struct list_head owed;		/* blocks with a next, under lock */

	/* release: */
	struct mutex fence;		/* releases and acquires, one by one */
	spinlock_t lock;		/* guards the rest; innermost */
	u64 clock;			/* newest timestamp that this node knows of */
	struct kdsm_signature signature;	/* all that happened before here */
	struct list_head dirty, cached;
	struct kdsm_stream {
		u64 next;		/* the block that would be missed next */
		unsigned int window;	/* blocks that came along last time */
	} streams[KDSM_STREAMS];	/* of read misses in sequence */
	unsigned int stream;		/* who is forgotten next */
	atomic64_t stats[KDSM_COHERENCE_COUNT];
};

/*
 * id, size, block_size and policy as the region's. frames (and for release twins)
 * are memories of the region's whole size, stamps of kdsm_stamps_size(). -ENOMEM.
 */
int kdsm_coherence_init(struct kdsm_coherence *coherence, struct kdsm_fabric *fabric,
			u32 id, u32 policy, u64 size, u32 block_size);
/* Nobody uses it any more. */
void kdsm_coherence_exit(struct kdsm_coherence *coherence);

/*
 * Make a block readable or writable here, and have map() called for it, and maybe
 * for others that are readable now. -EIO, -EHOSTDOWN, -ETIMEDOUT, -ENOMEM; or what
 * map() returned.
 */
int kdsm_coherence_access(struct kdsm_coherence *coherence, u64 index, bool write,
			  kdsm_map_t map, void *arg);
/*
 * All that was written here before is done when this returns; the signature is
 * what the acquirer is to be given. Errors as above: some writes are not done.
 */
int kdsm_coherence_release(struct kdsm_coherence *coherence,
			   struct kdsm_signature *signature);
/* What the releaser of the signature had written or seen is seen here from now on. */
int kdsm_coherence_acquire(struct kdsm_coherence *coherence,
			   const struct kdsm_signature *signature);
/*
 * A hint about blocks first..last, which exist; see KDSM_IOC_ADVISE. -EINTR: a signal
 * came. Other errors as above.
 */
int kdsm_coherence_advise(struct kdsm_coherence *coherence, enum kdsm_advice advice,
			  u64 first, u64 last);
/*
 * Mappings of blocks first..last are gone, and with them the page table's notes of
 * what was modified: what may have been counts as such. From before the first of those
 * notes is dropped until this has returned mapping->harvest() sets all bits, or a release in
 * between would find neither.
 */
void kdsm_coherence_unmapped(struct kdsm_coherence *coherence, u64 first, u64 last);

/* KDSM_COHERENCE_COUNT values. */
void kdsm_coherence_stats(struct kdsm_coherence *coherence, u64 *stats);

/* Handlers of KDSM_MESSAGE_BLOCK_*, where they may sleep. */
int kdsm_coherence_serve_read(struct kdsm_coherence *coherence,
			      struct kdsm_request *request);
int kdsm_coherence_serve_own(struct kdsm_coherence *coherence,
			     struct kdsm_request *request);
int kdsm_coherence_serve_grant(struct kdsm_coherence *coherence,
			       struct kdsm_request *request);
int kdsm_coherence_serve_invalidate(struct kdsm_coherence *coherence,
				    struct kdsm_request *request);

static inline u64 kdsm_block_size(const struct kdsm_coherence *coherence)
{
	return 1ULL << coherence->block_shift;
}

static inline u64 kdsm_block_offset(const struct kdsm_coherence *coherence,
				    const struct kdsm_block *block)
{
	return block->index << coherence->block_shift;
}

/* Bytes of the memory coherence->stamps of a region of so many blocks. */
u64 kdsm_stamps_size(u64 blocks);

#endif /* KDSM_COHERENCE_H */
