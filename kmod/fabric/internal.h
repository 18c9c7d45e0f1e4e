/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structs, constants and functions that the files of the fabric share. The layers above the
 * fabric include fabric.h instead.
 */
#ifndef KDSM_FABRIC_INTERNAL_H
#define KDSM_FABRIC_INTERNAL_H

#include <linux/interrupt.h>
#include <kdsm/uapi_table.h>
#include <kdsm/uapi_task.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/percpu-rwsem.h>
#include <linux/rwsem.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "fabric/fabric.h"
#include "stats.h"

/* Upper bound of the connections to one peer, of which there is one per online CPU */
#define KDSM_QUEUES_MAX		4U
/*
 * Queue number of the connection from a node to itself that carries memory registrations
 * only. On a connection to a peer a registration would wait for the messages before it, which
 * wait as long as the peer posts no receives. Besides, when Soft-RoCE retransmits a work
 * request, it also executes the local work requests behind that request again. A repeated
 * registration fails and in the end breaks the connection.
 */
#define KDSM_QUEUE_REGISTER	KDSM_QUEUES_MAX
#define KDSM_QUEUES		(KDSM_QUEUE_REGISTER + 1)
/* Queue number of the connection that carries notifying puts, and others too */
#define KDSM_QUEUE_NOTIFY	0U
/* Work requests of operations that may be in flight on one connection */
#define KDSM_SEND_ROOM		128U
/* Messages that may be posted on one connection before a signalled send completes */
#define KDSM_MESSAGE_SENDS	64U
/* Distance of signalled sends, in messages; a completion covers all sends before it */
#define KDSM_SIGNAL_EVERY	16U
/* Upper bound of the work requests in one chain */
#define KDSM_CHAIN_MAX		32U
/*
 * Connections that peers have begun to make without having proved themselves yet: upper bounds for
 * one claimed peer and for all, and how long one may last, in jiffies
 */
#define KDSM_STRANGERS_PEER	16U
#define KDSM_STRANGERS_MAX	256U
#define KDSM_STRANGER_TIMEOUT	(5 * HZ)
/* Posted receives per connection; the surplus is for notices, which need no credit */
#define KDSM_RECEIVES		(KDSM_CREDITS + 32U)
/* Buffers of a connection for messages, in a page, and the pages that they take */
#define KDSM_BUFFERS		(KDSM_CREDITS + KDSM_RECEIVES)
#define KDSM_PAGE_BUFFERS	(PAGE_SIZE / KDSM_MESSAGE_SIZE)
#define KDSM_BUFFER_PAGES	DIV_ROUND_UP(KDSM_BUFFERS, KDSM_PAGE_BUFFERS)

/*
 * Acknowledgment timeout: 4.096 us x 2^17 = 0.54 s. If a peer does not acknowledge, the
 * transport retries KDSM_RETRY_COUNT times, and so fails the connection after 7 x 0.54 s,
 * which is 3.8 s.
 */
#define KDSM_ACK_TIMEOUT	17
/* Number of retransmissions; with 7, Soft-RoCE retransmits without limit */
#define KDSM_RETRY_COUNT	6
/* Timeout for the reply of a peer that acknowledges the request, in jiffies */
#define KDSM_REPLY_TIMEOUT	(30 * HZ)

enum kdsm_connection_state {
	KDSM_CONNECTION_IDLE,		/* no queue pair */
	KDSM_CONNECTION_CONNECTING,	/* nothing may be posted yet */
	KDSM_CONNECTION_UNPROVEN,	/* the asker has not proved itself; see wire.h */
	KDSM_CONNECTION_UP,
	KDSM_CONNECTION_BROKEN,		/* the teardown is queued or runs */
};

/* The buffer of one posted receive */
struct kdsm_receive {
	struct ib_cqe cqe;
	struct kdsm_connection *connection;
	u64 dma;
	void *buffer;
	struct work_struct work;	/* serves the request in a context that may sleep */
};

/*
 * The buffer of one message to send. On a connection that this node made, the slot holds a
 * request and is busy until the reply arrives. On a connection that this node accepted, the
 * slot with the same number holds the reply and is busy from the arrival of the request until
 * the reply is posted.
 */
struct kdsm_slot {
	struct kdsm_connection *connection;
	u64 dma;
	void *buffer;
	u16 sequence;		/* part of the cookie, to recognise a late reply */
	struct kdsm_call *call;	/* the call that gets the reply; NULL: no request in flight */
};

/*
 * One queue pair to or from a peer. lock protects state, life, room, chains, posted, written,
 * settled, sends, unsignalled, the slots and nudging. Tasks take lock with bottom halves off,
 * because completions take it in softirq. lock nests inside poll_lock.
 */
struct kdsm_connection {
	struct kdsm_fabric *fabric;
	struct kdsm_peer *peer;
	unsigned int queue;
	bool accepted;		/* the peer made the connection */
	struct kref kref;
	/* Accepted: in fabric->accepted, or fabric->strangers until the peer has proved itself */
	struct list_head link;
	bool stranger;		/* accepted: in fabric->strangers; protected by accepted_lock */
	bool draining;		/* accepted: broken while up, and not drained */
	unsigned long since;	/* accepted: when the peer asked, in jiffies */

	struct mutex setup;	/* held during an attempt to connect */
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct tasklet_struct tasklet;
	spinlock_t poll_lock;		/* held while completions are taken from cq */
	bool cq_dead;		/* cq is being destroyed; protected by poll_lock */

	struct completion event;	/* an event of rdma_cm arrived, while connecting */
	int event_status;		/* of that event, 0 or -errno */
	struct kdsm_wire_hello hello;		/* of the asker */
	struct kdsm_wire_welcome welcome;	/* of the accepter */
	bool proving;		/* accepted: the proof has arrived; protected by lock */
	u64 incarnation;	/* of the peer, from its hello or welcome */
	/*
	 * Accepted: how often this node had given up the peer when it accepted. Made here:
	 * how often the peer had given up this node, from its welcome.
	 */
	u32 given_up;
	u64 tie;		/* made here: see kdsm_fabric_tie() */

	spinlock_t lock;		/* see above */
	enum kdsm_connection_state state;
	u32 life;		/* how often the connection came up */
	unsigned int room;	/* work requests that chains may still post */
	struct list_head chains;	/* in flight, in the order in which they were posted */
	u32 posted;		/* number of the chain that was posted last */
	/* Chains with puts that were posted, and how many of them the peer is known to see */
	u32 written, settled;
	u32 quiet;		/* life since which the peer serves nothing of earlier lives */
	unsigned int sends;	/* messages that may still be posted */
	unsigned int unsignalled;	/* messages since the last signalled one */
	struct ib_cqe sent;	/* for completions of signalled messages */
	unsigned long free_slots;	/* bit mask of slots */
	struct kdsm_slot slots[KDSM_CREDITS];
	struct kdsm_receive receives[KDSM_RECEIVES];
	wait_queue_head_t wait;	/* for room, sends, a slot, or a change of state */
	struct ib_cqe nudge;
	bool nudging;		/* a nudge is in flight */

	/* Buffers of slots and receives; single pages, because memory may be fragmented */
	struct {
		void *address;
		u64 dma;
	} pages[KDSM_BUFFER_PAGES];
	struct work_struct teardown;
	struct work_struct again;	/* connects again after a teardown */
};

struct kdsm_peer {
	struct kdsm_fabric *fabric;
	unsigned int node;
	struct sockaddr_storage address;
	struct kdsm_connection *queues[KDSM_QUEUES];	/* made on first use */
	atomic_t draining;	/* connections made by the peer that are broken and not drained */
	struct mutex greeting;	/* held while a greeting of the peer is processed */
	struct mutex lock;	/* protects the creation of queues, incarnation, untied, tie */
	u64 incarnation;	/* of the peer, from its newest greeting; 0: none yet */
	u64 tie;		/* see kdsm_fabric_tie() */
	u32 untied;		/* how often the peer's incarnation has given up this node */
	/* How often this node has given up the peer; protected by accepted_lock */
	u32 given_up;
	unsigned int strangers;	/* connections in fabric->strangers; protected by accepted_lock */
	bool away;		/* given up, and no greeting from the peer since */
	u32 state;		/* enum kdsm_peer_state */
	unsigned long retry_at;	/* with backoff: next attempt to connect, in jiffies */
	unsigned int backoff;	/* in jiffies; 0: the last attempt succeeded */
	/* When the peer refused first without a success since, in jiffies; 0: never */
	unsigned long refused_since;
	u32 latency;		/* running mean of waits for batches, in ns */
	/*
	 * How often this node has forgotten keys of the peer. Changes under the lock of
	 * fabric->memories, after the keys. See kdsm_peer_revocations().
	 */
	u32 revocations;
	atomic64_t connects, errors;
	struct kdsm_counters __percpu *counters;
};

/* A key of the cluster; see secret.c */
struct kdsm_secret {
	struct crypto_shash *hmac;	/* HMAC-SHA256 with the key; NULL: no key */
	u32 id;				/* 0: no key */
};

struct kdsm_fabric {
	struct kdsm_fabric_config config;
	/*
	 * Number of nodes. nodes.c changes it, and leaves a peer that it removed in peers, because
	 * tasks may still use that peer.
	 */
	unsigned int nodes;
	unsigned int peers_made;	/* peers that have counters; never falls */
	const struct kdsm_fabric_upcalls *up;
	u64 incarnation;	/* of this node: random, not 0 */
	u32 domain;		/* enum kdsm_domain in force */
	unsigned int queues;	/* connections to each peer */
	struct ib_device *device;	/* NULL: the device was removed, or the node goes down */
	bool device_has_atomics;
	bool device_is_software;	/* CPUs of both nodes execute each operation */
	/*
	 * Upper bound of the chunks in one registration of entries of 2 MiB, a power of two; 0: the
	 * device takes no such entries
	 */
	unsigned int range_max;
	struct ib_pd *pd;
	struct rdma_cm_id *listener;
	struct workqueue_struct *workqueue;	/* for handlers of messages */
	/*
	 * For teardowns and proofs, on which handlers may wait. It has twice as many workers as
	 * there may be proofs, because a proof may wait for teardowns.
	 */
	struct workqueue_struct *upkeep;
	/* For what may wait long: requests of broadcast.c, and connecting again */
	struct workqueue_struct *senders;
	struct rw_semaphore secrets_lock;	/* protects secrets */
	struct kdsm_secret secrets[2];		/* the newest one first */
	struct xarray memories;	/* by id */
	/*
	 * A task that destroys a memory holds unregistering for reading while it ends the
	 * registrations of the memory and removes the memory from memories. The removal of the
	 * device holds it for writing while it ends all registrations.
	 */
	struct rw_semaphore unregistering;
	/*
	 * A task holds gate for reading from the choice of a connection until it has posted
	 * everything on that connection. kdsm_connection_stop() takes gate for writing after
	 * it has broken all connections, and so waits for the last such task.
	 */
	struct percpu_rw_semaphore gate;
	struct mutex disconnect_lock;	/* protects disconnected */
	bool disconnected;		/* the fabric holds no resource of the device */
	char device_name[IB_DEVICE_NAME_MAX];
	struct mutex accepted_lock;	/* protects accepted, strangers, given_up of the peers */
	struct list_head accepted;	/* connections that peers made */
	struct list_head strangers;	/* the same, but not proven yet; the oldest first */
	unsigned int strangers_count;
	struct delayed_work strangers_work;	/* ends old strangers */
	atomic_t accepted_count;	/* accepted connections that are not freed yet */
	wait_queue_head_t accepted_wait;	/* for shorter accepted, or accepted_count 0 */
	bool stopping;		/* no new connection */
	struct kdsm_refused refused;
	struct kdsm_durations __percpu *durations;
	struct kdsm_peer peers[KDSM_MAX_NODES];
};

/*
 * Calls up inside the fabric. connection.c and message.c call the files above them through
 * fabric->up, which points to the table in device.c.
 */
struct kdsm_fabric_upcalls {
	/* Initialise the slots and receives of a connection that was just allocated */
	void (*created)(struct kdsm_connection *connection);
	/* Post receives on the new queue pair. 0 or an error of ib_post_recv(). */
	int (*queue_pair_created)(struct kdsm_connection *connection);
	/* Fail all chains and calls still listed, after the queue pair was destroyed */
	void (*queue_pair_gone)(struct kdsm_connection *connection);
	/* A connection that this node made broke and is idle now: connect it again */
	void (*broken)(struct kdsm_connection *connection);
	/* The proof of an asker has arrived; see kdsm_accept_proved() */
	int (*proved)(struct kdsm_connection *connection, const void *proof,
		      unsigned int length);
	/* Handlers of the messages that the fabric itself serves; context is the fabric */
	kdsm_handler_t handlers[KDSM_MESSAGE_TYPES];
};

/* Whether no connection with the peer may be made, because this node or the peer leaves */
static inline bool kdsm_peer_is_closed(const struct kdsm_peer *peer)
{
	return READ_ONCE(peer->fabric->stopping) || peer->node >= READ_ONCE(peer->fabric->nodes);
}

/* ---- nodes.c ---- */

int kdsm_peers_init(struct kdsm_fabric *fabric);
void kdsm_peers_exit(struct kdsm_fabric *fabric);

/* ---- connection.c ---- */

/* Return an idle connection with one reference, or ERR_PTR(-ENOMEM) */
struct kdsm_connection *kdsm_connection_create(struct kdsm_peer *peer,
					       unsigned int queue, bool accepted);
void kdsm_connection_put(struct kdsm_connection *connection);
/* Create the queue pair. connection->id must have a device. */
int kdsm_connection_create_qp(struct kdsm_connection *connection);
/*
 * Let the queue pair send and receive, when the request (accepted) or the acceptance of the peer
 * has arrived. The peer may not access memory. param is that of rdma_accept(), or NULL: made here.
 */
int kdsm_connection_start_qp(struct kdsm_connection *connection,
			     const struct rdma_conn_param *param);
/* Let the peer access memory with the keys that it is told. */
int kdsm_connection_grant(struct kdsm_connection *connection);
/* Drain and destroy the queue pair. No completion arrives after this returns. */
void kdsm_connection_destroy_qp(struct kdsm_connection *connection);
/*
 * Whether an operation meant for a tie may be posted; tie 0 matches every connection. Caller
 * holds connection->lock and has found the connection up.
 */
static inline bool kdsm_connection_is_tied(const struct kdsm_connection *connection, u64 tie)
{
	return !tie || connection->tie == tie;
}

void kdsm_connection_set_state(struct kdsm_connection *connection,
			       enum kdsm_connection_state state);
/*
 * While a connection is being made: report that a step has succeeded, or the error by which the
 * attempt fails. The first error stays. Any context.
 */
void kdsm_connection_told(struct kdsm_connection *connection, int status);
/*
 * Set an unproven connection up. Fails with the first error that was told, or with -ESTALE if the
 * connection has broken.
 */
int kdsm_connection_rise(struct kdsm_connection *connection);
/*
 * If the connection is up, or accepted and unproven, set it broken and queue its teardown. If it is
 * unproven and made here, end the attempt. Any context.
 */
void kdsm_connection_break(struct kdsm_connection *connection);
/*
 * Wait on connection->wait for condition, at most KDSM_REPLY_TIMEOUT, or for a fatal signal if
 * killable. 0, -EINTR or -ETIMEDOUT.
 */
#define kdsm_connection_wait_for(connection, condition, killable)				\
({												\
	long __left = ___wait_event((connection)->wait, ___wait_cond_timeout(condition),	\
				    (killable) ? TASK_KILLABLE : TASK_UNINTERRUPTIBLE, 0,	\
				    KDSM_REPLY_TIMEOUT, __ret = schedule_timeout(__ret));	\
												\
	__left > 0 ? 0 : __left < 0 ? -EINTR : -ETIMEDOUT;					\
})
/* Take completions, unless another task or the tasklet is taking them */
void kdsm_connection_poll(struct kdsm_connection *connection);
/*
 * Post an empty RDMA write because a reply is overdue. If the peer vanished after it
 * acknowledged the request, nothing else is in flight for which the transport could time out.
 */
void kdsm_connection_nudge(struct kdsm_connection *connection);
/*
 * Break all connections, prevent new ones, and wait until none holds a resource of the
 * device. The connections that this node made stay allocated until
 * kdsm_connection_free_all().
 */
void kdsm_connection_stop(struct kdsm_fabric *fabric);
void kdsm_connection_free_all(struct kdsm_fabric *fabric);

/* ---- connect.c ---- */

/*
 * Return this CPU's connection to a peer, and connect it if it is not up. The connection
 * stays allocated as long as the fabric, but may break at any time. ERR_PTR(-EHOSTDOWN),
 * ERR_PTR(-ENOMEM). Sleeps. A caller that posts on the connection holds fabric->gate for
 * reading.
 */
struct kdsm_connection *kdsm_connection_get(struct kdsm_fabric *fabric,
					    unsigned int node);
/* The same for the connection with a given queue number */
struct kdsm_connection *kdsm_connection_get_queue(struct kdsm_peer *peer,
						  unsigned int queue);

/*
 * Process the incarnation and the give-up count of a peer's hello or welcome. If the
 * incarnation is another one, drop everything that belongs to the former one. Return the tie
 * of the greeting.
 */
u64 kdsm_peer_greeted(struct kdsm_peer *peer, u64 incarnation, u32 given_up);

/* ---- accept.c ---- */

/* Create the listening id, which also finds the device. -ENODEV: no device has the address. */
int kdsm_accept_bind(struct kdsm_fabric *fabric);

/*
 * The asker has sent its proof: check it, and let the connection serve the peer. Sleeps. 0, or an
 * error after which the caller breaks the connection.
 */
int kdsm_accept_proved(struct kdsm_connection *connection, const void *proof,
		       unsigned int length);
/* End connections of strangers that have not proved themselves in time. */
void kdsm_accept_expire(struct work_struct *work);

/* ---- secret.c ---- */

void kdsm_secret_free(struct kdsm_secret *secret);
/* Whether this node has the key. Id 0 is known only without keys (config.insecure). */
bool kdsm_secret_known(struct kdsm_fabric *fabric, u32 id);
/*
 * Compute the proof of a role for an exchange; the hello names the key. 0, -ENOKEY or an error of
 * the crypto API. Sleeps.
 */
int kdsm_secret_prove(struct kdsm_fabric *fabric, enum kdsm_role role,
		      const struct kdsm_wire_hello *hello,
		      const struct kdsm_wire_welcome *welcome, u8 proof[KDSM_PROOF_SIZE]);
/* The same for a proof of the peer; -EKEYREJECTED: it is wrong. */
int kdsm_secret_verify(struct kdsm_fabric *fabric, enum kdsm_role role,
		       const struct kdsm_wire_hello *hello,
		       const struct kdsm_wire_welcome *welcome,
		       const u8 proof[KDSM_PROOF_SIZE]);

/* ---- account.c ---- */

/*
 * Charge the account and those above it, or return false if one of them would exceed its upper
 * bound by more than spare bytes. account may be NULL. Any context.
 */
bool kdsm_account_charge(struct kdsm_account *account, u64 bytes, u64 spare);
void kdsm_account_uncharge(struct kdsm_account *account, u64 bytes);

/* ---- memory.c ---- */

struct kdsm_chunk {
	unsigned int count;	/* of pages */
	struct page *first;	/* of contiguous pages; NULL: the pages are in pages[] */
	/* Newest registration that covers the chunk, or NULL; protected by memory->registering */
	struct kdsm_registration *registration;
	struct page *pages[];
};

/* A chunk of a peer, as this node knows it. Changes under the lock of fabric->memories. */
struct kdsm_peer_key {
	u32 key;		/* 0: not known */
	u64 dropped;		/* memory->drops when this node heard last of a drop; 0: never */
};

struct kdsm_memory {
	struct kdsm_fabric *fabric;
	u32 id;
	u64 size;
	bool read_only;		/* for peers */
	u32 domain;		/* enum kdsm_domain: the CPUs or the device do the atomics */
	unsigned long chunks_count;
	unsigned long windows_count;
	struct kdsm_account *account;	/* charged for each chunk; or NULL */
	refcount_t references;	/* one of the creator, one of each kdsm_memory_lookup() */
	struct completion released;	/* the last reference was dropped */
	atomic64_t resident;	/* bytes allocated on this node */
	struct mutex lock;	/* protects the allocation of windows and chunks */
	/*
	 * By window and chunk, and read without lock. A window is set once. kdsm_memory_drop()
	 * takes chunks out: a reader that may run meanwhile uses a chunk inside rcu_read_lock(), or
	 * with registering held.
	 */
	struct kdsm_chunk ***windows;
	struct mutex dropping;	/* held during a drop */
	/*
	 * Set of the chunks that were ever dropped; NULL: none. Changes with registering and lock
	 * held.
	 */
	unsigned long *dropped;
	/* Protects registrations, leftovers; see registration.c. lock nests inside. */
	struct mutex registering;
	struct list_head registrations;	/* the newest one last */
	struct list_head leftovers;	/* dropped chunks that peers may still access; see drop.c */
	u64 drops;		/* see kdsm_memory_drops(); under the lock of fabric->memories */
	unsigned int nodes;	/* when the memory was made: of keys */
	/* By peer, window and chunk; each level is allocated on first use */
	struct kdsm_peer_key **keys[];
};

/* How many chunks a window has: fewer than KDSM_WINDOW_CHUNKS in the last one */
static inline unsigned int kdsm_window_size(const struct kdsm_memory *memory,
					    unsigned long window)
{
	return min_t(unsigned long, KDSM_WINDOW_CHUNKS,
		     memory->chunks_count - (window << KDSM_WINDOW_SHIFT));
}

/* The page of a chunk at an index below chunk->count */
static inline struct page *kdsm_chunk_page(const struct kdsm_chunk *chunk, unsigned int i)
{
	return chunk->first ? chunk->first + i : chunk->pages[i];
}

/* Return the chunk, or NULL if it does not exist. Any context. */
struct kdsm_chunk *kdsm_chunk_peek(const struct kdsm_memory *memory, unsigned long index);
/*
 * Return the chunk, allocated if necessary, or ERR_PTR(-ENOMEM). Unless again is set, a chunk that
 * was dropped is not allocated: ERR_PTR(-ENODATA). Sleeps.
 */
struct kdsm_chunk *kdsm_chunk_get(struct kdsm_memory *memory, unsigned long index, bool again);
/*
 * Take a chunk that exists out of the memory, and note that it was dropped. The caller holds
 * memory->registering and frees the chunk after an RCU grace period.
 */
struct kdsm_chunk *kdsm_chunk_take(struct kdsm_memory *memory, unsigned long index);
void kdsm_chunk_free(struct kdsm_chunk *chunk);
/* End the registrations of all memories. All connections are stopped. */
void kdsm_memory_unregister_all(struct kdsm_fabric *fabric);
/* Forget the keys of a peer that came up with another incarnation, or gave up this node */
void kdsm_memory_forget(struct kdsm_fabric *fabric, unsigned int node);
u32 kdsm_memory_id(const struct kdsm_memory *memory);
u64 kdsm_memory_size(const struct kdsm_memory *memory);
bool kdsm_memory_read_only(const struct kdsm_memory *memory);
/* The domain of atomics on the memory: that of the fabric, except with KDSM_MEMORY_DEVICE */
u32 kdsm_memory_domain(const struct kdsm_memory *memory);
/* Return the memory with this id and take a reference, or NULL. Any context. */
struct kdsm_memory *kdsm_memory_lookup(struct kdsm_fabric *fabric, u32 id);
void kdsm_memory_put(struct kdsm_memory *memory);
/*
 * Copy from this node's part to a buffer or, if write is set, from the buffer to the part. The
 * bytes are inside the memory. Any context if can_sleep is false. 0; -ENOMEM; -EAGAIN if
 * can_sleep is false and a chunk does not exist yet.
 */
int kdsm_memory_copy(struct kdsm_memory *memory, u64 offset, void *buffer,
		     unsigned int length, bool write, bool can_sleep);
/*
 * Copy whole words from a buffer to the part, the first word last. A task that loads the new
 * first word with acquire semantics sees the others. Context and errors as kdsm_memory_copy();
 * after an error the first word is unchanged.
 */
int kdsm_memory_announce(struct kdsm_memory *memory, u64 offset, void *buffer,
			 unsigned int length, bool can_sleep);
/* Compare-and-swap or fetch-and-add by this CPU; context and errors as kdsm_memory_copy() */
int kdsm_memory_atomic(struct kdsm_memory *memory, bool cas, u64 offset, u64 operand,
		       u64 compare, u64 *former, bool can_sleep);

/* ---- registration.c ---- */

struct kdsm_registration {
	struct list_head link;		/* in memory->registrations, or of a chunk in drop.c */
	unsigned long first;		/* chunk */
	unsigned int count;		/* of chunks */
	unsigned int page_size;		/* of the entries that the device gets */
	struct ib_mr *mr;		/* NULL: ended */
	struct sg_table table;
	DECLARE_BITMAP(told, KDSM_MAX_NODES);	/* peers that were told the key */
};

/* A key, and the chunks that it covers */
struct kdsm_key {
	u32 key;
	unsigned long first;
	unsigned int count;
};

/*
 * Register a chunk that exists, unless it is registered, and fill in the key. 0, -ENOMEM, -EINVAL,
 * -ENOTCONN, -EOPNOTSUPP. Caller holds fabric->gate for reading and memory->registering;
 * connection is that of KDSM_QUEUE_REGISTER.
 */
int kdsm_chunk_register(struct kdsm_memory *memory, unsigned long index,
			struct kdsm_connection *connection, struct kdsm_key *key);
/*
 * Check that the device accesses memory itself, not a copy. 0, -ENOMEM, -EOPNOTSUPP, or an error of
 * the mapping.
 */
int kdsm_registration_check(struct kdsm_fabric *fabric);
/* End all registrations of the memory; the device exists. */
void kdsm_memory_unregister(struct kdsm_memory *memory);
/*
 * Move all registrations that cover a chunk, which exists, from memory->registrations to a list.
 * Caller holds memory->registering.
 */
void kdsm_registrations_take(struct kdsm_memory *memory, unsigned long index,
			     struct list_head *taken);
/* End a registration, unless it was ended before. Caller holds memory->registering. */
void kdsm_registration_end(struct kdsm_memory *memory, struct kdsm_registration *registration);

/* ---- drop.c ---- */

/* A chunk that was taken out of its memory. Only the holder of memory->dropping changes it. */
struct kdsm_leftover {
	struct list_head link;		/* in memory->leftovers */
	unsigned long index;
	struct kdsm_chunk *chunk;
	struct list_head registrations;	/* that cover the chunk */
};

/* ---- keys.c ---- */

/*
 * Get the key for an operation on a peer's chunk, and request it from the peer if it is not known.
 * Caller holds fabric->gate for reading. 0, -ENOMEM, -EHOSTDOWN, -EIO; -ESTALE: see op->since.
 * Sleeps.
 */
int kdsm_memory_key(const struct kdsm_operation *op, u32 *key);

/*
 * How often this node has forgotten keys of the peer. A key that was looked up after this call is
 * valid as long as the number stays the same; operation.c has the details.
 */
static inline u32 kdsm_peer_revocations(const struct kdsm_peer *peer)
{
	/* Pairs with smp_store_release() in kdsm_peer_forgot(). */
	return smp_load_acquire(&peer->revocations);
}

/* This node has forgotten keys of the peer; caller holds the lock of fabric->memories. */
static inline void kdsm_peer_forgot(struct kdsm_peer *peer)
{
	/* Pairs with smp_load_acquire() in kdsm_peer_revocations(). */
	smp_store_release(&peer->revocations, peer->revocations + 1);
}

/* Handler of KDSM_MESSAGE_REVOKE: forget keys, and wait for the operations that use them */
int kdsm_memory_serve_revoke(void *context, struct kdsm_request *request);
/* Handler of KDSM_MESSAGE_KEYS: register the chunks and reply with their keys */
int kdsm_memory_serve_keys(void *context, struct kdsm_request *request);

/* ---- batch.c ---- */

/* A piece of a batch in flight: a chain of work requests, or a delegation */
struct kdsm_part {
	struct list_head link;		/* in batch->parts */
	struct kdsm_batch *batch;
	struct kdsm_connection *connection;	/* NULL: not posted */
	bool done;
	/* Store the results that are not in the operations yet, and free the part */
	void (*release)(struct kdsm_part *part);
};

/* The batch waits for one thing less. The caller must not touch the batch afterwards. */
static inline void kdsm_batch_drop(struct kdsm_batch *batch)
{
	if (!atomic_dec_and_test(&batch->pending))
		return;
	if (batch->ended)
		batch->ended(batch);
	else
		complete_all(&batch->done);
}

/*
 * End one part. The caller must not touch the part or the batch afterwards, because the
 * waiter may have freed them. A task that sees batch->done complete also sees all writes
 * that preceded this call in every part.
 */
static inline void kdsm_batch_part_done(struct kdsm_part *part)
{
	WRITE_ONCE(part->done, true);
	kdsm_batch_drop(part->batch);
}

static inline bool kdsm_operation_is_atomic(const struct kdsm_operation *op)
{
	return op->opcode == KDSM_OP_CAS || op->opcode == KDSM_OP_FAA;
}

/* The counters of the peer that executes the operation */
static inline struct kdsm_counters __percpu *
kdsm_operation_counters(const struct kdsm_batch *batch, const struct kdsm_operation *op)
{
	return batch->fabric->peers[op->node].counters;
}

/* ---- operation.c ---- */

/*
 * Common state of the chains of a batch on one peer. A put with notify must not take effect
 * without the earlier puts of the batch. So all chains are posted while the connection stays up:
 * a chain that was in flight when the connection broke may have failed. Besides, the keys of the
 * chains may be void after that, if the peer has restarted.
 */
struct kdsm_posting {
	struct kdsm_connection *connection;
	u32 life;		/* of the connection, on which all chains are posted */
	int failed;		/* status of a put that could not be posted, or 0 */
};

/*
 * Post all operations of the list in order, as one chain. count is the length of the list, at
 * most KDSM_CHAIN_MAX. An operation that cannot be posted gets a status, as does a put with
 * notify behind a put that could not be posted; the others become a part of the batch. Caller
 * holds fabric->gate for reading. Sleeps until the connection has room, at most
 * KDSM_REPLY_TIMEOUT.
 */
void kdsm_chain_start(struct kdsm_batch *batch, struct list_head *ops, unsigned int count,
		      struct kdsm_posting *posting);
/*
 * Wait until all chains are done that use keys of the peer from before the last change of its
 * revocations. Sleeps, for bounded time.
 */
void kdsm_operation_drain(struct kdsm_peer *peer);
/* Fail all chains that are not done. The connection's queue pair is destroyed. */
void kdsm_operation_fail(struct kdsm_connection *connection);

/* ---- put.c ---- */

/* Length of the message of a notifying put, in bytes */
unsigned int kdsm_put_size(const struct kdsm_operation *op);
/* Write that message to a buffer */
void kdsm_put_write(void *message, const struct kdsm_operation *op);
/*
 * Serve KDSM_MESSAGE_PUT. Return false if the message makes no sense; length is that of the
 * payload. Softirq.
 */
bool kdsm_put_serve(struct kdsm_fabric *fabric, void *payload, unsigned int length);

/* ---- delegate.c ---- */

/*
 * kdsm_delegate_atomic(), _gets(), _find() and _steal() send requests, which become parts of
 * the batch. If a request cannot be sent, its operations get a status. Caller holds
 * fabric->gate for reading. The functions sleep.
 */
void kdsm_delegate_atomic(struct kdsm_batch *batch, struct kdsm_operation *op);
/* Whether several gets like this one cost less as one message than as RDMA reads */
bool kdsm_delegates_get(const struct kdsm_fabric *fabric, const struct kdsm_operation *op);
/* Request all gets of the list, which are on one peer */
void kdsm_delegate_gets(struct kdsm_batch *batch, struct list_head *gets);
void kdsm_delegate_find(struct kdsm_batch *batch, struct kdsm_operation *op);
void kdsm_delegate_steal(struct kdsm_batch *batch, struct kdsm_operation *op);
int kdsm_delegate_serve_cas(void *context, struct kdsm_request *request);
int kdsm_delegate_serve_faa(void *context, struct kdsm_request *request);
int kdsm_delegate_serve_gather(void *context, struct kdsm_request *request);

/* ---- find.c ---- */

/*
 * Find or put a node on this node's part. The caller has checked find. Any context if
 * can_sleep is false. 0; -ENOMEM, -EIO, -EOPNOTSUPP; -EAGAIN if can_sleep is false and a chunk
 * does not exist yet or the walk is long. After an error the memory is unchanged, but find is
 * not.
 */
int kdsm_find(struct kdsm_memory *memory, u64 index, struct kdsm_find *find, bool can_sleep);
/* Fill in the request to a peer */
void kdsm_find_ask(struct kdsm_wire_find *wire, const struct kdsm_operation *op);
/* Check a peer's reply and store it in find. 0 or -EPROTO. */
int kdsm_find_answered(struct kdsm_find *find, const struct kdsm_wire_found *found);
int kdsm_find_serve(void *context, struct kdsm_request *request);

/* ---- steal.c ---- */

/*
 * Steal up to theft->most tasks from this node's part and store them in tasks. The caller has
 * checked theft; node is the number of this node. Any context if can_sleep is false. 0;
 * -ENOMEM and -EIO, after which tasks may be lost; -EAGAIN, with no task taken, if can_sleep
 * is false and a chunk does not exist yet.
 */
int kdsm_steal(struct kdsm_memory *memory, unsigned int node, u64 crew,
	       struct kdsm_theft *theft, struct kdsm_task_packed *tasks, bool can_sleep);
/* Fill in the request to a peer */
void kdsm_steal_ask(struct kdsm_wire_steal *wire, const struct kdsm_operation *op);
/* Length of a reply with theft->most tasks, the longest one, in bytes */
unsigned int kdsm_steal_reply(const struct kdsm_theft *theft);
/* Check a peer's reply and store it in theft. 0 or -EPROTO. */
int kdsm_steal_answered(struct kdsm_theft *theft, const void *reply, unsigned int length);
int kdsm_steal_serve(void *context, struct kdsm_request *request);

/* ---- message.c ---- */

/* A request in flight. The fabric calls done() once, in softirq or in a task. */
struct kdsm_call {
	int status;		/* of the reply, or -EIO */
	void *reply;		/* room for reply_length bytes */
	unsigned int reply_length;	/* set to the length of the reply when done */
	void (*done)(struct kdsm_call *call);
	struct kdsm_connection *connection;	/* that carries the request */
	u64 tie;		/* not 0: send only on a connection with this tie */
	bool proves;		/* PROVE: send only on an unproven connection */
	bool killable;		/* a fatal signal ends the wait for a slot: -EINTR */
};

/* A request being served: the part that handlers see, and the connection for the reply */
struct kdsm_serving {
	struct kdsm_request request;
	struct kdsm_connection *connection;
};

/* As kdsm_message(), but the caller holds fabric->gate for reading */
int kdsm_message_gated(struct kdsm_fabric *fabric, unsigned int node,
		       enum kdsm_message_type type, const void *data,
		       unsigned int length, void *reply, unsigned int *reply_length);
/*
 * Send a request. The fabric calls done() if and only if this function returns 0. -EHOSTDOWN,
 * -ENOMEM, -EIO, -EINTR; -ETIMEDOUT: no slot became free, and the connection is broken now. Caller
 * holds fabric->gate for reading. Sleeps until a slot is free, at most KDSM_REPLY_TIMEOUT.
 */
int kdsm_call_post(struct kdsm_fabric *fabric, unsigned int node,
		   enum kdsm_message_type type, const void *data,
		   unsigned int length, struct kdsm_call *call);
/* Send PROVE on a connection that is unproven, as kdsm_call_post(). */
int kdsm_message_prove(struct kdsm_connection *connection, const u8 proof[KDSM_PROOF_SIZE],
		       struct kdsm_call *call);
/* As kdsm_call_post(), on a connection that this node made */
int kdsm_call_post_on(struct kdsm_connection *connection, enum kdsm_message_type type,
		      const void *data, unsigned int length, struct kdsm_call *call);
void kdsm_message_setup(struct kdsm_connection *connection);
int kdsm_message_post_receives(struct kdsm_connection *connection);
/* Fail all calls without a reply. The connection's queue pair is destroyed. */
void kdsm_message_fail(struct kdsm_connection *connection);

/* ---- broadcast.c ---- */

/* Create and destroy the workqueue of the senders. 0 or -ENOMEM. */
int kdsm_broadcast_init(struct kdsm_fabric *fabric);
void kdsm_broadcast_exit(struct kdsm_fabric *fabric);

/* ---- settle.c ---- */

/*
 * Wait until the peer has served all notifying puts that it got on this connection before the
 * connection broke the last time. *life is set to the life of the connection for which that
 * holds. Caller holds fabric->gate for reading. 0, -EHOSTDOWN, -EIO, -ENOMEM.
 */
int kdsm_settle_former(struct kdsm_connection *connection, u32 *life);
/* Handler of KDSM_MESSAGE_SETTLE */
int kdsm_settle_serve(void *context, struct kdsm_request *request);

#endif /* KDSM_FABRIC_INTERNAL_H */
