// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: stamps. With a stamp, a node that does not know the writer of a block reads
 * the block without asking any node. (In Endo's dissertation, 3.4.5, such a reader enters the
 * block's critical section.)
 *
 * The stamp of a block at a node is a promise: a reader that reads the stamp, and after
 * that the frame, gets all writes with timestamps up to the stamp's. Only an owner makes
 * the promise. The owner's frame has all released writes, and later writes get timestamps
 * above the owner's read timestamp, which is the value of the stamp. The promise is never
 * taken back while the content is there, because a frame changes only by stores of programs, which
 * belong to newer writes, and by newer content. Eviction (evict.c) takes the promise back, and then
 * the content; a reader that has read the stamp before fails to read the content. Therefore no
 * task may ever put content into a frame that may be older than the frame's (see
 * kdsm_miss_probe()).
 *
 * So a reader needs no owner for content that is valid until the stamp's timestamp, if that
 * is not below the reader's floor. Otherwise the reader sends the owner a message, and the
 * owner raises its read timestamp.
 *
 * A stamp also says when the newest of the writes that it promises was made. So a node whose copy
 * has outlived its lease, but has that write, renews the lease without the content.
 *
 * A read may be torn, even inside a word. The check word detects a torn stamp. Torn content
 * does no harm, as for any read of a frame that programs write concurrently: the stores
 * that tear the read belong to a newer write.
 */
#include <linux/mm.h>

#include "internal.h"

static __le64 kdsm_stamp_check(u64 good, u32 age)
{
	u64 sum = good ^ (good >> 31) ^ age * 0xff51afd7ed558ccdULL;

	return cpu_to_le64((sum * 0x9e3779b97f4a7c15ULL & ~(u64)U32_MAX) | age);
}

void kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	u64 age = min_t(u64, block->rts - block->wts, U32_MAX);
	u64 offset = kdsm_stamp_offset(block->index);
	struct kdsm_stamp *stamp;
	struct page *page;

	lockdep_assert_held(&block->lock);
	page = kdsm_memory_page(coherence->stamps, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return;		/* the earlier promise still holds */
	stamp = page_address(page) + (offset & (PAGE_SIZE - 1));
	/*
	 * Order the stores to the frame before the promise. Readers read in the opposite
	 * order: see kdsm_fetch_follows_stamps().
	 */
	smp_mb();
	WRITE_ONCE(stamp->good, cpu_to_le64(block->rts));
	WRITE_ONCE(stamp->check, kdsm_stamp_check(block->rts, age));
}

void kdsm_stamp_clear(struct kdsm_coherence *coherence, u64 index)
{
	u64 offset = kdsm_stamp_offset(index);
	struct kdsm_stamp *stamp;
	struct page *page;

	if (!kdsm_memory_holds(coherence->stamps, offset))
		return;
	page = kdsm_memory_page(coherence->stamps, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return;
	stamp = page_address(page) + (offset & (PAGE_SIZE - 1));
	WRITE_ONCE(stamp->good, 0);
	WRITE_ONCE(stamp->check, 0);
}

u64 kdsm_stamp_value(const struct kdsm_stamp *stamp, u64 *wts)
{
	u64 good = le64_to_cpu(stamp->good);
	u32 age = le64_to_cpu(stamp->check);

	if (stamp->check != kdsm_stamp_check(good, age) || good > KDSM_CLOCK_MAX || age > good)
		return 0;
	*wts = good - age;
	return good;
}

u64 kdsm_stamps_size(u64 blocks)
{
	return (blocks * sizeof(struct kdsm_stamp) + PAGE_SIZE - 1) & PAGE_MASK;
}
