// SPDX-License-Identifier: GPL-2.0
/*
 * Dropping: freeing a chunk of this node's part before the memory is destroyed.
 *
 * This node first takes the chunk out of the memory, and the registrations that cover it. From then
 * on, no peer gets a key that covers the chunk. Then it sends KDSM_MESSAGE_REVOKE to all peers that
 * were told such a key, and waits until they have answered: a peer that used a key without
 * registration would lose its connection. Then it ends the registrations and, after an RCU grace
 * period for the handlers of messages, frees the pages.
 *
 * Between these steps the chunk is a leftover. It remains one if a peer does not answer. A peer
 * that this node gave up forgets all keys of this node when it connects again (connect.c). So it
 * counts as having answered, once its former connections are drained.
 */
#include <linux/slab.h>

#include "internal.h"

/*
 * Take a chunk and its registrations out of the memory. 0; -ENOENT: the chunk does not exist;
 * -ENOMEM: nothing changed.
 */
static int kdsm_leftover_make(struct kdsm_memory *memory, unsigned long index,
			      struct kdsm_leftover *leftover)
{
	int err = 0;

	INIT_LIST_HEAD(&leftover->registrations);
	leftover->index = index;
	mutex_lock(&memory->registering);
	if (index >= memory->chunks_count || !kdsm_chunk_peek(memory, index)) {
		err = -ENOENT;
		goto unlock;
	}
	if (!memory->dropped) {
		unsigned long *dropped = kvcalloc(BITS_TO_LONGS(memory->chunks_count),
						  sizeof(*dropped), GFP_KERNEL);

		if (!dropped) {
			err = -ENOMEM;
			goto unlock;
		}
		/* kdsm_chunk_get() looks at it with this lock. */
		mutex_lock(&memory->lock);
		memory->dropped = dropped;
		mutex_unlock(&memory->lock);
	}
	kdsm_registrations_take(memory, index, &leftover->registrations);
	leftover->chunk = kdsm_chunk_take(memory, index);
	list_add_tail(&leftover->link, &memory->leftovers);
unlock:
	mutex_unlock(&memory->registering);
	return err;
}

/* Whether a peer that answered err neither has the key nor an operation with it in flight */
static bool kdsm_peer_lacks_key(struct kdsm_fabric *fabric, unsigned int node, int err)
{
	if (!err || err == -ENOENT)
		return true;
	if (kdsm_message_was_heard(err) || !kdsm_fabric_is_away(fabric, node))
		return false;
	kdsm_fabric_give_up(fabric, node, true);
	return true;
}

/* Tell all peers that know the key, and strike off those that do not any more */
static int kdsm_registration_revoke(struct kdsm_memory *memory, unsigned long index,
				    struct kdsm_registration *registration, int *statuses)
{
	const struct kdsm_wire_revoke wire = {
		.id = cpu_to_le32(memory->id),
		.chunk = cpu_to_le32(index),
		.first = cpu_to_le32(registration->first),
		.count = cpu_to_le32(registration->count),
	};
	struct kdsm_fabric *fabric = memory->fabric;
	unsigned int node;
	int err, first = 0;

	/* -ENOMEM of kdsm_memory_drop() means something else. */
	if (kdsm_broadcast(fabric, registration->told, KDSM_MESSAGE_REVOKE, &wire, sizeof(wire),
			   statuses, MAX_SCHEDULE_TIMEOUT, TASK_UNINTERRUPTIBLE))
		return -EAGAIN;
	for_each_set_bit(node, registration->told, KDSM_MAX_NODES) {
		err = statuses[node];
		if (kdsm_peer_lacks_key(fabric, node, err))
			__clear_bit(node, registration->told);
		else if (!first)
			first = err == -ENOMEM ? -EAGAIN : err;
	}
	return first;
}

/* Free what no peer can access any more: end the registrations, and free the pages */
static void kdsm_leftover_free(struct kdsm_memory *memory, struct kdsm_leftover *leftover)
{
	struct kdsm_registration *registration, *next;
	u64 bytes = (u64)leftover->chunk->count << PAGE_SHIFT;

	/* Hold off the removal of the device; see struct kdsm_fabric. */
	down_read(&memory->fabric->unregistering);
	mutex_lock(&memory->registering);
	list_del(&leftover->link);
	list_for_each_entry_safe(registration, next, &leftover->registrations, link) {
		kdsm_registration_end(memory, registration);
		kfree(registration);
	}
	mutex_unlock(&memory->registering);
	up_read(&memory->fabric->unregistering);
	synchronize_rcu();
	kdsm_chunk_free(leftover->chunk);
	kfree(leftover);
	atomic64_sub(bytes, &memory->resident);
	kdsm_account_uncharge(memory->account, bytes);
}

/* Free a leftover, unless a peer may still access it. 0, or the error of a peer. */
static int kdsm_leftover_try(struct kdsm_memory *memory, struct kdsm_leftover *leftover,
			     int *statuses)
{
	struct kdsm_registration *registration;
	int err, first = 0;

	lockdep_assert_held(&memory->dropping);
	list_for_each_entry(registration, &leftover->registrations, link) {
		err = kdsm_registration_revoke(memory, leftover->index, registration, statuses);
		if (!first)
			first = err;
	}
	if (!first)
		kdsm_leftover_free(memory, leftover);
	return first;
}

/*
 * Try to free the leftovers of earlier drops. The first failure ends that, because the next
 * leftovers probably wait for the same peer. The next call begins with another one.
 */
static void kdsm_leftovers_try(struct kdsm_memory *memory, int *statuses)
{
	struct kdsm_leftover *leftover, *next;

	list_for_each_entry_safe(leftover, next, &memory->leftovers, link)
		if (kdsm_leftover_try(memory, leftover, statuses)) {
			mutex_lock(&memory->registering);
			list_move_tail(&leftover->link, &memory->leftovers);
			mutex_unlock(&memory->registering);
			break;
		}
}

int kdsm_memory_drop(struct kdsm_memory *memory, unsigned long chunk)
{
	struct kdsm_leftover *leftover;
	int *statuses, err = -ENOMEM;

	leftover = kzalloc(sizeof(*leftover), GFP_KERNEL);
	statuses = kvcalloc(KDSM_MAX_NODES, sizeof(*statuses), GFP_KERNEL);
	if (!leftover || !statuses)
		goto free;
	mutex_lock(&memory->dropping);
	kdsm_leftovers_try(memory, statuses);
	err = kdsm_leftover_make(memory, chunk, leftover);
	if (!err) {
		err = kdsm_leftover_try(memory, leftover, statuses);
		leftover = NULL;
	}
	mutex_unlock(&memory->dropping);
free:
	kvfree(statuses);
	kfree(leftover);
	return err;
}
