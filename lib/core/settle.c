// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Settling: waiting until all nodes see the puts of this process that are complete.
 *
 * The target's device acknowledges a put before it has written the bytes to memory, and may
 * write them in any order. Two RDMA writes have an order for the CPU of the target only when
 * its kernel takes a message that came after them on the same connection. A put with
 * KDSM_OP_NOTIFY is such a message for the earlier puts of its vector. For all other puts the
 * library remembers the nodes that they went to, and kdsm_settle() exchanges a message with
 * the kernels of these nodes, on every connection that carried a put.
 *
 * unsettled has a bit for each node with a complete put, announced for each node with a complete
 * put with KDSM_OP_NOTIFY, which its own message announces to threads that wait for its word,
 * but to no others.
 */
#include <errno.h>
#include "core/core.h"

static void add(uint64_t *nodes, unsigned int node)
{
	uint64_t bit = UINT64_C(1) << node % 64;

	/* Most puts find the bit set: do not write to a cache line that other threads use. */
	if (node < KDSM_MAX_NODES && !(__atomic_load_n(&nodes[node / 64], __ATOMIC_SEQ_CST) & bit))
		__atomic_fetch_or(&nodes[node / 64], bit, __ATOMIC_SEQ_CST);
}

void kd_unsettled(struct kdsm_region *region, const struct kdsm_op *ops, unsigned int count)
{
	struct kdsm *kdsm = region->kdsm;
	unsigned int i;

	/* After the puts, so that a settling that runs concurrently does not count for them. */
	for (i = 0; i < count; i++)
		if (ops[i].opcode == KDSM_OP_PUT && !ops[i].status && ops[i].node != region->node)
			add(ops[i].flags & KDSM_OP_NOTIFY ? kdsm->announced : kdsm->unsettled,
			    ops[i].node);
}

static bool any(const uint64_t *nodes)
{
	unsigned int i;

	for (i = 0; i < KDSM_MAX_NODES / 64; i++)
		if (__atomic_load_n(&nodes[i], __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* Take the nodes of a set that are in mask. */
static void take(uint64_t *to, uint64_t *from, const uint64_t *mask)
{
	unsigned int i;

	for (i = 0; i < KDSM_MAX_NODES / 64; i++)
		to[i] |= mask[i] & __atomic_fetch_and(&from[i], ~mask[i], __ATOMIC_SEQ_CST);
}

static int settle(struct kdsm *kdsm, const uint64_t *mask, bool also_announced)
{
	uint64_t nodes[KDSM_MAX_NODES / 64] = { 0 };
	uint32_t messages = 0;
	unsigned int i;
	int ret = 0;

	/*
	 * Another thread may have taken the bits of this thread's puts and still wait for the
	 * answers. That thread has set settling before, so this one waits for the lock.
	 */
	if (!kdsm->backend->settle ||
	    (!any(kdsm->unsettled) && !(also_announced && any(kdsm->announced)) &&
	     !__atomic_load_n(&kdsm->settling, __ATOMIC_SEQ_CST)))
		return 0;
	kd_mutex_lock(&kdsm->settle_lock);
	__atomic_store_n(&kdsm->settling, true, __ATOMIC_SEQ_CST);
	take(nodes, kdsm->unsettled, mask);
	if (also_announced)
		take(nodes, kdsm->announced, mask);
	if (any(nodes))
		ret = kdsm->backend->settle(kdsm, nodes, &messages);
	for (i = 0; ret && i < KDSM_MAX_NODES / 64; i++)
		__atomic_fetch_or(&kdsm->unsettled[i], nodes[i], __ATOMIC_SEQ_CST);
	/* A thread that found no bit while this one had them waits for the lock, and settles. */
	__atomic_store_n(&kdsm->settling, ret && any(kdsm->unsettled), __ATOMIC_SEQ_CST);
	kd_mutex_unlock(&kdsm->settle_lock);
	kdsm_count_messages(kdsm, messages);
	return ret;
}

int kdsm_settle(struct kdsm *kdsm)
{
	uint64_t all[KDSM_MAX_NODES / 64];
	unsigned int i;

	for (i = 0; i < KDSM_MAX_NODES / 64; i++)
		all[i] = UINT64_MAX;
	return settle(kdsm, all, true);
}

int kd_settle_node(struct kdsm *kdsm, unsigned int node)
{
	uint64_t mask[KDSM_MAX_NODES / 64] = { 0 };

	if (node >= KDSM_MAX_NODES)
		return 0;
	mask[node / 64] = UINT64_C(1) << node % 64;
	return settle(kdsm, mask, false);
}
