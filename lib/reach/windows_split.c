// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Choose the windows. The states visited so far, which all nodes have, are split by the value of a
 * variable, and each half again, until every node has a part. The condition that makes a part is
 * the node's window, also for states that will be found later. A good variable leaves two parts
 * that have few BDD nodes together, because what the parts share is computed twice. The parts are
 * of similar sizes, because the owner of the smaller one waits for the other (O. Grumberg,
 * T. Heyman, A. Schuster, "A Work-Efficient Distributed Algorithm for Reachability Analysis",
 * CAV 2003; G. Cabodi, P. Camurati, S. Quer, "Improved Reachability Analysis of Large Finite State
 * Machines", ICCAD 1996). The nodes try different variables.
 */
#include <stdlib.h>

#include "windows.h"

#define CHOICES		KD_GANG_WORDS	/* splits that one step of the gang decides */
#define BIT_SHIFT	20		/* a choice has its cost above the index of its bit */

/* A part that is to be split, and the best choice so far */
struct choice {
	kdsm_bdd part;
	uint64_t best;
};

static void keep_least(uint64_t *best, uint64_t choice)
{
	uint64_t old = __atomic_load_n(best, __ATOMIC_RELAXED);

	while (choice < old)
		if (__atomic_compare_exchange_n(best, &old, choice, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
}

/* Cost of two parts with so many nodes: work that is done twice, and waiting for the larger one */
static uint64_t cost(uint64_t high, uint64_t low)
{
	return 5 * (high + low) + 3 * (high > low ? high - low : low - high);
}

/* Try one of this node's bits. A bit that does not split the part is no choice. */
static kdsm_bdd try_bit(struct kd_search *s, struct kdsm_worker *kdsm_worker,
			struct kdsm_task *kdsm_head, unsigned int number, void *data)
{
	struct choice *choice = data;
	uint32_t bit = s->windows->team->node + number * s->windows->team->nodes;
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	kdsm_bdd x = kd_make(w, s->model.variables[bit], KDSM_BDD_TRUE, KDSM_BDD_FALSE);
	uint64_t nodes[2];
	kdsm_bdd side;
	int i, r;

	if (kd_finish_crossed(s))	/* the team is about to stop */
		return KDSM_BDD_FALSE;
	for (i = 0; i < 2; i++, x ^= KDSM_BDD_COMPLEMENT) {
		if (!kd_valid(x))
			return x;
		side = KDSM_CALL(kd_and, choice->part, x, 0);
		if (!kd_valid(side) || side == KDSM_BDD_FALSE)
			return side;
		r = kdsm_bdd_count_nodes(w, side, &nodes[i]);
		if (r < 0)
			return kd_fail(w, r);
	}
	keep_least(&choice->best, cost(nodes[0], nodes[1]) << BIT_SHIFT | bit);
	return KDSM_BDD_FALSE;
}

static int least(void *context, uint64_t *mine, const uint64_t *theirs)
{
	unsigned int i;

	(void)context;
	for (i = 0; i < CHOICES; i++)
		if (mine[i] > theirs[i])
			mine[i] = theirs[i];
	return 0;
}

/* Try this node's bits for a part: all together, or one by one if the table has no room. */
static int try_all(struct kd_search *s, kdsm_bdd part, uint64_t *best)
{
	uint32_t nodes = s->windows->team->nodes, done = 0, own, count;
	struct choice choice = { part, UINT64_MAX };
	kdsm_bdd none;
	int r = 0;

	own = (s->model.bits + nodes - 1 - s->windows->team->node) / nodes;
	count = own;
	while (r >= 0 && done < own) {
		r = kd_windows_steps(s, try_bit, &choice, done, count, &none);
		if (r == 0)
			done += count;
		else
			count = 1;
	}
	*best = choice.best;
	return r;
}

/* Find the best bits for at most CHOICES parts, on all nodes together. */
static int choose(struct kd_search *s, const struct kd_window *window, unsigned int count,
		  uint64_t *best)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < CHOICES; i++)
		best[i] = UINT64_MAX;
	for (i = 0; r == 0 && i < count; i++)
		r = try_all(s, window[i].part, &best[i]);
	if (r == 0)
		r = kd_gang_gather(s->windows->team, best, least, NULL);
	return r < 0 ? r : kd_gang_scatter(s->windows->team, best);
}

/* Split part and window of one node by a choice; another one gets the states without the bit. */
static int split(struct kd_search *s, struct kd_window *from, struct kd_window *to,
		 uint64_t choice)
{
	uint32_t bit = choice & ((UINT64_C(1) << BIT_SHIFT) - 1);
	kdsm_bdd x;
	int r;

	to->part = KDSM_BDD_FALSE;
	to->states = KDSM_BDD_FALSE;
	if (choice == UINT64_MAX)	/* a single state: the other node gets no work */
		return 0;
	if (bit >= s->model.bits)
		return -EIO;
	do {
		x = kdsm_bdd_make(s->worker, s->model.variables[bit], KDSM_BDD_TRUE,
				  KDSM_BDD_FALSE);
		r = kd_windows_check(s, x);
	} while (r > 0);
	s->windows->arrived = x;	/* a collection keeps it */
	if (r == 0)
		r = kd_windows_and(s, from->states, x ^ KDSM_BDD_COMPLEMENT, &to->states);
	if (r == 0)
		r = kd_windows_and(s, from->states, x, &from->states);
	if (r == 0)
		r = kd_windows_and(s, from->part, x ^ KDSM_BDD_COMPLEMENT, &to->part);
	return r < 0 ? r : kd_windows_and(s, from->part, x, &from->part);
}

int kd_windows_split(struct kd_search *s)
{
	struct kd_window *window = s->windows->window;
	unsigned int nodes = s->windows->team->nodes, done, more, i, n;
	uint64_t best[CHOICES];
	int r = 0;

	window[0].part = s->visited;
	window[0].states = KDSM_BDD_TRUE;
	for (done = 1; r == 0 && done < nodes; done += more) {
		more = done < nodes - done ? done : nodes - done;
		for (i = 0; r == 0 && i < more; i += CHOICES) {
			n = more - i < CHOICES ? more - i : CHOICES;
			r = choose(s, window + i, n, best);
			while (r == 0 && n--)
				r = split(s, &window[i + n], &window[done + i + n], best[n]);
		}
	}
	for (i = 0; i < nodes; i++)
		window[i].part = KDSM_BDD_FALSE;
	return r;
}
