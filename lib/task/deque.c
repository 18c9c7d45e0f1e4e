// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The deque of a worker, split in two: thieves of the node take from the public part,
 * the oldest task first, and the owner works in the private part without them.
 *
 * Tasks tail..split-1 are public, those from split on private. Both ends of the public
 * part are in one word, ends, and every change of it while there are public tasks is
 * one compare-and-swap (or fetch-and-add) of all of it: a thief adds to tail while it is
 * below split; the owner adds to split, or takes split back, half way to tail. So a
 * thief that got a task has it alone, whatever the owner does. That a word has had the
 * same value before does not matter: it says all that there is to know, and a thief
 * reads the task after it has it.
 *
 * What makes a task public releases ends, and a thief acquires it with the task: the
 * arguments are there. The thief stores the result and then KDSM_THIEF_DONE in the task,
 * with release; the owner acquires that.
 */
#include <stddef.h>

#include "internal.h"

#define TAIL(ends)	kdsm_ends_tail(ends)
#define SPLIT(ends)	kdsm_ends_split(ends)

bool kd_task_offered(const struct kdsm_tasks *tasks, uint32_t victim)
{
	uint64_t ends = __atomic_load_n(&kd_shared(tasks, victim)->ends, __ATOMIC_SEQ_CST);

	return TAIL(ends) < SPLIT(ends);
}

struct kdsm_task *kd_task_take(struct kd_worker *w, uint32_t victim, uint32_t most,
			       uint32_t *count)
{
	struct kd_task_shared *shared = kd_shared(w->tasks, victim);
	uint64_t ends = __atomic_load_n(&shared->ends, __ATOMIC_RELAXED);

	do {
		*count = kdsm_ends_share(ends, w->tasks->deque, most);
		if (!*count)
			return NULL;
	} while (!__atomic_compare_exchange_n(&shared->ends, &ends, ends + *count, true,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return kd_slot(w->tasks, victim, TAIL(ends));
}

void kd_task_offer(struct kd_worker *w, const struct kdsm_task *end)
{
	struct kdsm_task **split = w->full_count ? &w->full_split : &w->fast.split;
	ptrdiff_t half = (end - *split + 1) / 2;

	if (half <= 0)
		return;
	/* Who finds nothing from here on says so again. */
	__atomic_store_n(&w->shared->attention, 0, __ATOMIC_RELAXED);
	*split += half;
	/* Before a look at who sleeps: sleep.c. */
	__atomic_fetch_add(&w->shared->ends, (uint64_t)half << 32, __ATOMIC_SEQ_CST);
	kd_task_wake_one(w);
}
