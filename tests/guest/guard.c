// SPDX-License-Identifier: GPL-2.0
/*
 * Data in a region of policy release that locks guard: whoever has a lock sees what
 * others wrote who had it before, on whichever node. Two nodes at least.
 *
 * usage: guard [-m] [PART-OF-A-TEST-NAME]
 *
 * -m: locks of kind RMA_MCS; without it DMCS.
 */
#include <sched.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "crew.h"

#define THREADS		3
#define BLOCK		4096
#define BLOCKS		64
#define WORDS		(BLOCK / 8)

static struct kdsm_region *region, *sync_region;
static uint64_t *words;		/* of the region */
static uint32_t kind = KDSM_LOCK_DMCS;

static struct kdsm_lock *make_lock(const char *name, uint64_t keep)
{
	struct kdsm_lock_attr attr = {
		.kind = kind,
		.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = keep },
	};
	struct kdsm_lock *lock;

	must(kdsm_lock_create(region, name, 0, &attr, &lock), name);
	return lock;
}

static uint64_t *block_of(unsigned int number)
{
	return words + (uint64_t)number * WORDS;
}

static struct kdsm_lock_info info_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	CHECK_IS(kdsm_lock_info(lock, &info), 0);
	return info;
}

/* In turn: nobody else does anything meanwhile, and no signature goes anywhere. */
static bool turn_of(unsigned int which)
{
	meet();
	return node == which % nodes;
}

/* ---- in turns: what is seen, and what it costs ---- */

static void set_under(struct kdsm_lock *lock, uint64_t *word, uint64_t value)
{
	CHECK_IS(kdsm_lock(lock), 0);
	*(volatile uint64_t *)word = value;
	CHECK_IS(kdsm_unlock(lock), 0);
}

static uint64_t get_under(struct kdsm_lock *lock, const uint64_t *word)
{
	uint64_t value;

	CHECK_IS(kdsm_lock(lock), 0);
	value = *(const volatile uint64_t *)word;
	CHECK_IS(kdsm_unlock(lock), 0);
	return value;
}

/* From hand to hand, kept where it was last. */
static void guard_turns(void)
{
	struct kdsm_lock *lock = make_lock("turns", KDSM_LOCK_KEEP_FOREVER);
	uint64_t *word = block_of(0);
	unsigned int i;

	/* All have an old copy. */
	CHECK_IS(*(volatile uint64_t *)word, 0);
	for (i = 0; i < 4 * nodes; i++)
		if (turn_of(i)) {
			CHECK_IS(get_under(lock, word), i);
			set_under(lock, word, i + 1);
		}
	meet();
	kdsm_lock_close(lock);
}

/* Not kept: by way of the slot at the home. */
static void guard_free(void)
{
	struct kdsm_lock *lock = make_lock("free", 0);
	uint64_t *word = block_of(1);
	struct kdsm_lock_info before, after;
	unsigned int i;
	uint64_t freed;

	CHECK_IS(*(volatile uint64_t *)word, 0);
	for (i = 0; i < 4 * nodes; i++)
		if (turn_of(i)) {
			before = info_of(lock);
			CHECK_IS(get_under(lock, word), i);
			set_under(lock, word, i + 1);
			after = info_of(lock);
			/* In each queue that the node is in. */
			freed = after.stats[KDSM_LOCK_STAT_FREED] -
				before.stats[KDSM_LOCK_STAT_FREED];
			CHECK(freed == 2 || (kind != KDSM_LOCK_DMCS && freed && freed % 2 == 0));
			/* Nothing over the network, where the home is; or one of each. */
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

/* Who gets a second lock sees what its last holder had seen by a first one. */
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

/* What one hand-over takes, by the counters of the two nodes that take turns. */
static void guard_cost(void)
{
	struct kdsm_lock *lock = make_lock("cost", KDSM_LOCK_KEEP_FOREVER);
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
		/* One read each time that it comes; the rest is as without signatures. */
		CHECK_IS(after.stats[KDSM_LOCK_STAT_GETS], rounds);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_PUTS], 0);
		printf("# a hand-over: atomics %.2f messages %.2f gets %.2f puts %.2f\n",
		       (double)after.stats[KDSM_LOCK_STAT_ATOMICS] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_MESSAGES] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_GETS] / rounds,
		       (double)after.stats[KDSM_LOCK_STAT_PUTS] / rounds);
	}
	meet();
	/* Where it stays it costs nothing. */
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
	meet();
	kdsm_lock_close(lock);
}

/* ---- all at once ---- */

#define ROUNDS		60
#define LOCKS		4
#define LIST_FIRST	16	/* blocks that elements of the list are in */

static struct kdsm_lock *locks[LOCKS];

/* A counter at both ends of a block, and a copy in another one. */
static void *count(void *arg)
{
	volatile uint64_t *here = block_of(5), *there = block_of(6);
	unsigned int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		CHECK_IS(kdsm_lock(locks[0]), 0);
		CHECK_IS(here[WORDS - 1], here[0]);
		CHECK_IS(there[7], here[0]);
		here[0]++;
		there[7]++;
		here[WORDS - 1] = here[0];
		CHECK_IS(kdsm_unlock(locks[0]), 0);
	}
	return NULL;
}

static void run_threads(void *(*run)(void *arg))
{
	int args[THREADS] = { 0 };

	crew_threads(run, args, sizeof(args[0]), THREADS);
}

static void guard_counter(void)
{
	uint64_t value;

	locks[0] = make_lock("counter", KDSM_LOCK_KEEP_FOREVER);
	meet();
	run_threads(count);
	meet();
	value = get_under(locks[0], block_of(5));
	CHECK_IS(value, (uint64_t)ROUNDS * THREADS * nodes);
	meet();
	kdsm_lock_close(locks[0]);
}

/* The same with one that is given back every time. */
static void guard_counter_free(void)
{
	uint64_t value = 0;

	locks[0] = make_lock("counter-free", 0);
	CHECK_IS(kdsm_lock(locks[0]), 0);
	value = block_of(5)[0];
	CHECK_IS(kdsm_unlock(locks[0]), 0);
	meet();
	run_threads(count);
	meet();
	CHECK_IS(get_under(locks[0], block_of(5)), value + (uint64_t)ROUNDS * THREADS * nodes);
	meet();
	kdsm_lock_close(locks[0]);
}

/* However often the same blocks are written, signatures do not grow. */
static void guard_small(void)
{
	static struct kdsm_signature before, after;
	unsigned int i;

	locks[0] = make_lock("small", KDSM_LOCK_KEEP_FOREVER);
	CHECK_IS(kdsm_release(region, &before), 0);
	CHECK_IS(before.floor, 0);
	meet();
	for (i = 0; i < KDSM_NOTICES_MAX + 10; i++) {
		CHECK_IS(kdsm_lock(locks[0]), 0);
		block_of(13)[0]++;
		CHECK_IS(kdsm_unlock(locks[0]), 0);
		/* So that others get it. */
		if (i % 8 == node)
			sched_yield();
		CHECK_IS(kdsm_release(region, &after), 0);
	}
	meet();
	CHECK_IS(get_under(locks[0], block_of(13)), (KDSM_NOTICES_MAX + 10) * nodes);
	CHECK_IS(kdsm_release(region, &after), 0);
	CHECK_IS(after.floor, 0);
	CHECK(after.count <= BLOCKS);
	meet();
	kdsm_lock_close(locks[0]);
}

/* Several locks, whose data lie side by side in the same blocks. */
static void *share(void *arg)
{
	unsigned int *seed = arg, i, k, which;
	volatile uint64_t *here, *there;
	uint64_t chance;

	for (i = 0; i < ROUNDS; i++) {
		chance = guest_mix((uint64_t)*seed << 32 | node << 16 | i);
		which = chance % LOCKS;
		here = block_of(7) + which;
		there = block_of(8) + which;
		CHECK_IS(kdsm_lock(locks[which]), 0);
		for (k = 0; k < WORDS; k += 8 * LOCKS)
			CHECK_IS(here[k], there[k]);
		for (k = 0; k < WORDS; k += 8 * LOCKS) {
			here[k]++;
			there[k]++;
		}
		CHECK_IS(kdsm_unlock(locks[which]), 0);
	}
	return NULL;
}

static void guard_neighbours(void)
{
	unsigned int seeds[THREADS], i;
	uint64_t sum = 0;
	char name[16];

	for (i = 0; i < LOCKS; i++) {
		snprintf(name, sizeof(name), "neighbour%u", i);
		locks[i] = make_lock(name, KDSM_LOCK_KEEP_FOREVER);
	}
	for (i = 0; i < THREADS; i++)
		seeds[i] = i;
	meet();
	crew_threads(share, seeds, sizeof(seeds[0]), THREADS);
	meet();
	for (i = 0; i < LOCKS; i++)
		sum += get_under(locks[i], block_of(7) + i);
	CHECK_IS(sum, (uint64_t)ROUNDS * THREADS * nodes);
	meet();
	for (i = 0; i < LOCKS; i++)
		kdsm_lock_close(locks[i]);
}

/* A list through many blocks, which grows at either end. */
struct element {
	struct element *next;
	uint64_t number, sum;		/* of it and of all behind it */
};

struct list {
	struct element *first;
	uint64_t count;
};

static struct element *element_of(uint64_t number)
{
	uint64_t blocks = BLOCKS - LIST_FIRST;

	return (struct element *)(block_of(LIST_FIRST + number % blocks) +
				  number / blocks * (sizeof(struct element) / 8));
}

static bool list_is_good(const struct list *list)
{
	const struct element *element = list->first;
	uint64_t left = list->count;

	while (element && left) {
		if (element->number != --left ||
		    element->sum != element->number + (element->next ? element->next->sum : 0))
			return false;
		element = element->next;
	}
	return !element && !left;
}

static void *grow(void *arg)
{
	struct list *list = (struct list *)block_of(9);
	struct element *element;
	unsigned int i;

	(void)arg;
	for (i = 0; i < ROUNDS / 2; i++) {
		CHECK_IS(kdsm_lock(locks[0]), 0);
		CHECK(list_is_good(list));
		element = element_of(list->count);
		element->next = list->first;
		element->number = list->count;
		element->sum = element->number + (list->first ? list->first->sum : 0);
		list->first = element;
		list->count++;
		CHECK_IS(kdsm_unlock(locks[0]), 0);
	}
	return NULL;
}

static void guard_list(void)
{
	const struct list *list = (struct list *)block_of(9);

	locks[0] = make_lock("list", KDSM_LOCK_KEEP_FOREVER);
	meet();
	run_threads(grow);
	meet();
	CHECK_IS(kdsm_lock(locks[0]), 0);
	CHECK(list_is_good(list));
	CHECK_IS(list->count, (uint64_t)ROUNDS / 2 * THREADS * nodes);
	CHECK_IS(kdsm_unlock(locks[0]), 0);
	meet();
	kdsm_lock_close(locks[0]);
}

/* ---- what is made of locks ---- */

#define ROOM	8
#define GOODS	40		/* that a thread makes */

struct store {
	uint64_t in, out, sum;
	uint64_t goods[ROOM];
};

static struct kdsm_cond not_full, not_empty;

/* Odd threads of the cluster bring, even ones take. */
static void *trade(void *arg)
{
	volatile struct store *store = (struct store *)block_of(10);
	unsigned int number = *(unsigned int *)arg * nodes + node, i;

	for (i = 0; i < GOODS; i++) {
		CHECK_IS(kdsm_lock(locks[0]), 0);
		if (number % 2) {
			while (store->in - store->out == ROOM)
				CHECK_IS(kdsm_cond_wait(&not_full, locks[0]), 0);
			store->goods[store->in % ROOM] = number << 16 | i;
			store->in++;
			CHECK_IS(kdsm_cond_signal(&not_empty), 0);
		} else {
			while (store->in == store->out)
				CHECK_IS(kdsm_cond_wait(&not_empty, locks[0]), 0);
			store->sum += store->goods[store->out % ROOM];
			store->out++;
			CHECK_IS(kdsm_cond_signal(&not_full), 0);
		}
		CHECK_IS(kdsm_unlock(locks[0]), 0);
	}
	return NULL;
}

static void guard_condition(void)
{
	unsigned int numbers[2] = { 0, 1 }, i, k;
	uint64_t sum = 0;

	locks[0] = make_lock("store", KDSM_LOCK_KEEP_FOREVER);
	must(kdsm_cond_init(&not_full, sync_region, 0, 0), "kdsm_cond_init");
	must(kdsm_cond_init(&not_empty, sync_region, KDSM_LINE_SIZE, nodes - 1),
	     "kdsm_cond_init");
	meet();
	crew_threads(trade, numbers, sizeof(numbers[0]), 2);
	meet();
	for (i = 1; i < 2 * nodes; i += 2)
		for (k = 0; k < GOODS; k++)
			sum += i << 16 | k;
	CHECK_IS(get_under(locks[0], &((struct store *)block_of(10))->sum), sum);
	meet();
	kdsm_lock_close(locks[0]);
}

/* From node to node by semaphores, the data outside of the lock. */
static void guard_semaphore(void)
{
	volatile uint64_t *data = block_of(11);
	struct kdsm_sem sems[CREW_NODES];
	unsigned int i;

	locks[0] = make_lock("semaphores", KDSM_LOCK_KEEP_FOREVER);
	for (i = 0; i < nodes; i++)
		must(kdsm_sem_init(&sems[i], sync_region, (2 + i) * KDSM_LINE_SIZE, i, !i,
				   locks[0]), "kdsm_sem_init");
	CHECK_IS(data[0], 0);
	meet();
	for (i = 0; i < 20; i++) {
		CHECK_IS(kdsm_sem_wait(&sems[node]), 0);
		CHECK_IS(data[0], i * nodes + node);
		data[0]++;
		CHECK_IS(kdsm_sem_post(&sems[(node + 1) % nodes]), 0);
	}
	meet();
	kdsm_lock_close(locks[0]);
}

/* ---- deaths ---- */

/* With the region of the parent, where it is mapped. */
static void die_with_it(unsigned int process)
{
	CHECK_IS(kdsm_lock(locks[0]), 0);
	block_of(12)[0] = 4711 + process;
}

/* All that the dead one wrote is seen: its node has it. */
static void guard_dead(void)
{
	struct kdsm_lock *lock = make_lock("dead", KDSM_LOCK_KEEP_FOREVER);
	volatile uint64_t *data = block_of(12);

	locks[0] = lock;
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
	{ "guard_counter", guard_counter },
	{ "guard_counter_free", guard_counter_free },
	{ "guard_small", guard_small },
	{ "guard_neighbours", guard_neighbours },
	{ "guard_list", guard_list },
	{ "guard_condition", guard_condition },
	{ "guard_semaphore", guard_semaphore },
	{ "guard_dead", guard_dead },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = {
		.size = BLOCKS * BLOCK, .block_size = BLOCK, .policy = KDSM_POLICY_RELEASE,
	};
	int status;

	if (argc > 1 && !strcmp(argv[1], "-m")) {
		kind = KDSM_LOCK_RMA_MCS;
		argc--;
		argv++;
	}
	guest_open("guard-meeting");
	must(kdsm_region_open_coherent(kdsm, "guard", &attr, KDSM_LINE_SIZE * (2 + nodes),
				       &region, &sync_region), "kdsm_region_open_coherent");
	words = kdsm_region_address(region);
	meet();
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	kdsm_region_close(sync_region);
	guest_close();
	return status;
}
