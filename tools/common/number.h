/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers, sizes, times and reals: one parser for the command lines of all tools and
 * programs, and the reverse for people who read their output. options.h maps options to
 * these functions; nothing here knows an option, and nothing here prints.
 */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdint.h>

#define SECOND		UINT64_C(1000000000)	/* in ns */

/* Bytes of a buffer for the reason why a text was refused */
#define REASON_SIZE	256

/**
 * struct range - the values that an option or an argument takes
 * @least: smallest value
 * @most: largest value
 * @unit: factor of a text without a suffix; 0: a suffix is required
 *
 * Values are plain numbers, bytes of a size, or nanoseconds of a time.
 */
struct range {
	uint64_t least, most, unit;
};

/*
 * All parsers take the whole text or refuse it: they return 0, or -1 with a reason that names
 * the text and the range. Signs and spaces are refused.
 */

/* Decimal, or hexadecimal with 0x, and a suffix: K, M, G, T are powers of 1024. */
int number_parse(const char *text, const struct range *range, uint64_t *value,
		 char reason[REASON_SIZE]);
/* The same; the reason says "size", and the bounds are shown with suffixes. */
int size_parse(const char *text, const struct range *range, uint64_t *bytes,
	       char reason[REASON_SIZE]);
/* Size of the blocks of a coherent region: a power of two from 4K to 2M */
int block_parse(const char *text, uint64_t *bytes, char reason[REASON_SIZE]);
/* A decimal fraction and a suffix: ns, us, ms or s. Digits below a nanosecond are dropped. */
int time_parse(const char *text, const struct range *range, uint64_t *ns,
	       char reason[REASON_SIZE]);
/* A decimal fraction. */
int real_parse(const char *text, double least, double most, double *value,
	       char reason[REASON_SIZE]);

/*
 * Calls item() with each part of a list that commas separate, and its index from 0 on. Returns
 * the number of parts, or -1 with a reason: there are more than most, or item() returned -1.
 */
int list_parse(const char *text, unsigned int most,
	       int (*item)(void *values, unsigned int index, const char *text, char *reason),
	       void *values, char reason[REASON_SIZE]);

/* "64.0 MiB"; buffer of HUMAN_SIZE bytes. */
#define HUMAN_SIZE	32
const char *human_bytes(uint64_t bytes, char *buffer);
/* "12.3 us", three digits; buffer of HUMAN_SIZE bytes. */
const char *human_time(double ns, char *buffer);

#endif /* COMMON_NUMBER_H */
