// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Structs of callers that were compiled with another version of the headers. Such a struct
 * begins with its size, and later versions have more fields at its end.
 */
#include <errno.h>
#include <string.h>
#include "core/core.h"

/* Largest struct of any version, in bytes. A larger size is no size. */
#define MOST	4096

static int check(const char *type, size_t argsz)
{
	if (argsz >= sizeof(size_t) && argsz <= MOST)
		return 0;
	return kd_because(argsz > MOST ? -E2BIG : -EINVAL,
			  "%s: argsz is %zu; set it to sizeof(%s)", type, argsz, type);
}

int kd_argument_in(const char *type, void *own, size_t size, const void *argument)
{
	const size_t head = sizeof(size_t);
	const unsigned char *from = argument;
	size_t argsz, i;
	int ret;

	memset(own, 0, size);
	memcpy(own, &size, sizeof(size));
	memcpy(&argsz, from, sizeof(argsz));
	ret = check(type, argsz);
	if (ret)
		return ret;
	memcpy((unsigned char *)own + head, from + head, (argsz < size ? argsz : size) - head);
	for (i = size; i < argsz; i++)
		if (from[i])
			return kd_because(-E2BIG,
					  "%s: byte %zu is not 0, but this version of libkdsm knows %zu bytes",
					  type, i, size);
	return 0;
}

int kd_argument_out(const char *type, const void *own, size_t size, void *argument)
{
	const size_t head = sizeof(size_t);
	unsigned char *to = argument;
	size_t argsz, some;
	int ret;

	memcpy(&argsz, to, sizeof(argsz));
	ret = check(type, argsz);
	if (ret)
		return ret;
	some = argsz < size ? argsz : size;
	memcpy(to + head, (const unsigned char *)own + head, some - head);
	memset(to + some, 0, argsz - some);
	return 0;
}

/* ---- places and objects ---- */

int kd_not_in_part(const struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	if (region->coherent)
		return kd_not_partitioned(region);
	return kd_because(-ERANGE,
			  "region \"%s\": %" PRIu64 " bytes at offset %" PRIu64
			  " are not inside a part, which has %" PRIu64 " bytes",
			  region->name, length, offset, region->part_size);
}

int kd_misaligned(uint64_t offset, unsigned int unit)
{
	return kd_because(-EINVAL, "offset %" PRIu64 " is not a multiple of %u", offset, unit);
}

int kd_no_node(const struct kdsm *kdsm, unsigned int node)
{
	/* The field of an operation holds no larger number. */
	if (node >= UINT16_MAX)
		return kd_because(-EINVAL, "there is no such node: the cluster has nodes 0 to %u",
				  kdsm->nodes - 1);
	return kd_because(-EINVAL, "there is no node %u: the cluster has nodes 0 to %u",
			  node, kdsm->nodes - 1);
}

int kd_no_part(const struct kdsm_region *region, unsigned int node)
{
	if (node >= region->kdsm->nodes)
		return kd_no_node(region->kdsm, node);
	return kd_because(-EINVAL, "region \"%s\" has no part on node %u: it is older than that node",
			  region->name, node);
}

int kd_read_only(const struct kdsm_region *region)
{
	return kd_because(-EACCES, "region \"%s\" is open for reading only", region->name);
}

int kd_not_partitioned(const struct kdsm_region *region)
{
	return kd_because(-EOPNOTSUPP,
			  "region \"%s\" is coherent; the call needs a partitioned one",
			  region->name);
}

int kd_not_coherent(const struct kdsm_region *region)
{
	return kd_because(-EOPNOTSUPP,
			  "region \"%s\" is partitioned; the call needs a coherent one",
			  region->name);
}

int kd_pair_check(const struct kdsm_region *region, const struct kdsm_region *sync)
{
	if (region->kdsm == sync->kdsm)
		return 0;
	return kd_because(-EINVAL, "regions \"%s\" and \"%s\" were opened by different struct kdsm",
			  region->name, sync->name);
}
