/* SPDX-License-Identifier: GPL-2.0 */
/* Output of kdsm-reach. */
#ifndef PRINT_H
#define PRINT_H

#include <json-c/json.h>
#include <stdio.h>
#include <kdsm/reach.h>

#include "search.h"

/*
 * The result as text, in two parts: print_known() prints the model, the states and the verdicts,
 * and print_text() the rest. print_json() prints all; error is why the search failed, or NULL.
 * times are those of a virtual run, or NULL.
 */
void print_known(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		 bool failed);
void print_text(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		const struct search_times *times, bool failed);
void print_json(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
		const struct search_times *times, const char *error);

/* main.c: the words for the orders, by enum kdsm_reach_order, without KDSM_REACH_ORDER_GIVEN */
extern const char *const order_words[];
/* The word for an order of a result */
const char *order_word(enum kdsm_reach_order order);

/* print_formulas.c: answers to formulas, and the lines of the Model Checking Contest */
void print_formulas(const struct kdsm_reach_result *result);
void print_formula_traces(const struct kdsm_reach_result *result);
struct json_object *json_formulas(const struct kdsm_reach_result *result);
void print_mcc(const struct kdsm_reach_options *options, const struct kdsm_reach_result *result,
	       bool failed);

/* A path to what it leads to, with words before and after that; the steps of a path */
void print_trace(const struct kdsm_reach_trace *trace, const char *before, const char *after);
struct json_object *json_steps(const struct kdsm_reach_trace *trace);

/*
 * Add a number as a string, because many readers of JSON convert numbers to doubles. Write an
 * object in a line, and free it.
 */
void json_mpz(struct json_object *object, const char *key, const mpz_t value);
void json_line(struct json_object *object, FILE *file);

/* Counters of this node's workers, on stderr, for developers of kdsm. */
void print_counts(const struct kdsm_reach_result *result);

#endif /* PRINT_H */
