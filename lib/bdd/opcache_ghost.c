// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tell whether a larger operation cache would save steps. One key in KD_GHOST_SAMPLE is a sample. A
 * sample that the cache does not have leaves a tag. If the tag is still there when the cache again
 * does not have the sample, a larger cache would have had it. The tags have room for the samples
 * of a cache that is LARGER times as large: they are the ghost entries of N. Megiddo, D. Modha,
 * "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003.
 *
 * Results that two workers compute at the same time count, too, or the cache of a search with many
 * workers would grow too late.
 */
#include <stdlib.h>

#include "bdd/opcache.h"

#define LARGER	8
#define GAIN	8		/* a larger cache pays if it avoids 1 in GAIN misses */
#define LEAST	100		/* misses of samples that tell something */

struct kd_ghost {
	uint64_t misses, lost;	/* of samples; those of them that a larger cache would avoid */
	uint64_t size, tag[];
};

struct kd_ghost *kd_ghost_new(uint64_t entries)
{
	uint64_t size = entries / KD_GHOST_SAMPLE * LARGER;
	struct kd_ghost *ghost = calloc(1, sizeof(*ghost) + (size + 1) * sizeof(*ghost->tag));

	if (ghost)
		ghost->size = size + 1;
	return ghost;
}

void kd_ghost_miss(struct kd_ghost *ghost, uint64_t hash)
{
	uint64_t *tag = &ghost->tag[kd_reduce(hash, ghost->size)];

	__atomic_fetch_add(&ghost->misses, 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(tag, hash, __ATOMIC_RELAXED) == hash)
		__atomic_fetch_add(&ghost->lost, 1, __ATOMIC_RELAXED);
}

bool kd_ghost_tell(struct kd_ghost *ghost)
{
	uint64_t misses = __atomic_exchange_n(&ghost->misses, 0, __ATOMIC_RELAXED);
	uint64_t lost = __atomic_exchange_n(&ghost->lost, 0, __ATOMIC_RELAXED);

	return misses >= LEAST && lost >= misses / GAIN;
}
