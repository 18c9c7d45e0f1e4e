// SPDX-License-Identifier: GPL-2.0
/*
 * vanish NODE, on every node at the same time: NODE loses its network for a while in the
 * middle of operations, until the others have tried everything. No thread may hang: operations on
 * NODE fail within a limit, operations on other nodes continue, and everything works when NODE is
 * back. NODE loses only the packets that it sends, see mute.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/ring.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define PART		(64 << 10)
#define TREE		(32 << 10)	/* offset of tree's words in a part */
/* Limit of an operation, in s: about 10 s are documented, and an emulated machine may be late */
#define LIMIT		15.0
/* Limit of a repair when all packets arrive again, in s */
#define REPAIR_LIMIT	60.0
/*
 * Limit of a barrier, in s. A barrier gives a node up after its operations have failed for
 * 30 s. A node without a network does so with each node in turn, and then tells the others.
 */
#define BARRIER_LIMIT	75.0
/* Limit of opening a region, in s: a message finds one node gone, then another message a second */
#define OPEN_LIMIT	40.0

static struct kdsm *kdsm;
static struct kdsm_region *region, *own;
static struct kdsm_barrier barrier;
static struct kdsm_tree_barrier tree;
static unsigned int node, nodes, gone;

/* Do one operation; successive calls go through all kinds. */
static int operate(unsigned int on)
{
	static unsigned int turn;
	char buffer[8192] = { 0 };
	uint64_t former;

	switch (turn++ % 4) {
	case 0:
		return kdsm_put(region, on, 8192, buffer, sizeof(buffer));
	case 1:
		return kdsm_get(region, on, 8192, buffer, sizeof(buffer));
	case 2:
		return kdsm_cas(region, on, 4096, 0, 1, &former);
	default:
		return kdsm_faa(region, on, 4104, 1, &former);
	}
}

static bool is_gone(int error)
{
	return error == -EIO || error == -EHOSTDOWN || error == -ETIMEDOUT;
}

/* Do an operation that has to fail. */
static void fails(unsigned int on, const char *what)
{
	double start = now();
	int error = operate(on);

	tap_ok(is_gone(error) && now() - start < LIMIT * slowness(), "%s: %s after %.1f s", what,
	       tap_error(error), now() - start);
}

/*
 * Wait in a barrier that NODE cannot reach. whom: the node that the barrier must name;
 * nodes: any, because this node is NODE.
 */
static void meets_nobody(unsigned int whom)
{
	unsigned int culprit = nodes;
	double start = now();
	int error = kdsm_tree_barrier_wait(&tree, 60 * SECOND, &culprit);

	tap_ok(error == -EPIPE && now() - start < BARRIER_LIMIT * slowness() &&
	       (culprit == whom || (whom == nodes && culprit < nodes)),
	       "a barrier of all: %s after %.1f s, on account of node %u", tap_error(error),
	       now() - start, culprit);
	start = now();
	error = kdsm_tree_barrier_wait(&tree, 60 * SECOND, &culprit);
	tap_ok(error == -EPIPE && now() - start < slowness(), "the same again: %s after %.1f s",
	       tap_error(error), now() - start);
}

static void opens_nothing(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * PART };
	struct kdsm_region *other;
	double start = now();
	char name[32];
	int error;

	snprintf(name, sizeof(name), "nothing-%u", node);
	error = kdsm_region_open(kdsm, name, &attr, &other);
	tap_ok(is_gone(error) && now() - start < OPEN_LIMIT * slowness(),
	       "opening a region without node %u: %s after %.1f s", gone,
	       tap_error(error), now() - start);
	if (!error)
		kdsm_region_close(other);
}

#define CREATORS 3

/* Create regions, which the node that is gone delays, until this process is killed. */
static void create_for_ever(unsigned int child, volatile uint64_t *turn)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * PART };
	struct kdsm_region *other;
	struct kdsm *kd;
	char name[32];

	must(kdsm_open(0, &kd), "kdsm_open");
	snprintf(name, sizeof(name), "never-%u-%u", node, child);
	for (;; (*turn)++)
		if (!kdsm_region_open(kd, name, &attr, &other))
			kdsm_region_close(other);
}

/* Return how long it takes to open and close a region that exists, in s, or a negative error. */
static double open_other(void)
{
	/* Without the library, which would map the region at its address a second time */
	struct kdsm_region_open arg = { .argsz = sizeof(arg), .name = "other" };
	int file = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC), error = 0;
	double start = now();

	if (ioctl(file, KDSM_IOC_REGION_OPEN, &arg))
		error = -errno;
	close(file);
	return error ? error : now() - start;
}

/* Wait until a child has been in one call for a second, and return its number. */
static unsigned int await_blocked(const volatile uint64_t *turns)
{
	uint64_t before[CREATORS];
	double start = now();
	unsigned int i;

	while (now() - start < 30) {
		for (i = 0; i < CREATORS; i++)
			before[i] = turns[i];
		usleep(1000000);
		for (i = 0; i < CREATORS; i++)
			if (turns[i] == before[i])
				return i;
	}
	return CREATORS;
}

/*
 * While regions are being created, which takes long, another region can be opened, and the programs
 * that create them can be killed.
 */
static void opens_others(void)
{
	uint64_t *turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	double start = now(), took = 0, worst = 0;
	pid_t children[CREATORS];
	unsigned int i, blocked;

	for (i = 0; i < CREATORS; i++) {
		children[i] = fork();
		if (!children[i])
			create_for_ever(i, &turns[i]);
	}
	while (took >= 0 && now() - start < 12) {
		usleep(10000);
		took = open_other();
		worst = took > worst ? took : worst;
	}
	tap_ok(took >= 0 && worst < 2 * slowness(),
	       "a region can be opened while others are created: %s, %.1f s",
	       tap_error(took < 0 ? (int)took : 0), worst);
	blocked = await_blocked(turns);
	for (i = 0; i < CREATORS; i++)
		kill(children[i], SIGKILL);
	start = now();
	for (i = 0; i < CREATORS; i++)
		waitpid(children[i], NULL, 0);
	took = now() - start;
	tap_ok(blocked < CREATORS && took < 2 * slowness(),
	       "programs that wait for a region can be killed: child %u, %.1f s", blocked, took);
	munmap(turns, 4096);
}

/* Retry operations on a node until one succeeds, for at most that many seconds. */
static void works_again(unsigned int on, double seconds)
{
	double start = now();
	int error;

	while ((error = operate(on)) && now() - start < seconds)
		usleep(200000);
	tap_ok(!error, "operations on node %u again: %s after %.1f s", on,
	       tap_error(error), now() - start);
}

/* A region that only NODE had open still exists for it. */
static void keeps_own(void)
{
	uint64_t former;

	for (unsigned int on = 0; on < nodes; on++)
		tap_result(kdsm_faa(own, on, 0, 1, &former), 0,
			   "the region that only it had open, on node %u", on);
	kdsm_region_close(own);
}

static void vanish(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * PART };
	unsigned int on;

	must(kdsm_region_open(kdsm, "own", &attr, &own), "kdsm_region_open");
	usleep(1500000);
	mute(true);
	meets_nobody(nodes);
	for (on = 0; on < nodes; on++) {
		if (on == node)
			continue;
		fails(on, "an operation without a network");
		fails(on, "another one");
	}
	tap_result(operate(node), 0, "an operation on the own part");
	opens_nothing();
	meet_at_host();
	mute(false);
}

/*
 * Gets from NODE and from another node, submitted together by a ring until those from NODE fail.
 */
static void ring_survives(unsigned int other)
{
	struct kdsm_ring_completion got[2];
	int errors[2] = { 0 };
	double start, worst = 0;
	struct kdsm_ring *ring;
	unsigned int i, n;

	must(kdsm_ring_open(region, 2, 4096, &ring), "kdsm_ring_open");
	while (!errors[0] && !errors[1]) {
		kdsm_ring_prep_get(ring, gone, 8192, kdsm_ring_buffer(ring), 2048, 0);
		kdsm_ring_prep_get(ring, other, 8192, kdsm_ring_buffer(ring), 2048, 1);
		start = now();
		for (n = 0; n < 2 && kdsm_ring_wait(ring, 1, KDSM_FOREVER) > 0;) {
			n += kdsm_ring_reap(ring, got + n, 2 - n);
			worst = now() - start > worst ? now() - start : worst;
		}
		for (i = 0; i < n; i++)
			errors[got[i].data] = got[i].status;
	}
	tap_ok(is_gone(errors[0]) && !errors[1] && worst < LIMIT * slowness(),
	       "a ring with operations in flight: %s after %.1f s; on node %u: %s",
	       tap_error(errors[0]), worst, other, tap_error(errors[1]));
	kdsm_ring_close(ring);
}

static void survive(void)
{
	unsigned int other = 0;
	double start, worst = 0;
	int error;

	while (other == node || other == gone)
		other++;
	ring_survives(other);
	do {
		start = now();
		error = operate(gone);
		if (now() - start > worst)
			worst = now() - start;
	} while (!error);
	tap_ok(is_gone(error) && worst < LIMIT * slowness(),
	       "node %u vanishes: %s after %.1f s", gone, tap_error(error), worst);
	if (gone != 0)
		opens_others();
	meets_nobody(gone);
	for (int i = 0; i < 20; i++)
		if (operate(other))
			tap_ok(false, "operations on node %u meanwhile", other);
	for (int i = 0; i < 4; i++)
		fails(gone, "an operation on it");
	opens_nothing();
	for (int i = 0; i < 20; i++)
		if (operate(other))
			tap_ok(false, "operations on node %u meanwhile", other);
	tap_ok(true, "operations on node %u meanwhile", other);
	meet_at_host();
}

/* All nodes take part in a new region. */
static void together(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * PART };
	struct kdsm_region *after;
	struct kdsm_barrier meeting;
	int error = -1;

	/* Node 0's directory may have noticed only now that a node is back, so retry. */
	for (int i = 0; i < 20 && error; i++) {
		error = kdsm_region_open(kdsm, "after", &attr, &after);
		if (error)
			usleep(500000);
	}
	tap_result(error, 0, "opening a new region");
	if (error)
		return;
	kdsm_barrier_init(&meeting, after, 0);
	tap_result(kdsm_barrier_wait(&meeting, 60 * SECOND), 0, "a barrier in it");
	kdsm_region_close(after);
}

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .mode = 0600 };
	struct kdsm_region *other;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	gone = argc > 1 ? strtoul(argv[1], NULL, 0) : nodes - 1;
	if (nodes < 3 || gone >= nodes)
		tap_bail("vanish needs three nodes, and the number of one of them");
	remember_nodes(true);
	attr.size = nodes * PART;
	must(kdsm_region_open(kdsm, "vanish", &attr, &region), "kdsm_region_open");
	must(kdsm_region_open(kdsm, "other", &attr, &other), "kdsm_region_open");
	kdsm_barrier_init(&barrier, region, 0);
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
	must(kdsm_tree_barrier_init(&tree, NULL, region, TREE, NULL), "kdsm_tree_barrier_init");
	must(kdsm_tree_barrier_wait(&tree, 60 * SECOND, NULL), "kdsm_tree_barrier_wait");
	if (node == gone)
		vanish();
	else
		survive();
	for (unsigned int on = 0; on < nodes; on++)
		if (on != node)
			works_again(on, REPAIR_LIMIT * slowness());
	if (node == gone)
		keeps_own();
	tap_result(kdsm_barrier_wait(&barrier, 60 * SECOND), 0, "a barrier when all are back");
	kdsm_region_close(region);
	kdsm_region_close(other);
	together();
	remember_nodes(false);
	kdsm_close(kdsm);
	return tap_end();
}
