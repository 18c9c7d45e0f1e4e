/* SPDX-License-Identifier: GPL-2.0 */
/* Pseudo-random numbers that repeat with their seed, and edge cases among them. */
#ifndef KDSM_TESTS_RANDOM_H
#define KDSM_TESTS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

/* splitmix64: short, and good for any seed. */
static inline uint64_t random_64(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline uint64_t random_below(struct random *random, uint64_t limit)
{
	return random_64(random) % limit;
}

/* True with probability 1 / times. */
static inline bool random_one_in(struct random *random, unsigned int times)
{
	return !random_below(random, times);
}

/* A value at or near a limit of a type, page or address space; sometimes any value. */
static inline uint64_t random_nasty(struct random *random)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 4, 7, 8, 63, 64, 255, 256, 4095, 4096, 4097, 65535,
		65536, 1 << 20, 2 << 20, (2 << 20) + 1, INT32_MAX, 1ULL << 31,
		UINT32_MAX, 1ULL << 32, (1ULL << 47) - 4096, 1ULL << 47,
		1ULL << 62, INT64_MAX, 1ULL << 63, -4096ULL, -8ULL, -1ULL,
		0xffff888000000000ULL, 0xffffffff81000000ULL,
	};
	uint64_t value = edges[random_below(random, sizeof(edges) / sizeof(edges[0]))];

	switch (random_below(random, 8)) {
	case 0:
		return random_64(random);
	case 1:
		return value + 1;
	case 2:
		return value - 1;
	case 3:
		return -value;
	default:
		return value;
	}
}

/* Overwrite some of the bytes, in words of 1, 2, 4 or 8 bytes. */
static inline void random_mangle(struct random *random, void *bytes, size_t length)
{
	unsigned char *at = bytes;

	do {
		size_t width = (size_t)1 << random_below(random, 4);
		uint64_t value = random_nasty(random);
		size_t place;

		if (length < width)
			continue;
		place = random_below(random, length / width) * width;
		for (size_t i = 0; i < width; i++)
			at[place + i] = value >> 8 * i;
	} while (random_one_in(random, 2));
}

#endif /* KDSM_TESTS_RANDOM_H */
