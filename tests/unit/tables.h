/* SPDX-License-Identifier: GPL-2.0 */
/* Common setup of the tests of the unique table: tables on simulated nodes, and nodes to put */
#ifndef UNIT_TABLES_H
#define UNIT_TABLES_H

#include "sim.h"
#include "table/table.h"

static uint64_t random_state = 88172645463325252;

static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Node i of a sequence of distinct nodes */
static inline struct kdsm_node node(uint64_t i)
{
	return (struct kdsm_node){ i * UINT64_C(0x9e3779b97f4a7c15) & ~(UINT64_C(3) << 61), i + 1 };
}

struct bench {
	struct kdsm_region *region[SIM_NODES];
	struct kdsm_table *table[SIM_NODES];
};

/* Parameters of open_tables() */
static enum kdsm_table_find way = KDSM_TABLE_ONE_SIDED;
static bool mixed;		/* each node finds in another way */

static inline void open_tables(struct bench *b, unsigned int nodes, uint64_t capacity)
{
	struct kdsm_table_attr attr = { .argsz = sizeof(attr), .nodes = capacity, .find = way };
	struct kdsm_region_attr region = {
		.argsz = sizeof(region),
		.size = (64 + kdsm_table_part_bytes(&attr, nodes)) * nodes,
	};
	unsigned int i;

	sim_start(nodes);
	for (i = 0; i < nodes; i++) {
		if (mixed)
			attr.find = i % (KDSM_TABLE_MESSAGE + 1);
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "t", &region, &b->region[i]), 0);
		assert_int_equal(kdsm_table_open(b->region[i], 64, &attr, &b->table[i]), 0);
	}
}

static inline void close_tables(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		kdsm_table_close(b->table[i]);
		kdsm_region_close(b->region[i]);
	}
	sim_stop();
}

#endif /* UNIT_TABLES_H */
