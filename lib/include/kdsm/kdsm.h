/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkdsm - shared memory over the machines of a cluster.
 *
 * A thin shell over /dev/kdsm: open the cluster, open a region, operate on
 * places in it. A place is (node, offset in the part of that node). Where
 * /dev/kdsm is absent, a local backend gives the same API on one node.
 *
 * Every function that can fail returns 0, or another value that is not
 * negative, for success, and a negative errno for failure; errno itself is
 * neither read nor set. All functions may be called by any number of threads,
 * except that nothing may use an object while it is being closed. Sizes,
 * offsets and lengths are bytes; times are nanoseconds. Strings that come in
 * are copied; pointers that go out belong to the object that gave them.
 */
#ifndef KDSM_H
#define KDSM_H

#include <stddef.h>
#include <stdint.h>
#include <linux/kdsm.h>
#include <linux/kdsm_table.h>
#include <linux/kdsm_task.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KDSM_FOREVER UINT64_MAX

/* ---- cluster ---- */

/* A program's view of the cluster. */
struct kdsm;

/* Use the local backend if there is no /dev/kdsm (or the cluster is down). */
#define KDSM_OPEN_ALLOW_LOCAL	(1U << 0)
/* Use the local backend in any case. */
#define KDSM_OPEN_LOCAL		(1U << 1)
#define KDSM_OPEN_ALONE		(1U << 2)

/*
 * Open the cluster. The local backend is one node (node 0 of 1, domain SW)
 * inside this process; its regions are memfds, known by name only to this
 * struct kdsm, and shared with children that fork() makes. With KDSM_OPEN_ALONE
 * they are not shared: they are memory of this process, which the kernel mostly
 * gives huge pages for. That spares a large region most of its faults.
 *
 * -ENOENT: no /dev/kdsm, the module is not loaded. -EACCES: no permission on
 * it. -ENETDOWN: the cluster is not up. -EPROTO: module and library do not fit.
 */
int kdsm_open(struct kdsm **kdsm, unsigned int flags);

/* Close. All its regions must be closed. NULL is ignored. */
void kdsm_close(struct kdsm *kdsm);

unsigned int kdsm_node(const struct kdsm *kdsm);	/* number of this node */
unsigned int kdsm_nodes(const struct kdsm *kdsm);	/* how many there are */
enum kdsm_domain kdsm_domain(const struct kdsm *kdsm);
/*
 * Where a node is, as in kdsm.conf(5), ended by a NUL; "" if nobody said, and of the local
 * backend. -EINVAL: there is no such node. -ENETDOWN.
 */
int kdsm_location(const struct kdsm *kdsm, unsigned int node,
		  char location[KDSM_LOCATION_SIZE]);
int kdsm_is_local(const struct kdsm *kdsm);	/* 1: the local backend */
const char *kdsm_cluster_name(const struct kdsm *kdsm);

/* ---- regions ---- */

struct kdsm_region;

struct kdsm_region_attr {
	uint64_t size;		/* bytes over all nodes, rounded up */
	uint32_t block_size;	/* 0: 4096 */
	uint32_t policy;	/* enum kdsm_policy; 0: KDSM_POLICY_PARTITIONED */
	uint32_t mode;		/* permission bits; 0: 0600 */
	uint32_t flags;		/* KDSM_REGION_EXCL, KDSM_REGION_KEEP */
};

/*
 * Open a region by name and map it. With attr it is created if need be (all
 * programs of a job may call this at once: one creates, the others open), and
 * must fit attr if it exists. With attr NULL it must exist; who may only read it
 * gets it read-only then, so that puts and atomics give -EACCES.
 *
 * A region that this struct kdsm has open already gives the same pointer again;
 * it is closed with the last of as many calls of kdsm_region_close().
 *
 * A region of policy KDSM_POLICY_RELEASE is coherent: one memory that every node
 * maps whole, see <kdsm/coherent.h>. It has no parts, and operations on places,
 * waiting and the barrier below give -EOPNOTSUPP for it.
 *
 * Errors: those of KDSM_IOC_REGION_OPEN in <linux/kdsm.h>. -EADDRINUSE: this
 * program has something else at the address of the region.
 */
int kdsm_region_open(struct kdsm *kdsm, const char *name,
		     const struct kdsm_region_attr *attr,
		     struct kdsm_region **region);

/* Unmap and close. No ticket may be outstanding. NULL is ignored. */
void kdsm_region_close(struct kdsm_region *region);

/* Remove a name. Errors: those of KDSM_IOC_REGION_DESTROY. */
int kdsm_region_destroy(struct kdsm *kdsm, const char *name);

/* Bytes over all nodes, and of one block. */
uint64_t kdsm_region_size(const struct kdsm_region *region);
uint32_t kdsm_region_block_size(const struct kdsm_region *region);
/*
 * Where it is mapped, the same in every program on every node (the local backend:
 * in this program). Coherent: the whole region as memory. Partitioned: the part
 * of node 0, of use only for telling addresses.
 */
void *kdsm_region_address(const struct kdsm_region *region);

/* Partitioned: bytes of each part. Coherent: 0. */
uint64_t kdsm_region_part_size(const struct kdsm_region *region);
/* This node's part as plain memory, part_size bytes. Coherent: NULL. */
void *kdsm_region_part(const struct kdsm_region *region);
struct kdsm *kdsm_region_cluster(const struct kdsm_region *region);

/* ---- operations on places (pgas) ---- */

/*
 * On the own node these are loads, stores and CPU atomics without a system call
 * (in domain HCA atomics go through the device there too). Otherwise each is one
 * remote operation. Gets and puts are not atomic, and what a get returns may be
 * torn where somebody writes at the same time.
 *
 * Errors: the statuses of struct kdsm_op in <linux/kdsm.h>.
 */
int kdsm_get(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     void *to, size_t length);
int kdsm_put(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     const void *from, size_t length);
/* If the word is expected, make it desired; *former (may be NULL): what it was. */
int kdsm_cas(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t expected, uint64_t desired, uint64_t *former);
/* Add to the word; *former (may be NULL): what it was. */
int kdsm_faa(struct kdsm_region *region, unsigned int node, uint64_t offset,
	     uint64_t add, uint64_t *former);

/*
 * Several operations at once, so that their round trips overlap. Fill struct
 * kdsm_op with the kdsm_op_*() below. Those on the own node are done by the CPU,
 * before the remote ones are waited for. Returns 0 or the first failed status;
 * each op has its own in ops[i].status. Any count.
 */
int kdsm_vector(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count);

/*
 * The same in two steps: submit starts them, complete waits. Between the two,
 * ops and the memory of gets belong to the library. A ticket must be completed
 * exactly once (-ETIMEDOUT does not complete it; -ENOENT: it has been). count: at
 * most KDSM_MAX_OPS. When submit fails, nothing has been done. -EAGAIN: too much
 * in flight, complete something first.
 */
struct kdsm_ticket {
	struct kdsm_op *ops;
	struct kdsm_op *remote;	/* copies of those for other nodes, or NULL */
	uint64_t kernel;	/* 0: nothing remote in it */
	unsigned int count;
	int status;		/* with ops NULL: what completing it gives */
};

int kdsm_submit(struct kdsm_region *region, struct kdsm_op *ops,
		unsigned int count, struct kdsm_ticket *ticket);
int kdsm_complete(struct kdsm_region *region, struct kdsm_ticket *ticket,
		  uint64_t timeout);

struct kdsm_op kdsm_op_get(unsigned int node, uint64_t offset, void *to, size_t length);
struct kdsm_op kdsm_op_put(unsigned int node, uint64_t offset, const void *from,
			   size_t length);
struct kdsm_op kdsm_op_cas(unsigned int node, uint64_t offset, uint64_t expected,
			   uint64_t desired);
struct kdsm_op kdsm_op_faa(unsigned int node, uint64_t offset, uint64_t add);
/* See <linux/kdsm_table.h>; find stays the operation's until it is done. */
struct kdsm_op kdsm_op_find(unsigned int node, uint64_t offset, struct kdsm_find *find);
/* See <linux/kdsm_task.h>; theft, with room for theft->most tasks, likewise. */
struct kdsm_op kdsm_op_steal(unsigned int node, uint64_t offset, struct kdsm_theft *theft);

/* ---- waiting for a word of the own part (sync) ---- */

/* A put of one 8-byte word after which those who wait for it there wake. */
int kdsm_put_notify(struct kdsm_region *region, unsigned int node,
		    uint64_t offset, uint64_t value);

/*
 * Sleep while the word at offset of the own part is value. Returns 0 when it
 * was seen to differ. Spins briefly first. -ETIMEDOUT, -EINTR (a signal).
 */
int kdsm_wait(struct kdsm_region *region, uint64_t offset, uint64_t value,
	      uint64_t timeout);

/*
 * A barrier over all nodes, one thread a node: everything that was done before
 * it anywhere is seen by everyone after it. It uses KDSM_BARRIER_SIZE bytes at
 * offset of every part, 8-byte aligned and zero at first; every node must use
 * the same offset. One fetch-and-add a node, and one notifying put a node.
 */
#define KDSM_BARRIER_SIZE 64

struct kdsm_barrier {
	struct kdsm_region *region;
	uint64_t offset;
	uint64_t generation;
};

void kdsm_barrier_init(struct kdsm_barrier *barrier, struct kdsm_region *region,
		       uint64_t offset);
/*
 * -ETIMEDOUT: somebody did not come; the barrier is broken then. -EINVAL: the
 * words there do not belong to this barrier (were not zero at first, or are used
 * by something else). A node that cannot be told gives its status, after the
 * others have been told.
 */
int kdsm_barrier_wait(struct kdsm_barrier *barrier, uint64_t timeout);

/* ---- counts ---- */

/* What this struct kdsm asked of other nodes since it was opened. */
struct kdsm_counts {
	uint64_t get, put, cas, faa;	/* operations, each to another node */
	uint64_t am;		/* of those, done by active message */
	uint64_t bytes;		/* of gets and puts, and 8 an atomic */
	uint64_t calls;		/* system calls made for them */
	uint64_t find, steal;	/* operations, of those by active message */
};

void kdsm_counts(const struct kdsm *kdsm, struct kdsm_counts *counts);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_H */
