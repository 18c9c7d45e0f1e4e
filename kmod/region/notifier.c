// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that stop mapping a region of policy release, by munmap, by a mapping over it,
 * or by exit. The kernel first drops the page table entries, together with their dirty
 * bits, and only then calls close(), which marks the blocks. A release between the two
 * would find neither the dirty bits nor the marks. So an MMU notifier reports to the module
 * before the kernel drops entries. From then until close() has marked the blocks the
 * mapping is in doubt: every harvest of the region reports all pages that it was asked for
 * as written.
 *
 * How a mapping gets into doubt and out of it (mm/ of 6.1 and 6.12):
 *
 * - munmap, and every call that unmaps as part of its work, sends MMU_NOTIFY_UNMAP before
 *   it drops entries. It calls close() after the TLBs were flushed, so that no CPU can
 *   write through an entry that is gone. It holds mmap_lock, for writing or for reading,
 *   from before the notification until after close(). So a mapping in doubt whose mmap_lock
 *   is free is not in doubt any more.
 * - mremap, which the module refuses, moves the entries with their dirty bits, and moves
 *   them back, with the same notification, also under mmap_lock.
 * - exit calls release() once no thread runs in the process, and drops mmap_lock between
 *   release() and close(). So a free mmap_lock proves nothing here, and the mapping stays in
 *   doubt until it is closed.
 *
 * - A guest of KVM and a device that VFIO serves write without the CPU's page tables, and set no
 *   dirty bit. They read entries after a call of fixup_user_fault(), so a fault from there keeps
 *   the mapping in doubt until it is closed.
 *
 * Changes that this module makes to mappings itself (mapping.c, fault.c) are notified as
 * MMU_NOTIFY_CLEAR or MMU_NOTIFY_PROTECTION_PAGE. mprotect sends another kind of protection
 * event, and keeps the dirty bits. Nothing else drops entries of such a mapping, because
 * VM_PFNMAP excludes madvise, the OOM reaper, migration, and other changes of single pages.
 *
 * The kernel calls notifiers in reclaim, in atomic context, and with locks held that nest
 * inside those of a block. So notifiers take only spinlocks, and a task that holds one of these
 * spinlocks calls nothing that may sleep or take another lock than these.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rwsem.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* A process that maps regions: one for each mm, by mmu_notifier_get_locked() */
struct kdsm_process {
	struct mmu_notifier notifier;
	spinlock_t lock;		/* protects mappings; nests outside kdsm_mappings.lock */
	struct list_head mappings;
};

enum kdsm_mapping_state {
	KDSM_MAPPING_QUIET,
	KDSM_MAPPING_LEAVING,		/* in doubt while mmap_lock is held */
	KDSM_MAPPING_OPAQUE,		/* in doubt until it is closed */
};

/* One region in one process */
struct kdsm_mapping {
	struct list_head in_process;
	struct list_head in_region;
	struct kdsm_process *process;
	struct kdsm_region *region;
	unsigned long vmas;		/* number; vmas and state: under region->mappings.lock */
	enum kdsm_mapping_state state;
};

/* ---- notifications of the memory manager ---- */

static void kdsm_doubts_add(struct kdsm_mappings *mappings, int n)
{
	lockdep_assert_held(&mappings->lock);
	/*
	 * A task that sees the new count sees the marks made before. Pairs with
	 * smp_load_acquire() in kdsm_mappings_doubt().
	 */
	smp_store_release(&mappings->doubts, mappings->doubts + n);
}

static void kdsm_mapping_doubt(struct kdsm_mapping *mapping, enum kdsm_mapping_state state)
{
	struct kdsm_mappings *mappings = &mapping->region->mappings;

	spin_lock(&mappings->lock);
	if (mapping->state == KDSM_MAPPING_QUIET)
		kdsm_doubts_add(mappings, 1);
	mapping->state = max(mapping->state, state);
	/*
	 * The doubt becomes visible before entries are dropped: the kernel drops entries with
	 * a page table lock held, and this unlock followed by that lock orders the stores.
	 * Pairs with smp_rmb() in kdsm_mappings_doubt().
	 */
	spin_unlock(&mappings->lock);
}

static int kdsm_notifier_start(struct mmu_notifier *notifier,
			       const struct mmu_notifier_range *range)
{
	struct kdsm_process *process = container_of(notifier, struct kdsm_process, notifier);
	struct kdsm_mapping *mapping;

	if (range->event != MMU_NOTIFY_UNMAP)
		return 0;
	spin_lock(&process->lock);
	list_for_each_entry(mapping, &process->mappings, in_process) {
		const struct kdsm_region *region = mapping->region;

		/* A region has the same address in every process */
		if (range->start < region->base + kdsm_region_size(region) &&
		    range->end > region->base)
			kdsm_mapping_doubt(mapping, KDSM_MAPPING_LEAVING);
	}
	spin_unlock(&process->lock);
	return 0;
}

static void kdsm_notifier_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct kdsm_process *process = container_of(notifier, struct kdsm_process, notifier);
	struct kdsm_mapping *mapping;

	spin_lock(&process->lock);
	list_for_each_entry(mapping, &process->mappings, in_process)
		kdsm_mapping_doubt(mapping, KDSM_MAPPING_OPAQUE);
	spin_unlock(&process->lock);
}

static struct mmu_notifier *kdsm_notifier_alloc(struct mm_struct *mm)
{
	struct kdsm_process *process = kzalloc(sizeof(*process), GFP_KERNEL_ACCOUNT);

	if (!process)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&process->lock);
	INIT_LIST_HEAD(&process->mappings);
	return &process->notifier;
}

static void kdsm_notifier_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct kdsm_process, notifier));
}

static const struct mmu_notifier_ops kdsm_notifier_ops = {
	.invalidate_range_start = kdsm_notifier_start,
	.release = kdsm_notifier_release,
	.alloc_notifier = kdsm_notifier_alloc,
	.free_notifier = kdsm_notifier_free,
};

void kdsm_notifier_exit(void)
{
	/* Wait for the notifiers that mmu_notifier_put() frees after a grace period */
	mmu_notifier_synchronize();
}

/* ---- questions of a harvest ---- */

/*
 * Caller has harvested the page tables. A task that drops an entry puts the mapping into
 * doubt first. So an entry that the harvest did not find was dropped by a mapping that is
 * in doubt now, or that was in doubt earlier. In the second case close() has marked the
 * blocks, and the caller checks the marks next.
 */
bool kdsm_mappings_doubt(struct kdsm_region *region)
{
	struct kdsm_mappings *mappings = &region->mappings;
	struct kdsm_mapping *mapping;
	bool doubt;

	/* Read the page tables before doubts. Pairs with spin_unlock() in kdsm_mapping_doubt(). */
	smp_rmb();
	/* Read the marks after doubts. Pairs with smp_store_release() in kdsm_doubts_add(). */
	if (!smp_load_acquire(&mappings->doubts))
		return false;
	spin_lock(&mappings->lock);
	list_for_each_entry(mapping, &mappings->list, in_region) {
		if (mapping->state != KDSM_MAPPING_LEAVING ||
		    rwsem_is_locked(&mapping->process->notifier.mm->mmap_lock))
			continue;
		/*
		 * Read the marks after mmap_lock was seen free. Pairs with the release of
		 * mmap_lock by the task that called kdsm_fault_close().
		 */
		smp_mb();
		/*
		 * A task that takes mmap_lock from now on calls kdsm_mapping_doubt(), which waits
		 * for mappings->lock, before the kernel drops an entry.
		 */
		mapping->state = KDSM_MAPPING_QUIET;
		kdsm_doubts_add(mappings, -1);
	}
	doubt = mappings->doubts;
	spin_unlock(&mappings->lock);
	return doubt;
}

/* ---- mappings ---- */

void kdsm_mappings_init(struct kdsm_mappings *mappings)
{
	spin_lock_init(&mappings->lock);
	INIT_LIST_HEAD(&mappings->list);
	mappings->doubts = 0;
}

static struct kdsm_mapping *kdsm_mapping_of(struct kdsm_region *region,
					    const struct mm_struct *mm)
{
	struct kdsm_mapping *mapping;

	lockdep_assert_held(&region->mappings.lock);
	list_for_each_entry(mapping, &region->mappings.list, in_region)
		if (mapping->process->notifier.mm == mm)
			return mapping;
	return NULL;
}

void kdsm_mappings_opaque(struct kdsm_region *region, const struct mm_struct *mm)
{
	struct kdsm_mapping *mapping;

	spin_lock(&region->mappings.lock);
	mapping = kdsm_mapping_of(region, mm);
	spin_unlock(&region->mappings.lock);
	/* The mapping stays, because the caller holds mmap_lock. An unwatched one is in doubt. */
	if (mapping)
		kdsm_mapping_doubt(mapping, KDSM_MAPPING_OPAQUE);
}

/* Count one more vma. Returns false, with nothing counted, if the process has no mapping yet. */
static bool kdsm_mapping_again(struct kdsm_region *region, const struct mm_struct *mm)
{
	struct kdsm_mapping *mapping;

	spin_lock(&region->mappings.lock);
	mapping = kdsm_mapping_of(region, mm);
	if (mapping)
		mapping->vmas++;
	spin_unlock(&region->mappings.lock);
	return mapping;
}

int kdsm_mappings_add(struct kdsm_region *region, struct mm_struct *mm)
{
	struct mmu_notifier *notifier;
	struct kdsm_mapping *mapping;

	lockdep_assert_held_write(&mm->mmap_lock);
	if (kdsm_mapping_again(region, mm))
		return 0;
	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	notifier = mmu_notifier_get_locked(&kdsm_notifier_ops, mm);
	if (IS_ERR(notifier)) {
		kfree(mapping);
		return PTR_ERR(notifier);
	}
	mapping->process = container_of(notifier, struct kdsm_process, notifier);
	mapping->region = region;
	mapping->vmas = 1;
	spin_lock(&mapping->process->lock);
	list_add(&mapping->in_process, &mapping->process->mappings);
	spin_unlock(&mapping->process->lock);
	spin_lock(&region->mappings.lock);
	list_add(&mapping->in_region, &region->mappings.list);
	spin_unlock(&region->mappings.lock);
	return 0;
}

void kdsm_mappings_add_unwatched(struct kdsm_region *region)
{
	struct kdsm_mappings *mappings = &region->mappings;

	spin_lock(&mappings->lock);
	kdsm_doubts_add(mappings, 1);
	spin_unlock(&mappings->lock);
}

void kdsm_mappings_remove(struct kdsm_region *region, struct mm_struct *mm)
{
	struct kdsm_mappings *mappings = &region->mappings;
	struct kdsm_mapping *mapping;

	spin_lock(&mappings->lock);
	mapping = kdsm_mapping_of(region, mm);
	if (!mapping)
		kdsm_doubts_add(mappings, -1);	/* an unwatched mapping */
	if (!mapping || --mapping->vmas) {
		spin_unlock(&mappings->lock);
		return;
	}
	list_del(&mapping->in_region);
	if (mapping->state != KDSM_MAPPING_QUIET)
		kdsm_doubts_add(mappings, -1);
	spin_unlock(&mappings->lock);
	/* The mapping cannot get into doubt now: that takes mmap_lock, which the caller holds */
	spin_lock(&mapping->process->lock);
	list_del(&mapping->in_process);
	spin_unlock(&mapping->process->lock);
	mmu_notifier_put(&mapping->process->notifier);
	kfree(mapping);
}
