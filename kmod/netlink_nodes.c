// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps of what nodes report of themselves. For KDSM_CMD_NODES this node asks all others once, when
 * the dump starts. The other dumps ask one node, message by message, as they go.
 */
#include <linux/slab.h>

#include "compat.h"
#include "netlink.h"
#include "region/region.h"
#include "report.h"

static unsigned int kdsm_timeout(struct nlattr *const *attrs)
{
	return attrs[KDSM_A_TIMEOUT] ? nla_get_u32(attrs[KDSM_A_TIMEOUT]) : KDSM_TIMEOUT_DEFAULT;
}

static void *kdsm_put_header(struct sk_buff *skb, struct netlink_callback *cb, u8 command)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &kdsm_family,
			   NLM_F_MULTI, command);
}

static int kdsm_put_le64s(struct sk_buff *skb, int type, const __le64 *values, unsigned int count)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < count; i++)
		if (nla_put_u64_64bit(skb, 1 + i, le64_to_cpu(values[i]), 0))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Counters of coherence, without the current numbers of blocks, which reports do not have */
static int kdsm_put_coherence(struct sk_buff *skb, int type, const __le64 *values)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < KDSM_COHERENCE_COUNT; i++) {
		if ((i >= KDSM_COHERENCE_OWNED && i <= KDSM_COHERENCE_INVALID) ||
		    i == KDSM_COHERENCE_LOST)
			continue;
		if (nla_put_u64_64bit(skb, 1 + i, le64_to_cpu(values[i]), 0))
			return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* ---- all nodes ---- */

struct kdsm_nodes_dump {
	struct kdsm_reply *replies;
	unsigned int count, node;	/* node: the next one to put */
};

int kdsm_start_nodes(struct netlink_callback *cb)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get_for(cb->extack);
	struct kdsm_nodes_dump *dump = (void *)cb->ctx;
	int err = 0;

	BUILD_BUG_ON(sizeof(*dump) > sizeof(cb->ctx));
	if (!cluster)
		return -ENETDOWN;
	dump->replies = kdsm_report_nodes(cluster, kdsm_timeout(kdsm_dump_attrs(cb)),
					  &dump->count);
	if (IS_ERR(dump->replies)) {
		err = PTR_ERR(dump->replies);
		dump->replies = NULL;
	}
	kdsm_cluster_put(cluster);
	return err;
}

int kdsm_done_nodes(struct netlink_callback *cb)
{
	struct kdsm_nodes_dump *dump = (void *)cb->ctx;

	kvfree(dump->replies);
	return 0;
}

static int kdsm_fill_node(struct sk_buff *skb, unsigned int node, const struct kdsm_reply *reply)
{
	const struct kdsm_wire_node *wire = (const void *)reply->data;

	if (nla_put_u32(skb, KDSM_A_NODE_ID, node) ||
	    nla_put_u32(skb, KDSM_A_NODE_ERROR, -reply->status))
		return -EMSGSIZE;
	if (reply->status)
		return 0;
	if (kdsm_put_u64(skb, KDSM_A_UPTIME, le64_to_cpu(wire->uptime)) ||
	    kdsm_put_u64(skb, KDSM_A_MEMORY, le64_to_cpu(wire->memory)) ||
	    nla_put_u32(skb, KDSM_A_REGION_COUNT, le32_to_cpu(wire->regions)) ||
	    nla_put_u32(skb, KDSM_A_REGION_OPENS, le32_to_cpu(wire->opens)) ||
	    kdsm_put_le64s(skb, KDSM_A_STATS, wire->stats, KDSM_STAT_COUNT) ||
	    kdsm_put_coherence(skb, KDSM_A_COHERENCE, wire->coherence))
		return -EMSGSIZE;
	return 0;
}

int kdsm_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct kdsm_nodes_dump *dump = (void *)cb->ctx;
	void *header;

	for (; dump->node < dump->count; dump->node++) {
		header = kdsm_put_header(skb, cb, KDSM_CMD_NODES);
		if (!header)
			break;
		if (kdsm_fill_node(skb, dump->node, &dump->replies[dump->node])) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
	}
	return skb->len;
}

/* ---- one node ---- */

/* Where the next entry of a list begins: see enum kdsm_report */
static int kdsm_fill_region_use(struct sk_buff *skb, const void *entry, u64 *next)
{
	const struct kdsm_wire_region_use *wire = entry;

	*next = (u64)le32_to_cpu(wire->id) + 1;
	if (nla_put_u32(skb, KDSM_A_REGION_ID, le32_to_cpu(wire->id)) ||
	    nla_put_u32(skb, KDSM_A_REGION_OPENS, le32_to_cpu(wire->opens)) ||
	    kdsm_put_u64(skb, KDSM_A_REGION_RESIDENT, le64_to_cpu(wire->resident)))
		return -EMSGSIZE;
	return wire->is_coherent ?
	       kdsm_put_coherence(skb, KDSM_A_REGION_STATS, wire->coherence) : 0;
}

static int kdsm_fill_lock_use(struct sk_buff *skb, const void *entry, u64 *next)
{
	const struct kdsm_wire_lock_use *wire = entry;
	char name[KDSM_NAME_SIZE];

	*next = ((u64)le32_to_cpu(wire->id) << 32 | le32_to_cpu(wire->number)) + 1;
	memcpy(name, wire->name, sizeof(name));
	if (!kdsm_region_name_valid(name))
		name[0] = '\0';
	if (nla_put_u32(skb, KDSM_A_REGION_ID, le32_to_cpu(wire->id)) ||
	    nla_put_u32(skb, KDSM_A_LOCK_NUMBER, le32_to_cpu(wire->number)) ||
	    nla_put_string(skb, KDSM_A_LOCK_NAME, name) ||
	    nla_put_u32(skb, KDSM_A_LOCK_KIND, le32_to_cpu(wire->kind)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_LOCKS, le64_to_cpu(wire->locks)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_WAITS, le64_to_cpu(wire->waits)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_WAITED, le64_to_cpu(wire->waited)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_LONGEST, le64_to_cpu(wire->longest)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_HANDED, le64_to_cpu(wire->handed)) ||
	    kdsm_put_u64(skb, KDSM_A_LOCK_PASSED, le64_to_cpu(wire->passed)))
		return -EMSGSIZE;
	return 0;
}

static int kdsm_fill_latency(struct sk_buff *skb, const void *entry, u64 *next)
{
	const struct kdsm_wire_latency *wire = entry;
	u64 counts[KDSM_LATENCY_CLASSES];
	unsigned int i;

	for (i = 0; i < KDSM_LATENCY_CLASSES; i++)
		counts[i] = le64_to_cpu(wire->counts[i]);
	if (nla_put_u32(skb, KDSM_A_LATENCY, *next) ||
	    kdsm_put_u64(skb, KDSM_A_LATENCY_SUM, le64_to_cpu(wire->sum)) ||
	    nla_put(skb, KDSM_A_LATENCY_COUNTS, sizeof(counts), counts))
		return -EMSGSIZE;
	++*next;
	return 0;
}

/* Where a dump is */
struct kdsm_place {
	u64 from;
	unsigned long end;	/* when it must end, in jiffies; 0: it has not begun */
};

/* A dump of the entries of a report */
struct kdsm_entries {
	u8 command;
	enum kdsm_report report;
	unsigned int size;		/* of an entry, in bytes */
	/* Put an entry, and set *next, which was the place that was asked for, behind it. */
	int (*fill)(struct sk_buff *skb, const void *entry, u64 *next);
};

/*
 * Put the entries of a reply, and move *from behind them. -EMSGSIZE: the skb is full. -EPROTO: the
 * entries are not in order, so the dump would not end.
 */
static int kdsm_put_entries(struct sk_buff *skb, struct netlink_callback *cb,
			    const struct kdsm_entries *entries, const struct kdsm_reply *reply,
			    u64 *from)
{
	const u8 *entry = reply->data, *end = entry + reply->length;
	void *header;
	u64 next;

	for (; entry < end; entry += entries->size) {
		header = kdsm_put_header(skb, cb, entries->command);
		if (!header)
			return -EMSGSIZE;
		next = *from;
		if (entries->fill(skb, entry, &next)) {
			genlmsg_cancel(skb, header);
			return -EMSGSIZE;
		}
		if (next <= *from) {
			genlmsg_cancel(skb, header);
			return -EPROTO;
		}
		genlmsg_end(skb, header);
		*from = next;
	}
	return 0;
}

/* Ask for entries from the place on, and put them. 1: none is left. */
static int kdsm_dump_step(struct sk_buff *skb, struct netlink_callback *cb,
			  struct kdsm_cluster *cluster, unsigned int node,
			  const struct kdsm_entries *entries, struct kdsm_reply *reply,
			  struct kdsm_place *place)
{
	long left = place->end - jiffies;
	u64 next;
	int err;

	if (entries->report == KDSM_REPORT_LATENCY && place->from == KDSM_LATENCY_COUNT)
		return 1;
	if (left <= 0)
		return -ETIMEDOUT;
	err = kdsm_report_ask(cluster, node, entries->report, place->from, reply,
			      jiffies_to_msecs(left));
	if (err)
		return err;
	if (!reply->length)
		return 1;
	if (reply->length >= entries->size)
		return kdsm_put_entries(skb, cb, entries, reply, &place->from);
	/* No entries yet: where to go on */
	next = le64_to_cpup((const __le64 *)reply->data);
	if (next <= place->from)
		return -EPROTO;
	place->from = next;
	return 0;
}

static int kdsm_dump_entries(struct sk_buff *skb, struct netlink_callback *cb,
			     const struct kdsm_entries *entries)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get_for(cb->extack);
	struct nlattr *const *attrs = kdsm_dump_attrs(cb);
	struct kdsm_place *place = (void *)cb->ctx;
	struct kdsm_reply *reply;
	unsigned int node;
	int err;

	BUILD_BUG_ON(sizeof(*place) > sizeof(cb->ctx));
	if (!cluster)
		return -ENETDOWN;
	if (!place->end)
		place->end = (jiffies + msecs_to_jiffies(kdsm_timeout(attrs))) ?: 1;
	node = attrs[KDSM_A_NODE_ID] ? nla_get_u32(attrs[KDSM_A_NODE_ID]) : cluster->node;
	err = -EINVAL;
	if (node >= READ_ONCE(cluster->nodes)) {
		NL_SET_ERR_MSG(cb->extack, "no such node");
		goto put;
	}
	err = -EPERM;
	if (node != cluster->node && !netlink_capable(cb->skb, CAP_NET_ADMIN))
		goto put;
	err = -ENOMEM;
	reply = kmalloc(sizeof(*reply), GFP_KERNEL);
	if (!reply)
		goto put;
	do
		err = kdsm_dump_step(skb, cb, cluster, node, entries, reply, place);
	while (!err);
	kfree(reply);
put:
	kdsm_cluster_put(cluster);
	/* After an error, too, if there are entries: the next call, which asks again, reports it */
	return err == 1 || err == -EMSGSIZE || skb->len ? skb->len : err;
}

int kdsm_dump_node_regions(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct kdsm_entries entries = {
		KDSM_CMD_NODE_REGIONS, KDSM_REPORT_REGIONS, sizeof(struct kdsm_wire_region_use),
		kdsm_fill_region_use,
	};

	return kdsm_dump_entries(skb, cb, &entries);
}

int kdsm_dump_node_locks(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct kdsm_entries entries = {
		KDSM_CMD_NODE_LOCKS, KDSM_REPORT_LOCKS, sizeof(struct kdsm_wire_lock_use),
		kdsm_fill_lock_use,
	};

	return kdsm_dump_entries(skb, cb, &entries);
}

int kdsm_dump_latencies(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct kdsm_entries entries = {
		KDSM_CMD_LATENCIES, KDSM_REPORT_LATENCY, sizeof(struct kdsm_wire_latency),
		kdsm_fill_latency,
	};

	return kdsm_dump_entries(skb, cb, &entries);
}
