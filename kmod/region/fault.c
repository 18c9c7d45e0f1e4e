// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of mappings of coherent regions, and access by debuggers. The policy decides under
 * the block's lock how a block may be mapped. The page table entry is made under the same
 * lock, so that a task that takes the block away misses no entry.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "internal.h"
#include "trace.h"

struct kdsm_fault {
	struct kdsm_region *region;
	struct vm_area_struct *vma;
	pgoff_t pgoff;			/* in the region */
	u64 index;			/* of the block */
	bool present;			/* a read-only entry exists */
	vm_fault_t ret;
};

/* Insert the page table entry of one page of a block. An existing entry stays unchanged. */
static vm_fault_t kdsm_fault_insert(struct kdsm_fault *fault, pgoff_t pgoff, bool writable)
{
	struct page *page = kdsm_memory_page(fault->region->memory, pgoff);
	struct vm_area_struct *vma = fault->vma;
	vm_flags_t flags = vma->vm_flags;

	if (IS_ERR(page))
		return VM_FAULT_SIGBUS;
	/* Read-only, like an entry of a private mapping */
	if (!writable)
		flags &= ~VM_SHARED;
	return vmf_insert_pfn_prot(vma, vma->vm_start + ((pgoff - vma->vm_pgoff) << PAGE_SHIFT),
				   page_to_pfn(page), vm_get_page_prot(flags));
}

/* The pages of a block that the mapping covers, of the region: from *first to before *end */
static void kdsm_fault_range(const struct kdsm_fault *fault, u64 index, pgoff_t *first,
			     pgoff_t *end)
{
	const struct kdsm_coherence *coherence = fault->region->coherence;
	u64 offset = kdsm_block_offset(coherence, index);

	*first = max_t(pgoff_t, offset >> PAGE_SHIFT, fault->vma->vm_pgoff);
	*end = min_t(pgoff_t, (offset + kdsm_block_size(coherence, index)) >> PAGE_SHIFT,
		     fault->vma->vm_pgoff + vma_pages(fault->vma));
}

/*
 * Map all other pages of the block that the mapping covers, so that not every page faults. It
 * is no error if such a page cannot be mapped.
 */
static void kdsm_fault_around(struct kdsm_fault *fault, u64 index, bool writable)
{
	pgoff_t pgoff, end;

	for (kdsm_fault_range(fault, index, &pgoff, &end); pgoff < end; pgoff++)
		if (pgoff != fault->pgoff &&
		    kdsm_fault_insert(fault, pgoff, writable) != VM_FAULT_NOPAGE)
			break;
}

/*
 * Remove the entries of the block, because an insertion would not replace them, so that all its
 * pages become writable by this fault. Some may be dirty: the policy has noted the block as
 * written.
 */
static void kdsm_fault_clear(struct kdsm_fault *fault)
{
	struct vm_area_struct *vma = fault->vma;
	pgoff_t first, end;

	kdsm_fault_range(fault, fault->index, &first, &end);
	zap_special_vma_range(vma, vma->vm_start + ((first - vma->vm_pgoff) << PAGE_SHIFT),
			      (end - first) << PAGE_SHIFT);
}

static int kdsm_fault_map(void *arg, u64 index, bool writable)
{
	struct kdsm_fault *fault = arg;

	if (index == fault->index) {
		/* Without memory the caller has blocks evicted */
		if (IS_ERR(kdsm_memory_page(fault->region->memory, fault->pgoff)))
			return -ENOMEM;
		if (fault->present)
			kdsm_fault_clear(fault);
		fault->ret = kdsm_fault_insert(fault, fault->pgoff, writable);
	}
	kdsm_fault_around(fault, index, writable);
	return 0;
}

/* The program gets SIGBUS, because the block is not to be had. */
static vm_fault_t kdsm_fault_fail(const struct kdsm_region *region, int err)
{
	trace_kdsm_event(KDSM_EVENT_FAULT_FAILED, 0, region->id, region->name, -err);
	return VM_FAULT_SIGBUS;
}

/*
 * Wait without mmap_lock until the block is on this node, and have the kernel retry the fault. It
 * has called with mmap_lock held, and not with a lock of the vma, because the operations have no
 * map_pages().
 */
static vm_fault_t kdsm_fault_retry(struct vm_fault *vmf, u64 index, bool write)
{
	struct kdsm_region *region = vmf->vma->vm_private_data;
	struct mm_struct *mm = vmf->vma->vm_mm;
	struct kdsm_demand *demand;
	vm_fault_t ret = VM_FAULT_RETRY;
	struct file *file;
	int err;

	demand = kdsm_demand_start(region, index, write);
	if (!demand)
		return kdsm_fault_fail(region, -ENOMEM);
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT) {
		kdsm_demand_put(demand);
		return VM_FAULT_RETRY;
	}
	/* Keeps the module if another thread unmaps the region */
	file = get_file(vmf->vma->vm_file);
	mmap_read_unlock(mm);
	err = kdsm_demand_wait(demand);
	/* With an error, the kernel expects mmap_lock to be held, and uses no vma */
	if (err && !fatal_signal_pending(current) && !mmap_read_lock_killable(mm))
		ret = kdsm_fault_fail(region, err);
	fput(file);
	return ret;
}

/* Wait without mmap_lock until the task that gets the block is done, and retry the fault */
static vm_fault_t kdsm_fault_await(struct vm_fault *vmf, u64 index)
{
	struct kdsm_region *region = vmf->vma->vm_private_data;
	struct kdsm_coherence *coherence = region->coherence;
	struct file *file;

	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	/* Keeps the region if another thread unmaps it */
	file = get_file(vmf->vma->vm_file);
	mmap_read_unlock(vmf->vma->vm_mm);
	wait_event_killable(coherence->wait, !kdsm_coherence_is_busy(coherence, index));
	fput(file);
	return VM_FAULT_RETRY;
}

/* Wait with mmap_lock held, for a caller that does not allow to drop it. 0 or -errno. */
static int kdsm_fault_get(struct kdsm_region *region, u64 index, bool write)
{
	struct kdsm_demand *demand = kdsm_demand_start(region, index, write);

	return demand ? kdsm_demand_wait(demand) : -ENOMEM;
}

/*
 * Whether the caller is fixup_user_fault(), for KVM or VFIO, or for a file system that is about to
 * write. Faults of programs also have FAULT_FLAG_INTERRUPTIBLE (of FAULT_FLAG_DEFAULT), and those
 * of futexes do not allow a retry.
 */
static bool kdsm_fault_is_foreign(const struct vm_fault *vmf)
{
	return vmf->flags & FAULT_FLAG_ALLOW_RETRY &&
	       !(vmf->flags & (FAULT_FLAG_INTERRUPTIBLE | FAULT_FLAG_USER));
}

static vm_fault_t kdsm_fault_access(struct vm_fault *vmf, bool write, bool present)
{
	struct kdsm_region *region = vmf->vma->vm_private_data;
	struct kdsm_fault fault = {
		.region = region,
		.vma = vmf->vma,
		.pgoff = vmf->pgoff,
		.present = present,
		.ret = VM_FAULT_NOPAGE,		/* retry the access */
	};
	int err;

	if (region->policy == KDSM_POLICY_RELEASE && kdsm_fault_is_foreign(vmf))
		kdsm_mappings_opaque(region, vmf->vma->vm_mm);
	fault.index = kdsm_block_at(region->coherence, (u64)vmf->pgoff << PAGE_SHIFT);
	do {
		err = kdsm_coherence_access(region->coherence, fault.index, write,
					    kdsm_fault_map, &fault);
		if (!err)
			return fault.ret;
		if (err == -EBUSY && vmf->flags & FAULT_FLAG_ALLOW_RETRY)
			return kdsm_fault_await(vmf, fault.index);
		if ((err == -EAGAIN || err == -ENOMEM) && vmf->flags & FAULT_FLAG_ALLOW_RETRY)
			return kdsm_fault_retry(vmf, fault.index, write);
		if (err == -EAGAIN || err == -EBUSY || err == -ENOMEM)
			err = kdsm_fault_get(region, fault.index, write);
	} while (!err);
	/* Without memory, too: never call the OOM killer */
	return kdsm_fault_fail(region, err);
}

static vm_fault_t kdsm_fault_missing(struct vm_fault *vmf)
{
	return kdsm_fault_access(vmf, vmf->flags & FAULT_FLAG_WRITE, false);
}

static vm_fault_t kdsm_fault_write(struct vm_fault *vmf)
{
	vm_fault_t ret = kdsm_fault_access(vmf, true, true);

	/* After pfn_mkwrite() the kernel checks for NOPAGE, and not for RETRY */
	return ret & VM_FAULT_RETRY ? ret | VM_FAULT_NOPAGE : ret;
}

/* ---- other ways in ---- */

struct kdsm_peek {
	struct kdsm_region *region;
	u64 offset;
	void *buffer;
	unsigned int length;
	bool write;
	bool done;
};

static int kdsm_peek_copy(void *arg, u64 index, bool writable)
{
	struct kdsm_peek *peek = arg;
	struct page *page;
	void *place;

	if (index != kdsm_block_at(peek->region->coherence, peek->offset))
		return 0;
	page = kdsm_memory_page(peek->region->memory, peek->offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return PTR_ERR(page);
	place = page_address(page) + offset_in_page(peek->offset);
	if (peek->write)
		memcpy(place, peek->buffer, peek->length);
	else
		memcpy(peek->buffer, place, peek->length);
	peek->done = true;
	return 0;
}

/* Access by ptrace and /proc/PID/mem, as if the program did it */
static int kdsm_fault_peek(struct vm_area_struct *vma, unsigned long address, void *buffer,
			   int length, int write)
{
	struct kdsm_region *region = vma->vm_private_data;
	struct kdsm_peek peek = {
		.region = region,
		.offset = address - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT),
		.buffer = buffer,
		.write = write,
	};
	int err = 0;
	u64 index;

	if (peek.offset >= kdsm_region_size(region))
		return -EFAULT;
	if (write && !(vma->vm_flags & VM_MAYWRITE))
		return -EACCES;
	peek.length = min_t(u64, length, PAGE_SIZE - offset_in_page(peek.offset));
	index = kdsm_block_at(region->coherence, peek.offset);
	while (!err && !peek.done) {
		err = kdsm_coherence_access(region->coherence, index, write, kdsm_peek_copy, &peek);
		if (err == -EAGAIN || err == -EBUSY || err == -ENOMEM)
			err = kdsm_fault_get(region, index, write);
	}
	return err ?: peek.length;
}

/* The new mapping is a part of a split mapping, or a child's copy */
static void kdsm_fault_open(struct vm_area_struct *vma)
{
	struct kdsm_region *region = vma->vm_private_data;

	/* open() cannot fail: if kdsm_mappings_add() fails, count the mapping as unwatched */
	if (region->policy == KDSM_POLICY_RELEASE && kdsm_mappings_add(region, vma->vm_mm))
		kdsm_mappings_add_unwatched(region);
}

/*
 * The mapping is gone, together with the dirty bits of its page tables, and no CPU has a
 * TLB entry of it any more. Until the blocks are marked here, notifier.c keeps the mapping
 * in doubt, so that each harvest reports all pages as written.
 */
static void kdsm_fault_close(struct vm_area_struct *vma)
{
	struct kdsm_region *region = vma->vm_private_data;
	u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 last = first + (vma->vm_end - vma->vm_start) - 1;

	if (region->policy != KDSM_POLICY_RELEASE)
		return;
	kdsm_coherence_unmapped(region->coherence, kdsm_block_at(region->coherence, first),
				kdsm_block_at(region->coherence, last));
	kdsm_mappings_remove(region, vma->vm_mm);
}

const struct vm_operations_struct kdsm_fault_ops = {
	.open = kdsm_fault_open,
	.close = kdsm_fault_close,
	.fault = kdsm_fault_missing,
	.pfn_mkwrite = kdsm_fault_write,
	.access = kdsm_fault_peek,
	.mremap = kdsm_vm_mremap,
};
