// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tell whether a larger operation cache would save steps. One key in KD_GHOST_SAMPLE is a sample. A
 * sample that the cache does not have leaves a tag. When the cache does not have it again, its tag
 * tells that the result was there, and was lost to another one. The tags have room for the samples
 * of a cache that is LARGER times as large: they are the ghost entries of N. Megiddo, D. Modha,
 * "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003.
 */
#include <stdlib.h>

#include "bdd/bdd.h"

#define LARGER	8
#define GAIN	8		/* a larger cache pays if it avoids 1 in GAIN misses */
#define LEAST	100		/* misses of samples that tell something */

void kd_ghost_begin(struct kd_ghost *ghost, uint64_t entries)
{
	free(ghost->tag);
	ghost->size = entries / KD_GHOST_SAMPLE * LARGER;
	ghost->tag = calloc(ghost->size, sizeof(*ghost->tag));
	if (!ghost->tag)
		ghost->size = 0;
	ghost->misses = 0;
	ghost->again = 0;
}

void kd_ghost_miss(struct kd_ghost *ghost, uint64_t hash)
{
	uint64_t *tag;

	if (!ghost->size)
		return;
	tag = &ghost->tag[kd_reduce(hash, ghost->size)];
	__atomic_fetch_add(&ghost->misses, 1, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(tag, hash, __ATOMIC_RELAXED) == hash)
		__atomic_fetch_add(&ghost->again, 1, __ATOMIC_RELAXED);
}

bool kd_ghost_tell(struct kd_ghost *ghost)
{
	uint64_t misses = __atomic_exchange_n(&ghost->misses, 0, __ATOMIC_RELAXED);
	uint64_t again = __atomic_exchange_n(&ghost->again, 0, __ATOMIC_RELAXED);

	return misses >= LEAST && again >= misses / GAIN;
}

void kd_ghost_end(struct kd_ghost *ghost)
{
	free(ghost->tag);
	ghost->tag = NULL;
	ghost->size = 0;
}
