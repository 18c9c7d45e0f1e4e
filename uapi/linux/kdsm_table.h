/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The unique table, as the kernel and libkdsm both know it: the entries of its index, and
 * the operation KDSM_OP_FIND of <linux/kdsm.h>, which looks at them for another node.
 *
 * Entries are 64 bits that say of themselves whether they are whole.
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

#include <linux/errno.h>
#include <linux/types.h>

/* The payload is a number of 40 bits above a fragment, of 16 bits, of a hash. */
#define KDSM_FRAGMENT_BITS	16
#define KDSM_NUMBERS		(1ULL << 40)

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

/*
 * The walk of a node: the entries at which it is looked for, from the one that its hash
 * gives on. It is put into the first empty one, so whoever looks for it goes the same way.
 * A walk consists of runs of adjacent entries, which a few cache lines hold and one get
 * brings; behind the last entry of the index comes the first. Between each run and the next
 * the walk leaves out run, 2 run, 3 run ... entries (quadratic probing), so that entries in
 * use form no long clusters: run i begins run * i * (i + 3) / 2 entries behind the first.
 * (Laarman, van de Pol, Weber, FMCAD 2010, "walking the line"; Oortwijn, van Dijk, van de
 * Pol, SPIN 2017, section 3, with ranges of a fixed size. Here only the walk is fixed: a get
 * may bring any part of a run.)
 */

/*
 * The entry behind this one, below entries. done: entries of the walk up to this one, it
 * included, from 1 on. run: entries of a run, a power of two.
 */
static inline __u64 kdsm_walk_next(__u64 entry, __u64 entries, __u32 done, __u32 run)
{
	entry++;
	/* The end of a run */
	if (!(done & (run - 1)))
		entry += done < entries ? done : done % (__u32)entries;
	return entry < entries ? entry : entry - entries;
}

/*
 * KDSM_OP_FIND: the CPU of the target looks for a node of 16 bytes in a table, or puts it
 * there, in one round trip, however full the table is. It does what gets of the index and
 * of nodes and a CAS do otherwise, and may meet those of others.
 *
 * In the part lie the index, entries of 8 bytes from the operation's offset on, and
 * nodes, of 16 bytes from data on. An entry leads to a node by its number; the numbers of
 * the nodes of this part are first..first+nodes-1.
 * Looked at are at most probes entries of the node's walk, from entry on, before which
 * there are done others. It ends with one of these outcomes:
 *
 * PUT		the entry was empty and has fragment and number now
 * FOUND	the entry has the fragment, and the node that it leads to is this one: number
 * ELSEWHERE	the entry has the fragment, and leads to a node in another part, number,
 *		which the caller may compare, and go on behind it (kdsm_walk_next()) if it is
 *		not the same
 * FULL		none of this
 *
 * The node that number leads to must be stored before, where it is (in the caller's part,
 * say), as others will follow the entry.
 */
enum kdsm_find_outcome {
	KDSM_FIND_PUT = 1,
	KDSM_FIND_FOUND,
	KDSM_FIND_ELSEWHERE,
	KDSM_FIND_FULL,
};

#define KDSM_FIND_PROBES_MAX	2048

struct kdsm_find {
	__u64 entries;		/* 1..2^40 */
	__u64 nodes;		/* 1..2^40 */
	__u64 data;		/* offset in the part, a multiple of 8 */
	__u64 first;		/* at most 2^40 */
	__u64 node[2];
	__u64 ignore;		/* bits of the first word of nodes that are not compared */
	__u64 entry;		/* below entries; (out) where it ended */
	__u64 number;		/* below 2^40; (out) that of the entry */
	__u32 probes;		/* 1..KDSM_FIND_PROBES_MAX - done; (out) left behind entry */
	__u32 done;		/* of the walk, before entry; (out) with entry */
	__u32 run;		/* of the walk, in entries: a power of two */
	__u16 fragment;
	__u16 outcome;		/* 0; (out) enum kdsm_find_outcome */
};

/* May it be done in a part of size bytes, with the index there? 0, -EINVAL, -ERANGE. */
static inline int kdsm_find_check(const struct kdsm_find *find, __u64 index, __u64 size)
{
	if (!find->entries || find->entries > KDSM_NUMBERS || find->entry >= find->entries ||
	    !find->nodes || find->nodes > KDSM_NUMBERS || find->first > KDSM_NUMBERS ||
	    find->number >= KDSM_NUMBERS || find->outcome ||
	    !find->probes || find->probes > KDSM_FIND_PROBES_MAX ||
	    find->done > KDSM_FIND_PROBES_MAX - find->probes ||
	    !find->run || find->run & (find->run - 1) || index % 8 || find->data % 8)
		return -EINVAL;
	if (index > size || find->entries > (size - index) / sizeof(__u64) ||
	    find->data > size || find->nodes > (size - find->data) / sizeof(find->node))
		return -ERANGE;
	return 0;
}

/*
 * What an entry that is not empty comes to: KDSM_FIND_ELSEWHERE; KDSM_FIND_FOUND if the
 * node *number of this part is the same; 0 for going on; -EIO if it is none, as where
 * CPUs alone change entries, none is ever torn.
 */
static inline int kdsm_find_judge(const struct kdsm_find *find, __u64 entry, __u64 *number)
{
	if (!kdsm_entry_whole(entry))
		return -EIO;
	if ((entry & KDSM_FRAGMENT_MASK) != kdsm_fragment(find->fragment))
		return 0;
	*number = kdsm_entry_number(entry);
	return *number < find->first || *number - find->first >= find->nodes ?
	       KDSM_FIND_ELSEWHERE : KDSM_FIND_FOUND;
}

/* Is the node of these two words the one that is looked for? */
static inline int kdsm_find_same(const struct kdsm_find *find, __u64 a, __u64 b)
{
	return !((a ^ find->node[0]) & ~find->ignore) && b == find->node[1];
}

/* After an entry that came to this outcome, or to 0: is that the end? Else to the next. */
static inline int kdsm_find_ends(struct kdsm_find *find, int outcome)
{
	find->probes--;
	find->done++;
	if (!outcome && !find->probes)
		outcome = KDSM_FIND_FULL;
	find->outcome = outcome;
	if (!outcome)
		find->entry = kdsm_walk_next(find->entry, find->entries, find->done, find->run);
	return outcome;
}

#endif /* _UAPI_LINUX_KDSM_TABLE_H */
