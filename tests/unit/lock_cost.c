// SPDX-License-Identifier: GPL-2.0
/*
 * Remote operations of semaphores under contention: threads of simulated nodes, each alone on its
 * node, and some of the home, which cost nothing, hand on two posts.
 */
#include <pthread.h>
#include <unistd.h>
#include "unit.h"
#include <kdsm/lock.h>
#include "sim.h"

#define NODES	4
#define ROUNDS	300
#define POSTS	2		/* posts that the threads hand on */
#define FOREVER	60000000000ULL	/* timeout that does not pass, in ns */

struct caller {
	unsigned int node;
	struct kdsm_sem sem;
	uint64_t waits, posts, most;	/* operations; of all calls, and of one post */
	int failures;
};

static int inside;

static uint64_t operations(unsigned int node)
{
	struct kdsm_counts counts = { .argsz = sizeof(counts) };

	kdsm_counts(sim.kdsm[node], &counts);
	return counts.get + counts.put + counts.cas + counts.faa;
}

static void *hand_on(void *arg)
{
	struct caller *caller = arg;
	uint64_t first, second, third;
	int i, ret;

	for (i = 0; i < ROUNDS; i++) {
		/* Let some waiters give up. */
		if (i % 4 == 0 && !kdsm_sem_timed(&caller->sem, 50000))
			UNIT_CHECK(&caller->failures, !kdsm_sem_post(&caller->sem));
		first = operations(caller->node);
		ret = kdsm_sem_timed(&caller->sem, FOREVER);
		UNIT_CHECK(&caller->failures, !ret);
		UNIT_CHECK(&caller->failures,
			   __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= POSTS);
		usleep(50);
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		second = operations(caller->node);
		UNIT_CHECK(&caller->failures, !kdsm_sem_post(&caller->sem));
		third = operations(caller->node);
		caller->waits += second - first;
		caller->posts += third - second;
		if (caller->most < third - second)
			caller->most = third - second;
	}
	return NULL;
}

static void contended(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = NODES * 65536 };
	struct kdsm_region *regions[NODES];
	struct caller callers[2 * NODES];
	pthread_t threads[2 * NODES];
	unsigned int i, node;
	uint64_t most = 0;
	int32_t value;

	(void)state;
	sim_start(NODES);
	for (i = 0; i < NODES; i++)
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "cost", &attr, &regions[i]), 0);
	for (i = 0; i < 2 * NODES; i++) {
		node = i < NODES ? i : 0;
		callers[i] = (struct caller){ .node = node };
		assert_int_equal(kdsm_sem_init(&callers[i].sem, regions[node], 0, 0, POSTS, NULL),
				 0);
	}
	for (i = 0; i < 2 * NODES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hand_on, &callers[i]), 0);
	for (i = 0; i < 2 * NODES; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(kdsm_sem_value(&callers[0].sem, &value), 0);
	assert_int_equal(value, POSTS);
	for (i = 0; i < 2 * NODES; i++)
		assert_int_equal(callers[i].failures, 0);
	for (i = 1; i < NODES; i++) {
		print_message("# node %u: a post %.2f operations, most %lu, a wait %.2f\n", i,
			      (double)callers[i].posts / ROUNDS, callers[i].most,
			      (double)callers[i].waits / ROUNDS);
		if (most < callers[i].most)
			most = callers[i].most;
	}
	/* One adds the post, and one wakes the first waiter. */
	assert_int_equal(most, 2);
	for (i = 0; i < NODES; i++)
		kdsm_region_close(regions[i]);
	sim_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contended),
	};

	return UNIT_RUN(tests);
}
