// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that do not know the key of the cluster, or do not prove that they do. Node 1 must refuse
 * and count them, grant them nothing, and go on with the true node 0.
 */
#include "../hostile.h"
#include "attack.h"

#define PUTS		40
#define FLOOD	100

static const struct scene *scene;
/* Number of wrong proofs that node 1 had counted before the newest connection */
static long wrong;

static int ask_for(struct attack *attack, const struct kdsm_wire_hello *hello)
{
	return attack_connect(attack, &scene->own, &scene->target, hello, sizeof(*hello), true);
}

/* The module must refuse the hello for a reason, and count it there. */
static void refused(const char *what, const struct kdsm_wire_hello *hello, int reason)
{
	const struct counters before = scene->ask();
	struct counters after;
	struct attack attack;
	int error = ask_for(&attack, hello);

	if (!error)
		attack_close(&attack);
	after = scene->ask();
	tap_result(error, -ECONNREFUSED, "ask, %s", what);
	tap_ok(attack.refused == reason, "told why: %d", reason);
	tap_ok(after.key == before.key + (reason == KDSM_REFUSED_KEY) &&
	       after.version == before.version + (reason == KDSM_REFUSED_VERSION),
	       "and counted as that");
}

static void without_key(void)
{
	struct kdsm_wire_hello bad = scene->hello;

	bad.key = 0;
	refused("without a key", &bad, KDSM_REFUSED_KEY);
	bad.key = scene->key.id ^ 1;
	refused("with another key", &bad, KDSM_REFUSED_KEY);
	/* A version in which peers did not prove themselves: no way back to it */
	bad.version = 5;
	refused("in an earlier version", &bad, KDSM_REFUSED_VERSION);
}

/*
 * Connect, and prove nothing yet. The module waits 5 s for a proof, and node 1 may take as long to
 * tell the counters, so they are asked for first.
 */
static bool accepted(struct attack *attack)
{
	int error;

	wrong = scene->ask().proof;
	error = ask_for(attack, &scene->hello);
	return tap_ok(!error, "accepted, to be proved: %s", tap_error(error));
}

/* The module must end the connection at that proof, and count the proof. */
static void disproved(const char *what, struct attack *attack, const u8 proof[KDSM_PROOF_SIZE])
{
	tap_result(attack_prove(attack, proof), -ECONNRESET, "proof, %s", what);
	attack_close(attack);
	tap_ok(scene->ask().proof == wrong + 1, "and counted as that");
}

static void wrong_proofs(void)
{
	struct attack_key other = scene->key;
	u8 proof[KDSM_PROOF_SIZE] = { 0 }, good[KDSM_PROOF_SIZE];
	struct attack attack;

	if (accepted(&attack))
		disproved("of zeros", &attack, proof);
	other.bytes[31] ^= 1;
	if (accepted(&attack)) {
		attack_proof(&attack, &other, KDSM_ROLE_ASKER, proof);
		disproved("of another key", &attack, proof);
	}
	/* The module's own proof, sent back to it */
	if (accepted(&attack)) {
		attack_proof(&attack, &scene->key, KDSM_ROLE_ACCEPTER, proof);
		tap_ok(!memcmp(proof, attack.welcome.proof, sizeof(proof)),
		       "the module proves that it knows the key");
		disproved("reflected", &attack, attack.welcome.proof);
	}
	/* A request and a proof that were good once, sent again */
	if (accepted(&attack)) {
		attack_proof(&attack, &scene->key, KDSM_ROLE_ASKER, good);
		attack_close(&attack);
	}
	if (accepted(&attack))
		disproved("replayed", &attack, good);
	if (accepted(&attack)) {
		attack_proof(&attack, &scene->key, KDSM_ROLE_ASKER, proof);
		proof[0] ^= 0x80;
		disproved("with one wrong bit", &attack, proof);
	}
}

/* Whatever a stranger sends instead of a proof ends the connection, and counts as malformed. */
static void other_messages(void)
{
	const struct kdsm_wire_keys keys = { .id = 1 };
	const struct kdsm_wire_put put = { .id = 1 };
	struct counters before = scene->ask();
	struct kdsm_wire_header reply;
	struct attack attack;
	u8 proof[KDSM_PROOF_SIZE];

	if (accepted(&attack)) {
		tap_result(attack_ask(&attack, KDSM_MESSAGE_PROBE, NULL, 0, &reply), -ECONNRESET,
			   "probe instead of a proof");
		attack_close(&attack);
	}
	if (accepted(&attack)) {
		tap_result(attack_ask(&attack, KDSM_MESSAGE_KEYS, &keys, sizeof(keys), &reply),
			   -ECONNRESET, "keys instead of a proof");
		attack_close(&attack);
	}
	if (accepted(&attack)) {
		tap_result(attack_ask(&attack, KDSM_MESSAGE_PUT, &put, sizeof(put), &reply),
			   -ECONNRESET, "a put instead of a proof");
		attack_close(&attack);
	}
	if (accepted(&attack)) {
		attack_proof(&attack, &scene->key, KDSM_ROLE_ASKER, proof);
		tap_result(attack_prove(&attack, proof), 0, "a good proof");
		tap_result(attack_prove(&attack, proof), -ECONNRESET, "and the same again");
		attack_close(&attack);
	}
	tap_ok(scene->ask().message == before.message + 4, "and counted 4 times");
}

/* Send many puts to a word at once: the first ends the connection, and the others follow it. */
static void put_burst(u32 id)
{
	struct {
		struct kdsm_wire_header header;
		struct kdsm_wire_put put;
		u64 word;
	} __packed message = {
		.header = {
			.type = KDSM_MESSAGE_PUT,
			.length = sizeof(message) - sizeof(message.header),
		},
		.put = { .id = id, .offset = 4096 },
		.word = 0xbad,
	};
	struct ibv_send_wr wrs[PUTS] = { 0 };
	struct kdsm_wire_header reply;
	struct attack attack;

	if (!accepted(&attack))
		return;
	memcpy(attack.send, &message, sizeof(message));
	/* In one call, so that the packets follow each other closely */
	for (int i = 0; i < PUTS; i++) {
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].next = i < PUTS - 1 ? &wrs[i + 1] : NULL;
	}
	tap_result(attack_post(&attack, wrs, sizeof(message)), 0, "%d puts at once", PUTS);
	tap_result(attack_reply(&attack, &reply, 15000), -ECONNRESET, "end the connection");
	attack_close(&attack);
}

/*
 * With a key of memory that a proven peer was told, a stranger can neither read nor write: the
 * module's queue pair grants nothing.
 */
static void memory(void)
{
	const struct kdsm_wire_region add = { .name = "stranger", .id = 0x7778,
		.policy = KDSM_POLICY_PARTITIONED, .segments = ONE_SEGMENT(4096),
		.part_size = 4 << 20, .base = 0x200000000000ULL,
		.nodes = scene->hello.nodes, .mode = 0600 };
	const struct kdsm_wire_keys keys = { .id = add.id };
	const struct kdsm_wire_atomic look = { .id = add.id, .offset = 4096 };
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct kdsm_wire_header reply;
	struct attack friend, attack;
	u64 word;
	u32 key;

	if (attack_enter(&friend, scene, true)) {
		tap_ok(false, "enter as node 0");
		return;
	}
	tap_result(attack_add(&friend, &add), 0, "a region on node 1");
	tap_result(attack_ask(&friend, KDSM_MESSAGE_KEYS, &keys, sizeof(keys), &reply) ?:
		   (int32_t)reply.status, 0, "and its key");
	/* The first member of struct kdsm_wire_key */
	memcpy(&key, attack_payload(&friend), sizeof(key));
	for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct ibv_send_wr wr = { .opcode = opcodes[i], .wr.rdma.rkey = key };

		/* No peer may send immediate data. */
		if (wr.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
			attack_post(&friend, &wr, 8);
			tap_result(attack_reply(&friend, &reply, 200), -ETIMEDOUT,
				   "operation %u of a proven peer", opcodes[i]);
		}
		if (!accepted(&attack))
			continue;
		attack_post(&attack, &wr, i == 2 ? 0 : 8);
		tap_result(attack_reply(&attack, &reply, 15000), -ECONNRESET,
			   "operation %u of a stranger", opcodes[i]);
		attack_close(&attack);
	}
	for (int i = 0; i < 5; i++)
		put_burst(add.id);
	tap_result(attack_ask(&friend, KDSM_MESSAGE_FAA, &look, sizeof(look), &reply) ?:
		   (int32_t)reply.status, 0, "read what strangers have put");
	memcpy(&word, attack_payload(&friend), sizeof(word));
	tap_ok(!word, "nothing: %lx", word);
	tap_result(attack_ask(&friend, KDSM_MESSAGE_REMOVE, &add.id, sizeof(add.id), &reply) ?:
		   (int32_t)reply.status, 0, "remove the region");
	attack_close(&friend);
}

/*
 * Connections that are never proved: the module keeps a few of them, and ends the others. Meanwhile
 * a peer that knows the key can connect.
 */
static void flood(void)
{
	static struct attack attacks[FLOOD];
	struct counters before = scene->ask();
	struct attack attack;
	int i, entered = 0, live = 0, ended;

	for (i = 0; i < FLOOD; i++) {
		if (ask_for(&attacks[i], &scene->hello))
			attacks[i].id = NULL;
		if (i % 10)
			continue;
		if (attack_enter(&attack, scene, true))
			continue;
		entered++;
		attack_close(&attack);
	}
	for (i = 0; i < FLOOD; i++) {
		struct kdsm_wire_header reply;

		if (!attacks[i].id)
			continue;
		live += attack_reply(&attacks[i], &reply, 0) == -ETIMEDOUT;
	}
	tap_ok(entered == FLOOD / 10, "%d of %d peers with the key enter during a flood", entered,
	       FLOOD / 10);
	tap_ok(live <= 16, "%d of %d connections without a proof are left", live, FLOOD);
	sleep(8);
	ended = scene->ask().silent - before.silent;
	tap_ok(ended >= FLOOD - 16, "%d were counted", ended);
	for (i = 0, live = 0; i < FLOOD; i++) {
		struct kdsm_wire_header reply;

		if (!attacks[i].id)
			continue;
		live += attack_reply(&attacks[i], &reply, 0) == -ETIMEDOUT;
		attack_close(&attacks[i]);
	}
	tap_ok(live == 0, "after 8 s, %d are left", live);
}

/* As a user without rights, who knows even the key */
static int enter_as_nobody(void *data)
{
	struct scene bad = *scene;
	struct attack attack;
	int error;

	bad.own.sin_port = htons(20000);
	error = attack_enter(&attack, &bad, true);
	*(int *)data = attack.refused;
	return error;
}

static int bind_as_nobody(void *data)
{
	struct scene bad = *scene;
	struct attack attack;

	(void)data;
	bad.own.sin_port = htons(700);
	return attack_enter(&attack, &bad, true);
}

static void nobody(void)
{
	struct counters before = scene->ask();
	int reason = 0;

	tap_result(as_nobody(enter_as_nobody, &reason), -ECONNREFUSED, "ask as nobody");
	tap_ok(scene->ask().port == before.port + 1, "and counted: no port of root");
	tap_result(as_nobody(bind_as_nobody, NULL), -EACCES, "nobody cannot have a port of root");
}

void attack_unproven(const struct scene *where)
{
	scene = where;
	without_key();
	wrong_proofs();
	nobody();
}

void attack_strangers(const struct scene *where)
{
	scene = where;
	other_messages();
	memory();
	flood();
}
