// SPDX-License-Identifier: GPL-2.0
/*
 * Remote operations on a partitioned region, from a program on every node at the same time:
 * bytes, atomics, vectors, tickets, errors, waiting. Regions themselves are in region.c.
 *
 * usage: pgas [PART-OF-A-TEST-NAME]
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counter.h"
#include "guest.h"

#define MIB (1UL << 20)
#define PART (8 * MIB)
/* Offsets in a part: data lies below DATA, words for atomics lie from WORDS on. */
#define DATA (6 * MIB)
#define WORDS (7 * MIB)

static struct kdsm_region *region;
static uint8_t *part;

static unsigned int next(void)
{
	return (node + 1) % nodes;
}

static uint64_t word_at(uint64_t offset)
{
	return __atomic_load_n((uint64_t *)(part + offset), __ATOMIC_SEQ_CST);
}

/*
 * Each part has one writer, the node with the preceding number. The pieces depend only on
 * that number, so the part's owner can compute them too: they go to shadow, and if put is
 * set to the part as well.
 */
static void pieces(unsigned int writer, uint8_t *shadow, bool put)
{
	static const size_t lengths[] = {
		1, 2, 3, 7, 8, 9, 15, 64, 65, 1000, 4095, 4096, 4097,
		65535, 65536, 65537, 300000,
	};
	uint64_t seed = 1000 * writer;
	unsigned int i;
	size_t k;

	for (i = 0; i < 60; i++) {
		size_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
		uint64_t offset = guest_mix(++seed) % (DATA - length);

		/* Every third piece lies across the border of two chunks. */
		if (i % 3 == 0)
			offset = (1 + i % 2) * 2 * MIB - 1 - length / 2;
		for (k = 0; k < length; k++)
			shadow[offset + k] = guest_mix(seed * 1000000 + k);
		if (put)
			CHECK_IS(kdsm_put(region, (writer + 1) % nodes, offset,
					  shadow + offset, length), 0);
	}
}

static void pgas_put_get_sizes(void)
{
	uint8_t *shadow = calloc(1, DATA), *got = malloc(DATA);
	unsigned int before = (node + nodes - 1) % nodes;
	uint64_t offset;

	memset(part, 0, DATA);
	meet();
	pieces(node, shadow, true);
	/* Read the part in one piece, then in small odd pieces. */
	memset(got, 0xee, DATA);
	CHECK_IS(kdsm_get(region, next(), 0, got, DATA), 0);
	CHECK(!memcmp(got, shadow, DATA));
	for (offset = 2 * MIB - 20; offset < 2 * MIB + 4; offset++) {
		size_t length = 1 + offset % 19;

		memset(got, 0xee, 64);
		CHECK_IS(kdsm_get(region, next(), offset, got + 1, length), 0);
		CHECK(got[0] == 0xee && got[length + 1] == 0xee);
		CHECK(!memcmp(got + 1, shadow + offset, length));
	}
	meet();
	memset(shadow, 0, DATA);
	pieces(before, shadow, false);
	CHECK(!memcmp(part, shadow, DATA));
	free(shadow);
	free(got);
}

static void pgas_long_put_get(void)
{
	static const size_t lengths[] = { 2 * MIB, 2 * MIB + 1, 5 * MIB + 77 };
	uint8_t *out = malloc(DATA), *got = malloc(DATA);
	unsigned int i;
	size_t k;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < lengths[i]; k++)
			out[k] = guest_mix(k + i);
		CHECK_IS(kdsm_put(region, next(), 13, out, lengths[i]), 0);
		memset(got, 0, lengths[i]);
		CHECK_IS(kdsm_get(region, next(), 13, got, lengths[i]), 0);
		CHECK(!memcmp(out, got, lengths[i]));
	}
	free(out);
	free(got);
}

#define THREADS 3
#define ADDS 60

/* faa and cas on a word of every node, this one included. */
static void *add(void *arg)
{
	unsigned int target, i;
	uint64_t former, seen;

	(void)arg;
	for (i = 0; i < ADDS; i++) {
		for (target = 0; target < nodes; target++) {
			CHECK_IS(kdsm_faa(region, target, WORDS, 3, &former), 0);
			seen = 0;
			for (;;) {
				CHECK_IS(kdsm_cas(region, target, WORDS + 8, seen, seen + 1,
						  &former), 0);
				if (former == seen)
					break;
				seen = former;
			}
		}
	}
	return NULL;
}

static void pgas_atomics_sum(void)
{
	pthread_t threads[THREADS];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet();
	CHECK_IS(word_at(WORDS), 3 * THREADS * ADDS * nodes);
	CHECK_IS(word_at(WORDS + 8), THREADS * ADDS * nodes);
	CHECK_IS(kdsm_get(region, next(), WORDS, &sum, 8), 0);
	CHECK_IS(sum, 3 * THREADS * ADDS * nodes);
}

/*
 * A table in the part of node 0: an index that crosses the border of two chunks, and nodes.
 * Behind it are areas of words for the checks.
 */
#define FIND_FULL (WORDS + MIB / 4)
#define FIND_AGREED (WORDS + MIB / 2)	/* FIND_AGREED_BYTES for each kind of walk */
#define FIND_AGREED_BYTES 4096
#define FIND_LONG (WORDS + MIB * 3 / 4)	/* KDSM_FIND_PROBES_MAX entries */
#define FINDS 20
#define INDEX (2 * MIB - 128)
#define ENTRIES 512
#define NODES (3 * MIB)
#define KEYS 300

/* Length of a walk's runs, in entries: the whole index, as in small tables, or less */
static const uint32_t find_runs[] = { ENTRIES, 32 };
static uint32_t find_run;

/*
 * Find the key or put it, and store the number that the table has for it: 1 + node * KEYS +
 * key, where node put the key.
 */
static void find_key(unsigned int key, uint64_t *number)
{
	const uint64_t mine = 1 + (uint64_t)node * KEYS + key, pair[2] = { key + 1, key * 7 };
	struct kdsm_find find = {
		.entries = ENTRIES, .nodes = KEYS, .data = NODES, .first = 1,
		.node = { pair[0], pair[1] }, .entry = key * 31 % ENTRIES, .probes = ENTRIES,
		.fragment = key % 5, .run = find_run,
	};
	struct kdsm_op op;

	for (;;) {
		find.number = mine;
		find.outcome = 0;
		op = kdsm_op_find(0, INDEX, &find);
		CHECK_IS(kdsm_vector(region, &op, 1), 0);
		if (find.outcome != KDSM_FIND_ELSEWHERE || (find.number - 1) % KEYS == key)
			break;
		/* The entry holds another key with the same fragment: continue after it. */
		CHECK(find.probes);
		CHECK_IS(find.done + find.probes, ENTRIES);
		find.entry = kdsm_walk_next(find.entry, ENTRIES, find.done, find_run);
	}
	CHECK(find.outcome != KDSM_FIND_FULL && (find.number - 1) % KEYS == key);
	/*
	 * The table is on node 0, so only a number of node 0 can be FOUND; and only this
	 * thread's own number can be PUT.
	 */
	CHECK((find.outcome == KDSM_FIND_FOUND) <= (find.number <= KEYS));
	CHECK((find.outcome == KDSM_FIND_PUT) <= (find.number == mine));
	*number = find.number;
}

static void *find_all(void *arg)
{
	uint64_t *numbers = arg;
	unsigned int i, key;

	for (i = 0; i < KEYS; i++) {
		key = (i * 7 + node * 101) % KEYS;
		find_key(key, &numbers[key]);
	}
	return NULL;
}

/* All threads of all nodes find all keys, by one kind of walk. */
static void find_together(unsigned int kind)
{
	static uint64_t numbers[THREADS][KEYS];
	const uint64_t agreed = FIND_AGREED + kind * FIND_AGREED_BYTES;
	pthread_t threads[THREADS];
	unsigned int i, key;
	uint64_t former;

	find_run = find_runs[kind];
	if (node == 0)
		memset(part + INDEX, 0, ENTRIES * 8);
	for (key = 0; key < KEYS && node == 0; key++) {
		((uint64_t *)(part + NODES))[2 * key] = key + 1;
		((uint64_t *)(part + NODES))[2 * key + 1] = key * 7;
	}
	meet();
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, find_all, numbers[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet();
	/* All threads agree on the numbers; different nodes compare theirs in words of node 0. */
	for (key = 0; key < KEYS; key++) {
		for (i = 1; i < THREADS; i++)
			CHECK_IS(numbers[i][key], numbers[0][key]);
		CHECK_IS(kdsm_cas(region, 0, agreed + 8 * key, 0, numbers[0][key], &former), 0);
		CHECK(!former || former == numbers[0][key]);
	}
	meet();
}

static void pgas_find(void)
{
	struct kdsm_find find = { .entries = 4, .nodes = 4, .data = NODES, .number = 5,
				  .probes = 4, .fragment = 9, .run = 4 };
	struct kdsm_op op = kdsm_op_find(next(), FIND_FULL, &find);
	const uint64_t other = 0x8080808080808081;
	unsigned int i;

	/* The target's CPU does a find, and its atomics would race with those of the device. */
	if (kdsm_domain(kdsm) == KDSM_DOMAIN_HCA) {
		CHECK_IS(kdsm_vector(region, &op, 1), -EOPNOTSUPP);
		meet();
		return;
	}
	for (i = 0; i < sizeof(find_runs) / sizeof(*find_runs); i++)
		find_together(i);
	/* An index that is full of entries with fragment 1, which find does not look for. */
	for (i = 0; i < 4; i++)
		CHECK_IS(kdsm_put(region, next(), FIND_FULL + 8 * i, &other, 8), 0);
	CHECK_IS(kdsm_vector(region, &op, 1), 0);
	CHECK_IS(find.outcome, KDSM_FIND_FULL);
	CHECK_IS(find.probes, 0);
	CHECK_IS(find.done, 4);
	/*
	 * Entry 0 is empty again. The walk has examined one entry and continues at entry 1,
	 * which ends its run of 2; the next entry is (1 + 1 + 2) % 4 = 0.
	 */
	CHECK_IS(kdsm_put(region, next(), FIND_FULL, &(uint64_t){ 0 }, 8), 0);
	find.outcome = 0;
	find.number = 5;
	find.entry = 1;
	find.done = 1;
	find.probes = 2;
	find.run = 2;
	CHECK_IS(kdsm_vector(region, &op, 1), 0);
	CHECK_IS(find.outcome, KDSM_FIND_PUT);
	CHECK_IS(find.entry, 0);
	CHECK_IS(find.done, 3);
	meet();
}

/* Node 1 sends node 0 finds that examine so many entries, and find nothing. */
static int64_t find_in_vain(unsigned int probes)
{
	struct kdsm_find find;
	struct kdsm_op op = kdsm_op_find(0, FIND_LONG, &find);
	int64_t deferred = guest_counter(1, "am_deferred");
	unsigned int i;

	meet();
	for (i = 0; node == 1 && i < FINDS; i++) {
		find = (struct kdsm_find){ .entries = KDSM_FIND_PROBES_MAX, .nodes = 4,
			.data = NODES, .number = 5, .probes = probes, .fragment = 9,
			.run = KDSM_FIND_PROBES_MAX };
		CHECK_IS(kdsm_vector(region, &op, 1), 0);
		CHECK_IS(find.outcome, KDSM_FIND_FULL);
		CHECK_IS(find.done, probes);
	}
	meet();
	return guest_counter(1, "am_deferred") - deferred;
}

/* A softirq serves short finds only, because it delays all tasks of its CPU. */
static void pgas_find_long(void)
{
	const uint64_t other = 0x8080808080808081;
	int64_t deferred;
	unsigned int i;

	if (nodes < 2 || kdsm_domain(kdsm) == KDSM_DOMAIN_HCA)
		return;
	for (i = 0; node == 0 && i < KDSM_FIND_PROBES_MAX; i++)
		((uint64_t *)(part + FIND_LONG))[i] = other;
	meet();
	deferred = find_in_vain(16);
	if (node == 0)
		CHECK(deferred < FINDS / 2);
	meet();
	deferred = find_in_vain(KDSM_FIND_PROBES_MAX);
	if (node == 0)
		CHECK(deferred >= FINDS);
	meet();
}

static void pgas_vector_mixed(void)
{
	uint64_t out[64], in[64] = { 0 };
	struct kdsm_op ops[128];
	uint64_t base = 4 * MIB + node * 65536;
	unsigned int i, n = 0;

	for (i = 0; i < 32; i++) {
		out[i] = guest_mix(node * 100 + i);
		ops[n++] = kdsm_op_put(i % nodes, base + 8 * i, &out[i], 8);
	}
	CHECK_IS(kdsm_vector(region, ops, n), 0);
	for (i = n = 0; i < 32; i++) {
		ops[n++] = kdsm_op_get(i % nodes, base + 8 * i, &in[i], 8);
		ops[n++] = kdsm_op_faa(i % nodes, WORDS + 4096 + node * 1024 + 8 * i, i + 1);
		ops[n++] = kdsm_op_cas(i % nodes, WORDS + 65536 + node * 1024 + 8 * i, 0, i + 5);
		ops[n++] = kdsm_op_get(i % nodes, base + 8 * i, &in[32 + i], 4);
	}
	CHECK_IS(kdsm_vector(region, ops, n), 0);
	for (i = 0; i < 32; i++) {
		CHECK(in[i] == out[i]);
		CHECK((uint32_t)in[32 + i] == (uint32_t)out[i]);
		CHECK_IS(ops[4 * i + 1].result, 0);
		CHECK_IS(ops[4 * i + 2].result, 0);
	}
	/* Repeat the vector: its atomics now return the values of the first pass. */
	CHECK_IS(kdsm_vector(region, ops, n), 0);
	for (i = 0; i < 32; i++) {
		CHECK_IS(ops[4 * i + 1].result, i + 1);
		CHECK_IS(ops[4 * i + 2].result, i + 5);
	}
}

/* A vector with more operations than one submission holds; each former value comes up once. */
static void pgas_vector_long(void)
{
	enum { COUNT = KDSM_MAX_OPS + 300 };
	static struct kdsm_op ops[COUNT];
	static bool seen[COUNT];
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		ops[i] = kdsm_op_faa(next(), WORDS + 16, 1);
	CHECK_IS(kdsm_vector(region, ops, COUNT), 0);
	for (i = 0; i < COUNT; i++) {
		if (!CHECK(ops[i].result < COUNT && !seen[ops[i].result]))
			break;
		seen[ops[i].result] = true;
	}
}

/* Remote operations and one on the own part, with more bytes than one ticket holds */
static void pgas_vector_large(void)
{
	enum { COUNT = KDSM_MAX_INFLIGHT_BYTES / KDSM_MAX_OP_LENGTH + 1 };
	uint8_t *to = malloc(KDSM_MAX_OP_LENGTH);
	struct kdsm_op ops[COUNT + 1];
	struct kdsm_counts before = { .argsz = sizeof(before) }, after = { .argsz = sizeof(after) };
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		ops[i] = kdsm_op_get(next(), 0, to, KDSM_MAX_OP_LENGTH);
	ops[COUNT] = kdsm_op_get(node, 0, to, 8);
	kdsm_counts(kdsm, &before);
	CHECK_IS(kdsm_vector(region, ops, COUNT + 1), 0);
	kdsm_counts(kdsm, &after);
	CHECK_IS(after.get - before.get, nodes > 1 ? COUNT : 0);
	free(to);
}

/* Each operation has a status of its own, and the call returns the first error. */
static void pgas_bad_operations(void)
{
	uint64_t value = 0;
	struct kdsm_op good = kdsm_op_faa(next(), WORDS + 24, 1);
	struct kdsm_op ops[16];
	static const int expected[16] = {
		0, -ERANGE, -ERANGE, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL,
		-EINVAL, -EINVAL, -EFAULT, -EFAULT, -ERANGE, -EINVAL, -EINVAL, 0,
	};
	unsigned int i;

	ops[0] = good;
	ops[1] = kdsm_op_get(next(), PART - 4, &value, 8);
	ops[2] = kdsm_op_put(next(), UINT64_MAX - 2, &value, 8);
	ops[3] = kdsm_op_faa(next(), WORDS + 4, 1);
	ops[4] = kdsm_op_get(next(), 0, &value, 0);
	ops[5] = kdsm_op_get(next(), 0, &value, KDSM_MAX_OP_LENGTH + 1);
	ops[6] = kdsm_op_get(nodes, 0, &value, 8);
	ops[7] = good;
	ops[7].opcode = 200;
	ops[8] = good;
	ops[8].flags = 0x80;
	ops[9] = good;
	ops[9].reserved = 1;
	ops[10] = kdsm_op_get(next(), 0, NULL, 8);
	ops[11] = kdsm_op_put(next(), 0, (void *)0xdead000000000000, 8);
	ops[12] = kdsm_op_cas(next(), PART, 0, 0);
	ops[13] = good;
	ops[13].length = 4;
	ops[14] = good;
	ops[14].flags = KDSM_OP_NOTIFY;
	ops[15] = good;
	CHECK_IS(kdsm_vector(region, ops, 16), -ERANGE);
	for (i = 0; i < 16; i++)
		if (ops[i].status != expected[i] && CHECK(ops[i].status == expected[i]) == 0)
			printf("#   operation %u: %d, should be %d\n",
			       i, ops[i].status, expected[i]);
	CHECK(ops[15].result + ops[0].result == 1);
	CHECK_IS(kdsm_get(region, nodes, 0, &value, 8), -EINVAL);
	CHECK_IS(kdsm_get(region, next(), PART - 4 * MIB, &value, 5 * MIB), -ERANGE);
}

static void pgas_tickets(void)
{
	enum { TICKETS = 20, EACH = 5 };
	static struct kdsm_op ops[TICKETS][EACH];
	static uint64_t in[TICKETS][EACH], out[TICKETS][EACH];
	struct kdsm_ticket tickets[TICKETS];
	uint64_t base = 5 * MIB + node * 8192;
	unsigned int i, k;

	for (i = 0; i < TICKETS; i++) {
		for (k = 0; k < EACH; k++) {
			out[i][k] = guest_mix(1000 * node + 10 * i + k);
			ops[i][k] = kdsm_op_put((next() + k) % nodes, base + 8 * (i * EACH + k),
						&out[i][k], 8);
		}
		CHECK_IS(kdsm_submit(region, ops[i], EACH, &tickets[i]), 0);
		/* The submission has already copied the bytes of a put. */
		memset(out[i], 0, sizeof(out[i]));
	}
	/* Complete the tickets in another order than that of their submissions. */
	for (i = 0; i < TICKETS; i++)
		CHECK_IS(kdsm_complete(region, &tickets[(i * 7) % TICKETS], 30 * SECOND), 0);
	for (i = 0; i < TICKETS; i++) {
		for (k = 0; k < EACH; k++)
			ops[i][k] = kdsm_op_get((next() + k) % nodes, base + 8 * (i * EACH + k),
						&in[i][k], 8);
		CHECK_IS(kdsm_submit(region, ops[i], EACH, &tickets[i]), 0);
	}
	for (i = TICKETS; i-- > 0; ) {
		int ret;

		/* Poll with timeout 0 until the ticket is complete. */
		while ((ret = kdsm_complete(region, &tickets[i], 0)) == -ETIMEDOUT)
			usleep(1000);
		CHECK_IS(ret, 0);
		for (k = 0; k < EACH; k++)
			CHECK(in[i][k] == guest_mix(1000 * node + 10 * i + k));
		CHECK_IS(kdsm_complete(region, &tickets[i], 0), -ENOENT);
	}
	ops[0][0] = kdsm_op_faa(next(), PART, 1);
	CHECK_IS(kdsm_submit(region, ops[0], 1, &tickets[0]), 0);
	CHECK_IS(kdsm_complete(region, &tickets[0], KDSM_FOREVER), -ERANGE);
}

/* Submissions beyond the limits are refused, and succeed after earlier ones complete. */
static void pgas_tickets_limits(void)
{
	static struct kdsm_op ops[KDSM_MAX_TICKETS + 1];
	static struct kdsm_ticket tickets[KDSM_MAX_TICKETS + 1];
	uint8_t *big = malloc(2 * MIB);
	unsigned int i, n;
	int ret = 0;

	for (n = 0; n <= KDSM_MAX_TICKETS; n++) {
		ops[n] = kdsm_op_faa(next(), WORDS + 32, 1);
		ret = kdsm_submit(region, &ops[n], 1, &tickets[n]);
		if (ret)
			break;
	}
	CHECK_IS(ret, -EAGAIN);
	CHECK_IS(n, KDSM_MAX_TICKETS);
	for (i = 0; i < n; i++)
		CHECK_IS(kdsm_complete(region, &tickets[i], KDSM_FOREVER), 0);

	for (n = 0; n < 16; n++) {
		ops[n] = kdsm_op_get(next(), 0, big, 2 * MIB);
		ret = kdsm_submit(region, &ops[n], 1, &tickets[n]);
		if (ret)
			break;
	}
	CHECK_IS(ret, -EAGAIN);
	CHECK_IS(n, KDSM_MAX_INFLIGHT_BYTES / (2 * MIB));
	for (i = 0; i < n; i++)
		CHECK_IS(kdsm_complete(region, &tickets[i], KDSM_FOREVER), 0);
	CHECK_IS(kdsm_submit(region, ops, 1, tickets), 0);
	CHECK_IS(kdsm_complete(region, tickets, KDSM_FOREVER), 0);
	free(big);
}

/* Wait until the word has this value. */
static void await(uint64_t word, uint64_t value)
{
	uint64_t seen;

	while ((seen = word_at(word)) != value && !failures)
		CHECK_IS(kdsm_wait(region, word, seen, 20 * SECOND), 0);
}

/* Nodes 0 and 1 notify each other in turn; the other nodes only meet. */
static void pgas_notify_wait(void)
{
	const uint64_t word = WORDS + 64;
	uint64_t i;

	CHECK_IS(kdsm_wait(region, word, 0, 0), -ETIMEDOUT);
	CHECK_IS(kdsm_wait(region, word, 0, 20 * MS), -ETIMEDOUT);
	CHECK_IS(kdsm_wait(region, word, 1, KDSM_FOREVER), 0);
	CHECK_IS(kdsm_wait(region, word + 4, 0, 0), -EINVAL);
	CHECK_IS(kdsm_wait(region, PART, 0, 0), -ERANGE);
	CHECK_IS(kdsm_put_notify(region, next(), 4, 0), -EINVAL);
	CHECK_IS(kdsm_put_notify(region, next(), PART, 0), -ERANGE);
	meet();
	for (i = 1; i <= 300 && node < 2 && nodes > 1; i++) {
		if (node == 0)
			CHECK_IS(kdsm_put_notify(region, 1, word, i), 0);
		await(word, i);
		if (node == 1)
			CHECK_IS(kdsm_put_notify(region, 0, word, i), 0);
	}
	meet();
	/* Notify after the waiters have gone to sleep. */
	if (node == 0) {
		usleep(100000);
		for (i = 1; i < nodes; i++)
			CHECK_IS(kdsm_put_notify(region, i, word + 8, 1ULL << 60), 0);
	} else {
		CHECK_IS(kdsm_wait(region, word + 8, 0, 20 * SECOND), 0);
		CHECK(word_at(word + 8) == 1ULL << 60);
	}
}

static void *wait_word(void *arg)
{
	CHECK_IS(kdsm_wait(region, *(uint64_t *)arg, 0, 20 * SECOND), 0);
	return NULL;
}

/* A thread of the same node notifies, which takes a path of its own. */
static void pgas_notify_own(void)
{
	uint64_t word = WORDS + 128;
	pthread_t thread;

	pthread_create(&thread, NULL, wait_word, &word);
	usleep(50000);
	CHECK_IS(kdsm_put_notify(region, node, word, 1), 0);
	pthread_join(thread, NULL);
}

/* A put that notifies takes effect after earlier puts of its vector to the same node. */
static void pgas_notify_order(void)
{
	const uint64_t flag = WORDS + 192, data = 3 * MIB;
	static uint8_t out[40000];
	struct kdsm_op ops[3];
	uint64_t i;
	unsigned int k;

	for (i = 1; i <= 20; i++) {
		memset(out, i, sizeof(out));
		ops[0] = kdsm_op_put(next(), data, out, sizeof(out));
		ops[1] = kdsm_op_put(next(), data + sizeof(out), out, 100);
		ops[2] = kdsm_op_put(next(), flag, &i, 8);
		ops[2].flags = KDSM_OP_NOTIFY;
		CHECK_IS(kdsm_vector(region, ops, 3), 0);
		await(flag, i);
		for (k = 0; k < sizeof(out) + 100; k++)
			if (!CHECK(part[data + k] == i))
				break;
		meet();
	}
}

/* A notifying put of many words, across chunks: a waiter on the first word wakes, and sees all. */
static void pgas_notify_long(void)
{
	static uint64_t out[16 * 1024];
	uint64_t i, k, words, data, seen;
	struct kdsm_op op;

	for (i = 1; i <= 4 * nodes; i++) {
		words = i % 2 ? sizeof(out) / 8 : 32;
		data = 2 * MIB - words / 4 * 8;
		seen = word_at(data);
		meet();
		if (i % nodes == node) {
			for (k = 0; k < words; k++)
				out[k] = i << 32 | k;
			op = kdsm_op_put(next(), data, out, words * 8);
			op.flags = KDSM_OP_NOTIFY;
			usleep(50000);
			CHECK_IS(kdsm_vector(region, &op, 1), 0);
		} else if ((i + 1) % nodes == node) {
			CHECK_IS(kdsm_wait(region, data, seen, 20 * SECOND), 0);
			for (k = words; k--; )
				if (!CHECK(word_at(data + 8 * k) == (i << 32 | k)))
					break;
		}
		meet();
	}
}

/* A thread that only loads the word that a put notifies sees what came before the put. */
static void pgas_notify_poll(void)
{
	const uint64_t flag = WORDS + 200, data = 4 * MIB;
	static uint64_t out[512];
	struct kdsm_op ops[2];
	uint64_t i;
	unsigned int k;

	for (i = 1; i <= 200; i++) {
		for (k = 0; k < 512; k++)
			out[k] = i;
		ops[0] = kdsm_op_put(next(), data, out, sizeof(out));
		ops[1] = kdsm_op_put(next(), flag, &i, 8);
		ops[1].flags = KDSM_OP_NOTIFY;
		CHECK_IS(kdsm_vector(region, ops, 2), 0);
		while (word_at(flag) != i && !failures)
			sched_yield();
		for (k = 0; k < 512; k++)
			if (!CHECK(word_at(data + 8 * k) == i))
				break;
		meet();
	}
	/* Of two words that a thread puts, the second is there last, wherever the thread runs. */
	for (i = 1; i <= 2000; i++)
		CHECK_IS(kdsm_put_notify(region, next(), flag, i), 0);
	await(flag, 2000);
	usleep(100000);
	CHECK(word_at(flag) == 2000);
	meet();
}

/* A put with KDSM_OP_NOTIFY fails with an earlier put, also in a batch of its own. */
static void pgas_notify_failed(void)
{
	const uint64_t flag = WORDS + 216;
	static uint8_t out[2 * MIB];
	uint64_t one = 1;
	struct kdsm_op ops[8];
	unsigned int i;

	ops[0] = kdsm_op_put(next(), DATA, (void *)8, 8);
	ops[1] = kdsm_op_put(next(), flag, &one, 8);
	ops[1].flags = KDSM_OP_NOTIFY;
	CHECK_IS(kdsm_vector(region, ops, 2), -EFAULT);
	CHECK_IS(ops[1].status, -EFAULT);
	/* More than the module has in flight at a time */
	for (i = 1; i < 7; i++)
		ops[i] = kdsm_op_put(next(), 0, out, sizeof(out));
	ops[7] = kdsm_op_put(next(), flag, &one, 8);
	ops[7].flags = KDSM_OP_NOTIFY;
	CHECK_IS(kdsm_vector(region, ops, 8), -EFAULT);
	CHECK_IS(ops[6].status, 0);
	CHECK_IS(ops[7].status, -EFAULT);
	CHECK_IS(kdsm_settle(kdsm), 0);
	meet();
	CHECK(word_at(flag) == 0);
	meet();
	ops[0].addr = (uintptr_t)out;
	memset(out, 1, sizeof(out));
	CHECK_IS(kdsm_vector(region, ops, 8), 0);
	await(flag, 1);
	for (i = 0; i < sizeof(out); i += 8)
		if (!CHECK(word_at(i) == UINT64_C(0x0101010101010101)))
			break;
	meet();
}

/* Settling costs a message for a connection that carried puts; after it all nodes see them. */
static void pgas_settle(void)
{
	const uint64_t data = WORDS + 65536;
	struct kdsm_counts before = { .argsz = sizeof(before) }, after = { .argsz = sizeof(after) };
	struct kdsm_barrier barrier;
	uint64_t i, k, seen;

	kdsm_barrier_init(&barrier, region, WORDS + 384);
	CHECK_IS(kdsm_settle(kdsm), 0);
	kdsm_counts(kdsm, &before);
	CHECK_IS(kdsm_settle(kdsm), 0);
	kdsm_counts(kdsm, &after);
	CHECK(after.am == before.am);
	CHECK(after.calls == before.calls);
	for (i = 0; i < 20; i++)
		CHECK_IS(kdsm_put(region, next(), data - 8, &i, 8), 0);
	CHECK_IS(kdsm_settle(kdsm), 0);
	kdsm_counts(kdsm, &after);
	CHECK(after.am > before.am && after.am - before.am <= 4);
	for (i = 1; i <= 100; i++) {
		for (k = 0; k < nodes; k++)
			CHECK_IS(kdsm_put(region, k, data + 8 * node, &i, 8), 0);
		CHECK_IS(kdsm_barrier_wait(&barrier, 60 * SECOND), 0);
		for (k = 0; k < nodes; k++) {
			CHECK(word_at(data + 8 * k) == i);
			CHECK_IS(kdsm_get(region, next(), data + 8 * k, &seen, 8), 0);
			CHECK(seen == i);
		}
		CHECK_IS(kdsm_barrier_wait(&barrier, 60 * SECOND), 0);
	}
}

static void pgas_barrier(void)
{
	struct kdsm_barrier barrier;
	unsigned int i, k;
	uint64_t value;

	kdsm_barrier_init(&barrier, region, WORDS + 256);
	for (i = 1; i <= 1000; i++) {
		*(volatile uint64_t *)(part + WORDS + 512) = i;
		CHECK_IS(kdsm_barrier_wait(&barrier, 60 * SECOND), 0);
		if (i % 50)
			continue;
		/* Every node has arrived in this round, and none has completed the next one. */
		for (k = 0; k < nodes; k++) {
			CHECK_IS(kdsm_get(region, k, WORDS + 512, &value, 8), 0);
			CHECK(value == i || value == i + 1);
		}
	}
	CHECK_IS(barrier.generation, 1000);
}

static void pgas_fork(void)
{
	const uint64_t word = WORDS + 1024;
	uint64_t former;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		failures = 0;
		*(uint64_t *)(part + word) = 77;
		CHECK_IS(kdsm_faa(region, next(), word + 8, 5, &former), 0);
		CHECK_IS(kdsm_get(region, node, word, &former, 8), 0);
		fflush(stdout);
		_exit(!!failures);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_IS(status, 0);
	CHECK_IS(word_at(word), 77);
	CHECK_IS(kdsm_faa(region, next(), word + 8, 1, &former), 0);
	CHECK_IS(former, 5);
}

/* The parent submits and the child completes: the child receives the bytes. */
static void pgas_fork_ticket(void)
{
	uint64_t value = 0, out = 4242 + node;
	struct kdsm_ticket ticket;
	struct kdsm_op op;
	int status;
	pid_t pid;

	CHECK_IS(kdsm_put(region, next(), WORDS + 2048, &out, 8), 0);
	op = kdsm_op_get(next(), WORDS + 2048, &value, 8);
	CHECK_IS(kdsm_submit(region, &op, 1, &ticket), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(kdsm_complete(region, &ticket, KDSM_FOREVER) || value != out);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_IS(status, 0);
	CHECK_IS(value, 0);
	CHECK_IS(kdsm_complete(region, &ticket, 0), -ENOENT);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void pgas_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, 3 * MS }, { 0, 3 * MS } };
	uint64_t former, last = 0;
	timer_t timer;
	int i;

	sigaction(SIGUSR1, &action, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	CHECK_IS(kdsm_wait(region, WORDS + 3072, 0, 30 * SECOND), -EINTR);
	/* Every operation is done once, even if signals interrupt the calls. */
	for (i = 0; i < 200; i++) {
		struct kdsm_op op = kdsm_op_faa(next(), WORDS + 3080, 1);
		struct kdsm_ticket ticket;

		CHECK_IS(kdsm_faa(region, next(), WORDS + 3080, 1, &former), 0);
		CHECK(!i || former == last + 1);
		CHECK_IS(kdsm_submit(region, &op, 1, &ticket), 0);
		CHECK_IS(kdsm_complete(region, &ticket, 60 * SECOND), 0);
		CHECK(op.result == former + 1);
		last = op.result;
	}
	timer_delete(timer);
}

/* The library counts exactly the operations that the program asked for. */
static void pgas_counts(void)
{
	struct kdsm_counts before = { .argsz = sizeof(before) }, after = { .argsz = sizeof(after) };
	uint64_t value = 0;

	kdsm_counts(kdsm, &before);
	kdsm_get(region, next(), 0, &value, 8);
	kdsm_put(region, next(), 0, &value, 8);
	kdsm_cas(region, next(), WORDS + 4000, 0, 0, NULL);
	kdsm_faa(region, next(), WORDS + 4000, 0, NULL);
	kdsm_get(region, node, 0, &value, 8);
	kdsm_faa(region, node, WORDS + 4000, 0, NULL);
	kdsm_counts(kdsm, &after);
	if (nodes == 1)
		return;
	CHECK_IS(after.get - before.get, 1);
	CHECK_IS(after.put - before.put, 1);
	CHECK_IS(after.cas - before.cas, 1);
	CHECK(after.faa - before.faa == (kdsm_domain(kdsm) == KDSM_DOMAIN_HCA ? 2 : 1));
	CHECK_IS(after.am - before.am, kdsm_domain(kdsm) == KDSM_DOMAIN_SW ? 2 : 0);
}

static const struct guest_test tests[] = {
#define TEST(name) { #name, name }
	TEST(pgas_put_get_sizes),
	TEST(pgas_long_put_get),
	TEST(pgas_atomics_sum),
	TEST(pgas_find),
	TEST(pgas_find_long),
	TEST(pgas_vector_mixed),
	TEST(pgas_vector_long),
	TEST(pgas_vector_large),
	TEST(pgas_bad_operations),
	TEST(pgas_tickets),
	TEST(pgas_tickets_limits),
	TEST(pgas_notify_wait),
	TEST(pgas_notify_own),
	TEST(pgas_notify_order),
	TEST(pgas_notify_long),
	TEST(pgas_notify_poll),
	TEST(pgas_notify_failed),
	TEST(pgas_settle),
	TEST(pgas_barrier),
	TEST(pgas_fork),
	TEST(pgas_fork_ticket),
	TEST(pgas_signals),
	TEST(pgas_counts),
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	int ret;

	guest_open("pgas-meeting");
	if (nodes < 2) {
		printf("1..0 # skip: takes two nodes\n");
		return 0;
	}
	attr.size = (uint64_t)nodes * PART;
	ret = kdsm_region_open(kdsm, "pgas", &attr, &region);
	if (ret)
		guest_die("region", ret);
	part = kdsm_region_part(region);
	ret = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	guest_close();
	return ret;
}
