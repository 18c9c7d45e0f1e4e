/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internals of libkdsm-reach: models and their readers, and the search. Programs use
 * <kdsm/reach.h>. BDDs and files in the .bdd format are in lib/bdd.
 */
#ifndef KD_REACH_INTERNAL_H
#define KD_REACH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kdsm/bdd.h>
#include <kdsm/reach.h>

#include "bdd/bdd.h"
#include "core/core.h"

/* ---- message.c ---- */

struct kd_search;

/* Set the message: one sentence that says what went wrong, where, and what to do. */
void kd_say(struct kdsm_reach_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Pass a sentence about a failure that does not end the search to options->warn. */
void kd_search_warn(const struct kd_search *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- model.c and the readers model_*.c ---- */

/*
 * A model is a set of initial states and a transition relation in parts, read from a file.
 * All BDDs of a model are made of private nodes, which are the same on every cluster node
 * that reads the same file.
 */

/* A property that must hold in every reachable state */
struct kd_property {
	char *name;
	kdsm_bdd bad;			/* private: the states that violate it */
};

struct kd_net;			/* below; the Petri net of a model */

struct kd_model {
	char *name;			/* the file's name without directory and suffix */
	const char *kind;		/* description of the file's format, for messages */
	unsigned int bits;		/* of a state; bit i is variable 2i */
	uint32_t *variables;		/* 2 * 0 .. 2 * (bits - 1) */
	kdsm_bdd initial;		/* private */
	unsigned int relations;
	struct kdsm_relation **relation;
	/*
	 * Of a Petri net: if relation i is taken from a state of trap[i], the net is not
	 * 1-safe. A NULL entry means that there is no such state.
	 */
	struct kdsm_relation **trap;
	struct kd_net *net;
	unsigned int properties;
	struct kd_property *property;
};

/*
 * Read the model in the file at path. The suffix of the file's name gives the format:
 * *.pnml is a Petri net, *.aag and *.aig are and-inverter graphs, all others are in the
 * .bdd format. The worker makes private nodes. On failure return a negative errno and set
 * *message.
 */
int kd_model_load(struct kdsm_bdd_worker *worker, const char *path,
		  struct kd_model *model, struct kdsm_reach_message *message);
void kd_model_free(struct kd_model *model);

/* The readers of the formats. The file is in memory; model is zero except for the name. */
int kd_model_read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		      const unsigned char *file, size_t size,
		      struct kd_model *model, struct kdsm_reach_message *message);
int kd_model_read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		       const unsigned char *file, size_t size,
		       struct kd_model *model, struct kdsm_reach_message *message);

int kd_model_read_aiger(struct kdsm_bdd_worker *worker, const char *path,
			const unsigned char *file, size_t size,
			struct kd_model *model, struct kdsm_reach_message *message);

/*
 * Name a place and a transition that show that a net is not 1-safe, in *message. states are
 * in the table, and some of them are in the trap of the relation.
 */
int kd_model_blame(const struct kd_model *model, struct kdsm_bdd_worker *worker,
		   kdsm_bdd states, unsigned int relation,
		   struct kdsm_reach_message *message);

/* ---- net.c ---- */

/* Petri nets (place/transition nets), as read from PNML. */
struct kdsm_reach_message;

struct kd_arc {
	unsigned int place, weight;
};

struct kd_place {
	char *id;
	unsigned int marking;
};

struct kd_transition {
	char *id;
	struct kd_arc *in, *out;	/* sorted by place, each place once */
	unsigned int ins, outs;
};

struct kd_net {
	struct kd_place *place;
	struct kd_transition *transition;
	unsigned int places, transitions;
};

/*
 * pnml.c. On failure return a negative errno and set *message; the caller frees *net even
 * then.
 */
int kd_net_read(const char *path, const unsigned char *file, size_t size,
		struct kd_net **net, struct kdsm_reach_message *message);
void kd_net_free(struct kd_net *net);	/* NULL is ignored */

/*
 * The number of tokens that the arcs move at a place when the transition fires; 0 if no arc
 * concerns the place.
 */
unsigned int kd_net_weight(const struct kd_arc *arcs, unsigned int count,
			   unsigned int place);

/* ---- pnml.c ---- */

/* The interface between the reader of PNML (pnml.c) and the maker of nets (net.c) */
enum kd_kind {
	KD_PLACE, KD_TRANSITION, KD_ARC, KD_REFERENCE_PLACE, KD_REFERENCE_TRANSITION,
};

/* An element of the file */
struct kd_object {
	enum kd_kind kind;
	char *id;
	char *from, *to;	/* source and target of an arc; of a reference: from is ref */
	unsigned int number;	/* tokens: initial marking, or weight of an arc */
	unsigned long line;
	unsigned int index;	/* net.c: index of the place or transition */
};

struct kd_pnml {
	const char *path;
	struct kdsm_reach_message *message;
	struct kd_object *object;
	size_t objects, capacity;
};

/*
 * Append an object, all zero. Return NULL if there is no memory. The pointer is valid until
 * the next call.
 */
struct kd_object *kd_pnml_add(struct kd_pnml *pnml);
int kd_pnml_parse(struct kd_pnml *pnml, const unsigned char *file, size_t size);

/* ---- aiger.c ---- */

/*
 * And-inverter graphs, as read from AIGER: gates with two inputs, and latches. A literal is
 * 2 * variable, plus 1 if it is negated. Variable 0 is false.
 */

struct kdsm_reach_message;

enum kd_aiger_kind {
	KD_AIGER_UNKNOWN, KD_AIGER_FALSE, KD_AIGER_INPUT, KD_AIGER_LATCH, KD_AIGER_AND,
};

struct kd_aiger_variable {
	enum kd_aiger_kind kind;
	uint32_t number;		/* index of the input or latch, from 0 */
	uint32_t operand[2];		/* of a gate: two literals */
};

enum kd_aiger_reset { KD_AIGER_RESET_0, KD_AIGER_RESET_1, KD_AIGER_RESET_ANY };

struct kd_aiger_latch {
	uint32_t next;			/* literal */
	enum kd_aiger_reset reset;
};

struct kd_aiger_property {
	uint32_t bad;			/* literal that is true where the property is violated */
	char *name;			/* printable, or NULL */
};

struct kd_aiger {
	/*
	 * The greatest variable. Each variable that is used is defined, and depends on no
	 * cycle of gates.
	 */
	uint32_t last;
	uint32_t inputs, latches, gates, properties, constraints;
	struct kd_aiger_variable *variable;	/* [0..last] */
	struct kd_aiger_latch *latch;
	/* The bad-state properties; if there are none, the outputs */
	struct kd_aiger_property *property;
	char kind;			/* of the properties: 'b' bad states, 'o' outputs */
	uint32_t *constraint;		/* literals that are true in every step */
	uint32_t *order;		/* the gates' variables, operands first */
};

/* On failure return a negative errno and set *message; the caller frees *aiger even then. */
int kd_aiger_read(const char *path, const unsigned char *file, size_t size,
		  struct kd_aiger **aiger, struct kdsm_reach_message *message);
void kd_aiger_free(struct kd_aiger *aiger);	/* NULL is ignored */

/* ---- invariant.c ---- */

/*
 * Invariants that the user gives in addition to the model: each becomes a property of the
 * model. The worker makes private nodes. On failure return a negative errno and set
 * *message.
 */

/* "PLACE[,PLACE...]=K": the places of the net never have more than K tokens in total. */
int kd_invariant_bound(struct kdsm_bdd_worker *worker, const char *text,
		       struct kd_model *model, struct kdsm_reach_message *message);

/* Every reachable state is in a set: the first function of a file in the .bdd format. */
int kd_invariant_file(struct kdsm_bdd_worker *worker, const char *path,
		      struct kd_model *model, struct kdsm_reach_message *message);

/* ---- the search: reach.c, search.c and what they call ---- */

/* Offset of the store in every part, in bytes; the gang's words are in front of the store */
#define KD_STORE	4096

/* The states that a task found, or a failure */
struct kd_found {
	kdsm_bdd states;
	uint64_t unsafe;		/* 1 + index of a relation whose trap was met; 0: none */
};

/* How the search fits into the table (search_collect.c); the same on all nodes */
struct kd_room {
	unsigned int slice;		/* relations taken at a time */
	bool fresh;			/* no slice has succeeded since the last collection */
	bool all;			/* the last collection left no reserve */
	uint64_t used, alive;		/* nodes after the last round; after the last collection */
	struct kdsm_reach_collections sum;
};

struct kd_search {
	const struct kdsm_reach_options *options;
	struct kdsm_reach_message *message;
	struct kdsm *kdsm;
	struct kdsm_region *region;
	struct kd_gang gang;
	struct kdsm_bdd_store *store;
	struct kd_model model;
	uint64_t began;			/* start of the search, in ns */
	uint64_t levels;
	/* levels of the loaded checkpoint; ns that the search took up to it */
	uint64_t from_level, before;
	uint64_t written;		/* time of the last checkpoint, or of the start, in ns */
	/*
	 * All states found; the frontier, i.e. the states of the last round; the states
	 * that this round has found up to now. Every edge that is kept from round to round
	 * must be a root (search_collect.c).
	 */
	kdsm_bdd visited, current, found;
	unsigned int from, to;		/* the current slice: relations from .. to - 1 */
	struct kd_room room;
	kdsm_bdd *bad;			/* on node 0: by property, the states that violate it */
	struct kdsm_reach_verdict *verdict;	/* on node 0: by property */
	kdsm_bdd *frontier;		/* on node 0, for traces: what each round found */
	struct kd_saturation *saturation;	/* NULL: another strategy */

	struct kdsm_bdd_worker *worker;	/* of the thread that runs the search */
	struct kdsm_tasks *tasks;	/* run the worker's operations; NULL: the worker does */
};

/* The number of the strategy in digests and checkpoints */
static inline uint64_t kd_search_strategy(const struct kd_search *s)
{
	return s->options->saturation ? 2 : s->options->chaining;
}

/* Size of each part of the region, in bytes */
uint64_t kd_search_part_bytes(const struct kdsm_reach_options *options, unsigned int nodes);
/*
 * kd_search_prepare() sets up all that needs no model. kd_search_start() starts the workers
 * after the model is loaded. kd_search_run() searches. kd_search_stop() stops all that was
 * started.
 */
int kd_search_prepare(struct kd_search *s);
int kd_search_start(struct kd_search *s);
int kd_search_run(struct kd_search *s);
void kd_search_stop(struct kd_search *s);

/*
 * checkpoint.c. kd_checkpoint_load() runs on node 0 after kd_property_begin(). It returns 1
 * if the search resumes from the checkpoint, 0 if there is none, or a negative errno.
 * kd_checkpoint_write() runs between rounds, and writes a checkpoint if the interval has
 * passed or the round was the last.
 */
int kd_checkpoint_load(struct kd_search *s);
void kd_checkpoint_write(struct kd_search *s, bool last);

/*
 * search_collect.c. All nodes call these functions with the same numbers.
 * kd_room_prepare() sets the table's reserve. kd_room_begin() makes all relations the first
 * slice. kd_room_progress() records that the current slice has been taken. kd_room_plan()
 * selects the next slice and sets *order, for kd_room_collect(); an order of 0 means no
 * collection. kd_room_plan() returns -ENOSPC if the table is too small. The outcome is that
 * of the last slice, on all nodes together.
 */
enum kd_outcome { KD_FULL, KD_SLICE_DONE, KD_ROUND_DONE, KD_SEARCH_DONE };

void kd_room_prepare(struct kd_search *s);	/* before workers exist */
void kd_room_begin(struct kd_search *s);
void kd_room_progress(struct kd_search *s);
int kd_room_plan(struct kd_search *s, enum kd_outcome outcome, uint64_t used, uint64_t *order);
/* Run the collection that kd_room_plan() ordered. */
int kd_room_collect(struct kd_search *s, uint64_t order);

/*
 * Tell whether the visited states are all reachable states: the last round found no new
 * state, or all rounds of saturation are done.
 */
bool kd_search_complete(const struct kd_search *s);

/*
 * saturate.c. kd_saturation_begin() runs when the model is loaded. kd_saturation_round()
 * takes the place of a slice.
 */
int kd_saturation_begin(struct kd_search *s);
int kd_saturation_round(struct kd_search *s, struct kd_found *found);
bool kd_saturation_ended(const struct kd_search *s);
void kd_saturation_end(struct kd_search *s);

/*
 * property.c. kd_property_begin() runs on the loaded model, kd_property_check() on each new
 * s->current.
 */
int kd_property_begin(struct kd_search *s, struct kdsm_reach_result *result);
int kd_property_check(struct kd_search *s);

/*
 * trace.c. kd_trace_note() runs on each new s->current, kd_trace_find() on node 0 after the
 * search.
 */
int kd_trace_note(struct kd_search *s);
int kd_trace_find(struct kd_search *s, struct kdsm_reach_result *result);

/* model.c: a digest of the model and its properties, the same on any number of nodes. */
uint64_t kd_search_digest(const struct kd_search *s);

/* successors.c: the successors by one relation, for the tasks of all strategies. */
struct kd_found kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			      kdsm_bdd from, uint32_t relation);

#endif /* KD_REACH_INTERNAL_H */
