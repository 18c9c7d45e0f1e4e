// SPDX-License-Identifier: GPL-2.0
/* Seeds, what they choose, and what is told of them. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

struct sim_config sim;
enum sim_break sim_broken;
struct sim_counts sim_counts;
struct sim_node sim_nodes[SIM_NODES];
bool sim_tracing, sim_verbose;

static const struct {
	const char *name, *what;
	u32 policy;		/* in which it is to be found; 0: release */
} breaks[SIM_BREAK_COUNT] = {
	[SIM_BREAK_RTS] = { "rts", "an owner does not raise the read timestamp when it is read" },
	[SIM_BREAK_TWIN] = { "twin", "no twin is made when a block is handed over" },
	[SIM_BREAK_NOTICE] = { "notice", "one write notice in 20 is dropped" },
	[SIM_BREAK_FLOOR] = { "floor", "an acquire ignores the signature's floor" },
	[SIM_BREAK_DIRTY] = { "dirty", "one dirty bit in 20 is not seen by a harvest" },
	[SIM_BREAK_MERGE] = { "merge", "a merge takes what is theirs and drops what is ours" },
	[SIM_BREAK_UNMAP] = { "unmap", "one range in 20 is not unmapped" },
	[SIM_BREAK_FORGET] = { "forget", "a node forgets to whom it handed a block over" },
	[SIM_BREAK_OLD] = { "old", "links that are older than what is known are followed",
			    KDSM_POLICY_STRICT },
	[SIM_BREAK_NUMBER] = { "number", "a node does not know which hand-over it had last" },
	[SIM_BREAK_LEASE] = { "lease", "the read timestamp does not go with the ownership" },
	[SIM_BREAK_FLUSH] = { "flush", "one flush of TLBs in 4 does not happen" },
	[SIM_BREAK_AHEAD] = { "ahead", "what came along with a miss is taken, be it too old" },
	[SIM_BREAK_STAMP] = { "stamp", "a stamp promises more than its owner's read timestamp" },
	[SIM_BREAK_ORDER] = { "order", "content is read before its stamp" },
	[SIM_BREAK_LATE] = { "late", "nobody is told before a process unmaps" },
	[SIM_BREAK_END] = { "end", "what a process unmapped is marked before TLBs are flushed" },
	[SIM_BREAK_READER] = { "reader", "one reader in 10 is not told to drop its copy",
			       KDSM_POLICY_STRICT },
	[SIM_BREAK_EARLY] = { "early", "a writer does not wait for the leases of readers",
			      KDSM_POLICY_STRICT },
	[SIM_BREAK_STALE] = { "stale", "a reader uses what it fetched while it was to drop it",
			      KDSM_POLICY_STRICT },
	[SIM_BREAK_SET] = { "set", "the set of readers does not go with the ownership",
			    KDSM_POLICY_STRICT },
	[SIM_BREAK_PROTECT] = { "protect", "one lent block in 10 stays mapped for writing",
				KDSM_POLICY_STRICT },
	[SIM_BREAK_DEFER] = { "defer", "one range in 10 is unmapped a while later",
			      KDSM_POLICY_STRICT },
	[SIM_BREAK_MAP] = { "map", "one mapping in 20 is for writing, whatever the block's state",
			    KDSM_POLICY_STRICT },
	[SIM_BREAK_LOCK] = { "lock", "one mapping in 4 is made without the block's lock",
			     KDSM_POLICY_STRICT },
	[SIM_BREAK_HASTE] = { "haste", "there are no leases", KDSM_POLICY_STRICT },
};

/* What the processes that run seeds tell the one that started them. */
struct job {
	u64 seed, seeds;
	bool failed;
	struct sim_counts counts;
	char what[256];
};

static struct job *jobs, *job;
static u64 *taken;	/* seeds, by whichever process is free */
static unsigned int nodes_min = 2, nodes_max = 8;
static bool no_faults, lossy;
static u32 only;		/* this policy; 0: both */

/* ---- chance ---- */

static u64 state;

u64 sim_random(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* ---- events ---- */

#define EVENTS_MAX	65536
#define EVENTS_TOLD	60

static struct event {
	u64 step, time;
	s64 block;
	unsigned int node;
	char fiber[16];
	char text[160];
} *events;
static u64 event_count;

static void event_print(const struct event *event)
{
	char block[32] = "";

	if (event->block >= 0)
		snprintf(block, sizeof(block), "block %" PRId64 " ", (int64_t)event->block);
	printf("%8llu %7llu us  node %u %-14s %s%s\n", event->step, event->time,
	       event->node, event->fiber, block, event->text);
}

void sim_note(s64 block, const char *format, ...)
{
	struct event *event = &events[event_count++ % EVENTS_MAX];
	va_list args;

	event->step = sim_counts.steps;
	event->time = sim_now();
	event->block = block;
	event->node = sim_fiber_node();
	snprintf(event->fiber, sizeof(event->fiber), "%s", sim_fiber_name());
	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
	if (sim_verbose)
		event_print(event);
}

static void events_tell(s64 block)
{
	u64 i, first = event_count > EVENTS_MAX ? event_count - EVENTS_MAX : 0;
	unsigned int n = 0;

	for (i = event_count; i > first && n < EVENTS_TOLD; i--) {
		const struct event *event = &events[(i - 1) % EVENTS_MAX];

		if (block < 0 || event->block < 0 || event->block == block)
			n++;
	}
	printf("the last events%s:\n", block < 0 ? "" : " of the block");
	for (; i < event_count; i++) {
		const struct event *event = &events[i % EVENTS_MAX];

		if (block < 0 || event->block < 0 || event->block == block)
			event_print(event);
	}
}

void sim_fail(s64 block, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(job->what, sizeof(job->what), format, args);
	va_end(args);
	job->failed = true;
	if (sim_tracing) {
		if (!sim_verbose)
			events_tell(block);
		if (block >= 0)
			printf("block %" PRId64 ": ", (int64_t)block);
		printf("%s\n", job->what);
		fflush(stdout);
	}
	_exit(1);
}

static void crashed(int number)
{
	snprintf(job->what, sizeof(job->what), "signal %d", number);
	job->failed = true;
	if (sim_tracing) {
		events_tell(-1);
		printf("%s\n", job->what);
		fflush(stdout);
	}
	_exit(1);
}

/* ---- a seed ---- */

static void choose_blocks(void)
{
	unsigned int i;
	u64 at;

	/* Some neighbours, some in other tables, which start at other nodes. */
	sim.blocks = sim_between(1, SIM_BLOCKS);
	at = sim_chance(2) ? 0 : KDSM_TABLE_SIZE - 1 - sim_below(3);
	for (i = 0; i < sim.blocks; i++) {
		sim.index[i] = at;
		at += sim_chance(6) ? sim_between(2, KDSM_TABLE_SIZE) : 1;
	}
	sim.region_blocks = (at / KDSM_TABLE_SIZE + 1) * KDSM_TABLE_SIZE;
	if (sim_chance(2))
		sim.region_blocks = at;	/* the last table is not full */
}

static void choose(u64 seed)
{
	state = seed * 0xd1342543de82ef95ULL + 1;
	sim_random();
	memset(&sim, 0, sizeof(sim));
	sim.policy = only ?: seed % 2 ? KDSM_POLICY_RELEASE : KDSM_POLICY_STRICT;
	sim.nodes = sim_between(nodes_min, nodes_max);
	sim.processes = sim_between(1, SIM_PROCESSES);
	sim.threads = sim_between(1, 2);
	sim.pages = sim_chance(4) ? 2 : 1;
	choose_blocks();
	sim.words = sim_between(8, 100);
	sim.locks = sim_below(11);
	sim.phases = sim_between(1, 4);
	sim.rounds = sim_between(2, 16);
	sim.values = sim_chance(3) ? sim_between(2, 4) : 0;
	sim.yield = sim_chance(3) ? 1 : sim_between(2, 12);
	sim.preempt = sim_chance(3) ? 20 : 400;
	sim.delay = sim_chance(3) ? 5 : sim_between(10, 200);
	sim.late = sim_chance(2) ? 10 : 100;
	sim.slow = sim_chance(4) ? sim_below(sim.nodes) : sim.nodes;
	sim.unmap = sim_chance(3) ? 10 : 0;
	if (sim_broken == SIM_BREAK_END || sim_broken == SIM_BREAK_LATE)
		sim.unmap = 3;		/* it takes many to show */
	sim.advise = sim_chance(3) ? 8 : 0;
	sim.evict = sim_chance(2) ? 3 : 50;
	if (sim_broken == SIM_BREAK_END) {
		/* Threads that go on by what a TLB remembers. */
		sim.threads = 2;
		sim.evict = 50;
		sim.processes = 1;
		sim.delay = 200;
	}
	sim.pieces = sim_chance(2);
	sim.pause = 1;
	if (sim_broken == SIM_BREAK_FORGET || sim_broken == SIM_BREAK_NUMBER ||
	    sim_broken == SIM_BREAK_OLD)
		sim.error = sim_between(3, 30);
	if (no_faults)
		return;
	if (sim_chance(12))
		sim.nomem = sim_between(10, 200);
	if (lossy || sim_chance(8))
		sim.error = sim_chance(2) ? sim_between(3, 30) : sim_between(30, 500);
	if (sim_chance(20))
		sim.stall = sim_between(50, 500);
	if (sim_chance(20))
		sim.down = true;
	/* That something never succeeds is soon seen. */
	if (sim.stall || sim.down || (sim.error && sim_chance(2)))
		sim.pause = 1000;
}

static void run_seed(u64 seed)
{
	job->seed = seed;
	choose(seed);
	sim_event(-1, "nodes %u processes %u threads %u blocks %u of %u pages, words %u locks %u",
		  sim.nodes, sim.processes, sim.threads, sim.blocks, sim.pages, sim.words,
		  sim.locks);
	sim_event(-1, "phases %u rounds %u values %u yield %u preempt %u delay %u slow %u unmap %u",
		  sim.phases, sim.rounds, sim.values, sim.yield, sim.preempt, sim.delay,
		  sim.slow, sim.unmap);
	sim_event(-1, "policy %s nomem %u error %u stall %u down %u",
		  sim.policy == KDSM_POLICY_STRICT ? "strict" : "release", sim.nomem,
		  sim.error, sim.stall, sim.down);
	sim_clock_start();
	sim_check_start();
	sim_fabric_start();
	sim_program_start();
	sim_run();
	if (sim.error || sim.stall || sim.down) {
		sim_fabric_heal();
		sim_program_again();
		sim_run();
	}
	sim_check_end();
	sim_program_stop();
	sim_fabric_stop();
	job->seeds++;
	job->counts = sim_counts;
}

/* ---- many seeds ---- */

static void child(u64 first, u64 count, double seconds)
{
	static char stack[65536];
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_ONSTACK };
	struct timespec start, now;
	u64 i;

	sigaltstack(&alternative, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while ((i = __atomic_fetch_add(taken, 1, __ATOMIC_RELAXED)) < count) {
		run_seed(first + i);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (seconds && now.tv_sec - start.tv_sec +
		    (now.tv_nsec - start.tv_nsec) / 1e9 >= seconds)
			break;
	}
	fflush(stdout);
	_exit(0);
}

static void usage(FILE *file)
{
	unsigned int i;

	fprintf(file,
		"usage: sim [OPTION...]\n"
		"Runs the coherence protocol on simulated nodes, once for each seed.\n\n"
		"  -s, --seed SEED      the first seed (1)\n"
		"  -n, --count COUNT    so many seeds (1000; 1 with -v)\n"
		"  -N, --nodes N[-M]    so many nodes (2-8; at most %u)\n"
		"  -P, --policy NAME    release or strict (odd seeds: release, even ones: strict)\n"
		"  -t, --seconds TIME   stop after that many seconds\n"
		"  -j, --jobs JOBS      processes (1)\n"
		"  -p, --plain          no seed with errors or lack of memory\n"
		"  -l, --lossy          in every seed messages get lost\n"
		"  -v, --verbose        print every event of the seed\n"
		"  -S, --stats          print what was done\n"
		"  -b, --break NAME     put in a fault; succeeds if it is found\n"
		"  -h, --help           print this\n\n"
		"A seed that fails is run again, and the last events of its block are\n"
		"printed; -s SEED -v prints all. With -N, -P, -p, -l and -b as before.\n\nFaults:\n",
		SIM_NODES);
	for (i = 1; i < SIM_BREAK_COUNT; i++)
		fprintf(file, "  %-8s %s\n", breaks[i].name, breaks[i].what);
}

static void print_stats(const struct sim_counts *counts)
{
	/* The counters; what follows them in the enum says how it is now. */
	static const char * const names[KDSM_COHERENCE_BYTES + 1] = {
		"read-faults", "write-faults", "upgrades", "fast-reads", "slow-reads",
		"fast-releases", "slow-releases", "migrations", "invalidations", "merges",
		"races", "flushes", "bytes",
	};
	unsigned int i;

	printf("stores %llu acquires %llu releases %llu (with a floor %llu) messages %llu\n"
	       "remote reads %llu stamps %llu blocks ahead %llu unmaps %llu errors %llu\n",
	       counts->stores, counts->acquires, counts->releases, counts->floors,
	       counts->messages, counts->fetches, counts->probes, counts->ahead,
	       counts->unmaps, counts->errors);
	for (i = 0; i <= KDSM_COHERENCE_BYTES; i++)
		printf("%s %llu%s", names[i], counts->stats[i],
		       i < KDSM_COHERENCE_BYTES ? " " : "\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'n' },
		{ "nodes", required_argument, NULL, 'N' },
		{ "policy", required_argument, NULL, 'P' },
		{ "seconds", required_argument, NULL, 't' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "plain", no_argument, NULL, 'p' },
		{ "lossy", no_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "stats", no_argument, NULL, 'S' },
		{ "break", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	u64 seed = 1, count = 0, seeds = 0, steps = 0, loads = 0;
	struct sim_counts sum = {};
	unsigned int workers = 1, i, j;
	struct job *failed = NULL;
	struct timespec start, end;
	bool stats = false;
	double seconds = 0;
	int option;

	while ((option = getopt_long(argc, argv, "s:n:N:P:t:j:plvSb:h", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 'N':
			i = sscanf(optarg, "%u-%u", &nodes_min, &nodes_max);
			if (i == 1)
				nodes_max = nodes_min;
			if (!i || nodes_min < 1 || nodes_min > nodes_max ||
			    nodes_max > SIM_NODES)
				goto wrong;
			break;
		case 'P':
			only = !strcmp(optarg, "strict") ? KDSM_POLICY_STRICT :
			       !strcmp(optarg, "release") ? KDSM_POLICY_RELEASE : 0;
			if (!only)
				goto wrong;
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		case 'j':
			workers = max(1, atoi(optarg));
			break;
		case 'p':
			no_faults = true;
			break;
		case 'l':
			lossy = true;
			break;
		case 'v':
			sim_verbose = true;
			break;
		case 'S':
			stats = true;
			break;
		case 'b':
			for (i = 1; i < SIM_BREAK_COUNT; i++)
				if (!strcmp(optarg, breaks[i].name))
					sim_broken = i;
			if (!sim_broken)
				goto wrong;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			goto wrong;
		}
	}
	if (optind < argc)
		goto wrong;
	if (sim_broken && !only)
		only = breaks[sim_broken].policy ?: KDSM_POLICY_RELEASE;
	if (!count)
		count = sim_verbose ? 1 : 1000;
	jobs = mmap(NULL, workers * sizeof(*jobs) + sizeof(*taken), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	taken = (u64 *)(jobs + workers);
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (sim_verbose) {
		sim_tracing = true;
		events = calloc(EVENTS_MAX, sizeof(*events));
	}
	fflush(stdout);
	for (i = 0; i < workers && i < count; i++) {
		job = &jobs[i];
		if (!fork())
			child(seed, count, seconds);
	}
	while (wait(NULL) > 0)
		;
	clock_gettime(CLOCK_MONOTONIC, &end);
	for (i = 0; i < workers; i++) {
		seeds += jobs[i].seeds;
		steps += jobs[i].counts.steps;
		loads += jobs[i].counts.loads;
		sum.stores += jobs[i].counts.stores;
		sum.acquires += jobs[i].counts.acquires;
		sum.releases += jobs[i].counts.releases;
		sum.floors += jobs[i].counts.floors;
		sum.messages += jobs[i].counts.messages;
		sum.fetches += jobs[i].counts.fetches;
		sum.probes += jobs[i].counts.probes;
		sum.ahead += jobs[i].counts.ahead;
		sum.unmaps += jobs[i].counts.unmaps;
		sum.errors += jobs[i].counts.errors;
		for (j = 0; j < KDSM_COHERENCE_COUNT; j++)
			sum.stats[j] += jobs[i].counts.stats[j];
		if (jobs[i].failed && (!failed || jobs[i].seed < failed->seed))
			failed = &jobs[i];
	}
	printf("%llu seeds %llu steps %llu loads %.1f s\n", seeds, steps, loads,
	       end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9);
	if (stats)
		print_stats(&sum);
	if (!failed)
		return sim_broken ? 1 : 0;
	printf("seed %llu failed: %s\n", failed->seed, failed->what);
	if (sim_broken)
		return 0;
	if (!sim_verbose) {
		/* Once more, with events. */
		sim_tracing = true;
		events = calloc(EVENTS_MAX, sizeof(*events));
		job = &jobs[0];
		seed = failed->seed;
		*taken = 0;
		fflush(stdout);
		if (!fork())
			child(seed, 1, 0);
		while (wait(NULL) > 0)
			;
	}
	return 1;
wrong:
	usage(stderr);
	return 2;
}
