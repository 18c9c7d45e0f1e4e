// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The operation cache: set-up, and access to the home part of a key on another node. Access
 * to the own part is inline in opcache.h.
 */
#include <errno.h>
#include <string.h>

#include "bdd/opcache.h"
#include "core/core.h"

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
	cache->parts = region->nodes;
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

uint64_t kd_opcache_more(const struct kd_opcache *cache)
{
	return 2 * cache->count < cache->most ? 2 * cache->count : cache->most;
}

/*
 * Rounded up, so that ranges of targets do not overlap, and the targets of the upper half of the
 * entries are behind all of them. If the new number of entries is no multiple of the old one, a
 * result whose place is just below the target of its range is lost.
 */
uint64_t kd_opcache_target(const struct kd_opcache *cache, uint64_t i, uint64_t more)
{
	unsigned __int128 scaled = (unsigned __int128)i * more;

	return (scaled + cache->count - 1) / cache->count;
}

/*
 * The place of an entry grows in proportion to the number of entries. So no entry moves down,
 * and the entries move from the last one on. An entry that is a mix of two stores may belong
 * anywhere, so it is dropped if it does not belong between the entry itself and those that have
 * moved.
 */
void kd_opcache_move(struct kd_opcache *cache, uint64_t from, uint64_t to, uint64_t more)
{
	const uint64_t bottom = kd_opcache_target(cache, from, more);
	uint64_t top = kd_opcache_target(cache, to, more), i, place;
	struct kd_result *entries = cache->entries, e;

	for (i = to; i-- > from;) {
		e = entries[i];
		if (!e.check)
			continue;
		place = kd_reduce(kd_key_hash(e.key0, e.key1), more);
		if (place < i || place < bottom || place >= top)
			continue;
		memset(&entries[place + 1], 0, (top - place - 1) * sizeof(e));
		entries[place] = e;
		top = place;
	}
	memset(&entries[bottom], 0, (top - bottom) * sizeof(e));
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
