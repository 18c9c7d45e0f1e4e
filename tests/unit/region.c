// SPDX-License-Identifier: GPL-2.0
/* Regions of the local backend: names, attributes, lifetime */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit.h"

static void sizes(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 1 };
	struct kdsm_region *region;
	uint8_t *part;

	assert_int_equal(kdsm_region_part_size(unit->region), UNIT_PART);
	assert_int_equal(kdsm_region_open(unit->kdsm, "one", &attr, &region), 0);
	assert_int_equal(kdsm_region_part_size(region), 4096);
	part = kdsm_region_part(region);
	assert_int_equal(part[0] | part[4095], 0);
	kdsm_region_close(region);

	attr = (struct kdsm_region_attr){
		.argsz = sizeof(attr), .size = (2 << 20) + 1, .block_size = 2 << 20,
	};
	assert_int_equal(kdsm_region_open(unit->kdsm, "two", &attr, &region), 0);
	assert_int_equal(kdsm_region_part_size(region), 4 << 20);
	kdsm_region_close(region);
}

static int try_open(struct kdsm *kdsm, const char *name, struct kdsm_region_attr attr)
{
	struct kdsm_region *region = (void *)1;
	int ret;

	attr.argsz = sizeof(attr);
	ret = kdsm_region_open(kdsm, name, &attr, &region);
	if (ret)
		assert_null(region);
	kdsm_region_close(region);
	return ret;
}

static void bad_attributes(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	char name[KDSM_NAME_SIZE + 1];

#define TRY(...) try_open(kdsm, "bad", (struct kdsm_region_attr){ __VA_ARGS__ })
	assert_int_equal(TRY(.size = 0), -EINVAL);
	assert_int_equal(TRY(.size = 1, .block_size = 2048), -EINVAL);
	assert_int_equal(TRY(.size = 1, .block_size = 4 << 20), -EINVAL);
	assert_int_equal(TRY(.size = 1, .block_size = 12288), -EINVAL);
	assert_int_equal(TRY(.size = 1, .policy = 77), -EINVAL);
	assert_int_equal(TRY(.size = 1, .mode = 01000), -EINVAL);
	assert_int_equal(TRY(.size = 1, .flags = KDSM_REGION_CREATE), -EINVAL);
	assert_int_equal(TRY(.size = 1, .flags = 1U << 30), -EINVAL);
	assert_int_equal(TRY(.size = UINT64_MAX), -EFBIG);
	assert_int_equal(TRY(.size = 1ULL << 62), -EFBIG);
	assert_int_equal(TRY(.size = 1ULL << 45), -ENOMEM);
#undef TRY
	assert_int_equal(try_open(kdsm, "", (struct kdsm_region_attr){ .size = 1 }), -EINVAL);
	assert_int_equal(try_open(kdsm, NULL, (struct kdsm_region_attr){ .size = 1 }), -EINVAL);
	assert_int_equal(try_open(kdsm, "a b", (struct kdsm_region_attr){ .size = 1 }), -EINVAL);
	memset(name, 'n', sizeof(name));
	name[KDSM_NAME_SIZE] = '\0';
	assert_int_equal(try_open(kdsm, name, (struct kdsm_region_attr){ .size = 1 }), -EINVAL);
	name[KDSM_NAME_SIZE - 1] = '\0';
	assert_int_equal(try_open(kdsm, name, (struct kdsm_region_attr){ .size = 1 }), 0);
	assert_int_equal(kdsm_region_destroy(kdsm, "a\nb"), -EINVAL);
}

#define MIB (UINT64_C(1) << 20)

static void segments(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region_segment list[] = {
		{ .block_size = 4096 }, { 2 * MIB, 65536, 0 }, { 6 * MIB, 2 * MIB, 0 },
	};
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 7 * MIB, .policy = KDSM_POLICY_STRICT, .segments = list, .segment_count = 3,
	};
	struct kdsm_region *region, *other;

	assert_int_equal(kdsm_region_open(kdsm, "segments", &attr, &region), 0);
	assert_int_equal(kdsm_region_size(region), 8 * MIB);
	assert_int_equal(kdsm_region_block_size(region), 4096);
	assert_int_equal(kdsm_region_block_size_at(region, 2 * MIB - 1), 4096);
	assert_int_equal(kdsm_region_block_size_at(region, 2 * MIB), 65536);
	assert_int_equal(kdsm_region_block_size_at(region, 6 * MIB - 1), 65536);
	assert_int_equal(kdsm_region_block_size_at(region, 6 * MIB), 2 * MIB);
	assert_int_equal(kdsm_region_block_size_at(region, 8 * MIB - 1), 2 * MIB);
	assert_int_equal(kdsm_region_block_size_at(region, 8 * MIB), 0);

	attr.block_size = 4096;
	assert_int_equal(kdsm_region_open(kdsm, "segments", &attr, &other), 0);
	assert_ptr_equal(other, region);
	kdsm_region_close(other);
	attr.segment_count = 2;
	assert_int_equal(kdsm_region_open(kdsm, "segments", &attr, &other), -EINVAL);
	attr.segment_count = 3;
	list[1].offset = 4 * MIB;
	assert_int_equal(kdsm_region_open(kdsm, "segments", &attr, &other), -EINVAL);
	kdsm_region_close(region);
}

static void bad_segments(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region_segment list[KDSM_MAX_SEGMENTS + 1] = { { 0 } };
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 2 * KDSM_MAX_SEGMENTS * MIB, .policy = KDSM_POLICY_RELEASE,
		.segments = list, .segment_count = KDSM_MAX_SEGMENTS,
	};
	unsigned int i;

	for (i = 0; i <= KDSM_MAX_SEGMENTS; i++)
		list[i] = (struct kdsm_region_segment) { 2 * i * MIB, 8192, 0 };
	assert_int_equal(try_open(kdsm, "bad", attr), 0);
#define TRY(what, bad) do {						\
		__auto_type at = &(what);				\
		const __typeof__(*at) kept = *at;			\
		*at = (bad);						\
		assert_int_equal(try_open(kdsm, "bad", attr), -EINVAL);	\
		*at = kept;						\
	} while (0)
	TRY(attr.segment_count, KDSM_MAX_SEGMENTS + 1);
	TRY(attr.segment_count, UINT32_MAX);
	TRY(attr.policy, KDSM_POLICY_PARTITIONED);
	TRY(attr.block_size, 4096);
	TRY(attr.size, list[KDSM_MAX_SEGMENTS - 1].offset);
	TRY(list[0].offset, 2 * MIB);
	TRY(list[2].offset, list[1].offset);
	TRY(list[2].offset, 0);
	TRY(list[2].offset, list[2].offset + MIB);
	TRY(list[2].offset, UINT64_MAX << 21);
	TRY(list[0].block_size, 0);
	TRY(list[7].block_size, 2048);
	TRY(list[7].block_size, 12288);
	TRY(list[7].block_size, 4 * MIB);
	TRY(list[7].reserved, 1);
#undef TRY
	assert_int_equal(try_open(kdsm, "bad", attr), 0);
}

static void names(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = UNIT_PART };
	struct kdsm_region *again, *other;

	assert_int_equal(kdsm_region_open(unit->kdsm, "none", NULL, &again), -ENOENT);
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", NULL, &again), 0);
	assert_ptr_equal(again, unit->region);
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", &attr, &again), 0);
	assert_ptr_equal(again, unit->region);
	/* After two closes, the first open is still valid. */
	kdsm_region_close(again);
	kdsm_region_close(again);
	*(uint64_t *)kdsm_region_part(unit->region) = 1;

	attr.flags = KDSM_REGION_EXCL;
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", &attr, &other), -EEXIST);
	attr = (struct kdsm_region_attr){
		.argsz = sizeof(attr), .size = UNIT_PART + 1,
	};
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", &attr, &other), -EINVAL);
	attr = (struct kdsm_region_attr){
		.argsz = sizeof(attr), .size = UNIT_PART, .block_size = 8192,
	};
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", &attr, &other), -EINVAL);
}

/* New memory is zero, even under a name that was used before. */
static void last_close(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	struct kdsm_region *region;
	uint64_t *word;

	assert_int_equal(kdsm_region_open(unit->kdsm, "short", &attr, &region), 0);
	word = kdsm_region_part(region);
	*word = 5;
	kdsm_region_close(region);
	assert_int_equal(kdsm_region_open(unit->kdsm, "short", NULL, &region), -ENOENT);
	assert_int_equal(kdsm_region_open(unit->kdsm, "short", &attr, &region), 0);
	word = kdsm_region_part(region);
	assert_int_equal(*word, 0);
	kdsm_region_close(region);

	attr.flags = KDSM_REGION_KEEP;
	assert_int_equal(kdsm_region_open(unit->kdsm, "long", &attr, &region), 0);
	word = kdsm_region_part(region);
	*word = 6;
	kdsm_region_close(region);
	assert_int_equal(kdsm_region_open(unit->kdsm, "long", NULL, &region), 0);
	word = kdsm_region_part(region);
	assert_int_equal(*word, 6);
	kdsm_region_close(region);
	assert_int_equal(kdsm_region_destroy(unit->kdsm, "long"), 0);
	assert_int_equal(kdsm_region_open(unit->kdsm, "long", NULL, &region), -ENOENT);
}

/*
 * The address of unused pages. Sanitizers keep much of the address space for themselves. The kernel
 * gives out the highest pages of a gap first, so the lowest ones stay unused.
 */
static uint64_t unused(void)
{
	const size_t size = 1UL << 30;
	void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	munmap(at, size);
	return (uintptr_t)at;
}

/* The creator may choose the address, outside of those of which kdsm chooses. */
static void address(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr), .size = 8192, .policy = KDSM_POLICY_STRICT,
		.address = unused(),
	};
	struct kdsm_region *region;

	assert_int_equal(kdsm_region_open(unit->kdsm, "at", &attr, &region), 0);
	assert_ptr_equal(kdsm_region_address(region), (void *)(uintptr_t)attr.address);
	attr.address += 4096;
	assert_int_equal(try_open(unit->kdsm, "at", attr), -EINVAL);
	attr.address = 0;
	assert_int_equal(try_open(unit->kdsm, "at", attr), 0);
	kdsm_region_close(region);
	attr.address = KDSM_ARENA_START - 4096;
	assert_int_equal(try_open(unit->kdsm, "at", attr), -EINVAL);
	attr.address = KDSM_ARENA_END - 4096;
	assert_int_equal(try_open(unit->kdsm, "at", attr), -EINVAL);
	attr.address = KDSM_ARENA_END + 1;
	assert_int_equal(try_open(unit->kdsm, "at", attr), -EINVAL);
}

static void destroy(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 4096,
		.flags = KDSM_REGION_EXCL,
	};
	struct kdsm_region *region;
	uint64_t value = 9;

	assert_int_equal(kdsm_region_destroy(unit->kdsm, "none"), -ENOENT);
	assert_int_equal(kdsm_region_destroy(unit->kdsm, "unit"), 0);
	assert_int_equal(kdsm_region_destroy(unit->kdsm, "unit"), -ENOENT);
	/* Open handles stay valid after the destroy, and the name becomes free. */
	assert_int_equal(kdsm_put(unit->region, 0, 0, &value, 8), 0);
	assert_int_equal(kdsm_region_open(unit->kdsm, "unit", &attr, &region), 0);
	assert_ptr_not_equal(region, unit->region);
	assert_int_equal(*(uint64_t *)kdsm_region_part(region), 0);
	kdsm_region_close(region);
}

/* Closing the cluster frees the regions that were kept, so a leak checker finds none. */
static void kept_until_close(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 4096,
		.flags = KDSM_REGION_KEEP,
	};

	assert_int_equal(try_open(kdsm, "kept", attr), 0);
}

/* With KDSM_OPEN_ALONE regions work as before, but a child does not share the memory. */
static void alone(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 3 << 20,
		.flags = KDSM_REGION_KEEP,
	};
	struct kdsm_region *region, *again;
	struct kdsm *kdsm;
	uint64_t value = 8;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE, &kdsm), 0);
	assert_int_equal(kdsm_region_open(kdsm, "own", &attr, &region), 0);
	assert_int_equal(kdsm_region_open(kdsm, "own", NULL, &again), 0);
	assert_int_equal(kdsm_put(again, 0, 2 << 20, &value, 8), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(kdsm_faa(region, 0, 2 << 20, 7, NULL));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	kdsm_region_close(again);
	kdsm_region_close(region);
	/* The region was kept. */
	assert_int_equal(kdsm_region_open(kdsm, "own", NULL, &region), 0);
	assert_int_equal(kdsm_get(region, 0, 2 << 20, &value, 8), 0);
	assert_int_equal(value, 8);
	assert_int_equal(kdsm_region_destroy(kdsm, "own"), 0);
	/* A new region of the same name has new memory. */
	assert_int_equal(kdsm_region_open(kdsm, "own", &attr, &again), 0);
	assert_int_equal(kdsm_get(again, 0, 2 << 20, &value, 8), 0);
	assert_int_equal(value, 0);
	kdsm_region_close(region);
	kdsm_region_close(again);
	kdsm_close(kdsm);
}

static void over_fork(void **state)
{
	struct unit *unit = *state;
	uint64_t value;
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		value = 4711;
		_exit(kdsm_put(unit->region, 0, UNIT_PART - 8, &value, 8) ||
		      kdsm_faa(unit->region, 0, 0, 7, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(kdsm_get(unit->region, 0, UNIT_PART - 8, &value, 8), 0);
	assert_int_equal(value, 4711);
	assert_int_equal(kdsm_get(unit->region, 0, 0, &value, 8), 0);
	assert_int_equal(value, 7);
}

#define THREADS	4
#define ROUNDS	200

static int failures;

static void *open_close(void *arg)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 8192 };
	struct kdsm *kdsm = arg;
	struct kdsm_region *region;
	char name[8];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "r%d", i % 3);
		if (kdsm_region_open(kdsm, name, &attr, &region)) {
			UNIT_CHECK(&failures, 0);
			continue;
		}
		UNIT_CHECK(&failures, !kdsm_faa(region, 0, 8, 1, NULL));
		kdsm_region_close(region);
		if (i % 16 == 0)
			kdsm_region_destroy(kdsm, name);
	}
	return NULL;
}

static void by_threads(void **state)
{
	struct unit *unit = *state;
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_close, unit->kdsm), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(sizes),
		unit_case(bad_attributes),
		unit_case(segments),
		unit_case(bad_segments),
		unit_case(names),
		unit_case(last_close),
		unit_case(address),
		unit_case(destroy),
		unit_case(kept_until_close),
		unit_case(over_fork),
		unit_case(alone),
		unit_case(by_threads),
	};

	return UNIT_RUN(tests);
}
