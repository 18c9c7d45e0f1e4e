// SPDX-License-Identifier: GPL-2.0
/* lock: the result as a table or as JSON. */
#include <math.h>
#include <stdio.h>
#include "common/cluster.h"
#include "lock.h"

const char *lock_name_of(unsigned int kind)
{
	return kind == LOCK_NONE ? "none" : lock_kind_name(kind);
}

/* ---- text ---- */

/* Columns behind those of the line itself */
static const struct {
	const char *name;
	unsigned int width, digits;
	enum lock_value value;
	bool spread;		/* with --repeat, the least and the most follow */
} numbers[] = {
	{ "locks/s", 9, 0, LOCK_RATE, true },
	{ "lock p50", 9, 2, LOCK_P50, false },
	{ "p99", 9, 2, LOCK_P99, false },
	{ "p99.9", 9, 2, LOCK_P999, false },
	{ "longest", 9, 2, LOCK_LONGEST, false },
	{ "write p99", 9, 2, LOCK_WRITE_P99, false },
	{ "longest", 9, 2, LOCK_WRITE_LONGEST, false },
	{ "lock+unlock", 11, 2, LOCK_BOTH_P50, false },
	{ "fairness", 8, 1, LOCK_FAIRNESS, false },
	{ "remote/lock", 11, 2, LOCK_REMOTE, false },
	{ "hand-overs", 10, 0, LOCK_HANDOVERS_P50, false },
	{ "99th", 5, 0, LOCK_HANDOVERS_P99, false },
	{ "longest", 7, 0, LOCK_HANDOVERS_LONGEST, false },
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const struct column columns[] = {
	{ "what", TABLE_LEFT, 8 },
	{ "kind", TABLE_LEFT, 7 },
	{ "% writing", TABLE_RIGHT, 9 },
	{ 0 }
};

/* The setting that --vary names has a column of its own. */
void lock_report_begin(struct lock_run *run)
{
	const struct options *options = run->run.options;
	const struct lock_options *lock = &options->lock;
	char threads[32] = "", each[48];
	struct table *table;
	unsigned int i;

	if (lock->vary != VARY_THREADS)
		snprintf(threads, sizeof(threads), "%u threads on each, ", lock->threads);
	if (options->duration)
		snprintf(each, sizeof(each), "%g seconds each", options->duration / 1e9);
	else
		snprintf(each, sizeof(each), "%u acquisitions by each thread", options->calls);
	run_table(&run->run, columns, "locks of %u nodes, %s%s; times in us", run->run.nodes,
		  threads, each);
	table = run->run.table;
	if (!table)
		return;
	for (i = 0; i < NUMBERS; i++) {
		table_column(table, TABLE_RIGHT, numbers[i].width, "%s", numbers[i].name);
		if (!numbers[i].spread || lock->repeat == 1)
			continue;
		table_column(table, TABLE_RIGHT, numbers[i].width, "least");
		table_column(table, TABLE_RIGHT, numbers[i].width, "most");
	}
	if (lock->vary)
		table_column(table, TABLE_RIGHT, 8, "%s", lock_vary_names[lock->vary]);
}

static void add_cell(struct table *table, double value, int digits)
{
	if (isnan(value))
		table_cell(table, "-");
	else
		table_cell(table, "%.*f", digits, value);
}

static void add_row(struct lock_run *run, const struct lock_result *result)
{
	const struct lock_options *lock = &run->run.options->lock;
	const struct lock_round *round = &run->round;
	struct table *table = run->run.table;
	unsigned int i;

	table_cell(table, "%s", round->benchmark->name);
	table_cell(table, "%s", lock_name_of(round->kind));
	table_cell(table, "%g", round->writers);
	for (i = 0; i < NUMBERS; i++) {
		enum lock_value value = numbers[i].value;

		add_cell(table, result->value[value], numbers[i].digits);
		if (!numbers[i].spread || lock->repeat == 1)
			continue;
		add_cell(table, result->least[value], numbers[i].digits);
		add_cell(table, result->most[value], numbers[i].digits);
	}
	if (lock->vary)
		table_cell(table, "%llu", (unsigned long long)round->varied);
	table_print(table);
	fflush(stdout);
}

/* ---- JSON ---- */

static void add_number(struct json_object *object, const char *name, const char *suffix,
		       double value)
{
	char text[32], key[64];

	if (isnan(value))
		return;
	snprintf(text, sizeof(text), "%.3f", value);
	snprintf(key, sizeof(key), "%s%s", name, suffix);
	json_object_object_add(object, key, value == trunc(value) ?
			       json_object_new_uint64(value) :
			       json_object_new_double_s(value, text));
}

static void add_json(struct lock_run *run, const struct lock_result *result)
{
	const struct lock_options *lock = &run->run.options->lock;
	struct json_object *object = json_object_new_object();
	const struct lock_round *round = &run->round;
	unsigned int i;

	json_object_object_add(object, "benchmark",
			       json_object_new_string(round->benchmark->name));
	json_object_object_add(object, "kind", json_object_new_string(lock_name_of(round->kind)));
	if (lock->vary && lock->vary != VARY_THREADS)
		add_number(object, lock_vary_names[lock->vary], "", round->varied);
	add_number(object, "threads", "", round->benchmark->alone ? 1 : round->threads);
	add_number(object, "writers", "", round->writers);
	for (i = 0; i < LOCK_VALUES; i++) {
		add_number(object, lock_value_names[i], "", result->value[i]);
		if (lock->repeat == 1)
			continue;
		add_number(object, lock_value_names[i], "_least", result->least[i]);
		add_number(object, lock_value_names[i], "_most", result->most[i]);
	}
	json_object_array_add(json_object_object_get(run->run.result, "results"), object);
}

void lock_report(struct lock_run *run, const struct lock_result *result)
{
	if (run->run.options->json)
		add_json(run, result);
	else
		add_row(run, result);
}
