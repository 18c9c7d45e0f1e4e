/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family; <kdsm/uapi_netlink.h> documents its commands */
#ifndef KDSM_NETLINK_H
#define KDSM_NETLINK_H

#include <net/genetlink.h>

#include "cluster.h"

int kdsm_netlink_init(void);
void kdsm_netlink_exit(void);

/* ---- for the files of the family ---- */

extern struct genl_family kdsm_family;

/* The cluster with a reference, as kdsm_cluster_get(), or NULL and a sentence for the program */
struct kdsm_cluster *kdsm_cluster_get_for(struct netlink_ext_ack *extack);

static inline int kdsm_put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, KDSM_A_PAD);
}

/* netlink_nodes.c: dumps of what nodes report */
int kdsm_start_nodes(struct netlink_callback *cb);
int kdsm_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb);
int kdsm_done_nodes(struct netlink_callback *cb);
int kdsm_dump_node_regions(struct sk_buff *skb, struct netlink_callback *cb);
int kdsm_dump_node_locks(struct sk_buff *skb, struct netlink_callback *cb);
int kdsm_dump_latencies(struct sk_buff *skb, struct netlink_callback *cb);

/* netlink_events.c: send events while the family is registered */
void kdsm_events_init(void);
void kdsm_events_exit(void);

#endif /* KDSM_NETLINK_H */
