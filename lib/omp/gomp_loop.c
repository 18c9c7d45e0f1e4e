// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entry points that gcc calls for loops whose schedule is not static, or that have ordered
 * regions. Each schedule has a function to begin a loop of long, and one for unsigned long long;
 * they differ in their names only.
 */
#include "gomp.h"

#define RUNTIME	0	/* for the schedules of enum ko_kind: that of the variables */

typedef unsigned long long ull;

static void resolve(struct ko_thread *thread, uint32_t *kind, uint64_t *chunk)
{
	if (*kind != RUNTIME)
		return;
	*kind = thread->task->icv.kind;
	*chunk = thread->task->icv.chunk;
}

static bool next(struct ko_thread *thread, uint64_t *begin, uint64_t *end)
{
	const struct ko_loop *loop = &thread->loop;

	if (!ko_loop_next(thread))
		return false;
	*begin = loop->start + loop->begin * loop->step;
	*end = loop->start + loop->end * loop->step;
	return true;
}

static bool begin(uint32_t kind, uint64_t chunk, bool ordered, uint64_t start, uint64_t step,
		  uint64_t iterations, uint64_t *first, uint64_t *end)
{
	struct ko_thread *thread = ko_self();

	resolve(thread, &kind, &chunk);
	ko_loop_begin(thread, kind, chunk, iterations, ordered);
	thread->loop.start = start;
	thread->loop.step = step;
	return next(thread, first, end);
}

static bool begin_long(uint32_t kind, long chunk, bool ordered, long start, long end, long step,
		       long *first, long *last)
{
	return begin(kind, chunk, ordered, start, step, ko_iterations(start, end, step),
		     (uint64_t *)first, (uint64_t *)last);
}

static bool begin_ull(uint32_t kind, ull chunk, bool ordered, bool up, ull start, ull end,
		      ull step, ull *first, ull *last)
{
	return begin(kind, chunk, ordered, start, step, gomp_iterations(up, start, end, step),
		     (uint64_t *)first, (uint64_t *)last);
}

/* ---- one loop after the other ---- */

#define NEXT(name) \
	KO_PUBLIC bool GOMP_loop_##name##_next(long *first, long *end) \
	{ \
		return next(ko_self(), (uint64_t *)first, (uint64_t *)end); \
	} \
	KO_PUBLIC bool GOMP_loop_ull_##name##_next(ull *first, ull *end) \
	{ \
		return next(ko_self(), (uint64_t *)first, (uint64_t *)end); \
	}

#define LOOP(name, kind, ordered) \
	KO_PUBLIC bool GOMP_loop_##name##_start(long start, long end, long step, long chunk, \
						long *first, long *last) \
	{ \
		return begin_long(kind, chunk, ordered, start, end, step, first, last); \
	} \
	KO_PUBLIC bool GOMP_loop_ull_##name##_start(bool up, ull start, ull end, ull step, \
						    ull chunk, ull *first, ull *last) \
	{ \
		return begin_ull(kind, chunk, ordered, up, start, end, step, first, last); \
	} \
	NEXT(name)

/* The functions for schedule(runtime) have no argument for the size of a chunk. */
#define LOOP_RUNTIME(name, ordered) \
	KO_PUBLIC bool GOMP_loop_##name##_start(long start, long end, long step, long *first, \
						long *last) \
	{ \
		return begin_long(RUNTIME, 0, ordered, start, end, step, first, last); \
	} \
	KO_PUBLIC bool GOMP_loop_ull_##name##_start(bool up, ull start, ull end, ull step, \
						    ull *first, ull *last) \
	{ \
		return begin_ull(RUNTIME, 0, ordered, up, start, end, step, first, last); \
	} \
	NEXT(name)

LOOP(static, KO_STATIC, false)
LOOP(dynamic, KO_DYNAMIC, false)
LOOP(guided, KO_GUIDED, false)
LOOP(nonmonotonic_dynamic, KO_DYNAMIC, false)
LOOP(nonmonotonic_guided, KO_GUIDED, false)
LOOP(ordered_static, KO_STATIC, true)
LOOP(ordered_dynamic, KO_DYNAMIC, true)
LOOP(ordered_guided, KO_GUIDED, true)
LOOP_RUNTIME(runtime, false)
LOOP_RUNTIME(nonmonotonic_runtime, false)
LOOP_RUNTIME(maybe_nonmonotonic_runtime, false)
LOOP_RUNTIME(ordered_runtime, true)

/* ---- the general form: the schedule is an argument ---- */

/* libgomp numbers schedules as enum ko_kind and RUNTIME; this bit means monotonic. */
#define MONOTONIC	0x80000000UL

static void refuse_reductions(const uintptr_t *reductions, void *const *memory, const char *what)
{
	if (reductions || memory)
		ko_fatal("%s with reduction(task) or lastprivate(conditional) is not supported",
			 what);
}

#define GENERAL(name, ordered) \
	KO_PUBLIC bool GOMP_loop_##name(long start, long end, long step, long kind, long chunk, \
					long *first, long *last, uintptr_t *reductions, \
					void **memory) \
	{ \
		refuse_reductions(reductions, memory, __func__); \
		return begin_long(kind & ~MONOTONIC, chunk, ordered, start, end, step, first, \
				  last); \
	} \
	KO_PUBLIC bool GOMP_loop_ull_##name(bool up, ull start, ull end, ull step, long kind, \
					    ull chunk, ull *first, ull *last, \
					    uintptr_t *reductions, void **memory) \
	{ \
		refuse_reductions(reductions, memory, __func__); \
		return begin_ull(kind & ~MONOTONIC, chunk, ordered, up, start, end, step, first, \
				 last); \
	}

GENERAL(start, false)
GENERAL(ordered_start, true)

KO_PUBLIC unsigned int GOMP_sections_start(unsigned int count);

KO_PUBLIC unsigned int GOMP_sections2_start(unsigned int count, uintptr_t *reductions,
					    void **memory)
{
	refuse_reductions(reductions, memory, __func__);
	return GOMP_sections_start(count);
}

KO_PUBLIC void GOMP_scope_start(uintptr_t *reductions)
{
	refuse_reductions(reductions, NULL, __func__);
}

/* ---- a parallel region that is one loop ---- */

static void parallel(void (*fn)(void *), void *data, unsigned int threads, uint32_t kind,
		     uint64_t chunk, long start, long end, long step)
{
	struct ko_loop loop;

	resolve(ko_self(), &kind, &chunk);
	ko_loop_preset(&loop, kind, chunk, ko_iterations(start, end, step));
	loop.start = start;
	loop.step = step;
	ko_parallel(fn, data, threads, &loop);
}

#define PARALLEL(name, kind) \
	KO_PUBLIC void GOMP_parallel_loop_##name(void (*fn)(void *), void *data, \
						 unsigned int threads, long start, long end, \
						 long step, long chunk, unsigned int flags) \
	{ \
		parallel(fn, data, threads, kind, chunk, start, end, step); \
	}

#define PARALLEL_RUNTIME(name) \
	KO_PUBLIC void GOMP_parallel_loop_##name(void (*fn)(void *), void *data, \
						 unsigned int threads, long start, long end, \
						 long step, unsigned int flags) \
	{ \
		parallel(fn, data, threads, RUNTIME, 0, start, end, step); \
	}

PARALLEL(static, KO_STATIC)
PARALLEL(dynamic, KO_DYNAMIC)
PARALLEL(guided, KO_GUIDED)
PARALLEL(nonmonotonic_dynamic, KO_DYNAMIC)
PARALLEL(nonmonotonic_guided, KO_GUIDED)
PARALLEL_RUNTIME(runtime)
PARALLEL_RUNTIME(nonmonotonic_runtime)
PARALLEL_RUNTIME(maybe_nonmonotonic_runtime)

/* ---- the end ---- */

KO_PUBLIC void GOMP_loop_end_nowait(void)
{
	ko_loop_end(ko_self());
}

KO_PUBLIC void GOMP_loop_end(void)
{
	GOMP_loop_end_nowait();
	ko_barrier(ko_self());
}

KO_PUBLIC bool GOMP_loop_end_cancel(void)
{
	GOMP_loop_end();
	return false;
}
