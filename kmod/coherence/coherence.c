// SPDX-License-Identifier: GPL-2.0
/*
 * Setting up the coherence of a region, and the calls from other folders, which this file
 * passes on to the policy of the region.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"

void kdsm_coherence_init(struct kdsm_coherence *coherence, struct kdsm_fabric *fabric,
			 unsigned int nodes, u32 id, u32 policy, u64 size,
			 const struct kdsm_region_segment *segments, u32 count, bool contiguous)
{
	memset(coherence, 0, sizeof(*coherence));
	coherence->fabric = fabric;
	coherence->id = id;
	coherence->is_strict = policy == KDSM_POLICY_STRICT;
	coherence->policy = coherence->is_strict ? &kdsm_policy_strict : &kdsm_policy_release;
	coherence->lease = KDSM_LEASE_DEFAULT;
	kdsm_segments_init(coherence, segments, count, size);
	coherence->node = kdsm_fabric_node(fabric);
	coherence->nodes = nodes;
	coherence->group = contiguous ? DIV_ROUND_UP_ULL(coherence->blocks, coherence->nodes) :
					KDSM_CYCLE_BLOCKS;
	init_waitqueue_head(&coherence->wait);
	mutex_init(&coherence->fence);
	spin_lock_init(&coherence->lock);
	INIT_WORK(&coherence->owed_work, kdsm_ownership_owed_work);
	INIT_WORK(&coherence->evict_work, kdsm_evict_work);
	coherence->leaving = KDSM_NO_CHUNK;
	coherence->closed = KDSM_NO_CHUNK;
	coherence->needed = KDSM_NO_CHUNK;
	coherence->taker = (coherence->node + 1) % coherence->nodes;
	INIT_LIST_HEAD(&coherence->owed);
	INIT_LIST_HEAD(&coherence->idlers);
	INIT_DELAYED_WORK(&coherence->idlers_work, kdsm_idlers_work);
	kdsm_leases_init(coherence);
	kdsm_signature_init(&coherence->signature);
	xa_init_flags(&coherence->table, XA_FLAGS_ACCOUNT);
}

void kdsm_coherence_exit(struct kdsm_coherence *coherence)
{
	cancel_work_sync(&coherence->evict_work);
	cancel_work_sync(&coherence->owed_work);
	cancel_delayed_work_sync(&coherence->idlers_work);
	kdsm_races_free(coherence);
	kdsm_leases_free(coherence);
	kdsm_blocks_free(coherence);
}

/* ---- statistics ---- */

void kdsm_coherence_counters(const struct kdsm_coherence *coherence, u64 *stats)
{
	unsigned int i;

	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		stats[i] = atomic64_read(&coherence->stats[i]);
}

void kdsm_coherence_stats(struct kdsm_coherence *coherence, u64 *stats)
{
	static const u8 which[] = {
		[KDSM_BLOCK_INVALID] = KDSM_COHERENCE_INVALID,
		[KDSM_BLOCK_READABLE] = KDSM_COHERENCE_READABLE,
		[KDSM_BLOCK_WRITABLE] = KDSM_COHERENCE_WRITABLE,
	};
	struct kdsm_glance glance;
	u64 i;

	kdsm_coherence_counters(coherence, stats);
	/* States may change concurrently: the counts are approximate */
	for (i = 0; kdsm_block_glance(coherence, &i, coherence->blocks - 1, &glance); i++) {
		stats[which[glance.state]]++;
		stats[KDSM_COHERENCE_OWNED] += glance.owned;
		stats[KDSM_COHERENCE_LOST] += glance.lost;
		cond_resched();
	}
}

/* ---- calls from other folders ---- */

int kdsm_coherence_access(struct kdsm_coherence *coherence, u64 index, bool write,
			  kdsm_map_t map, void *arg)
{
	struct kdsm_block *block;
	int err;

	if (index >= coherence->blocks)
		return -ERANGE;
	block = kdsm_block_get(coherence, index);
	if (!block)
		return -ENOMEM;
	err = coherence->policy->access(coherence, block, write, map, arg);
	kdsm_block_put(coherence, block);
	if (!err && write)
		kdsm_coherence_count(coherence, WRITE_FAULTS, 1);
	else if (!err)
		kdsm_coherence_count(coherence, READ_FAULTS, 1);
	return err;
}

int kdsm_coherence_get(struct kdsm_coherence *coherence, u64 index, bool write)
{
	struct kdsm_block *block;
	struct kdsm_patience patience = kdsm_patience_begin(coherence);
	int err;

	if (index >= coherence->blocks)
		return -ERANGE;
	err = kdsm_doubts_ask(coherence, index);
	if (err)
		return err;
	block = kdsm_block_get(coherence, index);
	if (!block)
		return -ENOMEM;
	do {
		WRITE_ONCE(coherence->needed, kdsm_chunk_of(coherence, index));
		wait_event(coherence->wait, !kdsm_block_is_leaving(coherence, block));
		err = kdsm_block_room(coherence, block, write) ?:
		      coherence->policy->get(coherence, block, write, true);
	} while (kdsm_evict_wait(coherence, &err, &patience));
	kdsm_block_put(coherence, block);
	return err;
}

bool kdsm_coherence_is_busy(struct kdsm_coherence *coherence, u64 index)
{
	const struct kdsm_block *block;
	bool is_busy;

	if (READ_ONCE(coherence->leaving) == kdsm_chunk_of(coherence, index))
		return true;
	xa_lock(&coherence->table);
	block = kdsm_entry_block(xa_load(&coherence->table, index));
	is_busy = block && READ_ONCE(block->busy);
	xa_unlock(&coherence->table);
	return is_busy;
}

/* Under policy strict all nodes see every write at once: release and acquire do nothing */
int kdsm_coherence_release(struct kdsm_coherence *coherence,
			   struct kdsm_signature *signature)
{
	struct kdsm_patience patience = kdsm_patience_begin(coherence);
	int err;

	if (READ_ONCE(coherence->outcast))
		return -ESTALE;
	if (!coherence->policy->release) {
		if (signature)
			kdsm_signature_init(signature);
		return 0;
	}
	do {
		err = coherence->policy->release(coherence, signature);
	} while (kdsm_evict_wait(coherence, &err, &patience));
	return err;
}

int kdsm_coherence_acquire(struct kdsm_coherence *coherence,
			   const struct kdsm_signature *signature)
{
	int err = kdsm_doubts_ask(coherence, 0);

	if (!err && coherence->policy->acquire)
		err = coherence->policy->acquire(coherence, signature);
	return err;
}

int kdsm_coherence_atomic(struct kdsm_coherence *coherence, struct kdsm_atomic *atomic, bool wait)
{
	u64 index = kdsm_block_at(coherence, atomic->offset);
	struct kdsm_block *block;
	struct kdsm_patience patience = kdsm_patience_begin(coherence);
	int err;

	if (!coherence->policy->atomic)
		return -EOPNOTSUPP;
	if (index >= coherence->blocks)
		return -ERANGE;
	/* To ask takes messages */
	if (!wait && kdsm_is_doubtful(coherence))
		return -EAGAIN;
	err = kdsm_doubts_ask(coherence, index);
	if (err)
		return err;
	block = kdsm_block_get(coherence, index);
	if (!block)
		return -ENOMEM;
	do {
		err = coherence->policy->atomic(coherence, block, atomic, wait);
		/* The caller's second call, which waits, may evict */
		if (err == -ENOMEM && !wait)
			err = -EAGAIN;
	} while (wait && kdsm_evict_wait(coherence, &err, &patience));
	kdsm_block_put(coherence, block);
	return err;
}

/* ---- hints ---- */

/* Blocks that a call takes over before releases and acquires of other threads get their turn */
#define KDSM_OWN_BLOCKS	256U

static int kdsm_block_prefetch(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block = kdsm_block_get(coherence, index);
	struct kdsm_patience patience = kdsm_patience_begin(coherence);
	int err;

	if (!block)
		return -ENOMEM;
	do {
		err = coherence->policy->get(coherence, block, false, false);
	} while (kdsm_evict_wait(coherence, &err, &patience));
	kdsm_block_put(coherence, block);
	return err;
}

static int kdsm_coherence_flush(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	struct kdsm_patience patience = kdsm_patience_begin(coherence);
	int err;

	if (READ_ONCE(coherence->outcast))
		return -ESTALE;
	if (!coherence->policy->flush)
		return 0;
	do {
		err = coherence->policy->flush(coherence, first, last);
	} while (kdsm_evict_wait(coherence, &err, &patience));
	return err;
}

static int kdsm_coherence_refresh(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	int err = kdsm_doubts_ask(coherence, first);

	if (!err && coherence->policy->refresh)
		err = coherence->policy->refresh(coherence, first, last);
	return err;
}

/* Take over the i-th block from the one that arg points to */
static int kdsm_block_own(struct kdsm_coherence *coherence, void *arg, u64 i)
{
	struct kdsm_block *block;
	int err;

	if (signal_pending(current))
		return -EINTR;
	block = kdsm_block_get(coherence, *(u64 *)arg + i);
	if (!block)
		return -ENOMEM;
	err = coherence->policy->own(coherence, block);
	kdsm_block_put(coherence, block);
	return err;
}

/* Take over blocks one by one: memory is short, so the earlier ones may have to leave again */
static int kdsm_range_own_slowly(struct kdsm_coherence *coherence, u64 first, u64 count)
{
	struct kdsm_patience patience;
	int err = 0;
	u64 i;

	for (i = 0; i < count && !err; i++) {
		patience = kdsm_patience_begin(coherence);
		do {
			mutex_lock(&coherence->fence);
			err = kdsm_block_own(coherence, &first, i);
			mutex_unlock(&coherence->fence);
		} while (kdsm_evict_wait(coherence, &err, &patience));
	}
	return err;
}

static int kdsm_range_own(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	int err = 0;
	u64 count;

	for (; first <= last && !err; first += count) {
		/* Blocks of one size */
		count = min3(last + 1, kdsm_segment_end(coherence, first),
			     first + KDSM_OWN_BLOCKS) - first;
		mutex_lock(&coherence->fence);
		err = kdsm_take_many(coherence, count, count, kdsm_block_size(coherence, first),
				     true, kdsm_block_own, &first);
		mutex_unlock(&coherence->fence);
		if (err == -ENOMEM || err == -ENOBUFS)
			err = kdsm_range_own_slowly(coherence, first, count);
	}
	return err;
}

int kdsm_coherence_advise(struct kdsm_coherence *coherence, enum kdsm_advice advice,
			  u64 first, u64 last)
{
	int err = 0;

	if (advice == KDSM_ADVICE_FLUSH)
		return kdsm_coherence_flush(coherence, first, last);
	if (advice == KDSM_ADVICE_REFRESH)
		return kdsm_coherence_refresh(coherence, first, last);
	if (advice == KDSM_ADVICE_OWN)
		return kdsm_range_own(coherence, first, last);
	for (; first <= last && !err; first++) {
		if (signal_pending(current))
			return -EINTR;
		err = kdsm_block_prefetch(coherence, first);
		cond_resched();
	}
	return err;
}
