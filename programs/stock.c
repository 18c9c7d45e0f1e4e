// SPDX-License-Identifier: GPL-2.0
/*
 * stock [THREADS [ROUNDS]]: what the locks, condition variables and semaphores of
 * <kdsm/lock.h> are for, in one program. Start it on every node of a cluster; where
 * there is no /dev/kdsm it runs on this machine alone.
 *
 * A store is open for business: threads of all nodes look up prices, which seldom
 * change, sell, and write what they sold into a ledger. All of it lies in a coherent
 * region and is used by plain loads and stores; what belongs together has a lock:
 *
 *	prices	rma-rw: many read them, few change them
 *	items	rma-mcs: everybody changes them all the time; it is cheaper to pass
 *		them on inside a rack first
 *	ledger	dmcs: one queue, for all alike
 *
 * A semaphore lets only so many into the store at a time, and a condition variable has
 * all wait until node 0 has filled the shelves.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kdsm/lock.h>

#define ITEMS		8
#define SUM		8000		/* of all prices, always */
#define MAX_THREADS	64

/* What different locks guard is in blocks of its own, so that they move by themselves. */
struct store {
	_Alignas(4096) uint64_t prices[ITEMS];

	_Alignas(4096) uint64_t open;		/* the shelves are filled */
	uint64_t items[ITEMS];

	_Alignas(4096) uint64_t sales, again;	/* both the same */
};

static struct kdsm *kdsm;
static struct kdsm_region *region, *words;
static struct store *store;
static struct kdsm_lock *prices, *items, *ledger;
static struct kdsm_cond opened;
static struct kdsm_sem doors;
static struct kdsm_barrier barrier;
static unsigned int rounds = 200;

/* An error of any call here is the end; a lock that this thread has goes with it. */
static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "stock: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void open_all(unsigned int threads)
{
	struct kdsm_region_attr shared = {
		.size = sizeof(struct store), .policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm_region_attr parts = { .policy = KDSM_POLICY_PARTITIONED };
	struct kdsm_lock_attr attr = { .kind = KDSM_LOCK_RMA_RW };

	must(kdsm_open(&kdsm, KDSM_OPEN_ALLOW_LOCAL), "the cluster");
	must(kdsm_region_open(kdsm, "stock", &shared, &region), "region stock");
	store = kdsm_region_address(region);

	/* Whoever comes first makes a lock; a new name is a new lock. */
	attr.settings.mask = KDSM_LOCK_SET_T_R;
	attr.settings.t_r = 64;		/* readers before a writer that waits */
	must(kdsm_lock_create(region, "prices", 0, &attr, &prices), "lock prices");
	attr = (struct kdsm_lock_attr){ .kind = KDSM_LOCK_RMA_MCS };
	must(kdsm_lock_create(region, "items", 0, &attr, &items), "lock items");
	attr.kind = KDSM_LOCK_DMCS;
	must(kdsm_lock_create(region, "ledger", 0, &attr, &ledger), "lock ledger");

	/* What threads sleep on lies in a region of parts; the barrier is in it, too. */
	parts.size = (4096 + 2 * (KDSM_LINE_SIZE + 64)) * kdsm_nodes(kdsm);
	must(kdsm_region_open(kdsm, "stock-words", &parts, &words), "region stock-words");
	kdsm_barrier_init(&barrier, words, 0);
	must(kdsm_cond_init(&opened, words, 4096, 0), "condition variable");
	must(kdsm_sem_init(&doors, words, 4096 + KDSM_LINE_SIZE, 0,
			   1 + threads * kdsm_nodes(kdsm) / 2, NULL), "semaphore");
}

/* Node 0 does that, and only then does anybody go in. */
static void fill_shelves(void)
{
	unsigned int i;

	must(kdsm_lock(prices), "prices");
	for (i = 0; i < ITEMS; i++)
		store->prices[i] = SUM / ITEMS;
	must(kdsm_unlock(prices), "prices");
	must(kdsm_lock(items), "items");
	for (i = 0; i < ITEMS; i++)
		store->items[i] = 1000000;
	store->open = 1;
	must(kdsm_cond_broadcast(&opened), "broadcast");
	must(kdsm_unlock(items), "items");
}

static void wait_for_opening(void)
{
	must(kdsm_lock(items), "items");
	while (!store->open)
		must(kdsm_cond_wait(&opened, items), "wait");
	must(kdsm_unlock(items), "items");
}

/* Readers see the prices from before a change or from after it. */
static void look_at_prices(void)
{
	uint64_t sum = 0;
	unsigned int i;

	must(kdsm_read_lock(prices), "prices");
	for (i = 0; i < ITEMS; i++)
		sum += store->prices[i];
	must(kdsm_read_unlock(prices), "prices");
	if (sum != SUM)
		must(-EILSEQ, "prices");
}

static void change_prices(unsigned int random)
{
	must(kdsm_lock(prices), "prices");
	if (store->prices[random % ITEMS]) {
		store->prices[random % ITEMS]--;
		store->prices[(random + 1) % ITEMS]++;
	}
	must(kdsm_unlock(prices), "prices");
}

static void *trade(void *arg)
{
	unsigned int random = (uintptr_t)arg, i;

	wait_for_opening();
	for (i = 0; i < rounds; i++) {
		must(kdsm_sem_wait(&doors), "doors");
		if (rand_r(&random) % 50)
			look_at_prices();
		else
			change_prices(random);
		must(kdsm_lock(items), "items");
		store->items[random % ITEMS]--;
		must(kdsm_unlock(items), "items");
		must(kdsm_lock(ledger), "ledger");
		store->sales++;
		store->again++;
		must(kdsm_unlock(ledger), "ledger");
		must(kdsm_sem_post(&doors), "doors");
	}
	return NULL;
}

/* Whoever has the lock sees what was written with it; when all have done, everything. */
static int check(uint64_t expected)
{
	uint64_t left = 0, sales, again;
	unsigned int i;

	look_at_prices();
	must(kdsm_lock(items), "items");
	for (i = 0; i < ITEMS; i++)
		left += store->items[i];
	must(kdsm_unlock(items), "items");
	must(kdsm_lock(ledger), "ledger");
	sales = store->sales;
	again = store->again;
	must(kdsm_unlock(ledger), "ledger");
	printf("%llu sales on %u nodes, %llu items less\n", (unsigned long long)sales,
	       kdsm_nodes(kdsm), (unsigned long long)(1000000 * ITEMS - left));
	if (sales == expected && again == sales && left == 1000000 * ITEMS - sales) {
		printf("VERIFIED\n");
		return 0;
	}
	printf("FAILED\n");
	return 1;
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 1 ? atoi(argv[1]) : 2, i;
	pthread_t ids[MAX_THREADS];
	int status = 0;

	if (argc > 2)
		rounds = atoi(argv[2]);
	if (argc > 3 || threads < 1 || threads > MAX_THREADS || rounds < 1 || rounds > 100000) {
		fprintf(stderr, "usage: stock [THREADS [ROUNDS]], at most %d and 100000\n",
			MAX_THREADS);
		return 2;
	}
	open_all(threads);
	for (i = 0; i < threads; i++)
		must(-pthread_create(&ids[i], NULL, trade,
				     (void *)(uintptr_t)(kdsm_node(kdsm) * MAX_THREADS + i)),
		     "thread");
	if (kdsm_node(kdsm) == 0)
		fill_shelves();
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	must(kdsm_barrier_wait(&barrier, 300000000000ULL), "the other nodes");
	if (kdsm_node(kdsm) == 0)
		status = check((uint64_t)threads * rounds * kdsm_nodes(kdsm));
	must(kdsm_barrier_wait(&barrier, 300000000000ULL), "the other nodes");
	kdsm_lock_close(prices);
	kdsm_lock_close(items);
	kdsm_lock_close(ledger);
	kdsm_region_close(words);
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return status;
}
