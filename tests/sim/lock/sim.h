/* SPDX-License-Identifier: GPL-2.0 */
/* The simulation of the queues of nodes for a lock, with thresholds, loss and deaths. */
#ifndef KDSM_SIM_LOCK_H
#define KDSM_SIM_LOCK_H

#include "harness/harness.h"
#include "lock/tree.h"

/* Deliberate defects; main.c describes them. */
enum {
	BREAK_TELL = 1,
	BREAK_DEBT,
	BREAK_OLD,
	BREAK_KEEP,
	BREAK_DOUBT,
	BREAK_HAND,
	BREAK_RING,
	BREAK_TWICE,
	BREAK_EARLY,
	/* of trees */
	BREAK_ID,
	BREAK_PASSES,
	BREAK_CARRY,
	BREAK_PARENT,
	BREAK_IDLE,
	BREAK_ALONE,
	BREAK_BATCH,
	BREAK_TURNS,
	/* of recovery */
	BREAK_FENCE,
	BREAK_GONE,
	BREAK_DEAD,
	BREAK_BUSY,
	BREAK_RESUME,
	BREAK_FREE,
	BREAK_OUT,
	BREAK_THAW,
	BREAK_FLAT,
	BREAK_WITH,
	BREAK_COUNT
};

/* Choices of the seed for this simulation. "One in n" means never if n is 0. */
struct config {
	u32 home;			/* home of the root queue; spreads the other homes */
	unsigned int racks, chassis;	/* racks of the cluster, chassis of a rack */
	bool mixed;			/* nodes are in random chassis, not spread evenly */
	bool flat;			/* one queue for all nodes */
	unsigned int rounds;		/* acquisitions of a node */
	unsigned int hold, away;	/* longest time with and without the lock, in us */
	unsigned int keep;		/* a node keeps one in n idle locks */
	unsigned int again;		/* most times that a node takes a kept lock again */
	unsigned int try;		/* one in n acquisitions only tries */
	unsigned int check;		/* most hand-overs between threads of a node */
	unsigned int wanting;		/* threads that want the lock, as a node reports */
	u32 t_l[KDSM_LOCK_LEVELS];	/* thresholds; automatic ones in some seeds */
	u32 ticket;			/* the first ticket of each queue */
	unsigned int deaths;		/* nodes but the home that die or are away for a while */
	unsigned int die;		/* longest time until they do, in us */
	bool returns;			/* some of these nodes come back after a while */
	bool home_dies;
	bool old;			/* the ring is full of entries of the previous wrap */
};

extern struct config config;

/* Sums over all seeds of the process. */
struct counts {
	u64 enters, enter_operations, enter_most;
	u64 leaves, leave_operations, hand_overs;
	u64 tries, busy, holds;
	u64 crossed[KDSM_LOCK_LEVELS];	/* [i - 1]: holds by another element of level i */
	u64 operations;			/* remote operations of all kinds */
	u64 deaths, given_up, recoveries;
	u64 time;			/* simulated, until all nodes were done */
	u64 wait_median, wait_longest;	/* for a hold, in us */
};

extern struct counts counts;

/* serve.c: the words of queues, and the operations and messages that reach them */

void serve_start(void);
void serve_stop(void);
u64 queue_word(const struct kdsm_queue *queue);
void serve_operation(unsigned int from, struct kdsm_operation *op);
int serve_message(struct sim_message *message, struct kdsm_request *request);
void message_send(const struct sim_message *message);
void message_delivered(struct sim_message *message, bool cut);
extern const char *const message_names[];

/* The linker's --wrap redirects calls of kdsm_ring_node() to the first; the second is the real. */
unsigned int __wrap_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket);
unsigned int __real_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket);

/* death.c: nodes that die or are away, and the home that gives them up */

void deaths_start(void);
void deaths_stop(void);
/* Whether the home has not recovered from all deaths yet */
bool deaths_pending(void);
bool is_dead(unsigned int node);
void node_heard(unsigned int a, unsigned int b);
bool batch_may_land(unsigned int node, const struct kdsm_batch *batch);
/* Whether the node knows of all times that the home has given it up */
bool is_tied(unsigned int node);
/* Tell the home that a node does not answer; stuck: another node cannot continue without it. */
void node_missed(unsigned int node, bool stuck);
/* Whether the next holder must, or may, get KDSM_BATON_DEAD */
extern bool must_tell, may_tell;

/* node.c: the actions of nodes, and the checks */

void nodes_start(void);
void nodes_stop(void);
void nodes_tell(void);
/* Whether some node is not done */
bool nodes_active(void);
/* Compute the median and the longest of all waits. */
void waits_count(void);
struct kdsm_tree *tree_of(unsigned int node);
/* The node's view of the root queue, that of all nodes: its holder has the lock. */
struct kdsm_queue *queue_of(unsigned int node);
void node_wake(unsigned int node);
/* The home gives the node up, with the lock if the node has it. */
void holder_lost(unsigned int node);
/* The holder of the queue has left it and queued again in one step, with this ticket. */
void ticket_renewed(unsigned int home, unsigned int level, u32 ticket);

#endif /* KDSM_SIM_LOCK_H */
