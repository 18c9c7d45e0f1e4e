// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entry points that clang calls for tasks. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "kmpc.h"

struct kmpc_task;
typedef int32_t (*routine)(int32_t gtid, void *task);

/* A task, as the compiled code knows it; its private variables follow. */
struct kmpc_task {
	void *shared;		/* addresses of its shared variables */
	routine run;
	int32_t part;
	union {
		int32_t priority;
		routine destructors;
	} first, second;
};

/* A record between the task of task.c and the struct above */
struct link {
	struct ko_task *task;
	uint32_t flags;
	size_t size;		/* of the struct and all behind it, in bytes */
	size_t shared;		/* offset of the addresses of shared variables, or 0 */
	bool again;		/* untied: the task has another part */
};

#define FINAL		2
#define DESTRUCTORS	8
#define DETACHABLE	64
#define LINK_ROOM	64	/* bytes of struct link, so that the task is aligned */

static struct link *link_of(struct kmpc_task *task)
{
	return (struct link *)((char *)task - LINK_ROOM);
}

static struct kmpc_task *create(uint32_t flags, size_t size, size_t shared)
{
	struct ko_task *task = ko_task_create(LINK_ROOM + size);
	struct link *link = ko_task_room(task);
	struct kmpc_task *own = (struct kmpc_task *)((char *)link + LINK_ROOM);

	*link = (struct link){ task, flags, size, shared, false };
	task->data = own;
	return own;
}

static void destruct(struct kmpc_task *task)
{
	if (link_of(task)->flags & DESTRUCTORS)
		task->first.destructors(ko_self()->number, task);
}

static void run(void *data)
{
	struct kmpc_task *task = data;
	struct link *link = link_of(task);

	do {
		link->again = false;
		task->run(ko_self()->number, task);
	} while (link->again);
	destruct(task);
}

static unsigned int flags_of(struct kmpc_task *task)
{
	return link_of(task)->flags & FINAL ? KO_TASK_FINAL : 0;
}

KO_PUBLIC struct kmpc_task *__kmpc_omp_task_alloc(KMPC_CALLER, int32_t flags,
						  size_t size, size_t shared, routine entry)
{
	struct kmpc_task *task;
	size_t offset = (size + 15) / 16 * 16;

	if (flags & DETACHABLE)
		ko_unsupported("__kmpc_omp_task_alloc with the clause detach");
	task = create(flags, offset + shared, shared ? offset : 0);
	task->shared = shared ? (char *)task + offset : NULL;
	task->run = entry;
	task->part = 0;
	return task;
}

/* ---- dependences ---- */

struct kmpc_depend {
	intptr_t address;
	size_t length;
	uint8_t flags;		/* 1: in; others write */
};

static struct ko_depend *translate(int32_t count, const struct kmpc_depend *list)
{
	struct ko_depend *depends = malloc((count + 1) * sizeof(*depends));
	int32_t i;

	if (!depends)
		ko_fatal("no memory for %d dependences of a task", count);
	for (i = 0; i < count; i++)
		depends[i] = (struct ko_depend){ (void *)list[i].address, list[i].flags != 1 };
	return depends;
}

KO_PUBLIC int32_t __kmpc_omp_task_with_deps(KMPC_CALLER,
					    struct kmpc_task *task, int32_t count,
					    const struct kmpc_depend *list, int32_t more,
					    const struct kmpc_depend *more_list)
{
	struct ko_depend *depends = translate(count, list);

	link_of(task)->task->run = run;
	ko_task_submit(ko_self(), link_of(task)->task, flags_of(task), depends, count);
	free(depends);
	return 0;
}

KO_PUBLIC void __kmpc_omp_wait_deps(KMPC_CALLER, int32_t count,
				    const struct kmpc_depend *list, int32_t more,
				    const struct kmpc_depend *more_list)
{
	struct ko_depend *depends = translate(count, list);

	ko_task_wait_depend(ko_self(), depends, count);
	free(depends);
}

/* ---- tasks ---- */

/* An untied task that reaches the end of a part submits itself: the same thread goes on with it. */
KO_PUBLIC int32_t __kmpc_omp_task(KMPC_CALLER, struct kmpc_task *task)
{
	struct ko_thread *thread = ko_self();
	struct link *link = link_of(task);

	link->again = link->task == thread->task;
	if (link->again)
		return 0;
	link->task->run = run;
	ko_task_submit(thread, link->task, flags_of(task), NULL, 0);
	return 0;
}

/* The code between these two calls runs the task. */
KO_PUBLIC void __kmpc_omp_task_begin_if0(KMPC_CALLER, struct kmpc_task *task)
{
	link_of(task)->task->final = flags_of(task);
	ko_task_enter(ko_self(), link_of(task)->task);
}

KO_PUBLIC void __kmpc_omp_task_complete_if0(KMPC_CALLER,
					    struct kmpc_task *task)
{
	destruct(task);
	ko_task_leave(ko_self());
}

KO_PUBLIC int32_t __kmpc_omp_taskwait(KMPC_CALLER)
{
	ko_task_wait(ko_self());
	return 0;
}

KO_PUBLIC int32_t __kmpc_omp_taskyield(KMPC_CALLER, int32_t end)
{
	sched_yield();
	return 0;
}

KO_PUBLIC void __kmpc_taskgroup(KMPC_CALLER)
{
	ko_group_begin(ko_self());
}

KO_PUBLIC void __kmpc_end_taskgroup(KMPC_CALLER)
{
	ko_group_end(ko_self());
}

/* ---- taskloop ---- */

typedef void (*duplicate)(struct kmpc_task *to, struct kmpc_task *from, int32_t last);

static struct kmpc_task *copy(struct kmpc_task *task, duplicate dup, bool last)
{
	const struct link *link = link_of(task);
	struct kmpc_task *own = create(link->flags, link->size, link->shared);

	memcpy(own, task, link->size);
	if (link->shared)
		own->shared = (char *)own + link->shared;
	if (dup)
		dup(own, task, last);
	return own;
}

/* lower and upper, inclusive, point to the bounds in the task, of which each copy gets its own. */
KO_PUBLIC void __kmpc_taskloop(KMPC_CALLER, struct kmpc_task *task,
			       int32_t deferred, uint64_t *lower, uint64_t *upper, int64_t step,
			       int32_t no_group, int32_t schedule, uint64_t number, duplicate dup)
{
	struct ko_thread *thread = ko_self();
	uint64_t start = *lower, from = 0, to, i, tasks, count;
	ptrdiff_t lower_at = (char *)lower - (char *)task, upper_at = (char *)upper - (char *)task;
	struct kmpc_task *own;

	count = (int64_t)*lower <= (int64_t)*upper || step < 0 ?
		ko_iterations(*lower, *upper + (step > 0 ? 1 : -1), step) : 0;
	tasks = ko_task_split(thread, count, schedule == 1 ? number : 0,
			      schedule == 2 ? number : 0);
	if (!no_group)
		ko_group_begin(thread);
	for (i = 0; i < tasks; i++) {
		to = from + count / tasks + (i < count % tasks);
		own = copy(task, dup, i == tasks - 1);
		*(uint64_t *)((char *)own + lower_at) = start + from * step;
		*(uint64_t *)((char *)own + upper_at) = start + (to - 1) * step;
		link_of(own)->task->run = run;
		ko_task_submit(thread, link_of(own)->task,
			       flags_of(own) | (deferred ? 0 : KO_TASK_NOW), NULL, 0);
		from = to;
	}
	destruct(task);
	free(link_of(task)->task);
	if (!no_group)
		ko_group_end(thread);
}
