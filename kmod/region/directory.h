/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The directory of regions, kept by node 0: which names exist, and which nodes
 * have them open.
 */
#ifndef KDSM_DIRECTORY_H
#define KDSM_DIRECTORY_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "fabric/fabric.h"

struct kdsm_cluster;

/* Of a region: its parts are rounded up, and end before KDSM_LOCKS_OFFSET. */
#define KDSM_SIZE_MAX		(BIT_ULL(44) - BIT_ULL(33))

struct kdsm_directory {
	struct mutex lock;	/* over all of it, also while nodes are told */
	struct list_head entries;
	u32 last_id;
	unsigned long *anew;	/* nodes whose former opens and parts are void */
	unsigned long *silent;	/* nodes that did not answer */
	unsigned long *asked;	/* jiffies: by the work in vain, first; or 0 */
	struct delayed_work work;
};

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

#endif /* KDSM_DIRECTORY_H */
