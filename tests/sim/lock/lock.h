/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator of the queue of nodes for a lock. Fibers, time and the kernel's
 * primitives are those of the simulator of coherence protocols.
 */
#ifndef KDSM_SIM_LOCK_H
#define KDSM_SIM_LOCK_H

#include "lock/tree.h"
#include "sim.h"

#define LOCK_NODES	256

enum lock_break {
	LOCK_BREAK_NONE,
	LOCK_BREAK_TELL,
	LOCK_BREAK_DEBT,
	LOCK_BREAK_OLD,
	LOCK_BREAK_KEEP,
	LOCK_BREAK_DOUBT,
	LOCK_BREAK_HAND,
	LOCK_BREAK_RING,
	LOCK_BREAK_TWICE,
	LOCK_BREAK_EARLY,
	/* of trees: */
	LOCK_BREAK_ID,
	LOCK_BREAK_PASSES,
	LOCK_BREAK_CARRY,
	LOCK_BREAK_PARENT,
	LOCK_BREAK_IDLE,
	LOCK_BREAK_ALONE,
	LOCK_BREAK_BATCH,
	LOCK_BREAK_TURNS,
	/* Where nodes die. */
	LOCK_BREAK_FENCE,
	LOCK_BREAK_GONE,
	LOCK_BREAK_DEAD,
	LOCK_BREAK_BUSY,
	LOCK_BREAK_RESUME,
	LOCK_BREAK_FREE,
	LOCK_BREAK_OUT,
	LOCK_BREAK_THAW,
	LOCK_BREAK_FLAT,
	LOCK_BREAK_WITH,
	LOCK_BREAK_COUNT
};

/* What the seed chose, beside struct sim_config. */
struct lock_config {
	unsigned int nodes;
	u32 home;			/* tells which nodes are homes */
	unsigned int parts[2];		/* of the cluster, and of each of these */
	bool mixed;			/* nodes are anywhere in them, not evenly */
	bool flat;			/* one queue all the same */
	unsigned int rounds;		/* acquisitions of a node */
	unsigned int hold, away;	/* microseconds at most */
	unsigned int keep;		/* one in so many times an idle lock is kept; 0: never */
	unsigned int again;		/* times that a kept lock is taken again at most */
	unsigned int try;		/* one in so many acquisitions tries; 0: none */
	unsigned int check;		/* times that it is passed on inside a node at most */
	unsigned int wanting;		/* threads that a node says want it */
	u32 t_l[KDSM_LOCK_LEVELS];	/* of some seeds automatic */
	u32 ticket;			/* the first */
	unsigned int deaths, die;	/* nodes that die, within so many microseconds */
	bool away_too;			/* some come back */
	bool home_dies;
	bool old;			/* tickets come again: old entries are in the ring */
};

/* Remote operations, of all nodes. */
struct lock_counts {
	u64 enters, frees, enter_ops, enter_max;
	u64 leaves, leave_ops, hands;
	u64 tries, busy, holds;
	u64 crossed[KDSM_LOCK_LEVELS];	/* [i - 1]: holds by another element of level i */
	u64 operations;			/* all */
	u64 median, longest;		/* microseconds from the wish to a hold */
};

extern struct lock_config lock;
extern enum lock_break lock_broken;
extern struct lock_counts lock_counts;

/* fabric.c */
void lock_fabric_start(void);
void lock_fabric_stop(void);
u64 lock_word(const struct kdsm_queue *queue);

/* By --wrap, called instead and calling the real one. */
unsigned int __real_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket);
unsigned int __wrap_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket);

/* death.c */
void lock_deaths_start(void);
bool lock_deaths_pending(void);
unsigned int lock_deaths_to_come(void);
bool lock_is_cut(unsigned int a, unsigned int b);
bool lock_is_dead(unsigned int node);
void lock_greet(unsigned int a, unsigned int b);
bool lock_may_land(unsigned int node, u64 tie);
bool lock_is_tied(unsigned int node);
void lock_missed(unsigned int node, bool stuck);
/* Who has the lock next has to be told that a holder died; may be. */
extern bool lock_must_tell, lock_may_tell;

/* node.c */
void lock_gives_up(unsigned int node);
void lock_wake(unsigned int node);
bool lock_nodes_active(void);
void lock_nodes_start(void);
void lock_nodes_stop(void);
void lock_nodes_tell(void);
/* What is known of waits so far, into lock_counts. */
void lock_waits_count(void);
struct kdsm_tree *lock_tree(unsigned int node);
struct kdsm_queue *lock_queue(unsigned int node);
/* Who has that queue has left it and queued again, in one step. */
void lock_renewed(unsigned int home, unsigned int level, u32 ticket);

#endif /* KDSM_SIM_LOCK_H */
