// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: the leases of copies. A copy that this node does not own is valid until its read
 * timestamp, and an acquire that raises the floor above that makes it invalid.
 *
 * An entry of a tree for each copy would take more memory than the copy's record. So one lease
 * covers 64 neighbouring blocks. It ends when the first of their copies does, or earlier, because
 * it stays as it is when a copy goes or is renewed. An acquire looks at the blocks of the leases
 * that end below the floor, and finds then when each of these leases ends next.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

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

static void kdsm_lease_init(struct kdsm_lease *lease, u64 first)
{
	lease->first = first;
	lease->rts = U64_MAX;
	RB_CLEAR_NODE(&lease->by_rts);
}

void kdsm_leases_init(struct kdsm_coherence *coherence)
{
	coherence->leases.by_rts = RB_ROOT_CACHED;
	coherence->leases.by_first = RB_ROOT;
	kdsm_lease_init(&coherence->leases.whole, 0);
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

void kdsm_lease_cover(struct kdsm_coherence *coherence, u64 index, u64 rts)
{
	u64 first = index & ~(u64)(KDSM_LEASE_BLOCKS - 1);
	struct kdsm_lease *lease, *made;

	spin_lock(&coherence->lock);
	lease = kdsm_lease_find(coherence, first);
	if (lease)
		kdsm_lease_lower(coherence, lease, rts);
	spin_unlock(&coherence->lock);
	if (lease)
		return;
	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (made)
		kdsm_lease_init(made, first);
	spin_lock(&coherence->lock);
	lease = made ? kdsm_lease_add(coherence, made) : &coherence->leases.whole;
	kdsm_lease_lower(coherence, lease, rts);
	spin_unlock(&coherence->lock);
	if (lease != made)
		kfree(made);
}

void kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       bool is_cached)
{
	lockdep_assert_held(&block->lock);
	block->cached = is_cached;
	if (is_cached)
		kdsm_lease_cover(coherence, block->index, block->rts);
}

struct kdsm_lease *kdsm_lease_take(struct kdsm_coherence *coherence, u64 floor)
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

void kdsm_lease_put(struct kdsm_coherence *coherence, struct kdsm_lease *lease, u64 rts)
{
	spin_lock(&coherence->lock);
	kdsm_lease_lower(coherence, lease, rts);
	if (lease->rts == U64_MAX && lease != &coherence->leases.whole)
		kdsm_lease_free(coherence, lease);
	else
		rb_add_cached(&lease->by_rts, &coherence->leases.by_rts, kdsm_lease_ends_before);
	spin_unlock(&coherence->lock);
}
