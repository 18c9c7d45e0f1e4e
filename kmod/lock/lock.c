// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a node take turns at a lock.
 *
 * What is between nodes is the tree's business (lock_tree.c): as long as that says
 * HELD, the lock is at this node. Then the lock word says which thread has it, and
 * programs change it themselves as long as no flag but AT_NODE is set. Under the mutex
 * the module first freezes the word, by setting WAITERS: whatever a program that keeps
 * to the rules does after that is a call. So what is read then stays, and what the
 * module writes replaces nothing. A program that does not keep to the rules harms the
 * users of this lock: of the word only the number of a thread is taken, and that has
 * to be one that lives, or the lock's owner counts as dead.
 *
 * Whoever has the mutex brings the lock forward (kdsm_lock_step()): a waiting thread, a
 * thread that unlocks, or the work, where nobody is there to do it.
 */
#include <linux/err.h>
#include <linux/ktime.h>

#include "death.h"
#include "lock/lock.h"
#include "wait.h"
#include "region/region.h"
#include "trace.h"

/* An owner that others wait for is looked after so often. */
#define KDSM_LOCK_CHECK		(HZ / 10)
/* What the network did not do is tried again after so long. */
#define KDSM_LOCK_RETRY		msecs_to_jiffies(2)
/* Every so many polls of a waiting node it asks all others. */
#define KDSM_LOCK_LOOK		10

/* For events. */
static u32 kdsm_lock_region(const struct kdsm_lock *lock)
{
	return lock->locks->region->id;
}

/* ---- the word ---- */

/* Nobody else changes the word from now on. Who has the lock: a thread, or 0. */
static u32 kdsm_lock_freeze(struct kdsm_lock *lock)
{
	lockdep_assert_held(&lock->mutex);
	return KDSM_LOCK_OWNER(atomic64_fetch_or(KDSM_LOCK_WAITERS, lock->state));
}

/* Only the readers' flag stays, which is of another mutex (lock_read.c). */
static void kdsm_lock_store(struct kdsm_lock *lock, u64 state)
{
	s64 old = atomic64_read(lock->state);

	/* With release semantics: what was done before is seen by who takes it next. */
	while (!atomic64_try_cmpxchg_release(lock->state, &old,
					     state | (old & KDSM_LOCK_READERS)))
		;
}

/* Where programs may go on by themselves, they do so after this. */
static void kdsm_lock_write(struct kdsm_lock *lock, u32 owner)
{
	u64 state = owner;

	if (kdsm_tree_state(&lock->tree) == KDSM_QUEUE_HELD)
		state |= KDSM_LOCK_AT_NODE;
	kdsm_lock_unpublish(lock);
	if (!list_empty(&lock->waiters))
		state |= KDSM_LOCK_WAITERS;
	if (!kdsm_tree_can_idle(&lock->tree) ||
	    lock->settings.keep != KDSM_LOCK_KEEP_FOREVER || lock->readers)
		state |= KDSM_LOCK_WANTED;
	if (lock->dead)
		state |= KDSM_LOCK_DEAD;
	if (lock->lost)
		state |= KDSM_LOCK_LOST;
	lock->fresh = false;
	kdsm_lock_store(lock, state);
}

static void kdsm_lock_count_uses(struct kdsm_lock *lock)
{
	u64 uses = READ_ONCE(lock->word->uses);

	lock->stats[KDSM_LOCK_STAT_FAST] += uses - lock->uses;
	lock->uses = uses;
}

static void kdsm_lock_owner_died(struct kdsm_lock *lock, u32 owner)
{
	lock->dead = true;
	lock->stats[KDSM_LOCK_STAT_DEAD]++;
	trace_kdsm_lock_dead(kdsm_lock_region(lock), lock->number, owner);
}

/* ---- bringing it forward ---- */

static void kdsm_lock_later(struct kdsm_lock *lock, unsigned long delay)
{
	mod_delayed_work(system_highpri_wq, &lock->work, delay);
}

/* Does the owner live? Somebody waits for it. Mostly that is under way already. */
static void kdsm_lock_look_after(struct kdsm_lock *lock)
{
	if (!delayed_work_pending(&lock->work) ||
	    time_after(READ_ONCE(lock->work.timer.expires), jiffies + KDSM_LOCK_CHECK))
		kdsm_lock_later(lock, KDSM_LOCK_CHECK);
}

/* The network did what it was asked to, or not. */
static void kdsm_lock_heard(struct kdsm_lock *lock, int err)
{
	/* The home needs 10 to 30 s where it can do something about it. */
	unsigned long limit = kdsm_tree_root(&lock->tree)->recovers ? 4 * KDSM_LOCK_GIVE_UP :
								      KDSM_LOCK_GIVE_UP;

	if (!err || err == -EAGAIN)
		lock->silent = 0;
	else if (!lock->silent)
		lock->silent = jiffies | 1;
	else if (time_after(jiffies, lock->silent + limit))
		kdsm_lock_fail_waiters(lock, -EHOSTDOWN);
}

/* The lock is here and nobody has it: the thread that has waited longest does now. */
static void kdsm_lock_grant(struct kdsm_lock *lock)
{
	struct kdsm_lock_waiter *waiter =
		list_first_entry(&lock->waiters, struct kdsm_lock_waiter, link);
	u32 thread = waiter->thread;

	/* From a thread of this node, unless it has just come here. */
	if (!lock->fresh)
		lock->tree.handed[lock->levels - 1]++;
	/* What is written says whether others wait behind it, and before it goes on. */
	list_del_init(&waiter->link);
	lock->row++;
	kdsm_lock_write(lock, thread);
	trace_kdsm_lock_grant(kdsm_lock_region(lock), lock->number, thread, waiter->since);
	kdsm_lock_end_wait(lock, waiter, lock->dead ? -EOWNERDEAD : 0);
}

/*
 * It came here, by queueing or from another node, or it has been here for long. -EAGAIN:
 * what those before it wrote cannot be seen yet, so nobody gets it; the work comes back.
 */
static int kdsm_lock_arrive(struct kdsm_lock *lock)
{
	u32 flags = kdsm_tree_flags(&lock->tree);
	int err;

	/* Or a holder died, and its home gave it to this node, which may not have asked. */
	if (!lock->arrived && !lock->tree.regained)
		goto adopt;
	lock->arrived = false;
	lock->tree.regained = false;
	lock->idle_since = 0;
	lock->fresh = true;
	lock->polls = 0;
	lock->silent = 0;
	lock->dead = flags & KDSM_BATON_DEAD;
	lock->lost |= !!(flags & KDSM_BATON_LOST);
	lock->closed = lock->readers && flags & KDSM_BATON_CLOSED;
	lock->row = lock->closed ? flags / KDSM_BATON_ROW : 0;
	kdsm_lock_came(lock);
adopt:
	err = kdsm_lock_adopt(lock);
	if (err)
		kdsm_lock_later(lock, KDSM_LOCK_RETRY);
	return err;
}

/* Does it stay here though nobody has it? */
static bool kdsm_lock_may_stay(struct kdsm_lock *lock)
{
	u64 keep = lock->settings.keep, now;

	if (!kdsm_tree_can_idle(&lock->tree))
		return false;
	/* What another node is to be told would be forgotten if it were let go. */
	if (lock->dead || lock->lost || keep == KDSM_LOCK_KEEP_FOREVER)
		return true;
	now = ktime_get_ns();
	if (!lock->idle_since)
		lock->idle_since = now;
	if (now - lock->idle_since >= keep)
		return false;
	kdsm_lock_later(lock, nsecs_to_jiffies(lock->idle_since + keep - now) + 1);
	return true;
}

/* Readers are excluded, and another node may write before they are let in? */
static bool kdsm_lock_may_pass_closed(struct kdsm_lock *lock)
{
	return lock->closed && lock->row < lock->settings.t_w && kdsm_tree_is_wanted(&lock->tree);
}

/* Let it go, to another node or for good. The word says so before. */
static int kdsm_lock_leave(struct kdsm_lock *lock)
{
	bool keep = lock->dead || lock->lost || lock->settings.keep;
	enum kdsm_queue_state state;
	u32 flags = 0;
	int err;

	if (kdsm_lock_may_pass_closed(lock)) {
		lock->passing = true;
	} else if (!lock->passing) {
		err = kdsm_lock_admit(lock);
		kdsm_lock_heard(lock, err);
		if (err)
			return err;
	}
	/* A lock that was idle for as long as it may be goes. */
	if (lock->idle_since && !lock->dead && !lock->lost)
		keep = false;
	if (lock->dead)
		flags |= KDSM_BATON_DEAD;
	if (lock->lost)
		flags |= KDSM_BATON_LOST;
	if (lock->passing) {
		/* To a node that waits. If there is none after all they are let in then. */
		flags |= KDSM_BATON_CLOSED | lock->row * KDSM_BATON_ROW;
		keep = true;
	}
	kdsm_lock_store(lock, lock->lost ? KDSM_LOCK_LOST : 0);
	err = kdsm_tree_leave(&lock->tree, keep, flags);
	kdsm_lock_heard(lock, err);
	if (err)
		return err;
	lock->passing = false;
	state = kdsm_tree_state(&lock->tree);
	trace_kdsm_lock_leave(kdsm_lock_region(lock), lock->number, state);
	if (state == KDSM_QUEUE_NONE) {
		lock->dead = false;
		if (lock->closed)
			kdsm_rw_pass(&lock->readers->rw);
		lock->closed = false;
	}
	return 0;
}

/*
 * One step. True: there may be another. Errors of the network are tried again later
 * by the work; *err is for the thread that asked for it.
 */
static bool kdsm_lock_step(struct kdsm_lock *lock, int *err)
{
	enum kdsm_queue_state state = kdsm_tree_state(&lock->tree);
	u32 owner;

	switch (state) {
	case KDSM_QUEUE_NONE:
	case KDSM_QUEUE_PARTLY:
		if (list_empty(&lock->waiters) || lock->lost) {
			if (state == KDSM_QUEUE_NONE)
				break;
			*err = kdsm_lock_leave(lock);
		} else {
			lock->arrived = true;
			lock->idle_since = 0;
			*err = kdsm_tree_enter(&lock->tree);
			trace_kdsm_lock_enter(kdsm_lock_region(lock), lock->number,
					      lock->tree.at, *err);
			/* It is waited for, but not for ever. */
			if (*err && kdsm_tree_can_do_without(&lock->tree)) {
				kdsm_lock_heard(lock, *err);
				*err = -EAGAIN;
			}
		}
		if (*err)
			kdsm_lock_later(lock, KDSM_LOCK_RETRY);
		return !*err;
	case KDSM_QUEUE_ENTERING:
		break;
	case KDSM_QUEUE_DOUBT:
	case KDSM_QUEUE_WAITING:
		/* The work is called again, and does this; see kdsm_lock_work(). */
		break;
	case KDSM_QUEUE_LEAVING:
		*err = kdsm_lock_leave(lock);
		if (*err)
			kdsm_lock_later(lock, KDSM_LOCK_RETRY);
		return !*err;
	case KDSM_QUEUE_HELD:
		*err = kdsm_lock_arrive(lock);
		if (*err)
			return false;
		owner = kdsm_lock_freeze(lock);
		kdsm_lock_count_uses(lock);
		if (owner && kdsm_lock_thread_lives(lock->locks, owner)) {
			if (!list_empty(&lock->waiters) || kdsm_tree_is_wanted(&lock->tree))
				kdsm_lock_look_after(lock);
			kdsm_lock_write(lock, owner);
			break;
		}
		if (owner)
			kdsm_lock_owner_died(lock, owner);
		if (lock->lost)
			kdsm_lock_fail_waiters(lock, -ENOTRECOVERABLE);
		if (!list_empty(&lock->waiters) && !kdsm_lock_exclude(lock, err)) {
			kdsm_lock_heard(lock, *err);
			kdsm_lock_write(lock, 0);
			kdsm_lock_later(lock, *err ? KDSM_LOCK_RETRY : KDSM_LOCK_CHECK);
			/* What was told in between was to be seen to at once. */
			return !*err && kdsm_rw_is_told(&lock->readers->rw);
		}
		if (!list_empty(&lock->waiters) &&
		    kdsm_tree_may_pass(&lock->tree, kdsm_lock_waiting(lock))) {
			lock->idle_since = 0;
			kdsm_lock_grant(lock);
			if (!list_empty(&lock->waiters) || kdsm_tree_is_wanted(&lock->tree))
				kdsm_lock_look_after(lock);
			break;
		}
		if (list_empty(&lock->waiters) && !kdsm_lock_may_pass_closed(lock)) {
			*err = kdsm_lock_admit(lock);
			kdsm_lock_heard(lock, *err);
			if (*err) {
				kdsm_lock_later(lock, KDSM_LOCK_RETRY);
				return false;
			}
		}
		if (list_empty(&lock->waiters) && kdsm_lock_may_stay(lock)) {
			kdsm_lock_write(lock, 0);
			/* Who was told in between did not see the flag. */
			return kdsm_tree_is_wanted(&lock->tree);
		}
		*err = kdsm_lock_leave(lock);
		if (*err)
			kdsm_lock_later(lock, KDSM_LOCK_RETRY);
		return !*err;
	}
	return false;
}

/*
 * If the home has given up this node, the lock is another's, or soon will be. A thread
 * that had it is told when it unlocks it; one that waits goes on.
 */
static void kdsm_lock_look_out(struct kdsm_lock *lock)
{
	bool had;

	lockdep_assert_held(&lock->mutex);
	if (!kdsm_tree_is_out(&lock->tree, &had) || !had)
		return;
	lock->forfeited = kdsm_lock_freeze(lock) ?: lock->forfeited;
	lock->dead = false;
	lock->arrived = false;
	kdsm_lock_store(lock, lock->lost ? KDSM_LOCK_LOST : 0);
}

/* Is there nobody who could give this node the lock? */
static bool kdsm_lock_is_orphan(struct kdsm_lock *lock)
{
	const struct kdsm_queue *queue = kdsm_tree_root(&lock->tree);
	struct kdsm_peer_info info;

	if (queue->home == queue->node || kdsm_tree_state(&lock->tree) == KDSM_QUEUE_HELD)
		return false;
	kdsm_fabric_peer(queue->fabric, queue->home, &info);
	return info.state == KDSM_PEER_DOWN;
}

static int kdsm_lock_advance(struct kdsm_lock *lock)
{
	int err = 0;

	lockdep_assert_held(&lock->mutex);
	kdsm_lock_look_out(lock);
	for (;;) {
		while (kdsm_lock_step(lock, &err))
			;
		if (list_empty(&lock->waiters))
			break;
		/* If it came meanwhile, one of them was called to see to it. */
		if (lock->lost)
			kdsm_lock_fail_waiters(lock, -ENOTRECOVERABLE);
		else if (kdsm_lock_is_orphan(lock))
			kdsm_lock_fail_waiters(lock, -EHOSTDOWN);
		else
			break;
	}
	/* What was lost on the way is asked for again; the first time soon. */
	switch (kdsm_tree_state(&lock->tree)) {
	case KDSM_QUEUE_DOUBT:
		kdsm_lock_later(lock, KDSM_LOCK_RETRY);
		break;
	case KDSM_QUEUE_WAITING:
		kdsm_lock_later(lock, kdsm_tree_is_published(&lock->tree) ?
				      KDSM_LOCK_CHECK : KDSM_LOCK_RETRY);
		break;
	default:
		break;
	}
	return err;
}

static void kdsm_lock_work(struct work_struct *work)
{
	struct kdsm_lock *lock = container_of(work, struct kdsm_lock, work.work);
	enum kdsm_queue_state state;
	bool look;
	int err;

	mutex_lock(&lock->mutex);
	state = kdsm_tree_state(&lock->tree);
	if (state == KDSM_QUEUE_WAITING || state == KDSM_QUEUE_DOUBT) {
		look = ++lock->polls % KDSM_LOCK_LOOK == 0;
		err = kdsm_tree_poll(&lock->tree, look);
		if (look || err)
			kdsm_lock_heard(lock, err);
	}
	kdsm_lock_advance(lock);
	mutex_unlock(&lock->mutex);
}

void kdsm_lock_look(struct kdsm_lock *lock)
{
	kdsm_lock_later(lock, 0);
}

void kdsm_lock_check(struct kdsm_lock *lock)
{
	if (lock->readers)
		kdsm_readers_check(lock->readers);
	mutex_lock(&lock->mutex);
	kdsm_lock_advance(lock);
	mutex_unlock(&lock->mutex);
}

void kdsm_lock_let_go(struct kdsm_lock *lock)
{
	u32 owner;

	if (lock->readers)
		kdsm_readers_let_go(lock->readers);
	mutex_lock(&lock->mutex);
	if (kdsm_tree_state(&lock->tree) == KDSM_QUEUE_HELD && !kdsm_lock_arrive(lock)) {
		owner = kdsm_lock_freeze(lock);
		if (owner || !list_empty(&lock->waiters) || lock->dead || lock->lost) {
			kdsm_lock_write(lock, owner);
		} else {
			/* As if it had been idle for long. */
			lock->idle_since = 1;
			if (kdsm_lock_leave(lock))
				kdsm_lock_later(lock, KDSM_LOCK_RETRY);
		}
	}
	mutex_unlock(&lock->mutex);
}

/* ---- what the queues say, in any context ---- */

static void kdsm_lock_granted(struct kdsm_queue *queue)
{
	struct kdsm_lock *lock = queue->owner;

	/* The first thread sees to it; if there is none, the work. */
	if (!kdsm_lock_call(lock))
		kdsm_lock_later(lock, 0);
}

static void kdsm_lock_wanted(struct kdsm_queue *queue)
{
	kdsm_lock_later(queue->owner, 0);
}

const struct kdsm_queue_ops kdsm_lock_queue_ops = {
	.granted = kdsm_lock_granted,
	.wanted = kdsm_lock_wanted,
	.leaving = kdsm_lock_leaving,
	.missed = kdsm_lock_missed,
};

/* ---- threads ---- */

/* With the mutex. 0 or -EOWNERDEAD: the thread has it. -EBUSY: it has to wait. */
static int kdsm_lock_try(struct kdsm_lock *lock, u32 thread, bool remote)
{
	u32 owner;
	int err;

	kdsm_lock_look_out(lock);
	if (lock->lost)
		return -ENOTRECOVERABLE;
	if (kdsm_tree_state(&lock->tree) == KDSM_QUEUE_NONE && remote &&
	    list_empty(&lock->waiters)) {
		lock->arrived = true;
		lock->idle_since = 0;
		err = kdsm_tree_try(&lock->tree);
		if (err)
			return err;
	}
	if (kdsm_tree_state(&lock->tree) != KDSM_QUEUE_HELD)
		return -EBUSY;
	if (kdsm_lock_arrive(lock))
		return -EBUSY;
	if (lock->lost)
		return -ENOTRECOVERABLE;
	owner = kdsm_lock_freeze(lock);
	kdsm_lock_count_uses(lock);
	if (owner == thread) {
		kdsm_lock_write(lock, owner);
		return -EDEADLK;
	}
	if (owner && !kdsm_lock_thread_lives(lock->locks, owner)) {
		kdsm_lock_owner_died(lock, owner);
		owner = 0;
	}
	/* Those that wait were first; and so was another node, if this has passed it on. */
	if (owner || !list_empty(&lock->waiters)) {
		kdsm_lock_write(lock, owner);
		return -EBUSY;
	}
	err = 0;
	if (!kdsm_lock_exclude(lock, &err)) {
		kdsm_lock_write(lock, 0);
		return err ?: -EBUSY;
	}
	lock->row++;
	lock->idle_since = 0;
	kdsm_tree_count(&lock->tree, 1);
	kdsm_lock_write(lock, thread);
	return lock->dead ? -EOWNERDEAD : 0;
}

/* With the mutex, which is given back. Queue behind the others; the status of the wait. */
static int kdsm_lock_wait(struct kdsm_lock *lock, u32 thread, u64 timeout)
{
	struct kdsm_lock_waiter waiter;
	int err;

	kdsm_lock_join(lock, &waiter, thread);
	for (;;) {
		err = kdsm_lock_advance(lock);
		if (kdsm_lock_waited(&waiter))
			break;
		/* Who would have to wait for a network that is down is told so. */
		if (err && err != -EAGAIN &&
		    kdsm_tree_state(&lock->tree) != KDSM_QUEUE_LEAVING) {
			kdsm_lock_end_wait(lock, &waiter, err);
			break;
		}
		mutex_unlock(&lock->mutex);
		err = kdsm_lock_sleep(lock, &waiter, timeout);
		if (kdsm_lock_waited(&waiter))
			return waiter.status;
		mutex_lock(&lock->mutex);
		if (kdsm_lock_waited(&waiter))
			break;
		if (err) {
			kdsm_lock_end_wait(lock, &waiter, err);
			/* The word says that there are waiters. */
			kdsm_lock_advance(lock);
			break;
		}
	}
	mutex_unlock(&lock->mutex);
	return waiter.status;
}

int kdsm_lock_take(struct kdsm_lock *lock, u32 thread, u32 flags, u64 timeout)
{
	int err;

	if (lock->readers && kdsm_readers_have(lock->readers, thread))
		return -EDEADLK;
	if (mutex_lock_interruptible(&lock->mutex))
		return -EINTR;
	err = kdsm_lock_try(lock, thread, flags & KDSM_LOCK_TRY);
	if (err == -EBUSY && !(flags & KDSM_LOCK_TRY))
		return kdsm_lock_wait(lock, thread, timeout);
	if (err)
		kdsm_lock_advance(lock);
	kdsm_lock_count(lock, err);
	mutex_unlock(&lock->mutex);
	return err;
}

/* With the mutex: is the thread the owner? The word is frozen then. */
static bool kdsm_lock_owned(struct kdsm_lock *lock, u32 thread)
{
	u32 owner;

	if (kdsm_tree_state(&lock->tree) != KDSM_QUEUE_HELD)
		return false;
	owner = kdsm_lock_freeze(lock);
	if (owner == thread)
		return true;
	kdsm_lock_write(lock, owner);
	return false;
}

int kdsm_lock_give(struct kdsm_lock *lock, u32 thread)
{
	int err = -EPERM;

	mutex_lock(&lock->mutex);
	kdsm_lock_look_out(lock);
	if (lock->forfeited == thread) {
		lock->forfeited = 0;
		err = -EHOSTDOWN;
	} else if (kdsm_lock_owned(lock, thread)) {
		/* What it guards was left as the one that died had it. */
		if (lock->dead) {
			lock->dead = false;
			lock->lost = true;
		}
		kdsm_lock_write(lock, 0);
		kdsm_lock_advance(lock);
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

/* ---- start and stop ---- */

void kdsm_lock_init(struct kdsm_lock *lock)
{
	mutex_init(&lock->mutex);
	INIT_LIST_HEAD(&lock->waiters);
	INIT_DELAYED_WORK(&lock->work, kdsm_lock_work);
}

void kdsm_lock_exit(struct kdsm_lock *lock)
{
	if (lock->readers)
		kdsm_readers_stop(lock->readers);
	cancel_delayed_work_sync(&lock->work);
}
