// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a coherent region on this node: their table, the pages behind a block, and
 * the busy mark of the task that uses the network for a block.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

static void kdsm_block_free(struct kdsm_block *block)
{
	if (!block)
		return;
	bitmap_free(block->readers);
	bitmap_free(block->waiting);
	kfree(block);
}

void kdsm_blocks_free(struct kdsm_coherence *coherence)
{
	struct kdsm_block *block;
	unsigned long index;

	xa_for_each(&coherence->table, index, block)
		kdsm_block_free(block);
	xa_destroy(&coherence->table);
}

static struct kdsm_block *kdsm_block_create(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;

	block = kzalloc(sizeof(*block), GFP_KERNEL_ACCOUNT);
	if (!block)
		return NULL;
	mutex_init(&block->lock);
	if (coherence->is_strict) {
		INIT_LIST_HEAD(&block->owed);
	} else {
		INIT_LIST_HEAD(&block->dirty);
		RB_CLEAR_NODE(&block->cached);
	}
	block->index = index;
	block->users = 1;
	block->next = KDSM_NOBODY;
	block->writer = KDSM_NOBODY;
	block->hint = KDSM_NOBODY;
	block->origin = KDSM_NOBODY;
	block->lost = KDSM_NOBODY;
	block->owner = kdsm_block_first_owner(coherence, index);
	block->handover = 1;
	if (block->owner == coherence->node) {
		/* No node has written the block yet, so the zero frame is valid */
		block->role = KDSM_ROLE_OWNER;
		block->state = KDSM_BLOCK_READABLE;
		block->whole = true;
	}
	return block;
}

struct kdsm_block *kdsm_block_find(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;

	xa_lock(&coherence->table);
	block = xa_load(&coherence->table, index);
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
	block = xa_find(&coherence->table, &at, last, XA_PRESENT);
	if (block)
		block->users++;
	xa_unlock(&coherence->table);
	*index = at;
	return block;
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
	/* May drop the lock to allocate, but not after it found the entry empty */
	block = __xa_cmpxchg(&coherence->table, index, NULL, made, GFP_KERNEL);
	if (block && !xa_is_err(block))
		block->users++;
	/* No task has seen the block yet */
	if (!block)
		made->ask = index >= coherence->ask_first && index < coherence->ask_end;
	xa_unlock(&coherence->table);
	if (!block)
		return made;
	kdsm_block_free(made);
	return xa_is_err(block) ? NULL : block;
}

void kdsm_block_hold(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	xa_lock(&coherence->table);
	block->users++;
	xa_unlock(&coherence->table);
}

static bool kdsm_block_is_listed(const struct kdsm_coherence *coherence,
				 const struct kdsm_block *block)
{
	if (coherence->is_strict)
		return !list_empty(&block->owed);
	return !list_empty(&block->dirty) || !RB_EMPTY_NODE(&block->cached);
}

/*
 * Whether a block without users may leave the table: a new block in its place would serve as well.
 *
 * A node that never had the block may forget its link. The link of a new block leads to the first
 * owner, which remembers its own. No hand-over to this node has been taken up, so none can be taken
 * up twice. The node may forget what notices demanded, because kdsm_block_learn() finds that again,
 * and the timestamps of a copy that a notice made invalid, because the next content must be newer.
 * A copy that outlived its lease stays, because it may still be current. Policy strict: a reader
 * without a request takes up no loan, and the answer to its next request says which loans are too
 * old.
 *
 * A node that had the block remembers the numbers of hand-overs, and for policy release the
 * timestamps that it promised for its frame. Policy strict: a node that asked for the block keeps
 * the set of readers, because a hand-over may still come, and is refused without the set.
 */
static bool kdsm_block_is_new(const struct kdsm_coherence *coherence,
			      const struct kdsm_block *block)
{
	if (block->taken || block->busy || block->lost != KDSM_NOBODY || block->twin ||
	    block->unread || block->modified || block->next != KDSM_NOBODY ||
	    kdsm_block_is_listed(coherence, block) ||
	    (block->waiting && !bitmap_empty(block->waiting, coherence->nodes)))
		return false;
	if (kdsm_block_first_owner(coherence, block->index) != coherence->node)
		return block->role == KDSM_ROLE_NONE && !block->whole &&
		       block->state == KDSM_BLOCK_INVALID &&
		       block->reading == KDSM_READING_NONE && !block->readers;
	return block->role == KDSM_ROLE_OWNER && block->state == KDSM_BLOCK_READABLE &&
	       !block->wts && !block->rts &&
	       (!block->readers || bitmap_empty(block->readers, coherence->nodes));
}

void kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	bool is_new;

	xa_lock(&coherence->table);
	/* Only its users change a block, and put it into lists */
	is_new = !--block->users && kdsm_block_is_new(coherence, block);
	if (is_new)
		__xa_erase(&coherence->table, block->index);
	xa_unlock(&coherence->table);
	if (is_new)
		kdsm_block_free(block);
}

void kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	const struct kdsm_notice *notice;
	bool is_summary;

	lockdep_assert_held(&block->lock);
	if (kdsm_block_is_owned(block))
		return;
	spin_lock(&coherence->lock);
	notice = kdsm_signature_find(&coherence->signature, block->index, coherence->node);
	is_summary = notice && notice->writer == KDSM_NOBODY;
	if (notice && notice->ts > max(is_summary ? block->rts : block->wts, block->wanted)) {
		block->wanted = notice->ts;
		block->writer = kdsm_notice_writer(notice, block->index);
		/* Any writer that an older notice named is a later owner than the link's, too */
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
	kdsm_pages_unmap(coherence, kdsm_block_offset(coherence, block),
			 kdsm_block_size(coherence));
	kdsm_coherence_count(coherence, FLUSHES, 1);
}

int kdsm_block_clear(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	unsigned int pages = kdsm_block_size(coherence) >> PAGE_SHIFT, i;
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
	struct page *page;

	page = kdsm_memory_page(memory, (kdsm_block_offset(coherence, block) >> PAGE_SHIFT) + i);
	return IS_ERR(page) ? ERR_CAST(page) : page_address(page);
}
