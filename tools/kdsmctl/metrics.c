// SPDX-License-Identifier: GPL-2.0
/* kdsmctl metrics: metrics of this node, for node_exporter. openmetrics.c has the format. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "metrics.h"

static void one_status(attrs at, void *data)
{
	struct metrics *metrics = data;

	snprintf(metrics->cluster, sizeof(metrics->cluster), "%s",
		 attr_string(at, KDSM_A_CLUSTER));
	snprintf(metrics->device, sizeof(metrics->device), "%s", attr_string(at, KDSM_A_DEVICE));
	metrics->node = attr_u32(at, KDSM_A_NODE);
	metrics->nodes = attr_u32(at, KDSM_A_NODE_COUNT);
	metrics->memory = attr_u64(at, KDSM_A_MEMORY);
	for (int i = 0; i < REFUSALS; i++)
		metrics->refused[i] = attr_u64(at, refusals[i].attr);
}

/* Make room for one more entry in a list of count entries. */
static void *grow(void *list, size_t count, size_t size)
{
	list = realloc(list, (count + 1) * size);
	if (!list)
		errx(EXIT_FAILURE, "out of memory");
	return list;
}

static void one_peer(attrs at, void *data)
{
	struct metrics *metrics = data;

	if (attr_u32(at, KDSM_A_PEER_STATE) == KDSM_PEER_SELF)
		return;
	metrics->peers = grow(metrics->peers, metrics->peer_count, sizeof(*metrics->peers));
	metrics->peers[metrics->peer_count++] = (struct metrics_peer){
		.node = attr_u32(at, KDSM_A_NODE_ID),
		.down = attr_u32(at, KDSM_A_PEER_STATE) == KDSM_PEER_DOWN,
		.connects = attr_u64(at, KDSM_A_PEER_CONNECTS),
		.errors = attr_u64(at, KDSM_A_PEER_ERRORS),
	};
}

static void one_stats(attrs at, void *data)
{
	struct metrics *metrics = data;

	attr_counters(at, KDSM_A_STATS, metrics->stats, KDSM_STAT_COUNT);
}

static void one_region(attrs at, void *data)
{
	struct metrics *metrics = data;
	struct metrics_region *region;

	metrics->regions = grow(metrics->regions, metrics->region_count,
				sizeof(*metrics->regions));
	region = &metrics->regions[metrics->region_count++];
	*region = (struct metrics_region){
		.id = attr_u32(at, KDSM_A_REGION_ID),
		.opens = attr_u32(at, KDSM_A_REGION_OPENS),
		.coherent = at[KDSM_A_REGION_STATS],
		.size = attr_u64(at, KDSM_A_REGION_SIZE),
		.resident = attr_u64(at, KDSM_A_REGION_RESIDENT),
		.memory = attr_u64(at, KDSM_A_REGION_MEMORY),
		.limit = attr_u64(at, KDSM_A_REGION_LIMIT),
	};
	snprintf(region->name, sizeof(region->name), "%s", attr_string(at, KDSM_A_REGION_NAME));
	attr_counters(at, KDSM_A_REGION_STATS, region->coherence, KDSM_COHERENCE_COUNT);
}

static void one_lock(attrs at, void *data)
{
	struct metrics *metrics = data;
	struct metrics_lock *lock;

	metrics->locks = grow(metrics->locks, metrics->lock_count, sizeof(*metrics->locks));
	lock = &metrics->locks[metrics->lock_count++];
	*lock = (struct metrics_lock){
		.id = attr_u32(at, KDSM_A_REGION_ID),
		.number = attr_u32(at, KDSM_A_LOCK_NUMBER),
		.waits = attr_u64(at, KDSM_A_LOCK_WAITS),
		.waited = attr_u64(at, KDSM_A_LOCK_WAITED),
		.handed = attr_u64(at, KDSM_A_LOCK_HANDED),
		.passed = attr_u64(at, KDSM_A_LOCK_PASSED),
	};
	snprintf(lock->name, sizeof(lock->name), "%s", attr_string(at, KDSM_A_LOCK_NAME));
}

static int gather(struct module *module, struct metrics *metrics)
{
	int error;

	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, one_status, metrics);
	/* The cluster is not up: that is a metric, too */
	if (error == -ENETDOWN)
		return 0;
	metrics->up = true;
	if (!error)
		error = module_dump(module, KDSM_CMD_PEERS, one_peer, metrics);
	if (!error)
		error = module_dump(module, KDSM_CMD_STATS, one_stats, metrics);
	if (!error)
		error = module_dump(module, KDSM_CMD_REGIONS, one_region, metrics);
	if (!error)
		error = latencies_read(module, UINT32_MAX, KDSM_TIMEOUT_DEFAULT,
				       metrics->latencies);
	if (!error)
		error = module_dump(module, KDSM_CMD_NODE_LOCKS, one_lock, metrics);
	/* Without CAP_NET_ADMIN there are no locks */
	return error == -EPERM ? 0 : error;
}

/* node_exporter may read the file at any time: replace it as a whole. Returns an exit status. */
static int write_file(const struct metrics *metrics, const char *path)
{
	char *new;
	FILE *out;
	int failed;

	if (asprintf(&new, "%s.%d", path, getpid()) < 0)
		errx(EXIT_FAILURE, "out of memory");
	out = fopen(new, "wxe");
	if (!out) {
		warn("cannot write %s", new);
		free(new);
		return EXIT_FAILURE;
	}
	metrics_write(metrics, out);
	failed = ferror(out);
	if (fclose(out) || failed || rename(new, path)) {
		warn("cannot write %s", path);
		unlink(new);
		failed = 1;
	}
	free(new);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

struct arguments {
	const char *output;
};

static const struct cli_option options[] = {
	{ "output", 'o', "FILE", "Write FILE, replaced as a whole, instead of standard output",
	  CLI_TEXT, .offset = offsetof(struct arguments, output) },
	{ 0 }
};

static const struct cli cli = {
	.doc = "Print metrics of this node as OpenMetrics text, for the textfile collector of "
	       "node_exporter.",
	.options = { options },
};

int command_metrics(int argc, char **argv)
{
	struct arguments arguments = { .output = NULL };
	struct metrics metrics = { .up = false };
	int error, status = EXIT_SUCCESS;
	struct module *module;

	cli_parse(&cli, argc, argv, &arguments);
	module = module_need();
	error = gather(module, &metrics);
	if (error) {
		module_complain(module, "read the metrics", error);
		status = EXIT_FAILURE;
	} else if (arguments.output) {
		status = write_file(&metrics, arguments.output);
	} else {
		metrics_write(&metrics, stdout);
	}
	module_close(module);
	free(metrics.peers);
	free(metrics.regions);
	free(metrics.locks);
	return status;
}
