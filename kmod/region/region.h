/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions on one node: the interface for the other folders. The coherence of a region's
 * blocks is in coherence/coherence.h, its locks in lock/lock.h.
 */
#ifndef KDSM_REGION_H
#define KDSM_REGION_H

#include <kdsm/uapi.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "cluster.h"
#include "coherence/coherence.h"

struct file;
struct kdsm_locks;
struct kdsm_user;
struct vm_area_struct;

/* Number of wait queues of a region; a waiter uses one of them by the slot of its word */
#define KDSM_WAIT_BUCKETS	64

/*
 * Calls up, to the locks, which are a part of every region. cluster->regions_up is the
 * table; cluster.c sets it.
 */
struct kdsm_region_upcalls {
	/*
	 * Create region->locks. Messages may reach the locks as soon as this function
	 * returns. 0 or -ENOMEM.
	 */
	int (*create_locks)(struct kdsm_region *region);
	/* Free region->locks. No task uses the region any more. */
	void (*destroy_locks)(struct kdsm_region *region);
	/* Return the page of lock words with this index, ERR_PTR(-EINVAL) or ERR_PTR(-ENOMEM) */
	struct page *(*lock_page)(struct kdsm_locks *locks, pgoff_t index);
};

/* The processes that map a region of policy release */
struct kdsm_mappings {
	spinlock_t lock;		/* protects the other fields; innermost */
	struct list_head list;		/* of struct kdsm_mapping; see notifier.c */
	unsigned int doubts;		/* mappings that may hide writes; see notifier.c */
};

/* A region on this node. All fields but those that say so are constant. */
struct kdsm_region {
	struct kdsm_cluster *cluster;
	struct kref kref;	/* held by cluster->regions and by each bound file */
	struct work_struct free_work;	/* frees the region after the last reference */
	struct rcu_head rcu;
	char name[KDSM_NAME_SIZE];
	u32 id;			/* 1..65535 */
	u32 flags;		/* KDSM_REGION_KEEP, KDSM_REGION_CONTIGUOUS */
	u32 policy;		/* enum kdsm_policy */
	u32 segment_count;	/* partitioned: 1 */
	struct kdsm_region_segment segments[KDSM_MAX_SEGMENTS];
	u32 mode;		/* permission bits */
	u32 uid, gid;		/* in the initial user namespace */
	unsigned int nodes;	/* that take part: numbers 0 to nodes - 1 */
	u64 part_size;		/* bytes */
	u64 share;		/* bytes that this node has promised to hold */
	struct kdsm_user *user;	/* who is charged; see quota.c */
	/*
	 * Coherent: what the node holds of this region, below the account of its user. The limit
	 * may change.
	 */
	struct kdsm_account account;
	u64 base;		/* address of the region in every process */
	struct kdsm_memory *memory;	/* the part of this node; coherent: its frames */
	struct kdsm_coherence *coherence;	/* NULL for a partitioned region */
	struct kdsm_locks *locks;
	struct inode *inode;	/* coherent: the inode of all its mappings */
	struct workqueue_struct *getters;	/* coherent: get blocks for programs */
	atomic_t demands;	/* number that workers have not done */
	struct kdsm_mappings mappings;	/* policy release only; changes */
	/* Bound files, or files whose close is not done; protected by the lock of the name */
	unsigned int opens;
	/* How many closes were asked for, and are done, since the region was added; see open.c */
	atomic_t closes;
	int closes_done;
	struct work_struct close_work;
	/* Numbers of the newest changes of these settings; protected by cluster->parts_lock */
	u32 lease_turn, limit_turn;
	wait_queue_head_t waits[KDSM_WAIT_BUCKETS];	/* waiters for words, by word number */
};

/**
 * kdsm_region_open() - open a region by name, or create it if the flags say so
 * @cluster: the cluster of the region
 * @args: the request; the call fills in the (out) fields
 * @want_write: fail if mode, owner and group do not allow writing
 *
 * The credentials are those of the calling task. Sleeps until node 0 has answered, or a fatal
 * signal arrives.
 *
 * Return: the region, with a reference that kdsm_region_close() drops, or ERR_PTR() of the
 * errors of KDSM_IOC_REGION_OPEN; ERR_PTR(-ERESTARTSYS) after a fatal signal.
 */
struct kdsm_region *kdsm_region_open(struct kdsm_cluster *cluster,
				     struct kdsm_region_open *args, bool want_write);

/**
 * kdsm_region_close() - undo one kdsm_region_open()
 * @region: the region, which the caller must not use any more
 *
 * The last close on a node tells node 0 that the node has the region closed. If node 0 does not
 * answer, a work item repeats the message until node 0 answers. Sleeps until node 0 has answered
 * or has not, or a fatal signal arrives.
 */
void kdsm_region_close(struct kdsm_region *region);

/**
 * kdsm_region_destroy() - take a region's name away, and remove the region once it is unused
 * @cluster: the cluster of the region
 * @name: name of the region
 *
 * Sleeps until node 0 has answered, or a fatal signal arrives.
 *
 * Return: 0, -ENOENT, -EACCES unless the caller owns the region or has CAP_SYS_ADMIN, or an
 * error of kdsm_message_killable().
 */
int kdsm_region_destroy(struct kdsm_cluster *cluster, const char *name);

/* A change of some settings of a region; the others stay */
struct kdsm_tuning {
	u32 which;		/* KDSM_TUNE_LEASE, KDSM_TUNE_LIMIT */
	u64 lease;		/* policy strict: ns, at most KDSM_LEASE_MAX */
	u64 limit;		/* coherent: bytes on each node, at least KDSM_LIMIT_MIN; 0: none */
};

/**
 * kdsm_region_tune() - change settings of a coherent region on all nodes
 * @cluster: the cluster of the region
 * @name: name of the region
 * @tuning: the change
 *
 * Sleeps until node 0 has told all nodes, or a fatal signal arrives.
 *
 * Return: 0; -EINVAL if a value is out of its bounds; -ENOENT; -EOPNOTSUPP if the region's policy
 * lacks one of the settings, and then nothing changed; -EHOSTDOWN if a node could not be reached;
 * or an error of kdsm_message_killable(). After -EHOSTDOWN, -EIO and -ETIMEDOUT some nodes may
 * have the new settings.
 */
int kdsm_region_tune(struct kdsm_cluster *cluster, const char *name,
		     const struct kdsm_tuning *tuning);

/**
 * kdsm_region_name_valid() - check the name of a region, lock or cluster
 * @name: the name
 *
 * Context: any.
 *
 * Return: whether @name ends with a NUL, is not empty, and has only printable ASCII characters
 * without blanks.
 */
bool kdsm_region_name_valid(const char name[KDSM_NAME_SIZE]);

/* Number of parts that a region of this policy is divided into: a coherent region is one part */
static inline unsigned int kdsm_policy_parts(u32 policy, unsigned int nodes)
{
	return policy == KDSM_POLICY_PARTITIONED ? nodes : 1;
}

/* Size of all parts, in bytes */
static inline u64 kdsm_region_size(const struct kdsm_region *region)
{
	return region->part_size * kdsm_policy_parts(region->policy, region->nodes);
}

/* The queue of the waiters for the word at this offset of the own part */
static inline wait_queue_head_t *kdsm_region_waits(struct kdsm_region *region, u64 offset)
{
	return &region->waits[(offset >> 3) % KDSM_WAIT_BUCKETS];
}

/**
 * kdsm_regions_init() - set up the table of regions
 * @cluster: a cluster that comes up
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_regions_init(struct kdsm_cluster *cluster);

/**
 * kdsm_regions_stop() - end the work that repeats closes
 * @cluster: a cluster that goes down, whose fabric is disconnected and which no task uses
 *
 * On node 0 that work calls the directory, so the caller calls this function before
 * kdsm_directory_exit().
 */
void kdsm_regions_stop(struct kdsm_cluster *cluster);

/**
 * kdsm_regions_exit() - drop all regions and free the table
 * @cluster: a cluster after kdsm_regions_stop()
 */
void kdsm_regions_exit(struct kdsm_cluster *cluster);

/**
 * kdsm_regions_forget() - drop the regions that no file of this node has open
 * @cluster: a cluster whose node 0 came up again, with an empty directory
 *
 * Sleeps, but takes no lock that a task may hold while it waits for node 0.
 */
void kdsm_regions_forget(struct kdsm_cluster *cluster);

/**
 * kdsm_regions_untied() - a peer gave up this node: see kdsm_coherence_untied()
 * @cluster: a cluster after kdsm_regions_init()
 */
void kdsm_regions_untied(struct kdsm_cluster *cluster, unsigned int node);

/**
 * kdsm_region_next() - find the next region in the order of ids
 * @cluster: the cluster whose regions are searched
 * @id: the least id to look for; receives the id that was found
 *
 * Return: the region, with a reference, or NULL.
 */
struct kdsm_region *kdsm_region_next(struct kdsm_cluster *cluster, unsigned long *id);

/**
 * kdsm_region_get() - find a region by its id, for a node that takes part in it
 * @cluster: the cluster of the region
 * @id: the id
 * @node: the node that asks; nodes that were added later do not take part
 *
 * Return: the region, with a reference, or NULL.
 */
struct kdsm_region *kdsm_region_get(struct kdsm_cluster *cluster, u32 id, unsigned int node);

/**
 * kdsm_region_put() - drop a reference to a region
 * @region: the region
 *
 * After the last reference a worker frees the region: that may take seconds, and waits for the
 * work of the region's locks, which may in turn wait for the caller's connection.
 *
 * Context: any.
 */
void kdsm_region_put(struct kdsm_region *region);

/* ---- handlers in region.c, tune.c and acquire.c ---- */

/* Handlers of messages, see kdsm_handler_t; context is the cluster */
int kdsm_region_serve_add(void *context, struct kdsm_request *request);
int kdsm_region_serve_remove(void *context, struct kdsm_request *request);
int kdsm_region_serve_tuned(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_read(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_own(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_grant(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_lend(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_invalidate(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_claim(void *context, struct kdsm_request *request);
int kdsm_region_serve_block_push(void *context, struct kdsm_request *request);
int kdsm_region_serve_clock(void *context, struct kdsm_request *request);

/* ---- acquire.c ---- */

/**
 * kdsm_region_acquire() - an acquire for a program; see KDSM_IOC_ACQUIRE
 * @region: a coherent region
 * @signature: the signature that the program gave, which the call may change
 * @may_write: whether the file of the program may modify the region
 *
 * A program that may not write the region may not harm its users either. So its signature is
 * flattened, and its newest timestamp must be one that a node of the cluster has reached.
 *
 * Sleeps.
 *
 * Return: 0; -EINVAL: no release can have made the signature; -EHOSTDOWN: a node that could tell
 * does not answer; -EINTR; -ENOMEM.
 */
int kdsm_region_acquire(struct kdsm_region *region, struct kdsm_signature *signature,
			bool may_write);

/* ---- demand.c ---- */

/**
 * kdsm_region_atomic() - perform an atomic operation for a program; see KDSM_IOC_ATOMIC
 * @region: a coherent region
 * @atomic: the operation, valid as for kdsm_coherence_atomic(); receives the result
 *
 * Sleeps until the operation is done, or a fatal signal arrives.
 *
 * Return: an error as of kdsm_coherence_atomic() or kdsm_coherence_release(), or -ERESTARTSYS.
 */
int kdsm_region_atomic(struct kdsm_region *region, struct kdsm_atomic *atomic);

/**
 * kdsm_region_notified() - wake the waiters for a word that a put has stored
 * @context: the cluster
 * @id: id of the region
 * @offset: of the word in this node's part
 *
 * Context: softirq, or a task with bottom halves off.
 */
void kdsm_region_notified(void *context, u32 id, u64 offset);

/* ---- directory.c ---- */

/**
 * kdsm_directory_init() - set up an empty directory
 * @cluster: a cluster that comes up
 *
 * Return: 0 or -ENOMEM.
 */
int kdsm_directory_init(struct kdsm_cluster *cluster);

/**
 * kdsm_directory_exit() - free the directory
 * @cluster: a cluster that goes down, whose fabric is disconnected
 */
void kdsm_directory_exit(struct kdsm_cluster *cluster);

/**
 * kdsm_directory_set_nodes() - change the number of nodes
 * @cluster: the cluster of the directory
 * @nodes: the new number; nodes 0 to @nodes - 1 take part in the regions that are created later
 *
 * Return: 0, or -EBUSY: a further node takes part in a region of the directory of node 0.
 */
int kdsm_directory_set_nodes(struct kdsm_cluster *cluster, unsigned int nodes);

/**
 * kdsm_node_read() - fill in a node from bytes that a program or a peer sent
 * @node: the node
 * @address: in network byte order
 * @length: of @address, in bytes
 * @location: KDSM_LOCATION_SIZE bytes at most, or a string that is shorter; may be empty
 *
 * Return: 0. -EADDRNOTAVAIL: the address is not that of one machine. -EINVAL: the location is not
 * printable, or is too long.
 */
int kdsm_node_read(struct kdsm_node *node, const void *address, unsigned int length,
		   const char *location);

/**
 * kdsm_nodes_change() - add a node behind the last one, or remove the last one
 * @cluster: the cluster
 * @number: of the node, below KDSM_MAX_NODES
 * @node: the node to add; NULL: remove it
 *
 * Sleeps until node 0 has told all other nodes, or a fatal signal arrives. The caller may repeat
 * the call: nodes that have made the change ignore it.
 *
 * Return: 0. -EINVAL: @number is not the next number, or not the last; or node 0 or this node would
 * be removed. -EEXIST: @number has another address or location. -EADDRINUSE: another node has the
 * address. -EAFNOSUPPORT: the other nodes have addresses of another kind. -EBUSY: the node takes
 * part in a region. -EHOSTDOWN, -EIO, -ETIMEDOUT: some nodes may not have made the change. Another
 * error of kdsm_message_killable().
 */
int kdsm_nodes_change(struct kdsm_cluster *cluster, unsigned int number,
		      const struct kdsm_node *node);

/* Handlers of KDSM_MESSAGE_NODE, KDSM_MESSAGE_NODE_TOLD and KDSM_MESSAGE_NODE_COUNT */
int kdsm_nodes_serve_change(void *context, struct kdsm_request *request);
int kdsm_nodes_serve_told(void *context, struct kdsm_request *request);
int kdsm_nodes_serve_count(void *context, struct kdsm_request *request);

/**
 * kdsm_directory_node_down() - note that a node cannot be reached or came up again
 * @cluster: the cluster of the directory
 * @node: the node
 * @restarted: the node came up again, so it has no region open and holds no part
 *
 * Does nothing on nodes other than node 0.
 *
 * Context: any.
 */
void kdsm_directory_node_down(struct kdsm_cluster *cluster, unsigned int node, bool restarted);

/* Handlers of messages, see kdsm_handler_t; context is the cluster */
int kdsm_directory_serve_open(void *context, struct kdsm_request *request);
int kdsm_directory_serve_close(void *context, struct kdsm_request *request);
int kdsm_directory_serve_destroy(void *context, struct kdsm_request *request);
int kdsm_directory_serve_tune(void *context, struct kdsm_request *request);

/* ---- quota.c ---- */

/**
 * kdsm_quota_account() - the account of the user who is charged for a region
 * @region: the region
 *
 * The content of a coherent region is charged to region->account, which is below this account.
 *
 * Context: any.
 *
 * Return: the account, which lives as long as the region.
 */
struct kdsm_account *kdsm_quota_account(const struct kdsm_region *region);

/* ---- mapping.c ---- */

/**
 * kdsm_vm_mmap() - map a region, or its lock words
 * @region: the region that the file of the mapping is bound to
 * @vma: the new mapping
 *
 * Caller holds mmap_lock for writing.
 *
 * Return: 0, -EINVAL, -EACCES or -ENOMEM; -ERESTARTNOINTR after a signal.
 */
int kdsm_vm_mmap(struct kdsm_region *region, struct vm_area_struct *vma);

/**
 * kdsm_vm_unmapped_area() - choose the address of a mapping
 * @file: the file to map
 * @region: the region that the file is bound to
 * @address: the address that the program asks for
 * @length: length of the mapping, in bytes
 * @pgoff: offset in the region, in pages
 * @flags: flags of mmap
 *
 * A region has the same address in every process, and lock words may be mapped anywhere.
 * Caller holds mmap_lock.
 *
 * Return: the address, -EINVAL, or -ENOMEM if the process uses the address already.
 */
unsigned long kdsm_vm_unmapped_area(struct file *file, struct kdsm_region *region,
				    unsigned long address, unsigned long length,
				    unsigned long pgoff, unsigned long flags);

/* ---- notifier.c ---- */

/**
 * kdsm_notifier_exit() - wait until no notifier calls into the module any more
 *
 * All regions are freed. Sleeps.
 */
void kdsm_notifier_exit(void);

/* ---- partitioned.c ---- */

/* The operations of a bound file that are in flight or not completed */
struct kdsm_submissions {
	struct kdsm_region *region;
	bool may_write;
	spinlock_t lock;	/* protects the fields below */
	struct list_head list;	/* submissions that are not completed */
	u64 last_ticket;
	unsigned int count;	/* of submissions */
	u64 bytes;		/* of their operations */
};

/**
 * kdsm_submissions_init() - set up the submissions of a file
 * @submissions: the submissions; the caller has zeroed the memory
 * @region: the region that the file is bound to
 * @may_write: whether the file may modify the region
 */
void kdsm_submissions_init(struct kdsm_submissions *submissions,
			   struct kdsm_region *region, bool may_write);

/**
 * kdsm_submissions_drain() - wait for all operations in flight, and forget their results
 * @submissions: the submissions of a file that no task uses any more
 *
 * The wait ends in bounded time.
 */
void kdsm_submissions_drain(struct kdsm_submissions *submissions);

/**
 * kdsm_pgas_submit() - start operations, and wait for them if asked; see KDSM_IOC_SUBMIT
 * @submissions: the submissions of the file
 * @args: the request; receives the ticket
 *
 * Sleeps; with KDSM_SUBMIT_WAIT until all operations are done, or a fatal signal comes.
 *
 * Return: 0, an error of KDSM_IOC_SUBMIT or, with KDSM_SUBMIT_WAIT, the first error of an
 * operation.
 */
int kdsm_pgas_submit(struct kdsm_submissions *submissions, struct kdsm_submit *args);

/**
 * kdsm_pgas_complete() - wait for a ticket and return the results; see KDSM_IOC_COMPLETE
 * @submissions: the submissions of the file
 * @args: the request
 *
 * Sleeps.
 *
 * Return: 0, -EINVAL, -ENOENT, -EBUSY if another task completes the ticket, -ETIMEDOUT, -EINTR,
 * or the first error of an operation.
 */
int kdsm_pgas_complete(struct kdsm_submissions *submissions,
		       const struct kdsm_complete *args);

/**
 * kdsm_pgas_wait() - sleep while a word of the own part has a value; see KDSM_IOC_WAIT
 * @region: the region that the file is bound to
 * @args: the request
 *
 * Sleeps.
 *
 * Return: 0, -EINVAL, -ERANGE, -ENOMEM, -ETIMEDOUT or -EINTR.
 */
int kdsm_pgas_wait(struct kdsm_region *region, const struct kdsm_wait *args);

/**
 * kdsm_pgas_wake() - wake the waiters for a word of the own part; see KDSM_IOC_WAKE
 * @region: the region that the file is bound to
 * @args: the request
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int kdsm_pgas_wake(struct kdsm_region *region, const struct kdsm_wake *args);

/* ---- ring.c ---- */

/**
 * kdsm_ring_create() - make a ring; see KDSM_IOC_RING_SETUP
 * @region: a partitioned region
 * @file: a file that is bound to the region; the ring keeps a reference
 * @args: the request; receives all (out) fields but the file descriptor
 *
 * Sleeps.
 *
 * Return: the file of the ring, with a reference, or ERR_PTR(): -EINVAL, -EDQUOT, -ENOMEM, -ENFILE,
 * or -EINTR after a fatal signal.
 */
struct file *kdsm_ring_create(struct kdsm_region *region, struct file *file,
			      struct kdsm_ring_setup *args);

#endif /* KDSM_REGION_H */
