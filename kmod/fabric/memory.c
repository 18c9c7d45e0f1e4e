// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that peers can reach: allocation of its chunks of pages, and access by the CPUs of
 * this node. registration.c registers chunks, keys.c tells and caches the keys of chunks.
 *
 * The first touch, by this node or by a peer, allocates the whole chunk. The chunk
 * stays until the memory is destroyed. A window is 512 chunks; its tables are allocated with
 * its first chunk or key, so a memory costs 8 bytes for each GiB of its size until then.
 */
#include <linux/gfp.h>
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
	struct kdsm_memory *memory;
	int err;

	memory = kvzalloc(struct_size(memory, keys, fabric->config.nodes), GFP_KERNEL);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->fabric = fabric;
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
	mutex_init(&memory->registering);
	INIT_LIST_HEAD(&memory->registrations);
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

static void kdsm_chunk_free(struct kdsm_chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < chunk->count; i++)
		__free_page(kdsm_chunk_page(chunk, i));
	kvfree(chunk);
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

	for (node = 0; node < memory->fabric->config.nodes; node++) {
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
	kdsm_account_uncharge(memory->account, atomic64_read(&memory->resident));
	kdsm_keys_free(memory);
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

/* ---- chunks ---- */

/*
 * Leave a sixteenth of RAM, between 32 MiB and 1 GiB. If kdsm took all available memory, the
 * next task that needs a page, even one of its own program text, would invoke the OOM killer.
 */
u64 kdsm_memory_available(void)
{
	u64 available = (u64)max(si_mem_available(), 0L) << PAGE_SHIFT;
	u64 reserve = clamp_t(u64, (u64)totalram_pages() << PAGE_SHIFT >> 4, SZ_32M, SZ_1G);

	return available > reserve ? available - reserve : 0;
}

/* With __GFP_NORETRY or __GFP_RETRY_MAYFAIL added, an allocation never invokes the OOM killer */
#define KDSM_GFP (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN)

/* Allocate the pages of a chunk as one block, or return NULL */
static struct kdsm_chunk *kdsm_chunk_alloc_contiguous(unsigned int count)
{
	unsigned int order = ilog2(count);
	struct kdsm_chunk *chunk;

	if (!is_power_of_2(count))
		return NULL;
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return NULL;
	chunk->first = alloc_pages(KDSM_GFP | __GFP_NORETRY, order);
	if (!chunk->first) {
		kfree(chunk);
		return NULL;
	}
	split_page(chunk->first, order);
	chunk->count = count;
	return chunk;
}

static struct kdsm_chunk *kdsm_chunk_alloc_pages(unsigned int count)
{
	struct kdsm_chunk *chunk;
	struct page *page;

	chunk = kvzalloc(struct_size(chunk, pages, count), GFP_KERNEL);
	if (!chunk)
		return NULL;
	while (chunk->count < count) {
		page = alloc_page(KDSM_GFP | __GFP_RETRY_MAYFAIL);
		if (!page) {
			kdsm_chunk_free(chunk);
			return NULL;
		}
		chunk->pages[chunk->count++] = page;
	}
	return chunk;
}

static struct kdsm_chunk *kdsm_chunk_alloc(struct kdsm_memory *memory,
					   unsigned long index)
{
	u64 bytes = min_t(u64, memory->size - ((u64)index << KDSM_CHUNK_SHIFT),
			  KDSM_CHUNK_SIZE);
	unsigned int count = bytes >> PAGE_SHIFT;
	struct kdsm_chunk *chunk;

	if (kdsm_memory_available() < bytes)
		return NULL;
	/* Contiguous pages need fewer registrations and cause fewer TLB misses. */
	chunk = kdsm_chunk_alloc_contiguous(count);
	if (!chunk)
		chunk = kdsm_chunk_alloc_pages(count);
	if (chunk)
		atomic64_add(bytes, &memory->resident);
	return chunk;
}

/* Charge for the chunk and allocate it, or return NULL */
static struct kdsm_chunk *kdsm_chunk_add(struct kdsm_memory *memory, unsigned long index)
{
	u64 bytes = min_t(u64, memory->size - ((u64)index << KDSM_CHUNK_SHIFT), KDSM_CHUNK_SIZE);
	struct kdsm_chunk *chunk;

	if (!kdsm_account_charge(memory->account, bytes))
		return NULL;
	chunk = kdsm_chunk_alloc(memory, index);
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

struct kdsm_chunk *kdsm_chunk_get(struct kdsm_memory *memory, unsigned long index)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, index), **chunks;

	if (likely(chunk))
		return chunk;
	mutex_lock(&memory->lock);
	chunk = kdsm_chunk_peek(memory, index);
	chunks = kdsm_window_get(memory, index >> KDSM_WINDOW_SHIFT);
	if (!chunk && chunks) {
		chunk = kdsm_chunk_add(memory, index);
		/* Pairs with smp_load_acquire() in kdsm_chunk_peek(). */
		smp_store_release(&chunks[index & (KDSM_WINDOW_CHUNKS - 1)], chunk);
	}
	mutex_unlock(&memory->lock);
	return chunk;
}

struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index)
{
	struct kdsm_chunk *chunk;

	chunk = kdsm_chunk_get(memory, index >> (KDSM_CHUNK_SHIFT - PAGE_SHIFT));
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	return kdsm_chunk_page(chunk, index & ((KDSM_CHUNK_SIZE >> PAGE_SHIFT) - 1));
}

/* Return the address of offset, valid up to the end of its page, or ERR_PTR() */
static void *kdsm_memory_address(struct kdsm_memory *memory, u64 offset, bool can_sleep)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT;
	struct kdsm_chunk *chunk;

	chunk = can_sleep ? kdsm_chunk_get(memory, index) : kdsm_chunk_peek(memory, index);
	if (!chunk)
		return ERR_PTR(can_sleep ? -ENOMEM : -EAGAIN);
	offset &= KDSM_CHUNK_SIZE - 1;
	return page_address(kdsm_chunk_page(chunk, offset >> PAGE_SHIFT)) + offset_in_page(offset);
}

int kdsm_memory_copy(struct kdsm_memory *memory, u64 offset, void *buffer,
		     unsigned int length, bool write, bool can_sleep)
{
	while (length) {
		unsigned int n = min_t(unsigned int, length,
				       PAGE_SIZE - offset_in_page(offset));
		void *place = kdsm_memory_address(memory, offset, can_sleep);

		if (IS_ERR(place))
			return PTR_ERR(place);
		/* Copy a word in one access: programs and peers may use it concurrently. */
		if (n == 8 && IS_ALIGNED(offset, 8) && IS_ALIGNED((uintptr_t)buffer, 8)) {
			if (write)
				WRITE_ONCE(*(u64 *)place, *(u64 *)buffer);
			else
				*(u64 *)buffer = READ_ONCE(*(u64 *)place);
		} else if (n == 4 && IS_ALIGNED(offset, 4) && IS_ALIGNED((uintptr_t)buffer, 4)) {
			if (write)
				WRITE_ONCE(*(u32 *)place, *(u32 *)buffer);
			else
				*(u32 *)buffer = READ_ONCE(*(u32 *)place);
		} else if (write) {
			memcpy(place, buffer, n);
		} else {
			memcpy(buffer, place, n);
		}
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
	void *word = kdsm_memory_address(memory, offset, can_sleep);

	if (IS_ERR(word))
		return PTR_ERR(word);
	if (cas)
		*former = cmpxchg64((u64 *)word, compare, operand);
	else
		*former = atomic64_fetch_add(operand, word);
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
	u32 **windows = READ_ONCE(memory->keys[node]), *keys;
	unsigned long window;
	unsigned int i;

	for (window = 0; windows && window < memory->windows_count; window++) {
		keys = READ_ONCE(windows[window]);
		for (i = 0; keys && i < kdsm_window_size(memory, window); i++)
			WRITE_ONCE(keys[i], 0);
	}
}

void kdsm_memory_forget(struct kdsm_fabric *fabric, unsigned int node)
{
	struct kdsm_memory *memory;
	unsigned long id;

	xa_lock(&fabric->memories);
	xa_for_each(&fabric->memories, id, memory)
		kdsm_keys_forget(memory, node);
	xa_unlock(&fabric->memories);
}
