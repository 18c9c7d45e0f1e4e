// SPDX-License-Identifier: GPL-2.0
/* The barrier of coherent regions over several simulated nodes. */
#include <stdio.h>
#include "unit.h"
#include "sim.h"

#define MS	1000000ULL
#define S	(1000 * MS)
#define THREADS	3		/* most participants of a node */
#define WORDS	512		/* words of a block */

struct node {
	struct kdsm_region *region, *sync;
	struct kdsm_tree_barrier barrier;
	uint64_t (*words)[WORDS];	/* this node's copy: blocks of words */
};

static struct node nodes[SIM_NODES];
static int (*fault)(struct kdsm_op *op, bool after);

static void start(unsigned int count, const uint32_t *participants)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = SIM_NODES * SIM_BLOCK };
	unsigned int i;

	sim_start(count);
	sim.tear = true;
	sim.fault = fault;
	for (i = 0; i < count; i++) {
		struct node *node = &nodes[i];

		assert_int_equal(kdsm_region_open_coherent(sim.kdsm[i], "b", &attr, 32768,
							   &node->region, &node->sync), 0);
		assert_int_equal(kdsm_tree_barrier_init(&node->barrier, node->region, node->sync,
							64, participants), 0);
		node->words = kdsm_region_address(node->region);
	}
}

static void stop(void)
{
	unsigned int i;

	assert_int_equal(sim_coherence(nodes[0].region)->races, 0);
	for (i = 0; i < sim.nodes; i++) {
		kdsm_region_close(nodes[i].region);
		kdsm_region_close(nodes[i].sync);
	}
	sim_stop();
}

/* ---- all participants call ---- */

struct member {
	unsigned int node, thread, rounds;
	const uint32_t *participants;
	int failures;
};

/*
 * Each member writes a word in a block that all nodes write, and a word in a block of its
 * node. After the barrier every member sees all of these words.
 */
static void *meet(void *arg)
{
	struct member *member = arg;
	struct node *own = &nodes[member->node];
	unsigned int i, j, round;

	for (round = 1; round <= member->rounds; round++) {
		own->words[0][member->node * THREADS + member->thread] = round;
		own->words[member->node][100 + member->thread] = round;
		UNIT_CHECK(&member->failures,
			   !kdsm_tree_barrier_wait(&own->barrier, 60 * S, NULL));
		for (i = 0; i < sim.nodes; i++)
			for (j = 0; j < member->participants[i]; j++) {
				UNIT_CHECK(&member->failures,
					   own->words[0][i * THREADS + j] == round);
				UNIT_CHECK(&member->failures, own->words[i][100 + j] == round);
			}
		UNIT_CHECK(&member->failures,
			   !kdsm_tree_barrier_wait(&own->barrier, 60 * S, NULL));
	}
	return NULL;
}

static void meet_all(unsigned int count, const uint32_t *participants, unsigned int rounds)
{
	struct member members[SIM_NODES * THREADS];
	pthread_t threads[SIM_NODES * THREADS];
	unsigned int i, j, n = 0;
	int failures = 0;

	start(count, participants);
	for (i = 0; i < count; i++)
		for (j = 0; j < participants[i]; j++) {
			members[n] = (struct member){ i, j, rounds, participants, 0 };
			pthread_create(&threads[n], NULL, meet, &members[n]);
			n++;
		}
	for (i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		failures += members[i].failures;
	}
	assert_int_equal(failures, 0);
	stop();
}

static void shapes(void **state)
{
	static const struct {
		unsigned int nodes;
		uint32_t participants[SIM_NODES];
	} shapes[] = {
		{ 1, { 3 } },
		{ 2, { 1, 1 } },
		{ 2, { 0, 2 } },
		{ 3, { 3, 1, 2 } },
		{ 6, { 1, 1, 1, 1, 1, 1 } },
		{ 8, { 0, 1, 2, 0, 1, 3, 1, 1 } },
		{ 8, { 1, 1, 1, 1, 1, 1, 1, 1 } },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		meet_all(shapes[i].nodes, shapes[i].participants, 40);
}

/*
 * A node that waits only for itself sends nothing and does not release. Otherwise each node
 * releases and acquires once in each barrier.
 */
static void costs(void **state)
{
	static const uint32_t alone[2] = { 0, 1 };
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	pthread_t threads[6];
	struct member members[6];
	static const uint32_t one[6] = { 1, 1, 1, 1, 1, 1 };
	unsigned int i;

	(void)state;
	start(2, alone);
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[1].barrier, 0, NULL), 0);
	assert_int_equal(sim_coherence(nodes[1].region)->releases, 0);
	kdsm_counts(sim.kdsm[1], &counts);
	assert_int_equal(counts.calls, 0);
	stop();

	start(6, NULL);
	for (i = 0; i < 6; i++) {
		members[i] = (struct member){ i, 0, 1, one, 0 };
		pthread_create(&threads[i], NULL, meet, &members[i]);
	}
	for (i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(members[i].failures, 0);
		kdsm_counts(sim.kdsm[i], &counts);
		/*
		 * A message is two puts, and there are two barriers. Nodes 2 to 4 have no
		 * children.
		 */
		assert_int_equal(counts.put, i == 0 ? 16 : i == 1 ? 8 : 4);
		assert_int_equal(counts.cas + counts.faa, 0);
	}
	assert_int_equal(sim_coherence(nodes[0].region)->releases, 12);
	assert_int_equal(sim_coherence(nodes[0].region)->acquires, 12);
	stop();
}

/* ---- a participant does not call ---- */

struct caller {
	unsigned int node;
	uint64_t timeout;
	unsigned int culprit;
	int ret;
};

static void *call(void *arg)
{
	struct caller *caller = arg;

	caller->ret = kdsm_tree_barrier_wait(&nodes[caller->node].barrier, caller->timeout,
					     &caller->culprit);
	return NULL;
}

/* All nodes but one call, node 0 with a timeout. */
static void all_but(unsigned int absent, struct caller *callers)
{
	pthread_t threads[SIM_NODES];
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		callers[i] = (struct caller){ i, i ? KDSM_FOREVER : 300 * MS, 99, 1 };
		if (i != absent)
			pthread_create(&threads[i], NULL, call, &callers[i]);
	}
	for (i = 0; i < sim.nodes; i++)
		if (i != absent)
			pthread_join(threads[i], NULL);
}

/* Node 5 is a child of node 1, and node 1 is a child of the root. */
static void absent(void **state)
{
	struct caller callers[SIM_NODES];
	unsigned int i, culprit;

	(void)state;
	start(6, NULL);
	all_but(3, callers);
	assert_int_equal(callers[0].ret, -ETIMEDOUT);
	for (i = 0; i < 6; i++) {
		if (i && i != 3)
			assert_int_equal(callers[i].ret, -EPIPE);
		if (i != 3)
			assert_int_equal(callers[i].culprit, 3);
	}
	/* The node that did not call in time gets the same error. */
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[3].barrier, S, &culprit), -EPIPE);
	assert_int_equal(culprit, 3);
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[3].barrier, S, NULL), -EPIPE);
	stop();

	/* To the root it looks as if its child had not called. */
	start(6, NULL);
	all_but(5, callers);
	assert_int_equal(callers[0].ret, -ETIMEDOUT);
	assert_int_equal(callers[0].culprit, 1);
	stop();

	/* A participant of the own node does not call. */
	start(2, (const uint32_t[]){ 2, 1 });
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[0].barrier, 10 * MS, &culprit),
			 -ETIMEDOUT);
	assert_int_equal(culprit, 0);
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[1].barrier, S, &culprit), -EPIPE);
	stop();
}

/* The barrier detects a dead node without a timeout of the caller. */
static void dead(void **state)
{
	struct caller caller = { 0, KDSM_FOREVER, 99, 1 };
	unsigned int i;

	(void)state;
	kdsm_patience = 300 * MS;
	for (i = 0; i < 2; i++) {
		start(2, NULL);
		sim.dead = 2 - i;
		caller.node = i;
		call(&caller);
		assert_int_equal(caller.ret, -EPIPE);
		assert_int_equal(caller.culprit, 1 - i);
		stop();
	}
	kdsm_patience = 30 * S;
}

/* One in four operations fails, before or after its effect. */
static int one_in_four(struct kdsm_op *op, bool after)
{
	(void)op;
	(void)after;
	return sim_random() % 8 ? 0 : -EIO;
}

static void broken(void **state)
{
	static const uint32_t participants[] = { 1, 2, 1, 1, 2, 1, 1 };

	(void)state;
	fault = one_in_four;
	meet_all(7, participants, 10);
	fault = NULL;
}

static void no_fence(void **state)
{
	struct caller callers[SIM_NODES];
	unsigned int i;

	(void)state;
	start(3, NULL);
	sim_coherence(nodes[0].region)->fail = -EHOSTDOWN;
	all_but(99, callers);
	for (i = 0; i < 3; i++) {
		assert_true(callers[i].ret == -EHOSTDOWN || callers[i].ret == -EPIPE);
		assert_true(callers[i].culprit < 3);
	}
	stop();
}

static void bad(void **state)
{
	const uint32_t none[2] = { 0, 0 }, some[2] = { 1, 0 };
	struct kdsm_tree_barrier barrier;
	struct node *node = &nodes[1];
	unsigned int culprit;
	uint64_t *words;

	(void)state;
	start(2, NULL);
#define INIT(...) kdsm_tree_barrier_init(&barrier, __VA_ARGS__)
	assert_int_equal(INIT(node->region, node->region, 0, NULL), -EOPNOTSUPP);
	assert_int_equal(INIT(node->sync, node->sync, 0, NULL), -EOPNOTSUPP);
	assert_int_equal(INIT(node->region, nodes[0].sync, 0, NULL), -EINVAL);
	assert_int_equal(INIT(node->region, node->sync, 8, NULL), -EINVAL);
	assert_int_equal(INIT(node->region, node->sync, 1 << 20, NULL), -ERANGE);
	assert_int_equal(INIT(node->region, node->sync, -64ULL, NULL), -ERANGE);
	assert_int_equal(INIT(node->region, node->sync, 0, none), -EINVAL);
	/*
	 * No participant is on this node, so there is no barrier to wait for, and none is
	 * broken.
	 */
	assert_int_equal(INIT(node->region, node->sync, 0, some), 0);
	assert_int_equal(kdsm_tree_barrier_wait(&barrier, 0, &culprit), -EINVAL);
	assert_int_equal(kdsm_tree_barrier_init(&barrier, nodes[0].region, nodes[0].sync, 0, some),
			 0);
	assert_int_equal(kdsm_tree_barrier_wait(&barrier, 0, NULL), 0);
	/* The barrier works without a region to make consistent. */
	assert_int_equal(kdsm_tree_barrier_init(&barrier, NULL, nodes[0].sync, 0, some), 0);
	assert_int_equal(kdsm_tree_barrier_wait(&barrier, 0, NULL), 0);
	/* Words that hold no barrier */
	words = kdsm_region_part(nodes[0].sync);
	words[0] = 77;
	assert_int_equal(kdsm_tree_barrier_wait(&barrier, 0, &culprit), -EINVAL);
	assert_int_equal(culprit, 0);
	assert_int_equal(kdsm_tree_barrier_wait(&barrier, 0, NULL), -EPIPE);
	stop();
}

/* The barrier checks a child's signature before it uses the signature. */
static void no_signature(void **state)
{
	struct kdsm_signature wrong = { .count = KDSM_NOTICES_MAX, .reserved = 1 };
	const uint64_t down = 64 + KDSM_TREE_BARRIER_SIZE;
	unsigned int culprit, i;

	(void)state;
	start(2, NULL);
	/* Into every place of node 0 that may be for a signature of node 1 */
	for (i = 0; i < KDSM_TREE_BARRIER_ARITY; i++)
		assert_int_equal(kdsm_signature_put(nodes[1].sync, 0,
						    64 + 192 + i * KDSM_SIGNATURE_PLACE,
						    &wrong, 1), 0);
	assert_true(64 + 192 + i * KDSM_SIGNATURE_PLACE < down);
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[0].barrier, S, &culprit), -EPROTO);
	assert_int_equal(culprit, 1);
	assert_int_equal(kdsm_tree_barrier_wait(&nodes[1].barrier, S, &culprit), -EPIPE);
	assert_int_equal(culprit, 1);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(costs),
		cmocka_unit_test(absent),
		cmocka_unit_test(dead),
		cmocka_unit_test(broken),
		cmocka_unit_test(no_fence),
		cmocka_unit_test(bad),
		cmocka_unit_test(no_signature),
	};

	return UNIT_RUN(tests);
}
