// SPDX-License-Identifier: GPL-2.0
/*
 * kdsm-bench(1): times and counts of operations on the memory of other nodes.
 * Here: the command line.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/table.h>
#include "coherent.h"

static const char doc[] =
	"Start it on every node of a cluster with the same arguments: node 0 "
	"measures and prints, the others hold the memory.\v"
	"KIND: get, put, cas, faa: latency of one operation, or of a vector of "
	"them. am: round trip of an active message (a faa in domain sw). bw: "
	"bandwidth of gets and puts. table: find-or-put of 16-byte nodes in a "
	"distributed table.\n\nOf coherent regions: fault: read misses of what another "
	"node wrote. fence: releases and acquires. falseshare: stripes of one block "
	"that all nodes write. migrate: a block that nodes write in turn.\n\nlock: how often "
	"threads of all nodes get a lock, and how long it takes. task: programs made of "
	"tasks. steal: how long it takes to steal one.\n\nSizes take a suffix K or M. Exit status: 0 success, "
	"1 failure, 2 wrong usage. See kdsm-bench(1).";

enum {
	KEY_LOCAL = 256,
	KEY_TIMEOUT,
	KEY_ENTRIES,
	KEY_CACHE,
	KEY_LOADS,
	KEY_WARMUP,
	KEY_SECONDS,
	KEY_BLOCK,
	KEY_BLOCKS,
	KEY_RANGES,
	KEY_ONLY,
	KEY_FIND,
};

/* What may be said after the kind, and what counts if it is not. */
static const struct kind {
	const char *name;
	int (*bench)(const struct options *options);
	uint64_t size_max;
	unsigned int calls;
} kinds[] = {
	{ "get", bench_latency, KDSM_MAX_OP_LENGTH, 1000 },
	{ "put", bench_latency, KDSM_MAX_OP_LENGTH, 1000 },
	{ "cas", bench_latency, KDSM_MAX_OP_LENGTH, 1000 },
	{ "faa", bench_latency, KDSM_MAX_OP_LENGTH, 1000 },
	{ "am", bench_latency, KDSM_MAX_OP_LENGTH, 1000 },
	{ "bw", bench_bandwidth, KDSM_MAX_OP_LENGTH, 1000 },
	{ "table", bench_table, KDSM_MAX_OP_LENGTH, 1000 },
	{ "fault", bench_fault, 1ULL << 32, 500 },
	{ "fence", bench_fence, 0, 5 },
	{ "falseshare", bench_share, 2 << 20, 200 },
	{ "migrate", bench_share, 2 << 20, 200 },
	{ "lock", bench_lock, 0, 500 },
	{ "task", bench_task, 0, 5 },
	{ "steal", bench_task, 0, 1000 },
	{ 0 }
};

static const struct argp_option arguments[] = {
	{ "json", 'j', NULL, 0, "Print one JSON object", 0 },
	{ "size", 's', "BYTES[,BYTES...]", 0,
	  "Of a get or put; default 8, bw 4K,64K,1M; fault: of the region; falseshare: of a stripe; migrate: of the block",
	  0 },
	{ "vector", 'v', "N", 0, "Operations in one call; default 1, bw 4", 0 },
	{ "calls", 'n', "N", 0,
	  "Calls to measure; default 1000, fault 500; fence: rounds, 5; falseshare, migrate: rounds, 200; lock: of each thread, 500; task: runs, 5",
	  0 },
	{ "warmup", KEY_WARMUP, "N", 0, "Calls before that; default a tenth", 0 },
	{ "target", 't', "NODE", 0, "Whose memory; default 1; 0 measures local operations", 0 },
	{ "seconds", KEY_SECONDS, "S", 0, "bw: for each size and direction; default 1; lock: for each line, rather than --calls",
	  0 },
	{ "entries", KEY_ENTRIES, "N", 0, "table: of all nodes together; default 64K", 0 },
	{ "loads", KEY_LOADS, "L[,L...]", 0, "table: default 0.5,0.8,0.9", 0 },
	{ "cache", KEY_CACHE, "N", 0,
	  "table: remote nodes kept in a cache; default the least, 1K", 0 },
	{ "find", KEY_FIND, "WAY", 0,
	  "table: one-sided (the default), message, or auto: as is measured to be faster", 0 },
	{ "block", KEY_BLOCK, "BYTES", 0,
	  "fault, fence: of a block; default 4K; falseshare: 32K", 0 },
	{ "blocks", KEY_BLOCKS, "N", 0, "fence: written in each round; default 1000", 0 },
	{ "ranges", KEY_RANGES, "N", 0,
	  "fence: that the blocks lie in for an acquire; default 10", 0 },
	{ "only", KEY_ONLY, "WHAT", 0, "fence: stayed, migrated or acquire, not all three", 0 },
	{ "timeout", KEY_TIMEOUT, "S", 0, "How long to wait for the other nodes; default 300", 0 },
	{ "local", KEY_LOCAL, NULL, 0, "One node without module: table only, or --target 0", 0 },
	{ 0 }
};

int complain(const struct options *options, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "kdsm-bench %s: ", options->kind);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return 1;
}

static uint64_t parse_size(struct argp_state *state, const char *word, char **end,
			   uint64_t most)
{
	unsigned long long value;

	errno = 0;
	value = strtoull(word, end, 10);
	if (*end == word || errno || word[0] < '0' || word[0] > '9')
		argp_error(state, "'%s' is not a number", word);
	if (**end == 'K' || **end == 'M') {
		if (value > most)
			value = most + 1;
		else
			value <<= **end == 'K' ? 10 : 20;
		(*end)++;
	}
	if ((**end && **end != ',') || value < 1 || value > most)
		argp_error(state, "'%s' is not from 1 to %llu", word,
			   (unsigned long long)most);
	return value;
}

static uint64_t parse_one(struct argp_state *state, const char *word, uint64_t most)
{
	uint64_t value;
	char *end;

	value = parse_size(state, word, &end, most);
	if (*end)
		argp_error(state, "'%s' is not one number", word);
	return value;
}

static double parse_real(struct argp_state *state, const char *word, char **end,
			 double least, double most)
{
	double value = strtod(word, end);

	if (*end == word || (**end && **end != ',') || !(value >= least && value <= most))
		argp_error(state, "'%s' is not from %g to %g", word, least, most);
	return value;
}

static double parse_seconds(struct argp_state *state, const char *word)
{
	double value;
	char *end;

	value = parse_real(state, word, &end, 0.001, 1e6);
	if (*end)
		argp_error(state, "'%s' is not one number", word);
	return value;
}

static void parse_sizes(struct argp_state *state, const char *word, struct options *options)
{
	char *end;

	for (options->size_count = 0;; word = end + 1) {
		if (options->size_count == MAX_LIST)
			argp_error(state, "more than %d sizes", MAX_LIST);
		options->sizes[options->size_count++] =
			parse_size(state, word, &end, 1ULL << 32);
		if (!*end)
			break;
	}
}

static uint32_t parse_find(struct argp_state *state, const char *word)
{
	if (!strcmp(word, "message"))
		return KDSM_TABLE_MESSAGE;
	if (!strcmp(word, "one-sided"))
		return KDSM_TABLE_ONE_SIDED;
	if (strcmp(word, "auto"))
		argp_error(state, "'%s' is not one-sided, message or auto", word);
	return KDSM_TABLE_AUTO;
}

static void parse_loads(struct argp_state *state, const char *word, struct options *options)
{
	double load, last = 0;
	char *end;

	for (options->load_count = 0;; word = end + 1) {
		if (options->load_count == MAX_LIST)
			argp_error(state, "more than %d loads", MAX_LIST);
		load = parse_real(state, word, &end, 0.01, 0.97);
		/* The table is filled further from one to the next. */
		if (load <= last)
			argp_error(state, "loads must grow");
		options->loads[options->load_count++] = load;
		last = load;
		if (!*end)
			break;
	}
}

static const struct kind *kind_of(const char *name)
{
	const struct kind *kind = kinds;

	while (kind->name && strcmp(name, kind->name))
		kind++;
	return kind->name ? kind : NULL;
}

/* What holds for one kind only can be said when all options are known. */
static void check(struct argp_state *state, struct options *options)
{
	const struct kind *kind;
	unsigned int i;

	if (!options->kind)
		argp_error(state, "which KIND?");
	kind = kind_of(options->kind);
	if (options->size_count && !kind->size_max)
		argp_error(state, "%s has no --size", kind->name);
	for (i = 0; i < options->size_count; i++)
		if (options->sizes[i] > kind->size_max)
			argp_error(state, "a size of %s is at most %llu", kind->name,
				   (unsigned long long)kind->size_max);
	if (!options->calls)
		options->calls = kind->calls;
	if (!options->warmup)
		options->warmup = options->calls / 10 + 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->lock;
		state->child_inputs[1] = &options->task;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case 's':
		parse_sizes(state, arg, options);
		return 0;
	case 'v':
		options->vector = parse_one(state, arg, KDSM_MAX_OPS);
		return 0;
	case 'n':
		options->calls = parse_one(state, arg, 100000000);
		return 0;
	case KEY_WARMUP:
		options->warmup = parse_one(state, arg, 100000000);
		return 0;
	case 't':
		options->target = !strcmp(arg, "0") ? 0 :
			(int)parse_one(state, arg, KDSM_MAX_NODES - 1);
		return 0;
	case KEY_SECONDS:
		options->seconds = parse_seconds(state, arg);
		return 0;
	case KEY_TIMEOUT:
		options->timeout = parse_seconds(state, arg);
		return 0;
	case KEY_ENTRIES:
		options->entries = parse_one(state, arg, 1ULL << 36);
		return 0;
	case KEY_CACHE:
		options->cache = parse_one(state, arg, 1ULL << 32);
		return 0;
	case KEY_FIND:
		options->find = parse_find(state, arg);
		return 0;
	case KEY_LOADS:
		parse_loads(state, arg, options);
		return 0;
	case KEY_BLOCK:
		options->block = parse_one(state, arg, 2 << 20);
		if (options->block < 4096 || options->block & (options->block - 1))
			argp_error(state, "a block has 4K to 2M bytes, a power of two");
		return 0;
	case KEY_BLOCKS:
		options->blocks = parse_one(state, arg, 1 << 24);
		return 0;
	case KEY_RANGES:
		options->ranges = parse_one(state, arg, 1 << 24);
		return 0;
	case KEY_ONLY:
		if (strcmp(arg, "stayed") && strcmp(arg, "migrated") && strcmp(arg, "acquire"))
			argp_error(state, "'%s' is not stayed, migrated or acquire", arg);
		options->only = arg;
		return 0;
	case KEY_LOCAL:
		options->local = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->kind)
			argp_error(state, "more than one KIND: '%s'", arg);
		if (!kind_of(arg))
			argp_error(state, "unknown KIND '%s'", arg);
		options->kind = kind_of(arg)->name;
		return 0;
	case ARGP_KEY_END:
		check(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &lock_argp, 0, "Of locks:", 0 },
	{ &task_argp, 0, "Of tasks:", 0 },
	{ 0 }
};

int main(int argc, char **argv)
{
	const struct argp argp = {
		.options = arguments,
		.parser = parse,
		.args_doc = "KIND",
		.doc = doc,
		.children = children,
	};
	struct options options = {
		.target = -1,
		.timeout = 300,
		.entries = 65536,
		.cache = 1,
		.find = KDSM_TABLE_ONE_SIDED,
		.loads = { 0.5, 0.8, 0.9 },
		.load_count = 3,
	};

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	return kind_of(options.kind)->bench(&options);
}
