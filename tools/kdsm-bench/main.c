// SPDX-License-Identifier: GPL-2.0
/*
 * kdsm-bench(1): times and counts of operations on the memory of other nodes. The command
 * lines of all kinds are here, but for options of locks and tasks only.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/table.h>

#include "coherent.h"
#include "common/cluster.h"
#include "lock.h"

#define MOST_CALLS	100000000
#define MOST_TIME	(1000000 * SECOND)
#define MOST_BLOCK	(2 << 20)		/* size of a block, in bytes */
#define MOST_REGION	(UINT64_C(1) << 32)	/* size of a region that is measured, in bytes */

int complain(const struct options *options, const char *format, ...)
{
	static bool complained;
	va_list args;

	/* Nodes of a virtual run fail after the first one, because of it. */
	if (in_virtual_run() && complained)
		return EXIT_FAILURE;
	complained = true;
	fflush(stdout);
	fprintf(stderr, "kdsm-bench %s: ", options->kind);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

/* ---- lists ---- */

struct list {
	struct options *options;
	uint64_t most;		/* of a size */
};

static int take_size(void *values, unsigned int index, const char *text, char *reason)
{
	struct list *list = values;
	const struct range range = { 1, list->most, 1 };

	return size_parse(text, &range, &list->options->sizes[index], reason);
}

static int parse_sizes(struct options *options, const char *text, uint64_t most, char *reason)
{
	struct list list = { options, most };
	int count = list_parse(text, MAX_LIST, take_size, &list, reason);

	if (count < 0)
		return -1;
	options->size_count = count;
	return 0;
}

static int parse_operations(void *values, const char *text, char *reason)
{
	return parse_sizes(values, text, KDSM_MAX_OP_LENGTH, reason);
}

static int parse_regions(void *values, const char *text, char *reason)
{
	return parse_sizes(values, text, MOST_REGION, reason);
}

static int parse_stripes(void *values, const char *text, char *reason)
{
	return parse_sizes(values, text, MOST_BLOCK, reason);
}

static int take_block(void *values, unsigned int index, const char *text, char *reason)
{
	return block_parse(text, &((struct options *)values)->sizes[index], reason);
}

static int parse_blocks(void *values, const char *text, char *reason)
{
	struct options *options = values;
	int count = list_parse(text, MAX_LIST, take_block, options, reason);

	if (count < 0)
		return -1;
	options->size_count = count;
	return 0;
}

/* Loads grow, because the table is filled further from one to the next. */
static int take_load(void *values, unsigned int index, const char *text, char *reason)
{
	double *loads = values;

	if (real_parse(text, 0.01, 0.97, &loads[index], reason))
		return -1;
	if (!index || loads[index] > loads[index - 1])
		return 0;
	snprintf(reason, REASON_SIZE, "loads must grow, but %g follows %g", loads[index],
		 loads[index - 1]);
	return -1;
}

static int parse_loads(void *values, const char *text, char *reason)
{
	struct options *options = values;
	int count = list_parse(text, MAX_LIST, take_load, options->loads, reason);

	if (count < 0)
		return -1;
	options->load_count = count;
	return 0;
}

static int parse_block(void *values, const char *text, char *reason)
{
	return block_parse(text, &((struct options *)values)->block, reason);
}

/* ---- options, which kinds share ---- */

static const struct cli_option common[] = {
	{ "json", 'j', NULL, "Print one JSON object", CLI_FLAG, AT(json) },
	{ "timeout", 0, "SECONDS", "Wait for the other nodes for this time at most (300)", CLI_TIME,
	  AT(timeout), .range = { SECOND / 1000, MOST_TIME, SECOND } },
	{ "local", 0, NULL, "Use this machine as one node, without the kernel module", CLI_FLAG,
	  AT(local) },
	{ 0 }
};

static const struct cli_option calls[] = {
	{ "calls", 'n', "N", "Number of calls, rounds or runs to measure", CLI_COUNT, AT(calls),
	  .range = { 1, MOST_CALLS, 1 } },
	{ 0 }
};

static const struct cli_option warmup[] = {
	{ "warmup", 0, "N", "Number of calls or rounds before the first that is measured (a tenth)",
	  CLI_COUNT, AT(warmup), .range = { 1, MOST_CALLS, 1 } },
	{ 0 }
};

static const struct cli_option target[] = {
	{ "target", 't', "NODE", "Node whose memory is used (1)", CLI_COUNT, AT(target),
	  .range = { 0, KDSM_MAX_NODES - 1, 1 } },
	{ 0 }
};

static const struct cli_option seconds[] = {
	{ "seconds", 0, "SECONDS", "Time of each measurement", CLI_TIME, AT(duration),
	  .range = { SECOND / 1000, MOST_TIME, SECOND } },
	{ 0 }
};

static const struct cli_option vector[] = {
	{ "vector", 'v', "N", "Number of operations in one call", CLI_COUNT, AT(vector),
	  .range = { 1, KDSM_MAX_OPS, 1 } },
	{ 0 }
};

static const struct cli_option flight[] = {
	{ "flight", 'f', "N", "Number of operations in flight (64)", CLI_COUNT, AT(vector),
	  .range = { 1, KDSM_RING_MAX_ENTRIES, 1 } },
	{ 0 }
};

static const struct cli_option block[] = {
	{ "block", 0, "SIZE", "Block size, a power of two", CLI_PARSED, .parse = parse_block },
	{ 0 }
};

static const struct cli_option operation_sizes[] = {
	{ "size", 's', "SIZE[,SIZE...]", "Sizes of an operation", CLI_PARSED,
	  .parse = parse_operations },
	{ 0 }
};

static const struct cli_option region_sizes[] = {
	{ "size", 's', "SIZE[,SIZE...]", "Sizes of the region", CLI_PARSED,
	  .parse = parse_regions },
	{ 0 }
};

static const struct cli_option stripe_sizes[] = {
	{ "size", 's', "SIZE[,SIZE...]", "Sizes of a stripe", CLI_PARSED,
	  .parse = parse_stripes },
	{ 0 }
};

static const struct cli_option block_sizes[] = {
	{ "size", 's', "SIZE[,SIZE...]", "Sizes of the block", CLI_PARSED,
	  .parse = parse_blocks },
	{ 0 }
};

/* ---- options of one kind ---- */

static const struct cli_option table[] = {
	{ "entries", 0, "N", "Nodes that the table holds, all parts together (64K)", CLI_NUMBER,
	  AT(entries), .range = { 1, UINT64_C(1) << 36, 1 } },
	{ "loads", 0, "LOAD[,LOAD...]", "Growing loads of the table (0.5,0.8,0.9)", CLI_PARSED,
	  .parse = parse_loads },
	{ "cache", 0, "N", "Nodes of other parts that node 0 caches (the fewest possible, 1K)",
	  CLI_NUMBER, AT(cache), .range = { 1, UINT64_C(1) << 32, 1 } },
	{ "find", 0, "WAY",
	  "Find nodes one-sided, by message, or auto: as is measured to be faster (one-sided)",
	  CLI_CHOICE, AT(find), .words = find_ways },
	{ 0 }
};

static const char *const fault_parts[] = {
	"miss", "miss-unknown", "sequence", "sequence-unknown", NULL
};

static const struct cli_option fault[] = {
	{ "only", 0, "PART",
	  "Measure only miss or sequence, whose writer is known, or miss-unknown or sequence-unknown",
	  CLI_WORD, AT(only), .words = fault_parts },
	{ 0 }
};

static const char *const fence_parts[] = { "stayed", "migrated", "acquire", NULL };

static const struct cli_option fence[] = {
	{ "blocks", 0, "N", "Blocks that are written in a round (1000)", CLI_NUMBER, AT(blocks),
	  .range = { 1, 1 << 24, 1 } },
	{ "ranges", 0, "N", "Ranges that these blocks are spread over for an acquire (10)",
	  CLI_NUMBER, AT(ranges), .range = { 1, 1 << 24, 1 } },
	{ "only", 0, "PART", "Measure only stayed, migrated or acquire", CLI_WORD, AT(only),
	  .words = fence_parts },
	{ 0 }
};

/* ---- kinds ---- */

static const struct kind {
	const char *name, *summary;
	int (*bench)(const struct options *options);
	unsigned int calls;	/* default of --calls */
	const char *doc;
	const struct cli_option *options[CLI_TABLES];
	int (*check)(const struct options *options, char *reason);
} kinds[] = {
	{ "get", "Latency of gets of another node's memory", bench_latency, 1000,
	  "Latency of a get, or of a vector of gets, and how many a second there are with 64 in flight.\v"
	  "Default: 1000 calls of one get of 8 bytes.",
	  { common, calls, warmup, target, vector, operation_sizes }, NULL },
	{ "put", "Latency of puts", bench_latency, 1000,
	  "Latency of a put, or of a vector of puts, and how many a second there are with 64 in flight.\v"
	  "Default: 1000 calls of one put of 8 bytes.",
	  { common, calls, warmup, target, vector, operation_sizes }, NULL },
	{ "cas", "Latency of compare-and-swaps", bench_latency, 1000,
	  "Latency of a compare-and-swap, or of a vector of them, and how many a second there are with "
	  "64 in flight.\vDefault: 1000 calls of one compare-and-swap.",
	  { common, calls, warmup, target, vector }, NULL },
	{ "faa", "Latency of fetch-and-adds", bench_latency, 1000,
	  "Latency of a fetch-and-add, or of a vector of them, and how many a second there are with 64 "
	  "in flight.\vDefault: 1000 calls of one fetch-and-add.",
	  { common, calls, warmup, target, vector }, NULL },
	{ "am", "Round trip of active messages", bench_latency, 1000,
	  "Round trip of an active message, which a fetch-and-add is in domain sw.\v"
	  "Default: 1000 calls of one message.",
	  { common, calls, warmup, target, vector }, NULL },
	{ "bw", "Bandwidth of gets and puts", bench_bandwidth, 0,
	  "Bandwidth of gets and puts, by size.\v"
	  "Default: one second for each size and direction, vectors of 4 operations, sizes "
	  "4K,64K,1M.",
	  { common, target, seconds, vector, operation_sizes }, NULL },
	{ "ring", "Operations a second with many in flight", bench_ring, 2000,
	  "Gets, puts and fetch-and-adds by a ring, with one and with many in flight, beside one call "
	  "after the other: how many a second, and how many system calls each takes.\v"
	  "Default: 2000 operations of 64 bytes, 64 in flight.",
	  { common, calls, warmup, target, flight, operation_sizes }, NULL },
	{ "table", "Find-or-put in a distributed table", bench_table, 1000,
	  "Find-or-put of 16-byte nodes in a distributed table.\v"
	  "Default: 1000 calls for each load and mix of finds and inserts.",
	  { common, calls, table }, NULL },
	{ "fault", "Read misses in a coherent region", bench_fault, 500,
	  "Read misses of data that another node wrote, in a coherent region.\v"
	  "Default: 500 misses, blocks of 4K, sizes 4K,64K,1M,16M.",
	  { common, calls, target, block, region_sizes, fault }, check_regions },
	{ "fence", "Releases and acquires of a coherent region", bench_fence, 5,
	  "Releases and acquires of a coherent region.\vDefault: 5 rounds, blocks of 4K.",
	  { common, calls, target, block, fence }, check_ranges },
	{ "falseshare", "Stripes of one block that all nodes write", bench_share, 200,
	  "Stripes of one block that all nodes write concurrently.\v"
	  "Default: 200 rounds, a block of 32K, stripes of 8,32,128,512,2K,4K.",
	  { common, calls, warmup, target, block, stripe_sizes }, check_stripes },
	{ "migrate", "A block that nodes write in turn", bench_share, 200,
	  "A block that nodes write in turn.\vDefault: 200 turns, sizes 4K,32K,256K.",
	  { common, calls, warmup, target, block_sizes }, NULL },
	{ "lock", "Acquisitions of a lock by threads of all nodes", bench_lock, 500,
	  "Acquisitions of a lock by threads of all nodes: how many a second, and how long each takes.\v"
	  "Default: 500 acquisitions by each thread; --seconds measures for a time instead, "
	  "which shows contention.",
	  { common, calls, warmup, target, seconds, lock_options_table }, NULL },
	{ "held", "Locks that a node holds, against locks of pthreads", bench_held, 1000000,
	  "Locking and unlocking of a lock that node 0 holds, against locks of pthreads that processes "
	  "share: how long both take, and the ratio.\vDefault: 5 rounds of 1000000 calls.",
	  { common, calls, warmup, held_options_table }, NULL },
	{ "task", "Programs made of tasks", bench_task, 5,
	  "Programs made of tasks, and their speed-up.\vDefault: 5 runs; with --virtual 1.",
	  { common, calls, task_options_table, task_programs_table, virtual_options_table },
	  NULL },
	{ "steal", "Stealing of tasks", bench_task, 1000,
	  "Time to steal a task.\vDefault: 1000 tasks.",
	  { common, calls, warmup, task_options_table }, NULL },
	{ "barrier", "Barriers of all nodes", bench_barrier, 1000,
	  "Time of a barrier of all nodes.\vDefault: 1000 barriers.",
	  { common, calls, warmup, virtual_options_table }, NULL },
	{ 0 }
};

static const struct kind *kind_of(const char *name)
{
	const struct kind *kind = kinds;

	while (strcmp(kind->name, name))
		kind++;
	return kind;
}

static int check(void *values, char *reason)
{
	struct options *options = values;
	const struct kind *kind = kind_of(options->kind);

	if (virtual_check(&options->virtual, reason))
		return -1;
	if (options->virtual.given && (options->local || options->task.workers)) {
		snprintf(reason, REASON_SIZE, "--virtual and --%s: give one of them; %s",
			 options->local ? "local" : "workers", options->local ?
			 "a virtual run needs no module either" :
			 "--virtual NODESxWORKERS has the workers of a node");
		return -1;
	}
	if (!options->task.workers)
		options->task.workers = options->virtual.given ? options->virtual.workers : 2;
	/* Measurements at a price do not differ, and others take long. */
	if (!options->calls)
		options->calls = options->virtual.given && kind->bench == bench_task ?
				 1 : kind->calls;
	if (!options->warmup)
		options->warmup = options->calls / 10 + 1;
	if (kind->bench == bench_lock)
		lock_options_complete(&options->lock);
	return kind->check ? kind->check(options, reason) : 0;
}

/* argv[0] ends in the name of the kind. */
static int run_kind(int argc, char **argv)
{
	const struct kind *kind = kind_of(strrchr(argv[0], ' ') + 1);
	struct options options = {
		.kind = kind->name,
		.target = NEXT_NODE,
		.timeout = 300 * SECOND,
		.entries = 65536,
		.cache = 1,
		.find = KDSM_TABLE_ONE_SIDED,
		.loads = { 0.5, 0.8, 0.9 },
		.load_count = 3,
		.lock = { .keep = KDSM_LOCK_KEEP_FOREVER },
		.task = { .fib = 30, .depth = 8 },
	};
	struct cli cli = { .doc = kind->doc, .check = check };

	virtual_init(&options.virtual);
	memcpy(cli.options, kind->options, sizeof(cli.options));
	cli_parse(&cli, argc, argv, &options);
	return kind->bench(&options);
}

int main(int argc, char **argv)
{
	struct cli_command commands[sizeof(kinds) / sizeof(kinds[0])] = { 0 };
	unsigned int i;

	for (i = 0; kinds[i].name; i++)
		commands[i] = (struct cli_command){
			.name = kinds[i].name,
			.doc = kinds[i].summary,
			.run = run_kind,
		};
	return cli_run(commands,
		       "Measure a cluster. Start it on every node with the same arguments: node 0 "
		       "measures and prints, the other nodes serve their memory.\v"
		       "'kdsm-bench COMMAND --help' lists the options of a command. Exit status: 0 "
		       "success, 1 failure, 64 wrong usage. See kdsm-bench(1).", argc, argv);
}
