// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The barrier of partitioned regions. The barrier of coherent regions is in
 * coherent/tree_barrier.c.
 *
 * The nodes form a binomial tree with node 0 at the root. In generation g (from 1) a node
 * waits until all its children have arrived, notifies its parent, waits until its parent
 * has passed, and notifies its children. So each node but the root costs one notifying put
 * up and one down. Before it arrives, a node settles what this process has put to other nodes,
 * because it is not the children's and the parent's connections alone that carried these puts.
 *
 * A barrier outlives connections. Each word has one writer, whose values grow. The writer
 * may repeat a put that failed, because the writer stores the next value only after the
 * next generation has begun, and the next generation begins only after the reader has seen
 * this value. A put that the writer gave up may still arrive late and overwrite a newer
 * value. A waiting node therefore does not rely on its own words alone: every ASK_AFTER ns
 * the waiting node gets the stage of the node it waits for, which only that other node
 * stores.
 */
#include <errno.h>
#include "binomial.h"
#include "core/core.h"

/* A waiting node gets the other node's stage after this time, in ns. */
#define ASK_AFTER	UINT64_C(1000000000)

/* Offsets of words in a part. The parent puts the word at DOWN; child k puts word k at UP. */
enum {
	STAGE = 0,
	DOWN = 8,
	UP = 16,
};

_Static_assert(UP + 8 * KDSM_TREE_CHILDREN <= KDSM_BARRIER_SIZE, "the barrier outgrew its place");

/*
 * Stages of a node, which are also the values of the words. ARRIVED(g): all nodes of its
 * subtree have arrived for generation g. PASSED(g): all nodes of the cluster have arrived,
 * so this node has passed.
 */
#define ARRIVED(g)	(2 * (g) - 1)
#define PASSED(g)	(2 * (g))
/* Flag of a stage: the call of this node failed, so its neighbours stop waiting. */
#define FAILED		(UINT64_C(1) << 63)

struct turn {
	struct kdsm_region *region;
	uint64_t offset;
	unsigned int node, nodes;
	uint64_t generation;
	uint64_t begin, timeout;
};

void kdsm_barrier_init(struct kdsm_barrier *barrier, struct kdsm_region *region,
		       uint64_t offset)
{
	barrier->region = region;
	barrier->offset = offset;
	barrier->generation = 0;
}

static uint64_t load_stage(const struct turn *turn)
{
	return __atomic_load_n(kdsm_word(turn->region, turn->offset + STAGE), __ATOMIC_SEQ_CST);
}

static void store_stage(const struct turn *turn, uint64_t stage)
{
	__atomic_store_n(kdsm_word(turn->region, turn->offset + STAGE), stage, __ATOMIC_SEQ_CST);
}

/*
 * Ask whether node from has reached a stage. Returns 0 if it has, 1 if it has not yet or
 * does not answer, or a negative errno. The stage of from is never beyond the stage asked
 * for, because from would need this node's next arrival to get there.
 */
static int ask(const struct turn *turn, unsigned int from, uint64_t stage, uint64_t *silent)
{
	uint64_t begin = kdsm_now(), theirs;
	int ret;

	ret = kdsm_get(turn->region, from, turn->offset + STAGE, &theirs, sizeof(theirs));
	ret = kdsm_silence(silent, begin, ret);
	if (ret)
		return ret;
	if ((theirs & ~FAILED) == stage)
		return 0;
	return theirs & FAILED ? -EHOSTDOWN : 1;
}

/*
 * Wait until node from has reached a stage. The node puts the stage into a word of this
 * node's part.
 */
static int await(const struct turn *turn, uint64_t word, unsigned int from, uint64_t stage)
{
	uint64_t silent = 0, left;
	int ret;

	do {
		left = kdsm_left(turn->begin, turn->timeout);
		ret = kdsm_await(turn->region, turn->offset + word, stage,
				 left < ASK_AFTER ? left : ASK_AFTER);
		if (ret != -ETIMEDOUT || left < ASK_AFTER)
			break;
		ret = ask(turn, from, stage, &silent);
	} while (ret > 0);
	return ret;
}

static struct kdsm_op tell(const struct turn *turn, unsigned int to, uint64_t word,
			   const uint64_t *stage)
{
	struct kdsm_op op = kdsm_op_put(to, turn->offset + word, stage, sizeof(*stage));

	op.flags = KDSM_OP_NOTIFY;
	return op;
}

/* Take part in the round until this node has passed, or return a negative errno. */
static int pass(const struct turn *turn)
{
	uint64_t arrived = ARRIVED(turn->generation), passed = PASSED(turn->generation);
	unsigned int node = turn->node, k;
	struct kdsm_op up;
	int ret;

	/* Before the stage, which tells other nodes that the effects of this one are there. */
	ret = kd_settle_retry(turn->region->kdsm, kdsm_left(turn->begin, turn->timeout));
	if (ret)
		return ret;
	for (k = 0; k < KDSM_TREE_CHILDREN; k++) {
		if (!kdsm_tree_has_child(node, k, turn->nodes))
			continue;
		ret = await(turn, UP + 8 * k, kdsm_tree_child(node, k), arrived);
		if (ret)
			return ret;
	}
	store_stage(turn, arrived);
	if (node) {
		up = tell(turn, kdsm_tree_parent(node), UP + 8 * kdsm_tree_order(node), &arrived);
		ret = kdsm_vector_retry(turn->region, &up, 1,
					kdsm_left(turn->begin, turn->timeout));
		if (!ret)
			ret = await(turn, DOWN, kdsm_tree_parent(node), passed);
		if (ret)
			return ret;
	}
	store_stage(turn, passed);
	return 0;
}

static int tell_children(const struct turn *turn)
{
	uint64_t passed = PASSED(turn->generation);
	struct kdsm_op ops[KDSM_TREE_CHILDREN];
	unsigned int k = KDSM_TREE_CHILDREN, n = 0;

	/* Notify the largest subtree first, because it takes longest. */
	while (k--)
		if (kdsm_tree_has_child(turn->node, k, turn->nodes))
			ops[n++] = tell(turn, kdsm_tree_child(turn->node, k), DOWN, &passed);
	return kdsm_vector_retry(turn->region, ops, n, kdsm_left(turn->begin, turn->timeout));
}

static int wait_for_all(struct kdsm_barrier *barrier, uint64_t timeout)
{
	struct kdsm_region *region = barrier->region;
	struct turn turn = {
		.region = region,
		.offset = barrier->offset,
		.node = region->node,
		.nodes = region->nodes,
		.generation = barrier->generation + 1,
		.begin = kdsm_now(),
		.timeout = timeout,
	};
	uint64_t stage;
	int ret;

	ret = kd_place_check(region, barrier->offset, 8, KDSM_BARRIER_SIZE);
	if (ret)
		return ret;
	if (!region->writable)
		return kd_read_only(region);
	/*
	 * An earlier call may have passed and then failed to notify the children: only
	 * repeat that step.
	 */
	stage = load_stage(&turn);
	if (stage != (FAILED | PASSED(turn.generation))) {
		stage &= ~FAILED;
		if (stage != PASSED(barrier->generation) && stage != ARRIVED(turn.generation))
			return kd_because(-EINVAL,
					  "region \"%s\": the bytes at offset %" PRIu64 " were not zero at first, or another object uses them",
					  region->name, barrier->offset);
		store_stage(&turn, stage);
		ret = pass(&turn);
		/*
		 * A late node may still arrive: do not set FAILED, so that another call can
		 * wait for that node.
		 */
		if (ret == -ETIMEDOUT)
			return ret;
	}
	if (!ret)
		ret = tell_children(&turn);
	if (ret) {
		store_stage(&turn, FAILED | load_stage(&turn));
		return ret;
	}
	barrier->generation++;
	return 0;
}

int kdsm_barrier_wait(struct kdsm_barrier *barrier, uint64_t timeout)
{
	enum kd_phase phase = kd_phase(KD_PHASE_BARRIER);
	int ret = wait_for_all(barrier, timeout);

	kd_phase(phase);
	return ret;
}
