// SPDX-License-Identifier: GPL-2.0
/* Frame of the kinds that measure coherent regions, see coherent.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coherent.h"

#define REGION "kdsm-bench.memory"

/* Layout of the parts of the run's region: the tree barrier, and a place for a signature */
#define PLACE_OFFSET	(DATA_OFFSET + KDSM_TREE_BARRIER_SIZE)
#define PART_BYTES	(KDSM_TREE_BARRIER_SIZE + 4096)

static int failed(struct coherent *coherent, const char *what, int error)
{
	return error ? complain(coherent->run.options, "node %u: %s: %s",
				coherent->run.node, what, kdsm_error(error)) : 0;
}

int coherent_begin(struct coherent *coherent, const struct options *options)
{
	struct run *run = &coherent->run;
	int ret;

	memset(coherent, 0, sizeof(*coherent));
	ret = run_open(run, options, NULL);
	if (ret)
		return ret;
	if (run->nodes == 1 || run->target == 0)
		ret = complain(options, "it takes two nodes: node 0 measures, and --target must be another node");
	if (!ret)
		ret = run_region(run, PART_BYTES);
	if (ret)
		run_close(run);
	return ret;
}

int coherent_open(struct coherent *coherent, uint64_t size, uint32_t block)
{
	struct run *run = &coherent->run;
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = size,
		.block_size = block,
		.policy = KDSM_POLICY_RELEASE,
	};
	int ret;

	ret = kdsm_region_open(run->kdsm, REGION, &attr, &coherent->region);
	if (ret)
		return failed(coherent, "region '" REGION "'", ret);
	coherent->size = size;
	coherent->block = block;
	coherent->words = kdsm_region_address(coherent->region);
	ret = kdsm_tree_barrier_init(&coherent->barrier, coherent->region, run->region,
				     DATA_OFFSET, NULL);
	if (ret)
		return failed(coherent, "barrier", ret);
	return run_meet(run);
}

/* Remove the name before the region is closed, so that the next region of this name is new. */
int coherent_close(struct coherent *coherent)
{
	struct run *run = &coherent->run;
	int ret;

	ret = run_meet(run);
	if (!ret && run->node == 0)
		ret = failed(coherent, "removing the name '" REGION "'",
			     kdsm_region_destroy(run->kdsm, REGION));
	if (!ret)
		ret = run_meet(run);
	kdsm_region_close(coherent->region);
	coherent->region = NULL;
	return ret;
}

void coherent_end(struct coherent *coherent)
{
	kdsm_region_close(coherent->region);
	run_close(&coherent->run);
}

/* ---- signatures ---- */

int coherent_release(struct coherent *coherent, struct kdsm_signature *signature)
{
	return failed(coherent, "release", kdsm_release(coherent->region, signature));
}

int coherent_acquire(struct coherent *coherent, const struct kdsm_signature *signature)
{
	return failed(coherent, "acquire", kdsm_acquire(coherent->region, signature));
}

int coherent_put(struct coherent *coherent, unsigned int to, uint64_t value,
		 const struct kdsm_signature *signature)
{
	return failed(coherent, "passing a signature on",
		      kdsm_signature_put(coherent->run.region, to, PLACE_OFFSET, signature, value));
}

int coherent_get(struct coherent *coherent, uint64_t value, struct kdsm_signature *signature)
{
	return failed(coherent, "waiting for a signature",
		      kdsm_signature_wait(coherent->run.region, PLACE_OFFSET, value,
					  coherent->run.options->timeout, signature));
}

int coherent_exchange(struct coherent *coherent)
{
	unsigned int culprit = coherent->run.node;
	int ret;

	ret = kdsm_tree_barrier_wait(&coherent->barrier, coherent->run.options->timeout, &culprit);
	return ret ? complain(coherent->run.options, "node %u: barrier: %s (node %u)",
			      coherent->run.node, kdsm_error(ret), culprit) : 0;
}

/* ---- counts ---- */

void counting_reset(struct coherent *coherent)
{
	memset(&coherent->sum, 0, sizeof(coherent->sum));
}

int counting_begin(struct coherent *coherent)
{
	return counters_read(REGION, &coherent->before) ? EXIT_FAILURE : 0;
}

int counting_end(struct coherent *coherent)
{
	struct counters now;

	if (counters_read(REGION, &now))
		return EXIT_FAILURE;
	counters_add(&coherent->sum, &coherent->before, &now);
	return 0;
}

double counted(const struct coherent *coherent, enum kdsm_coherence_stat which, double per)
{
	return coherent->sum.coherence[which] / per;
}

double counted_remote(const struct coherent *coherent, double per)
{
	static const enum kdsm_stat which[] = {
		KDSM_STAT_GET, KDSM_STAT_PUT, KDSM_STAT_PUT_NOTIFY, KDSM_STAT_CAS,
		KDSM_STAT_FAA, KDSM_STAT_AM,
	};
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < sizeof(which) / sizeof(which[0]); i++)
		sum += coherent->sum.operations[which[i]];
	return sum / per;
}

/* ---- report ---- */

static void add_number(struct json_object *object, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(object, name, json_object_new_double_s(value, text));
}

struct json_object *coherent_result(struct coherent *coherent, const char *what,
				    uint64_t size, double per)
{
	static const struct {
		const char *name;
		enum kdsm_coherence_stat which;
	} region[] = {
		{ "read_faults", KDSM_COHERENCE_READ_FAULTS },
		{ "write_faults", KDSM_COHERENCE_WRITE_FAULTS },
		{ "fast_reads", KDSM_COHERENCE_FAST_READS },
		{ "slow_reads", KDSM_COHERENCE_SLOW_READS },
		{ "fast_releases", KDSM_COHERENCE_FAST_RELEASES },
		{ "slow_releases", KDSM_COHERENCE_SLOW_RELEASES },
		{ "migrations", KDSM_COHERENCE_MIGRATIONS },
		{ "invalidations", KDSM_COHERENCE_INVALIDATIONS },
		{ "merges", KDSM_COHERENCE_MERGES },
		{ "flushes", KDSM_COHERENCE_FLUSHES },
		{ "bytes", KDSM_COHERENCE_BYTES },
	};
	struct json_object *results, *object = json_object_new_object();
	struct json_object *counts = json_object_new_object();
	unsigned int i;

	json_object_object_add(object, "what", json_object_new_string(what));
	json_object_object_add(object, "size", json_object_new_uint64(size));
	json_object_object_add(object, "block_size", json_object_new_uint64(coherent->block));
	add_number(counts, "remote_operations", counted_remote(coherent, per));
	add_number(counts, "gets", coherent->sum.operations[KDSM_STAT_GET] / per);
	add_number(counts, "messages", coherent->sum.operations[KDSM_STAT_AM] / per);
	add_number(counts, "chains", coherent->sum.operations[KDSM_STAT_CHAINS] / per);
	/* One thread waits for each chain and each message before it sends the next. */
	add_number(counts, "round_trips", (coherent->sum.operations[KDSM_STAT_CHAINS] +
					   coherent->sum.operations[KDSM_STAT_AM]) / per);
	for (i = 0; i < sizeof(region) / sizeof(region[0]); i++)
		add_number(counts, region[i].name, counted(coherent, region[i].which, per));
	json_object_object_add(object, "counts", counts);
	json_object_object_get_ex(coherent->run.result, "results", &results);
	json_object_array_add(results, object);
	return object;
}
