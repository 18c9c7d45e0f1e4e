// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting lines over all nodes.
 *
 * The head is a word of the home node: the ticket that is drawn next, and the value,
 * which each ticket lowers and each post raises by one. One fetch-and-add does both, as
 * the value is stored with a bias and so never borrows from the ticket. Ticket plus
 * value is the number of posts: ticket t may pass when that is above t. So a ticket that
 * found the value above 0 passes at once, and a post that found it at 0 or above has
 * nobody to wake; else it is the post of ticket (posts before it), which it goes to tell.
 *
 * They meet in the entry of the ticket, in a ring at home, which changes by
 * compare-and-swap alone:
 *
 *	older, final -> WAITING (t, node) -> POSTED -> DONE
 *	older, final -> POSTED -> DONE		the post comes before the waiter
 *	WAITING -> DONE				the waiter finds that it was posted
 *	WAITING -> GONE -> DONE			the waiter gives up, the post finds that
 *	GONE -> BACK -> older, DONE		the same, but the ticket is given back
 *
 * Who makes it POSTED then puts the ticket's bell, a word of the waiter's own part, on
 * which that sleeps. Who passes makes it DONE. Who gives up makes it GONE, and the post
 * that comes to it makes it DONE and is made again, for the next one. An entry is used
 * again, KDSM_LINE_MOST tickets later, when it is final: 0 or DONE. One that is GONE is
 * not, or its post would find nothing that tells it to go on, and be lost.
 *
 * So that those who give up do not fill the ring, they give back the tickets that were
 * drawn last, as far as nobody waits with them (retire): GONE becomes BACK, so that just
 * one does it, and then the head says that the ticket was not drawn. That compares the
 * head as it was before: posts only rise, and no other gives that ticket back, so it was
 * the last and not posted all the time. Then the entry becomes what it might be if the
 * ticket had never been drawn: DONE, of the ticket a ring before. It does not stay BACK,
 * as who draws the ticket again does not look at the entry if it passes at once. Who
 * draws it sooner finds BACK of its own ticket, which is as good as final.
 *
 * Posts are not lost with those who die. A waiter looks around every SLICE. If its
 * ticket was posted two looks ago and nobody told it, it makes WAITING into DONE by itself.
 * An entry that is POSTED at two looks was that of a dead waiter, and one that is GONE
 * though it was posted has a dead post: the one who looks makes it DONE and posts again.
 * But one that is BACK is of somebody who died while giving the ticket back; it may have
 * been drawn again and passed, so that another post would let one pass too many. It just
 * becomes DONE: if it was not given back, its post finds that out, unless that died, too.
 * If it lived and was slow, it finds that out by its own compare-and-swap; a waiter then
 * draws another ticket.
 */
#include <errno.h>
#include "internal.h"

/* ---- the head ---- */

#define BIAS		0x40000000U
#define ONE_TICKET	(UINT64_C(1) << 32)

static uint64_t pack(uint32_t ticket, int32_t value)
{
	return (uint64_t)ticket << 32 | (uint32_t)(value + (int32_t)BIAS);
}

/* False: it is none. Posts that are too many may raise it for a moment. */
static bool unpack(uint64_t word, struct kdsm_line_head *head)
{
	uint32_t low = word;

	head->ticket = word >> 32;
	head->value = (int32_t)(low - BIAS);
	return low && low < 3 * BIAS;
}

/* Add to the head, but to nothing that is none. */
static int head_add(const struct kdsm_line *line, uint64_t add, struct kdsm_line_head *before)
{
	uint64_t word;
	int ret;

	ret = kdsm_faa(line->region, line->home, LINE_PLACE(line, head), add, &word);
	if (ret || unpack(word, before))
		return ret;
	if (add)
		kdsm_faa(line->region, line->home, LINE_PLACE(line, head), -add, NULL);
	return -EPROTO;
}

/* 0: it was expected, and is desired now. -EBUSY: it was not, and *expected is what it is. */
static int word_change(const struct kdsm_line *line, uint64_t offset, uint64_t *expected,
		       uint64_t desired)
{
	uint64_t former;
	int ret;

	ret = kdsm_cas(line->region, line->home, offset, *expected, desired, &former);
	if (ret || former == *expected)
		return ret;
	*expected = former;
	return -EBUSY;
}

int kdsm_head_change(const struct kdsm_line *line, const struct kdsm_line_head *from,
		     uint32_t ticket, int32_t value)
{
	uint64_t word = pack(from->ticket, from->value);

	return word_change(line, LINE_PLACE(line, head), &word, pack(ticket, value));
}

int kdsm_line_init(const struct kdsm_line *line, uint32_t value)
{
	struct kdsm_region *region = line->region;
	uint64_t word = 0;
	int ret;

	if (region->coherent)
		return -EOPNOTSUPP;
	if (line->offset % 64 || line->home >= region->kdsm->nodes || value > KDSM_SEM_MAX)
		return -EINVAL;
	if (kdsm_range_check(region, line->offset, KDSM_LINE_SIZE))
		return -ERANGE;
	if (!region->writable)
		return -EACCES;
	ret = word_change(line, LINE_PLACE(line, head), &word, pack(0, value));
	return ret == -EBUSY ? 0 : ret;
}

int kdsm_line_read(const struct kdsm_line *line, struct kdsm_line_head *head)
{
	return head_add(line, 0, head);
}

int kdsm_line_draw(const struct kdsm_line *line, struct kdsm_line_head *before)
{
	return head_add(line, ONE_TICKET - 1, before);
}

int kdsm_line_try(const struct kdsm_line *line)
{
	struct kdsm_line_head head;
	int ret;

	do {
		ret = kdsm_line_read(line, &head);
		if (ret)
			return ret;
		if (head.value <= 0)
			return -EAGAIN;
		ret = kdsm_head_change(line, &head, head.ticket + 1, head.value - 1);
	} while (ret == -EBUSY);
	return ret;
}

int kdsm_entry_read(const struct kdsm_line *line, uint32_t ticket, uint64_t *entry)
{
	return kdsm_faa(line->region, line->home, LINE_SLOT(line, ring, ticket), 0, entry);
}

int kdsm_entry_change(const struct kdsm_line *line, uint32_t ticket, uint64_t *expected,
		      uint64_t desired)
{
	return word_change(line, LINE_SLOT(line, ring, ticket), expected, desired);
}

/* ---- posting ---- */

static int ring_bell(const struct kdsm_line *line, uint32_t ticket, uint32_t node)
{
	return kdsm_put_notify(line->region, node, LINE_SLOT(line, bells, ticket),
			       (uint64_t)ticket + 1);
}

/* Tell who has the ticket, which was posted. -ESTALE: it gave up; make another post. */
static int deliver(const struct kdsm_line *line, uint32_t ticket)
{
	uint64_t entry;
	int32_t age;
	int ret;

	ret = kdsm_entry_read(line, ticket, &entry);
	while (!ret) {
		age = ticket - entry_ticket(entry);
		if (is_given_up(entry) && !age) {
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_DONE, 0));
			if (!ret)
				return -ESTALE;
		} else if (is_of(entry, ticket, ENTRY_WAITING)) {
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_POSTED,
							   entry_node(entry)));
			if (!ret)
				return ring_bell(line, ticket, entry_node(entry));
		} else if ((age > 0 || !entry) && is_final(entry)) {
			/* Who has it has not come yet. */
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_POSTED, 0));
			if (!ret)
				return 0;
		} else {
			/* It has helped itself; or has to wait for the entry, and then will. */
			return 0;
		}
		if (ret == -EBUSY)
			ret = 0;
	}
	return ret;
}

/* Raise the value; *before: how it was. -ENOENT: nobody waits, and the line keeps nothing. */
static int raise_value(const struct kdsm_line *line, struct kdsm_line_head *before)
{
	int ret;

	if (line->keeps) {
		ret = head_add(line, 1, before);
		if (!ret && before->value >= KDSM_SEM_MAX) {
			head_add(line, -1, before);
			ret = -EOVERFLOW;
		}
		return ret;
	}
	do {
		ret = kdsm_line_read(line, before);
		if (ret)
			return ret;
		if (before->value >= 0)
			return -ENOENT;
		ret = kdsm_head_change(line, before, before->ticket, before->value + 1);
	} while (ret == -EBUSY);
	return ret;
}

int kdsm_line_post(const struct kdsm_line *line)
{
	struct kdsm_line_head before;
	int ret;

	do {
		ret = raise_value(line, &before);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
		if (before.value >= 0)
			return 0;
		ret = deliver(line, posts(&before));
	} while (ret == -ESTALE);
	return ret;
}

int kdsm_line_post_all(const struct kdsm_line *line)
{
	struct kdsm_line_head before;
	uint32_t ticket;
	int first = 0;
	int ret;

	do {
		ret = kdsm_line_read(line, &before);
		if (ret)
			return ret;
		if (before.value >= 0)
			return 0;
		ret = kdsm_head_change(line, &before, before.ticket, 0);
	} while (ret == -EBUSY);
	if (ret)
		return ret;
	for (ticket = posts(&before); ticket != before.ticket; ticket++) {
		ret = deliver(line, ticket);
		if (ret && ret != -ESTALE && !first)
			first = ret;
	}
	return first;
}
