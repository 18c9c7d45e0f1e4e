/* SPDX-License-Identifier: GPL-2.0 */
/* Content of several blocks at once; that of one: kdsm_block_fetch(). */
#ifndef KDSM_FETCH_H
#define KDSM_FETCH_H

#include "stamp.h"

struct kdsm_fetch {
	struct kdsm_coherence *coherence;
	struct kdsm_memory *memory;
	struct kdsm_operation *ops;
	struct kdsm_stamp *stamps;
	unsigned int count, room;
	int err;
};

/*
 * From the frames or twins of nodes, for about so many blocks. -ENOMEM: there is
 * nothing to end.
 */
int kdsm_fetch_begin(struct kdsm_fetch *fetch, struct kdsm_coherence *coherence,
		     struct kdsm_memory *memory, unsigned int blocks);
/* One block more, of that node, into bounce, or, if that is NULL, into the frame here. */
void kdsm_fetch_add(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		    unsigned int node, struct kdsm_bounce *bounce);
/*
 * Before the first block, which is of that node: its stamp, too, read before its
 * content, and those of count - 1 blocks behind it, no more than kdsm_stamps_left().
 * They are in fetch->stamps at the end, which the caller frees.
 */
void kdsm_fetch_stamps(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		       unsigned int node, unsigned int count);
/* All of it is here when it returns 0; otherwise it is not known what is. */
int kdsm_fetch_end(struct kdsm_fetch *fetch);

#endif /* KDSM_FETCH_H */
