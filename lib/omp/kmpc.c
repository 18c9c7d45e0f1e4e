// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entry points that clang calls: parallel regions and synchronisation. Loops are in kmpc_loop.c,
 * tasks in kmpc_task.c. The prototypes are those of LLVM's runtime (openmp/runtime/src/kmp.h). An
 * ident_t says where in the program the call is; nothing here needs it. The number of the calling
 * thread, which most functions get, is not needed either.
 */
#include <stdarg.h>
#include "kmpc.h"
#include "span.h"

/* ---- parallel regions ---- */

#define MOST_ARGUMENTS	64

/* A call of the code of a parallel region, whose shared variables are its arguments */
struct call {
	kmpc_micro micro;
	int count;
	void *argument[MOST_ARGUMENTS];
};

#define A4(n)	a[n], a[(n) + 1], a[(n) + 2], a[(n) + 3]
#define A16(n)	A4(n), A4((n) + 4), A4((n) + 8), A4((n) + 12)

/* A function ignores arguments behind those that it has, in the calling convention of C. */
static void run(void *data)
{
	struct call *call = data;
	int32_t number = ko_self()->number, bound = 0;
	void **a = call->argument;

	if (call->count <= 4)
		call->micro(&number, &bound, A4(0));
	else if (call->count <= 16)
		call->micro(&number, &bound, A16(0));
	else
		call->micro(&number, &bound, A16(0), A16(16), A16(32), A16(48));
}

static void take_arguments(struct call *call, const char *where, va_list list)
{
	int i;

	if (call->count > MOST_ARGUMENTS)
		ko_fatal("a %s region shares %d variables, more than %d", where, call->count,
			 MOST_ARGUMENTS);
	for (i = 0; i < call->count; i++)
		call->argument[i] = va_arg(list, void *);
}

KO_PUBLIC void __kmpc_fork_call(KMPC_IDENT, int32_t count, kmpc_micro micro, ...)
{
	struct call call = { .micro = micro, .count = count };
	va_list list;

	va_start(list, micro);
	take_arguments(&call, "parallel", list);
	va_end(list);
	ko_parallel(run, &call, 0, NULL);
}

/* One team is as many as a program may expect. */
KO_PUBLIC void __kmpc_fork_teams(KMPC_IDENT, int32_t count, kmpc_micro micro, ...)
{
	struct call call = { .micro = micro, .count = count };
	va_list list;

	va_start(list, micro);
	take_arguments(&call, "teams", list);
	va_end(list);
	run(&call);
}

KO_PUBLIC void __kmpc_push_num_teams(KMPC_CALLER, int32_t teams, int32_t threads)
{
}

KO_PUBLIC void __kmpc_push_num_teams_51(KMPC_CALLER, int32_t least, int32_t most,
					int32_t threads)
{
}

KO_PUBLIC void __kmpc_push_num_threads(KMPC_CALLER, int32_t threads)
{
	ko_self()->pushed_threads = threads > 0 ? threads : 0;
}

/* Threads do not move. */
KO_PUBLIC void __kmpc_push_proc_bind(KMPC_CALLER, int bind)
{
}

KO_PUBLIC void __kmpc_serialized_parallel(KMPC_CALLER)
{
	ko_serial_begin();
}

KO_PUBLIC void __kmpc_end_serialized_parallel(KMPC_CALLER)
{
	ko_serial_end();
}

KO_PUBLIC int32_t __kmpc_ok_to_fork(KMPC_IDENT)
{
	return 1;
}

KO_PUBLIC void __kmpc_begin(KMPC_IDENT, int32_t flags)
{
}

KO_PUBLIC void __kmpc_end(KMPC_IDENT)
{
}

KO_PUBLIC int32_t __kmpc_global_thread_num(KMPC_IDENT)
{
	return ko_self()->number;
}

KO_PUBLIC int32_t __kmpc_global_num_threads(KMPC_IDENT)
{
	return ko_self()->team->size;
}

KO_PUBLIC int32_t __kmpc_bound_thread_num(KMPC_IDENT)
{
	return ko_self()->number;
}

KO_PUBLIC int32_t __kmpc_bound_num_threads(KMPC_IDENT)
{
	return ko_self()->team->size;
}

KO_PUBLIC int32_t __kmpc_in_parallel(KMPC_IDENT)
{
	return ko_self()->team->active_level > 0;
}

/* ---- barriers, master, single ---- */

KO_PUBLIC void __kmpc_barrier(KMPC_CALLER)
{
	ko_barrier(ko_self());
}

KO_PUBLIC int32_t __kmpc_cancel_barrier(KMPC_CALLER)
{
	__kmpc_barrier(ident, gtid);
	return 0;
}

/* Cancellation is never enabled, so that requests for it have no effect. */
KO_PUBLIC int32_t __kmpc_cancel(KMPC_CALLER, int32_t kind)
{
	return 0;
}

KO_PUBLIC int32_t __kmpc_cancellationpoint(KMPC_CALLER, int32_t kind)
{
	return 0;
}

KO_PUBLIC int32_t __kmpc_masked(KMPC_CALLER, int32_t filter)
{
	return (int32_t)ko_self()->number == filter;
}

KO_PUBLIC void __kmpc_end_masked(KMPC_CALLER)
{
}

KO_PUBLIC int32_t __kmpc_master(KMPC_CALLER)
{
	return __kmpc_masked(ident, gtid, 0);
}

KO_PUBLIC void __kmpc_end_master(KMPC_CALLER)
{
}

KO_PUBLIC int32_t __kmpc_single(KMPC_CALLER)
{
	return ko_single(ko_self());
}

KO_PUBLIC void __kmpc_end_single(KMPC_CALLER)
{
}

KO_PUBLIC void __kmpc_copyprivate(KMPC_CALLER, size_t size, void *data,
				  void (*copy)(void *, void *), int32_t did_it)
{
	struct ko_thread *thread = ko_self();
	struct ko_common *common = thread->team->common;

	if (did_it)
		common->copy = data;
	ko_barrier(thread);
	if (!did_it)
		copy(data, common->copy);
	ko_barrier(thread);
}

KO_PUBLIC void __kmpc_scope(KMPC_CALLER, void *reserved)
{
}

KO_PUBLIC void __kmpc_end_scope(KMPC_CALLER, void *reserved)
{
}

/* ---- critical regions, atomic operations, reductions, flush ---- */

KO_PUBLIC void __kmpc_critical(KMPC_CALLER, int32_t *name)
{
	ko_lock((uint32_t *)name);
}

KO_PUBLIC void __kmpc_critical_with_hint(KMPC_CALLER, int32_t *name,
					 uint32_t hint)
{
	__kmpc_critical(ident, gtid, name);
}

KO_PUBLIC void __kmpc_end_critical(KMPC_CALLER, int32_t *name)
{
	ko_unlock((uint32_t *)name);
}

KO_PUBLIC void __kmpc_atomic_start(void)
{
	ko_lock(&ko_locks->atomic);
}

KO_PUBLIC void __kmpc_atomic_end(void)
{
	ko_unlock(&ko_locks->atomic);
}

/* Result 1: the caller adds its values to the variables, and calls the function of the end. */
KO_PUBLIC int32_t __kmpc_reduce_nowait(KMPC_CALLER, int32_t count, size_t size,
				       void *data, void (*add)(void *, void *), int32_t *name)
{
	ko_lock(&ko_locks->reduce);
	return 1;
}

KO_PUBLIC void __kmpc_end_reduce_nowait(KMPC_CALLER, int32_t *name)
{
	ko_unlock(&ko_locks->reduce);
}

KO_PUBLIC int32_t __kmpc_reduce(KMPC_CALLER, int32_t count, size_t size,
				void *data, void (*add)(void *, void *), int32_t *name)
{
	return __kmpc_reduce_nowait(ident, gtid, count, size, data, add, name);
}

KO_PUBLIC void __kmpc_end_reduce(KMPC_CALLER, int32_t *name)
{
	__kmpc_end_reduce_nowait(ident, gtid, name);
	ko_barrier(ko_self());
}

KO_PUBLIC void __kmpc_flush(KMPC_IDENT)
{
	ko_fence();
}

KO_PUBLIC void __kmpc_error(KMPC_IDENT, int severity, const char *message)
{
	if (severity == 2)
		ko_fatal("error: %s", message);
	ko_warn("warning: %s", message);
}
