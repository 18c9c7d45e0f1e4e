/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kdsm - distributed shared memory over RDMA.
 *
 * The interface between the module and user space is
 *
 *   1. /dev/kdsm: ioctl, mmap and close, for programs, usually by way of libkdsm. This
 *      header describes it; <kdsm/uapi_table.h> and <kdsm/uapi_task.h> describe the
 *      structures of two of its operations.
 *   2. The generic netlink family "kdsm", for administration, usually by way of kdsmctl:
 *      <kdsm/uapi_netlink.h>.
 *
 * Conventions of the ioctls
 *
 *   - Every argument struct starts with argsz and flags. The caller sets argsz to the size
 *     of the struct that the caller was compiled with, in bytes. If the module's struct is
 *     larger, the module takes the missing tail as zero. If the module's struct is smaller,
 *     the tail that the module does not know must be zero, else the ioctl fails with
 *     -E2BIG. An argsz above the page size is -E2BIG, too, and an argsz below the first
 *     published size of the struct is -EINVAL.
 *   - An unknown flag and a reserved field other than 0 are -EINVAL.
 *   - The module writes the fields marked (out), at most argsz bytes of the struct. Structs
 *     hold no pointers and no longs: user addresses are __u64, so 32-bit programs use the
 *     same layout.
 *   - Sizes, offsets and lengths are in bytes, times in nanoseconds.
 *   - Every ioctl can fail with -EFAULT (bad user address), -ENOTTY (unknown ioctl), -ENOMEM
 *     and -EINTR or -ERESTARTSYS (signal).
 *
 * Words: a node is one kernel with the module loaded, numbered 0..N-1. A region is a named
 * piece of memory that spans the nodes. In a partitioned region every node contributes a
 * part of the same size, and a place is a pair (node, offset in that node's part). A
 * coherent region is one memory that every node maps whole.
 */
#ifndef _UAPI_KDSM_H
#define _UAPI_KDSM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KDSM_DEVICE		"/dev/kdsm"

/*
 * Version of this interface, raised when existing programs would break. KDSM_IOC_INFO returns
 * the version of the module.
 */
#define KDSM_ABI_VERSION	1

/* Limits. The sizes of names and locations are in bytes and include the NUL. */
#define KDSM_MAX_NODES		1024
#define KDSM_NAME_SIZE		64	/* clusters and regions */
#define KDSM_LOCATION_SIZE	64
#define KDSM_UUID_SIZE		16
#define KDSM_MAX_SEGMENTS	8	/* segments of one region */
#define KDSM_MAX_OPS		1024	/* operations in one KDSM_IOC_SUBMIT */
#define KDSM_MAX_OP_LENGTH	(1U << 21)	/* of one get or put, in bytes */
#define KDSM_LEASE_MAX		1000000000U	/* lease of a STRICT region, in ns */
#define KDSM_LIMIT_MIN		(1U << 24)	/* least limit of a coherent region, in bytes */
#define KDSM_MAX_TICKETS	1024	/* tickets of a file that are not completed */
#define KDSM_MAX_INFLIGHT_BYTES	(8U << 20)	/* of these tickets, or of a ring */
#define KDSM_RING_MAX_ENTRIES	1024	/* of each queue of a ring */
#define KDSM_RING_MAX_BUFFER	(1U << 30)	/* buffer of a ring, in bytes */

/*
 * Atomicity domain of the cluster: whether CPUs or devices execute the atomic operations.
 * Atomics of a device are in general atomic only against other atomics of the same device.
 */
enum kdsm_domain {
	KDSM_DOMAIN_AUTO = 0,	/* only in a request: GLOB if the device can, else SW */
	KDSM_DOMAIN_SW,		/* CPUs execute all atomics; a remote one is a message */
	KDSM_DOMAIN_HCA,	/* devices execute all atomics, also those on the own part */
	KDSM_DOMAIN_GLOB,	/* atomics of CPU and device are atomic against each other */
};

/* Consistency policy of a region */
enum kdsm_policy {
	KDSM_POLICY_PARTITIONED = 1,	/* operations on parts; the own part is mapped */
	KDSM_POLICY_RELEASE,		/* coherent for programs without data races */
	KDSM_POLICY_STRICT,		/* coherent for all; a block has 1 writer or many readers */
};

/*
 * KDSM_IOC_INFO: describe this node and its cluster. Any open file can be used.
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
	__u8  uuid[KDSM_UUID_SIZE];	/* (out) of the cluster */
	char  cluster[KDSM_NAME_SIZE];	/* (out) name of the cluster */
};

#define KDSM_INFO_SIZE_VER0	104

/*
 * KDSM_IOC_LOCATION: return the location of a node: words separated by slashes, outermost
 * first, such as "rack0/chassis2", or an empty string. Any open file can be used.
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
 * A segment of a coherent region: a range of bytes that has blocks of one size. It ends where the
 * next one begins, or at the end of the region.
 */
struct kdsm_region_segment {
	__u64 offset;		/* of the first byte, a multiple of 2 MiB */
	__u32 block_size;	/* a power of two, 4 KiB to 2 MiB */
	__u32 reserved;		/* 0 */
};

/*
 * KDSM_IOC_REGION_OPEN: bind this file to a region, once, and create the region if asked.
 *
 * A region lives while a file on some node is bound to it or mapped. With KDSM_REGION_KEEP
 * it lives until it is destroyed by name and no file is bound to it. New memory is zero.
 *
 * KDSM_REGION_CREATE creates the region if it does not exist; with KDSM_REGION_EXCL the call
 * fails if it exists. With CREATE, size, block_size, policy, the segments and
 * KDSM_REGION_CONTIGUOUS must be those of an existing region. Without CREATE, these fields and mode
 * are ignored on input.
 *
 * With KDSM_REGION_AT, which needs CREATE, the creator chooses the address: base is a multiple of
 * the size of a page, and the region is outside of KDSM_ARENA_START to KDSM_ARENA_END, the
 * addresses of which the module chooses. Such regions may overlap; a program can then map only one
 * of them. An existing region must have this base.
 *
 * Blocks are the units in which nodes share a coherent region. Small blocks suit neighbouring data
 * that different nodes write, large blocks suit data that a node uses as a whole. A region with
 * both has 2 to KDSM_MAX_SEGMENTS segments. Their offsets ascend: the first offset is 0, and the
 * last one is below size. Blocks are numbered through all segments.
 *
 * Each block of a coherent region has a home, the node that owns the block until another node
 * writes it. Groups of KDSM_CYCLE_BLOCKS blocks go round the nodes. With KDSM_REGION_CONTIGUOUS,
 * each node is the home of one range of blocks, in the order of nodes. All ranges have the same
 * number of blocks, but the last ones may have fewer or none. The home needs no memory for a block
 * that another node writes first.
 *
 * Errors:
 *   -ENETDOWN	the cluster is not up
 *   -EBUSY	the file is bound already
 *   -EINVAL	the name is empty, has no NUL, or has a blank or another character that is
 *		not printable ASCII; another flag is given without CREATE; size is 0; policy,
 *		block size, a segment or mode is invalid; block_size is neither 0 nor that of
 *		the first segment; CONTIGUOUS or more than one segment is given for a
 *		partitioned region; base is invalid; or the region exists with other attributes
 *   -ENOENT	there is no such region (without CREATE)
 *   -EEXIST	the region exists (with EXCL)
 *   -EACCES	mode, owner and group of the region forbid it
 *   -ENOMEM	a node cannot hold its part
 *   -EDQUOT	the caller's regions would hold more of a node's memory than a user may
 *   -EFBIG	size is above 256 TiB
 *   -ENOSPC	there are 4096 regions, or no range of addresses is free: all regions
 *		together have 48 TiB
 *   -ENXIO	the region was created before this node was added
 *   -EBADE	the region cannot be created, because the tables of nodes differ
 *   -EHOSTDOWN	a node that must take part cannot be reached
 *   -EIO, -ETIMEDOUT	a node did not answer; the caller may repeat the call
 */
struct kdsm_region_open {
	__u32 argsz;
	__u32 flags;		/* KDSM_REGION_* */
	char  name[KDSM_NAME_SIZE];
	__u64 size;		/* requested, sum over all nodes; (out) actual */
	__u32 block_size;	/* a power of two, 4 KiB to 2 MiB; 0: 4 KiB, or that of the first
				 * segment; (out) of the first segment
				 */
	__u32 policy;		/* enum kdsm_policy; (out) */
	__u32 mode;		/* permission bits, 0777 at most; 0: 0600; (out) */
	__u32 id;		/* (out) number of the region in the cluster */
	__u64 part_size;	/* (out) of each part, a multiple of block_size; coherent: of
				 * the whole region
				 */
	__u64 base;		/* (out) address of the mapping, in every process; with
				 * KDSM_REGION_AT also the address that the creator wants
				 */
	__u32 segments;		/* number in segment[]; 0: one, of block_size; (out) at least 1 */
	__u32 nodes;		/* (out) that take part in the region: numbers 0 to nodes - 1 */
	struct kdsm_region_segment segment[KDSM_MAX_SEGMENTS];	/* (out) */
};

#define KDSM_REGION_OPEN_SIZE_VER0	112
#define KDSM_REGION_OPEN_SIZE_VER1	248	/* with segments */

#define KDSM_REGION_CREATE	(1U << 0)
#define KDSM_REGION_EXCL	(1U << 1)
#define KDSM_REGION_KEEP	(1U << 2)	/* survives its last close */
#define KDSM_REGION_CONTIGUOUS	(1U << 3)	/* coherent: blocks of a home are neighbours */
#define KDSM_REGION_AT		(1U << 4)	/* the creator chooses base */

/*
 * The addresses of which the module chooses those of regions. They lie above the addresses that the
 * loader uses for position-independent programs with sanitizers, and below the stacks of such
 * programs, and below other position-independent programs.
 */
#define KDSM_ARENA_START	0x200000000000ULL
#define KDSM_ARENA_END		0x500000000000ULL

#define KDSM_CYCLE_BLOCKS	512

/*
 * KDSM_IOC_REGION_DESTROY: remove the name of a region. Files that are bound to the region
 * stay bound, and the module frees the memory after the last of them is closed. Any open file
 * can be used.
 *
 * -ENOENT: there is no such region. -EACCES: the caller is neither its owner nor has
 * CAP_SYS_ADMIN. -ENETDOWN, -EHOSTDOWN, -EIO, -ETIMEDOUT: as KDSM_IOC_REGION_OPEN.
 */
struct kdsm_region_destroy {
	__u32 argsz;
	__u32 flags;		/* 0 */
	char  name[KDSM_NAME_SIZE];
};

#define KDSM_REGION_DESTROY_SIZE_VER0	72

/*
 * KDSM_IOC_HOME: return the home of a block of the coherent region that the file is bound to. The
 * home never changes. Another node may own the block by now.
 *
 * -EBADFD: the file is not bound. -EOPNOTSUPP: the region is partitioned. -ERANGE: offset is not
 * inside the region.
 */
struct kdsm_home {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;		/* of any byte of the block */
	__u32 node;		/* (out) */
	__u32 reserved;		/* 0 */
};

#define KDSM_HOME_SIZE_VER0	24

/* Operations on a place of the partitioned region that the file is bound to */
enum kdsm_opcode {
	KDSM_OP_GET = 1,	/* copy length bytes from the place to addr */
	KDSM_OP_PUT,		/* copy length bytes from addr to the place */
	KDSM_OP_CAS,		/* 8-byte word: store operand if it equals compare */
	KDSM_OP_FAA,		/* 8-byte word: add operand */
	KDSM_OP_FIND,		/* struct kdsm_find, <kdsm/uapi_table.h>, at addr */
	KDSM_OP_STEAL,		/* struct kdsm_theft, <kdsm/uapi_task.h>, at addr */
};

/*
 * CAS and FAA store the former value in result. Their offset is a multiple of 8. They are
 * atomic against all other CAS and FAA on the word, against aligned loads, and, unless the
 * domain is HCA, against CPU atomics on the mapping of the node that holds the word. Gets
 * and puts are not atomic: a get may return a mixture of old and new bytes, on some devices
 * even inside a word.
 *
 * Order. A put is complete when the device of the target has it. The device writes the bytes
 * to memory soon, but in any order: a later put may appear before an earlier one, and the
 * second half of a put before the first. Later gets of this node see a complete put; those of
 * a put with KDSM_OP_NOTIFY only after KDSM_IOC_SETTLE. On other nodes, and on the CPUs of the
 * target, only two things prove that a put is there:
 *
 *   - the first word of a put with KDSM_OP_NOTIFY, see there;
 *   - something that this node did after KDSM_IOC_SETTLE of the target had returned.
 *
 * Operations of one submission take effect in any order, except that a put with
 * KDSM_OP_NOTIFY takes effect after earlier puts of the submission to the same node, and
 * fails if one of them fails. status is 0 or
 *   -EINVAL	opcode, flags, node, length or alignment is invalid; reserved is not 0; or
 *		the struct of FIND or STEAL is malformed
 *   -ERANGE	the place is not inside the part
 *   -EFAULT	addr is not accessible memory
 *   -EACCES	the region may not be written (all but GET)
 *   -ENOMEM	this node or the target has no memory for it
 *   -EHOSTDOWN	the target cannot be reached
 *   -EIO	the connection broke, and the operation may have taken effect; or the region
 *		does not exist there any more. FIND: the index holds a word that is no entry.
 *		STEAL: a proxy stands for no task, and the tasks that were taken are lost
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
 * Flag of a PUT of whole aligned words of 8 bytes. The CPU of the target stores the first word
 * of the put, whole, when all other words of the put and all earlier puts of the submission to
 * the same node are in memory, and then wakes the waiters of the first word (KDSM_IOC_WAIT). So
 * a thread of the target that loads the first word with acquire semantics sees them all,
 * whether it waited or not. The put may be complete before the CPU stores the word. Of two such
 * puts, of which the second is submitted when the first is complete, the first word of the
 * first is stored first.
 */
#define KDSM_OP_NOTIFY	(1U << 0)

/*
 * KDSM_IOC_SUBMIT: start count operations, so that their round trips overlap. The module
 * copies the data of puts before the call returns.
 *
 * With KDSM_SUBMIT_WAIT the call waits, stores results and statuses in the array, and
 * returns 0 or the first status that is not 0. Without it the call returns a ticket;
 * KDSM_IOC_COMPLETE of that ticket stores results and statuses in the same array, and the
 * bytes of gets at the addresses in it. So the array must stay until then.
 *
 * -EBADFD	the file is not bound
 * -EOPNOTSUPP	the region is coherent
 * -EINVAL	count is 0 or above KDSM_MAX_OPS
 * -EFAULT	the array is not accessible memory
 * -EAGAIN	too many tickets or bytes are in flight (without WAIT)
 * -E2BIG	the operations have more than KDSM_MAX_INFLIGHT_BYTES (without WAIT)
 * -EINTR	a fatal signal came; the operations may take effect
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
 * KDSM_IOC_COMPLETE: wait for a submission and store its results in the memory of the calling
 * process, which after fork may be parent or child. Returns 0 or the first status that is not
 * 0, as KDSM_IOC_SUBMIT with WAIT does; the ticket is then no longer valid. timeout 0 does not
 * wait; ~0 waits without limit.
 *
 * -ETIMEDOUT: not done in time; -EINTR: a signal came; -EBUSY: another thread completes the
 * ticket. After these errors the ticket stays valid. -ENOENT: there is no such ticket.
 */
struct kdsm_complete {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 ticket;
	__u64 timeout;
};

#define KDSM_COMPLETE_SIZE_VER0	24

/*
 * Rings
 *
 * A ring lets a program keep many operations in flight without a system call for each. It has a
 * queue of submissions, a queue of completions and a buffer for data, in memory that the program
 * and the module share. The program writes operations into the first queue and passes any number
 * of them by one KDSM_IOC_RING_ENTER. When an operation is done, the module writes a completion
 * into the second queue, which the program reads without a call.
 *
 * KDSM_IOC_RING_SETUP, on a file that is bound to a partitioned region, makes a ring and returns a
 * file for it. The ring keeps the binding. The program maps the memory of the ring by mmap of that
 * file: MAP_SHARED, offset 0, length size, no PROT_EXEC, at any address. poll() of the file
 * reports POLLIN while there are unread completions. The last close and munmap wait, for bounded
 * time, for the operations in flight.
 *
 * Gets and puts use the buffer of the ring, which the kernel allocates: no page of the program is
 * pinned, and the program may exit, fork or unmap at any time. The pages count against
 * RLIMIT_MEMLOCK of the process, unless it has CAP_IPC_LOCK, and are charged to its memory cgroup.
 * The device reads and writes them directly, so data is copied nowhere.
 *
 * At most entries operations are between submission and the reading of their completion, with at
 * most KDSM_MAX_INFLIGHT_BYTES in flight. The module takes no more submissions until the program
 * has read completions, or operations are done. So the queue of completions never overflows.
 *
 *   -EBADFD	the file is not bound
 *   -EOPNOTSUPP	the region is coherent
 *   -EINVAL	flags; entries or buffer_size is out of its range
 *   -EDQUOT	RLIMIT_MEMLOCK
 *   -EMFILE, -ENFILE	no file descriptor
 */
struct kdsm_ring_setup {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 entries;		/* of each queue, 1..KDSM_RING_MAX_ENTRIES; (out) rounded up to a
				 * power of two
				 */
	__s32 file;		/* (out) file descriptor of the ring, with O_CLOEXEC */
	__u64 buffer_size;	/* 0..KDSM_RING_MAX_BUFFER; (out) rounded up */
	__u64 size;		/* (out) of the mapping */
	/* (out) offsets in the mapping; struct kdsm_ring_head is at 0 */
	__u32 submissions;	/* of struct kdsm_ring_entry[entries] */
	__u32 completions;	/* of struct kdsm_ring_completion[entries] */
	__u32 buffer;		/* a multiple of the page size */
	__u32 reserved;		/* (out) 0 */
};

#define KDSM_RING_SETUP_SIZE_VER0	48

/*
 * Heads and tails count from 0 and wrap at 2^32. Element n of a queue has index n % entries. A
 * queue holds the elements head..tail-1. The writer of a tail stores it with release semantics
 * after the elements; the writer of a head, after it has read them. The module reads each element
 * once and trusts none of these words: a program that breaks the rules gets errors, or loses
 * completions of its own.
 */
struct kdsm_ring_head {
	/* Written by the module */
	__u32 submission_head;
	__u32 completion_tail;
	__u32 reserved[14];
	/* Written by the program */
	__u32 submission_tail;
	__u32 completion_head;
	__u32 reserved2[14];
};

/*
 * An operation: GET, PUT, CAS or FAA, without flags. addr is an offset in the buffer; result and
 * status are ignored. A get writes to its bytes of the buffer until it is complete, and a put may
 * read them until then.
 */
struct kdsm_ring_entry {
	struct kdsm_op op;
	__u64 data;		/* copied into the completion; of no meaning to the module */
};

struct kdsm_ring_completion {
	__u64 data;		/* of the entry */
	__u64 result;		/* CAS, FAA: the value before */
	__s32 status;		/* as of struct kdsm_op; -EFAULT: outside of the buffer */
	__u8  opcode;		/* of the entry */
	__u8  reserved;		/* 0 */
	__u16 node;		/* of the entry */
	__u64 reserved2;	/* 0 */
};

/*
 * KDSM_IOC_RING_ENTER, on the file of a ring: take up to submit entries from the queue of
 * submissions and start their operations; then wait until wait completions are unread, or nothing
 * is in flight. timeout 0 does not wait; ~0 waits without limit. Operations take effect and
 * complete in any order. An invalid operation completes with an error and does not stop others.
 *
 * The call starts operations on other nodes and does not wait for them, but it waits, for bounded
 * time, for room on a connection and while a connection is being made. Operations of one call on
 * the same node may complete together. In domain SW, a CAS or FAA on another node is a message
 * that the CPU there answers; KDSM_IOC_RING_ENTER does not wait for the answer either, but the
 * atomic costs both nodes more than one by the device.
 *
 * The module stores submitted and ready also after -ETIMEDOUT and -EINTR.
 *
 *   -EINVAL	flags, or the queue of submissions has more than entries elements
 *   -ETIMEDOUT	there were fewer completions in time
 *   -EINTR	a signal came; operations that were submitted go on
 */
struct kdsm_ring_enter {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 submit;
	__u32 wait;
	__u64 timeout;
	__u32 submitted;	/* (out) entries taken */
	__u32 ready;		/* (out) unread completions */
};

#define KDSM_RING_ENTER_SIZE_VER0	32

/*
 * KDSM_IOC_WAIT: sleep while the 8-byte word at offset of the own part equals value. Returns
 * 0 when the word differs, at once if it already does.
 *
 * A put with KDSM_OP_NOTIFY that begins with the word wakes the waiter, and so does
 * KDSM_IOC_WAKE on this node; a plain store does not. A change of the word by another put says
 * nothing about other words, and on some devices only a part of the word may have changed. So
 * the caller compares the word with the value that the caller expects.
 *
 * -EBADFD, -EOPNOTSUPP, -EINVAL (alignment), -ERANGE, -ENOMEM, -ETIMEDOUT (timeout as of
 * KDSM_IOC_COMPLETE), -EINTR.
 */
struct kdsm_wait {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
	__u64 value;
	__u64 timeout;
};

#define KDSM_WAIT_SIZE_VER0	32

/*
 * KDSM_IOC_WAKE: wake all waiters of the word at offset of the own part.
 *
 * -EBADFD, -EOPNOTSUPP, -EINVAL (alignment), -ERANGE.
 */
struct kdsm_wake {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
};

#define KDSM_WAKE_SIZE_VER0	16

/*
 * KDSM_IOC_SETTLE: wait until the nodes of a set see all puts of this node that were complete
 * before the call. Then the CPUs of these nodes, and gets of all nodes, see them. The module
 * ignores this node, and nodes that are not in the cluster, because a node may have been removed
 * since the puts. Any open file can be used.
 *
 * The module sends a message on each connection to these nodes that carried puts, of any
 * process, since it was last settled; all messages are in flight together.
 *
 * -ENETDOWN: the cluster is not up. -EHOSTDOWN: a node cannot be reached. -EIO: a connection
 * broke; the caller may repeat the call.
 */
struct kdsm_settle {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 messages;		/* (out) sent */
	__u32 reserved;		/* 0 */
	__u64 nodes[KDSM_MAX_NODES / 64];	/* node 0 is bit 0 of the first word */
};

#define KDSM_SETTLE_SIZE_VER0	144

/* Writer of a summary (struct kdsm_notice): unknown, or several nodes */
#define KDSM_WRITER_UNKNOWN	0xffff

/*
 * Write notice: node writer wrote blocks first..first+count-1. If share is not 0, node writer wrote
 * only the first share blocks, node writer + 1 the next share blocks, and so on; the last node may
 * have written fewer. If writer is KDSM_WRITER_UNKNOWN, then share is 0, and the notice is a
 * summary: it stands for all writes to its blocks up to ts, and perhaps no node wrote some of them.
 * The logical timestamp ts orders notices of the same blocks.
 */
struct kdsm_notice {
	__u64 ts;
	__u64 first;
	__u32 count;		/* in blocks */
	__u16 writer;
	__u16 share;		/* in blocks; 0: writer wrote all blocks */
};

/* Upper bound of the notices in a signature; the simulator sets a smaller one */
#ifndef KDSM_NOTICES_MAX
#define KDSM_NOTICES_MAX	128
#endif

/*
 * Signature: a release stores it, and an acquire takes it. To programs a signature is a
 * sequence of bytes, of which the first KDSM_SIGNATURE_BYTES(count) are in use. A program may
 * send a signature by any means to any node of the cluster.
 */
struct kdsm_signature {
	__u64 floor;		/* notices up to this timestamp may be missing */
	__u32 count;		/* of notices */
	__u32 reserved;		/* 0 */
	struct kdsm_notice notices[KDSM_NOTICES_MAX];	/* oldest first */
};

/* Size of a signature of count notices, in bytes */
#define KDSM_SIGNATURE_BYTES(count)	(16 + (count) * 24)

/*
 * KDSM_IOC_RELEASE: complete all writes that programs of this node made to the coherent
 * region that the file is bound to, and store a signature of these writes and of all that
 * this node has acquired.
 *
 * KDSM_IOC_ACQUIRE: make the writes of the signature visible. -EINVAL: the signature is
 * malformed. A signature that no release made, acquired by a file that is open for writing, can
 * spoil this region for all its users, but nothing else. From a file that is open for reading
 * only, such a signature does no harm: -EINVAL if it has a timestamp that no node of the cluster
 * has reached, -EHOSTDOWN if a node that would have to be asked does not answer. Such a file's
 * acquire invalidates every copy of this node that is older than the signature.
 *
 * Both work for all threads and processes of the node. In a region of policy STRICT writes
 * are visible at once: both do nothing, and the signature is empty.
 *
 * -EBADFD: the file is not bound. -EOPNOTSUPP: the region is partitioned. -EFAULT, -ENOMEM,
 * -EHOSTDOWN, -EIO, -ETIMEDOUT: some writes may be incomplete, or some copies stale; the
 * caller may repeat the call.
 */
struct kdsm_fence {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 signature;	/* user address of struct kdsm_signature; RELEASE: 0 stores none */
};

#define KDSM_FENCE_SIZE_VER0	16

/*
 * KDSM_IOC_ADVISE: prepare the blocks of the coherent region that overlap
 * offset..offset+length-1 for later accesses. The advice changes how long later calls and
 * accesses take and, except for REFRESH, never their results. Another node may undo its effect
 * at any time. The call returns when the work is done.
 *
 * PREFETCH	fetch copies, as if each block were read.
 * FLUSH	complete the writes to these blocks. A later KDSM_IOC_RELEASE has less to do, and
 *		is still needed for its signature. STRICT: nothing.
 * OWN		become the owner. RELEASE: releases of this node need no network for these blocks
 *		until another node writes them and releases. STRICT: as if each block were
 *		written. -EACCES: the file is not open for writing.
 * REFRESH	make copies current: later accesses of this node to these blocks see all that any
 *		node had released before the call, by KDSM_IOC_RELEASE or FLUSH. The call itself
 *		needs no network; the next read of each block asks its owner. STRICT: nothing.
 *
 * -EBADFD (not bound), -EINVAL (advice, length 0), -EOPNOTSUPP (the region is partitioned),
 * -ERANGE (not inside the region), -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT, -ERESTARTSYS: some
 * blocks are unchanged.
 */
enum kdsm_advice {
	KDSM_ADVICE_PREFETCH = 1,
	KDSM_ADVICE_FLUSH,
	KDSM_ADVICE_OWN,
	KDSM_ADVICE_REFRESH,
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

/*
 * A data race that this node found: since the last merge, two nodes wrote the same bytes of a
 * word of 8 bytes. The values are those of the whole word, as a CPU loads it.
 *
 * A node finds a race when it merges content of another node with writes that it has not released
 * yet: at a release, and at the first access after an acquire. The bytes keep ours. The other node
 * is known for certain only if no third node has written the block and released since: node other
 * had theirs in its copy, because it wrote theirs, or because it has them from a node before it.
 *
 * Both nodes may have written the same value: then ours and theirs are equal in the bytes of mask,
 * and no write is lost. It is a race all the same. No race shows where a node stored the value
 * that the byte had before, or where one of the two only read.
 */
struct kdsm_race {
	__u64 number;		/* of the races of the region on this node; the first is 0 */
	__u64 offset;		/* of the word in the region, a multiple of 8 */
	__u64 mask;		/* 0xff in each byte that both nodes wrote */
	__u64 before;		/* the value before both writes, as of the last merge */
	__u64 ours;		/* the value on this node, in the merge */
	__u64 theirs;		/* the value that the other node had */
	__u16 node;		/* this node */
	__u16 other;		/* the node that the merged content came from */
	__u32 reserved;		/* 0 */
};

/* Races that a node keeps of a region, the newest ones, and most that it keeps of one merge */
#define KDSM_RACES_MAX		256
#define KDSM_RACES_MERGE	16

/*
 * KDSM_IOC_RACES: store the data races that this node found in the region that the file is bound
 * to, from number next on, the oldest first. The races stay: the call changes nothing. Other nodes
 * have found other races. Under policy STRICT there are none.
 *
 * -EBADFD: the file is not bound. -EOPNOTSUPP: the region is partitioned. -EFAULT: the array is
 * not accessible memory.
 */
struct kdsm_races {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 races;		/* user address of struct kdsm_race[count] */
	__u32 count;		/* room in the array; (out) number of races stored */
	__u32 reserved;		/* 0 */
	__u64 next;		/* number of the first race to store; (out) for the next call */
	__u64 lost;		/* (out) races between both values of next that are not kept */
};

#define KDSM_RACES_SIZE_VER0	40

/*
 * A block of a coherent region is lost if the node that owned it died, or came up again. Accesses
 * to the block raise SIGBUS on all nodes that have no copy. No other block is affected: a release
 * of a node that has written to the block publishes all other blocks, and then fails with
 * -EHOSTDOWN, until the block is discarded or its owner is back.
 *
 * KDSM_IOC_LOST: store the offsets in the region of lost blocks, in ascending order, from next on.
 * Programs of this node have tried to use, or released writes to, these blocks, and have not got
 * them since. The call asks no other node, so a block that no program of this node has tried to use
 * is not listed.
 *
 * -EBADFD: the file is not bound. -EOPNOTSUPP: the region is partitioned. -EFAULT: the array is
 * not accessible memory. -ENOMEM.
 */
struct kdsm_lost {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offsets;		/* user address of __u64[count] */
	__u32 count;		/* room in the array, at most KDSM_LOST_MAX; (out) number stored */
	__u32 reserved;		/* 0 */
	__u64 next;		/* least offset to store; (out) for the next call */
};

#define KDSM_LOST_SIZE_VER0	32
#define KDSM_LOST_MAX		4096	/* offsets that one call stores */

/*
 * KDSM_IOC_DISCARD: make the lost blocks that overlap length bytes from offset on usable again, on
 * all nodes, with zeros as content. The call asks all nodes about each block of the range that this
 * node does not own. A block that is not lost keeps its content; if only this node could not find
 * its owner, this node can use the block afterwards. Unreleased writes to discarded blocks are
 * dropped, on all nodes. Several nodes may discard the same blocks concurrently.
 *
 * From then on the missing nodes have no part of the region, even if they were only unreachable: on
 * these nodes accesses raise SIGBUS and calls fail with -ESTALE.
 *
 * -EBADFD: the file is not bound. -EOPNOTSUPP: the region is partitioned. -EINVAL: length is 0.
 * -ERANGE: the range is not in the region. -EACCES: the file is not open for writing. -EHOSTDOWN or
 * -ETIMEDOUT: for a minute, a node did not answer, or another node could reach the missing one.
 * -ESTALE: other nodes took this node for dead. -EOVERFLOW: the block was discarded 16,382 times.
 * -ENOMEM, -EINTR. After -EHOSTDOWN, -ETIMEDOUT and -EOVERFLOW all other blocks are discarded.
 */
struct kdsm_discard {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u64 offset;
	__u64 length;
};

#define KDSM_DISCARD_SIZE_VER0	24

/* Operations of KDSM_IOC_ATOMIC */
enum kdsm_atomic_opcode {
	KDSM_ATOMIC_LOAD = 1,
	KDSM_ATOMIC_EXCHANGE,	/* store operand */
	KDSM_ATOMIC_ADD,	/* add operand */
	KDSM_ATOMIC_CAS,	/* store operand if the word equals compare */
};

/*
 * KDSM_IOC_ATOMIC: an atomic operation on a word of the region of policy RELEASE that the file is
 * bound to. All such operations on a word, by all nodes, have one order, and each acts on the value
 * that the one before it left, whatever copies nodes have cached. They are also atomic against
 * atomic instructions of the CPUs of this node. Plain loads may return older values until this node
 * acquires a later one.
 *
 * ACQUIRE: this node then sees all that was released before the RELEASE operations that precede
 * this one in the order of the word. RELEASE: as if KDSM_IOC_RELEASE came before the operation.
 * Both flags hold for a CAS that stores nothing, too. Without flags the operation orders nothing
 * else.
 *
 * The node becomes the owner of the block. While it stays the owner, an operation needs no network,
 * except that RELEASE may. An ACQUIRE after another node owned the block invalidates each copy of
 * this node that is not known to be as new as that node's newest operation; the next read of such a
 * copy asks whether the copy has changed.
 *
 * -EBADFD	the file is not bound
 * -EINVAL	flags, opcode or size is invalid, or offset is no multiple of size
 * -EOPNOTSUPP	the region has another policy: with STRICT, CPU instructions do the same
 * -ERANGE	the word is not inside the region
 * -EACCES	the file is not open for writing
 * -ENOMEM, -EHOSTDOWN, -EIO, -ETIMEDOUT	the operation has not taken effect
 * After -EFAULT, and when a fatal signal ends the call, the operation may have taken effect.
 */
struct kdsm_atomic {
	__u32 argsz;
	__u32 flags;		/* KDSM_ATOMIC_ACQUIRE, KDSM_ATOMIC_RELEASE */
	__u64 offset;		/* of the word in the region */
	__u32 opcode;		/* enum kdsm_atomic_opcode */
	__u32 size;		/* of the word, 4 or 8 */
	__u64 operand;		/* of this and the next, the low size bytes count */
	__u64 compare;
	__u64 result;		/* (out) the value before the operation */
};

#define KDSM_ATOMIC_SIZE_VER0	48

#define KDSM_ATOMIC_ACQUIRE	(1U << 0)
#define KDSM_ATOMIC_RELEASE	(1U << 1)

/* ---- locks ---- */

/*
 * Locks exclude threads of all nodes. A lock belongs to a region, has a number in it, may
 * have a name, and lives as long as the region.
 *
 * A lock is at one node at a time. There the threads of all processes take turns. Nodes that want
 * it queue at its home, a node that follows from the number of the lock. While it is at a node and
 * no other thread wants it, it is locked and unlocked without a system call; see the lock words
 * below.
 *
 * In a region of policy RELEASE the holder of a lock sees all that earlier holders wrote, on
 * any node, before they unlocked it, as if each had called KDSM_IOC_RELEASE before it unlocked
 * and the next holder had called KDSM_IOC_ACQUIRE after it locked. The nodes release and
 * acquire when the lock is handed from node to node, and not while the lock stays at a node.
 * The next holder after a holder that died sees the writes of the dead holder together with
 * -EOWNERDEAD. If the writes cannot be completed for 10 s because a node does not answer, the
 * next holder gets -EOWNERDEAD as well, and may see old values.
 *
 * Levels: the nodes form a tree by their locations ("rack0/chassis2"). Level 1 has one
 * element, the cluster. The elements of the last level are the nodes, whose members are
 * threads. The threads of an element of level i hold the lock at most T_L,i times in a row
 * while another element waits. T_L,1 has no meaning. (P. Schmid, M. Besta, T. Hoefler,
 * "High-Performance Distributed RMA Locks", HPDC 2016)
 */
#define KDSM_MAX_LOCKS		4096	/* of a region */
#define KDSM_LOCK_LEVELS	8	/* of the tree; deeper locations are cut */
#define KDSM_LOCK_ANY		(~0U)	/* as number: any free one */
#define KDSM_MAX_LOCK_THREADS	65536	/* of a region on one node */

enum kdsm_lock_kind {
	KDSM_LOCK_DMCS = 1,	/* two levels, the cluster and its nodes */
	KDSM_LOCK_RMA_MCS,	/* the levels of the locations */
	KDSM_LOCK_RMA_RW,	/* RMA_MCS for writers, and many readers at once */
};

/*
 * Settings of a lock. mask names the fields that are given, KDSM_LOCK_SET_*; the others have
 * their default in a new lock, and are unchanged by KDSM_IOC_LOCK_SET. (out) all fields, and
 * mask names those that the kind has. A DMCS has only keep, and its T_L,2 is 1.
 */
struct kdsm_lock_settings {
	__u32 mask;
	__u32 t_dc;	/* RMA_RW: every t_dc-th node is a reader home, which admits nodes to
			 * read; 1, the default, to the number of nodes. A node uses a new
			 * value when it next asks to read
			 */
	__u32 t_r;	/* RMA_RW: nodes that a reader home admits at once while a writer
			 * waits, 1 to T_MAX; default: 64
			 */
	__u32 t_w;	/* RMA_RW: times that threads write in a row while readers wait, 1 to
			 * T_MAX; default: the product of T_L,2 and on, T_MAX at most
			 */
	__u32 t_l[KDSM_LOCK_LEVELS];	/* t_l[i - 1] of level i; 1 to T_MAX, or T_L_AUTO */
	__u64 keep;	/* in ns; see KDSM_LOCK_KEEP_FOREVER */
};

#define KDSM_LOCK_T_MAX		(1U << 20)	/* upper bound of T_R, T_W and T_L,i */

/*
 * T_L,i automatic, the default except for DMCS: the members of an element of level i hold the
 * lock as many times as it takes for each of them to have held it once. For a node, the last
 * level, that is the number of threads that waited when the node asked for the lock, T_L_MOST at
 * most; for a larger element, as many turns of nodes as it has nodes. In the default of T_W it
 * counts as T_L_MOST.
 */
#define KDSM_LOCK_T_L_AUTO	(~0U)
#define KDSM_LOCK_T_L_MOST	16

#define KDSM_LOCK_SET_T_DC	(1U << 0)
#define KDSM_LOCK_SET_T_R	(1U << 1)
#define KDSM_LOCK_SET_T_W	(1U << 2)
#define KDSM_LOCK_SET_KEEP	(1U << 3)
#define KDSM_LOCK_SET_T_L(i)	(1U << (7 + (i)))	/* i: level, 2 to KDSM_LOCK_LEVELS */

/*
 * keep: shortest time for which a node keeps a lock that none of its threads wants, in ns; the
 * node may keep the lock some clock ticks longer. 0: every unlock gives the lock back, with one
 * remote atomic. FOREVER, the default: the node keeps the lock until another node wants it. With
 * any other value each lock and unlock is a system call. A node keeps the right to read until a
 * writer wants the lock; with keep 0, until its last reader unlocks.
 */
#define KDSM_LOCK_KEEP_FOREVER	(~0ULL)

/*
 * KDSM_IOC_LOCK_OPEN: open a lock of the region that the file is bound to, creating it if
 * asked. A lock is not closed.
 *
 * With a name, number is (out). With an empty name, number identifies the lock; with CREATE,
 * number may be KDSM_LOCK_ANY. A new lock gets kind and settings. With CREATE an existing lock
 * must have that kind, and keeps its settings. kind and settings are (out), too.
 *
 *   -EBADFD	the file is not bound
 *   -EINVAL	flags, name or mask is invalid; number is not below KDSM_MAX_LOCKS; there is
 *		no such kind; or the lock exists and has another kind
 *   -ERANGE	a setting is out of its range, or the kind or the topology does not have it
 *   -EACCES	the file is not open for writing
 *   -ENOENT	there is no such lock (without CREATE)
 *   -EEXIST	the lock exists (with EXCL)
 *   -ENOSPC	all numbers are taken
 *   -EHOSTDOWN, -ETIMEDOUT	node 0, which keeps the names, does not answer
 */
struct kdsm_lock_open {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_CREATE, KDSM_LOCK_EXCL */
	char  name[KDSM_NAME_SIZE];
	__u32 number;
	__u32 kind;		/* enum kdsm_lock_kind */
	__u32 levels;		/* (out) number of levels, 2 to KDSM_LOCK_LEVELS */
	__u32 reserved;		/* 0 */
	struct kdsm_lock_settings settings;
};

#define KDSM_LOCK_OPEN_SIZE_VER0	144

#define KDSM_LOCK_CREATE	(1U << 0)
#define KDSM_LOCK_EXCL		(1U << 1)

/*
 * KDSM_IOC_LOCK_THREAD: return the number by which the calling thread holds locks of the
 * region through this file. It is never 0, the same at every call of the thread, and
 * different for other threads, children of fork() and other files. It is valid until the
 * thread ends or calls execve(), or the file is closed; the next holder of a lock that the thread
 * then holds gets -EOWNERDEAD.
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
 * KDSM_IOC_LOCK: lock for the calling thread, whose number is thread. Threads of a node get
 * the lock in the order in which they asked, and so do nodes, within the thresholds.
 *
 * TRY: do not wait for another thread or node, nor ask another node for a lock that it keeps.
 * READ: share a lock of kind RMA_RW with other readers; the readers of a node count as one for T_R.
 * timeout: longest wait in ns, without the time that the network takes for an answer; ~0: no limit.
 *
 * The caller holds the lock after 0 and after -EOWNERDEAD.
 *   -EOWNERDEAD	the thread or node that held the lock, or may have, died with it. The
 *			holder calls KDSM_IOC_LOCK_CONSISTENT when what the lock guards is
 *			consistent again; if it unlocks without, the lock is lost. A reader
 *			leaves that to a writer
 *   -ENOTRECOVERABLE	the lock is lost
 *   -EBUSY	(with TRY) another thread holds the lock; or, until a thread waits for it, another
 *		node keeps it, nodes keep the right to read, or the home keeps a lock whose holder
 *		died; or the lock is on its way. With READ: or this node may not read yet
 *   -ETIMEDOUT	the thread waited for timeout ns
 *   -EINTR	a signal came. If the thread locks the same lock next, and not for reading, it
 *		has the place among the threads of its node that it had
 *   -EDEADLK	the calling thread holds the lock
 *   -EPERM	thread is not the number of the calling thread
 *   -ENOENT	there is no such lock, or it was not opened on this node
 *   -EINVAL	flags; READ of a lock of another kind
 *   -EACCES	the file is not open for writing
 *   -EBADFD	the file is not bound
 *   -EHOSTDOWN	the home of the lock is known to be down, or has not answered for 10 s. The call
 *		may be repeated: the lock works again when the home is back. If the home came up
 *		again without its memory, the lock is lost until the region is created again
 *   -ENOMEM	(with READ)
 *
 * A node that the home cannot reach counts as dead for a lock after about 10 s: the transport gives
 * up after 4 s, and then connecting fails. This holds for all kinds. The dead node's waiters leave
 * the queue, and its readers do not count any more; if it held the lock, the next holder gets
 * -EOWNERDEAD, within 30 s of its silence. This is only noticed while a thread waits for the lock.
 * If the node comes back, it learns that it counts as dead: its waiters queue again, and its holder
 * and its readers have lost the lock.
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
 * KDSM_IOC_UNLOCK: unlock. Returns 0 as soon as the calling thread does not hold the lock any
 * more, whether or not the network works.
 *
 * KDSM_IOC_LOCK_CONSISTENT: declare a lock that was got with -EOWNERDEAD consistent.
 * -EINVAL: it was not got so.
 *
 * -EPERM: the thread does not hold the lock (CONSISTENT: for writing; UNLOCK: as flags say),
 * or thread is not the number of the calling thread.
 * -EHOSTDOWN (UNLOCK): the home could not reach this node for so long that it gave this node up,
 * and the lock to another one (a holder's with -EOWNERDEAD); or the home has come up again. The
 * thread does not hold the lock. With READ also: a reader home gave this node up.
 * -ENOENT, -EINVAL (flags), -EACCES, -EBADFD: as KDSM_IOC_LOCK.
 */
struct kdsm_lock_give {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_READ: locked for reading; CONSISTENT: 0 */
	__u32 number;
	__u32 thread;
};

#define KDSM_LOCK_GIVE_SIZE_VER0	16

/*
 * KDSM_IOC_LOCK_SET: change the settings that mask names, on all nodes; the lock may be in
 * use. The home uses new T_L, T_R and T_W when it next decides which nodes get the lock. The caller
 * must be the owner of the region, or have CAP_SYS_ADMIN.
 *
 * -EPERM: the caller is neither.
 * -ERANGE: out of range, or the kind or the topology does not have it; nothing is changed.
 * -EINVAL (mask is 0 or unknown), -ENOENT, -EACCES, -EBADFD: as KDSM_IOC_LOCK. -EHOSTDOWN: a
 * node that has the lock open could not be told, and keeps its settings.
 */
struct kdsm_lock_set {
	__u32 argsz;
	__u32 flags;		/* 0 */
	__u32 number;
	__u32 reserved;		/* 0 */
	struct kdsm_lock_settings settings;
};

#define KDSM_LOCK_SET_SIZE_VER0	72

/* Counters of a lock on this node since it was first opened here */
enum kdsm_lock_stat {
	KDSM_LOCK_STAT_LOCKS,		/* locked by KDSM_IOC_LOCK, not for reading */
	KDSM_LOCK_STAT_FAST,		/* locked without a system call */
	KDSM_LOCK_STAT_READS,		/* locked for reading by KDSM_IOC_LOCK */
	KDSM_LOCK_STAT_BUSY,		/* calls that failed with -EBUSY */
	KDSM_LOCK_STAT_TIMEDOUT,	/* calls that failed with -ETIMEDOUT or -EINTR */
	KDSM_LOCK_STAT_DEAD,		/* threads that died while they held it, or read */
	/* Requests of this node: messages to the home, repeated ones too, and free words */
	KDSM_LOCK_STAT_ENTERED,
	KDSM_LOCK_STAT_FREE,		/* times of ENTERED that this node found the word free */
	KDSM_LOCK_STAT_FREED,		/* times that this node set the word free */
	/* Remote operations of the lock, by kind: */
	KDSM_LOCK_STAT_ATOMICS,
	KDSM_LOCK_STAT_PUTS,
	KDSM_LOCK_STAT_GETS,
	KDSM_LOCK_STAT_MESSAGES,
	KDSM_LOCK_STAT_SWITCHES,	/* on the home only: times that readers were let in */
	/* Most nodes that this node, as a reader home, admitted at once while a writer waited */
	KDSM_LOCK_STAT_READERS_IN_ROW,
	KDSM_LOCK_STAT_WAITED,		/* time that all threads waited, in ns */
	KDSM_LOCK_STAT_LONGEST,		/* longest wait of a thread, in ns */
	__KDSM_LOCK_STAT_COUNT,
};

#define KDSM_LOCK_STAT_COUNT	__KDSM_LOCK_STAT_COUNT
#define KDSM_LOCK_WAITS		40	/* classes of durations in struct kdsm_lock_info.waits */

/*
 * KDSM_IOC_LOCK_INFO: return kind, settings and counters of a lock on this node.
 *
 * KDSM_LOCK_NEXT: describe the lock with the lowest number, not below number, that is open on
 * this node. -ENOENT: there is none. -EBADFD, -EINVAL. The file need not be open for writing.
 */
struct kdsm_lock_info {
	__u32 argsz;
	__u32 flags;		/* KDSM_LOCK_NEXT */
	__u32 number;
	__u32 kind;		/* (out) from here on */
	__u32 levels;
	__u32 home;		/* node that has the word and the queue of the lock */
	char  name[KDSM_NAME_SIZE];
	struct kdsm_lock_settings settings;
	__u64 stats[KDSM_LOCK_STAT_COUNT];
	/*
	 * [i - 1]: times that this node handed the lock to a waiter inside its element of
	 * level i; at the last level, the node, from thread to thread.
	 */
	__u64 handed[KDSM_LOCK_LEVELS];
	__u64 waits[KDSM_LOCK_WAITS];	/* [i]: waits of 2^i to 2^(i+1) - 1 ns */
};

#define KDSM_LOCK_INFO_SIZE_VER0	664

#define KDSM_LOCK_NEXT		(1U << 0)

/*
 * Lock words. mmap of a bound file that is open for writing, at offset KDSM_LOCKS_OFFSET,
 * gives KDSM_LOCKS_SIZE bytes: an array of struct kdsm_lock_word by number, which all programs
 * of this node share that have the region open. MAP_SHARED, PROT_READ | PROT_WRITE or less, at
 * any address. Whole pages of it may be mapped; 32-bit programs pass KDSM_LOCKS_OFFSET_32 / 4096
 * to mmap2.
 *
 * The low half of state is the number of the holding thread of this node, or 0; the high half
 * has flags. Programs change it by an atomic compare-and-swap of all 8 bytes, in two ways only:
 *
 *   lock	AT_NODE, 0 -> AT_NODE, thread		with acquire semantics
 *   unlock	AT_NODE, thread -> AT_NODE, 0		with release semantics
 *
 * In every other state they call KDSM_IOC_LOCK or KDSM_IOC_UNLOCK, which always work. While
 * another flag is set, or AT_NODE is clear, only the module changes state. So a waiting thread
 * lets the module set WAITERS, and the holder then has to call KDSM_IOC_UNLOCK. A thread that
 * locks in the first way adds 1 to uses while it holds the lock, by a plain store. A word is
 * zero until the lock is opened on this node. If state has the calling thread's number,
 * KDSM_IOC_LOCK fails with -EDEADLK.
 *
 * The module does not trust the words. If one was overwritten, locking that lock may fail, let
 * two threads hold it, or give -EOWNERDEAD. Other locks are not affected.
 */
struct kdsm_lock_word {
	__u64 state;
	__u64 uses;
	__u64 bias;		/* RMA_RW: not 0: threads may read by their slots */
	__u64 reserved[5];
};

#define KDSM_LOCK_OWNER(state)	((__u32)(state))
#define KDSM_LOCK_FLAG(n)	(1ULL << (32 + (n)))
#define KDSM_LOCK_AT_NODE	KDSM_LOCK_FLAG(0)	/* the lock is at this node */
#define KDSM_LOCK_WAITERS	KDSM_LOCK_FLAG(1)	/* threads of this node wait */
#define KDSM_LOCK_WANTED	KDSM_LOCK_FLAG(2)	/* the module must handle the unlock */
#define KDSM_LOCK_DEAD		KDSM_LOCK_FLAG(3)	/* got with -EOWNERDEAD, not consistent */
#define KDSM_LOCK_LOST		KDSM_LOCK_FLAG(4)	/* -ENOTRECOVERABLE */

/*
 * Readers' slots, which follow the words in the same mapping: KDSM_LOCK_SLOTS words of 8 bytes.
 * Thread number n has the slot with index KDSM_LOCK_SLOT_INDEX(n), which other threads may have,
 * too. A slot is 0, or KDSM_LOCK_SLOT(thread, number of the lock).
 *
 * To read under a lock of kind RMA_RW, a thread changes its slot from 0 to KDSM_LOCK_SLOT() by an
 * atomic compare-and-swap, which is a full barrier, and then loads bias of the word. If that is not
 * 0, the thread reads. Otherwise it sets the slot to 0, and calls KDSM_IOC_LOCK; so it does if the
 * slot is in use. To unlock, the thread changes its slot back to 0 by an atomic compare-and-swap,
 * which is a full barrier, and then loads bias. If that is 0, the thread calls KDSM_IOC_UNLOCK with
 * READ, because the module may be waiting, and ignores -EPERM. If the slot did not have the
 * thread's value any more, the swap fails, and KDSM_IOC_UNLOCK says why.
 *
 * The module does not trust the slots, either. A slot that names a lock which its thread does not
 * read keeps writers of that lock out until the thread ends, or clears the slot.
 */
#define KDSM_LOCK_SLOTS		4096U
/* Threads whose numbers are near have slots in different cache lines. */
#define KDSM_LOCK_SLOT_INDEX(thread) \
	((__u32)(thread) % KDSM_LOCK_SLOTS * (KDSM_LOCK_SLOTS + 1) / (KDSM_LOCK_SLOTS / 8) % \
	 KDSM_LOCK_SLOTS)
#define KDSM_LOCK_SLOT(thread, number)	((__u64)(thread) << 32 | ((__u64)(number) + 1))

#define KDSM_LOCKS_WORDS	(KDSM_MAX_LOCKS * 64)	/* bytes of all words */
#define KDSM_LOCKS_SIZE		(KDSM_LOCKS_WORDS + KDSM_LOCK_SLOTS * 8)
#define KDSM_LOCKS_OFFSET	(1ULL << 52)		/* after the largest region */
/*
 * The same for 32-bit programs, which can pass no larger offset, and cannot map regions; and for
 * regions that end before it
 */
#define KDSM_LOCKS_OFFSET_32	0xfff00000000ULL

/*
 * The numbers do not contain the size of the struct, as with _IOW(): they would change when
 * the struct grows.
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
#define KDSM_IOC_SETTLE		_IO(KDSM_IOC_MAGIC, 18)
#define KDSM_IOC_RACES		_IO(KDSM_IOC_MAGIC, 19)
#define KDSM_IOC_LOST		_IO(KDSM_IOC_MAGIC, 20)
#define KDSM_IOC_DISCARD	_IO(KDSM_IOC_MAGIC, 21)
#define KDSM_IOC_ATOMIC		_IO(KDSM_IOC_MAGIC, 22)
#define KDSM_IOC_HOME		_IO(KDSM_IOC_MAGIC, 23)
#define KDSM_IOC_RING_SETUP	_IO(KDSM_IOC_MAGIC, 24)
#define KDSM_IOC_RING_ENTER	_IO(KDSM_IOC_MAGIC, 25)

/*
 * mmap of a bound file: offset 0 is the start of the region, and the part of node k begins at
 * k * part_size. Only MAP_SHARED, and only at address base + offset, which the address hint
 * NULL gives. Write permission is that of the file and the region. The own part is memory.
 * Accesses to other parts, and to pages for which there is no memory, raise SIGBUS. mremap to
 * another address and executable mappings are refused. -EBADFD, -EINVAL, -EACCES, -ENOMEM (the
 * address is taken).
 *
 * Offset KDSM_LOCKS_OFFSET, in 32-bit programs KDSM_LOCKS_OFFSET_32: the lock words, see above.
 */

#endif /* _UAPI_KDSM_H */
