// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family "kdsm" for administration and reports. This file translates
 * between attributes and calls of the layers below, netlink_nodes.c does so for reports of other
 * nodes, and netlink_events.c sends events; <kdsm/uapi_netlink.h> documents the
 * commands.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "compat.h"
#include "netlink.h"
#include "region/region.h"

static struct netlink_range_validation kdsm_lease_range = { .max = KDSM_LEASE_MAX };

static const struct nla_policy kdsm_policy[KDSM_A_MAX + 1] = {
	[KDSM_A_CLUSTER] = { .type = NLA_NUL_STRING, .len = KDSM_NAME_SIZE - 1 },
	[KDSM_A_UUID] = NLA_POLICY_EXACT_LEN(KDSM_UUID_SIZE),
	[KDSM_A_NODE] = NLA_POLICY_MAX(NLA_U32, KDSM_MAX_NODES - 1),
	[KDSM_A_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[KDSM_A_DOMAIN] = NLA_POLICY_MAX(NLA_U32, KDSM_DOMAIN_GLOB),
	[KDSM_A_NODES] = { .type = NLA_NESTED },
	[KDSM_A_NODE_ID] = NLA_POLICY_MAX(NLA_U32, KDSM_MAX_NODES - 1),
	[KDSM_A_NODE_ADDRESS] = NLA_POLICY_RANGE(NLA_BINARY, sizeof(struct in_addr),
						 sizeof(struct in6_addr)),
	[KDSM_A_NODE_LOCATION] = { .type = NLA_NUL_STRING, .len = KDSM_LOCATION_SIZE - 1 },
	[KDSM_A_REGION_NAME] = { .type = NLA_NUL_STRING, .len = KDSM_NAME_SIZE - 1 },
	[KDSM_A_REGION_LEASE] = NLA_POLICY_FULL_RANGE(NLA_U64, &kdsm_lease_range),
	[KDSM_A_REGION_LIMIT] = { .type = NLA_U64 },
	[KDSM_A_INSECURE] = { .type = NLA_FLAG },
	[KDSM_A_TIMEOUT] = NLA_POLICY_RANGE(NLA_U32, 1, KDSM_TIMEOUT_MAX),
};

static const struct nla_policy kdsm_node_policy[KDSM_A_NODE_LOCATION + 1] = {
	[KDSM_A_NODE_ID] = NLA_POLICY_MAX(NLA_U32, KDSM_MAX_NODES - 1),
	[KDSM_A_NODE_ADDRESS] = NLA_POLICY_RANGE(NLA_BINARY, sizeof(struct in_addr),
						 sizeof(struct in6_addr)),
	[KDSM_A_NODE_LOCATION] = { .type = NLA_NUL_STRING, .len = KDSM_LOCATION_SIZE - 1 },
};

/* ---- up ---- */

/* Take the address and the location of a node */
static int kdsm_take_node(struct nlattr **attrs, struct kdsm_node *node,
			  struct netlink_ext_ack *extack)
{
	const struct nlattr *address = attrs[KDSM_A_NODE_ADDRESS];
	char location[KDSM_LOCATION_SIZE] = "";
	int err = -EADDRNOTAVAIL;

	if (attrs[KDSM_A_NODE_LOCATION])
		nla_strscpy(location, attrs[KDSM_A_NODE_LOCATION], sizeof(location));
	if (address)
		err = kdsm_node_read(node, nla_data(address), nla_len(address), location);
	if (err == -EADDRNOTAVAIL)
		NL_SET_ERR_MSG(extack, "a node needs the IPv4 or IPv6 address of one machine");
	else if (err)
		NL_SET_ERR_MSG(extack, "a location must be printable");
	return err ? -EINVAL : 0;
}

static int kdsm_parse_node(const struct nlattr *attr, unsigned int expected,
			   struct kdsm_node *node, struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[KDSM_A_NODE_LOCATION + 1];
	int err;

	err = nla_parse_nested(attrs, KDSM_A_NODE_LOCATION, attr, kdsm_node_policy, extack);
	if (err)
		return err;
	if (!attrs[KDSM_A_NODE_ID] || nla_get_u32(attrs[KDSM_A_NODE_ID]) != expected) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "nodes must count from 0 without gaps");
		return -EINVAL;
	}
	return kdsm_take_node(attrs, node, extack);
}

/* Whether all addresses differ. With equal ones, this node would connect to the wrong peer. */
static bool kdsm_addresses_differ(const struct kdsm_cluster_config *config)
{
	unsigned int i, j;

	for (i = 1; i < config->nodes; i++)
		for (j = 0; j < i; j++)
			if (!memcmp(&config->table[i].address, &config->table[j].address,
				    sizeof(config->table[i].address)))
				return false;
	return true;
}

static int kdsm_parse_nodes(const struct nlattr *nest, struct kdsm_cluster_config *config,
			    struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	unsigned int count = 0;
	int err, rem;

	nla_for_each_nested(attr, nest, rem) {
		if (nla_type(attr) != KDSM_A_NODE_ENTRY) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "not a node");
			return -EINVAL;
		}
		count++;
	}
	if (!count || count > KDSM_MAX_NODES) {
		NL_SET_ERR_MSG(extack, "a cluster has 1 to 1024 nodes");
		return -EINVAL;
	}
	if (config->node >= count) {
		NL_SET_ERR_MSG(extack, "this node is not in the table of nodes");
		return -EINVAL;
	}
	config->table = kvcalloc(KDSM_MAX_NODES, sizeof(*config->table), GFP_KERNEL);
	if (!config->table)
		return -ENOMEM;
	nla_for_each_nested(attr, nest, rem) {
		err = kdsm_parse_node(attr, config->nodes, &config->table[config->nodes],
				      extack);
		if (err)
			return err;
		config->nodes++;
	}
	if (!kdsm_addresses_differ(config)) {
		NL_SET_ERR_MSG(extack, "two nodes have the same address");
		return -EINVAL;
	}
	return 0;
}

static void kdsm_explain_key(struct netlink_ext_ack *extack, int err)
{
	switch (err) {
	case -ENOKEY:
	case -EKEYEXPIRED:
	case -EKEYREVOKED:
		NL_SET_ERR_MSG(extack, "the keyrings of the caller have no key of the cluster");
		break;
	case -EKEYREJECTED:
		NL_SET_ERR_MSG(extack, "the key of the cluster does not have 32 bytes");
		break;
	case -ENOENT:
		NL_SET_ERR_MSG(extack, "the kernel lacks hmac(sha256)");
		break;
	}
}

static int kdsm_do_up(struct sk_buff *skb, struct genl_info *info)
{
	struct kdsm_cluster_config config = { .port = KDSM_DEFAULT_PORT };
	struct nlattr **attrs = info->attrs;
	int err;

	if (!attrs[KDSM_A_CLUSTER] || !attrs[KDSM_A_UUID] || !attrs[KDSM_A_NODE] ||
	    !attrs[KDSM_A_NODES]) {
		NL_SET_ERR_MSG(info->extack, "name, uuid, node or table of nodes is missing");
		return -EINVAL;
	}
	nla_strscpy(config.name, attrs[KDSM_A_CLUSTER], sizeof(config.name));
	if (!kdsm_region_name_valid(config.name)) {
		NL_SET_ERR_MSG(info->extack, "the cluster's name is empty or not printable");
		return -EINVAL;
	}
	import_uuid(&config.uuid, nla_data(attrs[KDSM_A_UUID]));
	config.node = nla_get_u32(attrs[KDSM_A_NODE]);
	if (attrs[KDSM_A_PORT])
		config.port = nla_get_u16(attrs[KDSM_A_PORT]);
	if (attrs[KDSM_A_DOMAIN])
		config.domain = nla_get_u32(attrs[KDSM_A_DOMAIN]);
	config.insecure = nla_get_flag(attrs[KDSM_A_INSECURE]);
	err = kdsm_parse_nodes(attrs[KDSM_A_NODES], &config, info->extack);
	if (!err)
		err = kdsm_cluster_up(&config);
	kvfree(config.table);
	switch (err) {
	case -EALREADY:
		NL_SET_ERR_MSG(info->extack, "a cluster is up already");
		break;
	case -ENODEV:
		NL_SET_ERR_MSG(info->extack, "no RDMA device has the address of this node");
		break;
	case -EADDRINUSE:
		NL_SET_ERR_MSG(info->extack, "the port is in use");
		break;
	case -EOPNOTSUPP:
		NL_SET_ERR_MSG(info->extack,
			       "the RDMA device lacks the atomics or memory registration asked for");
		break;
	}
	kdsm_explain_key(info->extack, err);
	return err;
}

/* ---- the other commands ---- */

static int kdsm_do_down(struct sk_buff *skb, struct genl_info *info)
{
	int err = kdsm_cluster_down();

	if (err == -EBUSY)
		NL_SET_ERR_MSG(info->extack, "programs on this node have regions open");
	else if (err == -ENETDOWN)
		NL_SET_ERR_MSG(info->extack, "no cluster is up");
	return err;
}

struct kdsm_cluster *kdsm_cluster_get_for(struct netlink_ext_ack *extack)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get();

	if (!cluster)
		NL_SET_ERR_MSG(extack, "no cluster is up");
	return cluster;
}

static int kdsm_do_probe(struct sk_buff *skb, struct genl_info *info)
{
	struct kdsm_cluster *cluster;
	__le32 nodes = 0;
	unsigned int length = sizeof(nodes), node;
	int err = -EINVAL;

	cluster = kdsm_cluster_get_for(info->extack);
	if (!cluster)
		return -ENETDOWN;
	if (!info->attrs[KDSM_A_NODE_ID]) {
		NL_SET_ERR_MSG(info->extack, "which node?");
		goto put;
	}
	node = nla_get_u32(info->attrs[KDSM_A_NODE_ID]);
	if (node >= READ_ONCE(cluster->nodes)) {
		NL_SET_ERR_MSG(info->extack, "no such node");
		goto put;
	}
	err = kdsm_message(cluster->fabric, node, KDSM_MESSAGE_NODE_COUNT, NULL, 0, &nodes,
			   &length);
	if (err) {
		NL_SET_ERR_MSG(info->extack, "the node cannot be reached");
	} else if (length != sizeof(nodes) || le32_to_cpu(nodes) != READ_ONCE(cluster->nodes)) {
		NL_SET_ERR_MSG(info->extack, "the node has another table of nodes");
		err = -EBADE;
	}
put:
	kdsm_cluster_put(cluster);
	return err;
}

static void kdsm_explain_nodes(struct netlink_ext_ack *extack, int err, bool add)
{
	switch (err) {
	case -EINVAL:
		if (add)
			NL_SET_ERR_MSG(extack, "nodes have numbers without gaps: add the next one");
		else
			NL_SET_ERR_MSG(extack,
				       "only the last node can be removed, by another node, and node 0 stays");
		break;
	case -EEXIST:
		NL_SET_ERR_MSG(extack, "the node exists, with another address or location");
		break;
	case -EADDRINUSE:
		NL_SET_ERR_MSG(extack, "another node has the address");
		break;
	case -EAFNOSUPPORT:
		NL_SET_ERR_MSG(extack, "the other nodes have addresses of another kind");
		break;
	case -EBUSY:
		NL_SET_ERR_MSG(extack, "the node takes part in a region");
		break;
	case -EHOSTDOWN:
	case -EIO:
	case -ETIMEDOUT:
		NL_SET_ERR_MSG(extack,
			       "a node cannot be reached: repeat the command when all nodes are back");
		break;
	}
}

static int kdsm_do_node_change(struct genl_info *info, bool add)
{
	struct kdsm_cluster *cluster;
	struct kdsm_node node = {};
	unsigned int number;
	int err = 0;

	if (!info->attrs[KDSM_A_NODE_ID]) {
		NL_SET_ERR_MSG(info->extack, "which node?");
		return -EINVAL;
	}
	number = nla_get_u32(info->attrs[KDSM_A_NODE_ID]);
	if (add)
		err = kdsm_take_node(info->attrs, &node, info->extack);
	if (err)
		return err;
	cluster = kdsm_cluster_get_for(info->extack);
	if (!cluster)
		return -ENETDOWN;
	err = kdsm_nodes_change(cluster, number, add ? &node : NULL);
	kdsm_cluster_put(cluster);
	kdsm_explain_nodes(info->extack, err, add);
	return err;
}

static int kdsm_do_node_add(struct sk_buff *skb, struct genl_info *info)
{
	return kdsm_do_node_change(info, true);
}

static int kdsm_do_node_remove(struct sk_buff *skb, struct genl_info *info)
{
	return kdsm_do_node_change(info, false);
}

static int kdsm_do_region_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct kdsm_tuning tuning = { 0 };
	struct kdsm_cluster *cluster;
	char name[KDSM_NAME_SIZE];
	int err;

	if (attrs[KDSM_A_REGION_LEASE]) {
		tuning.which |= KDSM_TUNE_LEASE;
		tuning.lease = nla_get_u64(attrs[KDSM_A_REGION_LEASE]);
	}
	if (attrs[KDSM_A_REGION_LIMIT]) {
		tuning.which |= KDSM_TUNE_LIMIT;
		tuning.limit = nla_get_u64(attrs[KDSM_A_REGION_LIMIT]);
	}
	if (!attrs[KDSM_A_REGION_NAME] || !tuning.which) {
		NL_SET_ERR_MSG(info->extack, "name of the region, or lease and limit are missing");
		return -EINVAL;
	}
	/* Smaller: the node could not hold the chunks that it needs at the same time */
	if (tuning.limit && tuning.limit < KDSM_LIMIT_MIN) {
		NL_SET_ERR_MSG(info->extack, "a limit is 16 MiB at least, or 0: none");
		return -EINVAL;
	}
	nla_strscpy(name, attrs[KDSM_A_REGION_NAME], sizeof(name));
	cluster = kdsm_cluster_get_for(info->extack);
	if (!cluster)
		return -ENETDOWN;
	err = kdsm_region_tune(cluster, name, &tuning);
	kdsm_cluster_put(cluster);
	switch (err) {
	case -ENOENT:
		NL_SET_ERR_MSG(info->extack, "there is no such region");
		break;
	case -EOPNOTSUPP:
		if (attrs[KDSM_A_REGION_LEASE])
			NL_SET_ERR_MSG(info->extack, "only regions of policy strict have a lease");
		else
			NL_SET_ERR_MSG(info->extack, "a partitioned region has no limit");
		break;
	case -EHOSTDOWN:
		NL_SET_ERR_MSG(info->extack, "a node cannot be reached, and stays as it was");
		break;
	}
	return err;
}

static int kdsm_do_key_load(struct sk_buff *skb, struct genl_info *info)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get_for(info->extack);
	int err;

	if (!cluster)
		return -ENETDOWN;
	err = kdsm_fabric_load_key(cluster->fabric);
	kdsm_cluster_put(cluster);
	if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG(info->extack, "the cluster is up without a key");
	kdsm_explain_key(info->extack, err);
	return err;
}

static int kdsm_do_key_retire(struct sk_buff *skb, struct genl_info *info)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get_for(info->extack);
	int err;

	if (!cluster)
		return -ENETDOWN;
	err = kdsm_fabric_retire_key(cluster->fabric);
	kdsm_cluster_put(cluster);
	if (err)
		NL_SET_ERR_MSG(info->extack, "there is no former key");
	return err;
}

/* Return the bytes that this node holds of all regions */
static u64 kdsm_cluster_memory(struct kdsm_cluster *cluster)
{
	struct kdsm_region *region;
	unsigned long id = 0;
	u64 bytes = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		bytes += kdsm_memory_resident(region->memory);
		kdsm_region_put(region);
		id++;
	}
	return bytes;
}

/* A key that there is */
static int kdsm_put_key(struct sk_buff *skb, int type, u32 key)
{
	return key ? nla_put_u32(skb, type, key) : 0;
}

static int kdsm_fill_status(struct sk_buff *skb, struct kdsm_cluster *cluster)
{
	const struct kdsm_refused *refused = kdsm_fabric_refused(cluster->fabric);
	u8 uuid[KDSM_UUID_SIZE];

	export_uuid(uuid, &cluster->uuid);
	if (nla_put_string(skb, KDSM_A_CLUSTER, cluster->name) ||
	    nla_put(skb, KDSM_A_UUID, sizeof(uuid), uuid) ||
	    nla_put_u32(skb, KDSM_A_NODE, cluster->node) ||
	    nla_put_u32(skb, KDSM_A_NODE_COUNT, READ_ONCE(cluster->nodes)) ||
	    nla_put_u16(skb, KDSM_A_PORT, cluster->port) ||
	    nla_put_u32(skb, KDSM_A_DOMAIN, kdsm_fabric_domain(cluster->fabric)) ||
	    nla_put_string(skb, KDSM_A_DEVICE, kdsm_fabric_device(cluster->fabric)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_CLUSTER, atomic64_read(&refused->cluster)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_VERSION, atomic64_read(&refused->version)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_NODE, atomic64_read(&refused->node)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_MESSAGE, atomic64_read(&refused->message)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_KEY, atomic64_read(&refused->key)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_PROOF, atomic64_read(&refused->proof)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_PORT, atomic64_read(&refused->port)) ||
	    kdsm_put_u64(skb, KDSM_A_REFUSED_SILENT, atomic64_read(&refused->silent)) ||
	    kdsm_put_key(skb, KDSM_A_KEY, kdsm_fabric_key(cluster->fabric, 0)) ||
	    kdsm_put_key(skb, KDSM_A_KEY_FORMER, kdsm_fabric_key(cluster->fabric, 1)) ||
	    kdsm_put_u64(skb, KDSM_A_MEMORY, kdsm_cluster_memory(cluster)))
		return -EMSGSIZE;
	return 0;
}

static int kdsm_do_status(struct sk_buff *skb, struct genl_info *info)
{
	struct kdsm_cluster *cluster;
	struct sk_buff *reply;
	void *header;
	int err = -ENOMEM;

	cluster = kdsm_cluster_get_for(info->extack);
	if (!cluster)
		return -ENETDOWN;
	reply = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		goto put;
	header = genlmsg_put_reply(reply, info, &kdsm_family, 0, KDSM_CMD_STATUS);
	err = header ? kdsm_fill_status(reply, cluster) : -EMSGSIZE;
	if (err) {
		nlmsg_free(reply);
		goto put;
	}
	genlmsg_end(reply, header);
	err = genlmsg_reply(reply, info);
put:
	kdsm_cluster_put(cluster);
	return err;
}

/* ---- dumps ---- */

/*
 * Add one message for each index from cb->args[0] on, until fill() returns -ENOENT because no
 * index is left, or -EMSGSIZE because the skb is full. fill() may skip to a higher index.
 */
static int kdsm_dump(struct sk_buff *skb, struct netlink_callback *cb, u8 command,
		     int (*fill)(struct sk_buff *skb, struct kdsm_cluster *cluster,
				 unsigned long *index))
{
	struct kdsm_cluster *cluster = kdsm_cluster_get_for(cb->extack);
	unsigned long index;
	void *header;
	int err = 0;

	if (!cluster)
		return -ENETDOWN;
	for (;;) {
		header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				     &kdsm_family, NLM_F_MULTI, command);
		if (!header)
			break;
		index = cb->args[0];
		err = fill(skb, cluster, &index);
		if (err) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
		cb->args[0] = index + 1;
	}
	kdsm_cluster_put(cluster);
	return skb->len;
}

static int kdsm_fill_peer(struct sk_buff *skb, struct kdsm_cluster *cluster,
			  unsigned long *index)
{
	const struct kdsm_node *node;
	struct kdsm_peer_info peer;
	int err;

	if (*index >= READ_ONCE(cluster->nodes))
		return -ENOENT;
	node = &cluster->table[*index];
	kdsm_fabric_peer(cluster->fabric, *index, &peer);
	if (node->address.ss_family == AF_INET6)
		err = nla_put_in6_addr(skb, KDSM_A_NODE_ADDRESS,
				       &((struct sockaddr_in6 *)&node->address)->sin6_addr);
	else
		err = nla_put_in_addr(skb, KDSM_A_NODE_ADDRESS,
				      ((struct sockaddr_in *)&node->address)->sin_addr.s_addr);
	if (err || nla_put_u32(skb, KDSM_A_NODE_ID, *index) ||
	    nla_put_string(skb, KDSM_A_NODE_LOCATION, node->location) ||
	    nla_put_u32(skb, KDSM_A_PEER_STATE, peer.state) ||
	    kdsm_put_u64(skb, KDSM_A_PEER_CONNECTS, peer.connects) ||
	    kdsm_put_u64(skb, KDSM_A_PEER_ERRORS, peer.errors))
		return -EMSGSIZE;
	return 0;
}

static int kdsm_dump_peers(struct sk_buff *skb, struct netlink_callback *cb)
{
	return kdsm_dump(skb, cb, KDSM_CMD_PEERS, kdsm_fill_peer);
}

static int kdsm_fill_stats(struct sk_buff *skb, struct kdsm_cluster *cluster,
			   unsigned long *index)
{
	u64 stats[KDSM_STAT_COUNT];
	struct nlattr *nest;
	unsigned int i;

	if (*index >= READ_ONCE(cluster->nodes))
		return -ENOENT;
	kdsm_fabric_stats(cluster->fabric, *index, stats);
	if (nla_put_u32(skb, KDSM_A_NODE_ID, *index))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, KDSM_A_STATS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < KDSM_STAT_COUNT; i++)
		if (nla_put_u64_64bit(skb, 1 + i, stats[i], 0))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int kdsm_dump_stats(struct sk_buff *skb, struct netlink_callback *cb)
{
	return kdsm_dump(skb, cb, KDSM_CMD_STATS, kdsm_fill_stats);
}

static int kdsm_fill_coherence(struct sk_buff *skb, struct kdsm_coherence *coherence)
{
	u64 stats[KDSM_COHERENCE_COUNT];
	struct nlattr *nest;
	unsigned int i;

	nest = nla_nest_start(skb, KDSM_A_REGION_STATS);
	if (!nest)
		return -EMSGSIZE;
	kdsm_coherence_stats(coherence, stats);
	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		if (nla_put_u64_64bit(skb, 1 + i, stats[i], 0))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int kdsm_fill_region(struct sk_buff *skb, struct kdsm_cluster *cluster,
			    unsigned long *index)
{
	struct kdsm_region *region = kdsm_region_next(cluster, index);
	int err = -EMSGSIZE;

	if (!region)
		return -ENOENT;
	if (nla_put_u32(skb, KDSM_A_REGION_ID, region->id) ||
	    nla_put_string(skb, KDSM_A_REGION_NAME, region->name) ||
	    kdsm_put_u64(skb, KDSM_A_REGION_SIZE, kdsm_region_size(region)) ||
	    kdsm_put_u64(skb, KDSM_A_REGION_PART_SIZE, region->part_size) ||
	    nla_put_u32(skb, KDSM_A_REGION_BLOCK_SIZE, region->segments->block_size) ||
	    nla_put_u32(skb, KDSM_A_REGION_POLICY, region->policy) ||
	    nla_put_u32(skb, KDSM_A_REGION_MODE, region->mode) ||
	    nla_put_u32(skb, KDSM_A_REGION_UID, region->uid) ||
	    nla_put_u32(skb, KDSM_A_REGION_GID, region->gid) ||
	    nla_put_u32(skb, KDSM_A_REGION_NODES, region->nodes) ||
	    nla_put_u32(skb, KDSM_A_REGION_OPENS, READ_ONCE(region->opens)) ||
	    nla_put_u32(skb, KDSM_A_REGION_FLAGS, region->flags) ||
	    kdsm_put_u64(skb, KDSM_A_REGION_RESIDENT,
			 kdsm_memory_resident(region->memory)))
		goto put;
	if (region->segment_count > 1 &&
	    nla_put(skb, KDSM_A_REGION_SEGMENTS,
		    region->segment_count * sizeof(region->segments[0]), region->segments))
		goto put;
	if (region->policy == KDSM_POLICY_STRICT &&
	    kdsm_put_u64(skb, KDSM_A_REGION_LEASE, READ_ONCE(region->coherence->lease)))
		goto put;
	if (region->coherence &&
	    (kdsm_put_u64(skb, KDSM_A_REGION_LIMIT, READ_ONCE(region->account.limit)) ||
	     kdsm_put_u64(skb, KDSM_A_REGION_MEMORY, atomic64_read(&region->account.bytes)) ||
	     kdsm_put_u64(skb, KDSM_A_REGION_METADATA,
			  kdsm_coherence_metadata(region->coherence))))
		goto put;
	err = region->coherence ? kdsm_fill_coherence(skb, region->coherence) : 0;
put:
	kdsm_region_put(region);
	return err;
}

static int kdsm_dump_regions(struct sk_buff *skb, struct netlink_callback *cb)
{
	return kdsm_dump(skb, cb, KDSM_CMD_REGIONS, kdsm_fill_region);
}

static const struct genl_small_ops kdsm_commands[] = {
	{ .cmd = KDSM_CMD_UP, .doit = kdsm_do_up, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_DOWN, .doit = kdsm_do_down, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_STATUS, .doit = kdsm_do_status },
	{ .cmd = KDSM_CMD_PROBE, .doit = kdsm_do_probe, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_PEERS, .dumpit = kdsm_dump_peers },
	{ .cmd = KDSM_CMD_STATS, .dumpit = kdsm_dump_stats },
	{ .cmd = KDSM_CMD_REGIONS, .dumpit = kdsm_dump_regions },
	{ .cmd = KDSM_CMD_REGION_SET, .doit = kdsm_do_region_set, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_KEY_LOAD, .doit = kdsm_do_key_load, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_KEY_RETIRE, .doit = kdsm_do_key_retire, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_NODE_REGIONS, .dumpit = kdsm_dump_node_regions,
	  .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_NODE_LOCKS, .dumpit = kdsm_dump_node_locks, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_LATENCIES, .dumpit = kdsm_dump_latencies },
	{ .cmd = KDSM_CMD_NODE_ADD, .doit = kdsm_do_node_add, .flags = GENL_ADMIN_PERM },
	{ .cmd = KDSM_CMD_NODE_REMOVE, .doit = kdsm_do_node_remove, .flags = GENL_ADMIN_PERM },
};

/* Those that have to start or end a dump */
static const struct genl_ops kdsm_dumps[] = {
	{ .cmd = KDSM_CMD_NODES, .start = kdsm_start_nodes, .dumpit = kdsm_dump_nodes,
	  .done = kdsm_done_nodes, .flags = GENL_ADMIN_PERM },
};

static const struct genl_multicast_group kdsm_groups[] = {
	{ .name = KDSM_GENL_EVENTS },
};

struct genl_family kdsm_family __ro_after_init = {
	.name = KDSM_GENL_NAME,
	.version = KDSM_GENL_VERSION,
	.maxattr = KDSM_A_MAX,
	.policy = kdsm_policy,
	.module = THIS_MODULE,
	.small_ops = kdsm_commands,
	.n_small_ops = ARRAY_SIZE(kdsm_commands),
	.ops = kdsm_dumps,
	.n_ops = ARRAY_SIZE(kdsm_dumps),
	.mcgrps = kdsm_groups,
	.n_mcgrps = ARRAY_SIZE(kdsm_groups),
	KDSM_RESV_START_OP(__KDSM_CMD_LAST)
	.parallel_ops = true,	/* no lock over all commands, as a probe may take seconds */
};

/*
 * The kernel loads the module when kdsmctl looks the family up. The device needs no alias of the
 * kind devname:, which is for fixed minors only.
 */
MODULE_ALIAS_GENL_FAMILY(KDSM_GENL_NAME);

int __init kdsm_netlink_init(void)
{
	int err = genl_register_family(&kdsm_family);

	if (!err)
		kdsm_events_init();
	return err;
}

void kdsm_netlink_exit(void)
{
	kdsm_events_exit();
	genl_unregister_family(&kdsm_family);
}
