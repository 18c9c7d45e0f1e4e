// SPDX-License-Identifier: GPL-2.0
/* The simulation of a lock's readers: options, seeds, counters. */
#include <stdio.h>

#include "common/cli.h"
#include "sim.h"

struct config config;
struct counts counts;

static struct options {
	struct sim_options common;
	unsigned int t_dc, share;	/* --measure */
} options = { .common = SIM_OPTIONS(2, 6) };

static const struct sim_defect defects[BREAK_COUNT + 1] = {
	[BREAK_TELL] = { "tell", "a writer ignores that the last reader has left" },
	[BREAK_WANT] = { "want", "readers come although a writer waits" },
	[BREAK_WRITE] = { "write", "readers come although a writer writes" },
	[BREAK_DRAIN] = { "drain", "a writer does not wait for readers to leave" },
	[BREAK_ROW] = { "row", "successive writers are not counted" },
	[BREAK_GO] = { "go", "a node ignores GO that overtakes the answer to its question" },
	[BREAK_SWAP] = { "swap", "a counter is opened although nodes are registered" },
	[BREAK_SPAN] = { "span", "a writer does not learn of a new T_DC" },
	[BREAK_EARLY] = { "early", "the queue is handed over before the counters are open" },
	[BREAK_RETIRE] = { "retire", "T_DC changes although nodes read" },
	[BREAK_TWICE] = { "twice", "a repeated question is taken for a new one", true },
	[BREAK_OLD] = { "old", "a stale message opens a counter again", true },
	[BREAK_DOUBT] = { "doubt", "a lost atomic is taken for not done", true },
	[BREAK_THAW] = { "thaw", "a node that was counted goes on before the count is over", true },
	[BREAK_WRONG] = { "wrong", "the counter of a node that is let in is not corrected first",
			  true },
};

/* ---- options ---- */

static int parse_measure(void *values, const char *text, char reason[REASON_SIZE])
{
	int n, rest = 0;

	n = sscanf(text, "%u,%u,%n", &options.t_dc, &options.share, &rest);
	if (n == 2 && rest && options.t_dc && sim_cost_parse(text + rest))
		return 0;
	snprintf(reason, REASON_SIZE,
		 "'%.48s' is not T_DC,SHARE,RACKS, with or without the five times", text);
	return -1;
}

static const struct cli_option table[] = {
	{ "measure", 'm', "T_DC,SHARE,RACKS[,SELF,NEAR,FAR,ATOMIC,MESSAGE]",
	  "Simulate costs instead of faults, for 2 ms, and print a rate. One in SHARE "
	  "acquisitions writes (0: none). One way to the node itself, within a rack, and to "
	  "another rack, an atomic, and a message take so many ns (500,700,1000,100,1000)",
	  CLI_PARSED, .parse = parse_measure },
	{ 0 }
};

static int check(char *reason)
{
	if (!sim_cost.units)
		return 0;
	if (options.t_dc > options.common.nodes_min) {
		snprintf(reason, REASON_SIZE, "--measure: T_DC %u is above the number of nodes, %u",
			 options.t_dc, options.common.nodes_min);
		return -1;
	}
	options.common.seeds = options.common.seeds ?: 1;
	return 0;
}

static bool report(void)
{
	u64 acquisitions = counts.reads + counts.writes;

	if (!sim_cost.units)
		return true;
	printf("nodes %u, T_DC %u: %.3f acquisitions a us, %llu of writers; %.2f operations a read\n",
	       options.common.nodes_min, options.t_dc,
	       acquisitions / ((double)counts.time / sim_cost.units), counts.writes,
	       counts.reads ? (double)counts.read_operations / counts.reads : 0);
	return true;
}

/* ---- seeds ---- */

static void choose(u64 seed)
{
	memset(&config, 0, sizeof(config));
	config.t_r = 64;
	config.t_w = 16;
	if (sim_cost.units) {
		config.t_dc = options.t_dc;
		config.share = options.share;
		return;
	}
	config.reads = sim_between(1, 20);
	config.writes = sim_chance(4) ? sim_between(1, 20) : sim_between(0, 6);
	config.hold = sim_chance(2) ? 3 : sim_between(1, 200);
	config.away = sim_chance(2) ? 3 : sim_between(1, 1000);
	config.try = sim_chance(2) ? sim_between(2, 10) : 0;
	config.give_up = sim_chance(2) ? sim_between(2, 10) : 0;
	config.t_dc = sim_between(1, sim.nodes);
	config.t_r = sim_chance(2) ? 1 : sim_between(1, 4);
	config.t_w = sim_chance(2) ? 1 : sim_between(1, 4);
	config.changes = sim_chance(2) ? sim_between(1, 20) : 0;
	sim_choose_schedule();
	sim_choose_errors(4, 8);
	/* Some requests need an answer from every node, so make errors rarer with many nodes. */
	if (sim.error && sim.nodes > 8)
		sim.error += 8 * sim.nodes;
}

static void start(void)
{
	sim_event(SIM_NONE, "reads %u writes %u hold %u away %u try %u give up %u T_DC %u T_R %u T_W %u",
		  config.reads, config.writes, config.hold, config.away, config.try,
		  config.give_up, config.t_dc, config.t_r, config.t_w);
	nodes_start();
	serve_start();
	nodes_run();
}

static void stop(void)
{
	counts.time = sim_now();
	nodes_stop();
	serve_stop();
}

/* ---- the program ---- */

static const struct sim_counter counters[] = {
	{ "reads", &counts.reads },
	{ "writes", &counts.writes },
	{ "read-operations", &counts.read_operations },
	{ "time", &counts.time, true },
	{ "switches", &counts.switches },
	{ "row", &counts.row, true },
	{ 0 }
};

const struct sim_program sim_program = {
	.doc = "Runs readers and writers of a lock on simulated nodes, once for each seed.",
	.options = &options.common,
	.option_table = table,
	.nodes_least = 2,
	.defects = defects,
	.counters = counters,
	.message_name = message_names,
	.check = check,
	.report = report,
	.choose = choose,
	.start = start,
	.stop = stop,
	.tell = nodes_tell,
	.serve = serve_message,
	.operate = serve_operation,
};
