// SPDX-License-Identifier: GPL-2.0
/*
 * stock [THREADS [ROUNDS]]: an example of the locks, condition variables and semaphores of
 * <kdsm/lock.h>. kdsmrun(1) starts it.
 *
 * Threads of all members look up prices in a store, which seldom change, sell items, and write
 * each sale into a ledger. The store lies in a coherent region and is used by plain loads and
 * stores. Data that belongs together has a lock:
 *
 *	prices	rma-rw, because many threads read them and few change them
 *	items	rma-mcs, because all threads change them all the time: it is cheaper to hand
 *		the lock over inside a rack first
 *	ledger	dmcs: one queue for all threads
 *
 * A semaphore bounds the number of threads in the store, and on a condition variable all
 * threads wait until rank 0 has filled the shelves.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <kdsm/job.h>
#include <kdsm/lock.h>

#include "common/cli.h"

#define ITEMS		8
#define SUM		8000		/* sum of all prices at any time */
#define MAX_THREADS	64
#define MAX_ROUNDS	100000

/* Data of different locks lies in different blocks, so that each block moves with its lock. */
struct store {
	_Alignas(4096) uint64_t prices[ITEMS];

	_Alignas(4096) uint64_t open;		/* 1 once the shelves are filled */
	uint64_t items[ITEMS];

	_Alignas(4096) uint64_t sales, again;	/* always equal */
};

static struct kdsm_job *job;
static struct store *store;
static struct kdsm_lock *prices, *items, *ledger;
static struct kdsm_cond opened;
static struct kdsm_sem doors;

struct arguments {
	uint64_t threads, rounds;
};

static struct arguments arguments = { 2, 200 };

/* End the process on any error. The next holder of a lock of this thread gets -EOWNERDEAD. */
static void must(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, kdsm_error(ret));
}

static void open_all(unsigned int threads)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_RMA_RW };
	struct kdsm_region *region, *words;
	uint64_t queues = 0;

	kdsm_job_join(NULL, &job);
	region = kdsm_job_region(job);
	words = kdsm_job_sync(job);
	store = kdsm_job_alloc(job, sizeof(*store));

	/* The first process that gives a name creates the lock, all others open it. */
	attr.settings.mask = KDSM_LOCK_SET_T_R;
	attr.settings.t_r = 64;		/* readers before a waiting writer */
	must(kdsm_lock_create(region, "prices", 0, &attr, &prices), "lock prices");
	attr = (struct kdsm_lock_attr){ .argsz = sizeof(attr), .kind = KDSM_LOCK_RMA_MCS };
	must(kdsm_lock_create(region, "items", 0, &attr, &items), "lock items");
	attr.kind = KDSM_LOCK_DMCS;
	must(kdsm_lock_create(region, "ledger", 0, &attr, &ledger), "lock ledger");

	/* The queues that threads wait in are in a partitioned region. */
	kdsm_job_alloc_sync(job, 2 * KDSM_LINE_SIZE, &queues);
	must(kdsm_cond_init(&opened, words, queues, 0), "condition variable");
	must(kdsm_sem_init(&doors, words, queues + KDSM_LINE_SIZE, 0,
			   1 + threads * kdsm_job_size(job) / 2, NULL), "semaphore");
	kdsm_job_barrier(job);
}

/* Rank 0 fills the shelves, and then lets all threads in. */
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

/* A reader sees the prices before a change or after it, never between. */
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
	for (i = 0; i < arguments.rounds; i++) {
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

/* A holder of a lock sees all writes of earlier holders, here those of all threads. */
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
	printf("%llu sales of %u members, %llu items less\n", (unsigned long long)sales,
	       kdsm_job_size(job), (unsigned long long)(1000000 * ITEMS - left));
	if (sales == expected && again == sales && left == 1000000 * ITEMS - sales) {
		printf("VERIFIED\n");
		return 0;
	}
	printf("FAILED\n");
	return 1;
}

static int take_argument(void *values, unsigned int index, const char *text, char *reason)
{
	const struct range ranges[] = { { 1, MAX_THREADS, 1 }, { 1, MAX_ROUNDS, 1 } };
	struct arguments *to = values;

	return number_parse(text, &ranges[index], index ? &to->rounds : &to->threads, reason);
}

static const struct cli cli = {
	.doc = "Sell items in a store in shared memory, by THREADS threads of each member (2), "
	       "ROUNDS times each (200).",
	.args = "[THREADS [ROUNDS]]",
	.most = 2,
	.argument = take_argument,
};

int main(int argc, char **argv)
{
	pthread_t ids[MAX_THREADS];
	unsigned int i;
	int status = 0;

	cli_parse(&cli, argc, argv, &arguments);
	open_all(arguments.threads);
	for (i = 0; i < arguments.threads; i++)
		must(-pthread_create(&ids[i], NULL, trade,
				     (void *)(uintptr_t)(kdsm_job_rank(job) * MAX_THREADS + i)),
		     "thread");
	if (!kdsm_job_rank(job))
		fill_shelves();
	for (i = 0; i < arguments.threads; i++)
		pthread_join(ids[i], NULL);
	kdsm_job_barrier(job);
	if (!kdsm_job_rank(job))
		status = check(arguments.threads * arguments.rounds * kdsm_job_size(job));
	kdsm_job_barrier(job);
	kdsm_lock_close(prices);
	kdsm_lock_close(items);
	kdsm_lock_close(ledger);
	must(kdsm_job_leave(job), "leave");
	return status;
}
