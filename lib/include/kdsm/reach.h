/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbolic reachability (libkdsm-reach): the workers of all nodes compute the set of the
 * reachable states of a model.
 *
 * One process on every node of the cluster opens the same model with the same options and
 * searches. Node 0 gets the result. On the local backend one process is the whole cluster.
 * Conventions are those of <kdsm/kdsm.h>. kdsm_reach(3) has an example program.
 */
#ifndef KDSM_REACH_H
#define KDSM_REACH_H

#include <stdbool.h>
#include <stdint.h>
#include <gmp.h>

#include <kdsm/bdd.h>
#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of workers of one node */
#define KDSM_REACH_WORKERS	256

/* An open model and its search */
struct kdsm_reach;

/* One sentence for a person, without a newline: what failed, where, and the remedy */
struct kdsm_reach_message {
	char text[512];
};

/*
 * Orders of the places of a Petri net from the root of BDDs. The order decides how many BDD
 * nodes a set of markings has. kdsm-reach(1) describes the orders.
 */
enum kdsm_reach_order {
	/*
	 * The library chooses the order that it expects to need the fewest BDD nodes. Saturation
	 * tries several orders in turn and favours the one in which it finds the most states,
	 * unless the options name a file with an invariant, or a number of levels. The order of a
	 * checkpoint is the first one that a later search tries.
	 */
	KDSM_REACH_ORDER_AUTO,
	KDSM_REACH_ORDER_FILE,		/* of the file */
	KDSM_REACH_ORDER_REVERSED,	/* of the file, from its end */
	KDSM_REACH_ORDER_CUTHILL_MCKEE,
	KDSM_REACH_ORDER_SLOAN,
	KDSM_REACH_ORDER_SLOAN_REVERSED,
	KDSM_REACH_ORDER_FORCE,
	KDSM_REACH_ORDER_FORCE_REVERSED,
	KDSM_REACH_ORDER_UNITS,		/* of a nested-unit Petri net, others as FORCE */
	KDSM_REACH_ORDER_UNITS_REVERSED,
	KDSM_REACH_ORDER_LAST = KDSM_REACH_ORDER_UNITS_REVERSED,
	KDSM_REACH_ORDER_GIVEN,		/* of options.order_file; only in results */
	/* This value and greater ones: further orders that nodes try; only in results */
	KDSM_REACH_ORDER_FURTHER
};

/* Progress of a search; valid only during the call of progress() */
struct kdsm_reach_progress {
	unsigned int level;		/* number of levels that have ended */
	enum kdsm_reach_order order;	/* in use now; see struct kdsm_reach_result */
	mpz_t states;			/* found, when last counted; 0 except on node 0 */
	uint64_t nodes;			/* BDD nodes of the set of these states */
	uint64_t table_used, table_size;	/* BDD nodes */
	double seconds;			/* since the search began */
	double level_seconds;		/* since the last level ended */
	uint64_t tasks;			/* steps of BDD operations by this process */
	uint64_t remote;		/* remote operations of this process */
};

struct kdsm_reach_result;

/* Formats of models */
enum kdsm_reach_format {
	KDSM_REACH_FORMAT_AUTO,		/* by the content of the file */
	KDSM_REACH_FORMAT_PNML,		/* Petri net */
	KDSM_REACH_FORMAT_BDD,		/* BDDs of LTSmin or Sylvan, in either layout */
	KDSM_REACH_FORMAT_AIGER,	/* and-inverter graph */
	KDSM_REACH_FORMAT_LAST = KDSM_REACH_FORMAT_AIGER
};

/*
 * Options of a search. Zero means the default where a comment names one. All nodes give the
 * same values, except for argsz, workers, save, save_order, witness, checkpoint, interval,
 * progress, progress_interval, level, known, warn and context. The caller owns strings and
 * arrays, and does not change them before kdsm_reach_close().
 */
struct kdsm_reach_options {
	size_t argsz;		/* size of this struct */
	const char *path;		/* file of the model; "-": the standard input */
	enum kdsm_reach_format format;	/* of the file */
	const char *job;		/* the processes of one search use the same name */
	unsigned int workers;		/* threads of this node, 1 to KDSM_REACH_WORKERS */
	uint64_t timeout;		/* silence, in ns, after which another node is dead */
	struct kdsm_bdd_attr bdd;	/* table and operation cache */
	bool chaining;			/* add successors within a level; fewer levels */
	bool saturation;		/* saturate instead of searching breadth first */
	/*
	 * With saturation, on several nodes: nodes that saturation does not use may search breadth
	 * first, and the first strategy that ends gives the result.
	 */
	bool race;
	enum kdsm_reach_order order;	/* of the places of a Petri net */
	/*
	 * NULL, or a file with the order, which replaces the option order. Each line names a place
	 * of a Petri net by its id, or a latch (l0, l1, ...) or an input (i0, i1, ...) of a
	 * circuit. The file names all of them.
	 */
	const char *order_file;
	bool deadlocks;			/* count the states without a successor */
	bool trace;			/* find shortest traces; breadth first only */
	/*
	 * End the search once a property is violated, a formula is false or, with deadlocks, a
	 * state has no successor. If formulas are all that the search checks, end it once it has
	 * answered all of them.
	 */
	bool stop_at_violation;
	bool counts;			/* of a Petri net: count fired transitions and tokens */
	/* of a Petri net: sets of places "PLACE[,PLACE...]", whose largest sum of tokens to find */
	const char *const *upper_bound;
	unsigned int upper_bounds;
	const char *const *bound;	/* properties "PLACE[,PLACE...]=K" of a Petri net */
	unsigned int bounds;
	const char *const *invariant;	/* properties: files in the .bdd format */
	unsigned int invariants;
	/*
	 * Files of formulas about a Petri net, in the XML of the Model Checking Contest;
	 * kdsm-reach(1) describes them. The search answers them when it has ended.
	 */
	const char *const *formula;
	unsigned int formulas;
	const char *save;		/* NULL, or the file for the states found (node 0) */
	const char *save_order;		/* NULL, or the file for the order (node 0) */
	/* NULL, or the file for the witnesses of a circuit (node 0); needs trace */
	const char *witness;
	/*
	 * NULL, or the checkpoint file (node 0). If the file exists, the search continues from
	 * it. The search writes the file after every interval, with saturation also within a
	 * round, and at its end.
	 */
	const char *checkpoint;
	uint64_t interval;		/* least time between two checkpoints, in ns */
	uint64_t levels;		/* number of levels after which to end; 0: no limit */
	/*
	 * Functions that the search calls, one at a time; each may be NULL. The thread that called
	 * kdsm_reach_search() calls progress: on node 0 after every progress_interval, also within
	 * a level, and on every node soon after kdsm_reach_report(). Another thread calls known on
	 * node 0 when states, nodes and verdict of the result are known, before the search counts
	 * transitions, tokens and deadlocks, finds traces and saves the states, which may take
	 * long or fail; warn on node 0 when a step failed that the result does not need; and level
	 * on node 0 after levels, unless counting their states would take more than a twentieth of
	 * the time.
	 */
	void (*progress)(void *context, const struct kdsm_reach_progress *progress);
	void (*level)(void *context, const struct kdsm_reach_progress *progress);
	void (*known)(void *context, const struct kdsm_reach_result *result);
	void (*warn)(void *context, const char *text);
	uint64_t progress_interval;	/* in ns; 0: 200 ms */
	void *context;			/* argument of these functions */
};

/* The model that kdsm_reach_open() has read; its strings live until kdsm_reach_close() */
struct kdsm_reach_model {
	size_t argsz;		/* size of this struct */
	const char *name;		/* of the file, without directory and suffix */
	const char *kind;		/* "Petri net", "and-inverter graph" or "BDDs" */
	unsigned int bits;		/* of a state; of a Petri net: places */
	unsigned int relations;		/* of a Petri net: transitions */
	unsigned int properties;	/* of the model and of the options */
};

/* Garbage collections of the table, over all nodes */
struct kdsm_reach_collections {
	uint64_t count, nodes;		/* collections; BDD nodes removed */
	double seconds;
};

/* A property of the model or of the options */
struct kdsm_reach_verdict {
	char *name;
	bool violated;
	uint64_t steps;			/* if violated: least steps from an initial state */
	bool at_most;			/* steps may be fewer: the checkpoint holds only a bound */
};

/* The tokens of a place of a Petri net in a state, at least one */
struct kdsm_reach_marked {
	char *place;
	uint64_t tokens;
};

/* A shortest path from an initial state to a deadlock or to a violation */
struct kdsm_reach_trace {
	char *what;			/* name of the property, or "deadlock" */
	unsigned int property;		/* its number; UINT_MAX for a deadlock */
	uint64_t steps;
	struct kdsm_reach_step {	/* [0..steps] */
		char *label;		/* transition or relation taken; NULL for step 0 */
		char *state;		/* the marked places, or the bits */
		/* of a Petri net: its marked places, in the order of the file; else NULL */
		struct kdsm_reach_marked *marking;	/* [marked] */
		unsigned int marked;
		/*
		 * Of a circuit: values of its inputs in this state, in the order of the file,
		 * that lead to the next state or violate the property. NULL in the last state
		 * of a path to a deadlock or to a property of options.invariant, and in other
		 * models.
		 */
		char *inputs;
	} *step;
};

/* The most tokens that some places of a Petri net have together in a state that was found */
struct kdsm_reach_upper_bound {
	char *places;			/* as in "p + q" */
	uint64_t tokens;
};

/* The answer to a formula of options.formula */
enum kdsm_reach_answer {
	KDSM_REACH_UNKNOWN,
	KDSM_REACH_FALSE,
	KDSM_REACH_TRUE,
	KDSM_REACH_BOUND		/* the formula asks for a bound, not for a truth */
};

struct kdsm_reach_formula {
	char *id;
	enum kdsm_reach_answer answer;
	uint64_t bound;			/* tokens; if the answer is KDSM_REACH_BOUND */
	char *why;			/* if the answer is KDSM_REACH_UNKNOWN: the reason */
	/*
	 * A shortest path to a state that proves or disproves the formula. NULL without
	 * options.trace, and if one state can neither prove nor disprove the formula.
	 */
	struct kdsm_reach_trace *trace;
};

/*
 * The result of a search. Node 0 gets all of it, other nodes counts, workers, stopped and
 * ended_early.
 *
 * If the search fails after it has begun, model is not NULL on node 0, and the result has what
 * the search had found: the states when they were last counted, or 0; verdicts, where violated is
 * final; 1 or more deadlocks if it saw one; answers to formulas. table_size is 0 unless the search
 * had ended.
 */
struct kdsm_reach_result {
	size_t argsz;		/* size of this struct */
	char *model;
	const char *kind;		/* as in struct kdsm_reach_model */
	unsigned int bits, relations;
	unsigned int clusters;		/* of a circuit's relation; 0 for other models */
	/*
	 * Of a Petri net or a circuit: the order of the states, where KDSM_REACH_ORDER_AUTO is a
	 * circuit's own order, and the number of orders that the search has tried
	 */
	enum kdsm_reach_order order;
	unsigned int orders;
	double relation_seconds;	/* of reading the model and making its relations */
	mpz_t states;			/* number of reachable states */
	uint64_t nodes;			/* BDD nodes of the set of states */
	bool saturation;		/* the strategy that gave the result is saturation */
	uint64_t levels, tasks;
	uint64_t table_used, table_size;	/* BDD nodes */
	bool complete;			/* false: options.levels or a stop ended the search */
	bool ended_early;		/* options.stop_at_violation ended the search */
	bool stopped;			/* kdsm_reach_stop() on some node ended the search */
	double seconds;			/* of searching */
	uint64_t from_level;		/* of the checkpoint, if in the order of the result; or 0 */
	double before;			/* seconds of the searches up to that checkpoint */
	bool unsaved;			/* save, save_order or witness could not be written */
	unsigned int workers, cluster_nodes;	/* threads of all nodes; number of nodes */
	unsigned int winner;		/* the node, or first one of several, that had all states */
	struct kdsm_counts remote;	/* remote operations of all nodes */
	uint64_t tasks_least, tasks_most;	/* tasks of the node with fewest, and with most */
	/*
	 * Memory of the node that used most, in bytes: the peak of its process and, on a
	 * cluster, its part of table and cache
	 */
	uint64_t memory;
	struct kdsm_bdd_counts counts;	/* of this node's workers */
	struct kdsm_reach_collections collections;
	unsigned int properties;
	struct kdsm_reach_verdict *verdict;	/* [properties] */
	mpz_t deadlocks;		/* if options.deadlocks: their number */
	bool counted;			/* the following numbers are valid */
	/*
	 * If options.counts: the number of pairs of a state and a transition that is enabled in
	 * it; the most tokens of one place, and of all places together, in a state
	 */
	mpz_t fired;
	uint64_t place_tokens, marking_tokens;
	unsigned int upper_bounds;
	struct kdsm_reach_upper_bound *upper_bound;	/* [upper_bounds] */
	unsigned int traces;
	struct kdsm_reach_trace *trace;	/* [traces] */
	unsigned int formulas;
	struct kdsm_reach_formula *formula;	/* [formulas], in the order of the files */
};

/*
 * Read the model and the properties, and reserve the memory of this node. The caller keeps
 * kdsm open until kdsm_reach_close(). The call copies *options, but not what its pointers
 * point to. The caller closes *reach with kdsm_reach_close().
 *
 * Returns 0; or a negative errno, with NULL in *reach and the reason in *message. Errors are
 * those of opening and reading files, -EINVAL (this library cannot read the file as a
 * model), -EDOM (a place of the Petri net has no bound, or initially more tokens than its
 * bits can count), -EBUSY (the job is running on this node), -ENOMEM, -ENOSPC (the table is too
 * small for the model), and those of kdsm_region_open().
 */
int kdsm_reach_open(struct kdsm *kdsm, const struct kdsm_reach_options *options,
		    struct kdsm_reach **reach, struct kdsm_reach_message *message);

/* Describe the open model in *model, which the caller owns. Errors: those of argsz. */
int kdsm_reach_model(const struct kdsm_reach *reach, struct kdsm_reach_model *model);

/*
 * Search. Every node of the cluster calls this function once, within options.timeout of the
 * others. The call fills *result, which the caller has initialised with
 * kdsm_reach_result_init() and frees with kdsm_reach_result_free().
 *
 * Returns 0; or a negative errno, with the reason in *message: -ENOSPC (the table is too
 * small), -EDOM (a place of the Petri net gets more tokens than its bits can count),
 * -ETIMEDOUT or -EHOSTDOWN (another node did not call this function in time, or died),
 * -ECANCELED (another node gave up), -EPROTO (the nodes have different models or options),
 * -EALREADY (*reach has been searched before), -ENOMEM, -EIO.
 */
int kdsm_reach_search(struct kdsm_reach *reach, struct kdsm_reach_result *result,
		      struct kdsm_reach_message *message);

/*
 * Let the search of all nodes end soon, although it has not found all states. Breadth-first search
 * and chaining first finish the products with one relation that are in progress.
 * kdsm_reach_search() then writes the checkpoint, and returns 0 with the states found so far, but
 * without deadlocks, traces and saved states. One node that calls this function is enough. After
 * the last level the call has no effect. A signal handler may call this function between
 * kdsm_reach_open() and kdsm_reach_close().
 */
void kdsm_reach_stop(struct kdsm_reach *reach);

/*
 * Let the search of this node call options.progress within a fraction of a second. A signal
 * handler may call this function between kdsm_reach_open() and kdsm_reach_close().
 */
void kdsm_reach_report(struct kdsm_reach *reach);

/*
 * Close the model. If this node has not searched, the searches of the other nodes fail with
 * -ECANCELED. NULL is ignored. Results stay valid.
 */
void kdsm_reach_close(struct kdsm_reach *reach);

/*
 * Initialise *result, which the caller owns, before kdsm_reach_search(). Errors: those of argsz.
 */
int kdsm_reach_result_init(struct kdsm_reach_result *result);
/* Free the memory that *result points to, but not *result. */
void kdsm_reach_result_free(struct kdsm_reach_result *result);

#ifdef __cplusplus
}
#endif

#endif /* KDSM_REACH_H */
