/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program of several members: its start, its shared memory, and rounds of all members. */
#ifndef KDSM_OMP_SPAN_H
#define KDSM_OMP_SPAN_H

#include <kdsm/job.h>
#include "internal.h"

/* The beginning of the region of policy strict, in which stacks follow */
struct ko_shared {
	struct ko_locks locks;
	uint32_t last_lock;		/* number of the newest lock, from 1 */
	uint32_t threads;		/* of a team by default */
	uint64_t fence;			/* offset in the job's region of the word of ko_fence() */
	uint64_t places[3];		/* addresses that must be the same in all members */
	struct ko_common common;	/* of the team that spans members: there is one at a time */
};

/* Contribution of a member to a round. The largest contribution is the result. */
enum ko_round { KO_ROUND_NONE, KO_ROUND_BARRIER, KO_ROUND_JOIN, KO_ROUND_FORK, KO_ROUND_END };

/* Number of members, 1 if no launcher started the program, and number of this one */
extern unsigned int ko_members, ko_rank;
extern struct ko_shared *ko_shared;
extern struct kdsm_job *ko_job;

/* Join the job, with so many bytes of memory, and open the region of policy strict. Collective. */
void ko_span_join(uint64_t memory);

/**
 * ko_round() - meet all members, and see what they wrote
 * @own: what this member contributes; one thread of the member calls at a time
 *
 * Return: the largest contribution.
 */
enum ko_round ko_round(enum ko_round own);

/* Order this thread's accesses to memory before the call and after it with those of all members. */
void ko_fence(void);

/* Returns the stack of a member's thread, which all members can read, and its size; or NULL. */
void *ko_stack(unsigned int rank, unsigned int index, size_t *size);
/* Number of threads of a member that have such a stack */
#define KO_STACKS	16

/* image.c: map the variables of the program onto a region. Collective. */
void ko_image_share(void);

/* memory.c: from now on malloc() and its kin allocate in memory that members share. Collective. */
void ko_memory_share(void);
/* Whether instructions of the CPU on this memory are atomic on one node only */
bool ko_is_release(const void *memory);

/* team.c: serve teams until the program ends. */
void ko_member_serve(void);
/* The calling thread runs main(): its outermost teams span members. */
void ko_team_main(void);

#endif /* KDSM_OMP_SPAN_H */
