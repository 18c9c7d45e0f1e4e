// SPDX-License-Identifier: GPL-2.0
/* Coherent regions on the local backend, and signatures. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit.h"
#include <kdsm/coherent.h>

#define SIZE	(1UL << 20)
#define MS	1000000ULL

static void opening(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = SIZE - 5,
		.policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region *region, *again;
	uint8_t *memory;

	assert_int_equal(kdsm_region_open(kdsm, "c", &attr, &region), 0);
	assert_int_equal(kdsm_region_size(region), SIZE);
	assert_int_equal(kdsm_region_block_size(region), 4096);
	assert_int_equal(kdsm_region_part_size(region), 0);
	assert_null(kdsm_region_part(region));
	memory = kdsm_region_address(region);
	assert_int_equal(memory[0] | memory[SIZE - 1], 0);
	memory[SIZE - 1] = 1;

	assert_int_equal(kdsm_region_open(kdsm, "c", NULL, &again), 0);
	assert_ptr_equal(again, region);
	kdsm_region_close(again);
	attr.policy = 0;
	assert_int_equal(kdsm_region_open(kdsm, "c", &attr, &again), -EINVAL);
	kdsm_region_close(region);

	region = ((struct unit *)*state)->region;
	assert_int_equal(kdsm_region_size(region), UNIT_PART);
	assert_ptr_equal(kdsm_region_address(region), kdsm_region_part(region));
}

static void no_operations(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = SIZE,
		.policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_op op = kdsm_op_faa(0, 0, 1);
	struct kdsm_barrier barrier;
	struct kdsm_region *region;
	struct kdsm_ticket ticket;
	uint64_t word = 0;

	assert_int_equal(kdsm_region_open(kdsm, "c", &attr, &region), 0);
	assert_int_equal(kdsm_get(region, 0, 0, &word, 8), -EOPNOTSUPP);
	assert_int_equal(kdsm_put(region, 0, 0, &word, 8), -EOPNOTSUPP);
	assert_int_equal(kdsm_get(region, 1, 0, &word, 8), -EOPNOTSUPP);
	assert_int_equal(kdsm_get(region, 1, 0, &word, 8 << 20), -EOPNOTSUPP);
	assert_int_equal(kdsm_cas(region, 0, 0, 0, 1, NULL), -EOPNOTSUPP);
	assert_int_equal(kdsm_faa(region, 0, 0, 1, NULL), -EOPNOTSUPP);
	assert_int_equal(kdsm_faa(region, 1, 0, 1, NULL), -EOPNOTSUPP);
	assert_int_equal(kdsm_vector(region, &op, 1), -EOPNOTSUPP);
	assert_int_equal(kdsm_submit(region, &op, 1, &ticket), -EOPNOTSUPP);
	assert_int_equal(kdsm_complete(region, &ticket, 0), -ENOENT);
	assert_int_equal(kdsm_put_notify(region, 0, 0, 1), -EOPNOTSUPP);
	assert_int_equal(kdsm_wait(region, 0, 1, 0), -EOPNOTSUPP);
	kdsm_barrier_init(&barrier, region, 0);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -EOPNOTSUPP);
	kdsm_region_close(region);
}

static void beside(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region *region, *sync, *found, *other;
	char name[KDSM_NAME_SIZE];

	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", NULL, 0, &region, &sync), -ENOENT);
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", &attr, 5000, &region, &sync), 0);
	assert_int_equal(kdsm_region_size(region), SIZE);
	assert_int_equal(kdsm_region_part_size(sync), 8192);
	assert_int_equal(kdsm_region_open(kdsm, "two.sync", NULL, &found), 0);
	assert_ptr_equal(found, sync);
	kdsm_region_close(found);
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", NULL, 0, &found, &sync), 0);
	assert_ptr_equal(found, region);
	kdsm_region_close(found);
	kdsm_region_close(sync);

	/* The region does not open without its companion. */
	kdsm_region_destroy(kdsm, "two.sync");
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", NULL, 0, &found, &other), -ENOENT);
	assert_null(found);
	kdsm_region_close(region);
	kdsm_region_close(sync);
	assert_int_equal(kdsm_region_open(kdsm, "two", NULL, &region), -ENOENT);

	assert_int_equal(kdsm_region_open_coherent(kdsm, "unit", NULL, 0, &region, &sync),
			 -EOPNOTSUPP);
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", &attr, 0, &region, &sync), -EINVAL);
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", &attr, UINT64_MAX, &region, &sync),
			 -EFBIG);
	attr.policy = KDSM_POLICY_PARTITIONED;
	assert_int_equal(kdsm_region_open_coherent(kdsm, "two", &attr, 1, &region, &sync),
			 -EOPNOTSUPP);
	attr.policy = KDSM_POLICY_RELEASE;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(kdsm_region_open_coherent(kdsm, name, &attr, 1, &region, &sync), -EINVAL);
	name[sizeof(name) - 6] = '\0';
	assert_int_equal(kdsm_region_open_coherent(kdsm, name, &attr, 1, &region, &sync), 0);
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

static void fences(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct unit *unit = *state;
	struct kdsm_region *region, *sync;
	struct kdsm_signature signature;

	assert_int_equal(kdsm_region_open_coherent(unit->kdsm, "f", &attr, 4096, &region, &sync),
			 0);
	memset(&signature, 0xff, sizeof(signature));
	assert_int_equal(kdsm_acquire(region, &signature), -EINVAL);
	assert_int_equal(kdsm_release(region, &signature), 0);
	assert_int_equal(signature.count | signature.floor | signature.reserved, 0);
	assert_int_equal(kdsm_release(region, NULL), 0);
	assert_int_equal(kdsm_acquire(region, &signature), 0);
	assert_int_equal(kdsm_acquire(region, NULL), -EINVAL);
	assert_int_equal(kdsm_release(sync, &signature), -EOPNOTSUPP);
	assert_int_equal(kdsm_acquire(sync, &signature), -EOPNOTSUPP);
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

/* Threads and children share one copy, so nothing is merged. */
static void no_races(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct unit *unit = *state;
	struct kdsm_region *region, *sync;
	uint64_t next = 3, lost = 7;
	struct kdsm_race race;

	assert_int_equal(kdsm_region_open_coherent(unit->kdsm, "d", &attr, 4096, &region, &sync),
			 0);
	*(uint64_t *)kdsm_region_address(region) = 1;
	assert_int_equal(kdsm_release(region, NULL), 0);
	assert_int_equal(kdsm_races(region, &race, 1, &next, &lost), 0);
	assert_int_equal(next | lost, 0);
	assert_int_equal(kdsm_races(region, NULL, 0, &next, NULL), 0);
	assert_int_equal(kdsm_races(sync, &race, 1, &next, &lost), -EOPNOTSUPP);
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

/* One node loses nothing, and a discard leaves what is not lost. */
static void no_losses(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct unit *unit = *state;
	struct kdsm_region *region, *sync;
	uint64_t next = 0, offset = 7, size;

	assert_int_equal(kdsm_region_open_coherent(unit->kdsm, "l", &attr, 4096, &region, &sync),
			 0);
	size = kdsm_region_size(region);
	*(uint64_t *)kdsm_region_address(region) = 42;
	assert_int_equal(kdsm_region_lost(region, &offset, 1, &next), 0);
	assert_int_equal(next, size);
	assert_int_equal(offset, 7);
	assert_int_equal(kdsm_region_discard(region, 0, size), 0);
	assert_int_equal(*(uint64_t *)kdsm_region_address(region), 42);
	assert_int_equal(kdsm_region_discard(region, size, 0), 0);
	assert_int_equal(kdsm_region_discard(region, 1, size), -ERANGE);
	assert_int_equal(kdsm_region_discard(region, UINT64_MAX, 2), -ERANGE);
	assert_int_equal(kdsm_region_lost(sync, &offset, 1, &next), -EOPNOTSUPP);
	assert_int_equal(kdsm_region_discard(sync, 0, 1), -EOPNOTSUPP);
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

static void hints(void **state)
{
	static int (*const all[])(struct kdsm_region *, uint64_t, uint64_t) = {
		kdsm_prefetch, kdsm_flush, kdsm_pin, kdsm_refresh,
	};
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct kdsm_region *region, *sync;
	struct unit *unit = *state;
	uint64_t size;

	assert_int_equal(kdsm_region_open_coherent(unit->kdsm, "h", &attr, 4096, &region, &sync),
			 0);
	size = kdsm_region_size(region);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(all[i](region, 0, size), 0);
		assert_int_equal(all[i](region, size - 1, 1), 0);
		assert_int_equal(all[i](region, size, 0), 0);
		assert_int_equal(all[i](region, size, 1), -ERANGE);
		assert_int_equal(all[i](region, 1, size), -ERANGE);
		assert_int_equal(all[i](region, UINT64_MAX, 2), -ERANGE);
		assert_int_equal(all[i](region, 2, UINT64_MAX), -ERANGE);
		assert_int_equal(all[i](sync, 0, 1), -EOPNOTSUPP);
	}
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

/* ---- homes ---- */

static void homes(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = SIZE,
		.flags = KDSM_REGION_CONTIGUOUS,
	};
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region *region, *sync;

	assert_int_equal(kdsm_region_open(kdsm, "h", &attr, &region), -EINVAL);
	assert_int_equal(kdsm_region_open_coherent(kdsm, "h", &attr, 4096, &region, &sync), 0);
	assert_int_equal(kdsm_region_home(region, SIZE - 1), 0);
	assert_int_equal(kdsm_region_home(region, SIZE), -ERANGE);
	assert_int_equal(kdsm_region_home(sync, 0), -EOPNOTSUPP);
	attr.flags = 0;
	attr.policy = KDSM_POLICY_RELEASE;
	assert_int_equal(kdsm_region_open(kdsm, "h", &attr, &region), -EINVAL);
	assert_int_equal(kdsm_region_open(kdsm, "h", NULL, &region), 0);
	kdsm_region_close(region);
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

/* ---- atomic operations ---- */

#define ADDS	2000

/* Both halves of one 8-byte word, and all of another one */
static const struct {
	uint64_t offset;
	unsigned int size;
	uint64_t add;
} counters[] = {
	{ 0, 4, 3 }, { 4, 4, UINT32_MAX }, { 8, 8, 1ULL << 33 },
};

static void *count(void *arg)
{
	for (unsigned int i = 0; i < ADDS; i++)
		for (size_t j = 0; j < sizeof(counters) / sizeof(counters[0]); j++)
			if (kdsm_atomic_add(arg, counters[j].offset, counters[j].size,
					    KDSM_ATOMIC_RELEASE, counters[j].add, NULL))
				return arg;
	return NULL;
}

static void atomics(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	struct unit *unit = *state;
	struct kdsm_region *region, *sync;
	pthread_t threads[4];
	uint64_t value = 1, *words;
	uint32_t policy;
	void *bad;

	for (policy = KDSM_POLICY_RELEASE; policy <= KDSM_POLICY_STRICT; policy++) {
		attr.policy = policy;
		assert_int_equal(kdsm_region_open_coherent(unit->kdsm, "a", &attr, 4096, &region,
							   &sync), 0);
		words = kdsm_region_address(region);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, count, region), 0);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(pthread_join(threads[i], &bad), 0);
			assert_null(bad);
		}
		for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
			assert_int_equal(kdsm_atomic_load(region, counters[i].offset,
							  counters[i].size, KDSM_ATOMIC_ACQUIRE,
							  &value), 0);
			value -= 4 * ADDS * counters[i].add;
			assert_int_equal(counters[i].size == 4 ? (uint32_t)value : value, 0);
		}

		words[2] = 0x1111111122222222;
		assert_int_equal(kdsm_atomic_exchange(region, 20, 4, 0, 0x9933333333, &value), 0);
		assert_int_equal(value, 0x11111111);
		assert_int_equal(words[2], 0x3333333322222222);
		assert_int_equal(kdsm_atomic_cas(region, 16, 4, KDSM_ATOMIC_ACQUIRE |
						 KDSM_ATOMIC_RELEASE, 0x22222223, 5, &value), 0);
		assert_int_equal(value, 0x22222222);
		assert_int_equal(words[2], 0x3333333322222222);
		assert_int_equal(kdsm_atomic_cas(region, 16, 4, 0, 0x22222222, 5, &value), 0);
		assert_int_equal(words[2], 0x3333333300000005);
		assert_int_equal(kdsm_atomic_cas(region, 16, 8, 0, 5, 6, &value), 0);
		assert_int_equal(value, 0x3333333300000005);
		assert_int_equal(kdsm_atomic_exchange(region, SIZE - 8, 8, 0, UINT64_MAX, NULL), 0);
		assert_int_equal(kdsm_atomic_load(region, SIZE - 4, 4, 0, &value), 0);
		assert_int_equal(value, UINT32_MAX);

		value = 7;
		assert_int_equal(kdsm_atomic_load(region, SIZE, 4, 0, &value), -ERANGE);
		assert_int_equal(kdsm_atomic_load(region, -8ULL, 8, 0, &value), -ERANGE);
		assert_int_equal(kdsm_atomic_load(region, 4, 8, 0, &value), -EINVAL);
		assert_int_equal(kdsm_atomic_load(region, 2, 4, 0, &value), -EINVAL);
		assert_int_equal(kdsm_atomic_load(region, 0, 0, 0, &value), -EINVAL);
		assert_int_equal(kdsm_atomic_load(region, 0, 2, 0, &value), -EINVAL);
		assert_int_equal(kdsm_atomic_load(region, 0, 8, 4, &value), -EINVAL);
		assert_int_equal(kdsm_atomic_add(sync, 0, 8, 0, 1, &value), -EOPNOTSUPP);
		assert_int_equal(value, 7);
		kdsm_region_close(region);
		kdsm_region_close(sync);
	}
}

/* ---- signatures ---- */

static unsigned int writer_of(const struct kdsm_notice *notice, uint64_t block)
{
	return notice->writer + (notice->share ? (block - notice->first) / notice->share : 0);
}

/*
 * Whether the signature demands content of the block that has this write: by the floor, by the
 * notice of the write, by a summary, or by a later notice, whose writer had the write.
 */
static bool tells_of(const struct kdsm_signature *signature, uint64_t ts, unsigned int writer,
		     uint64_t block)
{
	const struct kdsm_notice *notice;
	unsigned int i;

	for (i = 0; i < signature->count; i++) {
		notice = &signature->notices[i];
		if (block - notice->first < notice->count &&
		    (notice->ts > ts || (notice->ts == ts &&
					 (notice->writer == KDSM_WRITER_UNKNOWN ||
					  writer == KDSM_WRITER_UNKNOWN ||
					  writer_of(notice, block) == writer))))
			return true;
	}
	return ts <= signature->floor;
}

static void check_tells(const struct kdsm_signature *sum, const struct kdsm_signature *of)
{
	const struct kdsm_notice *notice;
	uint64_t block;
	unsigned int i;

	assert_true(sum->floor >= of->floor);
	for (i = 0; i < of->count; i++) {
		notice = &of->notices[i];
		for (block = notice->first; block < notice->first + notice->count; block++)
			assert_true(tells_of(sum, notice->ts,
					     notice->writer == KDSM_WRITER_UNKNOWN ?
					     notice->writer : writer_of(notice, block), block));
	}
}

static void make_signature(struct kdsm_signature *signature, unsigned int count, uint64_t step)
{
	uint64_t ts = rand() % 50;
	unsigned int i;

	kdsm_signature_init(signature);
	signature->floor = ts;
	signature->count = count;
	for (i = 0; i < count; i++) {
		ts += rand() % step + (i == 0);
		signature->notices[i] = (struct kdsm_notice){
			.ts = ts, .first = rand() % 8, .count = 1 + rand() % 4,
			.writer = rand() % 3,
		};
	}
}

static void check_form(const struct kdsm_signature *signature)
{
	unsigned int i;

	assert_true(signature->count <= KDSM_NOTICES_MAX);
	assert_int_equal(signature->reserved, 0);
	for (i = 0; i < signature->count; i++) {
		assert_true(signature->notices[i].ts > signature->floor);
		assert_true(!i || signature->notices[i - 1].ts <= signature->notices[i].ts);
	}
}

static void merging(void **state)
{
	struct kdsm_signature a, b, sum;
	unsigned int i;
	bool fits;

	(void)state;
	srand(1);
	for (i = 0; i < 2000; i++) {
		make_signature(&a, rand() % (KDSM_NOTICES_MAX + 1), 1 + rand() % 4);
		make_signature(&b, rand() % (KDSM_NOTICES_MAX + 1), 1 + rand() % 4);
		sum = a;
		kdsm_signature_merge(&sum, &b);
		check_form(&sum);
		check_tells(&sum, &a);
		check_tells(&sum, &b);
		/* All blocks are near each other, so the floor need not rise above both floors. */
		assert_int_equal(sum.floor, a.floor > b.floor ? a.floor : b.floor);
		fits = a.count + b.count <= KDSM_NOTICES_MAX;
		b = sum;
		kdsm_signature_merge(&sum, &a);
		assert_int_equal(sum.floor, b.floor);
		if (fits)
			assert_int_equal(sum.count, b.count);
	}
}

/* Nodes write neighbouring blocks before a barrier. Their notices fit in any order of merges. */
static void merging_barrier(void **state)
{
	static const unsigned int writers[] = { 2, 128, 129, 256, 1000 };
	struct kdsm_signature sum, one;
	unsigned int i, j, times, node, step;

	(void)state;
	for (i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		for (times = 1; times <= 3; times++) {
			kdsm_signature_init(&sum);
			for (j = 0; j < writers[i]; j++) {
				/* A permutation, because 619 is prime to all numbers of writers */
				node = times == 2 ? j * 619 % writers[i] : j;
				step = times == 3 ? node % 3 : 0;
				kdsm_signature_init(&one);
				one.count = 1;
				one.notices[0] = (struct kdsm_notice){
					.ts = 5 + step, .first = 4 * node, .count = 4,
					.writer = (uint16_t)node,
				};
				kdsm_signature_merge(&sum, &one);
				check_form(&sum);
			}
			assert_int_equal(sum.floor, 0);
			for (node = 0; node < writers[i]; node++)
				assert_true(tells_of(&sum, 5 + (times == 3 ? node % 3 : 0), node,
						     4 * node + node % 4));
			/* Merged in order, and of one timestamp, the notices keep their writers */
			for (j = 0; j < sum.count && times == 1; j++)
				assert_true(sum.notices[j].writer != KDSM_WRITER_UNKNOWN);
		}
	}
}

static void merging_bounds(void **state)
{
	static struct kdsm_signature a, b;

	(void)state;
	kdsm_signature_init(&a);
	kdsm_signature_merge(&a, &a);
	assert_int_equal(a.count | a.floor, 0);
	make_signature(&b, KDSM_NOTICES_MAX, 2);
	b.count = UINT32_MAX;
	kdsm_signature_merge(&a, &b);
	assert_true(a.count <= KDSM_NOTICES_MAX);
	a.count = UINT32_MAX;
	kdsm_signature_merge(&a, &b);
	assert_true(a.count <= KDSM_NOTICES_MAX);
}

static void *hand_over(void *arg)
{
	struct kdsm_region *region = arg;
	struct kdsm_signature signature;

	make_signature(&signature, KDSM_NOTICES_MAX, 3);
	usleep(1000);
	return (void *)(intptr_t)kdsm_signature_put(region, 0, 64, &signature, 9);
}

static void places(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_signature sent, got;
	pthread_t thread;
	void *ret;

	make_signature(&sent, 3, 3);
	assert_int_equal(kdsm_signature_put(region, 0, 4, &sent, 1), -EINVAL);
	assert_int_equal(kdsm_signature_put(region, 0, UNIT_PART - 8, &sent, 1), -ERANGE);
	assert_int_equal(kdsm_signature_wait(region, 4, 1, 0, &got), -EINVAL);
	assert_int_equal(kdsm_signature_wait(region, UNIT_PART - 8, 1, 0, &got), -ERANGE);
	assert_int_equal(kdsm_signature_wait(region, 64, 1, 10 * MS, &got), -ETIMEDOUT);
	assert_int_equal(kdsm_signature_put(region, 0, 64, &sent, 1), 0);
	assert_int_equal(kdsm_signature_wait(region, 64, 1, 0, &got), 0);
	assert_memory_equal(&got, &sent, KDSM_SIGNATURE_BYTES(3));

	assert_int_equal(pthread_create(&thread, NULL, hand_over, region), 0);
	assert_int_equal(kdsm_signature_wait(region, 64, 9, KDSM_FOREVER, &got), 0);
	pthread_join(thread, &ret);
	assert_null(ret);
	assert_int_equal(got.count, KDSM_NOTICES_MAX);

	/* Bytes that hold no signature */
	memset((char *)kdsm_region_part(region) + 64 + 8, 0xff, 16);
	assert_int_equal(kdsm_signature_wait(region, 64, 9, 0, &got), -EPROTO);
	assert_int_equal(got.count, 0);
}

/* ---- the barrier, with threads and processes of one node ---- */

#define THREADS		3
/*
 * A barrier of two processes orders threads by way of the other process, which
 * ThreadSanitizer does not see.
 */
#ifdef __SANITIZE_THREAD__
#define PROCESSES	1
#else
#define PROCESSES	2
#endif
#define ROUNDS		200

struct member {
	struct kdsm_tree_barrier barrier;
	uint64_t *words;
	unsigned int number;
	int failures;
};

static void *meet(void *arg)
{
	struct member *member = arg;
	unsigned int round, i;

	for (round = 1; round <= ROUNDS; round++) {
		member->words[member->number] = round;
		UNIT_CHECK(&member->failures,
			   !kdsm_tree_barrier_wait(&member->barrier, 20000 * MS, NULL));
		for (i = 0; i < THREADS * PROCESSES; i++)
			UNIT_CHECK(&member->failures, member->words[i] == round);
		UNIT_CHECK(&member->failures,
			   !kdsm_tree_barrier_wait(&member->barrier, 20000 * MS, NULL));
	}
	return NULL;
}

/* Run all threads of a process. Returns the number of failures. */
static int meet_all(const struct member *like, unsigned int process)
{
	struct member members[THREADS];
	pthread_t threads[THREADS];
	int i, failures = 0;

	for (i = 0; i < THREADS; i++) {
		members[i] = *like;
		members[i].number = process * THREADS + i;
		pthread_create(&threads[i], NULL, meet, &members[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		failures += members[i].failures;
	}
	return failures;
}

static void one_node(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIZE };
	const uint32_t participants[1] = { THREADS * PROCESSES };
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region *region, *sync;
	struct member member = { .failures = 0 };
	int status;
	pid_t pid;

	assert_int_equal(kdsm_region_open_coherent(kdsm, "m", &attr, KDSM_TREE_BARRIER_SIZE,
						   &region, &sync), 0);
	assert_int_equal(kdsm_tree_barrier_init(&member.barrier, region, sync, 0, participants), 0);
	member.words = kdsm_region_address(region);
	pid = PROCESSES > 1 ? fork() : 1;
	assert_true(pid >= 0);
	if (!pid)
		_exit(meet_all(&member, 1) != 0);
	assert_int_equal(meet_all(&member, 0), 0);
	if (PROCESSES > 1) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	kdsm_region_close(region);
	kdsm_region_close(sync);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(opening),
		unit_case(no_operations),
		unit_case(beside),
		unit_case(fences),
		unit_case(no_races),
		unit_case(no_losses),
		unit_case(hints),
		unit_case(homes),
		unit_case(atomics),
		unit_case(merging),
		unit_case(merging_barrier),
		unit_case(merging_bounds),
		unit_case(places),
		unit_case(one_node),
	};

	return UNIT_RUN(tests);
}
