// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory of a job. All members allocate alike, so each computes the same places by itself.
 * Rounds of collective.c compare what members have allocated.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "internal.h"

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

/*
 * Take bytes, rounded up, behind *used. Returns 0 and the former *used in *offset, or an error
 * after the program was told.
 */
static int take(struct kdsm_job *job, const char *what, uint64_t bytes, uint64_t to,
		uint64_t end, uint64_t *used, uint64_t *offset)
{
	int ret = kd_job_check(job);

	*offset = 0;
	if (ret)
		return ret;
	if (bytes && bytes <= end - *used) {
		*offset = *used;
		*used = round_up(*used + bytes, to) < end ? round_up(*used + bytes, to) : end;
		return 0;
	}
	if (!bytes)
		ret = kd_because(-EINVAL, "job %s: 0 bytes of %s are nothing to allocate",
				 job->name, what);
	else
		ret = kd_because(-ENOMEM, "job %s: no room for %" PRIu64 " bytes of %s, of which %"
				 PRIu64 " are left", job->name, bytes, what, end - *used);
	return job->handler ? ret : kd_job_failed(job, ret, "%s", kdsm_error(ret));
}

void *kdsm_job_alloc(struct kdsm_job *job, uint64_t bytes)
{
	uint64_t offset;
	int ret = take(job, "memory (KDSM_MEMORY)", bytes, kdsm_region_block_size(job->region),
		       job->memory, &job->used, &offset);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return (char *)kdsm_region_address(job->region) + offset;
}

int kdsm_job_alloc_sync(struct kdsm_job *job, uint64_t bytes, uint64_t *offset)
{
	return take(job, "memory for synchronisation", bytes, 64, job->sync_end, &job->sync_used,
		    offset);
}

int kdsm_job_spread(struct kdsm_job *job, uint64_t count, uint64_t size,
		    struct kdsm_spread *spread)
{
	uint64_t most = count / job->size + (count % job->size != 0);

	memset(spread, 0, sizeof(*spread));
	spread->count = count;
	spread->size = size;
	spread->members = job->size;
	/* A size that overflows is larger than the memory. */
	if (size && most > job->memory / size)
		spread->stride = UINT64_MAX / 2 / job->size;
	else
		spread->stride = round_up(most * size, kdsm_region_block_size(job->region));
	spread->base = kdsm_job_alloc(job, spread->stride * job->size);
	return spread->base ? 0 : -errno;
}
