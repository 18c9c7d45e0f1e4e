// SPDX-License-Identifier: LGPL-2.1-or-later
/* Members of a program: the job, the region of policy strict, stacks, and rounds. */
#include <link.h>
#include <stdio.h>
#include <kdsm/heap.h>
#include "span.h"

#define STACK_SIZE	(UINT64_C(1) << 20)	/* default of a stack's size, in bytes */
#define PAGE		UINT64_C(4096)

unsigned int ko_members = 1, ko_rank;
struct ko_shared *ko_shared;
struct kdsm_job *ko_job;

static struct kdsm_region *strict;
static uint64_t stack_size;

/* ---- rounds ---- */

enum ko_round ko_round(enum ko_round own)
{
	uint64_t word = own;

	/* An error ends the program, with a message of the library. */
	kdsm_job_allreduce(ko_job, KDSM_JOB_UINT64, KDSM_JOB_MAX, &word, 1);
	return word;
}

void ko_fence(void)
{
	int ret;

	if (ko_members == 1) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return;
	}
	ret = kdsm_atomic_add(kdsm_job_region(ko_job), ko_shared->fence, 8,
			      KDSM_ATOMIC_RELEASE | KDSM_ATOMIC_ACQUIRE, 1, NULL);
	if (ret)
		ko_fatal("cannot order accesses to memory: %s", kdsm_error(ret));
}

/* ---- shared memory ---- */

static uint64_t stacks_at(void)
{
	return (sizeof(struct ko_shared) + PAGE - 1) & ~(PAGE - 1);
}

void *ko_stack(unsigned int rank, unsigned int index, size_t *size)
{
	if (ko_members == 1 || index >= KO_STACKS)
		return NULL;
	*size = stack_size;
	return (char *)ko_shared + stacks_at() + (rank * KO_STACKS + index) * stack_size;
}

/* Add the size of the thread-local storage of a library or of the program, in bytes */
static int add_local(struct dl_phdr_info *file, size_t size, void *sum)
{
	unsigned int i;

	(void)size;
	for (i = 0; i < file->dlpi_phnum; i++)
		if (file->dlpi_phdr[i].p_type == PT_TLS)
			*(uint64_t *)sum += file->dlpi_phdr[i].p_memsz + file->dlpi_phdr[i].p_align;
	return 0;
}

static void open_strict(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .policy = KDSM_POLICY_STRICT };
	char name[KDSM_NAME_SIZE];
	int ret;

	stack_size = ko_settings.stack ? ko_settings.stack : STACK_SIZE;
	/* Variables that are threadprivate take their place on each stack. */
	dl_iterate_phdr(add_local, &stack_size);
	stack_size = (stack_size + PAGE - 1) & ~(PAGE - 1);
	attr.size = stacks_at() + ko_members * KO_STACKS * stack_size;
	snprintf(name, sizeof(name), "%s.omp", kdsm_job_name(ko_job));
	ret = kdsm_region_open(kdsm_job_cluster(ko_job), name, &attr, &strict);
	if (ret)
		ko_fatal("no memory for stacks: %s", kdsm_error(ret));
	ko_shared = kdsm_region_address(strict);
	ko_locks = &ko_shared->locks;
}

void ko_span_join(uint64_t memory)
{
	struct kdsm_job_attr attr = {
		.argsz = sizeof(attr),
		.memory = memory,
		/* All members may be on one node. */
		.sync = kdsm_heap_sync_size(memory, 0, 1),
	};

	kdsm_job_join(&attr, &ko_job);
	ko_rank = kdsm_job_rank(ko_job);
	open_strict();
	if (!ko_rank)
		ko_shared->threads = ko_settings.nested[0] ? ko_settings.nested[0] :
							     ko_settings.icv.threads * ko_members;
}
