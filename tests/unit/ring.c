// SPDX-License-Identifier: GPL-2.0
/* Rings on the local backend. tests/guest/ring.c has those of the module. */
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <kdsm/ring.h>
#include <kdsm/virtual.h>
#include "unit.h"

#define ENTRIES 8

static struct kdsm_ring *open_ring(void **state, unsigned int entries, size_t bytes)
{
	struct kdsm_ring *ring;

	assert_int_equal(kdsm_ring_open(((struct unit *)*state)->region, entries, bytes, &ring), 0);
	return ring;
}

static bool readable(const struct kdsm_ring *ring)
{
	struct pollfd poll_fd = { .fd = kdsm_ring_fd(ring), .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void opening(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_ring *ring = (void *)1;
	const uint8_t *buffer;
	size_t i;

	assert_int_equal(kdsm_ring_open(region, 0, 64, &ring), -EINVAL);
	assert_null(ring);
	assert_int_equal(kdsm_ring_open(region, KDSM_RING_MAX_ENTRIES + 1, 64, &ring), -EINVAL);
	assert_int_equal(kdsm_ring_open(region, 1, KDSM_RING_MAX_BUFFER + 1UL, &ring), -EINVAL);
	kdsm_ring_close(NULL);
	ring = open_ring(state, 5, 100);
	assert_true(kdsm_ring_buffer_size(ring) >= 100);
	buffer = kdsm_ring_buffer(ring);
	for (i = 0; i < kdsm_ring_buffer_size(ring); i++)
		assert_int_equal(buffer[i], 0);
	/* Nothing is in flight: no wait, no completion. */
	assert_int_equal(kdsm_ring_submit(ring), 0);
	assert_int_equal(kdsm_ring_wait(ring, 3, KDSM_FOREVER), 0);
	assert_int_equal(kdsm_ring_run(ring, 3, KDSM_FOREVER), 0);
	assert_false(readable(ring));
	kdsm_ring_close(ring);
}

static void coherent(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 1 << 20,
		.policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm *kdsm = ((struct unit *)*state)->kdsm;
	struct kdsm_region *region;
	struct kdsm_ring *ring;

	assert_int_equal(kdsm_region_open(kdsm, "coherent", &attr, &region), 0);
	assert_int_equal(kdsm_ring_open(region, 4, 64, &ring), -EOPNOTSUPP);
	assert_string_equal(kdsm_error(-EOPNOTSUPP),
			    "region \"coherent\" is coherent; the call needs a partitioned one");
	kdsm_region_close(region);
}

static void all_operations(void **state)
{
	uint64_t *part = kdsm_region_part(((struct unit *)*state)->region);
	struct kdsm_ring *ring = open_ring(state, ENTRIES, 4096);
	struct kdsm_ring_completion got[ENTRIES];
	uint64_t *words = kdsm_ring_buffer(ring);
	unsigned int i;

	part[1] = 11;
	part[2] = 22;
	words[0] = 7;
	assert_int_equal(kdsm_ring_prep_put(ring, 0, 0, &words[0], 8, 100), 0);
	assert_int_equal(kdsm_ring_prep_get(ring, 0, 8, &words[1], 8, 101), 0);
	assert_int_equal(kdsm_ring_prep_cas(ring, 0, 16, 22, 23, 102), 0);
	assert_int_equal(kdsm_ring_prep_faa(ring, 0, 24, 5, 103), 0);
	/* Nothing happens before the submission. */
	assert_int_equal(part[0], 0);
	assert_int_equal(kdsm_ring_reap(ring, got, ENTRIES), 0);
	assert_int_equal(kdsm_ring_submit(ring), 4);
	assert_true(readable(ring));
	assert_int_equal(kdsm_ring_wait(ring, 4, 0), 4);
	assert_int_equal(kdsm_ring_reap(ring, got, 3), 3);
	assert_true(readable(ring));
	assert_int_equal(kdsm_ring_reap(ring, got + 3, ENTRIES), 1);
	assert_false(readable(ring));
	for (i = 0; i < 4; i++) {
		assert_int_equal(got[i].data, 100 + i);
		assert_int_equal(got[i].status, 0);
		assert_int_equal(got[i].node, 0);
	}
	assert_int_equal(got[2].result, 22);
	assert_int_equal(got[3].opcode, KDSM_OP_FAA);
	assert_int_equal(part[0], 7);
	assert_int_equal(words[1], 11);
	assert_int_equal(part[2], 23);
	assert_int_equal(part[3], 5);
	kdsm_ring_close(ring);
}

/* Each invalid operation has a completion with its error, and others beside it succeed. */
static void errors(void **state)
{
	struct kdsm_ring *ring = open_ring(state, 16, 4096);
	size_t size = kdsm_ring_buffer_size(ring);
	struct kdsm_ring_completion got[16];
	uint8_t *buffer = kdsm_ring_buffer(ring);
	static const int expected[] = {
		-EFAULT, -EFAULT, -EFAULT, -EFAULT, -EINVAL, -EINVAL, -EINVAL, -ERANGE, 0,
	};
	uint64_t outside;
	unsigned int i;

	kdsm_ring_prep_get(ring, 0, 0, &outside, 8, 0);
	kdsm_ring_prep_get(ring, 0, 0, NULL, 8, 1);
	kdsm_ring_prep_put(ring, 0, 0, buffer + size - 7, 8, 2);
	kdsm_ring_prep_get(ring, 0, 0, buffer - 1, 8, 3);
	kdsm_ring_prep_get(ring, 0, 0, buffer, 0, 4);
	kdsm_ring_prep_get(ring, 7, 0, buffer, 8, 5);
	kdsm_ring_prep_faa(ring, 0, 4, 1, 6);
	kdsm_ring_prep_put(ring, 0, UNIT_PART - 4, buffer, 8, 7);
	kdsm_ring_prep_put(ring, 0, UNIT_PART - 8, buffer + size - 8, 8, 8);
	assert_int_equal(kdsm_ring_wait(ring, 9, KDSM_FOREVER), 9);
	assert_int_equal(kdsm_ring_reap(ring, got, 16), 9);
	for (i = 0; i < 9; i++)
		assert_int_equal(got[i].status, expected[got[i].data]);
	kdsm_ring_close(ring);
}

/* The queue of submissions and the bound of unread completions, over many turns of the ring */
static void full(void **state)
{
	struct kdsm_ring *ring = open_ring(state, ENTRIES, 0);
	struct kdsm_ring_completion got[2 * ENTRIES];
	uint64_t sum = 0;
	unsigned int i, turn;

	for (turn = 0; turn < 5; turn++) {
		for (i = 0; i < ENTRIES; i++)
			assert_int_equal(kdsm_ring_prep_faa(ring, 0, 0, 1, i), 0);
		assert_int_equal(kdsm_ring_prep_faa(ring, 0, 0, 1, i), -EAGAIN);
		assert_int_equal(kdsm_ring_submit(ring), ENTRIES);
		/* Completions that are not read stop submissions, until some are read. */
		assert_int_equal(kdsm_ring_prep_faa(ring, 0, 0, 1, ENTRIES), 0);
		assert_int_equal(kdsm_ring_submit(ring), 0);
		assert_int_equal(kdsm_ring_reap(ring, got, 3), 3);
		assert_int_equal(kdsm_ring_submit(ring), 1);
		assert_int_equal(kdsm_ring_reap(ring, got + 3, 2 * ENTRIES), ENTRIES - 2);
		for (i = 0; i <= ENTRIES; i++) {
			assert_int_equal(got[i].data, i);
			assert_int_equal(got[i].result, sum++);
		}
	}
	kdsm_ring_close(ring);
}

struct step {
	struct kdsm_ring_call call;
	struct kdsm_ring *ring;
	unsigned int left;
	uint64_t last;
};

static void step_done(struct kdsm_ring_call *call, int status, uint64_t result)
{
	struct step *step = (struct step *)call;

	assert_int_equal(status, 0);
	step->last = result;
	if (step->left--)
		assert_int_equal(kdsm_ring_prep_faa(step->ring, 0, 8, 1, (uintptr_t)call), 0);
}

/* A call that prepares the next operation, as a state machine does */
static void callbacks(void **state)
{
	struct kdsm_ring *ring = open_ring(state, 2, 0);
	struct step step = { .call.done = step_done, .ring = ring, .left = 20 };
	unsigned int calls = 0;
	int ret;

	kdsm_ring_prep_faa(ring, 0, 8, 1, (uintptr_t)&step.call);
	while ((ret = kdsm_ring_run(ring, 1, KDSM_FOREVER)) > 0)
		calls += ret;
	assert_int_equal(ret, 0);
	assert_int_equal(calls, 21);
	assert_int_equal(step.last, 20);
	kdsm_ring_close(ring);
}

/* In a virtual run a ring reaches other nodes, and counts their operations. */
static int on_node(struct kdsm *kdsm, void *context)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 2 * UNIT_PART };
	struct kdsm_ring_completion got[2];
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_barrier barrier;
	struct kdsm_region *region;
	struct kdsm_ring *ring;
	int *failures = context;
	uint64_t *words;

	if (kdsm_region_open(kdsm, "ring", &attr, &region) ||
	    kdsm_ring_open(region, 4, 64, &ring))
		return -1;
	kdsm_barrier_init(&barrier, region, 4096);
	words = kdsm_ring_buffer(ring);
	words[0] = 40 + kdsm_node(kdsm);
	kdsm_ring_prep_put(ring, 1 - kdsm_node(kdsm), 0, words, 8, 0);
	kdsm_ring_prep_faa(ring, 1 - kdsm_node(kdsm), 8, 3, 1);
	UNIT_CHECK(failures, kdsm_ring_wait(ring, 2, KDSM_FOREVER) == 2);
	UNIT_CHECK(failures, kdsm_ring_reap(ring, got, 2) == 2);
	UNIT_CHECK(failures, !got[0].status && !got[1].status);
	kdsm_counts(kdsm, &counts);
	UNIT_CHECK(failures, counts.put == 1 && counts.faa == 1);
	kdsm_ring_close(ring);
	kdsm_barrier_wait(&barrier, KDSM_FOREVER);
	words = kdsm_region_part(region);
	UNIT_CHECK(failures, words[0] == 41 - kdsm_node(kdsm) && words[1] == 3);
	kdsm_region_close(region);
	return 0;
}

static void other_nodes(void **state)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };
	int failures = 0;

	(void)state;
	kdsm_virtual_attr_init(&attr);
	attr.nodes = 2;
	assert_int_equal(kdsm_virtual_run(&attr, on_node, &failures), 0);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(opening),
		unit_case(coherent),
		unit_case(all_operations),
		unit_case(errors),
		unit_case(full),
		unit_case(callbacks),
		unit_case(other_nodes),
	};

	return UNIT_RUN(tests);
}
