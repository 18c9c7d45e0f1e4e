/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operation cache: results of BDD operations, lossy, in a partitioned
 * region beside the table (Oortwijn, van Dijk, van de Pol, SPIN 2017, 5.1).
 *
 * An entry is four words: two of key, the result, and a checksum over all three.
 * Threads of this node, and operations of others, store into an entry at the
 * same time without any lock; what is left of two of them, and what a get saw
 * torn, fails the checksum and counts as absent. So no entry is ever waited for,
 * and one operation each way is enough.
 *
 * The own part is looked up first, and it is where every result goes that this
 * node computed: free of operations. A result that is dear is also stored in,
 * and looked for at, the home of its key, a part that is the same for all nodes
 * (kd_opcache_get_home(), opcache.c). On one node the two are the same.
 */
#ifndef KD_OPCACHE_H
#define KD_OPCACHE_H

#include <stdbool.h>

#include "table/table.h"

struct kd_result {
	uint64_t key0, key1, value, check;
};

struct kd_opcache {
	struct kd_result *entries;	/* of the own part */
	uint64_t count;			/* entries in use in a part, the same everywhere */
	uint64_t most;			/* entries that a part has room for */
	unsigned int self, parts;
	struct kdsm_region *region;
	uint64_t offset;
};

struct kd_key {
	uint64_t key0, key1, hash;
};

int kd_opcache_init(struct kd_opcache *cache, struct kdsm_region *region,
		    uint64_t offset, uint64_t part_bytes);
void kd_opcache_limit(struct kd_opcache *cache, uint64_t part_bytes);	/* to begin with */
unsigned int kd_opcache_home(const struct kd_opcache *cache, const struct kd_key *key);
int kd_opcache_get_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t *value);
int kd_opcache_put_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t value);

/* An edge in 41 bits. */
static inline uint64_t kd_pack(uint64_t edge)
{
	return (edge & KDSM_NUMBER_MASK) | edge >> 63 << 40;
}

/* op is below 16. Three edges and the operation fill 127 bits: no two keys meet. */
static inline struct kd_key kd_key(unsigned int op, uint64_t a, uint64_t b,
				   uint64_t c)
{
	uint64_t third = kd_pack(c);
	struct kd_key key;

	key.key0 = kd_pack(a) | (uint64_t)op << 41 | third << 45;
	key.key1 = kd_pack(b) | third >> 19 << 41;
	key.hash = kd_mix(key.key0 ^ UINT64_C(0xe7037ed1a0b428db),
			  key.key1 ^ UINT64_C(0x8ebc6af09c88c6e3));
	return key;
}

static inline uint64_t kd_result_check(const struct kd_key *key, uint64_t value)
{
	return kd_mix(key->hash ^ UINT64_C(0x2d358dccaa6c78a5),
		      value ^ UINT64_C(0x1d8e4e27c47d124f)) | 1;
}

static inline bool kd_result_fits(const struct kd_result *e, const struct kd_key *key,
				  uint64_t *value)
{
	if (e->key0 != key->key0 || e->key1 != key->key1 ||
	    e->check != kd_result_check(key, e->value))
		return false;
	*value = e->value;
	return true;
}

static inline struct kd_result *kd_opcache_own(const struct kd_opcache *cache,
					       const struct kd_key *key)
{
	return &cache->entries[kd_reduce(key->hash, cache->count)];
}

static inline bool kd_opcache_get(const struct kd_opcache *cache,
				  const struct kd_key *key, uint64_t *value)
{
	const struct kd_result *from = kd_opcache_own(cache, key);
	struct kd_result e;

	/*
	 * Acquire, pairs with the release below: the nodes that an edge in the
	 * result leads to were stored before.
	 */
	e.check = __atomic_load_n(&from->check, __ATOMIC_ACQUIRE);
	e.key0 = __atomic_load_n(&from->key0, __ATOMIC_RELAXED);
	e.key1 = __atomic_load_n(&from->key1, __ATOMIC_RELAXED);
	e.value = __atomic_load_n(&from->value, __ATOMIC_ACQUIRE);
	return kd_result_fits(&e, key, value);
}

static inline void kd_opcache_put(struct kd_opcache *cache, const struct kd_key *key,
				  uint64_t value)
{
	struct kd_result *e = kd_opcache_own(cache, key);

	__atomic_store_n(&e->key0, key->key0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->key1, key->key1, __ATOMIC_RELAXED);
	__atomic_store_n(&e->value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&e->check, kd_result_check(key, value), __ATOMIC_RELEASE);
}

#endif /* KD_OPCACHE_H */
