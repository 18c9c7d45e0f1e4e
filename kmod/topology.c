// SPDX-License-Identifier: GPL-2.0
/*
 * Building the tree of nodes of topology.h from the nodes' locations. A location that has
 * fewer words than the deepest one counts as having empty words at its end.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "topology.h"

/* Number of words of a location */
static unsigned int kdsm_location_depth(const char *location)
{
	unsigned int depth = *location != 0;

	while (*location)
		depth += *location++ == '/';
	return depth;
}

/* Return word i of a location, and set *length to the length of the word in bytes */
static const char *kdsm_location_word(const char *location, unsigned int i, size_t *length)
{
	for (; i && *location; location++)
		i -= *location == '/';
	*length = strcspn(location, "/");
	return location;
}

/* Whether word i of two locations is the same */
static bool kdsm_location_same(const char *a, const char *b, unsigned int i)
{
	size_t length, other;

	a = kdsm_location_word(a, i, &length);
	b = kdsm_location_word(b, i, &other);
	return length == other && !memcmp(a, b, length);
}

struct kdsm_topology *kdsm_topology_create(const char *locations, size_t stride,
					   unsigned int nodes)
{
	unsigned int levels = 2, level, node, other;
	struct kdsm_topology *topology;
	const u16 *above;
	u16 *first;

	for (node = 0; node < nodes; node++)
		levels = max(levels, kdsm_location_depth(locations + node * stride) + 2);
	levels = min_t(unsigned int, levels, KDSM_LOCK_LEVELS);
	topology = kvzalloc(struct_size(topology, first, (levels - 1) * nodes), GFP_KERNEL);
	if (!topology)
		return NULL;
	topology->nodes = nodes;
	topology->levels = levels;
	for (level = 2; level < levels; level++) {
		above = kdsm_topology_level(topology, level - 1);
		first = topology->first + (level - 1) * nodes;
		for (node = 0; node < nodes; node++) {
			for (other = above[node]; other < node; other++)
				if (first[other] == other && above[other] == above[node] &&
				    kdsm_location_same(locations + other * stride,
						       locations + node * stride, level - 2))
					break;
			first[node] = other;
		}
	}
	return topology;
}
