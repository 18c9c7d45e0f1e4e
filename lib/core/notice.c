// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Joining write notices, so that those of two signatures fit in one. The module has joins of about
 * the same cost in kmod/coherence/signature.c, but prefers old notices. "Full signatures" in
 * Documentation/design/coherence.md explains why a join demands all that its notices did.
 */
#include <stdlib.h>
#include "core/core.h"

/* Largest cost of a join, in blocks; see join() */
#define JOIN_MAX	63U

/* Whether b continues a: the next nodes wrote the next blocks, in equal shares, at the same time */
static bool continues(const struct kdsm_notice *b, const struct kdsm_notice *a)
{
	uint32_t share = a->share ? a->share : a->count;

	return a->ts == b->ts && a->first + a->count == b->first &&
	       a->writer != KDSM_WRITER_UNKNOWN && share && share <= UINT16_MAX &&
	       a->count % share == 0 &&
	       b->writer == a->writer + a->count / share &&
	       (b->share ? b->share == share : b->count <= share);
}

/* Number of blocks whose writer the notice names */
static uint64_t known(const struct kdsm_notice *notice)
{
	return notice->writer == KDSM_WRITER_UNKNOWN ? 0 : notice->count;
}

/*
 * Join two notices, of which b does not begin before a. Returns the cost, in blocks: twice the
 * number of blocks of which the join demands newer content than the notices, plus the number of
 * blocks whose writer the join forgets. UINT64_MAX: the join has too many blocks for one notice.
 */
static uint64_t join(const struct kdsm_notice *a, const struct kdsm_notice *b,
		     struct kdsm_notice *sum)
{
	const struct kdsm_notice *newer = a->ts > b->ts ? a : b;
	uint64_t a_end = a->first + a->count, end = kdsm_larger(a_end, b->first + b->count), more;

	if (end - a->first > UINT32_MAX)
		return UINT64_MAX;
	*sum = *newer;
	sum->first = a->first;
	sum->count = (uint32_t)(end - a->first);
	if (continues(b, a)) {
		sum->writer = a->writer;
		sum->share = a->share ? a->share : (uint16_t)a->count;
		return 0;
	}
	more = a->ts == b->ts ? kdsm_larger(a_end, b->first) - a_end : sum->count - newer->count;
	if (!more && (a->ts != b->ts || (a->writer == b->writer && !a->share && !b->share)))
		return 0;
	sum->writer = KDSM_WRITER_UNKNOWN;
	sum->share = 0;
	return 2 * more + known(a) + known(b);
}

/*
 * Join neighbours in a list sorted by blocks, if the join costs at most limit, until room notices
 * are left. Returns the number of remaining notices.
 */
static unsigned int join_all(struct kdsm_notice *list, unsigned int count, unsigned int room,
			     uint64_t limit)
{
	struct kdsm_notice sum;
	unsigned int left = 1, i;

	for (i = 1; i < count; i++)
		if (left + count - i > room && join(&list[left - 1], &list[i], &sum) <= limit)
			list[left - 1] = sum;
		else
			list[left++] = list[i];
	return left;
}

static int by_block(const void *a, const void *b)
{
	const struct kdsm_notice *one = a, *other = b;

	return one->first < other->first ? -1 : one->first > other->first;
}

static int by_age(const void *a, const void *b)
{
	const struct kdsm_notice *one = a, *other = b;

	if (one->ts != other->ts)
		return one->ts > other->ts ? -1 : 1;
	return by_block(b, a);
}

unsigned int kdsm_notices_join(struct kdsm_notice *list, unsigned int count, unsigned int room)
{
	uint64_t limit;

	qsort(list, count, sizeof(*list), by_block);
	for (limit = 0; limit <= JOIN_MAX && count > room; limit = 4 * limit + 3)
		count = join_all(list, count, room, limit);
	qsort(list, count, sizeof(*list), by_age);
	return count;
}
