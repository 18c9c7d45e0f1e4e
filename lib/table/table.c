// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The unique table: opening, blocks of data, and the public functions. Find-or-put in the own
 * part is inline in table.h. Find-or-put in other parts is in remote.c (one-sided) and find.c
 * (by message).
 *
 * After Oortwijn, van Dijk, van de Pol, "Distributed Binary Decision Diagrams
 * for Symbolic Reachability" (SPIN 2017), section 3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "table/table.h"

/* Most slots; the upper half of the numbers belongs to private nodes of lib/bdd. */
#define MAX_NODES	(UINT64_C(1) << (KDSM_NUMBER_BITS - 1))

/* Layout of a part: slots, nodes in a block, bytes of the header, index entries, all bytes */
struct layout {
	uint64_t slots, block, header, entries, bytes;
};

/*
 * Nodes in a block. The free slots of a block are lost when its worker ends, so blocks must be
 * so small that a part has many. Blocks must not be smaller than needed, because each costs a
 * fetch-and-add, and a window of nodes does not reach over the beginning of its block.
 */
static uint64_t block_size(uint64_t slots)
{
	uint64_t block = KD_BLOCK_MAX;

	while (block > KD_BLOCK_MIN && slots / block < 64)
		block /= 2;
	return block;
}

static struct layout layout(uint64_t nodes, unsigned int parts)
{
	struct layout l;

	l.slots = (nodes + parts - 1) / parts;
	l.block = block_size(l.slots);
	l.slots = (l.slots + l.block - 1) / l.block * l.block;
	l.header = offsetof(struct kd_table_header, list) + l.slots / l.block * sizeof(uint32_t);
	l.header = (l.header + 63) / 64 * 64;
	l.entries = l.slots;
	/* Take the memory of the header from the index, unless the index would lose too much. */
	if (l.header / KDSM_ENTRY_BYTES <= l.slots / 16)
		l.entries -= l.header / KDSM_ENTRY_BYTES;
	l.bytes = l.header + l.entries * KDSM_ENTRY_BYTES + l.slots * KDSM_NODE_BYTES;
	return l;
}

/*
 * Entries of the node cache by default: it takes memory in this process only, so it must not grow
 * with the parts of all others. Half of the slots of a part takes 16 to 32 bytes a slot.
 */
static uint64_t cache_size(const struct kdsm_table_attr *attr, const struct kdsm_table *t)
{
	uint64_t most = t->slots / 2;

	if (t->parts == 1)
		return 0;
	if (attr->cache_nodes)
		return attr->cache_nodes;
	return attr->nodes / 8 < most ? attr->nodes / 8 : most;
}

uint64_t kdsm_table_part_bytes(const struct kdsm_table_attr *attr,
			       unsigned int cluster_nodes)
{
	struct kdsm_table_attr own;

	if (KD_ARGUMENT_IN(kdsm_table_attr, &own, attr))
		return UINT64_MAX;
	return layout(own.nodes, cluster_nodes).bytes;
}

uint64_t kdsm_table_nodes_for(uint64_t bytes, unsigned int cluster_nodes)
{
	uint64_t slots = bytes / cluster_nodes / (KDSM_ENTRY_BYTES + KDSM_NODE_BYTES);

	if (!bytes)
		return 0;
	slots -= slots % block_size(slots);
	return (slots ? slots : KD_BLOCK_MIN) * cluster_nodes;
}

/*
 * In an index that is hardly longer than a walk, a walk of many runs may miss half of the
 * entries. So if the index is at most as long as a walk, the walk is a single run, which
 * visits all entries.
 */
void kd_table_resize(struct kdsm_table *t, uint64_t limit)
{
	uint64_t entries = limit * t->block < t->index_most ? limit * t->block : t->index_most;

	/* kdsm_table_usage() may read both at the same time */
	__atomic_store_n(&t->limit, limit, __ATOMIC_RELAXED);
	__atomic_store_n(&t->index_size, entries, __ATOMIC_RELAXED);
	t->run = t->index_size > KD_PROBE_LIMIT ? KD_WALK_RUN : KD_PROBE_LIMIT;
	/* every collection clears the node cache, which must not take longer than it does */
	kd_nodecache_resize(&t->cache, (t->cache.most + 1) * limit / (t->slots / t->block));
}

static int check(const struct kdsm *kdsm, uint64_t offset, const struct kdsm_table_attr *attr)
{
	if (offset % 64)
		return kd_misaligned(offset, 64);
	if (!attr->nodes || attr->first_nodes > attr->nodes)
		return kd_because(-EINVAL,
				  "table: nodes is %" PRIu64 " and first_nodes %" PRIu64 "; nodes is above 0, and first_nodes not above nodes",
				  attr->nodes, attr->first_nodes);
	if (attr->find > KDSM_TABLE_MESSAGE)
		return kd_because(-EINVAL, "table: there is no way %u to find nodes", attr->find);
	if (attr->find == KDSM_TABLE_MESSAGE && kdsm_domain(kdsm) == KDSM_DOMAIN_HCA)
		return kd_because(-EOPNOTSUPP,
				  "table: KDSM_TABLE_MESSAGE is impossible in domain hca");
	if (attr->nodes > MAX_NODES)
		return kd_because(-EFBIG, "table: %" PRIu64 " nodes are more than %" PRIu64,
				  attr->nodes, (uint64_t)MAX_NODES);
	return 0;
}

int kdsm_table_open(struct kdsm_region *region, uint64_t offset,
		    const struct kdsm_table_attr *argument, struct kdsm_table **table)
{
	struct kdsm_table_attr own, *attr = &own;
	struct kdsm *kdsm = kdsm_region_cluster(region);
	uint64_t size = kdsm_region_part_size(region);
	struct layout first;
	struct kdsm_table *t;
	struct layout l;
	char *base;
	int r;

	r = KD_ARGUMENT_IN(kdsm_table_attr, attr, argument);
	if (r == 0)
		r = check(kdsm, offset, attr);
	if (r < 0)
		return r;
	l = layout(attr->nodes, region->nodes);
	if (offset > size || l.bytes > size - offset)
		return kd_because(-ERANGE,
				  "region \"%s\": a table of %" PRIu64 " bytes at offset %" PRIu64
				  " is not inside a part of %" PRIu64 " bytes",
				  region->name, l.bytes, offset, size);

	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->region = region;
	t->parts = region->nodes;
	t->self = kdsm_node(kdsm);
	t->cpu_atomics = kdsm_domain(kdsm) != KDSM_DOMAIN_HCA;
	/* In domain hca devices do the atomics, so the CPU of the target must not do any. */
	t->find = t->cpu_atomics ? attr->find : KDSM_TABLE_ONE_SIDED;
	t->slots = l.slots;
	t->block = l.block;
	r = kd_nodecache_init(&t->cache, cache_size(attr, t));
	if (r < 0) {
		free(t);
		return r;
	}
	first = layout(attr->first_nodes ? attr->first_nodes : attr->nodes, t->parts);
	t->index_most = l.entries;
	kd_table_resize(t, (first.slots + l.block - 1) / l.block);
	t->first = t->self * t->slots;
	t->offset = offset;
	t->index_offset = offset + l.header;
	t->data_offset = t->index_offset + l.entries * KDSM_ENTRY_BYTES;
	base = kdsm_region_part(region);
	t->header = (void *)(base + offset);
	t->index = (void *)(base + t->index_offset);
	t->data = (void *)(base + t->data_offset);
	pthread_mutex_init(&t->lock, NULL);
	*table = t;
	return 0;
}

void kdsm_table_close(struct kdsm_table *table)
{
	if (!table)
		return;
	kd_nodecache_destroy(&table->cache);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

int kdsm_table_worker_new(struct kdsm_table *table,
			  struct kdsm_table_worker **worker)
{
	struct kdsm_table_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->table = table;
	kd_mutex_lock(&table->lock);
	w->place = &table->workers;
	w->other = table->workers;
	if (w->other)
		w->other->place = &w->other;
	table->workers = w;
	kd_mutex_unlock(&table->lock);
	*worker = w;
	return 0;
}

/* Clear the next slot, where the worker may have stored a node without claiming an entry. */
static void unclaim(struct kdsm_table_worker *w)
{
	uint64_t slot = w->next - w->table->first;

	if (w->next < w->end && slot < w->table->slots)
		w->table->data[slot] = (struct kdsm_node){ 0, 0 };
}

void kdsm_table_worker_free(struct kdsm_table_worker *worker)
{
	if (!worker)
		return;
	kdsm_table_flush(worker);
	unclaim(worker);
	kd_mutex_lock(&worker->table->lock);
	*worker->place = worker->other;
	if (worker->other)
		worker->other->place = worker->place;
	kd_mutex_unlock(&worker->table->lock);
	free(worker);
}

/* Go to the next run of free slots in the own block. Returns false if there is none. */
static bool next_run(struct kdsm_table_worker *w)
{
	const uint64_t block = w->table->block;
	uint64_t at = w->end - w->base;

	while (at < block && !(w->free[at / 64] >> at % 64 & 1))
		at++;
	if (at >= block)
		return false;
	w->next = w->base + at;
	while (at < block && (w->free[at / 64] >> at % 64 & 1))
		at++;
	w->end = w->base + at;
	return true;
}

/* Fill w->free: the slots of the block whose nodes did not survive the last collection. */
static int look_for_free(struct kdsm_table_worker *w, unsigned int part, uint64_t block)
{
	struct kdsm_table *t = w->table;
	const struct kdsm_node *nodes = &t->data[block * t->block];
	struct kdsm_node copy[KD_BLOCK_MAX];
	uint64_t i;
	int r;

	if (part != t->self) {
		w->counts.other++;
		r = kdsm_get(t->region, part, t->data_offset + block * sizeof(copy[0]) * t->block,
			     copy, t->block * sizeof(copy[0]));
		if (r < 0)
			return r;
		nodes = copy;
	}
	memset(w->free, 0, sizeof(w->free));
	for (i = 0; i < t->block; i++)
		if (!(__atomic_load_n(&nodes[i].a, __ATOMIC_RELAXED) & KD_NODE_OLD))
			w->free[i / 64] |= UINT64_C(1) << i % 64;
	return 0;
}

/* Store in *block the i-th block that workers take in the part. -ENOENT: there are fewer. */
static int listed_block(struct kdsm_table_worker *w, unsigned int part, uint64_t i,
			uint64_t *block)
{
	struct kdsm_table *t = w->table;
	uint64_t place = t->offset + offsetof(struct kd_table_header, list) + i * sizeof(uint32_t);
	uint64_t listed = t->header->listed;
	uint32_t b;
	int r;

	*block = i;
	if (!t->collections)
		return i < t->limit - t->reserve ? 0 : -ENOENT;
	if (i >= t->limit)
		return -ENOENT;
	if (part != t->self) {
		struct kdsm_op ops[] = {
			kdsm_op_get(part, t->offset + offsetof(struct kd_table_header, listed),
				    &listed, sizeof(listed)),
			kdsm_op_get(part, place, &b, sizeof(b)),
		};

		w->counts.other += 2;
		r = kdsm_vector(t->region, ops, 2);
		if (r < 0)
			return r;
	} else {
		b = t->header->list[i];
	}
	*block = b;
	if (i >= listed)
		return -ENOENT;
	return b < t->limit ? 0 : -EIO;
}

/*
 * Take a new block: from the own part while it has any, then from the other parts, so that
 * one busy cluster node can fill the memory of all. While workers run, only kdsm_faa()
 * changes the word "blocks", which is atomic against itself in every domain.
 */
static int take_block(struct kdsm_table_worker *w)
{
	struct kdsm_table *t = w->table;

	while (w->source < t->parts) {
		unsigned int part = (t->self + w->source) % t->parts;
		uint64_t block;
		int r;

		r = kdsm_faa(t->region, part, t->offset +
			     offsetof(struct kd_table_header, blocks), 1, &block);
		if (r)
			return r;
		w->counts.other += part != t->self;
		r = listed_block(w, part, block, &block);
		if (r == -ENOENT) {
			w->source++;
			continue;
		}
		if (r < 0)
			return r;
		w->base = part * t->slots + block * t->block;
		if (!t->collections) {
			w->end = w->base + t->block;
			w->next = w->base ? w->base : 1;	/* number 0 means none */
			return 0;
		}
		w->next = w->end;
		r = look_for_free(w, part, block);
		if (r < 0)
			return r;
		if (w->base == 0)
			w->free[0] &= ~UINT64_C(1);
		w->end = w->base;
		if (next_run(w))
			return 0;
	}
	return -ENOSPC;
}

uint64_t kd_table_used_here(struct kdsm_table *t)
{
	struct kdsm_table_worker *w;

	kd_mutex_lock(&t->lock);
	for (w = t->workers; w; w = w->other)
		kdsm_table_flush(w);
	kd_mutex_unlock(&t->lock);
	return kd_table_flushed(t);
}

void kd_table_unclaim(struct kdsm_table *t)
{
	struct kdsm_table_worker *w;

	kd_mutex_lock(&t->lock);
	for (w = t->workers; w; w = w->other)
		unclaim(w);
	kd_mutex_unlock(&t->lock);
}

void kd_table_restart(struct kdsm_table *t, uint64_t nodes, uint32_t load)
{
	struct kdsm_table_worker *w;

	kd_nodecache_clear(&t->cache);
	t->collections++;
	__atomic_store_n(&t->header->blocks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->header->used, nodes, __ATOMIC_RELAXED);
	kd_mutex_lock(&t->lock);
	for (w = t->workers; w; w = w->other) {
		w->end = w->base + t->block;
		w->next = w->end;
		w->source = 0;
		w->flushed = w->counts.put;
		w->load = load;
	}
	kd_mutex_unlock(&t->lock);
}

/*
 * The number stays the next one, because the node may turn out to be in the table already:
 * the worker then stores its next node over this one.
 */
int kd_table_take(struct kdsm_table_worker *w, const struct kdsm_node *node,
		  uint64_t *number)
{
	struct kdsm_table *t = w->table;
	uint64_t slot;
	int r;

	if (kd_unlikely(w->next == w->end) && !next_run(w)) {
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
	r = kdsm_put(t->region, w->next / t->slots, t->data_offset +
		     w->next % t->slots * sizeof(*node), node, sizeof(*node));
	/* The node's words are no proof that both are there, so all see them before the number. */
	return r < 0 ? r : kd_settle_node(t->region->kdsm, w->next / t->slots);
}

int kdsm_table_find_or_put_at(struct kdsm_table_worker *worker, int home,
			      const struct kdsm_node *node, uint64_t *number)
{
	uint64_t hash = kd_hash(node->a, node->b);

	if (!(node->a | node->b) || node->a & (KD_NODE_OLD | KD_NODE_MARK))
		return kd_because(-EINVAL, "a node is all zero, or has bit 61 or 62 of a");
	if (home >= (int)worker->table->parts)
		return kd_because(-EINVAL, "there is no part %d", home);
	return kd_table_put(worker, node, hash,
			    home < 0 ? kd_table_home(worker->table, hash) :
			    (unsigned int)home, number);
}

int kdsm_table_find_or_put(struct kdsm_table_worker *worker,
			   const struct kdsm_node *node, uint64_t *number)
{
	return kdsm_table_find_or_put_at(worker, -1, node, number);
}

int kdsm_table_read(struct kdsm_table_worker *worker, uint64_t number,
		    struct kdsm_node *node)
{
	int r = kd_table_get(worker, number, node);

	if (r == 0)
		node->a &= ~KD_NODE_OLD;
	return r;
}

unsigned int kdsm_table_part(const struct kdsm_table *table, uint64_t number)
{
	return number / table->slots;
}

int kdsm_table_counts(const struct kdsm_table_worker *worker,
		      struct kdsm_table_counts *counts)
{
	return KD_ARGUMENT_OUT(kdsm_table_counts, &worker->counts, counts);
}

int kdsm_table_usage(struct kdsm_table *table, uint64_t *used, uint64_t *size)
{
	unsigned int part;

	*used = 0;
	for (part = 0; part < table->parts; part++) {
		uint64_t n;
		int r;

		if (part == table->self) {
			n = kd_table_flushed(table);
		} else {
			r = kdsm_get(table->region, part, table->offset +
				     offsetof(struct kd_table_header, used),
				     &n, sizeof(n));
			if (r < 0)
				return r;
		}
		*used += n;
	}
	/* Last, so that a table that grows meanwhile does not look fuller than full. */
	*size = kd_table_size(table);
	return 0;
}

void kdsm_table_flush(struct kdsm_table_worker *worker)
{
	/* A CPU atomic is right in every domain, because only CPUs of this node add to the word. */
	__atomic_add_fetch(&worker->table->header->used,
			   worker->counts.put - worker->flushed, __ATOMIC_RELAXED);
	worker->flushed = worker->counts.put;
}
