/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Binary decision diagrams in the memory of a cluster: reduced, ordered, with complement
 * edges, in the distributed unique table of <kdsm/table.h>.
 *
 * A Boolean function is a 64-bit edge: bits 0-39 are the number of a node, and bit 63 is
 * set if the edge complements the node's function; the other bits are zero. Number 0 is
 * the terminal false. Equal functions have equal edges, in every process of a job. In a
 * struct kdsm_node, a is the high edge, and b is the low edge, which is never complemented,
 * with the variable in bits 40-63. Lower variables are nearer to the root. (R. E. Bryant,
 * "Graph-Based Algorithms for Boolean Function Manipulation", IEEE Transactions on
 * Computers, 1986; T. van Dijk, J. van de Pol, "Sylvan: Multi-Core Decision Diagrams",
 * TACAS 2015.)
 *
 * An operation takes a worker, one for each thread, and returns an edge. On failure it
 * returns KDSM_BDD_INVALID, and kdsm_bdd_error() tells the reason. An operation on
 * KDSM_BDD_INVALID returns KDSM_BDD_INVALID, so a chain of operations needs one test at its
 * end. Edges stay valid until kdsm_bdd_collect(), which alone removes nodes.
 */
#ifndef KDSM_BDD_H
#define KDSM_BDD_H

#include <stdint.h>
#include <stdio.h>
#include <gmp.h>
#include <kdsm/kdsm.h>
#include <kdsm/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A Boolean function */
typedef uint64_t kdsm_bdd;

#define KDSM_BDD_COMPLEMENT	(UINT64_C(1) << 63)
#define KDSM_BDD_FALSE		UINT64_C(0)
#define KDSM_BDD_TRUE		KDSM_BDD_COMPLEMENT
#define KDSM_BDD_INVALID	UINT64_MAX

/* Largest variable */
#define KDSM_BDD_MAX_VARIABLE	((UINT32_C(1) << 24) - 2)

/* ---- store and workers ---- */

/* A process's view of the nodes and the operation cache of a job. */
struct kdsm_bdd_store;
/* A thread's view of a store; every operation takes one. */
struct kdsm_bdd_worker;

struct kdsm_bdd_attr {
	size_t argsz;		/* size of this struct */
	uint64_t table_bytes;	/* size of the table over all cluster nodes, at least 1 */
	uint64_t cache_bytes;	/* size of the operation cache over all cluster nodes */
	/*
	 * Bytes of table and cache that are in use at first; 0: all. If more than half of the
	 * table's nodes are alive after a collection, the collection doubles both, up to the
	 * sizes above.
	 */
	uint64_t first_table_bytes, first_cache_bytes;
	/*
	 * Relational products share results between cluster nodes at every granularity-th bit
	 * of a relation. 0: never.
	 */
	unsigned int granularity;
	uint32_t find;		/* enum kdsm_table_find; processes may differ */
};

/*
 * Return the number of bytes that a store needs of every part of a region of cluster_nodes
 * (1 or more) cluster nodes, or UINT64_MAX if attr->argsz is wrong.
 */
uint64_t kdsm_bdd_part_bytes(const struct kdsm_bdd_attr *attr,
			     unsigned int cluster_nodes);

/*
 * Open the store at offset, a multiple of 64, of every part of region. The
 * kdsm_bdd_part_bytes() bytes there are zero when the first process opens the store. All
 * processes give the same offset and attributes, except find. The caller keeps the region
 * open for writing as long as the store, and closes *store with kdsm_bdd_close(). On failure
 * *store is not stored. Errors: those of kdsm_table_open().
 */
int kdsm_bdd_open(struct kdsm_region *region, uint64_t offset,
		  const struct kdsm_bdd_attr *attr, struct kdsm_bdd_store **store);
/* Close the store, after all workers are freed. NULL is ignored. */
void kdsm_bdd_close(struct kdsm_bdd_store *store);
/* The table of the store, which is valid as long as the store. */
struct kdsm_table *kdsm_bdd_table(struct kdsm_bdd_store *store);

/*
 * Create a worker. One thread at a time uses it; the caller frees it with
 * kdsm_bdd_worker_free(). -ENOMEM: this process has no memory.
 */
int kdsm_bdd_worker_new(struct kdsm_bdd_store *store,
			struct kdsm_bdd_worker **worker);
/* Free a worker. NULL is ignored. */
void kdsm_bdd_worker_free(struct kdsm_bdd_worker *worker);

/*
 * Let all workers of a job of tasks (<kdsm/task.h>) compute the operations of a worker.
 *
 * kdsm_bdd_tasks() fills start, stop and argument of *attr, so that the workers of a job
 * opened with *attr can work on the store. The caller keeps the store open as long as the
 * job. After kdsm_bdd_use_tasks() the job computes the worker's operations, except those on
 * private nodes. With tasks NULL the calling thread computes them again, as at first.
 *
 * Before that, all processes of the job open a store at the same place and make the same
 * relations. The worker's operations then also fail with the errors of KDSM_RUN(). If a task
 * of the job uses this worker, its operation fails with -EDEADLK; the task uses the worker
 * of KDSM_BDD_WORKER() instead.
 */
struct kdsm_task;
struct kdsm_tasks;
struct kdsm_tasks_attr;
struct kdsm_worker;
void kdsm_bdd_tasks(struct kdsm_bdd_store *store, struct kdsm_tasks_attr *attr);
void kdsm_bdd_use_tasks(struct kdsm_bdd_worker *worker, struct kdsm_tasks *tasks);

/*
 * Error of the first operation that failed since the last call; 0 if none failed.
 *
 * -ENOSPC	the table is full
 * -EINVAL	a variable is out of range or out of order
 * -EIO		memory holds values that are no diagram; or as kdsm_get()
 * -ENOMEM	this process has no memory
 * others	those of operations on the region, and of KDSM_RUN()
 */
int kdsm_bdd_error(struct kdsm_bdd_worker *worker);

struct kdsm_bdd_counts {
	size_t argsz;		/* size of this struct */
	uint64_t tasks;		/* recursive steps that no terminal case decided */
	uint64_t hits;		/* of tasks: found in the operation cache */
	uint64_t home_get;	/* results looked up on other cluster nodes */
	uint64_t home_hit;	/* of home_get: found */
	uint64_t home_put;	/* results stored on other cluster nodes */
	struct kdsm_table_counts table;
};

/* Store the counts of a worker in *counts. Errors: those of argsz. */
int kdsm_bdd_counts(const struct kdsm_bdd_worker *worker,
		    struct kdsm_bdd_counts *counts);
/*
 * Store the sum over all workers that this process has and had for the store, those of jobs
 * included. No worker may be computing. Errors: those of argsz.
 */
int kdsm_bdd_all_counts(struct kdsm_bdd_store *store, struct kdsm_bdd_counts *counts);

/* ---- in tasks ---- */

/*
 * In the body of a task of a job that was opened with what kdsm_bdd_tasks() filled in,
 *
 *	KDSM_BDD_WORKER(w);
 *
 * declares w, a struct kdsm_bdd_worker * for the operations of the task, until the end of
 * the block. In a job that was opened otherwise w is NULL. An operation runs in place, as a
 * KDSM_CALL() does, and other workers steal parts of it. Between operations the task may
 * spawn and sync. The task may pass w to functions, but not to other tasks: each task
 * declares its own. The task does not free w. An edge means the same in all tasks, on all
 * nodes.
 *
 * kdsm_bdd_error(w) returns errors of this block's operations only. The task calls it before
 * the end of the block, and returns the error if the caller is to know the error.
 *
 * The worker computes the following functions alone, and no worker steals from it meanwhile:
 * kdsm_bdd_variable(), _make(), _cube(), _look() and _evaluate(), which need no recursion,
 * and kdsm_bdd_support(), _count_nodes(), _count_states(), _cubes(), _dot(), _save(),
 * _load() and _publish(), which visit every node. A relation is a pointer, so a task does
 * not take it as an argument, but finds that of its process in a variable of the program.
 *
 * A task does not call kdsm_bdd_private(), kdsm_bdd_use_tasks(), kdsm_relation_new() or
 * kdsm_bdd_collect(): these do nothing and fail with -EDEADLK, the first two by setting the
 * error of w. Operations with w after the end of its block fail in the same way.
 */
#define KDSM_BDD_WORKER(w) \
	struct kdsm_bdd_place w##_kdsm_place __attribute__((cleanup(kdsm_bdd_leave))) = \
		{ kdsm_worker, &kdsm_head, NULL, 0 }; \
	struct kdsm_bdd_worker *const w = kdsm_bdd_enter(&w##_kdsm_place)

/* ---- operations ---- */

/* The complement of a, which costs nothing. */
static inline kdsm_bdd kdsm_bdd_not(kdsm_bdd a)
{
	return a == KDSM_BDD_INVALID ? a : a ^ KDSM_BDD_COMPLEMENT;
}

/* The function that is true where the variable, 0 to KDSM_BDD_MAX_VARIABLE, is. */
kdsm_bdd kdsm_bdd_variable(struct kdsm_bdd_worker *worker, uint32_t variable);

/*
 * The function "if variable then high else low". Neither high nor low depends on the
 * variable or on a lower one (-EINVAL).
 */
kdsm_bdd kdsm_bdd_make(struct kdsm_bdd_worker *worker, uint32_t variable,
		       kdsm_bdd high, kdsm_bdd low);

/* Conjunction, disjunction, exclusive or, and "if a then b else c". */
kdsm_bdd kdsm_bdd_and(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_or(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_xor(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_ite(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
		      kdsm_bdd c);

/*
 * The cube of count variables in increasing order (-EINVAL): their conjunction. Operations
 * take sets of variables in this form.
 */
kdsm_bdd kdsm_bdd_cube(struct kdsm_bdd_worker *worker, const uint32_t *variables,
		       unsigned int count);

/* True where some values (exists), or all values (forall), of the cube's variables satisfy a. */
kdsm_bdd kdsm_bdd_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube);
kdsm_bdd kdsm_bdd_forall(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube);
/* kdsm_bdd_exists() of the conjunction of a and b, without computing the whole conjunction. */
kdsm_bdd kdsm_bdd_and_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
			     kdsm_bdd cube);

/* a with the function b in place of the variable. b may depend on any variable. */
kdsm_bdd kdsm_bdd_compose(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t variable,
			  kdsm_bdd b);
/*
 * A function that equals a where care is true. Elsewhere the operation chooses values that
 * make the function small. The function depends only on variables that a depends on, and
 * usually has no more nodes than a.
 * (O. Coudert, J. Madre, "A Unified Framework for the Formal Verification of Sequential
 * Circuits", ICCAD 1990)
 */
kdsm_bdd kdsm_bdd_restrict(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd care);

/* The cube of the variables that a depends on. */
kdsm_bdd kdsm_bdd_support(struct kdsm_bdd_worker *worker, kdsm_bdd a);

/*
 * Store the lowest variable of a in *variable, a with that variable true in *high, and a
 * with it false in *low. After an error *high and *low are KDSM_BDD_INVALID.
 *
 * -EINVAL	a is a constant or KDSM_BDD_INVALID
 * others	as kdsm_bdd_error()
 */
int kdsm_bdd_look(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t *variable,
		  kdsm_bdd *high, kdsm_bdd *low);

/*
 * Store the number of nodes of a, without the terminal. -EINVAL: a is KDSM_BDD_INVALID;
 * others: as kdsm_bdd_error().
 */
int kdsm_bdd_count_nodes(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint64_t *count);

/*
 * Store in result the number of assignments of the count variables, given in increasing
 * order, that satisfy a. The caller has initialised result and clears it. The call takes up
 * to 40 bytes of memory for each node of a, however many variables there are.
 *
 * -EINVAL	a depends on another variable, or is KDSM_BDD_INVALID
 * -ENOMEM, -EIO, others	as kdsm_bdd_error()
 */
int kdsm_bdd_count_states(struct kdsm_bdd_worker *worker, kdsm_bdd a,
			  const uint32_t *variables, unsigned int count,
			  mpz_t result);

/*
 * Return the value of a, 0 or 1, where each variable v below count has the value values[v],
 * 0 or not 0.
 *
 * -EINVAL	the value depends on a variable that is not below count; or a is
 *		KDSM_BDD_INVALID
 * others	as kdsm_bdd_error()
 */
int kdsm_bdd_evaluate(struct kdsm_bdd_worker *worker, kdsm_bdd a,
		      const uint8_t *values, uint32_t count);

/*
 * Call visit for each of a list of cubes of the count variables, which are given in
 * increasing order. The cubes together cover every assignment that satisfies a once. values[i]
 * is the value of variables[i]: 0, 1, or -1 for either. Cubes with 0 come before those with
 * 1. visit may use values until it returns. If visit returns a value other than 0,
 * kdsm_bdd_cubes() stops and returns this value.
 *
 * -EINVAL	a depends on another variable, or is KDSM_BDD_INVALID
 * -ENOMEM, -EIO, others	as kdsm_bdd_error()
 */
typedef int kdsm_bdd_visit(void *context, const int8_t *values);
int kdsm_bdd_cubes(struct kdsm_bdd_worker *worker, kdsm_bdd a, const uint32_t *variables,
		   unsigned int count, kdsm_bdd_visit *visit, void *context);

/*
 * Write a as a graph in the language of Graphviz: high edges are solid, low edges dashed,
 * and complemented edges have a dot. -EINVAL: a is KDSM_BDD_INVALID; -EIO: the file cannot
 * be written; others: as kdsm_bdd_error().
 */
int kdsm_bdd_dot(struct kdsm_bdd_worker *worker, FILE *file, kdsm_bdd a);

/* ---- files ---- */

/*
 * Write count functions, 1 or more, to file in the .bdd format that kdsm-reach(1)
 * describes: the first as the set, the others as relations, and with each function its
 * cube of variables. The call writes nodes that functions share once, and a checksum at the
 * end. If variables is NULL, each cube has all variables below 1000000 that any of the
 * functions depends on, but for the first function only those of even number.
 *
 * The call takes about 72 bytes of memory a node, and fetches nodes of other parts many at a
 * time.
 *
 * -EINVAL	count is 0, or an edge is KDSM_BDD_INVALID
 * -EIO		memory holds values that are no diagram; or as kdsm_get()
 * -ENOMEM	this process has no memory
 * others	the error of the stream, such as -ENOSPC; the file is then useless
 */
int kdsm_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const kdsm_bdd *functions,
		  const kdsm_bdd *variables, unsigned int count);

/*
 * Read functions from file, which any cluster may have written: *count functions and, unless
 * variables is NULL, their cubes. The caller frees both arrays with free(). Of a model in this
 * format, the first function is the set of initial states and the others are the relations.
 * The call reads the file up to its checksum, or to its end if it has none, and checks every
 * field.
 *
 * -EINVAL	the file is damaged, incomplete or of another format
 * -EIO		the file cannot be read
 * -ENOSPC	the table is full
 * -ENOMEM	this process has no memory
 * others	those of operations on the region
 * On failure nothing is stored.
 */
int kdsm_bdd_load(struct kdsm_bdd_worker *worker, FILE *file, kdsm_bdd **functions,
		  kdsm_bdd **variables, unsigned int *count);

/* ---- collections ---- */

/*
 * Protect the nodes of a, in all parts, from kdsm_bdd_collect(), until the process has called
 * kdsm_bdd_unprotect() as many times. Protection belongs to the process. Constants and
 * private functions need none. Any thread may call these functions, except while its process
 * is in kdsm_bdd_collect(). -EINVAL: a is KDSM_BDD_INVALID. -ENOMEM: this process has no
 * memory.
 */
int kdsm_bdd_protect(struct kdsm_bdd_store *store, kdsm_bdd a);
void kdsm_bdd_unprotect(struct kdsm_bdd_store *store, kdsm_bdd a);

/* Result of a collection: numbers of nodes over all parts */
struct kdsm_bdd_collection {
	size_t argsz;		/* size of this struct */
	uint64_t before, after;	/* nodes in the table */
	uint64_t size;		/* nodes that the table can hold, after it has grown */
	double seconds;		/* duration */
};

/*
 * Remove all nodes from the table that no protected edge of any process leads to. The others
 * keep their numbers, so protected edges stay valid; all other edges become invalid. The
 * operation cache is empty afterwards.
 *
 * The call is collective: one process on every node of the cluster calls it, all the same
 * number of times, and no other process has the store open. No thread or task of these
 * processes may use the store meanwhile.
 *
 * The process works with this number of threads; 0 means 1. Another process that is silent
 * for timeout, in ns, counts as dead. Unless collection is NULL, the call stores its result
 * in *collection.
 *
 * -EBUSY	another process of this node has called it for this store
 * -EDEADLK	the caller is a task of a job that works on the store
 * -ENOSPC	the nodes that stay are too many for the table
 * -EIO		memory holds values that are no diagram; as kdsm_get(); or an earlier call failed
 * -ETIMEDOUT, -ECANCELED	another process was silent, or failed
 * -ENOMEM	this process has no memory
 * others	those of operations on the region
 * After any error but -EBUSY and -EDEADLK no process can use the store any more.
 */
int kdsm_bdd_collect(struct kdsm_bdd_store *store, unsigned int threads, uint64_t timeout,
		     struct kdsm_bdd_collection *collection);

/* ---- relations ---- */

/*
 * Private nodes: every worker reads the relations in every step, so their nodes are in the
 * memory of the process, not in the table. Between kdsm_bdd_private(worker, 1) and
 * kdsm_bdd_private(worker, 0) the worker's operations make private nodes and take only
 * private operands, and no other worker of the process may compute. All processes make the
 * same private functions in the same order, because their edges are keys of the shared
 * operation cache. If they did, kdsm_bdd_private_digest() is equal in all processes.
 */
void kdsm_bdd_private(struct kdsm_bdd_worker *worker, int on);
/* Copy a private function to the table, and return its edge there. */
kdsm_bdd kdsm_bdd_publish(struct kdsm_bdd_worker *worker, kdsm_bdd a);
/* Digest of the private nodes that this process has made. */
uint64_t kdsm_bdd_private_digest(const struct kdsm_bdd_store *store);

/*
 * A transition relation. Bit i of the current state is variable 2i, bit i of the next state
 * is variable 2i + 1. The set of the relation's variables is the support of variables; all
 * are below first_action. relation and variables are private functions. If the set has only
 * the current variable of a bit, the relation reads the bit, and the bit keeps its value. If
 * the set has neither variable of a bit, the bit keeps its value. The products quantify the
 * variables of the relation from first_action on.
 *
 * The caller frees *result with kdsm_relation_free() before it closes the store.
 *
 * -EINVAL	the relation depends on a variable below first_action that is not in the
 *		set; or the set has a variable from first_action on
 * -EDEADLK	the caller is a task
 * -ENOMEM	this process has no memory
 */
struct kdsm_relation;

int kdsm_relation_new(struct kdsm_bdd_worker *worker, kdsm_bdd relation,
		      kdsm_bdd variables, uint32_t first_action,
		      struct kdsm_relation **result);
/* Free a relation. NULL is ignored. */
void kdsm_relation_free(struct kdsm_relation *relation);

/* The set of successors of a set of states, both in current variables. */
kdsm_bdd kdsm_bdd_successors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			     const struct kdsm_relation *relation);
/* The set of states that have a successor in the set, both in current variables. */
kdsm_bdd kdsm_bdd_predecessors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			       const struct kdsm_relation *relation);

/* ---- what the macros are made of: not for programs ---- */

/*
 * The place in a deque where the operations of a worker spawn their tasks. It holds the
 * address of the task's head, not its value, because every spawn and sync changes the head.
 */
struct kdsm_bdd_place {
	struct kdsm_worker *tasks;
	struct kdsm_task **head;
	struct kdsm_bdd_place *below;	/* of the waiting task below on the same stack */
	int error;			/* of that task */
};

struct kdsm_bdd_worker *kdsm_bdd_enter(struct kdsm_bdd_place *place);
void kdsm_bdd_leave(struct kdsm_bdd_place *place);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_BDD_H */
