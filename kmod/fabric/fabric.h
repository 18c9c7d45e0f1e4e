/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fabric as the layers above see it: peers, memory that peers can reach, operations on
 * that memory, and messages.
 *
 * Only the fabric includes <rdma/...>. The fabric knows nothing of regions, files or names.
 * internal.h has what only the files of the fabric share.
 *
 * The functions here may sleep unless their comments say otherwise.
 */
#ifndef KDSM_FABRIC_H
#define KDSM_FABRIC_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <kdsm/uapi_netlink.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "wire.h"

struct kdsm_connection;
struct kdsm_fabric;
struct kdsm_memory;
struct page;

/* ---- start and stop (device.c) ---- */

/* A message from a peer while a handler serves it */
struct kdsm_request {
	unsigned int from;	/* node; checked when the connection was accepted */
	bool can_sleep;		/* the handler may sleep */
	const void *data;	/* length bytes; untrusted until the handler has checked them */
	unsigned int length;
	void *reply;		/* the handler fills in up to KDSM_MESSAGE_ROOM bytes */
	unsigned int reply_length;	/* set by the handler, in bytes; 0 at first */
};

/**
 * typedef kdsm_handler_t - serve a message from a peer
 * @context: the context of struct kdsm_fabric_config
 * @request: the message; the handler fills in its reply and reply_length
 *
 * The fabric first calls the handler in softirq, with can_sleep false. A handler that has to
 * sleep then returns -EAGAIN, and a worker calls the handler again with can_sleep true.
 *
 * Return: the status of the reply, 0 or -errno.
 */
typedef int (*kdsm_handler_t)(void *context, struct kdsm_request *request);

struct kdsm_fabric_config {
	unsigned int node;		/* number of this node */
	unsigned int nodes;
	u16 port;			/* of all nodes; host order */
	u32 domain;			/* requested; enum kdsm_domain */
	uuid_t uuid;
	bool insecure;			/* peers need not prove that they know a key */
	const struct sockaddr_storage *addresses;	/* one a node; the fabric copies them */

	/* Calls into the layers above */
	void *context;			/* first argument of each call */
	kdsm_handler_t handlers[KDSM_MESSAGE_TYPES];
	/*
	 * A notifying put of a peer, or of this node on its own part, has stored the word at
	 * this offset of the memory with this id. Called with bottom halves off.
	 */
	void (*notified)(void *context, u32 id, u64 offset);
	/*
	 * A peer is down or, if restarted is set, runs with another incarnation and has lost all
	 * its former state. This function may sleep.
	 */
	void (*peer_down)(void *context, unsigned int node, bool restarted);
	/*
	 * The tie to a peer changed: the peer gave up this node, or came up again, and is
	 * now reachable. The connection that brought the new tie is not up before this
	 * function returns. This function may sleep.
	 */
	void (*peer_untied)(void *context, unsigned int node);
};

/**
 * kdsm_fabric_init() - register with the RDMA core, when the module is loaded
 *
 * Return: 0 or -errno.
 */
int kdsm_fabric_init(void);

/**
 * kdsm_fabric_exit() - undo kdsm_fabric_init(), when the module is unloaded
 */
void kdsm_fabric_exit(void);

/**
 * kdsm_fabric_start() - find the device of this node's address and set up the fabric
 * @config: the caller may free it afterwards, but not the object that context points to
 *
 * The fabric accepts no connections before kdsm_fabric_listen(). Unless the configuration is
 * insecure, the calling task has the cluster's key, see kdsm_fabric_load_key().
 *
 * Return: the fabric or ERR_PTR(): -ENODEV if no RDMA device has the address, -EOPNOTSUPP if
 * the device lacks an ability, an error of kdsm_fabric_load_key(), -ENOMEM or another error of the
 * RDMA core.
 */
struct kdsm_fabric *kdsm_fabric_start(const struct kdsm_fabric_config *config);

/**
 * kdsm_fabric_listen() - accept connections of peers
 * @fabric: started
 *
 * The fabric may call handlers from now on.
 *
 * Return: 0 or -errno.
 */
int kdsm_fabric_listen(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_disconnect() - drop all connections and refuse new ones
 * @fabric: started
 *
 * No handler runs any more when this function returns, and operations on peers and messages
 * to peers fail with -EHOSTDOWN. The removal of the device has the same effect. The caller
 * may repeat the call.
 */
void kdsm_fabric_disconnect(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_stop() - free the fabric
 * @fabric: disconnected; all its memories are destroyed, and no task is in a call to it
 */
void kdsm_fabric_stop(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_node() - the number of this node
 * @fabric: started
 *
 * Context: any.
 *
 * Return: the number of this node.
 */
unsigned int kdsm_fabric_node(const struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_add_node() - add a node behind the last one
 * @fabric: started, with less than KDSM_MAX_NODES nodes
 * @address: of the node; differs from those of the others
 *
 * From now on peers connect to this node by the number, and this node to them. The caller
 * serialises this call and kdsm_fabric_remove_node().
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_fabric_add_node(struct kdsm_fabric *fabric, const struct sockaddr_storage *address);

/**
 * kdsm_fabric_remove_node() - remove the last node
 * @fabric: started; the last node is not this one, and no memory spans it
 *
 * Connections with the node break, and no more are made. Messages to the node fail with
 * -EHOSTDOWN. Sleeps, in bounded time, until attempts to connect have ended.
 */
void kdsm_fabric_remove_node(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_domain() - the domain of atomics in force
 * @fabric: started
 *
 * Context: any.
 *
 * Return: enum kdsm_domain, but never KDSM_DOMAIN_AUTO.
 */
u32 kdsm_fabric_domain(const struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_device() - the name of the RDMA device
 * @fabric: started
 *
 * Context: any.
 *
 * Return: the name, which lives as long as the fabric, even if the device is removed.
 */
const char *kdsm_fabric_device(const struct kdsm_fabric *fabric);

/* Numbers of refused connections by reason, and of malformed messages; see KDSM_A_REFUSED_* */
struct kdsm_refused {
	atomic64_t cluster, version, node, message, key, proof, port, silent;
};

/**
 * kdsm_fabric_refused() - the counts of refused connections and malformed messages
 * @fabric: started
 *
 * Context: any.
 *
 * Return: the counts, which may change while the caller reads them.
 */
const struct kdsm_refused *kdsm_fabric_refused(const struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_load_key() - take another key of the cluster from the caller's keyrings
 * @fabric: started
 *
 * The key has type "logon", description "kdsm:UUID" and KDSM_KEY_SIZE bytes. It becomes the
 * newest one; the one before stays valid, others do not.
 *
 * Return: 0 or -ENOKEY, -EKEYEXPIRED or -EKEYREVOKED without such a key; -EKEYREJECTED if it has
 * another size; -EOPNOTSUPP if the cluster is insecure; -ENOENT without HMAC-SHA256 in the kernel;
 * -ENOMEM.
 */
int kdsm_fabric_load_key(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_retire_key() - accept only the newest key from now on
 * @fabric: started
 *
 * Connections that exist stay.
 *
 * Return: 0, or -ENOKEY if there is no other key.
 */
int kdsm_fabric_retire_key(struct kdsm_fabric *fabric);

/**
 * kdsm_fabric_key() - identify a key of the cluster
 * @fabric: started
 * @which: 0: the newest one; 1: the one before
 *
 * Context: any.
 *
 * Return: a number that depends only on the key, and does not tell it; 0 if there is none.
 */
u32 kdsm_fabric_key(struct kdsm_fabric *fabric, unsigned int which);

struct kdsm_peer_info {
	u32 state;		/* enum kdsm_peer_state */
	u64 connects, errors;	/* KDSM_A_PEER_CONNECTS, KDSM_A_PEER_ERRORS */
};

/**
 * kdsm_fabric_peer() - report the state of a peer
 * @fabric: started
 * @node: the peer, or this node
 * @info: filled in
 *
 * Context: any.
 */
void kdsm_fabric_peer(struct kdsm_fabric *fabric, unsigned int node,
		      struct kdsm_peer_info *info);

/**
 * kdsm_fabric_give_up() - exclude a peer that does not answer
 * @fabric: started
 * @node: the peer
 * @restarted: exclude only the former incarnation of a peer that came up again
 *
 * This function breaks the connections that the peer made, and waits for their teardown. When
 * it returns, no operation that the peer posted before can still change the memory of this
 * node. Operations that the peer posts later in a batch with a former tie fail at the peer.
 */
void kdsm_fabric_give_up(struct kdsm_fabric *fabric, unsigned int node, bool restarted);

/**
 * kdsm_fabric_is_away() - whether a peer that this node gave up has not connected since
 * @fabric: started
 * @node: the peer
 *
 * Context: any.
 *
 * Return: true if this node gave up the peer and has exchanged no greeting with the peer since.
 */
bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node);

/**
 * kdsm_fabric_is_down() - whether a peer could not be connected to
 * @fabric: started
 * @node: the peer, or this node
 *
 * Context: any.
 *
 * Return: true if the state of the peer is KDSM_PEER_DOWN.
 */
bool kdsm_fabric_is_down(const struct kdsm_fabric *fabric, unsigned int node);

/**
 * kdsm_fabric_tie() - the tie between this node and a peer
 * @fabric: started
 * @node: the peer
 *
 * The tie changes each time that the peer comes up with another incarnation or gives up
 * this node.
 *
 * Context: any.
 *
 * Return: the tie, or 0 if this node and the peer have not been connected yet.
 */
u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node);

/**
 * kdsm_fabric_stats() - add up the counters of one peer over all CPUs
 * @fabric: started
 * @node: the peer
 * @stats: filled in with KDSM_STAT_COUNT values
 *
 * Context: any.
 */
void kdsm_fabric_stats(struct kdsm_fabric *fabric, unsigned int node, u64 *stats);

/**
 * kdsm_fabric_stats_all() - add up the counters of all peers
 * @fabric: started
 * @sums: KDSM_STAT_COUNT sums. They include peers that were removed, so they never fall
 */
void kdsm_fabric_stats_all(struct kdsm_fabric *fabric, u64 *sums);

/**
 * kdsm_fabric_duration() - count a duration that a layer above has measured
 * @fabric: started
 * @what: enum kdsm_latency
 * @ns: the duration, in ns
 *
 * Context: any.
 */
void kdsm_fabric_duration(struct kdsm_fabric *fabric, enum kdsm_latency what, u64 ns);

/**
 * kdsm_fabric_durations() - add up the durations of a kind over all CPUs
 * @fabric: started
 * @what: enum kdsm_latency
 * @sum: receives the sum of all durations, in ns
 * @counts: filled in with KDSM_LATENCY_CLASSES values, see KDSM_A_LATENCY_COUNTS
 *
 * Context: any.
 */
void kdsm_fabric_durations(struct kdsm_fabric *fabric, enum kdsm_latency what, u64 *sum,
			   u64 *counts);

/* ---- accounts (account.c) ---- */

/*
 * The bytes that some memories hold together on this node. A chunk is charged to the account of
 * its memory and to all accounts above that.
 */
struct kdsm_account {
	struct kdsm_account *parent;	/* NULL: none */
	/* Upper bound of bytes, in percent of RAM; may change. NULL, or 100 and more: none */
	const unsigned int *percent;
	u64 limit;			/* upper bound of bytes, too; 0: none; may change */
	atomic64_t bytes;
	u64 lacked;			/* time of the last failure, in ns: kdsm_memory_lacks() */
};

/**
 * kdsm_account_limit() - the upper bound of an account
 * @account: the account
 *
 * Context: any.
 *
 * Return: the smaller one of the upper bounds now, in bytes, or U64_MAX.
 */
u64 kdsm_account_limit(const struct kdsm_account *account);

/* ---- memory (memory.c) ---- */

/*
 * A memory has the same id and size on every node, and each node holds its own part. A
 * struct kdsm_memory is the part of this node. The first touch, by this node or by a peer,
 * allocates and zeroes a whole chunk of pages, and the memory cgroup of the touching task is
 * charged. The chunk stays until the memory is destroyed or this node drops the chunk.
 */
#define KDSM_CHUNK_SHIFT	21			/* log2 of bytes */
#define KDSM_CHUNK_SIZE		BIT(KDSM_CHUNK_SHIFT)	/* bytes */

/* Flag of kdsm_memory_create(): peers may not write the memory */
#define KDSM_MEMORY_READ_ONLY	BIT(0)
/*
 * Flag of kdsm_memory_create(): the device executes all atomics on the memory, even those of
 * this node on its own part and even in domain sw, because a message for each atomic would
 * cost more. CPUs may load from the memory but may execute no atomics on it.
 *
 * Exceptions: in domain glob, CPUs execute the local atomics. In domain sw on a device
 * without atomics, CPUs execute all atomics.
 */
#define KDSM_MEMORY_DEVICE	BIT(1)

/**
 * kdsm_memory_create() - create this node's part of a memory
 * @fabric: started
 * @id: unique on this node, and the same on every node
 * @size: in bytes, a multiple of the page size, the same on every node
 * @flags: KDSM_MEMORY_READ_ONLY, KDSM_MEMORY_DEVICE
 * @account: the chunks are charged to it; lives as long as the memory; may be NULL
 *
 * Return: the memory, ERR_PTR(-ENOMEM), or ERR_PTR(-EEXIST) if a memory has that id.
 */
struct kdsm_memory *kdsm_memory_create(struct kdsm_fabric *fabric, u32 id, u64 size,
				       unsigned int flags, struct kdsm_account *account);

/**
 * kdsm_memory_destroy() - free this node's part of a memory
 * @memory: no task of this node uses it, and no node has an operation on it in flight
 */
void kdsm_memory_destroy(struct kdsm_memory *memory);

/**
 * kdsm_memory_page() - the page at an index, allocated with its chunk if necessary
 * @memory: the memory
 * @index: in pages, inside the memory
 *
 * A chunk that this node dropped is allocated and zeroed again.
 *
 * Return: the page, which stays until kdsm_memory_destroy() or kdsm_memory_drop(), or
 * ERR_PTR(-ENOMEM).
 */
struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index);

/**
 * kdsm_memory_drop() - free a chunk of this node (drop.c)
 * @memory: the memory
 * @chunk: number of the chunk: its offset in chunks
 *
 * No task of this node uses the pages of the chunk. The handlers of the fabric may use them, as
 * peers may send any request. The function waits until no peer can access the chunk by RDMA. A
 * chunk that was dropped can be touched again, and is zero then.
 *
 * If a peer that knows a key of the chunk does not answer, the chunk is no longer a part of the
 * memory, but its pages stay allocated and charged. Each later call for the memory tries again to
 * free such pages, and kdsm_memory_destroy() frees them.
 *
 * Return: 0. -ENOENT: the chunk does not exist. -ENOMEM: the chunk still exists. -EAGAIN,
 * -EHOSTDOWN, -EIO, -ETIMEDOUT or another error of a peer: the pages stay allocated, see above.
 */
int kdsm_memory_drop(struct kdsm_memory *memory, unsigned long chunk);

/**
 * kdsm_memory_spare() - make a chunk exist, even beyond the bounds of the accounts
 * @memory: the memory
 * @chunk: number of the chunk
 * @spare: number of chunks by which each account of the memory may exceed its bound, and by which
 *	this node may use pages that kdsm_memory_available() reserves for others
 *
 * Before a node can free a chunk of one memory, it may need a chunk of another. Sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_memory_spare(struct kdsm_memory *memory, unsigned long chunk, unsigned int spare);

/**
 * kdsm_memory_exceeds_limit() - whether the account of a memory has more bytes than its limit
 * @memory: the memory
 *
 * It may, after kdsm_memory_spare(), and if the limit was lowered.
 *
 * Context: any.
 */
bool kdsm_memory_exceeds_limit(const struct kdsm_memory *memory);

/**
 * kdsm_memory_lacks() - whether an allocation of a chunk failed within the last 10 s
 * @memory: one of the memories that share an account
 *
 * Context: any.
 *
 * Return: true if one of these memories could not allocate a chunk. An account, this node, or the
 * memory cgroup of the task had nothing left.
 */
bool kdsm_memory_lacks(const struct kdsm_memory *memory);

/**
 * kdsm_memory_holds() - whether a chunk exists on this node
 * @memory: the memory
 * @offset: in the chunk, in bytes, inside the memory
 *
 * Context: any.
 *
 * Return: true if the chunk exists, now.
 */
bool kdsm_memory_holds(const struct kdsm_memory *memory, u64 offset);

/**
 * kdsm_memory_next() - find a chunk that exists on this node
 * @memory: the memory
 * @number: of the chunk to begin with
 *
 * Context: any.
 *
 * Return: the first number from @number on of a chunk that exists, now, or ULONG_MAX.
 */
unsigned long kdsm_memory_next(const struct kdsm_memory *memory, unsigned long number);

/**
 * kdsm_memory_drops() - how many drops of peers' chunks this node has heard of
 * @memory: the memory
 *
 * The number grows with each drop that this node hears of, and may grow more often.
 *
 * Context: any.
 *
 * Return: the number, for struct kdsm_operation.
 */
u64 kdsm_memory_drops(const struct kdsm_memory *memory);

/**
 * kdsm_memory_available() - how much the memories of this node may still grow
 *
 * Return: the bytes by which all memories together may grow.
 */
u64 kdsm_memory_available(void);

/**
 * kdsm_memory_resident() - how much of a memory exists on this node
 * @memory: the memory
 *
 * Context: any.
 *
 * Return: the bytes that are allocated.
 */
u64 kdsm_memory_resident(const struct kdsm_memory *memory);

/* ---- operations (batch.c) ---- */

struct kdsm_batch;

/* Upper bound of the length of an operation, in bytes */
#define KDSM_SEGMENT_MAX	SZ_64K

/*
 * One operation on length bytes at (node, offset) of a memory. The bytes must not cross the
 * boundary of a chunk. The operation and its data come from kmalloc(), because the device
 * accesses them, and belong to the fabric from kdsm_batch_post() until the batch is done.
 */
struct kdsm_operation {
	/* Set by the caller */
	u8 opcode;		/* enum kdsm_opcode */
	/*
	 * PUT of whole words, at most KDSM_PUT_ROOM bytes: after the earlier puts of the batch
	 * to this node, the CPU there stores the words, the first one last, and wakes the tasks
	 * that wait for the first word
	 */
	bool notify;
	/*
	 * GET: start after all earlier gets of the batch from node have ended. Later gets of more
	 * than KDSM_GATHER_LENGTH bytes start after this one has started, in any order.
	 */
	bool ordered;
	/*
	 * GET, except of up to KDSM_GATHER_LENGTH bytes without ordered: fail with -ESTALE if the
	 * peer's chunk was dropped, and this node heard of it when kdsm_memory_drops() was above
	 * this. 0: fail if it was ever dropped. The GET may also fail with -ESTALE if the fabric
	 * cannot tell. Then it does so once, unless the peer drops the chunk again, if the caller
	 * sets a new value each time. Every operation that needs a key fails with -ESTALE if the
	 * peer has dropped the chunk and it does not exist again.
	 */
	u64 since;
	u32 node;
	u32 length;		/* bytes, at most KDSM_SEGMENT_MAX; CAS, FAA: 8 */
	u64 offset;
	void *data;		/* FIND, STEAL: the struct, which the caller has checked */
	u64 operand, compare;	/* CAS: new and expected value; FAA: operand is added */

	/* Valid after kdsm_batch_finish() */
	int status;		/* 0 or -errno */
	u64 result;		/* CAS, FAA: the former value */

	/* Private to the fabric; the device stores the former value of an atomic in word */
	struct kdsm_memory *memory;
	struct list_head link;
	u64 word;
};

/* Operations that a task posts and waits for together */
struct kdsm_batch {
	struct kdsm_fabric *fabric;
	struct kdsm_memory *memory;
	/*
	 * Not 0: post only on connections with this tie. The caller sets it after
	 * kdsm_batch_init(); all operations are then on one peer.
	 */
	u64 tie;
	bool killable;		/* a fatal signal ends waits while posting: status -EINTR */
	u8 latency;		/* enum kdsm_latency of its operations; KDSM_LATENCY_COUNT: none */
	/*
	 * NULL: a task calls kdsm_batch_wait(). Otherwise called in any context, once, when all
	 * operations are done; no task waits. The function calls kdsm_batch_finish(), and may then
	 * free the batch. The caller sets it after kdsm_batch_init().
	 */
	void (*ended)(struct kdsm_batch *batch);
	struct list_head operations;	/* that are not posted yet */
	struct list_head parts;		/* chains and delegations that were started */
	atomic_t pending;		/* parts in flight, and 1 until all parts are started */
	bool started;		/* all parts are started */
	ktime_t posted;
	struct completion done;		/* pending is 0, and ended is NULL */
};

/**
 * kdsm_batch_init() - initialise an empty batch
 * @batch: uninitialised
 * @fabric: started
 * @memory: memory of the operations that kdsm_batch_add() adds
 */
void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory);

/**
 * kdsm_batch_add() - add an operation on the batch's memory
 * @batch: not posted yet
 * @op: the caller has set the fields that the caller sets; the others are 0
 */
void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op);

/**
 * kdsm_batch_add_to() - add an operation on another memory than the batch's
 * @batch: not posted yet
 * @memory: of the same fabric
 * @op: as for kdsm_batch_add(); an ordered GET or a GET of more than KDSM_GATHER_LENGTH bytes,
 *    or a PUT, because requests by message name the batch's memory
 */
void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op);

/**
 * kdsm_batch_post() - start all operations of a batch
 * @batch: initialised
 *
 * Operations on a peer become chains of work requests, each chain with one doorbell, or
 * messages. This CPU executes the operations on this node's own part before the function
 * returns. The function stores errors in the status of the operations. It waits for room to
 * post, for each peer in bounded time, and until a fatal signal if batch->killable is set; the
 * caller sets that after kdsm_batch_init(). The caller must call
 * kdsm_batch_wait() until kdsm_batch_wait() returns 0, and then kdsm_batch_finish(). If
 * batch->ended is set, the caller must not touch the batch any more after the call, but calls
 * kdsm_batch_upkeep() from time to time.
 */
void kdsm_batch_post(struct kdsm_batch *batch);

/**
 * kdsm_batch_wait() - wait until all operations of a batch are done
 * @batch: posted
 * @timeout_ns: timeout in ns, or KDSM_NO_TIMEOUT
 * @state: TASK_INTERRUPTIBLE, TASK_KILLABLE or TASK_UNINTERRUPTIBLE
 *
 * With KDSM_NO_TIMEOUT and without a signal the wait still ends in bounded time, because it drops
 * the connections to peers that have not answered the batch for 30 s; whatever the timeout.
 *
 * Return: 0 if the batch is done; -ETIMEDOUT after the timeout; -ERESTARTSYS after a signal
 * (with TASK_KILLABLE: a fatal one). After an error the batch is still in flight, and the
 * caller must wait again.
 */
int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state);

/* Interval of the upkeep of batches and messages in flight, in jiffies */
#define KDSM_UPKEEP_EVERY	(3 * HZ)

/**
 * kdsm_batch_upkeep() - look after a batch that no task waits for
 * @batch: a batch with ended(), which has not freed the batch: the caller holds a spinlock that
 *	ended() takes first
 *
 * Does for the batch what kdsm_batch_wait() does for others, so that the batch ends in bounded
 * time: detects connections that broke unnoticed, and drops those to peers that have not answered
 * for 30 s.
 *
 * Context: any in which the caller holds a spinlock with bottom halves off.
 */
void kdsm_batch_upkeep(struct kdsm_batch *batch);

/**
 * kdsm_batch_finish() - store the results of a batch in its operations
 * @batch: done
 *
 * The function also frees the memory that the fabric allocated for the batch. The operations
 * belong to the caller again.
 */
void kdsm_batch_finish(struct kdsm_batch *batch);

/**
 * kdsm_fabric_settle() - wait until peers see the puts of this node that are complete
 * @fabric: started
 * @nodes: set of nodes, of which those that do not exist and this node do not matter
 * @messages: filled in with the number of messages that the function sent
 *
 * After this function the CPUs of these nodes, and RDMA reads of all nodes, see what this node
 * has put into their parts. The function sends one message on each connection that carried puts
 * since it was last settled. Sleeps, for bounded time.
 *
 * Return: 0; -EHOSTDOWN, -EIO or -ENOMEM if that is not known for a peer.
 */
int kdsm_fabric_settle(struct kdsm_fabric *fabric, const unsigned long *nodes, u32 *messages);

/* Value of timeout_ns for a wait without a timeout */
#define KDSM_NO_TIMEOUT		U64_MAX

/**
 * kdsm_poll_limit() - the duration up to which a waiter polls instead of sleeping
 *
 * Context: any.
 *
 * Return: upper bound of the mean duration of recent waits, in ns (module parameter poll_us).
 */
u64 kdsm_poll_limit(void);

/* ---- messages (message.c, broadcast.c) ---- */

/**
 * kdsm_message() - send a request to a node and wait for the reply
 * @fabric: started
 * @node: the peer; if this node, the handler runs in the calling task, so the caller holds no
 *    lock that the handler takes
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM
 * @length: in bytes
 * @reply: room for the reply, or NULL
 * @reply_length: room at @reply in bytes, set to the length of the reply; or NULL
 *
 * Return: the status that the handler returned; -EHOSTDOWN, -EIO or -ETIMEDOUT if the peer
 * is down, the connection broke or the peer did not answer; -EPROTO if the reply is
 * malformed; -ENOMEM.
 */
int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length);

/**
 * kdsm_broadcast_begin() - send a request to several nodes in parallel
 * @fabric: started
 * @nodes: bit set of the receivers, KDSM_MAX_NODES bits by node, not empty; this node may be one
 *	of them
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM; copied
 * @length: in bytes
 *
 * Workers send, also to this node, so the caller may hold locks that handlers of this node do not
 * take.
 *
 * Return: requests in flight, which the caller owns and passes to kdsm_broadcast_end(), or
 * ERR_PTR(-ENOMEM): nothing was sent.
 */
struct kdsm_broadcast *kdsm_broadcast_begin(struct kdsm_fabric *fabric,
					    const unsigned long *nodes,
					    enum kdsm_message_type type, const void *data,
					    unsigned int length);

/**
 * kdsm_broadcast_end() - wait for the replies
 * @broadcast: of kdsm_broadcast_begin(); the call frees it
 * @statuses: by node; the call sets those of the receivers, as kdsm_message() returns them
 * @timeout: in jiffies, or MAX_SCHEDULE_TIMEOUT
 * @state: TASK_UNINTERRUPTIBLE or TASK_KILLABLE
 *
 * Without a timeout the wait still ends in bounded time, because kdsm_message() does.
 *
 * Return: 0 if all requests ended. -ETIMEDOUT, or -ERESTARTSYS after a fatal signal: the other
 * requests are still in flight, and their statuses are -ETIMEDOUT.
 */
int kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses, unsigned long timeout,
		       unsigned int state);

/**
 * kdsm_broadcast() - as kdsm_broadcast_begin() and kdsm_broadcast_end()
 * @fabric: started
 * @nodes: bit set of the receivers, KDSM_MAX_NODES bits by node; may be empty
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM
 * @length: in bytes
 * @statuses: by node; the call sets those of the receivers
 * @timeout: in jiffies, or MAX_SCHEDULE_TIMEOUT
 * @state: TASK_UNINTERRUPTIBLE or TASK_KILLABLE
 *
 * Return: as those. After -ENOMEM no status is set.
 */
int kdsm_broadcast(struct kdsm_fabric *fabric, const unsigned long *nodes,
		   enum kdsm_message_type type, const void *data, unsigned int length,
		   int *statuses, unsigned long timeout, unsigned int state);

/**
 * kdsm_tell() - as kdsm_broadcast(), for a caller that needs all receivers to succeed
 * @fabric: started
 * @nodes: bit set of the receivers, KDSM_MAX_NODES bits by node; may be empty
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM
 * @length: in bytes
 * @timeout: in jiffies
 *
 * Return: 0 if all did; the first status by node that is not 0, -EHOSTDOWN for a node that was not
 * heard; or -ENOMEM.
 */
int kdsm_tell(struct kdsm_fabric *fabric, const unsigned long *nodes,
	      enum kdsm_message_type type, const void *data, unsigned int length,
	      unsigned long timeout);

/**
 * kdsm_broadcast_start() - send a request to several nodes, and do not wait
 * @fabric: started
 * @nodes: bit set of the receivers, KDSM_MAX_NODES bits by node; this node may be one of them
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM; copied
 * @length: in bytes
 *
 * The receivers get the request in any order, late or, if memory is short, a receiver cannot be
 * reached or a connection breaks, not at all. Caller may hold locks that handlers of this node
 * take.
 */
void kdsm_broadcast_start(struct kdsm_fabric *fabric, const unsigned long *nodes,
			  enum kdsm_message_type type, const void *data, unsigned int length);

/**
 * kdsm_message_start() - as kdsm_broadcast_start(), to one node
 * @fabric: started
 * @node: the peer, or this node
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM; copied
 * @length: in bytes
 *
 * The receiver may get the request late or not at all, as there. Caller may hold locks that
 * handlers of this node take.
 */
static inline void kdsm_message_start(struct kdsm_fabric *fabric, unsigned int node,
				      enum kdsm_message_type type, const void *data,
				      unsigned int length)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};

	__set_bit(node, nodes);
	kdsm_broadcast_start(fabric, nodes, type, data, length);
}

/**
 * kdsm_message_killable() - as kdsm_message() without reply data, until a fatal signal
 * @fabric: started
 * @node: the peer, or this node
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM
 * @length: in bytes
 *
 * Return: as kdsm_message(); -ERESTARTSYS after a fatal signal, and the request may still be in
 * flight.
 */
int kdsm_message_killable(struct kdsm_fabric *fabric, unsigned int node,
			  enum kdsm_message_type type, const void *data, unsigned int length);

/* An answer to kdsm_inquire() */
struct kdsm_reply {
	int status;		/* as kdsm_message() returns it */
	unsigned int length;	/* of data, in bytes; 0 if status is not 0 */
	u8 data[KDSM_MESSAGE_ROOM] __aligned(8);
};

/**
 * kdsm_inquire() - send a request to several nodes in parallel, and get the replies
 * @fabric: started
 * @nodes: bit set of the receivers, by node; this node may be one of them
 * @type: selects the handler
 * @data: @length bytes, at most KDSM_MESSAGE_ROOM
 * @length: in bytes
 * @replies: one for each receiver, in order of node; filled in
 * @timeout: in jiffies
 *
 * Return: 0, and a receiver that did not answer in time has status -ETIMEDOUT. -ERESTARTSYS after a
 * fatal signal, -ENOMEM: @replies have no meaning. Requests may still be in flight.
 */
int kdsm_inquire(struct kdsm_fabric *fabric, const unsigned long *nodes,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 struct kdsm_reply *replies, unsigned long timeout);

/**
 * kdsm_message_was_heard() - whether the peer answered a message
 * @err: returned by kdsm_message()
 *
 * -ENOMEM does not count as an answer: this node itself may lack the memory to send the
 * message.
 *
 * Context: any.
 *
 * Return: true if the peer answered. If false, the handler may have run or not.
 */
static inline bool kdsm_message_was_heard(int err)
{
	return err != -EIO && err != -EHOSTDOWN && err != -ETIMEDOUT && err != -ENOMEM;
}

#endif /* KDSM_FABRIC_H */
