// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Single operations: those that the CPU performs on the own part, and those that are passed
 * to the backend. Vectors of operations are in vector.c.
 *
 * Other threads, processes and nodes share the own part and may write to it at any time.
 * Aligned words are loaded and stored whole, in one sequentially consistent order with the
 * atomics. All other data is copied without any order, because the API promises no more.
 */
#include <errno.h>
#include <string.h>
#include "internal.h"

/* Number of pieces of a long get or put that are in flight together */
#define PIECES (KDSM_MAX_INFLIGHT_BYTES / KDSM_MAX_OP_LENGTH)

static int copy_check(const struct kdsm_region *region, uint64_t offset,
		      const void *memory, size_t length)
{
	int ret;

	if (!length)
		return kd_because(-EINVAL, "length is 0");
	ret = kdsm_range_check(region, offset, length);
	if (ret)
		return ret;
	return memory ? 0 : kd_because(-EFAULT, "the address of the memory is NULL");
}

static int own_get(const struct kdsm_region *region, uint64_t offset, void *to,
		   size_t length)
{
	uint64_t word;
	int ret;

	ret = copy_check(region, offset, to, length);
	if (ret)
		return ret;
	if (length == 8 && !(offset & 7)) {
		word = __atomic_load_n(kdsm_word(region, offset), __ATOMIC_SEQ_CST);
		memcpy(to, &word, 8);
	} else {
		memmove(to, region->part + offset, length);
	}
	return 0;
}

static int own_put(const struct kdsm_region *region, uint64_t offset,
		   const void *from, size_t length)
{
	uint64_t word;
	int ret;

	ret = copy_check(region, offset, from, length);
	if (ret)
		return ret;
	if (!region->writable)
		return kd_read_only(region);
	if (length == 8 && !(offset & 7)) {
		memcpy(&word, from, 8);
		__atomic_store_n(kdsm_word(region, offset), word, __ATOMIC_SEQ_CST);
	} else {
		memmove(region->part + offset, from, length);
	}
	return 0;
}

static int word_check(const struct kdsm_region *region, uint64_t offset)
{
	int ret = kd_place_check(region, offset, 8, 8);

	if (ret)
		return ret;
	return region->writable ? 0 : kd_read_only(region);
}

static int own_cas(const struct kdsm_region *region, uint64_t offset,
		   uint64_t expected, uint64_t desired, uint64_t *former)
{
	int ret = word_check(region, offset);

	if (ret)
		return ret;
	__atomic_compare_exchange_n(kdsm_word(region, offset), &expected, desired,
				    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (former)
		*former = expected;
	return 0;
}

static int own_faa(const struct kdsm_region *region, uint64_t offset,
		   uint64_t add, uint64_t *former)
{
	int ret = word_check(region, offset);
	uint64_t was;

	if (ret)
		return ret;
	was = __atomic_fetch_add(kdsm_word(region, offset), add, __ATOMIC_SEQ_CST);
	if (former)
		*former = was;
	return 0;
}

static int own_notify(struct kdsm_region *region, const struct kdsm_op *op)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)op->addr;
	int ret;

	if (op->length % 8 || op->offset % 8)
		return kd_because(-EINVAL,
				  "KDSM_OP_NOTIFY: offset %llu and length %u are not both multiples of 8",
				  op->offset, op->length);
	ret = copy_check(region, op->offset, from, op->length);
	if (ret)
		return ret;
	/* The first word last, and as a release: it announces the others. */
	if (op->length > 8)
		ret = own_put(region, op->offset + 8, from + 8, op->length - 8);
	if (!ret)
		ret = own_put(region, op->offset, from, 8);
	return ret ? ret : region->backend->wake(region, op->offset);
}

static int bad_length(const struct kdsm_op *op)
{
	return kd_because(-EINVAL, "an operation of opcode %u cannot have length %u",
			  op->opcode, op->length);
}

static int own_steal(struct kdsm_region *region, const struct kdsm_op *op,
		     struct kdsm_theft *theft)
{
	if (op->length < kdsm_theft_size(1) || op->length > kdsm_theft_size(KDSM_THEFT_MOST))
		return bad_length(op);
	if (!theft)
		return kd_because(-EFAULT, "the address of the memory is NULL");
	if (op->length != kdsm_theft_size(theft->most))
		return bad_length(op);
	return region->writable ? kd_no_reason(kdsm_steal_in(region->part, region->part_size,
							     region->node, op->offset, theft)) :
				  kd_read_only(region);
}

/* One operation of a vector on the own part, with the checks of the module. */
int kdsm_own_op(struct kdsm_region *region, struct kdsm_op *op)
{
	void *memory = (void *)(uintptr_t)op->addr;
	uint64_t former;
	int ret;

	if (op->reserved || (op->flags & ~KDSM_OP_NOTIFY) ||
	    (op->flags && op->opcode != KDSM_OP_PUT))
		return kd_because(-EINVAL, "an operation of opcode %u cannot have flags 0x%x",
				  op->opcode, op->flags);
	switch (op->opcode) {
	case KDSM_OP_GET:
		if (op->length > KDSM_MAX_OP_LENGTH)
			return bad_length(op);
		return own_get(region, op->offset, memory, op->length);
	case KDSM_OP_PUT:
		if (op->length > KDSM_MAX_OP_LENGTH)
			return bad_length(op);
		if (op->flags & KDSM_OP_NOTIFY)
			return own_notify(region, op);
		return own_put(region, op->offset, memory, op->length);
	case KDSM_OP_CAS:
		if (op->length != 8)
			return bad_length(op);
		ret = own_cas(region, op->offset, op->compare, op->operand, &former);
		break;
	case KDSM_OP_FAA:
		if (op->length != 8)
			return bad_length(op);
		ret = own_faa(region, op->offset, op->operand, &former);
		break;
	case KDSM_OP_FIND:
		if (op->length != sizeof(struct kdsm_find))
			return bad_length(op);
		if (!memory)
			return kd_because(-EFAULT, "the address of the memory is NULL");
		return region->writable ? kd_no_reason(kdsm_find_in(region->part, region->part_size,
								    op->offset, memory)) :
					  kd_read_only(region);
	case KDSM_OP_STEAL:
		return own_steal(region, op, memory);
	default:
		return kd_because(-EINVAL, "there is no operation of opcode %u", op->opcode);
	}
	if (!ret)
		op->result = former;
	return ret;
}

int kd_op_failed(const struct kdsm_region *region, const struct kdsm_op *op, int error)
{
	if (op->node >= region->nodes)
		return error == -EINVAL ? kd_no_part(region, op->node) : kd_no_reason(error);
	return kd_because(error, "region \"%s\": %u bytes at offset %llu of node %u: %s",
			  region->name, op->length, op->offset, op->node, kdsm_strerror(error));
}

static int remote_op(struct kdsm_region *region, struct kdsm_op *op)
{
	int ret;

	if (region->coherent)
		return kd_not_partitioned(region);
	ret = region->backend->submit(region, op, 1, NULL);
	return ret ? kd_op_failed(region, op, ret) : 0;
}

/* A get or put of any length to another node, in as many pieces as necessary */
static int remote_copy(struct kdsm_region *region, struct kdsm_op op, size_t length)
{
	struct kdsm_op pieces[PIECES];
	unsigned int n;
	int ret;

	if (length <= KDSM_MAX_OP_LENGTH) {
		op.length = length;
		return remote_op(region, &op);
	}
	/* Check the whole range first, so that an invalid range transfers nothing. */
	ret = kdsm_range_check(region, op.offset, length);
	if (ret)
		return ret;
	while (length) {
		for (n = 0; n < PIECES && length; n++) {
			op.length = length < KDSM_MAX_OP_LENGTH ? length : KDSM_MAX_OP_LENGTH;
			pieces[n] = op;
			op.offset += op.length;
			op.addr += op.length;
			length -= op.length;
		}
		ret = region->backend->submit(region, pieces, n, NULL);
		if (ret)
			return kd_op_failed(region, &pieces[0], ret);
	}
	return 0;
}

int kdsm_get(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     void *to, size_t length)
{
	if (node == region->node)
		return own_get(region, offset, to, length);
	return remote_copy(region, kdsm_op_get(node, offset, to, 0), length);
}

int kdsm_put(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     const void *from, size_t length)
{
	struct kdsm_op op = kdsm_op_put(node, offset, from, 0);

	if (node == region->node)
		return own_put(region, offset, from, length);
	op.status = remote_copy(region, op, length);
	if (!op.status)
		kd_unsettled(region, &op, 1);
	return op.status;
}

int kdsm_cas(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t expected, uint64_t desired, uint64_t *former)
{
	struct kdsm_op op;
	int ret;

	if (node == region->node && region->cpu_atomics)
		return own_cas(region, offset, expected, desired, former);
	op = kdsm_op_cas(node, offset, expected, desired);
	ret = remote_op(region, &op);
	if (!ret && former)
		*former = op.result;
	return ret;
}

int kdsm_faa(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t add, uint64_t *former)
{
	struct kdsm_op op;
	int ret;

	if (node == region->node && region->cpu_atomics)
		return own_faa(region, offset, add, former);
	op = kdsm_op_faa(node, offset, add);
	ret = remote_op(region, &op);
	if (!ret && former)
		*former = op.result;
	return ret;
}

/*
 * The fields of an operation are narrower than the arguments. Saturate an argument that
 * does not fit, so that the operation is refused, rather than truncating it to a valid
 * value.
 */
static struct kdsm_op make_op(uint8_t opcode, unsigned int node, uint64_t offset,
			      size_t length)
{
	return (struct kdsm_op){
		.opcode = opcode,
		.node = node < UINT16_MAX ? node : UINT16_MAX,
		.length = length < UINT32_MAX ? length : UINT32_MAX,
		.offset = offset,
	};
}

struct kdsm_op kdsm_op_get(unsigned int node, uint64_t offset, void *to, size_t length)
{
	struct kdsm_op op = make_op(KDSM_OP_GET, node, offset, length);

	op.addr = (uintptr_t)to;
	return op;
}

struct kdsm_op kdsm_op_put(unsigned int node, uint64_t offset, const void *from,
			   size_t length)
{
	struct kdsm_op op = make_op(KDSM_OP_PUT, node, offset, length);

	op.addr = (uintptr_t)from;
	return op;
}

struct kdsm_op kdsm_op_cas(unsigned int node, uint64_t offset, uint64_t expected,
			   uint64_t desired)
{
	struct kdsm_op op = make_op(KDSM_OP_CAS, node, offset, 8);

	op.compare = expected;
	op.operand = desired;
	return op;
}

struct kdsm_op kdsm_op_faa(unsigned int node, uint64_t offset, uint64_t add)
{
	struct kdsm_op op = make_op(KDSM_OP_FAA, node, offset, 8);

	op.operand = add;
	return op;
}

struct kdsm_op kdsm_op_find(unsigned int node, uint64_t offset, struct kdsm_find *find)
{
	struct kdsm_op op = make_op(KDSM_OP_FIND, node, offset, sizeof(*find));

	op.addr = (uintptr_t)find;
	return op;
}

struct kdsm_op kdsm_op_steal(unsigned int node, uint64_t offset, struct kdsm_theft *theft)
{
	struct kdsm_op op = make_op(KDSM_OP_STEAL, node, offset, kdsm_theft_size(theft->most));

	op.addr = (uintptr_t)theft;
	return op;
}
