// SPDX-License-Identifier: GPL-2.0
/*
 * Eviction: what a node does when memory for a region runs out. The node frees chunks of its frames
 * and twins, one at a time: it drops its copies, and has other nodes take over the blocks that it
 * owns. A block that nobody has written has no content, so the node stays its owner.
 *
 * A work item evicts. Tasks that lack memory wait for it, and hold neither a lock nor a busy block
 * meanwhile, so the work item can take over and hand over any block.
 *
 * A chunk leaves in these steps:
 *
 * 1. It is leaving. Accesses to its blocks wait.
 * 2. The node releases its writes to the blocks, which makes it their owner, and unmaps the pages.
 * 3. Blocks with content are pushed: another node that has memory takes them over.
 * 4. The node makes sure that its twins, or, in policy strict, its frames have been read. The node
 *    that a block was handed over to reads them, whenever it does (block->unread).
 * 5. It is closed. No task begins to use the network for its blocks. All copies are dropped, and
 *    the stamps that promise content.
 * 6. kdsm_memory_drop() frees the chunk. No node reads it any more.
 *
 * After step 5 other nodes may still have heard of content here: by a notice, by a stamp that they
 * read before, or from an owner. Then they read from a chunk that does not exist, or that this node
 * has made again since. The fabric fails such a read with -ESTALE (since in struct kdsm_operation),
 * and the reader asks the owner. In step 6 reads in flight end before the content goes.
 *
 * A node without memory refuses to take blocks over, and evicts a chunk itself, so that it can take
 * some the next time. A node that has memory for the chunk already refuses only if the chunk is
 * leaving there, too.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"
#include "trace.h"

/* Pause after a vain round, in jiffies */
#define KDSM_EVICT_PAUSE	(HZ / 100 ?: 1)

/* A chunk that this node evicts */
struct kdsm_eviction {
	struct kdsm_coherence *coherence;
	u64 chunk, first, last;		/* the chunk, and its blocks */
	/* Blocks that a message is about, as bits from the first block on */
	DECLARE_BITMAP(blocks, KDSM_CHUNK_BLOCKS);
	/* Number of the hand-over of each of them to the asked node, or a later one */
	u64 handover[KDSM_CHUNK_BLOCKS];
	unsigned int from, owner;	/* see kdsm_chunk_unread() */
};

/* Visits a block, with its lock held. An error ends the walk. */
typedef int (*kdsm_visit_t)(struct kdsm_eviction *eviction, struct kdsm_block *block);

/* Visit all blocks of the chunk that are in the table. Returns the first error. */
static int kdsm_chunk_walk(struct kdsm_eviction *eviction, kdsm_visit_t visit)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	struct kdsm_block *block;
	u64 i = eviction->first;
	int err = 0;

	for (; !err && (block = kdsm_block_next(coherence, &i, eviction->last)); i++) {
		mutex_lock(&block->lock);
		err = visit(eviction, block);
		mutex_unlock(&block->lock);
		kdsm_block_put(coherence, block);
	}
	return err;
}

/* Choose a block to send a message about */
static void kdsm_block_choose(struct kdsm_eviction *eviction, const struct kdsm_block *block,
			      u64 handover)
{
	unsigned int i = block->index - eviction->first;

	__set_bit(i, eviction->blocks);
	eviction->handover[i] = handover;
}

static u64 kdsm_evict_chunks(const struct kdsm_coherence *coherence)
{
	return kdsm_chunk_of(coherence, coherence->blocks - 1) + 1;
}

static u64 kdsm_chunk_first(const struct kdsm_coherence *coherence, u64 chunk)
{
	return kdsm_block_at(coherence, chunk << KDSM_EVICT_SHIFT);
}

static u64 kdsm_chunk_last(const struct kdsm_coherence *coherence, u64 chunk)
{
	return min(kdsm_chunk_first(coherence, chunk + 1), coherence->blocks) - 1;
}

/* In bytes */
static u64 kdsm_chunk_length(const struct kdsm_eviction *eviction)
{
	return kdsm_block_offset(eviction->coherence, eviction->last + 1) -
	       kdsm_block_offset(eviction->coherence, eviction->first);
}

/* ---- 1: leave ---- */

static int kdsm_block_pass(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	return 0;
}

/* From here on an access waits. No task is in the middle of one. */
static void kdsm_chunk_leave(struct kdsm_eviction *eviction)
{
	WRITE_ONCE(eviction->coherence->leaving, eviction->chunk);
	/* A task that has the lock of a block may not have seen this; all others see it */
	kdsm_chunk_walk(eviction, kdsm_block_pass);
}

/* ---- 2: release and unmap ---- */

/*
 * Take the block out of the write set: its pages are write-protected, and accesses wait, so no
 * later write exists. -EBUSY: a device may still write through the entries of a process. Caller
 * holds the fence.
 */
static int kdsm_block_retire(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	int err;

	lockdep_assert_held(&block->lock);
	if (!block->dirty)
		return 0;
	err = kdsm_block_harvest(coherence, block);
	if (err || block->modified)
		return err ?: -EBUSY;
	if (block->state == KDSM_BLOCK_WRITABLE)
		WRITE_ONCE(block->state, KDSM_BLOCK_READABLE);
	if (!kdsm_block_is_owned(block))
		block->twin = false;
	kdsm_block_dirty(coherence, block, false);
	return 0;
}

/* Publish all writes to the chunk, and stop more of them */
static int kdsm_chunk_release(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	int err;

	if (!coherence->policy->flush)
		return 0;
	mutex_lock(&coherence->fence);
	kdsm_pages_protect(coherence, kdsm_block_offset(coherence, eviction->first),
			   kdsm_chunk_length(eviction));
	mutex_unlock(&coherence->fence);
	kdsm_coherence_count(coherence, FLUSHES, 1);
	err = coherence->policy->flush(coherence, eviction->first, eviction->last);
	if (err)
		return err;
	mutex_lock(&coherence->fence);
	err = kdsm_chunk_walk(eviction, kdsm_block_retire);
	mutex_unlock(&coherence->fence);
	return err;
}

static void kdsm_chunk_unmap(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;

	mutex_lock(&coherence->fence);
	kdsm_pages_unmap(coherence, kdsm_block_offset(coherence, eviction->first),
			 kdsm_chunk_length(eviction));
	mutex_unlock(&coherence->fence);
	kdsm_coherence_count(coherence, FLUSHES, 1);
}

/* ---- 3 and 4: other nodes take the blocks over ---- */

/* The next owner has read the content that this node kept */
static void kdsm_block_was_read(const struct kdsm_eviction *eviction, unsigned int i)
{
	struct kdsm_block *block = kdsm_block_find(eviction->coherence, eviction->first + i);

	if (!block)
		return;
	mutex_lock(&block->lock);
	/* Else this node may have been the owner once more, and have handed it over again */
	if (block->role == KDSM_ROLE_NONE && block->handover == eviction->handover[i]) {
		block->unread = false;
		/* No node needs the hand-over repeated, because its receiver took it up */
		block->given = false;
	}
	mutex_unlock(&block->lock);
	kdsm_block_put(eviction->coherence, block);
}

/*
 * Ask a node to take the blocks over or, without take, which of them it owns. Clears the bits of
 * those that it owns. They were handed over to it, so it has read what this node kept of them.
 */
static int kdsm_push(struct kdsm_eviction *eviction, unsigned int node, bool take)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	struct kdsm_wire_push wire = {
		.id = cpu_to_le32(coherence->id),
		.take = cpu_to_le32(take),
		.chunk = cpu_to_le64(eviction->chunk),
	};
	__le64 answer[KDSM_PUSH_WORDS];
	unsigned int length = sizeof(answer), i;
	int err;

	for_each_set_bit(i, eviction->blocks, KDSM_CHUNK_BLOCKS)
		wire.blocks[i / 64] |= cpu_to_le64(1ULL << i % 64);
	err = kdsm_message(coherence->fabric, node, KDSM_MESSAGE_BLOCK_PUSH, &wire, sizeof(wire),
			   answer, &length);
	if (err == -ESTALE)
		WRITE_ONCE(coherence->outcast, true);
	if (err)
		return err;
	if (length != sizeof(answer))
		return -EIO;
	for_each_set_bit(i, eviction->blocks, KDSM_CHUNK_BLOCKS) {
		if (!(le64_to_cpu(answer[i / 64]) & 1ULL << i % 64))
			continue;
		__clear_bit(i, eviction->blocks);
		kdsm_block_was_read(eviction, i);
	}
	return 0;
}

static int kdsm_owned_choose(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	if (kdsm_block_is_owned(block) && kdsm_block_has_content(eviction->coherence, block))
		kdsm_block_choose(eviction, block, block->handover + 1);
	return 0;
}

/* Choose the owned blocks with content. Returns whether there are any. */
static bool kdsm_chunk_owned(struct kdsm_eviction *eviction)
{
	bitmap_zero(eviction->blocks, KDSM_CHUNK_BLOCKS);
	kdsm_chunk_walk(eviction, kdsm_owned_choose);
	return !bitmap_empty(eviction->blocks, KDSM_CHUNK_BLOCKS);
}

/* Have other nodes take over the blocks that this node owns, the last one that did so first */
static int kdsm_chunk_push(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	unsigned int node, i;
	int err = -EAGAIN;

	if (!kdsm_chunk_owned(eviction))
		return 0;
	/* For the twins, which these nodes read */
	if (!coherence->is_strict &&
	    kdsm_memory_spare(coherence->twins, eviction->chunk, KDSM_SPARE_PUSH))
		return -ENOMEM;
	for (i = 0; i < coherence->nodes; i++) {
		node = (coherence->taker + i) % coherence->nodes;
		if (node == coherence->node || kdsm_is_gone(coherence, node))
			continue;
		err = kdsm_push(eviction, node, true);
		if (err)
			continue;
		coherence->taker = node;
		kdsm_coherence_count(coherence, PUSHES, 1);
		/* Other nodes may have got some of them before this node could hand them over */
		return kdsm_chunk_owned(eviction) ? -EAGAIN : 0;
	}
	return err;
}

static int kdsm_unread_choose(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	if (!block->unread || block->role != KDSM_ROLE_NONE || block->owner < eviction->from ||
	    block->owner > eviction->owner)
		return 0;
	if (block->owner < eviction->owner)
		bitmap_zero(eviction->blocks, KDSM_CHUNK_BLOCKS);
	eviction->owner = block->owner;
	kdsm_block_choose(eviction, block, block->handover);
	return 0;
}

/*
 * Choose the blocks that this node handed over to one node, the first one from number from on,
 * which may not have read them yet. Returns that node, or KDSM_NOBODY.
 */
static unsigned int kdsm_chunk_unread(struct kdsm_eviction *eviction, unsigned int from)
{
	eviction->from = from;
	eviction->owner = KDSM_NOBODY;
	bitmap_zero(eviction->blocks, KDSM_CHUNK_BLOCKS);
	kdsm_chunk_walk(eviction, kdsm_unread_choose);
	return eviction->owner;
}

static int kdsm_unread_check(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	return block->unread ? -EBUSY : 0;
}

/*
 * Take back a block whose content perhaps no node will read, because the next owner handed it on or
 * gave up waiting. own() also completes a takeover if the block is granted to this node already.
 */
static int kdsm_unread_take(struct kdsm_coherence *coherence, void *arg, u64 i)
{
	const struct kdsm_eviction *eviction = arg;
	struct kdsm_block *block = kdsm_block_find(coherence, eviction->first + i);
	bool unread;
	int err = 0;

	if (!block)
		return 0;
	mutex_lock(&block->lock);
	unread = block->unread;
	mutex_unlock(&block->lock);
	if (unread)
		err = coherence->policy->own(coherence, block);
	kdsm_block_put(coherence, block);
	return err;
}

/*
 * Policy release: find out whether the next owner has read the content that this node kept, and has
 * passed the block on since. Then the newest content is at another node.
 */
static int kdsm_unread_ask(struct kdsm_coherence *coherence, void *arg, u64 i)
{
	const struct kdsm_eviction *eviction = arg;
	struct kdsm_block *block = kdsm_block_find(coherence, eviction->first + i);
	u64 number, wts, rts;
	unsigned int from;
	int err = 0;

	if (!block)
		return 0;
	mutex_lock(&block->lock);
	/* While the block is busy, no task of this node makes it the owner again */
	kdsm_block_begin(coherence, block);
	if (!block->unread)
		goto end;
	number = block->handover;
	mutex_unlock(&block->lock);
	err = kdsm_ownership_read(coherence, block, &from, &wts, &rts);
	mutex_lock(&block->lock);
	if (err || from == coherence->node)
		goto end;
	block->unread = false;
	if (block->role == KDSM_ROLE_NONE && block->handover == number)
		block->given = false;
end:
	kdsm_block_end(coherence, block);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

static int kdsm_chunk_take_many(struct kdsm_eviction *eviction, kdsm_take_t take)
{
	u64 count = eviction->last - eviction->first + 1;

	return kdsm_take_many(eviction->coherence, count, count,
			      kdsm_block_size(eviction->coherence, eviction->first), true, take,
			      eviction);
}

/* Find out which blocks other nodes have read since this node handed them over */
static int kdsm_chunk_look(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	unsigned int owner, from;
	int err;

	for (from = 0; (owner = kdsm_chunk_unread(eviction, from)) != KDSM_NOBODY;
	     from = owner + 1) {
		/* That node may have handed the block on before, and left the content here */
		if (kdsm_is_gone(coherence, owner))
			return -EHOSTDOWN;
		err = kdsm_push(eviction, owner, false);
		if (err)
			return err;
	}
	if (coherence->is_strict || !kdsm_chunk_walk(eviction, kdsm_unread_check))
		return 0;
	return kdsm_chunk_take_many(eviction, kdsm_unread_ask);
}

/* Make sure that other nodes have read what this node handed over */
static int kdsm_chunk_settle(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	int err;

	err = kdsm_chunk_look(eviction);
	if (err || !kdsm_chunk_walk(eviction, kdsm_unread_check))
		return err;
	mutex_lock(&coherence->fence);
	err = kdsm_chunk_take_many(eviction, kdsm_unread_take);
	mutex_unlock(&coherence->fence);
	return err ?: kdsm_chunk_push(eviction);
}

/* ---- answering ---- */

struct kdsm_pushed {
	unsigned int from;		/* the node that evicts the blocks */
	u64 first;
	unsigned int count;
	u16 list[KDSM_CHUNK_BLOCKS];
};

static int kdsm_pushed_take(struct kdsm_coherence *coherence, void *arg, u64 i)
{
	const struct kdsm_pushed *pushed = arg;
	struct kdsm_block *block;
	int err;

	block = kdsm_block_get(coherence, pushed->first + pushed->list[i]);
	if (!block)
		return -ENOMEM;
	/* Ask the evicting node first, because the links may lead through a dead node */
	mutex_lock(&block->lock);
	if (!kdsm_block_is_owned(block))
		block->hint = pushed->from;
	mutex_unlock(&block->lock);
	err = coherence->policy->own(coherence, block);
	kdsm_block_put(coherence, block);
	return err;
}

/*
 * Take over the blocks for another node, which evicts the chunk. Releases of this node may hold the
 * fence for long, and the asking node may have memory for another chunk sooner than this one.
 */
static int kdsm_pushed_own(struct kdsm_coherence *coherence, struct kdsm_pushed *pushed, u64 chunk)
{
	bool is_full;
	int err;

	if (READ_ONCE(coherence->leaving) == chunk)
		return -EAGAIN;
	/* This node keeps the chunks that it evicts for its own tasks */
	is_full = (READ_ONCE(coherence->hungry) &&
		   kdsm_memory_next(coherence->frames, chunk) != chunk) ||
		  IS_ERR(kdsm_memory_page(coherence->frames,
					  chunk << (KDSM_EVICT_SHIFT - PAGE_SHIFT)));
	if (is_full) {
		kdsm_evict_start(coherence);
		return -ENOMEM;
	}
	if (!mutex_trylock(&coherence->fence))
		return -EAGAIN;
	err = kdsm_take_many(coherence, pushed->count, pushed->count,
			     kdsm_block_size(coherence, pushed->first), true, kdsm_pushed_take,
			     pushed);
	mutex_unlock(&coherence->fence);
	return err;
}

static bool kdsm_pushed_is_here(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block = kdsm_block_find(coherence, index);
	bool is_here;

	if (!block)
		return false;
	mutex_lock(&block->lock);
	is_here = kdsm_block_is_owned(block);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return is_here;
}

static int kdsm_push_check(struct kdsm_coherence *coherence, const struct kdsm_request *request,
			   u64 chunk)
{
	const struct kdsm_wire_push *wire = request->data;

	if (READ_ONCE(coherence->outcast))
		return -ENOENT;
	if (test_bit(request->from, coherence->excluded))
		return -ESTALE;
	if (request->from == coherence->node || le32_to_cpu(wire->take) > 1 ||
	    chunk >= kdsm_evict_chunks(coherence))
		return -EINVAL;
	return 0;
}

int kdsm_coherence_serve_push(struct kdsm_coherence *coherence, struct kdsm_request *request)
{
	const struct kdsm_wire_push *wire = request->data;
	u64 chunk = le64_to_cpu(wire->chunk), answer[KDSM_PUSH_WORDS] = {}, last;
	__le64 *reply = request->reply;
	struct kdsm_pushed *pushed;
	unsigned int i;
	int err;

	err = kdsm_push_check(coherence, request, chunk);
	if (err)
		return err;
	pushed = kzalloc(sizeof(*pushed), GFP_KERNEL);
	if (!pushed)
		return -ENOMEM;
	pushed->from = request->from;
	pushed->first = kdsm_chunk_first(coherence, chunk);
	last = kdsm_chunk_last(coherence, chunk);
	for (i = 0; i <= last - pushed->first; i++)
		if (le64_to_cpu(wire->blocks[i / 64]) & 1ULL << i % 64)
			pushed->list[pushed->count++] = i;
	if (wire->take && pushed->count)
		err = kdsm_pushed_own(coherence, pushed, chunk);
	/* After an error the node may have taken some over nevertheless */
	for (i = 0; i < pushed->count; i++)
		if (kdsm_pushed_is_here(coherence, pushed->first + pushed->list[i]))
			answer[pushed->list[i] / 64] |= 1ULL << pushed->list[i] % 64;
	if (err != -ENOMEM && err != -ENOBUFS && err != -EAGAIN)
		err = 0;
	for (i = 0; i < KDSM_PUSH_WORDS; i++)
		reply[i] = cpu_to_le64(answer[i]);
	request->reply_length = sizeof(answer);
	kfree(pushed);
	return err;
}

/* ---- 5 and 6: drop ---- */

/* Whether the node may drop what it has of the block */
static bool kdsm_block_may_go(const struct kdsm_coherence *coherence,
			      const struct kdsm_block *block)
{
	if (block->busy || block->unread ||
	    (kdsm_block_is_owned(block) && kdsm_block_has_content(coherence, block)))
		return false;
	if (coherence->is_strict)
		return block->reading == KDSM_READING_NONE;
	return !kdsm_block_is_written(coherence, block);
}

/* Policy release: drop the twin if nobody needs it. An unmodified frame is its own twin. */
static int kdsm_twin_drop(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	if (block->busy || block->unread ||
	    (block->twin && kdsm_block_is_written(eviction->coherence, block)))
		return -EBUSY;
	block->twin = false;
	return 0;
}

/* Drop what the node has of the block */
static int kdsm_block_drop(struct kdsm_eviction *eviction, struct kdsm_block *block)
{
	struct kdsm_coherence *coherence = eviction->coherence;

	if (!kdsm_block_may_go(coherence, block))
		return -EBUSY;
	block->twin = false;
	if (kdsm_block_is_owned(block))
		return 0;
	WRITE_ONCE(block->state, KDSM_BLOCK_INVALID);
	/* kdsm_block_memo() makes no value of a block with a hint */
	block->hint = KDSM_NOBODY;
	if (coherence->is_strict)
		return 0;
	kdsm_block_cached(coherence, block, false);
	block->whole = false;
	block->origin = KDSM_NOBODY;
	return 0;
}

/* Close the chunk, and drop its blocks, or only the twins */
static int kdsm_chunk_close(struct kdsm_eviction *eviction, kdsm_visit_t drop)
{
	/* Blocks that enter the table from here on find it closed */
	WRITE_ONCE(eviction->coherence->closed, eviction->chunk);
	return kdsm_chunk_walk(eviction, drop);
}

/* Clear the stamps of all blocks of the chunk: blocks without a structure may have one, too */
static void kdsm_chunk_unstamp(struct kdsm_eviction *eviction)
{
	u64 i;

	for (i = eviction->first; i <= eviction->last; i++)
		kdsm_stamp_clear(eviction->coherence, i);
}

static int kdsm_evict_free(struct kdsm_memory *memory, u64 chunk)
{
	int err = kdsm_memory_drop(memory, chunk);

	return err == -ENOENT ? 0 : err;
}

/* Evict the chunk */
static int kdsm_chunk_go(struct kdsm_eviction *eviction)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	int err;

	err = kdsm_chunk_release(eviction);
	if (err)
		return err;
	kdsm_chunk_unmap(eviction);
	err = kdsm_chunk_push(eviction);
	err = err ?: kdsm_chunk_settle(eviction);
	err = err ?: kdsm_chunk_close(eviction, kdsm_block_drop);
	if (!err && !coherence->is_strict) {
		kdsm_chunk_unstamp(eviction);
		err = kdsm_evict_free(coherence->twins, eviction->chunk);
	}
	return err ?: kdsm_evict_free(coherence->frames, eviction->chunk);
}

/* Free the twins of the chunk, if none of them is needed */
static int kdsm_chunk_strip(struct kdsm_eviction *eviction)
{
	int err;

	err = kdsm_chunk_look(eviction);
	err = err ?: kdsm_chunk_close(eviction, kdsm_twin_drop);
	return err ?: kdsm_evict_free(eviction->coherence->twins, eviction->chunk);
}

static int kdsm_chunk_evict(struct kdsm_eviction *eviction, bool twins)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	int err;

	kdsm_chunk_leave(eviction);
	err = twins ? kdsm_chunk_strip(eviction) : kdsm_chunk_go(eviction);
	/*
	 * Leave no twins that were made for nodes that did not take the blocks over. The chunk may
	 * be closed already, and kdsm_unread_ask() uses the network.
	 */
	if (err && !twins && !coherence->is_strict) {
		WRITE_ONCE(coherence->closed, KDSM_NO_CHUNK);
		kdsm_chunk_strip(eviction);
	}
	if (!err) {
		kdsm_coherence_count(coherence, EVICTIONS, 1);
		WRITE_ONCE(coherence->rounds, coherence->rounds + 1);
		trace_kdsm_event(KDSM_EVENT_EVICTING, 0, coherence->id, "", 0);
	}
	WRITE_ONCE(coherence->closed, KDSM_NO_CHUNK);
	/* Pairs with smp_load_acquire() in kdsm_evict_wait() */
	smp_store_release(&coherence->leaving, KDSM_NO_CHUNK);
	wake_up_all(&coherence->wait);
	return err;
}

/* ---- choosing chunks ---- */

static bool kdsm_chunk_is_clean(const struct kdsm_eviction *eviction)
{
	struct kdsm_glance glance;
	u64 i;

	for (i = eviction->first;
	     kdsm_block_glance(eviction->coherence, &i, eviction->last, &glance); i++)
		if (glance.written || (glance.owned && glance.wts))
			return false;
	return true;
}

/* Kinds of eviction, the cheapest first */
enum kdsm_evict_what {
	KDSM_EVICT_TWINS,	/* twins that nobody needs */
	KDSM_EVICT_CLEAN,	/* a chunk whose blocks other nodes own, or nobody has written */
	KDSM_EVICT_ANY,
	KDSM_EVICT_NEEDED,	/* the chunk that a task waited for last */
};

/* The first chunk from this one on whose memory such an eviction frees, or KDSM_NO_CHUNK */
static u64 kdsm_chunk_next(const struct kdsm_coherence *coherence, enum kdsm_evict_what what,
			   u64 chunk)
{
	u64 next = coherence->is_strict ? KDSM_NO_CHUNK :
					  kdsm_memory_next(coherence->twins, chunk);

	if (what == KDSM_EVICT_TWINS)
		return next;
	return min_t(u64, next, kdsm_memory_next(coherence->frames, chunk));
}

static bool kdsm_chunk_suits(struct kdsm_eviction *eviction, enum kdsm_evict_what what)
{
	bool is_needed = eviction->chunk == READ_ONCE(eviction->coherence->needed);

	if (what == KDSM_EVICT_TWINS)
		return true;
	if (is_needed ? what != KDSM_EVICT_NEEDED : what == KDSM_EVICT_NEEDED)
		return false;
	/* A clean chunk can go without another node that has memory */
	return what != KDSM_EVICT_CLEAN || kdsm_chunk_is_clean(eviction);
}

/* Evict the first chunk of first..end - 1 that suits and can go. Returns whether there is one. */
static bool kdsm_evict_from(struct kdsm_eviction *eviction, enum kdsm_evict_what what, u64 first,
			    u64 end)
{
	struct kdsm_coherence *coherence = eviction->coherence;
	u64 chunk = first;

	for (; (chunk = kdsm_chunk_next(coherence, what, chunk)) < end; chunk++) {
		if (READ_ONCE(coherence->outcast))
			return false;
		cond_resched();
		eviction->chunk = chunk;
		eviction->first = kdsm_chunk_first(coherence, chunk);
		eviction->last = kdsm_chunk_last(coherence, chunk);
		if (!kdsm_chunk_suits(eviction, what) ||
		    kdsm_chunk_evict(eviction, what == KDSM_EVICT_TWINS))
			continue;
		if (what != KDSM_EVICT_TWINS)
			coherence->hand = chunk + 1;
		return true;
	}
	return false;
}

/* Evict one chunk. The search begins behind the chunk that was evicted last. */
static bool kdsm_evict_one(struct kdsm_eviction *eviction, enum kdsm_evict_what what)
{
	u64 hand = eviction->coherence->hand, end = kdsm_evict_chunks(eviction->coherence);

	return kdsm_evict_from(eviction, what, hand, end) ||
	       kdsm_evict_from(eviction, what, 0, hand);
}

void kdsm_evict_work(struct work_struct *work)
{
	struct kdsm_coherence *coherence = container_of(work, struct kdsm_coherence, evict_work);
	struct kdsm_eviction *eviction = kzalloc(sizeof(*eviction), GFP_KERNEL);
	enum kdsm_evict_what what = KDSM_EVICT_TWINS;
	unsigned int left = READ_ONCE(coherence->reclaim);
	bool done = false;

	if (kdsm_evict_helps(coherence))
		coherence->share(coherence->region);
	if (eviction)
		eviction->coherence = coherence;
	for (; eviction && !done && what <= KDSM_EVICT_NEEDED; what++)
		done = kdsm_evict_one(eviction, what);
	kfree(eviction);
	/* Go on until the requested chunks are evicted, and the region is within its limit */
	if (done) {
		kdsm_coherence_reclaim(coherence, left ? left - 1 : 0);
		return;
	}
	WRITE_ONCE(coherence->reclaim, 0);
	schedule_timeout_uninterruptible(KDSM_EVICT_PAUSE);
	WRITE_ONCE(coherence->rounds, coherence->rounds + 1);
	wake_up_all(&coherence->wait);
}
