// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: with the key of a chunk, a peer may read and write the chunk by RDMA.
 *
 * This node tells the key of a chunk to peers that ask for it. The address of a registration
 * is the offset in the part, so a peer needs only the key. This node caches the keys of
 * peers' chunks, per memory and peer. registration.c registers chunks; memory.c ends
 * registrations and forgets keys.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* ---- telling keys ---- */

/*
 * Register the chunk and the chunks that exist among those that follow, and write their keys.
 * Return how many, or -errno if the chunk itself could not be registered.
 */
static int kdsm_keys_tell(struct kdsm_memory *memory, unsigned long index,
			  struct kdsm_connection *connection, struct kdsm_wire_key *wire)
{
	unsigned long window = index >> KDSM_WINDOW_SHIFT;
	unsigned long base = window << KDSM_WINDOW_SHIFT;
	unsigned long end = min(base + kdsm_window_size(memory, window),
				index + KDSM_KEYS_MAX);
	struct kdsm_key key;
	int count = 0, err = 0;

	mutex_lock(&memory->registering);
	while (index < end && !err) {
		if (!kdsm_chunk_peek(memory, index)) {
			index++;
			continue;
		}
		err = kdsm_chunk_register(memory, index, connection, &key);
		if (err)
			break;
		wire[count++] = (struct kdsm_wire_key) {
			.key = cpu_to_le32(key.key),
			.first = cpu_to_le16(key.first - base),
			.count = cpu_to_le16(key.count),
		};
		index = key.first + key.count;
	}
	mutex_unlock(&memory->registering);
	return count ?: err;
}

/* Allocate the chunk if necessary, and reply with its key and those of chunks that follow */
int kdsm_memory_serve_keys(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_keys *keys = request->data;
	struct kdsm_connection *connection;
	struct kdsm_fabric *fabric = context;
	struct kdsm_memory *memory;
	int count = -ERANGE;
	u32 chunk;

	if (request->length != sizeof(*keys))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	chunk = le32_to_cpu(keys->chunk);
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(keys->id));
	if (!memory)
		return -ENOENT;
	if (chunk >= memory->chunks_count)
		goto put;
	count = -ENOMEM;
	if (!kdsm_chunk_get(memory, chunk))
		goto put;
	percpu_down_read(&fabric->gate);
	connection = kdsm_connection_get_queue(&fabric->peers[fabric->config.node],
					       KDSM_QUEUE_REGISTER);
	count = IS_ERR(connection) ? PTR_ERR(connection) :
		kdsm_keys_tell(memory, chunk, connection, request->reply);
	percpu_up_read(&fabric->gate);
put:
	kdsm_memory_put(memory);
	if (count < 0)
		return count;
	kdsm_count_add(fabric->peers[request->from].counters, KDSM_STAT_KEYS, count);
	request->reply_length = count * sizeof(struct kdsm_wire_key);
	return 0;
}

/* ---- keys of peers ---- */

/* Publish a new table, unless another task did so first; then free it. Return the published one. */
static void *kdsm_table_publish(void **place, void *table)
{
	void *other;

	if (!table)
		return NULL;
	other = cmpxchg(place, NULL, table);
	if (!other)
		return table;
	kvfree(table);
	return other;
}

/* Return the table of the keys of a peer's chunks in a window, allocated if necessary, or NULL */
static u32 *kdsm_memory_keys(struct kdsm_memory *memory, unsigned int node,
			     unsigned long window)
{
	u32 **windows = READ_ONCE(memory->keys[node]), *keys;

	if (unlikely(!windows))
		windows = kdsm_table_publish((void **)&memory->keys[node],
					     kvcalloc(memory->windows_count, sizeof(*windows),
						      GFP_KERNEL));
	if (!windows)
		return NULL;
	keys = READ_ONCE(windows[window]);
	if (likely(keys))
		return keys;
	return kdsm_table_publish((void **)&windows[window],
				  kcalloc(kdsm_window_size(memory, window), sizeof(*keys),
					  GFP_KERNEL));
}

/* Whether the peer's keys make sense, and the first one covers the chunk */
static bool kdsm_keys_are_sane(const struct kdsm_wire_key *wire, unsigned int count,
			       unsigned int chunk, unsigned int size)
{
	unsigned int i, first, n;

	for (i = 0; i < count; i++) {
		first = le16_to_cpu(wire[i].first);
		n = le16_to_cpu(wire[i].count);
		if (!wire[i].key || !n || first + n > size ||
		    (!i && (chunk < first || chunk >= first + n)))
			return false;
	}
	return count;
}

static void kdsm_keys_store(u32 *keys, const struct kdsm_wire_key *wire, unsigned int count)
{
	unsigned int i, chunk, end;

	for (i = 0; i < count; i++) {
		chunk = le16_to_cpu(wire[i].first);
		end = chunk + le16_to_cpu(wire[i].count);
		for (; chunk < end; chunk++)
			WRITE_ONCE(keys[chunk], le32_to_cpu(wire[i].key));
	}
}

int kdsm_memory_key(struct kdsm_memory *memory, unsigned int node, u64 offset, u32 *key)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT, window = index >> KDSM_WINDOW_SHIFT;
	unsigned int chunk = index & (KDSM_WINDOW_CHUNKS - 1);
	struct kdsm_wire_keys request = {
		.id = cpu_to_le32(memory->id),
		.chunk = cpu_to_le32(index),
	};
	struct kdsm_wire_key reply[KDSM_KEYS_MAX];
	unsigned int length = sizeof(reply);
	struct kdsm_peer *peer = &memory->fabric->peers[node];
	u64 incarnation = READ_ONCE(peer->incarnation);
	u32 *keys = kdsm_memory_keys(memory, node, window);
	int err;

	if (!keys)
		return -ENOMEM;
	*key = READ_ONCE(keys[chunk]);
	if (likely(*key))
		return 0;
	err = kdsm_message_gated(memory->fabric, node, KDSM_MESSAGE_KEYS, &request,
				 sizeof(request), reply, &length);
	if (err)
		return err == -ENOMEM || err == -EHOSTDOWN ? err : -EIO;
	if (length % sizeof(*reply) ||
	    !kdsm_keys_are_sane(reply, length / sizeof(*reply), chunk,
				kdsm_window_size(memory, window)))
		return -EIO;
	/*
	 * Keep no key of a former incarnation. kdsm_memory_forget() runs after the
	 * incarnation changed and takes the same lock. So either it clears the keys stored
	 * here, or this task sees the new incarnation. The first greeting, which changes
	 * the incarnation from 0, does not count.
	 */
	xa_lock(&memory->fabric->memories);
	if (incarnation && READ_ONCE(peer->incarnation) != incarnation)
		err = -EIO;
	else
		kdsm_keys_store(keys, reply, length / sizeof(*reply));
	xa_unlock(&memory->fabric->memories);
	*key = le32_to_cpu(reply[0].key);
	return err;
}
