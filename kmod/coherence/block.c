// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a coherent region on this node: their table, what a node remembers of a block that
 * it does not hold, the pages behind a block, and the busy mark of the task that uses the network
 * for a block.
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

static struct kmem_cache *kdsm_block_cache;

int kdsm_blocks_init(void)
{
	/*
	 * A node has a structure for each block that it holds, so a byte more costs much memory.
	 * The size without the mutex is the same with lock debugging: see
	 * Documentation/design/coherence.md
	 */
	BUILD_BUG_ON(sizeof(struct kdsm_block) - sizeof(struct mutex) > 120);
	kdsm_block_cache = KMEM_CACHE(kdsm_block, SLAB_ACCOUNT);
	return kdsm_block_cache ? 0 : -ENOMEM;
}

void kdsm_blocks_exit(void)
{
	kmem_cache_destroy(kdsm_block_cache);
}

static void kdsm_block_free(const struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (coherence->is_strict) {
		bitmap_free(block->readers);
		bitmap_free(block->waiting);
	}
	kmem_cache_free(kdsm_block_cache, block);
}

void kdsm_blocks_free(struct kdsm_coherence *coherence)
{
	struct kdsm_block *block;
	unsigned long index;

	xa_for_each_marked(&coherence->table, index, block, KDSM_BLOCK_MARK)
		kdsm_block_free(coherence, block);
	xa_destroy(&coherence->table);
}

static struct kdsm_block *kdsm_block_create(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;

	block = kmem_cache_zalloc(kdsm_block_cache, GFP_KERNEL);
	if (!block)
		return NULL;
	mutex_init(&block->lock);
	if (coherence->is_strict) {
		INIT_LIST_HEAD(&block->owed);
	} else {
		INIT_LIST_HEAD(&block->dirty);
		RB_CLEAR_NODE(&block->cached);
		block->writer = KDSM_NOBODY;
		block->origin = KDSM_NOBODY;
	}
	block->index = index;
	block->users = 1;
	block->next = KDSM_NOBODY;
	block->hint = KDSM_NOBODY;
	block->owner = kdsm_block_first_owner(coherence, index);
	block->handover = 1;
	if (block->owner == coherence->node) {
		/* No node has written the block yet, so the zero frame is valid */
		block->role = KDSM_ROLE_OWNER;
		block->state = KDSM_BLOCK_READABLE;
		block->whole = !coherence->is_strict;
	}
	return block;
}

/* ---- what a node remembers of a block that no task uses ---- */

static bool kdsm_block_is_listed(const struct kdsm_coherence *coherence,
				 const struct kdsm_block *block)
{
	if (coherence->is_strict)
		return !list_empty(&block->owed);
	return !list_empty(&block->dirty) || !RB_EMPTY_NODE(&block->cached);
}

/*
 * Whether a block without users is in no list, and has no state that a later task, eviction or
 * another node relies on. Caller holds the lock of the table.
 */
static bool kdsm_block_is_idle(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	return !block->busy && !block->lost && !block->twin && !block->unread &&
	       !block->modified && block->next == KDSM_NOBODY &&
	       !kdsm_block_is_listed(coherence, block) && !kdsm_readers_wait(coherence, block);
}

/*
 * Policy strict: whether any node except one (but) has a copy. Caller has the only reference, so
 * it needs no lock of the block.
 */
static bool kdsm_block_is_read(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block, unsigned int but)
{
	unsigned int i;

	if (!coherence->is_strict || !block->readers)
		return false;
	for_each_set_bit(i, block->readers, coherence->nodes)
		if (i != but)
			return true;
	return false;
}

/* Whether this node owns a block that nobody has written, and no other node has a copy */
static bool kdsm_block_is_zero(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_OWNER && block->state == KDSM_BLOCK_READABLE &&
	       !block->wts && !kdsm_block_is_read(coherence, block, coherence->node);
}

/* Whether this node has neither the block nor a copy, and asks for neither */
static bool kdsm_block_is_elsewhere(const struct kdsm_coherence *coherence,
				    const struct kdsm_block *block)
{
	if (block->role != KDSM_ROLE_NONE || block->state != KDSM_BLOCK_INVALID)
		return false;
	return coherence->is_strict ? block->reading == KDSM_READING_NONE : !block->whole;
}

/*
 * Whether an idle block may leave the table, because a new structure would do the same. Caller
 * holds the lock of the table and has dropped the last reference.
 *
 * A node that never had the block may forget its link, because the link of a new structure leads to
 * the first owner, which remembers where it handed the block over to. If the first owner is gone,
 * the link stays. This node has taken up no hand-over, so it can take none up twice. The node may
 * forget what notices demanded, because kdsm_block_learn() finds that again. It may forget the
 * timestamps of a copy that a notice made invalid, because the next content must be newer. A copy
 * that outlived its lease stays, because it may still be current. Policy strict: a node remembers
 * what writers demanded (wanted), because their messages may be repeated late.
 */
static bool kdsm_block_is_new(const struct kdsm_coherence *coherence,
			      const struct kdsm_block *block)
{
	unsigned int first = kdsm_block_first_owner(coherence, block->index);

	if (block->taken || (coherence->is_strict && block->wanted))
		return false;
	if (first != coherence->node)
		return kdsm_block_is_elsewhere(coherence, block) &&
		       (block->owner == first || !kdsm_is_gone(coherence, first));
	return kdsm_block_is_zero(coherence, block) && !block->rts;
}

/*
 * A value entry of the table, 8 bytes, stands for an idle block of which this node has no content.
 * Another node owns the block, or this node owns it and nobody has written it.
 *
 * - OWNER: the link. HANDOVER: the number of the newest hand-over, so that this node takes no
 *   hand-over up twice.
 * - GIVEN: this node made that hand-over, and repeats it until the next owner has taken it up. If
 *   nobody has written the block, the hand-over only says how long copies are valid, which is TS.
 *   After other hand-overs the structure stays, until eviction finds that the next owner has the
 *   block (kdsm_block_was_read()), or this node hears of a newer hand-over.
 * - TS: the largest timestamp of the former content. One number serves as wts and rts, because no
 *   write has a timestamp between them. Content that arrives later must not be older than what
 *   programs of this node wrote or read, nor than what the stamp of this node promises.
 *
 * The other fields need not be remembered. The origin of a copy and the state of a request exist
 * only with a copy or a task. kdsm_block_learn() finds again what notices say, and ask_first and
 * ask_end tell which blocks were refreshed. If the block has a hint, the structure stays, because a
 * discard may have found that owner.
 */
#define KDSM_MEMO_GIVEN		BIT_ULL(0)
#define KDSM_MEMO_OWNER		GENMASK_ULL(10, 1)
#define KDSM_MEMO_HANDOVER	GENMASK_ULL(30, 11)
#define KDSM_MEMO_TS		GENMASK_ULL(62, 31)

/* Whether a value entry suffices to repeat the newest hand-over, if this node made that */
static bool kdsm_given_fits(const struct kdsm_coherence *coherence,
			    const struct kdsm_block *block)
{
	/* The next owner makes zeros itself, so the hand-over need not list it as a reader */
	return !block->given || (block->from == coherence->node && !block->from_wts &&
				 !kdsm_block_is_read(coherence, block, block->owner));
}

void *kdsm_block_memo(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	u64 ts = max3(block->wts, block->rts, coherence->is_strict ? block->wanted : 0);
	bool leads_here = block->owner == coherence->node;

	BUILD_BUG_ON(KDSM_MAX_NODES - 1 > FIELD_MAX(KDSM_MEMO_OWNER));
	if (!kdsm_block_is_zero(coherence, block) &&
	    (!kdsm_block_is_elsewhere(coherence, block) || !kdsm_given_fits(coherence, block)))
		return NULL;
	/* kdsm_block_recall() tells by the link whether this node owns the block */
	if (kdsm_block_is_owned(block) != leads_here)
		return NULL;
	/* The numbers of claims do not fit, but claims are rare */
	if (block->hint != KDSM_NOBODY || block->handover > FIELD_MAX(KDSM_MEMO_HANDOVER) ||
	    ts > FIELD_MAX(KDSM_MEMO_TS))
		return NULL;
	return xa_mk_value(FIELD_PREP(KDSM_MEMO_GIVEN, block->given) |
			   FIELD_PREP(KDSM_MEMO_OWNER, block->owner) |
			   FIELD_PREP(KDSM_MEMO_HANDOVER, block->handover) |
			   FIELD_PREP(KDSM_MEMO_TS, ts));
}

void kdsm_block_recall(const struct kdsm_coherence *coherence, struct kdsm_block *block, u64 memo)
{
	u64 ts = FIELD_GET(KDSM_MEMO_TS, memo);

	block->owner = FIELD_GET(KDSM_MEMO_OWNER, memo);
	block->handover = FIELD_GET(KDSM_MEMO_HANDOVER, memo);
	block->taken = true;
	block->rts = ts;
	if (block->owner == coherence->node) {
		block->whole = !coherence->is_strict;
		block->role = KDSM_ROLE_OWNER;
		block->state = KDSM_BLOCK_READABLE;
		return;
	}
	block->role = KDSM_ROLE_NONE;
	block->state = KDSM_BLOCK_INVALID;
	block->whole = false;
	block->wts = ts;
	block->wanted = coherence->is_strict ? ts : 0;
	block->given = FIELD_GET(KDSM_MEMO_GIVEN, memo);
	block->from = coherence->node;
	block->from_rts = ts;
}

/* ---- the table ---- */

/* The structure that an entry of the table points to, or NULL for a value or no entry */
static struct kdsm_block *kdsm_block_of(void *entry)
{
	return xa_is_value(entry) ? NULL : entry;
}

struct kdsm_block *kdsm_block_find(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;

	xa_lock(&coherence->table);
	block = kdsm_block_of(xa_load(&coherence->table, index));
	if (block)
		block->users++;
	xa_unlock(&coherence->table);
	return block;
}

struct kdsm_block *kdsm_block_next(struct kdsm_coherence *coherence, u64 *index, u64 last)
{
	struct kdsm_block *block;
	unsigned long at = *index;

	xa_lock(&coherence->table);
	block = xa_find(&coherence->table, &at, last, KDSM_BLOCK_MARK);
	if (block)
		block->users++;
	xa_unlock(&coherence->table);
	*index = at;
	return block;
}

/*
 * Put a new structure into the table, unless the table has one for the block. Returns the structure
 * in the table, with a reference, or NULL without memory. Caller holds the lock of the table, which
 * the function may drop meanwhile.
 */
static struct kdsm_block *kdsm_block_enter(struct kdsm_coherence *coherence,
					   struct kdsm_block *made)
{
	struct xarray *table = &coherence->table;
	struct kdsm_block *block;
	void *seen, *entry;

	/* Try again if the entry changed while __xa_cmpxchg() had dropped the lock to allocate */
	do {
		seen = xa_load(table, made->index);
		block = kdsm_block_of(seen);
		if (block) {
			block->users++;
			return block;
		}
		entry = __xa_cmpxchg(table, made->index, seen, made, GFP_KERNEL);
		if (xa_is_err(entry))
			return NULL;
	} while (entry != seen);
	__xa_set_mark(table, made->index, KDSM_BLOCK_MARK);
	coherence->structures++;
	if (xa_is_value(seen)) {
		coherence->memos--;
		kdsm_block_recall(coherence, made, xa_to_value(seen));
	}
	made->ask = made->index >= coherence->ask_first && made->index < coherence->ask_end;
	return made;
}

struct kdsm_block *kdsm_block_get(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block = kdsm_block_find(coherence, index), *made;

	if (block)
		return block;
	made = kdsm_block_create(coherence, index);
	if (!made)
		return NULL;
	xa_lock(&coherence->table);
	block = kdsm_block_enter(coherence, made);
	xa_unlock(&coherence->table);
	if (block != made)
		kdsm_block_free(coherence, made);
	return block;
}

void kdsm_block_hold(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	xa_lock(&coherence->table);
	block->users++;
	xa_unlock(&coherence->table);
}

void kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct xarray *table = &coherence->table;
	bool is_new = false;
	void *memo = NULL;

	xa_lock(table);
	/* Only its users change a block, and put it into lists */
	if (!--block->users && kdsm_block_is_idle(coherence, block)) {
		is_new = kdsm_block_is_new(coherence, block);
		memo = is_new ? NULL : kdsm_block_memo(coherence, block);
	}
	if (is_new)
		__xa_erase(table, block->index);
	if (memo) {
		/* Cannot fail: the entry exists, so nothing is allocated */
		__xa_cmpxchg(table, block->index, block, memo, 0);
		__xa_clear_mark(table, block->index, KDSM_BLOCK_MARK);
	}
	coherence->structures -= is_new || memo;
	coherence->memos += !!memo;
	xa_unlock(table);
	if (is_new || memo)
		kdsm_block_free(coherence, block);
}

/* Share of a block in the nodes of the table, in bytes, if these are full */
#define KDSM_BLOCK_PLACE	DIV_ROUND_UP(sizeof(struct xa_node), XA_CHUNK_SIZE)

u64 kdsm_coherence_metadata(struct kdsm_coherence *coherence)
{
	u64 structures, memos;

	xa_lock(&coherence->table);
	structures = coherence->structures;
	memos = coherence->memos;
	xa_unlock(&coherence->table);
	return structures * sizeof(struct kdsm_block) + (structures + memos) * KDSM_BLOCK_PLACE;
}

/* ---- blocks ---- */

void kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	const struct kdsm_notice *notice;
	bool is_summary;

	lockdep_assert_held(&block->lock);
	if (kdsm_block_is_owned(block))
		return;
	spin_lock(&coherence->lock);
	notice = kdsm_signature_find(&coherence->signature, block->index, coherence->node);
	is_summary = notice && kdsm_notice_is_summary(notice);
	if (notice && notice->ts > max(is_summary ? block->rts : block->wts, block->wanted)) {
		block->wanted = notice->ts;
		block->writer = kdsm_notice_writer(notice, block->index);
		/* A summary names no writer: keep an older hint, which is later than the link */
		if (!is_summary)
			block->hint = block->writer;
	}
	spin_unlock(&coherence->lock);
}

void kdsm_block_begin(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	while (block->busy || kdsm_block_is_closed(coherence, block)) {
		mutex_unlock(&block->lock);
		wait_event(coherence->wait, !READ_ONCE(block->busy) &&
			   !kdsm_block_is_closed(coherence, block));
		mutex_lock(&block->lock);
	}
	WRITE_ONCE(block->busy, true);
}

void kdsm_block_end(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	WRITE_ONCE(block->busy, false);
	wake_up_all(&coherence->wait);
}

void kdsm_block_unmap(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      enum kdsm_block_state state)
{
	lockdep_assert_held(&block->lock);
	WRITE_ONCE(block->state, state);
	kdsm_pages_unmap(coherence, kdsm_block_offset(coherence, block->index),
			 kdsm_block_size(coherence, block->index));
	kdsm_coherence_count(coherence, FLUSHES, 1);
}

int kdsm_block_clear(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	unsigned int pages = kdsm_block_size(coherence, block->index) >> PAGE_SHIFT, i;
	void *page;

	for (i = 0; i < pages; i++) {
		page = kdsm_block_page(coherence, coherence->frames, block, i);
		if (IS_ERR(page))
			return PTR_ERR(page);
	}
	for (i = 0; i < pages; i++)
		clear_page(kdsm_block_page(coherence, coherence->frames, block, i));
	return 0;
}

void *kdsm_block_page(struct kdsm_coherence *coherence, struct kdsm_memory *memory,
		      const struct kdsm_block *block, unsigned int i)
{
	u64 offset = kdsm_block_offset(coherence, block->index);
	struct page *page = kdsm_memory_page(memory, (offset >> PAGE_SHIFT) + i);

	return IS_ERR(page) ? ERR_CAST(page) : page_address(page);
}
