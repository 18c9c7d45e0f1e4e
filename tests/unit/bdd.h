/* SPDX-License-Identifier: GPL-2.0 */
/* Common setup of the tests of BDD operations: stores on simulated nodes, and truth tables */
#ifndef UNIT_BDD_H
#define UNIT_BDD_H

#include "sim.h"
#include "bdd/bdd.h"

struct fixture {
	unsigned int nodes, turn;
	struct kdsm_region *region[SIM_NODES];
	struct kdsm_bdd_store *store[SIM_NODES];
	struct kdsm_bdd_worker *worker[SIM_NODES];
};

static inline void begin_with(struct fixture *f, unsigned int nodes,
			      struct kdsm_bdd_attr attr)
{
	struct kdsm_region_attr region = {
		.argsz = sizeof(region),
		.size = kdsm_bdd_part_bytes(&attr, nodes) * nodes,
	};
	unsigned int i;

	f->nodes = nodes;
	f->turn = 0;
	sim_start(nodes);
	sim.tear = true;
	for (i = 0; i < nodes; i++) {
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "b", &region, &f->region[i]), 0);
		assert_int_equal(kdsm_bdd_open(f->region[i], 0, &attr, &f->store[i]), 0);
		assert_int_equal(kdsm_bdd_worker_new(f->store[i], &f->worker[i]), 0);
	}
}

static inline void begin(struct fixture *f, unsigned int nodes, unsigned int granularity)
{
	begin_with(f, nodes, (struct kdsm_bdd_attr){
		.argsz = sizeof(struct kdsm_bdd_attr),
		.table_bytes = 8 << 20, .cache_bytes = 1 << 20, .granularity = granularity,
	});
}

static inline void end(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < f->nodes; i++) {
		kdsm_bdd_worker_free(f->worker[i]);
		kdsm_bdd_close(f->store[i]);
		kdsm_region_close(f->region[i]);
	}
	sim_stop();
}

/* Workers in turn, each of the next node */
static inline struct kdsm_bdd_worker *w(struct fixture *f)
{
	return f->worker[f->turn++ % f->nodes];
}

static uint64_t random_state = 0x2545f4914f6cdd1d;

static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/*
 * A truth table over n variables: bit i is the value of the function where variable v has
 * bit v of i. variable[v] is the number of variable v in the BDD, in increasing order.
 */
static inline kdsm_bdd from_table(struct kdsm_bdd_worker *worker, uint64_t table,
				  const uint32_t *variable, unsigned int n, unsigned int at,
				  unsigned int index)
{
	if (at == n)
		return table >> index & 1 ? KDSM_BDD_TRUE : KDSM_BDD_FALSE;
	return kdsm_bdd_make(worker, variable[at],
			     from_table(worker, table, variable, n, at + 1, index | 1u << at),
			     from_table(worker, table, variable, n, at + 1, index));
}

static inline uint64_t mask(unsigned int n)
{
	return n == 6 ? UINT64_MAX : (UINT64_C(1) << (1u << n)) - 1;
}

static const uint32_t plain[] = { 0, 2, 4, 6, 8, 10 };

/*
 * Existential quantification of a truth table: the result does not depend on the quantified
 * variables.
 */
static inline uint64_t brute_exists(uint64_t table, unsigned int n, unsigned int quantified)
{
	unsigned int v, i;

	for (v = 0; v < n; v++) {
		uint64_t result = 0;

		if (!(quantified & 1u << v))
			continue;
		for (i = 0; i < 1u << n; i++)
			if ((table >> (i & ~(1u << v)) & 1) || (table >> (i | 1u << v) & 1))
				result |= UINT64_C(1) << i;
		table = result;
	}
	return table;
}

static inline kdsm_bdd cube_of(struct kdsm_bdd_worker *worker, const uint32_t *variable,
			       unsigned int set)
{
	uint32_t variables[6];
	unsigned int v, k = 0;

	for (v = 0; v < 6; v++)
		if (set & 1u << v)
			variables[k++] = variable[v];
	return kdsm_bdd_cube(worker, variables, k);
}

#endif /* UNIT_BDD_H */
