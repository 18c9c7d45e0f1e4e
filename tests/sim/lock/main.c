// SPDX-License-Identifier: GPL-2.0
/* The simulation of locks with a queue at the home: options, seeds, counters. */
#include <stdio.h>

#include "common/cli.h"
#include "sim.h"

struct config config;
struct counts counts;

static struct options {
	struct sim_options common;
	unsigned int share, hold, away;	/* --measure */
	uint64_t threads;
	uint64_t threshold, deaths, t_dc, local;
	bool flat, readers, home_dies, programs;
} options = { .common = SIM_OPTIONS(2, 8), .threads = 1, .t_dc = 1,
	    .local = 50 };

/* In sim_defect.data: the defect shows only then */
#define DEATHS	1
#define READERS	2
#define PROGRAMS	4

static const struct sim_defect defects[BREAK_COUNT + 1] = {
	[BREAK_OPEN] = { "open", "an admission without an answer is taken for not given", true,
			 READERS },
	[BREAK_GRANT] = { "grant", "a hand-over without an answer is taken for done", true },
	[BREAK_READER] = { "reader", "a reader whose admission was lost does not ask again", true,
			   READERS },
	[BREAK_TWICE] = { "twice", "a repeated ENQUEUE is queued again", true },
	[BREAK_LATE] = { "late", "the word does not tell the requests of a node apart", true },
	[BREAK_SKIP] = { "skip", "a list loses its first node" },
	[BREAK_FORGET] = { "forget", "a waiting node does not ask again", true },
	[BREAK_SURVEY] = { "survey", "a node that has answered a survey hands over", false,
			   DEATHS },
	[BREAK_FREEZE] = { "freeze", "a hand-over of a former epoch is taken", true, DEATHS },
	[BREAK_DEAD] = { "dead", "no node learns that a holder has died", false, DEATHS },
	[BREAK_ORPHAN] = { "orphan", "readers of a dead reader home stay", false,
			   DEATHS | READERS },
	[BREAK_VOID] = { "void", "an admission that was revoked is taken", true, READERS },
	[BREAK_LIST] = { "list", "a holder ignores that other nodes wait" },
	[BREAK_LOCAL] = { "local", "a thread that died with the lock is not told of" },
	[BREAK_OUT] = { "out", "a node that was given up does not notice", false, DEATHS },
	[BREAK_BIAS] = { "bias", "readers do not look at the bias again", false, PROGRAMS },
	[BREAK_ORDER] = { "order", "an element keeps the lock as long as a node there waits" },
};

/* ---- options ---- */

static int parse_measure(void *values, const char *text, char reason[REASON_SIZE])
{
	int n, rest = 0;

	n = sscanf(text, "%u,%u,%u,%n", &options.share, &options.hold, &options.away, &rest);
	if (n == 3 && rest && sim_cost_parse(text + rest))
		return 0;
	snprintf(reason, REASON_SIZE,
		 "'%.48s' is not SHARE,HOLD,AWAY,RACKS, with or without the times", text);
	return -1;
}

#define AT(member)	.offset = offsetof(struct options, member)

static const struct cli_option table[] = {
	{ "measure", 'm', "SHARE,HOLD,AWAY,RACKS[,SELF,NEAR,FAR,ATOMIC,MESSAGE[,EXTRA]]",
	  "Simulate costs instead of faults, for 2 to 20 ms, and print rates. One in SHARE acquisitions "
	  "writes (1: all; the others read). A thread has the lock for up to HOLD us, and wants it "
	  "again after up to AWAY us. One way to the node itself, within a rack, and to another "
	  "rack, an atomic, and a message take so many ns, of which the receiver spends EXTRA",
	  CLI_PARSED, .parse = parse_measure },
	{ "threads", 0, "COUNT", "With --measure: threads of a node (1)", CLI_NUMBER, AT(threads),
	  .range = { 1, 64, 1 } },
	{ "threshold", 'T', "COUNT", "With --measure: T_L of all levels; 0: automatic", CLI_NUMBER,
	  AT(threshold), .range = { 0, U16_MAX, 1 } },
	{ "t-dc", 0, "COUNT", "With --measure: T_DC (1)", CLI_NUMBER, AT(t_dc),
	  .range = { 1, KDSM_MAX_NODES, 1 } },
	{ "local", 0, "NS", "With --measure: time to lock and unlock in mapped memory, in ns (50)",
	  CLI_NUMBER, AT(local), .range = { 0, 1000000, 1 } },
	{ "flat", 'F', NULL, "Serve nodes in order of arrival", CLI_FLAG, AT(flat) },
	{ "readers", 'r', NULL, "Let some threads read in every seed", CLI_FLAG, AT(readers) },
	{ "deaths", 'd', "COUNT", "Let up to COUNT nodes die, or be away for a while",
	  CLI_NUMBER, AT(deaths), .range = { 1, KDSM_MAX_NODES, 1 } },
	{ "programs", 'P', NULL,
	  "Simulate only the mapped memory of one node, and the programs that write it", CLI_FLAG,
	  AT(programs) },
	{ "home-dies", 'H', NULL, "Let the home die", CLI_FLAG, AT(home_dies) },
	{ 0 }
};

static int check(char *reason)
{
	if (defects[sim_broken].data & DEATHS)
		options.deaths = 2;
	if (defects[sim_broken].data & READERS)
		options.readers = true;
	if (defects[sim_broken].data & PROGRAMS)
		options.programs = true;
	if (sim_cost.units)
		options.common.seeds = options.common.seeds ?: 1;
	return 0;
}

static bool report(void)
{
	u64 all = counts.locks + counts.reads;

	if (!sim_cost.units)
		return true;
	printf("nodes %u: %.3f acquisitions a us, %llu of writers, %llu of readers; %.3f remote operations each\n",
	       options.common.nodes_min, all * 1000.0 / counts.time, counts.locks, counts.reads,
	       (double)counts.remote / all);
	printf("the home's CPU serves messages %.1f %% of the time, so it could serve %.1f times as many\n",
	       100.0 * counts.busy / counts.time, (double)counts.time / (counts.busy ?: 1));
	printf("ENQUEUE %llu, HAND %llu, LEAVE %llu, swaps %llu; waits: median %llu ns, longest %llu ns, quotient %.1f\n",
	       counts.asked, counts.handed, counts.left, counts.swaps, counts.wait_median,
	       counts.wait_longest, (double)counts.wait_longest / (counts.wait_median ?: 1));
	return true;
}

/* ---- seeds ---- */

static void choose_measure(void)
{
	sim.steps_max = 1000000000;
	config.home = 0;
	config.racks = sim_cost.racks;
	config.chassis = 1;
	config.flat = options.flat;
	config.rw = options.share != 1;
	config.share = options.share;
	config.threads = options.threads;
	config.hold = options.hold;
	config.away = options.away;
	config.t_dc = options.t_dc;
	config.local = options.local;
}

static void choose_load(void)
{
	config.home = sim_below(sim.nodes);
	config.racks = sim_chance(3) ? 1 : sim_between(1, min(4U, sim.nodes));
	config.chassis = sim_chance(2) ? 1 : sim_between(2, 3);
	config.flat = options.flat || sim_chance(4);
	config.rw = options.readers || sim_chance(2);
	config.share = sim_chance(4) ? 1 : sim_between(2, 8);
	config.threads = sim_between(1, 3);
	config.rounds = sim_chance(8) ? sim_between(20, 60) : sim_between(1, 12);
	config.hold = sim_chance(2) ? 3 : sim_between(1, 200);
	config.away = sim_chance(2) ? 3 : sim_between(1, 1000);
	config.keep = sim_below(4);
	config.try = sim_chance(2) ? sim_between(2, 8) : 0;
	config.timed = sim_chance(2) ? sim_between(2, 10) : 0;
	config.die = sim_chance(3) ? sim_between(3, 20) : 0;
	config.greedy = sim_chance(4) ? 3 : 0;
	config.tunes = sim_chance(3) ? sim_between(1, 10) : 0;
	config.t_dc = sim_between(1, sim.nodes);
}

static void choose(u64 seed)
{
	memset(&config, 0, sizeof(config));
	if (sim_cost.units) {
		choose_measure();
		return;
	}
	choose_load();
	/* A node that waits asks once a second, so a hang takes few steps a second. */
	sim.steps_max = 300000ULL * DIV_ROUND_UP(sim.nodes, 8);
	sim_choose_schedule();
	sim_choose_errors(4, 4);
	if (sim.error && sim.nodes > 8)
		sim.error += 8 * sim.nodes;
	if (options.deaths && sim.nodes > 2) {
		config.deaths = sim_between(1, min_t(u64, options.deaths, sim.nodes - 2));
		config.when = sim_chance(2) ? 2000 : 20000;
	}
	if (options.home_dies) {
		config.home_dies = true;
		config.home_returns = sim_chance(2);
		config.when = sim_chance(2) ? 2000 : 20000;
	}
	sim.ghost = sim.error ? 3 : 0;
	sim.nomem = !options.common.plain && sim_chance(4) ? sim_between(2, 50) : 0;
}

static void start(void)
{
	unsigned int i;

	sim_event(SIM_NONE, "home %u racks %u chassis %u flat %u rw %u share %u threads %u rounds %u hold %u away %u keep %u timed %u die %u greedy %u tunes %u deaths %u home dies %u T_DC %u",
		  config.home, config.racks, config.chassis, config.flat, config.rw,
		  config.share, config.threads, config.rounds, config.hold, config.away,
		  config.keep, config.timed, config.die, config.greedy, config.tunes,
		  config.deaths, config.home_dies, config.t_dc);
	if (options.programs) {
		config.die = sim_chance(2) ? 20 : 200;
		config.rounds += 20;
		programs_start();
		return;
	}
	deaths_start();
	nodes_start();
	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		home->thresholds.t_l[i] = options.threshold ?: KDSM_LOCK_T_L_AUTO;
	home->thresholds.t_r = 64;
	home->thresholds.t_w = 16;
	threads_start();
}

static void stop(void)
{
	if (options.programs) {
		programs_stop();
		return;
	}
	threads_stop();
	nodes_stop();
	deaths_stop();
}

static void tell(void)
{
	if (!options.programs)
		nodes_tell();
}

/* ---- the program ---- */

static const struct sim_counter counters[] = {
	{ "locks", &counts.locks },
	{ "reads", &counts.reads },
	{ "remote", &counts.remote },
	{ "enqueues", &counts.asked },
	{ "hands", &counts.handed },
	{ "leaves", &counts.left },
	{ "swaps", &counts.swaps },
	{ "deaths", &counts.deaths },
	{ "given-up", &counts.given_up },
	{ "surveys", &counts.surveys },
	{ "dismissals", &counts.dismissals },
	{ "processes-died", &counts.died },
	{ "timed-out", &counts.timed_out },
	{ "lost", &counts.lost },
	{ "passed-over", &counts.passed, true },
	{ "time", &counts.time },
	{ "busy", &counts.busy },
	{ "wait-median", &counts.wait_median, true },
	{ "wait-longest", &counts.wait_longest, true },
	{ 0 }
};

const struct sim_program sim_program = {
	.doc = "Runs locks with a queue at the home on simulated nodes, once for each seed.",
	.options = &options.common,
	.option_table = table,
	.nodes_least = 2,
	.defects = defects,
	.counters = counters,
	.message_name = message_names,
	.lacks_memory = true,
	.check = check,
	.report = report,
	.choose = choose,
	.start = start,
	.stop = stop,
	.tell = tell,
	.send = message_sent,
	.serve = serve_message,
	.delivered = message_done,
	.operate = serve_operation,
	.may_land = batch_may_land,
	.heard = node_heard,
	.tie = node_tie,
};
