/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders of the places of a Petri net, for the variables of its BDDs. Internal. */
#ifndef KD_REACH_ORDER_H
#define KD_REACH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct kd_net;
struct kdsm_reach_message;

/*
 * The places and transitions of a net as the vertices of an undirected graph: a place is
 * adjacent to each transition that has an arc to it. Vertices below places are places. The
 * neighbours of vertex v are neighbour[start[v]] to neighbour[start[v + 1] - 1].
 */
struct kd_graph {
	uint32_t places, vertices;
	uint32_t *start, *neighbour;
};

int kd_graph_new(struct kd_graph *graph, const struct kd_net *net);
void kd_graph_destroy(struct kd_graph *graph);

/*
 * order_graph.c and order_force.c: these store the places in a good order into order, which
 * has room for all of them. kd_order_force() improves the order that is there. They return 0
 * or -ENOMEM.
 */
int kd_order_cuthill_mckee(const struct kd_graph *graph, uint32_t *order);
int kd_order_sloan(const struct kd_graph *graph, uint32_t *order);
int kd_order_force(const struct kd_graph *graph, uint32_t *order);
/* order_units.c: the same, from the order of the file */
int kd_order_units(const struct kd_graph *graph, const struct kd_net *net, uint32_t *order);

/* order_grow.c: how transitions and units attract places to an order that grows */
struct kd_growth {
	unsigned int push;	/* by a transition that has no place in the order, in quarters */
	unsigned int unit;	/* pull by a unit that has one */
};

/* Store the places in an order that grows from a random place. Returns 0 or -ENOMEM. */
int kd_order_grow(const struct kd_graph *graph, const struct kd_net *net,
		  const struct kd_growth *growth, uint64_t *random, uint32_t *order);
/* order_anneal.c: shorten the weighted spans by random moves of places. Returns 0 or -ENOMEM. */
int kd_order_anneal(const struct kd_graph *graph, const struct kd_net *net, uint64_t *random,
		    uint32_t *order);

/* order_queue.c: vertices by priority. The arrays but queue and heap are indexed by vertex. */
struct kd_queue {
	int64_t *priority;	/* 0 at first; the user may set it before a vertex enters */
	uint32_t *queue, count;
	uint32_t *position;	/* in queue */
	uint32_t *heap;		/* the vertices of queue, with the best one first */
	uint32_t *rank;		/* in heap, or KD_NOT_QUEUED */
};

#define KD_NOT_QUEUED	UINT32_MAX

/* Returns 0 or -ENOMEM; the caller destroys the queue even then. */
int kd_queue_new(struct kd_queue *queue, uint32_t vertices);
void kd_queue_destroy(struct kd_queue *queue);
/* Add to the priority of a vertex, at least 0; a vertex outside the queue enters it. */
void kd_queue_raise(struct kd_queue *queue, uint32_t vertex, int64_t by);
/* Take the vertex with the highest priority out of the queue, which is not empty. */
uint32_t kd_queue_take(struct kd_queue *queue);

/*
 * The mean, over the transitions, of the distance between the first and the last place of the
 * transition, as a part of all places: 0 to 1, less is better. position has the place of each
 * place in the order.
 */
double kd_order_weighted_span(const struct kd_graph *graph, const uint32_t *position);
double kd_order_span(const struct kd_graph *graph, const uint32_t *position);
/* The distance for one transition, a vertex, in places; if weighted, times its weight */
double kd_order_span_of(const struct kd_graph *graph, uint32_t transition,
			const uint32_t *position, bool weighted);

/*
 * order.c: reverse an order; and turn it so that the weighted spans are shorter, which returns 0
 * or -ENOMEM.
 */
void kd_order_reverse(uint32_t places, uint32_t *order);
int kd_order_turn(const struct kd_graph *graph, uint32_t *order);

/* The names that a file of an order may have */
struct kd_names {
	const char *what;		/* "place" */
	uint32_t count;
	struct kd_named {
		const char *name;
		uint32_t index;		/* that the order has for it, at most INT_MAX */
		bool unneeded;		/* an order may lack it */
		unsigned long line;	/* 0; kd_order_read() sets it */
	} *named;
};

/*
 * order_file.c: store the indices of the names in the file into order, which has room for all.
 * Return their number; or a negative errno, and set *message. Sorts the names.
 */
int64_t kd_order_read(const char *path, struct kd_names *names, uint32_t *order,
		      struct kdsm_reach_message *message);

#endif /* KD_REACH_ORDER_H */
