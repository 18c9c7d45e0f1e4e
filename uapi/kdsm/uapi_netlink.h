/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic netlink family "kdsm": administration of the module, its state and its
 * counters. <kdsm/uapi.h> describes the device, and has the words and limits used here.
 */
#ifndef _UAPI_KDSM_NETLINK_H
#define _UAPI_KDSM_NETLINK_H

#include <kdsm/uapi.h>

/*
 * Commands. Those marked (admin) need CAP_NET_ADMIN. Names of attributes lack KDSM_A_.
 *
 * KDSM_CMD_UP (admin)		Join a cluster. CLUSTER, UUID, NODE and NODES are
 *				required, PORT, DOMAIN and INSECURE optional. Without
 *				INSECURE the caller's keyrings have the cluster's key, see
 *				KDSM_KEY_TYPE; else -ENOKEY, -EKEYEXPIRED, -EKEYREVOKED or
 *				-EKEYREJECTED: its size is not KDSM_KEY_SIZE.
 *				-EALREADY: the cluster is up. -ENODEV: no RDMA device has
 *				the node's address. -EADDRINUSE: the port is taken.
 *				-EOPNOTSUPP: the device does not support DOMAIN.
 * KDSM_CMD_DOWN (admin)	Leave the cluster. -EBUSY: programs of this node have
 *				regions open. -ENETDOWN.
 * KDSM_CMD_STATUS		Reply: CLUSTER, UUID, NODE, NODE_COUNT, PORT, DOMAIN,
 *				DEVICE, KEY, KEY_FORMER, the REFUSED_* counters and
 *				MEMORY. -ENETDOWN.
 * KDSM_CMD_PROBE (admin)	Connect to NODE_ID and exchange one message. -EHOSTDOWN,
 *				-ETIMEDOUT, -EINVAL (no such node), -ENETDOWN. -EBADE: the
 *				node answers, but its table has another number of nodes.
 * KDSM_CMD_PEERS		Dump, one message a node: NODE_ID, NODE_ADDRESS,
 *				NODE_LOCATION, PEER_STATE, PEER_CONNECTS, PEER_ERRORS.
 * KDSM_CMD_STATS		Dump, one message a node: NODE_ID and STATS.
 * KDSM_CMD_REGIONS		Dump, one message a region: REGION_*.
 * KDSM_CMD_REGION_SET (admin)	Change settings of region REGION_NAME on all nodes. One
 *				of the following is required, and a setting that is
 *				absent stays. REGION_LEASE: policy STRICT; a node applies
 *				it to blocks that it gets from then on. REGION_LIMIT:
 *				policies RELEASE and STRICT; a node that holds more evicts
 *				chunks until it holds less. -ENOENT,
 *				-EOPNOTSUPP (another policy; nothing changed), -ENETDOWN,
 *				-EHOSTDOWN, -EIO and -ETIMEDOUT (some nodes may have the
 *				new settings).
 * KDSM_CMD_KEY_LOAD (admin)	Take another key from the caller's keyrings. This node
 *				asks peers with it from now on, and accepts it and the one
 *				before. Errors of keys as for KDSM_CMD_UP; -EOPNOTSUPP:
 *				the cluster is insecure; -ENETDOWN.
 * KDSM_CMD_KEY_RETIRE (admin)	Accept only the newest key from now on. Connections stay.
 *				-ENOKEY: there is no other. -ENETDOWN.
 * KDSM_CMD_NODES (admin)	Dump, one message a node. This node asks all nodes in
 *				parallel, for TIMEOUT at most. NODE_ID, NODE_ERROR; and of a
 *				node that answered: UPTIME, MEMORY, REGION_COUNT,
 *				REGION_OPENS, STATS, COHERENCE. -ENETDOWN.
 * KDSM_CMD_NODE_REGIONS (admin) Dump of node NODE_ID, one message a region there: REGION_ID,
 *				REGION_OPENS, REGION_RESIDENT, and for a coherent region
 *				REGION_STATS. Errors as for KDSM_CMD_LATENCIES.
 * KDSM_CMD_NODE_LOCKS (admin)	Dump of node NODE_ID, one message for each lock that a thread
 *				there has waited for: REGION_ID, LOCK_*. Errors as for
 *				KDSM_CMD_LATENCIES.
 * KDSM_CMD_LATENCIES		Dump of node NODE_ID, or of this node without it, one message
 *				for each enum kdsm_latency: LATENCY_*. Optional: TIMEOUT.
 *				-EPERM: another node, and the caller lacks CAP_NET_ADMIN.
 *				-EINVAL: no such node. -EHOSTDOWN, -ETIMEDOUT, -EIO: the node
 *				does not answer. -ENETDOWN.
 * KDSM_CMD_EVENT		Sent to the multicast group KDSM_GENL_EVENTS, never by a
 *				program: EVENT, EVENT_TIME, and what enum kdsm_event says.
 * KDSM_CMD_NODE_ADD (admin)	Add a node to the tables of all nodes, which must be up. NODE_ID
 *				is the next number, NODE_ADDRESS is required, NODE_LOCATION
 *				optional. The new node takes part in the regions that are created
 *				from then on, and comes up by KDSM_CMD_UP with the table that
 *				includes it. A node whose table has the new node already ignores
 *				the command. -EINVAL: not the next
 *				number. -EEXIST: the number has another address or location.
 *				-EADDRINUSE: another node has the address. -EAFNOSUPPORT: the
 *				other nodes have addresses of another kind. -EHOSTDOWN, -EIO,
 *				-ETIMEDOUT: some tables may lack the node; repeat the command.
 *				-ENETDOWN.
 * KDSM_CMD_NODE_REMOVE (admin)	Remove node NODE_ID, the last one, from the tables of all other
 *				nodes, which must be up. The removed node need not be up.
 *				-EINVAL: not the last node, node 0, or the node that executes
 *				the command. -EBUSY: the node takes part
 *				in a region, which has REGION_NODES above NODE_ID. -EHOSTDOWN,
 *				-EIO, -ETIMEDOUT: some tables may still have the node; repeat
 *				the command. -ENETDOWN.
 *
 * -EINVAL: an attribute is missing or malformed. -ERANGE: a number, string or nest is out of
 * its bounds. -EPERM: the caller lacks CAP_NET_ADMIN. An error has an extended
 * acknowledgment with a sentence.
 */
#define KDSM_GENL_NAME		"kdsm"
#define KDSM_GENL_VERSION	1
#define KDSM_GENL_EVENTS	"events"	/* multicast group of KDSM_CMD_EVENT */

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
	KDSM_CMD_KEY_LOAD,
	KDSM_CMD_KEY_RETIRE,
	KDSM_CMD_NODES,
	KDSM_CMD_NODE_REGIONS,
	KDSM_CMD_NODE_LOCKS,
	KDSM_CMD_LATENCIES,
	KDSM_CMD_EVENT,
	KDSM_CMD_NODE_ADD,
	KDSM_CMD_NODE_REMOVE,
	__KDSM_CMD_LAST,
};

#define KDSM_CMD_MAX	(__KDSM_CMD_LAST - 1)

/*
 * The key of a cluster, in a keyring of the caller (keyrings(7)): its type, its description up to
 * the UUID, which follows as 8-4-4-4-12 lower-case hexadecimal digits, and its size in bytes. All
 * nodes have the same key. Peers prove to each other that they know it (HMAC-SHA256).
 */
#define KDSM_KEY_TYPE		"logon"
#define KDSM_KEY_PREFIX		"kdsm:"
#define KDSM_KEY_SIZE		32

#define KDSM_DEFAULT_PORT	18815	/* port of rdma_cm, TCP port space */

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
	KDSM_A_NODES,		/* nest of KDSM_A_NODE_ENTRY, in order of NODE_ID */
	KDSM_A_NODE_ENTRY,	/* nest: NODE_ID, NODE_ADDRESS, NODE_LOCATION */
	KDSM_A_NODE_ID,		/* u32: number of a node, from 0 without gaps */
	KDSM_A_NODE_ADDRESS,	/* binary: struct in_addr or in6_addr */
	KDSM_A_NODE_LOCATION,	/* string: "rack0/chassis2", may be empty */
	KDSM_A_PEER_STATE,	/* u32, enum kdsm_peer_state */
	KDSM_A_PEER_CONNECTS,	/* u64: connections established */
	KDSM_A_PEER_ERRORS,	/* u64: connections that broke or failed */
	/* Connections that this node refused, by reason, and malformed messages: */
	KDSM_A_REFUSED_CLUSTER,	/* u64: another magic, UUID or domain */
	KDSM_A_REFUSED_VERSION,	/* u64: another protocol version */
	KDSM_A_REFUSED_NODE,	/* u64: an unknown number or address, or another node table */
	KDSM_A_REFUSED_MESSAGE,	/* u64: malformed messages */
	KDSM_A_MEMORY,		/* u64: memory of regions on this node, in bytes */
	KDSM_A_STATS,		/* nest of u64, attribute = 1 + enum kdsm_stat */
	KDSM_A_REGION_ID,	/* u32 */
	KDSM_A_REGION_NAME,	/* string */
	KDSM_A_REGION_SIZE,	/* u64 */
	KDSM_A_REGION_PART_SIZE,	/* u64 */
	KDSM_A_REGION_BLOCK_SIZE,	/* u32: of the first segment, in bytes */
	KDSM_A_REGION_POLICY,	/* u32 */
	KDSM_A_REGION_MODE,	/* u32 */
	KDSM_A_REGION_UID,	/* u32 */
	KDSM_A_REGION_GID,	/* u32 */
	KDSM_A_REGION_OPENS,	/* u32: files on this node that are bound to it */
	KDSM_A_REGION_FLAGS,	/* u32: KDSM_REGION_KEEP, KDSM_REGION_CONTIGUOUS */
	KDSM_A_REGION_RESIDENT,	/* u64: memory of it on this node, in bytes */
	KDSM_A_REGION_STATS,	/* coherent: nest of u64, attribute =
				 * 1 + enum kdsm_coherence_stat
				 */
	KDSM_A_REGION_LEASE,	/* STRICT: u64, time for which a node keeps a block
				 * that it got, in ns, 0 to KDSM_LEASE_MAX
				 */
	KDSM_A_INSECURE,	/* flag: peers need not prove that they know a key */
	KDSM_A_KEY,		/* u32: number that tells the newest key from others; absent
				 * if the cluster is insecure
				 */
	KDSM_A_KEY_FORMER,	/* u32: the same of the key before, if it is still accepted */
	/* More connections that this node refused or ended, by reason: */
	KDSM_A_REFUSED_KEY,	/* u64: no key, or one that this node does not have */
	KDSM_A_REFUSED_PROOF,	/* u64: wrong proof that a key is known */
	KDSM_A_REFUSED_PORT,	/* u64: source port not below 1024 */
	KDSM_A_REFUSED_SILENT,	/* u64: no proof in time, or no room for so many askers */
	KDSM_A_REGION_LIMIT,	/* coherent: u64, upper bound of REGION_MEMORY of each node, in
				 * bytes, at least KDSM_LIMIT_MIN; 0: none
				 */
	KDSM_A_REGION_MEMORY,	/* coherent: u64, REGION_RESIDENT and what this node keeps to
				 * compare and find the content, in bytes
				 */
	KDSM_A_REGION_METADATA,	/* coherent: u64, records of the states and owners of blocks on
				 * this node, in bytes; not included in REGION_MEMORY
				 */
	KDSM_A_REGION_SEGMENTS,	/* binary: array of struct kdsm_region_segment; absent if the
				 * region has only one, of REGION_BLOCK_SIZE
				 */
	KDSM_A_TIMEOUT,		/* u32: how long this node waits for answers of other nodes, in
				 * ms, 1 to KDSM_TIMEOUT_MAX; KDSM_TIMEOUT_DEFAULT if absent
				 */
	KDSM_A_NODE_ERROR,	/* u32: 0, or the errno that says why the node did not answer */
	KDSM_A_UPTIME,		/* u64: time since the cluster came up on the node, in ns */
	KDSM_A_REGION_COUNT,	/* u32: regions that the node knows */
	KDSM_A_COHERENCE,	/* as REGION_STATS: the sums over all coherent regions */
	KDSM_A_LATENCY,		/* u32, enum kdsm_latency */
	KDSM_A_LATENCY_SUM,	/* u64: of all durations, in ns */
	KDSM_A_LATENCY_COUNTS,	/* binary: array of KDSM_LATENCY_CLASSES u64; element i counts
				 * durations of 2^i up to 2^(i+1) ns, the last one also longer ones,
				 * the first one also shorter ones
				 */
	KDSM_A_LOCK_NUMBER,	/* u32 */
	KDSM_A_LOCK_NAME,	/* string, may be empty */
	KDSM_A_LOCK_KIND,	/* u32, enum kdsm_lock_kind */
	KDSM_A_LOCK_LOCKS,	/* u64: acquisitions by threads of the node, all kinds */
	KDSM_A_LOCK_WAITS,	/* u64: those that waited */
	KDSM_A_LOCK_WAITED,	/* u64: time that threads of the node waited, in ns */
	KDSM_A_LOCK_LONGEST,	/* u64: longest wait, in ns */
	KDSM_A_LOCK_HANDED,	/* u64: hand-overs from thread to thread of the node */
	KDSM_A_LOCK_PASSED,	/* u64: hand-overs from the node to another one */
	KDSM_A_EVENT,		/* u32, enum kdsm_event */
	KDSM_A_EVENT_TIME,	/* u64: time of CLOCK_REALTIME, in ns */
	KDSM_A_EVENT_VALUE,	/* u64: see enum kdsm_event */
	KDSM_A_REGION_NODES,	/* u32: number of nodes that take part, from node 0 on */
	__KDSM_A_LAST,
};

#define KDSM_A_MAX	(__KDSM_A_LAST - 1)

enum kdsm_peer_state {
	KDSM_PEER_IDLE = 0,	/* not used yet */
	KDSM_PEER_CONNECTING,
	KDSM_PEER_UP,
	KDSM_PEER_DOWN,		/* did not answer the last attempt */
	KDSM_PEER_SELF,
};

/* Counters of remote operations to one peer since the cluster came up */
enum kdsm_stat {
	KDSM_STAT_GET,		/* RDMA reads */
	KDSM_STAT_PUT,		/* RDMA writes */
	KDSM_STAT_PUT_NOTIFY,	/* sends that store the first words of notifying puts */
	KDSM_STAT_CAS,		/* RDMA compare-and-swaps */
	KDSM_STAT_FAA,		/* RDMA fetch-and-adds */
	KDSM_STAT_AM,		/* active messages sent, including those below */
	KDSM_STAT_AM_CAS,	/* compare-and-swaps by message */
	KDSM_STAT_AM_FAA,	/* fetch-and-adds by message */
	KDSM_STAT_AM_GET,	/* small gets by message, several in one */
	KDSM_STAT_AM_SERVED,	/* active messages answered */
	KDSM_STAT_GET_BYTES,	/* bytes of all gets, also of those by message */
	KDSM_STAT_PUT_BYTES,	/* bytes of all puts */
	KDSM_STAT_CHAINS,	/* doorbells: chains of work requests posted */
	KDSM_STAT_ERRORS,	/* operations and messages that failed */
	KDSM_STAT_WAIT_POLLED,	/* waits that ended while polling */
	KDSM_STAT_WAIT_SLEPT,	/* waits that slept */
	KDSM_STAT_CREDIT_WAITS,	/* messages that waited for a free slot */
	KDSM_STAT_AM_FIND,	/* find-or-puts by message */
	KDSM_STAT_AM_STEAL,	/* thefts of tasks by message */
	KDSM_STAT_REGISTRATIONS,	/* of this node itself: memory regions that it registered */
	KDSM_STAT_KEYS,		/* keys of memory regions told to the peer */
	KDSM_STAT_AM_DEFERRED,	/* active messages that a worker answered, not a softirq */
	__KDSM_STAT_COUNT,
};

#define KDSM_STAT_COUNT	__KDSM_STAT_COUNT

/* Counters of a coherent region on this node; attribute = 1 + this */
enum kdsm_coherence_stat {
	KDSM_COHERENCE_READ_FAULTS,
	KDSM_COHERENCE_WRITE_FAULTS,
	KDSM_COHERENCE_UPGRADES,	/* blocks that joined the write set */
	KDSM_COHERENCE_FAST_READS,	/* misses with a known writer */
	KDSM_COHERENCE_SLOW_READS,	/* misses that had to ask for the owner */
	KDSM_COHERENCE_FAST_RELEASES,	/* blocks released by their owner */
	KDSM_COHERENCE_SLOW_RELEASES,	/* blocks that had to be taken over first */
	KDSM_COHERENCE_MIGRATIONS,	/* blocks handed over to other nodes */
	KDSM_COHERENCE_INVALIDATIONS,	/* copies that became invalid on this node */
	KDSM_COHERENCE_MERGES,		/* contents merged into the frames of this node */
	KDSM_COHERENCE_RACES,		/* words with a byte that two nodes wrote: KDSM_IOC_RACES */
	KDSM_COHERENCE_FLUSHES,		/* ranges whose mappings were changed */
	KDSM_COHERENCE_BYTES,		/* bytes of content fetched */
	/*
	 * Current numbers of blocks. Blocks that no node has written, and most blocks of which this
	 * node has no content, do not count:
	 */
	KDSM_COHERENCE_OWNED,
	KDSM_COHERENCE_READABLE,	/* owned or not */
	KDSM_COHERENCE_WRITABLE,	/* owned or not */
	KDSM_COHERENCE_INVALID,		/* invalid, of those with a structure on this node */
	/* More counters: */
	KDSM_COHERENCE_LOOKED,		/* blocks that acquires looked at */
	KDSM_COHERENCE_RENEWALS,	/* of slow reads: the copy here was still current */
	KDSM_COHERENCE_LOST,		/* current number of lost blocks: KDSM_IOC_LOST */
	KDSM_COHERENCE_EVICTIONS,	/* chunks of 2 MiB that this node freed */
	KDSM_COHERENCE_PUSHES,		/* messages by which another node took over its blocks */
	__KDSM_COHERENCE_COUNT,
};

#define KDSM_COHERENCE_COUNT	__KDSM_COHERENCE_COUNT

#define KDSM_TIMEOUT_DEFAULT	2000	/* of KDSM_A_TIMEOUT, in ms */
#define KDSM_TIMEOUT_MAX	30000

/*
 * Durations that a node counts by class: of operations on other nodes that it waited for, from
 * posting to completion, and of other waits of programs
 */
enum kdsm_latency {
	KDSM_LATENCY_GET,	/* operations that were posted together count once */
	KDSM_LATENCY_PUT,
	KDSM_LATENCY_PUT_NOTIFY,
	KDSM_LATENCY_CAS,
	KDSM_LATENCY_FAA,
	KDSM_LATENCY_FIND,
	KDSM_LATENCY_STEAL,
	KDSM_LATENCY_MIXED,	/* different operations that were posted together */
	KDSM_LATENCY_MESSAGE,	/* requests of the module that a task waited for */
	KDSM_LATENCY_READ,	/* waits for a block of a coherent region, to read it */
	KDSM_LATENCY_WRITE,	/* the same, to write it */
	KDSM_LATENCY_LOCK,	/* waits for locks in the module */
	__KDSM_LATENCY_COUNT,
};

#define KDSM_LATENCY_COUNT	__KDSM_LATENCY_COUNT
#define KDSM_LATENCY_CLASSES	40

/*
 * Events, as this node sees them, and the other attributes of each. REGION_NAME may be absent if
 * the region went meanwhile.
 */
enum kdsm_event {
	KDSM_EVENT_MISSED = 1,	/* EVENT_VALUE events before this one came too fast to be sent */
	KDSM_EVENT_CLUSTER_UP,	/* the cluster came up on this node: NODE_ID */
	KDSM_EVENT_CLUSTER_DOWN,	/* the cluster went down on this node: NODE_ID */
	KDSM_EVENT_NODE_UP,	/* this node reached NODE_ID, for the first time or again */
	KDSM_EVENT_NODE_DOWN,	/* NODE_ID does not answer */
	KDSM_EVENT_NODE_RESTARTED,	/* NODE_ID came up again, without its former state */
	KDSM_EVENT_REGION_ADDED,	/* this node has a new region: REGION_ID, REGION_NAME */
	KDSM_EVENT_REGION_REMOVED,	/* the same of a region that is gone */
	/* The block at offset EVENT_VALUE is lost with NODE_ID: REGION_ID, REGION_NAME */
	KDSM_EVENT_BLOCK_LOST,
	/*
	 * This node evicts chunks of a region: REGION_ID, REGION_NAME. At most one event in
	 * KDSM_EVENT_PAUSE for each region
	 */
	KDSM_EVENT_EVICTING,
	/*
	 * An access to a mapped region failed, so the program gets SIGBUS: REGION_ID, REGION_NAME;
	 * EVENT_VALUE errno, such as ENOMEM or EHOSTDOWN. Limited as EVICTING
	 */
	KDSM_EVENT_FAULT_FAILED,
	/* A thread of this node died with lock EVENT_VALUE: REGION_ID, REGION_NAME */
	KDSM_EVENT_LOCK_DEAD,
	KDSM_EVENT_NODE_ADDED,	/* this node added NODE_ID to its table of nodes */
	KDSM_EVENT_NODE_REMOVED,	/* this node removed NODE_ID from its table of nodes */
	__KDSM_EVENT_LAST,
};

#define KDSM_EVENT_PAUSE	10	/* in s */

#endif /* _UAPI_KDSM_NETLINK_H */
