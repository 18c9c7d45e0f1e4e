// SPDX-License-Identifier: LGPL-2.1-or-later
/* Choosing an order for the places of a Petri net. The orders are in the files order_*.c. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"
#include "order.h"

static void file_order(uint32_t places, uint32_t *order)
{
	uint32_t i;

	for (i = 0; i < places; i++)
		order[i] = i;
}

static void reverse(uint32_t places, uint32_t *order)
{
	uint32_t i, other;

	for (i = 0; i < places / 2; i++) {
		other = order[i];
		order[i] = order[places - 1 - i];
		order[places - 1 - i] = other;
	}
}

static int make(const struct kd_graph *g, enum kdsm_reach_order which, uint32_t *order)
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
	default:
		break;
	}
	if (which == KDSM_REACH_ORDER_REVERSED || which == KDSM_REACH_ORDER_SLOAN_REVERSED ||
	    which == KDSM_REACH_ORDER_FORCE_REVERSED)
		reverse(g->places, order);
	return r;
}

/*
 * How well saturation is expected to do with an order, less is better: the mean over the
 * transitions of their span, weighted by the distance of their first place from the end
 * (weighted event span: R. Siminiceanu, G. Ciardo, "New metrics for static variable ordering
 * in decision diagrams", TACAS 2006).
 */
static int rate(const struct kd_graph *g, enum kdsm_reach_order which, double *rating)
{
	uint32_t *order = malloc((g->places + 1) * sizeof(*order));
	uint32_t *position = malloc((g->places + 1) * sizeof(*position)), i;
	int r = order && position ? make(g, which, order) : -ENOMEM;

	for (i = 0; r == 0 && i < g->places; i++)
		position[order[i]] = i;
	if (r == 0)
		*rating = kd_order_weighted_span(g, position);
	free(order);
	free(position);
	return r;
}

static int orders(const struct kd_graph *g, enum kdsm_reach_order which[KD_ORDERS],
		  unsigned int *count)
{
	/* of each pair the better one; of the file's order both */
	static const enum kdsm_reach_order candidates[][2] = {
		{ KDSM_REACH_ORDER_FORCE, KDSM_REACH_ORDER_FORCE_REVERSED },
		{ KDSM_REACH_ORDER_SLOAN, KDSM_REACH_ORDER_SLOAN_REVERSED },
		{ KDSM_REACH_ORDER_FILE, KDSM_REACH_ORDER_FILE },
		{ KDSM_REACH_ORDER_REVERSED, KDSM_REACH_ORDER_REVERSED },
	};
	double ratings[KD_ORDERS], rating = 0, other = 0;
	unsigned int i, k;
	int r;

	*count = 0;
	for (i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
		r = rate(g, candidates[i][0], &rating);
		if (r == 0)
			r = rate(g, candidates[i][1], &other);
		if (r < 0)
			return r;
		rating = other < rating ? other : rating;
		for (k = (*count)++; k && ratings[k - 1] > rating; k--) {
			ratings[k] = ratings[k - 1];
			which[k] = which[k - 1];
		}
		ratings[k] = rating;
		which[k] = candidates[i][rating == other];
	}
	return 0;
}

int kd_net_orders(const struct kd_net *net, enum kdsm_reach_order which[KD_ORDERS],
		  unsigned int *count)
{
	struct kd_graph g;
	int r;

	r = kd_graph_new(&g, net);
	if (r == 0)
		r = orders(&g, which, count);
	kd_graph_destroy(&g);
	return r;
}

int kd_net_order(const struct kd_net *net, enum kdsm_reach_order which, uint32_t *order)
{
	enum kdsm_reach_order best[KD_ORDERS];
	unsigned int count;
	struct kd_graph g;
	int r;

	r = kd_graph_new(&g, net);
	if (r == 0 && which == KDSM_REACH_ORDER_AUTO) {
		r = orders(&g, best, &count);
		which = best[0];
	}
	if (r == 0)
		r = make(&g, which, order);
	kd_graph_destroy(&g);
	return r;
}
