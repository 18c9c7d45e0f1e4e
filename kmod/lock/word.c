// SPDX-License-Identifier: GPL-2.0
/* The words and slots that programs write: letting threads in, and keeping them out. */
#include <linux/kernel.h>
#include <linux/minmax.h>

#include "word.h"

/* ---- writers ---- */

u32 kdsm_word_freeze(struct kdsm_word *word)
{
	s64 old = atomic64_read(word->state);

	/* While WAITERS is set, programs call the module to unlock. */
	while (!atomic64_try_cmpxchg(word->state, &old, old | KDSM_LOCK_WAITERS))
		;
	return KDSM_LOCK_OWNER(old);
}

void kdsm_word_set(struct kdsm_word *word, u32 thread, u64 flags)
{
	s64 old = atomic64_read(word->state);

	/* Only a program that breaks the rules changes the word meanwhile. */
	while (!atomic64_try_cmpxchg(word->state, &old, flags | thread))
		;
}

bool kdsm_word_is_dead(struct kdsm_word *word)
{
	u32 owner = KDSM_LOCK_OWNER(atomic64_read(word->state));

	return owner && !word->lives(word, owner);
}

/* ---- readers ---- */

void kdsm_word_admit(struct kdsm_word *word)
{
	/* Readers see all writes of the last writer. */
	smp_store_release(word->bias, 1);
}

void kdsm_word_bar(struct kdsm_word *word)
{
	WRITE_ONCE(*word->bias, 0);
	/*
	 * Pairs with the swap of the slot by a program: it sees bias 0, or kdsm_word_drained()
	 * sees its slot.
	 */
	smp_mb();
}

bool kdsm_word_drained(struct kdsm_word *word, unsigned int count, unsigned int *died)
{
	bool drained = true;
	unsigned int i;
	atomic64_t *place;
	s64 slot;

	for (i = 0; i < min(count, KDSM_LOCK_SLOTS); i++) {
		place = &word->slots[KDSM_LOCK_SLOT_INDEX(i)];
		slot = atomic64_read(place);
		if (!KDSM_SLOT_IS_OF(slot, word->number))
			continue;
		if (word->lives(word, KDSM_SLOT_THREAD(slot))) {
			drained = false;
			continue;
		}
		/* Only if it still is the dead thread's: another one may use the slot by now. */
		if (atomic64_try_cmpxchg(place, &slot, 0))
			++*died;
		else
			drained = false;
	}
	/* The readers' loads come before the stores of the next writer. */
	smp_mb();
	return drained;
}
