// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks over all nodes, with several processes on each: known results, of tasks that every
 * node runs in turn; and a process that is killed with a task.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "../../tools/kdsm-bench/work.h"

#define PROCESSES	2	/* processes of a node besides the first */
#define JOBS		3

static const struct kdsm_tasks_attr common = {
	.argsz = sizeof(common),
	.workers = 2, .node_workers = 8, .deque = 256, .stack = 1 << 20,
	.timeout = 10 * SECOND,
};

/* Every process opens its own, because a child cannot use what its parent has mapped. */
static struct kdsm *own;
static struct kdsm_region *region;

static struct kdsm_tasks *join(unsigned int job, uint32_t steal)
{
	struct kdsm_tasks_attr attr = common;
	struct kdsm_region_attr region_attr = {
		.argsz = sizeof(region_attr),
		.size = nodes * JOBS * kdsm_tasks_bytes(&common),
	};
	struct kdsm_tasks *tasks = NULL;
	int ret;

	attr.steal = steal;
	ret = kdsm_open(0, &own);
	if (!ret)
		ret = kdsm_region_open(own, "tasks", &region_attr, &region);
	if (!ret)
		ret = kdsm_tasks_open(region, job * kdsm_tasks_bytes(&common), &attr, &tasks);
	if (ret)
		guest_die("joining", ret);
	return tasks;
}

static void leave(struct kdsm_tasks *tasks)
{
	kdsm_tasks_close(tasks);
	kdsm_region_close(region);
	kdsm_close(own);
}

static void known_values(struct kdsm_tasks *tasks)
{
	struct board board = { .all = (1 << 8) - 1 };
	uint64_t result = 0;

	CHECK_IS(KDSM_RUN(tasks, &result, fib, 20), 0);
	CHECK_IS(result, 6765);
	CHECK_IS(KDSM_RUN(tasks, &result, queens, board), 0);
	CHECK_IS(result, 92);
	CHECK_IS(KDSM_RUN(tasks, &result, uts, uts_root(UTS_T1_SEED, 5)), 0);
	CHECK_IS(result, plain_uts(uts_root(UTS_T1_SEED, 5)));
}

static pid_t helper(unsigned int job, uint32_t steal)
{
	struct kdsm_tasks *tasks;
	pid_t pid = fork();

	if (pid)
		return pid;
	tasks = join(job, steal);
	if (kdsm_tasks_serve(tasks))
		_exit(1);
	leave(tasks);
	_exit(0);
}

static void gather(const pid_t *pids, unsigned int count)
{
	unsigned int i;
	int status;

	for (i = 0; i < count; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK_IS(status, 0);
	}
}

/* The processes of a job may differ in how many tasks they steal at a time. */
static void test_known(unsigned int job, uint32_t steal)
{
	struct kdsm_tasks_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_tasks *tasks;
	pid_t pids[PROCESSES];
	unsigned int i;

	for (i = 0; i < PROCESSES; i++)
		pids[i] = helper(job, (steal + i) % 2);
	tasks = join(job, steal);
	meet();
	for (i = 0; i < 3 * nodes; i++) {
		if (i % nodes == node)
			known_values(tasks);
		if (i % 3 == 0)
			meet();
	}
	meet();
	if (node == 0)
		CHECK_IS(kdsm_tasks_end(tasks), 0);
	CHECK_IS(kdsm_tasks_serve(tasks), 0);
	gather(pids, PROCESSES);
	kdsm_tasks_counts(tasks, &counts);
	printf("# requests %llu, received %llu, results %llu, pokes %llu\n",
	       (unsigned long long)counts.requests, (unsigned long long)counts.received,
	       (unsigned long long)counts.results, (unsigned long long)counts.pokes);
	leave(tasks);
}

/* Thieves choose victims by the locations of the cluster's configuration. */
static void tasks_places(void)
{
	char line[256], place[KDSM_LOCATION_SIZE], told[KDSM_LOCATION_SIZE];
	FILE *config = fopen(getenv("KDSM_CONFIG"), "r");
	unsigned int number, seen = 0;

	if (!CHECK(config))
		return;
	while (fgets(line, sizeof(line), config)) {
		told[0] = 0;
		if (sscanf(line, "node %u %*s %63s", &number, told) < 1)
			continue;
		seen++;
		CHECK_IS(kdsm_location(kdsm, number, place), 0);
		CHECK(!strcmp(place, told));
	}
	fclose(config);
	CHECK_IS(seen, nodes);
	CHECK_IS(kdsm_location(kdsm, nodes, place), -EINVAL);
}

static void tasks_one(void)
{
	test_known(0, KDSM_STEAL_ONE);
}

static void tasks_half(void)
{
	test_known(1, KDSM_STEAL_HALF);
}

/* A task that does not end; its process is killed. */
KDSM_VOID_TASK(linger)
{
	for (;;)
		pause();
}

KDSM_TASK(int, lose, int, value)
{
	KDSM_SPAWN(linger);
	while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
		KDSM_POLL();
	KDSM_SYNC(linger);
	return value;
}

/* All other processes fail within seconds. */
static void tasks_killed(void)
{
	struct timespec begin, end;
	struct kdsm_tasks *tasks = NULL;
	int value = 0, status;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (node == nodes - 1) {
		pid = fork();
		if (!pid) {
			join(2, KDSM_STEAL_ONE);
			for (;;)
				pause();
		}
		meet();
		nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
		CHECK_IS(kill(pid, SIGKILL), 0);
		waitpid(pid, &status, 0);
	} else {
		tasks = join(2, KDSM_STEAL_ONE);
		meet();
		if (node == 0)
			CHECK_IS(KDSM_RUN(tasks, &value, lose, 1), -EOWNERDEAD);
		else
			CHECK_IS(kdsm_tasks_serve(tasks), -EOWNERDEAD);
		clock_gettime(CLOCK_MONOTONIC, &end);
		CHECK(end.tv_sec - begin.tv_sec < 60);
		CHECK_IS(kdsm_tasks_culprit(tasks), nodes - 1);
	}
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(tasks_places),
	TEST(tasks_one),
	TEST(tasks_half),
	TEST(tasks_killed),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	int status;

	guest_open("task-meeting");
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	guest_close();
	/* Not through exit(), because a worker may still run linger(). */
	fflush(stdout);
	_exit(status);
}
