/* SPDX-License-Identifier: GPL-2.0 */
/* Names of the counters of <kdsm/uapi_netlink.h>, as JSON and metrics have them */
#ifndef KDSMCTL_NAMES_H
#define KDSMCTL_NAMES_H

#include <stdbool.h>
#include <kdsm/uapi_netlink.h>

extern const char *const stat_names[KDSM_STAT_COUNT];
extern const char *const latency_names[KDSM_LATENCY_COUNT];

/* Counters of a coherent region: name, and words for people */
extern const struct coherence_name {
	const char *name, *words;
	bool is_current;	/* a current number of blocks; the others only grow */
} coherence_names[KDSM_COHERENCE_COUNT];

/* Connections refused, by reason: name, and KDSM_A_REFUSED_*. An entry without a name ends them. */
#define REFUSALS	8
extern const struct refusal {
	const char *name;
	int attr;
} refusals[REFUSALS + 1];

#endif /* KDSMCTL_NAMES_H */
