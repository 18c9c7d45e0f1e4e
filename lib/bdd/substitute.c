// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Substitution: compose replaces a variable by a function; restrict simplifies a function
 * by changing its values outside a care set (O. Coudert, J. Madre, "A Unified Framework for
 * the Formal Verification of Sequential Circuits", ICCAD 1990).
 */
#include "bdd/bdd.h"

#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(kdsm_bdd, kd_restrict, kdsm_bdd, a, kdsm_bdd, care, uint32_t, above)
KDSM_TASK_DECLARE(kdsm_bdd, kd_compose, kdsm_bdd, a, uint32_t, variable, kdsm_bdd, b,
		  uint32_t, above)
#pragma GCC visibility pop

KDSM_TASK_DEFINE(kdsm_bdd, kd_restrict, kdsm_bdd, a, kdsm_bdd, care, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd ch, cl, high, low, result;
	struct kd_top ta, tc;
	struct kd_key key;

	if (care == KDSM_BDD_FALSE || (a ^ care) == KDSM_BDD_COMPLEMENT)
		return KDSM_BDD_FALSE;
	if (kd_terminal(a) || care == KDSM_BDD_TRUE)
		return a;
	if (a == care)
		return KDSM_BDD_TRUE;

	key = kd_key(KD_OP_RESTRICT, a, care, 0);
	if (kd_cache_get(w, &key, &result))
		return result;

	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ a, care }, 2);
	if (!kd_top(w, a, &ta) || !kd_top(w, care, &tc) || !kd_descends(w, ta.variable, above) ||
	    !kd_descends(w, tc.variable, above))
		return kd_give_up(w);
	kd_split(&tc, care, ta.variable, &ch, &cl);
	if (tc.variable < ta.variable) {
		/* a does not depend on tc.variable, so the result must not depend on it. */
		care = KD_OR(tc.high, tc.low, tc.variable + 1);
		result = kd_valid(care) ? KDSM_CALL(kd_restrict, a, care, tc.variable + 1) : care;
	} else if (ch == KDSM_BDD_FALSE) {
		result = KDSM_CALL(kd_restrict, ta.low, cl, ta.variable + 1);
	} else if (cl == KDSM_BDD_FALSE) {
		result = KDSM_CALL(kd_restrict, ta.high, ch, ta.variable + 1);
	} else {
		KDSM_SPAWN(kd_restrict, ta.low, cl, ta.variable + 1);
		high = KDSM_CALL(kd_restrict, ta.high, ch, ta.variable + 1);
		if (!kd_valid(high)) {
			KDSM_DROP();
			return high;
		}
		low = KDSM_SYNC(kd_restrict);
		if (!kd_valid(low))
			return low;
		result = kd_make(w, ta.variable, high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_compose, kdsm_bdd, a, uint32_t, variable, kdsm_bdd, b,
		 uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd high, low, top, result, complement = a & KDSM_BDD_COMPLEMENT;
	struct kd_top ta;
	struct kd_key key;

	if (kd_terminal(a))
		return a;
	a ^= complement;
	if (!kd_top(w, a, &ta) || !kd_descends(w, ta.variable, above))
		return kd_give_up(w);
	if (ta.variable > variable)
		return a ^ complement;

	key = kd_key(KD_OP_COMPOSE, a, b, variable);
	if (kd_cache_get(w, &key, &result))
		return result ^ complement;

	if (ta.variable == variable) {
		result = KDSM_CALL(kd_ite, b, ta.high, ta.low, 0);
	} else {
		/* b may depend on variables before this one, which kd_ite() puts in order. */
		KDSM_SPAWN(kd_compose, ta.low, variable, b, ta.variable + 1);
		high = KDSM_CALL(kd_compose, ta.high, variable, b, ta.variable + 1);
		if (!kd_valid(high)) {
			KDSM_DROP();
			return high;
		}
		low = KDSM_SYNC(kd_compose);
		if (!kd_valid(low))
			return low;
		top = kd_make(w, ta.variable, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
		result = kd_valid(top) ? KDSM_CALL(kd_ite, top, high, low, 0) : top;
	}
	if (!kd_valid(result))
		return result;
	kd_cache_put(w, &key, result);
	return result ^ complement;
}

kdsm_bdd kdsm_bdd_restrict(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd care)
{
	return kd_valid(a) && kd_valid(care) ? KD_OPERATE(worker, kd_restrict, a, care, 0) :
	       KDSM_BDD_INVALID;
}

kdsm_bdd kdsm_bdd_compose(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t variable,
			  kdsm_bdd b)
{
	if (!kd_valid(a) || !kd_valid(b))
		return KDSM_BDD_INVALID;
	if (variable > KDSM_BDD_MAX_VARIABLE)
		return kd_end(worker, kd_failure(kd_variable_above(variable)));
	return KD_OPERATE(worker, kd_compose, a, variable, b, 0);
}
