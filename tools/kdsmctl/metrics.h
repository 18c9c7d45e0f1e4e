/* SPDX-License-Identifier: GPL-2.0 */
/* Metrics of this node as data, and as OpenMetrics text */
#ifndef KDSMCTL_METRICS_H
#define KDSMCTL_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/module.h"
#include "latency.h"
#include "names.h"

struct metrics_peer {
	uint32_t node;
	bool down;
	uint64_t connects, errors;
};

struct metrics_region {
	char name[KDSM_NAME_SIZE];
	uint32_t id, opens;
	bool coherent;		/* the last three fields are valid */
	uint64_t size, resident, memory, limit;
	uint64_t coherence[KDSM_COHERENCE_COUNT];
};

struct metrics_lock {
	uint32_t id, number;
	char name[KDSM_NAME_SIZE];
	uint64_t waits, waited, handed, passed;
};

struct metrics {
	bool up;		/* the cluster is; else nothing below is valid */
	char cluster[KDSM_NAME_SIZE], device[64];
	uint32_t node, nodes;
	uint64_t memory, refused[REFUSALS];
	uint64_t stats[KDSM_STAT_COUNT];	/* sums over all peers */
	struct latency latencies[KDSM_LATENCY_COUNT];
	struct metrics_peer *peers;
	struct metrics_region *regions;
	struct metrics_lock *locks;
	size_t peer_count, region_count, lock_count;
};

/* Write all as OpenMetrics text, which the text format of Prometheus includes. */
void metrics_write(const struct metrics *metrics, FILE *out);

#endif /* KDSMCTL_METRICS_H */
