// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order FORCE (F. Aloul, I. Markov, K. Sakallah, "FORCE: a Fast and Easy-To-Implement
 * Variable-Ordering Heuristic", 2003): every transition pulls its places toward the middle of
 * them. Places are sorted by the mean of these middles, again and again, as long as the span
 * of the transitions shrinks.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "order.h"

#define MOST_ROUNDS	500
#define PATIENCE	10	/* rounds in which the span may fail to shrink */

struct pull {
	double at;
	uint32_t place, was;	/* was: the position before, for equal means */
};

static int compare_pulls(const void *x, const void *y)
{
	const struct pull *a = x, *b = y;

	return a->at == b->at ? (a->was > b->was) - (a->was < b->was) :
	       (a->at > b->at) - (a->at < b->at);
}

double kd_order_span_of(const struct kd_graph *g, uint32_t transition, const uint32_t *position,
			bool weighted)
{
	uint32_t first = UINT32_MAX, last = 0, i, at;

	for (i = g->start[transition]; i < g->start[transition + 1]; i++) {
		at = position[g->neighbour[i]];
		first = at < first ? at : first;
		last = at > last ? at : last;
	}
	if (last < first)
		return 0;
	return !weighted ? last - first :
	       2.0 * (g->places - first) / g->places * (last - first + 1);
}

static double sum_of_spans(const struct kd_graph *g, const uint32_t *position, bool weighted)
{
	double sum = 0;
	uint32_t v;

	for (v = g->places; v < g->vertices; v++)
		sum += kd_order_span_of(g, v, position, weighted);
	return sum;
}

double kd_order_span(const struct kd_graph *g, const uint32_t *position)
{
	double all = (double)(g->vertices - g->places) * g->places;

	return all > 0 ? sum_of_spans(g, position, false) / all : 0;
}

double kd_order_weighted_span(const struct kd_graph *g, const uint32_t *position)
{
	double all = (double)(g->vertices - g->places) * g->places;

	return all > 0 ? sum_of_spans(g, position, true) / all : 0;
}

/*
 * One round: sort the places by the mean of the middles of their transitions. A transition with
 * one place would only hold that place where it is.
 */
static void one_round(const struct kd_graph *g, double *middle, struct pull *pull,
		      uint32_t *position)
{
	uint32_t v, i, count;

	for (v = g->places; v < g->vertices; v++) {
		double sum = 0;

		for (i = g->start[v]; i < g->start[v + 1]; i++)
			sum += position[g->neighbour[i]];
		count = g->start[v + 1] - g->start[v];
		middle[v - g->places] = count ? sum / count : 0;
	}
	for (v = 0; v < g->places; v++) {
		double sum = 0;

		count = 0;
		for (i = g->start[v]; i < g->start[v + 1]; i++) {
			uint32_t t = g->neighbour[i];

			if (g->start[t + 1] - g->start[t] > 1) {
				sum += middle[t - g->places];
				count++;
			}
		}
		pull[v] = (struct pull){ count ? sum / count : position[v], v, position[v] };
	}
	qsort(pull, g->places, sizeof(*pull), compare_pulls);
	for (i = 0; i < g->places; i++)
		position[pull[i].place] = i;
}

int kd_order_force(const struct kd_graph *g, uint32_t *order)
{
	double *middle = malloc((g->vertices - g->places + 1) * sizeof(*middle)), span, best;
	struct pull *pull = malloc((g->places + 1) * sizeof(*pull));
	uint32_t *position = malloc((g->places + 1) * sizeof(*position));
	unsigned int rounds, patience = PATIENCE;
	uint32_t i;
	int r = 0;

	if (!middle || !pull || !position)
		r = -ENOMEM;
	if (r == 0) {
		for (i = 0; i < g->places; i++)
			position[order[i]] = i;
		best = kd_order_span(g, position);
		for (rounds = 0; rounds < MOST_ROUNDS && patience; rounds++) {
			one_round(g, middle, pull, position);
			span = kd_order_span(g, position);
			if (span >= best) {
				patience--;
				continue;
			}
			best = span;
			patience = PATIENCE;
			for (i = 0; i < g->places; i++)
				order[position[i]] = i;
		}
	}
	free(middle);
	free(pull);
	free(position);
	return r;
}
