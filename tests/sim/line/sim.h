/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulation of waiting lines (lib/lock): semaphores and condition variables on simulated
 * nodes, whose threads die, stop for a while, time out, and are interrupted.
 */
#ifndef KDSM_SIM_LINE_H
#define KDSM_SIM_LINE_H

#include "harness/harness.h"
#include "lock/internal.h"

/* Deliberate defects; main.c describes them. */
enum {
	BREAK_CHANGE = 1,
	BREAK_BELL,
	BREAK_TWICE,
	BREAK_OLD,
	BREAK_SHORT,
	BREAK_DROP,
	BREAK_DEAD,
	BREAK_COUNT
};

/* Choices of the seed for this simulation. "One in n" means never if n is 0. */
struct config {
	bool cond;		/* a condition variable; otherwise a semaphore */
	unsigned int home;
	unsigned int threads, rounds;	/* of a node; of a thread */
	unsigned int posts;	/* first value of the semaphore */
	unsigned int hold, away;	/* longest time with and without a post, in us */
	unsigned int give_up;	/* one in n waits has a timeout or only tries */
	unsigned int interrupt;	/* one in n sleeps is interrupted */
	unsigned int die, stop;	/* at one in n steps the thread dies, or stops for seconds */
	unsigned int deaths;	/* most threads that die */
	unsigned int ghosts;	/* entries of threads that died before the seed began */
	u64 ticket;		/* the first ticket */
	unsigned int changes;	/* first number of changes */
};

extern struct config config;

/* Sums over all seeds of the process. */
struct counts {
	u64 waits, timeouts, posts, deaths;
	u64 wait_operations, post_operations, post_most;
};

extern struct counts counts;

/* A simulated thread, which is a fiber */
struct thread {
	unsigned int node;
	struct kdsm_sem sem;
	struct kdsm_cond cond;
	u64 operations;		/* remote ones of the current call */
	unsigned int held;	/* posts that it has taken and not given back */
	bool has_lock;		/* of the condition variable */
	unsigned int due;	/* signals that others count on: it does not die before them */
	bool alive;
	/* Its place in the line */
	u64 ticket;
	bool in_ring;
	u64 announced;		/* number of the change of the head that announced it, or 0 */
};

/* words.c: the words of the nodes and the operations that reach them */

void words_start(void);
void words_stop(void);
void words_check(void);
struct kdsm_region *region_of(unsigned int node);
u64 line_head(void);

/* node.c: the threads */

extern u64 items;	/* that threads have made and not taken, under the lock */
void threads_start(void);
void threads_stop(void);
void threads_tell(void);
/* The thread of the current fiber */
struct thread *self(void);
struct thread *thread_at(unsigned int i);	/* NULL: there is none */
/* A step of the current thread, at which it may die or stop */
void thread_step(void);
unsigned int posts_lost(void);

#endif /* KDSM_SIM_LINE_H */
