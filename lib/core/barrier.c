// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The flat barrier: two words of a part from offset on.
 *
 * Every node adds one to the arrivals of node 0. They are never reset: in
 * generation g (counted from 1) the sum goes from (g-1)N to gN, and who makes it
 * gN is the last and tells the others by putting g into their release words. No
 * node can arrive for g+1 before it has been released from g, that is, before
 * the sum is gN; so a former value outside [(g-1)N, gN) shows that the words are
 * not this barrier's.
 */
#include <errno.h>

#include "core/core.h"

enum {
	ARRIVALS = 0,
	RELEASE = 8,
};

void kdsm_barrier_init(struct kdsm_barrier *barrier, struct kdsm_region *region,
		       uint64_t offset)
{
	barrier->region = region;
	barrier->offset = offset;
	barrier->generation = 0;
}

static int release_others(struct kdsm_region *region, uint64_t offset,
			  uint64_t generation)
{
	unsigned int nodes = region->kdsm->nodes;
	struct kdsm_op ops[32];
	unsigned int node, n = 0;
	int first = 0;
	int ret;

	for (node = 0; node < nodes; node++) {
		if (node != region->node) {
			ops[n] = kdsm_op_put(node, offset, &generation, 8);
			ops[n++].flags = KDSM_OP_NOTIFY;
		}
		if (n == 32 || (n && node == nodes - 1)) {
			ret = kdsm_vector(region, ops, n);
			if (!first)
				first = ret;
			n = 0;
		}
	}
	return first;
}

int kdsm_barrier_wait(struct kdsm_barrier *barrier, uint64_t timeout)
{
	struct kdsm_region *region = barrier->region;
	uint64_t release = barrier->offset + RELEASE;
	uint64_t nodes = region->kdsm->nodes;
	uint64_t generation, former, order;
	int ret;

	if (barrier->offset & 7)
		return -EINVAL;
	ret = kdsm_range_check(region, barrier->offset, KDSM_BARRIER_SIZE);
	if (ret)
		return ret;
	generation = barrier->generation + 1;
	ret = kdsm_faa(region, 0, barrier->offset + ARRIVALS, 1, &former);
	if (ret)
		return ret;
	order = former - barrier->generation * nodes;
	if (order >= nodes)
		return -EINVAL;
	barrier->generation = generation;
	if (order < nodes - 1)
		return kdsm_await(region, release, generation, timeout);
	/* One thread a node: nobody sleeps on the own word. */
	ret = kdsm_put(region, region->node, release, &generation, 8);
	return ret ? ret : release_others(region, release, generation);
}
