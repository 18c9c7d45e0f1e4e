// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Coherent regions: opening one together with its partitioned companion, release and
 * acquire, hints, and data races. The coherence protocol itself is in kmod/coherence.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <kdsm/coherent.h>
#include "core/core.h"

#define SUFFIX ".sync"

/* Open the partitioned companion of a coherent region. */
static int open_sync(struct kdsm *kdsm, const char *name,
		     const struct kdsm_region_attr *attr, uint64_t sync_size,
		     struct kdsm_region **sync)
{
	struct kdsm_region_attr own = { .size = sync_size };
	char full[KDSM_NAME_SIZE];

	if (snprintf(full, sizeof(full), "%s" SUFFIX, name) >= (int)sizeof(full))
		return -EINVAL;
	if (!attr)
		return kdsm_region_open(kdsm, full, NULL, sync);
	if (sync_size > UINT64_MAX / kdsm->nodes)
		return -EFBIG;
	own.size = sync_size * kdsm->nodes;
	own.mode = attr->mode;
	own.flags = attr->flags & KDSM_REGION_KEEP;
	return kdsm_region_open(kdsm, full, &own, sync);
}

int kdsm_region_open_coherent(struct kdsm *kdsm, const char *name,
			      const struct kdsm_region_attr *attr, uint64_t sync_size,
			      struct kdsm_region **region, struct kdsm_region **sync)
{
	struct kdsm_region_attr own;
	int ret;

	*region = NULL;
	*sync = NULL;
	if (attr) {
		own = *attr;
		if (!own.policy)
			own.policy = KDSM_POLICY_RELEASE;
		if (own.policy == KDSM_POLICY_PARTITIONED)
			return -EOPNOTSUPP;
	}
	ret = kdsm_region_open(kdsm, name, attr ? &own : NULL, region);
	if (ret)
		return ret;
	ret = (*region)->coherent ? open_sync(kdsm, name, attr, sync_size, sync) :
				    -EOPNOTSUPP;
	if (ret) {
		kdsm_region_close(*region);
		*region = NULL;
	}
	return ret;
}

int kdsm_release(struct kdsm_region *region, struct kdsm_signature *signature)
{
	if (!region->coherent)
		return -EOPNOTSUPP;
	return region->backend->release(region, signature);
}

int kdsm_acquire(struct kdsm_region *region, const struct kdsm_signature *signature)
{
	if (!region->coherent)
		return -EOPNOTSUPP;
	if (!signature || signature->count > KDSM_NOTICES_MAX || signature->reserved)
		return -EINVAL;
	return region->backend->acquire(region, signature);
}

/* ---- hints ---- */

static int advise(struct kdsm_region *region, enum kdsm_advice advice, uint64_t offset,
		  uint64_t length)
{
	if (!region->coherent)
		return -EOPNOTSUPP;
	if (offset > region->size || length > region->size - offset)
		return -ERANGE;
	return length ? region->backend->advise(region, advice, offset, length) : 0;
}

int kdsm_prefetch(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	return advise(region, KDSM_ADVICE_PREFETCH, offset, length);
}

int kdsm_flush(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	return advise(region, KDSM_ADVICE_FLUSH, offset, length);
}

int kdsm_pin(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	return advise(region, KDSM_ADVICE_OWN, offset, length);
}

/* ---- data races ---- */

int kdsm_races(struct kdsm_region *region, struct kdsm_race *races, unsigned int count,
	       uint64_t *next, uint64_t *lost)
{
	struct kdsm_races arg = {
		.argsz = sizeof(arg),
		.races = (uintptr_t)races,
		.count = count,
		.next = *next,
	};
	int ret;

	if (!region->coherent)
		return -EOPNOTSUPP;
	ret = region->backend->races(region, &arg);
	if (ret)
		return ret;
	*next = arg.next;
	if (lost)
		*lost = arg.lost;
	return arg.count;
}
