// SPDX-License-Identifier: GPL-2.0
/* barrier: all nodes meet at a barrier repeatedly, and node 0 measures how long that takes. */
#include <stdio.h>
#include "bench.h"

static int meet(struct run *run, unsigned int count, struct samples *samples)
{
	uint64_t begin;
	int ret = 0;

	for (; count && !ret; count--) {
		begin = samples_begin(samples);
		ret = run_meet(run);
		samples_end(samples, begin);
	}
	return ret;
}

static void report(struct run *run, const struct summary *summary,
		   const struct kdsm_counts *counts, const struct kdsm_virtual_times *times)
{
	const struct options *options = run->options;
	struct json_object *results, *object = json_object_new_object();
	char calls[32];

	json_object_object_add(object, "calls", json_object_new_int(options->calls));
	json_object_object_add(object, "latency_us", report_latency(summary));
	json_object_object_add(object, "remote", report_remote(counts));
	if (run->simulated)
		json_object_object_add(object, "virtual", virtual_json(&options->virtual, times));
	json_object_object_get_ex(run->result, "results", &results);
	json_object_array_add(results, object);
	if (options->json)
		return;
	printf("barrier of %u node%s, domain %s\n", run->nodes, run->nodes == 1 ? "" : "s",
	       domain_name(run));
	printf("  a barrier, %smicroseconds: median %.2f, 99th percentile %.2f "
	       "(min %.2f, mean %.2f, 90th %.2f, 99.9th %.2f, max %.2f)\n",
	       run->simulated ? "virtual " : "", summary->median, summary->p99, summary->min,
	       summary->mean, summary->p90, summary->p999, summary->max);
	snprintf(calls, sizeof(calls), "%u barriers", options->calls);
	printf("  ");
	report_remote_text(counts, calls);
}

static int measure(struct run *run, struct samples *samples)
{
	const struct options *options = run->options;
	struct kdsm_virtual_times times = { .argsz = sizeof(times) };
	struct kdsm_counts before = { .argsz = sizeof(before) };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct summary summary;
	int ret;

	ret = meet(run, options->warmup, NULL);
	if (ret)
		return ret;
	kdsm_counts(run->kdsm, &before);
	if (run->measures)
		kdsm_virtual_reset();
	ret = meet(run, options->calls, samples);
	if (ret || !run->measures)
		return ret;
	kdsm_virtual_times(&times);
	counts_since(run, &before, &counts);
	samples_summarise(samples, &summary);
	report(run, &summary, &counts, &times);
	return 0;
}

static int bench_node(const struct options *options, struct kdsm *node, void *context)
{
	struct samples samples;
	struct run run;
	int ret;

	(void)context;
	ret = run_open(&run, options, node);
	if (ret)
		return ret;
	ret = run_region(&run, 0);
	if (!ret && samples_init(&samples, options->calls)) {
		ret = complain(options, "this machine has no memory for the times of %u barriers: give fewer --calls",
			       options->calls);
	} else if (!ret) {
		ret = measure(&run, run.measures ? &samples : NULL);
		samples_free(&samples);
	}
	if (!ret && run.measures)
		report_end(&run);
	run_close(&run);
	return ret;
}

int bench_barrier(const struct options *options)
{
	return virtual_bench(options, bench_node, NULL);
}
