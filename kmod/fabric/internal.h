/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside the fabric: the structs that its files share. Nothing above the fabric
 * includes this.
 */
#ifndef KDSM_FABRIC_INTERNAL_H
#define KDSM_FABRIC_INTERNAL_H

#include <linux/interrupt.h>
#include <linux/kdsm_table.h>
#include <linux/kdsm_task.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/percpu-rwsem.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "fabric/fabric.h"
#include "stats.h"

/* Connections to one peer: one a CPU, at most so many. */
#define KDSM_QUEUES_MAX		4U
/*
 * And one from a node to itself, on which nothing is done but to register memory.
 * Soft-RoCE executes what is local to a node again, too, when it repeats what was sent
 * before it; the second registration fails, and with it, after a while, the connection.
 */
#define KDSM_QUEUE_REGISTER	KDSM_QUEUES_MAX
#define KDSM_QUEUES		(KDSM_QUEUE_REGISTER + 1)
/* Work requests of operations that may be posted on one connection. */
#define KDSM_SEND_ROOM		128U
/* Messages that may be posted on one connection and not be known to have arrived. */
#define KDSM_MESSAGE_SENDS	64U
/* Every so many of them one is signalled, and its completion tells of all before. */
#define KDSM_SIGNAL_EVERY	16U
/* Work requests in one chain. */
#define KDSM_CHAIN_MAX		32U
/* Receives beyond the credits: notices take one without asking. */
#define KDSM_RECEIVES		(KDSM_CREDITS + 32U)

/*
 * Answer times: a peer that does not acknowledge is given up by the transport
 * after 7 x 4.096 us x 2^17 = 3.8 s, and one that acknowledges, but does not
 * reply to a message, after KDSM_REPLY_TIMEOUT.
 */
#define KDSM_ACK_TIMEOUT	17
#define KDSM_RETRY_COUNT	6	/* Soft-RoCE takes 7 for ever */
#define KDSM_REPLY_TIMEOUT	(30 * HZ)
/* After so long without an answer the transport is asked whether the peer is there. */
#define KDSM_NUDGE_AFTER	(3 * HZ)

enum kdsm_connection_state {
	KDSM_CONNECTION_IDLE,		/* no queue pair */
	KDSM_CONNECTION_CONNECTING,	/* being made; not yet to be used */
	KDSM_CONNECTION_UP,
	KDSM_CONNECTION_BROKEN,		/* teardown is queued or runs */
};

/* A buffer for one message that arrives. */
struct kdsm_receive {
	struct ib_cqe cqe;
	struct kdsm_connection *connection;
	u64 dma;
	void *buffer;
	struct work_struct work;	/* serves it where that may sleep */
};

/*
 * A buffer for one message that leaves. On a connection that this node made it
 * holds a request and is busy until the reply is here; on one that it accepted
 * the slot with the same number holds the reply, and is busy from the arrival of
 * the request until the reply is posted.
 */
struct kdsm_slot {
	struct kdsm_connection *connection;
	u64 dma;
	void *buffer;
	u16 sequence;		/* in the cookie: tells a late reply */
	struct kdsm_call *call;	/* request: who gets the reply */
};

/*
 * One queue pair to or from a peer. The lock guards the state, room, the slots
 * and the list of chains; it is taken with bottom halves off, as completions
 * take it in softirq. Locks nest: poll_lock, then lock.
 */
struct kdsm_connection {
	struct kdsm_fabric *fabric;
	struct kdsm_peer *peer;
	unsigned int queue;
	bool accepted;		/* made by the peer */
	struct kref kref;
	struct list_head link;	/* accepted: in fabric->accepted */

	struct mutex setup;	/* one attempt to connect at a time */
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct tasklet_struct tasklet;
	spinlock_t poll_lock;		/* one task or tasklet takes completions */
	bool cq_dead;		/* under poll_lock */

	struct completion event;	/* of rdma_cm, while connecting */
	int event_status;
	u64 incarnation;	/* of the peer, as it said */
	u32 given_up;		/* made here: by the peer, as the acceptance said; or the peer */
	u64 tie;		/* made here: see kdsm_fabric_tie() */

	spinlock_t lock;		/* see above */
	enum kdsm_connection_state state;
	unsigned int room;	/* work requests that chains may still post */
	struct list_head chains;	/* posted */
	unsigned int sends;	/* messages that may still be posted */
	unsigned int unsignalled;	/* messages since the last signalled one */
	struct ib_cqe sent;	/* of messages */
	unsigned long free_slots;	/* bit mask */
	struct kdsm_slot slots[KDSM_CREDITS];
	struct kdsm_receive receives[KDSM_RECEIVES];
	wait_queue_head_t wait;	/* for room, a slot, or the end of the state */
	struct ib_cqe nudge;
	bool nudging;		/* one is under way */

	void *buffers;		/* of slots and receives; one mapping */
	u64 buffers_dma;
	struct work_struct teardown;
};

struct kdsm_peer {
	struct kdsm_fabric *fabric;
	unsigned int node;
	struct sockaddr_storage address;
	struct kdsm_connection *queues[KDSM_QUEUES];	/* made on first use */
	struct mutex lock;	/* guards the making of queues, incarnation, tie */
	u64 incarnation;
	u64 tie;		/* see kdsm_fabric_tie() */
	u32 untied;		/* how often this incarnation of it has given up this node */
	u32 given_up;		/* how often this node has given up it; under accepted_lock */
	bool away;		/* given up, and not heard of since */
	u32 state;		/* enum kdsm_peer_state */
	unsigned long retry_at;	/* jiffies: no attempt before, while down */
	unsigned int backoff;	/* jiffies */
	u32 latency;		/* running mean of waits, ns */
	atomic64_t connects, errors;
	struct kdsm_counters __percpu *counters;
};

struct kdsm_fabric {
	struct kdsm_fabric_config config;
	const struct kdsm_fabric_upcalls *up;
	u64 incarnation;
	u32 domain;
	unsigned int queues;	/* connections to each peer, for its CPUs */
	struct ib_device *device;
	bool device_is_software;	/* it works on the CPUs of both ends */
	struct ib_pd *pd;
	struct rdma_cm_id *listener;
	struct workqueue_struct *workqueue;
	struct xarray memories;	/* by id */
	/*
	 * Read-held from getting a connection to having posted on it. Taken for
	 * writing after connections were stopped: then nobody is at it any more.
	 */
	struct percpu_rw_semaphore gate;
	struct mutex disconnect_lock;	/* guards the next */
	bool disconnected;		/* no device resource is left */
	char device_name[IB_DEVICE_NAME_MAX];
	struct mutex accepted_lock;	/* guards the list */
	struct list_head accepted;
	atomic_t accepted_count;
	wait_queue_head_t accepted_wait;
	bool stopping;
	struct kdsm_refused refused;
	struct kdsm_peer peers[];
};

/*
 * The calls up inside the fabric: connection.c and message.c are below the files that
 * they call through fabric->up. device.c has the table.
 */
struct kdsm_fabric_upcalls {
	/* A connection was allocated: initialise its slots and receives. */
	void (*created)(struct kdsm_connection *connection);
	/* Its queue pair is there: post receives. 0 or an error of ib_post_recv(). */
	int (*queue_pair_created)(struct kdsm_connection *connection);
	/* Its queue pair is gone: fail every chain and every call that is left. */
	void (*queue_pair_gone)(struct kdsm_connection *connection);
	/* A connection that this node made broke and is idle: try to connect it again. */
	void (*broken)(struct kdsm_connection *connection);
	/* The messages that the fabric itself serves; context is the fabric. */
	kdsm_handler_t handlers[KDSM_MESSAGE_TYPES];
};

/* ---- connection.c ---- */

/* An idle connection, with one reference. ERR_PTR(-ENOMEM). */
struct kdsm_connection *kdsm_connection_create(struct kdsm_peer *peer,
					       unsigned int queue, bool accepted);
void kdsm_connection_put(struct kdsm_connection *connection);
/* The queue pair, once the id has a device. */
int kdsm_connection_create_qp(struct kdsm_connection *connection);
/* Drains it first: no completion comes any more. */
void kdsm_connection_destroy_qp(struct kdsm_connection *connection);
/* With the lock, and up: may what was meant for that tie be posted on it? 0: any. */
static inline bool kdsm_connection_is_tied(const struct kdsm_connection *connection, u64 tie)
{
	return !tie || connection->tie == tie;
}

void kdsm_connection_set_state(struct kdsm_connection *connection,
			       enum kdsm_connection_state state);
/* Something went wrong: fail all that is under way, then be idle. Any context. */
void kdsm_connection_break(struct kdsm_connection *connection);
/* Take completions now, if nobody else does. */
void kdsm_connection_poll(struct kdsm_connection *connection);
/*
 * A reply is overdue. If the peer took the request and then vanished, nothing is
 * under way that the transport could give up: write nothing, to be acknowledged.
 */
void kdsm_connection_nudge(struct kdsm_connection *connection);
/*
 * No connection is up any more, none comes, and none has resources of the
 * device; those made here stay allocated until kdsm_connection_free_all().
 */
void kdsm_connection_stop(struct kdsm_fabric *fabric);
void kdsm_connection_free_all(struct kdsm_fabric *fabric);

/* ---- connect.c ---- */

/*
 * The connection of this CPU to a peer, up, connecting it if need be; it stays
 * allocated as long as the fabric, but may break at any time. Sleeps.
 * ERR_PTR(-EHOSTDOWN), ERR_PTR(-ENOMEM).
 */
struct kdsm_connection *kdsm_connection_get(struct kdsm_fabric *fabric,
					    unsigned int node);
/* The same for a certain queue. */
struct kdsm_connection *kdsm_connection_get_queue(struct kdsm_peer *peer,
						  unsigned int queue);

/*
 * A peer said which incarnation of it is there, and how often it has given up this node.
 * If it came up anew, all that was known of its former life is void. Returns the tie.
 */
u64 kdsm_peer_greeted(struct kdsm_peer *peer, u64 incarnation, u32 given_up);

/* ---- accept.c ---- */

/* Make the listening id; this finds the device. */
int kdsm_accept_bind(struct kdsm_fabric *fabric);

/* ---- memory.c ---- */

struct kdsm_chunk {
	unsigned int count;	/* of pages */
	struct ib_mr *mr;	/* under memory->lock */
	u32 key;		/* 0: not registered */
	struct sg_table table;
	struct page *pages[];
};

struct kdsm_memory {
	struct kdsm_fabric *fabric;
	u32 id;
	u64 size;
	bool read_only;		/* for peers */
	u32 domain;		/* enum kdsm_domain: who does its atomics */
	unsigned long chunks_count;
	refcount_t references;	/* the owner's, and of requests that are served */
	struct completion released;
	atomic64_t resident;
	struct mutex lock;	/* guards allocation and registration of chunks */
	struct kdsm_chunk **chunks;	/* set once; read without the lock */
	u32 *keys[];		/* of each peer's chunks, made on first use; 0: ask */
};

/* The chunk, allocated by this call if need be; NULL: no memory. Sleeps. */
struct kdsm_chunk *kdsm_chunk_get(struct kdsm_memory *memory, unsigned long index);
/* No chunk is registered any more. */
void kdsm_memory_unregister_all(struct kdsm_fabric *fabric);
/* Forget the keys of a peer, which came up anew. */
void kdsm_memory_forget(struct kdsm_fabric *fabric, unsigned int node);
u32 kdsm_memory_id(const struct kdsm_memory *memory);
u64 kdsm_memory_size(const struct kdsm_memory *memory);
bool kdsm_memory_read_only(const struct kdsm_memory *memory);
/* Who does atomics on it: that of the cluster, unless it is KDSM_MEMORY_DEVICE. */
u32 kdsm_memory_domain(const struct kdsm_memory *memory);
/* The memory with this id, with a reference, or NULL. Any context. */
struct kdsm_memory *kdsm_memory_lookup(struct kdsm_fabric *fabric, u32 id);
void kdsm_memory_put(struct kdsm_memory *memory);
/*
 * Copy between this node's part and a buffer; a compare-and-swap or fetch-and-add
 * of the CPU's own on it. Without can_sleep in any context, and -EAGAIN where
 * the chunk does not exist yet. -ENOMEM.
 */
int kdsm_memory_copy(struct kdsm_memory *memory, u64 offset, void *buffer,
		     unsigned int length, bool write, bool can_sleep);
int kdsm_memory_atomic(struct kdsm_memory *memory, bool cas, u64 offset, u64 operand,
		       u64 compare, u64 *former, bool can_sleep);

/* ---- keys.c ---- */

/* Key of the chunk at offset on a peer, asking it if need be. Sleeps. */
int kdsm_memory_key(struct kdsm_memory *memory, unsigned int node, u64 offset,
		    u32 *key);
/* KDSM_MESSAGE_KEYS. May register chunks. */
int kdsm_memory_serve_keys(void *context, struct kdsm_request *request);

/* ---- batch.c ---- */

/* What a batch has started: a chain of work requests, or a delegation. */
struct kdsm_part {
	struct list_head link;		/* in batch->parts */
	struct kdsm_batch *batch;
	struct kdsm_connection *connection;	/* NULL: could not be posted */
	void (*release)(struct kdsm_part *part);
};

/*
 * The last touch of a part: the batch may be gone when this returns. A task that sees
 * batch->done also sees all that the part wrote before.
 */
static inline void kdsm_batch_part_done(struct kdsm_batch *batch)
{
	if (atomic_dec_and_test(&batch->pending))
		complete_all(&batch->done);
}

static inline bool kdsm_operation_is_atomic(const struct kdsm_operation *op)
{
	return op->opcode == KDSM_OP_CAS || op->opcode == KDSM_OP_FAA;
}

/* Of the peer that it is on. */
static inline struct kdsm_counters __percpu *
kdsm_operation_counters(const struct kdsm_batch *batch, const struct kdsm_operation *op)
{
	return batch->fabric->peers[op->node].counters;
}

/* ---- operation.c ---- */

/*
 * With the gate held. Take count operations, at most KDSM_CHAIN_MAX, all there are in
 * the list, and post them on the connection, in order. What cannot be posted has its
 * status; the rest is a part of the batch. Sleeps for room.
 */
void kdsm_chain_start(struct kdsm_batch *batch, struct list_head *ops, unsigned int count,
		      struct kdsm_connection *connection);
/* After the queue pair is gone: all chains on it that are not done have failed. */
void kdsm_operation_fail(struct kdsm_connection *connection);

/* ---- delegate.c ---- */

void kdsm_delegate_atomic(struct kdsm_batch *batch, struct kdsm_operation *op);
/* Is it better to ask for a few such gets by message? */
bool kdsm_delegates_get(const struct kdsm_fabric *fabric, const struct kdsm_operation *op);
/* Ask for all gets of the list, which are on one peer. */
void kdsm_delegate_gets(struct kdsm_batch *batch, struct list_head *gets);
void kdsm_delegate_find(struct kdsm_batch *batch, struct kdsm_operation *op);
void kdsm_delegate_steal(struct kdsm_batch *batch, struct kdsm_operation *op);
int kdsm_delegate_serve_cas(void *context, struct kdsm_request *request);
int kdsm_delegate_serve_faa(void *context, struct kdsm_request *request);
int kdsm_delegate_serve_gather(void *context, struct kdsm_request *request);

/* ---- find.c ---- */

/*
 * Do what find says, which was checked, on this node's part. Without can_sleep in any
 * context, and -EAGAIN, with nothing changed, where memory does not exist yet. -ENOMEM, -EIO,
 * -EOPNOTSUPP.
 */
int kdsm_find(struct kdsm_memory *memory, u64 index, struct kdsm_find *find, bool can_sleep);
/* What is asked of a peer, and what it answers: 0 or -EPROTO. */
void kdsm_find_ask(struct kdsm_wire_find *wire, const struct kdsm_operation *op);
int kdsm_find_answered(struct kdsm_find *find, const struct kdsm_wire_found *found);
int kdsm_find_serve(void *context, struct kdsm_request *request);

/* ---- steal.c ---- */

/*
 * Do what theft says, which was checked, on this part, that of node; the tasks come to
 * tasks, theft->most of them at most. Without can_sleep in any context, and -EAGAIN, with
 * nothing changed, where memory does not exist yet. -ENOMEM, -EIO.
 */
int kdsm_steal(struct kdsm_memory *memory, unsigned int node, u64 crew,
	       struct kdsm_theft *theft, struct kdsm_task_packed *tasks, bool can_sleep);
/* What is asked of a peer, the longest answer, and what it answers: 0 or -EPROTO. */
void kdsm_steal_ask(struct kdsm_wire_steal *wire, const struct kdsm_operation *op);
unsigned int kdsm_steal_reply(const struct kdsm_theft *theft);
int kdsm_steal_answered(struct kdsm_theft *theft, const void *reply, unsigned int length);
int kdsm_steal_serve(void *context, struct kdsm_request *request);

/* ---- message.c ---- */

/* A request under way. done() is called once, in softirq or by a task. */
struct kdsm_call {
	int status;		/* of the reply, or -EIO */
	void *reply;		/* room for reply_length bytes; then what came */
	unsigned int reply_length;
	void (*done)(struct kdsm_call *call);
	struct kdsm_connection *connection;	/* that it was sent on */
	u64 tie;		/* of the batch that it is for, or 0 */
};

/*
 * A request that is served: what handlers see, and the connection that the
 * reply takes.
 */
struct kdsm_serving {
	struct kdsm_request request;
	struct kdsm_connection *connection;
};

/* kdsm_message() for who holds the gate. */
int kdsm_message_gated(struct kdsm_fabric *fabric, unsigned int node,
		       enum kdsm_message_type type, const void *data,
		       unsigned int length, void *reply, unsigned int *reply_length);
/* With the gate held. Send; done() follows if and only if this returns 0. Sleeps for a credit. */
int kdsm_call_post(struct kdsm_fabric *fabric, unsigned int node,
		   enum kdsm_message_type type, const void *data,
		   unsigned int length, struct kdsm_call *call);
void kdsm_message_setup(struct kdsm_connection *connection);
int kdsm_message_post_receives(struct kdsm_connection *connection);
/* After the queue pair is gone: no reply comes any more. */
void kdsm_message_fail(struct kdsm_connection *connection);

#endif /* KDSM_FABRIC_INTERNAL_H */
