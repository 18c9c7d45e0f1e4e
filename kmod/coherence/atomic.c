// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: atomic operations on words. A node performs them on its frame while it owns the
 * block, so each acts on the newest content, whatever copies there are. The block's lock gives all
 * operations on a word one order. An operation that stores publishes the block with a new write
 * timestamp before the block can go to another node.
 *
 * Why an acquire sees what a release published: the operation with RELEASE gets a timestamp above
 * all that its node had released or acquired. The write timestamp of the block only rises, and goes
 * with the ownership. So when another node takes the block over, the write timestamp of the content
 * (from_wts) is above all that any earlier RELEASE published. With it as the floor of an acquire,
 * each copy that may lack one of these writes becomes invalid. While the node stays the owner, no
 * other node performs an operation, so the node acquires that timestamp once.
 */
#include <linux/mm.h>

#include "internal.h"

/*
 * Perform the operation on the frame, which has the newest content, and publish it. 0 or -ENOMEM.
 * This node owns the block or is taking it over.
 */
static int kdsm_atomic_apply(struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_atomic *atomic)
{
	u64 at = atomic->offset - kdsm_block_offset(coherence, block->index), ts = 0;
	struct kdsm_notice notice = {};
	void *page;

	lockdep_assert_held(&block->lock);
	page = kdsm_block_page(coherence, coherence->frames, block, at >> PAGE_SHIFT);
	if (IS_ERR(page))
		return PTR_ERR(page);
	if (!kdsm_word_update(page + (at & ~PAGE_MASK & ~7ULL), atomic))
		return 0;
	if (atomic->flags & KDSM_ATOMIC_RELEASE)
		ts = READ_ONCE(coherence->clock) + 1;
	kdsm_block_publish(coherence, block, ts, &notice);
	kdsm_notice_flush(coherence, &notice);
	return 0;
}

/*
 * Whether this node has to acquire what other nodes released before it became the owner. The floor
 * of its signature does not tell, because an acquire raises that before it drops copies.
 */
static bool kdsm_atomic_acquires(struct kdsm_coherence *coherence, const struct kdsm_block *block,
				 const struct kdsm_atomic *atomic)
{
	if (!(atomic->flags & KDSM_ATOMIC_ACQUIRE))
		return false;
	/* Pairs with smp_store_release() in kdsm_acquire_end() */
	return block->from_wts > smp_load_acquire(&coherence->acquired);
}

int kdsm_atomic_taken(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct kdsm_atomic *atomic)
{
	int err = 0;

	if (kdsm_atomic_acquires(coherence, block, atomic)) {
		mutex_unlock(&block->lock);
		err = kdsm_acquire_until(coherence, block->from_wts);
		mutex_lock(&block->lock);
	}
	return err ?: kdsm_atomic_apply(coherence, block, atomic);
}

int kdsm_release_atomic(struct kdsm_coherence *coherence, struct kdsm_block *block,
			struct kdsm_atomic *atomic, bool wait)
{
	int err = -EAGAIN;

	mutex_lock(&block->lock);
	if (kdsm_block_is_owned(block) && !kdsm_atomic_acquires(coherence, block, atomic) &&
	    !kdsm_block_is_leaving(coherence, block))
		err = kdsm_atomic_apply(coherence, block, atomic);
	mutex_unlock(&block->lock);
	if (err != -EAGAIN || !wait)
		return err;
	mutex_lock(&coherence->fence);
	err = kdsm_block_take(coherence, block, true, atomic);
	mutex_unlock(&coherence->fence);
	return err;
}
