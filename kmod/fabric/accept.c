// SPDX-License-Identifier: GPL-2.0
/*
 * Accepting connections of peers. This node compares the hello of a peer with its own
 * configuration, and refuses, counts and logs (at most once a second) a hello that differs.
 * kdsm_fabric_give_up() is here, too, because it breaks accepted connections. connect.c makes
 * connections to peers.
 */
#include <linux/ratelimit.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "internal.h"

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

/* Return 0 if the hello is acceptable, or enum kdsm_refusal. Count and log a refusal. */
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
	    hello->queue >= KDSM_QUEUES ||
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

/* The peer connects a queue again, so its end of the former connection is gone: break this end. */
static void kdsm_accept_replaces(struct kdsm_peer *peer, unsigned int queue)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *old;

	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(old, &fabric->accepted, link)
		if (old->peer == peer && old->queue == queue)
			kdsm_connection_break(old);
	mutex_unlock(&fabric->accepted_lock);
}

/*
 * Break all connections that the peer made before this node gave up the peer, or in a former
 * incarnation. Return whether there were any.
 */
static bool kdsm_accept_has_old(struct kdsm_peer *peer)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *old;
	bool found = false;

	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(old, &fabric->accepted, link)
		if (old->peer == peer && (old->given_up != peer->given_up ||
					  old->incarnation != READ_ONCE(peer->incarnation))) {
			kdsm_connection_break(old);
			found = true;
		}
	mutex_unlock(&fabric->accepted_lock);
	return found;
}

void kdsm_fabric_give_up(struct kdsm_fabric *fabric, unsigned int node, bool restarted)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct kdsm_peer *peer = &fabric->peers[node];

	if (!restarted) {
		/* The welcome of later connections carries the count; see kdsm_accept_request(). */
		mutex_lock(&fabric->accepted_lock);
		WRITE_ONCE(peer->given_up, peer->given_up + 1);
		WRITE_ONCE(peer->away, true);
		mutex_unlock(&fabric->accepted_lock);
	}
	/*
	 * The teardown removes a connection from the list after draining the queue pair. So
	 * when no such connection is listed, no operation of the peer on them is in flight.
	 */
	add_wait_queue(&fabric->accepted_wait, &wait);
	while (kdsm_accept_has_old(peer))
		wait_woken(&wait, TASK_UNINTERRUPTIBLE, MAX_SCHEDULE_TIMEOUT);
	remove_wait_queue(&fabric->accepted_wait, &wait);
}

static int kdsm_accept_request(struct kdsm_fabric *fabric, struct rdma_cm_id *id,
			       const struct rdma_cm_event *event)
{
	const struct kdsm_wire_hello *hello = event->param.conn.private_data;
	struct kdsm_wire_welcome welcome = {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
		.node = cpu_to_le16(fabric->config.node),
		.incarnation = cpu_to_le64(fabric->incarnation),
	};
	struct rdma_conn_param param = {
		.private_data = &welcome,
		.private_data_len = sizeof(welcome),
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
	struct kdsm_peer *peer;
	int reason, err;

	reason = kdsm_check_hello(fabric, id, hello,
				  hello ? event->param.conn.private_data_len : 0);
	if (reason)
		goto reject;
	reason = KDSM_REFUSED_BUSY;
	if (READ_ONCE(fabric->stopping) || id->device != fabric->device)
		goto reject;
	peer = &fabric->peers[le16_to_cpu(hello->node)];
	kdsm_peer_greeted(peer, le64_to_cpu(hello->incarnation), le32_to_cpu(hello->given_up));
	/* The peer is reachable: let this node connect without waiting for the back-off. */
	WRITE_ONCE(peer->retry_at, jiffies);
	kdsm_accept_replaces(peer, hello->queue);
	connection = kdsm_connection_create(peer, hello->queue, true);
	if (IS_ERR(connection))
		goto reject;
	connection->id = id;
	connection->incarnation = le64_to_cpu(hello->incarnation);
	err = kdsm_connection_create_qp(connection);
	if (err) {
		kdsm_connection_put(connection);
		goto reject;
	}
	id->context = connection;
	/*
	 * Set the state up before rdma_accept(), because requests may arrive before the
	 * ESTABLISHED event. A teardown cannot destroy the id before this handler returns.
	 */
	mutex_lock(&fabric->accepted_lock);
	list_add_tail(&connection->link, &fabric->accepted);
	connection->given_up = peer->given_up;
	welcome.given_up = cpu_to_le32(peer->given_up);
	kdsm_connection_set_state(connection, KDSM_CONNECTION_UP);
	mutex_unlock(&fabric->accepted_lock);
	err = rdma_accept(id, &param);
	if (err)
		kdsm_connection_break(connection);
	return 0;

reject:
	refusal.reason = cpu_to_le16(reason);
	rdma_reject(id, &refusal, sizeof(refusal), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;	/* makes rdma_cm destroy the id */
}

static int kdsm_accept_event(struct kdsm_connection *connection,
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

/* Events of the listening id, and of the ids of accepted connections */
static int kdsm_listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return kdsm_accept_request(id->context, id, event);
	/* Ignore events of ids without a queue pair: a teardown is about to destroy them. */
	if (id->qp)
		return kdsm_accept_event(id->context, event);
	return 0;
}

int kdsm_accept_bind(struct kdsm_fabric *fabric)
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
	fabric->device_is_software = id->device->ops.driver_id == RDMA_DRIVER_RXE ||
				     id->device->ops.driver_id == RDMA_DRIVER_SIW;
	strscpy(fabric->device_name, id->device->name, sizeof(fabric->device_name));
	return 0;
}
