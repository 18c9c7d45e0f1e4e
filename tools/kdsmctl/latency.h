/* SPDX-License-Identifier: GPL-2.0 */
/* Histograms of durations, with the classes of KDSM_A_LATENCY_COUNTS */
#ifndef KDSMCTL_LATENCY_H
#define KDSMCTL_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/module.h"

struct latency {
	uint64_t sum;		/* in ns */
	uint64_t counts[KDSM_LATENCY_CLASSES];
};

uint64_t latency_count(const struct latency *latency);
/* Mean in ns; 0 if there are no durations */
double latency_mean(const struct latency *latency);
/*
 * The duration in ns that this share of the durations, above 0 and at most 1, does not exceed; 0 if
 * there are none. The estimate spreads the durations of a class evenly over the class.
 */
double latency_quantile(const struct latency *latency, double share);
/* Add the durations of new that old, an earlier reading, does not have; all if new has fewer. */
void latency_add(struct latency *sum, const struct latency *old, const struct latency *new);

/*
 * Read the durations of a node, of KDSM_LATENCY_COUNT kinds, within timeout ms. node: UINT32_MAX is
 * this one. Returns 0 or a negative errno.
 */
int latencies_read(struct module *module, uint32_t node, uint32_t timeout,
		   struct latency *latencies);
/* Print "kdsmctl stats --latency", of this node. Returns 0 or a negative errno. */
int latencies_print(struct module *module, bool json);

#endif /* KDSMCTL_LATENCY_H */
