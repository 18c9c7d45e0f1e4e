// SPDX-License-Identifier: GPL-2.0
/*
 * BDD operations by pools of tasks: the same results as without, on every number of
 * nodes and workers, and what comes of a full table.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <kdsm/task.h>

#include "sim.h"
#include "bdd_int.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS	2
#else
#define ROUNDS	10
#endif

#define QUEENS	6
#define FIELDS	(QUEENS * QUEENS)

struct pools {
	unsigned int nodes;
	struct kdsm_region *region[SIM_NODES];
	struct kdsm_bdd_store *store[SIM_NODES];
	struct kdsm_bdd_worker *plain[SIM_NODES], *pooled[SIM_NODES];
	struct kdsm_tasks *tasks[SIM_NODES];
};

static void open_pools(struct pools *p, unsigned int nodes, unsigned int workers,
		       uint64_t table_bytes)
{
	struct kdsm_bdd_attr attr = { .table_bytes = table_bytes, .cache_bytes = 4 << 20 };
	struct kdsm_tasks_attr pool = { .workers = workers, .node_workers = 8, .deque = 64 };
	uint64_t place = (kdsm_bdd_part_bytes(&attr, nodes) + 63) / 64 * 64;
	struct kdsm_region_attr region = { .size = (place + kdsm_tasks_bytes(&pool)) * nodes };
	unsigned int i;

	p->nodes = nodes;
	sim_start(nodes);
	for (i = 0; i < nodes; i++) {
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "b", &region, &p->region[i]), 0);
		assert_int_equal(kdsm_bdd_open(&p->store[i], p->region[i], 0, &attr), 0);
		assert_int_equal(kdsm_bdd_worker_new(p->store[i], &p->plain[i]), 0);
		assert_int_equal(kdsm_bdd_worker_new(p->store[i], &p->pooled[i]), 0);
		kdsm_bdd_tasks(p->store[i], &pool);
		assert_int_equal(kdsm_tasks_open(p->region[i], place, &pool, &p->tasks[i]), 0);
		kdsm_bdd_use_tasks(p->pooled[i], p->tasks[i]);
	}
}

static void close_pools(struct pools *p)
{
	unsigned int i;

	for (i = 0; i < p->nodes; i++)
		kdsm_tasks_close(p->tasks[i]);
	for (i = 0; i < p->nodes; i++) {
		kdsm_bdd_worker_free(p->plain[i]);
		kdsm_bdd_worker_free(p->pooled[i]);
		kdsm_bdd_close(p->store[i]);
		kdsm_region_close(p->region[i]);
	}
	sim_stop();
}

/* What was computed is computed again. */
static void forget(struct pools *p)
{
	unsigned int i;

	for (i = 0; i < p->nodes; i++)
		memset(p->store[i]->cache.entries, 0,
		       p->store[i]->cache.count * sizeof(struct kd_result));
}

static bool attacks(unsigned int a, unsigned int b)
{
	int rows = (int)(a / QUEENS) - (int)(b / QUEENS);
	int columns = (int)(a % QUEENS) - (int)(b % QUEENS);

	return a != b && (!rows || !columns || rows == columns || rows == -columns);
}

/* Where so many queens of the board do not attack each other. */
static kdsm_bdd queens(struct kdsm_bdd_worker *w, unsigned int rows)
{
	kdsm_bdd all = KDSM_BDD_TRUE, row, safe, other;
	unsigned int i, k, r;

	for (r = 0; r < rows; r++) {
		row = KDSM_BDD_FALSE;
		for (i = r * QUEENS; i < (r + 1) * QUEENS; i++) {
			safe = kdsm_bdd_variable(w, i);
			for (k = 0; k < rows * QUEENS; k++) {
				if (attacks(i, k)) {
					other = kdsm_bdd_variable(w, k);
					safe = kdsm_bdd_and(w, safe, kdsm_bdd_not(other));
				}
			}
			row = kdsm_bdd_or(w, row, safe);
		}
		all = kdsm_bdd_and(w, all, row);
	}
	return all;
}

static unsigned int solutions(struct kdsm_bdd_worker *w, kdsm_bdd a)
{
	uint32_t variables[FIELDS];
	unsigned int i, count;
	mpz_t result;

	for (i = 0; i < FIELDS; i++)
		variables[i] = i;
	mpz_init(result);
	assert_int_equal(kdsm_bdd_count_states(w, a, variables, FIELDS, result), 0);
	count = mpz_get_ui(result);
	mpz_clear(result);
	return count;
}

/* Every operation, of large operands that are different in every round. */
static void operate(struct kdsm_bdd_worker *w, unsigned int round, kdsm_bdd *result)
{
	kdsm_bdd half = queens(w, QUEENS / 2), most = queens(w, QUEENS - 1 - round % 2), cube;
	uint32_t some[FIELDS / 3];
	unsigned int i;

	for (i = 0; i < FIELDS / 3; i++)
		some[i] = 3 * i + round % 3;
	cube = kdsm_bdd_cube(w, some, FIELDS / 3);
	*result++ = half;
	*result++ = most;
	*result++ = kdsm_bdd_xor(w, half, most);
	*result++ = kdsm_bdd_ite(w, kdsm_bdd_variable(w, FIELDS - 1 - round), half, most);
	*result++ = kdsm_bdd_exists(w, most, cube);
	*result++ = kdsm_bdd_forall(w, kdsm_bdd_not(most), cube);
	*result++ = kdsm_bdd_and_exists(w, kdsm_bdd_not(half), most, cube);
	*result++ = kdsm_bdd_compose(w, most, round, kdsm_bdd_not(half));
	*result++ = kdsm_bdd_restrict(w, half, kdsm_bdd_not(most));
}

#define RESULTS	9

static void same_results(unsigned int nodes, unsigned int workers)
{
	kdsm_bdd plain[RESULTS], pooled[RESULTS];
	struct kdsm_tasks_counts counts;
	struct kdsm_bdd_counts all;
	unsigned int round, i, node;
	uint64_t moved = 0, tasks = 0;
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
		kdsm_tasks_counts(p.tasks[i], &counts);
		moved += counts.stolen + counts.received;
		kdsm_bdd_all_counts(p.store[i], &all);
		tasks += all.tasks;
	}
	assert_true(nodes * workers == 1 || moved > 0);
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

/* Whoever of all workers finds it full, the one who waits for the result is told. */
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
			/* What needs no new node succeeds as before. */
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
