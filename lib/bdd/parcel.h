/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parcels: BDDs on their way from one store to another. A parcel is an array of nodes in the
 * format of <kdsm/bdd.h>, except that edges name the nodes by their positions in the array. A node
 * follows its children. Tasks of all workers fill a parcel, and make the nodes of one.
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
	       "the head takes the place of node 0");

struct kd_parcel {
	union {
		struct kd_parcel_head *head;
		struct kdsm_node *node;		/* from 1 on */
	};
	uint64_t room;		/* most nodes */
	uint64_t stamp;		/* differs between all parcels that the process fills */
	uint64_t *made;		/* [count + 1], zero: used by kd_unpack() */
};

/*
 * Pack nodes of function e into the parcel at this address, and return e's edge in it. The
 * caller sets head->count to 0 before, and head->root after. The failure -E2BIG means that the
 * parcel has no room. The positions are kept in the operation cache; a node whose position was
 * lost from it is packed again.
 */
KDSM_TASK_DECLARE(kdsm_bdd, kd_pack, kdsm_bdd, e, uint64_t, parcel)

/*
 * Make the function of an edge of a parcel. Its variables are at least above. head->count nodes
 * are there. The parcel may come from anywhere: the failure -EIO means that it holds no BDD.
 */
KDSM_TASK_DECLARE(kdsm_bdd, kd_unpack, kdsm_bdd, e, uint64_t, parcel, uint32_t, above)

#endif /* KD_BDD_PARCEL_H */
