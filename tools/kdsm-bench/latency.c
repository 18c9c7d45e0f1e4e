// SPDX-License-Identifier: GPL-2.0
/*
 * get, put, cas, faa, am: times of single operations or of vectors of them, and operations a
 * second with many in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

/* Operations in flight when the rate is measured */
#define RATE_VECTOR 64

struct kind {
	const char *name;
	enum kdsm_opcode opcode;
};

static const struct kind kinds[] = {
	{ "get", KDSM_OP_GET },
	{ "put", KDSM_OP_PUT },
	{ "cas", KDSM_OP_CAS },
	{ "faa", KDSM_OP_FAA },
	{ "am", KDSM_OP_FAA },
};

struct work {
	struct run *run;
	enum kdsm_opcode opcode;
	uint64_t size, stride;
	uint8_t *buffer;	/* stride bytes for each operation */
	struct kdsm_op *ops;
	uint64_t word;		/* value that the next compare-and-swap expects */
};

static uint64_t stride_of(uint64_t size)
{
	return (size + 63) & ~63ULL;
}

static int one_call(struct work *work)
{
	struct kdsm_region *region = work->run->region;
	unsigned int target = work->run->target;

	switch (work->opcode) {
	case KDSM_OP_GET:
		return kdsm_get(region, target, DATA_OFFSET, work->buffer, work->size);
	case KDSM_OP_PUT:
		return kdsm_put(region, target, DATA_OFFSET, work->buffer, work->size);
	case KDSM_OP_CAS:
		work->word++;
		return kdsm_cas(region, target, DATA_OFFSET, work->word - 1, work->word, NULL);
	default:
		return kdsm_faa(region, target, DATA_OFFSET, 1, NULL);
	}
}

static void fill_vector(struct work *work, unsigned int count)
{
	unsigned int target = work->run->target;
	unsigned int i;

	for (i = 0; i < count; i++) {
		uint64_t offset = DATA_OFFSET + i * work->stride;
		uint8_t *memory = work->buffer + i * work->stride;

		switch (work->opcode) {
		case KDSM_OP_GET:
			work->ops[i] = kdsm_op_get(target, offset, memory, work->size);
			break;
		case KDSM_OP_PUT:
			work->ops[i] = kdsm_op_put(target, offset, memory, work->size);
			break;
		case KDSM_OP_CAS:
			work->ops[i] = kdsm_op_cas(target, offset, 0, 0);
			break;
		default:
			work->ops[i] = kdsm_op_faa(target, offset, 1);
			break;
		}
	}
}

static int timed_calls(struct work *work, unsigned int count, struct samples *samples)
{
	unsigned int vector = work->run->options->vector;
	uint64_t begin;
	int ret;

	for (; count; count--) {
		begin = samples_begin(samples);
		if (vector > 1)
			ret = kdsm_vector(work->run->region, work->ops, vector);
		else
			ret = one_call(work);
		samples_end(samples, begin);
		if (ret)
			return ret;
	}
	return 0;
}

/* Operations a second with RATE_VECTOR of them in flight. */
static int rate(struct work *work, double *per_second)
{
	unsigned int calls = work->run->options->calls;
	uint64_t begin, done = 0;
	int ret;

	fill_vector(work, RATE_VECTOR);
	begin = now_ns();
	do {
		ret = kdsm_vector(work->run->region, work->ops, RATE_VECTOR);
		if (ret)
			return ret;
		done += RATE_VECTOR;
	} while (done < calls);
	*per_second = done * 1e9 / (now_ns() - begin);
	return 0;
}

static void report(struct work *work, const struct summary *summary,
		   double calls_per_second, double per_second,
		   const struct kdsm_counts *counts)
{
	const struct options *options = work->run->options;
	struct json_object *results, *object = json_object_new_object();
	unsigned int vector = options->vector ? options->vector : 1;
	char calls[32];

	json_object_object_add(object, "target", json_object_new_int(work->run->target));
	json_object_object_add(object, "size", json_object_new_uint64(work->size));
	json_object_object_add(object, "vector", json_object_new_int(vector));
	json_object_object_add(object, "calls", json_object_new_int(options->calls));
	json_object_object_add(object, "latency_us", report_latency(summary));
	json_object_object_add(object, "calls_per_second",
			       json_object_new_double(calls_per_second));
	json_object_object_add(object, "operations_per_second",
			       json_object_new_double(per_second));
	json_object_object_add(object, "remote", report_remote(counts));
	json_object_object_get_ex(work->run->result, "results", &results);
	json_object_array_add(results, object);
	if (options->json)
		return;
	printf("%s of %llu bytes, %u a call, from node %u to node %u of %u, domain %s\n",
	       options->kind, (unsigned long long)work->size, vector, work->run->node,
	       work->run->target, work->run->nodes, domain_name(work->run));
	printf("  a call, microseconds: median %.2f, 99th percentile %.2f "
	       "(min %.2f, mean %.2f, 90th %.2f, 99.9th %.2f, max %.2f)\n",
	       summary->median, summary->p99, summary->min, summary->mean,
	       summary->p90, summary->p999, summary->max);
	printf("  calls one after the other: %.0f a second; %d operations at a time: %.0f operations a second\n",
	       calls_per_second, RATE_VECTOR, per_second);
	snprintf(calls, sizeof(calls), "%u calls", options->calls);
	printf("  ");
	report_remote_text(counts, calls);
}

static int measure_size(struct work *work)
{
	const struct options *options = work->run->options;
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct samples samples;
	struct summary summary;
	double per_second = 0, calls_per_second;
	uint64_t begin;
	int ret;

	if (samples_init(&samples, options->calls))
		return -ENOMEM;
	work->stride = stride_of(work->size);
	fill_vector(work, options->vector);
	ret = timed_calls(work, options->warmup, NULL);
	if (ret)
		goto out;
	kdsm_counts(work->run->kdsm, &before);
	begin = now_ns();
	ret = timed_calls(work, options->calls, &samples);
	calls_per_second = options->calls * 1e9 / (now_ns() - begin);
	counts_since(work->run, &before, &counts);
	if (!ret)
		ret = rate(work, &per_second);
	if (!ret) {
		samples_summarise(&samples, &summary);
		report(work, &summary, calls_per_second, per_second, &counts);
	}
out:
	samples_free(&samples);
	return ret;
}

static int measure(struct run *run, enum kdsm_opcode opcode, const uint64_t *sizes,
		   unsigned int size_count, uint64_t bytes, unsigned int most)
{
	struct work work = { .run = run, .opcode = opcode };
	unsigned int i;
	int ret = 0;

	work.buffer = calloc(1, bytes);
	work.ops = calloc(most, sizeof(*work.ops));
	if (!work.buffer || !work.ops)
		ret = -ENOMEM;
	for (i = 0; !ret && i < size_count; i++) {
		work.size = sizes[i];
		ret = measure_size(&work);
	}
	free(work.buffer);
	free(work.ops);
	if (ret)
		return complain(run->options, "operation on node %u: %s", run->target,
				kdsm_error(ret));
	report_end(run);
	return 0;
}

int bench_latency(const struct options *options)
{
	unsigned int most = options->vector > RATE_VECTOR ? options->vector : RATE_VECTOR;
	unsigned int i, size_count = options->size_count;
	const uint64_t *sizes = options->sizes;
	const struct kind *kind = kinds;
	static const uint64_t word = 8;
	uint64_t bytes, largest = 0;
	struct run run;
	int ret, last;

	while (strcmp(kind->name, options->kind))
		kind++;
	if (!size_count) {
		sizes = &word;
		size_count = 1;
	}
	for (i = 0; i < size_count; i++)
		largest = sizes[i] > largest ? sizes[i] : largest;
	bytes = stride_of(largest) * most;
	ret = run_open(&run, options, NULL);
	if (ret)
		return ret;
	ret = run_region(&run, bytes);
	if (ret) {
		run_close(&run);
		return ret;
	}
	if (!strcmp(kind->name, "am") &&
	    (kdsm_domain(run.kdsm) != KDSM_DOMAIN_SW || run.target == run.node) &&
	    run.measures)
		ret = complain(options, "what a program can send as an active message is an atomic operation "
			       "on another node in domain sw; this is domain %s, target node %u "
			       "(kdsmctl up --atomics sw chooses the domain)",
			       domain_name(&run), run.target);
	else if (run.measures)
		ret = measure(&run, kind->opcode, sizes, size_count, bytes, most);
	/* Also after a failure, because the other nodes wait. */
	last = run_meet(&run);
	run_close(&run);
	return ret ? ret : last;
}
