// SPDX-License-Identifier: GPL-2.0
/* Defaults of kdsm-reach that depend on the machine, see defaults.h. */
#include "defaults.h"

/*
 * Table and cache begin with these sizes on every node, in bytes, and grow: most searches are
 * small, and a small table has better locality.
 */
#define FIRST_TABLE	(UINT64_C(64) << 20)
#define FIRST_CACHE	(FIRST_TABLE / 2)

#define MOST_TABLE	(UINT64_C(12) << 40)	/* of all nodes together; numbers have 39 bits */

/*
 * The simulated nodes of a virtual run begin with at least this much of a table, in bytes each:
 * workers take BDD nodes from it in blocks
 */
#define FIRST_SIMULATED	(UINT64_C(1) << 20)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Round down to a multiple of an eighth of a power of two, so that machines whose memory
 * differs by a little have the same sizes.
 */
static uint64_t round_down(uint64_t bytes)
{
	uint64_t step = 1;

	while (bytes / step >= 16)
		step *= 2;
	return bytes / step * step;
}

/*
 * The table on all nodes together, if half of each node's memory is for table and cache. The
 * cache is half as large as the table. On a cluster each node also has a cache of other nodes'
 * BDD nodes, which is at most a third as large as the whole table, or as four nodes' parts.
 */
static uint64_t whole_table(const struct machine *machine, unsigned int nodes)
{
	uint64_t half = round_down((nodes > 1 ? machine->memory : machine->available) / 2);
	uint64_t table = nodes > 1 ? half / (9 + 2 * least(nodes, 4)) * 6 * nodes : half / 3 * 2;

	return least(table, MOST_TABLE) >> 21 << 21;	/* half of it is in MiB, too */
}

/* Fill in table and cache where they are 0. */
static void set_sizes(struct kdsm_bdd_attr *bdd, uint64_t table, uint64_t first)
{
	if (!bdd->table_bytes) {
		bdd->table_bytes = table < 1 << 20 ? 1 << 20 : table;
		bdd->first_table_bytes = least(first, bdd->table_bytes);
	}
	if (!bdd->cache_bytes) {
		bdd->cache_bytes = bdd->table_bytes / 2;
		/* the cache grows with the table; with saturation also alone */
		if (bdd->first_table_bytes)
			bdd->first_cache_bytes = least(first / 2, bdd->cache_bytes);
		else if (bdd->cache_bytes < FIRST_CACHE)
			bdd->cache_bytes = FIRST_CACHE;
	}
}

void defaults_set(struct kdsm_reach_options *options, const struct machine *machine,
		  unsigned int nodes)
{
	if (!options->workers)
		options->workers = least(machine->processors, KDSM_REACH_WORKERS);
	set_sizes(&options->bdd, whole_table(machine, nodes), FIRST_TABLE * nodes);
}

void defaults_virtual(struct kdsm_reach_options *options, const struct machine *machine,
		      unsigned int nodes)
{
	struct machine node = *machine;
	uint64_t first = FIRST_SIMULATED * nodes;

	node.memory /= nodes;
	node.available = node.memory;
	set_sizes(&options->bdd, whole_table(&node, nodes),
		  first > FIRST_TABLE ? first : FIRST_TABLE);
}
