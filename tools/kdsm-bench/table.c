// SPDX-License-Identifier: GPL-2.0
/*
 * table: find-or-put of 16-byte nodes in a table over all nodes, at several
 * loads and mixes of finds and inserts: times, and remote operations a call.
 *
 * Every node fills its share of the keys; then node 0 works alone, through a
 * handle of its own, whose caches know nothing of the filling. Keys are
 * numbers from 0 on, made random and spread evenly by a mixing function. As all
 * nodes know beforehand how many are inserted in which step, nothing but
 * barriers has to be exchanged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/table.h>
#include "bench.h"

/* Inserts of a hundred calls. The order keeps the load of the middle in the middle. */
static const unsigned int mixes[] = { 20, 50, 80 };

#define MIXES (sizeof(mixes) / sizeof(mixes[0]))

/* What finds or inserts took, all of them together. */
struct side {
	struct samples samples;
	struct summary summary;
	uint64_t count, reads, atomics, messages, other;
};

/* A view of the table, with caches of its own. */
struct view {
	struct kdsm_table *table;
	struct kdsm_table_worker *worker;
};

struct table {
	struct run *run;
	struct view filling, measuring;
	uint64_t size;		/* nodes it holds */
	uint64_t keys;		/* those below are in it */
	uint64_t random;
	int failed;		/* exit status so far */
};

static uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t random_below(struct table *table, uint64_t bound)
{
	table->random++;
	return mix64(table->random) % bound;
}

static struct kdsm_node key(uint64_t number)
{
	struct kdsm_node node = { mix64(2 * number), mix64(2 * number + 1) };

	node.a &= ~(UINT64_C(3) << 61);	/* the table's */
	node.a |= 1;		/* never zero */
	return node;
}

static uint64_t inserts_of(const struct options *options, unsigned int mix)
{
	return (uint64_t)options->calls * mixes[mix] / 100;
}

/* Bring the table to want keys, each node its share. */
static int fill(struct table *table, uint64_t want)
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
					(unsigned long long)table->size, strerror(-ret));
	}
	return 0;
}

static int one_call(struct table *table, bool insert, struct side *side)
{
	uint64_t i = insert ? table->keys : random_below(table, table->keys);
	struct kdsm_table_worker *worker = table->measuring.worker;
	struct kdsm_table_counts before, after;
	struct kdsm_node node = key(i);
	uint64_t number, begin;
	int ret;

	kdsm_table_counts(worker, &before);
	begin = samples_begin(&side->samples);
	ret = kdsm_table_find_or_put(worker, &node, &number);
	samples_end(&side->samples, begin);
	kdsm_table_counts(worker, &after);
	if (ret < 0)
		return complain(table->run->options, "find-or-put: %s", strerror(-ret));
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

static void report(struct table *table, double load, unsigned int insert_share,
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
	if (!run->options->json)
		printf("%5.3f  %2u/%-2u %9.2f %9.2f %6.3f %7.3f %8.3f %9.2f %9.2f %6.3f %7.3f %8.3f %10.0f\n",
		       load, 100 - insert_share, insert_share,
		       find->summary.median, find->summary.p99,
		       per(find->reads, find->count), per(find->atomics, find->count),
		       per(find->messages, find->count),
		       insert->summary.median, insert->summary.p99,
		       per(insert->reads, insert->count), per(insert->atomics, insert->count),
		       per(insert->messages, insert->count),
		       per_second);
}

static int measure_mix(struct table *table, unsigned int mix)
{
	const struct options *options = table->run->options;
	uint64_t inserts = inserts_of(options, mix);
	double load = (table->keys + inserts / 2.0) / table->size;
	struct side side[2] = { 0 };	/* find, insert */
	struct kdsm_counts before, counts;
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
		/* In random order, but exactly as many as agreed. */
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
 * Fill to load, measure every mix around it. All nodes come through here, also
 * after a failure, as the others wait at the barriers; only a barrier that
 * failed ends it at once.
 */
static int at_load(struct table *table, double load)
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
	/* Many calls and a small step: there may be more already. */
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

static int all_loads(struct table *table)
{
	struct run *run = table->run;
	uint64_t used;
	unsigned int i;

	kdsm_table_usage(table->filling.table, &used, &table->size);
	json_object_object_add(run->result, "table_size", json_object_new_uint64(table->size));
	if (run->measures && !run->options->json)
		printf("find-or-put in a table of %llu 16-byte nodes over %u node%s, domain %s, %u calls a line\n"
		       "                find, microseconds   remote a call          insert, microseconds   remote a call\n"
		       " load  mix      median      99th  reads atomics messages    median      99th  reads atomics messages    calls/s\n",
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

	ret = kdsm_table_open(&view->table, run->region, DATA_OFFSET, attr);
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
		.nodes = options->entries,
		.cache_nodes = options->cache,
		.find = options->find,
	};
	struct table table = { 0 };
	struct run run;
	int ret;

	ret = run_open(&run, options);
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
			       (unsigned long long)options->entries, strerror(-ret));
	else
		ret = all_loads(&table);
	view_close(&table.measuring);
	view_close(&table.filling);
out:
	run_close(&run);
	return ret;
}
