/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulation of a lock's readers: the counters that they register at, and a writer
 * that closes and opens these counters. The queue of writers is a list in node.c;
 * the simulation in ../lock covers the real one.
 */
#ifndef KDSM_SIM_RW_H
#define KDSM_SIM_RW_H

#include "harness/harness.h"
#include "lock/rw.h"

/* Deliberate defects; main.c describes them. */
enum {
	BREAK_TELL = 1,
	BREAK_WANT,
	BREAK_WRITE,
	BREAK_DRAIN,
	BREAK_ROW,
	BREAK_GO,
	BREAK_SWAP,
	BREAK_SPAN,
	BREAK_EARLY,
	BREAK_RETIRE,
	BREAK_TWICE,
	BREAK_OLD,
	BREAK_DOUBT,
	BREAK_THAW,
	BREAK_WRONG,
	BREAK_COUNT
};

/* Choices of the seed for this simulation. "One in n" means never if n is 0. */
struct config {
	unsigned int reads, writes;	/* acquisitions of a node */
	unsigned int hold, away;	/* longest time with and without the lock, in us */
	unsigned int try;		/* one in n reads only tries */
	unsigned int give_up;		/* one in n writers gives up */
	unsigned int t_dc, t_r, t_w;	/* settings of the lock */
	unsigned int changes;		/* number of changes of T_DC */
	unsigned int share;		/* --measure: one in n acquisitions writes */
};

extern struct config config;

/* Sums over all seeds of the process. */
struct counts {
	u64 reads, writes;
	u64 read_operations;		/* remote operations of reads */
	u64 time;			/* simulated time at the end of the last seed */
	u64 switches;			/* changes between readers and writers */
	u64 row;			/* most readers let in while a writer waited */
};

extern struct counts counts;

/* serve.c: the words of counters, and the operations and messages that reach them */

void serve_start(void);
void serve_stop(void);
u64 counter_word(unsigned int node);
/*
 * The number of the writer that the node's last atomic as a reader found waiting at
 * the counter; see writer_waiting(). 0: none.
 */
unsigned int writer_found(unsigned int node);
void serve_operation(unsigned int from, struct kdsm_operation *op);
int serve_message(struct sim_message *message, struct kdsm_request *request);
extern const char *const message_names[];

/* node.c: the actions of nodes, and the checks */

void nodes_start(void);
/* Start the fibers, after serve_start(). */
void nodes_run(void);
void nodes_stop(void);
void nodes_tell(void);
struct kdsm_rw *rw_of(unsigned int node);
/* A writer begins to wait at the node's counter: count the counter's readers from 0. */
void writer_waits(unsigned int node);
/* Number of writers that have begun to wait at the counter. */
unsigned int writer_waiting(unsigned int node);

#endif /* KDSM_SIM_RW_H */
