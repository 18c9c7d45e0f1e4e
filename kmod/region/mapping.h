/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings of regions. */
#ifndef KDSM_VM_H
#define KDSM_VM_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct file;
struct inode;
struct kdsm_region;

/* The inode that all mappings of a coherent region hang on. ERR_PTR(). */
struct inode *kdsm_vm_inode_create(void);
void kdsm_vm_inode_destroy(struct inode *inode);

/* fault.c: of mappings of coherent regions */
extern const struct vm_operations_struct kdsm_fault_ops;

/* For the file operations, once the file is bound to region. */
int kdsm_vm_mmap(struct kdsm_region *region, struct vm_area_struct *vma);
unsigned long kdsm_vm_unmapped_area(struct file *file, struct kdsm_region *region,
				    unsigned long address, unsigned long length,
				    unsigned long pgoff, unsigned long flags);

/* Refuses: to move a mapping would break the promise that a region has one address. */
int kdsm_vm_mremap(struct vm_area_struct *vma);

/*
 * Mappings of a coherent region, in all processes of this node. Offsets and
 * lengths are bytes, multiples of the page size. All may sleep.
 */

/* Map nothing there any more. */
void kdsm_vm_unmap(struct kdsm_region *region, u64 offset, u64 length);
/*
 * Set the bits of the pages that were written since they were mapped writable or
 * harvested; the first page of the range is bit 0. Mappings stay writable. True:
 * there were some. While some process unmaps some of the region it may be all of them.
 * A block that is not among them has to be looked at after this for the mark of
 * kdsm_coherence_unmapped().
 */
bool kdsm_vm_harvest(struct kdsm_region *region, u64 offset, u64 length,
		     unsigned long *bitmap);
/* Writes fault from now on. What was written before can still be harvested. */
void kdsm_vm_protect(struct kdsm_region *region, u64 offset, u64 length);

#endif /* KDSM_VM_H */
