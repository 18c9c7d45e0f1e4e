/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tree that the nodes form by their locations. Level 1 is the whole cluster; an
 * element of the next level has the nodes whose locations begin with the same word, and
 * so on; the last level is that of the nodes themselves.
 */
#ifndef KDSM_TOPOLOGY_H
#define KDSM_TOPOLOGY_H

#include <linux/types.h>
#include <linux/kdsm.h>

struct kdsm_topology {
	unsigned int nodes;
	unsigned int levels;	/* 2 to KDSM_LOCK_LEVELS */
	u16 first[];		/* by level, from 1 to levels - 1, and node; see below */
};

/*
 * From the locations of nodes 0 to nodes - 1, each stride bytes behind the one before,
 * ended by a 0. For kvfree(). NULL: there is no memory.
 */
struct kdsm_topology *kdsm_topology_create(const char *locations, size_t stride,
					   unsigned int nodes);

/*
 * The elements of a level below the last, by node: each is named by the first of its
 * nodes.
 */
static inline const u16 *kdsm_topology_level(const struct kdsm_topology *topology,
					     unsigned int level)
{
	return topology->first + (level - 1) * topology->nodes;
}

#endif /* KDSM_TOPOLOGY_H */
