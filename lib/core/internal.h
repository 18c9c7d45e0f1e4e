/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the files of lib/core: operations by the CPU, liveness of threads, and the
 * locks of the local backend. Other folders include core/core.h instead.
 */
#ifndef KDSM_CORE_INTERNAL_H
#define KDSM_CORE_INTERNAL_H

#include <stddef.h>

#include "core/core.h"

/* ---- vector.c, find.c, steal.c ---- */

/* Perform KDSM_OP_FIND in a part of size bytes. Returns 0, -EINVAL, -ERANGE or -EIO. */
int kdsm_find_in(uint8_t *part, uint64_t size, uint64_t index, struct kdsm_find *find) KDSM_PRIVATE;

/* Perform KDSM_OP_STEAL in node's part of size bytes. Returns 0, -EINVAL, -ERANGE or -EIO. */
int kdsm_steal_in(uint8_t *part, uint64_t size, unsigned int node, uint64_t crew,
		  struct kdsm_theft *theft) KDSM_PRIVATE;

/* Give the reason why the backend failed the operation. Returns error. */
int kd_op_failed(const struct kdsm_region *region, const struct kdsm_op *op, int error);

/*
 * Whether the CPU may perform the operation: it concerns the own part, and is not an atomic
 * that the domain reserves for the device. A theft is always the CPU's: only CPUs change
 * the words that a theft changes.
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
 * Threads of the local backend, in this process and in its relatives by fork(): their
 * numbers, and whether they are still alive. The module looks at the kernel's tasks; the
 * local backend uses robust mutexes instead. Each thread owns a life: a mutex in memory that
 * all relatives share, and that the thread keeps locked while it lives. However the thread
 * ends, the next thread that tries to lock the mutex either locks it or learns from the
 * kernel that its owner has died.
 */
/*
 * Largest number of threads that live at the same time. The low KDSM_LIFE_BITS bits of a
 * thread's number are the index of its life.
 */
#define KDSM_LIFE_BITS	12
#define KDSM_LIVES	(1U << KDSM_LIFE_BITS)

struct kdsm_life {
	_Alignas(64) pthread_mutex_t alive;
	uint32_t generation;	/* upper bits of the number; changes with each thread */

	/* local_lock_queue.c: the lock for which the thread waits */
	uint32_t told;
	uint64_t waits;		/* key of the lock, or 0 while not waiting */
	uint64_t ticket;
	uint32_t thread;
	bool reads;
};

/*
 * Set up the lives. A process calls this before any other function of liveness.c, and before
 * it forks relatives that share locks. Returns 0 or a negative errno.
 */
int kdsm_lives_start(void)
	KDSM_PRIVATE;
/*
 * As kdsm_lives_start(), for lives that unrelated processes share by a file, initially empty.
 * Only one process calls it at a time. Returns -EBUSY if this process has lives already.
 */
int kdsm_lives_share(int fd) KDSM_PRIVATE;
/*
 * Store the number of the calling thread, never 0. Returns -EAGAIN if KDSM_LIVES threads
 * live.
 */
int kdsm_life_own(uint32_t *thread) KDSM_PRIVATE;
/* Returns whether the thread with this number, which kdsm_life_own() gave, has ended. */
bool kdsm_life_over(uint32_t thread) KDSM_PRIVATE;
/*
 * Return the life with this index, which is below KDSM_LIVES. No thread has used an index
 * that is not below kdsm_lives_used().
 */
struct kdsm_life *kdsm_life_at(unsigned int index) KDSM_PRIVATE;
unsigned int kdsm_lives_used(void)
	KDSM_PRIVATE;
/* Return a number that no relative has received before. */
uint64_t kdsm_lives_serial(void)
	KDSM_PRIVATE;

static inline unsigned int kdsm_life_index(uint32_t thread)
{
	return thread & (KDSM_LIVES - 1);
}

/*
 * A lock that a thread holds only during a few loads and stores. thread is 0 or the number of
 * the holder.
 */
struct kdsm_guard {
	uint32_t thread;
	bool died;		/* a holder died: the next one repairs the data, resets died */
};

void kdsm_guard_take(struct kdsm_guard *guard, uint32_t thread) KDSM_PRIVATE;
void kdsm_guard_give(struct kdsm_guard *guard) KDSM_PRIVATE;

/* ---- local.c, local_lock.c, local_lock_queue.c ---- */

/*
 * The counterpart of a lock in the module. The guard protects every field but kind and
 * spin.
 */
struct kdsm_local_lock {
	_Alignas(64) struct kdsm_guard guard;
	uint32_t kind;			/* 0: not made yet; stored last */
	char name[KDSM_NAME_SIZE];
	struct kdsm_lock_settings settings;
	struct kdsm_spin spin;
	uint64_t ticket;		/* of the next thread that queues */
	uint32_t readers;		/* number of entries in the table of readers */
	uint32_t in_row;		/* readers, or writers, in a row while others wait */
	bool reading;			/* the latest holder was a reader */
	uint64_t stats[KDSM_LOCK_STAT_COUNT];
	uint64_t waits[KDSM_LOCK_WAITS];
};

/*
 * The area behind a region's part; initially zero. Its pages are allocated on first access.
 */
struct kdsm_local_area {
	struct kdsm_lock_word words[KDSM_MAX_LOCKS];
	uint64_t slots[KDSM_LOCK_SLOTS];	/* of readers */
	struct kdsm_guard guard;	/* protects the creation of locks */
	uint64_t serial;		/* 0, or unique among the relatives' areas */
	struct kdsm_local_lock locks[KDSM_MAX_LOCKS];
	/*
	 * For each lock and each index of a life: 0, or the number of the thread that holds the
	 * lock for reading
	 */
	uint32_t readers[KDSM_MAX_LOCKS][KDSM_LIVES];
};

/* The region's locks are mapped: kdsm_local_map_locks() has set region->lock_words. */
static inline struct kdsm_local_area *kdsm_local_area(const struct kdsm_region *region)
{
	return (struct kdsm_local_area *)region->lock_words;
}

_Static_assert(offsetof(struct kdsm_local_area, words) == 0, "the area begins with the words");
_Static_assert(offsetof(struct kdsm_local_area, slots) == KDSM_LOCKS_WORDS, "as the device has it");

/* ---- local_shared.c: the files of a local backend that unrelated processes share ---- */

/* Returns 0, or an error as kd_shared_open() does. */
int kd_shared_start(const char *name, struct kd_shared **shared) KDSM_PRIVATE;
/* The last process removes the files. */
void kd_shared_end(struct kd_shared *shared) KDSM_PRIVATE;
/* Between these two calls no other process finds, makes or removes files of regions. */
int kd_shared_lock(struct kd_shared *shared) KDSM_PRIVATE;
void kd_shared_unlock(struct kd_shared *shared) KDSM_PRIVATE;
/*
 * Find the file of a region: store its descriptor and what it was made by. Returns 0, -ENOENT or
 * another error.
 */
int kd_shared_find(struct kd_shared *shared, const char *name, int *fd,
		   struct kdsm_region_open *made) KDSM_PRIVATE;
/*
 * Make the file of a region, of so many bytes, and choose made->base. Other processes map length
 * bytes there.
 */
int kd_shared_make(struct kd_shared *shared, struct kdsm_region_open *made, uint64_t bytes,
		   uint64_t length, int *fd) KDSM_PRIVATE;
void kd_shared_remove(struct kd_shared *shared, const char *name) KDSM_PRIVATE;

/* local.c: map the area of a region. */
int kdsm_local_map_locks(struct kdsm_region *region) KDSM_PRIVATE;

/* local_lock_queue.c: implementations of struct kdsm_lock_backend. */
int kdsm_local_take(struct kdsm_region *region, struct kdsm_lock_take *arg) KDSM_PRIVATE;
int kdsm_local_give(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;
int kdsm_local_consistent(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;

#endif /* KDSM_CORE_INTERNAL_H */
