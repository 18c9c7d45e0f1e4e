// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An order that grows place by place, as Noack's does (A. Noack, "A ZBDD Package for Efficient
 * Model Checking of Petri Nets", 1999): the next place is the one that its transitions pull
 * most. A transition is begun when one of its places is in the order. A begun transition pulls
 * its other places, and the fewer they are, the stronger. A transition that is not begun pushes its
 * places away, because each transition in progress makes BDDs larger. The unit of a place pulls,
 * too, when another place of the unit is in the order. Pulls are divided by the square root of
 * the number of the place's transitions, or else places with many transitions would come first.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "order.h"

/* A pull of 1; random numbers below NOISE decide between places that are pulled equally */
#define PULL	(INT64_C(1) << 32)
#define NOISE	1024

#define MANY	16	/* places of a transition from which on its pull has steps */

#define NONE	UINT32_MAX

struct growing {
	const struct kd_graph *graph;
	struct kd_queue queue;		/* the places that are pulled */
	uint32_t *left;			/* by transition: its places that are not in the order */
	uint32_t *root;			/* by place: the divisor of pulls, times 256 */
	bool *begun;			/* by transition */
	bool *placed;			/* by place: it is in the order */
	uint32_t *first, *next;		/* by unit, and by place: the places of a unit that waits */
};

static uint32_t degree(const struct kd_graph *g, uint32_t v)
{
	return g->start[v + 1] - g->start[v];
}

/* 256 times the square root, rounded up */
static uint32_t root_of(uint32_t number)
{
	uint64_t root = 0;

	while (root * root < (uint64_t)number << 16)
		root++;
	return root;
}

static int growing_new(struct growing *w, const struct kd_graph *g, const struct kd_net *net,
		       const struct kd_growth *growth, uint64_t *random)
{
	uint32_t v, i;

	*w = (struct growing){ .graph = g };
	w->left = malloc((g->vertices + 1) * sizeof(*w->left));
	w->root = malloc((g->places + 1) * sizeof(*w->root));
	w->begun = calloc(g->vertices + 1, sizeof(*w->begun));
	w->placed = calloc(g->places + 1, sizeof(*w->placed));
	w->first = malloc((net->units + 1) * sizeof(*w->first));
	w->next = malloc((g->places + 1) * sizeof(*w->next));
	if (kd_queue_new(&w->queue, g->places) < 0 || !w->left || !w->root || !w->begun ||
	    !w->placed || !w->first || !w->next)
		return -ENOMEM;
	memset(w->first, 0xff, net->units * sizeof(*w->first));
	for (v = 0; v < g->places; v++) {
		w->root[v] = root_of(degree(g, v) + 1);
		w->queue.priority[v] = kd_random_below(random, NOISE);
		w->next[v] = w->first[net->place[v].unit];
		w->first[net->place[v].unit] = v;
	}
	for (; v < g->vertices; v++) {
		w->left[v] = degree(g, v);
		for (i = g->start[v]; i < g->start[v + 1] && w->left[v] > 1; i++)
			w->queue.priority[g->neighbour[i]] -=
				PULL / 4 * growth->push / w->root[g->neighbour[i]];
	}
	return 0;
}

static void growing_destroy(struct growing *w)
{
	kd_queue_destroy(&w->queue);
	free(w->left);
	free(w->root);
	free(w->begun);
	free(w->placed);
	free(w->first);
	free(w->next);
}

/*
 * How a begun transition pulls each of the places that are left. The last one is pulled twice as
 * much. Transitions with many places pull in steps of powers of two, or else each of their places
 * would take a visit to all others.
 */
static int64_t strength(uint32_t left)
{
	while (left > MANY && left & (left - 1))
		left &= left - 1;
	return left > 1 ? PULL / left : 2 * PULL;
}

/* A place of the transition has come into the order. */
static void advance(struct growing *w, uint32_t transition, unsigned int push)
{
	const struct kd_graph *g = w->graph;
	uint32_t left = w->left[transition]--, i, place;
	int64_t more;

	if (left == 1)
		return;
	more = strength(left - 1) - (w->begun[transition] ? strength(left) : -PULL / 4 * push);
	w->begun[transition] = true;
	for (i = g->start[transition]; more && i < g->start[transition + 1]; i++) {
		place = g->neighbour[i];
		if (!w->placed[place])
			kd_queue_raise(&w->queue, place, more / w->root[place]);
	}
}

static void begin_unit(struct growing *w, uint32_t unit, unsigned int pull)
{
	uint32_t place;

	for (place = w->first[unit]; pull && place != NONE; place = w->next[place])
		if (!w->placed[place])
			kd_queue_raise(&w->queue, place, PULL * pull / 256);
	w->first[unit] = NONE;
}

int kd_order_grow(const struct kd_graph *g, const struct kd_net *net,
		  const struct kd_growth *growth, uint64_t *random, uint32_t *order)
{
	uint32_t first = g->places ? kd_random_below(random, g->places) : 0, count, i, place;
	struct growing w;
	int r = growing_new(&w, g, net, growth, random);

	for (count = 0; r == 0 && count < g->places; count++) {
		while (!w.queue.count && w.placed[first])
			first = (first + 1) % g->places;
		place = w.queue.count ? kd_queue_take(&w.queue) : first;
		order[count] = place;
		w.placed[place] = true;
		for (i = g->start[place]; i < g->start[place + 1]; i++)
			advance(&w, g->neighbour[i], growth->push);
		begin_unit(&w, net->place[place].unit, growth->unit);
	}
	growing_destroy(&w);
	return r;
}
