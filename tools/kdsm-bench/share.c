// SPDX-License-Identifier: GPL-2.0
/*
 * falseshare: all nodes write stripes of one block concurrently, and wait for each other, as in
 * Endo's dissertation, 3.7.4. migrate: nodes write a block in turn.
 */
#include <stdio.h>
#include <string.h>
#include "coherent.h"

#define SHARED_BLOCK	32768

static const uint64_t default_stripes[] = { 8, 32, 128, 512, 2048, 4096 };
static const uint64_t default_blocks[] = { 4096, 32768, 262144 };

/* The value that a node writes in an iteration. */
static uint64_t value(unsigned int node, uint64_t round)
{
	return round << 16 | (node + 1);
}

/* ---- falseshare ---- */

static unsigned int stripe_writer(const struct coherent *coherent, uint64_t word,
				  uint64_t stripe)
{
	return word * 8 / stripe % coherent->run.nodes;
}

static int share_round(struct coherent *coherent, uint64_t stripe, uint64_t round,
		       struct samples *samples)
{
	unsigned int node = coherent->run.node;
	uint64_t i, begin = samples_begin(samples);
	int ret;

	for (i = 0; i < coherent->block / 8; i++)
		if (stripe_writer(coherent, i, stripe) == node)
			coherent->words[i] = value(node, round);
	ret = coherent_exchange(coherent);
	samples_end(samples, begin);
	return ret;
}

/* Check that each word has the value of its last writer. */
static int share_check(struct coherent *coherent, uint64_t stripe, uint64_t round)
{
	uint64_t i, bad = 0;

	for (i = 0; i < coherent->block / 8; i++)
		bad += coherent->words[i] != value(stripe_writer(coherent, i, stripe), round);
	return bad ? complain(coherent->run.options, "node %u: %llu words do not have the values that were written",
			      coherent->run.node, (unsigned long long)bad) : 0;
}

/* ---- migrate ---- */

/*
 * This node's turn. If samples is not NULL, time and counts run from the acquire to the release.
 * The node must find the values of the last turn.
 */
static int migrate_round(struct coherent *coherent, uint64_t round, struct samples *samples)
{
	static struct kdsm_signature signature;
	const struct run *run = &coherent->run;
	uint64_t turn = coherent->handed + round * run->nodes + run->node;
	uint64_t i, begin, bad = 0;
	int ret = 0;

	if (turn != coherent->handed + run->nodes)	/* the first turn waits for no other */
		ret = coherent_get(coherent, turn, &signature);
	else
		kdsm_signature_init(&signature);
	if (!ret && samples)
		ret = counting_begin(coherent);
	if (ret)
		return ret;
	begin = samples_begin(samples);
	ret = coherent_acquire(coherent, &signature);
	if (ret)
		return ret;
	for (i = 0; i < coherent->block / 8; i += 64) {
		bad += coherent->words[i] != (round - 1) * run->nodes + run->node;
		coherent->words[i]++;
	}
	ret = coherent_release(coherent, &signature);
	samples_end(samples, begin);
	if (!ret && samples)
		ret = counting_end(coherent);
	if (!ret && bad)
		ret = complain(run->options, "node %u: the block does not have the values that were written",
			       run->node);
	return ret ? ret : coherent_put(coherent, (run->node + 1) % run->nodes, turn + 1,
					&signature);
}

/* ---- both ---- */

static const struct column columns[] = {
	{ "bytes", TABLE_RIGHT, 8 },
	{ "median us", TABLE_RIGHT, 10 },
	{ "99th us", TABLE_RIGHT, 10 },
	{ "remote", TABLE_RIGHT, 8 },
	{ "faults", TABLE_RIGHT, 8 },
	{ "taken over", TABLE_RIGHT, 10 },
	{ "merges", TABLE_RIGHT, 8 },
	{ "flushes", TABLE_RIGHT, 8 },
	{ 0 }
};

static void report(struct coherent *coherent, const char *what, uint64_t size,
		   struct samples *samples, unsigned int rounds)
{
	struct table *table = coherent->run.table;
	struct json_object *object;
	struct summary summary;

	samples_summarise(samples, &summary);
	object = coherent_result(coherent, what, size, rounds);
	json_object_object_add(object, "latency_us", report_latency(&summary));
	if (!table)
		return;
	table_cell(table, "%llu", (unsigned long long)size);
	table_cell(table, "%.2f", summary.median);
	table_cell(table, "%.2f", summary.p99);
	table_cell(table, "%.2f", counted_remote(coherent, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_READ_FAULTS, rounds) +
				  counted(coherent, KDSM_COHERENCE_WRITE_FAULTS, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_SLOW_RELEASES, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_MERGES, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_FLUSHES, rounds));
	table_print(table);
}

static int measure(struct coherent *coherent, bool migrates, uint64_t size)
{
	const struct options *options = coherent->run.options;
	unsigned int rounds = options->calls, warmup = options->warmup, i;
	struct samples samples;
	int ret = 0;

	if (samples_init(&samples, rounds))
		return complain(options, "no memory");
	counting_reset(coherent);
	for (i = 1; i <= warmup + rounds && !ret; i++) {
		struct samples *to = i > warmup ? &samples : NULL;

		if (migrates) {
			ret = migrate_round(coherent, i, to);
			continue;
		}
		if (i == warmup + 1)
			ret = counting_begin(coherent);
		if (!ret)
			ret = share_round(coherent, size, i, to);
	}
	if (!ret && !migrates)
		ret = counting_end(coherent);
	if (!ret && !migrates)
		ret = share_check(coherent, size, warmup + rounds);
	/* The last signature goes to the first node, which does not wait for it: skip its value. */
	coherent->handed += (warmup + rounds + 2) * coherent->run.nodes;
	if (!ret && coherent->run.measures)
		report(coherent, migrates ? "turn" : "iteration", size, &samples, rounds);
	samples_free(&samples);
	return ret;
}

int check_stripes(const struct options *options, char *reason)
{
	uint64_t block = options->block ? options->block : SHARED_BLOCK;
	unsigned int i;

	for (i = 0; i < options->size_count; i++) {
		if (options->sizes[i] % 8 == 0 && options->sizes[i] <= block)
			continue;
		snprintf(reason, REASON_SIZE, "--size: a stripe of %llu bytes is not a multiple of 8, at most %llu",
			 (unsigned long long)options->sizes[i], (unsigned long long)block);
		return -1;
	}
	return 0;
}

int bench_share(const struct options *options)
{
	bool migrates = !strcmp(options->kind, "migrate");
	const uint64_t *sizes = options->sizes;
	unsigned int i, count = options->size_count;
	uint32_t block = options->block ? options->block : SHARED_BLOCK;
	static struct coherent coherent;
	int ret;

	if (!count) {
		sizes = migrates ? default_blocks : default_stripes;
		count = migrates ? sizeof(default_blocks) / sizeof(default_blocks[0]) :
				   sizeof(default_stripes) / sizeof(default_stripes[0]);
	}
	ret = coherent_begin(&coherent, options);
	if (ret)
		return ret;
	if (migrates)
		run_table(&coherent.run, columns,
			  "%u nodes write a block in turn: acquire, writing and release of node %u",
			  coherent.run.nodes, coherent.run.node);
	else
		run_table(&coherent.run, columns,
			  "%u nodes write stripes of one block of %u bytes, and meet:\n"
			  "time, remote operations and counts of an iteration, of node %u",
			  coherent.run.nodes, block, coherent.run.node);
	for (i = 0; i < count && !ret; i++) {
		if (migrates)
			block = sizes[i];
		ret = coherent_open(&coherent, block, block);
		if (!ret)
			ret = measure(&coherent, migrates, sizes[i]);
		if (!ret)
			ret = coherent_close(&coherent);
	}
	if (!ret && coherent.run.measures)
		report_end(&coherent.run);
	coherent_end(&coherent);
	return ret;
}
