/* SPDX-License-Identifier: GPL-2.0 */
/* Surveys: the reports of all nodes of the cluster at one time, as data. */
#ifndef KDSMCTL_NODES_H
#define KDSMCTL_NODES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "common/cli.h"
#include "common/module.h"
#include "latency.h"

struct node_report {
	uint32_t node;
	int error;		/* 0, or the errno that says why it did not answer */
	char address[INET6_ADDRSTRLEN], location[KDSM_LOCATION_SIZE];
	uint64_t uptime;	/* in ns; this and the rest are valid if error is 0 */
	uint64_t memory;	/* of regions, in bytes */
	uint32_t regions, opens;
	uint64_t stats[KDSM_STAT_COUNT];
	uint64_t coherence[KDSM_COHERENCE_COUNT];
	struct latency latencies[KDSM_LATENCY_COUNT];
};

/* A region that this node knows */
struct region_name {
	uint32_t id, policy;
	uint64_t size;		/* in bytes */
	char name[KDSM_NAME_SIZE];
};

/* The part of a region that one node has */
struct region_use {
	uint32_t node, id, opens;
	uint64_t resident;	/* in bytes */
	uint64_t coherence[KDSM_COHERENCE_COUNT];
};

/* Counters of a lock on one node; see KDSM_A_LOCK_* */
struct lock_use {
	uint32_t node, id, number, kind;
	char name[KDSM_NAME_SIZE];
	uint64_t locks, waits, waited, longest, handed, passed;
};

struct survey {
	char cluster[KDSM_NAME_SIZE];
	uint32_t self;		/* number of this node */
	struct timespec time;
	struct node_report *nodes;
	struct region_name *names;
	struct region_use *regions;
	struct lock_use *locks;
	size_t node_count, name_count, region_count, lock_count;
};

/* An option for a table: how long to wait for answers; the member is uint64_t, in ns */
#define NODES_TIMEOUT_OPTION(type, member)						\
	{ "timeout", 't', "SECONDS", "Wait so long for nodes, 2 s by default", CLI_TIME,	\
	  .offset = offsetof(type, member),						\
	  .range = { SECOND / 1000, KDSM_TIMEOUT_MAX * (SECOND / 1000), SECOND } }

/*
 * Ask all nodes, and wait timeout ms at most; with details, ask those that answered once more, for
 * latencies, regions and locks. Returns 0 or a negative errno, for module_complain(). The caller
 * frees the survey in any case.
 */
int survey_take(struct survey *survey, struct module *module, uint32_t timeout, bool details);
void survey_free(struct survey *survey);

/* One word: "up", or why the node did not answer */
const char *node_state(const struct node_report *report);
/* The region with this id, or NULL if this node does not know it */
const struct region_name *survey_region(const struct survey *survey, uint32_t id);
/* The sum of the counters of operations that a node had executed on others */
uint64_t node_operations(const struct node_report *report);

/* Print "kdsmctl status --all". Returns as survey_take(). */
int nodes_status(struct module *module, uint32_t timeout, bool json);

#endif /* KDSMCTL_NODES_H */
