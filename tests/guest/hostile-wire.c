// SPDX-License-Identifier: GPL-2.0
/*
 * A program on node 0 sends the module of node 1 messages that no node would send: bad
 * introductions, and, introduced as node 0, bad messages. Node 1 only answers questions
 * about its counters, by an ordinary socket. The other nodes wait. Before, node 2 sends it a few
 * messages that only node 0 may send.
 *
 * Node 0's own module is down meanwhile. Otherwise the module and the program would end
 * each other's connections, because node 1 would take each for node 0 after a restart. At
 * the end the module is up again, an impostor disturbs it, and it must reconnect.
 */
#include <time.h>

#include "hostile.h"
#include "random.h"
#include "wire/attack.h"
#include "wire/meeting.h"
#include "wire/victim.h"

static struct counters ask(void);

static struct scene scene = { .ask = ask };
static FILE *victim;

static struct counters ask(void)
{
	struct counters c;

	fputc('?', victim);
	/* The newline, too: a socket cannot go back to it before the next fputc(). */
	if (fscanf(victim, "%ld %ld %ld %ld %ld %ld %ld %ld %ld%*c", &c.cluster, &c.version,
		   &c.node, &c.message, &c.key, &c.proof, &c.port, &c.silent, &c.log) != 9)
		tap_bail("node 1 does not answer");
	return c;
}

static bool same(const struct counters *a, const struct counters *b)
{
	return a->cluster == b->cluster && a->version == b->version &&
	       a->node == b->node && a->message == b->message;
}

/* The introduction must be refused for that reason, and counted under it. */
static void refused(const char *what, const struct kdsm_wire_hello *bad, size_t length,
		    int reason)
{
	struct counters before = ask(), after;
	struct attack attack;
	int error;

	error = attack_connect(&attack, &scene.own, &scene.target, bad, length, true);
	if (!error)
		attack_close(&attack);
	tap_result(error, -ECONNREFUSED, "connect, %s", what);
	tap_ok(attack.refused == reason, "told why: %d", reason);
	if (attack.refused != reason)
		printf("# got %d\n", attack.refused);
	switch (reason) {
	case KDSM_REFUSED_VERSION:
		before.version++;
		break;
	case KDSM_REFUSED_NODE:
		before.node++;
		break;
	default:
		before.cluster++;
		break;
	}
	after = ask();
	tap_ok(same(&before, &after), "and counted as that");
	if (!same(&before, &after))
		printf("# cluster %ld for %ld, version %ld for %ld, node %ld for %ld\n",
		       after.cluster, before.cluster, after.version, before.version,
		       after.node, before.node);
}

static void bad_introductions(void)
{
	struct kdsm_wire_hello bad = scene.hello;

	refused("no introduction", NULL, 0, KDSM_REFUSED_CLUSTER);
	refused("introduction cut off after the version", &bad, 6, KDSM_REFUSED_CLUSTER);
	refused("introduction cut off in the UUID", &bad,
		offsetof(struct kdsm_wire_hello, uuid) + KDSM_UUID_SIZE - 1, KDSM_REFUSED_CLUSTER);
#define TRY(what, field, value, reason) do {				\
	bad = scene.hello;							\
	bad.field = (value);						\
	refused(what, &bad, sizeof(bad), reason);			\
} while (0)
	TRY("wrong magic", magic, KDSM_WIRE_MAGIC + 1, KDSM_REFUSED_CLUSTER);
	TRY("magic of the other byte order", magic, __builtin_bswap32(KDSM_WIRE_MAGIC),
	    KDSM_REFUSED_CLUSTER);
	TRY("next version", version, KDSM_WIRE_VERSION + 1, KDSM_REFUSED_VERSION);
	TRY("version 0", version, 0, KDSM_REFUSED_VERSION);
	TRY("other UUID", uuid[15], scene.hello.uuid[15] ^ 1, KDSM_REFUSED_CLUSTER);
	TRY("node too large", node, scene.hello.nodes, KDSM_REFUSED_NODE);
	TRY("node absurd", node, UINT16_MAX, KDSM_REFUSED_NODE);
	TRY("node at another address", node, 1, KDSM_REFUSED_NODE);
	TRY("no nodes", nodes, 0, KDSM_REFUSED_NODE);
	TRY("a node beyond its own table", nodes, scene.hello.node, KDSM_REFUSED_NODE);
	TRY("too many nodes", nodes, KDSM_MAX_NODES + 1, KDSM_REFUSED_NODE);
	TRY("meant for another node", target, 0, KDSM_REFUSED_NODE);
	TRY("meant for no node", target, UINT16_MAX, KDSM_REFUSED_NODE);
	TRY("queue absurd", queue, 255, KDSM_REFUSED_NODE);
	TRY("other domain", domain, scene.hello.domain + 1, KDSM_REFUSED_DOMAIN);
#undef TRY
}

/* The log gets at most one line a second, however many connections are refused. */
static void quiet_log(void)
{
	struct kdsm_wire_hello bad = scene.hello;
	struct counters before = ask(), after;
	time_t from = time(NULL), seconds;
	struct attack attack;

	bad.version = 99;
	for (int i = 0; i < 60; i++)
		if (!attack_connect(&attack, &scene.own, &scene.target, &bad, sizeof(bad), true))
			attack_close(&attack);
	after = ask();
	seconds = time(NULL) - from;
	tap_ok(after.version - before.version == 60, "60 connections refused and counted");
	tap_ok(after.log - before.log <= seconds + 2, "%ld lines about it in %ld seconds",
	       after.log - before.log, seconds);
}

static bool connected(struct attack *attack, bool with_receives)
{
	int error = attack_enter(attack, &scene, with_receives);

	return tap_ok(!error, "connect as node 0: %s", tap_error(error));
}

static u32 cookie = ATTACK_COOKIE;

static struct kdsm_wire_header *compose(struct attack *attack, u16 type, u16 length)
{
	struct kdsm_wire_header *header = (void *)attack->send;

	memset(attack->send, 0, BIG);
	header->type = type;
	header->length = length;
	header->cookie = cookie;
	return header;
}

/*
 * A malformed message must end the connection. counted: whether the module sees the message
 * at all and counts it.
 */
static void nonsense(const char *what, u16 type, u16 length, u32 reserved, size_t sent,
		     bool counted)
{
	struct counters before = ask(), after;
	struct kdsm_wire_header reply;
	struct attack attack;
	int error;

	if (!connected(&attack, true))
		return;
	compose(&attack, type, length)->reserved = reserved;
	attack_send(&attack, sent);
	error = attack_reply(&attack, &reply, 15000);
	tap_result(error, -ECONNRESET, "message, %s", what);
	attack_close(&attack);
	after = ask();
	tap_ok(after.message == before.message + counted, "and counted %d times", counted);
}

static void nonsenses(void)
{
	const size_t header = sizeof(struct kdsm_wire_header);

	nonsense("no bytes", 0, 0, 0, 0, true);
	nonsense("1 byte", 0, 0, 0, 1, true);
	nonsense("a byte less than a header", 0, 0, 0, header - 1, true);
	nonsense("length too large", KDSM_MESSAGE_PROBE, 1, 0, header, true);
	nonsense("length absurd", KDSM_MESSAGE_PROBE, UINT16_MAX, 0, header, true);
	nonsense("length too small", KDSM_MESSAGE_PROBE, 0, 0, header + 8, true);
	nonsense("unknown type", KDSM_MESSAGE_TYPES, 0, 0, header, true);
	nonsense("type absurd", UINT16_MAX, 0, 0, header, true);
	nonsense("reserved", KDSM_MESSAGE_PROBE, 0, 1, header, true);
	for (cookie = KDSM_CREDITS; cookie <= UINT16_MAX; cookie <<= 1)
		nonsense("slot that is not there", KDSM_MESSAGE_PROBE, 0, 0, header, true);
	cookie = ATTACK_COOKIE;
	nonsense("a byte too long", KDSM_MESSAGE_PROBE,
		 KDSM_MESSAGE_SIZE + 1 - header, 0, KDSM_MESSAGE_SIZE + 1, false);
	nonsense("far too long", KDSM_MESSAGE_PROBE, BIG - header, 0, BIG, false);
	nonsense("put without a payload", KDSM_MESSAGE_PUT, 0, 0, header, true);
	nonsense("put of nothing", KDSM_MESSAGE_PUT, sizeof(struct kdsm_wire_put), 0,
		 header + sizeof(struct kdsm_wire_put), true);
}

/* A put that the region does not have must end the connection; a good one has no reply. */
static void put(const char *what, struct kdsm_wire_put wire, u16 words, int error)
{
	struct kdsm_wire_header reply;
	struct attack attack;

	if (!connected(&attack, true))
		return;
	compose(&attack, KDSM_MESSAGE_PUT, sizeof(wire) + words);
	memcpy(attack.send + sizeof(struct kdsm_wire_header), &wire, sizeof(wire));
	attack_send(&attack, sizeof(struct kdsm_wire_header) + sizeof(wire) + words);
	tap_result(attack_reply(&attack, &reply, error ? 15000 : 500), error ?: -ETIMEDOUT,
		   "put, %s", what);
	attack_close(&attack);
}

static void puts_by_message(u32 id, u64 end)
{
	put("as it should be", (struct kdsm_wire_put){ .id = id, .offset = 128 }, 8, 0);
	put("to no region", (struct kdsm_wire_put){ .id = id + 1, .offset = 128 }, 8, 0);
	put("reserved", (struct kdsm_wire_put){ .id = id, .reserved = 1 }, 8, -ECONNRESET);
	put("half a word", (struct kdsm_wire_put){ .id = id }, 12, -ECONNRESET);
	put("misaligned", (struct kdsm_wire_put){ .id = id, .offset = 4 }, 8, -ECONNRESET);
	put("behind the end", (struct kdsm_wire_put){ .id = id, .offset = end }, 8, -ECONNRESET);
	put("over the end", (struct kdsm_wire_put){ .id = id, .offset = end - 8 }, 16,
	    -ECONNRESET);
	put("offset absurd", (struct kdsm_wire_put){ .id = id, .offset = -8ULL }, 16,
	    -ECONNRESET);
}

/* A well-formed message: the reply must have that status, or any error. */
#define ANY_ERROR	1

static void message(struct attack *attack, const char *what, u16 type,
		    const void *payload, u16 length, int status)
{
	struct kdsm_wire_header reply = { 0 };
	int error = attack_ask(attack, type, payload, length, &reply), got;

	got = (int32_t)reply.status;
	tap_ok(!error &&
	       (status == ANY_ERROR ? got < 0 : got == status), "message, %s: %s", what,
	       error ? "no reply" : tap_error(got));
}

/* The region exists, so only the bad field can be the reason of an error. */
static void keys_and_atomics(struct attack *attack, u32 id, u64 end)
{
	const char zero[64] = { 0 };
	struct kdsm_wire_keys keys;
	struct kdsm_wire_atomic atomic;

#define TRY(what, chunk_, id_, status) do {				\
	keys = (struct kdsm_wire_keys){ .id = (id_), .chunk = (chunk_) };	\
	message(attack, "keys, " what, KDSM_MESSAGE_KEYS, &keys, sizeof(keys), status); \
} while (0)
	TRY("as they should be", 0, id, 0);
	TRY("of the last chunk", (end >> 21) - 1, id, 0);
	TRY("of no region", 0, id + 1, ANY_ERROR);
	TRY("id absurd", 0, UINT32_MAX, ANY_ERROR);
	TRY("behind the end", end >> 21, id, ANY_ERROR);
	TRY("of another window", 512, id, ANY_ERROR);
	TRY("far out", 1U << 31, id, ANY_ERROR);
	TRY("of the last number", UINT32_MAX, id, ANY_ERROR);
#undef TRY
	message(attack, "keys, cut off", KDSM_MESSAGE_KEYS, &keys, sizeof(keys) - 1, ANY_ERROR);
	message(attack, "keys, too long", KDSM_MESSAGE_KEYS, zero, sizeof(zero), ANY_ERROR);
	for (u16 type = KDSM_MESSAGE_CAS; type <= KDSM_MESSAGE_FAA; type++) {
#define TRY(what, offset_, id_, status) do {				\
	atomic = (struct kdsm_wire_atomic){ .id = (id_), .offset = (offset_) };	\
	message(attack, "atomic, " what, type, &atomic, sizeof(atomic), status);	\
} while (0)
		TRY("as it should be", end - 8, id, 0);
		TRY("on no region", 0, id + 1, ANY_ERROR);
		TRY("at 4", 4, id, ANY_ERROR);
		TRY("at the end", end, id, ANY_ERROR);
		TRY("far out", 1ULL << 63, id, ANY_ERROR);
		TRY("at the end of all", -8ULL, id, ANY_ERROR);
#undef TRY
		message(attack, "atomic, cut off", type, &atomic, 8, ANY_ERROR);
		message(attack, "atomic, of nothing", type, &atomic, 0, ANY_ERROR);
	}
}

static void revoke_keys(struct attack *attack, const char *what, struct kdsm_wire_revoke wire,
			int status)
{
	message(attack, what, KDSM_MESSAGE_REVOKE, &wire, sizeof(wire), status);
	message(attack, "and node 1 goes on", KDSM_MESSAGE_PROBE, NULL, 0, 0);
}

#define REVOKE(what, id, chunk, first, count, status)			\
	revoke_keys(attack, "revoke, " what,				\
		    (struct kdsm_wire_revoke){ id, chunk, first, count }, status)

/* Node 1 never asked for a key of node 0's part. */
static void revokes(struct attack *attack, u32 id, u32 chunks)
{
	const u16 whole = sizeof(struct kdsm_wire_revoke);
	const u16 bad[] = { 0, 1, 4, 8, whole - 4, whole - 1, whole + 1, whole + 4,
			    KDSM_MESSAGE_ROOM };
	const struct kdsm_wire_keys keys = { .id = id };
	static struct {
		struct kdsm_wire_revoke revoke;
		char more[KDSM_MESSAGE_ROOM];
	} long_;

	long_.revoke = (struct kdsm_wire_revoke){ .id = id, .count = 1 };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		message(attack, "revoke, of a wrong length", KDSM_MESSAGE_REVOKE, &long_, bad[i],
			-EINVAL);
	REVOKE("of no region", id + 1, 0, 0, 1, -ENOENT);
	REVOKE("id absurd", UINT32_MAX, 0, 0, 1, -ENOENT);
	REVOKE("of memory that the region does not have", id | 1 << 16, 0, 0, 1, -ENOENT);
	REVOKE("no chunks", id, 0, 0, 0, -EINVAL);
	REVOKE("no chunks at the end", id, chunks, chunks, 0, -EINVAL);
	REVOKE("a chunk too many", id, 0, 0, chunks + 1, -EINVAL);
	REVOKE("over the end", id, chunks - 1, chunks - 1, 2, -EINVAL);
	REVOKE("behind the end", id, chunks, chunks, 1, -EINVAL);
	REVOKE("of another window", id, 512, 512, 1, -EINVAL);
	REVOKE("a window of chunks", id, 0, 0, 512, -EINVAL);
	REVOKE("far out", id, 1U << 31, 1U << 31, 1, -EINVAL);
	REVOKE("half of all chunks", id, 0, 0, 1U << 31, -EINVAL);
	REVOKE("all chunks", id, 0, 0, UINT32_MAX, -EINVAL);
	REVOKE("of the last number", id, UINT32_MAX, UINT32_MAX, 1, -EINVAL);
	/* first + count is 0 and 1 in 32 bits. */
	REVOKE("that wraps", id, 0, UINT32_MAX, 1, -EINVAL);
	REVOKE("that wraps to 1", id, 0, UINT32_MAX, 2, -EINVAL);
	REVOKE("that wraps from the start", id, 0, 1, UINT32_MAX, -EINVAL);
	REVOKE("of a chunk before", id, 0, 1, 1, -EINVAL);
	REVOKE("of a chunk after", id, 1, 0, 1, -EINVAL);
	REVOKE("of a chunk behind the end", id, chunks, 0, chunks, -EINVAL);
	REVOKE("of an absurd chunk", id, UINT32_MAX, 0, chunks, -EINVAL);
	REVOKE("as it should be", id, 0, 0, chunks, 0);
	for (int i = 0; i < 50; i++)
		message(attack, "revoke, again", KDSM_MESSAGE_REVOKE, &long_.revoke, whole, 0);
	message(attack, "and keys after it", KDSM_MESSAGE_KEYS, &keys, sizeof(keys), 0);
}

/* A region with two windows; its own memory, twins and stamps can have revoked keys. */
static void revokes_in_windows(struct attack *attack)
{
	const struct kdsm_wire_region add = { .name = "wire-windows", .id = 0x777a,
		.policy = KDSM_POLICY_RELEASE, .segments = ONE_SEGMENT(2 << 20),
		.part_size = 513ULL << 21, .base = 0x200000000000ULL, .nodes = scene.hello.nodes,
		.mode = 0600 };
	const u32 id = add.id;
	int error = attack_add(attack, &add);

	if (error == -ENOMEM) {
		tap_ok(true, "# SKIP too little memory for two windows");
		return;
	}
	tap_result(error, 0, "add of a region with two windows");
	REVOKE("over two windows", id, 511, 511, 2, -EINVAL);
	REVOKE("over two windows, of the second", id, 512, 511, 2, -EINVAL);
	REVOKE("of both windows", id, 0, 0, 513, -EINVAL);
	REVOKE("of the first window", id, 511, 0, 512, 0);
	REVOKE("of the second window", id, 512, 512, 1, 0);
	REVOKE("of the second window, and more", id, 512, 512, 2, -EINVAL);
	REVOKE("of the twins", id | 1 << 16, 512, 512, 1, 0);
	REVOKE("of twins over two windows", id | 1 << 16, 511, 511, 2, -EINVAL);
	REVOKE("of the stamps", id | 1 << 17, 0, 0, 1, 0);
	REVOKE("of stamps behind the end", id | 1 << 17, 1, 1, 1, -EINVAL);
	REVOKE("of twins that are stamps", id | 3 << 16, 0, 0, 1, -ENOENT);
	message(attack, "remove of the windows", KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id), 0);
}

/* A partitioned region has no blocks, and no settings. */
static void coherent_only(struct attack *attack, u32 id)
{
	struct kdsm_wire_push push = { .id = id };
	struct kdsm_wire_tune tune = { .id = id, .turn = 1, .limit = KDSM_LIMIT_MIN };

	memset(push.blocks, 0xff, sizeof(push.blocks));
	for (; push.take < 2; push.take++)
		message(attack, "push, of a partitioned region", KDSM_MESSAGE_BLOCK_PUSH, &push,
			sizeof(push), -EOPNOTSUPP);
	for (tune.which = 1; tune.which <= (KDSM_TUNE_LEASE | KDSM_TUNE_LIMIT); tune.which++)
		message(attack, "settings, of a partitioned region", KDSM_MESSAGE_TUNED, &tune,
			sizeof(tune), -EOPNOTSUPP);
}

/* A report is what the attacker asks for, or an error; it changes nothing. */
static void reports(struct attack *attack)
{
	struct kdsm_wire_ask good = { .report = KDSM_REPORT_LATENCY }, bad;
	static const u64 ends[] = { KDSM_LATENCY_COUNT, UINT32_MAX, 1ULL << 63, UINT64_MAX };
	char more[sizeof(good) + 1] = { 0 };

	for (unsigned int report = 0; report < KDSM_REPORTS; report++) {
		good.report = report;
		message(attack, "report, as it should be", KDSM_MESSAGE_REPORT, &good,
			sizeof(good), 0);
	}
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		bad = (struct kdsm_wire_ask){ .report = KDSM_REPORT_LATENCY, .from = ends[i] };
		message(attack, "report, no such latency", KDSM_MESSAGE_REPORT, &bad, sizeof(bad),
			-EINVAL);
		bad.report = KDSM_REPORT_REGIONS;
		message(attack, "report, regions from far on", KDSM_MESSAGE_REPORT, &bad,
			sizeof(bad), 0);
		bad.report = KDSM_REPORT_LOCKS;
		message(attack, "report, locks from far on", KDSM_MESSAGE_REPORT, &bad,
			sizeof(bad), 0);
	}
	bad = (struct kdsm_wire_ask){ .report = KDSM_REPORTS };
	message(attack, "report, unknown", KDSM_MESSAGE_REPORT, &bad, sizeof(bad), -EINVAL);
	bad = (struct kdsm_wire_ask){ .reserved = 1 };
	message(attack, "report, reserved", KDSM_MESSAGE_REPORT, &bad, sizeof(bad), -EINVAL);
	message(attack, "report, cut off", KDSM_MESSAGE_REPORT, &good, sizeof(good) - 1, -EINVAL);
	message(attack, "report, too long", KDSM_MESSAGE_REPORT, more, sizeof(more), -EINVAL);
	message(attack, "and node 1 goes on", KDSM_MESSAGE_PROBE, NULL, 0, 0);
}

static void finds(struct attack *attack, u32 id, u64 end)
{
	const struct kdsm_wire_find good = {
		.id = id, .probes = 8, .index = end / 2, .entries = 8, .nodes = 8, .data = 4096,
		.node = { 1, 2 }, .number = 9, .fragment = 5, .run = 8,
	};
	struct kdsm_wire_find bad;

	message(attack, "find, as it should be", KDSM_MESSAGE_FIND, &good, sizeof(good), 0);
#define TRY(what, field, value) do {					\
	bad = good;							\
	bad.field = (value);						\
	message(attack, "find, " what, KDSM_MESSAGE_FIND, &bad, sizeof(bad), ANY_ERROR); \
} while (0)
	TRY("in no region", id, id + 1);
	TRY("no probes", probes, 0);
	TRY("probes absurd", probes, UINT32_MAX);
	TRY("index at 4", index, 4);
	TRY("index at the end", index, end);
	TRY("index at the end of all", index, -8ULL);
	TRY("no entries", entries, 0);
	TRY("entries over the end", entries, end / 16 + 1);
	TRY("entries that wrap", entries, 1ULL << 61);
	TRY("entry behind the last", entry, 8);
	TRY("no nodes", nodes, 0);
	TRY("nodes over the end", nodes, end / 16);
	TRY("nodes that wrap", nodes, 1ULL << 60);
	TRY("nodes at the end", data, end);
	TRY("nodes at 1", data, 1);
	TRY("first absurd", first, -1ULL);
	TRY("number absurd", number, -1ULL);
	TRY("fragment absurd", fragment, UINT32_MAX);
	TRY("a walk too long", done, KDSM_FIND_PROBES_MAX - 7);
	TRY("a walk absurd", done, UINT32_MAX - 7);
	TRY("runs of 0", run, 0);
	TRY("runs of 6", run, 6);
	TRY("runs absurd", run, UINT32_MAX);
#undef TRY
	message(attack, "find, cut off", KDSM_MESSAGE_FIND, &good, sizeof(good) - 1, ANY_ERROR);
	message(attack, "find, of nothing", KDSM_MESSAGE_FIND, &good, 0, ANY_ERROR);
}

static void thefts(struct attack *attack, u32 id, u64 end)
{
	const struct kdsm_wire_steal good = {
		.id = id, .most = KDSM_THEFT_MOST, .crew = 0, .workers = 64, .deques = end / 2,
		.stride = 128, .count = 4, .deque = 8, .first = -1U, .thief = 7, .proxy = 9,
	};
	struct kdsm_wire_steal bad;

	message(attack, "theft, as it should be", KDSM_MESSAGE_STEAL, &good, sizeof(good), 0);
#define TRY(what, field, value) do {					\
	bad = good;							\
	bad.field = (value);						\
	message(attack, "theft, " what, KDSM_MESSAGE_STEAL, &bad, sizeof(bad), ANY_ERROR); \
} while (0)
	TRY("in no region", id, id + 1);
	TRY("no tasks", most, 0);
	TRY("too many tasks", most, KDSM_THEFT_MOST + 1);
	TRY("tasks absurd", most, UINT32_MAX);
	TRY("crew at 4", crew, 4);
	TRY("crew at the end", crew, end);
	TRY("crew at the end of all", crew, -8ULL);
	TRY("workers at 8", workers, 8);
	TRY("workers at the end", workers, end);
	TRY("workers at the end of all", workers, -64ULL);
	TRY("no stride", stride, 0);
	TRY("stride absurd", stride, -64U);
	TRY("no workers", count, 0);
	TRY("workers absurd", count, UINT32_MAX);
	TRY("no deque", deque, 0);
	TRY("deque over the end", deque, end / 1024);
	TRY("deque absurd", deque, UINT32_MAX);
	TRY("deques at 1", deques, 1);
	TRY("deques at the end", deques, end);
	TRY("deques at the end of all", deques, -64ULL);
#undef TRY
	message(attack, "theft, cut off", KDSM_MESSAGE_STEAL, &good, sizeof(good) - 1, ANY_ERROR);
	message(attack, "theft, of nothing", KDSM_MESSAGE_STEAL, &good, 0, ANY_ERROR);
}

static void bad_regions(struct attack *attack, const struct kdsm_wire_region *good)
{
	struct kdsm_wire_region bad;

#define TRY(what, field, value) do {					\
	bad = *good;							\
	bad.field = (value);						\
	message(attack, "add, " what, KDSM_MESSAGE_ADD, &bad, sizeof(bad), ANY_ERROR); \
} while (0)
	TRY("no name", name[0], 0);
	TRY("escape in name", name[0], '\033');
	TRY("id too large", id, 1 << 16);
	TRY("no nodes", nodes, 0);
	TRY("not for this node", nodes, 1);
	TRY("more nodes than there are", nodes, scene.hello.nodes + 1);
	TRY("nodes absurd", nodes, UINT32_MAX);
	TRY("part empty", part_size, 0);
	TRY("part not of pages", part_size, 4097);
	TRY("part absurd", part_size, -4096ULL);
	TRY("part of 2^63", part_size, 1ULL << 63);
	TRY("part of 1 TiB", part_size, 1ULL << 40);
	TRY("policy unknown", policy, 99);
	TRY("no segments", segments.count, 0);
	TRY("block size 0", segments.list[0].block_size, 0);
	TRY("block size absurd", segments.list[0].block_size, UINT32_MAX);
	TRY("partitioned, two segments", segments,
	    ((struct kdsm_wire_segments){ 2, { { 0, 4096 }, { 2 << 20, 8192 } } }));
	TRY("mode absurd", mode, UINT32_MAX);
	TRY("base odd", base, 1);
	TRY("base in the kernel", base, 0xffff888000000000ULL);
	TRY("base 0", base, 0);
#undef TRY
	bad = *good;
	memset(bad.name, 'a', sizeof(bad.name));
	message(attack, "add, name without end", KDSM_MESSAGE_ADD, &bad, sizeof(bad), ANY_ERROR);
	message(attack, "add, cut off", KDSM_MESSAGE_ADD, good, sizeof(*good) - 1, ANY_ERROR);
}

/* Nodes that cannot be added or removed */
static void bad_nodes(struct attack *attack)
{
	const struct kdsm_wire_change good = { .node = scene.hello.nodes, .add = 1, .length = 4,
		.address = { 10, 77, 9, 9 }, .location = "rack" };
	struct kdsm_wire_change bad;

	message(attack, "node, not at node 0", KDSM_MESSAGE_NODE, &good, sizeof(good), -EINVAL);
	message(attack, "node, cut off", KDSM_MESSAGE_NODE_TOLD, &good, sizeof(good) - 1, -EINVAL);
	message(attack, "node, of nothing", KDSM_MESSAGE_NODE_TOLD, &good, 0, -EINVAL);
#define TRY(what, field, value, error) do {				\
	bad = good;							\
	bad.field = (value);						\
	message(attack, "node, " what, KDSM_MESSAGE_NODE_TOLD, &bad, sizeof(bad), error); \
} while (0)
	message(attack, "count of nodes", KDSM_MESSAGE_NODE_COUNT, NULL, 0, 0);
	message(attack, "count of nodes, with something", KDSM_MESSAGE_NODE_COUNT, &good, 4,
		-EINVAL);
	TRY("number 0", node, 0, -EINVAL);
	TRY("number too large", node, KDSM_MAX_NODES, -EINVAL);
	TRY("number absurd", node, UINT32_MAX, -EINVAL);
	TRY("a gap", node, scene.hello.nodes + 1, -EINVAL);
	TRY("number of another", node, 1, -EEXIST);
	TRY("neither added nor removed", add, 2, -EINVAL);
	TRY("reserved field", reserved, 1, -EINVAL);
	TRY("address of 5 bytes", length, 5, -EADDRNOTAVAIL);
	TRY("address of 255 bytes", length, 255, -EINVAL);
	TRY("IPv6 among IPv4", length, 16, -EAFNOSUPPORT);
	TRY("a multicast address", address[0], 224, -EADDRNOTAVAIL);
#undef TRY
	bad = good;
	memset(bad.address, 0, sizeof(bad.address));
	message(attack, "node, no address", KDSM_MESSAGE_NODE_TOLD, &bad, sizeof(bad),
		-EADDRNOTAVAIL);
	memcpy(bad.address, (u8[]){ 10, 77, 0, 1 }, 4);
	message(attack, "node, the address of node 0", KDSM_MESSAGE_NODE_TOLD, &bad, sizeof(bad),
		-EADDRINUSE);
	bad = good;
	memset(bad.location, 'a', sizeof(bad.location));
	message(attack, "node, location without end", KDSM_MESSAGE_NODE_TOLD, &bad,
		sizeof(bad), -EINVAL);
	strcpy(bad.location, "a\nb");
	message(attack, "node, location with newline", KDSM_MESSAGE_NODE_TOLD, &bad,
		sizeof(bad), -EINVAL);
	bad = (struct kdsm_wire_change){ .node = 1 };
	message(attack, "node, removes the receiver", KDSM_MESSAGE_NODE_TOLD, &bad,
		sizeof(bad), -EINVAL);
}

/* Node 0 keeps the directory: node 1 refuses requests to a directory, but obeys node 0's. */
static void regions(struct attack *attack)
{
	struct kdsm_wire_open open = { .name = "wire", .flags = KDSM_REGION_CREATE,
		.policy = KDSM_POLICY_PARTITIONED, .size = 1 << 20 };
	const struct kdsm_wire_region add = { .name = "wire", .id = 0x7777,
		.policy = KDSM_POLICY_PARTITIONED, .segments = ONE_SEGMENT(4096),
		.part_size = 4 << 20, .base = 0x200000000000ULL, .nodes = scene.hello.nodes,
		.mode = 0600 };
	const u16 id_size = sizeof(add.id);

	message(attack, "open, not at the directory", KDSM_MESSAGE_OPEN, &open, sizeof(open),
		ANY_ERROR);
	memset(open.name, 'a', sizeof(open.name));
	message(attack, "open, name without end", KDSM_MESSAGE_OPEN, &open, sizeof(open),
		ANY_ERROR);
	message(attack, "open, cut off", KDSM_MESSAGE_OPEN, &open, 4, ANY_ERROR);
	message(attack, "close of nothing", KDSM_MESSAGE_CLOSE, &add.id, id_size, ANY_ERROR);
	message(attack, "close, cut off", KDSM_MESSAGE_CLOSE, &add.id, 3, ANY_ERROR);
	message(attack, "destroy of nothing", KDSM_MESSAGE_DESTROY, &add.id, id_size, ANY_ERROR);
	message(attack, "destroy, too long", KDSM_MESSAGE_DESTROY, &add, 8, ANY_ERROR);
	message(attack, "remove of nothing", KDSM_MESSAGE_REMOVE, &add.id, id_size, ANY_ERROR);
	message(attack, "remove, cut off", KDSM_MESSAGE_REMOVE, &add.id, 0, ANY_ERROR);
	bad_regions(attack, &add);
	bad_nodes(attack);
	message(attack, "add, as it should be", KDSM_MESSAGE_ADD, &add, sizeof(add), 0);
	message(attack, "add, again", KDSM_MESSAGE_ADD, &add, sizeof(add), -EEXIST);
	keys_and_atomics(attack, add.id, add.part_size);
	revokes(attack, add.id, add.part_size >> 21);
	coherent_only(attack, add.id);
	reports(attack);
	finds(attack, add.id, add.part_size);
	thefts(attack, add.id, add.part_size);
	message(attack, "settle", KDSM_MESSAGE_SETTLE, NULL, 0, 0);
	attack_close(attack);
	puts_by_message(add.id, add.part_size);
	if (!connected(attack, true))
		return;
	message(attack, "remove, as it should be", KDSM_MESSAGE_REMOVE, &add.id, id_size, 0);
	message(attack, "remove, again", KDSM_MESSAGE_REMOVE, &add.id, id_size, ANY_ERROR);
	revokes_in_windows(attack);
}

static void wrong_messages(void)
{
	struct kdsm_wire_header reply;
	struct attack attack;

	if (!connected(&attack, true))
		return;
	regions(&attack);
	attack_blocks(&attack);
	attack_locks(&attack);
	compose(&attack, KDSM_MESSAGE_PROBE, 0);
	attack_send(&attack, sizeof(reply));
	tap_ok(!attack_reply(&attack, &reply, 15000) && !reply.status,
	       "the connection still answers a good message");
	attack_close(&attack);
}

/* One-sided operations with guessed keys are refused. */
static void stolen_keys(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct kdsm_wire_header reply;
	struct attack attack;

	for (int i = 0; i < 12; i++) {
		struct ibv_send_wr wr = { .opcode = opcodes[i % 4] };

		if (attack_enter(&attack, &scene, true)) {
			tap_ok(false, "connect as node 0");
			return;
		}
		if (i % 4 < 2) {
			wr.wr.rdma.remote_addr = 0x1000 * i;
			wr.wr.rdma.rkey = i < 4 ? 0 : 0x100 * i + i;
		} else {
			wr.wr.atomic.remote_addr = 0x1000 * i;
			wr.wr.atomic.rkey = i < 4 ? 0 : 0x100 * i + i;
		}
		attack_post(&attack, &wr, 8);
		if (attack_reply(&attack, &reply, 15000) != -ECONNRESET)
			tap_ok(false, "one-sided operation %d: refused", i);
		attack_close(&attack);
	}
	tap_ok(true, "one-sided operations with guessed keys");
}

/*
 * More messages than the program takes replies for, and puts to no region; then the program closes
 * the connection. Immediate data is nothing that the module knows.
 */
static void floods(void)
{
	struct ibv_send_wr notice = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct kdsm_wire_put nowhere = { .id = 0xffff };
	struct kdsm_wire_header reply;
	struct attack attack;

	if (!connected(&attack, false))
		return;
	compose(&attack, KDSM_MESSAGE_PROBE, 0);
	for (int i = 0; i < 300; i++)
		attack_send(&attack, sizeof(reply));
	usleep(500000);
	attack_close(&attack);
	if (!connected(&attack, true))
		return;
	compose(&attack, KDSM_MESSAGE_PUT, sizeof(nowhere) + 8);
	memcpy(attack.send + sizeof(reply), &nowhere, sizeof(nowhere));
	for (int i = 0; i < 300; i++)
		attack_send(&attack, sizeof(reply) + sizeof(nowhere) + 8);
	tap_result(attack_reply(&attack, &reply, 1000), -ETIMEDOUT, "puts to nowhere");
	attack_close(&attack);
	if (!connected(&attack, true))
		return;
	notice.imm_data = htonl(0x01234567);
	attack_post(&attack, &notice, 0);
	tap_result(attack_reply(&attack, &reply, 15000), -ECONNRESET, "immediate data");
	attack_close(&attack);
}

/*
 * A peer that takes no replies keeps workers for a bounded time: the transport or the module ends
 * the connection. The module has room for 64 replies; later requests wait for room, each in a slot
 * of its own.
 */
static void untaken_replies(void)
{
	struct kdsm_wire_header reply;
	struct attack attack;

	if (!connected(&attack, false))
		return;
	for (int i = 0; i < 90; i++) {
		compose(&attack, KDSM_MESSAGE_PROBE, 0)->cookie = i % KDSM_CREDITS;
		attack_send(&attack, sizeof(reply));
		usleep(10000);	/* the device reads the message from there */
	}
	tap_result(attack_reply(&attack, &reply, 60000), -ECONNRESET, "replies that nobody takes");
	attack_close(&attack);
}

static void random_messages(struct random *random)
{
	struct kdsm_wire_header reply;
	struct attack attack = { 0 };
	int connects = 0, replies = 0;

	for (int i = 0; i < 1000; i++) {
		/* Leave out the types that would change regions if a message were valid. */
		u16 type = random_below(random, KDSM_MESSAGE_OPEN);
		size_t length = random_below(random, 64), sent;
		struct kdsm_wire_header *header;

		if (!attack.id) {
			if (attack_enter(&attack, &scene, true))
				continue;
			connects++;
		}
		header = compose(&attack, type, length);
		for (size_t at = 0; at < length; at++)
			attack.send[sizeof(*header) + at] = random_one_in(random, 3) ?
							    random_64(random) : 0;
		sent = sizeof(*header) + length;
		if (random_one_in(random, 20))
			random_mangle(random, header, sizeof(*header));
		if (random_one_in(random, 50))
			sent = random_below(random, BIG);
		attack_send(&attack, sent);
		if (attack_reply(&attack, &reply, 15000))
			attack_close(&attack);
		else
			replies++;
	}
	if (attack.id)
		attack_close(&attack);
	tap_ok(replies > 500, "1000 random messages, %d replies, %d connections",
	       replies, connects);
}

/* A program that knows the key claims to be node 0 while node 0 is up. */
static void impostors(void)
{
	struct attack attack;

	for (int i = 0; i < 5; i++) {
		scene.hello.incarnation++;
		if (!attack_enter(&attack, &scene, true))
			attack_close(&attack);
	}
}

/* Programs that do not know the key claim to be node 0 while node 0 is up. */
static void strangers(void)
{
	int64_t connects = peer_member(1, "connects"), errors = peer_member(1, "errors");

	scene.hello.incarnation++;
	attack_unproven(&scene);
	recovers();
	tap_ok(connects == peer_member(1, "connects") && errors == peer_member(1, "errors"),
	       "and have broken no connection of the true node 0");
}

/* Node 2 may not send what node 0 sends. */
static void not_node_0(unsigned int node)
{
	const struct kdsm_wire_region add = { .name = "wire", .id = 0x7777,
		.policy = KDSM_POLICY_RELEASE, .segments = ONE_SEGMENT(4096),
		.part_size = 4 << 20, .base = 0x200000000000ULL, .nodes = scene.hello.nodes,
		.mode = 0600 };
	const struct kdsm_wire_revoke nothing = { .id = add.id, .count = 1 };
	const struct kdsm_wire_push push = { .id = add.id, .take = 1, .blocks = { 1 } };
	struct kdsm_wire_tune tune = { .id = add.id, .turn = 1, .limit = KDSM_LIMIT_MIN };
	const struct kdsm_wire_change third = { .node = scene.hello.nodes, .add = 1, .length = 4,
		.address = { 10, 77, 9, 9 } };
	struct attack attack;
	int error;

	if (node != 2)
		return;
	own_module("modprobe -a ib_uverbs rdma_ucm");
	meeting_scene(&scene, 2, 1);
	own_module("kdsmctl down");
	error = attack_enter(&attack, &scene, true);
	if (tap_ok(!error, "connect as node 2: %s", tap_error(error))) {
		message(&attack, "add, from node 2", KDSM_MESSAGE_ADD, &add, sizeof(add), -EINVAL);
		message(&attack, "remove, from node 2", KDSM_MESSAGE_REMOVE, &add.id,
			sizeof(add.id), -EINVAL);
		for (tune.which = 0; tune.which < 4; tune.which++)
			message(&attack, "settings, from node 2", KDSM_MESSAGE_TUNED, &tune,
				sizeof(tune), -EINVAL);
		message(&attack, "node, from node 2", KDSM_MESSAGE_NODE_TOLD, &third, sizeof(third),
			-EINVAL);
		/* Any node may send these, if the region exists. */
		message(&attack, "push, from node 2", KDSM_MESSAGE_BLOCK_PUSH, &push, sizeof(push),
			-ENOENT);
		message(&attack, "revoke, from node 2", KDSM_MESSAGE_REVOKE, &nothing,
			sizeof(nothing), -ENOENT);
		message(&attack, "and node 1 goes on", KDSM_MESSAGE_PROBE, NULL, 0, 0);
		attack_close(&attack);
	}
	own_module("kdsmctl up -f \"$KDSM_CONFIG\" -w 60");
}

/* Let node 2 attack, and wait until it has come back. */
static void others(void)
{
	fputc('>', victim);
	if (fgetc(victim) != '.')
		tap_bail("node 1 does not answer");
	recovers();
}

int main(int argc, char **argv)
{
	struct random random = { argc > 1 ? strtoull(argv[1], NULL, 0) : 1 };
	unsigned int node = strtoul(getenv("KDSM_NODE"), NULL, 10);

	meeting_scene(&scene, 0, 1);
	meeting_turn = not_node_0;
	victim = meeting_open(node, scene.hello.nodes);
	if (node == 1)
		return answer_questions(victim);
	/* Node 1 answers after all other nodes have arrived, and so have ended the test before. */
	ask();
	others();
	own_module("kdsmctl down");
	bad_introductions();
	quiet_log();
	attack_unproven(&scene);
	attack_strangers(&scene);
	nonsenses();
	wrong_messages();
	stolen_keys();
	floods();
	untaken_replies();
	random_messages(&random);
	own_module("kdsmctl up -f \"$KDSM_CONFIG\" -w 60");
	recovers();
	strangers();
	impostors();
	recovers();
	return tap_end();
}
