// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How a search fits into the table of its node. It collects garbage when an operation finds the
 * table full, and after a round if the next round would probably fill the table: a round
 * that fills the table loses the results of its operations that fail.
 *
 * If the table cannot take the slice even directly after a collection, it grows. If it is at its
 * bound, the search takes half as many relations at a time, because the results of single
 * relations are garbage as soon as they are united. For a single relation it also uses the table's
 * reserve. If the reserve does not suffice, the table is too small. So after every collection a
 * slice succeeds, the slice shrinks, the room grows, or the search ends. When slices succeed
 * without a collection, their size doubles.
 *
 * Saturation grows the table before it collects garbage, because its results in the
 * operation cache refer to nodes that only they need: growth keeps all results, a collection those
 * of live nodes (KD_RESULTS). The last collection before the search gives up keeps none, because
 * results keep nodes alive. Saturation also lets the operation cache grow without the table, when
 * the cache loses many results that are needed again (opcache_ghost.c).
 *
 * The other strategies collect garbage, keep the results of live nodes and grow the
 * table, all in one collection, while the table is small compared with its bound. So a search has
 * the few steps of a large table, but touches only as much memory as it needs. Growth without a
 * collection would cost these strategies more, because most of their nodes are garbage.
 */
#include <stdlib.h>

#include "internal.h"

/* Bit of an order that asks for a collection; the other bits are flags of kd_collect() */
#define COLLECT	(1u << 31)

/* Part of its bound up to which a table counts as small: 1 divided by this */
#define SMALL		32

/* Steps of saturation between two looks at the operation cache, for each entry, and at least */
#define STEPS_PER_ENTRY	2
#define LEAST_STEPS	100000

/* Whether the next collection also grows the table and keeps results */
static bool small(const struct kd_search *s)
{
	const struct kdsm_table *t = s->store->table;

	return !s->saturation && t->limit <= t->slots / t->block / SMALL;
}

/* Number of nodes that the table holds without its reserve */
static uint64_t table_size(const struct kd_search *s)
{
	const struct kdsm_table *t = s->store->table;

	return (t->limit - kd_reserve(t->limit)) * t->block * t->parts - 1;
}

static void next_slice(struct kd_search *s)
{
	unsigned int left = s->model.relations - s->from;

	s->to = s->from + (s->room.slice < left ? s->room.slice : left);
}

/*
 * Saturation keeps no reserve in the table: it stops by itself before the table is full, so
 * that its tasks can make the few nodes that keep what they have found.
 */
static void set_stop(struct kd_search *s)
{
	const struct kdsm_table *t = s->store->table;
	uint64_t size = t->limit * t->block * t->parts - 1, stop = UINT64_MAX;

	if (s->saturation && !s->room.all)
		stop = (s->room.alive + (size - s->room.alive) / 8 * 7) / t->parts;
	__atomic_store_n(&s->room.stop, stop, __ATOMIC_RELAXED);
}

/*
 * Begin to look whether the operation cache is too small for saturation, which then lets the cache
 * grow without the table. Breadth-first search does not look, because few of its results are needed
 * again in a later round.
 */
static void watch_cache(struct kd_search *s)
{
	struct kd_room *room = &s->room;
	struct kdsm_bdd_store *store = s->store;

	room->cache_small = false;
	room->steps = 0;
	room->enough = STEPS_PER_ENTRY * store->cache.count;
	if (room->enough < LEAST_STEPS)
		room->enough = LEAST_STEPS;
	free(store->ghost);
	store->ghost = NULL;
	if (s->saturates && kd_cache_can_grow(store))
		store->ghost = kd_ghost_new(store->cache.count);
}

bool kd_room_outgrown(struct kd_search *s, uint64_t steps)
{
	struct kd_room *room = &s->room;

	if (!s->store->ghost)
		return false;
	if (__atomic_load_n(&room->cache_small, __ATOMIC_RELAXED))
		return true;
	if (__atomic_add_fetch(&room->steps, steps, __ATOMIC_RELAXED) < room->enough)
		return false;
	__atomic_store_n(&room->steps, 0, __ATOMIC_RELAXED);
	if (!kd_ghost_tell(s->store->ghost))
		return false;
	__atomic_store_n(&room->cache_small, true, __ATOMIC_RELAXED);
	return true;
}

bool kd_room_begins_again(const struct kd_search *s)
{
	return s->room.cache_small && !kd_in_clusters(&s->model);
}

/* The search can go on without a larger cache, if there is no memory to move the results. */
static int grow_cache(struct kd_search *s)
{
	int r = kd_grow_cache(s->store, s->options->workers);

	watch_cache(s);
	if (r != -ENOMEM)
		return r;
	free(s->store->ghost);
	s->store->ghost = NULL;
	return 0;
}

void kd_room_prepare(struct kd_search *s)
{
	struct kdsm_table *t = s->store->table;

	t->reserve = s->saturates ? 0 : kd_reserve(t->limit);
	watch_cache(s);
}

void kd_room_begin(struct kd_search *s)
{
	s->room.slice = s->model.relations;
	s->room.fresh = false;
	s->room.all = false;
	set_stop(s);
	s->from = 0;
	next_slice(s);
}

/* Select the remedy for a full table. Only rounds breadth first or with chaining have slices. */
static int make_room(struct kd_search *s, bool slices, uint64_t *order)
{
	struct kd_room *room = &s->room;
	bool all = false;

	*order = s->saturation ? COLLECT : COLLECT | KD_RESERVE;
	if (s->saturation && kd_can_grow(s->store)) {
		*order |= KD_GROW | KD_KEEP;
		return 0;
	}
	if (small(s)) {
		*order |= KD_GROW | KD_RESULTS;
	} else if (room->fresh) {
		if (kd_can_grow(s->store))
			*order |= KD_GROW;
		else if (slices && s->to - s->from > 1)
			room->slice = (s->to - s->from) / 2;
		else if (!room->all)
			all = true;
		else
			return -ENOSPC;
	}
	if (all)
		*order = COLLECT;
	else if (s->saturation)
		*order |= KD_RESULTS;
	room->fresh = true;
	room->all = all;
	return 0;
}

/*
 * Tell after a round whether to collect before the next one: the next round may need more
 * nodes than are free, and more than a quarter of the table was filled since the last
 * collection.
 */
static bool ahead(struct kd_search *s, uint64_t used)
{
	struct kd_room *room = &s->room;
	uint64_t size = table_size(s), spent = used > room->used ? used - room->used : 0;
	uint64_t left = size > used ? size - used : 0;

	room->used = used;
	return left < spent + spent / 2 && used > room->alive + size / 4;
}

/* The slice from s->from to s->to has been taken, and the states that it found are kept. */
void kd_room_progress(struct kd_search *s)
{
	struct kd_room *room = &s->room;

	if (s->from == s->to)
		return;
	if (!room->fresh && room->slice < s->model.relations)
		room->slice *= 2;
	room->fresh = false;
	s->from = s->to;
}

int kd_room_plan(struct kd_search *s, enum kd_outcome outcome)
{
	uint64_t used = kd_table_flushed(s->store->table);
	struct kd_room *room = &s->room;
	bool more = s->options->deadlocks || s->options->trace;
	uint64_t order = 0;
	int r = 0;

	if (outcome == KD_FULL && s->room.cache_small) {
		next_slice(s);
		return grow_cache(s);
	}
	if (outcome == KD_FULL) {
		r = make_room(s, !s->saturation, &order);
	} else if (outcome != KD_SLICE_DONE) {
		s->from = 0;
		/* an operation after the search fails if the table is full: nothing repeats it */
		if (outcome == KD_SEARCH_DONE ? more && used > table_size(s) / 4 : ahead(s, used)) {
			order = outcome == KD_SEARCH_DONE ? COLLECT : COLLECT | KD_RESERVE;
			if (s->saturation && outcome != KD_SEARCH_DONE)
				order |= KD_RESULTS;
			else if (small(s) && outcome != KD_SEARCH_DONE)
				order |= KD_GROW | KD_RESULTS;
			room->fresh = true;
			room->all = false;
		}
	}
	next_slice(s);
	return r < 0 || !order ? r : kd_room_collect(s, order);
}

/* The edges that the search keeps between rounds */
static kdsm_bdd *roots(struct kd_search *s, uint64_t *count)
{
	uint64_t frontiers = s->frontier ? s->levels : 0, n = 0, i;
	uint64_t more = s->more_roots ? s->more_roots(s, NULL) : 0;
	kdsm_bdd *root;

	root = malloc((4 + frontiers + s->model.properties + more) * sizeof(*root));
	if (!root)
		return NULL;
	if (more)
		n += s->more_roots(s, root + n);
	root[n++] = s->found;
	root[n++] = s->visited;
	root[n++] = s->current;
	root[n++] = s->loaded;
	for (i = 0; i < frontiers; i++)
		root[n++] = s->frontier[i];
	for (i = 0; s->bad && i < s->model.properties; i++)
		root[n++] = s->bad[i];
	*count = n;
	return root;
}

int kd_room_make(struct kd_search *s)
{
	uint64_t order;
	int r = make_room(s, false, &order);

	return r < 0 ? r : kd_room_collect(s, order);
}

int kd_room_grow(struct kd_search *s)
{
	if (kd_can_grow(s->store))
		return kd_room_collect(s, s->saturation ? KD_GROW : KD_GROW | KD_RESERVE);
	if (s->room.all)
		return -ENOSPC;
	s->room.all = true;
	return kd_room_collect(s, 0);
}

int kd_room_collect(struct kd_search *s, uint64_t order)
{
	struct kdsm_bdd_collection c = { .argsz = sizeof(c) };
	const uint64_t entries = s->store->cache.count;
	uint64_t count;
	kdsm_bdd *root = roots(s, &count);
	int r;

	if (!root)
		return -ENOMEM;
	s->saved = KDSM_BDD_FALSE;	/* is no root; the checkpoint has it */
	r = kd_collect(s->store, s->gang, s->options->workers,
		       order & (KD_GROW | KD_RESERVE | KD_KEEP | KD_RESULTS), root, count, &c);
	free(root);
	if (r < 0)
		return r;
	s->room.alive = c.after;
	s->room.used = c.after;
	set_stop(s);
	if (s->store->cache.count != entries || !(order & (KD_KEEP | KD_RESULTS)))
		watch_cache(s);
	if (order & KD_KEEP)
		return 0;
	s->room.sum.count++;
	s->room.sum.nodes += c.before - c.after;
	s->room.sum.seconds += c.seconds;
	return 0;
}
