/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations that the files of lib/task share. task.h has what other folders call, and
 * <kdsm/uapi_task.h> the words that the kernel touches, too.
 *
 *	registry.c	numbers of the task types
 *	deque.c		public portion of a deque
 *	spawn.c		spawn and sync, where the inline macros do not suffice
 *	steal.c		choice of the victim; running stolen tasks
 *	kernel_steal.c	stealing from other nodes
 *	result.c	results that return to another node
 *	message.c	encoding of these results
 *	sleep.c		sleeping of idle and waiting workers
 *	wake.c		waking them
 *	alarm.c		waking other nodes
 *	watch.c		detection of dead processes
 *	worker.c	threads
 *	alone.c		workers without a pool
 *	task.c		joining and leaving a job; tasks run from outside
 *
 * Writers of the words in a region. Every part has the same layout: a struct kd_task_node,
 * the workers, their deques. Three rules hold:
 * - Only the word "agreed" takes remote atomics, and every access to it is a kdsm_cas().
 * - Other nodes put to bell, alarm, hungry, told, ended and the places of results. These
 *   words take no remote atomics. A CPU does an atomic on such a word only where it does not
 *   matter whether a put arrives before or after the atomic (sleep.c).
 * - Only CPUs of the own node change every other word. Other nodes get the beats (watch.c).
 */
#ifndef KD_TASK_INTERNAL_H
#define KD_TASK_INTERNAL_H

#include <setjmp.h>
#include <stddef.h>

#include "task/task.h"

#define KD_TASK_WORKERS		1000	/* Most workers of a node */
#define KD_TASK_PROCESSES	64	/* Most processes of a node */
#define KD_TASK_LINES		10	/* Most neighbours that a node asks to wake it */

_Static_assert(KDSM_MAX_NODES <= 1 << KD_TASK_LINES, "too few neighbours");

/*
 * kdsm_task.thief is 0 (not stolen, or the thief has not stored its mark yet), KD_THIEF_OF()
 * the thief, or KDSM_THIEF_DONE.
 */
#define KD_THIEF		0x80000000U
#define KD_THIEF_OF(node, worker) (KD_THIEF | (node) << 10 | (worker))
#define KD_THIEF_NODE(thief)	((thief) >> 10 & 0x3ff)
#define KD_THIEF_WORKER(thief)	((thief) & 0x3ff)

/*
 * The words of a worker that all CPUs of its node use. ends and attention have the same
 * offsets as in struct kdsm_task_worker, because the kernel uses them, too.
 */
struct kd_task_shared {
	_Alignas(64) uint64_t ends;	/* tail, and split << 32: see deque.c */

	_Alignas(64) uint32_t attention;	/* 1: another worker needs this one */
	uint32_t waits;			/* thief that this worker waits for, or 0 */
	uint32_t state;			/* KD_WORKER_* */
	uint32_t process;		/* index in kd_task_node.processes */

	_Alignas(64) uint64_t wake;	/* KD_ASLEEP: a waker changes this word */
	uint32_t asleep;		/* KD_ASLEEP*, or 0 when awake */
	uint32_t awaited;		/* KD_ASLEEP_RESULT: index of the task in the deque */
};

_Static_assert(offsetof(struct kd_task_shared, ends) == offsetof(struct kdsm_task_worker, ends) &&
	       offsetof(struct kd_task_shared, attention) ==
	       offsetof(struct kdsm_task_worker, attention), "the kernel has it elsewhere");

enum { KD_WORKER_NONE, KD_WORKER_HERE };
/* The word that a worker sleeps on: its own wake, the node's bell, or a task's bell */
enum { KD_ASLEEP = 1, KD_ASLEEP_BELL, KD_ASLEEP_RESULT };

struct kd_task_process {
	uint64_t here;		/* 1: the process takes part in the job */
	uint64_t beat;		/* the process increments it while it lives */
};

struct kd_task_node {
	uint64_t alarm;		/* first byte not 0: one of hungry is set (alarm.c) */

	_Alignas(64) uint64_t bell;	/* a waker of the node changes it: KD_BELL_NODE */

	_Alignas(64) uint64_t told;	/* failure word (core.h) of a node that failed, or 0 */
	uint64_t ended;			/* 1: kdsm_tasks_end() was called */

	_Alignas(64) uint64_t hungry[KD_TASK_LINES];	/* 1: that neighbour wants to be woken */

	_Alignas(64) uint64_t agreed;	/* node 0: hash of what all processes must agree on */

	_Alignas(64) uint32_t sleepers;	/* sleeping workers */
	uint32_t bell_watched;		/* 1: a worker sleeps on the bell */

	_Alignas(64) struct kdsm_task_crew crew;	/* busy is kept if there are other nodes */

	/* Requests for tasks to other nodes: steal.c. */
	_Alignas(64) uint64_t ask_next;	/* earliest time of the next request, in ns */
	uint32_t asking;		/* 1: a worker has a request in flight */
	uint32_t in_vain;		/* consecutive requests without a task, <= MOST_IN_VAIN */

	_Alignas(64) struct kd_task_process processes[KD_TASK_PROCESSES];
};

/* These bits of the bell name the other node that rang; a ring by this node makes them noise. */
#define KD_BELL_NODE	(KDSM_MAX_NODES - 1)

/* A put that may be in flight. */
struct kd_task_put {
	struct kdsm_op op;
	struct kdsm_ticket ticket;
	bool used;
};

#define KD_TASK_PUTS	8

/*
 * The state of a worker, for its own thread. Other threads of the process set stop, and read
 * counts and the fields that never change.
 */
struct kd_worker {
	struct kdsm_worker fast;	/* first, for kd_worker() */
	struct kdsm_tasks *tasks;
	struct kd_task_shared *shared;
	struct kdsm_task *deque;
	uint32_t number;		/* index among the workers of the node */
	uint64_t random;
	jmp_buf base;			/* target of the longjmp() when the job failed */
	uintptr_t deep;			/* frames below this address: half of the stack is used */
	struct kd_thread thread;
	bool stop;			/* leave as soon as idle */
	struct kd_root *root;		/* the root that it runs, or NULL */

	/* Results of tasks that were run at once because the deque was full. */
	struct kdsm_task *full;
	uint32_t full_count, full_room;
	struct kdsm_task *full_split;	/* saved fast.split while full_count is not 0 */

	unsigned int hint;		/* node that rang the bell, or KDSM_MAX_NODES */
	struct kd_task_put puts[KD_TASK_PUTS];
	unsigned int next_put;
	struct kdsm_tasks_counts counts;
};

/* A task that a thread outside the pool runs by kdsm_tasks_run() and waits for. */
struct kd_root {
	struct kd_root *next;
	const struct kdsm_task_type *type;
	struct kdsm_task task;
	bool done;		/* task holds the result */
	/*
	 * left: the worker uses this root no more, so the waiter frees it. dropped: the waiter
	 * uses this root no more, so the worker frees it.
	 */
	bool left, dropped;
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
	unsigned int process;		/* index in own->processes */
	unsigned int *near;		/* numbers of the other nodes, nearest first */
	unsigned int *far;		/* far[i]: index in near behind the nodes at distance i */
	unsigned int distances;		/* entries of far */

	pthread_mutex_t lock;		/* protects the fields below */
	pthread_cond_t change;
	struct kd_worker **workers;
	unsigned int started;
	struct kd_root *roots;		/* roots that no worker has taken yet */
	struct kdsm_tasks_counts gone;	/* sum over the workers that have ended */
	struct kd_thread heart;
	bool stopping;
	bool beating;

	uint32_t wanted;		/* number of roots; also read without the lock */
	int failed;			/* errno of the job; also read without the lock */
	unsigned int culprit;		/* node that caused the failure; written before failed */
};

/* ---- places: offsets in a part, in bytes ---- */

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

/* Each deque has one element more than its size, for the task that finds the deque full. */
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

/* Whether the value of kdsm_task.thief names a worker of another node. */
static inline bool kd_thief_is_far(const struct kdsm_tasks *tasks, uint32_t thief)
{
	return thief & KD_THIEF && KD_THIEF_NODE(thief) != tasks->node;
}

static inline struct kd_worker *kd_worker(struct kdsm_worker *worker)
{
	return (struct kd_worker *)worker;
}

/* Caller is the only writer of the counter; other threads read it concurrently. */
static inline void kd_count(uint64_t *counter, uint64_t add)
{
	__atomic_store_n(counter, *counter + add, __ATOMIC_RELAXED);
}

/* The worker begins to run tasks. Thieves of other nodes read the number of busy workers. */
static inline void kd_task_busy(struct kd_worker *w)
{
	if (w->tasks->nodes > 1)
		__atomic_fetch_add(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST);
	if (kd_scheduler)
		kd_scheduler->busy(true);
}

/* The worker stops running tasks. */
static inline void kd_task_idle(struct kd_worker *w)
{
	if (w->tasks->nodes > 1)
		__atomic_fetch_sub(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST);
	if (kd_scheduler)
		kd_scheduler->busy(false);
}

/* Returns 0, or the negative errno with which the job has failed. */
static inline int kd_failed(const struct kdsm_tasks *tasks)
{
	return __atomic_load_n(&tasks->failed, __ATOMIC_RELAXED);
}

/*
 * In all functions below, head is the first free element of the own deque, where the next
 * spawn writes.
 */

/* registry.c */
/* NULL if the program has no task of this number. */
const struct kdsm_task_type *kd_task_type(uint32_t id) KDSM_PRIVATE;
/* Extend hash by the types of all tasks of the program. */
uint64_t kd_task_types_hash(uint64_t hash) KDSM_PRIVATE;

/* deque.c */
/*
 * Take the oldest public tasks of a worker of this node: half of them, but at most "most".
 * Returns the first of *count consecutive tasks, which belong to the caller alone, or NULL.
 */
struct kdsm_task *kd_task_take(struct kd_worker *w, uint32_t victim, uint32_t most,
			       uint32_t *count) KDSM_PRIVATE;
/* Whether a worker of this node has a public task. */
bool kd_task_offered(const struct kdsm_tasks *tasks, uint32_t victim) KDSM_PRIVATE;
/* Publish the older half of the own private tasks before end, and wake a sleeping worker. */
void kd_task_offer(struct kd_worker *w, const struct kdsm_task *end) KDSM_PRIVATE;

/* spawn.c */
/* Run a task stolen from the worker "owner" of this node, and tell the owner when it is done. */
void kd_task_run(struct kd_worker *w, struct kdsm_task *head, struct kdsm_task *task,
		 uint32_t owner) KDSM_PRIVATE;

/* Tell the owner that the task holds its result. */
void kd_task_done(struct kd_worker *w, struct kdsm_task *task, uint32_t owner) KDSM_PRIVATE;

/* steal.c */
/* A pseudo-random number below bound. */
uint32_t kd_task_random(struct kd_worker *w, uint32_t bound) KDSM_PRIVATE;
/* Steal tasks from this node or, if far, from any node, and run them. Returns whether any ran. */
bool kd_task_steal(struct kd_worker *w, struct kdsm_task *head, bool far) KDSM_PRIVATE;
/* Wait for a stolen task of the own deque, and run tasks of its thief meanwhile. */
void kd_task_await(struct kd_worker *w, struct kdsm_task *task) KDSM_PRIVATE;
/*
 * Run count tasks stolen from this node (taken) or from another node (received). Push all but
 * the first on the own deque as proxies, run the first, and sync the proxies.
 */
void kd_task_run_taken(struct kd_worker *w, struct kdsm_task *head, uint32_t victim,
		       struct kdsm_task *first, uint32_t count) KDSM_PRIVATE;
void kd_task_run_received(struct kd_worker *w, struct kdsm_task *head,
			  const struct kdsm_task_packed *packed, uint32_t count) KDSM_PRIVATE;
/* The type of proxies; a theft names it to the kernel of the victim's node. */
extern struct kdsm_task_type kd_task_proxy KDSM_PRIVATE;

/* sleep.c */
/*
 * Sleep until a task can be stolen, awaited is done, or timeout (in ns) has passed. If
 * awaited is NULL, a root or a request to stop ends the sleep, too. May return early.
 */
void kd_task_sleep(struct kd_worker *w, uint64_t timeout,
		   const struct kdsm_task *awaited) KDSM_PRIVATE;

/* wake.c */
/* Wake this worker of this node, if it sleeps. */
void kd_task_ring(const struct kdsm_tasks *tasks, uint32_t worker) KDSM_PRIVATE;
/* Wake one worker of this node, if any sleeps. */
void kd_task_wake_one(struct kd_worker *w) KDSM_PRIVATE;
/* Pause in a polling loop, the longer the more tries. */
void kd_task_relax(unsigned int tries) KDSM_PRIVATE;
/* Offset in the part of the word that the worker sleeps on; how: KD_ASLEEP*. */
uint64_t kd_task_wake_place(const struct kdsm_tasks *tasks, uint32_t worker,
			    uint32_t how) KDSM_PRIVATE;

/* kernel_steal.c */
/*
 * Steal tasks from another node, trying its worker "preferred" modulo the number of its
 * workers first. packed has room for KDSM_THEFT_MOST tasks. Returns the number of stolen tasks.
 * On an error the job fails.
 */
unsigned int kd_task_rob(struct kd_worker *w, unsigned int node, uint32_t preferred,
			 struct kdsm_task_packed *packed) KDSM_PRIVATE;

/* alarm.c */
/* Ring the hungry neighbours if the alarm is set and this worker has a task before end. */
void kd_task_answer_alarm(struct kd_worker *w, const struct kdsm_task *end) KDSM_PRIVATE;
/* Ask the neighbours to ring. Caller has added itself to sleepers. */
void kd_task_hungry(struct kd_worker *w) KDSM_PRIVATE;

/* result.c */
/* Start a notifying put of length bytes, and do not wait for it. The caller may reuse from. */
void kd_task_put(struct kd_worker *w, unsigned int node, uint64_t place, const void *from,
		 size_t length) KDSM_PRIVATE;
/* Wait for all puts of this worker. If one has failed, fail the job. */
void kd_task_flush(struct kd_worker *w) KDSM_PRIVATE;
/*
 * Whether the result of a task that another node ran has arrived completely. If so, the
 * decoded result is in the task.
 */
bool kd_task_result_came(struct kd_worker *w, struct kdsm_task *task) KDSM_PRIVATE;
/* Send the result in the task to the place of origin. */
void kd_task_send_result(struct kd_worker *w, const struct kdsm_task_origin *origin,
			 const struct kdsm_task *task) KDSM_PRIVATE;

/*
 * The put of a result writes this value into the task's bell. Like every word of the put, the
 * value has no zero byte. A ring of a task's bell by its own node writes smaller values, up to
 * KD_BELL_LOCAL.
 */
#define KD_RESULT_BELL	UINT64_C(0x8080808080808080)
#define KD_BELL_LOCAL	63	/* Largest value that a ring by the own node writes */

/* Whether part of a result, or all of it, has arrived in the bell. */
static inline bool kd_task_result_comes(uint64_t bell)
{
	return bell > KD_BELL_LOCAL;
}

/*
 * message.c: an encoding of bytes in words without a zero byte. kd_task_words() is the
 * number of words, at least 1, that encode this number of bytes.
 */
unsigned int kd_task_words(size_t bytes) KDSM_PRIVATE;
void kd_task_encode(uint64_t *words, const void *from, size_t bytes) KDSM_PRIVATE;
void kd_task_decode(void *to, const uint64_t *words, size_t bytes) KDSM_PRIVATE;
/*
 * Whether the put of an encoded message to place is complete. If so, the words are copied.
 * The words were zero before the put began.
 */
bool kd_task_arrived(uint64_t *to, const void *place, unsigned int words) KDSM_PRIVATE;

/* worker.c */
/* The worker whose thread calls, or NULL. */
KDSM_PRIVATE struct kd_worker *kd_task_self(void);
/* Add counts, which a worker may be changing, to sum. */
void kd_task_add_counts(struct kdsm_tasks_counts *sum,
			const struct kdsm_tasks_counts *counts) KDSM_PRIVATE;

/* watch.c */
/* The thread that counts up the own beat and watches the beats of other processes. */
void *kd_task_heart(void *tasks) KDSM_PRIVATE;
/* Fail the job with error, a negative errno, on all nodes, unless it has failed before. */
void kd_task_fail(struct kdsm_tasks *tasks, int error, unsigned int culprit) KDSM_PRIVATE;
/* If the job has failed, abandon the tasks of this worker by longjmp(). */
void kd_task_check(struct kd_worker *w) KDSM_PRIVATE;
/* Fail the job because an operation on the node failed. Does not return. */
void kd_task_give_up(struct kd_worker *w, int error, unsigned int node) KDSM_PRIVATE;

#endif /* KD_TASK_INTERNAL_H */
