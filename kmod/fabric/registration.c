// SPDX-License-Identifier: GPL-2.0
/*
 * Registration of chunks, after which peers may read and write them by RDMA. keys.c tells the
 * keys of registrations to peers.
 *
 * A registration covers a range of chunks of one window: 2^n chunks from a multiple of 2^n on,
 * or the part of such a range before the end of the memory. A range of more than one chunk
 * consists of contiguous chunks, which the device gets as pages of 2 MiB. A chunk of scattered
 * pages has a registration of its own, of 4 KiB pages.
 *
 * When a peer asks for the key of a chunk without registration, this node registers the
 * largest range around the chunk whose chunks all exist. So memory that exists before peers
 * use it has a key for each GiB, and no registration makes a chunk exist. If peers use chunks
 * while the window still fills, the window gets smaller registrations, and one of the whole
 * window when a peer asks after all of its chunks exist. A peer that uses a key without
 * registration loses its connection. So a registration stays until the memory is destroyed or this
 * node drops a chunk that it covers, which first tells the peers (drop.c). From the first drop on,
 * new registrations are of one chunk, so that later drops revoke no key of other chunks.
 *
 * memory->registering protects the registrations of a memory. A task holds it while it waits
 * for the device, so page faults, which allocate chunks, do not take it.
 */
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* ---- posting ---- */

struct kdsm_registering {
	struct ib_cqe cqe;
	struct completion done;
	int status;
};

static void kdsm_registering_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_registering *registering =
		container_of(wc->wr_cqe, struct kdsm_registering, cqe);

	if (wc->status == IB_WC_SUCCESS)
		registering->status = 0;
	else
		registering->status = wc->status == IB_WC_WR_FLUSH_ERR ? -ENOTCONN : -EINVAL;
	complete(&registering->done);
}

/* -ENOTCONN: the connection is not up; -EINVAL: the device refuses the registration */
static int kdsm_registering_post(struct kdsm_connection *connection, struct ib_reg_wr *wr)
{
	struct kdsm_registering registering = {
		.cqe.done = kdsm_registering_done,
		.done = COMPLETION_INITIALIZER_ONSTACK(registering.done),
	};
	int err = -ENOTCONN;

	wr->wr.wr_cqe = &registering.cqe;
	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UP && connection->room) {
		err = ib_post_send(connection->qp, &wr->wr, NULL);
		if (!err)
			connection->room--;
	}
	spin_unlock_bh(&connection->lock);
	if (err)
		return err;
	wait_for_completion(&registering.done);
	spin_lock_bh(&connection->lock);
	connection->room++;
	spin_unlock_bh(&connection->lock);
	if (registering.status)
		kdsm_connection_break(connection);
	return registering.status;
}

/* ---- mapping for the device ---- */

/*
 * Whether the device reads and writes a copy of mapped memory, or memory that it does not keep
 * coherent with the CPUs' caches. Chunks stay mapped for as long as they exist, and CPUs and
 * devices access them at any time, so no synchronisation could help.
 *
 * dma_need_sync() may report devices behind an IOMMU that translates, although such a device
 * reaches all memory: the kernel copies there only for pages that are not mapped as a whole, and
 * for devices that a user can plug in.
 */
static bool kdsm_dma_is_copied(struct kdsm_fabric *fabric, u64 dma)
{
	struct device *device = fabric->device->dma_device;
	struct iommu_domain *domain;

	if (ib_uses_virt_dma(fabric->device))
		return false;
	domain = iommu_get_domain_for_dev(device);
	if (domain && domain->type != IOMMU_DOMAIN_IDENTITY)
		return !dev_is_dma_coherent(device);
	return dma_need_sync(device, dma);
}

static int kdsm_table_check(struct kdsm_fabric *fabric, struct sg_table *table)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(table, sg, i)
		if (kdsm_dma_is_copied(fabric, sg_dma_address(sg))) {
			pr_err_ratelimited("kdsm: %s reaches some memory only through bounce buffers or without cache coherence: boot without swiotlb=force, or with an IOMMU that translates\n",
					   fabric->device->name);
			return -EOPNOTSUPP;
		}
	return 0;
}

int kdsm_registration_check(struct kdsm_fabric *fabric)
{
	struct sg_table table;
	struct page *page;
	int err;

	page = alloc_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	err = sg_alloc_table(&table, 1, GFP_KERNEL);
	if (err)
		goto free_page;
	sg_set_page(table.sgl, page, PAGE_SIZE, 0);
	err = ib_dma_map_sgtable_attrs(fabric->device, &table, DMA_BIDIRECTIONAL, 0);
	if (err)
		goto free_table;
	err = kdsm_table_check(fabric, &table);
	ib_dma_unmap_sgtable_attrs(fabric->device, &table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&table);
free_page:
	__free_page(page);
	return err;
}

static int kdsm_table_fill(struct kdsm_memory *memory, struct kdsm_registration *registration)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, registration->first);
	struct sg_table *table = &registration->table;
	struct scatterlist *sg;
	unsigned long index;
	unsigned int i;
	int err;

	if (!chunk->first)
		return sg_alloc_table_from_pages(table, chunk->pages, chunk->count, 0,
						 (size_t)chunk->count << PAGE_SHIFT, GFP_KERNEL);
	err = sg_alloc_table(table, registration->count, GFP_KERNEL);
	if (err)
		return err;
	index = registration->first;
	for_each_sgtable_sg(table, sg, i) {
		chunk = kdsm_chunk_peek(memory, index++);
		sg_set_page(sg, chunk->first, chunk->count << PAGE_SHIFT, 0);
	}
	return 0;
}

/*
 * Give the mapped pages to the memory region. With an IOMMU the addresses may be aligned to less
 * than the size of the entries; the device would then add a wrong offset.
 */
static int kdsm_region_fill(struct kdsm_registration *registration)
{
	struct sg_table *table = &registration->table;
	struct ib_mr *mr = registration->mr;
	int n;

	if (!IS_ALIGNED(sg_dma_address(table->sgl), registration->page_size))
		return -EINVAL;
	n = ib_map_mr_sg(mr, table->sgl, table->nents, NULL, registration->page_size);
	if (n < 0)
		return n;
	return n == table->nents ? 0 : -EINVAL;
}

static int kdsm_registration_map(struct kdsm_memory *memory,
				 struct kdsm_registration *registration)
{
	struct kdsm_fabric *fabric = memory->fabric;
	unsigned int entries = registration->count;
	int err;

	err = kdsm_table_fill(memory, registration);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(fabric->device, &registration->table,
				       DMA_BIDIRECTIONAL, 0);
	if (err)
		goto free_table;
	err = kdsm_table_check(fabric, &registration->table);
	if (err)
		goto unmap;
	if (registration->page_size != KDSM_CHUNK_SIZE)
		entries = kdsm_chunk_peek(memory, registration->first)->count;
	registration->mr = ib_alloc_mr(fabric->pd, IB_MR_TYPE_MEM_REG, entries);
	if (IS_ERR(registration->mr)) {
		err = PTR_ERR(registration->mr);
		goto unmap;
	}
	err = kdsm_region_fill(registration);
	if (err)
		goto free_mr;
	return 0;

free_mr:
	ib_dereg_mr(registration->mr);
unmap:
	ib_dma_unmap_sgtable_attrs(fabric->device, &registration->table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&registration->table);
	return err;
}

void kdsm_registration_end(struct kdsm_memory *memory, struct kdsm_registration *registration)
{
	lockdep_assert_held(&memory->registering);
	if (!registration->mr)
		return;
	ib_dereg_mr(registration->mr);
	registration->mr = NULL;
	ib_dma_unmap_sgtable_attrs(memory->fabric->device, &registration->table,
				   DMA_BIDIRECTIONAL, 0);
	sg_free_table(&registration->table);
}

/* ---- registrations ---- */

static int kdsm_registration_post(struct kdsm_memory *memory,
				  struct kdsm_registration *registration,
				  struct kdsm_connection *connection)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = registration->mr,
		.key = registration->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};

	if (!memory->read_only)
		wr.access |= IB_ACCESS_REMOTE_WRITE;
	/* In domain sw only CPUs do atomics, so peers need no right to remote atomics. */
	if (!memory->read_only && memory->domain != KDSM_DOMAIN_SW)
		wr.access |= IB_ACCESS_REMOTE_ATOMIC;
	registration->mr->iova = (u64)registration->first << KDSM_CHUNK_SHIFT;
	return kdsm_registering_post(connection, &wr);
}

/* Set the newest registration of all chunks that a registration covers; they exist. */
static void kdsm_chunks_point(struct kdsm_memory *memory,
			      const struct kdsm_registration *registration,
			      struct kdsm_registration *newest)
{
	unsigned int i;

	for (i = 0; i < registration->count; i++)
		kdsm_chunk_peek(memory, registration->first + i)->registration = newest;
}

/* Register a range whose chunks exist, in entries of page_size bytes */
static int kdsm_range_register(struct kdsm_memory *memory, unsigned long first,
			       unsigned int count, unsigned int page_size,
			       struct kdsm_connection *connection)
{
	struct kdsm_registration *registration;
	int err;

	lockdep_assert_held(&memory->registering);
	registration = kzalloc(sizeof(*registration), GFP_KERNEL);
	if (!registration)
		return -ENOMEM;
	registration->first = first;
	registration->count = count;
	registration->page_size = page_size;
	err = kdsm_registration_map(memory, registration);
	if (err)
		goto free;
	err = kdsm_registration_post(memory, registration, connection);
	if (err)
		goto unmap;
	list_add_tail(&registration->link, &memory->registrations);
	kdsm_count(connection->peer->counters, KDSM_STAT_REGISTRATIONS);
	kdsm_chunks_point(memory, registration, registration);
	return 0;

unmap:
	kdsm_registration_end(memory, registration);
free:
	kfree(registration);
	return err;
}

/* End the registrations of all leftovers: see drop.c. Caller holds memory->registering. */
static void kdsm_leftovers_unregister(struct kdsm_memory *memory)
{
	struct kdsm_registration *registration;
	struct kdsm_leftover *leftover;

	/* A drop may run, so its registrations stay allocated. */
	list_for_each_entry(leftover, &memory->leftovers, link)
		list_for_each_entry(registration, &leftover->registrations, link)
			kdsm_registration_end(memory, registration);
}

void kdsm_memory_unregister(struct kdsm_memory *memory)
{
	struct kdsm_registration *registration, *next;

	mutex_lock(&memory->registering);
	list_for_each_entry_safe(registration, next, &memory->registrations, link) {
		kdsm_chunks_point(memory, registration, NULL);
		kdsm_registration_end(memory, registration);
		list_del(&registration->link);
		kfree(registration);
		cond_resched();
	}
	kdsm_leftovers_unregister(memory);
	mutex_unlock(&memory->registering);
}

void kdsm_registrations_take(struct kdsm_memory *memory, unsigned long index,
			     struct list_head *taken)
{
	struct kdsm_registration *registration, *next;

	lockdep_assert_held(&memory->registering);
	list_for_each_entry_safe(registration, next, &memory->registrations, link)
		if (index >= registration->first &&
		    index - registration->first < registration->count) {
			kdsm_chunks_point(memory, registration, NULL);
			list_move_tail(&registration->link, taken);
		}
	/* Other chunks may still have a registration that a taken one had replaced. */
	list_for_each_entry(registration, &memory->registrations, link)
		if (registration->first >> KDSM_WINDOW_SHIFT == index >> KDSM_WINDOW_SHIFT)
			kdsm_chunks_point(memory, registration, registration);
}

/* ---- ranges ---- */

/* Whether the device gets the chunk as one entry of 2 MiB */
static bool kdsm_chunk_is_large(const struct kdsm_memory *memory,
				const struct kdsm_chunk *chunk)
{
	return memory->fabric->range_max && chunk && chunk->first &&
	       chunk->count == KDSM_CHUNK_SIZE >> PAGE_SHIFT;
}

static bool kdsm_range_is_large(const struct kdsm_memory *memory, unsigned long first,
				unsigned long end)
{
	for (; first < end; first++)
		if (!kdsm_chunk_is_large(memory, kdsm_chunk_peek(memory, first)))
			return false;
	return true;
}

/*
 * Find the largest range around a large chunk that consists of large chunks, and return its
 * size. Set *whole if no registration there may cover more.
 */
static unsigned int kdsm_range_find(const struct kdsm_memory *memory, unsigned long index,
				    unsigned long *first, bool *whole)
{
	unsigned long start = index, end = index + 1, wider_start, wider_end;
	unsigned int size;

	for (size = 2; size <= memory->fabric->range_max; size *= 2) {
		wider_start = round_down(index, size);
		wider_end = min(wider_start + size, memory->chunks_count);
		if (!kdsm_range_is_large(memory, wider_start, start) ||
		    !kdsm_range_is_large(memory, end, wider_end))
			break;
		start = wider_start;
		end = wider_end;
	}
	*first = start;
	*whole = size > memory->fabric->range_max;
	return end - start;
}

/* Some devices, or IOMMUs, turn out not to take entries of 2 MiB: use entries of 4 KiB. */
static void kdsm_ranges_give_up(struct kdsm_fabric *fabric)
{
	if (xchg(&fabric->range_max, 0))
		pr_warn("kdsm: %s refuses to register pages of 2 MiB: each 2 MiB of memory takes a registration of 4 KiB pages\n",
			fabric->device->name);
}

int kdsm_chunk_register(struct kdsm_memory *memory, unsigned long index,
			struct kdsm_connection *connection, struct kdsm_key *key)
{
	struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, index);
	bool is_large = kdsm_chunk_is_large(memory, chunk), whole = true;
	unsigned long first = index;
	unsigned int count = 1;
	int err = 0;

	if (is_large && !memory->dropped)
		count = kdsm_range_find(memory, index, &first, &whole);
	/* Replace a registration of a smaller range at most once, by that of the whole window. */
	if (chunk->registration && (chunk->registration->count >= count || !whole))
		goto known;
	if (is_large)
		err = kdsm_range_register(memory, first, count, KDSM_CHUNK_SIZE, connection);
	if (err == -EINVAL)
		kdsm_ranges_give_up(memory->fabric);
	if (!chunk->registration && err != -ENOTCONN && err != -EOPNOTSUPP)
		err = kdsm_range_register(memory, index, 1, PAGE_SIZE, connection);
	if (!chunk->registration)
		return err;
known:
	*key = (struct kdsm_key) {
		.key = chunk->registration->mr->rkey,
		.first = chunk->registration->first,
		.count = chunk->registration->count,
	};
	return 0;
}
