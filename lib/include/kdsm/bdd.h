/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Binary decision diagrams in the memory of a cluster: reduced, ordered, with
 * complement edges, in the distributed unique table of <kdsm/table.h>.
 *
 * A function is a 64-bit edge: bits 0-39 the number of a node, bit 63 set if
 * the node's function is complemented; the rest is zero. Number 0 is the
 * terminal false. Equal functions have equal edges, in every process of a job.
 * Of a node, a is the high edge, b the low edge, which is never complemented,
 * and in its bits 40-63 the variable; lower variables are nearer the root.
 *
 * Operations are called with a worker, one for each thread. They return an
 * edge, or KDSM_BDD_INVALID; kdsm_bdd_error() then says why. An operand that is
 * KDSM_BDD_INVALID gives KDSM_BDD_INVALID, so a chain of operations needs one
 * look at the end. Nodes are removed by kdsm_bdd_collect() alone.
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

typedef uint64_t kdsm_bdd;

#define KDSM_BDD_COMPLEMENT	(UINT64_C(1) << 63)
#define KDSM_BDD_FALSE		UINT64_C(0)
#define KDSM_BDD_TRUE		KDSM_BDD_COMPLEMENT
#define KDSM_BDD_INVALID	UINT64_MAX

#define KDSM_BDD_MAX_VARIABLE	((UINT32_C(1) << 24) - 2)

/* ---- store and workers ---- */

/* The nodes and the operation cache of a job. */
struct kdsm_bdd_store;
struct kdsm_bdd_worker;

struct kdsm_bdd_attr {
	uint64_t table_bytes;	/* of all nodes of the cluster together */
	uint64_t cache_bytes;	/* likewise */
	/*
	 * Of these, in use at first; 0: all. When a collection finds more than half of
	 * the table alive, both are doubled, up to the sizes above.
	 */
	uint64_t first_table_bytes, first_cache_bytes;
	/*
	 * Relational products look for their results on other nodes, and store
	 * them there, at every so-manieth variable: 0 for never, 1 for each.
	 */
	unsigned int granularity;
	uint32_t find;		/* enum kdsm_table_find, of this process */
};

/* Bytes that a store takes in every part of a region over cluster_nodes nodes. */
uint64_t kdsm_bdd_part_bytes(const struct kdsm_bdd_attr *attr,
			     unsigned int cluster_nodes);

/*
 * Open the store at offset (a multiple of 64) of every part of region, whose
 * memory must be zero when the first process does. All processes give the same
 * offset and attributes. -EINVAL, -ERANGE, -EFBIG, -ENOMEM as kdsm_table_open().
 */
int kdsm_bdd_open(struct kdsm_bdd_store **store, struct kdsm_region *region,
		  uint64_t offset, const struct kdsm_bdd_attr *attr);
void kdsm_bdd_close(struct kdsm_bdd_store *store);	/* NULL is ignored */
struct kdsm_table *kdsm_bdd_table(struct kdsm_bdd_store *store);

int kdsm_bdd_worker_new(struct kdsm_bdd_store *store,
			struct kdsm_bdd_worker **worker);
void kdsm_bdd_worker_free(struct kdsm_bdd_worker *worker);

/*
 * Operations by all workers of a pool of tasks (<kdsm/task.h>), of this node or all: first
 * fill attr so that the workers of a pool that is opened with it can work on the store,
 * which must stay open as long as the pool; then have the operations of a worker, but for
 * those on private nodes, be run by the pool (NULL: by the caller, as at first). All
 * processes of the pool open a store of the same place, and make the same relations
 * before. The worker's operations fail with the pool, too: -EOWNERDEAD and others
 * (KDSM_RUN()); so they do in a task of the pool, with -EDEADLK: a task has another worker,
 * that of KDSM_BDD_WORKER().
 */
struct kdsm_task;
struct kdsm_tasks;
struct kdsm_tasks_attr;
struct kdsm_worker;
void kdsm_bdd_tasks(struct kdsm_bdd_store *store, struct kdsm_tasks_attr *attr);
void kdsm_bdd_use_tasks(struct kdsm_bdd_worker *worker, struct kdsm_tasks *tasks);

/*
 * Why the first failed operation since the last call failed, 0 if none did:
 * -ENOSPC: the table is full. -EIO: memory holds what is no BDD, or the wire
 * failed. -EINVAL: a variable out of range or out of order. -ENOMEM. Others as
 * those of operations on the region.
 */
int kdsm_bdd_error(struct kdsm_bdd_worker *worker);

struct kdsm_bdd_counts {
	uint64_t tasks;		/* recursive steps that no terminal case decided */
	uint64_t hits;		/* of those, found in the operation cache */
	uint64_t home_get;	/* results looked for on other nodes */
	uint64_t home_hit;	/* and found there */
	uint64_t home_put;	/* results stored on other nodes */
	struct kdsm_table_counts table;
};

void kdsm_bdd_counts(const struct kdsm_bdd_worker *worker,
		     struct kdsm_bdd_counts *counts);
/* Of all workers that the store has and had, those of pools too, while none is at work. */
void kdsm_bdd_all_counts(struct kdsm_bdd_store *store, struct kdsm_bdd_counts *counts);

/* ---- in tasks ---- */

/*
 * In the body of a task of a pool that was opened with what kdsm_bdd_tasks() filled in,
 *
 *	KDSM_BDD_WORKER(w);
 *
 * declares w, a struct kdsm_bdd_worker * for the operations of the task, until the end of the
 * block. They are run in place, as a KDSM_CALL() is, and others steal their parts as those
 * of any task. The task may spawn and sync between them, and pass w to functions, but not
 * to other tasks: each declares its own. An edge is the same in all tasks, on all nodes.
 *
 * kdsm_bdd_error(w) is of what this block has done with w, so the task has to look before
 * the end of it, and to return the error if others are to know.
 *
 * What needs no recursion (kdsm_bdd_variable(), make(), cube(), look(), evaluate()) or takes
 * all nodes one by one (support(), count_*(), cubes(), dot(), save(), load(), publish()) has
 * no parts, and nobody steals from the worker meanwhile. A relation is a pointer: a task
 * finds that of its process in a variable of the program.
 *
 * What tasks may not do gives -EDEADLK, and nothing is done: kdsm_bdd_private() and
 * kdsm_bdd_use_tasks(), of which kdsm_bdd_error() tells, kdsm_relation_new(), and
 * kdsm_bdd_collect(). So do operations with w where no block has it any more. w is not to
 * be freed. In a pool that was opened otherwise it is NULL.
 */
#define KDSM_BDD_WORKER(w) \
	struct kdsm_bdd_place w##_kdsm_place __attribute__((cleanup(kdsm_bdd_leave))) = \
		{ kdsm_worker, &kdsm_head, NULL, 0 }; \
	struct kdsm_bdd_worker *const w = kdsm_bdd_enter(&w##_kdsm_place)

/*
 * Where the operations of a worker spawn. It has the address of the task's own head, not
 * its value: that changes with every spawn and sync.
 */
struct kdsm_bdd_place {
	struct kdsm_worker *tasks;
	struct kdsm_task **head;
	struct kdsm_bdd_place *below;	/* of a task that waits, on the same stack */
	int error;			/* of that one */
};

struct kdsm_bdd_worker *kdsm_bdd_enter(struct kdsm_bdd_place *place);
void kdsm_bdd_leave(struct kdsm_bdd_place *place);

/* ---- operations ---- */

static inline kdsm_bdd kdsm_bdd_not(kdsm_bdd a)
{
	return a == KDSM_BDD_INVALID ? a : a ^ KDSM_BDD_COMPLEMENT;
}

/* The function "variable is true". */
kdsm_bdd kdsm_bdd_variable(struct kdsm_bdd_worker *worker, uint32_t variable);

/* If variable then high else low, of which neither depends on it or a lower one. */
kdsm_bdd kdsm_bdd_make(struct kdsm_bdd_worker *worker, uint32_t variable,
		       kdsm_bdd high, kdsm_bdd low);

kdsm_bdd kdsm_bdd_and(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_or(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_xor(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b);
kdsm_bdd kdsm_bdd_ite(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
		      kdsm_bdd c);

/*
 * A set of variables is passed as a cube: the conjunction of the variables.
 * kdsm_bdd_cube() makes one of count variables in increasing order.
 */
kdsm_bdd kdsm_bdd_cube(struct kdsm_bdd_worker *worker, const uint32_t *variables,
		       unsigned int count);

/* Is there a value, or has every value, of these variables such that a? */
kdsm_bdd kdsm_bdd_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube);
kdsm_bdd kdsm_bdd_forall(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube);
/* exists of a and b, without making that. */
kdsm_bdd kdsm_bdd_and_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
			     kdsm_bdd cube);

/* a with the function b for the variable, of which b may depend on any. */
kdsm_bdd kdsm_bdd_compose(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t variable,
			  kdsm_bdd b);
/*
 * A function that is a where care is true, and elsewhere what makes it small: it depends
 * on no variable that a does not. Mostly, not always, it has no more nodes than a.
 */
kdsm_bdd kdsm_bdd_restrict(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd care);

/* The variables that a depends on, as a cube. */
kdsm_bdd kdsm_bdd_support(struct kdsm_bdd_worker *worker, kdsm_bdd a);

/* Top variable and cofactors. -EINVAL: a is a terminal. */
int kdsm_bdd_look(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t *variable,
		  kdsm_bdd *high, kdsm_bdd *low);

/* Nodes of a, the terminal not counted. */
int kdsm_bdd_count_nodes(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint64_t *count);

/*
 * Over the count variables, in increasing order, how many assignments satisfy
 * a? result must be initialised. -EINVAL: a depends on another variable.
 */
int kdsm_bdd_count_states(struct kdsm_bdd_worker *worker, kdsm_bdd a,
			  const uint32_t *variables, unsigned int count,
			  mpz_t result);

/* The value of a where variable v has the value values[v]. 0, 1 or an error. */
int kdsm_bdd_evaluate(struct kdsm_bdd_worker *worker, kdsm_bdd a,
		      const uint8_t *values, uint32_t count);

/*
 * Calls visit with assignments of the count variables, in increasing order, that
 * satisfy a, each of them once: values[i] is 0, 1, or -1 for either. Those with 0 come
 * first. values are visit's until it returns; if that is not 0, it is the result, and
 * there are no further calls. -EINVAL: a depends on another variable.
 */
typedef int kdsm_bdd_visit(void *context, const int8_t *values);
int kdsm_bdd_cubes(struct kdsm_bdd_worker *worker, kdsm_bdd a, const uint32_t *variables,
		   unsigned int count, kdsm_bdd_visit *visit, void *context);

/*
 * A picture of a in the language of Graphviz: solid edges are high, dashed ones low, and
 * those with a dot are complemented. -EIO: file cannot be written.
 */
int kdsm_bdd_dot(struct kdsm_bdd_worker *worker, kdsm_bdd a, FILE *file);

/* ---- files ---- */

/*
 * Write count functions, at least one, to file in the .bdd format (kdsm-reach(1)): the
 * first as the set, the others as relations, and of each the set of variables that the
 * format has beside it, as a cube. variables may be NULL: then it is all variables below
 * 1000000 that some of the functions depends on, for the first of them the even ones. A
 * model is written so, too: its initial states and its relations, each with its variables.
 * What functions share is written once. A checksum follows.
 *
 * Nodes of other processes of the cluster are fetched many at a time; it takes memory of
 * about 72 bytes a node. -EINVAL: count is 0, or an edge is KDSM_BDD_INVALID. -EIO: memory
 * holds what is no BDD. -ENOMEM. The error of the stream, such as -ENOSPC: what it has
 * taken is of no use.
 */
int kdsm_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const kdsm_bdd *functions,
		  const kdsm_bdd *variables, unsigned int count);

/*
 * Read them from file, wherever it was written: *count functions and, unless variables is
 * NULL, what was beside them. Both arrays are to be freed with free(). Models in this
 * format are read as well: first the initial states, then the relations. Nothing that the
 * file says is relied on. It is read up to its checksum; if it has none, to its end.
 *
 * -EINVAL: the file is damaged, not whole, or something else. -EIO: it cannot be read.
 * -ENOMEM. The errors of operations, such as -ENOSPC: the table is full. On failure
 * nothing is to be freed.
 */
int kdsm_bdd_load(struct kdsm_bdd_worker *worker, FILE *file, kdsm_bdd **functions,
		  kdsm_bdd **variables, unsigned int *count);

/* ---- collections ---- */

/*
 * Keep the nodes of a through collections, of whatever node's part they are, until it is
 * unprotected as often as it was protected. Any thread may call these at any time but
 * while its process is in kdsm_bdd_collect(). An edge is protected for the process
 * that asks. Terminals and private functions need no protection, and take none.
 * -EINVAL: a is KDSM_BDD_INVALID. -ENOMEM.
 */
int kdsm_bdd_protect(struct kdsm_bdd_store *store, kdsm_bdd a);
void kdsm_bdd_unprotect(struct kdsm_bdd_store *store, kdsm_bdd a);

/* What a collection came to: nodes, in the parts of all nodes of the cluster. */
struct kdsm_bdd_collection {
	uint64_t before, after;	/* in the table */
	uint64_t size;		/* that it has room for, after it has grown */
	double seconds;
};

/*
 * Remove from the table all nodes but those that protected edges lead to. Those that
 * stay keep their numbers, so protected edges stay as they are; all other edges that
 * anybody has are void. Collective: one process on every node of the cluster calls it,
 * with the same number of calls before, and no other process has the store open. No
 * thread of these processes may use the store meanwhile, and no task either; each gives
 * as many threads to it as it says, 0 meaning 1. The operation cache is empty afterwards.
 *
 * timeout, in ns: for others to give a sign of life. collection may be NULL.
 *
 * -EBUSY: another process of this node has called it for this store. -EDEADLK: called by a
 * task of a pool that works on the store. -ENOSPC: even what is alive is too much for the
 * table. -EIO: memory holds what is no BDD, or the wire failed. -ETIMEDOUT, -ECANCELED:
 * another process is gone, or failed. -ENOMEM. Others as those of operations on the
 * region. After any of these but the first two the store is of no use to anybody.
 */
int kdsm_bdd_collect(struct kdsm_bdd_store *store, unsigned int threads, uint64_t timeout,
		     struct kdsm_bdd_collection *collection);

/* ---- relations ---- */

/*
 * Relations are read at every step by every worker, so they do not live in the
 * table: between kdsm_bdd_private(worker, 1) and (worker, 0) the worker makes
 * nodes in a store of its process. Operations then take only operands that were
 * made so, and no other worker of the process may be at work. All processes must
 * make the same ones in the same order, because their edges are keys of the
 * operation cache; kdsm_bdd_private_digest() is equal where they have.
 */
void kdsm_bdd_private(struct kdsm_bdd_worker *worker, int on);
/* The table's edge of a private function. */
kdsm_bdd kdsm_bdd_publish(struct kdsm_bdd_worker *worker, kdsm_bdd a);
uint64_t kdsm_bdd_private_digest(const struct kdsm_bdd_store *store);

/*
 * A transition relation. Bit i of the current state is variable 2i, of the next
 * state 2i + 1. variables is a function whose support, all below
 * first_action, is the set of variables that the relation speaks of; both are
 * private. Other bits stay as they are, except that a bit of which only the
 * current variable is in the set is read and stays. The variables of the
 * relation from first_action on are quantified. -EINVAL: the relation depends on
 * a variable below first_action that is not in the set. -ENOMEM.
 */
struct kdsm_relation;

int kdsm_relation_new(struct kdsm_bdd_worker *worker, kdsm_bdd relation,
		      kdsm_bdd variables, uint32_t first_action,
		      struct kdsm_relation **result);
void kdsm_relation_free(struct kdsm_relation *relation);

/* The successors, in current variables, of a set of states in current variables. */
kdsm_bdd kdsm_bdd_successors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			     const struct kdsm_relation *relation);
/* The states, in current variables, of which some successor is in the set. */
kdsm_bdd kdsm_bdd_predecessors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			       const struct kdsm_relation *relation);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_BDD_H */
