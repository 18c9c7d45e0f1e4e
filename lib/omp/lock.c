// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Locks. Within one member a lock is a futex: 0 free, 1 held, 2 held while threads sleep
 * (U. Drepper, "Futexes are tricky").
 */
#include <errno.h>
#include <kdsm/lock.h>
#include "span.h"

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

/* ---- locks of all members ---- */

/*
 * If the program has several members, the word is the number of a lock of the job's region, which
 * hands memory over from holder to holder; 0: the lock has no number yet. Such a word is in memory
 * of policy strict, unless ko_lock_init() gave it a number.
 */
static struct kdsm_lock *handles[KDSM_MAX_LOCKS];
static uint32_t handles_lock;

/* Longest wait for another node to give up a lock that no thread holds, in ns */
#define TRY_NS	20000000

static uint32_t number_of(uint32_t *word)
{
	uint32_t number = __atomic_load_n(word, __ATOMIC_ACQUIRE), own;

	if (number)
		return number;
	own = __atomic_add_fetch(&ko_shared->last_lock, 1, __ATOMIC_SEQ_CST);
	if (own >= KDSM_MAX_LOCKS)
		ko_fatal("the program uses more than %d locks", KDSM_MAX_LOCKS - 1);
	return __atomic_compare_exchange_n(word, &number, own, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ? own : number;
}

static struct kdsm_lock *handle_of(uint32_t *word)
{
	uint32_t number = number_of(word);
	struct kdsm_lock *lock = __atomic_load_n(&handles[number], __ATOMIC_ACQUIRE);
	int ret;

	if (lock)
		return lock;
	ko_own_lock(&handles_lock);
	lock = handles[number];
	if (!lock) {
		ret = kdsm_lock_create(kdsm_job_region(ko_job), NULL, number, NULL, &lock);
		if (ret)
			ko_fatal("no lock: %s", kdsm_error(ret));
		__atomic_store_n(&handles[number], lock, __ATOMIC_RELEASE);
	}
	ko_own_unlock(&handles_lock);
	return lock;
}

void ko_lock(uint32_t *word)
{
	int ret;

	if (ko_members == 1) {
		ko_own_lock(word);
		return;
	}
	ret = kdsm_lock(handle_of(word));
	if (ret)
		ko_fatal("cannot lock: %s", kdsm_error(ret));
}

bool ko_lock_try(uint32_t *word)
{
	int ret;

	if (ko_members == 1)
		return ko_own_lock_try(word);
	ret = kdsm_lock_try(handle_of(word));
	/* Another node may keep the lock, though no thread holds it, until a thread waits. */
	if (ret == -EBUSY)
		ret = kdsm_lock_timed(handle_of(word), TRY_NS);
	if (ret && ret != -ETIMEDOUT && ret != -EDEADLK)
		ko_fatal("cannot lock: %s", kdsm_error(ret));
	return !ret;
}

void ko_unlock(uint32_t *word)
{
	int ret;

	if (ko_members == 1) {
		ko_own_unlock(word);
		return;
	}
	ret = kdsm_unlock(handle_of(word));
	if (ret)
		ko_fatal("cannot unlock: %s", kdsm_error(ret));
}

void ko_lock_init(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	if (ko_members > 1)
		number_of(word);
}

void ko_lock_destroy(uint32_t *word)
{
	if (ko_members == 1)
		__atomic_store_n(word, 0, __ATOMIC_RELAXED);
}
