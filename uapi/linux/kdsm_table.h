/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Entries of the index of a table: 64 bits that say of themselves whether they are
 * whole. KDSM_OP_FIND in <linux/kdsm.h> looks at them, and so does libkdsm.
 *
 * A one-sided get may see an entry while it is being written, on some devices
 * (Soft-RoCE copies byte by byte) even in the middle of the word. An entry
 * misread as another one would hide a node, which would then be put a second
 * time. So an entry carries its 56 bits of payload as 8 bytes of 7 bits, each with its
 * top bit set, and zero is the empty entry.
 *
 * Proof that a torn entry is recognised. An entry changes once, from zero to its
 * value, by compare-and-swap (a collector of garbage may clear it when nobody
 * reads). A get that overlaps with the change sees each byte either old, that is
 * 0x00, or new, that is 0x80 or more. All bytes old: it reads as empty, which
 * was true when the get began, and the compare-and-swap that follows decides.
 * All bytes new: the value. Else some byte has its top bit clear and another has
 * it set: neither empty nor an entry, and it is read again.
 */
#ifndef _UAPI_LINUX_KDSM_TABLE_H
#define _UAPI_LINUX_KDSM_TABLE_H

#include <linux/types.h>

/* The payload is a number of 40 bits above a fragment, of 16 bits, of a hash. */
#define KDSM_FRAGMENT_BITS	16

#define KDSM_ENTRY_TOPS		0x8080808080808080ULL

/* 56 bits to 8 x 7 bits. */
static inline __u64 kdsm_entry_spread(__u64 x)
{
	x = (x & 0x000000000fffffffULL) | (x & 0x00fffffff0000000ULL) << 4;
	x = (x & 0x00003fff00003fffULL) | (x & 0x0fffc0000fffc000ULL) << 2;
	x = (x & 0x007f007f007f007fULL) | (x & 0x3f803f803f803f80ULL) << 1;
	return x;
}

/* 8 x 7 bits to 56 bits. */
static inline __u64 kdsm_entry_gather(__u64 x)
{
	x &= ~KDSM_ENTRY_TOPS;
	x = (x & 0x007f007f007f007fULL) | (x & 0x7f007f007f007f00ULL) >> 1;
	x = (x & 0x00003fff00003fffULL) | (x & 0x3fff00003fff0000ULL) >> 2;
	x = (x & 0x000000000fffffffULL) | (x & 0x0fffffff00000000ULL) >> 4;
	return x;
}

/*
 * The fragment takes the low 16 bits of the payload, spread over three bytes.
 * It is compared where it lies, together with the top bits: what matches is a
 * whole entry.
 */
#define KDSM_FRAGMENT_MASK	(KDSM_ENTRY_TOPS | 0x0000000000037f7fULL)

/* Of the low 16 bits of a hash. */
static inline __u64 kdsm_fragment(__u64 hash)
{
	return KDSM_ENTRY_TOPS | (hash & 0x7f) | (hash & 0x3f80) << 1 | (hash & 0xc000) << 2;
}

static inline __u64 kdsm_entry(__u64 fragment, __u64 number)
{
	return fragment | kdsm_entry_spread(number << KDSM_FRAGMENT_BITS);
}

static inline __u64 kdsm_entry_number(__u64 entry)
{
	return kdsm_entry_gather(entry) >> KDSM_FRAGMENT_BITS;
}

static inline int kdsm_entry_whole(__u64 entry)
{
	return (entry & KDSM_ENTRY_TOPS) == KDSM_ENTRY_TOPS;
}

#endif /* _UAPI_LINUX_KDSM_TABLE_H */
