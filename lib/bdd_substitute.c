// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What puts something else into a function: compose, a function for a variable; and
 * restrict, anything at all where nobody cares (O. Coudert, J. Madre, "A Unified
 * Framework for the Formal Verification of Sequential Circuits", ICCAD 1990).
 */
#include "bdd_int.h"

static kdsm_bdd restrict_to(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd care, uint32_t above)
{
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
		return KDSM_BDD_INVALID;
	if (tc.variable < ta.variable) {
		/* a does not depend on it, and neither shall the result */
		care = kd_or(w, tc.high, tc.low, tc.variable + 1);
		result = kd_valid(care) ? restrict_to(w, a, care, tc.variable + 1) : care;
	} else {
		kd_split(&tc, care, ta.variable, &ch, &cl);
		if (ch == KDSM_BDD_FALSE) {
			result = restrict_to(w, ta.low, cl, ta.variable + 1);
		} else if (cl == KDSM_BDD_FALSE) {
			result = restrict_to(w, ta.high, ch, ta.variable + 1);
		} else {
			high = restrict_to(w, ta.high, ch, ta.variable + 1);
			if (!kd_valid(high))
				return high;
			low = restrict_to(w, ta.low, cl, ta.variable + 1);
			if (!kd_valid(low))
				return low;
			result = kd_make(w, ta.variable, high, low);
		}
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

static kdsm_bdd compose(struct kdsm_bdd_worker *w, kdsm_bdd a, uint32_t variable, kdsm_bdd b,
			uint32_t above)
{
	kdsm_bdd high, low, top, result, complement = a & KDSM_BDD_COMPLEMENT;
	struct kd_top ta;
	struct kd_key key;

	if (kd_terminal(a))
		return a;
	a ^= complement;
	if (!kd_top(w, a, &ta) || !kd_descends(w, ta.variable, above))
		return KDSM_BDD_INVALID;
	if (ta.variable > variable)
		return a ^ complement;

	key = kd_key(KD_OP_COMPOSE, a, b, variable);
	if (kd_cache_get(w, &key, &result))
		return result ^ complement;

	if (ta.variable == variable) {
		result = kdsm_bdd_ite(w, b, ta.high, ta.low);
	} else {
		/* b may depend on variables above this one: ite puts it where it belongs */
		high = compose(w, ta.high, variable, b, ta.variable + 1);
		if (!kd_valid(high))
			return high;
		low = compose(w, ta.low, variable, b, ta.variable + 1);
		if (!kd_valid(low))
			return low;
		top = kd_make(w, ta.variable, KDSM_BDD_TRUE, KDSM_BDD_FALSE);
		result = kdsm_bdd_ite(w, top, high, low);
	}
	if (!kd_valid(result))
		return result;
	kd_cache_put(w, &key, result);
	return result ^ complement;
}

kdsm_bdd kdsm_bdd_restrict(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd care)
{
	return kd_valid(a) && kd_valid(care) ? restrict_to(worker, a, care, 0) : KDSM_BDD_INVALID;
}

kdsm_bdd kdsm_bdd_compose(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint32_t variable,
			  kdsm_bdd b)
{
	if (!kd_valid(a) || !kd_valid(b))
		return KDSM_BDD_INVALID;
	if (variable > KDSM_BDD_MAX_VARIABLE)
		return kd_fail(worker, -EINVAL);
	return compose(worker, a, variable, b, 0);
}
