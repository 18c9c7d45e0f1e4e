/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operation cache keeps results of BDD operations. It is lossy, and lies behind the
 * table in the same partitioned region (Oortwijn, van Dijk, van de Pol, SPIN 2017, 5.1).
 *
 * An entry is four words: two words of key, the result, and a checksum over all three.
 * Threads of this node and puts of other nodes store into an entry concurrently, without a
 * lock. If a reader sees a mix of two stores, the checksum is wrong, and the entry counts as
 * absent. So no worker ever waits for an entry, and a get or a put takes one remote
 * operation.
 *
 * A worker looks into the own part first and stores every result there, without remote
 * operations. A result that is expensive to compute is also stored in, and looked for in,
 * the home part of its key. All nodes compute the same home for a key (kd_opcache_home() in
 * opcache.c). On a single node the home part is the own part.
 */
#ifndef KD_OPCACHE_H
#define KD_OPCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "table/table.h"

struct kd_result {
	uint64_t key0, key1, value, check;
};

struct kd_opcache {
	struct kd_result *entries;	/* in the own part */
	uint64_t count;			/* entries in use in each part, the same on all nodes */
	uint64_t most;			/* capacity of a part, in entries */
	unsigned int self, parts;
	struct kdsm_region *region;
	uint64_t offset;		/* of the cache in every part, in bytes */
};

/* An operation and its operands, and their hash */
struct kd_key {
	uint64_t key0, key1, hash;
};

/*
 * Set up a cache at offset of every part; part_bytes is its size in a part. Returns 0,
 * -EINVAL or -ERANGE.
 */
int kd_opcache_init(struct kd_opcache *cache, struct kdsm_region *region,
		    uint64_t offset, uint64_t part_bytes);
/* Use only part_bytes of each part, until a collection enlarges the cache. */
void kd_opcache_limit(struct kd_opcache *cache, uint64_t part_bytes);
/* The number of entries after the cache has grown: twice as many, as far as a part has so many */
uint64_t kd_opcache_more(const struct kd_opcache *cache);
/*
 * Move the results of entries [from, to) of the own part to their places among "more" entries, at
 * least cache->count. The results become the entries [kd_opcache_target(from),
 * kd_opcache_target(to)), and the others of these entries become empty. The caller has moved all
 * entries of this range already, except those in [from, to).
 */
void kd_opcache_move(struct kd_opcache *cache, uint64_t from, uint64_t to, uint64_t more);
/* The first entry for the results of entries from i on */
uint64_t kd_opcache_target(const struct kd_opcache *cache, uint64_t i, uint64_t more);
/* The home part of a key */
unsigned int kd_opcache_home(const struct kd_opcache *cache, const struct kd_key *key);
/*
 * Get a result from the home part: 1 and *value, 0 if it is absent, or a negative errno. Put a
 * result there: 0 or a negative errno.
 */
int kd_opcache_get_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t *value);
int kd_opcache_put_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t value);

#define KD_OPERATIONS	16	/* operations that a key can tell apart */

/* Pack an edge into 41 bits: the number, and the complement bit above it. */
static inline uint64_t kd_pack(uint64_t edge)
{
	return (edge & KDSM_NUMBER_MASK) | edge >> 63 << 40;
}

static inline uint64_t kd_key_hash(uint64_t key0, uint64_t key1)
{
	return kd_mix(key0 ^ UINT64_C(0xe7037ed1a0b428db), key1 ^ UINT64_C(0x8ebc6af09c88c6e3));
}

/*
 * The key of an operation op, which is below KD_OPERATIONS. Three edges and op fill 127 of the 128
 * bits, so different operands never give equal keys.
 */
static inline struct kd_key kd_key(unsigned int op, uint64_t a, uint64_t b,
				   uint64_t c)
{
	uint64_t third = kd_pack(c);
	struct kd_key key;

	key.key0 = kd_pack(a) | (uint64_t)op << 41 | third << 45;
	key.key1 = kd_pack(b) | third >> 19 << 41;
	key.hash = kd_key_hash(key.key0, key.key1);
	return key;
}

static inline uint64_t kd_result_check(const struct kd_key *key, uint64_t value)
{
	return kd_mix(key->hash ^ UINT64_C(0x2d358dccaa6c78a5),
		      value ^ UINT64_C(0x1d8e4e27c47d124f)) | 1;
}

/* Whether the entry holds one store, not a mix of two */
static inline bool kd_result_whole(const struct kd_result *e)
{
	struct kd_key key = { e->key0, e->key1, kd_key_hash(e->key0, e->key1) };

	return e->check == kd_result_check(&key, e->value);
}

/* The reverse of kd_key() */
struct kd_operation {
	unsigned int op;
	uint64_t operand[3];
};

static inline uint64_t kd_unpack(uint64_t packed)
{
	return (packed & KDSM_NUMBER_MASK) | (packed >> 40 & 1) << 63;
}

static inline struct kd_operation kd_result_operation(const struct kd_result *e)
{
	return (struct kd_operation){ e->key0 >> 41 & (KD_OPERATIONS - 1), {
		kd_unpack(e->key0), kd_unpack(e->key1),
		kd_unpack(e->key0 >> 45 | e->key1 >> 41 << 19),
	} };
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
	 * Pairs with the releases in kd_opcache_put(): the nodes that an edge in the result
	 * leads to were stored before the result.
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

/* ---- opcache_ghost.c ---- */

#define KD_GHOST_SAMPLE	64	/* keys of which one is a sample */

/* Counts that tell whether a larger operation cache would pay */
struct kd_ghost;

/* For a cache with so many entries. The caller frees the result by free(). NULL: no memory */
struct kd_ghost *kd_ghost_new(uint64_t entries);

/* Whether the caller reports a miss of this key: the key is a sample, and the cache is watched */
static inline bool kd_ghost_asks(const struct kd_ghost *ghost, uint64_t hash)
{
	return hash % KD_GHOST_SAMPLE == 0 && ghost;
}

/* The cache does not have the result of a sample. Any thread calls this function. */
void kd_ghost_miss(struct kd_ghost *ghost, uint64_t hash);
/* Whether a larger cache would have avoided many misses since the last call of this function */
bool kd_ghost_tell(struct kd_ghost *ghost);

#endif /* KD_OPCACHE_H */
