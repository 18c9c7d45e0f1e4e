// SPDX-License-Identifier: GPL-2.0
/*
 * Collections: protected nodes survive with their numbers, all other nodes are freed, equal
 * functions have equal edges afterwards, and memory that holds no BDD does no harm.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd.h"
#include "bdd/bdd.h"

#define TIMEOUT		UINT64_C(10000000000)
#define VARIABLES	24
#define FUNCTIONS	32

/* ---- a collection, by one thread for every node ---- */

struct call {
	pthread_t thread;
	struct kdsm_bdd_store *store;
	struct kdsm_bdd_collection result;
	unsigned int threads;
	int status;
};

static void *call(void *data)
{
	struct call *c = data;

	c->status = kdsm_bdd_collect(c->store, c->threads, TIMEOUT, &c->result);
	return NULL;
}

static int collect(struct fixture *f, unsigned int threads, struct kdsm_bdd_collection *result)
{
	struct call calls[SIM_NODES];
	unsigned int i;
	int status = 0;

	for (i = 0; i < f->nodes; i++) {
		calls[i] = (struct call){
			.store = f->store[i], .threads = threads,
			.result.argsz = sizeof(calls[i].result),
		};
		assert_int_equal(pthread_create(&calls[i].thread, NULL, call, &calls[i]), 0);
	}
	for (i = 0; i < f->nodes; i++) {
		pthread_join(calls[i].thread, NULL);
		if (calls[i].status && (!status || status == -ECANCELED))
			status = calls[i].status;
	}
	*result = calls[0].result;
	for (i = 0; !status && i < f->nodes; i++) {
		assert_int_equal(calls[i].result.before, result->before);
		assert_int_equal(calls[i].result.after, result->after);
		assert_int_equal(calls[i].result.size, result->size);
	}
	return status;
}

/* ---- functions, each from a seed ---- */

static uint64_t step(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Combine some cubes, by workers of all nodes in turn. */
static kdsm_bdd function(struct fixture *f, uint64_t seed)
{
	kdsm_bdd sum = KDSM_BDD_FALSE, cube;
	unsigned int i, v;
	uint64_t bits;

	seed = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (i = 0; i < 6; i++) {
		cube = KDSM_BDD_TRUE;
		step(&seed);
		bits = step(&seed);
		for (v = VARIABLES; v--; ) {
			if (bits >> 2 * v & 2)
				continue;
			cube = bits >> 2 * v & 1 ?
			       kdsm_bdd_make(w(f), v, cube, KDSM_BDD_FALSE) :
			       kdsm_bdd_make(w(f), v, KDSM_BDD_FALSE, cube);
		}
		sum = i % 3 ? kdsm_bdd_or(w(f), sum, cube) : kdsm_bdd_xor(w(f), sum, cube);
	}
	assert_true(kd_valid(sum));
	return sum;
}

/* ---- reachable nodes, by number ---- */

struct shadow {
	struct kdsm_node *node;		/* by number; zero: not reachable */
	uint64_t count, size;
};

static void add_reachable(struct fixture *f, struct shadow *shadow, kdsm_bdd e)
{
	struct kd_walk walk;
	struct kdsm_node node;
	uint64_t i;

	assert_int_equal(kd_walk(&walk, w(f), e), 0);
	for (i = 1; i <= walk.count; i++) {
		assert_true(walk.number[i] < shadow->size);
		node = walk.node[i];
		node.a &= ~KD_NODE_OLD;
		assert_true(node.a | node.b);
		if (!(shadow->node[walk.number[i]].a | shadow->node[walk.number[i]].b)) {
			shadow->node[walk.number[i]] = node;
			shadow->count++;
		}
	}
	kd_walk_destroy(&walk);
}

static void look_at(struct fixture *f, struct shadow *shadow, const kdsm_bdd *e, unsigned int count)
{
	const struct kdsm_table *t = f->store[0]->table;

	shadow->size = t->slots * t->parts;
	shadow->count = 0;
	shadow->node = calloc(shadow->size, sizeof(*shadow->node));
	while (count--)
		add_reachable(f, shadow, e[count]);
}

/* The parts hold exactly the nodes of the shadow, and the index has each of them once. */
static void check_memory(struct fixture *f, const struct shadow *shadow)
{
	uint64_t number, slot, indexed = 0, e;
	uint8_t *seen = calloc(shadow->size, 1);
	const struct kdsm_table *t;
	struct kdsm_node node;
	unsigned int i;

	for (i = 0; i < f->nodes; i++) {
		t = f->store[i]->table;
		for (slot = 0; slot < t->slots; slot++) {
			node = t->data[slot];
			assert_int_equal(node.a & KD_NODE_MARK, 0);
			node.a &= ~KD_NODE_OLD;
			assert_true(kd_node_equal(&node, &shadow->node[t->first + slot]));
		}
		for (slot = 0; slot < t->index_size; slot++) {
			e = t->index[slot];
			if (!e)
				continue;
			assert_true(kdsm_entry_whole(e));
			number = kdsm_entry_number(e);
			assert_true(number < shadow->size && !seen[number]);
			assert_true(shadow->node[number].a | shadow->node[number].b);
			seen[number] = 1;
			indexed++;
		}
	}
	assert_int_equal(indexed, shadow->count);
	free(seen);
}

/* ---- tests ---- */

/*
 * Build functions, protect and unprotect them at some node, and collect in between. A
 * function that is built again has the same edge.
 */
static void keep_and_drop(unsigned int nodes, unsigned int threads, struct kdsm_bdd_attr attr,
			  unsigned int rounds)
{
	kdsm_bdd kept[FUNCTIONS], e;
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	unsigned int kept_at[FUNCTIONS], n, i, round;
	uint64_t seeds[FUNCTIONS], next = 1, used, size, garbage = 0;
	struct shadow shadow;
	struct fixture f;

	begin_with(&f, nodes, attr);
	for (n = 0; n < FUNCTIONS / 2; n++) {
		seeds[n] = next++;
		kept[n] = function(&f, seeds[n]);
		kept_at[n] = n % nodes;
		assert_int_equal(kdsm_bdd_protect(f.store[kept_at[n]], kept[n]), 0);
	}
	for (round = 0; round < rounds; round++) {
		/* replace one protected function, and build some that no node protects */
		i = random64() % n;
		kdsm_bdd_unprotect(f.store[kept_at[i]], kept[i]);
		seeds[i] = next++;
		kept[i] = function(&f, seeds[i]);
		kept_at[i] = random64() % nodes;
		assert_int_equal(kdsm_bdd_protect(f.store[kept_at[i]], kept[i]), 0);
		for (i = 0; i < 3; i++)
			function(&f, next++);

		look_at(&f, &shadow, kept, n);
		assert_int_equal(collect(&f, threads, &result), 0);
		assert_int_equal(result.after, shadow.count);
		assert_true(result.before >= result.after && result.size > result.after);
		garbage += result.before - result.after;
		assert_int_equal(kdsm_table_usage(f.store[0]->table, &used, &size), 0);
		assert_int_equal(used, shadow.count);
		assert_int_equal(size, result.size);
		check_memory(&f, &shadow);
		for (i = 0; i < n; i++) {
			e = function(&f, seeds[i]);
			assert_int_equal(e, kept[i]);
		}
		free(shadow.node);
		for (i = 0; i < n; i++) {
			look_at(&f, &shadow, &kept[i], 1);
			free(shadow.node);
		}
	}
	printf("# %u nodes: %lu alive, %lu collected, room %lu\n", nodes, result.after, garbage,
	       result.size);
	assert_true(garbage > rounds * 100);
	end(&f);
}

/* Node i of a sequence of distinct nodes, above at most 201 nodes that they share */
static kdsm_bdd pair(struct fixture *f, unsigned int i)
{
	const unsigned int high = i % 200, low = i / 200 % 200;

	return kdsm_bdd_make(w(f), i / 40000, kdsm_bdd_variable(w(f), 100 + high),
			     kdsm_bdd_variable(w(f), 100 + low + (low >= high)));
}

/* In a table nearly full of live nodes every node is found again, however far from its place. */
static void crowd(unsigned int nodes)
{
	static const struct kdsm_bdd_attr size = {
		.argsz = sizeof(size),
		.table_bytes = 1 << 18,
		.cache_bytes = 1 << 16,
	};
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	uint64_t used, room, i, n;
	struct shadow shadow;
	struct fixture f;
	kdsm_bdd *kept;

	begin_with(&f, nodes, size);
	assert_int_equal(kdsm_table_usage(f.store[0]->table, &used, &room), 0);
	n = room * 24 / 25 - 201;
	kept = calloc(n, sizeof(*kept));
	for (i = 0; i < n; i++) {
		kept[i] = pair(&f, i);
		assert_true(kd_valid(kept[i]));
		assert_int_equal(kdsm_bdd_protect(f.store[i % nodes], kept[i]), 0);
	}
	look_at(&f, &shadow, kept, n);
	assert_true(shadow.count >= room * 24 / 25 - 201);
	for (i = 0; i < 2; i++) {
		assert_int_equal(collect(&f, 2, &result), 0);
		assert_int_equal(result.after, shadow.count);
		check_memory(&f, &shadow);
	}
	for (i = 0; i < n; i++)
		assert_int_equal(pair(&f, i), kept[i]);
	free(shadow.node);
	free(kept);
	end(&f);
}

static void crowded(void **state)
{
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++)
		crowd(nodes);
}

static const struct kdsm_bdd_attr roomy = {
	.argsz = sizeof(roomy),
	.table_bytes = 2 << 20,
	.cache_bytes = 1 << 20,
};

/* The garbage of all rounds would fill the table many times. */
static const struct kdsm_bdd_attr tight = {
	.argsz = sizeof(tight),
	.table_bytes = 1 << 17,
	.cache_bytes = 1 << 16,
};

/* Boxes hold a few words, so that threads stop at full boxes all the time. */
static const struct kdsm_bdd_attr no_cache = {
	.argsz = sizeof(no_cache),
	.table_bytes = 1 << 17,
	.cache_bytes = 1,
};

static void one_node(void **state)
{
	(void)state;
	keep_and_drop(1, 1, roomy, 5);
	keep_and_drop(1, 1, tight, 40);
	keep_and_drop(1, 4, tight, 10);
}

static void two_nodes(void **state)
{
	(void)state;
	keep_and_drop(2, 1, roomy, 3);
	keep_and_drop(2, 1, tight, 20);
	keep_and_drop(2, 3, tight, 10);
}

static void three_nodes(void **state)
{
	(void)state;
	keep_and_drop(3, 2, tight, 10);
	keep_and_drop(3, 2, no_cache, 3);
	keep_and_drop(3, 1, no_cache, 3);
}

/* While most nodes are alive, the table grows, and the cache with it. */
static void growth(void **state)
{
	static const struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = 1 << 20, .cache_bytes = 1 << 18,
		.first_table_bytes = 1 << 15, .first_cache_bytes = 1 << 13,
	};
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	uint64_t size, most, first, cache, seed = 1;
	unsigned int nodes, n;
	kdsm_bdd kept[8];
	struct fixture f;

	(void)state;
	for (nodes = 1; nodes <= 2; nodes++) {
		begin_with(&f, nodes, attr);
		most = f.store[0]->table->slots * nodes - 1;
		cache = f.store[0]->cache.count;
		assert_int_equal(kdsm_table_usage(f.store[0]->table, &size, &first), 0);
		assert_true(first < most / 16);
		for (n = 0; n < 8; n++) {
			kept[n] = function(&f, seed++);
			assert_int_equal(kdsm_bdd_protect(f.store[0], kept[n]), 0);
			assert_int_equal(collect(&f, 1, &result), 0);
			assert_true(result.after * 2 <= result.size + 2);
		}
		assert_true(result.size >= 2 * first && result.size <= most);
		assert_true(f.store[0]->cache.count >= 2 * cache);
		for (n = 8; n--; )
			assert_int_equal(kept[n], function(&f, seed - 8 + n));
		end(&f);
	}
}

/*
 * On one node a table can grow without a loss: all nodes keep their numbers, and all results
 * stay in the operation cache. A node that no index entry leads to does not come to life.
 */
static void lossless_growth(void **state)
{
	static const struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = 1 << 20, .cache_bytes = 1 << 19,
		.first_table_bytes = 1 << 17, .first_cache_bytes = 1 << 17,
	};
	const uint64_t seed = 77;
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	struct kdsm_bdd_worker *w;
	struct kdsm_table *t;
	uint64_t size, used, cache, steps;
	kdsm_bdd kept[FUNCTIONS / 4];
	struct fixture f;
	unsigned int n;

	(void)state;
	begin_with(&f, 1, attr);
	w = f.worker[0];
	t = f.store[0]->table;
	assert_int_equal(collect(&f, 1, &result), 0);	/* joins the gang */
	while (kd_can_grow(f.store[0])) {
		for (n = 0; n < FUNCTIONS / 4; n++)
			kept[n] = function(&f, seed + n);
		t->data[w->table->next - t->first] = t->data[kd_number(kept[0])];
		used = kd_table_used_here(t);
		size = kd_table_size(t);
		cache = f.store[0]->cache.count;
		assert_int_equal(kd_collect(f.store[0], &f.store[0]->gang, 1, KD_GROW | KD_KEEP,
					    kept, 1, &result), 0);
		assert_int_equal(result.before, used);
		assert_int_equal(result.after, used);
		assert_true(result.size > size);
		assert_true(f.store[0]->cache.count > cache || cache == f.store[0]->cache.most);
		steps = w->tasks - w->hits;
		for (n = 0; n < FUNCTIONS / 4; n++)
			assert_int_equal(kept[n], function(&f, seed + n));
		assert_int_equal(kd_table_used_here(t), used);
		/* nearly every operation finds its result at once: the cache is lossy */
		assert_true(w->tasks - w->hits - steps < 100);
	}
	end(&f);
}

/* ---- results that stay in the operation cache ---- */

#define RESULTS	32	/* results of a turn */

/* The value of a function for an assignment: bit v is the value of variable v */
static bool value(struct fixture *f, kdsm_bdd e, uint64_t assignment)
{
	kdsm_bdd high, low;
	uint32_t v;

	while (!kd_terminal(e)) {
		assert_int_equal(kdsm_bdd_look(w(f), e, &v, &high, &low), 0);
		e = assignment >> v & 1 ? high : low;
	}
	return e == KDSM_BDD_TRUE;
}

/* Result i of two functions. At the assignment, compare it with the functions themselves. */
static kdsm_bdd result_of(struct fixture *f, const kdsm_bdd *kept, unsigned int i, uint64_t at)
{
	const kdsm_bdd a = kept[i % 4], b = kept[i / 4 % 4], c = kept[(i + 3) % 4];
	const uint64_t other = at ^ UINT64_C(1) << i % VARIABLES;
	kdsm_bdd e, x;
	bool expected;

	switch (i % 5) {
	case 0:
		e = kdsm_bdd_and(w(f), a, kdsm_bdd_not(b));
		expected = value(f, a, at) && !value(f, b, at);
		break;
	case 1:
		e = kdsm_bdd_ite(w(f), a, b, c);
		expected = value(f, a, at) ? value(f, b, at) : value(f, c, at);
		break;
	case 2:
		x = kdsm_bdd_variable(w(f), i % VARIABLES);
		e = kdsm_bdd_exists(w(f), a, x);
		expected = value(f, a, at) || value(f, a, other);
		break;
	case 3:
		x = kdsm_bdd_variable(w(f), i % VARIABLES);
		e = kdsm_bdd_and_exists(w(f), a, b, x);
		expected = (value(f, a, at) && value(f, b, at)) ||
			   (value(f, a, other) && value(f, b, other));
		break;
	default:
		e = kdsm_bdd_compose(w(f), a, i % VARIABLES, b);
		expected = value(f, a, (at & ~(UINT64_C(1) << i % VARIABLES)) |
				 (uint64_t)value(f, b, at) << i % VARIABLES);
		break;
	}
	assert_true(kd_valid(e));
	assert_int_equal(value(f, e, at), expected);
	return e;
}

/* Whether the collection that has just ended left the node of an edge in the table */
static bool is_alive(const struct kdsm_table *t, kdsm_bdd e)
{
	uint64_t number = kd_number(e);

	if (!number || number >= KD_PRIVATE_FIRST)
		return true;
	return number < t->slots && t->data[number].a & KD_NODE_OLD;
}

/* Every entry of the cache names only nodes that are alive. Return the number of entries. */
static uint64_t check_entries(const struct fixture *f)
{
	static const unsigned int edges[KD_OPERATIONS] = {
		[KD_OP_AND] = 2, [KD_OP_ITE] = 3, [KD_OP_EXISTS] = 2, [KD_OP_AND_EXISTS] = 3,
		[KD_OP_COMPOSE] = 2, [KD_OP_SATURATE] = 1,
	};
	const struct kd_opcache *cache = &f->store[0]->cache;
	const struct kdsm_table *t = f->store[0]->table;
	uint64_t count = 0, i;

	for (i = 0; i < cache->count; i++) {
		const struct kd_result *e = &cache->entries[i];
		struct kd_operation o = kd_result_operation(e);
		unsigned int n;

		if (!e->check)
			continue;
		assert_true(kd_result_whole(e));
		assert_int_not_equal(edges[o.op], 0);
		for (n = 0; n < edges[o.op]; n++)
			assert_true(is_alive(t, o.operand[n]));
		assert_true(is_alive(t, e->value));
		count++;
	}
	return count;
}

/* Store an entry. planted() tells whether it is still there. */
static struct kd_key plant(struct fixture *f, struct kd_key key, uint64_t value)
{
	kd_opcache_put(&f->store[0]->cache, &key, value);
	return key;
}

static bool planted(struct fixture *f, struct kd_key key)
{
	uint64_t ignored;

	return kd_opcache_get(&f->store[0]->cache, &key, &ignored);
}

/*
 * When the cache grows, by several threads or one, all its results stay, and all other entries are
 * empty. If the cache does not become twice as large, a result is lost if another takes its place.
 */
static void moved_results(void **state)
{
	const uint64_t few = 1 << 13, sizes[] = { 2 * few, few + few / 4, few + 3 };
	struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = 1 << 20, .first_table_bytes = 1 << 19,
		.first_cache_bytes = few * sizeof(struct kd_result),
	};
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	unsigned int threads, i;
	uint64_t before, after, full, n;
	struct kd_opcache *cache;
	struct fixture f;

	(void)state;
	for (i = 0; i < 6; i++) {
		threads = 1 + i / 3 * 2;
		attr.cache_bytes = sizes[i % 3] * sizeof(struct kd_result);
		begin_with(&f, 1, attr);
		assert_int_equal(collect(&f, 1, &result), 0);	/* joins the gang */
		cache = &f.store[0]->cache;
		assert_int_equal(cache->count, few);
		memset(cache->entries + few, 0xff, (cache->most - few) * sizeof(*cache->entries));
		for (n = 0; n < few; n++)
			plant(&f, kd_key(KD_OP_AND, n, 3 * n, 0), n);
		for (n = 0, before = 0; n < few; n++)
			before += planted(&f, kd_key(KD_OP_AND, n, 3 * n, 0));
		assert_int_equal(kd_collect(f.store[0], &f.store[0]->gang, threads,
					    KD_GROW | KD_KEEP, NULL, 0, &result), 0);
		assert_int_equal(cache->count, sizes[i % 3]);
		for (n = 0, after = 0; n < few; n++)
			after += planted(&f, kd_key(KD_OP_AND, n, 3 * n, 0));
		for (n = 0, full = 0; n < cache->count; n++)
			full += !!cache->entries[n].check;
		printf("# %u threads, %lu entries: %lu results of %lu stay\n", threads,
		       cache->count, after, before);
		assert_int_equal(full, after);
		assert_true(before > few / 2 && after <= before && after > before / 100 * 80);
		assert_true(after == before || i % 3);
		end(&f);
	}
}

/* The cache grows without the table, up to its bound. */
static void grown_cache(void **state)
{
	const uint64_t few = 1 << 13;
	struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = 1 << 20, .first_table_bytes = 1 << 19,
		.cache_bytes = 3 * few * sizeof(struct kd_result),
		.first_cache_bytes = few * sizeof(struct kd_result),
	};
	struct kdsm_bdd_store *store;
	struct fixture f;
	uint64_t limit, n, stay;

	(void)state;
	begin_with(&f, 1, attr);
	store = f.store[0];
	limit = store->table->limit;
	for (n = 0; n < 100; n++)
		plant(&f, kd_key(KD_OP_AND, n, 3 * n, 0), n);
	assert_true(kd_cache_can_grow(store));
	assert_int_equal(kd_grow_cache(store, 3), 0);
	assert_int_equal(store->cache.count, 2 * few);
	assert_true(kd_cache_can_grow(store));
	assert_int_equal(kd_grow_cache(store, 1), 0);
	assert_int_equal(store->cache.count, 3 * few);
	assert_false(kd_cache_can_grow(store));
	assert_int_equal(kd_grow_cache(store, 1), 0);
	assert_int_equal(store->cache.count, 3 * few);
	assert_int_equal(store->table->limit, limit);
	for (n = 0, stay = 0; n < 100; n++)
		stay += planted(&f, kd_key(KD_OP_AND, n, 3 * n, 0));
	assert_true(stay >= 95);
	end(&f);
}

static void miss(struct kd_ghost *ghost, uint64_t from, uint64_t to)
{
	uint64_t i;

	for (i = from; i < to; i++)
		kd_ghost_miss(ghost, kd_key_hash(i, 0));
}

/* Misses tell that a cache is small if a larger one would have had the results. */
static void ghosts(void **state)
{
	const uint64_t tags = 8000, entries = tags * KD_GHOST_SAMPLE / 8;
	struct kd_ghost *ghost = kd_ghost_new(entries);

	(void)state;
	assert_non_null(ghost);
	miss(ghost, 0, tags / 4);
	assert_false(kd_ghost_tell(ghost));	/* each result was new */
	miss(ghost, 0, tags / 4);
	assert_true(kd_ghost_tell(ghost));
	assert_false(kd_ghost_tell(ghost));	/* no misses since then */
	miss(ghost, 0, 10);
	assert_false(kd_ghost_tell(ghost));	/* too few to tell */
	miss(ghost, 0, 10 * tags);
	kd_ghost_tell(ghost);
	miss(ghost, 0, 10 * tags);
	assert_false(kd_ghost_tell(ghost));	/* a larger cache would be too small, too */
	free(ghost);
	ghost = kd_ghost_new(1);
	assert_non_null(ghost);
	miss(ghost, 0, 100);
	free(ghost);
}

/*
 * Collect with the given flags while only four functions are roots, and compute results of them
 * again, in a table that then reuses the numbers of dead nodes. Return the steps that were not
 * in the cache directly after the collections.
 */
static uint64_t repeat(struct kdsm_bdd_attr attr, unsigned int threads, unsigned int flags,
		       unsigned int turns)
{
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	uint64_t steps = 0, before, seed;
	kdsm_bdd kept[4], no_root;
	struct kd_key dead, stays, beyond;
	struct kdsm_bdd_worker *w;
	unsigned int n, turn;
	struct fixture f;

	begin_with(&f, 1, attr);
	w = f.worker[0];
	assert_int_equal(collect(&f, 1, &result), 0);	/* joins the gang */
	for (turn = 0, seed = 1; turn < turns; turn++, seed += 4) {
		for (n = 0; n < 4; n++)
			kept[n] = function(&f, seed + n);
		for (n = 0; n < RESULTS; n++)
			result_of(&f, kept, n, random64());
		no_root = kdsm_bdd_make(w, 50 + turn, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
		dead = plant(&f, kd_key(KD_OP_AND, kept[0], no_root, 0), kept[1]);
		beyond = plant(&f, kd_key(KD_OP_AND, kept[0], f.store[0]->table->slots + turn, 0),
			       kept[1]);
		/* the second and third operand are no edges */
		stays = plant(&f, kd_key(KD_OP_SATURATE, kept[0], no_root, 1 + turn), kept[1]);
		assert_int_equal(kd_collect(f.store[0], &f.store[0]->gang, threads, flags, kept, 4,
					    &result), 0);
		assert_false(planted(&f, dead));
		assert_false(planted(&f, beyond));
		assert_int_equal(planted(&f, stays), flags == KD_RESULTS);
		assert_int_equal(check_entries(&f) > 10, flags == KD_RESULTS);
		before = w->tasks - w->hits;
		for (n = 0; n < RESULTS; n++)
			result_of(&f, kept, n, random64());
		steps += w->tasks - w->hits - before;
		for (n = 0; n < 4; n++)	/* garbage takes the numbers of dead nodes */
			function(&f, 1000 + seed + n);
		for (n = 0; n < RESULTS; n++)
			result_of(&f, kept, n, random64());
	}
	end(&f);
	return steps;
}

/*
 * A collection that keeps results drops those that name a dead node, and only those. Where the
 * table has room, all results of live operands come back without a step.
 */
static void results(void **state)
{
	static const struct kdsm_bdd_attr medium = {
		.argsz = sizeof(medium), .table_bytes = 1 << 19, .cache_bytes = 1 << 18,
	};
	uint64_t with, without;
	unsigned int threads;

	(void)state;
	for (threads = 1; threads <= 3; threads += 2) {
		without = repeat(roomy, threads, 0, 6);
		with = repeat(roomy, threads, KD_RESULTS, 6);
		printf("# %lu steps after collections, %lu with results\n", without, with);
		assert_true(with < without / 10);
		/* in this table, new nodes soon take the numbers of dead ones */
		without = repeat(medium, threads, 0, 12);
		with = repeat(medium, threads, KD_RESULTS, 12);
		printf("# in a small table: %lu and %lu\n", without, with);
		assert_true(with < without);
	}
}

/* A node that was protected n times by a process needs n calls to unprotect by that process. */
static void references(void **state)
{
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	unsigned int i, n;
	struct fixture f;
	kdsm_bdd a, many[300];

	(void)state;
	begin_with(&f, 2, roomy);
	assert_int_equal(kdsm_bdd_protect(f.store[0], KDSM_BDD_INVALID), -EINVAL);
	assert_int_equal(kdsm_bdd_protect(f.store[0], KDSM_BDD_TRUE), 0);
	kdsm_bdd_unprotect(f.store[0], KDSM_BDD_TRUE);
	a = function(&f, 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(kdsm_bdd_protect(f.store[0], i % 2 ? a : kdsm_bdd_not(a)), 0);
	for (i = 0; i < 3; i++) {
		kdsm_bdd_unprotect(f.store[1], a);
		assert_int_equal(collect(&f, 1, &result), 0);
		assert_true(result.after > 0);
		kdsm_bdd_unprotect(f.store[0], a);
	}
	assert_int_equal(collect(&f, 1, &result), 0);
	assert_int_equal(result.after, 0);
	for (n = 0; n < 300; n++) {
		many[n] = kdsm_bdd_variable(w(&f), n);
		assert_int_equal(kdsm_bdd_protect(f.store[n % 2], many[n]), 0);
	}
	assert_int_equal(collect(&f, 1, &result), 0);
	assert_int_equal(result.after, 300);
	for (n = 0; n < 300; n += 2)
		kdsm_bdd_unprotect(f.store[0], many[n]);
	assert_int_equal(collect(&f, 1, &result), 0);
	assert_int_equal(result.after, 150);
	for (n = 1; n < 300; n += 2)
		assert_int_equal(kdsm_bdd_variable(w(&f), n), many[n]);
	end(&f);
}

/* The memory of the store holds any values: a collection may fail, but must end. */
static void damaged(void **state)
{
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	unsigned int round, i, k, failed = 0;
	struct kdsm_table *t;
	struct fixture f;

	(void)state;
	for (round = 0; round < 60; round++) {
		begin_with(&f, 1 + round % 3, tight);
		for (i = 0; i < 3; i++)
			assert_int_equal(kdsm_bdd_protect(f.store[i % f.nodes],
							  function(&f, i + 1)), 0);
		if (round % 2)
			assert_int_equal(collect(&f, 1, &result), 0);
		for (i = 0; i < 1 + round; i++) {
			uint64_t value = random64() >> random64() % 64;

			t = f.store[i % f.nodes]->table;
			k = random64() % t->slots;
			switch (random64() % 6) {
			case 0:
				t->header->blocks = value;
				break;
			case 1:
				t->header->listed = value;
				break;
			case 2:
				t->header->list[k % t->limit] = value;
				break;
			case 3:
				t->index[k % t->index_size] = value;
				break;
			case 4:
				t->data[k % 600].a = value;
				break;
			default:
				t->data[k % 600].b = value;
			}
		}
		/*
		 * Other nodes can write the words that coordinate a collection, so a
		 * failure is final for all.
		 */
		failed += collect(&f, 1 + round % 2, &result) < 0;
		for (i = 0; i < f.nodes; i++)
			if (f.store[i]->gang_failed)
				assert_int_equal(kdsm_bdd_collect(f.store[i], 1, TIMEOUT, NULL),
						 -EIO);
		end(&f);
	}
	assert_true(failed > 5);
}

/*
 * A slot between survivors is being filled while another node reads a survivor behind the
 * slot. The other node must not cache what it then sees in the slot.
 */
static void windows(void **state)
{
	const struct kdsm_node first = { KDSM_BDD_TRUE, UINT64_C(7) << KD_VARIABLE_SHIFT };
	const struct kdsm_node second = { KDSM_BDD_TRUE, UINT64_C(8) << KD_VARIABLE_SHIFT };
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	struct kdsm_table_worker *own, *other;
	uint64_t number, again, old;
	struct kdsm_node node;
	struct kdsm_table *t;
	struct fixture f;

	(void)state;
	begin_with(&f, 2, tight);
	t = f.store[0]->table;
	own = f.worker[0]->table;
	other = f.worker[1]->table;
	for (f.turn = 0; f.turn < 8; f.turn++)
		kdsm_bdd_make(f.worker[0], 20 + f.turn, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
	old = own->next - 1;
	assert_int_equal(kdsm_bdd_protect(f.store[0], old), 0);
	assert_int_equal(collect(&f, 1, &result), 0);
	assert_int_equal(result.after, 1);

	/* take slots up to the block of the survivor */
	do {
		own->next = own->end;
		assert_int_equal(kd_table_take(own, &first, &number), 0);
		assert_int_equal(kdsm_table_part(t, number), 0);
	} while (number / t->block != old / t->block);
	assert_true(number < old);
	assert_int_equal(kdsm_table_read(other, old, &node), 0);
	assert_int_equal(kd_table_take(own, &second, &again), 0);
	assert_int_equal(again, number);
	assert_int_equal(kdsm_table_read(other, number, &node), 0);
	assert_true(kd_node_equal(&node, &second));
	end(&f);
}

/* The other node does not take part. */
static void alone(void **state)
{
	struct kdsm_bdd_collection result = { .argsz = sizeof(result) };
	struct fixture f;

	(void)state;
	begin_with(&f, 2, roomy);
	assert_int_equal(kdsm_bdd_collect(f.store[0], 1, 300000000, &result), -ETIMEDOUT);
	assert_int_equal(kdsm_bdd_collect(f.store[0], 1, TIMEOUT, &result), -EIO);
	assert_int_equal(kdsm_bdd_collect(f.store[1], 1, TIMEOUT, &result), -ECANCELED);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth),
		cmocka_unit_test(lossless_growth),
		cmocka_unit_test(moved_results),
		cmocka_unit_test(grown_cache),
		cmocka_unit_test(ghosts),
		cmocka_unit_test(results),
		cmocka_unit_test(references),
		cmocka_unit_test(crowded),
		cmocka_unit_test(damaged),
		cmocka_unit_test(windows),
		cmocka_unit_test(alone),
		cmocka_unit_test(one_node),
		cmocka_unit_test(two_nodes),
		cmocka_unit_test(three_nodes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
