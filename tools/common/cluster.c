// SPDX-License-Identifier: GPL-2.0
/* Names and messages about the cluster of this node, see cluster.h. */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <kdsm/table.h>

#include "common/cluster.h"

const char *const domain_names[] = {
	[KDSM_DOMAIN_AUTO] = "auto",
	[KDSM_DOMAIN_SW] = "sw",
	[KDSM_DOMAIN_HCA] = "hca",
	[KDSM_DOMAIN_GLOB] = "glob",
	NULL
};

const char *const find_ways[] = {
	[KDSM_TABLE_AUTO] = "auto",
	[KDSM_TABLE_ONE_SIDED] = "one-sided",
	[KDSM_TABLE_MESSAGE] = "message",
	NULL
};

const char *const lock_kinds[] = {
	[KDSM_LOCK_DMCS - KDSM_LOCK_DMCS] = "dmcs",
	[KDSM_LOCK_RMA_MCS - KDSM_LOCK_DMCS] = "rma-mcs",
	[KDSM_LOCK_RMA_RW - KDSM_LOCK_DMCS] = "rma-rw",
	NULL
};

const char *lock_kind_name(uint32_t kind)
{
	return kind >= KDSM_LOCK_DMCS && kind <= KDSM_LOCK_RMA_RW ?
	       lock_kinds[kind - KDSM_LOCK_DMCS] : "?";
}

bool cluster_absent(int error)
{
	return error == -ENOENT || error == -ENXIO || error == -ENODEV;
}

const char *cluster_sign(const char *root)
{
	static const char *const numbers[] = {
		"SLURM_JOB_NUM_NODES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
	};
	static const char config[] = "/etc/kdsm.conf";
	const char *value = getenv("KDSM_JOB");
	static char text[64];
	char path[PATH_MAX];
	size_t i;

	if (value && *value)
		return "KDSM_JOB is set";
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		value = getenv(numbers[i]);
		if (!value || atol(value) <= 1)
			continue;
		snprintf(text, sizeof(text), "%s is %.12s", numbers[i], value);
		return text;
	}
	snprintf(path, sizeof(path), "%s%s", root, config);
	if (access(path, F_OK))
		return NULL;
	snprintf(text, sizeof(text), "%s exists", config);
	return text;
}

void cluster_warn_alone(const char *doing)
{
	warnx("this machine has no %s, and nothing says that it belongs to a cluster: %s here alone, as with --local",
	      KDSM_DEVICE, doing);
}
