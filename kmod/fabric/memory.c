// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that peers can reach: chunks of pages, their registration, and the keys
 * of the same space's chunks on peers.
 *
 * A chunk comes into being, whole, at the first touch from here or from a peer,
 * and stays until the memory is destroyed. It is registered when a peer first
 * asks for its key, on the connection of that request, with an address of its
 * own: the offset in the part. So a peer needs only the key.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "internal.h"

struct kdsm_chunk {
	unsigned int count;	/* of pages */
	struct ib_mr *mr;	/* under memory->lock */
	u32 key;		/* 0: not registered */
	struct sg_table table;
	struct page *pages[];
};

struct kdsm_memory {
	struct kdsm_fabric *fabric;
	u32 id;
	u64 size;
	bool read_only;		/* for peers */
	u32 domain;		/* enum kdsm_domain: who does its atomics */
	unsigned long chunks_count;
	refcount_t references;	/* the owner's, and of requests that are served */
	struct completion released;
	atomic64_t resident;
	struct mutex lock;	/* guards allocation and registration of chunks */
	struct kdsm_chunk **chunks;	/* set once; read without the lock */
	u32 *keys[];		/* of each peer's chunks, made on first use; 0: ask */
};

/* Who does atomics on the memory. */
static u32 kdsm_memory_choose_domain(const struct kdsm_fabric *fabric, unsigned int flags)
{
	if (flags & KDSM_MEMORY_DEVICE && fabric->domain == KDSM_DOMAIN_SW &&
	    fabric->device->attrs.atomic_cap != IB_ATOMIC_NONE)
		return KDSM_DOMAIN_HCA;
	return fabric->domain;
}

struct kdsm_memory *kdsm_memory_create(struct kdsm_fabric *fabric, u32 id, u64 size,
				       unsigned int flags)
{
	struct kdsm_memory *memory;
	int err;

	memory = kvzalloc(struct_size(memory, keys, fabric->config.nodes), GFP_KERNEL);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->fabric = fabric;
	memory->id = id;
	memory->size = size;
	memory->read_only = flags & KDSM_MEMORY_READ_ONLY;
	memory->domain = kdsm_memory_choose_domain(fabric, flags);
	memory->chunks_count = DIV_ROUND_UP_ULL(size, KDSM_CHUNK_SIZE);
	refcount_set(&memory->references, 1);
	init_completion(&memory->released);
	mutex_init(&memory->lock);
	memory->chunks = kvcalloc(memory->chunks_count, sizeof(*memory->chunks),
				  GFP_KERNEL);
	if (!memory->chunks) {
		kvfree(memory);
		return ERR_PTR(-ENOMEM);
	}
	err = xa_insert(&fabric->memories, id, memory, GFP_KERNEL);
	if (err) {
		kvfree(memory->chunks);
		kvfree(memory);
		return ERR_PTR(err == -EBUSY ? -EEXIST : err);
	}
	return memory;
}

static void kdsm_chunk_unregister(struct kdsm_memory *memory, struct kdsm_chunk *chunk)
{
	if (!chunk->mr)
		return;
	ib_dereg_mr(chunk->mr);
	ib_dma_unmap_sgtable_attrs(memory->fabric->device, &chunk->table,
				   DMA_BIDIRECTIONAL, 0);
	sg_free_table(&chunk->table);
	chunk->mr = NULL;
	chunk->key = 0;
}

static void kdsm_chunk_free(struct kdsm_memory *memory, struct kdsm_chunk *chunk)
{
	unsigned int i;

	kdsm_chunk_unregister(memory, chunk);
	for (i = 0; i < chunk->count; i++)
		__free_page(chunk->pages[i]);
	kvfree(chunk);
}

struct kdsm_memory *kdsm_memory_lookup(struct kdsm_fabric *fabric, u32 id)
{
	struct kdsm_memory *memory;

	/* Freed only after a grace period, see kdsm_memory_destroy(). */
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
	unsigned long i;
	unsigned int node;

	xa_erase(&memory->fabric->memories, memory->id);
	kdsm_memory_put(memory);
	wait_for_completion(&memory->released);
	synchronize_rcu();
	for (i = 0; i < memory->chunks_count; i++) {
		if (memory->chunks[i])
			kdsm_chunk_free(memory, memory->chunks[i]);
		cond_resched();
	}
	for (node = 0; node < memory->fabric->config.nodes; node++)
		kvfree(memory->keys[node]);
	kvfree(memory->chunks);
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
 * All that can be had is too much: whoever needs a page next, be it one of its
 * own program text, would wake the OOM killer. A sixteenth is left to the others.
 */
u64 kdsm_memory_available(void)
{
	u64 available = (u64)max(si_mem_available(), 0L) << PAGE_SHIFT;
	u64 reserve = clamp_t(u64, (u64)totalram_pages() << PAGE_SHIFT >> 4, SZ_32M, SZ_1G);

	return available > reserve ? available - reserve : 0;
}

/* Never the OOM killer: who needs the page gets an error. */
#define KDSM_GFP (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN)

static struct kdsm_chunk *kdsm_chunk_alloc(struct kdsm_memory *memory,
					   unsigned long index)
{
	u64 bytes = min_t(u64, memory->size - ((u64)index << KDSM_CHUNK_SHIFT),
			  KDSM_CHUNK_SIZE);
	unsigned int count = bytes >> PAGE_SHIFT, i;
	unsigned int order = ilog2(count);
	struct kdsm_chunk *chunk;
	struct page *page;

	if (kdsm_memory_available() < bytes)
		return NULL;
	chunk = kvzalloc(struct_size(chunk, pages, count), GFP_KERNEL);
	if (!chunk)
		return NULL;
	/* In one piece if there is one: fewer TLB misses, a shorter DMA list. */
	if (is_power_of_2(count)) {
		page = alloc_pages(KDSM_GFP | __GFP_NORETRY, order);
		if (page) {
			split_page(page, order);
			for (i = 0; i < count; i++)
				chunk->pages[i] = page + i;
			chunk->count = count;
		}
	}
	while (chunk->count < count) {
		page = alloc_page(KDSM_GFP | __GFP_RETRY_MAYFAIL);
		if (!page) {
			kdsm_chunk_free(memory, chunk);
			return NULL;
		}
		chunk->pages[chunk->count++] = page;
	}
	atomic64_add((u64)count << PAGE_SHIFT, &memory->resident);
	return chunk;
}

static struct kdsm_chunk *kdsm_chunk_peek(struct kdsm_memory *memory, unsigned long index)
{
	/* Pairs with the release in kdsm_chunk_get(): zeroed pages, then the chunk. */
	return smp_load_acquire(&memory->chunks[index]);
}

static struct kdsm_chunk *kdsm_chunk_get(struct kdsm_memory *memory, unsigned long index)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, index);

	if (likely(chunk))
		return chunk;
	mutex_lock(&memory->lock);
	chunk = memory->chunks[index];
	if (!chunk) {
		chunk = kdsm_chunk_alloc(memory, index);
		if (chunk)
			/* Pairs with the acquire in kdsm_chunk_peek(). */
			smp_store_release(&memory->chunks[index], chunk);
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
	return chunk->pages[index & ((KDSM_CHUNK_SIZE >> PAGE_SHIFT) - 1)];
}

/* Where the place at offset is, up to the end of its page. ERR_PTR(). */
static void *kdsm_memory_address(struct kdsm_memory *memory, u64 offset, bool can_sleep)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT;
	struct kdsm_chunk *chunk;

	chunk = can_sleep ? kdsm_chunk_get(memory, index) : kdsm_chunk_peek(memory, index);
	if (!chunk)
		return ERR_PTR(can_sleep ? -ENOMEM : -EAGAIN);
	offset &= KDSM_CHUNK_SIZE - 1;
	return page_address(chunk->pages[offset >> PAGE_SHIFT]) + offset_in_page(offset);
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
		/* A word or half of one is moved as one: others may be using it. */
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

/* ---- registration ---- */

struct kdsm_registration {
	struct ib_cqe cqe;
	struct completion done;
	int status;
};

static void kdsm_registration_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_registration *registration =
		container_of(wc->wr_cqe, struct kdsm_registration, cqe);

	registration->status = wc->status == IB_WC_SUCCESS ? 0 : -EIO;
	complete(&registration->done);
}

static int kdsm_registration_post(struct kdsm_connection *connection,
				  struct ib_reg_wr *wr)
{
	struct kdsm_registration registration = {
		.cqe.done = kdsm_registration_done,
		.done = COMPLETION_INITIALIZER_ONSTACK(registration.done),
	};
	int err = -EIO;

	wr->wr.wr_cqe = &registration.cqe;
	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UP && connection->room) {
		err = ib_post_send(connection->qp, &wr->wr, NULL);
		if (!err)
			connection->room--;
	}
	spin_unlock_bh(&connection->lock);
	if (err)
		return err;
	wait_for_completion(&registration.done);
	spin_lock_bh(&connection->lock);
	connection->room++;
	spin_unlock_bh(&connection->lock);
	if (registration.status)
		kdsm_connection_break(connection);
	return registration.status;
}

static int kdsm_chunk_register(struct kdsm_memory *memory, unsigned long index,
			       struct kdsm_chunk *chunk,
			       struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = memory->fabric;
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct ib_mr *mr;
	int err, n;

	lockdep_assert_held(&memory->lock);
	if (!memory->read_only)
		wr.access |= IB_ACCESS_REMOTE_WRITE;
	/* Where no device does atomics nobody is given the right. */
	if (!memory->read_only && memory->domain != KDSM_DOMAIN_SW)
		wr.access |= IB_ACCESS_REMOTE_ATOMIC;
	err = sg_alloc_table_from_pages(&chunk->table, chunk->pages, chunk->count, 0,
					(size_t)chunk->count << PAGE_SHIFT, GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(fabric->device, &chunk->table,
				       DMA_BIDIRECTIONAL, 0);
	if (err)
		goto free_table;
	mr = ib_alloc_mr(fabric->pd, IB_MR_TYPE_MEM_REG, chunk->count);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto unmap;
	}
	n = ib_map_mr_sg(mr, chunk->table.sgl, chunk->table.nents, NULL, PAGE_SIZE);
	if (n != chunk->table.nents) {
		err = n < 0 ? n : -EINVAL;
		goto free_mr;
	}
	mr->iova = (u64)index << KDSM_CHUNK_SHIFT;
	wr.mr = mr;
	wr.key = mr->rkey;
	err = kdsm_registration_post(connection, &wr);
	if (err)
		goto free_mr;
	chunk->mr = mr;
	chunk->key = mr->rkey;
	return 0;

free_mr:
	ib_dereg_mr(mr);
unmap:
	ib_dma_unmap_sgtable_attrs(fabric->device, &chunk->table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&chunk->table);
	return err;
}

/* Where registrations are posted to serve a request: see KDSM_QUEUE_REGISTER. */
static struct kdsm_connection *kdsm_registration_connection(struct kdsm_serving *serving)
{
	struct kdsm_connection *connection = serving->connection;
	struct kdsm_fabric *fabric = connection->fabric;

	if (!fabric->device_is_software)
		return connection;
	return kdsm_connection_get_queue(&fabric->peers[fabric->config.node],
					 KDSM_QUEUE_REGISTER);
}

/*
 * Register what of the chunks is not yet, and say their keys; 0 for those that do not
 * exist.
 */
static int kdsm_chunks_register(struct kdsm_memory *memory, u32 first, u32 count,
				struct kdsm_connection *connection, __le32 *keys)
{
	struct kdsm_chunk *chunk;
	int err = 0;
	u32 i;

	mutex_lock(&memory->lock);
	for (i = 0; i < count; i++) {
		chunk = memory->chunks[first + i];
		if (chunk && !chunk->key)
			err = kdsm_chunk_register(memory, first + i, chunk, connection);
		if (err)
			break;
		keys[i] = cpu_to_le32(chunk ? chunk->key : 0);
	}
	mutex_unlock(&memory->lock);
	return err;
}

/* KDSM_MESSAGE_KEYS: the first chunk is made if need be, the rest if it is there. */
int kdsm_memory_serve_keys(void *context, struct kdsm_request *request)
{
	struct kdsm_serving *serving = container_of(request, struct kdsm_serving, request);
	const struct kdsm_wire_keys *keys = request->data;
	struct kdsm_connection *connection;
	struct kdsm_fabric *fabric = context;
	struct kdsm_memory *memory;
	u32 first, count;
	int err;

	if (request->length != sizeof(*keys))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	first = le32_to_cpu(keys->first);
	count = le32_to_cpu(keys->count);
	if (!count || count > KDSM_KEYS_MAX)
		return -EINVAL;
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(keys->id));
	if (!memory)
		return -ENOENT;
	if (first >= memory->chunks_count || count > memory->chunks_count - first) {
		err = -ERANGE;
		goto put;
	}
	if (!kdsm_chunk_get(memory, first)) {
		err = -ENOMEM;
		goto put;
	}
	percpu_down_read(&fabric->gate);
	connection = kdsm_registration_connection(serving);
	err = IS_ERR(connection) ? PTR_ERR(connection) :
	      kdsm_chunks_register(memory, first, count, connection, request->reply);
	percpu_up_read(&fabric->gate);
	request->reply_length = count * sizeof(__le32);
put:
	kdsm_memory_put(memory);
	return err;
}

/* ---- keys of peers ---- */

static u32 *kdsm_memory_keys(struct kdsm_memory *memory, unsigned int node)
{
	u32 *keys = READ_ONCE(memory->keys[node]), *other;

	if (likely(keys))
		return keys;
	keys = kvcalloc(memory->chunks_count, sizeof(*keys), GFP_KERNEL);
	if (!keys)
		return NULL;
	other = cmpxchg(&memory->keys[node], NULL, keys);
	if (!other)
		return keys;
	kvfree(keys);
	return other;
}

int kdsm_memory_key(struct kdsm_memory *memory, unsigned int node, u64 offset, u32 *key)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT;
	__le32 reply[KDSM_KEYS_MAX];
	unsigned int length = sizeof(reply), i;
	struct kdsm_wire_keys request = {
		.id = cpu_to_le32(memory->id),
		.first = cpu_to_le32(index),
		.count = cpu_to_le32(min_t(unsigned long, KDSM_KEYS_MAX,
					   memory->chunks_count - index)),
	};
	struct kdsm_peer *peer = &memory->fabric->peers[node];
	u64 incarnation = READ_ONCE(peer->incarnation);
	u32 *keys = kdsm_memory_keys(memory, node);
	int err;

	if (!keys)
		return -ENOMEM;
	*key = READ_ONCE(keys[index]);
	if (likely(*key))
		return 0;
	err = kdsm_message_gated(memory->fabric, node, KDSM_MESSAGE_KEYS, &request,
				 sizeof(request), reply, &length);
	if (err)
		return err == -ENOMEM || err == -EHOSTDOWN ? err : -EIO;
	if (length != le32_to_cpu(request.count) * sizeof(*reply) || !reply[0])
		return -EIO;
	/*
	 * With the lock of kdsm_memory_forget(), which follows the change of the
	 * incarnation: no key of a former life is kept. The first greeting, from 0,
	 * is no change.
	 */
	xa_lock(&memory->fabric->memories);
	if (incarnation && READ_ONCE(peer->incarnation) != incarnation)
		err = -EIO;
	for (i = 0; i < length / sizeof(*reply) && !err; i++)
		WRITE_ONCE(keys[index + i], le32_to_cpu(reply[i]));
	xa_unlock(&memory->fabric->memories);
	*key = le32_to_cpu(reply[0]);
	return err;
}

/*
 * Memories may be destroyed at the same time, but not between the erase and the
 * end of their unregistering: a reference keeps them.
 */
void kdsm_memory_unregister_all(struct kdsm_fabric *fabric)
{
	struct kdsm_memory *memory;
	unsigned long id, i;

	xa_for_each(&fabric->memories, id, memory) {
		memory = kdsm_memory_lookup(fabric, id);
		if (!memory)
			continue;
		mutex_lock(&memory->lock);
		for (i = 0; i < memory->chunks_count; i++)
			if (memory->chunks[i])
				kdsm_chunk_unregister(memory, memory->chunks[i]);
		mutex_unlock(&memory->lock);
		kdsm_memory_put(memory);
	}
}

void kdsm_memory_forget(struct kdsm_fabric *fabric, unsigned int node)
{
	struct kdsm_memory *memory;
	unsigned long id, i;
	u32 *keys;

	xa_lock(&fabric->memories);
	xa_for_each(&fabric->memories, id, memory) {
		keys = READ_ONCE(memory->keys[node]);
		for (i = 0; keys && i < memory->chunks_count; i++)
			WRITE_ONCE(keys[i], 0);
	}
	xa_unlock(&fabric->memories);
}
