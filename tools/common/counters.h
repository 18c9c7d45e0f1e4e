/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of the module on this node. */
#ifndef COMMON_COUNTERS_H
#define COMMON_COUNTERS_H

#include <stdint.h>
#include <kdsm/uapi_netlink.h>

struct counters {
	uint64_t operations[KDSM_STAT_COUNT];		/* on all other nodes together */
	uint64_t coherence[KDSM_COHERENCE_COUNT];	/* of one coherent region */
};

/*
 * Read the current counters; those of coherence are of the region with this name; NULL: they are
 * 0. Returns 0, or -1 after a message on stderr.
 */
int counters_read(const char *region, struct counters *counters);
/* Add the differences of two readings to sum. */
void counters_add(struct counters *sum, const struct counters *before,
		  const struct counters *after);

#endif /* COMMON_COUNTERS_H */
