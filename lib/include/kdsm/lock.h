/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks between the threads of all nodes; condition variables and semaphores.
 *
 * A lock belongs to a region of any policy and lives as long as the region. A lock is at
 * one node at a time: the threads of all processes of this node take turns, and other nodes
 * queue for the lock. While a lock is at a node and no other thread wants the lock, a
 * thread of that node locks and unlocks it without a system call. So does a thread that reads,
 * while its node may read and no writer wants the lock.
 *
 * The next holder of a lock, on any node, sees what a thread wrote to the lock's coherent
 * region before it unlocked, and all that the thread's node had acquired: the node that
 * hands the lock over releases the region, and the node that receives the lock acquires
 * this release. For data of another coherent region than the lock's, the program calls
 * kdsm_release() and kdsm_acquire() itself. Data in a partitioned region need neither,
 * because an operation has taken effect when it returns.
 *
 * Conventions are those of <kdsm/kdsm.h>. The thread that locks is the holder and must
 * unlock. A child of fork() holds none of its parent's locks. A signal handler calls no
 * function of this header, and none is a cancellation point.
 */
#ifndef KDSM_LOCK_H
#define KDSM_LOCK_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creating and opening ---- */

/* A program's handle of a lock. */
struct kdsm_lock;

struct kdsm_lock_attr {
	size_t argsz;		/* size of this struct */
	uint32_t kind;		/* enum kdsm_lock_kind; 0: KDSM_LOCK_RMA_MCS */
	uint32_t flags;		/* KDSM_LOCK_EXCL: fail if it exists; or 0 */
	/* Settings that settings.mask does not name have their default. */
	struct kdsm_lock_settings settings;
};

/*
 * Create a lock of the region, or open the one that is there; all processes of a job may
 * call it at the same time. With a name, of the form that kdsm_region_open() requires, the
 * name identifies the lock, and number is ignored. With name NULL the number alone
 * identifies it: 0 to KDSM_MAX_LOCKS - 1, or KDSM_LOCK_ANY for a new lock of any free
 * number. attr NULL stands for all zero. An existing lock must have the same kind, and
 * keeps its settings.
 *
 * The caller closes *lock with kdsm_lock_close() before it closes the region. Each call
 * gives another handle of the same lock; any number of threads, and children of fork(), may
 * use a handle. On failure *lock is NULL. Errors: those of KDSM_IOC_LOCK_OPEN in
 * <kdsm/uapi.h>, and
 *   -EACCES	the region is open for reading only
 *   -ENOMEM	this process has no memory
 */
int kdsm_lock_create(struct kdsm_region *region, const char *name, uint32_t number,
		     const struct kdsm_lock_attr *attr, struct kdsm_lock **lock);

/*
 * Open a lock that exists, whatever its kind; otherwise as kdsm_lock_create(). -ENOENT: there
 * is no such lock.
 */
int kdsm_lock_open(struct kdsm_region *region, const char *name, uint32_t number,
		   struct kdsm_lock **lock);

/*
 * Close a handle. The lock itself stays, and so does its holder. No thread may be using the
 * handle, not even in kdsm_cond_wait(), and no semaphore may use it any more. NULL is
 * ignored.
 */
void kdsm_lock_close(struct kdsm_lock *lock);

/* Number of the lock in its region, 0 to KDSM_MAX_LOCKS - 1. */
uint32_t kdsm_lock_number(const struct kdsm_lock *lock);
enum kdsm_lock_kind kdsm_lock_kind(const struct kdsm_lock *lock);
/* Levels of the lock, 2 to KDSM_LOCK_LEVELS: level 1 is the cluster, the last is a node. */
unsigned int kdsm_lock_levels(const struct kdsm_lock *lock);
struct kdsm_region *kdsm_lock_region(const struct kdsm_lock *lock);

/* ---- locking ---- */

/*
 * Lock, excluding every other thread. A lock of kind KDSM_LOCK_RMA_RW is locked for
 * writing.
 *
 * kdsm_lock()			waits without limit
 * kdsm_lock_try()		does not wait for another thread or node: -EBUSY
 * kdsm_lock_timed()		waits for timeout at most: -ETIMEDOUT
 * kdsm_lock_interruptible()	as kdsm_lock_timed(), and a caught signal ends it: -EINTR
 *
 * A signal does not end the first three. The waiter keeps its place among the threads of its
 * node; if none of them but the waiter waits, the node may lose its place in the queue. A signal
 * can move a thread that waits to read, or with the local backend, to the end of the queue.
 *
 * The caller holds the lock after 0 and after -EOWNERDEAD. Errors:
 *   -EOWNERDEAD	the thread, process or node that held the lock died while it held
 *			the lock; see kdsm_lock_consistent()
 *   -ENOTRECOVERABLE	a holder unlocked it after -EOWNERDEAD without making it consistent
 *   -EBUSY		(try) another thread holds the lock; or the lock is free of threads, but
 *			another node keeps it, or nodes keep the right to read. They give it up
 *			when a thread waits for the lock
 *   -EDEADLK		the calling thread holds the lock
 *   -EHOSTDOWN		the lock's home is down, or has not answered for 10 s. The call may be
 *			repeated: the lock works again when the home is back. If the home came
 *			up again without its memory, the lock is lost until its region is
 *			created again
 *   -EACCES		the region is open for reading only
 *   -ENOSPC, -EAGAIN	too many threads use locks of the region (of this process and its
 *			children, for the local backend)
 */
int kdsm_lock(struct kdsm_lock *lock);
int kdsm_lock_try(struct kdsm_lock *lock);
int kdsm_lock_timed(struct kdsm_lock *lock, uint64_t timeout);
int kdsm_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout);

/*
 * Unlock. The next waiter gets the lock.
 *
 * -EPERM	the calling thread does not hold the lock
 * -EHOSTDOWN	the lock's home could not reach this node for so long that it gave the lock
 *		to another node, with -EOWNERDEAD; or the home has come up again
 */
int kdsm_unlock(struct kdsm_lock *lock);

/*
 * Lock for reading, together with other readers; for locks of kind KDSM_LOCK_RMA_RW. The
 * four forms and the errors are those of kdsm_lock(), and
 *   -EINVAL	the lock is of another kind
 *   -EDEADLK	the calling thread holds the lock, for reading or for writing
 * A reader sees what earlier writers wrote before they unlocked. The lock does not pass on
 * what a reader writes. A reader that dies leaves no -EOWNERDEAD.
 */
int kdsm_read_lock(struct kdsm_lock *lock);
int kdsm_read_lock_try(struct kdsm_lock *lock);
int kdsm_read_lock_timed(struct kdsm_lock *lock, uint64_t timeout);
int kdsm_read_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout);

/*
 * Unlock after reading.
 *
 * -EPERM	the calling thread does not hold the lock for reading
 * -EHOSTDOWN	the lock's home, or the node that admitted this one, could not reach this node for
 *		so long that a writer may have had the lock meanwhile
 */
int kdsm_read_unlock(struct kdsm_lock *lock);

/*
 * Declare that what the lock guards is consistent, after -EOWNERDEAD and before unlocking.
 * If the holder unlocks without this call, the lock is lost: all waiters and all later
 * callers get -ENOTRECOVERABLE. Readers get -EOWNERDEAD, too, but only a holder that is no
 * reader can make this call.
 *
 * -EINVAL	the caller did not get the lock with -EOWNERDEAD
 * -EPERM	the calling thread does not hold the lock, or only for reading
 */
int kdsm_lock_consistent(struct kdsm_lock *lock);

/* Return 1 if the calling thread holds the lock, other than for reading; else 0. */
int kdsm_lock_is_mine(struct kdsm_lock *lock);

/* ---- tuning ---- */

/*
 * Change the settings that settings->mask names, on all nodes; the lock may be in use. They
 * apply when the lock's home next decides which nodes get the lock. struct kdsm_lock_settings in
 * <kdsm/uapi.h> has the ranges. Only the owner of the region, and a process with CAP_SYS_ADMIN,
 * may do so: -EPERM. Other errors: those of KDSM_IOC_LOCK_SET.
 */
int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings);

/*
 * Fill *info, which the caller owns, with the kind and settings of the lock, and with its
 * counters on this node since a process of this node first opened the lock. Errors: those
 * of KDSM_IOC_LOCK_INFO.
 */
int kdsm_lock_info(struct kdsm_lock *lock, struct kdsm_lock_info *info);

/* ---- wait queues ---- */

/*
 * A condition variable or semaphore is a wait queue in a partitioned region. A wait queue
 * uses KDSM_LINE_SIZE bytes at offset, a multiple of 64, of every part. The bytes are zero at
 * first, and used for nothing else while the region lives. One node is the home of the queue;
 * the other nodes reach the queue by remote operations.
 *
 * A post, signal or broadcast costs at most two remote operations, whatever the contention, and
 * one if it has no thread to wake. A wait that passes at once costs one remote atomic, two if the
 * value is not what the last call with the same struct left, and one more for each change that
 * others make meanwhile. A wait that sleeps or gives up costs eight without contention, and one
 * more if it wakes the next waiter. A waiter sleeps on a word of its own node's part, and reads
 * the home's words every second. A broadcast, or several posts, wake one thread, which wakes the
 * next.
 *
 * At most KDSM_LINE_MOST threads of the cluster wait in one queue at a time. For one more,
 * kdsm_sem_wait() fails with -EAGAIN, and kdsm_cond_wait() returns as after a signal. Tickets
 * have 64 bits and do not repeat.
 *
 * If a thread is killed while it waits, a wake-up that was meant for it goes to the next waiter
 * within some seconds. The same holds for a wait that an error of an operation on the region
 * ended. A thread that is stopped for a second when it is woken loses its place, too, and a
 * semaphore makes it wait again.
 */
/* Size of a wait queue in every part, in bytes */
#define KDSM_LINE_SIZE	16448
/* Threads of the cluster that may wait in one queue at a time, a power of two */
#define KDSM_LINE_MOST	1024

/* The library's memory of a queue from call to call. Programs do not touch it. */
struct kdsm_line_memory {
	uint32_t value, front;
	uint64_t entry, since;
};

/* ---- condition variables ---- */

/*
 * Condition variables as those of POSIX. Programs do not change a struct kdsm_cond after init:
 * threads may share one, and a process may make another one for the same bytes later. The
 * caller keeps the region open as long as it uses the struct. There is nothing to destroy.
 */
struct kdsm_cond {
	struct kdsm_region *region;
	uint64_t offset;
	uint32_t home;
	uint32_t reserved;
	struct kdsm_line_memory memory;
};

/*
 * Fill *cond, which the caller owns. home is the number of a node. All processes give the
 * same offset and home.
 *
 * -EINVAL	offset is not a multiple of 64, or there is no such node
 * -ERANGE	the bytes are not inside the part
 * -EOPNOTSUPP	the region is coherent
 * -EACCES	the region is open for reading only
 * others	those of kdsm_cas()
 */
int kdsm_cond_init(struct kdsm_cond *cond, struct kdsm_region *region, uint64_t offset,
		   uint32_t home);

/*
 * Unlock the lock, which the calling thread holds (not for reading), wait for a signal, and
 * lock it again. The caller joins the queue before it unlocks, so a thread that signals
 * while it holds the lock, or after it has held the lock, wakes the caller. As with POSIX,
 * all threads that wait at the same time use the same lock, and the call may return 0
 * without a signal, so the caller tests its predicate again.
 *
 * kdsm_cond_timed() returns -ETIMEDOUT if no signal came within timeout. It locks again
 * before it returns, and waits for the lock without a limit. A signal of the operating
 * system ends neither call.
 *
 * -EPERM	the calling thread does not hold the lock; nothing was done
 * -EOWNERDEAD	as kdsm_lock(); the caller holds the lock
 * -EPROTO	the bytes are not those of a condition variable
 * others	those of kdsm_lock() and kdsm_unlock(), after which kdsm_lock_is_mine() tells
 *		whether the caller holds the lock; and those of operations on the region,
 *		after which the caller holds it
 */
int kdsm_cond_wait(struct kdsm_cond *cond, struct kdsm_lock *lock);
int kdsm_cond_timed(struct kdsm_cond *cond, struct kdsm_lock *lock, uint64_t timeout);

/*
 * Wake the thread that has waited longest (signal), or all waiting threads (broadcast). If
 * no thread waits, the call does nothing. The caller may hold the lock.
 *
 * -EPROTO	the bytes are not those of a condition variable
 * others	those of operations on the region; a thread that was not woken notices
 *		within some seconds
 */
int kdsm_cond_signal(struct kdsm_cond *cond);
int kdsm_cond_broadcast(struct kdsm_cond *cond);

/* ---- semaphores ---- */

/* As struct kdsm_cond */
struct kdsm_sem {
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	uint64_t offset;
	uint32_t home;
	uint32_t reserved;
	struct kdsm_line_memory memory;
};

/* Largest value of a semaphore */
#define KDSM_SEM_MAX	0x3fffffff

/*
 * Fill *sem, which the caller owns. If the bytes are zero, the semaphore gets value, 0 to
 * KDSM_SEM_MAX; otherwise it keeps the value that it has. All processes give the same
 * arguments.
 *
 * With lock NULL a semaphore orders operations, but not accesses to coherent memory. With a
 * lock, a thread that passes a wait sees what another thread wrote to the lock's region
 * before the post that let it pass: each post and each successful wait locks and unlocks the
 * lock, which the caller must not hold. These calls wait for the lock without a limit,
 * kdsm_sem_try() and kdsm_sem_timed() included. They cost little on a node where the lock
 * stays.
 *
 * Errors: those of kdsm_cond_init(). -EINVAL: value is above KDSM_SEM_MAX.
 */
int kdsm_sem_init(struct kdsm_sem *sem, struct kdsm_region *region, uint64_t offset,
		  uint32_t home, uint32_t value, struct kdsm_lock *lock);

/*
 * Wait until the value is above 0, and decrement it. Threads pass in the order in which
 * they began to wait.
 *
 * kdsm_sem_wait()	waits without limit
 * kdsm_sem_try()	does not wait: -EAGAIN
 * kdsm_sem_timed()	waits for timeout at most: -ETIMEDOUT
 * A caught signal ends kdsm_sem_wait() and kdsm_sem_timed(): -EINTR.
 *
 * After an error the value is unchanged, with two exceptions: after an error of kdsm_lock()
 * it is decremented; and after an error of an operation on the region it may be one lower.
 * -EAGAIN	KDSM_LINE_MOST threads wait already
 * -EPROTO	the bytes are not those of a semaphore
 * others	those of operations on the region, and of kdsm_lock()
 */
int kdsm_sem_wait(struct kdsm_sem *sem);
int kdsm_sem_try(struct kdsm_sem *sem);
int kdsm_sem_timed(struct kdsm_sem *sem, uint64_t timeout);

/*
 * Increment the value, or wake the thread that has waited longest.
 *
 * -EOVERFLOW	the value is KDSM_SEM_MAX
 * -EPROTO	the bytes are not those of a semaphore
 * errors of kdsm_lock()	the value is unchanged, and no thread is woken
 * errors of operations on the region	the value may be incremented; a thread that was not
 *		woken notices within some seconds
 */
int kdsm_sem_post(struct kdsm_sem *sem);

/*
 * Store the value in *value. If it is -n, n threads wait; some of them may be dead.
 * -EPROTO: the bytes are not those of a semaphore; others: those of kdsm_faa().
 */
int kdsm_sem_value(struct kdsm_sem *sem, int32_t *value);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_LOCK_H */
