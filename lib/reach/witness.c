// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Inputs of circuits on a trace, and witnesses in the format of AIGER 1.9, which other tools
 * check: for each violated property the lines "1" and "bN", the values of the latches in the
 * initial state, the values of the inputs in every state, and ".".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "circuit.h"
#include "internal.h"

/* The set with only this state */
static kdsm_bdd only(struct kdsm_bdd_worker *w, const struct kd_circuit *c, const char *state)
{
	kdsm_bdd one = KDSM_BDD_TRUE;
	uint32_t i;

	for (i = c->positions; i-- && one != KDSM_BDD_INVALID; )
		if (!c->is_input[i])
			one = kd_literal(w, 2 * i, state[c->number[i]] == '1', one);
	return one;
}

/* Store the inputs of one element of a set; inputs on which it does not depend are 0. */
static int choose(struct kdsm_bdd_worker *w, const struct kd_circuit *c, kdsm_bdd set,
		  char *inputs)
{
	kdsm_bdd high, low;
	uint32_t variable;
	int r;

	memset(inputs, '0', c->inputs);
	inputs[c->inputs] = 0;
	while (set != KDSM_BDD_TRUE) {
		if (set == KDSM_BDD_FALSE)
			return -EIO;
		if (set == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
		r = kdsm_bdd_look(w, set, &variable, &high, &low);
		if (r < 0)
			return r;
		if (c->is_input[variable / 2] && low == KDSM_BDD_FALSE)
			inputs[c->number[variable / 2]] = '1';
		set = low == KDSM_BDD_FALSE ? high : low;
	}
	return 0;
}

int kd_circuit_inputs(struct kdsm_bdd_worker *w, const struct kd_circuit *c, const char *state,
		      const char *next, uint32_t property, char *inputs)
{
	kdsm_bdd set;
	uint32_t i;
	int r;

	kdsm_bdd_private(w, 1);
	set = only(w, c, state);
	for (i = 0; i < c->constraints; i++)
		set = kdsm_bdd_and(w, set, c->constraint[i]);
	for (i = 0; next && i < c->latches; i++)
		set = kdsm_bdd_and(w, set, next[i] == '1' ? c->next[i] :
				   kdsm_bdd_not(c->next[i]));
	if (!next)
		set = kdsm_bdd_and(w, set, c->bad[property]);
	r = choose(w, c, set, inputs);
	kdsm_bdd_private(w, 0);
	return r;
}

int kd_witness_check(const struct kd_search *s)
{
	if (!s->options->witness || s->model.circuit)
		return 0;
	kd_say(s->message, "--witness: %s is no circuit; only circuits have witnesses",
	       s->options->path);
	return -EINVAL;
}

static void write_trace(FILE *file, const struct kdsm_reach_trace *trace)
{
	uint64_t k;

	fprintf(file, "1\nb%u\n%s\n", trace->property, trace->step[0].state);
	for (k = 0; k <= trace->steps; k++)
		fprintf(file, "%s\n", trace->step[k].inputs);
	fprintf(file, ".\n");
}

void kd_witness_write(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kd_output output;
	unsigned int i;
	int r;

	if (!s->options->witness)
		return;
	r = kd_output_open(&output, s->options->witness);
	if (r == 0) {
		for (i = 0; i < result->traces; i++)
			if (result->trace[i].property < s->model.circuit->properties)
				write_trace(output.file, &result->trace[i]);
		r = kd_output_close(&output, ferror(output.file) ? -EIO : 0);
	}
	if (r < 0)
		kd_search_warn(s, "%s: cannot be written: %s", s->options->witness, strerror(-r));
	result->unsaved |= r < 0;
}
