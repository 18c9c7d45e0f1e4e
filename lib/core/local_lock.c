// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Locks of the local backend: finding and creating them, settings and counters. The checks
 * are those of the module, for a cluster of one node. How threads queue for a lock is in
 * local_lock_queue.c.
 */
#include <errno.h>
#include <string.h>
#include "internal.h"

#define LEVELS		2	/* the cluster and its node */
#define DEFAULT_T_R	64

#define SETTINGS_ALL	(KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W | \
			 KDSM_LOCK_SET_KEEP | SETTINGS_T_L)
#define SETTINGS_T_L	((2 * KDSM_LOCK_SET_T_L(KDSM_LOCK_LEVELS) - 1) & \
			 ~(KDSM_LOCK_SET_T_L(2) - 1))

/* The settings that a lock of that kind has */
static uint32_t settings_of(uint32_t kind)
{
	switch (kind) {
	case KDSM_LOCK_DMCS:
		return KDSM_LOCK_SET_KEEP;
	case KDSM_LOCK_RMA_MCS:
		return KDSM_LOCK_SET_KEEP | KDSM_LOCK_SET_T_L(LEVELS);
	default:
		return KDSM_LOCK_SET_KEEP | KDSM_LOCK_SET_T_L(LEVELS) | KDSM_LOCK_SET_T_DC |
		       KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W;
	}
}

static bool in_range(uint32_t value, uint32_t most)
{
	return value >= 1 && value <= most;
}

static bool is_t_l(uint32_t value)
{
	return value == KDSM_LOCK_T_L_AUTO || in_range(value, KDSM_LOCK_T_MAX);
}

static int settings_check(const struct kdsm_lock_settings *settings, uint32_t kind)
{
	uint32_t mask = settings->mask;

	if (mask & ~SETTINGS_ALL)
		return -EINVAL;
	if ((mask & ~settings_of(kind)) ||
	    ((mask & KDSM_LOCK_SET_T_DC) && settings->t_dc != 1) ||
	    ((mask & KDSM_LOCK_SET_T_R) && !in_range(settings->t_r, KDSM_LOCK_T_MAX)) ||
	    ((mask & KDSM_LOCK_SET_T_W) && !in_range(settings->t_w, KDSM_LOCK_T_MAX)) ||
	    ((mask & KDSM_LOCK_SET_T_L(LEVELS)) && !is_t_l(settings->t_l[LEVELS - 1])))
		return -ERANGE;
	return 0;
}

static void settings_apply(struct kdsm_lock_settings *to, const struct kdsm_lock_settings *from)
{
	if (from->mask & KDSM_LOCK_SET_T_R)
		to->t_r = from->t_r;
	if (from->mask & KDSM_LOCK_SET_T_W)
		to->t_w = from->t_w;
	if (from->mask & KDSM_LOCK_SET_T_L(LEVELS))
		to->t_l[LEVELS - 1] = from->t_l[LEVELS - 1];
	if (from->mask & KDSM_LOCK_SET_KEEP)
		to->keep = from->keep;
}

static void settings_init(struct kdsm_lock_settings *settings, uint32_t kind,
			  const struct kdsm_lock_settings *wish)
{
	memset(settings, 0, sizeof(*settings));
	settings->mask = settings_of(kind);
	settings->keep = KDSM_LOCK_KEEP_FOREVER;
	settings->t_l[LEVELS - 1] = kind == KDSM_LOCK_DMCS ? 1 : KDSM_LOCK_T_L_AUTO;
	if (kind == KDSM_LOCK_RMA_RW) {
		settings->t_dc = 1;
		settings->t_r = DEFAULT_T_R;
	}
	settings_apply(settings, wish);
	if (kind == KDSM_LOCK_RMA_RW && !(wish->mask & KDSM_LOCK_SET_T_W))
		settings->t_w = settings->t_l[LEVELS - 1] == KDSM_LOCK_T_L_AUTO ?
				KDSM_LOCK_T_L_MOST : settings->t_l[LEVELS - 1];
}

/* ---- finding and making ---- */

static bool is_made(const struct kdsm_local_lock *lock)
{
	return __atomic_load_n(&lock->kind, __ATOMIC_ACQUIRE);
}

/* Find the number of the lock that arg names, or the number for a new lock. */
static int find_number(const struct kdsm_local_area *area, const struct kdsm_lock_open *arg,
		       uint32_t *number)
{
	uint32_t i, unused = KDSM_LOCK_ANY;

	if (!arg->name[0] && arg->number != KDSM_LOCK_ANY) {
		*number = arg->number;
		return arg->number < KDSM_MAX_LOCKS ? 0 : -EINVAL;
	}
	for (i = 0; i < KDSM_MAX_LOCKS; i++) {
		if (arg->name[0] && is_made(&area->locks[i]) &&
		    !strcmp(area->locks[i].name, arg->name)) {
			*number = i;
			return 0;
		}
		if (unused == KDSM_LOCK_ANY && !is_made(&area->locks[i]))
			unused = i;
	}
	*number = unused;
	if (!(arg->flags & KDSM_LOCK_CREATE))
		return arg->name[0] ? -ENOENT : -EINVAL;
	return unused == KDSM_LOCK_ANY ? -ENOSPC : 0;
}

static int make_check(const struct kdsm_lock_open *arg)
{
	if (arg->flags & ~(KDSM_LOCK_CREATE | KDSM_LOCK_EXCL))
		return -EINVAL;
	if (!(arg->flags & KDSM_LOCK_CREATE))
		return 0;
	if (arg->kind < KDSM_LOCK_DMCS || arg->kind > KDSM_LOCK_RMA_RW)
		return -EINVAL;
	return settings_check(&arg->settings, arg->kind);
}

static void make_lock(struct kdsm_local_lock *lock, struct kdsm_lock_word *word,
		      const struct kdsm_lock_open *arg)
{
	memcpy(lock->name, arg->name, sizeof(lock->name));
	settings_init(&lock->settings, arg->kind, &arg->settings);
	__atomic_store_n(&word->state, KDSM_LOCK_AT_NODE, __ATOMIC_RELEASE);
	__atomic_store_n(&lock->kind, arg->kind, __ATOMIC_RELEASE);
}

static int open_in(struct kdsm_local_area *area, struct kdsm_lock_open *arg)
{
	struct kdsm_local_lock *lock;
	uint32_t number;
	int ret;

	ret = find_number(area, arg, &number);
	if (ret)
		return ret;
	lock = &area->locks[number];
	if (!is_made(lock)) {
		if (!(arg->flags & KDSM_LOCK_CREATE))
			return -ENOENT;
		make_lock(lock, &area->words[number], arg);
	} else if (arg->flags & KDSM_LOCK_EXCL) {
		return -EEXIST;
	} else if ((arg->flags & KDSM_LOCK_CREATE) && arg->kind != lock->kind) {
		return -EINVAL;
	}
	arg->number = number;
	arg->kind = lock->kind;
	arg->levels = LEVELS;
	return 0;
}

static int local_open(struct kdsm_region *region, struct kdsm_lock_open *arg)
{
	struct kdsm_local_area *area = kdsm_local_area(region);
	struct kdsm_local_lock *lock;
	uint32_t thread;
	int ret;

	ret = make_check(arg);
	if (!ret)
		ret = kdsm_life_own(&thread);
	if (ret)
		return ret;
	/*
	 * If a holder of the guard died, the lock is either complete or not made, so
	 * nothing needs repair.
	 */
	kdsm_guard_take(&area->guard, thread);
	ret = open_in(area, arg);
	kdsm_guard_give(&area->guard);
	if (ret)
		return ret;
	lock = &area->locks[arg->number];
	kdsm_guard_take(&lock->guard, thread);
	arg->settings = lock->settings;
	kdsm_guard_give(&lock->guard);
	return 0;
}

static int local_thread(struct kdsm_region *region, uint32_t *thread)
{
	(void)region;
	return kdsm_life_own(thread);
}

/* ---- settings and counters ---- */

static int local_set(struct kdsm_region *region, struct kdsm_lock_set *arg)
{
	struct kdsm_local_lock *lock = &kdsm_local_area(region)->locks[arg->number];
	uint32_t thread;
	int ret;

	if (!arg->settings.mask)
		return -EINVAL;
	ret = settings_check(&arg->settings, lock->kind);
	if (!ret)
		ret = kdsm_life_own(&thread);
	if (ret)
		return ret;
	kdsm_guard_take(&lock->guard, thread);
	settings_apply(&lock->settings, &arg->settings);
	kdsm_guard_give(&lock->guard);
	return 0;
}

static int local_info(struct kdsm_region *region, struct kdsm_lock_info *arg)
{
	struct kdsm_local_area *area = kdsm_local_area(region);
	struct kdsm_local_lock *lock = &area->locks[arg->number];
	const struct kdsm_lock_word *word = &area->words[arg->number];
	uint32_t thread;
	unsigned int i;
	int ret;

	ret = kdsm_life_own(&thread);
	if (ret)
		return ret;
	kdsm_guard_take(&lock->guard, thread);
	arg->kind = lock->kind;
	arg->levels = LEVELS;
	memcpy(arg->name, lock->name, sizeof(arg->name));
	arg->settings = lock->settings;
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		arg->stats[i] = __atomic_load_n(&lock->stats[i], __ATOMIC_RELAXED);
	arg->stats[KDSM_LOCK_STAT_FAST] = __atomic_load_n(&word->uses, __ATOMIC_RELAXED);
	for (i = 0; i < KDSM_LOCK_WAITS; i++) {
		arg->waits[i] = __atomic_load_n(&lock->waits[i], __ATOMIC_RELAXED);
		/* A waiter always gets the lock from another thread of this node. */
		arg->handed[LEVELS - 1] += arg->waits[i];
	}
	kdsm_guard_give(&lock->guard);
	return 0;
}

const struct kdsm_lock_backend kdsm_local_locks = {
	.map = kdsm_local_map_locks,
	.open = local_open,
	.thread = local_thread,
	.take = kdsm_local_take,
	.give = kdsm_local_give,
	.consistent = kdsm_local_consistent,
	.set = local_set,
	.info = local_info,
};
