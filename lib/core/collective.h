/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A gang: one process on every node of the cluster, working in step. What it
 * has beyond kdsm_barrier_wait(): values travel with the steps, a member that
 * fails stops the others, and one that vanished is missed within a time-out
 * while one that merely computes for long is not.
 *
 * Steps go along a binomial tree with any node at its root, node 0 unless said
 * otherwise: gather moves up, scatter down, one put and one notifying put to the
 * next node each. All members take the same steps, one thread each, gather and
 * scatter in turn, a scatter from the root of the gather before it: that a member
 * takes a step shows that it has read the words of the one before, whose place
 * the next words take.
 */
#ifndef KD_GANG_H
#define KD_GANG_H

#include <pthread.h>
#include <stdbool.h>

#include <kdsm/kdsm.h>

#define KD_GANG_BYTES	1024	/* of every part; zero at first */
#define KD_GANG_WORDS	7	/* that travel with a step */

struct kd_gang {
	struct kdsm_region *region;
	uint64_t offset;
	unsigned int node, nodes;
	uint64_t timeout;	/* ns without a sign of life */
	unsigned int root;	/* of the next gather and scatter; all have the same */
	uint64_t up, down;	/* steps taken */
	pthread_t heart;
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t stop;
	bool stopping, beating;
	unsigned int culprit;	/* after a failed step: which node */
};

/* -EBUSY: another process of this node is in the gang. */
int kd_gang_join(struct kd_gang *gang, struct kdsm_region *region,
		 uint64_t offset, uint64_t timeout);
void kd_gang_leave(struct kd_gang *gang);

/*
 * Combine the words of all nodes: combine(context, mine, theirs) puts into mine
 * what both come to, and returns 0 or a negative errno. The root has the result.
 */
typedef int (*kd_gang_combine)(void *context, uint64_t *mine, const uint64_t *theirs);
int kd_gang_gather(struct kd_gang *gang, uint64_t *words, kd_gang_combine combine,
		   void *context);

/* Give the words of the root to all. */
int kd_gang_scatter(struct kd_gang *gang, uint64_t *words);

/*
 * Steps fail with -ETIMEDOUT (culprit gave no sign of life), -ECANCELED (culprit
 * gave up) or the error of an operation on the region. Who fails tells the
 * others by kd_gang_abort(), with an errno for them to know.
 */
void kd_gang_abort(struct kd_gang *gang, int error);

/* 0, or the negative errno with which a member gave up: *culprit (may be NULL). */
int kd_gang_aborted(const struct kd_gang *gang, unsigned int *culprit);

#endif /* KD_GANG_H */
