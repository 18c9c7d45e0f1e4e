// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a coherent region on this node: their table, the pages behind a block, and
 * the busy mark of the task that uses the network for a block.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

static void kdsm_table_free(struct kdsm_block *table)
{
	unsigned int i;

	for (i = 0; table && i < KDSM_TABLE_SIZE; i++) {
		bitmap_free(table[i].readers);
		bitmap_free(table[i].waiting);
	}
	kvfree(table);
}

void kdsm_blocks_free(struct kdsm_coherence *coherence)
{
	u64 i;

	for (i = 0; i < DIV_ROUND_UP_ULL(coherence->blocks, KDSM_TABLE_SIZE); i++)
		kdsm_table_free(coherence->tables[i]);
	kvfree(coherence->tables);
}

static struct kdsm_block *kdsm_table_create(struct kdsm_coherence *coherence, u64 first)
{
	struct kdsm_block *table;
	unsigned int i;

	table = kvcalloc(KDSM_TABLE_SIZE, sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	for (i = 0; i < KDSM_TABLE_SIZE; i++) {
		struct kdsm_block *block = &table[i];

		mutex_init(&block->lock);
		INIT_LIST_HEAD(&block->owed);
		INIT_LIST_HEAD(&block->dirty);
		INIT_LIST_HEAD(&block->cached);
		block->index = first + i;
		block->next = KDSM_NOBODY;
		block->writer = KDSM_NOBODY;
		block->hint = KDSM_NOBODY;
		/* A node owns whole tables at first, so that neighbours start on one node */
		block->owner = (first >> KDSM_TABLE_SHIFT) % coherence->nodes;
		block->handover = 1;
		if (block->owner == coherence->node) {
			/* No node has written the block yet, so the zero frame is valid */
			block->role = KDSM_ROLE_OWNER;
			block->state = KDSM_BLOCK_READABLE;
		}
	}
	return table;
}

struct kdsm_block *kdsm_block_peek(const struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *table;

	/* Pairs with cmpxchg() in kdsm_block(), which publishes an initialised table */
	table = smp_load_acquire(&coherence->tables[index >> KDSM_TABLE_SHIFT]);
	return table ? &table[index & (KDSM_TABLE_SIZE - 1)] : NULL;
}

struct kdsm_block *kdsm_block(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block = kdsm_block_peek(coherence, index), *table, *other;
	u64 i = index >> KDSM_TABLE_SHIFT;

	if (block)
		return block;
	table = kdsm_table_create(coherence, i << KDSM_TABLE_SHIFT);
	if (!table)
		return NULL;
	other = cmpxchg(&coherence->tables[i], NULL, table);
	if (other) {
		kvfree(table);
		table = other;
	}
	return &table[index & (KDSM_TABLE_SIZE - 1)];
}

void kdsm_block_begin(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	while (block->busy) {
		mutex_unlock(&block->lock);
		wait_event(coherence->wait, !READ_ONCE(block->busy));
		mutex_lock(&block->lock);
	}
	WRITE_ONCE(block->busy, true);
}

void kdsm_block_end(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	WRITE_ONCE(block->busy, false);
	wake_up_all(&coherence->wait);
}

void *kdsm_block_page(struct kdsm_coherence *coherence, struct kdsm_memory *memory,
		      const struct kdsm_block *block, unsigned int i)
{
	struct page *page;

	page = kdsm_memory_page(memory, (kdsm_block_offset(coherence, block) >> PAGE_SHIFT) + i);
	return IS_ERR(page) ? ERR_CAST(page) : page_address(page);
}
