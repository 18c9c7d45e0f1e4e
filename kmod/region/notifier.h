/* SPDX-License-Identifier: GPL-2.0 */
/* Which processes map a region of policy release, and when they stop. */
#ifndef KDSM_NOTIFIER_H
#define KDSM_NOTIFIER_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct kdsm_region;
struct mm_struct;

/* The processes that map a region of policy release. */
struct kdsm_mappings {
	spinlock_t lock;		/* guards the rest; inside everything */
	struct list_head list;
	unsigned int doubts;		/* mappings that may hide what was written */
};

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
void kdsm_notifier_exit(void);

#endif /* KDSM_NOTIFIER_H */
