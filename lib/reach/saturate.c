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
 * first saturated from group g + 1 on. Then the relations of g are fired until they find no
 * new state.
 *
 * Firing a relation is a relational product whose steps saturate their results: at every
 * variable, what the product of the children found is saturated from the groups below the
 * variable of the step above on. So the union of the results and of the set is saturated
 * again, and sets of states far from the root are complete before a relation nearer to the
 * root sees them. Intermediate results never become a large BDD.
 *
 * The reachable states are the least set that contains the initial states and is saturated
 * from group 0 on. The search computes that set in one round for each group, from the last
 * group up. Between rounds there is no task, as with the other strategies. The operation cache
 * tells a round which sets an earlier round has saturated.
 *
 * A task may fail: the table is full, or nearly so, or a transition meets a trap. Then it
 * returns the states that it found until then. They are reachable, and saturation keeps the
 * states that it began with. So the round goes on with them, when there is room, or the place
 * is wider. The set that a task saturates is part of a set of states, below some of its nodes;
 * the variables above those nodes do not matter for the trap.
 */
#include <stdlib.h>

#include "bdd/product.h"
#include "internal.h"

#define CALLS_PER_LOOK	16	/* firings between two looks at the steps of the slice */

struct kd_saturation {
	struct group {
		uint32_t variable, first, count;
	} *group;			/* sorted by variable */
	uint32_t groups;
	uint32_t *relation;		/* sorted by group; a group's relations begin at first */
};

#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(struct kd_saturated, kd_saturate, kdsm_bdd, set, uint32_t, group, uint32_t, above)
/*
 * The successors of a by relation b, as kd_product(), saturated from group on. a is saturated
 * from there on already; the variables of the group and of later ones are at least above.
 */
KDSM_TASK_DECLARE(struct kd_saturated, kd_fire, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at,
		  uint32_t, group, uint32_t, above)
/* The union of kd_fire(a0, b0) and kd_fire(a1, b1) */
KDSM_TASK_DECLARE(struct kd_saturated, kd_fire_either, kdsm_bdd, a0, kdsm_bdd, b0, kdsm_bdd, a1,
		  kdsm_bdd, b1, uint32_t, at, uint32_t, group, uint32_t, above)
#pragma GCC visibility pop

static const struct kdsm_relation *fired(const struct kd_model *model, uint32_t relation)
{
	const struct kdsm_relation *merged = model->merged[relation].relation;

	return merged ? merged : model->relation[relation];
}

/* Attempts of a portfolio number their groups differently; the share tells them apart. */
static struct kd_key key_of(const struct kd_search *s, kdsm_bdd set, uint32_t group)
{
	return kd_key(KD_OP_SATURATE, set, group, s->model.share);
}

/* A result, or a failure without states */
static struct kd_saturated outcome(kdsm_bdd edge)
{
	return kd_valid(edge) ? (struct kd_saturated){ edge, 0 } :
	       (struct kd_saturated){ KDSM_BDD_FALSE, edge };
}

/*
 * The node of two results in the order in which they were computed: high first, unless low_first.
 * On failure the states are otherwise, whose failure comes second.
 */
static struct kd_saturated join(struct kdsm_bdd_worker *w, uint32_t variable, bool low_first,
				struct kd_saturated first, struct kd_saturated second,
				kdsm_bdd otherwise)
{
	kdsm_bdd failure = first.failure ? first.failure : second.failure, node;

	if (low_first)
		kd_exchange(&first.states, &second.states);
	node = kd_make(w, variable, first.states, second.states);
	if (kd_valid(node))
		return (struct kd_saturated){ node, failure };
	return (struct kd_saturated){ otherwise, failure ? failure : node };
}

/* Add the states of other to found. */
static void unite(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
		  struct kd_saturated *found, struct kd_saturated other)
{
	kdsm_bdd both = KD_OR(found->states, other.states, 0);

	if (kd_valid(both))
		found->states = both;
	else if (!other.failure)
		other.failure = both;
	if (!found->failure)
		found->failure = other.failure;
}

/* Add the worker's steps to those of the slice, and look whether they are enough. */
static kdsm_bdd count_steps(struct kd_search *s, struct kdsm_bdd_worker *w, uint64_t quota)
{
	uint64_t more = w->tasks - w->told;

	w->told = w->tasks;
	if (quota && __atomic_add_fetch(&s->steps, more, __ATOMIC_RELAXED) >= quota)
		return kd_failure(-ETIME);
	return kd_room_outgrown(s, more) ? kd_failure(-ENOSPC) : 0;
}

/* Why the search should end early, as a failure, or 0 */
static kdsm_bdd interruption(struct kdsm_bdd_worker *w)
{
	static _Thread_local unsigned int calls;
	struct kd_search *s = w->store->context;
	uint64_t quota = __atomic_load_n(&s->quota, __ATOMIC_RELAXED);
	uint64_t stop = __atomic_load_n(&s->room.stop, __ATOMIC_RELAXED);
	kdsm_bdd late = calls++ % CALLS_PER_LOOK == 0 ? count_steps(s, w, quota) : 0;

	if (late)
		return late;
	if (kd_gang_aborted(&s->cluster, NULL))
		return kd_failure(-ECANCELED);
	if (kd_stopping(s))
		return kd_failure(-EINTR);
	if (kd_checkpoint_due(s))
		return kd_failure(-EAGAIN);
	if (kd_table_flushed(s->store->table) >= stop)
		return kd_failure(-ENOSPC);
	return 0;
}

/*
 * Fire the relations of the group, each from the states found up to then, until they find none.
 * The set is saturated from the next group on, and has no node above the group's variable.
 */
static struct kd_saturated fire_group(struct kdsm_worker *kdsm_worker,
				      struct kdsm_task *kdsm_head, kdsm_bdd set, uint32_t group)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct group *g = &s->saturation->group[group];
	struct kd_saturated found = { set, 0 };
	const struct kdsm_relation *relation;
	struct kd_key key = key_of(s, set, group);
	kdsm_bdd first = set, cached;
	uint32_t i;

	if (kd_cache_get(w, &key, &cached))
		return outcome(cached);
	do {
		set = found.states;
		for (i = g->first; i < g->first + g->count && !found.failure; i++) {
			relation = fired(&s->model, s->saturation->relation[i]);
			found.failure = interruption(w);
			if (!found.failure && kd_in_clusters(&s->model))
				/* the only relation, in the only group */
				unite(kdsm_worker, kdsm_head, &found,
				      outcome(kd_successors(kdsm_worker, kdsm_head, found.states,
							    0)));
			else if (!found.failure)
				unite(kdsm_worker, kdsm_head, &found,
				      KDSM_CALL(kd_fire, found.states, relation->relation,
						relation->at, group + 1, 0));
		}
	} while (!found.failure && found.states != set);
	if (!found.failure)
		kd_cache_put(w, &key, found.states);
	if (!found.failure && found.states != first) {
		key = key_of(s, found.states, group);
		kd_cache_put(w, &key, found.states);
	}
	kdsm_table_flush(w->table);
	return found;
}

/* ---- saturating a set ---- */

/* Saturate both children of a node above the group's variable. */
static struct kd_saturated saturate_children(struct kdsm_worker *kdsm_worker,
					     struct kdsm_task *kdsm_head, kdsm_bdd set,
					     const struct kd_top *top, uint32_t group)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	bool low_first = kd_low_first(w, top->variable);
	kdsm_bdd a = low_first ? top->low : top->high, b = low_first ? top->high : top->low;
	struct kd_saturated first, second = { b, 0 };

	KDSM_SPAWN(kd_saturate, b, group, top->variable + 1);
	first = KDSM_CALL(kd_saturate, a, group, top->variable + 1);
	if (first.failure)
		KDSM_DROP();
	else
		second = KDSM_SYNC(kd_saturate);
	return join(w, top->variable, low_first, first, second, set);
}

KDSM_TASK_DEFINE(struct kd_saturated, kd_saturate, kdsm_bdd, set, uint32_t, group,
		 uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kd_saturation *order = s->saturation;
	struct kd_top top = { KD_NO_VARIABLE, set, set };
	struct kd_saturated found;
	struct kd_key key;
	kdsm_bdd cached;

	if (set == KDSM_BDD_FALSE || group == order->groups)
		return outcome(set);
	if (!kd_terminal(set) && (!kd_top(w, set, &top) || !kd_descends(w, top.variable, above)))
		return (struct kd_saturated){ set, kd_give_up(w) };
	key = key_of(s, set, group);
	if (kd_cache_get(w, &key, &cached))
		return outcome(cached);
	if (top.variable < order->group[group].variable) {
		found = saturate_children(kdsm_worker, kdsm_head, set, &top, group);
	} else {
		found = KDSM_CALL(kd_saturate, set, group + 1, 0);
		if (!found.failure)
			found = fire_group(kdsm_worker, kdsm_head, found.states, group);
	}
	if (!found.failure)
		kd_cache_put(w, &key, found.states);
	return found;
}

/* ---- firing a relation ---- */

KDSM_TASK_DEFINE(struct kd_saturated, kd_fire_either, kdsm_bdd, a0, kdsm_bdd, b0, kdsm_bdd, a1,
		 kdsm_bdd, b1, uint32_t, at, uint32_t, group, uint32_t, above)
{
	struct kd_saturated first, second;

	if (kd_either_one(&a0, &b0, a1, b1))
		return KDSM_CALL(kd_fire, a0, b0, at, group, above);
	KDSM_SPAWN(kd_fire, a1, b1, at, group, above);
	first = KDSM_CALL(kd_fire, a0, b0, at, group, above);
	if (first.failure) {
		KDSM_DROP();
		return first;
	}
	second = KDSM_SYNC(kd_fire);	/* changes kdsm_head */
	unite(kdsm_worker, kdsm_head, &first, second);
	return first;
}

/* One step of a product at the variable of o; group is the first below the variable. */
static inline struct kd_saturated fire_step(struct kdsm_worker *kdsm_worker,
					    struct kdsm_task *kdsm_head,
					    const struct kd_operands *o, kdsm_bdd b, bool mentioned,
					    uint32_t at, uint32_t group)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const uint32_t above = o->variable + 2;
	struct kd_saturated first, second = { KDSM_BDD_FALSE, 0 };
	bool low_first = kd_low_first(w, o->variable);
	kdsm_bdd a = low_first ? o->low_a : o->high_a, a2 = low_first ? o->high_a : o->low_a;
	kdsm_bdd bhh, bhl, blh, bll;

	if (!mentioned) {
		KDSM_SPAWN(kd_fire, a2, b, at, group, above);
		first = KDSM_CALL(kd_fire, a, b, at, group, above);
		if (first.failure)
			KDSM_DROP();
		else
			second = KDSM_SYNC(kd_fire);
		return join(w, o->variable, low_first, first, second, KDSM_BDD_FALSE);
	}
	if (!kd_split_relation(w, o->high_b, o->variable + 1, &bhh, &bhl) ||
	    !kd_split_relation(w, o->low_b, o->variable + 1, &blh, &bll))
		return outcome(kd_give_up(w));
	if (low_first) {
		kd_exchange(&bhh, &bhl);
		kd_exchange(&blh, &bll);
	}
	KDSM_SPAWN(kd_fire_either, o->high_a, bhl, o->low_a, bll, at + 1, group, above);
	first = KDSM_CALL(kd_fire_either, o->high_a, bhh, o->low_a, blh, at + 1, group, above);
	if (first.failure)
		KDSM_DROP();
	else
		second = KDSM_SYNC(kd_fire_either);
	return join(w, o->variable, low_first, first, second, KDSM_BDD_FALSE);
}

/*
 * The key of a step. The cube of the relation's bits is a private node, whose index leaves room
 * for the group: kd_saturation_begin() checks that.
 */
static struct kd_key fire_key(const struct kd_saturation *order, kdsm_bdd a, kdsm_bdd b,
			      kdsm_bdd rest, uint32_t group)
{
	uint64_t cube = kd_terminal(rest) ? 0 : kd_number(rest) - KD_PRIVATE_FIRST + 1;

	return kd_key(KD_OP_FIRE, a, b, cube * (order->groups + 1) + group);
}

KDSM_TASK_DEFINE(struct kd_saturated, kd_fire, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at,
		 uint32_t, group, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kd_saturation *order = s->saturation;
	struct kd_saturated found;
	const struct kd_bit *bit;
	struct kd_operands o;
	uint32_t next = group;
	struct kd_key key;
	kdsm_bdd cached;

	if (kd_product_none(a, b))
		return outcome(KDSM_BDD_FALSE);
	if (a == KDSM_BDD_TRUE && b == KDSM_BDD_TRUE)
		return outcome(KDSM_BDD_TRUE);
	bit = w->store->bits + at;
	if (bit->variable == KD_NO_VARIABLE)
		return outcome(kd_product_end(w, a, b, 0));
	if (!kd_split_operands(w, a, b, above, &o))
		return outcome(kd_give_up(w));
	while (bit->variable < o.variable)
		bit++;
	if (bit->variable == KD_NO_VARIABLE)
		return outcome(kd_product_end(w, a, b, 0));
	at = bit - w->store->bits;

	key = fire_key(order, a, b, bit->rest, group);
	if (kd_cache_get(w, &key, &cached))
		return outcome(cached);
	if (kd_unlikely(kd_interrupted(w)))
		return outcome(kd_failure(-EINTR));
	while (next < order->groups && order->group[next].variable < o.variable + 2)
		next++;
	found = fire_step(kdsm_worker, kdsm_head, &o, b, bit->variable == o.variable, at, next);
	while (next-- > group && !found.failure && found.states != KDSM_BDD_FALSE)
		found = fire_group(kdsm_worker, kdsm_head, found.states, next);
	if (!found.failure)
		kd_cache_put(w, &key, found.states);
	return found;
}

/* ---- groups and rounds ---- */

static uint32_t top_variable(const struct kd_search *s, uint32_t relation)
{
	return s->store->bits[fired(&s->model, relation)->at].variable;
}

static int compare_relations(const void *x, const void *y, void *context)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	uint32_t va = top_variable(context, a), vb = top_variable(context, b);

	return va == vb ? (a > b) - (a < b) : (va > vb) - (va < vb);
}

static int sort(struct kd_search *s, struct kd_saturation *order)
{
	uint32_t relations = s->model.relations, i, v;

	order->group = calloc(relations + 1, sizeof(*order->group));
	order->relation = calloc(relations + 1, sizeof(*order->relation));
	if (!order->group || !order->relation)
		return -ENOMEM;
	for (i = 0, relations = 0; i < s->model.relations; i++)
		if (!s->model.merged[i].within)
			order->relation[relations++] = i;
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

int kd_saturation_begin(struct kd_search *s)
{
	int r;

	if (!s->saturates)
		return 0;
	kd_saturation_free(s->saturation);
	s->saturation = calloc(1, sizeof(*s->saturation));
	if (!s->saturation)
		return -ENOMEM;
	r = s->model.merged ? 0 : kd_model_merge(s->worker, &s->model);
	if (r == 0)
		r = sort(s, s->saturation);
	if (r == 0 && s->store->own.count >= KDSM_NUMBER_MASK / (s->saturation->groups + 1) - 1) {
		kd_say(s->message, "%s: is too large for --strategy saturation", s->model.name);
		r = -EFBIG;
	}
	return r;
}

void kd_saturation_free(struct kd_saturation *saturation)
{
	if (!saturation)
		return;
	free(saturation->group);
	free(saturation->relation);
	free(saturation);
}

bool kd_saturation_ended(const struct kd_search *s)
{
	return s->levels >= s->saturation->groups;
}

/*
 * Run round s->levels, which counts from 1. s->found is what an attempt that failed has found.
 */
int kd_saturation_round(struct kd_search *s, struct kd_saturated *found)
{
	uint32_t group = s->saturation->groups - s->levels;
	kdsm_bdd from = s->found == KDSM_BDD_FALSE ? s->visited : s->found;

	*found = (struct kd_saturated){ KDSM_BDD_FALSE, 0 };
	return KD_RUN(s->worker, found, kd_saturate, from, group, 0);
}
