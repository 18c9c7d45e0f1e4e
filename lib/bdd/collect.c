// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Garbage collection: the order of its phases, its threads, its boxes, and the public
 * functions. Marking, of nodes and of results that stay in the operation cache, is in
 * collect_mark.c; sweeping and filling the index are in collect_sweep.c.
 *
 * The gang's steps are the only synchronisation between members. After a member has closed a
 * step, all that the other members did in this step has taken effect.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "core/core.h"

/* Number of live nodes above which a table with size slots in use grows */
#define GROW_ABOVE(size)	((size) / 2)

/* ---- threads ---- */

static void *thread(void *data)
{
	struct kd_crew *me = data;
	struct kd_collector *c = me->collector;
	int r = c->work(me), none = 0;

	if (r < 0)
		__atomic_compare_exchange_n(&c->error, &none, r, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	return NULL;
}

/* Run work on every thread, and return when all threads have ended. */
int kd_collector_run(struct kd_collector *c, int (*work)(struct kd_crew *me))
{
	unsigned int i, started;

	c->work = work;
	c->idle = 0;
	/* If a thread cannot be created, the others do its work and count it as idle. */
	for (started = 1; started < c->threads; started++)
		if (kd_thread_start(&c->crew[started].thread, 0, thread, &c->crew[started]))
			break;
	kd_mutex_lock(&c->lock);
	__atomic_store_n(&c->idle, c->idle + c->threads - started, __ATOMIC_RELAXED);
	kd_cond_broadcast(&c->change);
	kd_mutex_unlock(&c->lock);
	thread(&c->crew[0]);
	for (i = 1; i < started; i++)
		kd_thread_join(&c->crew[i].thread, KDSM_FOREVER);
	return c->error;
}

/* ---- boxes ---- */

/* Offset, in the sender's part, of the box for a destination in the set of a step */
static uint64_t box_place(const struct kd_collector *c, uint64_t step, unsigned int to)
{
	const struct kd_opcache *cache = &c->store->cache;

	return cache->offset + (step % 2 * cache->parts + to) * (c->box_words + 1) *
	       sizeof(uint64_t);
}

static uint64_t *own_box(const struct kd_collector *c, unsigned int to)
{
	return (void *)((char *)kdsm_region_part(c->table->region) + box_place(c, c->step, to));
}

/* Append a thread's words for a part to the box. -ENOBUFS: the box is full. */
static int empty_buffer(struct kd_crew *me, unsigned int part)
{
	struct kd_collector *c = me->collector;
	struct kd_buffer *out = &me->out[part];
	uint64_t *box = own_box(c, part);
	int r = 0;

	kd_mutex_lock(&c->lock);
	if (box[0] + out->count > c->box_words) {
		r = -ENOBUFS;
	} else {
		memcpy(&box[1 + box[0]], out->word, out->count * sizeof(*out->word));
		box[0] += out->count;
		c->posted += out->count;
		out->count = 0;
	}
	kd_mutex_unlock(&c->lock);
	return r;
}

int kd_post(struct kd_crew *me, unsigned int part, const uint64_t *words, unsigned int count)
{
	struct kd_buffer *out = &me->out[part];
	int r;

	if (out->count == KD_BUFFER) {
		r = empty_buffer(me, part);
		if (r < 0)
			return r;
	}
	memcpy(&out->word[out->count], words, count * sizeof(*words));
	out->count += count;
	return 0;
}

bool kd_next_source(struct kd_collector *c, unsigned int *part)
{
	const unsigned int parts = c->table->parts;
	unsigned int i;

	if (c->step == 1)	/* before the first step no member has written to a box */
		return false;
	/* Threads call this function often: write to the shared word only if a box may be left. */
	if (__atomic_load_n(&c->source, __ATOMIC_RELAXED) + 1 >= parts)
		return false;
	i = __atomic_add_fetch(&c->source, 1, __ATOMIC_RELAXED);
	if (i >= parts)
		return false;
	*part = (c->table->self + i) % parts;
	return true;
}

int kd_box_count(struct kd_crew *me, unsigned int part, uint64_t *count)
{
	struct kd_collector *c = me->collector;
	int r = kdsm_get(c->table->region, part, box_place(c, c->step - 1, c->table->self),
			 count, sizeof(*count));

	return r < 0 ? r : *count > c->box_words ? -EIO : 0;
}

int kd_box_get(struct kd_crew *me, unsigned int part, uint64_t at, uint64_t count)
{
	struct kd_collector *c = me->collector;

	return kdsm_get(c->table->region, part, box_place(c, c->step - 1, c->table->self) +
			(1 + at) * sizeof(uint64_t), me->chunk, count * sizeof(uint64_t));
}

/* ---- steps ---- */

static int add_up(void *context, uint64_t *mine, const uint64_t *theirs)
{
	unsigned int i;

	(void)context;
	for (i = 0; i < KD_GANG_WORDS; i++)
		mine[i] += theirs[i];
	return 0;
}

/* Meet all members. Each gets the sums of all members' words. */
static int meet(struct kd_collector *c, uint64_t *words)
{
	int r = kd_gang_gather(c->gang, words, add_up, NULL);

	return r < 0 ? r : kd_gang_scatter(c->gang, words);
}

int kd_collector_step(struct kd_collector *c, int (*work)(struct kd_crew *me), bool *over)
{
	const unsigned int parts = c->table->parts;
	uint64_t words[KD_GANG_WORDS] = { 0 };
	unsigned int i, part;
	int r;

	c->step++;
	c->source = 0;
	c->posted = 0;
	c->left = 0;
	for (part = 0; parts > 1 && part < parts; part++)
		own_box(c, part)[0] = 0;
	r = kd_collector_run(c, work);
	for (i = 0; r == 0 && i < c->threads; i++) {
		for (part = 0; part < parts; part++)
			if (c->crew[i].out[part].count && empty_buffer(&c->crew[i], part) < 0)
				c->left++;
		c->left += c->crew[i].stack.count + c->crew[i].end - c->crew[i].slot;
	}
	c->left += c->pool.count + c->roots.count;
	if (r < 0)
		return r;
	words[0] = c->posted;
	words[1] = c->left;
	r = meet(c, words);
	*over = !words[0] && !words[1];
	return r;
}

/* ---- a collection ---- */

static int set_up(struct kd_collector *c)
{
	const unsigned int parts = c->table->parts;
	unsigned int i;

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->change, NULL);
	c->box_words = c->store->cache.count * sizeof(struct kd_result) / sizeof(uint64_t) /
		       (2 * parts) - 1;
	c->crew = calloc(c->threads, sizeof(*c->crew));
	c->room = calloc(c->table->slots / c->table->block, sizeof(*c->room));
	c->filter = parts > 1 ? calloc(KD_FILTER, sizeof(*c->filter)) : NULL;
	if (!c->crew || !c->room || (parts > 1 && !c->filter))
		return -ENOMEM;
	for (i = 0; i < c->threads; i++) {
		c->crew[i].collector = c;
		c->crew[i].out = calloc(parts, sizeof(*c->crew[i].out));
		if (!c->crew[i].out)
			return -ENOMEM;
	}
	return 0;
}

static void tear_down(struct kd_collector *c)
{
	unsigned int i;

	for (i = 0; c->crew && i < c->threads; i++) {
		free(c->crew[i].stack.word);
		free(c->crew[i].out);
	}
	free(c->crew);
	free(c->room);
	free(c->filter);
	free(c->pool.word);
	free(c->roots.word);
	pthread_cond_destroy(&c->change);
	pthread_mutex_destroy(&c->lock);
}

static int move_results(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	struct kd_opcache *cache = &c->store->cache;
	uint64_t from, to;

	while (from = c->from + KD_ENTRIES * __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED),
	       from < c->to) {
		to = c->to - from < KD_ENTRIES ? c->to : from + KD_ENTRIES;
		kd_spend(KD_ENTRIES / KD_ENTRIES_A_STEP);
		kd_opcache_move(cache, from, to, kd_opcache_more(cache));
	}
	return 0;
}

/*
 * Grow the cache and keep its results. The threads together move only entries whose new places
 * are behind all old ones: about the upper half, then the upper half of the rest. One thread moves
 * the last few.
 */
static int grow_cache(struct kd_collector *c)
{
	struct kd_opcache *cache = &c->store->cache;
	const uint64_t count = cache->count, more = kd_opcache_more(cache);
	int r = 0;

	if (more == count)
		return 0;
	for (c->to = count; r == 0; c->to = c->from) {
		unsigned __int128 scaled = (unsigned __int128)c->to * (more - count);

		c->from = c->to - scaled / more;
		if (c->to - c->from <= c->threads * KD_ENTRIES)
			break;
		c->next = 0;
		r = kd_collector_run(c, move_results);
	}
	if (r < 0)
		return r;
	kd_spend(c->to / KD_ENTRIES_A_STEP);
	kd_opcache_move(cache, 0, c->to, more);
	cache->count = more;
	return 0;
}

/*
 * Grow the table and the cache. All nodes compute the same sizes, because all inputs are
 * the same on all nodes.
 */
static int grow(struct kd_collector *c, uint64_t alive)
{
	struct kdsm_table *t = c->table;
	const uint64_t most = t->slots / t->block;
	uint64_t limit = t->limit;
	bool must = c->flags & KD_GROW;
	int r = 0;

	while (r == 0 && limit < most &&
	       (must || alive > GROW_ABOVE(limit * t->block * t->parts))) {
		must = false;
		limit = 2 * limit < most ? 2 * limit : most;
		if (c->keep || c->results)
			r = grow_cache(c);
		else
			c->store->cache.count = kd_opcache_more(&c->store->cache);
	}
	kd_table_resize(t, limit);
	return r;
}

static int collect(struct kd_collector *c, struct kdsm_bdd_collection *collection)
{
	uint64_t words[KD_GANG_WORDS] = { 0 }, size;
	const struct kd_opcache *cache = &c->store->cache;
	struct kdsm_table *t = c->table;
	int r;

	words[0] = kd_table_used_here(t);
	r = meet(c, words);
	if (r < 0)
		return r;
	collection->before = words[0];
	r = c->keep ? 0 : kd_mark(c);
	if (r == 0 && c->results)
		r = kd_keep_results(c);
	if (r == 0)
		r = kd_sweep(c);
	if (r < 0)
		return r;

	memset(words, 0, sizeof(words));
	words[0] = c->alive;
	r = meet(c, words);
	if (r < 0)
		return r;
	collection->after = words[0];
	r = grow(c, words[0]);
	if (r < 0)
		return r;
	size = kd_table_size(t);
	kd_list_blocks(c, c->flags & KD_RESERVE && words[0] < size / 4 * 3);
	r = kd_fill_index(c);
	if (r == 0 && !c->keep && !c->results)	/* the boxes were in the cache until now */
		r = kd_clear(c, cache->entries, cache->count * sizeof(*cache->entries));
	if (r < 0)
		return r;
	collection->size = size;
	kd_table_restart(t, c->alive, words[0] < size ? words[0] * 65000 / size : 65000);
	/* No member uses the table before the parts of all members are ready. */
	memset(words, 0, sizeof(words));
	return meet(c, words);
}

int kd_collect(struct kdsm_bdd_store *store, struct kd_gang *gang, unsigned int threads,
	       unsigned int flags, const kdsm_bdd *roots, uint64_t count,
	       struct kdsm_bdd_collection *collection)
{
	struct kd_collector c = {
		.store = store, .table = store->table, .gang = gang,
		.threads = threads ? threads : 1, .flags = flags,
		.keep = flags & KD_KEEP && store->table->parts == 1,
		.results = flags & KD_RESULTS && !(flags & KD_KEEP) && store->table->parts == 1,
	};
	enum kd_phase phase = kd_phase(KD_PHASE_COLLECT);
	uint64_t began = kdsm_now();
	int r;

	r = set_up(&c);
	if (r == 0 && !c.keep)
		r = kd_refs_list(&store->refs, &c.roots);
	while (r == 0 && !c.keep && count--)
		r = kd_stack_push(&c.roots, roots[count]);
	if (r == 0)
		r = collect(&c, collection);
	tear_down(&c);
	kd_phase(phase);
	collection->seconds = (kdsm_now() - began) / 1e9;
	return r;
}

int kd_grow_cache(struct kdsm_bdd_store *store, unsigned int threads)
{
	struct kd_collector c = {
		.store = store, .table = store->table, .threads = threads ? threads : 1,
	};
	enum kd_phase phase = kd_phase(KD_PHASE_COLLECT);
	int r = set_up(&c);

	if (r == 0)
		r = grow_cache(&c);
	tear_down(&c);
	kd_phase(phase);
	return r;
}

int kdsm_bdd_collect(struct kdsm_bdd_store *store, unsigned int threads, uint64_t timeout,
		     struct kdsm_bdd_collection *collection)
{
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	int r = 0;

	if (collection)
		r = KD_ARGUMENT_OUT(kdsm_bdd_collection, &result, collection);
	if (r < 0)
		return r;
	if (kd_bdd_inside(store))
		return kd_because(-EDEADLK,
				  "kdsm_bdd_collect: the caller is a task of a job that works on the store");
	if (store->gang_failed)
		return kd_because(-EIO, "kdsm_bdd_collect: an earlier collection failed");
	if (!store->gang.region)
		r = kd_gang_join(&store->gang, store->table->region, store->gang_offset, timeout);
	store->gang.timeout = timeout;
	if (r == 0)
		r = kd_collect(store, &store->gang, threads, 0, NULL, 0, &result);
	if (r == 0 && collection)
		KD_ARGUMENT_OUT(kdsm_bdd_collection, &result, collection);
	if (r == -EBUSY) {
		kd_gang_leave(&store->gang);
	} else if (r < 0) {
		store->gang_failed = true;
		kd_gang_abort(&store->gang, r);
	}
	return r;
}
