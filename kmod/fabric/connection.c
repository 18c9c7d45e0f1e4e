// SPDX-License-Identifier: GPL-2.0
/*
 * A connection to or from a peer: its queue pair, its states, its completions and its
 * teardown. connect.c and accept.c make connections; message.c and operation.c post on
 * them.
 *
 * A connection has one direction. The node that connects sends requests and one-sided
 * operations; the node that accepts sends only replies. Two nodes that both send requests
 * have two connections, so simultaneous connects need no rule.
 *
 * States:  idle -> connecting -> up -> broken -> idle   (made here; reused)
 *          idle -> up -> broken -> freed                (accepted)
 *
 * Any error, in any context, breaks the connection: kdsm_connection_break() sets the state
 * to broken and queues the teardown. The teardown drains the queue pair, after which no
 * completion arrives, and then fails the chains and calls that are still listed. Chains and
 * messages are posted only with connection->lock held and in state up, so nothing is in
 * flight after the drain.
 */
#include <linux/slab.h>

#include "trace.h"
#include "internal.h"

/* Completions to take before the tasklet yields */
#define KDSM_POLL_BUDGET	256
/* Delay before a peer repeats a send that found no posted receive: code 12 is 0.64 ms */
#define KDSM_RNR_TIMER		12

static void kdsm_connection_teardown(struct work_struct *work);

/* ---- completions ---- */

/* Take about budget completions, unless the queue is destroyed. Return how many were taken. */
static int kdsm_connection_take(struct kdsm_connection *connection, int budget)
{
	struct ib_wc wcs[16];
	int total = 0, n, i;

	lockdep_assert_held(&connection->poll_lock);
	if (connection->cq_dead)
		return 0;
	while (total < budget) {
		n = ib_poll_cq(connection->cq, ARRAY_SIZE(wcs), wcs);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			if (wcs[i].wr_cqe && wcs[i].wr_cqe->done)
				wcs[i].wr_cqe->done(connection->cq, &wcs[i]);
		total += n;
	}
	return total;
}

/*
 * Take completions, then arm the completion queue. IB_CQ_REPORT_MISSED_EVENTS reports a
 * completion that arrived between the last poll and the arming.
 */
static void kdsm_connection_tasklet(struct tasklet_struct *tasklet)
{
	struct kdsm_connection *connection =
		from_tasklet(connection, tasklet, tasklet);

	spin_lock(&connection->poll_lock);
	if (!connection->cq_dead &&
	    (kdsm_connection_take(connection, KDSM_POLL_BUDGET) >= KDSM_POLL_BUDGET ||
	     ib_req_notify_cq(connection->cq, IB_CQ_NEXT_COMP |
			      IB_CQ_REPORT_MISSED_EVENTS) > 0))
		tasklet_schedule(&connection->tasklet);
	spin_unlock(&connection->poll_lock);
}

/* A device may call this in a hard interrupt or with its own locks held: only schedule. */
static void kdsm_connection_ready(struct ib_cq *cq, void *context)
{
	struct kdsm_connection *connection = context;

	tasklet_schedule(&connection->tasklet);
}

void kdsm_connection_poll(struct kdsm_connection *connection)
{
	local_bh_disable();
	if (spin_trylock(&connection->poll_lock)) {
		kdsm_connection_take(connection, KDSM_POLL_BUDGET);
		spin_unlock(&connection->poll_lock);
	}
	local_bh_enable();
}

static void kdsm_connection_nudged(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_connection *connection =
		container_of(wc->wr_cqe, struct kdsm_connection, nudge);

	spin_lock_bh(&connection->lock);
	connection->nudging = false;
	spin_unlock_bh(&connection->lock);
	if (wc->status != IB_WC_SUCCESS)
		kdsm_connection_break(connection);
}

void kdsm_connection_nudge(struct kdsm_connection *connection)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &connection->nudge,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};

	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UP && !connection->nudging)
		connection->nudging = !ib_post_send(connection->qp, &wr.wr, NULL);
	spin_unlock_bh(&connection->lock);
}

static void kdsm_connection_qp_event(struct ib_event *event, void *context)
{
	struct kdsm_connection *connection = context;

	if (event->event == IB_EVENT_QP_FATAL ||
	    event->event == IB_EVENT_QP_ACCESS_ERR ||
	    event->event == IB_EVENT_QP_REQ_ERR)
		kdsm_connection_break(connection);
}

/* ---- life of a connection ---- */

struct kdsm_connection *kdsm_connection_create(struct kdsm_peer *peer,
					       unsigned int queue, bool accepted)
{
	const unsigned int count = KDSM_CREDITS + KDSM_RECEIVES;
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *connection;
	unsigned int i;

	connection = kzalloc(sizeof(*connection), GFP_KERNEL);
	if (!connection)
		return ERR_PTR(-ENOMEM);
	connection->buffers = kcalloc(count, KDSM_MESSAGE_SIZE, GFP_KERNEL);
	if (!connection->buffers)
		goto free;
	connection->buffers_dma =
		ib_dma_map_single(fabric->device, connection->buffers,
				  count * KDSM_MESSAGE_SIZE, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(fabric->device, connection->buffers_dma))
		goto free_buffers;
	for (i = 0; i < count; i++) {
		void *buffer = connection->buffers + i * KDSM_MESSAGE_SIZE;
		u64 dma = connection->buffers_dma + i * KDSM_MESSAGE_SIZE;

		if (i < KDSM_CREDITS) {
			connection->slots[i].buffer = buffer;
			connection->slots[i].dma = dma;
			connection->slots[i].connection = connection;
		} else {
			struct kdsm_receive *receive =
				&connection->receives[i - KDSM_CREDITS];

			receive->buffer = buffer;
			receive->dma = dma;
			receive->connection = connection;
		}
	}

	connection->fabric = fabric;
	connection->peer = peer;
	connection->queue = queue;
	connection->accepted = accepted;
	kref_init(&connection->kref);
	mutex_init(&connection->setup);
	init_completion(&connection->event);
	spin_lock_init(&connection->lock);
	spin_lock_init(&connection->poll_lock);
	INIT_LIST_HEAD(&connection->link);
	INIT_LIST_HEAD(&connection->chains);
	init_waitqueue_head(&connection->wait);
	INIT_WORK(&connection->teardown, kdsm_connection_teardown);
	tasklet_setup(&connection->tasklet, kdsm_connection_tasklet);
	connection->nudge.done = kdsm_connection_nudged;
	fabric->up->created(connection);
	if (accepted)
		atomic_inc(&fabric->accepted_count);
	return connection;

free_buffers:
	kfree(connection->buffers);
free:
	kfree(connection);
	return ERR_PTR(-ENOMEM);
}

/* Unmap the buffers from the device */
static void kdsm_connection_unmap(struct kdsm_connection *connection)
{
	ib_dma_unmap_single(connection->fabric->device, connection->buffers_dma,
			    (KDSM_CREDITS + KDSM_RECEIVES) * KDSM_MESSAGE_SIZE,
			    DMA_BIDIRECTIONAL);
}

static void kdsm_connection_free(struct kref *kref)
{
	struct kdsm_connection *connection =
		container_of(kref, struct kdsm_connection, kref);
	struct kdsm_fabric *fabric = connection->fabric;
	bool accepted = connection->accepted;

	if (accepted)
		kdsm_connection_unmap(connection);
	kfree(connection->buffers);
	kfree(connection);
	if (accepted && atomic_dec_and_test(&fabric->accepted_count))
		wake_up_all(&fabric->accepted_wait);
}

void kdsm_connection_put(struct kdsm_connection *connection)
{
	kref_put(&connection->kref, kdsm_connection_free);
}

int kdsm_connection_create_qp(struct kdsm_connection *connection)
{
	const unsigned int sends = KDSM_SEND_ROOM + KDSM_MESSAGE_SENDS + 8;
	const unsigned int receives = KDSM_RECEIVES + 1;
	struct kdsm_fabric *fabric = connection->fabric;
	struct ib_cq_init_attr cq_attr = {
		.cqe = sends + receives,
		.comp_vector = connection->queue % fabric->device->num_comp_vectors,
	};
	struct ib_qp_init_attr attr = {
		.event_handler = kdsm_connection_qp_event,
		.qp_context = connection,
		.cap = {
			.max_send_wr = sends,
			.max_recv_wr = receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int err;

	connection->cq = ib_create_cq(fabric->device, kdsm_connection_ready, NULL,
				      connection, &cq_attr);
	if (IS_ERR(connection->cq))
		return PTR_ERR(connection->cq);
	connection->cq_dead = false;

	attr.send_cq = connection->cq;
	attr.recv_cq = connection->cq;
	err = rdma_create_qp(connection->id, fabric->pd, &attr);
	if (err)
		goto free_cq;
	connection->qp = connection->id->qp;
	connection->room = KDSM_SEND_ROOM;
	connection->sends = KDSM_MESSAGE_SENDS;
	connection->unsignalled = 0;
	err = fabric->up->queue_pair_created(connection);
	if (err)
		goto free_qp;
	ib_req_notify_cq(connection->cq, IB_CQ_NEXT_COMP);
	rdma_set_min_rnr_timer(connection->id, KDSM_RNR_TIMER);
	rdma_set_ack_timeout(connection->id, KDSM_ACK_TIMEOUT);
	return 0;

free_qp:
	rdma_destroy_qp(connection->id);
free_cq:
	ib_destroy_cq(connection->cq);
	return err;
}

void kdsm_connection_destroy_qp(struct kdsm_connection *connection)
{
	ib_drain_qp(connection->qp);
	rdma_destroy_qp(connection->id);

	/* A tasklet that is still scheduled must not touch the completion queue. */
	spin_lock_bh(&connection->poll_lock);
	connection->cq_dead = true;
	spin_unlock_bh(&connection->poll_lock);
	ib_destroy_cq(connection->cq);
	tasklet_kill(&connection->tasklet);
}

void kdsm_connection_set_state(struct kdsm_connection *connection,
			       enum kdsm_connection_state state)
{
	spin_lock_bh(&connection->lock);
	trace_kdsm_connection(connection->peer->node, connection->queue,
			      connection->accepted, connection->state, state);
	connection->state = state;
	spin_unlock_bh(&connection->lock);
	wake_up_all(&connection->wait);
}

void kdsm_connection_break(struct kdsm_connection *connection)
{
	bool was_up;

	spin_lock_bh(&connection->lock);
	was_up = connection->state == KDSM_CONNECTION_UP;
	if (was_up) {
		trace_kdsm_connection(connection->peer->node, connection->queue,
				      connection->accepted, connection->state,
				      KDSM_CONNECTION_BROKEN);
		connection->state = KDSM_CONNECTION_BROKEN;
	}
	spin_unlock_bh(&connection->lock);
	if (!was_up)
		return;
	wake_up_all(&connection->wait);
	/* The teardown drops this reference. */
	kref_get(&connection->kref);
	queue_work(connection->fabric->workqueue, &connection->teardown);
}

static void kdsm_connection_teardown(struct work_struct *work)
{
	struct kdsm_connection *connection =
		container_of(work, struct kdsm_connection, teardown);
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_peer *peer = connection->peer;

	rdma_disconnect(connection->id);
	kdsm_connection_destroy_qp(connection);
	rdma_destroy_id(connection->id);
	connection->id = NULL;
	fabric->up->queue_pair_gone(connection);

	if (connection->accepted) {
		mutex_lock(&fabric->accepted_lock);
		list_del_init(&connection->link);
		mutex_unlock(&fabric->accepted_lock);
		wake_up_all(&fabric->accepted_wait);
		kdsm_connection_put(connection);	/* the list's reference */
	} else {
		kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
		if (!READ_ONCE(fabric->stopping)) {
			/* Connect again, which tells a failed connection from a dead peer. */
			atomic64_inc(&peer->errors);
			WRITE_ONCE(peer->state, KDSM_PEER_IDLE);
			fabric->up->broken(connection);
		}
	}
	kdsm_connection_put(connection);	/* the teardown's reference */
}

/* ---- all connections of a fabric ---- */

void kdsm_connection_stop(struct kdsm_fabric *fabric)
{
	struct kdsm_connection *connection;
	unsigned int node, i;

	/*
	 * No attempt to connect starts from now on. An attempt that runs has ended when this
	 * task holds the connection's setup.
	 */
	WRITE_ONCE(fabric->stopping, true);
	rdma_destroy_id(fabric->listener);
	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < KDSM_QUEUES; i++) {
			/* Pairs with smp_store_release() in kdsm_connection_queue(). */
			connection = smp_load_acquire(&fabric->peers[node].queues[i]);
			if (!connection)
				continue;
			mutex_lock(&connection->setup);
			kdsm_connection_break(connection);
			mutex_unlock(&connection->setup);
		}
	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(connection, &fabric->accepted, link)
		kdsm_connection_break(connection);
	mutex_unlock(&fabric->accepted_lock);
	wait_event(fabric->accepted_wait, !atomic_read(&fabric->accepted_count));
	drain_workqueue(fabric->workqueue);

	/*
	 * Wait for the tasks that chose a connection before it broke, or that created one in
	 * the meantime.
	 */
	percpu_down_write(&fabric->gate);
	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < KDSM_QUEUES; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_unmap(fabric->peers[node].queues[i]);
	percpu_up_write(&fabric->gate);
}

void kdsm_connection_free_all(struct kdsm_fabric *fabric)
{
	unsigned int node, i;

	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < KDSM_QUEUES; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_put(fabric->peers[node].queues[i]);
}
