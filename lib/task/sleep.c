// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Workers with nothing to do sleep until somebody of the node wakes them.
 *
 * A worker says that it sleeps (asleep, sleepers), asks every worker of the node for
 * attention, and then looks whether there is something to do after all. A worker that
 * makes tasks public looks for sleepers after that, and wakes one. Both go through
 * sequentially consistent accesses, so either the sleeper sees the tasks or the worker
 * the sleeper. One that was woken and found a task asks its victim for attention while
 * others sleep, so that they are woken one by one as long as there is work.
 *
 * Who wakes takes asleep back to 0, by which it alone wakes from this sleep, and adds to
 * the word that the sleeper waits for. One that was held up meanwhile comes in a later
 * sleep, when another may do the same: an addition undoes none. One worker of a node waits
 * for the bell instead of a word of its own; other nodes ring that too: alarm.c. As
 * it goes to work it wakes another to watch the bell.
 *
 * Who waits for a task that is on another node sleeps on the task's bell, the first word
 * of the put that brings the result. Others of the node ring it too, by small numbers,
 * which every byte of the put is above. They use a compare-and-swap: where any of the put
 * has come already it changes nothing, and where the put comes later that overwrites it.
 * A bell that is no small number is not slept on: so the notice, which comes when all of
 * the result is there, finds a word that changed.
 */
#include "internal.h"

static void ask_all(struct kd_worker *w)
{
	uint32_t used = __atomic_load_n(&w->tasks->own->crew.used, __ATOMIC_RELAXED), i;

	for (i = 0; i < used; i++)
		if (i != w->number)
			__atomic_store_n(&kd_shared(w->tasks, i)->attention, 1,
					 __ATOMIC_SEQ_CST);
}

static bool anything(struct kd_worker *w, const struct kdsm_task *awaited, uint32_t how)
{
	struct kdsm_tasks *tasks = w->tasks;
	uint32_t used = __atomic_load_n(&tasks->own->crew.used, __ATOMIC_RELAXED), thief, i;

	if (kd_failed(tasks))
		return true;
	if (awaited) {
		thief = __atomic_load_n(&awaited->thief, __ATOMIC_SEQ_CST);
		/* Done, or on another node since it was looked where to sleep. */
		if (thief == KDSM_THIEF_DONE || (how == KD_ASLEEP && kd_thief_is_far(tasks, thief)))
			return true;
	}
	if (!awaited && (__atomic_load_n(&w->stop, __ATOMIC_SEQ_CST) ||
			 __atomic_load_n(&tasks->wanted, __ATOMIC_SEQ_CST)))
		return true;
	for (i = 0; i < used; i++)
		if (kd_task_offered(tasks, i))
			return true;
	return false;
}

static bool watch_bell(struct kdsm_tasks *tasks)
{
	uint32_t no = 0;

	return tasks->nodes > 1 &&
	       __atomic_compare_exchange_n(&tasks->own->bell_watched, &no, 1, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static uint32_t choose_sleep(struct kd_worker *w, const struct kdsm_task *awaited)
{
	if (!awaited)
		return watch_bell(w->tasks) ? KD_ASLEEP_BELL : KD_ASLEEP;
	if (!kd_thief_is_far(w->tasks, __atomic_load_n(&awaited->thief, __ATOMIC_SEQ_CST)))
		return KD_ASLEEP;
	__atomic_store_n(&w->shared->awaited, awaited - w->deque, __ATOMIC_SEQ_CST);
	return KD_ASLEEP_RESULT;
}

void kd_task_sleep(struct kd_worker *w, uint64_t timeout, const struct kdsm_task *awaited)
{
	struct kdsm_tasks *tasks = w->tasks;
	uint32_t how = choose_sleep(w, awaited);
	bool bell = how == KD_ASLEEP_BELL;
	uint64_t place = kd_task_wake_place(tasks, w->number, how), seen, now;
	bool woken;

	seen = __atomic_load_n(kdsm_word(tasks->region, place), __ATOMIC_SEQ_CST);
	if (how == KD_ASLEEP_RESULT && kd_task_result_comes(seen))
		return;
	__atomic_fetch_add(&tasks->own->sleepers, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&w->shared->asleep, how, __ATOMIC_SEQ_CST);
	ask_all(w);
	if (bell)
		kd_task_hungry(w);
	if (!anything(w, awaited, how)) {
		kd_count(&w->counts.sleeps, 1);
		kdsm_wait(tasks->region, place, seen, timeout);
	}
	woken = !__atomic_exchange_n(&w->shared->asleep, 0, __ATOMIC_SEQ_CST);
	if (!woken)
		__atomic_fetch_sub(&tasks->own->sleepers, 1, __ATOMIC_SEQ_CST);
	if (bell) {
		now = __atomic_load_n(kdsm_word(tasks->region, place), __ATOMIC_SEQ_CST);
		__atomic_store_n(&tasks->own->bell_watched, 0, __ATOMIC_SEQ_CST);
		if (now != seen)
			w->hint = now & KD_BELL_NODE;
		if (woken || now != seen)
			kd_task_wake_one(w);
	}
}
