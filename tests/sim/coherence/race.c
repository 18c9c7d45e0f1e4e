// SPDX-License-Identifier: GPL-2.0
/*
 * A data race, for policy release: all nodes have the same copy of a word, and each stores a value
 * of its own before any of them releases. Each byte changes on every node. So the nodes merge one
 * after the other, and each but the first must report a race with the one before. It must name
 * that node, unless the content came through a node that took the block over once more. All other
 * accesses are free of races, and a node must find none.
 */
#include "sim.h"

static struct {
	u64 offset;			/* U64_MAX: there is no word */
	unsigned int size;
	u64 value;			/* before the stores */
	bool runs;			/* nodes may find the race */
	u64 *stored;			/* by node */
	u64 *next;			/* by node: number of the first race that it may report */
	unsigned int *taken;		/* by node: times that it took the block over */
} race;

void race_start(bool (*is_used)(u64 offset))
{
	unsigned int tries, at;
	u64 cell;

	race.offset = U64_MAX;
	race.size = 1 << sim_below(4);
	race.stored = calloc(sim.nodes, sizeof(*race.stored));
	race.next = calloc(sim.nodes, sizeof(*race.next));
	race.taken = calloc(sim.nodes, sizeof(*race.taken));
	for (tries = 0; config.race && tries < 64; tries++) {
		cell = used_cell(sim_below(config.blocks));
		if (is_used(cell))
			continue;
		at = 8 * sim_below(8) + race.size * sim_below(8 / race.size);
		race.offset = cell + at;
		return;
	}
	config.race = false;
}

void race_stop(void)
{
	free(race.stored);
	free(race.next);
	free(race.taken);
	memset(&race, 0, sizeof(race));
}

/* ---- accesses ---- */

static s64 block(void)
{
	return block_of(race.offset >> PAGE_SHIFT);
}

static u64 load(struct thread *thread)
{
	u64 value;

	thread_load(thread, race.offset, race.size, &value);
	sim_event(block(), "%u loads the word of the race: %llx", thread->number, value);
	return value;
}

static void store(struct thread *thread)
{
	unsigned int i;
	u64 value = 0;

	/* Each byte differs from that of each other node, and from that before */
	for (i = 0; i < race.size; i++)
		value |= (((race.value >> 8 * i) + 1 + thread->node) & 0xff) << 8 * i;
	race.stored[thread->node] = value;
	thread_store(thread, race.offset, race.size, value);
	sim_event(block(), "%u stores the word of the race: %llx", thread->number, value);
}

/* ---- what nodes report ---- */

/* Part of a value of the 8 bytes that the word is in */
static u64 part(u64 value)
{
	value >>= 8 * (race.offset % 8);
	return race.size == 8 ? value : value & ((1ULL << 8 * race.size) - 1);
}

/* The node that stored this value; sim.nodes: none */
static unsigned int writer_of(u64 value)
{
	unsigned int node = 0;

	while (node < sim.nodes && race.stored[node] != value)
		node++;
	return node;
}

/* named: by node, whether another node has found its value */
static void check_report(const struct kdsm_race *report, unsigned int node, bool *named)
{
	unsigned int writer = writer_of(part(report->theirs));
	u64 mask = part(U64_MAX) << 8 * (race.offset % 8);

	sim_event(block(), "node %u: %llx at %llx, node %u: %llx, before %llx", report->node,
		  report->ours, report->offset, report->other, report->theirs, report->before);
	if (report->offset != (race.offset & ~7ULL) || report->mask != mask)
		sim_fail(block(), "node %u reports a race at %llx, mask %llx, not %llx", node,
			 report->offset, report->mask, mask);
	if (report->node != node || report->other >= sim.nodes || report->other == node)
		sim_fail(block(), "node %u reports a race of node %u with node %u", node,
			 report->node, report->other);
	if (part(report->before) != race.value || part(report->ours) != race.stored[node] ||
	    writer == sim.nodes || writer == node || named[writer] ||
	    (writer != report->other && !race.taken[report->other]))
		sim_fail(block(), "node %u reports %llx and %llx of node %u, before %llx", node,
			 report->ours, report->theirs, report->other, report->before);
	named[writer] = true;
}

void race_taken(unsigned int node, u64 index)
{
	if (race.runs && (s64)index == block())
		race.taken[node]++;
}

/* A merge that reported the race is no reason to pass on another node's value. */
static void count_reporting(unsigned int node)
{
	u64 found = atomic64_read(&nodes[node].coherence.stats[KDSM_COHERENCE_RACES]);

	race.taken[node] -= min((u64)race.taken[node], found - race.next[node]);
}

/* Returns the node whose value is left: the one that no other node names */
static unsigned int check_reports(void)
{
	unsigned int node, found = 0, last = 0;
	u64 lost, missing = 0, before;
	struct kdsm_race report;
	bool *named = calloc(sim.nodes, sizeof(*named));

	for (node = 0; node < sim.nodes; node++)
		count_reporting(node);
	for (node = 0; node < sim.nodes; node++) {
		before = race.next[node];
		if (kdsm_coherence_races(&nodes[node].coherence, &report, 1, &race.next[node],
					 &lost)) {
			check_report(&report, node, named);
			found++;
		}
		missing += lost;
		if (race.next[node] > before + 1)
			sim_fail(block(), "node %u reports a race twice", node);
	}
	if (found + missing != sim.nodes - 1 || (missing && !sim.nomem && !sim.shortage))
		sim_fail(block(), "%u nodes report a race, of %u, and %llu are lost", found,
			 sim.nodes, missing);
	counts.raced += found;
	while (last < sim.nodes && named[last])
		last++;
	free(named);
	memset(race.taken, 0, sim.nodes * sizeof(*race.taken));
	return missing ? sim.nodes : last;
}

static bool is_spoiled(const struct kdsm_race *found)
{
	unsigned int i;

	for (i = 0; i < word_count; i++)
		if ((words[i].offset & ~7ULL) == found->offset && words[i].spoiled)
			return true;
	return false;
}

/* A node may find races for words that spoiled because a node died. */
void race_found(const struct kdsm_race *found)
{
	if (sim_is_dead(found->node) || is_spoiled(found) ||
	    (race.runs && found->offset == (race.offset & ~7ULL)))
		return;
	sim_fail(block_of(found->offset >> PAGE_SHIFT),
		 "node %u finds a race at %llx with node %u: %llx and %llx, before %llx",
		 found->node, found->offset, found->other, found->ours, found->theirs,
		 found->before);
}

/* ---- threads ---- */

void race_run(struct thread *thread, void (*pass)(struct thread *thread))
{
	bool first = thread->number % (config.processes * config.threads) == 0;
	unsigned int last;
	u64 value;

	threads_meet(thread);
	if (first && load(thread) != race.value)
		sim_fail(block(), "node %u: the word of the race is not %llx", thread->node,
			 race.value);
	threads_meet(thread);
	race.runs = true;
	if (first)
		store(thread);
	threads_meet(thread);
	pass(thread);
	if (thread->number == 0) {
		last = check_reports();
		race.runs = false;
		value = load(thread);
		if (last < sim.nodes && value != race.stored[last])
			sim_fail(block(), "the word of the race is %llx, not %llx", value,
				 race.stored[last]);
		race.value = value;
	}
	threads_meet(thread);
}
