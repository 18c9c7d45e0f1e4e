// SPDX-License-Identifier: GPL-2.0
/*
 * Data in a region of policy release that locks guard, used by threads of all nodes at the
 * same time; and condition variables and semaphores, which are built on locks. Needs two
 * nodes.
 */
#include <sched.h>

#include "guard.h"

#define THREADS		3

#define ROUNDS		60
#define LOCKS		4
#define LIST_FIRST	16	/* first block with elements of the list */

static struct kdsm_lock *locks[LOCKS];

/* Readings for each writing, if the kind of lock has readers */
#define LOOKS		3

static unsigned int looks(void)
{
	return kind == KDSM_LOCK_RMA_RW ? LOOKS : 0;
}

/* A counter at both ends of a block, and a copy in another block */
static void look_at_counter(uint64_t *last)
{
	volatile const uint64_t *here = block_of(5), *there = block_of(6);

	CHECK_IS(look_lock(locks[0]), 0);
	CHECK(here[0] >= *last);
	CHECK_IS(here[WORDS - 1], here[0]);
	CHECK_IS(there[7], here[0]);
	*last = here[0];
	CHECK_IS(look_unlock(locks[0]), 0);
}

static void *count(void *arg)
{
	volatile uint64_t *here = block_of(5), *there = block_of(6);
	unsigned int i, k;
	uint64_t last = 0;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < looks(); k++)
			look_at_counter(&last);
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

/* The same with a lock that every unlock sets free */
static void guard_counter_free(void)
{
	uint64_t value = 0;

	locks[0] = make_lock("counter-free", 0);
	value = get_under(locks[0], block_of(5));
	meet();
	run_threads(count);
	meet();
	CHECK_IS(get_under(locks[0], block_of(5)), value + (uint64_t)ROUNDS * THREADS * nodes);
	meet();
	kdsm_lock_close(locks[0]);
}

/* Signatures do not grow with the number of writes to the same blocks. */
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
		/* Let other nodes get the lock. */
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

/* Several locks, whose data lie side by side in the same blocks */
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
		if (looks()) {
			CHECK_IS(kdsm_read_lock(locks[which]), 0);
			for (k = 0; k < WORDS; k += 8 * LOCKS)
				CHECK_IS(here[k], there[k]);
			CHECK_IS(kdsm_read_unlock(locks[which]), 0);
		}
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

/* A list through many blocks, which grows at its head */
struct element {
	struct element *next;
	uint64_t number, sum;		/* of this element and of all after it */
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
	unsigned int i, k;

	(void)arg;
	for (i = 0; i < ROUNDS / 2; i++) {
		for (k = 0; k < looks(); k++) {
			CHECK_IS(look_lock(locks[0]), 0);
			CHECK(list_is_good(list));
			CHECK_IS(look_unlock(locks[0]), 0);
		}
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

/* ---- condition variables and semaphores ---- */

#define ROOM	8
#define GOODS	40		/* that each thread brings or takes */

struct store {
	uint64_t in, out, sum;
	uint64_t goods[ROOM];
};

static struct kdsm_cond not_full, not_empty;

/* Threads with odd numbers in the cluster bring goods, threads with even numbers take them. */
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

/* Semaphores pass turns from node to node; the data are used outside of the lock. */
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

static const struct guest_test tests[] = {
	{ "guard_counter", guard_counter },
	{ "guard_counter_free", guard_counter_free },
	{ "guard_small", guard_small },
	{ "guard_neighbours", guard_neighbours },
	{ "guard_list", guard_list },
	{ "guard_condition", guard_condition },
	{ "guard_semaphore", guard_semaphore },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return guard_main(argc, argv, "guard-crowd-meeting", "guard-crowd", tests);
}
