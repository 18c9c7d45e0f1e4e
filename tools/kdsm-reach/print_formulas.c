// SPDX-License-Identifier: GPL-2.0
/* Answers to formulas: as text, in JSON, and in the lines of the Model Checking Contest. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "common/json.h"
#include "print.h"

void print_formulas(const struct kdsm_reach_result *result)
{
	const struct kdsm_reach_formula *f = result->formula;

	for (; f < result->formula + result->formulas; f++) {
		printf("formula        %s: ", f->id);
		if (f->answer == KDSM_REACH_BOUND)
			printf("%" PRIu64 " token%s at most\n", f->bound, f->bound == 1 ? "" : "s");
		else if (f->answer == KDSM_REACH_UNKNOWN)
			printf("unknown: %s\n", f->why);
		else
			printf("%s\n", f->answer == KDSM_REACH_TRUE ? "true" : "false");
	}
}

void print_formula_traces(const struct kdsm_reach_result *result)
{
	const struct kdsm_reach_formula *f = result->formula;

	for (; f < result->formula + result->formulas; f++)
		if (f->trace)
			print_trace(f->trace, "a state that decides ", "");
}

struct json_object *json_formulas(const struct kdsm_reach_result *result)
{
	struct json_object *array = json_object_new_array(), *object, *answer;
	const struct kdsm_reach_formula *f = result->formula;

	for (; f < result->formula + result->formulas; f++) {
		object = json_object_new_object();
		json_text(object, "id", f->id);
		answer = f->answer == KDSM_REACH_UNKNOWN || f->answer == KDSM_REACH_BOUND ? NULL :
			 json_object_new_boolean(f->answer == KDSM_REACH_TRUE);
		if (f->answer == KDSM_REACH_BOUND)
			json_number(object, "bound", f->bound);
		else
			json_object_object_add(object, "holds", answer);
		if (f->why)
			json_text(object, "why", f->why);
		if (f->trace)
			json_object_object_add(object, "steps", json_steps(f->trace));
		json_object_array_add(array, object);
	}
	return array;
}

/* End a line of the contest with the names of the techniques. */
static void print_techniques(const struct kdsm_reach_result *result)
{
	printf(" TECHNIQUES DECISION_DIAGRAMS %s\n",
	       result->workers > 1 ? "PARALLEL_PROCESSING" : "SEQUENTIAL_PROCESSING");
}

static void print_mcc_formula(const struct kdsm_reach_result *result,
			      const struct kdsm_reach_formula *f)
{
	if (f->answer == KDSM_REACH_UNKNOWN) {
		printf("FORMULA %s CANNOT_COMPUTE\n", f->id);
		return;
	}
	if (f->answer == KDSM_REACH_BOUND)
		printf("FORMULA %s %" PRIu64, f->id, f->bound);
	else
		printf("FORMULA %s %s", f->id, f->answer == KDSM_REACH_TRUE ? "TRUE" : "FALSE");
	print_techniques(result);
}

/* The lines of the examination StateSpace; states that are not all of them are no answer. */
static void print_state_space(const struct kdsm_reach_result *result)
{
	gmp_printf("STATE_SPACE STATES %Zd", result->states);
	print_techniques(result);
	if (!result->counted)
		return;
	gmp_printf("STATE_SPACE TRANSITIONS %Zd", result->fired);
	print_techniques(result);
	printf("STATE_SPACE MAX_TOKEN_IN_PLACE %" PRIu64, result->place_tokens);
	print_techniques(result);
	printf("STATE_SPACE MAX_TOKEN_PER_MARKING %" PRIu64, result->marking_tokens);
	print_techniques(result);
}

void print_mcc(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
	       bool failed)
{
	unsigned int i;

	for (i = 0; i < result->formulas; i++)
		print_mcc_formula(result, &result->formula[i]);
	if (options->formulas) {
		if (!result->formulas)
			puts("CANNOT_COMPUTE");
	} else if (!(options->deadlocks && mpz_sgn(result->deadlocks)) &&
		   (!result->complete || (failed && options->deadlocks))) {
		puts("CANNOT_COMPUTE");
	} else if (options->deadlocks) {
		printf("FORMULA ReachabilityDeadlock %s",
		       mpz_sgn(result->deadlocks) ? "TRUE" : "FALSE");
		print_techniques(result);
	} else {
		print_state_space(result);
	}
}
