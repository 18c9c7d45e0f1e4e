// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The Boolean operations. Each is the textbook recursion (Brace, Rudell, Bryant, DAC 1990;
 * with complement edges as in Sylvan): terminal cases, normal form, cache lookup,
 * cofactors, recursion, new node. Quantifiers, relational products and substitution have
 * files of their own.
 */
#include <stdlib.h>

#include "bdd/bdd.h"

/* Decide the conjunctions that need no node. */
static inline bool and_known(kdsm_bdd a, kdsm_bdd b, kdsm_bdd *result)
{
	if (a == b || b == KDSM_BDD_TRUE)
		*result = a;
	else if (a == KDSM_BDD_TRUE)
		*result = b;
	else if (kd_terminal(a) || kd_terminal(b) || (a ^ b) == KDSM_BDD_COMPLEMENT)
		*result = KDSM_BDD_FALSE;
	else
		return false;
	return true;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_and, kdsm_bdd, a, kdsm_bdd, b, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd ah, al, bh, bl, high, low, result;
	bool high_known, low_known, low_first;
	struct kd_top ta, tb;
	uint32_t variable;
	struct kd_key key;

	if (and_known(a, b, &result))
		return result;
	if (kd_number(a) > kd_number(b)) {
		kdsm_bdd t = a;

		a = b;
		b = t;
	}

	key = kd_key(KD_OP_AND, a, b, 0);
	if (kd_cache_get(w, &key, &result))
		return result;

	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ a, b }, 2);
	if (!kd_top(w, a, &ta) || !kd_top(w, b, &tb))
		return kd_give_up(w);
	variable = ta.variable < tb.variable ? ta.variable : tb.variable;
	if (!kd_descends(w, variable, above))
		return kd_give_up(w);
	kd_split(&ta, a, variable, &ah, &al);
	kd_split(&tb, b, variable, &bh, &bl);

	low_first = kd_low_first(w, variable);
	if (low_first) {	/* until kd_make(), high means the low half, low the high one */
		kd_exchange(&ah, &al);
		kd_exchange(&bh, &bl);
	}
	high_known = and_known(ah, bh, &high);
	low_known = and_known(al, bl, &low);
	if (!high_known && !low_known)
		KDSM_SPAWN(kd_and, al, bl, variable + 1);
	if (!high_known) {
		high = KDSM_CALL(kd_and, ah, bh, variable + 1);
		if (kd_unlikely(!kd_valid(high))) {
			if (!low_known)
				KDSM_DROP();
			return high;
		}
	}
	if (!low_known) {
		low = high_known ? KDSM_CALL(kd_and, al, bl, variable + 1) : KDSM_SYNC(kd_and);
		if (kd_unlikely(!kd_valid(low)))
			return low;
	}
	if (low_first)
		kd_exchange(&high, &low);
	result = kd_make(w, variable, high, low);
	if (kd_likely(kd_valid(result)))
		kd_cache_put(w, &key, result);
	return result;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_ite, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, c, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_top ta, tb = { KD_NO_VARIABLE, 0, 0 }, tc = tb;
	kdsm_bdd ah, al, bh, bl, ch, cl, high, low, result, complement;
	struct kd_key key;
	uint32_t variable;

	if (a == KDSM_BDD_TRUE || b == c)
		return b;
	if (a == KDSM_BDD_FALSE)
		return c;
	/* If b or c is a or its complement, a decides its value: replace it by a terminal. */
	if (kd_number(a) == kd_number(b))
		b = a == b ? KDSM_BDD_TRUE : KDSM_BDD_FALSE;
	if (kd_number(a) == kd_number(c))
		c = a == c ? KDSM_BDD_FALSE : KDSM_BDD_TRUE;
	if (c == KDSM_BDD_FALSE)
		return KDSM_CALL(kd_and, a, b, above);
	if (b == KDSM_BDD_FALSE)
		return KDSM_CALL(kd_and, a ^ KDSM_BDD_COMPLEMENT, c, above);
	if (b == KDSM_BDD_TRUE)
		return KD_OR(a, c, above);
	if (c == KDSM_BDD_TRUE)
		return KD_OR(a ^ KDSM_BDD_COMPLEMENT, b, above);
	if (b == c)
		return b;
	/* ite(!a, b, c) = ite(a, c, b); ite(a, !b, !c) = !ite(a, b, c) */
	if (a & KDSM_BDD_COMPLEMENT) {
		kdsm_bdd t = b;

		a ^= KDSM_BDD_COMPLEMENT;
		b = c;
		c = t;
	}
	complement = b & KDSM_BDD_COMPLEMENT;
	b ^= complement;
	c ^= complement;

	key = kd_key(KD_OP_ITE, a, b, c);
	if (kd_cache_get(w, &key, &result))
		return result ^ complement;

	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ a, b, c }, 3);
	if (!kd_top(w, a, &ta) || !kd_top(w, b, &tb) || !kd_top(w, c, &tc))
		return kd_give_up(w);
	variable = ta.variable < tb.variable ? ta.variable : tb.variable;
	variable = variable < tc.variable ? variable : tc.variable;
	if (!kd_descends(w, variable, above))
		return kd_give_up(w);
	kd_split(&ta, a, variable, &ah, &al);
	kd_split(&tb, b, variable, &bh, &bl);
	kd_split(&tc, c, variable, &ch, &cl);

	KDSM_SPAWN(kd_ite, al, bl, cl, variable + 1);
	high = KDSM_CALL(kd_ite, ah, bh, ch, variable + 1);
	if (kd_unlikely(!kd_valid(high))) {
		KDSM_DROP();
		return high;
	}
	low = KDSM_SYNC(kd_ite);
	if (kd_unlikely(!kd_valid(low)))
		return low;
	result = kd_make(w, variable, high, low);
	if (kd_unlikely(!kd_valid(result)))
		return result;
	kd_cache_put(w, &key, result);
	return result ^ complement;
}

kdsm_bdd kdsm_bdd_and(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b)
{
	kdsm_bdd result;

	if (!kd_valid(a) || !kd_valid(b))
		return KDSM_BDD_INVALID;
	return and_known(a, b, &result) ? result : KD_OPERATE(worker, kd_and, a, b, 0);
}

kdsm_bdd kdsm_bdd_or(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b)
{
	return kdsm_bdd_not(kdsm_bdd_and(worker, kdsm_bdd_not(a), kdsm_bdd_not(b)));
}

kdsm_bdd kdsm_bdd_ite(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b, kdsm_bdd c)
{
	return kd_valid(a) && kd_valid(b) && kd_valid(c) ? KD_OPERATE(worker, kd_ite, a, b, c, 0) :
	       KDSM_BDD_INVALID;
}

kdsm_bdd kdsm_bdd_xor(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b)
{
	return kdsm_bdd_ite(worker, a, kdsm_bdd_not(b), b);
}

kdsm_bdd kdsm_bdd_variable(struct kdsm_bdd_worker *worker, uint32_t variable)
{
	return kdsm_bdd_make(worker, variable, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
}

/* Whether e depends only on variables behind this one. On failure set w->why. */
static bool below(struct kdsm_bdd_worker *w, kdsm_bdd e, uint32_t variable)
{
	struct kd_top top;

	if (kd_terminal(e))
		return true;
	if (!kd_top(w, e, &top))
		return false;
	if (top.variable > variable)
		return true;
	kd_fail(w, kd_because(-EINVAL, "high or low depends on variable %u, which is not below %u",
			      top.variable, variable));
	return false;
}

kdsm_bdd kdsm_bdd_make(struct kdsm_bdd_worker *worker, uint32_t variable,
		       kdsm_bdd high, kdsm_bdd low)
{
	if (!kd_valid(high) || !kd_valid(low))
		return KDSM_BDD_INVALID;
	if (variable > KDSM_BDD_MAX_VARIABLE)
		return kd_end(worker, kd_failure(kd_variable_above(variable)));
	if (!below(worker, high, variable) || !below(worker, low, variable))
		return kd_end(worker, kd_give_up(worker));
	return kd_end(worker, kd_make(worker, variable, high, low));
}

kdsm_bdd kdsm_bdd_cube(struct kdsm_bdd_worker *worker, const uint32_t *variables,
		       unsigned int count)
{
	kdsm_bdd cube = KDSM_BDD_TRUE;

	while (count--)
		cube = kdsm_bdd_make(worker, variables[count], cube, KDSM_BDD_FALSE);
	return cube;
}

int kdsm_bdd_look(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t *variable,
		  kdsm_bdd *high, kdsm_bdd *low)
{
	struct kd_top top;

	*variable = KD_NO_VARIABLE;
	*high = KDSM_BDD_INVALID;
	*low = KDSM_BDD_INVALID;
	if (!kd_valid(a))
		return kd_invalid_edge();
	if (kd_terminal(a))
		return kd_because(-EINVAL, "the function is constant");
	if (!kd_top(worker, a, &top))
		return worker->why;
	*variable = top.variable;
	*high = top.high;
	*low = top.low;
	return 0;
}

int kdsm_bdd_evaluate(struct kdsm_bdd_worker *worker, kdsm_bdd a,
		      const uint8_t *values, uint32_t count)
{
	uint32_t above = 0;
	struct kd_top top;

	while (kd_valid(a) && !kd_terminal(a)) {
		if (!kd_top(worker, a, &top) || !kd_descends(worker, top.variable, above))
			return worker->why;
		if (top.variable >= count)
			return kd_because(-EINVAL,
					  "the value depends on variable %u, and %u are given",
					  top.variable, count);
		above = top.variable + 1;
		a = values[top.variable] ? top.high : top.low;
	}
	return kd_valid(a) ? a == KDSM_BDD_TRUE : kd_invalid_edge();
}
