// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A portfolio of orders: saturation of a Petri net, tried with several orders of the places,
 * because the order decides whether a search takes milliseconds or days, and no rule finds the
 * best one. Every order is an attempt, which runs in slices of so many steps of BDD operations.
 * The first attempt that ends gives the result.
 *
 * The attempts compete by successive halving (K. Jamieson, A. Talwalkar, "Non-stochastic Best
 * Arm Identification and Hyperparameter Optimization", AISTATS 2016). In a turn every attempt
 * that is still in gets a slice. Then the half that has found fewer states is out, and the
 * slices of the next turn are twice as long. The last attempt that is in runs for several times
 * as long as the contest has taken. If it does not end, all attempts are in again, and a contest
 * with longer slices begins. The number of states is a good measure: an attempt with a bad
 * order spends its steps on large diagrams for few states.
 *
 * Every slice starts from the initial states. It finds the results of the attempt's earlier slices
 * in the operation cache, so it soon is where the last one ended. States that a slice has found
 * would be a worse start: they are an irregular part of what saturation finds, and their diagrams
 * are larger. Only the attempt with the order of a checkpoint, which is the first one then, starts
 * from the states there: the search has lost the results that led to them.
 *
 * An attempt that fills the table is given up, unless it is the only one left.
 *
 * The diagrams of all attempts are in the same table, and their results in the same operation
 * cache. Every attempt has variables of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define LONGER	4	/* steps of the last attempt of a contest, over those of the contest */
#define GROWTH	3	/* slices of the next contest are 2^GROWTH times as long */

uint64_t kd_first_slice = 300000;

struct kd_portfolio {
	struct kd_attempt {
		struct kd_model model;		/* of an attempt that waits */
		struct kd_saturation *saturation;
		uint64_t bits;		/* of the number of states found */
		bool begun;		/* has a model */
		bool in;		/* may run in this contest */
		bool gone;		/* given up */
	} attempt[KD_ORDERS];		/* in the order of net->best */
	unsigned int count, at, left;	/* attempts; the current one; those that are in */
	uint64_t slice, spent;		/* of this turn; of this contest; in steps */
	unsigned int contest;
};

/*
 * Only a search whose result does not depend on the order can change it. Bounds are made again in
 * each order; an invariant is in the variables of one.
 */
static bool suits(const struct kd_search *s)
{
	const struct kdsm_reach_options *options = s->options;

	return s->saturates && s->model.net && s->model.shares > 1 &&
	       !options->invariants && !options->levels;
}

static void begin_contest(struct kd_portfolio *p)
{
	unsigned int i;

	p->slice = kd_first_slice << GROWTH * p->contest++;
	p->spent = 0;
	p->left = 0;
	for (i = 0; i < p->count; i++) {
		p->attempt[i].in = !p->attempt[i].gone;
		p->left += p->attempt[i].in;
	}
}

int kd_portfolio_begin(struct kd_search *s)
{
	struct kd_portfolio *p;

	if (!suits(s))
		return 0;
	p = calloc(1, sizeof(*p));
	s->portfolio = p;
	if (!p)
		return -ENOMEM;
	p->count = s->model.shares;
	p->attempt[0].begun = true;	/* kd_model_load() took the first order */
	begin_contest(p);
	return 0;
}

unsigned int kd_portfolio_tried(const struct kd_search *s)
{
	const struct kd_portfolio *p = s->portfolio;
	unsigned int tried = 0, i;

	for (i = 0; p && i < p->count; i++)
		tried += p->attempt[i].begun;
	return p ? tried : 1;
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
	uint64_t quota = !p ? s->early.slice : p->count > 1 ? p->slice : 0;

	__atomic_store_n(&s->contest, p && p->left > 1, __ATOMIC_RELAXED);
	__atomic_store_n(&s->steps, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->quota, quota, __ATOMIC_RELAXED);
}

/* Make the model of an attempt that begins; at is its index in net->best. */
static int make_model(struct kd_search *s, const struct kd_model *other, unsigned int at)
{
	unsigned int i;
	int r;

	memset(&s->model, 0, sizeof(s->model));
	s->model.kind = other->kind;
	s->model.net = other->net;
	s->model.share = at;
	s->model.shares = other->shares;
	s->model.name = strdup(other->name);
	if (!s->model.name)
		return -ENOMEM;
	kdsm_bdd_private(s->worker, 1);
	r = kd_model_order(s->worker, &s->model, other->net->best[at], s->message);
	for (i = 0; r == 0 && i < s->options->bounds; i++)
		r = kd_invariant_bound(s->worker, s->options->bound[i], &s->model, s->message);
	kdsm_bdd_private(s->worker, 0);
	for (i = 0; r == 0 && i < s->model.properties; i++) {
		s->model.property[i].missed = other->property[i].missed;
		r = kd_property_identify(s->worker, &s->model.property[i]);
	}
	return r < 0 ? r : kd_saturation_begin(s);
}

/* ---- a checkpoint ---- */

int kd_portfolio_resume(struct kd_search *s, unsigned int order)
{
	struct kd_model former = s->model;
	enum kdsm_reach_order first;
	int r;

	if (!order)
		return 0;
	if (order >= former.shares)
		return -EIO;
	first = former.net->best[order];
	memmove(former.net->best + 1, former.net->best, order * sizeof(first));
	former.net->best[0] = first;
	r = make_model(s, &former, 0);
	former.net = NULL;		/* s->model has it */
	kd_model_free(&former);
	return r;
}

int kd_portfolio_resumed(struct kd_search *s)
{
	if (!s->portfolio)
		return 0;
	s->loaded = s->visited;
	s->loaded_levels = s->levels;
	return kd_bdd_count_bits(s->worker, s->visited, s->model.bits, &s->kept.bits);
}

/* ---- a race ---- */

int kd_portfolio_adopt(struct kd_search *s, enum kdsm_reach_order order, unsigned int share)
{
	struct kd_model former = s->model;
	int r;

	kd_portfolio_end(s);
	if (share >= former.shares)
		return -EIO;
	former.net->best[share] = order;
	r = make_model(s, &former, share);
	former.net = NULL;		/* s->model has it */
	kd_model_free(&former);
	return r;
}

/* ---- switching ---- */

/* Whether the slices of the attempt begin with the states of a checkpoint */
static bool resumes(const struct kd_search *s)
{
	return !s->model.share && s->loaded != KDSM_BDD_FALSE;
}

/* Copy what depends on the order of the attempt to the table. */
static int publish_own(struct kd_search *s)
{
	s->visited = resumes(s) ? s->loaded : kdsm_bdd_publish(s->worker, s->model.initial);
	return s->visited == KDSM_BDD_INVALID ? kdsm_bdd_error(s->worker) : kd_property_publish(s);
}

/* The first states of an attempt */
static int publish(struct kd_search *s)
{
	int r;

	while ((r = publish_own(s)) == -ENOSPC) {
		s->visited = KDSM_BDD_FALSE;
		r = kd_room_make(s);
		if (r < 0)
			return r;
	}
	return r;
}

/*
 * Count the states that the attempt has found, in bits of their number. They go to a checkpoint, if
 * one is due.
 */
static int count_found(struct kd_search *s, uint64_t *bits)
{
	kdsm_bdd found = s->found == KDSM_BDD_FALSE ? s->visited : s->found;
	int r = kd_bdd_count_bits(s->worker, found, s->model.bits, bits);

	if (r == 0)
		kd_checkpoint_slice(s, found);
	return r;
}

/* Let the attempts with fewer states drop out; of equal ones, the less promising. */
static void halve(struct kd_portfolio *p)
{
	unsigned int keep = (p->left + 1) / 2, i, worst;

	while (p->left > keep) {
		worst = p->count;
		for (i = 0; i < p->count; i++)
			if (p->attempt[i].in && (worst == p->count ||
						 p->attempt[i].bits <= p->attempt[worst].bits))
				worst = i;
		p->attempt[worst].in = false;
		p->left--;
	}
}

/* Select the next attempt and its slice. -ENOSPC: all have been given up. */
static int next_attempt(struct kd_portfolio *p)
{
	unsigned int i = p->at + 1;

	p->spent += p->slice;
	while (i < p->count && !p->attempt[i].in)
		i++;
	if (i == p->count) {
		if (p->left > 1) {
			halve(p);
			p->slice = p->left > 1 ? 2 * p->slice : LONGER * p->spent;
		} else {
			begin_contest(p);
		}
		for (i = 0; i < p->count && !p->attempt[i].in; i++)
			;
	}
	p->at = i;
	return i < p->count ? 0 : -ENOSPC;
}

int kd_portfolio_full(struct kd_search *s)
{
	struct kd_portfolio *p = s->portfolio;
	unsigned int others = 0, i;

	for (i = 0; i < p->count; i++)
		others += i != p->at && !p->attempt[i].gone;
	if (!others)
		return -ENOSPC;
	p->attempt[p->at].gone = true;
	p->attempt[p->at].in = false;
	p->left--;
	if (!p->at)
		s->loaded = KDSM_BDD_FALSE;
	return 0;
}

int kd_portfolio_switch(struct kd_search *s)
{
	struct kd_portfolio *p = s->portfolio;
	struct kd_attempt *mine = &p->attempt[p->at], *next;
	int r;

	r = count_found(s, &mine->bits);
	if (r < 0)
		return r;
	mine->model = s->model;
	mine->saturation = s->saturation;
	s->saturation = NULL;
	r = next_attempt(p);
	if (r < 0)
		return r;
	next = &p->attempt[p->at];
	s->found = KDSM_BDD_FALSE;
	s->visited = KDSM_BDD_FALSE;
	s->current = KDSM_BDD_FALSE;
	s->saved = KDSM_BDD_FALSE;
	if (next->begun) {
		s->model = next->model;
		s->saturation = next->saturation;
	} else {
		next->begun = true;
		r = make_model(s, &mine->model, p->at);
	}
	s->levels = resumes(s) ? s->loaded_levels : 0;
	s->from_level = s->levels;
	kd_room_begin(s);
	if (r == 0)
		r = publish(s);
	s->current = s->visited;
	kd_portfolio_slice(s);
	return r;
}
