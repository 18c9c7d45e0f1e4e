// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random walks through the markings of a Petri net, before the search. They show how many
 * tokens a place certainly gets, so that it need not be widened often later. A walk that leads
 * from a marking to one with at least as many tokens everywhere, and more somewhere, shows
 * that the net is unbounded: it can be repeated without end (R. Karp, R. Miller, "Parallel program
 * schemata", 1969). The walks end early when every place has had as many tokens as its bound
 * allows, because then there is nothing more to see.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Work of all walks, in visited arcs; and the steps of one walk, at most */
#define MOST_WORK	4000000
#define MOST_STEPS	20000

struct walk {
	struct kd_net *net;
	uint32_t *start, *user;		/* user[start[p]..]: the transitions that look at p */
	uint64_t *tokens, *before;	/* before: the marking to compare with */
	uint32_t *enabled, *at;		/* enabled transitions; at: index into it, plus 1 */
	uint32_t enabled_count;
	uint32_t less, more;		/* places with less or more tokens than before */
	uint32_t open;			/* places that may get more tokens than were seen */
	uint64_t random, work;
	bool inhibited;			/* the net has an inhibitor arc */
};

static bool is_enabled(struct walk *w, const struct kd_transition *t)
{
	unsigned int i;

	w->work += t->ins + t->reads + t->inhibitors + 1;
	for (i = 0; i < t->ins; i++)
		if (w->tokens[t->in[i].place] < t->in[i].weight)
			return false;
	for (i = 0; i < t->reads; i++)
		if (w->tokens[t->read[i].place] < t->read[i].weight)
			return false;
	for (i = 0; i < t->inhibitors; i++)
		if (w->tokens[t->inhibitor[i].place] >= t->inhibitor[i].weight)
			return false;
	return true;
}

static void update(struct walk *w, uint32_t transition)
{
	bool now = is_enabled(w, &w->net->transition[transition]);
	uint32_t last;

	if (now == !!w->at[transition])
		return;
	if (now) {
		w->enabled[w->enabled_count++] = transition;
		w->at[transition] = w->enabled_count;
		return;
	}
	last = w->enabled[--w->enabled_count];
	w->enabled[w->at[transition] - 1] = last;
	w->at[last] = w->at[transition];
	w->at[transition] = 0;
}

static void update_users(struct walk *w, uint32_t place)
{
	uint32_t i;

	for (i = w->start[place]; i < w->start[place + 1]; i++)
		update(w, w->user[i]);
}

static void set_tokens(struct walk *w, uint32_t place, uint64_t tokens)
{
	struct kd_place *p = &w->net->place[place];

	w->less -= w->tokens[place] < w->before[place];
	w->more -= w->tokens[place] > w->before[place];
	w->tokens[place] = tokens;
	w->less += tokens < w->before[place];
	w->more += tokens > w->before[place];
	if (p->seen < tokens) {
		p->seen = tokens;
		w->open -= tokens == p->bound;
	}
}

static void fire(struct walk *w, const struct kd_transition *t)
{
	const struct kd_arc *arcs[] = { t->in, t->out };
	const unsigned int counts[] = { t->ins, t->outs };
	unsigned int a, i;

	w->work += t->ins + t->outs + 1;	/* a transition may have no arcs */
	for (i = 0; i < t->ins; i++)
		set_tokens(w, t->in[i].place, w->tokens[t->in[i].place] - t->in[i].weight);
	for (i = 0; i < t->outs; i++)
		set_tokens(w, t->out[i].place, w->tokens[t->out[i].place] + t->out[i].weight);
	for (a = 0; a < 2; a++)
		for (i = 0; i < counts[a]; i++)
			update_users(w, arcs[a][i].place);
}

/* Compare with the present marking from now on. */
static void remember(struct walk *w)
{
	memcpy(w->before, w->tokens, w->net->places * sizeof(*w->before));
	w->less = 0;
	w->more = 0;
	w->work += w->net->places;
}

static void begin(struct walk *w)
{
	uint32_t i;

	for (i = 0; i < w->net->places; i++)
		w->tokens[i] = w->net->place[i].marking;
	remember(w);
	for (i = 0; i < w->net->transitions; i++)
		update(w, i);
}

/* Walk until no transition is enabled. Return 1 + a place that has no bound, or 0. */
static uint32_t walk_once(struct walk *w)
{
	uint32_t steps, next = 1, i;

	begin(w);
	for (steps = 0; steps < MOST_STEPS && w->enabled_count && w->open && w->work < MOST_WORK;
	     steps++) {
		if (steps == next) {
			remember(w);
			next *= 2;
		}
		fire(w, &w->net->transition[w->enabled[kd_random_below(&w->random,
								       w->enabled_count)]]);
		if (!w->less && w->more && !w->inhibited) {
			for (i = 0; w->tokens[i] == w->before[i]; i++)
				;
			return i + 1;
		}
	}
	return 0;
}

static void count_users(uint32_t *start, const struct kd_arc *arcs, unsigned int count)
{
	while (count--)
		start[arcs[count].place + 2]++;
}

static void add_user(struct walk *w, const struct kd_arc *arcs, unsigned int count, uint32_t t)
{
	while (count--)
		w->user[w->start[arcs[count].place + 1]++] = t;
}

static int prepare(struct walk *w)
{
	const struct kd_net *net = w->net;
	uint64_t sum = 0;
	uint32_t i;

	w->start = calloc(net->places + 2, sizeof(*w->start));
	w->tokens = calloc(net->places + 1, sizeof(*w->tokens));
	w->before = calloc(net->places + 1, sizeof(*w->before));
	w->enabled = calloc(net->transitions + 1, sizeof(*w->enabled));
	w->at = calloc(net->transitions + 1, sizeof(*w->at));
	if (!w->start || !w->tokens || !w->before || !w->enabled || !w->at)
		return -ENOMEM;
	for (i = 0; i < net->transitions; i++) {
		count_users(w->start, net->transition[i].in, net->transition[i].ins);
		count_users(w->start, net->transition[i].read, net->transition[i].reads);
		count_users(w->start, net->transition[i].inhibitor, net->transition[i].inhibitors);
		sum += net->transition[i].ins + net->transition[i].reads +
		       net->transition[i].inhibitors;
		w->inhibited |= net->transition[i].inhibitors > 0;
	}
	for (i = 2; i < net->places + 2; i++)
		w->start[i] += w->start[i - 1];
	for (i = 0; i < net->places; i++)
		w->open += net->place[i].seen < net->place[i].bound;
	w->user = malloc((sum + 1) * sizeof(*w->user));
	if (!w->user)
		return -ENOMEM;
	for (i = 0; i < net->transitions; i++) {
		add_user(w, net->transition[i].in, net->transition[i].ins, i);
		add_user(w, net->transition[i].read, net->transition[i].reads, i);
		add_user(w, net->transition[i].inhibitor, net->transition[i].inhibitors, i);
	}
	return 0;
}

int kd_net_walk(struct kd_net *net, uint32_t *unbounded)
{
	struct walk w = { .net = net, .random = 1 };
	int r = prepare(&w);

	*unbounded = 0;
	while (r == 0 && !*unbounded && w.open && w.work < MOST_WORK)
		*unbounded = walk_once(&w);
	free(w.start);
	free(w.user);
	free(w.tokens);
	free(w.before);
	free(w.enabled);
	free(w.at);
	return r;
}
