// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting in a line: joining it, sleeping, giving up, and looking for dead threads.
 * wait_queue.c describes the words and their states.
 */
#include <errno.h>
#include <unistd.h>
#include "internal.h"

#define MOST	KDSM_LINE_MOST
#define SLICE	1000000000	/* longest sleep between two looks around, in ns */
#define NAP	1000		/* pause before the waiter reads an entry again, in us */

static uint32_t own_node(const struct kdsm_line *line)
{
	return line->region->node;
}

static uint64_t own_entry(const struct kdsm_line_wait *wait, unsigned int state)
{
	return make_entry(wait->ticket, state, own_node(wait->line));
}

static uint64_t left(const struct kdsm_line_wait *wait)
{
	return kdsm_left(wait->begin, wait->timeout);
}

/*
 * Finish an entry in place of its thread. The ticket was posted, but the thread does not
 * react: the thread is dead, or will notice that its compare-and-swap fails.
 */
static int take_over(const struct kdsm_line *line, uint64_t entry)
{
	uint32_t ticket = entry_ticket(entry);
	unsigned int after = ENTRY_MOVED;
	int ret;

	if (entry_state(entry) == ENTRY_BACK)
		after = ENTRY_DOUBT;
	else if (entry_state(entry) == ENTRY_GONE)
		after = ENTRY_DONE;
	ret = kdsm_entry_change(line, ticket, &entry, make_entry(ticket, after, 0));
	if (ret)
		return ret == -EBUSY ? 0 : ret;
	/* The post of an entry in doubt is consumed, or its poster is about to come. */
	return after == ENTRY_DOUBT ? 0 : kdsm_line_post(line);
}

/*
 * Give back the last tickets, as long as their waiters gave up and no post has come. *last is
 * a state of the head, read a short time ago.
 */
static int retire(const struct kdsm_line *line, const struct kdsm_line_head *last)
{
	struct kdsm_line_head head = *last;
	uint64_t gone, back, after;
	uint32_t ticket, tag;
	int ret;

	while (head.value < 0) {
		ticket = head.ticket - 1;
		ret = kdsm_entry_read(line, ticket, &gone);
		if (ret || !is_of(gone, ticket, ENTRY_GONE))
			return ret;
		ret = kdsm_line_tag(line, &tag);
		if (ret)
			return ret;
		back = make_back(ticket, tag);
		after = gone;
		ret = kdsm_entry_change(line, ticket, &gone, back);
		if (!ret) {
			ret = kdsm_head_change(line, &head, ticket, head.value + 1);
			if (!ret)
				after = make_entry(ticket - MOST, ENTRY_DONE, 0);
			if (!ret || ret == -EBUSY)
				ret = kdsm_entry_change(line, ticket, &back, after);
		}
		if (ret && ret != -EBUSY)
			return ret;
		ret = kdsm_line_read(line, &head);
		if (ret)
			return ret;
	}
	return 0;
}

/* The copy may be torn, which is harmless: every change based on it is a compare-and-swap. */
static int read_ring(const struct kdsm_line *line, uint64_t ring[MOST])
{
	uint64_t place = LINE_PLACE(line, ring);
	unsigned int i;

	if (line->home != own_node(line))
		return kdsm_get(line->region, line->home, place, ring, MOST * sizeof(*ring));
	for (i = 0; i < MOST; i++)
		ring[i] = __atomic_load_n(kdsm_word(line->region, place) + i, __ATOMIC_RELAXED);
	return 0;
}

/*
 * A ticket was given back because the ring had no entry for it. Return 1 if the ring has
 * room by now, or tickets that were given up fill it; 0 if threads that wait do; or -errno.
 */
static int may_try_again(const struct kdsm_line *line)
{
	struct kdsm_line_head head;
	uint64_t ring[MOST];
	unsigned int i;
	int ret;

	ret = kdsm_line_read(line, &head);
	if (ret || head.value > -MOST)
		return ret ? ret : 1;
	ret = read_ring(line, ring);
	for (i = 0; i < MOST && !ret; i++)
		ret = is_given_up(ring[i]);
	return ret;
}

/*
 * Give the ticket back if it is the last one and not posted, and if the line is full or the
 * timeout is over. Returns 0 if this function gave the ticket back; -EBUSY if the caller must
 * wait for the entry.
 */
static int give_back(const struct kdsm_line_wait *wait, const struct kdsm_line_head *head,
		     bool is_over)
{
	struct kdsm_line_head after = { head->ticket - 1, head->value + 1 };
	int ret;

	if (is_posted(head, wait->ticket) || head->ticket != wait->ticket + 1)
		return -EBUSY;
	if (!is_over && wait->ticket - posts(head) < MOST)
		return -EBUSY;
	ret = kdsm_head_change(wait->line, head, after.ticket, after.value);
	return ret ? ret : retire(wait->line, &after);
}

/* Whether the entry belongs to this ticket or to a later one */
static bool is_taken(uint64_t entry, uint32_t ticket)
{
	return entry && (int32_t)(entry_ticket(entry) - ticket) >= 0;
}

/*
 * Wait for an entry that the ticket one ring before still uses. There are four cases:
 * - As many threads wait as the ring has entries. This function gives its ticket back, after
 *   the threads of the tickets behind it have done so.
 * - Threads gave up while later ones still wait. This function gives its ticket back, too.
 * - The thread of the older ticket is about to make the entry final.
 * - The thread of the older ticket is dead, and take_over() makes the entry final.
 */
static int await_entry(struct kdsm_line_wait *wait, uint64_t *entry)
{
	const struct kdsm_line *line = wait->line;
	uint64_t seen = *entry, since = kdsm_now();
	struct kdsm_line_head head;
	bool is_over;
	int ret;

	while (!is_final(*entry) && !is_taken(*entry, wait->ticket)) {
		ret = kdsm_line_read(line, &head);
		if (ret)
			return ret;
		is_over = !left(wait);
		ret = give_back(wait, &head, is_over);
		if (!ret && is_over)
			return -ETIMEDOUT;
		if (!ret)
			ret = may_try_again(line);
		if (ret == 1) {
			usleep(NAP);
			return -ESTALE;
		}
		if (!ret)
			return -EAGAIN;
		if (ret != -EBUSY)
			return ret;
		if (*entry != seen) {
			seen = *entry;
			since = kdsm_now();
		} else if (is_posted(&head, entry_ticket(seen)) &&
			   kdsm_now() - since > 2ULL * SLICE) {
			ret = take_over(line, seen);
			if (ret)
				return ret;
		}
		usleep(NAP);
		ret = kdsm_entry_read(line, wait->ticket, entry);
		if (ret)
			return ret;
	}
	/*
	 * The post may have come while this ticket had no entry to which it could be
	 * delivered.
	 */
	wait->late = true;
	return 0;
}

/*
 * The own entry is ENTRY_WAITING. If the ticket was posted, and was so at an earlier look, end
 * the wait without a delivery.
 */
static int help_oneself(struct kdsm_line_wait *wait, const struct kdsm_line_head *head)
{
	uint64_t entry = own_entry(wait, ENTRY_WAITING);
	int ret;

	if (!is_posted(head, wait->ticket))
		return 0;
	if (!wait->late) {
		wait->late = true;
		return 0;
	}
	ret = kdsm_entry_change(wait->line, wait->ticket, &entry, own_entry(wait, ENTRY_DONE));
	if (!ret)
		wait->posted = true;
	/* Otherwise a poster is delivering the post right now. */
	return ret == -EBUSY ? 0 : ret;
}

/*
 * Give up without an entry. If the ticket was posted before the note was written, the poster
 * may have looked for the note too early, and the post is the waiter's.
 */
static int give_up_late(struct kdsm_line_wait *wait)
{
	struct kdsm_line_head head;
	int ret;

	ret = kdsm_note_give_up(wait->line, wait->ticket);
	if (!ret)
		ret = kdsm_line_read(wait->line, &head);
	if (ret)
		return ret;
	if (!is_posted(&head, wait->ticket))
		return -ETIMEDOUT;
	ret = kdsm_note_withdraw(wait->line, wait->ticket);
	wait->posted = !ret;
	return ret == -EBUSY ? -ETIMEDOUT : ret;
}

/*
 * The entry is not this waiter's any more. Either the post of the ticket went on to another
 * ticket, or a later ticket took the entry before this waiter and its poster came.
 */
static int be_late(struct kdsm_line_wait *wait, uint64_t entry)
{
	struct kdsm_line_head head;
	uint64_t note;
	int ret;

	if (entry_ticket(entry) == wait->ticket)
		return -ESTALE;
	ret = kdsm_note_read(wait->line, wait->ticket, &note);
	if (ret)
		return ret;
	if (note)
		return -ESTALE;
	ret = kdsm_line_read(wait->line, &head);
	while (!ret && !is_posted(&head, wait->ticket)) {
		if (!left(wait))
			return give_up_late(wait);
		usleep(NAP);
		ret = kdsm_line_read(wait->line, &head);
	}
	wait->posted = !ret;
	return ret;
}

int kdsm_line_join(struct kdsm_line_wait *wait, const struct kdsm_line_head *before)
{
	const struct kdsm_line *line = wait->line;
	struct kdsm_line_head head;
	uint64_t entry, none = 0;
	int ret;

	wait->ticket = before->ticket;
	/*
	 * Clear the bell, which posters of older tickets have rung. If such a ring still
	 * arrives late, hear_bell() ignores its value, and look_around() reads the entry.
	 */
	ret = kdsm_put(line->region, own_node(line), LINE_SLOT(line, bells, wait->ticket), &none,
		       sizeof(none));
	if (!ret)
		ret = kdsm_entry_read(line, wait->ticket, &entry);
	while (!ret) {
		if (is_of(entry, wait->ticket, ENTRY_POSTED)) {
			ret = kdsm_entry_change(line, wait->ticket, &entry,
						own_entry(wait, ENTRY_DONE));
			wait->posted = !ret;
		} else if (is_of(entry, wait->ticket, ENTRY_BACK)) {
			ret = kdsm_entry_change(line, wait->ticket, &entry,
						own_entry(wait, ENTRY_WAITING));
		} else if (is_taken(entry, wait->ticket)) {
			return be_late(wait, entry);
		} else if (!is_final(entry)) {
			ret = await_entry(wait, &entry);
			continue;
		} else {
			ret = kdsm_entry_reuse(line, wait->ticket, &entry,
					       own_entry(wait, ENTRY_WAITING));
		}
		if (!ret)
			break;
		if (ret == -EBUSY)
			ret = 0;
	}
	if (ret || wait->posted || !wait->late)
		return ret;
	ret = kdsm_line_read(line, &head);
	return ret ? ret : help_oneself(wait, &head);
}

/* End the wait: the bell rang, or this thread has read ENTRY_POSTED in the entry. */
static int pass(const struct kdsm_line_wait *wait)
{
	uint64_t entry = own_entry(wait, ENTRY_POSTED);
	int ret;

	ret = kdsm_entry_change(wait->line, wait->ticket, &entry, own_entry(wait, ENTRY_DONE));
	return ret == -EBUSY ? -ESTALE : ret;
}

/*
 * Give up. Returns reason, or 0 if the ticket was posted. The poster of a posted ticket may
 * have found the entry in use by an older ticket, and left the post to this waiter.
 */
static int give_up(const struct kdsm_line_wait *wait, int reason)
{
	uint64_t entry = own_entry(wait, ENTRY_WAITING);
	struct kdsm_line_head head;
	bool posted;
	int ret;

	ret = kdsm_line_read(wait->line, &head);
	if (ret)
		return ret;
	posted = is_posted(&head, wait->ticket);
	ret = kdsm_entry_change(wait->line, wait->ticket, &entry,
				own_entry(wait, posted ? ENTRY_DONE : ENTRY_GONE));
	if (ret)
		return ret == -EBUSY ? pass(wait) : ret;
	if (posted)
		return 0;
	ret = retire(wait->line, &head);
	return ret ? ret : reason;
}

int kdsm_line_leave(struct kdsm_line_wait *wait)
{
	int ret = wait->posted ? 0 : give_up(wait, -ECANCELED);

	if (ret == -ECANCELED || ret == -ESTALE)
		return 0;
	return ret ? ret : kdsm_line_post(wait->line);
}

/*
 * Find an entry of another ticket that is not final although the ticket was posted. Returns 0
 * if there is none.
 */
static uint64_t find_suspect(const struct kdsm_line_wait *wait, const uint64_t *ring,
			     const struct kdsm_line_head *head)
{
	uint64_t entry;
	unsigned int i;

	for (i = 1; i < MOST; i++) {
		entry = ring[(wait->ticket + i) % MOST];
		if (!is_final(entry) && is_posted(head, entry_ticket(entry)))
			return entry;
	}
	return 0;
}

static int look_for_dead(struct kdsm_line_wait *wait, const struct kdsm_line_head *head)
{
	const struct kdsm_line *line = wait->line;
	uint64_t ring[MOST], suspect = wait->suspect;
	int ret;

	ret = read_ring(line, ring);
	if (ret)
		return ret;
	wait->suspect = find_suspect(wait, ring, head);
	if (suspect && ring[entry_ticket(suspect) % MOST] == suspect)
		return take_over(line, suspect);
	return 0;
}

/* End the wait if the post came without a ring of the bell; otherwise look for dead threads. */
static int look_around(struct kdsm_line_wait *wait)
{
	struct kdsm_line_head head;
	uint64_t entry;
	int ret;

	ret = kdsm_entry_read(wait->line, wait->ticket, &entry);
	if (ret)
		return ret;
	if (is_of(entry, wait->ticket, ENTRY_POSTED)) {
		wait->posted = true;
		return pass(wait);
	}
	if (!is_of(entry, wait->ticket, ENTRY_WAITING))
		return -ESTALE;
	ret = kdsm_line_read(wait->line, &head);
	if (!ret)
		ret = help_oneself(wait, &head);
	return ret || wait->posted ? ret : look_for_dead(wait, &head);
}

/*
 * Sleep until the bell has this ticket's value, or for at most SLICE. With any other value,
 * such as part of the right one, this thread sleeps on, because the notification follows the
 * whole put.
 */
static int hear_bell(const struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;
	uint64_t bell = LINE_SLOT(line, bells, wait->ticket);
	uint64_t most = left(wait) < SLICE ? left(wait) : SLICE;
	uint64_t seen, begin = kdsm_now();
	int ret;

	for (;;) {
		seen = __atomic_load_n(kdsm_word(line->region, bell), __ATOMIC_SEQ_CST);
		if (seen == (uint64_t)wait->ticket + 1)
			return 0;
		ret = kdsm_wait(line->region, bell, seen, kdsm_left(begin, most));
		if (ret && (ret != -EINTR || wait->interruptible))
			return ret;
	}
}

int kdsm_line_sleep(struct kdsm_line_wait *wait)
{
	int ret = 0;

	while (!ret && !wait->posted) {
		ret = hear_bell(wait);
		if (!ret)
			return pass(wait);
		if (ret == -EINTR || (ret == -ETIMEDOUT && !left(wait)))
			return give_up(wait, ret);
		if (ret == -ETIMEDOUT)
			ret = look_around(wait);
	}
	return ret;
}
