// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable connections to peers: made on first use by rdma_cm, one for each of
 * a few CPUs, taken down as a whole when anything goes wrong, and made again.
 *
 * A connection is one way. The node that connects sends requests and one-sided
 * operations; the node that accepts only replies. So two nodes that talk both
 * ways have two connections, and no rule for crossing connects is needed.
 *
 * States:  idle -> connecting -> up -> broken -> idle   (made here; reused)
 *                  connecting -> up -> broken -> freed  (accepted)
 *
 * Who breaks a connection queues its teardown and may be in any context. The
 * teardown drains the queue pair, so that no completion comes any more, and then
 * fails what is left. Posting happens under the lock and only while up; hence
 * after the drain nothing is under way.
 */
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "compat.h"
#include "trace.h"
#include "verbs.h"

#define KDSM_POLL_BUDGET	256
#define KDSM_RESOLVE_MS		2000
#define KDSM_CONNECT_TIMEOUT	(5 * HZ)
#define KDSM_BACKOFF_MIN	(HZ / 10)
#define KDSM_BACKOFF_MAX	(3 * HZ)
/* What the receiver of a request without a buffer asks for: 0.64 ms. */
#define KDSM_RNR_TIMER		12

static void kdsm_connection_teardown(struct work_struct *work);

/* ---- completions ---- */

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
 * Takes what has completed, then arms the queue. Between the last poll and the
 * arming a completion may come: REPORT_MISSED_EVENTS tells.
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

/* Devices call this in hard interrupts, softirqs, or holding their own locks. */
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

static void kdsm_connection_qp_event(struct ib_event *event, void *context)
{
	struct kdsm_connection *connection = context;

	if (event->event == IB_EVENT_QP_FATAL ||
	    event->event == IB_EVENT_QP_ACCESS_ERR ||
	    event->event == IB_EVENT_QP_REQ_ERR)
		kdsm_connection_break(connection);
}

/* ---- making and unmaking of one ---- */

static struct kdsm_connection *
kdsm_connection_create(struct kdsm_peer *peer, unsigned int queue, bool accepted)
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
	kdsm_message_setup(connection);
	if (accepted)
		atomic_inc(&fabric->accepted_count);
	return connection;

free_buffers:
	kfree(connection->buffers);
free:
	kfree(connection);
	return ERR_PTR(-ENOMEM);
}

/* Give up what the device has of it. */
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

/* The queue pair of a connection whose id has a device. */
static int kdsm_connection_create_qp(struct kdsm_connection *connection)
{
	const unsigned int sends = KDSM_SEND_ROOM + KDSM_CREDITS + 8;
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
	err = kdsm_message_post_receives(connection);
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

static void kdsm_connection_destroy_qp(struct kdsm_connection *connection)
{
	ib_drain_qp(connection->qp);
	rdma_destroy_qp(connection->id);

	/* A tasklet may be scheduled, but must not touch the queue any more. */
	spin_lock_bh(&connection->poll_lock);
	connection->cq_dead = true;
	spin_unlock_bh(&connection->poll_lock);
	ib_destroy_cq(connection->cq);
	tasklet_kill(&connection->tasklet);
}

static void kdsm_connection_set_state(struct kdsm_connection *connection,
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
	/* The reference is the teardown's. */
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
	kdsm_operation_fail(connection);
	kdsm_message_fail(connection);

	if (connection->accepted) {
		mutex_lock(&fabric->accepted_lock);
		list_del_init(&connection->link);
		mutex_unlock(&fabric->accepted_lock);
		kdsm_connection_put(connection);	/* of the list */
	} else {
		kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
		if (!READ_ONCE(fabric->stopping)) {
			/* Is it the connection, or the peer? An attempt tells. */
			atomic64_inc(&peer->errors);
			WRITE_ONCE(peer->state, KDSM_PEER_IDLE);
			kdsm_connection_get(fabric, peer->node);
		}
	}
	kdsm_connection_put(connection);	/* of the work */
}

/* ---- connecting ---- */

static const char *kdsm_refusal_text(const struct rdma_cm_event *event)
{
	const struct kdsm_wire_refusal *refusal = event->param.conn.private_data;

	if (!refusal || event->param.conn.private_data_len < sizeof(*refusal) ||
	    le32_to_cpu(refusal->magic) != KDSM_WIRE_MAGIC)
		return "kdsm is not up there";
	switch (le16_to_cpu(refusal->reason)) {
	case KDSM_REFUSED_CLUSTER:
		return "it belongs to another cluster";
	case KDSM_REFUSED_VERSION:
		return "it speaks another version of the protocol";
	case KDSM_REFUSED_NODE:
		return "it knows this node by another number or address";
	case KDSM_REFUSED_DOMAIN:
		return "it uses another domain for atomics";
	default:
		return "it is busy";
	}
}

static int kdsm_connection_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdsm_connection *connection = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		connection->event_status = 0;
		complete(&connection->event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		pr_info_ratelimited("kdsm: node %u refuses: %s\n",
				    connection->peer->node, kdsm_refusal_text(event));
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		connection->event_status = -EHOSTDOWN;
		complete(&connection->event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		connection->event_status = -EHOSTDOWN;
		complete(&connection->event);
		kdsm_connection_break(connection);
		break;
	default:
		break;
	}
	return 0;
}

static int kdsm_connection_await(struct kdsm_connection *connection)
{
	if (!wait_for_completion_timeout(&connection->event, KDSM_CONNECT_TIMEOUT))
		return -EHOSTDOWN;
	return connection->event_status;
}

static int kdsm_connection_connect(struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_peer *peer = connection->peer;
	const struct ib_device_attr *device = &fabric->device->attrs;
	struct kdsm_wire_hello hello = {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
		.node = cpu_to_le16(fabric->config.node),
		.nodes = cpu_to_le16(fabric->config.nodes),
		.domain = fabric->domain,
		.queue = connection->queue,
		.target = cpu_to_le32(peer->node),
		.incarnation = cpu_to_le64(fabric->incarnation),
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.responder_resources = min(device->max_qp_rd_atom, 16),
		.initiator_depth = min(device->max_qp_init_rd_atom, 16),
		.retry_count = KDSM_RETRY_COUNT,
		.rnr_retry_count = 7,	/* for ever: receivers always come back */
	};
	struct sockaddr_storage from = fabric->peers[fabric->config.node].address;
	struct sockaddr_storage to = peer->address;
	int err;

	export_uuid(hello.uuid, &fabric->config.uuid);
	kdsm_connection_set_state(connection, KDSM_CONNECTION_CONNECTING);
	reinit_completion(&connection->event);
	connection->id = rdma_create_id(&init_net, kdsm_connection_event, connection,
					RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(connection->id)) {
		err = PTR_ERR(connection->id);
		goto idle;
	}
	/* The source has to have a port of its own. */
	if (from.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&from)->sin6_port = 0;
	else
		((struct sockaddr_in *)&from)->sin_port = 0;

	err = rdma_resolve_addr(connection->id, (struct sockaddr *)&from,
				(struct sockaddr *)&to, KDSM_RESOLVE_MS);
	if (!err)
		err = kdsm_connection_await(connection);
	if (!err)
		err = rdma_resolve_route(connection->id, KDSM_RESOLVE_MS);
	if (!err)
		err = kdsm_connection_await(connection);
	if (!err && connection->id->device != fabric->device)
		err = -ENODEV;
	if (err)
		goto destroy_id;
	err = kdsm_connection_create_qp(connection);
	if (err)
		goto destroy_id;
	err = rdma_connect(connection->id, &param);
	if (!err)
		err = kdsm_connection_await(connection);
	if (err)
		goto destroy_qp;

	kdsm_connection_set_state(connection, KDSM_CONNECTION_UP);
	/* A disconnect that came before the state was up broke nothing. */
	if (connection->event_status)
		kdsm_connection_break(connection);
	return 0;

destroy_qp:
	kdsm_connection_destroy_qp(connection);
destroy_id:
	rdma_destroy_id(connection->id);
	connection->id = NULL;
	kdsm_message_fail(connection);
idle:
	kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
	return err;
}

static void kdsm_peer_answered(struct kdsm_peer *peer)
{
	atomic64_inc(&peer->connects);
	peer->backoff = 0;
	WRITE_ONCE(peer->state, peer->node == peer->fabric->config.node ?
		   KDSM_PEER_SELF : KDSM_PEER_UP);
}

static void kdsm_peer_failed(struct kdsm_peer *peer)
{
	struct kdsm_fabric *fabric = peer->fabric;
	bool was_down = peer->state == KDSM_PEER_DOWN;

	atomic64_inc(&peer->errors);
	peer->backoff = clamp(peer->backoff * 2, (unsigned int)KDSM_BACKOFF_MIN,
			      (unsigned int)KDSM_BACKOFF_MAX);
	peer->retry_at = jiffies + peer->backoff;
	WRITE_ONCE(peer->state, KDSM_PEER_DOWN);
	if (!was_down) {
		pr_info("kdsm: node %u is down\n", peer->node);
		if (fabric->config.peer_down)
			fabric->config.peer_down(fabric->config.context, peer->node);
	}
}

static struct kdsm_connection *kdsm_connection_queue(struct kdsm_peer *peer,
						     unsigned int queue)
{
	struct kdsm_connection *connection;

	mutex_lock(&peer->lock);
	connection = peer->queues[queue];
	if (!connection && READ_ONCE(peer->fabric->stopping)) {
		connection = ERR_PTR(-EHOSTDOWN);
	} else if (!connection) {
		connection = kdsm_connection_create(peer, queue, false);
		if (!IS_ERR(connection))
			/* Pairs with the acquire in kdsm_connection_get(). */
			smp_store_release(&peer->queues[queue], connection);
	}
	mutex_unlock(&peer->lock);
	return connection;
}

struct kdsm_connection *kdsm_connection_get(struct kdsm_fabric *fabric,
					    unsigned int node)
{
	struct kdsm_peer *peer = &fabric->peers[node];
	unsigned int queue = raw_smp_processor_id() % fabric->queues;
	struct kdsm_connection *connection;
	int err = 0;

	/* Pairs with the release in kdsm_connection_queue(). */
	connection = smp_load_acquire(&peer->queues[queue]);
	if (likely(connection && READ_ONCE(connection->state) == KDSM_CONNECTION_UP))
		return connection;
	if (READ_ONCE(fabric->stopping))
		return ERR_PTR(-EHOSTDOWN);
	if (!connection) {
		connection = kdsm_connection_queue(peer, queue);
		if (IS_ERR(connection))
			return connection;
	}

	mutex_lock(&connection->setup);
	wait_event(connection->wait,
		   READ_ONCE(connection->state) != KDSM_CONNECTION_BROKEN);
	if (READ_ONCE(connection->state) != KDSM_CONNECTION_UP) {
		if (READ_ONCE(fabric->stopping) ||
		    (READ_ONCE(peer->state) == KDSM_PEER_DOWN &&
		     time_before(jiffies, READ_ONCE(peer->retry_at)))) {
			err = -EHOSTDOWN;
		} else {
			if (READ_ONCE(peer->state) == KDSM_PEER_IDLE)
				WRITE_ONCE(peer->state, KDSM_PEER_CONNECTING);
			err = kdsm_connection_connect(connection);
			if (err)
				kdsm_peer_failed(peer);
			else
				kdsm_peer_answered(peer);
		}
	}
	mutex_unlock(&connection->setup);
	if (err == -ENOMEM)
		return ERR_PTR(err);
	return err ? ERR_PTR(-EHOSTDOWN) : connection;
}

/* ---- accepting ---- */

static bool kdsm_same_host(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/* Who asks, and may it? 0 or enum kdsm_refusal; counts what it refuses. */
static int kdsm_check_hello(struct kdsm_fabric *fabric, const struct rdma_cm_id *id,
			    const struct kdsm_wire_hello *hello, unsigned int length)
{
	static DEFINE_RATELIMIT_STATE(limit, HZ, 1);
	const struct sockaddr *from = (struct sockaddr *)&id->route.addr.dst_addr;
	const char *why;
	int reason;
	uuid_t uuid;

	if (length < sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != KDSM_WIRE_MAGIC) {
		reason = KDSM_REFUSED_CLUSTER;
		why = "no kdsm node";
		atomic64_inc(&fabric->refused.cluster);
		goto refused;
	}
	if (le16_to_cpu(hello->version) != KDSM_WIRE_VERSION) {
		reason = KDSM_REFUSED_VERSION;
		why = "other version of the protocol";
		atomic64_inc(&fabric->refused.version);
		goto refused;
	}
	import_uuid(&uuid, hello->uuid);
	if (!uuid_equal(&uuid, &fabric->config.uuid)) {
		reason = KDSM_REFUSED_CLUSTER;
		why = "other cluster";
		atomic64_inc(&fabric->refused.cluster);
		goto refused;
	}
	if (le16_to_cpu(hello->node) >= fabric->config.nodes ||
	    le16_to_cpu(hello->nodes) != fabric->config.nodes ||
	    le32_to_cpu(hello->target) != fabric->config.node ||
	    hello->queue >= KDSM_QUEUES_MAX ||
	    !kdsm_same_host(from, &fabric->peers[le16_to_cpu(hello->node)].address)) {
		reason = KDSM_REFUSED_NODE;
		why = "unknown node, or not at its address";
		atomic64_inc(&fabric->refused.node);
		goto refused;
	}
	if (hello->domain != fabric->domain) {
		reason = KDSM_REFUSED_DOMAIN;
		why = "other domain for atomics";
		atomic64_inc(&fabric->refused.cluster);
		goto refused;
	}
	return 0;

refused:
	if (__ratelimit(&limit))
		pr_warn("kdsm: refused a connection from %pISc: %s\n", from, why);
	return reason;
}

/*
 * A peer connects. If it came up anew, what we knew of its former life is void;
 * and a queue that it had before and has now again is dead at its end.
 */
static void kdsm_peer_greeted(struct kdsm_peer *peer, u64 incarnation,
			      unsigned int queue)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *old;
	bool anew;

	mutex_lock(&peer->lock);
	anew = peer->incarnation && peer->incarnation != incarnation;
	peer->incarnation = incarnation;
	/* It is there: no need to wait for the next attempt. */
	WRITE_ONCE(peer->retry_at, jiffies);
	mutex_unlock(&peer->lock);

	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(old, &fabric->accepted, link)
		if (old->peer == peer && (anew || old->queue == queue))
			kdsm_connection_break(old);
	mutex_unlock(&fabric->accepted_lock);

	if (anew) {
		unsigned int i;

		kdsm_memory_forget(fabric, peer->node);
		for (i = 0; i < fabric->queues; i++)
			if (peer->queues[i])
				kdsm_connection_break(peer->queues[i]);
		if (fabric->config.peer_down)
			fabric->config.peer_down(fabric->config.context, peer->node);
	}
}

static int kdsm_connection_request(struct kdsm_fabric *fabric, struct rdma_cm_id *id,
				   const struct rdma_cm_event *event)
{
	const struct kdsm_wire_hello *hello = event->param.conn.private_data;
	struct rdma_conn_param param = {
		.responder_resources = event->param.conn.responder_resources,
		.initiator_depth = event->param.conn.initiator_depth,
		.retry_count = KDSM_RETRY_COUNT,
		.rnr_retry_count = 7,
	};
	struct kdsm_wire_refusal refusal = {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
	};
	struct kdsm_connection *connection;
	int reason, err;

	reason = kdsm_check_hello(fabric, id, hello,
				  hello ? event->param.conn.private_data_len : 0);
	if (reason)
		goto reject;
	reason = KDSM_REFUSED_BUSY;
	if (READ_ONCE(fabric->stopping) || id->device != fabric->device)
		goto reject;
	kdsm_peer_greeted(&fabric->peers[le16_to_cpu(hello->node)],
			  le64_to_cpu(hello->incarnation), hello->queue);
	connection = kdsm_connection_create(&fabric->peers[le16_to_cpu(hello->node)],
					    hello->queue, true);
	if (IS_ERR(connection))
		goto reject;
	connection->id = id;
	err = kdsm_connection_create_qp(connection);
	if (err) {
		kdsm_connection_put(connection);
		goto reject;
	}
	id->context = connection;
	/*
	 * Up before accept: requests may come before the event that says so. The
	 * teardown cannot destroy the id before this handler returns.
	 */
	mutex_lock(&fabric->accepted_lock);
	list_add_tail(&connection->link, &fabric->accepted);
	mutex_unlock(&fabric->accepted_lock);
	kdsm_connection_set_state(connection, KDSM_CONNECTION_UP);
	err = rdma_accept(id, &param);
	if (err)
		kdsm_connection_break(connection);
	return 0;

reject:
	refusal.reason = cpu_to_le16(reason);
	rdma_reject(id, &refusal, sizeof(refusal), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;	/* rdma_cm destroys the id */
}

static int kdsm_accepted_event(struct kdsm_connection *connection,
			       const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		kdsm_connection_break(connection);
		break;
	default:
		break;
	}
	return 0;
}

/* Events of the listening id, and of the ids that it brought forth. */
static int kdsm_listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return kdsm_connection_request(id->context, id, event);
	/* Ids whose queue pair is gone are about to be destroyed. */
	if (id->qp)
		return kdsm_accepted_event(id->context, event);
	return 0;
}

int kdsm_connection_bind(struct kdsm_fabric *fabric)
{
	struct sockaddr *address =
		(struct sockaddr *)&fabric->peers[fabric->config.node].address;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, kdsm_listener_event, fabric, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, address);
	if (!err && !id->device)
		err = -ENODEV;
	if (err) {
		rdma_destroy_id(id);
		return err == -EADDRNOTAVAIL ? -ENODEV : err;
	}
	fabric->listener = id;
	fabric->device = id->device;
	strscpy(fabric->device_name, id->device->name, sizeof(fabric->device_name));
	return 0;
}

void kdsm_connection_stop(struct kdsm_fabric *fabric)
{
	struct kdsm_connection *connection;
	unsigned int node, i;

	/* Nobody connects from now on; who is at it has ended when we have setup. */
	WRITE_ONCE(fabric->stopping, true);
	rdma_destroy_id(fabric->listener);
	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < fabric->queues; i++) {
			/* Pairs with the release in kdsm_connection_queue(). */
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

	/* Who found a connection before it went, or made one meanwhile, is out. */
	percpu_down_write(&fabric->gate);
	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < fabric->queues; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_unmap(fabric->peers[node].queues[i]);
	percpu_up_write(&fabric->gate);
}

void kdsm_connection_free_all(struct kdsm_fabric *fabric)
{
	unsigned int node, i;

	for (node = 0; node < fabric->config.nodes; node++)
		for (i = 0; i < fabric->queues; i++)
			if (fabric->peers[node].queues[i])
				kdsm_connection_put(fabric->peers[node].queues[i]);
}
