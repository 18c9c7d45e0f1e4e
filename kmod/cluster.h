/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cluster that this node belongs to, from up to down. There is one at most.
 */
#ifndef KDSM_CLUSTER_H
#define KDSM_CLUSTER_H

#include <linux/kdsm.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "fabric/fabric.h"
#include "topology.h"

struct kdsm_deaths;
struct kdsm_directory;
struct kdsm_region_upcalls;

struct kdsm_node {
	struct sockaddr_storage address;
	char location[KDSM_LOCATION_SIZE];
};

struct kdsm_cluster {
	struct kdsm_fabric *fabric;
	char name[KDSM_NAME_SIZE];
	uuid_t uuid;
	u16 port;
	unsigned int node;
	unsigned int nodes;
	struct kdsm_node *table;
	struct kdsm_topology *topology;

	struct xarray regions;		/* by id; see region.c */
	const struct kdsm_region_upcalls *regions_up;
	struct mutex open_lock;		/* opens and closes of regions, one by one */
	struct delayed_work close_work;	/* tells node 0 of closes that it did not hear */
	struct kdsm_directory *directory;	/* used on node 0 only */
	struct kdsm_deaths *deaths;

	refcount_t references;		/* of those who are using it now */
	struct completion released;
	unsigned int bound;		/* files with a region; under the cluster lock */
};

struct kdsm_cluster_config {
	char name[KDSM_NAME_SIZE];
	uuid_t uuid;
	u16 port;
	u32 domain;
	unsigned int node;
	unsigned int nodes;
	struct kdsm_node *table;	/* kvmalloc()ed; taken over by a successful up */
};

int kdsm_cluster_up(struct kdsm_cluster_config *config);
/* -EBUSY: files are bound. -ENETDOWN: it is not up. */
int kdsm_cluster_down(void);

/* The cluster, if it is up, or NULL; it stays until put. */
struct kdsm_cluster *kdsm_cluster_get(void);
void kdsm_cluster_put(struct kdsm_cluster *cluster);

/* As get and put, and while bound the cluster does not go down. */
struct kdsm_cluster *kdsm_cluster_bind(void);
void kdsm_cluster_unbind(struct kdsm_cluster *cluster);

#endif /* KDSM_CLUSTER_H */
