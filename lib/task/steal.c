// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who steals from whom, and what is done with the loot.
 *
 * Who waits for a stolen task steals back from its thief (leapfrogging), or, if that
 * has nothing because it waits itself, from the thief it waits for, and so on: what it
 * gets is likely to be a part of what it waits for. Who has nothing to do, or does not
 * succeed in that for a while, tries the workers of its process, those of its node, and
 * then a node of every distance, the nearest first.
 *
 * Several tasks taken at once: the first is run, the others are pushed on the own deque
 * as proxies, which others can steal again. Who runs a proxy runs what is behind it and
 * gives the result to its owner at once. It must not be left to who made the proxies: that
 * one may be waiting, with the first of them, for the very worker that waits for this one.
 * Behind a proxy is no other: who steals it with others makes another for what it stands for.
 */
#include <sched.h>
#include <string.h>
#include "internal.h"

#define DEPTH		8	/* thieves of thieves */
#define SPINS		64	/* tries before a nap */
#define NAP		50000	/* ns, doubled up to 32 times that */
#define MOST_IN_VAIN	4	/* times: asking takes a sixteenth of the time then */
#define LONG		2000000	/* ns; what takes longer was an accident */

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

	/* One of this node, in its place. */
	if (!origin->type) {
		kd_task_run(w, head, kd_slot(w->tasks, origin->worker, origin->slot),
			    origin->worker);
		return;
	}
	memcpy(task.data, packed->arguments, origin->bytes);
	type->run(&w->fast, head, &task);
	kd_task_send_result(w, origin, &task);
}

/* The task may be at head: what it spawns comes there. */
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

/* A task of another worker's deque, stolen with others, or what it stands for. */
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
	/* Nothing is left to do for who made it. */
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
	/* Others that sleep may get a part of what there is. */
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
	/* Looked at first: many thieves share the line with the victim. */
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
 * After asking in vain for the second time a node lets pass as long as that took, then three
 * times as long, and so on: so it learns what is long on its network. One worker of a node
 * asks at a time, and shares what it gets with its colleagues.
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
	/* It has something. */
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

/* Of the thief, or of whose task that waits for. */
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
		sched_yield();
	else
		kd_task_sleep(w, NAP << (naps < 5 ? naps : 5), task);
}

/*
 * Loot of one who waits is run on top of what waits, which may come to wait, too, and so on:
 * with half of the stack used it steals no more. That makes no circle of workers that wait
 * for each other: each waits for a child of the task at its top, which began before the
 * child, and what is below it on a stack began before it.
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
		/* Taken, but it does not say by whom, in this moment; or no room for more. */
		if (!thief || deep) {
			pause_or_nap(w, task, tries);
			continue;
		}
		__atomic_store_n(&w->shared->waits, thief, __ATOMIC_RELAXED);
		/* A theft takes about as long as a short task from another node. */
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
