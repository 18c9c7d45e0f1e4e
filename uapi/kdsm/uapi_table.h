/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The unique table as kernel and libkdsm both know it: the entries of its index, and the
 * operation KDSM_OP_FIND of <kdsm/uapi.h>, which searches them for another node.
 *
 * An entry is 64 bits that show whether they are whole. A one-sided get may see an entry
 * while it is being written, on some devices (Soft-RoCE copies byte by byte) even in the
 * middle of the word. If an entry were misread as another one, it would hide a node, which
 * would then be put a second time. So an entry carries its 56 bits of payload as 8 bytes of
 * 7 bits, each with its top bit set, and zero is the empty entry.
 *
 * Proof that a torn entry is recognised. An entry changes once, from zero to its value, by
 * compare-and-swap (a garbage collector clears it only while there are no readers). A get
 * that overlaps with the change sees each byte either old, which is 0x00, or new, which is
 * 0x80 or more. All bytes old: it reads as empty, which was true when the get began, and the
 * compare-and-swap that follows decides. All bytes new: it reads as the value. Otherwise one
 * byte has its top bit clear and another has it set: the word is neither empty nor an entry,
 * and is read again.
 */
#ifndef _UAPI_KDSM_TABLE_H
#define _UAPI_KDSM_TABLE_H

#include <linux/errno.h>
#include <linux/types.h>

/* The payload is a number of 40 bits above a fragment of a hash, of 16 bits. */
#define KDSM_FRAGMENT_BITS	16
#define KDSM_NUMBERS		(1ULL << 40)

#define KDSM_ENTRY_TOPS		0x8080808080808080ULL

/* Spread 56 bits to 8 x 7 bits. */
static inline __u64 kdsm_entry_spread(__u64 x)
{
	x = (x & 0x000000000fffffffULL) | (x & 0x00fffffff0000000ULL) << 4;
	x = (x & 0x00003fff00003fffULL) | (x & 0x0fffc0000fffc000ULL) << 2;
	x = (x & 0x007f007f007f007fULL) | (x & 0x3f803f803f803f80ULL) << 1;
	return x;
}

/* Gather 8 x 7 bits to 56 bits. */
static inline __u64 kdsm_entry_gather(__u64 x)
{
	x &= ~KDSM_ENTRY_TOPS;
	x = (x & 0x007f007f007f007fULL) | (x & 0x7f007f007f007f00ULL) >> 1;
	x = (x & 0x00003fff00003fffULL) | (x & 0x3fff00003fff0000ULL) >> 2;
	x = (x & 0x000000000fffffffULL) | (x & 0x0fffffff00000000ULL) >> 4;
	return x;
}

/*
 * The fragment takes the low 16 bits of the payload, spread over three bytes. It is compared
 * in place, together with the top bits, so a word that matches is a whole entry.
 */
#define KDSM_FRAGMENT_MASK	(KDSM_ENTRY_TOPS | 0x0000000000037f7fULL)

/* The fragment of the low 16 bits of a hash, in place. */
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
 * The walk of a node: the index entries in which the node may be, in order, from the entry that
 * its hash gives. A node is put into the first empty entry of its walk, so a search that follows
 * the same walk finds it. A walk consists of runs of adjacent entries, which a few cache
 * lines hold and one get fetches; the first entry of the index follows the last. Between two
 * runs the walk leaves out run, 2 run, 3 run ... entries (quadratic probing), so that used
 * entries form no long clusters: run i begins run * i * (i + 3) / 2 entries after the first.
 * (Laarman, van de Pol, Weber, FMCAD 2010, "walking the line"; Oortwijn, van Dijk, van de
 * Pol, SPIN 2017, section 3, with ranges of a fixed size. Here only the walk is fixed: a get
 * may fetch any part of a run.)
 */

/*
 * Return the number of the entry that follows entry on a walk. entries: number of entries in
 * the index. done: number of entries of the walk up to and including entry. run: entries of a
 * run, a power of two.
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
 * KDSM_OP_FIND: in one round trip, however full the table is, the CPU of the target finds or
 * puts a node of 16 bytes. The operation has the effect of gets and a CAS of the caller, and
 * may run concurrently with gets and CASes of other nodes.
 *
 * The part holds the index, entries of 8 bytes from the operation's offset on, and nodes of
 * 16 bytes, from data on. The entry of a node holds its number; nodes
 * first..first+nodes-1 are in this part. The operation examines at most probes entries of the
 * node's walk, from entry on; done others precede entry. The outcome is one of
 *
 * PUT		the entry was empty, and now holds fragment and number
 * FOUND	the entry holds the fragment, and the number of this same node in this part
 * ELSEWHERE	the entry holds the fragment, and the number of a node in another part. The
 *		caller compares that node, and if the nodes differ, continues after the entry
 *		(kdsm_walk_next())
 * FULL		none of these in probes entries
 *
 * The caller stores the node where number says, for example in its own part, before the
 * operation, because other nodes follow the entry at once.
 */
enum kdsm_find_outcome {
	KDSM_FIND_PUT = 1,
	KDSM_FIND_FOUND,
	KDSM_FIND_ELSEWHERE,
	KDSM_FIND_FULL,
};

/* Upper bound of the entries of a walk that all finds for one node examine */
#define KDSM_FIND_PROBES_MAX	2048

struct kdsm_find {
	__u64 entries;		/* in the index, 1..2^40 */
	__u64 nodes;		/* in this part, 1..2^40 */
	__u64 data;		/* offset in the part, a multiple of 8 */
	__u64 first;		/* number of the first node of this part, at most 2^40 */
	__u64 node[2];
	__u64 ignore;		/* bits of the first word of nodes that are not compared */
	__u64 entry;		/* first to examine, below entries; (out) last examined */
	__u64 number;		/* to put, below 2^40; (out) number in the entry */
	__u32 probes;		/* 1..KDSM_FIND_PROBES_MAX - done; (out) probes that are left */
	__u32 done;		/* entries of the walk before entry; (out) up to and with entry */
	__u32 run;		/* of the walk, in entries: a power of two */
	__u16 fragment;		/* low 16 bits of the node's hash */
	__u16 outcome;		/* 0; (out) enum kdsm_find_outcome */
};

/* Check a find in a part of size bytes, with the index at that offset: 0, -EINVAL, -ERANGE. */
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
 * Judge an entry that is not empty. 0: the entry holds another fragment. Otherwise *number is
 * the number in the entry. KDSM_FIND_ELSEWHERE: the number is of a node in another part.
 * KDSM_FIND_FOUND: the number is of a node in this part, which the caller has to compare
 * (kdsm_find_same()). -EIO: the word is no entry, because entries that only CPUs change are
 * never torn.
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

/* Whether the node of these two words is the one that find looks for. */
static inline int kdsm_find_same(const struct kdsm_find *find, __u64 a, __u64 b)
{
	return !((a ^ find->node[0]) & ~find->ignore) && b == find->node[1];
}

/*
 * Record the outcome of one entry. Return 0 after moving to the next entry, or the outcome
 * with which the find ends.
 */
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

#endif /* _UAPI_KDSM_TABLE_H */
