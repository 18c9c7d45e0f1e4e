// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parcels: pack BDDs into arrays, and make BDDs from them. parcel.h describes the format. */
#include "bdd/parcel.h"

#define MADE	(UINT64_C(1) << 61)	/* marks a result in parcel->made; no bit of an edge */

KDSM_TASK_DEFINE(kdsm_bdd, kd_pack, kdsm_bdd, e, uint64_t, parcel)
{
	struct kd_parcel *p = (struct kd_parcel *)(uintptr_t)parcel;
	kdsm_bdd complement = e & KDSM_BDD_COMPLEMENT, high, low, position;
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_top top;
	struct kd_key key;

	if (kd_terminal(e))
		return e;
	e ^= complement;
	key = kd_key(KD_OP_PACK, e, p->stamp, 0);
	if (kd_cache_get(w, &key, &position))
		return position ^ complement;
	if (!kd_top(w, e, &top))
		return kd_give_up(w);
	KDSM_SPAWN(kd_pack, top.low, parcel);
	high = KDSM_CALL(kd_pack, top.high, parcel);
	if (!kd_valid(high)) {
		KDSM_DROP();
		return high;
	}
	low = KDSM_SYNC(kd_pack);
	if (!kd_valid(low))
		return low;
	position = __atomic_add_fetch(&p->head->count, 1, __ATOMIC_RELAXED);
	if (position > p->room)
		return kd_fail(w, -E2BIG);
	p->node[position].a = high;
	p->node[position].b = low | (uint64_t)top.variable << KD_VARIABLE_SHIFT;
	kd_cache_put(w, &key, position);
	return position ^ complement;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_unpack, kdsm_bdd, e, uint64_t, parcel, uint32_t, above)
{
	const struct kd_parcel *p = (const struct kd_parcel *)(uintptr_t)parcel;
	kdsm_bdd complement = e & KDSM_BDD_COMPLEMENT, high, low, made;
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	uint64_t position = kd_number(e);
	struct kdsm_node node;
	uint32_t variable;

	if (kd_terminal(e))
		return e;
	if (position > p->head->count)
		return kd_fail(w, -EIO);
	node = p->node[position];
	variable = kd_variable(&node);
	if (!kd_descends(w, variable, above))
		return kd_give_up(w);
	if (p->known && (variable >= p->variables || !p->known[variable]))
		return kd_fail(w, -EIO);
	made = __atomic_load_n(&p->made[position], __ATOMIC_RELAXED);
	if (made)
		return (made & ~MADE) ^ complement;
	w->tasks++;
	kd_step(w);
	high = kd_high(&node, 0);
	low = kd_low(&node, 0);
	if (kd_number(high) >= position || kd_number(low) >= position || high == low)
		return kd_fail(w, -EIO);
	KDSM_SPAWN(kd_unpack, low, parcel, variable + 1);
	high = KDSM_CALL(kd_unpack, high, parcel, variable + 1);
	if (!kd_valid(high)) {
		KDSM_DROP();
		return high;
	}
	low = KDSM_SYNC(kd_unpack);
	if (!kd_valid(low))
		return low;
	made = kd_make(w, variable, high, low);
	if (kd_valid(made))
		__atomic_store_n(&p->made[position], made | MADE, __ATOMIC_RELAXED);
	return kd_valid(made) ? made ^ complement : made;
}
