// SPDX-License-Identifier: GPL-2.0
/*
 * Twins: the content of a block as of the last merge. The difference between the frame and
 * the twin is what this node changed. The difference between another node's content and the
 * twin is what other nodes changed.
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

/* Words that the merge compares together. Most of a page is unchanged. */
#define KDSM_MERGE_WORDS	4

static bool kdsm_words_differ(const u64 *a, const u64 *b)
{
	BUILD_BUG_ON(KDSM_MERGE_WORDS != 4);
	return (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);
}

/* 0xff in each byte in which a and b differ */
static u64 kdsm_bytes_changed(u64 a, u64 b)
{
	const u64 low = 0x7f7f7f7f7f7f7f7fULL;
	u64 bits = a ^ b;

	/* The highest bit of each byte: whether the byte has any bit */
	bits = (((bits & low) + low) | bits) & ~low;
	return (bits >> 7) * 0xff;
}

/* Merge words of one page; see kdsm_twin_merge(). Return whether a byte was changed twice. */
static bool kdsm_words_merge(atomic64_t *frame, u64 *twin, const u64 *news, bool keep)
{
	bool race = false;
	unsigned int i;

	for (i = 0; i < KDSM_MERGE_WORDS; i++) {
		u64 theirs = kdsm_bytes_changed(news[i], twin[i]), ours;
		s64 word = atomic64_read(&frame[i]);

		if (!theirs)
			continue;
		do {
			ours = kdsm_bytes_changed(word, twin[i]);
		} while (!atomic64_try_cmpxchg(&frame[i], &word,
					       (word & ~(theirs & ~ours)) |
					       (news[i] & theirs & ~ours)));
		if (theirs & ours)
			race = true;
		if (keep)
			twin[i] = news[i];
	}
	return race;
}

/*
 * Merge the changes of other nodes (theirs against the twin) into the frame. Programs may
 * be writing other bytes of the frame concurrently, so each word is merged by a
 * compare-and-swap. A byte that both sides changed is a data race of the program; it keeps the
 * value that this node wrote. If keep is set, the twin becomes theirs.
 */
void kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     const struct kdsm_bounce *theirs, bool keep)
{
	unsigned int i, j;
	bool race = false;

	lockdep_assert_held(&block->lock);
	for (i = 0; i < theirs->count; i++) {
		/* Both pages exist because the block has a twin */
		atomic64_t *frame = kdsm_block_page(coherence, coherence->frames, block, i);
		u64 *twin = kdsm_block_page(coherence, coherence->twins, block, i);
		const u64 *news = theirs->pages[i];

		for (j = 0; j < PAGE_SIZE / sizeof(u64); j += KDSM_MERGE_WORDS)
			if (kdsm_words_differ(&news[j], &twin[j]))
				race |= kdsm_words_merge(&frame[j], &twin[j], &news[j], keep);
	}
	kdsm_coherence_count(coherence, MERGES, 1);
	if (race) {
		kdsm_coherence_count(coherence, RACES, 1);
		trace_kdsm_race(coherence->id, kdsm_block_offset(coherence, block));
	}
}
