// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Large objects of the heap: runs of whole chunks. An allocator claims the chunks of a run,
 * and gives them back if another allocator was faster on one of them. A node that frees a
 * run releases the region first (heap_free.c), and a node that claims a chunk acquires that
 * release.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"

/* Descriptor of chunk i of a run of length chunks */
static uint64_t desc_of(const struct kdsm_heap *heap, uint64_t i, uint64_t length)
{
	if (i)
		return kd_heap_desc(KD_HEAP_TAIL, 0, heap->node, 0);
	return kd_heap_desc(KD_HEAP_LARGE, 0, heap->node, length);
}

/* Make the compare-and-swap that changes a chunk's descriptor. */
static struct kdsm_op change(const struct kdsm_heap *heap, uint64_t chunk, uint64_t from,
			     uint64_t to)
{
	return kdsm_op_cas(kd_heap_home(heap, chunk), kd_heap_chunk_place(heap, chunk),
			   from, to);
}

/*
 * Read the descriptors of all chunks. Chunks of nodes that do not answer count as not free.
 */
static int look(struct kdsm_heap *heap, uint64_t *descs)
{
	uint64_t first, count, i;
	unsigned int node;
	int ret, error = 0;

	for (node = 0; node < heap->nodes; node++) {
		count = kd_heap_share(heap, node, &first);
		if (!count)
			continue;
		ret = kd_heap_glance(heap, node, kd_heap_chunk_place(heap, first),
				     descs + first, count);
		for (i = 0; i < count && ret; i++)
			descs[first + i] = KD_HEAP_CHANGING;
		error = error ? error : ret;
	}
	return error;
}

/*
 * Find the first run of free chunks that lies between start and end. Returns end if there
 * is none.
 */
static uint64_t find(const uint64_t *descs, uint64_t start, uint64_t end, uint64_t length)
{
	uint64_t i, free = 0;

	for (i = start; i < end; i++) {
		free = descs[i] ? 0 : free + 1;
		if (free == length)
			return i + 1 - length;
	}
	return end;
}

/*
 * Claim the chunks of a run, or none of them. Returns -EAGAIN if other allocators had some of
 * the chunks. After a failure descs holds what the compare-and-swaps found.
 */
static int claim(struct kdsm_heap *heap, uint64_t *descs, uint64_t first, uint64_t length,
		 struct kdsm_op *ops)
{
	uint64_t i, n = 0;
	int ret;

	for (i = 0; i < length; i++)
		ops[i] = change(heap, first + i, KD_HEAP_FREE, desc_of(heap, i, length));
	ret = kdsm_vector(heap->sync, ops, length);
	for (i = 0; i < length; i++) {
		if (ops[i].status)
			descs[first + i] = KD_HEAP_CHANGING;
		else if (ops[i].result)
			descs[first + i] = ops[i].result;
		else
			n++;
	}
	if (n == length)
		return 0;
	for (i = 0, n = 0; i < length; i++)
		if (!descs[first + i])
			ops[n++] = change(heap, first + i, desc_of(heap, i, length), KD_HEAP_FREE);
	kdsm_vector(heap->sync, ops, n);
	return ret ? ret : -EAGAIN;
}

/* Make the claimed chunks free again; the caller has not used them. */
static void give_back(struct kdsm_heap *heap, uint64_t first, uint64_t length,
		      struct kdsm_op *ops)
{
	uint64_t i;

	for (i = 0; i < length; i++)
		ops[i] = change(heap, first + i, desc_of(heap, i, length), KD_HEAP_FREE);
	kdsm_vector(heap->sync, ops, length);
}

/* Acquire what the nodes released that freed these chunks. */
static int catch_up(struct kdsm_heap *heap, uint64_t first, uint64_t length)
{
	unsigned int home = kd_heap_home(heap, first);
	unsigned int last = kd_heap_home(heap, first + length - 1);
	int ret = 0;

	for (; home <= last && !ret; home++)
		ret = kd_heap_catch_up(heap, home);
	return ret;
}

/* Search from this node's share to the end, then from the beginning. */
static int alloc(struct kdsm_heap *heap, uint64_t *descs, struct kdsm_op *ops,
		 uint64_t length, uint64_t *offset)
{
	uint64_t chunks = heap->layout.chunks, start, first;
	int ret, error = look(heap, descs);

	kd_heap_share(heap, heap->node, &start);
	for (;;) {
		first = find(descs, start, chunks, length);
		if (first == chunks)
			first = find(descs, 0, chunks, length);
		if (first == chunks)
			return error ? error : -ENOMEM;
		ret = claim(heap, descs, first, length, ops);
		if (!ret)
			break;
		if (ret != -EAGAIN && !error)
			error = ret;
	}
	ret = catch_up(heap, first, length);
	if (ret)
		give_back(heap, first, length, ops);
	*offset = first * heap->layout.chunk;
	return ret;
}

int kd_run_alloc(struct kdsm_heap *heap, uint64_t size, uint64_t *offset)
{
	uint64_t length = (size - 1) / heap->layout.chunk + 1;
	struct kdsm_op *ops;
	uint64_t *descs;
	int ret = -ENOMEM;

	if (length > heap->layout.chunks)
		return -ENOMEM;
	descs = malloc(heap->layout.chunks * sizeof(*descs));
	ops = malloc(length * sizeof(*ops));
	if (descs && ops)
		ret = alloc(heap, descs, ops, length, offset);
	free(descs);
	free(ops);
	return ret;
}

int kd_run_leave(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk)
{
	uint64_t length = kd_heap_length(desc), former;
	int ret;

	if (!length || length > heap->layout.chunks - chunk)
		return -EINVAL;
	ret = kdsm_cas(heap->sync, kd_heap_home(heap, chunk), kd_heap_chunk_place(heap, chunk),
		       desc, KD_HEAP_CHANGING, &former);
	if (ret)
		return ret;
	return former == desc ? 0 : -EINVAL;
}

int kd_run_finish(struct kdsm_heap *heap, uint64_t desc, uint64_t chunk)
{
	uint64_t tail = kd_heap_desc(KD_HEAP_TAIL, 0, kd_heap_node(desc), 0);
	uint64_t length = kd_heap_length(desc), i, j;
	struct kdsm_op ops[64];
	int ret, error = 0;

	for (i = 0; i < length; i += j) {
		for (j = 0; j < 64 && i + j < length; j++)
			ops[j] = change(heap, chunk + i + j, i + j ? tail : KD_HEAP_CHANGING,
					KD_HEAP_FREE);
		ret = kdsm_vector(heap->sync, ops, j);
		error = error ? error : ret;
	}
	return error;
}
