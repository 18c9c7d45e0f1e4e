// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spawn and sync, where the macros of <kdsm/task.h> cannot do them alone: the deque is
 * full, the task is public or stolen, or somebody wants something of this worker.
 *
 * fast.split is a pointer to split for spawn and sync alone, as are the checks that send
 * them here: nothing is wrong when they come too late or in vain.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define TAIL(ends)	kdsm_ends_tail(ends)
#define SPLIT(ends)	kdsm_ends_split(ends)
#define ENDS(tail, split) ((uint64_t)(split) << 32 | (tail))

/* The task is the last public one, if it is still there: take it and more back. */
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

/* All public tasks have been stolen, and the last of them is done: it goes. */
static void drop(struct kd_worker *w, struct kdsm_task *task)
{
	uint32_t slot = task - w->deque;

	__atomic_store_n(&task->thief, 0, __ATOMIC_RELAXED);
	/* Nobody changes it while tail is split. */
	__atomic_store_n(&w->shared->ends, ENDS(slot, slot), __ATOMIC_RELEASE);
	w->fast.split = task;
}

/* What a spawn or sync that was sent here sees to, besides its own. */
static void look_up(struct kd_worker *w, const struct kdsm_task *end)
{
	kd_task_check(w);
	if (__atomic_load_n(&w->shared->attention, __ATOMIC_RELAXED))
		kd_task_offer(w, end);
	kd_task_answer_alarm(w, end);
}

/* ---- a full deque ---- */

static struct kdsm_task *push_result(struct kd_worker *w)
{
	struct kdsm_task *more;

	if (w->full_count == w->full_room) {
		more = aligned_alloc(_Alignof(struct kdsm_task),
				     (2 * w->full_room + 16) * sizeof(*more));
		if (!more && !w->tasks->region)
			abort();	/* no pool, no job to fail: alone.c */
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
		/* All syncs come here until the results are gone. */
		w->full_split = w->fast.split;
		w->fast.split = (struct kdsm_task *)UINTPTR_MAX;
	}
	return &w->full[w->full_count - 1];
}

/*
 * The task is behind the end, where there is room for one: it is run now, and its
 * result kept for the sync. What it spawns finds the deque as full.
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
	/* The owner says that it sleeps, and then looks at the task. */
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
