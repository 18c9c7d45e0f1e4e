// SPDX-License-Identifier: GPL-2.0
/*
 * Twins: the content of a block as it was last merged. What this node changed is
 * the frame against the twin, what others changed is theirs against the twin.
 */
#include <linux/atomic.h>
#include <linux/mm.h>

#include "internal.h"
#include "trace.h"

int kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int i;
	void *from, *to;

	lockdep_assert_held(&block->lock);
	for (i = 0; i < kdsm_block_size(coherence) >> PAGE_SHIFT; i++) {
		from = kdsm_block_page(coherence, coherence->frames, block, i);
		to = kdsm_block_page(coherence, coherence->twins, block, i);
		if (IS_ERR(from) || IS_ERR(to))
			return -ENOMEM;
		copy_page(to, from);
	}
	block->twin = true;
	return 0;
}

/*
 * Bring what others changed, theirs against the twin, into the frame, in which
 * programs may be writing other bytes at this moment: hence word by word, by an
 * atomic exclusive-or. A byte that both changed is a data race of the program's.
 * With keep the twin becomes theirs.
 */
void kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     const struct kdsm_bounce *theirs, bool keep)
{
	unsigned int i, j;
	bool race = false;

	lockdep_assert_held(&block->lock);
	for (i = 0; i < theirs->count; i++) {
		/* Both exist, as there is a twin. */
		atomic64_t *frame = kdsm_block_page(coherence, coherence->frames, block, i);
		u64 *twin = kdsm_block_page(coherence, coherence->twins, block, i);
		const u64 *news = theirs->pages[i];

		for (j = 0; j < PAGE_SIZE / sizeof(u64); j++) {
			u64 change = news[j] ^ twin[j];

			if (!change)
				continue;
			if (change & (atomic64_read(&frame[j]) ^ twin[j]))
				race = true;
			atomic64_xor(change, &frame[j]);
			if (keep)
				twin[j] = news[j];
		}
	}
	kdsm_coherence_count(coherence, MERGES, 1);
	if (race) {
		kdsm_coherence_count(coherence, RACES, 1);
		trace_kdsm_race(coherence->id, kdsm_block_offset(coherence, block));
	}
}
