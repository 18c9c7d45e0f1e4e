/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside libkdsm-reach: models and their readers, and the search.
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
/* Pass a sentence to options->warn: something failed that the search can do without. */
void kd_search_warn(const struct kd_search *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- model.c and the readers model_*.c ---- */

/*
 * Models: a set of initial states and a transition relation in parts, read from
 * a file. Everything in a model is made of private nodes, the same on every node
 * of the cluster that reads the same file.
 */

/* What is to hold in every state that is reached. */
struct kd_property {
	char *name;
	kdsm_bdd bad;			/* private: the states where it does not hold */
};

struct kd_net;			/* below: the Petri net that a model was made of */

struct kd_model {
	char *name;			/* of the file, without directory and suffix */
	const char *kind;		/* what the file is, for people */
	unsigned int bits;		/* of a state; bit i is variable 2i */
	uint32_t *variables;		/* 2 * 0 .. 2 * (bits - 1) */
	kdsm_bdd initial;		/* private */
	unsigned int relations;
	struct kdsm_relation **relation;
	/*
	 * Of a Petri net: relation i may be taken from a state of trap[i] only
	 * if the net is not 1-safe. NULL entries: that cannot be.
	 */
	struct kdsm_relation **trap;
	struct kd_net *net;
	unsigned int properties;
	struct kd_property *property;
};

/*
 * Read the model in the file at path. By its name, *.pnml is a Petri net, *.aag and
 * *.aig an and-inverter graph, and everything else the .bdd format. The worker makes
 * private nodes. On failure a negative errno, and *message says what a person has to
 * know.
 */
int kd_model_load(struct kdsm_bdd_worker *worker, const char *path,
		  struct kd_model *model, struct kdsm_reach_message *message);
void kd_model_free(struct kd_model *model);

/* The formats. The file is in memory; model is zero but for the name. */
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
 * Of a net that turned out not to be 1-safe: put into message a place and a
 * transition that show it, from the states (in the table) of which some are in
 * the trap of the relation.
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
	struct kd_arc *in, *out;	/* by place, each place once */
	unsigned int ins, outs;
};

struct kd_net {
	struct kd_place *place;
	struct kd_transition *transition;
	unsigned int places, transitions;
};

/* pnml.c. On failure a negative errno and a message; *net is to be freed anyway. */
int kd_net_read(const char *path, const unsigned char *file, size_t size,
		struct kd_net **net, struct kdsm_reach_message *message);
void kd_net_free(struct kd_net *net);	/* NULL is ignored */

/* What firing a transition moves at a place, of 0 or more tokens. */
unsigned int kd_net_weight(const struct kd_arc *arcs, unsigned int count,
			   unsigned int place);

/* ---- pnml.c ---- */

/* Between the reader of PNML (pnml.c) and the maker of nets (net.c). */
enum kd_kind {
	KD_PLACE, KD_TRANSITION, KD_ARC, KD_REFERENCE_PLACE, KD_REFERENCE_TRANSITION,
};

/* An element as it stands in the file. */
struct kd_object {
	enum kd_kind kind;
	char *id;
	char *from, *to;	/* source and target of an arc; from: ref */
	unsigned int number;	/* of tokens: initial marking, or weight of an arc */
	unsigned long line;
	unsigned int index;	/* net.c: of the place or transition that it is */
};

struct kd_pnml {
	const char *path;
	struct kdsm_reach_message *message;
	struct kd_object *object;
	size_t objects, capacity;
};

/* A new object, all zero; NULL: no memory. It stays in place until the next. */
struct kd_object *kd_pnml_add(struct kd_pnml *pnml);
int kd_pnml_parse(struct kd_pnml *pnml, const unsigned char *file, size_t size);

/* ---- aiger.c ---- */

/*
 * And-inverter graphs, as read from AIGER: gates with two inputs, latches, and
 * literals, which are 2 * variable, + 1 if it is negated. Variable 0 is false.
 */

struct kdsm_reach_message;

enum kd_aiger_kind {
	KD_AIGER_UNKNOWN, KD_AIGER_FALSE, KD_AIGER_INPUT, KD_AIGER_LATCH, KD_AIGER_AND,
};

struct kd_aiger_variable {
	enum kd_aiger_kind kind;
	uint32_t number;		/* of the input or latch, from 0 */
	uint32_t operand[2];		/* literals, of a gate */
};

enum kd_aiger_reset { KD_AIGER_RESET_0, KD_AIGER_RESET_1, KD_AIGER_RESET_ANY };

struct kd_aiger_latch {
	uint32_t next;			/* literal */
	enum kd_aiger_reset reset;
};

struct kd_aiger_property {
	uint32_t bad;			/* literal: it is violated where this is true */
	char *name;			/* printable; NULL if it has none */
};

struct kd_aiger {
	uint32_t last;			/* variable; those in use are known, and have no cycle */
	uint32_t inputs, latches, gates, properties, constraints;
	struct kd_aiger_variable *variable;	/* [0..last] */
	struct kd_aiger_latch *latch;
	/* The bad-state properties, or else the outputs. */
	struct kd_aiger_property *property;
	char kind;			/* 'b' or 'o' */
	uint32_t *constraint;		/* literals that are true in every step */
	uint32_t *order;		/* the gates' variables, operands first */
};

/* On failure a negative errno and a message; *aiger is to be freed anyway. */
int kd_aiger_read(const char *path, const unsigned char *file, size_t size,
		  struct kd_aiger **aiger, struct kdsm_reach_message *message);
void kd_aiger_free(struct kd_aiger *aiger);	/* NULL is ignored */

/* ---- invariant.c ---- */

/*
 * What is to hold in every state, given beside the model: it becomes a property of it.
 * The worker makes private nodes. On failure a negative errno, and *message says what a
 * person has to know.
 */

/* "PLACE[,PLACE...]=K": the places of the net have never more than K tokens together. */
int kd_invariant_bound(struct kdsm_bdd_worker *worker, const char *text,
		       struct kd_model *model, struct kdsm_reach_message *message);

/* Every state is in the set (the first function) of a file in the .bdd format. */
int kd_invariant_file(struct kdsm_bdd_worker *worker, const char *path,
		      struct kd_model *model, struct kdsm_reach_message *message);

/* ---- the search: reach.c, search.c and what they call ---- */

/* The start of every part is the gang's words. */
#define KD_STORE	4096

/* The states that a task found, or its failure. */
struct kd_found {
	kdsm_bdd states;
	uint64_t unsafe;		/* a relation in whose trap we are, plus 1 */
};

/* How the table is made to do (search_collect.c); the same on all nodes. */
struct kd_room {
	unsigned int slice;		/* relations that are taken at a time */
	bool fresh;			/* nothing has been done since the last collection */
	bool all;			/* which left no reserve */
	uint64_t used, alive;		/* nodes after the last round, the last collection */
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
	uint64_t began;			/* ns */
	uint64_t levels;
	uint64_t from_level, before;	/* of the checkpoint: levels; ns that it took until then */
	uint64_t written;		/* ns, when the last checkpoint was, or the beginning */
	/*
	 * All found; those of the last round; what this round has found so far. Every
	 * edge that is kept from round to round has to be a root (search_collect.c).
	 */
	kdsm_bdd visited, current, found;
	unsigned int from, to;		/* relations to be taken now */
	struct kd_room room;
	kdsm_bdd *bad;			/* node 0: by property, where it is violated */
	struct kdsm_reach_verdict *verdict;	/* likewise */
	kdsm_bdd *frontier;		/* node 0, for traces: what each round found */
	struct kd_saturation *saturation;	/* NULL: another strategy */

	struct kdsm_bdd_worker *worker;	/* of the thread that leads */
	struct kdsm_tasks *tasks;	/* that do its operations; NULL: it does */
};

/* A number for digests and checkpoints. */
static inline uint64_t kd_search_strategy(const struct kd_search *s)
{
	return s->options->saturation ? 2 : s->options->chaining;
}

/* Of the region. */
uint64_t kd_search_part_bytes(const struct kdsm_reach_options *options, unsigned int nodes);
/*
 * Prepare what needs no model; start workers, when the model is there; search; stop
 * whatever was started.
 */
int kd_search_prepare(struct kd_search *s);
int kd_search_start(struct kd_search *s);
int kd_search_run(struct kd_search *s);
void kd_search_stop(struct kd_search *s);

/*
 * checkpoint.c. Load on node 0, when properties have begun: 1 if the search goes on from
 * the checkpoint, 0 if there is none. Write between rounds: if it is time, or the last.
 */
int kd_checkpoint_load(struct kd_search *s);
void kd_checkpoint_write(struct kd_search *s, bool last);

/*
 * search_collect.c, on all nodes from the same numbers: a slice has been taken; which is
 * next, and what is to be done before: an order for kd_room_collect(), or nothing, 0.
 * -ENOSPC: the table is too small.
 */
enum kd_outcome { KD_FULL, KD_SLICE_DONE, KD_ROUND_DONE, KD_SEARCH_DONE };

void kd_room_prepare(struct kd_search *s);	/* before workers are there */
void kd_room_begin(struct kd_search *s);
void kd_room_progress(struct kd_search *s);
int kd_room_plan(struct kd_search *s, enum kd_outcome outcome, uint64_t used, uint64_t *order);
/* What was planned. */
int kd_room_collect(struct kd_search *s, uint64_t order);

/* Nothing new was found, or all was done: visited are all states. */
bool kd_search_complete(const struct kd_search *s);

/* saturate.c. Begin when the model is loaded; a round like those of other strategies. */
int kd_saturation_begin(struct kd_search *s);
int kd_saturation_round(struct kd_search *s, struct kd_found *found);
bool kd_saturation_ended(const struct kd_search *s);
void kd_saturation_end(struct kd_search *s);

/* property.c. Begin when the model is loaded; check when s->current is new. */
int kd_property_begin(struct kd_search *s, struct kdsm_reach_result *result);
int kd_property_check(struct kd_search *s);

/* trace.c. Note when s->current is new; find, on node 0, after the search. */
int kd_trace_note(struct kd_search *s);
int kd_trace_find(struct kd_search *s, struct kdsm_reach_result *result);

/* model.c: a digest of the model and its properties, the same on any number of nodes. */
uint64_t kd_search_digest(const struct kd_search *s);

/* successors.c: the successors by one relation, for tasks of any strategy. */
struct kd_found kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			      kdsm_bdd from, uint32_t relation);

#endif /* KD_REACH_INTERNAL_H */
