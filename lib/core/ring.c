// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings, a thin shell over KDSM_IOC_RING_SETUP and KDSM_IOC_RING_ENTER. The rules of the shared
 * memory are in <kdsm/uapi.h>.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/ring.h"

/* Give the reason why a ring of so many entries cannot be opened. */
static int explain(int error, unsigned int entries, size_t buffer_size)
{
	switch (error) {
	case -EINVAL:
		return kd_because(error,
				  "a ring has 1 to %u entries and at most %llu bytes of buffer, not %u and %zu",
				  KDSM_RING_MAX_ENTRIES, (unsigned long long)KDSM_RING_MAX_BUFFER,
				  entries, buffer_size);
	case -EDQUOT:
		return kd_because(error,
				  "a ring with a buffer of %zu bytes would exceed RLIMIT_MEMLOCK (ulimit -l)",
				  buffer_size);
	default:
		return kd_no_reason(error);
	}
}

int kdsm_ring_open(struct kdsm_region *region, unsigned int entries, size_t buffer_size,
		   struct kdsm_ring **out)
{
	struct kdsm_ring_setup arg = {
		.argsz = sizeof(arg),
		.entries = entries,
		.buffer_size = buffer_size,
	};
	const struct kdsm_backend *backend = region->backend;
	struct kdsm_ring *ring;
	void *memory;
	int ret;

	*out = NULL;
	if (region->coherent)
		return kd_not_partitioned(region);
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return kd_no_reason(-ENOMEM);
	ret = backend->ring_setup ? backend->ring_setup(region, &arg, &memory) :
				    kdsm_local_ring_setup(&arg, &memory);
	if (ret) {
		free(ring);
		return explain(ret, entries, buffer_size);
	}
	ring->region = region;
	ring->fd = arg.file;
	ring->memory = memory;
	ring->size = arg.size;
	ring->head = memory;
	ring->entries = (void *)(ring->memory + arg.submissions);
	ring->completions = (void *)(ring->memory + arg.completions);
	ring->buffer = ring->memory + arg.buffer;
	ring->buffer_size = arg.buffer_size;
	ring->mask = arg.entries - 1;
	*out = ring;
	return 0;
}

void kdsm_ring_close(struct kdsm_ring *ring)
{
	if (!ring)
		return;
	munmap(ring->memory, ring->size);
	close(ring->fd);
	free(ring);
}

void *kdsm_ring_buffer(const struct kdsm_ring *ring)
{
	return ring->buffer;
}

size_t kdsm_ring_buffer_size(const struct kdsm_ring *ring)
{
	return ring->buffer_size;
}

int kdsm_ring_fd(const struct kdsm_ring *ring)
{
	return ring->fd;
}

/* ---- submissions ---- */

/* Operations that are prepared and not submitted */
static uint32_t unsubmitted(const struct kdsm_ring *ring)
{
	/* Before the entries that the module has taken are overwritten */
	return ring->prepared - __atomic_load_n(&ring->head->submission_head, __ATOMIC_ACQUIRE);
}

static int prepare(struct kdsm_ring *ring, struct kdsm_op op, uint64_t data)
{
	struct kdsm_ring_entry *entry = &ring->entries[ring->prepared & ring->mask];

	if (unsubmitted(ring) > ring->mask)
		return kd_no_reason(-EAGAIN);
	/* From an address to an offset; an address outside of the buffer becomes a large one. */
	if (op.addr)
		op.addr -= (uintptr_t)ring->buffer;
	else if (op.opcode == KDSM_OP_GET || op.opcode == KDSM_OP_PUT)
		op.addr = UINT64_MAX;
	entry->op = op;
	entry->data = data;
	ring->prepared++;
	return 0;
}

int kdsm_ring_prep_get(struct kdsm_ring *ring, unsigned int node, uint64_t offset, void *to,
		       size_t length, uint64_t data)
{
	return prepare(ring, kdsm_op_get(node, offset, to, length), data);
}

int kdsm_ring_prep_put(struct kdsm_ring *ring, unsigned int node, uint64_t offset,
		       const void *from, size_t length, uint64_t data)
{
	return prepare(ring, kdsm_op_put(node, offset, from, length), data);
}

int kdsm_ring_prep_cas(struct kdsm_ring *ring, unsigned int node, uint64_t offset,
		       uint64_t expected, uint64_t desired, uint64_t data)
{
	return prepare(ring, kdsm_op_cas(node, offset, expected, desired), data);
}

int kdsm_ring_prep_faa(struct kdsm_ring *ring, unsigned int node, uint64_t offset, uint64_t add,
		       uint64_t data)
{
	return prepare(ring, kdsm_op_faa(node, offset, add), data);
}

/* Count the entries that the module has taken. They are still in the queue. */
static void count_taken(struct kdsm_ring *ring, uint32_t first, uint32_t count)
{
	const struct kdsm_op *op;

	for (; count--; first++) {
		op = &ring->entries[first & ring->mask].op;
		if (op->node != ring->region->node)
			kdsm_count(ring->region->kdsm, op, 1);
	}
}

static int enter(struct kdsm_ring *ring, struct kdsm_ring_enter *arg)
{
	const struct kdsm_backend *backend = ring->region->backend;
	uint32_t first = ring->prepared - unsubmitted(ring);
	int ret;

	arg->argsz = sizeof(*arg);
	arg->submit = ring->prepared - first;
	__atomic_store_n(&ring->head->submission_tail, ring->prepared, __ATOMIC_RELEASE);
	if (!backend->ring_enter)
		return kd_no_reason(kdsm_local_ring_enter(ring, arg));
	kdsm_count_call(ring->region->kdsm);
	ret = backend->ring_enter(ring->fd, arg);
	if (!ret || ret == -ETIMEDOUT || ret == -EINTR)
		count_taken(ring, first, arg->submitted);
	return ret;
}

int kdsm_ring_submit(struct kdsm_ring *ring)
{
	struct kdsm_ring_enter arg = { 0 };
	int ret;

	if (!unsubmitted(ring))
		return 0;
	do {
		ret = enter(ring, &arg);
	} while (ret == -EINTR && !arg.submitted);
	return ret && ret != -EINTR ? ret : (int)arg.submitted;
}

/* ---- completions ---- */

static uint32_t ready(const struct kdsm_ring *ring)
{
	return __atomic_load_n(&ring->head->completion_tail, __ATOMIC_ACQUIRE) -
	       ring->head->completion_head;
}

int kdsm_ring_wait(struct kdsm_ring *ring, unsigned int count, uint64_t timeout)
{
	struct kdsm_ring_enter arg = { .wait = count, .timeout = timeout };
	uint64_t begin = 0;
	int ret;

	if (!unsubmitted(ring) && ready(ring) >= count)
		return ready(ring);
	if (timeout && timeout != KDSM_FOREVER)
		begin = kdsm_now();
	for (;;) {
		ret = enter(ring, &arg);
		if (ret != -EINTR)
			return ret ? ret : (int)ready(ring);
		arg.timeout = kdsm_left(begin, timeout);
	}
}

/* Read the oldest completion, one of those that are ready. */
static struct kdsm_ring_completion take(struct kdsm_ring *ring)
{
	uint32_t head = ring->head->completion_head;
	struct kdsm_ring_completion completion = ring->completions[head & ring->mask];
	const struct kdsm_op op = {
		.opcode = completion.opcode,
		.node = completion.node,
		.status = completion.status,
	};

	__atomic_store_n(&ring->head->completion_head, head + 1, __ATOMIC_RELEASE);
	kd_unsettled(ring->region, &op, 1);
	return completion;
}

/* Completions have been read. */
static void have_read(struct kdsm_ring *ring)
{
	if (!ring->region->backend->ring_enter && !ready(ring))
		kdsm_local_ring_empty(ring);
}

unsigned int kdsm_ring_reap(struct kdsm_ring *ring, struct kdsm_ring_completion *completions,
			    unsigned int most)
{
	unsigned int i, count = ready(ring);

	count = count < most ? count : most;
	for (i = 0; i < count; i++)
		completions[i] = take(ring);
	have_read(ring);
	return count;
}

int kdsm_ring_run(struct kdsm_ring *ring, unsigned int count, uint64_t timeout)
{
	struct kdsm_ring_completion completion;
	struct kdsm_ring_call *call;
	int i, found = kdsm_ring_wait(ring, count, timeout);

	/* A call may submit operations: those that complete meanwhile wait for the next run. */
	for (i = 0; i < found; i++) {
		completion = take(ring);
		call = (struct kdsm_ring_call *)(uintptr_t)completion.data;
		call->done(call, completion.status, completion.result);
	}
	have_read(ring);
	return found;
}
