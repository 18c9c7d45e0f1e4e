/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Tasks, as the kernel and libkdsm both know them: the deques of workers, and the
 * operation KDSM_OP_STEAL of <linux/kdsm.h>, which takes tasks out of them for another
 * node.
 *
 * A worker has a deque, an array of tasks, of which those from tail to split-1 are public:
 * whoever adds to tail, by a compare-and-swap of the word that has both, has the tasks
 * that it passed. The owner alone changes split. This word and all others here are
 * changed by CPUs of their node alone, never by a device, whatever the domain, but what a
 * result is put into: a task's words from bell on, by one put.
 */
#ifndef _UAPI_LINUX_KDSM_TASK_H
#define _UAPI_LINUX_KDSM_TASK_H

#include <linux/errno.h>
#include <linux/types.h>

/* A place of a deque. */
struct kdsm_task {
	__u32 type;		/* what it is to do; 0: nothing */
	__u32 thief;		/* 0 unless it was stolen: by whom, or KDSM_THIEF_DONE */
	__u64 bell;		/* changes when its result comes from another node */
	unsigned char data[112] __attribute__((aligned(16)));	/* arguments, then the result */
};

/* Bytes of the arguments of a task, and of its result, at most; aligned to 16 at most. */
#define KDSM_TASK_BYTES		80

/* The result is there. */
#define KDSM_THIEF_DONE		1U

/* What thieves use of a worker. */
struct kdsm_task_worker {
	__u64 ends;		/* tail, and split << 32: at most the tasks of a deque */
	__u64 other[7];
	__u32 attention;	/* 1: a thief found nothing */
	__u32 more;
};

/* And of all workers of a node: one aligned word. */
struct kdsm_task_crew {
	__u32 busy;		/* workers that run tasks */
	__u32 used;		/* workers from here on were never here */
};

/* Where a task is and where its result goes, and what it is. */
struct kdsm_task_origin {
	__u16 node, worker;
	__u32 slot;		/* of the deque */
	__u32 type;		/* 0: what it is stands there */
	__u32 bytes;		/* of arguments */
};

/* A task on its way. */
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

/* How many of the public tasks a thief takes: half of them, most at most; 0 if none. */
static inline __u32 kdsm_ends_share(__u64 ends, __u32 deque, __u32 most)
{
	__u32 tail = kdsm_ends_tail(ends), split = kdsm_ends_split(ends), half;

	if (tail >= split || split > deque)
		return 0;
	half = (split - tail + 1) / 2;
	return half < most ? half : most;
}

/*
 * KDSM_OP_STEAL: the CPU of the target takes tasks out of the first deque that has public
 * ones, with no attention from its owner, in one round trip. It does this as a worker of
 * the target would for the thief:
 *
 * A task is copied, its place zeroed from bell on, where the result is to be put, and then
 * marked with its thief. A proxy, whose data is a struct kdsm_task_packed, stands for
 * another task: that is what is taken, and the proxy is done. If origin.type is 0 it is a
 * task in a deque of the target, which is no proxy; else the arguments are there.
 *
 * When nothing is public attention of all workers is set, and those that are busy make
 * something public at their next look. The operation's offset is that of a struct
 * kdsm_task_node; length that of this struct with most tasks.
 *
 * Neither proxies nor results are announced to who waits for them, asleep: such workers
 * look again by themselves after about a millisecond.
 */
struct kdsm_theft {
	__u64 workers;		/* offset of the first struct kdsm_task_worker, a multiple of 64 */
	__u64 deques;		/* offset of the first task of the first deque, likewise */
	__u32 stride;		/* bytes from a worker to the next, likewise, 128 at least */
	__u32 count;		/* of workers, 1..KDSM_THEFT_WORKERS */
	__u32 deque;		/* tasks of each, 1..2^24; there is place for one more behind */
	__u32 first;		/* the worker that is looked at first, modulo those used */
	__u32 thief;		/* the mark */
	__u32 proxy;		/* type of proxies; 0: there are none */
	__u32 most;		/* tasks, 1..KDSM_THEFT_MOST, and half of what is public */
	__u32 taken;		/* 0; (out) tasks */
	__u32 busy;		/* 0; (out) workers of the node that run tasks */
	__u32 reserved;		/* 0 */
	/* The tasks follow: kdsm_theft_tasks(). */
};

#define KDSM_THEFT_WORKERS	1024
#define KDSM_THEFT_DEQUE	(1U << 24)
#define KDSM_THEFT_MOST		5

/*
 * (out) The tasks, with bytes of a proxy, or KDSM_TASK_BYTES. They are not a member, because
 * C++ has no flexible arrays.
 */
static inline struct kdsm_task_packed *kdsm_theft_tasks(struct kdsm_theft *theft)
{
	return (struct kdsm_task_packed *)(theft + 1);
}

/* Bytes of one for so many tasks. */
static inline __u32 kdsm_theft_size(__u32 most)
{
	return sizeof(struct kdsm_theft) + most * sizeof(struct kdsm_task_packed);
}

/* Where the words of a worker are, and a task of its deque. */
static inline __u64 kdsm_theft_worker(const struct kdsm_theft *theft, __u32 worker)
{
	return theft->workers + (__u64)worker * theft->stride;
}

static inline __u64 kdsm_theft_task(const struct kdsm_theft *theft, __u32 worker, __u32 slot)
{
	return theft->deques + ((__u64)worker * (theft->deque + 1) + slot) *
			       sizeof(struct kdsm_task);
}

/* May it be done in a part of size bytes, with the crew there? 0, -EINVAL, -ERANGE. */
static inline int kdsm_theft_check(const struct kdsm_theft *theft, __u64 crew, __u64 size)
{
	if (crew % 8 || theft->workers % 64 || theft->deques % 64 || theft->stride % 64 ||
	    theft->stride < sizeof(struct kdsm_task_worker) ||
	    !theft->count || theft->count > KDSM_THEFT_WORKERS ||
	    !theft->deque || theft->deque > KDSM_THEFT_DEQUE ||
	    !theft->most || theft->most > KDSM_THEFT_MOST ||
	    theft->taken || theft->busy || theft->reserved)
		return -EINVAL;
	/* None of the products is above 2^42. */
	if (size < sizeof(struct kdsm_task_crew) ||
	    crew > size - sizeof(struct kdsm_task_crew) ||
	    theft->workers > size || theft->deques > size ||
	    (__u64)theft->count * theft->stride > size - theft->workers ||
	    kdsm_theft_task(theft, theft->count, 0) - theft->deques > size - theft->deques)
		return -ERANGE;
	return 0;
}

/* Of a proxy: whether the task that it stands for is in a deque of the node. */
static inline int kdsm_theft_is_near(const struct kdsm_theft *theft,
				     const struct kdsm_task_origin *origin)
{
	return !origin->type && origin->worker < theft->count && origin->slot < theft->deque;
}

#endif /* _UAPI_LINUX_KDSM_TASK_H */
