// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The deque of a worker has two portions. Thieves of the node take tasks from the public
 * portion, the oldest first; the owner works in the private portion without synchronisation.
 * This file has the theft and the publication of tasks. The owner takes tasks back in
 * spawn.c.
 *
 * Tasks tail..split-1 are public, tasks from split on are private. Both ends of the public
 * portion are in one word, "ends". While there are public tasks, each change of this word is
 * one compare-and-swap or fetch-and-add of the whole word: a thief adds to tail while tail is
 * below split; the owner adds to split, or sets split back half way to tail. So a task that a
 * thief took belongs to this thief alone, whatever the owner does. ABA does no harm: the word
 * is the whole state of the public portion, and a thief reads the task only after taking it.
 *
 * The owner publishes a task by a release of ends. The thief that takes the task acquires
 * ends, so it sees the arguments. The thief stores the result in the task, and then
 * KDSM_THIEF_DONE with release semantics; the owner acquires this mark.
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
	/* Clear before publishing: a thief that finds no task later sets attention again. */
	__atomic_store_n(&w->shared->attention, 0, __ATOMIC_RELAXED);
	*split += half;
	/* Publish before looking for sleepers. Pairs with kd_task_sleep(): see sleep.c. */
	__atomic_fetch_add(&w->shared->ends, (uint64_t)half << 32, __ATOMIC_SEQ_CST);
	kd_task_wake_one(w);
}
