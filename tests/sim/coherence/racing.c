// SPDX-License-Identifier: GPL-2.0
/*
 * Programs with data races, for policy strict: every thread loads, stores and adds to any
 * words, many of them in one block, without synchronisation.
 *
 * All accesses have one order, that of the steps in which simulated CPUs touch the frames.
 * Each load must return what the newest store to the word in this order left, on any node.
 * As a thread does one access at a time, its own order is part of this order, so the run is
 * sequentially consistent. The check is a little stronger than that, but no stronger than
 * the invariant: one writer or many readers at any time.
 */
#include "sim.h"

#define WORDS_FEW	48U

static void load(struct thread *thread, struct word *word)
{
	u64 value;
	int err = thread_load(thread, word->offset, word->size, &value);

	/* A load from before the node was cut off may find old content: see strict.c */
	if (!err && !sim_is_cut(thread->node))
		word_seen(thread, word, "loads", value);
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = word_choose(word);

	if (!thread_store(thread, word->offset, word->size, value))
		word_stored(thread, word, value);
}

static void add(struct thread *thread, struct word *word)
{
	u64 what = sim_between(1, 100), value = 0;
	u64 block = block_of(word->offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	int err;

	do {
		thread_check();
		err = cpu_add(thread->node, thread->process, word->offset, what, word->size,
			      &value);
		if (!err) {
			word_seen(thread, word, "adds to", value);
			word->value = (word->value + what) & word_mask(word);
			counts.stores++;
		}
	} while (try_again(err, &tries, block, block, "add"));
}

static void access_some(struct thread *thread)
{
	struct word *word = &words[sim_below(word_count)];
	unsigned int n = sim_between(1, 4);

	/* After each access choose another word, with a probability of one half. */
	while (n--) {
		switch (sim_below(5)) {
		case 0:
		case 1:
			load(thread, word);
			break;
		case 2:
			add(thread, word);
			break;
		default:
			store(thread, word);
		}
		if (sim_chance(2))
			word = &words[sim_below(word_count)];
	}
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int phase, round, i;

	for (phase = 0; phase < config.phases; phase++) {
		/* A thread that only reads for a while shares the block with others. */
		bool reads = sim_chance(4);

		for (round = sim_between(config.rounds / 2, 2 * config.rounds); round; round--) {
			if (sim_chance(config.unmap))
				unmap_some(thread->node);
			if (sim_chance(config.reclaim))
				reclaim_some(thread->node);
			if (sim_chance(config.advise))
				advise_some(thread->node);
			if (reads)
				load(thread, &words[sim_below(word_count)]);
			else
				access_some(thread);
			if (sim_chance(20))
				sim_sleep(sim_below(10 * sim.delay));
		}
		/* The fibers meet, not the simulated threads: no access in memory is ordered. */
		threads_meet(thread);
	}
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

static void words_make(void)
{
	unsigned int i, block;
	u64 start, at;

	/* Most words are in the first two blocks; some share a cache line. */
	word_count = sim_between(1, min(config.words, max(WORDS_FEW, config.blocks)));
	for (i = 0; i < word_count; i++) {
		struct word *word = &words[i];

		block = sim_below(sim_chance(3) ? config.blocks : min(config.blocks, 2U));
		start = used_start(block);
		at = used_cell(block) - start + i % 8 * 8;
		word->size = 8 >> sim_below(4);
		word->offset = start + at;
		word->value = 0;
		word->spoiled = false;
		word->node = 0;
		/* No two words may be at the same place. */
		while (word > words) {
			unsigned int j;

			for (j = 0; j < i && words[j].offset != word->offset; j++)
				;
			if (j == i)
				break;
			at = (at + 8) % (block_pages(config.index[block]) * PAGE_SIZE);
			word->offset = start + at;
		}
	}
}

void racing_start(void)
{
	words_make();
	threads_start(thread_run);
}

/* Every node loads and stores in every block. */
static void thread_run_again(void *arg)
{
	struct thread *thread = arg;
	unsigned int i;

	if (config.discard)
		discard_all(thread);
	for (i = 0; i < word_count; i++)
		add(thread, &words[i]);
	threads_meet(thread);
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

void racing_again(void)
{
	threads_again(thread_run_again);
}
