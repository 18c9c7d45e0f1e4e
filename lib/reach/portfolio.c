// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A portfolio of orders: saturation of a Petri net, tried with several orders of the places in
 * turn, because the order decides whether a search takes milliseconds or for ever, and no rule
 * finds the best one. Every attempt gets a slice of time, and the slices of later turns are
 * longer. An attempt keeps the states that it has found while others run, so its next slice
 * goes on with them. The first attempt that ends gives the result.
 *
 * All nodes switch to the next attempt together, between two slices, while no node has a task.
 * The diagrams of all attempts are in the same table, and their results in the same operation
 * cache. Every attempt has variables of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

uint64_t kd_first_slice = 100000000;

struct kd_portfolio {
	struct kd_attempt {
		struct kd_model model;		/* of an attempt that waits */
		struct kd_saturation *saturation;
		kdsm_bdd visited;
		uint64_t levels;
		bool begun;
	} attempt[KD_ORDERS];
	enum kdsm_reach_order order[KD_ORDERS];	/* the most promising one first */
	unsigned int count, at, turn;
};

/* Only a search whose result does not depend on the order can change it. */
static bool suits(const struct kd_search *s)
{
	const struct kdsm_reach_options *options = s->options;

	return options->saturation && s->model.net && options->order == KDSM_REACH_ORDER_AUTO &&
	       !s->model.properties && !options->checkpoint && !options->save && !options->levels;
}

int kd_portfolio_begin(struct kd_search *s)
{
	struct kd_portfolio *p;
	int r;

	if (!suits(s))
		return 0;
	p = calloc(1, sizeof(*p));
	s->portfolio = p;
	if (!p)
		return -ENOMEM;
	r = kd_net_orders(s->model.net, p->order, &p->count);
	if (p->count > s->model.shares)
		p->count = s->model.shares;
	p->attempt[0].begun = true;	/* kd_model_load() took the first order */
	return r;
}

void kd_portfolio_end(struct kd_search *s)
{
	struct kd_portfolio *p = s->portfolio;
	unsigned int i;

	for (i = 0; p && i < p->count; i++) {
		if (i == p->at || !p->attempt[i].begun)
			continue;
		p->attempt[i].model.net = NULL;	/* all attempts have the same */
		kd_model_free(&p->attempt[i].model);
		kd_saturation_free(p->attempt[i].saturation);
	}
	free(p);
	s->portfolio = NULL;
}

void kd_portfolio_slice(struct kd_search *s)
{
	const struct kd_portfolio *p = s->portfolio;
	uint64_t deadline = p && p->count > 1 ? kdsm_now() + (kd_first_slice << p->turn) : 0;

	__atomic_store_n(&s->deadline, deadline, __ATOMIC_RELAXED);
}

uint64_t kd_portfolio_roots(const struct kd_search *s, kdsm_bdd root[KD_ORDERS])
{
	const struct kd_portfolio *p = s->portfolio;
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; p && i < p->count; i++)
		if (i != p->at && p->attempt[i].begun)
			root[n++] = p->attempt[i].visited;
	return n;
}

/* Make the model of an attempt that begins. */
static int make_model(struct kd_search *s, const struct kd_model *other)
{
	const struct kd_portfolio *p = s->portfolio;
	int r;

	memset(&s->model, 0, sizeof(s->model));
	s->model.kind = other->kind;
	s->model.net = other->net;
	s->model.share = p->at;
	s->model.shares = other->shares;
	s->model.name = strdup(other->name);
	if (!s->model.name)
		return -ENOMEM;
	kdsm_bdd_private(s->worker, 1);
	r = kd_model_order(s->worker, &s->model, p->order[p->at], s->message);
	kdsm_bdd_private(s->worker, 0);
	return r < 0 ? r : kd_saturation_begin(s);
}

static int nothing(void *context, uint64_t *mine, const uint64_t *theirs)
{
	(void)context;
	(void)mine;
	(void)theirs;
	return 0;
}

/* The initial states of an attempt, from node 0; all nodes collect garbage if need be. */
static int publish(struct kd_search *s)
{
	uint64_t words[KD_GANG_WORDS];
	bool again;
	int r;

	do {
		memset(words, 0, sizeof(words));
		again = false;
		r = kd_gang_gather(&s->gang, words, nothing, NULL);
		if (r == 0 && s->gang.node == 0) {
			words[0] = kdsm_bdd_publish(s->worker, s->model.initial);
			if (words[0] == KDSM_BDD_INVALID) {
				r = kdsm_bdd_error(s->worker);
				words[0] = 0;
				words[1] = r == -ENOSPC;
				r = words[1] ? 0 : r;
			}
		}
		if (r == 0)
			r = kd_gang_scatter(&s->gang, words);
		if (r == 0 && words[1]) {
			again = true;
			r = kd_room_make(s);
		}
	} while (r == 0 && again);
	s->visited = words[0] & KD_EDGE;
	return r;
}

/*
 * Wait until all nodes have switched: their workers may steal tasks of the next attempt as soon
 * as one node has begun the attempt's slice, and these tasks need its groups and relations.
 */
static int wait_for_all(struct kd_search *s)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	r = kd_gang_gather(&s->gang, words, nothing, NULL);
	return r < 0 ? r : kd_gang_scatter(&s->gang, words);
}

/* Tell all nodes what the root has found of the states of this attempt. */
static int share_found(struct kd_search *s)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	r = kd_gang_gather(&s->gang, words, nothing, NULL);
	words[0] = s->found == KDSM_BDD_FALSE ? s->visited : s->found;
	if (r == 0)
		r = kd_gang_scatter(&s->gang, words);
	s->visited = words[0] & KD_EDGE;
	s->found = KDSM_BDD_FALSE;
	return r;
}

int kd_portfolio_switch(struct kd_search *s)
{
	struct kd_portfolio *p = s->portfolio;
	struct kd_attempt *mine = &p->attempt[p->at], *next;
	int r;

	r = share_found(s);
	if (r < 0)
		return r;
	s->gang.root = 0;
	*mine = (struct kd_attempt){
		.model = s->model, .saturation = s->saturation, .visited = s->visited,
		.levels = s->levels - 1, .begun = true,	/* the round begins again */
	};
	s->saturation = NULL;
	p->at = (p->at + 1) % p->count;
	p->turn += p->at == 0;
	next = &p->attempt[p->at];
	if (next->begun) {
		s->model = next->model;
		s->saturation = next->saturation;
		s->visited = next->visited;
		s->levels = next->levels;
	} else {
		next->begun = true;
		next->visited = KDSM_BDD_FALSE;
		s->visited = KDSM_BDD_FALSE;
		s->levels = 0;
		r = make_model(s, &mine->model);
	}
	kd_room_begin(s);
	if (r == 0 && s->visited == KDSM_BDD_FALSE)
		r = publish(s);
	s->current = s->visited;
	kd_portfolio_slice(s);
	return r < 0 ? r : wait_for_all(s);
}
