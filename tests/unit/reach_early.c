// SPDX-License-Identifier: GPL-2.0
/*
 * Searches that end at the first violation (options.stop_at_violation), on one and three nodes
 * and by all strategies: all nodes know the end, the violation is in the result, and without one
 * the result is exact.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <unistd.h>

#include "counter.h"
#include "explicit.h"
#include "jobs.h"
#include "reach/internal.h"

#define MOST_NODES	3

static char net[64];		/* a counter of 30 bits */
static char formula[64];
static char philosophers[8192];

/* f1: some state has bit 8; f2: no state has bit 8 */
static void write_formulas(FILE *file, const char *one, const char *two)
{
	const char *bit = "<integer-le><integer-constant>1</integer-constant>"
			  "<tokens-count><place>o8</place></tokens-count></integer-le>";

	fprintf(file, "<property-set>\n");
	if (one)
		fprintf(file, "<property><id>%s</id><formula><exists-path><finally>%s</finally></exists-path></formula></property>\n",
			one, bit);
	if (two)
		fprintf(file, "<property><id>%s</id><formula><all-paths><globally><negation>%s</negation></globally></all-paths></formula></property>\n",
			two, bit);
	fprintf(file, "</property-set>\n");
}

static int make_files(void **state)
{
	FILE *file;

	(void)state;
	snprintf(net, sizeof(net), "/tmp/kdsm-early.%d.pnml", getpid());
	snprintf(formula, sizeof(formula), "/tmp/kdsm-early.%d.xml", getpid());
	snprintf(philosophers, sizeof(philosophers), "%s/philosophers-10.pnml", models);
	file = fopen(net, "w");
	if (!file)
		return -1;
	write_counter(file, 30);
	return fclose(file);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(net);
	unlink(formula);
	return 0;
}

/* Search on some nodes by some strategy, and check that all nodes agree on the end. */
static void search(struct job *job, unsigned int nodes, unsigned int strategy,
		   const struct kdsm_reach_options *options)
{
	unsigned int i;

	sim_start(nodes);
	prepare(job, nodes, 2, options->path);
	for (i = 0; i < nodes; i++) {
		job[i].options.bound = options->bound;
		job[i].options.bounds = options->bounds;
		job[i].options.formula = options->formula;
		job[i].options.formulas = options->formulas;
		job[i].options.deadlocks = options->deadlocks;
		job[i].options.trace = options->trace && !strategy;
		job[i].options.chaining = strategy == 1;
		job[i].options.saturation = strategy == 2;
		job[i].options.stop_at_violation = true;
	}
	run_well(job, nodes);
	sim_stop();
	for (i = 1; i < nodes; i++)
		assert_int_equal(job[i].result.ended_early, job[0].result.ended_early);
}

/*
 * Search in all ways. A full search has 2^30 states and does not end here. Breadth first and with
 * one relation after the other a state is found in each level: the number of states is known.
 */
static void search_in_all_ways(const struct kdsm_reach_options *options, unsigned long states,
			       void (*check)(const struct kdsm_reach_result *result))
{
	unsigned int nodes, strategy;
	struct job job[MOST_NODES];

	for (nodes = 1; nodes <= MOST_NODES; nodes += 2) {
		for (strategy = 0; strategy < 3; strategy++) {
			search(job, nodes, strategy, options);
			assert_true(job[0].result.ended_early);
			assert_false(job[0].result.complete);
			assert_false(job[0].result.stopped);
			assert_true(mpz_cmp_ui(job[0].result.states, states) >= 0);
			if (!strategy && states)
				assert_int_equal(mpz_cmp_ui(job[0].result.states, states), 0);
			check(&job[0].result);
			drop(job, nodes);
		}
	}
}

static void second_is_violated(const struct kdsm_reach_result *result)
{
	assert_int_equal(result->properties, 2);
	assert_false(result->verdict[0].violated);
	assert_true(result->verdict[1].violated);
	if (result->traces) {
		assert_int_equal(result->traces, 1);
		assert_int_equal(result->trace[0].steps, 256);
	}
}

static void bound(void **state)
{
	const char *const bounds[] = { "o29=0", "o8=0" };
	const struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = net, .bound = bounds, .bounds = 2, .trace = true,
	};

	(void)state;
	search_in_all_ways(&options, 257, second_is_violated);
}

#ifndef __SANITIZE_THREAD__
static void first_is_true(const struct kdsm_reach_result *result)
{
	assert_int_equal(result->formula[0].answer, KDSM_REACH_TRUE);
}
#endif

static void last_is_false(const struct kdsm_reach_result *result)
{
	assert_int_equal(result->formula[result->formulas - 1].answer, KDSM_REACH_FALSE);
}

static void with_formulas(const char *one, const char *two,
			  void (*check)(const struct kdsm_reach_result *result))
{
	const char *const formulas[] = { formula };
	const struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = net, .formula = formulas, .formulas = 1,
	};
	FILE *file = fopen(formula, "w");

	assert_non_null(file);
	write_formulas(file, one, two);
	fclose(file);
	search_in_all_ways(&options, 0, check);
}

static void formulas(void **state)
{
	(void)state;
	/* Threads do the same with two formulas as with each of them. */
#ifndef __SANITIZE_THREAD__
	with_formulas("f1", NULL, first_is_true);
	with_formulas(NULL, "f2", last_is_false);
#endif
	with_formulas("f1", "f2", last_is_false);
}

static void has_deadlock(const struct kdsm_reach_result *result)
{
	assert_true(mpz_sgn(result->deadlocks));
}

/* The deadlocks of ten philosophers are ten steps away, in the last but one level. */
static void deadlock(void **state)
{
	const uint64_t normal = kd_first_slice;
	const struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = philosophers,
		.deadlocks = true,
	};
	struct job job[MOST_NODES];
	unsigned int nodes;

	(void)state;
	kd_first_slice = 100;
	for (nodes = 1; nodes <= MOST_NODES; nodes += 2) {
		search(job, nodes, 0, &options);
		assert_true(job[0].result.ended_early);
		assert_int_equal(job[0].result.levels, 10);
		has_deadlock(&job[0].result);
		drop(job, nodes);
		search(job, nodes, 2, &options);
		has_deadlock(&job[0].result);
		drop(job, nodes);
	}
	kd_first_slice = normal;
}

/* A search that meets no violation has the exact result, however short its slices are. */
static void no_violation(void **state)
{
	const uint64_t normal = kd_first_slice;
	const char *const bounds[] = { "Fork_1=1" };
	const struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = philosophers, .bound = bounds, .bounds = 1,
	};
	struct job job[MOST_NODES];
	unsigned int nodes, strategy;

	(void)state;
	kd_first_slice = 50;
	for (nodes = 1; nodes <= MOST_NODES; nodes += 2) {
		for (strategy = 0; strategy < 3; strategy++) {
			search(job, nodes, strategy, &options);
			assert_false(job[0].result.ended_early);
			assert_true(job[0].result.complete);
			assert_false(job[0].result.verdict[0].violated);
			assert_int_equal(mpz_cmp_ui(job[0].result.states, 59049), 0);
			drop(job, nodes);
		}
	}
	kd_first_slice = normal;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bound),
		cmocka_unit_test(formulas),
		cmocka_unit_test(deadlock),
		cmocka_unit_test(no_violation),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_early", tests, make_files, remove_files);
}
