/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that the files of this folder share. Other folders include region.h only. */
#ifndef KDSM_REGION_INTERNAL_H
#define KDSM_REGION_INTERNAL_H

#include <linux/fs.h>
#include <linux/mm_types.h>

#include "region/region.h"

/*
 * Upper bound of the size that a program may request for a region, in bytes: no sum or product of
 * such sizes overflows, and numbers of chunks fit into 32 bits. The addresses of regions
 * (directory.c) bound all regions together to less. The parts, each rounded up to a multiple of
 * the chunk size, must end before KDSM_LOCKS_OFFSET.
 */
#define KDSM_SIZE_MAX		BIT_ULL(48)

/* ---- region.c ---- */

/* Drop a region that the directory does not know any more: node 0 will send no REMOVE for it */
void kdsm_region_forget(struct kdsm_region *region);
/*
 * Copy the segments of a region from a message. Returns whether they are valid for size and policy.
 */
bool kdsm_region_segments(const struct kdsm_wire_segments *wire, u64 size, u32 policy,
			  struct kdsm_region_segment segments[KDSM_MAX_SEGMENTS]);

/* ---- open.c ---- */

void kdsm_opens_init(struct kdsm_cluster *cluster);
/* Set up what a new region has for its opens and closes */
void kdsm_region_init_opens(struct kdsm_region *region);

/* ---- quota.c ---- */

void kdsm_quota_init(struct kdsm_cluster *cluster);
/* All regions are freed */
void kdsm_quota_exit(struct kdsm_cluster *cluster);
/*
 * Check the limits for a new region and set region->user. 0; -ENOMEM; -EDQUOT: a limit of the
 * user. kdsm_quota_leave() undoes it. Caller of both holds cluster->parts_lock.
 */
int kdsm_quota_admit(struct kdsm_region *region);
void kdsm_quota_leave(struct kdsm_region *region);
/* Whether the limits leave room for the share of a region now, beside regions being freed */
bool kdsm_quota_has_room(const struct kdsm_region *region);
/* The bytes that the region holds, its twins included if eviction can free them */
u64 kdsm_region_held(const struct kdsm_region *region);
/*
 * The bytes that a new region must leave to this one: its share, or what it holds if that is more.
 * Of a region that can be evicted only the share counts, because eviction can free the rest.
 */
u64 kdsm_region_claim(const struct kdsm_region *region);
/*
 * Make the largest region that shares the exhausted memory with this one evict a chunk, if it holds
 * over KDSM_QUOTA_MORE bytes more. The lacking region evicts one of its own, too. So the regions
 * come to hold about the same.
 */
void kdsm_quota_share(struct kdsm_region *lacking);

/* ---- tune.c ---- */

/* Whether the values of a change, from any node, are within their bounds */
bool kdsm_tune_is_sane(const struct kdsm_wire_tune *wire);
/* Whether a region of this policy has all settings of the change */
bool kdsm_tune_fits(const struct kdsm_wire_tune *wire, u32 policy);

/* ---- mapping.c ---- */

extern const struct kdsm_mapping_ops kdsm_region_mapping_ops;

/* Create the inode of all mappings of a coherent region. ERR_PTR() on errors. */
struct inode *kdsm_vm_inode_create(void);
void kdsm_vm_inode_destroy(struct inode *inode);

/* Refuse every mremap: a region has one address, and a moved mapping would have another one */
int kdsm_vm_mremap(struct vm_area_struct *vma);

/* ---- fault.c ---- */

/* Operations of mappings of coherent regions */
extern const struct vm_operations_struct kdsm_fault_ops;

/* ---- demand.c ---- */

/* Create and destroy the workqueue of a coherent region. 0 or -ENOMEM. */
int kdsm_demands_init(struct kdsm_region *region);
void kdsm_demands_exit(struct kdsm_region *region);
/*
 * Have a worker call kdsm_coherence_get() for the calling program, which has the region mapped.
 * Returns NULL without memory. The caller drops the demand by kdsm_demand_put(), or waits.
 */
struct kdsm_demand *kdsm_demand_start(struct kdsm_region *region, u64 index, bool write);
void kdsm_demand_put(struct kdsm_demand *demand);
/*
 * Wait until the worker is done, and drop the demand. The caller need not keep the region.
 * Returns the result of kdsm_coherence_get(), or -ERESTARTSYS after a fatal signal.
 */
int kdsm_demand_wait(struct kdsm_demand *demand);

/* ---- notifier.c ---- */

void kdsm_mappings_init(struct kdsm_mappings *mappings);
/*
 * kdsm_mappings_add() notes that one more vma of the process maps the region. Caller holds
 * mmap_lock for writing. On -ENOMEM or -EINTR no notifier watches the process, and the
 * caller refuses the mapping or calls kdsm_mappings_add_unwatched(). An unwatched mapping
 * makes every release of the region slow, because each harvest reports all pages as written.
 *
 * kdsm_mappings_remove() notes that one vma less maps the region. The caller has marked the
 * blocks of the vma by kdsm_coherence_unmapped(), and holds mmap_lock.
 */
int kdsm_mappings_add(struct kdsm_region *region, struct mm_struct *mm);
void kdsm_mappings_add_unwatched(struct kdsm_region *region);
void kdsm_mappings_remove(struct kdsm_region *region, struct mm_struct *mm);
/*
 * Something else than the CPU may write through the entries of the process: count all pages as
 * written until the process has unmapped the region. Caller holds mmap_lock, and makes entries
 * after this call.
 */
void kdsm_mappings_opaque(struct kdsm_region *region, const struct mm_struct *mm);
/* Whether page tables may hide writes */
bool kdsm_mappings_doubt(struct kdsm_region *region);

/* ---- partitioned.c ---- */

/* Check the operation of a program, apart from addr. 0 or a status of struct kdsm_op. */
int kdsm_op_check(const struct kdsm_region *region, bool may_write, const struct kdsm_op *op);

/* Sleep until done(what), at most timeout ns. 0, -ETIMEDOUT or -EINTR. */
int kdsm_wait_until(wait_queue_head_t *waits, bool (*done)(const void *what), const void *what,
		    u64 timeout);

#endif /* KDSM_REGION_INTERNAL_H */
