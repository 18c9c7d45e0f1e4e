// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Saturation (G. Ciardo, G. Luettgen, R. Siminiceanu, "Saturation: an Efficient Iteration
 * Strategy for Symbolic State-Space Generation", TACAS 2001; for BDDs and any partition of
 * a relation: T. van Dijk, "Sylvan: Multi-core Decision Diagrams", thesis, 2016).
 *
 * Relations are sorted by their top variable. Relations with the same top variable form a
 * group. A set is saturated from group g on if no relation of group g or of a later group
 * leads out of it. A relation of these groups leaves all variables above that of g
 * unchanged. So a set whose node is above the variable of g is saturated child by child;
 * the children are tasks, and their results are in the operation cache. Any other set is
 * first saturated from group g + 1 on. Then the successors by the relations of g are added,
 * and both steps repeat until no new state is found. So relations far from the root finish
 * with small parts of the BDD before other relations see the result, and intermediate
 * results never become a large BDD.
 *
 * The reachable states are the least set that contains the initial states and is saturated
 * from group 0 on. The search computes that set in one round for each group, from the last
 * group up. The root of a round starts the task, and all nodes steal its parts. Between
 * rounds there is no task anywhere, as with the other strategies. The operation cache tells
 * a round which sets an earlier round has saturated.
 *
 * A task that computes successors checks the trap first, so the search learns that a net is
 * not 1-safe before any state with a second token on a place is made. The set is then a
 * part of a set of states, below some of its nodes; the variables above those nodes do not
 * matter for the trap.
 */
#include <stdlib.h>

#include "internal.h"

struct kd_saturation {
	struct group {
		uint32_t variable, first, count;
	} *group;			/* sorted by variable */
	uint32_t groups;
	uint32_t *relation;		/* sorted by group; a group's relations begin at first */
};

#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(struct kd_found, kd_saturate, kdsm_bdd, set, uint32_t, group, uint32_t, above)
#pragma GCC visibility pop

static struct kd_key key_of(kdsm_bdd set, uint32_t group)
{
	return kd_key(KD_OP_SATURATE, set, group, 0);
}

static struct kd_found failed(kdsm_bdd failure)
{
	return (struct kd_found){ failure, 0 };
}

/* Take the relations of the group in order, each from the states found up to then. */
static struct kd_found fire(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			    kdsm_bdd set, const struct kd_saturation *order, uint32_t group)
{
	const struct group *g = &order->group[group];
	struct kd_found one;
	uint32_t i;

	for (i = g->first; i < g->first + g->count; i++) {
		one = kd_successors(kdsm_worker, kdsm_head, set, order->relation[i]);
		if (!kd_valid(one.states))
			return one;
		if (one.unsafe)
			return (struct kd_found){ set, one.unsafe };
		set = KD_OR(set, one.states, 0);
		if (!kd_valid(set))
			break;
	}
	return (struct kd_found){ set, 0 };
}

/* Saturate a set from the group on. The set has no node above the group's variable. */
static struct kd_found saturate_here(struct kdsm_worker *kdsm_worker,
				     struct kdsm_task *kdsm_head, kdsm_bdd set,
				     const struct kd_saturation *order, uint32_t group)
{
	struct kd_found found = { set, 0 };

	do {
		set = found.states;
		found = KDSM_CALL(kd_saturate, set, group + 1, 0);
		if (kd_valid(found.states) && !found.unsafe)
			found = fire(kdsm_worker, kdsm_head, found.states, order, group);
	} while (kd_valid(found.states) && !found.unsafe && found.states != set);
	return found;
}

KDSM_TASK_DEFINE(struct kd_found, kd_saturate, kdsm_bdd, set, uint32_t, group, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kd_saturation *order = s->saturation;
	struct kd_found high, low;
	struct kd_key key;
	struct kd_top top = { KD_NO_VARIABLE, set, set };
	kdsm_bdd result;

	/* The group may come from another node. */
	if (kd_unlikely(group > order->groups))
		return failed(kd_fail(w, -EIO));
	if (set == KDSM_BDD_FALSE || group == order->groups)
		return (struct kd_found){ set, 0 };
	if (!kd_terminal(set) && (!kd_top(w, set, &top) || !kd_descends(w, top.variable, above)))
		return failed(kd_give_up(w));
	key = key_of(set, group);
	if (kd_cache_get(w, &key, &result))
		return (struct kd_found){ result, 0 };

	if (top.variable < order->group[group].variable) {
		KDSM_SPAWN(kd_saturate, top.low, group, top.variable + 1);
		high = KDSM_CALL(kd_saturate, top.high, group, top.variable + 1);
		if (!kd_valid(high.states) || high.unsafe) {
			KDSM_DROP();
			return high;
		}
		low = KDSM_SYNC(kd_saturate);
		if (!kd_valid(low.states) || low.unsafe)
			return low;
		low.states = kd_make(w, top.variable, high.states, low.states);
	} else {
		low = saturate_here(kdsm_worker, kdsm_head, set, order, group);
	}
	if (kd_valid(low.states) && !low.unsafe) {
		kd_cache_put(w, &key, low.states);
		key = key_of(low.states, group);
		kd_cache_put(w, &key, low.states);
	}
	return low;
}

static uint32_t top_variable(const struct kd_search *s, uint32_t relation)
{
	return s->store->bits[s->model.relation[relation]->at].variable;
}

static int compare_relations(const void *x, const void *y, void *context)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	uint32_t va = top_variable(context, a), vb = top_variable(context, b);

	return va == vb ? (a > b) - (a < b) : (va > vb) - (va < vb);
}

int kd_saturation_begin(struct kd_search *s)
{
	uint32_t relations = s->model.relations, i, v;
	struct kd_saturation *order;

	if (!s->options->saturation)
		return 0;
	order = calloc(1, sizeof(*order));
	s->saturation = order;
	if (!order)
		return -ENOMEM;
	order->group = calloc(relations + 1, sizeof(*order->group));
	order->relation = calloc(relations + 1, sizeof(*order->relation));
	if (!order->group || !order->relation)
		return -ENOMEM;
	for (i = 0; i < relations; i++)
		order->relation[i] = i;
	qsort_r(order->relation, relations, sizeof(*order->relation), compare_relations, s);
	for (i = 0; i < relations; i++) {
		v = top_variable(s, order->relation[i]);
		if (v == KD_NO_VARIABLE)	/* the relation changes no bit */
			break;
		if (!order->groups || order->group[order->groups - 1].variable != v)
			order->group[order->groups++] = (struct group){ v, i, 0 };
		order->group[order->groups - 1].count++;
	}
	return 0;
}

void kd_saturation_end(struct kd_search *s)
{
	if (s->saturation) {
		free(s->saturation->group);
		free(s->saturation->relation);
	}
	free(s->saturation);
}

bool kd_saturation_ended(const struct kd_search *s)
{
	return s->levels >= s->saturation->groups;
}

/* Run round s->levels, which counts from 1. */
int kd_saturation_round(struct kd_search *s, struct kd_found *found)
{
	uint32_t group = s->saturation->groups - s->levels;

	if (s->gang.node != s->gang.root) {
		*found = (struct kd_found){ KDSM_BDD_FALSE, 0 };
		return 0;
	}
	return KD_RUN(s->worker, found, kd_saturate, s->visited, group, 0);
}
