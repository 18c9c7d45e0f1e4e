// SPDX-License-Identifier: GPL-2.0
/*
 * ring: operations a second by a ring with one and with many of them in flight, and by one call
 * after the other; and system calls an operation.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/ring.h>
#include "bench.h"

#define DEFAULT_SIZE	64	/* bytes */
#define DEFAULT_FLIGHT	64	/* operations */

static const struct operation {
	const char *name;
	enum kdsm_opcode opcode;
} operations[] = {
	{ "get", KDSM_OP_GET },
	{ "put", KDSM_OP_PUT },
	{ "faa", KDSM_OP_FAA },
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static const struct column columns[] = {
	{ "operation", TABLE_LEFT, 10 },
	{ "size", TABLE_RIGHT, 8 },
	{ "by", TABLE_LEFT, 6 },
	{ "in flight", TABLE_RIGHT, 10 },
	{ "a second", TABLE_RIGHT, 10 },
	{ "over calls", TABLE_RIGHT, 10 },
	{ "calls/op", TABLE_RIGHT, 9 },
	{ 0 }
};

struct work {
	struct run *run;
	struct kdsm_ring *ring;
	const struct operation *operation;
	uint64_t size, stride;
	double by_calls;	/* operations a second, one call after the other */
};

static uint64_t stride_of(uint64_t size)
{
	return (size + 63) & ~63ULL;
}

static uint64_t size_of(const struct work *work)
{
	return work->operation->opcode == KDSM_OP_FAA ? 8 : work->size;
}

/* Perform count operations, one call after the other. */
static int by_calls(struct work *work, unsigned int flight, unsigned int count)
{
	struct kdsm_region *region = work->run->region;
	void *memory = kdsm_ring_buffer(work->ring);
	unsigned int target = work->run->target;
	int ret = 0;

	(void)flight;
	while (!ret && count--) {
		if (work->operation->opcode == KDSM_OP_GET)
			ret = kdsm_get(region, target, DATA_OFFSET, memory, work->size);
		else if (work->operation->opcode == KDSM_OP_PUT)
			ret = kdsm_put(region, target, DATA_OFFSET, memory, work->size);
		else
			ret = kdsm_faa(region, target, DATA_OFFSET, 1, NULL);
	}
	return ret;
}

/* Prepare the operation on place number slot, which the completion returns. */
static int prepare(struct work *work, uint64_t slot)
{
	uint64_t offset = DATA_OFFSET + slot * work->stride;
	uint8_t *memory = (uint8_t *)kdsm_ring_buffer(work->ring) + slot * work->stride;
	unsigned int target = work->run->target;

	if (work->operation->opcode == KDSM_OP_GET)
		return kdsm_ring_prep_get(work->ring, target, offset, memory, work->size, slot);
	if (work->operation->opcode == KDSM_OP_PUT)
		return kdsm_ring_prep_put(work->ring, target, offset, memory, work->size, slot);
	return kdsm_ring_prep_faa(work->ring, target, offset, 1, slot);
}

/*
 * Perform count operations by the ring, with flight of them in flight: each call submits what the
 * completions of half of them have made room for.
 */
static int by_ring(struct work *work, unsigned int flight, unsigned int count)
{
	struct kdsm_ring_completion got[KDSM_RING_MAX_ENTRIES];
	unsigned int begun, done = 0, i, n;
	int ret = 0;

	for (begun = 0; !ret && begun < flight && begun < count; begun++)
		ret = prepare(work, begun);
	while (!ret && done < count) {
		ret = kdsm_ring_wait(work->ring, (flight + 1) / 2, KDSM_FOREVER);
		if (ret < 0)
			return ret;
		n = kdsm_ring_reap(work->ring, got, KDSM_RING_MAX_ENTRIES);
		for (i = 0, ret = 0; !ret && i < n; i++) {
			ret = got[i].status;
			if (!ret && begun < count) {
				ret = prepare(work, got[i].data);
				begun++;
			}
		}
		done += n;
	}
	return ret;
}

static int measure_way(struct work *work, const char *way, unsigned int flight,
		       int (*perform)(struct work *work, unsigned int flight, unsigned int count))
{
	const struct options *options = work->run->options;
	struct json_object *results, *object;
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	double per_second, calls;
	uint64_t begin;
	int ret;

	ret = perform(work, flight, options->warmup);
	if (ret)
		return ret;
	kdsm_counts(work->run->kdsm, &before);
	begin = now_ns();
	ret = perform(work, flight, options->calls);
	if (ret)
		return ret;
	per_second = options->calls * 1e9 / (now_ns() - begin);
	counts_since(work->run, &before, &counts);
	calls = (double)counts.calls / options->calls;
	if (perform == by_calls)
		work->by_calls = per_second;

	object = json_object_new_object();
	json_object_object_add(object, "operation",
			       json_object_new_string(work->operation->name));
	json_object_object_add(object, "target", json_object_new_int(work->run->target));
	json_object_object_add(object, "size", json_object_new_uint64(size_of(work)));
	json_object_object_add(object, "by", json_object_new_string(way));
	json_object_object_add(object, "in_flight", json_object_new_int(flight));
	json_object_object_add(object, "operations_per_second",
			       json_object_new_double(per_second));
	json_object_object_add(object, "over_calls",
			       json_object_new_double(per_second / work->by_calls));
	json_object_object_add(object, "calls_per_operation", json_object_new_double(calls));
	json_object_object_add(object, "remote", report_remote(&counts));
	json_object_object_get_ex(work->run->result, "results", &results);
	json_object_array_add(results, object);
	if (!work->run->table)
		return 0;
	table_cell(work->run->table, "%s", work->operation->name);
	table_cell(work->run->table, "%llu", (unsigned long long)size_of(work));
	table_cell(work->run->table, "%s", way);
	table_cell(work->run->table, "%u", flight);
	table_cell(work->run->table, "%.0f", per_second);
	table_cell(work->run->table, "%.2f", per_second / work->by_calls);
	table_cell(work->run->table, "%.3f", calls);
	table_print(work->run->table);
	return 0;
}

static int measure_operation(struct work *work, unsigned int flight)
{
	int ret = measure_way(work, "calls", 1, by_calls);

	if (!ret)
		ret = measure_way(work, "ring", 1, by_ring);
	if (!ret && flight > 1)
		ret = measure_way(work, "ring", flight, by_ring);
	return ret;
}

static int measure(struct run *run, const uint64_t *sizes, unsigned int count,
		   unsigned int flight, uint64_t bytes)
{
	struct work work = { .run = run };
	unsigned int i, k;
	int ret = kdsm_ring_open(run->region, flight, bytes, &work.ring);

	if (ret)
		return complain(run->options, "ring of %u operations and %llu bytes: %s", flight,
				(unsigned long long)bytes, kdsm_error(ret));
	run_table(run, columns, "operations by a ring, from node %u to node %u of %u, domain %s",
		  run->node, run->target, run->nodes, domain_name(run));
	for (i = 0; !ret && i < count; i++) {
		work.size = sizes[i];
		work.stride = stride_of(sizes[i]);
		for (k = 0; !ret && k < OPERATIONS; k++) {
			work.operation = &operations[k];
			/* An atomic has one size. */
			if (!i || work.operation->opcode != KDSM_OP_FAA)
				ret = measure_operation(&work, flight);
		}
	}
	kdsm_ring_close(work.ring);
	if (ret)
		return complain(run->options, "operation on node %u: %s", run->target,
				kdsm_error(ret));
	report_end(run);
	return 0;
}

int bench_ring(const struct options *options)
{
	static const uint64_t default_size = DEFAULT_SIZE;
	unsigned int flight = options->vector ? options->vector : DEFAULT_FLIGHT;
	unsigned int i, count = options->size_count ? options->size_count : 1;
	const uint64_t *sizes = options->size_count ? options->sizes : &default_size;
	uint64_t bytes = 0;
	struct run run;
	int ret, last;

	for (i = 0; i < count; i++)
		bytes = stride_of(sizes[i]) * flight > bytes ? stride_of(sizes[i]) * flight : bytes;
	ret = run_open(&run, options, NULL);
	if (ret)
		return ret;
	ret = run_region(&run, bytes);
	if (ret) {
		run_close(&run);
		return ret;
	}
	if (run.measures)
		ret = measure(&run, sizes, count, flight, bytes);
	/* Also after a failure, because the other nodes wait. */
	last = run_meet(&run);
	run_close(&run);
	return ret ? ret : last;
}
