// SPDX-License-Identifier: GPL-2.0
/*
 * kdsm-reach(1): the reachable states of a model, found by all nodes of a cluster. The
 * command line is here, output is in print.c, and the search is in the library.
 */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/cluster.h"
#include "defaults.h"
#include "plot.h"
#include "print.h"
#include "progress.h"
#include "search.h"
#include "signals.h"

#define LEAST_MEMORY		(UINT64_C(1) << 10)	/* bytes */
/* BDD nodes have 39 bits of numbers, and 24 bytes */
#define MOST_MEMORY		(UINT64_C(12) << 40)

#define DEFAULT_TIMEOUT		(30 * SECOND)
#define MOST_TIMEOUT		(86400 * SECOND)	/* a day */
#define DEFAULT_INTERVAL	(600 * SECOND)
#define MOST_INTERVAL		(365 * 86400 * SECOND)	/* a year */

struct arguments {
	struct kdsm_reach_options reach;
	struct virtual_options virtual;
	bool json, local, mcc, speed_up;
	bool known;			/* the search has told states and verdicts */
	const char *plot_path;		/* NULL: no plot */
	struct plot plot;
	uint64_t progress;		/* ns, 0 or PROGRESS_DEFAULT */
	unsigned int strategy;		/* enum strategy */
	unsigned int order;		/* enum kdsm_reach_order */
	unsigned int format;		/* enum kdsm_reach_format */
	const char **bound, **invariant, **upper_bound, **formula;
};

/* check() replaces AUTO */
enum strategy { AUTO, BFS, CHAINING, SATURATION };

static const char *const strategies[] = {
	[AUTO] = "auto",
	[BFS] = "bfs",
	[CHAINING] = "chaining",
	[SATURATION] = "saturation",
	NULL
};

const char *const order_words[] = {
	[KDSM_REACH_ORDER_AUTO] = "auto",
	[KDSM_REACH_ORDER_FILE] = "file",
	[KDSM_REACH_ORDER_REVERSED] = "reversed",
	[KDSM_REACH_ORDER_CUTHILL_MCKEE] = "cuthill-mckee",
	[KDSM_REACH_ORDER_SLOAN] = "sloan",
	[KDSM_REACH_ORDER_SLOAN_REVERSED] = "sloan-reversed",
	[KDSM_REACH_ORDER_FORCE] = "force",
	[KDSM_REACH_ORDER_FORCE_REVERSED] = "force-reversed",
	[KDSM_REACH_ORDER_UNITS] = "units",
	[KDSM_REACH_ORDER_UNITS_REVERSED] = "units-reversed",
	NULL	/* KDSM_REACH_ORDER_GIVEN cannot be chosen */
};

static const char *const formats[] = {
	[KDSM_REACH_FORMAT_AUTO] = "auto",
	[KDSM_REACH_FORMAT_PNML] = "pnml",
	[KDSM_REACH_FORMAT_BDD] = "bdd",
	[KDSM_REACH_FORMAT_AIGER] = "aiger",
	NULL
};

/* Append text to a list of *count texts. */
static int append(const char ***list, unsigned int *count, const char *text)
{
	*list = reallocarray(*list, *count + 1, sizeof(**list));
	if (!*list)
		errx(FAILED, "out of memory");
	(*list)[(*count)++] = text;
	return 0;
}

static int parse_bound(void *values, const char *text, char *reason)
{
	struct arguments *a = values;

	(void)reason;
	return append(&a->bound, &a->reach.bounds, text);
}

static int parse_invariant(void *values, const char *text, char *reason)
{
	struct arguments *a = values;

	(void)reason;
	return append(&a->invariant, &a->reach.invariants, text);
}

static int parse_upper_bound(void *values, const char *text, char *reason)
{
	struct arguments *a = values;

	(void)reason;
	return append(&a->upper_bound, &a->reach.upper_bounds, text);
}

static int parse_formulas(void *values, const char *text, char *reason)
{
	struct arguments *a = values;

	(void)reason;
	return append(&a->formula, &a->reach.formulas, text);
}

/* [FIRST:]SIZE, in MiB unless they have a suffix; *first is 0 if it is absent. */
static int parse_memory(const char *text, uint64_t *first, uint64_t *most, char *reason)
{
	const struct range range = { LEAST_MEMORY, MOST_MEMORY, 1 << 20 };
	char *copy, *colon;
	int ret = 0;

	copy = strdup(text);
	if (!copy)
		errx(FAILED, "out of memory");
	colon = strchr(copy, ':');
	*first = 0;
	if (colon) {
		*colon = '\0';
		ret = size_parse(copy, &range, first, reason);
	}
	if (!ret)
		ret = size_parse(colon ? colon + 1 : copy, &range, most, reason);
	free(copy);
	if (ret || *first <= *most)
		return ret;
	snprintf(reason, REASON_SIZE, "'%.48s' begins with more than it may grow to", text);
	return -1;
}

static int parse_table(void *values, const char *text, char *reason)
{
	struct kdsm_bdd_attr *bdd = &((struct arguments *)values)->reach.bdd;

	return parse_memory(text, &bdd->first_table_bytes, &bdd->table_bytes, reason);
}

static int parse_cache(void *values, const char *text, char *reason)
{
	struct kdsm_bdd_attr *bdd = &((struct arguments *)values)->reach.bdd;

	return parse_memory(text, &bdd->first_cache_bytes, &bdd->cache_bytes, reason);
}

static int parse_virtual(void *values, const char *text, char *reason)
{
	return virtual_parse(&((struct arguments *)values)->virtual, text, reason);
}

static int parse_network(void *values, const char *text, char *reason)
{
	return virtual_parse_network(&((struct arguments *)values)->virtual, text, reason);
}

#define AT(member)	.offset = offsetof(struct arguments, member)

static const struct cli_option options[] = {
	{ "json", 0, NULL, "Print one JSON object", CLI_FLAG, AT(json) },
	{ "local", 0, NULL, "Search on this machine alone, without the kernel module",
	  CLI_FLAG, AT(local) },
	{ "workers", 'w', "WORKERS", "Threads on this node (as many as processors)", CLI_COUNT,
	  AT(reach.workers), .range = { 1, KDSM_REACH_WORKERS, 1 } },
	{ "table", 0, "[FIRST:]SIZE",
	  "Memory for BDD nodes, of all nodes of the cluster together, in MiB unless it has a suffix (a third of the memory)",
	  CLI_PARSED, .parse = parse_table },
	{ "cache", 0, "[FIRST:]SIZE",
	  "Memory for results of operations, of all nodes of the cluster together, in MiB unless it has a suffix (half of the table)",
	  CLI_PARSED, .parse = parse_cache },
	{ "format", 0, "NAME",
	  "Format of MODEL: pnml, bdd, aiger, or auto, the default, which looks at its content",
	  CLI_CHOICE, AT(format), .words = formats },
	{ "strategy", 0, "NAME",
	  "Search breadth first (bfs), by chaining, which takes fewer rounds, by saturation, or auto, the default: bfs with --trace, --levels or --plot, and saturation otherwise",
	  CLI_CHOICE, AT(strategy), .words = strategies },
	{ "order", 0, "NAME",
	  "Order of a net's places in BDDs: file, reversed, cuthill-mckee, sloan, sloan-reversed, force, force-reversed, units, units-reversed, or auto, the default, which estimates the best one",
	  CLI_CHOICE, AT(order), .words = order_words },
	{ "order-file", 0, "FILE",
	  "Take the order in FILE: all places, or latches and inputs, one a line", CLI_TEXT,
	  AT(reach.order_file) },
	{ "deadlocks", 0, NULL, "Count the states that have no successor", CLI_FLAG,
	  AT(reach.deadlocks) },
	{ "trace", 0, NULL, "Show a shortest way to each violated property, and to a deadlock",
	  CLI_FLAG, AT(reach.trace) },
	{ "stop", 0, NULL,
	  "Stop at the first violation of a property, deadlock or false formula; do not find all states",
	  CLI_FLAG, AT(reach.stop_at_violation) },
	{ "counts", 0, NULL,
	  "Count the fired transitions of a net, and the most tokens in a place and in a marking",
	  CLI_FLAG, AT(reach.counts) },
	{ "upper-bound", 0, "PLACE[,PLACE...]",
	  "Find the most tokens that these places have together", CLI_PARSED,
	  .parse = parse_upper_bound },
	{ "witness", 0, "FILE",
	  "Write the traces of a circuit to FILE, as witnesses in the format of AIGER; implies --trace",
	  CLI_TEXT, AT(reach.witness) },
	{ "bound", 0, "PLACE[,PLACE...]=K",
	  "A property: these places never have more than K tokens together", CLI_PARSED,
	  .parse = parse_bound },
	{ "invariant", 0, "FILE", "A property: all states are in the set in FILE (.bdd format)",
	  CLI_PARSED, .parse = parse_invariant },
	{ "formulas", 0, "FILE",
	  "Answer the formulas in FILE, in the XML of the Model Checking Contest", CLI_PARSED,
	  .parse = parse_formulas },
	{ "mcc", 0, NULL, "Print the lines that the Model Checking Contest expects", CLI_FLAG,
	  AT(mcc) },
	{ "save", 0, "FILE", "Write the set of states to FILE (.bdd format)", CLI_TEXT,
	  AT(reach.save) },
	{ "save-order", 0, "FILE", "Write the order of the result to FILE, for --order-file",
	  CLI_TEXT, AT(reach.save_order) },
	{ "levels", 0, "N", "End after N levels", CLI_NUMBER, AT(reach.levels),
	  .range = { 1, LONG_MAX, 1 } },
	{ "checkpoint", 0, "FILE", "Resume from FILE if it exists, and write checkpoints to it",
	  CLI_TEXT, AT(reach.checkpoint) },
	{ "checkpoint-interval", 0, "SECONDS",
	  "Shortest time between two checkpoints (600); one more is written at the end",
	  CLI_TIME, AT(reach.interval), .range = { 0, MOST_INTERVAL, SECOND } },
	{ "job", 0, "NAME", "Programs with the same name search together (KDSM_JOB, or default)",
	  CLI_TEXT, AT(reach.job) },
	{ "progress", 0, "SECONDS",
	  "Report progress in a line that often; 0: only on SIGUSR1 (a line on a terminal, else 60)",
	  CLI_TIME, AT(progress), .range = { 0, MOST_INTERVAL, SECOND } },
	{ "plot", 0, "FILE", "Write a picture (SVG) of states, BDD nodes and time by level to FILE",
	  CLI_TEXT, AT(plot_path) },
	{ "timeout", 0, "SECONDS", "Fail when another node shows no sign of life for this time (30)",
	  CLI_TIME, AT(reach.timeout), .range = { SECOND, MOST_TIMEOUT, SECOND } },
	{ "virtual", 0, VIRTUAL_VALUE, VIRTUAL_DOC, CLI_PARSED, .parse = parse_virtual },
	{ "task-time", 0, "TIME",
	  "With --virtual: let each step of a BDD operation take this time, and all other computing none (as long as they take here)",
	  CLI_TIME, AT(virtual.attr.step), .range = VIRTUAL_TASK_TIME },
	{ "network", 0, VIRTUAL_NETWORK_VALUE, VIRTUAL_NETWORK_DOC, CLI_PARSED,
	  .parse = parse_network },
	{ "speed-up", 0, NULL,
	  "With --virtual: search with one node, too, with one worker and with WORKERS, and compare",
	  CLI_FLAG, AT(speed_up) },
	{ 0 }
};

static int take_model(void *values, unsigned int index, const char *text, char *reason)
{
	struct arguments *a = values;

	(void)index;
	(void)reason;
	a->reach.path = text;
	return 0;
}

/* Options that a virtual run, or the lack of one, leaves without a meaning */
static int check_virtual(const struct arguments *a, char *reason)
{
	const struct { bool wrong; const char *why; } rules[] = {
		{ a->speed_up && !a->virtual.given,
		  "--speed-up: is for virtual runs: give --virtual, too" },
		{ a->virtual.given && a->local,
		  "--virtual and --local: give one of them; a virtual run needs no module either" },
		{ a->virtual.given && a->reach.workers,
		  "--virtual and --workers: give one of them; "
		  "--virtual NODESxWORKERS has the workers of a node" },
		{ a->virtual.given && a->reach.job,
		  "--virtual and --job: give one of them; no other program joins a virtual run" },
		{ a->virtual.given && !strcmp(a->reach.path, "-"),
		  "--virtual: all nodes read MODEL, so it cannot be the standard input: "
		  "give a file" },
		{ a->speed_up && a->mcc,
		  "--speed-up and --mcc: give one of them; the contest expects no times" },
		{ a->speed_up && a->reach.checkpoint,
		  "--speed-up and --checkpoint: give one of them; "
		  "a search that resumes takes less time" },
	};
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].wrong) {
			snprintf(reason, REASON_SIZE, "%s", rules[i].why);
			return -1;
		}
	return virtual_check(&a->virtual, reason);
}

static int check(void *values, char *reason)
{
	struct arguments *a = values;

	if (check_virtual(a, reason))
		return -1;
	a->reach.trace |= !!a->reach.witness;
	a->reach.race = a->strategy == AUTO;
	/* saturation knows no levels */
	if (a->strategy == AUTO)
		a->strategy = a->reach.trace || a->reach.levels || a->plot_path ?
			      BFS : SATURATION;
	a->reach.chaining = a->strategy == CHAINING;
	a->reach.saturation = a->strategy == SATURATION;
	a->reach.order = a->order;
	a->reach.format = a->format;
	a->reach.bound = a->bound;
	a->reach.invariant = a->invariant;
	a->reach.upper_bound = a->upper_bound;
	a->reach.formula = a->formula;
	/* the contest's examination StateSpace, if nothing else is asked */
	a->reach.counts |= a->mcc && !a->formula && !a->reach.deadlocks;
	if (a->mcc && a->json) {
		snprintf(reason, REASON_SIZE, "--mcc and --json: give one of them");
		return -1;
	}
	if (a->order && a->reach.order_file) {
		snprintf(reason, REASON_SIZE, "--order and --order-file: give one of them");
		return -1;
	}
	if (!a->reach.trace || a->strategy == BFS)
		return 0;
	snprintf(reason, REASON_SIZE, "--trace: shortest ways are known only with --strategy bfs");
	return -1;
}

static const struct cli cli = {
	.doc = "Find the reachable states of MODEL: a Petri net (PNML), an and-inverter graph (AIGER), "
	       "or BDDs of LTSmin or Sylvan; also compressed by gzip. - is the standard input. "
	       "Start it on every node of the cluster.",
	.args = "MODEL",
	.least = 1,
	.most = 1,
	.options = { options },
	.argument = take_model,
	.check = check,
	.write_failure = FAILED,
};

/*
 * Open the cluster of this node. A machine without the module searches alone if nothing says
 * that it belongs to a cluster. Otherwise every node of that cluster would search alone.
 */
static void open_cluster(struct kdsm **kdsm, struct arguments *a)
{
	const char *sign = a->reach.job ? "--job is given" : cluster_sign("");
	const char *job = getenv("KDSM_JOB");
	int r = -ENOENT;

	if (!a->reach.job)
		a->reach.job = job && *job ? job : "default";
	if (!a->local)
		r = kdsm_open(0, kdsm);
	if (!a->local && cluster_absent(r) && !sign) {
		cluster_warn_alone("searching");
		a->local = true;
	}
	if (a->local)
		r = kdsm_open(KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE, kdsm);
	if (r < 0)
		errx(FAILED, "%s, or use --local%s%s", kdsm_error(r),
		     cluster_absent(r) && sign ? "; a cluster is expected, because " : "",
		     cluster_absent(r) && sign ? sign : "");
}

/* Print what is known before the search takes further steps. */
static void know(void *context, const struct kdsm_reach_result *result)
{
	struct arguments *a = context;

	a->known = true;
	plot_end(&a->plot, result->levels, result->states, result->nodes, result->seconds);
	progress_end();
	if (!a->json && !a->mcc)
		print_known(&a->reach, result, false);
}

static void note_level(void *context, const struct kdsm_reach_progress *progress)
{
	struct arguments *a = context;

	plot_add(&a->plot, progress->level, progress->states, progress->nodes,
		 progress->seconds);
}

/* Check before the search that the plot can be written, and is not the model. */
static void try_plot(struct arguments *a, unsigned int node)
{
	struct stat plot, model;
	FILE *file;
	bool there;

	if (!a->plot_path || node)
		return;
	there = !stat(a->plot_path, &plot);
	if (there && !stat(a->reach.path, &model) &&
	    plot.st_dev == model.st_dev && plot.st_ino == model.st_ino)
		errx(REFUSED, "--plot %s: is the file of the model", a->plot_path);
	file = fopen(a->plot_path, "ae");
	if (!file)
		err(REFUSED, "--plot %s: cannot be written", a->plot_path);
	fclose(file);
	if (!there)
		unlink(a->plot_path);
	a->reach.level = note_level;
}

/* The plot of what is known, also if the search failed. */
static int write_plot(const struct arguments *a, const char *model)
{
	char title[512];
	int r;

	if (!a->reach.level)
		return 0;
	snprintf(title, sizeof(title), "%s: %s, order %s", model, strategies[a->strategy],
		 a->reach.order_file ? a->reach.order_file : order_words[a->order]);
	r = plot_write(&a->plot, a->plot_path, title);
	if (r < 0)
		warnx("%s: cannot be written: %s", a->plot_path, strerror(-r));
	return r;
}

/*
 * The exit status of a search that has succeeded or not. A violation that was found is an answer,
 * whatever fails later. Only node 0 knows the answers.
 */
static int verdict(const struct kdsm_reach_options *options,
		   const struct kdsm_reach_result *result, bool failed)
{
	bool unknown = false, violated;
	unsigned int i;

	violated = options->deadlocks && mpz_sgn(result->deadlocks);
	for (i = 0; i < result->properties; i++)
		violated |= result->verdict[i].violated;
	for (i = 0; i < result->formulas; i++) {
		violated |= result->formula[i].answer == KDSM_REACH_FALSE;
		unknown |= result->formula[i].answer == KDSM_REACH_UNKNOWN;
	}
	return violated ? VIOLATED : failed || unknown ? FAILED : HOLDS;
}

/* Print the rest of what is known. error is why the search failed, or NULL. */
static void print_rest(const struct arguments *a, const struct kdsm_reach_result *result,
		       const struct search_times *times, const char *error)
{
	if (a->mcc) {
		print_mcc(&a->reach, result, error);
	} else if (a->json) {
		print_json(&a->reach, result, times, error);
	} else {
		if (!a->known)
			print_known(&a->reach, result, error);
		print_text(&a->reach, result, times, error);
	}
}

/* Search as one node of a cluster. */
static void search_here(struct search *search, struct arguments *a)
{
	struct machine machine;
	struct kdsm *kdsm;

	open_cluster(&kdsm, a);
	machine_read(&machine);
	defaults_set(&a->reach, &machine, kdsm_nodes(kdsm));
	try_plot(a, kdsm_node(kdsm));
	search_run(search, kdsm);
	kdsm_close(kdsm);
}

/* Search as all nodes of a virtual run. */
static void search_nodes(struct search *search, struct arguments *a)
{
	struct machine machine;

	a->reach.job = "virtual";
	a->reach.workers = a->virtual.workers;
	machine_read(&machine);
	defaults_virtual(&a->reach, &machine, a->virtual.attr.nodes);
	try_plot(a, 0);
	search_virtual(search, &a->virtual);
}

/*
 * Print the result of a search that has begun, and why it failed. Returns whether some of it is
 * missing.
 */
static bool tell(struct search *search, struct arguments *a)
{
	struct search_times times = { .options = &a->virtual, .times = search->times };
	struct kdsm_reach_result *result = &search->result;
	bool failed = search->error, compared = true;

	if (a->speed_up && !failed && !result->stopped)
		compared = search_compare(search, &times);
	print_rest(a, result, a->virtual.given ? &times : NULL,
		   failed ? search->message.text : NULL);
	return failed || !compared || result->unsaved;
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.reach = {
			.argsz = sizeof(a.reach),
			.timeout = DEFAULT_TIMEOUT,
			.interval = DEFAULT_INTERVAL,
			.known = know,
		},
		.progress = PROGRESS_DEFAULT,
	};
	struct search search;
	bool failed = false, began;
	int status;

	virtual_init(&a.virtual);
	cli_parse(&cli, argc, argv, &a);
	progress_choose(&a.reach, a.progress, a.json);
	a.reach.context = &a;
	signals_begin();
	search_init(&search, &a.reach);
	if (a.virtual.given)
		search_nodes(&search, &a);
	else
		search_here(&search, &a);
	progress_end();
	if (search.error)
		warnx("%s", search.message.text);
	began = search.result.model;
	if (began)
		failed = tell(&search, &a);
	else if (search.error && a.mcc)
		puts("CANNOT_COMPUTE");
	failed |= write_plot(&a, began ? search.result.model : a.reach.path) < 0;
	status = search.status;
	if (!search.error && search.result.stopped)
		status = 128 + (search.caught ? search.caught : SIGTERM);
	else if (!search.error || began)
		status = verdict(&a.reach, &search.result, failed);
	if (getenv("KDSM_REACH_COUNTS"))
		print_counts(&search.result);
	kdsm_reach_result_free(&search.result);
	free(a.bound);
	free(a.invariant);
	free(a.upper_bound);
	free(a.formula);
	return status;
}
