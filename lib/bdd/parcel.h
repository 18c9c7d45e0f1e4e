/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parcels: BDDs on their way from one store to another. A parcel is an array of nodes in the
 * format of <kdsm/bdd.h>, except that edges name the nodes by their positions in the array. The
 * children of a node have smaller positions than the node. Tasks of all workers pack a parcel
 * side by side, and unpack it side by side in the other store.
 */
#ifndef KD_BDD_PARCEL_H
#define KD_BDD_PARCEL_H

#include "bdd/bdd.h"

/* A parcel begins with this entry, at position 0; its nodes follow. */
struct kd_parcel_head {
	uint64_t count;		/* of nodes */
	kdsm_bdd root;		/* the function, as an edge to a position; or a terminal */
};

_Static_assert(sizeof(struct kd_parcel_head) == sizeof(struct kdsm_node),
	       "the head takes the first entry of the array");

struct kd_parcel {
	union {
		struct kd_parcel_head *head;
		struct kdsm_node *node;		/* from 1 on */
	};
	uint64_t room;		/* maximum number of nodes */
	uint64_t stamp;		/* differs between all parcels that the process fills */
	uint64_t *made;		/* [count + 1], for kd_unpack(); the caller sets it to 0 */
	/* For kd_unpack(). known[v]: nodes may have variable v; NULL: any variable */
	const bool *known;
	uint32_t variables;	/* size of known; nodes may not have greater variables */
};

/*
 * Pack nodes of function e into the parcel at this address, and return e's edge in it. The
 * caller sets head->count to 0 before, and head->root after. The failure -E2BIG means that the
 * parcel has no room. The operation cache keeps the positions; if it loses one, the node is packed
 * a second time.
 */
KDSM_TASK_DECLARE(kdsm_bdd, kd_pack, kdsm_bdd, e, uint64_t, parcel)

/*
 * Make the BDD of edge e of the parcel at this address in this store. All its variables must be at
 * least `above`. The array has head->count nodes after the head. The parcel may come from anywhere:
 * the failure -EIO means that it is not valid.
 */
KDSM_TASK_DECLARE(kdsm_bdd, kd_unpack, kdsm_bdd, e, uint64_t, parcel, uint32_t, above)

#endif /* KD_BDD_PARCEL_H */
