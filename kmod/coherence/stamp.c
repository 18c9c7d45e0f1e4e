// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: stamps, by which a node that does not know who wrote a block
 * reads it without asking anybody (the lock-free read of Endo's dissertation, 3.4.3,
 * with one word less to be written by the reader).
 *
 * The stamp of a block at a node is a promise: whoever reads the stamp, and after
 * that the frame, has all writes with timestamps of at most that. It is made by an
 * owner, whose frame has all writes that are released; those that come later get
 * timestamps above its read timestamp, which is what the stamp says. It is never
 * taken back: a frame changes by stores of programs, which belong to newer writes,
 * and by content that is newer than what is there. For this it matters that
 * nothing is put into a frame that may be older (see kdsm_miss_probe()).
 *
 * So a reader needs no owner for content that is good until the stamp, if that is
 * not before its floor. Otherwise the owner has to raise its read timestamp, and
 * is asked to by a message.
 *
 * What is read may be torn, even inside a word. Of a stamp this is seen by the
 * check; of content it does no harm, as for any read of a frame that programs
 * write at the same time: what is written at that time is a newer write.
 */
#include <linux/mm.h>

#include "internal.h"

static __le64 kdsm_stamp_check(u64 good)
{
	return cpu_to_le64((good ^ (good >> 31)) * 0x9e3779b97f4a7c15ULL);
}

void kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	u64 offset = kdsm_stamp_offset(block);
	struct kdsm_stamp *stamp;
	struct page *page;

	lockdep_assert_held(&block->lock);
	page = kdsm_memory_page(coherence->stamps, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return;		/* The promise that was made still holds. */
	stamp = page_address(page) + (offset & (PAGE_SIZE - 1));
	/* What was written to the frame, then the promise: a reader goes the other way. */
	smp_mb();
	WRITE_ONCE(stamp->good, cpu_to_le64(block->rts));
	WRITE_ONCE(stamp->check, kdsm_stamp_check(block->rts));
}

u64 kdsm_stamp_value(const struct kdsm_stamp *stamp)
{
	u64 good = le64_to_cpu(stamp->good);

	return stamp->check == kdsm_stamp_check(good) && good <= KDSM_CLOCK_MAX ? good : 0;
}

u64 kdsm_stamps_size(u64 blocks)
{
	return (blocks * sizeof(struct kdsm_stamp) + PAGE_SIZE - 1) & PAGE_MASK;
}
