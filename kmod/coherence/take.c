// SPDX-License-Identifier: GPL-2.0
/*
 * Taking over many blocks. A take mostly waits for the network, so a task runs several takes
 * concurrently: one itself, the others in work items, as far as these start. Each picks the next
 * block that is left.
 *
 * A take waits for nothing but its one block. It holds no block's lock and has no other
 * block busy meanwhile, on this node or elsewhere, and the same holds for every task that
 * has or wants the block. So no take waits for another take of the same task, and two
 * tasks that take over the same blocks in different orders do not deadlock. A task
 * does not depend on its work items either, because it takes over all blocks that are left.
 */
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Upper bounds of the concurrent takes of a task, and of the bytes of their blocks */
#define KDSM_TAKES_MAX		16U
#define KDSM_TAKES_BYTES	SZ_4M

struct kdsm_takes {
	struct kdsm_coherence *coherence;
	kdsm_take_t take;
	void *arg;
	u64 count;
	bool stops;
	atomic64_t next;
	int err;			/* the first error */
};

struct kdsm_takes_work {
	struct work_struct work;
	struct kdsm_takes *takes;
};

static void kdsm_takes_go(struct kdsm_takes *takes)
{
	u64 i;
	int err;

	while ((i = atomic64_inc_return(&takes->next) - 1) < takes->count &&
	       !(takes->stops && READ_ONCE(takes->err))) {
		err = takes->take(takes->coherence, takes->arg, i);
		if (err)
			cmpxchg(&takes->err, 0, err);
		cond_resched();
	}
}

static void kdsm_takes_work(struct work_struct *work)
{
	kdsm_takes_go(container_of(work, struct kdsm_takes_work, work)->takes);
}

int kdsm_take_many(struct kdsm_coherence *coherence, u64 count, u64 wanted, u64 size, bool stops,
		   kdsm_take_t take, void *arg)
{
	struct kdsm_takes takes = {
		.coherence = coherence, .take = take, .arg = arg, .count = count, .stops = stops,
	};
	struct kdsm_takes_work *works;
	unsigned int others, i;

	others = clamp_t(u64, KDSM_TAKES_BYTES / size, 1, KDSM_TAKES_MAX);
	others = min_t(u64, others, wanted) - 1;
	works = kcalloc(others, sizeof(*works), GFP_KERNEL);
	if (!works)
		others = 0;
	for (i = 0; i < others; i++) {
		works[i].takes = &takes;
		INIT_WORK(&works[i].work, kdsm_takes_work);
		queue_work(system_unbound_wq, &works[i].work);
	}
	kdsm_takes_go(&takes);
	/* Work items that have not started would find nothing to do */
	for (i = 0; i < others; i++)
		cancel_work_sync(&works[i].work);
	kfree(works);
	return takes.err;
}
