// SPDX-License-Identifier: GPL-2.0
/*
 * Twins: the content of a block as of the last merge. The difference between the frame and
 * the twin is what this node changed. The difference between another node's content and the
 * twin is what other nodes changed.
 */
#include <linux/atomic.h>
#include <linux/mm.h>

#include "internal.h"

int kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	unsigned int i;
	void *from, *to;

	lockdep_assert_held(&block->lock);
	for (i = 0; i < kdsm_block_size(coherence, block->index) >> PAGE_SHIFT; i++) {
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
 * The content here came from the frame of node from, with all writes up to block->wts, before this
 * node asked that node for the block. If node from has stored since, or has merged the stores of
 * others, the hand-over says a later time (kdsm_release_handover()).
 *
 * A node that no longer owns the block stores without telling the owner, and its twin lacks these
 * stores. So content from a frame other than the owner's does not count, nor content that was read
 * after the hand-over, as happens if the hand-over is late.
 */
bool kdsm_twin_is_here(const struct kdsm_block *block, unsigned int from, u64 wts)
{
	lockdep_assert_held(&block->lock);
	return block->direct && block->whole && block->origin == from && wts <= block->wts;
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

/* A merge of one block */
struct kdsm_merge {
	struct kdsm_coherence *coherence;
	unsigned int from;		/* node that the content comes from */
	bool keep;			/* the twin becomes theirs */
	unsigned int races;		/* words found that both sides changed */
};

static void kdsm_merge_race(struct kdsm_merge *merge, u64 offset, u64 mask, u64 before, u64 ours,
			    u64 theirs)
{
	const struct kdsm_race race = {
		.offset = offset,
		.mask = mask,
		.before = before,
		.ours = ours,
		.theirs = theirs,
		.node = merge->coherence->node,
		.other = merge->from,
	};

	kdsm_race_found(merge->coherence, &race, merge->races++ < KDSM_RACES_MERGE);
}

/* Merge words of one page; see kdsm_twin_merge(). offset is that of the first word. */
static void kdsm_words_merge(struct kdsm_merge *merge, u64 offset, atomic64_t *frame, u64 *twin,
			     const u64 *news)
{
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
			kdsm_merge_race(merge, offset + i * sizeof(u64), theirs & ours, twin[i],
					word, news[i]);
		if (merge->keep)
			twin[i] = news[i];
	}
}

/*
 * Merge the changes of other nodes (theirs against the twin) into the frame. Programs may
 * be writing other bytes of the frame concurrently, so each word is merged by a
 * compare-and-swap. A byte that both sides changed is a data race of the program (race.c); it
 * keeps the value that this node wrote. If keep is set, the twin becomes theirs.
 */
void kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
		     const struct kdsm_bounce *theirs, unsigned int from, bool keep)
{
	struct kdsm_merge merge = { .coherence = coherence, .from = from, .keep = keep };
	u64 offset = kdsm_block_offset(coherence, block->index);
	unsigned int i, j;

	lockdep_assert_held(&block->lock);
	for (i = 0; i < theirs->count; i++, offset += PAGE_SIZE) {
		/* Both pages exist because the block has a twin */
		atomic64_t *frame = kdsm_block_page(coherence, coherence->frames, block, i);
		u64 *twin = kdsm_block_page(coherence, coherence->twins, block, i);
		const u64 *news = theirs->pages[i];

		for (j = 0; j < PAGE_SIZE / sizeof(u64); j += KDSM_MERGE_WORDS)
			if (kdsm_words_differ(&news[j], &twin[j]))
				kdsm_words_merge(&merge, offset + j * sizeof(u64), &frame[j],
						 &twin[j], &news[j]);
	}
	kdsm_coherence_count(coherence, MERGES, 1);
}
