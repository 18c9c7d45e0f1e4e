// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * And-inverter graphs as models. Each latch is a bit. One relation gives the next values of
 * all latches for some inputs that meet the constraints, in clusters (clusters.c). A graph
 * without latches has one state, of no bits, in which the inputs decide the properties. Reading
 * AIGER files is in aiger.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "circuit.h"
#include "internal.h"
#include "order.h"

#define MAX_LATCHES	32768	/* limits the depth of recursion of operations */
#define MAX_INPUTS	4096	/* the same: each input is a variable of the relation */

struct maker {
	struct kdsm_bdd_worker *worker;
	const struct kd_aiger *aiger;
	struct kd_circuit *circuit;
	kdsm_bdd *edges;		/* by variable of the graph; only of needed ones */
	bool *needed;
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

/* Drop inputs on which nothing depends from an order; count may be a negative errno. */
static int64_t drop_unneeded(const struct maker *m, uint32_t *order, int64_t count)
{
	int64_t kept = count < 0 ? count : 0, i;

	for (i = 0; i < count; i++)
		if (m->needed[order[i]] || m->aiger->variable[order[i]].kind == KD_AIGER_LATCH)
			order[kept++] = order[i];
	return kept;
}

/* Store the graph's variables in the order of the file, and return their number. */
static int64_t read_order(const struct maker *m, const char *path, uint32_t *order,
			  struct kdsm_reach_message *message)
{
	const struct kd_aiger *a = m->aiger;
	struct kd_names names = { .what = "latch or input" };
	int64_t count = -ENOMEM;
	char (*text)[16];
	uint32_t v;
	bool latch;

	names.named = calloc((size_t)a->latches + a->inputs + 1, sizeof(*names.named));
	text = calloc((size_t)a->latches + a->inputs + 1, sizeof(*text));
	for (v = 0; names.named && text && v <= a->last; v++) {
		latch = a->variable[v].kind == KD_AIGER_LATCH;
		if (!latch && a->variable[v].kind != KD_AIGER_INPUT)
			continue;
		snprintf(text[names.count], sizeof(*text), "%c%u", latch ? 'l' : 'i',
			 a->variable[v].number);
		names.named[names.count] = (struct kd_named){
			.name = text[names.count], .index = v, .unneeded = !latch && !m->needed[v],
		};
		names.count++;
	}
	if (names.named && text)
		count = drop_unneeded(m, order, kd_order_read(path, &names, order, message));
	free(names.named);
	free(text);
	return count;
}

/* Select an order of the latches and inputs, and make their variables. */
static int make_variables(const struct maker *m, const struct kd_model_choice *choice,
			  struct kdsm_reach_message *message)
{
	const struct kd_aiger *a = m->aiger;
	struct kd_circuit *c = m->circuit;
	uint32_t *order = malloc(((size_t)a->latches + a->inputs + 1) * sizeof(*order)), i, v;
	int64_t count = -ENOMEM;

	if (order && choice->order_file)
		count = read_order(m, choice->order_file, order, message);
	else if (order)
		count = kd_circuit_order(a, m->needed, choice->order == KDSM_REACH_ORDER_FILE,
					 order);
	for (i = 0; i < count; i++) {
		v = order[i];
		c->number[i] = a->variable[v].number;
		c->is_input[i] = a->variable[v].kind == KD_AIGER_INPUT;
		if (!c->is_input[i])
			c->position[c->number[i]] = i;
		m->edges[v] = kdsm_bdd_variable(m->worker, 2 * i);
		if (m->edges[v] == KDSM_BDD_INVALID)
			count = kdsm_bdd_error(m->worker);
		else
			c->positions++;
	}
	free(order);
	return count < 0 ? count : 0;
}

static int make_functions(const struct maker *m)
{
	const struct kd_aiger *a = m->aiger;
	struct kdsm_bdd_worker *w = m->worker;
	uint32_t i, v;

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

/* The variables of all bits, or with next true also the next variables */
static kdsm_bdd bits(const struct maker *m, bool next)
{
	kdsm_bdd cube = KDSM_BDD_TRUE;
	uint32_t i;

	for (i = m->circuit->positions; i-- && cube != KDSM_BDD_INVALID; ) {
		if (m->circuit->is_input[i])
			continue;
		if (next)
			cube = kdsm_bdd_make(m->worker, 2 * i + 1, cube, KDSM_BDD_FALSE);
		if (cube != KDSM_BDD_INVALID)
			cube = kdsm_bdd_make(m->worker, 2 * i, cube, KDSM_BDD_FALSE);
	}
	return cube;
}

static kdsm_bdd inputs(const struct maker *m)
{
	kdsm_bdd cube = KDSM_BDD_TRUE;
	uint32_t i;

	for (i = m->circuit->positions; i-- && cube != KDSM_BDD_INVALID; )
		if (m->circuit->is_input[i])
			cube = kdsm_bdd_make(m->worker, 2 * i, cube, KDSM_BDD_FALSE);
	return cube;
}

/* Keep the functions of the graph that the search and its traces need. */
static void keep_functions(const struct maker *m)
{
	const struct kd_aiger *a = m->aiger;
	struct kd_circuit *c = m->circuit;
	uint32_t i;

	for (i = 0; i < a->latches; i++)
		c->next[i] = function(m, a->latch[i].next);
	for (i = 0; i < a->constraints; i++)
		c->constraint[i] = function(m, a->constraint[i]);
	for (i = 0; i < a->properties; i++)
		c->bad[i] = function(m, a->property[i].bad);
}

/* Make the clusters. conjuncts has room for all of them. */
static int make_clusters(const struct maker *m, struct kd_conjuncts *conjuncts)
{
	struct kd_circuit *c = m->circuit;
	struct kdsm_bdd_worker *w = m->worker;
	kdsm_bdd next;
	uint32_t i;

	for (i = 0; i < c->constraints; i++)
		conjuncts->relation[conjuncts->count++] = c->constraint[i];
	for (i = 0; i < c->latches; i++) {
		next = kdsm_bdd_variable(w, 2 * c->position[i] + 1);
		next = kdsm_bdd_xor(w, next, kdsm_bdd_not(c->next[i]));
		if (next == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
		conjuncts->relation[conjuncts->count++] = next;
	}
	return kd_clusters_new(w, conjuncts, c->is_input, c->positions, &c->clusters);
}

/* The only relation of the model is that of the only cluster, or is not used. */
static int make_relation(const struct maker *m, struct kd_model *model)
{
	struct kd_conjuncts conjuncts = { 0 };
	struct kd_circuit *c = m->circuit;
	kdsm_bdd set = bits(m, true);
	int ret;

	if (set == KDSM_BDD_INVALID)
		return kdsm_bdd_error(m->worker);
	conjuncts.relation = calloc((size_t)c->latches + c->constraints + 1,
				    sizeof(*conjuncts.relation));
	model->relation = calloc(1, sizeof(*model->relation));
	ret = conjuncts.relation && model->relation ? make_clusters(m, &conjuncts) : -ENOMEM;
	free(conjuncts.relation);
	if (ret)
		return ret;
	ret = kdsm_relation_new(m->worker,
				c->clusters->count > 1 ? KDSM_BDD_TRUE :
				c->clusters->cluster[0].relation, set,
				2 * c->positions, &model->relation[0]);
	model->relations = !ret;
	return ret;
}

static int make_initial(const struct maker *m, struct kd_model *model)
{
	const struct kd_circuit *c = m->circuit;
	kdsm_bdd initial = KDSM_BDD_TRUE;
	enum kd_aiger_reset reset;
	uint32_t i;

	model->variables = malloc(((size_t)c->latches + 1) * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = 0; i < c->positions; i++)
		if (!c->is_input[i])
			model->variables[model->bits++] = 2 * i;
	for (i = c->positions; i-- && initial != KDSM_BDD_INVALID; ) {
		if (c->is_input[i])
			continue;
		reset = m->aiger->latch[c->number[i]].reset;
		if (reset != KD_AIGER_RESET_ANY)
			initial = kd_literal(m->worker, 2 * i, reset == KD_AIGER_RESET_1, initial);
	}
	model->initial = initial;
	return initial == KDSM_BDD_INVALID ? kdsm_bdd_error(m->worker) : 0;
}

/* A state is bad if some inputs meet the constraints and make the literal true. */
static int make_properties(const struct maker *m, struct kd_model *model)
{
	const struct kd_aiger *a = m->aiger;
	kdsm_bdd constraints = KDSM_BDD_TRUE, cube = inputs(m);
	struct kd_property *property;
	char number[16];
	uint32_t i;

	for (i = 0; i < a->constraints && a->properties; i++)
		constraints = kdsm_bdd_and(m->worker, constraints, m->circuit->constraint[i]);
	model->property = calloc((size_t)a->properties + 1, sizeof(*model->property));
	if (!model->property)
		return -ENOMEM;
	for (i = 0; i < a->properties; i++) {
		property = &model->property[i];
		property->bad = kdsm_bdd_and_exists(m->worker, constraints, m->circuit->bad[i],
						    cube);
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

static struct kd_circuit *new_circuit(const struct kd_aiger *a)
{
	size_t leaves = (size_t)a->latches + a->inputs + 1;
	struct kd_circuit *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->latches = a->latches;
	c->inputs = a->inputs;
	c->constraints = a->constraints;
	c->properties = a->properties;
	c->number = calloc(leaves, sizeof(*c->number));
	c->is_input = calloc(leaves, sizeof(*c->is_input));
	c->position = calloc((size_t)a->latches + 1, sizeof(*c->position));
	c->next = calloc((size_t)a->latches + 1, sizeof(*c->next));
	c->constraint = calloc((size_t)a->constraints + 1, sizeof(*c->constraint));
	c->bad = calloc((size_t)a->properties + 1, sizeof(*c->bad));
	if (c->number && c->is_input && c->position && c->next && c->constraint && c->bad)
		return c;
	kd_circuit_free(c);
	return NULL;
}

void kd_circuit_free(struct kd_circuit *circuit)
{
	if (!circuit)
		return;
	free(circuit->number);
	free(circuit->is_input);
	free(circuit->position);
	free(circuit->next);
	free(circuit->constraint);
	free(circuit->bad);
	kd_clusters_free(circuit->clusters);
	free(circuit);
}

static int make_model(struct maker *m, const struct kd_model_choice *choice,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	int ret;

	/* KDSM_BDD_FALSE is 0 */
	m->edges = calloc((size_t)m->aiger->last + 1, sizeof(*m->edges));
	m->needed = calloc((size_t)m->aiger->last + 1, sizeof(*m->needed));
	m->circuit = new_circuit(m->aiger);
	model->circuit = m->circuit;
	if (!m->edges || !m->needed || !m->circuit)
		return -ENOMEM;
	find_needed(m);
	model->order = choice->order_file ? KDSM_REACH_ORDER_GIVEN :
		       choice->order == KDSM_REACH_ORDER_FILE ? KDSM_REACH_ORDER_FILE :
		       KDSM_REACH_ORDER_AUTO;
	ret = make_variables(m, choice, message);
	if (!ret)
		ret = make_initial(m, model);
	if (!ret)
		ret = make_functions(m);
	if (ret)
		return ret;
	keep_functions(m);
	ret = make_relation(m, model);
	return ret ? ret : make_properties(m, model);
}

int kd_model_read_aiger(struct kdsm_bdd_worker *worker, const char *path,
			const struct kd_model_choice *choice,
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
		ret = make_model(&m, choice, model, message);
	}
	free(m.edges);
	free(m.needed);
	kd_aiger_free(aiger);
	return ret;
}
