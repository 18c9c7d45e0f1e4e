// SPDX-License-Identifier: GPL-2.0
/* Tasks on one node: known values, types, all orders of calls, deep and full deques */
#include "tasks.h"

/* ---- known values ---- */

static void test_known(void **state)
{
	static const uint32_t workers[] = { 1, 2, 3, 8 };
	unsigned int i, steal;
	struct job job;

	(void)state;
	assert_int_equal(plain_fib(20), 6765);
	for (i = 0; i < 4; i++)
		for (steal = KDSM_STEAL_ONE; steal <= KDSM_STEAL_HALF; steal++) {
			job_open(&job, workers[i], DEQUE, steal);
			known_values(job.tasks, 4);
			job_close(&job);
		}
}

/* The number of nodes that the authors of UTS publish */
static void test_uts(void **state)
{
	uint64_t result = 0;
	struct job job;

	(void)state;
	job_open(&job, 2, 1024, KDSM_STEAL_HALF);
	assert_int_equal(KDSM_RUN(job.tasks, &result, uts,
				  uts_root(UTS_T1_SEED, UTS_T1_DEPTH)), 0);
	assert_int_equal(result, UTS_T1_NODES);
	job_close(&job);
}

static void test_matmul(void **state)
{
	enum { N = 64 };
	static double a[N * N], b[N * N], c[N * N], d[N * N];
	struct matrices m = { a, b, c, N, N };
	struct job job;
	unsigned int i;

	(void)state;
	for (i = 0; i < N * N; i++) {
		a[i] = i % 7;
		b[i] = i % 11;
		c[i] = i % 3;
		d[i] = c[i];
	}
	job_open(&job, 3, DEQUE, KDSM_STEAL_ONE);
	assert_int_equal(KDSM_RUN(job.tasks, NULL, matmul, m), 0);
	job_close(&job);
	m.c = d;
	plain_matmul(m);
	assert_memory_equal(c, d, sizeof(c));
}

/* ---- types ---- */

struct wide {
	uint64_t words[10];
};

KDSM_TASK(struct wide, mirror, struct wide, wide)
{
	struct wide mirrored;
	unsigned int i;

	for (i = 0; i < 10; i++)
		mirrored.words[i] = ~wide.words[9 - i];
	return mirrored;
}

KDSM_TASK(long double, eight, uint8_t, a, int16_t, b, float, c, int64_t, d, double, e, char, f,
	  long double, g, const char *, h)
{
	return (long double)a + b + c + d + e + f + g + h[0];
}

static unsigned int called;

KDSM_VOID_TASK(nothing)
{
	__atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

KDSM_TASK(unsigned int, answer)
{
	return 42;
}

/* Every argument and result arrives, whichever worker runs the task. */
KDSM_TASK(int, all_types, unsigned int, rounds)
{
	struct wide wide, mirrored;
	int wrong = 0;
	unsigned int i;

	for (i = 0; i < 10; i++)
		wide.words[i] = rounds * 1000003ull + i;
	KDSM_SPAWN(mirror, wide);
	KDSM_SPAWN(eight, 1, -2, 3.5f, 1ll << 40, 0.25, 'a', 2.0L, "x");
	KDSM_SPAWN(nothing);
	KDSM_SPAWN(answer);
	if (rounds)
		wrong += KDSM_CALL(all_types, rounds - 1);
	wrong += KDSM_SYNC(answer) != 42;
	KDSM_SYNC(nothing);
	wrong += KDSM_SYNC(eight) != 1 - 2 + 3.5L + (1ll << 40) + 0.25L + 'a' + 2 + 'x';
	mirrored = KDSM_SYNC(mirror);
	for (i = 0; i < 10; i++)
		wrong += mirrored.words[i] != ~wide.words[9 - i];
	return wrong;
}

static void test_types(void **state)
{
	static const uint32_t workers[] = { 1, 4 };
	unsigned int i, steal;
	struct job job;
	int wrong = -1;

	(void)state;
	for (i = 0; i < 2; i++)
		for (steal = KDSM_STEAL_ONE; steal <= KDSM_STEAL_HALF; steal++) {
			job_open(&job, workers[i], 4096, steal);
			called = 0;
			assert_int_equal(KDSM_RUN(job.tasks, &wrong, all_types, 900), 0);
			assert_int_equal(wrong, 0);
			assert_int_equal(called, 901);
			job_close(&job);
		}
}

/* ---- orders and depths ---- */

/* Spawn, call and sync in an order that the seed determines. Returns the number of tasks. */
KDSM_TASK(uint64_t, any_order, uint32_t, seed, unsigned int, depth)
{
	unsigned int open = 0, steps, i;
	uint64_t sum = 1;

	if (!depth)
		return 1;
	steps = seed % 13;
	for (i = 0; i < steps; i++) {
		seed = seed * 1664525 + 1013904223;
		switch (seed >> 29) {
		case 0:
		case 1:
		case 2:
			KDSM_SPAWN(any_order, seed, depth - 1);
			open++;
			break;
		case 3:
		case 4:
			sum += KDSM_CALL(any_order, seed, depth - 1);
			break;
		case 5:
			KDSM_POLL();
			break;
		default:
			if (open) {
				sum += KDSM_SYNC(any_order);
				open--;
			}
		}
	}
	while (open--)
		sum += KDSM_SYNC(any_order);
	return sum;
}

static uint64_t plain_order(uint32_t seed, unsigned int depth)
{
	unsigned int steps, i;
	uint64_t sum = 1;

	if (!depth)
		return 1;
	steps = seed % 13;
	for (i = 0; i < steps; i++) {
		seed = seed * 1664525 + 1013904223;
		if (seed >> 29 <= 4)
			sum += plain_order(seed, depth - 1);
	}
	return sum;
}

static void test_orders(void **state)
{
	static const uint32_t deques[] = { 2, 3, 7, 4096 };
	uint64_t result = 0;
	unsigned int seed, i;
	struct job job;

	(void)state;
	for (i = 0; i < 4; i++) {
		job_open(&job, 4, deques[i], i % 2);
		for (seed = 1; seed <= 100; seed++) {
			assert_int_equal(KDSM_RUN(job.tasks, &result, any_order,
						  seed * 2654435761u, 7), 0);
			assert_int_equal(result, plain_order(seed * 2654435761u, 7));
		}
		job_close(&job);
	}
}

/* Spawn count tasks before the first sync. */
KDSM_TASK(uint64_t, row, uint64_t, count)
{
	uint64_t i, sum = 0;

	for (i = 0; i < count; i++)
		KDSM_SPAWN(fib, i % 10);
	for (i = 0; i < count; i++)
		sum += KDSM_SYNC(fib);
	return sum;
}

static void run_row(uint32_t workers, uint32_t deque, uint64_t count, uint64_t *full)
{
	struct kdsm_tasks_counts counts = { .argsz = sizeof(counts) };
	uint64_t result = 0;
	struct job job;

	job_open(&job, workers, deque, KDSM_STEAL_HALF);
	assert_int_equal(KDSM_RUN(job.tasks, &result, row, count), 0);
	assert_int_equal(result, count / 10 * 88);
	kdsm_tasks_counts(job.tasks, &counts);
	*full = counts.full;
	job_close(&job);
}

static void test_deep(void **state)
{
	uint64_t full;

	(void)state;
	run_row(3, 1 << 16, 65530, &full);
	assert_int_equal(full, 0);
}

static void test_full(void **state)
{
	uint64_t full;

	(void)state;
	/*
	 * One worker has no thief: the tasks that fit into the deque stay there until the
	 * syncs.
	 */
	run_row(1, 100, 20000, &full);
	assert_true(full >= 19900);
	run_row(4, 100, 20000, &full);
	assert_true(full > 0);
	run_row(2, 2, 1000, &full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_uts),
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_full),
	};

	return UNIT_RUN(tests);
}
