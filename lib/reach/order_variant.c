// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * More orders of a net than the few of net->best, for searches that try many orders at the same
 * time. Each variant begins at random, and the schemes take turns: no scheme is good for all
 * nets, so another scheme helps more than another random start of the same scheme.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "internal.h"
#include "order.h"

enum scheme {
	GROWN_AND_ANNEALED,
	GROWN_REVERSED,		/* in the direction that is rated worse: the rating may be wrong */
	ANNEALED,
	GROWN,
	SCHEMES
};

static const struct kd_growth growths[] = {
	{ .push = 2, .unit = 1 },
	{ .push = 1, .unit = 2 },
	{ .push = 4, .unit = 0 },
	{ .push = 2, .unit = 0 },
	{ .push = 0, .unit = 1 },
};

#define GROWTHS	(sizeof(growths) / sizeof(*growths))

static void shuffle(uint32_t places, uint64_t *random, uint32_t *order)
{
	uint32_t i, other;

	for (i = 0; i < places; i++) {
		other = kd_random_below(random, i + 1);
		order[i] = order[other];
		order[other] = i;
	}
}

static int make(const struct kd_graph *g, const struct kd_net *net, unsigned int number,
		uint32_t *order)
{
	const struct kd_growth *growth = &growths[number / SCHEMES % GROWTHS];
	const enum scheme scheme = number % SCHEMES;
	uint64_t random = kd_hash(number, 0);
	int r;

	if (scheme == ANNEALED) {
		shuffle(g->places, &random, order);
		r = kd_order_force(g, order);
	} else {
		r = kd_order_grow(g, net, growth, &random, order);
	}
	if (r == 0)
		r = kd_order_turn(g, order);
	if (r == 0 && scheme == GROWN_REVERSED)
		kd_order_reverse(g->places, order);
	if (r == 0 && (scheme == ANNEALED || scheme == GROWN_AND_ANNEALED))
		r = kd_order_anneal(g, net, &random, order);
	return r;
}

int kd_net_order_variant(const struct kd_net *net, unsigned int number, uint32_t *order)
{
	struct kd_graph g;
	int r;

	r = kd_graph_new(&g, net);
	if (r == 0)
		r = make(&g, net, number, order);
	kd_graph_destroy(&g);
	return r;
}
