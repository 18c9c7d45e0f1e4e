/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the BDD package: the store, its workers, and the three things that
 * every recursive step does: read nodes, consult the cache, make a node.
 */
#ifndef KD_BDD_INT_H
#define KD_BDD_INT_H

#include <errno.h>

#include <kdsm/bdd.h>

#include "opcache.h"
#include "table_int.h"

#define KD_EDGE		(KDSM_BDD_COMPLEMENT | KDSM_NUMBER_MASK)
#define KD_VARIABLE_SHIFT	KDSM_NUMBER_BITS
#define KD_NO_VARIABLE	(UINT32_C(1) << 24)	/* below the terminal */

/* Numbers from here on are of the process's own store; the table ends before. */
#define KD_PRIVATE_FIRST	(UINT64_C(1) << (KDSM_NUMBER_BITS - 1))

enum {
	KD_OP_AND = 1, KD_OP_ITE, KD_OP_EXISTS, KD_OP_AND_EXISTS, KD_OP_SUCCESSORS,
	KD_OP_PREDECESSORS, KD_OP_RESTRICT, KD_OP_COMPOSE,
};

/* The process's own nodes (private.c). Number KD_PRIVATE_FIRST + i is nodes[i]. */
struct kd_private {
	struct kdsm_node *nodes;
	uint64_t count, capacity;
	uint64_t *index;	/* place in nodes plus 1, 0 for empty */
	uint64_t index_size;	/* a power of two */
	uint64_t digest;
};

struct kdsm_bdd_store {
	struct kdsm_table *table;
	struct kd_opcache cache;
	struct kd_private own;
	unsigned int granularity;
};

struct kdsm_bdd_worker {
	/* copies, for speed */
	const struct kdsm_node *data;
	uint64_t first, slots;
	struct kdsm_table_worker *table;
	struct kd_opcache *cache;
	struct kd_private *own;
	bool alone;		/* one node: everything is in the own part */
	bool private;		/* makes private nodes */
	int error;
	uint64_t tasks, hits, home_get, home_hit, home_put;
	struct kdsm_bdd_store *store;
};

/* private.c */
void kd_private_destroy(struct kd_private *own);
int kd_private_put(struct kd_private *own, const struct kdsm_node *node,
		   uint64_t *number);

/* bdd.c */
kdsm_bdd kd_fail(struct kdsm_bdd_worker *w, int error);
bool kd_node_elsewhere(struct kdsm_bdd_worker *w, uint64_t number,
		       struct kdsm_node *node);
void kd_nodes_ahead(struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		    unsigned int count);
kdsm_bdd kd_make_elsewhere(struct kdsm_bdd_worker *w, const struct kdsm_node *node);

/* bdd_ops.c */
kdsm_bdd kd_and(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b, uint32_t above);
kdsm_bdd kd_or(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b, uint32_t above);

static inline bool kd_valid(kdsm_bdd e)
{
	return e != KDSM_BDD_INVALID;
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
 * The node (variable, high, low), reduced. Its index entry goes to the part
 * where its high child lies (or else its low child): a node makes its nodes in
 * its own part, so what it builds on top of them it mostly finds and puts there
 * without any operation, where a home by hash would be remote for all but one
 * in cluster_nodes. Only nodes above terminals are spread by hash.
 */
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

		return e == KDSM_BDD_INVALID ? e : e ^ complement;
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

#endif /* KD_BDD_INT_H */
