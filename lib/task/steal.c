// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Choice of the victim, and running of the loot. deque.c takes tasks from a deque of this
 * node, kernel_steal.c from another node.
 *
 * A worker that waits for a stolen task steals back from the thief (leapfrogging). If the
 * thief has no public task because it waits itself, the worker tries the thief that this
 * thief waits for, and so on. A task stolen in this way is probably part of the awaited task.
 * An idle worker, and a waiting one that leapfrogs without success for a while, tries the
 * workers of its process, then those of its node, and then one node of each distance, the
 * nearest first.
 *
 * A thief that takes several tasks at once runs the first and pushes the others on its own
 * deque as proxies, which other workers can steal again. The worker that runs a proxy runs
 * the task behind the proxy, and returns the result directly to the task's owner. The result
 * must not go by the worker that pushed the proxy: the pushing worker may be running the first
 * task of the loot and, in this task, wait for the owner, which waits for the result.
 *
 * A proxy never stands for another proxy. A thief that takes a proxy along with other tasks
 * pushes a new proxy for the original task.
 */
#include <string.h>
#include "internal.h"

#define DEPTH		8	/* Longest chain of thieves that a waiter follows */
#define SPINS		64	/* Tries of a waiter before its first nap */
#define NAP		50000	/* First nap, in ns; the naps double, up to 32 times this */
/* Limit of the count of consecutive failures: requests then take 1/16 of the time */
#define MOST_IN_VAIN	4
#define LONG		2000000	/* Cap on the counted duration of a request, in ns */

uint32_t kd_task_random(struct kd_worker *w, uint32_t bound)
{
	w->random = w->random * 6364136223846793005 + 1442695040888963407;
	return (w->random >> 32) * bound >> 32;
}

/* ---- proxies ---- */

static void run_packed(struct kd_worker *w, struct kdsm_task *head,
		       const struct kdsm_task_packed *packed)
{
	const struct kdsm_task_origin *origin = &packed->origin;
	const struct kdsm_task_type *type = kd_task_type(origin->type);
	struct kdsm_task task = { .type = origin->type };

	/* Type 0: the task is still in a deque of this node. */
	if (!origin->type) {
		kd_task_run(w, head, kd_slot(w->tasks, origin->worker, origin->slot),
			    origin->worker);
		return;
	}
	memcpy(task.data, packed->arguments, origin->bytes);
	type->run(&w->fast, head, &task);
	kd_task_send_result(w, origin, &task);
}

/* Copy the proxy before running it: task may be head, where the run task's spawns write. */
static void run_proxy(struct kdsm_worker *worker, struct kdsm_task *head,
		      struct kdsm_task *task)
{
	struct kdsm_task_packed packed;

	memcpy(&packed, task->data, sizeof(packed));
	run_packed(kd_worker(worker), head, &packed);
}

struct kdsm_task_type kd_task_proxy = {
	run_proxy, "kdsm proxy", sizeof(struct kdsm_task_packed), 0, 0
};

_Static_assert(sizeof(struct kdsm_task_packed) <= sizeof(((struct kdsm_task *)0)->data),
	       "a proxy has no place");

static __attribute__((constructor)) void register_proxy(void)
{
	kdsm_task_register(&kd_task_proxy);
}

/* Push a proxy on the own deque. Returns the new head. */
static struct kdsm_task *push_proxy(struct kd_worker *w, struct kdsm_task *head,
				    const struct kdsm_task_packed *packed)
{
	memcpy(head->data, packed, packed->origin.type ? sizeof(*packed) : sizeof(packed->origin));
	return kdsm_task_push(&w->fast, head, kd_task_proxy.id);
}

static void sync_proxies(struct kd_worker *w, struct kdsm_task *head, uint32_t count)
{
	while (count--)
		if (!kdsm_task_pop(&w->fast, &head))
			run_proxy(&w->fast, head, head);
}

static bool is_proxy(const struct kdsm_task *task, struct kdsm_task_packed *packed)
{
	if (task->type != kd_task_proxy.id)
		return false;
	memcpy(packed, task->data, sizeof(*packed));
	return true;
}

/*
 * Push a proxy for a stolen task of the victim's deque. If the stolen task is a proxy, too,
 * push the new proxy for the task that the stolen one stands for.
 */
static struct kdsm_task *push_taken(struct kd_worker *w, struct kdsm_task *head,
				    uint32_t victim, struct kdsm_task *task)
{
	struct kdsm_task_packed packed;
	bool proxy = is_proxy(task, &packed);

	if (!proxy)
		packed.origin = (struct kdsm_task_origin){
			.node = w->tasks->node, .worker = victim,
			.slot = task - kd_slot(w->tasks, victim, 0),
		};
	if (!packed.origin.type)
		__atomic_store_n(&kd_slot(w->tasks, packed.origin.worker,
					  packed.origin.slot)->thief,
				 KD_THIEF_OF(w->tasks->node, w->number), __ATOMIC_RELAXED);
	head = push_proxy(w, head, &packed);
	/* The new proxy replaces the stolen one, so the stolen proxy is done for its worker. */
	if (proxy)
		kd_task_done(w, task, victim);
	return head;
}

void kd_task_run_taken(struct kd_worker *w, struct kdsm_task *head, uint32_t victim,
		       struct kdsm_task *first, uint32_t count)
{
	uint32_t i;

	kd_count(&w->counts.stolen, count);
	kd_task_busy(w);
	/* Make this worker and the victim publish tasks, because other workers sleep. */
	if (__atomic_load_n(&w->tasks->own->sleepers, __ATOMIC_RELAXED)) {
		__atomic_store_n(&w->shared->attention, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&kd_shared(w->tasks, victim)->attention, 1,
				 __ATOMIC_RELAXED);
	}
	for (i = 1; i < count; i++)
		head = push_taken(w, head, victim, &first[i]);
	kd_task_run(w, head, first, victim);
	sync_proxies(w, head, count - 1);
	kd_task_idle(w);
}

void kd_task_run_received(struct kd_worker *w, struct kdsm_task *head,
			  const struct kdsm_task_packed *packed, uint32_t count)
{
	uint32_t i;

	kd_count(&w->counts.received, count);
	kd_task_busy(w);
	if (__atomic_load_n(&w->tasks->own->sleepers, __ATOMIC_RELAXED))
		__atomic_store_n(&w->shared->attention, 1, __ATOMIC_RELAXED);
	for (i = 1; i < count; i++)
		head = push_proxy(w, head, &packed[i]);
	run_packed(w, head, packed);
	sync_proxies(w, head, count - 1);
	kd_task_idle(w);
}

/* ---- stealing ---- */

/* Steal from a worker of this node, and run the loot. Returns whether there was any. */
static bool steal_from(struct kd_worker *w, struct kdsm_task *head, uint32_t victim,
		       uint32_t most)
{
	struct kd_task_shared *shared = kd_shared(w->tasks, victim);
	struct kdsm_task *first;
	uint32_t count;

	first = kd_task_take(w, victim, most, &count);
	if (first) {
		kd_task_run_taken(w, head, victim, first, count);
		return true;
	}
	kd_count(&w->counts.failed, 1);
	/* Store only if needed, because many thieves share the cache line with the victim. */
	if (!__atomic_load_n(&shared->attention, __ATOMIC_RELAXED))
		__atomic_store_n(&shared->attention, 1, __ATOMIC_RELAXED);
	return false;
}

static bool steal_near(struct kd_worker *w, struct kdsm_task *head)
{
	uint32_t used = __atomic_load_n(&w->tasks->own->crew.used, __ATOMIC_RELAXED);
	uint32_t most = w->tasks->steal == KDSM_STEAL_HALF ? w->tasks->deque : 1;
	uint32_t first = kd_task_random(w, used), victim, i;
	const struct kd_task_shared *shared;
	int mine;

	for (mine = 1; mine >= 0; mine--)
		for (i = 0; i < used; i++) {
			victim = (first + i) % used;
			shared = kd_shared(w->tasks, victim);
			if (victim == w->number ||
			    __atomic_load_n(&shared->state, __ATOMIC_RELAXED) != KD_WORKER_HERE ||
			    (__atomic_load_n(&shared->process, __ATOMIC_RELAXED) ==
			     w->shared->process) != mine)
				continue;
			if (steal_from(w, head, victim, most))
				return true;
		}
	return false;
}

/*
 * Requests of a node to other nodes. One worker of a node asks at a time, and shares the loot
 * with its colleagues. After the second consecutive request without loot the node pauses for
 * as long as that request took, then for 3, 7 and 15 times the duration of the latest one. So
 * the pauses adapt to the latency of the network.
 */
static bool may_ask(const struct kdsm_tasks *tasks, uint64_t now)
{
	uint32_t no = 0;

	return now >= __atomic_load_n(&tasks->own->ask_next, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&tasks->own->asking, &no, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void has_asked(const struct kdsm_tasks *tasks, uint64_t began, bool in_vain)
{
	struct kd_task_node *own = tasks->own;
	uint64_t now = kdsm_now(), took = now - began < LONG ? now - began : LONG;
	uint32_t vain = in_vain ? __atomic_load_n(&own->in_vain, __ATOMIC_RELAXED) : 0;

	__atomic_store_n(&own->ask_next, now + took * ((1 << vain) - 1), __ATOMIC_RELAXED);
	if (in_vain && vain < MOST_IN_VAIN)
		vain++;
	__atomic_store_n(&own->in_vain, vain, __ATOMIC_RELAXED);
	__atomic_store_n(&own->asking, 0, __ATOMIC_RELEASE);
}

static bool ask(struct kd_worker *w, struct kdsm_task *head, unsigned int node,
		uint32_t preferred)
{
	struct kdsm_task_packed packed[KDSM_THEFT_MOST];
	uint64_t began = kdsm_now();
	unsigned int count;

	if (!may_ask(w->tasks, began))
		return false;
	count = kd_task_rob(w, node, preferred, packed);
	has_asked(w->tasks, began, !count);
	if (!count)
		return false;
	kd_task_run_received(w, head, packed, count);
	return true;
}

static bool steal_far(struct kd_worker *w, struct kdsm_task *head)
{
	struct kdsm_tasks *tasks = w->tasks;
	unsigned int i, begin = 0, hint = w->hint;

	w->hint = KDSM_MAX_NODES;
	/* The node that rang has a task, so the pause between requests ends. */
	if (hint < tasks->nodes)
		__atomic_store_n(&tasks->own->ask_next, 0, __ATOMIC_RELAXED);
	if (hint < tasks->nodes && hint != tasks->node &&
	    ask(w, head, hint, UINT32_MAX))
		return true;
	for (i = 0; i < tasks->distances; begin = tasks->far[i++])
		if (ask(w, head, tasks->near[begin + kd_task_random(w, tasks->far[i] - begin)],
			UINT32_MAX))
			return true;
	return false;
}

bool kd_task_steal(struct kd_worker *w, struct kdsm_task *head, bool far)
{
	return steal_near(w, head) || (far && steal_far(w, head));
}

/* Steal from the thief, or from the thief that this thief waits for, and so on. */
static bool leap(struct kd_worker *w, struct kdsm_task *head, uint32_t thief, bool far)
{
	unsigned int depth;
	uint32_t number;

	for (depth = 0; depth < DEPTH && thief; depth++) {
		number = KD_THIEF_WORKER(thief);
		if (KD_THIEF_NODE(thief) != w->tasks->node)
			return far && KD_THIEF_NODE(thief) < w->tasks->nodes &&
			       ask(w, head, KD_THIEF_NODE(thief), number);
		if (number == w->number || number >= w->tasks->node_workers)
			return false;
		if (steal_from(w, head, number, 1)) {
			kd_count(&w->counts.leaps, 1);
			return true;
		}
		thief = __atomic_load_n(&kd_shared(w->tasks, number)->waits,
					__ATOMIC_RELAXED);
	}
	return false;
}

static void pause_or_nap(struct kd_worker *w, const struct kdsm_task *task,
			 unsigned int tries)
{
	unsigned int naps = tries < SPINS ? 0 : tries - SPINS;

	if (tries < SPINS)
		kd_task_relax(tries);
	else if (kd_task_result_comes(__atomic_load_n(&task->bell, __ATOMIC_RELAXED)) &&
		 kd_thief_is_far(w->tasks, __atomic_load_n(&task->thief, __ATOMIC_RELAXED)))
		kd_yield();
	else
		kd_task_sleep(w, NAP << (naps < 5 ? naps : 5), task);
}

/*
 * A waiting worker runs loot on top of the task that waits, and the loot may come to wait,
 * too. So a worker that has used half of its stack steals no more while it waits. This does
 * not deadlock, because the workers cannot wait for each other in a circle: each waits for a
 * child of the task on top of its stack, the task on top began before the child, and the
 * tasks below on the same stack began before the task on top.
 */
static bool is_deep(const struct kd_worker *w)
{
	return (uintptr_t)__builtin_frame_address(0) < w->deep;
}

static void wait_for(struct kd_worker *w, struct kdsm_task *task)
{
	struct kdsm_task *head = task + 1;
	bool deep = is_deep(w), got;
	unsigned int tries = 0;
	uint32_t thief;

	for (;; tries++) {
		thief = __atomic_load_n(&task->thief, __ATOMIC_ACQUIRE);
		if (thief == KDSM_THIEF_DONE)
			return;
		if (kd_thief_is_far(w->tasks, thief) && kd_task_result_came(w, task))
			return;
		kd_task_check(w);
		kd_task_answer_alarm(w, head);
		/* 0: a thief has taken the task, but has not stored its mark yet. */
		if (!thief || deep) {
			pause_or_nap(w, task, tries);
			continue;
		}
		__atomic_store_n(&w->shared->waits, thief, __ATOMIC_RELAXED);
		/*
		 * A request takes about as long as a short task on another node, so the worker
		 * sends requests only after SPINS tries without a result.
		 */
		got = leap(w, head, thief, tries >= SPINS && tries % 4 == 0);
		if (!got && tries % 8 == 7)
			got = kd_task_steal(w, head, tries >= SPINS && tries % 16 == 15);
		if (got)
			tries = 0;
		else
			pause_or_nap(w, task, tries);
	}
}

void kd_task_await(struct kd_worker *w, struct kdsm_task *task)
{
	if (__atomic_load_n(&task->thief, __ATOMIC_ACQUIRE) == KDSM_THIEF_DONE)
		return;
	kd_task_idle(w);
	wait_for(w, task);
	__atomic_store_n(&w->shared->waits, 0, __ATOMIC_RELAXED);
	kd_task_busy(w);
}
