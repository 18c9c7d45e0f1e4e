// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The BDD store and its workers, and the slow paths of reading and making nodes: nodes of
 * other parts of the table, and private nodes. The operations are in ops.c, quantify.c,
 * relation.c, substitute.c and count.c.
 */
#include <stdlib.h>

#include "bdd/bdd.h"
#include "task/task.h"

static struct kdsm_table_attr table_attr(const struct kdsm_bdd_attr *attr, unsigned int parts)
{
	return (struct kdsm_table_attr){
		.argsz = sizeof(struct kdsm_table_attr),
		.nodes = kdsm_table_nodes_for(attr->table_bytes, parts),
		.first_nodes = kdsm_table_nodes_for(attr->first_table_bytes, parts),
		.find = attr->find,
	};
}

/*
 * Size of the operation cache in every part, in bytes. A collection places two boxes for each
 * destination in the cache of a part, so the cache has room for at least 32 entries for each
 * destination.
 */
static uint64_t cache_part_bytes(uint64_t bytes, unsigned int parts)
{
	uint64_t entries = bytes / parts / sizeof(struct kd_result), least = parts * 32;

	return (entries > least ? entries : least) * sizeof(struct kd_result);
}

static uint64_t cache_offset(const struct kdsm_bdd_attr *attr, unsigned int parts)
{
	struct kdsm_table_attr t = table_attr(attr, parts);

	return (kdsm_table_part_bytes(&t, parts) + 63) / 64 * 64;
}

static uint64_t gang_offset(const struct kdsm_bdd_attr *attr, unsigned int parts)
{
	return (cache_offset(attr, parts) + cache_part_bytes(attr->cache_bytes, parts) + 63) /
	       64 * 64;
}

uint64_t kdsm_bdd_part_bytes(const struct kdsm_bdd_attr *argument, unsigned int cluster_nodes)
{
	struct kdsm_bdd_attr own, *attr = &own;

	if (KD_ARGUMENT_IN(kdsm_bdd_attr, attr, argument))
		return UINT64_MAX;
	return gang_offset(attr, cluster_nodes) + KD_GANG_BYTES;
}

int kdsm_bdd_open(struct kdsm_region *region, uint64_t offset,
		  const struct kdsm_bdd_attr *argument, struct kdsm_bdd_store **store)
{
	unsigned int parts = region->nodes;
	struct kdsm_bdd_attr own, *attr = &own;
	struct kdsm_bdd_store *s;
	struct kdsm_table_attr t;
	uint64_t bytes;
	int r;

	r = KD_ARGUMENT_IN(kdsm_bdd_attr, attr, argument);
	if (r < 0)
		return r;
	bytes = gang_offset(attr, parts) + KD_GANG_BYTES;
	if (bytes + offset > kdsm_region_part_size(region))
		return kd_not_in_part(region, offset, bytes);
	t = table_attr(attr, parts);
	s = calloc(1, sizeof(*s));
	if (!s)
		return kd_no_reason(-ENOMEM);
	pthread_mutex_init(&s->lock, NULL);
	s->granularity = attr->granularity;
	r = kdsm_table_open(region, offset, &t, &s->table);
	if (r < 0)
		goto fail;
	r = kd_opcache_init(&s->cache, region, offset + cache_offset(attr, parts),
			    cache_part_bytes(attr->cache_bytes, parts));
	if (r < 0)
		goto fail;
	if (attr->first_cache_bytes)
		kd_opcache_limit(&s->cache, cache_part_bytes(attr->first_cache_bytes, parts));
	s->gang_offset = offset + gang_offset(attr, parts);
	pthread_mutex_init(&s->refs.lock, NULL);
	*store = s;
	return 0;
fail:
	kdsm_bdd_close(s);
	return r;
}

void kdsm_bdd_close(struct kdsm_bdd_store *store)
{
	if (!store)
		return;
	kd_gang_leave(&store->gang);
	pthread_mutex_destroy(&store->refs.lock);
	free(store->refs.slot);
	free(store->ghost);
	kd_private_destroy(&store->own);
	free(store->bits);
	kdsm_table_close(store->table);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

struct kdsm_table *kdsm_bdd_table(struct kdsm_bdd_store *store)
{
	return store->table;
}

/* ---- workers ---- */

/* Create a worker without a deque, for a pool. */
static int worker_new(struct kdsm_bdd_store *store, struct kdsm_bdd_worker **worker)
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
	w->simulated = kd_scheduler;
	kd_mutex_lock(&store->lock);
	w->seed = store->numbers ? kd_hash(store->numbers, 0) : 0;
	store->numbers++;
	w->next = store->workers;
	store->workers = w;
	kd_mutex_unlock(&store->lock);
	*worker = w;
	return 0;
}

int kdsm_bdd_worker_new(struct kdsm_bdd_store *store, struct kdsm_bdd_worker **worker)
{
	struct kdsm_bdd_worker *w;
	int r = worker_new(store, worker);

	if (r < 0)
		return r;
	w = *worker;
	r = kd_task_alone_new(&w->always.tasks, &w->head, w);
	if (r < 0) {
		kdsm_bdd_worker_free(w);
		*worker = NULL;
		return r;
	}
	w->always.head = &w->head;
	w->place = &w->always;
	return 0;
}

static void add(uint64_t *sum, const uint64_t *counts, size_t size)
{
	size_t i;

	for (i = 0; i < size / sizeof(*sum); i++)
		sum[i] += counts[i];
}

/* Add all fields but argsz. */
static void add_counts(struct kdsm_bdd_counts *sum, const struct kdsm_bdd_worker *worker)
{
	const size_t first = offsetof(struct kdsm_table_counts, found);
	struct kdsm_bdd_counts one = { .argsz = sizeof(one) };

	kdsm_bdd_counts(worker, &one);
	add(&sum->tasks, &one.tasks, offsetof(struct kdsm_bdd_counts, table) -
	    offsetof(struct kdsm_bdd_counts, tasks));
	add(&sum->table.found, &one.table.found, sizeof(one.table) - first);
}

void kdsm_bdd_worker_free(struct kdsm_bdd_worker *worker)
{
	struct kdsm_bdd_worker **link;
	struct kdsm_bdd_store *store;

	if (!worker)
		return;
	store = worker->store;
	kd_mutex_lock(&store->lock);
	for (link = &store->workers; *link != worker; link = &(*link)->next)
		;
	*link = worker->next;
	add_counts(&store->gone, worker);
	kd_mutex_unlock(&store->lock);
	kd_task_alone_free(worker->always.tasks);
	kdsm_table_worker_free(worker->table);
	free(worker);
}

static int begin(void *store, void **context)
{
	return worker_new(store, (struct kdsm_bdd_worker **)context);
}

static void end(void *context)
{
	kdsm_bdd_worker_free(context);
}

void kdsm_bdd_tasks(struct kdsm_bdd_store *store, struct kdsm_tasks_attr *attr)
{
	attr->start = begin;
	attr->stop = end;
	attr->argument = store;
}

void kdsm_bdd_use_tasks(struct kdsm_bdd_worker *worker, struct kdsm_tasks *tasks)
{
	if (kd_of_pool(worker))
		kd_end(worker, kd_failure(-EDEADLK));
	else
		worker->pool = tasks;
}

/* ---- in tasks ---- */

bool kd_bdd_inside(const struct kdsm_bdd_store *store)
{
	return kd_task_argument(NULL, begin) == store;
}

/*
 * Push a place on the worker's stack of places. Places nest like the calls that declare
 * them: while a task waits, its thread runs other tasks, which end and leave their places
 * before the task continues. When a job fails, its workers abandon their tasks without
 * popping the places, but they run no further tasks.
 */
struct kdsm_bdd_worker *kdsm_bdd_enter(struct kdsm_bdd_place *place)
{
	struct kdsm_bdd_worker *w = place->tasks->context;

	if (!kd_task_argument(place->tasks, begin)) {
		place->tasks = NULL;
		return NULL;
	}
	place->below = w->place;
	place->error = w->error;
	w->place = place;
	w->error = 0;
	return w;
}

void kdsm_bdd_leave(struct kdsm_bdd_place *place)
{
	struct kdsm_bdd_worker *w;

	if (!place->tasks)
		return;
	w = place->tasks->context;
	w->place = place->below;
	w->error = place->error;
}

/* ---- counts and errors ---- */

int kdsm_bdd_all_counts(struct kdsm_bdd_store *store, struct kdsm_bdd_counts *counts)
{
	struct kdsm_bdd_counts sum;
	struct kdsm_bdd_worker *w;

	kd_mutex_lock(&store->lock);
	sum = store->gone;
	for (w = store->workers; w; w = w->next)
		add_counts(&sum, w);
	kd_mutex_unlock(&store->lock);
	sum.table.argsz = sizeof(sum.table);
	return KD_ARGUMENT_OUT(kdsm_bdd_counts, &sum, counts);
}

/*
 * Workers increment their counts without atomics, which cost time in every step. A reader sees
 * some recent value; the sanitizer cannot know that this is enough.
 */
__attribute__((no_sanitize("thread")))
uint64_t kd_tasks_so_far(struct kdsm_bdd_store *store)
{
	struct kdsm_bdd_worker *w;
	uint64_t tasks;

	kd_mutex_lock(&store->lock);
	tasks = store->gone.tasks;
	for (w = store->workers; w; w = w->next)
		tasks += __atomic_load_n(&w->tasks, __ATOMIC_RELAXED);
	kd_mutex_unlock(&store->lock);
	return tasks;
}

int kdsm_bdd_error(struct kdsm_bdd_worker *worker)
{
	int error = worker->error;

	worker->error = 0;
	return error;
}

int kdsm_bdd_counts(const struct kdsm_bdd_worker *worker, struct kdsm_bdd_counts *counts)
{
	struct kdsm_bdd_counts own = {
		.tasks = worker->tasks,
		.hits = worker->hits,
		.home_get = worker->home_get,
		.home_hit = worker->home_hit,
		.home_put = worker->home_put,
		.table.argsz = sizeof(own.table),
	};

	kdsm_table_counts(worker->table, &own.table);
	return KD_ARGUMENT_OUT(kdsm_bdd_counts, &own, counts);
}

void kdsm_bdd_private(struct kdsm_bdd_worker *worker, int on)
{
	if (kd_of_pool(worker))
		kd_end(worker, kd_failure(-EDEADLK));
	else
		worker->private = on;
}

uint64_t kdsm_bdd_private_digest(const struct kdsm_bdd_store *store)
{
	return store->own.digest;
}

kdsm_bdd kd_fail(struct kdsm_bdd_worker *w, int error)
{
	w->why = error;
	return kd_failure(error);
}

kdsm_bdd kd_end(struct kdsm_bdd_worker *w, kdsm_bdd result)
{
	if (kd_valid(result))
		return result;
	if (!w->error && result != KDSM_BDD_INVALID)
		w->error = -(int)(result & 0xffff);
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
 * Fetch nodes that the caller is about to read, so that the caller waits once for all nodes
 * of other parts. Ignore failures, because the read itself will fail.
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
	uint64_t hash, number;
	int r;

	if (w->private) {
		r = kd_private_put(w->own, node, &number);
	} else {
		hash = kd_hash(node->a, node->b);
		r = kd_home(w->store->table, node, hash);
		if (r >= 0)
			r = kd_table_put(w->table, node, hash, r, &number);
	}
	return r < 0 ? kd_fail(w, r) : number;
}
