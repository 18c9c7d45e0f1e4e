// SPDX-License-Identifier: GPL-2.0
/* The simulation of the queues for a lock: options, seeds, counters. */
#include <stdio.h>

#include "common/cli.h"
#include "sim.h"

struct config config;
struct counts counts;

/* The seed chooses the threshold of each level. */
#define ANY_THRESHOLD	UINT64_MAX

static struct options {
	struct sim_options common;
	unsigned int racks, chassis;	/* racks 0: the seed chooses */
	uint64_t rounds, deaths;	/* 0: the seed chooses; none */
	uint64_t threshold;
	uint64_t measure;		/* time between acquisitions, in us; 0: not measured */
	bool flat, home_dies;
} options = { .common = SIM_OPTIONS(2, 8), .chassis = 1, .threshold = ANY_THRESHOLD };

/* In sim_defect.data: the defect shows only if nodes die */
#define DEATHS	1

static const struct sim_defect defects[BREAK_COUNT + 1] = {
	[BREAK_TELL] = { "tell", "a holder ignores the node that says it is next" },
	[BREAK_DEBT] = { "debt", "the debt does not go with the lock" },
	[BREAK_OLD] = { "old", "a node forgets which tickets it has had", true },
	[BREAK_KEEP] = { "keep", "a lock is kept in spite of a debt" },
	[BREAK_DOUBT] = { "doubt", "a node in doubt whether it queues does so again", true },
	[BREAK_HAND] = { "hand", "a hand-over without an answer is taken for done", true },
	[BREAK_RING] = { "ring", "entries of the ring are not checked" },
	[BREAK_EARLY] = { "early", "a hand-over that comes early is taken without a check" },
	[BREAK_FENCE] = { "fence", "operations of a dead node land later", false, DEATHS },
	[BREAK_GONE] = { "gone", "a node that handed over to a dead node forgets it", false,
			 DEATHS },
	[BREAK_DEAD] = { "dead", "no node learns that a holder has died", false, DEATHS },
	[BREAK_BUSY] = { "busy", "a node freezes with an atomic in flight", false, DEATHS },
	[BREAK_RESUME] = { "resume", "a node resumes in any epoch", true, DEATHS },
	[BREAK_FREE] = { "free", "a lock is freed before a node learns of the death", false,
			 DEATHS },
	[BREAK_OUT] = { "out", "a node that was given up does not notice", false, DEATHS },
	[BREAK_THAW] = { "thaw", "a frozen node goes on", false, DEATHS },
	[BREAK_FLAT] = { "flat", "a node stays in queues of smaller elements", false, DEATHS },
	[BREAK_WITH] = { "with", "a lock that goes with a smaller one is kept", false, DEATHS },
	[BREAK_TWICE] = { "twice", "a node does not ask whether a lost atomic was done", true },
	[BREAK_ID] = { "id", "a node takes itself for counted with a lock of its own element" },
	[BREAK_PASSES] = { "passes", "the count of hand-overs does not go with the lock" },
	[BREAK_CARRY] = { "carry", "the lock of a larger element does not go with a smaller one" },
	[BREAK_PARENT] = { "parent", "the lock of a larger element is not left", true },
	[BREAK_IDLE] = { "idle", "a lock is kept although a larger element wants it" },
	[BREAK_ALONE] = { "alone", "a lock from the same element is taken for unwanted" },
	[BREAK_BATCH] = { "batch", "more threads than waited at a node have the lock in a turn" },
	[BREAK_TURNS] = { "turns", "an element has more turns than nodes" },
};

/* ---- options ---- */

static int parse_racks(void *values, const char *text, char reason[REASON_SIZE])
{
	char end;
	int n;

	n = sscanf(text, "%ux%u%c", &options.racks, &options.chassis, &end);
	if ((n == 1 || n == 2) && options.racks && options.chassis)
		return 0;
	snprintf(reason, REASON_SIZE, "'%.48s' is not N or NxM", text);
	return -1;
}

static int parse_cost(void *values, const char *text, char reason[REASON_SIZE])
{
	if (sim_cost_parse(text))
		return 0;
	snprintf(reason, REASON_SIZE, "'%.48s' is not a cost", text);
	return -1;
}

#define AT(member)	.offset = offsetof(struct options, member)

static const struct cli_option table[] = {
	{ "rounds", 'r', "COUNT", "Acquisitions of a node", CLI_NUMBER, AT(rounds),
	  .range = { 1, U32_MAX, 1 } },
	{ "racks", 'R', "N[xM]", "Spread the nodes over N racks, of M chassis each", CLI_PARSED,
	  .parse = parse_racks },
	{ "threshold", 'T', "COUNT", "Threshold of all levels; 0: automatic", CLI_NUMBER,
	  AT(threshold), .range = { 0, U16_MAX, 1 } },
	{ "flat", 'F', NULL, "Use one queue for all nodes", CLI_FLAG, AT(flat) },
	{ "deaths", 'd', "COUNT", "Let up to COUNT nodes die, or be away for a while",
	  CLI_NUMBER, AT(deaths), .range = { 1, KDSM_MAX_NODES, 1 } },
	{ "home-dies", 'H', NULL, "Let the home die", CLI_FLAG, AT(home_dies) },
	{ "measure", 'm', "US",
	  "Count operations under contention: a node wants the lock again after up to US "
	  "microseconds; 1: at once", CLI_NUMBER, AT(measure), .range = { 1, 1000000, 1 } },
	{ "cost", 'C', "RACKS[,SELF,NEAR,FAR,ATOMIC,MESSAGE[,EXTRA]]",
	  "With --measure: simulate costs instead of faults, and print a rate; see --help of "
	  "sim-rw", CLI_PARSED, .parse = parse_cost },
	{ 0 }
};

static int check(char *reason)
{
	if (defects[sim_broken].data == DEATHS)
		options.deaths = 2;
	if (options.home_dies && !options.deaths)
		options.deaths = 1;
	return 0;
}

static bool report(void)
{
	unsigned int i;

	if (!options.measure)
		return true;
	if (sim_cost.units)
		printf("%.3f acquisitions a us\n",
		       counts.holds * (double)sim_cost.units / counts.time);
	printf("nodes %u-%u: %llu acquisitions, operations an enqueue %.3f (most %llu), a release %.3f, of which %.1f %% hand over\n",
	       options.common.nodes_min, options.common.nodes_max, counts.enters,
	       (double)counts.enter_operations / counts.enters, counts.enter_most,
	       (double)counts.leave_operations / counts.leaves,
	       100.0 * counts.hand_overs / counts.leaves);
	printf("operations a hold %.3f; holds that change the element of level",
	       (double)counts.operations / counts.holds);
	for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
		if (counts.crossed[i - 1])
			printf(" %u: %.2f %%", i, 100.0 * counts.crossed[i - 1] / counts.holds);
	printf("\nthe longest wait is %.1f times the median\n",
	       (double)counts.wait_longest / (counts.wait_median ?: 1));
	return true;
}

/* ---- seeds ---- */

static void choose_place(void)
{
	config.home = sim_below(sim.nodes);
	config.racks = options.racks ?: sim_chance(3) ? 1 : sim_between(2, 4);
	config.chassis = options.racks ? options.chassis :
			 sim_chance(2) ? 1 : sim_between(2, 3);
	config.mixed = !options.racks;
	config.flat = options.flat;
}

static u32 choose_threshold(void)
{
	if (options.threshold != ANY_THRESHOLD)
		return options.threshold ?: KDSM_LOCK_T_L_AUTO;
	return sim_chance(3) ? KDSM_LOCK_T_L_AUTO : sim_between(1, 6);
}

static void choose_load(void)
{
	unsigned int i;

	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		config.t_l[i] = choose_threshold();
	config.rounds = options.rounds ?: sim_between(1, 20);
	config.hold = sim_chance(2) ? 3 : sim_between(1, 200);
	config.away = sim_chance(2) ? 3 : sim_between(1, 1000);
	config.keep = sim_below(4);
	config.again = sim_below(3);
	config.try = sim_chance(2) ? sim_between(2, 10) : 0;
	config.check = sim_below(4);
	config.wanting = sim_between(1, 3);
	/* In half of the seeds tickets wrap during the run. */
	config.ticket = sim_chance(2) ? 0 : KDSM_TICKET_MASK - sim_below(20);
	config.old = !sim_below(4);
}

static void choose_deaths(void)
{
	if (sim.nodes > 2)
		config.deaths = sim_between(1, min_t(u64, options.deaths, sim.nodes - 2));
	config.die = sim_chance(2) ? 2000 : 20000;
	config.returns = sim_chance(2);
	config.home_dies = options.home_dies;
	if (config.home_dies)
		config.deaths = 0;
	config.old = false;
}

/* Let nodes want the lock again after --measure microseconds, and make links fast. */
static void choose_measure(void)
{
	config.old = false;
	config.away = options.measure == 1 ? 0 : options.measure;
	config.hold = 2;
	config.keep = 0;
	config.again = 0;
	config.check = 0;
	config.wanting = 1;
	config.try = 0;
	sim.delay = 3;
	sim.late = 0;
	sim.preempt = 0;
}

static void choose(u64 seed)
{
	memset(&config, 0, sizeof(config));
	choose_place();
	choose_load();
	sim_choose_schedule();
	sim_choose_errors(4, 4);
	/* Some requests need an answer from every node, so make errors rarer with many nodes. */
	if (sim.error && (sim.nodes > 8 || options.deaths))
		sim.error += 8 * sim.nodes;
	/* After a lost operation only the checksum tells a node an old entry from its own. */
	config.old &= !sim.error;
	if (options.deaths)
		choose_deaths();
	if (options.measure)
		choose_measure();
}

static void start(void)
{
	sim_event(SIM_NONE, "racks %u of %u chassis, home %u, rounds %u hold %u away %u keep %u again %u try %u deaths %u home dies %u",
		  config.racks, config.chassis, config.home, config.rounds, config.hold,
		  config.away, config.keep, config.again, config.try, config.deaths,
		  config.home_dies);
	nodes_start();
	serve_start();
	deaths_start();
}

static void stop(void)
{
	nodes_stop();
	serve_stop();
	deaths_stop();
	if (options.measure)
		waits_count();
}

/* ---- the program ---- */

static const struct sim_counter counters[] = {
	{ "enters", &counts.enters },
	{ "enter-operations", &counts.enter_operations },
	{ "enter-operations-most", &counts.enter_most, true },
	{ "leaves", &counts.leaves },
	{ "leave-operations", &counts.leave_operations },
	{ "hand-overs", &counts.hand_overs },
	{ "tries", &counts.tries },
	{ "busy", &counts.busy },
	{ "holds", &counts.holds },
	{ "crossed-2", &counts.crossed[1] },
	{ "crossed-3", &counts.crossed[2] },
	{ "crossed-4", &counts.crossed[3] },
	{ "node-operations", &counts.operations },
	{ "deaths", &counts.deaths },
	{ "given-up", &counts.given_up },
	{ "recoveries", &counts.recoveries },
	{ "time", &counts.time },
	{ "wait-median", &counts.wait_median, true },
	{ "wait-longest", &counts.wait_longest, true },
	{ 0 }
};

const struct sim_program sim_program = {
	.doc = "Runs the queues of nodes for a lock on simulated nodes, once for each seed.",
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
	.send = message_send,
	.serve = serve_message,
	.delivered = message_delivered,
	.operate = serve_operation,
	.lacks_memory = true,
	.may_land = batch_may_land,
	.heard = node_heard,
};
