/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internals of the BDD package, for the files in lib/bdd and lib/reach that define
 * operations on BDDs, read and write them, or collect garbage. Programs use <kdsm/bdd.h>.
 * The unique table that stores the nodes is in lib/table. internal.h has what only garbage
 * collection needs.
 */
#ifndef KD_BDD_H
#define KD_BDD_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kdsm/bdd.h>
#include <kdsm/task.h>

#include "bdd/opcache.h"
#include "core/core.h"
#include "table/table.h"

/* ---- refs.c ---- */

/* A stack of words. */
struct kd_stack {
	uint64_t *word;
	uint64_t count, capacity;
};

/* Push a word. Return 0 or -ENOMEM. */
int kd_stack_push(struct kd_stack *stack, uint64_t word);

/* A hash table that counts how many times each node number is protected. */
struct kd_refs {
	pthread_mutex_t lock;
	struct kd_ref {
		uint64_t number, count;
	} *slot;
	uint64_t size, used;		/* used: occupied slots, those with count 0 included */
};

/* Push all protected numbers. Return 0 or -ENOMEM. */
int kd_refs_list(struct kd_refs *refs, struct kd_stack *stack);

/* ---- the store, its workers, and operations ---- */

#define KD_EDGE		(KDSM_BDD_COMPLEMENT | KDSM_NUMBER_MASK)
#define KD_VARIABLE_SHIFT	KDSM_NUMBER_BITS
#define KD_NO_VARIABLE	(UINT32_C(1) << 24)	/* the terminal's; greater than every variable */

/* Numbers of private nodes begin here; the table's numbers are lower. */
#define KD_PRIVATE_FIRST	(UINT64_C(1) << (KDSM_NUMBER_BITS - 1))

/* The operations. collect_mark.c knows which of their operands are edges. */
enum {
	KD_OP_AND = 1, KD_OP_ITE, KD_OP_EXISTS, KD_OP_AND_EXISTS, KD_OP_SUCCESSORS,
	KD_OP_PREDECESSORS, KD_OP_RESTRICT, KD_OP_COMPOSE, KD_OP_SATURATE, KD_OP_FIRE, KD_OP_IMAGE,
	KD_OP_PACK,
};

/*
 * The private nodes of this process (own_nodes.c). Node nodes[i] has number
 * KD_PRIVATE_FIRST + i.
 */
struct kd_private {
	struct kdsm_node *nodes;
	uint64_t count, capacity;
	uint64_t *index;	/* index into nodes plus 1; 0: empty */
	uint64_t index_size;	/* a power of two */
	uint64_t digest;
};

/*
 * A bit that a relation reads or writes: its current variable, and the cube of the current
 * variables from this bit to the relation's last bit. An entry with KD_NO_VARIABLE ends the
 * bits of each relation. One array of the store holds the bits of all relations. All
 * processes make the same relations in the same order, so an index into the array means the
 * same bit on every node, and a stolen task carries only the index.
 */
struct kd_bit {
	uint32_t variable;
	kdsm_bdd rest;
};

struct kdsm_relation {
	kdsm_bdd relation;	/* a private function */
	uint32_t at, count;	/* index and number of its bits in store->bits */
};

#define KD_BACKWARD	(UINT32_C(1) << 31)	/* flag in a bit's index: compute predecessors */

struct kdsm_bdd_store {
	struct kdsm_table *table;
	struct kd_opcache cache;
	struct kd_ghost *ghost;		/* or NULL */
	struct kd_private own;
	struct kd_bit *bits;
	uint32_t bit_count, bit_room;
	unsigned int granularity;
	bool traps;		/* variables above the bits of states are traps, not actions */
	void *context;		/* set by the creator of the store, for use in its own tasks */
	/* Products fail with -EINTR once this word, which the creator sets, is not 0; or NULL */
	const uint64_t *interrupt;

	pthread_mutex_t lock;	/* protects workers and gone */
	struct kdsm_bdd_worker *workers;
	struct kdsm_bdd_counts gone;	/* of workers that were freed */
	unsigned int numbers;		/* of workers until now */
	struct kd_refs refs;
	struct kd_gang gang;		/* joined by the first kdsm_bdd_collect() */
	uint64_t gang_offset;		/* of the gang's words in every part, in bytes */
	bool gang_failed;
};

/*
 * A worker belongs to a pool of tasks, or to a thread outside all pools. A pool's worker is
 * the context of the pool's struct kdsm_worker. A worker outside all pools has a deque of
 * its own, and its thread runs all tasks that the worker spawns. The library's own tasks
 * receive the struct kdsm_worker and the deque's head as arguments. A public operation
 * takes both from a place, and a pool's worker has a place only while it runs a user's
 * task.
 */
struct kdsm_bdd_worker {
	/* copies from the store and its table, to save dereferences */
	const struct kdsm_node *data;
	uint64_t first, slots;
	struct kdsm_table_worker *table;
	struct kd_opcache *cache;
	struct kd_private *own;
	bool alone;		/* the cluster has one node: every table node is in the own part */
	bool private;		/* kd_make() makes private nodes */
	bool simulated;		/* in a virtual run */
	uint32_t seed;		/* random bits for kd_low_first(); 0: always false */
	int why;		/* errno of the last failed step */
	uint64_t tasks, hits, home_get, home_hit, home_put;
	uint64_t told;		/* tasks that the owner of the store has noted */
	struct kdsm_bdd_store *store;

	int error;		/* errno of the first failed operation */
	struct kdsm_bdd_place *place;	/* the innermost place: operations spawn there; or NULL */

	/* Only used by workers outside all pools. */
	struct kdsm_bdd_place always;	/* always.tasks is NULL in a pool's worker */
	struct kdsm_task *head;
	struct kdsm_tasks *pool;	/* the pool that runs the operations, or NULL */

	struct kdsm_bdd_worker *next;	/* next in the store's list of workers */
};

/* own_nodes.c */
void kd_private_destroy(struct kd_private *own);
/* Find or make a private node. Returns 0 or -ENOMEM. */
int kd_private_put(struct kd_private *own, const struct kdsm_node *node,
		   uint64_t *number);

/*
 * Inside operations a failure is an edge that carries an errno, so a thief returns it to
 * the owner like any result. The public functions turn it into KDSM_BDD_INVALID.
 */
#define KD_FAILURE	(UINT64_C(1) << 62)

static inline kdsm_bdd kd_failure(int error)
{
	return KD_FAILURE | (unsigned int)-error;
}

/*
 * A relation may lead to a trap (kd_trap() in relation.c) instead of successors: a variable
 * with a number that the maker of the relation chooses. Successors of a state that leads to
 * a trap are the failure -EDOM, from which kd_trap_number() takes the trap's number plus 1.
 * Predecessors by way of a trap there are none.
 */
#define KD_FIRST_TRAP	1000000	/* variables of states are lower */
#define KD_TRAP_SHIFT	16	/* a failure has its errno below, the trap's number plus 1 above */

kdsm_bdd kd_trap(struct kdsm_bdd_worker *w, uint32_t number);

static inline kdsm_bdd kd_trapped(uint32_t variable)
{
	return kd_failure(-EDOM) | (uint64_t)(variable - KD_FIRST_TRAP + 1) << KD_TRAP_SHIFT;
}

/* 1 + the number of the trap that a failed operation met; 0: it failed otherwise */
static inline uint32_t kd_trap_number(kdsm_bdd failure)
{
	return (failure & ~KD_FAILURE) >> KD_TRAP_SHIFT;
}

/*
 * bdd.c. kd_fail() records error in w->why and returns it as an edge; w->why holds the
 * error until the next step fails. kd_end() ends a public operation: if the result is a
 * failure, kd_end() records it in w->error for kdsm_bdd_error(), and returns
 * KDSM_BDD_INVALID. A step only calls kd_fail(), because the step may belong to an operation
 * of another worker.
 */
kdsm_bdd kd_fail(struct kdsm_bdd_worker *w, int error);
kdsm_bdd kd_end(struct kdsm_bdd_worker *w, kdsm_bdd result);
/* The tasks of all workers of this process so far; workers may be computing. */
uint64_t kd_tasks_so_far(struct kdsm_bdd_store *store);
/* As kd_node(), for a node that is private or in another part. */
bool kd_node_elsewhere(struct kdsm_bdd_worker *w, uint64_t number,
		       struct kdsm_node *node);
void kd_nodes_ahead(struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		    unsigned int count);
/* As kd_make(), for a reduced node that may be private or belong in another part. */
kdsm_bdd kd_make_elsewhere(struct kdsm_bdd_worker *w, const struct kdsm_node *node);

/* relation.c: look into, and store in, the home part of a key. Return as kd_find_result(). */
int kd_home_get(struct kdsm_bdd_worker *w, const struct kd_key *key,
		kdsm_bdd *result);
int kd_home_put(struct kdsm_bdd_worker *w, const struct kd_key *key, kdsm_bdd result);

/* The operations as tasks. For "above" see kd_descends(). */
KDSM_TASK_DECLARE(kdsm_bdd, kd_and, kdsm_bdd, a, kdsm_bdd, b, uint32_t, above)
KDSM_TASK_DECLARE(kdsm_bdd, kd_ite, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, c, uint32_t, above)
/* at is the index of a bit in store->bits, optionally with KD_BACKWARD. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_product, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at, uint32_t, above)

/* The disjunction of a and b, in the body of a task. Both are valid. */
#define KD_OR(a, b, above) \
	((KDSM_CALL(kd_and, (a) ^ KDSM_BDD_COMPLEMENT, (b) ^ KDSM_BDD_COMPLEMENT, above)) ^ \
	 KDSM_BDD_COMPLEMENT)

/* Whether the worker belongs to a pool */
static inline bool kd_of_pool(const struct kdsm_bdd_worker *w)
{
	return !w->always.tasks;
}

/* Whether the calling thread is a worker of a pool that works on the store */
bool kd_bdd_inside(const struct kdsm_bdd_store *store);

/* Tell a virtual run that a worker computes without a pool. Returns an argument for the end. */
static inline enum kd_phase kd_compute_begin(const struct kdsm_bdd_worker *w)
{
	return kd_unlikely(w->simulated && !w->pool) ? kd_phase(KD_PHASE_TASKS) : KD_PHASES;
}

static inline void kd_compute_end(enum kd_phase before)
{
	if (kd_unlikely(before != KD_PHASES))
		kd_phase(before);
}

/*
 * Run task f for a public function and store its result in *result. If kdsm_bdd_use_tasks()
 * gave the worker a pool, and the worker makes no private nodes, the pool runs the task.
 * Otherwise the calling thread runs the task at the worker's place; a pool's own worker has a
 * place inside a user's task. The value is 0, an error of KDSM_RUN(), or -EDEADLK if a pool's
 * own worker is used outside a user's task.
 */
#define KD_RUN(worker, result, f, ...) ({ \
	struct kdsm_bdd_worker *kd_by = (worker); \
	__typeof__(result) kd_to = (result); \
	int kd_ret = 0; \
	if (kd_by->pool && !kd_by->private) { \
		kd_ret = KDSM_RUN(kd_by->pool, kd_to, f, __VA_ARGS__); \
	} else if (kd_likely(kd_by->place)) { \
		enum kd_phase kd_was = kd_compute_begin(kd_by); \
		*kd_to = f##_kdsm_call(kd_by->place->tasks, *kd_by->place->head, __VA_ARGS__); \
		kd_compute_end(kd_was); \
	} else { \
		kd_ret = -EDEADLK; \
	} \
	kd_ret; \
})

/* Run task f as a public operation; the value is its result, or KDSM_BDD_INVALID. */
#define KD_OPERATE(worker, f, ...) ({ \
	struct kdsm_bdd_worker *kd_whose = (worker); \
	kdsm_bdd kd_result; \
	int kd_error = KD_RUN(kd_whose, &kd_result, f, __VA_ARGS__); \
	kd_end(kd_whose, kd_error ? kd_failure(kd_error) : kd_result); \
})

/* Whether the edge is no failure. KDSM_BDD_INVALID counts as a failure. */
/* -EINVAL, with the reason */
static inline int kd_invalid_edge(void)
{
	return kd_because(-EINVAL, "a function is KDSM_BDD_INVALID: an operation failed earlier");
}

static inline int kd_variable_above(uint32_t variable)
{
	return kd_because(-EINVAL, "variable %u is above KDSM_BDD_MAX_VARIABLE", variable);
}

static inline bool kd_valid(kdsm_bdd e)
{
	return !(e & KD_FAILURE);
}

/* The result of a step that could not read or make a node. */
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

/*
 * Load the node of an edge. The edge is not a terminal. On failure return false and set
 * w->why.
 */
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

/* As kd_node(), but faster for an edge to a private node. */
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

/* Variable and cofactors of an edge; for a terminal the variable is KD_NO_VARIABLE. */
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

/* The cofactors of e by variable, which is at most the variable of top, the node of e. */
static inline void kd_split(const struct kd_top *top, kdsm_bdd e, uint32_t variable,
			    kdsm_bdd *high, kdsm_bdd *low)
{
	bool here = top->variable == variable;

	*high = here ? top->high : e;
	*low = here ? top->low : e;
}

/*
 * Check that a step goes down to a greater variable. If it does not, memory holds no BDD, and
 * without this check the recursion could be endless. above is 1 + the variable of the previous
 * step, and 0 for the first step. On failure return false with -EIO in w->why.
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
 * The part that holds a node's index entry: the part of its high child, or of its low child
 * if the high child is a terminal. A cluster node stores the nodes that it makes in its own
 * part, so index entries of the nodes that it builds on top of them are mostly local. With n
 * cluster nodes, a home chosen by hash would be local for one node in n only. The hash chooses
 * the home only of a node whose children are both terminals. Return: a part, or -EIO if the
 * child is not in the table.
 */
static inline int kd_home(const struct kdsm_table *t, const struct kdsm_node *node,
			  uint64_t hash)
{
	uint64_t child = kd_number(node->a);

	if (!child)
		child = kd_number(node->b);
	if (!child)	/* the terminal has number 0, but belongs to no part */
		return kd_table_home(t, hash);
	if (child - t->first < t->slots)
		return t->self;
	return child < t->slots * t->parts ? (int)(child / t->slots) : -EIO;
}

/* Find or make the node (variable, high, low), in reduced form. Returns its edge or a failure. */
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

/*
 * Whether this worker computes the low half of an operation at a variable before the high half. Two
 * workers that begin the same operation at about the same time would stay together down to the
 * leaves, and compute everything twice. In different orders each finds the other's results in the
 * operation cache. (A. Laarman, R. Langerak, J. van de Pol, M. Weber, A. Wijs, "Multi-Core Nested
 * Depth-First Search", ATVA 2011, does so for the successors of a state.)
 */
static inline bool kd_low_first(const struct kdsm_bdd_worker *w, uint32_t variable)
{
	return w->seed >> ((variable >> 1 ^ variable >> 6) & 31) & 1;
}

static inline void kd_exchange(kdsm_bdd *a, kdsm_bdd *b)
{
	kdsm_bdd c = *a;

	*a = *b;
	*b = c;
}

/* Whether the creator of the store wants long operations to end */
static inline bool kd_interrupted(const struct kdsm_bdd_worker *w)
{
	const uint64_t *word = w->store->interrupt;

	return word && __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Tell a virtual run that the worker has taken a step, such as a visit to a node. */
static inline void kd_step(struct kdsm_bdd_worker *w)
{
	if (kd_unlikely(w->simulated))
		kd_scheduler->spend(1);
}

/* Count a step, and look for its result in the own part of the operation cache. */
static inline bool kd_cache_get(struct kdsm_bdd_worker *w, const struct kd_key *key,
				kdsm_bdd *result)
{
	w->tasks++;
	kd_step(w);
	if (!kd_opcache_get(w->cache, key, result)) {
		if (kd_unlikely(kd_ghost_asks(w->store->ghost, key->hash)))
			kd_ghost_miss(w->store->ghost, key->hash);
		return false;
	}
	*result &= KD_EDGE;	/* clear bits that a corrupt entry might set outside an edge */
	w->hits++;
	return true;
}

static inline void kd_cache_put(struct kdsm_bdd_worker *w, const struct kd_key *key,
				kdsm_bdd result)
{
	kd_opcache_put(w->cache, key, result);
}

/*
 * The conjunction of rest and "variable v has this value". v is below the variables that rest
 * depends on.
 */
static inline kdsm_bdd kd_literal(struct kdsm_bdd_worker *w, uint32_t v, bool value,
				  kdsm_bdd rest)
{
	return value ? kdsm_bdd_make(w, v, rest, KDSM_BDD_FALSE) :
	       kdsm_bdd_make(w, v, KDSM_BDD_FALSE, rest);
}

/* ---- traverse.c ---- */

/*
 * A walk collects all nodes that are reachable from some edges, each node once. The walk is
 * breadth-first, so that it can fetch nodes of other parts in batches. Positions begin with 1;
 * position 0 stands for the terminal.
 */
struct kd_walk {
	struct kdsm_node *node;	/* [count + 1], by position */
	uint64_t *number;	/* [count + 1], by position: the node's number in the store */
	uint64_t count, capacity;
	/* set by kd_walk_variables(): the variables of the nodes, ascending */
	uint32_t *variable;
	uint32_t variables;
	uint64_t *end;		/* [variables + 1], set by kd_walk_sort() */
	void *index;		/* hash table of positions, by number; 0: empty */
	uint64_t slots;
};

/**
 * kd_walk() - collect all nodes that are reachable from an edge
 * @walk: the nodes; the caller calls kd_walk_destroy(), whatever the result
 * @w: reads the nodes
 * @e: a valid edge
 *
 * Return: 0, or a negative errno.
 */
int kd_walk(struct kd_walk *walk, struct kdsm_bdd_worker *w, kdsm_bdd e);
/* As kd_walk(), from several edges. */
int kd_walk_all(struct kd_walk *walk, struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		unsigned int count);
void kd_walk_destroy(struct kd_walk *walk);
/* List the variables of the nodes. Return 0 or -ENOMEM. */
int kd_walk_variables(struct kd_walk *walk);

/**
 * kd_walk_sort() - sort the nodes by variable, the greatest first
 * @walk: a complete walk
 * @edges: edges to nodes of the walk
 * @count: number of @edges
 *
 * Afterwards nodes refer to each other by position, and a node follows its children. Instead of
 * its variable a node has its level, the index into walk->variable. The nodes of level l have
 * the positions walk->end[l + 1] to walk->end[l] - 1. The call makes @edges refer to positions,
 * too. walk->number is the caller's to use from then on.
 *
 * Return: 0; -ENOMEM; or -EIO if memory holds no BDD.
 */
int kd_walk_sort(struct kd_walk *walk, kdsm_bdd *edges, unsigned int count);

/* ---- count.c ---- */

/*
 * Counts are computed modulo several odd numbers m = 2^63 - less, because a count has as many
 * bits as a state, but a table with so many bits for each node has no bound. The numbers m are
 * coprime, so the residues give the count (Chinese remainder theorem).
 */
struct kd_modulus {
	uint64_t m, less;
};

static inline uint64_t kd_mod_add(const struct kd_modulus *m, uint64_t a, uint64_t b)
{
	return a + b >= m->m ? a + b - m->m : a + b;
}

static inline uint64_t kd_mod_sub(const struct kd_modulus *m, uint64_t a, uint64_t b)
{
	return a >= b ? a - b : a + m->m - b;
}

static inline uint64_t kd_mod_half(const struct kd_modulus *m, uint64_t a)
{
	return a % 2 ? a / 2 + m->m / 2 + 1 : a / 2;
}

static inline uint64_t kd_mod_multiply(const struct kd_modulus *m, uint64_t a, uint64_t b)
{
	unsigned __int128 x = (unsigned __int128)a * b;
	const uint64_t low = UINT64_MAX / 2;

	/* 2^63 equals m->less, which is below 2^31 */
	x = (uint64_t)(x & low) + (unsigned __int128)(uint64_t)(x >> 63) * m->less;
	a = (uint64_t)(x & low) + (uint64_t)(x >> 63) * m->less;
	return a >= m->m ? a - m->m : a;
}

/* A number of which residues are known */
struct kd_residues {
	mpz_t value;			/* the number modulo product */
	mpz_t product;			/* of the moduli so far */
	mpz_t inverse, step;		/* scratch */
};

void kd_residues_init(struct kd_residues *r);
void kd_residues_clear(struct kd_residues *r);
/* The next modulus after *m, which is zero at first */
void kd_residues_next(const struct kd_residues *r, struct kd_modulus *m);
void kd_residues_add(struct kd_residues *r, const struct kd_modulus *m, uint64_t residue);

/*
 * Store for each position of a sorted walk which part of all assignments satisfies the node,
 * modulo m. Parts are sums of powers of 1/2. kd_part() is the part of an edge. kd_part_count()
 * is the number of assignments of so many variables that a part means.
 */
void kd_parts(const struct kd_walk *walk, const struct kd_modulus *m, uint64_t *part);

static inline uint64_t kd_part(const struct kd_modulus *m, const uint64_t *part, kdsm_bdd e)
{
	uint64_t p = part[kd_number(e)];

	return e & KDSM_BDD_COMPLEMENT ? kd_mod_sub(m, 1, p) : p;
}

uint64_t kd_part_count(const struct kd_modulus *m, uint64_t part, unsigned int variables);

/*
 * At least the number of bits of the count of an edge of a sorted walk, over so many variables.
 * Writes to walk->number.
 */
uint64_t kd_count_bits(struct kd_walk *walk, kdsm_bdd e, unsigned int variables);
/* The same of an edge of the store. Return 0 or a negative errno. */
int kd_bdd_count_bits(struct kdsm_bdd_worker *worker, kdsm_bdd e, unsigned int variables,
		      uint64_t *bits);
/* The count itself, over so many variables. Writes to walk->number. */
void kd_count_all(struct kd_walk *walk, kdsm_bdd e, unsigned int variables, mpz_t result);

/* ---- file.c and save.c ---- */

/*
 * Files in the .bdd format: the functions that all readers of the format share, and the
 * writer. All integers are little-endian, without padding:
 *
 *	file     := i32 integers_per_state, i32 bits_per_integer, i32 action_bits,
 *	            set, i32 relation_count, relation * relation_count, [trailer]
 *	set      := section, u64 bdd, u64 integers_per_state, u64 variables
 *	relation := section, u64 bdd, u64 variables
 *	section  := u64 count, node * count
 *	node     := u64 a, u64 b
 *
 * Node numbers start at 1 and continue through all sections. A node refers only to lower
 * numbers. Nodes have the layout of <kdsm/bdd.h>. Readers of models ignore all bytes after
 * the relations. kdsm writes a trailer there, which lets it detect damage and has room for
 * a note:
 *
 *	trailer  := u64 magic, u64 words, u64 note * words, u64 checksum
 *
 * The checksum covers all integers in front of it, each as 64 bits. So kdsm refuses a file
 * with one changed bit, wherever the bit is, except in the magic. With a changed magic the
 * file counts as one without a trailer, and all its other integers are as they were
 * written.
 */

#define KD_FIRST_ACTION	1000000
#define KD_FILE_MAX_BITS	(KD_FIRST_ACTION / 2)	/* in a state: each bit has two variables */
#define KD_FILE_MAX_ACTIONS	(KDSM_BDD_MAX_VARIABLE + 1 - KD_FIRST_ACTION)
#define KD_FILE_MAGIC	UINT64_C(0x0a4d55536d73646b)	/* "kdsmSUM\n" */

/* Add a word to a checksum. For equal sums, different words give different results. */
static inline uint64_t kd_file_sum(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}

/*
 * The variables of a program and those of its files, if they differ. variable() is strictly
 * increasing. A reader's may return KD_NO_VARIABLE for a variable that has no counterpart.
 */
struct kd_renaming {
	uint32_t (*variable)(const void *context, uint32_t variable);	/* NULL: the same */
	const void *context;
};

static inline uint32_t kd_renamed(const struct kd_renaming *r, uint32_t variable)
{
	return r->variable ? r->variable(r->context, variable) : variable;
}

/*
 * State of reading a file. The reader does not trust the file: it checks every length,
 * reference and variable before it uses the value, and allocates memory only in proportion to
 * the bytes that it has read.
 */
struct kd_bdd_reader {
	struct kdsm_bdd_worker *worker;	/* makes the nodes */
	FILE *file;			/* NULL: the file is in bytes */
	const unsigned char *bytes;
	uint64_t size, at;		/* length of bytes; bytes read so far */
	struct kd_renaming from_file;	/* of the variables of states */
	uint64_t sum;
	uint32_t integers, bits, actions;	/* integers and bits in a state; bits in a label */
	kdsm_bdd *edges;		/* the store's edge by node number in the file */
	uint32_t *variables;		/* variable by node number, to check the order */
	uint64_t count, capacity;	/* of edges and variables; number 0 included */
	const char *wrong;		/* after -EINVAL: reason, and offset of the field */
	uint64_t wrong_at;
};

/**
 * kd_bdd_wrong() - record why a file is invalid
 * @r: the reader
 * @at: offset of the invalid field, in bytes
 * @what: the reason, a string that outlives the reader
 *
 * Return: -EINVAL.
 */
int kd_bdd_wrong(struct kd_bdd_reader *r, uint64_t at, const char *what);

/**
 * kd_bdd_get_header() - read the header; the first call on a reader
 * @r: the reader, with worker and the source of the bytes set
 *
 * The caller calls kd_bdd_reader_destroy() afterwards, whatever the result.
 *
 * Return: 0, or a negative errno; -EINVAL sets @r->wrong.
 */
int kd_bdd_get_header(struct kd_bdd_reader *r);
void kd_bdd_reader_destroy(struct kd_bdd_reader *r);
/* Forget all nodes: the next section numbers its nodes from 1. Return 0 or -ENOMEM. */
int kd_bdd_forget(struct kd_bdd_reader *r);
/*
 * Read an integer, an edge to a node that was read before, or a section of nodes. Return 0,
 * or a negative errno; -EINVAL sets r->wrong.
 */
int kd_bdd_get_u64(struct kd_bdd_reader *r, uint64_t *value);
int kd_bdd_get_i32(struct kd_bdd_reader *r, int32_t *value);
int kd_bdd_get_edge(struct kd_bdd_reader *r, kdsm_bdd *edge);
int kd_bdd_get_section(struct kd_bdd_reader *r);

/*
 * The content of a file: functions, and for each function the set of variables that was
 * saved with it.
 */
struct kd_bdd_content {
	kdsm_bdd *function, *variables;
	unsigned int count;
	uint64_t *note;
	uint64_t words;			/* in the note */
	struct kd_renaming to_file;	/* only for writing; of the variables of states */
	bool whole;			/* the file has a trailer, and its checksum is right */
};

/**
 * kd_bdd_load() - read a whole file of functions
 * @r: a reader with only worker, file and from_file set
 * @content: the content
 *
 * The caller destroys @content and @r, whatever the result.
 *
 * Return: 0, or a negative errno; -EINVAL sets @r->wrong.
 */
int kd_bdd_load(struct kd_bdd_reader *r, struct kd_bdd_content *content);
void kd_bdd_content_destroy(struct kd_bdd_content *content);

/**
 * kd_bdd_save() - write functions and a note
 * @worker: reads the nodes
 * @file: the stream to write to
 * @content: functions, variables (or NULL), note and to_file; the arrays stay the caller's
 *
 * Return: 0, or a negative errno.
 */
int kd_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const struct kd_bdd_content *content);

/* ---- collect.c ---- */

/*
 * A collection removes the nodes of the BDD table that are not reachable from a root. One
 * process on every node of the cluster takes part, and no worker uses the table meanwhile.
 */

/*
 * KD_GROW enlarges the table however few nodes are alive, unless the table is at its bound.
 * KD_KEEP, on a cluster of one node, keeps all nodes and all results of the operation cache:
 * together with KD_GROW it enlarges both without a loss. On a larger cluster it is ignored,
 * because the members send each other the index entries through the cache.
 * KD_RESULTS, on a cluster of one node, keeps results of live operands in the operation cache, and
 * these results alive, until three quarters of the table's nodes are alive (collect_mark.c). On
 * a larger cluster it is ignored for the same reason. The caller must not use it when results have
 * changed their meaning. Without KD_KEEP and KD_RESULTS a collection clears the cache.
 * KD_RESERVE leaves part of the index unused, because a lookup in an index that is nearly
 * full inspects about a hundred times as many entries as in an index that is seven eighths
 * full. A collection keeps no reserve if three quarters of the table's nodes are alive.
 */
enum { KD_GROW = 1, KD_RESERVE = 2, KD_KEEP = 4, KD_RESULTS = 8 };

/* The part of size that is kept in reserve. */
static inline uint64_t kd_reserve(uint64_t size)
{
	return size / 8;
}

/**
 * kd_collect() - remove the nodes that no root leads to
 * @store: the store
 * @gang: all members call this function
 * @threads: threads of this process that take part; 0 counts as 1
 * @flags: KD_GROW, KD_RESERVE, KD_KEEP, KD_RESULTS
 * @roots: edges to keep, in addition to the edges that users of this process protect
 * @count: number of @roots
 * @collection: result
 *
 * The roots of each member keep BDD nodes in all parts. No operation runs on any cluster node
 * meanwhile, and no other process has the store open. On failure the caller calls
 * kd_gang_abort(), and the store is unusable from then on.
 *
 * Return: 0; -ENOSPC if the live nodes do not fit into the index; -EIO if memory holds
 * values that are no BDD; -ENOMEM; or an errno of the gang or of an operation on the
 * region.
 */
int kd_collect(struct kdsm_bdd_store *store, struct kd_gang *gang, unsigned int threads,
	       unsigned int flags,
	       const kdsm_bdd roots[], uint64_t count,
	       struct kdsm_bdd_collection *collection);

/*
 * Double the number of entries of the operation cache, up to its bound, and keep its results. Only
 * for a store on one node; see kd_collect() for threads. Returns 0 or a negative errno.
 */
int kd_grow_cache(struct kdsm_bdd_store *store, unsigned int threads);

/* Whether part of the operation cache's memory is not in use yet */
static inline bool kd_cache_can_grow(const struct kdsm_bdd_store *store)
{
	return store->table->parts == 1 && store->cache.count < store->cache.most;
}

/* Whether part of the table's memory is not in use yet */
static inline bool kd_can_grow(const struct kdsm_bdd_store *store)
{
	return store->table->limit < store->table->slots / store->table->block;
}

#endif /* KD_BDD_H */
