// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: with the key of a chunk, a peer may read and write the chunk by RDMA.
 *
 * This node registers a chunk when a peer first asks for the chunk's key. The address
 * of the registration is the offset in the part, so the peer needs only the key. This
 * node caches the keys of peers' chunks in the same way, per memory and peer.
 * memory.c ends registrations and forgets keys.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* ---- registering chunks of this node ---- */

struct kdsm_registration {
	struct ib_cqe cqe;
	struct completion done;
	int status;
};

static void kdsm_registration_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_registration *registration =
		container_of(wc->wr_cqe, struct kdsm_registration, cqe);

	registration->status = wc->status == IB_WC_SUCCESS ? 0 : -EIO;
	complete(&registration->done);
}

static int kdsm_registration_post(struct kdsm_connection *connection,
				  struct ib_reg_wr *wr)
{
	struct kdsm_registration registration = {
		.cqe.done = kdsm_registration_done,
		.done = COMPLETION_INITIALIZER_ONSTACK(registration.done),
	};
	int err = -EIO;

	wr->wr.wr_cqe = &registration.cqe;
	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UP && connection->room) {
		err = ib_post_send(connection->qp, &wr->wr, NULL);
		if (!err)
			connection->room--;
	}
	spin_unlock_bh(&connection->lock);
	if (err)
		return err;
	wait_for_completion(&registration.done);
	spin_lock_bh(&connection->lock);
	connection->room++;
	spin_unlock_bh(&connection->lock);
	if (registration.status)
		kdsm_connection_break(connection);
	return registration.status;
}

static int kdsm_chunk_register(struct kdsm_memory *memory, unsigned long index,
			       struct kdsm_chunk *chunk,
			       struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = memory->fabric;
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct ib_mr *mr;
	int err, n;

	lockdep_assert_held(&memory->lock);
	if (!memory->read_only)
		wr.access |= IB_ACCESS_REMOTE_WRITE;
	/* In domain sw only CPUs do atomics, so peers need no right to remote atomics. */
	if (!memory->read_only && memory->domain != KDSM_DOMAIN_SW)
		wr.access |= IB_ACCESS_REMOTE_ATOMIC;
	err = sg_alloc_table_from_pages(&chunk->table, chunk->pages, chunk->count, 0,
					(size_t)chunk->count << PAGE_SHIFT, GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(fabric->device, &chunk->table,
				       DMA_BIDIRECTIONAL, 0);
	if (err)
		goto free_table;
	mr = ib_alloc_mr(fabric->pd, IB_MR_TYPE_MEM_REG, chunk->count);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto unmap;
	}
	n = ib_map_mr_sg(mr, chunk->table.sgl, chunk->table.nents, NULL, PAGE_SIZE);
	if (n != chunk->table.nents) {
		err = n < 0 ? n : -EINVAL;
		goto free_mr;
	}
	mr->iova = (u64)index << KDSM_CHUNK_SHIFT;
	wr.mr = mr;
	wr.key = mr->rkey;
	err = kdsm_registration_post(connection, &wr);
	if (err)
		goto free_mr;
	chunk->mr = mr;
	chunk->key = mr->rkey;
	return 0;

free_mr:
	ib_dereg_mr(mr);
unmap:
	ib_dma_unmap_sgtable_attrs(fabric->device, &chunk->table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&chunk->table);
	return err;
}

/* The connection on which to post registrations for a request; see KDSM_QUEUE_REGISTER */
static struct kdsm_connection *kdsm_registration_connection(struct kdsm_serving *serving)
{
	struct kdsm_connection *connection = serving->connection;
	struct kdsm_fabric *fabric = connection->fabric;

	if (!fabric->device_is_software)
		return connection;
	return kdsm_connection_get_queue(&fabric->peers[fabric->config.node],
					 KDSM_QUEUE_REGISTER);
}

/* Register those existing chunks that are not registered yet. Other chunks get key 0. */
static int kdsm_chunks_register(struct kdsm_memory *memory, u32 first, u32 count,
				struct kdsm_connection *connection, __le32 *keys)
{
	struct kdsm_chunk *chunk;
	int err = 0;
	u32 i;

	mutex_lock(&memory->lock);
	for (i = 0; i < count; i++) {
		chunk = memory->chunks[first + i];
		if (chunk && !chunk->key)
			err = kdsm_chunk_register(memory, first + i, chunk, connection);
		if (err)
			break;
		keys[i] = cpu_to_le32(chunk ? chunk->key : 0);
	}
	mutex_unlock(&memory->lock);
	return err;
}

/*
 * Allocate the first chunk of the range if necessary, and reply with the keys of the chunks of
 * the range that exist.
 */
int kdsm_memory_serve_keys(void *context, struct kdsm_request *request)
{
	struct kdsm_serving *serving = container_of(request, struct kdsm_serving, request);
	const struct kdsm_wire_keys *keys = request->data;
	struct kdsm_connection *connection;
	struct kdsm_fabric *fabric = context;
	struct kdsm_memory *memory;
	u32 first, count;
	int err;

	if (request->length != sizeof(*keys))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	first = le32_to_cpu(keys->first);
	count = le32_to_cpu(keys->count);
	if (!count || count > KDSM_KEYS_MAX)
		return -EINVAL;
	memory = kdsm_memory_lookup(fabric, le32_to_cpu(keys->id));
	if (!memory)
		return -ENOENT;
	if (first >= memory->chunks_count || count > memory->chunks_count - first) {
		err = -ERANGE;
		goto put;
	}
	if (!kdsm_chunk_get(memory, first)) {
		err = -ENOMEM;
		goto put;
	}
	percpu_down_read(&fabric->gate);
	connection = kdsm_registration_connection(serving);
	err = IS_ERR(connection) ? PTR_ERR(connection) :
	      kdsm_chunks_register(memory, first, count, connection, request->reply);
	percpu_up_read(&fabric->gate);
	request->reply_length = count * sizeof(__le32);
put:
	kdsm_memory_put(memory);
	return err;
}

/* ---- keys of peers ---- */

static u32 *kdsm_memory_keys(struct kdsm_memory *memory, unsigned int node)
{
	u32 *keys = READ_ONCE(memory->keys[node]), *other;

	if (likely(keys))
		return keys;
	keys = kvcalloc(memory->chunks_count, sizeof(*keys), GFP_KERNEL);
	if (!keys)
		return NULL;
	other = cmpxchg(&memory->keys[node], NULL, keys);
	if (!other)
		return keys;
	kvfree(keys);
	return other;
}

int kdsm_memory_key(struct kdsm_memory *memory, unsigned int node, u64 offset, u32 *key)
{
	unsigned long index = offset >> KDSM_CHUNK_SHIFT;
	__le32 reply[KDSM_KEYS_MAX];
	unsigned int length = sizeof(reply), i;
	struct kdsm_wire_keys request = {
		.id = cpu_to_le32(memory->id),
		.first = cpu_to_le32(index),
		.count = cpu_to_le32(min_t(unsigned long, KDSM_KEYS_MAX,
					   memory->chunks_count - index)),
	};
	struct kdsm_peer *peer = &memory->fabric->peers[node];
	u64 incarnation = READ_ONCE(peer->incarnation);
	u32 *keys = kdsm_memory_keys(memory, node);
	int err;

	if (!keys)
		return -ENOMEM;
	*key = READ_ONCE(keys[index]);
	if (likely(*key))
		return 0;
	err = kdsm_message_gated(memory->fabric, node, KDSM_MESSAGE_KEYS, &request,
				 sizeof(request), reply, &length);
	if (err)
		return err == -ENOMEM || err == -EHOSTDOWN ? err : -EIO;
	if (length != le32_to_cpu(request.count) * sizeof(*reply) || !reply[0])
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
	for (i = 0; i < length / sizeof(*reply) && !err; i++)
		WRITE_ONCE(keys[index + i], le32_to_cpu(reply[i]));
	xa_unlock(&memory->fabric->memories);
	*key = le32_to_cpu(reply[0]);
	return err;
}
