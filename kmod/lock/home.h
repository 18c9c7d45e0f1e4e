/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The home's part in a lock: the queue, and where the lock is. home.c has the events of writers,
 * admit.c those of readers, errand.c the home's messages, survey.c how it finds the lock again
 * after a node died. All run in the simulator (tests/sim/lock) unmodified.
 */
#ifndef KDSM_LOCK_HOME_H
#define KDSM_LOCK_HOME_H

#include "gate.h"
#include "order.h"
#include "turn.h"

enum kdsm_home_state {
	KDSM_HOME_OPEN,		/* the word says where the lock is */
	KDSM_HOME_CLOSING,	/* the home swaps the word to QUEUED */
	KDSM_HOME_OWN,		/* the lock is here */
	KDSM_HOME_OPENING,	/* the lock is here; the home swaps the word to FREE */
	KDSM_HOME_GRANTING,	/* the node of turn first has not answered HAND */
	KDSM_HOME_TAKEN,	/* a node has it, with a turn from first to last */
	KDSM_HOME_KEPT,		/* the node of turn last keeps it, and nobody waits */
	KDSM_HOME_READING,	/* readers have it */
	KDSM_HOME_REVOKING,	/* readers have it, and are to leave */
	KDSM_HOME_SURVEY,	/* a node died that may have it */
};

enum kdsm_entry_state {
	KDSM_ENTRY_OUT,
	KDSM_ENTRY_QUEUED,	/* waits in the order */
	KDSM_ENTRY_LISTED,	/* has a turn that is not known to be over */
};

struct kdsm_entry {
	u64 life;		/* the latest that the home knows of */
	u64 doomed;		/* lives up to this one are over: kdsm_home_doom() */
	bool known;		/* that life has asked, and is not known to be over */
	u64 serial;		/* of its last request */
	u64 turn;		/* LISTED */
	u16 threads;
	u8 state;		/* enum kdsm_entry_state */
};

/* Turns whose nodes the home remembers: two lists, and the holder */
#define KDSM_TURNS		256U

/* Sum of the answers to a survey */
struct kdsm_finding {
	u64 turn;		/* the highest that the lock has reached */
	u16 node;		/* HERE: that has it. HOME: to which it went; or KDSM_NOBODY */
	u16 flags, from;
	u8 state;		/* HERE: of the node, enum kdsm_turn_state */
	enum { KDSM_FOUND_NOWHERE, KDSM_FOUND_HOME, KDSM_FOUND_HERE } where;
};

/* From kmalloc(), because the device accesses op. */
struct kdsm_lock_home {
	/* Set by the caller of kdsm_home_init() */
	struct kdsm_part part;
	struct kdsm_memory *memory;
	u64 word;

	struct kdsm_operation op;	/* of the task that runs kdsm_home_advance() */
	u64 found;			/* of that task: the last name that it found in the word */
	struct kdsm_thresholds thresholds;	/* may change at any time */

	spinlock_t lock;		/* guards the fields below */
	enum kdsm_home_state state;
	u32 epoch;
	u16 flags, from;		/* OWN to GRANTING: of the lock; node with the signature */
	u64 first, last;		/* turns that may not be over */
	u16 holders[KDSM_TURNS];	/* by turn, modulo: its node */
	u16 quotas[KDSM_TURNS];
	u64 listed;			/* number of nodes in the last list */
	u64 sole;			/* the word that names the holder of turn first; or 0 */
	u64 kept;			/* turn, or word, whose LEAVE was answered by KEEP; or 0 */
	u64 push;			/* EXTEND is due to the node of this turn; 0: to none */
	u32 row;			/* threads that wrote in a row while readers waited */
	struct kdsm_order order;	/* QUEUED nodes */
	struct kdsm_entry *entries;	/* by node */
	struct kdsm_gate gate;		/* whose children are the reader homes */
	/*
	 * Counts openings of the gate, and reader homes that died. Only admissions of the present
	 * era are good, also those that reader homes give.
	 */
	u64 era;
	u64 again;			/* repeat messages of the gate at this time, in ns */
	u64 switches;			/* times that readers were let in */

	/* Deaths */
	unsigned long *unheard;		/* SURVEY: nodes that have not answered yet */
	struct kdsm_finding finding;	/* SURVEY: the answers so far */
	u64 dismissal;			/* number of the last DISMISS; 0: none */
	unsigned long *dismissed;	/* dead reader homes whose readers have to leave */
	unsigned long *undismissed;	/* nodes that have not answered the last DISMISS */
};

/*
 * Of the user of the protocol, for tasks: the word is about to become free. Take the signature from
 * the slot of the node over into that of the home. Returns as kdsm_turn_leaving().
 */
int kdsm_home_opening(struct kdsm_lock_home *home, unsigned int node);
/*
 * The word is 0, and the state OPENING, so that kdsm_home_advance() sets the word free. levels: of
 * the lock. Returns 0 or -ENOMEM.
 */
int kdsm_home_init(struct kdsm_lock_home *home, const struct kdsm_ranks *ranks,
		   unsigned int levels);
void kdsm_home_exit(struct kdsm_lock_home *home);
/*
 * A node is given up in two steps, because it may come back with a new life at any time after it
 * was told. First, all lives that it has had are doomed. Then, when nothing that such a life sent
 * can arrive any more, they are struck off. Any context.
 */
void kdsm_home_doom(struct kdsm_lock_home *home, unsigned int node);
void kdsm_home_strike(struct kdsm_lock_home *home, unsigned int node);
/* See part.h */
u64 kdsm_home_advance(struct kdsm_lock_home *home);

/* Handlers */
int kdsm_home_serve_enqueue(struct kdsm_lock_home *home, struct kdsm_request *request);
int kdsm_home_serve_leave(struct kdsm_lock_home *home, struct kdsm_request *request);
int kdsm_home_serve_enter(struct kdsm_lock_home *home, struct kdsm_request *request);
int kdsm_home_serve_left(struct kdsm_lock_home *home, struct kdsm_request *request);

/* ---- shared by home.c, errand.c and survey.c; with the spinlock ---- */

/* The lock is here: choose the node that gets it, or readers. */
void kdsm_home_next(struct kdsm_lock_home *home);
/* The lock is here now, from a node that has left it. */
void kdsm_home_own(struct kdsm_lock_home *home, unsigned int flags, unsigned int from);
/* Give turns to the next nodes, and append them to those that have one. */
void kdsm_home_list(struct kdsm_lock_home *home);
/* Tell the holder, or the last node of the list, of the nodes that wait; if it is time. */
void kdsm_home_extend(struct kdsm_lock_home *home);
/* The nodes with turns after this one, as a list */
void kdsm_home_after(const struct kdsm_lock_home *home, u64 turn, struct kdsm_list *list);
/* The nodes that were to follow the first turn wait again. */
void kdsm_home_recall(struct kdsm_lock_home *home);
/* Turns up to this one are over. */
void kdsm_home_over(struct kdsm_lock_home *home, u64 turn);
/* The node has this turn, and no later one is given out. */
void kdsm_home_put(struct kdsm_lock_home *home, unsigned int node, u64 turn);
/* The node, in that life, has proved that it takes part. */
void kdsm_home_meet(struct kdsm_entry *entry, u64 life);
void kdsm_home_name(const struct kdsm_lock_home *home, struct kdsm_wire_turn *wire);

static inline unsigned int kdsm_home_holder(const struct kdsm_lock_home *home, u64 turn)
{
	return home->holders[turn % KDSM_TURNS];
}

/* A writer or a reader home began to wait. */
void kdsm_home_came(struct kdsm_lock_home *home);
/* READING: have all readers leave. */
void kdsm_home_revoke(struct kdsm_lock_home *home);
/* The gate may be shut now: go on if it is. */
void kdsm_home_shut(struct kdsm_lock_home *home);
/* As name() in struct kdsm_gate */
void kdsm_home_name_pass(const struct kdsm_gate *gate, struct kdsm_wire_pass *wire);

/* survey.c */
/* Lives of the node below this one are over. */
void kdsm_home_bury(struct kdsm_lock_home *home, unsigned int node, u64 life);
/* SURVEY: ask one node that has not answered. Drops the spinlock meanwhile. */
u64 kdsm_home_ask(struct kdsm_lock_home *home);

#endif /* KDSM_LOCK_HOME_H */
