// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of BDD operations in tasks of a user (bdd_inside.c): which block gets which error,
 * and which calls are refused
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd_pools.h"

#define FIRST_ACTION	1000000
#define DEPTH		5

/* All nodes share this process. */
static struct pools pools;

/* ---- errors ---- */

struct found {
	kdsm_bdd function;
	int error;
};

/* Fills the table, so that its operations fail with -ENOSPC. */
KDSM_TASK(struct found, too_much, unsigned int, from, unsigned int, to)
{
	KDSM_BDD_WORKER(w);
	unsigned int middle = from + (to - from) / 2;
	struct found one, other;

	if (to - from == 1) {
		one.function = queens(w, QUEENS);
	} else {
		KDSM_SPAWN(too_much, middle, to);
		one = KDSM_CALL(too_much, from, middle);
		other = KDSM_SYNC(too_much);
		if (one.error || other.error)
			return one.error ? one : other;
		one.function = kdsm_bdd_and(w, one.function, other.function);
	}
	one.error = kdsm_bdd_error(w);
	return one;
}

/*
 * Needs no new nodes, so its operations succeed, even though other tasks on the same
 * workers fill the table.
 */
KDSM_TASK(int, enough, unsigned int, depth)
{
	KDSM_BDD_WORKER(w);
	kdsm_bdd a, b;
	int error;

	if (!depth)
		return KDSM_CALL(too_much, 0, 2).error == -ENOSPC ? 0 : -ENOMSG;
	KDSM_SPAWN(enough, depth - 1);
	KDSM_SPAWN(too_much, 0, 2);
	a = kdsm_bdd_and(w, kdsm_bdd_variable(w, 0), kdsm_bdd_variable(w, 0));
	error = KDSM_SYNC(too_much).error == -ENOSPC ? 0 : -ENOMSG;
	b = kdsm_bdd_or(w, kdsm_bdd_variable(w, 0), kdsm_bdd_variable(w, 0));
	error = KDSM_SYNC(enough) ?: error;
	if (a != b || a == KDSM_BDD_INVALID)
		error = -EBADMSG;
	return error ?: kdsm_bdd_error(w);
}

/* An error belongs to its block until the block asks for the error or ends. */
KDSM_TASK(int, errors, unsigned int, depth)
{
	KDSM_BDD_WORKER(w);
	int error = 0;

	if (kdsm_bdd_error(w))
		return -EBADMSG;
	kdsm_bdd_variable(w, KDSM_BDD_MAX_VARIABLE + 1);
	if (depth) {
		KDSM_SPAWN(errors, depth - 1);
		error = KDSM_CALL(errors, depth - 1);
		error = KDSM_SYNC(errors) ?: error;
		kdsm_bdd_and(w, kdsm_bdd_variable(w, 1), 1 << 30);
		if (kdsm_bdd_error(w) != -EINVAL || kdsm_bdd_error(w))
			error = -EBADMSG;
	}
	return error;
}

static void errors_of_blocks(void **state)
{
	unsigned int nodes;
	int error;

	(void)state;
	for (nodes = 0; nodes <= 2; nodes++) {
		open_pools(&pools, nodes, 2, 16 << 20);
		assert_int_equal(KDSM_RUN(pools.tasks[0], &error, errors, DEPTH), 0);
		assert_int_equal(error, 0);
		close_pools(&pools);
	}
}

static void full(void **state)
{
	unsigned int nodes, i;
	struct found found;
	int error;

	(void)state;
	for (nodes = 0; nodes <= 2; nodes++) {
		open_pools(&pools, nodes, 2, 48 << 10);
		for (i = 0; i < 4; i++) {
			struct kdsm_tasks *tasks = pools.tasks[i % pools.nodes];

			assert_int_equal(KDSM_RUN(tasks, &found, too_much, 0, 8), 0);
			assert_int_equal(found.function, KDSM_BDD_INVALID);
			assert_int_equal(found.error, -ENOSPC);
			assert_int_equal(KDSM_RUN(tasks, &error, enough, 4), 0);
			assert_int_equal(error, 0);
		}
		close_pools(&pools);
	}
}

/* ---- refused calls ---- */

#define REFUSED(worker, operation) \
	((operation) == KDSM_BDD_INVALID && kdsm_bdd_error(worker) == -EDEADLK)

static struct kdsm_relation *relation;

static bool refused(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b)
{
	return REFUSED(w, kdsm_bdd_and(w, a, b)) && REFUSED(w, kdsm_bdd_ite(w, a, b, a)) &&
	       REFUSED(w, kdsm_bdd_exists(w, a, b)) && REFUSED(w, kdsm_bdd_compose(w, a, 0, b)) &&
	       REFUSED(w, kdsm_bdd_restrict(w, a, b)) &&
	       REFUSED(w, kdsm_bdd_and_exists(w, a, b, b)) &&
	       REFUSED(w, kdsm_bdd_successors(w, a, relation));
}

static struct kdsm_bdd_worker *kept;
static const int ok = 77;

/* Returns ok, or the number of the check that failed. */
KDSM_TASK(int, outside_of_block, kdsm_bdd, a, kdsm_bdd, b)
{
	struct kdsm_bdd_worker *own = KDSM_CONTEXT();

	/*
	 * Outside of a block, operations that run tasks are refused. kdsm_bdd_variable()
	 * runs none.
	 */
	if (!refused(own, a, b))
		return 1;
	{
		KDSM_BDD_WORKER(w);

		if (kdsm_bdd_and(w, a, b) == KDSM_BDD_INVALID || w != own)
			return 2;
		kept = w;
	}
	if (!refused(kept, a, b) || kdsm_bdd_variable(kept, 0) == KDSM_BDD_INVALID)
		return 3;
	/* The worker of a thread outside of the pool, for which the pool runs tasks */
	own = pools.pooled[0];
	if (!refused(own, a, b))
		return 4;
	return ok;
}

KDSM_TASK(int, not_in_tasks, kdsm_bdd, a, kdsm_bdd, b)
{
	KDSM_BDD_WORKER(w);
	struct kdsm_relation *other;

	kdsm_bdd_private(w, 1);
	if (kdsm_bdd_error(w) != -EDEADLK || w->private)
		return 1;
	kdsm_bdd_use_tasks(w, pools.tasks[0]);
	if (kdsm_bdd_error(w) != -EDEADLK)
		return 2;
	if (kdsm_relation_new(w, a, b, FIRST_ACTION, &other) != -EDEADLK)
		return 3;
	if (kdsm_bdd_collect(w->store, 1, 1000000000, NULL) != -EDEADLK)
		return 4;
	if (kdsm_bdd_and(w, a, b) == KDSM_BDD_INVALID || kdsm_bdd_error(w))
		return 5;
	return ok;
}

KDSM_TASK(int, of_another_pool, kdsm_bdd, a, kdsm_bdd, b)
{
	KDSM_BDD_WORKER(w);

	if (w)
		return 1;
	/* A thread's own worker, which uses no pool, is not refused. */
	if (kdsm_bdd_and(pools.plain[0], a, b) == KDSM_BDD_INVALID)
		return 2;
	return ok;
}

/* The relation makes bit 0 true. */
static void make_relation(struct kdsm_bdd_worker *w)
{
	static const uint32_t set[] = { 0, 1 };

	kdsm_bdd_private(w, 1);
	assert_int_equal(kdsm_relation_new(w, kdsm_bdd_variable(w, 1), kdsm_bdd_cube(w, set, 2),
					   FIRST_ACTION, &relation), 0);
	kdsm_bdd_private(w, 0);
}

static void refusals(void **state)
{
	struct kdsm_tasks_attr none = {
		.argsz = sizeof(none),
		.workers = 1,
		.node_workers = 1,
		.deque = 64,
	};
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = kdsm_tasks_bytes(&none) };
	struct kdsm_region *region;
	struct kdsm_tasks *tasks;
	kdsm_bdd a, b;
	int result;

	(void)state;
	open_pools(&pools, 0, 1, 16 << 20);
	make_relation(pools.plain[0]);
	a = queens(pools.plain[0], 1);
	b = kdsm_bdd_variable(pools.plain[0], QUEENS / 2);
	assert_int_equal(KDSM_RUN(pools.tasks[0], &result, outside_of_block, a, b), 0);
	assert_int_equal(result, ok);
	assert_true(refused(kept, a, b));
	assert_int_equal(KDSM_RUN(pools.tasks[0], &result, not_in_tasks, a, b), 0);
	assert_int_equal(result, ok);
	assert_int_equal(kdsm_region_open(pools.local, "other", &attr, &region), 0);
	assert_int_equal(kdsm_tasks_open(region, 0, &none, &tasks), 0);
	assert_int_equal(KDSM_RUN(tasks, &result, of_another_pool, a, b), 0);
	assert_int_equal(result, ok);
	kdsm_tasks_close(tasks);
	kdsm_region_close(region);
	/* The refused calls have changed nothing. */
	assert_int_equal(solutions(pools.plain[0], queens(pools.pooled[0], QUEENS)), 4);
	assert_int_equal(kdsm_bdd_collect(pools.store[0], 1, 1000000000, NULL), 0);
	kdsm_relation_free(relation);
	close_pools(&pools);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_of_blocks),
		cmocka_unit_test(full),
		cmocka_unit_test(refusals),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd_inside_errors", tests, NULL, NULL);
}
