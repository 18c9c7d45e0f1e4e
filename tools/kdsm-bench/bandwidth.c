// SPDX-License-Identifier: GPL-2.0
/* bw: bytes a second of gets and puts, by size. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define DEFAULT_VECTOR 4

static const uint64_t default_sizes[] = { 4096, 65536, 1048576 };

static const struct column columns[] = {
	{ "size", TABLE_RIGHT, 10 },
	{ "a call of", TABLE_RIGHT, 10 },
	{ "get", TABLE_RIGHT, 12 },
	{ "put", TABLE_RIGHT, 12 },
	{ 0 }
};

struct work {
	struct run *run;
	unsigned int vector;
	uint8_t *buffer;
	struct kdsm_op *ops;
};

static uint64_t stride_of(uint64_t size)
{
	return (size + 63) & ~63ULL;
}

static int transfer(struct work *work, enum kdsm_opcode opcode, uint64_t size,
		    double *bytes_per_second)
{
	uint64_t stride = stride_of(size), bytes = 0, begin, spent;
	unsigned int target = work->run->target;
	unsigned int i;
	int ret;

	for (i = 0; i < work->vector; i++) {
		uint64_t offset = DATA_OFFSET + i * stride;
		uint8_t *memory = work->buffer + i * stride;

		work->ops[i] = opcode == KDSM_OP_GET ?
			       kdsm_op_get(target, offset, memory, size) :
			       kdsm_op_put(target, offset, memory, size);
	}
	/* The first call, which is not measured, opens connections and allocates memory. */
	ret = kdsm_vector(work->run->region, work->ops, work->vector);
	if (ret)
		return ret;
	begin = now_ns();
	do {
		ret = kdsm_vector(work->run->region, work->ops, work->vector);
		if (ret)
			return ret;
		bytes += size * work->vector;
		spent = now_ns() - begin;
	} while (spent < (work->run->options->duration ?: SECOND));
	*bytes_per_second = bytes * 1e9 / spent;
	return 0;
}

static int measure_size(struct work *work, uint64_t size)
{
	const struct options *options = work->run->options;
	struct json_object *results, *object;
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	double get = 0, put = 0;
	int ret;

	kdsm_counts(work->run->kdsm, &before);
	ret = transfer(work, KDSM_OP_GET, size, &get);
	if (!ret)
		ret = transfer(work, KDSM_OP_PUT, size, &put);
	if (ret)
		return complain(options, "operation on node %u: %s", work->run->target,
				kdsm_error(ret));
	counts_since(work->run, &before, &counts);

	object = json_object_new_object();
	json_object_object_add(object, "target", json_object_new_int(work->run->target));
	json_object_object_add(object, "size", json_object_new_uint64(size));
	json_object_object_add(object, "vector", json_object_new_int(work->vector));
	json_object_object_add(object, "get_bytes_per_second", json_object_new_double(get));
	json_object_object_add(object, "put_bytes_per_second", json_object_new_double(put));
	json_object_object_add(object, "remote", report_remote(&counts));
	json_object_object_get_ex(work->run->result, "results", &results);
	json_object_array_add(results, object);
	if (work->run->table) {
		table_cell(work->run->table, "%llu", (unsigned long long)size);
		table_cell(work->run->table, "%u", work->vector);
		table_cell(work->run->table, "%.2f", get / 1e6);
		table_cell(work->run->table, "%.2f", put / 1e6);
		table_print(work->run->table);
	}
	return 0;
}

static int measure(struct run *run, const uint64_t *sizes, unsigned int count,
		   unsigned int vector, uint64_t bytes)
{
	struct work work = { .run = run, .vector = vector };
	unsigned int i;
	int ret = 0;

	work.buffer = malloc(bytes);
	work.ops = calloc(vector, sizeof(*work.ops));
	if (!work.buffer || !work.ops) {
		ret = complain(run->options, "no memory for %llu bytes", (unsigned long long)bytes);
		goto out;
	}
	memset(work.buffer, 0x5a, bytes);
	run_table(run, columns, "bandwidth from node %u to node %u of %u, megabytes (10^6) a second",
		  run->node, run->target, run->nodes);
	for (i = 0; !ret && i < count; i++)
		ret = measure_size(&work, sizes[i]);
	if (!ret)
		report_end(run);
out:
	free(work.buffer);
	free(work.ops);
	return ret;
}

int bench_bandwidth(const struct options *options)
{
	unsigned int vector = options->vector ? options->vector : DEFAULT_VECTOR;
	unsigned int i, count = options->size_count;
	const uint64_t *sizes = options->sizes;
	uint64_t largest = 0;
	struct run run;
	int ret, last;

	if (!count) {
		sizes = default_sizes;
		count = sizeof(default_sizes) / sizeof(default_sizes[0]);
	}
	for (i = 0; i < count; i++)
		largest = sizes[i] > largest ? sizes[i] : largest;
	ret = run_open(&run, options, NULL);
	if (ret)
		return ret;
	ret = run_region(&run, stride_of(largest) * vector);
	if (ret) {
		run_close(&run);
		return ret;
	}
	if (run.measures)
		ret = measure(&run, sizes, count, vector, stride_of(largest) * vector);
	last = run_meet(&run);
	run_close(&run);
	return ret ? ret : last;
}
