/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that wait for a lock. What changes the line is called with the lock's mutex. */
#ifndef KDSM_LOCK_WAIT_H
#define KDSM_LOCK_WAIT_H

#include <linux/list.h>
#include <linux/sched.h>

struct kdsm_lock;

/* On the stack of the thread. */
struct kdsm_lock_waiter {
	struct list_head link;
	struct task_struct *task;
	u64 since;		/* ns of ktime */
	u32 thread;
	bool done;
	int status;		/* of done */
};

/* The calling thread is the last of the line. */
void kdsm_lock_join(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, u32 thread);
/* It has waited: not in the line any more, counted, and woken. */
void kdsm_lock_end_wait(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, int status);
/* How many wait, KDSM_LOCK_T_L_MOST at most. */
unsigned int kdsm_lock_waiting(const struct kdsm_lock *lock);
/* All have waited. */
void kdsm_lock_fail_waiters(struct kdsm_lock *lock, int err);
/* How an attempt to lock ended, that did not wait. */
void kdsm_lock_count(struct kdsm_lock *lock, int status);

/* The lock came here. Wake who is first. False: nobody waits. Any context. */
bool kdsm_lock_call(struct kdsm_lock *lock);
/*
 * Without the mutex: until the wait is over or the lock came here, at most timeout ns
 * from its beginning. 0, -ETIMEDOUT, -EINTR.
 */
int kdsm_lock_sleep(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, u64 timeout);

/* Is the wait over? Then there is a status. */
static inline bool kdsm_lock_waited(const struct kdsm_lock_waiter *waiter)
{
	/* Pairs with the release of kdsm_lock_end_wait(): then the status is there. */
	return smp_load_acquire(&waiter->done);
}

#endif /* KDSM_LOCK_WAIT_H */
