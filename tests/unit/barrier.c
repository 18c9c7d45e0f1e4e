// SPDX-License-Identifier: GPL-2.0
/*
 * The barrier of partitioned regions over several simulated nodes, with operations that
 * fail before or after they have taken effect, as over a connection that breaks
 */
#include <pthread.h>
#include "unit.h"
#include "sim.h"

#define MS	1000000ULL
#define S	(1000 * MS)
#define OFFSET	64		/* offset of the barrier in a part, in bytes */
#define WORD	512		/* word of a part in which its node stores the round */

struct member {
	struct kdsm_region *region;
	struct kdsm_barrier barrier;
	unsigned int rounds;
	uint64_t timeout;
	int ret, failures;
};

static struct member members[SIM_NODES];
static pthread_t threads[SIM_NODES];

static void start(unsigned int count)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIM_NODES * 4096 };
	unsigned int i;

	sim_start(count);
	sim.tear = true;
	for (i = 0; i < count; i++) {
		members[i] = (struct member){ .timeout = 60 * S, .rounds = 1 };
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "b", &attr, &members[i].region), 0);
		kdsm_barrier_init(&members[i].barrier, members[i].region, OFFSET);
	}
}

static void stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		kdsm_region_close(members[i].region);
	sim_stop();
}

/*
 * A node stores its round in its part. After the barrier, all nodes see the same round in
 * all parts.
 */
static void *meet(void *arg)
{
	struct member *member = arg;
	uint64_t *words = kdsm_region_part(member->region);
	struct member *other;
	unsigned int round;

	for (round = 1; round <= member->rounds && !member->ret; round++) {
		__atomic_store_n(&words[WORD], round, __ATOMIC_RELAXED);
		member->ret = kdsm_barrier_wait(&member->barrier, member->timeout);
		for (other = members; other < members + sim.nodes && !member->ret; other++) {
			words = kdsm_region_part(other->region);
			UNIT_CHECK(&member->failures,
				   __atomic_load_n(&words[WORD], __ATOMIC_RELAXED) == round);
		}
		words = kdsm_region_part(member->region);
		if (!member->ret)
			member->ret = kdsm_barrier_wait(&member->barrier, member->timeout);
	}
	return NULL;
}

/* All nodes but absent run these rounds, and all of them must end with ret. */
static void all_meet(unsigned int rounds, unsigned int absent, int ret)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		if (i == absent)
			continue;
		members[i].rounds = rounds;
		members[i].ret = 0;
		pthread_create(&threads[i], NULL, meet, &members[i]);
	}
	for (i = 0; i < sim.nodes; i++) {
		if (i == absent)
			continue;
		pthread_join(threads[i], NULL);
		assert_int_equal(members[i].ret, ret);
		assert_int_equal(members[i].failures, 0);
	}
}

static void sizes(void **state)
{
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= SIM_NODES; nodes++) {
		start(nodes);
		all_meet(50, nodes, 0);
		stop();
	}
}

/* ---- connections that break ---- */

static int one_in_four(struct kdsm_op *op, bool after)
{
	static const int errors[] = { -EIO, -EHOSTDOWN };
	uint32_t dice = sim_random();

	(void)op;
	(void)after;
	return dice % 8 ? 0 : errors[dice / 8 % 2];
}

static void broken(void **state)
{
	(void)state;
	start(6);
	sim.fault = one_in_four;
	all_meet(20, sim.nodes, 0);
	stop();
}

/* Puts write to a place that no node reads. */
static int lose_puts(struct kdsm_op *op, bool after)
{
	if (op->opcode == KDSM_OP_PUT)
		op->offset += after ? -2048 : 2048;
	return 0;
}

/*
 * A word has its former value, as if an older put arrived after the newer one. The nodes
 * detect this by asking each other.
 */
static void late(void **state)
{
	(void)state;
	start(3);
	sim.fault = lose_puts;
	all_meet(1, sim.nodes, 0);
	stop();
}

/* ---- nodes that are down, and return ---- */

static void unreachable(void **state)
{
	unsigned int gone;

	(void)state;
	kdsm_patience = 300 * MS;
	/* gone is the root, then a leaf, then an inner node above a leaf. */
	for (gone = 0; gone < 3; gone++) {
		start(4);
		__atomic_store_n(&sim.dead, gone + 1, __ATOMIC_RELAXED);
		all_meet(1, gone, -EHOSTDOWN);
		/* A second call fails in the same way. */
		all_meet(1, gone, -EHOSTDOWN);
		__atomic_store_n(&sim.dead, 0, __ATOMIC_RELAXED);
		all_meet(10, sim.nodes, 0);
		stop();
	}
	kdsm_patience = 30 * S;
}

/* The last node gets no put. It asks its parent whether the parent has passed. */
static int no_put_to_last(struct kdsm_op *op, bool after)
{
	(void)after;
	return op->opcode == KDSM_OP_PUT && op->node == sim.nodes - 1 ? -EIO : 0;
}

static void untold(void **state)
{
	(void)state;
	kdsm_patience = 2500 * MS;
	start(2);
	sim.fault = no_put_to_last;
	members[1].rounds = 1;
	pthread_create(&threads[1], NULL, meet, &members[1]);
	assert_int_equal(kdsm_barrier_wait(&members[0].barrier, 60 * S), -EHOSTDOWN);
	__atomic_store_n(&sim.fault, NULL, __ATOMIC_RELEASE);
	/* The root has passed; this call only repeats the puts to its children. */
	assert_int_equal(kdsm_barrier_wait(&members[0].barrier, 0), 0);
	assert_int_equal(kdsm_barrier_wait(&members[0].barrier, 60 * S), 0);
	pthread_join(threads[1], NULL);
	assert_int_equal(members[1].ret, 0);
	stop();
	kdsm_patience = 30 * S;
}

static int not_allowed(struct kdsm_op *op, bool after)
{
	(void)op;
	(void)after;
	return -EACCES;
}

static void errors(void **state)
{
	(void)state;
	start(2);
	/* A call after a timeout continues to wait for the same generation. */
	members[0].timeout = 50 * MS;
	all_meet(1, 1, -ETIMEDOUT);
	members[0].timeout = 60 * S;
	all_meet(1, 2, 0);
	/* The barrier does not retry an operation that is not allowed. */
	sim.fault = not_allowed;
	assert_int_equal(kdsm_barrier_wait(&members[1].barrier, 60 * S), -EACCES);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(broken),
		cmocka_unit_test(late),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(untold),
		cmocka_unit_test(errors),
	};

	return UNIT_RUN(tests);
}
