// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting in a line: joining it, sleeping, leaving, and looking for dead threads.
 * wait_queue.c describes the words and their changes.
 */
#include <errno.h>
#include "internal.h"

#define SLICE	1000000000	/* longest sleep between two looks at the home, in ns */
#define NAP	1000000		/* pause while the line is full, in ns */

static uint32_t own_front(const struct kdsm_line_wait *wait)
{
	return make_front(slot_of(wait->ticket), wait->line->region->node);
}

static uint64_t own_entry(const struct kdsm_line_wait *wait)
{
	return make_entry(wait->ticket, wait->line->region->node);
}

static uint64_t *bell(const struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;

	return kdsm_word(line->region, LINE_SLOT(line, bells, slot_of(wait->ticket)));
}

/*
 * Make the waiter with the lowest ticket the front, and take a post if there is one; none if
 * taken is NULL. Caller has read *head before. Returns -EBUSY if front or ring have changed.
 */
static int pass_front(const struct kdsm_line *line, uint64_t *head, bool *taken)
{
	struct kdsm_line_crowd crowd;
	uint64_t seen = *head;
	uint32_t value;
	int ret;

	ret = kdsm_ring_look(line, &crowd);
	if (ret)
		return ret;
	do {
		value = value_of(*head);
		if (taken) {
			*taken = value;
			value -= *taken;
		}
		if (!line->keeps && value > crowd.count)
			value = crowd.count;
		ret = kdsm_head_change(line, head, make_head(*head, crowd.first, value));
	} while (ret == -EBUSY && !((*head ^ seen) & ~LINE_VALUE));
	/* If the bell does not ring, the thread finds the post by itself. */
	if (!ret && value && crowd.first)
		kdsm_bell_ring(line, crowd.first);
	return ret;
}

/*
 * If there is a front that has left a post alone for a SLICE, it is dead or slow: remove it. The
 * times are remembered from call to call, because each may be shorter.
 */
static int look_for_dead(const struct kdsm_line *line, uint64_t *head)
{
	struct kdsm_line_memory *memory = line->memory;
	uint32_t front = value_of(*head) ? front_of(*head) : 0;
	uint64_t entry, now = kdsm_now();
	int ret;

	if (!front) {
		__atomic_store_n(&memory->front, 0, __ATOMIC_RELAXED);
		return 0;
	}
	ret = kdsm_entry_read(line, front_slot(front), &entry);
	if (ret)
		return ret;
	if (__atomic_exchange_n(&memory->front, front, __ATOMIC_RELAXED) != front ||
	    __atomic_exchange_n(&memory->entry, entry, __ATOMIC_RELAXED) != entry) {
		__atomic_store_n(&memory->entry, entry, __ATOMIC_RELAXED);
		__atomic_store_n(&memory->since, now, __ATOMIC_RELAXED);
		return 0;
	}
	if (now - __atomic_load_n(&memory->since, __ATOMIC_RELAXED) < SLICE)
		return 0;
	/* The entry of another node is not the front's, which has left the ring already. */
	if (entry && entry_node(entry) == front_node(front))
		ret = kdsm_entry_change(line, front_slot(front), entry, 0);
	if (!ret)
		ret = pass_front(line, head, NULL);
	return ret == -EBUSY ? 0 : ret;
}

int kdsm_line_take(const struct kdsm_line *line, uint64_t *head)
{
	int ret = 0;

	/* If the guess is right, this saves reading the head. */
	*head = make_head(0, 0, __atomic_load_n(&line->memory->value, __ATOMIC_RELAXED));
	if (!value_of(*head))
		ret = kdsm_head_read(line, head);
	while (!ret && value_of(*head) && !front_of(*head)) {
		ret = kdsm_head_change(line, head, *head - LINE_POST);
		if (!ret) {
			kdsm_line_remember(line, *head);
			return 0;
		}
		if (ret == -EBUSY)
			ret = 0;
	}
	if (!ret)
		ret = look_for_dead(line, head);
	kdsm_line_remember(line, *head);
	return ret ? ret : -EAGAIN;
}

/*
 * Leave the ring; take a post if this thread is the front and there is one. Returns -ESTALE if
 * another thread took this one for dead.
 */
static int step_out(struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;
	bool posted;
	int ret;

	ret = kdsm_entry_change(line, slot_of(wait->ticket), own_entry(wait), 0);
	if (ret)
		return ret == -EBUSY ? -ESTALE : ret;
	do {
		posted = false;
		if (front_of(wait->head) == own_front(wait))
			ret = pass_front(line, &wait->head, &posted);
		else if (front_of(wait->head))
			ret = kdsm_head_change(line, &wait->head, wait->head + LINE_CHANGE);
		else
			ret = 0;
		wait->posted = posted && !ret;
	} while (ret == -EBUSY);
	return ret;
}

/* The entry is in the ring: make it the front if there is none. */
static int announce(struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;
	uint64_t after;
	int ret;

	do {
		if (front_of(wait->head))
			after = wait->head + LINE_CHANGE;
		else
			after = make_head(wait->head, own_front(wait),
					  line->keeps ? value_of(wait->head) : 0);
		ret = kdsm_head_change(line, &wait->head, after);
	} while (ret == -EBUSY);
	return ret;
}

/* Draw tickets until the slot of one is free. Returns -EAGAIN if no slot is. */
static int enter(struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;
	struct kdsm_line_crowd crowd;
	int ret;

	for (;;) {
		ret = kdsm_faa(line->region, line->home, LINE_PLACE(line, tail), 1, &wait->ticket);
		if (ret)
			return ret;
		wait->ticket += LINE_MOST;
		ret = kdsm_entry_change(line, slot_of(wait->ticket), 0, own_entry(wait));
		if (ret != -EBUSY)
			return ret;
		ret = kdsm_ring_look(line, &crowd);
		if (ret || crowd.count == LINE_MOST)
			return ret ? ret : -EAGAIN;
	}
}

/*
 * Every slot is in use. If there are posts, slots become free, or the front is dead. Returns 0
 * if the caller tries again.
 */
static int await_room(struct kdsm_line_wait *wait)
{
	int ret;

	if (!kdsm_left(wait->begin, wait->timeout))
		return -ETIMEDOUT;
	ret = kdsm_head_read(wait->line, &wait->head);
	if (ret)
		return ret;
	if (!value_of(wait->head))
		return -EAGAIN;
	kd_sleep(NAP);
	return look_for_dead(wait->line, &wait->head);
}

int kdsm_line_join(struct kdsm_line_wait *wait)
{
	int ret;

	while ((ret = enter(wait)) == -EAGAIN) {
		ret = await_room(wait);
		if (ret)
			return ret;
	}
	if (ret)
		return ret;
	/* It may have rung for a thread that had the slot before, or already for this one. */
	__atomic_store_n(bell(wait), 0, __ATOMIC_SEQ_CST);
	return announce(wait);
}

/* Returns reason, or 0 if there was a post for this thread. */
static int give_up(struct kdsm_line_wait *wait, int reason)
{
	int ret;

	ret = kdsm_head_read(wait->line, &wait->head);
	if (!ret && front_of(wait->head) != own_front(wait))
		ret = look_for_dead(wait->line, &wait->head);
	if (!ret)
		ret = step_out(wait);
	if (ret && ret != -ESTALE)
		return ret;
	return wait->posted ? 0 : reason;
}

int kdsm_line_leave(struct kdsm_line_wait *wait)
{
	int ret = give_up(wait, -ECANCELED);

	if (ret)
		return ret == -ECANCELED ? 0 : ret;
	return kdsm_line_post(wait->line, 1);
}

/* Look for what no bell has told: see wait_queue.c. */
static int look_around(struct kdsm_line_wait *wait)
{
	uint32_t front = front_of(wait->head);
	uint64_t entry;
	int ret;

	ret = kdsm_entry_read(wait->line, slot_of(wait->ticket), &entry);
	if (ret)
		return ret;
	if (entry != own_entry(wait))
		return -ESTALE;
	if (!front)
		return announce(wait);
	return front == own_front(wait) ? 0 : look_for_dead(wait->line, &wait->head);
}

/* Sleep until the bell rings, or for at most SLICE. */
static int hear_bell(const struct kdsm_line_wait *wait)
{
	const struct kdsm_line *line = wait->line;
	uint64_t left = kdsm_left(wait->begin, wait->timeout);
	uint64_t begin = kdsm_now(), most = left < SLICE ? left : SLICE;
	int ret;

	do {
		ret = kdsm_wait(line->region, LINE_SLOT(line, bells, slot_of(wait->ticket)), 0,
				kdsm_left(begin, most));
	} while (ret == -EINTR && !wait->interruptible);
	return ret;
}

int kdsm_line_sleep(struct kdsm_line_wait *wait)
{
	int heard, ret = 0;

	while (!ret && (front_of(wait->head) != own_front(wait) || !value_of(wait->head))) {
		heard = hear_bell(wait);
		if (heard == -EINTR ||
		    (heard == -ETIMEDOUT && !kdsm_left(wait->begin, wait->timeout)))
			return give_up(wait, heard);
		if (heard && heard != -ETIMEDOUT)
			return heard;
		/* Before reading the head, so that a later post rings again */
		__atomic_store_n(bell(wait), 0, __ATOMIC_SEQ_CST);
		ret = kdsm_head_read(wait->line, &wait->head);
		if (!ret && heard)
			ret = look_around(wait);
	}
	if (!ret)
		ret = step_out(wait);
	return ret || wait->posted ? ret : -ESTALE;
}
