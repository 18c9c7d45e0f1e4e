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
	struct kdsm_line_memory *memory;
};

/*
 * All functions return 0 or a negative errno. Errors of operations on the region are not
 * listed. -EPROTO: the head is no initialized head.
 */

/* Check the place, and set the head to the value if the head is still zero. */
int kdsm_line_init(const struct kdsm_line *line, uint32_t value) KDSM_PRIVATE;
/* Store the value in *value: above 0, posts that wait for threads; below 0, threads that wait. */
int kdsm_line_value(const struct kdsm_line *line, int32_t *value) KDSM_PRIVATE;
/*
 * Take a post of a line that keeps posts if there is one and no thread waits for it. Otherwise
 * -EAGAIN, and *head is the head that this function has seen.
 */
int kdsm_line_take(const struct kdsm_line *line, uint64_t *head) KDSM_PRIVATE;
/*
 * Add posts, and wake the first waiter. KDSM_LINE_MOST posts to a line that keeps none let all
 * waiters pass. -EOVERFLOW: the line keeps posts, and the value is KDSM_SEM_MAX.
 */
int kdsm_line_post(const struct kdsm_line *line, uint32_t count) KDSM_PRIVATE;

/* A thread that waits */
struct kdsm_line_wait {
	const struct kdsm_line *line;
	uint64_t begin, timeout;
	bool interruptible;
	bool posted;		/* the wait is over: this thread has taken a post */
	uint64_t ticket;
	uint64_t head;		/* as this thread saw it last */
};

/*
 * Draw a ticket and enter the ring. The caller has set wait->head. Returns 0; -EAGAIN if
 * KDSM_LINE_MOST threads wait; or -ETIMEDOUT if they do and the timeout is over.
 */
int kdsm_line_join(struct kdsm_line_wait *wait) KDSM_PRIVATE;
/*
 * Wait for a post, after kdsm_line_join(). Returns 0; -ETIMEDOUT or -EINTR if the waiter gave
 * up without a post; or -ESTALE if the waiter was so slow that other threads took it for dead.
 */
int kdsm_line_sleep(struct kdsm_line_wait *wait) KDSM_PRIVATE;
/* Leave the line instead of waiting, after kdsm_line_join(). */
int kdsm_line_leave(struct kdsm_line_wait *wait) KDSM_PRIVATE;

/* ---- the words of a part; head, tail and ring of the home's part are in use only ---- */

#define LINE_MOST	KDSM_LINE_MOST

struct kdsm_line_area {
	_Alignas(64) uint64_t head;
	uint64_t tail;			/* number of tickets drawn */

	_Alignas(64) uint64_t ring[LINE_MOST];
	uint64_t bells[LINE_MOST];	/* on the waiter's own node; 1: it rings */
};

_Static_assert(sizeof(struct kdsm_line_area) == KDSM_LINE_SIZE, "the area has its size");

#define LINE_PLACE(line, field)	((line)->offset + offsetof(struct kdsm_line_area, field))
#define LINE_SLOT(line, array, slot)	(LINE_PLACE(line, array) + (slot) * sizeof(uint64_t))

/*
 * The head, from bit 0: the front, the mark of an initialized head, the value, and a number that
 * each thread raises that joins or leaves the ring. The front is 0, or slot and node of the
 * waiter that takes the next post.
 */
#define LINE_SLOT_SHIFT	10
#define LINE_IS_FRONT	(UINT32_C(1) << 20)
#define LINE_FRONT	(2 * LINE_IS_FRONT - 1)
#define LINE_READY	(UINT64_C(1) << 21)
#define LINE_POST	(UINT64_C(1) << 22)	/* adds 1 to the value */
#define LINE_CHANGE	(UINT64_C(1) << 54)	/* adds 1 to the number of changes */
#define LINE_VALUE	(LINE_CHANGE - LINE_POST)

_Static_assert(!((KDSM_MAX_NODES - 1) >> LINE_SLOT_SHIFT), "a node fits");
_Static_assert(!((LINE_IS_FRONT >> LINE_SLOT_SHIFT) - LINE_MOST), "a slot fits");

static inline uint32_t make_front(unsigned int slot, unsigned int node)
{
	return LINE_IS_FRONT | slot << LINE_SLOT_SHIFT | node;
}

static inline uint32_t front_of(uint64_t head)
{
	return head & LINE_FRONT;
}

static inline unsigned int front_slot(uint32_t front)
{
	return front >> LINE_SLOT_SHIFT & (LINE_MOST - 1);
}

static inline unsigned int front_node(uint32_t front)
{
	return front & (KDSM_MAX_NODES - 1);
}

/* Number of posts that no thread has taken */
static inline uint32_t value_of(uint64_t head)
{
	return (head & LINE_VALUE) / LINE_POST;
}

/* Replace front and value. Without a front nobody looks at the changes, and they are 0. */
static inline uint64_t make_head(uint64_t head, uint32_t front, uint32_t value)
{
	uint64_t changes = front ? head & -LINE_CHANGE : 0;

	return changes | LINE_READY | front | value * LINE_POST;
}

/*
 * An entry is 0, or the ticket of the waiter and its node. The ticket's low bits are the slot.
 * The first ticket is LINE_MOST, so that no ticket makes an entry of 0.
 */
static inline unsigned int slot_of(uint64_t ticket)
{
	return ticket % LINE_MOST;
}

static inline uint64_t make_entry(uint64_t ticket, unsigned int node)
{
	return ticket / LINE_MOST << LINE_SLOT_SHIFT | node;
}

static inline unsigned int entry_node(uint64_t entry)
{
	return entry & (KDSM_MAX_NODES - 1);
}

int kdsm_head_read(const struct kdsm_line *line, uint64_t *head) KDSM_PRIVATE;
/*
 * Change the head from *head to after by compare-and-swap, and store after in *head. If the head
 * has another value, return -EBUSY and store that in *head.
 */
int kdsm_head_change(const struct kdsm_line *line, uint64_t *head, uint64_t after) KDSM_PRIVATE;
int kdsm_entry_read(const struct kdsm_line *line, unsigned int slot, uint64_t *entry) KDSM_PRIVATE;
/* Change an entry by compare-and-swap: -EBUSY if it is not "from". */
int kdsm_entry_change(const struct kdsm_line *line, unsigned int slot, uint64_t from,
		      uint64_t to) KDSM_PRIVATE;

/* The result of a look at the ring */
struct kdsm_line_crowd {
	unsigned int count;	/* waiters */
	uint32_t first;		/* front of the waiter with the lowest ticket, or 0 */
};

int kdsm_ring_look(const struct kdsm_line *line, struct kdsm_line_crowd *crowd) KDSM_PRIVATE;
/* Wake the front, which sleeps on the bell of its slot in its own node's part. */
int kdsm_bell_ring(const struct kdsm_line *line, uint32_t front) KDSM_PRIVATE;
/* Set the guess of the next kdsm_line_take(), unless threads wait. */
void kdsm_line_remember(const struct kdsm_line *line, uint64_t head) KDSM_PRIVATE;

#endif /* KDSM_LINE_H */
