// SPDX-License-Identifier: GPL-2.0
/*
 * What the policies of coherent regions share: the blocks, and the calls from
 * above that each policy answers.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "coherence/coherence.h"

int kdsm_coherence_init(struct kdsm_coherence *coherence, struct kdsm_fabric *fabric,
			u32 id, u32 policy, u64 size, u32 block_size)
{
	memset(coherence, 0, sizeof(*coherence));
	coherence->fabric = fabric;
	coherence->id = id;
	coherence->policy = policy == KDSM_POLICY_STRICT ? &kdsm_policy_strict :
			    &kdsm_policy_release;
	coherence->lease = KDSM_LEASE_DEFAULT;
	coherence->block_shift = ilog2(block_size);
	coherence->blocks = size >> coherence->block_shift;
	coherence->node = kdsm_fabric_node(fabric);
	coherence->nodes = kdsm_fabric_nodes(fabric);
	init_waitqueue_head(&coherence->wait);
	mutex_init(&coherence->fence);
	spin_lock_init(&coherence->lock);
	INIT_WORK(&coherence->owed_work, kdsm_ownership_owed_work);
	INIT_LIST_HEAD(&coherence->owed);
	INIT_LIST_HEAD(&coherence->dirty);
	INIT_LIST_HEAD(&coherence->cached);
	kdsm_signature_init(&coherence->signature);
	coherence->tables = kvcalloc(DIV_ROUND_UP_ULL(coherence->blocks, KDSM_TABLE_SIZE),
				     sizeof(*coherence->tables), GFP_KERNEL);
	return coherence->tables ? 0 : -ENOMEM;
}

static void kdsm_table_free(struct kdsm_block *table)
{
	unsigned int i;

	for (i = 0; table && i < KDSM_TABLE_SIZE; i++)
		bitmap_free(table[i].readers);
	kvfree(table);
}

void kdsm_coherence_exit(struct kdsm_coherence *coherence)
{
	u64 i;

	cancel_work_sync(&coherence->owed_work);
	for (i = 0; i < DIV_ROUND_UP_ULL(coherence->blocks, KDSM_TABLE_SIZE); i++)
		kdsm_table_free(coherence->tables[i]);
	kvfree(coherence->tables);
}

/* ---- blocks ---- */

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
		/* Spread by groups, so that neighbours start on one node. */
		block->owner = (first >> KDSM_TABLE_SHIFT) % coherence->nodes;
		block->handover = 1;
		if (block->owner == coherence->node) {
			/* Nobody has written it: its frame is zero, and good. */
			block->role = KDSM_ROLE_OWNER;
			block->state = KDSM_BLOCK_READABLE;
		}
	}
	return table;
}

struct kdsm_block *kdsm_block(struct kdsm_coherence *coherence, u64 index)
{
	u64 i = index >> KDSM_TABLE_SHIFT;
	struct kdsm_block *table, *other;

	/* Pairs with the cmpxchg below. */
	table = smp_load_acquire(&coherence->tables[i]);
	if (unlikely(!table)) {
		table = kdsm_table_create(coherence, i << KDSM_TABLE_SHIFT);
		if (!table)
			return NULL;
		other = cmpxchg(&coherence->tables[i], NULL, table);
		if (other) {
			kvfree(table);
			table = other;
		}
	}
	return &table[index & (KDSM_TABLE_SIZE - 1)];
}

/* Wait until nobody is at the block over the network, then be the one. */
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

/* ---- statistics ---- */

/* Nobody is kept from changing them meanwhile. */
static void kdsm_table_count(const struct kdsm_block *table, u64 blocks, u64 *stats)
{
	static const u8 which[] = {
		[KDSM_BLOCK_INVALID] = KDSM_COHERENCE_INVALID,
		[KDSM_BLOCK_READABLE] = KDSM_COHERENCE_READABLE,
		[KDSM_BLOCK_WRITABLE] = KDSM_COHERENCE_WRITABLE,
	};
	u64 i;

	for (i = 0; i < blocks; i++) {
		stats[which[READ_ONCE(table[i].state)]]++;
		stats[KDSM_COHERENCE_OWNED] += READ_ONCE(table[i].role) == KDSM_ROLE_OWNER;
	}
}

void kdsm_coherence_stats(struct kdsm_coherence *coherence, u64 *stats)
{
	const struct kdsm_block *table;
	u64 i;

	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		stats[i] = atomic64_read(&coherence->stats[i]);
	for (i = 0; i < coherence->blocks; i += KDSM_TABLE_SIZE) {
		/* Pairs with the cmpxchg in kdsm_block(). */
		table = smp_load_acquire(&coherence->tables[i >> KDSM_TABLE_SHIFT]);
		if (table)
			kdsm_table_count(table, min(coherence->blocks - i, (u64)KDSM_TABLE_SIZE),
					 stats);
	}
}

/* ---- from above ---- */

int kdsm_coherence_access(struct kdsm_coherence *coherence, u64 index, bool write,
			  kdsm_map_t map, void *arg)
{
	struct kdsm_block *block;

	if (index >= coherence->blocks)
		return -ERANGE;
	block = kdsm_block(coherence, index);
	if (!block)
		return -ENOMEM;
	if (write)
		kdsm_coherence_count(coherence, WRITE_FAULTS, 1);
	else
		kdsm_coherence_count(coherence, READ_FAULTS, 1);
	return coherence->policy->access(coherence, block, write, map, arg);
}

/* Of policy strict everybody sees everything at once: nothing is left to do. */
int kdsm_coherence_release(struct kdsm_coherence *coherence,
			   struct kdsm_signature *signature)
{
	if (coherence->policy->release)
		return coherence->policy->release(coherence, signature);
	if (signature)
		kdsm_signature_init(signature);
	return 0;
}

int kdsm_coherence_acquire(struct kdsm_coherence *coherence,
			   const struct kdsm_signature *signature)
{
	if (coherence->policy->acquire)
		return coherence->policy->acquire(coherence, signature);
	return 0;
}

/* ---- hints ---- */

static int kdsm_advise_nothing(void *arg, u64 index, bool writable)
{
	return 0;
}

static int kdsm_block_advise(struct kdsm_coherence *coherence, enum kdsm_advice advice,
			     u64 index)
{
	struct kdsm_block *block = kdsm_block(coherence, index);

	if (!block)
		return -ENOMEM;
	if (advice == KDSM_ADVICE_OWN)
		return coherence->policy->own(coherence, block);
	return coherence->policy->access(coherence, block, false, kdsm_advise_nothing, NULL);
}

int kdsm_coherence_advise(struct kdsm_coherence *coherence, enum kdsm_advice advice,
			  u64 first, u64 last)
{
	int err = 0;

	if (advice == KDSM_ADVICE_FLUSH)
		return coherence->policy->flush ?
		       coherence->policy->flush(coherence, first, last) : 0;
	for (; first <= last && !err; first++) {
		if (signal_pending(current))
			return -EINTR;
		err = kdsm_block_advise(coherence, advice, first);
		cond_resched();
	}
	return err;
}
