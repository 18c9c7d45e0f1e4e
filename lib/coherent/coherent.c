// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Coherent regions: opening one together with its partitioned companion, homes, release and
 * acquire, hints, atomic operations, data races, and lost blocks. The coherence protocol itself is
 * in kmod/coherence.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <kdsm/coherent.h>
#include "core/core.h"

#define SUFFIX ".sync"

/* Open the partitioned companion of a coherent region. */
static int open_sync(const struct kdsm_region *region, const char *name,
		     const struct kdsm_region_attr *attr, uint64_t sync_size,
		     struct kdsm_region **sync)
{
	struct kdsm_region_attr own = { .argsz = sizeof(own) };
	struct kdsm *kdsm = region->kdsm;
	char full[KDSM_NAME_SIZE];

	if (snprintf(full, sizeof(full), "%s" SUFFIX, name) >= (int)sizeof(full))
		return kd_because(-EINVAL,
				  "region \"%.16s...\": the name with \"" SUFFIX "\" has more than %d characters",
				  name, KDSM_NAME_SIZE - 1);
	if (!attr)
		return kdsm_region_open(kdsm, full, NULL, sync);
	if (sync_size > UINT64_MAX / region->parts)
		return kd_because(-EFBIG,
				  "region \"%s\": %" PRIu64 " bytes on each of %u nodes are more than 2^64",
				  full, sync_size, region->parts);
	own.size = sync_size * region->parts;
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
		ret = KD_ARGUMENT_IN(kdsm_region_attr, &own, attr);
		if (ret)
			return ret;
		if (!own.policy)
			own.policy = KDSM_POLICY_RELEASE;
		if (own.policy == KDSM_POLICY_PARTITIONED)
			return kd_because(-EOPNOTSUPP,
					  "region \"%s\": policy partitioned is not coherent",
					  name);
	}
	ret = kdsm_region_open(kdsm, name, attr ? &own : NULL, region);
	if (ret)
		return ret;
	ret = (*region)->coherent ? open_sync(*region, name, attr ? &own : NULL, sync_size, sync) :
				    kd_not_coherent(*region);
	if (ret) {
		kdsm_region_close(*region);
		*region = NULL;
	}
	return ret;
}

static int not_inside(const struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	return kd_because(-ERANGE,
			  "region \"%s\": %" PRIu64 " bytes at offset %" PRIu64
			  " are not inside its %" PRIu64 " bytes",
			  region->name, length, offset, region->size);
}

int kdsm_region_home(struct kdsm_region *region, uint64_t offset)
{
	if (!region->coherent)
		return kd_not_coherent(region);
	if (offset >= region->size)
		return not_inside(region, offset, 1);
	return region->backend->home ? region->backend->home(region, offset) : 0;
}

int kdsm_release(struct kdsm_region *region, struct kdsm_signature *signature)
{
	if (!region->coherent)
		return kd_not_coherent(region);
	return region->backend->release(region, signature);
}

int kdsm_acquire(struct kdsm_region *region, const struct kdsm_signature *signature)
{
	if (!region->coherent)
		return kd_not_coherent(region);
	if (!signature || signature->count > KDSM_NOTICES_MAX || signature->reserved)
		return kd_because(-EINVAL, "kdsm_acquire: the signature is %s",
				  signature ? "malformed" : "NULL");
	return region->backend->acquire(region, signature);
}

/* ---- hints ---- */

/* Whether the region is coherent and has the range */
static int check_range(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	if (!region->coherent)
		return kd_not_coherent(region);
	if (offset > region->size || length > region->size - offset)
		return not_inside(region, offset, length);
	return 0;
}

static int advise(struct kdsm_region *region, enum kdsm_advice advice, uint64_t offset,
		  uint64_t length)
{
	int ret = check_range(region, offset, length);

	return ret || !length ? ret : region->backend->advise(region, advice, offset, length);
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

int kdsm_refresh(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	return advise(region, KDSM_ADVICE_REFRESH, offset, length);
}

/* ---- atomic operations ---- */

/*
 * Perform the operation by the CPU, on the aligned 8 bytes that contain the word. Other threads
 * may change all of the 8 bytes concurrently.
 */
static void own_atomic(struct kdsm_region *region, struct kdsm_atomic *arg)
{
	uint64_t *bytes = (uint64_t *)(region->base + (arg->offset & ~7ULL)), now, word;
	uint64_t mask = arg->size == 8 ? UINT64_MAX : UINT32_MAX;
	unsigned int shift = arg->offset % 8 * 8;

	now = __atomic_load_n(bytes, __ATOMIC_SEQ_CST);
	do {
		arg->result = now >> shift & mask;
		word = arg->operand;
		if (arg->opcode == KDSM_ATOMIC_ADD)
			word += arg->result;
		if (arg->opcode == KDSM_ATOMIC_LOAD ||
		    (arg->opcode == KDSM_ATOMIC_CAS && (arg->result ^ arg->compare) & mask))
			return;
	} while (!__atomic_compare_exchange_n(bytes, &now,
					      (now & ~(mask << shift)) | (word & mask) << shift,
					      false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

static int atomic(struct kdsm_region *region, struct kdsm_atomic arg, uint64_t *former)
{
	int ret = 0;

	if (!region->coherent)
		return kd_not_coherent(region);
	if (arg.size != 4 && arg.size != 8)
		return kd_because(-EINVAL,
				  "an atomic operation on %u bytes is neither on 4 nor on 8",
				  arg.size);
	if (arg.offset % arg.size)
		return kd_misaligned(arg.offset, arg.size);
	if (arg.flags & ~(KDSM_ATOMIC_ACQUIRE | KDSM_ATOMIC_RELEASE))
		return kd_because(-EINVAL, "order 0x%x has unknown bits", arg.flags);
	if (arg.offset >= region->size)
		return not_inside(region, arg.offset, arg.size);
	if (!region->writable)
		return kd_read_only(region);
	arg.argsz = sizeof(arg);
	if (region->backend->atomic && !region->strict)
		ret = region->backend->atomic(region, &arg);
	else
		own_atomic(region, &arg);
	if (!ret && former)
		*former = arg.result;
	return ret;
}

int kdsm_atomic_load(struct kdsm_region *region, uint64_t offset, unsigned int size,
		     unsigned int order, uint64_t *value)
{
	return atomic(region, (struct kdsm_atomic){
		.flags = order, .offset = offset, .opcode = KDSM_ATOMIC_LOAD,
		.size = size,
	}, value);
}

int kdsm_atomic_exchange(struct kdsm_region *region, uint64_t offset, unsigned int size,
			 unsigned int order, uint64_t value, uint64_t *former)
{
	return atomic(region, (struct kdsm_atomic){
		.flags = order, .offset = offset, .opcode = KDSM_ATOMIC_EXCHANGE,
		.size = size, .operand = value,
	}, former);
}

int kdsm_atomic_add(struct kdsm_region *region, uint64_t offset, unsigned int size,
		    unsigned int order, uint64_t add, uint64_t *former)
{
	return atomic(region, (struct kdsm_atomic){
		.flags = order, .offset = offset, .opcode = KDSM_ATOMIC_ADD,
		.size = size, .operand = add,
	}, former);
}

int kdsm_atomic_cas(struct kdsm_region *region, uint64_t offset, unsigned int size,
		    unsigned int order, uint64_t expected, uint64_t desired,
		    uint64_t *former)
{
	return atomic(region, (struct kdsm_atomic){
		.flags = order, .offset = offset, .opcode = KDSM_ATOMIC_CAS,
		.size = size, .operand = desired, .compare = expected,
	}, former);
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
		return kd_not_coherent(region);
	ret = region->backend->races(region, &arg);
	if (ret)
		return ret;
	*next = arg.next;
	if (lost)
		*lost = arg.lost;
	return arg.count;
}

/* ---- lost blocks ---- */

int kdsm_region_lost(struct kdsm_region *region, uint64_t *offsets, unsigned int count,
		     uint64_t *next)
{
	struct kdsm_lost arg = {
		.argsz = sizeof(arg),
		.offsets = (uintptr_t)offsets,
		.count = count,
		.next = *next,
	};
	int ret;

	if (!region->coherent)
		return kd_not_coherent(region);
	ret = region->backend->lost(region, &arg);
	if (ret)
		return ret;
	*next = arg.next;
	return arg.count;
}

int kdsm_region_discard(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	int ret = check_range(region, offset, length);

	return ret || !length ? ret : region->backend->discard(region, offset, length);
}
