// SPDX-License-Identifier: GPL-2.0
/*
 * Batches of operations, which a task posts and waits for together. Operations on a peer
 * become chains of work requests (operation.c) or messages (delegate.c). This CPU executes
 * operations on this node's own part while posting.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "internal.h"

/*
 * Upper bound of the mean duration of waits for which waiters poll, in us. The default is
 * longer than operations of RDMA hardware take, and short enough that polling does not waste a
 * CPU: programs on emulated machines took up to twice as long when waiters polled.
 */
static unsigned int kdsm_poll_us = 25;
module_param_named(poll_us, kdsm_poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "poll for completions that take up to so many microseconds on average, sleep for others");

u64 kdsm_poll_limit(void)
{
	return (u64)READ_ONCE(kdsm_poll_us) * NSEC_PER_USEC;
}

/* Least number of small gets for which one message is faster than RDMA reads (delegate.c) */
#define KDSM_GATHER_MIN		3

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory)
{
	batch->fabric = fabric;
	batch->memory = memory;
	batch->tie = 0;
	batch->killable = false;
	batch->latency = KDSM_LATENCY_COUNT;
	batch->ended = NULL;
	batch->started = false;
	INIT_LIST_HEAD(&batch->operations);
	INIT_LIST_HEAD(&batch->parts);
	atomic_set(&batch->pending, 1);		/* kdsm_batch_post() drops it */
	init_completion(&batch->done);
}

static enum kdsm_latency kdsm_operation_latency(const struct kdsm_operation *op)
{
	static const u8 latencies[] = {
		[KDSM_OP_GET] = KDSM_LATENCY_GET,
		[KDSM_OP_PUT] = KDSM_LATENCY_PUT,
		[KDSM_OP_CAS] = KDSM_LATENCY_CAS,
		[KDSM_OP_FAA] = KDSM_LATENCY_FAA,
		[KDSM_OP_FIND] = KDSM_LATENCY_FIND,
		[KDSM_OP_STEAL] = KDSM_LATENCY_STEAL,
	};

	return op->notify ? KDSM_LATENCY_PUT_NOTIFY : latencies[op->opcode];
}

void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op)
{
	enum kdsm_latency latency;

	op->memory = memory;
	op->status = 0;
	op->result = 0;
	latency = kdsm_operation_latency(op);
	if (batch->latency != latency)
		batch->latency = batch->latency == KDSM_LATENCY_COUNT ? latency :
									KDSM_LATENCY_MIXED;
	list_add_tail(&op->link, &batch->operations);
}

void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	kdsm_batch_add_to(batch, batch->memory, op);
}

static void kdsm_operation_local(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	const struct kdsm_fabric_config *config = &batch->fabric->config;

	if (kdsm_operation_is_atomic(op)) {
		op->status = kdsm_memory_atomic(op->memory, op->opcode == KDSM_OP_CAS,
						op->offset, op->operand, op->compare,
						&op->result, true);
		return;
	}
	if (op->opcode == KDSM_OP_FIND) {
		op->status = kdsm_find(op->memory, op->offset, op->data, true);
		return;
	}
	if (op->opcode == KDSM_OP_STEAL) {
		struct kdsm_theft *theft = op->data;

		op->status = kdsm_steal(op->memory, config->node, op->offset, theft,
					kdsm_theft_tasks(theft), true);
		return;
	}
	if (!op->notify) {
		op->status = kdsm_memory_copy(op->memory, op->offset, op->data, op->length,
					      op->opcode == KDSM_OP_PUT, true);
		return;
	}
	op->status = kdsm_memory_announce(op->memory, op->offset, op->data, op->length, true);
	if (!op->status) {
		/*
		 * Order the store before notified() looks for waiters. Pairs with the barrier
		 * of prepare_to_wait_event() in kdsm_pgas_wait().
		 */
		smp_mb();
		local_bh_disable();
		config->notified(config->context, kdsm_memory_id(op->memory), op->offset);
		local_bh_enable();
	}
}

/*
 * Choose the connection for operations on one peer. Notifying puts to a peer all use the same
 * connection, so the CPU there stores their words in the order in which tasks put them.
 */
static struct kdsm_connection *kdsm_batch_connection(struct kdsm_batch *batch,
						     const struct list_head *ops,
						     unsigned int node,
						     struct kdsm_posting *posting)
{
	struct kdsm_connection *connection;
	const struct kdsm_operation *op;

	list_for_each_entry(op, ops, link) {
		if (!op->notify)
			continue;
		connection = kdsm_connection_get_queue(&batch->fabric->peers[node],
						       KDSM_QUEUE_NOTIFY);
		if (!IS_ERR(connection))
			posting->failed = kdsm_settle_former(connection, &posting->life);
		return connection;
	}
	return kdsm_connection_get(batch->fabric, node);
}

/* Post operations on one peer as chains, in order */
static void kdsm_batch_post_peer(struct kdsm_batch *batch, struct list_head *ops,
				 unsigned int node)
{
	struct kdsm_operation *op, *next;
	struct kdsm_posting posting = { };
	struct kdsm_connection *connection = kdsm_batch_connection(batch, ops, node, &posting);
	unsigned int count;

	posting.connection = connection;
	/*
	 * Keys are read after the life, and a peer's former keys are forgotten before a connection
	 * rises. So no key is of an incarnation before that of this life.
	 */
	if (!IS_ERR(connection) && !posting.life) {
		/* Pairs with the unlock in kdsm_connection_rise(). */
		posting.life = smp_load_acquire(&connection->life);
	}
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
			kdsm_chain_start(batch, &chain, count, &posting);
	}
}

/* Start all operations of the batch on one peer: delegate some, post the others as chains */
static void kdsm_batch_start_peer(struct kdsm_batch *batch, struct list_head *ops,
				  unsigned int node)
{
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	unsigned int count = 0;
	LIST_HEAD(gets);

	list_for_each_entry_safe(op, next, ops, link) {
		if (kdsm_operation_is_atomic(op) &&
		    kdsm_memory_domain(op->memory) == KDSM_DOMAIN_SW) {
			list_del(&op->link);
			kdsm_delegate_atomic(batch, op);
		} else if (op->opcode == KDSM_OP_FIND) {
			list_del(&op->link);
			kdsm_delegate_find(batch, op);
		} else if (op->opcode == KDSM_OP_STEAL) {
			list_del(&op->link);
			kdsm_delegate_steal(batch, op);
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
	       !(kdsm_operation_is_atomic(op) &&
		 kdsm_memory_domain(op->memory) == KDSM_DOMAIN_HCA);
}

void kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_fabric *fabric = batch->fabric;
	struct kdsm_operation *op, *next;
	LIST_HEAD(local);
	int failed = 0;

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
	/* Execute the local operations while the others are in flight. */
	list_for_each_entry_safe(op, next, &local, link) {
		list_del(&op->link);
		/* A put with notify must not take effect without the earlier puts. */
		if (op->notify && failed)
			op->status = failed;
		else
			kdsm_operation_local(batch, op);
		if (op->opcode == KDSM_OP_PUT && op->status)
			failed = op->status;
	}
	/* Pairs with smp_load_acquire() in kdsm_batch_upkeep(). */
	smp_store_release(&batch->started, true);
	kdsm_batch_drop(batch);
}

static void kdsm_batch_nudge(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection)
			kdsm_connection_nudge(part->connection);
}

/*
 * Break the connections on which the batch still waits, so that its operations fail. The transport
 * has no timeout for the reply to an acknowledged message.
 */
static void kdsm_batch_give_up(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection && !READ_ONCE(part->done))
			kdsm_connection_break(part->connection);
}

static bool kdsm_batch_is_overdue(const struct kdsm_batch *batch)
{
	return ktime_ms_delta(ktime_get(), batch->posted) >=
	       jiffies_to_msecs(KDSM_REPLY_TIMEOUT);
}

void kdsm_batch_upkeep(struct kdsm_batch *batch)
{
	/* Pairs with smp_store_release() in kdsm_batch_post(). */
	if (!smp_load_acquire(&batch->started))
		return;
	if (kdsm_batch_is_overdue(batch))
		kdsm_batch_give_up(batch);
	else
		kdsm_batch_nudge(batch);
}

/* Return one of the peers that the batch waits for, or NULL */
static struct kdsm_peer *kdsm_batch_peer(struct kdsm_batch *batch)
{
	struct kdsm_part *part;

	list_for_each_entry(part, &batch->parts, link)
		if (part->connection)
			return part->connection->peer;
	return NULL;
}

/*
 * If recent batches were short, poll for about twice their mean duration, because a sleep
 * would cost more. Stop when another task needs the CPU, as that task may be part of a
 * software device on which the batch depends. Return whether the batch is done.
 */
static bool kdsm_batch_poll(struct kdsm_batch *batch, const struct kdsm_peer *peer)
{
	u32 mean = READ_ONCE(peer->latency);
	struct kdsm_part *part;
	u64 end;

	if (mean > kdsm_poll_limit())
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
	/* Of a batch that is done before, nobody knows when */
	bool waits = batch->latency < KDSM_LATENCY_COUNT && !completion_done(&batch->done);
	u64 left = U64_MAX;
	unsigned long slice;
	long ret;

	if (!peer)
		goto wait;	/* nothing was posted to a peer, so the batch is done */
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
		slice = min_t(u64, left, KDSM_UPKEEP_EVERY);
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
		if (kdsm_batch_is_overdue(batch))
			kdsm_batch_give_up(batch);
		else if (left)
			kdsm_batch_nudge(batch);
		if (!left)
			return -ETIMEDOUT;
	}
done:
	if (peer) {
		u64 took = ktime_to_ns(ktime_sub(ktime_get(), batch->posted));
		u32 mean = READ_ONCE(peer->latency);

		if (waits)
			kdsm_duration(batch->fabric->durations, batch->latency, took);
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
