// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of the node cache. Looking up and storing are inline in table.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"

int kd_nodecache_init(struct kd_nodecache *cache, uint64_t entries)
{
	uint64_t size = 1024;

	while (size < entries && size < UINT64_C(1) << 32)
		size *= 2;
	cache->mask = size - 1;
	cache->most = size - 1;
	cache->nodes = calloc(size, sizeof(*cache->nodes));
	cache->hints = calloc(size, sizeof(*cache->hints));
	if (!cache->nodes || !cache->hints) {
		kd_nodecache_destroy(cache);
		return -ENOMEM;
	}
	return 0;
}

void kd_nodecache_resize(struct kd_nodecache *cache, uint64_t entries)
{
	cache->mask = 1023;
	while (cache->mask < cache->most && cache->mask + 1 < entries)
		cache->mask = 2 * cache->mask + 1;
}

void kd_nodecache_clear(struct kd_nodecache *cache)
{
	memset(cache->nodes, 0, (cache->mask + 1) * sizeof(*cache->nodes));
	memset(cache->hints, 0, (cache->mask + 1) * sizeof(*cache->hints));
}

void kd_nodecache_destroy(struct kd_nodecache *cache)
{
	free(cache->nodes);
	free(cache->hints);
	cache->nodes = NULL;
	cache->hints = NULL;
}
