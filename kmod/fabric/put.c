// SPDX-License-Identifier: GPL-2.0
/*
 * The message of a notifying put, which the CPU of the target serves. operation.c posts it in the
 * chain of the put.
 *
 * A notifying put is a send, KDSM_MESSAGE_PUT, and not an RDMA write. The device of the peer may
 * write the bytes of RDMA writes to memory in any order until its CPU takes the completion of a
 * receive that came after them on the same connection (PCIe relaxed ordering, which mlx5 uses).
 * The peer's CPU takes such a completion before it stores the words of the put. So a task that
 * sees these words, however it looks at them, sees the writes in front of them.
 */
#include "internal.h"

unsigned int kdsm_put_size(const struct kdsm_operation *op)
{
	return sizeof(struct kdsm_wire_header) + sizeof(struct kdsm_wire_put) + op->length;
}

void kdsm_put_write(void *message, const struct kdsm_operation *op)
{
	struct kdsm_wire_header *header = message;
	struct kdsm_wire_put *put = message + sizeof(*header);

	*header = (struct kdsm_wire_header){
		.type = cpu_to_le16(KDSM_MESSAGE_PUT),
		.length = cpu_to_le16(sizeof(*put) + op->length),
	};
	*put = (struct kdsm_wire_put){
		.id = cpu_to_le32(kdsm_memory_id(op->memory)),
		.offset = cpu_to_le64(op->offset),
	};
	memcpy(put + 1, op->data, op->length);
}

bool kdsm_put_serve(struct kdsm_fabric *fabric, void *payload, unsigned int length)
{
	const struct kdsm_wire_put *put = payload;
	struct kdsm_memory *memory;
	unsigned int bytes;
	u64 offset;
	bool ok;

	if (length < sizeof(*put) + 8 || put->reserved)
		return false;
	bytes = length - sizeof(*put);
	offset = le64_to_cpu(put->offset);
	if (bytes % 8 || offset % 8)
		return false;
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(put->id));
	/* The sender's put may be complete, and the region gone, before this message is served. */
	if (!memory)
		return true;
	/* The sender has asked for the chunk's key, so the chunk exists, unless it was dropped. */
	ok = !kdsm_memory_read_only(memory) && offset < kdsm_memory_size(memory) &&
	     bytes <= kdsm_memory_size(memory) - offset &&
	     !kdsm_memory_announce(memory, offset, payload + sizeof(*put), bytes, false);
	kdsm_memory_put(memory);
	if (ok)
		fabric->config.notified(fabric->config.context, le32_to_cpu(put->id), offset);
	return ok;
}
