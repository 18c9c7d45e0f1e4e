// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that stop to map a region of policy release: munmap, a mapping over it,
 * exit. The kernel drops the page table entries first, with the notes of what was
 * written, and only then calls close(), which marks the blocks. A release between
 * the two would find neither. So the memory manager is asked to tell before it drops
 * entries (MMU notifiers), and from then until close() has marked the blocks the
 * mapping is in doubt: every harvest of the region takes all that was asked for as
 * written.
 *
 * How a mapping gets into doubt, and out of it (mm/ of 6.1 and 6.12):
 *
 * - munmap and all that unmaps on the way of something else send MMU_NOTIFY_UNMAP
 *   before they drop entries, and call close() after the TLBs were flushed, so that
 *   nobody can write by way of an entry that is gone. Who does it holds mmap_lock, to
 *   write or to read, from before the notification until after close(): a mapping in
 *   doubt whose mmap_lock is free is in doubt no more.
 * - mremap, which we refuse, moves the entries, with their notes, and moves them back,
 *   with the same notification, under mmap_lock as well.
 * - exit calls release(), once nobody runs in the process, and drops mmap_lock in
 *   between: the mapping is in doubt until it is closed for good.
 *
 * What this module does to mappings itself (vm.c, fault.c) is notified as
 * MMU_NOTIFY_CLEAR or MMU_NOTIFY_PROTECTION_PAGE, mprotect as another kind of
 * protection, which keeps the notes; nobody else drops entries of such a mapping, as
 * VM_PFNMAP keeps madvise, the OOM reaper, migration and the like away.
 *
 * Notifiers are called with locks held that nest inside those of a block, in reclaim,
 * and where sleeping is forbidden. They take spinlocks only, under which nothing else
 * is done.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rwsem.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* A process that maps regions. One for each mm, by mmu_notifier_get_locked(). */
struct kdsm_process {
	struct mmu_notifier notifier;
	spinlock_t lock;		/* guards the list; outside those of regions */
	struct list_head mappings;
};

enum kdsm_mapping_state {
	KDSM_MAPPING_QUIET,
	KDSM_MAPPING_LEAVING,		/* in doubt, while mmap_lock is held */
	KDSM_MAPPING_EXITING,		/* in doubt, to the end */
};

/* One region in one process. */
struct kdsm_mapping {
	struct list_head in_process;
	struct list_head in_region;
	struct kdsm_process *process;
	struct kdsm_region *region;
	unsigned long vmas;		/* guarded, with state, by the region's lock */
	enum kdsm_mapping_state state;
};

/* ---- what the memory manager tells ---- */

static void kdsm_doubts_add(struct kdsm_mappings *mappings, int n)
{
	lockdep_assert_held(&mappings->lock);
	/* Whoever sees it sees the marks made before: pairs with kdsm_mappings_doubt(). */
	smp_store_release(&mappings->doubts, mappings->doubts + n);
}

static void kdsm_mapping_doubt(struct kdsm_mapping *mapping, enum kdsm_mapping_state state)
{
	struct kdsm_mappings *mappings = &mapping->region->mappings;

	spin_lock(&mappings->lock);
	if (mapping->state == KDSM_MAPPING_QUIET)
		kdsm_doubts_add(mappings, 1);
	mapping->state = max(mapping->state, state);
	/* Seen before what comes now: the unlock pairs with kdsm_mappings_doubt(). */
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

		/* A region has one address, in every process. */
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
		kdsm_mapping_doubt(mapping, KDSM_MAPPING_EXITING);
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
	/* The last to be put are freed later. */
	mmu_notifier_synchronize();
}

/* ---- what is asked ---- */

/*
 * Called after the page tables were looked at. Who drops an entry has put the mapping
 * into doubt before, so one that was not found any more was dropped by a mapping that
 * is in doubt here, or was: then its blocks are marked, which the caller looks at next.
 */
bool kdsm_mappings_doubt(struct kdsm_region *region)
{
	struct kdsm_mappings *mappings = &region->mappings;
	struct kdsm_mapping *mapping;
	bool doubt;

	/* Page tables first. Pairs with the unlock in kdsm_mapping_doubt(). */
	smp_rmb();
	/* The marks later. Pairs with the release in kdsm_doubts_add(). */
	if (!smp_load_acquire(&mappings->doubts))
		return false;
	spin_lock(&mappings->lock);
	list_for_each_entry(mapping, &mappings->list, in_region) {
		if (mapping->state != KDSM_MAPPING_LEAVING ||
		    rwsem_is_locked(&mapping->process->notifier.mm->mmap_lock))
			continue;
		/* The marks later, here too. Pairs with the release of mmap_lock. */
		smp_mb();
		/* Whoever takes it now waits for our lock before it drops an entry. */
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

/* True: the process maps the region already, and one more vma is counted. */
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
		kdsm_doubts_add(mappings, -1);	/* one that nobody watched */
	if (!mapping || --mapping->vmas) {
		spin_unlock(&mappings->lock);
		return;
	}
	list_del(&mapping->in_region);
	if (mapping->state != KDSM_MAPPING_QUIET)
		kdsm_doubts_add(mappings, -1);
	spin_unlock(&mappings->lock);
	/* It cannot get into doubt meanwhile: that takes mmap_lock, which is held. */
	spin_lock(&mapping->process->lock);
	list_del(&mapping->in_process);
	spin_unlock(&mapping->process->lock);
	mmu_notifier_put(&mapping->process->notifier);
	kfree(mapping);
}
