// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: with the key of a chunk, a peer may read and write the chunk by RDMA.
 *
 * This node tells the key of a chunk to peers that ask for it. The address of a registration
 * is the offset in the part, so a peer needs only the key. This node caches the keys of
 * peers' chunks, per memory and peer. registration.c registers chunks and ends registrations.
 *
 * A peer that drops a chunk revokes the keys that cover it (drop.c), if it has told this node any.
 * This node then forgets these keys, and waits until no operation that uses them is in flight. A
 * task that posts an operation looks at the number of revocations of the peer before it looks up
 * the key, and again when it posts (operation.c). A task that stores keys looks at it before it
 * asks for the keys, and again when it stores them.
 *
 * For each chunk of a peer this node notes when it heard last that the chunk was dropped, so that
 * gets of the former content fail; see struct kdsm_operation. This node hears nothing of a chunk
 * whose key it does not know. So when it gets the key of a chunk that was dropped before, it notes
 * that as if the chunk had just been dropped.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* ---- telling keys ---- */

/* Whether any of the chunks that the key covers was dropped before */
static bool kdsm_key_was_dropped(const struct kdsm_memory *memory, const struct kdsm_key *key)
{
	unsigned long end = key->first + key->count;

	return memory->dropped && find_next_bit(memory->dropped, end, key->first) < end;
}

/*
 * Register the chunk and the chunks that exist among those that follow, and write their keys for a
 * peer. Return how many, or -errno if the chunk itself could not be registered; -ENODATA: it was
 * dropped.
 */
static int kdsm_keys_tell(struct kdsm_memory *memory, unsigned long index, unsigned int peer,
			  struct kdsm_connection *connection, struct kdsm_wire_key *wire)
{
	unsigned long window = index >> KDSM_WINDOW_SHIFT;
	unsigned long base = window << KDSM_WINDOW_SHIFT;
	unsigned long end = min(base + kdsm_window_size(memory, window),
				index + KDSM_KEYS_MAX);
	struct kdsm_key key;
	int count = 0, err = 0;

	mutex_lock(&memory->registering);
	if (!kdsm_chunk_peek(memory, index))
		err = -ENODATA;
	while (index < end && !err) {
		struct kdsm_chunk *chunk = kdsm_chunk_peek(memory, index);

		if (!chunk) {
			index++;
			continue;
		}
		err = kdsm_chunk_register(memory, index, connection, &key);
		if (err)
			break;
		__set_bit(peer, chunk->registration->told);
		wire[count++] = (struct kdsm_wire_key) {
			.key = cpu_to_le32(key.key),
			.first = cpu_to_le16(key.first - base),
			.count = cpu_to_le16(key.count | (kdsm_key_was_dropped(memory, &key) ?
							  KDSM_KEY_DROPPED : 0)),
		};
		index = key.first + key.count;
	}
	mutex_unlock(&memory->registering);
	return count ?: err;
}

/*
 * Allocate the chunk if necessary, and reply with its key and those of chunks that follow. A chunk
 * that was dropped and does not exist has no content that a peer could want: -ENODATA.
 */
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
	count = PTR_ERR_OR_ZERO(kdsm_chunk_get(memory, chunk, false));
	if (count)
		goto put;
	percpu_down_read(&fabric->gate);
	connection = kdsm_connection_get_queue(&fabric->peers[fabric->config.node],
					       KDSM_QUEUE_REGISTER);
	count = IS_ERR(connection) ? PTR_ERR(connection) :
		kdsm_keys_tell(memory, chunk, request->from, connection, request->reply);
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
static struct kdsm_peer_key *kdsm_memory_keys(struct kdsm_memory *memory, unsigned int node,
					      unsigned long window)
{
	struct kdsm_peer_key **windows = READ_ONCE(memory->keys[node]), *keys;

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

/* The number of chunks that a peer's key covers */
static unsigned int kdsm_key_count(const struct kdsm_wire_key *wire)
{
	return le16_to_cpu(wire->count) & ~KDSM_KEY_DROPPED;
}

/* Whether the peer's keys make sense, and the first one covers the chunk */
static bool kdsm_keys_are_sane(const struct kdsm_wire_key *wire, unsigned int count,
			       unsigned int chunk, unsigned int size)
{
	unsigned int i, first, n;

	for (i = 0; i < count; i++) {
		first = le16_to_cpu(wire[i].first);
		n = kdsm_key_count(&wire[i]);
		if (!wire[i].key || !n || first + n > size ||
		    (!i && (chunk < first || chunk >= first + n)))
			return false;
	}
	return count;
}

/*
 * This node hears of a drop. Return its number, to be noted for the chunks. Caller holds the lock
 * of fabric->memories.
 */
static u64 kdsm_drop_heard(struct kdsm_memory *memory)
{
	WRITE_ONCE(memory->drops, memory->drops + 1);
	return memory->drops;
}

/* Whether the operation is a get of content that the peer may have dropped */
static bool kdsm_operation_is_stale(const struct kdsm_operation *op, u64 dropped)
{
	return op->opcode == KDSM_OP_GET && dropped > op->since;
}

/* Caller holds the lock of fabric->memories. */
static void kdsm_keys_store(struct kdsm_memory *memory, struct kdsm_peer_key *keys,
			    const struct kdsm_wire_key *wire, unsigned int count)
{
	unsigned int i, chunk, end;
	u64 dropped;

	for (i = 0; i < count; i++) {
		dropped = 0;
		if (le16_to_cpu(wire[i].count) & KDSM_KEY_DROPPED)
			dropped = kdsm_drop_heard(memory);
		chunk = le16_to_cpu(wire[i].first);
		end = chunk + kdsm_key_count(&wire[i]);
		for (; chunk < end; chunk++) {
			/* If it knows a key, it has heard of all drops since it got that. */
			if (dropped && !keys[chunk].key)
				WRITE_ONCE(keys[chunk].dropped, dropped);
			/* Pairs with smp_load_acquire() in kdsm_memory_key(). */
			smp_store_release(&keys[chunk].key, le32_to_cpu(wire[i].key));
		}
	}
}

/*
 * Ask the peer for the key for an operation, and store it in the table of its window. -EAGAIN: this
 * node forgot keys of the peer meanwhile, and the key is perhaps one of them.
 */
static int kdsm_key_ask(const struct kdsm_operation *op, struct kdsm_peer_key *keys, u32 *key)
{
	struct kdsm_memory *memory = op->memory;
	unsigned long index = op->offset >> KDSM_CHUNK_SHIFT, window = index >> KDSM_WINDOW_SHIFT;
	unsigned int chunk = index & (KDSM_WINDOW_CHUNKS - 1);
	struct kdsm_wire_keys request = {
		.id = cpu_to_le32(memory->id),
		.chunk = cpu_to_le32(index),
	};
	struct kdsm_wire_key reply[KDSM_KEYS_MAX];
	unsigned int length = sizeof(reply);
	struct kdsm_peer *peer = &memory->fabric->peers[op->node];
	u32 revocations = kdsm_peer_revocations(peer);
	int err;

	err = kdsm_message_gated(memory->fabric, op->node, KDSM_MESSAGE_KEYS, &request,
				 sizeof(request), reply, &length);
	if (err && err != -ENODATA)
		return err == -ENOMEM || err == -EHOSTDOWN ? err : -EIO;
	if (!err && (length % sizeof(*reply) ||
		     !kdsm_keys_are_sane(reply, length / sizeof(*reply), chunk,
					 kdsm_window_size(memory, window))))
		return -EIO;
	/*
	 * Keep no key that the peer has revoked, and none of a former incarnation of the peer.
	 * kdsm_keys_revoke() and kdsm_memory_forget() take the same lock. So either they clear the
	 * keys stored here, or this task sees that the revocations have changed.
	 */
	xa_lock(&memory->fabric->memories);
	if (peer->revocations != revocations) {
		err = -EAGAIN;
	} else if (err) {
		WRITE_ONCE(keys[chunk].dropped, kdsm_drop_heard(memory));
		err = -ESTALE;
	} else {
		kdsm_keys_store(memory, keys, reply, length / sizeof(*reply));
		*key = le32_to_cpu(reply[0].key);
		err = kdsm_operation_is_stale(op, keys[chunk].dropped) ? -ESTALE : 0;
	}
	xa_unlock(&memory->fabric->memories);
	return err;
}

int kdsm_memory_key(const struct kdsm_operation *op, u32 *key)
{
	unsigned long index = op->offset >> KDSM_CHUNK_SHIFT;
	unsigned int chunk = index & (KDSM_WINDOW_CHUNKS - 1);
	struct kdsm_peer_key *keys =
		kdsm_memory_keys(op->memory, op->node, index >> KDSM_WINDOW_SHIFT);
	unsigned long end;
	int err;

	if (!keys)
		return -ENOMEM;
	/* Pairs with smp_store_release() in kdsm_keys_store(). */
	*key = smp_load_acquire(&keys[chunk].key);
	if (likely(*key))
		return kdsm_operation_is_stale(op, READ_ONCE(keys[chunk].dropped)) ? -ESTALE : 0;
	/* A hostile peer could revoke its keys as fast as it tells them. */
	end = jiffies + KDSM_REPLY_TIMEOUT;
	do {
		err = kdsm_key_ask(op, keys, key);
	} while (err == -EAGAIN && time_before(jiffies, end));
	return err == -EAGAIN ? -EIO : err;
}

/* ---- revoked keys ---- */

/* Whether the revoked key covers existing chunks of one window, among them the dropped one */
static bool kdsm_revoke_is_sane(const struct kdsm_memory *memory, unsigned long chunk,
				unsigned long first, unsigned long count)
{
	return count && first < memory->chunks_count && count <= memory->chunks_count - first &&
	       first >> KDSM_WINDOW_SHIFT == (first + count - 1) >> KDSM_WINDOW_SHIFT &&
	       chunk >= first && chunk - first < count;
}

/* Forget the keys of chunks of a peer, one of which the peer has dropped */
static void kdsm_keys_revoke(struct kdsm_memory *memory, unsigned int node, unsigned long chunk,
			     unsigned long first, unsigned long count)
{
	unsigned long window = first >> KDSM_WINDOW_SHIFT, base = window << KDSM_WINDOW_SHIFT, i;
	struct kdsm_fabric *fabric = memory->fabric;
	struct kdsm_peer_key **windows, *keys;
	u64 dropped;

	xa_lock(&fabric->memories);
	dropped = kdsm_drop_heard(memory);
	/* A peer that does not take part in the region has told this node no key */
	windows = node < memory->nodes ? READ_ONCE(memory->keys[node]) : NULL;
	keys = windows ? READ_ONCE(windows[window]) : NULL;
	/* Without a table this node has no key, and hears of the drop when it gets one. */
	if (keys) {
		WRITE_ONCE(keys[chunk - base].dropped, dropped);
		for (i = first - base; i < first - base + count; i++)
			WRITE_ONCE(keys[i].key, 0);
	}
	kdsm_peer_forgot(&fabric->peers[node]);
	xa_unlock(&fabric->memories);
}

int kdsm_memory_serve_revoke(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_revoke *revoke = request->data;
	struct kdsm_fabric *fabric = context;
	struct kdsm_memory *memory;
	u32 chunk, first, count;
	bool sane;

	if (request->length != sizeof(*revoke))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	chunk = le32_to_cpu(revoke->chunk);
	first = le32_to_cpu(revoke->first);
	count = le32_to_cpu(revoke->count);
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(revoke->id));
	if (!memory)
		return -ENOENT;
	sane = kdsm_revoke_is_sane(memory, chunk, first, count);
	if (sane)
		kdsm_keys_revoke(memory, request->from, chunk, first, count);
	kdsm_memory_put(memory);
	if (!sane)
		return -EINVAL;
	kdsm_operation_drain(&fabric->peers[request->from]);
	return 0;
}
