// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An order improved by random moves: two places are exchanged, or one is moved. A move stays if
 * it makes the spans of the transitions shorter, or not longer than by a threshold that falls to 0
 * (G. Dueck, T. Scheuer, "Threshold Accepting", 1990). The best order is kept.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "order.h"

/* Work of all moves, in arcs and places looked at: for each place, and at most */
#define WORK		UINT64_C(300000)
#define MOST_WORK	UINT64_C(30000000)

#define THRESHOLD	0.3	/* the first threshold, over the mean span of a transition */
#define NEAR		64	/* longest distance of nine moves in ten, in places */

struct annealing {
	const struct kd_graph *graph;
	uint32_t *order, *position;
	double *cost, *after;		/* by vertex: of a transition, now and after the move */
	uint32_t *seen, move;		/* seen: by vertex, the last move that touched it */
	uint32_t *touched, count;	/* transitions of the places that this move displaces */
	uint64_t work;
};

static int annealing_new(struct annealing *a, const struct kd_graph *g, uint32_t *order)
{
	*a = (struct annealing){ .graph = g };
	a->order = malloc((g->places + 1) * sizeof(*a->order));
	a->position = malloc((g->places + 1) * sizeof(*a->position));
	a->cost = malloc((g->vertices + 1) * sizeof(*a->cost));
	a->after = malloc((g->vertices + 1) * sizeof(*a->after));
	a->seen = calloc(g->vertices + 1, sizeof(*a->seen));
	a->touched = malloc((g->vertices + 1) * sizeof(*a->touched));
	if (!a->order || !a->position || !a->cost || !a->after || !a->seen || !a->touched)
		return -ENOMEM;
	memcpy(a->order, order, g->places * sizeof(*order));
	return 0;
}

static void annealing_destroy(struct annealing *a)
{
	free(a->order);
	free(a->position);
	free(a->cost);
	free(a->after);
	free(a->seen);
	free(a->touched);
}

/* Move the place at a position to another one; those between move up. */
static void shift(struct annealing *a, uint32_t from, uint32_t to)
{
	uint32_t place = a->order[from], step = from < to ? 1 : -1;

	for (; from != to; from += step) {
		a->order[from] = a->order[from + step];
		a->position[a->order[from]] = from;
	}
	a->order[to] = place;
	a->position[place] = to;
}

static void exchange(struct annealing *a, uint32_t from, uint32_t to)
{
	uint32_t place = a->order[from];

	a->order[from] = a->order[to];
	a->order[to] = place;
	a->position[a->order[from]] = from;
	a->position[place] = to;
}

static void touch(struct annealing *a, uint32_t position)
{
	const struct kd_graph *g = a->graph;
	uint32_t place = a->order[position], i, t;

	for (i = g->start[place]; i < g->start[place + 1]; i++) {
		t = g->neighbour[i];
		if (a->seen[t] == a->move)
			continue;
		a->seen[t] = a->move;
		a->touched[a->count++] = t;
		a->work += g->start[t + 1] - g->start[t];
	}
	a->work++;
}

/* The sum of the touched transitions' costs, from the positions */
static double sum_after(struct annealing *a)
{
	double sum = 0;
	uint32_t k;

	for (k = 0; k < a->count; k++) {
		a->after[k] = kd_order_span_of(a->graph, a->touched[k], a->position, true);
		sum += a->after[k] - a->cost[a->touched[k]];
	}
	return sum;
}

/* One move; return by how much it changed the sum of the costs. */
static double move(struct annealing *a, uint32_t from, uint32_t to, bool whole, double threshold)
{
	uint32_t at, step = from < to ? 1 : -1, k;
	double more;

	a->move++;
	a->count = 0;
	for (at = from; at != to && whole; at += step)
		touch(a, at);
	if (!whole)
		touch(a, from);
	touch(a, to);
	(whole ? shift : exchange)(a, from, to);
	more = sum_after(a);
	if (more > threshold) {
		(whole ? shift : exchange)(a, to, from);
		return 0;
	}
	for (k = 0; k < a->count; k++)
		a->cost[a->touched[k]] = a->after[k];
	return more;
}

/* Another position; the nearer, the likelier */
static uint32_t other_position(uint32_t places, uint32_t from, uint64_t *random)
{
	uint32_t most = kd_random_below(random, 10) && places > NEAR ? NEAR : places - 1;
	uint32_t by = 1 + kd_random_below(random, 1 + kd_random_below(random, most));

	return (from + (kd_random_below(random, 2) ? by : places - by)) % places;
}

int kd_order_anneal(const struct kd_graph *g, const struct kd_net *net, uint64_t *random,
		    uint32_t *order)
{
	const uint64_t most = g->places < MOST_WORK / WORK ? g->places * WORK : MOST_WORK;
	double sum = 0, best, first, left;
	struct annealing a;
	uint32_t v, from;
	int r = annealing_new(&a, g, order);

	for (v = 0; r == 0 && v < g->places; v++)
		a.position[order[v]] = v;
	for (v = g->places; r == 0 && v < g->vertices; v++) {
		a.cost[v] = kd_order_span_of(g, v, a.position, true);
		sum += a.cost[v];
	}
	first = THRESHOLD * sum / (g->vertices - g->places + 1);
	best = sum;
	while (r == 0 && g->places > 1 && a.work < most && !kd_net_interrupted(net)) {
		left = 1 - (double)a.work / most;
		from = kd_random_below(random, g->places);
		sum += move(&a, from, other_position(g->places, from, random),
			    kd_random_below(random, 2), first * left * left);
		if (sum < best * 0.999999999) {
			best = sum;
			memcpy(order, a.order, g->places * sizeof(*order));
			a.work += g->places / 16;
		}
	}
	annealing_destroy(&a);
	return r;
}
