// SPDX-License-Identifier: GPL-2.0
/* Seeds of the simulator of readers and writers of a lock, and what is told of them. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rw.h"

struct sim_config sim;
struct sim_counts sim_counts;
bool sim_tracing, sim_verbose;
struct rw_config rw_config;
struct rw_cost rw_cost;
struct rw_counts rw_counts;
enum rw_break rw_broken;

static const struct {
	const char *name, *what;
	bool lossy;		/* it shows where messages get lost */
} breaks[RW_BREAK_COUNT] = {
	[RW_BREAK_TELL] = { "tell", "a writer does not heed that the last reader has left" },
	[RW_BREAK_WANT] = { "want", "readers come, be there a writer that waits" },
	[RW_BREAK_WRITE] = { "write", "readers come, be there a writer" },
	[RW_BREAK_DRAIN] = { "drain", "a writer does not wait for readers to leave" },
	[RW_BREAK_ROW] = { "row", "writers in a row are not counted" },
	[RW_BREAK_GO] = { "go", "who is let in before it knows that it waits does not heed it" },
	[RW_BREAK_SWAP] = { "swap", "a counter is opened though nodes are registered" },
	[RW_BREAK_SPAN] = { "span", "a writer does not learn of a new T_DC" },
	[RW_BREAK_EARLY] = { "early", "the queue is passed on before the counters are open" },
	[RW_BREAK_TWICE] = { "twice", "what is asked again is done again", true },
	[RW_BREAK_OLD] = { "old", "a counter is opened once more by a message of long ago", true },
	[RW_BREAK_DOUBT] = { "doubt", "a lost atomic is taken for not done", true },
	[RW_BREAK_THAW] = { "thaw", "who was counted goes on before the count is over", true },
	[RW_BREAK_WRONG] = { "wrong", "who is let in was not taken off the counter before", true },
};

static u64 state;
static bool lossy, plain;
static unsigned int nodes_min = 2, nodes_max = 6;
static struct result {
	u64 seeds;
	struct rw_counts counts;
	char what[256];
} *result;

u64 sim_random(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void sim_note(s64 block, const char *format, ...)
{
	va_list args;

	(void)block;
	printf("%8llu us  node %u %-12s ", sim_now(), sim_fiber_node(), sim_fiber_name());
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void sim_fail(s64 block, const char *format, ...)
{
	va_list args;

	(void)block;
	va_start(args, format);
	vsnprintf(result->what, sizeof(result->what), format, args);
	va_end(args);
	if (sim_verbose)
		rw_nodes_tell();
	fflush(stdout);
	_exit(1);
}

/* ---- a seed ---- */

static void choose(u64 seed)
{
	unsigned int t_dc = rw_config.t_dc;

	state = seed * 0xd1342543de82ef95ULL + 1;
	sim_random();
	memset(&sim, 0, sizeof(sim));
	memset(&rw_config, 0, sizeof(rw_config));
	rw_config.nodes = sim_between(nodes_min, nodes_max);
	sim.nodes = rw_config.nodes;
	sim.slow = rw_config.nodes;
	sim.pause = 1;
	sim.yield = 1;
	rw_config.t_r = 64;
	rw_config.t_w = 16;
	if (rw_cost.units) {
		rw_config.t_dc = t_dc;
		return;
	}
	rw_config.reads = sim_between(1, 20);
	rw_config.writes = sim_chance(4) ? sim_between(1, 20) : sim_between(0, 6);
	rw_config.hold = sim_chance(2) ? 3 : sim_between(1, 200);
	rw_config.away = sim_chance(2) ? 3 : sim_between(1, 1000);
	rw_config.try = sim_chance(2) ? sim_between(2, 10) : 0;
	rw_config.give_up = sim_chance(3) ? sim_between(2, 10) : 0;
	rw_config.t_dc = sim_between(1, rw_config.nodes);
	rw_config.t_r = sim_chance(2) ? 1 : sim_between(1, 4);
	rw_config.t_w = sim_chance(2) ? 1 : sim_between(1, 4);
	rw_config.changes = sim_chance(3) ? sim_between(1, 5) : 0;
	sim.yield = sim_chance(3) ? 1 : sim_between(2, 12);
	sim.preempt = sim_chance(3) ? 20 : 400;
	sim.delay = sim_chance(3) ? 5 : sim_between(10, 200);
	sim.late = sim_chance(2) ? 10 : 100;
	if (lossy || (!plain && sim_chance(4)))
		sim.error = sim_chance(2) ? sim_between(8, 30) : sim_between(30, 500);
	/* Some questions have to be answered by all nodes. */
	if (sim.error && rw_config.nodes > 8)
		sim.error += 8 * rw_config.nodes;
}

static void run_seed(u64 seed)
{
	choose(seed);
	sim_event(-1, "nodes %u t_dc %u t_r %u t_w %u error %u", rw_config.nodes,
		  rw_config.t_dc, rw_config.t_r, rw_config.t_w, sim.error);
	sim_clock_start();
	rw_nodes_start();
	rw_fabric_start();
	rw_nodes_run();
	sim_run();
	rw_counts.time = sim_now();
	rw_nodes_stop();
	rw_fabric_stop();
	result->seeds++;
	result->counts = rw_counts;
}

static void usage(FILE *file)
{
	unsigned int i;

	fprintf(file,
		"usage: sim-rw [OPTION...]\n"
		"Runs readers and writers of a lock on simulated nodes, once for each seed.\n\n"
		"  -s SEED      the first seed (1)\n"
		"  -n COUNT     so many seeds (1000; 1 with -v)\n"
		"  -N N[-M]     so many nodes (2-6; at most %u)\n"
		"  -t T_DC,SHARE,RACKS[,SELF,NEAR,FAR,ATOMIC,MESSAGE]\n"
		"               measure for 2 ms: with that T_DC, one in SHARE acquisitions a\n"
		"               writer's (0: none). One way to the node itself, one of its rack, or another,\n"
		"               an atomic and a message take so many ns (500,700,1000,100,1000)\n"
		"  -p           no seed with errors\n"
		"  -l           in every seed messages and operations get lost\n"
		"  -v           print every event\n"
		"  -b NAME      put in a fault; succeeds if it is found\n"
		"  -h           print this\n\nFaults:\n", RW_NODES);
	for (i = 1; i < RW_BREAK_COUNT; i++)
		fprintf(file, "  %-8s %s\n", breaks[i].name, breaks[i].what);
}

/* A unit is a sixteenth of a nanosecond: each step of the simulator takes one. */
#define UNITS	16

static bool cost(const char *arg)
{
	rw_cost = (struct rw_cost){
		.units = 1000 * UNITS,
		.self = 500,
		.near = 700,
		.far = 1000,
		.atomic = 100,
		.message = 1000,
	};
	if (sscanf(arg, "%u,%u,%u,%u,%u,%u,%u,%u", &rw_config.t_dc, &rw_cost.share,
		   &rw_cost.racks, &rw_cost.self, &rw_cost.near, &rw_cost.far,
		   &rw_cost.atomic, &rw_cost.message) < 3)
		return false;
	rw_cost.self *= UNITS;
	rw_cost.near *= UNITS;
	rw_cost.far *= UNITS;
	rw_cost.atomic *= UNITS;
	rw_cost.message *= UNITS;
	return rw_config.t_dc && rw_cost.racks;
}

int main(int argc, char **argv)
{
	u64 seed = 1, count = 0, done = 0;
	int option, status = 0;
	unsigned int i;
	pid_t pid;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	while ((option = getopt(argc, argv, "s:n:N:t:plvb:h")) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 'N':
			if (sscanf(optarg, "%u-%u", &nodes_min, &nodes_max) == 1)
				nodes_max = nodes_min;
			break;
		case 't':
			if (!cost(optarg))
				goto wrong;
			break;
		case 'p':
			plain = true;
			break;
		case 'l':
			lossy = true;
			break;
		case 'v':
			sim_tracing = true;
			sim_verbose = true;
			break;
		case 'b':
			for (i = 1; i < RW_BREAK_COUNT; i++)
				if (!strcmp(optarg, breaks[i].name))
					rw_broken = i;
			if (!rw_broken)
				goto wrong;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			goto wrong;
		}
	}
	if (optind < argc || nodes_min < 2 || nodes_min > nodes_max || nodes_max > RW_NODES ||
	    (rw_cost.units && rw_config.t_dc > nodes_min))
		goto wrong;
	if (rw_broken) {
		lossy |= breaks[rw_broken].lossy;
		plain = !lossy;
	}
	if (!count)
		count = sim_verbose || rw_cost.units ? 1 : 1000;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		for (; done < count; done++)
			run_seed(seed + done);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%llu seeds\n", result->seeds);
	if (rw_cost.units && result->seeds) {
		const struct rw_counts *c = &result->counts;
		double us = (double)c->time / rw_cost.units;

		printf("nodes %u, T_DC %u: %.3f acquisitions a us, %llu of writers; "
		       "%.2f operations a read\n", nodes_min, rw_config.t_dc,
		       (c->reads + c->writes) / us, c->writes,
		       c->alone ? (double)c->alone_ops / c->alone : 0);
	}
	if (!status)
		return rw_broken ? 1 : 0;
	if (WIFSIGNALED(status))
		snprintf(result->what, sizeof(result->what), "signal %d", WTERMSIG(status));
	printf("seed %llu failed: %s\n", seed + result->seeds, result->what);
	return rw_broken ? 0 : 1;
wrong:
	usage(stderr);
	return 2;
}
