// SPDX-License-Identifier: GPL-2.0
/* Vectors, tickets, and the functions that make operations */
#include <pthread.h>
#include "unit.h"
#include "core/core.h"

static void constructors(void **state)
{
	struct kdsm_op op;
	int memory;

	(void)state;
	op = kdsm_op_get(3, 40, &memory, 5);
	assert_int_equal(op.opcode, KDSM_OP_GET);
	assert_int_equal(op.node, 3);
	assert_int_equal(op.offset, 40);
	assert_int_equal(op.length, 5);
	assert_int_equal(op.addr, (uintptr_t)&memory);
	assert_int_equal(op.flags | op.reserved, 0);
	op = kdsm_op_put(1, 2, &memory, 4);
	assert_int_equal(op.opcode, KDSM_OP_PUT);
	op = kdsm_op_cas(1, 8, 11, 12);
	assert_int_equal(op.opcode, KDSM_OP_CAS);
	assert_int_equal(op.length, 8);
	assert_int_equal(op.compare, 11);
	assert_int_equal(op.operand, 12);
	op = kdsm_op_faa(1, 8, 13);
	assert_int_equal(op.opcode, KDSM_OP_FAA);
	assert_int_equal(op.operand, 13);
	/* A value too large for its field must not become a valid one. */
	op = kdsm_op_get(65536 + 1, 0, &memory, (1ULL << 32) + 1);
	assert_true(op.node >= KDSM_MAX_NODES);
	assert_true(op.length > KDSM_MAX_OP_LENGTH);
}

static void mixed(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	uint64_t one = 1, got = 0;
	struct kdsm_op ops[] = {
		kdsm_op_put(0, 0, &one, 8),
		kdsm_op_faa(0, 8, 4),
		kdsm_op_cas(0, 16, 0, 2),
		kdsm_op_cas(0, 16, 0, 3),
		kdsm_op_get(0, 16, &got, 8),
	};

	assert_int_equal(kdsm_vector(region, ops, 5), 0);
	assert_int_equal(ops[1].result, 0);
	assert_int_equal(ops[2].result, 0);
	assert_int_equal(ops[3].result, 2);
	assert_int_equal(got, 2);
	assert_int_equal(*(uint64_t *)kdsm_region_part(region), 1);
	assert_int_equal(kdsm_vector(region, ops, 0), 0);
}

/*
 * Each operation has its own status. The call returns that of the first operation that
 * failed.
 */
static void statuses(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	static uint8_t big[8];
	uint64_t value = 0;
	struct kdsm_op ops[] = {
		kdsm_op_put(0, 0, &value, 8),
		kdsm_op_put(0, UNIT_PART - 4, &value, 8),
		kdsm_op_get(7, 0, &value, 8),
		kdsm_op_faa(0, 3, 1),
		kdsm_op_get(0, 0, big, KDSM_MAX_OP_LENGTH + 1),
		kdsm_op_get(0, 0, NULL, 8),
		kdsm_op_get(0, 0, &value, 0),
		kdsm_op_faa(0, 0, 1),
		kdsm_op_faa(0, 0, 1),
		kdsm_op_faa(0, 0, 1),
		kdsm_op_put(0, 4, &value, 8),
		kdsm_op_faa(0, 0, 1),
	};

	ops[7].opcode = 99;
	ops[8].flags = KDSM_OP_NOTIFY;
	ops[9].reserved = 1;
	ops[10].flags = KDSM_OP_NOTIFY;		/* not of a word */
	assert_int_equal(kdsm_vector(region, ops, 12), -ERANGE);
	assert_int_equal(ops[0].status, 0);
	assert_int_equal(ops[1].status, -ERANGE);
	assert_int_equal(ops[2].status, -EINVAL);
	assert_int_equal(ops[3].status, -EINVAL);
	assert_int_equal(ops[4].status, -EINVAL);
	assert_int_equal(ops[5].status, -EFAULT);
	assert_int_equal(ops[6].status, -EINVAL);
	assert_int_equal(ops[7].status, -EINVAL);
	assert_int_equal(ops[8].status, -EINVAL);
	assert_int_equal(ops[9].status, -EINVAL);
	assert_int_equal(ops[10].status, -EINVAL);
	assert_int_equal(ops[11].status, 0);
	assert_int_equal(ops[11].result, 0);
}

#define MANY (3 * KDSM_MAX_OPS + 17)

static void any_count(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	static struct kdsm_op ops[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++)
		ops[i] = kdsm_op_faa(0, 0, 1);
	assert_int_equal(kdsm_vector(region, ops, MANY), 0);
	for (i = 0; i < MANY; i++)
		assert_int_equal(ops[i].result, i);
	/* A failure in the middle does not stop the operations behind it. */
	ops[MANY / 2].offset = UNIT_PART;
	assert_int_equal(kdsm_vector(region, ops, MANY), -ERANGE);
	assert_int_equal(ops[MANY - 1].result, 2 * MANY - 2);
}

static void tickets(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	static struct kdsm_op many[KDSM_MAX_OPS + 1];
	struct kdsm_ticket ticket, other;
	struct kdsm_op ops[2] = { kdsm_op_faa(0, 0, 1), kdsm_op_faa(0, 0, 1) };
	struct kdsm_op bad[2] = { kdsm_op_faa(0, 0, 1), kdsm_op_faa(4, 0, 1) };

	assert_int_equal(kdsm_submit(region, ops, 2, &ticket), 0);
	assert_int_equal(kdsm_submit(region, bad, 2, &other), 0);
	assert_int_equal(kdsm_complete(region, &ticket, 0), 0);
	assert_int_equal(ops[1].result, 1);
	assert_int_equal(kdsm_complete(region, &ticket, 0), -ENOENT);
	assert_int_equal(kdsm_complete(region, &other, KDSM_FOREVER), -EINVAL);
	assert_int_equal(bad[0].status, 0);
	assert_int_equal(bad[0].result, 2);
	assert_int_equal(bad[1].status, -EINVAL);
	assert_int_equal(kdsm_complete(region, &other, KDSM_FOREVER), -ENOENT);

	assert_int_equal(kdsm_submit(region, NULL, 0, &ticket), 0);
	assert_int_equal(kdsm_complete(region, &ticket, 0), 0);
	assert_int_equal(kdsm_submit(region, many, KDSM_MAX_OPS + 1, &ticket), -EINVAL);
	assert_int_equal(kdsm_complete(region, &ticket, 0), -ENOENT);
}

/* ---- two threads complete one ticket ---- */

#define ROUNDS	3000

static struct twice {
	struct kdsm_region *region;
	struct kdsm_ticket ticket;
	pthread_barrier_t begin, end;
	uint64_t kernel;	/* ticket of the module; 0: every operation is complete */
	bool taken;
	int ret[2];
} twice;

static int twice_submit(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
			uint64_t *ticket)
{
	unsigned int i;

	(void)region;
	for (i = 0; i < count; i++)
		ops[i].status = 0;
	*ticket = twice.kernel;
	return 0;
}

/* As the module: only the first call finds the ticket. */
static int twice_complete(struct kdsm_region *region, uint64_t ticket, uint64_t timeout)
{
	(void)region, (void)ticket, (void)timeout;
	return __atomic_exchange_n(&twice.taken, true, __ATOMIC_RELAXED) ? -ENOENT : 0;
}

static void *twice_thread(void *arg)
{
	int *ret = arg;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&twice.begin);
		*ret = kdsm_complete(twice.region, &twice.ticket, KDSM_FOREVER);
		pthread_barrier_wait(&twice.end);
	}
	return NULL;
}

static void race(uint64_t kernel)
{
	static struct kdsm_op ops[KDSM_MAX_OPS];
	pthread_t threads[2];
	unsigned int i, bad = 0;

	twice.kernel = kernel;
	pthread_barrier_init(&twice.begin, NULL, 3);
	pthread_barrier_init(&twice.end, NULL, 3);
	/* Node 0 is this node, so the library copies the other operations. */
	ops[0] = kdsm_op_faa(0, 0, 1);
	for (i = 1; i < KDSM_MAX_OPS; i++)
		ops[i] = kdsm_op_faa(1, 0, 1);
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, twice_thread, &twice.ret[i]);
	for (i = 0; i < ROUNDS; i++) {
		twice.taken = false;
		bad += kdsm_submit(twice.region, ops, KDSM_MAX_OPS, &twice.ticket) != 0;
		pthread_barrier_wait(&twice.begin);
		pthread_barrier_wait(&twice.end);
		bad += twice.ret[0] + twice.ret[1] != -ENOENT ||
		       (twice.ret[0] && twice.ret[1]);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&twice.begin);
	pthread_barrier_destroy(&twice.end);
	assert_int_equal(bad, 0);
}

/* One of two threads gets the results, and the other one -ENOENT. */
static void completed_twice(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	const struct kdsm_backend *local = region->backend;
	struct kdsm_backend backend = *local;

	backend.submit = twice_submit;
	backend.complete = twice_complete;
	region->backend = &backend;
	twice.region = region;
	race(7);
	race(0);
	region->backend = local;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constructors),
		unit_case(mixed),
		unit_case(statuses),
		unit_case(any_count),
		unit_case(tickets),
		unit_case(completed_twice),
	};

	return UNIT_RUN(tests);
}
