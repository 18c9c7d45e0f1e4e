/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internals of libkdsm-reach: models and their readers, and the search. Programs use
 * <kdsm/reach.h>. BDDs and files in the .bdd format are in lib/bdd.
 */
#ifndef KD_REACH_INTERNAL_H
#define KD_REACH_INTERNAL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
void kd_search_warn(struct kd_search *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- input.c ---- */

/* The file of a model, in memory and decompressed */
struct kd_input {
	unsigned char *bytes;
	size_t size;
};

#define KD_STDIN	"standard input"	/* name of the path "-" in messages */

/*
 * Read the file at path; "-" is the standard input. On failure return a negative errno and set
 * *message. The caller frees *input.
 */
int kd_input_read(const char *path, struct kd_input *input, struct kdsm_reach_message *message);
void kd_input_free(struct kd_input *input);

/* Largest size of a file when decompressed, in bytes. Only tests change it. */
extern uint64_t kd_most_decompressed;

/* ---- model.c and the readers model_*.c ---- */

/*
 * A model is a set of initial states and a transition relation in parts, read from a file.
 * All BDDs of a model are made of private nodes, which are the same on every cluster node
 * that reads the same file.
 */

struct kd_bound;

/* A property that must hold in every reachable state */
struct kd_property {
	char *name;
	kdsm_bdd bad;			/* private: the states that violate it */
	struct kd_bound *bound;		/* the bound that it states, or NULL */
	uint64_t id;			/* the same in later runs with the same property */
	bool missed;			/* on node 0: the run that wrote the checkpoint lacked it */
};

struct kd_circuit;		/* circuit.h */
struct kd_net;			/* below; the Petri net of a model */
struct kd_marking;		/* below; how its markings are encoded */

/* How saturation fires a relation: itself, or as part of a union */
struct kd_merged {
	struct kdsm_relation *relation;	/* a union that begins with it; NULL: itself */
	bool within;
};

struct kd_model {
	char *name;			/* the file's name without directory and suffix */
	const char *kind;		/* description of the file's format, for messages */
	unsigned int bits;		/* of a state */
	uint32_t *variables;		/* [bits], ascending; 2 * i for bit i, but in nets */
	kdsm_bdd initial;		/* private */
	unsigned int relations;
	struct kdsm_relation **relation;
	struct kd_merged *merged;	/* [relations], or NULL: kd_model_merge() */
	struct kd_net *net;		/* of a Petri net, whose relation i is transition i */
	struct kd_marking *marking;
	enum kdsm_reach_order order;	/* of the places, or of the latches and inputs */
	struct kd_circuit *circuit;	/* of an and-inverter graph: circuit.h */
	unsigned int share, shares;	/* kd_marking_new() */
	unsigned int properties;
	struct kd_property *property;
};

/* How to read a model: its format, and the order of its variables */
struct kd_model_choice {
	enum kdsm_reach_format format;
	enum kdsm_reach_order order;
	const char *order_file;		/* NULL, or the file of the order */
};

/*
 * Read the model in the file at path; "-" is the standard input. The worker makes private nodes.
 * On failure return a negative errno and set *message.
 */
int kd_model_load(struct kdsm_bdd_worker *worker, const char *path,
		  const struct kd_model_choice *choice,
		  struct kd_model *model, struct kdsm_reach_message *message);
void kd_model_free(struct kd_model *model);

/* The readers of the formats. The file is in memory; model is zero except for the name. */
int kd_model_read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		      const unsigned char *file, size_t size,
		      struct kd_model *model, struct kdsm_reach_message *message);
int kd_model_read_bdd_2017(struct kdsm_bdd_worker *worker, const char *path,
			   const unsigned char *file, size_t size,
			   struct kd_model *model, struct kdsm_reach_message *message);
bool kd_model_is_bdd_2017(const unsigned char *file, size_t size);
int kd_model_read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		       const struct kd_model_choice *choice,
		       const unsigned char *file, size_t size,
		       struct kd_model *model, struct kdsm_reach_message *message);

int kd_model_read_aiger(struct kdsm_bdd_worker *worker, const char *path,
			const struct kd_model_choice *choice,
			const unsigned char *file, size_t size,
			struct kd_model *model, struct kdsm_reach_message *message);

/*
 * Make those parts of a net's model that depend on the order of its places. Models of one net in
 * several orders use different shares of the variables, selected by model->share, so a BDD never
 * means different sets in two of these models.
 */
int kd_model_order(struct kdsm_bdd_worker *worker, struct kd_model *model,
		   enum kdsm_reach_order order, struct kdsm_reach_message *message);

/*
 * Add bits to a place of a net, because its number of tokens overflowed, and make the
 * relations, initial states and properties again. All nodes widen the same places in the same
 * order. No task may run. The caller then passes each set of states found before to
 * kd_model_extend(), which sets the new bits to 0; bits is the place's number of bits before,
 * which kd_model_widen() returns. It returns -EIO if the model has no such place.
 */
int kd_model_widen(struct kdsm_bdd_worker *worker, struct kd_model *model, unsigned int place,
		   struct kdsm_reach_message *message);
kdsm_bdd kd_model_extend(struct kdsm_bdd_worker *worker, const struct kd_model *model,
			 unsigned int place, unsigned int bits, kdsm_bdd states);

/*
 * Whether a relation may be made again when a place is widened: a transition touches a place
 * whose bits are not known to suffice
 */
bool kd_model_widens(const struct kd_model *model, unsigned int relation);

/* Choose the unions that saturation fires, once for each model; see merge.c. No task may run. */
int kd_model_merge(struct kdsm_bdd_worker *worker, struct kd_model *model);

/* ---- net.c ---- */

/* Petri nets (place/transition nets), as read from PNML. */
struct kdsm_reach_message;

struct kd_arc {
	unsigned int place, weight;
};

struct kd_place {
	char *id;
	unsigned int marking;
	uint64_t bound;		/* proved upper bound of the tokens; UINT64_MAX: unknown */
	uint32_t unit;		/* a place without one has a unit of its own */
	uint64_t seen;		/* most tokens seen, initially or in a walk */
};

struct kd_transition {
	char *id;
	struct kd_arc *in, *out;	/* sorted by place, each place once */
	struct kd_arc *read;		/* the place needs the weight, and keeps it */
	struct kd_arc *inhibitor;	/* the place needs to have fewer tokens than the weight */
	unsigned int ins, outs, reads, inhibitors;
};

#define KD_ORDERS	KDSM_REACH_ORDER_LAST

struct kd_net {
	struct kd_place *place;
	struct kd_transition *transition;
	unsigned int places, transitions;
	unsigned int units;	/* of a nested-unit Petri net; else as many as places */
	/* By kd_net_orders(): different orders, the most promising one first */
	enum kdsm_reach_order best[KD_ORDERS];
	unsigned int orders;
	const uint64_t *interrupt;	/* not 0: nobody needs another order; or NULL */
};

/* Whether making an order, or relations in this order, may end early */
static inline bool kd_net_interrupted(const struct kd_net *net)
{
	return net->interrupt && __atomic_load_n(net->interrupt, __ATOMIC_RELAXED);
}

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

/*
 * semiflow.c: set the bounds of places that semiflows prove. Return 0 or -ENOMEM.
 */
int kd_net_semiflows(struct kd_net *net);

/*
 * walk.c: set the field seen of all places. If a walk shows that a place has no bound,
 * *unbounded is 1 + that place, else 0. The walks are the same on every node. Return 0 or
 * -ENOMEM.
 */
int kd_net_walk(struct kd_net *net, uint32_t *unbounded);

/* A random number below limit, the next one of a generator that is the same on every node */
static inline uint32_t kd_random_below(uint64_t *random, uint32_t limit)
{
	*random = kd_hash(*random, 0x5851f42d4c957f2d);
	return (*random >> 32) * (uint64_t)limit >> 32;
}

/*
 * order.c: kd_net_order() stores the places in an order of the net into order. kd_net_orders()
 * sets net->best. Both return 0 or -ENOMEM.
 */
int kd_net_order(const struct kd_net *net, enum kdsm_reach_order which, uint32_t *order);
int kd_net_orders(struct kd_net *net);
/*
 * order_variant.c: store the places in one more order, which is the same on all nodes. All numbers
 * are valid; the orders of small numbers are the most promising ones. Return 0 or -ENOMEM.
 */
int kd_net_order_variant(const struct kd_net *net, unsigned int number, uint32_t *order);

/*
 * order_file.c: kd_net_read_order() stores the places in the order of the file into order; on
 * failure it returns a negative errno and sets *message. kd_order_save() writes
 * options.save_order, and warns if it fails. kd_order_check() refuses files of orders for models
 * that have no order.
 */
int kd_net_read_order(const struct kd_net *net, const char *path, uint32_t *order,
		      struct kdsm_reach_message *message);
void kd_order_save(struct kd_search *s, struct kdsm_reach_result *result);
int kd_order_check(const struct kd_search *s);

/* ---- marking.c ---- */

#define KD_MOST_WIDTH	31	/* bits of a place */

struct kd_marking {
	unsigned int places;
	unsigned int room;	/* bits that each place may have */
	uint32_t base;		/* half of the first variable */
	uint32_t *first;	/* by place: variable of bit room - 1 */
	uint32_t *order;	/* the places in the order of their variables */
	uint8_t *width;		/* by place: bits in use, from bit 0 */
};

/*
 * Make an encoding in which each place has one bit. order is the order of the places from
 * the root of BDDs. share, which is below shares, selects a range of variables. On failure
 * return -ENOMEM; the caller frees *marking even then.
 */
int kd_marking_new(struct kd_marking **marking, unsigned int places, const uint32_t *order,
		   unsigned int share, unsigned int shares);
void kd_marking_free(struct kd_marking *marking);	/* NULL is ignored */

/* The current variable of a bit of a place; bit 0 is the least significant one */
static inline uint32_t kd_marking_variable(const struct kd_marking *m, unsigned int place,
					   unsigned int bit)
{
	return m->first[place] + 2 * (m->room - 1 - bit);
}

/* The number of all bits in use, and their variables in ascending order */
unsigned int kd_marking_bits(const struct kd_marking *m);
void kd_marking_variables(const struct kd_marking *m, uint32_t *variables);
/*
 * Files have the variables of an encoding that shares its range with no other: base is 0, and
 * the room is the most that all places can have. These set how the variables are renamed, and
 * do nothing without an encoding. A file may have kd_marking_file_bits() bits of states.
 */
void kd_marking_to_file(const struct kd_marking *m, struct kd_renaming *to_file);
void kd_marking_from_file(const struct kd_marking *m, struct kd_renaming *from_file);
uint32_t kd_marking_file_bits(const struct kd_marking *m);
/* A digest of the order of so many places */
uint64_t kd_marking_digest(const uint32_t *order, unsigned int places);
/* The place and the bit of a variable */
unsigned int kd_marking_place(const struct kd_marking *m, uint32_t variable, unsigned int *bit);

/*
 * The conjunction of rest and "the place has this many tokens". The tokens fit into the bits of
 * the place. The variables of rest are greater than those of the place.
 */
kdsm_bdd kd_marking_equals(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			   unsigned int place, uint64_t tokens, kdsm_bdd rest);

/* If a place has least to most tokens, a transition adds delta; the sum is not negative. */
struct kd_change {
	uint64_t least, most;
	int64_t delta;
};

/*
 * The relation of the place's current to its next tokens, in conjunction with fits where
 * the next tokens fit into the place's bits; where they do not, the tokens stay as they are,
 * in conjunction with overflows. Both have greater variables than the place.
 */
kdsm_bdd kd_marking_change(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			   unsigned int place, const struct kd_change *change,
			   kdsm_bdd fits, kdsm_bdd overflows);

/* ---- pnml.c ---- */

/* The interface between the reader of PNML (pnml.c) and the maker of nets (net.c) */
enum kd_kind {
	KD_PLACE, KD_TRANSITION, KD_ARC, KD_REFERENCE_PLACE, KD_REFERENCE_TRANSITION,
};

/* The effect of an arc; only normal arcs move tokens */
enum kd_arc_type { KD_NORMAL, KD_READ, KD_INHIBITOR };

/* An element of the file */
struct kd_object {
	enum kd_kind kind;
	enum kd_arc_type arc;	/* of an arc */
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
	/*
	 * The ids of the places of each unit, in the section for the tool nupn. They only guide the
	 * search, so an id that no place has means nothing.
	 */
	struct kd_unit {
		char *places;
		size_t length, room;
	} *unit;
	size_t units, most_units;
};

/*
 * Append an object, all zero. Return NULL if there is no memory. The pointer is valid until
 * the next call.
 */
struct kd_object *kd_pnml_add(struct kd_pnml *pnml);
/* Append an empty unit, or text to the places of the last one. Return 0 or -ENOMEM. */
int kd_pnml_add_unit(struct kd_pnml *pnml);
int kd_pnml_add_places(struct kd_pnml *pnml, const char *text, size_t length);
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

/*
 * Parse "PLACE[,PLACE...]" from text to end. Messages name the option. The caller frees
 * places->place, whatever the result. kd_places_name() returns a name like "p + q", which the
 * caller frees, or NULL if there is no memory.
 */
struct kd_places {
	unsigned int *place, count;	/* ascending, without repetition */
};

int kd_places_parse(struct kd_places *places, const struct kd_net *net, const char *option,
		    const char *text, const char *end, struct kdsm_reach_message *message);
char *kd_places_name(const struct kd_net *net, const struct kd_places *places);

void kd_bound_free(struct kd_bound *bound);	/* NULL is ignored */
/* The same for bounds of as many tokens on the same places */
uint64_t kd_bound_digest(const struct kd_bound *bound);
/* Return -EDOM if a has a variable that is not a current bit of a state. */
int kd_states_check(struct kdsm_bdd_worker *w, kdsm_bdd a, const struct kd_model *model);

/*
 * states_file.c: kd_states_save() writes the states found to options.save; a failure only warns,
 * so that the other results are kept. kd_states_fit() tells whether a file's markings are in the
 * order of this encoding, or says nothing of an order.
 */
void kd_states_save(struct kd_search *s, struct kdsm_reach_result *result);
bool kd_states_fit(const struct kd_bdd_content *c, const struct kd_marking *m);

/* Make the states of a property again after a bit was added to the place. */
int kd_property_widen(struct kdsm_bdd_worker *worker, struct kd_model *model,
		      unsigned int property, unsigned int place);

/* Every reachable state is in a set: the first function of a file in the .bdd format. */
int kd_invariant_file(struct kdsm_bdd_worker *worker, const char *path,
		      struct kd_model *model, struct kdsm_reach_message *message);

/* ---- the search: reach.c, search.c and what they call ---- */

/*
 * Offsets in every part of the cluster's region, in bytes: words of the gang of all nodes (0), of a
 * team and of the race; then parcels. The store of a node alone is there instead of parcels.
 */
#define KD_TEAM		1024
#define KD_RACE		2048
#define KD_STORE	4096

/*
 * The result of a task of saturation: states, at least those that it was given, and the failure
 * that ended it early, or 0
 */
struct kd_saturated {
	kdsm_bdd states, failure;
};

/* How the search fits into the table (search_collect.c) */
struct kd_room {
	unsigned int slice;		/* relations taken at a time */
	bool fresh;			/* no slice has succeeded since the last collection */
	bool all;			/* the last collection left no reserve */
	uint64_t used, alive;		/* nodes after the last round; after the last collection */
	uint64_t stop;			/* saturation fails once this node has put so many */
	uint64_t steps;			/* of saturation since the last look at the cache */
	uint64_t enough;		/* such steps after which the next look is due */
	bool cache_small;		/* the operation cache grows before the next slice */
	struct kdsm_reach_collections sum;
};

/* The words that the threads of a search and of its caller exchange (progress.c) */
struct kd_progress {
	pthread_mutex_t lock;	/* protects the fields up to ended */
	mpz_t states;		/* found when they were last counted */
	uint64_t nodes;		/* of the BDD of the states then */
	uint64_t level, began, ended;	/* times in ns: of the search; of the level's end */
	enum kdsm_reach_order order;
	uint64_t count;		/* time from which on the states may be counted again, in ns */
	uint64_t spent;		/* by the search for counting, in ns */
	uint64_t told;		/* time of the last call of options.progress, in ns */
	bool stop, report;	/* requests, which signal handlers make */
	bool stopping;		/* the gang knows of the request to stop */
	pthread_mutex_t calls;	/* held during a call of a function of the options */
};

/* The early end of a search (early.c) */
struct kd_early {
	uint64_t slice;		/* of saturation without a portfolio, in steps; 0: no slices */
	uint64_t spent;		/* on looking for deadlocks and at formulas, CPU time in ns */
	bool deadlock;		/* on node 0: a state without successor was found */
	bool ends;		/* the search ends */
};

/* The attempt of a checkpoint, and the number of bits that its number of states has */
struct kd_kept {
	unsigned int share;
	uint64_t bits;
};

/* own.c: this node alone, as a cluster of one, for the store of a node among several */
struct kd_own {
	struct kdsm *kdsm;
	struct kdsm_region *region;
	struct kd_gang gang;
};

/* Open a region of so many bytes, and set s->gang. The caller calls kd_own_close() in any case. */
int kd_own_open(struct kd_search *s, uint64_t bytes);
void kd_own_close(struct kd_search *s);

/* Plans of a search on several nodes; race.c has a table of them */
enum kd_plan { KD_ALONE, KD_TOGETHER, KD_RACE_OF_ORDERS, KD_RACE_OF_STRATEGIES };

struct kd_search {
	const struct kdsm_reach_options *options;
	struct kdsm_reach_message *message;
	struct kdsm *kdsm;
	struct kdsm_region *region;	/* of the cluster */
	struct kd_gang cluster;		/* of all nodes */
	struct kd_own own;		/* on several nodes: where the store is */
	struct kd_gang *gang;		/* of this node alone, whose store no other node uses */
	struct kdsm_bdd_store *store;
	struct kdsm_bdd_attr bdd;	/* sizes of the store */
	struct kd_model model;
	uint64_t loading;		/* of the model, in ns */
	uint64_t began;			/* start of the search, in ns */
	uint64_t levels;
	/* levels of the loaded checkpoint; ns that the search took up to it */
	uint64_t from_level, before;
	uint64_t written;		/* time of the last checkpoint, or of the start, in ns */
	uint64_t slice;			/* number of the current slice, from 1 */
	uint64_t paused;		/* the last slice that ought to pause for a checkpoint */
	uint64_t pause;			/* least time from a checkpoint to such a pause, in ns */
	kdsm_bdd saved;			/* found by this round up to the last pause */
	/*
	 * All states found; the frontier, i.e. the states of the last round; the states
	 * that this round has found up to now. Every edge that is kept from round to round
	 * must be a root (search_collect.c).
	 */
	kdsm_bdd visited, current, found;
	kdsm_bdd before_slice;		/* s->found at the beginning of this slice of saturation */
	unsigned int from, to;		/* the current slice: relations from .. to - 1 */
	bool gained;			/* the last attempt at a slice failed, but found states */
	/*
	 * In a portfolio, the states of the loaded checkpoint, from which slices of the first
	 * attempt begin, or FALSE; and their levels
	 */
	kdsm_bdd loaded;
	uint64_t loaded_levels;
	bool contest;			/* other attempts compete with this one: no pauses */
	uint32_t trap;			/* 1 + the place whose trap this slice met; 0: none */
	/* On node 0, of a loaded checkpoint: the widths by place; the index in net->best */
	uint8_t *widths;
	unsigned int loaded_order;
	struct kd_kept kept;		/* on node 0, of the last checkpoint in a portfolio */
	uint64_t digest;		/* kd_search_digest() of the model as it was read */
	uint64_t model_digest;		/* the same without properties of the options */
	struct kd_room room;
	kdsm_bdd *bad;			/* on node 0: by property, the states that violate it */
	struct kdsm_reach_verdict *verdict;	/* on node 0: by property */
	kdsm_bdd *frontier;		/* on node 0, for traces: what each round found */
	struct kd_places *upper_bound;	/* [options->upper_bounds] */
	bool saturates;			/* the strategy of this node is saturation */
	struct kd_saturation *saturation;	/* NULL: another strategy */
	struct kd_portfolio *portfolio;		/* NULL: one order only */
	struct kd_windows *windows;		/* NULL: the cluster has one node */
	/* Store more edges to keep, and return their number; for root NULL, the most. Or NULL */
	unsigned int (*more_roots)(const struct kd_search *s, kdsm_bdd *root);
	bool divided;			/* each node has states of its own */
	enum kd_plan plan;		/* of all nodes */
	bool helps;			/* node 0 can finish without this node */
	unsigned int winner;		/* of a race */
	bool deserted;			/* node 0 has all states, and needs no other node */
	struct kd_progress progress;
	struct kd_early early;
	bool searching;			/* between the first round and the last one */
	bool stopped;			/* kdsm_reach_stop() ended the search */
	struct kd_formulas *formulas;		/* of options->formula; NULL: none */
	/* steps of BDD operations of this slice of an attempt, on this node; 0: no limit */
	uint64_t steps, quota;

	struct kdsm_bdd_worker *worker;	/* of the thread that runs the search */
	struct kdsm_tasks *tasks;	/* run the worker's operations; NULL: the worker does */
};

/* The number of the strategy in digests and checkpoints */
static inline uint64_t kd_search_strategy(const struct kd_search *s)
{
	return s->options->saturation ? 2 : s->options->chaining;
}

/* Size of the region of the store, in bytes */
uint64_t kd_search_region_bytes(const struct kdsm_bdd_attr *bdd);
/*
 * kd_search_prepare() sets up all that needs no model. kd_search_start() starts the workers
 * after the model is loaded. kd_search_widen() follows the loading of a checkpoint.
 * kd_search_run() searches on this node. kd_search_stop() stops all that was started.
 */
int kd_search_prepare(struct kd_search *s);
int kd_search_start(struct kd_search *s);
int kd_search_widen(struct kd_search *s);
/* Search breadth first instead of by saturation. */
void kd_search_breadth_first(struct kd_search *s);
/* Begin with the initial states. */
int kd_search_first(struct kd_search *s);
int kd_search_run(struct kd_search *s);
void kd_search_stop(struct kd_search *s);

/*
 * checkpoint.c. kd_checkpoint_load() runs on node 0 after kd_property_begin(). It returns 1
 * if the search resumes from the checkpoint, 0 if there is none, or a negative errno.
 * kd_checkpoint_check() runs there when the model has the order and the bits of the checkpoint.
 * kd_checkpoint_write() runs between rounds, and writes a checkpoint if the interval has
 * passed or the round was the last.
 */
int kd_checkpoint_load(struct kd_search *s);
int kd_checkpoint_check(struct kd_search *s);
void kd_checkpoint_write(struct kd_search *s, bool last);
/*
 * Checkpoints within a round of saturation. When the interval has passed, the caller's thread of
 * node 0 asks for a pause by kd_checkpoint_look(). kd_checkpoint_due() lets tasks end
 * then. Node 0 writes a checkpoint with the states found by kd_checkpoint_within(), and the slice
 * is repeated. grown: the states are more than those of the last pause in this round.
 * kd_checkpoint_slice() writes those that a slice of an attempt has found, if the interval has
 * passed.
 */
void kd_checkpoint_look(struct kd_search *s);
bool kd_checkpoint_due(const struct kd_search *s);
void kd_checkpoint_within(struct kd_search *s, kdsm_bdd found, bool grown);
void kd_checkpoint_slice(struct kd_search *s, kdsm_bdd found);
/* Whether the file is no checkpoint, or one of markings in this order */
bool kd_checkpoint_fits(const struct kd_bdd_content *c, const struct kd_marking *m);

/* Least time from a checkpoint to a pause for the next one, in ns. Only tests change it. */
extern uint64_t kd_least_pause;

/*
 * output.c: a file that replaces another one. kd_output_close() with an error, or 0, discards
 * the new file, or lets it replace the old one; it returns its argument or a negative errno.
 * kd_output_try() tells whether a file could be opened. kd_output_check() refuses to overwrite
 * files that the search reads.
 */
struct kd_output {
	FILE *file;
	char *path, *temporary;
	bool in_place;
};

int kd_output_open(struct kd_output *output, const char *path);
int kd_output_close(struct kd_output *output, int error);
int kd_output_try(const char *path);
int kd_output_check(const struct kd_search *s);

/*
 * search_collect.c. kd_room_prepare() sets the table's reserve. kd_room_begin() makes all relations
 * the first slice. kd_room_progress() records that the current slice has been taken. kd_room_plan()
 * selects the next slice, and collects garbage if need be; it returns -ENOSPC if the table is too
 * small. The outcome is that of the last slice.
 */
enum kd_outcome { KD_FULL, KD_SLICE_DONE, KD_ROUND_DONE, KD_SEARCH_DONE };

void kd_room_prepare(struct kd_search *s);	/* before workers exist */
void kd_room_begin(struct kd_search *s);
void kd_room_progress(struct kd_search *s);
int kd_room_plan(struct kd_search *s, enum kd_outcome outcome);
/* Whether the slice that has just failed is to begin again: only the operation cache will grow */
bool kd_room_begins_again(const struct kd_search *s);
/* Count steps of saturation. Return whether the operation cache is to grow. Any thread calls it. */
bool kd_room_outgrown(struct kd_search *s, uint64_t steps);
/* Collect garbage, or grow the table, outside of a slice; -ENOSPC if nothing more can be done. */
int kd_room_make(struct kd_search *s);
/*
 * Before the search: let the table grow, and collect garbage. A table that may not grow gives up
 * its reserve. If it has none left, return -ENOSPC.
 */
int kd_room_grow(struct kd_search *s);
/* Collect garbage; the order has flags of kd_collect(). */
int kd_room_collect(struct kd_search *s, uint64_t order);

/*
 * search.c: the task of a round breadth first, and the errno of a task: that of the run, or that
 * of an edge in its result.
 */
#pragma GCC visibility push(hidden)
/* Successors of states by count relations from first on */
KDSM_TASK_DECLARE(kdsm_bdd, kd_round, kdsm_bdd, from, uint32_t, first, uint32_t, count)
#pragma GCC visibility pop
int kd_search_failure(struct kd_search *s, int error, kdsm_bdd result);

/*
 * race.c: kd_race_run() takes the place of kd_search_run() on several nodes, and leaves all states
 * on node 0. kd_race_plan() makes a plan by the options of this node. Some options differ between
 * nodes, so all nodes follow the plan of node 0.
 */
enum kd_plan kd_race_plan(const struct kd_search *s);
int kd_race_run(struct kd_search *s);

/*
 * finish.c: kd_finish_claim() sets *won if this node is the first one that has all states, and
 * tells all nodes. On each node kd_finish_crossed() is then true, and its tasks fail with -EINTR.
 * kd_finish_winner() is 1 + that node on node 0, or 0.
 */
int kd_finish_claim(struct kd_search *s, bool *won);
const uint64_t *kd_finish_word(const struct kd_search *s);
bool kd_finish_crossed(const struct kd_search *s);
uint64_t kd_finish_winner(const struct kd_search *s);
/* The only node that may win, or UINT_MAX. Only tests change it. */
extern unsigned int kd_race_favourite;
/*
 * Call this after a step of all nodes that returned this error, or 0, when node 0 has all states.
 * If the step missed a node, node 0 warns, sets s->deserted and returns 0; other nodes return the
 * error.
 */
int kd_finish_without(struct kd_search *s, int error);

/*
 * windows.c: a search that divides the states among the nodes of a team: all nodes, or after
 * kd_windows_team() those from a node on. Then all nodes move the states to node 0 by
 * kd_windows_collect().
 */
struct kd_windows;
/* Longest round on the first member alone, in times of a remote operation. Only tests change it. */
extern unsigned int kd_operations_alone;
/* Nodes of a parcel; 0: by the table's size. Only tests change it. */
extern uint64_t kd_parcel_room;
int kd_windows_open(struct kd_search *s);
void kd_windows_team(struct kd_search *s, unsigned int first);
int kd_windows_run(struct kd_search *s);
int kd_windows_collect(struct kd_search *s);
void kd_windows_close(struct kd_search *s);
/* The size of the parcels in each part, which begin at KD_STORE */
uint64_t kd_windows_outbox(const struct kdsm_bdd_attr *bdd, unsigned int nodes);

/*
 * portfolio.c. kd_portfolio_begin() runs when the model is loaded, kd_portfolio_slice() before
 * the first slice of an attempt, and kd_portfolio_switch() at the end of each.
 * kd_portfolio_full() runs when the live nodes fill the table: the attempt is given
 * up, and kd_portfolio_switch() follows. -ENOSPC: there is no other attempt.
 * kd_portfolio_resume() runs when a checkpoint has been loaded: it makes the order
 * with this index in net->best the first one. kd_portfolio_resumed() follows when the model has
 * the widths of the checkpoint.
 */
int kd_portfolio_begin(struct kd_search *s);
int kd_portfolio_resume(struct kd_search *s, unsigned int order);
int kd_portfolio_resumed(struct kd_search *s);
void kd_portfolio_slice(struct kd_search *s);
int kd_portfolio_switch(struct kd_search *s);
int kd_portfolio_full(struct kd_search *s);
unsigned int kd_portfolio_tried(const struct kd_search *s);	/* the number of orders */
void kd_portfolio_end(struct kd_search *s);
/* In a race: replace the portfolio by one attempt, with this order and share of the variables. */
int kd_portfolio_adopt(struct kd_search *s, enum kdsm_reach_order order, unsigned int share);

/* The slices of the first turn, in steps of BDD operations. Only tests change it. */
extern uint64_t kd_first_slice;

/*
 * saturate.c. kd_saturation_begin() runs when the model is loaded, and again when a place has
 * been widened. kd_saturation_round() takes the place of a slice.
 */
int kd_saturation_begin(struct kd_search *s);
int kd_saturation_round(struct kd_search *s, struct kd_saturated *found);
bool kd_saturation_ended(const struct kd_search *s);
void kd_saturation_free(struct kd_saturation *saturation);	/* NULL is ignored */

/*
 * Tell whether the visited states are all reachable states: the last round found no new
 * state, or all rounds of saturation are done.
 */
static inline bool kd_search_complete(const struct kd_search *s)
{
	return s->saturation ? kd_saturation_ended(s) : s->current == KDSM_BDD_FALSE;
}

/*
 * early.c: the early end of a search. kd_early_begin() follows kd_portfolio_begin().
 * kd_early_look() runs on node 0 and tells whether the states found end the search; fresh
 * includes all states that it has not seen yet. kd_early_continue() runs when a slice
 * of saturation has ended and the search goes on.
 */
void kd_early_begin(struct kd_search *s);
bool kd_early_look(struct kd_search *s, kdsm_bdd fresh, kdsm_bdd all);
void kd_early_continue(struct kd_search *s);

/*
 * property.c. kd_property_begin() runs on the loaded model, kd_property_check() on each new
 * s->current.
 */
int kd_property_begin(struct kd_search *s, struct kdsm_reach_result *result);
int kd_property_check(struct kd_search *s);
/* Set property->id. Return 0 or a negative errno. */
int kd_property_identify(struct kdsm_bdd_worker *worker, struct kd_property *property);
/* On node 0, after a checkpoint was loaded: verdicts on the properties that it lacks. */
int kd_property_look_back(struct kd_search *s);
/* Publish the states of the properties on node 0: at the begin, and when they are new. */
int kd_property_publish(struct kd_search *s);

/*
 * trace.c. kd_trace_note() runs on each new s->current, kd_trace_find() on node 0 after the
 * search. It returns -ENOSPC, or 1 if it has found some of the traces, when the table has no room
 * for the rest, which another call finds when there is more room.
 */
int kd_trace_note(struct kd_search *s);
int kd_trace_find(struct kd_search *s, struct kdsm_reach_result *result);
/*
 * Find a shortest trace to one of these states, all of them visited and at least one. The caller
 * frees the trace even on failure.
 */
int kd_trace_to(struct kd_search *s, kdsm_bdd states, const char *what,
		struct kdsm_reach_trace *trace);
void kd_trace_destroy(struct kdsm_reach_trace *trace);
/*
 * Find those of the states in which no relation has a successor. The states are not complete if
 * their successors may lead to a trap. Return 0 or a negative errno.
 */
int kd_trace_deadlocks(struct kd_search *s, kdsm_bdd states, bool complete, kdsm_bdd *dead);

/*
 * answers.c: kd_answers_begin() runs when the model is loaded, the others on node 0 after the
 * search: kd_answers_count() counts nodes and states, kd_answers_find() finds everything else
 * that the options ask for.
 */
int kd_answers_begin(struct kd_search *s);
int kd_answers_count(struct kd_search *s, struct kdsm_reach_result *result);
int kd_answers_find(struct kd_search *s, struct kdsm_reach_result *result);
void kd_answers_end(struct kd_search *s);

/*
 * model.c: a digest of the model and its properties as they were read, the same on any number
 * of nodes.
 */
uint64_t kd_search_digest(const struct kd_search *s);

/*
 * progress.c. kd_progress_begin() and kd_progress_end() enclose the rounds;
 * kd_progress_level() follows each. The caller's thread passes on requests by
 * kd_progress_look(), and waits for the thread that searches by kd_progress_join().
 * kd_stopping() tells tasks to fail with -EINTR, because a node has been asked to stop.
 */
void kd_progress_init(struct kd_progress *progress);
void kd_progress_destroy(struct kd_progress *progress);
void kd_progress_begin(struct kd_search *s);
void kd_progress_level(struct kd_search *s);
/* On node 0: whether it is time to count the states. */
bool kd_progress_due(const struct kd_search *s);
/* On node 0: keep the sums of all nodes' counts, which took this time, in ns, for reports. */
void kd_progress_count(struct kd_search *s, double states, uint64_t nodes, uint64_t time);
void kd_progress_end(struct kd_search *s);
void kd_progress_look(struct kd_search *s);
void kd_progress_join(struct kd_search *s, struct kd_thread *thread);
bool kd_stopping(const struct kd_search *s);

/*
 * successors.c: the successors by one relation, for the tasks of all strategies; and the
 * predecessors, as a public operation.
 */
bool kd_in_clusters(const struct kd_model *model);	/* its relation is not in model->relation */
kdsm_bdd kd_predecessors(struct kdsm_bdd_worker *w, const struct kd_model *model, kdsm_bdd to,
			 uint32_t relation);
kdsm_bdd kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
		       kdsm_bdd from, uint32_t relation);

#endif /* KD_REACH_INTERNAL_H */
