// SPDX-License-Identifier: GPL-2.0
/*
 * Segments: ranges of a region, each with blocks of one size. Blocks are numbered through all
 * segments, so the rest of this folder identifies a block by its number. coherence.h has the
 * functions that convert numbers to offsets and back. Each segment begins at a chunk, so no chunk
 * has blocks of two sizes, and eviction needs to know no sizes.
 */
#include <linux/log2.h>

#include "internal.h"

bool kdsm_segments_sane(const struct kdsm_region_segment *segments, u32 count, u64 size)
{
	u32 i;

	if (!count || count > KDSM_MAX_SEGMENTS || segments->offset)
		return false;
	for (i = 0; i < count; i++) {
		const struct kdsm_region_segment *segment = &segments[i];

		if (segment->block_size < 4096 || segment->block_size > KDSM_CHUNK_SIZE ||
		    !is_power_of_2(segment->block_size) || segment->reserved ||
		    segment->offset % KDSM_CHUNK_SIZE || segment->offset >= size ||
		    (i && segment->offset <= segment[-1].offset))
			return false;
	}
	return true;
}

void kdsm_segments_init(struct kdsm_coherence *coherence,
			const struct kdsm_region_segment *segments, u32 count, u64 size)
{
	struct kdsm_block_segment *segment = coherence->segments;
	u64 first = 0, end;
	u32 i;

	for (i = 0; i < count; i++, segment++) {
		end = i + 1 < count ? segments[i + 1].offset : size;
		segment->offset = segments[i].offset;
		segment->first = first;
		segment->shift = ilog2(segments[i].block_size);
		first += (end - segment->offset) >> segment->shift;
	}
	segment->offset = size;
	segment->first = first;
	coherence->last_segment = segment - 1;
	coherence->blocks = first;
}
