// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transition relations and the relational product, with the renaming of next to
 * current variables folded in (van Dijk, van de Pol, "Sylvan", TACAS 2015; the
 * thesis of Oortwijn, 5.4.4, keeps the variables in an array as here).
 */
#include <stdlib.h>

#include "bdd_int.h"

struct kdsm_relation {
	kdsm_bdd relation;
	unsigned int count;
	/* [0..count): a bit's current variable, and the cube of it and the later */
	struct relation_bit {
		uint32_t variable;
		kdsm_bdd rest;
	} *bits;
};

/* Is this the step at which other nodes are asked, too? */
static inline bool asks_home(const struct kdsm_bdd_worker *w, const struct kd_key *key,
			     unsigned int at)
{
	return !w->alone && w->store->granularity &&
	       at % w->store->granularity == 0 &&
	       kd_opcache_home(w->cache, key) != w->cache->self;
}

static bool get_home(struct kdsm_bdd_worker *w, const struct kd_key *key,
		     kdsm_bdd *result)
{
	int r = kd_opcache_get_home(w->cache, key, result);

	w->home_get++;
	if (r < 0)
		kd_fail(w, r);
	if (r <= 0)
		return false;
	*result &= KD_EDGE;
	w->home_hit++;
	kd_cache_put(w, key, *result);
	return true;
}

static void put_home(struct kdsm_bdd_worker *w, const struct kd_key *key,
		     kdsm_bdd result)
{
	int r = kd_opcache_put_home(w->cache, key, result);

	w->home_put++;
	if (r < 0)
		kd_fail(w, r);
}

/* A relation, and which way it is gone. */
struct way {
	const struct relation_bit *bits;
	unsigned int count, op;		/* KD_OP_SUCCESSORS or KD_OP_PREDECESSORS */
};

static kdsm_bdd product(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b,
			const struct way *rel, unsigned int at, uint32_t above);

/* product(a0, b0) or product(a1, b1) */
static kdsm_bdd either(struct kdsm_bdd_worker *w, kdsm_bdd a0, kdsm_bdd b0,
		       kdsm_bdd a1, kdsm_bdd b1, const struct way *rel,
		       unsigned int at, uint32_t above)
{
	kdsm_bdd first, second;

	first = product(w, a0, b0, rel, at, above);
	if (kd_unlikely(!kd_valid(first)) || first == KDSM_BDD_TRUE)
		return first;
	second = product(w, a1, b1, rel, at, above);
	if (kd_unlikely(!kd_valid(second)))
		return second;
	return kd_or(w, first, second, above);
}

/* Cofactors of part of a relation, which is private and seldom a terminal. */
static inline bool split_relation(struct kdsm_bdd_worker *w, kdsm_bdd b,
				  uint32_t variable, kdsm_bdd *high, kdsm_bdd *low)
{
	struct kdsm_node node;

	*high = b;
	*low = b;
	if (kd_terminal(b))
		return true;
	if (!kd_node_private(w, b, &node))
		return false;
	if (kd_variable(&node) == variable) {
		*high = kd_high(&node, b);
		*low = kd_low(&node, b);
	}
	return true;
}

/*
 * Forward: there is a y such that a(y) and b(y, x'), with x' called x in the result;
 * backward: such that a(y) and b(x, y'), with y' called y; for the bits of rel from the
 * one at on. The other bits of a stay.
 */
static kdsm_bdd product(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b,
			const struct way *rel, unsigned int at, uint32_t above)
{
	uint32_t va = KD_NO_VARIABLE, vb = KD_NO_VARIABLE, variable;
	kdsm_bdd ah, al, bh, bl, high, low, result;
	struct kdsm_node na = { 0, 0 }, nb = { 0, 0 };
	struct kd_key key;
	bool home;

	if (a == KDSM_BDD_FALSE || b == KDSM_BDD_FALSE)
		return KDSM_BDD_FALSE;
	if (a == KDSM_BDD_TRUE && b == KDSM_BDD_TRUE)
		return KDSM_BDD_TRUE;
	/* what is left of b speaks of actions only, and some action is possible */
	if (at == rel->count)
		return a;

	if (!kd_terminal(b)) {
		if (!kd_node_private(w, b, &nb))
			return KDSM_BDD_INVALID;
		vb = kd_variable(&nb);
	}
	if (!kd_terminal(a)) {
		if (!kd_node(w, a, &na))
			return KDSM_BDD_INVALID;
		va = kd_variable(&na);
	}
	variable = va < vb ? va : vb;
	if (!kd_descends(w, variable, above))
		return KDSM_BDD_INVALID;
	variable &= ~UINT32_C(1);	/* next variables belong to their bits */
	while (rel->bits[at].variable < variable)
		if (++at == rel->count)
			return a;

	key = kd_key(rel->op, a, b, rel->bits[at].rest);
	if (kd_cache_get(w, &key, &result))
		return result;
	home = asks_home(w, &key, at);
	if (home) {
		if (get_home(w, &key, &result))
			return result;
		if (kd_unlikely(w->error))
			return KDSM_BDD_INVALID;
	}

	ah = va == variable ? kd_high(&na, a) : a;
	al = va == variable ? kd_low(&na, a) : a;
	bh = vb == variable ? kd_high(&nb, b) : b;
	bl = vb == variable ? kd_low(&nb, b) : b;
	above = variable + 2;
	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ ah, al }, 2);

	if (rel->bits[at].variable != variable) {
		/* a bit that the relation does not speak of, so b is not split */
		high = product(w, ah, b, rel, at, above);
		if (kd_unlikely(!kd_valid(high)))
			return high;
		low = product(w, al, b, rel, at, above);
	} else {
		kdsm_bdd bhh, bhl, blh, bll;

		if (!split_relation(w, bh, variable + 1, &bhh, &bhl) ||
		    !split_relation(w, bl, variable + 1, &blh, &bll))
			return KDSM_BDD_INVALID;
		if (rel->op == KD_OP_PREDECESSORS) {
			/* what is summed over is the next value, and the current one stays */
			kdsm_bdd t = bhl;

			bhl = blh;
			blh = t;
		}
		high = either(w, ah, bhh, al, blh, rel, at + 1, above);
		if (kd_unlikely(!kd_valid(high)))
			return high;
		low = either(w, ah, bhl, al, bll, rel, at + 1, above);
	}
	if (kd_unlikely(!kd_valid(low)))
		return low;
	result = kd_make(w, variable, high, low);
	if (kd_unlikely(!kd_valid(result)))
		return result;
	kd_cache_put(w, &key, result);
	if (home) {
		put_home(w, &key, result);
		if (kd_unlikely(w->error))
			return KDSM_BDD_INVALID;
	}
	return result;
}

kdsm_bdd kdsm_bdd_successors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			     const struct kdsm_relation *relation)
{
	const struct way way = { relation->bits, relation->count, KD_OP_SUCCESSORS };

	return kd_valid(states) ? product(worker, states, relation->relation, &way, 0, 0) : states;
}

kdsm_bdd kdsm_bdd_predecessors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			       const struct kdsm_relation *relation)
{
	const struct way way = { relation->bits, relation->count, KD_OP_PREDECESSORS };

	return kd_valid(states) ? product(worker, states, relation->relation, &way, 0, 0) : states;
}

/* Is the variable of the cube one of the cube's? Goes on in it up to there. */
static int advance(struct kdsm_bdd_worker *w, kdsm_bdd *cube, uint32_t variable)
{
	uint32_t v;
	kdsm_bdd high, low;
	int r;

	while (!kd_terminal(*cube)) {
		r = kdsm_bdd_look(w, *cube, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= variable)
			return v == variable;
		*cube = high;
	}
	return 0;
}

/* Every variable of the relation below first_action must be in the set. */
static int check_support(struct kdsm_bdd_worker *w, kdsm_bdd relation, kdsm_bdd set,
			 uint32_t first_action)
{
	kdsm_bdd cube = kdsm_bdd_support(w, relation);
	kdsm_bdd high, low;
	uint32_t v;
	int r;

	if (!kd_valid(cube))
		return kdsm_bdd_error(w);
	for (; !kd_terminal(cube); cube = high) {
		r = kdsm_bdd_look(w, cube, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= first_action)
			break;
		r = advance(w, &set, v);
		if (r <= 0)
			return r < 0 ? r : -EINVAL;
	}
	return 0;
}

static int collect_bits(struct kdsm_bdd_worker *w, struct kdsm_relation *rel,
			kdsm_bdd set, uint32_t first_action)
{
	unsigned int capacity = 0;
	kdsm_bdd high, low;
	uint32_t v;
	int r;

	for (; !kd_terminal(set); set = high) {
		r = kdsm_bdd_look(w, set, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= first_action)
			return -EINVAL;
		if (rel->count && rel->bits[rel->count - 1].variable == (v & ~1u))
			continue;
		if (rel->count == capacity) {
			void *more;

			capacity = capacity ? 2 * capacity : 64;
			more = reallocarray(rel->bits, capacity, sizeof(*rel->bits));
			if (!more)
				return -ENOMEM;
			rel->bits = more;
		}
		rel->bits[rel->count++].variable = v & ~1u;
		if (!(v & 1)) {
			kdsm_bdd next = high;

			r = advance(w, &next, v + 1);
			if (r < 0)
				return r;
			if (r == 0) {
				/* read only: its next value is its current one */
				kdsm_bdd x = kdsm_bdd_variable(w, v);
				kdsm_bdd y = kdsm_bdd_variable(w, v + 1);
				kdsm_bdd same = kdsm_bdd_not(kdsm_bdd_xor(w, x, y));

				rel->relation = kdsm_bdd_and(w, rel->relation, same);
			}
		}
	}
	return 0;
}

int kdsm_relation_new(struct kdsm_bdd_worker *worker, kdsm_bdd relation,
		      kdsm_bdd variables, uint32_t first_action,
		      struct kdsm_relation **result)
{
	struct kdsm_relation *rel;
	kdsm_bdd set, cube = KDSM_BDD_TRUE;
	bool was_private = worker->private;
	unsigned int i;
	int r;

	rel = calloc(1, sizeof(*rel));
	if (!rel)
		return -ENOMEM;
	rel->relation = relation;
	worker->private = true;
	set = kdsm_bdd_support(worker, variables);
	r = kd_valid(set) ? check_support(worker, relation, set, first_action) :
	    kdsm_bdd_error(worker);
	if (r == 0)
		r = collect_bits(worker, rel, set, first_action);
	for (i = rel->count; r == 0 && i--; ) {
		cube = kdsm_bdd_make(worker, rel->bits[i].variable, cube, KDSM_BDD_FALSE);
		rel->bits[i].rest = cube;
	}
	worker->private = was_private;
	if (r == 0 && (!kd_valid(cube) || !kd_valid(rel->relation)))
		r = kdsm_bdd_error(worker);
	if (r < 0) {
		kdsm_relation_free(rel);
		return r;
	}
	*result = rel;
	return 0;
}

void kdsm_relation_free(struct kdsm_relation *relation)
{
	if (!relation)
		return;
	free(relation->bits);
	free(relation);
}
