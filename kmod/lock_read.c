// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a node that read. The node is a reader as long as any of them is
 * (lock_rw.c): the first has it become one, the last has it be none. In between others
 * may join without the network, but only T_L times of the last level, or threads
 * that come one after the other would keep writers out for ever; those that come then wait
 * until all are out, and the node asks anew.
 *
 * That has a mutex of its own, so that who reads does not wait for those that write,
 * who hold theirs over the network. A thread that reads is known by its entry in a list.
 * If it dies, or its file is closed, it just does not read any more.
 *
 * In a region of policy release, who opens the counters leaves a signature first, as it does
 * before the lock goes to another node (lock_sign.c), and the counter says who that was. The
 * first thread of a node does not read before that is adopted.
 *
 * What a writer does here is with the lock's mutex: once the node has the lock it
 * closes the counters before a thread may write, and opens them before the lock stays here
 * unused, or goes to another node, unless that is to write at once.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "lock.h"
#include "lock_read.h"
#include "region.h"

/* Threads that read are looked after so often. */
#define KDSM_READ_CHECK		(HZ / 10)
/* What the network did not do is tried again after so long. */
#define KDSM_READ_RETRY		msecs_to_jiffies(2)
/* A node that waits asks again after so long. */
#define KDSM_READ_ASK		HZ
/* Who waits for a node that does not answer is told so after so long. */
#define KDSM_READ_GIVE_UP	(10 * HZ)

struct kdsm_reader {
	struct list_head link;
	u32 thread;
	bool waits, done;
	int status;		/* of done */
};

/* ---- bringing it forward ---- */

static void kdsm_readers_later(struct kdsm_readers *readers, unsigned long delay)
{
	mod_delayed_work(system_highpri_wq, &readers->work, delay);
}

/* The wait is over. Without error the entry stays, as that of one who reads. */
static void kdsm_reader_end_wait(struct kdsm_readers *readers, struct kdsm_reader *reader,
				 int status)
{
	if (!status || status == -EOWNERDEAD)
		list_move_tail(&reader->link, &readers->inside);
	else
		list_del(&reader->link);
	reader->status = status;
	/* Its memory may be gone as soon as the thread sees done. */
	smp_store_release(&reader->done, true);
}

static void kdsm_readers_fail(struct kdsm_readers *readers, int err)
{
	struct kdsm_reader *reader, *next;

	list_for_each_entry_safe(reader, next, &readers->waiters, link)
		kdsm_reader_end_wait(readers, reader, err);
	wake_up_all(&readers->wait);
}

/* The network did what it was asked to, or not. */
static void kdsm_readers_heard(struct kdsm_readers *readers, int err)
{
	if (!err || err == -EAGAIN || err == -EBUSY)
		readers->silent = 0;
	else if (!readers->silent)
		readers->silent = jiffies | 1;
	else if (time_after(jiffies, readers->silent + KDSM_READ_GIVE_UP))
		kdsm_readers_fail(readers, -EHOSTDOWN);
}

/* May one more read, now that the node may? */
static bool kdsm_readers_may_join(struct kdsm_readers *readers)
{
	const struct kdsm_lock *lock = readers->lock;

	return readers->entries <=
	       kdsm_tree_t_l(READ_ONCE(lock->settings.t_l[lock->levels - 1]));
}

/* The word tells that threads of this node read. */
static void kdsm_readers_show(struct kdsm_readers *readers)
{
	if (list_empty(&readers->inside))
		atomic64_andnot(KDSM_LOCK_READERS, readers->lock->state);
	else
		atomic64_or(KDSM_LOCK_READERS, readers->lock->state);
}

/* What a thread gets that reads, with the node. */
static int kdsm_readers_status(const struct kdsm_readers *readers)
{
	if (readers->rw.found & KDSM_RW_LOST)
		return -ENOTRECOVERABLE;
	return readers->rw.found & KDSM_RW_DEAD ? -EOWNERDEAD : 0;
}

/* See what writers wrote, before any thread of this node reads. */
static int kdsm_readers_adopt(struct kdsm_readers *readers)
{
	struct kdsm_lock *lock = readers->lock;
	u32 id = readers->rw.found & KDSM_RW_ID;
	int err = 0;

	if (readers->adopted)
		return 0;
	if (id && id <= readers->rw.nodes && lock->sign) {
		mutex_lock(&lock->mutex);
		/* What it does with the signature that is there is done anew then. */
		kdsm_lock_unpublish(lock);
		err = kdsm_lock_adopt_from(lock, id - 1);
		mutex_unlock(&lock->mutex);
	}
	readers->adopted = !err;
	return err;
}

static void kdsm_readers_let_in(struct kdsm_readers *readers)
{
	struct kdsm_reader *reader, *next;
	bool any = false;

	list_for_each_entry_safe(reader, next, &readers->waiters, link) {
		if (!kdsm_readers_may_join(readers))
			break;
		readers->entries++;
		kdsm_reader_end_wait(readers, reader, kdsm_readers_status(readers));
		any = true;
	}
	if (any)
		wake_up_all(&readers->wait);
}

static int kdsm_readers_advance(struct kdsm_readers *readers)
{
	struct kdsm_rw *rw = &readers->rw;
	int err = 0;

	lockdep_assert_held(&readers->mutex);
	WRITE_ONCE(readers->arrived, false);
	for (;;) {
		switch (kdsm_rw_state(rw)) {
		case KDSM_RW_NONE:
			if (list_empty(&readers->waiters))
				goto done;
			err = kdsm_rw_enter(rw, false);
			break;
		case KDSM_RW_IN:
			if (!list_empty(&readers->waiters)) {
				err = kdsm_readers_adopt(readers);
				if (err)
					break;
			}
			kdsm_readers_let_in(readers);
			if (!list_empty(&readers->inside)) {
				/* Whether they live. Mostly it is under way already. */
				queue_delayed_work(system_highpri_wq, &readers->work,
						   KDSM_READ_CHECK);
				goto done;
			}
			readers->entries = 0;
			readers->adopted = false;
			err = kdsm_rw_leave(rw);
			break;
		case KDSM_RW_WAITING:
			kdsm_readers_later(readers, KDSM_READ_ASK);
			goto done;
		default:
			kdsm_readers_later(readers, KDSM_READ_RETRY);
			goto done;
		}
		kdsm_readers_heard(readers, err);
		if (err) {
			kdsm_readers_later(readers, KDSM_READ_RETRY);
			break;
		}
	}
done:
	kdsm_readers_show(readers);
	return err;
}

/* Those that died do not read. */
static void kdsm_readers_reap(struct kdsm_readers *readers)
{
	struct kdsm_reader *reader, *next;

	list_for_each_entry_safe(reader, next, &readers->inside, link) {
		/* One whose wait has just ended sees to itself. */
		if (reader->waits || kdsm_lock_thread_lives(readers->lock->locks, reader->thread))
			continue;
		readers->stats[KDSM_LOCK_STAT_DEAD]++;
		list_del(&reader->link);
		kfree(reader);
	}
}

static void kdsm_readers_work(struct work_struct *work)
{
	struct kdsm_readers *readers = container_of(work, struct kdsm_readers, work.work);

	mutex_lock(&readers->mutex);
	kdsm_readers_reap(readers);
	/* If it has not asked that does nothing. */
	kdsm_readers_heard(readers, kdsm_rw_poll(&readers->rw));
	kdsm_readers_advance(readers);
	mutex_unlock(&readers->mutex);
}

void kdsm_readers_check(struct kdsm_readers *readers)
{
	mutex_lock(&readers->mutex);
	kdsm_readers_reap(readers);
	kdsm_readers_advance(readers);
	mutex_unlock(&readers->mutex);
}

/* ---- what the counters say, in any context ---- */

static void kdsm_readers_granted(struct kdsm_rw *rw)
{
	struct kdsm_readers *readers = rw->owner;

	WRITE_ONCE(readers->arrived, true);
	/* The first thread sees to it; if there is none, the work. */
	if (wq_has_sleeper(&readers->wait))
		wake_up_all(&readers->wait);
	else
		kdsm_readers_later(readers, 0);
}

static void kdsm_readers_told(struct kdsm_rw *rw)
{
	struct kdsm_readers *readers = rw->owner;

	mod_delayed_work(system_highpri_wq, &readers->lock->work, 0);
}

static void kdsm_readers_home(struct kdsm_rw *rw)
{
	struct kdsm_readers *readers = rw->owner;

	mod_delayed_work(system_highpri_wq, &readers->home, 0);
}

static void kdsm_readers_home_work(struct work_struct *work)
{
	struct kdsm_readers *readers = container_of(work, struct kdsm_readers, home.work);

	if (!kdsm_rw_home_work(&readers->rw))
		queue_delayed_work(system_highpri_wq, &readers->home, KDSM_READ_CHECK);
}

static int kdsm_readers_join(struct kdsm_rw *rw, unsigned int node)
{
	struct kdsm_readers *readers = rw->owner;

	return kdsm_lock_join_at(readers->lock, node);
}

static const struct kdsm_rw_ops kdsm_readers_ops = {
	.granted = kdsm_readers_granted,
	.told = kdsm_readers_told,
	.home = kdsm_readers_home,
	.join = kdsm_readers_join,
};

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
		readers->entries = 0;
		err = kdsm_rw_enter(rw, true);
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
	err = wait_event_interruptible_hrtimeout(readers->wait,
						 kdsm_reader_is_called(readers, reader),
						 ns_to_ktime(timeout));
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
	struct kdsm_rw_stats *rw = &readers->rw.stats;
	unsigned int i;
	u64 longest;

	mutex_lock(&readers->mutex);
	longest = max(stats[KDSM_LOCK_STAT_LONGEST], readers->stats[KDSM_LOCK_STAT_LONGEST]);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		stats[i] += readers->stats[i];
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		waits[i] += readers->waits[i];
	stats[KDSM_LOCK_STAT_LONGEST] = longest;
	stats[KDSM_LOCK_STAT_ATOMICS] += rw->atomics;
	stats[KDSM_LOCK_STAT_MESSAGES] += rw->messages;
	stats[KDSM_LOCK_STAT_SWITCHES] = rw->switches;
	stats[KDSM_LOCK_STAT_READERS_IN_ROW] = rw->row;
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
	err = kdsm_rw_open(&readers->rw);
	if (!err) {
		lock->closed = false;
		lock->row = 0;
	}
	return err;
}

/* ---- start and stop ---- */

struct kdsm_readers *kdsm_readers_create(struct kdsm_lock *lock, const struct kdsm_rw *model)
{
	struct kdsm_readers *readers = kzalloc(sizeof(*readers), GFP_KERNEL_ACCOUNT);
	int err;

	if (!readers)
		return ERR_PTR(-ENOMEM);
	readers->lock = lock;
	readers->rw = *model;
	readers->rw.ops = &kdsm_readers_ops;
	readers->rw.owner = readers;
	err = kdsm_rw_init(&readers->rw);
	if (err) {
		kfree(readers);
		return ERR_PTR(err);
	}
	mutex_init(&readers->mutex);
	INIT_LIST_HEAD(&readers->inside);
	INIT_LIST_HEAD(&readers->waiters);
	init_waitqueue_head(&readers->wait);
	INIT_DELAYED_WORK(&readers->work, kdsm_readers_work);
	INIT_DELAYED_WORK(&readers->home, kdsm_readers_home_work);
	return readers;
}

void kdsm_readers_stop(struct kdsm_readers *readers)
{
	cancel_delayed_work_sync(&readers->home);
	cancel_delayed_work_sync(&readers->work);
}

void kdsm_readers_destroy(struct kdsm_readers *readers)
{
	struct kdsm_reader *reader, *next;

	kdsm_readers_stop(readers);
	list_for_each_entry_safe(reader, next, &readers->inside, link)
		kfree(reader);
	kdsm_rw_exit(&readers->rw);
	kfree(readers);
}
