// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The BDD store and its workers, and the slower ways of reading and making
 * nodes: those of other parts of the table, and private ones. The operations
 * are in bdd_ops.c, bdd_relation.c and bdd_count.c.
 */
#include <stdlib.h>

#include "bdd_int.h"

static struct kdsm_table_attr table_attr(const struct kdsm_bdd_attr *attr)
{
	return (struct kdsm_table_attr){
		.nodes = kdsm_table_nodes_for(attr->table_bytes),
	};
}

/* Of the operation cache, in every part. */
static uint64_t cache_part_bytes(const struct kdsm_bdd_attr *attr, unsigned int parts)
{
	uint64_t entries = attr->cache_bytes / parts / sizeof(struct kd_result);

	return (entries ? entries : 1) * sizeof(struct kd_result);
}

static uint64_t cache_offset(const struct kdsm_bdd_attr *attr, unsigned int parts)
{
	struct kdsm_table_attr t = table_attr(attr);

	return (kdsm_table_part_bytes(&t, parts) + 63) / 64 * 64;
}

uint64_t kdsm_bdd_part_bytes(const struct kdsm_bdd_attr *attr, unsigned int cluster_nodes)
{
	return cache_offset(attr, cluster_nodes) + cache_part_bytes(attr, cluster_nodes);
}

int kdsm_bdd_open(struct kdsm_bdd_store **store, struct kdsm_region *region,
		  uint64_t offset, const struct kdsm_bdd_attr *attr)
{
	unsigned int parts = kdsm_nodes(kdsm_region_cluster(region));
	struct kdsm_table_attr t = table_attr(attr);
	struct kdsm_bdd_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->granularity = attr->granularity;
	r = kdsm_table_open(&s->table, region, offset, &t);
	if (r < 0)
		goto fail;
	r = kd_opcache_init(&s->cache, region, offset + cache_offset(attr, parts),
			    cache_part_bytes(attr, parts));
	if (r < 0)
		goto fail;
	*store = s;
	return 0;
fail:
	kdsm_table_close(s->table);
	free(s);
	return r;
}

void kdsm_bdd_close(struct kdsm_bdd_store *store)
{
	if (!store)
		return;
	kd_private_destroy(&store->own);
	kdsm_table_close(store->table);
	free(store);
}

struct kdsm_table *kdsm_bdd_table(struct kdsm_bdd_store *store)
{
	return store->table;
}

int kdsm_bdd_worker_new(struct kdsm_bdd_store *store, struct kdsm_bdd_worker **worker)
{
	struct kdsm_bdd_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	r = kdsm_table_worker_new(store->table, &w->table);
	if (r < 0) {
		free(w);
		return r;
	}
	w->store = store;
	w->data = store->table->data;
	w->first = store->table->first;
	w->slots = store->table->slots;
	w->cache = &store->cache;
	w->own = &store->own;
	w->alone = store->table->parts == 1;
	*worker = w;
	return 0;
}

void kdsm_bdd_worker_free(struct kdsm_bdd_worker *worker)
{
	if (!worker)
		return;
	kdsm_table_worker_free(worker->table);
	free(worker);
}

int kdsm_bdd_error(struct kdsm_bdd_worker *worker)
{
	int error = worker->error;

	worker->error = 0;
	return error;
}

void kdsm_bdd_counts(const struct kdsm_bdd_worker *worker, struct kdsm_bdd_counts *counts)
{
	counts->tasks = worker->tasks;
	counts->hits = worker->hits;
	counts->home_get = worker->home_get;
	counts->home_hit = worker->home_hit;
	counts->home_put = worker->home_put;
	kdsm_table_counts(worker->table, &counts->table);
}

void kdsm_bdd_private(struct kdsm_bdd_worker *worker, int on)
{
	worker->private = on;
}

uint64_t kdsm_bdd_private_digest(const struct kdsm_bdd_store *store)
{
	return store->own.digest;
}

kdsm_bdd kd_fail(struct kdsm_bdd_worker *w, int error)
{
	if (!w->error)
		w->error = error;
	return KDSM_BDD_INVALID;
}

bool kd_node_elsewhere(struct kdsm_bdd_worker *w, uint64_t number,
		       struct kdsm_node *node)
{
	uint64_t i = number - KD_PRIVATE_FIRST;
	int r;

	if (i < w->own->count) {
		*node = w->own->nodes[i];
		return true;
	}
	r = kd_table_fetch(w->table, number, node);
	if (r < 0)
		kd_fail(w, r);
	return r == 0;
}

/*
 * Nodes that are about to be read: those of other parts come with one wait for
 * all. A failure shows when they are read.
 */
void kd_nodes_ahead(struct kdsm_bdd_worker *w, const kdsm_bdd *edges, unsigned int count)
{
	uint64_t numbers[8];
	unsigned int n = 0, i;

	for (i = 0; i < count && n < 8; i++) {
		uint64_t number = kd_number(edges[i]);

		if (number && number - w->first >= w->slots && number < KD_PRIVATE_FIRST)
			numbers[n++] = number;
	}
	if (n > 1)
		kdsm_table_prefetch(w->table, numbers, n);
}

kdsm_bdd kd_make_elsewhere(struct kdsm_bdd_worker *w, const struct kdsm_node *node)
{
	const struct kdsm_table *t = w->store->table;
	uint64_t hash, number;
	unsigned int home;
	int r;

	if (w->private) {
		r = kd_private_put(w->own, node, &number);
	} else {
		uint64_t child = kd_number(node->a);

		hash = kd_hash(node->a, node->b);
		if (!child)
			child = kd_number(node->b);
		if (!child)	/* which is in part 0, but belongs to none */
			home = kd_table_home(t, hash);
		else if (child - w->first < w->slots)
			home = t->self;
		else if (child < t->slots * t->parts)
			home = child / t->slots;
		else
			return kd_fail(w, -EIO);
		r = kd_table_put(w->table, node, hash, home, &number);
	}
	return r < 0 ? kd_fail(w, r) : number;
}
