/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The node cache: nodes of other parts that this process has seen, and where it
 * has seen them. Lossy, shared by all threads, without locks.
 *
 * Two arrays. Nodes, by number: three words, of which one is a checksum over
 * the number and the other two, so that what two threads left half and half
 * does not pass for a node (Hyatt's lockless hashing). Hints, by content: one
 * word, the number and 24 bits of the hash; whoever follows a hint compares the
 * node that it leads to. Nodes do not change, so nothing is invalidated but all of it,
 * when a collection has removed nodes.
 */
#ifndef KD_NODECACHE_H
#define KD_NODECACHE_H

#include <stdbool.h>

#include "hash.h"

struct kd_nodecache {
	struct kd_cached_node {
		uint64_t check, a, b;
	} *nodes;
	uint64_t *hints;
	uint64_t mask;		/* entries - 1, of both */
};

int kd_nodecache_init(struct kd_nodecache *cache, uint64_t entries);
void kd_nodecache_clear(struct kd_nodecache *cache);	/* nobody may use it meanwhile */
void kd_nodecache_destroy(struct kd_nodecache *cache);

static inline uint64_t kd_cached_check(uint64_t number, uint64_t a, uint64_t b)
{
	/* + 1: an entry that was never used does not pass for number 0. */
	return kd_mix(a ^ UINT64_C(0x8ebc6af09c88c6e3),
		      b ^ UINT64_C(0x589965cc75374cc3)) + number + 1;
}

static inline bool kd_nodecache_get(const struct kd_nodecache *cache,
				    uint64_t number, struct kdsm_node *node)
{
	const struct kd_cached_node *e = &cache->nodes[number & cache->mask];
	uint64_t check = __atomic_load_n(&e->check, __ATOMIC_RELAXED);

	node->a = __atomic_load_n(&e->a, __ATOMIC_RELAXED);
	node->b = __atomic_load_n(&e->b, __ATOMIC_RELAXED);
	return (node->a | node->b) &&
	       check == kd_cached_check(number, node->a, node->b);
}

static inline void kd_nodecache_put(struct kd_nodecache *cache, uint64_t number,
				    const struct kdsm_node *node)
{
	struct kd_cached_node *e = &cache->nodes[number & cache->mask];

	__atomic_store_n(&e->check, kd_cached_check(number, node->a, node->b),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&e->a, node->a, __ATOMIC_RELAXED);
	__atomic_store_n(&e->b, node->b, __ATOMIC_RELAXED);
}

#define KD_HINT_SHIFT	KDSM_NUMBER_BITS

/* The number under which a node of that hash was seen; 0: none known. */
static inline uint64_t kd_hint_get(const struct kd_nodecache *cache, uint64_t hash)
{
	uint64_t hint = __atomic_load_n(&cache->hints[(hash >> 24) & cache->mask],
					__ATOMIC_RELAXED);

	return hint >> KD_HINT_SHIFT == (hash & 0xffffff) ?
	       hint & KDSM_NUMBER_MASK : 0;
}

static inline void kd_hint_put(struct kd_nodecache *cache, uint64_t hash,
			       uint64_t number)
{
	__atomic_store_n(&cache->hints[(hash >> 24) & cache->mask],
			 (hash & 0xffffff) << KD_HINT_SHIFT | number,
			 __ATOMIC_RELAXED);
}

#endif /* KD_NODECACHE_H */
