/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the BDD package: the store, its workers, and the three things that
 * every recursive step does: read nodes, consult the cache, make a node.
 */
#ifndef KD_BDD_INT_H
#define KD_BDD_INT_H

#include <errno.h>
#include <pthread.h>

#include <kdsm/bdd.h>
#include <kdsm/task.h>

#include "core/core.h"
#include "opcache.h"
#include "refs.h"
#include "table/table.h"

#define KD_EDGE		(KDSM_BDD_COMPLEMENT | KDSM_NUMBER_MASK)
#define KD_VARIABLE_SHIFT	KDSM_NUMBER_BITS
#define KD_NO_VARIABLE	(UINT32_C(1) << 24)	/* below the terminal */

/* Numbers from here on are of the process's own store; the table ends before. */
#define KD_PRIVATE_FIRST	(UINT64_C(1) << (KDSM_NUMBER_BITS - 1))

enum {
	KD_OP_AND = 1, KD_OP_ITE, KD_OP_EXISTS, KD_OP_AND_EXISTS, KD_OP_SUCCESSORS,
	KD_OP_PREDECESSORS, KD_OP_RESTRICT, KD_OP_COMPOSE, KD_OP_SATURATE,
};

/* The process's own nodes (private.c). Number KD_PRIVATE_FIRST + i is nodes[i]. */
struct kd_private {
	struct kdsm_node *nodes;
	uint64_t count, capacity;
	uint64_t *index;	/* place in nodes plus 1, 0 for empty */
	uint64_t index_size;	/* a power of two */
	uint64_t digest;
};

/*
 * A bit that a relation speaks of: its current variable, and the cube of it and the later
 * ones. Behind the bits of a relation is one of KD_NO_VARIABLE. Those of all relations
 * are in one array of the store, so that a number says where a product is, on any node:
 * all processes make the same relations in the same order.
 */
struct kd_bit {
	uint32_t variable;
	kdsm_bdd rest;
};

struct kdsm_relation {
	kdsm_bdd relation;	/* private */
	uint32_t at, count;	/* its bits in the store */
};

#define KD_BACKWARD	(UINT32_C(1) << 31)	/* beside the number: predecessors */

struct kdsm_bdd_store {
	struct kdsm_table *table;
	struct kd_opcache cache;
	struct kd_private own;
	struct kd_bit *bits;
	uint32_t bit_count, bit_room;
	unsigned int granularity;
	void *context;		/* of who made the store, for tasks of its own */

	pthread_mutex_t lock;	/* of what follows */
	struct kdsm_bdd_worker *workers;
	struct kdsm_bdd_counts gone;	/* of workers that are no more */
	struct kd_refs refs;
	struct kd_gang gang;		/* of kdsm_bdd_collect(), from its first call on */
	uint64_t gang_offset;		/* of every part */
	bool gang_failed;
};

/*
 * A worker is of a pool, where it is the context of the tasks' worker, or for a thread that
 * is of none: then it has a deque of its own, and runs what it spawns. The library's own
 * tasks go with the tasks' worker and head; the public operations need a place, which a
 * pool's worker has while it is in the task of a user.
 */
struct kdsm_bdd_worker {
	/* copies, for speed */
	const struct kdsm_node *data;
	uint64_t first, slots;
	struct kdsm_table_worker *table;
	struct kd_opcache *cache;
	struct kd_private *own;
	bool alone;		/* one node: everything is in the own part */
	bool private;		/* makes private nodes */
	int why;		/* of the last failed step */
	uint64_t tasks, hits, home_get, home_hit, home_put;
	struct kdsm_bdd_store *store;

	int error;		/* of the first failed operation */
	struct kdsm_bdd_place *place;	/* where these spawn, or NULL: the innermost */

	/* Not of workers of a pool. */
	struct kdsm_bdd_place always;	/* tasks is NULL in others */
	struct kdsm_task *head;
	struct kdsm_tasks *pool;	/* that runs its operations, or NULL */

	struct kdsm_bdd_worker *next;	/* of the store's */
};

/* private.c */
void kd_private_destroy(struct kd_private *own);
int kd_private_put(struct kd_private *own, const struct kdsm_node *node,
		   uint64_t *number);

/*
 * Inside of operations a failure is an edge with its errno, so that it comes from thieves
 * to owners as any result does. The public functions make KDSM_BDD_INVALID of it.
 */
#define KD_FAILURE	(UINT64_C(1) << 62)

static inline kdsm_bdd kd_failure(int error)
{
	return KD_FAILURE | (unsigned int)-error;
}

/*
 * bdd.c: the failure of a step, which w->why tells until the next one; and the result of a
 * public operation, whose failure is noted for kdsm_bdd_error(). A step may be of another
 * worker's operation, so it does not do that.
 */
kdsm_bdd kd_fail(struct kdsm_bdd_worker *w, int error);
kdsm_bdd kd_end(struct kdsm_bdd_worker *w, kdsm_bdd result);
bool kd_node_elsewhere(struct kdsm_bdd_worker *w, uint64_t number,
		       struct kdsm_node *node);
void kd_nodes_ahead(struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		    unsigned int count);
kdsm_bdd kd_make_elsewhere(struct kdsm_bdd_worker *w, const struct kdsm_node *node);

/* The operations, as tasks. above: see kd_descends(). */
#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(kdsm_bdd, kd_and, kdsm_bdd, a, kdsm_bdd, b, uint32_t, above)
KDSM_TASK_DECLARE(kdsm_bdd, kd_ite, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, c, uint32_t, above)
/* at: a number of a bit, with KD_BACKWARD or without. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_product, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at, uint32_t, above)
#pragma GCC visibility pop

/* Of valid operands, where KDSM_CALL() may be. */
#define KD_OR(a, b, above) \
	((KDSM_CALL(kd_and, (a) ^ KDSM_BDD_COMPLEMENT, (b) ^ KDSM_BDD_COMPLEMENT, above)) ^ \
	 KDSM_BDD_COMPLEMENT)

static inline bool kd_of_pool(const struct kdsm_bdd_worker *w)
{
	return !w->always.tasks;
}

/* Whether the caller is a task of a pool that works on the store. */
bool kd_bdd_inside(const struct kdsm_bdd_store *store);

/*
 * A task, from a public function: by the pool of the worker; or by itself, as where private
 * nodes are made and in tasks. The result is in *result; an errno of KDSM_RUN().
 */
#define KD_RUN(worker, result, f, ...) ({ \
	struct kdsm_bdd_worker *kd_by = (worker); \
	__typeof__(result) kd_to = (result); \
	int kd_ret = 0; \
	if (kd_by->pool && !kd_by->private) \
		kd_ret = KDSM_RUN(kd_by->pool, kd_to, f, __VA_ARGS__); \
	else if (kd_likely(kd_by->place)) \
		*kd_to = f##_kdsm_call(kd_by->place->tasks, *kd_by->place->head, __VA_ARGS__); \
	else \
		kd_ret = -EDEADLK; \
	kd_ret; \
})

/* An operation likewise. */
#define KD_OPERATE(worker, f, ...) ({ \
	struct kdsm_bdd_worker *kd_whose = (worker); \
	kdsm_bdd kd_result; \
	int kd_error = KD_RUN(kd_whose, &kd_result, f, __VA_ARGS__); \
	kd_end(kd_whose, kd_error ? kd_failure(kd_error) : kd_result); \
})

static inline bool kd_valid(kdsm_bdd e)
{
	return !(e & KD_FAILURE);
}

/* What a step returns that could not read or make a node. */
static inline kdsm_bdd kd_give_up(const struct kdsm_bdd_worker *w)
{
	return kd_failure(w->why);
}

static inline uint64_t kd_number(kdsm_bdd e)
{
	return e & KDSM_NUMBER_MASK;
}

static inline bool kd_terminal(kdsm_bdd e)
{
	return !kd_number(e);
}

static inline uint32_t kd_variable(const struct kdsm_node *node)
{
	return node->b >> KD_VARIABLE_SHIFT;
}

static inline kdsm_bdd kd_high(const struct kdsm_node *node, kdsm_bdd e)
{
	return (node->a & KD_EDGE) ^ (e & KDSM_BDD_COMPLEMENT);
}

static inline kdsm_bdd kd_low(const struct kdsm_node *node, kdsm_bdd e)
{
	return (node->b & KDSM_NUMBER_MASK) ^ (e & KDSM_BDD_COMPLEMENT);
}

/* The node of an edge that is no terminal. False: the worker has an error. */
static inline bool kd_node(struct kdsm_bdd_worker *w, kdsm_bdd e,
			   struct kdsm_node *node)
{
	uint64_t slot = kd_number(e) - w->first;

	if (kd_likely(slot < w->slots)) {
		*node = kd_node_load(&w->data[slot]);
		return true;
	}
	return kd_node_elsewhere(w, kd_number(e), node);
}

/* The same, where the edge is likely to be private. */
static inline bool kd_node_private(struct kdsm_bdd_worker *w, kdsm_bdd e,
				   struct kdsm_node *node)
{
	uint64_t i = kd_number(e) - KD_PRIVATE_FIRST;

	if (kd_likely(i < w->own->count)) {
		*node = w->own->nodes[i];
		return true;
	}
	return kd_node(w, e, node);
}

/* Variable and cofactors of a; of a terminal, KD_NO_VARIABLE. */
struct kd_top {
	uint32_t variable;
	kdsm_bdd high, low;
};

static inline bool kd_top(struct kdsm_bdd_worker *w, kdsm_bdd e, struct kd_top *top)
{
	struct kdsm_node node;

	if (!kd_node(w, e, &node))
		return false;
	top->variable = kd_variable(&node);
	top->high = kd_high(&node, e);
	top->low = kd_low(&node, e);
	return true;
}

static inline void kd_split(const struct kd_top *top, kdsm_bdd e, uint32_t variable,
			    kdsm_bdd *high, kdsm_bdd *low)
{
	bool here = top->variable == variable;

	*high = here ? top->high : e;
	*low = here ? top->low : e;
}

/*
 * Every step goes down to greater variables. Memory of which this is not true
 * holds no BDD; without this check it could make the recursion endless.
 * above is 1 + the variable of the step before, 0 for the first.
 */
static inline bool kd_descends(struct kdsm_bdd_worker *w, uint32_t variable,
			       uint32_t above)
{
	if (kd_likely(variable >= above && variable < KD_NO_VARIABLE))
		return true;
	kd_fail(w, -EIO);
	return false;
}

/*
 * Where the index entry of a node is: in the part where its high child lies (or
 * else its low child). A cluster node makes its nodes in its own part, so what it
 * builds on top of them it mostly finds and puts there without any operation, where
 * a home by hash would be remote for all but one in cluster_nodes. Only nodes above
 * terminals are spread by hash. -EIO: the children are not of the table.
 */
static inline int kd_home(const struct kdsm_table *t, const struct kdsm_node *node,
			  uint64_t hash)
{
	uint64_t child = kd_number(node->a);

	if (!child)
		child = kd_number(node->b);
	if (!child)	/* which is in part 0, but belongs to none */
		return kd_table_home(t, hash);
	if (child - t->first < t->slots)
		return t->self;
	return child < t->slots * t->parts ? (int)(child / t->slots) : -EIO;
}

/* The node (variable, high, low), reduced. */
static inline kdsm_bdd kd_make(struct kdsm_bdd_worker *w, uint32_t variable,
			       kdsm_bdd high, kdsm_bdd low)
{
	kdsm_bdd complement = low & KDSM_BDD_COMPLEMENT;
	struct kdsm_node node;
	uint64_t number;
	int r;

	if (low == high)
		return low;
	node.a = high ^ complement;
	node.b = (low ^ complement) | (uint64_t)variable << KD_VARIABLE_SHIFT;
	if (kd_unlikely(w->private || !w->alone)) {
		kdsm_bdd e = kd_make_elsewhere(w, &node);

		return kd_valid(e) ? e ^ complement : e;
	}
	r = kd_table_put(w->table, &node, kd_hash(node.a, node.b), 0, &number);
	if (kd_unlikely(r < 0))
		return kd_fail(w, r);
	return number | complement;
}

static inline bool kd_cache_get(struct kdsm_bdd_worker *w, const struct kd_key *key,
				kdsm_bdd *result)
{
	w->tasks++;
	if (!kd_opcache_get(w->cache, key, result))
		return false;
	*result &= KD_EDGE;	/* whatever is stored there, it is an edge */
	w->hits++;
	return true;
}

static inline void kd_cache_put(struct kdsm_bdd_worker *w, const struct kd_key *key,
				kdsm_bdd result)
{
	kd_opcache_put(w->cache, key, result);
}

/* Variable v, above those of rest, has that value, and rest. */
static inline kdsm_bdd kd_literal(struct kdsm_bdd_worker *w, uint32_t v, bool value,
				  kdsm_bdd rest)
{
	return value ? kdsm_bdd_make(w, v, rest, KDSM_BDD_FALSE) :
	       kdsm_bdd_make(w, v, KDSM_BDD_FALSE, rest);
}

#endif /* KD_BDD_INT_H */
