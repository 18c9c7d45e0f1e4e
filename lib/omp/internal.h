/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations that the files of libkdsm-omp share. Documentation/design/openmp.md says how the
 * files work together.
 *
 * A program has members: processes, usually one on each node. One member runs main(). A team of
 * the outermost parallel region spans all members; a nested team stays in one member. Memory that
 * threads of several members use is "shared": it has the same address in all members. The rest is
 * the member's own.
 */
#ifndef KDSM_OMP_INTERNAL_H
#define KDSM_OMP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KO_PUBLIC	__attribute__((visibility("default")))
#define KO_LINE		64	/* bytes that no two writers should share */

/* ---- env.c: internal control variables ---- */

/* Schedules, numbered as omp_sched_t */
enum ko_kind { KO_STATIC = 1, KO_DYNAMIC, KO_GUIDED, KO_AUTO };

#define KO_NEST_LISTS	8	/* levels for which OMP_NUM_THREADS may list a number */

/* Variables of a task; a new task inherits those of its creator. */
struct ko_icv {
	uint32_t threads;	/* of the next team */
	uint32_t active_levels;	/* most nested teams with more than one thread */
	uint32_t kind;		/* of schedule(runtime), enum ko_kind */
	bool dynamic;
	uint64_t chunk;		/* of schedule(runtime); 0: the default of the kind */
};

/* Variables of the program, which do not change after the start */
struct ko_settings {
	struct ko_icv icv;
	uint32_t nested[KO_NEST_LISTS];	/* threads by level; 0: as the level above */
	uint32_t limit;		/* most threads of a member */
	uint32_t bind;		/* omp_proc_bind_t */
	bool spin;		/* OMP_WAIT_POLICY is active */
	size_t stack;		/* bytes of a thread's stack; 0: the system's default */
};

extern struct ko_settings ko_settings;

/* Read the variables OMP_*. Ends the program if one has a value that is not supported. */
void ko_env_read(void);
/* CPUs that this process may use */
unsigned int ko_processors(void);

/* ---- message.c ---- */

/* Print "libkdsm-omp: " and a message to stderr, and end the program with status 1. */
void ko_fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void ko_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* End the program because it needs what this library does not have. */
void ko_unsupported(const char *what) __attribute__((noreturn));

/* ---- loop.c: loops, sections and single ---- */

/* A worksharing construct, as one thread sees it. Iterations are numbered from 0. */
struct ko_loop {
	uint64_t count;		/* iterations */
	uint64_t chunk;
	uint64_t next;		/* static: first iteration of the next chunk */
	uint64_t begin, end;	/* iterations of the current chunk */
	int64_t start, step;	/* iteration i of the program is start + i * step */
	uint32_t kind;		/* enum ko_kind */
	uint32_t serial;	/* number of the construct, counted by each thread alike */
	uint32_t turn;		/* ordered: number of the loop among those with iterations */
	bool ordered, active;
};

/* Words of a worksharing construct, shared by the threads of a team. See loop.c. */
struct ko_share {
	_Alignas(KO_LINE) uint64_t taken;
	_Alignas(KO_LINE) uint64_t ordered;
};

struct ko_thread;

/**
 * ko_loop_begin() - begin a worksharing construct
 * @thread: the calling thread
 * @kind: its schedule, enum ko_kind; KO_AUTO counts as KO_STATIC
 * @chunk: iterations to take at a time; 0: the default of the schedule
 * @count: number of iterations
 * @ordered: whether ordered regions may follow
 */
void ko_loop_begin(struct ko_thread *thread, uint32_t kind, uint64_t chunk, uint64_t count,
		   bool ordered);
/* Take the next chunk: iterations loop.begin to loop.end - 1. Returns whether there was one. */
bool ko_loop_next(struct ko_thread *thread);
/* The thread leaves the construct, without waiting for others. */
void ko_loop_end(struct ko_thread *thread);
/* Set up @loop so that each thread of a new team finds it begun. */
void ko_loop_preset(struct ko_loop *loop, uint32_t kind, uint64_t chunk, uint64_t count);
/* Returns whether the calling thread is the one that executes a single region. */
bool ko_single(struct ko_thread *thread);
/* Wait for the turn of the current chunk; let the next ordered region run. */
void ko_ordered_begin(struct ko_thread *thread);
void ko_ordered_end(struct ko_thread *thread);
/* The share of a thread if all threads have equal ones: iterations *begin to *end - 1 of count */
void ko_loop_share(const struct ko_thread *thread, uint64_t count, uint64_t *begin, uint64_t *end);
/* Number of iterations from start to end, exclusive, in steps of step */
uint64_t ko_iterations(int64_t start, int64_t end, int64_t step);

/* ---- task.c, depend.c: explicit tasks ---- */

struct ko_task;

/* A task group */
struct ko_group {
	struct ko_group *outer;
	uint64_t count;		/* tasks that are not complete */
};

/* A dependence of a task: an address, and whether the task writes there */
struct ko_depend {
	void *address;
	bool writes;
};

/* All fields change under the lock of the team's pool, after the task has been submitted. */
struct ko_task {
	struct ko_task *parent;
	struct ko_group *group;		/* innermost group that waits for the task */
	void (*run)(void *data);
	void *data;
	uint64_t children;		/* that are not complete */
	uint64_t references;		/* 1 until it is complete, and 1 for each child */
	uint64_t blockers;		/* tasks that must complete before this one may run */
	struct ko_icv icv;
	bool final, implicit, undeferred, complete;
	/* Lists of tasks that may run: of the team, and of one parent */
	struct ko_task *next, **link;
	struct ko_task *sibling, **sibling_link;
	struct ko_task *ready;		/* its children that may run */
	/* Dependences: those of this task, tasks that it blocks, and its children that have some */
	struct ko_depend *depends;
	unsigned int depend_count, successor_count, successor_room;
	struct ko_task **successors;
	struct ko_task *dependents;
	struct ko_task *dependent, **dependent_link;
};

/* The tasks of a team, shared by its threads */
struct ko_pool {
	_Alignas(KO_LINE) uint32_t lock;
	struct ko_task *first, **last;	/* tasks that may run, oldest first */
	_Alignas(KO_LINE) uint64_t outstanding;	/* tasks submitted, and not complete */
	uint64_t queued;			/* tasks in the list */
};

/* Flags of ko_task_submit() */
#define KO_TASK_NOW	1	/* the creator runs the task before it goes on: if(0) */
#define KO_TASK_FINAL	2

/**
 * ko_task_create() - make a task with room for data
 * @size: bytes of data, which begin at a multiple of 64 behind the task
 */
struct ko_task *ko_task_create(size_t size);
#define KO_TASK_ROOM	((sizeof(struct ko_task) + 63) / 64 * 64)
static inline void *ko_task_room(struct ko_task *task)
{
	return (char *)task + KO_TASK_ROOM;
}

/**
 * ko_task_submit() - let a task run, now or later, as a child of the current one
 * @thread: the calling thread
 * @task: of ko_task_create(), with run and data filled in; freed when it is complete
 * @flags: KO_TASK_*
 * @depends: what it depends on; copied
 * @count: of @depends
 */
void ko_task_submit(struct ko_thread *thread, struct ko_task *task, unsigned int flags,
		    const struct ko_depend *depends, unsigned int count);
/* Begin and end a task whose code the caller runs itself. */
void ko_task_enter(struct ko_thread *thread, struct ko_task *task);
void ko_task_leave(struct ko_thread *thread);
/* Wait until the children of the current task are complete. */
void ko_task_wait(struct ko_thread *thread);
/* Wait until those children are complete on which a task with these dependences would depend. */
void ko_task_wait_depend(struct ko_thread *thread, const struct ko_depend *depends,
			 unsigned int count);
/*
 * Number of tasks for a taskloop of count iterations: with grain iterations each, or number tasks;
 * what is 0 does not matter.
 */
uint64_t ko_task_split(const struct ko_thread *thread, uint64_t count, uint64_t grain,
		       uint64_t number);
void ko_group_begin(struct ko_thread *thread);
/* Wait until the tasks of the innermost group, and all their descendants, are complete. */
void ko_group_end(struct ko_thread *thread);
/* Run one task of the team if there is one. Returns whether there was. */
bool ko_task_help(struct ko_thread *thread);

/* The functions of depend.c: the caller holds the lock of the pool. */

/* Make the task wait for its siblings that it depends on. Returns whether there are any. */
bool ko_depend_add(struct ko_task *task);
/* The task is complete: call release() for each task that may run now. */
void ko_depend_remove(struct ko_task *task, void *context,
		      void (*release)(void *context, struct ko_task *task));
/* Whether a child of @parent is not complete on which these dependences depend */
bool ko_depend_pending(const struct ko_task *parent, const struct ko_depend *depends,
		       unsigned int count);

/* ---- team.c: teams and threads ---- */

/* Data that the threads of a team share: in shared memory, if the team spans members */
struct ko_common {
	struct ko_share share;
	struct ko_pool pool;
	_Alignas(KO_LINE) void *copy;	/* copyprivate: what the single region made */
	void **copies;			/* reductions, by thread */
	/* For members that start their threads of the team */
	void (*run)(void *data);
	void *data;
	uint32_t size, level, active_level;
	struct ko_icv icv;
	struct ko_loop preset;
};

/* A barrier of the threads that a member has in a team */
struct ko_barrier {
	uint32_t arrived, generation;
	uint32_t event;		/* changes when a thread that waits should look around */
	uint32_t sleepers;
};

/* A team, as one member knows it */
struct ko_team {
	struct ko_common *common;
	struct ko_barrier barrier;
	struct ko_thread *outer;	/* the thread that made the team; NULL: the initial team */
	unsigned int size;		/* threads of all members */
	unsigned int first, here;	/* number of this member's first thread, and their number */
	unsigned int level, active_level;
	bool spans;			/* it has threads of other members */
	uint32_t inside;		/* threads of this member, but its first, that use it */
};

/* A thread as member of one team: its implicit task. It lies on the stack of the thread. */
struct ko_thread {
	struct ko_team *team;
	struct ko_thread *outer;	/* the same thread in the team outside of this one */
	struct ko_task *task;		/* the current task */
	struct ko_group *group;		/* the innermost open group */
	unsigned int number;		/* in the team */
	uint32_t serial;		/* worksharing constructs met */
	uint32_t turns;			/* loops with ordered regions met */
	uint32_t pushed_threads;	/* of the clause num_threads, for the next team; 0: none */
	struct ko_loop loop;
	struct ko_task implicit;
};

/* Returns the calling thread, as member of its innermost team. */
struct ko_thread *ko_self(void);

/**
 * ko_parallel() - run a function in a new team, and wait for it
 * @run: called by each thread of the team
 * @data: its argument
 * @threads: number of threads; 0: as the variables say
 * @preset: a loop that each thread finds begun, or NULL
 */
void ko_parallel(void (*run)(void *data), void *data, unsigned int threads,
		 const struct ko_loop *preset);
/* Enter and leave a team of the calling thread alone. */
void ko_serial_begin(void);
void ko_serial_end(void);
/* Wait until all threads of the team have arrived and all its tasks are complete. */
void ko_barrier(struct ko_thread *thread);

/* ---- wait.c: waiting for other threads ---- */

/* Progress of a wait; zero at first */
struct ko_pause {
	unsigned int looks;
};

/*
 * Pause once between two looks at memory that other threads write. Pauses become longer, up to a
 * sleep until ko_wake(); seen is the value of barrier->event before the last look.
 */
void ko_pause(struct ko_pause *pause, struct ko_team *team, uint32_t seen);
/* Let the threads of this member that pause look around. */
void ko_wake(struct ko_team *team);
/* Sleep while *word is value, or until a signal arrives; wake sleepers. */
void ko_futex_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds);
void ko_futex_wake(uint32_t *word, int count);

/* ---- memory.c ---- */

/* Allocate memory that all members may use. free() frees it. */
void *ko_shared_alloc(size_t alignment, size_t size);

/* ---- lock.c ---- */

/*
 * Locks are words of 32 bits, 0 at first. They exclude the threads of all members, and the next
 * holder sees what the former one wrote. ko_own_lock() excludes threads of this member only.
 */
void ko_lock(uint32_t *word);
bool ko_lock_try(uint32_t *word);
void ko_unlock(uint32_t *word);
void ko_own_lock(uint32_t *word);
bool ko_own_lock_try(uint32_t *word);
void ko_own_unlock(uint32_t *word);
/* Prepare a lock in memory of any policy. Other locks are zero at first. */
void ko_lock_init(uint32_t *word);
/* The lock will not be used any more. */
void ko_lock_destroy(uint32_t *word);

/* Locks of the program as a whole, in shared memory */
struct ko_locks {
	_Alignas(KO_LINE) uint32_t critical;	/* unnamed critical regions */
	_Alignas(KO_LINE) uint32_t atomic;	/* atomic operations that are no instructions */
	_Alignas(KO_LINE) uint32_t reduce;
};

extern struct ko_locks *ko_locks;

#endif /* KDSM_OMP_INTERNAL_H */
