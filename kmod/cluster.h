/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cluster that this node belongs to while it is up. A node belongs to at most one
 * cluster. Regions, locks and the fabric have headers in their folders.
 */
#ifndef KDSM_CLUSTER_H
#define KDSM_CLUSTER_H

#include <kdsm/uapi.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/socket.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "fabric/fabric.h"
#include "topology.h"

struct kdsm_deaths;
struct kdsm_directory;
struct kdsm_region_upcalls;

/* Number of locks for opens; a power of 2 */
#define KDSM_OPEN_LOCKS	16U

struct kdsm_node {
	struct sockaddr_storage address;	/* without port */
	char location[KDSM_LOCATION_SIZE];
};

struct kdsm_cluster {
	struct kdsm_fabric *fabric;
	char name[KDSM_NAME_SIZE];
	uuid_t uuid;
	u16 port;			/* host order */
	unsigned int node;		/* number of this node */
	struct mutex nodes_lock;	/* held while nodes and table change; see region/nodes.c */
	unsigned int nodes;		/* also read without lock */
	struct kdsm_node *table;	/* KDSM_MAX_NODES, by number of the node */

	struct xarray regions;		/* by id; see region/region.c */
	const struct kdsm_region_upcalls *regions_up;
	struct mutex parts_lock;	/* serialises adding parts of regions; protects users */
	struct xarray users;		/* by uid: creators of regions; see region/quota.c */
	struct kdsm_account account;	/* of all regions */
	/* Each serialises opens and closes of the regions whose names have its hash */
	struct mutex open_locks[KDSM_OPEN_LOCKS];
	struct workqueue_struct *workqueue;	/* closes and frees regions */
	/* Opens regions: apart, because an open may wait long for node 0 */
	struct workqueue_struct *openers;
	struct delayed_work close_work;	/* repeats closes that node 0 has not answered */
	unsigned int close_repeats;	/* how often close_work still runs, whatever it finds */
	atomic_t freeing;		/* regions that are being freed */
	wait_queue_head_t closed;	/* for the end of a close, or for fewer freeing */
	struct kdsm_directory *directory;	/* used on node 0 only */
	struct kdsm_deaths *deaths;	/* see lock/death.h */

	refcount_t references;		/* one until the cluster goes down, one of each user */
	struct completion released;	/* the last reference was dropped */
	u64 since;			/* when it came up, in ns of ktime */
	unsigned int bound;		/* files with a region; protected by kdsm_cluster_lock */
};

struct kdsm_cluster_config {
	char name[KDSM_NAME_SIZE];
	uuid_t uuid;
	u16 port;			/* host order */
	u32 domain;			/* requested; enum kdsm_domain */
	bool insecure;			/* peers need not prove that they know a key */
	unsigned int node;
	unsigned int nodes;
	/* KDSM_MAX_NODES, from kvmalloc(); the cluster owns it after success */
	struct kdsm_node *table;
};

/*
 * Bring the cluster up on this node. -EALREADY: a cluster is up; -ENOMEM; an error of
 * kdsm_fabric_start() or kdsm_fabric_listen().
 */
int kdsm_cluster_up(struct kdsm_cluster_config *config);
/* Take the cluster down on this node. -EBUSY: files are bound. -ENETDOWN: no cluster is up. */
int kdsm_cluster_down(void);

/*
 * kdsm_cluster_get() returns the cluster with a reference, or NULL if no cluster is up.
 * kdsm_cluster_hold() takes one more reference, and kdsm_cluster_put() drops one.
 * kdsm_cluster_down() waits for all references.
 */
struct kdsm_cluster *kdsm_cluster_get(void);

static inline void kdsm_cluster_hold(struct kdsm_cluster *cluster)
{
	refcount_inc(&cluster->references);
}

static inline void kdsm_cluster_put(struct kdsm_cluster *cluster)
{
	if (refcount_dec_and_test(&cluster->references))
		complete(&cluster->released);
}

/*
 * As get and put, for a file that is bound to a region: kdsm_cluster_down() fails with -EBUSY
 * instead of waiting.
 */
struct kdsm_cluster *kdsm_cluster_bind(void);
void kdsm_cluster_unbind(struct kdsm_cluster *cluster);

#endif /* KDSM_CLUSTER_H */
