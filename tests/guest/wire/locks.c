// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about locks and about dead nodes: of invalid lengths, about locks that do not
 * exist, from a node that may not send them, and with impossible states.
 */
#include "../hostile.h"
#include "attack.h"

#define NODES	3
#define REGION	0x7779

enum { NONE = 0, WAITING = 3, HELD = 4, LEAVING = 5 };

static int lock_message(struct attack *attack, u16 type, const void *data, u16 length)
{
	struct kdsm_wire_header reply = { 0 };

	return attack_ask(attack, type, data, length, &reply) ?: (int32_t)reply.status;
}

static bool lives(struct attack *attack)
{
	return !lock_message(attack, KDSM_MESSAGE_PROBE, NULL, 0);
}

static void refused(struct attack *attack, const char *what, u16 type, const void *data,
		    u16 length)
{
	int error = lock_message(attack, type, data, length);

	tap_ok(error < 0 && error != -ETIMEDOUT && error != -ECONNRESET && lives(attack),
	       "lock, %s: %s", what, tap_error(error));
}

/* Every message about a queue, with bad values in the fields that all of them have */
static void bad_names(struct attack *attack, const struct kdsm_wire_lock *good)
{
	static const u16 types[] = {
		KDSM_MESSAGE_LOCK_TELL, KDSM_MESSAGE_LOCK_HAND, KDSM_MESSAGE_LOCK_LOOK,
		KDSM_MESSAGE_LOCK_MEET, KDSM_MESSAGE_LOCK_FREEZE, KDSM_MESSAGE_LOCK_RESUME,
	};
	struct kdsm_wire_lock bad;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
#define TRY(what, field, value) do {					\
	bad = *good;							\
	bad.field = (value);						\
	refused(attack, what, types[i], &bad, sizeof(bad));		\
} while (0)
		TRY("of no region", id, REGION + 1);
		TRY("of an absurd region", id, UINT32_MAX);
		TRY("number absurd", number, UINT16_MAX);
		TRY("number too large", number, KDSM_MAX_LOCKS);
		TRY("level 0", level, 0);
		TRY("level absurd", level, UINT16_MAX);
#undef TRY
		refused(attack, "cut off", types[i], good, sizeof(*good) - 1);
		refused(attack, "of nothing", types[i], NULL, 0);
	}
}

static void bad_misses(struct attack *attack)
{
	struct kdsm_wire_lock_miss miss = { .node = NODES };

	refused(attack, "no such node is missed", KDSM_MESSAGE_LOCK_MISS, &miss, sizeof(miss));
	miss.node = UINT32_MAX;
	refused(attack, "an absurd node is missed", KDSM_MESSAGE_LOCK_MISS, &miss, sizeof(miss));
	miss.node = 1;
	refused(attack, "a node is told that it is missed", KDSM_MESSAGE_LOCK_MISS, &miss,
		sizeof(miss));
	refused(attack, "missed, cut off", KDSM_MESSAGE_LOCK_MISS, &miss, 4);
	/* Node 2 answers, so these messages have no effect. */
	for (miss.stuck = 0; miss.stuck < 2; miss.stuck++) {
		miss.node = 2;
		tap_result(lock_message(attack, KDSM_MESSAGE_LOCK_MISS, &miss, sizeof(miss)), 0,
			   "a node that is there is missed");
	}
}

static void bad_resumes(struct attack *attack, const struct kdsm_wire_lock *lock)
{
	const struct kdsm_wire_lock_resume good = { .lock = *lock, .next = UINT16_MAX };
	struct kdsm_wire_lock_resume bad;

#define TRY(what, field, value) do {					\
	bad = good;							\
	bad.field = (value);						\
	refused(attack, "resume, " what, KDSM_MESSAGE_LOCK_RESUME, &bad, sizeof(bad));	\
} while (0)
	TRY("ticket too large", lock.ticket, 1U << 31);
	TRY("ticket absurd", lock.ticket, UINT32_MAX);
	TRY("in a state in between", state, LEAVING);
	TRY("state absurd", state, UINT16_MAX);
	TRY("next is no node", next, NODES);
	TRY("next is itself", next, 1);
	TRY("flags absurd", flags, UINT32_MAX);
#undef TRY
	refused(attack, "resume, too short", KDSM_MESSAGE_LOCK_RESUME, &good, sizeof(good) - 1);
	/*
	 * This node may not resume the lock, or the lock is not frozen: the messages have
	 * no effect.
	 */
	bad = good;
	for (bad.state = NONE; bad.state <= HELD; bad.state += HELD) {
		bad.lock.epoch = 77;
		lock_message(attack, KDSM_MESSAGE_LOCK_RESUME, &bad, sizeof(bad));
	}
	tap_ok(lives(attack), "lock, resumed from nothing");
}

/* Attack a lock that the node knows. Three successive locks have their homes on three nodes. */
static void one_lock(struct attack *attack, u16 number, unsigned int *frozen, unsigned int *met)
{
	struct kdsm_wire_lock lock = { .id = REGION, .number = number, .level = 1, .epoch = 5 };
	struct kdsm_wire_lock_hand hand = { .lock = lock };
	int error;

	bad_names(attack, &lock);
	bad_resumes(attack, &lock);
	refused(attack, "handed over to one that does not wait", KDSM_MESSAGE_LOCK_HAND, &hand,
		kdsm_wire_hand_size(0, 0));
	error = lock_message(attack, KDSM_MESSAGE_LOCK_MEET, &lock, sizeof(lock));
	*met += !error;
	tap_ok(!error || error == -EINVAL, "lock, met: %s", tap_error(error));
	for (lock.epoch = 0; lock.epoch < 3; lock.epoch++) {
		error = lock_message(attack, KDSM_MESSAGE_LOCK_FREEZE, &lock, sizeof(lock));
		*frozen += !error;
		tap_ok(error <= 0 && lives(attack), "lock, frozen: %s", tap_error(error));
	}
}

void attack_locks(struct attack *attack)
{
	struct kdsm_wire_region add = { .name = "wire-locks", .id = REGION,
		.policy = KDSM_POLICY_PARTITIONED, .segments = ONE_SEGMENT(4096),
		.part_size = 4 << 20,
		.base = 0x200000000000ULL, .mode = 0600 };
	struct kdsm_wire_lock_open open = { .id = REGION, .kind = KDSM_LOCK_DMCS, .t_dc = 1,
		.t_r = 1, .t_w = 1, .t_l = { 1, 1, 1, 1, 1, 1, 1, 1 }, .first = 1 };
	unsigned int frozen = 0, met = 0;

	tap_result(attack_add(attack, &add), 0, "add of a region for locks");
	bad_misses(attack);
	/*
	 * The node has no counter of readers, so the message fails, but the node knows the
	 * lock then.
	 */
	for (open.number = 0; open.number < NODES; open.number++)
		tap_result(lock_message(attack, KDSM_MESSAGE_RW_JOIN, &open, sizeof(open)), -EINVAL,
			   "a lock is made known");
	for (u16 number = 0; number < NODES; number++)
		one_lock(attack, number, &frozen, &met);
	tap_ok(met == 1, "one of them has its home there: %u", met);
	tap_ok(frozen == 3, "and its own home freezes one, three times: %u", frozen);
	tap_result(lock_message(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id)), 0,
		   "and its removal");
}
