// SPDX-License-Identifier: GPL-2.0
/*
 * A member of a job on several machines, which tests/guest/jobs starts.
 *
 *	job check	use all that <kdsm/job.h> has, and check the results
 *	job wait	meet the other members again and again until the job ends
 *	job compute	call nothing until the job ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <kdsm/job.h>

#define ROUNDS	50
#define COUNT	600

static struct kdsm_job *job;
static uint32_t rank, size;
static unsigned int failures;

static void expect(int good, const char *what)
{
	if (good)
		return;
	failures++;
	printf("# rank %u: %s\n", rank, what);
}

/* Every member writes a word of one block, and a spread array; every other member reads them. */
static void memory(void)
{
	uint64_t *shared = kdsm_job_alloc(job, size * sizeof(*shared)), round, i, sum;
	struct kdsm_spread spread;

	kdsm_job_spread(job, 3000, sizeof(uint64_t), &spread);
	for (round = 1; round <= ROUNDS; round++) {
		shared[rank] = round + rank;
		KDSM_JOB_FOR(job, k, spread.count)
			((uint64_t *)kdsm_spread_at(&spread, k))[0] = round * k;
		sum = rank;
		kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &sum, 1);
		expect(sum == size * (size - 1) / 2, "a sum is wrong");
		for (i = 0; i < size; i++)
			expect(shared[i] == round + i, "a word of a shared block is old");
		for (i = 0; i < spread.count; i++)
			expect(*(uint64_t *)kdsm_spread_at(&spread, i) == round * i,
			       "an element of a spread array is old");
		kdsm_job_barrier(job);
	}
}

static void collectives(void)
{
	double numbers[COUNT];
	char text[5000] = "", *all = malloc(size * 8);
	int64_t sum = rank + 1;
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		numbers[i] = rank * 0.5 + i;
	kdsm_job_allreduce(job, KDSM_JOB_DOUBLE, KDSM_JOB_MAX, numbers, COUNT);
	for (i = 0; i < COUNT; i++)
		expect(numbers[i] == (size - 1) * 0.5 + i, "a maximum is wrong");
	kdsm_job_scan(job, KDSM_JOB_INT64, KDSM_JOB_SUM, &sum, 1);
	expect(sum == (rank + 1) * (rank + 2) / 2, "a prefix sum is wrong");
	if (rank == size - 1)
		memset(text, 'x', sizeof(text) - 1);
	kdsm_job_broadcast(job, size - 1, text, sizeof(text));
	expect(strlen(text) == sizeof(text) - 1, "a broadcast is wrong");
	snprintf(text, 8, "%u", rank);
	kdsm_job_allgather(job, text, 8, all);
	for (i = 0; i < size; i++)
		expect(atoi(all + 8 * i) == (int)i, "a gathered text is wrong");
	free(all);
}

/* The members take each index once; together they take all. */
static void loop(void)
{
	uint64_t begin, end, sum = 0;
	struct kdsm_loop loop;
	int i;

	for (i = 0; i < 5; i++) {
		kdsm_job_loop(job, 200, 3, &loop);
		while (kdsm_loop_next(&loop, &begin, &end) > 0)
			for (; begin < end; begin++)
				sum += begin + 1;
	}
	kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &sum, 1);
	expect(sum == 5 * 200 * 201 / 2, "a loop lost or repeated indices");
}

/* Operations of a sum, on this node: two puts of each node but one, in each direction */
static void costs(void)
{
	struct kdsm_counts before = { .argsz = sizeof(before) }, after = { .argsz = sizeof(after) };
	double sum = 1;
	int i;

	kdsm_job_barrier(job);
	kdsm_counts(kdsm_job_cluster(job), &before);
	for (i = 0; i < 100; i++)
		kdsm_job_allreduce(job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, &sum, 1);
	kdsm_counts(kdsm_job_cluster(job), &after);
	after.put -= before.put;
	kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_SUM, (uint64_t *)&after.put, 1);
	if (!rank)
		printf("# %.2f puts a sum, of all nodes\n", after.put / 100.0);
	expect(after.put <= 102 * 4 * (kdsm_job_nodes(job) - 1), "a sum takes too many puts");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "check";
	uint64_t all;

	kdsm_job_join(NULL, &job);
	rank = kdsm_job_rank(job);
	size = kdsm_job_size(job);
	if (!strcmp(mode, "check")) {
		memory();
		collectives();
		loop();
		costs();
		all = failures;
		kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &all, 1);
		if (!rank)
			printf("%sok job of %u members on %u nodes\n", all ? "not " : "", size,
			       kdsm_job_nodes(job));
		return kdsm_job_leave(job) || all;
	}
	for (;;)
		if (!strcmp(mode, "wait"))
			kdsm_job_barrier(job);
		else
			sleep(1);
}
