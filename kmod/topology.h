/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tree that the nodes form by their locations. Level 1 has one element, the whole
 * cluster. An element of level n contains the nodes whose locations agree in their first
 * n - 1 words. The elements of the last level are the nodes themselves.
 */
#ifndef KDSM_TOPOLOGY_H
#define KDSM_TOPOLOGY_H

#include <linux/types.h>
#include <kdsm/uapi.h>

struct kdsm_topology {
	unsigned int nodes;
	unsigned int levels;	/* 2 to KDSM_LOCK_LEVELS */
	u16 first[];		/* by level (1 to levels - 1) and node: kdsm_topology_level() */
};

/*
 * Build the tree from the locations of nodes 0 to nodes - 1. A location is a string that
 * ends with a 0 byte, and the location of the next node begins stride bytes further. Return
 * the tree, which the caller frees by kvfree(), or NULL if memory is short.
 */
struct kdsm_topology *kdsm_topology_create(const char *locations, size_t stride,
					   unsigned int nodes);

/*
 * Return the array of the elements that the nodes belong to at a level from 1 to levels - 1, by
 * number of the node. The number of an element is that of its first node.
 */
static inline const u16 *kdsm_topology_level(const struct kdsm_topology *topology,
					     unsigned int level)
{
	return topology->first + (level - 1) * topology->nodes;
}

#endif /* KDSM_TOPOLOGY_H */
