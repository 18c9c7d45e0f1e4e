/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside the core: what its files share, and nothing above uses. */
#ifndef KDSM_CORE_INTERNAL_H
#define KDSM_CORE_INTERNAL_H

#include <stddef.h>

#include "core/core.h"

/* ---- operation.c, vector.c, find.c, steal.c ---- */

/* Do one operation on the own part by the CPU; 0 or its status. */
int kdsm_own_op(struct kdsm_region *region, struct kdsm_op *op) KDSM_PRIVATE;

/* KDSM_OP_FIND in a part of size bytes: 0, -EINVAL, -ERANGE, -EIO. */
int kdsm_find_in(uint8_t *part, uint64_t size, uint64_t index, struct kdsm_find *find) KDSM_PRIVATE;

/* KDSM_OP_STEAL in a part of size bytes, that of node: 0, -EINVAL, -ERANGE, -EIO. */
int kdsm_steal_in(uint8_t *part, uint64_t size, unsigned int node, uint64_t crew,
		  struct kdsm_theft *theft) KDSM_PRIVATE;

/*
 * Whether the CPU may do it: the own part, and nothing with an atomic that a device must do.
 * What a theft changes only CPUs do.
 */
static inline bool kdsm_op_is_own(const struct kdsm_region *region,
				  const struct kdsm_op *op)
{
	return op->node == region->node &&
	       (region->cpu_atomics ||
		op->opcode == KDSM_OP_GET || op->opcode == KDSM_OP_PUT ||
		op->opcode == KDSM_OP_STEAL);
}

/* ---- liveness.c ---- */

/*
 * Threads of the local backend, of a process and of its relatives by fork(): numbers
 * for them, and whether they still live. What the module does with tasks is done here
 * with robust mutexes: each thread has a life, a mutex in memory shared by all relatives,
 * locked as long as the thread lives. When it ends, in whatever way, the kernel tells
 * those who try to lock it.
 */
/* Threads at a time; the number of one has its life's index in the low bits. */
#define KDSM_LIFE_BITS	12
#define KDSM_LIVES	(1U << KDSM_LIFE_BITS)

struct kdsm_life {
	_Alignas(64) pthread_mutex_t alive;
	uint32_t generation;	/* the upper bits of the number; changes with the thread */

	/* local_lock_queue.c: what the thread waits for. */
	uint32_t told;
	uint64_t waits;		/* the key of a lock, or 0 */
	uint64_t ticket;
	uint32_t thread;
	bool reads;
};

/* Once before any of the others, and before relatives that share are made. */
int kdsm_lives_start(void)
	KDSM_PRIVATE;
/* The number of the calling thread, never 0. -EAGAIN: there are KDSM_LIVES. */
int kdsm_life_own(uint32_t *thread) KDSM_PRIVATE;
bool kdsm_life_over(uint32_t thread) KDSM_PRIVATE;
/* Of any index below KDSM_LIVES; those from kdsm_lives_used() on were never used. */
struct kdsm_life *kdsm_life_at(unsigned int index) KDSM_PRIVATE;
unsigned int kdsm_lives_used(void)
	KDSM_PRIVATE;
/* A number that nobody among the relatives got before. */
uint64_t kdsm_lives_serial(void)
	KDSM_PRIVATE;

static inline unsigned int kdsm_life_index(uint32_t thread)
{
	return thread & (KDSM_LIVES - 1);
}

/* A short lock, held during a few loads and stores: 0, or the thread that has it. */
struct kdsm_guard {
	uint32_t thread;
	bool died;		/* somebody did with it; for who has it, to see to and reset */
};

void kdsm_guard_take(struct kdsm_guard *guard, uint32_t thread) KDSM_PRIVATE;
void kdsm_guard_give(struct kdsm_guard *guard) KDSM_PRIVATE;

/* ---- local.c, local_lock.c, local_lock_queue.c ---- */

/* What the module would know of a lock; all but kind and spin under its guard. */
struct kdsm_local_lock {
	_Alignas(64) struct kdsm_guard guard;
	uint32_t kind;			/* 0: not made yet; stored last */
	char name[KDSM_NAME_SIZE];
	struct kdsm_lock_settings settings;
	struct kdsm_spin spin;
	uint64_t ticket;		/* of who asks next */
	uint32_t readers;		/* in the table: how many */
	uint32_t in_row;		/* readers or writers, while others wait */
	bool reading;			/* who had it last */
	uint64_t stats[KDSM_LOCK_STAT_COUNT];
	uint64_t waits[KDSM_LOCK_WAITS];
};

/* Behind a region's part; zero at first. Pages come when they are touched. */
struct kdsm_local_area {
	struct kdsm_lock_word words[KDSM_MAX_LOCKS];
	struct kdsm_guard guard;	/* of making locks */
	uint64_t serial;		/* 0, or this area's among the relatives */
	struct kdsm_local_lock locks[KDSM_MAX_LOCKS];
	/* By the index of a thread's life: its number, if it has the lock for reading. */
	uint32_t readers[KDSM_MAX_LOCKS][KDSM_LIVES];
};

static inline struct kdsm_local_area *kdsm_local_area(const struct kdsm_region *region)
{
	return (struct kdsm_local_area *)region->lock_words;
}

_Static_assert(offsetof(struct kdsm_local_area, words) == 0, "the area begins with the words");

/* local.c: map the area of a region. */
int kdsm_local_map_locks(struct kdsm_region *region) KDSM_PRIVATE;

/* local_lock_queue.c: as in struct kdsm_lock_backend. */
int kdsm_local_take(struct kdsm_region *region, struct kdsm_lock_take *arg) KDSM_PRIVATE;
int kdsm_local_give(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;
int kdsm_local_consistent(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;

#endif /* KDSM_CORE_INTERNAL_H */
