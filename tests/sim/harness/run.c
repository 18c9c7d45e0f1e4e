// SPDX-License-Identifier: GPL-2.0
/*
 * Seeds: the random numbers of a seed, the processes that run many seeds, and the replay of a
 * seed that failed. A failed seed ends its process, because its fibers cannot be unwound. The
 * harness then runs the seed once more, with events, in a process of its own, where it must
 * fail in the same way.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* Number of seeds without --seeds */
#define SEEDS_DEFAULT	1000

/* How a seed failed. Two runs of a seed must agree in all fields. */
struct failure {
	u64 seed, steps, time, random;
	s64 object;
	char what[256];
};

/* Shared by the processes that run seeds. */
struct shared {
	u64 taken;		/* number of seeds that processes have begun */
	bool stop;		/* no process begins a further seed */
};

/* A process that runs seeds; shared with the process that has started it. */
struct job {
	pid_t pid;
	u64 seeds;		/* number of seeds that passed */
	bool failed;
	struct failure failure;
	u64 counters[];		/* see counter() */
};

u64 sim_random_state;
struct sim_config sim;
struct sim_counts sim_counts;
static struct shared *shared;
static void *jobs;
static struct job *job;		/* of this process */

/* ---- one seed ---- */

static void random_start(u64 seed)
{
	sim_random_state = seed * 0xd1342543de82ef95ULL + 1;
	sim_random();
}

void sim_choose_schedule(void)
{
	sim.yield = sim_chance(3) ? 1 : sim_between(2, 12);
	sim.preempt = sim_chance(3) ? 20 : 400;
	sim.delay = sim_chance(3) ? 5 : sim_between(10, 200);
	sim.late = sim_chance(2) ? 10 : 100;
}

void sim_choose_errors(unsigned int one_in, unsigned int smallest)
{
	const struct sim_options *options = sim_program.options;

	if (options->lossy || (!options->plain && sim_chance(one_in)))
		sim.error = sim_chance(2) ? sim_between(smallest, 30) : sim_between(30, 500);
}

static void choose(u64 seed)
{
	random_start(seed);
	memset(&sim, 0, sizeof(sim));
	sim.nodes = sim_between(sim_program.options->nodes_min, sim_program.options->nodes_max);
	sim.slow = sim.nodes;
	sim.yield = 1;
	sim.pause = 1;
	sim.stray = 1000;
	sim.steps_max = 5000000 * DIV_ROUND_UP_ULL(sim.nodes, 64);
	sim.time_max = 20000ULL * 1000000;
	sim_program.choose(seed);
}

static void run_seed(u64 seed)
{
	job->failure.seed = seed;
	sim_scheduler_start();
	sim_memory_start();
	choose(seed);
	sim_event(SIM_NONE, "seed %llu: nodes %u yield %u preempt %u delay %u late %u slow %u error %u nomem %u",
		  seed, sim.nodes, sim.yield, sim.preempt, sim.delay, sim.late, sim.slow,
		  sim.error, sim.nomem);
	sim_fabric_start();
	sim_program.start();
	sim_run();
	while (sim_program.again && sim_program.again())
		sim_run();
	sim_program.stop();
	sim_fabric_stop();
	sim_memory_stop();
	sim_counts.steps += sim_steps();
	sim_event(SIM_NONE, "the seed has ended: %llu steps, random state %016llx", sim_steps(),
		  sim_random_state);
}

void sim_failed(s64 object, const char *what)
{
	struct failure *failure = &job->failure;
	bool verbose = sim_program.options->verbose;

	failure->steps = sim_steps();
	failure->time = sim_now();
	failure->random = sim_random_state;
	failure->object = object;
	snprintf(failure->what, sizeof(failure->what), "%s", what);
	job->failed = true;
	shared->stop = true;
	if (sim_tracing && !verbose && !sim_broken) {
		printf("the last events:\n");
		sim_trace_tell(object);
	}
	if (sim_tracing && sim_program.tell && (verbose || !sim_broken))
		sim_program.tell();
	fflush(stdout);
	_exit(1);
}

/* ---- counters ---- */

static const struct sim_counter own_counters[] = {
	{ "steps", &sim_counts.steps },
	{ "messages", &sim_counts.messages },
	{ "operations", &sim_counts.operations },
	{ "late", &sim_counts.late },
	{ "lost", &sim_counts.lost },
	{ "stray", &sim_counts.stray },
	{ "allocations-failed", &sim_counts.nomem },
};

#define OWN_COUNTERS	(sizeof(own_counters) / sizeof(own_counters[0]))

static unsigned int counter_count(void)
{
	unsigned int i;

	for (i = 0; sim_program.counters[i].name; i++)
		;
	return OWN_COUNTERS + i;
}

static const struct sim_counter *counter(unsigned int i)
{
	return i < OWN_COUNTERS ? &own_counters[i] : &sim_program.counters[i - OWN_COUNTERS];
}

static void counters_publish(void)
{
	unsigned int i;

	for (i = 0; i < counter_count(); i++)
		job->counters[i] = *counter(i)->value;
}

static void counters_add(const struct job *from)
{
	unsigned int i;

	for (i = 0; i < counter_count(); i++) {
		u64 *value = counter(i)->value;

		*value = counter(i)->most ? max(*value, from->counters[i]) :
			 *value + from->counters[i];
	}
}

static void counters_print(void)
{
	unsigned int i;

	for (i = 0; i < counter_count(); i++)
		printf("  %-24s %llu\n", counter(i)->name, *counter(i)->value);
}

/* ---- processes ---- */

static size_t job_size(void)
{
	return sizeof(struct job) + counter_count() * sizeof(u64);
}

static struct job *job_of(unsigned int i)
{
	return jobs + i * job_size();
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec + (now.tv_nsec - start->tv_nsec) / 1e9;
}

static void crashed(int number)
{
	char what[32];

	snprintf(what, sizeof(what), "signal %d", number);
	sim_failed(SIM_NONE, what);
}

/* A fiber whose stack has overflowed cannot run a handler on that stack. */
static void catch_crashes(void)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	static char stack[65536];
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_ONSTACK };
	unsigned int i;

	sigaltstack(&alternative, NULL);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

static void __attribute__((noreturn)) run_job(u64 first, u64 count)
{
	const struct sim_options *options = sim_program.options;
	struct timespec start;
	u64 i;

	catch_crashes();
	if (options->verbose)
		sim_trace_start();
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		i = __atomic_fetch_add(&shared->taken, 1, __ATOMIC_RELAXED);
		if (i >= count)
			break;
		run_seed(first + i);
		job->seeds++;
		counters_publish();
		if (options->time && seconds_since(&start) * 1e9 >= options->time)
			break;
	}
	fflush(stdout);
	_exit(0);
}

/* Wait for the end of one process, and record its death by a signal. False: there is none. */
static bool processes_wait(void)
{
	unsigned int i;
	int status;
	pid_t pid;

	pid = wait(&status);
	for (i = 0; pid > 0 && i <= sim_program.options->jobs; i++) {
		job = job_of(i);
		if (job->pid != pid || !WIFSIGNALED(status))
			continue;
		job->failed = true;
		job->failure.object = SIM_NONE;
		snprintf(job->failure.what, sizeof(job->failure.what), "killed by signal %d",
			 WTERMSIG(status));
		shared->stop = true;
	}
	return pid > 0;
}

/* Start a process for the job. True in that process; only its parent writes job->pid. */
static bool start_process(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		err(EXIT_FAILURE, "cannot start a process");
	if (pid)
		job->pid = pid;
	return !pid;
}

static void jobs_run(u64 first, u64 count, unsigned int processes)
{
	unsigned int i;

	shared->taken = 0;
	shared->stop = false;
	for (i = 0; i < processes && i < count; i++) {
		job = job_of(i);
		if (start_process())
			run_job(first, count);
	}
	while (processes_wait())
		;
}

/* ---- replay ---- */

static bool is_same(const struct failure *a, const struct failure *b)
{
	return a->seed == b->seed && a->steps == b->steps && a->time == b->time &&
	       a->random == b->random && a->object == b->object && !strcmp(a->what, b->what);
}

/* Run the seed once more, and print its last events. Returns whether it failed in the same way. */
static bool replay(const struct failure *failure)
{
	struct job *again = job_of(sim_program.options->jobs);

	shared->stop = false;
	job = again;
	if (start_process()) {
		catch_crashes();
		sim_trace_start();
		run_seed(failure->seed);
		_exit(0);
	}
	while (processes_wait())
		;
	if (again->failed && is_same(failure, &again->failure))
		return true;
	printf("the replay of seed %llu differs: %s after %llu steps, not after %llu\n",
	       failure->seed, again->failed ? again->failure.what : "it passes",
	       again->failure.steps, failure->steps);
	return false;
}

static void failure_print(const struct failure *failure)
{
	printf("seed %llu failed after %llu steps: ", failure->seed, failure->steps);
	if (failure->object >= 0)
		printf("%s %lld: ", sim_program.object, (long long)failure->object);
	printf("%s\n", failure->what);
}

/* ---- all seeds ---- */

/* The failure of the lowest seed that failed; NULL: no seed failed */
static struct failure *jobs_failure(void)
{
	struct failure *failure = NULL;
	unsigned int i;

	for (i = 0; i < sim_program.options->jobs; i++) {
		struct job *each = job_of(i);

		if (each->failed && (!failure || each->failure.seed < failure->seed))
			failure = &each->failure;
	}
	return failure;
}

/* False: the program finds the sums wrong. */
static bool print_sums(const struct timespec *start)
{
	u64 seeds = 0;
	unsigned int i;

	for (i = 0; i < sim_program.options->jobs; i++) {
		seeds += job_of(i)->seeds;
		counters_add(job_of(i));
	}
	printf("%llu seeds, %llu steps, %.1f s\n", seeds, sim_counts.steps,
	       seconds_since(start));
	if (sim_program.options->stats)
		counters_print();
	return !seeds || !sim_program.report || sim_program.report();
}

int sim_run_seeds(const char *path, char **arguments)
{
	const struct sim_options *options = sim_program.options;
	u64 count = options->seeds ?: options->verbose ? 1 : SEEDS_DEFAULT;
	struct failure *failure;
	struct timespec start;
	bool same, right;

	shared = mmap(NULL, sizeof(*shared) + (options->jobs + 1) * job_size(),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(EXIT_FAILURE, "cannot share memory");
	jobs = shared + 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	jobs_run(options->seed, count, options->jobs);
	right = print_sums(&start);
	failure = jobs_failure();
	if (!failure)
		return sim_broken || !right ? 1 : 0;
	failure_print(failure);
	same = options->verbose || replay(failure);
	if (sim_broken)
		return same ? 0 : 1;
	if (options->replays)
		return 1;
	printf("replay it: %s", path);
	for (; *arguments; arguments++)
		printf(" %s", *arguments);
	printf(" --replay %llu\n", failure->seed);
	return 1;
}
