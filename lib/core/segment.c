// SPDX-License-Identifier: LGPL-2.1-or-later
/* Segments: the ranges of a coherent region that have blocks of different sizes */
#include <errno.h>
#include <string.h>
#include "core/core.h"

void kdsm_segments_complete(struct kdsm_region_open *arg)
{
	if (arg->segments)
		return;
	arg->segments = 1;
	arg->segment[0].block_size = arg->block_size ? arg->block_size : 4096;
}

int kdsm_segments_check(struct kdsm_region_open *arg)
{
	const struct kdsm_region_segment *segment = arg->segment;
	const uint64_t huge = 2UL << 20;
	uint32_t i;

	kdsm_segments_complete(arg);
	if (segment->offset || (arg->block_size && arg->block_size != segment->block_size) ||
	    (arg->segments > 1 && arg->policy == KDSM_POLICY_PARTITIONED))
		return -EINVAL;
	for (i = 0; i < arg->segments; i++, segment++)
		if (segment->reserved || segment->block_size < 4096 ||
		    segment->block_size > huge || segment->block_size & (segment->block_size - 1) ||
		    segment->offset % huge || segment->offset >= arg->size ||
		    (i && segment->offset <= segment[-1].offset))
			return -EINVAL;
	arg->block_size = arg->segment[0].block_size;
	return 0;
}

bool kdsm_segments_equal(const struct kdsm_region_open *a, const struct kdsm_region_open *b)
{
	return a->segments == b->segments &&
	       !memcmp(a->segment, b->segment, a->segments * sizeof(a->segment[0]));
}
