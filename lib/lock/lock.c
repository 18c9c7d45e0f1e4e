// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Locks: opening and creating them, and taking and releasing them as far as that needs no
 * system call. The backend does the rest.
 *
 * This file changes a lock word only in the two ways that <kdsm/uapi.h> allows, by
 * compare-and-swap of the whole state, so that a flag which the backend has set makes both
 * fail. A waiter therefore knows that the holder will enter the backend to release the
 * lock. The acquire of word_lock() pairs with the release of the previous word_unlock().
 *
 * Readers write only their own slots. (D. Dice, A. Kogan, "BRAVO: Biased Locking for Reader-Writer
 * Locks", USENIX ATC 2019)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/lock.h>
#include "core/core.h"

struct kdsm_lock {
	struct kdsm_lock_word *word;
	struct kdsm_region *region;
	const struct kdsm_lock_backend *backend;
	uint32_t number;
	uint32_t kind, levels;
	struct kdsm_spin spin;
};

/* ---- threads ---- */

/*
 * The numbers of this thread in the regions whose locks it used last. A region's serial is
 * never reused, so an old number is not mistaken for a new one. A child of fork() inherits
 * the regions of its parent but must not use its numbers: forget_numbers() runs in the
 * child.
 */
#define NUMBERS 8

static _Thread_local struct {
	uint64_t serial;
	uint32_t thread;
} numbers[NUMBERS];

static void forget_numbers(void)
{
	memset(numbers, 0, sizeof(numbers));
}

static void forget_in_children(void)
{
	pthread_atfork(NULL, NULL, forget_numbers);
}

static __attribute__((noinline)) int learn_number(struct kdsm_region *region, uint32_t *thread)
{
	unsigned int i = region->serial % NUMBERS;
	int ret = region->backend->locks->thread(region, thread);

	if (!ret) {
		numbers[i].serial = region->serial;
		numbers[i].thread = *thread;
	}
	return ret;
}

static inline int own_number(const struct kdsm_lock *lock, uint32_t *thread)
{
	unsigned int i = lock->region->serial % NUMBERS;

	if (numbers[i].serial != lock->region->serial)
		return learn_number(lock->region, thread);
	*thread = numbers[i].thread;
	return 0;
}

/* ---- the lock word ---- */

static inline bool word_lock(struct kdsm_lock_word *word, uint32_t thread)
{
	__u64 state = KDSM_LOCK_AT_NODE;

	if (!__atomic_compare_exchange_n(&word->state, &state, KDSM_LOCK_AT_NODE | thread, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	/* Only the holder of the lock writes uses. */
	__atomic_store_n(&word->uses, __atomic_load_n(&word->uses, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	return true;
}

static inline bool word_unlock(struct kdsm_lock_word *word, uint32_t thread)
{
	__u64 state = KDSM_LOCK_AT_NODE | thread;

	return __atomic_compare_exchange_n(&word->state, &state, KDSM_LOCK_AT_NODE, false,
					   __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* ---- the reader's slot ---- */

static inline __u64 *slot_of(const struct kdsm_lock *lock, uint32_t thread)
{
	return (__u64 *)(lock->region->lock_words + KDSM_MAX_LOCKS) + KDSM_LOCK_SLOT_INDEX(thread);
}

/* Whether readers may enter by their slots. Pairs with the stores of the backend. */
static inline bool is_biased(const struct kdsm_lock *lock)
{
	return __atomic_load_n(&lock->word->bias, __ATOMIC_ACQUIRE);
}

static inline bool slot_lock(struct kdsm_lock *lock, uint32_t thread)
{
	__u64 *slot = slot_of(lock, thread), none = 0;

	/* The swap is a full barrier: the backend sees the slot, or this thread that bias is 0. */
	if (!is_biased(lock) ||
	    !__atomic_compare_exchange_n(slot, &none, KDSM_LOCK_SLOT(thread, lock->number), false,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	if (is_biased(lock))
		return true;
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	return false;
}

/*
 * Returns whether the thread read by its slot. Then *tell: the backend must be told. The backend
 * may take the slot away meanwhile, and another thread may use it then, so only a swap clears it.
 */
static inline bool slot_unlock(struct kdsm_lock *lock, uint32_t thread, bool *tell)
{
	__u64 own = KDSM_LOCK_SLOT(thread, lock->number);

	if (!__atomic_compare_exchange_n(slot_of(lock, thread), &own, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	*tell = !is_biased(lock);
	return true;
}

/* ---- polling the word ---- */

static uint64_t word_state(const struct kdsm_lock *lock)
{
	return __atomic_load_n(&lock->word->state, __ATOMIC_RELAXED);
}

/* Whether the lock is at this node, locked or not, and no flag is set */
static bool is_plain(uint64_t state)
{
	return (state & ~(uint64_t)UINT32_MAX) == KDSM_LOCK_AT_NODE;
}

struct attempt {
	struct kdsm_lock *lock;
	uint32_t thread;
	bool *locked;
};

/*
 * Polling ends when this thread has the lock, or when only the backend can help: other threads
 * queue, or the lock is at another node.
 */
static bool attempt(const void *what)
{
	const struct attempt *attempt = what;
	uint64_t state = word_state(attempt->lock);

	if (!is_plain(state))
		return true;
	if (state == KDSM_LOCK_AT_NODE)
		*attempt->locked = word_lock(attempt->lock->word, attempt->thread);
	return *attempt->locked;
}

static bool spin_for(struct kdsm_lock *lock, uint32_t thread, uint64_t timeout)
{
	bool locked = false;
	struct attempt what = { lock, thread, &locked };

	kdsm_spin(&lock->spin, timeout, attempt, &what);
	return locked;
}

/* ---- locking ---- */

/* Give the reason of an error that a program can mend. Others are part of a program's course. */
static int explain(const struct kdsm_lock *lock, int error)
{
	const char *what;

	switch (error) {
	case 0:
		return 0;
	case -EDEADLK:
		what = "the calling thread holds it";
		break;
	case -EPERM:
		what = "the calling thread does not hold it";
		break;
	case -EINVAL:
		what = "it is not of a kind, or not in a state, in which the call is possible";
		break;
	case -EOWNERDEAD:
		what = "its holder died; make what it guards consistent, or unlock it for good";
		break;
	case -EHOSTDOWN:
		what = "its home is down, or took this node for dead";
		break;
	default:
		return kd_no_reason(error);
	}
	return kd_because(error, "region \"%s\": lock %u: %s",
			  lock->region->name, lock->number, what);
}

static __attribute__((noinline))
int take_slow(struct kdsm_lock *lock, uint32_t flags, uint32_t thread, uint64_t timeout,
	      bool interruptible)
{
	bool by_word = !(flags & (KDSM_LOCK_READ | KDSM_LOCK_TRY));
	struct kdsm_lock_take arg = {
		.argsz = sizeof(arg),
		.flags = flags,
		.number = lock->number,
		.thread = thread,
	};
	uint64_t begin = 0;
	int ret;

	if (KDSM_LOCK_OWNER(word_state(lock)) == thread)
		return explain(lock, -EDEADLK);
	if (timeout && timeout != KDSM_FOREVER)
		begin = kdsm_now();
	if (by_word && timeout && lock->region->kdsm->may_spin &&
	    is_plain(word_state(lock)) && spin_for(lock, thread, timeout))
		return 0;
	/*
	 * The module gives a writer its place among the threads of the node back after a signal.
	 * Other threads queue again.
	 */
	do {
		arg.timeout = kdsm_left(begin, timeout);
		ret = lock->backend->take(lock->region, &arg);
	} while (ret == -EINTR && !interruptible);
	return explain(lock, ret);
}

static inline int take(struct kdsm_lock *lock, uint32_t flags, uint64_t timeout,
		       bool interruptible)
{
	uint32_t thread;
	int ret = own_number(lock, &thread);

	if (ret)
		return ret;
	if (flags & KDSM_LOCK_READ ? slot_lock(lock, thread) : word_lock(lock->word, thread))
		return 0;
	return take_slow(lock, flags, thread, timeout, interruptible);
}

int kdsm_lock(struct kdsm_lock *lock)
{
	return take(lock, 0, KDSM_FOREVER, false);
}

int kdsm_lock_try(struct kdsm_lock *lock)
{
	return take(lock, KDSM_LOCK_TRY, 0, false);
}

int kdsm_lock_timed(struct kdsm_lock *lock, uint64_t timeout)
{
	return take(lock, 0, timeout, false);
}

int kdsm_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout)
{
	return take(lock, 0, timeout, true);
}

int kdsm_read_lock(struct kdsm_lock *lock)
{
	return take(lock, KDSM_LOCK_READ, KDSM_FOREVER, false);
}

int kdsm_read_lock_try(struct kdsm_lock *lock)
{
	return take(lock, KDSM_LOCK_READ | KDSM_LOCK_TRY, 0, false);
}

int kdsm_read_lock_timed(struct kdsm_lock *lock, uint64_t timeout)
{
	return take(lock, KDSM_LOCK_READ, timeout, false);
}

int kdsm_read_lock_interruptible(struct kdsm_lock *lock, uint64_t timeout)
{
	return take(lock, KDSM_LOCK_READ, timeout, true);
}

static int give(struct kdsm_lock *lock, uint32_t flags, uint32_t thread,
		int (*how)(struct kdsm_region *region, struct kdsm_lock_give *arg))
{
	struct kdsm_lock_give arg = {
		.argsz = sizeof(arg),
		.flags = flags,
		.number = lock->number,
		.thread = thread,
	};
	int ret;

	/*
	 * The backend reports a signal only before it changes anything, so the call can be
	 * repeated.
	 */
	do {
		ret = how(lock->region, &arg);
	} while (ret == -EINTR);
	return explain(lock, ret);
}

int kdsm_unlock(struct kdsm_lock *lock)
{
	uint32_t thread;
	int ret = own_number(lock, &thread);

	if (ret)
		return ret;
	if (word_unlock(lock->word, thread))
		return 0;
	return give(lock, 0, thread, lock->backend->give);
}

int kdsm_read_unlock(struct kdsm_lock *lock)
{
	bool by_slot, tell = true;
	uint32_t thread;
	int ret = own_number(lock, &thread);

	if (ret)
		return ret;
	by_slot = slot_unlock(lock, thread, &tell);
	if (tell)
		ret = give(lock, KDSM_LOCK_READ, thread, lock->backend->give);
	return by_slot ? 0 : ret;
}

int kdsm_lock_consistent(struct kdsm_lock *lock)
{
	uint32_t thread;
	int ret = own_number(lock, &thread);

	return ret ? ret : give(lock, 0, thread, lock->backend->consistent);
}

int kdsm_lock_is_mine(struct kdsm_lock *lock)
{
	uint32_t thread;

	return !own_number(lock, &thread) && KDSM_LOCK_OWNER(word_state(lock)) == thread;
}

/* ---- opening and creating ---- */

static int open_arg(struct kdsm_lock_open *arg, const char *name, uint32_t number)
{
	int ret;

	memset(arg, 0, sizeof(*arg));
	arg->argsz = sizeof(*arg);
	arg->number = number;
	if (!name)
		return 0;
	ret = kdsm_name_check("lock", name);
	if (!ret)
		memcpy(arg->name, name, strlen(name));
	return ret;
}

/* Map the lock words when the program opens the first lock. */
static int map_words(struct kdsm_region *region)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret = 0;

	pthread_once(&once, forget_in_children);
	kd_mutex_lock(&region->kdsm->lock);
	if (!region->lock_words)
		ret = region->backend->locks->map(region);
	kd_mutex_unlock(&region->kdsm->lock);
	return ret;
}

/* Give the reason why the backend did not open the lock. arg is as it was passed to the backend. */
static int explain_open(int error, const struct kdsm_region *region,
			const struct kdsm_lock_open *arg)
{
	char number[24] = "any number", name[KDSM_NAME_SIZE + 16];
	const char *what;

	if (arg->number != KDSM_LOCK_ANY)
		snprintf(number, sizeof(number), "number %u", arg->number);
	if (arg->name[0])
		snprintf(name, sizeof(name), "lock \"%s\"", arg->name);
	else
		snprintf(name, sizeof(name), "lock of %s", number);
	switch (error) {
	case -ENOENT:
		what = "there is no such lock";
		break;
	case -EEXIST:
		what = "the lock exists";
		break;
	case -ENOSPC:
		what = "the region has no number left for a lock";
		break;
	case -EINVAL:
		if (!arg->name[0] && arg->number >= KDSM_MAX_LOCKS &&
		    (arg->number != KDSM_LOCK_ANY || !(arg->flags & KDSM_LOCK_CREATE)))
			what = "the number is not below KDSM_MAX_LOCKS";
		else if (arg->flags & KDSM_LOCK_CREATE &&
			 (arg->kind < KDSM_LOCK_DMCS || arg->kind > KDSM_LOCK_RMA_RW))
			what = "there is no such kind of lock";
		else
			what = "the lock exists with another kind, or the settings are invalid";
		break;
	case -ERANGE:
		what = "a setting is out of range, or the kind of lock has no such setting";
		break;
	default:
		what = kdsm_strerror(error);
	}
	return kd_because(error, "region \"%s\": %s: %s", region->name, name, what);
}

static int open_lock(struct kdsm_region *region, struct kdsm_lock_open *arg,
		     struct kdsm_lock **out)
{
	struct kdsm_lock_open asked = *arg;
	struct kdsm_lock *lock;
	int ret;

	if (!region->writable)
		return kd_read_only(region);
	if (!region->backend->locks)
		return kd_because(-EOPNOTSUPP, "a virtual run has no locks");
	ret = map_words(region);
	if (!ret)
		ret = region->backend->locks->open(region, arg);
	if (!ret && arg->number >= KDSM_MAX_LOCKS)
		ret = -EPROTO;
	if (ret)
		return explain_open(ret, region, &asked);
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		return kd_no_reason(-ENOMEM);
	lock->region = region;
	lock->backend = region->backend->locks;
	lock->number = arg->number;
	lock->kind = arg->kind;
	lock->levels = arg->levels;
	lock->word = &region->lock_words[arg->number];
	*out = lock;
	return 0;
}

int kdsm_lock_create(struct kdsm_region *region, const char *name, uint32_t number,
		     const struct kdsm_lock_attr *attr, struct kdsm_lock **lock)
{
	struct kdsm_lock_attr own = { .argsz = sizeof(own) };
	struct kdsm_lock_open arg;
	int ret;

	*lock = NULL;
	ret = attr ? KD_ARGUMENT_IN(kdsm_lock_attr, &own, attr) : 0;
	if (ret)
		return ret;
	if (own.flags & ~KDSM_LOCK_EXCL)
		return kd_because(-EINVAL, "lock: flags 0x%x have unknown bits", own.flags);
	ret = open_arg(&arg, name, number);
	if (ret)
		return ret;
	arg.flags = own.flags | KDSM_LOCK_CREATE;
	arg.kind = own.kind ? own.kind : KDSM_LOCK_RMA_MCS;
	arg.settings = own.settings;
	return open_lock(region, &arg, lock);
}

int kdsm_lock_open(struct kdsm_region *region, const char *name, uint32_t number,
		   struct kdsm_lock **lock)
{
	struct kdsm_lock_open arg;
	int ret;

	*lock = NULL;
	ret = open_arg(&arg, name, number);
	return ret ? ret : open_lock(region, &arg, lock);
}

void kdsm_lock_close(struct kdsm_lock *lock)
{
	free(lock);
}

uint32_t kdsm_lock_number(const struct kdsm_lock *lock)
{
	return lock->number;
}

enum kdsm_lock_kind kdsm_lock_kind(const struct kdsm_lock *lock)
{
	return lock->kind;
}

unsigned int kdsm_lock_levels(const struct kdsm_lock *lock)
{
	return lock->levels;
}

struct kdsm_region *kdsm_lock_region(const struct kdsm_lock *lock)
{
	return lock->region;
}

/* ---- tuning ---- */

int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings)
{
	struct kdsm_lock_set arg = {
		.argsz = sizeof(arg),
		.number = lock->number,
		.settings = *settings,
	};
	int ret;

	/* Applying the same settings again changes nothing. */
	do {
		ret = lock->backend->set(lock->region, &arg);
	} while (ret == -EINTR);
	if (ret != -EINVAL && ret != -ERANGE)
		return kd_no_reason(ret);
	return kd_because(ret, "region \"%s\": lock %u: %s",
			  lock->region->name, lock->number,
			  ret == -ERANGE ? "a setting is out of range, or not one of this kind" :
			  "the mask names no setting, or one that does not exist");
}

int kdsm_lock_info(struct kdsm_lock *lock, struct kdsm_lock_info *info)
{
	memset(info, 0, sizeof(*info));
	info->argsz = sizeof(*info);
	info->number = lock->number;
	return lock->backend->info(lock->region, info);
}
