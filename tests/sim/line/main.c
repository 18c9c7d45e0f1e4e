// SPDX-License-Identifier: GPL-2.0
/* The simulation of waiting lines: options, seeds, counters. */
#include "common/cli.h"
#include "sim.h"

struct config config;
struct counts counts;

static struct options {
	struct sim_options common;
	bool deaths;
} options = { .common = SIM_OPTIONS(1, 6) };

/* In sim_defect.data: the defect shows only if threads die */
#define DEATHS	1

static const struct sim_defect defects[BREAK_COUNT + 1] = {
	[BREAK_CHANGE] = { "change", "a head with another number of changes is the same" },
	[BREAK_BELL] = { "bell", "some bells do not ring" },
	[BREAK_TWICE] = { "twice", "two threads take the same post" },
	[BREAK_OLD] = { "old", "tickets are compared by their low 32 bits" },
	[BREAK_SHORT] = { "short", "half of the ring is not looked at" },
	[BREAK_DROP] = { "drop", "the first thread that is woken drops the other signals" },
	[BREAK_DEAD] = { "dead", "no thread removes a dead one", false, DEATHS },
};

static const struct cli_option table[] = {
	{ "deaths", 'd', NULL, "Let threads die or stop in every seed", CLI_FLAG,
	  .offset = offsetof(struct options, deaths) },
	{ 0 }
};

static int check(char *reason)
{
	options.deaths |= defects[sim_broken].data == DEATHS;
	return 0;
}

/* The ring is about to begin again, and with it some numbers of bits of the ticket. */
static u64 choose_ticket(void)
{
	static const u64 near[] = { 4 * LINE_MOST, 1ULL << 31, 1ULL << 32, 1ULL << 42, 1ULL << 63 };

	return near[sim_below(5)] - sim_below(30);
}

static void choose(u64 seed)
{
	unsigned int threads = sim_below(4);

	sim_choose_schedule();
	config = (struct config){
		.cond = sim_chance(3),
		.home = sim_below(sim.nodes),
		.threads = threads + 1 + (sim.nodes == 1),
		.rounds = sim_between(2, 20),
		.posts = sim_chance(2) ? 1 : sim_between(2, 5),
		.hold = sim_chance(2) ? 3 : sim_between(1, 500),
		.away = sim_chance(2) ? 3 : sim_between(1, 1000),
		.give_up = sim_below(4) ? sim_between(1, 6) : 0,
		.interrupt = sim_chance(4) ? 20 : 0,
		.ticket = choose_ticket(),
		.changes = LINE_MOST - 1 - sim_below(20),
	};
	if (options.deaths || (!options.common.plain && sim_chance(2))) {
		config.deaths = sim_between(1, 4);
		config.die = sim_between(10, 200);
		config.stop = sim_chance(2) ? sim_between(50, 500) : 0;
		config.ghosts = sim_chance(4) ? sim_chance(4) ? LINE_MOST : sim_below(5) : 0;
		/* A thread that dies takes a post with it. */
		config.posts += !config.cond;
	}
	if (config.cond)
		config.posts = 0;
	/* Time to find the dead, and for threads that stop */
	sim.time_max = 1000000ULL * (config.die ? 40 * config.ghosts + 2000 : 60);
}

static void start(void)
{
	sim_event(SIM_NONE, "%s home %u threads %u rounds %u posts %u hold %u away %u give up %u interrupt %u die %u stop %u ghosts %u ticket %llx",
		  config.cond ? "condition variable" : "semaphore", config.home, config.threads,
		  config.rounds, config.posts, config.hold, config.away, config.give_up,
		  config.interrupt, config.die, config.stop, config.ghosts, config.ticket);
	words_start();
	threads_start();
}

static void stop(void)
{
	threads_stop();
	words_stop();
}

/* Threads use words only. */
static int serve(struct sim_message *message, struct kdsm_request *request)
{
	sim_fail(SIM_NONE, "there are no messages");
}

static void operate(unsigned int from, struct kdsm_operation *op)
{
	sim_fail(SIM_NONE, "there are no operations of the module");
}

static const struct sim_counter counters[] = {
	{ "waits", &counts.waits },
	{ "wait-operations", &counts.wait_operations },
	{ "waits-without-a-post", &counts.timeouts },
	{ "posts", &counts.posts },
	{ "post-operations", &counts.post_operations },
	{ "post-operations-most", &counts.post_most, true },
	{ "deaths", &counts.deaths },
	{ 0 }
};

const struct sim_program sim_program = {
	.doc = "Runs semaphores and condition variables on simulated nodes, once for each seed.",
	.options = &options.common,
	.option_table = table,
	.nodes_least = 1,
	.defects = defects,
	.counters = counters,
	.check = check,
	.choose = choose,
	.start = start,
	.step = words_check,
	.stop = stop,
	.tell = threads_tell,
	.serve = serve,
	.operate = operate,
	.lacks_memory = true,
};
