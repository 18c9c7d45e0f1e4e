/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between reach.c, which brings everything up and down, and search.c, which
 * does the rounds.
 */
#ifndef KD_SEARCH_H
#define KD_SEARCH_H

#include "bdd/internal.h"
#include "core/core.h"
#include "reach/reach.h"

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
	struct kd_collections sum;
};

struct kd_search {
	const struct kd_reach_options *options;
	struct kd_message *message;
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
	struct kd_verdict *verdict;	/* likewise */
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
uint64_t kd_search_part_bytes(const struct kd_reach_options *options, unsigned int nodes);
/*
 * Prepare what needs no model; start workers, when the model is there; search; stop
 * whatever was started.
 */
int kd_search_prepare(struct kd_search *s);
int kd_search_start(struct kd_search *s);
int kd_search_run(struct kd_search *s);
void kd_search_stop(struct kd_search *s);
/* Model and properties; the same on any number of nodes. */
uint64_t kd_search_digest(const struct kd_search *s);
/* What a person is to know, but not the end of it. */
void kd_search_warn(const struct kd_search *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

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

/* The successors by one relation, for tasks. */
struct kd_found kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			      kdsm_bdd from, uint32_t relation);
/* Nothing new was found, or all was done: visited are all states. */
bool kd_search_complete(const struct kd_search *s);

/* saturate.c. Begin when the model is loaded; a round like those of other strategies. */
int kd_saturation_begin(struct kd_search *s);
int kd_saturation_round(struct kd_search *s, struct kd_found *found);
bool kd_saturation_ended(const struct kd_search *s);
void kd_saturation_end(struct kd_search *s);

/* property.c. Begin when the model is loaded; check when s->current is new. */
int kd_property_begin(struct kd_search *s, struct kd_reach_result *result);
int kd_property_check(struct kd_search *s);

/* trace.c. Note when s->current is new; find, on node 0, after the search. */
int kd_trace_note(struct kd_search *s);
int kd_trace_find(struct kd_search *s, struct kd_reach_result *result);

#endif /* KD_SEARCH_H */
