// SPDX-License-Identifier: GPL-2.0
/*
 * task: classic programs for task queues, with one worker and with all: the cost of a task
 * beyond a plain call, and operations between nodes. steal: the time that a steal takes.
 *
 * Every program has its own job. Node 0 runs the first task, and all other nodes serve. Then
 * each node puts its counts into words of node 0, which adds them up.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/json.h"
#include "mark.h"
#include "task.h"

/* Counts of one node in a job. */
struct share {
	struct kdsm_tasks_counts counts;
	struct kdsm_counts remote;
};

#define SHARE_WORDS (sizeof(struct share) / sizeof(uint64_t))

/* ---- jobs ---- */

static uint64_t share_place(const struct bench *bench, unsigned int node)
{
	return DATA_OFFSET + (2 * BENCH_PROGRAMS + 1) * bench->bytes + node * sizeof(struct share);
}

static int no_job(const struct bench *bench, int error)
{
	return complain(bench->run->options, "node %u: tasks: %s", bench->run->node,
			kdsm_error(error));
}

static int open_job(struct bench *bench, uint32_t workers, struct kdsm_tasks **tasks)
{
	struct kdsm_tasks_attr attr = bench->attr;
	int ret;

	attr.workers = workers;
	ret = kdsm_tasks_open(bench->run->region,
			      DATA_OFFSET + bench->jobs * bench->bytes, &attr, tasks);
	return ret ? no_job(bench, ret) : 0;
}

static void add_words(uint64_t *sum, const uint64_t *words)
{
	size_t i;

	for (i = 0; i < SHARE_WORDS; i++)
		sum[i] += words[i];
}

/* Lead or serve a job until it ends. On node 0, *sum has the counts of all nodes. */
static int take_part(struct bench *bench, int (*lead)(struct bench *bench,
						      struct kdsm_tasks *tasks, void *context),
		     void *context, struct share *sum)
{
	struct run *run = bench->run;
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_tasks *tasks;
	struct share share = { .counts.argsz = sizeof(share.counts) };
	unsigned int node;
	int ret, failed;

	ret = open_job(bench, bench->options->workers, &tasks);
	bench->jobs++;
	if (run_meet(run) || ret)
		return 1;
	kdsm_counts(run->kdsm, &before);
	if (run->measures) {
		ret = lead(bench, tasks, context);
		failed = kdsm_tasks_end(tasks);
		ret = ret ? ret : failed;
	} else {
		ret = kdsm_tasks_serve(tasks);
	}
	kdsm_tasks_counts(tasks, &share.counts);
	counts_since(run, &before, &share.remote);
	kdsm_tasks_close(tasks);
	if (ret)
		return no_job(bench, ret);
	ret = kdsm_put(run->region, 0, share_place(bench, run->node), &share, sizeof(share));
	if (ret)
		return no_job(bench, ret);
	if (run_meet(run))
		return 1;
	memset(sum, 0, sizeof(*sum));
	for (node = 0; run->measures && node < run->nodes; node++)
		add_words((uint64_t *)sum,
			  (uint64_t *)((char *)kdsm_region_part(run->region) +
				       share_place(bench, node)));
	return 0;
}

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- task ---- */

struct times {
	const struct program *program;
	uint64_t result;
	double plain, solo;	/* least CPU time of plain functions, and of one worker, in s */
	double all;		/* least time of all workers, in s, or in virtual s */
	double whole;		/* time of all runs with all workers, in s, or in virtual s */
	struct kdsm_virtual_times shares;	/* of the latter */
};

static int wrong(const struct bench *bench, const struct times *times, uint64_t result)
{
	return complain(bench->run->options, "%s gave %llu instead of %llu", times->program->name,
			(unsigned long long)result, (unsigned long long)times->result);
}

/* Run plain functions and tasks in turn, so that both meet the same disturbances. */
static int measure_solo(struct bench *bench, struct times *times)
{
	const struct program *program = times->program;
	struct kdsm_tasks *tasks;
	unsigned int i;
	double begin, spent;
	uint64_t result = 0;
	int ret;

	ret = open_job(bench, 1, &tasks);
	if (ret)
		return ret;
	times->plain = INFINITY;
	times->solo = INFINITY;
	for (i = 0; i < bench->run->options->calls && !ret; i++) {
		begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
		mark_place(MARK_BEGIN);
		times->result = program->plain(bench);
		mark_place(MARK_MIDDLE);
		spent = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
		if (spent < times->plain)
			times->plain = spent;
		begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
		ret = program->run(bench, tasks, &result);
		mark_place(MARK_END);
		spent = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
		if (spent < times->solo)
			times->solo = spent;
		if (ret)
			ret = no_job(bench, ret);
		else if (result != times->result)
			ret = wrong(bench, times, result);
	}
	kdsm_tasks_close(tasks);
	return ret;
}

static int lead_all(struct bench *bench, struct kdsm_tasks *tasks, void *context)
{
	struct times *times = context;
	double start = now_ns() / 1e9, begin, spent;
	uint64_t result = 0;
	unsigned int i;
	int ret = 0;

	times->all = INFINITY;
	kdsm_virtual_reset();
	for (i = 0; i < bench->run->options->calls && !ret; i++) {
		begin = now_ns() / 1e9;
		ret = times->program->run(bench, tasks, &result);
		spent = now_ns() / 1e9 - begin;
		if (spent < times->all)
			times->all = spent;
		if (!ret && result != times->result) {
			wrong(bench, times, result);
			ret = -EIO;
		}
	}
	times->whole = now_ns() / 1e9 - start;
	times->shares.argsz = sizeof(times->shares);
	kdsm_virtual_times(&times->shares);
	return ret;
}

static uint64_t remote_operations(const struct share *sum)
{
	return sum->remote.get + sum->remote.put + sum->remote.cas + sum->remote.faa +
	       sum->remote.steal;
}

static double per(uint64_t value, uint64_t count)
{
	return count ? (double)value / count : 0;
}

static void add_counts(struct json_object *object, const struct share *sum)
{
	const struct { const char *name; uint64_t value; } counts[] = {
		{ "stolen", sum->counts.stolen }, { "leaps", sum->counts.leaps },
		{ "failed", sum->counts.failed }, { "requests", sum->counts.requests },
		{ "refused", sum->counts.refused }, { "empty", sum->counts.empty },
		{ "received", sum->counts.received }, { "results", sum->counts.results },
		{ "pokes", sum->counts.pokes }, { "hungry", sum->counts.hungry },
		{ "sleeps", sum->counts.sleeps }, { "wakes", sum->counts.wakes },
		{ "full", sum->counts.full },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_object_add(object, counts[i].name,
				       json_object_new_uint64(counts[i].value));
	json_object_object_add(object, "remote", report_remote(&sum->remote));
}

static const struct column columns[] = {
	{ "program", TABLE_LEFT, 7 },
	{ "tasks", TABLE_RIGHT, 9 },
	{ "plain s", TABLE_RIGHT, 9 },
	{ "1 worker s", TABLE_RIGHT, 10 },
	{ "ns/task", TABLE_RIGHT, 8 },
	{ "all s", TABLE_RIGHT, 9 },
	{ "speed-up", TABLE_RIGHT, 8 },
	{ "steals/s", TABLE_RIGHT, 9 },
	{ "remote", TABLE_RIGHT, 7 },
	{ "operations", TABLE_RIGHT, 10 },
	{ 0 }
};

static void report(struct bench *bench, const struct times *times, const struct share *sum)
{
	uint64_t tasks = times->program->spawned(bench, times->result);
	double overhead = (times->solo - times->plain) * 1e9 / tasks;
	double steals = (sum->counts.stolen + sum->counts.received) / times->whole;
	struct table *table = bench->run->table;
	struct json_object *results, *object;

	if (table) {
		table_cell(table, "%s", times->program->name);
		table_cell(table, "%llu", (unsigned long long)tasks);
		table_cell(table, "%.4f", times->plain);
		table_cell(table, "%.4f", times->solo);
		table_cell(table, "%.2f", overhead);
		table_cell(table, "%.4f", times->all);
		table_cell(table, "%.2f", times->plain / times->all);
		table_cell(table, "%.0f", steals);
		table_cell(table, "%llu", (unsigned long long)sum->counts.received);
		table_cell(table, "%.2f", per(remote_operations(sum), sum->counts.received));
		table_print(table);
		return;
	}
	object = json_object_new_object();
	json_object_object_add(object, "program", json_object_new_string(times->program->name));
	json_object_object_add(object, "tasks", json_object_new_uint64(tasks));
	json_object_object_add(object, "plain_s", json_object_new_double(times->plain));
	json_object_object_add(object, "solo_s", json_object_new_double(times->solo));
	json_object_object_add(object, "overhead_ns", json_object_new_double(overhead));
	json_object_object_add(object, "all_s", json_object_new_double(times->all));
	json_object_object_add(object, "steals_per_second", json_object_new_double(steals));
	add_counts(object, sum);
	json_object_object_get_ex(bench->run->result, "results", &results);
	json_object_array_add(results, object);
}

static const struct column virtual_columns[] = {
	{ "program", TABLE_LEFT, 7 },
	{ "tasks", TABLE_RIGHT, 9 },
	{ "1x1 s", TABLE_RIGHT, 10 },
	{ "all s", TABLE_RIGHT, 10 },
	{ "speed-up", TABLE_RIGHT, 8 },
	{ "computing", TABLE_RIGHT, 9 },
	{ "waiting", TABLE_RIGHT, 7 },
	{ "remote", TABLE_RIGHT, 6 },
	{ "other", TABLE_RIGHT, 6 },
	{ "stolen", TABLE_RIGHT, 8 },
	{ "received", TABLE_RIGHT, 8 },
	{ "operations", TABLE_RIGHT, 10 },
	{ 0 }
};

static void report_virtual(struct bench *bench, const struct times *times,
			   const struct share *sum)
{
	double *alone = &bench->simulated->seconds[times->program - bench_programs];
	uint64_t tasks = times->program->spawned(bench, times->result);
	double computing = virtual_part(&times->shares, KDSM_VIRTUAL_COMPUTING);
	double waiting = virtual_part(&times->shares, KDSM_VIRTUAL_WAITING);
	double remote = virtual_remote(&times->shares), speed_up;
	struct table *table = bench->run->table;
	struct json_object *results, *object;

	if (bench->simulated->alone) {
		*alone = times->all;
		return;
	}
	speed_up = times->all > 0 ? *alone / times->all : 0;
	if (table) {
		table_cell(table, "%s", times->program->name);
		table_cell(table, "%llu", (unsigned long long)tasks);
		table_cell(table, "%.6f", *alone);
		table_cell(table, "%.6f", times->all);
		table_cell(table, "%.2f", speed_up);
		table_cell(table, "%.1f %%", 100 * computing);
		table_cell(table, "%.1f %%", 100 * waiting);
		table_cell(table, "%.1f %%", 100 * remote);
		table_cell(table, "%.1f %%", 100 * fabs(1 - computing - waiting - remote));
		table_cell(table, "%llu", (unsigned long long)sum->counts.stolen);
		table_cell(table, "%llu", (unsigned long long)sum->counts.received);
		table_cell(table, "%.2f", per(remote_operations(sum), sum->counts.received));
		table_print(table);
		return;
	}
	object = json_object_new_object();
	json_text(object, "program", times->program->name);
	json_number(object, "tasks", tasks);
	json_seconds(object, "one_s", *alone);
	json_seconds(object, "all_s", times->all);
	json_seconds(object, "speed_up", speed_up);
	add_counts(object, sum);
	json_object_object_add(object, "virtual",
			       virtual_json(&bench->run->options->virtual, &times->shares));
	json_object_object_get_ex(bench->run->result, "results", &results);
	json_object_array_add(results, object);
}

static int one_program(struct bench *bench, const struct program *program)
{
	struct times times = { .program = program };
	struct share sum;
	int ret = 0;

	if (bench->simulated && bench->run->measures)
		times.result = program->plain(bench);
	else if (bench->run->measures)
		ret = measure_solo(bench, &times);
	bench->jobs++;
	if (run_meet(bench->run) || ret)
		return 1;
	ret = take_part(bench, lead_all, &times, &sum);
	if (ret || !bench->run->measures)
		return ret;
	if (bench->simulated)
		report_virtual(bench, &times, &sum);
	else
		report(bench, &times, &sum);
	return 0;
}

static void begin_table(struct bench *bench)
{
	const struct options *options = bench->run->options;

	if (bench->simulated && !bench->simulated->alone)
		run_table(bench->run, virtual_columns,
			  "tasks on %u simulated node%s of %u worker%s each, the least virtual seconds of %u run%s: one worker of\n"
			  "one node, all workers, and the parts of their time; tasks stolen on a node, tasks received from other\n"
			  "nodes, and remote operations for each of the latter",
			  bench->run->nodes, bench->run->nodes == 1 ? "" : "s",
			  bench->options->workers, bench->options->workers == 1 ? "" : "s",
			  options->calls, options->calls == 1 ? "" : "s");
	if (bench->simulated)
		return;
	run_table(bench->run, columns,
		  "tasks on %u node%s of %u worker%s each, the least of %u runs: plain functions, one worker and\n"
		  "its overhead, all workers; tasks from other nodes (remote), and remote operations for each",
		  bench->run->nodes, bench->run->nodes == 1 ? "" : "s",
		  bench->options->workers, bench->options->workers == 1 ? "" : "s",
		  options->calls);
}

static int all_programs(struct bench *bench)
{
	const struct program *program;
	unsigned int i;
	int ret = 0;

	begin_table(bench);
	for (i = 0; i < BENCH_PROGRAMS && !ret; i++) {
		program = &bench_programs[i];
		if (bench->options->program && strcmp(bench->options->program, program->name))
			continue;
		if (program->fits && !program->fits(bench->run))
			continue;
		ret = one_program(bench, program);
	}
	return ret;
}

/* ---- steal ---- */

KDSM_VOID_TASK(stolen_task)
{
}

/* Spawn tasks one by one, and sync each after a thief has marked its place in the deque. */
KDSM_TASK(uint64_t, be_robbed, uint64_t, times)
{
	uint64_t i;

	for (i = 0; i < times; i++) {
		KDSM_SPAWN(stolen_task);
		while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
			KDSM_POLL();
		KDSM_SYNC(stolen_task);
	}
	return times;
}

static int lead_robbed(struct bench *bench, struct kdsm_tasks *tasks, void *context)
{
	double *spent = context;
	uint64_t result;
	int ret;

	ret = KDSM_RUN(tasks, &result, be_robbed, bench->run->options->warmup);
	*spent = seconds(CLOCK_MONOTONIC);
	if (!ret)
		ret = KDSM_RUN(tasks, &result, be_robbed, bench->run->options->calls);
	*spent = seconds(CLOCK_MONOTONIC) - *spent;
	return ret;
}

static int all_steals(struct bench *bench)
{
	unsigned int calls = bench->run->options->calls;
	struct json_object *results, *object;
	struct share sum;
	double spent = 0;
	int ret;

	if (bench->run->nodes == 1 && bench->options->workers == 1)
		return complain(bench->run->options, "one worker on one node has no thief: give --workers 2");
	ret = take_part(bench, lead_robbed, &spent, &sum);
	if (ret || !bench->run->measures)
		return ret;
	if (!bench->run->options->json) {
		printf("%u tasks, each stolen: %.3f us each, %.0f steals/s; on the node %llu, by leapfrogging %llu; between nodes %llu\n",
		       calls, spent * 1e6 / calls, calls / spent,
		       (unsigned long long)sum.counts.stolen,
		       (unsigned long long)sum.counts.leaps,
		       (unsigned long long)sum.counts.received);
		printf("a task from another node: %.2f requests (%.2f refused, %.2f for nothing), %.2f results; %llu pokes, %llu puts for being woken\n",
		       per(sum.counts.requests, sum.counts.received),
		       per(sum.counts.refused, sum.counts.received),
		       per(sum.counts.empty, sum.counts.received),
		       per(sum.counts.results, sum.counts.received),
		       (unsigned long long)sum.counts.pokes,
		       (unsigned long long)sum.counts.hungry);
		report_remote_text(&sum.remote, "all, heartbeats included");
		return 0;
	}
	object = json_object_new_object();
	json_object_object_add(object, "steals", json_object_new_uint64(calls));
	json_object_object_add(object, "steal_us", json_object_new_double(spent * 1e6 / calls));
	add_counts(object, &sum);
	json_object_object_get_ex(bench->run->result, "results", &results);
	json_object_array_add(results, object);
	return 0;
}

/* ---- both ---- */

/* KDSM_CONTEXT() of all workers is the argument. */
static int start_worker(void *argument, void **context)
{
	*context = argument;
	return 0;
}

/* In each part, shares follow the jobs, and matrices follow the shares. */
static int open_region(struct bench *bench)
{
	struct run *run = bench->run;
	int ret;

	ret = run_region(run, share_place(bench, run->nodes) - DATA_OFFSET +
			      bench_matrices_bytes(run->nodes));
	if (ret)
		return ret;
	ret = bench_matrices_spread(bench, share_place(bench, run->nodes));
	return ret ? no_job(bench, ret) : 0;
}

static int bench_node(const struct options *options, struct kdsm *node, void *context)
{
	struct bench bench = { .options = &options->task, .simulated = context };
	struct run run;
	int ret;

	ret = run_open(&run, options, node);
	if (ret)
		return ret;
	bench.run = &run;
	bench.attr = (struct kdsm_tasks_attr){
		.argsz = sizeof(struct kdsm_tasks_attr),
		.node_workers = options->task.workers,
		.steal = options->task.steal,
		.deque = 4096,
		.start = start_worker, .argument = &bench.tiles,
	};
	bench.bytes = (kdsm_tasks_bytes(&bench.attr) + 63) / 64 * 64;
	ret = bench_matrices_init(&bench);
	ret = ret ? no_job(&bench, ret) : open_region(&bench);
	if (!ret)
		ret = strcmp(options->kind, "steal") ? all_programs(&bench) :
						       all_steals(&bench);
	if (!ret && run.measures && !(bench.simulated && bench.simulated->alone))
		report_end(&run);
	bench_matrices_free(&bench);
	run_close(&run);
	return ret;
}

int bench_task(const struct options *options)
{
	struct simulated simulated = { .alone = true };
	struct options alone = *options;
	int ret;

	if (!options->virtual.given)
		return virtual_bench(options, bench_node, NULL);
	alone.virtual.attr.nodes = 1;
	alone.virtual.workers = 1;
	alone.task.workers = 1;
	ret = virtual_bench(&alone, bench_node, &simulated);
	if (ret)
		return ret;
	simulated.alone = false;
	return virtual_bench(options, bench_node, &simulated);
}
