// SPDX-License-Identifier: GPL-2.0
/* kdsmctl stats: counters of remote operations, one column for each node. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/module.h"
#include "common/table.h"
#include "commands.h"
#include "latency.h"
#include "names.h"
#include "print.h"

struct row {
	uint32_t node;
	uint64_t value[KDSM_STAT_COUNT];
};

struct sample {
	struct timespec time;
	struct row *rows;	/* one for each node, in order of number */
	size_t count, room;
	struct row total;
};

static void one_node(attrs at, void *data)
{
	struct sample *sample = data;
	struct row *row;

	if (sample->count == sample->room) {
		size_t room = 2 * sample->room + 16;
		struct row *rows = realloc(sample->rows, room * sizeof(*rows));

		if (!rows)
			return;
		sample->rows = rows;
		sample->room = room;
	}
	row = &sample->rows[sample->count++];
	*row = (struct row){ .node = attr_u32(at, KDSM_A_NODE_ID) };
	attr_counters(at, KDSM_A_STATS, row->value, KDSM_STAT_COUNT);
	for (int i = 0; i < KDSM_STAT_COUNT; i++)
		sample->total.value[i] += row->value[i];
}

static int take(struct module *module, struct sample *sample)
{
	struct row *rows = sample->rows;
	size_t room = sample->room;

	*sample = (struct sample){ .rows = rows, .room = room };
	clock_gettime(CLOCK_MONOTONIC, &sample->time);
	return module_dump(module, KDSM_CMD_STATS, one_node, sample);
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
	return to->tv_sec - from->tv_sec + (to->tv_nsec - from->tv_nsec) / 1e9;
}

/* Counts per second; 0 if a counter fell, because the cluster was restarted */
static struct row rate(const struct row *old, const struct row *new, double seconds)
{
	struct row result = { .node = new->node };

	for (int i = 0; i < KDSM_STAT_COUNT; i++)
		if (new->value[i] > old->value[i])
			result.value[i] = (new->value[i] - old->value[i]) / seconds + 0.5;
	return result;
}

static unsigned int screen_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
		return 80;
	return size.ws_col;
}

/*
 * Print tables with a row for each counter and a column for each node, as many nodes in one
 * table as fit the screen. If rows are rates, total has the counters themselves; else it is NULL.
 */
static void print_tables(const struct row *rows, size_t count,
			 const struct row *total, const struct row *sum)
{
	size_t fit = (screen_width() - 36) / 12 + 1;

	for (size_t from = 0; from < count; from += fit) {
		size_t to = from + fit < count ? from + fit : count;
		struct table *table = table_new(NULL);

		table_column(table, TABLE_LEFT, 0, "%s", total ? "PER SECOND" : "COUNTER");
		if (total)
			table_column(table, TABLE_RIGHT, 0, "SO FAR");
		table_column(table, TABLE_RIGHT, 0, "ALL NODES");
		for (size_t i = from; i < to; i++)
			table_column(table, TABLE_RIGHT, 0, "NODE %u", rows[i].node);
		for (int s = 0; s < KDSM_STAT_COUNT; s++) {
			table_cell(table, "%s", stat_names[s]);
			if (total)
				table_cell(table, "%ju", (uintmax_t)total->value[s]);
			table_cell(table, "%ju", (uintmax_t)sum->value[s]);
			for (size_t i = from; i < to; i++)
				table_cell(table, "%ju", (uintmax_t)rows[i].value[s]);
		}
		if (from)
			putchar('\n');
		table_print(table);
		table_free(table);
	}
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *object = json_object_new_object();

	for (int i = 0; i < KDSM_STAT_COUNT; i++)
		json_number(object, stat_names[i], row->value[i]);
	return object;
}

static struct json_object *rows_json(const struct row *rows, size_t count)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < count; i++) {
		struct json_object *object = row_json(&rows[i]);

		json_number(object, "node", rows[i].node);
		json_object_array_add(array, object);
	}
	return array;
}

static void print_json(const struct sample *sample, const struct row *rates,
		       const struct row *rate_total, double seconds)
{
	struct json_object *out = json_object_new_object();

	json_object_object_add(out, "total", row_json(&sample->total));
	json_object_object_add(out, "nodes", rows_json(sample->rows, sample->count));
	if (rates) {
		json_object_object_add(out, "seconds", json_object_new_double(seconds));
		json_object_object_add(out, "total_per_second", row_json(rate_total));
		json_object_object_add(out, "nodes_per_second",
				       rows_json(rates, sample->count));
	}
	json_print(out);
	json_object_put(out);
}

static int once(struct module *module, bool json)
{
	struct sample sample = { 0 };
	int error = take(module, &sample);

	if (!error && json)
		print_json(&sample, NULL, NULL, 0);
	else if (!error)
		print_tables(sample.rows, sample.count, NULL, &sample.total);
	free(sample.rows);
	return error;
}

static void show_rates(const struct sample *old, const struct sample *new, bool json)
{
	double seconds = seconds_between(&old->time, &new->time);
	struct row total = rate(&old->total, &new->total, seconds);
	struct row *rates = calloc(new->count + 1, sizeof(*rates));

	if (!rates)
		return;
	/* The number of nodes may have changed since the last sample. */
	for (size_t i = 0; i < new->count; i++)
		rates[i] = rate(i < old->count ? &old->rows[i] : &new->rows[i],
				&new->rows[i], seconds);
	if (json) {
		print_json(new, rates, &total, seconds);
	} else {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		print_tables(rates, new->count, &new->total, &total);
		if (!isatty(STDOUT_FILENO))
			putchar('\n');
	}
	fflush(stdout);
	free(rates);
}

/* Run until a signal ends the process, the cluster goes down, or writing to stdout fails. */
static int watch(struct module *module, bool json, uint64_t period)
{
	const struct timespec pause = {
		.tv_sec = period / SECOND,
		.tv_nsec = period % SECOND,
	};
	struct sample samples[2] = { 0 };
	int error, at = 0;

	error = take(module, &samples[at]);
	while (!error) {
		nanosleep(&pause, NULL);
		error = take(module, &samples[!at]);
		if (error)
			break;
		show_rates(&samples[at], &samples[!at], json);
		if (ferror(stdout))
			break;
		at = !at;
	}
	free(samples[0].rows);
	free(samples[1].rows);
	return error;
}

struct arguments {
	bool json, latency;
	uint64_t watch;		/* period in ns; 0: show once */
};

static const struct cli_option options[] = {
	{ "json", 0, NULL, "Print JSON", CLI_FLAG, .offset = offsetof(struct arguments, json) },
	{ "latency", 'l', NULL, "Show how long operations of this node took instead", CLI_FLAG,
	  .offset = offsetof(struct arguments, latency) },
	{ "watch", 'w', "SECONDS", "Show rates every SECONDS, until interrupted", CLI_TIME,
	  .offset = offsetof(struct arguments, watch), .range = { 1, MOST_SECONDS, SECOND } },
	{ 0 }
};

static int check(void *values, char *reason)
{
	const struct arguments *arguments = values;

	if (!arguments->latency || !arguments->watch)
		return 0;
	snprintf(reason, REASON_SIZE, "--latency and --watch exclude each other");
	return -1;
}

static const struct cli cli = {
	.doc = "Show counters of remote operations since the cluster came up, by node.",
	.options = { options },
	.check = check,
};

int command_stats(int argc, char **argv)
{
	struct arguments arguments = { .json = false };
	struct module *module;
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	module = module_need();
	if (arguments.latency)
		error = latencies_print(module, arguments.json);
	else if (arguments.watch)
		error = watch(module, arguments.json, arguments.watch);
	else
		error = once(module, arguments.json);
	return module_end(module, "show the counters", error);
}
