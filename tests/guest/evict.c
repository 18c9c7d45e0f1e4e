// SPDX-License-Identifier: GPL-2.0
/*
 * A coherent region that is twice as large as what a node may hold of it, on at least three nodes
 * at the same time: each node writes and reads all of it, as a stream and at random, and every
 * value is exact.
 *
 * evict [-b SIZE] [-s] [NAME]: blocks of SIZE bytes (65536); -s: segments with blocks of 4 KiB,
 * 64 KiB and 2 MiB; only tests whose name contains NAME
 */
#include <sys/wait.h>

#include "coherent.h"
#include "random.h"

#define MIB		(1024UL * 1024)
#define LIMIT		(24 * MIB)
#define SIZE		(2 * LIMIT)
/* More than a limit: two chunks of twins, without which a node could not hand blocks over */
#define MOST		(LIMIT + 4 * MIB)
#define STRIDE		(2048 / 8)	/* words from one that is checked to the next */
#define WORDS		(SIZE / 8 / STRIDE)
#define ACCESSES	100

static const struct kdsm_region_segment segments[] = {
	{ 0, 4096, 0 }, { SIZE / 4, 65536, 0 }, { SIZE / 2, 2 * MIB, 0 },
};

static uint32_t policy, block_size = 65536;

/* All nodes attach the region, and may hold LIMIT of it. */
static void attach(const char *name)
{
	attach_region(name, policy, SIZE, block_size);
	if (!node)
		CHECK_IS(region_set("limit=%luM", LIMIT / MIB), 0);
	meet();
	CHECK_IS(counter("limit"), LIMIT);
}

static uint64_t value(unsigned int round, uint64_t word)
{
	return (uint64_t)(round + 1) << 32 | word;
}

static void print_work(const char *what)
{
	printf("# %s: %ld chunks evicted, %ld pushes, %ld KiB held\n", what, counter("evictions"),
	       counter("pushes"), counter("memory") / 1024);
}

/* Each node in turn writes all words, and all nodes then read them at the same time. */
static void evict_stream(void)
{
	uint64_t i, bad = 0;
	unsigned int round;

	attach("stream");
	for (round = 0; round < nodes; round++) {
		for (i = 0; node == round && i < WORDS; i++)
			words[i * STRIDE] = value(round, i);
		CHECK(counter("memory") <= (long)MOST);
		exchange();
		for (i = 0; i < WORDS; i++)
			bad += words[i * STRIDE] != value(round, i);
		CHECK(counter("memory") <= (long)MOST);
		exchange();
	}
	CHECK_IS(bad, 0);
	CHECK(counter("evictions") > 0);
	print_work("stream");
	detach();
}

/* All nodes write and read words of their own, in any order, and then all words of all nodes. */
static void evict_random(void)
{
	struct random random = { node + 1 }, other;
	uint64_t i, bad = 0, *mine;
	unsigned int n;

	attach("random");
	mine = calloc(WORDS / nodes, sizeof(*mine));
	for (n = 0; n < ACCESSES; n++) {
		i = random_below(&random, WORDS / nodes);
		bad += words[(i * nodes + node) * STRIDE] != mine[i];
		mine[i] = value(node, n);
		words[(i * nodes + node) * STRIDE] = mine[i];
		if (n % 50 == 49)
			CHECK_IS(release(NULL), 0);
	}
	CHECK_IS(bad, 0);
	CHECK(counter("memory") <= (long)MOST);
	exchange();
	/* Repeat the random numbers of the next node to find what it wrote last. */
	other.state = (node + 1) % nodes + 1;
	memset(mine, 0, WORDS / nodes * sizeof(*mine));
	for (n = 0; n < ACCESSES; n++)
		mine[random_below(&other, WORDS / nodes)] = value((node + 1) % nodes, n);
	for (i = 0; i < WORDS / nodes; i += 1 + i % 5)
		bad += words[(i * nodes + (node + 1) % nodes) * STRIDE] != mine[i];
	CHECK_IS(bad, 0);
	free(mine);
	print_work("random");
	detach();
}

#define TEST(name) { #name, name }

static const struct guest_test tests[] = {
	TEST(evict_stream),
	TEST(evict_random),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	const char *only = NULL;
	int status = 0, i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-b") && i + 1 < argc)
			block_size = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "-s"))
			region_segments = segments;
		else
			only = argv[i];
	}
	if (region_segments) {
		region_segment_count = sizeof(segments) / sizeof(segments[0]);
		block_size = segments[0].block_size;
	}
	guest_open("evict-meeting");
	board_open("evict-board");
	for (policy = KDSM_POLICY_RELEASE; policy <= KDSM_POLICY_STRICT; policy++) {
		printf("# policy %s\n", policy == KDSM_POLICY_STRICT ? "strict" : "release");
		status |= guest_run(tests, only);
	}
	kdsm_region_close(board);
	guest_close();
	return status;
}
