// SPDX-License-Identifier: GPL-2.0
/*
 * primes [LIMIT]: print the number of primes below LIMIT (1000000), and the largest one. An
 * example of tasks, which Documentation/tasks.md explains. Start the same command on every
 * node; without /dev/kdsm it runs on this machine alone.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <kdsm/task.h>

#include "common/cli.h"
#include "common/cluster.h"

#define GRAIN	256	/* most numbers that one task searches without spawning */
#define PATIENCE	60000000000	/* time in which all nodes must start, in ns */

struct found {
	uint32_t count, largest;
};

static int is_prime(uint32_t n)
{
	uint32_t d;

	for (d = 2; (uint64_t)d * d <= n; d++)
		if (n % d == 0)
			return 0;
	return n >= 2;
}

static struct found search(uint32_t from, uint32_t to)
{
	struct found found = { 0, 0 };

	for (; from < to; from++)
		if (is_prime(from)) {
			found.count++;
			found.largest = from;
		}
	return found;
}

KDSM_TASK(struct found, primes, uint32_t, from, uint32_t, to)
{
	uint32_t middle = from + (to - from) / 2;
	struct found low, high;

	if (to - from <= GRAIN)
		return search(from, to);
	KDSM_SPAWN(primes, middle, to);
	low = KDSM_CALL(primes, from, middle);
	high = KDSM_SYNC(primes);
	return (struct found){
		.count = low.count + high.count,
		.largest = high.largest ? high.largest : low.largest,
	};
}

static int lead(struct kdsm_tasks *tasks, uint32_t limit)
{
	struct found found;
	int ret, ended;

	ret = KDSM_RUN(tasks, &found, primes, 0, limit);
	if (!ret)
		printf("%" PRIu32 " primes below %" PRIu32 ", the largest %" PRIu32 "\n",
		       found.count, limit, found.largest);
	ended = kdsm_tasks_end(tasks);
	return ret ? ret : ended;
}

/*
 * Wait until all nodes have opened the region. A region is removed with its last user, so a node
 * that starts later would be alone in a new region.
 */
static int meet(struct kdsm_region *region)
{
	struct kdsm_barrier barrier;

	kdsm_barrier_init(&barrier, region, kdsm_tasks_bytes(NULL));
	return kdsm_barrier_wait(&barrier, PATIENCE);
}

static int take_part(struct kdsm_region *region, unsigned int node, uint32_t limit)
{
	struct kdsm_tasks_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_tasks *tasks;
	int ret;

	ret = kdsm_tasks_open(region, 0, NULL, &tasks);
	if (ret)
		return ret;
	ret = node == 0 ? lead(tasks, limit) : kdsm_tasks_serve(tasks);
	if (ret == -EOWNERDEAD)
		fprintf(stderr, "a process of node %u died\n", kdsm_tasks_culprit(tasks));
	kdsm_tasks_counts(tasks, &counts);
	fprintf(stderr, "node %u: %" PRIu64 " tasks from this node, %" PRIu64 " from others\n",
		node, counts.stolen, counts.received);
	kdsm_tasks_close(tasks);
	return ret;
}

static int take_limit(void *limit, unsigned int index, const char *text, char *reason)
{
	const struct range range = { 0, UINT32_MAX, 1 };

	(void)index;
	return number_parse(text, &range, limit, reason);
}

static const struct cli cli = {
	.doc = "Count the primes below LIMIT (1000000), with tasks on all nodes.",
	.args = "[LIMIT]",
	.most = 1,
	.argument = take_limit,
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	struct kdsm_region *region;
	uint64_t limit = 1000000;
	struct kdsm *kdsm;
	int ret;

	cli_parse(&cli, argc, argv, &limit);
	ret = kdsm_open(KDSM_OPEN_ALLOW_LOCAL, &kdsm);
	if (ret)
		errx(EXIT_FAILURE, "%s", kdsm_error(ret));
	attr.size = kdsm_nodes(kdsm) * (kdsm_tasks_bytes(NULL) + KDSM_BARRIER_SIZE);
	ret = kdsm_region_open(kdsm, "primes", &attr, &region);
	if (!ret) {
		ret = meet(region);
		if (!ret)
			ret = take_part(region, kdsm_node(kdsm), limit);
		kdsm_region_close(region);
	}
	kdsm_close(kdsm);
	if (ret)
		errx(EXIT_FAILURE, "%s", kdsm_error(ret));
	return EXIT_SUCCESS;
}
