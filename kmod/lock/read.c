// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a node that read. Whether the node may is in lock_readers.c.
 *
 * That has a mutex of its own, so that who reads does not wait for those that write,
 * who hold theirs over the network. A thread that reads is known by its entry in a list.
 * If it dies, or its file is closed, it just does not read any more.
 *
 * What a writer does here is with the lock's mutex: once the node has the lock it
 * closes the counters before a thread may write, and opens them before the lock stays here
 * unused, or goes to another node, unless that is to write at once.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "read.h"
#include "region/region.h"

/* ---- threads ---- */

static struct kdsm_reader *kdsm_readers_find(struct kdsm_readers *readers, u32 thread)
{
	struct kdsm_reader *reader;

	list_for_each_entry(reader, &readers->inside, link)
		if (reader->thread == thread)
			return reader;
	return NULL;
}

bool kdsm_readers_have(struct kdsm_readers *readers, u32 thread)
{
	bool have;

	mutex_lock(&readers->mutex);
	have = kdsm_readers_find(readers, thread);
	mutex_unlock(&readers->mutex);
	return have;
}

/* Read, if the thread need not wait for that. -EBUSY: it has to. */
static int kdsm_read_try(struct kdsm_readers *readers, bool remote)
{
	struct kdsm_rw *rw = &readers->rw;
	int err;

	/* Those that wait were first. */
	if (!list_empty(&readers->waiters))
		return -EBUSY;
	if (kdsm_rw_state(rw) == KDSM_RW_NONE && remote) {
		err = kdsm_readers_enter(readers, true);
		kdsm_readers_heard(readers, err);
		if (err)
			return err;
	}
	if (kdsm_rw_state(rw) != KDSM_RW_IN || !kdsm_readers_may_join(readers))
		return -EBUSY;
	err = kdsm_readers_adopt(readers);
	if (err)
		return err;
	readers->entries++;
	return kdsm_readers_status(readers);
}

static bool kdsm_reader_is_called(struct kdsm_readers *readers, struct kdsm_reader *reader)
{
	/* Pairs with the release of who ended the wait. */
	return smp_load_acquire(&reader->done) ||
	       (READ_ONCE(readers->arrived) &&
		READ_ONCE(readers->waiters.next) == &reader->link);
}

/* Until it is called; -ETIMEDOUT, -EINTR. */
static int kdsm_read_sleep(struct kdsm_readers *readers, struct kdsm_reader *reader, u64 timeout)
{
	int err;

	if (timeout >= KTIME_MAX)
		return wait_event_interruptible(readers->wait,
						kdsm_reader_is_called(readers, reader)) ?
		       -EINTR : 0;
	/* The race is the kernel's: the macro looks whether the timer has set a plain pointer. */
	err = data_race(wait_event_interruptible_hrtimeout(readers->wait,
							   kdsm_reader_is_called(readers, reader),
							   ns_to_ktime(timeout)));
	return err == -ETIME ? -ETIMEDOUT : err ? -EINTR : 0;
}

/* Behind the others; the status of the wait. */
static int kdsm_read_wait(struct kdsm_readers *readers, struct kdsm_reader *reader, u64 timeout)
{
	u64 start = ktime_get_ns(), waited;
	int err, ret;

	reader->waits = true;
	list_add_tail(&reader->link, &readers->waiters);
	for (;;) {
		err = kdsm_readers_advance(readers);
		/* Who would have to wait for a network that is down is told so. */
		if (!reader->done && err && err != -EAGAIN)
			kdsm_reader_end_wait(readers, reader, err);
		if (reader->done)
			break;
		mutex_unlock(&readers->mutex);
		waited = ktime_get_ns() - start;
		ret = timeout < KTIME_MAX && waited >= timeout ? -ETIMEDOUT :
		      kdsm_read_sleep(readers, reader, timeout - waited);
		mutex_lock(&readers->mutex);
		if (!reader->done && ret)
			kdsm_reader_end_wait(readers, reader, ret);
		if (reader->done)
			break;
	}
	reader->waits = false;
	waited = ktime_get_ns() - start;
	readers->stats[KDSM_LOCK_STAT_WAITED] += waited;
	readers->stats[KDSM_LOCK_STAT_LONGEST] =
		max(readers->stats[KDSM_LOCK_STAT_LONGEST], waited);
	readers->waits[min_t(u32, ilog2(waited | 1), KDSM_LOCK_WAITS - 1)]++;
	return reader->status;
}

int kdsm_read_take(struct kdsm_readers *readers, u32 thread, u32 flags, u64 timeout)
{
	struct kdsm_reader *reader = kzalloc(sizeof(*reader), GFP_KERNEL_ACCOUNT);
	int err = -EINTR;

	if (!reader)
		return -ENOMEM;
	reader->thread = thread;
	if (mutex_lock_interruptible(&readers->mutex))
		goto free;
	err = -EDEADLK;
	if (KDSM_LOCK_OWNER(atomic64_read(readers->lock->state)) == thread ||
	    kdsm_readers_find(readers, thread))
		goto unlock;
	err = kdsm_read_try(readers, flags & KDSM_LOCK_TRY);
	if (err == -EBUSY && !(flags & KDSM_LOCK_TRY)) {
		err = kdsm_read_wait(readers, reader, timeout);
	} else {
		if (!err || err == -EOWNERDEAD)
			list_add_tail(&reader->link, &readers->inside);
		kdsm_readers_advance(readers);
	}
	if (!err || err == -EOWNERDEAD)
		readers->stats[KDSM_LOCK_STAT_READS]++;
	else if (err == -EBUSY)
		readers->stats[KDSM_LOCK_STAT_BUSY]++;
	else if (err == -ETIMEDOUT || err == -EINTR)
		readers->stats[KDSM_LOCK_STAT_TIMEDOUT]++;
unlock:
	mutex_unlock(&readers->mutex);
free:
	if (err && err != -EOWNERDEAD)
		kfree(reader);
	return err;
}

int kdsm_read_give(struct kdsm_readers *readers, u32 thread)
{
	struct kdsm_reader *reader;

	mutex_lock(&readers->mutex);
	reader = kdsm_readers_find(readers, thread);
	if (reader) {
		list_del(&reader->link);
		/* What the network says is no matter to the thread. */
		if (list_empty(&readers->inside))
			kdsm_readers_advance(readers);
	}
	mutex_unlock(&readers->mutex);
	kfree(reader);
	return reader ? 0 : -EPERM;
}

void kdsm_readers_stats(struct kdsm_readers *readers, u64 *stats, u64 *waits)
{
	struct kdsm_rw_stats rw;
	unsigned int i;
	u64 longest;

	mutex_lock(&readers->mutex);
	longest = max(stats[KDSM_LOCK_STAT_LONGEST], readers->stats[KDSM_LOCK_STAT_LONGEST]);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		stats[i] += readers->stats[i];
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		waits[i] += readers->waits[i];
	stats[KDSM_LOCK_STAT_LONGEST] = longest;
	/* Tasks may be counting: the counters may be of different instants. */
	rw = data_race(readers->rw.stats);
	stats[KDSM_LOCK_STAT_ATOMICS] += rw.atomics;
	stats[KDSM_LOCK_STAT_MESSAGES] += rw.messages;
	stats[KDSM_LOCK_STAT_SWITCHES] = rw.switches;
	stats[KDSM_LOCK_STAT_READERS_IN_ROW] = rw.row;
	mutex_unlock(&readers->mutex);
}

/* ---- for writers ---- */

bool kdsm_lock_exclude(struct kdsm_lock *lock, int *err)
{
	struct kdsm_readers *readers = lock->readers;

	lockdep_assert_held(&lock->mutex);
	if (!readers)
		return true;
	/* So many writers in a row that others may read now. */
	if (lock->closed && lock->row >= lock->settings.t_w) {
		*err = kdsm_lock_admit(lock);
		if (*err)
			return false;
	}
	if (!lock->closed) {
		kdsm_readers_end(readers);
		*err = kdsm_rw_close(&readers->rw);
		if (*err == -EBUSY)
			*err = 0;
		else if (!*err)
			lock->closed = true;
	}
	return lock->closed;
}

int kdsm_lock_admit(struct kdsm_lock *lock)
{
	struct kdsm_readers *readers = lock->readers;
	int err;

	lockdep_assert_held(&lock->mutex);
	if (!readers || (!lock->closed && !readers->rw.closing))
		return 0;
	err = kdsm_lock_publish(lock, readers->rw.node);
	if (err)
		return err;
	readers->rw.status = (lock->dead ? KDSM_RW_DEAD : 0) | (lock->lost ? KDSM_RW_LOST : 0);
	err = kdsm_rw_open(&readers->rw, lock->closed);
	if (!err) {
		lock->closed = false;
		lock->row = 0;
	}
	return err;
}
