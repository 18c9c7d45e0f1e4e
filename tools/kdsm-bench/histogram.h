/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histograms of times. A class is at most 1/64 of its times wide, so a percentile is off by 1 per
 * cent at most. Nodes add up their histograms, which they cannot do with percentiles.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/* Classes for each power of two */
#define HISTOGRAM_STEPS	64
/* Classes up to 2^46 ns, which are 19 hours; the last class has all longer times, too */
#define HISTOGRAM_CLASSES	(HISTOGRAM_STEPS * 41)

/* All zero is the empty histogram. */
struct histogram {
	uint64_t count;
	uint64_t longest;			/* in ns */
	uint32_t classes[HISTOGRAM_CLASSES];
};

void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_add_all(struct histogram *sum, const struct histogram *histogram);
/* The time in us that this part of the times, in permille, does not exceed; 0 without times */
double histogram_permille(const struct histogram *histogram, unsigned int part);

#endif /* HISTOGRAM_H */
