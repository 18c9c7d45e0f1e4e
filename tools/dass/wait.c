// SPDX-License-Identifier: GPL-2.0
/*
 * Waits, and the search for deadlocks. A thread that waits looks again after each timeout, and
 * counts timeouts in its slot. If all threads wait, and each looks again while all of them wait and
 * then waits on, no thread will ever go on.
 */
#include <stdlib.h>

#include "machine.h"

void wait_begin(struct thread *thread, enum what what, int64_t number)
{
	struct slot *slot = own_slot(thread->machine, thread->id);

	slot->what = what;
	slot->number = number;
	slot->line = thread->at->line;
	slot->tries = 0;
	slot->waits++;
	__atomic_store_n(&slot->state, WAITING, __ATOMIC_RELEASE);
}

void wait_again(struct thread *thread)
{
	struct slot *slot = own_slot(thread->machine, thread->id);

	__atomic_store_n(&slot->tries, slot->tries + 1, __ATOMIC_RELEASE);
}

void wait_end(struct thread *thread)
{
	__atomic_store_n(&own_slot(thread->machine, thread->id)->state, RUNNING, __ATOMIC_RELEASE);
}

const char *wait_name(uint64_t what)
{
	static const char *const names[] = {
		[BY_JOIN] = "the end of thread",
		[BY_BARRIER] = "barrier",
		[BY_LOCK] = "mutex",
		[BY_SIGNAL] = "a signal on",
	};

	return what < sizeof(names) / sizeof(*names) ? names[what] : "?";
}

/* Fetch the first count slots, each from the node that uses it. */
static int fetch(struct machine *machine, struct slot *slots, struct slot *part, uint64_t count)
{
	struct kdsm_job *job = machine->job;
	uint32_t rank, before, size = kdsm_job_size(job);
	uint64_t id;
	int ret = 0;

	for (rank = 0; rank < size && rank < count && !ret; rank++) {
		unsigned int node = kdsm_job_node(job, rank);

		for (before = 0; kdsm_job_node(job, before) != node; before++)
			;
		if (before < rank)
			continue;
		ret = kdsm_get(machine->sync, node, machine->slots, part, count * sizeof(*part));
		for (id = 0; id < count && !ret; id++)
			if (slot_node(machine, id) == node)
				slots[id] = part[id];
	}
	return ret;
}

/* Each thread as the last call found it */
static struct seen {
	uint64_t waits, tries;
	bool waiting;
} seen[MOST_THREADS];

/* Tell whether all threads wait, with two timeouts each since all of them wait. */
static bool all_stuck(const struct slot *slots, uint64_t count, uint64_t *first)
{
	bool stuck = true, busy = false;
	uint64_t id;

	*first = MOST_THREADS;
	for (id = 0; id < count; id++) {
		const struct slot *slot = &slots[id];

		if (slot->state == FREE || slot->state == ENDED) {
			seen[id].waiting = false;
			continue;
		}
		if (*first == MOST_THREADS)
			*first = id;
		busy |= slot->state != WAITING;
		/* The look behind the first timeout began after all threads were waiting. */
		stuck &= seen[id].waiting && seen[id].waits == slot->waits &&
			 slot->tries >= seen[id].tries + 2;
		/* A change of one thread begins the observation of all. */
		busy |= !seen[id].waiting || seen[id].waits != slot->waits;
	}
	if (!busy)
		return stuck && *first < MOST_THREADS;
	for (id = 0; id < count; id++)
		seen[id] = (struct seen){ slots[id].waits, slots[id].tries,
					  slots[id].state == WAITING };
	return false;
}

bool wait_deadlock(struct machine *machine, struct slot *waiter, uint64_t *id)
{
	struct slot *slots, *part;
	bool stuck = false;
	/* No lock: the next call sees what a fork changes now. */
	uint64_t count = __atomic_load_n(&machine->shared->high, __ATOMIC_RELAXED);

	slots = calloc(count, sizeof(*slots));
	part = calloc(count, sizeof(*part));
	if (slots && part && !fetch(machine, slots, part, count))
		stuck = all_stuck(slots, count, id);
	if (stuck)
		*waiter = slots[*id];
	free(slots);
	free(part);
	return stuck;
}
