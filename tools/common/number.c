// SPDX-License-Identifier: GPL-2.0
/* Numbers, sizes, times and reals, see number.h. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

/* Longest part of a refused text that a reason repeats, in characters */
#define SHOWN	48

struct suffix {
	const char *name;
	uint64_t factor;
};

static const struct suffix size_suffixes[] = {
	{ "K", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 },
};

static const struct suffix time_suffixes[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
};

/* ---- reasons ---- */

struct kind {
	const char *name;
	const struct suffix *suffixes;
	unsigned int suffix_count;
	bool shows_suffix;	/* reasons show bounds with a suffix */
	const char *hint;	/* appended to the reason why a malformed text is refused */
};

static const struct kind number_kind = {
	"number", size_suffixes, COUNT(size_suffixes), false, "",
};

static const struct kind size_kind = {
	"size", size_suffixes, COUNT(size_suffixes), true, "; suffixes are K, M, G and T",
};

static const struct kind time_kind = {
	"time", time_suffixes, COUNT(time_suffixes), true, "; suffixes are ns, us, ms and s",
};

/* Write a bound in the shortest form that the parser takes. */
static const char *exact(const struct kind *kind, uint64_t value, char buffer[HUMAN_SIZE])
{
	const struct suffix *suffix = NULL;
	unsigned int i;

	for (i = 0; value && kind->shows_suffix && i < kind->suffix_count; i++)
		if (value % kind->suffixes[i].factor == 0)
			suffix = &kind->suffixes[i];
	snprintf(buffer, HUMAN_SIZE, "%" PRIu64 "%s", suffix ? value / suffix->factor : value,
		 suffix ? suffix->name : "");
	return buffer;
}

static int refuse(const struct kind *kind, const char *text, const struct range *range,
		  bool malformed, char *reason)
{
	char least[HUMAN_SIZE], most[HUMAN_SIZE], unit[HUMAN_SIZE], units[96] = "";
	size_t length = strlen(text);

	if (range->unit > 1 && length && isxdigit((unsigned char)text[length - 1]))
		snprintf(units, sizeof(units), "; without a suffix it counts units of %s",
			 exact(kind, range->unit, unit));
	snprintf(reason, REASON_SIZE, "'%.*s' is not a %s from %s to %s%s", SHOWN, text,
		 kind->name, exact(kind, range->least, least), exact(kind, range->most, most),
		 malformed ? kind->hint : units);
	return -1;
}

/* ---- parsing ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/*
 * Parse digits, and return their end, or NULL if there is no digit. *value is UINT64_MAX if the
 * number is larger.
 */
static const char *take_digits(const char *text, int base, uint64_t *value)
{
	const char *at = text;

	*value = 0;
	for (; digit_of(*at) < base; at++)
		if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)digit_of(*at), value))
			*value = UINT64_MAX;
	return at == text ? NULL : at;
}

/* Return the factor of a suffix; unit for an empty text; 0 if the text is no suffix. */
static uint64_t take_suffix(const char *text, const struct kind *kind, uint64_t unit)
{
	unsigned int i;

	if (!*text)
		return unit;
	for (i = 0; i < kind->suffix_count; i++)
		if (!strcmp(text, kind->suffixes[i].name))
			return kind->suffixes[i].factor;
	return 0;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static int whole_parse(const char *text, const struct kind *kind, const struct range *range,
		       uint64_t *value, char *reason)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t number, factor = 0;
	const char *end;

	end = take_digits(text + 2 * hexadecimal, hexadecimal ? 16 : 10, &number);
	if (end)
		factor = take_suffix(end, kind, range->unit);
	if (!factor)
		return refuse(kind, text, range, true, reason);
	number = multiply(number, factor);
	/* UINT64_MAX also stands for larger numbers, so no range includes it. */
	if (number < range->least || number > range->most || number == UINT64_MAX)
		return refuse(kind, text, range, false, reason);
	*value = number;
	return 0;
}

int number_parse(const char *text, const struct range *range, uint64_t *value,
		 char reason[REASON_SIZE])
{
	return whole_parse(text, &number_kind, range, value, reason);
}

int size_parse(const char *text, const struct range *range, uint64_t *bytes,
	       char reason[REASON_SIZE])
{
	return whole_parse(text, &size_kind, range, bytes, reason);
}

int block_parse(const char *text, uint64_t *bytes, char reason[REASON_SIZE])
{
	const struct range range = { 4096, 2 << 20, 1 };
	uint64_t size;

	if (size_parse(text, &range, &size, reason))
		return -1;
	if (size & (size - 1)) {
		snprintf(reason, REASON_SIZE, "'%.*s' is not a power of two", SHOWN, text);
		return -1;
	}
	*bytes = size;
	return 0;
}

/* Return the value of the digits behind the point, times factor, which is a power of ten. */
static uint64_t fraction(const char *digits, uint64_t factor)
{
	uint64_t value = 0;

	for (; factor >= 10 && digit_of(*digits) < 10; digits++) {
		factor /= 10;
		value += digit_of(*digits) * factor;
	}
	return value;
}

int time_parse(const char *text, const struct range *range, uint64_t *ns,
	       char reason[REASON_SIZE])
{
	const char *end, *point = NULL;
	uint64_t value, unused, factor = 0;

	end = take_digits(text, 10, &value);
	if (end && *end == '.') {
		point = end + 1;
		end = take_digits(point, 10, &unused);
	}
	if (end)
		factor = take_suffix(end, &time_kind, range->unit);
	if (!factor)
		return refuse(&time_kind, text, range, true, reason);
	value = multiply(value, factor);
	if (point && __builtin_add_overflow(value, fraction(point, factor), &value))
		value = UINT64_MAX;
	if (value < range->least || value > range->most || value == UINT64_MAX)
		return refuse(&time_kind, text, range, false, reason);
	*ns = value;
	return 0;
}

int real_parse(const char *text, double least, double most, double *value,
	       char reason[REASON_SIZE])
{
	double number = 0;
	char *end = NULL;

	/* strtod() would also take signs, exponents, hexadecimal, "inf" and "nan". */
	if (*text && !text[strspn(text, "0123456789.")])
		number = strtod(text, &end);
	if (!end || end == text || *end || !(number >= least && number <= most)) {
		snprintf(reason, REASON_SIZE, "'%.*s' is not a number from %g to %g", SHOWN, text,
			 least, most);
		return -1;
	}
	*value = number;
	return 0;
}

int list_parse(const char *text, unsigned int most,
	       int (*item)(void *values, unsigned int index, const char *text, char *reason),
	       void *values, char reason[REASON_SIZE])
{
	char *copy = strdup(text), *rest = copy, *part;
	unsigned int count = 0;
	int ret = 0;

	if (!copy) {
		snprintf(reason, REASON_SIZE, "out of memory");
		return -1;
	}
	while (!ret) {
		part = strsep(&rest, ",");
		if (!part)
			break;
		if (count == most) {
			snprintf(reason, REASON_SIZE, "'%.*s' has more than %u parts", SHOWN,
				 text, most);
			ret = -1;
		} else {
			ret = item(values, count++, part, reason);
		}
	}
	free(copy);
	return ret ? -1 : (int)count;
}

/* ---- for people ---- */

const char *human_bytes(uint64_t bytes, char *buffer)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(buffer, HUMAN_SIZE, "%u B", (unsigned int)bytes);
		return buffer;
	}
	for (value /= 1024; value >= 1024 && unit < 5; unit++)
		value /= 1024;
	snprintf(buffer, HUMAN_SIZE, "%.1f %s", value, units[unit]);
	return buffer;
}

const char *human_time(double ns, char *buffer)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int unit = 0;

	while (ns >= 999.5 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	snprintf(buffer, HUMAN_SIZE, "%.3g %s", ns, units[unit]);
	return buffer;
}
