/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waiting lines, of which condition variables and semaphores are made; see line.c. */
#ifndef KDSM_LINE_H
#define KDSM_LINE_H

#include <stddef.h>
#include <kdsm/lock.h>
#include "core/core.h"

struct kdsm_line {
	struct kdsm_region *region;
	uint64_t offset;
	uint32_t home;
	bool keeps;		/* a post that finds nobody waiting is for who comes next */
};

/* How a line is: the number of the next ticket, and what is left or, below 0, missing. */
struct kdsm_line_head {
	uint32_t ticket;
	int32_t value;
};

/* Check the place, and give it the value if it has none. */
int kdsm_line_init(const struct kdsm_line *line, uint32_t value) KDSM_PRIVATE;
int kdsm_line_read(const struct kdsm_line *line, struct kdsm_line_head *head) KDSM_PRIVATE;

/* Draw a ticket. *before: how it was; its ticket is the caller's. */
int kdsm_line_draw(const struct kdsm_line *line, struct kdsm_line_head *before) KDSM_PRIVATE;
/* Take one of the value, if there is one: 0, or -EAGAIN. */
int kdsm_line_try(const struct kdsm_line *line) KDSM_PRIVATE;

/* One who waits with a ticket. */
struct kdsm_line_wait {
	const struct kdsm_line *line;
	uint32_t ticket;
	uint64_t begin, timeout;
	bool interruptible;
	bool posted;		/* nothing more to wait for */
	bool late;		/* line.c: a post for it was seen, and nobody to tell of it */
	uint64_t suspect;	/* line.c: an entry that was seen to be left behind, or 0 */
};

/*
 * Be known as the one who waits with the ticket, of which *before tells. -EAGAIN: too
 * many wait; -ETIMEDOUT: the same, for all of the timeout. The ticket is given back then.
 * -ESTALE: it took so long to come that its post went to somebody else; or the line is
 * full of those who gave up, after a moment. Draw another one.
 */
int kdsm_line_join(struct kdsm_line_wait *wait,
		   const struct kdsm_line_head *before) KDSM_PRIVATE;
/*
 * After that: wait for the post. 0; -ETIMEDOUT, -EINTR: gave up, no post is for it;
 * -ESTALE: it took so long to wake that its post went to somebody else.
 */
int kdsm_line_sleep(struct kdsm_line_wait *wait) KDSM_PRIVATE;
/* Instead of waiting; a post that came meanwhile goes to the next one. */
int kdsm_line_leave(struct kdsm_line_wait *wait) KDSM_PRIVATE;

/* Let one pass; or all who wait, of a line that keeps nothing. */
int kdsm_line_post(const struct kdsm_line *line) KDSM_PRIVATE;
int kdsm_line_post_all(const struct kdsm_line *line) KDSM_PRIVATE;

/* ---- for line_wait.c: the words of a part; head and ring are those of the home ---- */

struct kdsm_line_area {
	_Alignas(64) uint64_t head;

	_Alignas(64) uint64_t ring[KDSM_LINE_MOST];
	uint64_t bells[KDSM_LINE_MOST];
};

_Static_assert(sizeof(struct kdsm_line_area) == KDSM_LINE_SIZE, "the area has its size");
_Static_assert((KDSM_LINE_MOST & (KDSM_LINE_MOST - 1)) == 0, "tickets wrap with the ring");

#define LINE_PLACE(line, field)	((line)->offset + offsetof(struct kdsm_line_area, field))
#define LINE_SLOT(line, array, ticket) \
	(LINE_PLACE(line, array) + (ticket) % KDSM_LINE_MOST * sizeof(uint64_t))

static inline uint32_t posts(const struct kdsm_line_head *head)
{
	return head->ticket + head->value;
}

static inline bool is_posted(const struct kdsm_line_head *head, uint32_t ticket)
{
	return (int32_t)(posts(head) - ticket) > 0;
}

/*
 * Change a word at home: 0, it was expected and is desired now; -EBUSY: it was not, and
 * *expected is what it is.
 */
int kdsm_head_change(const struct kdsm_line *line, const struct kdsm_line_head *from,
		     uint32_t ticket, int32_t value) KDSM_PRIVATE;
int kdsm_entry_change(const struct kdsm_line *line, uint32_t ticket, uint64_t *expected,
		      uint64_t desired) KDSM_PRIVATE;
int kdsm_entry_read(const struct kdsm_line *line, uint32_t ticket,
		    uint64_t *entry) KDSM_PRIVATE;

enum {
	ENTRY_WAITING = 1,
	ENTRY_POSTED,
	ENTRY_GONE,
	ENTRY_DONE,
	ENTRY_BACK,
};

static inline uint64_t make_entry(uint32_t ticket, unsigned int state, uint32_t node)
{
	return (uint64_t)ticket << 32 | (uint64_t)state << 16 | node;
}

static inline uint32_t entry_ticket(uint64_t entry)
{
	return entry >> 32;
}

static inline unsigned int entry_state(uint64_t entry)
{
	return entry >> 16 & 0xffff;
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

/* Nobody has to do with it any more, so the next ticket may have it. */
static inline bool is_final(uint64_t entry)
{
	return entry_state(entry) != ENTRY_WAITING && entry_state(entry) != ENTRY_POSTED &&
	       !is_given_up(entry);
}

#endif /* KDSM_LINE_H */
