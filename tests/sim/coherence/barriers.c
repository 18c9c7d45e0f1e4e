// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the cost of a barrier of policy release. In each round every node writes one block, reads
 * those that two other nodes wrote in the round before, reads some blocks that no node writes any
 * more, and passes a barrier.
 */
#include <stdio.h>

#include "sim.h"

#define CONSTANTS	16	/* blocks that only node 0 writes, before the rounds */

unsigned int barriers_blocks(unsigned int nodes)
{
	return 2 * nodes + CONSTANTS;
}

/* The block that the node writes in this round */
static struct word *own_word(unsigned int node, unsigned int round)
{
	return &words[CONSTANTS + 2 * (node % sim.nodes) + round % 2];
}

static void load(struct thread *thread, struct word *word)
{
	u64 value;
	int err = thread_load(thread, word->offset, word->size, &value);

	if (err)
		sim_fail(SIM_NONE, "load: error %d", err);
	word_seen(thread, word, "loads", value);
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = word_choose(word);
	int err = thread_store(thread, word->offset, word->size, value);

	if (err)
		sim_fail(SIM_NONE, "store: error %d", err);
	word_stored(thread, word, value);
}

static u64 stat_of(enum kdsm_coherence_stat which)
{
	unsigned int node;
	u64 sum = 0;

	for (node = 0; node < sim.nodes; node++)
		sum += nodes[node].coherence.stats[which].counter;
	return sum;
}

/* From here on all caches are warm: forget what was counted before. */
static void count_begin(struct thread *thread)
{
	if (thread->number)
		return;
	counts.looked -= stat_of(KDSM_COHERENCE_LOOKED);
	counts.invalidated -= stat_of(KDSM_COHERENCE_INVALIDATIONS);
	counts.misses -= stat_of(KDSM_COHERENCE_FAST_READS) +
			 stat_of(KDSM_COHERENCE_SLOW_READS);
	counts.fetched -= stat_of(KDSM_COHERENCE_BYTES);
}

static void count_end(struct thread *thread)
{
	if (thread->number)
		return;
	counts.barriers += (u64)config.barriers * sim.nodes;
	counts.looked += stat_of(KDSM_COHERENCE_LOOKED);
	counts.invalidated += stat_of(KDSM_COHERENCE_INVALIDATIONS);
	counts.misses += stat_of(KDSM_COHERENCE_FAST_READS) +
			 stat_of(KDSM_COHERENCE_SLOW_READS);
	counts.fetched += stat_of(KDSM_COHERENCE_BYTES);
}

static void round_run(struct thread *thread, unsigned int round)
{
	unsigned int i;

	store(thread, own_word(thread->node, round));
	load(thread, own_word(thread->node + 1, round + 1));
	load(thread, own_word(thread->node + sim.nodes - 1, round + 1));
	for (i = 0; i < CONSTANTS; i++)
		load(thread, &words[i]);
	barrier_pass(thread);
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int i;

	for (i = 0; !thread->number && i < CONSTANTS; i++)
		store(thread, &words[i]);
	store(thread, own_word(thread->node, 1));
	barrier_pass(thread);
	for (i = 0; i < 4; i++)
		round_run(thread, i);
	count_begin(thread);
	for (i = 0; i < config.barriers; i++)
		round_run(thread, i);
	count_end(thread);
}

void barriers_start(void)
{
	unsigned int i;

	word_count = config.blocks;
	for (i = 0; i < word_count; i++)
		words[i] = (struct word) {
			.offset = config.index[i] * config.pages * PAGE_SIZE,
			.size = 8,
			.lock = -1,
		};
	sync_start();
	threads_start(thread_run);
}

void barriers_report(void)
{
	double n = counts.barriers;

	if (counts.barriers)
		printf("a node and barrier: %.1f blocks looked at, %.1f copies invalid, %.1f misses, %.0f bytes\n",
		       counts.looked / n, counts.invalidated / n, counts.misses / n,
		       counts.fetched / n);
}
