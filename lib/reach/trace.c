// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deadlocks, and shortest traces to a deadlock or a violated property. Node 0 computes both
 * after the search. A trace is found from its end: among the states that round k - 1 found,
 * node 0 selects one with a successor in the trace's state of round k.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "circuit.h"
#include "internal.h"

int kd_trace_note(struct kd_search *s)
{
	kdsm_bdd *more;

	if (!s->options->trace)
		return 0;
	more = reallocarray(s->frontier, s->levels + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->frontier = more;
	more[s->levels] = s->current;
	return 0;
}

/* Pick one of the states: store its bits, and return the set with only this state. */
static kdsm_bdd pick(struct kd_search *s, kdsm_bdd states, uint8_t *bits)
{
	const struct kd_model *model = &s->model;
	struct kdsm_bdd_worker *w = s->worker;
	kdsm_bdd high, low, one = KDSM_BDD_TRUE;
	uint32_t variable;
	unsigned int i;
	int ret;

	memset(bits, 0, model->bits);
	for (i = 0; i < model->bits && states != KDSM_BDD_TRUE; i++) {
		ret = kdsm_bdd_look(w, states, &variable, &high, &low);
		if (ret < 0)
			return kd_end(w, kd_failure(ret));
		if (variable != model->variables[i])
			continue;
		bits[i] = low == KDSM_BDD_FALSE;
		states = low == KDSM_BDD_FALSE ? high : low;
	}
	if (states != KDSM_BDD_TRUE)
		return kd_end(w, kd_failure(-EIO));
	for (i = model->bits; i--; )
		one = kd_literal(w, model->variables[i], bits[i], one);
	return one;
}

static int compare_variables(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* List the marked places, in the order of the net, with their tokens. */
static int list_marked(const struct kd_net *net, const uint64_t *tokens,
		       struct kdsm_reach_step *step)
{
	struct kdsm_reach_marked *next;
	unsigned int i;

	step->marking = calloc((size_t)net->places + 1, sizeof(*step->marking));
	if (!step->marking)
		return -ENOMEM;
	for (i = 0; i < net->places; i++) {
		if (!tokens[i])
			continue;
		next = &step->marking[step->marked];
		next->place = strdup(net->place[i].id);
		if (!next->place)
			return -ENOMEM;
		next->tokens = tokens[i];
		step->marked++;
	}
	next = realloc(step->marking, ((size_t)step->marked + 1) * sizeof(*next));
	step->marking = next ? next : step->marking;
	return 0;
}

/* Describe a marking in the step and, in one line, in the file. */
static int describe_marking(const struct kd_model *model, const uint8_t *bits,
			    struct kdsm_reach_step *step, FILE *file)
{
	uint64_t *tokens = calloc((size_t)model->net->places + 1, sizeof(*tokens));
	unsigned int i, bit, place;
	int ret;

	if (!tokens)
		return -ENOMEM;
	for (i = 0; i < model->bits; i++) {
		place = kd_marking_place(model->marking, model->variables[i], &bit);
		tokens[place] |= (uint64_t)bits[i] << bit;
	}
	ret = list_marked(model->net, tokens, step);
	free(tokens);
	for (i = 0; i < step->marked; i++) {
		fprintf(file, "%s%s", i ? " " : "", step->marking[i].place);
		if (step->marking[i].tokens > 1)
			fprintf(file, "=%" PRIu64, step->marking[i].tokens);
	}
	return ret;
}

/* Describe a state of a circuit: the values of the latches, in the order of the file. */
static void describe_latches(const struct kd_model *model, const uint8_t *bits, FILE *file)
{
	const struct kd_circuit *c = model->circuit;
	const uint32_t *bit;
	uint32_t i, variable;

	for (i = 0; i < c->latches; i++) {
		variable = 2 * c->position[i];
		bit = bsearch(&variable, model->variables, model->bits, sizeof(variable),
			      compare_variables);
		fputc('0' + bits[bit - model->variables], file);
	}
}

/* Describe a state by the marked places of a net, or by its bits. */
static int describe_state(const struct kd_model *model, const uint8_t *bits,
			  struct kdsm_reach_step *step)
{
	size_t size;
	FILE *file = open_memstream(&step->state, &size);
	unsigned int i;
	int ret = 0;

	if (!file)
		return -ENOMEM;
	if (model->net)
		ret = describe_marking(model, bits, step, file);
	else if (model->circuit)
		describe_latches(model, bits, file);
	else
		for (i = 0; i < model->bits; i++)
			fputc('0' + bits[i], file);
	return fclose(file) ? -ENOMEM : ret;
}

static char *describe_step(const struct kd_model *model, unsigned int relation)
{
	char number[32];

	if (model->net)
		return strdup(model->net->transition[relation].id);
	snprintf(number, sizeof(number), "relation %u", relation);
	return strdup(number);
}

static int add_state(struct kd_search *s, struct kdsm_reach_trace *trace, uint64_t at,
		     kdsm_bdd states, uint8_t *bits, kdsm_bdd *one)
{
	*one = pick(s, states, bits);
	if (*one == KDSM_BDD_INVALID)
		return kdsm_bdd_error(s->worker);
	return describe_state(&s->model, bits, &trace->step[at]);
}

/* Find a relation that leads from some states among these to the one, and those states. */
static int step_back(struct kd_search *s, kdsm_bdd among, kdsm_bdd *one, unsigned int *relation)
{
	struct kdsm_bdd_worker *w = s->worker;
	kdsm_bdd before;
	unsigned int i;

	for (i = 0; i < s->model.relations; i++) {
		before = kd_predecessors(w, &s->model, *one, i);
		before = kdsm_bdd_and(w, before, among);
		if (before == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
		if (before != KDSM_BDD_FALSE) {
			*one = before;
			*relation = i;
			return 0;
		}
	}
	return -EIO;
}

static char *describe_inputs(const char *inputs)
{
	char *text;

	return asprintf(&text, "%s%s", *inputs ? "inputs " : "step", inputs) < 0 ? NULL : text;
}

/*
 * Find the inputs of a trace of a circuit. The last ones violate the property, if the property
 * is one of the circuit. The label of a step shows the inputs that lead to it.
 */
static int find_inputs(struct kd_search *s, struct kdsm_reach_trace *trace)
{
	const struct kd_circuit *c = s->model.circuit;
	struct kdsm_reach_step *step = trace->step;
	char *inputs;
	uint64_t k;
	int ret;

	for (k = 0; c && k <= trace->steps; k++) {
		if (k == trace->steps && trace->property >= c->properties)
			break;
		inputs = malloc((size_t)c->inputs + 1);
		if (!inputs)
			return -ENOMEM;
		step[k].inputs = inputs;
		ret = kd_circuit_inputs(s->worker, c, step[k].state,
					k < trace->steps ? step[k + 1].state : NULL,
					trace->property, inputs);
		if (ret)
			return ret;
		if (k == trace->steps)
			break;
		free(step[k + 1].label);
		step[k + 1].label = describe_inputs(inputs);
		if (!step[k + 1].label)
			return -ENOMEM;
	}
	return 0;
}

/* Find a trace to one of the states, which were found after this number of steps. */
static int find_way(struct kd_search *s, kdsm_bdd states, uint64_t steps,
		    struct kdsm_reach_trace *trace)
{
	uint8_t *bits = malloc(s->model.bits + 1);
	unsigned int relation = 0;
	uint64_t at = steps;
	kdsm_bdd one;
	int ret;

	trace->step = calloc(steps + 1, sizeof(*trace->step));
	if (!bits || !trace->step) {
		free(bits);
		return -ENOMEM;
	}
	trace->steps = steps;
	ret = add_state(s, trace, at, states, bits, &one);
	while (!ret && at) {
		ret = step_back(s, s->frontier[at - 1], &one, &relation);
		if (ret)
			break;
		trace->step[at].label = describe_step(&s->model, relation);
		ret = trace->step[at].label ? add_state(s, trace, --at, one, bits, &one) : -ENOMEM;
	}
	free(bits);
	return ret ? ret : find_inputs(s, trace);
}

static struct kdsm_reach_trace *new_trace(struct kdsm_reach_result *result, const char *what,
					  unsigned int property)
{
	struct kdsm_reach_trace *more;

	more = reallocarray(result->trace, result->traces + 1, sizeof(*more));
	if (!more)
		return NULL;
	result->trace = more;
	more += result->traces;
	*more = (struct kdsm_reach_trace){ .what = strdup(what), .property = property };
	if (!more->what)
		return NULL;
	result->traces++;
	return more;
}

static int trace_property(struct kd_search *s, unsigned int i, struct kdsm_reach_result *result)
{
	const struct kdsm_reach_verdict *verdict = &result->verdict[i];
	struct kdsm_reach_trace *trace = new_trace(result, verdict->name, i);
	kdsm_bdd states;

	if (!trace)
		return -ENOMEM;
	states = kdsm_bdd_and(s->worker, s->frontier[verdict->steps], s->bad[i]);
	return states == KDSM_BDD_INVALID ? kdsm_bdd_error(s->worker) :
	       find_way(s, states, verdict->steps, trace);
}

int kd_trace_to(struct kd_search *s, kdsm_bdd goal, const char *what,
		struct kdsm_reach_trace *trace)
{
	kdsm_bdd states;
	uint64_t k;

	*trace = (struct kdsm_reach_trace){ .what = strdup(what), .property = UINT_MAX };
	if (!trace->what)
		return -ENOMEM;
	/*
	 * the states of the last round are in frontier, too, if the search ended before it
	 * was complete
	 */
	for (k = 0; k < s->levels + (s->current != KDSM_BDD_FALSE); k++) {
		states = kdsm_bdd_and(s->worker, s->frontier[k], goal);
		if (states == KDSM_BDD_INVALID)
			return kdsm_bdd_error(s->worker);
		if (states != KDSM_BDD_FALSE)
			return find_way(s, states, k, trace);
	}
	return -EIO;
}

static void destroy_step(struct kdsm_reach_step *step)
{
	unsigned int i;

	for (i = 0; i < step->marked; i++)
		free(step->marking[i].place);
	free(step->marking);
	free(step->label);
	free(step->state);
	free(step->inputs);
}

void kd_trace_destroy(struct kdsm_reach_trace *trace)
{
	uint64_t k;

	for (k = 0; trace->step && k <= trace->steps; k++)
		destroy_step(&trace->step[k]);
	free(trace->step);
	free(trace->what);
}

static int trace_deadlock(struct kd_search *s, kdsm_bdd dead, struct kdsm_reach_result *result)
{
	struct kdsm_reach_trace *more;

	more = reallocarray(result->trace, result->traces + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	result->trace = more;
	return kd_trace_to(s, dead, "deadlock", &more[result->traces++]);
}

/* The cube of those variables of a relation that are not current ones: next ones and traps */
static kdsm_bdd other_variables(struct kdsm_bdd_worker *w, kdsm_bdd relation)
{
	kdsm_bdd cube = kdsm_bdd_support(w, relation), high, low;
	uint32_t *variables = NULL, *more, v;
	unsigned int count = 0;
	int r = 0;

	if (cube == KDSM_BDD_INVALID)
		return cube;
	for (; r == 0 && !kd_terminal(cube); cube = high) {
		r = kdsm_bdd_look(w, cube, &v, &high, &low);
		if (r < 0 || (v % 2 == 0 && v < KD_FIRST_TRAP))
			continue;
		more = reallocarray(variables, count + 1, sizeof(*more));
		if (more) {
			variables = more;
			variables[count++] = v;
		} else {
			r = -ENOMEM;
		}
	}
	cube = r < 0 ? kd_end(w, kd_failure(r)) : kdsm_bdd_cube(w, variables, count);
	free(variables);
	return cube;
}

/*
 * The states in which a relation has a successor. Those of the last round may lead to a trap, if
 * the search ended before it was complete; what is beyond the trap is a successor, too.
 */
static kdsm_bdd able_by(struct kd_search *s, unsigned int i, bool complete)
{
	const struct kdsm_relation *relation = s->model.relation[i];
	struct kdsm_bdd_worker *w = s->worker;
	kdsm_bdd all;

	if (!s->store->traps || complete)
		return kd_predecessors(w, &s->model, KDSM_BDD_TRUE, i);
	all = kdsm_bdd_publish(w, relation->relation);
	return kdsm_bdd_exists(w, all, other_variables(w, relation->relation));
}

int kd_trace_deadlocks(struct kd_search *s, kdsm_bdd states, bool complete, kdsm_bdd *dead)
{
	struct kdsm_bdd_worker *w = s->worker;
	unsigned int i;

	*dead = states;
	for (i = 0; i < s->model.relations && *dead != KDSM_BDD_FALSE; i++) {
		kdsm_bdd able = able_by(s, i, complete);

		*dead = kdsm_bdd_and(w, *dead, kdsm_bdd_not(able));
	}
	return *dead == KDSM_BDD_INVALID ? kdsm_bdd_error(w) : 0;
}

static bool has_trace(const struct kdsm_reach_result *result, unsigned int property)
{
	unsigned int i;

	for (i = 0; i < result->traces; i++)
		if (result->trace[i].property == property)
			return true;
	return false;
}

/* Find the next trace. If the table has no room for it, leave nothing of it. */
static int add_trace(struct kd_search *s, unsigned int property, kdsm_bdd dead,
		     struct kdsm_reach_result *result)
{
	unsigned int before = result->traces;
	int ret;

	if (has_trace(result, property))
		return 0;
	ret = property == UINT_MAX ? trace_deadlock(s, dead, result) :
	      trace_property(s, property, result);
	if (ret == -ENOSPC && result->traces > before)
		kd_trace_destroy(&result->trace[--result->traces]);
	return ret;
}

int kd_trace_find(struct kd_search *s, struct kdsm_reach_result *result)
{
	unsigned int before = result->traces, i;
	kdsm_bdd dead = KDSM_BDD_FALSE;
	int ret = 0;

	if (s->options->deadlocks) {
		ret = kd_trace_deadlocks(s, s->visited, kd_search_complete(s), &dead);
		if (!ret)
			ret = kdsm_bdd_count_states(s->worker, dead, s->model.variables,
						    s->model.bits, result->deadlocks);
		/* the search may have had no room to keep the one that it ended for */
		if (!mpz_sgn(result->deadlocks))
			mpz_set_ui(result->deadlocks, s->early.deadlock);
	}
	if (!s->options->trace)
		return ret;
	for (i = 0; !ret && i < result->properties; i++)
		if (result->verdict[i].violated)
			ret = add_trace(s, i, dead, result);
	if (!ret && dead != KDSM_BDD_FALSE)
		ret = add_trace(s, UINT_MAX, dead, result);
	return ret == -ENOSPC && result->traces > before ? 1 : ret;
}
