// SPDX-License-Identifier: GPL-2.0
/*
 * All executions of a litmus test in a model: a search through the states of memory, registers
 * and programs. The states of locks, signatures, barriers and buffers of stores follow from the
 * steps that roles have done.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

struct state {
	/* Number of steps that the role has done; LITMUS_ANY: the set of these steps */
	uint8_t done[LITMUS_ROLES];
	uint8_t flushed[LITMUS_ROLES];	/* LITMUS_TSO: number of its stores in memory */
	uint8_t registers[LITMUS_REGISTERS];
	uint8_t variables[LITMUS_VARIABLES];
};

struct search {
	const struct litmus *litmus;
	enum litmus_model model;
	struct litmus_set *set;
	uint64_t *known;		/* packed states, hashed; 0: none */
	size_t room, count;
};

/* ---- states that the search knows ---- */

/* Never 0 */
static uint64_t pack(const struct state *state)
{
	uint64_t packed = 1;
	unsigned int i;

	for (i = 0; i < LITMUS_ROLES; i++)
		packed = packed << 8 | state->done[i] << 3 | state->flushed[i];
	for (i = 0; i < LITMUS_REGISTERS; i++)
		packed = packed << 2 | state->registers[i];
	for (i = 0; i < LITMUS_VARIABLES; i++)
		packed = packed << 2 | state->variables[i];
	return packed;
}

static bool insert(uint64_t *known, size_t room, uint64_t packed)
{
	size_t i = packed * 0x9e3779b97f4a7c15ULL >> 20 & (room - 1);

	for (; known[i]; i = (i + 1) & (room - 1))
		if (known[i] == packed)
			return false;
	known[i] = packed;
	return true;
}

static void grow(struct search *search)
{
	size_t room = search->room ? 2 * search->room : 1024, i;
	uint64_t *known = calloc(room, sizeof(*known));

	assert(known);
	for (i = 0; i < search->room; i++)
		if (search->known[i])
			insert(known, room, search->known[i]);
	free(search->known);
	search->known = known;
	search->room = room;
}

static bool is_new(struct search *search, const struct state *state)
{
	if (2 * search->count >= search->room)
		grow(search);
	if (!insert(search->known, search->room, pack(state)))
		return false;
	search->count++;
	return true;
}

/* ---- synchronisation ---- */

/* Number of steps of this kind, with this number if it is not a barrier, that the role has done */
static unsigned int done(const struct search *search, const struct state *state,
			 unsigned int role, enum litmus_kind kind, unsigned int which)
{
	unsigned int i, count = 0;

	for (i = 0; i < state->done[role]; i++) {
		const struct litmus_step *step = &search->litmus->step[role][i];

		count += step->kind == kind && (kind == LITMUS_BARRIER || step->which == which);
	}
	return count;
}

static const struct litmus_step *next_step(const struct search *search,
					   const struct state *state, unsigned int role)
{
	return state->done[role] < search->litmus->steps[role] ?
	       &search->litmus->step[role][state->done[role]] : NULL;
}

static bool barrier_opens(const struct search *search, const struct state *state,
			  unsigned int role)
{
	unsigned int passed = done(search, state, role, LITMUS_BARRIER, 0), other;

	for (other = 0; other < search->litmus->roles; other++) {
		const struct litmus_step *step = next_step(search, state, other);

		if (done(search, state, other, LITMUS_BARRIER, 0) <= passed &&
		    !(step && step->kind == LITMUS_BARRIER))
			return false;
	}
	return true;
}

static bool is_locked(const struct search *search, const struct state *state,
		      unsigned int which)
{
	unsigned int role;

	for (role = 0; role < search->litmus->roles; role++)
		if (done(search, state, role, LITMUS_LOCK, which) >
		    done(search, state, role, LITMUS_UNLOCK, which))
			return true;
	return false;
}

static bool is_sent(const struct search *search, const struct state *state, unsigned int which)
{
	unsigned int role;

	for (role = 0; role < search->litmus->roles; role++)
		if (done(search, state, role, LITMUS_SEND, which))
			return true;
	return false;
}

static bool may_go_on(const struct search *search, const struct state *state,
		      unsigned int role, const struct litmus_step *step)
{
	switch (step->kind) {
	case LITMUS_BARRIER:
		return barrier_opens(search, state, role);
	case LITMUS_RECEIVE:
		return is_sent(search, state, step->which);
	case LITMUS_LOCK:
		return !is_locked(search, state, step->which);
	default:
		return true;
	}
}

/* Whether two roles are about to access a variable, and one of them stores */
static bool is_race(const struct search *search, const struct state *state)
{
	unsigned int i, j;

	for (i = 0; i < search->litmus->roles; i++)
		for (j = 0; j < i; j++) {
			const struct litmus_step *a = next_step(search, state, i);
			const struct litmus_step *b = next_step(search, state, j);

			if (a && b && litmus_is_access(a) && litmus_is_access(b) &&
			    a->variable == b->variable &&
			    (a->kind != LITMUS_LOAD || b->kind != LITMUS_LOAD))
				return true;
		}
	return false;
}

/* ---- buffers of stores ---- */

/* The store number n of the role among the steps that it has done; NULL: there is none */
static const struct litmus_step *store_of(const struct search *search,
					  const struct state *state, unsigned int role,
					  unsigned int n)
{
	unsigned int i;

	for (i = 0; i < state->done[role]; i++) {
		const struct litmus_step *step = &search->litmus->step[role][i];

		if (step->kind == LITMUS_STORE && !n--)
			return step;
	}
	return NULL;
}

/* The value that the role loads: that of its newest store in the buffer, or of memory */
static unsigned int load(const struct search *search, const struct state *state,
			 unsigned int role, unsigned int variable)
{
	unsigned int value = state->variables[variable], n;
	const struct litmus_step *store;

	if (search->model != LITMUS_TSO)
		return value;
	for (n = state->flushed[role]; (store = store_of(search, state, role, n)); n++)
		if (store->variable == variable)
			value = store->value;
	return value;
}

/* ---- the search ---- */

static void visit(struct search *search, const struct state *state);

static void step_do(struct search *search, const struct state *before, unsigned int role,
		    unsigned int which)
{
	const struct litmus_step *step = &search->litmus->step[role][which];
	struct state state = *before;

	if (step->kind == LITMUS_LOAD || step->kind == LITMUS_EXCHANGE)
		state.registers[step->which] = load(search, before, role, step->variable);
	if (step->kind == LITMUS_EXCHANGE ||
	    (step->kind == LITMUS_STORE && search->model != LITMUS_TSO))
		state.variables[step->variable] = step->value;
	if (search->model == LITMUS_ANY)
		state.done[role] |= 1U << which;
	else
		state.done[role]++;
	visit(search, &state);
}

/* Go on with each step that the role may do next. False: there is none. */
static bool role_step(struct search *search, const struct state *state, unsigned int role)
{
	const struct litmus_step *step;
	bool any = false;
	unsigned int i;

	if (search->model == LITMUS_ANY) {
		for (i = 0; i < search->litmus->steps[role]; i++) {
			if (state->done[role] >> i & 1)
				continue;
			step_do(search, state, role, i);
			any = true;
		}
		return any;
	}
	step = next_step(search, state, role);
	if (!step || !may_go_on(search, state, role, step))
		return false;
	/* An atomic instruction waits until the buffer is empty. */
	if (search->model == LITMUS_TSO && step->kind == LITMUS_EXCHANGE &&
	    store_of(search, state, role, state->flushed[role]))
		return false;
	step_do(search, state, role, state->done[role]);
	return true;
}

/* Move the oldest store of the buffer into memory. False: there is none. */
static bool role_flush(struct search *search, const struct state *before, unsigned int role)
{
	const struct litmus_step *store;
	struct state state = *before;

	if (search->model != LITMUS_TSO)
		return false;
	store = store_of(search, before, role, before->flushed[role]);
	if (!store)
		return false;
	state.variables[store->variable] = store->value;
	state.flushed[role]++;
	visit(search, &state);
	return true;
}

static void outcome_add(struct search *search, const struct state *state)
{
	unsigned int outcome = 0, i;

	for (i = 0; i < LITMUS_REGISTERS; i++)
		outcome |= state->registers[i] << 2 * i;
	for (i = 0; i < LITMUS_VARIABLES; i++)
		outcome |= state->variables[i] << 2 * (LITMUS_REGISTERS + i);
	search->set->count += !litmus_has(search->set, outcome);
	search->set->bits[outcome / 64] |= 1ULL << outcome % 64;
}

static bool has_ended(const struct search *search, const struct state *state)
{
	unsigned int role, steps;

	for (role = 0; role < search->litmus->roles; role++) {
		steps = search->litmus->steps[role];
		if (state->done[role] != (search->model == LITMUS_ANY ? (1U << steps) - 1 : steps))
			return false;
	}
	return true;
}

static void visit(struct search *search, const struct state *state)
{
	bool any = false;
	unsigned int role;

	if (!is_new(search, state))
		return;
	if (search->model == LITMUS_SC)
		search->set->racy |= is_race(search, state);
	for (role = 0; role < search->litmus->roles; role++) {
		any |= role_step(search, state, role);
		any |= role_flush(search, state, role);
	}
	if (!any && has_ended(search, state))
		outcome_add(search, state);
	else if (!any)
		search->set->stuck = true;
}

void litmus_explore(const struct litmus *litmus, enum litmus_model model,
		    struct litmus_set *set)
{
	struct search search = { .litmus = litmus, .model = model, .set = set };
	const struct state start = {};
	unsigned int role;

	/* pack() has five bits for the steps of a role, and three for its stores. */
	for (role = 0; role < litmus->roles; role++)
		assert(litmus->steps[role] <= (model == LITMUS_ANY ? 5 : LITMUS_STEPS));
	memset(set, 0, sizeof(*set));
	visit(&search, &start);
	free(search.known);
}
