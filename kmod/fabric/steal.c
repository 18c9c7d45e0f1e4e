// SPDX-License-Identifier: GPL-2.0
/*
 * Thefts: the CPU of this node takes tasks from the deques of this node's workers and hands
 * them over to a thief on another node, which requests them by one message. The thief does
 * not wait for the attention of a busy worker. The deques are libkdsm's (lib/task/), whose
 * workers concurrently steal from each other by the same rules.
 *
 * In every domain only the CPUs of this node change ends, attention and the changed fields
 * of a task, and no device does an atomic on them. So the CPU's compare-and-swap on ends is
 * safe in domain hca, too. That compare-and-swap is a full barrier and pairs with the
 * fetch-and-add in kd_task_offer() (lib/task/deque.c), by which the worker made the tasks
 * public, so this CPU reads the tasks as the worker stored them. tests/spin/task-steal.pml
 * models the protocol.
 *
 * Neither the content of the memory, which programs write, nor the request of a peer is
 * trusted: every offset is checked, and every loop is bounded.
 */
#include "internal.h"

/* Attempts to change ends before the theft gives up a deque that others keep changing */
#define KDSM_THEFT_TRIES	16

static const u8 kdsm_no_result[sizeof(struct kdsm_task) - offsetof(struct kdsm_task, bell)];

static int kdsm_task_mark(struct kdsm_memory *memory, u64 place, u32 thief, bool can_sleep)
{
	/*
	 * Order this CPU's reads of the task and the zeroing of its result before the store to
	 * thief. Pairs with the acquire of thief in wait_for() and kd_task_await()
	 * (lib/task/steal.c), after which the owner looks for a result or stores another task
	 * in the slot.
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

/*
 * Pack one task that the thief has taken, and mark the slot with the thief. If the slot
 * holds a proxy, pack the task that the proxy stands for.
 */
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
	/* The thief has the task that the proxy stood for, so the proxy is done. */
	return kdsm_task_mark(memory, place, KDSM_THIEF_DONE, can_sleep);
}

/*
 * Take tasks of a worker for the thief. Return how many tasks from *tail on the thief has
 * now, 0 if it got none, or -errno.
 */
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
		/*
		 * Touch the first and the last task before changing ends, so that -EAGAIN and
		 * -ENOMEM leave the deque unchanged.
		 */
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
	/* The tasks are already taken, so a retry would lose them: fail instead. */
	if (err == -EAGAIN)
		err = -EIO;
	theft->taken = count;
	return err;
}

/*
 * Ask all workers of this node to make tasks public. A worker clears attention before it
 * makes tasks public (lib/task/deque.c), so a request set during that is not lost.
 */
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
		/* Store only if necessary, as the store takes the cache line from the worker. */
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
