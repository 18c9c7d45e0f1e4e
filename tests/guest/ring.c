// SPDX-License-Identifier: GPL-2.0
/*
 * Rings, from a program on every node at the same time: results beside those of single calls,
 * bounds, waiting, and programs that end with operations in flight. hostile-ring.c breaks the
 * rules of the shared memory.
 *
 * usage: ring [PART-OF-A-TEST-NAME]
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/ring.h>
#include "guest.h"

#define MIB (1UL << 20)
#define PART (8 * MIB)

static struct kdsm_region *region;

static unsigned int next(void)
{
	return (node + 1) % nodes;
}

static struct kdsm_ring *open_ring(unsigned int entries, size_t bytes)
{
	struct kdsm_ring *ring;
	int ret = kdsm_ring_open(region, entries, bytes, &ring);

	if (ret)
		guest_die("kdsm_ring_open", ret);
	return ring;
}

/* ---- random operations, many in flight, against what they must do ---- */

#define SLOT 4096UL
#define SLOTS 64U		/* of this node, in each part; at most so many are in flight */
#define WORD_AT 8		/* offset of a slot's word for atomics; the bytes are behind it */
#define BYTES_AT 16
#define STEPS 1500

/* A slot: no other node writes to it, so this node knows what it must contain */
struct slot {
	unsigned int on;
	uint64_t word;
	uint8_t bytes[SLOT];
	/* The operation in flight, or 0 */
	unsigned int opcode;
	unsigned int from, length;
	uint64_t former;	/* that an atomic must return */
};

static struct slot slots[SLOTS];
static uint64_t dice;

static unsigned int roll(unsigned int sides)
{
	return guest_mix(++dice) % sides;
}

/* The slots of a node lie across the border of two chunks. */
static uint64_t place(unsigned int slot)
{
	return 2 * MIB - SLOTS / 2 * SLOT - 88 + (node * 2ULL * MIB) % (5 * MIB) + slot * SLOT;
}

static uint8_t *room(struct kdsm_ring *ring, unsigned int slot)
{
	return (uint8_t *)kdsm_ring_buffer(ring) + slot * SLOT;
}

/* Begin an operation on a slot by the ring and change what the slot must become. */
static void begin(struct kdsm_ring *ring, unsigned int index)
{
	struct slot *slot = &slots[index];
	uint64_t at = place(index), expected;
	unsigned int i;

	slot->opcode = KDSM_OP_GET + roll(4);
	slot->from = BYTES_AT + roll(SLOT - BYTES_AT - 1);
	slot->length = 1 + roll(roll(3) ? 80 : SLOT - slot->from);
	if (slot->length > SLOT - slot->from)
		slot->length = SLOT - slot->from;
	switch (slot->opcode) {
	case KDSM_OP_GET:
		memset(room(ring, index), 0xee, SLOT);
		CHECK_IS(kdsm_ring_prep_get(ring, slot->on, at + slot->from, room(ring, index),
					    slot->length, index), 0);
		break;
	case KDSM_OP_PUT:
		for (i = 0; i < slot->length; i++)
			slot->bytes[slot->from + i] = guest_mix(dice * 4096 + i);
		memcpy(room(ring, index), slot->bytes + slot->from, slot->length);
		CHECK_IS(kdsm_ring_prep_put(ring, slot->on, at + slot->from, room(ring, index),
					    slot->length, index), 0);
		break;
	case KDSM_OP_CAS:
		expected = roll(2) ? slot->word : slot->word + 1;
		slot->former = slot->word;
		CHECK_IS(kdsm_ring_prep_cas(ring, slot->on, at + WORD_AT, expected, dice,
					    index), 0);
		if (expected == slot->word)
			slot->word = dice;
		break;
	default:
		slot->former = slot->word;
		slot->word += dice;
		CHECK_IS(kdsm_ring_prep_faa(ring, slot->on, at + WORD_AT, dice, index), 0);
		break;
	}
}

static void end(struct kdsm_ring *ring, const struct kdsm_ring_completion *completion)
{
	unsigned int index = completion->data;
	struct slot *slot = &slots[index];

	if (!CHECK(index < SLOTS && slot->opcode))
		return;
	CHECK_IS(completion->status, 0);
	CHECK_IS(completion->opcode, slot->opcode);
	CHECK_IS(completion->node, slot->on);
	if (slot->opcode == KDSM_OP_GET) {
		CHECK(!memcmp(room(ring, index), slot->bytes + slot->from, slot->length));
		CHECK(slot->length == SLOT || room(ring, index)[slot->length] == 0xee);
	} else if (slot->opcode != KDSM_OP_PUT) {
		CHECK_IS(completion->result, slot->former);
	}
	slot->opcode = 0;
}

/* An idle slot by single calls */
static void compare(unsigned int index)
{
	struct slot *slot = &slots[index];
	uint8_t got[SLOT];
	uint64_t word;

	CHECK_IS(kdsm_get(region, slot->on, place(index) + BYTES_AT, got + BYTES_AT,
			  SLOT - BYTES_AT), 0);
	CHECK(!memcmp(got + BYTES_AT, slot->bytes + BYTES_AT, SLOT - BYTES_AT));
	CHECK_IS(kdsm_faa(region, slot->on, place(index) + WORD_AT, 0, &word), 0);
	CHECK_IS(word, slot->word);
}

static void ring_random(void)
{
	struct kdsm_ring *ring = open_ring(SLOTS, SLOTS * SLOT);
	struct kdsm_ring_completion got[SLOTS];
	unsigned int i, n, steps = 0, inflight = 0;
	int ret;

	dice = 1000003 * (node + 1);
	memset(slots, 0, sizeof(slots));
	for (i = 0; i < SLOTS; i++)
		slots[i].on = i % nodes;
	while (steps < STEPS || inflight) {
		for (i = 0; i < SLOTS && steps < STEPS; i++) {
			if (slots[i].opcode || !roll(4))
				continue;
			begin(ring, i);
			inflight++;
			steps++;
		}
		ret = kdsm_ring_wait(ring, 1 + roll(8), 300 * SECOND);
		if (!CHECK(ret > 0))
			break;
		n = kdsm_ring_reap(ring, got, 1 + roll(SLOTS));
		for (i = 0; i < n; i++)
			end(ring, &got[i]);
		inflight -= n;
		i = roll(SLOTS);
		if (!slots[i].opcode)
			compare(i);
	}
	CHECK_IS(kdsm_ring_wait(ring, 1, KDSM_FOREVER), 0);
	for (i = 0; i < SLOTS; i++)
		compare(i);
	kdsm_ring_close(ring);
	/* The next users of the part want it empty. */
	meet();
	memset(kdsm_region_part(region), 0, PART);
}

/* ---- lengths and bounds ---- */

static void ring_long(void)
{
	struct kdsm_ring *ring = open_ring(16, 5 * MIB);
	uint8_t *out = kdsm_ring_buffer(ring), *in = out + 2 * MIB + 24576 + 3;
	struct kdsm_ring_completion got[16];
	unsigned int n, total = 0;
	size_t i;

	for (i = 0; i < 2 * MIB; i++)
		out[i] = guest_mix(i + node);
	CHECK_IS(kdsm_ring_prep_put(ring, next(), 77, out, 2 * MIB, 0), 0);
	CHECK_IS(kdsm_ring_wait(ring, 1, KDSM_FOREVER), 1);
	CHECK_IS(kdsm_ring_reap(ring, got, 16), 1);
	CHECK_IS(got[0].status, 0);
	CHECK_IS(kdsm_settle(kdsm), 0);
	CHECK_IS(kdsm_ring_prep_get(ring, next(), 77, in, 2 * MIB, 0), 0);
	CHECK_IS(kdsm_ring_prep_get(ring, next(), 0, in, 2 * MIB + 1, 1), 0);
	CHECK_IS(kdsm_ring_wait(ring, 2, KDSM_FOREVER), 2);
	CHECK_IS(kdsm_ring_reap(ring, got, 16), 2);
	CHECK_IS(got[0].status + got[1].status, -EINVAL);
	CHECK(!memcmp(in, out, 2 * MIB));

	/* More bytes than may be in flight: the rest is submitted later. */
	for (i = 0; i < 12; i++)
		CHECK_IS(kdsm_ring_prep_get(ring, next(), 0, out, 2 * MIB, i), 0);
	CHECK(kdsm_ring_submit(ring) < 12);
	while (total < 12 && kdsm_ring_wait(ring, 1, KDSM_FOREVER) > 0) {
		n = kdsm_ring_reap(ring, got, 16);
		for (i = 0; i < n; i++)
			CHECK_IS(got[i].status, 0);
		total += n;
	}
	CHECK_IS(total, 12);
	kdsm_ring_close(ring);
	meet();
	memset(kdsm_region_part(region), 0, PART);
}

static void ring_errors(void)
{
	struct kdsm_ring *ring = open_ring(8, 4096);
	struct kdsm_ring_completion got[8];
	uint64_t outside = 0;
	unsigned int i;
	static const int expected[] = {
		-EFAULT, -EINVAL, -EINVAL, -ERANGE, -EINVAL, -EFAULT, 0, 0,
	};
	size_t size = kdsm_ring_buffer_size(ring);
	uint8_t *buffer = kdsm_ring_buffer(ring);

	kdsm_ring_prep_get(ring, next(), 0, &outside, 8, 0);
	kdsm_ring_prep_get(ring, nodes, 0, buffer, 8, 1);
	kdsm_ring_prep_faa(ring, next(), 4, 1, 2);
	kdsm_ring_prep_put(ring, next(), PART - 7, buffer, 8, 3);
	kdsm_ring_prep_get(ring, next(), 0, buffer, 0, 4);
	kdsm_ring_prep_get(ring, next(), 0, buffer + size - 7, 8, 5);
	kdsm_ring_prep_get(ring, next(), 0, buffer + size - 8, 8, 6);
	kdsm_ring_prep_faa(ring, next(), 0, 0, 7);
	CHECK_IS(kdsm_ring_prep_faa(ring, next(), 0, 0, 8), -EAGAIN);
	CHECK_IS(kdsm_ring_wait(ring, 8, KDSM_FOREVER), 8);
	/* Unread completions stop submissions. */
	CHECK_IS(kdsm_ring_prep_faa(ring, next(), 0, 0, 8), 0);
	CHECK_IS(kdsm_ring_submit(ring), 0);
	CHECK_IS(kdsm_ring_reap(ring, got, 8), 8);
	for (i = 0; i < 8; i++)
		CHECK_IS(got[i].status, expected[got[i].data]);
	CHECK_IS(kdsm_ring_wait(ring, 1, KDSM_FOREVER), 1);
	kdsm_ring_close(ring);
}

static void ring_waits(void)
{
	struct kdsm_ring *ring = open_ring(4, 64);
	struct pollfd poll_fd = { .fd = kdsm_ring_fd(ring), .events = POLLIN };
	struct kdsm_ring_completion got[4];

	CHECK_IS(poll(&poll_fd, 1, 0), 0);
	CHECK_IS(kdsm_ring_wait(ring, 1, KDSM_FOREVER), 0);	/* nothing is in flight */
	kdsm_ring_prep_faa(ring, next(), 0, 0, 0);
	CHECK_IS(kdsm_ring_submit(ring), 1);
	CHECK_IS(poll(&poll_fd, 1, 60000), 1);
	CHECK_IS(kdsm_ring_wait(ring, 3, KDSM_FOREVER), 1);	/* no third one comes */
	CHECK_IS(kdsm_ring_reap(ring, got, 4), 1);
	CHECK_IS(poll(&poll_fd, 1, 0), 0);
	kdsm_ring_close(ring);
}

/* ---- threads, each with a ring ---- */

#define THREADS 2
#define ADDS 400

struct adder {
	struct kdsm_ring_call call;
	struct kdsm_ring *ring;
	unsigned int left;
};

static void added(struct kdsm_ring_call *call, int status, uint64_t result)
{
	struct adder *adder = (struct adder *)call;

	(void)result;
	CHECK_IS(status, 0);
	if (!adder->left)
		return;
	adder->left--;
	CHECK_IS(kdsm_ring_prep_faa(adder->ring, adder->left % nodes, 64, 1, (uintptr_t)call), 0);
}

static void *add(void *arg)
{
	struct adder adder = { .call.done = added, .ring = open_ring(16, 0), .left = ADDS };
	unsigned int i;

	(void)arg;
	for (i = 0; i < 16; i++)
		added(&adder.call, 0, 0);
	while (kdsm_ring_run(adder.ring, 1, 300 * SECOND) > 0)
		;
	CHECK_IS(adder.left, 0);
	kdsm_ring_close(adder.ring);
	return NULL;
}

static void ring_sum(void)
{
	const uint64_t *word = (uint64_t *)((uint8_t *)kdsm_region_part(region) + 64);
	pthread_t threads[THREADS];
	unsigned int i;
	uint64_t sum;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet();
	sum = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	CHECK_IS(sum, nodes * THREADS * (ADDS / nodes + (node < ADDS % nodes)));
}

/* ---- ends with operations in flight ---- */

static void fly(struct kdsm_ring *ring, unsigned int count, size_t length)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		CHECK_IS(kdsm_ring_prep_get(ring, next(), 0, kdsm_ring_buffer(ring), length, i), 0);
	CHECK(kdsm_ring_submit(ring) > 0);
}

static void ring_close(void)
{
	struct kdsm_ring *ring;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		ring = open_ring(64, 65536);
		fly(ring, 64, i % 2 ? 65536 : 64);
		kdsm_ring_close(ring);
	}
}

/* The child has the ring of its parent, too. It has no part in what happens to it. */
static void ring_fork(void)
{
	struct kdsm_ring *ring = open_ring(64, 4096);
	struct kdsm_ring_completion got[64];
	int status = -1;
	pid_t child;

	fly(ring, 64, 64);
	child = fork();
	if (!child) {
		*(volatile uint8_t *)kdsm_ring_buffer(ring) = 1;
		munmap(kdsm_ring_buffer(ring), 4096);
		close(kdsm_ring_fd(ring));
		_exit(0);
	}
	waitpid(child, &status, 0);
	CHECK_IS(status, 0);
	CHECK_IS(kdsm_ring_wait(ring, 64, 300 * SECOND), 64);
	CHECK_IS(kdsm_ring_reap(ring, got, 64), 64);
	kdsm_ring_close(ring);
}

/* A program ends by itself or is killed, with the ring mapped and operations in flight. */
static void die_flying(bool killed)
{
	struct kdsm_region *mine;
	struct kdsm_ring *ring;
	struct kdsm *own;

	/* A second region: the child cannot map the first one once more. */
	if (kdsm_open(0, &own) || kdsm_region_open(own, "ring-exit", NULL, &mine) ||
	    kdsm_ring_open(mine, 64, 65536, &ring))
		_exit(1);
	fly(ring, 64, 4096);
	if (killed)
		raise(SIGKILL);
	_exit(0);
}

static void ring_exit(void)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = nodes * MIB,
		.flags = KDSM_REGION_KEEP,
	};
	struct kdsm_region *exits;
	int i, status;
	pid_t child;

	CHECK_IS(kdsm_region_open(kdsm, "ring-exit", &attr, &exits), 0);
	kdsm_region_close(exits);
	meet();
	for (i = 0; i < 8; i++) {
		child = fork();
		if (!child)
			die_flying(i % 2);
		waitpid(child, &status, 0);
		CHECK_IS(i % 2 ? WTERMSIG(status) : status, i % 2 ? SIGKILL : 0);
	}
	meet();
	if (!node)
		CHECK_IS(kdsm_region_destroy(kdsm, "ring-exit"), 0);
}

static const struct guest_test tests[] = {
	{ "ring_random", ring_random },
	{ "ring_long", ring_long },
	{ "ring_errors", ring_errors },
	{ "ring_waits", ring_waits },
	{ "ring_sum", ring_sum },
	{ "ring_close", ring_close },
	{ "ring_fork", ring_fork },
	{ "ring_exit", ring_exit },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	int ret, status;

	guest_open("ring-meeting");
	attr.size = nodes * PART;
	ret = kdsm_region_open(kdsm, "ring", &attr, &region);
	if (ret)
		guest_die("kdsm_region_open", ret);
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	guest_close();
	return status;
}
