// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Regions: opening by name, mapping, closing. If a struct kdsm already has a region open,
 * kdsm_region_open() returns the same object again, because a program can map the region's
 * address only once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

static int region_arg(struct kdsm_region_open *arg, const char *name,
		      const struct kdsm_region_attr *attr)
{
	struct kdsm_region_attr own;
	int ret = kdsm_name_check("region", name);

	if (ret)
		return ret;
	memset(arg, 0, sizeof(*arg));
	arg->argsz = sizeof(*arg);
	memcpy(arg->name, name, strlen(name));
	if (!attr)
		return 0;
	ret = KD_ARGUMENT_IN(kdsm_region_attr, &own, attr);
	if (ret)
		return ret;
	if (own.flags & ~(KDSM_REGION_EXCL | KDSM_REGION_KEEP | KDSM_REGION_CONTIGUOUS))
		return kd_because(-EINVAL, "region \"%s\": flags 0x%x have unknown bits",
				  name, own.flags);
	arg->flags = own.flags | KDSM_REGION_CREATE;
	arg->size = own.size;
	arg->block_size = own.block_size;
	if (own.segment_count > KDSM_MAX_SEGMENTS)
		return kd_because(-EINVAL, "region \"%s\": %u segments are more than %d",
				  name, own.segment_count, KDSM_MAX_SEGMENTS);
	arg->segments = own.segment_count;
	if (arg->segments)
		memcpy(arg->segment, own.segments, arg->segments * sizeof(arg->segment[0]));
	arg->policy = own.policy ? own.policy : KDSM_POLICY_PARTITIONED;
	arg->mode = own.mode;
	if (own.address) {
		arg->flags |= KDSM_REGION_AT;
		arg->base = own.address;
	}
	return 0;
}

/*
 * Why the backend refuses these arguments with -EINVAL, in the order of its checks. If none of
 * them is wrong by itself, the region exists, and differs.
 */
static int explain_invalid(const struct kdsm_region_open *arg)
{
	const char *name = arg->name;
	uint32_t block = arg->block_size;
	struct kdsm_region_open copy;

	if (!arg->size)
		return kd_because(-EINVAL, "region \"%s\": size is 0", name);
	if (arg->policy > KDSM_POLICY_STRICT)
		return kd_because(-EINVAL, "region \"%s\": there is no policy %u",
				  name, arg->policy);
	if (arg->mode > 0777)
		return kd_because(-EINVAL, "region \"%s\": mode 0%o is above 0777",
				  name, arg->mode);
	if (block && (block < 4096 || block > 2 << 20 || block & (block - 1)))
		return kd_because(-EINVAL,
				  "region \"%s\": block_size %u is not a power of two from 4096 to 2097152",
				  name, block);
	if (arg->policy == KDSM_POLICY_PARTITIONED &&
	    (arg->segments > 1 || arg->flags & KDSM_REGION_CONTIGUOUS))
		return kd_because(-EINVAL,
				  "region \"%s\": only a coherent region has segments and KDSM_REGION_CONTIGUOUS",
				  name);
	if (arg->flags & KDSM_REGION_AT && !kd_base_allowed(arg))
		return kd_because(-EINVAL,
				  "region \"%s\": address %#llx is not that of a page outside of %#llx to %#llx",
				  name, arg->base, KDSM_ARENA_START, KDSM_ARENA_END);
	copy = *arg;
	if (arg->segments && kdsm_segments_check(&copy))
		return kd_because(-EINVAL,
				  "region \"%s\": the segments do not begin at 0, do not ascend in steps of 2 MiB within the region, or have invalid block sizes",
				  name);
	return kd_because(-EINVAL,
			  "region \"%s\" exists with another size, block size, segments, policy, address or KDSM_REGION_CONTIGUOUS",
			  name);
}

/* Give the reason of an error of the backend. arg is as it was passed to the backend. */
static int explain(int error, const struct kdsm_region_open *arg)
{
	switch (error) {
	case 0:
		return 0;
	case -EINVAL:
		return explain_invalid(arg);
	case -ENOENT:
		return kd_because(error, "there is no region \"%s\"", arg->name);
	case -EEXIST:
		return kd_because(error, "region \"%s\" exists", arg->name);
	case -EACCES:
		return kd_because(error,
				  "the owner, group and mode of region \"%s\" do not permit this process to open it",
				  arg->name);
	case -EADDRINUSE:
		return kd_because(error,
				  "region \"%s\": this process uses the address of the region for another mapping",
				  arg->name);
	case -EFBIG:
	case -ENOMEM:
	case -ENOSPC:
	case -EDQUOT:
		if (arg->flags & KDSM_REGION_CREATE)
			return kd_because(error, "region \"%s\": no room for %llu bytes: %s",
					  arg->name, arg->size, kdsm_strerror(error));
		break;
	}
	return kd_because(error, "region \"%s\": %s", arg->name, kdsm_strerror(error));
}

/* Caller holds kdsm->lock. An id is not reused while its region is bound. */
static struct kdsm_region *region_find(struct kdsm *kdsm, uint32_t id, bool writable)
{
	struct kdsm_region *region;

	for (region = kdsm->regions; region; region = region->next)
		if (region->id == id && region->writable == writable)
			return region;
	return NULL;
}

static int region_bind(struct kdsm *kdsm, struct kdsm_region_open *arg,
		       struct kdsm_region *region, struct kdsm_region **out)
{
	int ret;

	ret = kdsm->backend->bind(kdsm, arg, region);
	if (ret)
		return ret;
	region->id = arg->id;
	/* Backends without nodes that come and go return none */
	region->parts = arg->nodes ? arg->nodes : kdsm->nodes;
	region->nodes = region->parts < kdsm->nodes ? region->parts : kdsm->nodes;
	/* A module that is too old to know segments returns none */
	kdsm_segments_complete(arg);
	region->segment_count = arg->segments;
	memcpy(region->segments, arg->segment, sizeof(region->segments));
	region->coherent = arg->policy > KDSM_POLICY_PARTITIONED;
	region->strict = arg->policy == KDSM_POLICY_STRICT;
	if (region->coherent) {
		region->size = arg->part_size;
	} else {
		region->part_size = arg->part_size;
		region->size = arg->part_size * region->parts;
	}
	*out = region_find(kdsm, arg->id, region->writable);
	if (*out) {
		(*out)->refs++;
		kdsm->backend->unbind(region);
		return 0;
	}
	ret = kdsm->backend->map(region);
	if (ret) {
		kdsm->backend->unbind(region);
		return ret;
	}
	region->refs = 1;
	region->next = kdsm->regions;
	kdsm->regions = region;
	*out = region;
	return 0;
}

int kd_region_open_over(struct kdsm *kdsm, const char *name, const struct kdsm_region_attr *attr,
			uint64_t window, struct kdsm_region **out)
{
	static uint64_t serial;
	struct kdsm_region_open arg, asked;
	struct kdsm_region *region;
	int ret;

	*out = NULL;
	ret = region_arg(&arg, name, attr);
	if (ret)
		return ret;
	asked = arg;
	region = calloc(1, sizeof(*region));
	if (!region)
		return kd_no_reason(-ENOMEM);
	memcpy(region->name, arg.name, sizeof(region->name));
	region->kdsm = kdsm;
	region->window = window;
	region->backend = kdsm->backend;
	region->node = kdsm->node;
	region->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
	region->cpu_atomics = kdsm->domain != KDSM_DOMAIN_HCA;

	/* Held throughout, so that two threads do not both map the same region. */
	kd_mutex_lock(&kdsm->lock);
	ret = region_bind(kdsm, &arg, region, out);
	kd_mutex_unlock(&kdsm->lock);
	if (*out != region)
		free(region);
	return explain(ret, &asked);
}

int kdsm_region_open(struct kdsm *kdsm, const char *name,
		     const struct kdsm_region_attr *attr, struct kdsm_region **out)
{
	return kd_region_open_over(kdsm, name, attr, 0, out);
}

void kdsm_region_close(struct kdsm_region *region)
{
	struct kdsm_region **link;
	struct kdsm *kdsm;

	if (!region)
		return;
	kdsm = region->kdsm;
	kd_mutex_lock(&kdsm->lock);
	if (--region->refs) {
		kd_mutex_unlock(&kdsm->lock);
		return;
	}
	for (link = &kdsm->regions; *link != region; link = &(*link)->next)
		;
	*link = region->next;
	kdsm->backend->unbind(region);
	kd_mutex_unlock(&kdsm->lock);
	free(region);
}

int kdsm_region_destroy(struct kdsm *kdsm, const char *name)
{
	int ret = kdsm_name_check("region", name);

	if (ret)
		return ret;
	kd_mutex_lock(&kdsm->lock);
	ret = kdsm->backend->destroy(kdsm, name);
	kd_mutex_unlock(&kdsm->lock);
	if (ret == -ENOENT)
		return kd_because(ret, "there is no region \"%s\"", name);
	return ret ? kd_because(ret, "region \"%s\": %s", name, kdsm_strerror(ret)) : 0;
}

uint64_t kdsm_region_size(const struct kdsm_region *region)
{
	return region->size;
}

uint32_t kdsm_region_block_size(const struct kdsm_region *region)
{
	return region->segments[0].block_size;
}

uint32_t kdsm_region_block_size_at(const struct kdsm_region *region, uint64_t offset)
{
	uint32_t i = region->segment_count - 1;

	if (offset >= region->size)
		return 0;
	while (offset < region->segments[i].offset)
		i--;
	return region->segments[i].block_size;
}

void *kdsm_region_address(const struct kdsm_region *region)
{
	return region->base;
}

uint64_t kdsm_region_part_size(const struct kdsm_region *region)
{
	return region->part_size;
}

void *kdsm_region_part(const struct kdsm_region *region)
{
	return region->part;
}

struct kdsm *kdsm_region_cluster(const struct kdsm_region *region)
{
	return region->kdsm;
}
