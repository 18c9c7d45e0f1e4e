// SPDX-License-Identifier: GPL-2.0
/*
 * Data races of programs under policy release, as merges find them (twin.c): the newest ones of
 * the region on this node, for kdsm_coherence_races().
 *
 * A merge of a program without data races finds none: a byte that differs from the twin in the
 * frame is a write of this node that no node has acquired yet, and a byte that differs in the
 * content of another node is a write that this node has not acquired yet. If both were made,
 * neither happened before the other. The simulator checks this for all its programs without races.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"
#include "trace.h"

struct kdsm_race_ring {
	u64 kept;			/* number of races kept so far; the newest are in list */
	struct kdsm_race list[KDSM_RACES_MAX];
};

/* The ring of the region, or NULL without memory */
static struct kdsm_race_ring *kdsm_race_ring(struct kdsm_coherence *coherence)
{
	/* Pairs with cmpxchg() below, which publishes an empty ring */
	struct kdsm_race_ring *ring = smp_load_acquire(&coherence->races), *other;

	if (ring)
		return ring;
	ring = kvzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return NULL;
	other = cmpxchg(&coherence->races, NULL, ring);
	if (!other)
		return ring;
	kvfree(ring);
	return other;
}

void kdsm_race_found(struct kdsm_coherence *coherence, const struct kdsm_race *race, bool keep)
{
	struct kdsm_race_ring *ring = keep ? kdsm_race_ring(coherence) : NULL;
	struct kdsm_race *slot;
	u64 number;

	spin_lock(&coherence->lock);
	number = atomic64_read(&coherence->stats[KDSM_COHERENCE_RACES]);
	kdsm_coherence_count(coherence, RACES, 1);
	if (ring) {
		slot = &ring->list[ring->kept++ % KDSM_RACES_MAX];
		*slot = *race;
		slot->number = number;
	}
	spin_unlock(&coherence->lock);
	if (keep)
		trace_kdsm_race(coherence->id, race->offset, race->mask, race->other);
}

unsigned int kdsm_coherence_races(struct kdsm_coherence *coherence, struct kdsm_race *list,
				  unsigned int room, u64 *next, u64 *lost)
{
	/* Pairs with cmpxchg() in kdsm_race_ring() */
	const struct kdsm_race_ring *ring = smp_load_acquire(&coherence->races);
	unsigned int count = 0;
	u64 i, end;

	spin_lock(&coherence->lock);
	end = atomic64_read(&coherence->stats[KDSM_COHERENCE_RACES]);
	for (i = !ring || ring->kept < KDSM_RACES_MAX ? 0 : ring->kept - KDSM_RACES_MAX;
	     ring && i < ring->kept; i++) {
		const struct kdsm_race *race = &ring->list[i % KDSM_RACES_MAX];

		if (race->number < *next)
			continue;
		if (count == room) {
			end = race->number;
			break;
		}
		list[count++] = *race;
	}
	spin_unlock(&coherence->lock);
	*lost = end > *next ? end - *next - count : 0;
	*next = end;
	return count;
}

void kdsm_races_free(struct kdsm_coherence *coherence)
{
	kvfree(coherence->races);
}
