/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of locks that programs of this node map and write: a word for each lock, and a slot
 * for each thread that reads. The module believes of it only the number of a thread that lives;
 * everything else that it finds hurts the one lock. Runs in the simulator (tests/sim/lock).
 */
#ifndef KDSM_LOCK_WORD_H
#define KDSM_LOCK_WORD_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <kdsm/uapi.h>

/* The thread that a slot names; see KDSM_LOCK_SLOT() */
#define KDSM_SLOT_THREAD(slot)	((u32)((slot) >> 32))
#define KDSM_SLOT_IS_OF(slot, number)	((u32)(slot) == (number) + 1)

/*
 * Accesses of programs, one a line, in this order. A thread may die between any two.
 *
 *	lock		state: AT_NODE -> AT_NODE, thread	swap, acquire; else the call
 *	unlock		state: AT_NODE, thread -> AT_NODE	swap, release; else the call
 *	lock to read	own slot: 0 -> thread, lock		swap (a full barrier)
 *			bias: not 0, or else			load
 *			own slot: 0, and the call		store, release
 *	unlock		own slot: thread, lock -> 0		swap (a full barrier)
 *			bias: not 0, or else the call		load
 */
struct kdsm_word {
	atomic64_t *state;	/* struct kdsm_lock_word.state */
	u64 *bias;		/* not 0: readers may enter by their slots */
	atomic64_t *slots;	/* KDSM_LOCK_SLOTS of the region */
	u32 number;		/* of the lock */
	/* Whether the thread with that number lives, and may use the locks of the region */
	bool (*lives)(struct kdsm_word *word, u32 thread);
};

/* ---- writers; the caller holds the lock of the node's line of threads ---- */

/* Programs change the word no more by themselves. Returns the thread that holds it, or 0. */
u32 kdsm_word_freeze(struct kdsm_word *word);
/* The word is frozen: the thread (0: none) has the lock; flags: KDSM_LOCK_*. */
void kdsm_word_set(struct kdsm_word *word, u32 thread, u64 flags);
/* The word is frozen. Whether the thread that it names has died, or never was one. */
bool kdsm_word_is_dead(struct kdsm_word *word);

/* ---- readers ---- */

/* The node may read: let readers in. */
void kdsm_word_admit(struct kdsm_word *word);
/* Let no reader in any more. */
void kdsm_word_bar(struct kdsm_word *word);
/*
 * After kdsm_word_bar(): whether no thread reads by its slot. Clears slots of dead threads, and
 * adds their number to *died. count: only threads with numbers below this, modulo KDSM_LOCK_SLOTS,
 * have slots.
 */
bool kdsm_word_drained(struct kdsm_word *word, unsigned int count, unsigned int *died);

#endif /* KDSM_LOCK_WORD_H */
