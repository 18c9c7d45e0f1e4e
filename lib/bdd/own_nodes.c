// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Private nodes: relations and sets of variables in the memory of this process, because all
 * workers read them all the time and no worker changes them. Oortwijn, van Dijk and van de
 * Pol (SPIN 2017, section 5) also keep relations in local memory. One thread makes the
 * private nodes before other threads begin to read them.
 */
#include <stdlib.h>

#include "bdd/bdd.h"

void kd_private_destroy(struct kd_private *own)
{
	free(own->nodes);
	free(own->index);
}

static int grow(struct kd_private *own)
{
	uint64_t capacity = own->capacity ? 2 * own->capacity : 1024;
	uint64_t index_size = 2 * capacity, i;
	struct kdsm_node *nodes;
	uint64_t *index;

	nodes = reallocarray(own->nodes, capacity, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	own->nodes = nodes;
	index = calloc(index_size, sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(own->index);
	own->index = index;
	own->index_size = index_size;
	own->capacity = capacity;
	for (i = 0; i < own->count; i++) {
		uint64_t slot = kd_hash(nodes[i].a, nodes[i].b);

		while (index[slot & (index_size - 1)])
			slot++;
		index[slot & (index_size - 1)] = i + 1;
	}
	return 0;
}

int kd_private_put(struct kd_private *own, const struct kdsm_node *node,
		   uint64_t *number)
{
	uint64_t hash = kd_hash(node->a, node->b), slot, at;
	int r;

	if (own->count == own->capacity) {
		r = grow(own);
		if (r < 0)
			return r;
	}
	for (slot = hash; (at = own->index[slot & (own->index_size - 1)]); slot++) {
		const struct kdsm_node *other = &own->nodes[at - 1];

		if (other->a == node->a && other->b == node->b) {
			*number = KD_PRIVATE_FIRST + at - 1;
			return 0;
		}
	}
	own->nodes[own->count] = *node;
	*number = KD_PRIVATE_FIRST + own->count++;
	own->index[slot & (own->index_size - 1)] = own->count;
	own->digest = kd_mix(own->digest ^ hash, UINT64_C(0xd6e8feb86659fd93)) + 1;
	return 0;
}

static int compare_numbers(const void *x, const void *y)
{
	const struct kd_walked *a = x, *b = y;

	return (a->number > b->number) - (a->number < b->number);
}

/*
 * Translate a private edge to the table's edge. The edge's node is among the first count
 * entries of walked, which are sorted by number.
 */
static kdsm_bdd translate(const struct kd_walked *walked, const kdsm_bdd *edges,
			  uint64_t count, kdsm_bdd e)
{
	struct kd_walked key = { .number = kd_number(e) }, *found;

	if (kd_terminal(e))
		return e;
	found = bsearch(&key, walked, count, sizeof(*walked), compare_numbers);
	return edges[found - walked] ^ (e & KDSM_BDD_COMPLEMENT);
}

kdsm_bdd kdsm_bdd_publish(struct kdsm_bdd_worker *worker, kdsm_bdd a)
{
	kdsm_bdd result = KDSM_BDD_INVALID, *edges;
	bool was_private = worker->private;
	struct kd_walk walk;
	uint64_t i;
	int r;

	if (a == KDSM_BDD_INVALID)
		return a;
	r = kd_walk(&walk, worker, a);
	edges = malloc((walk.count + 1) * sizeof(*edges));
	if (r == 0 && !edges)
		r = -ENOMEM;
	if (r < 0) {
		kd_end(worker, kd_failure(r));
		goto out;
	}
	/*
	 * Sort by number, so that a node comes after its children: they were made first, so
	 * their numbers are lower.
	 */
	if (walk.count)
		qsort(walk.nodes, walk.count, sizeof(*walk.nodes), compare_numbers);
	worker->private = false;
	for (i = 0; i < walk.count; i++) {
		const struct kdsm_node *node = &walk.nodes[i].node;

		edges[i] = kd_make(worker, kd_variable(node),
				   translate(walk.nodes, edges, i, kd_high(node, 0)),
				   translate(walk.nodes, edges, i, kd_low(node, 0)));
		if (!kd_valid(edges[i])) {
			kd_end(worker, edges[i]);
			goto out;
		}
	}
	result = translate(walk.nodes, edges, walk.count, a);
out:
	worker->private = was_private;
	free(edges);
	kd_walk_destroy(&walk);
	return result;
}
