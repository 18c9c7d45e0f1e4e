// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: release, hand-over and lending. Any number of nodes write a block
 * concurrently, and programs without data races are sequentially consistent. Acquires are
 * in acquire.c, accesses in access.c.
 *
 * The protocol follows Endo's dissertation, chapter 3: an owner that floats to the node
 * that released last, twins, write notices and logical leases in bounded signatures, fast
 * release and fast read. The differences are:
 *
 * - Links are followed by messages, which the kernel of the asked node answers
 *   (ownership.c).
 * - The owner that hands a block over makes the twin itself, at once, and the next owner
 *   reads that twin. The next owner merges against that content, and no copy is sent back.
 * - A hand-over releases the unreleased writes to the block, with a notice, because the
 *   content that is handed over includes them.
 * - The dirty bits of page tables tell which pages were modified. They are harvested at the
 *   release, and when a block is handed over or becomes invalid. A block that several
 *   releases in a row find unmodified leaves the write set.
 *
 * Why a read cannot return too old a value: let the release of a write w precede an
 * acquire. The signature has w's notice, with timestamp ts, or the signature's floor is at
 * least ts.
 *
 * - With the notice, every copy here that is older than ts becomes invalid. The next
 *   content comes from w's node, or from an owner that came after w's node.
 * - With the floor, every copy that is valid only until a timestamp below ts becomes
 *   invalid. A copy without w is such a copy: ts was chosen above the largest read
 *   timestamp of any copy without w. Only the owner raises the read timestamp, under the
 *   block's lock, when a node asks for a copy, and the read timestamp is handed over with
 *   the ownership.
 *
 * A copy may also hold writes that are not released yet, because it was read from a frame
 * while a program wrote there. So every write has to be released with a notice, even if the
 * frame ends up equal to the twin: another node may have read the 1 of the sequence 0, 1,
 * 0. Hence dirty bits decide what was modified, never a comparison.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

/*
 * Number of consecutive releases that find a block unmodified before the block is
 * write-protected. Checking a clean block costs next to nothing, while the write fault that
 * brings the block back is expensive, and one iteration of a program often has several
 * releases. The simulator sets a smaller value.
 */
#ifndef KDSM_IDLE_MAX
#define KDSM_IDLE_MAX	8
#endif
/*
 * Read lease: validity of a copy after its request, in logical timestamps. The lease of a block
 * doubles when it ended without a write and a node asks again, at most this often, and a write
 * makes it short again.
 */
#define KDSM_LEASE		16
#define KDSM_LEASE_DOUBLED	6

/* ---- timestamps ---- */

u64 kdsm_block_publish(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts,
		       struct kdsm_notice *notice)
{
	lockdep_assert_held(&block->lock);
	spin_lock(&coherence->lock);
	ts = max3(ts, block->rts + 1, block->wts + 1);
	WRITE_ONCE(coherence->clock, max(coherence->clock, ts));
	if (notice->count && (notice->ts != ts || notice->count == U32_MAX ||
			      notice->first + notice->count != block->index)) {
		kdsm_signature_add(&coherence->signature, notice, &coherence->raised);
		notice->count = 0;
	}
	if (!notice->count)
		*notice = (struct kdsm_notice) {
			.ts = ts, .first = block->index, .writer = coherence->node,
		};
	notice->count++;
	spin_unlock(&coherence->lock);
	block->wts = ts;
	WRITE_ONCE(block->rts, ts);
	block->modified = false;
	block->lease = 0;
	kdsm_stamp_raise(coherence, block);
	return ts;
}

void kdsm_notice_flush(struct kdsm_coherence *coherence, struct kdsm_notice *notice)
{
	spin_lock(&coherence->lock);
	if (notice->count)
		kdsm_signature_add(&coherence->signature, notice, &coherence->raised);
	notice->count = 0;
	spin_unlock(&coherence->lock);
}

/* ---- handing over ---- */

static int kdsm_release_handover(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	struct kdsm_notice notice = {};
	int err = 0;
	u64 floor;

	/* Harvest first: a later write sets its dirty bit again, for the next release */
	if (block->dirty)
		err = kdsm_block_harvest(coherence, block);
	if (err)
		return err;
	/*
	 * The next owner reads the twin, whose content stays unchanged until then: only an
	 * upgrade after a newer copy was fetched makes another twin with other content, and
	 * no newer copy exists while the next owner is taking the block over. It reads no content
	 * of time 0 (kdsm_block_content()).
	 */
	if (kdsm_block_has_content(coherence, block))
		err = kdsm_evict_spare(coherence, block) ?: kdsm_twin_make(coherence, block);
	if (err)
		return err;
	if (block->modified) {
		kdsm_block_publish(coherence, block, 0, &notice);
		kdsm_notice_flush(coherence, &notice);
	} else if (kdsm_block_in_doubt(coherence, block)) {
		/*
		 * The twin may have writes that the timestamp does not tell. So that the next owner
		 * reads the twin although it has a copy, the timestamp rises, without a notice.
		 */
		block->wts = block->rts + 1;
		WRITE_ONCE(block->rts, block->wts);
	}
	/*
	 * Acquires up to the floor did not look at this block, because this node owned it. Later
	 * writes get timestamps above rts, so an acquire that must see them has news.
	 */
	spin_lock(&coherence->lock);
	floor = kdsm_signature_floor(&coherence->signature, block->index);
	spin_unlock(&coherence->lock);
	WRITE_ONCE(block->rts, max(block->rts, floor));
	if (kdsm_block_has_content(coherence, block) ||
	    kdsm_memory_holds(coherence->frames, kdsm_block_offset(coherence, block->index))) {
		kdsm_block_cached(coherence, block, true);
	} else {
		/* This node has no memory for the block, so no program has the zeros mapped */
		WRITE_ONCE(block->state, KDSM_BLOCK_INVALID);
		block->whole = false;
	}
	kdsm_coherence_count(coherence, MIGRATIONS, 1);
	return 0;
}

/*
 * A copy is valid until the read timestamp. From here on the next write timestamp is above
 * the read timestamp, whichever node chooses it, because the read timestamp is handed over
 * with the ownership.
 */
static int kdsm_release_lend(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     unsigned int to, u64 clock, u64 *wts, u64 *rts)
{
	if (clock > *rts && *rts > *wts && block->lease < KDSM_LEASE_DOUBLED)
		block->lease++;
	*rts = max(*rts, max(*wts, clock) + (KDSM_LEASE << block->lease));
	/* A node that was only granted the block does not have the content */
	if (kdsm_block_is_owned(block))
		kdsm_stamp_raise(coherence, block);
	return 0;
}

/* ---- the write set ---- */

/*
 * Pick the blocks of the write set in first..last, in order of their indices. Blocks that join
 * concurrently may be missing. No block leaves the set meanwhile: caller holds coherence->fence.
 */
static int kdsm_writes_pick(struct kdsm_coherence *coherence, u64 first, u64 last,
			    struct kdsm_picks *writes)
{
	struct kdsm_block *block;
	u64 i;

	for (i = first; (block = kdsm_block_dirty_next(coherence, &i, last)); i++) {
		if (!kdsm_picks_add(writes, block)) {
			kdsm_block_put(coherence, block);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Find which blocks were modified, with one TLB flush for each run. -ENOMEM. */
static int kdsm_writes_harvest(struct kdsm_coherence *coherence, struct kdsm_picks *writes)
{
	size_t i, j, n;
	int err;

	for (i = 0; i < writes->count; i += n) {
		struct kdsm_picked *run = &writes->list[i];

		n = kdsm_run_length(coherence, run, writes->count - i);
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
 * Fetch the twin of node from, of time wts: into *bounce, which the caller frees in any case, or
 * into the frame if bounce is NULL
 */
static int kdsm_twin_fetch(struct kdsm_coherence *coherence, const struct kdsm_block *block,
			   unsigned int from, u64 wts, struct kdsm_bounce **bounce)
{
	if (bounce) {
		*bounce = kdsm_bounce_alloc(coherence, block);
		if (!*bounce)
			return -ENOMEM;
	}
	return kdsm_block_kept(coherence, block, coherence->twins, from, wts,
			       bounce ? *bounce : NULL);
}

int kdsm_block_take(struct kdsm_coherence *coherence, struct kdsm_block *block, bool any,
		    struct kdsm_atomic *atomic)
{
	struct kdsm_bounce *bounce = NULL;
	unsigned int from;
	bool is_mapped;
	u64 wts, rts;
	int err = 0;

	mutex_lock(&block->lock);
	kdsm_block_begin(coherence, block);
	if (kdsm_block_is_owned(block) && atomic) {
		/* A node that asks from now on is queued, as if this node had just got the block */
		WRITE_ONCE(block->role, KDSM_ROLE_TAKING);
		goto taken;
	}
	/* While this task waited for a busy block, a hand-over may have released the writes */
	if (kdsm_block_is_owned(block) || (!any && !block->modified))
		goto end;
	/*
	 * A block without writes of this node may have no twin. A copy of the current frame
	 * serves as twin: the merge compares the frame with it, to find writes that begin
	 * during the takeover. The twin stays, because the fence is held and the block is busy.
	 * No program of this node writes to a block that is invalid and has no twin.
	 */
	is_mapped = block->twin || block->state != KDSM_BLOCK_INVALID;
	if (is_mapped && !block->twin)
		err = kdsm_twin_make(coherence, block);
	if (err)
		goto end;
	mutex_unlock(&block->lock);

	err = kdsm_ownership_take(coherence, block, &from, &wts, &rts);
	mutex_lock(&block->lock);
	if (!err && !kdsm_twin_is_here(block, from, wts)) {
		mutex_unlock(&block->lock);
		err = kdsm_twin_fetch(coherence, block, from, wts, is_mapped ? &bounce : NULL);
		if (err)
			kdsm_ownership_fail(coherence, block);
		mutex_lock(&block->lock);
	}
	if (err)
		goto end;
	if (bounce)
		kdsm_twin_merge(coherence, block, bounce, from, false);
	block->lost = false;
	WRITE_ONCE(block->state, kdsm_block_valid_state(block));
	block->writer = KDSM_NOBODY;
	/* An owner needs no lease */
	kdsm_block_cached(coherence, block, false);
	block->wts = wts;
	WRITE_ONCE(block->rts, rts);
	block->whole = true;
	block->origin = KDSM_NOBODY;
	if (block->ask)
		kdsm_block_tell(coherence, block, coherence->node, wts);
	block->ask = false;
	block->lease = 0;
	kdsm_coherence_count(coherence, SLOW_RELEASES, 1);
taken:
	if (atomic)
		err = kdsm_atomic_taken(coherence, block, atomic);
	block->twin = false;
	kdsm_block_end(coherence, block);
	kdsm_ownership_taken(coherence, block);		/* drops the lock */
	kdsm_bounce_free(bounce);
	return err;
end:
	kdsm_block_end(coherence, block);
	mutex_unlock(&block->lock);
	kdsm_bounce_free(bounce);
	return err;
}

/* ---- taking over many ---- */

static bool kdsm_write_needs_take(const struct kdsm_picked *write)
{
	/* A guess without the lock of the block: kdsm_block_take() looks again with it. */
	return write->modified && !data_race(kdsm_block_is_owned(write->block));
}

/*
 * A release could not take over the block. If a node is missing, the block is lost until that node
 * is back, or the block is discarded: accesses fail, so that programs do not go on writing what
 * they cannot release. Caller holds coherence->fence, or works for a task that does.
 */
static void kdsm_block_lose(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	mutex_lock(&block->lock);
	if (block->lost && block->modified && !kdsm_block_is_owned(block)) {
		block->whole = false;
		kdsm_block_cached(coherence, block, false);
		kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	}
	mutex_unlock(&block->lock);
}

static int kdsm_write_take(struct kdsm_coherence *coherence, void *arg, u64 i)
{
	const struct kdsm_picks *writes = arg;
	struct kdsm_block *block = writes->list[i].block;
	int err;

	if (!kdsm_write_needs_take(&writes->list[i]))
		return 0;
	err = kdsm_block_take(coherence, block, false, NULL);
	if (err)
		kdsm_block_lose(coherence, block);
	return err;
}

/*
 * Become the owner of all modified blocks. A block that is not taken over stays modified. Returns
 * the first error after all blocks were tried.
 */
static int kdsm_writes_take_over(struct kdsm_coherence *coherence, struct kdsm_picks *writes)
{
	u64 wanted = 0, largest = 0;
	size_t i;

	for (i = 0; i < writes->count; i++) {
		if (!kdsm_write_needs_take(&writes->list[i]))
			continue;
		wanted++;
		largest = max(largest, kdsm_block_size(coherence, writes->list[i].block->index));
	}
	return wanted ? kdsm_take_many(coherence, writes->count, wanted, largest, false,
				       kdsm_write_take, writes) : 0;
}

/*
 * Publish the modified blocks that this node owns. A block that was handed over meanwhile was
 * published then.
 */
static void kdsm_writes_publish(struct kdsm_coherence *coherence, struct kdsm_picks *writes)
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

/* ---- blocks that programs have stopped writing ---- */

/*
 * Blocks that programs have stopped writing leave the write set, in three steps. First each
 * block becomes readable, so that a write that faults brings the block back. Then the run
 * is write-protected. Then a last harvest finds writes made in between; such a block stays,
 * and the next release publishes these writes. In the meantime a block is readable and in
 * the write set, so its page tables may have dirty bits; see kdsm_release_handover(). The
 * fence is held, so the block becomes neither invalid nor owned, and no other task takes
 * the block out of the set.
 */
static bool kdsm_write_is_idle(struct kdsm_picked *write)
{
	struct kdsm_block *block = write->block;
	bool idle;

	mutex_lock(&block->lock);
	idle = block->state == KDSM_BLOCK_WRITABLE && !write->modified && !block->modified &&
	       ++block->idle >= KDSM_IDLE_MAX;
	if (idle)
		WRITE_ONCE(block->state, KDSM_BLOCK_READABLE);
	else if (write->modified)
		block->idle = 0;
	mutex_unlock(&block->lock);
	return idle;
}

/*
 * Take a protected block out of the write set. Keep a block that a program made writable again,
 * or wrote before the protection. unknown: the harvest failed, so the block counts as modified.
 */
static void kdsm_write_retire(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool unknown)
{
	mutex_lock(&block->lock);
	block->modified |= unknown;
	if (block->state == KDSM_BLOCK_READABLE && !block->modified) {
		/* An unmodified frame is its own twin */
		if (!kdsm_block_is_owned(block))
			block->twin = false;
		kdsm_block_dirty(coherence, block, false);
	} else {
		WRITE_ONCE(block->state, KDSM_BLOCK_WRITABLE);
		block->idle = 0;
	}
	mutex_unlock(&block->lock);
}

/* Let the idle blocks leave the write set, as described above */
static void kdsm_writes_retire(struct kdsm_coherence *coherence, struct kdsm_picks *writes)
{
	struct kdsm_picked *idle = writes->list;
	size_t count = 0, i, j, n;
	int err;

	/* From here on only the idle blocks matter: move these to the front */
	for (i = 0; i < writes->count; i++) {
		if (!kdsm_write_is_idle(&writes->list[i]))
			continue;
		swap(idle[count], writes->list[i]);
		count++;
	}
	for (i = 0; i < count; i += n) {
		n = kdsm_run_length(coherence, &idle[i], count - i);
		kdsm_pages_protect(coherence, kdsm_block_offset(coherence, idle[i].block->index),
				   n * kdsm_block_size(coherence, idle[i].block->index));
		kdsm_coherence_count(coherence, FLUSHES, 1);
		err = kdsm_run_harvest(coherence, &idle[i], n);
		for (j = i; j < i + n; j++)
			kdsm_write_retire(coherence, idle[j].block, err);
	}
}

/* Release the writes to blocks from..to. Unless NULL, *signature becomes the node's signature. */
static int kdsm_release_some(struct kdsm_coherence *coherence, u64 from, u64 to,
			     struct kdsm_signature *signature)
{
	struct kdsm_picks writes = {};
	int err, harvest_err;

	/* A caller waits for a concurrent release, which may include the caller's writes */
	mutex_lock(&coherence->fence);
	harvest_err = kdsm_writes_pick(coherence, from, to, &writes) ?:
		      kdsm_writes_harvest(coherence, &writes);
	err = harvest_err ?: kdsm_writes_take_over(coherence, &writes);
	kdsm_writes_publish(coherence, &writes);
	if (!harvest_err)
		kdsm_writes_retire(coherence, &writes);
	if (signature) {
		spin_lock(&coherence->lock);
		*signature = coherence->signature;
		spin_unlock(&coherence->lock);
	}
	mutex_unlock(&coherence->fence);
	kdsm_picks_free(coherence, &writes);
	return err;
}

static int kdsm_release_release(struct kdsm_coherence *coherence,
				struct kdsm_signature *signature)
{
	return kdsm_release_some(coherence, 0, U64_MAX, signature);
}

/* ---- hints ---- */

/* The blocks get a notice of their own, as if they were handed over */
static int kdsm_release_flush(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	return kdsm_release_some(coherence, first, last, NULL);
}

static int kdsm_release_own(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	return kdsm_block_take(coherence, block, true, NULL);
}

/* ---- discarded blocks ---- */

/* Drop what this node has of the block, and the unreleased writes to it */
static void kdsm_block_empty(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	lockdep_assert_held(&coherence->fence);
	kdsm_block_unmap(coherence, block, KDSM_BLOCK_INVALID);
	kdsm_block_cached(coherence, block, false);
	kdsm_block_dirty(coherence, block, false);
	block->modified = false;
	block->twin = false;
	block->whole = false;
	block->lost = false;
}

void kdsm_release_forget(struct kdsm_coherence *coherence, struct kdsm_block *block,
			 unsigned int from, u64 ts)
{
	lockdep_assert_held(&block->lock);
	if (block->wts >= ts || block->role != KDSM_ROLE_NONE)
		return;
	kdsm_block_empty(coherence, block);
	/* The block is in the table for good, since this node accepted the claim */
	block->wanted = max(block->wanted, ts);
	block->writer = from;
}

static int kdsm_release_wipe(struct kdsm_coherence *coherence, struct kdsm_block *block, u64 ts)
{
	struct kdsm_notice notice = {};
	int err;

	kdsm_block_empty(coherence, block);
	err = kdsm_block_clear(coherence, block);
	if (err)
		return err;
	WRITE_ONCE(block->state, KDSM_BLOCK_READABLE);
	block->whole = true;
	block->origin = KDSM_NOBODY;
	block->writer = KDSM_NOBODY;
	kdsm_block_publish(coherence, block, ts, &notice);
	kdsm_notice_flush(coherence, &notice);
	return 0;
}

const struct kdsm_policy_ops kdsm_policy_release = {
	.access = kdsm_release_access,
	.handover = kdsm_release_handover,
	.lend = kdsm_release_lend,
	.release = kdsm_release_release,
	.acquire = kdsm_release_acquire,
	.flush = kdsm_release_flush,
	.refresh = kdsm_release_refresh,
	.atomic = kdsm_release_atomic,
	.get = kdsm_release_get,
	.own = kdsm_release_own,
	.wipe = kdsm_release_wipe,
};
