/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rings: many operations on a partitioned region in flight, without a system call for each.
 *
 * A ring has a queue of operations, a queue of completions and a buffer, in memory that the
 * program shares with the module. The program prepares operations, submits any number of them by
 * one call, does something else, and later reads the completions:
 *
 *	kdsm_ring_open(region, 64, 4096, &ring);
 *	word = kdsm_ring_buffer(ring);
 *	kdsm_ring_prep_get(ring, node, offset, word, 8, 1);
 *	kdsm_ring_prep_faa(ring, node, 8, 1, 2);
 *	kdsm_ring_wait(ring, 2, KDSM_FOREVER);
 *	count = kdsm_ring_reap(ring, completions, 2);
 *
 * or lets kdsm_ring_run() call a function for each completion. The calls are a thin shell over
 * KDSM_IOC_RING_SETUP and KDSM_IOC_RING_ENTER in <kdsm/uapi.h>, which has the rules of order and
 * the statuses. The conventions are those of <kdsm/kdsm.h>, but one thread at a time uses a ring;
 * a program of several threads opens a ring for each. After fork() either the parent or the child
 * uses the ring.
 */
#ifndef KDSM_RING_H
#define KDSM_RING_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kdsm_ring;

/*
 * Open a ring. At most entries operations, 1 to KDSM_RING_MAX_ENTRIES, are between their
 * submission and the reading of their completion; the library rounds entries up to a power of two.
 * buffer_size is the size of the buffer for the data of gets and puts, at most
 * KDSM_RING_MAX_BUFFER; it may be 0 for a ring of atomics. The memory of the ring counts against
 * RLIMIT_MEMLOCK. The caller closes *ring by kdsm_ring_close() before the region; on failure *ring
 * is NULL.
 *
 * -EINVAL	entries or buffer_size is out of its range
 * -EOPNOTSUPP	the region is coherent
 * -EDQUOT	RLIMIT_MEMLOCK would be exceeded
 * -ENOTTY	the module is too old to know rings
 * -ENOMEM, -EMFILE, -ENFILE
 */
int kdsm_ring_open(struct kdsm_region *region, unsigned int entries, size_t buffer_size,
		   struct kdsm_ring **ring);

/*
 * Close a ring. Waits for the operations in flight, for bounded time; their completions are lost.
 * Operations that were prepared and not submitted are not performed. NULL is ignored.
 */
void kdsm_ring_close(struct kdsm_ring *ring);

/* The buffer: memory of kdsm_ring_buffer_size() bytes, initially zero, aligned to a page. */
void *kdsm_ring_buffer(const struct kdsm_ring *ring);
size_t kdsm_ring_buffer_size(const struct kdsm_ring *ring);

/*
 * A file descriptor for poll(): it is readable while completions are ready. It belongs to the
 * ring; the caller only polls it.
 */
int kdsm_ring_fd(const struct kdsm_ring *ring);

/*
 * Prepare an operation; the next call that submits passes it to the module. Arguments are those of
 * kdsm_get(), kdsm_put(), kdsm_cas() and kdsm_faa(), with these differences: to and from point
 * into the buffer, length is at most KDSM_MAX_OP_LENGTH, and the completion has the result. The
 * bytes of the buffer belong to the operation until its completion has been read. data is copied
 * into the completion.
 *
 * An operation with an invalid argument is submitted like others, and its completion has the
 * error.
 *
 * -EAGAIN	the queue of submissions is full: submit first
 */
int kdsm_ring_prep_get(struct kdsm_ring *ring, unsigned int node, uint64_t offset, void *to,
		       size_t length, uint64_t data);
int kdsm_ring_prep_put(struct kdsm_ring *ring, unsigned int node, uint64_t offset,
		       const void *from, size_t length, uint64_t data);
int kdsm_ring_prep_cas(struct kdsm_ring *ring, unsigned int node, uint64_t offset,
		       uint64_t expected, uint64_t desired, uint64_t data);
int kdsm_ring_prep_faa(struct kdsm_ring *ring, unsigned int node, uint64_t offset, uint64_t add,
		       uint64_t data);

/*
 * Submit the prepared operations. Returns how many: fewer than were prepared if completions must
 * be read first, or too many bytes are in flight (KDSM_MAX_INFLIGHT_BYTES). The others stay
 * prepared.
 */
int kdsm_ring_submit(struct kdsm_ring *ring);

/*
 * Submit the prepared operations, as far as possible, and wait until count completions are ready or
 * nothing is in flight, at most timeout ns. Takes no system call if nothing is prepared and the
 * completions are ready. A signal does not end the wait. Returns the number of completions that
 * are ready, or
 * -ETIMEDOUT	fewer than count were ready in time
 */
int kdsm_ring_wait(struct kdsm_ring *ring, unsigned int count, uint64_t timeout);

/*
 * Read up to most completions that are ready, without a system call. Returns their number.
 * completions[i].status is 0 or a negative errno: those of struct kdsm_op in <kdsm/uapi.h>.
 * completions[i].result is the former value of a compare-and-swap or fetch-and-add.
 */
unsigned int kdsm_ring_reap(struct kdsm_ring *ring, struct kdsm_ring_completion *completions,
			    unsigned int most);

/*
 * A call for when an operation is done, usually a member of the caller's struct. data of the
 * operation is its address: (uintptr_t)&call.
 */
struct kdsm_ring_call {
	void (*done)(struct kdsm_ring_call *call, int status, uint64_t result);
};

/*
 * kdsm_ring_wait(), and then done() of each completion that is ready; data of every operation is
 * the address of a struct kdsm_ring_call. done() may prepare and submit operations and free
 * the call, but may not call kdsm_ring_run() or kdsm_ring_close(). Returns the number of calls, or
 * -ETIMEDOUT	fewer than count were ready in time; none was called
 */
int kdsm_ring_run(struct kdsm_ring *ring, unsigned int count, uint64_t timeout);

#ifdef __cplusplus
}
#endif

#endif /* KDSM_RING_H */
