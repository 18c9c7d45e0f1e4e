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
 * States:  idle -> connecting -> unproven -> up -> broken -> idle   (made here; reused)
 *          idle -> unproven -> up -> broken -> freed                (accepted)
 *
 * An attempt to connect that fails leads back to idle. A connection is unproven until the asker has
 * proved that it knows a key of the cluster (wire.h), and carries that proof only.
 *
 * Any error, in any context, breaks the connection: kdsm_connection_break() sets the state
 * to broken and queues the teardown. The teardown drains the queue pair, after which no
 * completion arrives, and then fails the chains and calls that are still listed. Chains and
 * messages are posted only with connection->lock held and in state up, so nothing is in
 * flight after the drain.
 */
#include <linux/sched/clock.h>
#include <linux/slab.h>

#include "trace.h"
#include "internal.h"

/* Completions to take, and time to spend on them in ns, before the tasklet yields */
#define KDSM_POLL_BUDGET	256
#define KDSM_POLL_TIME		(200 * NSEC_PER_USEC)
/* Delay before a peer repeats a send that found no posted receive: code 12 is 0.64 ms */
#define KDSM_RNR_TIMER		12

static void kdsm_connection_teardown(struct work_struct *work);
static void kdsm_connection_again(struct work_struct *work);

/* ---- completions ---- */

/*
 * Take completions, unless the queue is destroyed. Return whether the budget ended before the
 * completions did. Handlers of messages run here, and peers decide how long those take.
 */
static bool kdsm_connection_take(struct kdsm_connection *connection)
{
	u64 end = local_clock() + KDSM_POLL_TIME;
	struct ib_wc wcs[16];
	int total = 0, n, i;

	lockdep_assert_held(&connection->poll_lock);
	if (connection->cq_dead)
		return false;
	do {
		n = ib_poll_cq(connection->cq, ARRAY_SIZE(wcs), wcs);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++)
			if (wcs[i].wr_cqe && wcs[i].wr_cqe->done)
				wcs[i].wr_cqe->done(connection->cq, &wcs[i]);
		total += n;
	} while (total < KDSM_POLL_BUDGET && local_clock() < end);
	return true;
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
	    (kdsm_connection_take(connection) ||
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
		kdsm_connection_take(connection);
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

/* Unmap the buffers from the device */
static void kdsm_connection_unmap(struct kdsm_connection *connection)
{
	unsigned int i;

	for (i = 0; i < KDSM_BUFFER_PAGES && connection->pages[i].dma; i++) {
		ib_dma_unmap_single(connection->fabric->device, connection->pages[i].dma,
				    PAGE_SIZE, DMA_BIDIRECTIONAL);
		connection->pages[i].dma = 0;
	}
}

static void kdsm_connection_release(struct kdsm_connection *connection)
{
	unsigned int i;

	for (i = 0; i < KDSM_BUFFER_PAGES; i++)
		free_page((unsigned long)connection->pages[i].address);
	kvfree(connection);
}

/* Allocate the buffers and map them for the device. The caller releases them after an error. */
static int kdsm_connection_map(struct kdsm_connection *connection)
{
	struct ib_device *device = connection->fabric->device;
	unsigned int i;
	u64 dma;

	for (i = 0; i < KDSM_BUFFER_PAGES; i++) {
		connection->pages[i].address = (void *)get_zeroed_page(GFP_KERNEL);
		if (!connection->pages[i].address)
			return -ENOMEM;
		dma = ib_dma_map_single(device, connection->pages[i].address, PAGE_SIZE,
					DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(device, dma))
			return -ENOMEM;
		connection->pages[i].dma = dma;
	}
	for (i = 0; i < KDSM_BUFFERS; i++) {
		unsigned int at = i % KDSM_PAGE_BUFFERS * KDSM_MESSAGE_SIZE;
		void *buffer = connection->pages[i / KDSM_PAGE_BUFFERS].address + at;

		dma = connection->pages[i / KDSM_PAGE_BUFFERS].dma + at;
		if (i < KDSM_CREDITS) {
			connection->slots[i].buffer = buffer;
			connection->slots[i].dma = dma;
			connection->slots[i].connection = connection;
		} else {
			struct kdsm_receive *receive = &connection->receives[i - KDSM_CREDITS];

			receive->buffer = buffer;
			receive->dma = dma;
			receive->connection = connection;
		}
	}
	return 0;
}

struct kdsm_connection *kdsm_connection_create(struct kdsm_peer *peer,
					       unsigned int queue, bool accepted)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *connection;

	connection = kvzalloc(sizeof(*connection), GFP_KERNEL);
	if (!connection)
		return ERR_PTR(-ENOMEM);
	connection->fabric = fabric;
	connection->peer = peer;
	connection->queue = queue;
	connection->accepted = accepted;
	if (kdsm_connection_map(connection)) {
		kdsm_connection_unmap(connection);
		kdsm_connection_release(connection);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&connection->kref);
	mutex_init(&connection->setup);
	init_completion(&connection->event);
	spin_lock_init(&connection->lock);
	spin_lock_init(&connection->poll_lock);
	INIT_LIST_HEAD(&connection->link);
	INIT_LIST_HEAD(&connection->chains);
	init_waitqueue_head(&connection->wait);
	INIT_WORK(&connection->teardown, kdsm_connection_teardown);
	INIT_WORK(&connection->again, kdsm_connection_again);
	tasklet_setup(&connection->tasklet, kdsm_connection_tasklet);
	connection->nudge.done = kdsm_connection_nudged;
	fabric->up->created(connection);
	if (accepted)
		atomic_inc(&fabric->accepted_count);
	return connection;
}

static void kdsm_connection_free(struct kref *kref)
{
	struct kdsm_connection *connection =
		container_of(kref, struct kdsm_connection, kref);
	struct kdsm_fabric *fabric = connection->fabric;
	bool accepted = connection->accepted;

	if (accepted)
		kdsm_connection_unmap(connection);
	kdsm_connection_release(connection);
	if (accepted && atomic_dec_and_test(&fabric->accepted_count))
		wake_up_all(&fabric->accepted_wait);
}

void kdsm_connection_put(struct kdsm_connection *connection)
{
	kref_put(&connection->kref, kdsm_connection_free);
}

/*
 * rdma_cm would move a queue pair of its own, and grant the peer all access. So it does not know
 * this queue pair, but still tells the attributes.
 */
static int kdsm_connection_move_qp(struct kdsm_connection *connection, enum ib_qp_state state,
				   const struct rdma_conn_param *param)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int err, mask;

	err = rdma_init_qp_attr(connection->id, &attr, &mask);
	if (err)
		return err;
	attr.qp_access_flags = 0;
	if (param && state == IB_QPS_RTR)
		attr.max_dest_rd_atomic = param->responder_resources;
	if (param && state == IB_QPS_RTS)
		attr.max_rd_atomic = param->initiator_depth;
	return ib_modify_qp(connection->qp, &attr, mask);
}

static void kdsm_connection_destroy_cq(struct kdsm_connection *connection)
{
	/* A task or tasklet that still polls must not touch the completion queue. */
	spin_lock_bh(&connection->poll_lock);
	connection->cq_dead = true;
	spin_unlock_bh(&connection->poll_lock);
	ib_destroy_cq(connection->cq);
	tasklet_kill(&connection->tasklet);
}

int kdsm_connection_create_qp(struct kdsm_connection *connection)
{
	const unsigned int sends = KDSM_SEND_ROOM + KDSM_MESSAGE_SENDS + 8;
	const unsigned int receives = KDSM_RECEIVES + 1;
	struct kdsm_fabric *fabric = connection->fabric;
	struct ib_cq_init_attr cq_attr = {
		.cqe = sends + receives,
		/* Spread the connections of all peers over all vectors of the device. */
		.comp_vector = (connection->peer->node * fabric->queues + connection->queue) %
			       fabric->device->num_comp_vectors,
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
	connection->qp = ib_create_qp(fabric->pd, &attr);
	if (IS_ERR(connection->qp)) {
		err = PTR_ERR(connection->qp);
		goto free_cq;
	}
	rdma_set_min_rnr_timer(connection->id, KDSM_RNR_TIMER);
	rdma_set_ack_timeout(connection->id, KDSM_ACK_TIMEOUT);
	err = kdsm_connection_move_qp(connection, IB_QPS_INIT, NULL);
	if (err)
		goto free_qp;
	connection->room = KDSM_SEND_ROOM;
	connection->sends = KDSM_MESSAGE_SENDS;
	connection->unsignalled = 0;
	err = fabric->up->queue_pair_created(connection);
	if (err)
		goto free_qp;
	ib_req_notify_cq(connection->cq, IB_CQ_NEXT_COMP);
	return 0;

free_qp:
	ib_destroy_qp(connection->qp);
free_cq:
	kdsm_connection_destroy_cq(connection);
	return err;
}

int kdsm_connection_start_qp(struct kdsm_connection *connection,
			     const struct rdma_conn_param *param)
{
	return kdsm_connection_move_qp(connection, IB_QPS_RTR, param) ?:
	       kdsm_connection_move_qp(connection, IB_QPS_RTS, param);
}

int kdsm_connection_grant(struct kdsm_connection *connection)
{
	struct ib_qp_attr attr = {
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(connection->qp, &attr, IB_QP_ACCESS_FLAGS);
}

void kdsm_connection_destroy_qp(struct kdsm_connection *connection)
{
	ib_drain_qp(connection->qp);
	ib_destroy_qp(connection->qp);
	kdsm_connection_destroy_cq(connection);
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

void kdsm_connection_told(struct kdsm_connection *connection, int status)
{
	spin_lock_bh(&connection->lock);
	if (!connection->event_status)
		connection->event_status = status;
	spin_unlock_bh(&connection->lock);
	complete(&connection->event);
}

int kdsm_connection_rise(struct kdsm_connection *connection)
{
	int err;

	spin_lock_bh(&connection->lock);
	err = connection->event_status;
	if (!err && connection->state != KDSM_CONNECTION_UNPROVEN)
		err = -ESTALE;
	if (!err) {
		trace_kdsm_connection(connection->peer->node, connection->queue,
				      connection->accepted, connection->state,
				      KDSM_CONNECTION_UP);
		connection->state = KDSM_CONNECTION_UP;
		/* 0 means that the connection was never up. */
		if (!++connection->life)
			connection->life = 1;
	}
	spin_unlock_bh(&connection->lock);
	if (!err)
		wake_up_all(&connection->wait);
	return err;
}

void kdsm_connection_break(struct kdsm_connection *connection)
{
	bool breaks, ends = false;

	spin_lock_bh(&connection->lock);
	breaks = connection->state == KDSM_CONNECTION_UP;
	/* A stranger has no writes on their way, and is perhaps not the peer. */
	if (breaks && connection->accepted) {
		connection->draining = true;
		atomic_inc(&connection->peer->draining);
	}
	if (connection->state == KDSM_CONNECTION_UNPROVEN) {
		breaks = connection->accepted;
		ends = !breaks;
	}
	if (breaks) {
		trace_kdsm_connection(connection->peer->node, connection->queue,
				      connection->accepted, connection->state,
				      KDSM_CONNECTION_BROKEN);
		connection->state = KDSM_CONNECTION_BROKEN;
	}
	spin_unlock_bh(&connection->lock);
	if (ends)
		kdsm_connection_told(connection, -EIO);
	if (!breaks)
		return;
	wake_up_all(&connection->wait);
	/* The teardown drops this reference. */
	kref_get(&connection->kref);
	queue_work(connection->fabric->upkeep, &connection->teardown);
}

static void kdsm_connection_teardown(struct work_struct *work)
{
	struct kdsm_connection *connection =
		container_of(work, struct kdsm_connection, teardown);
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_peer *peer = connection->peer;

	/* Wait for kdsm_stranger_admit(), which uses the queue pair of an unproven connection. */
	mutex_lock(&fabric->accepted_lock);
	mutex_unlock(&fabric->accepted_lock);
	rdma_disconnect(connection->id);
	kdsm_connection_destroy_qp(connection);
	rdma_destroy_id(connection->id);
	connection->id = NULL;
	fabric->up->queue_pair_gone(connection);

	if (connection->accepted) {
		if (connection->draining)
			atomic_dec(&peer->draining);
		mutex_lock(&fabric->accepted_lock);
		list_del_init(&connection->link);
		fabric->strangers_count -= connection->stranger;
		peer->strangers -= connection->stranger;
		mutex_unlock(&fabric->accepted_lock);
		wake_up_all(&fabric->accepted_wait);
		kdsm_connection_put(connection);	/* the list's reference */
	} else {
		kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
		if (!kdsm_peer_is_closed(connection->peer)) {
			atomic64_inc(&peer->errors);
			WRITE_ONCE(peer->state, KDSM_PEER_IDLE);
			/* The teardown's reference becomes that of the work. */
			if (queue_work(fabric->senders, &connection->again))
				return;
		}
	}
	kdsm_connection_put(connection);	/* the teardown's reference */
}

/*
 * Connect again, which tells a failed connection from a dead peer. An attempt may take long, and
 * proofs wait for the workers of teardowns; so it does not run there.
 */
static void kdsm_connection_again(struct work_struct *work)
{
	struct kdsm_connection *connection = container_of(work, struct kdsm_connection, again);

	connection->fabric->up->broken(connection);
	kdsm_connection_put(connection);
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
	for (node = 0; node < KDSM_MAX_NODES; node++)
		for (i = 0; i < KDSM_QUEUES; i++) {
			/* Pairs with smp_store_release() in kdsm_connection_queue(). */
			connection = smp_load_acquire(&fabric->peers[node].queues[i]);
			if (!connection)
				continue;
			mutex_lock(&connection->setup);
			kdsm_connection_break(connection);
			mutex_unlock(&connection->setup);
		}
	cancel_delayed_work_sync(&fabric->strangers_work);
	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(connection, &fabric->strangers, link)
		kdsm_connection_break(connection);
	list_for_each_entry(connection, &fabric->accepted, link)
		kdsm_connection_break(connection);
	mutex_unlock(&fabric->accepted_lock);
	wait_event(fabric->accepted_wait, !atomic_read(&fabric->accepted_count));
	drain_workqueue(fabric->workqueue);
	drain_workqueue(fabric->upkeep);

	/*
	 * Wait for the tasks that chose a connection before it broke, or that created one in
	 * the meantime.
	 */
	percpu_down_write(&fabric->gate);
	for (node = 0; node < KDSM_MAX_NODES; node++)
		for (i = 0; i < KDSM_QUEUES; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_unmap(fabric->peers[node].queues[i]);
	percpu_up_write(&fabric->gate);
}

void kdsm_connection_free_all(struct kdsm_fabric *fabric)
{
	unsigned int node, i;

	for (node = 0; node < KDSM_MAX_NODES; node++)
		for (i = 0; i < KDSM_QUEUES; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_put(fabric->peers[node].queues[i]);
}
