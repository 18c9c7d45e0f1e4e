/* SPDX-License-Identifier: GPL-2.0 */
/* Test results as TAP lines on standard output, with the plan as the last line. */
#ifndef KDSM_TESTS_TAP_H
#define KDSM_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weak: all files of a program share them. */
__attribute__((weak)) int tap_count, tap_failures;

static inline bool __attribute__((format(printf, 2, 3)))
tap_ok(bool good, const char *format, ...)
{
	va_list args;

	printf("%s %d - ", good ? "ok" : "not ok", ++tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	tap_failures += !good;
	return good;
}

static inline const char *tap_error(int result)
{
	const char *name = result < 0 ? strerrorname_np(-result) : NULL;

	return name ? name : result ? "another value" : "success";
}

/* got and expected are 0 or a negative errno. */
static inline bool __attribute__((format(printf, 3, 4)))
tap_result(int got, int expected, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (tap_ok(got == expected, "%s: %s", what, tap_error(expected)))
		return true;
	printf("# got %s (%d)\n", tap_error(got), got);
	return false;
}

/* Like tap_result(), for a call whose contract permits two results. */
static inline bool __attribute__((format(printf, 4, 5)))
tap_either(int got, int one, int other, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (tap_ok(got == one || got == other, "%s: %s or %s", what,
		   tap_error(one), tap_error(other)))
		return true;
	printf("# got %s (%d)\n", tap_error(got), got);
	return false;
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* End the program, because no further test makes sense. */
static inline void __attribute__((noreturn, format(printf, 1, 2)))
tap_bail(const char *format, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	exit(EXIT_FAILURE);
}

/* For a call without which no further test makes sense; error is 0 or a negative errno. */
static inline void must(int error, const char *what)
{
	if (error)
		tap_bail("%s: %s", what, strerror(-error));
}

#endif /* KDSM_TESTS_TAP_H */
