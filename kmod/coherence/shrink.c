// SPDX-License-Identifier: GPL-2.0
/*
 * The shrinker of a region, by which the kernel asks for memory when programs of this node need it.
 *
 * Eviction waits for other nodes. A task that reclaims memory must not wait for them, because
 * another node may be waiting for an answer of that task. So the shrinker frees no memory itself,
 * but tells the work item how many chunks to evict.
 */
#include <linux/mm.h>

#include "compat.h"
#include "internal.h"

/*
 * Cost to bring an object back, as of struct shrinker: more than a page of a file costs, so that
 * the kernel takes pages of files first
 */
#define KDSM_SHRINK_SEEKS	(4 * DEFAULT_SEEKS)
#define KDSM_CHUNK_PAGES	(KDSM_CHUNK_SIZE >> PAGE_SHIFT)

static unsigned long kdsm_shrink_count(struct shrinker *shrinker, struct shrink_control *control)
{
	return kdsm_coherence_evictable(kdsm_shrinker_data(shrinker)) >> PAGE_SHIFT ?: SHRINK_EMPTY;
}

static unsigned long kdsm_shrink_scan(struct shrinker *shrinker, struct shrink_control *control)
{
	kdsm_coherence_reclaim(kdsm_shrinker_data(shrinker),
			       DIV_ROUND_UP(control->nr_to_scan, KDSM_CHUNK_PAGES));
	return SHRINK_STOP;
}

int kdsm_shrinker_start(struct kdsm_coherence *coherence)
{
	coherence->shrinker = kdsm_shrinker_register(kdsm_shrink_count, kdsm_shrink_scan,
						     KDSM_SHRINK_SEEKS, KDSM_CHUNK_PAGES,
						     coherence, "kdsm-region");
	return coherence->shrinker ? 0 : -ENOMEM;
}

void kdsm_shrinker_stop(struct kdsm_coherence *coherence)
{
	kdsm_shrinker_unregister(coherence->shrinker);
}
