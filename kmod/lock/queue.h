/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of nodes for a lock: who has it, and who is next. It knows the fabric's
 * operations and messages and nothing of threads, files or regions, and runs in the
 * simulator (tests/sim/lock) unmodified.
 */
#ifndef KDSM_LOCK_QUEUE_H
#define KDSM_LOCK_QUEUE_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/kdsm.h>

#include "fabric/fabric.h"

/* Tickets count up and wrap. */
#define KDSM_TICKET_MASK	0x7fffffffU

/* Nobody hears of a ticket so long after it was handed over. */
#define KDSM_TICKETS_RECENT	BIT(24)
#define KDSM_BATON_LIFE		(120 * NSEC_PER_SEC)

/*
 * A node has one ticket that waits, and is in the debt once for each time that it
 * handed over. So both the number of those outstanding and the sum of their ids fit
 * into the word.
 */
#define KDSM_DEBT_MAX		1024U
#define KDSM_OUTSTANDING_MAX	(KDSM_DEBT_MAX + KDSM_MAX_NODES)

/* Successors that travel with the lock. */
#define KDSM_SUCCESSORS_MAX	KDSM_WIRE_SUCCESSORS

/* Entries of a ring that are read at once. */
#define KDSM_RING_WINDOW	128U

enum kdsm_queue_state {
	KDSM_QUEUE_NONE = 0,	/* this node has nothing to do with the lock */
	KDSM_QUEUE_ENTERING,	/* its ticket is under way */
	KDSM_QUEUE_DOUBT,	/* it may have a ticket: the answer was lost */
	KDSM_QUEUE_WAITING,
	KDSM_QUEUE_HELD,
	KDSM_QUEUE_LEAVING,	/* it looks for the next one, or tells it */
	KDSM_QUEUE_PARTLY,	/* only of a tree; see lock_tree.h */
};

/* The lock of the queue of a larger element, which goes with that of a smaller one. */
struct kdsm_carried {
	u32 level, ticket, id, debt, debt_sum, passes, flags;
};

/* What goes from node to node with the lock. */
struct kdsm_baton {
	u32 ticket;		/* of who gets it */
	u32 id;			/* as which its holder is counted in the word */
	u32 debt, debt_sum;	/* tickets not yet taken off the word, and their ids */
	u32 flags;		/* KDSM_BATON_* */
	u16 known;
	u16 successors[KDSM_SUCCESSORS_MAX];	/* nodes with the tickets after that */
	u16 count;		/* of those carried, which this node has not yet unpacked */
	struct kdsm_carried carried[KDSM_WIRE_CARRIED];
};

/* An entry of the ring; what a reader finds half written fails the check. */
struct kdsm_ring_entry {
	__le64 who;		/* ticket << 16 | id */
	__le64 check;
};

struct kdsm_queue;

struct kdsm_queue_ops {
	/* This node was given the lock; another wants it. In any context, without locks. */
	void (*granted)(struct kdsm_queue *queue);
	void (*wanted)(struct kdsm_queue *queue);
	/*
	 * By the task that leaves, before the lock is handed over or (free) set free; maybe
	 * several times. An error: it stays, LEAVING. NULL: nothing to do.
	 */
	int (*leaving)(struct kdsm_queue *queue, bool free);
	/*
	 * A node does not answer this one: the home should know. If stuck, this one does not
	 * get on without that: the queue is to be written anew. In tasks.
	 */
	void (*missed)(struct kdsm_queue *queue, unsigned int node, bool stuck);
};

struct kdsm_queue_stats {
	u64 entered, free, freed, handed;
	u64 atomics, puts, gets, messages;
};

/*
 * One node's part in one queue; from kmalloc(). What is called by tasks (enter, try,
 * poll, leave) must be called by one at a time; messages come in between.
 */
struct kdsm_queue {
	struct kdsm_fabric *fabric;
	struct kdsm_memory *memory;	/* of the words; atomics by one authority */
	const struct kdsm_queue_ops *ops;
	void *owner;			/* for ops */
	u32 region, number, level;
	u32 home;			/* the node that has the word */
	u64 word;			/* where */
	u64 ring;			/* entries, of which there are ring_mask + 1 */
	u32 ring_mask;
	unsigned int node, nodes;
	const u16 *elements;		/* by node; its members are in the same as this node */
	struct kdsm_queue *parent;	/* where that element queues; NULL: there is none */
	struct kdsm_queue *child;	/* whose parent this is; NULL: there is none */
	bool recovers;			/* its home writes it anew when nodes die */
	bool deep;			/* recovers, and has children, here or at other nodes */

	/*
	 * recovers: taken before the locks of it and its children, one by one, where a task
	 * or a message changes several, or has to see them at once.
	 */
	spinlock_t together;

	spinlock_t lock;		/* guards what follows, up to stats */
	u8 state;			/* enum kdsm_queue_state */
	bool regained;			/* LEAVING, and then HELD: nobody has seen that */
	bool met;			/* epoch and tie are known */
	bool asks_again;		/* what is just being heard of them is not of now */
	bool busy;			/* a task changes the word or the ring, or hands over */
	bool frozen;			/* no task may */
	bool reported;			/* and the home knows what this node is */
	bool said_handing;		/* with that, that another may have it */
	u8 said;			/* the state that it knows */
	bool flat;			/* deep: nobody uses the children any more */
	u32 epoch;			/* how often the home has written the queue anew */
	u64 tie;			/* to the home, as it was then: see kdsm_fabric_tie() */
	/*
	 * LEAVING: may have it, and those above that went along, but has not answered;
	 * KDSM_NOBODY; this node: it is no longer to be known.
	 */
	u16 handing;
	u32 hand_epoch;			/* when that was said */
	bool published;			/* WAITING: who goes before can find this node */
	bool looked;			/* HELD: somebody waits who may not be known */
	u32 ticket;			/* the last that is known */
	bool has_held;
	u32 held;			/* the last with which this node had the lock */
	u64 held_at;			/* when it got it, in ns of ktime */
	u16 from;			/* HELD: who handed it over; NOBODY: it was free */
	u16 before;			/* whom to tell; KDSM_NOBODY: the ring */
	u16 told;			/* has ticket + 1; KDSM_NOBODY: not known */
	u32 told_ticket;		/* that ticket, as told says */
	bool renewing;			/* HELD, LEAVING: its ticket may be the next one by now */
	u32 tail;			/* DOUBT: a ticket of this node's is below that */
	bool tail_known;
	struct kdsm_baton baton;	/* HELD, LEAVING */

	/* HELD; of tasks. */
	bool moved;			/* it came with the lock of a smaller element */
	u32 passes;			/* threads that had it since; see lock_tree.c */

	/* LEAVING; of the task that leaves. */
	u32 waiters;			/* tickets from ticket + 1 on; 0: not known */
	u32 rest;			/* the sum of their ids */
	u64 attempted;			/* what the word was to become */
	bool uncertain;			/* and maybe did */
	bool paying;			/* the debt may be taken off the word */
	unsigned int tries;		/* to find the next one */

	u64 missed_at;			/* ns: when it was last said that the home is */

	/* At the home; of the task that recovers. */
	bool recovering;		/* it has begun */
	bool resuming;			/* some have been told to resume */
	u32 round;			/* when it was done last */

	struct kdsm_queue_stats stats;
	struct kdsm_operation op[2];
	struct kdsm_ring_entry entry;
	struct kdsm_ring_entry window[KDSM_RING_WINDOW];
};

/*
 * All but the first block of fields is filled in. ring_mask + 1: a power of two above
 * the number of nodes.
 */
void kdsm_queue_init(struct kdsm_queue *queue);
/* Size of a word and a ring in the memory, at a multiple of that; a power of two. */
u64 kdsm_queue_size(unsigned int nodes);
/* The word and the ring are those at offset. */
void kdsm_queue_place(struct kdsm_queue *queue, u64 offset);

/*
 * NONE: learn from the home what is needed to queue. 0, also if it is known. -EAGAIN: in a
 * while. Others as below.
 */
int kdsm_queue_meet(struct kdsm_queue *queue);
/*
 * NONE: queue. 0: it is HELD or WAITING or, for want of an answer, DOUBT. -EHOSTDOWN,
 * -EIO, -ENOMEM: it is NONE or DOUBT. -EAGAIN, here and below: the home writes the queue
 * anew; call this again in a while.
 */
int kdsm_queue_enter(struct kdsm_queue *queue);
/* NONE: be the holder if there is none. -EBUSY: there is. Other errors as above. */
int kdsm_queue_try(struct kdsm_queue *queue);
/*
 * WAITING or DOUBT: whatever was lost is said or asked again. Every few milliseconds,
 * and with look every second. Errors as above; with look: nodes do not answer, and no
 * other has the lock.
 */
int kdsm_queue_poll(struct kdsm_queue *queue, bool look);
/*
 * HELD or LEAVING, and no thread of this node has it. 0: it is NONE, and the next one has
 * the lock, or nobody; or, with keep, it is HELD, as nobody else is in the queue; wanted()
 * says when that changes, but see kdsm_queue_is_wanted() after this. An error: it is
 * LEAVING, and this is to be called again in a while.
 */
int kdsm_queue_leave(struct kdsm_queue *queue, bool keep);
/*
 * HELD, by a thread or not: find out whether others wait who could not tell, because
 * of the debt; kdsm_queue_is_wanted() knows then. At most one atomic, once each time that
 * the lock comes here. Errors as above, and it may be called again.
 */
int kdsm_queue_check(struct kdsm_queue *queue);
/* HELD: the baton is as it should be, if the answer to a check was lost. Errors as above. */
int kdsm_queue_ascertain(struct kdsm_queue *queue);
/*
 * Has the home given up this node? Then it is NONE now, and all others know it so. Of
 * tasks, one at a time, like the above. *had: it had the lock.
 */
bool kdsm_queue_is_out(struct kdsm_queue *queue, bool *had);
/* HELD: is somebody known to wait for it? */
bool kdsm_queue_is_wanted(struct kdsm_queue *queue);
/* HELD: can it stay so, without a task, until wanted() is called? */
bool kdsm_queue_can_idle(struct kdsm_queue *queue);
/*
 * HELD, since another node of the same element handed it over: those above that came along
 * are HELD, too.
 */
void kdsm_queue_unpack(struct kdsm_queue *queue);

static inline enum kdsm_queue_state kdsm_queue_state(const struct kdsm_queue *queue)
{
	return READ_ONCE(queue->state);
}

/* Handlers, in any context. */
int kdsm_queue_serve_tell(struct kdsm_queue *queue, struct kdsm_request *request);
int kdsm_queue_serve_hand(struct kdsm_queue *queue, struct kdsm_request *request);
int kdsm_queue_serve_look(struct kdsm_queue *queue, struct kdsm_request *request);
int kdsm_queue_serve_meet(struct kdsm_queue *queue, struct kdsm_request *request);
int kdsm_queue_serve_freeze(struct kdsm_queue *queue, struct kdsm_request *request);
int kdsm_queue_serve_resume(struct kdsm_queue *queue, struct kdsm_request *request);

/* ---- at the home, when nodes have died: lock_recover.c ---- */

/* What one of them is, or will be. */
struct kdsm_member {
	u32 state, ticket, flags;
	u16 to, next;
	bool away;		/* it could not be asked */
};

struct kdsm_recovery {
	u32 round;		/* not 0; each queue once */
	bool idle;		/* also if nobody seems to have queued */
	unsigned int node;	/* result; see below */
	struct kdsm_member *nodes;	/* of all */
	u16 *order;			/* as many */
};

/*
 * Write the queue anew, of this node's queue, without those nodes that do not answer. In
 * a task, one at a time. -EHOSTDOWN: recovery->node does not answer, and was not given up
 * (kdsm_fabric_give_up()) since it did; do that, and call this again. -EAGAIN: a node
 * has something to end first; call this again in a while. Until this returns 0 the queue is
 * frozen.
 */
int kdsm_queue_recover(struct kdsm_queue *queue, struct kdsm_recovery *recovery);

/* ---- trees whose nodes die: lock_flat.c ---- */

struct kdsm_queue *kdsm_queue_root(struct kdsm_queue *queue);

/* The rest with together. */

/* No task may work on the children. False: one does. */
bool kdsm_queue_freeze_children(struct kdsm_queue *queue);
/* The same epoch as this queue has, and whether they are used. */
void kdsm_queue_meet_children(struct kdsm_queue *queue);
/* Nothing is known of any of them any more. */
void kdsm_queue_drop_children(struct kdsm_queue *queue);
/* What has come along with a smaller one is there. */
void kdsm_queue_unpack_children(struct kdsm_queue *queue);
/* HELD, LEAVING: the child with which this queue is being left, or this queue. */
struct kdsm_queue *kdsm_queue_carrier(struct kdsm_queue *queue);
/* KDSM_BATON_LOCK of all of them. */
u32 kdsm_queue_flags(const struct kdsm_queue *queue);

/* ---- between its files ---- */

/*
 * lock_queue.c: a task is to work on the word, if the queue is in one of the states (bits).
 * 0: end follows. 1: it is in another. -EAGAIN: it is frozen.
 */
int kdsm_queue_start(struct kdsm_queue *queue, unsigned long states);
void kdsm_queue_end(struct kdsm_queue *queue);
/* The step between start and end. 0, too, if the queue is in another state. */
int kdsm_queue_run(struct kdsm_queue *queue, unsigned long states,
		   int (*step)(struct kdsm_queue *queue));
/* With the spinlock. */
void kdsm_queue_set(struct kdsm_queue *queue, enum kdsm_queue_state state);
/* The baton is there; the same for who has it without debt. */
void kdsm_queue_take(struct kdsm_queue *queue);
void kdsm_queue_take_alone(struct kdsm_queue *queue, u32 ticket);
/* With the spinlock: how far leaving it had got does not matter any more. */
void kdsm_queue_forget_leave(struct kdsm_queue *queue);

/* Where another node stands. */
struct kdsm_queue_place {
	u32 state;		/* enum kdsm_queue_state */
	u32 ticket, held;
	bool has_held;
};

int kdsm_queue_ask(struct kdsm_queue *queue, unsigned int node,
		   struct kdsm_queue_place *place);

/* Had this node the lock with that ticket, or a later one? With the spinlock. */
bool kdsm_queue_had(const struct kdsm_queue *queue, u32 ticket);

/* Nodes in doubt that are told apart. */
#define KDSM_DOUBTERS_MAX	12U

/* A node in doubt: its ticket, if it has one, is one of the first before of some. */
struct kdsm_doubter {
	u32 id, before;
};

/* lock_doubt.c: one more, into their order. */
void kdsm_doubter_add(struct kdsm_doubter *doubters, unsigned int count, u32 id, u32 before);
/* All but that one; how many there are then. */
unsigned int kdsm_doubters_drop(struct kdsm_doubter *doubters, unsigned int count, u32 id);
/*
 * Which of the doubters (bits) have the tickets at those places, count of them? Their
 * ids add up to sum. 0: it cannot be told yet.
 */
u32 kdsm_doubters_choose(const struct kdsm_doubter *doubters, unsigned int n,
			 const u32 *places, unsigned int count, u32 sum);
/* DOUBT: try to find out. */
int kdsm_queue_resolve(struct kdsm_queue *queue, bool scan);

/* lock_ring.c: an atomic on the word, or on that of claims behind it. */
#define KDSM_CLAIM_OFFSET	8

int kdsm_queue_atomic(struct kdsm_queue *queue, enum kdsm_opcode opcode, u64 offset,
		      u64 operand, u64 compare, u64 *old);
int kdsm_queue_send(struct kdsm_queue *queue, unsigned int node, enum kdsm_message_type type,
		    const void *data, unsigned int length, struct kdsm_wire_lock_state *reply);
void kdsm_queue_name(const struct kdsm_queue *queue, struct kdsm_wire_lock *wire, u32 ticket);
/* Into the window: the entries of count tickets from first on; at most KDSM_RING_WINDOW. */
int kdsm_ring_read(struct kdsm_queue *queue, u32 first, unsigned int count);
/* Whom entry i of the window names for a ticket, or KDSM_NOBODY: nobody yet. */
unsigned int kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket);
int kdsm_ring_write(struct kdsm_queue *queue, u32 ticket, unsigned int node);
/* An entry that names a node for a ticket. */
void kdsm_ring_name(struct kdsm_ring_entry *entry, u32 ticket, unsigned int node);

/* The word: the next ticket, how many are not yet taken off, and the sum of their ids. */
#define KDSM_WORD_COUNT		(1ULL << 21)
#define KDSM_WORD_TAIL		(1ULL << 33)

static inline u32 kdsm_word_sum(u64 word)
{
	return word & (KDSM_WORD_COUNT - 1);
}

static inline u32 kdsm_word_count(u64 word)
{
	return (word & (KDSM_WORD_TAIL - 1)) >> 21;
}

static inline u32 kdsm_word_tail(u64 word)
{
	return word >> 33;
}

static inline u32 kdsm_queue_id(const struct kdsm_queue *queue)
{
	return queue->node + 1;
}

/* HELD: who comes may not tell this node, since there are others that it would tell. */
static inline bool kdsm_queue_is_unsure(const struct kdsm_queue *queue)
{
	return queue->baton.debt || queue->moved;
}

/* Is that node in the element whose queue it is? */
static inline bool kdsm_queue_has(const struct kdsm_queue *queue, unsigned int node)
{
	return node < queue->nodes && queue->elements[node] == queue->elements[queue->node];
}

static inline bool kdsm_queue_is_peer(const struct kdsm_queue *queue, unsigned int node)
{
	return node != queue->node && kdsm_queue_has(queue, node);
}

/* How far b is behind a. */
static inline u32 kdsm_ticket_distance(u32 a, u32 b)
{
	return (b - a) & KDSM_TICKET_MASK;
}

/* DOUBT, with the spinlock: could this node have been given that ticket? */
static inline bool kdsm_queue_may_be_mine(const struct kdsm_queue *queue, u32 ticket)
{
	return kdsm_ticket_distance(ticket, queue->tail) - 1 < KDSM_OUTSTANDING_MAX;
}

#endif /* KDSM_LOCK_QUEUE_H */
