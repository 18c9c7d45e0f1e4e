// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Locks. Within one member a lock is a futex: 0 free, 1 held, 2 held while threads sleep
 * (U. Drepper, "Futexes are tricky").
 */
#include "internal.h"

static struct ko_locks own_locks;
struct ko_locks *ko_locks = &own_locks;

bool ko_own_lock_try(uint32_t *word)
{
	uint32_t free = 0;

	return __atomic_compare_exchange_n(word, &free, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

void ko_own_lock(uint32_t *word)
{
	if (ko_own_lock_try(word))
		return;
	while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE))
		ko_futex_wait(word, 2, UINT64_MAX);
}

void ko_own_unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		ko_futex_wake(word, 1);
}

void ko_lock(uint32_t *word)
{
	ko_own_lock(word);
}

bool ko_lock_try(uint32_t *word)
{
	return ko_own_lock_try(word);
}

void ko_unlock(uint32_t *word)
{
	ko_own_unlock(word);
}

void ko_lock_destroy(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
}
