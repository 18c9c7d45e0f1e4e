/* SPDX-License-Identifier: GPL-2.0 */
/* Common setup of the tests of BDDs with pools of tasks: stores, pools, and operations */
#ifndef BDD_POOLS_H
#define BDD_POOLS_H

#include <kdsm/task.h>

#include "sim.h"
#include "bdd/bdd.h"

#define QUEENS	6
#define FIELDS	(QUEENS * QUEENS)

struct pools {
	unsigned int nodes;
	struct kdsm *local;		/* NULL if the nodes are simulated */
	struct kdsm_region *region[SIM_NODES];
	struct kdsm_bdd_store *store[SIM_NODES];
	struct kdsm_bdd_worker *plain[SIM_NODES], *pooled[SIM_NODES];
	struct kdsm_tasks *tasks[SIM_NODES];
};

/* nodes is 0 for a single node of the local backend. */
static inline void open_pools(struct pools *p, unsigned int nodes, unsigned int workers,
			      uint64_t table_bytes)
{
	bool local = !nodes;
	struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = table_bytes,
		.cache_bytes = 4 << 20,
	};
	struct kdsm_tasks_attr pool = {
		.argsz = sizeof(pool),
		.workers = workers,
		.node_workers = 8,
		.deque = 64,
	};
	struct kdsm_region_attr region = { .argsz = sizeof(region) };
	unsigned int i;
	uint64_t place;

	nodes += local;
	place = (kdsm_bdd_part_bytes(&attr, nodes) + 63) / 64 * 64;
	region.size = (place + kdsm_tasks_bytes(&pool)) * nodes;
	p->nodes = nodes;
	p->local = NULL;
	if (local)
		assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &p->local), 0);
	else
		sim_start(nodes);
	for (i = 0; i < nodes; i++) {
		assert_int_equal(kdsm_region_open(local ? p->local : sim.kdsm[i], "b", &region,
						  &p->region[i]), 0);
		assert_int_equal(kdsm_bdd_open(p->region[i], 0, &attr, &p->store[i]), 0);
		assert_int_equal(kdsm_bdd_worker_new(p->store[i], &p->plain[i]), 0);
		assert_int_equal(kdsm_bdd_worker_new(p->store[i], &p->pooled[i]), 0);
		kdsm_bdd_tasks(p->store[i], &pool);
		assert_int_equal(kdsm_tasks_open(p->region[i], place, &pool, &p->tasks[i]), 0);
		kdsm_bdd_use_tasks(p->pooled[i], p->tasks[i]);
	}
}

static inline void close_pools(struct pools *p)
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
	if (p->local)
		kdsm_close(p->local);
	else
		sim_stop();
}

/* Clear the operation caches, so that operations compute their results again. */
static inline void forget(struct pools *p)
{
	unsigned int i;

	for (i = 0; i < p->nodes; i++)
		memset(p->store[i]->cache.entries, 0,
		       p->store[i]->cache.count * sizeof(struct kd_result));
}

static inline bool attacks(unsigned int a, unsigned int b)
{
	int rows = (int)(a / QUEENS) - (int)(b / QUEENS);
	int columns = (int)(a % QUEENS) - (int)(b % QUEENS);

	return a != b && (!rows || !columns || rows == columns || rows == -columns);
}

/* Boards that have a queen in each of the first rows, and no two queens attack each other */
static inline kdsm_bdd queens(struct kdsm_bdd_worker *w, unsigned int rows)
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

static inline unsigned int solutions(struct kdsm_bdd_worker *w, kdsm_bdd a)
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

/* Apply every operation to large operands, which differ from round to round. */
static inline void operate(struct kdsm_bdd_worker *w, unsigned int round, kdsm_bdd *result)
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

/* Number of tasks that ran on another worker than their creator; *far: on another node */
static inline uint64_t moved(struct pools *p, uint64_t *far)
{
	struct kdsm_tasks_counts counts = { .argsz = sizeof(counts) };
	uint64_t near = 0;
	unsigned int i;

	*far = 0;
	for (i = 0; i < p->nodes; i++) {
		kdsm_tasks_counts(p->tasks[i], &counts);
		near += counts.stolen;
		*far += counts.received;
	}
	return near + *far;
}

#endif /* BDD_POOLS_H */
