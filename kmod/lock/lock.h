/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks of regions, as this node knows them: which are open, what threads wait, and
 * who they are. What is between nodes is lock_tree.h.
 */
#ifndef KDSM_LOCK_H
#define KDSM_LOCK_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/kdsm.h>

#include "read.h"
#include "tree.h"

struct kdsm_cluster;
struct kdsm_lock_sign;
struct kdsm_region;
struct pid;
struct vm_area_struct;

/* Who waits for nodes that do not answer is told so after so long. */
#define KDSM_LOCK_GIVE_UP	(10 * HZ)

/* Locks live in a memory of their own, with ids that no region has. */
#define KDSM_LOCKS_ID		BIT(18)

/* Of one region; made with it. */
struct kdsm_locks {
	struct rcu_head rcu;
	struct kdsm_region *region;
	struct kdsm_memory *memory;	/* words and rings of those whose home is here */
	struct mutex mutex;		/* guards what is open, pages and the registry */
	struct xarray open;		/* struct kdsm_lock by number */
	struct xarray registry;		/* node 0: struct kdsm_wire_lock_open by number */
	struct mutex registry_mutex;	/* node 0: makes and changes, one by one */
	struct xarray threads;		/* struct kdsm_lock_owner by number */
	u32 last_thread;
	struct page *pages[KDSM_LOCKS_SIZE / PAGE_SIZE];	/* lock words, once touched */
};

/* One lock that is open here; until the region goes. */
struct kdsm_lock {
	struct kdsm_locks *locks;
	u32 number, kind, levels;
	char name[KDSM_NAME_SIZE];
	struct mutex mutex;		/* guards all of it; held over the network */
	struct kdsm_lock_settings settings;
	struct list_head waiters;	/* who came first is first */
	struct task_struct __rcu *first;	/* of those, to be called */
	u32 wait_mean;			/* ns that waits took lately */
	bool arrived;			/* it came from another node; nobody has seen to it */
	bool fresh;			/* it came, and no thread has had it since */
	bool dead, lost;		/* see KDSM_LOCK_DEAD and LOST */
	u32 forfeited;			/* thread that had it when this node was given up */
	unsigned int polls;
	unsigned long silent;		/* jiffies: nobody has answered since; 0: somebody has */
	u64 uses;			/* last seen in the word */
	u64 idle_since;			/* ns of ktime; 0: it is not */
	atomic64_t *state;		/* the word's; programs write it, too */
	struct kdsm_lock_word *word;
	struct delayed_work work;
	struct kdsm_tree tree;
	struct kdsm_lock_sign *sign;	/* policy release; NULL: of others */
	struct kdsm_readers *readers;	/* of kind RMA_RW */
	bool closed;			/* HELD: nobody reads, nor can before that ends */
	bool passing;			/* it goes to another node so */
	u32 row;			/* writers since */
	u64 stats[KDSM_LOCK_STAT_COUNT];
	u64 waits[KDSM_LOCK_WAITS];
};

/* A thread that may own locks, by way of a file. */
struct kdsm_lock_owner {
	struct rcu_head rcu;
	struct list_head link;		/* in the file's */
	struct kdsm_lock_file *file;
	struct pid *pid;
	u32 number;
};

/* What a bound file has of locks. */
struct kdsm_lock_file {
	struct kdsm_region *region;
	bool may_write;
	struct mutex mutex;		/* guards what follows */
	struct list_head owners;
	unsigned int count, reap_at;
};

/* With the region. -ENOMEM. */
int kdsm_locks_create(struct kdsm_region *region);
void kdsm_locks_destroy(struct kdsm_region *region);
/* Bytes of their memory that are words and rings. */
u64 kdsm_locks_words(const struct kdsm_region *region);
/* The page of lock words, or ERR_PTR(-ENOMEM). */
struct page *kdsm_locks_page(struct kdsm_locks *locks, pgoff_t index);

void kdsm_lock_file_init(struct kdsm_lock_file *file, struct kdsm_region *region,
			 bool may_write);
/* The file is closed: who owns locks by it is dead. */
void kdsm_lock_file_release(struct kdsm_lock_file *file);
long kdsm_lock_ioctl(struct kdsm_lock_file *file, unsigned int command, void __user *user);

/* ---- lock_table.c: which there are ---- */

/* ERR_PTR(): those of KDSM_IOC_LOCK_OPEN. */
struct kdsm_lock *kdsm_lock_open(struct kdsm_locks *locks, struct kdsm_lock_open *args);
/* One that is open here, or NULL. */
struct kdsm_lock *kdsm_lock_find(struct kdsm_locks *locks, u32 number);
/* As another node has it open: a counter of readers is here. ERR_PTR(). */
struct kdsm_lock *kdsm_lock_open_as(struct kdsm_locks *locks,
				    const struct kdsm_wire_lock_open *wire);
/* The node is to know the lock, and that this one may use its counter of readers. */
int kdsm_lock_join_at(struct kdsm_lock *lock, unsigned int node);
int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings);
/* What follows from that is which nodes are the homes of a lock; see kdsm_tree_create(). */
u32 kdsm_lock_base(const struct kdsm_region *region, u32 number);

/* Handlers; context is the cluster. */
int kdsm_lock_serve_open(void *context, struct kdsm_request *request);
int kdsm_lock_serve_set(void *context, struct kdsm_request *request);
int kdsm_lock_serve_tell(void *context, struct kdsm_request *request);
int kdsm_lock_serve_hand(void *context, struct kdsm_request *request);
int kdsm_lock_serve_look(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_join(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_ask(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_open(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_tell(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_go(void *context, struct kdsm_request *request);
int kdsm_lock_serve_rw_count(void *context, struct kdsm_request *request);
int kdsm_lock_serve_meet(void *context, struct kdsm_request *request);
int kdsm_lock_serve_freeze(void *context, struct kdsm_request *request);
int kdsm_lock_serve_resume(void *context, struct kdsm_request *request);

/* ---- lock_thread.c: who owns them ---- */

/* The calling thread's number by way of file. -ENOSPC, -ENOMEM. */
int kdsm_lock_thread(struct kdsm_lock_file *file, u32 *number);
/* Is that the calling thread's, by way of file? */
bool kdsm_lock_thread_is_current(struct kdsm_lock_file *file, u32 number);
/* Does the thread with that number live? */
bool kdsm_lock_thread_lives(struct kdsm_locks *locks, u32 number);

/* ---- lock.c: taking turns ---- */

void kdsm_lock_init(struct kdsm_lock *lock);
/* Nobody waits any more. */
void kdsm_lock_exit(struct kdsm_lock *lock);
int kdsm_lock_take(struct kdsm_lock *lock, u32 thread, u32 flags, u64 timeout);
int kdsm_lock_give(struct kdsm_lock *lock, u32 thread);
int kdsm_lock_consistent(struct kdsm_lock *lock, u32 thread);
/* Settings have changed, or an owner may have died: see to it. */
void kdsm_lock_check(struct kdsm_lock *lock);

/* The home may be down, or have given up this node: see to it soon. Any context. */
void kdsm_lock_look(struct kdsm_lock *lock);

/* Nobody on this node is likely to want it soon: if it is idle, do not keep it. */
void kdsm_lock_let_go(struct kdsm_lock *lock);

extern const struct kdsm_queue_ops kdsm_lock_queue_ops;

/* ---- lock_sign.c: what the next one is to see ---- */

/* Of all policies; none but release has anything to do. Under the lock's mutex. */

/* Bytes of the memory for all locks, behind the words and rings. */
u64 kdsm_lock_sign_size(const struct kdsm_region *region);
/* -ENOMEM. */
int kdsm_lock_sign_init(struct kdsm_lock *lock);
void kdsm_lock_sign_exit(struct kdsm_lock *lock);
/*
 * The lock is about to go, and no thread of this node has it: release what was written
 * here, and leave the signature in the slot of a node: this one, if it goes to a node
 * that is told so; the home of the word (level 1, if there are several), if to nobody.
 * To be done for both costs one release. Errors: it must not go; try again. After
 * KDSM_LOCK_GIVE_UP it may, and lock->dead is set.
 */
int kdsm_lock_publish(struct kdsm_lock *lock, unsigned int node);
/* The queue's leaving(): that. */
int kdsm_lock_leaving(struct kdsm_queue *queue, bool free);
/* Threads of this node may have it again. */
void kdsm_lock_unpublish(struct kdsm_lock *lock);
/* The lock, all levels of it, is here and was not; queue->from tells who had it. */
void kdsm_lock_came(struct kdsm_lock *lock);
/*
 * Before any thread of this node has it, and before it goes on: see what is in the
 * slot, if it came. -EAGAIN: try again. After KDSM_LOCK_GIVE_UP it is 0, and lock->dead
 * set.
 */
int kdsm_lock_adopt(struct kdsm_lock *lock);
/* See what is in the slot of a node; one remote read. Errors: not all of it may be seen. */
int kdsm_lock_adopt_from(struct kdsm_lock *lock, unsigned int node);

#endif /* KDSM_LOCK_H */
