/* SPDX-License-Identifier: GPL-2.0 */
/* Stamps of blocks, in a memory that peers read; see stamp.c. */
#ifndef KDSM_STAMP_H
#define KDSM_STAMP_H

#include "coherence/coherence.h"

/* Two stores of 8 bytes each: if they do not fit together it was read half-way. */
struct kdsm_stamp {
	__le64 good;	/* the frame has all writes up to this */
	__le64 check;
} __packed;

static inline u64 kdsm_stamp_offset(const struct kdsm_block *block)
{
	return block->index * sizeof(struct kdsm_stamp);
}

/* From that block on, stamps that can be read at once, as they lie in one page. */
static inline unsigned int kdsm_stamps_left(const struct kdsm_block *block)
{
	return (PAGE_SIZE - kdsm_stamp_offset(block) % PAGE_SIZE) / sizeof(struct kdsm_stamp);
}

/* Bytes of the memory for so many blocks. */
static inline u64 kdsm_stamps_size(u64 blocks)
{
	return (blocks * sizeof(struct kdsm_stamp) + PAGE_SIZE - 1) & PAGE_MASK;
}

/* The owner, with the block's lock: promise its read timestamp. */
void kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
/* What a stamp that was read says; 0: nothing. */
u64 kdsm_stamp_value(const struct kdsm_stamp *stamp);

#endif /* KDSM_STAMP_H */
