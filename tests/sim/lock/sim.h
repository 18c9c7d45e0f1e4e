/* SPDX-License-Identifier: GPL-2.0 */
/* The simulation of locks with a queue at the home: writers, readers, thresholds, deaths. */
#ifndef KDSM_SIM_LOCK_H
#define KDSM_SIM_LOCK_H

#include "harness/harness.h"
#include "lock/home.h"
#include "topology.h"

/* Deliberate defects; main.c describes them. */
enum {
	BREAK_OPEN = 1,
	BREAK_GRANT,
	BREAK_READER,
	BREAK_TWICE,
	BREAK_LATE,
	BREAK_SKIP,
	BREAK_FORGET,
	BREAK_SURVEY,
	BREAK_FREEZE,
	BREAK_DEAD,
	BREAK_ORPHAN,
	BREAK_VOID,
	BREAK_LIST,
	BREAK_LOCAL,
	BREAK_OUT,
	BREAK_ORDER,
	BREAK_BIAS,
	BREAK_COUNT
};

/* Choices of the seed for this simulation. "One in n" means never if n is 0. */
struct config {
	unsigned int home;
	unsigned int racks, chassis;	/* racks of the cluster, chassis of a rack */
	bool flat;			/* two levels: in order of arrival */
	bool rw;			/* some threads read */
	unsigned int threads;		/* of a node, at most */
	unsigned int rounds;		/* acquisitions of a thread */
	unsigned int hold, away;	/* longest time with and without the lock, in us */
	unsigned int keep;		/* a node keeps one in n idle locks */
	unsigned int share;		/* one in n acquisitions writes, if rw; 0: all read */
	unsigned int try;		/* one in n locks only tries */
	unsigned int timed;		/* one in n waits ends before the lock comes */
	unsigned int die;		/* one in n holders dies: the process, not the node */
	unsigned int greedy;		/* one in n nodes ignores its quota */
	unsigned int tunes;		/* changes of thresholds */
	unsigned int deaths;		/* nodes but the home that die or are away for a while */
	unsigned int when;		/* longest time until they do, in us */
	bool home_dies, home_returns;
	u32 t_dc;
	unsigned int local;		/* --measure: to lock in mapped memory, in ns */
};

extern struct config config;

/* Sums over all seeds of the process. */
struct counts {
	u64 locks, reads, local, remote;	/* acquisitions; operations and messages for them */
	u64 asked, handed, left, pushed, swaps;
	u64 wait_median, wait_longest;		/* in us, or with costs in ns */
	u64 time, busy;				/* with costs: in ns; of it, the home's CPU */
	u64 deaths, given_up, surveys, dismissals, died, timed_out, lost;
	u64 passed;				/* most turns of others while a node waited */
};

extern struct counts counts;

/* node.c: the protocol's objects of each node, and their tasks */

struct node {
	unsigned int number;
	struct kdsm_turn turn;
	struct kdsm_pass pass;
	struct kdsm_reader_home reader;
	struct sim_queue wake[4];	/* of the tasks; see struct task */
	bool woken[4];
	char location[24];
	u64 word;			/* memory that other nodes reach */
	u32 stay;			/* life: threads of a former one have lost the lock */
	bool greedy;

	/* threads.c */
	struct sim_queue queue;		/* threads that wait for something to change */
	unsigned int tickets, serving;	/* waiting writers, in order */
	unsigned int writers;		/* that wait */
	bool taken;			/* a thread of this node has it */
	unsigned int readers, waiting;	/* threads that read, and that wait to read */
	u64 once;			/* request of the last admission of KDSM_ADMIT_ONCE */
	unsigned int chances;		/* readers that may still enter by it */
	u32 flags;			/* of the lock, while it is here */
	bool advances;			/* a task or a thread is in node_advance() */
	bool stepping, again;
	bool loses;			/* the lock, now, because the node was given up */
	u64 since;			/* turns of all nodes when this one asked; 0: it does not */
};

extern struct node *nodes;
extern struct kdsm_lock_home *home;
extern bool ended;			/* all threads are done */
extern u64 turns;			/* of nodes, so far */

void nodes_start(void);
void nodes_stop(void);
void nodes_tell(void);
void node_wake(struct node *node, unsigned int task);
void node_changed(struct node *node);
/* Send what the node's turn requires, unless a task does so already. */
u64 node_advance(struct node *node);
void home_wake(void);
/* The node gives up another one. */
void node_strikes(struct node *node, unsigned int dead);
/* The node has lost all state that it had for other nodes, and perhaps its memory. */
void node_out(struct node *node, bool rebooted);

/* threads.c: programs, and the invariants */

void threads_start(void);
void threads_stop(void);
/* Let threads in, and the lock go, as the state of the node allows. */
void node_step(struct node *node);
/* The home gave the node up. */
void holder_lost(unsigned int node);
/* The node's entry is in the home's queue now. */
void node_queued(unsigned int node);
void waits_count(void);
bool threads_active(void);

/* program.c: --programs */

void programs_start(void);
void programs_stop(void);

/* serve.c */

int serve_message(struct sim_message *message, struct kdsm_request *request);
void message_sent(const struct sim_message *message);
void message_done(struct sim_message *message, bool cut);
void serve_operation(unsigned int from, struct kdsm_operation *op);
extern const char *const message_names[];

/* death.c */

void deaths_start(void);
void deaths_stop(void);
bool is_dead(unsigned int node);
void node_heard(unsigned int a, unsigned int b);
bool batch_may_land(unsigned int node, const struct kdsm_batch *batch);
u64 node_tie(unsigned int a, unsigned int b);
bool is_given_up(unsigned int node);
/* The next holder must, or may, learn that a holder died. */
extern bool must_tell, may_tell;
/* The node that was given up last with a thread inside */
extern unsigned int lost_by;

#endif /* KDSM_SIM_LOCK_H */
