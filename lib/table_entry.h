/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Index entries: 64 bits that say of themselves whether they are whole.
 *
 * A one-sided get may see an entry while it is being written, on some devices
 * (Soft-RoCE copies byte by byte) even in the middle of the word. An entry
 * misread as another one would hide a node, which would then be put a second
 * time, and equal functions would have two edges. So an entry carries its 56
 * bits of payload as 8 bytes of 7 bits, each with its top bit set, and zero is
 * the empty entry.
 *
 * Proof that a torn entry is recognised. An entry changes once, from zero to its
 * value, by compare-and-swap (a collector of garbage may clear it when nobody
 * reads). A get that overlaps with the change sees each byte either old, that is
 * 0x00, or new, that is 0x80 or more. All bytes old: it reads as empty, which
 * was true when the get began, and the compare-and-swap that follows decides.
 * All bytes new: the value. Else some byte has its top bit clear and another has
 * it set: neither empty nor an entry, and it is read again.
 */
#ifndef KD_TABLE_ENTRY_H
#define KD_TABLE_ENTRY_H

#include <stdint.h>

#include <kdsm/table.h>

#define KD_ENTRY_TOPS	UINT64_C(0x8080808080808080)

#define KD_FRAGMENT_BITS	16

/* 56 bits to 8 x 7 bits. */
static inline uint64_t kd_spread(uint64_t x)
{
	x = (x & UINT64_C(0x000000000fffffff)) |
	    (x & UINT64_C(0x00fffffff0000000)) << 4;
	x = (x & UINT64_C(0x00003fff00003fff)) |
	    (x & UINT64_C(0x0fffc0000fffc000)) << 2;
	x = (x & UINT64_C(0x007f007f007f007f)) |
	    (x & UINT64_C(0x3f803f803f803f80)) << 1;
	return x;
}

/* 8 x 7 bits to 56 bits. */
static inline uint64_t kd_gather(uint64_t x)
{
	x &= ~KD_ENTRY_TOPS;
	x = (x & UINT64_C(0x007f007f007f007f)) |
	    (x & UINT64_C(0x7f007f007f007f00)) >> 1;
	x = (x & UINT64_C(0x00003fff00003fff)) |
	    (x & UINT64_C(0x3fff00003fff0000)) >> 2;
	x = (x & UINT64_C(0x000000000fffffff)) |
	    (x & UINT64_C(0x0fffffff00000000)) >> 4;
	return x;
}

/*
 * The fragment takes the low 16 bits of the payload, spread over three bytes.
 * It is compared where it lies, together with the top bits: what matches is a
 * whole entry.
 */
#define KD_FRAGMENT_MASK	(KD_ENTRY_TOPS | UINT64_C(0x0000000000037f7f))

static inline uint64_t kd_fragment(uint64_t hash)
{
	return KD_ENTRY_TOPS | (hash & 0x7f) | (hash & 0x3f80) << 1 |
	       (hash & 0xc000) << 2;
}

static inline uint64_t kd_entry(uint64_t fragment, uint64_t number)
{
	return fragment | kd_spread(number << KD_FRAGMENT_BITS);
}

static inline uint64_t kd_entry_number(uint64_t entry)
{
	return kd_gather(entry) >> KD_FRAGMENT_BITS;
}

static inline int kd_entry_whole(uint64_t entry)
{
	return (entry & KD_ENTRY_TOPS) == KD_ENTRY_TOPS;
}

/* The full product of two words, folded: wyhash's mixing step. */
static inline uint64_t kd_mix(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t kd_hash(uint64_t a, uint64_t b)
{
	uint64_t h = kd_mix(a ^ UINT64_C(0x9e3779b97f4a7c15),
			    b ^ UINT64_C(0xd6e8feb86659fd93));

	return kd_mix(h, UINT64_C(0xa0761d6478bd642f));
}

/* A number below range, from the high bits of the hash. */
static inline uint64_t kd_reduce(uint64_t hash, uint64_t range)
{
	return (uint64_t)(((unsigned __int128)hash * range) >> 64);
}

#endif /* KD_TABLE_ENTRY_H */
