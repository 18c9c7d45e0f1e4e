/* SPDX-License-Identifier: GPL-2.0 */
/* Rings: what ring.c and ring_flow.c share. <kdsm/uapi.h> has the interface for programs. */
#ifndef KDSM_REGION_RING_H
#define KDSM_REGION_RING_H

#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "internal.h"

/*
 * The memory of a ring consists of blocks of contiguous pages. A block needs no allocation of a
 * costly order, and an operation inside a block needs one work request.
 */
#define KDSM_RING_BLOCK		max_t(u64, SZ_32K, PAGE_SIZE)	/* bytes */

struct kdsm_ring {
	struct kdsm_region *region;
	struct file *file;	/* is bound to the region; the ring has a reference */
	bool may_write;

	/* The memory: constant offsets and sizes in bytes */
	u32 entries;		/* a power of two */
	u32 submissions, completions, buffer;
	u64 buffer_size, size;
	void **blocks;
	struct mm_struct *mm;	/* whose pinned_vm has the pages, or NULL */

	struct mutex submitting;	/* serialises submissions; protects submission_head */
	u32 submission_head;

	spinlock_t lock;	/* protects the fields below and the queue of completions */
	u32 completion_tail;
	unsigned int inflight;	/* operations */
	u64 bytes;		/* of these */
	struct list_head batches;	/* that hold these */

	wait_queue_head_t waits;	/* for completions */
	struct delayed_work upkeep;	/* of batches */
};

/* The address of the byte at an offset in the memory; objects do not cross blocks */
static inline void *kdsm_ring_at(const struct kdsm_ring *ring, u64 offset)
{
	return ring->blocks[offset / KDSM_RING_BLOCK] + offset % KDSM_RING_BLOCK;
}

static inline struct kdsm_ring_head *kdsm_ring_head(const struct kdsm_ring *ring)
{
	return ring->blocks[0];
}

/* ---- ring_flow.c ---- */

void kdsm_ring_flow_init(struct kdsm_ring *ring);
/* Wait, for bounded time, until nothing is in flight. No task uses the ring any more. */
void kdsm_ring_flow_drain(struct kdsm_ring *ring);
/* As KDSM_IOC_RING_ENTER */
int kdsm_ring_enter(struct kdsm_ring *ring, struct kdsm_ring_enter *args);
/* Number of completions that the program has not read, as far as the program can be trusted */
u32 kdsm_ring_unread(const struct kdsm_ring *ring);

#endif /* KDSM_REGION_RING_H */
