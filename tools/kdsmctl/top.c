// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl top: what all nodes did in the last seconds, as differences of two surveys: nodes,
 * latencies, regions, the locks on which threads waited longest, and processes of this node.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cluster.h"
#include "common/json.h"
#include "common/number.h"
#include "common/table.h"
#include "commands.h"
#include "names.h"
#include "nodes.h"
#include "print.h"
#include "processes.h"

/* Locks and regions that text shows, at most */
#define TOP_ROWS	10

/* ---- differences ---- */

/* The increase of a counter; a counter that fell began again from 0 */
static uint64_t grown(uint64_t old, uint64_t new)
{
	return new < old ? new : new - old;
}

/* The earlier report of the node; one of zeros, if there is none or the node came up again */
static const struct node_report *earlier(const struct survey *old, const struct node_report *now)
{
	static const struct node_report none;
	const struct node_report *before;

	if (now->node >= old->node_count)
		return &none;
	before = &old->nodes[now->node];
	return before->error || before->uptime > now->uptime ? &none : before;
}

/*
 * Work of all nodes on a region or a lock. A survey has both in the order of node, id and
 * number.
 */
struct region_sum {
	uint32_t id, opens, nodes;	/* nodes that have it open */
	uint64_t resident, faults, bytes, evictions;
};

struct lock_sum {
	uint32_t id, number, kind;
	char name[KDSM_NAME_SIZE];
	uint64_t waits, waited, handed, passed, longest;
};

static int region_order(const void *a, const void *b)
{
	const struct region_use *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int lock_order(const void *a, const void *b)
{
	const struct lock_use *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_resident(const void *a, const void *b)
{
	const struct region_sum *x = a, *y = b;

	return x->resident < y->resident ? 1 : x->resident > y->resident ? -1 : 0;
}

static int by_waited(const void *a, const void *b)
{
	const struct lock_sum *x = a, *y = b;

	return x->waited < y->waited ? 1 : x->waited > y->waited ? -1 : 0;
}

static uint64_t faults_of(const uint64_t *coherence)
{
	return coherence[KDSM_COHERENCE_READ_FAULTS] + coherence[KDSM_COHERENCE_WRITE_FAULTS];
}

/* Sum up the regions of all nodes, the largest first. Sets *count; the caller frees the sums. */
static struct region_sum *sum_regions(const struct survey *old, const struct survey *new,
				      size_t *count)
{
	struct region_sum *sums = calloc(new->region_count + 1, sizeof(*sums)), *sum;

	*count = 0;
	for (size_t i = 0; sums && i < new->region_count; i++) {
		static const struct region_use none;
		const struct region_use *use = &new->regions[i];
		const struct region_use *before = bsearch(use, old->regions, old->region_count,
							  sizeof(*use), region_order) ?: &none;

		for (sum = sums; sum < sums + *count && sum->id != use->id; sum++)
			;
		*count += sum == sums + *count;
		sum->id = use->id;
		sum->opens += use->opens;
		sum->nodes += !!use->opens;
		sum->resident += use->resident;
		sum->faults += grown(faults_of(before->coherence), faults_of(use->coherence));
		sum->bytes += grown(before->coherence[KDSM_COHERENCE_BYTES],
				    use->coherence[KDSM_COHERENCE_BYTES]);
		sum->evictions += grown(before->coherence[KDSM_COHERENCE_EVICTIONS],
					use->coherence[KDSM_COHERENCE_EVICTIONS]);
	}
	if (sums)
		qsort(sums, *count, sizeof(*sums), by_resident);
	return sums;
}

/* The same for locks, those with the longest waits first; without locks that nobody waited for */
static struct lock_sum *sum_locks(const struct survey *old, const struct survey *new, size_t *count)
{
	struct lock_sum *sums = calloc(new->lock_count + 1, sizeof(*sums)), *sum;

	*count = 0;
	for (size_t i = 0; sums && i < new->lock_count; i++) {
		static const struct lock_use none;
		const struct lock_use *use = &new->locks[i];
		const struct lock_use *before = bsearch(use, old->locks, old->lock_count,
							sizeof(*use), lock_order) ?: &none;

		if (use->waits == before->waits)
			continue;
		for (sum = sums; sum < sums + *count &&
		     (sum->id != use->id || sum->number != use->number); sum++)
			;
		*count += sum == sums + *count;
		sum->id = use->id;
		sum->number = use->number;
		sum->kind = use->kind;
		memcpy(sum->name, use->name, sizeof(sum->name));
		sum->waits += grown(before->waits, use->waits);
		sum->waited += grown(before->waited, use->waited);
		sum->handed += grown(before->handed, use->handed);
		sum->passed += grown(before->passed, use->passed);
		if (use->longest > sum->longest)
			sum->longest = use->longest;
	}
	if (sums)
		qsort(sums, *count, sizeof(*sums), by_waited);
	return sums;
}

/* The durations of all nodes since the old survey */
static void sum_latencies(const struct survey *old, const struct survey *new,
			  struct latency sums[KDSM_LATENCY_COUNT])
{
	memset(sums, 0, KDSM_LATENCY_COUNT * sizeof(*sums));
	for (size_t i = 0; i < new->node_count; i++) {
		const struct node_report *now = &new->nodes[i];

		if (now->error)
			continue;
		for (int kind = 0; kind < KDSM_LATENCY_COUNT; kind++)
			latency_add(&sums[kind], &earlier(old, now)->latencies[kind],
				    &now->latencies[kind]);
	}
}

/* Columns of nodes: counters a second */
static const struct rate {
	const char *name, *title;
	bool is_size;
	int stats[4];		/* which are added up; -1 ends them */
	int coherence[2];	/* the same */
} rates[] = {
	{ "gets", "GETS/S", false, { KDSM_STAT_GET, KDSM_STAT_AM_GET, -1 }, { -1 } },
	{ "puts", "PUTS/S", false, { KDSM_STAT_PUT, KDSM_STAT_PUT_NOTIFY, -1 }, { -1 } },
	{ "atomics", "ATOMICS/S", false, { KDSM_STAT_CAS, KDSM_STAT_FAA, KDSM_STAT_AM_CAS,
					   KDSM_STAT_AM_FAA }, { -1 } },
	{ "messages", "MESSAGES/S", false, { KDSM_STAT_AM, -1 }, { -1 } },
	{ "served", "SERVED/S", false, { KDSM_STAT_AM_SERVED, -1 }, { -1 } },
	{ "bytes", "BYTES/S", true, { KDSM_STAT_GET_BYTES, KDSM_STAT_PUT_BYTES, -1 }, { -1 } },
	{ "faults", "FAULTS/S", false, { -1 },
	  { KDSM_COHERENCE_READ_FAULTS, KDSM_COHERENCE_WRITE_FAULTS } },
	{ "evictions", "EVICTIONS/S", false, { -1 }, { KDSM_COHERENCE_EVICTIONS, -1 } },
	{ "errors", "ERRORS/S", false, { KDSM_STAT_ERRORS, -1 }, { -1 } },
};

#define RATES	(sizeof(rates) / sizeof(rates[0]))

static double rate_of(const struct rate *rate, const struct node_report *old,
		      const struct node_report *now, double seconds)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4 && rate->stats[i] >= 0; i++)
		sum += grown(old->stats[rate->stats[i]], now->stats[rate->stats[i]]);
	for (int i = 0; i < 2 && rate->coherence[i] >= 0; i++)
		sum += grown(old->coherence[rate->coherence[i]],
			     now->coherence[rate->coherence[i]]);
	return sum / seconds;
}

/* ---- text ---- */

static void nodes_text(const struct survey *old, const struct survey *new, double seconds)
{
	static const struct column columns[] = {
		{ "NODE", TABLE_RIGHT, 0 }, { "STATE", TABLE_LEFT, 0 },
		{ "MEMORY", TABLE_RIGHT, 0 }, { "OPENS", TABLE_RIGHT, 0 }, { 0 }
	};
	struct table *table = table_new(columns);
	char size[HUMAN_SIZE];

	for (size_t j = 0; j < RATES; j++)
		table_column(table, TABLE_RIGHT, 0, "%s", rates[j].title);
	for (size_t i = 0; i < new->node_count; i++) {
		const struct node_report *now = &new->nodes[i];

		table_cell(table, "%u", now->node);
		table_cell(table, "%s%s", node_state(now), now->node == new->self ? ", this" : "");
		if (now->error) {
			for (size_t j = 0; j < 2 + RATES; j++)
				table_cell(table, "-");
			continue;
		}
		table_cell(table, "%s", human_bytes(now->memory, size));
		table_cell(table, "%u", now->opens);
		for (size_t j = 0; j < RATES; j++) {
			double rate = rate_of(&rates[j], earlier(old, now), now, seconds);

			if (rates[j].is_size)
				table_cell(table, "%s", human_bytes(rate, size));
			else
				table_cell(table, "%.0f", rate);
		}
	}
	table_print(table);
	table_free(table);
}

static void latencies_text(const struct latency *sums, double seconds)
{
	static const struct column columns[] = {
		{ "OPERATION", TABLE_LEFT, 0 }, { "COUNT/S", TABLE_RIGHT, 0 },
		{ "MEAN", TABLE_RIGHT, 0 }, { "P50", TABLE_RIGHT, 0 }, { "P99", TABLE_RIGHT, 0 },
		{ 0 }
	};
	struct table *table = table_new(columns);
	char time[HUMAN_SIZE];

	for (int kind = 0; kind < KDSM_LATENCY_COUNT; kind++) {
		const struct latency *sum = &sums[kind];

		if (!latency_count(sum))
			continue;
		table_cell(table, "%s", latency_names[kind]);
		table_cell(table, "%.0f", latency_count(sum) / seconds);
		table_cell(table, "%s", human_time(latency_mean(sum), time));
		table_cell(table, "%s", human_time(latency_quantile(sum, 0.5), time));
		table_cell(table, "%s", human_time(latency_quantile(sum, 0.99), time));
	}
	putchar('\n');
	table_print(table);
	table_free(table);
}

static void region_cell(struct table *table, const struct survey *survey, uint32_t id)
{
	const struct region_name *name = survey_region(survey, id);

	if (name)
		table_cell(table, "%s", name->name);
	else
		table_cell(table, "%u", id);
}

static void regions_text(const struct survey *survey, const struct region_sum *sums, size_t count,
			 double seconds)
{
	static const struct column columns[] = {
		{ "REGION", TABLE_LEFT, 0 }, { "MEMORY", TABLE_RIGHT, 0 },
		{ "NODES", TABLE_RIGHT, 0 }, { "OPENS", TABLE_RIGHT, 0 },
		{ "FAULTS/S", TABLE_RIGHT, 0 }, { "FETCHED/S", TABLE_RIGHT, 0 },
		{ "EVICTIONS/S", TABLE_RIGHT, 0 }, { 0 }
	};
	struct table *table = table_new(columns);
	char size[HUMAN_SIZE];

	for (size_t i = 0; i < count && i < TOP_ROWS; i++) {
		region_cell(table, survey, sums[i].id);
		table_cell(table, "%s", human_bytes(sums[i].resident, size));
		table_cell(table, "%u", sums[i].nodes);
		table_cell(table, "%u", sums[i].opens);
		table_cell(table, "%.0f", sums[i].faults / seconds);
		table_cell(table, "%s", human_bytes(sums[i].bytes / seconds, size));
		table_cell(table, "%.0f", sums[i].evictions / seconds);
	}
	putchar('\n');
	table_print(table);
	table_free(table);
}

static void locks_text(const struct survey *survey, const struct lock_sum *sums, size_t count,
		       double seconds)
{
	static const struct column columns[] = {
		{ "LOCK", TABLE_LEFT, 0 }, { "REGION", TABLE_LEFT, 0 }, { "KIND", TABLE_LEFT, 0 },
		{ "WAITING", TABLE_RIGHT, 0 }, { "WAITS/S", TABLE_RIGHT, 0 },
		{ "MEAN", TABLE_RIGHT, 0 }, { "LONGEST", TABLE_RIGHT, 0 },
		{ "HANDED/S", TABLE_RIGHT, 0 }, { "PASSED/S", TABLE_RIGHT, 0 }, { 0 }
	};
	struct table *table = table_new(columns);
	char time[HUMAN_SIZE];

	for (size_t i = 0; i < count && i < TOP_ROWS; i++) {
		if (sums[i].name[0])
			table_cell(table, "%s", sums[i].name);
		else
			table_cell(table, "%u", sums[i].number);
		region_cell(table, survey, sums[i].id);
		table_cell(table, "%s", lock_kind_name(sums[i].kind));
		/* Threads that waited at a time, on average */
		table_cell(table, "%.2f", sums[i].waited / 1e9 / seconds);
		table_cell(table, "%.0f", sums[i].waits / seconds);
		table_cell(table, "%s", human_time((double)sums[i].waited / sums[i].waits, time));
		table_cell(table, "%s", human_time(sums[i].longest, time));
		table_cell(table, "%.0f", sums[i].handed / seconds);
		table_cell(table, "%.0f", sums[i].passed / seconds);
	}
	putchar('\n');
	table_print(table);
	table_free(table);
}

static void process_text(const struct process *process, void *data)
{
	struct table *table = data;
	char regions[160] = "";
	size_t length = 0;

	for (size_t i = 0; i < process->count && length < sizeof(regions); i++)
		length += snprintf(regions + length, sizeof(regions) - length, "%s%s",
				   i ? " " : "", process->regions[i]);
	table_cell(table, "%d", process->pid);
	table_cell(table, "%s", process->command);
	table_cell(table, "%s", regions);
}

static void processes_text(void)
{
	static const struct column columns[] = {
		{ "PID", TABLE_RIGHT, 0 }, { "COMMAND", TABLE_LEFT, 0 },
		{ "REGIONS", TABLE_LEFT, 0 }, { 0 }
	};
	struct table *table = table_new(columns);

	processes_walk(process_text, table);
	putchar('\n');
	table_print(table);
	table_free(table);
}

/* ---- JSON ---- */

static void add_rate(struct json_object *node, const struct rate *rate,
		     const struct node_report *old, const struct node_report *now, double seconds)
{
	json_object_object_add(node, rate->name,
			       json_object_new_double(rate_of(rate, old, now, seconds)));
}

static void nodes_json(struct json_object *out, const struct survey *old, const struct survey *new,
		       double seconds)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < new->node_count; i++) {
		const struct node_report *now = &new->nodes[i];
		struct json_object *node = json_object_new_object();

		json_number(node, "node", now->node);
		json_text(node, "state", node_state(now));
		if (!now->error) {
			json_number(node, "memory", now->memory);
			json_number(node, "opens", now->opens);
		}
		for (size_t j = 0; !now->error && j < RATES; j++)
			add_rate(node, &rates[j], earlier(old, now), now, seconds);
		json_object_array_add(list, node);
	}
	json_object_object_add(out, "nodes", list);
}

static void latencies_json(struct json_object *out, const struct latency *sums)
{
	struct json_object *kinds = json_object_new_object();

	for (int i = 0; i < KDSM_LATENCY_COUNT; i++) {
		struct json_object *kind = json_object_new_object();

		json_number(kind, "count", latency_count(&sums[i]));
		json_seconds(kind, "mean", latency_mean(&sums[i]) / 1e9);
		json_seconds(kind, "p50", latency_quantile(&sums[i], 0.5) / 1e9);
		json_seconds(kind, "p99", latency_quantile(&sums[i], 0.99) / 1e9);
		json_object_object_add(kinds, latency_names[i], kind);
	}
	json_object_object_add(out, "latencies", kinds);
}

static void region_member(struct json_object *object, const struct survey *survey, uint32_t id)
{
	const struct region_name *name = survey_region(survey, id);

	json_text(object, "region", name ? name->name : "");
	json_number(object, "region_id", id);
}

static void regions_json(struct json_object *out, const struct survey *survey,
			 const struct region_sum *sums, size_t count)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < count; i++) {
		struct json_object *region = json_object_new_object();

		region_member(region, survey, sums[i].id);
		json_number(region, "memory", sums[i].resident);
		json_number(region, "nodes", sums[i].nodes);
		json_number(region, "opens", sums[i].opens);
		json_number(region, "faults", sums[i].faults);
		json_number(region, "bytes", sums[i].bytes);
		json_number(region, "evictions", sums[i].evictions);
		json_object_array_add(list, region);
	}
	json_object_object_add(out, "regions", list);
}

static void locks_json(struct json_object *out, const struct survey *survey,
		       const struct lock_sum *sums, size_t count)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < count; i++) {
		struct json_object *lock = json_object_new_object();

		region_member(lock, survey, sums[i].id);
		json_number(lock, "number", sums[i].number);
		json_text(lock, "name", sums[i].name);
		json_text(lock, "kind", lock_kind_name(sums[i].kind));
		json_number(lock, "waits", sums[i].waits);
		json_seconds(lock, "waited", sums[i].waited / 1e9);
		json_seconds(lock, "longest", sums[i].longest / 1e9);
		json_number(lock, "handed", sums[i].handed);
		json_number(lock, "passed", sums[i].passed);
		json_object_array_add(list, lock);
	}
	json_object_object_add(out, "locks", list);
}

static void process_json(const struct process *process, void *data)
{
	struct json_object *out = json_object_new_object(), *regions = json_object_new_array();

	json_number(out, "pid", process->pid);
	json_text(out, "command", process->command);
	for (size_t i = 0; i < process->count; i++)
		json_object_array_add(regions, json_string(process->regions[i]));
	json_object_object_add(out, "regions", regions);
	json_object_array_add(data, out);
}

/* ---- the command ---- */

static void show(const struct survey *old, const struct survey *new, bool json)
{
	double seconds = new->time.tv_sec - old->time.tv_sec +
			 (new->time.tv_nsec - old->time.tv_nsec) / 1e9;
	struct latency latencies[KDSM_LATENCY_COUNT];
	size_t region_count, lock_count;
	struct region_sum *regions = sum_regions(old, new, &region_count);
	struct lock_sum *locks = sum_locks(old, new, &lock_count);

	sum_latencies(old, new, latencies);
	if (json) {
		struct json_object *out = json_object_new_object();
		struct json_object *processes = json_object_new_array();

		json_text(out, "cluster", new->cluster);
		json_number(out, "node", new->self);
		json_seconds(out, "seconds", seconds);
		nodes_json(out, old, new, seconds);
		latencies_json(out, latencies);
		regions_json(out, new, regions, region_count);
		locks_json(out, new, locks, lock_count);
		processes_walk(process_json, processes);
		json_object_object_add(out, "processes", processes);
		json_print(out);
		json_object_put(out);
	} else {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		printf("cluster %s: %zu nodes, in the last %.1f s\n\n", new->cluster,
		       new->node_count, seconds);
		nodes_text(old, new, seconds);
		latencies_text(latencies, seconds);
		regions_text(new, regions, region_count, seconds);
		locks_text(new, locks, lock_count, seconds);
		processes_text();
		if (!isatty(STDOUT_FILENO))
			putchar('\n');
	}
	fflush(stdout);
	free(regions);
	free(locks);
}

struct arguments {
	bool json;
	uint64_t delay, timeout;	/* in ns */
	uint64_t count;			/* of samples; 0: no end */
};

static const struct cli_option options[] = {
	{ "json", 0, NULL, "Print JSON, a line for each sample", CLI_FLAG,
	  .offset = offsetof(struct arguments, json) },
	{ "delay", 'd', "SECONDS", "Time between two samples, 2 s by default", CLI_TIME,
	  .offset = offsetof(struct arguments, delay),
	  .range = { SECOND / 10, MOST_SECONDS, SECOND } },
	{ "count", 'n', "NUMBER", "End after NUMBER samples", CLI_NUMBER,
	  .offset = offsetof(struct arguments, count), .range = { 1, UINT64_MAX - 1, 1 } },
	NODES_TIMEOUT_OPTION(struct arguments, timeout),
	{ 0 }
};

static const struct cli cli = {
	.doc = "Show what all nodes do: operations, latencies, memory, regions, locks that "
	       "threads wait for, and processes of this node.",
	.options = { options },
};

/* Run until a signal ends the process, the cluster goes down, or writing to stdout fails. */
static int watch(struct module *module, const struct arguments *arguments)
{
	const struct timespec pause = {
		.tv_sec = arguments->delay / SECOND,
		.tv_nsec = arguments->delay % SECOND,
	};
	uint32_t timeout = arguments->timeout / (SECOND / 1000);
	struct survey old = { 0 }, new = { 0 };
	uint64_t shown = 0;
	int error;

	error = survey_take(&old, module, timeout, true);
	while (!error && !ferror(stdout)) {
		nanosleep(&pause, NULL);
		error = survey_take(&new, module, timeout, true);
		if (error)
			break;
		show(&old, &new, arguments->json);
		survey_free(&old);
		old = new;
		memset(&new, 0, sizeof(new));
		if (++shown == arguments->count)
			break;
	}
	survey_free(&old);
	survey_free(&new);
	return error;
}

int command_top(int argc, char **argv)
{
	struct arguments arguments = {
		.delay = 2 * SECOND,
		.timeout = KDSM_TIMEOUT_DEFAULT * (SECOND / 1000),
	};
	struct module *module;
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	module = module_need();
	error = watch(module, &arguments);
	error = module_end(module, "ask the nodes", error);
	return error || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
