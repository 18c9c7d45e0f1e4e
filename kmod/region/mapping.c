// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings. In a partitioned region the own part is memory, and an access to another part
 * raises SIGBUS. For coherent regions, this file has the changes of mappings that the
 * policies ask for; their faults are in fault.c. Page table entries hold page frame
 * numbers, not pages, so that nothing outside the module can pin the memory. access()
 * serves debuggers instead.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/mm.h>

#include "compat.h"
#include "internal.h"

/* Size of the aligned group of pages that one fault maps, in pages */
#define KDSM_FAULT_AROUND	16

/* First page of the own part, counted from the start of the region */
static pgoff_t kdsm_part_start(const struct kdsm_region *region)
{
	return (region->part_size >> PAGE_SHIFT) * region->cluster->node;
}

static bool kdsm_part_has(const struct kdsm_region *region, pgoff_t pgoff)
{
	pgoff_t start = kdsm_part_start(region);

	return pgoff >= start && pgoff - start < region->part_size >> PAGE_SHIFT;
}

static vm_fault_t kdsm_vm_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct kdsm_region *region = vma->vm_private_data;
	pgoff_t pgoff = round_down(vmf->pgoff, KDSM_FAULT_AROUND);
	pgoff_t last = vma->vm_pgoff + vma_pages(vma);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct page *page;

	if (!kdsm_part_has(region, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	page = kdsm_memory_page(region->memory, vmf->pgoff - kdsm_part_start(region));
	if (IS_ERR(page))
		return VM_FAULT_SIGBUS;	/* no memory: never call the OOM killer */
	ret = vmf_insert_pfn(vma, vmf->address, page_to_pfn(page));

	/*
	 * The other pages of an aligned group are in the same chunk, which exists now, or
	 * outside the part. Failing to map such a page is no error.
	 */
	for (last = min(last, pgoff + KDSM_FAULT_AROUND);
	     pgoff < last && ret == VM_FAULT_NOPAGE; pgoff++) {
		if (pgoff < vma->vm_pgoff || pgoff == vmf->pgoff ||
		    !kdsm_part_has(region, pgoff))
			continue;
		page = kdsm_memory_page(region->memory, pgoff - kdsm_part_start(region));
		if (IS_ERR(page) ||
		    vmf_insert_pfn(vma, vma->vm_start +
				   ((pgoff - vma->vm_pgoff) << PAGE_SHIFT),
				   page_to_pfn(page)) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

/* Access by ptrace and /proc/PID/mem. Returns the length that was copied, or -errno. */
static int kdsm_vm_access(struct vm_area_struct *vma, unsigned long address, void *buffer,
			  int length, int write)
{
	struct kdsm_region *region = vma->vm_private_data;
	unsigned long offset = address - vma->vm_start + (vma->vm_pgoff << PAGE_SHIFT);
	unsigned int left = PAGE_SIZE - offset_in_page(offset);
	struct page *page;

	if (!kdsm_part_has(region, offset >> PAGE_SHIFT))
		return -EFAULT;
	if (write && !(vma->vm_flags & VM_MAYWRITE))
		return -EACCES;
	page = kdsm_memory_page(region->memory,
				(offset >> PAGE_SHIFT) - kdsm_part_start(region));
	if (IS_ERR(page))
		return PTR_ERR(page);
	length = min_t(unsigned int, length, left);
	if (write)
		memcpy(page_address(page) + offset_in_page(offset), buffer, length);
	else
		memcpy(buffer, page_address(page) + offset_in_page(offset), length);
	return length;
}

int kdsm_vm_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static const struct vm_operations_struct kdsm_vm_ops = {
	.fault = kdsm_vm_fault,
	.access = kdsm_vm_access,
	.mremap = kdsm_vm_mremap,
};

/* ---- lock words: of any region, mapped at any address ---- */

#define KDSM_LOCKS_FIRST	(KDSM_LOCKS_OFFSET >> PAGE_SHIFT)
#define KDSM_LOCKS_PAGES	(KDSM_LOCKS_SIZE >> PAGE_SHIFT)

/*
 * Whether an offset, in pages, is that of a page of lock words. Set *page to the number of the
 * page. At KDSM_LOCKS_OFFSET_32 there may be memory of a large region.
 */
static bool kdsm_vm_is_locks(const struct kdsm_region *region, unsigned long pgoff,
			     unsigned long *page)
{
	if (pgoff >= KDSM_LOCKS_FIRST)
		*page = pgoff - KDSM_LOCKS_FIRST;
	else if (pgoff >= KDSM_LOCKS_OFFSET_32 >> PAGE_SHIFT &&
		 (in_compat_syscall() || kdsm_region_size(region) <= KDSM_LOCKS_OFFSET_32))
		*page = pgoff - (KDSM_LOCKS_OFFSET_32 >> PAGE_SHIFT);
	else
		return false;
	return true;
}

static vm_fault_t kdsm_vm_locks_fault(struct vm_fault *vmf)
{
	struct kdsm_region *region = vmf->vma->vm_private_data;
	struct page *page = region->cluster->regions_up->lock_page(region->locks,
							     vmf->pgoff - KDSM_LOCKS_FIRST);

	return IS_ERR(page) ? VM_FAULT_SIGBUS :
	       vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
}

static const struct vm_operations_struct kdsm_vm_locks_ops = {
	.fault = kdsm_vm_locks_fault,
	.mremap = kdsm_vm_mremap,
};

static int kdsm_vm_mmap_locks(struct kdsm_region *region, struct vm_area_struct *vma,
			      unsigned long page)
{
	if (!(vma->vm_flags & VM_MAYSHARE) || page >= KDSM_LOCKS_PAGES ||
	    vma_pages(vma) > KDSM_LOCKS_PAGES - page)
		return -EINVAL;
	/* A process that may only read the region may not lock */
	if (vma->vm_flags & VM_EXEC || !(vma->vm_file->f_mode & FMODE_WRITE))
		return -EACCES;
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND);
	vma->vm_pgoff = KDSM_LOCKS_FIRST + page;
	vma->vm_private_data = region;	/* the mapping's file holds a reference */
	vma->vm_ops = &kdsm_vm_locks_ops;
	return 0;
}

int kdsm_vm_mmap(struct kdsm_region *region, struct vm_area_struct *vma)
{
	u64 pages = kdsm_region_size(region) >> PAGE_SHIFT;
	unsigned long page;
	int err;

	if (kdsm_vm_is_locks(region, vma->vm_pgoff, &page))
		return kdsm_vm_mmap_locks(region, vma, page);
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff >= pages ||
	    vma_pages(vma) > pages - vma->vm_pgoff ||
	    vma->vm_start != region->base + ((u64)vma->vm_pgoff << PAGE_SHIFT))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (region->policy == KDSM_POLICY_RELEASE) {
		err = kdsm_mappings_add(region, vma->vm_mm);
		/* A signal arrived. mmap has no such error, so restart the system call. */
		if (err)
			return err == -EINTR ? -ERESTARTNOINTR : err;
	}
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND);
	vma->vm_private_data = region;	/* the mapping's file holds a reference */
	vma->vm_ops = region->coherence ? &kdsm_fault_ops : &kdsm_vm_ops;
	return 0;
}

unsigned long kdsm_vm_unmapped_area(struct file *file, struct kdsm_region *region,
				    unsigned long address, unsigned long length,
				    unsigned long pgoff, unsigned long flags)
{
	unsigned long page;

	if (kdsm_vm_is_locks(region, pgoff, &page))
		return kdsm_any_unmapped_area(file, address, length, pgoff, flags);
	if (flags & MAP_FIXED)
		return address;		/* kdsm_vm_mmap() checks it */
	if (pgoff > kdsm_region_size(region) >> PAGE_SHIFT)
		return -EINVAL;
	address = region->base + ((u64)pgoff << PAGE_SHIFT);
	if (length > TASK_SIZE || address > TASK_SIZE - length ||
	    find_vma_intersection(current->mm, address, address + length))
		return -ENOMEM;
	return address;
}

/* ---- coherent regions ---- */

/*
 * A coherent region needs an inode of its own: the kernel finds the mappings of a range in
 * all processes through the inode, and all regions share the inode of /dev/kdsm. The inodes
 * live on a file system that is mounted nowhere.
 */
#define KDSM_FS_MAGIC	0x6b64736d	/* "kdsm" */

static int kdsm_fs_init(struct fs_context *context)
{
	return init_pseudo(context, KDSM_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type kdsm_fs = {
	.name = "kdsm",
	.owner = THIS_MODULE,
	.init_fs_context = kdsm_fs_init,
	.kill_sb = kill_anon_super,
};

static struct vfsmount *kdsm_fs_mount;
static int kdsm_fs_count;

struct inode *kdsm_vm_inode_create(void)
{
	struct inode *inode;
	int err;

	err = simple_pin_fs(&kdsm_fs, &kdsm_fs_mount, &kdsm_fs_count);
	if (err)
		return ERR_PTR(err);
	inode = alloc_anon_inode(kdsm_fs_mount->mnt_sb);
	if (IS_ERR(inode))
		simple_release_fs(&kdsm_fs_mount, &kdsm_fs_count);
	return inode;
}

void kdsm_vm_inode_destroy(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&kdsm_fs_mount, &kdsm_fs_count);
}

static void kdsm_vm_unmap(struct kdsm_region *region, u64 offset, u64 length)
{
	unmap_mapping_range(region->inode->i_mapping, offset, length, 1);
}

static bool kdsm_vm_harvest(struct kdsm_region *region, u64 offset, u64 length,
			    unsigned long *bitmap)
{
	pgoff_t first = offset >> PAGE_SHIFT, pages = length >> PAGE_SHIFT;
	bool any = kdsm_mapping_harvest(region->inode->i_mapping, first, pages, bitmap);

	/* Check for doubt after the harvest: the harvest misses entries that were dropped before */
	if (!kdsm_mappings_doubt(region))
		return any;
	bitmap_set(bitmap, 0, pages);
	return true;
}

static void kdsm_vm_protect(struct kdsm_region *region, u64 offset, u64 length)
{
	kdsm_mapping_protect(region->inode->i_mapping, offset >> PAGE_SHIFT, length >> PAGE_SHIFT);
}

const struct kdsm_mapping_ops kdsm_region_mapping_ops = {
	.unmap = kdsm_vm_unmap,
	.harvest = kdsm_vm_harvest,
	.protect = kdsm_vm_protect,
};
