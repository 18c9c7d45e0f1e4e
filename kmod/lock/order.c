// SPDX-License-Identifier: GPL-2.0
/*
 * Which of the waiting nodes gets the lock next. With two levels it is the node that came
 * first. With more, the order goes round: the home stays in the element of the last holder as
 * long as the threshold of its level allows, or nobody else waits; then goes on to the next
 * element, cyclically; and inside an element behind the node that was served last there. So no
 * node waits for more than one cycle of each element around it.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "order.h"
#include "topology.h"

/* ---- ranks ---- */

static int kdsm_ranks_compare(const void *a, const void *b, const void *context)
{
	const struct kdsm_topology *topology = context;
	unsigned int i = *(const u16 *)a, j = *(const u16 *)b, level;

	for (level = 2; level < topology->levels; level++) {
		const u16 *elements = kdsm_topology_level(topology, level);

		if (elements[i] != elements[j])
			return elements[i] < elements[j] ? -1 : 1;
	}
	return i < j ? -1 : i > j;
}

/* The ranges of the elements of a level */
static void kdsm_ranks_level(struct kdsm_ranks *ranks, const u16 *elements, unsigned int level)
{
	u16 *first = ranks->first + (level - 1) * ranks->nodes;
	u16 *end = ranks->end + (level - 1) * ranks->nodes;
	unsigned int i, j, k;

	for (i = 0; i < ranks->nodes; i = j) {
		for (j = i; j < ranks->nodes; j++)
			if (elements[ranks->node[j]] != elements[ranks->node[i]])
				break;
		for (k = i; k < j; k++) {
			first[k] = i;
			end[k] = j;
		}
	}
}

void kdsm_ranks_destroy(struct kdsm_ranks *ranks)
{
	kvfree(ranks->rank);
	kvfree(ranks->node);
	kvfree(ranks->first);
	kvfree(ranks->end);
	kfree(ranks);
}

struct kdsm_ranks *kdsm_ranks_create(const struct kdsm_topology *topology)
{
	unsigned int nodes = topology->nodes, cells = (topology->levels - 1) * nodes, i;
	struct kdsm_ranks *ranks = kzalloc(sizeof(*ranks), GFP_KERNEL);

	if (!ranks)
		return NULL;
	ranks->nodes = nodes;
	ranks->levels = topology->levels;
	ranks->rank = kvcalloc(nodes, sizeof(u16), GFP_KERNEL);
	ranks->node = kvcalloc(nodes, sizeof(u16), GFP_KERNEL);
	ranks->first = kvcalloc(cells, sizeof(u16), GFP_KERNEL);
	ranks->end = kvcalloc(cells, sizeof(u16), GFP_KERNEL);
	if (!ranks->rank || !ranks->node || !ranks->first || !ranks->end) {
		kdsm_ranks_destroy(ranks);
		return NULL;
	}
	for (i = 0; i < nodes; i++)
		ranks->node[i] = i;
	sort_r(ranks->node, nodes, sizeof(u16), kdsm_ranks_compare, NULL, topology);
	for (i = 0; i < nodes; i++)
		ranks->rank[ranks->node[i]] = i;
	for (i = 1; i < topology->levels; i++)
		kdsm_ranks_level(ranks, kdsm_topology_level(topology, i), i);
	return ranks;
}

/* A range of ranks: the element of a level that contains a rank */
struct kdsm_range {
	unsigned int first, end;
};

static struct kdsm_range kdsm_ranks_element(const struct kdsm_ranks *ranks, unsigned int level,
					    unsigned int rank)
{
	unsigned int cell = (level - 1) * ranks->nodes + rank;

	return (struct kdsm_range) { ranks->first[cell], ranks->end[cell] };
}

/* ---- the nodes that wait ---- */

int kdsm_order_init(struct kdsm_order *order, const struct kdsm_ranks *ranks,
		    unsigned int levels, const struct kdsm_thresholds *thresholds)
{
	unsigned int cells = (levels - 1) * ranks->nodes, i;

	order->ranks = ranks;
	order->levels = levels;
	order->thresholds = thresholds;
	order->head = KDSM_NOBODY;
	order->tail = KDSM_NOBODY;
	order->threads = kvcalloc(ranks->nodes, sizeof(u16), GFP_KERNEL);
	order->after = kvcalloc(ranks->nodes, sizeof(u16), GFP_KERNEL);
	order->shares = kvcalloc(cells, sizeof(*order->shares), GFP_KERNEL);
	order->waiting = bitmap_zalloc(ranks->nodes, GFP_KERNEL);
	if (!order->threads || !order->after || !order->shares || !order->waiting)
		return -ENOMEM;
	for (i = 0; i < cells; i++)
		order->shares[i].served = ranks->first[i];
	return 0;
}

void kdsm_order_exit(struct kdsm_order *order)
{
	kvfree(order->threads);
	kvfree(order->after);
	kvfree(order->shares);
	bitmap_free(order->waiting);
}

void kdsm_order_add(struct kdsm_order *order, unsigned int node, unsigned int threads)
{
	order->count++;
	order->threads[node] = threads;
	__set_bit(order->ranks->rank[node], order->waiting);
	if (order->levels > 2)
		return;
	order->after[node] = KDSM_NOBODY;
	if (order->head == KDSM_NOBODY)
		order->head = node;
	else
		order->after[order->tail] = node;
	order->tail = node;
}

void kdsm_order_remove(struct kdsm_order *order, unsigned int node)
{
	unsigned int before = KDSM_NOBODY, at = order->head;

	order->count--;
	__clear_bit(order->ranks->rank[node], order->waiting);
	if (order->levels > 2)
		return;
	for (; at != node; at = order->after[at])
		before = at;
	if (before == KDSM_NOBODY)
		order->head = order->after[node];
	else
		order->after[before] = order->after[node];
	if (order->tail == node)
		order->tail = before;
}

/* The next rank in the range that waits, from this one on and then from the first; or NOBODY */
static unsigned int kdsm_order_find(const struct kdsm_order *order, struct kdsm_range range,
				    unsigned int from)
{
	unsigned int rank = find_next_bit(order->waiting, range.end, from);

	if (rank >= range.end)
		rank = find_next_bit(order->waiting, range.end, range.first);
	return rank < range.end ? rank : KDSM_NOBODY;
}

static struct kdsm_share *kdsm_order_share(const struct kdsm_order *order, unsigned int level,
					   struct kdsm_range range)
{
	return &order->shares[(level - 1) * order->ranks->nodes + range.first];
}

/* Whether the element has had its share: as many turns as nodes, or T_L */
static bool kdsm_order_is_over(const struct kdsm_order *order, unsigned int level,
			       struct kdsm_range range)
{
	const struct kdsm_share *share = kdsm_order_share(order, level, range);
	u32 t_l = READ_ONCE(order->thresholds->t_l[level - 1]);

	if (t_l == KDSM_LOCK_T_L_AUTO)
		return share->turns >= range.end - range.first;
	return share->passes >= t_l;
}

bool kdsm_order_pauses(const struct kdsm_order *order)
{
	struct kdsm_range range = { 0, order->ranks->nodes };
	unsigned int level;

	for (level = 1; level + 1 < order->levels; level++) {
		range = kdsm_ranks_element(order->ranks, level + 1,
					   kdsm_order_share(order, level, range)->served);
		if (kdsm_order_is_over(order, level + 1, range))
			return false;
		if (kdsm_order_find(order, range, range.first) == KDSM_NOBODY)
			return order->thresholds->t_l[level] != KDSM_LOCK_T_L_AUTO;
	}
	return false;
}

/* The rank that is next. Some node waits. */
static unsigned int kdsm_order_pick(struct kdsm_order *order)
{
	struct kdsm_range range = { 0, order->ranks->nodes }, child;
	struct kdsm_share *share;
	unsigned int level, rank;

	for (level = 1; level + 1 < order->levels; level++) {
		rank = kdsm_order_share(order, level, range)->served;
		child = kdsm_ranks_element(order->ranks, level + 1, rank);
		rank = kdsm_order_find(order, child, child.first);
		if (rank == KDSM_NOBODY || kdsm_order_is_over(order, level + 1, child)) {
			share = kdsm_order_share(order, level + 1, child);
			share->turns = 0;
			share->passes = 0;
			/* Behind that element, which comes last, if nobody else waits. */
			rank = kdsm_order_find(order, range, child.end);
			child = kdsm_ranks_element(order->ranks, level + 1, rank);
		}
		range = child;
	}
	return kdsm_order_find(order, range, kdsm_order_share(order, level, range)->served + 1);
}

/* Threads of the node that may have the lock in a row: T_L of the last level, less near T_L,i */
static u16 kdsm_order_quota(const struct kdsm_order *order, unsigned int node)
{
	u32 quota = READ_ONCE(order->thresholds->t_l[order->levels - 1]), t_l, passes;
	unsigned int level;

	if (quota == KDSM_LOCK_T_L_AUTO)
		quota = clamp_t(u32, order->threads[node], 1, KDSM_LOCK_T_L_MOST);
	for (level = 2; level < order->levels; level++) {
		t_l = READ_ONCE(order->thresholds->t_l[level - 1]);
		passes = kdsm_order_share(order, level,
					  kdsm_ranks_element(order->ranks, level,
							     order->ranks->rank[node]))->passes;
		if (t_l != KDSM_LOCK_T_L_AUTO && t_l > passes)
			quota = min(quota, t_l - passes);
	}
	return min_t(u32, quota, U16_MAX);
}

unsigned int kdsm_order_next(struct kdsm_order *order, u16 *quota)
{
	unsigned int node = order->head, level, rank;
	struct kdsm_share *share;

	if (order->levels > 2)
		node = order->ranks->node[kdsm_order_pick(order)];
	kdsm_order_remove(order, node);
	*quota = kdsm_order_quota(order, node);
	rank = order->ranks->rank[node];
	for (level = 1; level < order->levels; level++) {
		share = kdsm_order_share(order, level,
					 kdsm_ranks_element(order->ranks, level, rank));
		share->served = rank;
		share->turns++;
		share->passes += *quota;
	}
	return node;
}
