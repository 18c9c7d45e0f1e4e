/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers, sizes, times and reals: one parser for the command lines of all tools and
 * programs, and the reverse for output that people read. cli.h maps options to these
 * functions. The functions here know no option and print nothing.
 */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdint.h>

#define SECOND		UINT64_C(1000000000)	/* in ns */

/* Size of a buffer for the reason why a parser refused a text, in bytes */
#define REASON_SIZE	256

/**
 * struct range - the values that an option or an argument takes
 * @least: smallest value
 * @most: largest value, below UINT64_MAX
 * @unit: factor of a text without a suffix; 0: a suffix is required
 *
 * Values are plain numbers, sizes in bytes, or times in ns.
 */
struct range {
	uint64_t least, most, unit;
};

/*
 * Each parser takes the whole text, stores its value and returns 0; or it refuses the text and
 * returns -1 with a reason that names the text and the range. Parsers refuse signs and spaces.
 */

/* Decimal, or hexadecimal with 0x, and a suffix: K, M, G, T are powers of 1024. */
int number_parse(const char *text, const struct range *range, uint64_t *value,
		 char reason[REASON_SIZE]);
/* As number_parse(), but the reason says "size", and shows the bounds with suffixes. */
int size_parse(const char *text, const struct range *range, uint64_t *bytes,
	       char reason[REASON_SIZE]);
/* Size of the blocks of a coherent region: a power of two from 4K to 2M */
int block_parse(const char *text, uint64_t *bytes, char reason[REASON_SIZE]);
/* A decimal fraction and a suffix: ns, us, ms or s. The parser drops digits below 1 ns. */
int time_parse(const char *text, const struct range *range, uint64_t *ns,
	       char reason[REASON_SIZE]);
/* A decimal fraction. */
int real_parse(const char *text, double least, double most, double *value,
	       char reason[REASON_SIZE]);

/*
 * Call item() with each part of a list that commas separate, and with its index, from 0 on.
 * Returns the number of parts, or -1 with a reason if there are more than most, or if item()
 * returned -1.
 */
int list_parse(const char *text, unsigned int most,
	       int (*item)(void *values, unsigned int index, const char *text, char *reason),
	       void *values, char reason[REASON_SIZE]);

/* Store a number of bytes as "64.0 MiB" in buffer, of HUMAN_SIZE bytes. Returns buffer. */
#define HUMAN_SIZE	32
const char *human_bytes(uint64_t bytes, char *buffer);
/* Store a time as "12.3 us", with three digits, in buffer of HUMAN_SIZE bytes. Returns buffer. */
const char *human_time(double ns, char *buffer);

#endif /* COMMON_NUMBER_H */
