// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Keeping results of the operation cache in a collection (KD_RESULTS), on a cluster of one node.
 *
 * Sweeping moves no node. So a result still holds after a collection if all nodes that the entry
 * names are alive: the operands that are edges, and the result. The number of a dead node soon
 * belongs to another node, so an entry with a dead node must go.
 *
 * Many results are dead although their operands are alive: for example, the successors that
 * saturation has found for a set are only a part of the set that it keeps. An operation that is
 * repeated after the collection needs these results again. So the collection first marks the
 * results of live operands, until a share of the table is alive. A marked result may be an operand
 * of the results that a thread looks at later.
 */
#include "internal.h"

#define ENTRIES	1024	/* entries of the cache that a thread takes at a time */

/* Number of live nodes from which on results stay dead, in a table of this size */
static uint64_t enough(uint64_t size)
{
	return size / 4 * 3;
}

/* By operation: bit i is set if operand i is an edge. An operation without any keeps no result. */
static const uint8_t edges[KD_OPERATIONS] = {
	[KD_OP_AND] = 3, [KD_OP_ITE] = 7, [KD_OP_EXISTS] = 3, [KD_OP_AND_EXISTS] = 7,
	[KD_OP_SUCCESSORS] = 7, [KD_OP_PREDECESSORS] = 7, [KD_OP_RESTRICT] = 3,
	[KD_OP_COMPOSE] = 3, [KD_OP_SATURATE] = 1, [KD_OP_FIRE] = 3, [KD_OP_IMAGE] = 3,
};

/* Whether the collection leaves the node of an edge as it is */
static bool stays(const struct kdsm_table *t, kdsm_bdd e)
{
	uint64_t number = kd_number(e);

	if (!number || number >= KD_PRIVATE_FIRST)
		return true;
	return number < t->slots &&
	       __atomic_load_n(&t->data[number].a, __ATOMIC_RELAXED) & KD_NODE_MARK;
}

/* Whether the entry is a result whose operands stay */
static bool operands_stay(const struct kdsm_table *t, const struct kd_result *e)
{
	struct kd_operation o = kd_result_operation(e);
	unsigned int i;

	if (!edges[o.op] || !kd_result_whole(e))
		return false;
	for (i = 0; i < 3; i++)
		if (edges[o.op] >> i & 1 && !stays(t, o.operand[i]))
			return false;
	return true;
}

/* Take entries of the cache, from *e to *end. Return false if there are none left. */
static bool next_entries(struct kd_collector *c, struct kd_result **e, struct kd_result **end)
{
	const struct kd_opcache *cache = &c->store->cache;
	uint64_t at = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED) * ENTRIES;

	if (at >= cache->count)
		return false;
	*e = cache->entries + at;
	*end = *e + (cache->count - at < ENTRIES ? cache->count - at : ENTRIES);
	return true;
}

static int mark_results(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	const uint64_t most = enough(kd_table_size(c->table));
	struct kd_result *e, *end;
	int r = 0;

	while (r == 0 && next_entries(c, &e, &end))
		for (; r == 0 && e < end; e++) {
			if (!e->check || stays(c->table, e->value) || !operands_stay(c->table, e))
				continue;
			if (__atomic_load_n(&c->marked, __ATOMIC_RELAXED) >= most)
				return 0;
			r = kd_mark_from(me, e->value);
		}
	return r;
}

static int drop_results(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	struct kd_result *e, *end;

	while (next_entries(c, &e, &end))
		for (; e < end; e++)
			if (e->check && (!stays(c->table, e->value) || !operands_stay(c->table, e)))
				*e = (struct kd_result){ 0 };
	return 0;
}

int kd_keep_results(struct kd_collector *c)
{
	int r;

	c->next = 0;
	r = kd_collector_run(c, mark_results);
	if (r < 0)
		return r;
	c->next = 0;
	return kd_collector_run(c, drop_results);
}
