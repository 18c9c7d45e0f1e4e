// SPDX-License-Identifier: GPL-2.0
/*
 * BDD operations by pools of tasks: the same results as without a pool, on every number of
 * nodes and workers; and the error of a full table
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd_pools.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS	2
#else
#define ROUNDS	10
#endif

static void same_results(unsigned int nodes, unsigned int workers)
{
	kdsm_bdd plain[RESULTS], pooled[RESULTS];
	struct kdsm_bdd_counts all = { .argsz = sizeof(all) };
	unsigned int round, i, node;
	uint64_t far, tasks = 0;
	struct pools p;

	open_pools(&p, nodes, workers, 16 << 20);
	for (round = 0; round < ROUNDS; round++) {
		node = round % nodes;
		forget(&p);
		operate(p.pooled[node], round, pooled);
		forget(&p);
		operate(p.plain[(node + 1) % nodes], round, plain);
		for (i = 0; i < RESULTS; i++) {
			assert_true(plain[i] != KDSM_BDD_INVALID);
			assert_int_equal(pooled[i], plain[i]);
		}
	}
	assert_int_equal(solutions(p.plain[0], queens(p.pooled[0], QUEENS)), 4);
	for (i = 0; i < nodes; i++) {
		kdsm_bdd_all_counts(p.store[i], &all);
		tasks += all.tasks;
	}
	assert_true(nodes * workers == 1 || moved(&p, &far) > 0);
	assert_true(tasks > 10000);
	close_pools(&p);
}

static void one_node(void **state)
{
	(void)state;
	same_results(1, 1);
	same_results(1, 2);
	same_results(1, 4);
}

static void several_nodes(void **state)
{
	(void)state;
	same_results(2, 1);
	same_results(2, 2);
	same_results(3, 2);
}

/* Whichever worker finds the table full, the caller that waits for the result gets the error. */
static void full(void **state)
{
	unsigned int nodes, i;
	struct pools p;

	(void)state;
	for (nodes = 1; nodes <= 2; nodes++) {
		open_pools(&p, nodes, 2, 48 << 10);
		for (i = 0; i < 2 * nodes; i++) {
			struct kdsm_bdd_worker *w = p.pooled[i % nodes];

			assert_int_equal(queens(w, QUEENS), KDSM_BDD_INVALID);
			assert_int_equal(kdsm_bdd_error(w), -ENOSPC);
			assert_int_equal(kdsm_bdd_error(w), 0);
			/* An operation that needs no new node still succeeds. */
			assert_int_equal(kdsm_bdd_and(w, kdsm_bdd_variable(w, 0),
						      kdsm_bdd_variable(w, 0)),
					 kdsm_bdd_variable(w, 0));
		}
		close_pools(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node),
		cmocka_unit_test(several_nodes),
		cmocka_unit_test(full),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd_tasks", tests, NULL, NULL);
}
