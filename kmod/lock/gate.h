/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers of a lock of kind RMA_RW. A *gate* is a parent's part: it admits children, and has
 * them leave (gate.c). A *pass* is a child's part (pass.c). The lock's home is the parent of
 * reader homes; a reader home (reader.c) is the parent of nodes that read, and a child of the
 * home. All run in the simulator (tests/sim/lock) unmodified.
 */
#ifndef KDSM_LOCK_GATE_H
#define KDSM_LOCK_GATE_H

#include "part.h"

/* ---- a parent's part ---- */

enum kdsm_gate_state {
	KDSM_GATE_SHUT,		/* nobody is inside */
	KDSM_GATE_OPEN,		/* each child that asks is admitted */
	KDSM_GATE_ONCE,		/* children of the beginning are inside, and leave by themselves */
	KDSM_GATE_CLOSING,	/* children are to leave */
};

enum kdsm_child_state {
	KDSM_CHILD_OUT,
	KDSM_CHILD_WAITING,
	KDSM_CHILD_IN,		/* from the moment that the parent sends the admission */
};

struct kdsm_child {
	u64 life;		/* the latest that the parent knows of */
	u64 doomed;		/* lives up to this one are over: kdsm_home_doom() */
	u64 request;		/* of its last ENTER */
	u64 done;		/* its last request that is over */
	u8 state;		/* enum kdsm_child_state */
};

struct kdsm_gate {
	/* Set by the caller of kdsm_gate_init() */
	const struct kdsm_part *part;
	spinlock_t *lock;		/* guards the fields below */
	/* Begin a message: fill in what is alike for all children. With the spinlock. */
	void (*name)(const struct kdsm_gate *gate, struct kdsm_wire_pass *wire);

	enum kdsm_gate_state state;
	unsigned int waiting, inside;	/* children */
	unsigned int next;		/* the child to admit first in the next ONCE */
	unsigned int most;		/* children admitted in one ONCE */
	u64 order;			/* grows when children have to leave, or need not */
	struct kdsm_child *children;	/* by node */
	unsigned long *untold;		/* by node: IN, and ADMIT or REVOKE was not sent yet */
	u64 messages;			/* to children on other nodes */
};

/* Returns 0 or -ENOMEM; the caller calls kdsm_gate_exit() in any case. */
int kdsm_gate_init(struct kdsm_gate *gate);
void kdsm_gate_exit(struct kdsm_gate *gate);
/* SHUT: admit the children that wait; ONCE: at most limit. */
void kdsm_gate_open(struct kdsm_gate *gate, bool once, u32 limit);
/* CLOSING: let children in again. Those that have not left need not leave. */
void kdsm_gate_reopen(struct kdsm_gate *gate);
/* Let nobody in any more, and have all leave. Returns true if nobody is inside. */
bool kdsm_gate_close(struct kdsm_gate *gate);
/*
 * ENTER: a child asks. Fills in the reply and returns 0; or returns -EAGAIN, and *strike: the same
 * node, in a former life, has to be struck off first.
 */
int kdsm_gate_enter(struct kdsm_gate *gate, struct kdsm_request *request, bool *strike);
/*
 * LEFT: a child is not inside by this request any more. Returns true if the gate was closing or
 * ONCE, and is SHUT now.
 */
bool kdsm_gate_leave(struct kdsm_gate *gate, unsigned int node, const struct kdsm_wire_pass *wire);
/* Forget all children, which leave without LEFT, or ask again. */
void kdsm_gate_clear(struct kdsm_gate *gate);
/* A child is dead. Returns as kdsm_gate_leave(). */
bool kdsm_gate_strike(struct kdsm_gate *gate, unsigned int node);
/* All lives that the child has had are over; whether the latest is one of them. */
void kdsm_gate_doom(struct kdsm_gate *gate, unsigned int node);
bool kdsm_gate_is_doomed(const struct kdsm_gate *gate, unsigned int node);
/*
 * Send ADMIT and REVOKE to children that have to be told. again: also those that were told before
 * and have not left. Drops the spinlock meanwhile. Returns whether it sent any.
 */
bool kdsm_gate_tell(struct kdsm_gate *gate, bool again);

/* ---- a child's part ---- */

enum kdsm_pass_state {
	KDSM_PASS_NONE,
	KDSM_PASS_ASKING,	/* the parent has not answered ENTER */
	KDSM_PASS_WAITING,	/* the parent will send ADMIT */
	KDSM_PASS_READING,	/* inside until REVOKE */
	KDSM_PASS_LAST,		/* inside for the threads that wait now; revoked, or ONCE */
	KDSM_PASS_LEAVING,	/* the parent has not answered LEFT */
	KDSM_PASS_LOST,		/* the home does not know the lock */
};

struct kdsm_pass {
	/* Set by the caller of kdsm_pass_init() */
	struct kdsm_part part;
	u16 level;			/* 0: of a reader; KDSM_PASS_HOME: of a reader home */
	u64 life;

	spinlock_t lock;		/* guards the fields below */
	enum kdsm_pass_state state;
	u64 request;
	u64 order;			/* of the last ADMIT or REVOKE for this request */
	unsigned int parent;		/* ASKING to LEAVING */
	/*
	 * The latest era of the home that this node knows of. Admissions of former ones are void:
	 * the reader home does not know yet that it counts as dead. 0: a new life, which asks the
	 * home itself.
	 */
	u64 era;
	u32 limit;			/* READING, LAST: T_R */
	u16 flags, from;		/* READING, LAST: of the lock; node with the signature */
	bool once;			/* LAST: threads that wait now may read */
	bool was_once;			/* LAST: not by REVOKE */
	u64 poll;			/* WAITING: ask again at this time, in ns */
	u16 owed_to;			/* LEFT is owed to this node; KDSM_NOBODY: to none */
	u64 owed, owed_life;		/* for this request of this life */
	u64 dismissal, dismissed;	/* numbers of the last DISMISS, and of the last answered */
};

/* Of the user of the protocol, for tasks: the parent that a reader asks; the home, if era is 0 */
unsigned int kdsm_pass_parent(struct kdsm_pass *pass);
void kdsm_pass_init(struct kdsm_pass *pass);
/* Ask to read. No effect unless NONE. */
void kdsm_pass_want(struct kdsm_pass *pass);
/* LAST: no thread reads any more. READING: leave, if it is of no use. */
void kdsm_pass_leave(struct kdsm_pass *pass);
/* LAST: whether threads that wait now may read. Only the first call returns true. */
bool kdsm_pass_is_once(struct kdsm_pass *pass);
/* The parent, if it is this node, is dead, or this node gave it up. */
void kdsm_pass_strike(struct kdsm_pass *pass, unsigned int node);
/* The home, or the parent, gave this node up. Returns true if it was inside. */
bool kdsm_pass_out(struct kdsm_pass *pass);
/* As kdsm_pass_out(), without a call of kdsm_part_changed() */
bool kdsm_pass_reset(struct kdsm_pass *pass);
/* See part.h */
u64 kdsm_pass_advance(struct kdsm_pass *pass);
int kdsm_pass_serve_admit(struct kdsm_pass *pass, struct kdsm_request *request);
int kdsm_pass_serve_revoke(struct kdsm_pass *pass, struct kdsm_request *request);
int kdsm_pass_serve_dismiss(struct kdsm_pass *pass, struct kdsm_request *request);

/* ---- a reader home ---- */

/* At each node that others ask for the right to read */
struct kdsm_reader_home {
	/* part and life are set by the caller of kdsm_reader_home_init() */
	struct kdsm_pass pass;

	spinlock_t lock;		/* guards the fields below; taken before pass.lock */
	struct kdsm_gate gate;
	u64 again;			/* repeat messages at this time, in ns; 0: none */
};

/* Returns 0 or -ENOMEM. */
int kdsm_reader_home_init(struct kdsm_reader_home *reader);
void kdsm_reader_home_exit(struct kdsm_reader_home *reader);
/* The node was given up by this one, in two steps: kdsm_home_doom() */
void kdsm_reader_home_doom(struct kdsm_reader_home *reader, unsigned int node);
void kdsm_reader_home_strike(struct kdsm_reader_home *reader, unsigned int node);
/* The home gave this node up, so that its readers lost the lock, too. Before kdsm_pass_out() */
void kdsm_reader_home_out(struct kdsm_reader_home *reader);
u64 kdsm_reader_home_advance(struct kdsm_reader_home *reader);
int kdsm_reader_home_serve_enter(struct kdsm_reader_home *reader, struct kdsm_request *request);
int kdsm_reader_home_serve_left(struct kdsm_reader_home *reader, struct kdsm_request *request);

/* Interval in which a waiting child asks its parent again, in ns */
#define KDSM_PASS_POLL		(1 * NSEC_PER_SEC)
/* Pause before a repeated message, in ns */
#define KDSM_PASS_RETRY		(5 * 1000 * NSEC_PER_USEC)

#endif /* KDSM_LOCK_GATE_H */
