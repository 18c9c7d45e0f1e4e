// SPDX-License-Identifier: GPL-2.0
/*
 * Measure what the programs of patterns.c cost, for policy release: loads, stores and fences that
 * count, and a line of output for each phase of a program.
 */
#include <stdio.h>

#include "sim.h"

/* Costs of a phase, all nodes together */
enum cost {
	GETS, STAMPS, READS, OWNS, GRANTS, BYTES, READ_FAULTS, WRITE_FAULTS, FLUSHES, LOOKED,
	INVALID,
	NEWS,	/* stores, one a block and release: for each other node that knows the block */
	MUST,	/* loads by a node of what another node has stored since: blocks that must move */
	COSTS
};

static const char *const names[COSTS] = {
	"gets", "stamps", "READ", "OWN", "GRANT", "bytes", "read-faults", "write-faults",
	"flushes", "looked", "invalid", "news", "must"
};

static u64 *known;		/* by node and word: the value that the node has seen last */
static u64 *releases;		/* by node: the number of its releases */
/* By block: the last node that has stored, and how often that node had released before */
static struct last {
	unsigned int node;
	u64 releases;
} *last;
static u64 must, news;
static u64 begun[COSTS];	/* when the phase began */

/* ---- accesses ---- */

static u64 *known_of(const struct thread *thread, const struct word *word)
{
	return &known[thread->node * word_count + (word - words)];
}

void costs_load(struct thread *thread, unsigned int which)
{
	struct word *word = &words[which];
	u64 *own = known_of(thread, word), value;
	int err;

	must += word->node != thread->node && *own != word->value;
	err = thread_load(thread, word->offset, word->size, &value);
	if (err)
		sim_fail(SIM_NONE, "load: error %d", err);
	word_seen(thread, word, "loads", value);
	*own = value;
}

static void count_news(const struct thread *thread, u64 index)
{
	struct last now = { thread->node, releases[thread->node] };
	unsigned int node;

	if (last[index].node == now.node && last[index].releases == now.releases)
		return;
	last[index] = now;
	for (node = 0; node < sim.nodes; node++)
		news += node != now.node && xa_load(&nodes[node].coherence.table, index);
}

void costs_store(struct thread *thread, unsigned int which)
{
	struct word *word = &words[which];
	u64 value = word_choose(word);
	int err = thread_store(thread, word->offset, word->size, value);

	if (err)
		sim_fail(SIM_NONE, "store: error %d", err);
	word_stored(thread, word, value);
	*known_of(thread, word) = value;
	count_news(thread, block_of(word->offset >> PAGE_SHIFT));
}

void costs_release(struct thread *thread)
{
	releases[thread->node]++;
}

/* ---- phases ---- */

static u64 stat_of(enum kdsm_coherence_stat which)
{
	unsigned int node;
	u64 sum = 0;

	for (node = 0; node < sim.nodes; node++)
		sum += nodes[node].coherence.stats[which].counter;
	return sum;
}

static void costs_now(u64 costs[COSTS])
{
	costs[GETS] = sim_counts.operations;
	costs[STAMPS] = counts.probes;
	costs[READS] = counts.messages[KDSM_MESSAGE_BLOCK_READ];
	costs[OWNS] = counts.messages[KDSM_MESSAGE_BLOCK_OWN];
	costs[GRANTS] = counts.messages[KDSM_MESSAGE_BLOCK_GRANT];
	costs[BYTES] = stat_of(KDSM_COHERENCE_BYTES);
	costs[READ_FAULTS] = stat_of(KDSM_COHERENCE_READ_FAULTS);
	costs[WRITE_FAULTS] = stat_of(KDSM_COHERENCE_WRITE_FAULTS);
	costs[FLUSHES] = stat_of(KDSM_COHERENCE_FLUSHES);
	costs[LOOKED] = stat_of(KDSM_COHERENCE_LOOKED);
	costs[INVALID] = stat_of(KDSM_COHERENCE_INVALIDATIONS);
	costs[NEWS] = news;
	costs[MUST] = must;
}

/* An acquire looks at the blocks of its news, and at copies that the floor makes invalid. */
static void check_looked(void)
{
	u64 looked = stat_of(KDSM_COHERENCE_LOOKED);
	u64 invalid = stat_of(KDSM_COHERENCE_INVALIDATIONS);

	/* With many nodes signatures are full, and the same notices arrive in several joins */
	if (sim.nodes > KDSM_NOTICES_MAX)
		return;
	if (looked > news + invalid)
		sim_fail(SIM_NONE, "acquires looked at %llu blocks, for %llu news and %llu copies that became invalid",
			 looked, news, invalid);
}

static void print_costs(const char *phase, u64 units)
{
	u64 costs[COSTS];
	unsigned int i;

	costs_now(costs);
	for (i = 0; i < COSTS; i++)
		costs[i] -= begun[i];
	printf("%s nodes %u remote %.2f", phase, sim.nodes,
	       (double)(costs[GETS] + costs[READS] + costs[OWNS] + costs[GRANTS]) / units);
	for (i = 0; i < COSTS; i++)
		printf(" %s %.2f", names[i], (double)costs[i] / units);
	printf("\n");
}

void costs_phase(struct thread *thread, const char *phase, unsigned int units)
{
	threads_meet(thread);
	if (!thread->number) {
		if (phase)
			print_costs(phase, (u64)units * sim.nodes);
		check_looked();
		costs_now(begun);
	}
	threads_meet(thread);
}

/* ---- start and stop ---- */

void costs_start(void)
{
	unsigned int i;

	word_count = 2 * config.blocks;
	for (i = 0; i < word_count; i++)
		words[i] = (struct word) {
			.offset = used_start(i / 2) + i % 2 * 8,
			.size = 8,
			.lock = -1,
		};
	known = calloc((size_t)sim.nodes * word_count, sizeof(*known));
	releases = calloc(sim.nodes, sizeof(*releases));
	last = calloc(config.region_blocks, sizeof(*last));
	for (i = 0; i < config.region_blocks; i++)
		last[i].node = sim.nodes;
	must = 0;
	news = 0;
	sync_start();
	threads_start(patterns_run);
}

void costs_stop(void)
{
	free(known);
	free(releases);
	free(last);
}
