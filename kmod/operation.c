// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on memory of peers: RDMA reads, writes and atomics, posted as one
 * chain of work requests with one doorbell per peer, and waited for together.
 *
 * Only the last work request of a chain is signalled. A reliable connection
 * completes in order, so its success is that of all; if one fails, it and all
 * after it complete with an error, the last one too. Completions are taken under
 * the connection's poll_lock, hence in order, and the last one ends the chain. A
 * chain whose last completion never comes (its connection was destroyed, or
 * posting failed half-way) is ended by kdsm_operation_fail().
 */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "trace.h"
#include "verbs.h"

/*
 * More than any RDMA hardware takes, and less than it pays to keep a CPU busy for:
 * programs on emulated machines took up to twice as long when they polled.
 */
static unsigned int kdsm_poll_us = 25;
module_param_named(poll_us, kdsm_poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "poll for completions that take up to so many microseconds on average, sleep for others");
/* Fewer gets than this are faster as reads. */
#define KDSM_GATHER_MIN		3

struct kdsm_wr {
	struct ib_cqe cqe;
	struct kdsm_chain *chain;
	struct kdsm_operation *op;
	struct ib_sge sge;
	u64 dma;
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
	unsigned int room;		/* that it took of the connection's */
	struct kdsm_wr wrs[];
};

static bool kdsm_is_atomic(const struct kdsm_operation *op)
{
	return op->opcode == KDSM_OP_CAS || op->opcode == KDSM_OP_FAA;
}

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory)
{
	batch->fabric = fabric;
	batch->memory = memory;
	INIT_LIST_HEAD(&batch->operations);
	INIT_LIST_HEAD(&batch->parts);
	atomic_set(&batch->pending, 1);		/* the posting itself */
	init_completion(&batch->done);
}

void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op)
{
	op->memory = memory;
	op->status = 0;
	op->result = 0;
	list_add_tail(&op->link, &batch->operations);
}

void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	kdsm_batch_add_to(batch, batch->memory, op);
}

/* Everything that was written before is seen by who sees done. */
void kdsm_batch_part_done(struct kdsm_batch *batch)
{
	if (atomic_dec_and_test(&batch->pending))
		complete_all(&batch->done);
}

static struct kdsm_counters __percpu *
kdsm_operation_counters(const struct kdsm_batch *batch, const struct kdsm_operation *op)
{
	return batch->fabric->peers[op->node].counters;
}

/* ---- chains ---- */

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
	/* The batch may be gone after this, and the chain with it. */
	kdsm_batch_part_done(chain->part.batch);
}

/* It is not posted, or nothing of it is under way any more. */
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
 * Nothing completes on the connection any more, and nothing is posted. Who of a
 * chain was not reported as failed may have taken effect or not.
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

static int kdsm_wr_prepare(struct kdsm_fabric *fabric, struct kdsm_wr *wr,
			   struct kdsm_operation *op, u32 key)
{
	bool is_atomic = kdsm_is_atomic(op);
	void *data = is_atomic ? &op->word : op->data;
	struct ib_send_wr *send;

	wr->direction = op->opcode == KDSM_OP_PUT ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	wr->dma = ib_dma_map_single(fabric->device, data, op->length, wr->direction);
	if (ib_dma_mapping_error(fabric->device, wr->dma))
		return -ENOMEM;
	wr->op = op;
	wr->cqe.done = kdsm_wr_done;
	wr->sge.addr = wr->dma;
	wr->sge.length = op->length;
	wr->sge.lkey = fabric->pd->local_dma_lkey;
	if (is_atomic) {
		send = &wr->atomic.wr;
		wr->atomic.remote_addr = op->offset;
		wr->atomic.rkey = key;
		wr->atomic.compare_add = op->opcode == KDSM_OP_CAS ? op->compare :
								     op->operand;
		wr->atomic.swap = op->operand;
	} else {
		send = &wr->rdma.wr;
		wr->rdma.remote_addr = op->offset;
		wr->rdma.rkey = key;
	}
	switch (op->opcode) {
	case KDSM_OP_GET:
		send->opcode = IB_WR_RDMA_READ;
		/*
		 * Those made of software execute one after the other; what hardware
		 * may fetch from memory for a later one is fenced off.
		 */
		if (op->ordered && !fabric->device_is_software)
			send->send_flags = IB_SEND_FENCE;
		break;
	case KDSM_OP_PUT:
		send->opcode = IB_WR_RDMA_WRITE;
		if (op->notify) {
			send->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
			send->ex.imm_data =
				cpu_to_be32(kdsm_wire_notice(kdsm_memory_id(op->memory),
							     op->offset));
		}
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
 * Post the chain, if the connection has room for it. False: wait for room. A
 * connection that is not up fails the chain.
 */
static bool kdsm_chain_try_post(struct kdsm_chain *chain, int *err)
{
	struct kdsm_connection *connection = chain->part.connection;
	bool posted = true;

	spin_lock_bh(&connection->lock);
	if (connection->state != KDSM_CONNECTION_UP) {
		*err = -EIO;
	} else if (connection->room < chain->count) {
		posted = false;
	} else {
		chain->room = chain->count;
		connection->room -= chain->room;
		list_add_tail(&chain->link, &connection->chains);
		/* After a failure part of it may be on its way: see below. */
		*err = ib_post_send(connection->qp, &chain->wrs[0].rdma.wr, NULL) ?
		       -EINPROGRESS : 0;
	}
	spin_unlock_bh(&connection->lock);
	return posted;
}

/* Post a chain whose work requests are prepared and linked. */
static void kdsm_chain_post(struct kdsm_chain *chain)
{
	int err = 0;

	atomic_inc(&chain->part.batch->pending);
	wait_event(chain->part.connection->wait, kdsm_chain_try_post(chain, &err));
	if (err == -EINPROGRESS)
		kdsm_connection_break(chain->part.connection);	/* which ends it */
	else if (err)
		kdsm_chain_fail(chain, err);
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

/* Bring back what the device stored, and forget the chain. */
static void kdsm_chain_release(struct kdsm_part *part)
{
	struct kdsm_chain *chain = container_of(part, struct kdsm_chain, part);
	struct kdsm_operation *op;
	unsigned int i;

	for (i = 0; i < chain->count; i++) {
		op = chain->wrs[i].op;
		if (op->status)
			kdsm_count(kdsm_operation_counters(part->batch, op), KDSM_STAT_ERRORS);
		else if (kdsm_is_atomic(op))
			op->result = op->word;
	}
	kfree(chain);
}

static void kdsm_chain_start(struct kdsm_batch *batch, struct list_head *ops,
			     unsigned int count, struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	struct kdsm_chain *chain;
	struct kdsm_wr *wr;
	int err = -ENOMEM;
	u32 key;

	chain = kmalloc(struct_size(chain, wrs, count), GFP_KERNEL | __GFP_ZERO);
	if (!chain)
		goto fail;
	chain->part.batch = batch;
	chain->part.connection = connection;
	chain->part.release = kdsm_chain_release;
	INIT_LIST_HEAD(&chain->link);
	list_for_each_entry_safe(op, next, ops, link) {
		list_del(&op->link);
		wr = &chain->wrs[chain->count];
		wr->chain = chain;
		err = kdsm_memory_key(op->memory, op->node, op->offset, &key);
		if (!err)
			err = kdsm_wr_prepare(fabric, wr, op, key);
		if (err) {
			op->status = err;
			continue;
		}
		if (chain->count)
			wr[-1].rdma.wr.next = &wr->rdma.wr;
		chain->count++;
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
	kdsm_chain_post(chain);
	return;

fail:
	list_for_each_entry(op, ops, link)
		op->status = err;
	INIT_LIST_HEAD(ops);
}

/* ---- batches ---- */

static void kdsm_operation_local(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	const struct kdsm_fabric_config *config = &batch->fabric->config;

	if (kdsm_is_atomic(op)) {
		op->status = kdsm_memory_atomic(op->memory, op->opcode == KDSM_OP_CAS,
						op->offset, op->operand, op->compare,
						&op->result, true);
		return;
	}
	op->status = kdsm_memory_copy(op->memory, op->offset, op->data, op->length,
				      op->opcode == KDSM_OP_PUT, true);
	if (op->notify && !op->status) {
		u32 notice = kdsm_wire_notice(kdsm_memory_id(op->memory), op->offset);

		smp_mb();	/* the store, then the look at who waits */
		local_bh_disable();
		config->notified(config->context, notice >> 16, notice & 0xffff);
		local_bh_enable();
	}
}

/* All operations of the batch on one peer, as chains, in order. */
static void kdsm_batch_post_peer(struct kdsm_batch *batch, struct list_head *ops,
				 unsigned int node)
{
	struct kdsm_operation *op, *next;
	struct kdsm_connection *connection = kdsm_connection_get(batch->fabric, node);
	unsigned int count;

	while (!list_empty(ops)) {
		LIST_HEAD(chain);

		count = 0;
		list_for_each_entry_safe(op, next, ops, link) {
			list_move_tail(&op->link, &chain);
			if (IS_ERR(connection)) {
				op->status = PTR_ERR(connection);
				kdsm_count(kdsm_operation_counters(batch, op),
					   KDSM_STAT_ERRORS);
			}
			if (++count == KDSM_CHAIN_MAX)
				break;
		}
		if (!IS_ERR(connection))
			kdsm_chain_start(batch, &chain, count, connection);
	}
}

/* Operations on one peer: each by the means that suits it. */
static void kdsm_batch_start_peer(struct kdsm_batch *batch, struct list_head *ops,
				  unsigned int node)
{
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	unsigned int count = 0;
	LIST_HEAD(gets);

	list_for_each_entry_safe(op, next, ops, link) {
		if (kdsm_is_atomic(op) && fabric->domain == KDSM_DOMAIN_SW) {
			list_del(&op->link);
			kdsm_delegate_atomic(batch, op);
		} else if (kdsm_delegates_get(fabric, op)) {
			list_move_tail(&op->link, &gets);
			count++;
		}
	}
	if (count < KDSM_GATHER_MIN)
		list_splice_tail_init(&gets, ops);
	kdsm_delegate_gets(batch, &gets);
	if (!list_empty(ops))
		kdsm_batch_post_peer(batch, ops, node);
}

static bool kdsm_operation_is_local(const struct kdsm_fabric *fabric,
				    const struct kdsm_operation *op)
{
	return op->node == fabric->config.node &&
	       !(kdsm_is_atomic(op) && fabric->domain == KDSM_DOMAIN_HCA);
}

void kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	LIST_HEAD(local);

	batch->posted = ktime_get();
	percpu_down_read(&fabric->gate);
	while (!list_empty(&batch->operations)) {
		unsigned int node;
		LIST_HEAD(ops);

		op = list_first_entry(&batch->operations, struct kdsm_operation, link);
		node = op->node;
		list_for_each_entry_safe(op, next, &batch->operations, link)
			if (op->node == node)
				list_move_tail(&op->link, kdsm_operation_is_local(fabric, op) ?
					       &local : &ops);
		if (!list_empty(&ops))
			kdsm_batch_start_peer(batch, &ops, node);
	}
	percpu_up_read(&fabric->gate);
	/* While the others are on their way. */
	list_for_each_entry_safe(op, next, &local, link) {
		list_del(&op->link);
		kdsm_operation_local(batch, op);
	}
	kdsm_batch_part_done(batch);
}

static void kdsm_batch_nudge(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection)
			kdsm_connection_nudge(part->connection);
}

/* Messages have no time-out of the transport's once they are acknowledged. */
static void kdsm_batch_give_up(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection)
			kdsm_connection_break(part->connection);
}

/* One of the peers that the batch waits for, or NULL. */
static struct kdsm_peer *kdsm_batch_peer(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection)
			return part->connection->peer;
	return NULL;
}

/*
 * Poll for about as long as it took lately, if that is short, since sleeping
 * would cost more; and only as long as nothing else needs the CPU, which may be
 * the very software that the device is made of.
 */
static bool kdsm_batch_poll(struct kdsm_batch *batch, const struct kdsm_peer *peer)
{
	u32 mean = READ_ONCE(peer->latency);
	struct kdsm_part *part;
	u64 end;

	if (mean / NSEC_PER_USEC > READ_ONCE(kdsm_poll_us))
		return false;
	end = ktime_get_ns() + 2 * mean + 1000;
	do {
		list_for_each_entry(part, &batch->parts, link)
			if (part->connection)
				kdsm_connection_poll(part->connection);
		if (completion_done(&batch->done))
			return true;
		cpu_relax();
	} while (!need_resched() && ktime_get_ns() < end);
	return false;
}

int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state)
{
	struct kdsm_peer *peer = kdsm_batch_peer(batch);
	u64 left = KDSM_REPLY_TIMEOUT;
	unsigned long slice;
	long ret;

	if (!peer)
		goto wait;	/* nothing remote: it is done */
	if (kdsm_batch_poll(batch, peer)) {
		kdsm_count(peer->counters, KDSM_STAT_WAIT_POLLED);
		goto done;
	}
	if (!completion_done(&batch->done))
		kdsm_count(peer->counters, KDSM_STAT_WAIT_SLEPT);
wait:
	if (timeout_ns != KDSM_NO_TIMEOUT)
		left = nsecs_to_jiffies64(timeout_ns) + !!timeout_ns;
	for (;;) {
		slice = min_t(u64, left, KDSM_NUDGE_AFTER);
		if (state == TASK_KILLABLE)
			ret = wait_for_completion_killable_timeout(&batch->done, slice);
		else if (state == TASK_INTERRUPTIBLE)
			ret = wait_for_completion_interruptible_timeout(&batch->done, slice);
		else
			ret = wait_for_completion_timeout(&batch->done, slice);
		if (ret < 0)
			return ret;
		if (ret > 0)
			break;
		left -= slice;
		if (left) {
			kdsm_batch_nudge(batch);
			continue;
		}
		if (timeout_ns != KDSM_NO_TIMEOUT)
			return -ETIMEDOUT;
		kdsm_batch_give_up(batch);
		left = KDSM_REPLY_TIMEOUT;
	}
done:
	if (peer) {
		u64 took = ktime_to_ns(ktime_sub(ktime_get(), batch->posted));
		u32 mean = READ_ONCE(peer->latency);

		took = min_t(u64, took, NSEC_PER_SEC);
		WRITE_ONCE(peer->latency, mean - mean / 8 + (u32)took / 8);
	}
	return 0;
}

void kdsm_batch_finish(struct kdsm_batch *batch)
{
	struct kdsm_part *part, *next;

	list_for_each_entry_safe(part, next, &batch->parts, link)
		part->release(part);
	INIT_LIST_HEAD(&batch->parts);
}
