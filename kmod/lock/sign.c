// SPDX-License-Identifier: GPL-2.0
/*
 * Locks of regions of policy release: a node that gets a lock sees all writes that earlier holders
 * made while they had the lock, on any node. Before a lock goes to another node, the module
 * releases the writes of this node and leaves the signature in a *slot*; the next node adopts it
 * before any of its threads gets the lock. Documentation/design/locks.md says which slot.
 *
 * Only the holder of a lock writes a slot, and no node gets the lock from a slot that is
 * incomplete. A node passes the lock on only after it has read the slot. So a node reads a slot as
 * a whole, unless the writer died meanwhile, which the check in the slot finds.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "coherence/coherence.h"
#include "lock/lock.h"
#include "region/region.h"

struct kdsm_lock_sign {
	struct mutex mutex;	/* guards the other fields; held over the network */
	struct kdsm_signature signature;
	struct kdsm_operation op;
	struct kdsm_wire_signature wire;
	unsigned long failing;	/* jiffies: publishing has failed since; 0: it has not */
};

/* ---- slots ---- */

u64 kdsm_lock_sign_size(const struct kdsm_region *region)
{
	BUILD_BUG_ON(sizeof(struct kdsm_wire_signature) > KDSM_SIGNATURE_SIZE);
	return region->policy == KDSM_POLICY_RELEASE ? KDSM_MAX_LOCKS * KDSM_SIGNATURE_SIZE : 0;
}

/*
 * Wait until all nodes see what this node has written at another one. The checksum of a slot
 * tells whether it is whole, but not whether it is the newest one.
 */
static int kdsm_slot_settle(struct kdsm_turn *turn, unsigned int node)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = { };
	u32 messages;
	int err;

	__set_bit(node, nodes);
	err = kdsm_fabric_settle(turn->part.fabric, nodes, &messages);
	turn->part.messages += messages;
	return err;
}

/* Read or write this many bytes of the lock's slot at a node. */
static int kdsm_slot_access(struct kdsm_lock *lock, enum kdsm_opcode opcode, unsigned int node,
			    unsigned int length)
{
	struct kdsm_operation *op = &lock->sign->op;
	struct kdsm_turn *turn = &lock->turn;
	struct kdsm_batch batch;

	*op = (struct kdsm_operation) {
		.opcode = opcode, .node = node, .offset = kdsm_locks_signature(lock),
		.length = length, .data = &lock->sign->wire,
	};
	lock->puts += node != turn->part.node && opcode == KDSM_OP_PUT;
	lock->gets += node != turn->part.node && opcode == KDSM_OP_GET;
	kdsm_batch_init(&batch, turn->part.fabric, turn->memory);
	/* Not if the home has given up this node since. The slots of other nodes are only read. */
	if (node == turn->part.home)
		batch.tie = kdsm_fabric_tie(turn->part.fabric, node);
	kdsm_batch_add(&batch, op);
	kdsm_batch_post(&batch);
	kdsm_batch_wait(&batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	kdsm_batch_finish(&batch);
	if (!op->status && node != turn->part.node && opcode == KDSM_OP_PUT)
		return kdsm_slot_settle(turn, node);
	return op->status;
}

/* The checksum of what follows. That of zeros is 0: a slot that nobody has written is empty. */
static __le64 kdsm_wire_check(const struct kdsm_wire_signature *wire, unsigned int length)
{
	const __le64 *words = (const __le64 *)wire;
	u64 check = 0;
	unsigned int i;

	BUILD_BUG_ON(sizeof(wire->notices[0]) % sizeof(*words));
	for (i = 1; i < length / sizeof(*words); i++) {
		check = (check ^ le64_to_cpu(words[i])) * 0x9e3779b97f4a7c15ULL;
		check ^= check >> 29;
	}
	return cpu_to_le64(check);
}

/* The length of a slot with this many notices */
static unsigned int kdsm_wire_length(u32 count)
{
	return offsetof(struct kdsm_wire_signature, notices[count]);
}

static void kdsm_wire_write(struct kdsm_wire_signature *wire,
			    const struct kdsm_signature *signature)
{
	unsigned int i;

	wire->floor = cpu_to_le64(signature->floor);
	wire->count = cpu_to_le32(signature->count);
	wire->reserved = 0;
	for (i = 0; i < signature->count; i++) {
		const struct kdsm_notice *notice = &signature->notices[i];

		wire->notices[i].ts = cpu_to_le64(notice->ts);
		wire->notices[i].first = cpu_to_le64(notice->first);
		wire->notices[i].count = cpu_to_le32(notice->count);
		wire->notices[i].writer = cpu_to_le16(notice->writer);
		wire->notices[i].share = cpu_to_le16(notice->share);
	}
	wire->check = kdsm_wire_check(wire, kdsm_wire_length(signature->count));
}

/* -EIO: it is not whole, or no module has written it. */
static int kdsm_wire_read(const struct kdsm_wire_signature *wire,
			  const struct kdsm_coherence *coherence,
			  struct kdsm_signature *signature)
{
	unsigned int i;

	kdsm_signature_init(signature);
	signature->floor = le64_to_cpu(wire->floor);
	signature->count = le32_to_cpu(wire->count);
	signature->reserved = le32_to_cpu(wire->reserved);
	if (signature->count > KDSM_NOTICES_MAX ||
	    wire->check != kdsm_wire_check(wire, kdsm_wire_length(signature->count)))
		return -EIO;
	for (i = 0; i < signature->count; i++) {
		struct kdsm_notice *notice = &signature->notices[i];

		notice->ts = le64_to_cpu(wire->notices[i].ts);
		notice->first = le64_to_cpu(wire->notices[i].first);
		notice->count = le32_to_cpu(wire->notices[i].count);
		notice->writer = le16_to_cpu(wire->notices[i].writer);
		notice->share = le16_to_cpu(wire->notices[i].share);
	}
	return kdsm_signature_sane(signature, coherence->nodes, coherence->blocks) ? 0 : -EIO;
}

/* ---- of a lock ---- */

int kdsm_lock_sign_init(struct kdsm_lock *lock)
{
	if (lock->locks->region->policy != KDSM_POLICY_RELEASE)
		return 0;
	lock->sign = kzalloc(sizeof(*lock->sign), GFP_KERNEL_ACCOUNT);
	if (!lock->sign)
		return -ENOMEM;
	mutex_init(&lock->sign->mutex);
	return 0;
}

void kdsm_lock_sign_exit(struct kdsm_lock *lock)
{
	kfree(lock->sign);
}

/* Returns err, or -EOWNERDEAD if it has failed for too long: as after a death. */
static int kdsm_lock_sign_failed(struct kdsm_lock_sign *sign, int err)
{
	if (!err) {
		sign->failing = 0;
		return 0;
	}
	if (!sign->failing)
		sign->failing = jiffies | 1;
	if (time_before(jiffies, sign->failing + KDSM_LOCK_GIVE_UP))
		return err;
	sign->failing = 0;
	return -EOWNERDEAD;
}

int kdsm_lock_publish(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_lock_sign *sign = lock->sign;
	int err, put;

	if (!sign)
		return 0;
	mutex_lock(&sign->mutex);
	err = kdsm_coherence_release(lock->locks->region->coherence, &sign->signature);
	err = kdsm_lock_sign_failed(sign, err);
	if (!err || err == -EOWNERDEAD) {
		/* If the release failed: of what was released before */
		kdsm_wire_write(&sign->wire, &sign->signature);
		put = kdsm_slot_access(lock, KDSM_OP_PUT, node,
				       kdsm_wire_length(sign->signature.count));
		err = err ?: kdsm_lock_sign_failed(sign, put);
	}
	mutex_unlock(&sign->mutex);
	return err;
}

static int kdsm_lock_adopt_from(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_coherence *coherence = lock->locks->region->coherence;
	struct kdsm_lock_sign *sign = lock->sign;
	int err;

	err = kdsm_slot_access(lock, KDSM_OP_GET, node, sizeof(sign->wire));
	err = err ?: kdsm_wire_read(&sign->wire, coherence, &sign->signature);
	return err ?: kdsm_coherence_acquire(coherence, &sign->signature);
}

/* As kdsm_lock_sign_failed(), for the slot of a node that may be dead */
static int kdsm_lock_slot_failed(struct kdsm_lock *lock, unsigned int node, int err)
{
	if (err && kdsm_fabric_is_away(lock->turn.part.fabric, node))
		return -EOWNERDEAD;
	return kdsm_lock_sign_failed(lock->sign, err);
}

int kdsm_lock_carry(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_lock_sign *sign = lock->sign;
	int err;

	if (!sign || node == lock->turn.part.node || node == KDSM_NOBODY)
		return 0;
	mutex_lock(&sign->mutex);
	err = kdsm_slot_access(lock, KDSM_OP_GET, node, sizeof(sign->wire));
	err = kdsm_lock_slot_failed(lock, node, err);
	if (!err)
		err = kdsm_slot_access(lock, KDSM_OP_PUT, lock->turn.part.node, sizeof(sign->wire));
	mutex_unlock(&sign->mutex);
	return err;
}

int kdsm_lock_adopt(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_lock_sign *sign = lock->sign;
	int err = 0;

	mutex_lock(&sign->mutex);
	if (node == KDSM_NOBODY) {
		/*
		 * One of the slots has the signature with the writes of the holders before the one
		 * that died. The slot of a node that does not answer is missing.
		 */
		for (node = 0; node < lock->turn.part.nodes; node++)
			kdsm_lock_adopt_from(lock, node);
	} else {
		err = kdsm_lock_slot_failed(lock, node, kdsm_lock_adopt_from(lock, node));
	}
	mutex_unlock(&sign->mutex);
	return err;
}
