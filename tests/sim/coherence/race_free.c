// SPDX-License-Identifier: GPL-2.0
/*
 * Programs without data races, for policy release: a lock guards a word, or one thread
 * writes the word between two barriers. Words are so close together that there is false
 * sharing of blocks. Every load has one right value, which this file keeps.
 */
#include "sim.h"

static u64 salt;

/* ---- accesses ---- */

static void load(struct thread *thread, struct word *word)
{
	u64 value;

	if (!thread_load(thread, word->offset, word->size, &value))
		word_seen(thread, word, "loads", value);
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = word_choose(word);

	if (!thread_store(thread, word->offset, word->size, value))
		word_stored(thread, word, value);
}

/* ---- programs ---- */

/* The thread that may write the word in this phase. thread_count: all threads may read it. */
static unsigned int phase_writer(unsigned int word)
{
	u64 h = (salt ^ word * 0x9e3779b97f4a7c15ULL ^ threads_phase() * 0xc2b2ae3d27d4eb4fULL);

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ULL;
	h ^= h >> 32;
	return h % 3 ? h / 3 % thread_count : thread_count;
}

static void use(struct thread *thread, struct word *word, bool write)
{
	switch (sim_below(4)) {
	case 0:
		load(thread, word);
		break;
	case 1:
		load(thread, word);
		if (write)
			store(thread, word);
		break;
	case 2:
		if (write)
			store(thread, word);
		break;
	default:
		if (write)
			store(thread, word);
		load(thread, word);
	}
}

static void use_lock(struct thread *thread, unsigned int which)
{
	bool write = !sim_chance(4);
	unsigned int i, n = sim_between(1, 4);

	lock_take(thread, which, write);
	while (n--) {
		/* Try to find a word that the lock guards. */
		for (i = 0; i < 64; i++) {
			struct word *word = &words[sim_below(word_count)];

			if (word->lock == (int)which) {
				use(thread, word, write);
				break;
			}
		}
	}
	if (sim_chance(8) && which + 1 < config.locks)
		use_lock(thread, sim_between(which + 1, config.locks - 1));
	lock_drop(thread, which, write);
}

static void use_phase(struct thread *thread)
{
	unsigned int n = sim_between(1, 4), i, writer;

	while (n--) {
		i = sim_below(word_count);
		if (words[i].lock >= 0)
			continue;
		writer = phase_writer(i);
		if (writer == thread->number)
			use(thread, &words[i], true);
		else if (writer == thread_count)
			load(thread, &words[i]);
	}
}

/* Read a word without a lock in each of some blocks, in order, so that misses prefetch blocks. */
static void use_all(struct thread *thread)
{
	unsigned int block, end, i, writer;

	block = config.blocks > BLOCKS_FEW ? sim_below(config.blocks - BLOCKS_FEW) : 0;
	end = min(config.blocks, block + BLOCKS_FEW);
	for (; block < end; block++)
		for (i = 0; i < word_count; i++) {
			if (words[i].lock >= 0 ||
			    block_of(words[i].offset >> PAGE_SHIFT) != (s64)config.index[block])
				continue;
			writer = phase_writer(i);
			if (writer == thread->number || writer == thread_count) {
				load(thread, &words[i]);
				break;
			}
		}
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int phase, round, i;

	for (phase = 0; phase < config.phases; phase++) {
		for (round = sim_between(config.rounds / 2, config.rounds); round; round--) {
			if (sim_chance(config.unmap))
				unmap_some(thread->node);
			if (sim_chance(config.reclaim))
				reclaim_some(thread->node);
			if (sim_chance(config.advise))
				advise_some(thread->node);
			if (config.atoms && sim_chance(3))
				atomics_some(thread);
			if (config.locks && !sim_chance(3))
				use_lock(thread, sim_below(config.locks));
			else if (sim_chance(4))
				use_all(thread);
			else
				use_phase(thread);
			if (sim_chance(50))	/* a stale signature must do no harm */
				barrier_stale(thread);
			if (sim_chance(30))
				sim_sleep(sim_below(10 * sim.delay));
		}
		barrier_pass(thread);
		if (config.race)
			race_run(thread, barrier_pass);
	}
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
	barrier_pass(thread);
}

/* ---- start and stop ---- */

/* Whether there is a word in these 64 bytes */
static bool is_used(u64 offset)
{
	unsigned int i;

	for (i = 0; i < word_count; i++)
		if (words[i].offset / 64 == offset / 64)
			return true;
	return atomics_use_cell(offset);
}

static void words_make(void)
{
	unsigned int size, at;
	u64 cell;

	word_count = 0;
	while (word_count + 4 < config.words) {
		cell = used_cell(sim_below(config.blocks));
		if (is_used(cell))
			continue;
		size = 8 >> sim_below(3);
		/* Different locks guard the parts of eight bytes. */
		for (at = 0; at < 8; at += size) {
			struct word *word = &words[word_count++];
			bool locked = config.locks && !sim_chance(4);

			*word = (struct word) { .offset = cell + at, .size = size };
			word->lock = locked ? (int)sim_below(config.locks) : -1;
		}
	}
}

void race_free_start(void)
{
	salt = sim_random();
	atomics_start();
	words_make();
	race_start(is_used);
	sync_start();
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
		load(thread, &words[i]);
	barrier_pass(thread);
	for (i = 0; i < word_count; i++) {
		if (i % thread_count == thread->number)
			store(thread, &words[i]);
	}
	barrier_pass(thread);
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
	barrier_pass(thread);
	for (i = 0; i < word_count; i++) {
		if ((i + 1) % thread_count == thread->number)
			store(thread, &words[i]);
	}
	barrier_pass(thread);
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

void race_free_again(void)
{
	threads_again(thread_run_again);
}
