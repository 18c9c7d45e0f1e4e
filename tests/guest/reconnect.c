// SPDX-License-Identifier: GPL-2.0
/*
 * reconnect NODE, on every node at the same time: NODE loses the packets that it sends
 * (mute.h) for longer than the transport repeats them, so all its connections break, once
 * just before NODE arrives at a barrier, and once while NODE waits there. The barrier takes
 * longer, but does not fail.
 *
 * reconnect restart: the last node returns at once. tests/guest/reconnect then takes kdsm
 * down and up again there, while the other nodes wait in a barrier. Their calls fail in
 * bounded time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/kdsm.h>
#include "core/core.h"

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define PART		65536
/* Time without packets, in s: longer than the transport takes to give up, which is 3.8 s */
#define OUT		7
#define PATIENCE	(120 * SECOND)
/* Limit for the failure of a barrier without a node that came up again, in s */
#define FAIL_LIMIT		60.0

/* Offsets in a part */
enum {
	START = 0,
	FLAT = 1024,
	TREE = 2048,
	GANG = TREE + KDSM_TREE_BARRIER_SIZE,
};

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_barrier start, flat;
static struct kdsm_tree_barrier tree;
static struct kd_gang gang;
static unsigned int node, nodes;

static int wait_flat(void)
{
	return kdsm_barrier_wait(&flat, PATIENCE);
}

static int wait_tree(void)
{
	return kdsm_tree_barrier_wait(&tree, PATIENCE, NULL);
}

static int add_up(void *context, uint64_t *mine, const uint64_t *theirs)
{
	(void)context;
	mine[0] += theirs[0];
	return 0;
}

/* All nodes have to get the sum of all numbers. */
static int step(void)
{
	uint64_t words[KD_GANG_WORDS] = { node };
	int ret = kd_gang_gather(&gang, words, add_up, NULL);

	if (!ret)
		ret = kd_gang_scatter(&gang, words);
	return ret ? ret : words[0] == nodes * (nodes - 1) / 2 ? 0 : -EPROTO;
}

/* Cut this node off for OUT seconds, beginning in as many seconds as arg points to. */
static void *fall_silent(void *arg)
{
	sleep(*(unsigned int *)arg);
	mute(true);
	sleep(OUT);
	mute(false);
	return NULL;
}

static void meet(void)
{
	must(kdsm_barrier_wait(&start, PATIENCE), "the barrier before");
}

static void try(const char *what, int (*wait)(void), unsigned int gone, bool before)
{
	unsigned int silent = 1;
	pthread_t thread;
	double begin;
	int ret;

	meet();
	if (node == gone)
		pthread_create(&thread, NULL, fall_silent, &silent);
	/* The node falls silent after 1 s. It arrives 2 s after all others, or 3 s before them. */
	sleep(node == gone ? 2 * before : 3 * !before);
	begin = now();
	ret = wait();
	tap_ok(!ret, "%s, node %u is cut off %s: %s after %.1f s", what, gone,
	       before ? "before it arrives" : "while it waits", tap_error(ret), now() - begin);
	ret = wait();
	tap_result(ret, 0, "%s, the next one", what);
	if (node == gone)
		pthread_join(thread, NULL);
}

static void try_all(unsigned int gone)
{
	unsigned int before;

	must(kdsm_tree_barrier_init(&tree, NULL, region, TREE, NULL), "kdsm_tree_barrier_init");
	must(kd_gang_join(&gang, region, GANG, 60 * SECOND), "kd_gang_join");
	for (before = 0; before < 2; before++) {
		try("barrier", wait_flat, gone, before);
		try("tree barrier", wait_tree, gone, before);
		try("collective step", step, gone, before);
	}
	meet();
	kd_gang_leave(&gang);
}

static void one_restarts(void)
{
	double begin = now();
	int ret;

	meet();
	if (node == nodes - 1)
		return;
	ret = wait_flat();
	tap_ok(ret == -EHOSTDOWN && now() - begin < FAIL_LIMIT,
	       "barrier, node %u came up again: %s after %.1f s", nodes - 1, tap_error(ret),
	       now() - begin);
}

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	char name[32];

	if (argc != 2)
		tap_bail("usage: reconnect NODE|restart");
	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	attr.size = PART * nodes;
	snprintf(name, sizeof(name), "reconnect-%s", argv[1]);
	must(kdsm_region_open(kdsm, name, &attr, &region), "kdsm_region_open");
	kdsm_barrier_init(&start, region, START);
	kdsm_barrier_init(&flat, region, FLAT);
	if (!strcmp(argv[1], "restart"))
		one_restarts();
	else
		try_all(strtoul(argv[1], NULL, 0));
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return tap_end();
}
