// SPDX-License-Identifier: GPL-2.0
/*
 * Barriers, mutexes and semaphores: locks, condition variables and semaphores of <kdsm/lock.h>.
 * A member opens each when a thread first uses it.
 *
 * Lock numbers of the region: mutexes, then the lock of each barrier, then that of the table of
 * threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "machine.h"

#define BARRIER_LOCKS	MOST_MUTEXES
#define TABLE_LOCK	(BARRIER_LOCKS + MOST_BARRIERS)

/* Wait queues of the region for words: the end of threads, barriers, semaphores */
#define ENDED_LINE	0
#define BARRIER_LINES	1
#define SEMAPHORE_LINES	(BARRIER_LINES + MOST_BARRIERS)
#define LINES		(SEMAPHORE_LINES + MOST_SEMAPHORES)

const uint64_t sync_lines_size = (uint64_t)LINES * KDSM_LINE_SIZE;

/* Protects the first use of a thing. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static uint64_t line_place(const struct machine *machine, unsigned int line)
{
	return machine->lines + line * (uint64_t)KDSM_LINE_SIZE;
}

/* The nodes of the members share the queues. */
static unsigned int line_home(const struct machine *machine, unsigned int line)
{
	return kdsm_job_node(machine->job, line % kdsm_job_size(machine->job));
}

int sync_open(struct machine *machine)
{
	int ret = kdsm_lock_create(machine->region, NULL, TABLE_LOCK, NULL, &machine->table);

	return ret ? ret : kdsm_cond_init(&machine->ended, machine->sync,
					  line_place(machine, ENDED_LINE),
					  line_home(machine, ENDED_LINE));
}

void sync_close(struct machine *machine)
{
	unsigned int i;

	for (i = 0; i < MOST_MUTEXES; i++)
		kdsm_lock_close(machine->mutexes[i]);
	for (i = 0; i < MOST_BARRIERS; i++)
		kdsm_lock_close(machine->barriers[i].lock);
	kdsm_lock_close(machine->table);
}

/* ---- opening ---- */

static int open_mutex(struct machine *machine, unsigned int number)
{
	return kdsm_lock_create(machine->region, NULL, number, NULL, &machine->mutexes[number]);
}

static int open_barrier(struct machine *machine, unsigned int number)
{
	unsigned int line = BARRIER_LINES + number;
	int ret = kdsm_cond_init(&machine->barriers[number].all_here, machine->sync,
				 line_place(machine, line), line_home(machine, line));

	return ret ? ret : kdsm_lock_create(machine->region, NULL, BARRIER_LOCKS + number, NULL,
					    &machine->barriers[number].lock);
}

static int open_semaphore(struct machine *machine, unsigned int number)
{
	unsigned int line = SEMAPHORE_LINES + number;

	/* All nodes see writes to the strict memory at once, so the semaphore has no lock. */
	return kdsm_sem_init(&machine->semaphores[number], machine->sync,
			     line_place(machine, line), line_home(machine, line), 0, NULL);
}

static const struct kind {
	const char *name;
	unsigned int most;
	int (*open)(struct machine *machine, unsigned int number);
} kinds[] = {
	[BY_BARRIER] = { "barrier", MOST_BARRIERS, open_barrier },
	[BY_LOCK] = { "mutex", MOST_MUTEXES, open_mutex },
	[BY_SIGNAL] = { "semaphore", MOST_SEMAPHORES, open_semaphore },
};

static int fail(struct thread *thread, enum what what, int64_t number, int error)
{
	return thread_fail(thread, "%s %" PRId64 ": %s", kinds[what].name, number,
			   kdsm_error(error));
}

/* Open the thing that an instruction names, unless this member has done so. */
static int need(struct thread *thread, enum what what, int64_t number)
{
	static bool opened[sizeof(kinds) / sizeof(*kinds)][MOST_MUTEXES];
	const struct kind *kind = &kinds[what];
	int ret = 0;

	if (number < 0 || number >= kind->most)
		return thread_fail(thread, "there is no %s %" PRId64 ", only 0 to %u", kind->name,
				   number, kind->most - 1);
	if (__atomic_load_n(&opened[what][number], __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&opening);
	if (!opened[what][number]) {
		ret = kind->open(thread->machine, number);
		__atomic_store_n(&opened[what][number], !ret, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&opening);
	return ret ? fail(thread, what, number, ret) : 0;
}

/* ---- barriers ---- */

/* Caller holds the barrier's lock, also afterwards unless the error says otherwise. */
static int wait_for_all(struct thread *thread, int64_t number)
{
	struct barrier *barrier = &thread->machine->barriers[number];
	volatile struct barrier_state *state = &thread->machine->shared->barriers[number];
	uint64_t generation = state->generation;
	int ret = 0;

	wait_begin(thread, BY_BARRIER, number);
	while (!ret && state->generation == generation) {
		ret = kdsm_cond_timed(&barrier->all_here, barrier->lock, WAIT_INTERVAL);
		if (ret == -ETIMEDOUT) {
			wait_again(thread);
			ret = 0;
		}
	}
	wait_end(thread);
	return ret;
}

int sync_barrier(struct thread *thread, int64_t number, int64_t needed)
{
	struct barrier_state *state;
	struct barrier *barrier;
	uint64_t before;
	int ret;

	if (need(thread, BY_BARRIER, number))
		return -1;
	if (needed < 1)
		return thread_fail(thread, "barrier %" PRId64 " cannot wait for %" PRId64
				   " threads", number, needed);
	barrier = &thread->machine->barriers[number];
	state = &thread->machine->shared->barriers[number];
	ret = kdsm_lock(barrier->lock);
	if (ret)
		return fail(thread, BY_BARRIER, number, ret);
	before = state->arrived ? state->needed : (uint64_t)needed;
	if (before != (uint64_t)needed) {
		kdsm_unlock(barrier->lock);
		return thread_fail(thread, "barrier %" PRId64 " is for %" PRId64 " threads here, "
				   "but a thread waits there for %" PRIu64, number, needed, before);
	}
	state->needed = needed;
	if (++state->arrived < state->needed) {
		ret = wait_for_all(thread, number);
	} else {
		state->arrived = 0;
		state->generation++;
		ret = kdsm_cond_broadcast(&barrier->all_here);
	}
	if (!ret)
		ret = kdsm_unlock(barrier->lock);
	return ret ? fail(thread, BY_BARRIER, number, ret) : 0;
}

/* ---- mutexes ---- */

int sync_lock(struct thread *thread, int64_t number)
{
	int ret;

	if (need(thread, BY_LOCK, number))
		return -1;
	wait_begin(thread, BY_LOCK, number);
	for (;;) {
		ret = kdsm_lock_timed(thread->machine->mutexes[number], WAIT_INTERVAL);
		if (ret != -ETIMEDOUT)
			break;
		wait_again(thread);
	}
	wait_end(thread);
	if (ret == -EDEADLK)
		return thread_fail(thread, "the thread holds mutex %" PRId64 " already", number);
	if (ret)
		return fail(thread, BY_LOCK, number, ret);
	thread->held++;
	return 0;
}

int sync_unlock(struct thread *thread, int64_t number)
{
	int ret;

	if (need(thread, BY_LOCK, number))
		return -1;
	ret = kdsm_unlock(thread->machine->mutexes[number]);
	if (ret == -EPERM)
		return thread_fail(thread, "the thread does not hold mutex %" PRId64, number);
	if (ret)
		return fail(thread, BY_LOCK, number, ret);
	thread->held--;
	return 0;
}

int sync_end(struct thread *thread)
{
	struct kdsm_lock *mutex;
	unsigned int i;

	if (!thread->held)
		return 0;
	for (i = 0; i < MOST_MUTEXES; i++) {
		mutex = __atomic_load_n(&thread->machine->mutexes[i], __ATOMIC_ACQUIRE);
		if (mutex && kdsm_lock_is_mine(mutex))
			break;
	}
	return thread_fail(thread, "the thread ends, but holds mutex %u", i);
}

/* ---- semaphores ---- */

int sync_wait(struct thread *thread, int64_t number)
{
	int ret;

	if (need(thread, BY_SIGNAL, number))
		return -1;
	wait_begin(thread, BY_SIGNAL, number);
	for (;;) {
		ret = kdsm_sem_timed(&thread->machine->semaphores[number], WAIT_INTERVAL);
		/* -EAGAIN: as many threads wait as the queue has room for. */
		if (ret != -ETIMEDOUT && ret != -EINTR && ret != -EAGAIN)
			break;
		wait_again(thread);
	}
	wait_end(thread);
	return ret ? fail(thread, BY_SIGNAL, number, ret) : 0;
}

int sync_signal(struct thread *thread, int64_t number)
{
	int ret;

	if (need(thread, BY_SIGNAL, number))
		return -1;
	ret = kdsm_sem_post(&thread->machine->semaphores[number]);
	return ret ? fail(thread, BY_SIGNAL, number, ret) : 0;
}
