// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how fast the processor's time stamp counter counts, in kHz, as measured against
 * the clock that nobody adjusts.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define SPAN	50000000	/* ns */
#define TRIES	100

/* Both clocks at once, but for a span of so many counts. */
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

/* On a busy host this process is interrupted at times; the shortest was not. */
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
