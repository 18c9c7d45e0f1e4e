// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The unique table: opening, blocks of data, and the public functions. The path
 * within the own part is in table_int.h, what goes to other nodes is in
 * table_remote.c.
 *
 * After Oortwijn, van Dijk, van de Pol, "Distributed Binary Decision Diagrams
 * for Symbolic Reachability" (SPIN 2017), section 3.
 */
#include <errno.h>
#include <stdlib.h>

#include "table_int.h"

#define MAX_NODES	(UINT64_C(1) << (KDSM_NUMBER_BITS - 1))
#define MAX_BLOCK	1024	/* nodes */

struct layout {
	uint64_t slots, block, bytes;
};

static struct layout layout(uint64_t nodes, unsigned int parts)
{
	struct layout l;

	/* Number 0 is not given out: one slot more than asked for. */
	l.slots = nodes / parts + 1;
	/*
	 * A block that a worker leaves half full is lost: many small ones. But
	 * each costs a fetch-and-add, and windows end where blocks begin.
	 */
	for (l.block = MAX_BLOCK; l.block > 16 && l.slots / l.block < 64; )
		l.block /= 2;
	l.slots = (l.slots + l.block - 1) / l.block * l.block;
	l.bytes = KD_HEADER_BYTES +
		  l.slots * (KDSM_ENTRY_BYTES + KDSM_NODE_BYTES);
	return l;
}

uint64_t kdsm_table_part_bytes(const struct kdsm_table_attr *attr,
			       unsigned int cluster_nodes)
{
	return layout(attr->nodes, cluster_nodes).bytes;
}

uint64_t kdsm_table_nodes_for(uint64_t bytes)
{
	return bytes / (KDSM_ENTRY_BYTES + KDSM_NODE_BYTES);
}

int kdsm_table_open(struct kdsm_table **table, struct kdsm_region *region,
		    uint64_t offset, const struct kdsm_table_attr *attr)
{
	struct kdsm *kdsm = kdsm_region_cluster(region);
	uint64_t size = kdsm_region_part_size(region);
	uint64_t remote;
	struct kdsm_table *t;
	struct layout l;
	char *base;
	int r;

	if (attr->nodes == 0 || offset % 64)
		return -EINVAL;
	if (attr->nodes > MAX_NODES)
		return -EFBIG;
	l = layout(attr->nodes, kdsm_nodes(kdsm));
	if (offset > size || l.bytes > size - offset)
		return -ERANGE;

	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->region = region;
	t->parts = kdsm_nodes(kdsm);
	t->self = kdsm_node(kdsm);
	t->cpu_atomics = kdsm_domain(kdsm) != KDSM_DOMAIN_HCA;
	t->slots = l.slots;
	t->block = l.block;
	t->first = t->self * t->slots;
	t->offset = offset;
	t->index_offset = offset + KD_HEADER_BYTES;
	t->data_offset = t->index_offset + l.slots * KDSM_ENTRY_BYTES;
	base = kdsm_region_part(region);
	t->header = (void *)(base + offset);
	t->index = (void *)(base + t->index_offset);
	t->data = (void *)(base + t->data_offset);

	remote = t->parts == 1 ? 0 : attr->cache_nodes ? attr->cache_nodes :
		 attr->nodes / 8;
	r = kd_nodecache_init(&t->cache, remote);
	if (r < 0) {
		free(t);
		return r;
	}
	*table = t;
	return 0;
}

void kdsm_table_close(struct kdsm_table *table)
{
	if (!table)
		return;
	kd_nodecache_destroy(&table->cache);
	free(table);
}

int kdsm_table_worker_new(struct kdsm_table *table,
			  struct kdsm_table_worker **worker)
{
	struct kdsm_table_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->table = table;
	*worker = w;
	return 0;
}

void kdsm_table_worker_free(struct kdsm_table_worker *worker)
{
	if (!worker)
		return;
	kdsm_table_flush(worker);
	free(worker);
}

/*
 * Take a new block: of the own part while there are any, then of the others, so
 * that one busy node can fill the memory of all. The word is changed only by
 * operations on the region, which are atomic against each other in every domain.
 */
static int take_block(struct kdsm_table_worker *w)
{
	struct kdsm_table *t = w->table;

	for (; w->source < t->parts; w->source++) {
		unsigned int part = (t->self + w->source) % t->parts;
		uint64_t block;
		int r;

		r = kdsm_faa(t->region, part, t->offset +
			     offsetof(struct kd_table_header, blocks), 1, &block);
		if (r < 0)
			return r;
		w->counts.other += part != t->self;
		if (block >= t->slots / t->block)
			continue;
		w->next = part * t->slots + block * t->block;
		w->end = w->next + t->block;
		if (w->next == 0)	/* the number that nobody gets */
			w->next++;
		return 0;
	}
	return -ENOSPC;
}

/*
 * Store the node where the worker's next number lies, without using it up: if
 * the node turns out to be in the table, the next one is stored over it.
 */
int kd_table_take(struct kdsm_table_worker *w, const struct kdsm_node *node,
		  uint64_t *number)
{
	struct kdsm_table *t = w->table;
	uint64_t slot;
	int r;

	if (kd_unlikely(w->next == w->end)) {
		kdsm_table_flush(w);
		r = take_block(w);
		if (r < 0)
			return r;
	}
	*number = w->next;
	slot = w->next - t->first;
	if (kd_likely(slot < t->slots)) {
		__atomic_store_n(&t->data[slot].a, node->a, __ATOMIC_RELAXED);
		__atomic_store_n(&t->data[slot].b, node->b, __ATOMIC_RELAXED);
		return 0;
	}
	w->counts.other++;
	return kdsm_put(t->region, w->next / t->slots, t->data_offset +
			w->next % t->slots * sizeof(*node), node, sizeof(*node));
}

int kdsm_table_find_or_put_at(struct kdsm_table_worker *worker,
			      const struct kdsm_node *node, int home,
			      uint64_t *number)
{
	uint64_t hash = kd_hash(node->a, node->b);

	if (!(node->a | node->b) || home >= (int)worker->table->parts)
		return -EINVAL;
	return kd_table_put(worker, node, hash,
			    home < 0 ? kd_table_home(worker->table, hash) :
			    (unsigned int)home, number);
}

int kdsm_table_find_or_put(struct kdsm_table_worker *worker,
			   const struct kdsm_node *node, uint64_t *number)
{
	return kdsm_table_find_or_put_at(worker, node, -1, number);
}

int kdsm_table_read(struct kdsm_table_worker *worker, uint64_t number,
		    struct kdsm_node *node)
{
	return kd_table_get(worker, number, node);
}

unsigned int kdsm_table_part(const struct kdsm_table *table, uint64_t number)
{
	return number / table->slots;
}

void kdsm_table_counts(const struct kdsm_table_worker *worker,
		       struct kdsm_table_counts *counts)
{
	*counts = worker->counts;
}

int kdsm_table_usage(struct kdsm_table *table, uint64_t *used, uint64_t *size)
{
	unsigned int part;

	*used = 0;
	*size = table->slots * table->parts - 1;
	for (part = 0; part < table->parts; part++) {
		uint64_t n;
		int r;

		if (part == table->self) {
			n = __atomic_load_n(&table->header->used, __ATOMIC_RELAXED);
		} else {
			r = kdsm_get(table->region, part, table->offset +
				     offsetof(struct kd_table_header, used),
				     &n, sizeof(n));
			if (r < 0)
				return r;
		}
		*used += n;
	}
	return 0;
}

void kdsm_table_flush(struct kdsm_table_worker *worker)
{
	/* Only CPUs of this node add to this word, whatever the domain. */
	__atomic_add_fetch(&worker->table->header->used,
			   worker->counts.put - worker->flushed, __ATOMIC_RELAXED);
	worker->flushed = worker->counts.put;
}
