// SPDX-License-Identifier: GPL-2.0
/* Seeds of the simulator of the queue for a lock, and what is told of them. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock.h"

struct sim_config sim;
struct sim_counts sim_counts;
bool sim_tracing, sim_verbose;
struct lock_config lock;
enum lock_break lock_broken;
struct lock_counts lock_counts;

static const struct {
	const char *name, *what;
	bool lossy;		/* it shows where messages get lost */
	bool deaths;		/* it shows where nodes die */
} breaks[LOCK_BREAK_COUNT] = {
	[LOCK_BREAK_TELL] = { "tell", "a holder does not heed who tells it that it is next" },
	[LOCK_BREAK_DEBT] = { "debt", "the debt does not go with the lock" },
	[LOCK_BREAK_OLD] = { "old", "a node forgets which tickets it has had", true },
	[LOCK_BREAK_KEEP] = { "keep", "a lock is kept, be there a debt" },
	[LOCK_BREAK_DOUBT] = { "doubt", "who does not know whether it queues does so again", true },
	[LOCK_BREAK_HAND] = { "hand", "a hand-over that nobody answered is taken for done", true },
	[LOCK_BREAK_RING] = { "ring", "what is read of a ring is not checked" },
	[LOCK_BREAK_EARLY] = { "early", "a hand-over that comes early is taken unseen" },
	[LOCK_BREAK_FENCE] = { "fence", "what a dead node posted is done later", false, true },
	[LOCK_BREAK_GONE] = { "gone", "who handed over to a dead node has it still", false, true },
	[LOCK_BREAK_DEAD] = { "dead", "nobody is told that a holder has died", false, true },
	[LOCK_BREAK_BUSY] = { "busy", "a node freezes with an atomic under way", false, true },
	[LOCK_BREAK_RESUME] = { "resume", "a node resumes from any epoch", true, true },
	[LOCK_BREAK_FREE] = { "free", "a dead holder is forgotten untold", false, true },
	[LOCK_BREAK_OUT] = { "out", "who was given up does not find out", false, true },
	[LOCK_BREAK_THAW] = { "thaw", "a node goes on while it is frozen", false, true },
	[LOCK_BREAK_FLAT] = { "flat", "a node stays in queues of smaller elements", false, true },
	[LOCK_BREAK_WITH] = { "with", "a lock that goes with a smaller one is kept", false, true },
	[LOCK_BREAK_TWICE] = { "twice", "whether a lost atomic was done is not asked", true },
	[LOCK_BREAK_ID] = { "id", "who got a lock from its element thinks that it is counted" },
	[LOCK_BREAK_PASSES] = { "passes", "how often it was passed on does not go with the lock" },
	[LOCK_BREAK_CARRY] = { "carry", "the lock of a larger element does not go with a smaller" },
	[LOCK_BREAK_PARENT] = { "parent", "the lock of a larger element is not left", true },
	[LOCK_BREAK_IDLE] = { "idle", "a lock is kept though it is wanted in a larger element" },
	[LOCK_BREAK_ALONE] = { "alone", "a lock from the same element is taken for unwanted" },
	[LOCK_BREAK_BATCH] = { "batch", "more than waited at a node have it in one turn" },
	[LOCK_BREAK_TURNS] = { "turns", "an element has more turns than it has nodes" },
};

static u64 state;
static bool lossy, plain, flat, home_dies;
static unsigned int racks, chassis = 1, deaths;
static int threshold = -1;
static unsigned int nodes_min = 2, nodes_max = 8, rounds, contention;
static struct result {
	u64 seeds, failed;
	struct lock_counts counts;
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
		lock_nodes_tell();
	fflush(stdout);
	_exit(1);
}

/* ---- a seed ---- */

static void choose(u64 seed)
{
	unsigned int i;

	state = seed * 0xd1342543de82ef95ULL + 1;
	sim_random();
	memset(&sim, 0, sizeof(sim));
	memset(&lock, 0, sizeof(lock));
	lock.nodes = sim_between(nodes_min, nodes_max);
	lock.home = sim_below(lock.nodes);
	lock.parts[0] = racks ?: sim_chance(3) ? 1 : sim_between(2, 4);
	lock.parts[1] = racks ? chassis : sim_chance(2) ? 1 : sim_between(2, 3);
	lock.mixed = !racks;
	lock.flat = flat;
	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		lock.t_l[i] = threshold > 0 ? threshold :
			      !threshold || sim_chance(3) ? KDSM_LOCK_T_L_AUTO :
			      sim_between(1, 6);
	lock.rounds = rounds ?: sim_between(1, 20);
	lock.hold = sim_chance(2) ? 3 : sim_between(1, 200);
	lock.away = sim_chance(2) ? 3 : sim_between(1, 1000);
	lock.keep = sim_below(4);
	lock.again = sim_below(3);
	lock.try = sim_chance(2) ? sim_between(2, 10) : 0;
	lock.check = sim_below(4);
	lock.wanting = sim_between(1, 3);
	/* Tickets wrap. */
	lock.ticket = sim_chance(2) ? 0 : KDSM_TICKET_MASK - sim_below(20);
	lock.old = !sim_below(4);
	sim.nodes = lock.nodes;
	sim.slow = lock.nodes;
	sim.yield = sim_chance(3) ? 1 : sim_between(2, 12);
	sim.preempt = sim_chance(3) ? 20 : 400;
	sim.delay = sim_chance(3) ? 5 : sim_between(10, 200);
	sim.late = sim_chance(2) ? 10 : 100;
	sim.pause = 1;
	if (lossy || (!plain && sim_chance(4)))
		sim.error = sim_chance(2) ? sim_between(4, 30) : sim_between(30, 500);
	/* Some questions have to be answered by all nodes. */
	if (sim.error && (lock.nodes > 8 || deaths))
		sim.error += 8 * lock.nodes;
	/* Who is in doubt takes what it is handed, and has only the sum to go by. */
	lock.old &= !sim.error;
	if (deaths && lock.nodes > 2)
		lock.deaths = sim_between(1, min(deaths, lock.nodes - 2));
	if (deaths) {
		lock.die = sim_chance(2) ? 2000 : 20000;
		lock.away_too = sim_chance(2);
		lock.home_dies = home_dies;
		lock.old = false;
		if (home_dies)
			lock.deaths = 0;
	}
	if (contention) {
		lock.old = false;
		lock.away = contention == 1 ? 0 : contention;
		lock.hold = 2;
		lock.keep = 0;
		lock.again = 0;
		lock.check = 0;
		lock.wanting = 1;
		lock.try = 0;
		sim.delay = 3;
		sim.late = 0;
		sim.preempt = 0;
	}
}

static void run_seed(u64 seed)
{
	choose(seed);
	sim_event(-1, "nodes %u in %u * %u home %u rounds %u hold %u away %u keep %u again %u "
		  "try %u error %u", lock.nodes, lock.parts[0], lock.parts[1], lock.home,
		  lock.rounds, lock.hold, lock.away, lock.keep, lock.again, lock.try, sim.error);
	sim_clock_start();
	lock_nodes_start();
	lock_fabric_start();
	lock_deaths_start();
	sim_run();
	lock_nodes_stop();
	lock_fabric_stop();
	result->seeds++;
	if (contention)
		lock_waits_count();
	result->counts = lock_counts;
}

static void usage(FILE *file)
{
	unsigned int i;

	fprintf(file,
		"usage: sim-lock [OPTION...]\n"
		"Runs the queue of nodes for a lock on simulated nodes, once for each seed.\n\n"
		"  -s SEED      the first seed (1)\n"
		"  -n COUNT     so many seeds (1000; 1 with -v)\n"
		"  -N N[-M]     so many nodes (2-8; at most %u)\n"
		"  -r ROUNDS    acquisitions of a node\n"
		"  -R N[xM]     in N racks, of M chassis each; without it anywhere\n"
		"  -T COUNT     thresholds of all levels; 0: automatic\n"
		"  -F           one queue, wherever the nodes are\n"
		"  -c US        count operations: away that long between acquisitions; 1: not at all\n"
		"  -d COUNT     at most so many nodes die, or are away for a while\n"
		"  -H           the home dies\n"
		"  -p           no seed with errors\n"
		"  -l           in every seed messages and operations get lost\n"
		"  -v           print every event\n"
		"  -b NAME      put in a fault; succeeds if it is found\n"
		"  -h           print this\n\nFaults:\n", LOCK_NODES);
	for (i = 1; i < LOCK_BREAK_COUNT; i++)
		fprintf(file, "  %-8s %s\n", breaks[i].name, breaks[i].what);
}

int main(int argc, char **argv)
{
	u64 seed = 1, count = 0, done = 0;
	int option, status = 0;
	unsigned int i;
	pid_t pid;

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	while ((option = getopt(argc, argv, "s:n:N:R:T:Fr:c:d:Hplvb:h")) != -1) {
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
		case 'R':
			if (sscanf(optarg, "%ux%u", &racks, &chassis) < 1 || !racks || !chassis)
				goto wrong;
			break;
		case 'T':
			threshold = atoi(optarg);
			break;
		case 'F':
			flat = true;
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 'c':
			contention = atoi(optarg);
			break;
		case 'd':
			deaths = atoi(optarg);
			break;
		case 'H':
			home_dies = true;
			deaths = deaths ?: 1;
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
			for (i = 1; i < LOCK_BREAK_COUNT; i++)
				if (!strcmp(optarg, breaks[i].name))
					lock_broken = i;
			if (!lock_broken)
				goto wrong;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			goto wrong;
		}
	}
	if (optind < argc || nodes_min < 2 || nodes_min > nodes_max || nodes_max > LOCK_NODES)
		goto wrong;
	if (lock_broken) {
		lossy |= breaks[lock_broken].lossy;
		plain = !lossy;
		if (breaks[lock_broken].deaths)
			deaths = 2;
	}
	if (!count)
		count = sim_verbose ? 1 : 1000;
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
	if (contention && result->seeds) {
		const struct lock_counts *c = &result->counts;

		printf("nodes %u-%u: %llu acquisitions, operations an enqueue %.3f (most %llu), "
		       "a release %.3f, of which %.1f %% hand over\n", nodes_min, nodes_max,
		       c->enters, (double)c->enter_ops / c->enters, c->enter_max,
		       (double)c->leave_ops / c->leaves, 100.0 * c->hands / c->leaves);
		printf("operations a hold %.3f; of holds so many go to another element of level",
		       (double)c->operations / c->holds);
		for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
			if (c->crossed[i - 1])
				printf(" %u: %.2f %%", i, 100.0 * c->crossed[i - 1] / c->holds);
		printf("\nthe longest wait is %.1f times the median\n",
		       (double)c->longest / (c->median ?: 1));
	}
	if (!status)
		return lock_broken ? 1 : 0;
	if (WIFSIGNALED(status))
		snprintf(result->what, sizeof(result->what), "signal %d", WTERMSIG(status));
	printf("seed %llu failed: %s\n", seed + result->seeds, result->what);
	return lock_broken ? 0 : 1;
wrong:
	usage(stderr);
	return 2;
}
