// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Quantification, and the relational product: a conjunction that is quantified while it is
 * computed, so that the whole conjunction is never stored (J. Burch, E. Clarke, D. Long,
 * "Representing Circuits More Efficiently in Symbolic Model Checking", DAC 1991). The
 * product with a transition relation is in relation.c.
 */
#include "bdd/bdd.h"

/*
 * Advance *cube to its first variable that is not below variable, and load that node into
 * *top. At the end of the cube top->variable is KD_NO_VARIABLE. On failure return false and
 * set w->why.
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
			kd_fail(w, kd_because(-EINVAL, "a set of variables is no cube"));
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

#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(kdsm_bdd, kd_exists, kdsm_bdd, a, kdsm_bdd, cube, uint32_t, above)
KDSM_TASK_DECLARE(kdsm_bdd, kd_and_exists, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, cube,
		  uint32_t, above)
#pragma GCC visibility pop

/* cube is a conjunction of variables. */
KDSM_TASK_DEFINE(kdsm_bdd, kd_exists, kdsm_bdd, a, kdsm_bdd, cube, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd high, low, result;
	struct kd_top ta, tc;
	struct kd_key key;

	if (kd_terminal(a) || cube == KDSM_BDD_TRUE)
		return a;
	if (!kd_top(w, a, &ta) || !kd_descends(w, ta.variable, above) ||
	    !go_to(w, &cube, ta.variable, &tc))
		return kd_give_up(w);
	if (tc.variable == KD_NO_VARIABLE)
		return a;

	key = kd_key(KD_OP_EXISTS, a, cube, 0);
	if (kd_cache_get(w, &key, &result))
		return result;

	if (tc.variable == ta.variable)
		cube = tc.high;
	KDSM_SPAWN(kd_exists, ta.low, cube, ta.variable + 1);
	high = KDSM_CALL(kd_exists, ta.high, cube, ta.variable + 1);
	if (!kd_valid(high)) {
		KDSM_DROP();
		return high;
	}
	if (tc.variable == ta.variable && high == KDSM_BDD_TRUE) {
		KDSM_DROP();
		result = high;
	} else {
		low = KDSM_SYNC(kd_exists);
		if (!kd_valid(low))
			return low;
		result = tc.variable == ta.variable ? KD_OR(high, low, ta.variable + 1) :
			 kd_make(w, ta.variable, high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_and_exists, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, cube,
		 uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd ah, al, bh, bl, high, low, result;
	struct kd_top ta, tb, tc;
	struct kd_key key;
	uint32_t variable;

	if (a == KDSM_BDD_FALSE || b == KDSM_BDD_FALSE || (a ^ b) == KDSM_BDD_COMPLEMENT)
		return KDSM_BDD_FALSE;
	if (a == b || b == KDSM_BDD_TRUE)
		return KDSM_CALL(kd_exists, a, cube, above);
	if (a == KDSM_BDD_TRUE)
		return KDSM_CALL(kd_exists, b, cube, above);
	if (kd_number(a) > kd_number(b)) {
		kdsm_bdd t = a;

		a = b;
		b = t;
	}
	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ a, b }, 2);
	if (!kd_top(w, a, &ta) || !kd_top(w, b, &tb))
		return kd_give_up(w);
	variable = ta.variable < tb.variable ? ta.variable : tb.variable;
	if (!kd_descends(w, variable, above) || !go_to(w, &cube, variable, &tc))
		return kd_give_up(w);
	if (tc.variable == KD_NO_VARIABLE)
		return KDSM_CALL(kd_and, a, b, above);

	key = kd_key(KD_OP_AND_EXISTS, a, b, cube);
	if (kd_cache_get(w, &key, &result))
		return result;

	kd_split(&ta, a, variable, &ah, &al);
	kd_split(&tb, b, variable, &bh, &bl);
	if (tc.variable == variable)
		cube = tc.high;
	KDSM_SPAWN(kd_and_exists, al, bl, cube, variable + 1);
	high = KDSM_CALL(kd_and_exists, ah, bh, cube, variable + 1);
	if (!kd_valid(high)) {
		KDSM_DROP();
		return high;
	}
	if (tc.variable == variable && high == KDSM_BDD_TRUE) {
		KDSM_DROP();
		result = high;
	} else {
		low = KDSM_SYNC(kd_and_exists);
		if (!kd_valid(low))
			return low;
		result = tc.variable == variable ? KD_OR(high, low, variable + 1) :
			 kd_make(w, variable, high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

kdsm_bdd kdsm_bdd_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube)
{
	return kd_valid(a) && kd_valid(cube) ? KD_OPERATE(worker, kd_exists, a, cube, 0) :
	       KDSM_BDD_INVALID;
}

kdsm_bdd kdsm_bdd_forall(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd cube)
{
	return kdsm_bdd_not(kdsm_bdd_exists(worker, kdsm_bdd_not(a), cube));
}

kdsm_bdd kdsm_bdd_and_exists(struct kdsm_bdd_worker *worker, kdsm_bdd a, kdsm_bdd b,
			     kdsm_bdd cube)
{
	return kd_valid(a) && kd_valid(b) && kd_valid(cube) ?
	       KD_OPERATE(worker, kd_and_exists, a, b, cube, 0) : KDSM_BDD_INVALID;
}
