/* SPDX-License-Identifier: GPL-2.0 */
/* Inside the protocols of coherent regions: the calls that the files share. */
#ifndef KDSM_COHERENCE_INTERNAL_H
#define KDSM_COHERENCE_INTERNAL_H

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

/* The block, made if need be, or NULL: out of memory. Stays until exit. */
struct kdsm_block *kdsm_block(struct kdsm_coherence *coherence, u64 index);
/* Page number i of the block in a memory; ERR_PTR(-ENOMEM). */
void *kdsm_block_page(struct kdsm_coherence *coherence, struct kdsm_memory *memory,
		      const struct kdsm_block *block, unsigned int i);

/* Free all blocks; nobody uses them any more. */
void kdsm_blocks_free(struct kdsm_coherence *coherence);

/* ---- stamp.c ---- */

/* Two stores of 8 bytes each: if they do not fit together it was read half-way. */
struct kdsm_stamp {
	__le64 good;	/* the frame has all writes up to this */
	__le64 check;
} __packed;

static inline u64 kdsm_stamp_offset(const struct kdsm_block *block)
{
	return block->index * sizeof(struct kdsm_stamp);
}

/* From that block on, stamps that can be read at once, as they lie in one page. */
static inline unsigned int kdsm_stamps_left(const struct kdsm_block *block)
{
	return (PAGE_SIZE - kdsm_stamp_offset(block) % PAGE_SIZE) / sizeof(struct kdsm_stamp);
}

/* The owner, with the block's lock: promise its read timestamp. */
void kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/* What a stamp that was read says; 0: nothing. */
u64 kdsm_stamp_value(const struct kdsm_stamp *stamp);

/* ---- fetch.c ---- */

/* Pages for the content of one block. */
struct kdsm_bounce {
	unsigned int count;
	void *pages[];
};

struct kdsm_bounce *kdsm_bounce_alloc(struct kdsm_coherence *coherence);
void kdsm_bounce_free(struct kdsm_bounce *bounce);
/*
 * Bring the content of a block from a node's frame or twin, into bounce, or, if
 * that is NULL, into the frame here. Remote operations: one for every piece of
 * memory here, of 4 to 64 KiB, in chains.
 */
int kdsm_block_fetch(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		     struct kdsm_memory *memory, unsigned int node,
		     struct kdsm_bounce *bounce);

struct kdsm_fetch {
	struct kdsm_coherence *coherence;
	struct kdsm_memory *memory;
	struct kdsm_operation *ops;
	struct kdsm_stamp *stamps;
	unsigned int count, room;
	int err;
};

/*
 * From the frames or twins of nodes, for about so many blocks. -ENOMEM: there is
 * nothing to end.
 */
int kdsm_fetch_begin(struct kdsm_fetch *fetch, struct kdsm_coherence *coherence,
		     struct kdsm_memory *memory, unsigned int blocks);
/* One block more, of that node, into bounce, or, if that is NULL, into the frame here. */
void kdsm_fetch_add(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		    unsigned int node, struct kdsm_bounce *bounce);
/*
 * Before the first block, which is of that node: its stamp, too, read before its
 * content, and those of count - 1 blocks behind it, no more than kdsm_stamps_left().
 * They are in fetch->stamps at the end, which the caller frees.
 */
void kdsm_fetch_stamps(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		       unsigned int node, unsigned int count);
/* All of it is here when it returns 0; otherwise it is not known what is. */
int kdsm_fetch_end(struct kdsm_fetch *fetch);

/* ---- ownership.c and chase.c ---- */

/*
 * Become the one who waits for the block longest: ask along the links. When it
 * returns 0 the role is TAKING, from is who has the content, in its twin, and wts
 * and rts are of that. Only the task that has made the block busy may call it.
 * -EHOSTDOWN, -EIO, -ETIMEDOUT (after a minute), -ENOMEM: it may be tried again.
 */
int kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts);
/*
 * The content cannot be brought here: who waits behind this node is granted it, or
 * who asks next; that may be this node again.
 */
void kdsm_ownership_fail(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Called with the block's lock held, which it drops: from TAKING to OWNER, and on
 * to the next if one waits.
 */
void kdsm_ownership_taken(struct kdsm_coherence *coherence, struct kdsm_block *block);
/*
 * Find the owner and have it raise its read timestamp: who has the content, in its
 * frame, and both timestamps.
 */
int kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			unsigned int *from, u64 *wts, u64 *rts);

/* Passes on what waited for the end of a lease. */
void kdsm_ownership_owed_work(struct work_struct *work);
/* One message about a block, and its answer, which is checked. */
int kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
	     unsigned int node, enum kdsm_message_type type,
	     struct kdsm_wire_answer *answer);
/*
 * For handlers: the block that is asked about, and all that is said of it, what was not
 * sent being 0; or ERR_PTR(-EINVAL), ERR_PTR(-ENOMEM). An answer without a hand-over.
 */
struct kdsm_block *kdsm_asked_block(struct kdsm_coherence *coherence,
				    const struct kdsm_request *request,
				    struct kdsm_wire_block *wire);
int kdsm_answer(struct kdsm_request *request, enum kdsm_answer what, unsigned int node);

/* With the block's lock: what is said of the newest hand-over, which this node made. */
void kdsm_handover_put(const struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       struct kdsm_wire_handover *wire);
/* What is sent of a message of whole bytes that ends with this: no set of nobody. */
unsigned int kdsm_handover_cut(const struct kdsm_wire_handover *wire, unsigned int whole);
bool kdsm_handover_sane(const struct kdsm_coherence *coherence,
			const struct kdsm_wire_handover *wire);
/*
 * With the block's lock: a hand-over to this node, however it came to be known here.
 * Of one that is known already nothing is left to do. -EINVAL: it cannot be.
 */
int kdsm_handover_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      const struct kdsm_wire_handover *wire);
/*
 * With the block's lock, which it drops: this node is not waiting any more. Who waits
 * behind it goes on from where its link leads to.
 */
void kdsm_ownership_leave(struct kdsm_coherence *coherence, struct kdsm_block *block, int err);

/* ---- policy release: release.c, acquire.c, access.c, run.c, twin.c ---- */

int kdsm_release_acquire(struct kdsm_coherence *coherence,
			 const struct kdsm_signature *signature);
int kdsm_release_access(struct kdsm_coherence *coherence, struct kdsm_block *block, bool write,
			kdsm_map_t map, void *arg);
/* In the list of blocks that are good here and not owned; in the write set. */
void kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       bool is_cached);
void kdsm_block_dirty(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      bool is_dirty);
/*
 * With the block's lock, which begin may drop: wait until nobody is at the block
 * over the network, then be the one.
 */
void kdsm_block_begin(struct kdsm_coherence *coherence, struct kdsm_block *block);
void kdsm_block_end(struct kdsm_coherence *coherence, struct kdsm_block *block);

/* With the block's lock: the twin becomes what the frame is. -ENOMEM. */
int kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
void kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     const struct kdsm_bounce *theirs, bool keep);

/* A block that a release or an acquire sees to. */
struct kdsm_picked {
	struct kdsm_block *block;
	bool modified;		/* release: it has something to be published */
	bool writable;		/* acquire: it was, before it became invalid */
};

/* By index. */
void kdsm_picked_sort(struct kdsm_picked *picked, size_t count);
/* How many of count sorted blocks are neighbours, from the first on. */
size_t kdsm_run_length(const struct kdsm_picked *picked, size_t count);
/*
 * Take the dirty bits of the page tables of a run of n over into the modified of
 * its blocks, whose locks are not held. -ENOMEM: nothing was taken.
 */
int kdsm_run_harvest(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
		     size_t n);

/* ---- access.c and prefetch.c ---- */

/* With the block's lock: is it known who has content that is new enough? */
bool kdsm_block_writer_known(struct kdsm_coherence *coherence,
			     const struct kdsm_block *block);
/* With the block's lock: content that is good until then is of use, and no older one. */
u64 kdsm_block_need(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/*
 * With the block's lock, and the block busy: content with these timestamps is in the
 * frame. True: it is good, and the block valid. False: more was asked for meanwhile.
 */
bool kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			u64 wts, u64 rts);

/* Blocks that come along with a miss; each is busy. */
struct kdsm_ahead {
	struct kdsm_stream *stream;
	unsigned int stamps;		/* to be read, from that of the missed block on */
	unsigned int count;
	struct kdsm_ahead_block {
		struct kdsm_block *block;
		bool known;		/* from: the writer, not the owner */
		unsigned int from;
		u64 wts;		/* of the content there; 0: its stamp has to tell */
	} list[];
};

/*
 * A miss of that block, which the caller has made busy and whose lock it does not
 * hold: NULL or what may come along, to be ended in any case. If owner is not
 * KDSM_NOBODY the caller is about to read stamps there.
 */
struct kdsm_ahead *kdsm_ahead_begin(struct kdsm_coherence *coherence,
				    const struct kdsm_block *block, unsigned int owner);
/* The writers are known: to be fetched with the missed block. */
void kdsm_ahead_add(struct kdsm_fetch *fetch, const struct kdsm_ahead *ahead);
/*
 * The stamps are here, from that of the missed block on: fetch what is new enough.
 * False: it is not known what is here.
 */
bool kdsm_ahead_fetch(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead,
		      const struct kdsm_block *block, const struct kdsm_stamp *stamps);
/* is_here: all of it was brought. Blocks that are valid then are mapped. */
void kdsm_ahead_end(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead, bool is_here,
		    kdsm_map_t map, void *arg);

#define kdsm_coherence_count(coherence, which, n)				\
	atomic64_add(n, &(coherence)->stats[KDSM_COHERENCE_##which])

static inline bool kdsm_block_is_owned(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_OWNER;
}

/* release: what a block becomes that has good content. */
static inline enum kdsm_block_state kdsm_block_valid_state(const struct kdsm_block *block)
{
	return list_empty(&block->dirty) ? KDSM_BLOCK_READABLE : KDSM_BLOCK_WRITABLE;
}

#endif /* KDSM_COHERENCE_INTERNAL_H */
