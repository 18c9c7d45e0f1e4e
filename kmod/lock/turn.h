/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node's part in a lock: whether the lock is at this node, and how it comes and goes.
 * turn.c has the events, network.c the operations and messages. Both know nothing of threads,
 * files or regions, and run in the simulator (tests/sim/lock) unmodified. The home's part is
 * home.h; Documentation/design/locks.md has the table of states and messages.
 */
#ifndef KDSM_LOCK_TURN_H
#define KDSM_LOCK_TURN_H

#include <linux/bitfield.h>
#include <linux/bits.h>

#include "part.h"

/* ---- the word at the home ---- */

/* Also that of a word that the home has not used yet: nobody takes the lock without the home */
#define KDSM_WORD_QUEUED	0ULL
#define KDSM_WORD_FREE		BIT_ULL(63)
#define KDSM_WORD_HELD		BIT_ULL(62)
#define KDSM_WORD_STATE		GENMASK_ULL(63, 62)
/* QUEUED: the home found a node's name before */
#define KDSM_WORD_NAMED		1ULL
/* HELD: the node, and low bits of its life and of the serial of its request */
#define KDSM_WORD_NODE		GENMASK_ULL(61, 52)
#define KDSM_WORD_LIFE		GENMASK_ULL(51, 32)
#define KDSM_WORD_SERIAL	GENMASK_ULL(31, 0)

static inline u64 kdsm_word_held(unsigned int node, u64 life, u64 serial)
{
	return KDSM_WORD_HELD | FIELD_PREP(KDSM_WORD_NODE, node) |
	       FIELD_PREP(KDSM_WORD_LIFE, life & FIELD_MAX(KDSM_WORD_LIFE)) |
	       FIELD_PREP(KDSM_WORD_SERIAL, serial & FIELD_MAX(KDSM_WORD_SERIAL));
}

/* ---- lists of nodes ---- */

struct kdsm_next {
	u16 node;
	u16 quota;	/* threads of the node that may have the lock in a row while others wait */
	u16 life;	/* low bits: HAND to a former life of the node is void */
};

/* The nodes with the turns first, first + 1 and so on */
struct kdsm_list {
	u64 first;
	unsigned int count;
	struct kdsm_next next[KDSM_WIRE_NEXT];
};

void kdsm_list_write(struct kdsm_wire_turn *wire, const struct kdsm_list *list);
/* Returns 0 or -EINVAL. */
int kdsm_list_read(const struct kdsm_wire_turn *wire, struct kdsm_list *list,
		   unsigned int nodes);

/* Whether a request or a reply of this length has a valid count */
bool kdsm_wire_turn_fits(const struct kdsm_wire_turn *wire, unsigned int length);

/* ---- a node ---- */

enum kdsm_turn_state {
	KDSM_TURN_NONE,
	KDSM_TURN_TAKING,	/* a swap of the word is in flight: FREE to HELD */
	KDSM_TURN_ASKING,	/* the home has not answered ENQUEUE */
	KDSM_TURN_WAITING,	/* the home's queue, or a list, has this node */
	KDSM_TURN_SOLE,		/* has the lock by the word; knows of no other node that waits */
	KDSM_TURN_KEPT,		/* has the lock by a turn; the home said that no node waits */
	KDSM_TURN_HELD,		/* has the lock by a turn; others may wait */
	KDSM_TURN_FREEING,	/* a swap of the word is in flight: HELD to FREE */
	KDSM_TURN_HANDING,	/* the next node has not answered HAND */
	KDSM_TURN_LEAVING,	/* the home has not answered LEAVE */
	KDSM_TURN_LOST,		/* the home has died, or came up again without the lock */
	KDSM_TURN_STATES
};

struct kdsm_turn_stats {
	u64 asked, free, freed, handed, left;	/* ENQUEUE; swaps of the word; HAND; LEAVE */
	u64 atomics;
};

/* From kmalloc(), because the device accesses op. */
struct kdsm_turn {
	/* Set by the caller of kdsm_turn_init() */
	struct kdsm_part part;
	struct kdsm_memory *memory;	/* of the words */
	u64 word;			/* offset of the word in the memory */
	u64 life;			/* higher than in all earlier lives of this node */

	struct kdsm_operation op;	/* of the task that runs kdsm_turn_advance() */

	spinlock_t lock;		/* guards the fields below */
	enum kdsm_turn_state state;
	bool contended;			/* ask the home: the word is probably QUEUED */
	unsigned int missed;		/* messages in a row that the receiver did not answer */
	u16 threads;			/* that wait, as ENQUEUE says */
	u64 serial;			/* of the present request, or of the last one */
	u64 turn;			/* the last one that this node had or has */
	u32 epoch;			/* 0: the home has not told it in this life */
	u16 flags;			/* SOLE to LEAVING: KDSM_TURN_DEAD, KDSM_TURN_SPOILT */
	u16 from;			/* node whose slot has the signature; or KDSM_NOBODY */
	bool back;			/* the lock never left this node: no signature is needed */
	bool keep;			/* LEAVING: this node keeps the lock if no node waits */
	bool named;			/* SOLE to LEAVING: by the word, without a turn */
	bool ready;			/* HANDING, LEAVING: kdsm_turn_leaving() has succeeded */
	u32 leaves;			/* times that the lock began to leave this node */
	u16 quota, used;		/* HELD: threads that may have the lock, and that had it */
	struct kdsm_list list;		/* after a turn that this node has, or will have */
	u64 poll;			/* WAITING: ask the home again at this time, in ns */
	struct kdsm_wire_turn report;	/* answer to the SURVEY of report.epoch */
	u64 gave;			/* turn, when this node gave the lock back to a survey */
	struct kdsm_turn_stats stats;
};

/* Interval in which a waiting node asks the home whether it still waits, in ns */
#define KDSM_TURN_POLL		(1 * NSEC_PER_SEC)
/* Pause before a repeated message or operation, in ns */
#define KDSM_TURN_RETRY		(2 * 1000 * NSEC_PER_USEC)
/* Pause before a message that the receiver was not ready for, in ns */
#define KDSM_TURN_AGAIN		(50 * NSEC_PER_USEC)

static inline u64 kdsm_turn_pause(int err)
{
	return err == -EAGAIN ? KDSM_TURN_AGAIN : KDSM_TURN_RETRY;
}

/* ---- functions of the user of the protocol; for tasks ---- */

/*
 * The lock is about to leave this node, to the next one or (free) to nobody: leave the signature
 * where the next holder finds it. Returns 0; -EOWNERDEAD: the writes of this node may be lost, so
 * the next holder gets KDSM_TURN_DEAD; another error: try again later.
 */
int kdsm_turn_leaving(struct kdsm_turn *turn, bool free);
/* The node has the lock from this one. */
void kdsm_turn_handed(struct kdsm_turn *turn, unsigned int node);

void kdsm_turn_init(struct kdsm_turn *turn);

/* ---- for the threads of the node; any context ---- */

/*
 * Ask for the lock, for this number of threads. 0: only try; the node does not queue, unless the
 * answer to its swap of the word is lost. No effect on the state unless NONE.
 */
void kdsm_turn_want(struct kdsm_turn *turn, unsigned int threads);
/* No thread of this node waits any more: withdraw the request, if the lock is not on its way. */
void kdsm_turn_drop(struct kdsm_turn *turn);
/* Whether the lock is here, and threads of this node may have it */
bool kdsm_turn_is_here(const struct kdsm_turn *turn);
/* Whether the lock is here, and no other node waits as far as is known */
bool kdsm_turn_is_alone(const struct kdsm_turn *turn);
/* The lock is here: may another thread of this node have it next? Counts that thread if so. */
bool kdsm_turn_may_pass(struct kdsm_turn *turn);
/*
 * The lock is here and no thread has it. keep: stay if no other node waits. flags: of the lock
 * from now on. Returns true if the lock will leave, which kdsm_turn_advance() does.
 */
bool kdsm_turn_done(struct kdsm_turn *turn, unsigned int flags, bool keep);
/*
 * The home gave this node up. Returns true if the node had the lock, and has lost it. Called
 * before a message of the home can reach this node again.
 */
bool kdsm_turn_out(struct kdsm_turn *turn);

/* ---- for tasks (network.c) ---- */

/* See part.h */
u64 kdsm_turn_advance(struct kdsm_turn *turn);

/*
 * Swap the word at the home. Caller has initialised batch, and node, offset, compare and operand of
 * op. Returns 0 and the former value, or an error. Sleeps.
 */
int kdsm_word_swap(struct kdsm_batch *batch, struct kdsm_operation *op, u64 *found);

/* ---- handlers ---- */

int kdsm_turn_serve_hand(struct kdsm_turn *turn, struct kdsm_request *request);
int kdsm_turn_serve_extend(struct kdsm_turn *turn, struct kdsm_request *request);
int kdsm_turn_serve_survey(struct kdsm_turn *turn, struct kdsm_request *request);

/* ---- shared by turn.c and network.c ---- */

void kdsm_turn_name(const struct kdsm_turn *turn, struct kdsm_wire_turn *wire);
void kdsm_turn_enter(struct kdsm_turn *turn, enum kdsm_turn_state state);
/* The home answered LEAVE with its list: it follows the turn that this node has. */
void kdsm_turn_take_list(struct kdsm_turn *turn, const struct kdsm_list *list);

#endif /* KDSM_LOCK_TURN_H */
