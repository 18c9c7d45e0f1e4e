/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fabric: everything that speaks verbs, seen from above.
 *
 * Peers, memory that peers can reach, operations on it, and messages. No file
 * above the fabric includes <rdma/...>; no file of the fabric knows regions,
 * files or names.
 *
 * Context: functions here may sleep unless they say otherwise.
 */
#ifndef KDSM_FABRIC_H
#define KDSM_FABRIC_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "wire.h"

struct kdsm_connection;
struct kdsm_fabric;
struct kdsm_memory;
struct page;

/* ---- start and stop (fabric.c) ---- */

/* A message that a peer sent, while it is served. */
struct kdsm_request {
	unsigned int from;	/* node, checked when the connection was made */
	bool can_sleep;
	const void *data;	/* length bytes, hostile until checked */
	unsigned int length;
	void *reply;		/* KDSM_MESSAGE_ROOM bytes to fill in */
	unsigned int reply_length;
};

/*
 * Serve a message and return the status for the reply, 0 or -errno. First
 * called with can_sleep false in the completion context (softirq); a handler
 * that has to sleep returns -EAGAIN then, and is called again from a workqueue.
 */
typedef int (*kdsm_handler_t)(void *context, struct kdsm_request *request);

struct kdsm_fabric_config {
	unsigned int node;
	unsigned int nodes;
	u16 port;
	u32 domain;			/* enum kdsm_domain, as wished */
	uuid_t uuid;
	const struct sockaddr_storage *addresses;	/* of every node; copied */

	/* What the layers above do with what comes in. */
	void *context;
	kdsm_handler_t handlers[KDSM_MESSAGE_TYPES];
	void (*notified)(void *context, u32 id, u32 slot);	/* softirq */
	/* A peer went, or, if anew, came back knowing nothing; may sleep. */
	void (*peer_down)(void *context, unsigned int node, bool anew);
	/* A peer has given up this node, and is there again; may sleep. */
	void (*peer_untied)(void *context, unsigned int node);
};

/* With the module. */
int kdsm_fabric_init(void);
void kdsm_fabric_exit(void);

struct kdsm_fabric *kdsm_fabric_start(const struct kdsm_fabric_config *config);
/* Let peers in: handlers are called from now on. */
int kdsm_fabric_listen(struct kdsm_fabric *fabric);
/*
 * Drop all connections for good and let no new ones come: no handler runs any
 * more when this returns, and operations on peers and messages give -EHOSTDOWN.
 * Also happens when the device is removed. May be called again.
 */
void kdsm_fabric_disconnect(struct kdsm_fabric *fabric);
/* After disconnect; all memory must be destroyed, nobody be inside the fabric. */
void kdsm_fabric_stop(struct kdsm_fabric *fabric);

unsigned int kdsm_fabric_node(const struct kdsm_fabric *fabric);
unsigned int kdsm_fabric_nodes(const struct kdsm_fabric *fabric);
u32 kdsm_fabric_domain(const struct kdsm_fabric *fabric);
const char *kdsm_fabric_device(const struct kdsm_fabric *fabric);

/* Connections that were refused, by reason. */
struct kdsm_refused {
	atomic64_t cluster, version, node, message;
};

const struct kdsm_refused *kdsm_fabric_refused(const struct kdsm_fabric *fabric);

struct kdsm_peer_info {
	u32 state;		/* enum kdsm_peer_state */
	u64 connects, errors;
};

void kdsm_fabric_peer(struct kdsm_fabric *fabric, unsigned int node,
		      struct kdsm_peer_info *info);
/*
 * Give up a peer that does not answer, or, if anew, what it was before it came up
 * again: when this returns nothing that it posted before lands here any more, and what
 * it posts afterwards in a batch with a tie of before fails there. Sleeps.
 */
void kdsm_fabric_give_up(struct kdsm_fabric *fabric, unsigned int node, bool anew);
/* Was it given up, and has not been heard of since? */
bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node);
/*
 * What ties this node to a peer: another number each time that the peer came up anew, or
 * gave up this node. 0: nothing is known of it yet.
 */
u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node);
/* Sum up the counters of one peer: KDSM_STAT_COUNT values. */
void kdsm_fabric_stats(struct kdsm_fabric *fabric, unsigned int node, u64 *stats);

/* ---- memory (memory.c) ---- */

/*
 * The part of this node of a space that has the same id and size on every node.
 * Pages are allocated a chunk at a time, when first touched from here or there,
 * zeroed, and charged to the memory cgroup of the task that touches.
 */
#define KDSM_CHUNK_SHIFT	21
#define KDSM_CHUNK_SIZE		BIT(KDSM_CHUNK_SHIFT)

/* Peers may not write it. */
#define KDSM_MEMORY_READ_ONLY	BIT(0)
/*
 * Atomics on it are done by the device, local ones, too, whatever the domain: a
 * message each would cost more. No CPU may do any; loads are fine. Not if the device
 * has no atomics; nor are local ones if it lets CPUs do them.
 */
#define KDSM_MEMORY_DEVICE	BIT(1)

/* ERR_PTR(-ENOMEM), ERR_PTR(-EEXIST). */
struct kdsm_memory *kdsm_memory_create(struct kdsm_fabric *fabric, u32 id, u64 size,
				       unsigned int flags);
/* Nobody may use it any more, no operation on it may be in flight anywhere. */
void kdsm_memory_destroy(struct kdsm_memory *memory);
/* The page at index, or ERR_PTR(-ENOMEM); it stays until destroy. */
struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index);
/* Bytes that the memory of this node may still grow by. */
u64 kdsm_memory_available(void);
/* Bytes allocated. */
u64 kdsm_memory_resident(const struct kdsm_memory *memory);

/* ---- operations (batch.c) ---- */

struct kdsm_batch;

/*
 * One operation on length bytes at (node, offset) of a memory. It and its data
 * are in memory from kmalloc() and belong to the fabric until the batch is done.
 * At most KDSM_SEGMENT_MAX bytes, and the place must not cross a chunk.
 */
#define KDSM_SEGMENT_MAX	SZ_64K

struct kdsm_operation {
	/* set by the caller */
	u8 opcode;		/* enum kdsm_opcode; FIND, STEAL: data is the struct, checked */
	bool notify;		/* PUT: wake the waiters of the word at notice afterwards */
	bool ordered;		/* GET: after all ordered ones on that peer before it */
	u32 node;
	u32 length;
	u64 offset;
	u64 notice;
	void *data;
	u64 operand, compare;

	/* set when the batch is done */
	int status;
	u64 result;

	/* the fabric's own; word is where the device stores the former value */
	struct kdsm_memory *memory;
	struct list_head link;
	u64 word;
};

/* Operations that are posted and waited for together. */
struct kdsm_batch {
	struct kdsm_fabric *fabric;
	struct kdsm_memory *memory;
	u64 tie;			/* set after init: only if this holds; all on one peer */
	struct list_head operations;
	struct list_head parts;		/* chains and calls that were started */
	atomic_t pending;
	ktime_t posted;
	struct completion done;
};

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory);
void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op);
/* The same on another memory than the batch's. */
void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op);
/*
 * Start all of it: a chain of work requests with one doorbell for each peer.
 * Errors are left in the operations. Every batch that was posted must be
 * waited for until done, then finished.
 */
void kdsm_batch_post(struct kdsm_batch *batch);
/*
 * 0: done. -ETIMEDOUT, or -ERESTARTSYS at a signal (a fatal one only, if
 * killable): not done, wait again. With KDSM_NO_TIMEOUT and no signal it ends
 * in bounded time in any case, since peers that do not answer are dropped.
 */
int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state);
void kdsm_batch_finish(struct kdsm_batch *batch);

#define KDSM_NO_TIMEOUT		U64_MAX

/* What takes up to so many ns on average is polled for: poll_us. Any context. */
u64 kdsm_poll_limit(void);

/* ---- messages (message.c) ---- */

/*
 * Send a message to a peer (or serve it at once, if it is this node) and wait
 * for the reply. reply has room for *reply_length bytes, which is set to what
 * came. Returns the status that the handler gave, or -EHOSTDOWN, -EIO,
 * -ETIMEDOUT.
 */
int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length);

/* Of what kdsm_message() returned: its handler ran. If not, it may have, too. */
static inline bool kdsm_message_was_heard(int err)
{
	return err != -EIO && err != -EHOSTDOWN && err != -ETIMEDOUT;
}

#endif /* KDSM_FABRIC_H */
