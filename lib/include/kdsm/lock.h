/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks between threads of all nodes, and what is made of them: condition variables
 * and semaphores.
 *
 * A lock belongs to a region of any policy, and lives as long as that. It is at one
 * node at a time: there the threads of the node, of all processes, take turns, and
 * nodes queue for it. A thread that takes a lock which is at its node, and which nobody
 * else wants, makes no system call; nor does it when it unlocks it.
 *
 * What was written to a coherent region before an unlock of one of its locks is seen
 * after a lock of the same, on any node: release and acquire are done by the lock, when
 * it goes from node to node, and what a node had seen itself goes along, by whatever lock
 * or signature it had seen that. Data that the lock of another region guards need
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
	uint32_t flags;		/* KDSM_LOCK_EXCL: fail if it exists; or 0 */
	/* The thresholds and keep; those that mask does not name have their default. */
	struct kdsm_lock_settings settings;
};

/*
 * Find a lock of the region, or make it: all programs of a job may call this at once.
 * It is known by name (printable ASCII, less than KDSM_NAME_SIZE bytes), or, with name
 * NULL, by number alone (0 to KDSM_MAX_LOCKS - 1; KDSM_LOCK_ANY: any that is free). With
 * a name, number is ignored. attr NULL is one of zeros. An existing lock must be of that
 * kind, and keeps its settings.
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
 * is closed must not be in use, by kdsm_cond_wait() or a semaphore either.
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
 * Readers see what was written before the lock was unlocked; what they write themselves
 * is not told by it to whoever locks it next.
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
 * -EINVAL: it was not got with -EOWNERDEAD. -EPERM: this thread does not have it, or only
 * for reading.
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

/* ---- waiting lines ---- */

/*
 * Condition variables and semaphores live in a partitioned region: KDSM_LINE_SIZE bytes
 * at offset (a multiple of 64) of every part, zero at first and used for nothing else
 * while the region lives. One node is the home: a wait that need not wait, and a post or
 * signal with nobody to wake, are one remote atomic there (none at home). To wait takes
 * four of them, to wake a thread at most four and a notifying put. Who waits sleeps on a
 * word of its own part, and looks at the home every second. To give up takes six.
 *
 * As many as KDSM_LINE_MOST threads of the cluster wait at a time. Those who come when
 * so many do already get -EAGAIN from kdsm_sem_wait(), and a spurious wake-up, after a
 * moment, from kdsm_cond_wait().
 *
 * A thread that is killed while it waits does not take a wake-up with it: if it is given
 * one, that goes to the next within some seconds.
 */
#define KDSM_LINE_SIZE	16448
#define KDSM_LINE_MOST	1024

/* ---- condition variables ---- */

/*
 * As those of POSIX. A struct kdsm_cond is not changed after init: threads may share one,
 * or a program open another on the same words later. It holds the region but does not
 * own it, and there is nothing to destroy.
 */
struct kdsm_cond {
	struct kdsm_region *region;
	uint64_t offset;
	uint32_t home;
	uint32_t reserved;
};

/*
 * All programs give the same offset and home (a node). -EOPNOTSUPP: a coherent region.
 * -EINVAL: offset, or no such node. -ERANGE: not inside the part. -EACCES: the region was
 * opened without permission to write. Others are those of kdsm_cas().
 */
int kdsm_cond_init(struct kdsm_cond *cond, struct kdsm_region *region, uint64_t offset,
		   uint32_t home);

/*
 * Unlock the lock, which this thread has (not for reading), wait until the condition
 * variable is signalled, and lock it again. Unlocking and beginning to wait are one step
 * for those who signal with, or after they had, the lock. As with POSIX, all who wait at
 * a time use the same lock, and 0 may be returned though nobody signalled: look at the
 * predicate again.
 *
 * kdsm_cond_timed() gives -ETIMEDOUT when timeout is over and nobody signalled. The lock
 * is locked again whatever that takes, also when the wait failed. Signals do not end it.
 *
 * -EPERM: this thread does not have the lock; nothing has been done. What else locking
 * gives: -EOWNERDEAD with the lock, and others without it: call kdsm_lock_is_mine() after
 * an error that is neither of these nor -ETIMEDOUT. -EPROTO: the words are not those of
 * a condition variable. Errors of operations on the region, the lock being held.
 */
int kdsm_cond_wait(struct kdsm_cond *cond, struct kdsm_lock *lock);
int kdsm_cond_timed(struct kdsm_cond *cond, struct kdsm_lock *lock, uint64_t timeout);

/*
 * Wake one of those who wait, the one who waits longest; or all of them. With nobody
 * waiting they do nothing. They may be called with and without the lock.
 *
 * -EPROTO as above; errors of operations on the region: some may not have been woken by
 * this call, and find out within some seconds.
 */
int kdsm_cond_signal(struct kdsm_cond *cond);
int kdsm_cond_broadcast(struct kdsm_cond *cond);

/* ---- semaphores ---- */

/* As struct kdsm_cond. */
struct kdsm_sem {
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	uint64_t offset;
	uint32_t home;
	uint32_t reserved;
};

#define KDSM_SEM_MAX	0x3fffffff	/* the largest value */

/*
 * Give it the value, if the words are zero; if not, it has one already, which stays. All
 * programs give the same arguments.
 *
 * A semaphore tells nothing of coherent memory by itself. With lock, which is not NULL
 * then, what was written to the lock's region before a post is seen after the wait that
 * it let pass: each post and each successful wait locks and unlocks it, which must not
 * be locked by the caller, and costs little on a node where it stays.
 *
 * Errors: as kdsm_cond_init(). -EINVAL: value above KDSM_SEM_MAX, too.
 */
int kdsm_sem_init(struct kdsm_sem *sem, struct kdsm_region *region, uint64_t offset,
		  uint32_t home, uint32_t value, struct kdsm_lock *lock);

/*
 * Take one of the value, waiting until there is one. Threads get it in the order in
 * which they came.
 *
 * kdsm_sem_wait() is ended by a signal that is caught: -EINTR. kdsm_sem_try(): -EAGAIN,
 * there is none. kdsm_sem_timed(): as wait, and -ETIMEDOUT.
 *
 * After an error nothing has been taken, except that with a lock those of kdsm_lock()
 * are told after it was. -EPROTO: the words are not those of a semaphore. -EAGAIN: see
 * KDSM_LINE_MOST.
 */
int kdsm_sem_wait(struct kdsm_sem *sem);
int kdsm_sem_try(struct kdsm_sem *sem);
int kdsm_sem_timed(struct kdsm_sem *sem, uint64_t timeout);

/*
 * Add one, or wake the thread that waits longest. -EOVERFLOW: the value is
 * KDSM_SEM_MAX. With a lock: errors of kdsm_lock(), nothing has been added. After other
 * errors one was added, and a thread that should have been woken finds out within some
 * seconds.
 */
int kdsm_sem_post(struct kdsm_sem *sem);

/* *value: what is left, or, below 0, how many wait (some may have given up since). */
int kdsm_sem_value(struct kdsm_sem *sem, int32_t *value);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_LOCK_H */
