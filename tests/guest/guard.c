// SPDX-License-Identifier: GPL-2.0
/*
 * Data that locks guard, in a region of policy release: the owner of a lock sees all writes
 * of its earlier owners on any node. Here the nodes take turns: which writes are visible,
 * the cost in remote operations, and deaths. guard-crowd.c has all nodes at the same time.
 * Needs two nodes.
 */
#include "guard.h"

static struct kdsm_lock_info info_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	CHECK_IS(kdsm_lock_info(lock, &info), 0);
	return info;
}

/* Only one node acts at a time, and no signature passes but through the lock. */
static bool turn_of(unsigned int which)
{
	meet();
	return node == which % nodes;
}

/* The lock goes from node to node, and stays where it was last. */
static void guard_turns(void)
{
	struct kdsm_lock *lock = make_lock("turns", KDSM_LOCK_KEEP_FOREVER);
	uint64_t *word = block_of(0);
	unsigned int i;

	/* Every node gets a copy, which becomes stale. */
	CHECK_IS(*(volatile uint64_t *)word, 0);
	for (i = 0; i < 4 * nodes; i++)
		if (turn_of(i)) {
			CHECK_IS(get_under(lock, word), i);
			set_under(lock, word, i + 1);
		}
	meet();
	kdsm_lock_close(lock);
}

/* The lock is not kept: signatures pass through the slot at the lock's home. */
static void guard_free(void)
{
	struct kdsm_lock *lock = make_lock("free", 0);
	uint64_t *word = block_of(1);
	struct kdsm_lock_info before, after;
	unsigned int i, tries;
	uint64_t freed = 0;

	CHECK_IS(*(volatile uint64_t *)word, 0);
	for (i = 0; i < 4 * nodes; i++)
		if (turn_of(i)) {
			before = info_of(lock);
			CHECK_IS(get_under(lock, word), i);
			set_under(lock, word, i + 1);
			/* cost_of_reading() checks the cost of readers. */
			if (kind == KDSM_LOCK_RMA_RW)
				continue;
			/* Both unlocks set the lock free, some time after they return. */
			for (tries = 0; tries < 5000; tries++) {
				after = info_of(lock);
				freed = after.stats[KDSM_LOCK_STAT_FREED] -
					before.stats[KDSM_LOCK_STAT_FREED];
				if (freed == 2)
					break;
				usleep(1000);
			}
			CHECK_IS(freed, 2);
			/* No remote operation on the home; elsewhere a put for each get. */
			CHECK_IS(after.stats[KDSM_LOCK_STAT_PUTS] -
				 before.stats[KDSM_LOCK_STAT_PUTS],
				 after.stats[KDSM_LOCK_STAT_GETS] -
				 before.stats[KDSM_LOCK_STAT_GETS]);
			CHECK(after.stats[KDSM_LOCK_STAT_PUTS] -
			      before.stats[KDSM_LOCK_STAT_PUTS] <= 2);
		}
	meet();
	kdsm_lock_close(lock);
}

/* The owner of a second lock sees what the lock's last owner had seen under a first lock. */
static void guard_transitive(void)
{
	struct kdsm_lock *first = make_lock("first", KDSM_LOCK_KEEP_FOREVER);
	struct kdsm_lock *second = make_lock("second", KDSM_LOCK_KEEP_FOREVER);
	uint64_t *data = block_of(2), *flag = block_of(3);
	unsigned int i;

	for (i = 1; i <= 6; i++) {
		CHECK_IS(*(volatile uint64_t *)data, 7 * (i - 1));
		meet();
		if (turn_of(i))
			set_under(first, data, 7 * i);
		if (turn_of(i + 1)) {
			CHECK_IS(get_under(first, data), 7 * i);
			set_under(second, flag, i);
		}
		if (turn_of(i + 2)) {
			CHECK_IS(get_under(second, flag), i);
			CHECK_IS(*(volatile uint64_t *)data, 7 * i);
		}
		meet();
		CHECK_IS(get_under(first, data), 7 * i);
		meet();
	}
	kdsm_lock_close(first);
	kdsm_lock_close(second);
}

/*
 * A reader fetches the signature that the last writer left on the writer's node: one get
 * for each lock.
 */
static void cost_of_reading(struct kdsm_lock *lock)
{
	uint64_t *word = block_of(4), begun = get_under(lock, word);
	struct kdsm_lock_info before, after;
	unsigned int i, rounds = 20;

	/* Node 0 keeps the lock for writing from here on. */
	meet();
	if (node == 0)
		set_under(lock, word, begun);
	meet();
	before = info_of(lock);
	for (i = 0; i < rounds; i++) {
		meet();
		if (node == 0)
			set_under(lock, word, begun + i + 1);
		meet();
		if (node == 1)
			CHECK_IS(get_under(lock, word), begun + i + 1);
	}
	meet();
	after = info_of(lock);
	if (node < 2)
		CHECK_IS(after.stats[KDSM_LOCK_STAT_GETS] - before.stats[KDSM_LOCK_STAT_GETS],
			 node ? rounds : 0);
	CHECK_IS(after.stats[KDSM_LOCK_STAT_PUTS], before.stats[KDSM_LOCK_STAT_PUTS]);
}

/* Cost of a hand-over, from the counters of the two nodes that take turns */
static void cost_of_hand_over(struct kdsm_lock *lock)
{
	struct kdsm_lock_info before, after;
	uint64_t *word = block_of(4);
	unsigned int i, rounds = 20;

	for (i = 0; i < 2; i++)
		if (turn_of(i))
			set_under(lock, word, 1);
	meet();
	before = info_of(lock);
	for (i = 0; i < 2 * rounds; i++) {
		meet();
		if (node == i % 2)
			set_under(lock, word, i);
	}
	meet();
	after = info_of(lock);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		after.stats[i] -= before.stats[i];
	if (node < 2) {
		/*
		 * One get for each hand-over, of the signature. The other operations are
		 * the same as without signatures.
		 */
		CHECK_IS(after.stats[KDSM_LOCK_STAT_GETS], rounds);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_PUTS], 0);
		printf("# a hand-over: atomics %.2f messages %.2f gets %.2f puts %.2f\n",
		       (double)after.stats[KDSM_LOCK_STAT_ATOMICS] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_MESSAGES] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_GETS] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_PUTS] / rounds);
	}
	meet();
	/* A node that keeps the lock needs no remote operations. */
	if (node == 1) {
		before = info_of(lock);
		for (i = 0; i < 100; i++)
			set_under(lock, word, i);
		after = info_of(lock);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_ATOMICS] + after.stats[KDSM_LOCK_STAT_GETS] +
			 after.stats[KDSM_LOCK_STAT_PUTS] + after.stats[KDSM_LOCK_STAT_MESSAGES],
			 before.stats[KDSM_LOCK_STAT_ATOMICS] +
			 before.stats[KDSM_LOCK_STAT_GETS] + before.stats[KDSM_LOCK_STAT_PUTS] +
			 before.stats[KDSM_LOCK_STAT_MESSAGES]);
	}
}

static void guard_cost(void)
{
	struct kdsm_lock *lock = make_lock("cost", KDSM_LOCK_KEEP_FOREVER);

	if (kind == KDSM_LOCK_RMA_RW)
		cost_of_reading(lock);
	else
		cost_of_hand_over(lock);
	meet();
	kdsm_lock_close(lock);
}

/* ---- deaths ---- */

static struct kdsm_lock *left;		/* the lock that the dying process holds */

/* Runs in a child, which uses the region where the parent mapped it. */
static void die_with_it(unsigned int process)
{
	CHECK_IS(kdsm_lock(left), 0);
	block_of(12)[0] = 4711 + process;
}

/* The next owner sees all writes of the dead process, because its node still has them. */
static void guard_dead(void)
{
	struct kdsm_lock *lock = make_lock("dead", KDSM_LOCK_KEEP_FOREVER);
	volatile uint64_t *data = block_of(12);

	left = lock;
	CHECK_IS(data[0], 0);
	meet();
	if (node == 1)
		CHECK_IS(crew_join(crew_fork(die_with_it, 0)), 0);
	meet();
	if (node == 0) {
		CHECK_IS(kdsm_lock(lock), -EOWNERDEAD);
		CHECK_IS(data[0], 4711);
		data[0] = 4712;
		CHECK_IS(kdsm_lock_consistent(lock), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	CHECK_IS(get_under(lock, block_of(12)), 4712);
	meet();
	kdsm_lock_close(lock);
}

static const struct guest_test tests[] = {
	{ "guard_turns", guard_turns },
	{ "guard_free", guard_free },
	{ "guard_transitive", guard_transitive },
	{ "guard_cost", guard_cost },
	{ "guard_dead", guard_dead },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return guard_main(argc, argv, "guard-meeting", "guard", tests);
}
