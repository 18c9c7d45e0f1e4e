/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The locks of a region, as this node knows them: which are open, what threads of this node wait
 * or hold, and their identities. The part between nodes is in turn.h, home.h and gate.h.
 */
#ifndef KDSM_LOCK_H
#define KDSM_LOCK_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kdsm/uapi.h>

#include "home.h"
#include "wait.h"
#include "word.h"

struct kdsm_cluster;
struct kdsm_lock_sign;
struct kdsm_region;
struct pid;

/* A thread that waits for nodes that do not answer gets an error after this time, in jiffies. */
#define KDSM_LOCK_GIVE_UP	(10 * HZ)
/* A thread that has a lock, while others wait for it, is looked for this often, in jiffies. */
#define KDSM_LOCK_CHECK		(HZ / 10)

/* The words and slots are in a memory of their own, whose id no region has. */
#define KDSM_LOCKS_ID		BIT(18)
/* Bytes of a signature in that memory */
#define KDSM_SIGNATURE_SIZE	4096U
#define KDSM_LOCK_PAGES		(KDSM_MAX_LOCKS * sizeof(struct kdsm_lock_word) / PAGE_SIZE)

/* ---- work ---- */

struct kdsm_duty;

/* The last operation or message of a round */
struct kdsm_try {
	u64 delay;		/* until the next one, in ns; 0: it is done */
	unsigned int what;	/* what it was for */
};

/* Work on a lock, for one task at a time: a thread that waits, or the work item */
struct kdsm_duty {
	struct kdsm_lock *lock;
	struct kdsm_line *line;		/* whose first thread runs it; NULL: only work does */
	/* Returns whether to call it again at once; if not, *try says when. Sleeps. */
	bool (*round)(struct kdsm_duty *duty, struct kdsm_try *try);
	atomic_t runs;			/* calls of kdsm_duty_run() that are not done */
	struct workqueue_struct *workqueue;
	struct work_struct now;
	struct hrtimer later;
	bool stopped;
	/* Of the task that runs it: what the last try was for, and how often that has failed */
	unsigned int what;
	int fails;
};

void kdsm_duty_init(struct kdsm_duty *duty, struct kdsm_lock *lock, struct kdsm_line *line,
		    bool (*round)(struct kdsm_duty *duty, struct kdsm_try *try));
/*
 * Run it in this task, until there is nothing to do. If another task runs it, that one does one
 * round more, and this one returns at once. Sleeps.
 */
void kdsm_duty_run(struct kdsm_duty *duty);
/* Run it soon, as work. Any context. */
void kdsm_duty_now(struct kdsm_duty *duty);
/* Run it within this time, in ns. Any context. */
void kdsm_duty_within(struct kdsm_duty *duty, u64 delay);
/* It does not run any more, nor again. */
void kdsm_duty_stop(struct kdsm_duty *duty);

/* ---- the locks of a region ---- */

struct kdsm_locks {
	struct rcu_head rcu;
	struct kdsm_region *region;
	struct kdsm_topology *topology;	/* of the nodes that take part in the region */
	struct kdsm_ranks *ranks;	/* of the topology */
	struct kdsm_memory *memory;	/* words of the locks whose home is here; signatures */
	struct mutex mutex;		/* guards pages and slots */
	struct mutex open_mutex;	/* guards additions to open, and sets */
	struct xarray open;		/* struct kdsm_lock by number */
	struct xarray registry;		/* node 0: struct kdsm_wire_lock_open by number */
	struct mutex registry_mutex;	/* node 0: guards that */
	struct xarray threads;		/* struct kdsm_lock_owner by number */
	u32 next_thread;		/* number to look for a free one from */
	u32 threads_end;		/* all numbers that threads ever had are below this */
	u32 sets;			/* times that node 0 sent settings of any lock */
	struct page *pages[KDSM_LOCK_PAGES];	/* struct kdsm_lock_word, once touched */
	atomic64_t *slots;		/* KDSM_LOCK_SLOTS, once touched */
};

/* The threads of this node that want a lock in one mode; guarded by the lock's mutex */
struct kdsm_side {
	struct kdsm_duty duty;
	struct kdsm_line line;		/* threads that wait */
	bool reads;
	bool here;			/* the lock, or right to read, is here and does not leave */
	bool adopted;			/* what holders before wrote can be seen */
	u16 from;			/* node whose slot has the signature; or KDSM_NOBODY */
	u32 arrivals;			/* times that it came */
};

/* A lock that is open on this node, until the region goes */
struct kdsm_lock {
	struct kdsm_locks *locks;
	u32 number, kind, levels;
	char name[KDSM_NAME_SIZE];

	/* Guards the fields below; never held over the network */
	struct mutex mutex;
	u32 version;			/* of the settings */
	struct kdsm_lock_settings settings;
	struct kdsm_lock_word *mapped;
	struct kdsm_word word;		/* the same */
	struct kdsm_side writers;
	bool fresh;			/* no thread has had the lock since it came */
	bool dead, lost;		/* KDSM_LOCK_DEAD, KDSM_LOCK_LOST */
	bool unwanted;			/* kdsm_lock_let_go(): do not keep it */
	u32 forfeited;			/* thread that had it when this node was given up */
	u64 uses;			/* last seen in the word */
	u64 idle_since;			/* in ns of ktime; 0: not idle */
	unsigned long silent;		/* jiffies: the home has not answered since; 0: it has */
	u64 stats[KDSM_LOCK_STAT_COUNT];
	u64 handed[KDSM_LOCK_LEVELS];
	u64 gets, puts;			/* of signatures, at other nodes; counted by sign.c */
	u64 waits[KDSM_LOCK_WAITS];

	struct kdsm_turn turn;
	struct kdsm_lock_sign *sign;	/* policy release; NULL: another one */
	struct kdsm_lock_home *home;	/* NULL: the home is another node */
	struct kdsm_duty home_duty;

	/* Kind RMA_RW */
	struct kdsm_side readers;
	struct kdsm_pass pass;
	struct list_head inside;	/* struct kdsm_reader: threads that read without a slot */
	struct kdsm_reader_home *reader_home;	/* NULL: no other node has asked yet */
	struct kdsm_duty reader_duty;	/* of the reader home */
};

/* The reader home, or NULL */
static inline struct kdsm_reader_home *kdsm_lock_reader_home(const struct kdsm_lock *lock)
{
	/* Pairs with cmpxchg() in kdsm_lock_open_reader_home() */
	return smp_load_acquire(&lock->reader_home);
}

/* ---- table.c, registry.c: which locks there are ---- */

/* With the region. -ENOMEM. */
int kdsm_locks_create(struct kdsm_region *region);
void kdsm_locks_destroy(struct kdsm_region *region);
/* A page of the mapping at KDSM_LOCKS_OFFSET, or ERR_PTR(-EINVAL), ERR_PTR(-ENOMEM) */
struct page *kdsm_locks_page(struct kdsm_locks *locks, pgoff_t index);
/* The readers' slots, or NULL: no memory */
atomic64_t *kdsm_locks_slots(struct kdsm_locks *locks);
/* The offset of a lock's signature in the memory */
u64 kdsm_locks_signature(const struct kdsm_lock *lock);
/* Open or create a lock, and fill in args. Returns it, or an error of KDSM_IOC_LOCK_OPEN. */
struct kdsm_lock *kdsm_lock_open(struct kdsm_locks *locks, struct kdsm_lock_open *args);
/*
 * Have the home open the lock, so that it is free before this node wants it. Without effect if the
 * home does not answer: the first thread that locks finds that.
 */
void kdsm_lock_meet(const struct kdsm_lock *lock);
/* A lock that is open here, or NULL */
struct kdsm_lock *kdsm_lock_find(struct kdsm_locks *locks, u32 number);
unsigned int kdsm_lock_home_of(const struct kdsm_region *region, u32 number);
int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings);

/* The levels, and the settings, that a lock of that kind has */
unsigned int kdsm_lock_levels(const struct kdsm_locks *locks, u32 kind);
u32 kdsm_lock_mask(const struct kdsm_locks *locks, u32 kind);
bool kdsm_lock_is_kind(u32 kind);
/* Whether the settings of the mask are in their ranges */
bool kdsm_lock_are_sane(const struct kdsm_locks *locks, struct kdsm_lock_settings *settings,
			u32 mask);
void kdsm_lock_settings_read(struct kdsm_lock_settings *settings,
			     const struct kdsm_wire_lock_open *wire);
void kdsm_lock_settings_write(struct kdsm_wire_lock_open *wire,
			      const struct kdsm_lock_settings *settings);
/* Take settings over, if they are newer. */
void kdsm_lock_apply(struct kdsm_lock *lock, const struct kdsm_wire_lock_open *wire);
/* Node 0: locks whose home is that node are lost, because it came up again. */
void kdsm_registry_lose(struct kdsm_locks *locks, unsigned int home);

/* ---- ioctl.c, thread.c: the calls, and the threads that make them ---- */

/* A thread that may own locks by way of a file */
struct kdsm_lock_owner {
	struct rcu_head rcu;
	struct list_head link;		/* in the file's list */
	struct kdsm_lock_file *file;
	struct pid *pid;
	u64 exec;			/* number of the program that the thread runs */
	u32 number;
	bool closed;			/* the file is */
	/* A signal ended a wait for this lock, which began at place, at the time left, in ns. */
	u32 waited;
	u64 place, left;
};

/* The locks of a bound file */
struct kdsm_lock_file {
	struct kdsm_region *region;
	bool may_write;
	struct mutex mutex;		/* guards the fields below */
	struct list_head owners;
	unsigned int count, reap_at;
};

void kdsm_lock_file_init(struct kdsm_lock_file *file, struct kdsm_region *region,
			 bool may_write);
/* The file is closed: threads that own locks by it count as dead. */
void kdsm_lock_file_release(struct kdsm_lock_file *file);
long kdsm_lock_ioctl(struct kdsm_lock_file *file, unsigned int command, void __user *user);
/* The number of the calling thread, by way of the file. -ENOSPC, -ENOMEM. */
int kdsm_lock_thread(struct kdsm_lock_file *file, u32 *number);
/* The owner with that number, if it is the calling thread by way of the file; or NULL */
struct kdsm_lock_owner *kdsm_lock_thread_find(struct kdsm_lock_file *file, u32 number);
/* Whether the thread with that number lives */
bool kdsm_lock_thread_lives(struct kdsm_locks *locks, u32 number);

/* ---- objects.c: the parts of a lock on this node ---- */

/* Returns 0 or -ENOMEM; the caller calls kdsm_lock_exit() in any case. */
int kdsm_lock_init(struct kdsm_lock *lock);
void kdsm_lock_exit(struct kdsm_lock *lock);
/* Other nodes will ask this one for the right to read. Returns 0 or -ENOMEM. */
int kdsm_lock_open_reader_home(struct kdsm_lock *lock);

/* ---- take.c: calls of threads ---- */

int kdsm_lock_take(struct kdsm_lock *lock, struct kdsm_lock_owner *owner, u32 flags, u64 timeout);
int kdsm_lock_give(struct kdsm_lock *lock, u32 thread);
int kdsm_lock_consistent(struct kdsm_lock *lock, u32 thread);
int kdsm_read_give(struct kdsm_lock *lock, u32 thread);

/* ---- side.c; with the mutex ---- */

void kdsm_side_init(struct kdsm_side *side, struct kdsm_lock *lock, bool reads);
/*
 * Do what the state requires, without the network. Returns whether kdsm_duty_run() has something to
 * do.
 */
bool kdsm_side_settle(struct kdsm_side *side);
/* Do that, and start the work if it has */
void kdsm_side_kick(struct kdsm_side *side);
/* The wait of a thread, or of all, is over. */
void kdsm_side_end(struct kdsm_side *side, struct kdsm_waiter *waiter, int status);
void kdsm_side_end_all(struct kdsm_side *side, int status);

/* ---- lock.c: the threads of this node take turns to write ---- */

/* As kdsm_side_settle() */
bool kdsm_lock_settle(struct kdsm_lock *lock);
/* The lock is here, and the word frozen: the thread (0: none) has it. With the mutex. */
void kdsm_lock_write(struct kdsm_lock *lock, u32 owner);
/* Whether the home is another node, and known to be down */
bool kdsm_lock_is_orphan(const struct kdsm_lock *lock);
/* Owners may have died, or settings have changed. */
void kdsm_lock_check(struct kdsm_lock *lock);
/*
 * No thread of this node is likely to want the lock soon: if it is idle, do not keep it. Returns
 * when the lock has left this node, or cannot, and at this time at the latest, in jiffies.
 */
void kdsm_lock_let_go(struct kdsm_lock *lock, unsigned long end);
/* The node gave this one up, or came up again. */
void kdsm_lock_untied(struct kdsm_lock *lock, unsigned int node);

/* ---- read.c: the readers of this node; with the mutex ---- */

/* As kdsm_side_settle() */
bool kdsm_readers_settle(struct kdsm_lock *lock);
/* The thread that waited reads from now on. */
void kdsm_readers_enter(struct kdsm_lock *lock, struct kdsm_waiter *waiter);
/* Forget dead readers. Returns whether none is inside any more, if the node has barred readers. */
bool kdsm_readers_are_out(struct kdsm_lock *lock);
/* Whether the thread reads */
bool kdsm_readers_have(struct kdsm_lock *lock, u32 thread);
/* Its entry in the list, or NULL */
struct kdsm_reader *kdsm_readers_find(struct kdsm_lock *lock, u32 thread);
/* Without the mutex: whether this node does not read any more, or cannot stop: a thread reads */
bool kdsm_readers_are_gone(const struct kdsm_lock *lock);
/* Without the mutex: as kdsm_lock_untied() */
void kdsm_readers_untied(struct kdsm_lock *lock, unsigned int node);

/* ---- sign.c: what the next holder is to see; policy release only ---- */

/* Bytes of all slots */
u64 kdsm_lock_sign_size(const struct kdsm_region *region);
int kdsm_lock_sign_init(struct kdsm_lock *lock);
void kdsm_lock_sign_exit(struct kdsm_lock *lock);
/*
 * The lock is about to go: release what was written here, and leave the signature in the slot of a
 * node. Returns 0; -EOWNERDEAD: writes may be lost, because it has failed for KDSM_LOCK_GIVE_UP, or
 * the node is dead; another error: try again.
 */
int kdsm_lock_publish(struct kdsm_lock *lock, unsigned int node);
/*
 * See what is in the slot of that node; KDSM_NOBODY: in all, because the last holder has died.
 * Returns as kdsm_lock_publish().
 */
int kdsm_lock_adopt(struct kdsm_lock *lock, unsigned int node);
/* The home: copy the slot of that node into the own slot. Returns as kdsm_lock_publish(). */
int kdsm_lock_carry(struct kdsm_lock *lock, unsigned int node);

#endif /* KDSM_LOCK_H */
