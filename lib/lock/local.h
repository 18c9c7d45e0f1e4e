/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks of the local backend, as they lie in the memory of their region. */
#ifndef KDSM_LOCK_LOCAL_H
#define KDSM_LOCK_LOCAL_H

#include <stddef.h>
#include "liveness.h"

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

/* lock_queue.c: as in struct kdsm_lock_backend. */
int kdsm_local_take(struct kdsm_region *region, struct kdsm_lock_take *arg) KDSM_PRIVATE;
int kdsm_local_give(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;
int kdsm_local_consistent(struct kdsm_region *region, struct kdsm_lock_give *arg) KDSM_PRIVATE;

#endif /* KDSM_LOCK_LOCAL_H */
