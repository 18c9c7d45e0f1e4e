// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a node that read under a lock of kind RMA_RW.
 *
 * The pass (gate.h) says whether the node may read. Then programs read by their slots in mapped
 * memory, without a call, while the word's bias is set. Otherwise they make a call, and the module
 * sets the slot. A thread whose slot is in use for another lock is in the list of those inside.
 * When the node has to leave, the module clears the bias, and waits until no slot and no entry of
 * the list names the lock and a living thread. Threads that unlock then make a call, so this needs
 * no polling, except for threads that die.
 *
 * As in lock.c, kdsm_readers_settle() does what the state requires, with the lock's mutex and
 * without the network, and kdsm_readers_run() also sends.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "region/region.h"

/* ---- threads inside ---- */

struct kdsm_reader *kdsm_readers_find(struct kdsm_readers *readers, u32 thread)
{
	struct kdsm_reader *reader;

	list_for_each_entry(reader, &readers->inside, link)
		if (reader->thread == thread)
			return reader;
	return NULL;
}

static atomic64_t *kdsm_readers_slot(const struct kdsm_readers *readers, u32 thread)
{
	return &readers->lock->word.slots[KDSM_LOCK_SLOT_INDEX(thread)];
}

bool kdsm_readers_have(struct kdsm_readers *readers, u32 thread)
{
	struct kdsm_reader *reader = kdsm_readers_find(readers, thread);

	return (reader && !reader->lost) ||
	       (u64)atomic64_read(kdsm_readers_slot(readers, thread)) ==
	       KDSM_LOCK_SLOT(thread, readers->lock->number);
}

static void kdsm_readers_reap(struct kdsm_readers *readers)
{
	struct kdsm_reader *reader, *next;

	list_for_each_entry_safe(reader, next, &readers->inside, link) {
		if (kdsm_lock_thread_lives(readers->lock->locks, reader->thread))
			continue;
		readers->lock->stats[KDSM_LOCK_STAT_DEAD]++;
		list_del(&reader->link);
		kfree(reader);
	}
}

/* The node has barred readers. Whether none is inside any more */
static bool kdsm_readers_are_out(struct kdsm_readers *readers)
{
	struct kdsm_lock *lock = readers->lock;
	struct kdsm_reader *reader;
	unsigned int died = 0;
	bool out;

	kdsm_readers_reap(readers);
	out = kdsm_word_drained(&lock->word, READ_ONCE(lock->locks->threads_end), &died);
	lock->stats[KDSM_LOCK_STAT_DEAD] += died;
	list_for_each_entry(reader, &readers->inside, link)
		out &= reader->lost;
	return out;
}

/* ---- what the state requires; with the mutex ---- */

void kdsm_readers_end(struct kdsm_readers *readers, struct kdsm_waiter *waiter, int status)
{
	s64 unused = 0;

	/* By its slot, so that the thread knows it; or by the list, if the slot is in use */
	if ((!status || status == -EOWNERDEAD) &&
	    !atomic64_try_cmpxchg(kdsm_readers_slot(readers, waiter->thread), &unused,
				  KDSM_LOCK_SLOT(waiter->thread, readers->lock->number))) {
		waiter->reader->thread = waiter->thread;
		list_add_tail(&waiter->reader->link, &readers->inside);
		waiter->is_inside = true;
	}
	kdsm_lock_count(readers->lock, waiter, status);
	kdsm_line_end(&readers->line, waiter, status);
}

static void kdsm_readers_fail(struct kdsm_readers *readers, int err)
{
	struct kdsm_waiter *waiter;

	while ((waiter = kdsm_line_first(&readers->line)))
		kdsm_readers_end(readers, waiter, err);
}

/* All threads that wait may read. */
static void kdsm_readers_let_in(struct kdsm_readers *readers)
{
	unsigned int flags = readers->pass.flags;

	if (flags & KDSM_TURN_SPOILT)
		kdsm_readers_fail(readers, -ENOTRECOVERABLE);
	kdsm_readers_fail(readers, flags & KDSM_TURN_DEAD ? -EOWNERDEAD : 0);
}

static bool kdsm_readers_leave(struct kdsm_readers *readers)
{
	readers->here = false;
	kdsm_pass_leave(&readers->pass);
	return true;
}

/* Admitted until the parent revokes that */
static bool kdsm_readers_settle_in(struct kdsm_readers *readers)
{
	struct kdsm_lock *lock = readers->lock;
	bool keep = lock->settings.keep && !READ_ONCE(lock->unwanted);

	kdsm_readers_let_in(readers);
	if (!keep || readers->pass.flags) {
		/* Readers make calls: each learns of the flags, and the last one leaves. */
		kdsm_word_bar(&lock->word);
		return !keep && kdsm_readers_are_out(readers) && kdsm_readers_leave(readers);
	}
	kdsm_word_admit(&lock->word);
	return false;
}

/* Admitted once, or revoked */
static bool kdsm_readers_settle_last(struct kdsm_readers *readers)
{
	struct kdsm_pass *pass = &readers->pass;

	kdsm_word_bar(&readers->lock->word);
	/* Those that wait now, and no later ones */
	if (kdsm_pass_is_once(pass))
		kdsm_readers_let_in(readers);
	if (kdsm_readers_are_out(readers))
		return kdsm_readers_leave(readers);
	/* Threads may die. */
	kdsm_duty_within(&readers->duty, jiffies_to_nsecs(KDSM_LOCK_CHECK));
	return false;
}

static bool kdsm_readers_settle_out(struct kdsm_readers *readers)
{
	enum kdsm_pass_state state = READ_ONCE(readers->pass.state);
	struct kdsm_waiter *waiter;

	readers->here = false;
	kdsm_word_bar(&readers->lock->word);
	if (readers->lock->lost) {
		kdsm_readers_fail(readers, -ENOTRECOVERABLE);
	} else if (state == KDSM_PASS_LOST ||
		   (state != KDSM_PASS_NONE && kdsm_lock_is_orphan(readers->lock))) {
		kdsm_readers_fail(readers, -EHOSTDOWN);
	} else if (kdsm_line_count(&readers->line)) {
		list_for_each_entry(waiter, &readers->line.waiters, link)
			waiter->tried = waiter->try;
		kdsm_pass_want(&readers->pass);
	}
	return true;
}

bool kdsm_readers_settle(struct kdsm_readers *readers)
{
	struct kdsm_lock *lock = readers->lock;
	enum kdsm_pass_state state = READ_ONCE(readers->pass.state);

	lockdep_assert_held(&lock->mutex);
	if (state != KDSM_PASS_READING && state != KDSM_PASS_LAST)
		return kdsm_readers_settle_out(readers);
	if (!readers->here) {
		readers->here = true;
		readers->arrivals++;
		readers->adopted = !lock->sign;
	}
	/* A node that has to leave need not see what it will not read. */
	if (!readers->adopted && (state == KDSM_PASS_READING || kdsm_line_first(&readers->line)))
		return true;
	return state == KDSM_PASS_READING ? kdsm_readers_settle_in(readers) :
					    kdsm_readers_settle_last(readers);
}

bool kdsm_readers_check(struct kdsm_readers *readers)
{
	kdsm_readers_are_out(readers);
	return kdsm_readers_settle(readers);
}

/* ---- what needs the network ---- */

static u64 kdsm_readers_fetch(struct kdsm_readers *readers, u32 arrivals, unsigned int from)
{
	struct kdsm_lock *lock = readers->lock;
	int err = kdsm_lock_adopt(lock, from == KDSM_NOBODY ? lock->turn.home : from);

	if (err && err != -EOWNERDEAD)
		return KDSM_PASS_RETRY;
	mutex_lock(&lock->mutex);
	if (readers->arrivals == arrivals && readers->here) {
		readers->adopted = true;
		readers->pass.flags |= err ? KDSM_TURN_DEAD : 0;
	}
	mutex_unlock(&lock->mutex);
	return 0;
}

/* As kdsm_lock_round() */
static bool kdsm_readers_round(struct kdsm_duty *duty, struct kdsm_try *try)
{
	struct kdsm_readers *readers = container_of(duty, struct kdsm_readers, duty);
	struct kdsm_lock *lock = readers->lock;
	unsigned int from, before, what;
	u32 arrivals;
	bool fetch;

	mutex_lock(&lock->mutex);
	WRITE_ONCE(readers->line.called, false);
	kdsm_readers_settle(readers);
	fetch = readers->here && !readers->adopted;
	arrivals = readers->arrivals;
	from = readers->pass.from;
	before = kdsm_try_what(READ_ONCE(readers->pass.state), fetch);
	mutex_unlock(&lock->mutex);
	if (try->delay && try->what == before)
		return false;
	try->delay = fetch ? kdsm_readers_fetch(readers, arrivals, from) :
			     kdsm_pass_advance(&readers->pass);
	what = kdsm_try_what(READ_ONCE(readers->pass.state), fetch);
	try->what = what;
	return try->delay || fetch || what != before;
}

void kdsm_readers_run(struct kdsm_readers *readers)
{
	u64 delay = kdsm_duty_rounds(&readers->duty, kdsm_readers_round);

	if (delay)
		kdsm_duty_within(&readers->duty, delay);
}

void kdsm_readers_work(struct work_struct *work)
{
	kdsm_readers_run(container_of(work, struct kdsm_readers, duty.now));
}

bool kdsm_readers_are_gone(const struct kdsm_readers *readers)
{
	enum kdsm_pass_state state = READ_ONCE(readers->pass.state);

	return state == KDSM_PASS_NONE || state == KDSM_PASS_LOST || readers->here;
}

/* This node was given up. Threads that read by their slots go into the list, marked as lost. */
static void kdsm_readers_forfeit(struct kdsm_readers *readers)
{
	struct kdsm_lock *lock = readers->lock;
	struct kdsm_reader *reader;
	unsigned int i;
	s64 slot;
	u32 thread;

	kdsm_word_bar(&lock->word);
	for (i = 0; i < KDSM_LOCK_SLOTS; i++) {
		slot = atomic64_read(&lock->word.slots[i]);
		thread = KDSM_SLOT_THREAD(slot);
		if (!KDSM_SLOT_IS_OF(slot, lock->number) ||
		    !kdsm_lock_thread_lives(lock->locks, thread) ||
		    !atomic64_try_cmpxchg(&lock->word.slots[i], &slot, 0))
			continue;
		reader = kzalloc(sizeof(*reader), GFP_KERNEL | __GFP_NOFAIL);
		reader->thread = thread;
		list_add_tail(&reader->link, &readers->inside);
	}
	list_for_each_entry(reader, &readers->inside, link)
		reader->lost = true;
}

void kdsm_readers_untied(struct kdsm_readers *readers, unsigned int node)
{
	struct kdsm_lock *lock = readers->lock;
	struct kdsm_reader_home *home = kdsm_readers_home_now(readers);
	struct kdsm_pass *pass = &readers->pass;

	/* In this order, so that no reader of the new life is forgotten with the old ones */
	if (home && node == pass->home)
		kdsm_reader_home_out(home);
	if (node != pass->home && node != READ_ONCE(pass->parent))
		return;
	mutex_lock(&lock->mutex);
	if (kdsm_pass_out(pass))
		kdsm_readers_forfeit(readers);
	readers->here = false;
	mutex_unlock(&lock->mutex);
}
