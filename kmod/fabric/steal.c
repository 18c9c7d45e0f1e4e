// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that the CPU of a node hands to a thief of another, which asks by one message: a
 * worker that is busy does not notice, and nobody waits until it comes by. The deques are
 * libkdsm's, whose workers take tasks from each other in the same way at the same time.
 *
 * ends, attention, and what is changed of a task are changed by the CPUs of this node
 * alone, in every domain, and no device ever does an atomic on them: so the CPU's
 * compare-and-swap is right in domain hca, too. It is a full barrier, and pairs with the
 * release of whoever made the tasks public: they are read as they were stored.
 * tests/spin/task-steal.pml is a model of it.
 *
 * Everything that is found in the memory is a program's to write, and what a peer asks for
 * is the peer's: places are checked, and walks are of bounded length.
 */
#include "internal.h"

/* Workers that take from the same deque all the time may be lucky so often. */
#define KDSM_THEFT_TRIES	16

static const u8 kdsm_no_result[sizeof(struct kdsm_task) - offsetof(struct kdsm_task, bell)];

static int kdsm_task_mark(struct kdsm_memory *memory, u64 place, u32 thief, bool can_sleep)
{
	/*
	 * Pairs with the owner's acquire of thief, after which it looks for a result, or puts
	 * another task there: what was read has been read, and what was zeroed is zero.
	 */
	smp_mb();
	return kdsm_memory_copy(memory, place + offsetof(struct kdsm_task, thief), &thief,
				sizeof(thief), true, can_sleep);
}

static int kdsm_task_pack(struct kdsm_memory *memory, const struct kdsm_theft *theft,
			  u64 place, struct kdsm_task_packed *packed, bool can_sleep)
{
	int err;

	packed->origin.bytes = KDSM_TASK_BYTES;
	err = kdsm_memory_copy(memory, place + offsetof(struct kdsm_task, type),
			       &packed->origin.type, sizeof(packed->origin.type), false,
			       can_sleep);
	if (!err)
		err = kdsm_memory_copy(memory, place + offsetof(struct kdsm_task, data),
				       packed->arguments, KDSM_TASK_BYTES, false, can_sleep);
	if (!err)
		err = kdsm_memory_copy(memory, place + offsetof(struct kdsm_task, bell),
				       (void *)kdsm_no_result, sizeof(kdsm_no_result), true,
				       can_sleep);
	return err ? err : kdsm_task_mark(memory, place, theft->thief, can_sleep);
}

/* A task that is the thief's now. */
static int kdsm_task_hand_out(struct kdsm_memory *memory, const struct kdsm_theft *theft,
			      struct kdsm_task_origin origin, struct kdsm_task_packed *packed,
			      bool can_sleep)
{
	u64 place = kdsm_theft_task(theft, origin.worker, origin.slot);
	u32 type;
	int err;

	err = kdsm_memory_copy(memory, place, &type, sizeof(type), false, can_sleep);
	if (err)
		return err;
	if (!type || type != theft->proxy) {
		packed->origin = origin;
		return kdsm_task_pack(memory, theft, place, packed, can_sleep);
	}
	err = kdsm_memory_copy(memory, place + offsetof(struct kdsm_task, data), packed,
			       sizeof(*packed), false, can_sleep);
	if (err)
		return err;
	if (!packed->origin.type) {
		if (!kdsm_theft_is_near(theft, &packed->origin))
			return -EIO;
		packed->origin.node = origin.node;
		err = kdsm_task_pack(memory, theft,
				     kdsm_theft_task(theft, packed->origin.worker,
						     packed->origin.slot),
				     packed, can_sleep);
		if (err)
			return err;
	}
	/* Nothing is left to do for its owner. */
	return kdsm_task_mark(memory, place, KDSM_THIEF_DONE, can_sleep);
}

/* So many tasks of a worker from *tail on are the thief's; 0: it has none; or an error. */
static int kdsm_ends_take(struct kdsm_memory *memory, const struct kdsm_theft *theft,
			  u32 worker, u32 *tail, bool can_sleep)
{
	u64 place = kdsm_theft_worker(theft, worker) + offsetof(struct kdsm_task_worker, ends);
	unsigned int tries;
	u64 ends, former, word;
	u32 count;
	int err;

	err = kdsm_memory_copy(memory, place, &ends, sizeof(ends), false, can_sleep);
	if (err)
		return err;
	for (tries = 0; tries < KDSM_THEFT_TRIES; tries++) {
		count = kdsm_ends_share(ends, theft->deque, theft->most);
		if (!count)
			return 0;
		*tail = kdsm_ends_tail(ends);
		/* Before anything is changed: the memory of the first and the last is there. */
		err = kdsm_memory_copy(memory, kdsm_theft_task(theft, worker, *tail), &word,
				       sizeof(word), false, can_sleep);
		if (!err)
			err = kdsm_memory_copy(memory,
					       kdsm_theft_task(theft, worker, *tail + count) -
					       sizeof(word), &word, sizeof(word), false,
					       can_sleep);
		if (!err)
			err = kdsm_memory_atomic(memory, true, place, ends + count, ends,
						 &former, can_sleep);
		if (err)
			return err;
		if (former == ends)
			return count;
		ends = former;
	}
	return 0;
}

static int kdsm_steal_from(struct kdsm_memory *memory, unsigned int node,
			   struct kdsm_theft *theft, u32 worker,
			   struct kdsm_task_packed *tasks, bool can_sleep)
{
	struct kdsm_task_origin origin = { .node = node, .worker = worker };
	int count, i, err = 0;

	count = kdsm_ends_take(memory, theft, worker, &origin.slot, can_sleep);
	for (i = 0; i < count && !err; i++, origin.slot++)
		err = kdsm_task_hand_out(memory, theft, origin, &tasks[i], can_sleep);
	if (count < 0)
		return count;
	/* Another try would not have these. */
	if (err == -EAGAIN)
		err = -EIO;
	theft->taken = count;
	return err;
}

/* Who makes something public clears it before (deque.c), so nothing is forgotten. */
static int kdsm_ask_for_attention(struct kdsm_memory *memory, const struct kdsm_theft *theft,
				  u32 used, bool can_sleep)
{
	u32 i, one = 1, attention;
	u64 place;
	int err = 0;

	for (i = 0; i < used && !err; i++) {
		place = kdsm_theft_worker(theft, i) +
			offsetof(struct kdsm_task_worker, attention);
		err = kdsm_memory_copy(memory, place, &attention, sizeof(attention), false,
				       can_sleep);
		/* Its cache line is the worker's. */
		if (!err && !attention)
			err = kdsm_memory_copy(memory, place, &one, sizeof(one), true,
					       can_sleep);
	}
	return err;
}

int kdsm_steal(struct kdsm_memory *memory, unsigned int node, u64 place,
	       struct kdsm_theft *theft, struct kdsm_task_packed *tasks, bool can_sleep)
{
	struct kdsm_task_crew crew;
	u32 used, i;
	int err;

	err = kdsm_memory_copy(memory, place, &crew, sizeof(crew), false, can_sleep);
	if (err)
		return err;
	theft->busy = crew.busy;
	used = min(crew.used, theft->count);
	for (i = 0; i < used && !err && !theft->taken; i++)
		err = kdsm_steal_from(memory, node, theft, (theft->first % used + i) % used,
				      tasks, can_sleep);
	if (!err && !theft->taken)
		err = kdsm_ask_for_attention(memory, theft, used, can_sleep);
	return err;
}

/* ---- on the wire ---- */

void kdsm_steal_ask(struct kdsm_wire_steal *wire, const struct kdsm_operation *op)
{
	const struct kdsm_theft *theft = op->data;

	*wire = (struct kdsm_wire_steal) {
		.id = cpu_to_le32(kdsm_memory_id(op->memory)),
		.most = cpu_to_le32(theft->most),
		.crew = cpu_to_le64(op->offset),
		.workers = cpu_to_le64(theft->workers),
		.deques = cpu_to_le64(theft->deques),
		.stride = cpu_to_le32(theft->stride),
		.count = cpu_to_le32(theft->count),
		.deque = cpu_to_le32(theft->deque),
		.first = cpu_to_le32(theft->first),
		.thief = cpu_to_le32(theft->thief),
		.proxy = cpu_to_le32(theft->proxy),
	};
}

unsigned int kdsm_steal_reply(const struct kdsm_theft *theft)
{
	return sizeof(struct kdsm_wire_stolen) + theft->most * sizeof(struct kdsm_task_packed);
}

int kdsm_steal_answered(struct kdsm_theft *theft, const void *reply, unsigned int length)
{
	const struct kdsm_wire_stolen *stolen = reply;
	u32 taken;

	if (length < sizeof(*stolen))
		return -EPROTO;
	taken = le32_to_cpu(stolen->taken);
	if (taken > theft->most ||
	    length != sizeof(*stolen) + taken * sizeof(struct kdsm_task_packed))
		return -EPROTO;
	memcpy(kdsm_theft_tasks(theft), stolen + 1, taken * sizeof(struct kdsm_task_packed));
	theft->taken = taken;
	theft->busy = le32_to_cpu(stolen->busy);
	return 0;
}

int kdsm_steal_serve(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_steal *wire = request->data;
	struct kdsm_wire_stolen *reply = request->reply;
	struct kdsm_fabric *fabric = context;
	struct kdsm_memory *memory;
	struct kdsm_theft theft;
	u64 crew;
	int err;

	BUILD_BUG_ON(sizeof(*reply) + KDSM_THEFT_MOST * sizeof(struct kdsm_task_packed) >
		     KDSM_MESSAGE_ROOM);
	if (request->length != sizeof(*wire))
		return -EINVAL;
	crew = le64_to_cpu(wire->crew);
	theft = (struct kdsm_theft) {
		.workers = le64_to_cpu(wire->workers),
		.deques = le64_to_cpu(wire->deques),
		.stride = le32_to_cpu(wire->stride),
		.count = le32_to_cpu(wire->count),
		.deque = le32_to_cpu(wire->deque),
		.first = le32_to_cpu(wire->first),
		.thief = le32_to_cpu(wire->thief),
		.proxy = le32_to_cpu(wire->proxy),
		.most = le32_to_cpu(wire->most),
	};
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(wire->id));
	if (!memory)
		return -ENOENT;
	err = kdsm_theft_check(&theft, crew, kdsm_memory_size(memory));
	if (!err && kdsm_memory_read_only(memory))
		err = -EACCES;
	if (!err)
		err = kdsm_steal(memory, fabric->config.node, crew, &theft, (void *)(reply + 1),
				 request->can_sleep);
	kdsm_memory_put(memory);
	if (err)
		return err;
	*reply = (struct kdsm_wire_stolen) {
		.taken = cpu_to_le32(theft.taken),
		.busy = cpu_to_le32(theft.busy),
	};
	request->reply_length = kdsm_steal_reply(&(struct kdsm_theft) { .most = theft.taken });
	return 0;
}
