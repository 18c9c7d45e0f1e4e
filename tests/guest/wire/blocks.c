// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about blocks of coherent regions: of invalid lengths, about blocks that do not
 * exist, with impossible hand-overs; and hand-overs with and without the set of readers. Pushes of
 * blocks of chunks that do not exist; and settings of regions that no node would choose.
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

/* ---- pushes ---- */

/*
 * Push blocks, and return the status of the reply. If that is 0, the reply must name no blocks, or
 * the count first ones of the chunk, and with "all" the latter. In policy release a node keeps no
 * block in mind that is as it was made, and does not name it.
 */
static int push(struct attack *attack, const struct kdsm_wire_push *wire, u16 length,
		unsigned int count, bool all)
{
	struct kdsm_wire_header reply = { 0 };
	int error = attack_ask(attack, KDSM_MESSAGE_BLOCK_PUSH, wire, length, &reply) ?:
		    (int32_t)reply.status;
	u64 answer[KDSM_PUSH_WORDS];

	if (error)
		return error;
	if (reply.length != sizeof(answer)) {
		printf("# a reply of %u bytes\n", reply.length);
		return -EBADMSG;
	}
	memcpy(answer, attack_payload(attack), sizeof(answer));
	if (!all && !answer[0])
		count = 0;
	for (unsigned int i = 0; i < KDSM_CHUNK_BLOCKS; i++) {
		bool said = answer[i / 64] >> i % 64 & 1, right = i < count;

		if (said != right) {
			printf("# wrong about block %u of the chunk\n", i);
			return -EBADMSG;
		}
	}
	return 0;
}

static void push_lengths(struct attack *attack, const struct kdsm_wire_push *good)
{
	const u16 whole = sizeof(*good);
	const u16 bad[] = { 0, 1, 4, 8, offsetof(struct kdsm_wire_push, blocks), whole - 8,
			    whole - 1, whole + 1, whole + 8, KDSM_MESSAGE_ROOM };
	static struct {
		struct kdsm_wire_push push;
		char more[KDSM_MESSAGE_ROOM];
	} long_;

	long_.push = *good;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		tap_result(push(attack, &long_.push, bad[i], 0, true), -EINVAL, "push of %u bytes",
			   bad[i]);
}

/* The chunk is the last one, has count blocks, and node 1 is the first owner of all of them. */
static void pushes(struct attack *attack, u32 id, u64 chunk_number, unsigned int count, bool all)
{
	static const u32 takes[] = { 2, 1U << 24, UINT32_MAX };
	struct kdsm_wire_push good = { .id = id, .chunk = chunk_number }, bad;

	memset(good.blocks, 0xff, sizeof(good.blocks));
	push_lengths(attack, &good);
#define TRY(what, field, value, error) do {				\
	for (u32 take_ = 0; take_ < 2; take_++) {			\
		bad = good;						\
		bad.take = take_;					\
		bad.field = (value);					\
		tap_result(push(attack, &bad, sizeof(bad), 0, true), error, "push, " what); \
		tap_ok(attack_lives(attack), "and node 1 goes on");	\
	}								\
} while (0)
	TRY("of no region", id, id + 5, -ENOENT);
	TRY("of an absurd region", id, UINT32_MAX, -ENOENT);
	TRY("of memory that is no region", id, id | 1 << 16, -ENOENT);
	TRY("of the chunk behind the end", chunk, chunk_number + 1, -EINVAL);
	TRY("of a chunk far out", chunk, 1ULL << 32, -EINVAL);
	/* The numbers of their first blocks, and the offsets of these, would be 0 in 64 bits. */
	TRY("of a chunk whose block wraps", chunk, 1ULL << 55, -EINVAL);
	TRY("of a chunk whose offset wraps", chunk, 1ULL << 43, -EINVAL);
	TRY("of a negative chunk", chunk, 1ULL << 63, -EINVAL);
	TRY("of the last number", chunk, -1ULL, -EINVAL);
#undef TRY
	tap_result(push(attack, &good, sizeof(good), 0, true), 0, "nothing was taken");
	/* The first owner of chunk 0 is node 0. */
	bad = good;
	bad.chunk = 0;
	tap_result(push(attack, &bad, sizeof(bad), 0, true), 0, "nor what another node owns");
	for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
		bad = good;
		bad.take = takes[i];
		tap_result(push(attack, &bad, sizeof(bad), count, false), -EINVAL,
			   "push, take is %#x", takes[i]);
	}
	bad = (struct kdsm_wire_push){ .id = id, .chunk = chunk_number, .take = 1 };
	tap_result(push(attack, &bad, sizeof(bad), 0, true), 0, "push of no blocks");
	bad.blocks[0] = 1;
	tap_result(push(attack, &bad, sizeof(bad), 1, all), 0, "push of one block");
	bad.take = 0;
	tap_result(push(attack, &bad, sizeof(bad), 1, all), 0, "and it is there");
	/* Bits of blocks that the chunk does not have mean nothing. */
	good.take = 1;
	tap_result(push(attack, &good, sizeof(good), count, all), 0, "push of all bits");
	tap_result(push(attack, &good, sizeof(good), count, all), 0, "and again");
	good.take = 0;
	tap_result(push(attack, &good, sizeof(good), count, all), 0, "and they are there");
	tap_ok(attack_lives(attack), "and node 1 goes on");
}

/* Chunks with as many blocks as there are bits, with fewer, and with one */
static void push_regions(struct attack *attack, struct kdsm_wire_region add)
{
	static const struct {
		struct kdsm_wire_segments segments;
		u32 count;
		u64 size, chunk;
	} shapes[] = {
		{ ONE_SEGMENT(4096), 512, 4 << 20, 1 }, { ONE_SEGMENT(4096), 256, 3 << 20, 1 },
		{ ONE_SEGMENT(4096), 1, (2 << 20) + 4096, 1 },
		{ ONE_SEGMENT(8192), 128, 5 << 20, 2 },
		{ { 2, { { 0, 4096 }, { 2 << 20, 65536 } } }, 32, 4 << 20, 1 },
		{ { 3, { { 0, 4096 }, { 2 << 20, 65536 }, { 4 << 20, 2 << 20 } } }, 1, 6 << 20, 2 },
	};
	struct kdsm_wire_header reply;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		add.segments = shapes[i].segments;
		add.part_size = shapes[i].size;
		tap_result(attack_add(attack, &add), 0, "add of a region for pushes");
		pushes(attack, add.id, shapes[i].chunk, shapes[i].count,
		       add.policy == KDSM_POLICY_STRICT);
		tap_result(attack_ask(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id),
				      &reply) ?: (int32_t)reply.status, 0, "and its removal");
	}
	/* Such a region would have no block, so no chunk of it would have a last one. */
	add.segments.count = 1;
	add.segments.list[0].block_size = 8192;
	add.part_size = 4096;
	tap_result(attack_add(attack, &add), -EINVAL, "add of a region smaller than a block");
	attack_ask(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id), &reply);
	tap_ok(attack_lives(attack), "and node 1 goes on");
}

/* ---- segments ---- */

static void bad_segments(struct attack *attack, struct kdsm_wire_region good)
{
	const struct kdsm_wire_block block = { .id = good.id, .index = 512,
		.handover.from = UINT16_MAX };
	struct kdsm_wire_header reply;
	struct kdsm_wire_region bad;

	good.segments = (struct kdsm_wire_segments){
		3, { { 0, 4096 }, { 2 << 20, 65536 }, { 6 << 20, 8192 } },
	};
	good.part_size = 8 << 20;
#define TRY(what, field, value) do {					\
	bad = good;							\
	bad.field = (value);						\
	tap_result(attack_add(attack, &bad), -EINVAL, "add, " what);	\
	tap_ok(attack_lives(attack), "and node 1 goes on");		\
} while (0)
	TRY("no segments", segments.count, 0);
	TRY("one segment more than there may be", segments.count, KDSM_MAX_SEGMENTS + 1);
	TRY("an absurd number of segments", segments.count, UINT32_MAX);
	TRY("segments in the other byte order", segments.count, 3U << 24);
	TRY("a segment of no block size", segments.count, 4);
	TRY("the first segment not at 0", segments.list[0].offset, 2 << 20);
	TRY("a segment not at a chunk", segments.list[1].offset, (2 << 20) + 4096);
	TRY("a segment at 1", segments.list[1].offset, 1);
	TRY("an empty segment", segments.list[1].offset, 6 << 20);
	TRY("segments in another order", segments.list[1].offset, 7 << 20);
	TRY("a segment behind the region", segments.list[2].offset, 8 << 20);
	TRY("a segment far behind the region", segments.list[2].offset, 1ULL << 62);
	TRY("a segment at the end of all", segments.list[2].offset, -1ULL << 21);
	TRY("blocks of 2 KiB", segments.list[1].block_size, 2048);
	TRY("blocks of 12 KiB", segments.list[1].block_size, 12288);
	TRY("blocks of 4 MiB", segments.list[0].block_size, 4 << 20);
	TRY("blocks of an absurd size", segments.list[2].block_size, UINT32_MAX);
	TRY("half a block in the end", part_size, (8 << 20) - 4096);
#undef TRY
	tap_result(attack_add(attack, &good), 0, "add of a region with three segments");
	bad_blocks(attack, &block, 512 + 64 + 256);
	tap_result(attack_ask(attack, KDSM_MESSAGE_REMOVE, &good.id, sizeof(good.id), &reply) ?:
		   (int32_t)reply.status, 0, "and its removal");
}

/* ---- settings ---- */

static int tune(struct attack *attack, u16 type, const void *wire, u16 length)
{
	struct kdsm_wire_header reply = { 0 };

	return attack_ask(attack, type, wire, length, &reply) ?: (int32_t)reply.status;
}

static void settings(struct attack *attack, u32 id, u32 policy)
{
	const u32 both = KDSM_TUNE_LEASE | KDSM_TUNE_LIMIT;
	const u64 least = KDSM_LIMIT_MIN;
	const int lease_status = policy == KDSM_POLICY_STRICT ? 0 : -EOPNOTSUPP;
	const struct kdsm_wire_tune good = { .id = id, .turn = 1, .which = KDSM_TUNE_LIMIT,
		.limit = least };
	struct {
		struct kdsm_wire_tune tune;
		char more[8];
	} long_ = { .tune = good };
	const u16 whole = sizeof(good), bad_lengths[] = { 0, 4, 24, whole - 8, whole - 1,
		whole + 1, whole + 8 };
	struct kdsm_wire_tune wire;

	for (size_t i = 0; i < sizeof(bad_lengths) / sizeof(bad_lengths[0]); i++)
		tap_result(tune(attack, KDSM_MESSAGE_TUNED, &long_, bad_lengths[i]), -EINVAL,
			   "settings of %u bytes", bad_lengths[i]);
#define TRY(what, id_, turn_, which_, limit_, lease_, status) do {	\
	wire = (struct kdsm_wire_tune){ .id = (id_), .turn = (turn_), .which = (which_), \
					.limit = (limit_), .lease = (lease_) };	\
	tap_result(tune(attack, KDSM_MESSAGE_TUNED, &wire, whole), status, "settings, " what); \
	tap_ok(attack_lives(attack), "and node 1 goes on");		\
} while (0)
	TRY("none", id, 2, 0, least, 0, -EINVAL);
	TRY("unknown", id, 2, 4, 0, 0, -EINVAL);
	TRY("unknown, and the limit", id, 2, 4 | KDSM_TUNE_LIMIT, least, 0, -EINVAL);
	TRY("of the other byte order", id, 2, KDSM_TUNE_LIMIT << 24, least, 0, -EINVAL);
	TRY("all bits", id, 2, UINT32_MAX, least, 0, -EINVAL);
	TRY("limit of a byte", id, 2, KDSM_TUNE_LIMIT, 1, 0, -EINVAL);
	TRY("limit too small", id, 2, KDSM_TUNE_LIMIT, least - 1, 0, -EINVAL);
	TRY("lease too long", id, 2, KDSM_TUNE_LEASE, 0, KDSM_LEASE_MAX + 1, -EINVAL);
	TRY("lease absurd", id, 2, KDSM_TUNE_LEASE, 0, -1ULL, -EINVAL);
	TRY("a good limit and a bad lease", id, 2, both, least, -1ULL, -EINVAL);
	TRY("a good lease and a bad limit", id, 2, both, 1, 1000, -EINVAL);
	TRY("of no region", id + 5, 2, KDSM_TUNE_LIMIT, least, 0, -ENOENT);
	TRY("of an absurd region", UINT32_MAX, 2, KDSM_TUNE_LIMIT, least, 0, -ENOENT);
	TRY("of memory that is no region", id | 1 << 16, 2, KDSM_TUNE_LIMIT, least, 0, -ENOENT);
	TRY("a lease", id, 2, KDSM_TUNE_LEASE, 0, KDSM_LEASE_MAX, lease_status);
	TRY("both", id, 3, both, least, 1000, lease_status);
	/* A field whose bit is not set has no meaning. */
	TRY("a limit", id, 4, KDSM_TUNE_LIMIT, least, -1ULL, 0);
	TRY("a late one", id, 1, KDSM_TUNE_LIMIT, -1ULL, 0, 0);
	TRY("the largest limit", id, 5, KDSM_TUNE_LIMIT, -1ULL, 0, 0);
	TRY("the least limit", id, 6, KDSM_TUNE_LIMIT, least, 0, 0);
	TRY("a turn far ahead", id, 1U << 31, KDSM_TUNE_LIMIT, 0, 0, 0);
#undef TRY
	tap_result(tune(attack, KDSM_MESSAGE_TUNE, &good, whole), -EINVAL,
		   "settings, asked from a node other than 0");
}

/* Node 1 is the first owner of block 512 and those after it. */
void attack_blocks(struct attack *attack)
{
	struct kdsm_wire_region add = { .name = "wire-coherent", .id = 0x7778,
		.segments = ONE_SEGMENT(4096), .part_size = 4 << 20, .base = 0x200000000000ULL,
		.nodes = attack->hello.nodes, .mode = 0600 };
	const struct kdsm_wire_block block = { .id = add.id, .index = 512,
		.handover.from = UINT16_MAX };
	struct kdsm_wire_header reply;

	for (add.policy = KDSM_POLICY_RELEASE; add.policy <= KDSM_POLICY_STRICT; add.policy++) {
		tap_result(attack_add(attack, &add), 0, "add of a coherent region");
		block_lengths(attack, &block);
		bad_blocks(attack, &block, add.part_size / 4096);
		if (add.policy == KDSM_POLICY_STRICT)
			block_readers(attack, &block);
		settings(attack, add.id, add.policy);
		tap_result(attack_ask(attack, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id),
				      &reply) ?: (int32_t)reply.status, 0, "and its removal");
		push_regions(attack, add);
		bad_segments(attack, add);
	}
}
