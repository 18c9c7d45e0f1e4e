/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Tasks as kernel and libkdsm both know them: the deques of workers, and the operation
 * KDSM_OP_STEAL of <kdsm/uapi.h>, which takes tasks out of them for another node.
 *
 * A worker has a deque, an array of tasks. Tasks tail..split-1 are public: a thief that
 * raises tail, by a compare-and-swap of the word that holds both, owns the tasks that tail
 * passed. Only the owner changes split. (T. van Dijk, J. van de Pol, "Lace: Non-blocking
 * Split Deque for Work-Stealing", MuCoCoS 2014.) Only CPUs of the own node change the words
 * here, whatever the domain, with one exception: another node puts the result of a task, by
 * one put, into the words from bell on.
 */
#ifndef _UAPI_KDSM_TASK_H
#define _UAPI_KDSM_TASK_H

#include <linux/errno.h>
#include <linux/types.h>

/* An element of a deque */
struct kdsm_task {
	__u32 type;		/* type of the task; 0: none */
	__u32 thief;		/* 0: not stolen; else the mark of the thief, or KDSM_THIEF_DONE */
	__u64 bell;		/* changes when the result arrives from another node */
	unsigned char data[112] __attribute__((aligned(16)));	/* arguments, then the result */
};

/* Largest size of the arguments of a task, and of its result, in bytes; alignment <= 16 */
#define KDSM_TASK_BYTES		80

/* Value of thief: the result is in data */
#define KDSM_THIEF_DONE		1U

/* The words of a worker that thieves use */
struct kdsm_task_worker {
	__u64 ends;		/* tail, and split << 32; each at most the size of the deque */
	__u64 other[7];		/* private to libkdsm */
	__u32 attention;	/* 1: another worker found no public task, and asks for some */
	__u32 more;		/* private to libkdsm */
};

/* The word that all workers of a node share, aligned to 8 bytes */
struct kdsm_task_crew {
	__u32 busy;		/* workers that run tasks */
	__u32 used;		/* workers with this number and above never existed */
};

/* The place of a task, to which its result returns, and its type */
struct kdsm_task_origin {
	__u16 node, worker;
	__u32 slot;		/* index in the deque */
	__u32 type;		/* 0: the type is in the deque */
	__u32 bytes;		/* size of the arguments */
};

/* A task in transit */
struct kdsm_task_packed {
	struct kdsm_task_origin origin;
	unsigned char arguments[KDSM_TASK_BYTES];
};

static inline __u32 kdsm_ends_tail(__u64 ends)
{
	return (__u32)ends;
}

static inline __u32 kdsm_ends_split(__u64 ends)
{
	return (__u32)(ends >> 32);
}

/* Number of public tasks that a thief takes: half of them, but no more than most; 0 if none. */
static inline __u32 kdsm_ends_share(__u64 ends, __u32 deque, __u32 most)
{
	__u32 tail = kdsm_ends_tail(ends), split = kdsm_ends_split(ends), half;

	if (tail >= split || split > deque)
		return 0;
	half = (split - tail + 1) / 2;
	return half < most ? half : most;
}

/*
 * KDSM_OP_STEAL: in one round trip the CPU of the target takes tasks out of the first deque
 * that has public ones, without help of the deque's owner, as a worker of the target would.
 *
 * The CPU copies a task, zeroes its element from bell on, where another node puts the result,
 * and then marks the element with the thief. A proxy, whose data is a struct kdsm_task_packed,
 * stands for another task: the CPU takes that task, and marks the proxy as done. If origin.type
 * is 0, that task is in a deque of the target and is no proxy; otherwise the arguments are in
 * the proxy.
 *
 * If no task is public, the CPU sets attention of all workers, and the busy ones make tasks
 * public when they next read attention. The operation's offset is that of a struct
 * kdsm_task_crew, and its length is the size of this struct with most tasks.
 *
 * The operation does not wake a worker that sleeps while it waits for a proxy or a result: the
 * worker looks again after about a millisecond.
 */
struct kdsm_theft {
	__u64 workers;		/* offset of the first struct kdsm_task_worker, a multiple of 64 */
	__u64 deques;		/* offset of the first task of the first deque, likewise */
	__u32 stride;		/* bytes from a worker to the next, likewise, 128 at least */
	__u32 count;		/* of workers, 1..KDSM_THEFT_WORKERS */
	__u32 deque;		/* tasks of each deque, 1..2^24; one unused element follows */
	__u32 first;		/* worker to try first, modulo the workers used */
	__u32 thief;		/* mark of the thief */
	__u32 proxy;		/* type of proxies; 0: there are none */
	__u32 most;		/* tasks to take, 1..KDSM_THEFT_MOST; at most half of the public */
	__u32 taken;		/* 0; (out) number of tasks taken */
	__u32 busy;		/* 0; (out) workers of the node that run tasks */
	__u32 reserved;		/* 0 */
	/* The tasks follow: kdsm_theft_tasks(). */
};

#define KDSM_THEFT_WORKERS	1024		/* upper bound of count */
#define KDSM_THEFT_DEQUE	(1U << 24)	/* upper bound of deque */
#define KDSM_THEFT_MOST		5		/* upper bound of most */

/*
 * (out) The tasks. origin.bytes of a task is as in the proxy if the arguments come from a
 * proxy, and KDSM_TASK_BYTES otherwise. The tasks are not a member, because C++ has no flexible
 * arrays.
 */
static inline struct kdsm_task_packed *kdsm_theft_tasks(struct kdsm_theft *theft)
{
	return (struct kdsm_task_packed *)(theft + 1);
}

/* Size of a struct kdsm_theft for most tasks, in bytes. */
static inline __u32 kdsm_theft_size(__u32 most)
{
	return sizeof(struct kdsm_theft) + most * sizeof(struct kdsm_task_packed);
}

/* Offset of the words of a worker in the part. */
static inline __u64 kdsm_theft_worker(const struct kdsm_theft *theft, __u32 worker)
{
	return theft->workers + (__u64)worker * theft->stride;
}

/* Offset of a task of a worker's deque in the part. */
static inline __u64 kdsm_theft_task(const struct kdsm_theft *theft, __u32 worker, __u32 slot)
{
	return theft->deques + ((__u64)worker * (theft->deque + 1) + slot) *
			       sizeof(struct kdsm_task);
}

/* Check a theft in a part of size bytes, with the crew at that offset: 0, -EINVAL, -ERANGE. */
static inline int kdsm_theft_check(const struct kdsm_theft *theft, __u64 crew, __u64 size)
{
	if (crew % 8 || theft->workers % 64 || theft->deques % 64 || theft->stride % 64 ||
	    theft->stride < sizeof(struct kdsm_task_worker) ||
	    !theft->count || theft->count > KDSM_THEFT_WORKERS ||
	    !theft->deque || theft->deque > KDSM_THEFT_DEQUE ||
	    !theft->most || theft->most > KDSM_THEFT_MOST ||
	    theft->taken || theft->busy || theft->reserved)
		return -EINVAL;
	/* No product exceeds 2^42. */
	if (size < sizeof(struct kdsm_task_crew) ||
	    crew > size - sizeof(struct kdsm_task_crew) ||
	    theft->workers > size || theft->deques > size ||
	    (__u64)theft->count * theft->stride > size - theft->workers ||
	    kdsm_theft_task(theft, theft->count, 0) - theft->deques > size - theft->deques)
		return -ERANGE;
	return 0;
}

/* Whether the task that a proxy stands for is in a deque of the node. */
static inline int kdsm_theft_is_near(const struct kdsm_theft *theft,
				     const struct kdsm_task_origin *origin)
{
	return !origin->type && origin->worker < theft->count && origin->slot < theft->deque;
}

#endif /* _UAPI_KDSM_TASK_H */
