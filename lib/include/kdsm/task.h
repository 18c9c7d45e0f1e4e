/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: functions that workers of all processes and nodes share among themselves.
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
 * A spawned task is run by whoever syncs it, or by a worker that has nothing else to
 * do and steals it. Every spawn has one sync in the same call of the same task, the
 * last spawned first.
 *
 * A task may run on any node, so its arguments and result are values: a pointer is of
 * use only into a coherent region (or, where all workers are in one process, as ever).
 *
 * Conventions are those of <kdsm/kdsm.h>. Names that begin with kdsm_ or KDSM_ and are
 * not documented here or in kdsm_task(3) belong to the macros.
 */
#ifndef KDSM_TASK_H
#define KDSM_TASK_H

#include <kdsm/kdsm.h>

/* ---- the pool ---- */

/* What a process has of the workers of a job. */
struct kdsm_tasks;

/* How much a thief takes. */
enum kdsm_steal {
	KDSM_STEAL_ONE,		/* the oldest task */
	KDSM_STEAL_HALF,	/* of what is to be had, the oldest; at most 5 of another node */
};

struct kdsm_tasks_attr {
	/* Of this process. */
	uint32_t workers;	/* threads; 0: as many as CPUs it may run on */
	uint32_t steal;		/* enum kdsm_steal */
	uint64_t stack;		/* bytes of a worker's; 0: 16 MiB */
	/*
	 * If not NULL: called with argument before a worker starts, and *context is what
	 * KDSM_CONTEXT() will be in all tasks that it runs. 0 or a negative errno, which
	 * ends the call that starts workers. stop is called when the worker has ended.
	 */
	int (*start)(void *argument, void **context);
	void (*stop)(void *context);
	void *argument;
	/* Of the job: every process on every node gives the same. */
	uint32_t node_workers;	/* of a node at most, 1 to 1000; 0: 64 */
	uint32_t deque;		/* tasks of a worker, 2 to 2^24; 0: 8192 */
	uint64_t timeout;	/* ns without a sign of life, then a process is dead; 0: 5 s */
};

/* Bytes of every part that the tasks of a job take. attr NULL is one of zeros. */
uint64_t kdsm_tasks_bytes(const struct kdsm_tasks_attr *attr);

/*
 * Join the job whose tasks are at offset (a multiple of 64) of every part of a
 * partitioned region, all zero at first, and start this process's workers. They take
 * part in whatever any process of the job runs, until kdsm_tasks_close(). Any number
 * of processes of a node may join, and at any time.
 *
 * -EPROTO: another process of the job gave another attr, or is another program (has
 * other tasks). -EUSERS: the node has node_workers workers, or 64 processes. -ENOMEM,
 * -EAGAIN (threads), -EINVAL, -ERANGE, -EOPNOTSUPP (coherent), and errors of operations.
 */
int kdsm_tasks_open(struct kdsm_region *region, uint64_t offset,
		    const struct kdsm_tasks_attr *attr, struct kdsm_tasks **tasks);

/*
 * Leave, when this process's workers have finished what they have. No other thread may
 * be in a call with tasks. The words of the region are not zeroed. NULL is ignored.
 */
void kdsm_tasks_close(struct kdsm_tasks *tasks);

/*
 * Start and stop workers of this process until it has so many; -EUSERS, -EAGAIN, -ENOMEM.
 * With 0 its KDSM_RUN() waits until it has one again. Not from two threads at a time.
 */
int kdsm_tasks_set_workers(struct kdsm_tasks *tasks, uint32_t workers);

/*
 * KDSM_RUN() runs a task and waits for it, from outside of any task. Processes, and
 * threads of one, may do that at the same time.
 *
 * Fails when the job does, and the result is undefined then: -EOWNERDEAD: a process of
 * the job died or gave no sign of life in time. -EDEADLK: called by a task. -ENOMEM,
 * -EPROTO, or what an operation on the region gave. A job that failed stays so in all
 * its processes; tasks do not return but are abandoned where they next spawn or sync.
 */
#define KDSM_RUN(tasks, result, f, ...) f##_kdsm_root(tasks, result, ##__VA_ARGS__)

/* Wait until some process calls kdsm_tasks_end(), or the job fails (as KDSM_RUN). */
int kdsm_tasks_serve(struct kdsm_tasks *tasks);
/* Have kdsm_tasks_serve() return on all nodes: one put a node. */
int kdsm_tasks_end(struct kdsm_tasks *tasks);

/* After a failure: the node of the process that failed; otherwise this node. */
unsigned int kdsm_tasks_culprit(const struct kdsm_tasks *tasks);

/* What this process's workers did since it joined. */
struct kdsm_tasks_counts {
	uint64_t stolen;	/* tasks, from workers of this node */
	uint64_t leaps;		/* of those: by leapfrogging */
	uint64_t failed;	/* attempts on this node that found nothing */
	uint64_t requests;	/* for tasks of other nodes: KDSM_OP_STEAL */
	uint64_t refused;	/* of those: no worker was busy there */
	uint64_t empty;		/* of those: a worker was busy, but no task was public */
	uint64_t received;	/* tasks from other nodes */
	uint64_t results;	/* returned to other nodes: puts */
	uint64_t pokes;		/* other nodes woken: puts */
	uint64_t hungry;	/* puts that ask other nodes to be woken */
	uint64_t sleeps;	/* with nothing to do */
	uint64_t wakes;		/* of sleepers on this node */
	uint64_t full;		/* spawns into a full deque: run at once */
};

void kdsm_tasks_counts(struct kdsm_tasks *tasks, struct kdsm_tasks_counts *counts);

/* ---- tasks ---- */

/* The arguments of a task, and its result, have KDSM_TASK_BYTES (80) bytes at most. */

/*
 * KDSM_TASK(RESULT, NAME, TYPE, ARGUMENT, ...) begins the definition of a task, with up
 * to 8 arguments; KDSM_VOID_TASK(NAME, TYPE, ARGUMENT, ...) of one without a result. Its
 * body follows. A task is declared with KDSM_TASK_DECLARE() or KDSM_VOID_TASK_DECLARE()
 * and the same words, in a header or before it is used, and then defined with
 * KDSM_TASK_DEFINE() or KDSM_VOID_TASK_DEFINE(). A type must be such that TYPE ARGUMENT
 * declares it. Names of tasks have external linkage.
 *
 * In the body of a task:
 *   KDSM_SPAWN(NAME, ...)  make a task of it, to be synced;
 *   KDSM_SYNC(NAME)        the result of the last task spawned and not synced, which
 *                          must be of that name;
 *   KDSM_DROP()            instead of KDSM_SYNC(): the last task spawned and not synced
 *                          is not run any more, unless it was stolen, and then waited for;
 *   KDSM_CALL(NAME, ...)   call it as a function that may spawn and sync;
 *   KDSM_POLL()            see to those who want a task: for one that does none of the
 *                          above for milliseconds;
 *   KDSM_WORKER()          the calling worker's number on this node, from 0;
 *   KDSM_CONTEXT()         the calling worker's pointer: struct kdsm_tasks_attr.
 */
#define KDSM_TASK(...) \
	KDSM_TASK_DECLARE(__VA_ARGS__) \
	KDSM_TASK_DEFINE(__VA_ARGS__)
#define KDSM_VOID_TASK(...) \
	KDSM_VOID_TASK_DECLARE(__VA_ARGS__) \
	KDSM_VOID_TASK_DEFINE(__VA_ARGS__)
#define KDSM_TASK_DECLARE(...) \
	KDSM_TASK_DECLARE_(KDSM_TASK_PAIRS(__VA_ARGS__), __VA_ARGS__)
#define KDSM_TASK_DEFINE(...) \
	KDSM_TASK_DEFINE_(KDSM_TASK_PAIRS(__VA_ARGS__), __VA_ARGS__)
#define KDSM_VOID_TASK_DECLARE(...) \
	KDSM_VOID_TASK_DECLARE_(KDSM_TASK_PAIRS(void, __VA_ARGS__), __VA_ARGS__)
#define KDSM_VOID_TASK_DEFINE(...) \
	KDSM_VOID_TASK_DEFINE_(KDSM_TASK_PAIRS(void, __VA_ARGS__), __VA_ARGS__)

#define KDSM_SPAWN(f, ...) \
	((void)(kdsm_head = f##_kdsm_spawn(kdsm_worker, kdsm_head, ##__VA_ARGS__)))
#define KDSM_SYNC(f)		f##_kdsm_sync(kdsm_worker, &kdsm_head)
#define KDSM_DROP()		((void)kdsm_task_pop(kdsm_worker, &kdsm_head))
#define KDSM_CALL(f, ...)	f##_kdsm_call(kdsm_worker, kdsm_head, ##__VA_ARGS__)
#define KDSM_POLL()		kdsm_task_poll(kdsm_worker, kdsm_head)
#define KDSM_WORKER()		((unsigned int)kdsm_worker->index)
#define KDSM_CONTEXT()		(kdsm_worker->context)

/* ---- what the macros are made of ---- */

/* A worker, as far as spawn and sync see it. */
struct kdsm_worker {
	struct kdsm_task *split;	/* those from here on nobody can steal */
	struct kdsm_task *limit;	/* the end of the deque; one more can be written */
	const uint32_t *attention;	/* somebody of this node wants something */
	const uint64_t *alarm;		/* first byte not 0: another node wants to be woken */
	struct kdsm_task *head;		/* of the caller, after kdsm_task_sync() */
	void *context;
	uint64_t index;
};

struct kdsm_task_type {
	void (*run)(struct kdsm_worker *worker, struct kdsm_task *head,
		    struct kdsm_task *task);
	const char *name;
	uint32_t arguments, result;	/* bytes */
	uint32_t id;			/* the same in all processes of a program */
};

void kdsm_task_register(struct kdsm_task_type *type);
struct kdsm_task *kdsm_task_spawn(struct kdsm_worker *worker, struct kdsm_task *task);
struct kdsm_task *kdsm_task_sync(struct kdsm_worker *worker, struct kdsm_task *head);
void kdsm_task_look(struct kdsm_worker *worker, struct kdsm_task *head);
int kdsm_tasks_run(struct kdsm_tasks *tasks, const struct kdsm_task_type *type,
		   const void *arguments, void *result);

#define KDSM_TASK_LIKELY(x)	__builtin_expect(!!(x), 1)
#define KDSM_TASK_INLINE	static inline __attribute__((always_inline, unused))

/* Relaxed: what it tells of is looked at again, with care, by who sees to it. */
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

/* The task with the result, or NULL: it is at *head and to be called. */
KDSM_TASK_INLINE struct kdsm_task *kdsm_task_pop(struct kdsm_worker *worker,
						 struct kdsm_task **head)
{
	struct kdsm_task *task = *head - 1;

	if (KDSM_TASK_LIKELY(worker->split <= task) &&
	    KDSM_TASK_LIKELY(!__atomic_load_n(worker->attention, __ATOMIC_RELAXED))) {
		*head = task;
		return NULL;
	}
	/* Its address would keep the variable out of registers. */
	task = kdsm_task_sync(worker, *head);
	*head = worker->head;
	return task;
}

#define KDSM_TASK_PAIRS(...) \
	KDSM_TASK_PAIRS_(__VA_ARGS__, 8, odd, 7, odd, 6, odd, 5, odd, 4, odd, 3, odd, 2, \
			 odd, 1, odd, 0, odd)
#define KDSM_TASK_PAIRS_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, pairs, ...) pairs

#define KDSM_TASK_CAT(a, b)	KDSM_TASK_CAT_(a, b)
#define KDSM_TASK_CAT_(a, b)	a##b
#define KDSM_TASK_EACH(what, n, ...) KDSM_TASK_CAT(KDSM_TASK_EACH_, n)(what, __VA_ARGS__)
#define KDSM_TASK_EACH_0(what, ...)
#define KDSM_TASK_EACH_1(what, type, name) what(type, name)
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
#define KDSM_TASK_STORE(type, name)	kdsm_to->name = name;
#define KDSM_TASK_LOAD(type, name)	, kdsm_from->name

/* What all tasks have; R is the result's type, RP what it is stored through. */
#define KDSM_TASK_COMMON(n, R, RP, size, name, ...) \
	struct name##_kdsm_arguments { \
		KDSM_TASK_EACH(KDSM_TASK_FIELD, n, __VA_ARGS__) \
		char kdsm_none[0]; \
	}; \
	_Static_assert(sizeof(struct name##_kdsm_arguments) <= KDSM_TASK_BYTES, \
		       "the arguments of task " #name " are too large"); \
	_Static_assert((size) <= KDSM_TASK_BYTES, "the result of task " #name " is too large"); \
	_Static_assert(_Alignof(struct name##_kdsm_arguments) <= 16, \
		       "an argument of task " #name " is aligned too far"); \
	extern struct kdsm_task_type name##_kdsm_type; \
	R name##_kdsm_call(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head \
			   KDSM_TASK_EACH(KDSM_TASK_PARAMETER, n, __VA_ARGS__)); \
	KDSM_TASK_INLINE struct kdsm_task * \
	name##_kdsm_spawn(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head \
			  KDSM_TASK_EACH(KDSM_TASK_PARAMETER, n, __VA_ARGS__)) \
	{ \
		struct name##_kdsm_arguments *kdsm_to __attribute__((unused)) = \
			(struct name##_kdsm_arguments *)kdsm_head->data; \
		KDSM_TASK_EACH(KDSM_TASK_STORE, n, __VA_ARGS__) \
		return kdsm_task_push(kdsm_worker, kdsm_head, name##_kdsm_type.id); \
	} \
	static inline __attribute__((unused)) int \
	name##_kdsm_root(struct kdsm_tasks *kdsm_tasks, RP kdsm_result \
			 KDSM_TASK_EACH(KDSM_TASK_PARAMETER, n, __VA_ARGS__)) \
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
	_Static_assert(_Alignof(R) <= 16, "the result of task " #name " is aligned too far"); \
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

/* Registered in the order in which a program is linked: the same in all its processes. */
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

#endif /* KDSM_TASK_H */
