// SPDX-License-Identifier: GPL-2.0
/* Print the frequency of the time stamp counter in kHz, measured against CLOCK_MONOTONIC_RAW. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define SPAN	50000000	/* Length of the measurement, in ns */
#define TRIES	100		/* Readings at each end, of which the best counts */

/* Both clocks, read within width counts of each other */
struct reading {
	uint64_t tsc, width, ns;
};

static struct reading read_once(void)
{
	uint64_t begin = __rdtsc(), end;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	end = __rdtsc();
	return (struct reading){
		.tsc = begin + (end - begin) / 2,
		.width = end - begin,
		.ns = ts.tv_sec * 1000000000ull + ts.tv_nsec,
	};
}

/* A busy host interrupts some readings. The one with the smallest width was not interrupted. */
static struct reading read_clocks(void)
{
	struct reading best = read_once(), other;
	unsigned int i;

	for (i = 1; i < TRIES; i++) {
		other = read_once();
		if (other.width < best.width)
			best = other;
	}
	return best;
}

int main(void)
{
	const struct timespec span = { 0, SPAN };
	struct reading first = read_clocks(), last;

	nanosleep(&span, NULL);
	last = read_clocks();
	printf("%.0f\n", (last.tsc - first.tsc) * 1e6 / (last.ns - first.ns));
	return 0;
}
