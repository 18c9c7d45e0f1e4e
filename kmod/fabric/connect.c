// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting to a peer on first use and after the connection broke. The result of each
 * attempt decides whether the peer is up or down, and when this node retries. accept.c accepts
 * connections of peers; connection.c has the states and the teardown of both kinds.
 */
#include <linux/ratelimit.h>

#include "internal.h"

/* Timeout of rdma_cm for an address or a route, in ms */
#define KDSM_RESOLVE_MS		2000
/* Timeout of one step of an attempt, in jiffies */
#define KDSM_CONNECT_TIMEOUT	(5 * HZ)
/* Bounds of the delay between two attempts to reach a peer that is down, in jiffies */
#define KDSM_BACKOFF_MIN	(HZ / 10)
#define KDSM_BACKOFF_MAX	(3 * HZ)

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

static int kdsm_connection_welcomed(struct kdsm_connection *connection,
				    const struct rdma_cm_event *event)
{
	const struct kdsm_wire_welcome *welcome = event->param.conn.private_data;

	if (!welcome || event->param.conn.private_data_len < sizeof(*welcome) ||
	    le32_to_cpu(welcome->magic) != KDSM_WIRE_MAGIC ||
	    le16_to_cpu(welcome->version) != KDSM_WIRE_VERSION ||
	    le16_to_cpu(welcome->node) != connection->peer->node)
		return -EPROTO;
	connection->incarnation = le64_to_cpu(welcome->incarnation);
	connection->given_up = le32_to_cpu(welcome->given_up);
	return 0;
}

static int kdsm_connection_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdsm_connection *connection = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connection->event_status = 0;
		complete(&connection->event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		connection->event_status = kdsm_connection_welcomed(connection, event);
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

/* Find the route to the peer, and with it the device. Ends in bounded time. */
static int kdsm_connection_resolve(struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct sockaddr_storage from = fabric->peers[fabric->config.node].address;
	struct sockaddr_storage to = connection->peer->address;
	int err;

	/* Port 0: rdma_cm chooses the source port. */
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
	return err;
}

/* Send the hello and wait for the welcome. The queue pair exists. Ends in bounded time. */
static int kdsm_connection_greet(struct kdsm_connection *connection)
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
		.given_up = cpu_to_le32(READ_ONCE(peer->given_up)),
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.responder_resources = min(device->max_qp_rd_atom, 16),
		.initiator_depth = min(device->max_qp_init_rd_atom, 16),
		.retry_count = KDSM_RETRY_COUNT,
		.rnr_retry_count = 7,	/* no limit, as the peer always reposts receives */
	};
	int err;

	export_uuid(hello.uuid, &fabric->config.uuid);
	err = rdma_connect(connection->id, &param);
	return err ? err : kdsm_connection_await(connection);
}

static int kdsm_connection_connect(struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = connection->fabric;
	int err;

	kdsm_connection_set_state(connection, KDSM_CONNECTION_CONNECTING);
	reinit_completion(&connection->event);
	connection->id = rdma_create_id(&init_net, kdsm_connection_event, connection,
					RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(connection->id)) {
		err = PTR_ERR(connection->id);
		goto idle;
	}
	err = kdsm_connection_resolve(connection);
	if (err)
		goto destroy_id;
	err = kdsm_connection_create_qp(connection);
	if (err)
		goto destroy_id;
	err = kdsm_connection_greet(connection);
	if (err)
		goto destroy_qp;

	/*
	 * Process the greeting before anything is posted, so that no operation uses a key of
	 * the peer's former incarnation.
	 */
	connection->tie = kdsm_peer_greeted(connection->peer, connection->incarnation,
					    connection->given_up);
	kdsm_connection_set_state(connection, KDSM_CONNECTION_UP);
	/* kdsm_connection_break() ignored a disconnect event that came before the state was up. */
	if (connection->event_status)
		kdsm_connection_break(connection);
	return 0;

destroy_qp:
	kdsm_connection_destroy_qp(connection);
destroy_id:
	rdma_destroy_id(connection->id);
	connection->id = NULL;
	fabric->up->queue_pair_gone(connection);
idle:
	kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
	return err;
}

struct kdsm_attempt {
	struct work_struct work;
	struct kdsm_connection *connection;
	struct completion done;
	int err;
};

static void kdsm_attempt_work(struct work_struct *work)
{
	struct kdsm_attempt *attempt = container_of(work, struct kdsm_attempt, work);

	attempt->err = kdsm_connection_connect(attempt->connection);
	complete(&attempt->done);
}

/*
 * Connect in a worker, because the caller may be a page fault that holds mmap_lock. rdma_cm
 * takes a lock of the id to connect. ucma holds the same lock of a program's id while it
 * copies events to the program, which may fault. The ids differ, so the two tasks cannot
 * deadlock, but the locks have one lockdep class, and mmap_lock must not nest with that
 * class in both orders. The wait is bounded, because each step of an attempt has a timeout.
 */
static int kdsm_connection_attempt(struct kdsm_connection *connection)
{
	struct kdsm_attempt attempt = { .connection = connection };

	init_completion(&attempt.done);
	INIT_WORK_ONSTACK(&attempt.work, kdsm_attempt_work);
	queue_work(system_unbound_wq, &attempt.work);
	wait_for_completion(&attempt.done);
	destroy_work_on_stack(&attempt.work);
	return attempt.err;
}

/* A tie is never 0, because the incarnation is odd. Two consecutive ties of a peer differ. */
static u64 kdsm_peer_tie(u64 incarnation, u32 given_up)
{
	return (incarnation + ((u64)given_up << 32)) | 1;
}

/* The peer came up again: drop everything that belongs to its former incarnation. */
static void kdsm_peer_restarted(struct kdsm_peer *peer)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *old;
	unsigned int i;

	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(old, &fabric->accepted, link)
		if (old->peer == peer)
			kdsm_connection_break(old);
	mutex_unlock(&fabric->accepted_lock);
	/* The connection that brought the new greeting stays: its state is not up yet. */
	for (i = 0; i < KDSM_QUEUES; i++)
		if (peer->queues[i])
			kdsm_connection_break(peer->queues[i]);
	kdsm_memory_forget(fabric, peer->node);
	if (fabric->config.peer_down)
		fabric->config.peer_down(fabric->config.context, peer->node, true);
}

u64 kdsm_peer_greeted(struct kdsm_peer *peer, u64 incarnation, u32 given_up)
{
	struct kdsm_fabric *fabric = peer->fabric;
	bool restarted, untied;
	u64 now;

	/*
	 * A concurrent greeting of the same incarnation waits here, so that its connection is
	 * not up, either, before the keys of the former incarnation are forgotten and the layers
	 * above know.
	 */
	mutex_lock(&peer->greeting);
	mutex_lock(&peer->lock);
	restarted = peer->incarnation && peer->incarnation != incarnation;
	/* Greetings can be processed out of order: keep the highest count of an incarnation. */
	if (peer->incarnation != incarnation || (s32)(given_up - peer->untied) > 0)
		peer->untied = given_up;
	peer->incarnation = incarnation;
	now = kdsm_peer_tie(incarnation, peer->untied);
	untied = peer->tie && peer->tie != now;
	WRITE_ONCE(peer->tie, now);
	mutex_unlock(&peer->lock);
	WRITE_ONCE(peer->away, false);
	if (restarted)
		kdsm_peer_restarted(peer);
	/* The layers above must know before the connection with the new tie is up. */
	if (untied && fabric->config.peer_untied)
		fabric->config.peer_untied(fabric->config.context, peer->node);
	mutex_unlock(&peer->greeting);
	return kdsm_peer_tie(incarnation, given_up);
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
	/* A node that cannot reach itself has a problem with its device; no peer is down. */
	if (!was_down && peer->node != fabric->config.node) {
		pr_info("kdsm: node %u is down\n", peer->node);
		if (fabric->config.peer_down)
			fabric->config.peer_down(fabric->config.context, peer->node, false);
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
			/*
			 * Pairs with smp_load_acquire() in kdsm_connection_get_queue() and
			 * kdsm_connection_stop().
			 */
			smp_store_release(&peer->queues[queue], connection);
	}
	mutex_unlock(&peer->lock);
	return connection;
}

struct kdsm_connection *kdsm_connection_get_queue(struct kdsm_peer *peer,
						  unsigned int queue)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *connection;
	int err = 0;

	/* Pairs with smp_store_release() in kdsm_connection_queue(). */
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
			err = kdsm_connection_attempt(connection);
			if (!err)
				kdsm_peer_answered(peer);
			else if (err != -ENOMEM)	/* which says nothing of the peer */
				kdsm_peer_failed(peer);
		}
	}
	mutex_unlock(&connection->setup);
	if (err == -ENOMEM)
		return ERR_PTR(err);
	return err ? ERR_PTR(-EHOSTDOWN) : connection;
}

struct kdsm_connection *kdsm_connection_get(struct kdsm_fabric *fabric,
					    unsigned int node)
{
	return kdsm_connection_get_queue(&fabric->peers[node],
					 raw_smp_processor_id() % fabric->queues);
}
