/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic netlink family "kdsm": administration of the module, its state and its
 * counters. The device is in <linux/kdsm.h>, whose words and limits are used here.
 */
#ifndef _UAPI_LINUX_KDSM_NETLINK_H
#define _UAPI_LINUX_KDSM_NETLINK_H

#include <linux/kdsm.h>

/*
 * Commands. Those with (admin) need CAP_NET_ADMIN.
 *
 * KDSM_CMD_UP (admin)		CLUSTER, UUID, NODE, NODES required; PORT and
 *				DOMAIN optional. -EALREADY: is up. -ENODEV: no
 *				RDMA device has the node's address. -EADDRINUSE,
 *				-EOPNOTSUPP: the device cannot do DOMAIN.
 * KDSM_CMD_DOWN (admin)	-EBUSY: regions are open here. -ENETDOWN.
 * KDSM_CMD_STATUS		reply: CLUSTER, UUID, NODE, NODE_COUNT, PORT,
 *				DOMAIN, DEVICE, the REFUSED_* counters and
 *				MEMORY. -ENETDOWN.
 * KDSM_CMD_PROBE (admin)	connect to NODE_ID and exchange one message.
 *				-EHOSTDOWN, -ETIMEDOUT, -EINVAL, -ENETDOWN.
 * KDSM_CMD_PEERS		dump, one message a node: NODE_ID, NODE_ADDRESS,
 *				NODE_LOCATION, PEER_STATE, PEER_CONNECTS,
 *				PEER_ERRORS.
 * KDSM_CMD_STATS		dump, one message a node: NODE_ID and STATS.
 * KDSM_CMD_REGIONS		dump, one message a region: REGION_*.
 * KDSM_CMD_REGION_SET (admin)	set the lease of the region REGION_NAME, of policy
 *				STRICT, to REGION_LEASE, on all nodes; for what comes
 *				to a node from then on. -ENOENT, -EOPNOTSUPP (other
 *				policy), -ENETDOWN, -EHOSTDOWN, -ETIMEDOUT: some nodes
 *				may have been told.
 *
 * -EINVAL: an attribute is missing, or its length or content is wrong; -ERANGE:
 * a number, string or nest is out of its bounds; -EPERM: (admin) only. Errors
 * carry an extended acknowledgment with a sentence.
 */
#define KDSM_GENL_NAME		"kdsm"
#define KDSM_GENL_VERSION	1

enum kdsm_cmd {
	KDSM_CMD_UNSPEC,
	KDSM_CMD_UP,
	KDSM_CMD_DOWN,
	KDSM_CMD_STATUS,
	KDSM_CMD_PROBE,
	KDSM_CMD_PEERS,
	KDSM_CMD_STATS,
	KDSM_CMD_REGIONS,
	KDSM_CMD_REGION_SET,
	__KDSM_CMD_LAST,
};

#define KDSM_CMD_MAX	(__KDSM_CMD_LAST - 1)

#define KDSM_DEFAULT_PORT	18815	/* of rdma_cm, TCP port space */

enum kdsm_attr {
	KDSM_A_UNSPEC,
	KDSM_A_PAD,
	KDSM_A_CLUSTER,		/* string, printable, KDSM_NAME_SIZE with NUL */
	KDSM_A_UUID,		/* binary, KDSM_UUID_SIZE */
	KDSM_A_NODE,		/* u32: number of this node */
	KDSM_A_NODE_COUNT,	/* u32 */
	KDSM_A_PORT,		/* u16, host order, not 0 */
	KDSM_A_DOMAIN,		/* u32, enum kdsm_domain */
	KDSM_A_DEVICE,		/* string: name of the RDMA device */
	KDSM_A_NODES,		/* nest of KDSM_A_NODE_ENTRY, in order of number */
	KDSM_A_NODE_ENTRY,	/* nest: NODE_ID, NODE_ADDRESS, NODE_LOCATION */
	KDSM_A_NODE_ID,		/* u32; entries count from 0 without gaps */
	KDSM_A_NODE_ADDRESS,	/* binary: struct in_addr or in6_addr */
	KDSM_A_NODE_LOCATION,	/* string: "rack0/chassis2", may be empty */
	KDSM_A_PEER_STATE,	/* u32, enum kdsm_peer_state */
	KDSM_A_PEER_CONNECTS,	/* u64: connections made so far */
	KDSM_A_PEER_ERRORS,	/* u64: connections lost or not made */
	KDSM_A_REFUSED_CLUSTER,	/* u64: wrong magic, name or UUID of cluster */
	KDSM_A_REFUSED_VERSION,	/* u64: other version of the protocol */
	KDSM_A_REFUSED_NODE,	/* u64: node number unknown, or not at that address */
	KDSM_A_REFUSED_MESSAGE,	/* u64: messages that made no sense */
	KDSM_A_MEMORY,		/* u64: bytes of regions that this node holds */
	KDSM_A_STATS,		/* nest of u64, attribute = 1 + enum kdsm_stat */
	KDSM_A_REGION_ID,	/* u32 */
	KDSM_A_REGION_NAME,	/* string */
	KDSM_A_REGION_SIZE,	/* u64 */
	KDSM_A_REGION_PART_SIZE,	/* u64 */
	KDSM_A_REGION_BLOCK_SIZE,	/* u32 */
	KDSM_A_REGION_POLICY,	/* u32 */
	KDSM_A_REGION_MODE,	/* u32 */
	KDSM_A_REGION_UID,	/* u32 */
	KDSM_A_REGION_GID,	/* u32 */
	KDSM_A_REGION_OPENS,	/* u32: files bound on this node */
	KDSM_A_REGION_FLAGS,	/* u32: KDSM_REGION_KEEP */
	KDSM_A_REGION_RESIDENT,	/* u64: bytes of it that this node holds */
	KDSM_A_REGION_STATS,	/* coherent: nest of u64, attribute =
				 * 1 + enum kdsm_coherence_stat
				 */
	KDSM_A_REGION_LEASE,	/* STRICT: u64, ns that a node keeps what it got,
				 * 0 to KDSM_LEASE_MAX
				 */
	__KDSM_A_LAST,
};

#define KDSM_A_MAX	(__KDSM_A_LAST - 1)

enum kdsm_peer_state {
	KDSM_PEER_IDLE = 0,	/* not used yet */
	KDSM_PEER_CONNECTING,
	KDSM_PEER_UP,
	KDSM_PEER_DOWN,		/* tried, and stays so until it answers */
	KDSM_PEER_SELF,
};

/* Counters of remote operations to one peer, since the cluster came up. */
enum kdsm_stat {
	KDSM_STAT_GET,		/* RDMA reads */
	KDSM_STAT_PUT,		/* RDMA writes */
	KDSM_STAT_PUT_NOTIFY,	/* RDMA writes with immediate */
	KDSM_STAT_CAS,		/* RDMA compare-and-swaps */
	KDSM_STAT_FAA,		/* RDMA fetch-and-adds */
	KDSM_STAT_AM,		/* active messages sent, atomics in domain sw too */
	KDSM_STAT_AM_CAS,	/* of those, compare-and-swaps */
	KDSM_STAT_AM_FAA,	/* of those, fetch-and-adds */
	KDSM_STAT_AM_GET,	/* small gets that messages brought, several in one */
	KDSM_STAT_AM_SERVED,	/* active messages answered */
	KDSM_STAT_GET_BYTES,
	KDSM_STAT_PUT_BYTES,
	KDSM_STAT_CHAINS,	/* doorbells: chains of work requests posted */
	KDSM_STAT_ERRORS,	/* operations and messages that failed */
	KDSM_STAT_WAIT_POLLED,	/* waits that ended while polling */
	KDSM_STAT_WAIT_SLEPT,	/* waits that slept */
	KDSM_STAT_CREDIT_WAITS,	/* messages that waited for a credit */
	KDSM_STAT_AM_FIND,	/* of active messages, those that find or put nodes */
	KDSM_STAT_AM_STEAL,	/* and those that take tasks */
	__KDSM_STAT_COUNT,
};

#define KDSM_STAT_COUNT	__KDSM_STAT_COUNT

/* Counters of a coherent region on this node; attribute = 1 + this. */
enum kdsm_coherence_stat {
	KDSM_COHERENCE_READ_FAULTS,
	KDSM_COHERENCE_WRITE_FAULTS,
	KDSM_COHERENCE_UPGRADES,	/* blocks that joined the write set */
	KDSM_COHERENCE_FAST_READS,	/* misses with a known writer */
	KDSM_COHERENCE_SLOW_READS,	/* misses that asked for the owner */
	KDSM_COHERENCE_FAST_RELEASES,	/* blocks released by their owner */
	KDSM_COHERENCE_SLOW_RELEASES,	/* blocks taken over to be released */
	KDSM_COHERENCE_MIGRATIONS,	/* blocks handed over to others */
	KDSM_COHERENCE_INVALIDATIONS,
	KDSM_COHERENCE_MERGES,
	KDSM_COHERENCE_RACES,		/* merges that saw one byte written by two */
	KDSM_COHERENCE_FLUSHES,		/* ranges whose mappings were changed */
	KDSM_COHERENCE_BYTES,		/* of content brought here */
	/* as it is now, in blocks: */
	KDSM_COHERENCE_OWNED,
	KDSM_COHERENCE_READABLE,	/* owned or not */
	KDSM_COHERENCE_WRITABLE,	/* owned or not */
	KDSM_COHERENCE_INVALID,		/* of those that this node has heard of */
	__KDSM_COHERENCE_COUNT,
};

#define KDSM_COHERENCE_COUNT	__KDSM_COHERENCE_COUNT

#endif /* _UAPI_LINUX_KDSM_NETLINK_H */
