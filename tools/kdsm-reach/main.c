// SPDX-License-Identifier: GPL-2.0
/*
 * kdsm-reach: the reachable states of a model, by all nodes of a cluster. This
 * file has the command line; what is printed is in print.c, what is computed in
 * the library.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "print.h"

const char *argp_program_version = "kdsm-reach 0.1.0";

/*
 * Together they fit beside a system in a machine of 512 MiB, even on one node.
 * Of 64 MiB, the table has room for 2.8 million nodes.
 */
#define DEFAULT_TABLE	64	/* MiB */
#define DEFAULT_CACHE	32
#define DEFAULT_TIMEOUT	30	/* s */
#define MAX_WORKERS	256

enum { OPTION_JSON = 256, OPTION_LOCAL, OPTION_TABLE, OPTION_CACHE, OPTION_JOB,
	OPTION_TIMEOUT, OPTION_GRANULARITY, OPTION_DEADLOCKS, OPTION_TRACE, OPTION_STRATEGY };

static const struct argp_option options[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print one JSON object", 0 },
	{ "local", OPTION_LOCAL, NULL, 0,
	  "Search on this machine alone, without the kernel module", 0 },
	{ "workers", 'w', "WORKERS", 0, "Threads on this node (1)", 0 },
	{ "table", OPTION_TABLE, "MIB", 0,
	  "Memory for BDD nodes, of all nodes of the cluster together (64)", 0 },
	{ "cache", OPTION_CACHE, "MIB", 0,
	  "Memory for results of operations, likewise (32)", 0 },
	{ "granularity", OPTION_GRANULARITY, "K", 0,
	  "Share results with other nodes at every K-th variable (0: not)", 0 },
	{ "strategy", OPTION_STRATEGY, "NAME", 0,
	  "bfs, breadth first (the default), or chaining, with fewer rounds", 0 },
	{ "deadlocks", OPTION_DEADLOCKS, NULL, 0,
	  "Count the states that have no successor", 0 },
	{ "trace", OPTION_TRACE, NULL, 0,
	  "Show a shortest way to each violated property, and to a deadlock", 0 },
	{ "job", OPTION_JOB, "NAME", 0,
	  "Programs with the same name search together (KDSM_JOB, else the default)", 0 },
	{ "timeout", OPTION_TIMEOUT, "SECONDS", 0,
	  "Give up when another node shows no sign of life for so long (30)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct arguments {
	struct kd_reach_options reach;
	unsigned long table, cache;	/* MiB */
	bool json, local;
};

static unsigned long number(struct argp_state *state, const char *option,
			    const char *text, unsigned long most, unsigned long least)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least || value > most)
		argp_error(state, "%s: not a number from %lu to %lu: %s", option, least,
			   most, text);
	return value;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case OPTION_JSON:
		a->json = true;
		break;
	case OPTION_LOCAL:
		a->local = true;
		break;
	case 'w':
		a->reach.workers = number(state, "--workers", text, MAX_WORKERS, 1);
		break;
	case OPTION_TABLE:
		a->table = number(state, "--table", text, 1UL << 23, 1);
		break;
	case OPTION_CACHE:
		a->cache = number(state, "--cache", text, 1UL << 23, 1);
		break;
	case OPTION_GRANULARITY:
		a->reach.bdd.granularity = number(state, "--granularity", text, 32768, 0);
		break;
	case OPTION_STRATEGY:
		a->reach.chaining = !strcmp(text, "chaining");
		if (!a->reach.chaining && strcmp(text, "bfs"))
			argp_error(state, "--strategy: neither bfs nor chaining: %s", text);
		break;
	case OPTION_DEADLOCKS:
		a->reach.deadlocks = true;
		break;
	case OPTION_TRACE:
		a->reach.trace = true;
		break;
	case OPTION_JOB:
		if (!*text)
			argp_error(state, "--job: the name is empty");
		a->reach.job = text;
		break;
	case OPTION_TIMEOUT:
		a->reach.timeout = number(state, "--timeout", text, 86400, 1) * 1000000000;
		break;
	case ARGP_KEY_ARG:
		if (a->reach.path)
			argp_error(state, "one model at a time, please: %s", text);
		a->reach.path = text;
		break;
	case ARGP_KEY_END:
		if (!a->reach.path)
			argp_error(state, "which MODEL?");
		if (a->reach.trace && a->reach.chaining)
			argp_error(state, "--trace: shortest ways are known only with --strategy bfs");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "MODEL",
	.doc = "Find the reachable states of MODEL: a file in the .bdd format, a 1-safe "
	       "Petri net (*.pnml), or an and-inverter graph (*.aag, *.aig). Start it on "
	       "every node of the cluster.",
};

/* Without a cluster there is nothing to search together. */
static void explain_open(int error)
{
	const char *what =
		error == -ENOENT ? "/dev/kdsm is not there; load kdsm.ko (insmod), or use --local" :
		error == -EACCES ?
		"no permission on /dev/kdsm; see its owner, group and mode, or use --local" :
		error == -ENETDOWN ? "the cluster is not up; use kdsmctl up, or --local" :
		error == -EPROTO ?
		"the module kdsm.ko and this program do not fit; install both from one release" :
		NULL;

	if (what)
		fprintf(stderr, "kdsm-reach: %s\n", what);
	else
		fprintf(stderr, "kdsm-reach: /dev/kdsm cannot be opened: %s\n",
			strerror(-error));
}

int main(int argc, char **argv)
{
	const char *job = getenv("KDSM_JOB");
	struct arguments a = {
		.reach = {
			.workers = 1,
			.job = job && *job ? job : "default",
			.timeout = DEFAULT_TIMEOUT * UINT64_C(1000000000),
		},
		.table = DEFAULT_TABLE,
		.cache = DEFAULT_CACHE,
	};
	struct kd_reach_result result;
	struct kd_message message;
	struct kdsm *kdsm;
	int r;

	if (argc)	/* getopt's messages begin with it */
		argv[0] = program_invocation_short_name;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	a.reach.bdd.table_bytes = (uint64_t)a.table << 20;
	a.reach.bdd.cache_bytes = (uint64_t)a.cache << 20;
	if (isatty(STDERR_FILENO))
		a.reach.progress = print_progress;

	r = kdsm_open(&kdsm, a.local ? KDSM_OPEN_LOCAL : 0);
	if (r < 0) {
		explain_open(r);
		return EXIT_FAILURE;
	}
	kd_reach_result_init(&result);
	r = kd_reach(kdsm, &a.reach, &result, &message);
	if (a.reach.progress)
		print_progress_end();
	if (r < 0) {
		fprintf(stderr, "kdsm-reach: %s\n", message.text);
	} else if (kdsm_node(kdsm) == 0) {
		r = a.json ? print_json(&a.reach, &result) :
		    print_text(&a.reach, &result);
		if (r < 0)
			fprintf(stderr, "kdsm-reach: the result cannot be written: %s\n",
				strerror(-r));
	}
	if (getenv("KDSM_REACH_COUNTS"))
		print_counts(&result);
	kd_reach_result_free(&result);
	kdsm_close(kdsm);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
