// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The early end of a search (options.stop_at_violation), in which only node 0 searches. It looks at
 * the states found: they violate a property, or include a deadlock, or decide a formula. Then the
 * search ends with the current slice (search.c).
 *
 * Rounds of saturation may take long. So it runs in slices of steps, and node 0 looks at what a
 * slice has found. A slice begins where its round began, and finds its earlier results in the
 * operation cache; each slice is twice as long as the one before. A portfolio of orders has
 * slices of its own.
 */
#include "formula.h"
#include "internal.h"

#define SHARE	4		/* looks take this part of the thread's CPU time at most, */
#define FREE	100000000	/* or so many ns */

/* The slices of a portfolio begin with as many steps. */
void kd_early_begin(struct kd_search *s)
{
	if (s->options->stop_at_violation && s->saturation)
		s->early.slice = kd_first_slice;
}

void kd_early_continue(struct kd_search *s)
{
	s->early.slice *= 2;
	kd_portfolio_slice(s);
}

static bool property_violated(const struct kd_search *s)
{
	unsigned int i;

	for (i = 0; s->verdict && i < s->model.properties; i++)
		if (s->verdict[i].violated)
			return true;
	return false;
}

/*
 * A look that finds no room in the table knows nothing. The search then collects garbage, and
 * the next look has room.
 */
static void look_for_deadlock(struct kd_search *s, kdsm_bdd fresh)
{
	kdsm_bdd dead;

	if (!s->options->deadlocks || s->early.deadlock)
		return;
	if (kd_trace_deadlocks(s, fresh, false, &dead) == 0)
		s->early.deadlock = dead != KDSM_BDD_FALSE;
}

bool kd_early_look(struct kd_search *s, kdsm_bdd fresh, kdsm_bdd all)
{
	bool violated = property_violated(s), open = true;
	/* The CPU time does not depend on what else the machine does. */
	uint64_t began = kd_thread_time();

	if (!s->options->stop_at_violation)
		return false;
	if (!violated && s->early.spent < began / SHARE + FREE) {
		look_for_deadlock(s, fresh);
		violated = s->early.deadlock;
		if (!violated && s->formulas)
			violated = kd_formulas_look(s, all, &open);
		s->early.spent += kd_thread_time() - began;
	}
	/* formulas that are decided end the search if nothing else was asked */
	return violated || !(open || s->options->deadlocks || s->model.properties);
}
