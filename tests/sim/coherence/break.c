// SPDX-License-Identifier: GPL-2.0
/*
 * Deliberate defects in functions that protocol files call in other protocol files. The
 * linker's --wrap redirects these calls to this file, so the protocol files need no change.
 */
#include "sim.h"

int __wrap_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (sim_broken == BREAK_TWIN && kdsm_block_is_owned(block)) {
		block->twin = true;
		return 0;
	}
	return __real_kdsm_twin_make(coherence, block);
}

bool __wrap_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice)
{
	if (sim_broken == BREAK_NOTICE && sim_chance(20))
		return false;
	return __real_kdsm_signature_add(signature, notice);
}

/* Policy strict: the owner asks a reader to drop its copy. */
int __wrap_kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int node, enum kdsm_message_type type,
		    struct kdsm_wire_answer *answer)
{
	int err;

	if (type != KDSM_MESSAGE_BLOCK_INVALIDATE)
		return __real_kdsm_ask(coherence, block, node, type, answer);
	if (sim_broken == BREAK_READER && sim_chance(10)) {
		answer->answer = cpu_to_le16(KDSM_ANSWER_YES);
		return 0;
	}
	err = __real_kdsm_ask(coherence, block, node, type, answer);
	if (sim_broken == BREAK_DEAD && (err == -ENOENT || err == -EHOSTDOWN))
		err = -EIO;
	if (sim_broken == BREAK_EARLY && !err)
		answer->answer = cpu_to_le16(KDSM_ANSWER_YES);
	return err;
}

/* A release takes over a block. */
int __wrap_kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts)
{
	struct node *node = &nodes[coherence->node];
	unsigned int i;
	int err;

	if (sim_broken == BREAK_LOST && node->has_failed)
		return -EHOSTDOWN;
	for (i = 0; i < config.blocks; i++)
		if (config.index[i] == block->index)
			node->tried[i] = true;
	err = __real_kdsm_ownership_take(coherence, block, from, wts, rts);
	node->has_failed |= err;
	return err;
}

void __wrap_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, bool keep)
{
	unsigned int i;

	if (sim_broken == BREAK_MERGE)
		for (i = 0; i < theirs->count; i++)
			memcpy(kdsm_block_page(coherence, coherence->frames, block, i),
			       theirs->pages[i], PAGE_SIZE);
	else
		__real_kdsm_twin_merge(coherence, block, theirs, keep);
}

/* Take a block that the fetch of another block brought along. */
bool __wrap_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       u64 wts, u64 rts)
{
	if (sim_broken != BREAK_AHEAD)
		return __real_kdsm_block_brought(coherence, block, wts, rts);
	block->wts = wts;
	block->rts = rts;
	kdsm_block_cached(coherence, block, true);
	block->writer = KDSM_NOBODY;
	block->state = KDSM_BLOCK_READABLE;
	return true;
}

void __wrap_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	struct kdsm_block other = *block;

	if (sim_broken == BREAK_STAMP)
		other.rts += 20;
	__real_kdsm_stamp_raise(coherence, &other);
}

void __wrap_kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_operation *op;

	if (sim_broken == BREAK_ORDER)
		list_for_each_entry(op, &batch->operations, link)
			if (op->length >= PAGE_SIZE)
				op->ordered = false;
	__real_kdsm_batch_post(batch);
}
