// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Accesses to the heap's words, and the order in which memory passes from the node that
 * frees it to the node that allocates it.
 *
 * A signature without notices whose floor is the newest timestamp of another signature
 * covers everything that the other signature covers. So one word for each home, raised to
 * the greatest such floor, hands over any number of releases. The price: an acquire of this
 * floor also invalidates copies that a longer signature would spare.
 */
#include <errno.h>
#include "internal.h"

int kd_heap_read(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		 uint64_t *value)
{
	/* A get of an own word loads it whole. A get from another node may be torn. */
	if (node == heap->node)
		return kdsm_get(heap->sync, node, place, value, sizeof(*value));
	return kdsm_faa(heap->sync, node, place, 0, value);
}

int kd_heap_glance(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		   uint64_t *words, size_t count)
{
	size_t i;
	int ret = 0;

	if (node != heap->node)
		return kdsm_get(heap->sync, node, place, words, count * sizeof(*words));
	for (i = 0; i < count && !ret; i++)
		ret = kdsm_get(heap->sync, node, place + 8 * i, &words[i], sizeof(*words));
	return ret;
}

/* Set the bits of set and clear those of clear. *changed receives the bits that changed. */
static int update(struct kdsm_heap *heap, unsigned int node, uint64_t place, uint64_t from,
		  uint64_t set, uint64_t clear, uint64_t *changed)
{
	uint64_t former;
	int ret;

	for (;; from = former) {
		ret = kdsm_cas(heap->sync, node, place, from, (from | set) & ~clear, &former);
		if (ret)
			return ret;
		if (former == from)
			break;
	}
	if (changed)
		*changed = former ^ ((former | set) & ~clear);
	return 0;
}

int kd_heap_set(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		uint64_t from, uint64_t bits, uint64_t *changed)
{
	return update(heap, node, place, from, bits, 0, changed);
}

int kd_heap_clear(struct kdsm_heap *heap, unsigned int node, uint64_t place,
		  uint64_t from, uint64_t bits, uint64_t *changed)
{
	return update(heap, node, place, from, 0, bits, changed);
}

int kd_heap_release(struct kdsm_heap *heap, uint64_t *floor)
{
	struct kdsm_signature signature;
	unsigned int i;
	int ret;

	*floor = 0;
	/* A single node has only one copy of the region. */
	if (heap->nodes == 1)
		return 0;
	ret = kdsm_release(heap->region, &signature);
	if (ret)
		return ret;
	*floor = signature.floor;
	for (i = 0; i < signature.count; i++)
		if (signature.notices[i].ts > *floor)
			*floor = signature.notices[i].ts;
	return 0;
}

int kd_heap_raise(struct kdsm_heap *heap, unsigned int home, uint64_t floor)
{
	uint64_t place = heap->offset + KD_HEAP_FLOOR, from = 0, former;
	int ret;

	for (; from < floor; from = former) {
		ret = kdsm_cas(heap->sync, home, place, from, floor, &former);
		if (ret)
			return ret;
		if (former == from)
			break;
	}
	return 0;
}

int kd_heap_catch_up(struct kdsm_heap *heap, unsigned int home)
{
	struct kdsm_signature signature;
	uint64_t floor, seen;
	int ret;

	ret = kd_heap_read(heap, home, heap->offset + KD_HEAP_FLOOR, &floor);
	if (ret)
		return ret;
	seen = __atomic_load_n(&heap->seen, __ATOMIC_ACQUIRE);
	if (floor <= seen)
		return 0;
	kdsm_signature_init(&signature);
	signature.floor = floor;
	ret = kdsm_acquire(heap->region, &signature);
	if (ret)
		return ret;
	while (seen < floor &&
	       !__atomic_compare_exchange_n(&heap->seen, &seen, floor, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	return 0;
}
