// SPDX-License-Identifier: GPL-2.0
/* The module's counters, by its netlink family, as kdsmctl gets them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../tools/kdsmctl/module.h"
#include "counters.h"

struct reading {
	const char *region;
	struct counters *counters;
};

static int one_operation(const struct nlattr *attr, void *data)
{
	struct reading *reading = data;
	unsigned int i = mnl_attr_get_type(attr) - 1;

	if (i < KDSM_STAT_COUNT && mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		reading->counters->operations[i] += mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

static int one_counter(const struct nlattr *attr, void *data)
{
	struct reading *reading = data;
	unsigned int i = mnl_attr_get_type(attr) - 1;

	if (i < KDSM_COHERENCE_COUNT && mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		reading->counters->coherence[i] = mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

static void one_peer(attrs at, void *data)
{
	if (at[KDSM_A_STATS])
		mnl_attr_parse_nested(at[KDSM_A_STATS], one_operation, data);
}

static void one_region(attrs at, void *data)
{
	struct reading *reading = data;

	if (at[KDSM_A_REGION_STATS] &&
	    !strcmp(attr_string(at, KDSM_A_REGION_NAME), reading->region))
		mnl_attr_parse_nested(at[KDSM_A_REGION_STATS], one_counter, data);
}

int counters_read(const char *region, struct counters *counters)
{
	struct reading reading = { .region = region, .counters = counters };
	struct module *module = module_open();
	int error;

	if (!module)
		return -EIO;
	memset(counters, 0, sizeof(*counters));
	error = module_dump(module, KDSM_CMD_STATS, one_peer, &reading);
	if (!error)
		error = module_dump(module, KDSM_CMD_REGIONS, one_region, &reading);
	if (error)
		module_complain(module, "read the counters", error);
	module_close(module);
	return error ? -EIO : 0;
}
