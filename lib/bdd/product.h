/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of a relational product, for the product itself (relation.c) and for saturation
 * (reach/saturate.c), which does more with the result of every step.
 */
#ifndef KD_BDD_PRODUCT_H
#define KD_BDD_PRODUCT_H

#include "bdd/bdd.h"

/* Whether another node has the home part of a key */
static inline bool kd_has_other_home(const struct kdsm_bdd_worker *w, const struct kd_key *key)
{
	return !w->alone && kd_opcache_home(w->cache, key) != w->cache->self;
}

/*
 * Tell whether this step shares its result through the home part: at every granularity-th
 * bit, if the home is another node.
 */
static inline bool kd_asks_home(const struct kdsm_bdd_worker *w, const struct kd_key *key,
				unsigned int at)
{
	return !w->alone && w->store->granularity &&
	       at % w->store->granularity == 0 && kd_has_other_home(w, key);
}

static inline bool kd_product_none(kdsm_bdd a, kdsm_bdd b)
{
	return a == KDSM_BDD_FALSE || b == KDSM_BDD_FALSE;
}

/* Whether kd_either needs at most one product. If so, leave its operands in *a0 and *b0. */
static inline bool kd_either_one(kdsm_bdd *a0, kdsm_bdd *b0, kdsm_bdd a1, kdsm_bdd b1)
{
	if (kd_product_none(a1, b1) || (*a0 == a1 && *b0 == b1))
		return true;
	if (!kd_product_none(*a0, *b0))
		return false;
	*a0 = a1;
	*b0 = b1;
	return true;
}

/* Split part of a relation at variable. The part is private and seldom a terminal. */
static inline bool kd_split_relation(struct kdsm_bdd_worker *w, kdsm_bdd b,
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

/* The operands of a product, split at the topmost variable of both. */
struct kd_operands {
	kdsm_bdd high_a, low_a, high_b, low_b;
	uint32_t variable;	/* a current variable, or KD_NO_VARIABLE */
};

/* Load both operands and split them. Return false on failure: the caller gives up. */
static inline bool kd_split_operands(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b,
				     uint32_t above, struct kd_operands *o)
{
	struct kdsm_node node_a = { 0, 0 }, node_b = { 0, 0 };
	uint32_t va = KD_NO_VARIABLE, vb = KD_NO_VARIABLE;

	if (!kd_terminal(b)) {
		if (!kd_node_private(w, b, &node_b))
			return false;
		vb = kd_variable(&node_b);
	}
	if (!kd_terminal(a)) {
		if (!kd_node(w, a, &node_a))
			return false;
		va = kd_variable(&node_a);
	}
	o->variable = va < vb ? va : vb;
	if (!kd_descends(w, o->variable, above))
		return false;
	o->variable &= ~UINT32_C(1);	/* a next variable belongs to the bit of its current one */
	o->high_a = va == o->variable ? kd_high(&node_a, a) : a;
	o->low_a = va == o->variable ? kd_low(&node_a, a) : a;
	o->high_b = vb == o->variable ? kd_high(&node_b, b) : b;
	o->low_b = vb == o->variable ? kd_low(&node_b, b) : b;
	return true;
}

/*
 * Look for the result in the own part of the cache and, if *home is true, in the home part
 * of the key, which all nodes share. Return 1 if found, 0 if absent, or a negative errno.
 */
static inline int kd_find_result(struct kdsm_bdd_worker *w, const struct kd_key *key, uint32_t at,
				 bool *home, kdsm_bdd *result)
{
	*home = false;
	if (kd_cache_get(w, key, result))
		return 1;
	*home = kd_asks_home(w, key, at);
	return *home ? kd_home_get(w, key, result) : 0;
}

static inline int kd_keep_result(struct kdsm_bdd_worker *w, const struct kd_key *key, bool home,
				 kdsm_bdd result)
{
	kd_cache_put(w, key, result);
	return home ? kd_home_put(w, key, result) : 0;
}

/*
 * All bits of the relation are done, and what is left of the relation is b, which is true,
 * or depends on actions only, one of which is possible, or is a trap (bdd.h).
 */
static inline kdsm_bdd kd_product_end(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b,
				      uint32_t backward)
{
	struct kdsm_node node;

	if (kd_likely(b == KDSM_BDD_TRUE || !w->store->traps))
		return a;
	if (backward)
		return KDSM_BDD_FALSE;
	return kd_node_private(w, b, &node) ? kd_trapped(kd_variable(&node)) : kd_give_up(w);
}

#endif /* KD_BDD_PRODUCT_H */
