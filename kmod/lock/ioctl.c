// SPDX-License-Identifier: GPL-2.0
/* The calls about locks: their arguments are checked here. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>

#include "arguments.h"
#include "lock/lock.h"
#include "region/region.h"

#define KDSM_LOCK_SET_ALL						\
	(KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W |	\
	 KDSM_LOCK_SET_KEEP | (KDSM_LOCK_SET_T_L(KDSM_LOCK_LEVELS + 1) - KDSM_LOCK_SET_T_L(2)))

static struct kdsm_lock *kdsm_lock_of(struct kdsm_lock_file *file, u32 number)
{
	return number < KDSM_MAX_LOCKS ? kdsm_lock_find(file->region->locks, number) : NULL;
}

union kdsm_lock_args {
	struct kdsm_lock_open open;
	struct kdsm_lock_thread thread;
	struct kdsm_lock_take take;
	struct kdsm_lock_give give;
	struct kdsm_lock_set set;
	struct kdsm_lock_info info;
};

static int kdsm_ioctl_lock_open(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	struct kdsm_lock_open *args = &all->open;
	struct kdsm_lock *lock;

	if (args->flags & ~(KDSM_LOCK_CREATE | KDSM_LOCK_EXCL) ||
	    args->flags == KDSM_LOCK_EXCL || args->reserved ||
	    args->settings.mask & ~KDSM_LOCK_SET_ALL)
		return -EINVAL;
	if (args->name[0]) {
		if (!kdsm_region_name_valid(args->name))
			return -EINVAL;
		args->number = 0;
	} else if (args->number >= KDSM_MAX_LOCKS &&
		   (args->number != KDSM_LOCK_ANY || !(args->flags & KDSM_LOCK_CREATE))) {
		return -EINVAL;
	}
	if (!file->may_write)
		return -EACCES;
	lock = kdsm_lock_open(file->region->locks, args);
	if (IS_ERR(lock))
		return PTR_ERR(lock);
	strscpy_pad(args->name, lock->name, sizeof(args->name));
	args->number = lock->number;
	args->kind = lock->kind;
	args->levels = lock->levels;
	kdsm_lock_meet(lock);
	mutex_lock(&lock->mutex);
	args->settings = lock->settings;
	mutex_unlock(&lock->mutex);
	return 0;
}

static int kdsm_ioctl_lock_thread(struct kdsm_lock_file *file, union kdsm_lock_args *args)
{
	if (args->thread.flags || args->thread.reserved)
		return -EINVAL;
	return file->may_write ? kdsm_lock_thread(file, &args->thread.thread) : -EACCES;
}

/* Checks of all calls of a thread about a lock */
static struct kdsm_lock *kdsm_lock_for(struct kdsm_lock_file *file, u32 number, u32 thread,
				       u32 flags, struct kdsm_lock_owner **owner)
{
	struct kdsm_lock *lock;

	if (!file->may_write)
		return ERR_PTR(-EACCES);
	lock = kdsm_lock_of(file, number);
	if (!lock)
		return ERR_PTR(-ENOENT);
	*owner = kdsm_lock_thread_find(file, thread);
	if (!*owner)
		return ERR_PTR(-EPERM);
	return flags & KDSM_LOCK_READ && lock->kind != KDSM_LOCK_RMA_RW ? ERR_PTR(-EINVAL) : lock;
}

static int kdsm_ioctl_lock_take(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	const struct kdsm_lock_take *args = &all->take;
	struct kdsm_lock_owner *owner;
	struct kdsm_lock *lock;

	if (args->flags & ~(KDSM_LOCK_TRY | KDSM_LOCK_READ))
		return -EINVAL;
	lock = kdsm_lock_for(file, args->number, args->thread, args->flags, &owner);
	return IS_ERR(lock) ? PTR_ERR(lock) :
			      kdsm_lock_take(lock, owner, args->flags, args->timeout);
}

static int kdsm_ioctl_lock_give(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	const struct kdsm_lock_give *args = &all->give;
	struct kdsm_lock_owner *owner;
	struct kdsm_lock *lock;

	if (args->flags & ~KDSM_LOCK_READ)
		return -EINVAL;
	lock = kdsm_lock_for(file, args->number, args->thread, args->flags, &owner);
	if (IS_ERR(lock))
		return PTR_ERR(lock);
	return args->flags & KDSM_LOCK_READ ? kdsm_read_give(lock, args->thread) :
					      kdsm_lock_give(lock, args->thread);
}

static int kdsm_ioctl_lock_consistent(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	const struct kdsm_lock_give *args = &all->give;
	struct kdsm_lock_owner *owner;
	struct kdsm_lock *lock;

	if (args->flags)
		return -EINVAL;
	lock = kdsm_lock_for(file, args->number, args->thread, 0, &owner);
	return IS_ERR(lock) ? PTR_ERR(lock) : kdsm_lock_consistent(lock, args->thread);
}

static int kdsm_ioctl_lock_set(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	const struct kdsm_lock_set *args = &all->set;
	struct kdsm_lock *lock;

	if (args->flags || args->reserved || !args->settings.mask ||
	    args->settings.mask & ~KDSM_LOCK_SET_ALL)
		return -EINVAL;
	if (!file->may_write)
		return -EACCES;
	if (from_kuid(&init_user_ns, current_fsuid()) != file->region->uid &&
	    !capable(CAP_SYS_ADMIN))
		return -EPERM;
	lock = kdsm_lock_of(file, args->number);
	return lock ? kdsm_lock_set(lock, &args->settings) : -ENOENT;
}

/* Count what the lock's parts on this node have done. Returns 0. */
static int kdsm_lock_add_up(const struct kdsm_lock *lock, u64 *stats)
{
	const struct kdsm_turn_stats *turn = &lock->turn.stats;
	const struct kdsm_reader_home *reader = kdsm_lock_reader_home(lock);
	u64 messages = lock->turn.part.messages + lock->pass.part.messages;

	if (lock->home) {
		messages += lock->home->part.messages + lock->home->gate.messages;
		stats[KDSM_LOCK_STAT_SWITCHES] = lock->home->switches;
	}
	if (reader) {
		messages += reader->gate.messages + reader->pass.part.messages;
		stats[KDSM_LOCK_STAT_READERS_IN_ROW] = reader->gate.most;
	}
	stats[KDSM_LOCK_STAT_ENTERED] = turn->asked + turn->free;
	stats[KDSM_LOCK_STAT_FREE] = turn->free;
	stats[KDSM_LOCK_STAT_FREED] = turn->freed;
	stats[KDSM_LOCK_STAT_ATOMICS] = turn->atomics;
	stats[KDSM_LOCK_STAT_PUTS] = lock->puts;
	stats[KDSM_LOCK_STAT_GETS] = lock->gets;
	stats[KDSM_LOCK_STAT_MESSAGES] = messages;
	return 0;
}

static void kdsm_lock_describe(struct kdsm_lock *lock, struct kdsm_lock_info *args)
{
	args->number = lock->number;
	args->kind = lock->kind;
	args->levels = lock->levels;
	args->home = lock->turn.part.home;
	strscpy_pad(args->name, lock->name, sizeof(args->name));
	mutex_lock(&lock->mutex);
	args->settings = lock->settings;
	memcpy(args->stats, lock->stats, sizeof(args->stats));
	memcpy(args->handed, lock->handed, sizeof(args->handed));
	memcpy(args->waits, lock->waits, sizeof(args->waits));
	args->stats[KDSM_LOCK_STAT_FAST] += READ_ONCE(lock->mapped->uses) - lock->uses;
	mutex_unlock(&lock->mutex);
	/* Tasks may be counting: the counters may be of different instants. */
	data_race(kdsm_lock_add_up(lock, args->stats));
}

static int kdsm_ioctl_lock_info(struct kdsm_lock_file *file, union kdsm_lock_args *all)
{
	struct kdsm_lock_info *args = &all->info;
	unsigned long number = args->number;
	struct kdsm_lock *lock;

	if (args->flags & ~KDSM_LOCK_NEXT)
		return -EINVAL;
	if (args->flags & KDSM_LOCK_NEXT)
		lock = xa_find(&file->region->locks->open, &number, KDSM_MAX_LOCKS - 1,
			       XA_PRESENT);
	else
		lock = kdsm_lock_of(file, args->number);
	if (!lock)
		return -ENOENT;
	kdsm_lock_describe(lock, args);
	return 0;
}

static const struct kdsm_lock_call {
	unsigned int command;
	int (*call)(struct kdsm_lock_file *file, union kdsm_lock_args *args);
	u32 size, least;		/* of the arguments, now and in the first version */
	bool returns;			/* the program gets them back */
} kdsm_lock_calls[] = {
	{ KDSM_IOC_LOCK, kdsm_ioctl_lock_take,
	  sizeof(struct kdsm_lock_take), KDSM_LOCK_TAKE_SIZE_VER0, false },
	{ KDSM_IOC_UNLOCK, kdsm_ioctl_lock_give,
	  sizeof(struct kdsm_lock_give), KDSM_LOCK_GIVE_SIZE_VER0, false },
	{ KDSM_IOC_LOCK_CONSISTENT, kdsm_ioctl_lock_consistent,
	  sizeof(struct kdsm_lock_give), KDSM_LOCK_GIVE_SIZE_VER0, false },
	{ KDSM_IOC_LOCK_THREAD, kdsm_ioctl_lock_thread,
	  sizeof(struct kdsm_lock_thread), KDSM_LOCK_THREAD_SIZE_VER0, true },
	{ KDSM_IOC_LOCK_OPEN, kdsm_ioctl_lock_open,
	  sizeof(struct kdsm_lock_open), KDSM_LOCK_OPEN_SIZE_VER0, true },
	{ KDSM_IOC_LOCK_SET, kdsm_ioctl_lock_set,
	  sizeof(struct kdsm_lock_set), KDSM_LOCK_SET_SIZE_VER0, false },
	{ KDSM_IOC_LOCK_INFO, kdsm_ioctl_lock_info,
	  sizeof(struct kdsm_lock_info), KDSM_LOCK_INFO_SIZE_VER0, true },
};

long kdsm_lock_ioctl(struct kdsm_lock_file *file, unsigned int command, void __user *user)
{
	const struct kdsm_lock_call *call = kdsm_lock_calls;
	union kdsm_lock_args args;
	u32 argsz;
	int err;

	while (call->command != command)
		if (++call == kdsm_lock_calls + ARRAY_SIZE(kdsm_lock_calls))
			return -ENOTTY;
	err = kdsm_args_get(&args, call->size, call->least, user, &argsz);
	err = err ?: call->call(file, &args);
	return !err && call->returns ? kdsm_args_put(&args, call->size, user, argsz) : err;
}
