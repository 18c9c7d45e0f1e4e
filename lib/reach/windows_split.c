// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The first windows. The states visited so far, which all nodes have, are split by the value of a
 * bit, and each part again, until every node has a part. The condition that makes a part is the
 * node's window, also for states that will be found later. All nodes compute the same windows,
 * because all have the same states.
 */
#include "windows.h"

/* Give the states of a window, and its part, without the literal to another window. */
static int divide(struct kd_search *s, struct kd_window *from, struct kd_window *to,
		  uint64_t literal)
{
	kdsm_bdd *cube = &s->windows->arrived;	/* a collection keeps it */
	int r;

	to->part = KDSM_BDD_FALSE;
	to->states = KDSM_BDD_FALSE;
	if (literal == KD_NO_LITERAL)	/* a single state: the other node gets no work */
		return 0;
	r = kd_windows_cube(s, literal, cube);
	if (r == 0)
		r = kd_windows_and(s, from->states, *cube ^ KDSM_BDD_COMPLEMENT, &to->states);
	if (r == 0)
		r = kd_windows_and(s, from->states, *cube, &from->states);
	if (r == 0)
		r = kd_windows_and(s, from->part, *cube ^ KDSM_BDD_COMPLEMENT, &to->part);
	return r < 0 ? r : kd_windows_and(s, from->part, *cube, &from->part);
}

/* Divide a window, and its part, among so many nodes. */
static int split(struct kd_search *s, struct kd_window *window, unsigned int nodes)
{
	unsigned int keep = (nodes + 1) / 2, give = nodes / 2;
	uint64_t literal;
	int r;

	if (nodes == 1)
		return 0;
	r = kd_windows_choose(s, window->part, keep, give, &literal);
	if (r == 0)
		r = divide(s, window, window + keep, literal);
	if (r == 0)
		r = split(s, window, keep);
	return r < 0 ? r : split(s, window + keep, give);
}

int kd_windows_split(struct kd_search *s)
{
	struct kd_window *window = s->windows->window;
	unsigned int nodes = s->windows->team->nodes, i;
	int r;

	window->part = s->visited;
	window->states = KDSM_BDD_TRUE;
	r = split(s, window, nodes);
	for (i = 0; i < nodes; i++)
		window[i].part = KDSM_BDD_FALSE;
	return r;
}
