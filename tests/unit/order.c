// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which other nodes see puts, on simulated nodes whose device writes to memory in a
 * relaxed order (sim.h). Each promise of the library has a test, and a test of what is not
 * promised, which must go wrong: it shows that the simulation would find a broken promise.
 */
#include <pthread.h>
#include "unit.h"
#include "sim.h"

#define S	1000000000ULL
#define NODES	4
#define ROUNDS	400
#define PART	65536
#define WORDS	6		/* of the data that a flag announces */
#define FLAG	1024		/* offsets in a part */
#define DATA	2048
#define BARRIER	4096
#define BACK	8192

/* How the writer announces its data */
enum how {
	PLAIN_FLAG,		/* kdsm_put() of the data, kdsm_put() of the flag */
	NOTIFY_IN_VECTOR,	/* data and a flag with KDSM_OP_NOTIFY in one vector */
	NOTIFY_ALONE,		/* kdsm_put() of the data, kdsm_put_notify() of the flag */
	ONE_PUT,		/* one put with KDSM_OP_NOTIFY that begins with the flag */
	PLAIN_AFTER_SETTLE,	/* kdsm_put() of the data, kdsm_settle(), kdsm_put() of the flag */
};

static struct kdsm_region *regions[NODES];

static void start(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = NODES * PART };
	unsigned int i;

	sim_start(NODES);
	for (i = 0; i < NODES; i++)
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "order", &attr, &regions[i]), 0);
}

static void stop(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		kdsm_region_close(regions[i]);
	sim_stop();
}

static uint64_t load(unsigned int node, uint64_t offset)
{
	return __atomic_load_n((uint64_t *)((char *)kdsm_region_part(regions[node]) + offset),
			       __ATOMIC_ACQUIRE);
}

/* Announce WORDS words of this value to node 1. */
static int announce(enum how how, uint64_t value)
{
	uint64_t flag_and_data[1 + WORDS], *data = flag_and_data + 1;
	uint64_t place = how == ONE_PUT ? FLAG + 8 : DATA;
	struct kdsm_op ops[2];
	unsigned int i;
	int ret = 0;

	for (i = 0; i <= WORDS; i++)
		flag_and_data[i] = value;
	if (how == NOTIFY_IN_VECTOR || how == ONE_PUT) {
		ops[0] = kdsm_op_put(1, place, data, WORDS * 8);
		ops[1] = kdsm_op_put(1, FLAG, flag_and_data,
				     how == ONE_PUT ? sizeof(flag_and_data) : 8);
		ops[1].flags = KDSM_OP_NOTIFY;
		return how == ONE_PUT ? kdsm_vector(regions[0], &ops[1], 1) :
					kdsm_vector(regions[0], ops, 2);
	}
	ret = kdsm_put(regions[0], 1, place, data, WORDS * 8);
	if (!ret && how == PLAIN_AFTER_SETTLE)
		ret = kdsm_settle(sim.kdsm[0]);
	if (ret)
		return ret;
	return how == NOTIFY_ALONE ? kdsm_put_notify(regions[0], 1, FLAG, value) :
				     kdsm_put(regions[0], 1, FLAG, flag_and_data, 8);
}

static void *write_rounds(void *arg)
{
	enum how how = *(enum how *)arg;
	uint64_t value;

	for (value = 1; value <= ROUNDS; value++)
		if (announce(how, value) ||
		    kdsm_wait(regions[0], BACK, value - 1, 60 * S))
			return "failed";
	return NULL;
}

/*
 * Node 1 loads the flag until it has the round's value, and then the data. Returns how often the
 * data were older than the flag.
 */
static unsigned int stale(enum how how, bool sleeps)
{
	uint64_t place = how == ONE_PUT ? FLAG + 8 : DATA, value;
	unsigned int count = 0, i;
	pthread_t writer;
	void *result;

	assert_int_equal(pthread_create(&writer, NULL, write_rounds, &how), 0);
	for (value = 1; value <= ROUNDS; value++) {
		while (load(1, FLAG) != value)
			if (sleeps)
				assert_int_equal(kdsm_wait(regions[1], FLAG, value - 1, 60 * S), 0);
			else
				sched_yield();
		for (i = 0; i < WORDS; i++)
			count += load(1, place + 8 * i) != value;
		assert_int_equal(kdsm_put_notify(regions[1], 0, BACK, value), 0);
	}
	pthread_join(writer, &result);
	assert_null(result);
	return count;
}

static unsigned int run(enum how how, bool sleeps, bool as_write, bool unsettled)
{
	unsigned int count;

	start();
	sim.as_write = as_write;
	sim.unsettled = unsettled;
	count = stale(how, sleeps);
	stop();
	return count;
}

/* A flag that is an ordinary put says nothing about the data. */
static void plain_flag(void **state)
{
	(void)state;
	assert_true(run(PLAIN_FLAG, false, false, false) > 0);
}

static void settled(void **state)
{
	(void)state;
	assert_int_equal(run(PLAIN_AFTER_SETTLE, false, false, false), 0);
	assert_true(run(PLAIN_AFTER_SETTLE, false, false, true) > 0);
}

static void notified(void **state)
{
	bool sleeps = false;

	(void)state;
	do {
		assert_int_equal(run(NOTIFY_IN_VECTOR, sleeps, false, false), 0);
		assert_int_equal(run(ONE_PUT, sleeps, false, false), 0);
		assert_int_equal(run(NOTIFY_ALONE, sleeps, false, false), 0);
		/* The flag may use another connection than the data. */
		assert_true(run(NOTIFY_ALONE, sleeps, false, true) > 0);
		/* If the device stored the flag, the flag could be there before the data. */
		assert_true(run(NOTIFY_IN_VECTOR, sleeps, true, false) > 0);
		assert_true(run(ONE_PUT, sleeps, true, false) > 0);
		sleeps = !sleeps;
	} while (sleeps);
}

/* ---- the barrier ---- */

struct member {
	pthread_t thread;
	unsigned int node, stale;
	int ret;
};

/*
 * In each round a node puts the round's number into the parts of all others. After the barrier
 * each node sees the numbers in its own part, and gets them from the parts of others.
 */
static void *meet(void *arg)
{
	struct member *member = arg;
	struct kdsm_region *region = regions[member->node];
	struct kdsm_barrier barrier;
	uint64_t round, got;
	unsigned int i, k;

	kdsm_barrier_init(&barrier, region, BARRIER);
	for (round = 1; round <= 100 && !member->ret; round++) {
		for (i = 0; i < NODES && !member->ret; i++)
			member->ret = kdsm_put(region, i, DATA + 8 * member->node, &round, 8);
		if (!member->ret)
			member->ret = kdsm_barrier_wait(&barrier, 60 * S);
		for (i = 0; i < NODES && !member->ret; i++)
			member->stale += load(member->node, DATA + 8 * i) != round;
		for (i = 0; i < NODES; i++)
			for (k = 0; k < NODES && !member->ret; k++) {
				member->ret = kdsm_get(region, i, DATA + 8 * k, &got, 8);
				member->stale += got != round;
			}
		if (!member->ret)
			member->ret = kdsm_barrier_wait(&barrier, 60 * S);
	}
	return NULL;
}

static unsigned int stale_after_barrier(bool unsettled)
{
	struct member members[NODES] = { 0 };
	unsigned int i, count = 0;

	start();
	sim.unsettled = unsettled;
	for (i = 0; i < NODES; i++) {
		members[i].node = i;
		assert_int_equal(pthread_create(&members[i].thread, NULL, meet, &members[i]), 0);
	}
	for (i = 0; i < NODES; i++) {
		pthread_join(members[i].thread, NULL);
		assert_int_equal(members[i].ret, 0);
		count += members[i].stale;
	}
	stop();
	return count;
}

static void barrier(void **state)
{
	(void)state;
	assert_int_equal(stale_after_barrier(false), 0);
	assert_true(stale_after_barrier(true) > 0);
}

/* ---- what settling costs ---- */

static uint64_t messages(void)
{
	struct kdsm_counts counts = { .argsz = sizeof(counts) };

	kdsm_counts(sim.kdsm[0], &counts);
	return counts.am;
}

static void costs(void **state)
{
	uint64_t one = 1;

	(void)state;
	start();
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(messages(), 0);
	/* An own put is there at once. */
	assert_int_equal(kdsm_put(regions[0], 0, DATA, &one, 8), 0);
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(messages(), 0);
	assert_int_equal(kdsm_put(regions[0], 1, DATA, &one, 8), 0);
	assert_int_equal(kdsm_put(regions[0], 1, DATA, &one, 8), 0);
	assert_int_equal(kdsm_put(regions[0], 3, DATA, &one, 8), 0);
	assert_int_equal(kdsm_put_notify(regions[0], 2, DATA, 1), 0);
	assert_int_equal(messages(), 0);
	assert_int_equal(kdsm_put_notify(regions[0], 1, FLAG, 1), 0);
	assert_int_equal(messages(), 1);
	/* The notifying put to node 1 is not settled yet. */
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(messages(), 4);
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(messages(), 4);
	assert_int_equal(load(1, DATA), 1);
	assert_int_equal(load(1, FLAG), 1);
	assert_int_equal(load(2, DATA), 1);
	assert_int_equal(load(3, DATA), 1);
	/* A node that does not answer stays unsettled. */
	assert_int_equal(kdsm_put(regions[0], 1, DATA, &one, 8), 0);
	sim.dead = 2;
	assert_int_equal(kdsm_settle(sim.kdsm[0]), -EHOSTDOWN);
	assert_int_equal(kdsm_put_notify(regions[0], 1, FLAG, 2), -EHOSTDOWN);
	sim.dead = 0;
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(messages(), 5);
	stop();
}

/* ---- failed puts ---- */

static int fail_data(struct kdsm_op *op, bool after)
{
	return !after && op->opcode == KDSM_OP_PUT && op->offset == DATA ? -EIO : 0;
}

/* A put with KDSM_OP_NOTIFY fails with a put before it, also when the vector is a long one. */
static void failed(void **state)
{
	static struct kdsm_op ops[KDSM_MAX_OPS + 3];
	const unsigned int last = KDSM_MAX_OPS + 2;
	uint64_t one = 1;
	unsigned int i;

	(void)state;
	start();
	sim.fault = fail_data;
	ops[0] = kdsm_op_put(1, DATA, &one, 8);
	for (i = 1; i < last; i++)
		ops[i] = kdsm_op_put(1, DATA + 8 * (i % 64 + 1), &one, 8);
	ops[last - 1] = kdsm_op_put(2, FLAG, &one, 8);
	ops[last - 1].flags = KDSM_OP_NOTIFY;
	ops[last] = kdsm_op_put(1, FLAG, &one, 8);
	ops[last].flags = KDSM_OP_NOTIFY;
	assert_int_equal(kdsm_vector(regions[0], ops, last + 1), -EIO);
	assert_int_equal(ops[0].status, -EIO);
	assert_int_equal(ops[last - 1].status, 0);
	assert_int_equal(ops[last].status, -EIO);
	sim.fault = NULL;
	assert_int_equal(kdsm_settle(sim.kdsm[0]), 0);
	assert_int_equal(load(2, FLAG), 1);
	assert_int_equal(load(1, FLAG), 0);
	/* Without a failure the put comes after those of the first KDSM_MAX_OPS operations. */
	assert_int_equal(kdsm_vector(regions[0], ops, last + 1), 0);
	while (!load(1, FLAG))
		sched_yield();
	assert_int_equal(load(1, DATA), 1);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_flag),
		cmocka_unit_test(settled),
		cmocka_unit_test(notified),
		cmocka_unit_test(barrier),
		cmocka_unit_test(costs),
		cmocka_unit_test(failed),
	};

	return UNIT_RUN(tests);
}
