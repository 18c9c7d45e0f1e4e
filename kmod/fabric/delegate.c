// SPDX-License-Identifier: GPL-2.0
/*
 * Delegations: operations that the CPU of the peer executes, requested by a message. These
 * are atomics in domain sw, small gets gathered into one message, finds (find.c) and thefts
 * (steal.c).
 *
 * On a software device a read costs both CPUs about as much as a message, so several small
 * gets are cheaper as one message than as that many reads. Hardware reads without the
 * peer's CPU, at a rate that messages cannot reach, so on hardware all gets are reads.
 */
#include <linux/slab.h>

#include "internal.h"

/* One request in flight, for count operations */
struct kdsm_delegation {
	struct kdsm_part part;
	struct kdsm_call call;
	unsigned int count;
	struct kdsm_operation *ops[];	/* followed by the room for the reply */
};

/* ---- requests ---- */

/* Length of the operation's piece of the reply, in bytes */
static unsigned int kdsm_delegated_reply(const struct kdsm_operation *op)
{
	if (op->opcode == KDSM_OP_FIND)
		return sizeof(struct kdsm_wire_found);
	if (op->opcode == KDSM_OP_STEAL)
		return kdsm_steal_reply(op->data);
	return op->length;
}

static void kdsm_delegation_done(struct kdsm_call *call)
{
	struct kdsm_delegation *delegation =
		container_of(call, struct kdsm_delegation, call);
	struct kdsm_fabric *fabric = delegation->part.batch->fabric;
	const u8 *reply = call->reply;
	unsigned int i, expected = 0;

	for (i = 0; i < delegation->count; i++)
		expected += kdsm_delegated_reply(delegation->ops[i]);
	/* The number of stolen tasks varies; kdsm_steal_answered() checks the length. */
	if (delegation->ops[0]->opcode == KDSM_OP_STEAL)
		expected = call->reply_length;
	if (call->status == -ENOENT || (!call->status && call->reply_length != expected))
		call->status = -EIO;
	for (i = 0; i < delegation->count; i++) {
		struct kdsm_operation *op = delegation->ops[i];

		op->status = call->status;
		if (call->status)
			kdsm_count(fabric->peers[op->node].counters, KDSM_STAT_ERRORS);
		else if (op->opcode == KDSM_OP_GET)
			memcpy(op->data, reply, op->length);
		else if (op->opcode == KDSM_OP_FIND)
			op->status = kdsm_find_answered(op->data, (const void *)reply);
		else if (op->opcode == KDSM_OP_STEAL)
			op->status = kdsm_steal_answered(op->data, reply, call->reply_length);
		else
			op->result = le64_to_cpup((const __le64 *)reply);
		reply += kdsm_delegated_reply(op);
	}
	kdsm_batch_part_done(&delegation->part);
}

static void kdsm_delegation_release(struct kdsm_part *part)
{
	kfree(container_of(part, struct kdsm_delegation, part));
}

static struct kdsm_delegation *kdsm_delegation_alloc(struct kdsm_batch *batch,
						     unsigned int count,
						     unsigned int reply_length)
{
	struct kdsm_delegation *delegation;

	delegation = kzalloc(struct_size(delegation, ops, count) + reply_length, GFP_KERNEL);
	if (!delegation)
		return NULL;
	delegation->part.batch = batch;
	delegation->part.release = kdsm_delegation_release;
	delegation->call.reply = &delegation->ops[count];
	delegation->call.reply_length = reply_length;
	delegation->call.done = kdsm_delegation_done;
	delegation->call.tie = batch->tie;
	delegation->call.killable = batch->killable;
	return delegation;
}

static void kdsm_delegation_post(struct kdsm_delegation *delegation,
				 enum kdsm_message_type type, const void *wire,
				 unsigned int length)
{
	struct kdsm_batch *batch = delegation->part.batch;
	unsigned int i;
	int err;

	list_add_tail(&delegation->part.link, &batch->parts);
	atomic_inc(&batch->pending);
	err = kdsm_call_post(batch->fabric, delegation->ops[0]->node, type, wire, length,
			     &delegation->call);
	delegation->part.connection = delegation->call.connection;
	if (!err)
		return;
	for (i = 0; i < delegation->count; i++)
		delegation->ops[i]->status = err;
	kdsm_batch_part_done(&delegation->part);
}

void kdsm_delegate_atomic(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	bool cas = op->opcode == KDSM_OP_CAS;
	struct kdsm_wire_atomic wire = {
		.id = cpu_to_le32(kdsm_memory_id(op->memory)),
		.offset = cpu_to_le64(op->offset),
		.operand = cpu_to_le64(op->operand),
		.compare = cpu_to_le64(op->compare),
	};
	struct kdsm_delegation *delegation = kdsm_delegation_alloc(batch, 1, sizeof(__le64));

	if (!delegation) {
		op->status = -ENOMEM;
		return;
	}
	delegation->ops[delegation->count++] = op;
	kdsm_count(batch->fabric->peers[op->node].counters,
		   cas ? KDSM_STAT_AM_CAS : KDSM_STAT_AM_FAA);
	kdsm_delegation_post(delegation, cas ? KDSM_MESSAGE_CAS : KDSM_MESSAGE_FAA, &wire,
			     sizeof(wire));
}

void kdsm_delegate_find(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	struct kdsm_delegation *delegation =
		kdsm_delegation_alloc(batch, 1, sizeof(struct kdsm_wire_found));
	struct kdsm_wire_find wire;

	if (!delegation) {
		op->status = -ENOMEM;
		return;
	}
	delegation->ops[delegation->count++] = op;
	kdsm_find_ask(&wire, op);
	kdsm_count(batch->fabric->peers[op->node].counters, KDSM_STAT_AM_FIND);
	kdsm_delegation_post(delegation, KDSM_MESSAGE_FIND, &wire, sizeof(wire));
}

void kdsm_delegate_steal(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	struct kdsm_delegation *delegation =
		kdsm_delegation_alloc(batch, 1, kdsm_steal_reply(op->data));
	struct kdsm_wire_steal wire;

	if (!delegation) {
		op->status = -ENOMEM;
		return;
	}
	delegation->ops[delegation->count++] = op;
	kdsm_steal_ask(&wire, op);
	kdsm_count(batch->fabric->peers[op->node].counters, KDSM_STAT_AM_STEAL);
	kdsm_delegation_post(delegation, KDSM_MESSAGE_STEAL, &wire, sizeof(wire));
}

/*
 * Request as many gets from the head of the list as fit into one message. A message is about
 * one memory.
 */
static void kdsm_delegate_some(struct kdsm_batch *batch, struct list_head *gets)
{
	struct kdsm_memory *memory =
		list_first_entry(gets, struct kdsm_operation, link)->memory;
	struct kdsm_delegation *delegation;
	struct kdsm_operation *op, *next;
	struct kdsm_wire_gather wire;
	unsigned int bytes = 0;

	delegation = kdsm_delegation_alloc(batch, KDSM_GATHER_MAX, KDSM_MESSAGE_ROOM);
	wire.id = cpu_to_le32(kdsm_memory_id(memory));
	list_for_each_entry_safe(op, next, gets, link) {
		if (!delegation) {
			list_del(&op->link);
			op->status = -ENOMEM;
			continue;
		}
		if (op->memory != memory || delegation->count == KDSM_GATHER_MAX ||
		    bytes + op->length > KDSM_MESSAGE_ROOM)
			break;
		list_del(&op->link);
		wire.places[delegation->count].offset = cpu_to_le64(op->offset);
		wire.places[delegation->count].length = cpu_to_le32(op->length);
		delegation->ops[delegation->count++] = op;
		bytes += op->length;
		kdsm_count(batch->fabric->peers[op->node].counters, KDSM_STAT_AM_GET);
		kdsm_count_add(batch->fabric->peers[op->node].counters,
			       KDSM_STAT_GET_BYTES, op->length);
	}
	if (!delegation)
		return;
	wire.count = cpu_to_le32(delegation->count);
	kdsm_delegation_post(delegation, KDSM_MESSAGE_GATHER, &wire,
			     offsetof(struct kdsm_wire_gather, places[delegation->count]));
}

bool kdsm_delegates_get(const struct kdsm_fabric *fabric, const struct kdsm_operation *op)
{
	return fabric->device_is_software && op->opcode == KDSM_OP_GET && !op->ordered &&
	       op->length <= KDSM_GATHER_LENGTH;
}

void kdsm_delegate_gets(struct kdsm_batch *batch, struct list_head *gets)
{
	while (!list_empty(gets))
		kdsm_delegate_some(batch, gets);
}

/* ---- serving ---- */

static int kdsm_serve_atomic(struct kdsm_fabric *fabric, bool cas,
			     struct kdsm_request *request)
{
	const struct kdsm_wire_atomic *atomic = request->data;
	struct kdsm_memory *memory;
	u64 offset, former;
	int err;

	if (request->length != sizeof(*atomic))
		return -EINVAL;
	offset = le64_to_cpu(atomic->offset);
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(atomic->id));
	if (!memory)
		return -ENOENT;
	err = -ERANGE;
	/* In the other domains the CPU's atomic would race with those of the device. */
	if (kdsm_memory_domain(memory) != KDSM_DOMAIN_SW)
		err = -EINVAL;
	else if (kdsm_memory_read_only(memory))
		err = -EACCES;
	else if (offset % 8 == 0 && offset < kdsm_memory_size(memory))
		err = kdsm_memory_atomic(memory, cas, offset, le64_to_cpu(atomic->operand),
					 le64_to_cpu(atomic->compare), &former,
					 request->can_sleep);
	kdsm_memory_put(memory);
	if (err)
		return err;
	*(__le64 *)request->reply = cpu_to_le64(former);
	request->reply_length = sizeof(__le64);
	return 0;
}

int kdsm_delegate_serve_cas(void *context, struct kdsm_request *request)
{
	return kdsm_serve_atomic(context, true, request);
}

int kdsm_delegate_serve_faa(void *context, struct kdsm_request *request)
{
	return kdsm_serve_atomic(context, false, request);
}

int kdsm_delegate_serve_gather(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_gather *gather = request->data;
	unsigned int count, length, i, total = 0;
	struct kdsm_memory *memory;
	u64 offset, size;
	int err = 0;

	if (request->length < offsetof(struct kdsm_wire_gather, places))
		return -EINVAL;
	count = le32_to_cpu(gather->count);
	if (!count || count > KDSM_GATHER_MAX ||
	    request->length != offsetof(struct kdsm_wire_gather, places[count]))
		return -EINVAL;
	memory = kdsm_memory_lookup(context, le32_to_cpu(gather->id));
	if (!memory)
		return -ENOENT;
	size = kdsm_memory_size(memory);
	for (i = 0; i < count && !err; i++) {
		offset = le64_to_cpu(gather->places[i].offset);
		length = le32_to_cpu(gather->places[i].length);
		if (!length || length > KDSM_GATHER_LENGTH || offset >= size ||
		    length > size - offset || total + length > KDSM_MESSAGE_ROOM)
			err = -ERANGE;
		else
			err = kdsm_memory_copy(memory, offset, request->reply + total,
					       length, false, request->can_sleep);
		total += length;
	}
	kdsm_memory_put(memory);
	request->reply_length = total;
	return err;
}
