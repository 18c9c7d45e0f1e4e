// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that wait for a lock: in a line, of which each is woken when its turn has
 * come, or when there is nothing to wait for any more. Nobody else is woken, but the
 * first when the lock comes to this node, to see to it.
 *
 * Who ends a wait does all there is to do for the thread, so that it goes on without
 * the mutex. After that it may be gone at once, and what it had on its stack; the task
 * stays as long as the RCU read lock that was taken before. To be woken for nothing
 * does no harm to a task, whatever it sleeps for.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "lock/lock.h"
#include "wait.h"

void kdsm_lock_count(struct kdsm_lock *lock, int status)
{
	lockdep_assert_held(&lock->mutex);
	if (!status || status == -EOWNERDEAD)
		lock->stats[KDSM_LOCK_STAT_LOCKS]++;
	else if (status == -EBUSY)
		lock->stats[KDSM_LOCK_STAT_BUSY]++;
	else if (status == -ETIMEDOUT || status == -EINTR)
		lock->stats[KDSM_LOCK_STAT_TIMEDOUT]++;
}

static void kdsm_lock_count_wait(struct kdsm_lock *lock, u64 waited, int status)
{
	kdsm_lock_count(lock, status);
	lock->stats[KDSM_LOCK_STAT_WAITED] += waited;
	lock->stats[KDSM_LOCK_STAT_LONGEST] = max(lock->stats[KDSM_LOCK_STAT_LONGEST], waited);
	lock->waits[min_t(u32, ilog2(waited | 1), KDSM_LOCK_WAITS - 1)]++;
	waited = min_t(u64, waited, NSEC_PER_SEC);
	WRITE_ONCE(lock->wait_mean, lock->wait_mean - lock->wait_mean / 8 + (u32)waited / 8);
}

static void kdsm_lock_find_first(struct kdsm_lock *lock)
{
	struct kdsm_lock_waiter *waiter =
		list_first_entry_or_null(&lock->waiters, struct kdsm_lock_waiter, link);

	rcu_assign_pointer(lock->first, waiter ? waiter->task : NULL);
	/*
	 * Who is first, then the look at whether the lock is here: by the one that
	 * waits, or by who ended the wait. Pairs with that of kdsm_lock_call().
	 */
	smp_mb();
}

void kdsm_lock_join(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, u32 thread)
{
	lockdep_assert_held(&lock->mutex);
	waiter->task = current;
	waiter->thread = thread;
	waiter->since = ktime_get_ns();
	waiter->done = false;
	list_add_tail(&waiter->link, &lock->waiters);
	kdsm_lock_find_first(lock);
}

void kdsm_lock_end_wait(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, int status)
{
	struct task_struct *task = waiter->task;

	lockdep_assert_held(&lock->mutex);
	list_del(&waiter->link);
	kdsm_lock_find_first(lock);
	kdsm_lock_count_wait(lock, ktime_get_ns() - waiter->since, status);
	waiter->status = status;
	rcu_read_lock();
	/* Pairs with the acquire of kdsm_lock_waited(). */
	smp_store_release(&waiter->done, true);
	wake_up_process(task);
	rcu_read_unlock();
}

unsigned int kdsm_lock_waiting(const struct kdsm_lock *lock)
{
	const struct list_head *link;
	unsigned int count = 0;

	lockdep_assert_held(&lock->mutex);
	list_for_each(link, &lock->waiters)
		if (++count == KDSM_LOCK_T_L_MOST)
			break;
	return count;
}

void kdsm_lock_fail_waiters(struct kdsm_lock *lock, int err)
{
	struct kdsm_lock_waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, &lock->waiters, link)
		kdsm_lock_end_wait(lock, waiter, err);
}

bool kdsm_lock_call(struct kdsm_lock *lock)
{
	struct task_struct *first;

	/* That the lock is here, then the look at who waits; see kdsm_lock_find_first(). */
	smp_mb();
	rcu_read_lock();
	first = rcu_dereference(lock->first);
	if (first)
		wake_up_process(first);
	rcu_read_unlock();
	return first;
}

/* Is there something to do for the calling thread? A hint: the mutex tells. */
static bool kdsm_lock_calls(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter)
{
	return kdsm_lock_waited(waiter) ||
	       (READ_ONCE(lock->arrived) && rcu_access_pointer(lock->first) == current &&
		kdsm_tree_has_come(&lock->tree));
}

/*
 * Who is first looks for about as long as waits took lately, if that is short, since
 * sleeping would cost more; as long as nothing else needs this CPU, and there is
 * another one for whom it waits.
 */
static bool kdsm_lock_spin(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter)
{
	u32 mean = READ_ONCE(lock->wait_mean);
	u64 end;

	if (mean > kdsm_poll_limit() || num_online_cpus() == 1 ||
	    rcu_access_pointer(lock->first) != current)
		return false;
	end = ktime_get_ns() + 2 * mean + 1000;
	do {
		if (kdsm_lock_calls(lock, waiter))
			return true;
		cpu_relax();
	} while (single_task_running() && !need_resched() && !signal_pending(current) &&
		 ktime_get_ns() < end);
	return false;
}

int kdsm_lock_sleep(struct kdsm_lock *lock, struct kdsm_lock_waiter *waiter, u64 timeout)
{
	bool forever = timeout >= KTIME_MAX;
	ktime_t end = waiter->since;
	int err = 0;

	if (kdsm_lock_spin(lock, waiter))
		return 0;
	end = ktime_add_safe(end, forever ? 0 : timeout);
	for (;;) {
		/* Its barrier pairs with what comes before the wake-ups. */
		set_current_state(TASK_INTERRUPTIBLE);
		if (kdsm_lock_calls(lock, waiter))
			break;
		if (signal_pending(current))
			err = -EINTR;
		else if (!schedule_hrtimeout_range(forever ? NULL : &end, current->timer_slack_ns,
						   HRTIMER_MODE_ABS))
			err = -ETIMEDOUT;
		if (err)
			break;
	}
	__set_current_state(TASK_RUNNING);
	return err;
}
