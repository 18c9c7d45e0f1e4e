// SPDX-License-Identifier: GPL-2.0
/*
 * table: find-or-put of 16-byte nodes in a table over all nodes, at several loads and mixes of
 * finds and inserts: times, and remote operations a call.
 *
 * Every node inserts its share of the keys. Then node 0 works alone, through another handle,
 * whose caches are empty. Key number i is i behind a mixing function, which makes keys random
 * and spreads them evenly. All nodes can compute the number of keys in each step, so they
 * exchange nothing but barriers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <kdsm/table.h>
#include "bench.h"

/* Inserts in a hundred calls. The middle mix is measured at the middle of the loads. */
static const unsigned int mixes[] = { 20, 50, 80 };

#define MIXES (sizeof(mixes) / sizeof(mixes[0]))

/* Times and operations of all finds, or of all inserts. */
struct side {
	struct samples samples;
	struct summary summary;
	uint64_t count, reads, atomics, messages, other;
};

/* A handle of the table, with its own caches. */
struct view {
	struct kdsm_table *table;
	struct kdsm_table_worker *worker;
};

struct measured {
	struct run *run;
	struct view filling, measuring;
	uint64_t size;		/* number of nodes that it holds */
	uint64_t keys;		/* keys with lower numbers are in it */
	uint64_t random;
	int failed;		/* exit status */
};

static uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t random_below(struct measured *table, uint64_t bound)
{
	table->random++;
	return mix64(table->random) % bound;
}

static struct kdsm_node key(uint64_t number)
{
	struct kdsm_node node = { mix64(2 * number), mix64(2 * number + 1) };

	node.a &= ~(UINT64_C(3) << 61);	/* bits that the table uses */
	node.a |= 1;		/* a node is never zero */
	return node;
}

static uint64_t inserts_of(const struct options *options, unsigned int mix)
{
	return (uint64_t)options->calls * mixes[mix] / 100;
}

/* Insert keys until the table has want keys; each node inserts its share. */
static int fill(struct measured *table, uint64_t want)
{
	struct run *run = table->run;
	struct kdsm_node node;
	uint64_t number, i;
	int ret;

	for (i = table->keys; i < want; i++) {
		if (i % run->nodes != run->node)
			continue;
		node = key(i);
		ret = kdsm_table_find_or_put(table->filling.worker, &node, &number);
		if (ret < 0)
			return complain(run->options, "node %u: filling to %llu of %llu: %s",
					run->node, (unsigned long long)i,
					(unsigned long long)table->size, kdsm_error(ret));
	}
	return 0;
}

static int one_call(struct measured *table, bool insert, struct side *side)
{
	uint64_t i = insert ? table->keys : random_below(table, table->keys);
	struct kdsm_table_worker *worker = table->measuring.worker;
	struct kdsm_table_counts before = { .argsz = sizeof(before) };
	struct kdsm_table_counts after = { .argsz = sizeof(after) };
	struct kdsm_node node = key(i);
	uint64_t number, begin;
	int ret;

	kdsm_table_counts(worker, &before);
	begin = samples_begin(&side->samples);
	ret = kdsm_table_find_or_put(worker, &node, &number);
	samples_end(&side->samples, begin);
	kdsm_table_counts(worker, &after);
	if (ret < 0)
		return complain(table->run->options, "find-or-put: %s", kdsm_error(ret));
	if (ret != insert)
		return complain(table->run->options, "key %llu was %s", (unsigned long long)i,
				ret ? "lost" : "there already");
	table->keys += insert;
	side->count++;
	side->reads += after.index_get - before.index_get + after.node_get - before.node_get;
	side->atomics += after.cas - before.cas;
	side->messages += after.find - before.find;
	side->other += after.other - before.other;
	return 0;
}

static double per(uint64_t value, uint64_t count)
{
	return count ? (double)value / count : 0;
}

static struct json_object *report_side(const struct side *side)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "calls", json_object_new_uint64(side->count));
	json_object_object_add(object, "latency_us", report_latency(&side->summary));
	json_object_object_add(object, "reads_per_call",
			       json_object_new_double(per(side->reads, side->count)));
	json_object_object_add(object, "atomics_per_call",
			       json_object_new_double(per(side->atomics, side->count)));
	json_object_object_add(object, "messages_per_call",
			       json_object_new_double(per(side->messages, side->count)));
	json_object_object_add(object, "other_per_call",
			       json_object_new_double(per(side->other, side->count)));
	return object;
}

static const struct column columns[] = {
	{ "load", TABLE_RIGHT, 5 },
	{ "mix", TABLE_RIGHT, 5 },
	{ "find us", TABLE_RIGHT, 9 },
	{ "99th", TABLE_RIGHT, 9 },
	{ "reads", TABLE_RIGHT, 6 },
	{ "atomics", TABLE_RIGHT, 7 },
	{ "messages", TABLE_RIGHT, 8 },
	{ "insert us", TABLE_RIGHT, 9 },
	{ "99th", TABLE_RIGHT, 9 },
	{ "reads", TABLE_RIGHT, 6 },
	{ "atomics", TABLE_RIGHT, 7 },
	{ "messages", TABLE_RIGHT, 8 },
	{ "calls/s", TABLE_RIGHT, 8 },
	{ 0 }
};

static void side_cells(struct table *table, const struct side *side)
{
	table_cell(table, "%.2f", side->summary.median);
	table_cell(table, "%.2f", side->summary.p99);
	table_cell(table, "%.3f", per(side->reads, side->count));
	table_cell(table, "%.3f", per(side->atomics, side->count));
	table_cell(table, "%.3f", per(side->messages, side->count));
}

static void report(struct measured *table, double load, unsigned int insert_share,
		   struct side *find, struct side *insert, double per_second,
		   const struct kdsm_counts *counts)
{
	struct run *run = table->run;
	struct json_object *results, *object = json_object_new_object();

	samples_summarise(&find->samples, &find->summary);
	samples_summarise(&insert->samples, &insert->summary);
	json_object_object_add(object, "load", json_object_new_double(load));
	json_object_object_add(object, "find_percent", json_object_new_int(100 - insert_share));
	json_object_object_add(object, "insert_percent", json_object_new_int(insert_share));
	json_object_object_add(object, "find", report_side(find));
	json_object_object_add(object, "insert", report_side(insert));
	json_object_object_add(object, "calls_per_second", json_object_new_double(per_second));
	json_object_object_add(object, "remote", report_remote(counts));
	json_object_object_get_ex(run->result, "results", &results);
	json_object_array_add(results, object);
	if (!run->table)
		return;
	table_cell(run->table, "%.3f", load);
	table_cell(run->table, "%u/%u", 100 - insert_share, insert_share);
	side_cells(run->table, find);
	side_cells(run->table, insert);
	table_cell(run->table, "%.0f", per_second);
	table_print(run->table);
}

static int measure_mix(struct measured *table, unsigned int mix)
{
	const struct options *options = table->run->options;
	uint64_t inserts = inserts_of(options, mix);
	double load = (table->keys + inserts / 2.0) / table->size;
	struct side side[2] = { 0 };	/* find, insert */
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	uint64_t left, begin;
	bool insert;
	int ret = 0;

	if (samples_init(&side[0].samples, options->calls) ||
	    samples_init(&side[1].samples, options->calls)) {
		ret = complain(options, "no memory");
		goto out;
	}
	kdsm_counts(table->run->kdsm, &before);
	begin = now_ns();
	for (left = options->calls; left && !ret; left--) {
		/* The order is random, the number of inserts is not. */
		insert = random_below(table, left) < inserts;
		inserts -= insert;
		ret = one_call(table, insert, &side[insert]);
	}
	if (ret)
		goto out;
	counts_since(table->run, &before, &counts);
	report(table, load, mixes[mix], &side[0], &side[1],
	       options->calls * 1e9 / (now_ns() - begin), &counts);
out:
	samples_free(&side[0].samples);
	samples_free(&side[1].samples);
	return ret;
}

/*
 * Fill the table to a load, and measure every mix around it. A node that failed goes on to the
 * barriers, because the others wait there. Only a barrier that fails ends the run.
 */
static int at_load(struct measured *table, double load)
{
	const struct options *options = table->run->options;
	uint64_t inserts = 0, want;
	unsigned int mix;

	for (mix = 0; mix < MIXES; mix++)
		inserts += inserts_of(options, mix);
	want = load * table->size;
	want = want > inserts / 2 ? want - inserts / 2 : 1;
	if (!table->failed)
		table->failed = fill(table, want);
	/* After many calls and a small step between loads, there may be more keys already. */
	if (table->keys < want)
		table->keys = want;
	if (run_meet(table->run))
		return 1;
	if (!table->run->measures)
		table->keys += inserts;
	else
		for (mix = 0; !table->failed && mix < MIXES; mix++)
			table->failed = measure_mix(table, mix);
	return run_meet(table->run);
}

static int all_loads(struct measured *table)
{
	struct run *run = table->run;
	uint64_t used;
	unsigned int i;

	kdsm_table_usage(table->filling.table, &used, &table->size);
	json_object_object_add(run->result, "table_size", json_object_new_uint64(table->size));
	run_table(run, columns,
		  "find-or-put in a table of %llu 16-byte nodes over %u node%s, domain %s, %u calls a line:\n"
		  "median and 99th percentile in us, and remote operations a call",
		  (unsigned long long)table->size, run->nodes, run->nodes == 1 ? "" : "s",
		  domain_name(run), run->options->calls);
	for (i = 0; i < run->options->load_count; i++)
		if (at_load(table, run->options->loads[i]))
			return 1;
	if (!table->failed && run->measures)
		report_end(run);
	return table->failed;
}

static int view_open(struct view *view, struct run *run, const struct kdsm_table_attr *attr)
{
	int ret;

	ret = kdsm_table_open(run->region, DATA_OFFSET, attr, &view->table);
	return ret ? ret : kdsm_table_worker_new(view->table, &view->worker);
}

static void view_close(struct view *view)
{
	kdsm_table_worker_free(view->worker);
	kdsm_table_close(view->table);
}

int bench_table(const struct options *options)
{
	struct kdsm_table_attr attr = {
		.argsz = sizeof(attr),
		.nodes = options->entries,
		.cache_nodes = options->cache,
		.find = options->find,
	};
	struct measured table = { 0 };
	struct run run;
	int ret;

	ret = run_open(&run, options, NULL);
	if (ret)
		return ret;
	ret = run_region(&run, kdsm_table_part_bytes(&attr, run.nodes));
	if (ret)
		goto out;
	table.run = &run;
	ret = view_open(&table.filling, &run, &attr);
	if (!ret)
		ret = view_open(&table.measuring, &run, &attr);
	if (ret)
		ret = complain(options, "a table of %llu nodes: %s",
			       (unsigned long long)options->entries, kdsm_error(ret));
	else
		ret = all_loads(&table);
	view_close(&table.measuring);
	view_close(&table.filling);
out:
	run_close(&run);
	return ret;
}
