/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkdsm: memory shared by the machines of a cluster.
 *
 * A program opens the cluster, opens a region by name, and reads and writes the
 * region. In a partitioned region a place is a pair (node, offset in that node's
 * part), and the functions below operate on places. A coherent region is used by
 * loads and stores: see <kdsm/coherent.h>. Each function has a manual page in
 * section 3; kdsm(7) is the overview.
 *
 * Conventions of every header of libkdsm:
 *
 *   - A function that can fail returns 0 or a positive value for success, and a
 *     negative errno for failure. The variable errno has no meaning after a call.
 *   - Any number of threads may call any function at the same time, unless a
 *     comment allows only one thread. The caller ensures that no thread uses an
 *     object that another thread closes.
 *   - Sizes, offsets and lengths are in bytes; times are in nanoseconds.
 *   - Arguments come in one order: the object; the place (the name, or the node and then
 *     the offset); values, each buffer or array followed by its length, options and the
 *     timeout; results last. A function *_init() fills the object, its first argument.
 *   - A struct that has the field argsz may grow in later versions. The caller sets argsz to
 *     the size of the struct: struct kdsm_counts counts = { .argsz = sizeof(counts) }. A field
 *     that the caller's struct lacks counts as 0. -EINVAL: argsz is below sizeof(size_t);
 *     -E2BIG: argsz is above 4096, or a field that this library does not know is not 0. These
 *     are "the errors of argsz". The library ignores argsz of a struct inside another one.
 *   - The library copies a string that the caller passes. A pointer that a
 *     function returns belongs to the object that the caller passed, unless a
 *     comment says that the caller closes or frees it.
 */
#ifndef KDSM_H
#define KDSM_H

#include <stddef.h>
#include <stdint.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_table.h>
#include <kdsm/uapi_task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A timeout that never ends. With a timeout of 0 a wait does not sleep. */
#define KDSM_FOREVER UINT64_MAX

/* ---- errors and version ---- */

/*
 * Return why the last function that failed in the calling thread returned error, a negative
 * errno: which name, size, node or offset was wrong, and what would be right. If that function
 * returned another errno or gave no reason, return kdsm_strerror(error). The text is a sentence
 * without a full stop, and is valid until a function fails in this thread.
 */
const char *kdsm_error(int error);
/*
 * Return what an errno, positive or negative, means in libkdsm. The text is valid as long as the
 * program runs.
 */
const char *kdsm_strerror(int error);
/* Return the version of the library, "MAJOR.MINOR.PATCH". */
const char *kdsm_version(void);

/* ---- cluster ---- */

/* A program's connection to the cluster. */
struct kdsm;

/* Flags of kdsm_open() */

/* Use the local backend if the module is not loaded or the cluster is down. */
#define KDSM_OPEN_ALLOW_LOCAL	(1U << 0)
/* Use the local backend even if there is a cluster. */
#define KDSM_OPEN_LOCAL		(1U << 1)
/* With the local backend: do not share its regions with children of fork(). */
#define KDSM_OPEN_ALONE		(1U << 2)

/*
 * Open the cluster. The caller closes *kdsm with kdsm_close(); on failure *kdsm is
 * NULL.
 *
 * The local backend is a cluster of one node (node 0 of 1, domain SW) inside this
 * process. Only this struct kdsm knows the names of its regions. A region is a
 * memfd, which children of fork() share. With KDSM_OPEN_ALONE a region is private
 * memory, for which the kernel can use huge pages; a large region then takes fewer
 * page faults.
 *
 * KDSM_OPEN_ALLOW_LOCAL covers -ENOENT, -ENODEV, -ENXIO and -ENETDOWN only.
 *
 * -EINVAL	kdsm is NULL, or flags has an unknown bit
 * -ENOENT	/dev/kdsm does not exist: the module is not loaded
 * -ENODEV, -ENXIO	/dev/kdsm exists, but no driver serves it
 * -EACCES	the permissions of /dev/kdsm forbid it
 * -ENETDOWN	the cluster is not up on this node: kdsmctl(8)
 * -EPROTO	module and library have different ABI versions, or /dev/kdsm belongs to
 *		another driver
 * -ENOMEM, -EMFILE, -ENFILE	no memory, or no file descriptor
 */
int kdsm_open(unsigned int flags, struct kdsm **kdsm);

/* Close the cluster. The caller has closed all its regions. NULL is ignored. */
void kdsm_close(struct kdsm *kdsm);

/* Number of this node, 0 to kdsm_nodes() - 1. */
unsigned int kdsm_node(const struct kdsm *kdsm);
/* Number of nodes in the cluster, 1 to KDSM_MAX_NODES. */
unsigned int kdsm_nodes(const struct kdsm *kdsm);
/* Atomicity domain in force, never KDSM_DOMAIN_AUTO. */
enum kdsm_domain kdsm_domain(const struct kdsm *kdsm);
/*
 * Store the location of a node, as in kdsm.conf(5), with its NUL. The string is
 * empty if the node has no location, and for the local backend.
 *
 * -EINVAL	node is not below kdsm_nodes()
 * -ENETDOWN	the cluster went down
 */
int kdsm_location(const struct kdsm *kdsm, unsigned int node,
		  char location[KDSM_LOCATION_SIZE]);
/* 1 for the local backend, else 0. */
int kdsm_is_local(const struct kdsm *kdsm);
/* Name of the cluster, "local" for the local backend; valid until kdsm_close(). */
const char *kdsm_cluster_name(const struct kdsm *kdsm);

/* ---- regions ---- */

/* An open region. */
struct kdsm_region;

struct kdsm_region_attr {
	size_t argsz;		/* size of this struct */
	uint64_t size;		/* over all nodes, in bytes, at least 1; rounded up to whole
				 * blocks, or to multiples of 2 MiB: see kdsm_region_size()
				 */
	uint32_t block_size;	/* in bytes, a power of two, 4 KiB to 2 MiB; 0: 4 KiB, or that of
				 * the first segment
				 */
	uint32_t policy;	/* enum kdsm_policy; 0: KDSM_POLICY_PARTITIONED */
	uint32_t mode;		/* permission bits as of chmod(2), 0777 at most; 0: 0600 */
	uint32_t flags;		/* KDSM_REGION_EXCL: fail if it exists; KDSM_REGION_KEEP;
				 * KDSM_REGION_CONTIGUOUS: see kdsm_region_home()
				 */
	/*
	 * Segments of a coherent region with blocks of several sizes; see
	 * struct kdsm_region_segment in <kdsm/uapi.h>. The call copies them. NULL if
	 * segment_count is 0.
	 */
	const struct kdsm_region_segment *segments;
	uint32_t segment_count;	/* at most KDSM_MAX_SEGMENTS; 0: all blocks have block_size */
	/*
	 * Address of the mapping in every process, a multiple of the size of a page, so that the
	 * region is outside of KDSM_ARENA_START to KDSM_ARENA_END; 0: the module chooses one in
	 * there. The creator knows that no process needs the addresses for something else.
	 */
	uint64_t address;
};

/*
 * Open a region by name and map it. name has 1 to KDSM_NAME_SIZE - 1 printable ASCII
 * characters, none of them a space.
 *
 * With attr, the call creates the region if it does not exist. All processes of a job
 * may call it at the same time: one creates, the others open. An existing region must
 * have the size, block_size, segments, policy, KDSM_REGION_CONTIGUOUS and address, unless it
 * is 0, of attr (-EINVAL); its mode and its KDSM_REGION_KEEP do not change. New memory is zero.
 * With attr NULL the region must exist, and a caller that may only read the region gets it
 * read-only: puts and atomics fail with -EACCES.
 *
 * If this struct kdsm already has the region open, the call returns the same pointer.
 * The region then stays open until kdsm_region_close() has been called once for each
 * such call.
 *
 * A region of policy KDSM_POLICY_RELEASE or KDSM_POLICY_STRICT is coherent. It has no
 * parts: operations on places, kdsm_wait() and kdsm_barrier_wait() fail with
 * -EOPNOTSUPP.
 *
 * On failure *region is NULL. Errors are those of KDSM_IOC_REGION_OPEN in
 * <kdsm/uapi.h>, those of open(2) of /dev/kdsm, and
 * -E2BIG	attr has segments, and the module is too old to know segments
 * -EADDRINUSE	this process has another mapping at the region's address
 */
int kdsm_region_open(struct kdsm *kdsm, const char *name,
		     const struct kdsm_region_attr *attr,
		     struct kdsm_region **region);

/*
 * Unmap and close a region. The caller has completed all tickets of the region. When no
 * process on any node has the region open any more, the region is removed, unless it was
 * created with KDSM_REGION_KEEP. NULL is ignored.
 */
void kdsm_region_close(struct kdsm_region *region);

/*
 * Remove the name of a region. Processes that have it open keep it; its memory is freed
 * when the last of them closes it. Errors: those of KDSM_IOC_REGION_DESTROY.
 */
int kdsm_region_destroy(struct kdsm *kdsm, const char *name);

/* Size of the region over all nodes, and of a block of its first segment, in bytes. */
uint64_t kdsm_region_size(const struct kdsm_region *region);
uint32_t kdsm_region_block_size(const struct kdsm_region *region);
/* Size of the block that has the byte at offset, in bytes; 0 if offset is not in the region. */
uint32_t kdsm_region_block_size_at(const struct kdsm_region *region, uint64_t offset);
/*
 * Address of the mapping, which is the same in every process on every node, except
 * with the local backend. In a coherent region the whole region is memory at this
 * address. In a partitioned region this is the address of node 0's part, and a process
 * can access only its own node's part: use kdsm_region_part().
 */
void *kdsm_region_address(const struct kdsm_region *region);

/* Partitioned: size of each part in bytes. Coherent: 0. */
uint64_t kdsm_region_part_size(const struct kdsm_region *region);
/* Partitioned: this node's part, as memory. Coherent: NULL. */
void *kdsm_region_part(const struct kdsm_region *region);
/* The struct kdsm that the region was opened with. */
struct kdsm *kdsm_region_cluster(const struct kdsm_region *region);

/* ---- operations on places ---- */

/*
 * Copy length bytes, at least 1, from a place to memory (get) or from memory to a place
 * (put). The place lies in one part: offset + length is at most the part size.
 *
 * On this node's part both are loads and stores without a system call. On another node
 * each costs one remote operation for every KDSM_MAX_OP_LENGTH bytes. Gets and puts are
 * not atomic: a get that overlaps with a write may return a mixture of old and new
 * bytes, on some devices even inside a word. A function returns when its operation has
 * taken effect for later operations of this process on the place. Other nodes, and the
 * CPUs of the node that has the place, may see a put later: see kdsm_settle().
 *
 * -EINVAL	length is 0, or there is no such node
 * -ERANGE	the place is not inside the part
 * -EFAULT	to or from is not accessible memory; on this node's part only NULL is
 *		detected, and another bad address raises SIGSEGV
 * -EACCES	the region is read-only (kdsm_put)
 * -ENOMEM	a node has no memory for the operation
 * -EHOSTDOWN	the node cannot be reached
 * -EIO		the connection broke during the operation, which may have taken effect;
 *		or the region does not exist any more on that node
 * -EOPNOTSUPP	the region is coherent
 */
int kdsm_get(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     void *to, size_t length);
int kdsm_put(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     const void *from, size_t length);

/*
 * Atomic operations on the 8-byte word at offset, a multiple of 8: store desired if the
 * word equals expected (compare-and-swap), or add to the word (fetch-and-add). Unless
 * former is NULL, the functions store the value before the operation in *former.
 *
 * They are atomic against each other, and against CPU atomics unless the domain is HCA.
 * On this node's part they are CPU instructions, but in domain HCA a system call and an
 * operation of the device. On another node each costs one remote operation.
 *
 * Errors: those of kdsm_put(). -EINVAL: offset is not a multiple of 8.
 */
int kdsm_cas(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t expected, uint64_t desired, uint64_t *former);
int kdsm_faa(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t add, uint64_t *former);

/*
 * Do count operations, any number, so that their round trips overlap. The caller fills
 * ops by kdsm_op_get() and the functions like it below. The CPU does the operations on
 * this node's part while the others are in flight. Operations take effect in any order,
 * except that a put with KDSM_OP_NOTIFY takes effect after earlier puts of ops to the
 * same node, and its first word after the others: a thread of that node that loads the
 * first word sees them all. If such an earlier put fails, the put with KDSM_OP_NOTIFY fails
 * with it.
 *
 * The call stores the status of each operation in ops[i].status, 0 or a negative errno:
 * see struct kdsm_op in <kdsm/uapi.h>. A failed operation does not stop the others. The
 * call returns 0, or the first status that is not 0, or
 * -EOPNOTSUPP	the region is coherent; no status is stored
 */
int kdsm_vector(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count);

/* Operations in flight. The caller owns the struct; only the library changes its fields. */
struct kdsm_ticket {
	struct kdsm_op *ops;
	struct kdsm_op *remote;	/* copies of the operations on other nodes, or NULL */
	uint64_t kernel;	/* ticket of the module; 0: no operation is remote */
	unsigned int count;
	int status;		/* result of kdsm_complete() if ops is NULL */
};

/*
 * kdsm_vector() in two steps: kdsm_submit() starts 0 to KDSM_MAX_OPS operations and
 * returns, kdsm_complete() waits for them. Until kdsm_complete() succeeds, the caller
 * does not touch ops and the memory that gets write to. The caller may reuse the memory
 * of puts after kdsm_submit(). One thread completes each ticket, once. After fork() this
 * thread may be in the parent or in the child: the call stores results into the memory
 * of its own process.
 *
 * kdsm_submit() starts nothing if it fails:
 * -EAGAIN	too much is in flight (KDSM_MAX_TICKETS, KDSM_MAX_INFLIGHT_BYTES):
 *		complete a ticket first
 * -E2BIG	the operations have more than KDSM_MAX_INFLIGHT_BYTES together
 * -EINVAL	count is above KDSM_MAX_OPS
 * -ENOMEM, -EFAULT, -EOPNOTSUPP
 *
 * kdsm_complete() returns what kdsm_vector() would, or
 * -ETIMEDOUT	the operations are not done; the ticket stays valid
 * -EBUSY	another thread is completing the ticket
 * -ENOENT	the ticket has been completed
 * A signal does not end the wait.
 */
int kdsm_submit(struct kdsm_region *region, struct kdsm_op *ops,
		unsigned int count, struct kdsm_ticket *ticket);
int kdsm_complete(struct kdsm_region *region, struct kdsm_ticket *ticket,
		  uint64_t timeout);

/*
 * Return one operation of a vector. The arguments are those of kdsm_get(), kdsm_put(),
 * kdsm_cas() and kdsm_faa(); length is at most KDSM_MAX_OP_LENGTH. When a compare-and-swap
 * or fetch-and-add is complete, the value before is in the field result. If an argument is
 * too large for its field, the operation fails with -EINVAL.
 */
struct kdsm_op kdsm_op_get(unsigned int node, uint64_t offset, void *to, size_t length);
struct kdsm_op kdsm_op_put(unsigned int node, uint64_t offset, const void *from,
			   size_t length);
struct kdsm_op kdsm_op_cas(unsigned int node, uint64_t offset, uint64_t expected,
			   uint64_t desired);
struct kdsm_op kdsm_op_faa(unsigned int node, uint64_t offset, uint64_t add);
/*
 * Find-or-put in a table, and theft of tasks, by one active message: struct kdsm_find in
 * <kdsm/uapi_table.h>, struct kdsm_theft in <kdsm/uapi_task.h>. The caller does not
 * touch *find or *theft until the operation is complete. Memory for theft->most tasks
 * follows *theft: kdsm_theft_size().
 */
struct kdsm_op kdsm_op_find(unsigned int node, uint64_t offset, struct kdsm_find *find);
struct kdsm_op kdsm_op_steal(unsigned int node, uint64_t offset, struct kdsm_theft *theft);

/* ---- waiting for a word of this node's part ---- */

/*
 * Put the 8-byte word at offset, a multiple of 8, and wake the threads of that node that
 * wait for the word. A thread of that node that loads the value, in whatever way, also
 * sees what this process put into parts of that node before, without KDSM_OP_NOTIFY.
 *
 * The node may be this one; on another node the call costs one remote operation, and a
 * message for each connection that carried such puts since it was last settled. Errors:
 * those of kdsm_put() and kdsm_settle(). -EINVAL: offset is not a multiple of 8.
 */
int kdsm_put_notify(struct kdsm_region *region, unsigned int node,
		    uint64_t offset, uint64_t value);

/*
 * Wait until all nodes see the puts of this process that are complete: the CPUs of the
 * nodes whose parts they changed, and gets of all nodes. Without this call or one that
 * does the same, kdsm_barrier_wait() or kdsm_put_notify(), another node may see such a put
 * only later, and of two puts the later one first; the process itself sees them at once.
 *
 * The call costs a message for each connection to another node that carried puts since it
 * was last settled, all at the same time, and nothing if there were none.
 *
 * -EHOSTDOWN	a node cannot be reached
 * -EIO		a connection broke: the caller may repeat the call
 * -ENOMEM	this node has no memory for the call
 */
int kdsm_settle(struct kdsm *kdsm);

/*
 * Wait while the word at offset, a multiple of 8, of this node's part equals value, for
 * timeout at most. Only kdsm_put_notify() of this word, and puts with KDSM_OP_NOTIFY that
 * begin at this word, wake the waiter; a plain store does not. The call polls the word
 * for up to 50 us before it sleeps, unless the process runs on a single CPU.
 *
 * -ETIMEDOUT	the word still equals value
 * -EINTR	a signal was caught
 * -EINVAL, -ERANGE, -EOPNOTSUPP	as kdsm_cas()
 * -ENOMEM	this node has no memory for the word
 */
int kdsm_wait(struct kdsm_region *region, uint64_t offset, uint64_t value,
	      uint64_t timeout);

/*
 * A barrier over all nodes of the cluster, one thread a node. After the barrier each
 * thread sees the effect of all operations that any of the threads did before the
 * barrier.
 *
 * The barrier uses KDSM_BARRIER_SIZE bytes at offset, a multiple of 8, of every part.
 * The bytes are zero when the first thread waits, and every node gives the same offset.
 * One round costs two notifying puts for each node but node 0, and what kdsm_settle()
 * costs.
 */
#define KDSM_BARRIER_SIZE 128

struct kdsm_barrier {
	struct kdsm_region *region;
	uint64_t offset;
	uint64_t generation;	/* rounds that this node has completed */
};

/*
 * Fill *barrier, which the caller owns. The caller keeps the region open as long as it uses
 * the barrier. There is nothing to destroy.
 */
void kdsm_barrier_init(struct kdsm_barrier *barrier, struct kdsm_region *region,
		       uint64_t offset);
/*
 * Wait until all nodes have arrived, for timeout at most. A signal does not end the wait.
 * If a connection breaks and is made again, the barrier takes longer but does not fail.
 *
 * -ETIMEDOUT	a node has not arrived yet; another call continues the same round
 * -EHOSTDOWN	operations on a node have failed for 30 seconds; this includes a node
 *		that was restarted and does not know the region any more. Some seconds
 *		later the other nodes that wait get this error, too. Another call tries
 *		the same round again.
 * -EINVAL	offset is not a multiple of 8; or the bytes were not zero at first; or
 *		another object uses the bytes
 * others	those of kdsm_put()
 */
int kdsm_barrier_wait(struct kdsm_barrier *barrier, uint64_t timeout);

/* ---- counts ---- */

/*
 * Operations on other nodes since kdsm_open(), of all threads together, failed ones
 * included. In domain HCA atomics on this node's part count, too. With the local backend
 * all counts are 0.
 */
struct kdsm_counts {
	size_t argsz;		/* size of this struct */
	uint64_t get, put, cas, faa;	/* operations */
	/* of all operations: done by an active message; and messages of kdsm_settle() */
	uint64_t am;
	uint64_t bytes;		/* moved by gets and puts, and 8 for each atomic */
	uint64_t calls;		/* system calls made for operations */
	uint64_t find, steal;	/* operations; each is an active message */
};

/* Store the counts in *counts. Errors: those of argsz. */
int kdsm_counts(const struct kdsm *kdsm, struct kdsm_counts *counts);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_H */
