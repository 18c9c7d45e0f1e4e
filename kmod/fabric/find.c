// SPDX-License-Identifier: GPL-2.0
/*
 * Find-or-put on a table by the CPU of the node that holds the part. The walk over the
 * entries of the index costs a peer one message. Without it, the peer would need a get for
 * the entries, a get for each node with the same fragment, and an atomic for the empty
 * entry. <kdsm/uapi_table.h> has the rules of the walk. The table is libkdsm's
 * (lib/table/), whose processes search it concurrently with their own CPUs and with
 * operations.
 *
 * Neither the content of the memory, which programs write, nor the request of a peer is
 * trusted: every offset is checked, and a walk has a bounded length.
 */
#include <linux/sched.h>

#include "internal.h"

/*
 * Entries that a find examines in softirq. Each may be a cache miss, and a program chooses how many
 * finds a peer gets, so a longer find is for a worker, which shares the CPU with other tasks.
 */
#define KDSM_FIND_BUDGET	64U

/* Examine one entry. Return enum kdsm_find_outcome, 0 to continue the walk, or -errno. */
static int kdsm_find_look(struct kdsm_memory *memory, u64 index, struct kdsm_find *find,
			  bool can_sleep)
{
	u64 place = index + find->entry * sizeof(u64), entry, number, node[2];
	int outcome, err;

	err = kdsm_memory_copy(memory, place, &entry, sizeof(entry), false, can_sleep);
	if (!err && !entry)
		/* Publish the node, which the peer stored before it sent the request. */
		err = kdsm_memory_atomic(memory, true, place,
					 kdsm_entry(kdsm_fragment(find->fragment), find->number),
					 0, &entry, can_sleep);
	if (err)
		return err;
	if (!entry)
		return KDSM_FIND_PUT;
	outcome = kdsm_find_judge(find, entry, &number);
	if (outcome == KDSM_FIND_FOUND) {
		/* The address depends on the entry, so the CPU reads the node after the entry. */
		err = kdsm_memory_copy(memory, find->data + (number - find->first) * sizeof(node),
				       node, sizeof(node), false, can_sleep);
		if (err)
			return err;
		if (!kdsm_find_same(find, node[0], node[1]))
			return 0;
	}
	if (outcome > 0)
		find->number = number;
	return outcome;
}

int kdsm_find(struct kdsm_memory *memory, u64 index, struct kdsm_find *find, bool can_sleep)
{
	unsigned int examined = 0;
	int outcome;

	/* The CPU's atomic would race with those of the device. */
	if (kdsm_memory_domain(memory) == KDSM_DOMAIN_HCA)
		return -EOPNOTSUPP;
	do {
		if (examined == KDSM_FIND_BUDGET) {
			if (!can_sleep)
				return -EAGAIN;
			cond_resched();
			examined = 0;
		}
		examined++;
		outcome = kdsm_find_look(memory, index, find, can_sleep);
		if (outcome < 0)
			return outcome;
	} while (!kdsm_find_ends(find, outcome));
	return 0;
}

/* ---- on the wire ---- */

void kdsm_find_ask(struct kdsm_wire_find *wire, const struct kdsm_operation *op)
{
	const struct kdsm_find *find = op->data;

	*wire = (struct kdsm_wire_find) {
		.id = cpu_to_le32(kdsm_memory_id(op->memory)),
		.probes = cpu_to_le32(find->probes),
		.index = cpu_to_le64(op->offset),
		.entries = cpu_to_le64(find->entries),
		.nodes = cpu_to_le64(find->nodes),
		.data = cpu_to_le64(find->data),
		.first = cpu_to_le64(find->first),
		/* Nodes are bytes in the program's order; only the table interprets them. */
		.node = { (__force __le64)find->node[0], (__force __le64)find->node[1] },
		.ignore = (__force __le64)find->ignore,
		.entry = cpu_to_le64(find->entry),
		.number = cpu_to_le64(find->number),
		.fragment = cpu_to_le32(find->fragment),
		.done = cpu_to_le32(find->done),
		.run = cpu_to_le32(find->run),
	};
}

int kdsm_find_answered(struct kdsm_find *find, const struct kdsm_wire_found *found)
{
	u64 entry = le64_to_cpu(found->entry), number = le64_to_cpu(found->number);
	u32 probes = le32_to_cpu(found->probes), outcome = le32_to_cpu(found->outcome);

	if (entry >= find->entries || number >= KDSM_NUMBERS || probes >= find->probes ||
	    outcome < KDSM_FIND_PUT || outcome > KDSM_FIND_FULL)
		return -EPROTO;
	find->entry = entry;
	find->number = number;
	find->done += find->probes - probes;
	find->probes = probes;
	find->outcome = outcome;
	return 0;
}

int kdsm_find_serve(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_find *wire = request->data;
	struct kdsm_wire_found *reply = request->reply;
	struct kdsm_memory *memory;
	struct kdsm_find find;
	u64 index;
	int err;

	if (request->length != sizeof(*wire) || le32_to_cpu(wire->fragment) > U16_MAX)
		return -EINVAL;
	index = le64_to_cpu(wire->index);
	find = (struct kdsm_find) {
		.entries = le64_to_cpu(wire->entries),
		.nodes = le64_to_cpu(wire->nodes),
		.data = le64_to_cpu(wire->data),
		.first = le64_to_cpu(wire->first),
		.node = { (__force u64)wire->node[0], (__force u64)wire->node[1] },
		.ignore = (__force u64)wire->ignore,
		.entry = le64_to_cpu(wire->entry),
		.number = le64_to_cpu(wire->number),
		.probes = le32_to_cpu(wire->probes),
		.fragment = le32_to_cpu(wire->fragment),
		.done = le32_to_cpu(wire->done),
		.run = le32_to_cpu(wire->run),
	};
	memory = kdsm_memory_lookup(context, le32_to_cpu(wire->id));
	if (!memory)
		return -ENOENT;
	err = kdsm_find_check(&find, index, kdsm_memory_size(memory));
	if (!err && kdsm_memory_read_only(memory))
		err = -EACCES;
	if (!err)
		err = kdsm_find(memory, index, &find, request->can_sleep);
	kdsm_memory_put(memory);
	if (err)
		return err;
	*reply = (struct kdsm_wire_found) {
		.entry = cpu_to_le64(find.entry),
		.number = cpu_to_le64(find.number),
		.probes = cpu_to_le32(find.probes),
		.outcome = cpu_to_le32(find.outcome),
	};
	request->reply_length = sizeof(*reply);
	return 0;
}
