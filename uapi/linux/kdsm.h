/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kdsm - distributed shared memory over RDMA.
 *
 * The contract between the module and user space is
 *
 *   1. /dev/kdsm: ioctls, mmap, close            (programs; usually by libkdsm): here, and
 *      in <linux/kdsm_table.h> and <linux/kdsm_task.h> what two of its operations work on
 *   2. the generic netlink family "kdsm"         (administration; usually by kdsmctl):
 *      <linux/kdsm_netlink.h>
 *
 * Conventions of the ioctls
 *
 *   - Every argument struct starts with argsz and flags. The caller sets argsz
 *     to the size of the struct it was compiled with. A module that knows a
 *     larger struct takes the missing tail as zero; a module that knows a
 *     smaller one accepts the tail only if it is zero (-E2BIG otherwise). argsz
 *     below the first published size of a struct is -EINVAL.
 *   - Unknown flags and reserved fields that are not zero are -EINVAL.
 *   - Fields marked (out) are written by the module, at most argsz bytes of the
 *     struct. Structs hold no pointers or longs: user addresses are __u64, so
 *     32-bit programs use the same layout.
 *   - Sizes, offsets and lengths are bytes, times are nanoseconds.
 *   - Errors that every ioctl may give: -EFAULT (bad user address), -ENOTTY
 *     (unknown ioctl), -ENOMEM, -ERESTARTSYS/-EINTR (signal).
 *
 * Words: a node is one kernel with the module loaded, numbered 0..N-1. A region
 * is a named piece of memory that spans the nodes. In a partitioned region every
 * node contributes an equal part, and a place is (node, offset in the part of that
 * node). A coherent region is one memory that every node sees whole.
 */
#ifndef _UAPI_LINUX_KDSM_H
#define _UAPI_LINUX_KDSM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KDSM_DEVICE		"/dev/kdsm"

/* Raised when an existing program would break; KDSM_IOC_INFO tells it. */
#define KDSM_ABI_VERSION	1

/* Limits. Names and locations are NUL-terminated within these sizes. */
#define KDSM_MAX_NODES		1024
#define KDSM_NAME_SIZE		64	/* clusters and regions */
#define KDSM_LOCATION_SIZE	64
#define KDSM_UUID_SIZE		16
#define KDSM_MAX_OPS		1024	/* operations in one KDSM_IOC_SUBMIT */
#define KDSM_MAX_OP_LENGTH	(1U << 21)	/* bytes of one get or put */
#define KDSM_LEASE_MAX		1000000000U	/* ns; of a region of policy STRICT */
#define KDSM_MAX_TICKETS	1024	/* submitted, not yet completed, per file */
#define KDSM_MAX_INFLIGHT_BYTES	(8U << 20)	/* of those, bytes of gets and puts */

/*
 * The atomicity domain of the cluster (design: a device's atomics are in
 * general atomic only against that device's other atomics).
 */
enum kdsm_domain {
	KDSM_DOMAIN_AUTO = 0,	/* only as a wish: GLOB if the device can, else SW */
	KDSM_DOMAIN_SW,		/* CPUs do all atomics; remote ones are messages */
	KDSM_DOMAIN_HCA,	/* devices do all atomics, local ones included */
	KDSM_DOMAIN_GLOB,	/* CPU and device atomics mix */
};

/* What a region promises about its memory. */
enum kdsm_policy {
	KDSM_POLICY_PARTITIONED = 1,	/* reached by operations; own part mapped */
	KDSM_POLICY_RELEASE,		/* coherent for programs without data races */
	KDSM_POLICY_STRICT,		/* coherent for all; one writer or many readers */
};

/*
 * KDSM_IOC_INFO: about this node. Works on any open file.
 *
 * -ENETDOWN: the cluster is not up.
 */
struct kdsm_info {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 abi_version;	/* (out) KDSM_ABI_VERSION of the module */
	__u32 domain;		/* (out) enum kdsm_domain in force, never AUTO */
	__u32 node;		/* (out) number of this node */
	__u32 nodes;		/* (out) number of nodes in the cluster */
	__u8  uuid[KDSM_UUID_SIZE];	/* (out) */
	char  cluster[KDSM_NAME_SIZE];	/* (out) */
};

#define KDSM_INFO_SIZE_VER0	104

/*
 * KDSM_IOC_LOCATION: where a node is, as its cluster was told: words from the outside
 * in, "rack0/chassis2", or nothing. Works on any open file.
 *
 * -ENETDOWN: the cluster is not up. -EINVAL: there is no such node.
 */
struct kdsm_location {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 node;
	__u32 reserved;		/* 0 */
	char  location[KDSM_LOCATION_SIZE];	/* (out) */
};

#define KDSM_LOCATION_SIZE_VER0	80

/*
 * KDSM_IOC_REGION_OPEN: bind this file to a region, creating it if told to.
 *
 * A file is bound once. A region lives while some file on some node is bound to
 * it or to a mapping of it; with KDSM_REGION_KEEP it lives until it is destroyed
 * by name and no longer bound. New memory is zero.
 *
 * @flags with KDSM_REGION_CREATE: create it if it does not exist; with
 * KDSM_REGION_EXCL as well: fail if it does. Without CREATE, size, block_size,
 * policy and mode are ignored on input. With CREATE and an existing region,
 * size, block_size and policy must match it.
 *
 * Errors:
 *   -ENETDOWN	the cluster is not up
 *   -EBUSY	the file is already bound
 *   -EINVAL	name empty, without NUL or not printable; size 0; bad policy,
 *		block size or mode; the existing region differs
 *   -ENOENT	no such region (without CREATE)
 *   -EEXIST	it exists (with EXCL)
 *   -EACCES	mode, owner and group of the region do not allow it
 *   -ENOMEM	some node cannot hold its part
 *   -EFBIG	the size exceeds what any node can address
 *   -EHOSTDOWN	a node that must take part cannot be reached
 *   -ETIMEDOUT	a node took part but did not answer in time
 *   -ENOSPC	too many regions
 */
struct kdsm_region_open {
	__u32 argsz;
	__u32 flags;		/* KDSM_REGION_* */
	char  name[KDSM_NAME_SIZE];
	__u64 size;		/* bytes wanted over all nodes; (out) what it has */
	__u32 block_size;	/* 0: 4096; a power of two, 4 KiB to 2 MiB; (out) */
	__u32 policy;		/* enum kdsm_policy; (out) */
	__u32 mode;		/* permission bits, 0777 at most; 0: 0600; (out) */
	__u32 id;		/* (out) number of the region in the cluster */
	__u64 part_size;	/* (out) bytes on each node, a multiple of block_size;
				 * coherent: of the whole region
				 */
	__u64 base;		/* (out) address of the region in every program */
};

#define KDSM_REGION_OPEN_SIZE_VER0	112

#define KDSM_REGION_CREATE	(1U << 0)
#define KDSM_REGION_EXCL	(1U << 1)
#define KDSM_REGION_KEEP	(1U << 2)	/* survives its last close */

/*
 * KDSM_IOC_REGION_DESTROY: remove a name. Files that are bound go on; the
 * memory is freed with the last of them. Any open file can be used.
 *
 * -ENOENT: no such region. -EACCES: caller is neither its owner nor has
 * CAP_SYS_ADMIN. -ENETDOWN, -EHOSTDOWN, -ETIMEDOUT as above.
 */
struct kdsm_region_destroy {
	__u32 argsz;
	__u32 flags;		/* 0 */
	char  name[KDSM_NAME_SIZE];
};

#define KDSM_REGION_DESTROY_SIZE_VER0	72

/* One operation on (node, offset) of the region that the file is bound to. */
enum kdsm_opcode {
	KDSM_OP_GET = 1,	/* region -> memory at addr, length bytes */
	KDSM_OP_PUT,		/* memory at addr -> region, length bytes */
	KDSM_OP_CAS,		/* 8 bytes: if *place == compare, *place = operand */
	KDSM_OP_FAA,		/* 8 bytes: *place += operand */
	KDSM_OP_FIND,		/* struct kdsm_find, <linux/kdsm_table.h>, at addr */
	KDSM_OP_STEAL,		/* struct kdsm_theft, <linux/kdsm_task.h>, at addr */
};

/*
 * CAS and FAA leave the former value in result. They work on 8-byte aligned
 * offsets and are atomic against all other CAS and FAA on the place, against
 * aligned loads, and, unless the domain is HCA, against CPU atomics on the
 * mapping of the node that holds the place. Gets and puts are not atomic: a
 * concurrent change may be seen in part, on some devices even inside a word.
 *
 * Operations of one submission may take effect in any order, except that puts
 * with KDSM_OP_NOTIFY take effect after earlier puts of the same submission to
 * the same node. status is 0 or a negative errno:
 *   -EINVAL	bad opcode, flags, node, length or alignment, reserved not 0
 *   -ERANGE	the place is not inside the part
 *   -EFAULT	addr
 *   -EACCES	any but GET without permission to write the region
 *   -ENOMEM	the target has no memory for the place
 *   -EHOSTDOWN	the target cannot be reached
 *   -EIO	the operation failed on the wire, or the region is gone there; FIND: the
 *		index holds what is no entry; STEAL: a proxy stands for no task, and
 *		what was to be taken is lost
 *   -EOPNOTSUPP	FIND in domain HCA
 */
struct kdsm_op {
	__u8  opcode;		/* enum kdsm_opcode */
	__u8  flags;		/* KDSM_OP_* */
	__u16 node;
	__u32 length;		/* 1..KDSM_MAX_OP_LENGTH; CAS and FAA: 8; others: of the struct */
	__u64 offset;		/* in the part of node; FIND: of the index; STEAL: of the crew */
	__u64 addr;		/* all but CAS and FAA: user address */
	__u64 operand;		/* CAS: new value; FAA: what to add */
	__u64 compare;		/* CAS: value expected */
	__u64 result;		/* (out) CAS, FAA: the value before */
	__s32 status;		/* (out) 0 or -errno */
	__u32 reserved;		/* 0 */
};

/*
 * PUT of whole aligned words of 8 bytes: when all of it is there, wake those who wait for
 * the first of them there (KDSM_IOC_WAIT). What else they are to find goes in earlier puts.
 */
#define KDSM_OP_NOTIFY	(1U << 0)

/*
 * KDSM_IOC_SUBMIT: start count operations together, so that they overlap.
 *
 * What a put writes is copied before the call returns. With KDSM_SUBMIT_WAIT
 * the call waits, stores results and statuses into the array, and returns 0 if
 * all succeeded, else the status of the first that failed. Without it the call
 * returns at once with a ticket; results, statuses and the bytes of gets are
 * stored by the KDSM_IOC_COMPLETE of that ticket, through the same array, which
 * must stay until then.
 *
 * Errors: -EBADFD (file not bound), -EINVAL (count 0 or above KDSM_MAX_OPS),
 * -EFAULT, -EAGAIN (without WAIT: too many tickets or bytes in flight), -E2BIG
 * (without WAIT: more than KDSM_MAX_INFLIGHT_BYTES in this one), -EINTR (a fatal
 * signal; the operations may or may not take effect).
 */
struct kdsm_submit {
	__u32 argsz;
	__u32 flags;		/* KDSM_SUBMIT_WAIT */
	__u64 ops;		/* user address of struct kdsm_op[count] */
	__u32 count;
	__u32 reserved;		/* 0 */
	__u64 ticket;		/* (out) without WAIT; never 0 */
};

#define KDSM_SUBMIT_SIZE_VER0	32

#define KDSM_SUBMIT_WAIT	(1U << 0)

/*
 * KDSM_IOC_COMPLETE: wait for a submission and store what it brought.
 *
 * Returns as KDSM_IOC_SUBMIT with WAIT does; the ticket is gone then. Must be
 * called with the memory (fork: parent or child) that should get the results.
 * -ETIMEDOUT: not done in timeout ns, the ticket stays. -ENOENT: no such ticket.
 * -EBUSY: another thread is completing it. timeout 0 polls, ~0 waits for ever.
 */
struct kdsm_complete {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 ticket;
	__u64 timeout;
};

#define KDSM_COMPLETE_SIZE_VER0	24

/*
 * KDSM_IOC_WAIT: sleep while the 8-byte word at offset of the own part equals
 * value. Returns 0 when it was seen to differ, at once if it does already.
 *
 * It is woken by a put with KDSM_OP_NOTIFY that begins with that word, from another
 * node, and by KDSM_IOC_WAKE on this one; a plain store wakes nobody. As the word may be
 * seen while half of a put is done, compare with a value that ends the wait
 * before trusting it.
 *
 * -EBADFD, -EINVAL (alignment), -ERANGE, -ETIMEDOUT (timeout as above), -EINTR,
 * -ENETDOWN (the cluster went down).
 */
struct kdsm_wait {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
	__u64 value;
	__u64 timeout;
};

#define KDSM_WAIT_SIZE_VER0	32

/* KDSM_IOC_WAKE: wake all that wait for the word at offset of the own part. */
struct kdsm_wake {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
};

#define KDSM_WAKE_SIZE_VER0	16

/*
 * A write notice: the blocks first..first+count-1 were written by node writer. The
 * timestamp orders it against others of the same block.
 */
struct kdsm_notice {
	__u64 ts;
	__u64 first;
	__u32 count;
	__u16 writer;
	__u16 reserved;		/* 0 */
};

#ifndef KDSM_NOTICES_MAX
#define KDSM_NOTICES_MAX	128
#endif

/*
 * What a release hands to an acquire: for programs a sequence of bytes, of which
 * the first KDSM_SIGNATURE_BYTES(count) count. It may be passed on by any means,
 * to any node of the cluster.
 */
struct kdsm_signature {
	__u64 floor;		/* writes up to this timestamp may not be listed */
	__u32 count;
	__u32 reserved;		/* 0 */
	struct kdsm_notice notices[KDSM_NOTICES_MAX];	/* oldest first */
};

#define KDSM_SIGNATURE_BYTES(count)	(16 + (count) * 24)

/*
 * KDSM_IOC_RELEASE: complete all writes that programs of this node have made to
 * the coherent region that the file is bound to, and store the signature that
 * tells of them, and of all that this node has acquired.
 *
 * KDSM_IOC_ACQUIRE: see all writes that the signature tells of. It is read from
 * user memory. -EINVAL: it is none. One that no release gave may spoil this region
 * for all its users, and nothing else.
 *
 * In a region of policy STRICT all writes are seen at once: both do nothing, and
 * the signature is empty.
 *
 * Both work for the whole node: what one thread acquires, all threads and
 * processes of the node see.
 *
 * Errors: -EBADFD (not bound), -EOPNOTSUPP (the region is partitioned), -EFAULT,
 * -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT: some writes are not complete, or some
 * copies are too old; the call can be repeated.
 */
struct kdsm_fence {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 signature;	/* user address of struct kdsm_signature; 0: none */
};

#define KDSM_FENCE_SIZE_VER0	16

/*
 * KDSM_IOC_ADVISE: do something now for the blocks of the coherent region that
 * have bytes in offset..offset+length-1, so that it need not be done later. It changes
 * nothing that a program can see but time, and promises nothing: what was brought here
 * may go again at any moment. Done block by block before the call returns.
 *
 * PREFETCH	have a copy, as if each block were read.
 * FLUSH	release what was written to these blocks, and nothing else. Who is to see
 *		it needs the signature of a KDSM_IOC_RELEASE after it, as always; that
 *		has less to do then. STRICT: nothing.
 * OWN		be the owner. RELEASE: until another node writes to the block and
 *		releases, releases here need no network for it. STRICT: as if each block
 *		were written. -EACCES: the file is not open for writing.
 *
 * Errors: -EBADFD (not bound), -EINVAL (advice, length 0), -EOPNOTSUPP (the region is
 * partitioned), -ERANGE (not inside the region), -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT,
 * -ERESTARTSYS: some blocks are as they were.
 */
enum kdsm_advice {
	KDSM_ADVICE_PREFETCH = 1,
	KDSM_ADVICE_FLUSH,
	KDSM_ADVICE_OWN,
};

struct kdsm_advise {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
	__u64 length;		/* not 0 */
	__u32 advice;		/* enum kdsm_advice */
	__u32 reserved;		/* 0 */
};

#define KDSM_ADVISE_SIZE_VER0	32

/* ---- locks ---- */

/*
 * Locks of a region that exclude threads of all nodes. They live as long as the
 * region, have a number in it, and a name if they were given one.
 *
 * A lock is at one node at a time. There the threads of the node, of all processes,
 * take turns; nodes queue for it. From a node that has it and where nobody else wants
 * it, it is taken and released without a system call; see the lock words below.
 *
 * In a region of policy RELEASE, whoever gets a lock sees all that was written, on any
 * node, before the lock was unlocked by those who had it before; as if each had done
 * KDSM_IOC_RELEASE before it let go, and the next one KDSM_IOC_ACQUIRE after it got it. Both
 * are done when the lock goes from node to node, and cost nothing while it stays. What a
 * dead thread wrote is seen with -EOWNERDEAD. If writes cannot be brought to an end for
 * 10 s, because a node is gone, the next one gets the lock with -EOWNERDEAD, too, and may
 * see old values.
 *
 * Levels: the nodes form a tree by their locations ("rack0/chassis2"). Level 1 is the
 * whole cluster, the last level a node, whose members are threads. The threads of an
 * element of level i have the lock T_L,i times in a row at most while another element
 * waits for it. T_L,1 has no meaning.
 */
#define KDSM_MAX_LOCKS		4096	/* of a region */
#define KDSM_LOCK_LEVELS	8	/* deeper locations are cut */
#define KDSM_LOCK_ANY		(~0U)	/* as number: any that is free */
#define KDSM_MAX_LOCK_THREADS	65536	/* of a region on one node */

enum kdsm_lock_kind {
	KDSM_LOCK_DMCS = 1,	/* two levels, the cluster and its nodes */
	KDSM_LOCK_RMA_MCS,	/* the levels that the locations tell of */
	KDSM_LOCK_RMA_RW,	/* RMA_MCS for writers, and many readers at once */
};

/*
 * What can be set. mask: which of the fields are given, KDSM_LOCK_SET_*; the
 * others have their default in a new lock, and stay as they are in KDSM_IOC_LOCK_SET.
 * (out) all fields; mask tells which of them matter for the kind. A DMCS has none but
 * keep, and T_L,2 is 1.
 */
struct kdsm_lock_settings {
	__u32 mask;
	__u32 t_dc;	/* RMA_RW: one node in so many has a counter of readers; 1 to
			 * nodes; a change holds from the next writer on
			 */
	__u32 t_r;	/* RMA_RW: nodes that may come to each counter while a writer
			 * waits; 1 to T_MAX
			 */
	__u32 t_w;	/* RMA_RW: writers in a row while readers wait; 1 to T_MAX;
			 * default: the product of T_L,2 and on, T_MAX at most
			 */
	__u32 t_l[KDSM_LOCK_LEVELS];	/* t_l[i - 1] of level i; 1 to T_MAX, or T_L_AUTO */
	__u64 keep;	/* ns; see below */
};

#define KDSM_LOCK_T_MAX		(1U << 20)

/*
 * As T_L,i, the default but for kind DMCS: the members of an element of level i have the
 * lock as often as it takes for all of them to have had it once, but T_L_MOST times at
 * most. For a node, the last level, that is as many threads as wait there when its turn
 * begins; for what is larger, as many turns as it has nodes. Elsewhere it counts as
 * T_L_MOST: in the default of T_W, and for threads that read.
 */
#define KDSM_LOCK_T_L_AUTO	(~0U)
#define KDSM_LOCK_T_L_MOST	16

#define KDSM_LOCK_SET_T_DC	(1U << 0)
#define KDSM_LOCK_SET_T_R	(1U << 1)
#define KDSM_LOCK_SET_T_W	(1U << 2)
#define KDSM_LOCK_SET_KEEP	(1U << 3)
#define KDSM_LOCK_SET_T_L(i)	(1U << (7 + (i)))	/* i: level, 2 to KDSM_LOCK_LEVELS */

/*
 * How long a node keeps a lock that nobody wants, at least; it may be up to twice as
 * long. 0: it lets go with every unlock, with one remote atomic. FOREVER, the default:
 * until another node wants it. For reading: that long at most, and no longer than a
 * few times what a remote atomic takes.
 */
#define KDSM_LOCK_KEEP_FOREVER	(~0ULL)

/*
 * KDSM_IOC_LOCK_OPEN: find a lock of the region that the file is bound to, making it
 * if told to. Nothing has to be closed.
 *
 * name: which one; number is (out). Empty name: number says which one; with CREATE it
 * may be KDSM_LOCK_ANY. kind and settings: of a new lock; an existing one must be of
 * that kind if CREATE is given, and keeps its settings. Both tell (out) how it is.
 *
 * Errors:
 *   -EBADFD	the file is not bound
 *   -EINVAL	flags, name or mask; number not below KDSM_MAX_LOCKS; no such kind; the
 *		existing lock is of another kind
 *   -ERANGE	a setting is out of its range, names a level that there is not, or is
 *		not one of that kind
 *   -EACCES	the file is not open for writing
 *   -ENOENT	no such lock (without CREATE)
 *   -EEXIST	it exists (with EXCL)
 *   -ENOSPC	all numbers are taken
 *   -EHOSTDOWN, -ETIMEDOUT	node 0, which knows the names, does not answer
 */
struct kdsm_lock_open {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_CREATE, KDSM_LOCK_EXCL */
	char  name[KDSM_NAME_SIZE];
	__u32 number;
	__u32 kind;		/* enum kdsm_lock_kind */
	__u32 levels;		/* (out) that there are, 2 to KDSM_LOCK_LEVELS */
	__u32 reserved;		/* 0 */
	struct kdsm_lock_settings settings;
};

#define KDSM_LOCK_OPEN_SIZE_VER0	144

#define KDSM_LOCK_CREATE	(1U << 0)
#define KDSM_LOCK_EXCL		(1U << 1)

/*
 * KDSM_IOC_LOCK_THREAD: the number by which the calling thread owns locks of the
 * region, through this file. The same at every call by the same thread; another one
 * for other threads (after fork(), too) and other files. Never 0. It stands for the
 * thread until that has ended or the file is closed: what it then owns goes to the
 * next with -EOWNERDEAD.
 *
 * -EBADFD, -EACCES (not open for writing), -ENOSPC (KDSM_MAX_LOCK_THREADS).
 */
struct kdsm_lock_thread {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 thread;		/* (out) */
	__u32 reserved;		/* 0 */
};

#define KDSM_LOCK_THREAD_SIZE_VER0	16

/*
 * KDSM_IOC_LOCK: lock it for the calling thread, whose number is thread. Threads of
 * a node get it in the order in which they asked, as do nodes, within the thresholds.
 *
 * flags: TRY: not if that takes waiting for another thread. READ: of a lock of kind
 * RMA_RW, share it with other readers; those of a node count as one for T_R, and at most
 * T_L of the last level join the first. timeout: ns to wait at most, ~0: for ever; not
 * counted is the time that the network takes for an answer.
 *
 * 0 and -EOWNERDEAD: the caller has it. Errors:
 *   -EOWNERDEAD	and who had it died with it: a thread, or a node, which had it or
 *		may have. KDSM_IOC_LOCK_CONSISTENT tells that what the lock guards is in
 *		order again; without that, nobody will have the lock any more once it is
 *		unlocked. Readers are told so, too, and leave that to one who writes
 *   -ENOTRECOVERABLE	it was unlocked so
 *   -EBUSY	with TRY: somebody has it
 *   -ETIMEDOUT	timeout is over
 *   -EINTR	a signal came
 *   -EDEADLK	this thread has it
 *   -EPERM	thread is not the number of the calling thread
 *   -ENOENT	no such lock, or not opened on this node
 *   -EINVAL	flags; READ of a lock of another kind
 *   -EACCES	the file is not open for writing
 *   -EBADFD	the file is not bound
 *   -EHOSTDOWN, -EIO	the home of the lock, the node that has its word, cannot be
 *		reached: at once if that is known, else as soon as it is; or for 40 s (of
 *		a lock that is not mended, see below: 10 s) some node could not be that has
 *		the lock. Try again
 *
 * A node that its home cannot reach is dead for a lock, but of kind RMA_RW, after about
 * 10 s (the transport gives up after 4 s, and it cannot be connected to again): who waits
 * there is dropped, and if it had the lock, the next one has it with -EOWNERDEAD, within
 * 30 s of its silence. Nobody finds out before somebody waits for the lock. The node
 * may be there again later. It learns that then; who still waits there queues anew, and who
 * had the lock has it no longer. A lock of kind RMA_MCS has one queue for all nodes from
 * then on.
 */
struct kdsm_lock_take {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_TRY, KDSM_LOCK_READ */
	__u32 number;
	__u32 thread;
	__u64 timeout;
};

#define KDSM_LOCK_TAKE_SIZE_VER0	24

#define KDSM_LOCK_TRY		(1U << 0)
#define KDSM_LOCK_READ		(1U << 1)

/*
 * KDSM_IOC_UNLOCK: who waits next has it, or nobody. Returns 0 as soon as the calling
 * thread does not have it any more, whatever the network says.
 *
 * KDSM_IOC_LOCK_CONSISTENT: of a lock that was got with -EOWNERDEAD: it is as any
 * other again. -EINVAL: it is not such a lock.
 *
 * -EPERM: thread does not have the lock (CONSISTENT: for writing; UNLOCK: as flags say),
 * or is not the number of the calling thread.
 * -EHOSTDOWN (UNLOCK): the home of the lock could not reach this node for so long that
 * another one got it, with -EOWNERDEAD. The thread does not have it.
 * -ENOENT, -EINVAL (flags), -EACCES, -EBADFD as above.
 */
struct kdsm_lock_give {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_READ: was locked so; CONSISTENT: 0 */
	__u32 number;
	__u32 thread;
};

#define KDSM_LOCK_GIVE_SIZE_VER0	16

/*
 * KDSM_IOC_LOCK_SET: change the settings that mask names, on all nodes; the lock
 * may be in use. It holds on each node from the next hand-over there.
 *
 * -ERANGE: out of range, or no such level, or not of that kind: nothing is changed.
 * -EINVAL (mask is 0 or unknown), -ENOENT, -EACCES, -EBADFD as above; -EHOSTDOWN: some
 * node that has it open could not be told.
 */
struct kdsm_lock_set {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 number;
	__u32 reserved;		/* 0 */
	struct kdsm_lock_settings settings;
};

#define KDSM_LOCK_SET_SIZE_VER0	72

/* Counters of a lock on this node, since it was first opened here. */
enum kdsm_lock_stat {
	KDSM_LOCK_STAT_LOCKS,		/* by KDSM_IOC_LOCK; for writing, if RMA_RW */
	KDSM_LOCK_STAT_FAST,		/* without a system call, as the lock word says */
	KDSM_LOCK_STAT_READS,		/* for reading */
	KDSM_LOCK_STAT_BUSY,		/* ended with -EBUSY */
	KDSM_LOCK_STAT_TIMEDOUT,	/* with -ETIMEDOUT or -EINTR */
	KDSM_LOCK_STAT_DEAD,		/* owners that died */
	KDSM_LOCK_STAT_ENTERED,		/* times that this node queued */
	KDSM_LOCK_STAT_FREE,		/* of those, found nobody before it */
	KDSM_LOCK_STAT_FREED,		/* times that it let go and nobody waited */
	KDSM_LOCK_STAT_ATOMICS,		/* remote operations that queueing took here */
	KDSM_LOCK_STAT_PUTS,
	KDSM_LOCK_STAT_GETS,
	KDSM_LOCK_STAT_MESSAGES,
	KDSM_LOCK_STAT_SWITCHES,	/* between readers and writers */
	KDSM_LOCK_STAT_READERS_IN_ROW,	/* the most while a writer waited */
	KDSM_LOCK_STAT_WAITED,		/* ns that threads waited in KDSM_IOC_LOCK, all */
	KDSM_LOCK_STAT_LONGEST,		/* ns that one of them did at most */
	__KDSM_LOCK_STAT_COUNT,
};

#define KDSM_LOCK_STAT_COUNT	__KDSM_LOCK_STAT_COUNT
#define KDSM_LOCK_WAITS		40

/*
 * KDSM_IOC_LOCK_INFO: what a lock is, and what it has done on this node.
 *
 * KDSM_LOCK_NEXT: of the lock with the lowest number from number on that is open on
 * this node. -ENOENT: there is none. -EBADFD, -EINVAL. The file need not be open for
 * writing.
 */
struct kdsm_lock_info {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_NEXT */
	__u32 number;
	__u32 kind;		/* (out) from here on */
	__u32 levels;
	__u32 home;		/* the node in whose memory this node queues first */
	char  name[KDSM_NAME_SIZE];
	struct kdsm_lock_settings settings;
	__u64 stats[KDSM_LOCK_STAT_COUNT];
	/*
	 * [i - 1]: passed on by this node to who waited, inside its element of level i; at
	 * the last level, which is the node, from thread to thread.
	 */
	__u64 handed[KDSM_LOCK_LEVELS];
	__u64 waits[KDSM_LOCK_WAITS];	/* [i]: that took 2^i to 2^(i+1) - 1 ns */
};

#define KDSM_LOCK_INFO_SIZE_VER0	664

#define KDSM_LOCK_NEXT		(1U << 0)

/*
 * Lock words. mmap of a bound file, open for writing, at offset KDSM_LOCKS_OFFSET
 * gives KDSM_LOCKS_SIZE bytes: an array of struct kdsm_lock_word by number, shared by
 * all programs of this node that have the region. MAP_SHARED, PROT_READ | PROT_WRITE or
 * less, at any address. All or a part of whole pages may be mapped; 32-bit programs
 * pass KDSM_LOCKS_OFFSET / 4096 to mmap2.
 *
 * state is the number of the thread of this node that has the lock, 0 for none, in
 * its low half, and flags in the other. Programs change it by an atomic
 * compare-and-swap of all 8 bytes, in two ways only:
 *
 *   lock	AT_NODE, 0 -> AT_NODE, thread		with acquire semantics
 *   unlock	AT_NODE, thread -> AT_NODE, 0		with release semantics
 *
 * If it is anything else they call KDSM_IOC_LOCK or KDSM_IOC_UNLOCK, which work
 * always. While any other flag is set, or AT_NODE is not, only the module changes it.
 * So: a thread that waits sets WAITERS by way of the module, and then whoever has the
 * lock has to call KDSM_IOC_UNLOCK. Who locks in the first way adds 1 to uses while
 * it has the lock, with a plain store. A word stays all zero before the lock is opened
 * on this node.
 *
 * If the owner in the word is this thread, KDSM_IOC_LOCK gives -EDEADLK.
 *
 * The module does not trust the words: where one was overwritten, locking that lock may
 * fail, or let two threads have it, or end with -EOWNERDEAD. Other locks go on.
 */
struct kdsm_lock_word {
	__u64 state;
	__u64 uses;
	__u64 reserved[6];	/* the module's */
};

#define KDSM_LOCK_OWNER(state)	((__u32)(state))
#define KDSM_LOCK_FLAG(n)	(1ULL << (32 + (n)))
#define KDSM_LOCK_AT_NODE	KDSM_LOCK_FLAG(0)	/* this node has it */
#define KDSM_LOCK_WAITERS	KDSM_LOCK_FLAG(1)	/* threads of this node wait */
#define KDSM_LOCK_WANTED	KDSM_LOCK_FLAG(2)	/* the module has to see to it */
#define KDSM_LOCK_DEAD		KDSM_LOCK_FLAG(3)	/* got with -EOWNERDEAD, not consistent */
#define KDSM_LOCK_LOST		KDSM_LOCK_FLAG(4)	/* -ENOTRECOVERABLE */
#define KDSM_LOCK_READERS	KDSM_LOCK_FLAG(5)	/* readers of this node have it */

#define KDSM_LOCKS_SIZE		(KDSM_MAX_LOCKS * 64)
#define KDSM_LOCKS_OFFSET	0xfff00000000ULL	/* behind the largest region */

/*
 * Plain numbers: with the size of its struct in it a number would change when the
 * struct grows.
 */
#define KDSM_IOC_MAGIC		0xB5
#define KDSM_IOC_INFO		_IO(KDSM_IOC_MAGIC, 0)
#define KDSM_IOC_REGION_OPEN	_IO(KDSM_IOC_MAGIC, 1)
#define KDSM_IOC_REGION_DESTROY	_IO(KDSM_IOC_MAGIC, 2)
#define KDSM_IOC_SUBMIT		_IO(KDSM_IOC_MAGIC, 3)
#define KDSM_IOC_COMPLETE	_IO(KDSM_IOC_MAGIC, 4)
#define KDSM_IOC_WAIT		_IO(KDSM_IOC_MAGIC, 5)
#define KDSM_IOC_WAKE		_IO(KDSM_IOC_MAGIC, 6)
#define KDSM_IOC_RELEASE	_IO(KDSM_IOC_MAGIC, 7)
#define KDSM_IOC_ACQUIRE	_IO(KDSM_IOC_MAGIC, 8)
#define KDSM_IOC_ADVISE		_IO(KDSM_IOC_MAGIC, 9)
#define KDSM_IOC_LOCK_OPEN	_IO(KDSM_IOC_MAGIC, 10)
#define KDSM_IOC_LOCK_THREAD	_IO(KDSM_IOC_MAGIC, 11)
#define KDSM_IOC_LOCK		_IO(KDSM_IOC_MAGIC, 12)
#define KDSM_IOC_UNLOCK		_IO(KDSM_IOC_MAGIC, 13)
#define KDSM_IOC_LOCK_CONSISTENT _IO(KDSM_IOC_MAGIC, 14)
#define KDSM_IOC_LOCK_SET	_IO(KDSM_IOC_MAGIC, 15)
#define KDSM_IOC_LOCK_INFO	_IO(KDSM_IOC_MAGIC, 16)
#define KDSM_IOC_LOCATION	_IO(KDSM_IOC_MAGIC, 17)

/*
 * mmap of a bound file: offset 0 is the start of the region, node k's part
 * starts at k * part_size. Only MAP_SHARED, only at base + offset (an address
 * hint of NULL goes there by itself), write permission as the file and the
 * region allow. Own part: plain memory. Elsewhere, and where there is no memory
 * for a page: SIGBUS. mremap to another place and executable mappings are
 * refused. -EBADFD, -EINVAL, -EACCES, -ENOMEM (address taken).
 *
 * Offset KDSM_LOCKS_OFFSET: the lock words, see there.
 */

#endif /* _UAPI_LINUX_KDSM_H */
