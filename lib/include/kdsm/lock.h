/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks between threads of all nodes.
 *
 * A lock belongs to a region of any policy, and lives as long as that. It is at one
 * node at a time: there the threads of the node, of all processes, take turns, and
 * nodes queue for it. A thread that takes a lock which is at its node, and which nobody
 * else wants, makes no system call; nor does it when it unlocks it.
 *
 * What was written to a coherent region before an unlock of one of its locks is seen
 * after a lock of the same, on any node: release and acquire are done by the lock, when
 * it goes from node to node. Data that the lock of another region guards need
 * kdsm_release() and kdsm_acquire() as ever; data in a partitioned region are reached
 * by operations, which take effect before they return.
 *
 * Conventions are those of <kdsm/kdsm.h>: 0 or a negative errno, times in nanoseconds.
 * A timeout of KDSM_FOREVER does not end, one of 0 does not sleep. The thread that locks
 * is the one that has the lock and must unlock it. A child of fork() has none of the
 * locks of its parent. No function here may be called by a signal handler, nor is one
 * a cancellation point.
 */
#ifndef KDSM_LOCK_H
#define KDSM_LOCK_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- finding and making ---- */

/* A program's view of a lock. */
struct kdsm_lock;

struct kdsm_lock_attr {
	uint32_t kind;		/* enum kdsm_lock_kind; 0: KDSM_LOCK_RMA_MCS */
	uint32_t options;	/* KDSM_LOCK_CAS, or 0 */
	uint32_t flags;		/* KDSM_LOCK_EXCL: fail if it exists; or 0 */
	uint32_t reserved;	/* 0 */
	/* The thresholds and keep; those that mask does not name have their default. */
	struct kdsm_lock_settings settings;
};

/*
 * Find a lock of the region, or make it: all programs of a job may call this at once.
 * It is known by name (printable ASCII, less than KDSM_NAME_SIZE bytes), or, with name
 * NULL, by number alone (0 to KDSM_MAX_LOCKS - 1; KDSM_LOCK_ANY: any that is free). With
 * a name, number is ignored. attr NULL is one of zeros. An existing lock must be of that
 * kind and those options, and keeps its settings.
 *
 * *lock is the caller's, who closes it before the region. Each call gives another view
 * of the same lock, which any number of threads may use, and children of fork(), too.
 *
 * Errors: those of KDSM_IOC_LOCK_OPEN in <linux/kdsm.h>; -ENOMEM. *lock is NULL then.
 */
int kdsm_lock_create(struct kdsm_region *region, const char *name, uint32_t number,
		     const struct kdsm_lock_attr *attr, struct kdsm_lock **lock);

/* The same for a lock that must exist: -ENOENT. */
int kdsm_lock_open(struct kdsm_region *region, const char *name, uint32_t number,
		   struct kdsm_lock **lock);

/*
 * The lock goes on without this view; whoever has it keeps it. NULL is ignored. What
 * is closed must not be in use.
 */
void kdsm_lock_close(struct kdsm_lock *lock);

uint32_t kdsm_lock_number(const struct kdsm_lock *lock);
enum kdsm_lock_kind kdsm_lock_kind(const struct kdsm_lock *lock);
/* Levels of the topology, 2 to KDSM_LOCK_LEVELS: 1 is the cluster, the last one a node. */
unsigned int kdsm_lock_levels(const struct kdsm_lock *lock);
struct kdsm_region *kdsm_lock_region(const struct kdsm_lock *lock);

/* ---- locking ---- */

/*
 * Get the lock, for this thread alone. A lock of kind KDSM_LOCK_RMA_RW is locked for
 * writing by these.
 *
 * kdsm_lock()			waits as long as it takes.
 * kdsm_lock_try()		does not wait for another thread: -EBUSY.
 * kdsm_lock_timed()		waits for timeout at most: -ETIMEDOUT.
 * kdsm_lock_interruptible()	the same, and a signal that is caught ends it: -EINTR.
 *
 * A signal does not end the others, but may put who waits at the end of its queue.
 *
 * 0 and -EOWNERDEAD: the caller has the lock. Errors:
 *   -EOWNERDEAD	the thread, process or node that had it ended with it, see
 *			kdsm_lock_consistent()
 *   -ENOTRECOVERABLE	nobody will have it any more
 *   -EDEADLK		this thread has it
 *   -EHOSTDOWN, -EIO	a node that has to take part cannot be reached: try again,
 *			as the queue may be mended
 *   -EACCES		the region was opened without permission to write
 *   -ENOSPC, -EAGAIN	too many threads use locks
 */
int kdsm_lock(struct kdsm_lock *lock);
int kdsm_lock_try(struct kdsm_lock *lock);
int kdsm_lock_timed(struct kdsm_lock *lock, uint64_t timeout);
int kdsm_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout);

/* -EPERM: this thread does not have it. */
int kdsm_unlock(struct kdsm_lock *lock);

/*
 * Get the lock, of kind KDSM_LOCK_RMA_RW, together with other readers. Forms and errors
 * as above; -EINVAL: another kind. -EDEADLK: this thread has it, for reading or for
 * writing. A reader that ends with the lock leaves no -EOWNERDEAD: it has changed nothing.
 */
int kdsm_read_lock(struct kdsm_lock *lock);
int kdsm_read_lock_try(struct kdsm_lock *lock);
int kdsm_read_lock_timed(struct kdsm_lock *lock, uint64_t timeout);
int kdsm_read_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout);

/* -EPERM: this thread does not have it for reading. */
int kdsm_read_unlock(struct kdsm_lock *lock);

/*
 * For who got -EOWNERDEAD, and has the lock: what it guards is in order again, and the
 * lock as any other. Who has it for writing and unlocks it without that leaves it
 * -ENOTRECOVERABLE, for all who wait for it and come later. Readers get -EOWNERDEAD,
 * too, and leave it as it is.
 *
 * -EINVAL: it was not got with -EOWNERDEAD. -EPERM: this thread does not have it.
 */
int kdsm_lock_consistent(struct kdsm_lock *lock);

/* 1: this thread has it (not for reading). 0: it has not. */
int kdsm_lock_is_mine(struct kdsm_lock *lock);

/* ---- tuning ---- */

/*
 * Change the settings that settings->mask names, on all nodes, of a lock that may be in
 * use: from the next hand-over on. Ranges are at struct kdsm_lock_settings.
 *
 * Errors: those of KDSM_IOC_LOCK_SET.
 */
int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings);

/*
 * What the lock is, how it is set, and what it has done on this node since it was first
 * opened here. The struct is the caller's; all of it is filled.
 */
int kdsm_lock_info(struct kdsm_lock *lock, struct kdsm_lock_info *info);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_LOCK_H */
