// SPDX-License-Identifier: GPL-2.0
/*
 * Real threads that compute at a price. The library tells the scheduler of a virtual run how many
 * steps a thread has taken. Here the system schedules the threads. A thread that takes its steps
 * in less time than their price waits in a busy loop for the rest. So the speed of the processor
 * and of its caches makes no difference, as long as a step takes less than its price.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "core/thread.h"

#include "pace.h"

/* A thread that is late by more ns than this, because it waited, is not allowed to catch up. */
#define BEHIND	20000

static const struct kd_scheduler pace;
static uint64_t price;			/* of a step, in ns */
static _Thread_local uint64_t due;	/* when the steps until now should have been taken */
static _Thread_local void *slot_of_thread;

struct thread {
	struct kd_thread system;
	void *(*run)(void *argument);
	void *argument;
};

static uint64_t now(void)
{
	return kd_system_time(CLOCK_MONOTONIC);
}

static void pass(uint64_t ns)
{
	uint64_t until = now() + ns;

	while (now() < until)
		sched_yield();
}

/* Callers look again at what they wait for, so the wake is not needed. */
static bool block(const void *key, uint64_t timeout)
{
	(void)key;
	if (!timeout)
		return false;
	sched_yield();
	return true;
}

static void wake(const void *key)
{
	(void)key;
}

static void *run(void *data)
{
	struct thread *thread = data;

	kd_scheduler = &pace;
	return thread->run(thread->argument);
}

/* The functions of the library start and join threads of the system if there is no scheduler. */
static int start(void **handle, size_t stack, void *(*function)(void *argument), void *argument)
{
	struct thread *thread = malloc(sizeof(*thread));
	int r;

	if (!thread)
		return -ENOMEM;
	*thread = (struct thread){ .run = function, .argument = argument };
	*handle = thread;
	kd_scheduler = NULL;
	r = kd_thread_start(&thread->system, stack, run, thread);
	kd_scheduler = &pace;
	if (r)
		free(thread);
	return r;
}

static bool join(void *handle, uint64_t timeout)
{
	struct thread *thread = handle;
	bool ended;

	kd_scheduler = NULL;
	ended = kd_thread_join(&thread->system, timeout);
	kd_scheduler = &pace;
	if (ended)
		free(thread);
	return ended;
}

static void **slot(void)
{
	return &slot_of_thread;
}

static uintptr_t stack_end(void)
{
	uintptr_t end;

	kd_scheduler = NULL;
	end = kd_stack_end();
	kd_scheduler = &pace;
	return end;
}

static void spend(uint64_t steps)
{
	uint64_t time = now();

	if (due + BEHIND < time)
		due = time;
	due += steps * price;
	while (now() < due)
		;
}

static void busy(bool is_busy)
{
	(void)is_busy;
}

static enum kd_phase phase(enum kd_phase next)
{
	return next;
}

static const struct kd_scheduler pace = {
	.now = now, .sleep = pass, .block = block, .wake = wake, .start = start, .join = join,
	.slot = slot, .stack_end = stack_end, .spend = spend, .busy = busy, .phase = phase,
};

void pace_begin(uint64_t step)
{
	price = step;
	due = now();
	kd_scheduler = &pace;
}
