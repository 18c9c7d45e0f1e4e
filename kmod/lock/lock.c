// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a node take turns to write under a lock.
 *
 * The turn (turn.h) says whether the lock is at this node. Then the mapped word says which thread
 * has the lock, and programs change the word themselves as long as no flag but AT_NODE is set. The
 * module first freezes the word: a program that keeps the rules makes a call from then on. A
 * program that breaks them hurts the users of this lock: of the word, the module believes only the
 * number of a thread that lives; any other number counts as a dead owner.
 *
 * kdsm_lock_settle() does what the state requires; see side.c.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/ktime.h>

#include "lock/lock.h"
#include "region/region.h"
#include "trace.h"

static u32 kdsm_lock_region(const struct kdsm_lock *lock)
{
	return lock->locks->region->id;
}

static void kdsm_lock_count_uses(struct kdsm_lock *lock)
{
	u64 uses = READ_ONCE(lock->mapped->uses);

	lock->stats[KDSM_LOCK_STAT_FAST] += uses - lock->uses;
	lock->uses = uses;
}

/* ---- the mapped word ---- */

void kdsm_lock_write(struct kdsm_lock *lock, u32 owner)
{
	u64 flags = KDSM_LOCK_AT_NODE;

	if (kdsm_line_first(&lock->writers.line))
		flags |= KDSM_LOCK_WAITERS;
	if (!kdsm_turn_is_alone(&lock->turn) || lock->settings.keep != KDSM_LOCK_KEEP_FOREVER)
		flags |= KDSM_LOCK_WANTED;
	if (lock->dead)
		flags |= KDSM_LOCK_DEAD;
	if (lock->lost)
		flags |= KDSM_LOCK_LOST;
	lock->fresh = false;
	kdsm_word_set(&lock->word, owner, flags);
}

/* The lock is not at this node any more, or about to leave it. */
static void kdsm_lock_away(struct kdsm_lock *lock)
{
	lock->writers.here = false;
	kdsm_word_set(&lock->word, 0, lock->lost ? KDSM_LOCK_LOST : 0);
}

/* ---- what the state requires; with the mutex ---- */

/* The thread that has waited longest gets the lock. */
static void kdsm_lock_grant(struct kdsm_lock *lock)
{
	struct kdsm_waiter *waiter = kdsm_line_first(&lock->writers.line);

	if (!lock->fresh)
		lock->handed[lock->levels - 1]++;
	lock->idle_since = 0;
	trace_kdsm_lock_grant(kdsm_lock_region(lock), lock->number, waiter->thread, waiter->since);
	/* The word says whether others wait, and names the owner before the owner goes on. */
	list_del_init(&waiter->link);
	kdsm_lock_write(lock, waiter->thread);
	kdsm_side_end(&lock->writers, waiter, lock->dead ? -EOWNERDEAD : 0);
}

static void kdsm_lock_came(struct kdsm_lock *lock)
{
	struct kdsm_turn *turn = &lock->turn;
	unsigned int flags;

	spin_lock_bh(&turn->lock);
	flags = turn->flags;
	lock->writers.from = turn->from;
	lock->writers.adopted = !lock->sign || turn->back;
	spin_unlock_bh(&turn->lock);
	lock->writers.here = true;
	lock->fresh = true;
	lock->writers.arrivals++;
	lock->idle_since = 0;
	lock->dead = flags & KDSM_TURN_DEAD;
	lock->lost |= !!(flags & KDSM_TURN_SPOILT);
}

bool kdsm_lock_is_orphan(const struct kdsm_lock *lock)
{
	const struct kdsm_turn *turn = &lock->turn;

	return turn->part.home != turn->part.node &&
	       kdsm_fabric_is_down(turn->part.fabric, turn->part.home);
}

/* Whether threads have waited for too long for a home that does not answer */
static bool kdsm_lock_is_silent(struct kdsm_lock *lock)
{
	enum kdsm_turn_state state = READ_ONCE(lock->turn.state);

	if (!READ_ONCE(lock->turn.missed) ||
	    (state != KDSM_TURN_ASKING && state != KDSM_TURN_WAITING))
		lock->silent = 0;
	else if (!lock->silent)
		lock->silent = jiffies | 1;
	else
		return time_after(jiffies, lock->silent + KDSM_LOCK_GIVE_UP);
	return false;
}

/* The lock is elsewhere. Returns whether there is something to send. */
static bool kdsm_lock_settle_away(struct kdsm_lock *lock)
{
	enum kdsm_turn_state state = READ_ONCE(lock->turn.state);
	unsigned int waiting = kdsm_line_count(&lock->writers.line);
	struct kdsm_waiter *waiter;
	unsigned int threads = 0;

	if (lock->lost) {
		kdsm_side_end_all(&lock->writers, -ENOTRECOVERABLE);
	} else if (state == KDSM_TURN_LOST ||
		   (state != KDSM_TURN_NONE &&
		    (kdsm_lock_is_orphan(lock) || kdsm_lock_is_silent(lock)))) {
		kdsm_side_end_all(&lock->writers, -EHOSTDOWN);
	} else if (waiting) {
		list_for_each_entry(waiter, &lock->writers.line.waiters, link) {
			threads += !waiter->try;
			waiter->tried = waiter->try;
		}
		trace_kdsm_lock_enter(kdsm_lock_region(lock), lock->number, waiting);
		kdsm_turn_want(&lock->turn, min(threads, KDSM_LOCK_T_L_MOST));
		state = KDSM_TURN_ASKING;
	} else {
		kdsm_turn_drop(&lock->turn);
	}
	return state != KDSM_TURN_NONE && state != KDSM_TURN_LOST;
}

/* No thread has or wants the lock: does it stay here, if no other node wants it? */
static bool kdsm_lock_stays(struct kdsm_lock *lock)
{
	u64 keep = lock->settings.keep, now;

	/* A free word has no room for flags, of which another node has to learn. */
	if (lock->dead || lock->lost)
		return true;
	if (lock->unwanted)
		return false;
	if (keep == KDSM_LOCK_KEEP_FOREVER)
		return true;
	now = ktime_get_ns();
	if (!lock->idle_since)
		lock->idle_since = now;
	if (now - lock->idle_since >= keep)
		return false;
	kdsm_duty_within(&lock->writers.duty, lock->idle_since + keep - now);
	return true;
}

/* Let the lock go, unless it may stay. Returns whether it goes. */
static bool kdsm_lock_leave(struct kdsm_lock *lock)
{
	bool keep = kdsm_line_first(&lock->writers.line) || kdsm_lock_stays(lock);
	unsigned int flags = 0;
	bool leaves;

	if (lock->dead)
		flags |= KDSM_TURN_DEAD;
	if (lock->lost)
		flags |= KDSM_TURN_SPOILT;
	leaves = kdsm_turn_done(&lock->turn, flags, keep);
	trace_kdsm_lock_leave(kdsm_lock_region(lock), lock->number, lock->turn.state);
	if (leaves)
		kdsm_lock_away(lock);
	else
		kdsm_lock_write(lock, 0);
	return leaves;
}

/* A thread has the lock. Look whether it lives, if others wait for it. */
static void kdsm_lock_look_after(struct kdsm_lock *lock)
{
	if (kdsm_line_first(&lock->writers.line) || !kdsm_turn_is_alone(&lock->turn))
		kdsm_duty_within(&lock->writers.duty, jiffies_to_nsecs(KDSM_LOCK_CHECK));
}

/* The lock is here, and what was written under it can be seen. Returns whether it goes. */
static bool kdsm_lock_settle_here(struct kdsm_lock *lock)
{
	u32 owner = kdsm_word_freeze(&lock->word);

	kdsm_lock_count_uses(lock);
	if (kdsm_word_is_dead(&lock->word)) {
		lock->dead = true;
		lock->stats[KDSM_LOCK_STAT_DEAD]++;
		trace_kdsm_lock_dead(kdsm_lock_region(lock), lock->number, owner);
		owner = 0;
	}
	if (lock->lost)
		kdsm_side_end_all(&lock->writers, -ENOTRECOVERABLE);
	if (owner) {
		kdsm_lock_look_after(lock);
		kdsm_lock_write(lock, owner);
		return false;
	}
	if (!kdsm_line_first(&lock->writers.line) || !kdsm_turn_may_pass(&lock->turn))
		return kdsm_lock_leave(lock);
	kdsm_lock_grant(lock);
	kdsm_lock_look_after(lock);
	return false;
}

bool kdsm_lock_settle(struct kdsm_lock *lock)
{
	if (!kdsm_turn_is_here(&lock->turn))
		return kdsm_lock_settle_away(lock);
	if (!lock->writers.here)
		kdsm_lock_came(lock);
	return !lock->writers.adopted || kdsm_lock_settle_here(lock);
}

/* ---- events ---- */

void kdsm_lock_check(struct kdsm_lock *lock)
{
	mutex_lock(&lock->mutex);
	/* Its number will be another thread's. */
	if (lock->forfeited && !kdsm_lock_thread_lives(lock->locks, lock->forfeited))
		lock->forfeited = 0;
	kdsm_side_kick(&lock->writers);
	if (lock->kind == KDSM_LOCK_RMA_RW) {
		kdsm_readers_are_out(lock);
		kdsm_side_kick(&lock->readers);
	}
	mutex_unlock(&lock->mutex);
}

static bool kdsm_lock_is_gone(const struct kdsm_lock *lock)
{
	enum kdsm_turn_state state = READ_ONCE(lock->turn.state);

	return state == KDSM_TURN_NONE || state == KDSM_TURN_LOST ||
	       kdsm_turn_is_here(&lock->turn);
}

void kdsm_lock_let_go(struct kdsm_lock *lock, unsigned long end)
{
	WRITE_ONCE(lock->unwanted, true);
	for (;;) {
		kdsm_duty_run(&lock->writers.duty);
		kdsm_duty_run(&lock->readers.duty);
		if (time_after_eq(jiffies, end) ||
		    (kdsm_lock_is_gone(lock) && kdsm_readers_are_gone(lock)))
			break;
		usleep_range(500, 1000);
	}
	WRITE_ONCE(lock->unwanted, false);
}

void kdsm_lock_untied(struct kdsm_lock *lock, unsigned int node)
{
	u32 owner;

	if (node == lock->turn.part.home) {
		mutex_lock(&lock->mutex);
		owner = lock->writers.here ? kdsm_word_freeze(&lock->word) : 0;
		if (kdsm_turn_out(&lock->turn)) {
			lock->forfeited = owner ?: lock->forfeited;
			lock->dead = false;
			kdsm_lock_away(lock);
		}
		mutex_unlock(&lock->mutex);
	}
	kdsm_readers_untied(lock, node);
}
