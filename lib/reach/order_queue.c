// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A queue of vertices by priority, for the orders that number a graph outward: a heap, because
 * all vertices of a net may be in the queue at once. Priorities only rise.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "order.h"

int kd_queue_new(struct kd_queue *q, uint32_t vertices)
{
	uint32_t v;

	*q = (struct kd_queue){ 0 };
	q->priority = calloc(vertices + 1, sizeof(*q->priority));
	q->queue = malloc((vertices + 1) * sizeof(*q->queue));
	q->position = malloc((vertices + 1) * sizeof(*q->position));
	q->heap = malloc((vertices + 1) * sizeof(*q->heap));
	q->rank = malloc((vertices + 1) * sizeof(*q->rank));
	if (!q->priority || !q->queue || !q->position || !q->heap || !q->rank)
		return -ENOMEM;
	for (v = 0; v < vertices; v++)
		q->rank[v] = KD_NOT_QUEUED;
	return 0;
}

void kd_queue_destroy(struct kd_queue *q)
{
	free(q->priority);
	free(q->queue);
	free(q->position);
	free(q->heap);
	free(q->rank);
}

/* Whether vertex a comes out of the queue before b: of equal ones the first in the queue does. */
static bool better(const struct kd_queue *q, uint32_t a, uint32_t b)
{
	return q->priority[a] == q->priority[b] ? q->position[a] < q->position[b] :
	       q->priority[a] > q->priority[b];
}

/* Put a vertex into the heap at this rank or, if it is better than those above it, before them. */
static void rise(struct kd_queue *q, uint32_t v, uint32_t rank)
{
	uint32_t up;

	for (; rank; rank = up) {
		up = (rank - 1) / 2;
		if (!better(q, v, q->heap[up]))
			break;
		q->heap[rank] = q->heap[up];
		q->rank[q->heap[rank]] = rank;
	}
	q->heap[rank] = v;
	q->rank[v] = rank;
}

/* Put a vertex into the heap at the front or, if those below it are better, behind them. */
static void sink(struct kd_queue *q, uint32_t v)
{
	uint32_t rank = 0, child;

	while ((child = 2 * rank + 1) < q->count) {
		if (child + 1 < q->count && better(q, q->heap[child + 1], q->heap[child]))
			child++;
		if (!better(q, q->heap[child], v))
			break;
		q->heap[rank] = q->heap[child];
		q->rank[q->heap[rank]] = rank;
		rank = child;
	}
	q->heap[rank] = v;
	q->rank[v] = rank;
}

void kd_queue_raise(struct kd_queue *q, uint32_t v, int64_t by)
{
	q->priority[v] += by;
	if (q->rank[v] == KD_NOT_QUEUED) {
		q->position[v] = q->count;
		q->queue[q->count] = v;
		q->rank[v] = q->count++;
	}
	rise(q, v, q->rank[v]);
}

/* The last vertex of the queue moves to the position of the one that leaves. */
uint32_t kd_queue_take(struct kd_queue *q)
{
	uint32_t best = q->heap[0], last = q->queue[--q->count];

	if (q->heap[q->count] != best)
		sink(q, q->heap[q->count]);
	if (last != best) {
		q->position[last] = q->position[best];
		q->queue[q->position[last]] = last;
		rise(q, last, q->rank[last]);
	}
	q->rank[best] = KD_NOT_QUEUED;
	return best;
}
