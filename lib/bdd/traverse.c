// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks: collect all nodes of a BDD in an array, and fetch them in batches. */
#include <stdlib.h>
#include <string.h>

#include "bdd/bdd.h"

#define BATCH	256	/* nodes in one fetch */

static uint64_t slot_of(const struct kd_walk *walk, uint64_t number)
{
	uint64_t slot = kd_mix(number, UINT64_C(0x9e3779b97f4a7c15));

	for (;; slot++) {
		uint64_t at = walk->index[slot & (walk->index_size - 1)];

		if (!at || walk->nodes[at - 1].number == number)
			return slot & (walk->index_size - 1);
	}
}

uint64_t kd_walk_find(const struct kd_walk *walk, uint64_t number)
{
	return walk->index[slot_of(walk, number)] - 1;
}

static int grow(struct kd_walk *walk)
{
	uint64_t capacity = walk->capacity ? 2 * walk->capacity : 1024, i;
	void *nodes = reallocarray(walk->nodes, capacity, sizeof(*walk->nodes));
	uint64_t *index;

	if (!nodes)
		return -ENOMEM;
	walk->nodes = nodes;
	index = calloc(2 * capacity, sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(walk->index);
	walk->index = index;
	walk->index_size = 2 * capacity;
	walk->capacity = capacity;
	for (i = 0; i < walk->count; i++)
		index[slot_of(walk, walk->nodes[i].number)] = i + 1;
	return 0;
}

/* Add the node of an edge to the walk, unless it is there already. */
static int add(struct kd_walk *walk, kdsm_bdd e)
{
	uint64_t slot;
	int r;

	if (kd_terminal(e))
		return 0;
	if (walk->count == walk->capacity) {
		r = grow(walk);
		if (r < 0)
			return r;
	}
	slot = slot_of(walk, kd_number(e));
	if (walk->index[slot])
		return 0;
	walk->nodes[walk->count++].number = kd_number(e);
	walk->index[slot] = walk->count;
	return 0;
}

/* Load node "at" of the walk, and add its children. */
static int visit(struct kd_walk *walk, struct kdsm_bdd_worker *w, uint64_t at)
{
	struct kdsm_node node;
	int r;

	if (!kd_node(w, walk->nodes[at].number, &node))
		return w->why;
	walk->nodes[at].node = node;
	r = add(walk, kd_high(&node, 0));
	return r < 0 ? r : add(walk, kd_low(&node, 0));
}

/*
 * Fetch the nodes at..end - 1 of the walk that are in other parts of the table. Private
 * nodes are local.
 */
static int bring(struct kd_walk *walk, struct kdsm_bdd_worker *w, uint64_t at, uint64_t end)
{
	uint64_t numbers[BATCH];
	unsigned int n = 0;

	for (; at < end; at++)
		if (walk->nodes[at].number < KD_PRIVATE_FIRST)
			numbers[n++] = walk->nodes[at].number;
	return w->alone || !n ? 0 : kdsm_table_prefetch(w->table, numbers, n);
}

/* The caller destroys walk, whatever the result. */
int kd_walk_all(struct kd_walk *walk, struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		unsigned int count)
{
	uint64_t at = 0, end;
	unsigned int i;
	int r = 0;

	memset(walk, 0, sizeof(*walk));
	for (i = 0; r == 0 && i < count; i++)
		r = add(walk, edges[i]);
	while (r == 0 && at < walk->count) {
		end = walk->count - at < BATCH ? walk->count : at + BATCH;
		r = bring(walk, w, at, end);
		for (; r == 0 && at < end; at++)
			r = visit(walk, w, at);
	}
	return r;
}

int kd_walk(struct kd_walk *walk, struct kdsm_bdd_worker *w, kdsm_bdd e)
{
	return kd_walk_all(walk, w, &e, 1);
}

void kd_walk_destroy(struct kd_walk *walk)
{
	free(walk->nodes);
	free(walk->index);
}
