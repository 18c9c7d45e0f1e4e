/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers about the set of the states found, which node 0 computes after a search: answers.c,
 * fired.c and tokens.c.
 */
#ifndef KD_REACH_ANSWERS_H
#define KD_REACH_ANSWERS_H

#include "internal.h"

/*
 * The states found, as a sorted walk. The bits of a state have ranks: the rank of a bit is the
 * index of its variable in model->variables. walk.number is for each answer to use.
 */
struct kd_states {
	const struct kd_model *model;
	struct kd_walk walk;
	kdsm_bdd root;		/* refers to positions of the walk */
	uint32_t *rank;		/* [walk.variables + 1], by level; that of terminals is last */
	/* of a Petri net, [model->bits]: the place of a bit, and the number of the bit */
	struct kd_place_bit {
		uint32_t place, bit;
	} *bit;
};

/* The rank of an edge's node; of a terminal: model->bits */
static inline uint32_t kd_rank(const struct kd_states *states, kdsm_bdd e)
{
	return states->rank[kd_variable(&states->walk.node[kd_number(e)])];
}

/*
 * fired.c: count the pairs of a state and a transition of the net that is enabled in it. Return
 * 0 or -ENOMEM.
 */
int kd_states_fired(struct kd_states *states, mpz_t fired);

/*
 * tokens.c: find the largest number of tokens of a place of the net in a state. Return 0 or
 * -ENOMEM.
 */
int kd_states_place(struct kd_states *states, uint64_t *most);

#endif /* KD_REACH_ANSWERS_H */
