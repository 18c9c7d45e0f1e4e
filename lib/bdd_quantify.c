// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Quantification, and the conjunction that is quantified as it is made (J. Burch,
 * E. Clarke, D. Long, "Representing Circuits More Efficiently in Symbolic Model
 * Checking", DAC 1991: the relational product), so that it never exists as a whole.
 */
#include "bdd_int.h"

/*
 * Go on in the cube to the variable or the first one behind it. At its end *top is of
 * KD_NO_VARIABLE. False: the worker has an error.
 */
static bool go_to(struct kdsm_bdd_worker *w, kdsm_bdd *cube, uint32_t variable,
		  struct kd_top *top)
{
	uint32_t above = 0;

	for (;;) {
		top->variable = KD_NO_VARIABLE;
		if (*cube == KDSM_BDD_TRUE)
			return true;
		if (kd_terminal(*cube)) {
			kd_fail(w, -EINVAL);
			return false;
		}
		if (!kd_top(w, *cube, top) || !kd_descends(w, top->variable, above))
			return false;
		if (top->variable >= variable)
			return true;
		above = top->variable + 1;
		*cube = top->high;
	}
}

/* cube is a conjunction of variables. */
static kdsm_bdd exists(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd cube,
		       uint32_t above)
{
	struct kd_top ta, tc;
	kdsm_bdd high, low, result;
	struct kd_key key;

	if (kd_terminal(a) || cube == KDSM_BDD_TRUE)
		return a;
	if (!kd_top(w, a, &ta) || !kd_descends(w, ta.variable, above) ||
	    !go_to(w, &cube, ta.variable, &tc))
		return KDSM_BDD_INVALID;
	if (tc.variable == KD_NO_VARIABLE)
		return a;

	key = kd_key(KD_OP_EXISTS, a, cube, 0);
	if (kd_cache_get(w, &key, &result))
		return result;

	if (tc.variable == ta.variable)
		cube = tc.high;
	high = exists(w, ta.high, cube, ta.variable + 1);
	if (!kd_valid(high))
		return high;
	if (tc.variable == ta.variable && high == KDSM_BDD_TRUE) {
		result = high;
	} else {
		low = exists(w, ta.low, cube, ta.variable + 1);
		if (!kd_valid(low))
			return low;
		result = tc.variable == ta.variable ?
			 kd_or(w, high, low, ta.variable + 1) :
			 kd_make(w, ta.variable, high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

static kdsm_bdd and_exists(struct kdsm_bdd_worker *w, kdsm_bdd a, kdsm_bdd b, kdsm_bdd cube,
			   uint32_t above)
{
	kdsm_bdd ah, al, bh, bl, high, low, result;
	struct kd_top ta, tb, tc;
	struct kd_key key;
	uint32_t variable;

	if (a == KDSM_BDD_FALSE || b == KDSM_BDD_FALSE || (a ^ b) == KDSM_BDD_COMPLEMENT)
		return KDSM_BDD_FALSE;
	if (a == b || b == KDSM_BDD_TRUE)
		return exists(w, a, cube, above);
	if (a == KDSM_BDD_TRUE)
		return exists(w, b, cube, above);
	if (kd_number(a) > kd_number(b)) {
		kdsm_bdd t = a;

		a = b;
		b = t;
	}
	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ a, b }, 2);
	if (!kd_top(w, a, &ta) || !kd_top(w, b, &tb))
		return KDSM_BDD_INVALID;
	variable = ta.variable < tb.variable ? ta.variable : tb.variable;
	if (!kd_descends(w, variable, above) || !go_to(w, &cube, variable, &tc))
		return KDSM_BDD_INVALID;
	if (tc.variable == KD_NO_VARIABLE)
		return kd_and(w, a, b, above);

	key = kd_key(KD_OP_AND_EXISTS, a, b, cube);
	if (kd_cache_get(w, &key, &result))
		return result;

	kd_split(&ta, a, variable, &ah, &al);
	kd_split(&tb, b, variable, &bh, &bl);
	if (tc.variable == variable)
		cube = tc.high;
	high = and_exists(w, ah, bh, cube, variable + 1);
	if (!kd_valid(high))
		return high;
	if (tc.variable == variable && high == KDSM_BDD_TRUE) {
		result = high;
	} else {
		low = and_exists(w, al, bl, cube, variable + 1);
		if (!kd_valid(low))
			return low;
		result = tc.variable == variable ? kd_or(w, high, low, variable + 1) :
			 kd_make(w, variable, high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

kdsm_bdd kdsm_bdd_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube)
{
	return kd_valid(a) && kd_valid(cube) ? exists(worker, a, cube, 0) : KDSM_BDD_INVALID;
}

kdsm_bdd kdsm_bdd_forall(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube)
{
	return kdsm_bdd_not(kdsm_bdd_exists(worker, kdsm_bdd_not(a), cube));
}

kdsm_bdd kdsm_bdd_and_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
			     kdsm_bdd cube)
{
	return kd_valid(a) && kd_valid(b) && kd_valid(cube) ?
	       and_exists(worker, a, b, cube, 0) : KDSM_BDD_INVALID;
}
