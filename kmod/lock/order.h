/* SPDX-License-Identifier: GPL-2.0 */
/* Which of the waiting nodes gets the lock next: topology and thresholds. At the home only. */
#ifndef KDSM_LOCK_ORDER_H
#define KDSM_LOCK_ORDER_H

#include <linux/types.h>
#include <kdsm/uapi.h>

#include "wire.h"

struct kdsm_topology;

/*
 * The nodes by rank: in an order in which each element of the topology is a range. One for each
 * cluster, which all locks share.
 */
struct kdsm_ranks {
	unsigned int nodes;
	unsigned int levels;	/* 2 to KDSM_LOCK_LEVELS; the elements of the last are the nodes */
	u16 *rank;		/* by node */
	u16 *node;		/* by rank */
	/* By level (1 to levels - 1) and rank: see kdsm_ranks_element() */
	u16 *first, *end;
};

/* The ranks of a topology, or NULL: no memory. */
struct kdsm_ranks *kdsm_ranks_create(const struct kdsm_topology *topology);
void kdsm_ranks_destroy(struct kdsm_ranks *ranks);

/* Settings of a lock that its home uses; the home reads them with each decision. */
struct kdsm_thresholds {
	u32 t_l[KDSM_LOCK_LEVELS];	/* [i - 1] of level i; KDSM_LOCK_T_L_AUTO */
	u32 t_r, t_w;
};

/* Turns that an element has had */
struct kdsm_share {
	u16 served;	/* the rank in it that was served last */
	u16 turns;	/* turns and threads in a row, since its turn among its siblings began */
	u32 passes;
};

/* The nodes that wait for one lock. Its home's spinlock guards it. */
struct kdsm_order {
	const struct kdsm_ranks *ranks;
	const struct kdsm_thresholds *thresholds;
	unsigned int levels;		/* of the lock: 2 means in order of arrival */
	unsigned int count;		/* nodes that wait */
	u16 *threads;			/* by node: that wait there */
	unsigned long *waiting;		/* set of ranks */
	struct kdsm_share *shares;	/* by level and first rank of an element */
	u16 *after;			/* levels 2, by node: the node that came next */
	u16 head, tail;
};

/* Returns 0 or -ENOMEM; the caller calls kdsm_order_exit() in any case. */
int kdsm_order_init(struct kdsm_order *order, const struct kdsm_ranks *ranks,
		    unsigned int levels, const struct kdsm_thresholds *thresholds);
void kdsm_order_exit(struct kdsm_order *order);
/* The node does not wait yet. */
void kdsm_order_add(struct kdsm_order *order, unsigned int node, unsigned int threads);
/* The node waits. */
void kdsm_order_remove(struct kdsm_order *order, unsigned int node);
/*
 * Whether the element of the last node still has a share by a fixed threshold, and no node of it
 * waits at the moment: the list should end here, so that they can come back.
 */
bool kdsm_order_pauses(const struct kdsm_order *order);
/* Remove the next node and return it, and set its quota. Some node waits. */
unsigned int kdsm_order_next(struct kdsm_order *order, u16 *quota);

#endif /* KDSM_LOCK_ORDER_H */
