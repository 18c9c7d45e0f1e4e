/* SPDX-License-Identifier: GPL-2.0 */
/* The clock by which tests measure time. */
#ifndef KDSM_TESTS_CLOCK_H
#define KDSM_TESTS_CLOCK_H

#include <stdlib.h>
#include <time.h>

/* Seconds of CLOCK_MONOTONIC */
static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* By how much limits of time are longer than elsewhere: kernels that look for bugs are slow. */
static inline double slowness(void)
{
	const char *value = getenv("KDSM_SLOWNESS");

	return value ? atof(value) : 1;
}

#endif /* KDSM_TESTS_CLOCK_H */
