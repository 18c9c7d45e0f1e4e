// SPDX-License-Identifier: GPL-2.0
/*
 * kdsm_tree_barrier on every node at the same time: any number of processes on each node
 * and of threads in each process, which come and go; and participants that do not arrive.
 */
#include "clock.h"
#include "crew.h"

#define ROUNDS		20
/* Timeouts, and a margin for slow emulated machines, in s */
#define SHORT		4
#define LONG		60
#define LATE		15

/* ---- all participants arrive ---- */

/* Processes of each node, and threads of each of its processes */
static const struct shape {
	struct {
		unsigned int processes, threads;
	} of[3];		/* of node i: element i % 3 */
} shapes[] = {
	{ { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
	{ { { 2, 2 }, { 2, 2 }, { 2, 2 } } },
	{ { { 1, 2 }, { 2, 1 }, { 3, 2 } } },
	{ { { 3, 1 }, { 0, 0 }, { 1, 1 } } },
	{ { { 0, 0 }, { 3, 2 }, { 0, 0 } } },
}, pairs = { { { 2, 1 }, { 2, 1 }, { 2, 1 } } };
static const struct shape *shape;
static unsigned int number;		/* of the barrier */

static unsigned int processes_of(unsigned int which)
{
	return shape->of[which % 3].processes;
}

static unsigned int threads_of(unsigned int which)
{
	return shape->of[which % 3].threads;
}

static void open_barrier(struct crew *crew, const char *name)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 65536 };
	uint32_t participants[CREW_NODES];
	char full[32];
	unsigned int i;

	for (i = 0; i < nodes; i++)
		participants[i] = processes_of(i) * threads_of(i);
	snprintf(full, sizeof(full), "%s-%u", name, number);
	crew_open(crew, full, &attr, 64, participants);
}

struct member {
	struct crew *crew;
	unsigned int thread, rounds, first;
};

/* A word for each thread; the words are adjacent, so all threads write the same block. */
static uint64_t *word_of(const struct crew *crew, unsigned int which, unsigned int process,
			 unsigned int thread)
{
	uint64_t *words = kdsm_region_address(crew->region);

	return words + (which * CREW_PROCESSES + process) * CREW_THREADS + thread;
}

static uint64_t missing(const struct crew *crew, uint64_t round)
{
	unsigned int i, process, thread;
	uint64_t bad = 0;

	for (i = 0; i < nodes; i++)
		for (process = 0; process < processes_of(i); process++)
			for (thread = 0; thread < threads_of(i); thread++)
				bad += *word_of(crew, i, process, thread) != round;
	return bad;
}

static void *meet_often(void *arg)
{
	struct member *member = arg;
	struct crew *crew = member->crew;
	uint64_t round, bad = 0;

	for (round = member->first; round < member->first + member->rounds; round++) {
		*word_of(crew, node, crew->process, member->thread) = round;
		crew_wait(crew);
		bad += missing(crew, round);
		crew_wait(crew);
	}
	CHECK_IS(bad, 0);
	return NULL;
}

static void run_process(unsigned int process, unsigned int rounds, unsigned int first)
{
	struct member members[CREW_THREADS];
	struct crew crew = { .process = process };
	unsigned int i;

	open_barrier(&crew, "barrier");
	for (i = 0; i < threads_of(node); i++)
		members[i] = (struct member){ &crew, i, rounds, first };
	crew_threads(meet_often, members, sizeof(members[0]), threads_of(node));
	crew_close(&crew);
}

static void all_rounds(unsigned int process)
{
	run_process(process, ROUNDS, 1);
}

static void barrier_shapes(void)
{
	unsigned int i;
	double start;

	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		shape = &shapes[i];
		number++;
		start = now();
		crew_run(all_rounds, processes_of(node));
		printf("# %u processes of %u threads here: %.1f ms a barrier\n", processes_of(node),
		       threads_of(node), (now() - start) * 1000 / (2 * ROUNDS));
		meet();
	}
}

static int go[2];		/* a pipe: a child that reads it waits for the parent */

static void wait_for_parent(void)
{
	char c;

	close(go[1]);
	CHECK(read(go[0], &c, 1) >= 0);
}

/* Keep the region open between two processes that use it. */
static void keep(unsigned int process)
{
	struct crew crew = { .process = process };

	open_barrier(&crew, "barrier");
	wait_for_parent();
	crew_close(&crew);
}

static unsigned int generation;

static void one_round(unsigned int process)
{
	run_process(process, 1, generation);
}

/* New processes take part in every round, with the same words. */
static void barrier_comes_and_goes(void)
{
	pid_t keeper;

	shape = &shapes[1];
	number++;
	if (pipe(go))
		guest_die("pipe", -errno);
	keeper = crew_fork(keep, 0);
	for (generation = 1; generation <= 4; generation++) {
		crew_run(one_round, 2);
		meet();
	}
	close(go[1]);
	CHECK_IS(crew_join(keeper), 0);
	close(go[0]);
}

/* ---- a participant does not arrive ---- */

static bool is_victims(void)
{
	return node == nodes - 1;
}

/*
 * The node of the missing process has the short timeout, and tells the other nodes. With
 * equal timeouts a distant node could time out first, and blame a node in between.
 */
static void fails(const struct crew *crew, const char *what)
{
	unsigned int culprit = KDSM_MAX_NODES, seconds = is_victims() ? SHORT : LONG;
	double start = now();
	int ret = kdsm_tree_barrier_wait(&crew->barrier, seconds * SECOND, &culprit);
	double took = now() - start;

	printf("# %s: %s after %.1f s, because of node %u\n", what, strerrorname_np(-ret), took,
	       culprit);
	CHECK(ret == -EPIPE || (ret == -ETIMEDOUT && is_victims()));
	CHECK_IS(culprit, nodes - 1);
	CHECK(took < SHORT + LATE);
	/* From now on the barrier fails at once. */
	start = now();
	CHECK_IS(kdsm_tree_barrier_wait(&crew->barrier, LONG * SECOND, &culprit), -EPIPE);
	CHECK_IS(culprit, nodes - 1);
	CHECK(now() - start < LATE);
}

static void one_never_comes(unsigned int process)
{
	struct crew crew = { .process = process };

	open_barrier(&crew, "barrier");
	crew_wait(&crew);
	if (is_victims() && process == 1)
		raise(SIGKILL);
	fails(&crew, "a process dies before it comes");
	crew_close(&crew);
}

static void barrier_killed(void)
{
	pid_t pids[2];
	unsigned int i;

	shape = &pairs;
	number++;
	for (i = 0; i < 2; i++)
		pids[i] = crew_fork(one_never_comes, i);
	CHECK_IS(crew_join(pids[0]), 0);
	CHECK_IS(crew_join(pids[1]), is_victims() ? -SIGKILL : 0);
}

/* A process that dies while it waits has arrived; the next round misses it. */
static void one_dies_waiting(unsigned int process)
{
	struct crew crew = { .process = process };

	open_barrier(&crew, "barrier");
	if (is_victims() && process == 0)
		wait_for_parent();
	*word_of(&crew, node, process, 0) = 1;
	crew_wait(&crew);
	CHECK_IS(missing(&crew, 1), 0);
	fails(&crew, "a process has died in the round before");
	crew_close(&crew);
}

static void barrier_killed_waiting(void)
{
	struct crew own = { 0 };
	uint64_t arrivals = 0;
	pid_t pids[2];
	unsigned int i;

	shape = &pairs;
	number++;
	if (pipe(go))
		guest_die("pipe", -errno);
	for (i = 0; i < 2; i++)
		pids[i] = crew_fork(one_dies_waiting, i);
	if (is_victims()) {
		open_barrier(&own, "barrier");
		/* The first word of a barrier counts arrivals on the node. */
		while (!arrivals)
			CHECK_IS(kdsm_get(own.sync, node, 0, &arrivals, sizeof(arrivals)), 0);
		usleep(200000);
		kill(pids[1], SIGKILL);
		CHECK_IS(crew_join(pids[1]), -SIGKILL);
		CHECK_IS(write(go[1], "", 1), 1);
		CHECK_IS(crew_join(pids[0]), 0);
		crew_close(&own);
	} else {
		for (i = 0; i < 2; i++)
			CHECK_IS(crew_join(pids[i]), 0);
	}
	close(go[0]);
	close(go[1]);
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(barrier_shapes),
	TEST(barrier_comes_and_goes),
	TEST(barrier_killed),
	TEST(barrier_killed_waiting),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	int status;

	guest_open("barrier-meeting");
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	guest_close();
	return status;
}
