/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The binomial tree that barriers and collective steps go along. The root has rank 0; child k of
 * rank r is r + 2^k, for every 2^k below the lowest bit of r. The child is the k-th for its parent,
 * too: k is the number of zeros behind its lowest bit.
 */
#ifndef KDSM_BINOMIAL_H
#define KDSM_BINOMIAL_H

#include <stdbool.h>

#include <linux/kdsm.h>

/* Children of the root with KDSM_MAX_NODES nodes */
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

/* Of a rank that is not the root's */
static inline unsigned int kdsm_tree_parent(unsigned int rank)
{
	return rank & (rank - 1);
}

static inline unsigned int kdsm_tree_order(unsigned int rank)
{
	return __builtin_ctz(rank);
}

#endif /* KDSM_BINOMIAL_H */
