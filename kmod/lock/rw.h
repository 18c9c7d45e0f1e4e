/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers and writers of a lock: the counters of nodes that read, and how a writer
 * closes and opens them. It knows the fabric's operations and messages and nothing of
 * threads, files or regions, nor of how writers queue, and runs in the simulator
 * (tests/sim/rw) unmodified.
 */
#ifndef KDSM_LOCK_RW_H
#define KDSM_LOCK_RW_H

#include <linux/bitmap.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/kdsm.h>

#include "fabric/fabric.h"

/* Operations of a writer that are posted at once. */
#define KDSM_RW_WINDOW		32U

/* A counter has a cache line of its own. */
#define KDSM_RW_SIZE		64U

enum kdsm_rw_state {
	KDSM_RW_NONE = 0,	/* this node is no reader */
	KDSM_RW_ENTERING,	/* its atomic is under way */
	KDSM_RW_ASKING,		/* it is counted, and has to ask whether it may read */
	KDSM_RW_WAITING,	/* its counter's home knows, and will let it in */
	KDSM_RW_IN,
	KDSM_RW_LEAVING,	/* its atomic is under way */
	KDSM_RW_DOUBT,		/* whether it is counted is not known: the answer was lost */
};

struct kdsm_rw;

struct kdsm_rw_ops {
	/* Of a reader, to NONE or IN; of a writer, see kdsm_rw_close(). In any context. */
	void (*granted)(struct kdsm_rw *rw);
	void (*told)(struct kdsm_rw *rw);
	/* kdsm_rw_home_work() is to be called. In tasks. */
	void (*home)(struct kdsm_rw *rw);
	/* Say KDSM_MESSAGE_RW_JOIN to a node. What kdsm_message() gives. */
	int (*join)(struct kdsm_rw *rw, unsigned int node);
};

struct kdsm_rw_stats {
	u64 atomics, messages;
	u64 switches;		/* from readers to writers and back */
	u64 row;		/* the most readers let in while a writer waited */
};

/* What a counter's home knows of a node that has ever used it. */
struct kdsm_rw_user {
	u32 turn;		/* the last time that it asked */
	u32 opened;		/* the last time that it opened the counter */
	u8 answer;		/* enum kdsm_rw_answer, to the last question */
	u64 found;		/* of KDSM_RW_FOUND; with that */
	bool joined;
};

/* At the home of a counter. */
struct kdsm_rw_home {
	struct mutex mutex;	/* guards all of it; held over the network */
	struct kdsm_rw_user *users;	/* of each node */
	bool wrong;		/* the number of readers may be */
	DECLARE_BITMAP(registered, KDSM_MAX_NODES);	/* those that wait */
	DECLARE_BITMAP(going, KDSM_MAX_NODES);	/* were let in, and have to be told */
	struct kdsm_operation op;
};

/*
 * One node's part; from kmalloc(). What is called by tasks is called by one at a time
 * of those that read (enter, poll, leave) and by one of those that write (close, open).
 */
struct kdsm_rw {
	struct kdsm_fabric *fabric;
	struct kdsm_memory *memory;	/* of the counters; atomics by one authority */
	const struct kdsm_rw_ops *ops;
	void *owner;			/* for ops */
	u32 region, number;
	unsigned int node, nodes;
	u64 word;			/* where the counter is, on each node */
	u32 first;			/* T_DC of the lock when it was made */
	u32 t_dc, t_r;			/* can be set at any time */
	u64 status;			/* of KDSM_RW_STATUS; what to open with */

	spinlock_t lock;		/* guards what follows, up to stats */
	u8 state;			/* enum kdsm_rw_state */
	u8 asks;			/* ASKING: enum kdsm_rw_question */
	u8 answer;			/* enum kdsm_rw_answer, the last */
	u64 found;			/* IN: of KDSM_RW_FOUND */
	bool told;			/* of a writer */
	u32 at;				/* the node whose counter is used */
	u32 turn;
	u32 counts;			/* times that this node was counted */
	DECLARE_BITMAP(joined, KDSM_MAX_NODES);

	u32 view;			/* T_DC as it was seen last */

	/* Of the task that writes. */
	bool closing;			/* counters may be closed by this node */
	bool opening, tried;
	u32 opens;			/* times that counters were opened from here */
	u32 span;			/* T_DC that holds; 0: not known */
	u32 wish;			/* that is to hold; 0: not decided */
	DECLARE_BITMAP(done, KDSM_MAX_NODES);	/* drained, or open */
	DECLARE_BITMAP(known, KDSM_MAX_NODES);	/* their words are as in words */
	u64 *words;			/* of each node */
	struct kdsm_operation *window;	/* KDSM_RW_WINDOW */

	struct kdsm_operation op;	/* of the task that reads */
	struct kdsm_rw_home home;
	struct kdsm_rw_stats stats;
};

/* All but the first block of fields is filled in. -ENOMEM. */
int kdsm_rw_init(struct kdsm_rw *rw);
void kdsm_rw_exit(struct kdsm_rw *rw);

/* ---- reading ---- */

/*
 * NONE: be a reader. 0: it is IN or WAITING; with try, -EBUSY: a writer has it or waits,
 * and it is NONE. Other errors: it is NONE, or ASKING or DOUBT.
 */
int kdsm_rw_enter(struct kdsm_rw *rw, bool try);
/* ASKING, WAITING or DOUBT: whatever was lost is said again. Errors as above. */
int kdsm_rw_poll(struct kdsm_rw *rw);
/* IN. 0: it is NONE. An error: it is IN, call this again; or DOUBT. */
int kdsm_rw_leave(struct kdsm_rw *rw);

static inline enum kdsm_rw_state kdsm_rw_state(const struct kdsm_rw *rw)
{
	return READ_ONCE(rw->state);
}

/* Say to the home of the counter that this node is to use it, before it does. */
int kdsm_rw_join(struct kdsm_rw *rw);

/* ---- writing: who has the queue of writers for itself ---- */

/*
 * Close the counters. 0: nobody reads, nor will anybody before they are opened. -EBUSY:
 * some read still: to be called again when told() was called, or in a while. Other
 * errors: to be called again.
 */
int kdsm_rw_close(struct kdsm_rw *rw);
/* Has told() been called since kdsm_rw_close() was last? */
bool kdsm_rw_is_told(struct kdsm_rw *rw);
/*
 * Open the counters that this node or another before it has closed or begun to close. If all
 * are closed, T_DC is then as it is set by now. An error: call this again.
 */
int kdsm_rw_open(struct kdsm_rw *rw, bool closed);
/* Another node has the queue now, and the counters closed. */
void kdsm_rw_pass(struct kdsm_rw *rw);

/* ---- at the homes of counters ---- */

/* Tell those that were let in. False: some were not reached; to be called again later. */
bool kdsm_rw_home_work(struct kdsm_rw *rw);

/* Handlers; those of join, ask and open sleep. */
int kdsm_rw_serve_join(struct kdsm_rw *rw, struct kdsm_request *request);
int kdsm_rw_serve_ask(struct kdsm_rw *rw, struct kdsm_request *request);
int kdsm_rw_serve_open(struct kdsm_rw *rw, struct kdsm_request *request);
int kdsm_rw_serve_tell(struct kdsm_rw *rw, struct kdsm_request *request);
int kdsm_rw_serve_go(struct kdsm_rw *rw, struct kdsm_request *request);
int kdsm_rw_serve_count(struct kdsm_rw *rw, struct kdsm_request *request);

/* ---- between its files ---- */

void kdsm_rw_name(const struct kdsm_rw *rw, struct kdsm_wire_rw *wire);
int kdsm_rw_send(struct kdsm_rw *rw, unsigned int node, enum kdsm_message_type type,
		 const struct kdsm_wire_rw *wire, struct kdsm_wire_rw *reply);
/* Tell the writer in the word that a counter is as it waits for. May be lost. */
void kdsm_rw_tell(struct kdsm_rw *rw, u64 word);
/* With the spinlock: a question was answered, or GO came. */
void kdsm_rw_heard(struct kdsm_rw *rw, const struct kdsm_wire_rw *wire);
/* A fetch-and-add on a node's counter, not posted yet. */
void kdsm_rw_faa(const struct kdsm_rw *rw, struct kdsm_operation *op, unsigned int node,
		 u64 operand);
/* Add n to a counter of rw->stats, which the readers and the writer of this node share. */
void kdsm_rw_spend(struct kdsm_rw *rw, u64 *counter, unsigned int n);
/* All of count; done when it returns. */
void kdsm_rw_post(struct kdsm_rw *rw, struct kdsm_operation *ops, unsigned int count);
int kdsm_rw_atomic(struct kdsm_rw *rw, struct kdsm_operation *op, unsigned int node,
		   u64 operand, u64 *old);

/*
 * The word of a counter: arrivals, 21 bits that wrap; LOST, DEAD: for programs; readers, 16;
 * span, 11; ASKED: nodes are registered at its home; WRITE, WANT: a writer is there, or
 * waits; its id, or that of who opened the counter last, 11.
 */
#define KDSM_RW_ID		0x7ffULL
#define KDSM_RW_WANT		(1ULL << 11)
#define KDSM_RW_WRITE		(1ULL << 12)
#define KDSM_RW_ASKED		(1ULL << 13)
#define KDSM_RW_SPAN		(1ULL << 14)
#define KDSM_RW_READER		(1ULL << 25)
#define KDSM_RW_DEAD		(1ULL << 41)
#define KDSM_RW_LOST		(1ULL << 42)
#define KDSM_RW_STATUS		(KDSM_RW_DEAD | KDSM_RW_LOST)
#define KDSM_RW_ARRIVAL		(1ULL << 43)
/* What readers want to know. */
#define KDSM_RW_FOUND		(KDSM_RW_STATUS | KDSM_RW_ID)

/* As span: the counter is not in use. 0: as it was when the lock was made. */
#define KDSM_RW_RETIRED		0x7ffU

static inline u32 kdsm_rw_span(u64 word)
{
	return word / KDSM_RW_SPAN & 0x7ff;
}

static inline u32 kdsm_rw_readers(u64 word)
{
	return word / KDSM_RW_READER & 0xffff;
}

static inline u32 kdsm_rw_arrivals(u64 word)
{
	return word / KDSM_RW_ARRIVAL;
}

/* On the wire. */
static inline __le32 kdsm_rw_found_write(u64 word)
{
	return cpu_to_le32((word & KDSM_RW_STATUS) / KDSM_RW_DEAD << 16 | (word & KDSM_RW_ID));
}

static inline u64 kdsm_rw_found_read(__le32 found)
{
	u32 value = le32_to_cpu(found);

	return ((value >> 16) * KDSM_RW_DEAD & KDSM_RW_STATUS) | (value & KDSM_RW_ID);
}

/* T_DC that a counter tells of; RETIRED. */
static inline u32 kdsm_rw_holds(const struct kdsm_rw *rw, u64 word)
{
	u32 span = kdsm_rw_span(word);

	return span ?: rw->first;
}

/* Do readers use that node's counter? */
static inline bool kdsm_rw_in_use(const struct kdsm_rw *rw, unsigned int node, u64 word)
{
	u32 span = kdsm_rw_holds(rw, word);

	return span <= rw->nodes && node % span == 0;
}

#endif /* KDSM_LOCK_RW_H */
