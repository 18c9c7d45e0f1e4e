/* SPDX-License-Identifier: GPL-2.0 */
/* Pseudo-random numbers, which are the same in every run */
#ifndef PROGRAMS_RANDOM_H
#define PROGRAMS_RANDOM_H

#include <stdint.h>

/*
 * The generator of the NAS Parallel Benchmarks (Bailey et al., "The NAS parallel
 * benchmarks", RNR-94-007, 2.3): each step multiplies x by 5^13 modulo 2^46, and returns
 * x / 2^46. Arithmetic modulo 2^64 has the same low 46 bits, and a double holds all 46.
 */
#define LCG_FACTOR	1220703125ULL
#define LCG_MASK	((1ULL << 46) - 1)

static inline double lcg_next(uint64_t *x)
{
	*x = *x * LCG_FACTOR & LCG_MASK;
	return (double)*x / 0x1p46;
}

/* Return the state after this many more numbers. */
static inline uint64_t lcg_skip(uint64_t x, uint64_t numbers)
{
	uint64_t factor = LCG_FACTOR;

	for (; numbers; numbers >>= 1) {
		if (numbers & 1)
			x = x * factor & LCG_MASK;
		factor = factor * factor & LCG_MASK;
	}
	return x;
}

/* A well mixed function of x (splitmix64, after Steele, Lea, Flood 2014). */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

#endif /* PROGRAMS_RANDOM_H */
