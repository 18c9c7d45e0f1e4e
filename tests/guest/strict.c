// SPDX-License-Identifier: GPL-2.0
/*
 * Coherent regions of policy strict, on every node at the same time: ordinary atomics,
 * loads and stores of threads that need not know about nodes. Litmus tests are in litmus.c.
 */
#include "clock.h"
#include "coherent.h"

#define SIZE		(4UL << 20)
#define BLOCK		(block_size / 8)	/* in words */

static uint32_t block_size;

static void attach(const char *name)
{
	attach_region(name, KDSM_POLICY_STRICT, SIZE, block_size);
}

static uint64_t load(size_t word)
{
	return __atomic_load_n(&words[word], __ATOMIC_SEQ_CST);
}

static void store(size_t word, uint64_t value)
{
	__atomic_store_n(&words[word], value, __ATOMIC_SEQ_CST);
}

/* Each node increments one word ten thousand times. */
static void strict_increments(void)
{
	unsigned int i;

	attach("increments");
	for (i = 0; i < 10000; i++)
		__atomic_fetch_add(&words[0], 1, __ATOMIC_SEQ_CST);
	meet();
	CHECK_IS(load(0), 10000 * nodes);
	detach();
}

/* A thread that sees a flag change also sees the writes before the change. */
static void strict_message_passing(void)
{
	uint64_t i, seen, bad = 0;

	attach("passing");
	for (i = 1; i <= 300; i++) {
		if (node == i % nodes) {
			words[BLOCK] = i;
			words[2 * BLOCK + node] = i;
			store(0, i);
			continue;
		}
		while ((seen = load(0)) < i)
			;
		bad += words[BLOCK] < i || words[2 * BLOCK + i % nodes] < i;
	}
	CHECK_IS(bad, 0);
	detach();
}

/* Many blocks, each changed by every node in turn */
static void strict_turns(void)
{
	const size_t blocks = SIZE / block_size < 64 ? SIZE / block_size : 64;
	size_t block, bad = 0;
	unsigned int round;

	attach("turns");
	for (round = 0; round < 3 * nodes; round++) {
		for (block = 0; block < blocks; block++) {
			if ((block + round) % nodes != node)
				continue;
			bad += words[block * BLOCK + 7] != round;
			words[block * BLOCK + 7]++;
		}
		meet();
	}
	CHECK_IS(bad, 0);
	detach();
}

/* Increment a word without pause until end. Return the number of increments. */
static uint64_t increment(double end)
{
	uint64_t count = 0;

	for (; now() < end; count++)
		__atomic_fetch_add(&words[0], 1, __ATOMIC_SEQ_CST);
	return count;
}

/* Read the word without pause until end. Return the number of changes seen. */
static uint64_t watch(double end, double *longest)
{
	uint64_t value, last = 0, changes = 0;
	double start, stop = now();

	while (stop < end) {
		start = stop;
		value = load(0);
		stop = now();
		changes += value != last;
		last = value;
		if (stop - start > *longest)
			*longest = stop - start;
	}
	return changes;
}

/* The times of operations under the same load, in seconds: means, and that of the longest get */
struct raw {
	double get, message;	/* a get of 4 KiB; a message and its answer */
	double longest;
};

static struct raw read_raw(double end)
{
	struct raw raw = { 0 };
	static char page[4096];
	double start, middle, stop = now();
	uint64_t count, old;

	for (count = 0; stop < end; count++) {
		start = stop;
		CHECK_IS(kdsm_get(board, count % (nodes - 1), 16384, page, sizeof(page)), 0);
		middle = now();
		CHECK_IS(kdsm_faa(board, count % (nodes - 1), 20480, 1, &old), 0);
		stop = now();
		raw.get += middle - start;
		raw.message += stop - middle;
		if (middle - start > raw.longest)
			raw.longest = middle - start;
	}
	raw.get /= count;
	raw.message /= count;
	return raw;
}

/*
 * All nodes but the last one increment a word without pause, and the last one reads the word. The
 * queue serves the reader about once in two hand-overs between writers, however busy the host is.
 * KDSM_UNFAIR_SECONDS: duration, in seconds.
 */
static void strict_unfair(void)
{
	const char *time = getenv("KDSM_UNFAIR_SECONDS");
	double seconds = time ? atof(time) : 2, longest = 0;
	uint64_t changes, sum = 0, handovers = 0;
	struct raw raw = { 0 };
	unsigned int i;

	attach("unfair");
	if (node < nodes - 1) {
		words[(1 + node) * BLOCK] = increment(now() + seconds);
		words[(1 + node) * BLOCK + 1] = counter("migrations");
		meet();
		words[(1 + node) * BLOCK] += increment(now() + seconds / 2);
		meet();
	} else {
		changes = watch(now() + seconds, &longest);
		meet();
		if (nodes > 1)
			raw = read_raw(now() + seconds / 2);
		meet();
		for (i = 0; i < nodes - 1; i++) {
			sum += words[(1 + i) * BLOCK];
			handovers += words[(1 + i) * BLOCK + 1];
		}
		CHECK_IS(load(0), sum);
		printf("# %lu increments, %lu hand-overs; the reader sees %lu changes in %.0f s\n",
		       sum, handovers, changes, seconds);
		printf("# the longest read takes %.1f ms\n", longest * 1e3);
		printf("# beside the same writers a get of 4 KiB takes %.2f ms, at most %.1f ms\n",
		       raw.get * 1e3, raw.longest * 1e3);
		printf("# and a message with its answer %.2f ms\n", raw.message * 1e3);
		CHECK(nodes == 1 || 8 * changes >= handovers);
	}
	detach();
}

/* The calls of policy release succeed, and signatures stay empty. */
static void strict_fences(void)
{
	struct kdsm_signature signature = { .floor = 1, .count = 1 };

	attach("fences");
	CHECK_IS(release(&signature), 0);
	CHECK(!signature.floor && !signature.count);
	CHECK_IS(acquire(&signature), 0);
	detach();
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(strict_increments),
	TEST(strict_message_passing),
	TEST(strict_turns),
	TEST(strict_unfair),
	TEST(strict_fences),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 4096, 65536 };
	int status = 0;

	guest_open("strict-meeting");
	board_open("strict-board");
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block_size = sizes[i];
		printf("# blocks of %u bytes\n", block_size);
		status |= guest_run(tests, argc > 1 ? argv[1] : NULL);
	}
	guest_close();
	return status;
}
