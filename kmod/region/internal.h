/* SPDX-License-Identifier: GPL-2.0 */
/* Inside the layer of regions: the calls that its files share. */
#ifndef KDSM_REGION_INTERNAL_H
#define KDSM_REGION_INTERNAL_H

#include <linux/fs.h>
#include <linux/mm_types.h>

#include "region/region.h"

/* Of a region: its parts are rounded up, and end before KDSM_LOCKS_OFFSET. */
#define KDSM_SIZE_MAX		(BIT_ULL(44) - BIT_ULL(33))

/* ---- mapping.c ---- */

extern const struct kdsm_mapping_ops kdsm_region_mapping_ops;

/* The inode that all mappings of a coherent region hang on. ERR_PTR(). */
struct inode *kdsm_vm_inode_create(void);
void kdsm_vm_inode_destroy(struct inode *inode);

/* Refuses: to move a mapping would break the promise that a region has one address. */
int kdsm_vm_mremap(struct vm_area_struct *vma);

/* ---- fault.c ---- */

/* Of mappings of coherent regions. */
extern const struct vm_operations_struct kdsm_fault_ops;

/* ---- notifier.c ---- */

void kdsm_mappings_init(struct kdsm_mappings *mappings);
/*
 * A vma of the process maps the region from now on, or one less does, whose
 * blocks are marked by kdsm_coherence_unmapped(). With mmap_lock; for adding, to write.
 * -ENOMEM, -EINTR: then nobody watches it, and it is refused or added as unwatched,
 * which costs every release of the region: all that may have been written has been.
 */
int kdsm_mappings_add(struct kdsm_region *region, struct mm_struct *mm);
void kdsm_mappings_add_unwatched(struct kdsm_region *region);
void kdsm_mappings_remove(struct kdsm_region *region, struct mm_struct *mm);
/* Page tables may not tell what was written: they are being dropped somewhere. */
bool kdsm_mappings_doubt(struct kdsm_region *region);

#endif /* KDSM_REGION_INTERNAL_H */
