/* SPDX-License-Identifier: GPL-2.0 */
/* All differences between the supported kernels, 6.1 and 6.12; no other file has any */
#ifndef KDSM_COMPAT_H
#define KDSM_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

/*
 * Distributions have this option, because drivers such as vmwgfx select it. Debian's kernels for
 * clouds have none of these drivers.
 */
#ifndef CONFIG_MAPPING_DIRTY_HELPERS
#error "kdsm needs a kernel with CONFIG_MAPPING_DIRTY_HELPERS"
#endif

/* Distributions have this option, because KVM and RDMA drivers select it. */
#ifndef CONFIG_MMU_NOTIFIER
#error "kdsm needs a kernel with CONFIG_MMU_NOTIFIER"
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* The kernel's choice of an address for a mapping that may be anywhere */
static inline unsigned long kdsm_any_unmapped_area(struct file *file, unsigned long address,
						   unsigned long length, unsigned long pgoff,
						   unsigned long flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	return current->mm->get_unmapped_area(file, address, length, pgoff, flags);
#else
	return mm_get_unmapped_area(current->mm, file, address, length, pgoff, flags);
#endif
}

#endif /* KDSM_COMPAT_H */
