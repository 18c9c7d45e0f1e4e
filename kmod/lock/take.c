// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that lock and unlock by a call. A thread that has to wait stands in a line, and sends for
 * the lock itself while it is the first; see side.c.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "lock/lock.h"

/* ---- to lock ---- */

/* Without the mutex: wait as long as the thread does not have the lock. Returns the status. */
static int kdsm_take_wait(struct kdsm_side *side, struct kdsm_waiter *waiter, u64 timeout)
{
	struct kdsm_lock *lock = side->duty.lock;
	int err = 0;

	while (!kdsm_waiter_is_done(waiter) && !err) {
		kdsm_duty_run(&side->duty);
		if (kdsm_waiter_is_done(waiter))
			break;
		err = waiter->try ? -EBUSY : kdsm_line_sleep(&side->line, waiter, timeout);
	}
	if (kdsm_waiter_is_done(waiter))
		return waiter->status;
	mutex_lock(&lock->mutex);
	if (!waiter->done)
		kdsm_side_end(side, waiter, err);
	/* The word says whether threads wait. */
	kdsm_side_kick(side);
	mutex_unlock(&lock->mutex);
	return waiter->status;
}

/* A thread that a signal interrupted, and that calls again soon, has the place that it had. */
static u64 kdsm_take_place(struct kdsm_lock_owner *owner, u32 number, u64 now)
{
	u64 place = owner->place;

	owner->place = 0;
	return place && owner->waited == number && now - owner->left < NSEC_PER_SEC ? place : now;
}

int kdsm_lock_take(struct kdsm_lock *lock, struct kdsm_lock_owner *owner, u32 flags, u64 timeout)
{
	struct kdsm_side *side = flags & KDSM_LOCK_READ ? &lock->readers : &lock->writers;
	struct kdsm_waiter waiter = {
		.thread = owner->number, .try = flags & KDSM_LOCK_TRY, .since = ktime_get_ns(),
	};
	int err = 0;

	if (side->reads)
		waiter.reader = kzalloc(sizeof(*waiter.reader), GFP_KERNEL_ACCOUNT);
	if (side->reads && !waiter.reader)
		return -ENOMEM;
	waiter.place = kdsm_take_place(owner, lock->number, waiter.since);
	mutex_lock(&lock->mutex);
	/* The thread lost the lock, and did not unlock it. */
	if (!side->reads && lock->forfeited == owner->number)
		lock->forfeited = 0;
	if (KDSM_LOCK_OWNER(atomic64_read(lock->word.state)) == owner->number ||
	    kdsm_readers_have(lock, owner->number))
		err = -EDEADLK;
	else if (lock->lost)
		err = -ENOTRECOVERABLE;
	if (!err) {
		kdsm_line_join(&side->line, &waiter);
		if (side->here && side->adopted)
			kdsm_side_kick(side);
	}
	mutex_unlock(&lock->mutex);
	err = err ?: kdsm_take_wait(side, &waiter, timeout);
	if (err == -EINTR) {
		owner->waited = lock->number;
		owner->place = waiter.place;
		owner->left = ktime_get_ns();
	}
	if (!waiter.is_inside)
		kfree(waiter.reader);
	return err;
}

/* ---- to unlock ---- */

/* With the mutex: whether the thread has the lock. The word is frozen then. */
static bool kdsm_lock_owned(struct kdsm_lock *lock, u32 thread)
{
	u32 owner;

	if (!lock->writers.here || !kdsm_turn_is_here(&lock->turn))
		return false;
	owner = kdsm_word_freeze(&lock->word);
	if (owner == thread)
		return true;
	kdsm_lock_write(lock, owner);
	return false;
}

int kdsm_lock_give(struct kdsm_lock *lock, u32 thread)
{
	int err = -EPERM;

	mutex_lock(&lock->mutex);
	if (lock->forfeited == thread) {
		lock->forfeited = 0;
		err = -EHOSTDOWN;
	} else if (kdsm_lock_owned(lock, thread)) {
		/* The data that it guards are as the dead owner left them. */
		lock->lost |= lock->dead;
		lock->dead = false;
		kdsm_word_set(&lock->word, 0, KDSM_LOCK_WAITERS);
		kdsm_side_kick(&lock->writers);
		err = 0;
	}
	mutex_unlock(&lock->mutex);
	return err;
}

int kdsm_lock_consistent(struct kdsm_lock *lock, u32 thread)
{
	int err = -EPERM;

	mutex_lock(&lock->mutex);
	if (kdsm_lock_owned(lock, thread)) {
		err = lock->dead ? 0 : -EINVAL;
		lock->dead = false;
		kdsm_lock_write(lock, thread);
	}
	mutex_unlock(&lock->mutex);
	return err;
}

int kdsm_read_give(struct kdsm_lock *lock, u32 thread)
{
	struct kdsm_reader *reader;
	int err = -EPERM;

	mutex_lock(&lock->mutex);
	reader = kdsm_readers_find(lock, thread);
	if (reader) {
		err = reader->lost ? -EHOSTDOWN : 0;
		list_del(&reader->link);
	}
	/* Also without: the thread may have cleared its slot. */
	kdsm_side_kick(&lock->readers);
	mutex_unlock(&lock->mutex);
	kfree(reader);
	return err;
}
