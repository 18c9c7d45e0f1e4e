// SPDX-License-Identifier: GPL-2.0
/* Work for one lock, on the locks' own workqueue: at once or within some time. */
#include <linux/jiffies.h>

#include "death.h"
#include "lock/lock.h"
#include "region/region.h"

static void kdsm_duty_work(struct work_struct *work)
{
	kdsm_duty_run(container_of(work, struct kdsm_duty, now));
}

static void kdsm_duty_is_due(struct work_struct *work)
{
	kdsm_duty_now(container_of(work, struct kdsm_duty, later.work));
}

void kdsm_duty_init(struct kdsm_duty *duty, struct kdsm_lock *lock, struct kdsm_line *line,
		    bool (*round)(struct kdsm_duty *duty, struct kdsm_try *try))
{
	duty->lock = lock;
	duty->line = line;
	duty->round = round;
	duty->workqueue = lock->locks->region->cluster->deaths->workqueue;
	INIT_WORK(&duty->now, kdsm_duty_work);
	INIT_DELAYED_WORK(&duty->later, kdsm_duty_is_due);
}

void kdsm_duty_now(struct kdsm_duty *duty)
{
	if (!READ_ONCE(duty->stopped))
		queue_work(duty->workqueue, &duty->now);
}

void kdsm_duty_within(struct kdsm_duty *duty, u64 delay)
{
	unsigned long ticks = nsecs_to_jiffies(delay);

	if (READ_ONCE(duty->stopped))
		return;
	/* An earlier time stays: to run for nothing does no harm. */
	if (!delayed_work_pending(&duty->later) ||
	    time_after(READ_ONCE(duty->later.timer.expires), jiffies + ticks))
		mod_delayed_work(duty->workqueue, &duty->later, ticks);
}

void kdsm_duty_stop(struct kdsm_duty *duty)
{
	WRITE_ONCE(duty->stopped, true);
	/* Those that run now may not have seen that, and start the other one once more. */
	cancel_work_sync(&duty->now);
	cancel_delayed_work_sync(&duty->later);
	cancel_work_sync(&duty->now);
}

void kdsm_duty_run(struct kdsm_duty *duty)
{
	struct kdsm_try try = { };
	int runs;

	if (atomic_fetch_inc(&duty->runs))
		return;
	do {
		runs = atomic_read(&duty->runs);
		try = (struct kdsm_try) { };
		while (duty->round(duty, &try))
			;
	} while (atomic_sub_return(runs, &duty->runs));
	if (try.delay)
		kdsm_duty_within(duty, try.delay);
}
