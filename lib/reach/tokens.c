// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The largest number of tokens of one place in the states found. All numbers exist for a node and
 * for its complement, because an edge may mean either. A node is no constant, so some assignment
 * satisfies it, and some its complement.
 */
#include <stdlib.h>
#include <string.h>

#include "answers.h"

/*
 * All places in one pass. A node stores the largest number that the bits of its place from the
 * node's bit on can have, and whether a path from the root leads to the node; both also for the
 * complement. The bits of a place are adjacent, the most significant one first. So the first
 * node of a path that is within a place gives the place's number of tokens, but for the bits
 * before the node, which can be 1 as well.
 */
#define TOKENS	((UINT64_C(1) << KD_MOST_WIDTH) - 1)
#define REACHED	(UINT64_C(1) << KD_MOST_WIDTH)
#define SHIFT	32	/* of the complement's values */

/* Bits first down to last + 1 of a place, all 1 */
static uint64_t ones(uint32_t first, uint32_t last)
{
	return (UINT64_C(1) << first) - (UINT64_C(1) << last);
}

static unsigned int shift_of(kdsm_bdd e)
{
	return e & KDSM_BDD_COMPLEMENT ? SHIFT : 0;
}

/* The largest number that the bits below this one can have, from an edge that is not false */
static uint64_t place_below(const struct kd_states *states, const struct kd_place_bit *bit,
			    kdsm_bdd e)
{
	uint32_t rank = kd_rank(states, e);
	const struct kd_place_bit *next = &states->bit[rank];

	if (rank == states->model->bits || next->place != bit->place)
		return ones(bit->bit, 0);
	return ones(bit->bit, next->bit + 1) +
	       (states->walk.number[kd_number(e)] >> shift_of(e) & TOKENS);
}

static uint64_t place_of(const struct kd_states *states, uint64_t at, kdsm_bdd complement)
{
	const struct kdsm_node *node = &states->walk.node[at];
	const struct kd_place_bit *bit = &states->bit[kd_rank(states, at)];
	kdsm_bdd high = kd_high(node, complement), low = kd_low(node, complement);

	if (high == KDSM_BDD_FALSE)
		return place_below(states, bit, low);
	return (UINT64_C(1) << bit->bit) + place_below(states, bit, high);
}

/* The number of edges that skip a rank is the sum of skipped[] up to the rank. */
struct search {
	struct kd_states *states;
	uint64_t *skipped;
	uint64_t most;
};

/* Follow an edge to its node, which is not false; the ranks before this one are above the edge. */
static void follow(struct search *s, kdsm_bdd e, uint32_t rank)
{
	const struct kd_states *states = s->states;
	const struct kd_place_bit *bit = states->bit;
	uint32_t end = kd_rank(states, e), start = end, width;
	uint64_t tokens;

	/* the bits of a place in which the edge begins are in place_of() */
	if (rank)
		rank += bit[rank - 1].bit;
	states->walk.number[kd_number(e)] |= REACHED << shift_of(e);
	if (end < rank)
		return;
	if (end < states->model->bits) {
		width = states->model->marking->width[bit[end].place];
		start -= width - 1 - bit[end].bit;
		tokens = ones(width, bit[end].bit + 1) +
			 (states->walk.number[kd_number(e)] >> shift_of(e) & TOKENS);
		if (s->most < tokens)
			s->most = tokens;
	}
	s->skipped[rank]++;
	s->skipped[start]--;
}

/* Follow the edges of a node or of its complement, if a path leads there. */
static void follow_both(struct search *s, uint64_t at, kdsm_bdd complement)
{
	const struct kdsm_node *node = &s->states->walk.node[at];
	kdsm_bdd high = kd_high(node, complement), low = kd_low(node, complement);
	uint32_t rank = kd_rank(s->states, at);

	if (!(s->states->walk.number[at] >> shift_of(complement) & REACHED))
		return;
	if (high != KDSM_BDD_FALSE)
		follow(s, high, rank + 1);
	if (low != KDSM_BDD_FALSE)
		follow(s, low, rank + 1);
}

/* A place of which no path has a node can have any number of tokens. */
static void add_skipped(struct search *s)
{
	const struct kd_model *model = s->states->model;
	uint64_t skipping = 0, tokens;
	uint32_t rank;

	for (rank = 0; rank < model->bits; rank++) {
		skipping += s->skipped[rank];
		tokens = ones(model->marking->width[s->states->bit[rank].place], 0);
		if (skipping && s->most < tokens)
			s->most = tokens;
	}
}

int kd_states_place(struct kd_states *states, uint64_t *most)
{
	const struct kd_walk *walk = &states->walk;
	struct search s = { .states = states };
	uint64_t at;

	*most = 0;
	if (states->root == KDSM_BDD_FALSE)
		return 0;
	s.skipped = calloc((uint64_t)states->model->bits + 1, sizeof(*s.skipped));
	if (!s.skipped)
		return -ENOMEM;
	walk->number[0] = 0;
	for (at = 1; at <= walk->count; at++)
		walk->number[at] = place_of(states, at, 0) |
				   place_of(states, at, KDSM_BDD_COMPLEMENT) << SHIFT;
	follow(&s, states->root, 0);
	for (at = walk->count; at; at--) {
		follow_both(&s, at, 0);
		follow_both(&s, at, KDSM_BDD_COMPLEMENT);
	}
	add_skipped(&s);
	free(s.skipped);
	*most = s.most;
	return 0;
}
