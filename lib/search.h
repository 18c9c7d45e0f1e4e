/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between reach.c, which brings everything up and down, and search.c, which
 * does the rounds.
 */
#ifndef KD_SEARCH_H
#define KD_SEARCH_H

#include "bdd_int.h"
#include "gang.h"
#include "reach.h"

/* The start of every part: the gang's words, then tickets, then the store. */
#define KD_TICKETS	KD_GANG_BYTES	/* two, each on a line of its own */
#define KD_STORE	4096

struct kd_search;

struct kd_member {
	struct kd_search *search;
	struct kdsm_bdd_worker *worker;
	pthread_t thread;
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
	kdsm_bdd visited, current;	/* all found; those of the last round */
	kdsm_bdd *bad;			/* node 0: by property, where it is violated */
	struct kd_verdict *verdict;	/* likewise */
	kdsm_bdd *frontier;		/* node 0, for traces: what each round found */

	/* The threads: member 0 is the one that leads. */
	struct kd_member *member;
	unsigned int members, started;
	pthread_mutex_t lock;		/* of all that follows */
	pthread_cond_t go, done;
	uint64_t round;
	unsigned int running;
	bool stop;
	kdsm_bdd partial;		/* union of what members have delivered */
	bool delivered;
	unsigned int unsafe;		/* relation in whose trap we are, plus 1 */
	int error;			/* the first one of a member */
	bool *exhausted;		/* by node: no ticket left this round */
};

int kd_search_start(struct kd_search *s);
int kd_search_run(struct kd_search *s);
void kd_search_stop(struct kd_search *s);

/* property.c. Begin when the model is loaded; check when s->current is new. */
int kd_property_begin(struct kd_search *s, struct kd_reach_result *result);
int kd_property_check(struct kd_search *s);

/* trace.c. Note when s->current is new; find, on node 0, after the search. */
int kd_trace_note(struct kd_search *s);
int kd_trace_find(struct kd_search *s, struct kd_reach_result *result);

#endif /* KD_SEARCH_H */
