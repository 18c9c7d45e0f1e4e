// SPDX-License-Identifier: GPL-2.0
/* Product of matrices that are spread over simulated nodes, by tasks on all nodes */
#include "unit.h"
#include "sim.h"
#include "../../tools/kdsm-bench/tiles.h"
#include "../../tools/kdsm-bench/work.h"

#define SIDE	4
#define N	(SIDE * TILE)

static double a[N * N], b[N * N], c[N * N], d[N * N];

static int start_worker(void *argument, void **context)
{
	*context = argument;
	return 0;
}

static void product(unsigned int nodes, uint32_t steal)
{
	struct kdsm_tasks_attr attr = {
		.argsz = sizeof(attr),
		.workers = 2, .node_workers = 2, .deque = 64, .stack = 1 << 20,
		.steal = steal, .start = start_worker,
	};
	struct kdsm_region_attr region = {
		.argsz = sizeof(region),
		.size = nodes * (kdsm_tasks_bytes(&attr) + tiles_bytes(SIDE, nodes)),
	};
	struct kdsm_tasks *tasks[SIM_NODES];
	struct tiles tiles[SIM_NODES];
	struct matrices m = { a, b, d, N, N };
	unsigned int i;
	int failed = -1;

	for (i = 0; i < N * N; i++) {
		a[i] = i * i % 7;
		b[i] = i % 11;
		c[i] = -1;
		d[i] = 0;
	}
	sim_start(nodes);
	sim.tear = true;
	for (i = 0; i < nodes; i++) {
		tiles[i] = (struct tiles){ NULL, kdsm_tasks_bytes(&attr), nodes, SIDE };
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "t", &region, &tiles[i].region), 0);
		attr.argument = &tiles[i];
		assert_int_equal(kdsm_tasks_open(tiles[i].region, 0, &attr, &tasks[i]), 0);
	}
	assert_int_equal(tiles_write(&tiles[0], TILES_A, a), 0);
	assert_int_equal(tiles_write(&tiles[nodes - 1], TILES_B, b), 0);
	/* The former contents of C do not count. */
	assert_int_equal(tiles_write(&tiles[0], TILES_C, c), 0);
	assert_int_equal(KDSM_RUN(tasks[0], &failed, tile_matmul, 0, 0, 0, SIDE), 0);
	assert_int_equal(failed, 0);
	assert_int_equal(tiles_read(&tiles[0], TILES_C, c), 0);
	plain_matmul(m);
	assert_memory_equal(c, d, sizeof(c));
	for (i = 0; i < nodes; i++)
		kdsm_tasks_close(tasks[i]);
	for (i = 0; i < nodes; i++)
		kdsm_region_close(tiles[i].region);
	sim_stop();
}

static void test_product(void **state)
{
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++) {
		product(nodes, KDSM_STEAL_ONE);
		product(nodes, KDSM_STEAL_HALF);
	}
}

/* The product returns the error of a leaf that could not get its tiles. */
static void test_failure(void **state)
{
	struct kdsm_tasks_attr attr = {
		.argsz = sizeof(attr),
		.workers = 1, .node_workers = 1, .deque = 64, .stack = 1 << 20,
		.start = start_worker,
	};
	struct kdsm_region_attr region = {
		.argsz = sizeof(region),
		.size = kdsm_tasks_bytes(&attr),
	};
	struct kdsm_tasks *tasks;
	struct tiles tiles = { NULL, UINT64_C(1) << 40, 1, SIDE };
	int failed = 0;

	(void)state;
	sim_start(1);
	assert_int_equal(kdsm_region_open(sim.kdsm[0], "t", &region, &tiles.region), 0);
	attr.argument = &tiles;
	assert_int_equal(kdsm_tasks_open(tiles.region, 0, &attr, &tasks), 0);
	assert_int_equal(KDSM_RUN(tasks, &failed, tile_matmul, 0, 0, 0, SIDE), 0);
	assert_int_equal(failed, -ERANGE);
	kdsm_tasks_close(tasks);
	kdsm_region_close(tiles.region);
	sim_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_product),
		cmocka_unit_test(test_failure),
	};

	return UNIT_RUN(tests);
}
