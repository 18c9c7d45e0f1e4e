/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of threads of this node that wait for a lock. The lock's mutex guards a line. */
#ifndef KDSM_LOCK_WAIT_H
#define KDSM_LOCK_WAIT_H

#include <linux/list.h>
#include <linux/sched.h>

struct kdsm_line {
	struct list_head waiters;	/* struct kdsm_waiter, in order */
	struct task_struct __rcu *first;
	bool called;			/* there may be something to do, which the first one does */
	u32 mean;			/* of the last waits, in ns */
};

/* A thread that reads, and whose slot does not say so; in kdsm_lock.inside */
struct kdsm_reader {
	struct list_head link;
	u32 thread;
	bool lost;			/* the lock was lost: this node was given up */
};

/* On the stack of the thread */
struct kdsm_waiter {
	struct list_head link;
	struct task_struct *task;
	struct kdsm_reader *reader;	/* for the list, if the thread gets the lock */
	bool is_inside;			/* in that list */
	u64 since;			/* start of the call, in ns of ktime */
	u64 place;			/* start of the wait, by which threads are in order */
	u32 thread;
	bool try;			/* waits for no other thread or node */
	bool tried;			/* that was asked for */
	bool done;
	int status;			/* with done */
};

void kdsm_line_init(struct kdsm_line *line);
/* The calling thread waits, behind those that began to wait before it. */
void kdsm_line_join(struct kdsm_line *line, struct kdsm_waiter *waiter);
/* The thread does not wait any more. */
void kdsm_line_end(struct kdsm_line *line, struct kdsm_waiter *waiter, int status);
/* The number of threads that wait, KDSM_LOCK_T_L_MOST at most, but those that tried; see tried */
unsigned int kdsm_line_count(const struct kdsm_line *line);

static inline struct kdsm_waiter *kdsm_line_first(struct kdsm_line *line)
{
	return list_first_entry_or_null(&line->waiters, struct kdsm_waiter, link);
}

/* There may be something to do: wake the first thread. False: no thread waits. Any context. */
bool kdsm_line_call(struct kdsm_line *line);
/*
 * Without the mutex: sleep until the wait is over or this thread was called, at most timeout ns
 * from since on. 0, -ETIMEDOUT, -EINTR.
 */
int kdsm_line_sleep(struct kdsm_line *line, struct kdsm_waiter *waiter, u64 timeout);

/* Whether the wait is over, so that there is a status */
static inline bool kdsm_waiter_is_done(const struct kdsm_waiter *waiter)
{
	/* Pairs with the release in kdsm_line_end() */
	return smp_load_acquire(&waiter->done);
}

#endif /* KDSM_LOCK_WAIT_H */
