// SPDX-License-Identifier: GPL-2.0
/*
 * Searches with tables much too small for their garbage. A search gives exact results after
 * many collections, or fails with a message that names the remedy.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "jobs.h"
#include "models.h"

/*
 * Most digits of a number of states. A sanitizer makes searches ten times slower, so omit
 * the large models.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MOST_DIGITS	5
#define FEW_DIGITS	4	/* on several nodes */
#else
#define MOST_DIGITS	10
#define FEW_DIGITS	5
#endif

struct limits {
	uint64_t first, most;		/* first and largest table, in bytes */
	uint64_t cache;
	bool extras;			/* deadlocks and traces */
	bool saturation;
};

/* Search. Returns 0 and *result, or -ENOSPC if all nodes fail because the table is too small. */
static int try(const char *model, unsigned int nodes, unsigned int workers,
	       const struct limits *limits, struct kdsm_reach_result *result)
{
	struct job job[SIM_NODES];
	unsigned int i;
	char path[8192];
	int status;

	snprintf(path, sizeof(path), "%s/%s.pnml", models, model);
	sim_start(nodes);
	sim.tear = true;
	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.bdd.first_table_bytes = limits->first;
		job[i].options.bdd.table_bytes = limits->most;
		job[i].options.bdd.cache_bytes = limits->cache;
		job[i].options.deadlocks = limits->extras;
		job[i].options.trace = limits->extras;
		job[i].options.saturation = limits->saturation;
	}
	start(job, nodes);
	finish(job, nodes);
	status = job[0].status == -ECANCELED ? -ENOSPC : job[0].status;
	for (i = 0; i < nodes; i++) {
		if (status == 0 ? job[i].status == 0 : job[i].status == -ENOSPC ||
		    job[i].status == -ECANCELED) {
			assert_true(!status || strstr(job[i].message.text, "give --table "));
			continue;
		}
		fail_msg("%s, %u nodes, node %u: %d %s", model, nodes, i, job[i].status,
			 job[i].message.text);
	}
	for (i = 1; i < nodes; i++)
		kdsm_reach_result_free(&job[i].result);
	*result = job[0].result;
	sim_stop();
	return status;
}

/* Begin with a table too small for any search, and enlarge it until the search succeeds. */
static void smallest(unsigned int nodes, unsigned int workers, unsigned int digits)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), i, often = 0;
	struct kdsm_reach_result result = { .argsz = sizeof(result) };

	for (i = 0; i < n; i++) {
		struct limits limits = { .most = 1 << 12, .cache = 1 << 16 };
		unsigned int refused = 0;

		if (strlen(expected[i].states) > digits)
			continue;
		while (try(expected[i].model, nodes, workers, &limits, &result)) {
			kdsm_reach_result_free(&result);
			limits.most += nodes == 1 ? limits.most / 2 : limits.most;
			refused++;
			assert_true(limits.most < 1 << 20);
		}
		check_result(&result, &expected[i]);
		printf("# %s, %u nodes: %lu KiB after %u that were too small, %lu collections\n",
		       expected[i].model, nodes, limits.most >> 10, refused,
		       result.collections.count);
		if (strlen(expected[i].states) > 4)
			assert_true(refused > 2);
		often += result.collections.count > 10;
		assert_int_equal(result.collections.count == 0, result.collections.nodes == 0);
		kdsm_reach_result_free(&result);
	}
	assert_true(often >= 1);
}

static void one_node(void **state)
{
	(void)state;
	smallest(1, 1, MOST_DIGITS);
	smallest(1, 3, FEW_DIGITS);
}

static void two_nodes(void **state)
{
	(void)state;
	smallest(2, 2, FEW_DIGITS);
}

static void three_nodes(void **state)
{
	(void)state;
	smallest(3, 1, FEW_DIGITS);
}

/* A table that begins small grows to the size that the search needs, and no further. */
static void grows(void **state)
{
	struct limits limits = { .first = 1 << 12, .most = 64 << 20, .cache = 1 << 20 };
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), nodes, i;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++) {
		for (i = 0; i < n; i++) {
			if (strlen(expected[i].states) > FEW_DIGITS)
				continue;
			assert_int_equal(try(expected[i].model, nodes, 2, &limits, &result), 0);
			check_result(&result, &expected[i]);
			assert_true(result.table_size < 200000);
			/* a model of a few hundred nodes fits into the first table */
			assert_true(result.collections.count > 0 || result.table_used < 1000);
			kdsm_reach_result_free(&result);
		}
	}
}

/* Collections keep the sets that the traces need at the end. */
static void deadlocks(void **state)
{
	struct limits limits = { .cache = 1 << 16, .extras = true };
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++) {
		limits.most = nodes << 15;	/* each node has its share */
		assert_int_equal(try("philosophers-4", nodes, 1, &limits, &result), 0);
		assert_int_equal(mpz_get_ui(result.deadlocks), 2);
		assert_int_equal(result.traces, 1);
		assert_int_equal(result.trace->steps, 4);
		assert_true(result.collections.count > 0);
		kdsm_reach_result_free(&result);
	}
}

/*
 * Saturation on one node keeps results of the operation cache when it collects garbage: it takes
 * hardly more steps than with a large table. Without results these tables take more than twice as
 * many, or are too small.
 */
static void keeps_results(void **state)
{
	static const struct {
		const char *model;
		uint64_t states, table;
	} tables[] = {
		{ "philosophers-10", 59049, 16 << 10 },
		{ "philosophers-20", UINT64_C(3486784401), 40 << 10 },
	};
	struct limits limits = { .cache = 1 << 20, .saturation = true };
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	unsigned int i, workers;
	uint64_t steps;

	(void)state;
	for (i = 0; i < 2; i++) {
		limits.most = 16 << 20;
		assert_int_equal(try(tables[i].model, 1, 1, &limits, &result), 0);
		assert_int_equal(result.collections.count, 0);
		steps = result.tasks;
		kdsm_reach_result_free(&result);
		for (workers = 1; workers <= 3; workers++) {
			/* workers leave blocks of the table partly used */
			limits.most = workers == 1 ? tables[i].table : 2 * tables[i].table;
			assert_int_equal(try(tables[i].model, 1, workers, &limits, &result), 0);
			printf("# %s, %u workers, %lu KiB: %lu collections, %lu steps of %lu\n",
			       tables[i].model, workers, limits.most >> 10,
			       result.collections.count, result.tasks, steps);
			assert_int_equal(mpz_get_ui(result.states), tables[i].states);
			assert_true(workers > 1 || result.collections.count > 0);
			assert_true(workers > 1 || result.tasks < steps * 5 / 4);
			kdsm_reach_result_free(&result);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node),
		cmocka_unit_test(two_nodes),
		cmocka_unit_test(three_nodes),
		cmocka_unit_test(grows),
		cmocka_unit_test(deadlocks),
		cmocka_unit_test(keeps_results),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_small", tests, NULL, NULL);
}
