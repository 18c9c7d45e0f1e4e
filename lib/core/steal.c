// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * KDSM_OP_STEAL by the CPU on the own part. The module does the same for other nodes in
 * kmod/fabric/steal.c.
 */
#include <errno.h>
#include <string.h>

#include <kdsm/uapi_task.h>

#include "internal.h"

static void pack(struct kdsm_task *task, uint32_t thief, struct kdsm_task_packed *packed)
{
	unsigned int i;

	packed->origin.type = task->type;
	packed->origin.bytes = KDSM_TASK_BYTES;
	memcpy(packed->arguments, task->data, KDSM_TASK_BYTES);
	__atomic_store_n(&task->bell, 0, __ATOMIC_RELAXED);
	for (i = 0; i < sizeof(task->data) / 8; i++)
		__atomic_store_n((uint64_t *)task->data + i, 0, __ATOMIC_RELAXED);
	/*
	 * Release: the place is cleared for the result before the owner or the thief sees
	 * thief.
	 */
	__atomic_store_n(&task->thief, thief, __ATOMIC_RELEASE);
}

/* Returns the address of the task in a slot of a worker's deque. */
static struct kdsm_task *task_at(uint8_t *part, const struct kdsm_theft *theft, uint32_t worker,
				 uint32_t slot)
{
	return (struct kdsm_task *)(part + kdsm_theft_task(theft, worker, slot));
}

/*
 * Give the task in slot origin to the thief. A proxy stands for another task: give that task,
 * and mark the proxy as done.
 */
static int hand_out(uint8_t *part, const struct kdsm_theft *theft,
		    struct kdsm_task_origin origin, struct kdsm_task_packed *packed)
{
	struct kdsm_task *task = task_at(part, theft, origin.worker, origin.slot);

	if (!task->type || task->type != theft->proxy) {
		packed->origin = origin;
		pack(task, theft->thief, packed);
		return 0;
	}
	memcpy(packed, task->data, sizeof(*packed));
	if (!packed->origin.type) {
		if (!kdsm_theft_is_near(theft, &packed->origin))
			return -EIO;
		packed->origin.node = origin.node;
		pack(task_at(part, theft, packed->origin.worker, packed->origin.slot),
		     theft->thief, packed);
	}
	__atomic_store_n(&task->thief, KDSM_THIEF_DONE, __ATOMIC_RELEASE);
	return 0;
}

/* Take public tasks of a worker. Returns their number; *tail is the slot of the first. */
static uint32_t take(struct kdsm_task_worker *worker, const struct kdsm_theft *theft,
		     uint32_t *tail)
{
	__u64 ends = __atomic_load_n(&worker->ends, __ATOMIC_RELAXED);
	uint32_t count;

	do {
		count = kdsm_ends_share(ends, theft->deque, theft->most);
		*tail = kdsm_ends_tail(ends);
	} while (count && !__atomic_compare_exchange_n(&worker->ends, &ends, ends + count, true,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return count;
}

int kdsm_steal_in(uint8_t *part, uint64_t size, unsigned int node, uint64_t place,
		  struct kdsm_theft *theft)
{
	const struct kdsm_task_crew *crew = (const void *)(part + place);
	struct kdsm_task_origin origin = { .node = node };
	struct kdsm_task_worker *worker;
	uint32_t used, i, n;
	int ret = kdsm_theft_check(theft, place, size);

	if (ret)
		return ret;
	theft->busy = __atomic_load_n(&crew->busy, __ATOMIC_SEQ_CST);
	used = __atomic_load_n(&crew->used, __ATOMIC_RELAXED);
	if (used > theft->count)
		used = theft->count;
	for (i = 0; i < used && !theft->taken; i++) {
		origin.worker = (theft->first % used + i) % used;
		worker = (void *)(part + kdsm_theft_worker(theft, origin.worker));
		theft->taken = take(worker, theft, &origin.slot);
	}
	for (n = 0; n < theft->taken && !ret; n++, origin.slot++)
		ret = hand_out(part, theft, origin, &kdsm_theft_tasks(theft)[n]);
	/* No worker has a public task: ask all workers to publish some. */
	for (i = 0; i < used && !theft->taken; i++) {
		worker = (void *)(part + kdsm_theft_worker(theft, i));
		if (!__atomic_load_n(&worker->attention, __ATOMIC_RELAXED))
			__atomic_store_n(&worker->attention, 1, __ATOMIC_RELAXED);
	}
	return ret;
}
