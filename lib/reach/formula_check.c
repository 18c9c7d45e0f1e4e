// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Answers to formulas about the reachable states, when the search has ended.
 *
 * The value of a formula is the set of the reachable states in which it holds; temporal operators
 * are fixed points of predecessors (E. Clarke, E. Emerson, A. Sistla, "Automatic Verification of
 * Finite-State Concurrent Systems Using Temporal Logic Specifications", 1986). Paths are maximal:
 * a path ends only in a deadlock. So EX is false in a deadlock, AX is true, and EG holds there if
 * its operand does. The question is whether the initial state is in the set. For EF and AG in
 * front of a formula it is whether the set of their operand is empty or everything, which
 * takes no fixed point.
 *
 * Node 0 computes with all its workers. If an operation finds the table full, the search collects
 * garbage and repeats the operation. So each set in use is
 * protected: a function that returns a set has protected it, and its caller drops it. Operands
 * stay the caller's. After a failure, which c->error keeps, all functions return
 * KDSM_BDD_INVALID, which is dropped like a set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"

struct check {
	struct kd_search *s;
	struct kdsm_bdd_worker *w;
	kdsm_bdd states;	/* that were found; called reachable below */
	bool complete;		/* these are all reachable states */
	bool within;		/* a round is not over: the search cannot collect garbage */
	kdsm_bdd initial;
	kdsm_bdd stuck;		/* the deadlocks; only if know_stuck is set */
	bool know_stuck;
	bool fresh;		/* no operation has succeeded since the last collection */
	int error;		/* of this formula, or 0 */
};

/* ---- room in the table, and sets in use ---- */

/* After a failure: tell whether there is room now, so that the operation is worth repeating. */
static bool make_room(struct check *c)
{
	int r = kdsm_bdd_error(c->w);
	bool keep;

	if (r == -ENOSPC && !c->within && (!c->fresh || kd_can_grow(c->s->store))) {
		/* growth keeps results that a collection loses, so it comes first */
		keep = kd_can_grow(c->s->store);
		r = kd_room_collect(c->s, keep ? KD_GROW | KD_KEEP : 0);
		c->fresh = !keep;
		if (r == 0)
			return true;
		r = r == -ENOSPC ? -EIO : r;	/* the table is lost */
	}
	if (kd_gang_aborted(&c->s->cluster, NULL))
		r = -ECANCELED;
	c->error = r ? r : -EIO;
	return false;
}

static kdsm_bdd hold(struct check *c, kdsm_bdd a)
{
	int r = a == KDSM_BDD_INVALID ? 0 : kdsm_bdd_protect(c->s->store, a);

	if (r == 0)
		return a;
	c->error = r;
	return KDSM_BDD_INVALID;
}

static void drop(struct check *c, kdsm_bdd a)
{
	if (a != KDSM_BDD_INVALID)
		kdsm_bdd_unprotect(c->s->store, a);
}

/* The value of an operation, which is repeated when there is room; a set that is held. */
#define TRY(c, operation) ({ \
	struct check *try_check = (c); \
	kdsm_bdd try_result = KDSM_BDD_INVALID; \
	if (!try_check->error) { \
		do { \
			try_result = (operation); \
		} while (try_result == KDSM_BDD_INVALID && make_room(try_check)); \
	} \
	try_check->fresh = try_check->fresh && try_result == KDSM_BDD_INVALID; \
	hold(try_check, try_result); \
})

static kdsm_bdd both(struct check *c, kdsm_bdd a, kdsm_bdd b)
{
	return TRY(c, kdsm_bdd_and(c->w, a, b));
}

/* Replace *a by its union with b, or its intersection. */
static void add(struct check *c, kdsm_bdd *a, kdsm_bdd b)
{
	kdsm_bdd all = TRY(c, kdsm_bdd_or(c->w, *a, b));

	drop(c, *a);
	*a = all;
}

static void keep(struct check *c, kdsm_bdd *a, kdsm_bdd b)
{
	kdsm_bdd all = TRY(c, kdsm_bdd_and(c->w, *a, b));

	drop(c, *a);
	*a = all;
}

/* The reachable states that are not in a. */
static kdsm_bdd complement(struct check *c, kdsm_bdd a)
{
	return both(c, c->states, kdsm_bdd_not(a));
}

/* ---- formulas of a marking ---- */

/*
 * The reachable states in which the sum is at most 0. The set of all such markings needs no look
 * at the reachable ones, but may be too large where the set of the reachable ones is not.
 */
static kdsm_bdd at_most(struct check *c, const struct kd_sum *sum)
{
	const struct kd_marking *m = c->s->model.marking;
	kdsm_bdd set = TRY(c, kd_sum_at_most(c->w, m, sum, KDSM_BDD_TRUE));

	if (c->error == -E2BIG) {
		c->error = 0;
		set = TRY(c, kd_sum_at_most(c->w, m, sum, c->states));
	}
	keep(c, &set, c->states);
	return set;
}

static kdsm_bdd equal(struct check *c, const struct kd_sum *sum)
{
	struct kd_sum opposite = { 0 };
	kdsm_bdd set = at_most(c, sum), other = KDSM_BDD_INVALID;
	int r = kd_sum_add(&opposite, sum, true);

	if (r < 0)
		c->error = r;
	other = at_most(c, &opposite);
	keep(c, &set, other);
	drop(c, other);
	free(opposite.addend);
	return set;
}

/* Remove from *set the markings in which the place has fewer tokens, or as many, or more. */
static void need(struct check *c, kdsm_bdd *set, const struct kd_arc *arc, bool fewer)
{
	struct kd_addend addend = { arc->place, fewer ? 1 : -1 };
	struct kd_sum sum = {
		.addend = &addend, .addends = 1,
		.constant = fewer ? 1 - (int64_t)arc->weight : (int64_t)arc->weight,
	};
	kdsm_bdd enough = TRY(c, kd_sum_at_most(c->w, c->s->model.marking, &sum, KDSM_BDD_TRUE));

	keep(c, set, enough);
	drop(c, enough);
}

/* The markings, reachable or not, in which the transition is enabled */
static kdsm_bdd enabled(struct check *c, unsigned int transition)
{
	const struct kd_transition *t = &c->s->model.net->transition[transition];
	kdsm_bdd set = KDSM_BDD_TRUE;
	unsigned int i;

	for (i = 0; i < t->ins; i++)
		need(c, &set, &t->in[i], false);
	for (i = 0; i < t->reads; i++)
		need(c, &set, &t->read[i], false);
	for (i = 0; i < t->inhibitors; i++)
		need(c, &set, &t->inhibitor[i], true);
	return set;
}

static kdsm_bdd fireable(struct check *c, const struct kd_formula *f)
{
	kdsm_bdd set = KDSM_BDD_FALSE, one;
	size_t i;

	for (i = 0; i < f->transitions; i++) {
		one = enabled(c, f->transition[i]);
		keep(c, &one, c->states);
		add(c, &set, one);
		drop(c, one);
	}
	return set;
}

/* The reachable states without successor */
static kdsm_bdd deadlocks(struct check *c)
{
	kdsm_bdd set, one;
	unsigned int i;

	if (c->know_stuck)
		return hold(c, c->stuck);
	set = hold(c, c->states);
	for (i = 0; i < c->s->model.net->transitions && set != KDSM_BDD_FALSE && !c->error; i++) {
		one = enabled(c, i);
		keep(c, &set, kdsm_bdd_not(one));
		drop(c, one);
	}
	if (c->error)
		return set;
	c->know_stuck = true;
	c->stuck = hold(c, set);
	return set;
}

/* ---- temporal operators ---- */

/* The states of among that have a successor in set by this relation */
static kdsm_bdd before(struct check *c, kdsm_bdd set, kdsm_bdd among, unsigned int relation)
{
	const struct kdsm_relation *r = c->s->model.relation[relation];
	kdsm_bdd found = TRY(c, kdsm_bdd_predecessors(c->w, set, r));

	keep(c, &found, among);
	return found;
}

/* The reachable states that have a successor in set */
static kdsm_bdd predecessors(struct check *c, kdsm_bdd set)
{
	kdsm_bdd all = KDSM_BDD_FALSE, one;
	unsigned int i;

	for (i = 0; i < c->s->model.relations && !c->error; i++) {
		one = before(c, set, c->states, i);
		add(c, &all, one);
		drop(c, one);
	}
	return all;
}

/* E (while U reach): each relation continues from what the relations before it have found. */
static kdsm_bdd exists_until(struct check *c, kdsm_bdd during, kdsm_bdd reach)
{
	kdsm_bdd set = hold(c, reach), old = KDSM_BDD_FALSE, one;
	unsigned int i;

	while (!c->error && set != old) {
		drop(c, old);
		old = hold(c, set);
		for (i = 0; i < c->s->model.relations && !c->error; i++) {
			one = before(c, set, during, i);
			add(c, &set, one);
			drop(c, one);
		}
	}
	drop(c, old);
	return set;
}

/* EG a: the states of a that are deadlocks, or have a successor among these states */
static kdsm_bdd exists_globally(struct check *c, kdsm_bdd a)
{
	kdsm_bdd set = hold(c, a), old = KDSM_BDD_TRUE, stuck = deadlocks(c), on;

	while (!c->error && set != old) {
		drop(c, old);
		old = hold(c, set);
		on = predecessors(c, set);
		add(c, &on, stuck);
		keep(c, &set, on);
		drop(c, on);
	}
	drop(c, old);
	drop(c, stuck);
	return set;
}

static kdsm_bdd value(struct check *c, const struct kd_formula *f);

/* The states in which a does not hold: the complement takes the place of a. */
static void invert(struct check *c, kdsm_bdd *a)
{
	kdsm_bdd other = complement(c, *a);

	drop(c, *a);
	*a = other;
}

/* A (during U reach): no path avoids reach, and no path leaves during before it is in reach. */
static kdsm_bdd all_until(struct check *c, kdsm_bdd during, kdsm_bdd reach)
{
	kdsm_bdd not_reach = complement(c, reach), neither, avoid, leave;

	neither = both(c, not_reach, kdsm_bdd_not(during));
	avoid = exists_globally(c, not_reach);
	leave = exists_until(c, not_reach, neither);
	add(c, &avoid, leave);
	drop(c, leave);
	drop(c, neither);
	drop(c, not_reach);
	invert(c, &avoid);
	return avoid;
}

static kdsm_bdd temporal(struct check *c, const struct kd_formula *f)
{
	bool until = f->op == KD_F_EU || f->op == KD_F_AU;
	kdsm_bdd a = value(c, f->operand[0]), set = KDSM_BDD_INVALID;
	kdsm_bdd b = until ? value(c, f->operand[1]) : KDSM_BDD_FALSE;

	if (f->op == KD_F_AX || f->op == KD_F_AF || f->op == KD_F_AG)
		invert(c, &a);
	if (f->op == KD_F_EX || f->op == KD_F_AX)
		set = predecessors(c, a);
	else if (f->op == KD_F_EF || f->op == KD_F_AG)
		set = exists_until(c, c->states, a);
	else if (f->op == KD_F_EG || f->op == KD_F_AF)
		set = exists_globally(c, a);
	else if (f->op == KD_F_EU)
		set = exists_until(c, a, b);
	else
		set = all_until(c, a, b);
	if (f->op == KD_F_AX || f->op == KD_F_AF || f->op == KD_F_AG)
		invert(c, &set);
	drop(c, a);
	drop(c, b);
	return set;
}

/* ---- any formula ---- */

static kdsm_bdd combine(struct check *c, const struct kd_formula *f)
{
	kdsm_bdd set = value(c, f->operand[0]), other;
	size_t i;

	for (i = 1; i < f->operands && !c->error; i++) {
		other = value(c, f->operand[i]);
		if (f->op == KD_F_AND) {
			keep(c, &set, other);
		} else if (f->op == KD_F_OR) {
			add(c, &set, other);
		} else {
			kdsm_bdd differ = TRY(c, kdsm_bdd_xor(c->w, set, other));

			drop(c, set);
			set = differ;
		}
		drop(c, other);
	}
	return set;
}

/* The reachable states in which the formula holds */
static kdsm_bdd value(struct check *c, const struct kd_formula *f)
{
	kdsm_bdd set;

	if (c->error)
		return KDSM_BDD_INVALID;
	switch (f->op) {
	case KD_F_TRUE:
		return hold(c, c->states);
	case KD_F_FALSE:
		return KDSM_BDD_FALSE;
	case KD_F_DEADLOCK:
		return deadlocks(c);
	case KD_F_FIREABLE:
		return fireable(c, f);
	case KD_F_AT_MOST:
		return at_most(c, &f->sum);
	case KD_F_EQUAL:
		return equal(c, &f->sum);
	case KD_F_NOT:
		set = value(c, f->operand[0]);
		invert(c, &set);
		return set;
	case KD_F_AND:
	case KD_F_OR:
	case KD_F_XOR:
		return combine(c, f);
	default:
		return temporal(c, f);
	}
}

/* ---- answers ---- */

static enum kdsm_reach_answer opposite(enum kdsm_reach_answer answer)
{
	return answer == KDSM_REACH_TRUE ? KDSM_REACH_FALSE :
	       answer == KDSM_REACH_FALSE ? KDSM_REACH_TRUE : answer;
}

/* Whether some state found is in the formula. An incomplete search may miss states. */
static enum kdsm_reach_answer somewhere(struct check *c, const struct kd_formula *f)
{
	kdsm_bdd set = value(c, f);
	bool any = set != KDSM_BDD_FALSE;

	drop(c, set);
	if (c->error)
		return KDSM_REACH_UNKNOWN;
	return any ? KDSM_REACH_TRUE :
	       c->complete ? KDSM_REACH_FALSE : KDSM_REACH_UNKNOWN;
}

static enum kdsm_reach_answer decide(struct check *c, const struct kd_formula *f);

static enum kdsm_reach_answer decide_list(struct check *c, const struct kd_formula *f)
{
	enum kdsm_reach_answer end = f->op == KD_F_AND ? KDSM_REACH_FALSE : KDSM_REACH_TRUE;
	enum kdsm_reach_answer answer = opposite(end), one;
	size_t i;

	for (i = 0; i < f->operands && answer != end && !c->error; i++) {
		one = decide(c, f->operand[i]);
		if (one != opposite(end))
			answer = one == end || answer == end ? end : KDSM_REACH_UNKNOWN;
	}
	return answer;
}

/* Whether the initial state is in the set of the formula */
static enum kdsm_reach_answer decide_initially(struct check *c, const struct kd_formula *f)
{
	kdsm_bdd set, here;
	bool in;

	if (kd_formula_temporal(f) && !c->complete)
		return KDSM_REACH_UNKNOWN;
	set = value(c, f);
	here = both(c, set, c->initial);
	in = here != KDSM_BDD_FALSE;
	drop(c, set);
	drop(c, here);
	return c->error ? KDSM_REACH_UNKNOWN : in ? KDSM_REACH_TRUE : KDSM_REACH_FALSE;
}

/* Whether the formula holds in the initial state, from which all states are reachable */
static enum kdsm_reach_answer decide(struct check *c, const struct kd_formula *f)
{
	struct kd_formula not = { .op = KD_F_NOT, .operand = f->operand, .operands = 1 };
	bool plain = f->operands && (c->complete ||
				     !kd_formula_temporal(f->operand[0]));

	if (f->op == KD_F_NOT)
		return opposite(decide(c, f->operand[0]));
	if (f->op == KD_F_AND || f->op == KD_F_OR)
		return decide_list(c, f);
	if (f->op == KD_F_EF && plain)
		return somewhere(c, f->operand[0]);
	if (f->op == KD_F_AG && plain)
		return opposite(somewhere(c, &not));
	return decide_initially(c, f);
}

/* The states that a trace proves or disproves the formula with, if there is such a trace */
static kdsm_bdd proof(struct check *c, const struct kd_formula *f, enum kdsm_reach_answer answer)
{
	struct kd_formula not = { .op = KD_F_NOT, .operand = f->operand, .operands = 1 };

	for (; f->op == KD_F_NOT; answer = opposite(answer), f = f->operand[0])
		;
	not.operand = f->operand;
	if (f->op == KD_F_EF && answer == KDSM_REACH_TRUE)
		return value(c, f->operand[0]);
	if (f->op == KD_F_AG && answer == KDSM_REACH_FALSE)
		return value(c, &not);
	return KDSM_BDD_FALSE;
}

/* Find the trace of an answer. A full table only means that there is none. */
static int trace(struct check *c, const struct kd_formula *f, struct kdsm_reach_formula *result)
{
	kdsm_bdd states;
	int r = 0;

	if (!c->s->options->trace)
		return 0;
	states = proof(c, f, result->answer);
	if (c->error)
		r = c->error;
	if (r == 0 && states != KDSM_BDD_FALSE) {
		result->trace = calloc(1, sizeof(*result->trace));
		r = result->trace ? kd_trace_to(c->s, states, result->id, result->trace) : -ENOMEM;
	}
	drop(c, states);
	c->error = 0;
	if (r < 0 && result->trace) {
		kd_trace_destroy(result->trace);
		free(result->trace);
		result->trace = NULL;
	}
	if (r == -ENOSPC)
		kd_search_warn(c->s, "%s: the table is too full to find its trace", result->id);
	return r == -ENOSPC ? 0 : r;
}

/* The bound is 0 or more, and of all reachable states. */
static void bound(struct check *c, const struct kd_formula *f, struct kdsm_reach_formula *result)
{
	int64_t most;

	if (!c->complete)
		return;
	c->error = kd_sum_most(c->w, c->s->model.marking, &f->sum, c->states, &most);
	if (c->error)
		return;
	result->answer = KDSM_REACH_BOUND;
	result->bound = most;
}

/* Why a formula is unknown */
static const char *reason(const struct check *c)
{
	if (!c->error)
		return "the search did not find all states";
	if (c->error == -ENOSPC)
		return "the table is too small for it; give a larger --table";
	if (c->error == -E2BIG)
		return "it adds too many tokens in too many ways";
	if (c->error == -ERANGE)
		return "its numbers are too large";
	return "out of memory";
}

/* Whether an error spoils one formula only */
static bool harmless(int error)
{
	return error == 0 || error == -ENOSPC || error == -E2BIG || error == -ERANGE ||
	       error == -ENOMEM;
}

static int answer(struct check *c, const struct kd_named *named,
		  struct kdsm_reach_formula *result)
{
	c->error = 0;
	result->id = strdup(named->id);
	if (!result->id)
		return -ENOMEM;
	if (named->early != KDSM_REACH_UNKNOWN)
		result->answer = named->early;
	else if (named->formula->op == KD_F_BOUND)
		bound(c, named->formula, result);
	else
		result->answer = decide(c, named->formula);
	if (!harmless(c->error))
		return c->error;
	if (c->error)
		result->answer = KDSM_REACH_UNKNOWN;
	if (result->answer == KDSM_REACH_UNKNOWN) {
		result->why = strdup(reason(c));
		return result->why ? 0 : -ENOMEM;
	}
	return trace(c, named->formula, result);
}

static int answer_all(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct check c = {
		.s = s, .w = s->worker, .states = s->visited, .complete = kd_search_complete(s),
	};
	size_t i;
	int r = 0;

	result->formula = calloc(s->formulas->count + 1, sizeof(*result->formula));
	if (!result->formula)
		return -ENOMEM;
	c.initial = TRY(&c, kdsm_bdd_publish(c.w, s->model.initial));
	if (c.error)
		return c.error;
	for (i = 0; r == 0 && i < s->formulas->count; i++) {
		result->formulas++;
		r = answer(&c, &s->formulas->named[i], &result->formula[i]);
	}
	result->collections = s->room.sum;
	drop(&c, c.initial);
	if (c.know_stuck)
		drop(&c, c.stuck);
	return r;
}

bool kd_formulas_look(struct kd_search *s, kdsm_bdd states, bool *open)
{
	struct check c = { .s = s, .w = s->worker, .states = states, .within = true };
	struct kd_named *named = s->formulas->named;
	bool violated = false;

	*open = false;
	c.initial = TRY(&c, kdsm_bdd_publish(c.w, s->model.initial));
	for (; named < s->formulas->named + s->formulas->count && !violated; named++) {
		c.error = c.initial == KDSM_BDD_INVALID ? -ENOSPC : 0;
		if (!c.error && named->early == KDSM_REACH_UNKNOWN &&
		    named->formula->op != KD_F_BOUND) {
			named->early = decide(&c, named->formula);
			if (c.error)
				named->early = KDSM_REACH_UNKNOWN;
		}
		*open |= named->early == KDSM_REACH_UNKNOWN;
		violated = named->early == KDSM_REACH_FALSE;
	}
	drop(&c, c.initial);
	if (c.know_stuck)
		drop(&c, c.stuck);
	return violated;
}

int kd_formulas_check(struct kd_search *s, struct kdsm_reach_result *result)
{
	if (!s->formulas || result->stopped)
		return 0;
	kd_portfolio_end(s);	/* forget the states of other orders */
	return answer_all(s, result);
}

void kd_formulas_salvage(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kdsm_reach_formula *f;

	if (!s->formulas || result->formula)
		return;
	result->formula = calloc(s->formulas->count + 1, sizeof(*result->formula));
	while (result->formula && result->formulas < s->formulas->count) {
		f = &result->formula[result->formulas];
		f->answer = s->formulas->named[result->formulas].early;
		f->id = strdup(s->formulas->named[result->formulas].id);
		if (f->answer == KDSM_REACH_UNKNOWN)
			f->why = strdup("the search failed");
		if (!f->id || (f->answer == KDSM_REACH_UNKNOWN && !f->why)) {
			free(f->id);
			free(f->why);
			return;
		}
		result->formulas++;
	}
}

int kd_formulas_begin(struct kd_search *s)
{
	unsigned int i;
	int r = 0;

	if (!s->options->formulas)
		return 0;
	s->formulas = calloc(1, sizeof(*s->formulas));
	if (!s->formulas)
		return -ENOMEM;
	for (i = 0; r == 0 && i < s->options->formulas; i++)
		r = kd_formulas_read(s->options->formula[i], &s->model, s->formulas, s->message);
	return r;
}

void kd_formulas_end(struct kd_search *s)
{
	if (s->formulas)
		kd_formulas_free(s->formulas);
	free(s->formulas);
	s->formulas = NULL;
}

void kd_formula_answers_free(struct kdsm_reach_result *result)
{
	unsigned int i;

	for (i = 0; i < result->formulas; i++) {
		if (result->formula[i].trace)
			kd_trace_destroy(result->formula[i].trace);
		free(result->formula[i].trace);
		free(result->formula[i].id);
		free(result->formula[i].why);
	}
	free(result->formula);
}
