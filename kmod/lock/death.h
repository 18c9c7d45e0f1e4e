/* SPDX-License-Identifier: GPL-2.0 */
/* What the locks of a cluster do about nodes that die; see lock_death.c. */
#ifndef KDSM_LOCK_DEATH_H
#define KDSM_LOCK_DEATH_H

#include <linux/workqueue.h>

#include "queue.h"

struct kdsm_cluster;

#define KDSM_DEATHS_AGAIN	0	/* queues are to be written anew, if nobody dies, too */

/* One for each cluster, which frees it with itself: some calls come after exit. */
struct kdsm_deaths {
	struct kdsm_cluster *cluster;
	struct delayed_work work;
	struct work_struct look;
	unsigned long *missed;		/* nodes that may not answer */
	unsigned long *anew;		/* that came up anew */
	unsigned long flags;		/* bits KDSM_DEATHS_* */
	bool stopping;
	struct kdsm_recovery recovery;	/* the work's */
};

int kdsm_deaths_init(struct kdsm_cluster *cluster);
/* Before the fabric disconnects: nothing more is begun. */
void kdsm_deaths_stop(struct kdsm_cluster *cluster);
/* After that, before regions go. */
void kdsm_deaths_exit(struct kdsm_cluster *cluster);

/* The fabric's calls. */
void kdsm_deaths_node_down(struct kdsm_cluster *cluster, unsigned int node, bool anew);
void kdsm_deaths_untied(void *context, unsigned int node);
/* A handler; context is the cluster. */
int kdsm_lock_serve_miss(void *context, struct kdsm_request *request);
/* In struct kdsm_queue_ops. */
void kdsm_lock_missed(struct kdsm_queue *queue, unsigned int node, bool stuck);

#endif /* KDSM_LOCK_DEATH_H */
