// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on memory of a peer: RDMA reads, writes and atomics, and notifying puts, posted as
 * one chain of work requests with one doorbell. batch.c has the batches of operations, put.c the
 * messages of notifying puts, delegate.c the operations that the CPU of the peer executes.
 *
 * Only the last work request of a chain is signalled. A reliable connection completes in
 * order, so the success of the last request is the success of all. If a request fails, that
 * request and all later ones complete with an error, the last one too. Completions are
 * taken under the connection's poll_lock, hence in order, and the last completion ends the
 * chain. kdsm_operation_fail() ends a chain whose last completion never arrives, because
 * the queue pair was destroyed or only a part of the chain was posted.
 *
 * A peer may revoke keys while this node prepares a chain (keys.c). With the connection's lock
 * held, the task that posts the chain checks that the number of revocations is that from before it
 * looked up the keys. The handler of a revocation increments the number, and then takes the lock to
 * learn which chains were posted. So either the handler waits for the chain, or the task sees the
 * revocation and looks up the keys again.
 */
#include <linux/slab.h>

#include "trace.h"
#include "internal.h"

struct kdsm_wr {
	struct ib_cqe cqe;
	struct kdsm_chain *chain;
	struct kdsm_operation *op;
	struct ib_sge sge;
	u64 dma;
	void *message;		/* notifying put: in the memory of the chain */
	enum dma_data_direction direction;
	union {
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
};

struct kdsm_chain {
	struct kdsm_part part;
	struct list_head link;		/* in connection->chains, under its lock */
	unsigned int count;
	u32 number;			/* on the connection; see connection->posted */
	u32 revocations;		/* of the peer, before the keys were looked up */
	unsigned int room;		/* taken from connection->room */
	bool puts;		/* the chain has puts */
	struct kdsm_wr wrs[];
};

static void kdsm_chain_done(struct kdsm_chain *chain)
{
	struct kdsm_connection *connection = chain->part.connection;
	unsigned int i;

	for (i = 0; i < chain->count; i++)
		ib_dma_unmap_single(connection->fabric->device, chain->wrs[i].dma,
				    chain->wrs[i].sge.length, chain->wrs[i].direction);
	spin_lock_bh(&connection->lock);
	list_del_init(&chain->link);
	connection->room += chain->room;
	spin_unlock_bh(&connection->lock);
	wake_up(&connection->wait);
	/* After this call the waiter may have freed the batch and the chain. */
	kdsm_batch_part_done(&chain->part);
}

/* Caller knows that no work request of the chain is in flight. */
static void kdsm_chain_fail(struct kdsm_chain *chain, int status)
{
	unsigned int i;

	for (i = 0; i < chain->count; i++)
		chain->wrs[i].op->status = status;
	kdsm_chain_done(chain);
}

static void kdsm_wr_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_wr *wr = container_of(wc->wr_cqe, struct kdsm_wr, cqe);
	struct kdsm_chain *chain = wr->chain;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		wr->op->status = wc->status == IB_WC_RETRY_EXC_ERR ? -EHOSTDOWN : -EIO;
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			pr_info_ratelimited("kdsm: node %u: %s\n", wr->op->node,
					    ib_wc_status_msg(wc->status));
		kdsm_connection_break(chain->part.connection);
	}
	if (wr == &chain->wrs[chain->count - 1])
		kdsm_chain_done(chain);
}

/*
 * No task posts on the connection any more, and no completion arrives. An operation of a
 * failed chain may have taken effect or not.
 */
void kdsm_operation_fail(struct kdsm_connection *connection)
{
	struct kdsm_chain *chain, *next;
	LIST_HEAD(chains);

	spin_lock_bh(&connection->lock);
	list_splice_init(&connection->chains, &chains);
	spin_unlock_bh(&connection->lock);
	list_for_each_entry_safe(chain, next, &chains, link)
		kdsm_chain_fail(chain, -EIO);
}

/* ---- draining ---- */

static bool kdsm_chains_are_done(struct kdsm_connection *connection, u32 number)
{
	struct kdsm_chain *oldest;
	bool done;

	spin_lock_bh(&connection->lock);
	oldest = list_first_entry_or_null(&connection->chains, struct kdsm_chain, link);
	done = !oldest || (s32)(oldest->number - number) > 0;
	spin_unlock_bh(&connection->lock);
	return done;
}

/* Wait until all chains that were posted on the connection before this call are done */
static void kdsm_chains_drain(struct kdsm_connection *connection)
{
	u32 number;

	spin_lock_bh(&connection->lock);
	number = connection->posted;
	spin_unlock_bh(&connection->lock);
	if (!kdsm_connection_wait_for(connection, kdsm_chains_are_done(connection, number), false))
		return;
	kdsm_connection_break(connection);
	/* The teardown ends all chains. */
	wait_event(connection->wait, kdsm_chains_are_done(connection, number));
}

void kdsm_operation_drain(struct kdsm_peer *peer)
{
	struct kdsm_connection *connections[KDSM_QUEUES];
	unsigned int i;

	/* A connection that is created after this section carries only chains with newer keys. */
	mutex_lock(&peer->lock);
	memcpy(connections, peer->queues, sizeof(connections));
	mutex_unlock(&peer->lock);
	for (i = 0; i < KDSM_QUEUES; i++)
		if (connections[i])
			kdsm_chains_drain(connections[i]);
}

/* ---- posting ---- */

static void kdsm_wr_set_key(struct kdsm_wr *wr, u32 key)
{
	if (kdsm_operation_is_atomic(wr->op))
		wr->atomic.rkey = key;
	else
		wr->rdma.rkey = key;
}

static int kdsm_wr_prepare(struct kdsm_fabric *fabric, struct kdsm_wr *wr,
			   struct kdsm_operation *op, u32 key)
{
	bool is_atomic = kdsm_operation_is_atomic(op);
	void *data = is_atomic ? &op->word : op->data;
	unsigned int length = op->length;
	struct ib_send_wr *send;

	if (op->notify) {
		data = wr->message;
		length = kdsm_put_size(op);
		kdsm_put_write(wr->message, op);
	}
	wr->direction = op->opcode == KDSM_OP_PUT ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	wr->dma = ib_dma_map_single(fabric->device, data, length, wr->direction);
	if (ib_dma_mapping_error(fabric->device, wr->dma))
		return -ENOMEM;
	wr->op = op;
	wr->cqe.done = kdsm_wr_done;
	wr->sge.addr = wr->dma;
	wr->sge.length = length;
	wr->sge.lkey = fabric->pd->local_dma_lkey;
	kdsm_wr_set_key(wr, key);
	if (is_atomic) {
		send = &wr->atomic.wr;
		wr->atomic.remote_addr = op->offset;
		wr->atomic.compare_add = op->opcode == KDSM_OP_CAS ? op->compare :
								     op->operand;
		wr->atomic.swap = op->operand;
	} else {
		send = &wr->rdma.wr;
		wr->rdma.remote_addr = op->offset;
	}
	switch (op->opcode) {
	case KDSM_OP_GET:
		send->opcode = IB_WR_RDMA_READ;
		/*
		 * Software devices execute work requests sequentially. Hardware may fetch the
		 * memory for a later read early. A fence delays its request until all earlier reads
		 * have ended, and requests start in order, so it delays the later ones, too.
		 */
		if (op->ordered && !fabric->device_is_software)
			send->send_flags = IB_SEND_FENCE;
		break;
	case KDSM_OP_PUT:
		send->opcode = op->notify ? IB_WR_SEND : IB_WR_RDMA_WRITE;
		break;
	case KDSM_OP_CAS:
		send->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
		break;
	default:
		send->opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		break;
	}
	send->wr_cqe = &wr->cqe;
	send->sg_list = &wr->sge;
	send->num_sge = 1;
	return 0;
}

/*
 * Post the chain if the connection has room for it. Return false if the caller must wait for
 * room. *err is set if the connection is not up, has another life or another tie, or if posting
 * failed; -EAGAIN: the keys must be looked up again.
 */
static bool kdsm_chain_try_post(struct kdsm_chain *chain, u32 life, int *err)
{
	struct kdsm_connection *connection = chain->part.connection;
	bool posted = true;

	spin_lock_bh(&connection->lock);
	if (connection->state != KDSM_CONNECTION_UP ||
	    connection->life != life ||
	    !kdsm_connection_is_tied(connection, chain->part.batch->tie)) {
		*err = -EIO;
	} else if (READ_ONCE(connection->peer->revocations) != chain->revocations) {
		*err = -EAGAIN;
	} else if (connection->room < chain->count) {
		posted = false;
	} else {
		connection->written += chain->puts;
		chain->room = chain->count;
		connection->room -= chain->room;
		chain->number = ++connection->posted;
		list_add_tail(&chain->link, &connection->chains);
		/* After a failure, a part of the chain may be in flight; see kdsm_chain_post(). */
		*err = ib_post_send(connection->qp, &chain->wrs[0].rdma.wr, NULL) ?
		       -EINPROGRESS : 0;
	}
	spin_unlock_bh(&connection->lock);
	return posted;
}

/* Look up the keys of the chain again. After an error, which may be of one operation, all fail. */
static int kdsm_chain_rekey(struct kdsm_chain *chain)
{
	unsigned int i;
	u32 key;
	int err;

	chain->revocations = kdsm_peer_revocations(chain->part.connection->peer);
	for (i = 0; i < chain->count; i++) {
		err = kdsm_memory_key(chain->wrs[i].op, &key);
		if (err)
			return err;
		kdsm_wr_set_key(&chain->wrs[i], key);
	}
	return 0;
}

/* Post a chain whose work requests are prepared and linked. 0, or the status of all of them. */
static int kdsm_chain_post(struct kdsm_chain *chain, u32 life)
{
	struct kdsm_connection *connection = chain->part.connection;
	struct kdsm_batch *batch = chain->part.batch;
	unsigned long end = jiffies + KDSM_REPLY_TIMEOUT;
	int err, waited;

	atomic_inc(&batch->pending);
	for (;;) {
		err = 0;
		waited = kdsm_connection_wait_for(connection,
						  kdsm_chain_try_post(chain, life, &err),
						  batch->killable);
		if (waited == -ETIMEDOUT)
			kdsm_connection_break(connection);
		if (waited)
			err = waited;
		if (err != -EAGAIN)
			break;
		/* A hostile peer could revoke keys all the time. */
		err = time_before(jiffies, end) ? kdsm_chain_rekey(chain) : -EIO;
		if (err)
			break;
	}
	if (err == -EINPROGRESS) {
		kdsm_connection_break(connection);	/* the teardown ends the chain */
		return -EIO;
	}
	if (err)
		kdsm_chain_fail(chain, err);
	return err;
}

static void kdsm_count_operation(struct kdsm_batch *batch, const struct kdsm_operation *op)
{
	struct kdsm_counters __percpu *counters = kdsm_operation_counters(batch, op);

	switch (op->opcode) {
	case KDSM_OP_GET:
		kdsm_count(counters, KDSM_STAT_GET);
		kdsm_count_add(counters, KDSM_STAT_GET_BYTES, op->length);
		break;
	case KDSM_OP_PUT:
		kdsm_count(counters, op->notify ? KDSM_STAT_PUT_NOTIFY : KDSM_STAT_PUT);
		kdsm_count_add(counters, KDSM_STAT_PUT_BYTES, op->length);
		break;
	case KDSM_OP_CAS:
		kdsm_count(counters, KDSM_STAT_CAS);
		break;
	default:
		kdsm_count(counters, KDSM_STAT_FAA);
		break;
	}
}

/* Store the results of the atomics in their operations, and free the chain */
static void kdsm_chain_release(struct kdsm_part *part)
{
	struct kdsm_chain *chain = container_of(part, struct kdsm_chain, part);
	struct kdsm_operation *op;
	unsigned int i;

	for (i = 0; i < chain->count; i++) {
		op = chain->wrs[i].op;
		if (op->status)
			kdsm_count(kdsm_operation_counters(part->batch, op), KDSM_STAT_ERRORS);
		else if (kdsm_operation_is_atomic(op))
			op->result = op->word;
	}
	kfree(chain);
}

void kdsm_chain_start(struct kdsm_batch *batch, struct list_head *ops, unsigned int count,
		      struct kdsm_posting *posting)
{
	struct kdsm_connection *connection = posting->connection;
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	size_t size = 0, messages = 0;
	struct kdsm_chain *chain;
	struct kdsm_wr *wr;
	int err = -ENOMEM;
	u32 key;

	/* The messages of notifying puts stand behind the work requests. */
	list_for_each_entry(op, ops, link)
		messages += op->notify ? ALIGN(kdsm_put_size(op), 8) : 0;
	size = struct_size(chain, wrs, count);
	chain = kmalloc(size + messages, GFP_KERNEL | __GFP_ZERO);
	if (!chain)
		goto fail;
	chain->part.batch = batch;
	chain->part.connection = connection;
	chain->part.release = kdsm_chain_release;
	INIT_LIST_HEAD(&chain->link);
	chain->revocations = kdsm_peer_revocations(connection->peer);
	list_for_each_entry_safe(op, next, ops, link) {
		list_del(&op->link);
		wr = &chain->wrs[chain->count];
		wr->chain = chain;
		if (op->notify) {
			wr->message = (void *)chain + size;
			size += ALIGN(kdsm_put_size(op), 8);
		}
		err = op->notify ? posting->failed : 0;
		if (!err)
			err = kdsm_memory_key(op, &key);
		if (!err)
			err = kdsm_wr_prepare(fabric, wr, op, key);
		if (err) {
			op->status = err;
			if (op->opcode == KDSM_OP_PUT)
				posting->failed = err;
			continue;
		}
		if (chain->count)
			wr[-1].rdma.wr.next = &wr->rdma.wr;
		chain->count++;
		chain->puts |= op->opcode == KDSM_OP_PUT;
		kdsm_count_operation(batch, op);
		trace_kdsm_operation(op->node, op->opcode, kdsm_memory_id(op->memory),
				     op->offset, op->length);
	}
	if (!chain->count) {
		kfree(chain);
		return;
	}
	list_add_tail(&chain->part.link, &batch->parts);
	kdsm_count(fabric->peers[connection->peer->node].counters, KDSM_STAT_CHAINS);
	chain->wrs[chain->count - 1].rdma.wr.send_flags |= IB_SEND_SIGNALED;
	err = kdsm_chain_post(chain, posting->life);
	if (err)
		posting->failed = err;
	return;

fail:
	posting->failed = err;
	list_for_each_entry(op, ops, link)
		op->status = err;
	INIT_LIST_HEAD(ops);
}
