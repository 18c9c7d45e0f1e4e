/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire protocol: the private data of connection requests and of the answers to them, and
 * all messages. All integers are little-endian. The receiver checks everything before use,
 * because a peer may be faulty, old or hostile. Nodes with different KDSM_WIRE_VERSION refuse
 * each other.
 *
 * A connection has one direction: the node that made it sends requests and one-sided
 * operations; the node that accepted it sends replies.
 */
#ifndef KDSM_WIRE_H
#define KDSM_WIRE_H

#include <linux/types.h>
#include <linux/uuid.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_netlink.h>

#define KDSM_WIRE_MAGIC		0x4d53444bU	/* "KDSM" */
#define KDSM_WIRE_VERSION	16

/*
 * Peers prove to each other that they know a key of the cluster (fabric/secret.c):
 *
 *	asker -> accepter   request      hello with a nonce
 *	accepter -> asker   acceptance   welcome with a nonce, and a proof over both
 *	asker -> accepter   PROVE        a proof over both
 *	accepter -> asker   reply        from now on the accepter serves the asker
 *
 * A proof is HMAC-SHA256 under the key of: the role of its sender (enum kdsm_role, 32 bits), the
 * hello, and the welcome without its proof. Without a key, nonces and proofs are 0.
 */
#define KDSM_PROOF_SIZE		32

enum kdsm_role {
	KDSM_ROLE_ACCEPTER = 1,
	KDSM_ROLE_ASKER,
};

/* Private data of a connection request, at most 56 bytes */
struct kdsm_wire_hello {
	__le32 magic;
	__le16 version;
	__le16 node;		/* number of the sender */
	__le16 nodes;		/* number of nodes in the sender's table, above node */
	u8 domain;		/* enum kdsm_domain in force at the sender */
	u8 queue;		/* number of the connection among the sender's to this peer */
	__le16 target;		/* number of the node that the sender wants to reach */
	__le64 incarnation;	/* random; differs each time that the sender comes up */
	__le32 given_up;	/* how often the sender has given up the target */
	u8 uuid[KDSM_UUID_SIZE];
	__le32 key;		/* id of the key of the proofs; 0: the sender has none */
	__le64 nonce;		/* random */
} __packed;

/* Private data of an acceptance, at most 196 bytes; see struct kdsm_wire_hello */
struct kdsm_wire_welcome {
	__le32 magic;
	__le16 version;
	__le16 node;
	__le64 incarnation;
	__le32 given_up;
	__le64 nonce;
	u8 proof[KDSM_PROOF_SIZE];	/* of KDSM_ROLE_ACCEPTER */
} __packed;

/* Private data of a rejection */
struct kdsm_wire_refusal {
	__le32 magic;
	__le16 version;
	__le16 reason;		/* enum kdsm_refusal */
} __packed;

enum kdsm_refusal {
	KDSM_REFUSED_CLUSTER = 1,
	KDSM_REFUSED_VERSION,
	KDSM_REFUSED_NODE,
	KDSM_REFUSED_DOMAIN,
	KDSM_REFUSED_BUSY,	/* too little memory, or too many half-made connections */
	KDSM_REFUSED_KEY,	/* the receiver does not have the key */
	KDSM_REFUSED_PORT,	/* the source port is not below KDSM_PORT_LIMIT */
};

/* Only root can send from ports of rdma_cm below this one. */
#define KDSM_PORT_LIMIT		1024

/* Upper bounds of a request or a reply, in bytes: header and payload, and payload alone */
#define KDSM_MESSAGE_SIZE	512
#define KDSM_MESSAGE_ROOM	(KDSM_MESSAGE_SIZE - sizeof(struct kdsm_wire_header))

/* Requests that may be in flight on one connection */
#define KDSM_CREDITS		32

struct kdsm_wire_header {
	__le16 type;		/* enum kdsm_message_type */
	__le16 length;		/* of the payload, in bytes */
	__le32 cookie;		/* the reply repeats the cookie of its request */
	__le32 status;		/* reply: 0 or -errno; request: 0 */
	__le32 reserved;
} __packed;

/* The comments give the payload of the request -> the payload of the reply. */
enum kdsm_message_type {
	/* The first message on a connection, and no other: the proof of KDSM_ROLE_ASKER */
	KDSM_MESSAGE_PROVE,
	KDSM_MESSAGE_PROBE,	/* empty; shows whether the peer answers */
	KDSM_MESSAGE_KEYS,	/* kdsm_wire_keys -> kdsm_wire_key[1..KDSM_KEYS_MAX] */
	KDSM_MESSAGE_CAS,	/* kdsm_wire_atomic -> __le64 former value */
	KDSM_MESSAGE_FAA,	/* kdsm_wire_atomic -> __le64 former value */
	KDSM_MESSAGE_GATHER,	/* kdsm_wire_gather -> the bytes of all places */
	KDSM_MESSAGE_OPEN,	/* kdsm_wire_open -> kdsm_wire_region */
	KDSM_MESSAGE_CLOSE,	/* __le32 id: no file of the sender is bound to it */
	KDSM_MESSAGE_DESTROY,	/* __le32 id */
	KDSM_MESSAGE_ADD,	/* kdsm_wire_region: create the receiver's part */
	KDSM_MESSAGE_REMOVE,	/* __le32 id: free the receiver's part */
	KDSM_MESSAGE_BLOCK_READ,	/* kdsm_wire_block -> kdsm_wire_answer */
	KDSM_MESSAGE_BLOCK_OWN,		/* kdsm_wire_block -> kdsm_wire_answer */
	KDSM_MESSAGE_BLOCK_GRANT,	/* kdsm_wire_block: the receiver owns the block */
	KDSM_MESSAGE_BLOCK_LEND,	/* kdsm_wire_block: the receiver may fetch a copy */
	/* kdsm_wire_block: drop your copy; status 0, or -EAGAIN: retry after a back-off */
	KDSM_MESSAGE_BLOCK_INVALIDATE,
	KDSM_MESSAGE_TUNE,	/* kdsm_wire_tune, to node 0: tell all nodes */
	KDSM_MESSAGE_TUNED,	/* kdsm_wire_tune, from node 0 */
	KDSM_MESSAGE_LOCK_OPEN,	/* kdsm_wire_lock_open, to node 0 -> the same */
	KDSM_MESSAGE_LOCK_SET,	/* kdsm_wire_lock_open, from node 0: the new settings */
	KDSM_MESSAGE_LOCK_MEET,	/* kdsm_wire_about, to the home: open the lock */
	KDSM_MESSAGE_LOCK_MISS,	/* __le32 node, to a home: the node does not answer the sender */
	KDSM_MESSAGE_FIND,	/* kdsm_wire_find -> kdsm_wire_found */
	KDSM_MESSAGE_STEAL,	/* kdsm_wire_steal -> kdsm_wire_stolen and the tasks */
	KDSM_MESSAGE_CLOCK,	/* __le32 id of a coherent region -> __le64 clock there */
	KDSM_MESSAGE_SETTLE,	/* empty; the receiver has seen all earlier writes */
	KDSM_MESSAGE_PUT,	/* kdsm_wire_put and the words; has no reply and needs no credit */
	/* kdsm_wire_block -> kdsm_wire_answer, or none to KDSM_CLAIM_DONE: coherence/lost.c */
	KDSM_MESSAGE_BLOCK_CLAIM,
	KDSM_MESSAGE_BLOCK_PUSH,	/* kdsm_wire_push -> the blocks that the receiver owns */
	KDSM_MESSAGE_REVOKE,	/* kdsm_wire_revoke: forget a key; the receiver uses it no more */
	/* Locks with a queue at the home; lock/turn.h, lock/home.h, lock/gate.h */
	KDSM_MESSAGE_TURN_ENQUEUE,	/* kdsm_wire_turn, to the home -> the same */
	KDSM_MESSAGE_TURN_HAND,		/* kdsm_wire_turn: the receiver has the lock */
	KDSM_MESSAGE_TURN_LEAVE,	/* kdsm_wire_turn, to the home -> the same */
	KDSM_MESSAGE_TURN_EXTEND,	/* kdsm_wire_turn, from the home -> the same */
	KDSM_MESSAGE_TURN_SURVEY,	/* kdsm_wire_turn, from the home -> the same */
	KDSM_MESSAGE_READ_ENTER,	/* kdsm_wire_pass, to a parent -> the same */
	KDSM_MESSAGE_READ_ADMIT,	/* kdsm_wire_pass, from a parent: the receiver may read */
	KDSM_MESSAGE_READ_REVOKE,	/* kdsm_wire_pass, from a parent: leave, and send LEFT */
	KDSM_MESSAGE_READ_DISMISS,	/* kdsm_wire_pass, from the home: leave dead parents */
	KDSM_MESSAGE_READ_LEFT,		/* kdsm_wire_pass, to a parent */
	KDSM_MESSAGE_REPORT,	/* kdsm_wire_ask -> as enum kdsm_report says */
	KDSM_MESSAGE_NODE,	/* kdsm_wire_change, to node 0: tell all nodes */
	KDSM_MESSAGE_NODE_TOLD,	/* kdsm_wire_change, from node 0 */
	KDSM_MESSAGE_NODE_COUNT,	/* empty -> __le32 number of nodes in the table there */
	KDSM_MESSAGE_TYPES
};

/*
 * Request for the key of a chunk. If the chunk does not exist yet, the receiver allocates it. If it
 * has dropped the chunk (fabric/drop.c), it answers -ENODATA instead. The first key of the reply
 * covers the chunk. The other keys are those of some of the chunks that follow in the window and
 * exist.
 */
struct kdsm_wire_keys {
	__le32 id;		/* of the memory */
	__le32 chunk;
} __packed;

/* A key, and the chunks that it covers. Chunks are counted from the start of the window. */
struct kdsm_wire_key {
	__le32 key;		/* not 0 */
	__le16 first;
	__le16 count;		/* with or without KDSM_KEY_DROPPED */
} __packed;

/* In count: the sender has dropped some of the chunks before, and has allocated them again. */
#define KDSM_KEY_DROPPED	(1U << 15)

/*
 * The sender has dropped a chunk, and ends the registration that covers chunks first to
 * first + count - 1, which are in one window. The receiver forgets its keys of these chunks. When
 * it answers, it has no operation with such a key in flight.
 */
struct kdsm_wire_revoke {
	__le32 id;		/* of the memory */
	__le32 chunk;		/* that was dropped; one of those that the registration covers */
	__le32 first;
	__le32 count;
} __packed;

/* Chunks in a window: no key covers chunks of two windows */
#define KDSM_WINDOW_SHIFT	9
#define KDSM_WINDOW_CHUNKS	(1U << KDSM_WINDOW_SHIFT)

#define KDSM_KEYS_MAX		60U	/* upper bound of the keys in one reply */

struct kdsm_wire_atomic {
	__le32 id;		/* of the memory */
	__le32 reserved;
	__le64 offset;
	__le64 operand;
	__le64 compare;
} __packed;

/* Gets of at most KDSM_GATHER_LENGTH bytes each; the bytes of all gets fit into one reply */
struct kdsm_wire_gather {
	__le32 id;		/* of the memory */
	__le32 count;		/* 1..KDSM_GATHER_MAX */
	struct {
		__le64 offset;
		__le32 length;
	} __packed places[40];
} __packed;

#define KDSM_GATHER_MAX		40U	/* upper bound of the gets in one message */
#define KDSM_GATHER_LENGTH	64U	/* upper bound of the length of each, in bytes */

/* struct kdsm_find in a request, and its (out) fields in a reply */
struct kdsm_wire_find {
	__le32 id;		/* of the memory */
	__le32 probes;
	__le64 index;		/* offset */
	__le64 entries;
	__le64 nodes;
	__le64 data;
	__le64 first;
	__le64 node[2];
	__le64 ignore;
	__le64 entry;
	__le64 number;
	__le32 fragment;
	__le32 done;
	__le32 run;
} __packed;

struct kdsm_wire_found {
	__le64 entry;
	__le64 number;
	__le32 probes;
	__le32 outcome;		/* enum kdsm_find_outcome */
} __packed;

/* struct kdsm_theft in a request, and its (out) fields in a reply */
struct kdsm_wire_steal {
	__le32 id;		/* of the memory */
	__le32 most;
	__le64 crew;		/* offset */
	__le64 workers;
	__le64 deques;
	__le32 stride;
	__le32 count;
	__le32 deque;
	__le32 first;
	__le32 thief;
	__le32 proxy;
} __packed;

/* The stolen tasks follow: struct kdsm_task_packed in the program's byte order. */
struct kdsm_wire_stolen {
	__le32 taken;
	__le32 busy;
} __packed;

/*
 * A put with KDSM_OP_NOTIFY, or its last bytes: whole words for offset on. The CPU of the receiver
 * stores the first word after the others.
 */
struct kdsm_wire_put {
	__le32 id;		/* of the memory */
	__le32 reserved;
	__le64 offset;
} __packed;

/* Upper bound of the words' length, in bytes */
#define KDSM_PUT_ROOM		(KDSM_MESSAGE_ROOM - sizeof(struct kdsm_wire_put))

/* The segments of a region; a partitioned region has one */
struct kdsm_wire_segments {
	__le32 count;		/* 1..KDSM_MAX_SEGMENTS */
	struct {
		__le64 offset;
		__le32 block_size;
	} __packed list[KDSM_MAX_SEGMENTS];
} __packed;

struct kdsm_wire_open {
	char name[KDSM_NAME_SIZE];
	__le32 flags;		/* KDSM_REGION_* */
	__le32 policy;
	__le64 size;
	__le64 base;		/* with KDSM_REGION_AT: the address that the creator chooses */
	struct kdsm_wire_segments segments;
	__le32 mode;
	__le32 uid;
	__le32 gid;
} __packed;

struct kdsm_wire_region {
	char name[KDSM_NAME_SIZE];
	__le32 id;
	__le32 flags;		/* KDSM_REGION_KEEP, KDSM_REGION_CONTIGUOUS */
	__le32 policy;
	struct kdsm_wire_segments segments;
	__le64 part_size;
	__le64 base;
	__le32 nodes;		/* that take part: numbers 0 to nodes - 1 */
	__le32 mode;
	__le32 uid;
	__le32 gid;
	__le32 created;		/* reply to OPEN: 1 if the open created the region */
} __packed;

/* A node that is added behind the last one, or the last one, which is removed; region/nodes.c */
struct kdsm_wire_change {
	__le32 node;		/* its number, not 0 */
	u8 add;			/* 1: added; 0: removed, and the other fields have no meaning */
	u8 length;		/* of the address, in bytes: 4 (IPv4) or 16 (IPv6) */
	__le16 reserved;
	u8 address[16];
	char location[KDSM_LOCATION_SIZE];
} __packed;

/* Bits of struct kdsm_wire_tune.which: the settings to change */
#define KDSM_TUNE_LEASE	1U	/* policy strict */
#define KDSM_TUNE_LIMIT	2U	/* policies release and strict */

/* Settings of a coherent region */
struct kdsm_wire_tune {
	__le32 id;
	__le32 turn;		/* TUNED: number of the change; the highest one is the newest */
	__le32 which;		/* KDSM_TUNE_*; a field whose bit is not set has no meaning */
	__le32 reserved;
	__le64 lease;		/* ns, at most KDSM_LEASE_MAX */
	__le64 limit;		/* bytes on each node, at least KDSM_LIMIT_MIN; 0: none */
} __packed;

/* Size of a set of nodes, in words and in bytes; node 0 is bit 0 of the first word */
#define KDSM_READERS_WORDS	(KDSM_MAX_NODES / 64)
#define KDSM_READERS_SIZE	(KDSM_READERS_WORDS * sizeof(__le64))

/* Node number that means "no node" */
#define KDSM_NOBODY	U16_MAX

/*
 * One hand-over of the ownership of a block. The hand-overs of a block are numbered, and the
 * one to the first owner has number 1. Each number is used once, so a node that receives the
 * same hand-over twice can ignore the second.
 */
struct kdsm_wire_handover {
	__le64 number;		/* 0: none */
	__le64 wts, rts;	/* of the content, in logical timestamps */
	/* Node that has the content; KDSM_NOBODY: only the maker of the hand-over knows */
	__le16 from;
	__le16 reserved[3];
	/* Policy strict: nodes that have copies. The sender leaves an empty set out. */
	__le64 readers[KDSM_READERS_WORDS];
} __packed;

/* Whether the length of a message that ends with a hand-over is valid: all, or no readers */
static inline bool kdsm_wire_handover_fits(unsigned int length, unsigned int whole)
{
	return length == whole || length == whole - KDSM_READERS_SIZE;
}

/* A request about one block of a coherent region */
struct kdsm_wire_block {
	__le32 id;		/* of the region */
	/*
	 * GRANT, LEND: 0, or -errno: not granted or lent, the receiver must ask again.
	 * CLAIM: enum kdsm_claim_phase.
	 */
	__le32 status;
	__le64 index;
	__le64 clock;		/* READ: the sender's clock, a timestamp. CLAIM: the ballot */
	/*
	 * GRANT: this hand-over. READ, OWN: a hand-over to the receiver, which the receiver may
	 * not know of. Or, with KDSM_NOBODY in from, no link leads to the receiver, and number is
	 * that of the newest hand-over that the sender has heard of: a receiver that waits for the
	 * block, and has heard of no newer one, answers RETRY to OWN. LEND, INVALIDATE: number of
	 * the newest hand-over that the sender knows, which was to the sender; from has the
	 * content; wts of the content or, for INVALIDATE, of the content that the sender is
	 * about to write. CLAIM: number of the claim; wts of the zeros; in readers, the nodes that
	 * the sender misses.
	 */
	struct kdsm_wire_handover handover;
} __packed;

/* Upper bound of the blocks of a chunk, and the number of words that have a bit for each */
#define KDSM_CHUNK_BLOCKS	512
#define KDSM_PUSH_WORDS		(KDSM_CHUNK_BLOCKS / 64)

/* Some blocks of a chunk of a coherent region, which the sender evicts; coherence/evict.c */
struct kdsm_wire_push {
	__le32 id;		/* of the region */
	__le32 take;		/* 1: take them over; 0: only tell which of them you own */
	__le64 chunk;
	__le64 blocks[KDSM_PUSH_WORDS];	/* bit 0 of the first word: first block of the chunk */
} __packed;

/* Phases of a claim to a lost block; coherence/lost.c describes them */
enum kdsm_claim_phase {
	KDSM_CLAIM_LOOK,
	KDSM_CLAIM_PREPARE,
	KDSM_CLAIM_TAKE,
	KDSM_CLAIM_DONE,
};

/*
 * The answer to CLAIM has the newest hand-over that the asked node knows of, which was to node; its
 * rts is the ballot that the asked node has promised, its wts a timestamp above all that it knows.
 */
enum kdsm_answer {
	/*
	 * OWN: handover is to the requester. READ: handover.from has the newest content. CLAIM: the
	 * asked node has the block
	 */
	KDSM_ANSWER_YES,
	/*
	 * OWN: a GRANT follows. READ: a LEND follows, and the newest hand-over that the asked node
	 * knows was to node; a LEND with a lower number or wts than this handover's is late
	 */
	KDSM_ANSWER_QUEUED,
	/* Ask node: handover was to that node, or, without one, that node is the next owner */
	KDSM_ANSWER_ASK,
	/* Retry after a back-off; OWN: ask along the links */
	KDSM_ANSWER_RETRY,
};

struct kdsm_wire_answer {
	__le16 answer;		/* enum kdsm_answer */
	__le16 node;		/* with KDSM_ANSWER_ASK, and QUEUED to READ */
	/* YES to OWN: 1 if the asked node owned the block, 0 if it was only granted the block */
	__le32 owned;
	struct kdsm_wire_handover handover;
} __packed;

/* A lock; the beginning of struct kdsm_wire_turn and struct kdsm_wire_pass */
struct kdsm_wire_about {
	__le32 id;		/* of the region */
	__le16 number;
} __packed;

/* Upper bound of the nodes that travel with a lock */
#define KDSM_WIRE_NEXT		64U

/* About the turns of a lock; lock/turn.h says what each message means */
struct kdsm_wire_turn {
	__le32 id;		/* of the region */
	__le16 number;
	__le16 node;		/* whose slot has the signature */
	__le64 life;		/* of the node that asks, or is asked (HAND: low bits); 0: of any */
	__le64 serial;		/* of that node's request. EXTEND: the word that named it; or 0 */
	__le64 turn;		/* reply to SURVEY: may be the word that named the node */
	__le32 epoch;
	__le16 answer;		/* replies: enum kdsm_turn_reply; SURVEY: enum kdsm_turn_state */
	__le16 flags;		/* KDSM_TURN_* */
	/*
	 * Of the receiver; EXTEND: 0 means as many as wait there. ENQUEUE: threads that wait at
	 * the sender; 0: withdraw the request. Reply to SURVEY: node that the lock was being
	 * handed to; KDSM_NOBODY: none
	 */
	__le16 quota;
	__le16 count;		/* of nodes in next */
	__le16 gave;		/* reply to SURVEY: HANDING, LEAVING: the sender gives it back */
	__le16 reserved;
	/* Nodes with the turns after that, which follow each other, and their quotas */
	struct {
		__le16 node;
		__le16 quota;
		__le16 life;	/* low bits */
	} __packed next[KDSM_WIRE_NEXT];
} __packed;

static inline unsigned int kdsm_wire_turn_size(unsigned int count)
{
	return offsetof(struct kdsm_wire_turn, next[count]);
}

/* Flags of a lock that travel with it, and of a message */
#define KDSM_TURN_DEAD		(1U << 0)	/* programs get -EOWNERDEAD */
#define KDSM_TURN_SPOILT	(1U << 1)	/* programs get -ENOTRECOVERABLE */
#define KDSM_TURN_KEEP		(1U << 8)	/* LEAVE: the sender keeps it if nobody waits */
#define KDSM_TURN_HANDED	(1U << 9)	/* LEAVE: it may be at the next node already */
#define KDSM_TURN_FREE		(1U << 10)	/* GONE: nobody waits, the word will be free */

enum kdsm_turn_reply {
	KDSM_REPLY_WAIT = 1,	/* ENQUEUE: the node is in the queue or in a list */
	/* LEAVE: the node does not have the lock any more; ENQUEUE: the request is withdrawn */
	KDSM_REPLY_GONE,
	KDSM_REPLY_KEEP,	/* LEAVE: the node keeps it, nobody waits */
	KDSM_REPLY_LIST,	/* LEAVE: the node keeps it, and hands it over to the list */
};

/* About nodes that read; lock/gate.h */
struct kdsm_wire_pass {
	__le32 id;		/* of the region */
	__le16 number;
	__le16 node;		/* ADMIT, reply to ENTER: node whose slot has the signature */
	__le64 life;		/* of the child */
	__le64 request;		/* of the child. DISMISS, LEFT after that: number of the DISMISS */
	__le64 era;		/* ADMIT, DISMISS, reply to ENTER: see struct kdsm_lock_home */
	__le16 flags;		/* KDSM_TURN_*, KDSM_PASS_* */
	__le16 mode;		/* ADMIT, reply to ENTER: enum kdsm_admission */
	__le32 limit;		/* ADMIT, reply to ENTER, of the home: T_R */
	__le64 order;		/* ADMIT, REVOKE: a message with a lower number is late */
	__le64 nodes[KDSM_MAX_NODES / 64];	/* DISMISS: parents that are dead */
} __packed;

#define KDSM_PASS_HOME		(1U << 8)	/* between the home and a reader home */
#define KDSM_PASS_DISMISSED	(1U << 9)	/* LEFT: answers DISMISS */

enum kdsm_admission {
	KDSM_ADMIT_LATER,	/* not admitted; an ADMIT follows */
	KDSM_ADMIT_IN,		/* admitted until REVOKE */
	KDSM_ADMIT_ONCE,	/* admitted for the threads that wait now */
};

/* The signature that the last holder of a lock leaves for the next one; see lock/sign.c */
struct kdsm_wire_signature {
	__le64 check;		/* checksum of the other fields and of count notices */
	__le64 floor;
	__le32 count;
	__le32 reserved;
	struct {
		__le64 ts;
		__le64 first;
		__le32 count;
		__le16 writer;
		__le16 share;
	} __packed notices[KDSM_NOTICES_MAX];
} __packed;

/* A lock: the request for it by name or number, or its present settings */
struct kdsm_wire_lock_open {
	__le32 id;		/* of the region */
	__le32 flags;		/* KDSM_LOCK_CREATE, KDSM_LOCK_EXCL; SET: KDSM_WIRE_LOCK_SET */
	char name[KDSM_NAME_SIZE];
	__le32 number;
	__le32 kind;
	__le32 mask;		/* mask to keep: struct kdsm_lock_settings */
	__le32 t_dc;
	__le32 t_r;
	__le32 t_w;
	__le32 t_l[KDSM_LOCK_LEVELS];
	__le64 keep;
	__le32 version;		/* of the settings, counted by node 0 */
} __packed;

#define KDSM_WIRE_LOCK_SET	(1U << 31)	/* to node 0: change the settings in mask */
#define KDSM_WIRE_LOCK_GONE	(1U << 30)	/* from node 0: the home has come up again since */

/* Parts of a report of a node. The request changes nothing at the receiver. */
enum kdsm_report {
	KDSM_REPORT_NODE,	/* kdsm_wire_node */
	KDSM_REPORT_LATENCY,	/* kdsm_wire_latency; from: enum kdsm_latency */
	/*
	 * kdsm_wire_region_use: of the regions with ids of at least from, in order of id, as many
	 * as fit. An empty reply: no regions are left.
	 */
	KDSM_REPORT_REGIONS,
	/*
	 * kdsm_wire_lock_use: the same of locks that threads have waited for; from: id << 32 and
	 * number. The reply may be empty although there are more: then it is one __le64, for from.
	 */
	KDSM_REPORT_LOCKS,
	KDSM_REPORTS
};

struct kdsm_wire_ask {
	__le32 report;		/* enum kdsm_report */
	__le32 reserved;
	__le64 from;
} __packed;

struct kdsm_wire_node {
	__le64 uptime;		/* in ns */
	__le64 memory;		/* in bytes */
	__le32 regions;
	__le32 opens;
	__le64 stats[KDSM_STAT_COUNT];		/* sums over all peers */
	/* Sums over all coherent regions; the current numbers of blocks are 0 */
	__le64 coherence[KDSM_COHERENCE_COUNT];
} __packed;

struct kdsm_wire_latency {
	__le64 sum;
	__le64 counts[KDSM_LATENCY_CLASSES];
} __packed;

struct kdsm_wire_region_use {
	__le32 id;
	__le32 opens;
	__le64 resident;	/* in bytes */
	__le64 is_coherent;	/* 0 or 1 */
	__le64 coherence[KDSM_COHERENCE_COUNT];	/* as of kdsm_wire_node */
} __packed;

struct kdsm_wire_lock_use {
	__le32 id;		/* of the region */
	__le32 number;
	__le32 kind;
	__le32 reserved;
	char name[KDSM_NAME_SIZE];
	__le64 locks;
	__le64 waits;
	__le64 waited;		/* in ns */
	__le64 longest;		/* in ns */
	__le64 handed;
	__le64 passed;
} __packed;

#endif /* KDSM_WIRE_H */
