/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings of regions. */
#ifndef KDSM_VM_H
#define KDSM_VM_H

#include <linux/fs.h>
#include <linux/mm_types.h>

struct kdsm_region;

/* For the file operations, once the file is bound to region. */
int kdsm_vm_mmap(struct kdsm_region *region, struct vm_area_struct *vma);
unsigned long kdsm_vm_unmapped_area(struct kdsm_region *region, unsigned long address,
				    unsigned long length, unsigned long pgoff,
				    unsigned long flags);

#endif /* KDSM_VM_H */
