// SPDX-License-Identifier: GPL-2.0
/* The calls about locks: their arguments are checked here. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/slab.h>
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

static int kdsm_ioctl_lock_open(struct kdsm_lock_file *file, void __user *user)
{
	struct kdsm_lock_open args;
	struct kdsm_lock *lock;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCK_OPEN_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags & ~(KDSM_LOCK_CREATE | KDSM_LOCK_EXCL) ||
	    args.flags == KDSM_LOCK_EXCL || args.reserved ||
	    args.settings.mask & ~KDSM_LOCK_SET_ALL)
		return -EINVAL;
	if (args.name[0]) {
		if (!kdsm_region_name_valid(args.name))
			return -EINVAL;
		args.number = 0;
	} else if (args.number >= KDSM_MAX_LOCKS &&
		   (args.number != KDSM_LOCK_ANY || !(args.flags & KDSM_LOCK_CREATE))) {
		return -EINVAL;
	}
	if (!file->may_write)
		return -EACCES;
	lock = kdsm_lock_open(file->region->locks, &args);
	if (IS_ERR(lock))
		return PTR_ERR(lock);
	strscpy_pad(args.name, lock->name, sizeof(args.name));
	args.number = lock->number;
	args.kind = lock->kind;
	args.levels = lock->levels;
	kdsm_lock_meet(lock);
	mutex_lock(&lock->mutex);
	args.settings = lock->settings;
	mutex_unlock(&lock->mutex);
	return kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_lock_thread(struct kdsm_lock_file *file, void __user *user)
{
	struct kdsm_lock_thread args;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCK_THREAD_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	if (!file->may_write)
		return -EACCES;
	err = kdsm_lock_thread(file, &args.thread);
	return err ?: kdsm_args_put(&args, sizeof(args), user, argsz);
}

/* Checks of all calls of a thread about a lock */
static struct kdsm_lock *kdsm_lock_for(struct kdsm_lock_file *file, u32 number, u32 thread,
				       struct kdsm_lock_owner **owner)
{
	struct kdsm_lock *lock;

	if (!file->may_write)
		return ERR_PTR(-EACCES);
	lock = kdsm_lock_of(file, number);
	if (!lock)
		return ERR_PTR(-ENOENT);
	*owner = kdsm_lock_thread_find(file, thread);
	return *owner ? lock : ERR_PTR(-EPERM);
}

static int kdsm_ioctl_lock_take(struct kdsm_lock_file *file, void __user *user)
{
	struct kdsm_lock_owner *owner;
	struct kdsm_lock_take args;
	struct kdsm_lock *lock;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCK_TAKE_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags & ~(KDSM_LOCK_TRY | KDSM_LOCK_READ))
		return -EINVAL;
	lock = kdsm_lock_for(file, args.number, args.thread, &owner);
	if (IS_ERR(lock))
		return PTR_ERR(lock);
	if (args.flags & KDSM_LOCK_READ && lock->kind != KDSM_LOCK_RMA_RW)
		return -EINVAL;
	return kdsm_lock_take(lock, owner, args.flags, args.timeout);
}

static int kdsm_ioctl_lock_give(struct kdsm_lock_file *file, void __user *user, bool give)
{
	struct kdsm_lock_owner *owner;
	struct kdsm_lock_give args;
	struct kdsm_lock *lock;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCK_GIVE_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags & ~(give ? KDSM_LOCK_READ : 0))
		return -EINVAL;
	lock = kdsm_lock_for(file, args.number, args.thread, &owner);
	if (IS_ERR(lock))
		return PTR_ERR(lock);
	if (args.flags & KDSM_LOCK_READ)
		return lock->kind == KDSM_LOCK_RMA_RW ? kdsm_read_give(lock, args.thread) : -EINVAL;
	return give ? kdsm_lock_give(lock, args.thread) : kdsm_lock_consistent(lock, args.thread);
}

static int kdsm_ioctl_lock_set(struct kdsm_lock_file *file, void __user *user)
{
	struct kdsm_lock_set args;
	struct kdsm_lock *lock;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCK_SET_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved || !args.settings.mask ||
	    args.settings.mask & ~KDSM_LOCK_SET_ALL)
		return -EINVAL;
	if (!file->may_write)
		return -EACCES;
	if (from_kuid(&init_user_ns, current_fsuid()) != file->region->uid &&
	    !capable(CAP_SYS_ADMIN))
		return -EPERM;
	lock = kdsm_lock_of(file, args.number);
	return lock ? kdsm_lock_set(lock, &args.settings) : -ENOENT;
}

/* Count what the lock's objects on this node have done. Returns 0. */
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

static int kdsm_ioctl_lock_info(struct kdsm_lock_file *file, void __user *user)
{
	struct kdsm_lock_info *args;
	struct kdsm_lock *lock;
	unsigned long number;
	u32 argsz;
	int err;

	args = kzalloc(sizeof(*args), GFP_KERNEL);
	if (!args)
		return -ENOMEM;
	err = kdsm_args_get(args, sizeof(*args), KDSM_LOCK_INFO_SIZE_VER0, user, &argsz);
	if (err)
		goto free;
	err = -EINVAL;
	if (args->flags & ~KDSM_LOCK_NEXT)
		goto free;
	number = args->number;
	if (args->flags & KDSM_LOCK_NEXT)
		lock = xa_find(&file->region->locks->open, &number, KDSM_MAX_LOCKS - 1,
			       XA_PRESENT);
	else
		lock = kdsm_lock_of(file, args->number);
	err = -ENOENT;
	if (lock) {
		kdsm_lock_describe(lock, args);
		err = kdsm_args_put(args, sizeof(*args), user, argsz);
	}
free:
	kfree(args);
	return err;
}

long kdsm_lock_ioctl(struct kdsm_lock_file *file, unsigned int command, void __user *user)
{
	switch (command) {
	case KDSM_IOC_LOCK_OPEN:
		return kdsm_ioctl_lock_open(file, user);
	case KDSM_IOC_LOCK_THREAD:
		return kdsm_ioctl_lock_thread(file, user);
	case KDSM_IOC_LOCK:
		return kdsm_ioctl_lock_take(file, user);
	case KDSM_IOC_UNLOCK:
		return kdsm_ioctl_lock_give(file, user, true);
	case KDSM_IOC_LOCK_CONSISTENT:
		return kdsm_ioctl_lock_give(file, user, false);
	case KDSM_IOC_LOCK_SET:
		return kdsm_ioctl_lock_set(file, user);
	default:
		return kdsm_ioctl_lock_info(file, user);
	}
}
