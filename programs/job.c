// SPDX-License-Identifier: GPL-2.0
/* The frame of the programs, see job.h. */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/cluster.h"
#include "common/counters.h"
#include "job.h"

#define MAX_THREADS	64
#define MAX_PROCESSES	16
#define DEFAULT_TIMEOUT	300	/* of a wait for other workers, in s */

/* Measurements of one node, in its part of the partitioned region. */
struct report {
	uint64_t ns, barriers, expected;
	struct counters counters;
};

/* ---- command line ---- */

struct arguments {
	const char *class, *name;
	unsigned int threads, processes;
	uint64_t block_size, timeout;
	bool packed, local;
};

#define AT(member)	.offset = offsetof(struct arguments, member)

static int parse_block(void *values, const char *text, char *reason)
{
	return block_parse(text, &((struct arguments *)values)->block_size, reason);
}

static const char *const classes[] = { "S", "W", NULL };

static const struct cli_option options[] = {
	{ "class", 'c', "CLASS", "Size of the problem, S or W (S)", CLI_WORD, AT(class),
	  .words = classes },
	{ "threads", 'n', "THREADS", "Workers of a process (1)", CLI_COUNT, AT(threads),
	  .range = { 1, MAX_THREADS, 1 } },
	{ "processes", 'p', "PROCESSES", "Processes on a node (1)", CLI_COUNT, AT(processes),
	  .range = { 1, MAX_PROCESSES, 1 } },
	{ "block", 'b', "SIZE", "Block size of the memory, a power of two from 4K to 2M (4K)",
	  CLI_PARSED, .parse = parse_block },
	{ "packed", 0, NULL, "Let nodes share blocks where their shares meet, to see the cost",
	  CLI_FLAG, AT(packed) },
	{ "local", 0, NULL, "Use this machine alone, even if there is a cluster", CLI_FLAG,
	  AT(local) },
	{ "job", 0, "NAME", "Programs with the same name work together (the program's name)",
	  CLI_TEXT, AT(name) },
	{ "timeout", 0, "SECONDS", "Fail when another worker does not come for this time (300)",
	  CLI_TIME, AT(timeout), .range = { SECOND, 86400 * SECOND, SECOND } },
	{ 0 }
};

static void parse(struct job *job, int argc, char **argv)
{
	const struct cli cli = {
		.doc = job->program->doc,
		.options = { options },
	};
	struct arguments arguments = {
		.class = classes[0],
		.name = job->program->name,
		.threads = 1,
		.processes = 1,
		.block_size = 4096,
		.timeout = DEFAULT_TIMEOUT * SECOND,
	};

	cli_parse(&cli, argc, argv, &arguments);
	job->class = *arguments.class;
	job->name = arguments.name;
	job->threads = arguments.threads;
	job->processes = arguments.processes;
	job->block_size = arguments.block_size;
	job->timeout = arguments.timeout;
	job->packed = arguments.packed;
	job->local = arguments.local;
}

void job_check(const char *what, int error)
{
	if (error < 0)
		errx(EXIT_FAILURE, "%s: %s", what, kdsm_error(error));
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* ---- memory ---- */

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

void *job_alloc(struct job *job, uint64_t bytes)
{
	uint64_t offset = job->used;

	job->used += round_up(bytes, job->block_size);
	return (void *)(job->base + offset);
}

uint64_t job_alloc_sync(struct job *job, uint64_t bytes)
{
	uint64_t offset = job->sync_used;

	job->sync_used += round_up(bytes, 64);
	return offset;
}

struct spread job_spread(struct job *job, uint64_t count, uint64_t size)
{
	uint64_t most = (count + job->nodes - 1) / job->nodes;
	struct spread spread = {
		.stride = round_up(most * size, job->packed ? 64 : job->block_size),
		.count = count,
		.size = size,
		.nodes = job->nodes,
	};

	spread.base = job_alloc(job, spread.stride * job->nodes);
	return spread;
}

static void layout(struct job *job)
{
	job->used = 0;
	job->sync_used = 0;
	/* The first allocation has offset 0, which open_regions() relies on. */
	job_alloc_sync(job, KDSM_TREE_BARRIER_SIZE);
	job->failures = job_alloc_sync(job, sizeof(uint64_t));
	job->report = job_alloc_sync(job, sizeof(struct report));
	job->program->layout(job);
}

static struct report *own_report(const struct job *job)
{
	return (struct report *)((char *)kdsm_region_part(job->sync) + job->report);
}

static void open_regions(struct job *job)
{
	uint32_t participants[KDSM_MAX_NODES];
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .block_size = job->block_size };
	unsigned int i;
	int ret;

	ret = kdsm_open(job->local ? KDSM_OPEN_LOCAL : KDSM_OPEN_ALLOW_LOCAL, &job->kdsm);
	if (ret < 0)
		errx(EXIT_FAILURE, "%s", kdsm_error(ret));
	job->node = kdsm_node(job->kdsm);
	job->nodes = kdsm_nodes(job->kdsm);
	job->per_node = job->threads * job->processes;
	job->workers = job->per_node * job->nodes;

	layout(job);
	attr.size = job->used ? job->used : job->block_size;
	job_check("cannot open the shared memory",
		  kdsm_region_open_coherent(job->kdsm, job->name, &attr, job->sync_used,
					    &job->region, &job->sync));
	job->base = (uintptr_t)kdsm_region_address(job->region);
	layout(job);

	for (i = 0; i < job->nodes; i++)
		participants[i] = job->per_node;
	job_check("barrier", kdsm_tree_barrier_init(&job->barrier, job->region, job->sync, 0,
						    participants));
}

/* ---- workers ---- */

static void meet(struct job *job)
{
	unsigned int culprit = 0;
	int ret = kdsm_tree_barrier_wait(&job->barrier, job->timeout, &culprit);

	if (ret < 0)
		errx(EXIT_FAILURE, "barrier: %s, because of node %u", kdsm_error(ret), culprit);
}

void worker_barrier(struct worker *worker)
{
	worker->barriers++;
	meet(worker->job);
}

/* At the begin store time and counters in this node's report, at the end their differences. */
static void measure(struct job *job, bool begin)
{
	struct report *report = own_report(job);
	uint64_t *was = (uint64_t *)&report->counters, *is, i;
	struct counters counters = { 0 };

	if (!kdsm_is_local(job->kdsm) && counters_read(job->name, &counters))
		exit(EXIT_FAILURE);
	is = (uint64_t *)&counters;
	for (i = 0; i < sizeof(counters) / sizeof(*is); i++)
		was[i] = is[i] - (begin ? 0 : was[i]);
	report->ns = now() - (begin ? 0 : report->ns);
}

void worker_begin(struct worker *worker)
{
	worker_barrier(worker);
	if (worker->first)
		measure(worker->job, true);
	worker->barriers = 0;
	worker_barrier(worker);
}

void worker_end(struct worker *worker)
{
	worker_barrier(worker);
	if (worker->first) {
		measure(worker->job, false);
		own_report(worker->job)->barriers = worker->barriers;
	}
	worker_barrier(worker);
}

void worker_expects(struct worker *worker, uint64_t blocks)
{
	own_report(worker->job)->expected = blocks;
}

static void *run_worker(void *data)
{
	struct worker *worker = data;
	struct job *job = worker->job;

	if (!job->program->work(worker))
		job_check("cannot report a failure",
			  kdsm_faa(job->sync, 0, job->failures, 1, NULL));
	/* After this barrier every process can read all failures and all reports. */
	meet(job);
	return NULL;
}

static void run_threads(struct job *job)
{
	pthread_t threads[MAX_THREADS];
	struct worker workers[MAX_THREADS];
	unsigned int i, n;

	if (job->program->open)
		job->program->open(job);
	for (i = 0; i < job->threads; i++) {
		n = job->process * job->threads + i;
		workers[i] = (struct worker) {
			.job = job,
			.rank = job->node * job->per_node + n,
			.first = n == 0,
		};
		job_check("no thread",
			  -pthread_create(&threads[i], NULL, run_worker, &workers[i]));
	}
	for (i = 0; i < job->threads; i++)
		pthread_join(threads[i], NULL);
	if (job->program->close)
		job->program->close(job);
}

/* Returns the number of the process: 0 in the process that forks the others. */
static unsigned int start_processes(const struct job *job)
{
	pid_t parent = getpid(), child;
	unsigned int i;

	fflush(NULL);
	for (i = 1; i < job->processes; i++) {
		child = fork();
		if (child < 0)
			job_check("no process", -errno);
		if (child)
			continue;
		/* A child must not outlive a parent that is killed. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		return i;
	}
	return 0;
}

/* Wait for all children. Returns whether all exited with 0. */
static bool end_processes(const struct job *job)
{
	unsigned int i;
	bool good = true;
	int status;

	for (i = 1; i < job->processes; i++)
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			good = false;
	return good;
}

/* ---- afterwards ---- */

static void add_report(struct total *total, const struct report *report)
{
	const uint64_t *operations = report->counters.operations;
	unsigned int i;

	total->expected += report->expected;
	total->gets += operations[KDSM_STAT_GET];
	total->puts += operations[KDSM_STAT_PUT] + operations[KDSM_STAT_PUT_NOTIFY];
	/* Atomics of the device take the place of messages in other domains. */
	total->messages += operations[KDSM_STAT_AM] + operations[KDSM_STAT_CAS] +
			   operations[KDSM_STAT_FAA];
	total->bytes += operations[KDSM_STAT_GET_BYTES] + operations[KDSM_STAT_PUT_BYTES];
	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		total->coherence[i] += report->counters.coherence[i];
}

static void print_coherence(const uint64_t *c)
{
	printf("faults: %" PRIu64 " read, %" PRIu64 " write; blocks read: %" PRIu64
	       " of a known writer, %" PRIu64 " of an owner that was asked\n",
	       c[KDSM_COHERENCE_READ_FAULTS], c[KDSM_COHERENCE_WRITE_FAULTS],
	       c[KDSM_COHERENCE_FAST_READS], c[KDSM_COHERENCE_SLOW_READS]);
	printf("blocks released: %" PRIu64 " by their owner, %" PRIu64
	       " taken over; made invalid: %" PRIu64 "; merges: %" PRIu64
	       "; data races seen: %" PRIu64 "\n",
	       c[KDSM_COHERENCE_FAST_RELEASES], c[KDSM_COHERENCE_SLOW_RELEASES],
	       c[KDSM_COHERENCE_INVALIDATIONS], c[KDSM_COHERENCE_MERGES],
	       c[KDSM_COHERENCE_RACES]);
	printf("ranges remapped: %" PRIu64 "; bytes of blocks brought: %" PRIu64
	       "; blocks looked at by acquires: %" PRIu64 "; leases renewed: %" PRIu64 "\n",
	       c[KDSM_COHERENCE_FLUSHES], c[KDSM_COHERENCE_BYTES], c[KDSM_COHERENCE_LOOKED],
	       c[KDSM_COHERENCE_RENEWALS]);
}

static void print_total(const struct job *job, const struct total *total)
{
	printf("time: %.3f s, %" PRIu64 " barriers\n", total->ns / 1e9, total->barriers);
	if (job->nodes == 1)
		return;
	printf("remote operations: %" PRIu64 " reads, %" PRIu64 " messages, %" PRIu64
	       " writes; %" PRIu64 " bytes\n",
	       total->gets, total->messages, total->puts, total->bytes);
	print_coherence(total->coherence);
	if (total->expected)
		printf("blocks that must move: %" PRIu64 "\n", total->expected);
}

/* Print the result on node 0. Returns whether no worker has found anything wrong. */
static bool finish(struct job *job)
{
	struct report report;
	struct total total = { 0 };
	uint64_t failures;
	unsigned int i;

	job_check("cannot read the number of failures",
		  kdsm_get(job->sync, 0, job->failures, &failures, sizeof(failures)));
	if (job->node || job->process)
		return !failures;
	for (i = 0; i < job->nodes; i++) {
		job_check("cannot read the report of a node",
			  kdsm_get(job->sync, i, job->report, &report, sizeof(report)));
		add_report(&total, &report);
		if (!i) {
			total.ns = report.ns;
			total.barriers = report.barriers;
		}
	}
	printf("%s class %c on %u node%s, %u process%s of %u thread%s, blocks of %u bytes\n",
	       job->program->name, job->class, job->nodes, job->nodes == 1 ? "" : "s",
	       job->processes, job->processes == 1 ? "" : "es",
	       job->threads, job->threads == 1 ? "" : "s", job->block_size);
	job->program->print(job, &total);
	print_total(job, &total);
	if (failures)
		printf("FAILED on %" PRIu64 " workers\n", failures);
	else
		printf("VERIFIED\n");
	return !failures;
}

int job_main(int argc, char **argv, const struct program *program)
{
	struct job job = { .program = program };
	bool good;

	parse(&job, argc, argv);
	open_regions(&job);
	job.process = start_processes(&job);
	run_threads(&job);
	good = finish(&job);
	if (!job.process)
		good &= end_processes(&job);
	/*
	 * Processes of other nodes may still read node 0's part in finish(). The module keeps
	 * the part until no process has the region open any more.
	 */
	kdsm_region_close(job.sync);
	kdsm_region_close(job.region);
	kdsm_close(job.kdsm);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
