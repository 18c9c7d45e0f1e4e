/* SPDX-License-Identifier: GPL-2.0 */
/* What the module has counted on this node. */
#ifndef PROGRAMS_COUNTERS_H
#define PROGRAMS_COUNTERS_H

#include <stdint.h>
#include <linux/kdsm_netlink.h>

struct counters {
	uint64_t operations[KDSM_STAT_COUNT];		/* to all peers */
	uint64_t coherence[KDSM_COHERENCE_COUNT];	/* of the region */
};

/* -EIO, after a message on stderr. */
int counters_read(const char *region, struct counters *counters);

#endif /* PROGRAMS_COUNTERS_H */
