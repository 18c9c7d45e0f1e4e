/* SPDX-License-Identifier: GPL-2.0 */
/* The threads of a node that have or want a lock for reading; of kind RMA_RW. */
#ifndef KDSM_LOCK_READ_H
#define KDSM_LOCK_READ_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "rw.h"

struct kdsm_lock;

struct kdsm_readers {
	struct kdsm_lock *lock;
	struct kdsm_rw rw;
	struct mutex mutex;		/* guards what follows; held over the network */
	struct list_head inside;	/* struct kdsm_reader: who reads */
	struct list_head waiters;	/* the same; who came first is first */
	wait_queue_head_t wait;
	bool arrived;			/* the node may read; nobody has seen to it */
	bool adopted;			/* what writers wrote before that can be seen */
	u32 entries;			/* threads that were let in since the node may */
	u64 cost;			/* ns that it takes to be counted, about */
	bool ends;			/* the node is not to wait for more of its threads */
	bool stopped;			/* the same, from now on for good */
	struct hrtimer linger;		/* sets that */
	unsigned long silent;		/* jiffies: no node has answered since; 0: one has */
	struct delayed_work work;
	struct delayed_work home;	/* tells other nodes that they may read */
	u64 stats[KDSM_LOCK_STAT_COUNT];
	u64 waits[KDSM_LOCK_WAITS];
};

/*
 * model has the first block of fields of a struct kdsm_rw, but for ops and owner.
 * ERR_PTR(-ENOMEM).
 */
struct kdsm_readers *kdsm_readers_create(struct kdsm_lock *lock, const struct kdsm_rw *model);
/* Nobody waits any more: stop the work, which may go on in that of the lock; then free it. */
void kdsm_readers_stop(struct kdsm_readers *readers);
void kdsm_readers_destroy(struct kdsm_readers *readers);

/* As kdsm_lock_take() and kdsm_lock_give(). */
int kdsm_read_take(struct kdsm_readers *readers, u32 thread, u32 flags, u64 timeout);
int kdsm_read_give(struct kdsm_readers *readers, u32 thread);
/* Does the thread read? */
bool kdsm_readers_have(struct kdsm_readers *readers, u32 thread);
/* If no thread reads, nor does the node when this returns, or the network is down. */
void kdsm_readers_let_go(struct kdsm_readers *readers);
/* Owners may have died: see to it. */
void kdsm_readers_check(struct kdsm_readers *readers);
/* Add to the counters of a lock. */
void kdsm_readers_stats(struct kdsm_readers *readers, u64 *stats, u64 *waits);

/* ---- for writers, with the lock's mutex ---- */

/*
 * HELD: exclude readers. True: a thread may write. False: *err, or, if that is 0, some
 * read still.
 */
bool kdsm_lock_exclude(struct kdsm_lock *lock, int *err);
/* HELD, and no thread has it: let readers in. 0, also if that is not needed; or an error. */
int kdsm_lock_admit(struct kdsm_lock *lock);

/* ---- between its files, with the readers' mutex, but for end ---- */

struct kdsm_reader {
	struct list_head link;
	u32 thread;
	bool waits, done;
	int status;		/* of done */
};

/* The wait is over. Without error the entry stays, as that of one who reads. */
void kdsm_reader_end_wait(struct kdsm_readers *readers, struct kdsm_reader *reader, int status);
/* The network did what it was asked to, or not. */
void kdsm_readers_heard(struct kdsm_readers *readers, int err);
/* May one more read, now that the node may? */
bool kdsm_readers_may_join(struct kdsm_readers *readers);
/* Have the node counted, and see how long that takes. As kdsm_rw_enter(). */
int kdsm_readers_enter(struct kdsm_readers *readers, bool try);
/* See what writers wrote, before any thread of this node reads. */
int kdsm_readers_adopt(struct kdsm_readers *readers);
/* What a thread gets that reads, with the node. */
int kdsm_readers_status(const struct kdsm_readers *readers);
/* Whatever can be done now. Errors of the network, which is tried again by the work. */
int kdsm_readers_advance(struct kdsm_readers *readers);
/* If no thread reads, the node is to leave soon. In any context. */
void kdsm_readers_end(struct kdsm_readers *readers);

#endif /* KDSM_LOCK_READ_H */
