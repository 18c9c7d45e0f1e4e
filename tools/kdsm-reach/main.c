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

#include <kdsm/task.h>

#include "print.h"

const char *argp_program_version = "kdsm-reach 0.1.0";

/*
 * Together they fit beside a system in a machine of 512 MiB, even on one node.
 * Of 64 MiB, the table has room for 2.8 million nodes.
 */
#define DEFAULT_TABLE	64	/* MiB */
#define DEFAULT_CACHE	32
#define MAX_MIB		(1UL << 23)
#define DEFAULT_TIMEOUT	30	/* s */
#define DEFAULT_INTERVAL	600	/* s */

enum { OPTION_JSON = 256, OPTION_LOCAL, OPTION_TABLE, OPTION_CACHE, OPTION_JOB,
	OPTION_TIMEOUT, OPTION_GRANULARITY, OPTION_FIND, OPTION_PROBE, OPTION_STEAL,
	OPTION_DEADLOCKS, OPTION_TRACE, OPTION_STRATEGY,
	OPTION_BOUND, OPTION_INVARIANT, OPTION_SAVE, OPTION_LEVELS, OPTION_CHECKPOINT,
	OPTION_INTERVAL };

static const struct argp_option options[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print one JSON object", 0 },
	{ "local", OPTION_LOCAL, NULL, 0,
	  "Search on this machine alone, without the kernel module", 0 },
	{ "workers", 'w', "WORKERS", 0, "Threads on this node (1)", 0 },
	{ "table", OPTION_TABLE, "[FIRST:]MIB", 0,
	  "Memory for BDD nodes, of all nodes of the cluster together (64)", 0 },
	{ "cache", OPTION_CACHE, "[FIRST:]MIB", 0,
	  "Memory for results of operations, likewise (32)", 0 },
	{ "granularity", OPTION_GRANULARITY, "K", 0,
	  "Share results with other nodes at every K-th variable (0: not)", 0 },
	{ "find", OPTION_FIND, "WAY", 0,
	  "Find and put BDD nodes of other nodes one-sided, by message, or auto (the default)", 0 },
	{ "probe", OPTION_PROBE, "WAY", 0,
	  "Look through the table quadratic, in runs ever further apart (the default), or linear",
	  0 },
	{ "steal", OPTION_STEAL, "WAY", 0,
	  "Get work of other nodes by request of a worker there, or kernel (the default)", 0 },
	{ "strategy", OPTION_STRATEGY, "NAME", 0,
	  "bfs, breadth first (the default), chaining, with fewer rounds, or saturation", 0 },
	{ "deadlocks", OPTION_DEADLOCKS, NULL, 0,
	  "Count the states that have no successor", 0 },
	{ "trace", OPTION_TRACE, NULL, 0,
	  "Show a shortest way to each violated property, and to a deadlock", 0 },
	{ "bound", OPTION_BOUND, "PLACE[,PLACE...]=K", 0,
	  "A property: the places have never more than K tokens together", 0 },
	{ "invariant", OPTION_INVARIANT, "FILE", 0,
	  "A property: all states are in the set in FILE, in the .bdd format", 0 },
	{ "save", OPTION_SAVE, "FILE", 0, "Write the set of states to FILE, likewise", 0 },
	{ "levels", OPTION_LEVELS, "N", 0, "End after N levels", 0 },
	{ "checkpoint", OPTION_CHECKPOINT, "FILE", 0,
	  "Go on from FILE if it is there, and write checkpoints to it", 0 },
	{ "checkpoint-interval", OPTION_INTERVAL, "SECONDS", 0,
	  "Write one at most so often, and at the end (600)", 0 },
	{ "job", OPTION_JOB, "NAME", 0,
	  "Programs with the same name search together (KDSM_JOB, else the default)", 0 },
	{ "timeout", OPTION_TIMEOUT, "SECONDS", 0,
	  "Give up when another node shows no sign of life for so long (30)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct arguments {
	struct kd_reach_options reach;
	bool json, local;
	const char **bound, **invariant;
};

/* One more in a list of which the library has the number. */
static void add_text(const char ***list, unsigned int *count, const char *text)
{
	*list = reallocarray(*list, *count + 1, sizeof(**list));
	if (!*list) {
		perror("kdsm-reach");
		exit(EXIT_FAILURE);
	}
	(*list)[(*count)++] = text;
}

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

/* MiB, or with a K behind it KiB; in bytes then. */
static uint64_t size(struct argp_state *state, const char *option, char *text)
{
	size_t length = strlen(text);

	if (!length || text[length - 1] != 'K')
		return (uint64_t)number(state, option, text, MAX_MIB, 1) << 20;
	text[length - 1] = 0;
	return (uint64_t)number(state, option, text, MAX_MIB << 10, 1) << 10;
}

/* [FIRST:]MIB; first is 0 if it is not given. */
static void range(struct argp_state *state, const char *option, char *text,
		  uint64_t *first, uint64_t *most)
{
	char *colon = strchr(text, ':');

	*first = 0;
	if (colon) {
		*colon = 0;
		*first = size(state, option, text);
		text = colon + 1;
	}
	*most = size(state, option, text);
	if (*first > *most)
		argp_error(state, "%s: begins with more than it may grow to", option);
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
		a->reach.workers = number(state, "--workers", text, KD_REACH_WORKERS, 1);
		break;
	case OPTION_TABLE:
		range(state, "--table", text, &a->reach.bdd.first_table_bytes,
		      &a->reach.bdd.table_bytes);
		break;
	case OPTION_CACHE:
		range(state, "--cache", text, &a->reach.bdd.first_cache_bytes,
		      &a->reach.bdd.cache_bytes);
		break;
	case OPTION_GRANULARITY:
		a->reach.bdd.granularity = number(state, "--granularity", text, 32768, 0);
		break;
	case OPTION_FIND:
		a->reach.bdd.find = !strcmp(text, "message") ? KDSM_TABLE_MESSAGE :
				    !strcmp(text, "one-sided") ? KDSM_TABLE_ONE_SIDED :
				    KDSM_TABLE_AUTO;
		if (a->reach.bdd.find == KDSM_TABLE_AUTO && strcmp(text, "auto"))
			argp_error(state, "--find: none of one-sided, message, auto: %s", text);
		break;
	case OPTION_PROBE:
		a->reach.bdd.probe = !strcmp(text, "linear") ? KDSM_TABLE_LINEAR :
				     KDSM_TABLE_QUADRATIC;
		if (a->reach.bdd.probe == KDSM_TABLE_QUADRATIC && strcmp(text, "quadratic"))
			argp_error(state, "--probe: neither quadratic nor linear: %s", text);
		break;
	case OPTION_STEAL:
		a->reach.way = strcmp(text, "kernel") ? KDSM_STEAL_BY_REQUEST :
							KDSM_STEAL_BY_KERNEL;
		if (strcmp(text, "request") && strcmp(text, "kernel"))
			argp_error(state, "--steal: neither request nor kernel: %s", text);
		break;
	case OPTION_STRATEGY:
		a->reach.chaining = !strcmp(text, "chaining");
		a->reach.saturation = !strcmp(text, "saturation");
		if (!a->reach.chaining && !a->reach.saturation && strcmp(text, "bfs"))
			argp_error(state, "--strategy: neither bfs, chaining nor saturation: %s",
				   text);
		break;
	case OPTION_DEADLOCKS:
		a->reach.deadlocks = true;
		break;
	case OPTION_TRACE:
		a->reach.trace = true;
		break;
	case OPTION_BOUND:
		add_text(&a->bound, &a->reach.bounds, text);
		a->reach.bound = a->bound;
		break;
	case OPTION_INVARIANT:
		add_text(&a->invariant, &a->reach.invariants, text);
		a->reach.invariant = a->invariant;
		break;
	case OPTION_SAVE:
		a->reach.save = text;
		break;
	case OPTION_LEVELS:
		a->reach.levels = number(state, "--levels", text, LONG_MAX, 1);
		break;
	case OPTION_CHECKPOINT:
		a->reach.checkpoint = text;
		break;
	case OPTION_INTERVAL:
		a->reach.interval = number(state, "--checkpoint-interval", text, 86400 * 365, 0) *
			1000000000;
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
		if (a->reach.trace && (a->reach.chaining || a->reach.saturation))
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
			.bdd = {
				.table_bytes = DEFAULT_TABLE << 20,
				.cache_bytes = DEFAULT_CACHE << 20,
			},
			.interval = DEFAULT_INTERVAL * UINT64_C(1000000000),
			.warn = print_warning,
		},
	};
	struct kd_reach_result result;
	struct kd_message message;
	struct kdsm *kdsm;
	int r;

	if (argc)	/* getopt's messages begin with it */
		argv[0] = program_invocation_short_name;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (isatty(STDERR_FILENO))
		a.reach.progress = print_progress;

	r = kdsm_open(&kdsm, a.local ? KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE : 0);
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
		else if (result.unsaved)
			r = -EIO;
	}
	if (getenv("KDSM_REACH_COUNTS"))
		print_counts(&result);
	kd_reach_result_free(&result);
	kdsm_close(kdsm);
	free(a.bound);
	free(a.invariant);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
