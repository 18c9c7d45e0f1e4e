// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting lines that span all nodes: the head, the ring of entries, and posting. Joining,
 * sleeping and giving up are in wait_queue_sleep.c.
 *
 * The head is a word of the home node and consists of the number of the next ticket and the
 * value. Drawing a ticket lowers the value by one; a post raises the value by one. One
 * fetch-and-add draws a ticket and lowers the value, because the value is stored with a
 * bias and so never borrows from the ticket. The number of posts (the initial value of a
 * semaphore included) is the next ticket plus the value: ticket t may pass when this number
 * is above t. So a thread that draws a ticket while the value is above 0 passes at once, and
 * a post that finds the value at 0 or above has no waiter to wake. Any other post belongs to
 * the ticket whose number is the number of posts before it, and the poster delivers the post
 * to that ticket.
 *
 * Waiter and poster meet in the entry of the ticket, in a ring at home. Entries change by
 * compare-and-swap only:
 *
 *	older, final -> WAITING (t, node) -> POSTED -> DONE
 *	older, final -> POSTED -> DONE		the post comes before the waiter
 *	WAITING -> DONE				the waiter finds that it was posted
 *	POSTED -> MOVED				the waiter is dead, the post goes on
 *	WAITING -> GONE -> DONE			the waiter gives up, the post finds that
 *	GONE -> BACK -> older, DONE		the same, but the ticket is given back
 *	BACK -> MOVED				the post comes meanwhile, and goes on
 *	BACK -> DOUBT -> MOVED			the thread that gives it back is dead
 *
 * After making an entry POSTED, the poster rings the ticket's bell: it puts a word of the
 * waiter's own part, on which the waiter sleeps. A waiter that passes makes the entry DONE.
 * A waiter that gives up makes the entry GONE; the poster that finds it GONE makes it DONE
 * and posts again, for the next ticket. KDSM_LINE_MOST tickets later the entry is reused,
 * if it is final: 0, DONE, MOVED or DOUBT. A GONE entry is not final: if it were reused, its
 * post would not find the mark that tells the poster to post again, and the post would be
 * lost.
 *
 * Tickets whose waiters gave up must not fill the ring. retire() therefore gives back the
 * tickets that were drawn last, as long as their entries are GONE. It first makes the entry
 * BACK, so that only one thread gives the ticket back; then it changes the head as if the
 * ticket had not been drawn. The compare-and-swap of the head compares with the state that
 * retire() read before it made the entry BACK. The compare-and-swap succeeds only if the
 * ticket was the last one and was not posted in the meantime, because posts only rise and no
 * other thread gives this ticket back. Then retire() makes the entry what it might be if the
 * ticket had never been drawn: DONE, of the ticket one ring before. The entry must not stay
 * BACK, because a thread that draws the ticket again and passes at once does not look at the
 * entry. A thread that draws the ticket before the entry changes finds BACK with its own
 * ticket, and treats that as final.
 *
 * That thread may give up, too, and make the entry BACK once more, while the thread that
 * gave the ticket back before is still about to change its BACK. If the two BACK were the
 * same word, the slow thread would make the other's entry DONE, the next post would find no
 * waiter in the entry, and the post would be lost. So each BACK has a tag of its own, from a
 * counter beside the head.
 *
 * Posts survive the death of threads. A waiter looks around every SLICE. If its ticket was
 * already posted at an earlier look and the post has still not reached its entry, the
 * waiter makes WAITING into DONE by itself; so does a waiter that was about to give up. An
 * entry that is POSTED at two looks belongs to a dead waiter. An entry that is GONE at two
 * looks although its ticket was posted belongs to a dead poster. In both cases the thread
 * that looks makes the entry MOVED or DONE and posts again. An entry that is BACK at two
 * looks belongs to a thread that died while it gave the ticket back. The ticket may have been
 * drawn again and have passed, so another post would let one thread too many pass. But if
 * the ticket was not given back, its poster still comes to the entry, unless the poster died,
 * too. The thread that looks cannot tell the two cases apart and makes the entry DOUBT: a
 * poster that finds its own ticket in DOUBT posts again. A thread that was taken for dead but
 * was only slow notices because its own compare-and-swap fails; a waiter then draws another
 * ticket.
 *
 * A waiter may be so slow between its ticket and its entry that the ticket one ring later
 * takes the entry. The poster of such a waiter finds the later ticket, or an older one that
 * still uses the entry, and leaves the post to the waiter, which passes as soon as the head
 * says that its ticket was posted. Only if the entry was MOVED, the post is another ticket's
 * by then, and the waiter draws another ticket. So the thread that reuses an entry in MOVED
 * or DOUBT first notes ticket and state in one of a few words beside the head, where waiter
 * and poster look for them. A waiter without an entry that gives up notes DOUBT as well, so
 * that its poster posts again. A newer note in the same word replaces an older one.
 */
#include <errno.h>
#include "internal.h"

/* ---- the head ---- */

#define BIAS		0x40000000U	/* the low half of the head holds the value plus this */
#define ONE_TICKET	(UINT64_C(1) << 32)	/* the high half holds the next ticket */

static uint64_t pack(uint32_t ticket, int32_t value)
{
	return (uint64_t)ticket << 32 | (uint32_t)(value + (int32_t)BIAS);
}

/*
 * Returns false if the word is no initialized head. The bound is above KDSM_SEM_MAX, because
 * a post that raise_value() undoes raises the value for a moment.
 */
static bool unpack(uint64_t word, struct kdsm_line_head *head)
{
	uint32_t low = word;

	head->ticket = word >> 32;
	head->value = (int32_t)(low - BIAS);
	return low && low < 3 * BIAS;
}

/* Add to the head. If the word is no initialized head, undo the addition. */
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

/*
 * Compare-and-swap a word at home. Returns 0 if the word had the value *expected; otherwise
 * -EBUSY, with the current value in *expected.
 */
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

int kdsm_line_tag(const struct kdsm_line *line, uint32_t *tag)
{
	uint64_t word;
	int ret;

	ret = kdsm_faa(line->region, line->home, LINE_PLACE(line, last_tag), 1, &word);
	*tag = word;
	return ret;
}

/* ---- notes ---- */

static int write_note(const struct kdsm_line *line, uint64_t note)
{
	uint64_t place = LINE_NOTE(line, entry_ticket(note)), seen = 0;
	int ret;

	do {
		ret = word_change(line, place, &seen, note);
	} while (ret == -EBUSY && seen != note);
	return ret == -EBUSY ? 0 : ret;
}

int kdsm_note_read(const struct kdsm_line *line, uint32_t ticket, uint64_t *note)
{
	int ret;

	ret = kdsm_faa(line->region, line->home, LINE_NOTE(line, ticket), 0, note);
	if (!ret && entry_ticket(*note) != ticket)
		*note = 0;
	return ret;
}

int kdsm_note_give_up(const struct kdsm_line *line, uint32_t ticket)
{
	return write_note(line, make_entry(ticket, ENTRY_DOUBT, 0));
}

int kdsm_note_withdraw(const struct kdsm_line *line, uint32_t ticket)
{
	uint64_t note = make_entry(ticket, ENTRY_DOUBT, 0);

	return word_change(line, LINE_NOTE(line, ticket), &note, 0);
}

/* The entry belongs to a later ticket. Returns -ESTALE if the post was in doubt. */
static int take_doubt(const struct kdsm_line *line, uint32_t ticket)
{
	uint64_t note = make_entry(ticket, ENTRY_DOUBT, 0);
	int ret;

	ret = word_change(line, LINE_NOTE(line, ticket), &note,
			  make_entry(ticket, ENTRY_MOVED, 0));
	if (ret)
		return ret == -EBUSY ? 0 : ret;
	return -ESTALE;
}

int kdsm_entry_reuse(const struct kdsm_line *line, uint32_t ticket, uint64_t *expected,
		     uint64_t desired)
{
	unsigned int state = entry_state(*expected);
	int ret = 0;

	/*
	 * If the change fails, the note stays and does no harm: it still tells the waiter of
	 * the former ticket the truth, and its poster does not look for a note.
	 */
	if (state == ENTRY_DOUBT || state == ENTRY_MOVED)
		ret = write_note(line, make_entry(entry_ticket(*expected), state, 0));
	return ret ? ret : kdsm_entry_change(line, ticket, expected, desired);
}

/* ---- posting ---- */

/* Wake the waiter of a ticket, which sleeps on the ticket's bell in its own node's part. */
static int ring_bell(const struct kdsm_line *line, uint32_t ticket, uint32_t node)
{
	return kd_put_word(line->region, node, LINE_SLOT(line, bells, ticket),
			   (uint64_t)ticket + 1);
}

/* Deliver a post to its ticket. Returns -ESTALE if the waiter gave up: post again. */
static int deliver(const struct kdsm_line *line, uint32_t ticket)
{
	uint64_t entry;
	int32_t age;
	int ret;

	ret = kdsm_entry_read(line, ticket, &entry);
	while (!ret) {
		age = ticket - entry_ticket(entry);
		if (is_of(entry, ticket, ENTRY_GONE)) {
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_DONE, 0));
			if (!ret)
				return -ESTALE;
		} else if (is_of(entry, ticket, ENTRY_BACK) || is_of(entry, ticket, ENTRY_DOUBT)) {
			/* A thread that drew the ticket again may not have entered it yet. */
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_MOVED, 0));
			if (!ret)
				return -ESTALE;
		} else if (is_of(entry, ticket, ENTRY_WAITING)) {
			ret = kdsm_entry_change(line, ticket, &entry,
						make_entry(ticket, ENTRY_POSTED,
							   entry_node(entry)));
			if (!ret)
				return ring_bell(line, ticket, entry_node(entry));
		} else if ((age > 0 || !entry) && is_final(entry)) {
			/* The thread that drew the ticket has not entered it yet. */
			ret = kdsm_entry_reuse(line, ticket, &entry,
					       make_entry(ticket, ENTRY_POSTED, 0));
			if (!ret)
				return 0;
		} else {
			/*
			 * The waiter has noticed the post by itself, or is waiting for the
			 * entry and will notice before it gives up.
			 */
			return age < 0 ? take_doubt(line, ticket) : 0;
		}
		if (ret == -EBUSY)
			ret = 0;
	}
	return ret;
}

/*
 * Raise the value; *before is the state before. Returns -ENOENT if no thread waits and the
 * line keeps no posts.
 */
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
