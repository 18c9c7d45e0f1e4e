// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sleeping of workers that are idle, or that wait for a stolen task. wake.c wakes them.
 *
 * A worker announces that it sleeps (asleep, sleepers), sets the attention of every worker
 * of the node, and then looks once more for something to do. A worker that publishes tasks
 * looks for sleepers afterwards, and wakes one. All these accesses are sequentially
 * consistent, so either the sleeper sees the tasks or the publisher sees the sleeper. A
 * woken worker that steals a task sets the attention of its victim while other workers
 * sleep. So the sleepers are woken one by one as long as there is work.
 *
 * A waker exchanges asleep for 0, so only one waker ends a given sleep. The waker then adds to
 * the word that the sleeper waits on. A waker that is delayed between the two steps may add
 * during a later sleep, while another waker adds, too. This is harmless, because one addition
 * does not undo another. One worker of a node sleeps on the node's bell instead of a word of
 * its own, because other nodes ring the bell, too (alarm.c). When this worker wakes up to
 * work, it wakes another worker, which then watches the bell.
 *
 * A worker that waits for a task on another node sleeps on the task's bell, the first word
 * of the put that brings the result. Wakers of this node ring this bell, too, by values up to
 * KD_BELL_LOCAL. Every byte of the put is greater than these values. The wakers use a
 * compare-and-swap: if part of the put has arrived, the wakers change nothing, and if the put
 * arrives later, the put overwrites their value. A worker does not sleep on a bell that is
 * greater than KD_BELL_LOCAL. So the notification, which follows the whole result, always
 * finds a bell that differs from the value that the sleeper saw.
 */
#include "internal.h"

/* Set the attention of all workers of the node, so that busy ones publish tasks. */
static void ask_all(struct kd_worker *w)
{
	uint32_t used = __atomic_load_n(&w->tasks->own->crew.used, __ATOMIC_RELAXED), i;

	for (i = 0; i < used; i++)
		if (i != w->number)
			__atomic_store_n(&kd_shared(w->tasks, i)->attention, 1,
					 __ATOMIC_SEQ_CST);
}

/* Whether the worker has a reason not to sleep. */
static bool anything(struct kd_worker *w, const struct kdsm_task *awaited, uint32_t how)
{
	struct kdsm_tasks *tasks = w->tasks;
	uint32_t used = __atomic_load_n(&tasks->own->crew.used, __ATOMIC_RELAXED), thief, i;

	if (kd_failed(tasks))
		return true;
	if (awaited) {
		thief = __atomic_load_n(&awaited->thief, __ATOMIC_SEQ_CST);
		/* The task is done, or went to another node after choose_sleep() looked. */
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

/* Try to become the one worker of this node that sleeps on the node's bell. */
static bool watch_bell(struct kdsm_tasks *tasks)
{
	uint32_t no = 0;

	return tasks->nodes > 1 &&
	       __atomic_compare_exchange_n(&tasks->own->bell_watched, &no, 1, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Choose the word to sleep on: KD_ASLEEP*. */
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
