/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by all locks of this node: their workqueue, and nodes that die */
#ifndef KDSM_LOCK_DEATH_H
#define KDSM_LOCK_DEATH_H

#include <kdsm/uapi.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct kdsm_cluster;

/* One for each cluster, which frees it with itself, because some calls come after exit. */
struct kdsm_deaths {
	struct kdsm_cluster *cluster;
	struct workqueue_struct *workqueue;
	struct delayed_work work;
	DECLARE_BITMAP(missed, KDSM_MAX_NODES);		/* nodes that may not answer */
	DECLARE_BITMAP(restarted, KDSM_MAX_NODES);	/* nodes that came up again */
	bool stopping;
};

int kdsm_deaths_init(struct kdsm_cluster *cluster);
/* Before the fabric disconnects: begin nothing any more. */
void kdsm_deaths_stop(struct kdsm_cluster *cluster);
/* After that, before regions go */
void kdsm_deaths_exit(struct kdsm_cluster *cluster);
/* After that: no lock uses the workqueue any more. */
void kdsm_deaths_free(struct kdsm_cluster *cluster);

/* A node may not answer: look soon, and give it up if it does not. Any context. */
void kdsm_deaths_missed(struct kdsm_cluster *cluster, unsigned int node);

/* Calls of the fabric: peer_down and peer_untied of struct kdsm_fabric_config */
void kdsm_deaths_node_down(struct kdsm_cluster *cluster, unsigned int node, bool restarted);
void kdsm_deaths_untied(struct kdsm_cluster *cluster, unsigned int node);

#endif /* KDSM_LOCK_DEATH_H */
