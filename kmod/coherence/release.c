// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: many writers a block, sequentially consistent for programs
 * without data races. After Endo's dissertation, chapter 3: an owner that floats
 * to whoever released last, twins, write notices and logical leases in bounded
 * signatures, fast release and fast read. What is different here:
 *
 * - Links are followed by messages, which the asked kernel answers (ownership.c).
 * - The owner that hands a block over makes the twin itself, at once, and the
 *   next one reads that: what it merges is what the twin says, with no copy sent
 *   back.
 * - A block that is handed over while there are unreleased writes in it is
 *   released by that, with a notice: they are in what was handed over.
 * - What was modified is told by the dirty bits of page tables, harvested at the
 *   release and when a block is handed over or becomes invalid. A block that many
 *   releases in a row find not modified leaves the write set.
 *
 * Why a read cannot see too old a value: let a write w be released before an
 * acquire. Its notice, with timestamp ts, is in the signature, or its floor is at
 * least ts. With the notice, every copy here that is older than ts becomes
 * invalid, and the next content comes from w's node, or from an owner that came
 * after it. With the floor, every copy that is good only until less than ts
 * becomes invalid; and a copy without w is such a one, as ts was chosen above the
 * read timestamp that all copies without w have at most: it is raised by the
 * owner, under the block's lock, when a copy is asked for, and passed on with the
 * ownership.
 *
 * A copy may also have what is not released yet. It was read from a frame while a
 * program wrote there, so whatever was written has to be released with a notice
 * of its own, even if in the end it is what the twin says: 0, 1 and again 0 may
 * have been read as 1. Hence it is the dirty bits that tell, never a comparison.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

/*
 * So many releases in a row a block may be not modified before it is protected. To
 * look at a clean block costs next to nothing, a write fault that brings it back
 * much, and iterations of programs often have several releases. The simulator has
 * less patience.
 */
#ifndef KDSM_IDLE_MAX
#define KDSM_IDLE_MAX	8
#endif
/* Blocks that a release takes over at the same time, and their bytes, at most. */
#define KDSM_TAKES_MAX		16U
#define KDSM_TAKES_BYTES	SZ_4M
/* A copy may be used until so much later than it was asked for, in timestamps. */
#define KDSM_LEASE	16

/* ---- timestamps ---- */

/*
 * This node's writes to the block up to now are released: give them a timestamp
 * of at least ts, above all read timestamps, and a notice, which is appended to
 * the former if it continues that.
 */
static u64 kdsm_block_publish(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      u64 ts, struct kdsm_notice *notice)
{
	lockdep_assert_held(&block->lock);
	spin_lock(&coherence->lock);
	ts = max3(ts, block->rts + 1, block->wts + 1);
	coherence->clock = max(coherence->clock, ts);
	if (notice->count && (notice->ts != ts || notice->count == U32_MAX ||
			      notice->first + notice->count != block->index)) {
		kdsm_signature_add(&coherence->signature, notice);
		notice->count = 0;
	}
	if (!notice->count)
		*notice = (struct kdsm_notice) {
			.ts = ts, .first = block->index, .writer = coherence->node,
		};
	notice->count++;
	spin_unlock(&coherence->lock);
	block->wts = ts;
	block->rts = ts;
	block->modified = false;
	kdsm_stamp_raise(coherence, block);
	return ts;
}

static void kdsm_notice_flush(struct kdsm_coherence *coherence, struct kdsm_notice *notice)
{
	spin_lock(&coherence->lock);
	if (notice->count)
		kdsm_signature_add(&coherence->signature, notice);
	notice->count = 0;
	spin_unlock(&coherence->lock);
}

/* ---- handing over ---- */

/* Take the dirty bits of the block's page tables over into modified. -ENOMEM. */
static int kdsm_block_harvest(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int pages = kdsm_block_size(coherence) >> PAGE_SHIFT;
	unsigned long *bitmap;

	lockdep_assert_held(&block->lock);
	bitmap = bitmap_zalloc(pages, GFP_KERNEL);
	if (!bitmap)
		return -ENOMEM;
	if (kdsm_pages_harvest(coherence, kdsm_block_offset(coherence, block),
			       kdsm_block_size(coherence), bitmap)) {
		block->modified = true;
		kdsm_coherence_count(coherence, FLUSHES, 1);
	}
	bitmap_free(bitmap);
	return 0;
}

static int kdsm_release_handover(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_notice notice = {};
	int err = 0;

	/* First, so that what is written from here on is noted for the next release. */
	if (!list_empty(&block->dirty))
		err = kdsm_block_harvest(coherence, block);
	if (err)
		return err;
	/*
	 * The next one reads the twin. It stays as it is until that is done: only
	 * an upgrade after a newer copy was fetched makes another, and while the
	 * next one is taking over there is no newer copy.
	 */
	err = kdsm_twin_make(coherence, block);
	if (err)
		return err;
	if (block->modified) {
		kdsm_block_publish(coherence, block, 0, &notice);
		kdsm_notice_flush(coherence, &notice);
	}
	kdsm_block_cached(coherence, block, true);
	kdsm_coherence_count(coherence, MIGRATIONS, 1);
	return 0;
}

/*
 * A copy is good until the read timestamp. From here on the next write timestamp
 * is above that, whoever gives it: it goes with the ownership.
 */
static int kdsm_release_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     unsigned int to, u64 clock, u64 *wts, u64 *rts)
{
	*rts = max(*rts, max(*wts, clock) + KDSM_LEASE);
	/* If it was granted only, the content is elsewhere. */
	if (kdsm_block_is_owned(block))
		kdsm_stamp_raise(coherence, block);
	return 0;
}

/* ---- the write set ---- */

/* Blocks in order of index. */
struct kdsm_writes {
	size_t count;
	struct kdsm_picked list[];
};

static bool kdsm_block_is_in(const struct kdsm_block *block, u64 first, u64 last)
{
	return block->index >= first && block->index <= last;
}

/*
 * What of the write set is in first..last, as it is now; more may join meanwhile, which
 * need not be seen.
 */
static struct kdsm_writes *kdsm_writes_take(struct kdsm_coherence *coherence, u64 first,
					    u64 last)
{
	struct kdsm_writes *writes;
	struct kdsm_block *block;
	size_t count = 0;

	spin_lock(&coherence->lock);
	list_for_each_entry(block, &coherence->dirty, dirty)
		count += kdsm_block_is_in(block, first, last);
	spin_unlock(&coherence->lock);
	writes = kvzalloc(struct_size(writes, list, count), GFP_KERNEL);
	if (!writes)
		return NULL;
	spin_lock(&coherence->lock);
	/* The fence is held, so none leaves; who joined since is at the end. */
	list_for_each_entry(block, &coherence->dirty, dirty) {
		if (writes->count == count)
			break;
		if (kdsm_block_is_in(block, first, last))
			writes->list[writes->count++].block = block;
	}
	spin_unlock(&coherence->lock);
	kdsm_picked_sort(writes->list, writes->count);
	return writes;
}

/* What of it was modified, with one flush of TLBs a run. -ENOMEM. */
static int kdsm_writes_harvest(struct kdsm_coherence *coherence, struct kdsm_writes *writes)
{
	size_t i, j, n;
	int err;

	for (i = 0; i < writes->count; i += n) {
		struct kdsm_picked *run = &writes->list[i];

		n = kdsm_run_length(run, writes->count - i);
		err = kdsm_run_harvest(coherence, run, n);
		if (err)
			return err;
		for (j = 0; j < n; j++) {
			mutex_lock(&run[j].block->lock);
			run[j].modified = run[j].block->modified;
			mutex_unlock(&run[j].block->lock);
		}
	}
	return 0;
}

/*
 * Become the owner of a block with unreleased writes, or of any, and merge them with
 * what others released. Its own hand-over publishes them if somebody waits already.
 */
static int kdsm_block_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			   bool any)
{
	struct kdsm_bounce *bounce = NULL;
	unsigned int from;
	u64 wts, rts;
	int err = 0;

	mutex_lock(&block->lock);
	kdsm_block_begin(coherence, block);
	/* Handed over since, and released by that? */
	if (kdsm_block_is_owned(block) || (!any && !block->modified))
		goto end;
	/*
	 * Without writes of this node there may be no twin; one of whatever is in the frame
	 * does, and writes that begin meanwhile go by it. It stays, as the fence is held and
	 * the block busy.
	 */
	if (!block->twin)
		err = kdsm_twin_make(coherence, block);
	if (err)
		goto end;
	mutex_unlock(&block->lock);

	bounce = kdsm_bounce_alloc(coherence);
	if (!bounce)
		err = -ENOMEM;
	if (!err)
		err = kdsm_ownership_take(coherence, block, &from, &wts, &rts);
	if (!err) {
		err = kdsm_block_fetch(coherence, block, coherence->twins, from, bounce);
		if (err)
			kdsm_ownership_fail(coherence, block);
	}
	mutex_lock(&block->lock);
	if (err)
		goto end;
	kdsm_twin_merge(coherence, block, bounce, false);
	block->twin = false;
	block->state = kdsm_block_valid_state(block);
	block->writer = KDSM_NOBODY;
	block->wts = wts;
	block->rts = rts;
	kdsm_block_cached(coherence, block, false);
	kdsm_coherence_count(coherence, SLOW_RELEASES, 1);
	kdsm_block_end(coherence, block);
	kdsm_ownership_taken(coherence, block);		/* unlocks */
	kdsm_bounce_free(bounce);
	return 0;
end:
	kdsm_block_end(coherence, block);
	mutex_unlock(&block->lock);
	kdsm_bounce_free(bounce);
	return err;
}

/* ---- taking over many ---- */

/*
 * Most of a take is waiting for the network, so several are under way at once: one by
 * the task that releases, the others by works, as far as there are any. Each gets the
 * next block that is to be taken over.
 *
 * Who takes over a block waits for nothing but this one block: it holds no lock and
 * has no other block busy meanwhile, here or elsewhere, and whoever has or wants the
 * block does not either. So no take waits for another one of the same release, and
 * two releases that take over the same blocks, each in its own order, do not wait for
 * each other in a circle. Nor has any work to run for a release to come to an end: the
 * task takes over what is left.
 */
struct kdsm_takes {
	struct kdsm_coherence *coherence;
	const struct kdsm_writes *writes;
	spinlock_t lock;		/* guards the rest */
	size_t next;
	int err;			/* the first; no more are begun then */
	struct kdsm_takes_work {
		struct work_struct work;
		struct kdsm_takes *takes;
	} works[KDSM_TAKES_MAX - 1];
};

static bool kdsm_write_needs_take(const struct kdsm_picked *write)
{
	return write->modified && !kdsm_block_is_owned(write->block);
}

/* NULL: there are no more, or one has failed. */
static struct kdsm_block *kdsm_takes_next(struct kdsm_takes *takes)
{
	const struct kdsm_writes *writes = takes->writes;
	struct kdsm_block *block = NULL;

	spin_lock(&takes->lock);
	while (!takes->err && !block && takes->next < writes->count) {
		if (kdsm_write_needs_take(&writes->list[takes->next]))
			block = writes->list[takes->next].block;
		takes->next++;
	}
	spin_unlock(&takes->lock);
	return block;
}

static void kdsm_takes_run(struct kdsm_takes *takes)
{
	struct kdsm_block *block;
	int err;

	while ((block = kdsm_takes_next(takes))) {
		err = kdsm_block_take(takes->coherence, block, false);
		if (!err)
			continue;
		spin_lock(&takes->lock);
		takes->err = takes->err ?: err;
		spin_unlock(&takes->lock);
	}
}

static void kdsm_takes_work(struct work_struct *work)
{
	kdsm_takes_run(container_of(work, struct kdsm_takes_work, work)->takes);
}

/* Become the owner of all that was modified. What is not taken over stays modified. */
static int kdsm_writes_take_over(struct kdsm_coherence *coherence,
				 const struct kdsm_writes *writes)
{
	unsigned int wanted = 0, works, most, i;
	struct kdsm_takes *takes;
	int err;

	most = clamp_t(u64, KDSM_TAKES_BYTES >> coherence->block_shift, 1, KDSM_TAKES_MAX);
	for (i = 0; i < writes->count && wanted < most; i++)
		wanted += kdsm_write_needs_take(&writes->list[i]);
	if (!wanted)
		return 0;
	takes = kzalloc(sizeof(*takes), GFP_KERNEL);
	if (!takes)
		return -ENOMEM;
	takes->coherence = coherence;
	takes->writes = writes;
	spin_lock_init(&takes->lock);
	works = wanted - 1;
	for (i = 0; i < works; i++) {
		takes->works[i].takes = takes;
		INIT_WORK(&takes->works[i].work, kdsm_takes_work);
		queue_work(system_unbound_wq, &takes->works[i].work);
	}
	kdsm_takes_run(takes);
	/* Those that have not begun have nothing to do any more. */
	for (i = 0; i < works; i++)
		cancel_work_sync(&takes->works[i].work);
	err = takes->err;
	kfree(takes);
	return err;
}

/*
 * Give what was modified a timestamp. A block that was handed over meanwhile got
 * its own then.
 */
static void kdsm_writes_publish(struct kdsm_coherence *coherence, struct kdsm_writes *writes)
{
	struct kdsm_notice notice = {};
	size_t i;
	u64 ts;

	ts = READ_ONCE(coherence->clock) + 1;
	for (i = 0; i < writes->count; i++)
		if (writes->list[i].modified)
			ts = max(ts, READ_ONCE(writes->list[i].block->rts) + 1);
	for (i = 0; i < writes->count; i++) {
		struct kdsm_block *block = writes->list[i].block;

		if (!writes->list[i].modified)
			continue;
		mutex_lock(&block->lock);
		if (kdsm_block_is_owned(block) && block->modified) {
			ts = kdsm_block_publish(coherence, block, ts, &notice);
			kdsm_coherence_count(coherence, FAST_RELEASES, 1);
		}
		mutex_unlock(&block->lock);
	}
	kdsm_notice_flush(coherence, &notice);
}

/* ---- blocks that nobody writes ---- */

/*
 * Blocks that nobody writes leave the write set. First each is readable, so that a
 * write that faults brings it back; then the run is write-protected; then a last look
 * whether something was written in between, which the next release sees to. Meanwhile
 * a block is in the write set and readable: its page tables may have notes of what was
 * modified, as those of any in the write set; see kdsm_release_handover(). As the
 * fence is held it becomes neither invalid nor owned, and nobody else takes it out of
 * the set.
 */
static bool kdsm_write_is_idle(struct kdsm_picked *write)
{
	struct kdsm_block *block = write->block;
	bool idle;

	mutex_lock(&block->lock);
	idle = block->state == KDSM_BLOCK_WRITABLE && !write->modified && !block->modified &&
	       ++block->idle >= KDSM_IDLE_MAX;
	if (idle)
		block->state = KDSM_BLOCK_READABLE;
	else if (write->modified)
		block->idle = 0;
	mutex_unlock(&block->lock);
	return idle;
}

/* What was mapped for writing since, or written before it was protected, stays. */
static void kdsm_write_retire(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool unknown)
{
	mutex_lock(&block->lock);
	block->modified |= unknown;
	if (block->state == KDSM_BLOCK_READABLE && !block->modified) {
		/* An unmodified frame is its own twin. */
		if (!kdsm_block_is_owned(block))
			block->twin = false;
		kdsm_block_dirty(coherence, block, false);
	} else {
		block->state = KDSM_BLOCK_WRITABLE;
		block->idle = 0;
	}
	mutex_unlock(&block->lock);
}

static void kdsm_writes_retire(struct kdsm_coherence *coherence, struct kdsm_writes *writes)
{
	struct kdsm_picked *idle = writes->list;
	size_t count = 0, i, j, n;
	int err;

	/* Nobody needs the others any more. */
	for (i = 0; i < writes->count; i++)
		if (kdsm_write_is_idle(&writes->list[i]))
			idle[count++] = writes->list[i];
	for (i = 0; i < count; i += n) {
		n = kdsm_run_length(&idle[i], count - i);
		kdsm_pages_protect(coherence, kdsm_block_offset(coherence, idle[i].block),
				   n * kdsm_block_size(coherence));
		kdsm_coherence_count(coherence, FLUSHES, 1);
		err = kdsm_run_harvest(coherence, &idle[i], n);
		for (j = i; j < i + n; j++)
			kdsm_write_retire(coherence, idle[j].block, err);
	}
}

static int kdsm_release_some(struct kdsm_coherence *coherence, u64 from, u64 to,
			     struct kdsm_signature *signature)
{
	struct kdsm_writes *writes;
	int err;

	/* Who comes while another releases waits: its writes may be in that. */
	mutex_lock(&coherence->fence);
	writes = kdsm_writes_take(coherence, from, to);
	if (!writes) {
		mutex_unlock(&coherence->fence);
		return -ENOMEM;
	}
	err = kdsm_writes_harvest(coherence, writes);
	if (!err)
		err = kdsm_writes_take_over(coherence, writes);
	kdsm_writes_publish(coherence, writes);
	if (!err)
		kdsm_writes_retire(coherence, writes);
	if (signature) {
		spin_lock(&coherence->lock);
		*signature = coherence->signature;
		spin_unlock(&coherence->lock);
	}
	mutex_unlock(&coherence->fence);
	kvfree(writes);
	return err;
}

static int kdsm_release_release(struct kdsm_coherence *coherence,
				struct kdsm_signature *signature)
{
	return kdsm_release_some(coherence, 0, U64_MAX, signature);
}

/* ---- hints ---- */

/* As if these blocks were handed over: they get a notice of their own. */
static int kdsm_release_flush(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	return kdsm_release_some(coherence, first, last, NULL);
}

static int kdsm_release_own(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	int err;

	mutex_lock(&coherence->fence);
	err = kdsm_block_take(coherence, block, true);
	mutex_unlock(&coherence->fence);
	return err;
}

const struct kdsm_policy_ops kdsm_policy_release = {
	.access = kdsm_release_access,
	.handover = kdsm_release_handover,
	.lend = kdsm_release_lend,
	.release = kdsm_release_release,
	.acquire = kdsm_release_acquire,
	.flush = kdsm_release_flush,
	.own = kdsm_release_own,
};
