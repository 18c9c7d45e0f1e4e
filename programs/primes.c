// SPDX-License-Identifier: GPL-2.0
/*
 * primes [LIMIT]: print the number of primes below LIMIT (1000000), and the largest one. An
 * example of tasks, which Documentation/tasks.md explains. kdsmrun(1) starts it, as one member on
 * each node.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <kdsm/job.h>
#include <kdsm/task.h>

#include "common/cli.h"

#define GRAIN	256	/* most numbers that one task searches without spawning */

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

static int take_part(struct kdsm_job *job, uint32_t limit)
{
	struct kdsm_tasks_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_tasks *tasks;
	uint64_t offset = 0;
	int ret;

	kdsm_job_alloc_sync(job, kdsm_tasks_bytes(NULL), &offset);
	ret = kdsm_tasks_open(kdsm_job_sync(job), offset, NULL, &tasks);
	if (ret)
		return ret;
	ret = kdsm_job_rank(job) == 0 ? lead(tasks, limit) : kdsm_tasks_serve(tasks);
	if (ret == -EOWNERDEAD)
		fprintf(stderr, "a process of node %u died\n", kdsm_tasks_culprit(tasks));
	kdsm_tasks_counts(tasks, &counts);
	fprintf(stderr, "rank %u: %" PRIu64 " tasks from this node, %" PRIu64 " from others\n",
		kdsm_job_rank(job), counts.stolen, counts.received);
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
	struct kdsm_job_attr attr = { .argsz = sizeof(attr), .sync = kdsm_tasks_bytes(NULL) };
	struct kdsm_job *job;
	uint64_t limit = 1000000;
	int ret;

	cli_parse(&cli, argc, argv, &limit);
	kdsm_job_join(&attr, &job);
	ret = take_part(job, limit);
	if (ret)
		errx(EXIT_FAILURE, "%s", kdsm_error(ret));
	return kdsm_job_leave(job);
}
