// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting to a peer on first use and after the connection broke. The result of each
 * attempt decides whether the peer is up or down, and when this node retries. accept.c accepts
 * connections of peers; connection.c has the states and the teardown of both kinds.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <rdma/ib_cm.h>

#include "trace.h"
#include "internal.h"

/* Timeout of rdma_cm for an address or a route, in ms */
#define KDSM_RESOLVE_MS		2000
/* Timeout of one step of an attempt, in jiffies */
#define KDSM_CONNECT_TIMEOUT	(5 * HZ)
/* Bounds of the delay between two attempts to reach a peer that is down, in jiffies */
#define KDSM_BACKOFF_MIN	(HZ / 10)
#define KDSM_BACKOFF_MAX	(3 * HZ)
/* Attempts while a peer is busy, and the pause between two of them, in ms */
#define KDSM_BUSY_TRIES		20
#define KDSM_BUSY_PAUSE		50

/*
 * Meanings of refusals. -EHOSTDOWN: the node that this node knew is gone. Other errors say nothing
 * of that node.
 */
static const struct kdsm_refusal_meaning {
	const char *text;
	int err;
} kdsm_refusal_meanings[] = {
	{ "kdsm is not up there", -EHOSTDOWN },
	[KDSM_REFUSED_CLUSTER] = { "it belongs to another cluster", -EHOSTDOWN },
	[KDSM_REFUSED_VERSION] = { "it speaks another version of the protocol", -EHOSTDOWN },
	[KDSM_REFUSED_NODE] = { "it knows this node by another number or address", -EHOSTDOWN },
	[KDSM_REFUSED_DOMAIN] = { "it uses another domain for atomics", -EHOSTDOWN },
	[KDSM_REFUSED_BUSY] = { "it is busy", -EBUSY },
	[KDSM_REFUSED_KEY] = { "it does not have the key", -ENOKEY },
	[KDSM_REFUSED_PORT] = { "it wants a source port below 1024", -EACCES },
};

static int kdsm_connection_refused(struct kdsm_connection *connection,
				   const struct rdma_cm_event *event)
{
	const struct kdsm_wire_refusal *refusal = event->param.conn.private_data;
	unsigned int reason = 0;

	if (refusal && event->param.conn.private_data_len >= sizeof(*refusal) &&
	    le32_to_cpu(refusal->magic) == KDSM_WIRE_MAGIC)
		reason = le16_to_cpu(refusal->reason);
	else if (event->status == IB_CM_REJ_CONSUMER_DEFINED)
		reason = KDSM_REFUSED_BUSY;	/* it accepted, and then took another stranger */
	if (reason >= ARRAY_SIZE(kdsm_refusal_meanings))
		reason = KDSM_REFUSED_VERSION;
	pr_info_ratelimited("kdsm: node %u refuses: %s\n", connection->peer->node,
			    kdsm_refusal_meanings[reason].text);
	return kdsm_refusal_meanings[reason].err;
}

/* Check the welcome, prepare the queue pair, and tell the peer that the connection exists. */
static int kdsm_connection_welcomed(struct kdsm_connection *connection,
				    const struct rdma_cm_event *event)
{
	const struct kdsm_wire_welcome *welcome = event->param.conn.private_data;
	struct kdsm_fabric *fabric = connection->fabric;

	if (!welcome || event->param.conn.private_data_len < sizeof(*welcome) ||
	    le32_to_cpu(welcome->magic) != KDSM_WIRE_MAGIC ||
	    le16_to_cpu(welcome->version) != KDSM_WIRE_VERSION ||
	    le16_to_cpu(welcome->node) != connection->peer->node)
		return -EPROTO;
	connection->welcome = *welcome;
	WRITE_ONCE(connection->incarnation, le64_to_cpu(welcome->incarnation));
	connection->given_up = le32_to_cpu(welcome->given_up);
	if (kdsm_secret_verify(fabric, KDSM_ROLE_ACCEPTER, &connection->hello, welcome,
			       welcome->proof)) {
		atomic64_inc(&fabric->refused.proof);
		pr_warn_ratelimited("kdsm: the host at the address of node %u does not prove that it knows the key\n",
				    connection->peer->node);
		return -EKEYREJECTED;
	}
	return kdsm_connection_start_qp(connection, NULL) ?: rdma_accept(connection->id, NULL);
}

static int kdsm_connection_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdsm_connection *connection = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		kdsm_connection_told(connection, 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		kdsm_connection_told(connection, kdsm_connection_welcomed(connection, event));
		break;
	case RDMA_CM_EVENT_REJECTED:
		kdsm_connection_told(connection, kdsm_connection_refused(connection, event));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		kdsm_connection_told(connection, -EHOSTDOWN);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* Before the proof another stranger took the place; a kdsm that ends refuses. */
		kdsm_connection_told(connection, -EBUSY);
		kdsm_connection_break(connection);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		kdsm_connection_told(connection, -EHOSTDOWN);
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
	return READ_ONCE(connection->event_status);
}

/*
 * Bind the connection to this node's address and to a port that only root can use. All connections
 * share that port, unless another service has it. The caller is a worker, so the kernel lets it.
 */
static int kdsm_connection_bind(struct kdsm_connection *connection,
				struct sockaddr_storage *from)
{
	__be16 *port = from->ss_family == AF_INET6 ?
		       &((struct sockaddr_in6 *)from)->sin6_port :
		       &((struct sockaddr_in *)from)->sin_port;
	unsigned int number;
	int err;

	err = rdma_set_reuseaddr(connection->id, 1);
	if (err)
		return err;
	for (number = KDSM_PORT_LIMIT - 1; number >= KDSM_PORT_LIMIT / 2; number--) {
		*port = cpu_to_be16(number);
		err = rdma_bind_addr(connection->id, (struct sockaddr *)from);
		if (err != -EADDRINUSE && err != -EADDRNOTAVAIL)
			break;
	}
	return err;
}

/* Find the route to the peer, and with it the device. Ends in bounded time. */
static int kdsm_connection_resolve(struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct sockaddr_storage from = fabric->peers[fabric->config.node].address;
	struct sockaddr_storage to = connection->peer->address;
	int err;

	err = kdsm_connection_bind(connection, &from);
	if (!err)
		err = rdma_resolve_addr(connection->id, NULL, (struct sockaddr *)&to,
					KDSM_RESOLVE_MS);
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
static int kdsm_connection_greet(struct kdsm_connection *connection, u32 key)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_peer *peer = connection->peer;
	const struct ib_device_attr *device = &fabric->device->attrs;
	struct kdsm_wire_hello *hello = &connection->hello;
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		.qp_num = connection->qp->qp_num,
		.responder_resources = min(device->max_qp_rd_atom, 16),
		.initiator_depth = min(device->max_qp_init_rd_atom, 16),
		.retry_count = KDSM_RETRY_COUNT,
		.rnr_retry_count = 7,	/* no limit, as the peer always reposts receives */
	};
	int err;

	*hello = (struct kdsm_wire_hello) {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
		.node = cpu_to_le16(fabric->config.node),
		.nodes = cpu_to_le16(READ_ONCE(fabric->nodes)),
		.domain = fabric->domain,
		.queue = connection->queue,
		.target = cpu_to_le16(peer->node),
		.incarnation = cpu_to_le64(fabric->incarnation),
		.given_up = cpu_to_le32(READ_ONCE(peer->given_up)),
		.key = cpu_to_le32(key),
		.nonce = cpu_to_le64(get_random_u64()),
	};
	export_uuid(hello->uuid, &fabric->config.uuid);
	err = rdma_connect(connection->id, &param);
	return err ? err : kdsm_connection_await(connection);
}

static void kdsm_connection_proved(struct kdsm_call *call)
{
	kdsm_connection_told(call->connection, call->status);
}

/*
 * Prove to the peer that this node knows the key, and wait until the peer serves this node. call
 * ends with the queue pair at the latest. Ends in bounded time.
 */
static int kdsm_connection_prove(struct kdsm_connection *connection, struct kdsm_call *call)
{
	u8 proof[KDSM_PROOF_SIZE];
	int err;

	err = kdsm_secret_prove(connection->fabric, KDSM_ROLE_ASKER, &connection->hello,
				&connection->welcome, proof);
	if (err)
		return err;
	kdsm_connection_set_state(connection, KDSM_CONNECTION_UNPROVEN);
	*call = (struct kdsm_call) { .done = kdsm_connection_proved };
	return kdsm_message_prove(connection, proof, call) ?: kdsm_connection_await(connection);
}

/* Connect with a key of the cluster. -ENOKEY: the peer does not have that key. */
static int kdsm_connection_try(struct kdsm_connection *connection, u32 key)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_call call;
	int err;

	kdsm_connection_set_state(connection, KDSM_CONNECTION_CONNECTING);
	reinit_completion(&connection->event);
	connection->event_status = 0;
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
	err = kdsm_connection_greet(connection, key) ?:
	      kdsm_connection_prove(connection, &call);
	if (err)
		goto destroy_qp;

	/*
	 * Process the greeting before anything is posted, so that no operation uses a key of
	 * the peer's former incarnation.
	 */
	connection->tie = kdsm_peer_greeted(connection->peer, connection->incarnation,
					    connection->given_up);
	err = kdsm_connection_rise(connection);
	if (!err)
		return 0;

destroy_qp:
	/* First the id: its handler uses the queue pair when a late acceptance arrives. */
	rdma_destroy_id(connection->id);
	kdsm_connection_destroy_qp(connection);
	goto gone;
destroy_id:
	rdma_destroy_id(connection->id);
gone:
	connection->id = NULL;
	fabric->up->queue_pair_gone(connection);
idle:
	kdsm_connection_set_state(connection, KDSM_CONNECTION_IDLE);
	return err;
}

/* While the nodes change to another key, a peer may have only one of two. */
static int kdsm_connection_connect(struct kdsm_connection *connection)
{
	u32 newest = kdsm_fabric_key(connection->fabric, 0);
	u32 other = kdsm_fabric_key(connection->fabric, 1);
	int err = kdsm_connection_try(connection, newest);

	return err == -ENOKEY && other ? kdsm_connection_try(connection, other) : err;
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

/* Repeat an attempt while the peer is busy, for a second at most. */
static int kdsm_connection_attempts(struct kdsm_connection *connection)
{
	unsigned int tries;
	int err;

	for (tries = 0; tries < KDSM_BUSY_TRIES; tries++) {
		err = kdsm_connection_attempt(connection);
		if (err != -EBUSY || kdsm_peer_is_closed(connection->peer))
			break;
		msleep(KDSM_BUSY_PAUSE);
	}
	return err;
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
	/* Connections to the new incarnation stay. None is up yet, as it was not greeted before. */
	for (i = 0; i < KDSM_QUEUES; i++) {
		/* Pairs with smp_store_release() in kdsm_connection_queue(). */
		old = smp_load_acquire(&peer->queues[i]);
		if (!old || READ_ONCE(old->incarnation) == READ_ONCE(peer->incarnation))
			continue;
		/* The peer is not down, so the attempt is repeated. */
		if (READ_ONCE(old->state) == KDSM_CONNECTION_UNPROVEN)
			kdsm_connection_told(old, -EBUSY);
		kdsm_connection_break(old);
	}
	kdsm_memory_forget(fabric, peer->node);
	trace_kdsm_event(KDSM_EVENT_NODE_RESTARTED, peer->node, 0, "", 0);
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
	/* A peer that gave up this node may have dropped chunks without revoking their keys. */
	if (restarted)
		kdsm_peer_restarted(peer);
	else if (untied)
		kdsm_memory_forget(fabric, peer->node);
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
	peer->refused_since = 0;
	if (peer->node == peer->fabric->config.node)
		WRITE_ONCE(peer->state, KDSM_PEER_SELF);
	else if (xchg(&peer->state, KDSM_PEER_UP) != KDSM_PEER_UP)
		trace_kdsm_event(KDSM_EVENT_NODE_UP, peer->node, 0, "", 0);
}

/*
 * Whether a failed attempt shows that the peer is down. A refusal by a kdsm that is short of
 * memory, or has other keys, does not. But anybody can send a refusal from the address of a node
 * that is down, so for some time only.
 */
static bool kdsm_peer_is_gone(struct kdsm_peer *peer, int err)
{
	if (err != -EBUSY && err != -ENOKEY && err != -EACCES)
		return true;
	if (!peer->refused_since)
		peer->refused_since = jiffies ?: 1;
	return time_after_eq(jiffies, peer->refused_since + KDSM_REPLY_TIMEOUT);
}

static void kdsm_peer_failed(struct kdsm_peer *peer, int err)
{
	struct kdsm_fabric *fabric = peer->fabric;
	bool was_down = peer->state == KDSM_PEER_DOWN;

	atomic64_inc(&peer->errors);
	peer->backoff = clamp(peer->backoff * 2, (unsigned int)KDSM_BACKOFF_MIN,
			      (unsigned int)KDSM_BACKOFF_MAX);
	WRITE_ONCE(peer->retry_at, jiffies + peer->backoff);
	if (!kdsm_peer_is_gone(peer, err))
		return;
	WRITE_ONCE(peer->state, KDSM_PEER_DOWN);
	/* A node that cannot reach itself has a problem with its device; no peer is down. */
	if (!was_down && peer->node != fabric->config.node) {
		pr_info("kdsm: node %u is down\n", peer->node);
		trace_kdsm_event(KDSM_EVENT_NODE_DOWN, peer->node, 0, "", 0);
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
	if (!connection && kdsm_peer_is_closed(peer)) {
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
	struct kdsm_connection *connection;
	int err = 0;

	/* Pairs with smp_store_release() in kdsm_connection_queue(). */
	connection = smp_load_acquire(&peer->queues[queue]);
	if (likely(connection && READ_ONCE(connection->state) == KDSM_CONNECTION_UP))
		return connection;
	if (kdsm_peer_is_closed(peer))
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
		if (kdsm_peer_is_closed(peer) ||
		    (READ_ONCE(peer->backoff) &&
		     time_before(jiffies, READ_ONCE(peer->retry_at)))) {
			err = -EHOSTDOWN;
		} else {
			if (READ_ONCE(peer->state) == KDSM_PEER_IDLE)
				WRITE_ONCE(peer->state, KDSM_PEER_CONNECTING);
			err = kdsm_connection_attempts(connection);
			if (!err)
				kdsm_peer_answered(peer);
			else if (err != -ENOMEM)	/* which says nothing of the peer */
				kdsm_peer_failed(peer, err);
		}
	}
	mutex_unlock(&connection->setup);
	if (err == -ENOMEM || err == -EBUSY)
		return ERR_PTR(-ENOMEM);
	return err ? ERR_PTR(-EHOSTDOWN) : connection;
}

struct kdsm_connection *kdsm_connection_get(struct kdsm_fabric *fabric,
					    unsigned int node)
{
	return kdsm_connection_get_queue(&fabric->peers[node],
					 raw_smp_processor_id() % fabric->queues);
}
