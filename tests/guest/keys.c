// SPDX-License-Identifier: GPL-2.0
/*
 * keys: the last node repeatedly loses the packets that it sends, for about a second each
 * time, while it uses memory of node 0 for the first time, which makes node 0 register the
 * memory. The transport repeats lost packets for longer than that, so every operation
 * succeeds.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <kdsm/kdsm.h>

#include "mute.h"
#include "tap.h"

#define SECOND	1000000000ULL
#define CHUNK	(UINT64_C(1) << 21)	/* memory of one key, in bytes */
#define CHUNKS	4
#define ROUNDS	12
#define THREADS	6
#define TOUCHING	3	/* threads that use memory for the first time */

static struct kdsm *kdsm;
static struct kdsm_region *board;
static unsigned int node, nodes;
static bool over;

/* Successive atomics on node 0, each of which needs a reply */
static void *add(void *arg)
{
	uint64_t former;
	int *error = arg;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED) && !*error)
		*error = kdsm_faa(board, 0, 4096, 1, &former);
	return NULL;
}

static int open_region(struct kdsm_region **region, const char *name, uint64_t size)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = size };

	return kdsm_region_open(kdsm, name, &attr, region);
}

static void *touch(void *arg)
{
	static unsigned int number;
	struct kdsm_region *region;
	char name[32];
	uint64_t word;
	unsigned int i;
	int *error = arg;

	while (!*error && !__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		snprintf(name, sizeof(name), "keys-%u",
			 __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
		*error = open_region(&region, name, CHUNKS * CHUNK * nodes);
		/*
		 * If a node's message that gives its part up is lost, the region stays for
		 * some seconds.
		 */
		if (*error == -ENOMEM) {
			*error = 0;
			usleep(500000);
			continue;
		}
		if (*error)
			break;
		for (i = 0; i < CHUNKS && !*error; i++)
			*error = kdsm_get(region, 0, i * CHUNK, &word, sizeof(word));
		kdsm_region_close(region);
	}
	return NULL;
}

/*
 * Connect to all nodes before packets are lost: connection requests are repeated for a
 * shorter time than other packets, and names of regions have their homes on all nodes.
 */
static int connect_all(void)
{
	unsigned int tries, i;
	int error = 0;

	for (i = 0; i < nodes && !error; i++) {
		for (tries = 0; tries < 60; tries++) {
			error = kdsm_faa(board, i, 4096, 0, NULL);
			if (!error)
				break;
			sleep(1);
		}
	}
	return error;
}

int main(void)
{
	struct kdsm_barrier barrier;
	pthread_t threads[THREADS];
	int errors[THREADS] = { 0 };
	unsigned int i;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	must(open_region(&board, "keys", 65536ULL * nodes), "kdsm_region_open");
	must(connect_all(), "connect_all");
	kdsm_barrier_init(&barrier, board, 0);
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
	if (node == nodes - 1) {
		for (i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, i < TOUCHING ? touch : add, &errors[i]);
		for (i = 0; i < ROUNDS; i++) {
			/* Long enough for repeated packets to get through */
			usleep(1500000);
			mute(true);
			usleep(700000 + 100000 * (i % 3));
			mute(false);
		}
		over = true;
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	for (i = 0; i < THREADS; i++)
		tap_result(errors[i], 0, "thread %u: %s", i,
			   i < TOUCHING ? "memory used for the first time" : "messages");
	must(kdsm_barrier_wait(&barrier, 300 * SECOND), "kdsm_barrier_wait");
	kdsm_close(kdsm);
	return tap_end();
}
