// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The number of edges of the state graph of a Petri net: for each transition, the states in
 * which it is enabled.
 *
 * All numbers are parts of all assignments, modulo a large number (kd_parts()). A flow goes
 * through the BDD of the states from the root: every node passes half of its flow to each child.
 * So the flow of a node is the part of all assignments whose paths lead there, and the sum over
 * nodes of flow times part is the part of the states. The flow of a complemented edge is
 * negative, and the edge adds its flow to a sum that does not depend on nodes, because the part
 * of a complement is 1 minus the part.
 *
 * A transition is enabled depending on some bits only, from its first rank to its last one. The
 * flow to the nodes from the first rank on, by edges from above, is common to all transitions
 * with this first rank. From there to the last rank each transition has a flow of its own,
 * which ends where the transition is disabled. Beyond, the parts of nodes are common to all.
 */
#include <stdlib.h>
#include <string.h>

#include "answers.h"

/*
 * A bit of a place on which a transition depends. The place needs least to most tokens. While
 * the bits of the place are compared, from the most significant one on, the bits so far have
 * been equal to those of least unless the state says ABOVE, and to those of most unless it says
 * BELOW.
 */
struct step {
	uint32_t rank;
	uint8_t least, most;	/* this bit of them */
	uint8_t start;		/* state in front of the first bit of the place */
	uint8_t end;		/* it is the last bit of the place */
};

enum { ABOVE = 1, BELOW = 2, STATES = 4, DISABLED = STATES };

struct transition {
	uint32_t at, steps;	/* in struct firing's step */
};

struct firing {
	struct kd_states *states;
	struct step *step;
	uint64_t steps, capacity;
	struct transition *transition;	/* that can be enabled, by their first rank and steps */
	uint32_t transitions, most_steps;
	uint32_t always;		/* number of transitions without steps */
	uint32_t *first;		/* by place: its first rank */

	struct kd_modulus m;
	uint64_t *part, *flow;		/* by position */
	uint64_t *own[STATES];		/* by position: flow of one transition; zero between them */
	uint32_t level;			/* nodes of the levels before have passed on their flow */
	const struct step *now;		/* steps of the current transition */
	uint32_t count;
	uint64_t (*enabled)[STATES];	/* [count + 1]: part of the assignments from a step on */
	uint8_t *possible;		/* [count + 1]: set of the states in front of a step */
	uint64_t sum;			/* part of the states in which the transition is enabled */
};

/* ---- what enables transitions ---- */

struct need {
	uint32_t first, place;
	uint64_t least, most;
};

static int compare_needs(const void *x, const void *y)
{
	const struct need *a = x, *b = y;

	return (a->first > b->first) - (a->first < b->first);
}

/* List what a transition needs, sorted by rank, each place once. */
static uint32_t list_needs(const struct firing *f, const struct kd_transition *t,
			   struct need *need)
{
	uint32_t n = 0, merged = 0, i;

	for (i = 0; i < t->ins; i++)
		need[n++] = (struct need){ 0, t->in[i].place, t->in[i].weight, UINT64_MAX };
	for (i = 0; i < t->reads; i++)
		need[n++] = (struct need){ 0, t->read[i].place, t->read[i].weight, UINT64_MAX };
	for (i = 0; i < t->inhibitors; i++)
		need[n++] = (struct need){ 0, t->inhibitor[i].place, 0,
					   t->inhibitor[i].weight - 1 };
	for (i = 0; i < n; i++)
		need[i].first = f->first[need[i].place];
	qsort(need, n, sizeof(*need), compare_needs);
	for (i = 0; i < n; i++) {
		struct need *last = merged ? &need[merged - 1] : NULL;

		if (!last || last->place != need[i].place) {
			need[merged++] = need[i];
			continue;
		}
		if (last->least < need[i].least)
			last->least = need[i].least;
		if (last->most > need[i].most)
			last->most = need[i].most;
	}
	return merged;
}

/* Append the steps of a place. Return 1 if the place never has so many or so few tokens. */
static int add_steps(struct firing *f, const struct need *need)
{
	uint32_t width = f->states->model->marking->width[need->place], b = width;
	uint64_t limit = (UINT64_C(1) << width) - 1;
	uint8_t start = (need->least ? 0 : ABOVE) | (need->most < limit ? 0 : BELOW);
	struct step *more;

	if (need->least > need->most || need->least > limit)
		return 1;
	if (start == (ABOVE | BELOW))
		return 0;
	if (f->steps + width > f->capacity) {
		more = reallocarray(f->step, 2 * f->capacity + width, sizeof(*more));
		if (!more)
			return -ENOMEM;
		f->step = more;
		f->capacity = 2 * f->capacity + width;
	}
	while (b--)
		f->step[f->steps++] = (struct step){
			.rank = need->first + width - 1 - b, .least = need->least >> b & 1,
			.most = need->most >> b & 1, .start = start, .end = !b,
		};
	return 0;
}

static int add_transition(struct firing *f, const struct kd_transition *t)
{
	uint64_t most = (uint64_t)t->ins + t->reads + t->inhibitors, at = f->steps, steps;
	struct need *need = malloc((most + 1) * sizeof(*need));
	uint32_t needs, i;
	int r = 0;

	if (!need)
		return -ENOMEM;
	needs = list_needs(f, t, need);
	for (i = 0; r == 0 && i < needs; i++)
		r = add_steps(f, &need[i]);
	free(need);
	steps = f->steps - at;
	if (r) {
		f->steps = at;
		return r < 0 ? r : 0;
	}
	if (f->steps > UINT32_MAX)
		return -ENOMEM;
	if (f->most_steps < steps)
		f->most_steps = steps;
	if (steps)
		f->transition[f->transitions++] = (struct transition){ at, steps };
	else
		f->always++;
	return 0;
}

static int compare_transitions(const void *x, const void *y, void *context)
{
	const struct transition *a = x, *b = y;
	const struct step *s = context;

	if (s[a->at].rank != s[b->at].rank)
		return s[a->at].rank < s[b->at].rank ? -1 : 1;
	if (a->steps != b->steps)
		return a->steps < b->steps ? -1 : 1;
	return memcmp(&s[a->at], &s[b->at], a->steps * sizeof(*s));
}

static int list_transitions(struct firing *f)
{
	const struct kd_net *net = f->states->model->net;
	uint32_t i;
	int r = 0;

	f->transition = malloc(((uint64_t)net->transitions + 1) * sizeof(*f->transition));
	f->first = malloc(((uint64_t)net->places + 1) * sizeof(*f->first));
	if (!f->transition || !f->first)
		return -ENOMEM;
	for (i = f->states->model->bits; i--; )
		f->first[f->states->bit[i].place] = i;
	for (i = 0; r == 0 && i < net->transitions; i++)
		r = add_transition(f, &net->transition[i]);
	if (f->transitions)
		qsort_r(f->transition, f->transitions, sizeof(*f->transition),
			compare_transitions, f->step);
	return r;
}

/* ---- one transition ---- */

/* The state behind a step, or DISABLED */
static unsigned int next_state(const struct firing *f, uint32_t at, unsigned int state,
			       unsigned int bit)
{
	const struct step *step = &f->now[at];

	if ((!(state & ABOVE) && bit < step->least) || (!(state & BELOW) && bit > step->most))
		return DISABLED;
	if (step->end)
		return at + 1 < f->count ? step[1].start : 0;
	return state | (bit > step->least ? ABOVE : 0) | (bit < step->most ? BELOW : 0);
}

/* Compute f->enabled and f->possible of the current transition. */
static void examine(struct firing *f)
{
	unsigned int state, bit, next;
	uint32_t i;

	for (state = 0; state < STATES; state++)
		f->enabled[f->count][state] = 1;
	for (i = f->count; i--; )
		for (state = 0; state < STATES; state++) {
			uint64_t sum = 0;

			for (bit = 0; bit < 2; bit++) {
				next = next_state(f, i, state, bit);
				if (next != DISABLED)
					sum = kd_mod_add(&f->m, sum, f->enabled[i + 1][next]);
			}
			f->enabled[i][state] = kd_mod_half(&f->m, sum);
		}
	memset(f->possible, 0, f->count + 1);
	f->possible[0] = 1 << f->now->start;
	for (i = 0; i < f->count; i++)
		for (state = 0; state < STATES; state++)
			for (bit = 0; bit < 2 && f->possible[i] >> state & 1; bit++) {
				next = next_state(f, i, state, bit);
				if (next != DISABLED)
					f->possible[i + 1] |= 1 << next;
			}
}

static void add_sum(struct firing *f, uint64_t flow, uint64_t part)
{
	f->sum = kd_mod_add(&f->m, f->sum, kd_mod_multiply(&f->m, flow, part));
}

/* Let the flow of all states skip a bit. */
static void skip_bit(const struct firing *f, uint32_t at, uint64_t flow[STATES])
{
	uint64_t after[STATES] = { 0 };
	unsigned int state, bit, next;

	for (state = 0; state < STATES; state++)
		for (bit = 0; bit < 2 && flow[state]; bit++) {
			next = next_state(f, at, state, bit);
			if (next != DISABLED)
				after[next] = kd_mod_add(&f->m, after[next],
							 kd_mod_half(&f->m, flow[state]));
		}
	memcpy(flow, after, sizeof(after));
}

/* A flow arrives, in front of a step, at a node that is not above the step. */
static void arrive(struct firing *f, kdsm_bdd e, uint32_t at, unsigned int state, uint64_t flow)
{
	uint64_t *own = &f->own[state][kd_number(e)];

	if (at == f->count) {
		add_sum(f, flow, kd_part(&f->m, f->part, e));
	} else if (e & KDSM_BDD_COMPLEMENT) {
		add_sum(f, flow, f->enabled[at][state]);
		*own = kd_mod_sub(&f->m, *own, flow);
	} else {
		*own = kd_mod_add(&f->m, *own, flow);
	}
}

/* A flow takes an edge from in front of a step. */
static void follow(struct firing *f, kdsm_bdd e, uint32_t at, unsigned int state, uint64_t mass)
{
	uint64_t flow[STATES] = { 0 };
	uint32_t rank;

	if (kd_terminal(e)) {
		if (e == KDSM_BDD_TRUE)
			add_sum(f, mass, f->enabled[at][state]);
		return;
	}
	rank = kd_rank(f->states, e);
	if (at == f->count || f->now[at].rank >= rank) {
		arrive(f, e, at, state, mass);
		return;
	}
	flow[state] = mass;
	for (; at < f->count && f->now[at].rank < rank; at++)
		skip_bit(f, at, flow);
	for (state = 0; state < STATES; state++)
		if (flow[state])
			arrive(f, e, at, state, flow[state]);
}

/* Pass on the flow of a node in one state, in front of a step, to the children. */
static void pass(struct firing *f, uint64_t i, uint32_t at, unsigned int state, bool concerned)
{
	const struct kdsm_node *node = &f->states->walk.node[i];
	uint64_t half = kd_mod_half(&f->m, f->own[state][i]);
	unsigned int bit, next = state;

	f->own[state][i] = 0;
	for (bit = 0; bit < 2; bit++) {
		if (concerned)
			next = next_state(f, at, state, bit);
		if (next != DISABLED)
			follow(f, bit ? kd_high(node, 0) : kd_low(node, 0), at + concerned, next,
			       half);
	}
}

/* The nodes of a level take the common flow that comes to them, and pass on their own one. */
static uint64_t pass_level(struct firing *f, uint32_t level, uint32_t at)
{
	const struct kd_walk *walk = &f->states->walk;
	bool concerned = f->now[at].rank == f->states->rank[level];
	unsigned int state;
	uint64_t taken = 0, i;

	for (i = walk->end[level + 1]; i < walk->end[level]; i++) {
		if (f->flow[i]) {
			taken = kd_mod_add(&f->m, taken,
					   kd_mod_multiply(&f->m, f->flow[i], f->part[i]));
			follow(f, i, 0, f->now->start, f->flow[i]);
		}
		for (state = 0; state < STATES; state++)
			if (f->possible[at] >> state & 1 && f->own[state][i])
				pass(f, i, at, state, concerned);
	}
	return taken;
}

/* Compute f->sum for a transition whose first rank the common flow has reached. */
static void fire(struct firing *f, const struct transition *t, uint64_t all)
{
	uint64_t taken = 0;
	uint32_t level, at = 0;

	f->sum = 0;
	f->now = &f->step[t->at];
	f->count = t->steps;
	examine(f);
	for (level = f->level; level < f->states->walk.variables; level++) {
		while (at < f->count && f->now[at].rank < f->states->rank[level])
			at++;
		if (at == f->count)
			break;
		taken = kd_mod_add(&f->m, taken, pass_level(f, level, at));
	}
	/* the flow that no node has taken skips all steps */
	add_sum(f, kd_mod_sub(&f->m, all, taken), f->enabled[0][f->now->start]);
}

/* ---- all transitions ---- */

static void common_follow(struct firing *f, kdsm_bdd e, uint64_t mass)
{
	uint64_t *flow = &f->flow[kd_number(e)];

	*flow = e & KDSM_BDD_COMPLEMENT ? kd_mod_sub(&f->m, *flow, mass) :
					  kd_mod_add(&f->m, *flow, mass);
}

static void common_level(struct firing *f)
{
	const struct kd_walk *walk = &f->states->walk;
	uint64_t i, half;

	for (i = walk->end[f->level + 1]; i < walk->end[f->level]; i++) {
		half = kd_mod_half(&f->m, f->flow[i]);
		common_follow(f, kd_high(&walk->node[i], 0), half);
		common_follow(f, kd_low(&walk->node[i], 0), half);
	}
	f->level++;
}

/* The sum over all transitions, modulo f->m */
static uint64_t fire_all(struct firing *f)
{
	const struct kd_states *states = f->states;
	uint64_t all, sum;
	uint32_t i;

	kd_parts(&states->walk, &f->m, f->part);
	memset(f->flow, 0, (states->walk.count + 1) * sizeof(*f->flow));
	f->level = 0;
	common_follow(f, states->root, 1);
	all = kd_part(&f->m, f->part, states->root);
	sum = kd_mod_multiply(&f->m, all, f->always);
	for (i = 0; i < f->transitions; i++) {
		const struct transition *t = &f->transition[i];

		while (f->level < states->walk.variables &&
		       states->rank[f->level] < f->step[t->at].rank)
			common_level(f);
		if (!i || compare_transitions(t - 1, t, f->step))
			fire(f, t, all);
		sum = kd_mod_add(&f->m, sum, f->sum);
	}
	return kd_part_count(&f->m, sum, states->model->bits);
}

static int take_memory(struct firing *f)
{
	uint64_t nodes = f->states->walk.count + 1, steps = (uint64_t)f->most_steps + 1;
	unsigned int i;
	bool missing;

	f->part = f->states->walk.number;
	f->flow = malloc(nodes * sizeof(*f->flow));
	f->enabled = malloc(steps * sizeof(*f->enabled));
	f->possible = malloc(steps);
	missing = !f->flow || !f->enabled || !f->possible;
	/* memory for states that no transition has stays untouched */
	for (i = 0; i < STATES; i++) {
		f->own[i] = calloc(nodes, sizeof(*f->own[i]));
		missing |= !f->own[i];
	}
	return missing ? -ENOMEM : 0;
}

static void free_memory(struct firing *f)
{
	unsigned int i;

	for (i = 0; i < STATES; i++)
		free(f->own[i]);
	free(f->flow);
	free(f->enabled);
	free(f->possible);
	free(f->step);
	free(f->transition);
	free(f->first);
}

static void count(struct firing *f, mpz_t fired)
{
	uint32_t transitions = f->transitions + f->always;
	struct kd_residues r;
	uint64_t bits;

	bits = kd_count_bits(&f->states->walk, f->states->root, f->states->model->bits);
	for (; transitions; transitions /= 2)
		bits++;
	kd_residues_init(&r);
	while (mpz_sizeinbase(r.product, 2) <= bits) {
		kd_residues_next(&r, &f->m);
		kd_residues_add(&r, &f->m, fire_all(f));
	}
	mpz_set(fired, r.value);
	kd_residues_clear(&r);
}

int kd_states_fired(struct kd_states *states, mpz_t fired)
{
	struct firing f = { .states = states };
	int r;

	r = list_transitions(&f);
	if (r == 0)
		r = take_memory(&f);
	if (r == 0)
		count(&f, fired);
	free_memory(&f);
	return r;
}
