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
#include <stdio.h>

#include "sim.h"

#define WORDS_MAX	48U

struct word {
	u64 offset;
	unsigned int size;
	u64 value;		/* the value that the newest store left */
};

struct thread {
	unsigned int number, node, process;
};

static struct word words[WORDS_MAX];
static struct thread *threads;
static unsigned int word_count, thread_count;
static u64 last_value;

static struct {
	unsigned int count, phase;
	struct sim_queue queue;
} meeting;

static u64 mask(const struct word *word)
{
	return word->size == 8 ? U64_MAX : (1ULL << (8 * word->size)) - 1;
}

/*
 * Check what an access returned. No other fiber has run since the access: code between
 * two scheduling points is one step.
 */
static void saw(struct thread *thread, struct word *word, const char *how, u64 value)
{
	s64 block = block_of(word->offset >> PAGE_SHIFT);

	counts.loads++;
	sim_event(block, "%u %s word %u at %llx: %llu", thread->number, how,
		  (unsigned int)(word - words), word->offset, value);
	if (value != word->value)
		sim_fail(block, "thread %u of node %u: word %u at %llx is %llu, not %llu",
			 thread->number, thread->node, (unsigned int)(word - words),
			 word->offset, value, word->value);
}

static void load(struct thread *thread, struct word *word)
{
	unsigned int tries = 0;
	u64 value = 0;
	int err;

	do {
		err = cpu_load(thread->node, thread->process, word->offset, &value,
			       word->size);
		if (!err)
			saw(thread, word, "loads", value);
	} while (try_again(err, &tries, "load"));
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = (config.values ? sim_below(config.values) : ++last_value) & mask(word);
	unsigned int tries = 0;
	int err;

	do {
		err = cpu_store(thread->node, thread->process, word->offset, &value,
				word->size);
		if (!err) {
			word->value = value;
			counts.stores++;
			sim_event(block_of(word->offset >> PAGE_SHIFT),
				  "%u stores word %u at %llx: %llu", thread->number,
				  (unsigned int)(word - words), word->offset, value);
		}
	} while (try_again(err, &tries, "store"));
}

static void add(struct thread *thread, struct word *word)
{
	u64 what = sim_between(1, 100), value = 0;
	unsigned int tries = 0;
	int err;

	do {
		err = cpu_add(thread->node, thread->process, word->offset, what, word->size,
			      &value);
		if (!err) {
			saw(thread, word, "adds to", value);
			word->value = (word->value + what) & mask(word);
			counts.stores++;
		}
	} while (try_again(err, &tries, "add"));
}

/* A meeting of fibers, not of simulated threads: it orders nothing in the simulated memory. */
static void meet(void)
{
	unsigned int phase = meeting.phase;

	if (++meeting.count == thread_count) {
		check_idle();
		meeting.count = 0;
		meeting.phase++;
		sim_wake(&meeting.queue);
		return;
	}
	while (meeting.phase == phase) {
		sim_prepare(&meeting.queue);
		sim_block(&meeting.queue, U64_MAX);
	}
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
			if (sim_chance(config.advise))
				advise_some(thread->node);
			if (reads)
				load(thread, &words[sim_below(word_count)]);
			else
				access_some(thread);
			if (sim_chance(20))
				sim_sleep(sim_below(10 * sim.delay));
		}
		meet();
	}
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

static void words_make(void)
{
	unsigned int i, block, at;

	/* Most words are in the first two blocks; some share a cache line. */
	word_count = sim_between(1, min(config.words, WORDS_MAX));
	for (i = 0; i < word_count; i++) {
		struct word *word = &words[i];

		block = sim_below(sim_chance(3) ? config.blocks : min(config.blocks, 2U));
		at = 64 * sim_below(config.pages * PAGE_SIZE / 64) + i % 8 * 8;
		word->size = 8 >> sim_below(4);
		word->offset = config.index[block] * config.pages * PAGE_SIZE + at;
		word->value = 0;
		/* No two words may be at the same place. */
		while (word > words) {
			unsigned int j;

			for (j = 0; j < i && words[j].offset != word->offset; j++)
				;
			if (j == i)
				break;
			at = (at + 8) % (config.pages * PAGE_SIZE);
			word->offset = config.index[block] * config.pages * PAGE_SIZE + at;
		}
	}
}

void racing_start(void)
{
	unsigned int node, process, i;
	char name[24];

	last_value = 0;
	words_make();
	memset(&meeting, 0, sizeof(meeting));
	thread_count = 0;
	threads = calloc(sim.nodes * config.processes * config.threads, sizeof(*threads));
	for (node = 0; node < sim.nodes; node++)
		for (process = 0; process < config.processes; process++)
			for (i = 0; i < config.threads; i++) {
				threads[thread_count] = (struct thread) {
					thread_count, node, process,
				};
				snprintf(name, sizeof(name), "thread %u", thread_count);
				sim_spawn(node, name, 1 + sim_below(sim.delay), thread_run,
					  &threads[thread_count++]);
			}
}

/* Every node loads and stores in every block. */
static void thread_run_again(void *arg)
{
	struct thread *thread = arg;
	unsigned int i;

	for (i = 0; i < word_count; i++)
		add(thread, &words[i]);
	meet();
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

void racing_again(void)
{
	unsigned int i;

	for (i = 0; i < thread_count; i++)
		sim_spawn(threads[i].node, "again", 1, thread_run_again, &threads[i]);
}

void racing_stop(void)
{
	free(threads);
}
