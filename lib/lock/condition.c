// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Condition variables: a waiting line that keeps no posts. A waiter joins the line before
 * it releases the lock, so a thread that signals while it holds the lock, or after it has
 * held the lock, finds the waiter in the line. The line is in wait_queue.c.
 */
#include <errno.h>
#include "internal.h"

#define NAP 1000000	/* pause while the line is full, in ns */

static struct kdsm_line line_of(struct kdsm_cond *cond)
{
	return (struct kdsm_line){ cond->region, cond->offset, cond->home, false, &cond->memory };
}

int kdsm_cond_init(struct kdsm_cond *cond, struct kdsm_region *region, uint64_t offset,
		   uint32_t home)
{
	struct kdsm_line line;

	*cond = (struct kdsm_cond){ .region = region, .offset = offset, .home = home };
	line = line_of(cond);
	return kdsm_line_init(&line, 0);
}

/* The caller is in the line and holds the lock. */
static int wait_unlocked(struct kdsm_line_wait *wait, struct kdsm_lock *lock)
{
	int ret, again;

	ret = kdsm_unlock(lock);
	if (ret) {
		kdsm_line_leave(wait);
		return ret;
	}
	ret = kdsm_line_sleep(wait);
	/*
	 * Others took this thread for dead. Return 0, a spurious wakeup: the caller checks its
	 * condition again.
	 */
	if (ret == -ESTALE)
		ret = 0;
	again = kdsm_lock(lock);
	return again ? again : ret;
}

/*
 * The line is full, so the caller is not in the line: release the lock for a moment and return
 * ret, so that the caller checks its condition again.
 */
static int nap_unlocked(struct kdsm_lock *lock, int ret)
{
	int again = kdsm_unlock(lock);

	if (again)
		return again;
	kd_sleep(NAP);
	again = kdsm_lock(lock);
	return again ? again : ret;
}

int kdsm_cond_timed(struct kdsm_cond *cond, struct kdsm_lock *lock, uint64_t timeout)
{
	struct kdsm_line line = line_of(cond);
	struct kdsm_line_wait wait = {
		.line = &line,
		.begin = kdsm_now(),
		.timeout = timeout,
	};
	int ret;

	if (!kdsm_lock_is_mine(lock))
		return kd_because(-EPERM, "kdsm_cond_wait: the calling thread does not hold the lock");
	ret = kdsm_head_read(&line, &wait.head);
	if (ret)
		return ret;
	ret = kdsm_line_join(&wait);
	/*
	 * Report a spurious wakeup, but only after a pause, so that the caller does not
	 * busy-loop.
	 */
	if (ret == -EAGAIN)
		return nap_unlocked(lock, 0);
	if (ret == -ETIMEDOUT)
		return nap_unlocked(lock, ret);
	return ret ? ret : wait_unlocked(&wait, lock);
}

int kdsm_cond_wait(struct kdsm_cond *cond, struct kdsm_lock *lock)
{
	return kdsm_cond_timed(cond, lock, KDSM_FOREVER);
}

int kdsm_cond_signal(struct kdsm_cond *cond)
{
	struct kdsm_line line = line_of(cond);

	return kdsm_line_post(&line, 1);
}

int kdsm_cond_broadcast(struct kdsm_cond *cond)
{
	struct kdsm_line line = line_of(cond);

	return kdsm_line_post(&line, KDSM_LINE_MOST);
}
