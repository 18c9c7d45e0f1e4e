/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface of lib/core to the other folders of the library: the objects behind the
 * opaque pointers of kdsm/kdsm.h, the table of functions that each backend implements,
 * retries, and the gang of collective steps. This header is not installed. Operations by
 * the CPU and the internals of the local backend are in core/internal.h.
 */
#ifndef KDSM_CORE_H
#define KDSM_CORE_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kdsm/kdsm.h>

#include "core/thread.h"

/*
 * A backend reaches memory of other nodes and puts threads to sleep. Operations that the
 * CPU performs on the node's own part are the same for all backends and live in
 * operation.c. Every function returns 0 or a negative errno.
 */
struct kdsm_backend {
	/* Release what opening the backend acquired. The caller frees *kdsm itself. */
	void (*close)(struct kdsm *kdsm);
	/* As KDSM_IOC_LOCATION. The caller has checked that node exists. */
	int (*location)(const struct kdsm *kdsm, unsigned int node,
			char location[KDSM_LOCATION_SIZE]);
	/*
	 * Find or create a region as KDSM_IOC_REGION_OPEN does, fill the (out) fields of
	 * arg, and set fd, writable, and address or memory of region. The caller of bind,
	 * unbind, map and destroy holds kdsm->lock.
	 */
	int (*bind)(struct kdsm *kdsm, struct kdsm_region_open *arg,
		    struct kdsm_region *region);
	void (*unbind)(struct kdsm_region *region);
	/*
	 * Map a bound region: set base, length and, for a partitioned region, part. If this
	 * function fails, the caller calls unbind.
	 */
	int (*map)(struct kdsm_region *region);
	int (*destroy)(struct kdsm *kdsm, const char *name);
	/*
	 * Start operations; the caller has removed those that this node's CPU performs. If
	 * ticket is NULL, wait until all are complete. Otherwise store the ticket for
	 * complete() in *ticket, or 0 if nothing is left to complete.
	 */
	int (*submit)(struct kdsm_region *region, struct kdsm_op *ops,
		      unsigned int count, uint64_t *ticket);
	int (*complete)(struct kdsm_region *region, uint64_t ticket,
			uint64_t timeout);
	/*
	 * As KDSM_IOC_RING_SETUP, and map the ring at *memory; as KDSM_IOC_RING_ENTER on the file
	 * of the ring. NULL: ring_local.c performs the operations of rings.
	 */
	int (*ring_setup)(struct kdsm_region *region, struct kdsm_ring_setup *arg, void **memory);
	int (*ring_enter)(int file, struct kdsm_ring_enter *arg);
	/*
	 * Sleep and wake as KDSM_IOC_WAIT and KDSM_IOC_WAKE do. The caller has checked
	 * offset. wait returns -EINTR if a signal was caught.
	 */
	int (*wait)(struct kdsm_region *region, uint64_t offset, uint64_t value,
		    uint64_t timeout);
	int (*wake)(struct kdsm_region *region, uint64_t offset);
	/*
	 * As KDSM_IOC_SETTLE: wait until these nodes see what this process has put there. NULL
	 * if every put is seen when it is complete. Add the messages sent to *messages.
	 */
	int (*settle)(struct kdsm *kdsm, const uint64_t nodes[KDSM_MAX_NODES / 64],
		      uint32_t *messages);
	/* As KDSM_IOC_RELEASE and KDSM_IOC_ACQUIRE. The region is coherent. */
	int (*release)(struct kdsm_region *region, struct kdsm_signature *signature);
	int (*acquire)(struct kdsm_region *region,
		       const struct kdsm_signature *signature);
	/* As KDSM_IOC_ADVISE. The caller has checked the range. */
	int (*advise)(struct kdsm_region *region, enum kdsm_advice advice,
		      uint64_t offset, uint64_t length);
	/*
	 * As KDSM_IOC_ATOMIC, for policy release. NULL: the CPU may do it. The caller has
	 * checked arg.
	 */
	int (*atomic)(struct kdsm_region *region, struct kdsm_atomic *arg);
	/* As KDSM_IOC_HOME; returns the node. NULL: there is one node. */
	int (*home)(struct kdsm_region *region, uint64_t offset);
	/* As KDSM_IOC_RACES. The region is coherent. */
	int (*races)(struct kdsm_region *region, struct kdsm_races *arg);
	/* As KDSM_IOC_LOST and KDSM_IOC_DISCARD. The caller has checked region and range. */
	int (*lost)(struct kdsm_region *region, struct kdsm_lost *arg);
	int (*discard)(struct kdsm_region *region, uint64_t offset, uint64_t length);
	const struct kdsm_lock_backend *locks;
};

/*
 * Locks of a region that is open for writing. Except for map, each function does what one
 * ioctl of <kdsm/uapi.h> does: KDSM_IOC_LOCK_OPEN, _THREAD, KDSM_IOC_LOCK (take),
 * KDSM_IOC_UNLOCK (give), KDSM_IOC_LOCK_CONSISTENT, _SET and _INFO. The caller performs by
 * itself the transitions that the lock word allows without a call. Lock numbers in arg are
 * below KDSM_MAX_LOCKS; only open checks the number. take returns -EINTR if a signal was
 * caught; the caller decides whether to repeat the call.
 */
struct kdsm_lock_backend {
	/* Set lock_words, once for each region; unbind undoes it. Caller holds kdsm->lock. */
	int (*map)(struct kdsm_region *region);
	int (*open)(struct kdsm_region *region, struct kdsm_lock_open *arg);
	/* Store the number of the calling thread in *thread. */
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

/* Operation counters of one or several threads, on a cache line of their own */
struct kdsm_count_slot {
	_Alignas(64) uint64_t get;
	uint64_t put, cas, faa, find, steal, am, bytes, calls;
};

#define KDSM_COUNT_SLOTS 16

/* local.c: the local backend's counterpart of a region in the module */
struct kdsm_memory;

struct kdsm {
	const struct kdsm_backend *backend;
	int fd;				/* device: for calls that concern no region */
	unsigned int node, nodes;
	enum kdsm_domain domain;
	char cluster[KDSM_NAME_SIZE];
	bool may_spin;			/* the process can run on more than one CPU */

	/* Protects the lists below and the reference counts of their elements. */
	pthread_mutex_t lock;
	struct kdsm_region *regions;
	struct kdsm_memory *memories;	/* local: named or still bound */
	uint32_t last_id;		/* local: id of the newest memory */
	bool alone;			/* local: opened with KDSM_OPEN_ALONE */
	struct kd_shared *shared;	/* local: what unrelated processes share, or NULL */

	/* settle.c: nodes as sets of bits; a thread that holds settle_lock sets settling */
	uint64_t unsettled[KDSM_MAX_NODES / 64], announced[KDSM_MAX_NODES / 64];
	pthread_mutex_t settle_lock;
	bool settling;

	struct kdsm_count_slot counts[KDSM_COUNT_SLOTS];
};

/*
 * The limit of the next spin, in ns; initially 0. Threads update the limit concurrently with
 * relaxed accesses.
 */
struct kdsm_spin {
	uint32_t most;
};

/* Every field but refs, next, spin and lock_words is constant once the region is open. */
struct kdsm_region {
	struct kdsm *kdsm;
	const struct kdsm_backend *backend;
	uint8_t *part;			/* this node's part, part_size bytes */
	uint64_t part_size;		/* coherent: 0, because there are no parts */
	unsigned int node;		/* copy of kdsm->node, to save a load */
	/*
	 * Nodes that take part in the region, and are among those that the process knows. Nodes may
	 * be added after a region was created, and after the process opened the cluster.
	 */
	unsigned int nodes;
	unsigned int parts;		/* nodes that take part, known to the process or not */
	bool cpu_atomics;		/* the CPU may perform atomics on the own part */
	bool writable;
	bool coherent;
	bool strict;			/* coherent, of policy strict */
	char name[KDSM_NAME_SIZE];	/* by which it was opened, for texts of errors */
	int fd;
	uint32_t id;
	uint32_t segment_count;
	struct kdsm_region_segment segments[KDSM_MAX_SEGMENTS];
	uint64_t size;			/* sum over all nodes, in bytes */
	uint8_t *base;			/* start of the mapping */
	size_t length;			/* length of the mapping, in bytes */
	uint64_t address;		/* device: the address that the mapping must have */
	uint64_t window;		/* bytes to map, in place of what is there; 0: all */
	struct kdsm_memory *memory;	/* local backend only */
	struct kdsm_spin spin;		/* for waits for words of the part */
	struct kdsm_lock_word *lock_words;	/* NULL until the first lock is opened */
	uint64_t serial;		/* unique among all regions of this process */
	unsigned int refs;
	struct kdsm_region *next;
};

/* ---- region.c ---- */

/* Whether a creator may choose arg->base; arg->size is not too large for an address. */
static inline bool kd_base_allowed(const struct kdsm_region_open *arg)
{
	return arg->base && !(arg->base % 4096) &&
	       (arg->base >= KDSM_ARENA_END || arg->base + arg->size <= KDSM_ARENA_START);
}

/**
 * kd_region_open_over() - open a region and map its beginning in place of what is mapped there
 * @kdsm: the cluster
 * @name: of the region
 * @attr: as of kdsm_region_open(), with an address
 * @window: bytes to map, whole pages
 * @region: filled in
 *
 * Closing the region leaves nothing at these addresses.
 *
 * Return: as kdsm_region_open().
 */
int kd_region_open_over(struct kdsm *kdsm, const char *name, const struct kdsm_region_attr *attr,
			uint64_t window, struct kdsm_region **region);

/* ---- error.c ---- */

/**
 * kd_because() - give the reason of an error
 * @error: negative errno that the public call is about to return
 * @format: one sentence without a full stop, as of printf(3): which argument or object is wrong,
 *	and what would be right
 *
 * Return: @error.
 */
int kd_because(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Forget the reason of an earlier error if error is below 0, so that kdsm_error() does not take
 * that for the reason of this one. Returns error.
 */
int kd_no_reason(int error);

/* ---- argument.c ---- */

/**
 * kd_argument_in() - copy a struct of the caller that begins with its size
 * @type: name of the struct, for texts of errors
 * @own: copy with the size that this version knows
 * @size: of @own, in bytes
 * @argument: struct of the caller. Fields that it lacks are 0 in @own; fields that this version
 *	does not know must be 0
 *
 * On failure, @own has the fields of @argument that are certainly there: none if argsz is no size.
 *
 * Return: 0, -EINVAL, or -E2BIG.
 */
int kd_argument_in(const char *type, void *own, size_t size, const void *argument);
#define KD_ARGUMENT_IN(type, own, argument) \
	kd_argument_in("struct " #type, own, sizeof(struct type), argument)

/**
 * kd_argument_out() - fill in a struct of the caller that begins with its size
 * @type: name of the struct, for texts of errors
 * @own: result with the size that this version knows
 * @size: of @own, in bytes
 * @argument: struct of the caller, whose first field has its size. Fields that this version does
 *	not know become 0
 *
 * Return: 0, -EINVAL, or -E2BIG.
 */
int kd_argument_out(const char *type, const void *own, size_t size, void *argument);
#define KD_ARGUMENT_OUT(type, own, argument) \
	kd_argument_out("struct " #type, own, sizeof(struct type), argument)

/* ---- segment.c ---- */

/**
 * kdsm_segments_complete() - fill in one segment of block_size if there are none
 * @arg: a request to create a region, or the result of a module that is too old to know segments
 */
void kdsm_segments_complete(struct kdsm_region_open *arg) KDSM_PRIVATE;

/**
 * kdsm_segments_check() - fill in missing segments and block size, and check the segments
 * @arg: a request to create a region, with at most KDSM_MAX_SEGMENTS segments
 *
 * For backends without a module, because the module checks the segments itself.
 *
 * Return: 0, or -EINVAL as of KDSM_IOC_REGION_OPEN.
 */
int kdsm_segments_check(struct kdsm_region_open *arg) KDSM_PRIVATE;

/**
 * kdsm_segments_equal() - compare the segments of two requests
 * @a: a request that passed kdsm_segments_check()
 * @b: another such request
 *
 * Return: whether both have the same segments.
 */
bool kdsm_segments_equal(const struct kdsm_region_open *a,
			 const struct kdsm_region_open *b) KDSM_PRIVATE;

/* ---- client.c ---- */

/**
 * kdsm_name_check() - check the name of a region or lock
 * @what: "region" or "lock", for the text of the error
 * @name: may be NULL
 *
 * Return: 0 if the module accepts the name, otherwise -EINVAL.
 */
int kdsm_name_check(const char *what, const char *name) KDSM_PRIVATE;

int kdsm_device_open(struct kdsm *kdsm) KDSM_PRIVATE;	/* device.c */
int kdsm_local_open(struct kdsm *kdsm) KDSM_PRIVATE;	/* local.c */
int kdsm_local_share(struct kdsm *kdsm, const char *name) KDSM_PRIVATE;

/**
 * kd_shared_open() - open a local backend that unrelated processes of one user share
 * @name: names the backend, as kdsm_name_check() requires
 * @kdsm: filled in by this function; the caller closes it by kdsm_close()
 *
 * Regions have the same address in each process. A region lasts until the last process that has the
 * backend open closes it or ends. A process can open one such backend, and no other local backend
 * before.
 *
 * Return: 0, -EBUSY if the process has opened a local backend before, -EPERM if another user has
 * files of that name, or an error of kdsm_open().
 */
int kd_shared_open(const char *name, struct kdsm **kdsm) KDSM_PRIVATE;	/* client.c */
/* Remove the files if this process is the last one, which ends without kdsm_close(). */
void kd_shared_leave(struct kdsm *kdsm) KDSM_PRIVATE;			/* local.c */

/* ---- count.c ---- */

/* Count operations and system calls for kdsm_counts(). */
void kdsm_count(struct kdsm *kdsm, const struct kdsm_op *ops, unsigned int count) KDSM_PRIVATE;
void kdsm_count_call(struct kdsm *kdsm) KDSM_PRIVATE;
void kdsm_count_messages(struct kdsm *kdsm, unsigned int count) KDSM_PRIVATE;

/* ---- operation.c ---- */

/*
 * Perform one operation on the own part by the CPU. Returns 0 or the status of the
 * operation.
 */
int kdsm_own_op(struct kdsm_region *region, struct kdsm_op *op) KDSM_PRIVATE;

/* ---- settle.c ---- */

/*
 * Remember that the operations are complete, for the next kdsm_settle(). The functions of
 * kdsm/kdsm.h call this; kd_vector() and kd_put_word() do not.
 */
void kd_unsettled(struct kdsm_region *region, const struct kdsm_op *ops,
		  unsigned int count) KDSM_PRIVATE;
/*
 * As kdsm_settle(), but only for what this process has put to one node without KDSM_OP_NOTIFY.
 */
int kd_settle_node(struct kdsm *kdsm, unsigned int node) KDSM_PRIVATE;

/* ---- vector.c ---- */

/*
 * As kdsm_vector(), but kdsm_settle() does not wait until other nodes see the puts. For puts
 * whose words say by themselves that they have arrived.
 */
int kd_vector(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count) KDSM_PRIVATE;

/* ---- wait.c ---- */

/*
 * As kdsm_put_notify(), but without the promise about earlier puts: for words that mean nothing
 * but themselves.
 */
int kd_put_word(struct kdsm_region *region, unsigned int node, uint64_t offset,
		uint64_t value) KDSM_PRIVATE;

/**
 * kdsm_spin() - poll for a short time before the caller sleeps
 * @spin: the adaptive limit, shared by all waits of the same kind
 * @timeout: upper bound of the time to spin, in ns
 * @done: the condition to poll
 * @what: argument of @done
 *
 * The limit doubles when @done became true within the limit, and halves when it did not.
 *
 * Return: whether @done(@what) became true.
 */
bool kdsm_spin(struct kdsm_spin *spin, uint64_t timeout, bool (*done)(const void *),
	       const void *what) KDSM_PRIVATE;

/**
 * kdsm_await() - wait until a word of the own part has a value
 * @region: a partitioned region
 * @offset: of the word; the caller has checked it
 * @value: the value that ends the wait
 * @timeout: in ns, or KDSM_FOREVER
 *
 * Signals do not end the wait.
 *
 * Return: 0 or a negative errno, such as -ETIMEDOUT.
 */
int kdsm_await(struct kdsm_region *region, uint64_t offset, uint64_t value,
	       uint64_t timeout) KDSM_PRIVATE;

/* ---- retry.c ---- */

/* Retries on a node that has failed operations for this long end, in ns; tests lower it. */
extern uint64_t kdsm_patience KDSM_PRIVATE;

/**
 * kdsm_vector_retry() - repeat operations until all have succeeded
 * @region: a partitioned region
 * @ops: operations that may take effect twice, as the head of retry.c requires; reordered
 * @count: number of @ops
 * @timeout: no attempt begins after this time, in ns; an attempt in flight is not cut short
 *
 * Return: 0; -EHOSTDOWN if operations failed for kdsm_patience; -ETIMEDOUT; or the status of
 * an operation that a retry cannot mend. After an error @ops begins with an operation that
 * failed.
 */
int kdsm_vector_retry(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
		      uint64_t timeout) KDSM_PRIVATE;

/* As kdsm_settle(), repeated as kdsm_vector_retry() repeats operations */
int kd_settle_retry(struct kdsm *kdsm, uint64_t timeout) KDSM_PRIVATE;

/**
 * kdsm_silence() - judge the result of a probe of a node
 * @since: begin of the first probe that failed since the last success, in ns; initially 0
 * @begin: when this probe began, in ns
 * @status: result of the probe; -EIO, -EHOSTDOWN and -ETIMEDOUT mean silence
 *
 * Return: 0 if the node answers; 1 if the node has been silent for less than kdsm_patience;
 * -EHOSTDOWN if the node has been silent for longer; or @status if it is an error of another
 * kind.
 */
int kdsm_silence(uint64_t *since, uint64_t begin, int status) KDSM_PRIVATE;

/* Returns the address of a word of the own part; the caller has checked offset. */
static inline uint64_t *kdsm_word(const struct kdsm_region *region, uint64_t offset)
{
	return (uint64_t *)(region->part + offset);
}

/* -ERANGE, or -EOPNOTSUPP if the region has no parts; and -EINVAL for an offset; with reasons */
int kd_not_in_part(const struct kdsm_region *region, uint64_t offset, uint64_t length);
int kd_misaligned(uint64_t offset, unsigned int unit);
/*
 * -EINVAL for a node that does not exist, or takes no part in the region; -EACCES, -EOPNOTSUPP for
 * a region; with reasons
 */
int kd_no_node(const struct kdsm *kdsm, unsigned int node);
int kd_no_part(const struct kdsm_region *region, unsigned int node);
int kd_read_only(const struct kdsm_region *region);
int kd_not_partitioned(const struct kdsm_region *region);
int kd_not_coherent(const struct kdsm_region *region);
/* 0, or -EINVAL with the reason: a pair of regions must be of one struct kdsm */
int kd_pair_check(const struct kdsm_region *region, const struct kdsm_region *sync);

/**
 * kdsm_range_check() - check that a range lies within a part
 * @region: any region
 * @offset: of the range in the part
 * @length: in bytes, at least 1
 *
 * Return: 0, -ERANGE, or -EOPNOTSUPP if the region is coherent and so has no parts.
 */
static inline int kdsm_range_check(const struct kdsm_region *region,
				   uint64_t offset, uint64_t length)
{
	if (offset <= region->part_size && length <= region->part_size - offset)
		return 0;
	return kd_not_in_part(region, offset, length);
}

/* Returns 0 if offset is a multiple of unit, else -EINVAL. */
static inline int kd_offset_check(uint64_t offset, unsigned int unit)
{
	return offset % unit ? kd_misaligned(offset, unit) : 0;
}

/* As kd_offset_check() and kdsm_range_check() */
static inline int kd_place_check(const struct kdsm_region *region, uint64_t offset,
				 unsigned int unit, uint64_t length)
{
	int ret = kd_offset_check(offset, unit);

	return ret ? ret : kdsm_range_check(region, offset, length);
}

static inline uint64_t kdsm_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- notice.c ---- */

/**
 * kdsm_notices_join() - join notices of neighbouring blocks until they fit
 * @list: the notices, in any order; sorted by descending timestamps on return
 * @count: number of notices in @list
 * @room: number of notices that fit
 *
 * The remaining notices demand at least the content that all notices demanded.
 *
 * Return: number of remaining notices. It exceeds @room if cheap joins do not suffice.
 */
unsigned int kdsm_notices_join(struct kdsm_notice *list, unsigned int count,
			       unsigned int room) KDSM_PRIVATE;

/* ---- signature.c ---- */

/**
 * kdsm_signature_ops() - fill in the two puts of kdsm_signature_put()
 * @ops: filled in by this function
 * @node: destination
 * @offset: of a place of KDSM_SIGNATURE_PLACE bytes in the destination's part
 * @signature: must stay valid until the operations are complete
 * @value: announces the signature; must stay valid until the operations are complete
 */
void kdsm_signature_ops(struct kdsm_op ops[2], unsigned int node, uint64_t offset,
			const struct kdsm_signature *signature,
			const uint64_t *value) KDSM_PRIVATE;

/**
 * kdsm_signature_get() - read a signature from a place of the own part
 * @sync: a partitioned region
 * @offset: of the place, where the value has arrived; the caller has checked it
 * @signature: filled in by this function
 *
 * Return: 0, or -EPROTO if the place holds no valid signature.
 */
int kdsm_signature_get(const struct kdsm_region *sync, uint64_t offset,
		       struct kdsm_signature *signature) KDSM_PRIVATE;

/* ---- failure words ---- */

/*
 * A word that tells another node by one put that a node has failed. The bytes of a put become
 * visible in any order, so each byte that has arrived has its highest bit set, and the other
 * bits carry the node and the errno. Words of two nodes that fail at once may mix: the receiver
 * still sees a failure, perhaps with the node of one and the errno of the other.
 */
#define KD_FAILURE_BYTES	UINT64_C(0x8080808080808080)

static inline uint64_t kd_failure_word(unsigned int node, int error)
{
	uint64_t code = -error;

	return KD_FAILURE_BYTES | (node & 0x7f) | (node >> 7 & 0x7f) << 8 |
	       (code & 0x7f) << 16 | (code >> 7 & 0x7f) << 24;
}

/**
 * kd_failure_read() - decode a failure word of the own part
 * @word: loaded from the part
 * @nodes: number of nodes of the cluster
 * @own: stands for the failed node if @word names a node that does not exist
 * @node: filled in with the failed node, if the word has arrived
 *
 * Return: 0 if the word has not arrived, or not all of it; otherwise the negative errno.
 */
static inline int kd_failure_read(uint64_t word, unsigned int nodes, unsigned int own,
				  unsigned int *node)
{
	unsigned int from = (word & 0x7f) | (word >> 8 & 0x7f) << 7;
	int code = (word >> 16 & 0x7f) | (word >> 24 & 0x7f) << 7;

	if ((word & KD_FAILURE_BYTES) != KD_FAILURE_BYTES)
		return 0;
	*node = from < nodes ? from : own;
	return code && code < 4096 ? -code : -EPROTO;
}

/* ---- collective.c ---- */

/*
 * A gang: one process on every node of the cluster, and all processes take the same steps.
 * A gang adds three properties to kdsm_barrier_wait(): steps carry values; a member that
 * fails stops the others; and the others detect within a timeout that a member has died, but
 * do not mistake a member that computes for a long time for a dead one.
 *
 * Steps follow a binomial tree with node 0 as its root: gather moves values up, scatter moves them
 * down, with one notifying put to the next node each. All members take the same steps, with one
 * thread each. A step does not settle what members have put: see kdsm_settle(). Gather and scatter
 * alternate. Because of this alternation, a member that takes a step has read the words of the
 * previous step, so the next words may overwrite them.
 */
#define KD_GANG_BYTES	1024	/* bytes of every part; initially zero */
#define KD_GANG_WORDS	7	/* words that a step carries */

struct kd_gang {
	struct kdsm_region *region;
	uint64_t offset;
	struct kd_gang *whole;	/* the gang itself, or the gang of whose nodes it has some */
	unsigned int first;	/* node of the cluster that is the gang's node 0 */
	unsigned int node, nodes;
	uint64_t timeout;	/* longest time without a heartbeat, in ns */
	uint64_t up, down;	/* number of gathers and of scatters so far */
	struct kd_thread heart;
	pthread_mutex_t lock;	/* protects stopping; stop is its condition */
	pthread_cond_t stop;
	bool stopping, beating;
	unsigned int culprit;	/* after a failed step: the node of the cluster that caused it */
};

/**
 * kd_gang_join() - join the gang as the process of this node
 * @gang: filled in by this function
 * @region: a partitioned region
 * @offset: of KD_GANG_BYTES bytes in every part, initially zero
 * @timeout: a member without a heartbeat for this long is dead, in ns
 *
 * The caller calls kd_gang_leave(), even after an error.
 *
 * Return: 0 or a negative errno: -EBUSY if a process of this node has already joined.
 */
int kd_gang_join(struct kd_gang *gang, struct kdsm_region *region,
		 uint64_t offset, uint64_t timeout);

/**
 * kd_gang_some() - make a gang of the nodes of another one from a node on
 * @gang: filled in by this function; it needs no kd_gang_leave()
 * @whole: a joined gang, which outlives @gang; this node is at least @first
 * @offset: of KD_GANG_BYTES bytes in every part, initially zero
 * @first: the lowest node of @gang
 *
 * Steps and kd_gang_abort() of @gang concern its own nodes only. kd_gang_abort() of @whole ends
 * steps of @gang, too. Heartbeats are those of @whole.
 */
void kd_gang_some(struct kd_gang *gang, struct kd_gang *whole, uint64_t offset,
		  unsigned int first);

/**
 * kd_gang_leave() - stop the heartbeat of this node and release the gang
 * @gang: joined, or never joined and zeroed
 *
 * The claim of this node stays in the region: no process of this node can join again.
 */
void kd_gang_leave(struct kd_gang *gang);

/**
 * typedef kd_gang_combine - combine the words of two nodes
 * @context: argument of kd_gang_gather()
 * @mine: words of this node; overwritten with the combination
 * @theirs: words of the other node
 *
 * Return: 0 or a negative errno.
 */
typedef int (*kd_gang_combine)(void *context, uint64_t *mine, const uint64_t *theirs);

/**
 * kd_gang_gather() - combine the words of all nodes at the root
 * @gang: joined by this process
 * @words: KD_GANG_WORDS words of this node; at the root overwritten with the result, at
 *	other members with an intermediate result
 * @combine: combines the words of two nodes; NULL: the members only wait for each other
 * @context: argument of @combine
 *
 * After an error, the member calls kd_gang_abort() to inform the others.
 *
 * Return: 0; -ETIMEDOUT if gang->culprit sent no heartbeat; -EHOSTDOWN if operations on
 * gang->culprit kept failing; -ECANCELED if gang->culprit aborted; or the error of @combine
 * or of an operation on the region.
 */
int kd_gang_gather(struct kd_gang *gang, uint64_t *words, kd_gang_combine combine,
		   void *context);

/**
 * kd_gang_scatter() - distribute the words of the root to all members
 * @gang: joined by this process
 * @words: KD_GANG_WORDS words; input at the root, output at the other members
 *
 * Return: as kd_gang_gather().
 */
int kd_gang_scatter(struct kd_gang *gang, uint64_t *words);

/**
 * kd_gang_abort() - stop the other members after a failure
 * @gang: joined by this process
 * @error: negative errno that kd_gang_aborted() returns at the other members
 */
void kd_gang_abort(struct kd_gang *gang, int error);

/**
 * kd_gang_aborted() - check whether a member has called kd_gang_abort()
 * @gang: joined by this process
 * @culprit: filled in with that member's node; may be NULL
 *
 * Return: 0, or the negative errno that the member passed to kd_gang_abort().
 */
int kd_gang_aborted(const struct kd_gang *gang, unsigned int *culprit);

/**
 * kd_gang_tell() - put a word into the part of a member
 * @gang: joined by this process
 * @node: the member
 * @offset: of the word in each part of the region
 * @word: the value; no other member puts one there
 *
 * Repeats the put while the connection is broken, for at most gang->timeout.
 *
 * Return: 0 or a negative errno.
 */
int kd_gang_tell(struct kd_gang *gang, unsigned int node, uint64_t offset, uint64_t word);

/**
 * kd_gang_stop() - ask all members to stop at a place where they can go on later
 * @gang: joined by this process
 *
 * The gang goes on: each member ends its own work when it sees the request.
 */
void kd_gang_stop(struct kd_gang *gang);

/**
 * kd_gang_stopping() - check whether a member has called kd_gang_stop()
 * @gang: joined by this process
 *
 * Members may see the request at different times, and some not at all.
 *
 * Return: whether this member has seen a request.
 */
bool kd_gang_stopping(const struct kd_gang *gang);

/**
 * kd_gang_pause() - ask all members for a pause
 * @gang: joined by this process
 * @number: of the pause, not 0; the members agree on its meaning
 *
 * Members may see the request at different times, and some not at all.
 */
void kd_gang_pause(struct kd_gang *gang, uint64_t number);
/* The number of the newest pause that this member has been asked for; 0: none */
uint64_t kd_gang_pausing(const struct kd_gang *gang);

#endif /* KDSM_CORE_H */
