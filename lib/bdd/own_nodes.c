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

/*
 * Put the nodes of a sorted walk into the table, children first. Return the table's edge for
 * an edge of the walk.
 */
static kdsm_bdd put_all(struct kdsm_bdd_worker *w, struct kd_walk *walk, kdsm_bdd e)
{
	kdsm_bdd *edge = walk->number;
	uint64_t i;

	edge[0] = KDSM_BDD_FALSE;
	for (i = 1; i <= walk->count; i++) {
		const struct kdsm_node *node = &walk->node[i];
		kdsm_bdd high = kd_high(node, 0);

		edge[i] = kd_make(w, walk->variable[kd_variable(node)],
				  edge[kd_number(high)] ^ (high & KDSM_BDD_COMPLEMENT),
				  edge[kd_low(node, 0)]);
		if (!kd_valid(edge[i]))
			return edge[i];
	}
	return edge[kd_number(e)] ^ (e & KDSM_BDD_COMPLEMENT);
}

kdsm_bdd kdsm_bdd_publish(struct kdsm_bdd_worker *worker, kdsm_bdd a)
{
	bool was_private = worker->private;
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return a;
	worker->private = false;
	r = kd_walk(&walk, worker, a);
	if (r == 0)
		r = kd_walk_sort(&walk, &a, 1);
	a = r < 0 ? kd_failure(r) : put_all(worker, &walk, a);
	worker->private = was_private;
	kd_walk_destroy(&walk);
	return kd_end(worker, a);
}
