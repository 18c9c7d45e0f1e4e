// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: the leases of copies. A copy that this node does not own is valid until its read
 * timestamp, and an acquire that raises the floor above that makes it invalid.
 *
 * A tree that had each copy would take more memory than all else that a node keeps of a copy. So a
 * lease stands for 64 neighbouring blocks, and has the earliest read timestamp of their copies, or
 * an earlier one: it does not rise when a copy goes or is renewed. An acquire looks at the blocks
 * of the leases that end below the floor, and finds then when each of these leases ends next.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

#define KDSM_LEASE_BLOCKS	64

/* A search by number of the first block: a lease, or the place of a block */
static int kdsm_lease_compare(u64 first, const struct rb_node *node)
{
	const struct kdsm_lease *lease = rb_entry(node, struct kdsm_lease, by_first);

	return first < lease->first ? -1 : first > lease->first;
}

static int kdsm_lease_search(const void *first, const struct rb_node *node)
{
	return kdsm_lease_compare(*(const u64 *)first, node);
}

static int kdsm_lease_place(struct rb_node *node, const struct rb_node *other)
{
	return kdsm_lease_compare(rb_entry(node, struct kdsm_lease, by_first)->first, other);
}

static bool kdsm_lease_ends_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct kdsm_lease, by_rts)->rts <
	       rb_entry(b, struct kdsm_lease, by_rts)->rts;
}

static void kdsm_lease_init(struct kdsm_lease *lease, u64 first, u64 last)
{
	lease->first = first;
	lease->last = last;
	lease->rts = U64_MAX;
	RB_CLEAR_NODE(&lease->by_rts);
}

void kdsm_leases_init(struct kdsm_coherence *coherence)
{
	coherence->leases.by_rts = RB_ROOT_CACHED;
	coherence->leases.by_first = RB_ROOT;
	kdsm_lease_init(&coherence->leases.whole, 0, coherence->blocks - 1);
	rb_add_cached(&coherence->leases.whole.by_rts, &coherence->leases.by_rts,
		      kdsm_lease_ends_before);
}

static void kdsm_lease_free(struct kdsm_coherence *coherence, struct kdsm_lease *lease)
{
	rb_erase(&lease->by_first, &coherence->leases.by_first);
	coherence->leases.count--;
	kfree(lease);
}

void kdsm_leases_free(struct kdsm_coherence *coherence)
{
	struct rb_node *node;

	while ((node = rb_first(&coherence->leases.by_first)))
		kdsm_lease_free(coherence, rb_entry(node, struct kdsm_lease, by_first));
}

/* Caller holds coherence->lock */
static struct kdsm_lease *kdsm_lease_find(struct kdsm_coherence *coherence, u64 first)
{
	struct rb_node *node = rb_find(&first, &coherence->leases.by_first, kdsm_lease_search);

	return node ? rb_entry(node, struct kdsm_lease, by_first) : NULL;
}

/* Add a lease, and return it, or the one that another task has added. Caller holds the lock. */
static struct kdsm_lease *kdsm_lease_add(struct kdsm_coherence *coherence,
					 struct kdsm_lease *made)
{
	struct rb_node *found;

	found = rb_find_add(&made->by_first, &coherence->leases.by_first, kdsm_lease_place);
	if (found)
		return rb_entry(found, struct kdsm_lease, by_first);
	coherence->leases.count++;
	rb_add_cached(&made->by_rts, &coherence->leases.by_rts, kdsm_lease_ends_before);
	return made;
}

/* A copy is valid until rts. Caller holds coherence->lock. */
static void kdsm_lease_lower(struct kdsm_coherence *coherence, struct kdsm_lease *lease, u64 rts)
{
	if (rts >= lease->rts)
		return;
	if (!RB_EMPTY_NODE(&lease->by_rts))
		rb_erase_cached(&lease->by_rts, &coherence->leases.by_rts);
	lease->rts = rts;
	if (!RB_EMPTY_NODE(&lease->by_rts))
		rb_add_cached(&lease->by_rts, &coherence->leases.by_rts, kdsm_lease_ends_before);
}

void kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       bool is_cached)
{
	u64 first = block->index & ~(u64)(KDSM_LEASE_BLOCKS - 1);
	struct kdsm_lease *lease, *made;

	lockdep_assert_held(&block->lock);
	block->cached = is_cached;
	if (!is_cached)
		return;
	spin_lock(&coherence->lock);
	lease = kdsm_lease_find(coherence, first);
	if (lease)
		kdsm_lease_lower(coherence, lease, block->rts);
	spin_unlock(&coherence->lock);
	if (lease)
		return;
	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (made)
		kdsm_lease_init(made, first, first + KDSM_LEASE_BLOCKS - 1);
	spin_lock(&coherence->lock);
	lease = made ? kdsm_lease_add(coherence, made) : &coherence->leases.whole;
	kdsm_lease_lower(coherence, lease, block->rts);
	spin_unlock(&coherence->lock);
	if (lease != made)
		kfree(made);
}

/*
 * The lease that ends first, if it ends before floor, or NULL. Until kdsm_lease_put() it notes the
 * copies that become valid meanwhile.
 */
static struct kdsm_lease *kdsm_lease_take(struct kdsm_coherence *coherence, u64 floor)
{
	struct kdsm_lease *lease = NULL;
	struct rb_node *first;

	spin_lock(&coherence->lock);
	first = rb_first_cached(&coherence->leases.by_rts);
	if (first && rb_entry(first, struct kdsm_lease, by_rts)->rts < floor) {
		lease = rb_entry(first, struct kdsm_lease, by_rts);
		rb_erase_cached(&lease->by_rts, &coherence->leases.by_rts);
		RB_CLEAR_NODE(&lease->by_rts);
		lease->rts = U64_MAX;
	}
	spin_unlock(&coherence->lock);
	return lease;
}

/* Of the copies that were valid, one ends at rts and none before; U64_MAX: none is valid */
static void kdsm_lease_put(struct kdsm_coherence *coherence, struct kdsm_lease *lease, u64 rts)
{
	spin_lock(&coherence->lock);
	kdsm_lease_lower(coherence, lease, rts);
	if (lease->rts == U64_MAX && lease != &coherence->leases.whole)
		kdsm_lease_free(coherence, lease);
	else
		rb_add_cached(&lease->by_rts, &coherence->leases.by_rts, kdsm_lease_ends_before);
	spin_unlock(&coherence->lock);
}

/* Invalidate the copy of a block if it ends below floor */
static int kdsm_lease_end(struct kdsm_coherence *coherence, u64 index, u64 floor,
			  struct kdsm_picks *victims)
{
	struct kdsm_block *block = kdsm_block_find(coherence, index);
	int err = 0;

	if (!block)
		return 0;
	mutex_lock(&block->lock);
	/* Else another task took the block, or has fetched it again */
	if (block->cached && block->rts < floor)
		err = kdsm_block_invalidate(coherence, block, victims);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
	return err;
}

int kdsm_acquire_floor(struct kdsm_coherence *coherence, u64 floor, struct kdsm_picks *victims)
{
	struct kdsm_glance glance;
	struct kdsm_lease *lease;
	int err = 0;
	u64 i, rts;

	lockdep_assert_held(&coherence->fence);
	while (!err && (lease = kdsm_lease_take(coherence, floor))) {
		rts = U64_MAX;
		for (i = lease->first;
		     !err && kdsm_block_glance(coherence, &i, lease->last, &glance); i++) {
			kdsm_coherence_count(coherence, LOOKED, 1);
			if (glance.cached && glance.rts < floor)
				err = kdsm_lease_end(coherence, i, floor, victims);
			else if (glance.cached)
				rts = min(rts, glance.rts);
		}
		kdsm_lease_put(coherence, lease, err ? 0 : rts);
	}
	return err;
}
