// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spawn and sync, where the inline code of <kdsm/task.h> does not suffice: the deque is
 * full, the task is public or stolen, or another worker or node needs this worker. The
 * public portion of the deque is in deque.c, waiting for a stolen task in steal.c.
 *
 * fast.split points at task number split of the deque, and only spawn and sync use it. The
 * inline checks may call these functions late or needlessly; both are harmless.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define TAIL(ends)	kdsm_ends_tail(ends)
#define SPLIT(ends)	kdsm_ends_split(ends)
#define ENDS(tail, split) ((uint64_t)(split) << 32 | (tail))

/*
 * The task to sync is the last public one, unless a thief has taken it. Take back the upper
 * half of the public tasks, this task included. Returns false if thieves have taken all.
 */
static bool take_back(struct kd_worker *w)
{
	uint64_t ends = __atomic_load_n(&w->shared->ends, __ATOMIC_ACQUIRE);
	uint32_t split;

	do {
		if (TAIL(ends) == SPLIT(ends))
			return false;
		split = TAIL(ends) + (SPLIT(ends) - TAIL(ends)) / 2;
	} while (!__atomic_compare_exchange_n(&w->shared->ends, &ends,
					      ENDS(TAIL(ends), split), true,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	w->fast.split = w->deque + split;
	return true;
}

/* Remove the last public task. All public tasks are stolen, and the last of them is done. */
static void drop(struct kd_worker *w, struct kdsm_task *task)
{
	uint32_t slot = task - w->deque;

	__atomic_store_n(&task->thief, 0, __ATOMIC_RELAXED);
	/* A plain store suffices, because thieves change ends only while tail < split. */
	__atomic_store_n(&w->shared->ends, ENDS(slot, slot), __ATOMIC_RELEASE);
	w->fast.split = task;
}

/* Serve the requests of other workers and nodes, and leave if the job has failed. */
static void look_up(struct kd_worker *w, const struct kdsm_task *end)
{
	kd_spend(0);
	kd_task_check(w);
	if (__atomic_load_n(&w->shared->attention, __ATOMIC_RELAXED))
		kd_task_offer(w, end);
	kd_task_answer_alarm(w, end);
}

/* ---- a full deque ---- */

/* Return a place for the result of a task that ran at once. pop_result() returns the last. */
static struct kdsm_task *push_result(struct kd_worker *w)
{
	struct kdsm_task *more;

	if (w->full_count == w->full_room) {
		more = aligned_alloc(_Alignof(struct kdsm_task),
				     (2 * w->full_room + 16) * sizeof(*more));
		if (!more && !w->tasks->region)
			abort();	/* a worker of alone.c has no job that could fail */
		if (!more) {
			kd_task_fail(w->tasks, -ENOMEM, w->tasks->node);
			kd_task_check(w);
		}
		if (w->full)
			memcpy(more, w->full, w->full_count * sizeof(*more));
		free(w->full);
		w->full = more;
		w->full_room = 2 * w->full_room + 16;
	}
	if (!w->full_count++) {
		/* This value makes every sync call kdsm_task_sync() while full_count > 0. */
		w->full_split = w->fast.split;
		w->fast.split = (struct kdsm_task *)UINTPTR_MAX;
	}
	return &w->full[w->full_count - 1];
}

/*
 * Run the task now, because the deque is full, and keep its result for the sync. The task is
 * in the element behind the end of the deque. Its own spawns find the deque full, too, and
 * reuse this element; hence the copy.
 */
static struct kdsm_task *run_now(struct kd_worker *w, struct kdsm_task *task)
{
	const struct kdsm_task_type *type = kd_task_type(task->type);
	struct kdsm_task copy = *task;

	if (!type) {
		kd_task_fail(w->tasks, -EPROTO, w->tasks->node);
		kd_task_check(w);
		return task;
	}
	kd_count(&w->counts.full, 1);
	look_up(w, task);
	type->run(&w->fast, task, &copy);
	*push_result(w) = copy;
	return task;
}

static struct kdsm_task *pop_result(struct kd_worker *w)
{
	if (!--w->full_count)
		w->fast.split = w->full_split;
	return &w->full[w->full_count];
}

/* ---- what the macros call ---- */

void kdsm_task_look(struct kdsm_worker *worker, struct kdsm_task *head)
{
	look_up(kd_worker(worker), head);
}

struct kdsm_task *kdsm_task_spawn(struct kdsm_worker *worker, struct kdsm_task *task)
{
	struct kd_worker *w = kd_worker(worker);

	if (task >= worker->limit)
		return run_now(w, task);
	look_up(w, task + 1);
	return task + 1;
}

struct kdsm_task *kdsm_task_sync(struct kdsm_worker *worker, struct kdsm_task *head)
{
	struct kd_worker *w = kd_worker(worker);
	struct kdsm_task *task = head - 1;
	struct kdsm_task *result = NULL;

	if (w->full_count) {
		look_up(w, head);
		worker->head = head;
		return pop_result(w);
	}
	look_up(w, task);
	if (worker->split > task && !take_back(w)) {
		kd_task_await(w, task);
		drop(w, task);
		result = task;
	}
	worker->head = task;
	return result;
}

void kd_task_done(struct kd_worker *w, struct kdsm_task *task, uint32_t owner)
{
	/* Pairs with kd_task_sleep(): the owner sets asleep, and then looks at thief. */
	__atomic_exchange_n(&task->thief, KDSM_THIEF_DONE, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&kd_shared(w->tasks, owner)->asleep, __ATOMIC_SEQ_CST))
		kd_task_ring(w->tasks, owner);
}

void kd_task_run(struct kd_worker *w, struct kdsm_task *head, struct kdsm_task *task,
		 uint32_t owner)
{
	const struct kdsm_task_type *type = kd_task_type(task->type);

	__atomic_store_n(&task->thief, KD_THIEF_OF(w->tasks->node, w->number),
			 __ATOMIC_RELAXED);
	if (!type) {
		kd_task_fail(w->tasks, -EPROTO, w->tasks->node);
		kd_task_check(w);
		return;
	}
	type->run(&w->fast, head, task);
	kd_task_done(w, task, owner);
}
