// SPDX-License-Identifier: GPL-2.0
/* Counters of the module on this node, see counters.h. */
#include <err.h>
#include <stdbool.h>
#include <string.h>

#include "common/counters.h"
#include "common/module.h"

struct reading {
	const char *region;
	bool found;
	struct counters *counters;
};

static void one_peer(attrs at, void *data)
{
	struct reading *reading = data;

	attr_counters(at, KDSM_A_STATS, reading->counters->operations, KDSM_STAT_COUNT);
}

static void one_region(attrs at, void *data)
{
	struct reading *reading = data;

	if (reading->found || !at[KDSM_A_REGION_STATS] ||
	    strcmp(attr_string(at, KDSM_A_REGION_NAME), reading->region))
		return;
	reading->found = true;
	attr_counters(at, KDSM_A_REGION_STATS, reading->counters->coherence, KDSM_COHERENCE_COUNT);
}

int counters_read(const char *region, struct counters *counters)
{
	struct reading reading = { .region = region, .counters = counters };
	struct module *module = module_open();
	int error;

	if (!module)
		return -1;
	memset(counters, 0, sizeof(*counters));
	error = module_dump(module, KDSM_CMD_STATS, one_peer, &reading);
	reading.found = !region;
	if (!error && region)
		error = module_dump(module, KDSM_CMD_REGIONS, one_region, &reading);
	if (error)
		module_complain(module, "read the counters", error);
	else if (!reading.found)
		warnx("there are no counters of region %s", region);
	module_close(module);
	return error || !reading.found ? -1 : 0;
}

void counters_add(struct counters *sum, const struct counters *before,
		  const struct counters *after)
{
	unsigned int i;

	for (i = 0; i < KDSM_STAT_COUNT; i++)
		sum->operations[i] += after->operations[i] - before->operations[i];
	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		sum->coherence[i] += after->coherence[i] - before->coherence[i];
}
