/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of tasks share: registry.c which tasks there are, deque.c the
 * deques, steal.c who steals from whom, sleep.c sleeping and waking,
 * kernel_steal.c stealing from other nodes, result.c and message.c how results come back,
 * alarm.c waking other nodes, watch.c who is dead,
 * worker.c the threads, alone.c workers without a pool, task.c the rest.
 *
 * Words and who writes them. Every part has the same: struct kd_task_node, the workers,
 * their deques. Only agreed takes remote atomics, and every access to it is a kdsm_cas().
 * Words that other nodes put to (bell, alarm, hungry, told, ended, and what results are
 * put into) take no remote atomics, and a CPU's only where a put may come before or after
 * it with no harm (sleep.c). All else is touched by the CPUs of its node alone.
 */
#ifndef KD_TASK_INTERNAL_H
#define KD_TASK_INTERNAL_H

#include <setjmp.h>
#include <stddef.h>

#include "task/task.h"

#define KD_TASK_WORKERS		1000	/* of a node */
#define KD_TASK_PROCESSES	64	/* of a node */
#define KD_TASK_LINES		10	/* neighbours that are asked to wake a node */

_Static_assert(KDSM_MAX_NODES <= 1 << KD_TASK_LINES, "too few neighbours");

/* kdsm_task.thief: none, or a worker, or KDSM_THIEF_DONE. */
#define KD_THIEF		0x80000000U
#define KD_THIEF_OF(node, worker) (KD_THIEF | (node) << 10 | (worker))
#define KD_THIEF_NODE(thief)	((thief) >> 10 & 0x3ff)
#define KD_THIEF_WORKER(thief)	((thief) & 0x3ff)

/*
 * A worker, for the CPUs of its node. What thieves use of it is where struct
 * kdsm_task_worker has it.
 */
struct kd_task_shared {
	_Alignas(64) uint64_t ends;	/* tail, and split << 32: see deque.c */

	_Alignas(64) uint32_t attention;
	uint32_t waits;			/* the thief whom it waits for, or 0 */
	uint32_t state;			/* KD_WORKER_* */
	uint32_t process;

	_Alignas(64) uint64_t wake;	/* changes when it is woken */
	uint32_t asleep;		/* KD_ASLEEP*, or 0 */
	uint32_t awaited;		/* KD_ASLEEP_RESULT: the place in its deque */
};

_Static_assert(offsetof(struct kd_task_shared, ends) == offsetof(struct kdsm_task_worker, ends) &&
	       offsetof(struct kd_task_shared, attention) ==
	       offsetof(struct kdsm_task_worker, attention), "the kernel has it elsewhere");

enum { KD_WORKER_NONE, KD_WORKER_HERE };
enum { KD_ASLEEP = 1, KD_ASLEEP_BELL, KD_ASLEEP_RESULT };

struct kd_task_process {
	uint64_t here;		/* 1: it takes part */
	uint64_t beat;		/* counts up while it lives */
};

struct kd_task_node {
	uint64_t alarm;		/* first byte not 0: one of hungry is set (alarm.c) */

	_Alignas(64) uint64_t bell;	/* changes when the node is woken: KD_BELL_NODE */

	_Alignas(64) uint64_t told;	/* KD_TOLD, errno and node of a failure, or 0 */
	uint64_t ended;

	_Alignas(64) uint64_t hungry[KD_TASK_LINES];	/* 1: that neighbour wants to be woken */

	_Alignas(64) uint64_t agreed;	/* node 0: what all have to agree on */

	_Alignas(64) uint32_t sleepers;	/* workers */
	uint32_t bell_watched;		/* one of them sleeps on the bell */

	_Alignas(64) struct kdsm_task_crew crew;	/* busy: kept where there are other nodes */

	/* Of asking other nodes for tasks: steal.c. */
	_Alignas(64) uint64_t ask_next;	/* not before, in ns */
	uint32_t asking;		/* one of the workers does */
	uint32_t in_vain;		/* times in a row */

	_Alignas(64) struct kd_task_process processes[KD_TASK_PROCESSES];
};

/* Who rang: of another node, or any number. */
#define KD_BELL_NODE	(KDSM_MAX_NODES - 1)

#define KD_TOLD		(UINT64_C(0x7a5c) << 48)

/* A put that is on its way. */
struct kd_task_put {
	struct kdsm_op op;
	struct kdsm_ticket ticket;
	bool used;
};

#define KD_TASK_PUTS	8

/* A worker, for its thread. */
struct kd_worker {
	struct kdsm_worker fast;	/* first: the macros know it */
	struct kdsm_tasks *tasks;
	struct kd_task_shared *shared;
	struct kdsm_task *deque;
	uint32_t number;		/* on its node */
	uint64_t random;
	jmp_buf base;			/* where it goes when the job failed */
	uintptr_t deep;			/* below this less than half of the stack is left */
	pthread_t thread;
	bool stop;			/* when it has nothing to do */
	struct kd_root *root;		/* that it runs */

	/* Results of tasks that found the deque full. */
	struct kdsm_task *full;
	uint32_t full_count, full_room;
	struct kdsm_task *full_split;	/* fast.split, when there are none */

	unsigned int hint;		/* the node that may have woken it, or none */
	struct kd_task_put puts[KD_TASK_PUTS];
	unsigned int next_put;
	struct kdsm_tasks_counts counts;
};

/* A task from outside, of who waits for it. */
struct kd_root {
	struct kd_root *next;
	const struct kdsm_task_type *type;
	struct kdsm_task task;
	bool done;		/* the result is there */
	bool left, dropped;	/* by its worker, by who waited */
};

struct kdsm_tasks {
	struct kdsm_region *region;
	uint64_t offset;
	unsigned int node, nodes;
	uint32_t node_workers, deque, steal;
	uint64_t timeout, stack;
	int (*start)(void *argument, void **context);
	void (*stop)(void *context);
	void *argument;
	struct kd_task_node *own;
	unsigned int process;		/* of own->processes */
	unsigned int *near;		/* other nodes, those of one distance together */
	unsigned int *far;		/* far[i]: the end in near of those at distance i */
	unsigned int distances;

	pthread_mutex_t lock;		/* of what follows */
	pthread_cond_t change;
	struct kd_worker **workers;
	unsigned int started;
	struct kd_root *roots;		/* not taken by a worker yet */
	struct kdsm_tasks_counts gone;	/* of workers that left */
	pthread_t heart;
	bool stopping;
	bool beating;

	uint32_t wanted;		/* there are roots; read without the lock */
	int failed;			/* errno of the job; likewise */
	unsigned int culprit;
};

static inline uint64_t kd_task_place(const struct kdsm_tasks *tasks, const void *word)
{
	return (const uint8_t *)word - tasks->region->part;
}

static inline uint64_t kd_node_place(const struct kdsm_tasks *tasks, size_t field)
{
	return tasks->offset + field;
}

static inline uint64_t kd_shared_place(const struct kdsm_tasks *tasks, uint32_t worker)
{
	return tasks->offset + sizeof(struct kd_task_node) +
	       worker * sizeof(struct kd_task_shared);
}

/* The deques have one more place each, behind their end. */
static inline uint64_t kd_slot_place(const struct kdsm_tasks *tasks, uint32_t worker,
				     uint32_t slot)
{
	return kd_shared_place(tasks, tasks->node_workers) +
	       ((uint64_t)worker * (tasks->deque + 1) + slot) * sizeof(struct kdsm_task);
}

static inline struct kd_task_shared *kd_shared(const struct kdsm_tasks *tasks, uint32_t worker)
{
	return (void *)(tasks->region->part + kd_shared_place(tasks, worker));
}

static inline struct kdsm_task *kd_slot(const struct kdsm_tasks *tasks, uint32_t worker,
					uint32_t slot)
{
	return (void *)(tasks->region->part + kd_slot_place(tasks, worker, slot));
}

/* Whether a thief (or none, or KDSM_THIEF_DONE) is of another node. */
static inline bool kd_thief_is_far(const struct kdsm_tasks *tasks, uint32_t thief)
{
	return thief & KD_THIEF && KD_THIEF_NODE(thief) != tasks->node;
}

static inline struct kd_worker *kd_worker(struct kdsm_worker *worker)
{
	return (struct kd_worker *)worker;
}

/* By the worker; others read it. */
static inline void kd_count(uint64_t *counter, uint64_t add)
{
	__atomic_store_n(counter, *counter + add, __ATOMIC_RELAXED);
}

/* The worker begins or ends to run tasks: thieves of other nodes read how many do. */
static inline void kd_task_busy(struct kd_worker *w)
{
	if (w->tasks->nodes > 1)
		__atomic_fetch_add(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST);
}

static inline void kd_task_idle(struct kd_worker *w)
{
	if (w->tasks->nodes > 1)
		__atomic_fetch_sub(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST);
}

static inline int kd_failed(const struct kdsm_tasks *tasks)
{
	return __atomic_load_n(&tasks->failed, __ATOMIC_RELAXED);
}

/* registry.c: NULL if there is none. */
const struct kdsm_task_type *kd_task_type(uint32_t id) KDSM_PRIVATE;
/* Of all tasks of the program. */
uint64_t kd_task_types_hash(uint64_t hash) KDSM_PRIVATE;

/*
 * deque.c: the first of *count tasks of a worker of this node, the oldest, which are
 * the caller's now; or NULL. Most of them at most.
 */
struct kdsm_task *kd_task_take(struct kd_worker *w, uint32_t victim, uint32_t most,
			       uint32_t *count) KDSM_PRIVATE;
/* Whether a worker of this node has a task to take. */
bool kd_task_offered(const struct kdsm_tasks *tasks, uint32_t victim) KDSM_PRIVATE;
/* Let others have half of what is private below end. */
void kd_task_offer(struct kd_worker *w, const struct kdsm_task *end) KDSM_PRIVATE;
/* spawn.c: run a task, which is stolen, and tell its owner. */
void kd_task_run(struct kd_worker *w, struct kdsm_task *head, struct kdsm_task *task,
		 uint32_t owner) KDSM_PRIVATE;

/* The result is in the task: tell its owner. */
void kd_task_done(struct kd_worker *w, struct kdsm_task *task, uint32_t owner) KDSM_PRIVATE;

/* steal.c */
uint32_t kd_task_random(struct kd_worker *w, uint32_t bound) KDSM_PRIVATE;
/* Run what can be stolen, anywhere; head: the caller's. */
bool kd_task_steal(struct kd_worker *w, struct kdsm_task *head, bool far) KDSM_PRIVATE;
/* Wait for a stolen task of the own deque, working for its thief meanwhile. */
void kd_task_await(struct kd_worker *w, struct kdsm_task *task) KDSM_PRIVATE;
/* Make tasks of this node or another part of the own deque, run the first. */
void kd_task_run_taken(struct kd_worker *w, struct kdsm_task *head, uint32_t victim,
		       struct kdsm_task *first, uint32_t count) KDSM_PRIVATE;
void kd_task_run_received(struct kd_worker *w, struct kdsm_task *head,
			  const struct kdsm_task_packed *packed, uint32_t count) KDSM_PRIVATE;
/* The type of proxies, for the kernel. */
extern struct kdsm_task_type kd_task_proxy KDSM_PRIVATE;

/* sleep.c */
/* Until there is something to steal, or awaited (NULL: or anything to do) is done. */
void kd_task_sleep(struct kd_worker *w, uint64_t timeout,
		   const struct kdsm_task *awaited) KDSM_PRIVATE;

/* wake.c: wake this worker of this node, if it sleeps. */
void kd_task_ring(const struct kdsm_tasks *tasks, uint32_t worker) KDSM_PRIVATE;
/* Wake one worker of this node, if any sleeps. */
void kd_task_wake_one(struct kd_worker *w) KDSM_PRIVATE;
/* Pause between two looks at something: longer with every try. */
void kd_task_relax(unsigned int tries) KDSM_PRIVATE;
/* Offset in the part of the word that the worker sleeps on; how: KD_ASLEEP*. */
uint64_t kd_task_wake_place(const struct kdsm_tasks *tasks, uint32_t worker,
			    uint32_t how) KDSM_PRIVATE;

/* kernel_steal.c: tasks of another node, KDSM_THEFT_MOST at most: how many. */
unsigned int kd_task_rob(struct kd_worker *w, unsigned int node, uint32_t preferred,
			 struct kdsm_task_packed *packed) KDSM_PRIVATE;

/* alarm.c: ring hungry neighbours if this worker has tasks, the last before end. */
void kd_task_answer_alarm(struct kd_worker *w, const struct kdsm_task *end) KDSM_PRIVATE;
/* Ask the neighbours to ring. Caller counts as a sleeper. */
void kd_task_hungry(struct kd_worker *w) KDSM_PRIVATE;

/* result.c: put with notice. Copies what is put; does not wait for the put. */
void kd_task_put(struct kd_worker *w, unsigned int node, uint64_t place, const void *from,
		 size_t length) KDSM_PRIVATE;
/* Wait for all puts of this worker. */
void kd_task_flush(struct kd_worker *w) KDSM_PRIVATE;
/* Whether the result of a task that another node has is there; if so copy it to the task. */
bool kd_task_result_came(struct kd_worker *w, struct kdsm_task *task) KDSM_PRIVATE;
void kd_task_send_result(struct kd_worker *w, const struct kdsm_task_origin *origin,
			 const struct kdsm_task *task) KDSM_PRIVATE;

/*
 * What the put of a result makes of the bell: no byte of it is zero, as of all of the put.
 * Other values that are not zero are of who rings.
 */
#define KD_RESULT_BELL	UINT64_C(0x8080808080808080)
#define KD_BELL_LOCAL	63	/* who rings on the node makes nothing above it */

/* Of the bell: the result comes, or is there. */
static inline bool kd_task_result_comes(uint64_t bell)
{
	return bell > KD_BELL_LOCAL;
}

/*
 * message.c: bytes in words, of which none of the 8 bytes is zero. Words that are
 * needed for so many bytes; at least one.
 */
unsigned int kd_task_words(size_t bytes) KDSM_PRIVATE;
void kd_task_encode(uint64_t *words, const void *from, size_t bytes) KDSM_PRIVATE;
void kd_task_decode(void *to, const uint64_t *words, size_t bytes) KDSM_PRIVATE;
/* Copy words that were zero before they were put to, if all of all is there. */
bool kd_task_arrived(uint64_t *to, const void *place, unsigned int words) KDSM_PRIVATE;

/* worker.c: the worker that the calling thread is, or NULL. */
KDSM_PRIVATE struct kd_worker *kd_task_self(void);
void kd_task_add_counts(struct kdsm_tasks_counts *sum,
			const struct kdsm_tasks_counts *counts) KDSM_PRIVATE;

/* watch.c */
void *kd_task_heart(void *tasks) KDSM_PRIVATE;
/* The job ends with error, on all nodes. */
void kd_task_fail(struct kdsm_tasks *tasks, int error, unsigned int culprit) KDSM_PRIVATE;
/* If it has: leave the tasks of this worker. */
void kd_task_check(struct kd_worker *w) KDSM_PRIVATE;
/* An operation on another node failed: the job fails, and this does not return. */
void kd_task_give_up(struct kd_worker *w, int error, unsigned int node) KDSM_PRIVATE;

#endif /* KD_TASK_INTERNAL_H */
