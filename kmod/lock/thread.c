// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that may own locks. A lock word names its owner by a number that the module
 * gave to a thread; it is good as long as the thread lives and the file is open by way
 * of which it was given. A thread's death is found when somebody looks: its identity is
 * held by a reference, so that no other thread can be taken for it.
 */
#include <linux/err.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "region/region.h"

/* So many of one file before those that have died are looked for. */
#define KDSM_LOCK_REAP		64U

void kdsm_lock_file_init(struct kdsm_lock_file *file, struct kdsm_region *region,
			 bool may_write)
{
	file->region = region;
	file->may_write = may_write;
	mutex_init(&file->mutex);
	INIT_LIST_HEAD(&file->owners);
	file->reap_at = KDSM_LOCK_REAP;
}

/* Under the RCU read lock or where it cannot go. */
static bool kdsm_lock_owner_lives(const struct kdsm_lock_owner *owner)
{
	struct task_struct *task = pid_task(owner->pid, PIDTYPE_PID);

	return task && !READ_ONCE(task->exit_state);
}

bool kdsm_lock_thread_lives(struct kdsm_locks *locks, u32 number)
{
	struct kdsm_lock_owner *owner;
	bool lives;

	rcu_read_lock();
	owner = xa_load(&locks->threads, number);
	lives = owner && kdsm_lock_owner_lives(owner);
	rcu_read_unlock();
	return lives;
}

bool kdsm_lock_thread_is_current(struct kdsm_lock_file *file, u32 number)
{
	struct kdsm_lock_owner *owner;
	bool is_current;

	rcu_read_lock();
	owner = xa_load(&file->region->locks->threads, number);
	is_current = owner && owner->file == file && owner->pid == task_pid(current);
	rcu_read_unlock();
	return is_current;
}

/* From now on it counts as dead. */
static void kdsm_lock_owner_drop(struct kdsm_lock_file *file, struct kdsm_lock_owner *owner)
{
	lockdep_assert_held(&file->mutex);
	xa_erase(&file->region->locks->threads, owner->number);
	list_del(&owner->link);
	file->count--;
	put_pid(owner->pid);
	kfree_rcu(owner, rcu);
}

/*
 * Before the number of one that is dead is given to another: what it owns is another's,
 * or nobody's.
 */
static void kdsm_lock_check_all(struct kdsm_locks *locks)
{
	struct kdsm_lock *lock;
	unsigned long number;

	xa_for_each(&locks->open, number, lock)
		kdsm_lock_check(lock);
}

static void kdsm_lock_reap(struct kdsm_lock_file *file)
{
	struct kdsm_lock_owner *owner, *next;
	bool any = false;

	list_for_each_entry_safe(owner, next, &file->owners, link) {
		rcu_read_lock();
		if (!kdsm_lock_owner_lives(owner)) {
			kdsm_lock_owner_drop(file, owner);
			any = true;
		}
		rcu_read_unlock();
	}
	if (any)
		kdsm_lock_check_all(file->region->locks);
	file->reap_at = max(2 * file->count, KDSM_LOCK_REAP);
}

int kdsm_lock_thread(struct kdsm_lock_file *file, u32 *number)
{
	struct kdsm_locks *locks = file->region->locks;
	struct kdsm_lock_owner *owner;
	int err;

	mutex_lock(&file->mutex);
	list_for_each_entry(owner, &file->owners, link) {
		if (owner->pid == task_pid(current)) {
			*number = owner->number;
			err = 0;
			goto unlock;
		}
	}
	if (file->count >= file->reap_at)
		kdsm_lock_reap(file);
	err = -ENOMEM;
	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner)
		goto unlock;
	owner->file = file;
	owner->pid = get_task_pid(current, PIDTYPE_PID);
	/* Not at once again one that was: a word may still say it. */
	err = xa_alloc_cyclic(&locks->threads, &owner->number, owner,
			      XA_LIMIT(1, KDSM_MAX_LOCK_THREADS), &locks->last_thread,
			      GFP_KERNEL);
	if (err < 0) {
		put_pid(owner->pid);
		kfree(owner);
		err = err == -EBUSY ? -ENOSPC : err;
		goto unlock;
	}
	err = 0;
	list_add_tail(&owner->link, &file->owners);
	file->count++;
	*number = owner->number;
unlock:
	mutex_unlock(&file->mutex);
	return err;
}

void kdsm_lock_file_release(struct kdsm_lock_file *file)
{
	struct kdsm_lock_owner *owner, *next;
	struct kdsm_lock *lock;
	unsigned long number;

	mutex_lock(&file->mutex);
	list_for_each_entry_safe(owner, next, &file->owners, link)
		kdsm_lock_owner_drop(file, owner);
	mutex_unlock(&file->mutex);
	kdsm_lock_check_all(file->region->locks);
	/*
	 * A node that has the region open no more may leave the cluster, so it should
	 * have no lock. To let go what somebody else here wants after all does no harm.
	 */
	if (READ_ONCE(file->region->opens) == 1)
		xa_for_each(&file->region->locks->open, number, lock)
			kdsm_lock_let_go(lock);
}
