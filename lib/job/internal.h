/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations that the files of lib/job share: a job, its words, and who started it. Other
 * folders use <kdsm/job.h>.
 */
#ifndef KDSM_JOB_INTERNAL_H
#define KDSM_JOB_INTERNAL_H

#include <kdsm/job.h>
#include "coherent/coherent.h"

/* Seconds and milliseconds, in ns */
#define KD_SECOND	UINT64_C(1000000000)
#define KD_MS		UINT64_C(1000000)

/* Shortest time in which all members must join, in ns; tests lower it. */
extern uint64_t kd_job_patience KDSM_PRIVATE;

/* ---- launcher.c: what the launcher's variables say ---- */

struct kd_launch {
	char name[KDSM_NAME_SIZE - 6];	/* so that a suffix fits behind the name */
	uint32_t size;			/* 0: unknown */
	uint32_t rank;
	bool ranked;			/* rank is known */
	bool elsewhere;			/* some members are on other nodes */
	bool local;			/* KDSM_LOCAL */
	uint64_t memory, timeout;	/* bytes and ns; 0: not given */
};

/*
 * Fill in *launch. Returns 0, or -EINVAL with the name of the variable in *bad that has no valid
 * value.
 */
int kd_launch_read(struct kd_launch *launch, const char **bad);

/* ---- the words of a job ---- */

/*
 * The region NAME.job, of which every node has a part. Words marked "home" are used in the part of
 * node 0 only. Behind the words are claims and lives, one of each for each member.
 */
#define KD_LOOPS 3

struct kd_job_words {
	uint64_t terms[4];	/* home: size, memory, sync and block size that members agree on */
	uint64_t next;		/* home: rank of the next member without one */
	uint64_t joined;	/* home: number of members that have joined */
	uint64_t loop[KD_LOOPS];	/* on the node of rank 0: next index of a loop */
	uint64_t ready;		/* not 0: all have joined */
	uint64_t failed;	/* 0, or the failure word of the member that ended the job */
};

/* A claim, at home, of the member with its rank: process, and node + 1; 0: not joined */
static inline uint64_t kd_claim(unsigned int node, uint32_t pid)
{
	return (uint64_t)pid << 32 | (node + 1);
}

/* Words that a member stores in its own node's part */
struct kd_life {
	uint64_t beat;		/* grows while the process lives */
	uint64_t left;		/* not 0: it has left the job */
};

struct kd_member {
	unsigned int node;
	uint32_t pid;
};

struct kdsm_job {
	char name[KDSM_NAME_SIZE - 6];
	uint32_t rank, size;
	uint64_t timeout;
	void (*handler)(void *context, int error, const char *message);
	void *context;
	struct kdsm *kdsm;
	bool opened;			/* kdsm_job_join() has opened it, and not the program */
	struct kdsm_region *words, *region, *sync;
	struct kd_member *members;	/* by rank */
	unsigned int node_count;	/* nodes that have members */
	/* Members of this node, by rank, and this one's index among them */
	uint32_t *own;
	uint32_t own_count, own_index;

	/* collective.c */
	struct kdsm_tree_barrier barrier;
	uint64_t cargo, slots, result;	/* offsets in each part of sync */
	uint64_t loops;			/* number of loops begun */

	/* memory.c: bytes allocated, and the limits */
	uint64_t used, sync_used, memory, sync_end;

	/* watch.c */
	int ended;			/* 0, or the error with which the job ended; atomic */
	char message[256];		/* what happened; does not change once ended is not 0 */
	struct kd_thread heart;
	bool beating, stopping;
	pthread_mutex_t lock;		/* protects ended and stopping; stop is its condition */
	pthread_cond_t stop;
};

static inline struct kd_job_words *kd_job_words(const struct kdsm_job *job)
{
	return kdsm_region_part(job->words);
}

#define KD_JOB_PLACE(field)	offsetof(struct kd_job_words, field)

static inline uint64_t kd_claim_place(uint32_t rank)
{
	return sizeof(struct kd_job_words) + 8 * (uint64_t)rank;
}

static inline uint64_t kd_life_place(const struct kdsm_job *job, uint32_t rank)
{
	return kd_claim_place(job->size) + rank * sizeof(struct kd_life);
}

/* ---- watch.c: the end of a job with an error ---- */

/**
 * kd_job_failed() - tell the program about an error
 * @job: a job, or what kdsm_job_join() has made of one
 * @error: a negative errno
 * @format: as of printf(), what happened
 *
 * Only the first call for a job has an effect. Without a handler it does not return. The message of
 * the first call becomes the reason of the error, as by kd_because().
 *
 * Return: @error.
 */
int kd_job_failed(struct kdsm_job *job, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * kd_job_end() - end the job on all nodes
 * @job: a joined job
 * @rank: the member that caused the end
 * @error: -EOWNERDEAD, -EHOSTDOWN: it died, or its node did; others: it met that error
 * @why: a clause for the program of this process, or NULL for the one that others get
 *
 * Return: the error with which the job has ended, perhaps by another member before.
 */
int kd_job_end(struct kdsm_job *job, uint32_t rank, int error, const char *why);

/* Return 0, or the error with which the job has ended, after the program was told. */
int kd_job_check(struct kdsm_job *job);

/* Start and stop watching the other members. */
int kd_job_watch(struct kdsm_job *job);
void kd_job_unwatch(struct kdsm_job *job);

#endif /* KDSM_JOB_INTERNAL_H */
