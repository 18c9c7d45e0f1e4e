/* SPDX-License-Identifier: GPL-2.0 */
/* Policy release: what read misses and read-ahead share. */
#ifndef KDSM_ACCESS_H
#define KDSM_ACCESS_H

#include "coherence/coherence.h"
#include "fetch.h"

/* With the block's lock: is it known who has content that is new enough? */
bool kdsm_block_writer_known(struct kdsm_coherence *coherence,
			     const struct kdsm_block *block);
/* With the block's lock: content that is good until then is of use, and no older one. */
u64 kdsm_block_need(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/*
 * With the block's lock, and the block busy: content with these timestamps is in the
 * frame. True: it is good, and the block valid. False: more was asked for meanwhile.
 */
bool kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			u64 wts, u64 rts);

/* ---- ahead.c ---- */

/* Blocks that come along with a miss; each is busy. */
struct kdsm_ahead {
	struct kdsm_stream *stream;
	unsigned int stamps;		/* to be read, from that of the missed block on */
	unsigned int count;
	struct kdsm_ahead_block {
		struct kdsm_block *block;
		bool known;		/* from: the writer, not the owner */
		unsigned int from;
		u64 wts;		/* of the content there; 0: its stamp has to tell */
	} list[];
};

/*
 * A miss of that block, which the caller has made busy and whose lock it does not
 * hold: NULL or what may come along, to be ended in any case. If owner is not
 * KDSM_NOBODY the caller is about to read stamps there.
 */
struct kdsm_ahead *kdsm_ahead_begin(struct kdsm_coherence *coherence,
				    const struct kdsm_block *block, unsigned int owner);
/* The writers are known: to be fetched with the missed block. */
void kdsm_ahead_add(struct kdsm_fetch *fetch, const struct kdsm_ahead *ahead);
/*
 * The stamps are here, from that of the missed block on: fetch what is new enough.
 * False: it is not known what is here.
 */
bool kdsm_ahead_fetch(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead,
		      const struct kdsm_block *block, const struct kdsm_stamp *stamps);
/* is_here: all of it was brought. Blocks that are valid then are mapped. */
void kdsm_ahead_end(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead, bool is_here,
		    kdsm_map_t map, void *arg);

#endif /* KDSM_ACCESS_H */
