// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that synchronise by nothing, for policy strict: every thread loads,
 * stores and adds to whatever words it likes, many of them in one block.
 *
 * What they see is checked against one order of all accesses, that of the steps in
 * which the simulated CPUs touch the frames: each load has to give what the newest
 * store to the word in this order left, on whichever node that was. A thread does
 * one access after the other, so its own order is part of that order: the run is
 * sequentially consistent. It asks for a little more than that, but no less than
 * the invariant, one writer or many readers at every moment, must give.
 */
#include <stdio.h>

#include "sim.h"

#define WORDS_MAX	48U
#define THREADS_MAX	(SIM_NODES * SIM_PROCESSES * 4)

struct word {
	u64 offset;
	unsigned int size;
	u64 value;		/* in the order of steps, up to now */
};

struct thread {
	unsigned int number, node, process;
};

static struct word words[WORDS_MAX];
static struct thread threads[THREADS_MAX];
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
 * What an access gave. Nobody else has run since it was done: what does not end
 * at a scheduling point is one step.
 */
static void saw(struct thread *thread, struct word *word, const char *how, u64 value)
{
	s64 block = sim_block_of(word->offset >> PAGE_SHIFT);

	sim_counts.loads++;
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
		err = sim_load(thread->node, thread->process, word->offset, &value,
			       word->size);
		if (!err)
			saw(thread, word, "loads", value);
	} while (sim_again(err, &tries, "load"));
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = (sim.values ? sim_below(sim.values) : ++last_value) & mask(word);
	unsigned int tries = 0;
	int err;

	do {
		err = sim_store(thread->node, thread->process, word->offset, &value,
				word->size);
		if (!err) {
			word->value = value;
			sim_counts.stores++;
			sim_event(sim_block_of(word->offset >> PAGE_SHIFT),
				  "%u stores word %u at %llx: %llu", thread->number,
				  (unsigned int)(word - words), word->offset, value);
		}
	} while (sim_again(err, &tries, "store"));
}

static void add(struct thread *thread, struct word *word)
{
	u64 what = sim_between(1, 100), value = 0;
	unsigned int tries = 0;
	int err;

	do {
		err = sim_add(thread->node, thread->process, word->offset, what, word->size,
			      &value);
		if (!err) {
			saw(thread, word, "adds to", value);
			word->value = (word->value + what) & mask(word);
			sim_counts.stores++;
		}
	} while (sim_again(err, &tries, "add"));
}

/* The threads, not the simulated programs, meet: it orders nothing in memory. */
static void meet(void)
{
	unsigned int phase = meeting.phase;

	if (++meeting.count == thread_count) {
		sim_check_quiet();
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

	/* A few times the same one, or another near it. */
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

	for (phase = 0; phase < sim.phases; phase++) {
		/* Who only reads for a while shares the block with the others. */
		bool reads = sim_chance(4);

		for (round = sim_between(sim.rounds / 2, 2 * sim.rounds); round; round--) {
			if (sim_chance(sim.unmap))
				sim_unmap_some(thread->node);
			if (sim_chance(sim.advise))
				sim_advise_some(thread->node);
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

	/* Of one block or two, mostly; some words are in one line. */
	word_count = sim_between(1, min(sim.words, WORDS_MAX));
	for (i = 0; i < word_count; i++) {
		struct word *word = &words[i];

		block = sim_chance(3) ? sim_below(sim.blocks) : sim_below(min(sim.blocks, 2U));
		at = 64 * sim_below(sim.pages * PAGE_SIZE / 64) + i % 8 * 8;
		word->size = 8 >> sim_below(4);
		word->offset = sim.index[block] * sim.pages * PAGE_SIZE + at;
		word->value = 0;
		/* The same place twice is the same word, so there may be only one. */
		while (word > words) {
			unsigned int j;

			for (j = 0; j < i && words[j].offset != word->offset; j++)
				;
			if (j == i)
				break;
			at = (at + 8) % (sim.pages * PAGE_SIZE);
			word->offset = sim.index[block] * sim.pages * PAGE_SIZE + at;
		}
	}
}

void sim_race_start(void)
{
	unsigned int node, process, i;
	char name[24];

	last_value = 0;
	words_make();
	memset(&meeting, 0, sizeof(meeting));
	thread_count = 0;
	for (node = 0; node < sim.nodes; node++)
		for (process = 0; process < sim.processes; process++)
			for (i = 0; i < sim.threads; i++) {
				threads[thread_count] = (struct thread) {
					thread_count, node, process,
				};
				snprintf(name, sizeof(name), "thread %u", thread_count);
				sim_spawn(node, name, 1 + sim_below(sim.delay), thread_run,
					  &threads[thread_count++]);
			}
}

/* Every node has to come by every block. */
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

void sim_race_again(void)
{
	unsigned int i;

	for (i = 0; i < thread_count; i++)
		sim_spawn(threads[i].node, "again", 1, thread_run_again, &threads[i]);
}
