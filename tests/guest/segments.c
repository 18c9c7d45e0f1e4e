// SPDX-License-Identifier: GPL-2.0
/*
 * A coherent region with blocks of several sizes, used by all nodes at the same time. Content is
 * exact across the boundaries of segments, and counters show that the right sizes save faults and
 * hand-overs.
 */
#include "coherent.h"

#define KIB	1024UL
#define MIB	(1024 * KIB)
#define MIDDLE	(2 * MIB)	/* begin of the second segment */
#define LARGE	(6 * MIB)	/* begin of the third one */
#define SIZE	(12 * MIB)
#define STRIDE	(512 / 8)	/* words from one that is checked to the next */
#define ROUNDS	20

static const struct kdsm_region_segment segments[] = {
	{ 0, 4 * KIB, 0 }, { MIDDLE, 64 * KIB, 0 }, { LARGE, 2 * MIB, 0 },
};

#define COUNT	(sizeof(segments) / sizeof(segments[0]))

static uint32_t policy;

static void attach(const char *name)
{
	region_segments = segments;
	region_segment_count = COUNT;
	attach_region(name, policy, SIZE, segments[0].block_size);
	region_segments = NULL;
	region_segment_count = 0;
}

static int advise(enum kdsm_advice advice, uint64_t offset, uint64_t length)
{
	struct kdsm_advise arg = {
		.argsz = sizeof(arg), .advice = advice, .offset = offset, .length = length,
	};

	return call(KDSM_IOC_ADVISE, &arg);
}

/* Each node in turn writes all of the region, and all nodes read it. */
static void segments_turns(void)
{
	unsigned int round;
	uint64_t i, bad = 0;

	attach("turns");
	for (round = 0; round < nodes; round++) {
		for (i = 0; node == round && i < SIZE / 8; i += STRIDE)
			words[i] = (uint64_t)(round + 1) << 32 | i;
		exchange();
		for (i = 0; i < SIZE / 8; i += STRIDE)
			bad += words[i] != ((uint64_t)(round + 1) << 32 | i);
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

/* All nodes write words next to each other, on both sides of each boundary. */
static void segments_boundaries(void)
{
	uint64_t bad = 0, *at;
	unsigned int round, i, n;

	attach("boundaries");
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 1; i < COUNT; i++) {
			at = words + segments[i].offset / 8;
			at[node] = round * 1000 + node;
			at[-1 - (int)node] = round * 2000 + node;
		}
		exchange();
		for (i = 1; i < COUNT; i++) {
			at = words + segments[i].offset / 8;
			for (n = 0; n < nodes; n++) {
				bad += at[n] != round * 1000 + n;
				bad += at[-1 - (int)n] != round * 2000 + n;
			}
		}
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

/* Calls that take a range, over both boundaries */
static void segments_ranges(void)
{
	const uint64_t from = MIDDLE - 8 * KIB, length = LARGE + MIB - from;
	const long blocks = 2 + 64 + 1;
	uint64_t i, bad = 0;
	long before;

	attach("ranges");
	for (i = 0; node == 0 && i < SIZE / 8; i += STRIDE)
		words[i] = i;
	exchange();
	if (node == 1 % nodes) {
		before = counter("owned");
		CHECK_IS(advise(KDSM_ADVICE_PREFETCH, from, length), 0);
		CHECK_IS(advise(KDSM_ADVICE_OWN, from, length), 0);
		if (nodes > 1)
			CHECK_IS(counter("owned") - before, blocks);
		for (i = from / 8; i < (from + length) / 8; i += STRIDE)
			words[i]++;
		CHECK_IS(advise(KDSM_ADVICE_FLUSH, from, length), 0);
	}
	exchange();
	if (node == nodes - 1)
		CHECK_IS(advise(KDSM_ADVICE_REFRESH, from, length), 0);
	for (i = 0; i < SIZE / 8; i += STRIDE)
		bad += words[i] != i + (i >= from / 8 && i < (from + length) / 8);
	CHECK_IS(bad, 0);
	CHECK_IS(advise(KDSM_ADVICE_FLUSH, LARGE, SIZE), -ERANGE);
	detach();
}

/* Blocks are numbered through all segments, and groups of them go round the nodes. */
static void segments_homes(void)
{
	struct kdsm_home home = { .argsz = sizeof(home) };
	uint64_t number, bad = 0;

	attach("homes");
	for (home.offset = 0; home.offset < SIZE; home.offset += 4 * KIB) {
		number = home.offset / (4 * KIB);
		if (home.offset >= MIDDLE)
			number = 512 + (home.offset - MIDDLE) / (64 * KIB);
		if (home.offset >= LARGE)
			number = 512 + 64 + (home.offset - LARGE) / (2 * MIB);
		CHECK_IS(call(KDSM_IOC_HOME, &home), 0);
		bad += home.node != number / KDSM_CYCLE_BLOCKS % nodes;
	}
	CHECK_IS(bad, 0);
	CHECK_IS(call(KDSM_IOC_HOME, &home), -ERANGE);
	detach();
}

/* ---- the library, and kdsmctl ---- */

static void shows(const char *name, const char *line)
{
	char text[4096];

	region_shown(name, "", text, sizeof(text));
	if (!CHECK(strstr(text, line)))
		printf("# there is no \"%s\"\n", line);
}

static void segments_library(void)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = SIZE - 5, .policy = policy, .segments = segments, .segment_count = COUNT,
	};
	struct kdsm_region *region, *other;
	char name[KDSM_NAME_SIZE];

	snprintf(name, sizeof(name), "segments-library-%u", policy);
	CHECK_IS(kdsm_region_open(kdsm, name, &attr, &region), 0);
	if (!region)
		guest_die("kdsm_region_open", -EIO);
	CHECK_IS(kdsm_region_size(region), SIZE);
	CHECK_IS(kdsm_region_block_size(region), 4 * KIB);
	CHECK_IS(kdsm_region_block_size_at(region, MIDDLE - 1), 4 * KIB);
	CHECK_IS(kdsm_region_block_size_at(region, MIDDLE), 64 * KIB);
	CHECK_IS(kdsm_region_block_size_at(region, LARGE), 2 * MIB);
	CHECK_IS(kdsm_region_block_size_at(region, SIZE), 0);
	attr.segment_count = 2;
	CHECK_IS(kdsm_region_open(kdsm, name, &attr, &other), -EINVAL);
	attr.segment_count = 0;
	CHECK_IS(kdsm_region_open(kdsm, name, &attr, &other), -EINVAL);
	attr.segment_count = COUNT;
	attr.policy = KDSM_POLICY_PARTITIONED;
	CHECK_IS(kdsm_region_open(kdsm, "segments-partitioned", &attr, &other), -EINVAL);
	shows(name, "4.0 KiB from 0 B\n");
	shows(name, "64.0 KiB from 2.0 MiB\n");
	shows(name, "2.0 MiB from 6.0 MiB\n");
	meet();
	kdsm_region_close(region);
}

/* ---- costs of block sizes ---- */

struct cost {
	long faults;	/* read faults here, to read an array of 6 MiB that node 0 wrote */
	long moves;	/* blocks handed over here while each node incremented a counter */
};

/* Each node has a counter in 4 KiB of its own, in the first segment. The array is the third one. */
static struct cost measure(const char *what)
{
	struct cost cost;
	unsigned int round;
	uint64_t i, bad = 0;

	for (i = LARGE / 8; node == 0 && i < SIZE / 8; i += STRIDE)
		words[i] = i;
	exchange();
	cost.faults = counter("read_faults");
	for (i = LARGE / 8; i < SIZE / 8; i += STRIDE)
		bad += words[i] != i;
	cost.faults = counter("read_faults") - cost.faults;
	words[node * 4 * KIB / 8]++;
	exchange();
	cost.moves = counter("migrations");
	for (round = 0; round < ROUNDS; round++) {
		words[node * 4 * KIB / 8]++;
		CHECK_IS(release(NULL), 0);
		meet();
	}
	cost.moves = counter("migrations") - cost.moves;
	exchange();
	for (i = 0; i < nodes; i++)
		bad += words[i * 4 * KIB / 8] != ROUNDS + 1;
	CHECK_IS(bad, 0);
	printf("# %s: %ld faults to read 6 MiB, %ld blocks handed over in %u rounds of counters\n",
	       what, cost.faults, cost.moves, ROUNDS);
	detach();
	return cost;
}

static void segments_cost(void)
{
	struct cost small, large, both;

	attach_region("small", policy, SIZE, 4 * KIB);
	small = measure("blocks of 4 KiB");
	attach_region("large", policy, SIZE, 2 * MIB);
	large = measure("blocks of 2 MiB");
	attach("both");
	both = measure("segments of both");
	CHECK_IS(both.moves, 0);
	if (node) {
		CHECK(both.faults <= large.faults + 1);
		CHECK(both.faults < small.faults);
		CHECK(large.moves > 0);
	}
}

#define TEST(name) { #name, name }

static const struct guest_test tests[] = {
	TEST(segments_turns),
	TEST(segments_boundaries),
	TEST(segments_ranges),
	TEST(segments_homes),
	TEST(segments_library),
	TEST(segments_cost),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return run_policies("segments", &policy, tests, argc > 1 ? argv[1] : NULL);
}
