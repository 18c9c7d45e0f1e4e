// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that peers can reach: allocation of its chunks of pages, and access by the CPUs of
 * this node. registration.c registers chunks, keys.c tells and caches the keys of chunks.
 *
 * The first touch, by this node or by a peer, allocates the whole chunk. The chunk
 * stays until the memory is destroyed or the layers above drop it (drop.c). Handlers of peers'
 * messages may run meanwhile, so the functions here access a chunk inside rcu_read_lock().
 *
 * A window is 512 chunks; its tables are allocated with its first chunk or key, so a memory costs
 * 8 bytes for each GiB of its size until then.
 */
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* The domain of atomics on the memory; see KDSM_MEMORY_DEVICE */
static u32 kdsm_memory_choose_domain(const struct kdsm_fabric *fabric, unsigned int flags)
{
	if (flags & KDSM_MEMORY_DEVICE && fabric->domain == KDSM_DOMAIN_SW &&
	    fabric->device_has_atomics)
		return KDSM_DOMAIN_HCA;
	return fabric->domain;
}

struct kdsm_memory *kdsm_memory_create(struct kdsm_fabric *fabric, u32 id, u64 size,
				       unsigned int flags, struct kdsm_account *account)
{
	unsigned int nodes = READ_ONCE(fabric->nodes);
	struct kdsm_memory *memory;
	int err;

	memory = kvzalloc(struct_size(memory, keys, nodes), GFP_KERNEL);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->fabric = fabric;
	memory->nodes = nodes;
	memory->id = id;
	memory->size = size;
	memory->account = account;
	memory->read_only = flags & KDSM_MEMORY_READ_ONLY;
	memory->domain = kdsm_memory_choose_domain(fabric, flags);
	memory->chunks_count = DIV_ROUND_UP_ULL(size, KDSM_CHUNK_SIZE);
	memory->windows_count = DIV_ROUND_UP(memory->chunks_count, KDSM_WINDOW_CHUNKS);
	refcount_set(&memory->references, 1);
	init_completion(&memory->released);
	mutex_init(&memory->lock);
	mutex_init(&memory->dropping);
	mutex_init(&memory->registering);
	INIT_LIST_HEAD(&memory->registrations);
	INIT_LIST_HEAD(&memory->leftovers);
	memory->windows = kvcalloc(memory->windows_count, sizeof(*memory->windows),
				   GFP_KERNEL);
	if (!memory->windows) {
		kvfree(memory);
		return ERR_PTR(-ENOMEM);
	}
	err = xa_insert(&fabric->memories, id, memory, GFP_KERNEL);
	if (err) {
		kvfree(memory->windows);
		kvfree(memory);
		return ERR_PTR(err == -EBUSY ? -EEXIST : err);
	}
	return memory;
}

void kdsm_chunk_free(struct kdsm_chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < chunk->count; i++)
		__free_page(kdsm_chunk_page(chunk, i));
	kvfree(chunk);
}

/* Free all leftovers, whose registrations were ended: see drop.c */
static void kdsm_leftovers_free(struct kdsm_memory *memory)
{
	struct kdsm_registration *registration, *next;
	struct kdsm_leftover *leftover, *other;

	list_for_each_entry_safe(leftover, other, &memory->leftovers, link) {
		list_for_each_entry_safe(registration, next, &leftover->registrations, link)
			kfree(registration);
		kdsm_chunk_free(leftover->chunk);
		kfree(leftover);
	}
}

static void kdsm_windows_free(struct kdsm_memory *memory)
{
	struct kdsm_chunk **chunks;
	unsigned long window;
	unsigned int i;

	for (window = 0; window < memory->windows_count; window++) {
		chunks = memory->windows[window];
		for (i = 0; chunks && i < kdsm_window_size(memory, window); i++) {
			if (chunks[i])
				kdsm_chunk_free(chunks[i]);
			cond_resched();
		}
		kfree(chunks);
	}
	kvfree(memory->windows);
}

static void kdsm_keys_free(struct kdsm_memory *memory)
{
	unsigned long window;
	unsigned int node;

	for (node = 0; node < memory->nodes; node++) {
		for (window = 0; memory->keys[node] && window < memory->windows_count; window++)
			kfree(memory->keys[node][window]);
		kvfree(memory->keys[node]);
	}
}

struct kdsm_memory *kdsm_memory_lookup(struct kdsm_fabric *fabric, u32 id)
{
	struct kdsm_memory *memory;

	/* The memory stays: kdsm_memory_destroy() frees it only after a grace period. */
	rcu_read_lock();
	memory = xa_load(&fabric->memories, id);
	if (memory && !refcount_inc_not_zero(&memory->references))
		memory = NULL;
	rcu_read_unlock();
	return memory;
}

void kdsm_memory_put(struct kdsm_memory *memory)
{
	if (refcount_dec_and_test(&memory->references))
		complete(&memory->released);
}

void kdsm_memory_destroy(struct kdsm_memory *memory)
{
	struct kdsm_fabric *fabric = memory->fabric;

	kdsm_memory_put(memory);
	wait_for_completion(&memory->released);
	/*
	 * The memory stays in memories until it has no registration. Otherwise the removal of the
	 * device would not see the memory, and would free the protection domain and the device
	 * while this task still ends registrations.
	 */
	down_read(&fabric->unregistering);
	kdsm_memory_unregister(memory);
	xa_erase(&fabric->memories, memory->id);
	up_read(&fabric->unregistering);
	synchronize_rcu();
	kdsm_windows_free(memory);
	kdsm_leftovers_free(memory);
	kdsm_account_uncharge(memory->account, atomic64_read(&memory->resident));
	kdsm_keys_free(memory);
	kvfree(memory->dropped);
	kvfree(memory);
}

u32 kdsm_memory_id(const struct kdsm_memory *memory)
{
	return memory->id;
}

u64 kdsm_memory_size(const struct kdsm_memory *memory)
{
	return memory->size;
}

bool kdsm_memory_read_only(const struct kdsm_memory *memory)
{
	return memory->read_only;
}

u32 kdsm_memory_domain(const struct kdsm_memory *memory)
{
	return memory->domain;
}

u64 kdsm_memory_resident(const struct kdsm_memory *memory)
{
	return atomic64_read(&memory->resident);
}

bool kdsm_memory_holds(const struct kdsm_memory *memory, u64 offset)
{
	return kdsm_chunk_peek(memory, offset >> KDSM_CHUNK_SHIFT);
}

unsigned long kdsm_memory_next(const struct kdsm_memory *memory, unsigned long number)
{
	struct kdsm_chunk **chunks;

	for (; number < memory->chunks_count; number++) {
		/* Pairs with smp_store_release() in kdsm_window_get(). */
		chunks = smp_load_acquire(&memory->windows[number >> KDSM_WINDOW_SHIFT]);
		if (!chunks)
			number |= KDSM_WINDOW_CHUNKS - 1;
		else if (READ_ONCE(chunks[number % KDSM_WINDOW_CHUNKS]))
			return number;
	}
	return ULONG_MAX;
}

u64 kdsm_memory_drops(const struct kdsm_memory *memory)
{
	return READ_ONCE(memory->drops);
}

/* ---- chunks ---- */

/* Pages that the CPUs keep for their next allocations. si_mem_available() leaves them out. */
static unsigned long kdsm_pages_kept(void)
{
	unsigned long pages = 0;
	struct zone *zone;
	int node, cpu, i;

	for_each_online_node(node) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(node)->node_zones[i];
			if (!populated_zone(zone))
				continue;
			for_each_online_cpu(cpu)
				/* A CPU may change its count meanwhile */
				pages += data_race(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
		}
	}
	return pages;
}

/*
 * Leave a sixteenth of RAM, between 32 MiB and 1 GiB. If kdsm took all available memory, the
 * next task that needs a page, even one of its own program text, would invoke the OOM killer.
 */
u64 kdsm_memory_available(void)
{
	u64 available = ((u64)max(si_mem_available(), 0L) + kdsm_pages_kept()) << PAGE_SHIFT;
	u64 reserve = clamp_t(u64, (u64)totalram_pages() << PAGE_SHIFT >> 4, SZ_32M, SZ_1G);

	return available > reserve ? available - reserve : 0;
}

/* With __GFP_NORETRY or __GFP_RETRY_MAYFAIL added, an allocation never invokes the OOM killer */
#define KDSM_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* Allocate the pages of a chunk as one block, or return NULL */
static struct kdsm_chunk *kdsm_chunk_alloc_contiguous(unsigned int count, gfp_t gfp)
{
	unsigned int order = ilog2(count);
	struct kdsm_chunk *chunk;

	if (!is_power_of_2(count))
		return NULL;
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return NULL;
	/*
	 * Without waking kswapd, which would reclaim page cache until a block of this size is
	 * free. On a node that is short of memory, programs would then spend their time reading
	 * their own pages again.
	 */
	chunk->first = alloc_pages((gfp & ~__GFP_KSWAPD_RECLAIM) | __GFP_NORETRY, order);
	if (!chunk->first) {
		kfree(chunk);
		return NULL;
	}
	split_page(chunk->first, order);
	chunk->count = count;
	return chunk;
}

static struct kdsm_chunk *kdsm_chunk_alloc_pages(unsigned int count, gfp_t gfp)
{
	struct kdsm_chunk *chunk;
	struct page *page;

	chunk = kvzalloc(struct_size(chunk, pages, count), GFP_KERNEL);
	if (!chunk)
		return NULL;
	while (chunk->count < count) {
		page = alloc_page(gfp | __GFP_RETRY_MAYFAIL);
		if (!page) {
			kdsm_chunk_free(chunk);
			return NULL;
		}
		chunk->pages[chunk->count++] = page;
	}
	return chunk;
}

/* Try contiguous pages first, which need fewer registrations and cause fewer TLB misses */
static struct kdsm_chunk *kdsm_chunk_alloc_count(unsigned int count, gfp_t gfp)
{
	return kdsm_chunk_alloc_contiguous(count, gfp) ?: kdsm_chunk_alloc_pages(count, gfp);
}

/*
 * Whether the memory cgroup of the task has a chunk left, which a trial allocation finds out. If
 * kdsm took all memory of the cgroup, the next page that one of its tasks needs would invoke the
 * OOM killer.
 */
static bool kdsm_cgroup_has_left(void)
{
	struct kdsm_chunk *chunk = kdsm_chunk_alloc_count(KDSM_CHUNK_SIZE >> PAGE_SHIFT, KDSM_GFP);

	if (chunk)
		kdsm_chunk_free(chunk);
	return chunk;
}

static struct kdsm_chunk *kdsm_chunk_alloc(struct kdsm_memory *memory, unsigned long index,
					   u64 spare)
{
	u64 bytes = min_t(u64, memory->size - ((u64)index << KDSM_CHUNK_SHIFT),
			  KDSM_CHUNK_SIZE);
	unsigned int count = bytes >> PAGE_SHIFT;
	struct kdsm_chunk *chunk;

	if (kdsm_memory_available() + spare < bytes)
		return NULL;
	chunk = kdsm_chunk_alloc_count(count, KDSM_GFP | __GFP_ZERO);
	if (chunk && !spare && !kdsm_cgroup_has_left()) {
		kdsm_chunk_free(chunk);
		return NULL;
	}
	if (chunk)
		atomic64_add(bytes, &memory->resident);
	return chunk;
}

/* Charge for the chunk and allocate it, or return NULL */
static struct kdsm_chunk *kdsm_chunk_add(struct kdsm_memory *memory, unsigned long index,
					 u64 spare)
{
	u64 bytes = min_t(u64, memory->size - ((u64)index << KDSM_CHUNK_SHIFT), KDSM_CHUNK_SIZE);
	struct kdsm_chunk *chunk;

	if (!kdsm_account_charge(memory->account, bytes, spare))
		return NULL;
	chunk = kdsm_chunk_alloc(memory, index, spare);
	if (!chunk)
		kdsm_account_uncharge(memory->account, bytes);
	return chunk;
}

/* Return the table of the chunks of a window, allocated if necessary, or NULL */
static struct kdsm_chunk **kdsm_window_get(struct kdsm_memory *memory, unsigned long window)
{
	struct kdsm_chunk **chunks = memory->windows[window];

	lockdep_assert_held(&memory->lock);
	if (chunks)
		return chunks;
	chunks = kcalloc(kdsm_window_size(memory, window), sizeof(*chunks), GFP_KERNEL);
	if (chunks)
		/* Pairs with smp_load_acquire() in kdsm_chunk_peek(). */
		smp_store_release(&memory->windows[window], chunks);
	return chunks;
}

struct kdsm_chunk *kdsm_chunk_peek(const struct kdsm_memory *memory, unsigned long index)
{
	struct kdsm_chunk **chunks;

	/* Pairs with smp_store_release() in kdsm_window_get(). */
	chunks = smp_load_acquire(&memory->windows[index >> KDSM_WINDOW_SHIFT]);
	if (!chunks)
		return NULL;
	/* Pairs with smp_store_release() in kdsm_chunk_get(): the caller sees zeroed pages. */
	return smp_load_acquire(&chunks[index & (KDSM_WINDOW_CHUNKS - 1)]);
}

static struct kdsm_chunk *kdsm_chunk_make(struct kdsm_memory *memory, unsigned long index,
					  bool again, u64 spare)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, index), **chunks;

	if (likely(chunk))
		return chunk;
	mutex_lock(&memory->lock);
	chunk = kdsm_chunk_peek(memory, index);
	if (!chunk && !again && memory->dropped && test_bit(index, memory->dropped)) {
		chunk = ERR_PTR(-ENODATA);
		goto unlock;
	}
	chunks = kdsm_window_get(memory, index >> KDSM_WINDOW_SHIFT);
	if (!chunk && chunks) {
		chunk = kdsm_chunk_add(memory, index, spare);
		/* Pairs with smp_load_acquire() in kdsm_chunk_peek(). */
		smp_store_release(&chunks[index & (KDSM_WINDOW_CHUNKS - 1)], chunk);
	}
	if (!chunk) {
		if (memory->account)
			WRITE_ONCE(memory->account->lacked, ktime_get_ns());
		chunk = ERR_PTR(-ENOMEM);
	}
unlock:
	mutex_unlock(&memory->lock);
	return chunk;
}

struct kdsm_chunk *kdsm_chunk_get(struct kdsm_memory *memory, unsigned long index, bool again)
{
	return kdsm_chunk_make(memory, index, again, 0);
}

bool kdsm_memory_exceeds_limit(const struct kdsm_memory *memory)
{
	u64 limit = memory->account ? READ_ONCE(memory->account->limit) : 0;

	return limit && atomic64_read(&memory->account->bytes) > limit;
}

/* Longest time from the failure until the task looks for its cause, in ns */
#define KDSM_LACKS_NS		(10 * NSEC_PER_SEC)

bool kdsm_memory_lacks(const struct kdsm_memory *memory)
{
	u64 lacked = memory->account ? READ_ONCE(memory->account->lacked) : 0;

	return lacked && ktime_get_ns() - lacked < KDSM_LACKS_NS;
}

int kdsm_memory_spare(struct kdsm_memory *memory, unsigned long chunk, unsigned int spare)
{
	return PTR_ERR_OR_ZERO(kdsm_chunk_make(memory, chunk, true, spare * KDSM_CHUNK_SIZE));
}

struct kdsm_chunk *kdsm_chunk_take(struct kdsm_memory *memory, unsigned long index)
{
	struct kdsm_chunk *chunk;

	lockdep_assert_held(&memory->registering);
	mutex_lock(&memory->lock);
	chunk = kdsm_chunk_peek(memory, index);
	__set_bit(index, memory->dropped);
	WRITE_ONCE(memory->windows[index >> KDSM_WINDOW_SHIFT][index & (KDSM_WINDOW_CHUNKS - 1)],
		   NULL);
	mutex_unlock(&memory->lock);
	return chunk;
}

struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index)
{
	struct kdsm_chunk *chunk;

	chunk = kdsm_chunk_get(memory, index >> (KDSM_CHUNK_SHIFT - PAGE_SHIFT), true);
	if (IS_ERR(chunk))
		return ERR_CAST(chunk);
	return kdsm_chunk_page(chunk, index & ((KDSM_CHUNK_SIZE >> PAGE_SHIFT) - 1));
}

/* Make the chunk of offset exist; it may be dropped again. 0; -ENOMEM; -EAGAIN: needs to sleep. */
static int kdsm_memory_touch(struct kdsm_memory *memory, u64 offset, bool can_sleep)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT;

	if (kdsm_chunk_peek(memory, index))
		return 0;
	return can_sleep ? PTR_ERR_OR_ZERO(kdsm_chunk_get(memory, index, true)) : -EAGAIN;
}

/*
 * Return the address of offset, valid up to the end of its page, or NULL if the chunk does not
 * exist. The chunk is not freed while the caller is in the RCU read-side section.
 */
static void *kdsm_memory_address(struct kdsm_memory *memory, u64 offset)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, offset >> KDSM_CHUNK_SHIFT);

	if (!chunk)
		return NULL;
	offset &= KDSM_CHUNK_SIZE - 1;
	return page_address(kdsm_chunk_page(chunk, offset >> PAGE_SHIFT)) + offset_in_page(offset);
}

/* Copy n bytes of one page. A word in one access: programs and peers may use it concurrently. */
static void kdsm_place_copy(void *place, void *buffer, unsigned int n, bool write)
{
	bool aligned = IS_ALIGNED((uintptr_t)place | (uintptr_t)buffer, n);

	if (n == 8 && aligned && write)
		WRITE_ONCE(*(u64 *)place, *(u64 *)buffer);
	else if (n == 8 && aligned)
		*(u64 *)buffer = READ_ONCE(*(u64 *)place);
	else if (n == 4 && aligned && write)
		WRITE_ONCE(*(u32 *)place, *(u32 *)buffer);
	else if (n == 4 && aligned)
		*(u32 *)buffer = READ_ONCE(*(u32 *)place);
	else if (write)
		memcpy(place, buffer, n);
	else
		memcpy(buffer, place, n);
}

int kdsm_memory_copy(struct kdsm_memory *memory, u64 offset, void *buffer,
		     unsigned int length, bool write, bool can_sleep)
{
	unsigned int n;
	void *place;
	int err;

	while (length) {
		n = min_t(unsigned int, length, PAGE_SIZE - offset_in_page(offset));
		err = kdsm_memory_touch(memory, offset, can_sleep);
		if (err)
			return err;
		rcu_read_lock();
		place = kdsm_memory_address(memory, offset);
		if (place)
			kdsm_place_copy(place, buffer, n, write);
		rcu_read_unlock();
		if (!place)
			continue;	/* dropped meanwhile */
		offset += n;
		buffer += n;
		length -= n;
	}
	return 0;
}

int kdsm_memory_announce(struct kdsm_memory *memory, u64 offset, void *buffer,
			 unsigned int length, bool can_sleep)
{
	int err;

	err = kdsm_memory_copy(memory, offset + 8, buffer + 8, length - 8, true, can_sleep);
	if (err)
		return err;
	/* Pairs with the load of the first word, in programs or in kdsm_pgas_wait(). */
	smp_wmb();
	return kdsm_memory_copy(memory, offset, buffer, 8, true, can_sleep);
}

int kdsm_memory_atomic(struct kdsm_memory *memory, bool cas, u64 offset, u64 operand,
		       u64 compare, u64 *former, bool can_sleep)
{
	void *word;
	int err;

	do {
		err = kdsm_memory_touch(memory, offset, can_sleep);
		if (err)
			return err;
		rcu_read_lock();
		word = kdsm_memory_address(memory, offset);
		if (word && cas)
			*former = cmpxchg64((u64 *)word, compare, operand);
		else if (word)
			*former = atomic64_fetch_add(operand, word);
		rcu_read_unlock();
	} while (!word);	/* dropped meanwhile */
	return 0;
}

/* ---- end of registrations and keys ---- */

void kdsm_memory_unregister_all(struct kdsm_fabric *fabric)
{
	struct kdsm_memory *memory;
	unsigned long id;

	/* kdsm_memory_destroy() removes a memory with the semaphore held, so none is freed here. */
	down_write(&fabric->unregistering);
	xa_for_each(&fabric->memories, id, memory)
		kdsm_memory_unregister(memory);
	up_write(&fabric->unregistering);
}

static void kdsm_keys_forget(struct kdsm_memory *memory, unsigned int node)
{
	struct kdsm_peer_key **windows, *keys;
	unsigned long window;
	unsigned int i;

	if (node >= memory->nodes)
		return;
	windows = READ_ONCE(memory->keys[node]);
	for (window = 0; windows && window < memory->windows_count; window++) {
		keys = READ_ONCE(windows[window]);
		for (i = 0; keys && i < kdsm_window_size(memory, window); i++)
			WRITE_ONCE(keys[i].key, 0);
	}
}

void kdsm_memory_forget(struct kdsm_fabric *fabric, unsigned int node)
{
	struct kdsm_memory *memory;
	unsigned long id;

	xa_lock(&fabric->memories);
	xa_for_each(&fabric->memories, id, memory)
		kdsm_keys_forget(memory, node);
	kdsm_peer_forgot(&fabric->peers[node]);
	xa_unlock(&fabric->memories);
}
