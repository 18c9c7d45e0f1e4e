// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waking workers of this node; alarm.c wakes other nodes. sleep.c explains which words the
 * workers sleep on, and why.
 */
#include <stddef.h>

#include "internal.h"

void kd_task_relax(unsigned int tries)
{
	unsigned int i;

	if (kd_scheduler) {
		kd_yield();
		return;
	}
	for (i = 0; i < 1u << (tries < 32 ? tries / 8 : 4); i++)
		kd_relax();
}

uint64_t kd_task_wake_place(const struct kdsm_tasks *tasks, uint32_t worker, uint32_t how)
{
	uint32_t slot;

	if (how == KD_ASLEEP_BELL)
		return kd_node_place(tasks, offsetof(struct kd_task_node, bell));
	if (how == KD_ASLEEP_RESULT) {
		slot = __atomic_load_n(&kd_shared(tasks, worker)->awaited, __ATOMIC_SEQ_CST);
		return kd_slot_place(tasks, worker, slot % tasks->deque) +
		       offsetof(struct kdsm_task, bell);
	}
	return kd_shared_place(tasks, worker) + offsetof(struct kd_task_shared, wake);
}

/*
 * Ring the bell of the task that a worker waits for. The worker may concurrently begin to
 * wait for another task. A ring of the wrong task's bell is harmless, because a bell up to
 * KD_BELL_LOCAL carries no result.
 */
static void ring_task(const struct kdsm_tasks *tasks, uint64_t place)
{
	uint64_t *bell = kdsm_word(tasks->region, place);
	uint64_t value = __atomic_load_n(bell, __ATOMIC_RELAXED);

	while (!kd_task_result_comes(value) &&
	       !__atomic_compare_exchange_n(bell, &value, (value + 1) & KD_BELL_LOCAL, true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	tasks->region->backend->wake(tasks->region, place);
}

void kd_task_ring(const struct kdsm_tasks *tasks, uint32_t worker)
{
	struct kd_task_shared *shared = kd_shared(tasks, worker);
	uint64_t place;
	uint32_t how;

	how = __atomic_exchange_n(&shared->asleep, 0, __ATOMIC_SEQ_CST);
	if (!how)
		return;
	__atomic_fetch_sub(&tasks->own->sleepers, 1, __ATOMIC_SEQ_CST);
	place = kd_task_wake_place(tasks, worker, how);
	if (how == KD_ASLEEP_RESULT) {
		ring_task(tasks, place);
		return;
	}
	__atomic_fetch_add(kdsm_word(tasks->region, place), 1, __ATOMIC_SEQ_CST);
	tasks->region->backend->wake(tasks->region, place);
}

static bool wake_one(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	uint32_t used = __atomic_load_n(&tasks->own->crew.used, __ATOMIC_RELAXED), worker, i;

	for (i = 1; i < used; i++) {
		worker = (w->number + i) % used;
		if (__atomic_load_n(&kd_shared(tasks, worker)->asleep, __ATOMIC_RELAXED)) {
			kd_task_ring(tasks, worker);
			kd_count(&w->counts.wakes, 1);
			return true;
		}
	}
	return false;
}

void kd_task_wake_one(struct kd_worker *w)
{
	if (__atomic_load_n(&w->tasks->own->sleepers, __ATOMIC_SEQ_CST))
		wake_one(w);
}
