// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks: collect all nodes of a BDD in an array, fetch them in batches, and sort them by
 * variable. Memory is a fixed number of bytes for each node: 24 for the node and its number,
 * and 8 to 16 for the index, which only collecting needs.
 */
#include <stdlib.h>
#include <string.h>

#include "bdd/bdd.h"

#define BATCH	256	/* nodes in one fetch */

/* Nodes of a walk whose index has entries of 8 bytes instead of 4 */
#define WIDE	(UINT64_C(1) << 32)

static uint64_t entry(const struct kd_walk *walk, uint64_t slot)
{
	return walk->capacity < WIDE ? ((uint32_t *)walk->index)[slot] :
				       ((uint64_t *)walk->index)[slot];
}

static void set_entry(struct kd_walk *walk, uint64_t slot, uint64_t at)
{
	if (walk->capacity < WIDE)
		((uint32_t *)walk->index)[slot] = at;
	else
		((uint64_t *)walk->index)[slot] = at;
}

/* The slot of a node's position, or the empty slot for it */
static uint64_t slot_of(const struct kd_walk *walk, uint64_t number)
{
	uint64_t slot = kd_mix(number, UINT64_C(0x9e3779b97f4a7c15));

	for (;; slot++) {
		uint64_t at = entry(walk, slot & (walk->slots - 1));

		if (!at || walk->number[at] == number)
			return slot & (walk->slots - 1);
	}
}

static void *resize(void *array, uint64_t entries, size_t size)
{
	return reallocarray(array, entries + 1, size);
}

static int grow(struct kd_walk *walk)
{
	uint64_t capacity = walk->capacity ? 2 * walk->capacity : 512, i;
	void *p;

	p = resize(walk->node, capacity, sizeof(*walk->node));
	if (!p)
		return -ENOMEM;
	walk->node = p;
	p = resize(walk->number, capacity, sizeof(*walk->number));
	if (!p)
		return -ENOMEM;
	walk->number = p;
	free(walk->index);
	walk->index = calloc(2 * capacity, capacity < WIDE ? 4 : 8);
	if (!walk->index)
		return -ENOMEM;
	walk->slots = 2 * capacity;
	walk->capacity = capacity;
	for (i = 1; i <= walk->count; i++)
		set_entry(walk, slot_of(walk, walk->number[i]), i);
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
	if (entry(walk, slot))
		return 0;
	walk->number[++walk->count] = kd_number(e);
	set_entry(walk, slot, walk->count);
	return 0;
}

/* Load node "at" of the walk, and add its children. */
static int visit(struct kd_walk *walk, struct kdsm_bdd_worker *w, uint64_t at)
{
	struct kdsm_node node;
	int r;

	kd_step(w);
	if (!kd_node(w, walk->number[at], &node))
		return w->why;
	walk->node[at] = node;
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
		if (walk->number[at] < KD_PRIVATE_FIRST)
			numbers[n++] = walk->number[at];
	return w->alone || !n ? 0 : kdsm_table_prefetch(w->table, numbers, n);
}

/* The caller destroys walk, whatever the result. */
int kd_walk_all(struct kd_walk *walk, struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		unsigned int count)
{
	uint64_t at = 1, end;
	unsigned int i;
	int r;

	memset(walk, 0, sizeof(*walk));
	r = grow(walk);
	for (i = 0; r == 0 && i < count; i++)
		r = add(walk, edges[i]);
	while (r == 0 && at <= walk->count) {
		end = walk->count - at < BATCH ? walk->count + 1 : at + BATCH;
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
	free(walk->node);
	free(walk->number);
	free(walk->index);
	free(walk->variable);
	free(walk->end);
}

/* ---- variables ---- */

/* A set of variables, as a hash table */
struct variables {
	uint32_t *slot;		/* variable plus 1; 0: empty */
	uint32_t slots, used;
};

static void put_variable(struct variables *set, uint32_t variable)
{
	uint32_t i = variable * UINT32_C(0x9e3779b1);

	for (i &= set->slots - 1; set->slot[i]; i = (i + 1) & (set->slots - 1))
		if (set->slot[i] == variable + 1)
			return;
	set->slot[i] = variable + 1;
	set->used++;
}

static int grow_variables(struct variables *set)
{
	struct variables more = { .slots = set->slots ? 4 * set->slots : 64 };
	uint32_t i;

	more.slot = calloc(more.slots, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (i = 0; i < set->slots; i++)
		if (set->slot[i])
			put_variable(&more, set->slot[i] - 1);
	free(set->slot);
	*set = more;
	return 0;
}

static int compare_variables(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

/* Sort the variables of the set, and move them to the walk. */
static void list_variables(struct kd_walk *walk, struct variables *set)
{
	uint32_t i;

	for (i = 0; i < set->slots; i++)
		if (set->slot[i])
			set->slot[walk->variables++] = set->slot[i] - 1;
	qsort(set->slot, walk->variables, sizeof(*set->slot), compare_variables);
	walk->variable = set->slot;
}

int kd_walk_variables(struct kd_walk *walk)
{
	struct variables set = { 0 };
	uint32_t last = KD_NO_VARIABLE, v;
	uint64_t i;
	int r = grow_variables(&set);

	for (i = 1; r == 0 && i <= walk->count; i++) {
		v = kd_variable(&walk->node[i]);
		if (v == last)
			continue;
		last = v;
		put_variable(&set, v);
		if (set.used > set.slots / 2)
			r = grow_variables(&set);
	}
	if (r < 0)
		free(set.slot);
	else
		list_variables(walk, &set);
	return r;
}

/* ---- sorting ---- */

static uint64_t level_of(const struct kd_walk *walk, uint32_t variable)
{
	return (uint32_t *)bsearch(&variable, walk->variable, walk->variables, sizeof(variable),
				   compare_variables) - walk->variable;
}

/* An edge of the store as an edge to a position in the walk */
static kdsm_bdd position_of(const struct kd_walk *walk, kdsm_bdd e)
{
	if (kd_terminal(e))
		return e;
	return entry(walk, slot_of(walk, kd_number(e))) | (e & KDSM_BDD_COMPLEMENT);
}

/* Make the nodes refer to positions, and to levels. Count the nodes of each level in walk->end. */
static void translate(struct kd_walk *walk)
{
	uint32_t last = KD_NO_VARIABLE, v;
	uint64_t level = 0, i;

	for (i = 1; i <= walk->count; i++) {
		struct kdsm_node *node = &walk->node[i];

		v = kd_variable(node);
		if (v != last)
			level = level_of(walk, v);
		last = v;
		walk->end[level]++;
		node->a = position_of(walk, kd_high(node, 0));
		node->b = position_of(walk, kd_low(node, 0)) | level << KD_VARIABLE_SHIFT;
	}
}

/* Store in walk->number the new position of each node, and in walk->end the ends of levels. */
static void place(struct kd_walk *walk)
{
	uint64_t next = 1, i, n;

	for (i = walk->variables; i--; next += n) {
		n = walk->end[i];
		walk->end[i] = next;
	}
	for (i = 1; i <= walk->count; i++)
		walk->number[i] = walk->end[kd_variable(&walk->node[i])]++;
}

static kdsm_bdd moved(const struct kd_walk *walk, kdsm_bdd e)
{
	return kd_terminal(e) ? e : walk->number[kd_number(e)] | (e & KDSM_BDD_COMPLEMENT);
}

/* Move the nodes to their new positions. */
static void permute(struct kd_walk *walk)
{
	struct kdsm_node node;
	uint64_t i, to;

	for (i = 1; i <= walk->count; i++) {
		struct kdsm_node *n = &walk->node[i];

		n->a = moved(walk, n->a);
		n->b = moved(walk, kd_low(n, 0)) |
		       (uint64_t)kd_variable(n) << KD_VARIABLE_SHIFT;
	}
	for (i = 1; i <= walk->count; i++)
		while (walk->number[i] != i) {
			to = walk->number[i];
			node = walk->node[to];
			walk->node[to] = walk->node[i];
			walk->node[i] = node;
			walk->number[i] = walk->number[to];
			walk->number[to] = to;
		}
}

/* Check that children are below their parents. If one is not, memory holds no BDD. */
static int check(const struct kd_walk *walk)
{
	uint64_t i, below;

	for (i = 1; i <= walk->count; i++) {
		const struct kdsm_node *node = &walk->node[i];

		below = walk->end[kd_variable(node) + 1];
		if (kd_number(node->a) >= below || kd_number(node->b) >= below)
			return -EIO;
	}
	return 0;
}

int kd_walk_sort(struct kd_walk *walk, kdsm_bdd *edges, unsigned int count)
{
	unsigned int i;
	int r;

	r = kd_walk_variables(walk);
	if (r < 0)
		return r;
	walk->end = calloc((uint64_t)walk->variables + 1, sizeof(*walk->end));
	if (!walk->end)
		return -ENOMEM;
	translate(walk);
	for (i = 0; i < count; i++)
		edges[i] = position_of(walk, edges[i]);
	free(walk->index);
	walk->index = NULL;
	place(walk);
	for (i = 0; i < count; i++)
		edges[i] = moved(walk, edges[i]);
	permute(walk);
	walk->end[walk->variables] = 1;
	return check(walk);
}
