// SPDX-License-Identifier: GPL-2.0
/* One atomic operation on a word in memory of this node. atomic.c brings the content here. */
#include <linux/atomic.h>

#include "internal.h"

bool kdsm_word_update(atomic64_t *bytes, struct kdsm_atomic *atomic)
{
	unsigned int shift = 8 * (atomic->offset % sizeof(u64));
	u64 mask = atomic->size == sizeof(u64) ? U64_MAX : U32_MAX, word;
	s64 now = atomic64_read(bytes);

	do {
		atomic->result = (u64)now >> shift & mask;
		word = atomic->operand;
		if (atomic->opcode == KDSM_ATOMIC_ADD)
			word += atomic->result;
		if (atomic->opcode == KDSM_ATOMIC_LOAD ||
		    (atomic->opcode == KDSM_ATOMIC_CAS &&
		     (atomic->result ^ atomic->compare) & mask))
			return false;
	} while (!atomic64_try_cmpxchg(bytes, &now,
				       (now & ~(mask << shift)) | (word & mask) << shift));
	return true;
}
