// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc() and its kin for programs of several members: objects are in a heap that all share, so
 * that a pointer means the same in all members. The heap is in the job's region, of policy release,
 * or with KDSM_OMP_HEAP=strict in a region of policy strict. Before the members share memory, and
 * in programs of one member, the functions are those of libc. This library itself calls libc's,
 * because the linker replaces its calls (--wrap).
 */
#include <errno.h>
#include <kdsm/heap.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "span.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

static struct kdsm_heap *heap;
static uint64_t begin, end;		/* addresses of the heap */
static bool strict_heap;

static bool is_shared(const void *memory)
{
	return (uintptr_t)memory - begin < end - begin;
}

/* Bytes of an object of libc: the word in front of it has its size, with flags in the low bits. */
static size_t libc_size(const void *memory)
{
	return (((const size_t *)memory)[-1] & ~(size_t)7) - sizeof(size_t);
}

bool ko_is_release(const void *memory)
{
	return !strict_heap && is_shared(memory);
}

/* ---- what this library calls ---- */

void *__wrap_malloc(size_t size)
{
	return __libc_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return __libc_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return __libc_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return __libc_memalign(alignment, size);
}

void __wrap_free(void *memory)
{
	if (is_shared(memory))
		kdsm_free(heap, memory);
	else
		__libc_free(memory);
}

void *ko_shared_alloc(size_t alignment, size_t size)
{
	return heap ? kdsm_aligned_alloc(heap, alignment, size) : __libc_memalign(alignment, size);
}

/* Returns the region of the heap. The word of ko_fence() is in the job's region. */
static struct kdsm_region *open_region(void)
{
	struct kdsm_region *region = kdsm_job_region(ko_job);
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr), .policy = KDSM_POLICY_STRICT,
		.size = kdsm_region_size(region),
	};
	const char *policy = getenv("KDSM_OMP_HEAP");
	char name[KDSM_NAME_SIZE];
	int ret;

	strict_heap = policy && !strcmp(policy, "strict");
	if (policy && !strict_heap && strcmp(policy, "release"))
		ko_fatal("KDSM_OMP_HEAP: \"%s\" is neither release nor strict", policy);
	if (!strict_heap)
		return region;
	snprintf(name, sizeof(name), "%s.heap", kdsm_job_name(ko_job));
	ret = kdsm_region_open(kdsm_job_cluster(ko_job), name, &attr, &region);
	if (ret)
		ko_fatal("no memory for the heap: %s", kdsm_error(ret));
	return region;
}

void ko_memory_share(void)
{
	struct kdsm_region *region = open_region(), *sync = kdsm_job_sync(ko_job);
	uint64_t offset, bytes = kdsm_heap_sync_size(kdsm_region_size(region),
						     kdsm_region_block_size(region),
						     kdsm_nodes(kdsm_job_cluster(ko_job)));
	struct kdsm_heap *made;
	void *word;
	int ret;

	kdsm_job_alloc_sync(ko_job, bytes, &offset);
	ret = kdsm_heap_create(region, sync, offset, 0, &made);
	if (ret)
		ko_fatal("no heap: %s", kdsm_error(ret));
	begin = (uintptr_t)kdsm_region_address(region);
	end = begin + kdsm_region_size(region);
	if (!ko_rank && !strict_heap) {
		ret = kdsm_allocate(made, 4096, 4096, &word);
		if (ret)
			ko_fatal("no memory: %s", kdsm_error(ret));
		ko_shared->fence = (uintptr_t)word - begin;
	}
	heap = made;
	kdsm_job_barrier(ko_job);
}

/* ---- what the program and its libraries call ---- */

KO_PUBLIC void *malloc(size_t size)
{
	return heap ? kdsm_malloc(heap, size) : __libc_malloc(size);
}

KO_PUBLIC void *calloc(size_t count, size_t size)
{
	return heap ? kdsm_calloc(heap, count, size) : __libc_calloc(count, size);
}

KO_PUBLIC void free(void *memory)
{
	int error = errno;

	__wrap_free(memory);
	errno = error;
}

/* An object that was allocated before members shared memory moves to the heap. */
static void *move(void *memory, size_t size)
{
	void *own = kdsm_malloc(heap, size);
	size_t former = libc_size(memory);

	if (own) {
		memcpy(own, memory, former < size ? former : size);
		__libc_free(memory);
	}
	return own;
}

KO_PUBLIC void *realloc(void *memory, size_t size)
{
	if (!heap)
		return __libc_realloc(memory, size);
	if (memory && !size) {
		free(memory);
		return NULL;
	}
	return memory && !is_shared(memory) ? move(memory, size) :
					      kdsm_realloc(heap, memory, size);
}

KO_PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
	return ko_shared_alloc(alignment, size);
}

KO_PUBLIC void *memalign(size_t alignment, size_t size)
{
	return ko_shared_alloc(alignment, size);
}

KO_PUBLIC int posix_memalign(void **memory, size_t alignment, size_t size)
{
	int error = errno;

	if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1))
		return EINVAL;
	*memory = ko_shared_alloc(alignment, size);
	errno = error;
	return *memory ? 0 : ENOMEM;
}

KO_PUBLIC void *valloc(size_t size)
{
	return ko_shared_alloc(4096, size);
}

KO_PUBLIC void *pvalloc(size_t size)
{
	return ko_shared_alloc(4096, (size + 4095) & ~(size_t)4095);
}

KO_PUBLIC size_t malloc_usable_size(void *memory)
{
	if (!memory)
		return 0;
	return is_shared(memory) ? kdsm_usable_size(heap, memory) : libc_size(memory);
}
