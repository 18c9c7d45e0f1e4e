// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entry points that gcc calls: parallel regions, synchronisation, single, sections, tasks. The
 * loops are in gomp_loop.c. The prototypes are those of libgomp, whose manual describes them
 * ("The libgomp ABI").
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "gomp.h"

/* ---- parallel regions ---- */

KO_PUBLIC void GOMP_parallel(void (*fn)(void *), void *data, unsigned int threads,
			     unsigned int flags)
{
	ko_parallel(fn, data, threads, NULL);
}

KO_PUBLIC void GOMP_teams_reg(void (*fn)(void *), void *data, unsigned int teams,
			      unsigned int limit, unsigned int flags)
{
	fn(data);
}

/* ---- synchronisation ---- */

KO_PUBLIC void GOMP_barrier(void)
{
	ko_barrier(ko_self());
}

KO_PUBLIC void GOMP_critical_start(void)
{
	ko_lock(&ko_locks->critical);
}

KO_PUBLIC void GOMP_critical_end(void)
{
	ko_unlock(&ko_locks->critical);
}

KO_PUBLIC void GOMP_critical_name_start(void **name)
{
	ko_lock((uint32_t *)name);
}

KO_PUBLIC void GOMP_critical_name_end(void **name)
{
	ko_unlock((uint32_t *)name);
}

KO_PUBLIC void GOMP_atomic_start(void)
{
	ko_lock(&ko_locks->atomic);
}

KO_PUBLIC void GOMP_atomic_end(void)
{
	ko_unlock(&ko_locks->atomic);
}

KO_PUBLIC void GOMP_ordered_start(void)
{
	ko_ordered_begin(ko_self());
}

KO_PUBLIC void GOMP_ordered_end(void)
{
	ko_ordered_end(ko_self());
}

/* ---- single ---- */

KO_PUBLIC bool GOMP_single_start(void)
{
	return ko_single(ko_self());
}

KO_PUBLIC void *GOMP_single_copy_start(void)
{
	struct ko_thread *thread = ko_self();

	if (ko_single(thread))
		return NULL;
	ko_barrier(thread);
	return thread->team->common->copy;
}

KO_PUBLIC void GOMP_single_copy_end(void *data)
{
	struct ko_thread *thread = ko_self();

	thread->team->common->copy = data;
	ko_barrier(thread);
}

/* ---- sections: a dynamic loop whose iterations have the numbers 1 to count ---- */

KO_PUBLIC unsigned int GOMP_sections_next(void)
{
	struct ko_thread *thread = ko_self();

	return ko_loop_next(thread) ? thread->loop.begin + 1 : 0;
}

KO_PUBLIC unsigned int GOMP_sections_start(unsigned int count)
{
	ko_loop_begin(ko_self(), KO_DYNAMIC, 1, count, false);
	return GOMP_sections_next();
}

KO_PUBLIC void GOMP_sections_end_nowait(void)
{
	ko_loop_end(ko_self());
}

KO_PUBLIC void GOMP_sections_end(void)
{
	GOMP_sections_end_nowait();
	GOMP_barrier();
}

KO_PUBLIC void GOMP_parallel_sections(void (*fn)(void *), void *data, unsigned int threads,
				      unsigned int count, unsigned int flags)
{
	struct ko_loop loop;

	ko_loop_preset(&loop, KO_DYNAMIC, 1, count);
	ko_parallel(fn, data, threads, &loop);
}

/* ---- tasks ---- */

#define TASK_FINAL	(1U << 1)
#define TASK_DEPEND	(1U << 3)
#define TASK_UP		(1U << 8)
#define TASK_GRAINSIZE	(1U << 9)
#define TASK_IF		(1U << 10)
#define TASK_NOGROUP	(1U << 11)
#define TASK_REDUCTION	(1U << 12)
#define TASK_DETACH	(1U << 13)

/* A depend object: its address, and its kind (4.5: in is 1) */
struct depend_object {
	void *address;
	uintptr_t kind;
};

/*
 * Translate a list of dependences: its length and number of writers, if the length is not 0; or 0,
 * the length, and the numbers of writers, of mutexinoutset and of readers, which depend objects
 * follow. Returns an array that the caller frees.
 */
static struct ko_depend *translate(void **list, unsigned int *count)
{
	uintptr_t total = (uintptr_t)list[0], writers = (uintptr_t)list[1], plain = total, i;
	struct ko_depend *depends;
	void **entry = list + 2;

	if (!total) {
		total = (uintptr_t)list[1];
		writers = (uintptr_t)list[2] + (uintptr_t)list[3];
		plain = writers + (uintptr_t)list[4];
		entry = list + 5;
	}
	depends = malloc((total + 1) * sizeof(*depends));
	if (!depends)
		ko_fatal("no memory for %zu dependences of a task", (size_t)total);
	for (i = 0; i < total; i++) {
		const struct depend_object *object = entry[i];

		depends[i].address = i < plain ? entry[i] : object->address;
		depends[i].writes = i < plain ? i < writers : object->kind != 1;
	}
	*count = total;
	return depends;
}

/* Make a task whose data are a copy of the creator's. */
static struct ko_task *copy_task(void (*fn)(void *), void *data, void (*copy)(void *, void *),
				 long size, long align)
{
	struct ko_task *task = ko_task_create(size + align);
	uintptr_t room = (uintptr_t)ko_task_room(task);

	task->run = fn;
	task->data = (void *)((room + align - 1) / align * align);
	if (copy)
		copy(task->data, data);
	else
		memcpy(task->data, data, size);
	return task;
}

KO_PUBLIC void GOMP_task(void (*fn)(void *), void *data, void (*copy)(void *, void *), long size,
			 long align, bool deferred, unsigned int flags, void **depend,
			 int priority, void *detach)
{
	struct ko_thread *thread = ko_self();
	struct ko_depend *depends = NULL;
	struct ko_task *task;
	unsigned int count = 0;

	if (flags & TASK_DETACH)
		ko_unsupported("GOMP_task with the clause detach");
	if (flags & TASK_DEPEND)
		depends = translate(depend, &count);
	task = copy_task(fn, data, copy, size, align);
	ko_task_submit(thread, task,
		       (deferred ? 0 : KO_TASK_NOW) | (flags & TASK_FINAL ? KO_TASK_FINAL : 0),
		       depends, count);
	free(depends);
}

KO_PUBLIC void GOMP_taskwait(void)
{
	ko_task_wait(ko_self());
}

KO_PUBLIC void GOMP_taskwait_depend(void **depend)
{
	struct ko_depend *depends;
	unsigned int count;

	depends = translate(depend, &count);
	ko_task_wait_depend(ko_self(), depends, count);
	free(depends);
}

KO_PUBLIC void GOMP_taskyield(void)
{
	sched_yield();
}

KO_PUBLIC void GOMP_taskgroup_start(void)
{
	ko_group_begin(ko_self());
}

KO_PUBLIC void GOMP_taskgroup_end(void)
{
	ko_group_end(ko_self());
}

/* The data of each task begin with its first iteration and the end of its iterations. */
static void taskloop(void (*fn)(void *), void *data, void (*copy)(void *, void *), long size,
		     long align, unsigned int flags, unsigned long number, uint64_t start,
		     uint64_t step, uint64_t iterations)
{
	struct ko_thread *thread = ko_self();
	uint64_t tasks = ko_task_split(thread, iterations, flags & TASK_GRAINSIZE ? number : 0,
				       flags & TASK_GRAINSIZE ? 0 : number);
	uint64_t i, from = 0, to;
	struct ko_task *task;

	if (flags & TASK_REDUCTION)
		ko_unsupported("GOMP_taskloop with the clause reduction");
	if (!(flags & TASK_NOGROUP))
		ko_group_begin(thread);
	for (i = 0; i < tasks; i++) {
		task = copy_task(fn, data, copy, size, align);
		to = from + iterations / tasks + (i < iterations % tasks);
		((uint64_t *)task->data)[0] = start + from * step;
		((uint64_t *)task->data)[1] = start + to * step;
		ko_task_submit(thread, task, (flags & TASK_IF ? 0 : KO_TASK_NOW) |
			       (flags & TASK_FINAL ? KO_TASK_FINAL : 0), NULL, 0);
		from = to;
	}
	if (!(flags & TASK_NOGROUP))
		ko_group_end(thread);
}

KO_PUBLIC void GOMP_taskloop(void (*fn)(void *), void *data, void (*copy)(void *, void *),
			     long size, long align, unsigned int flags, unsigned long number,
			     int priority, long start, long end, long step)
{
	taskloop(fn, data, copy, size, align, flags, number, start, step,
		 ko_iterations(start, end, step));
}

KO_PUBLIC void GOMP_taskloop_ull(void (*fn)(void *), void *data, void (*copy)(void *, void *),
				 long size, long align, unsigned int flags, unsigned long number,
				 int priority, unsigned long long start, unsigned long long end,
				 unsigned long long step)
{
	taskloop(fn, data, copy, size, align, flags, number, start, step,
		 gomp_iterations(flags & TASK_UP, start, end, step));
}

/* ---- cancellation: never enabled, so that requests for it have no effect ---- */

KO_PUBLIC bool GOMP_cancel(int which, bool cancel)
{
	return false;
}

KO_PUBLIC bool GOMP_cancellation_point(int which)
{
	return false;
}

KO_PUBLIC bool GOMP_barrier_cancel(void)
{
	GOMP_barrier();
	return false;
}

KO_PUBLIC bool GOMP_sections_end_cancel(void)
{
	GOMP_sections_end();
	return false;
}

/* ---- memory and messages ---- */

KO_PUBLIC void *GOMP_alloc(size_t alignment, size_t size, uintptr_t allocator)
{
	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	return ko_shared_alloc(alignment, size);
}

KO_PUBLIC void GOMP_free(void *memory, uintptr_t allocator)
{
	free(memory);
}

KO_PUBLIC void GOMP_warning(const char *message, size_t length)
{
	ko_warn("warning: %.*s", (int)length, message);
}

KO_PUBLIC void GOMP_error(const char *message, size_t length)
{
	ko_fatal("error: %.*s", (int)length, message);
}
