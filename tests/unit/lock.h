/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests of locks: a lock, and threads and child processes that use the lock
 */
#ifndef UNIT_LOCK_H
#define UNIT_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "unit.h"
#include "core/internal.h"
#include <kdsm/lock.h>

#define MS	1000000ULL
#define SECOND	(1000 * MS)

static inline uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static inline struct kdsm_lock *make_lock(void **state, enum kdsm_lock_kind kind)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = kind };
	struct unit *unit = *state;
	struct kdsm_lock *lock;

	assert_int_equal(kdsm_lock_create(unit->region, NULL, KDSM_LOCK_ANY, &attr, &lock), 0);
	return lock;
}

static inline uint64_t *unit_words(void **state)
{
	struct unit *unit = *state;

	return kdsm_region_part(unit->region);
}

static inline uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static inline void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* Whether the word reaches this value within 60 seconds */
static inline bool comes_to(const uint64_t *word, uint64_t value)
{
	uint64_t begin = now();

	while (load(word) < value && now() - begin < 60 * SECOND)
		usleep(500);
	return load(word) >= value;
}

/* Number of threads in the queue of the lock, including threads that died there */
static inline unsigned int waiting(struct kdsm_lock *lock)
{
	struct kdsm_local_area *area = kdsm_local_area(kdsm_lock_region(lock));
	uint64_t key = area->serial * KDSM_MAX_LOCKS + kdsm_lock_number(lock);
	unsigned int i, used = kdsm_lives_used(), count = 0;

	for (i = 0; i < used; i++)
		count += load(&kdsm_life_at(i)->waits) == key;
	return count;
}

/*
 * Whether count threads wait within 60 seconds. The bound leaves room for a busy machine.
 */
static inline bool so_many_wait(struct kdsm_lock *lock, unsigned int count)
{
	uint64_t begin = now();

	while (waiting(lock) != count) {
		if (now() - begin > 60 * SECOND)
			return false;
		usleep(500);
	}
	return true;
}

static inline void *join(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static inline pthread_t start(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	return thread;
}

/* A call by another thread, and its result */
struct call {
	int (*function)(struct kdsm_lock *lock);
	struct kdsm_lock *lock;
	int ret;
};

static inline void *call_it(void *arg)
{
	struct call *call = arg;

	call->ret = call->function(call->lock);
	return NULL;
}

static inline int call_by_other(int (*function)(struct kdsm_lock *lock), struct kdsm_lock *lock)
{
	struct call call = { function, lock, 0 };

	join(start(call_it, &call));
	return call.ret;
}

static inline int lock_and_unlock(struct kdsm_lock *lock)
{
	int ret = kdsm_lock(lock);

	return ret ? ret : kdsm_unlock(lock);
}

static inline void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static inline void kill_child(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* A timer that interrupts this process every 5 ms until timer_delete() */
static inline void ignore_signal(int signal)
{
	(void)signal;
}

static inline timer_t start_signals(void)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, 5000000 }, { 0, 5000000 } };
	timer_t timer;

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &spec, NULL), 0);
	return timer;
}

#endif /* UNIT_LOCK_H */
