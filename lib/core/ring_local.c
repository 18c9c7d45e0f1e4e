// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings without a module, for the local backend and for virtual runs. The memory has the layout of
 * the module's. An eventfd stands in for the module's file: it is readable while completions are
 * ready.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/ring.h"

#define PAGE 4096ULL
/* Operations that are performed together */
#define TOGETHER 64

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

int kdsm_local_ring_setup(struct kdsm_ring_setup *arg, void **memory)
{
	uint32_t entries = 1;
	int ret;

	if (!arg->entries || arg->entries > KDSM_RING_MAX_ENTRIES ||
	    arg->buffer_size > KDSM_RING_MAX_BUFFER)
		return -EINVAL;
	while (entries < arg->entries)
		entries *= 2;
	arg->entries = entries;
	arg->submissions = PAGE;
	arg->completions = arg->submissions + entries * sizeof(struct kdsm_ring_entry);
	arg->buffer = pages(arg->completions + entries * sizeof(struct kdsm_ring_completion));
	arg->buffer_size = pages(arg->buffer_size);
	arg->size = arg->buffer + arg->buffer_size;
	arg->file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (arg->file < 0)
		return -errno;
	*memory = mmap(NULL, arg->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (*memory != MAP_FAILED)
		return 0;
	ret = -errno;
	close(arg->file);
	return ret;
}

/* The checks of the module that kd_vector() does not do; from an offset to an address */
static int translate(const struct kdsm_ring *ring, struct kdsm_op *op)
{
	op->result = 0;
	if (op->flags || op->opcode > KDSM_OP_FAA)
		return -EINVAL;
	if (op->opcode > KDSM_OP_PUT)
		return 0;
	if (op->addr > ring->buffer_size || op->length > ring->buffer_size - op->addr)
		return -EFAULT;
	op->addr += (uintptr_t)ring->buffer;
	return 0;
}

static void complete(struct kdsm_ring *ring, uint64_t data, const struct kdsm_op *op)
{
	uint32_t tail = ring->head->completion_tail;

	ring->completions[tail & ring->mask] = (struct kdsm_ring_completion){
		.data = data,
		.result = op->result,
		.status = op->status,
		.opcode = op->opcode,
		.node = op->node,
	};
	__atomic_store_n(&ring->head->completion_tail, tail + 1, __ATOMIC_RELEASE);
}

static uint32_t unread(const struct kdsm_ring *ring)
{
	return ring->head->completion_tail - ring->head->completion_head;
}

/* Take up to most entries and perform them. */
static void perform(struct kdsm_ring *ring, uint32_t most)
{
	struct kdsm_op ops[TOGETHER];
	uint64_t data[TOGETHER];
	uint32_t head = ring->head->submission_head;
	unsigned int i, n = 0;

	for (i = 0; i < most; i++) {
		const struct kdsm_ring_entry *entry = &ring->entries[(head + i) & ring->mask];

		ops[n] = entry->op;
		data[n] = entry->data;
		ops[n].status = translate(ring, &ops[n]);
		if (ops[n].status)
			complete(ring, data[n], &ops[n]);
		else
			n++;
	}
	if (n)
		kd_vector(ring->region, ops, n);
	for (i = 0; i < n; i++)
		complete(ring, data[i], &ops[i]);
	__atomic_store_n(&ring->head->submission_head, head + most, __ATOMIC_RELEASE);
}

int kdsm_local_ring_enter(struct kdsm_ring *ring, struct kdsm_ring_enter *arg)
{
	const uint64_t one = 1;
	uint32_t left, room;

	arg->submitted = 0;
	while (arg->submitted < arg->submit) {
		left = arg->submit - arg->submitted;
		room = ring->mask + 1 - unread(ring);
		left = left < room ? left : room;
		left = left < TOGETHER ? left : TOGETHER;
		if (!left)
			break;
		perform(ring, left);
		arg->submitted += left;
	}
	arg->ready = unread(ring);
	if (arg->submitted && write(ring->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

void kdsm_local_ring_empty(struct kdsm_ring *ring)
{
	uint64_t count;

	if (read(ring->fd, &count, sizeof(count)) < 0)
		return;		/* it was not readable */
}
