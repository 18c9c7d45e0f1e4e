// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a coherent region on this node: their table, the pages behind a block, and the busy
 * mark of the task that uses the network for a block.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

static struct kmem_cache *kdsm_block_cache;

int kdsm_blocks_init(void)
{
	int err = kdsm_records_init();

	if (err)
		return err;
	kdsm_block_cache = KMEM_CACHE(kdsm_block, SLAB_ACCOUNT);
	if (!kdsm_block_cache)
		kdsm_records_exit();
	return kdsm_block_cache ? 0 : -ENOMEM;
}

void kdsm_blocks_exit(void)
{
	kmem_cache_destroy(kdsm_block_cache);
	kdsm_records_exit();
}

static void kdsm_block_free(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (block->record)
		kdsm_record_free(coherence, block->record);
	if (coherence->is_strict) {
		bitmap_free(block->readers);
		bitmap_free(block->waiting);
	}
	kmem_cache_free(kdsm_block_cache, block);
}

static struct kdsm_block *kdsm_block_create(const struct kdsm_coherence *coherence, u64 index,
					    gfp_t gfp)
{
	struct kdsm_block *block = kmem_cache_zalloc(kdsm_block_cache, gfp);

	if (!block)
		return NULL;
	mutex_init(&block->lock);
	INIT_LIST_HEAD(&block->idlers);
	if (coherence->is_strict) {
		INIT_LIST_HEAD(&block->owed);
	} else {
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

/* ---- the table ---- */

void kdsm_blocks_free(struct kdsm_coherence *coherence)
{
	unsigned long index;
	void *entry;

	xa_for_each_marked(&coherence->table, index, entry, KDSM_BLOCK_MARK) {
		if (kdsm_entry_is_record(entry)) {
			bitmap_free(kdsm_record_readers(coherence, entry));
			kdsm_record_free(coherence, entry);
		} else {
			kdsm_block_free(coherence, entry);
		}
	}
	xa_destroy(&coherence->table);
}

/* A task begins to use a block */
static void kdsm_block_use(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	block->users++;
	if (list_empty(&block->idlers))
		return;
	list_del_init(&block->idlers);
	coherence->idler_count--;
}

/* Return the structure of an entry, with a reference, or NULL. Caller holds the table's lock. */
static struct kdsm_block *kdsm_entry_use(struct kdsm_coherence *coherence, void *entry)
{
	struct kdsm_block *block = kdsm_entry_block(entry);

	if (block)
		kdsm_block_use(coherence, block);
	return block;
}

/*
 * Put a new structure into the table, unless the table has one for the block. Returns the structure
 * in the table, with a reference. NULL: there is no memory. ERR_PTR(-EAGAIN): the table has a
 * record. Caller holds the lock of the table, which the function may drop meanwhile.
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
		block = kdsm_entry_use(coherence, seen);
		if (block)
			return block;
		if (kdsm_entry_is_record(seen))
			return ERR_PTR(-EAGAIN);
		entry = __xa_cmpxchg(table, made->index, seen, made, GFP_KERNEL);
		if (xa_is_err(entry))
			return NULL;
	} while (entry != seen);
	__xa_set_mark(table, made->index, KDSM_BLOCK_MARK);
	coherence->structures++;
	if (seen) {
		coherence->memos--;
		kdsm_block_unpack(coherence, made, seen);
	}
	made->ask = made->index >= coherence->ask_first && made->index < coherence->ask_end;
	return made;
}

/*
 * Return the block of a record, with a reference, or NULL if the table has neither a record nor a
 * structure of it any more. It gets memory however little is left, because an eviction works on
 * what the node holds, too.
 */
static struct kdsm_block *kdsm_block_restore(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *made, *block;
	XA_STATE(place, &coherence->table, index);
	void *entry;

	made = kdsm_block_create(coherence, index, GFP_KERNEL | __GFP_NOFAIL);
	xa_lock(&coherence->table);
	entry = xas_load(&place);
	block = kdsm_entry_use(coherence, entry);
	if (kdsm_entry_is_record(entry)) {
		/* Allocates nothing, because the entry exists */
		xas_store(&place, made);
		coherence->structures++;
		kdsm_block_unpack(coherence, made, entry);
		block = made;
	}
	xa_unlock(&coherence->table);
	if (block != made)
		kdsm_block_free(coherence, made);
	return block;
}

struct kdsm_block *kdsm_block_find(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;
	void *entry;

	xa_lock(&coherence->table);
	entry = xa_load(&coherence->table, index);
	block = kdsm_entry_use(coherence, entry);
	xa_unlock(&coherence->table);
	return kdsm_entry_is_record(entry) ? kdsm_block_restore(coherence, index) : block;
}

struct kdsm_block *kdsm_block_get(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block, *made;

	for (;;) {
		block = kdsm_block_find(coherence, index);
		if (block)
			return block;
		made = kdsm_block_create(coherence, index, GFP_KERNEL);
		if (!made)
			return NULL;
		xa_lock(&coherence->table);
		block = kdsm_block_enter(coherence, made);
		xa_unlock(&coherence->table);
		if (block != made)
			kdsm_block_free(coherence, made);
		/* Another task may have made a record of it meanwhile */
		if (PTR_ERR_OR_ZERO(block) != -EAGAIN)
			return block;
	}
}

static struct kdsm_block *kdsm_block_marked(struct kdsm_coherence *coherence, u64 *index, u64 last,
					    xa_mark_t mark)
{
	struct kdsm_block *block;
	unsigned long at = *index;
	void *entry;

	do {
		xa_lock(&coherence->table);
		entry = xa_find(&coherence->table, &at, last, mark);
		block = kdsm_entry_use(coherence, entry);
		xa_unlock(&coherence->table);
		if (kdsm_entry_is_record(entry))
			block = kdsm_block_restore(coherence, at);
		/* Look again if the block has gone meanwhile */
	} while (entry && !block);
	*index = at;
	return block;
}

struct kdsm_block *kdsm_block_next(struct kdsm_coherence *coherence, u64 *index, u64 last)
{
	return kdsm_block_marked(coherence, index, last, KDSM_BLOCK_MARK);
}

struct kdsm_block *kdsm_block_dirty_next(struct kdsm_coherence *coherence, u64 *index, u64 last)
{
	return kdsm_block_marked(coherence, index, last, KDSM_DIRTY_MARK);
}

static void kdsm_block_show(const struct kdsm_coherence *coherence, const struct kdsm_block *block,
			    struct kdsm_glance *glance)
{
	*glance = (struct kdsm_glance) {
		.state = block->state, .owned = kdsm_block_is_owned(block),
		.lost = READ_ONCE(block->lost), .ahead = READ_ONCE(block->ahead),
		.written = kdsm_block_is_written(coherence, block), .cached = block->cached,
		.wts = block->wts, .rts = block->rts,
	};
}

bool kdsm_block_glance(struct kdsm_coherence *coherence, u64 *index, u64 last,
		       struct kdsm_glance *glance)
{
	struct kdsm_block *block;
	unsigned long at = *index;
	bool is_used;
	void *entry;

	xa_lock(&coherence->table);
	entry = xa_find(&coherence->table, &at, last, KDSM_BLOCK_MARK);
	block = kdsm_entry_block(entry);
	is_used = block && block->users;
	if (kdsm_entry_is_record(entry))
		kdsm_record_glance(coherence, entry, glance);
	else if (is_used)
		block->users++;
	else if (block)		/* only users change it */
		kdsm_block_show(coherence, block, glance);
	xa_unlock(&coherence->table);
	*index = at;
	if (!is_used)
		return entry;
	mutex_lock(&block->lock);
	kdsm_block_show(coherence, block, glance);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return true;
}

void kdsm_block_hold(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	xa_lock(&coherence->table);
	kdsm_block_use(coherence, block);
	xa_unlock(&coherence->table);
}

/* ---- blocks that no task uses ---- */

/* Replace a structure by a record or a value, or by nothing. Caller holds the lock of the table. */
static void kdsm_block_replace(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       void *entry)
{
	XA_STATE(place, &coherence->table, block->index);

	/* Allocates nothing, because the entry exists */
	xas_load(&place);
	xas_store(&place, entry);
	if (xa_is_value(entry))
		xas_clear_mark(&place, KDSM_BLOCK_MARK);
	coherence->structures--;
	kdsm_block_free(coherence, block);
}

/*
 * A structure becomes a record a second after its last use, or earlier, when more than KDSM_IDLERS
 * structures are idle. The simulator sets a smaller value.
 */
#ifndef KDSM_IDLERS
#define KDSM_IDLERS		1024
#endif
/* Number that become records at a time, without a pause for other tasks */
#define KDSM_IDLERS_BATCH	64

static void kdsm_idler_add(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	block->idle_since = jiffies;
	list_add_tail(&block->idlers, &coherence->idlers);
	if (!coherence->idler_count++)
		schedule_delayed_work(&coherence->idlers_work, HZ);
}

/* Let the block that has been idle longest become a record, if it can */
static void kdsm_idler_pack(struct kdsm_coherence *coherence)
{
	struct kdsm_block *block;
	void *entry;

	block = list_first_entry(&coherence->idlers, struct kdsm_block, idlers);
	list_del_init(&block->idlers);
	coherence->idler_count--;
	entry = kdsm_record_pack(coherence, block);
	if (IS_ERR(entry))
		kdsm_idler_add(coherence, block);	/* try again later */
	else if (entry)
		kdsm_block_replace(coherence, block, entry);
}

static bool kdsm_idler_is_old(struct kdsm_coherence *coherence)
{
	const struct kdsm_block *block;

	block = list_first_entry_or_null(&coherence->idlers, struct kdsm_block, idlers);
	return block && time_after(jiffies, block->idle_since + HZ);
}

void kdsm_idlers_work(struct work_struct *work)
{
	struct kdsm_coherence *coherence =
		container_of(to_delayed_work(work), struct kdsm_coherence, idlers_work);
	unsigned int i;

	do {
		xa_lock(&coherence->table);
		for (i = 0; i < KDSM_IDLERS_BATCH && kdsm_idler_is_old(coherence); i++)
			kdsm_idler_pack(coherence);
		if (i < KDSM_IDLERS_BATCH && coherence->idler_count)
			schedule_delayed_work(&coherence->idlers_work, HZ);
		xa_unlock(&coherence->table);
		cond_resched();
	} while (i == KDSM_IDLERS_BATCH);
}

/* Let the block leave the table if this node has no content of it. Returns whether it did. */
static bool kdsm_block_forget(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	void *memo = NULL;

	if (!kdsm_block_is_bare(coherence, block))
		return false;
	if (!kdsm_block_is_new(coherence, block)) {
		memo = kdsm_block_memo(coherence, block);
		if (!memo)
			return false;
		coherence->memos++;
	}
	kdsm_block_replace(coherence, block, memo);
	return true;
}

void kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	xa_lock(&coherence->table);
	/* Only its users change a block, and put it into lists */
	if (!--block->users && !kdsm_block_forget(coherence, block)) {
		kdsm_idler_add(coherence, block);
		if (coherence->idler_count > KDSM_IDLERS)
			kdsm_idler_pack(coherence);
	}
	xa_unlock(&coherence->table);
}

/* Share of a block in the nodes of the table, in bytes, if these are full */
#define KDSM_BLOCK_PLACE	DIV_ROUND_UP(sizeof(struct xa_node), XA_CHUNK_SIZE)

u64 kdsm_coherence_metadata(struct kdsm_coherence *coherence)
{
	u64 structures, records, memos, leases;

	xa_lock(&coherence->table);
	structures = coherence->structures;
	records = coherence->records;
	memos = coherence->memos;
	xa_unlock(&coherence->table);
	spin_lock(&coherence->lock);
	leases = coherence->leases.count;
	spin_unlock(&coherence->lock);
	return structures * sizeof(struct kdsm_block) + records * kdsm_record_size(coherence) +
	       (structures + records + memos) * KDSM_BLOCK_PLACE +
	       leases * sizeof(struct kdsm_lease);
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
