// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that may own locks. A lock word names its owner by a number that the module gave to a
 * thread. The number is good as long as the thread lives, runs the same program, and the file is
 * open by way of which it was given. The death of a thread is found when a task looks. A reference
 * to its pid keeps another thread from being taken for it.
 */
#include <linux/err.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "region/region.h"

/* Number of owners of a file from which on dead ones are looked for */
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

/* In an RCU read section */
static bool kdsm_lock_owner_lives(const struct kdsm_lock_owner *owner)
{
	struct task_struct *task = pid_task(owner->pid, PIDTYPE_PID);

	return !READ_ONCE(owner->closed) && task && !READ_ONCE(task->exit_state) &&
	       READ_ONCE(task->self_exec_id) == owner->exec;
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

struct kdsm_lock_owner *kdsm_lock_thread_find(struct kdsm_lock_file *file, u32 number)
{
	struct kdsm_lock_owner *owner;

	/* Only the death of this thread, or the end of the file, frees its owner. */
	rcu_read_lock();
	owner = xa_load(&file->region->locks->threads, number);
	if (owner && (owner->file != file || owner->pid != task_pid(current) ||
		      !kdsm_lock_owner_lives(owner)))
		owner = NULL;
	rcu_read_unlock();
	return owner;
}

/* All locks look for dead owners, and for slots of dead readers. */
static void kdsm_lock_check_all(struct kdsm_locks *locks)
{
	struct kdsm_lock *lock;
	unsigned long number;

	xa_for_each(&locks->open, number, lock)
		kdsm_lock_check(lock);
}

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
 * Forget dead owners. Their numbers go to other threads only after all that the dead ones owned is
 * known to be theirs no more.
 */
static void kdsm_lock_reap(struct kdsm_lock_file *file)
{
	struct kdsm_lock_owner *owner, *next;
	LIST_HEAD(dead);

	rcu_read_lock();
	list_for_each_entry_safe(owner, next, &file->owners, link)
		if (!kdsm_lock_owner_lives(owner))
			list_move(&owner->link, &dead);
	rcu_read_unlock();
	if (!list_empty(&dead))
		kdsm_lock_check_all(file->region->locks);
	list_for_each_entry_safe(owner, next, &dead, link)
		kdsm_lock_owner_drop(file, owner);
	file->reap_at = max(2 * file->count, KDSM_LOCK_REAP);
}

/* Before the thread has a slot. Numbers go round, so the last one need not be the highest. */
static void kdsm_lock_count_thread(struct kdsm_locks *locks, u32 number)
{
	u32 end = READ_ONCE(locks->threads_end);

	while (end <= number && !try_cmpxchg(&locks->threads_end, &end, number + 1))
		;
}

static struct kdsm_lock_owner *kdsm_lock_owner_create(struct kdsm_lock_file *file)
{
	struct kdsm_lock_owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	struct kdsm_locks *locks = file->region->locks;
	int err;

	if (!owner)
		return ERR_PTR(-ENOMEM);
	owner->file = file;
	owner->pid = get_task_pid(current, PIDTYPE_PID);
	owner->exec = current->self_exec_id;
	/* No number is used again soon. */
	err = xa_alloc_cyclic(&locks->threads, &owner->number, owner,
			      XA_LIMIT(1, KDSM_MAX_LOCK_THREADS), &locks->next_thread,
			      GFP_KERNEL);
	if (err < 0) {
		put_pid(owner->pid);
		kfree(owner);
		return ERR_PTR(err == -EBUSY ? -ENOSPC : err);
	}
	kdsm_lock_count_thread(locks, owner->number);
	list_add_tail(&owner->link, &file->owners);
	file->count++;
	return owner;
}

int kdsm_lock_thread(struct kdsm_lock_file *file, u32 *number)
{
	struct kdsm_lock_owner *owner;
	int err = 0;

	mutex_lock(&file->mutex);
	list_for_each_entry(owner, &file->owners, link)
		if (owner->pid == task_pid(current) && owner->exec == current->self_exec_id)
			goto found;
	if (file->count >= file->reap_at)
		kdsm_lock_reap(file);
	owner = kdsm_lock_owner_create(file);
	err = PTR_ERR_OR_ZERO(owner);
found:
	if (!err)
		*number = owner->number;
	mutex_unlock(&file->mutex);
	return err;
}

void kdsm_lock_file_release(struct kdsm_lock_file *file)
{
	unsigned long end = jiffies + KDSM_LOCK_GIVE_UP;
	struct kdsm_lock_owner *owner, *next;
	struct kdsm_lock *lock;
	unsigned long number;

	mutex_lock(&file->mutex);
	list_for_each_entry(owner, &file->owners, link)
		WRITE_ONCE(owner->closed, true);
	if (file->count)
		kdsm_lock_check_all(file->region->locks);
	list_for_each_entry_safe(owner, next, &file->owners, link)
		kdsm_lock_owner_drop(file, owner);
	mutex_unlock(&file->mutex);
	/*
	 * A node that has the region open no more may leave the cluster, so it should have no
	 * lock. To let go a lock that a thread here wants after all does no harm.
	 */
	if (READ_ONCE(file->region->opens) == 1)
		xa_for_each(&file->region->locks->open, number, lock)
			kdsm_lock_let_go(lock, end);
}
