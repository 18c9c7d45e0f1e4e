/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A *part* is an object of the protocol on one node: a turn (turn.h), a pass or a reader home
 * (gate.h), or a home (home.h). Each has an advance function, which sends what the state of the
 * part requires. It sleeps, one task at a time calls it for a part, and it returns the time until
 * the next call, in ns; 0: not before the state changes. An answer counts only if the state still
 * is the one that asked.
 */
#ifndef KDSM_LOCK_PART_H
#define KDSM_LOCK_PART_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <kdsm/uapi.h>

#include "fabric/fabric.h"

/* The common beginning; set before the part's own init function is called */
struct kdsm_part {
	struct kdsm_fabric *fabric;
	u32 region, number;		/* of the lock */
	unsigned int home;		/* of the lock */
	unsigned int node, nodes;	/* this node; of the region */
	void *owner;			/* for kdsm_part_changed() and kdsm_part_missed() */
	u64 messages;			/* sent to other nodes */
};

/* ---- functions of the user of the protocol: objects.c, or the simulator ---- */

/*
 * Call the advance function soon: the state has changed, or there is something to send. Any
 * context, also with the part's spinlock.
 */
void kdsm_part_changed(struct kdsm_part *part);
/* The node does not answer this one. For tasks. */
void kdsm_part_missed(struct kdsm_part *part, unsigned int node);

/* ---- for parts ---- */

/* As kdsm_message(); a node that does not answer is missed. */
static inline int kdsm_part_send(struct kdsm_part *part, unsigned int node,
				 enum kdsm_message_type type, const void *data,
				 unsigned int length, void *reply, unsigned int *reply_length)
{
	int err;

	part->messages += node != part->node;
	err = kdsm_message(part->fabric, node, type, data, length, reply, reply_length);
	if (!kdsm_message_was_heard(err))
		kdsm_part_missed(part, node);
	return err;
}

/* The time from now to that of the next message, in ns; not 0 */
static inline u64 kdsm_part_until(u64 time)
{
	u64 now = ktime_get_ns();

	return time > now ? time - now : 1;
}

#endif /* KDSM_LOCK_PART_H */
