// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads, conditions and pauses; see thread.h. */
#include <sched.h>

#include "core/thread.h"

/* Pause of a coroutine that polls, in ns: about as long as a poll takes */
#define POLL	200

_Thread_local const struct kd_scheduler *kd_scheduler;

uint64_t kd_thread_time(void)
{
	return kd_scheduler ? kd_scheduler->now() : kd_system_time(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t kdsm_left(uint64_t begin, uint64_t timeout)
{
	uint64_t spent;

	if (!timeout || timeout == KDSM_FOREVER)
		return timeout;
	spent = kdsm_now() - begin;
	return spent < timeout ? timeout - spent : 0;
}

void kd_sleep(uint64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	if (kd_scheduler)
		kd_scheduler->sleep(ns);
	else
		nanosleep(&ts, NULL);
}

void kd_yield(void)
{
	if (kd_scheduler)
		kd_scheduler->sleep(POLL);
	else
		sched_yield();
}

int kd_thread_start(struct kd_thread *thread, size_t stack, void *(*run)(void *argument),
		    void *argument)
{
	pthread_attr_t attr;
	int ret;

	if (kd_scheduler)
		return kd_scheduler->start(&thread->simulated, stack, run, argument);
	pthread_attr_init(&attr);
	ret = stack ? -pthread_attr_setstacksize(&attr, stack) : 0;
	if (!ret)
		ret = -pthread_create(&thread->system, &attr, run, argument);
	pthread_attr_destroy(&attr);
	return ret;
}

/* The time of CLOCK_REALTIME after so many ns */
static struct timespec deadline(uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	return until;
}

bool kd_thread_join(struct kd_thread *thread, uint64_t timeout)
{
	struct timespec until;

	if (kd_scheduler)
		return kd_scheduler->join(thread->simulated, timeout);
	if (timeout == KDSM_FOREVER)
		return !pthread_join(thread->system, NULL);
	until = deadline(timeout);
	return !pthread_timedjoin_np(thread->system, NULL, &until);
}

uintptr_t kd_stack_end(void)
{
	pthread_attr_t attr;
	size_t size;
	void *end;

	if (kd_scheduler)
		return kd_scheduler->stack_end();
	if (pthread_getattr_np(pthread_self(), &attr))
		return 0;
	pthread_attr_getstack(&attr, &end, &size);
	pthread_attr_destroy(&attr);
	return (uintptr_t)end;
}

void kd_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!kd_scheduler) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	/* No other coroutine runs before block(), so no wake is lost. */
	kd_mutex_unlock(mutex);
	kd_scheduler->block(cond, KDSM_FOREVER);
	kd_mutex_lock(mutex);
}

void kd_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t timeout)
{
	struct timespec until;

	if (!kd_scheduler) {
		until = deadline(timeout);
		pthread_cond_timedwait(cond, mutex, &until);
		return;
	}
	kd_mutex_unlock(mutex);
	kd_scheduler->block(cond, timeout);
	kd_mutex_lock(mutex);
}

void kd_cond_broadcast(pthread_cond_t *cond)
{
	if (kd_scheduler)
		kd_scheduler->wake(cond);
	else
		pthread_cond_broadcast(cond);
}
