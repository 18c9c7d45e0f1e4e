// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Orders of places from the graph of a net: Cuthill-McKee (E. Cuthill, J. McKee, "Reducing
 * the bandwidth of sparse symmetric matrices", 1969) and Sloan (S. W. Sloan, "An algorithm
 * for profile and wavefront reduction of sparse matrices", 1986). Both number the vertices
 * outward from one end of the graph, so that neighbours get near numbers. They are used for
 * the variables of decision diagrams as in J. Meijer, J. van de Pol, "Bandwidth and Wavefront
 * Reduction for Static Variable Ordering in Symbolic Reachability Analysis", 2016.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "order.h"

/* Sloan's weights of the distance to the far end, and of the neighbours not yet reached */
#define DISTANCE_WEIGHT	1
#define DEGREE_WEIGHT	2

#define MOST_ENDS	8	/* attempts to find a vertex at the end of the graph */

#define NOWHERE	UINT32_MAX

static void add_arcs(struct kd_graph *g, const struct kd_arc *arcs, unsigned int count,
		     uint32_t transition, uint32_t *fill)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		g->neighbour[fill[transition]++] = arcs[i].place;
		g->neighbour[fill[arcs[i].place]++] = transition;
	}
}

int kd_graph_new(struct kd_graph *g, const struct kd_net *net)
{
	uint32_t edges = 0, i, k, *fill;

	g->places = net->places;
	g->vertices = net->places + net->transitions;
	g->start = calloc(g->vertices + 2, sizeof(*g->start));
	g->neighbour = NULL;
	if (!g->start)
		return -ENOMEM;
	for (i = 0; i < net->transitions; i++) {
		const struct kd_transition *t = &net->transition[i];
		const struct kd_arc *arcs[] = { t->in, t->out, t->read, t->inhibitor };
		const unsigned int counts[] = { t->ins, t->outs, t->reads, t->inhibitors };
		unsigned int a;

		for (a = 0; a < 4; a++) {
			g->start[net->places + i + 2] += counts[a];
			for (k = 0; k < counts[a]; k++)
				g->start[arcs[a][k].place + 2]++;
			edges += 2 * counts[a];
		}
	}
	/* start[v + 1] is where the next neighbour of v goes, and in the end where they end */
	for (i = 2; i < g->vertices + 2; i++)
		g->start[i] += g->start[i - 1];
	g->neighbour = malloc((edges + 1) * sizeof(*g->neighbour));
	if (!g->neighbour)
		return -ENOMEM;
	fill = g->start + 1;
	for (i = 0; i < net->transitions; i++) {
		const struct kd_transition *t = &net->transition[i];

		add_arcs(g, t->in, t->ins, net->places + i, fill);
		add_arcs(g, t->out, t->outs, net->places + i, fill);
		add_arcs(g, t->read, t->reads, net->places + i, fill);
		add_arcs(g, t->inhibitor, t->inhibitors, net->places + i, fill);
	}
	return 0;
}

void kd_graph_destroy(struct kd_graph *graph)
{
	free(graph->start);
	free(graph->neighbour);
}

static uint32_t degree(const struct kd_graph *g, uint32_t v)
{
	return g->start[v + 1] - g->start[v];
}

/* State of the numbering of a graph. All arrays except queue are indexed by vertex. */
struct numbering {
	const struct kd_graph *graph;
	uint32_t *distance;		/* from the vertex that bfs() began with */
	uint32_t *queue;
	uint32_t count;			/* of queue */
	bool *done;			/* the vertex has a number */
	uint8_t *state;			/* the rest for Sloan */
	struct kd_queue active;
};

static int numbering_new(struct numbering *n, const struct kd_graph *g)
{
	uint32_t v;

	*n = (struct numbering){ .graph = g };
	n->distance = malloc((g->vertices + 1) * sizeof(*n->distance));
	n->queue = malloc((g->vertices + 1) * sizeof(*n->queue));
	n->done = calloc(g->vertices + 1, sizeof(*n->done));
	n->state = calloc(g->vertices + 1, sizeof(*n->state));
	if (kd_queue_new(&n->active, g->vertices) < 0 || !n->distance || !n->queue || !n->done ||
	    !n->state)
		return -ENOMEM;
	for (v = 0; v < g->vertices; v++)
		n->distance[v] = NOWHERE;
	return 0;
}

static void numbering_destroy(struct numbering *n)
{
	free(n->distance);
	free(n->queue);
	free(n->done);
	free(n->state);
	kd_queue_destroy(&n->active);
}

/* Visit the component of a vertex breadth first: set queue and distance. */
static void bfs(struct numbering *n, uint32_t from)
{
	const struct kd_graph *g = n->graph;
	uint32_t at, i;

	for (at = 0; at < n->count; at++)	/* the visit before was of the same component */
		n->distance[n->queue[at]] = NOWHERE;
	n->queue[0] = from;
	n->count = 1;
	n->distance[from] = 0;
	for (at = 0; at < n->count; at++) {
		uint32_t v = n->queue[at];

		for (i = g->start[v]; i < g->start[v + 1]; i++) {
			uint32_t to = g->neighbour[i];

			if (n->distance[to] == NOWHERE) {
				n->distance[to] = n->distance[v] + 1;
				n->queue[n->count++] = to;
			}
		}
	}
}

/* The vertex of least degree among those farthest from the begin of the visit */
static uint32_t far_end(const struct numbering *n)
{
	uint32_t farthest = n->distance[n->queue[n->count - 1]], best = NOWHERE, i;

	for (i = n->count; i-- && n->distance[n->queue[i]] == farthest; )
		if (best == NOWHERE || degree(n->graph, n->queue[i]) < degree(n->graph, best))
			best = n->queue[i];
	return best;
}

/* Find two vertices that are far from each other; distances are those to *end afterwards. */
static uint32_t find_ends(struct numbering *n, uint32_t from, uint32_t *end)
{
	uint32_t start = from, other, length, tries;

	n->count = 0;
	bfs(n, start);
	other = far_end(n);
	for (tries = 0; tries < MOST_ENDS; tries++) {
		length = n->distance[other];
		bfs(n, other);
		if (n->distance[far_end(n)] <= length)
			break;
		start = other;
		other = far_end(n);
	}
	*end = other;
	bfs(n, other);
	return start;
}

static void append(const struct kd_graph *g, uint32_t *order, uint32_t *count, uint32_t v)
{
	if (v < g->places)
		order[(*count)++] = v;
}

static int compare_degrees(const void *x, const void *y, void *context)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	uint32_t da = degree(context, a), db = degree(context, b);

	return da == db ? (a > b) - (a < b) : (da > db) - (da < db);
}

/* Breadth first from an end; the neighbours of a vertex by degree. */
static void cuthill_mckee(struct numbering *n, uint32_t from, uint32_t *order, uint32_t *count)
{
	const struct kd_graph *g = n->graph;
	uint32_t first, at, i, end = 0;

	from = find_ends(n, from, &end);
	n->queue[0] = from;
	n->done[from] = true;
	n->count = 1;
	for (at = 0; at < n->count; at++) {
		uint32_t v = n->queue[at];

		append(g, order, count, v);
		first = n->count;
		for (i = g->start[v]; i < g->start[v + 1]; i++) {
			if (!n->done[g->neighbour[i]]) {
				n->done[g->neighbour[i]] = true;
				n->queue[n->count++] = g->neighbour[i];
			}
		}
		qsort_r(n->queue + first, n->count - first, sizeof(*n->queue), compare_degrees,
			(void *)g);
	}
}

/* Number the vertices, one component after the other. */
static int number_all(const struct kd_graph *graph, uint32_t *order,
		      void (*component)(struct numbering *n, uint32_t from, uint32_t *order,
					uint32_t *count))
{
	uint32_t v, count = 0;
	struct numbering n;
	int r;

	r = numbering_new(&n, graph);
	for (v = 0; r == 0 && v < graph->places; v++)
		if (!n.done[v])
			component(&n, v, order, &count);
	numbering_destroy(&n);
	return r;
}

int kd_order_cuthill_mckee(const struct kd_graph *graph, uint32_t *order)
{
	return number_all(graph, order, cuthill_mckee);
}

/* ---- Sloan ---- */

enum state { INACTIVE, PREACTIVE, ACTIVE, POSTACTIVE };

static void raise_priority(struct numbering *n, uint32_t v)
{
	if (n->state[v] == INACTIVE)
		n->state[v] = PREACTIVE;
	if (n->state[v] != POSTACTIVE)
		kd_queue_raise(&n->active, v, DEGREE_WEIGHT);
}

static void number_one(struct numbering *n, uint32_t v)
{
	const struct kd_graph *g = n->graph;
	uint32_t i, k;

	if (n->state[v] == PREACTIVE)
		for (i = g->start[v]; i < g->start[v + 1]; i++)
			raise_priority(n, g->neighbour[i]);
	n->state[v] = POSTACTIVE;
	for (i = g->start[v]; i < g->start[v + 1]; i++) {
		uint32_t to = g->neighbour[i];

		if (n->state[to] != PREACTIVE)
			continue;
		n->state[to] = ACTIVE;
		raise_priority(n, to);
		for (k = g->start[to]; k < g->start[to + 1]; k++)
			if (n->state[g->neighbour[k]] != POSTACTIVE)
				raise_priority(n, g->neighbour[k]);
	}
}

static void sloan(struct numbering *n, uint32_t from, uint32_t *order, uint32_t *count)
{
	const struct kd_graph *g = n->graph;
	uint32_t i, v, end;

	from = find_ends(n, from, &end);
	for (i = 0; i < n->count; i++) {
		v = n->queue[i];
		n->active.priority[v] = (int64_t)DISTANCE_WEIGHT * n->distance[v] -
					(int64_t)DEGREE_WEIGHT * (degree(g, v) + 1);
		n->done[v] = true;
	}
	n->state[from] = PREACTIVE;
	kd_queue_raise(&n->active, from, 0);
	while (n->active.count) {
		v = kd_queue_take(&n->active);
		number_one(n, v);
		append(g, order, count, v);
	}
}

int kd_order_sloan(const struct kd_graph *graph, uint32_t *order)
{
	return number_all(graph, order, sloan);
}
