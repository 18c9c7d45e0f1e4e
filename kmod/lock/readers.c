// SPDX-License-Identifier: GPL-2.0
/*
 * A node that reads. It does so as long as any of its threads does (lock_read.c): the
 * first has it become one (lock_rw.c), the last has it be none. In between others
 * may join without the network, but only T_L times of the last level, or threads
 * that come one after the other would keep writers out for ever; those that come then wait
 * until all are out, and the node asks anew.
 *
 * When the last one is out the node stays counted for a moment more, in case another comes,
 * so that threads which read one after the other do not take two atomics each. That
 * is a few times as long as an atomic takes, so a writer is not kept for much longer than
 * closing the counters takes anyway; and a lock that is not to be kept (keep is 0) is not.
 *
 * In a region of policy release, who opens the counters leaves a signature first, as it does
 * before the lock goes to another node (lock_sign.c), and the counter says who that was. The
 * first thread of a node does not read before that is adopted.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "lock/lock.h"
#include "read.h"

/* Threads that read are looked after so often. */
#define KDSM_READ_CHECK		(HZ / 10)
/* What the network did not do is tried again after so long. */
#define KDSM_READ_RETRY		msecs_to_jiffies(2)
/* A node that waits asks again after so long. */
#define KDSM_READ_ASK		HZ
/* A node stays counted without a thread that reads, in times of what that costs. */
#define KDSM_READ_LINGER	4
#define KDSM_READ_LINGER_MAX	(10 * NSEC_PER_MSEC)
/* Who waits for a node that does not answer is told so after so long. */
#define KDSM_READ_GIVE_UP	(10 * HZ)

/* ---- bringing it forward ---- */

static void kdsm_readers_later(struct kdsm_readers *readers, unsigned long delay)
{
	mod_delayed_work(system_highpri_wq, &readers->work, delay);
}

void kdsm_reader_end_wait(struct kdsm_readers *readers, struct kdsm_reader *reader, int status)
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

void kdsm_readers_heard(struct kdsm_readers *readers, int err)
{
	if (!err || err == -EAGAIN || err == -EBUSY)
		readers->silent = 0;
	else if (!readers->silent)
		readers->silent = jiffies | 1;
	else if (time_after(jiffies, readers->silent + KDSM_READ_GIVE_UP))
		kdsm_readers_fail(readers, -EHOSTDOWN);
}

bool kdsm_readers_may_join(struct kdsm_readers *readers)
{
	const struct kdsm_lock *lock = readers->lock;

	return readers->entries <=
	       kdsm_tree_t_l(READ_ONCE(lock->settings.t_l[lock->levels - 1]));
}

void kdsm_readers_end(struct kdsm_readers *readers)
{
	if (kdsm_rw_state(&readers->rw) != KDSM_RW_IN)
		return;
	WRITE_ONCE(readers->ends, true);
	kdsm_readers_later(readers, 0);
}

static enum hrtimer_restart kdsm_readers_lingered(struct hrtimer *timer)
{
	kdsm_readers_end(container_of(timer, struct kdsm_readers, linger));
	return HRTIMER_NORESTART;
}

/* Nobody reads. Does the node stay for those that may come? */
static bool kdsm_readers_linger(struct kdsm_readers *readers)
{
	u64 most = READ_ONCE(readers->lock->settings.keep);

	if (READ_ONCE(readers->ends) || readers->stopped || !most ||
	    !kdsm_readers_may_join(readers))
		return false;
	most = min3(most, KDSM_READ_LINGER * readers->cost, (u64)KDSM_READ_LINGER_MAX);
	hrtimer_start(&readers->linger, ns_to_ktime(most), HRTIMER_MODE_REL);
	return true;
}

int kdsm_readers_enter(struct kdsm_readers *readers, bool try)
{
	u64 start = ktime_get_ns();
	int err;

	readers->entries = 0;
	readers->adopted = false;
	WRITE_ONCE(readers->ends, false);
	err = kdsm_rw_enter(&readers->rw, try);
	if (kdsm_rw_state(&readers->rw) == KDSM_RW_IN)
		readers->cost += (s64)(ktime_get_ns() - start - readers->cost) / 4;
	return err;
}

/* The word tells that threads of this node read. */
static void kdsm_readers_show(struct kdsm_readers *readers)
{
	if (list_empty(&readers->inside))
		atomic64_andnot(KDSM_LOCK_READERS, readers->lock->state);
	else
		atomic64_or(KDSM_LOCK_READERS, readers->lock->state);
}

int kdsm_readers_status(const struct kdsm_readers *readers)
{
	if (readers->rw.found & KDSM_RW_LOST)
		return -ENOTRECOVERABLE;
	return readers->rw.found & KDSM_RW_DEAD ? -EOWNERDEAD : 0;
}

int kdsm_readers_adopt(struct kdsm_readers *readers)
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

int kdsm_readers_advance(struct kdsm_readers *readers)
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
			err = kdsm_readers_enter(readers, false);
			break;
		case KDSM_RW_IN:
			if (!list_empty(&readers->waiters)) {
				err = kdsm_readers_adopt(readers);
				if (err)
					break;
			}
			kdsm_readers_let_in(readers);
			if (!list_empty(&readers->inside)) {
				WRITE_ONCE(readers->ends, false);
				/* Whether they live. Mostly it is under way already. */
				queue_delayed_work(system_highpri_wq, &readers->work,
						   KDSM_READ_CHECK);
				goto done;
			}
			if (list_empty(&readers->waiters) && kdsm_readers_linger(readers))
				goto done;
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

void kdsm_readers_let_go(struct kdsm_readers *readers)
{
	mutex_lock(&readers->mutex);
	WRITE_ONCE(readers->ends, true);
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
	hrtimer_setup(&readers->linger, kdsm_readers_lingered, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	INIT_DELAYED_WORK(&readers->work, kdsm_readers_work);
	INIT_DELAYED_WORK(&readers->home, kdsm_readers_home_work);
	return readers;
}

void kdsm_readers_stop(struct kdsm_readers *readers)
{
	/* The work, if it goes on, does not start the timer again. */
	mutex_lock(&readers->mutex);
	readers->stopped = true;
	mutex_unlock(&readers->mutex);
	hrtimer_cancel(&readers->linger);
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
