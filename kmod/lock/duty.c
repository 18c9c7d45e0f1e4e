// SPDX-License-Identifier: GPL-2.0
/* Work for one lock, on the locks' own workqueue: at once or within some time. */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "compat.h"
#include "death.h"
#include "lock/lock.h"
#include "region/region.h"

/* Pause after the first failure, in ns, and how often it doubles while failures go on */
#define KDSM_DUTY_PAUSE		(50 * NSEC_PER_USEC)
#define KDSM_DUTY_DOUBLINGS	8

static void kdsm_duty_work(struct work_struct *work)
{
	kdsm_duty_run(container_of(work, struct kdsm_duty, now));
}

static enum hrtimer_restart kdsm_duty_is_due(struct hrtimer *timer)
{
	kdsm_duty_now(container_of(timer, struct kdsm_duty, later));
	return HRTIMER_NORESTART;
}

void kdsm_duty_init(struct kdsm_duty *duty, struct kdsm_lock *lock, struct kdsm_line *line,
		    bool (*round)(struct kdsm_duty *duty, struct kdsm_try *try))
{
	duty->lock = lock;
	duty->line = line;
	duty->round = round;
	duty->workqueue = lock->locks->region->cluster->deaths->workqueue;
	INIT_WORK(&duty->now, kdsm_duty_work);
	hrtimer_setup(&duty->later, kdsm_duty_is_due, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}

void kdsm_duty_now(struct kdsm_duty *duty)
{
	if (!READ_ONCE(duty->stopped))
		queue_work(duty->workqueue, &duty->now);
}

void kdsm_duty_within(struct kdsm_duty *duty, u64 delay)
{
	ktime_t time = ns_to_ktime(delay);

	/* An earlier time stays: to run for nothing does no harm. */
	if (!READ_ONCE(duty->stopped) &&
	    (!hrtimer_is_queued(&duty->later) || hrtimer_get_remaining(&duty->later) > time))
		hrtimer_start(&duty->later, time, HRTIMER_MODE_REL_SOFT);
}

void kdsm_duty_stop(struct kdsm_duty *duty)
{
	WRITE_ONCE(duty->stopped, true);
	/* Those that run now may not have seen that, and start the other one once more. */
	cancel_work_sync(&duty->now);
	hrtimer_cancel(&duty->later);
	cancel_work_sync(&duty->now);
}

/*
 * The time until the next try, in ns, or 0. The pauses grow while tries for the same fail: the work
 * has a high priority, and must not keep a processor from what the lock waits for.
 */
static u64 kdsm_duty_pause(struct kdsm_duty *duty, const struct kdsm_try *try)
{
	if (!try->delay || try->what != duty->what)
		duty->fails = 0;
	duty->what = try->what;
	if (!try->delay)
		return 0;
	duty->fails = min(duty->fails + 1, KDSM_DUTY_DOUBLINGS);
	return max_t(u64, try->delay, KDSM_DUTY_PAUSE << (duty->fails - 1));
}

void kdsm_duty_run(struct kdsm_duty *duty)
{
	struct kdsm_try try;
	u64 delay;
	int runs;

	if (atomic_fetch_inc(&duty->runs))
		return;
	do {
		runs = atomic_read(&duty->runs);
		try = (struct kdsm_try) { };
		while (duty->round(duty, &try))
			;
		delay = kdsm_duty_pause(duty, &try);
	} while (atomic_sub_return(runs, &duty->runs));
	if (delay)
		kdsm_duty_within(duty, delay);
}
