// SPDX-License-Identifier: GPL-2.0
/* Histograms of kdsm-bench: percentiles against those of the sorted times, and sums */
#include <stdlib.h>
#include "unit.h"
#include "../../tools/kdsm-bench/histogram.h"

#define TIMES	20000

static uint64_t times[TIMES];

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

static void is_near(double us, uint64_t ns)
{
	assert_true(us * 1000 >= ns * 0.99 && us * 1000 <= ns * 1.01);
}

/* Times from 1 ns to 18 minutes, with as many in each power of two */
static void test_percentiles(void **state)
{
	static const unsigned int parts[] = { 1, 10, 500, 900, 990, 999, 1000 };
	static struct histogram all, half[2];
	unsigned int i;

	(void)state;
	srand(1);
	for (i = 0; i < TIMES; i++) {
		times[i] = 1 + ((uint64_t)rand() << 9 >> rand() % 40);
		histogram_add(&half[i % 2], times[i]);
	}
	histogram_add_all(&all, &half[0]);
	histogram_add_all(&all, &half[1]);
	qsort(times, TIMES, sizeof(*times), compare);
	assert_int_equal(all.count, TIMES);
	assert_int_equal(all.longest, times[TIMES - 1]);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		is_near(histogram_permille(&all, parts[i]), times[TIMES / 1000 * parts[i] - 1]);
}

static void test_ends(void **state)
{
	static struct histogram none, one, longest;

	(void)state;
	assert_true(histogram_permille(&none, 500) == 0);
	histogram_add(&one, 0);
	assert_true(histogram_permille(&one, 500) == 0);
	histogram_add(&longest, UINT64_MAX);
	assert_true(longest.longest == UINT64_MAX);
	assert_true(histogram_permille(&longest, 500) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
