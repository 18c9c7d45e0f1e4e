// SPDX-License-Identifier: GPL-2.0
/*
 * fault: node 0 reads a region that the target writes and releases before each round: single
 * blocks out of sequence, and the whole region in sequence; with write notices that name the
 * writer, and without. It follows the memory read benchmark of Endo's dissertation, 3.7.3.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coherent.h"

/* Fewest rounds of reading in sequence */
#define ROUNDS_MIN	3

static const uint64_t default_sizes[] = { 4096, 65536, 1048576, 16777216 };

enum order { SCATTERED, SEQUENTIAL };

struct way {
	const char *name;	/* in --only */
	enum order order;
	bool known;		/* a write notice names the writer */
};

static const struct way ways[] = {
	{ "miss", SCATTERED, true }, { "miss-unknown", SCATTERED, false },
	{ "sequence", SEQUENTIAL, true }, { "sequence-unknown", SEQUENTIAL, false },
};

static uint64_t value(uint64_t round, uint64_t word)
{
	return round << 32 | word;
}

/*
 * Drop all write notices, and raise the floor above them, as in a signature that is full: it
 * says that blocks were written, but not by which node.
 */
static void forget_writers(struct kdsm_signature *signature)
{
	uint32_t i;

	for (i = 0; i < signature->count; i++)
		if (signature->floor < signature->notices[i].ts)
			signature->floor = signature->notices[i].ts;
	signature->count = 0;
}

static int write_all(struct coherent *coherent, uint64_t round)
{
	static struct kdsm_signature signature;
	uint64_t i;
	int ret;

	for (i = 0; i < coherent->size / 8; i++)
		coherent->words[i] = value(round, i);
	ret = coherent_release(coherent, &signature);
	return ret ? ret : coherent_put(coherent, 0, round, &signature);
}

/* Reads in a round. */
static uint64_t scattered_reads(const struct coherent *coherent)
{
	uint64_t blocks = coherent->size / coherent->block;
	unsigned int calls = coherent->run.options->calls;

	return calls < blocks ? calls : blocks;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* Read each block at most once, and none after its neighbour. Returns the number of wrong words. */
static uint64_t read_scattered(struct coherent *coherent, uint64_t round,
			       struct samples *samples)
{
	uint64_t words = coherent->block / 8, blocks = coherent->size / coherent->block;
	uint64_t count = scattered_reads(coherent);
	uint64_t step = blocks > 4 ? blocks * 618 / 1000 : blocks - 1;
	uint64_t i, at = blocks - 1, seen, begin, bad = 0;

	while (blocks > 1 && gcd(step, blocks) != 1)
		step--;
	for (i = 0; i < count; i++) {
		begin = samples_begin(samples);
		seen = coherent->words[at * words];
		samples_end(samples, begin);
		bad += seen != value(round, at * words);
		at = (at + step) % blocks;
	}
	return bad;
}

static uint64_t read_sequential(struct coherent *coherent, uint64_t round,
				struct samples *samples)
{
	uint64_t i, begin, bad = 0;

	begin = samples_begin(samples);
	for (i = 0; i < coherent->size / 8; i++)
		bad |= coherent->words[i] ^ value(round, i);
	samples_end(samples, begin);
	return bad;
}

/* A round of node 0. If samples is NULL, it is not measured. */
static int read_round(struct coherent *coherent, const struct way *way, uint64_t round,
		      struct samples *samples)
{
	static struct kdsm_signature signature;
	uint64_t bad;
	int ret;

	ret = coherent_get(coherent, round, &signature);
	if (ret)
		return ret;
	if (!way->known)
		forget_writers(&signature);
	ret = coherent_acquire(coherent, &signature);
	if (!ret)
		ret = counting_begin(coherent);
	if (ret)
		return ret;
	if (way->order == SCATTERED)
		bad = read_scattered(coherent, round, samples);
	else
		bad = read_sequential(coherent, round, samples);
	if (bad)
		return complain(coherent->run.options, "node 0 did not read the data that the target wrote");
	return samples ? counting_end(coherent) : 0;
}

static const struct column columns[] = {
	{ "size", TABLE_RIGHT, 10 },
	{ "writer", TABLE_LEFT, 7 },
	{ "order", TABLE_LEFT, 8 },
	{ "median us", TABLE_RIGHT, 11 },
	{ "99th us", TABLE_RIGHT, 11 },
	{ "MB/s", TABLE_RIGHT, 8 },
	{ "faults", TABLE_RIGHT, 8 },
	{ "gets", TABLE_RIGHT, 8 },
	{ "chains", TABLE_RIGHT, 8 },
	{ "messages", TABLE_RIGHT, 8 },
	{ 0 }
};

static void report_way(struct coherent *coherent, const struct way *way,
		       struct samples *samples, unsigned int rounds)
{
	struct table *table = coherent->run.table;
	double per = way->order == SCATTERED ? samples->count : rounds;
	struct json_object *object;
	struct summary summary;

	samples_summarise(samples, &summary);
	object = coherent_result(coherent, way->order == SCATTERED ? "miss" : "sequence",
				 coherent->size, per);
	json_object_object_add(object, "writer_known", json_object_new_boolean(way->known));
	json_object_object_add(object, "latency_us", report_latency(&summary));
	if (way->order == SEQUENTIAL)
		json_object_object_add(object, "bytes_per_second",
				       json_object_new_double(coherent->size / summary.median *
							      1e6));
	if (!table)
		return;
	table_cell(table, "%llu", (unsigned long long)coherent->size);
	table_cell(table, "%s", way->known ? "known" : "unknown");
	table_cell(table, "%s", way->order == SCATTERED ? "one miss" : "sequence");
	table_cell(table, "%.2f", summary.median);
	table_cell(table, "%.2f", summary.p99);
	if (way->order == SCATTERED)
		table_cell(table, "-");
	else
		table_cell(table, "%.2f", coherent->size / summary.median);
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_READ_FAULTS, per));
	table_cell(table, "%.2f", coherent->sum.operations[KDSM_STAT_GET] / per);
	table_cell(table, "%.2f", coherent->sum.operations[KDSM_STAT_CHAINS] / per);
	table_cell(table, "%.2f", coherent->sum.operations[KDSM_STAT_AM] / per);
	table_print(table);
}

/* Runs on all nodes: the target writes, node 0 reads, other nodes wait. */
static int measure_way(struct coherent *coherent, const struct way *way)
{
	const struct run *run = &coherent->run;
	unsigned int calls = run->options->calls, reads, rounds, i;
	struct samples samples;
	int ret = 0;

	reads = scattered_reads(coherent);
	rounds = (calls + reads - 1) / reads;
	if (way->order == SEQUENTIAL && rounds < ROUNDS_MIN)
		rounds = ROUNDS_MIN;
	if (samples_init(&samples, way->order == SCATTERED ? rounds * reads : rounds))
		return complain(run->options, "no memory");
	counting_reset(coherent);
	/* The first round, which is not measured, allocates memory and opens connections. */
	for (i = 0; i <= rounds && !ret; i++) {
		coherent->handed++;
		if (run->node == run->target)
			ret = write_all(coherent, coherent->handed);
		else if (run->measures)
			ret = read_round(coherent, way, coherent->handed, i ? &samples : NULL);
		if (!ret)
			ret = run_meet(&coherent->run);
	}
	if (!ret && run->measures)
		report_way(coherent, way, &samples, rounds);
	samples_free(&samples);
	return ret;
}

int check_regions(const struct options *options, char *reason)
{
	uint64_t block = options->block ? options->block : 4096;
	const uint64_t *sizes = options->size_count ? options->sizes : default_sizes;
	unsigned int i, count = options->size_count;

	if (!count)
		count = sizeof(default_sizes) / sizeof(default_sizes[0]);
	for (i = 0; i < count; i++) {
		if (sizes[i] % block == 0)
			continue;
		snprintf(reason, REASON_SIZE, "--size: a region of %llu bytes is not a multiple of the block size %llu",
			 (unsigned long long)sizes[i], (unsigned long long)block);
		return -1;
	}
	return 0;
}

int bench_fault(const struct options *options)
{
	unsigned int i, way, count = options->size_count;
	uint32_t block = options->block ? options->block : 4096;
	const uint64_t *sizes = options->sizes;
	static struct coherent coherent;
	int ret;

	if (!count) {
		sizes = default_sizes;
		count = sizeof(default_sizes) / sizeof(default_sizes[0]);
	}
	ret = coherent_begin(&coherent, options);
	if (ret)
		return ret;
	run_table(&coherent.run, columns,
		  "node %u of %u reads data of node %u, blocks of %u bytes: one miss, or the whole region in\n"
		  "sequence; faults and remote operations of it",
		  coherent.run.node, coherent.run.nodes, coherent.run.target, block);
	for (i = 0; i < count && !ret; i++) {
		ret = coherent_open(&coherent, sizes[i], block);
		for (way = 0; way < sizeof(ways) / sizeof(ways[0]) && !ret; way++)
			if (!options->only || !strcmp(options->only, ways[way].name))
				ret = measure_way(&coherent, &ways[way]);
		if (!ret)
			ret = coherent_close(&coherent);
	}
	if (!ret && coherent.run.measures)
		report_end(&coherent.run);
	coherent_end(&coherent);
	return ret;
}
