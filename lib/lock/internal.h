/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting lines: queues of threads on all nodes, the base of condition variables and
 * semaphores. wait_queue.c describes the protocol. <kdsm/lock.h> calls a line a wait queue.
 * Locks (lock.c) do not use lines.
 */
#ifndef KDSM_LINE_H
#define KDSM_LINE_H

#include <stddef.h>
#include <kdsm/lock.h>
#include "core/core.h"

struct kdsm_line {
	struct kdsm_region *region;
	uint64_t offset;
	uint32_t home;
	bool keeps;		/* a post that finds no waiter stays for the next waiter */
};

/*
 * State of a line: the number of the next ticket, and the value. A value below 0 means that
 * -value waiters still lack a post.
 */
struct kdsm_line_head {
	uint32_t ticket;
	int32_t value;
};

/*
 * All functions return 0 or a negative errno. Errors of operations on the region are not
 * listed. -EPROTO: the head is no initialized head.
 */

/* Check the place, and set the head to the value if the head is still zero. */
int kdsm_line_init(const struct kdsm_line *line, uint32_t value) KDSM_PRIVATE;
/* Store the state in *head. */
int kdsm_line_read(const struct kdsm_line *line, struct kdsm_line_head *head) KDSM_PRIVATE;

/* Draw a ticket, before->ticket. *before is the state of the line before the draw. */
int kdsm_line_draw(const struct kdsm_line *line, struct kdsm_line_head *before) KDSM_PRIVATE;
/* Lower the value by one if the value is above 0. Returns 0, or -EAGAIN if it is not. */
int kdsm_line_try(const struct kdsm_line *line) KDSM_PRIVATE;

/* A thread that waits with a ticket */
struct kdsm_line_wait {
	const struct kdsm_line *line;
	uint32_t ticket;
	uint64_t begin, timeout;
	bool interruptible;
	bool posted;		/* the wait is over: the post has arrived */
	bool late;		/* at an earlier look the ticket was posted, but not the entry */
	uint64_t suspect;	/* entry that seemed abandoned at the last look, or 0 */
};

/*
 * Enter the ticket of *before into the ring as WAITING. Returns 0, or after an error:
 * - -EAGAIN: too many threads wait, and this function gave the ticket back.
 * - -ETIMEDOUT: the same, and the timeout is over.
 * - -ESTALE: draw another ticket. Either the caller was so slow that another thread passed
 *   its post on to another ticket; or the line is full of tickets whose waiters gave up, and
 *   this function has paused shortly.
 */
int kdsm_line_join(struct kdsm_line_wait *wait,
		   const struct kdsm_line_head *before) KDSM_PRIVATE;
/*
 * Wait for the post, after kdsm_line_join(). Returns 0; -ETIMEDOUT or -EINTR if the waiter
 * gave up, and no post belongs to it; or -ESTALE if the waiter was so slow that another
 * thread passed its post on to another ticket.
 */
int kdsm_line_sleep(struct kdsm_line_wait *wait) KDSM_PRIVATE;
/*
 * Leave the line instead of waiting, after kdsm_line_join(). If the post has arrived
 * meanwhile, this function passes it on to the next waiter.
 */
int kdsm_line_leave(struct kdsm_line_wait *wait) KDSM_PRIVATE;

/*
 * Post once (-EOVERFLOW: the value is KDSM_SEM_MAX); or post to all waiters of a line that
 * keeps no posts.
 */
int kdsm_line_post(const struct kdsm_line *line) KDSM_PRIVATE;
int kdsm_line_post_all(const struct kdsm_line *line) KDSM_PRIVATE;

/* ---- the words of a part; head and ring of the home's part are in use only ---- */

/* Notes of tickets whose entries were reused; see wait_queue.c */
#define KDSM_LINE_NOTES	6

struct kdsm_line_area {
	_Alignas(64) uint64_t head;
	uint64_t last_tag;	/* of ENTRY_BACK */
	uint64_t notes[KDSM_LINE_NOTES];

	_Alignas(64) uint64_t ring[KDSM_LINE_MOST];
	uint64_t bells[KDSM_LINE_MOST];
};

_Static_assert(sizeof(struct kdsm_line_area) == KDSM_LINE_SIZE, "the area has its size");
_Static_assert((KDSM_LINE_MOST & (KDSM_LINE_MOST - 1)) == 0, "tickets wrap with the ring");

#define LINE_PLACE(line, field)	((line)->offset + offsetof(struct kdsm_line_area, field))
#define LINE_SLOT(line, array, ticket) \
	(LINE_PLACE(line, array) + (ticket) % KDSM_LINE_MOST * sizeof(uint64_t))
#define LINE_NOTE(line, ticket) \
	(LINE_PLACE(line, notes) + (ticket) % KDSM_LINE_NOTES * sizeof(uint64_t))

/* Number of posts so far, modulo 2^32: the tickets below it may pass. */
static inline uint32_t posts(const struct kdsm_line_head *head)
{
	return head->ticket + head->value;
}

static inline bool is_posted(const struct kdsm_line_head *head, uint32_t ticket)
{
	return (int32_t)(posts(head) - ticket) > 0;
}

/*
 * Change the head, or the entry of a ticket, by compare-and-swap. Returns 0 if the word had
 * the expected value and now has the desired one; -EBUSY if the word had another value, which
 * kdsm_entry_change() stores in *expected.
 */
int kdsm_head_change(const struct kdsm_line *line, const struct kdsm_line_head *from,
		     uint32_t ticket, int32_t value) KDSM_PRIVATE;
int kdsm_entry_change(const struct kdsm_line *line, uint32_t ticket, uint64_t *expected,
		      uint64_t desired) KDSM_PRIVATE;
int kdsm_entry_read(const struct kdsm_line *line, uint32_t ticket,
		    uint64_t *entry) KDSM_PRIVATE;
/* As kdsm_entry_change(), for a final entry that a later ticket takes */
int kdsm_entry_reuse(const struct kdsm_line *line, uint32_t ticket, uint64_t *expected,
		     uint64_t desired) KDSM_PRIVATE;
/* Read the note of a ticket whose entry belongs to a later one, or 0 */
int kdsm_note_read(const struct kdsm_line *line, uint32_t ticket, uint64_t *note) KDSM_PRIVATE;
/* Ask the poster of such a ticket to post again, and withdraw that: -EBUSY if it is too late */
int kdsm_note_give_up(const struct kdsm_line *line, uint32_t ticket) KDSM_PRIVATE;
int kdsm_note_withdraw(const struct kdsm_line *line, uint32_t ticket) KDSM_PRIVATE;
/* Set *tag to a number that no other call gives within 2^28 calls */
int kdsm_line_tag(const struct kdsm_line *line, uint32_t *tag) KDSM_PRIVATE;

/* States of an entry: wait_queue.c has the transitions. */
enum {
	ENTRY_WAITING = 1,	/* the waiter sleeps, or is about to */
	ENTRY_POSTED,		/* the post has been delivered */
	ENTRY_GONE,		/* the waiter gave up */
	ENTRY_DONE,		/* no thread uses the entry any more */
	ENTRY_BACK,		/* a thread is giving the ticket back; a tag replaces the node */
	ENTRY_DOUBT,		/* that thread is dead; the post may still come, or be consumed */
	ENTRY_MOVED,		/* the post went on to another ticket */
};

static inline uint64_t make_entry(uint32_t ticket, unsigned int state, uint32_t node)
{
	return (uint64_t)ticket << 32 | (uint64_t)state << 16 | node;
}

/* The tag fills the bits of the node and those above the state. */
static inline uint64_t make_back(uint32_t ticket, uint32_t tag)
{
	return make_entry(ticket, ENTRY_BACK, tag & 0xffff) | (uint64_t)(tag >> 16 & 0xfff) << 20;
}

static inline uint32_t entry_ticket(uint64_t entry)
{
	return entry >> 32;
}

static inline unsigned int entry_state(uint64_t entry)
{
	return entry >> 16 & 0xf;
}

static inline uint32_t entry_node(uint64_t entry)
{
	return entry & 0xffff;
}

static inline bool is_of(uint64_t entry, uint32_t ticket, unsigned int state)
{
	return entry_ticket(entry) == ticket && entry_state(entry) == state;
}

static inline bool is_given_up(uint64_t entry)
{
	return entry_state(entry) == ENTRY_GONE || entry_state(entry) == ENTRY_BACK;
}

/* No thread uses the entry any more, so the ticket one ring later may take it. */
static inline bool is_final(uint64_t entry)
{
	return entry_state(entry) != ENTRY_WAITING && entry_state(entry) != ENTRY_POSTED &&
	       !is_given_up(entry);
}

#endif /* KDSM_LINE_H */
