/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The BDD package, for files that define operations on BDDs, read and write them, or
 * collect garbage: here and in lib/reach. Programs use <kdsm/bdd.h>.
 */
#ifndef KD_BDD_H
#define KD_BDD_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kdsm/bdd.h>
#include <kdsm/task.h>

#include "core/core.h"
#include "table/table.h"

/* ---- opcache.c ---- */

/*
 * The operation cache: results of BDD operations, lossy, in a partitioned
 * region beside the table (Oortwijn, van Dijk, van de Pol, SPIN 2017, 5.1).
 *
 * An entry is four words: two of key, the result, and a checksum over all three.
 * Threads of this node, and operations of others, store into an entry at the
 * same time without any lock; what is left of two of them, and what a get saw
 * torn, fails the checksum and counts as absent. So no entry is ever waited for,
 * and one operation each way is enough.
 *
 * The own part is looked up first, and it is where every result goes that this
 * node computed: free of operations. A result that is dear is also stored in,
 * and looked for at, the home of its key, a part that is the same for all nodes
 * (kd_opcache_get_home(), opcache.c). On one node the two are the same.
 */

struct kd_result {
	uint64_t key0, key1, value, check;
};

struct kd_opcache {
	struct kd_result *entries;	/* of the own part */
	uint64_t count;			/* entries in use in a part, the same everywhere */
	uint64_t most;			/* entries that a part has room for */
	unsigned int self, parts;
	struct kdsm_region *region;
	uint64_t offset;
};

struct kd_key {
	uint64_t key0, key1, hash;
};

int kd_opcache_init(struct kd_opcache *cache, struct kdsm_region *region,
		    uint64_t offset, uint64_t part_bytes);
void kd_opcache_limit(struct kd_opcache *cache, uint64_t part_bytes);	/* to begin with */
unsigned int kd_opcache_home(const struct kd_opcache *cache, const struct kd_key *key);
int kd_opcache_get_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t *value);
int kd_opcache_put_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t value);

/* An edge in 41 bits. */
static inline uint64_t kd_pack(uint64_t edge)
{
	return (edge & KDSM_NUMBER_MASK) | edge >> 63 << 40;
}

/* op is below 16. Three edges and the operation fill 127 bits: no two keys meet. */
static inline struct kd_key kd_key(unsigned int op, uint64_t a, uint64_t b,
				   uint64_t c)
{
	uint64_t third = kd_pack(c);
	struct kd_key key;

	key.key0 = kd_pack(a) | (uint64_t)op << 41 | third << 45;
	key.key1 = kd_pack(b) | third >> 19 << 41;
	key.hash = kd_mix(key.key0 ^ UINT64_C(0xe7037ed1a0b428db),
			  key.key1 ^ UINT64_C(0x8ebc6af09c88c6e3));
	return key;
}

static inline uint64_t kd_result_check(const struct kd_key *key, uint64_t value)
{
	return kd_mix(key->hash ^ UINT64_C(0x2d358dccaa6c78a5),
		      value ^ UINT64_C(0x1d8e4e27c47d124f)) | 1;
}

static inline bool kd_result_fits(const struct kd_result *e, const struct kd_key *key,
				  uint64_t *value)
{
	if (e->key0 != key->key0 || e->key1 != key->key1 ||
	    e->check != kd_result_check(key, e->value))
		return false;
	*value = e->value;
	return true;
}

static inline struct kd_result *kd_opcache_own(const struct kd_opcache *cache,
					       const struct kd_key *key)
{
	return &cache->entries[kd_reduce(key->hash, cache->count)];
}

static inline bool kd_opcache_get(const struct kd_opcache *cache,
				  const struct kd_key *key, uint64_t *value)
{
	const struct kd_result *from = kd_opcache_own(cache, key);
	struct kd_result e;

	/*
	 * Acquire, pairs with the release below: the nodes that an edge in the
	 * result leads to were stored before.
	 */
	e.check = __atomic_load_n(&from->check, __ATOMIC_ACQUIRE);
	e.key0 = __atomic_load_n(&from->key0, __ATOMIC_RELAXED);
	e.key1 = __atomic_load_n(&from->key1, __ATOMIC_RELAXED);
	e.value = __atomic_load_n(&from->value, __ATOMIC_ACQUIRE);
	return kd_result_fits(&e, key, value);
}

static inline void kd_opcache_put(struct kd_opcache *cache, const struct kd_key *key,
				  uint64_t value)
{
	struct kd_result *e = kd_opcache_own(cache, key);

	__atomic_store_n(&e->key0, key->key0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->key1, key->key1, __ATOMIC_RELAXED);
	__atomic_store_n(&e->value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&e->check, kd_result_check(key, value), __ATOMIC_RELEASE);
}

/* ---- refs.c ---- */

/* Words, first in, last out. */
struct kd_stack {
	uint64_t *word;
	uint64_t count, capacity;
};

int kd_stack_push(struct kd_stack *stack, uint64_t word);

/* How often each number is protected. */
struct kd_refs {
	pthread_mutex_t lock;
	struct kd_ref {
		uint64_t number, count;
	} *slot;
	uint64_t size, used;		/* used: slots, a count of 0 included */
};

int kd_refs_list(struct kd_refs *refs, struct kd_stack *stack);

/* ---- the store, its workers, and operations ---- */

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
KDSM_TASK_DECLARE(kdsm_bdd, kd_and, kdsm_bdd, a, kdsm_bdd, b, uint32_t, above)
KDSM_TASK_DECLARE(kdsm_bdd, kd_ite, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, c, uint32_t, above)
/* at: a number of a bit, with KD_BACKWARD or without. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_product, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at, uint32_t, above)

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

/* ---- traverse.c ---- */

/*
 * All nodes below some edges, each once. Breadth first: nodes of other parts are
 * fetched many at a time.
 */

struct kd_walk {
	struct kd_walked {
		uint64_t number;
		struct kdsm_node node;
	} *nodes;
	uint64_t count, capacity;
	uint64_t *index;	/* place in nodes plus 1 */
	uint64_t index_size;
};

int kd_walk(struct kd_walk *walk, struct kdsm_bdd_worker *w, kdsm_bdd e);
int kd_walk_all(struct kd_walk *walk, struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		unsigned int count);
uint64_t kd_walk_find(const struct kd_walk *walk, uint64_t number);
void kd_walk_destroy(struct kd_walk *walk);

/* ---- file.c and save.c ---- */

/*
 * Files in the .bdd format: what their readers have in common, and how functions
 * are written. All integers are little-endian, without padding:
 *
 *	file     := i32 integers_per_state, i32 bits_per_integer, i32 action_bits,
 *	            set, i32 relation_count, relation * relation_count, [trailer]
 *	set      := section, u64 bdd, u64 integers_per_state, u64 variables
 *	relation := section, u64 bdd, u64 variables
 *	section  := u64 count, node * count
 *	node     := u64 a, u64 b
 *
 * Nodes are numbered from 1 through all sections and refer to lower numbers; they
 * are those of <kdsm/bdd.h>. To readers of models whatever follows the relations is
 * nothing. What kdsm writes there lets it see damage, and has a place for a note:
 *
 *	trailer  := u64 magic, u64 words, u64 note * words, u64 checksum
 *
 * The checksum is over all integers in front of it, each as 64 bits, so a file with one
 * changed bit is refused wherever the bit is; but for the magic itself, where it makes a
 * file without trailer of what is as it was written for the rest.
 */

#define KD_FIRST_ACTION	1000000
#define KD_FILE_MAX_BITS	(KD_FIRST_ACTION / 2)	/* of a state */
#define KD_FILE_MAX_ACTIONS	(KDSM_BDD_MAX_VARIABLE + 1 - KD_FIRST_ACTION)
#define KD_FILE_MAGIC	UINT64_C(0x0a4d55536d73646b)	/* "kdsmSUM\n" */

/* From one checksum to the next: another word gives another one. */
static inline uint64_t kd_file_sum(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}

/*
 * Reading. The file is not trusted: every length, reference and variable is checked
 * before it is used, and memory is asked for only in proportion to what was read.
 */
struct kd_bdd_reader {
	struct kdsm_bdd_worker *worker;	/* makes the nodes */
	FILE *file;			/* or NULL: the file is in bytes */
	const unsigned char *bytes;
	uint64_t size, at;		/* of bytes; how far it is read */
	uint64_t sum;
	uint32_t integers, bits, actions;	/* of a state; bits in all; of a label */
	kdsm_bdd *edges;		/* by number in the file */
	uint32_t *variables;		/* likewise, to check the order */
	uint64_t count, capacity;	/* of both; number 0 included */
	const char *wrong;		/* after -EINVAL, with the offset of the field */
	uint64_t wrong_at;
};

/* What is wrong, and at which offset. Returns -EINVAL. */
int kd_bdd_wrong(struct kd_bdd_reader *r, uint64_t at, const char *what);

/* The first of all. Whatever it returns, the reader is to be destroyed. */
int kd_bdd_get_header(struct kd_bdd_reader *r);
void kd_bdd_reader_destroy(struct kd_bdd_reader *r);
int kd_bdd_get_u64(struct kd_bdd_reader *r, uint64_t *value);
int kd_bdd_get_i32(struct kd_bdd_reader *r, int32_t *value);
int kd_bdd_get_edge(struct kd_bdd_reader *r, kdsm_bdd *edge);
int kd_bdd_get_section(struct kd_bdd_reader *r);

/* What a file has: functions, and with each the set that it was written with. */
struct kd_bdd_content {
	kdsm_bdd *function, *variables;
	unsigned int count;
	uint64_t *note;
	uint64_t words;			/* of the note */
	bool whole;			/* there is a trailer */
};

/*
 * Read all of it, from a reader of which worker and file are set. Whatever it returns,
 * content is to be destroyed, and the reader.
 */
int kd_bdd_load(struct kd_bdd_reader *r, struct kd_bdd_content *content);
void kd_bdd_content_destroy(struct kd_bdd_content *content);

/* Write, with a note. The content's arrays stay the caller's; variables may be NULL. */
int kd_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const struct kd_bdd_content *content);

/* ---- collect.c ---- */

/*
 * Collections: nodes of the BDD table that no root leads to are removed, by one
 * process on every node of the cluster together, while nobody uses the table.
 */

/*
 * KD_GROW: the table is made larger whatever is alive, if it is not at its bound yet.
 * KD_RESERVE: some room stays unused, because a lookup in an index that is nearly full
 * takes long: a hundred times as many entries have to be looked at as in one that is
 * full to seven eighths. It is not kept when most of the table is alive.
 */
enum { KD_GROW = 1, KD_RESERVE = 2 };

/* How much of so much. */
static inline uint64_t kd_reserve(uint64_t size)
{
	return size / 8;
}

/*
 * The roots are what users of this process protect, and these; roots of any node
 * keep nodes of all. Called by all members of the gang, when no operation is on
 * anywhere, or will be before this returns; other processes must not have the store
 * open. Whoever fails has to kd_gang_abort(); the store is of no use then.
 *
 * -ENOSPC: what is alive finds no room in the index. -EIO: memory holds what is no
 * BDD. -ENOMEM. Errors of the gang and of operations on the region.
 */
int kd_collect(struct kdsm_bdd_store *store, struct kd_gang *gang, unsigned int threads,
	       unsigned int flags,
	       const kdsm_bdd roots[], uint64_t count,
	       struct kdsm_bdd_collection *collection);

static inline bool kd_can_grow(const struct kdsm_bdd_store *store)
{
	return store->table->limit < store->table->slots / store->table->block;
}

#endif /* KD_BDD_H */
