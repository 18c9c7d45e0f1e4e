/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the test programs that run on every node of a cluster: opening the device, the
 * meeting of the nodes, and the results. Each node prints "ok NAME" or "not ok NAME" for
 * every test.
 *
 * All nodes meet in a barrier before and after each test, and wherever a test calls meet().
 * A test that fails must therefore continue to its end: CHECK() records a failure and
 * returns.
 */
#ifndef GUEST_H
#define GUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <kdsm/kdsm.h>

#define MS 1000000ULL
#define SECOND (1000 * MS)
/* Timeout of a meeting, in ns. A test may take minutes on an emulated debug kernel. */
#define MEETING (400 * SECOND)

static struct kdsm *kdsm;
static unsigned int node, nodes;
static int failures;		/* of the current test */

static struct kdsm_region *meeting;
static struct kdsm_barrier meeting_barrier;

#define CHECK(condition) \
	((condition) ? true : (guest_failed(__FILE__, __LINE__, #condition), false))

/* Like CHECK(), for integers: a failure also prints the value. */
#define CHECK_IS(expression, expected) do {				\
	long long is_ = (expression), want_ = (expected);		\
	if (is_ != want_) {						\
		guest_failed(__FILE__, __LINE__, #expression);		\
		printf("#   is %lld, should be %lld\n", is_, want_);	\
	}								\
} while (0)

static inline void guest_failed(const char *file, int line, const char *what)
{
	/* Print only the first failures of a test, because the same check may fail often. */
	if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10)
		printf("# %s:%d: %s\n", file, line, what);
}

/* For a failure of this node's setup, after which the other nodes' tests make no sense. */
static inline void guest_die(const char *what, int error)
{
	printf("Bail out! %s: %s\n", what, strerror(-error));
	exit(1);
}

static inline void meet(void)
{
	int ret = kdsm_barrier_wait(&meeting_barrier, MEETING);

	if (ret)
		guest_die("barrier", ret);
}

/*
 * Returns when all nodes run this program, so no node runs an earlier one any more, whose
 * regions may have the same names. The region of the meeting has the number of this run in
 * its name (KDSM_RUN, see tests/guest/all), so that only nodes of the same run meet in it.
 */
static inline void guest_open(const char *name)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	const char *run = getenv("KDSM_RUN");
	char own[KDSM_NAME_SIZE];
	int ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ret = kdsm_open(0, &kdsm);
	if (ret)
		guest_die("kdsm_open", ret);
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	attr.size *= nodes;
	snprintf(own, sizeof(own), "%s-%s", name, run ? run : "0");
	ret = kdsm_region_open(kdsm, own, &attr, &meeting);
	if (ret)
		guest_die("region of the barrier", ret);
	kdsm_barrier_init(&meeting_barrier, meeting, 0);
	meet();
}

static inline void guest_close(void)
{
	kdsm_region_close(meeting);
	kdsm_close(kdsm);
}

struct guest_test {
	const char *name;
	void (*run)(void);
};

/* Run the tests whose names contain only, or all tests. Return an exit status. */
static inline int guest_run(const struct guest_test *tests, const char *only)
{
	struct timespec begin, end;
	int status = 0;

	for (; tests->name; tests++) {
		if (only && !strstr(tests->name, only))
			continue;
		meet();
		failures = 0;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		tests->run();
		meet();
		clock_gettime(CLOCK_MONOTONIC, &end);
		printf("%sok %s # %.1f s\n", failures ? "not " : "", tests->name,
		       end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9);
		status |= !!failures;
	}
	meet();
	return status;
}

static inline uint64_t guest_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

#endif /* GUEST_H */
