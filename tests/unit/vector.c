// SPDX-License-Identifier: GPL-2.0
/* Vectors, tickets, and the functions that make operations */
#include "unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constructors),
		unit_case(mixed),
		unit_case(statuses),
		unit_case(any_count),
		unit_case(tickets),
	};

	return UNIT_RUN(tests);
}
