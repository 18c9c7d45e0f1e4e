// SPDX-License-Identifier: GPL-2.0
/*
 * Acquires of programs. A signature passes through programs, which may forge it, and the kernel
 * cannot tell. So this file bounds what a program that may only read the region can do with one.
 *
 * False notices would make this node read old content and take it for new, and the next release
 * of this node would pass them on. So the notices are replaced by a floor, which claims nothing
 * but that a timestamp exists. If it does, the floor does no harm: content that is older is
 * fetched again. If it did not, the clocks would jump to it, in the end beyond KDSM_CLOCK_MAX.
 * So the timestamp must be one that the clock of some node has reached. The clock of a writer
 * reaches the timestamp of a notice before a program can see the notice.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "internal.h"

int kdsm_region_serve_clock(void *context, struct kdsm_request *request)
{
	struct kdsm_region *region;

	if (request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(context, le32_to_cpu(*(__le32 *)request->data), request->from);
	if (!region)
		return -ENOENT;
	if (region->coherence) {
		*(__le64 *)request->reply = cpu_to_le64(kdsm_coherence_clock(region->coherence));
		request->reply_length = sizeof(__le64);
	}
	kdsm_region_put(region);
	return request->reply_length ? 0 : -EOPNOTSUPP;
}

/* Whether the clock of a node has reached the timestamp, or an error of kdsm_message() */
static int kdsm_clock_reached(struct kdsm_region *region, unsigned int node, u64 timestamp)
{
	__le32 id = cpu_to_le32(region->id);
	unsigned int length = sizeof(__le64);
	__le64 clock = 0;
	int err;

	err = kdsm_message(region->cluster->fabric, node, KDSM_MESSAGE_CLOCK, &id, sizeof(id),
			   &clock, &length);
	/* A node that came up again has no such region, and has lost its clock */
	if (err)
		return err == -ENOENT ? -EHOSTDOWN : err;
	return length == sizeof(clock) && le64_to_cpu(clock) >= timestamp;
}

/* Ask the writer of the newest notice, which nearly always suffices, and then the others */
static int kdsm_timestamp_check(struct kdsm_region *region, unsigned int writer, u64 timestamp)
{
	unsigned int nodes = region->nodes, node, i;
	int err = -EINVAL, reached;

	if (writer == KDSM_NOBODY)
		writer = region->cluster->node;
	for (i = 0; i < nodes; i++) {
		node = (writer + i) % nodes;
		if (node == region->cluster->node)
			continue;
		if (fatal_signal_pending(current))
			return -EINTR;
		reached = kdsm_clock_reached(region, node, timestamp);
		if (reached > 0)
			return 0;
		if (reached < 0)
			err = -EHOSTDOWN;
	}
	return err;
}

int kdsm_region_acquire(struct kdsm_region *region, struct kdsm_signature *signature,
			bool may_write)
{
	struct kdsm_coherence *coherence = region->coherence;
	unsigned int writer;
	u64 newest;
	int err;

	if (may_write || region->policy != KDSM_POLICY_RELEASE)
		return kdsm_coherence_acquire(coherence, signature);
	newest = kdsm_signature_newest(signature, &writer);
	if (newest > KDSM_CLOCK_MAX)
		return -EINVAL;
	if (newest > kdsm_coherence_clock(coherence)) {
		err = kdsm_timestamp_check(region, writer, newest);
		if (err)
			return err;
	}
	kdsm_signature_flatten(signature);
	return kdsm_coherence_acquire(coherence, signature);
}
