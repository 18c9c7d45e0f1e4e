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
	int ret = kdsm_name_check(name);

	if (ret)
		return ret;
	memset(arg, 0, sizeof(*arg));
	arg->argsz = sizeof(*arg);
	memcpy(arg->name, name, strlen(name));
	if (!attr)
		return 0;
	if (attr->flags & ~(KDSM_REGION_EXCL | KDSM_REGION_KEEP | KDSM_REGION_CONTIGUOUS))
		return -EINVAL;
	arg->flags = attr->flags | KDSM_REGION_CREATE;
	arg->size = attr->size;
	arg->block_size = attr->block_size;
	if (attr->segment_count > KDSM_MAX_SEGMENTS)
		return -EINVAL;
	arg->segments = attr->segment_count;
	if (arg->segments)
		memcpy(arg->segment, attr->segments, arg->segments * sizeof(arg->segment[0]));
	arg->policy = attr->policy ? attr->policy : KDSM_POLICY_PARTITIONED;
	arg->mode = attr->mode;
	return 0;
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

int kdsm_region_open(struct kdsm *kdsm, const char *name,
		     const struct kdsm_region_attr *attr, struct kdsm_region **out)
{
	static uint64_t serial;
	struct kdsm_region_open arg;
	struct kdsm_region *region;
	int ret;

	*out = NULL;
	ret = region_arg(&arg, name, attr);
	if (ret)
		return ret;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	region->kdsm = kdsm;
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
	return ret;
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
	int ret = kdsm_name_check(name);

	if (ret)
		return ret;
	kd_mutex_lock(&kdsm->lock);
	ret = kdsm->backend->destroy(kdsm, name);
	kd_mutex_unlock(&kdsm->lock);
	return ret;
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
