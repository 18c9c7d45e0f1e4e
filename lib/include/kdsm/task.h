/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: functions that the workers of a job, which are threads on all nodes, run for each
 * other.
 *
 *	KDSM_TASK(uint64_t, fib, unsigned int, n)
 *	{
 *		uint64_t a, b;
 *
 *		if (n < 2)
 *			return n;
 *		KDSM_SPAWN(fib, n - 1);
 *		a = KDSM_CALL(fib, n - 2);
 *		b = KDSM_SYNC(fib);
 *		return a + b;
 *	}
 *
 *	ret = KDSM_RUN(tasks, &result, fib, 40);
 *
 * The worker that syncs a spawned task runs the task, unless an idle worker has stolen and
 * run it. Every spawn has one sync in the same call of the same task; a task syncs the last
 * spawned task first.
 *
 * A task may run on any node, so its arguments and its result are passed by value. A
 * pointer among them must point into a coherent region, unless all workers are in one
 * process.
 *
 * Conventions are those of <kdsm/kdsm.h>. Names in this header that begin with kdsm_ or
 * KDSM_ and have no description belong to the macros.
 */
#ifndef KDSM_TASK_H
#define KDSM_TASK_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the pool ---- */

/* A process's part of a job: its workers and their deques. */
struct kdsm_tasks;

/* Number of tasks that a thief takes from a victim. */
enum kdsm_steal {
	KDSM_STEAL_ONE,		/* the oldest task */
	KDSM_STEAL_HALF,	/* the older half of the public tasks; from another node <= 5 */
};

struct kdsm_tasks_attr {
	size_t argsz;		/* size of this struct */
	/* Of this process */
	uint32_t workers;	/* threads; 0: one for each CPU that the process may use */
	uint32_t steal;		/* enum kdsm_steal */
	uint64_t stack;		/* of each worker, in bytes; 0: 16 MiB */
	/*
	 * Unless start is NULL, the call that starts a worker calls start with argument before
	 * the worker's thread begins. KDSM_CONTEXT() is *context in all tasks of this worker.
	 * start returns 0, or a negative errno, with which the call that starts the worker
	 * fails. Unless stop is NULL, the call that stops a worker calls stop with the context
	 * after the worker's thread has ended. So neither runs in the worker's thread.
	 */
	int (*start)(void *argument, void **context);
	void (*stop)(void *context);
	void *argument;
	/* Of the job: the same in every process on every node */
	uint32_t node_workers;	/* most workers of a node, 1 to 1000; 0: 64 */
	uint32_t deque;		/* tasks that a worker's deque holds, 2 to 2^24; 0: 8192 */
	uint64_t timeout;	/* silence, in ns, after which a process is dead; 0: 5 s */
};

/*
 * Return the number of bytes that a job needs of every part. attr NULL stands for all zero.
 * Return UINT64_MAX if attr->argsz is wrong.
 */
uint64_t kdsm_tasks_bytes(const struct kdsm_tasks_attr *attr);

/*
 * Join the job at offset, a multiple of 64, of every part of a partitioned region, and
 * start this process's workers. The kdsm_tasks_bytes() bytes there are zero at first. The
 * workers run tasks of all processes of the job until kdsm_tasks_close(). Up to 64
 * processes of a node may join, at any time. attr NULL stands for all zero. The caller
 * closes *tasks with kdsm_tasks_close(), and keeps the region open for writing until then;
 * on failure *tasks is NULL.
 *
 * -EPROTO	the job has another node_workers, deque or timeout, or runs another program
 * -EUSERS	the job has node_workers workers, or 64 processes, on this node already
 * -EINVAL	offset or a field of attr is out of range
 * -ERANGE	the bytes are not inside the part
 * -EOPNOTSUPP	the region is coherent
 * -EAGAIN	a thread could not be created
 * -ENOMEM	this process has no memory
 * others	those of kdsm_cas(), and what start returned
 */
int kdsm_tasks_open(struct kdsm_region *region, uint64_t offset,
		    const struct kdsm_tasks_attr *attr, struct kdsm_tasks **tasks);

/*
 * Leave the job. The call waits until this process's workers have finished their tasks. No
 * other thread may be in a call with tasks. The bytes of the region are not zeroed. NULL is
 * ignored.
 */
void kdsm_tasks_close(struct kdsm_tasks *tasks);

/*
 * Start or stop workers until this process has this many. With 0, a KDSM_RUN() of this
 * process waits until the process has a worker again. One thread at a time may call this
 * function. After an error the workers that the call has started stay.
 *
 * -EUSERS	the job would have more than node_workers workers on this node
 * -EAGAIN, -ENOMEM	a thread could not be created
 * others	what start returned
 */
int kdsm_tasks_set_workers(struct kdsm_tasks *tasks, uint32_t workers);

/*
 * KDSM_RUN(tasks, result, f, ...): run task f with the given arguments, wait for f, and store
 * its result in *result (NULL for a task without a result). The calling thread is not a
 * worker of the job. Several threads, of any processes, may run tasks at the same time. The
 * value is 0, or a negative errno, after which the result is undefined:
 *
 * -EOWNERDEAD	a process of the job died or was silent for too long
 * -EDEADLK	the caller is a task of the job
 * -EPROTO	a word of the job was overwritten
 * -ENOMEM	this process has no memory
 * others	those of an operation on the region
 *
 * A failed job stays failed in all its processes. The workers abandon their tasks: the next
 * spawn, sync or poll of a task does not return, and locks and memory that the task holds
 * stay held.
 */
#define KDSM_RUN(tasks, result, ...) KDSM_TASK_NAMED(root, __VA_ARGS__, tasks, result)

/* Wait until a process has called kdsm_tasks_end(). Errors: those of KDSM_RUN(). */
int kdsm_tasks_serve(struct kdsm_tasks *tasks);
/*
 * Let kdsm_tasks_serve() return on all nodes, now and later. Costs one put for each other
 * node. Errors: those of kdsm_put().
 */
int kdsm_tasks_end(struct kdsm_tasks *tasks);

/* After a failure return the node that caused it, as far as known; otherwise this node. */
unsigned int kdsm_tasks_culprit(const struct kdsm_tasks *tasks);

/* Counts of this process's workers since it joined */
struct kdsm_tasks_counts {
	size_t argsz;		/* size of this struct */
	uint64_t stolen;	/* tasks stolen from workers of this node */
	uint64_t leaps;		/* thefts, within stolen, from the thief of an awaited task */
	uint64_t failed;	/* attempts on this node that found nothing */
	uint64_t requests;	/* remote operations that ask another node for tasks */
	uint64_t refused;	/* of requests: no worker was busy there */
	uint64_t empty;		/* of requests: a worker was busy, but no task was public */
	uint64_t received;	/* tasks stolen from other nodes */
	uint64_t results;	/* puts that return results to other nodes */
	uint64_t pokes;		/* puts that wake other nodes */
	uint64_t hungry;	/* puts that ask another node to wake this one */
	uint64_t sleeps;	/* times that a worker without a task slept */
	uint64_t wakes;		/* times that a worker woke another one of this node */
	uint64_t full;		/* spawns that ran the task at once: the deque was full */
};

/* Store the counts in *counts. Errors: those of argsz. */
int kdsm_tasks_counts(struct kdsm_tasks *tasks, struct kdsm_tasks_counts *counts);

/* ---- tasks ---- */

/*
 * KDSM_TASK(RESULT, NAME, TYPE, ARGUMENT, ...) begins the definition of a task with 0 to 8
 * arguments; its body follows in braces. KDSM_VOID_TASK(NAME, TYPE, ARGUMENT, ...) does
 * so for a task without a result. All arguments together have at most KDSM_TASK_BYTES (80)
 * bytes, and so has the result. "TYPE ARGUMENT" must be a declaration. Names of tasks have
 * external linkage.
 *
 * To use a task before its definition, or in another file, declare it by
 * KDSM_TASK_DECLARE() or KDSM_VOID_TASK_DECLARE() with the same arguments, and define it by
 * KDSM_TASK_DEFINE() or KDSM_VOID_TASK_DEFINE().
 *
 * In the body of a task:
 *   KDSM_SPAWN(NAME, ...)  create a task, which this task syncs or drops later;
 *   KDSM_SYNC(NAME)        run the last spawned task that is not synced, or wait for its
 *                          thief, and return its result; the task must have that name;
 *   KDSM_DROP()            instead of KDSM_SYNC(): forget that task without running it; if
 *                          a worker has stolen it, wait for this worker;
 *   KDSM_CALL(NAME, ...)   call a task as a function;
 *   KDSM_POLL()            let other workers steal; for a task that does none of the above
 *                          for milliseconds;
 *   KDSM_WORKER()          number of the worker among those of its node, from 0;
 *   KDSM_CONTEXT()         context of the worker, see struct kdsm_tasks_attr.
 */
#define KDSM_TASK(...) \
	KDSM_TASK_DECLARE(__VA_ARGS__) \
	KDSM_TASK_DEFINE(__VA_ARGS__)
#define KDSM_VOID_TASK(...) \
	KDSM_VOID_TASK_DECLARE(__VA_ARGS__) \
	KDSM_VOID_TASK_DEFINE(__VA_ARGS__)
#define KDSM_TASK_DECLARE(...) \
	KDSM_TASK_DECLARE_(KDSM_TASK_PAIRS(__VA_ARGS__), __VA_ARGS__, )
#define KDSM_TASK_DEFINE(...) \
	KDSM_TASK_DEFINE_(KDSM_TASK_PAIRS(__VA_ARGS__), __VA_ARGS__, )
#define KDSM_VOID_TASK_DECLARE(...) \
	KDSM_VOID_TASK_DECLARE_(KDSM_TASK_PAIRS(void, __VA_ARGS__), __VA_ARGS__, )
#define KDSM_VOID_TASK_DEFINE(...) \
	KDSM_VOID_TASK_DEFINE_(KDSM_TASK_PAIRS(void, __VA_ARGS__), __VA_ARGS__, )

#define KDSM_SPAWN(...) \
	((void)(kdsm_head = KDSM_TASK_NAMED(spawn, __VA_ARGS__, kdsm_worker, kdsm_head)))
#define KDSM_SYNC(f)		f##_kdsm_sync(kdsm_worker, &kdsm_head)
#define KDSM_DROP()		((void)kdsm_task_pop(kdsm_worker, &kdsm_head))
#define KDSM_CALL(...)		KDSM_TASK_NAMED(direct, __VA_ARGS__, kdsm_worker, kdsm_head)
#define KDSM_POLL()		kdsm_task_poll(kdsm_worker, kdsm_head)
#define KDSM_WORKER()		((unsigned int)kdsm_worker->index)
#define KDSM_CONTEXT()		(kdsm_worker->context)

/* ---- what the macros are made of: not for programs ---- */

/* The part of a worker that spawn and sync use inline. */
struct kdsm_worker {
	struct kdsm_task *split;	/* tasks from here on are private to the worker */
	struct kdsm_task *limit;	/* end of the deque; one more task can be written */
	const uint32_t *attention;	/* not 0: a worker of this node needs this one */
	const uint64_t *alarm;		/* first byte not 0: another node asks to be woken */
	struct kdsm_task *head;		/* new head of the caller, after kdsm_task_sync() */
	void *context;
	uint64_t index;
};

/* A task of the program. */
struct kdsm_task_type {
	void (*run)(struct kdsm_worker *worker, struct kdsm_task *head,
		    struct kdsm_task *task);
	const char *name;
	uint32_t arguments, result;	/* sizes in bytes */
	uint32_t id;			/* the same in all processes of a program */
};

void kdsm_task_register(struct kdsm_task_type *type);
struct kdsm_task *kdsm_task_spawn(struct kdsm_worker *worker, struct kdsm_task *task);
struct kdsm_task *kdsm_task_sync(struct kdsm_worker *worker, struct kdsm_task *head);
void kdsm_task_look(struct kdsm_worker *worker, struct kdsm_task *head);
int kdsm_tasks_run(struct kdsm_tasks *tasks, const struct kdsm_task_type *type,
		   const void *arguments, void *result);

/*
 * Arguments and results are copied as bytes, which C++ allows for trivially copyable types
 * only. A task without arguments has a struct without fields, which C++ has but C11 has not.
 */
#ifdef __cplusplus
#define KDSM_TASK_NO_FIELD
#define KDSM_TASK_ASSERT(...)	static_assert(__VA_ARGS__)
#define KDSM_TASK_ALIGN(type)	alignof(type)
#define KDSM_TASK_COPIED(type)	__is_trivially_copyable(type)
#else
#define KDSM_TASK_NO_FIELD	__extension__ char kdsm_none[0];
#define KDSM_TASK_ASSERT(...)	_Static_assert(__VA_ARGS__)
#define KDSM_TASK_ALIGN(type)	_Alignof(type)
#define KDSM_TASK_COPIED(type)	1
#endif

#define KDSM_TASK_LIKELY(x)	__builtin_expect(!!(x), 1)
#define KDSM_TASK_INLINE	static inline __attribute__((always_inline, unused))

/* Relaxed loads suffice: kdsm_task_spawn() and kdsm_task_look() check again with order. */
KDSM_TASK_INLINE int kdsm_task_wanted(const struct kdsm_worker *worker)
{
	return (__atomic_load_n(worker->attention, __ATOMIC_RELAXED) |
		__atomic_load_n((const uint8_t *)worker->alarm, __ATOMIC_RELAXED)) != 0;
}

KDSM_TASK_INLINE struct kdsm_task *kdsm_task_push(struct kdsm_worker *worker,
						  struct kdsm_task *task, uint32_t type)
{
	task->type = type;
	if (KDSM_TASK_LIKELY(task < worker->limit) &&
	    KDSM_TASK_LIKELY(!kdsm_task_wanted(worker)))
		return task + 1;
	return kdsm_task_spawn(worker, task);
}

KDSM_TASK_INLINE void kdsm_task_poll(struct kdsm_worker *worker, struct kdsm_task *head)
{
	if (kdsm_task_wanted(worker))
		kdsm_task_look(worker, head);
}

/*
 * Take back the last spawned task. Return NULL if the task was not stolen: the caller then
 * calls the task at *head. Otherwise return the task that holds the result.
 */
KDSM_TASK_INLINE struct kdsm_task *kdsm_task_pop(struct kdsm_worker *worker,
						 struct kdsm_task **head)
{
	struct kdsm_task *task = *head - 1;

	if (KDSM_TASK_LIKELY(worker->split <= task) &&
	    KDSM_TASK_LIKELY(!__atomic_load_n(worker->attention, __ATOMIC_RELAXED))) {
		*head = task;
		return NULL;
	}
	/* Passing the address of *head would keep the variable out of registers. */
	task = kdsm_task_sync(worker, *head);
	*head = worker->head;
	return task;
}

#define KDSM_TASK_PAIRS(...) \
	KDSM_TASK_PAIRS_(__VA_ARGS__, 8, odd, 7, odd, 6, odd, 5, odd, 4, odd, 3, odd, 2, \
			 odd, 1, odd, 0, odd)
#define KDSM_TASK_PAIRS_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, pairs, ...) pairs

/*
 * The arguments that every task has come after those of the task itself. A task may have none
 * of its own, and a variadic macro of C11 needs at least one argument.
 */
#define KDSM_TASK_NAMED(what, ...)	KDSM_TASK_NAMED_(what, __VA_ARGS__)
#define KDSM_TASK_NAMED_(what, f, ...)	f##_kdsm_##what(__VA_ARGS__)

#define KDSM_TASK_CAT(a, b)	KDSM_TASK_CAT_(a, b)
#define KDSM_TASK_CAT_(a, b)	a##b
#define KDSM_TASK_EACH(what, n, ...)	KDSM_TASK_CAT(KDSM_TASK_EACH_, n)(what, __VA_ARGS__)
/* The caller adds a comma after the last name, because C11 needs a variadic argument here. */
#define KDSM_TASK_EACH_0(what, ...)
#define KDSM_TASK_EACH_1(what, type, name, ...) what(type, name)
#define KDSM_TASK_EACH_2(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_1(what, __VA_ARGS__)
#define KDSM_TASK_EACH_3(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_2(what, __VA_ARGS__)
#define KDSM_TASK_EACH_4(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_3(what, __VA_ARGS__)
#define KDSM_TASK_EACH_5(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_4(what, __VA_ARGS__)
#define KDSM_TASK_EACH_6(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_5(what, __VA_ARGS__)
#define KDSM_TASK_EACH_7(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_6(what, __VA_ARGS__)
#define KDSM_TASK_EACH_8(what, type, name, ...) \
	what(type, name) KDSM_TASK_EACH_7(what, __VA_ARGS__)

#define KDSM_TASK_FIELD(type, name)	type name;
#define KDSM_TASK_PARAMETER(type, name)	, type name
#define KDSM_TASK_LEADING(type, name)	type name,
#define KDSM_TASK_PASS(type, name)	, name
#define KDSM_TASK_STORE(type, name)	kdsm_to->name = name;
#define KDSM_TASK_LOAD(type, name)	, kdsm_from->name

/* Common to all tasks. R: type of the result; RP: pointer through which it is stored. */
#define KDSM_TASK_COMMON(n, R, RP, size, name, ...) \
	struct name##_kdsm_arguments { \
		KDSM_TASK_EACH(KDSM_TASK_FIELD, n, __VA_ARGS__) \
		KDSM_TASK_NO_FIELD \
	}; \
	KDSM_TASK_ASSERT(sizeof(struct name##_kdsm_arguments) <= KDSM_TASK_BYTES, \
			 "the arguments of task " #name " are too large"); \
	KDSM_TASK_ASSERT((size) <= KDSM_TASK_BYTES, \
			 "the result of task " #name " is too large"); \
	KDSM_TASK_ASSERT(KDSM_TASK_ALIGN(struct name##_kdsm_arguments) <= 16, \
			 "an argument of task " #name " is aligned too far"); \
	KDSM_TASK_ASSERT(KDSM_TASK_COPIED(struct name##_kdsm_arguments), \
			 "an argument of task " #name " is not trivially copyable"); \
	extern struct kdsm_task_type name##_kdsm_type; \
	R name##_kdsm_call(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head \
			   KDSM_TASK_EACH(KDSM_TASK_PARAMETER, n, __VA_ARGS__)); \
	KDSM_TASK_INLINE struct kdsm_task * \
	name##_kdsm_spawn(KDSM_TASK_EACH(KDSM_TASK_LEADING, n, __VA_ARGS__) \
			  struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head) \
	{ \
		struct name##_kdsm_arguments *kdsm_to __attribute__((unused)) = \
			(struct name##_kdsm_arguments *)kdsm_head->data; \
		KDSM_TASK_EACH(KDSM_TASK_STORE, n, __VA_ARGS__) \
		return kdsm_task_push(kdsm_worker, kdsm_head, name##_kdsm_type.id); \
	} \
	static inline __attribute__((unused)) int \
	name##_kdsm_root(KDSM_TASK_EACH(KDSM_TASK_LEADING, n, __VA_ARGS__) \
			 struct kdsm_tasks *kdsm_tasks, RP kdsm_result) \
	{ \
		struct name##_kdsm_arguments kdsm_arguments, \
			*kdsm_to __attribute__((unused)) = &kdsm_arguments; \
		__builtin_memset(&kdsm_arguments, 0, sizeof(kdsm_arguments)); \
		KDSM_TASK_EACH(KDSM_TASK_STORE, n, __VA_ARGS__) \
		return kdsm_tasks_run(kdsm_tasks, &name##_kdsm_type, &kdsm_arguments, \
				      kdsm_result); \
	}

#define KDSM_TASK_DECLARE_(n, R, name, ...) \
	KDSM_TASK_COMMON(n, R, R *, sizeof(R), name, __VA_ARGS__) \
	KDSM_TASK_ASSERT(KDSM_TASK_ALIGN(R) <= 16, \
			 "the result of task " #name " is aligned too far"); \
	KDSM_TASK_ASSERT(KDSM_TASK_COPIED(R), \
			 "the result of task " #name " is not trivially copyable"); \
	KDSM_TASK_INLINE R \
	name##_kdsm_direct(KDSM_TASK_EACH(KDSM_TASK_LEADING, n, __VA_ARGS__) \
			   struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head) \
	{ \
		return name##_kdsm_call(kdsm_worker, kdsm_head \
					KDSM_TASK_EACH(KDSM_TASK_PASS, n, __VA_ARGS__)); \
	} \
	KDSM_TASK_INLINE R \
	name##_kdsm_sync(struct kdsm_worker *kdsm_worker, struct kdsm_task **kdsm_head) \
	{ \
		struct kdsm_task *kdsm_done = kdsm_task_pop(kdsm_worker, kdsm_head); \
		struct name##_kdsm_arguments *kdsm_from __attribute__((unused)); \
		if (__builtin_expect(!!kdsm_done, 0)) \
			return *(R *)kdsm_done->data; \
		kdsm_from = (struct name##_kdsm_arguments *)(*kdsm_head)->data; \
		return name##_kdsm_call(kdsm_worker, *kdsm_head \
					KDSM_TASK_EACH(KDSM_TASK_LOAD, n, __VA_ARGS__)); \
	}

#define KDSM_VOID_TASK_DECLARE_(n, name, ...) \
	KDSM_TASK_COMMON(n, void, void *, 0, name, __VA_ARGS__) \
	KDSM_TASK_INLINE void \
	name##_kdsm_direct(KDSM_TASK_EACH(KDSM_TASK_LEADING, n, __VA_ARGS__) \
			   struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head) \
	{ \
		name##_kdsm_call(kdsm_worker, kdsm_head \
				 KDSM_TASK_EACH(KDSM_TASK_PASS, n, __VA_ARGS__)); \
	} \
	KDSM_TASK_INLINE void \
	name##_kdsm_sync(struct kdsm_worker *kdsm_worker, struct kdsm_task **kdsm_head) \
	{ \
		struct kdsm_task *kdsm_done = kdsm_task_pop(kdsm_worker, kdsm_head); \
		struct name##_kdsm_arguments *kdsm_from __attribute__((unused)); \
		if (__builtin_expect(!!kdsm_done, 0)) \
			return; \
		kdsm_from = (struct name##_kdsm_arguments *)(*kdsm_head)->data; \
		name##_kdsm_call(kdsm_worker, *kdsm_head \
				 KDSM_TASK_EACH(KDSM_TASK_LOAD, n, __VA_ARGS__)); \
	}

#define KDSM_TASK_DEFINE_(n, R, name, ...) \
	static void name##_kdsm_run(struct kdsm_worker *kdsm_worker, \
				    struct kdsm_task *kdsm_head, struct kdsm_task *kdsm_task) \
	{ \
		struct name##_kdsm_arguments *kdsm_from __attribute__((unused)) = \
			(struct name##_kdsm_arguments *)kdsm_task->data; \
		R kdsm_result = name##_kdsm_call(kdsm_worker, kdsm_head \
						 KDSM_TASK_EACH(KDSM_TASK_LOAD, n, __VA_ARGS__)); \
		*(R *)kdsm_task->data = kdsm_result; \
	} \
	KDSM_TASK_TYPE(name, sizeof(R)) \
	KDSM_TASK_BODY(n, R, name, __VA_ARGS__)

#define KDSM_VOID_TASK_DEFINE_(n, name, ...) \
	static void name##_kdsm_run(struct kdsm_worker *kdsm_worker, \
				    struct kdsm_task *kdsm_head, struct kdsm_task *kdsm_task) \
	{ \
		struct name##_kdsm_arguments *kdsm_from __attribute__((unused)) = \
			(struct name##_kdsm_arguments *)kdsm_task->data; \
		name##_kdsm_call(kdsm_worker, kdsm_head \
				 KDSM_TASK_EACH(KDSM_TASK_LOAD, n, __VA_ARGS__)); \
	} \
	KDSM_TASK_TYPE(name, 0) \
	KDSM_TASK_BODY(n, void, name, __VA_ARGS__)

/*
 * Constructors register the types in link order, so all processes of a program give a type
 * the same number.
 */
#define KDSM_TASK_TYPE(task, size) \
	struct kdsm_task_type task##_kdsm_type = { \
		task##_kdsm_run, #task, sizeof(struct task##_kdsm_arguments), size, 0 \
	}; \
	static __attribute__((constructor)) void task##_kdsm_register(void) \
	{ \
		kdsm_task_register(&task##_kdsm_type); \
	}

#define KDSM_TASK_BODY(n, R, name, ...) \
	R name##_kdsm_call(struct kdsm_worker *kdsm_worker __attribute__((unused)), \
			   struct kdsm_task *kdsm_head __attribute__((unused)) \
			   KDSM_TASK_EACH(KDSM_TASK_PARAMETER, n, __VA_ARGS__))

#ifdef __cplusplus
}
#endif

#endif /* KDSM_TASK_H */
