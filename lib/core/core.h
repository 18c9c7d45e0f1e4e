/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of libkdsm share: the objects behind the opaque pointers of
 * kdsm/kdsm.h and the table of functions that makes a backend. Nothing here is
 * installed.
 */
#ifndef KDSM_CORE_H
#define KDSM_CORE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <kdsm/kdsm.h>

/* The shared library exports only what starts with kdsm_; so does an archive. */
#define KDSM_PRIVATE __attribute__((visibility("hidden")))

/*
 * A backend says how to reach memory of other nodes and how to sleep. What can
 * be done by the CPU on the own part is the same in all and not its business.
 * Every function gives 0 or a negative errno.
 */
struct kdsm_backend {
	/* Release what opening the backend took; kdsm itself is the caller's. */
	void (*close)(struct kdsm *kdsm);
	/* Of a node that there is, as KDSM_IOC_LOCATION. */
	int (*location)(const struct kdsm *kdsm, unsigned int node,
			char location[KDSM_LOCATION_SIZE]);
	/*
	 * Find or create a region as KDSM_IOC_REGION_OPEN does, fill the (out)
	 * fields of arg, and set fd (and memory) of region. Called, like unbind
	 * and destroy, with kdsm->lock held.
	 */
	int (*bind)(struct kdsm *kdsm, struct kdsm_region_open *arg,
		    struct kdsm_region *region);
	void (*unbind)(struct kdsm_region *region);
	/* Map a bound region: set base, length and, if it has parts, part. */
	int (*map)(struct kdsm_region *region);
	int (*destroy)(struct kdsm *kdsm, const char *name);
	/*
	 * Start operations, none of them for this node's CPU. ticket NULL: and
	 * wait for them. Otherwise *ticket is not 0 if there is something to
	 * complete.
	 */
	int (*submit)(struct kdsm_region *region, struct kdsm_op *ops,
		      unsigned int count, uint64_t *ticket);
	int (*complete)(struct kdsm_region *region, uint64_t ticket,
			uint64_t timeout);
	/* Sleep and wake as KDSM_IOC_WAIT and KDSM_IOC_WAKE; checked offset. */
	int (*wait)(struct kdsm_region *region, uint64_t offset, uint64_t value,
		    uint64_t timeout);
	int (*wake)(struct kdsm_region *region, uint64_t offset);
	/* As KDSM_IOC_RELEASE and KDSM_IOC_ACQUIRE, of a coherent region. */
	int (*release)(struct kdsm_region *region, struct kdsm_signature *signature);
	int (*acquire)(struct kdsm_region *region,
		       const struct kdsm_signature *signature);
	/* As KDSM_IOC_ADVISE; a checked range. */
	int (*advise)(struct kdsm_region *region, enum kdsm_advice advice,
		      uint64_t offset, uint64_t length);
	const struct kdsm_lock_backend *locks;
};

/*
 * Locks of a region, which is open for writing, as the ioctls of the same names: they
 * find, make, wait and give, the caller does what the lock words allow by itself. Numbers
 * of locks are below KDSM_MAX_LOCKS.
 */
struct kdsm_lock_backend {
	/* Set lock_words. Called once a region, with kdsm->lock held; unbind undoes it. */
	int (*map)(struct kdsm_region *region);
	int (*open)(struct kdsm_region *region, struct kdsm_lock_open *arg);
	/* The number of the calling thread. */
	int (*thread)(struct kdsm_region *region, uint32_t *thread);
	int (*take)(struct kdsm_region *region, struct kdsm_lock_take *arg);
	int (*give)(struct kdsm_region *region, struct kdsm_lock_give *arg);
	int (*consistent)(struct kdsm_region *region, struct kdsm_lock_give *arg);
	int (*set)(struct kdsm_region *region, struct kdsm_lock_set *arg);
	int (*info)(struct kdsm_region *region, struct kdsm_lock_info *arg);
};

extern const struct kdsm_backend kdsm_device_backend KDSM_PRIVATE;
extern const struct kdsm_backend kdsm_local_backend KDSM_PRIVATE;
extern const struct kdsm_lock_backend kdsm_device_locks KDSM_PRIVATE;
extern const struct kdsm_lock_backend kdsm_local_locks KDSM_PRIVATE;

/* Counters of one or a few threads, on a cache line of their own. */
struct kdsm_count_slot {
	_Alignas(64) uint64_t get;
	uint64_t put, cas, faa, find, steal, am, bytes, calls;
};

#define KDSM_COUNT_SLOTS 16

struct kdsm_memory;		/* local.c: what the module is to the device */

struct kdsm {
	const struct kdsm_backend *backend;
	int fd;				/* device: for what needs no region */
	unsigned int node, nodes;
	enum kdsm_domain domain;
	char cluster[KDSM_NAME_SIZE];
	bool may_spin;			/* there is more than one CPU to run on */

	/* Guards the lists below and the reference counts of what is in them. */
	pthread_mutex_t lock;
	struct kdsm_region *regions;
	struct kdsm_memory *memories;	/* local: by name, or still bound */
	uint32_t last_id;		/* local: of the newest memory */
	bool alone;			/* local: KDSM_OPEN_ALONE */

	struct kdsm_count_slot counts[KDSM_COUNT_SLOTS];
};

/* How long to spin next time, in nanoseconds; threads race on it, relaxed. */
struct kdsm_spin {
	uint32_t most;
};

/* Everything but refs, next, spin and lock_words is constant once the region is open. */
struct kdsm_region {
	struct kdsm *kdsm;
	const struct kdsm_backend *backend;
	uint8_t *part;			/* own part, part_size bytes */
	uint64_t part_size;		/* coherent: 0, there are none */
	unsigned int node;		/* own number, here for speed */
	bool cpu_atomics;		/* the domain lets the CPU do own ones */
	bool writable;
	bool coherent;
	int fd;
	uint32_t id;
	uint32_t block_size;
	uint64_t size;			/* over all nodes */
	uint8_t *base;			/* of the mapping */
	size_t length;			/* of the mapping */
	uint64_t address;		/* device: where the mapping must be */
	struct kdsm_memory *memory;	/* local */
	struct kdsm_spin spin;		/* of waits for words of the part */
	struct kdsm_lock_word *lock_words;	/* NULL until the first lock is opened */
	uint64_t serial;		/* no other region of this program had it */
	unsigned int refs;
	struct kdsm_region *next;
};

/* client.c */
int kdsm_name_check(const char *name) KDSM_PRIVATE;
void kdsm_count(struct kdsm *kdsm, const struct kdsm_op *ops, unsigned int count) KDSM_PRIVATE;
void kdsm_count_call(struct kdsm *kdsm) KDSM_PRIVATE;
int kdsm_device_open(struct kdsm *kdsm) KDSM_PRIVATE;	/* device.c */
int kdsm_local_open(struct kdsm *kdsm) KDSM_PRIVATE;	/* local.c */

/* wait.c: CLOCK_MONOTONIC, and what is left of a timeout that began then. */
static inline uint64_t kdsm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

uint64_t kdsm_left(uint64_t begin, uint64_t timeout) KDSM_PRIVATE;
/*
 * Look at something for a short while, which is longer where it paid before; timeout
 * at most. Whether done() came true.
 */
bool kdsm_spin(struct kdsm_spin *spin, uint64_t timeout, bool (*done)(const void *),
	       const void *what) KDSM_PRIVATE;
/* Wait until the word at offset of the own part is value; a checked offset. */
int kdsm_await(struct kdsm_region *region, uint64_t offset, uint64_t value,
	       uint64_t timeout) KDSM_PRIVATE;

/* retry.c: how long a node may fail operations before it is given up, in ns; tests lower it */
extern uint64_t kdsm_patience KDSM_PRIVATE;
/*
 * Do operations until all have succeeded, for which retry.c has the conditions. timeout in ns
 * ends the tries, but not an operation. After an error, which is -EHOSTDOWN for a node that could
 * not be reached, ops begins with an operation that failed.
 */
int kdsm_vector_retry(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
		      uint64_t timeout) KDSM_PRIVATE;
/*
 * Judge a probe of a node, which began at begin and ended with status: 0: the node answers; 1: it
 * does not, and may come back; or a negative errno. *since is 0 at first.
 */
int kdsm_silence(uint64_t *since, uint64_t begin, int status) KDSM_PRIVATE;

static inline uint64_t *kdsm_word(const struct kdsm_region *region, uint64_t offset)
{
	return (uint64_t *)(region->part + offset);
}

/* Whether length bytes, at least one, at offset lie in a part, if there are any. */
static inline int kdsm_range_check(const struct kdsm_region *region,
				   uint64_t offset, uint64_t length)
{
	if (offset <= region->part_size && length <= region->part_size - offset)
		return 0;
	return region->coherent ? -EOPNOTSUPP : -ERANGE;
}

/* ---- signature.c ---- */

/* The two puts of kdsm_signature_put(); *value must stay until they are submitted. */
void kdsm_signature_ops(struct kdsm_op ops[2], unsigned int node, uint64_t offset,
			const struct kdsm_signature *signature,
			const uint64_t *value) KDSM_PRIVATE;
/* What kdsm_signature_wait() does when the value is there. */
int kdsm_signature_get(const struct kdsm_region *sync, uint64_t offset,
		       struct kdsm_signature *signature) KDSM_PRIVATE;

/* ---- collective.c ---- */

/*
 * A gang: one process on every node of the cluster, working in step. What it
 * has beyond kdsm_barrier_wait(): values travel with the steps, a member that
 * fails stops the others, and one that vanished is missed within a time-out
 * while one that merely computes for long is not.
 *
 * Steps go along a binomial tree with any node at its root, node 0 unless said
 * otherwise: gather moves up, scatter down, one put and one notifying put to the
 * next node each. All members take the same steps, one thread each, gather and
 * scatter in turn, a scatter from the root of the gather before it: that a member
 * takes a step shows that it has read the words of the one before, whose place
 * the next words take.
 */
#define KD_GANG_BYTES	1024	/* of every part; zero at first */
#define KD_GANG_WORDS	7	/* that travel with a step */

struct kd_gang {
	struct kdsm_region *region;
	uint64_t offset;
	unsigned int node, nodes;
	uint64_t timeout;	/* ns without a sign of life */
	unsigned int root;	/* of the next gather and scatter; all have the same */
	uint64_t up, down;	/* steps taken */
	pthread_t heart;
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t stop;
	bool stopping, beating;
	unsigned int culprit;	/* after a failed step: which node */
};

/* -EBUSY: another process of this node is in the gang. */
int kd_gang_join(struct kd_gang *gang, struct kdsm_region *region,
		 uint64_t offset, uint64_t timeout);
void kd_gang_leave(struct kd_gang *gang);

/*
 * Combine the words of all nodes: combine(context, mine, theirs) puts into mine
 * what both come to, and returns 0 or a negative errno. The root has the result.
 */
typedef int (*kd_gang_combine)(void *context, uint64_t *mine, const uint64_t *theirs);
int kd_gang_gather(struct kd_gang *gang, uint64_t *words, kd_gang_combine combine,
		   void *context);

/* Give the words of the root to all. */
int kd_gang_scatter(struct kd_gang *gang, uint64_t *words);

/*
 * Steps fail with -ETIMEDOUT (culprit gave no sign of life), -ECANCELED (culprit
 * gave up) or the error of an operation on the region. Who fails tells the
 * others by kd_gang_abort(), with an errno for them to know.
 */
void kd_gang_abort(struct kd_gang *gang, int error);

/* 0, or the negative errno with which a member gave up: *culprit (may be NULL). */
int kd_gang_aborted(const struct kd_gang *gang, unsigned int *culprit);

#endif /* KDSM_CORE_H */
