// SPDX-License-Identifier: GPL-2.0
/* Bounded signatures; see coherence.h. There are no locks: the caller guards the signature. */
#include <linux/minmax.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "internal.h"

/* Number of notices that a full signature keeps when it makes room */
#define KDSM_NOTICES_KEPT	(KDSM_NOTICES_MAX / 2)

/* Largest cost of a join, in blocks; see kdsm_notice_join() */
#define KDSM_JOIN_MAX		63U

void kdsm_signature_init(struct kdsm_signature *signature)
{
	memset(signature, 0, sizeof(*signature));
}

/*
 * Take the blocks that a newer notice covers off the ends of an older notice. The newer
 * notice suffices for these blocks, because an owner made it, and that owner's content had
 * the older writes. The same holds for a notice of equal timestamp: it is the same
 * writer's, or covers other blocks, or is a summary. Only whole shares leave at the front, because
 * kdsm_notice_writer() counts shares from the first block. Returns false if no block is left.
 */
static bool kdsm_notice_trim(struct kdsm_notice *notice, const struct kdsm_notice *newer)
{
	u64 end = notice->first + notice->count, newer_end = newer->first + newer->count;

	if (newer->first <= notice->first && newer_end > notice->first) {
		u64 gone = min(newer_end, end) - notice->first, shares = 0;

		if (notice->share && newer_end < end) {
			shares = gone / notice->share;
			gone = shares * notice->share;
		}
		notice->first += gone;
		notice->count -= gone;
		notice->writer += shares;
	} else if (newer->first < end && newer_end >= end) {
		notice->count = newer->first - notice->first;
	}
	return notice->count;
}

/* ---- making room ---- */

/* Extend a range so that it includes blocks first..end-1 */
static void kdsm_raised_add(struct kdsm_raised *raised, u64 first, u64 end)
{
	raised->first = raised->end ? min(raised->first, first) : first;
	raised->end = max(raised->end, end);
}

/* Number of blocks whose writer the notice names */
static u64 kdsm_notice_known(const struct kdsm_notice *notice)
{
	return kdsm_notice_is_summary(notice) ? 0 : notice->count;
}

/*
 * Whether b continues a: the next nodes wrote the next blocks, in equal shares, with the same
 * timestamp. The last share of b may be smaller.
 */
static bool kdsm_notice_continues(const struct kdsm_notice *b, const struct kdsm_notice *a)
{
	u32 share = a->share ?: a->count;

	return a->ts == b->ts && a->first + a->count == b->first && !kdsm_notice_is_summary(a) &&
	       share <= U16_MAX && a->count % share == 0 &&
	       b->writer == a->writer + a->count / share &&
	       (b->share ? b->share == share : b->count <= share);
}

/*
 * Join two notices, of which b does not begin before a. *more receives a range that includes all
 * blocks of which the join demands newer content than the notices do. Returns the cost, in blocks:
 * twice the length of *more, plus the number of blocks whose writer the join forgets. U64_MAX: the
 * join has too many blocks for one notice.
 */
static u64 kdsm_notice_join(const struct kdsm_notice *a, const struct kdsm_notice *b,
			    struct kdsm_notice *join, struct kdsm_raised *more)
{
	const struct kdsm_notice *newer = a->ts > b->ts ? a : b;
	u64 a_end = a->first + a->count, newer_end = newer->first + newer->count;
	u64 end = max(a_end, b->first + b->count);

	if (end - a->first > U32_MAX)
		return U64_MAX;
	if (a->ts == b->ts) {
		more->first = a_end;
		more->end = b->first;
	} else {
		more->first = a->first < newer->first ? a->first : newer_end;
		more->end = newer_end < end ? end : newer->first;
	}
	more->end = max(more->first, more->end);
	if (kdsm_notice_continues(b, a)) {
		*join = *a;
		join->share = a->share ?: a->count;
		join->count += b->count;
		return 0;
	}
	*join = *newer;
	join->first = a->first;
	join->count = end - a->first;
	/* No writer is forgotten: the newer one has all blocks, or both have one writer or none */
	if (more->first == more->end &&
	    (a->ts != b->ts || (a->writer == b->writer && !a->share && !b->share)))
		return 0;
	join->writer = KDSM_NOBODY;
	join->share = 0;
	return 2 * (more->end - more->first) + kdsm_notice_known(a) + kdsm_notice_known(b);
}

/*
 * Join neighbouring notices, if both are older than ts and the join costs at most limit. order has
 * the places of the notices in list, sorted by first block. Joins that cost nothing go on to the
 * end, others stop when KDSM_NOTICES_KEPT are left. A notice that was joined to another keeps its
 * place, with count 0. Returns the number of remaining notices.
 */
static unsigned int kdsm_signature_join(struct kdsm_notice *list, u64 *order, unsigned int count,
					u64 ts, u64 limit, struct kdsm_raised *raised)
{
	struct kdsm_notice *a, *b, join;
	unsigned int left = 1, i;
	struct kdsm_raised more;

	for (i = 1; i < count; i++) {
		a = &list[order[left - 1]];
		b = &list[order[i]];
		if ((limit && left + count - i <= KDSM_NOTICES_KEPT) ||
		    kdsm_notice_join(a, b, &join, &more) > limit || join.ts >= ts) {
			order[left++] = order[i];
			continue;
		}
		if (more.first < more.end)
			kdsm_raised_add(raised, more.first, more.end);
		if (join.ts == b->ts) {
			order[left - 1] = order[i];
			swap(a, b);
		}
		*a = join;
		b->count = 0;
	}
	return left;
}

static int kdsm_order_compare(const void *a, const void *b)
{
	return *(const u64 *)a < *(const u64 *)b ? -1 : *(const u64 *)a > *(const u64 *)b;
}

/*
 * Make room in a full signature. The cheapest joins come first, and among these the joins of old
 * notices, whose writers matter least. If cheap joins do not suffice, the oldest notices leave.
 */
static void kdsm_signature_coarsen(struct kdsm_signature *signature, struct kdsm_raised *raised)
{
	struct kdsm_notice *list = signature->notices;
	u64 middle = list[signature->count / 2].ts, limit;
	u64 order[KDSM_NOTICES_MAX];
	unsigned int count = signature->count, gone, left = 0, i;

	BUILD_BUG_ON(KDSM_WRITER_UNKNOWN != KDSM_NOBODY);
	/* order sorts by first block, which has less than 56 bits, with the place in the low 8 */
	BUILD_BUG_ON(KDSM_NOTICES_MAX > 256);
	for (i = 0; i < count; i++)
		order[i] = list[i].first << 8 | i;
	sort(order, count, sizeof(*order), kdsm_order_compare, NULL);
	for (i = 0; i < count; i++)
		order[i] &= 0xff;
	for (limit = 0; limit <= KDSM_JOIN_MAX && count > KDSM_NOTICES_KEPT;
	     limit = 4 * limit + 3) {
		count = kdsm_signature_join(list, order, count, middle, limit, raised);
		count = kdsm_signature_join(list, order, count, U64_MAX, limit, raised);
	}
	gone = count > KDSM_NOTICES_KEPT ? count - KDSM_NOTICES_KEPT : 0;
	for (i = 0; i < signature->count; i++) {
		if (!list[i].count)
			continue;
		if (gone) {
			WRITE_ONCE(signature->floor, max(signature->floor, list[i].ts));
			gone--;
		} else {
			list[left++] = list[i];
		}
	}
	signature->count = left;
}

bool kdsm_signature_add(struct kdsm_signature *signature, const struct kdsm_notice *added,
			struct kdsm_raised *raised)
{
	struct kdsm_notice *list = signature->notices, trimmed = *added, *notice = &trimmed;
	unsigned int at = signature->count, place = 0, i, left = 0;

	if (notice->ts <= signature->floor)
		return false;
	for (; at && list[at - 1].ts >= notice->ts; at--) {
		/*
		 * Notices of equal timestamp stay in order of blocks. So neighbours, visited from
		 * the last one on, each trim an end of the notice.
		 */
		if (!place && list[at - 1].ts == notice->ts && list[at - 1].first < notice->first)
			place = at;
		if (!kdsm_notice_trim(notice, &list[at - 1]))
			return false;
	}
	place -= place ? at : 0;
	for (i = 0; i < at; i++)
		if (kdsm_notice_trim(&list[i], notice))
			list[left++] = list[i];
	memmove(&list[left], &list[at], (signature->count - at) * sizeof(*list));
	signature->count -= at - left;
	at = left + place;
	if (signature->count == KDSM_NOTICES_MAX) {
		kdsm_signature_coarsen(signature, raised);
		/* News even if a join covers the notice now: no acquire has looked at its copies */
		kdsm_signature_add(signature, notice, raised);
		return true;
	}
	memmove(&list[at + 1], &list[at], (signature->count - at) * sizeof(*list));
	signature->count++;
	list[at] = *notice;
	return true;
}

void kdsm_signature_raise(struct kdsm_signature *signature, u64 floor)
{
	unsigned int gone = 0;

	if (floor <= signature->floor)
		return;
	WRITE_ONCE(signature->floor, floor);
	while (gone < signature->count && signature->notices[gone].ts <= floor)
		gone++;
	signature->count -= gone;
	memmove(signature->notices, signature->notices + gone,
		signature->count * sizeof(*signature->notices));
}

u64 kdsm_signature_newest(const struct kdsm_signature *signature, unsigned int *writer)
{
	u64 newest = signature->floor;
	unsigned int i;

	*writer = KDSM_NOBODY;
	/* A signature that comes from a program may have any order */
	for (i = 0; i < signature->count; i++) {
		const struct kdsm_notice *notice = &signature->notices[i];

		if (notice->ts < newest || (notice->ts == newest && *writer != KDSM_NOBODY))
			continue;
		newest = notice->ts;
		*writer = notice->writer;
	}
	return newest;
}

const struct kdsm_notice *kdsm_signature_find(const struct kdsm_signature *signature, u64 index,
					      unsigned int node)
{
	const struct kdsm_notice *notice;
	unsigned int i;

	for (i = signature->count; i--;) {
		notice = &signature->notices[i];
		if (index >= notice->first && index - notice->first < notice->count &&
		    kdsm_notice_writer(notice, index) != node)
			return notice;
	}
	return NULL;
}

u64 kdsm_signature_floor(const struct kdsm_signature *signature, u64 index)
{
	const struct kdsm_notice *notice;
	u64 floor = signature->floor;
	unsigned int i;

	for (i = 0; i < signature->count; i++) {
		notice = &signature->notices[i];
		if (kdsm_notice_is_summary(notice) && index >= notice->first &&
		    index - notice->first < notice->count)
			floor = max(floor, notice->ts);
	}
	return floor;
}

void kdsm_signature_flatten(struct kdsm_signature *signature)
{
	unsigned int writer;
	u64 floor = kdsm_signature_newest(signature, &writer);

	kdsm_signature_init(signature);
	signature->floor = floor;
}

bool kdsm_signature_sane(const struct kdsm_signature *signature, unsigned int nodes,
			 u64 blocks)
{
	unsigned int i;

	if (signature->count > KDSM_NOTICES_MAX || signature->reserved)
		return false;
	for (i = 0; i < signature->count; i++) {
		const struct kdsm_notice *notice = &signature->notices[i];
		u64 writer = notice->writer;

		if (!notice->count || notice->first >= blocks ||
		    notice->count > blocks - notice->first)
			return false;
		/* The last writer, as u64: a hostile count makes kdsm_notice_writer() overflow */
		if (notice->share)
			writer += (notice->count - 1) / notice->share;
		if (writer >= nodes && (writer != KDSM_NOBODY || notice->share))
			return false;
	}
	return true;
}
