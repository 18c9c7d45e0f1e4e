// SPDX-License-Identifier: GPL-2.0
/* The frame of a run: every node opens the same region, and waits for the others. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "bench.h"
#include "common/cluster.h"

#define REGION "kdsm-bench"

static int no_region(const struct options *options, int error)
{
	switch (-error) {
	case EINVAL:
		return complain(options, "region '" REGION "' exists with another size: "
				"another kdsm-bench is running, or this one was started with other arguments on another node");
	case ENOMEM:
		return complain(options, "some node has no memory for its part of region '" REGION "'");
	case EHOSTDOWN:
	case ETIMEDOUT:
		return complain(options, "region '" REGION "': a node of the cluster does not answer (kdsmctl status)");
	default:
		return complain(options, "region '" REGION "': %s", kdsm_error(error));
	}
}

int run_meet(struct run *run)
{
	int ret;

	ret = kdsm_barrier_wait(&run->barrier, run->options->timeout);
	switch (-ret) {
	case 0:
		return 0;
	case ETIMEDOUT:
		return complain(run->options, "node %u: not all of the %u nodes came within %g seconds: "
				"start kdsm-bench on every node",
				run->node, run->nodes, run->options->timeout / 1e9);
	case EINVAL:
		return complain(run->options, "node %u: the barrier is in use: another kdsm-bench is running",
				run->node);
	default:
		return complain(run->options, "node %u: barrier: %s", run->node, kdsm_error(ret));
	}
}

int run_region(struct run *run, uint64_t part_bytes)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = (DATA_OFFSET + part_bytes) * run->nodes,
	};
	int ret;

	ret = kdsm_region_open(run->kdsm, REGION, &attr, &run->region);
	if (ret)
		return no_region(run->options, ret);
	kdsm_barrier_init(&run->barrier, run->region, 0);
	/*
	 * Remove the name once all nodes have the region. The next run then makes a region of
	 * its own, even if a slow node still has this one open.
	 */
	ret = run_meet(run);
	if (!ret && run->node == 0) {
		ret = kdsm_region_destroy(run->kdsm, REGION);
		if (ret)
			ret = complain(run->options, "removing the name '" REGION "': %s",
				       kdsm_error(ret));
	}
	if (!ret)
		ret = run_meet(run);
	return ret;
}

/* The target in a cluster of one node. Operations on remote memory need two nodes. */
static int choose_alone(struct run *run)
{
	static const char *const fit[] = {
		"lock", "held", "table", "task", "steal", "barrier", NULL
	};
	unsigned int i;

	run->target = 0;
	for (i = 0; fit[i]; i++)
		if (!strcmp(run->options->kind, fit[i]))
			return 0;
	return complain(run->options, "this cluster has one node, and it needs two to measure remote operations "
			"(--target 0 measures local ones)");
}

int run_open(struct run *run, const struct options *options, struct kdsm *simulated)
{
	int ret = 0;

	memset(run, 0, sizeof(*run));
	run->options = options;
	run->simulated = simulated;
	run->kdsm = simulated;
	if (!simulated)
		ret = kdsm_open(options->local ? KDSM_OPEN_LOCAL : 0, &run->kdsm);
	if (ret)
		return complain(options, "%s", kdsm_error(ret));
	run->node = kdsm_node(run->kdsm);
	run->nodes = kdsm_nodes(run->kdsm);
	run->measures = run->node == 0;
	run->target = options->target != NEXT_NODE ? options->target : 1;
	if (run->nodes == 1 && options->target == NEXT_NODE)
		ret = choose_alone(run);
	else if (options->target != NEXT_NODE && options->target >= run->nodes)
		ret = complain(options, "there is no node %u in a cluster of %u: give another --target",
			       options->target, run->nodes);
	if (ret)
		run_close(run);
	else
		run->result = report_begin(run);
	return ret;
}

void run_table(struct run *run, const struct column *columns, const char *format, ...)
{
	va_list args;

	if (!run->measures || run->options->json)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	run->table = table_new(columns);
}

void run_close(struct run *run)
{
	if (run->table)
		table_free(run->table);
	json_object_put(run->result);
	kdsm_region_close(run->region);
	if (!run->simulated)
		kdsm_close(run->kdsm);
}
