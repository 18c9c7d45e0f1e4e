// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The operation cache: set-up, and access to the home part of a key on another node. Access
 * to the own part is inline in bdd.h.
 */
#include <errno.h>
#include <string.h>

#include <kdsm/kdsm.h>

#include "bdd/bdd.h"

int kd_opcache_init(struct kd_opcache *cache, struct kdsm_region *region,
		    uint64_t offset, uint64_t part_bytes)
{
	struct kdsm *kdsm = kdsm_region_cluster(region);
	uint64_t size = kdsm_region_part_size(region);

	if (offset % sizeof(struct kd_result) || part_bytes < sizeof(struct kd_result))
		return -EINVAL;
	if (offset > size || part_bytes > size - offset)
		return -ERANGE;
	cache->region = region;
	cache->offset = offset;
	cache->self = kdsm_node(kdsm);
	cache->parts = kdsm_nodes(kdsm);
	cache->most = part_bytes / sizeof(struct kd_result);
	cache->count = cache->most;
	cache->entries = (void *)((char *)kdsm_region_part(region) + offset);
	return 0;
}

void kd_opcache_limit(struct kd_opcache *cache, uint64_t part_bytes)
{
	uint64_t count = part_bytes / sizeof(struct kd_result);

	cache->count = count < cache->most ? count : cache->most;
}

/*
 * The place of an entry grows in proportion to the number of entries. So no entry moves down,
 * and the entries move from the last one on.
 */
void kd_opcache_grow(struct kd_opcache *cache, bool keep)
{
	uint64_t i = cache->count, place;
	struct kd_result e;

	cache->count = 2 * i < cache->most ? 2 * i : cache->most;
	if (!keep)
		return;
	memset(cache->entries + i, 0, (cache->count - i) * sizeof(e));
	while (i--) {
		e = cache->entries[i];
		if (!e.check)
			continue;
		cache->entries[i].check = 0;
		place = kd_reduce(kd_key_hash(e.key0, e.key1), cache->count);
		cache->entries[place] = e;
	}
}

/*
 * The home part depends on the low bits of the hash, and the place in the part on the high
 * bits.
 */
unsigned int kd_opcache_home(const struct kd_opcache *cache, const struct kd_key *key)
{
	return ((key->hash & 0xffff) * cache->parts) >> 16;
}

static uint64_t place(const struct kd_opcache *cache, const struct kd_key *key)
{
	return cache->offset +
	       kd_reduce(key->hash, cache->count) * sizeof(struct kd_result);
}

int kd_opcache_get_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t *value)
{
	struct kd_result e;
	int r;

	r = kdsm_get(cache->region, kd_opcache_home(cache, key),
		     place(cache, key), &e, sizeof(e));
	if (r < 0)
		return r;
	return kd_result_fits(&e, key, value);
}

int kd_opcache_put_home(struct kd_opcache *cache, const struct kd_key *key,
			uint64_t value)
{
	struct kd_result e = { key->key0, key->key1, value,
			       kd_result_check(key, value) };

	return kdsm_put(cache->region, kd_opcache_home(cache, key),
			place(cache, key), &e, sizeof(e));
}
