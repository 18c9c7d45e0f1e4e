// SPDX-License-Identifier: GPL-2.0
/*
 * Hints for coherent regions, on every node at the same time: counters show the work that a
 * hint saves, and a hint changes nothing else.
 */
#include "clock.h"
#include "coherent.h"

#define BLOCK	4096UL
#define BLOCKS	256UL
#define SIZE	(2 * BLOCKS * BLOCK)
#define WORD(i)	((i) * BLOCK / 8)

static uint32_t policy;

static void attach(const char *name)
{
	attach_region(name, policy, SIZE, BLOCK);
}

static int advise(enum kdsm_advice advice, uint64_t first, uint64_t blocks)
{
	struct kdsm_advise arg = {
		.argsz = sizeof(arg),
		.advice = advice,
		/* A hint applies to every block of which its range contains some bytes. */
		.offset = first * BLOCK + 100,
		.length = (blocks - 1) * BLOCK,
	};

	return call(KDSM_IOC_ADVISE, &arg);
}

static void fill(uint64_t first, uint64_t blocks, uint64_t value)
{
	for (uint64_t i = first; i < first + blocks; i++)
		words[WORD(i)] = value + i;
}

static size_t wrong(uint64_t first, uint64_t blocks, uint64_t value)
{
	size_t bad = 0;

	for (uint64_t i = first; i < first + blocks; i++)
		bad += words[WORD(i)] != value + i;
	return bad;
}

/* A prefetched block crosses the network once, and a later access does not wait for it. */
static void hints_prefetch(void)
{
	long bytes, misses;

	attach("prefetch");
	if (node == 0)
		fill(0, BLOCKS, 1000);
	exchange();
	if (node == 1) {
		bytes = counter("bytes");
		CHECK_IS(advise(KDSM_ADVICE_PREFETCH, 1, BLOCKS - 2), 0);
		CHECK(counter("bytes") - bytes >= (long)((BLOCKS - 2) * BLOCK));
		CHECK(counter("bytes") - bytes <= (long)(BLOCKS * BLOCK));
		bytes = counter("bytes");
		misses = counter("fast_reads") + counter("slow_reads");
		CHECK_IS(wrong(1, BLOCKS - 2, 1000), 0);
		CHECK_IS(counter("bytes") - bytes, 0);
		CHECK_IS(counter("fast_reads") + counter("slow_reads") - misses, 0);
		/* Prefetching the blocks again has nothing to do. */
		CHECK_IS(advise(KDSM_ADVICE_PREFETCH, 1, BLOCKS - 2), 0);
		CHECK_IS(counter("bytes") - bytes, 0);
	}
	exchange();
	CHECK_IS(wrong(0, BLOCKS, 1000), 0);
	detach();
}

/* Half of the written blocks are flushed, so the release takes over only the other half. */
static void hints_flush(void)
{
	long taken, released;

	attach("flush");
	/* Node 1 owns all of the blocks at first. */
	if (node == 1)
		fill(0, BLOCKS, 1);
	exchange();
	if (node == 0) {
		fill(0, BLOCKS, 2000);
		taken = counter("slow_releases");
		CHECK_IS(advise(KDSM_ADVICE_FLUSH, 0, BLOCKS / 2), 0);
		if (policy == KDSM_POLICY_RELEASE)
			CHECK_IS(counter("slow_releases") - taken, BLOCKS / 2);
		released = counter("fast_releases");
		taken = counter("slow_releases");
		CHECK_IS(release(NULL), 0);
		if (policy == KDSM_POLICY_RELEASE) {
			CHECK_IS(counter("slow_releases") - taken, BLOCKS / 2);
			CHECK_IS(counter("fast_releases") - released, BLOCKS / 2);
		}
	}
	exchange();
	CHECK_IS(wrong(0, BLOCKS, 2000), 0);
	detach();
}

/* A flush alone does not publish writes; the signature of the next release does. */
static void hints_flush_signature(void)
{
	attach("signature");
	for (unsigned int round = 0; round < 5; round++) {
		if (node == round % nodes) {
			fill(0, 64, 100 * round);
			CHECK_IS(advise(KDSM_ADVICE_FLUSH, 0, 64), 0);
			fill(32, 32, 100 * round + 50);
		}
		exchange();
		CHECK_IS(wrong(0, 32, 100 * round), 0);
		CHECK_IS(wrong(32, 32, 100 * round + 50), 0);
		exchange();
	}
	detach();
}

/* A node with the hint OWN gets the blocks' content, and releases them without another node. */
static void hints_own(void)
{
	long taken, owned, bytes;
	double begin;

	attach("own");
	if (node == 1)
		fill(0, BLOCKS, 3000);
	exchange();
	if (node == 0) {
		/*
		 * Some blocks have a valid copy here, the others a stale one; half of them
		 * have writes of this node.
		 */
		CHECK_IS(wrong(0, BLOCKS / 4, 3000), 0);
		for (uint64_t i = 0; i < BLOCKS; i += 2)
			words[WORD(i) + 1] = i;
		owned = counter("owned");
		begin = now();
		CHECK_IS(advise(KDSM_ADVICE_OWN, 0, BLOCKS), 0);
		printf("# %lu blocks taken over in %.0f ms\n", BLOCKS, 1000 * (now() - begin));
		CHECK_IS(counter("owned") - owned, policy == KDSM_POLICY_RELEASE ?
			 BLOCKS : BLOCKS / 2);
		CHECK_IS(wrong(0, BLOCKS, 3000), 0);
		taken = counter("slow_releases");
		bytes = counter("bytes");
		for (uint64_t i = 0; i < BLOCKS; i++)
			words[WORD(i) + 2] = i;
		CHECK_IS(release(NULL), 0);
		CHECK_IS(counter("slow_releases") - taken, 0);
		CHECK_IS(counter("bytes") - bytes, 0);
	}
	exchange();
	CHECK_IS(wrong(0, BLOCKS, 3000), 0);
	for (uint64_t i = 0; i < BLOCKS; i++) {
		CHECK(words[WORD(i) + 2] == i);
		CHECK(words[WORD(i) + 1] == (i % 2 ? 0 : i));
	}
	detach();
}

/* Nodes 0 and 1 compete for a block for 2 s; return how often this node handed it over. */
static long fight(const char *lease)
{
	struct timespec now, end;
	long moves;

	if (node == 1)
		CHECK_IS(region_set("lease=%s", lease), 0);
	meet();
	moves = counter("migrations");
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 2;
	do {
		if (node < 2)
			__atomic_fetch_add(&words[node], 1, __ATOMIC_SEQ_CST);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	moves = counter("migrations") - moves;
	meet();
	return moves;
}

/* The lease of a strict region is the same on all nodes. */
static void hints_lease(void)
{
	long moves;

	attach("lease");
	if (policy != KDSM_POLICY_STRICT) {
		CHECK_IS(counter("lease"), -1);
		CHECK(region_set("lease=1ms") != 0);
		detach();
		return;
	}
	CHECK_IS(counter("lease"), 100000);
	meet();
	moves = fight("0.25s");
	CHECK_IS(counter("lease"), 250000000);
	printf("# a lease of 250 ms: handed over %ld times in 2 s\n", moves);
	/*
	 * A node keeps the block for a lease at least: in 2 s this node hands it over 4
	 * times, and perhaps at the beginning and at the end.
	 */
	CHECK(moves <= 6);
	meet();
	moves = fight("20us");
	CHECK_IS(counter("lease"), 20000);
	printf("# a lease of 20 us: handed over %ld times in 2 s\n", moves);
	/* The number of hand-overs depends on the machine. */
	CHECK(node > 1 || moves > 0);
	detach();
}

/* The limit of a coherent region is the same on all nodes, and changes without the lease. */
static void hints_limit(void)
{
	bool strict = policy == KDSM_POLICY_STRICT;

	attach("limit");
	CHECK_IS(counter("limit"), 0);
	meet();
	if (node == 1)
		CHECK_IS(region_set("limit=64M"), 0);
	meet();
	CHECK_IS(counter("limit"), 64 << 20);
	CHECK_IS(counter("lease"), strict ? 100000 : -1);
	fill(node * 16, 16, 4000);
	CHECK(counter("memory") >= counter("resident"));
	meet();
	if (node == 1) {
		/* Of two settings none changes if the region lacks one. */
		CHECK((region_set("lease=1ms limit=32M") == 0) == strict);
		CHECK(region_set("limit=15M") != 0);
	}
	meet();
	CHECK_IS(counter("limit"), (strict ? 32 : 64) << 20);
	CHECK_IS(counter("lease"), strict ? 1000000 : -1);
	meet();
	if (node == 1)
		CHECK_IS(region_set("limit=0"), 0);
	meet();
	CHECK_IS(counter("limit"), 0);
	CHECK_IS(counter("lease"), strict ? 1000000 : -1);
	detach();
}

/* All nodes give all kinds of hints at the same time, and every write is seen. */
static void hints_together(void)
{
	size_t bad = 0;

	attach("together");
	for (unsigned int round = 1; round <= 12; round++) {
		for (uint64_t i = 0; i < 64; i++) {
			words[WORD(i) + node] = round;
			if (i % 16 == round)
				CHECK_IS(advise(KDSM_ADVICE_PREFETCH + (round + node) % 3, 0, 64),
					 0);
		}
		exchange();
		for (uint64_t i = 0; i < 64; i++)
			for (unsigned int n = 0; n < nodes; n++)
				bad += words[WORD(i) + n] != round;
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(hints_prefetch),
	TEST(hints_flush),
	TEST(hints_flush_signature),
	TEST(hints_own),
	TEST(hints_lease),
	TEST(hints_limit),
	TEST(hints_together),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return run_policies("hints", &policy, tests, argc > 1 ? argv[1] : NULL);
}
