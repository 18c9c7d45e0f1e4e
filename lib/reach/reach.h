/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reachability: all states of a model that can be reached, found breadth first
 * by all workers of all nodes.
 */
#ifndef KD_REACH_H
#define KD_REACH_H

#include "model.h"

#define KD_REACH_WORKERS	256	/* of a node, at most */

struct kd_progress {
	unsigned int level;
	mpz_t states;			/* so far */
	uint64_t table_used, table_size;	/* nodes */
	double seconds;
	uint64_t remote;		/* operations by this process */
};

struct kd_reach_options {
	const char *path;		/* of the model */
	const char *job;		/* programs of one job meet by this name */
	unsigned int workers;		/* threads, on this node */
	uint64_t timeout;		/* ns, for others to give a sign of life */
	struct kdsm_bdd_attr bdd;
	bool chaining;			/* a round begins with what it has found so far */
	bool saturation;		/* rounds by variables (saturate.c); not with chaining */
	bool deadlocks;			/* look for states without a successor */
	bool trace;			/* and for ways to these, and to violated properties */
	const char *const *bound;	/* invariants (invariant.h) */
	unsigned int bounds;
	const char *const *invariant;	/* paths of files */
	unsigned int invariants;
	const char *save;		/* NULL, or the file for the states found (node 0) */
	/*
	 * NULL, or the file (node 0) from which the search goes on, if it is there, and
	 * where checkpoints are written: one at the end, and at most so often before.
	 */
	const char *checkpoint;
	uint64_t interval;		/* ns */
	uint64_t levels;		/* rounds after which the search ends; 0: no limit */
	/* On node 0, after levels, at most so often as a person can read. */
	void (*progress)(void *context, const struct kd_progress *progress);
	/* On node 0, when something failed that the search can do without. */
	void (*warn)(void *context, const char *text);
	void *context;
};

/* Of the table's garbage, over all nodes. */
struct kd_collections {
	uint64_t count, nodes;		/* how often; nodes removed */
	double seconds;
};

/* Of a property of the model. */
struct kd_verdict {
	char *name;
	bool violated;
	uint64_t steps;			/* so soon, from an initial state */
};

/* A shortest way from an initial state to what it is about. */
struct kd_trace {
	char *what;			/* the property's name, or "deadlock" */
	uint64_t steps;
	struct kd_step {		/* [0..steps] */
		char *label;		/* what led there, a transition or relation; NULL for 0 */
		char *state;		/* its marked places, or its bits */
	} *step;
};

struct kd_reach_result {
	char *model;
	const char *kind;		/* of file that the model is */
	unsigned int bits, relations;	/* of the model; of a net: places and transitions */
	mpz_t states;
	uint64_t nodes, levels, tasks, table_used, table_size;
	bool complete;			/* or it ended after so many levels */
	double seconds;			/* of searching */
	uint64_t from_level;		/* of the checkpoint that it began with, or 0 */
	double before;			/* seconds up to there */
	bool unsaved;			/* the states could not be written; see warn() */
	unsigned int workers, cluster_nodes;	/* threads of all nodes */
	struct kdsm_counts remote;	/* of all nodes */
	uint64_t tasks_least, tasks_most;	/* of a node */
	/*
	 * Bytes, of the node that took most: its process at its peak and, on a cluster, its
	 * part of table and cache.
	 */
	uint64_t memory;
	struct kdsm_bdd_counts counts;	/* of this node's workers */
	struct kd_collections collections;
	unsigned int properties;
	struct kd_verdict *verdict;
	mpz_t deadlocks;		/* if they were looked for */
	unsigned int traces;
	struct kd_trace *trace;
};

/*
 * Search. Called on every node at about the same time, with the same model and
 * options but for workers. The result is filled on node 0 only (elsewhere counts
 * is) and to be freed. On failure a negative errno, and *message says what a
 * person has to know.
 */
int kd_reach(struct kdsm *kdsm, const struct kd_reach_options *options,
	     struct kd_reach_result *result, struct kd_message *message);
void kd_reach_result_init(struct kd_reach_result *result);
void kd_reach_result_free(struct kd_reach_result *result);

#endif /* KD_REACH_H */
