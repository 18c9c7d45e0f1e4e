// SPDX-License-Identifier: LGPL-2.1-or-later
/* Choosing an order for the places of a Petri net. The orders are in the files order_*.c. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "internal.h"
#include "order.h"

static void file_order(uint32_t places, uint32_t *order)
{
	uint32_t i;

	for (i = 0; i < places; i++)
		order[i] = i;
}

void kd_order_reverse(uint32_t places, uint32_t *order)
{
	uint32_t i, other;

	for (i = 0; i < places / 2; i++) {
		other = order[i];
		order[i] = order[places - 1 - i];
		order[places - 1 - i] = other;
	}
}

static int make(const struct kd_graph *g, const struct kd_net *net, enum kdsm_reach_order which,
		uint32_t *order)
{
	int r = 0;

	file_order(g->places, order);
	switch (which) {
	case KDSM_REACH_ORDER_CUTHILL_MCKEE:
		r = kd_order_cuthill_mckee(g, order);
		break;
	case KDSM_REACH_ORDER_SLOAN:
	case KDSM_REACH_ORDER_SLOAN_REVERSED:
		r = kd_order_sloan(g, order);
		break;
	case KDSM_REACH_ORDER_FORCE:
	case KDSM_REACH_ORDER_FORCE_REVERSED:
		r = kd_order_force(g, order);
		break;
	case KDSM_REACH_ORDER_UNITS:
	case KDSM_REACH_ORDER_UNITS_REVERSED:
		r = kd_order_units(g, net, order);
		break;
	default:
		break;
	}
	if (which == KDSM_REACH_ORDER_REVERSED || which == KDSM_REACH_ORDER_SLOAN_REVERSED ||
	    which == KDSM_REACH_ORDER_FORCE_REVERSED || which == KDSM_REACH_ORDER_UNITS_REVERSED)
		kd_order_reverse(g->places, order);
	return r;
}

/*
 * How well saturation is expected to do with an order, less is better: the mean over the
 * transitions of their span, weighted by the distance of their first place from the end
 * (weighted event span: R. Siminiceanu, G. Ciardo, "New metrics for static variable ordering
 * in decision diagrams", TACAS 2006).
 */
static double rate(const struct kd_graph *g, const uint32_t *order, uint32_t *position)
{
	uint32_t i;

	for (i = 0; i < g->places; i++)
		position[order[i]] = i;
	return kd_order_weighted_span(g, position);
}

/* Make an order, and tell how good it is from its begin and from its end. */
static int rate_both(const struct kd_graph *g, const struct kd_net *net,
		     enum kdsm_reach_order which, double rating[2])
{
	uint32_t *order = malloc((g->places + 1) * sizeof(*order));
	uint32_t *position = malloc((g->places + 1) * sizeof(*position));
	int r = order && position ? make(g, net, which, order) : -ENOMEM;

	if (r == 0) {
		rating[0] = rate(g, order, position);
		kd_order_reverse(g->places, order);
		rating[1] = rate(g, order, position);
	}
	free(order);
	free(position);
	return r;
}

int kd_order_turn(const struct kd_graph *g, uint32_t *order)
{
	uint32_t *position = malloc((g->places + 1) * sizeof(*position));
	double rating;

	if (!position)
		return -ENOMEM;
	rating = rate(g, order, position);
	kd_order_reverse(g->places, order);
	if (rate(g, order, position) > rating)
		kd_order_reverse(g->places, order);
	free(position);
	return 0;
}

struct rated {
	enum kdsm_reach_order which;
	double rating;
};

static void insert(struct rated *rated, unsigned int *count, enum kdsm_reach_order which,
		   double rating)
{
	unsigned int k;

	for (k = (*count)++; k && rated[k - 1].rating > rating; k--)
		rated[k] = rated[k - 1];
	rated[k] = (struct rated){ which, rating };
}

/* Of an order and its reverse, the one that is rated better; both of the file's order */
static int list(const struct kd_graph *g, const struct kd_net *net,
		enum kdsm_reach_order which[KD_ORDERS], unsigned int *count)
{
	static const enum kdsm_reach_order pair[][2] = {
		{ KDSM_REACH_ORDER_FORCE, KDSM_REACH_ORDER_FORCE_REVERSED },
		{ KDSM_REACH_ORDER_SLOAN, KDSM_REACH_ORDER_SLOAN_REVERSED },
		{ KDSM_REACH_ORDER_UNITS, KDSM_REACH_ORDER_UNITS_REVERSED },
	};
	/* without units, or with a place in each, that order is no other than FORCE */
	unsigned int pairs = net->units < net->places ? 3 : 2, i;
	struct rated rated[KD_ORDERS];
	double rating[2];
	bool reversed;
	int r;

	*count = 0;
	for (i = 0; i < pairs; i++) {
		r = rate_both(g, net, pair[i][0], rating);
		if (r < 0)
			return r;
		reversed = rating[1] <= rating[0];
		insert(rated, count, pair[i][reversed], rating[reversed]);
	}
	r = rate_both(g, net, KDSM_REACH_ORDER_FILE, rating);
	if (r < 0)
		return r;
	insert(rated, count, KDSM_REACH_ORDER_FILE, rating[0]);
	insert(rated, count, KDSM_REACH_ORDER_REVERSED, rating[1]);
	for (i = 0; i < *count; i++)
		which[i] = rated[i].which;
	return 0;
}

int kd_net_orders(struct kd_net *net)
{
	struct kd_graph g;
	int r;

	r = kd_graph_new(&g, net);
	if (r == 0)
		r = list(&g, net, net->best, &net->orders);
	kd_graph_destroy(&g);
	return r;
}

int kd_net_order(const struct kd_net *net, enum kdsm_reach_order which, uint32_t *order)
{
	struct kd_graph g;
	int r;

	if (which >= KDSM_REACH_ORDER_FURTHER)
		return kd_net_order_variant(net, which - KDSM_REACH_ORDER_FURTHER, order);
	r = kd_graph_new(&g, net);
	if (r == 0)
		r = make(&g, net, which, order);
	kd_graph_destroy(&g);
	return r;
}
