// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about locks and about dead nodes: of invalid lengths, about locks that do not
 * exist, from a node that may not send them, and with impossible states.
 */
#include "../hostile.h"
#include "attack.h"

#define NODES	3
#define REGION	0x7779

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

/* Every message about turns, with bad values in the fields that all of them have */
static void bad_turns(struct attack *attack, const struct kdsm_wire_turn *good)
{
	static const u16 types[] = {
		KDSM_MESSAGE_TURN_ENQUEUE, KDSM_MESSAGE_TURN_HAND, KDSM_MESSAGE_TURN_LEAVE,
		KDSM_MESSAGE_TURN_EXTEND, KDSM_MESSAGE_TURN_SURVEY,
	};
	const u16 size = kdsm_wire_turn_size(0);
	struct kdsm_wire_turn bad;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
#define TRY(what, field, value, length) do {				\
	bad = *good;							\
	bad.field = (value);						\
	refused(attack, what, types[i], &bad, length);			\
} while (0)
		TRY("of no region", id, REGION + 1, size);
		TRY("of an absurd region", id, UINT32_MAX, size);
		TRY("number absurd", number, UINT16_MAX, size);
		TRY("number too large", number, KDSM_MAX_LOCKS, size);
		TRY("more nodes than bytes", count, 1, size);
		TRY("too many nodes", count, KDSM_WIRE_NEXT + 1, sizeof(bad));
		TRY("bytes without nodes", count, 0, sizeof(bad));
#undef TRY
		refused(attack, "cut off", types[i], good, size - 1);
		refused(attack, "of nothing", types[i], NULL, 0);
	}
}

/* The same for messages about readers, which a lock without readers refuses, too */
static void bad_passes(struct attack *attack, u32 region, u16 number)
{
	static const u16 types[] = {
		KDSM_MESSAGE_READ_ENTER, KDSM_MESSAGE_READ_ADMIT, KDSM_MESSAGE_READ_REVOKE,
		KDSM_MESSAGE_READ_DISMISS, KDSM_MESSAGE_READ_LEFT,
	};
	struct kdsm_wire_pass pass = { .id = region, .number = number };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		refused(attack, "readers, cut off", types[i], &pass, sizeof(pass) - 1);
		refused(attack, "readers, too long", types[i], &pass, sizeof(pass) + 1);
		refused(attack, "readers, of nothing", types[i], NULL, 0);
	}
	/* Nodes in absurd states of a lock that the node does not have: no effect */
	pass.flags = UINT16_MAX;
	pass.mode = UINT16_MAX;
	pass.life = UINT64_MAX;
	pass.request = UINT64_MAX;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		lock_message(attack, types[i], &pass, sizeof(pass));
	tap_ok(lives(attack), "lock, absurd readers");
}

static void bad_misses(struct attack *attack)
{
	u32 node = NODES;

	refused(attack, "no such node is missed", KDSM_MESSAGE_LOCK_MISS, &node, sizeof(node));
	node = UINT32_MAX;
	refused(attack, "an absurd node is missed", KDSM_MESSAGE_LOCK_MISS, &node, sizeof(node));
	node = 1;
	refused(attack, "a node is told that it is missed", KDSM_MESSAGE_LOCK_MISS, &node,
		sizeof(node));
	refused(attack, "missed, cut off", KDSM_MESSAGE_LOCK_MISS, &node, 3);
	/* Node 2 answers, so these messages have no effect. */
	node = 2;
	for (int i = 0; i < 2; i++)
		tap_result(lock_message(attack, KDSM_MESSAGE_LOCK_MISS, &node, sizeof(node)), 0,
			   "a node that is there is missed");
}

/* Attack a lock of a region that the node has. The node is not node 0, which knows no lock. */
static void one_lock(struct attack *attack, u16 number)
{
	struct kdsm_wire_turn turn = { .id = REGION, .number = number, .epoch = 5, .life = 7 };

	bad_turns(attack, &turn);
	bad_passes(attack, REGION, number);
	refused(attack, "handed over to one that does not wait", KDSM_MESSAGE_TURN_HAND, &turn,
		kdsm_wire_turn_size(0));
	refused(attack, "asked for", KDSM_MESSAGE_TURN_ENQUEUE, &turn, kdsm_wire_turn_size(0));
}

void attack_locks(struct attack *attack)
{
	struct kdsm_wire_region add = { .name = "wire-locks", .id = REGION,
		.policy = KDSM_POLICY_PARTITIONED, .segments = ONE_SEGMENT(4096),
		.part_size = 4 << 20, .nodes = attack->hello.nodes,
		.base = 0x200000000000ULL, .mode = 0600 };

	tap_result(attack_add(attack, &add), 0, "add of a region for locks");
	bad_misses(attack);
	for (u16 number = 0; number < NODES; number++)
		one_lock(attack, number);
	tap_result(lock_message(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id)), 0,
		   "and its removal");
}
