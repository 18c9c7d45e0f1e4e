/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What goes over the wire. All integers are little-endian. Everything that
 * arrives is checked before use: a peer may be wrong, old or hostile.
 *
 * A connection is one way: the node that made it sends requests and one-sided
 * operations, the node that accepted it sends replies.
 */
#ifndef KDSM_WIRE_H
#define KDSM_WIRE_H

#include <linux/types.h>
#include <linux/uuid.h>
#include <linux/kdsm.h>

#define KDSM_WIRE_MAGIC		0x4d53444bU	/* "KDSM" */
#define KDSM_WIRE_VERSION	5

/* Private data of a connection request: who asks. At most 56 bytes. */
struct kdsm_wire_hello {
	__le32 magic;
	__le16 version;
	__le16 node;		/* number of the asking node */
	__le16 nodes;		/* how many it thinks there are */
	u8 domain;		/* enum kdsm_domain in force there */
	u8 queue;		/* which of the asking node's connections */
	__le32 target;		/* number of the node that it means to reach */
	__le64 incarnation;	/* random; differs each time that node comes up */
	__le32 given_up;	/* how often it has given up the other */
	u8 uuid[KDSM_UUID_SIZE];
} __packed;

/* Private data of an acceptance: who was reached. */
struct kdsm_wire_welcome {
	__le32 magic;
	__le16 version;
	__le16 node;
	__le64 incarnation;
	__le32 given_up;
} __packed;

/* Private data of a rejection. */
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
	KDSM_REFUSED_BUSY,
};

/* Messages, requests and replies alike: a header and a payload. */
#define KDSM_MESSAGE_SIZE	512
#define KDSM_MESSAGE_ROOM	(KDSM_MESSAGE_SIZE - sizeof(struct kdsm_wire_header))

/* Requests that may be under way on one connection. */
#define KDSM_CREDITS		32

struct kdsm_wire_header {
	__le16 type;		/* enum kdsm_message_type */
	__le16 length;		/* of the payload */
	__le32 cookie;		/* the reply carries that of its request */
	__le32 status;		/* reply: 0 or -errno; request: 0 */
	__le32 reserved;
} __packed;

enum kdsm_message_type {
	KDSM_MESSAGE_PROBE,	/* nothing, to see whether the peer answers */
	KDSM_MESSAGE_KEYS,	/* kdsm_wire_keys -> __le32 rkey[count] */
	KDSM_MESSAGE_CAS,	/* kdsm_wire_atomic -> __le64 former value */
	KDSM_MESSAGE_FAA,	/* kdsm_wire_atomic -> __le64 former value */
	KDSM_MESSAGE_GATHER,	/* kdsm_wire_gather -> the bytes of all places */
	KDSM_MESSAGE_OPEN,	/* kdsm_wire_open -> kdsm_wire_region */
	KDSM_MESSAGE_CLOSE,	/* __le32 id: no file of the sender is bound to it */
	KDSM_MESSAGE_DESTROY,	/* __le32 id */
	KDSM_MESSAGE_ADD,	/* kdsm_wire_region: make a part for it */
	KDSM_MESSAGE_REMOVE,	/* __le32 id: free the part */
	KDSM_MESSAGE_BLOCK_READ,	/* kdsm_wire_block -> kdsm_wire_answer */
	KDSM_MESSAGE_BLOCK_OWN,		/* kdsm_wire_block -> kdsm_wire_answer */
	KDSM_MESSAGE_BLOCK_GRANT,	/* kdsm_wire_block: it is yours */
	KDSM_MESSAGE_BLOCK_INVALIDATE,	/* kdsm_wire_block -> kdsm_wire_answer */
	KDSM_MESSAGE_TUNE,	/* kdsm_wire_tune, to node 0: tell all nodes */
	KDSM_MESSAGE_TUNED,	/* kdsm_wire_tune, from node 0 */
	KDSM_MESSAGE_LOCK_OPEN,	/* kdsm_wire_lock_open, to node 0 -> the same */
	KDSM_MESSAGE_LOCK_SET,	/* kdsm_wire_lock_open, from node 0: it is so now */
	KDSM_MESSAGE_LOCK_TELL,	/* kdsm_wire_lock: the sender has that ticket, and is next */
	KDSM_MESSAGE_LOCK_HAND,	/* kdsm_wire_lock_hand: the lock is yours */
	KDSM_MESSAGE_LOCK_LOOK,	/* kdsm_wire_lock -> kdsm_wire_lock_state */
	KDSM_MESSAGE_RW_JOIN,	/* kdsm_wire_lock_open: the sender uses a counter there */
	KDSM_MESSAGE_RW_ASK,	/* kdsm_wire_rw, to a counter's home -> the same */
	KDSM_MESSAGE_RW_OPEN,	/* kdsm_wire_rw, to a counter's home: let readers in */
	KDSM_MESSAGE_RW_TELL,	/* kdsm_wire_rw, to a writer: look at the counters */
	KDSM_MESSAGE_RW_GO,	/* kdsm_wire_rw, from a counter's home: what was asked for */
	KDSM_MESSAGE_RW_COUNT,	/* kdsm_wire_rw, from a counter's home -> the same */
	KDSM_MESSAGE_LOCK_MEET,	/* the same, to the home, which opens the lock for that */
	KDSM_MESSAGE_LOCK_MISS,	/* kdsm_wire_lock_miss, to a home */
	KDSM_MESSAGE_LOCK_FREEZE,	/* kdsm_wire_lock, from the home -> kdsm_wire_lock_report */
	KDSM_MESSAGE_LOCK_RESUME,	/* kdsm_wire_lock_resume, from the home */
	KDSM_MESSAGE_FIND,	/* kdsm_wire_find -> kdsm_wire_found */
	KDSM_MESSAGE_STEAL,	/* kdsm_wire_steal -> kdsm_wire_stolen, and the tasks */
	KDSM_MESSAGE_TYPES
};

/* Keys of the chunks first..first+count-1; 0 for those that do not exist yet,
 * except that the first is made.
 */
struct kdsm_wire_keys {
	__le32 id;
	__le32 first;
	__le32 count;		/* 1..KDSM_KEYS_MAX */
} __packed;

#define KDSM_KEYS_MAX		64U

struct kdsm_wire_atomic {
	__le32 id;
	__le32 reserved;
	__le64 offset;
	__le64 operand;
	__le64 compare;
} __packed;

/* Gets of at most KDSM_GATHER_LENGTH bytes each, whose bytes fit into a reply. */
struct kdsm_wire_gather {
	__le32 id;
	__le32 count;		/* 1..KDSM_GATHER_MAX */
	struct {
		__le64 offset;
		__le32 length;
	} __packed places[40];
} __packed;

#define KDSM_GATHER_MAX		40U
#define KDSM_GATHER_LENGTH	64U

/* struct kdsm_find, there and back. */
struct kdsm_wire_find {
	__le32 id;
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

/* struct kdsm_theft, there and back. */
struct kdsm_wire_steal {
	__le32 id;
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

/* Behind it are the tasks, struct kdsm_task_packed in the program's byte order. */
struct kdsm_wire_stolen {
	__le32 taken;
	__le32 busy;
} __packed;

struct kdsm_wire_open {
	char name[KDSM_NAME_SIZE];
	__le32 flags;		/* KDSM_REGION_* */
	__le32 policy;
	__le64 size;
	__le32 block_size;
	__le32 mode;
	__le32 uid;
	__le32 gid;
} __packed;

struct kdsm_wire_region {
	char name[KDSM_NAME_SIZE];
	__le32 id;
	__le32 flags;		/* KDSM_REGION_KEEP */
	__le32 policy;
	__le32 block_size;
	__le64 part_size;
	__le64 base;
	__le32 mode;
	__le32 uid;
	__le32 gid;
	__le32 created;		/* reply to OPEN: 1 if it is new */
} __packed;

/* A setting of a region of policy strict. */
struct kdsm_wire_tune {
	__le32 id;
	__le32 reserved;
	__le64 lease;		/* ns, at most KDSM_LEASE_MAX */
} __packed;

/* Nodes as bits, bit 0 of the first word first. */
#define KDSM_READERS_WORDS	(KDSM_MAX_NODES / 64)
#define KDSM_READERS_SIZE	(KDSM_READERS_WORDS * sizeof(__le64))

/* As the number of a node: none. */
#define KDSM_NOBODY	U16_MAX

/*
 * The ownership of a block went from one node to another. Hand-overs of a block
 * are numbered, that to its first owner being 1; of each number there is one, so to
 * hear of it twice does no harm.
 */
struct kdsm_wire_handover {
	__le64 number;		/* 0: none */
	__le64 wts, rts;	/* of the content */
	__le16 from;		/* who has it; KDSM_NOBODY: known to who made this only */
	__le16 reserved[3];
	/* Policy strict: who has copies. Not sent if that is nobody; see below. */
	__le64 readers[KDSM_READERS_WORDS];
} __packed;

/*
 * A message that ends with a hand-over is one of two lengths: the whole, or without
 * the readers.
 */
static inline bool kdsm_wire_handover_fits(unsigned int length, unsigned int whole)
{
	return length == whole || length == whole - KDSM_READERS_SIZE;
}

/* About one block of a coherent region. */
struct kdsm_wire_block {
	__le32 id;		/* of the region */
	__le32 status;		/* GRANT: 0, or -errno: it is not; ask again */
	__le64 index;
	__le64 clock;		/* READ: of the asking node */
	/* GRANT: this one. READ, OWN: one to the asked node, which may not know it. */
	struct kdsm_wire_handover handover;
} __packed;

enum kdsm_answer {
	KDSM_ANSWER_YES,	/* OWN: this hand-over. READ: who has what; the newest */
	KDSM_ANSWER_QUEUED,	/* OWN: a GRANT follows */
	KDSM_ANSWER_ASK,	/* node: the hand-over was to it; none: it will be next */
	KDSM_ANSWER_RETRY,	/* in a while */
};

struct kdsm_wire_answer {
	__le16 answer;		/* enum kdsm_answer */
	__le16 node;
	__le32 reserved;
	struct kdsm_wire_handover handover;
} __packed;

/* A queue of nodes for a lock; see lock_queue.c. */
struct kdsm_wire_lock {
	__le32 id;		/* of the region */
	__le16 number;
	__le16 level;		/* of the queue; 1: the whole cluster */
	__le32 ticket;
	__le32 epoch;		/* of the queue; FREEZE: the next one */
} __packed;

#define KDSM_WIRE_SUCCESSORS	128U

/*
 * The lock of another queue, of a larger element, that goes to who gets this one. Who
 * waits there is not said: it is found in the ring.
 */
struct kdsm_wire_carried {
	__le16 level;		/* of that queue */
	__le16 id;		/* as which its holder is counted */
	__le32 ticket;
	__le32 debt;
	__le32 debt_sum;
	__le32 passes;
	__le32 flags;		/* KDSM_BATON_MORE */
} __packed;

#define KDSM_WIRE_CARRIED	(KDSM_LOCK_LEVELS - 2)

/* The lock goes to who has that ticket. */
struct kdsm_wire_lock_hand {
	struct kdsm_wire_lock lock;
	__le32 debt;
	__le32 debt_sum;
	__le32 flags;		/* KDSM_BATON_* */
	__le16 known;
	__le16 count;		/* of those carried */
	__le16 successors[KDSM_WIRE_SUCCESSORS];	/* known of them are sent */
	/* Sent right behind those successors, the smallest element first. */
	struct kdsm_wire_carried carried[KDSM_WIRE_CARRIED];
} __packed;

static inline struct kdsm_wire_carried *kdsm_wire_carried(struct kdsm_wire_lock_hand *hand,
							  unsigned int known)
{
	return (struct kdsm_wire_carried *)&hand->successors[known];
}

static inline unsigned int kdsm_wire_hand_size(unsigned int known, unsigned int count)
{
	return offsetof(struct kdsm_wire_lock_hand, successors[known]) +
	       count * sizeof(struct kdsm_wire_carried);
}

#define KDSM_BATON_MORE		(1U << 0)	/* more wait than are known */
#define KDSM_BATON_DEAD		(1U << 1)	/* for programs: -EOWNERDEAD */
#define KDSM_BATON_LOST		(1U << 2)	/* for programs: -ENOTRECOVERABLE */
#define KDSM_BATON_CLOSED	(1U << 3)	/* RMA_RW: readers are excluded */
#define KDSM_BATON_ROW		(1U << 8)	/* CLOSED: writers since, 24 bits */
#define KDSM_BATON_LOCK		(~KDSM_BATON_MORE)	/* those of the lock, not of a queue */

/* Where the asked node stands in that queue. */
struct kdsm_wire_lock_state {
	__le16 state;		/* enum kdsm_queue_state */
	__le16 has_held;
	__le32 ticket;		/* the last that it knows of; DOUBT: it has none from that on */
	__le32 held;		/* the last with which it had the lock, if it has_held */
	__le32 epoch;
} __packed;

/* A node does not answer the sender. */
struct kdsm_wire_lock_miss {
	__le32 node;
	__le32 stuck;		/* 1: its queue is to be written anew without that */
} __packed;

/* What a node is that froze, until it is told to resume; see lock_recover.c. */
struct kdsm_wire_lock_report {
	__le16 state;		/* enum kdsm_queue_state */
	__le16 to;		/* to which it was handed over, without an answer; KDSM_NOBODY */
	__le32 ticket;		/* HELD, LEAVING, WAITING: its own */
	__le32 flags;		/* HELD, LEAVING: KDSM_BATON_DEAD, KDSM_BATON_LOST */
	__le32 reserved;
} __packed;

/* Readers and writers of a lock; see lock_rw.c. */
struct kdsm_wire_rw {
	__le32 id;		/* of the region */
	__le16 number;
	__le16 what;		/* ASK: kdsm_rw_question; ASK's reply, GO: kdsm_rw_answer;
				 * COUNT's reply: kdsm_rw_state; OPEN: T_DC, or retired; 0: as is
				 */
	__le32 turn;		/* ASK, OPEN: counts, for each sender; GO, COUNT: of who is told */
	__le32 found;		/* OPEN, GO, ASK's reply: for readers; see lock_rw.h */
} __packed;

enum kdsm_rw_question {
	KDSM_RW_LET_ME_IN,	/* the sender is counted; may it read, or will it be told? */
	KDSM_RW_TRY,		/* the same, but it does not wait */
	KDSM_RW_COUNT_ME,	/* it does not know if it is counted, and is not to be */
};

enum kdsm_rw_answer {
	KDSM_RW_OUT,		/* it is not counted */
	KDSM_RW_COME,		/* it is counted, and may read */
	KDSM_RW_WAIT,		/* it is not counted, and GO will follow */
	KDSM_RW_MOVED,		/* it is not counted; the counter is not in use */
};

/* What whoever had a lock last has left for the next one; see lock_sign.c. */
struct kdsm_wire_signature {
	__le64 check;		/* of the rest, as far as it is in use */
	__le64 floor;
	__le32 count;
	__le32 reserved;
	struct {
		__le64 ts;
		__le64 first;
		__le32 count;
		__le16 writer;
		__le16 reserved;
	} __packed notices[KDSM_NOTICES_MAX];
} __packed;

/* What it is from now on. */
struct kdsm_wire_lock_resume {
	struct kdsm_wire_lock lock;
	__le16 state;		/* NONE, WAITING, HELD */
	__le16 next;		/* who has the ticket after that; KDSM_NOBODY */
	__le32 flags;		/* HELD, and it was not before: KDSM_BATON_DEAD, KDSM_BATON_LOST */
} __packed;

/*
 * A lock: asked for by name or number, or as it is.
 */
struct kdsm_wire_lock_open {
	__le32 id;		/* of the region */
	__le32 flags;		/* KDSM_LOCK_CREATE, KDSM_LOCK_EXCL; SET: KDSM_WIRE_LOCK_SET */
	char name[KDSM_NAME_SIZE];
	__le32 number;
	__le32 kind;
	__le32 mask;		/* the rest is struct kdsm_lock_settings */
	__le32 t_dc;
	__le32 t_r;
	__le32 t_w;
	__le32 t_l[KDSM_LOCK_LEVELS];
	__le64 keep;
	__le32 first;		/* T_DC when the lock was made */
} __packed;

#define KDSM_WIRE_LOCK_SET	(1U << 31)	/* to node 0: change what is in mask */

/*
 * The immediate of a notifying put: what to wake. Ids are below 65536; slot is
 * the low 16 bits of the number of the 8-byte word, so waiters may wake for
 * another word and must look at theirs.
 */
static inline u32 kdsm_wire_notice(u32 id, u64 offset)
{
	return id << 16 | ((offset >> 3) & 0xffff);
}

#endif /* KDSM_WIRE_H */
