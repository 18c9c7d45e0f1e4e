/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between the kernels that are built for: 6.1 and 6.12. Only here. */
#ifndef KDSM_COMPAT_H
#define KDSM_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

/* Selected by drivers such as vmwgfx, so distributions have them. */
#ifndef CONFIG_MAPPING_DIRTY_HELPERS
#error "kdsm needs a kernel with CONFIG_MAPPING_DIRTY_HELPERS"
#endif

/* Selected by KVM and by RDMA drivers, likewise. */
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

#endif /* KDSM_COMPAT_H */
