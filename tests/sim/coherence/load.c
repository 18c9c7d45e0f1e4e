// SPDX-License-Identifier: GPL-2.0
/* Common to programs of both kinds: words, threads, calls that may fail, hints, unmapping. */
#include <stdio.h>

#include "sim.h"

/* Retries after which a fault counts as permanent */
#define TRIES_MAX	10000

bool try_again(int err, unsigned int *tries, const char *what)
{
	bool may_time_out = sim.error || config.stall || config.outage;
	bool may_break = sim.error || config.outage;

	if (!err)
		return false;
	counts.errors++;
	sim_event(SIM_NONE, "%s: error %d", what, err);
	if (!(err == -ENOMEM && sim.nomem) &&
	    !((err == -EIO || err == -EHOSTDOWN) && may_break) &&
	    !(err == -ETIMEDOUT && may_time_out))
		sim_fail(SIM_NONE, "%s: error %d", what, err);
	if (++*tries > TRIES_MAX)
		sim_fail(SIM_NONE, "%s: error %d %u times", what, err, *tries);
	sim_sleep(10);
	return true;
}

/* ---- words ---- */

struct word words[WORDS_MAX];
unsigned int word_count;
static u64 last_value;

u64 word_mask(const struct word *word)
{
	return word->size == 8 ? U64_MAX : (1ULL << (8 * word->size)) - 1;
}

u64 word_choose(const struct word *word)
{
	return (config.values ? sim_below(config.values) : ++last_value) & word_mask(word);
}

void word_seen(const struct thread *thread, const struct word *word, const char *how, u64 value)
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

void word_stored(const struct thread *thread, struct word *word, u64 value)
{
	word->value = value;
	counts.stores++;
	sim_event(block_of(word->offset >> PAGE_SHIFT), "%u stores word %u at %llx: %llu",
		  thread->number, (unsigned int)(word - words), word->offset, value);
}

/* ---- threads ---- */

unsigned int thread_count;
static struct thread *threads;

static struct {
	unsigned int count, phase;
	struct sim_queue queue;
} meeting;

unsigned int threads_phase(void)
{
	return meeting.phase;
}

bool threads_meet(void)
{
	unsigned int phase = meeting.phase;

	if (++meeting.count == thread_count) {
		check_idle();
		meeting.count = 0;
		meeting.phase++;
		sim_wake(&meeting.queue);
		return true;
	}
	while (meeting.phase == phase) {
		sim_prepare(&meeting.queue);
		sim_block(&meeting.queue, U64_MAX);
	}
	return false;
}

void threads_start(void (*run)(void *thread))
{
	unsigned int node, process, i;
	char name[24];

	last_value = 0;
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
				sim_spawn(node, name, 1 + sim_below(sim.delay), run,
					  &threads[thread_count++]);
			}
}

void threads_again(void (*run)(void *thread))
{
	unsigned int i;

	for (i = 0; i < thread_count; i++)
		sim_spawn(threads[i].node, "again", 1, run, &threads[i]);
}

/* ---- hints and unmapping ---- */

/* Choose blocks that follow each other. */
static void choose_range(u64 *first, u64 *last)
{
	unsigned int i = sim_below(config.blocks);

	*first = config.index[i];
	*last = *first;
	while (sim_chance(2) && i + 1 < config.blocks && config.index[i + 1] == *last + 1) {
		i++;
		++*last;
	}
}

static void advise(unsigned int node, enum kdsm_advice advice, u64 first, u64 last)
{
	unsigned int tries = 0;
	int err;

	do {
		sim_event(first, "advice %u up to block %llu", advice, last);
		err = kdsm_coherence_advise(&nodes[node].coherence, advice, first, last);
	} while (try_again(err, &tries, "advise"));
}

void advise_some(unsigned int node)
{
	enum kdsm_advice advice = sim_between(KDSM_ADVICE_PREFETCH, KDSM_ADVICE_OWN);
	u64 first, last;

	choose_range(&first, &last);
	advise(node, advice, first, last);
}

void unmap_some(unsigned int node)
{
	u64 first, last;

	choose_range(&first, &last);
	if (sim_chance(3))
		process_protect(node, sim_below(config.processes), first, last);
	else
		process_unmap(node, sim_below(config.processes), first, last);
}

/* ---- start and stop ---- */

void load_start(void)
{
	if (config.policy == KDSM_POLICY_STRICT)
		racing_start();
	else
		race_free_start();
}

/* Own all blocks, also those without words, because nodes gave hints for these. */
static void own_all(void *arg)
{
	unsigned int node = (unsigned long)arg, i;

	for (i = 0; i < config.blocks; i++)
		advise(node, KDSM_ADVICE_OWN, config.index[i], config.index[i]);
}

void load_again(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		sim_spawn(i, "owns all", 1, own_all, (void *)(unsigned long)i);
	if (config.policy == KDSM_POLICY_STRICT)
		racing_again();
	else
		race_free_again();
}

void load_stop(void)
{
	if (config.policy == KDSM_POLICY_RELEASE)
		race_free_stop();
	free(threads);
}
