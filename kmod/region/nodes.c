// SPDX-License-Identifier: GPL-2.0
/*
 * Adding and removing nodes while the others run. The numbers of nodes have no gaps, so a new node
 * gets the next number, and only the last node can be removed. A region keeps the nodes of the
 * cluster at its creation: a new node takes part in later regions only, and a node that takes part
 * in a region cannot be removed.
 *
 * Node 0 sends a change to all other nodes. It adds a new node to its own table last, and removes a
 * node from its own table first, so each node knows all nodes of a region that node 0 creates. If a
 * node does not answer, tables differ: nodes refuse to add a region with a node that they do not
 * know, and the administrator repeats the change, which nodes that have made it ignore.
 */
#include <linux/bitmap.h>
#include <linux/ctype.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "internal.h"
#include "trace.h"

/* Timeout of node 0 for other nodes, in jiffies; below KDSM_REPLY_TIMEOUT of the asking node */
#define KDSM_NODES_PATIENCE	(20 * HZ)

static int kdsm_node_set_address(struct kdsm_node *node, const void *address, unsigned int length)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&node->address;
	struct sockaddr_in *in = (struct sockaddr_in *)&node->address;

	if (length == sizeof(in->sin_addr)) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, address, length);
		if (!in->sin_addr.s_addr || ipv4_is_multicast(in->sin_addr.s_addr) ||
		    ipv4_is_lbcast(in->sin_addr.s_addr))
			return -EADDRNOTAVAIL;
		return 0;
	}
	if (length != sizeof(in6->sin6_addr))
		return -EADDRNOTAVAIL;
	in6->sin6_family = AF_INET6;
	memcpy(&in6->sin6_addr, address, length);
	if (ipv6_addr_any(&in6->sin6_addr) || ipv6_addr_is_multicast(&in6->sin6_addr))
		return -EADDRNOTAVAIL;
	return 0;
}

int kdsm_node_read(struct kdsm_node *node, const void *address, unsigned int length,
		   const char *location)
{
	size_t i, end = strnlen(location, sizeof(node->location));

	if (end == sizeof(node->location))
		return -EINVAL;
	for (i = 0; i < end; i++)
		if (!isascii(location[i]) || !isgraph(location[i]))
			return -EINVAL;
	memset(node, 0, sizeof(*node));
	memcpy(node->location, location, end);
	return kdsm_node_set_address(node, address, length);
}

int kdsm_nodes_change(struct kdsm_cluster *cluster, unsigned int number,
		      const struct kdsm_node *node)
{
	struct kdsm_wire_change wire = { .node = cpu_to_le32(number), .add = !!node };
	const struct sockaddr_in6 *in6;
	const struct sockaddr_in *in;

	if (!node && number == cluster->node)
		return -EINVAL;
	if (node && node->address.ss_family == AF_INET6) {
		in6 = (const struct sockaddr_in6 *)&node->address;
		wire.length = sizeof(in6->sin6_addr);
		memcpy(wire.address, &in6->sin6_addr, wire.length);
	} else if (node) {
		in = (const struct sockaddr_in *)&node->address;
		wire.length = sizeof(in->sin_addr);
		memcpy(wire.address, &in->sin_addr, wire.length);
	}
	if (node)
		strscpy(wire.location, node->location, sizeof(wire.location));
	return kdsm_message_killable(cluster->fabric, 0, KDSM_MESSAGE_NODE, &wire, sizeof(wire));
}

/* Return 1 if the node has to be added, 0 if it is there already, or why it cannot be added. */
static int kdsm_node_addable(const struct kdsm_cluster *cluster, unsigned int number,
			     const struct kdsm_node *node)
{
	const struct kdsm_node *table = cluster->table;
	unsigned int i;

	lockdep_assert_held(&cluster->nodes_lock);
	if (number < cluster->nodes)
		return memcmp(&table[number], node, sizeof(*node)) ? -EEXIST : 0;
	if (number > cluster->nodes)
		return -EINVAL;
	if (node->address.ss_family != table[0].address.ss_family)
		return -EAFNOSUPPORT;
	for (i = 0; i < cluster->nodes; i++)
		if (!memcmp(&table[i].address, &node->address, sizeof(node->address)))
			return -EADDRINUSE;
	return 1;
}

static int kdsm_node_add(struct kdsm_cluster *cluster, unsigned int number,
			 const struct kdsm_node *node)
{
	int err = kdsm_node_addable(cluster, number, node);

	if (err <= 0)
		return err;
	cluster->table[number] = *node;
	err = kdsm_fabric_add_node(cluster->fabric, &node->address);
	if (err)
		return err;
	kdsm_directory_set_nodes(cluster, number + 1);
	pr_info("kdsm: node %u at %pISc was added\n", number, &node->address);
	trace_kdsm_event(KDSM_EVENT_NODE_ADDED, number, 0, "", 0);
	return 0;
}

/* Whether the node takes part in a region of this node */
static bool kdsm_node_is_used(struct kdsm_cluster *cluster, unsigned int number)
{
	struct kdsm_region *region;
	unsigned long id = 0;
	bool used = false;

	lockdep_assert_held(&cluster->parts_lock);
	while (!used && (region = kdsm_region_next(cluster, &id))) {
		used = number < region->nodes;
		kdsm_region_put(region);
		id++;
	}
	return used;
}

static int kdsm_node_remove(struct kdsm_cluster *cluster, unsigned int number)
{
	int err;

	lockdep_assert_held(&cluster->nodes_lock);
	if (number >= cluster->nodes)
		return 0;
	if (number + 1 < cluster->nodes || number == cluster->node)
		return -EINVAL;
	/* No region that the node takes part in is added from now on */
	mutex_lock(&cluster->parts_lock);
	err = kdsm_node_is_used(cluster, number) ? -EBUSY :
						   kdsm_directory_set_nodes(cluster, number);
	mutex_unlock(&cluster->parts_lock);
	if (err)
		return err;
	kdsm_fabric_remove_node(cluster->fabric);
	pr_info("kdsm: node %u was removed\n", number);
	trace_kdsm_event(KDSM_EVENT_NODE_REMOVED, number, 0, "", 0);
	return 0;
}

/* Tell nodes 1 to number - 1. Returns the first error. */
static int kdsm_nodes_tell(struct kdsm_cluster *cluster, unsigned int number,
			   const struct kdsm_wire_change *wire)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};

	bitmap_set(nodes, 1, number - 1);
	return kdsm_tell(cluster->fabric, nodes, KDSM_MESSAGE_NODE_TOLD, wire, sizeof(*wire),
			 KDSM_NODES_PATIENCE);
}

/* Node 0: make the change on all nodes */
static int kdsm_nodes_all(struct kdsm_cluster *cluster, unsigned int number,
			  const struct kdsm_wire_change *wire, const struct kdsm_node *node)
{
	int err;

	if (!wire->add)
		return kdsm_node_remove(cluster, number) ?: kdsm_nodes_tell(cluster, number, wire);
	err = kdsm_node_addable(cluster, number, node);
	if (err < 0)
		return err;
	return kdsm_nodes_tell(cluster, number, wire) ?: kdsm_node_add(cluster, number, node);
}

static int kdsm_nodes_serve(struct kdsm_cluster *cluster, struct kdsm_request *request, bool told)
{
	const struct kdsm_wire_change *wire = request->data;
	struct kdsm_node node = {};
	unsigned int number;
	int err = 0;

	if (request->length != sizeof(*wire) || wire->add > 1 || wire->reserved ||
	    wire->length > sizeof(wire->address))
		return -EINVAL;
	number = le32_to_cpu(wire->node);
	if (!number || number >= KDSM_MAX_NODES)
		return -EINVAL;
	if (wire->add)
		err = kdsm_node_read(&node, wire->address, wire->length, wire->location);
	if (err)
		return err;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&cluster->nodes_lock);
	if (!told)
		err = kdsm_nodes_all(cluster, number, wire, &node);
	else if (wire->add)
		err = kdsm_node_add(cluster, number, &node);
	else
		err = kdsm_node_remove(cluster, number);
	mutex_unlock(&cluster->nodes_lock);
	return err;
}

int kdsm_nodes_serve_change(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;

	return cluster->node == 0 ? kdsm_nodes_serve(cluster, request, false) : -EINVAL;
}

int kdsm_nodes_serve_told(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;

	return cluster->node != 0 && request->from == 0 ? kdsm_nodes_serve(cluster, request, true) :
							  -EINVAL;
}

/* The number of nodes shows whether the tables of two nodes agree */
int kdsm_nodes_serve_count(void *context, struct kdsm_request *request)
{
	const struct kdsm_cluster *cluster = context;

	if (request->length)
		return -EINVAL;
	*(__le32 *)request->reply = cpu_to_le32(READ_ONCE(cluster->nodes));
	request->reply_length = sizeof(__le32);
	return 0;
}
