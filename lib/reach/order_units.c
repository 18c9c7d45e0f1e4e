// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order of the places by units (H. Garavel, "Nested-Unit Petri Nets", 2019): a unit is a part
 * of the net that behaves like a sequential process, so its places stay together. FORCE
 * places the units by the transitions between them, and then the places within each unit by those
 * that they have with places of any unit. A place without a unit is a unit of its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"
#include "order.h"

/* Call for each pair of a transition of g and a unit of its places, but once for each pair. */
static void for_pairs(const struct kd_graph *g, const struct kd_net *net, uint32_t *seen,
		      void (*pair)(struct kd_graph *q, uint32_t transition, uint32_t unit),
		      struct kd_graph *q)
{
	uint32_t v, i, unit;

	for (unit = 0; unit < net->units; unit++)
		seen[unit] = 0;
	for (v = g->places; v < g->vertices; v++)
		for (i = g->start[v]; i < g->start[v + 1]; i++) {
			unit = net->place[g->neighbour[i]].unit;
			if (seen[unit] == v)	/* v is not 0, because there is a place */
				continue;
			seen[unit] = v;
			pair(q, v - g->places + net->units, unit);
		}
}

static void count_pair(struct kd_graph *q, uint32_t transition, uint32_t unit)
{
	q->start[transition + 2]++;
	q->start[unit + 2]++;
}

/* start[v + 1] is where the next neighbour of v goes. */
static void add_pair(struct kd_graph *q, uint32_t transition, uint32_t unit)
{
	q->neighbour[q->start[transition + 1]++] = unit;
	q->neighbour[q->start[unit + 1]++] = transition;
}

/* The graph of units and transitions. The caller destroys it even on failure. */
static int unit_graph(const struct kd_graph *g, const struct kd_net *net, struct kd_graph *q)
{
	uint32_t *seen = malloc((net->units + 1) * sizeof(*seen)), i;

	q->places = net->units;
	q->vertices = net->units + g->vertices - g->places;
	q->start = calloc((size_t)q->vertices + 2, sizeof(*q->start));
	q->neighbour = malloc((g->start[g->vertices] + 1) * sizeof(*q->neighbour));
	if (seen && q->start && q->neighbour) {
		for_pairs(g, net, seen, count_pair, q);
		for (i = 2; i < q->vertices + 2; i++)
			q->start[i] += q->start[i - 1];
		for_pairs(g, net, seen, add_pair, q);
	}
	i = seen && q->start && q->neighbour;
	free(seen);
	return i ? 0 : -ENOMEM;
}

/* Sort the places by the positions of their units; those of a unit keep their order. */
static int sort_by_units(const struct kd_net *net, const uint32_t *units, uint32_t *order)
{
	uint32_t *next = calloc((size_t)net->units + 1, sizeof(*next));
	uint32_t *sorted = malloc((net->places + 1) * sizeof(*sorted)), i, at = 0, size;

	for (i = 0; next && i < net->places; i++)
		next[net->place[i].unit]++;
	for (i = 0; next && i < net->units; i++) {
		size = next[units[i]];
		next[units[i]] = at;
		at += size;
	}
	for (i = 0; next && sorted && i < net->places; i++)
		sorted[next[net->place[order[i]].unit]++] = order[i];
	for (i = 0; next && sorted && i < net->places; i++)
		order[i] = sorted[i];
	at = next && sorted;
	free(next);
	free(sorted);
	return at ? 0 : -ENOMEM;
}

int kd_order_units(const struct kd_graph *g, const struct kd_net *net, uint32_t *order)
{
	uint32_t *units = malloc((net->units + 1) * sizeof(*units)), i;
	struct kd_graph q = { 0 };
	int r = units ? unit_graph(g, net, &q) : -ENOMEM;

	for (i = 0; r == 0 && i < net->units; i++)
		units[i] = i;
	if (r == 0)
		r = kd_order_force(&q, units);
	if (r == 0)
		r = sort_by_units(net, units, order);
	if (r == 0)
		r = kd_order_force(g, order);
	if (r == 0)
		r = sort_by_units(net, units, order);
	kd_graph_destroy(&q);
	free(units);
	return r;
}
