// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * BDD operations of a search in windows. If an operation finds the table full, the node collects
 * garbage in its own store, or lets the table grow, and repeats the operation.
 */
#include "windows.h"

#pragma GCC visibility push(hidden)
/* The union of the results of count steps from first on */
KDSM_TASK_DECLARE(kdsm_bdd, kd_steps, uint64_t, step, uint64_t, data, uint32_t, first,
		  uint32_t, count)
/* a and b; the table then knows how many nodes it has */
KDSM_TASK_DECLARE(kdsm_bdd, kd_meet, kdsm_bdd, a, kdsm_bdd, b)
#pragma GCC visibility pop

int kd_windows_check(struct kd_search *s, kdsm_bdd result)
{
	int r;

	if (kd_valid(result)) {
		s->room.fresh = false;
		return 0;
	}
	kd_end(s->worker, result);
	r = kdsm_bdd_error(s->worker);
	if (r != -ENOSPC)
		return r;
	r = kd_room_make(s);
	return r < 0 ? r : 1;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_steps, uint64_t, step, uint64_t, data, uint32_t, first,
		 uint32_t, count)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kd_windows_step *run = (kd_windows_step *)(uintptr_t)step;
	uint32_t half = (count + 1) / 2;
	kdsm_bdd one, other;

	if (count == 1) {
		one = run(w->store->context, kdsm_worker, kdsm_head, first,
			  (void *)(uintptr_t)data);
		kdsm_table_flush(w->table);
		return one;
	}
	KDSM_SPAWN(kd_steps, step, data, first + half, count - half);
	one = KDSM_CALL(kd_steps, step, data, first, half);
	if (!kd_valid(one)) {
		KDSM_DROP();
		return one;
	}
	other = KDSM_SYNC(kd_steps);
	return kd_valid(other) ? KD_OR(one, other, 0) : other;
}

int kd_windows_steps(struct kd_search *s, kd_windows_step *step, void *data, unsigned int first,
		     unsigned int count, kdsm_bdd *result)
{
	kdsm_bdd all;
	int r;

	r = KD_RUN(s->worker, &all, kd_steps, (uintptr_t)step, (uintptr_t)data, first, count);
	r = r < 0 ? r : kd_windows_check(s, all);
	if (r == 0)
		*result = all;
	return r;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_meet, kdsm_bdd, a, kdsm_bdd, b)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd result = KDSM_CALL(kd_and, a, b, 0);

	kdsm_table_flush(w->table);
	return result;
}

int kd_windows_and(struct kd_search *s, kdsm_bdd a, kdsm_bdd b, kdsm_bdd *result)
{
	kdsm_bdd c;
	int r;

	do {
		r = KD_RUN(s->worker, &c, kd_meet, a, b);
		r = r < 0 ? r : kd_windows_check(s, c);
	} while (r > 0);
	if (r == 0)
		*result = c;
	return r;
}

int kd_windows_or(struct kd_search *s, kdsm_bdd a, kdsm_bdd b, kdsm_bdd *result)
{
	kdsm_bdd neither;
	int r = kd_windows_and(s, a ^ KDSM_BDD_COMPLEMENT, b ^ KDSM_BDD_COMPLEMENT, &neither);

	if (r == 0)
		*result = neither ^ KDSM_BDD_COMPLEMENT;
	return r;
}
