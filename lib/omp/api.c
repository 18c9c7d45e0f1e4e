// SPDX-License-Identifier: LGPL-2.1-or-later
/* The functions omp_*, except for locks. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

static struct ko_icv *icv(void)
{
	return &ko_self()->task->icv;
}

/* ---- threads and teams ---- */

KO_PUBLIC void omp_set_num_threads(int threads)
{
	icv()->threads = threads > 0 ? threads : 1;
}

KO_PUBLIC int omp_get_num_threads(void)
{
	return ko_self()->team->size;
}

KO_PUBLIC int omp_get_thread_num(void)
{
	return ko_self()->number;
}

KO_PUBLIC int omp_get_max_threads(void)
{
	return icv()->threads;
}

KO_PUBLIC int omp_get_num_procs(void)
{
	return ko_processors();
}

KO_PUBLIC int omp_get_thread_limit(void)
{
	return ko_settings.limit;
}

KO_PUBLIC int omp_in_parallel(void)
{
	return ko_self()->team->active_level > 0;
}

KO_PUBLIC void omp_set_dynamic(int dynamic)
{
	icv()->dynamic = dynamic;
}

KO_PUBLIC int omp_get_dynamic(void)
{
	return icv()->dynamic;
}

KO_PUBLIC int omp_get_cancellation(void)
{
	return 0;
}

/* ---- nested teams ---- */

#define MOST_LEVELS	INT32_MAX

KO_PUBLIC void omp_set_max_active_levels(int levels)
{
	if (levels >= 0)
		icv()->active_levels = levels;
}

KO_PUBLIC int omp_get_max_active_levels(void)
{
	return icv()->active_levels;
}

KO_PUBLIC int omp_get_supported_active_levels(void)
{
	return MOST_LEVELS;
}

KO_PUBLIC void omp_set_nested(int nested)
{
	icv()->active_levels = nested ? MOST_LEVELS : 1;
}

KO_PUBLIC int omp_get_nested(void)
{
	return icv()->active_levels > 1;
}

KO_PUBLIC int omp_get_level(void)
{
	return ko_self()->team->level;
}

KO_PUBLIC int omp_get_active_level(void)
{
	return ko_self()->team->active_level;
}

/* Returns the calling thread, or the ancestor of it, as member of the team of a level. */
static const struct ko_thread *ancestor(int level)
{
	const struct ko_thread *thread = ko_self();

	if (level < 0 || level > (int)thread->team->level)
		return NULL;
	while ((int)thread->team->level > level)
		thread = thread->team->outer;
	return thread;
}

KO_PUBLIC int omp_get_ancestor_thread_num(int level)
{
	const struct ko_thread *thread = ancestor(level);

	return thread ? (int)thread->number : -1;
}

KO_PUBLIC int omp_get_team_size(int level)
{
	const struct ko_thread *thread = ancestor(level);

	return thread ? (int)thread->team->size : -1;
}

/* ---- schedules and tasks ---- */

#define MONOTONIC	0x80000000U

KO_PUBLIC void omp_set_schedule(unsigned int kind, int chunk)
{
	kind &= ~MONOTONIC;
	if (kind < KO_STATIC || kind > KO_AUTO)
		return;
	icv()->kind = kind;
	icv()->chunk = chunk > 0 ? chunk : 0;
}

KO_PUBLIC void omp_get_schedule(unsigned int *kind, int *chunk)
{
	*kind = icv()->kind;
	*chunk = icv()->chunk;
	if (!*chunk && (*kind == KO_DYNAMIC || *kind == KO_GUIDED))
		*chunk = 1;
}

KO_PUBLIC int omp_in_final(void)
{
	return ko_self()->task->final;
}

KO_PUBLIC int omp_get_max_task_priority(void)
{
	return 0;
}

/* ---- places: none, because OMP_PROC_BIND binds threads to CPUs ---- */

KO_PUBLIC int omp_get_proc_bind(void)
{
	return ko_settings.bind;
}

KO_PUBLIC int omp_get_num_places(void)
{
	return 0;
}

KO_PUBLIC int omp_get_place_num_procs(int place)
{
	(void)place;
	return 0;
}

KO_PUBLIC void omp_get_place_proc_ids(int place, int *ids)
{
	(void)place;
	(void)ids;
}

KO_PUBLIC int omp_get_place_num(void)
{
	return -1;
}

KO_PUBLIC int omp_get_partition_num_places(void)
{
	return 0;
}

KO_PUBLIC void omp_get_partition_place_nums(int *places)
{
	(void)places;
}

/* ---- teams regions and devices: one team, and the host alone ---- */

KO_PUBLIC int omp_get_num_teams(void)
{
	return 1;
}

KO_PUBLIC int omp_get_team_num(void)
{
	return 0;
}

KO_PUBLIC void omp_set_num_teams(int teams)
{
	(void)teams;
}

KO_PUBLIC int omp_get_max_teams(void)
{
	return 1;
}

KO_PUBLIC void omp_set_teams_thread_limit(int limit)
{
	(void)limit;
}

KO_PUBLIC int omp_get_teams_thread_limit(void)
{
	return ko_settings.limit;
}

KO_PUBLIC int omp_get_num_devices(void)
{
	return 0;
}

KO_PUBLIC int omp_get_initial_device(void)
{
	return 0;
}

KO_PUBLIC int omp_get_device_num(void)
{
	return 0;
}

KO_PUBLIC int omp_is_initial_device(void)
{
	return 1;
}

KO_PUBLIC void omp_set_default_device(int device)
{
	(void)device;
}

KO_PUBLIC int omp_get_default_device(void)
{
	return 0;
}

/* ---- time ---- */

KO_PUBLIC double omp_get_wtime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

KO_PUBLIC double omp_get_wtick(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC, &tick);
	return tick.tv_sec + tick.tv_nsec / 1e9;
}

/* ---- memory: all allocators are malloc() ---- */

static uintptr_t default_allocator = 1;

KO_PUBLIC uintptr_t omp_init_allocator(uintptr_t space, int count, const void *traits)
{
	(void)space;
	(void)count;
	(void)traits;
	return 1;
}

KO_PUBLIC void omp_destroy_allocator(uintptr_t allocator)
{
	(void)allocator;
}

KO_PUBLIC void omp_set_default_allocator(uintptr_t allocator)
{
	default_allocator = allocator;
}

KO_PUBLIC uintptr_t omp_get_default_allocator(void)
{
	return default_allocator;
}

KO_PUBLIC void *omp_aligned_alloc(size_t alignment, size_t size, uintptr_t allocator)
{
	(void)allocator;
	return ko_shared_alloc(alignment, size);
}

KO_PUBLIC void *omp_alloc(size_t size, uintptr_t allocator)
{
	(void)allocator;
	return ko_shared_alloc(16, size);
}

KO_PUBLIC void *omp_aligned_calloc(size_t alignment, size_t count, size_t size,
				   uintptr_t allocator)
{
	size_t bytes;
	void *memory;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	memory = omp_aligned_alloc(alignment, bytes, allocator);
	return memory ? memset(memory, 0, bytes) : NULL;
}

KO_PUBLIC void *omp_calloc(size_t count, size_t size, uintptr_t allocator)
{
	return omp_aligned_calloc(16, count, size, allocator);
}

KO_PUBLIC void *omp_realloc(void *memory, size_t size, uintptr_t allocator, uintptr_t former)
{
	size_t old = memory ? malloc_usable_size(memory) : 0;
	void *own = size ? omp_alloc(size, allocator) : NULL;

	(void)former;
	if (own && memory)
		memcpy(own, memory, old < size ? old : size);
	if (own || !size)
		free(memory);
	return own;
}

KO_PUBLIC void omp_free(void *memory, uintptr_t allocator)
{
	(void)allocator;
	free(memory);
}

/* ---- the environment ---- */

KO_PUBLIC void omp_display_env(int verbose)
{
	static const char *const kinds[] = { "STATIC", "DYNAMIC", "GUIDED", "AUTO" };
	const struct ko_icv *icv = &ko_settings.icv;

	(void)verbose;
	fprintf(stderr, "OPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n"
		"  OMP_NUM_THREADS = '%u'\n  OMP_SCHEDULE = '%s,%llu'\n"
		"  OMP_MAX_ACTIVE_LEVELS = '%u'\n  OMP_THREAD_LIMIT = '%u'\n"
		"OPENMP DISPLAY ENVIRONMENT END\n", icv->threads, kinds[icv->kind - KO_STATIC],
		(unsigned long long)icv->chunk, icv->active_levels, ko_settings.limit);
}
