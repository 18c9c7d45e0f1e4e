/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator of the counters of readers of a lock. Fibers, time and the kernel's
 * primitives are those of the simulator of coherence protocols. The queue of writers is
 * a list here: the other simulator of locks has it.
 */
#ifndef KDSM_SIM_RW_H
#define KDSM_SIM_RW_H

#include "lock/rw.h"
#include "sim.h"

#define RW_NODES	64

enum rw_break {
	RW_BREAK_NONE,
	RW_BREAK_TELL,
	RW_BREAK_WANT,
	RW_BREAK_WRITE,
	RW_BREAK_DRAIN,
	RW_BREAK_ROW,
	RW_BREAK_GO,
	RW_BREAK_SWAP,
	RW_BREAK_SPAN,
	RW_BREAK_EARLY,
	RW_BREAK_TWICE,
	RW_BREAK_OLD,
	RW_BREAK_DOUBT,
	RW_BREAK_THAW,
	RW_BREAK_WRONG,
	RW_BREAK_COUNT
};

/* What the seed chose, beside struct sim_config. */
struct rw_config {
	unsigned int nodes;
	unsigned int reads, writes;	/* of a node */
	unsigned int hold, away;	/* microseconds at most */
	unsigned int try;		/* one in so many reads tries; 0: none */
	unsigned int give_up;		/* one in so many writes; 0: none */
	unsigned int t_dc, t_r, t_w;
	unsigned int changes;		/* times that T_DC is set */
};

/*
 * Instead of chance: what an operation takes, in units of time, and one in so many that
 * a node does is a write.
 */
struct rw_cost {
	unsigned int units;		/* in a microsecond; 0: chance */
	unsigned int self, near, far;	/* one way, in the node, the rack, to another */
	unsigned int atomic, message;	/* at the target, one by one */
	unsigned int racks;
	unsigned int share;		/* of writes: one in so many */
};

extern struct rw_config rw_config;
extern struct rw_cost rw_cost;
extern enum rw_break rw_broken;
extern struct rw_counts {
	u64 reads, writes, alone, alone_ops, time, switches, row;
} rw_counts;

/* fabric.c */
void rw_fabric_start(void);
void rw_fabric_stop(void);
u64 rw_word(unsigned int node);
/* The last atomic of the node as a reader found that writer waiting; 0: none. */
unsigned int rw_found_want(unsigned int node);
/* Another node is told something: how long that takes. */
u64 rw_latency(unsigned int from, unsigned int to);

/* node.c */
void rw_nodes_start(void);
/* After rw_fabric_start(). */
void rw_nodes_run(void);
void rw_nodes_stop(void);
void rw_nodes_tell(void);
struct kdsm_rw *rw_of(unsigned int node);
/* Readers are counted anew: a writer waits now. */
void rw_wanted(unsigned int node);
/* How often that was. */
unsigned int rw_want(unsigned int node);

#endif /* KDSM_SIM_RW_H */
