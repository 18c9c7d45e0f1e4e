// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that are added and removed while the others run. Nodes are numbered without gaps, so only
 * the last one can be removed, and a new one comes behind it. A region keeps the nodes that there
 * were when it was created: a new node takes part in later regions only, and a node is removed
 * only if it takes part in none.
 *
 * Node 0 tells all other nodes. It counts on a new node only after all others know it, and on a
 * node that leaves only until it begins to tell. If a node does not answer, tables differ: then a
 * region that needs the node cannot be created, and the caller repeats the change, which nodes that
 * have made it ignore.
 */
#include <linux/bitmap.h>
#include <linux/ctype.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>

#include "internal.h"
#include "trace.h"

/* Timeout of node 0 for other nodes, in jiffies; below KDSM_REPLY_TIMEOUT of the asking node */
#define KDSM_NODES_PATIENCE	(20 * HZ)

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
		wire.family = 6;
		memcpy(wire.address, &in6->sin6_addr, sizeof(in6->sin6_addr));
	} else if (node) {
		in = (const struct sockaddr_in *)&node->address;
		wire.family = 4;
		memcpy(wire.address, &in->sin_addr, sizeof(in->sin_addr));
	}
	if (node)
		strscpy(wire.location, node->location, sizeof(wire.location));
	return kdsm_message_killable(cluster->fabric, 0, KDSM_MESSAGE_NODE, &wire, sizeof(wire));
}

/* Check the description of a node that comes from another one */
static int kdsm_node_read(const struct kdsm_wire_change *wire, struct kdsm_node *node)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&node->address;
	struct sockaddr_in *in = (struct sockaddr_in *)&node->address;
	size_t length = strnlen(wire->location, sizeof(wire->location)), i;

	if (length == sizeof(wire->location))
		return -EINVAL;
	for (i = 0; i < length; i++)
		if (!isascii(wire->location[i]) || !isgraph(wire->location[i]))
			return -EINVAL;
	memset(node, 0, sizeof(*node));
	strscpy(node->location, wire->location, sizeof(node->location));
	switch (wire->family) {
	case 4:
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, wire->address, sizeof(in->sin_addr));
		return in->sin_addr.s_addr ? 0 : -EINVAL;
	case 6:
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, wire->address, sizeof(in6->sin6_addr));
		return 0;
	}
	return -EINVAL;
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
	int *statuses = kvcalloc(number, sizeof(*statuses), GFP_KERNEL), err;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	unsigned int i;

	if (!statuses)
		return -ENOMEM;
	bitmap_set(nodes, 1, number - 1);
	err = kdsm_broadcast(cluster->fabric, nodes, KDSM_MESSAGE_NODE_TOLD, wire, sizeof(*wire),
			     statuses, KDSM_NODES_PATIENCE, TASK_UNINTERRUPTIBLE);
	if (err == -ETIMEDOUT)
		err = 0;	/* the statuses tell */
	for (i = 1; i < number && !err; i++)
		err = kdsm_message_was_heard(statuses[i]) ? statuses[i] : -EHOSTDOWN;
	kvfree(statuses);
	return err;
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

	if (request->length != sizeof(*wire) || wire->add > 1 || wire->reserved)
		return -EINVAL;
	number = le32_to_cpu(wire->node);
	if (!number || number >= KDSM_MAX_NODES)
		return -EINVAL;
	if (wire->add)
		err = kdsm_node_read(wire, &node);
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
