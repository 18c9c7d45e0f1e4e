// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads of the local backend, whether they still live, and guards. internal.h describes
 * the interface.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

/*
 * Initially zero, then shared with all children, and by a file with unrelated processes. Never
 * unmapped, because the kernel
 * accesses the robust mutexes when a thread ends.
 */
struct lives {
	uint32_t used;
	uint32_t made;			/* not 0: the mutexes are initialised */
	uint64_t serial;
	struct kdsm_life lives[KDSM_LIVES];
};

static struct lives *area;
static int area_error;
static int area_file = -1;	/* the file that has the area, or -1: anonymous memory */
static pthread_key_t key;
static _Thread_local uint32_t own;

static uint32_t number_of(unsigned int index, uint32_t generation)
{
	return generation << KDSM_LIFE_BITS | index;
}

/* Caller holds life->alive. A thread that had this life counts as dead from now on. */
static void next_generation(struct kdsm_life *life)
{
	uint32_t generation = __atomic_load_n(&life->generation, __ATOMIC_RELAXED);

	/* Skip generation 0, so that no thread's number is 0. */
	do {
		generation = (generation + 1) & (UINT32_MAX >> KDSM_LIFE_BITS);
	} while (!generation);
	__atomic_store_n(&life->generation, generation, __ATOMIC_SEQ_CST);
}

/*
 * The destructor of key: runs in a thread that returns or calls pthread_exit(). If a thread
 * ends otherwise, the kernel marks its mutex, and try_life() ends the generation.
 */
static void end_life(void *value)
{
	struct kdsm_life *life = value;

	own = 0;
	next_generation(life);
	pthread_mutex_unlock(&life->alive);
}

/* The child inherits the number of the thread that called fork(), but not its life. */
static void begin_child(void)
{
	own = 0;
	pthread_setspecific(key, NULL);
}

static void make_mutexes(pthread_mutexattr_t *attr)
{
	unsigned int i;

	for (i = 0; i < KDSM_LIVES; i++)
		pthread_mutex_init(&area->lives[i].alive, attr);
}

static void make_area(void)
{
	pthread_mutexattr_t attr;
	void *memory;

	memory = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
		      MAP_SHARED | (area_file < 0 ? MAP_ANONYMOUS : 0), area_file, 0);
	if (memory == MAP_FAILED) {
		area_error = -errno;
		return;
	}
	area_error = -pthread_key_create(&key, end_life);
	if (!area_error)
		area_error = -pthread_atfork(NULL, NULL, begin_child);
	if (area_error) {
		munmap(memory, sizeof(*area));
		return;
	}
	area = memory;
	if (area->made)
		return;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	make_mutexes(&attr);
	pthread_mutexattr_destroy(&attr);
	area->made = 1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int kdsm_lives_start(void)
{
	pthread_once(&once, make_area);
	return area_error;
}

int kdsm_lives_share(int fd)
{
	if (area || area_file >= 0)
		return -EBUSY;
	if (ftruncate(fd, sizeof(*area)))
		return -errno;
	area_file = fd;
	kdsm_lives_start();
	/* Nobody else shares the lives of a later start, should this one have failed. */
	return area_error;
}

/*
 * Try to lock a life, which succeeds unless a thread lives in it. If its last thread died
 * without end_life(), invalidate that thread's number.
 */
static bool try_life(struct kdsm_life *life)
{
	int ret = pthread_mutex_trylock(&life->alive);

	if (ret == EOWNERDEAD) {
		next_generation(life);
		pthread_mutex_consistent(&life->alive);
		ret = 0;
	}
	return !ret;
}

static void raise_used(unsigned int used)
{
	uint32_t was = __atomic_load_n(&area->used, __ATOMIC_RELAXED);

	while (was < used &&
	       !__atomic_compare_exchange_n(&area->used, &was, used, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
}

static __attribute__((noinline)) int begin_life(void)
{
	struct kdsm_life *life;
	unsigned int i;

	for (i = 0; i < KDSM_LIVES; i++) {
		life = &area->lives[i];
		if (!try_life(life))
			continue;
		if (pthread_setspecific(key, life)) {
			pthread_mutex_unlock(&life->alive);
			return -ENOMEM;
		}
		next_generation(life);
		__atomic_store_n(&life->waits, 0, __ATOMIC_SEQ_CST);
		raise_used(i + 1);
		own = number_of(i, life->generation);
		return 0;
	}
	return -EAGAIN;
}

int kdsm_life_own(uint32_t *thread)
{
	int ret = own ? 0 : begin_life();

	*thread = own;
	return ret;
}

bool kdsm_life_over(uint32_t thread)
{
	struct kdsm_life *life = &area->lives[kdsm_life_index(thread)];
	uint32_t generation = thread >> KDSM_LIFE_BITS;

	if (thread == own)
		return false;
	if (__atomic_load_n(&life->generation, __ATOMIC_SEQ_CST) != generation)
		return true;
	if (!try_life(life))
		return false;
	/*
	 * The thread is dead: its generation ended just now in try_life(), or earlier in
	 * end_life().
	 */
	pthread_mutex_unlock(&life->alive);
	return __atomic_load_n(&life->generation, __ATOMIC_SEQ_CST) != generation;
}

struct kdsm_life *kdsm_life_at(unsigned int index)
{
	return &area->lives[index];
}

unsigned int kdsm_lives_used(void)
{
	return __atomic_load_n(&area->used, __ATOMIC_SEQ_CST);
}

uint64_t kdsm_lives_serial(void)
{
	return __atomic_add_fetch(&area->serial, 1, __ATOMIC_RELAXED);
}

/* ---- guards ---- */

void kdsm_guard_take(struct kdsm_guard *guard, uint32_t thread)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	unsigned int tries;
	uint32_t other;

	for (tries = 1;; tries++) {
		other = 0;
		if (__atomic_compare_exchange_n(&guard->thread, &other, thread, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		if (tries % 64)
			continue;
		if (other && kdsm_life_over(other) &&
		    __atomic_compare_exchange_n(&guard->thread, &other, thread, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			guard->died = true;
			return;
		}
		if (tries < 64 * 64)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

void kdsm_guard_give(struct kdsm_guard *guard)
{
	__atomic_store_n(&guard->thread, 0, __ATOMIC_RELEASE);
}
