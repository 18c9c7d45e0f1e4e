// SPDX-License-Identifier: GPL-2.0
/* Common to programs of both kinds: words, threads, calls that may fail, hints, unmapping. */
#include <stdio.h>

#include "sim.h"

/* Retries after which a fault counts as permanent */
#define TRIES_MAX	10000
/* The same where nodes die. A retry may take a minute. */
#define TRIES_FEW	20

static u64 stall_end;		/* of the longest read that stalls */

void stalls_start(void)
{
	stall_end = 0;
}

void stall_until(u64 until)
{
	stall_end = max(stall_end, until);
}

/* Whether a fault that ends by itself may make calls fail, however often */
static bool fault_lasts(void)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (sim_is_cut(node) && !sim_is_dead(node))
			return true;
	return sim_now() < stall_end;
}

bool try_again_always(int err, unsigned int *tries, const char *what)
{
	bool may_break = sim.error || config.outage || config.deaths || config.away;
	bool may_time_out = may_break || config.stall;
	bool few = config.deaths && !sim.error && err != -ENOMEM;
	unsigned int weight = few ? TRIES_MAX / TRIES_FEW : 1;

	if (!err)
		return false;
	thread_check();
	counts.errors++;
	sim_event(SIM_NONE, "%s: error %d", what, err);
	/* A node that cannot reach another one may be unable to evict anything. */
	if (!(err == -ENOMEM && (sim.nomem || sim.shortage || (config.limit && may_time_out))) &&
	    !((err == -EIO || err == -EHOSTDOWN) && may_break) &&
	    !(err == -ESTALE && is_out(sim_fiber_node())) &&
	    !(err == -ETIMEDOUT && may_time_out))
		sim_fail(SIM_NONE, "%s: error %d", what, err);
	if (!fault_lasts())
		*tries += weight;
	if (*tries > TRIES_MAX)
		sim_fail(SIM_NONE, "%s: error %d, and retries do not help", what, err);
	sim_sleep(config.away ? 5000 : 10);
	return true;
}

bool try_again(int err, unsigned int *tries, u64 first, u64 last, const char *what)
{
	unsigned int node = sim_fiber_node();

	if (err == -EHOSTDOWN && sim_chance(config.discard) && !sim_is_dead(node)) {
		while (first < last && !is_missed(node, first))
			first++;
		/* A node without memory can neither use the block nor discard it */
		if (discard_one(first) == -ENOMEM)
			err = -ENOMEM;
		return try_again_always(err, tries, what);
	}
	if (err == -ENOMEM && config.limit && config.deaths && is_stuck(node)) {
		counts.unreachable++;
		sim_event(first, "%s: no memory, because dead nodes are needed to free some", what);
		return false;
	}
	for (; err && err != -ENOMEM && config.deaths && first <= last; first++)
		if (!sim_is_dead(node) && !is_reachable(node, first)) {
			counts.unreachable++;
			sim_event(first, "%s: error %d, and no way to the owner", what, err);
			return false;
		}
	return try_again_always(err, tries, what);
}

/* ---- accesses ---- */

int thread_load(struct thread *thread, u64 offset, unsigned int size, u64 *value)
{
	u64 block = block_of(offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	int err;

	*value = 0;
	do {
		thread_check();
		err = cpu_load(thread->node, thread->process, offset, value, size);
	} while (try_again(err, &tries, block, block, "load"));
	return err;
}

int thread_store(struct thread *thread, u64 offset, unsigned int size, u64 value)
{
	u64 block = block_of(offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	int err;

	do {
		thread_check();
		err = cpu_store(thread->node, thread->process, offset, &value, size);
	} while (try_again(err, &tries, block, block, "store"));
	return err;
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

	if (sim_is_dead(thread->node))
		sim_exit();
	counts.loads++;
	sim_event(block, "%u %s word %u at %llx: %llu", thread->number, how,
		  (unsigned int)(word - words), word->offset, value);
	/* A node that others gave up may read old content until it meets them (strict.c). */
	if (config.policy == KDSM_POLICY_STRICT && is_given_up(thread->node))
		return;
	/* Nor does one that they excluded know so, until it asks (lost.c). */
	if (is_out(thread->node))
		return;
	if (value != word->value && !word->spoiled)
		sim_fail(block, "thread %u of node %u: word %u at %llx is %llu, not %llu",
			 thread->number, thread->node, (unsigned int)(word - words),
			 word->offset, value, word->value);
}

void word_stored(const struct thread *thread, struct word *word, u64 value)
{
	if (sim_is_dead(thread->node))
		sim_exit();
	if (is_out(thread->node))
		return;
	word->value = value;
	word->node = thread->node;
	counts.stores++;
	sim_event(block_of(word->offset >> PAGE_SHIFT), "%u stores word %u at %llx: %llu",
		  thread->number, (unsigned int)(word - words), word->offset, value);
}

void word_spoil(struct word *word)
{
	counts.spoiled += !word->spoiled;
	word->spoiled = true;
}

/* ---- threads ---- */

unsigned int thread_count;
struct thread *threads;

static struct {
	unsigned int count, expected, phase;
	struct sim_queue queue;
} meeting;

unsigned int threads_phase(void)
{
	return meeting.phase;
}

static void meeting_end(void)
{
	unsigned int i;

	check_idle();
	if (config.policy == KDSM_POLICY_RELEASE)
		sync_met();
	for (i = 0; i < thread_count; i++)
		threads[i].meeting = false;
	meeting.count = 0;
	meeting.phase++;
	sim_wake(&meeting.queue);
}

void threads_meet(struct thread *thread)
{
	unsigned int phase = meeting.phase;

	if (sim_is_dead(thread->node))
		sim_exit();
	thread->meeting = true;
	if (++meeting.count == meeting.expected)
		meeting_end();
	while (meeting.phase == phase && !thread->dead) {
		sim_prepare(&meeting.queue);
		sim_block(&meeting.queue, U64_MAX);
	}
	if (thread->dead)
		sim_exit();
}

void threads_die(unsigned int node)
{
	unsigned int i;

	for (i = 0; i < thread_count; i++) {
		struct thread *thread = &threads[i];

		if (thread->node != node)
			continue;
		thread->dead = true;
		meeting.expected--;
		meeting.count -= thread->meeting;
		if (config.policy == KDSM_POLICY_RELEASE)
			sync_die(thread);
	}
	if (meeting.count && meeting.count == meeting.expected)
		meeting_end();
	sim_wake(&meeting.queue);
	/* A hand-over may have published a write that no acquire will ever learn of. */
	for (i = 0; i < word_count && config.policy == KDSM_POLICY_RELEASE; i++)
		if (words[i].node == node)
			word_spoil(&words[i]);
}

/* The node knows that others have excluded it. */
static void node_leave(unsigned int node)
{
	unsigned int i;

	for (i = 0; i < thread_count; i++)
		if (threads[i].node == node && !threads[i].dead) {
			counts.outcasts++;
			sim_event(SIM_NONE, "is an outcast");
			threads_die(node);
			return;
		}
}

void thread_check(void)
{
	unsigned int node = sim_fiber_node();

	if (nodes[node].coherence.outcast)
		node_leave(node);
	if (sim_is_dead(node) || nodes[node].coherence.outcast)
		sim_exit();
	while (config.away && sim_is_cut(node))
		sim_sleep(1000);
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
					.number = thread_count,
					.node = node,
					.process = process,
				};
				snprintf(name, sizeof(name), "thread %u", thread_count);
				sim_spawn(node, name, 1 + sim_below(sim.delay), run,
					  &threads[thread_count++]);
			}
	meeting.expected = thread_count;
}

void threads_again(void (*run)(void *thread))
{
	unsigned int i;

	for (i = 0; i < thread_count; i++)
		if (!threads[i].dead)
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

void advise(unsigned int node, enum kdsm_advice advice, u64 first, u64 last)
{
	unsigned int tries = 0;
	int err;

	do {
		sim_event(first, "advice %u up to block %llu", advice, last);
		err = kdsm_coherence_advise(&nodes[node].coherence, advice, first, last);
	} while (try_again(err, &tries, first, last, "advise"));
}

void advise_some(unsigned int node)
{
	enum kdsm_advice advice = sim_between(KDSM_ADVICE_PREFETCH, KDSM_ADVICE_OWN);
	u64 first, last;

	choose_range(&first, &last);
	advise(node, advice, first, last);
}

void reclaim_some(unsigned int node)
{
	sim_event(SIM_NONE, "the kernel asks for memory");
	kdsm_coherence_reclaim(&nodes[node].coherence, sim_between(1, 3));
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
	if (config.litmus)
		forms_start();
	else if (config.endless)
		unfair_start();
	else if (config.costs)
		costs_start();
	else if (config.policy == KDSM_POLICY_STRICT)
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

	/* With blocks that are lost, the threads discard these first. */
	for (i = 0; i < sim.nodes && !config.discard; i++)
		if (!sim_is_dead(i))
			sim_spawn(i, "owns all", 1, own_all, (void *)(unsigned long)i);
	if (config.policy == KDSM_POLICY_STRICT)
		racing_again();
	else
		race_free_again();
}

void load_stop(void)
{
	if (config.endless)
		unfair_stop();
	if (config.costs)
		costs_stop();
	sync_stop();
	race_stop();
	free(threads);
}
