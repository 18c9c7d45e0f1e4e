/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The binomial tree of barriers and collective steps. The root has rank 0. Child k of rank
 * r is r + 2^k, for every 2^k below the lowest set bit of r. k is also the number of zeros
 * below the lowest set bit of the child's rank, so that a child finds its own k.
 */
#ifndef KDSM_BINOMIAL_H
#define KDSM_BINOMIAL_H

#include <stdbool.h>

#include <kdsm/uapi.h>

/* Maximum number of children: those of the root with KDSM_MAX_NODES nodes */
#define KDSM_TREE_CHILDREN	10

_Static_assert(KDSM_MAX_NODES <= 1 << KDSM_TREE_CHILDREN, "more children than words");

static inline bool kdsm_tree_has_child(unsigned int rank, unsigned int k, unsigned int nodes)
{
	return (!rank || 1u << k < (rank & -rank)) && rank + (1u << k) < nodes;
}

static inline unsigned int kdsm_tree_child(unsigned int rank, unsigned int k)
{
	return rank + (1u << k);
}

/* rank must not be 0. */
static inline unsigned int kdsm_tree_parent(unsigned int rank)
{
	return rank & (rank - 1);
}

/* Which child of its parent a node is: the k of kdsm_tree_child(). rank must not be 0. */
static inline unsigned int kdsm_tree_order(unsigned int rank)
{
	return __builtin_ctz(rank);
}

#endif /* KDSM_BINOMIAL_H */
