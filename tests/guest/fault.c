// SPDX-License-Identifier: GPL-2.0
/*
 * fault, on every node at the same time: the last node loses its network for a while, as in
 * vanish.c, and programs of the other nodes wait in page faults for blocks that it owns. Such a
 * program can be killed, and its other threads can map memory. When the node is back, the blocks
 * can be used. Then each node counts its faults on large blocks.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/kdsm.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define PAGE		4096
/* Size of a group of blocks that belong to one node at first; each node has GROUPS of them */
#define GROUP		(512 * PAGE)
#define GROUPS		4
#define PATIENCE	50	/* until pages can be used again, in s */
#define LIMIT		1.0	/* of mapping memory, and of dying, in s */
#define POLICIES	2

static const char *const names[POLICIES] = { "release", "strict" };

/* A program in a fault tells the test how far it is */
struct progress {
	atomic_ullong touched;	/* pages */
	atomic_ullong mapped;	/* times that the other thread mapped and unmapped memory */
};

static struct kdsm *kdsm;
static struct kdsm_region *board, *regions[POLICIES];
static struct kdsm_barrier barrier;
static unsigned int node, nodes, gone;
static sigjmp_buf back;

static void meet(void)
{
	must(kdsm_barrier_wait(&barrier, 300 * SECOND), "kdsm_barrier_wait");
}

/* The first word of the i-th page that the node which goes owns at first */
static volatile uint64_t *word_of(struct kdsm_region *region, unsigned int i)
{
	uint64_t group = (uint64_t)i * PAGE / GROUP * nodes + gone;

	return (uint64_t *)((char *)kdsm_region_address(region) + group * GROUP +
			    (uint64_t)i * PAGE % GROUP);
}

/* ---- a program that is killed ---- */

static void *map_memory(void *arg)
{
	struct progress *progress = arg;

	for (;;) {
		char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memory[0] = 1;
		munmap(memory, 1 << 20);
		progress->mapped++;
		usleep(1000);
	}
	return NULL;
}

/* Touch pages of the node that goes until a fault cannot be served. */
static void touch(struct kdsm_region *region, bool write, struct progress *progress)
{
	pthread_t thread;

	signal(SIGBUS, SIG_DFL);
	pthread_create(&thread, NULL, map_memory, progress);
	for (unsigned int i = 0; i < GROUPS * GROUP / PAGE; i++) {
		volatile uint64_t *word = word_of(region, i);

		if (write)
			*word = 1;
		else
			(void)*word;
		progress->touched++;
		usleep(5000);
	}
	exit(EXIT_FAILURE);
}

/* Wait until the program has touched nothing for a second. */
static bool await_fault(const struct progress *progress)
{
	double start = now(), since = start;
	uint64_t touched = 0;

	while (now() - start < 60) {
		if (progress->touched != touched || !touched) {
			touched = progress->touched;
			since = now();
		} else if (now() - since > 1) {
			return true;
		}
		usleep(1000);
	}
	return false;
}

/* The other threads of the programs must go on. If one is blocked, its last round does not end. */
static void check_mapping(const struct progress *progress)
{
	uint64_t mapped[POLICIES];
	double start = now();
	unsigned int i;

	for (i = 0; i < POLICIES; i++)
		mapped[i] = progress[i].mapped;
	usleep(LIMIT * 1e6);
	for (i = 0; i < POLICIES; i++)
		tap_ok(progress[i].mapped != mapped[i],
		       "policy %s: another thread maps memory %llu times in %.1f s", names[i],
		       (unsigned long long)(progress[i].mapped - mapped[i]), now() - start);
}

static void check_killing(const pid_t *children)
{
	double start = now();
	unsigned int i;
	int status;

	for (i = 0; i < POLICIES; i++)
		kill(children[i], SIGKILL);
	for (i = 0; i < POLICIES; i++) {
		waitpid(children[i], &status, 0);
		tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
		       now() - start < LIMIT * slowness(),
		       "policy %s: a program in a fault dies after %.2f s", names[i],
		       now() - start);
	}
}

/* Write to the page, again after SIGBUS, until the network is back in use. */
static void check_page(volatile uint64_t *word, const char *policy)
{
	double start = now();

	sigsetjmp(back, 1);
	if (now() - start < PATIENCE * slowness())
		*word = node;
	tap_ok(now() - start < PATIENCE * slowness(),
	       "policy %s: the page can be used again after %.1f s", policy, now() - start);
}

static void survive(void)
{
	struct progress *progress = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t children[POLICIES];
	unsigned int i;

	for (i = 0; i < POLICIES; i++) {
		children[i] = fork();
		if (!children[i])
			touch(regions[i], i, &progress[i]);
	}
	for (i = 0; i < POLICIES; i++) {
		bool waits = await_fault(&progress[i]);

		tap_ok(waits, "policy %s: a program waits in a fault, for its page %llu",
		       names[i], (unsigned long long)progress[i].touched);
	}
	check_mapping(progress);
	check_killing(children);
	meet_at_host();
	meet();
	for (i = 0; i < POLICIES; i++)
		check_page(word_of(regions[i], progress[i].touched), names[i]);
}

/* ---- large blocks ---- */

static long faults_taken(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* A fault maps all pages of a block. */
static void check_large(uint32_t policy)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.mode = 0600, .policy = policy, .size = GROUP, .block_size = GROUP,
	};
	struct kdsm_region *region;
	volatile char *memory;
	char name[32];
	long before;

	snprintf(name, sizeof(name), "fault-large-%u-%u", policy, node);
	must(kdsm_region_open(kdsm, name, &attr, &region), "kdsm_region_open");
	memory = kdsm_region_address(region);
	before = faults_taken();
	for (unsigned int i = 0; i < GROUP; i += PAGE)
		(void)memory[i];
	for (unsigned int i = 0; i < GROUP; i += PAGE)
		memory[i] = 1;
	tap_ok(faults_taken() - before < 16,
	       "policy %s: reading and writing a block of 512 pages takes %ld faults",
	       names[policy - KDSM_POLICY_RELEASE], faults_taken() - before);
	kdsm_region_close(region);
}

static void on_sigbus(int signal)
{
	(void)signal;
	usleep(200000);
	siglongjmp(back, 1);
}

/* A node that is back meets the others. */
static void vanish(void)
{
	usleep(1500000);
	mute(true);
	meet_at_host();
	mute(false);
	meet();
}

int main(void)
{
	struct kdsm_region_attr small = { .argsz = sizeof(small), .mode = 0600 };
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .mode = 0600 };

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	gone = nodes - 1;
	if (nodes < 2)
		tap_bail("fault needs two nodes");
	signal(SIGBUS, on_sigbus);
	remember_nodes(true);
	small.size = nodes * 16384;
	attr.size = (uint64_t)nodes * GROUPS * GROUP;
	must(kdsm_region_open(kdsm, "fault-board", &small, &board), "kdsm_region_open");
	attr.policy = KDSM_POLICY_RELEASE;
	must(kdsm_region_open(kdsm, "fault-release", &attr, &regions[0]), "kdsm_region_open");
	attr.policy = KDSM_POLICY_STRICT;
	must(kdsm_region_open(kdsm, "fault-strict", &attr, &regions[1]), "kdsm_region_open");
	kdsm_barrier_init(&barrier, board, 8192);
	meet();
	if (node == gone)
		vanish();
	else
		survive();
	meet();
	check_large(KDSM_POLICY_RELEASE);
	check_large(KDSM_POLICY_STRICT);
	for (unsigned int i = 0; i < POLICIES; i++)
		kdsm_region_close(regions[i]);
	kdsm_region_close(board);
	remember_nodes(false);
	kdsm_close(kdsm);
	return tap_end();
}
