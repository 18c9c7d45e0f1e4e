// SPDX-License-Identifier: LGPL-2.1-or-later
/* The threads of workers: their main loop, and how they start and stop. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define IDLE_TRIES	96	/* Tries of an idle worker to find a task before it sleeps */
/* First timeout of an idle worker's sleep, in ns; the timeouts double, up to 8 times this */
#define IDLE_SLEEP	UINT64_C(1000000000)

/* The worker of the calling thread, outside a virtual run */
static _Thread_local void *current;

static const uint64_t no_alarm;
/* In a virtual run a worker looks up at every spawn and sync, where others may continue. */
static const uint32_t always = 1;

struct kd_worker *kd_task_self(void)
{
	return kd_scheduler ? *kd_scheduler->slot() : current;
}

static void set_self(struct kd_worker *w)
{
	*(kd_scheduler ? kd_scheduler->slot() : &current) = w;
}

void *kd_task_argument(struct kdsm_worker *worker,
		       int (*start)(void *argument, void **context))
{
	const struct kd_worker *w = worker ? kd_worker(worker) : kd_task_self();

	return w && w->tasks->start == start ? w->tasks->argument : NULL;
}

/* Take the oldest root that no worker has taken, or return NULL. */
static struct kd_root *take_root(struct kdsm_tasks *tasks)
{
	struct kd_root *root;

	if (!__atomic_load_n(&tasks->wanted, __ATOMIC_SEQ_CST))
		return NULL;
	kd_mutex_lock(&tasks->lock);
	root = tasks->roots;
	if (root) {
		tasks->roots = root->next;
		__atomic_sub_fetch(&tasks->wanted, 1, __ATOMIC_SEQ_CST);
	}
	kd_mutex_unlock(&tasks->lock);
	return root;
}

/* Hand the root back to the thread that waits for it, or free it if that thread has given up. */
static void leave_root(struct kd_worker *w, bool done)
{
	struct kdsm_tasks *tasks = w->tasks;

	kd_mutex_lock(&tasks->lock);
	w->root->done = done;
	w->root->left = true;
	if (w->root->dropped)
		free(w->root);
	w->root = NULL;
	kd_cond_broadcast(&tasks->change);
	kd_mutex_unlock(&tasks->lock);
}

static bool run_root(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	struct kd_root *root = take_root(tasks);

	if (!root)
		return false;
	w->root = root;
	kd_task_busy(w);
	root->type->run(&w->fast, w->deque, &root->task);
	kd_task_idle(w);
	leave_root(w, true);
	return true;
}

static void loop(struct kd_worker *w)
{
	unsigned int tries = 0, naps = 0;
	bool far;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		kd_task_check(w);
		kd_task_answer_alarm(w, w->deque);
		far = tries % 8 == 7 || w->hint < KDSM_MAX_NODES;
		if (run_root(w) || kd_task_steal(w, w->deque, far)) {
			tries = 0;
			naps = 0;
		} else if (tries++ < IDLE_TRIES) {
			kd_task_relax(tries);
		} else {
			kd_task_sleep(w, IDLE_SLEEP << naps, NULL);
			tries = 0;
			naps += naps < 3;
		}
	}
}

/*
 * The address half way from this frame to the end of the stack. The memory above this frame
 * does not count, because it has other contents, such as thread-local storage.
 */
static uintptr_t half_of_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = kd_stack_end();

	return end ? end + (here - end) / 2 : 0;
}

static void *work(void *data)
{
	struct kd_worker *w = data;

	set_self(w);
	if (kd_scheduler)
		kd_scheduler->busy(false);
	w->deep = half_of_stack();
	if (!setjmp(w->base))
		loop(w);
	if (w->root)
		leave_root(w, false);
	kd_task_flush(w);
	return NULL;
}

/* Claim a free number on this node. A worker that ends frees its number, unless the job failed. */
static int claim_number(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	uint32_t state, used, i;

	for (i = 0; i < tasks->node_workers; i++) {
		w->shared = kd_shared(tasks, i);
		state = KD_WORKER_NONE;
		if (__atomic_compare_exchange_n(&w->shared->state, &state, KD_WORKER_HERE, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			break;
	}
	if (i == tasks->node_workers)
		return kd_because(-EUSERS, "tasks: the job has %u workers on this node already", i);
	__atomic_store_n(&w->shared->process, tasks->process, __ATOMIC_RELAXED);
	used = __atomic_load_n(&tasks->own->crew.used, __ATOMIC_RELAXED);
	while (used <= i &&
	       !__atomic_compare_exchange_n(&tasks->own->crew.used, &used, i + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	w->number = i;
	w->hint = KDSM_MAX_NODES;
	w->random = ((uint64_t)tasks->node << 32 | (i + 1)) * 0x9e3779b97f4a7c15;
	w->deque = kd_slot(tasks, i, 0);
	w->fast = (struct kdsm_worker){
		.split = w->deque,
		.limit = w->deque + tasks->deque,
		.attention = kd_scheduler ? &always : &w->shared->attention,
		.alarm = tasks->nodes > 1 ? &tasks->own->alarm : &no_alarm,
		.index = i,
	};
	return 0;
}

static int begin(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	int ret = tasks->start ? tasks->start(tasks->argument, &w->fast.context) : 0;

	if (ret)
		return ret;
	ret = kd_thread_start(&w->thread, w->tasks->stack, work, w);
	if (ret && tasks->stop)
		tasks->stop(w->fast.context);
	return ret;
}

static int start_worker(struct kdsm_tasks *tasks)
{
	struct kd_worker *w;
	int ret;

	w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);
	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->tasks = tasks;
	ret = claim_number(w);
	if (!ret) {
		ret = begin(w);
		if (ret)
			__atomic_store_n(&w->shared->state, KD_WORKER_NONE, __ATOMIC_SEQ_CST);
	}
	if (ret) {
		free(w);
		return ret;
	}
	kd_mutex_lock(&tasks->lock);
	tasks->workers[tasks->started++] = w;
	kd_mutex_unlock(&tasks->lock);
	return 0;
}

void kd_task_add_counts(struct kdsm_tasks_counts *sum,
			const struct kdsm_tasks_counts *counts)
{
	/* All fields behind argsz */
	const size_t bytes = sizeof(*sum) - offsetof(struct kdsm_tasks_counts, stolen);
	const uint64_t *from = &counts->stolen;
	uint64_t *to = &sum->stolen;
	size_t i;

	for (i = 0; i < bytes / sizeof(*to); i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* The worker leaves only when its deque is empty, or when the job has failed. */
static void stop_worker(struct kdsm_tasks *tasks)
{
	struct kd_worker *w = tasks->workers[tasks->started - 1];

	__atomic_store_n(&w->stop, true, __ATOMIC_SEQ_CST);
	kd_task_ring(tasks, w->number);
	kd_thread_join(&w->thread, KDSM_FOREVER);
	if (tasks->stop)
		tasks->stop(w->fast.context);
	kd_mutex_lock(&tasks->lock);
	tasks->started--;
	kd_task_add_counts(&tasks->gone, &w->counts);
	kd_mutex_unlock(&tasks->lock);
	if (!kd_failed(tasks))
		__atomic_store_n(&w->shared->state, KD_WORKER_NONE, __ATOMIC_SEQ_CST);
	free(w->full);
	free(w);
}

int kdsm_tasks_set_workers(struct kdsm_tasks *tasks, uint32_t workers)
{
	int ret = 0;

	if (workers > tasks->node_workers)
		return kd_because(-EUSERS,
				  "tasks: %u workers are more than the %u that a node may have",
				  workers, tasks->node_workers);
	while (!ret && tasks->started < workers)
		ret = start_worker(tasks);
	while (tasks->started > workers)
		stop_worker(tasks);
	return ret;
}
