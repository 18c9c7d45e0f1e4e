// SPDX-License-Identifier: GPL-2.0
/* Histograms of times, see histogram.h. */
#include "histogram.h"

#define STEP_BITS	6	/* 2^6 is HISTOGRAM_STEPS */

/* Times below HISTOGRAM_STEPS ns have a class each. */
static unsigned int class_of(uint64_t ns)
{
	unsigned int power, i;

	if (ns < HISTOGRAM_STEPS)
		return ns;
	power = 63 - __builtin_clzll(ns) - STEP_BITS;
	i = (power + 1) * HISTOGRAM_STEPS + (ns >> power) % HISTOGRAM_STEPS;
	return i < HISTOGRAM_CLASSES ? i : HISTOGRAM_CLASSES - 1;
}

/* The middle of a class, in ns */
static double middle_of(unsigned int i)
{
	unsigned int power = i / HISTOGRAM_STEPS;
	uint64_t first;

	if (!power)
		return i;
	first = (uint64_t)(HISTOGRAM_STEPS + i % HISTOGRAM_STEPS) << (power - 1);
	return first + ((1ULL << (power - 1)) - 1) / 2.0;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->classes[class_of(ns)]++;
	if (ns > histogram->longest)
		histogram->longest = ns;
}

void histogram_add_all(struct histogram *sum, const struct histogram *histogram)
{
	unsigned int i;

	sum->count += histogram->count;
	for (i = 0; i < HISTOGRAM_CLASSES; i++)
		sum->classes[i] += histogram->classes[i];
	if (histogram->longest > sum->longest)
		sum->longest = histogram->longest;
}

double histogram_permille(const struct histogram *histogram, unsigned int part)
{
	uint64_t rank = (histogram->count * part + 999) / 1000, sum = 0;
	unsigned int i;
	double ns = histogram->longest;

	for (i = 0; i < HISTOGRAM_CLASSES && rank; i++) {
		sum += histogram->classes[i];
		if (sum >= rank)
			break;
	}
	if (rank && i < HISTOGRAM_CLASSES && middle_of(i) < ns)
		ns = middle_of(i);
	return ns / 1000;
}
