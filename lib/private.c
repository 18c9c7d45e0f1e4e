// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Nodes of the process's own: relations and sets of variables, which all workers
 * read all the time and nobody changes. The paper keeps relations in local memory
 * likewise (Oortwijn, van Dijk, van de Pol, SPIN 2017, section 5). One thread
 * makes them, before the others start to read.
 */
#include <stdlib.h>

#include "bdd_int.h"

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
