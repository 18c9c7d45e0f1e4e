/* SPDX-License-Identifier: GPL-2.0 */
/* Regions, as this node knows them. */
#ifndef KDSM_REGION_H
#define KDSM_REGION_H

#include <linux/kdsm.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "cluster.h"
#include "coherence/coherence.h"

struct file;
struct kdsm_locks;
struct vm_area_struct;

#define KDSM_WAIT_BUCKETS	64

/*
 * Calls up, to the locks, which are a part of every region. cluster->regions_up is the
 * table; cluster.c sets it.
 */
struct kdsm_region_upcalls {
	/* Make region->locks, which may be reached as soon as this returns. 0 or -ENOMEM. */
	int (*create_locks)(struct kdsm_region *region);
	/* Free region->locks: nobody uses the region any more. */
	void (*destroy_locks)(struct kdsm_region *region);
	/* The page of lock words with this index. ERR_PTR(-EINVAL), ERR_PTR(-ENOMEM). */
	struct page *(*lock_page)(struct kdsm_locks *locks, pgoff_t index);
};

/* The processes that map a region of policy release. */
struct kdsm_mappings {
	spinlock_t lock;		/* guards the rest; inside everything */
	struct list_head list;
	unsigned int doubts;		/* mappings that may hide what was written */
};

/* All but opens and the waits stays as it was made. */
struct kdsm_region {
	struct kdsm_cluster *cluster;
	struct kref kref;	/* the table's, and one for each bound file */
	struct rcu_head rcu;
	char name[KDSM_NAME_SIZE];
	u32 id;
	u32 flags;
	u32 policy;
	u32 block_size;
	u32 mode;
	u32 uid, gid;		/* in the initial user namespace */
	u64 part_size;
	u64 share;		/* bytes that were promised to be here */
	u64 base;
	struct kdsm_memory *memory;	/* the part of this node; coherent: its frames */
	struct kdsm_coherence *coherence;	/* NULL: partitioned */
	struct kdsm_locks *locks;
	struct inode *inode;	/* coherent: has all mappings */
	struct kdsm_mappings mappings;	/* policy release: who has them */
	unsigned int opens;	/* files bound; under cluster->open_lock */
	wait_queue_head_t waits[KDSM_WAIT_BUCKETS];	/* by word */
};

/*
 * Open a region by name, making it if the flags say so. Fills in the (out)
 * fields of args. *may_write: whether mode, owner and group allow it; want_write:
 * fail if they do not. Errors: those of KDSM_IOC_REGION_OPEN.
 */
struct kdsm_region *kdsm_region_open(struct kdsm_cluster *cluster,
				     struct kdsm_region_open *args, bool want_write);
void kdsm_region_close(struct kdsm_region *region);
int kdsm_region_destroy(struct kdsm_cluster *cluster, const char *name);
/*
 * Set the lease of a region of policy strict, at most KDSM_LEASE_MAX, on all nodes.
 * -ENOENT, -EOPNOTSUPP (other policy), -EHOSTDOWN: some node could not be told.
 */
int kdsm_region_tune(struct kdsm_cluster *cluster, const char *name, u64 lease);
/* Is it a name: not empty, NUL-terminated, printable without blanks? */
bool kdsm_region_name_valid(const char name[KDSM_NAME_SIZE]);

/* Into how many parts a region of this policy is cut. */
static inline unsigned int kdsm_policy_parts(u32 policy, unsigned int nodes)
{
	return policy == KDSM_POLICY_PARTITIONED ? nodes : 1;
}

static inline u64 kdsm_region_size(const struct kdsm_region *region)
{
	return region->part_size * kdsm_policy_parts(region->policy, region->cluster->nodes);
}

static inline wait_queue_head_t *kdsm_region_waits(struct kdsm_region *region, u32 slot)
{
	return &region->waits[slot % KDSM_WAIT_BUCKETS];
}

/* The table of regions, of a cluster that comes up or goes down. */
void kdsm_regions_init(struct kdsm_cluster *cluster);
void kdsm_regions_exit(struct kdsm_cluster *cluster);
/* Node 0 came up with an empty directory: drop what nobody here has open. */
void kdsm_regions_forget(struct kdsm_cluster *cluster);
/* The next region with an id from *id on, with a reference, or NULL. */
struct kdsm_region *kdsm_region_next(struct kdsm_cluster *cluster, unsigned long *id);
/* That with the id, with a reference, or NULL. */
struct kdsm_region *kdsm_region_get(struct kdsm_cluster *cluster, u32 id);
void kdsm_region_put(struct kdsm_region *region);

/* ---- region.c: handlers of messages; context is the cluster ---- */

int kdsm_region_serve_add(void *context, struct kdsm_request *request);
int kdsm_region_serve_remove(void *context, struct kdsm_request *request);
int kdsm_region_serve_tuned(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_read(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_own(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_grant(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_invalidate(void *context, struct kdsm_request *request);
/* A notice for a word of a region came. Softirq. */
void kdsm_region_notified(void *context, u32 id, u32 slot);

/* ---- directory.c ---- */

int kdsm_directory_init(struct kdsm_cluster *cluster);
/* After the fabric was disconnected. */
void kdsm_directory_exit(struct kdsm_cluster *cluster);
/* A node cannot be reached, or came up anew: then it has nothing open. Any context. */
void kdsm_directory_node_down(struct kdsm_cluster *cluster, unsigned int node, bool anew);

/* Handlers; context is the cluster. */
int kdsm_directory_serve_open(void *context, struct kdsm_request *request);
int kdsm_directory_serve_close(void *context, struct kdsm_request *request);
int kdsm_directory_serve_destroy(void *context, struct kdsm_request *request);
int kdsm_directory_serve_tune(void *context, struct kdsm_request *request);

/* ---- mapping.c ---- */

/* For the file operations, once the file is bound to region. */
int kdsm_vm_mmap(struct kdsm_region *region, struct vm_area_struct *vma);
unsigned long kdsm_vm_unmapped_area(struct file *file, struct kdsm_region *region,
				    unsigned long address, unsigned long length,
				    unsigned long pgoff, unsigned long flags);

/* ---- notifier.c ---- */

/* Wait until no notifier calls into the module any more. */
void kdsm_notifier_exit(void);

/* ---- partitioned.c ---- */

/* What a bound file has under way. */
struct kdsm_submissions {
	struct kdsm_region *region;
	bool may_write;
	spinlock_t lock;	/* guards what follows */
	struct list_head list;	/* submitted, not completed */
	u64 last_ticket;
	unsigned int count;
	u64 bytes;
};

void kdsm_submissions_init(struct kdsm_submissions *submissions,
			   struct kdsm_region *region, bool may_write);
/* Wait for all that is under way, in bounded time, and forget it. */
void kdsm_submissions_drain(struct kdsm_submissions *submissions);

int kdsm_pgas_submit(struct kdsm_submissions *submissions, struct kdsm_submit *args);
int kdsm_pgas_complete(struct kdsm_submissions *submissions,
		       const struct kdsm_complete *args);
int kdsm_pgas_wait(struct kdsm_region *region, const struct kdsm_wait *args);
int kdsm_pgas_wake(struct kdsm_region *region, const struct kdsm_wake *args);

#endif /* KDSM_REGION_H */
