// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Choose the bit by whose value a set of states is split. A good bit leaves two parts that have
 * few BDD nodes together, because the owners of the parts both compute what these share. The sizes
 * of the parts are in the ratio that the caller wants, because nodes wait for the one with most
 * work (O. Grumberg, T. Heyman, A. Schuster, "A Work-Efficient Distributed Algorithm for
 * Reachability Analysis", CAV 2003; G. Cabodi, P. Camurati, S. Quer, "Improved Reachability
 * Analysis of Large Finite State Machines", ICCAD 1996).
 *
 * No part is computed. A task counts the nodes that both parts of 32 bits have, in two passes over
 * the nodes of the set: upwards, which nodes become constant when a bit has a value; then
 * downwards, which of the others the root still reaches. Nodes that become equal count twice.
 */
#include <stdlib.h>
#include <string.h>

#include "windows.h"

#define GROUP		32	/* bits of one task */
#define BIT_SHIFT	20	/* a choice has its cost above 2 * bit + value */

struct choice {
	struct kd_walk walk;
	kdsm_bdd root;
	unsigned int keep, give;	/* the wanted ratio of the parts */
	uint64_t best;
};

/*
 * Arrays of a task, by position in the walk or by level. Their words have a bit for each value of
 * each bit of the group: value 1 in the lower half, value 0 in the upper one.
 */
struct passes {
	const struct kd_walk *walk;
	uint64_t *high;		/* by level: the values for which a node goes to its high edge */
	uint64_t *low;
	uint64_t *constant;	/* FALSE; after the pass upwards: either constant */
	uint64_t *other;	/* TRUE; after the pass upwards: reached from the root */
	uint64_t count[2 * GROUP];
};

static uint64_t is_false(const struct passes *p, kdsm_bdd e)
{
	return (e & KDSM_BDD_COMPLEMENT ? p->other : p->constant)[kd_number(e)];
}

static uint64_t is_true(const struct passes *p, kdsm_bdd e)
{
	return is_false(p, e ^ KDSM_BDD_COMPLEMENT);
}

static void go_up(struct passes *p)
{
	uint64_t i;

	p->constant[0] = UINT64_MAX;	/* the terminal is FALSE */
	p->other[0] = 0;
	for (i = 1; i <= p->walk->count; i++) {
		const struct kdsm_node *node = &p->walk->node[i];
		kdsm_bdd high = kd_high(node, 0), low = kd_low(node, 0);
		uint64_t not_high = ~p->high[kd_variable(node)];
		uint64_t not_low = ~p->low[kd_variable(node)];

		p->constant[i] = (is_false(p, high) | not_high) & (is_false(p, low) | not_low);
		p->other[i] = (is_true(p, high) | not_high) & (is_true(p, low) | not_low);
	}
}

static void go_down(struct passes *p, kdsm_bdd root)
{
	unsigned int k;
	uint64_t i;

	for (i = 1; i <= p->walk->count; i++) {
		p->constant[i] |= p->other[i];
		p->other[i] = 0;
	}
	p->other[kd_number(root)] = UINT64_MAX;
	for (i = p->walk->count; i; i--) {
		const struct kdsm_node *node = &p->walk->node[i];
		uint64_t reached = p->other[i] & ~p->constant[i];

		for (k = 0; k < 2 * GROUP; k++)
			p->count[k] += reached >> k & 1;
		p->other[kd_number(kd_high(node, 0))] |= reached & p->high[kd_variable(node)];
		p->other[kd_number(kd_low(node, 0))] |= reached & p->low[kd_variable(node)];
	}
}

/* Cost of parts with so many nodes: work that is done twice, and waiting for the larger part */
static uint64_t cost(const struct choice *c, uint64_t kept, uint64_t given)
{
	uint64_t a = kept * c->give, b = given * c->keep;

	return 5 * (kept + given) + 6 * (a > b ? a - b : b - a) / (c->keep + c->give);
}

static void keep_least(uint64_t *best, uint64_t choice)
{
	uint64_t old = __atomic_load_n(best, __ATOMIC_RELAXED);

	while (choice < old)
		if (__atomic_compare_exchange_n(best, &old, choice, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
}

/* Look at so many bits from one on. A bit that has one value in all states splits nothing. */
static void try(struct choice *c, struct passes *p, const uint32_t *variable, uint32_t first,
		unsigned int count)
{
	uint64_t empty, i;
	unsigned int k;

	for (i = 0; i < p->walk->variables; i++) {
		p->high[i] = UINT64_MAX;
		p->low[i] = UINT64_MAX;
		for (k = 0; k < count; k++)
			if (variable[first + k] == p->walk->variable[i]) {
				p->high[i] = ~(UINT64_C(1) << (GROUP + k));
				p->low[i] = ~(UINT64_C(1) << k);
			}
	}
	go_up(p);
	empty = is_false(p, c->root);
	go_down(p, c->root);
	for (k = 0; k < count; k++) {
		uint64_t choice = (uint64_t)(first + k) << 1;

		if ((empty >> k | empty >> (GROUP + k)) & 1)
			continue;
		i = cost(c, p->count[k], p->count[GROUP + k]) << BIT_SHIFT;
		keep_least(&c->best, i | choice | 1);
		i = cost(c, p->count[GROUP + k], p->count[k]) << BIT_SHIFT;
		keep_least(&c->best, i | choice);
	}
}

static kdsm_bdd try_group(struct kd_search *s, struct kdsm_worker *kdsm_worker,
			  struct kdsm_task *kdsm_head, unsigned int number, void *data)
{
	uint32_t first = number * GROUP, left = s->model.bits - first;
	struct choice *c = data;
	struct passes p = { .walk = &c->walk };
	uint64_t nodes = c->walk.count + 1, levels = c->walk.variables;
	uint64_t *words = calloc(2 * (nodes + levels), sizeof(*words));

	(void)kdsm_head;
	if (!words)
		return kd_fail(KDSM_CONTEXT(), -ENOMEM);
	p.constant = words;
	p.other = p.constant + nodes;
	p.high = p.other + nodes;
	p.low = p.high + levels;
	kd_spend(nodes / 2);
	try(c, &p, s->model.variables, first, left < GROUP ? left : GROUP);
	free(words);
	return KDSM_BDD_FALSE;
}

int kd_windows_choose(struct kd_search *s, kdsm_bdd states, unsigned int keep, unsigned int give,
		      uint64_t *literal)
{
	struct choice c = { .root = states, .keep = keep, .give = give, .best = UINT64_MAX };
	kdsm_bdd none;
	int r;

	*literal = KD_NO_LITERAL;
	if (kd_terminal(states) || kd_finish_crossed(s))	/* the team is about to stop */
		return 0;
	r = kd_walk(&c.walk, s->worker, states);
	if (r == 0)
		r = kd_walk_sort(&c.walk, &c.root, 1);
	if (r == 0)
		r = kd_windows_steps(s, try_group, &c, 0, (s->model.bits + GROUP - 1) / GROUP,
				     &none);
	kd_walk_destroy(&c.walk);
	if (r == 0 && c.best != UINT64_MAX)
		*literal = c.best & ((UINT64_C(1) << BIT_SHIFT) - 1);
	return r;
}

int kd_windows_cube(struct kd_search *s, uint64_t literal, kdsm_bdd *cube)
{
	kdsm_bdd x;
	int r;

	if (literal / 2 >= s->model.bits)
		return -EIO;
	do {
		x = kdsm_bdd_make(s->worker, s->model.variables[literal / 2], KDSM_BDD_TRUE,
				  KDSM_BDD_FALSE);
		r = kd_windows_check(s, x);
	} while (r > 0);
	*cube = literal % 2 ? x : x ^ KDSM_BDD_COMPLEMENT;
	return r;
}
