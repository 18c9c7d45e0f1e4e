// SPDX-License-Identifier: GPL-2.0
/*
 * The parsers of numbers, sizes, times and reals that all tools share, and their output for
 * people
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/number.h"

#define K	UINT64_C(1024)
#define SECOND	UINT64_C(1000000000)

#define RANGE(l, m)	((struct range){ (l), (m), 1 })

typedef int (*parser)(const char *text, const struct range *range, uint64_t *value, char *reason);

static const struct range any = { 0, UINT64_MAX, 1 };
static char reason[REASON_SIZE];

static void takes(parser parse, const char *text, struct range range, uint64_t expected)
{
	uint64_t value = ~expected;

	if (parse(text, &range, &value, reason))
		fail_msg("refused: %s", reason);
	if (value != expected)
		fail_msg("'%s' is %llu", text, (unsigned long long)value);
}

static void refuses(parser parse, const char *text, struct range range, const char *expected)
{
	uint64_t value = 4711;

	if (!parse(text, &range, &value, reason))
		fail_msg("'%s' was taken as %llu", text, (unsigned long long)value);
	assert_int_equal(value, 4711);
	if (expected)
		assert_string_equal(reason, expected);
}

static void numbers(void **state)
{
	(void)state;
	takes(number_parse, "0", any, 0);
	takes(number_parse, "007", any, 7);
	takes(number_parse, "18446744073709551614", any, UINT64_MAX - 1);
	takes(number_parse, "0xff", any, 255);
	takes(number_parse, "0XFFFFFFFFFFFFFFFE", any, UINT64_MAX - 1);
	takes(number_parse, "0x10K", any, 16 * K);
	takes(number_parse, "1K", any, K);
	takes(number_parse, "3M", any, 3 * K * K);
	takes(number_parse, "5G", any, 5 * K * K * K);
	takes(number_parse, "7T", any, 7 * K * K * K * K);
	takes(number_parse, "16777215T", any, 16777215 * K * K * K * K);
	takes(number_parse, "1", RANGE(1, 1), 1);
}

static void no_numbers(void **state)
{
	static const char *const texts[] = {
		"", " ", "x", "0x", "0xg", "-1", "+1", " 1", "1 ", "1k", "1KB", "1KiB", "1.5", "1,2",
		"K", "1e3", "1P", "--1", "18446744073709551615", "18446744073709551616",
		"99999999999999999999999999", "0x1ffffffffffffffffff", "16777216T",
		"18014398509481984K", "9223372036854775808G",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		refuses(number_parse, texts[i], any, NULL);
		refuses(size_parse, texts[i], any, NULL);
	}
	refuses(number_parse, "0", RANGE(1, 256), "'0' is not a number from 1 to 256");
	refuses(number_parse, "257", RANGE(1, 256),
		"'257' is not a number from 1 to 256");
	refuses(number_parse, "1K", RANGE(1, 256), "'1K' is not a number from 1 to 256");
	refuses(number_parse, "9", RANGE(16, 4096),
		"'9' is not a number from 16 to 4096");
}

static void sizes(void **state)
{
	(void)state;
	takes(size_parse, "4096", RANGE(4096, 2 * K * K), 4096);
	takes(size_parse, "2M", RANGE(4096, 2 * K * K), 2 * K * K);
	/* A number without a suffix counts units, a number with a suffix does not. */
	takes(size_parse, "3", (struct range){ 1, 8 * K * K, K * K }, 3 * K * K);
	takes(size_parse, "3K", (struct range){ 1, 8 * K * K, K * K }, 3 * K);
	refuses(size_parse, "0", (struct range){ 0, K, 0 },
		"'0' is not a size from 0 to 1K; suffixes are K, M, G and T");
	refuses(size_parse, "9", (struct range){ K, 8 * K * K, K * K },
		"'9' is not a size from 1K to 8M; without a suffix it counts units of 1M");
	refuses(size_parse, "3G", RANGE(1, 2 * K * K), "'3G' is not a size from 1 to 2M");
	refuses(size_parse, "3Q", RANGE(1000, 1025 * K),
		"'3Q' is not a size from 1000 to 1025K; suffixes are K, M, G and T");
}

static void blocks(void **state)
{
	uint64_t size = 0;

	(void)state;
	assert_int_equal(block_parse("32K", &size, reason), 0);
	assert_int_equal(size, 32 * K);
	assert_int_equal(block_parse("5000", &size, reason), -1);
	assert_string_equal(reason, "'5000' is not a power of two");
	assert_int_equal(block_parse("1024", &size, reason), -1);
	assert_string_equal(reason, "'1024' is not a size from 4K to 2M");
	assert_int_equal(block_parse("4M", &size, reason), -1);
	assert_int_equal(size, 32 * K);
}

static void times(void **state)
{
	const struct range seconds = { 0, 1000 * SECOND, SECOND }, bare = { 0, SECOND, 0 };

	(void)state;
	takes(time_parse, "0", seconds, 0);
	takes(time_parse, "30", seconds, 30 * SECOND);
	takes(time_parse, "0.25", seconds, SECOND / 4);
	takes(time_parse, "1.5s", seconds, SECOND + SECOND / 2);
	takes(time_parse, "200us", seconds, 200000);
	takes(time_parse, "12.5us", seconds, 12500);
	takes(time_parse, "1.999999999s", seconds, 2 * SECOND - 1);
	takes(time_parse, "1.9999999999999999s", seconds, 2 * SECOND - 1);
	takes(time_parse, "3.9ns", seconds, 3);
	takes(time_parse, "1000000ms", seconds, 1000 * SECOND);
	takes(time_parse, "100us", bare, 100000);
	takes(time_parse, "7", (struct range){ 0, SECOND, 1000 }, 7000);
	refuses(time_parse, "7", bare,
		"'7' is not a time from 0 to 1s; suffixes are ns, us, ms and s");
	refuses(time_parse, "1.1s", bare, "'1.1s' is not a time from 0 to 1s");
	refuses(time_parse, "1ns", (struct range){ SECOND / 1000, 86400 * SECOND, SECOND },
		"'1ns' is not a time from 1ms to 86400s");
}

static void no_times(void **state)
{
	static const char *const texts[] = {
		"", "s", "-1s", "1 s", "1h", "1m", "1.s", ".5s", "1..5s", "1.5.5s", "0x1s", "1e3s", "nan",
		"inf", "infs", "us1", "1K", "18446744073709551616ns", "18446744073.709551616s",
		"99999999999999999999s",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuses(time_parse, texts[i], (struct range){ 0, UINT64_MAX, SECOND }, NULL);
}

static void reals(void **state)
{
	static const char *const texts[] = {
		"", "x", "-1", "+1", "1e1", "0x1", "nan", "inf", "1.5.5", ".", "1%", " 1", "100.1",
	};
	double value;
	unsigned int i;

	(void)state;
	assert_int_equal(real_parse("0.2", 0, 100, &value, reason), 0);
	assert_true(value == 0.2);
	assert_int_equal(real_parse("100", 0, 100, &value, reason), 0);
	assert_true(value == 100);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(real_parse(texts[i], 0, 100, &value, reason), -1);
	assert_string_equal(reason, "'100.1' is not a number from 0 to 100");
	assert_true(value == 100);
}

static int add(void *values, unsigned int index, const char *text, char *why)
{
	const struct range range = { 1, 10, 1 };

	return number_parse(text, &range, &((uint64_t *)values)[index], why);
}

static void lists(void **state)
{
	uint64_t values[3];

	(void)state;
	assert_int_equal(list_parse("1", 3, add, values, reason), 1);
	assert_int_equal(list_parse("4,5,6", 3, add, values, reason), 3);
	assert_int_equal(values[0], 4);
	assert_int_equal(values[2], 6);
	assert_int_equal(list_parse("1,2,3,4", 3, add, values, reason), -1);
	assert_string_equal(reason, "'1,2,3,4' has more than 3 parts");
	assert_int_equal(list_parse("1,,3", 3, add, values, reason), -1);
	assert_string_equal(reason, "'' is not a number from 1 to 10");
	assert_int_equal(list_parse("", 3, add, values, reason), -1);
	assert_int_equal(list_parse("1,11", 3, add, values, reason), -1);
}

/* A reason has room for the bounds, whatever text was given. */
static void long_texts(void **state)
{
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refuses(time_parse, text, any, NULL);
	assert_non_null(strstr(reason, "x' is not a time from 0 to "));
	assert_int_equal(list_parse(text, 0, add, NULL, reason), -1);
	assert_non_null(strstr(reason, "x' has more than 0 parts"));
}

static void shown(void **state)
{
	char buffer[HUMAN_SIZE];

	(void)state;
	assert_string_equal(human_bytes(0, buffer), "0 B");
	assert_string_equal(human_bytes(1023, buffer), "1023 B");
	assert_string_equal(human_bytes(64 * K * K, buffer), "64.0 MiB");
	assert_string_equal(human_bytes(UINT64_MAX, buffer), "16.0 EiB");
	assert_string_equal(human_time(0, buffer), "0 ns");
	assert_string_equal(human_time(12345, buffer), "12.3 us");
	assert_string_equal(human_time(999499, buffer), "999 us");
	assert_string_equal(human_time(999501, buffer), "1 ms");
	assert_string_equal(human_time(1e12, buffer), "1e+03 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(blocks),
		cmocka_unit_test(times),
		cmocka_unit_test(no_times),
		cmocka_unit_test(reals),
		cmocka_unit_test(lists),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(shown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
