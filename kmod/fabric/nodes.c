// SPDX-License-Identifier: GPL-2.0
/*
 * The peers of the fabric: adding and removing them while the others are connected. The numbers of
 * nodes have no gaps, so only the last one is removed.
 */
#include "internal.h"

static int kdsm_peer_init(struct kdsm_fabric *fabric, unsigned int node,
			  const struct sockaddr_storage *address)
{
	__be16 port = cpu_to_be16(fabric->config.port);
	struct kdsm_peer *peer = &fabric->peers[node];

	/* The peer may have been removed before: then it keeps its counters and queues */
	if (!peer->counters) {
		peer->counters = alloc_percpu(struct kdsm_counters);
		if (!peer->counters)
			return -ENOMEM;
		peer->fabric = fabric;
		peer->node = node;
		mutex_init(&peer->greeting);
		mutex_init(&peer->lock);
		/* Pairs with smp_load_acquire() in kdsm_fabric_stats_all() */
		smp_store_release(&fabric->peers_made, node + 1);
	}
	peer->address = *address;
	if (peer->address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&peer->address)->sin6_port = port;
	else
		((struct sockaddr_in *)&peer->address)->sin_port = port;
	peer->state = node == fabric->config.node ? KDSM_PEER_SELF : KDSM_PEER_IDLE;
	peer->backoff = 0;
	peer->refused_since = 0;
	WRITE_ONCE(peer->away, false);
	/* Not a peer that came up again: nothing here belongs to a former incarnation */
	mutex_lock(&peer->lock);
	peer->incarnation = 0;
	peer->untied = 0;
	WRITE_ONCE(peer->tie, 0);
	mutex_unlock(&peer->lock);
	return 0;
}

int kdsm_peers_init(struct kdsm_fabric *fabric)
{
	unsigned int node;
	int err = 0;

	for (node = 0; node < fabric->config.nodes && !err; node++)
		err = kdsm_peer_init(fabric, node, &fabric->config.addresses[node]);
	fabric->nodes = fabric->config.nodes;
	return err;
}

void kdsm_peers_exit(struct kdsm_fabric *fabric)
{
	unsigned int node;

	for (node = 0; node < KDSM_MAX_NODES; node++)
		free_percpu(fabric->peers[node].counters);
}

int kdsm_fabric_add_node(struct kdsm_fabric *fabric, const struct sockaddr_storage *address)
{
	int err = kdsm_peer_init(fabric, fabric->nodes, address);

	if (!err)
		/* Pairs with smp_load_acquire() in kdsm_check_hello() */
		smp_store_release(&fabric->nodes, fabric->nodes + 1);
	return err;
}

/* Break all connections that the peer made */
static void kdsm_peer_break_accepted(struct kdsm_peer *peer)
{
	struct kdsm_fabric *fabric = peer->fabric;
	struct kdsm_connection *connection;

	/* kdsm_stranger_add() finds the peer closed after that */
	mutex_lock(&fabric->accepted_lock);
	list_for_each_entry(connection, &fabric->strangers, link)
		if (connection->peer == peer)
			kdsm_connection_break(connection);
	list_for_each_entry(connection, &fabric->accepted, link)
		if (connection->peer == peer)
			kdsm_connection_break(connection);
	mutex_unlock(&fabric->accepted_lock);
}

void kdsm_fabric_remove_node(struct kdsm_fabric *fabric)
{
	struct kdsm_peer *peer = &fabric->peers[fabric->nodes - 1];
	struct kdsm_connection *connection;
	unsigned int i;

	WRITE_ONCE(fabric->nodes, fabric->nodes - 1);
	/* An attempt to connect that runs has ended when this task holds the connection's setup */
	mutex_lock(&peer->lock);
	mutex_unlock(&peer->lock);
	for (i = 0; i < KDSM_QUEUES; i++) {
		/* Pairs with smp_store_release() in kdsm_connection_queue(). */
		connection = smp_load_acquire(&peer->queues[i]);
		if (!connection)
			continue;
		mutex_lock(&connection->setup);
		kdsm_connection_break(connection);
		mutex_unlock(&connection->setup);
	}
	kdsm_peer_break_accepted(peer);
	kdsm_memory_forget(fabric, peer->node);
}

void kdsm_fabric_stats_all(struct kdsm_fabric *fabric, u64 *sums)
{
	/* Pairs with smp_store_release() in kdsm_peer_init() */
	unsigned int count = smp_load_acquire(&fabric->peers_made), node, i;
	u64 stats[KDSM_STAT_COUNT];

	memset(sums, 0, sizeof(stats));
	for (node = 0; node < count; node++) {
		kdsm_fabric_stats(fabric, node, stats);
		for (i = 0; i < KDSM_STAT_COUNT; i++)
			sums[i] += stats[i];
	}
}
