// SPDX-License-Identifier: GPL-2.0
/*
 * Metrics of kdsmctl: quantiles and differences of histograms, and OpenMetrics text, which the
 * parser of Python's prometheus_client reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "unit.h"
#include "../../tools/kdsmctl/metrics.h"

static void add(struct latency *latency, uint64_t ns)
{
	latency->sum += ns;
	latency->counts[63 - __builtin_clzll(ns | 1)]++;
}

static void test_quantiles(void **state)
{
	static const double shares[] = { 0.01, 0.5, 0.9, 0.99, 1 };
	struct latency latency = { 0 }, none = { 0 };
	double before = 0;

	(void)state;
	assert_true(latency_quantile(&none, 0.5) == 0);
	assert_true(latency_mean(&none) == 0);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		add(&latency, ns);
	assert_int_equal(latency_count(&latency), 100000);
	assert_true(latency_mean(&latency) == 50000.5);
	for (unsigned int i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double found = latency_quantile(&latency, shares[i]), exact = 100000 * shares[i];

		/* The last class ends at 131072; its durations count as if spread over it all */
		assert_true(found >= exact * 0.99 && found <= exact * 1.32);
		assert_true(found > before);
		before = found;
	}
}

static void test_one_class(void **state)
{
	struct latency latency = { 0 };

	(void)state;
	add(&latency, 1024);
	add(&latency, 2047);
	assert_true(latency_quantile(&latency, 0.5) == 1536);
	assert_true(latency_quantile(&latency, 1) == 2048);
	latency.counts[KDSM_LATENCY_CLASSES - 1] = 1000;
	assert_true(latency_quantile(&latency, 0.99) > (1ULL << (KDSM_LATENCY_CLASSES - 1)));
}

static void test_difference(void **state)
{
	struct latency old = { 0 }, new, sum = { 0 };

	(void)state;
	add(&old, 100);
	new = old;
	add(&new, 300);
	latency_add(&sum, &old, &new);
	assert_int_equal(latency_count(&sum), 1);
	assert_int_equal(sum.sum, 300);
	/* The node came up again, and has counted one duration since */
	memset(&new, 0, sizeof(new));
	latency_add(&sum, &old, &new);
	assert_int_equal(latency_count(&sum), 1);
}

/* Names as hostile as the module allows, numbers at their limits, and no regions or locks */
static void fill(struct metrics *metrics)
{
	static struct metrics_peer peers[] = { { 1, true, UINT64_MAX, 0 }, { 1023, false, 0, 7 } };
	static struct metrics_region regions[] = {
		{ .name = "a\"\\{},=#", .id = 1, .size = 1 << 20, .opens = 3 },
		{ .name = "grid", .id = 65535, .coherent = true, .memory = UINT64_MAX },
	};
	static struct metrics_lock locks[] = {
		{ .id = 1, .number = 4095, .waits = 2, .waited = 1500000000, .handed = 1 },
		{ .id = 2, .number = 0, .name = "\\", .waits = UINT64_MAX, .waited = UINT64_MAX },
	};

	metrics->up = true;
	strcpy(metrics->cluster, "\"\\");
	strcpy(metrics->device, "rxe0");
	metrics->nodes = 3;
	metrics->stats[KDSM_STAT_GET] = 41;
	for (int kind = 0; kind < KDSM_LATENCY_COUNT; kind++)
		for (int i = 0; i < KDSM_LATENCY_CLASSES; i++)
			metrics->latencies[kind].counts[i] = kind * i;
	metrics->latencies[0].sum = 1;
	metrics->peers = peers;
	metrics->peer_count = 2;
	metrics->regions = regions;
	metrics->region_count = 2;
	metrics->locks = locks;
	metrics->lock_count = 2;
}

static void parses(const struct metrics *metrics, const char *sample)
{
	char path[] = "/tmp/metrics-XXXXXX", command[256], line[128];
	int file = mkstemp(path);
	bool found = false;
	FILE *out, *said;

	assert_true(file >= 0);
	out = fdopen(file, "w");
	metrics_write(metrics, out);
	assert_int_equal(fclose(out), 0);
	snprintf(command, sizeof(command), "tests/openmetrics %s", path);
	said = popen(command, "r");
	assert_non_null(said);
	while (fgets(line, sizeof(line), said))
		found |= !strcmp(line, sample);
	assert_int_equal(pclose(said), 0);
	unlink(path);
	assert_true(found);
}

static void test_text(void **state)
{
	struct metrics metrics = { 0 };

	(void)state;
	if (system("/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null"))
		skip();	/* tests/packages installs it */
	parses(&metrics, "kdsm_up 0\n");
	fill(&metrics);
	parses(&metrics, "kdsm_nodes 3\n");
	metrics.peer_count = 0;
	metrics.region_count = 0;
	metrics.lock_count = 0;
	parses(&metrics, "kdsm_up 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_one_class),
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
