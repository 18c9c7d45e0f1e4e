// SPDX-License-Identifier: GPL-2.0
/*
 * Room: tasks that lack memory for a region have the work item evict a chunk (evict.c), and wait
 * for it.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "internal.h"

/* How long a task without memory waits, and pause before it tries again, in jiffies */
#define KDSM_ROOM_PATIENCE	(30 * HZ)
#define KDSM_ROOM_PAUSE		(HZ / 100 ?: 1)

/* Whether another node could take over what this node evicts */
static bool kdsm_evict_may(const struct kdsm_coherence *coherence)
{
	return coherence->nodes > 1 && !READ_ONCE(coherence->outcast);
}

u64 kdsm_coherence_evictable(const struct kdsm_coherence *coherence)
{
	u64 bytes = kdsm_memory_resident(coherence->frames);

	if (!coherence->is_strict)
		bytes += kdsm_memory_resident(coherence->twins);
	return kdsm_evict_may(coherence) ? bytes : 0;
}

bool kdsm_evict_helps(const struct kdsm_coherence *coherence)
{
	/* A call may fail for want of other memory, which eviction does not free */
	return kdsm_evict_may(coherence) && kdsm_memory_lacks(coherence->frames);
}

void kdsm_evict_start(struct kdsm_coherence *coherence)
{
	queue_work(system_unbound_wq, &coherence->evict_work);
}

void kdsm_coherence_reclaim(struct kdsm_coherence *coherence, unsigned int chunks)
{
	if (!kdsm_evict_may(coherence))
		return;
	WRITE_ONCE(coherence->reclaim, chunks);
	if (chunks || kdsm_memory_exceeds_limit(coherence->frames))
		kdsm_evict_start(coherence);
}

int kdsm_evict_answer(struct kdsm_coherence *coherence)
{
	bool helps = kdsm_evict_helps(coherence);

	if (helps)
		kdsm_evict_start(coherence);
	return helps || READ_ONCE(coherence->leaving) != KDSM_NO_CHUNK ? -ENOBUFS : -ENOMEM;
}

int kdsm_evict_spare(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	return kdsm_memory_spare(coherence->twins, kdsm_chunk_of(coherence, block->index),
				 KDSM_SPARE_HANDOVER);
}

struct kdsm_patience kdsm_patience_begin(const struct kdsm_coherence *coherence)
{
	return (struct kdsm_patience) {
		.end = jiffies + KDSM_ROOM_PATIENCE,
		.rounds = READ_ONCE(coherence->rounds),
	};
}

/* Wait until this node has evicted a chunk, or has tried to. False: no eviction helps. */
static bool kdsm_evict_wait_here(struct kdsm_coherence *coherence, struct kdsm_patience *patience)
{
	/* Pairs with smp_store_release() in kdsm_chunk_evict(): then the round counts */
	bool is_running = smp_load_acquire(&coherence->leaving) != KDSM_NO_CHUNK;
	unsigned int rounds = READ_ONCE(coherence->rounds);
	bool is_new = rounds != patience->rounds;

	patience->rounds = rounds;
	/* The eviction may have freed enough */
	if (is_new)
		return true;
	if (kdsm_evict_helps(coherence))
		kdsm_evict_start(coherence);
	else if (!is_running)
		return false;
	wait_event_timeout(coherence->wait, READ_ONCE(coherence->rounds) != rounds, HZ);
	return true;
}

/* Count the task among those that lack memory of this node, from its first wait to its last try */
static void kdsm_patience_count(struct kdsm_coherence *coherence, struct kdsm_patience *patience,
				bool is_hungry)
{
	if (is_hungry == patience->is_hungry)
		return;
	patience->is_hungry = is_hungry;
	spin_lock(&coherence->lock);
	WRITE_ONCE(coherence->hungry, coherence->hungry + (is_hungry ? 1 : -1));
	spin_unlock(&coherence->lock);
}

bool kdsm_evict_wait(struct kdsm_coherence *coherence, int *err, struct kdsm_patience *patience)
{
	bool is_there = *err == -ENOBUFS;
	bool again = (is_there || *err == -ENOMEM) && !time_after(jiffies, patience->end) &&
		     !fatal_signal_pending(current);

	kdsm_patience_count(coherence, patience, again && !is_there);
	if (is_there)
		*err = -ENOMEM;
	if (again && is_there) {
		schedule_timeout_uninterruptible(KDSM_ROOM_PAUSE);
	} else if (again) {
		again = kdsm_evict_wait_here(coherence, patience);
		kdsm_patience_count(coherence, patience, again);
	}
	return again;
}

int kdsm_block_room(struct kdsm_coherence *coherence, const struct kdsm_block *block, bool write)
{
	void *page = kdsm_block_page(coherence, coherence->frames, block, 0);

	/* Without the lock: the caller tries again if memory is missing after all */
	if (!IS_ERR(page) && write && !coherence->is_strict &&
	    READ_ONCE(block->role) != KDSM_ROLE_OWNER)
		page = kdsm_block_page(coherence, coherence->twins, block, 0);
	return IS_ERR(page) ? PTR_ERR(page) : 0;
}
