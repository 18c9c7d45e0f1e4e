// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * And-inverter graphs as models. Each latch is a bit. One relation gives the next values of
 * all latches for some inputs that meet the constraints. An input is quantified as soon as
 * no remaining latch depends on it. A graph without latches has one state, of no bits, in which
 * the inputs decide the properties. Reading AIGER files is in aiger.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define FIRST_ACTION	1000000	/* input i is variable FIRST_ACTION + i */
#define MAX_LATCHES	32768	/* limits the depth of recursion of operations */
#define MAX_INPUTS	4096	/* the same: each input is a variable of the relation */
#define NEVER		UINT32_MAX	/* neither a latch nor a constraint depends on the input */

struct maker {
	struct kdsm_bdd_worker *worker;
	const struct kd_aiger *aiger;
	kdsm_bdd *edges;		/* by variable of the graph; only of needed ones */
	bool *needed;
	uint32_t *last_use;		/* by input: the last latch that depends on it, or NEVER */
};

static kdsm_bdd function(const struct maker *m, uint32_t literal)
{
	kdsm_bdd edge = m->edges[literal / 2];

	return literal % 2 ? kdsm_bdd_not(edge) : edge;
}

static void need(const struct maker *m, uint32_t literal)
{
	m->needed[literal / 2] = true;
}

/* Find the gates on which a latch, property or constraint depends; leave out all others. */
static void find_needed(const struct maker *m)
{
	const struct kd_aiger *a = m->aiger;
	uint32_t i, v;

	for (i = 0; i < a->latches; i++)
		need(m, a->latch[i].next);
	for (i = 0; i < a->properties; i++)
		need(m, a->property[i].bad);
	for (i = 0; i < a->constraints; i++)
		need(m, a->constraint[i]);
	for (i = a->gates; i--; ) {
		v = a->order[i];
		if (m->needed[v]) {
			need(m, a->variable[v].operand[0]);
			need(m, a->variable[v].operand[1]);
		}
	}
}

static int make_functions(const struct maker *m)
{
	const struct kd_aiger *a = m->aiger;
	struct kdsm_bdd_worker *w = m->worker;
	uint32_t i, v;

	find_needed(m);
	for (v = 0; v <= a->last; v++) {
		if (a->variable[v].kind == KD_AIGER_LATCH)
			m->edges[v] = kdsm_bdd_variable(w, 2 * a->variable[v].number);
		else if (a->variable[v].kind == KD_AIGER_INPUT && m->needed[v])
			m->edges[v] = kdsm_bdd_variable(w, FIRST_ACTION + a->variable[v].number);
		else
			m->edges[v] = KDSM_BDD_FALSE;
		if (m->edges[v] == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
	}
	for (i = 0; i < a->gates; i++) {
		v = a->order[i];
		if (!m->needed[v])
			continue;
		m->edges[v] = kdsm_bdd_and(w, function(m, a->variable[v].operand[0]),
					   function(m, a->variable[v].operand[1]));
		if (m->edges[v] == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
	}
	return 0;
}

/* Record latch as the last use of each input on which the function depends. */
static int note_inputs(const struct maker *m, kdsm_bdd function, uint32_t latch)
{
	kdsm_bdd cube = kdsm_bdd_support(m->worker, function), low;
	uint32_t variable;
	int ret;

	while (cube != KDSM_BDD_TRUE) {
		if (cube == KDSM_BDD_INVALID)
			return kdsm_bdd_error(m->worker);
		ret = kdsm_bdd_look(m->worker, cube, &variable, &cube, &low);
		if (ret)
			return ret;
		if (variable >= FIRST_ACTION)
			m->last_use[variable - FIRST_ACTION] = latch;
	}
	return 0;
}

/* Quantify the inputs whose last use is this latch. */
static kdsm_bdd without_inputs(const struct maker *m, kdsm_bdd relation, uint32_t latch)
{
	kdsm_bdd cube = KDSM_BDD_TRUE;
	uint32_t i;

	for (i = m->aiger->inputs; i--; )
		if (m->last_use[i] == latch)
			cube = kdsm_bdd_make(m->worker, FIRST_ACTION + i, cube, KDSM_BDD_FALSE);
	return cube == KDSM_BDD_TRUE ? relation : kdsm_bdd_exists(m->worker, relation, cube);
}

static kdsm_bdd all_constraints(const struct maker *m)
{
	kdsm_bdd all = KDSM_BDD_TRUE;
	uint32_t i;

	for (i = 0; i < m->aiger->constraints; i++)
		all = kdsm_bdd_and(m->worker, all, function(m, m->aiger->constraint[i]));
	return all;
}

static int make_relation(const struct maker *m, kdsm_bdd constraints, struct kd_model *model)
{
	const struct kd_aiger *a = m->aiger;
	struct kdsm_bdd_worker *w = m->worker;
	kdsm_bdd relation = constraints, set = KDSM_BDD_TRUE, next;
	uint32_t i;
	int ret;

	for (i = 0; i < a->inputs; i++)
		m->last_use[i] = NEVER;
	ret = note_inputs(m, constraints, 0);
	for (i = 0; !ret && i < a->latches; i++)
		ret = note_inputs(m, function(m, a->latch[i].next), i);
	if (ret)
		return ret;
	for (i = 0; i < a->latches; i++) {
		next = kdsm_bdd_xor(w, kdsm_bdd_variable(w, 2 * i + 1),
				    kdsm_bdd_not(function(m, a->latch[i].next)));
		relation = without_inputs(m, kdsm_bdd_and(w, relation, next), i);
		if (relation == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
	}
	if (!a->latches)
		relation = without_inputs(m, relation, 0);
	for (i = 2 * a->latches; i--; )
		set = kdsm_bdd_make(w, i, set, KDSM_BDD_FALSE);
	if (set == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	model->relation = calloc(1, sizeof(*model->relation));
	if (!model->relation)
		return -ENOMEM;
	ret = kdsm_relation_new(w, relation, set, FIRST_ACTION, &model->relation[0]);
	model->relations = !ret;
	return ret;
}

static int make_initial(const struct maker *m, struct kd_model *model)
{
	const struct kd_aiger *a = m->aiger;
	kdsm_bdd initial = KDSM_BDD_TRUE;
	uint32_t i;

	model->bits = a->latches;
	model->variables = malloc(((size_t)a->latches + 1) * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = a->latches; i--; ) {
		model->variables[i] = 2 * i;
		if (a->latch[i].reset != KD_AIGER_RESET_ANY)
			initial = kd_literal(m->worker, 2 * i,
					     a->latch[i].reset == KD_AIGER_RESET_1, initial);
	}
	model->initial = initial;
	return initial == KDSM_BDD_INVALID ? kdsm_bdd_error(m->worker) : 0;
}

/* A state is bad if some inputs meet the constraints and make the literal true. */
static int make_properties(const struct maker *m, kdsm_bdd constraints, struct kd_model *model)
{
	const struct kd_aiger *a = m->aiger;
	struct kd_property *property;
	kdsm_bdd inputs = KDSM_BDD_TRUE;
	char number[16];
	uint32_t i;

	for (i = a->inputs; i--; )
		inputs = kdsm_bdd_make(m->worker, FIRST_ACTION + i, inputs, KDSM_BDD_FALSE);
	model->property = calloc((size_t)a->properties + 1, sizeof(*model->property));
	if (!model->property)
		return -ENOMEM;
	for (i = 0; i < a->properties; i++) {
		property = &model->property[i];
		property->bad = kdsm_bdd_and(m->worker, constraints,
					     function(m, a->property[i].bad));
		property->bad = kdsm_bdd_exists(m->worker, property->bad, inputs);
		if (property->bad == KDSM_BDD_INVALID)
			return kdsm_bdd_error(m->worker);
		snprintf(number, sizeof(number), "%c%u", a->kind, i);
		property->name = strdup(a->property[i].name ? a->property[i].name : number);
		model->properties++;
		if (!property->name)
			return -ENOMEM;
	}
	return 0;
}

static int make_model(struct maker *m, struct kd_model *model)
{
	kdsm_bdd constraints;
	int ret;

	m->edges = malloc(((size_t)m->aiger->last + 1) * sizeof(*m->edges));
	m->needed = calloc((size_t)m->aiger->last + 1, sizeof(*m->needed));
	m->last_use = malloc(((size_t)m->aiger->inputs + 1) * sizeof(*m->last_use));
	if (!m->edges || !m->needed || !m->last_use)
		return -ENOMEM;
	ret = make_initial(m, model);
	if (!ret)
		ret = make_functions(m);
	if (ret)
		return ret;
	constraints = all_constraints(m);
	if (constraints == KDSM_BDD_INVALID)
		return kdsm_bdd_error(m->worker);
	ret = make_relation(m, constraints, model);
	return ret ? ret : make_properties(m, constraints, model);
}

int kd_model_read_aiger(struct kdsm_bdd_worker *worker, const char *path,
			const unsigned char *file, size_t size,
			struct kd_model *model, struct kdsm_reach_message *message)
{
	struct maker m = { .worker = worker };
	struct kd_aiger *aiger = NULL;
	int ret = kd_aiger_read(path, file, size, &aiger, message);

	m.aiger = aiger;
	if (ret) {
		/* the reader has set the message */
	} else if (aiger->latches > MAX_LATCHES || aiger->inputs > MAX_INPUTS) {
		kd_say(message, "%s: has %u latches and %u inputs; at most %u and %u can be searched",
		       path, aiger->latches, aiger->inputs, MAX_LATCHES, MAX_INPUTS);
		ret = -EFBIG;
	} else {
		ret = make_model(&m, model);
	}
	free(m.edges);
	free(m.needed);
	free(m.last_use);
	kd_aiger_free(aiger);
	return ret;
}
