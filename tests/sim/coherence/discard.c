// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that are lost with a node, and that programs of the living nodes discard: while others
 * access them, and all blocks on all nodes at once, after which each block must be usable again.
 */
#include "sim.h"

static bool lost[BLOCKS_MAX];		/* when all nodes began to discard all blocks */
static bool failed[BLOCKS_MAX];		/* a call about the block has failed since */

static void spoil(u64 index)
{
	unsigned int i;

	for (i = 0; i < word_count; i++)
		if (block_of(words[i].offset >> PAGE_SHIFT) == (s64)index)
			word_spoil(&words[i]);
}

int discard_one(u64 index)
{
	struct kdsm_coherence *coherence = &nodes[sim_fiber_node()].coherence;
	int err;

	thread_check();
	spoil(index);
	sim_event(index, "discards");
	err = kdsm_coherence_discard(coherence, index, index);
	sim_event(index, "has discarded: %d", err);
	counts.discards += !err;
	if (err == -EINVAL || err == -EOVERFLOW)
		sim_fail(index, "discard: error %d", err);
	return err;
}

/* Until all threads meet again, no thread accesses memory. */
static void look(void)
{
	unsigned int i;

	for (i = 0; i < config.blocks; i++) {
		lost[i] = is_lost(config.index[i]);
		failed[i] = false;
		if (lost[i])
			sim_event(config.index[i], "is lost");
	}
}

static void discard(unsigned int node, unsigned int i)
{
	u64 index = config.index[i];
	unsigned int tries = 0;
	int err;

	do {
		sim_event(index, "discards");
		err = kdsm_coherence_discard(&nodes[node].coherence, index, index);
		failed[i] |= err;
		sim_event(index, "has discarded: %d", err);
	} while (try_again_always(err, &tries, "discard"));
	counts.discards++;
}

/* A word of a block that is not lost keeps its value, and any other is zero. */
static void settle(void)
{
	unsigned int i, block;

	for (i = 0; i < word_count; i++)
		for (block = 0; block < config.blocks; block++) {
			if ((s64)config.index[block] != block_of(words[i].offset >> PAGE_SHIFT) ||
			    !lost[block])
				continue;
			words[i].value = 0;
			/* A node that was not heard may keep its copy until it acquires */
			words[i].spoiled = failed[block];
		}
}

void discard_all(struct thread *thread)
{
	unsigned int i, first = sim_below(config.blocks);

	/* Each thread finds the same, because no block moves before all have met again. */
	threads_meet(thread);
	look();
	threads_meet(thread);
	for (i = 0; i < config.blocks; i++)
		discard(thread->node, (first + i) % config.blocks);
	/* A release that is concurrent with a discard may publish writes from before */
	threads_meet(thread);
	if (config.policy == KDSM_POLICY_RELEASE)
		barrier_pass(thread);
	settle();
	threads_meet(thread);
}
