// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of threads that wait for a lock. A thread is woken when its wait is over. The first one is
 * also woken when the lock comes to this node, or must be asked for, because it can do so faster
 * than a work item.
 *
 * The task that ends a wait does all there is to do for the waiting thread, so that this goes on
 * without the mutex. After that the thread may return at once, and its struct kdsm_waiter is gone;
 * its task stays for the RCU read section. Waking a task for nothing does no harm.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <kdsm/uapi.h>

#include "fabric/fabric.h"
#include "wait.h"

void kdsm_line_init(struct kdsm_line *line)
{
	INIT_LIST_HEAD(&line->waiters);
}

static void kdsm_line_find_first(struct kdsm_line *line)
{
	struct kdsm_waiter *waiter = kdsm_line_first(line);

	rcu_assign_pointer(line->first, waiter ? waiter->task : NULL);
	/*
	 * First this, and then the look at the state of the lock, by the task that changes the
	 * line. Pairs with the barrier in kdsm_line_call().
	 */
	smp_mb();
}

void kdsm_line_join(struct kdsm_line *line, struct kdsm_waiter *waiter)
{
	struct kdsm_waiter *before;

	waiter->task = current;
	list_for_each_entry_reverse(before, &line->waiters, link)
		if (before->place <= waiter->place)
			break;
	list_add(&waiter->link, &before->link);
	kdsm_line_find_first(line);
}

void kdsm_line_end(struct kdsm_line *line, struct kdsm_waiter *waiter, int status)
{
	u64 waited = min_t(u64, ktime_get_ns() - waiter->since, NSEC_PER_SEC);
	struct task_struct *task = waiter->task;

	list_del(&waiter->link);
	kdsm_line_find_first(line);
	WRITE_ONCE(line->mean, line->mean - line->mean / 8 + (u32)waited / 8);
	waiter->status = status;
	rcu_read_lock();
	/* Pairs with the acquire in kdsm_waiter_is_done() */
	smp_store_release(&waiter->done, true);
	wake_up_process(task);
	rcu_read_unlock();
}

unsigned int kdsm_line_count(const struct kdsm_line *line)
{
	const struct kdsm_waiter *waiter;
	unsigned int count = 0;

	list_for_each_entry(waiter, &line->waiters, link) {
		count += !waiter->tried;
		if (count == KDSM_LOCK_T_L_MOST)
			break;
	}
	return count;
}

bool kdsm_line_call(struct kdsm_line *line)
{
	struct task_struct *first;

	WRITE_ONCE(line->called, true);
	/* The state of the lock, and then the look at the line; see kdsm_line_find_first() */
	smp_mb();
	rcu_read_lock();
	first = rcu_dereference(line->first);
	if (first)
		wake_up_process(first);
	rcu_read_unlock();
	return first;
}

/* Whether the calling thread has something to do */
static bool kdsm_line_calls(const struct kdsm_line *line, const struct kdsm_waiter *waiter)
{
	return kdsm_waiter_is_done(waiter) ||
	       (READ_ONCE(line->called) && rcu_access_pointer(line->first) == current);
}

/*
 * The first thread spins for about as long as the last waits took, if that is short, because
 * sleeping would cost more; and as long as nothing else needs this CPU, and there is another one.
 */
static bool kdsm_line_spin(const struct kdsm_line *line, const struct kdsm_waiter *waiter)
{
	u32 mean = READ_ONCE(line->mean);
	u64 end;

	if (mean > kdsm_poll_limit() || num_online_cpus() == 1 ||
	    rcu_access_pointer(line->first) != current)
		return false;
	end = ktime_get_ns() + 2 * mean + 1000;
	do {
		if (kdsm_line_calls(line, waiter))
			return true;
		cpu_relax();
	} while (single_task_running() && !need_resched() && !signal_pending(current) &&
		 ktime_get_ns() < end);
	return false;
}

int kdsm_line_sleep(struct kdsm_line *line, struct kdsm_waiter *waiter, u64 timeout)
{
	bool forever = timeout >= KTIME_MAX;
	ktime_t end = ktime_add_safe(waiter->since, forever ? 0 : timeout);
	int err = 0;

	if (kdsm_line_spin(line, waiter))
		goto called;
	for (;;) {
		/* The barrier pairs with those before the wake-ups. */
		set_current_state(TASK_INTERRUPTIBLE);
		if (kdsm_line_calls(line, waiter))
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
called:
	/* Before the caller looks what there is to do */
	if (rcu_access_pointer(line->first) == current)
		WRITE_ONCE(line->called, false);
	return err;
}
