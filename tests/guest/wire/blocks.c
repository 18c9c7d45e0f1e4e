// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about blocks of coherent regions: of invalid lengths, about blocks that do not
 * exist, with impossible hand-overs; and hand-overs with and without the set of readers.
 */
#include "../hostile.h"
#include "attack.h"

#define SHORT(whole)	((whole) - KDSM_READERS_SIZE)

/* Return the status of the reply. If that is 0, the payload must have the expected length. */
static int block_message(struct attack *attack, u16 type, const struct kdsm_wire_block *block,
			 u16 length, u16 expected)
{
	struct kdsm_wire_header reply = { 0 };
	int error = attack_ask(attack, type, block, length, &reply);

	if (error)
		return error;
	if (!reply.status && reply.length != expected) {
		printf("# a reply of %u bytes, not %u\n", reply.length, expected);
		return -EBADMSG;
	}
	return (int32_t)reply.status;
}

/* A hand-over has its whole set of readers or none of it; no length between is valid. */
static void block_lengths(struct attack *attack, const struct kdsm_wire_block *good)
{
	const u16 whole = sizeof(*good), answer = sizeof(struct kdsm_wire_answer);
	const u16 bad[] = { 0, 4, SHORT(whole) - 1, SHORT(whole) + 1, SHORT(whole) + 8,
			    whole - 8, whole - 1, whole + 1 };
	static struct {
		struct kdsm_wire_block block;
		char more[8];
	} long_;

	long_.block = *good;
	for (u16 type = KDSM_MESSAGE_BLOCK_READ; type <= KDSM_MESSAGE_BLOCK_INVALIDATE; type++)
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			tap_result(block_message(attack, type, &long_.block, bad[i], 0), -EINVAL,
				   "block message %u of %u bytes", type, bad[i]);
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_READ, good, SHORT(whole),
				 SHORT(answer)), 0, "read of a block");
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_READ, good, whole, SHORT(answer)), 0,
		   "read of a block, with readers");
}

static bool attack_lives(struct attack *attack)
{
	struct kdsm_wire_header reply;

	return !attack_ask(attack, KDSM_MESSAGE_PROBE, NULL, 0, &reply) && !reply.status;
}

static void bad_blocks(struct attack *attack, const struct kdsm_wire_block *good, u64 blocks)
{
	struct kdsm_wire_block bad;

#define TRY(what, type, field, value) do {				\
	bad = *good;							\
	bad.handover = (struct kdsm_wire_handover){ .number = 9 };	\
	bad.field = (value);						\
	tap_ok(block_message(attack, KDSM_MESSAGE_BLOCK_##type, &bad, sizeof(bad), 0) < 0 && \
	       attack_lives(attack), "block, " what ": refused");	\
} while (0)
	TRY("of no region", READ, id, good->id + 5);
	TRY("behind the end", READ, index, blocks);
	TRY("absurd", OWN, index, -1ULL);
	TRY("at an absurd time", READ, clock, -1ULL);
	TRY("granted to its owner", GRANT, handover.number, 10);
	TRY("handed over by no node", GRANT, handover.from, UINT16_MAX - 1);
	TRY("handed over at an absurd time", OWN, handover.wts, -1ULL);
	TRY("handed over too often", READ, handover.number, -1ULL);
	TRY("of its owner, made invalid", INVALIDATE, handover.wts, 1);
	TRY("made invalid at an absurd time", INVALIDATE, handover.wts, -1ULL);
	TRY("lent by no node", LEND, handover.from, UINT16_MAX - 1);
	TRY("lent at an absurd time", LEND, handover.wts, -1ULL);
#undef TRY
}

/*
 * The set of readers is handed over with the ownership. A node must use the set as it was
 * sent, and the empty set if none was sent, whatever bytes follow the message in the
 * receive buffer.
 */
static void block_readers(struct attack *attack, const struct kdsm_wire_block *good)
{
	const u16 whole = sizeof(*good), answer = sizeof(struct kdsm_wire_answer);
	struct kdsm_wire_block block = *good;
	int error = 0;

	block.index++;
	memset(block.handover.readers, 0xff, sizeof(block.handover.readers));
	/* These bits are in all receive buffers of the module now. */
	for (int i = 0; i < 200 && !error; i++)
		error = block_message(attack, KDSM_MESSAGE_BLOCK_READ, &block, whole,
				      SHORT(answer));
	tap_result(error, 0, "200 reads of a block, with readers");
	memset(&block.handover, 0, sizeof(block.handover));
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_OWN, &block, SHORT(whole), answer), 0,
		   "a block with a reader handed over");
	/* Hand-over 1 was to the first owner, hand-over 2 to this node. */
	block.handover = (struct kdsm_wire_handover){ .number = 3 };
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_GRANT, &block, SHORT(whole), 0), 0,
		   "and back, without readers");
	memset(&block.handover, 0, sizeof(block.handover));
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_OWN, &block, SHORT(whole),
				 SHORT(answer)), 0, "and again: it has none");
	block.handover = (struct kdsm_wire_handover){ .number = 5, .readers = { 1 } };
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_GRANT, &block, whole, 0), 0,
		   "and back, with a reader");
	memset(&block.handover, 0, sizeof(block.handover));
	tap_result(block_message(attack, KDSM_MESSAGE_BLOCK_OWN, &block, SHORT(whole), answer), 0,
		   "and again: it has one");
}

/* Node 1 is the first owner of block 512 and those after it. */
void attack_blocks(struct attack *attack)
{
	struct kdsm_wire_region add = { .name = "wire-coherent", .id = 0x7778,
		.block_size = 4096, .part_size = 4 << 20, .base = 0x200000000000ULL,
		.mode = 0600 };
	const struct kdsm_wire_block block = { .id = add.id, .index = 512,
		.handover.from = UINT16_MAX };
	struct kdsm_wire_header reply;

	for (add.policy = KDSM_POLICY_RELEASE; add.policy <= KDSM_POLICY_STRICT; add.policy++) {
		tap_result(attack_add(attack, &add), 0, "add of a coherent region");
		block_lengths(attack, &block);
		bad_blocks(attack, &block, add.part_size / add.block_size);
		if (add.policy == KDSM_POLICY_STRICT)
			block_readers(attack, &block);
		tap_result(attack_ask(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id),
				      &reply) ?: (int32_t)reply.status, 0, "and its removal");
	}
}
