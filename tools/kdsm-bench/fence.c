// SPDX-License-Identifier: GPL-2.0
/*
 * fence: a release of blocks that only this node writes, a release of blocks that another node
 * wrote before, and an acquire that makes blocks invalid. Node 0 measures; the target is the
 * other node.
 */
#include <stdio.h>
#include <string.h>
#include "coherent.h"

#define DEFAULT_BLOCKS	1000
#define DEFAULT_RANGES	10

struct fence {
	struct coherent coherent;
	uint64_t blocks, ranges;
	uint64_t value;		/* last value that a node wrote to all blocks */
	struct samples samples;
	struct kdsm_signature signature;
};

/* First word of block i. Between two ranges one block is left out. */
static volatile uint64_t *word_of(struct fence *fence, uint64_t i, uint64_t ranges)
{
	uint64_t range = i * ranges / fence->blocks;

	return fence->coherent.words + (i + range) * (fence->coherent.block / 8);
}

static void write_blocks(struct fence *fence, uint64_t ranges)
{
	uint64_t i;

	fence->value++;
	for (i = 0; i < fence->blocks; i++)
		*word_of(fence, i, ranges) = fence->value;
}

/* Number of blocks that do not have the last value. */
static uint64_t read_blocks(struct fence *fence, uint64_t ranges)
{
	uint64_t i, bad = 0;

	for (i = 0; i < fence->blocks; i++)
		bad += *word_of(fence, i, ranges) != fence->value;
	return bad;
}

static int release(struct fence *fence, bool measured)
{
	struct samples *samples = measured ? &fence->samples : NULL;
	uint64_t begin = samples_begin(samples);
	int ret;

	ret = coherent_release(&fence->coherent, &fence->signature);
	samples_end(samples, begin);
	return ret;
}

static int acquire(struct fence *fence, bool measured)
{
	struct samples *samples = measured ? &fence->samples : NULL;
	uint64_t begin = samples_begin(samples);
	int ret;

	ret = coherent_acquire(&fence->coherent, &fence->signature);
	samples_end(samples, begin);
	return ret;
}

/* The target writes, releases, and passes the signature to node 0. */
static int others_turn(struct fence *fence, uint64_t ranges)
{
	struct coherent *coherent = &fence->coherent;
	const struct run *run = &coherent->run;
	int ret;

	coherent->handed++;
	if (run->measures) {
		fence->value++;
		return coherent_get(coherent, coherent->handed, &fence->signature);
	}
	if (run->node != run->target)
		return 0;
	write_blocks(fence, ranges);
	ret = release(fence, false);
	return ret ? ret : coherent_put(coherent, 0, coherent->handed, &fence->signature);
}

/* Node 0 writes blocks that no other node writes. Counts begin before the first store. */
static int stay_round(struct fence *fence, bool measured)
{
	struct coherent *coherent = &fence->coherent;
	int ret;

	if (!coherent->run.measures) {
		fence->value++;
		return 0;
	}
	ret = counting_begin(coherent);
	if (ret)
		return ret;
	write_blocks(fence, 1);
	ret = release(fence, measured);
	return ret || !measured ? ret : counting_end(coherent);
}

/* Node 0 writes blocks that the target wrote, and measures the release. The target acquires. */
static int own_turn(struct fence *fence, bool measured)
{
	struct coherent *coherent = &fence->coherent;
	const struct run *run = &coherent->run;
	int ret;

	coherent->handed++;
	if (!run->measures) {
		fence->value++;
		if (run->node != run->target)
			return 0;
		ret = coherent_get(coherent, coherent->handed, &fence->signature);
		return ret ? ret : acquire(fence, false);
	}
	write_blocks(fence, 1);
	ret = counting_begin(coherent);
	if (!ret)
		ret = release(fence, measured);
	if (!ret && measured)
		ret = counting_end(coherent);
	return ret ? ret : coherent_put(coherent, run->target, coherent->handed,
					&fence->signature);
}

/* Both nodes write all blocks in turn. */
static int migrate_round(struct fence *fence, bool measured)
{
	const struct run *run = &fence->coherent.run;
	int ret;

	ret = own_turn(fence, measured);
	if (!ret)
		ret = others_turn(fence, 1);
	if (ret || !run->measures)
		return ret;
	ret = acquire(fence, false);
	if (!ret && read_blocks(fence, 1))
		ret = complain(run->options, "node 0 did not read the data that the target wrote");
	return ret;
}

/* Node 0 has copies of the blocks that the target writes. */
static int acquire_round(struct fence *fence, bool measured)
{
	struct coherent *coherent = &fence->coherent;
	const struct run *run = &coherent->run;
	int ret;

	ret = others_turn(fence, fence->ranges);
	if (ret || !run->measures)
		return ret;
	ret = counting_begin(coherent);
	if (!ret)
		ret = acquire(fence, measured);
	if (!ret && measured)
		ret = counting_end(coherent);
	if (!ret && read_blocks(fence, fence->ranges))
		ret = complain(run->options, "node 0 did not read the data that the target wrote");
	return ret;
}

static const struct column columns[] = {
	{ "what", TABLE_LEFT, 8 },
	{ "blocks", TABLE_RIGHT, 7 },
	{ "ranges", TABLE_RIGHT, 7 },
	{ "median us", TABLE_RIGHT, 11 },
	{ "99th us", TABLE_RIGHT, 11 },
	{ "remote", TABLE_RIGHT, 8 },
	{ "flushes", TABLE_RIGHT, 8 },
	{ "write faults", TABLE_RIGHT, 12 },
	{ "invalidations", TABLE_RIGHT, 13 },
	{ 0 }
};

static void report(struct fence *fence, const char *what, uint64_t ranges,
		   unsigned int rounds)
{
	struct coherent *coherent = &fence->coherent;
	struct table *table = coherent->run.table;
	struct json_object *object;
	struct summary summary;

	samples_summarise(&fence->samples, &summary);
	object = coherent_result(coherent, what, fence->blocks * coherent->block, rounds);
	json_object_object_add(object, "blocks", json_object_new_uint64(fence->blocks));
	json_object_object_add(object, "ranges", json_object_new_uint64(ranges));
	json_object_object_add(object, "latency_us", report_latency(&summary));
	if (!table)
		return;
	table_cell(table, "%s", what);
	table_cell(table, "%llu", (unsigned long long)fence->blocks);
	table_cell(table, "%llu", (unsigned long long)ranges);
	table_cell(table, "%.2f", summary.median);
	table_cell(table, "%.2f", summary.p99);
	table_cell(table, "%.2f", counted_remote(coherent, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_FLUSHES, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_WRITE_FAULTS, rounds));
	table_cell(table, "%.2f", counted(coherent, KDSM_COHERENCE_INVALIDATIONS, rounds));
	table_print(table);
}

static int measure(struct fence *fence, const char *what, uint64_t ranges,
		   int (*round)(struct fence *fence, bool measured))
{
	unsigned int rounds = fence->coherent.run.options->calls, i;
	int ret = 0;

	if (fence->coherent.run.options->only && strcmp(fence->coherent.run.options->only, what))
		return 0;
	if (samples_init(&fence->samples, rounds))
		return complain(fence->coherent.run.options, "no memory");
	counting_reset(&fence->coherent);
	/* The first two rounds allocate memory and give blocks their owners. */
	for (i = 0; i < rounds + 2 && !ret; i++) {
		ret = round(fence, i >= 2);
		if (!ret)
			ret = run_meet(&fence->coherent.run);
	}
	if (!ret && fence->coherent.run.measures)
		report(fence, what, ranges, rounds);
	samples_free(&fence->samples);
	return ret;
}

int check_ranges(const struct options *options, char *reason)
{
	uint64_t blocks = options->blocks ? options->blocks : DEFAULT_BLOCKS;
	uint64_t ranges = options->ranges ? options->ranges : DEFAULT_RANGES;

	if (ranges <= blocks)
		return 0;
	snprintf(reason, REASON_SIZE, "--ranges: there are only %llu blocks for %llu ranges",
		 (unsigned long long)blocks, (unsigned long long)ranges);
	return -1;
}

int bench_fence(const struct options *options)
{
	uint32_t block = options->block ? options->block : 4096;
	static struct fence fence;
	struct coherent *coherent = &fence.coherent;
	int ret;

	fence.blocks = options->blocks ? options->blocks : DEFAULT_BLOCKS;
	fence.ranges = options->ranges ? options->ranges : DEFAULT_RANGES;
	ret = coherent_begin(coherent, options);
	if (ret)
		return ret;
	run_table(&coherent->run, columns,
		  "fences of node %u of %u, the other node is %u; blocks of %u bytes; %u rounds:\n"
		  "times, remote operations and counts of one round",
		  coherent->run.node, coherent->run.nodes, coherent->run.target, block,
		  options->calls);
	ret = coherent_open(coherent, (fence.blocks + fence.ranges) * block, block);
	if (!ret)
		ret = measure(&fence, "stayed", 1, stay_round);
	if (!ret)
		ret = measure(&fence, "migrated", 1, migrate_round);
	if (!ret)
		ret = measure(&fence, "acquire", fence.ranges, acquire_round);
	if (!ret)
		ret = coherent_close(coherent);
	if (!ret && coherent->run.measures)
		report_end(&coherent->run);
	coherent_end(coherent);
	return ret;
}
