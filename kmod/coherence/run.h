/* SPDX-License-Identifier: GPL-2.0 */
/* Runs of neighbouring blocks, for releases and acquires. */
#ifndef KDSM_RUN_H
#define KDSM_RUN_H

#include "coherence/coherence.h"

/* A block that a release or an acquire sees to. */
struct kdsm_picked {
	struct kdsm_block *block;
	bool modified;		/* release: it has something to be published */
	bool writable;		/* acquire: it was, before it became invalid */
};

/* By index. */
void kdsm_picked_sort(struct kdsm_picked *picked, size_t count);
/* How many of count sorted blocks are neighbours, from the first on. */
size_t kdsm_run_length(const struct kdsm_picked *picked, size_t count);
/*
 * Take the dirty bits of the page tables of a run of n over into the modified of
 * its blocks, whose locks are not held. -ENOMEM: nothing was taken.
 */
int kdsm_run_harvest(struct kdsm_coherence *coherence, const struct kdsm_picked *run,
		     size_t n);

#endif /* KDSM_RUN_H */
