// SPDX-License-Identifier: GPL-2.0
/*
 * Settling: waiting until peers see the puts of this node that are complete.
 *
 * The completion of an RDMA write says that the peer's device has it, not that it is in memory.
 * When the peer's CPU takes the completion of a receive, all that came before on that connection
 * is in memory. So this node sends an empty message on each connection that has carried writes
 * since the last one, and the reply shows that the peer has taken it.
 *
 * If the connection broke after the writes, the message goes out on a new one. The peer then
 * answers only when it has drained its end of the former connection, which takes all its
 * completions.
 */
#include <linux/slab.h>

#include "internal.h"

/* One message in flight */
struct kdsm_settling {
	struct kdsm_part part;
	struct kdsm_call call;
	u32 written;		/* of the connection, before the message was posted */
};

static void kdsm_settling_done(struct kdsm_call *call)
{
	struct kdsm_settling *settling = container_of(call, struct kdsm_settling, call);
	struct kdsm_connection *connection = call->connection;

	spin_lock_bh(&connection->lock);
	if (!call->status && (s32)(settling->written - connection->settled) > 0)
		connection->settled = settling->written;
	spin_unlock_bh(&connection->lock);
	kdsm_batch_part_done(&settling->part);
}

static void kdsm_settling_release(struct kdsm_part *part)
{
	kfree(container_of(part, struct kdsm_settling, part));
}

/* Send the message as a part of the batch */
static int kdsm_settling_post(struct kdsm_batch *batch, struct kdsm_connection *connection,
			      u32 written)
{
	struct kdsm_settling *settling = kzalloc(sizeof(*settling), GFP_KERNEL);
	int err;

	if (!settling)
		return -ENOMEM;
	settling->part.batch = batch;
	settling->part.release = kdsm_settling_release;
	settling->call.done = kdsm_settling_done;
	settling->written = written;
	list_add_tail(&settling->part.link, &batch->parts);
	atomic_inc(&batch->pending);
	err = kdsm_call_post_on(connection, KDSM_MESSAGE_SETTLE, NULL, 0, &settling->call);
	if (err) {
		settling->call.status = err;
		kdsm_batch_part_done(&settling->part);
	}
	/* kdsm_batch_wait() nudges the connection, and breaks it in the end. */
	settling->part.connection = settling->call.connection;
	return err;
}

/* Wait for all messages of the batch. 0, or the status of one that failed. */
static int kdsm_settling_wait(struct kdsm_batch *batch)
{
	struct kdsm_settling *settling;
	int err = 0;

	kdsm_batch_drop(batch);
	/* Ends in bounded time, because the fabric drops connections to peers that are silent. */
	kdsm_batch_wait(batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	list_for_each_entry(settling, &batch->parts, part.link)
		if (!err)
			err = settling->call.status;
	kdsm_batch_finish(batch);
	return err;
}

/* Send the message on the connection, unless that has carried no writes. 1 if it was sent. */
static int kdsm_settle_queue(struct kdsm_batch *batch, struct kdsm_connection *connection)
{
	bool settled;
	u32 written;

	spin_lock_bh(&connection->lock);
	written = connection->written;
	settled = written == connection->settled;
	spin_unlock_bh(&connection->lock);
	if (settled)
		return 0;
	connection = kdsm_connection_get_queue(connection->peer, connection->queue);
	if (IS_ERR(connection))
		return PTR_ERR(connection);
	return kdsm_settling_post(batch, connection, written) ?: 1;
}

int kdsm_settle_former(struct kdsm_connection *connection, u32 *life)
{
	struct kdsm_batch batch;
	int err;

	*life = READ_ONCE(connection->life);
	if (likely(*life == 1) || READ_ONCE(connection->quiet) == *life)
		return 0;
	kdsm_batch_init(&batch, connection->fabric, NULL);
	batch.posted = ktime_get();
	err = kdsm_settling_post(&batch, connection, READ_ONCE(connection->settled));
	err = kdsm_settling_wait(&batch) ?: err;
	/* If the connection broke meanwhile, it has another life, and the caller cannot post. */
	if (!err)
		WRITE_ONCE(connection->quiet, *life);
	return err;
}

static int kdsm_settle_peer(struct kdsm_batch *batch, struct kdsm_peer *peer, u32 *messages)
{
	struct kdsm_connection *connection;
	unsigned int i;
	int err, first = 0;

	for (i = 0; i < batch->fabric->queues; i++) {
		/* Pairs with smp_store_release() in kdsm_connection_queue(). */
		connection = smp_load_acquire(&peer->queues[i]);
		err = connection ? kdsm_settle_queue(batch, connection) : 0;
		if (err > 0)
			++*messages;
		else if (!first)
			first = err;
	}
	return first;
}

int kdsm_fabric_settle(struct kdsm_fabric *fabric, const unsigned long *nodes, u32 *messages)
{
	unsigned int count = READ_ONCE(fabric->nodes), node;
	struct kdsm_batch batch;
	int err, first = 0;

	*messages = 0;
	kdsm_batch_init(&batch, fabric, NULL);
	batch.posted = ktime_get();
	percpu_down_read(&fabric->gate);
	for_each_set_bit(node, nodes, count) {
		if (node == fabric->config.node)
			continue;
		err = kdsm_settle_peer(&batch, &fabric->peers[node], messages);
		if (!first)
			first = err;
	}
	percpu_up_read(&fabric->gate);
	err = kdsm_settling_wait(&batch);
	return first ?: err;
}

int kdsm_settle_serve(void *context, struct kdsm_request *request)
{
	struct kdsm_serving *serving = container_of(request, struct kdsm_serving, request);
	struct kdsm_peer *peer = serving->connection->peer;
	struct kdsm_fabric *fabric = context;

	if (!atomic_read(&peer->draining))
		return 0;
	if (!request->can_sleep)
		return -EAGAIN;
	wait_event(fabric->accepted_wait, !atomic_read(&peer->draining));
	return 0;
}
