// SPDX-License-Identifier: GPL-2.0
/* Operations on parts of a region: values, bounds, atomicity between threads and processes */
#include <pthread.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit.h"

static void get_put(void **state)
{
	static const size_t lengths[] = { 1, 2, 3, 7, 8, 9, 16, 4095, 4096, 20000 };
	static uint8_t out[20000], in[20000 + 2];
	struct unit *unit = *state;
	uint8_t *part = kdsm_region_part(unit->region);
	unsigned int i, shift;

	for (i = 0; i < sizeof(out); i++)
		out[i] = i * 7 + 1;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (shift = 0; shift < 9; shift++) {
			size_t length = lengths[i];

			memset(part, 0, UNIT_PART);
			memset(in, 0xee, sizeof(in));
			assert_int_equal(kdsm_put(unit->region, 0, 4096 - shift, out, length), 0);
			assert_memory_equal(part + 4096 - shift, out, length);
			assert_int_equal(part[4096 - shift - 1], 0);
			assert_int_equal(part[4096 - shift + length], 0);
			assert_int_equal(kdsm_get(unit->region, 0, 4096 - shift, in + 1,
						  length), 0);
			assert_memory_equal(in + 1, out, length);
			assert_int_equal(in[0], 0xee);
			assert_int_equal(in[length + 1], 0xee);
		}
	}
}

static void get_put_bad(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	uint64_t value = 1;

	assert_int_equal(kdsm_get(region, 0, 0, &value, 0), -EINVAL);
	assert_int_equal(kdsm_put(region, 0, 0, &value, 0), -EINVAL);
	assert_int_equal(kdsm_get(region, 1, 0, &value, 8), -EINVAL);
	assert_int_equal(kdsm_put(region, 70000, 0, &value, 8), -EINVAL);
	/* 65536 is 0 in sixteen bits. */
	assert_int_equal(kdsm_get(region, 65536, 0, &value, 8), -EINVAL);
	assert_int_equal(kdsm_get(region, 0, UNIT_PART, &value, 1), -ERANGE);
	assert_int_equal(kdsm_get(region, 0, UNIT_PART - 7, &value, 8), -ERANGE);
	assert_int_equal(kdsm_put(region, 0, UINT64_MAX - 3, &value, 8), -ERANGE);
	assert_int_equal(kdsm_put(region, 0, 8, &value, SIZE_MAX), -ERANGE);
	assert_int_equal(kdsm_get(region, 0, 0, NULL, 8), -EFAULT);
	assert_int_equal(kdsm_put(region, 0, 0, NULL, 8), -EFAULT);
	assert_int_equal(kdsm_get(region, 0, UNIT_PART - 8, &value, 8), 0);
	assert_int_equal(value, 0);
}

static void atomics(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	uint64_t former = 99;

	assert_int_equal(kdsm_cas(region, 0, 16, 0, 5, &former), 0);
	assert_int_equal(former, 0);
	assert_int_equal(kdsm_cas(region, 0, 16, 0, 6, &former), 0);
	assert_int_equal(former, 5);
	assert_int_equal(kdsm_faa(region, 0, 16, -1ULL, &former), 0);
	assert_int_equal(former, 5);
	assert_int_equal(kdsm_faa(region, 0, 16, 3, NULL), 0);
	assert_int_equal(kdsm_cas(region, 0, 16, 7, 8, NULL), 0);
	assert_int_equal(*(uint64_t *)((char *)kdsm_region_part(region) + 16), 8);

	assert_int_equal(kdsm_cas(region, 0, 4, 0, 1, &former), -EINVAL);
	assert_int_equal(kdsm_faa(region, 0, 1, 1, &former), -EINVAL);
	assert_int_equal(kdsm_faa(region, 1, 0, 1, &former), -EINVAL);
	assert_int_equal(kdsm_faa(region, 0, UNIT_PART, 1, &former), -ERANGE);
	assert_int_equal(kdsm_cas(region, 0, UINT64_MAX - 7, 0, 1, &former), -ERANGE);
}

#define THREADS	4
#define ROUNDS	20000

static int failures;

static void *add(void *arg)
{
	struct kdsm_region *region = arg;
	uint64_t former, last = 0, seen;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		UNIT_CHECK(&failures, !kdsm_faa(region, 0, 0, 1, &former));
		/* A thread sees the counter only grow. */
		UNIT_CHECK(&failures, i == 0 || former > last);
		last = former;
		/* The same by compare-and-swap */
		do {
			UNIT_CHECK(&failures, !kdsm_get(region, 0, 64, &seen, 8));
			UNIT_CHECK(&failures, !kdsm_cas(region, 0, 64, seen, seen + 1, &former));
		} while (former != seen);
	}
	return NULL;
}

static void sums(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	pthread_t threads[THREADS];
	uint64_t value;
	int status, i;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		add(region);
		_exit(!!failures);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add, region), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(failures, 0);
	assert_int_equal(kdsm_get(region, 0, 0, &value, 8), 0);
	assert_int_equal(value, (THREADS + 1) * ROUNDS);
	assert_int_equal(kdsm_get(region, 0, 64, &value, 8), 0);
	assert_int_equal(value, (THREADS + 1) * ROUNDS);
}

/* A put of a word is atomic: no thread sees parts of two values. */
static void *words(void *arg)
{
	static const uint64_t patterns[2] = { 0, UINT64_MAX };
	struct kdsm_region *region = arg;
	uint64_t value;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		UNIT_CHECK(&failures, !kdsm_put(region, 0, 8, &patterns[i & 1], 8));
		UNIT_CHECK(&failures, !kdsm_get(region, 0, 8, &value, 8));
		UNIT_CHECK(&failures, value == 0 || value == UINT64_MAX);
	}
	return NULL;
}

static void whole_words(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, words, region), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
}

/* Operations on the own node send no message, so the counts stay 0. */
static void counts_nothing(void **state)
{
	struct unit *unit = *state;
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	uint64_t value = 0;

	kdsm_put(unit->region, 0, 0, &value, 8);
	kdsm_get(unit->region, 0, 0, &value, 8);
	kdsm_faa(unit->region, 0, 0, 1, NULL);
	kdsm_counts(unit->kdsm, &counts);
	assert_int_equal(counts.get | counts.put | counts.faa | counts.calls, 0);
}

/*
 * Operations on the own node make no system call, either. In strict mode seccomp kills the
 * process for any call but read, write and exit.
 */
static void no_system_call(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_op ops[2] = { kdsm_op_faa(0, 0, 1), kdsm_op_cas(0, 8, 0, 1) };
	uint64_t value = 1;
	int status, ret = 0;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	skip();		/* its runtime has threads and system calls of its own */
#endif
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(2);
		ret |= kdsm_put(region, 0, 4096, &value, 8);
		ret |= kdsm_get(region, 0, 4096, &value, 8);
		ret |= kdsm_faa(region, 0, 4096, 1, &value);
		ret |= kdsm_cas(region, 0, 4096, 2, 3, &value);
		ret |= kdsm_vector(region, ops, 2);
		ret |= kdsm_put_notify(region, 0, 16, 1);
		ret |= kdsm_wait(region, 16, 0, 0);
		syscall(SYS_exit, ret ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(get_put),
		unit_case(get_put_bad),
		unit_case(atomics),
		unit_case(sums),
		unit_case(whole_words),
		unit_case(counts_nothing),
		unit_case(no_system_call),
	};

	return UNIT_RUN(tests);
}
