// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The variables of the program: its sections .data and .bss become a region of policy strict, at
 * the addresses that the linker and the loader gave them. Pages that the loader has made read-only
 * (RELRO) are the same in all members, and stay private. So do the variables of libraries.
 */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"
#include "span.h"

#define PAGE	UINT64_C(4096)

struct range {
	uint64_t begin, end;
};

/* The first object is the program. */
static int find(struct dl_phdr_info *info, size_t size, void *data)
{
	struct range *range = data;
	uint64_t relro = 0;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uint64_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;

		if (part->p_type == PT_GNU_RELRO)
			relro = end & ~(PAGE - 1);
		if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
			continue;
		range->begin = begin & ~(PAGE - 1);
		range->end = (end + PAGE - 1) & ~(PAGE - 1);
	}
	if (relro > range->begin)
		range->begin = relro;
	return 1;
}

void ko_image_share(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .policy = KDSM_POLICY_STRICT };
	struct kdsm_region *region;
	char name[KDSM_NAME_SIZE];
	struct range range = { 0 };
	uint64_t length;
	void *copy;
	int ret;

	dl_iterate_phdr(find, &range);
	length = range.end - range.begin;
	if (!length)
		return;
	attr.size = length;
	attr.address = range.begin;
	snprintf(name, sizeof(name), "%s.data", kdsm_job_name(ko_job));
	copy = malloc(length);
	if (!copy)
		ko_fatal("no memory for %llu bytes of variables", (unsigned long long)length);
	memcpy(copy, (void *)range.begin, length);
	ret = kd_region_open_over(kdsm_job_cluster(ko_job), name, &attr, length, &region);
	if (ret)
		ko_fatal("cannot share the variables of the program: %s", kdsm_error(ret));
	if (!ko_rank)
		memcpy((void *)range.begin, copy, length);
	kdsm_job_barrier(ko_job);
	free(copy);
}
