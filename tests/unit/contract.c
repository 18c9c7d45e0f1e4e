// SPDX-License-Identifier: GPL-2.0
/*
 * The promises of every public call: structs of other versions, texts of errors, the version. The
 * structs below stand for those of an older, this, and a later version of a header.
 */
#include <pthread.h>
#include <stdio.h>
#include <kdsm/coherent.h>
#include <kdsm/heap.h>
#include <kdsm/lock.h>
#include <kdsm/reach.h>
#include <kdsm/table.h>
#include <kdsm/task.h>
#include <kdsm/virtual.h>
#include "core/core.h"
#include "unit.h"

struct older {
	size_t argsz;
	uint32_t a;
};

struct present {
	size_t argsz;
	uint32_t a, b;
	uint64_t c;
};

struct later {
	size_t argsz;
	uint32_t a, b;
	uint64_t c, d;
};

/* ---- structs of other versions ---- */

static void in_of_any_size(void **state)
{
	struct older older = { .argsz = sizeof(older), .a = 1 };
	struct present present = { .argsz = sizeof(present), .a = 1, .b = 2, .c = 3 }, own;
	struct later later = { .argsz = sizeof(later), .a = 1, .b = 2, .c = 3 };

	(void)state;
	memset(&own, 0xff, sizeof(own));
	assert_int_equal(KD_ARGUMENT_IN(present, &own, &older), 0);
	assert_int_equal(own.argsz, sizeof(own));
	assert_int_equal(own.a, 1);
	/* The padding of the older struct is a field now. */
	assert_int_equal(own.c, 0);
	assert_int_equal(KD_ARGUMENT_IN(present, &own, &present), 0);
	assert_memory_equal(&own, &present, sizeof(own));
	assert_int_equal(KD_ARGUMENT_IN(present, &own, &later), 0);
	assert_memory_equal(&own, &present, sizeof(own));
	later.d = 1;
	assert_int_equal(KD_ARGUMENT_IN(present, &own, &later), -E2BIG);
	assert_non_null(strstr(kdsm_error(-E2BIG), "struct present: byte 24 is not 0"));
}

static void out_of_any_size(void **state)
{
	const struct present own = { .argsz = sizeof(own), .a = 1, .b = 2, .c = 3 };
	struct present present = { .argsz = sizeof(present) };
	struct later later = { .argsz = sizeof(later), .d = 9 };
	uint64_t older[3] = { 12, 0, 7 };	/* argsz, a, and memory of the caller behind them */

	(void)state;
	assert_int_equal(KD_ARGUMENT_OUT(present, &own, older), 0);
	assert_int_equal(older[0], 12);
	assert_int_equal(older[1], 1);
	assert_int_equal(older[2], 7);
	assert_int_equal(KD_ARGUMENT_OUT(present, &own, &present), 0);
	assert_memory_equal(&own, &present, sizeof(own));
	assert_int_equal(KD_ARGUMENT_OUT(present, &own, &later), 0);
	assert_int_equal(later.argsz, sizeof(later));
	assert_int_equal(later.c, 3);
	assert_int_equal(later.d, 0);
}

static void no_size(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region_attr attr = { .size = 4096 };
	struct kdsm_counts counts = { 0 };
	struct kdsm_reach_result result = { 0 };
	struct kdsm_region *region;

	assert_int_equal(kdsm_region_open(unit->kdsm, "r", &attr, &region), -EINVAL);
	assert_string_equal(kdsm_error(-EINVAL),
			    "struct kdsm_region_attr: argsz is 0; set it to sizeof(struct kdsm_region_attr)");
	attr.argsz = SIZE_MAX;
	assert_int_equal(kdsm_region_open(unit->kdsm, "r", &attr, &region), -E2BIG);
	assert_int_equal(kdsm_counts(unit->kdsm, &counts), -EINVAL);
	assert_int_equal(kdsm_virtual_attr_init(&(struct kdsm_virtual_attr){ 0 }), -EINVAL);
	assert_int_equal(kdsm_table_part_bytes(&(struct kdsm_table_attr){ 0 }, 1), UINT64_MAX);
	assert_int_equal(kdsm_bdd_part_bytes(&(struct kdsm_bdd_attr){ 0 }, 1), UINT64_MAX);
	assert_int_equal(kdsm_tasks_bytes(&(struct kdsm_tasks_attr){ 0 }), UINT64_MAX);
	assert_int_equal(kdsm_reach_result_init(&result), -EINVAL);
}

/* ---- texts of errors ---- */

/* Check what a call returned, and the text of the error. */
static void fails(int error, int returned, const char *text)
{
	assert_int_equal(returned, error);
	assert_string_equal(kdsm_error(error), text);
}

#define LONG "a-name-of-more-characters-than-a-name-may-have-since-it-has-seventy"

static void texts_of_regions(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = UNIT_PART };
	char location[KDSM_LOCATION_SIZE];
	struct kdsm_region *r, *sync;

	fails(-EINVAL, kdsm_region_open(kdsm, "a b", &attr, &r),
	      "region \"a...\": a name has no character 0x20 (only printable ASCII, no space)");
	fails(-EINVAL, kdsm_region_open(kdsm, LONG, &attr, &r),
	      "region \"a-name-of-more-c...\": the name has more than 63 characters");
	fails(-EINVAL, kdsm_region_open(kdsm, "", &attr, &r), "the name of a region is empty");
	fails(-ENOENT, kdsm_region_open(kdsm, "none", NULL, &r), "there is no region \"none\"");
	fails(-ENOENT, kdsm_region_destroy(kdsm, "none"), "there is no region \"none\"");
	attr.block_size = 5000;
	fails(-EINVAL, kdsm_region_open(kdsm, "r", &attr, &r),
	      "region \"r\": block_size 5000 is not a power of two from 4096 to 2097152");
	attr.block_size = 0;
	attr.policy = 9;
	fails(-EINVAL, kdsm_region_open(kdsm, "r", &attr, &r),
	      "region \"r\": there is no policy 9");
	attr.policy = 0;
	attr.size = 2 * UNIT_PART;
	fails(-EINVAL, kdsm_region_open(kdsm, "unit", &attr, &r),
	      "region \"unit\" exists with another size, block size, segments, policy, address or KDSM_REGION_CONTIGUOUS");
	attr.flags = KDSM_REGION_EXCL;
	fails(-EEXIST, kdsm_region_open(kdsm, "unit", &attr, &r), "region \"unit\" exists");
	attr.flags = 0;
	attr.policy = KDSM_POLICY_PARTITIONED;
	fails(-EOPNOTSUPP, kdsm_region_open_coherent(kdsm, "r", &attr, 4096, &r, &sync),
	      "region \"r\": policy partitioned is not coherent");
	fails(-EINVAL, kdsm_location(kdsm, 3, location),
	      "there is no node 3: the cluster has nodes 0 to 0");
}

static void texts_of_operations(void **state)
{
	struct kdsm_region *r = ((struct unit *)*state)->region;
	struct kdsm_barrier barrier;
	uint64_t word = 0;
	struct kdsm_op ops[2] = { kdsm_op_get(0, 0, &word, 8), kdsm_op_get(0, 65532, &word, 8) };

	fails(-ERANGE, kdsm_get(r, 0, 65530, &word, 8),
	      "region \"unit\": 8 bytes at offset 65530 are not inside a part, which has 65536 bytes");
	fails(-EINVAL, kdsm_put(r, 0, 0, &word, 0), "length is 0");
	fails(-EINVAL, kdsm_cas(r, 0, 12, 0, 1, NULL), "offset 12 is not a multiple of 8");
	fails(-EFAULT, kdsm_get(r, 0, 0, NULL, 8), "the address of the memory is NULL");
	fails(-ERANGE, kdsm_vector(r, ops, 2),
	      "region \"unit\": 8 bytes at offset 65532 are not inside a part, which has 65536 bytes");
	fails(-EINVAL, kdsm_wait(r, 4, 0, 0), "offset 4 is not a multiple of 8");
	fails(-EOPNOTSUPP, kdsm_release(r, NULL),
	      "region \"unit\" is partitioned; the call needs a coherent one");
	word = 77;
	assert_int_equal(kdsm_put(r, 0, 1024, &word, 8), 0);
	kdsm_barrier_init(&barrier, r, 1024);
	fails(-EINVAL, kdsm_barrier_wait(&barrier, 0),
	      "region \"unit\": the bytes at offset 1024 were not zero at first, or another object uses them");
}

static void texts_of_locks(void **state)
{
	struct kdsm_region *r = ((struct unit *)*state)->region;
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = 77 };
	struct kdsm_lock *lock;
	struct kdsm_sem sem;

	fails(-EINVAL, kdsm_lock_create(r, "x", 0, &attr, &lock),
	      "region \"unit\": lock \"x\": there is no such kind of lock");
	fails(-ENOENT, kdsm_lock_open(r, "x", 0, &lock),
	      "region \"unit\": lock \"x\": there is no such lock");
	fails(-EINVAL, kdsm_lock_open(r, NULL, KDSM_MAX_LOCKS, &lock),
	      "region \"unit\": lock of number 4096: the number is not below KDSM_MAX_LOCKS");
	assert_int_equal(kdsm_lock_create(r, NULL, 5, NULL, &lock), 0);
	fails(-EPERM, kdsm_unlock(lock),
	      "region \"unit\": lock 5: the calling thread does not hold it");
	assert_int_equal(kdsm_lock(lock), 0);
	fails(-EDEADLK, kdsm_lock(lock), "region \"unit\": lock 5: the calling thread holds it");
	assert_int_equal(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
	fails(-EINVAL, kdsm_sem_init(&sem, r, 32, 0, 1, NULL), "offset 32 is not a multiple of 64");
	fails(-EINVAL, kdsm_sem_init(&sem, r, 0, 1, 1, NULL),
	      "there is no node 1: the cluster has nodes 0 to 0");
}

static void texts_of_the_rest(void **state)
{
	struct kdsm_region *r = ((struct unit *)*state)->region;
	struct kdsm_tasks_attr tasks_attr = { .argsz = sizeof(tasks_attr), .deque = 1 };
	struct kdsm_table_attr table_attr = { .argsz = sizeof(table_attr), .nodes = 1 << 20 };
	struct kdsm_table *table;
	struct kdsm_tasks *tasks;
	struct kdsm_heap *heap;

	fails(-EINVAL, kdsm_tasks_open(r, 0, &tasks_attr, &tasks),
	      "tasks: deque is 1, not from 2 to 16777216");
	fails(-EINVAL, kdsm_table_open(r, 4, &table_attr, &table),
	      "offset 4 is not a multiple of 64");
	assert_int_equal(kdsm_table_open(r, 0, &table_attr, &table), -ERANGE);
	assert_non_null(strstr(kdsm_error(-ERANGE), "is not inside a part of 65536 bytes"));
	fails(-EOPNOTSUPP, kdsm_heap_open(r, r, 0, 0, &heap),
	      "region \"unit\" is partitioned; the call needs a coherent one");
}

static void texts_of_bdds(void **state)
{
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr), .table_bytes = 1 << 20, .cache_bytes = 1 << 16,
	};
	struct kdsm_region_attr size = { .argsz = sizeof(size) };
	struct kdsm_bdd_worker *worker;
	struct kdsm_bdd_store *store;
	struct kdsm_region *region;
	const uint8_t values[3] = { 0 };
	uint64_t count;
	kdsm_bdd x;

	size.size = kdsm_bdd_part_bytes(&attr, 1);
	assert_int_equal(kdsm_region_open(kdsm, "bdds", &size, &region), 0);
	assert_int_equal(kdsm_bdd_open(region, 4096, &attr, &store), -ERANGE);
	assert_non_null(strstr(kdsm_error(-ERANGE), "region \"bdds\": "));
	assert_int_equal(kdsm_bdd_open(region, 0, &attr, &store), 0);
	assert_int_equal(kdsm_bdd_worker_new(store, &worker), 0);
	x = kdsm_bdd_variable(worker, 7);
	fails(-EINVAL, kdsm_bdd_count_nodes(worker, KDSM_BDD_INVALID, &count),
	      "a function is KDSM_BDD_INVALID: an operation failed earlier");
	fails(-EINVAL, kdsm_bdd_evaluate(worker, x, values, 3),
	      "the value depends on variable 7, and 3 are given");
	assert_true(kdsm_bdd_make(worker, 9, x, KDSM_BDD_FALSE) == KDSM_BDD_INVALID);
	fails(-EINVAL, kdsm_bdd_error(worker),
	      "high or low depends on variable 7, which is not below 9");
	kdsm_bdd_worker_free(worker);
	kdsm_bdd_close(store);
	kdsm_region_close(region);
}

/* A text belongs to the error of the last call of its own thread. */
static void *elsewhere(void *region)
{
	uint64_t word;

	kdsm_get(region, 0, 0, &word, 0);
	return NULL;
}

static void last_error_of_the_thread(void **state)
{
	struct unit *unit = *state;
	struct kdsm_region *region;
	pthread_t thread;

	assert_int_equal(kdsm_cas(unit->region, 0, 4, 0, 0, NULL), -EINVAL);
	assert_int_equal(pthread_create(&thread, NULL, elsewhere, unit->region), 0);
	pthread_join(thread, NULL);
	assert_string_equal(kdsm_error(-EINVAL), "offset 4 is not a multiple of 8");
	assert_string_equal(kdsm_error(-ENETDOWN), "the cluster is not up on this node");
	/* An error without a reason does not get that of an earlier call. */
	assert_int_equal(kdsm_region_open(unit->kdsm, "none", NULL, &region), -ENOENT);
	assert_int_equal(kdsm_wait(unit->region, 0, 0, 0), -ETIMEDOUT);
	assert_string_equal(kdsm_error(-ETIMEDOUT), kdsm_strerror(-ETIMEDOUT));
	assert_string_equal(kdsm_error(0), "success");
	assert_string_equal(kdsm_strerror(ENETDOWN), kdsm_strerror(-ENETDOWN));
	assert_string_equal(kdsm_strerror(-ENOSPC), strerror(ENOSPC));
}

static void version(void **state)
{
	unsigned int major, minor, patch;
	int fields;
	char end;

	(void)state;
	fields = sscanf(kdsm_version(), "%u.%u.%u%c", &major, &minor, &patch, &end);
	assert_int_equal(fields, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_of_any_size),
		cmocka_unit_test(out_of_any_size),
		unit_case(no_size),
		unit_case(texts_of_regions),
		unit_case(texts_of_operations),
		unit_case(texts_of_locks),
		unit_case(texts_of_the_rest),
		unit_case(texts_of_bdds),
		unit_case(last_error_of_the_thread),
		cmocka_unit_test(version),
	};

	return UNIT_RUN(tests);
}
