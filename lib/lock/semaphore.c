// SPDX-License-Identifier: LGPL-2.1-or-later
/* Semaphores: a waiting line that keeps its posts. The line is in wait_queue.c. */
#include <errno.h>
#include "internal.h"

static struct kdsm_line line_of(struct kdsm_sem *sem)
{
	return (struct kdsm_line){ sem->region, sem->offset, sem->home, true, &sem->memory };
}

int kdsm_sem_init(struct kdsm_sem *sem, struct kdsm_region *region, uint64_t offset,
		  uint32_t home, uint32_t value, struct kdsm_lock *lock)
{
	struct kdsm_line line;

	*sem = (struct kdsm_sem){
		.region = region,
		.lock = lock,
		.offset = offset,
		.home = home,
	};
	line = line_of(sem);
	return kdsm_line_init(&line, value);
}

/*
 * Take and release the lock: a poster does so before its post, a waiter after its wait. The
 * waiter therefore comes later in the order of the lock and sees the poster's writes to the
 * lock's region. A dead owner leaves nothing to repair, because no data changes while this
 * function holds the lock.
 */
static int touch_lock(const struct kdsm_sem *sem)
{
	int ret;

	if (!sem->lock)
		return 0;
	ret = kdsm_lock(sem->lock);
	if (ret == -EOWNERDEAD)
		ret = kdsm_lock_consistent(sem->lock);
	return ret ? ret : kdsm_unlock(sem->lock);
}

static int wait_in_line(const struct kdsm_line *line, uint64_t begin, uint64_t timeout)
{
	struct kdsm_line_wait wait = {
		.line = line,
		.begin = begin,
		.timeout = timeout,
		.interruptible = true,
	};
	int ret;

	ret = kdsm_line_take(line, &wait.head);
	if (ret != -EAGAIN)
		return ret;
	if (!kdsm_left(begin, timeout))
		return -ETIMEDOUT;
	ret = kdsm_line_join(&wait);
	return ret ? ret : kdsm_line_sleep(&wait);
}

int kdsm_sem_timed(struct kdsm_sem *sem, uint64_t timeout)
{
	struct kdsm_line line = line_of(sem);
	uint64_t begin = timeout && timeout != KDSM_FOREVER ? kdsm_now() : 0;
	int ret;

	do {
		ret = wait_in_line(&line, begin, timeout);
	} while (ret == -ESTALE);
	return ret ? ret : touch_lock(sem);
}

int kdsm_sem_wait(struct kdsm_sem *sem)
{
	return kdsm_sem_timed(sem, KDSM_FOREVER);
}

int kdsm_sem_try(struct kdsm_sem *sem)
{
	struct kdsm_line line = line_of(sem);
	uint64_t head;
	int ret = kdsm_line_take(&line, &head);

	return ret ? ret : touch_lock(sem);
}

int kdsm_sem_post(struct kdsm_sem *sem)
{
	struct kdsm_line line = line_of(sem);
	int ret = touch_lock(sem);

	return ret ? ret : kdsm_line_post(&line, 1);
}

int kdsm_sem_value(struct kdsm_sem *sem, int32_t *value)
{
	struct kdsm_line line = line_of(sem);

	return kdsm_line_value(&line, value);
}
