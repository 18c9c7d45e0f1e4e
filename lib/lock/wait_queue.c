// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting lines that span all nodes: the words at the home, and posting. Joining, sleeping and
 * leaving are in wait_queue_sleep.c.
 *
 * The head is one word of the home node. Its value is the number of posts that no thread has
 * taken. Nothing but the value decides how many threads pass: a thread passes when its
 * compare-and-swap lowers the value by one, and no post belongs to a thread before that. So a
 * thread that gives up, dies, or is taken for dead has no post that another thread would have
 * to pass on.
 *
 * A thread that finds no post draws a ticket from the tail, a counter of 64 bits, and enters
 * itself into the ring: the entry of the ticket's slot holds ticket and node, and is 0 while no
 * thread uses it. Both are compare-and-swap, so each entry has one owner. The ring has no other
 * states and no old entries. The thread with the lowest ticket is the front. The head names its
 * slot and node:
 *
 *	joining:  entry: 0 -> own	head: front: none -> own	if there is none
 *					head: changes + 1		otherwise
 *	passing:  entry: own -> 0	head: value - 1, front: own -> lowest entry
 *	leaving:  entry: own -> 0	head: front: own -> lowest entry, or changes + 1
 *
 * A post is one fetch-and-add on the head. If there is a front, and the value was 0, the poster
 * rings: it puts a word of the front's own part, on which the front sleeps. If the value was
 * above 0, the front is awake already. The front that passes rings for the next one if posts are
 * left. So a post is at most two remote operations, and a burst of posts wakes the waiters one
 * by one. A thread that finds a front does not take a post from it, but joins: threads pass in
 * the order of their tickets.
 *
 * A thread that joins or leaves changes the ring first and the head second. The front reads head
 * and ring, and then changes the head if it is still the same. Therefore it misses no thread:
 * one whose entry it has not seen has yet to change the head, or makes the front look again.
 *
 * Death between any two steps leaves one of these:
 * - a post, and a front that no thread has woken. The front looks at the head every SLICE.
 * - the entry of a dead thread. Nothing happens until it is the front.
 * - a front that is dead. While there is no post, nobody needs a front. When another waiter
 *   sees the same front with the same entry for a SLICE although there is a post, it removes the
 *   entry and makes the lowest remaining one the front. A front that was only slow finds out,
 *   because its own compare-and-swap fails, and joins again.
 * - an entry that no thread has made the front. Its own thread looks every SLICE.
 * Comparing the head is no proof that nothing happened, because slots and the number of changes
 * repeat. A thread that is fooled takes a post that exists, or makes some waiter the front in
 * place of another; the looks every SLICE find that, too.
 *
 * A line that keeps no posts (a condition variable) gets them all the same. Posts without a
 * front are worth nothing: the first thread that joins sets the value to 0. A front that passes
 * leaves at most as many posts as threads still wait.
 */
#include <errno.h>
#include "internal.h"

/* ---- the words ---- */

/* The bound is above KDSM_SEM_MAX, because kdsm_line_post() exceeds that for a moment. */
static bool is_head(uint64_t head)
{
	return head & LINE_READY && value_of(head) <= 2 * (uint32_t)KDSM_SEM_MAX;
}

/* Add to the head. If the word is no initialized head, undo the addition. */
static int head_add(const struct kdsm_line *line, uint64_t add, uint64_t *before)
{
	uint64_t place = LINE_PLACE(line, head);
	int ret;

	ret = kdsm_faa(line->region, line->home, place, add, before);
	if (ret || is_head(*before))
		return ret;
	if (add)
		kdsm_faa(line->region, line->home, place, -add, NULL);
	return -EPROTO;
}

int kdsm_head_read(const struct kdsm_line *line, uint64_t *head)
{
	return head_add(line, 0, head);
}

int kdsm_head_change(const struct kdsm_line *line, uint64_t *head, uint64_t after)
{
	uint64_t former;
	int ret;

	ret = kdsm_cas(line->region, line->home, LINE_PLACE(line, head), *head, after, &former);
	if (ret)
		return ret;
	if (former == *head) {
		*head = after;
		return 0;
	}
	*head = former;
	return is_head(former) ? -EBUSY : -EPROTO;
}

int kdsm_entry_read(const struct kdsm_line *line, unsigned int slot, uint64_t *entry)
{
	return kdsm_faa(line->region, line->home, LINE_SLOT(line, ring, slot), 0, entry);
}

int kdsm_entry_change(const struct kdsm_line *line, unsigned int slot, uint64_t from,
		      uint64_t to)
{
	uint64_t former;
	int ret;

	ret = kdsm_cas(line->region, line->home, LINE_SLOT(line, ring, slot), from, to, &former);
	return ret || former == from ? ret : -EBUSY;
}

/*
 * The copy may be torn on some devices. Then the front may be wrong, as after a death, and other
 * waiters find out.
 */
static int read_ring(const struct kdsm_line *line, uint64_t ring[LINE_MOST])
{
	uint64_t place = LINE_PLACE(line, ring);
	unsigned int i;

	if (line->home != line->region->node)
		return kdsm_get(line->region, line->home, place, ring, LINE_MOST * sizeof(*ring));
	for (i = 0; i < LINE_MOST; i++)
		ring[i] = __atomic_load_n(kdsm_word(line->region, place) + i, __ATOMIC_SEQ_CST);
	return 0;
}

int kdsm_ring_look(const struct kdsm_line *line, struct kdsm_line_crowd *crowd)
{
	uint64_t ring[LINE_MOST], round, lowest = UINT64_MAX;
	unsigned int i;
	int ret;

	*crowd = (struct kdsm_line_crowd){ 0 };
	ret = read_ring(line, ring);
	for (i = 0; i < LINE_MOST && !ret; i++) {
		if (!ring[i])
			continue;
		crowd->count++;
		/* Within a round of the ring, tickets are in the order of slots. */
		round = ring[i] >> LINE_SLOT_SHIFT;
		if (round < lowest) {
			lowest = round;
			crowd->first = make_front(i, entry_node(ring[i]));
		}
	}
	return ret;
}

int kdsm_bell_ring(const struct kdsm_line *line, uint32_t front)
{
	return kd_put_word(line->region, front_node(front),
			   LINE_SLOT(line, bells, front_slot(front)), 1);
}

/* ---- posts ---- */

void kdsm_line_remember(const struct kdsm_line *line, uint64_t head)
{
	if (!front_of(head))
		__atomic_store_n(&line->memory->value, value_of(head), __ATOMIC_RELAXED);
}

int kdsm_line_init(const struct kdsm_line *line, uint32_t value)
{
	struct kdsm_region *region = line->region;
	uint64_t head = 0;
	int ret;

	if (line->home >= region->nodes)
		return kd_no_part(region, line->home);
	if (value > KDSM_SEM_MAX)
		return kd_because(-EINVAL, "value %u is above KDSM_SEM_MAX", value);
	ret = kd_place_check(region, line->offset, 64, KDSM_LINE_SIZE);
	if (ret)
		return ret;
	if (!region->writable)
		return kd_read_only(region);
	ret = kdsm_head_change(line, &head, make_head(0, 0, value));
	kdsm_line_remember(line, head);
	return ret == -EBUSY || ret == -EPROTO ? 0 : ret;
}

int kdsm_line_value(const struct kdsm_line *line, int32_t *value)
{
	struct kdsm_line_crowd crowd = { 0 };
	uint64_t head;
	int ret;

	ret = kdsm_head_read(line, &head);
	if (!ret && front_of(head))
		ret = kdsm_ring_look(line, &crowd);
	if (!ret)
		*value = (int32_t)value_of(head) - (int32_t)crowd.count;
	return ret;
}

/* The value was KDSM_SEM_MAX at least, before count posts came. */
static int overflow(const struct kdsm_line *line, uint64_t head, uint32_t count)
{
	if (line->keeps) {
		head_add(line, -(count * LINE_POST), &head);
		return -EOVERFLOW;
	}
	/*
	 * There are many more posts than threads that may wait. If this fails, the next poster
	 * does it.
	 */
	head += count * LINE_POST;
	kdsm_head_change(line, &head, make_head(head, front_of(head), LINE_MOST));
	return 0;
}

int kdsm_line_post(const struct kdsm_line *line, uint32_t count)
{
	uint64_t before;
	int ret;

	ret = head_add(line, count * LINE_POST, &before);
	if (ret)
		return ret;
	if (value_of(before) >= KDSM_SEM_MAX)
		return overflow(line, before, count);
	kdsm_line_remember(line, before + count * LINE_POST);
	if (value_of(before) || !front_of(before))
		return 0;
	return kdsm_bell_ring(line, front_of(before));
}
