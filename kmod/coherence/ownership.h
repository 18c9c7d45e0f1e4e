/* SPDX-License-Identifier: GPL-2.0 */
/* Between chase.c, which asks for blocks, and ownership.c, which answers. */
#ifndef KDSM_OWNERSHIP_H
#define KDSM_OWNERSHIP_H

#include "coherence/coherence.h"

/* With the block's lock: what is said of the newest hand-over, which this node made. */
void kdsm_handover_put(const struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       struct kdsm_wire_handover *wire);
/* What is sent of a message of whole bytes that ends with this: no set of nobody. */
unsigned int kdsm_handover_cut(const struct kdsm_wire_handover *wire, unsigned int whole);
bool kdsm_handover_sane(const struct kdsm_coherence *coherence,
			const struct kdsm_wire_handover *wire);
/*
 * With the block's lock: a hand-over to this node, however it came to be known here.
 * Of one that is known already nothing is left to do. -EINVAL: it cannot be.
 */
int kdsm_handover_get(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      const struct kdsm_wire_handover *wire);
/*
 * With the block's lock, which it drops: this node is not waiting any more. Who waits
 * behind it goes on from where its link leads to.
 */
void kdsm_ownership_leave(struct kdsm_coherence *coherence, struct kdsm_block *block, int err);

#endif /* KDSM_OWNERSHIP_H */
