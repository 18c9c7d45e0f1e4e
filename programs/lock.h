/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock for all workers of a job: who takes it sees what those wrote to the coherent
 * region who had it before. Made of what there is: a queue of workers (Mellor-Crummey,
 * Scott, "Algorithms for scalable synchronization", 1991), with its tail on node 0,
 * and a signature that goes to the next one with the lock, or to node 0 if nobody
 * waits. Each waits in the part of its own node.
 *
 * A worker that ends while it has the lock or waits for it leaves it locked.
 */
#ifndef PROGRAMS_LOCK_H
#define PROGRAMS_LOCK_H

#include "job.h"

struct lock {
	struct job *job;
	uint64_t offset;
};

/* Bytes of every part of job->sync that it takes, at a multiple of 64, zero at first. */
uint64_t lock_sync_size(const struct job *job);
void lock_init(struct lock *lock, struct job *job, uint64_t offset);

/* Errors are those of the library; -ETIMEDOUT: nobody gave it in job->timeout. */
int lock_take(struct lock *lock, const struct worker *worker);
int lock_give(struct lock *lock, const struct worker *worker);

#endif /* PROGRAMS_LOCK_H */
