// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Detection of dead processes of a job, and failure of the job.
 *
 * Each process has a thread that counts up the beat of the process. The thread also looks at
 * the beats of the processes of its node and, by one get, of the next node. A process whose
 * beat stands still for the timeout is dead. The tasks that it ran are lost, so the job
 * fails: the process that detects the death tells all nodes by one put each. Every worker
 * abandons its tasks, and its stack by longjmp(), at its next kd_task_check(). KDSM_RUN() and
 * kdsm_tasks_serve() return the error.
 */
#include <stddef.h>
#include <string.h>
#include "internal.h"

#define BEAT	250000000	/* Interval between two beats, in ns */

/* Make all workers of this node look up: they leave at their next kd_task_check(). */
static void attend(struct kdsm_tasks *tasks)
{
	uint32_t used = __atomic_load_n(&tasks->own->crew.used, __ATOMIC_SEQ_CST), i;

	for (i = 0; i < used; i++) {
		__atomic_store_n(&kd_shared(tasks, i)->attention, 1, __ATOMIC_SEQ_CST);
		kd_task_ring(tasks, i);
	}
}

/* Fail the job in this process. Returns whether it had not failed before. */
static bool take_failure(struct kdsm_tasks *tasks, int error, unsigned int culprit)
{
	bool first;

	kd_mutex_lock(&tasks->lock);
	first = !tasks->failed;
	if (first) {
		__atomic_store_n(&tasks->culprit, culprit, __ATOMIC_RELAXED);
		__atomic_store_n(&tasks->failed, error, __ATOMIC_SEQ_CST);
		kd_cond_broadcast(&tasks->change);
	}
	kd_mutex_unlock(&tasks->lock);
	if (first)
		attend(tasks);
	return first;
}

/* Whether another node has reported a failure. */
static bool hear(struct kdsm_tasks *tasks)
{
	uint64_t word = __atomic_load_n(&tasks->own->told, __ATOMIC_SEQ_CST);
	unsigned int culprit;
	int error = kd_failure_read(word, tasks->nodes, tasks->node, &culprit);

	if (error)
		take_failure(tasks, error, culprit);
	return error;
}

void kd_task_fail(struct kdsm_tasks *tasks, int error, unsigned int culprit)
{
	uint64_t word = kd_failure_word(culprit, error);
	unsigned int node;

	if (!take_failure(tasks, error, culprit))
		return;
	/*
	 * Errors are ignored. A node that a put does not reach detects the failure by itself:
	 * it watches the next node, whose beats stop (see kdsm_tasks_close()).
	 */
	for (node = 0; node < tasks->nodes; node++)
		kdsm_put(tasks->region, node,
			 kd_node_place(tasks, offsetof(struct kd_task_node, told)), &word,
			 sizeof(word));
}

void kd_task_check(struct kd_worker *w)
{
	if (kd_failed(w->tasks))
		longjmp(w->base, 1);
}

void kd_task_give_up(struct kd_worker *w, int error, unsigned int node)
{
	kd_task_fail(w->tasks, error == -EHOSTDOWN ? -EOWNERDEAD : error, node);
	kd_task_check(w);
}

/* ---- the heart ---- */

struct watched {
	uint64_t beat;
	uint64_t silent;	/* time without a new beat, in ns */
};

/*
 * Count at most two intervals of the time since the last call as silence: a watcher that was
 * stopped meanwhile, perhaps with its whole machine, saw no beats that did arrive.
 */
static void watch(struct kdsm_tasks *tasks, unsigned int node,
		  const struct kd_task_process *processes, struct watched *watched,
		  uint64_t passed)
{
	unsigned int i;

	if (passed > 2 * BEAT)
		passed = 2 * BEAT;
	for (i = 0; i < KD_TASK_PROCESSES; i++) {
		uint64_t here = __atomic_load_n(&processes[i].here, __ATOMIC_RELAXED);
		uint64_t beat = __atomic_load_n(&processes[i].beat, __ATOMIC_RELAXED);

		watched[i].silent += passed;
		if (!here || beat != watched[i].beat) {
			watched[i].beat = beat;
			watched[i].silent = 0;
		} else if (watched[i].silent > tasks->timeout) {
			kd_task_fail(tasks, -EOWNERDEAD, node);
		}
	}
}

/*
 * A get fails when the connection breaks, and until the module has reconnected. That is
 * silence: the node is dead only if the gets fail for the timeout. since is the beginning of
 * the first get that failed since the last success, in ns.
 */
static void watch_next(struct kdsm_tasks *tasks, struct watched *watched, uint64_t passed,
		       uint64_t *since)
{
	unsigned int next = (tasks->node + 1) % tasks->nodes;
	struct kd_task_process processes[KD_TASK_PROCESSES];
	uint64_t begin = kdsm_now();
	int ret;

	if (next == tasks->node)
		return;
	ret = kdsm_get(tasks->region, next,
		       kd_node_place(tasks, offsetof(struct kd_task_node, processes)),
		       processes, sizeof(processes));
	ret = kdsm_silence(since, begin, ret);
	if (!ret)
		watch(tasks, next, processes, watched, passed);
	else if (ret < 0 && ret != -EHOSTDOWN)
		kd_task_fail(tasks, ret, next);
	else if (kdsm_now() - *since > tasks->timeout)
		kd_task_fail(tasks, -EOWNERDEAD, next);
}

static void wait_for_beat(struct kdsm_tasks *tasks)
{
	kd_mutex_lock(&tasks->lock);
	if (!tasks->stopping)
		kd_cond_wait_for(&tasks->change, &tasks->lock, BEAT);
	kd_mutex_unlock(&tasks->lock);
}

static bool stopping(struct kdsm_tasks *tasks)
{
	bool stopping;

	kd_mutex_lock(&tasks->lock);
	stopping = tasks->stopping;
	kd_mutex_unlock(&tasks->lock);
	return stopping;
}

void *kd_task_heart(void *data)
{
	struct kdsm_tasks *tasks = data;
	struct watched here[KD_TASK_PROCESSES], there[KD_TASK_PROCESSES];
	uint64_t last = 0, since = 0, now, passed;

	memset(here, 0, sizeof(here));
	memset(there, 0, sizeof(there));
	while (!stopping(tasks)) {
		/* Beat no faster if other events signal tasks->change. */
		now = kdsm_now();
		if (now - last >= BEAT / 2) {
			passed = now - last;
			last = now;
			__atomic_add_fetch(&tasks->own->processes[tasks->process].beat, 1,
					   __ATOMIC_RELAXED);
			if (!kd_failed(tasks) && !hear(tasks)) {
				watch(tasks, tasks->node, tasks->own->processes, here, passed);
				watch_next(tasks, there, passed, &since);
			}
		}
		if (__atomic_load_n(&tasks->own->ended, __ATOMIC_SEQ_CST)) {
			kd_mutex_lock(&tasks->lock);
			kd_cond_broadcast(&tasks->change);
			kd_mutex_unlock(&tasks->lock);
		}
		wait_for_beat(tasks);
	}
	return NULL;
}
