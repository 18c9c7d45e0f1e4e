/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signatures: what a release hands to an acquire. A bounded list of write
 * notices, and a timestamp below which notices may be missing (Endo's
 * dissertation, 3.4.5).
 */
#ifndef KDSM_SIGNATURE_H
#define KDSM_SIGNATURE_H

#include <linux/types.h>
#include <linux/kdsm.h>

/*
 * In memory as in <linux/kdsm.h>. Notices are ordered by timestamp, the oldest
 * first. All writes that are not listed have timestamps of at most floor.
 */
void kdsm_signature_init(struct kdsm_signature *signature);
/*
 * Add a notice: blocks first..first+count-1 were written by writer, at ts. What is
 * listed already, or was written again since, is not listed: so who writes the same
 * blocks again and again takes the room of one notice. When the list is full the
 * oldest goes and raises the floor. True: it was new.
 */
bool kdsm_signature_add(struct kdsm_signature *signature,
			const struct kdsm_notice *notice);
/* Add all of other, and its floor. */
void kdsm_signature_merge(struct kdsm_signature *signature,
			  const struct kdsm_signature *other);
/* Is it one that a module made: for so many nodes and blocks? */
bool kdsm_signature_sane(const struct kdsm_signature *signature, unsigned int nodes,
			 u64 blocks);

#endif /* KDSM_SIGNATURE_H */
