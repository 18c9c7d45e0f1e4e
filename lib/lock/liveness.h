/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads of the local backend, of a process and of its relatives by fork(): numbers
 * for them, and whether they still live. What the module does with tasks is done here
 * with robust mutexes: each thread has a life, a mutex in memory shared by all relatives,
 * locked as long as the thread lives. When it ends, in whatever way, the kernel tells
 * those who try to lock it.
 */
#ifndef KDSM_LIFE_H
#define KDSM_LIFE_H

#include "core/core.h"

/* Threads at a time; the number of one has its life's index in the low bits. */
#define KDSM_LIFE_BITS	12
#define KDSM_LIVES	(1U << KDSM_LIFE_BITS)

struct kdsm_life {
	_Alignas(64) pthread_mutex_t alive;
	uint32_t generation;	/* the upper bits of the number; changes with the thread */

	/* lock_queue.c: what the thread waits for. */
	uint32_t told;
	uint64_t waits;		/* the key of a lock, or 0 */
	uint64_t ticket;
	uint32_t thread;
	bool reads;
};

/* Once before any of the others, and before relatives that share are made. */
int kdsm_lives_start(void)
	KDSM_PRIVATE;
/* The number of the calling thread, never 0. -EAGAIN: there are KDSM_LIVES. */
int kdsm_life_own(uint32_t *thread) KDSM_PRIVATE;
bool kdsm_life_over(uint32_t thread) KDSM_PRIVATE;
/* Of any index below KDSM_LIVES; those from kdsm_lives_used() on were never used. */
struct kdsm_life *kdsm_life_at(unsigned int index) KDSM_PRIVATE;
unsigned int kdsm_lives_used(void)
	KDSM_PRIVATE;
/* A number that nobody among the relatives got before. */
uint64_t kdsm_lives_serial(void)
	KDSM_PRIVATE;

static inline unsigned int kdsm_life_index(uint32_t thread)
{
	return thread & (KDSM_LIVES - 1);
}

/* A short lock, held during a few loads and stores: 0, or the thread that has it. */
struct kdsm_guard {
	uint32_t thread;
	bool died;		/* somebody did with it; for who has it, to see to and reset */
};

void kdsm_guard_take(struct kdsm_guard *guard, uint32_t thread) KDSM_PRIVATE;
void kdsm_guard_give(struct kdsm_guard *guard) KDSM_PRIVATE;

#endif /* KDSM_LIFE_H */
