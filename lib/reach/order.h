/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders of the places of a Petri net, for the variables of its BDDs. Internal. */
#ifndef KD_REACH_ORDER_H
#define KD_REACH_ORDER_H

#include <stdint.h>

struct kd_net;

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

/*
 * The mean, over the transitions, of the distance between the first and the last place of the
 * transition, as a part of all places: 0 to 1, less is better. position has the place of each
 * place in the order.
 */
double kd_order_weighted_span(const struct kd_graph *graph, const uint32_t *position);
double kd_order_span(const struct kd_graph *graph, const uint32_t *position);

#endif /* KD_REACH_ORDER_H */
