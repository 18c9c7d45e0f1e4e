/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads, mutexes, conditions and the clock of the library.
 *
 * They are those of the system, except in a virtual run (lib/virtual). A virtual run simulates
 * the threads of many nodes by coroutines of one thread, and measures time by a clock of its own.
 * A coroutine that waited for the system would stop all others, so the library waits by the
 * functions of this file, which call the scheduler of the virtual run.
 */
#ifndef KDSM_CORE_THREAD_H
#define KDSM_CORE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <kdsm/kdsm.h>

/*
 * Hide internal symbols: the shared library and the archive export only names that begin
 * with kdsm_.
 */
#define KDSM_PRIVATE __attribute__((visibility("hidden")))

/* Activity of a node while its workers have no task. See enum kdsm_virtual_share. */
enum kd_phase { KD_PHASE_SERIAL, KD_PHASE_TASKS, KD_PHASE_BARRIER, KD_PHASE_COLLECT, KD_PHASES };

/* The functions of a virtual run that the library calls. Times are virtual, in ns. */
struct kd_scheduler {
	uint64_t (*now)(void);
	/* Let time pass for the caller. */
	void (*sleep)(uint64_t ns);
	/*
	 * Wait for wake(key). Returns false if timeout (KDSM_FOREVER: never) has passed. The
	 * caller decides again whether it has to wait.
	 */
	bool (*block)(const void *key, uint64_t timeout);
	/* Wake all callers of block(key). */
	void (*wake)(const void *key);
	int (*start)(void **thread, size_t stack, void *(*run)(void *argument), void *argument);
	/* As block(). Frees the thread unless the result is false. */
	bool (*join)(void *thread, uint64_t timeout);
	/* Returns where the caller may keep one pointer of its own, initially NULL. */
	void **(*slot)(void);
	/* Returns the lowest address of the caller's stack. */
	uintptr_t (*stack_end)(void);
	/*
	 * The caller has taken so many steps of an operation on BDDs, or 0 if the call only lets
	 * other coroutines run.
	 */
	void (*spend)(uint64_t steps);
	/* The caller is a worker, which begins or stops running tasks. */
	void (*busy)(bool busy);
	/* The node of the caller begins a phase. Returns the phase before. */
	enum kd_phase (*phase)(enum kd_phase phase);
};

/* The scheduler of the virtual run that the calling thread executes, or NULL */
extern _Thread_local const struct kd_scheduler *kd_scheduler;

/* Tell the processor that this thread looks at memory again and again. */
static inline void kd_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Returns the time of a clock of the system, in ns. */
static inline uint64_t kd_system_time(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* Returns CLOCK_MONOTONIC or the virtual time, in ns. */
static inline uint64_t kdsm_now(void)
{
	return kd_scheduler ? kd_scheduler->now() : kd_system_time(CLOCK_MONOTONIC);
}

/**
 * kdsm_left() - get the rest of a timeout
 * @begin: kdsm_now() when the timeout began; not used if @timeout is 0 or KDSM_FOREVER
 * @timeout: in ns, or KDSM_FOREVER
 *
 * Return: the rest in ns, 0 if the timeout has passed, or KDSM_FOREVER for KDSM_FOREVER.
 */
uint64_t kdsm_left(uint64_t begin, uint64_t timeout) KDSM_PRIVATE;

/* Returns the CPU time of the calling thread, in ns, or the virtual time. */
uint64_t kd_thread_time(void);
/* Let so many ns pass. */
void kd_sleep(uint64_t ns);
/* Let other threads run, in a loop that waits for another thread. */
void kd_yield(void);

struct kd_thread {
	pthread_t system;
	void *simulated;		/* in a virtual run */
};

/**
 * kd_thread_start() - start a thread
 * @thread: filled in by this function
 * @stack: bytes of its stack, or 0 for the default
 * @run: what the thread does; its result is ignored
 * @argument: of @run
 *
 * The caller calls kd_thread_join().
 *
 * Return: 0 or a negative errno.
 */
int kd_thread_start(struct kd_thread *thread, size_t stack, void *(*run)(void *argument),
		    void *argument);
/* Wait until the thread has ended, at most timeout ns or KDSM_FOREVER. Returns whether it has. */
bool kd_thread_join(struct kd_thread *thread, uint64_t timeout);
/* Returns the lowest address of the calling thread's stack, or 0 if it is not known. */
uintptr_t kd_stack_end(void);

/* pthread_mutex_init() and pthread_mutex_destroy() make and destroy the mutex. */
static inline void kd_mutex_lock(pthread_mutex_t *mutex)
{
	if (!kd_scheduler)
		pthread_mutex_lock(mutex);
	else
		while (pthread_mutex_trylock(mutex))
			kd_scheduler->block(mutex, KDSM_FOREVER);
}

static inline void kd_mutex_unlock(pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	if (kd_scheduler)
		kd_scheduler->wake(mutex);
}

/* pthread_cond_init() and pthread_cond_destroy() make and destroy the condition. */
void kd_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
/* Wait at most timeout ns, less than KDSM_FOREVER. */
void kd_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t timeout);
void kd_cond_broadcast(pthread_cond_t *cond);

/* Tell a virtual run that the caller has taken steps of an operation on BDDs, or the like. */
static inline void kd_spend(uint64_t steps)
{
	if (kd_scheduler)
		kd_scheduler->spend(steps);
}

/* Tell a virtual run what the caller's node does from now on. Returns the phase before. */
static inline enum kd_phase kd_phase(enum kd_phase phase)
{
	return kd_scheduler ? kd_scheduler->phase(phase) : phase;
}

#endif /* KDSM_CORE_THREAD_H */
