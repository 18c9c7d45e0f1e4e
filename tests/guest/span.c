// SPDX-License-Identifier: GPL-2.0
/*
 * span NAME PARTS: with the same program on nodes 0 to PARTS - 1, add to words of a partitioned
 * region, of a strict region and of data that a lock guards, again and again until standard input
 * ends; then compare the words with what the nodes have added. Prints "started" when all nodes
 * work, and in the end "good" and how often this node has added, or what failed.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/kdsm.h>
#include <kdsm/lock.h>

#define MINUTE		(UINT64_C(60) * 1000000000)
/* Offsets in each part, in bytes */
#define BARRIER		0
#define ADDED		4096
#define GUARDED		4160
#define COUNTS		8192	/* of node 0: one a node */

static unsigned int parts;
static struct kdsm_region *region, *strict;
static struct kdsm_barrier barrier;
static struct kdsm_lock *lock;

static void must(int result, const char *what)
{
	if (!result)
		return;
	printf("%s: %s\n", what, strerror(-result));
	exit(1);
}

static void open_all(const char *name)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = (uint64_t)parts << 21 };
	struct kdsm_region_attr coherent = {
		.argsz = sizeof(coherent), .size = 4 << 20, .policy = KDSM_POLICY_STRICT,
	};
	struct kdsm_lock_attr kind = { .argsz = sizeof(kind), .kind = KDSM_LOCK_RMA_MCS };
	char other[KDSM_NAME_SIZE];
	struct kdsm *kdsm;

	snprintf(other, sizeof(other), "%s.strict", name);
	must(kdsm_open(0, &kdsm), "kdsm_open");
	must(kdsm_region_open(kdsm, name, &attr, &region), name);
	must(kdsm_region_open(kdsm, other, &coherent, &strict), other);
	must(kdsm_lock_create(region, "guard", 0, &kind, &lock), "kdsm_lock_create");
	if (kdsm_region_size(region) != (uint64_t)parts << 21)
		errx(1, "%s has other parts", name);
	kdsm_barrier_init(&barrier, region, BARRIER);
	must(kdsm_barrier_wait(&barrier, MINUTE), "barrier");
}

static void add(void)
{
	uint64_t *words = kdsm_region_address(strict), value;
	unsigned int last = parts - 1, i;

	for (i = 0; i < parts; i++)
		must(kdsm_faa(region, i, ADDED, 1, NULL), "kdsm_faa");
	__atomic_fetch_add(&words[0], 1, __ATOMIC_SEQ_CST);
	must(kdsm_lock(lock), "kdsm_lock");
	must(kdsm_get(region, last, GUARDED, &value, sizeof(value)), "kdsm_get");
	value++;
	must(kdsm_put(region, last, GUARDED, &value, sizeof(value)), "kdsm_put");
	must(kdsm_unlock(lock), "kdsm_unlock");
}

static void is(uint64_t value, uint64_t sum, const char *what)
{
	if (value == sum)
		return;
	printf("%s is %ju, and the nodes have added %ju\n", what, (uintmax_t)value, (uintmax_t)sum);
	exit(1);
}

static void compare(unsigned int node, uint64_t count)
{
	uint64_t *words = kdsm_region_address(strict), sum = 0, value;
	unsigned int i;

	must(kdsm_put(region, 0, COUNTS + 8 * node, &count, sizeof(count)), "kdsm_put");
	must(kdsm_barrier_wait(&barrier, MINUTE), "barrier");
	for (i = 0; i < parts; i++) {
		must(kdsm_get(region, 0, COUNTS + 8 * i, &value, sizeof(value)), "kdsm_get");
		sum += value;
	}
	for (i = 0; i < parts; i++) {
		must(kdsm_get(region, i, ADDED, &value, sizeof(value)), "kdsm_get");
		is(value, sum, "a word of a part");
	}
	is(__atomic_load_n(&words[0], __ATOMIC_SEQ_CST), sum, "a word of the strict region");
	must(kdsm_get(region, parts - 1, GUARDED, &value, sizeof(value)), "kdsm_get");
	is(value, sum, "the word that the lock guards");
	must(kdsm_barrier_wait(&barrier, MINUTE), "barrier");
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	uint64_t count = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		errx(1, "expected: NAME PARTS");
	parts = atoi(argv[2]);
	open_all(argv[1]);
	puts("started");
	do {
		add();
		count++;
	} while (!poll(&input, 1, 5));
	compare(kdsm_node(kdsm_region_cluster(region)), count);
	printf("good %ju\n", (uintmax_t)count);
	kdsm_lock_close(lock);
	kdsm_region_close(strict);
	kdsm_region_close(region);
	return 0;
}
