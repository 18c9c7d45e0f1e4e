// SPDX-License-Identifier: GPL-2.0
/*
 * Accepting connections of peers. This node compares the hello of a peer with its own
 * configuration, and refuses, counts and logs (at most once a second) a hello that differs.
 * A connection is that of a stranger until the asker has proved that it knows a key of the cluster
 * (wire.h). A stranger may send nothing else, and changes nothing that this node knows of the peer
 * that the stranger claims to be.
 *
 * kdsm_fabric_give_up() is here, too, because it breaks accepted connections. connect.c makes
 * connections to peers.
 */
#include <linux/random.h>
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

/* Only root, and kernels for it, can send from a port below KDSM_PORT_LIMIT. */
static bool kdsm_from_root(const struct sockaddr *from)
{
	__be16 port = from->sa_family == AF_INET6 ? ((struct sockaddr_in6 *)from)->sin6_port :
						    ((struct sockaddr_in *)from)->sin_port;

	return be16_to_cpu(port) < KDSM_PORT_LIMIT;
}

static void kdsm_warn_of(const struct sockaddr *from, const char *why)
{
	static DEFINE_RATELIMIT_STATE(limit, HZ, 1);

	if (__ratelimit(&limit))
		pr_warn("kdsm: refused a connection from %pISc: %s\n", from, why);
}

/* Return 0 if the hello is acceptable, or enum kdsm_refusal. Count and log a refusal. */
static int kdsm_check_hello(struct kdsm_fabric *fabric, const struct rdma_cm_id *id,
			    const struct kdsm_wire_hello *hello, unsigned int length)
{
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
	/*
	 * The numbers of nodes may differ while nodes are added and removed. Pairs with
	 * smp_store_release() in kdsm_fabric_add_node().
	 */
	if (le16_to_cpu(hello->node) >= smp_load_acquire(&fabric->nodes) ||
	    le16_to_cpu(hello->node) >= le16_to_cpu(hello->nodes) ||
	    le16_to_cpu(hello->nodes) > KDSM_MAX_NODES ||
	    le16_to_cpu(hello->target) != fabric->config.node ||
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
	if (!kdsm_from_root(from)) {
		reason = KDSM_REFUSED_PORT;
		why = "not from a port of root";
		atomic64_inc(&fabric->refused.port);
		goto refused;
	}
	if (!kdsm_secret_known(fabric, le32_to_cpu(hello->key))) {
		reason = KDSM_REFUSED_KEY;
		why = hello->key ? "other key" : "no key";
		atomic64_inc(&fabric->refused.key);
		goto refused;
	}
	return 0;

refused:
	kdsm_warn_of(from, why);
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

/* ---- strangers ---- */

static void kdsm_stranger_break(struct kdsm_connection *connection)
{
	atomic64_inc(&connection->fabric->refused.silent);
	kdsm_connection_break(connection);
}

/*
 * Break the oldest stranger that has sent no proof, and claims to be the peer unless that is NULL.
 */
static void kdsm_stranger_break_oldest(struct kdsm_fabric *fabric, struct kdsm_peer *peer)
{
	struct kdsm_connection *connection;

	list_for_each_entry(connection, &fabric->strangers, link)
		if ((!peer || connection->peer == peer) && !READ_ONCE(connection->proving) &&
		    READ_ONCE(connection->state) == KDSM_CONNECTION_UNPROVEN) {
			kdsm_stranger_break(connection);
			return;
		}
}

/*
 * Add a connection to the strangers, unless there are too many. From half of the upper bounds on,
 * the oldest stranger makes room: the true peer proves itself within a round trip.
 */
static int kdsm_stranger_add(struct kdsm_connection *connection)
{
	struct kdsm_peer *peer = connection->peer;
	struct kdsm_fabric *fabric = peer->fabric;
	int err = -EBUSY;

	mutex_lock(&fabric->accepted_lock);
	if (peer->strangers >= KDSM_STRANGERS_PEER / 2)
		kdsm_stranger_break_oldest(fabric, peer);
	else if (fabric->strangers_count >= KDSM_STRANGERS_MAX / 2)
		kdsm_stranger_break_oldest(fabric, NULL);
	if (kdsm_peer_is_closed(peer)) {
		/* The peer was removed since its hello was checked */
		err = -EHOSTDOWN;
	} else if (peer->strangers < KDSM_STRANGERS_PEER &&
		   fabric->strangers_count < KDSM_STRANGERS_MAX) {
		connection->stranger = true;
		connection->since = jiffies;
		connection->given_up = peer->given_up;
		list_add_tail(&connection->link, &fabric->strangers);
		peer->strangers++;
		fabric->strangers_count++;
		kdsm_connection_set_state(connection, KDSM_CONNECTION_UNPROVEN);
		schedule_delayed_work(&fabric->strangers_work, KDSM_STRANGER_TIMEOUT);
		err = 0;
	} else {
		atomic64_inc(&fabric->refused.silent);
	}
	mutex_unlock(&fabric->accepted_lock);
	return err;
}

void kdsm_accept_expire(struct work_struct *work)
{
	struct kdsm_fabric *fabric =
		container_of(work, struct kdsm_fabric, strangers_work.work);
	struct kdsm_connection *connection;

	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(connection, &fabric->strangers, link)
		if (time_after_eq(jiffies, connection->since + KDSM_STRANGER_TIMEOUT) &&
		    !READ_ONCE(connection->proving) &&
		    READ_ONCE(connection->state) == KDSM_CONNECTION_UNPROVEN)
			kdsm_stranger_break(connection);
	if (!list_empty(&fabric->strangers) && !READ_ONCE(fabric->stopping))
		schedule_delayed_work(&fabric->strangers_work, HZ);
	mutex_unlock(&fabric->accepted_lock);
}

/* The peer of a stranger is who it claims to be: serve it. */
static int kdsm_stranger_admit(struct kdsm_connection *connection)
{
	struct kdsm_peer *peer = connection->peer;
	struct kdsm_fabric *fabric = peer->fabric;
	int err = -ESTALE;

	mutex_lock(&fabric->accepted_lock);
	/*
	 * If this node has given up the peer meanwhile, the welcome carried an old count. If the
	 * peer has restarted meanwhile, its former incarnation must not be served.
	 */
	if (connection->given_up == peer->given_up && !kdsm_peer_is_closed(peer) &&
	    connection->incarnation == READ_ONCE(peer->incarnation) &&
	    READ_ONCE(connection->state) == KDSM_CONNECTION_UNPROVEN) {
		connection->stranger = false;
		peer->strangers--;
		fabric->strangers_count--;
		list_move_tail(&connection->link, &fabric->accepted);
		err = kdsm_connection_grant(connection);
	}
	if (!err)
		err = kdsm_connection_rise(connection);
	mutex_unlock(&fabric->accepted_lock);
	return err;
}

int kdsm_accept_proved(struct kdsm_connection *connection, const void *proof,
		       unsigned int length)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_peer *peer = connection->peer;
	int err = -EINVAL;

	if (length == KDSM_PROOF_SIZE)
		err = kdsm_secret_verify(fabric, KDSM_ROLE_ASKER, &connection->hello,
					 &connection->welcome, proof);
	if (err) {
		atomic64_inc(&fabric->refused.proof);
		/* The connection's address, as the hello was checked; its id may be gone. */
		kdsm_warn_of((struct sockaddr *)&peer->address, "wrong proof");
		return err;
	}
	kdsm_peer_greeted(peer, connection->incarnation,
			  le32_to_cpu(connection->hello.given_up));
	/* The peer is reachable: let this node connect without waiting for the back-off. */
	WRITE_ONCE(peer->retry_at, jiffies);
	kdsm_accept_replaces(peer, connection->queue);
	return kdsm_stranger_admit(connection);
}

/* ---- requests ---- */

/* Events of an accepted connection */
static int kdsm_accept_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdsm_connection *connection = id->context;

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

/* Make the welcome, with the proof that this node knows the key of the hello. */
static int kdsm_accept_welcome(struct kdsm_connection *connection)
{
	struct kdsm_fabric *fabric = connection->fabric;
	struct kdsm_wire_welcome *welcome = &connection->welcome;

	*welcome = (struct kdsm_wire_welcome) {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
		.node = cpu_to_le16(fabric->config.node),
		.incarnation = cpu_to_le64(fabric->incarnation),
		.given_up = cpu_to_le32(connection->given_up),
		.nonce = cpu_to_le64(get_random_u64()),
	};
	return kdsm_secret_prove(fabric, KDSM_ROLE_ACCEPTER, &connection->hello, welcome,
				 welcome->proof);
}

static int kdsm_accept_request(struct kdsm_fabric *fabric, struct rdma_cm_id *id,
			       const struct rdma_cm_event *event)
{
	const struct kdsm_wire_hello *hello = event->param.conn.private_data;
	const struct ib_device_attr *device = &id->device->attrs;
	struct rdma_conn_param param = {
		.private_data_len = sizeof(struct kdsm_wire_welcome),
		.responder_resources = min_t(int, event->param.conn.responder_resources,
					     min(device->max_qp_rd_atom, 16)),
		.initiator_depth = min_t(int, event->param.conn.initiator_depth,
					 min(device->max_qp_init_rd_atom, 16)),
		.retry_count = KDSM_RETRY_COUNT,
		.rnr_retry_count = 7,
	};
	struct kdsm_wire_refusal refusal = {
		.magic = cpu_to_le32(KDSM_WIRE_MAGIC),
		.version = cpu_to_le16(KDSM_WIRE_VERSION),
	};
	struct kdsm_connection *connection;
	int reason;

	reason = kdsm_check_hello(fabric, id, hello,
				  hello ? event->param.conn.private_data_len : 0);
	if (reason)
		goto reject;
	reason = KDSM_REFUSED_BUSY;
	if (READ_ONCE(fabric->stopping) || id->device != fabric->device)
		goto reject;
	connection = kdsm_connection_create(&fabric->peers[le16_to_cpu(hello->node)],
					    hello->queue, true);
	if (IS_ERR(connection))
		goto reject;
	connection->id = id;
	connection->hello = *hello;
	connection->incarnation = le64_to_cpu(hello->incarnation);
	if (kdsm_connection_create_qp(connection))
		goto put;
	if (kdsm_connection_start_qp(connection, &param))
		goto destroy_qp;
	param.qp_num = connection->qp->qp_num;
	/*
	 * Be ready before rdma_accept(), because the proof may arrive before ESTABLISHED does.
	 * From now on a teardown may destroy the queue pair.
	 */
	if (kdsm_stranger_add(connection))
		goto destroy_qp;
	id->context = connection;
	id->event_handler = kdsm_accept_event;
	param.private_data = &connection->welcome;
	if (kdsm_accept_welcome(connection) || rdma_accept(id, &param))
		kdsm_connection_break(connection);
	return 0;	/* a teardown cannot destroy the id before this handler returns */

destroy_qp:
	kdsm_connection_destroy_qp(connection);
put:
	kdsm_connection_put(connection);
reject:
	refusal.reason = cpu_to_le16(reason);
	rdma_reject(id, &refusal, sizeof(refusal), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;	/* makes rdma_cm destroy the id */
}

/* Events of the listening id */
static int kdsm_listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return kdsm_accept_request(id->context, id, event);
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
	fabric->device_is_software = id->device->ops.driver_id == RDMA_DRIVER_RXE;
	strscpy(fabric->device_name, id->device->name, sizeof(fabric->device_name));
	return 0;
}
