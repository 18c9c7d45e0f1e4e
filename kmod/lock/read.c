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
 * kdsm_readers_settle() does what the state requires; see side.c.
 */
#include <linux/err.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "region/region.h"

/* ---- threads inside ---- */

struct kdsm_reader *kdsm_readers_find(struct kdsm_lock *lock, u32 thread)
{
	struct kdsm_reader *reader;

	list_for_each_entry(reader, &lock->inside, link)
		if (reader->thread == thread)
			return reader;
	return NULL;
}

static atomic64_t *kdsm_readers_slot(const struct kdsm_lock *lock, u32 thread)
{
	return &lock->word.slots[KDSM_LOCK_SLOT_INDEX(thread)];
}

bool kdsm_readers_have(struct kdsm_lock *lock, u32 thread)
{
	struct kdsm_reader *reader = kdsm_readers_find(lock, thread);

	return (reader && !reader->lost) ||
	       (u64)atomic64_read(kdsm_readers_slot(lock, thread)) ==
	       KDSM_LOCK_SLOT(thread, lock->number);
}

void kdsm_readers_enter(struct kdsm_lock *lock, struct kdsm_waiter *waiter)
{
	s64 unused = 0;

	/* By its slot, so that the thread knows it; or by the list, if the slot is in use */
	if (atomic64_try_cmpxchg(kdsm_readers_slot(lock, waiter->thread), &unused,
				 KDSM_LOCK_SLOT(waiter->thread, lock->number)))
		return;
	waiter->reader->thread = waiter->thread;
	list_add_tail(&waiter->reader->link, &lock->inside);
	waiter->is_inside = true;
}

bool kdsm_readers_are_out(struct kdsm_lock *lock)
{
	struct kdsm_reader *reader, *next;
	unsigned int died = 0;
	bool out;

	out = kdsm_word_drained(&lock->word, READ_ONCE(lock->locks->threads_end), &died);
	list_for_each_entry_safe(reader, next, &lock->inside, link) {
		if (kdsm_lock_thread_lives(lock->locks, reader->thread)) {
			out &= reader->lost;
			continue;
		}
		died++;
		list_del(&reader->link);
		kfree(reader);
	}
	lock->stats[KDSM_LOCK_STAT_DEAD] += died;
	return out;
}

/* ---- what the state requires; with the mutex ---- */

/* All threads that wait may read. */
static void kdsm_readers_let_in(struct kdsm_lock *lock)
{
	unsigned int flags = lock->pass.flags;

	if (flags & KDSM_TURN_SPOILT)
		kdsm_side_end_all(&lock->readers, -ENOTRECOVERABLE);
	kdsm_side_end_all(&lock->readers, flags & KDSM_TURN_DEAD ? -EOWNERDEAD : 0);
}

static bool kdsm_readers_leave(struct kdsm_lock *lock)
{
	lock->readers.here = false;
	kdsm_pass_leave(&lock->pass);
	return true;
}

/* Admitted until the parent revokes that */
static bool kdsm_readers_settle_in(struct kdsm_lock *lock)
{
	bool keep = lock->settings.keep && !READ_ONCE(lock->unwanted);

	kdsm_readers_let_in(lock);
	if (!keep || lock->pass.flags) {
		/* Readers make calls: each learns of the flags, and the last one leaves. */
		kdsm_word_bar(&lock->word);
		return !keep && kdsm_readers_are_out(lock) && kdsm_readers_leave(lock);
	}
	kdsm_word_admit(&lock->word);
	return false;
}

/* Admitted once, or revoked */
static bool kdsm_readers_settle_last(struct kdsm_lock *lock)
{
	struct kdsm_pass *pass = &lock->pass;

	kdsm_word_bar(&lock->word);
	/* Those that wait now, and no later ones */
	if (kdsm_pass_is_once(pass))
		kdsm_readers_let_in(lock);
	if (kdsm_readers_are_out(lock))
		return kdsm_readers_leave(lock);
	/* Threads may die. */
	kdsm_duty_within(&lock->readers.duty, jiffies_to_nsecs(KDSM_LOCK_CHECK));
	return false;
}

static bool kdsm_readers_settle_out(struct kdsm_lock *lock)
{
	enum kdsm_pass_state state = READ_ONCE(lock->pass.state);
	struct kdsm_waiter *waiter;

	lock->readers.here = false;
	kdsm_word_bar(&lock->word);
	if (lock->lost) {
		kdsm_side_end_all(&lock->readers, -ENOTRECOVERABLE);
	} else if (state == KDSM_PASS_LOST ||
		   (state != KDSM_PASS_NONE && kdsm_lock_is_orphan(lock))) {
		kdsm_side_end_all(&lock->readers, -EHOSTDOWN);
	} else if (kdsm_line_count(&lock->readers.line)) {
		list_for_each_entry(waiter, &lock->readers.line.waiters, link)
			waiter->tried = waiter->try;
		kdsm_pass_want(&lock->pass);
		state = KDSM_PASS_ASKING;
	}
	return state != KDSM_PASS_NONE && state != KDSM_PASS_LOST;
}

bool kdsm_readers_settle(struct kdsm_lock *lock)
{
	struct kdsm_side *readers = &lock->readers;
	enum kdsm_pass_state state = READ_ONCE(lock->pass.state);

	if (state != KDSM_PASS_READING && state != KDSM_PASS_LAST)
		return kdsm_readers_settle_out(lock);
	if (!readers->here) {
		readers->here = true;
		readers->arrivals++;
		readers->adopted = !lock->sign;
		readers->from = lock->pass.from;
	}
	/* A node that has to leave need not see what it will not read. */
	if (!readers->adopted && (state == KDSM_PASS_READING || kdsm_line_first(&readers->line)))
		return true;
	return state == KDSM_PASS_READING ? kdsm_readers_settle_in(lock) :
					    kdsm_readers_settle_last(lock);
}

bool kdsm_readers_are_gone(const struct kdsm_lock *lock)
{
	enum kdsm_pass_state state = READ_ONCE(lock->pass.state);

	return state == KDSM_PASS_NONE || state == KDSM_PASS_LOST || lock->readers.here;
}

/* This node was given up. Threads that read by their slots go into the list, marked as lost. */
static void kdsm_readers_forfeit(struct kdsm_lock *lock)
{
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
		list_add_tail(&reader->link, &lock->inside);
	}
	list_for_each_entry(reader, &lock->inside, link)
		reader->lost = true;
}

void kdsm_readers_untied(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_reader_home *home = kdsm_lock_reader_home(lock);
	struct kdsm_pass *pass = &lock->pass;

	/* In this order, so that no reader of the new life is forgotten with the old ones */
	if (home && node == pass->part.home)
		kdsm_reader_home_out(home);
	if (node != pass->part.home && node != READ_ONCE(pass->parent))
		return;
	mutex_lock(&lock->mutex);
	if (kdsm_pass_out(pass))
		kdsm_readers_forfeit(lock);
	lock->readers.here = false;
	mutex_unlock(&lock->mutex);
}
