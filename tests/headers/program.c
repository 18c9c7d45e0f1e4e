// SPDX-License-Identifier: GPL-2.0
/*
 * Every public header in one program that is both C11 and C++17: operations on places, a
 * lock with a condition variable and a semaphore, a heap in a coherent region, a table,
 * tasks, and BDDs in tasks. The program runs on the local backend, and exits with 1 at the
 * first result that is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdsm/bdd.h>
#include <kdsm/coherent.h>
#include <kdsm/heap.h>
#include <kdsm/job.h>
#include <kdsm/kdsm.h>
#include <kdsm/lock.h>
#include <kdsm/ring.h>
#include <kdsm/table.h>
#include <kdsm/task.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_netlink.h>
#include <kdsm/uapi_table.h>
#include <kdsm/uapi_task.h>

#include "fib.h"

#define PART	(8UL << 20)	/* bytes of a part of a partitioned region */
#define EXPECT(x)	expect(!!(x), __func__, __LINE__, #x)

static void expect(int is_so, const char *function, int line, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "%s, line %d: not so: %s\n", function, line, what);
	exit(1);
}

/* ---- tasks: with one argument, with none, with eight, without a result, with a struct ---- */

struct pair {
	uint64_t a, b;
};

static unsigned int notes;

KDSM_TASK(int, seven)
{
	return 7;
}

KDSM_VOID_TASK(note)
{
	__atomic_fetch_add(&notes, 1, __ATOMIC_RELAXED);
}

KDSM_VOID_TASK(note_by, unsigned int, n)
{
	__atomic_fetch_add(&notes, n, __ATOMIC_RELAXED);
}

KDSM_TASK_DECLARE(struct pair, swapped, struct pair, p)

KDSM_TASK(uint64_t, sum, uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d, uint64_t, e,
	  uint64_t, f, uint64_t, g, uint64_t, h)
{
	return a + 10 * (b + 10 * (c + 10 * (d + 10 * (e + 10 * (f + 10 * (g + 10 * h))))));
}

KDSM_VOID_TASK(all)
{
	struct pair pair;

	pair.a = 1;
	pair.b = 2;
	KDSM_SPAWN(seven);
	KDSM_SPAWN(note);
	KDSM_SPAWN(swapped, pair);
	KDSM_SPAWN(sum, 8, 7, 6, 5, 4, 3, 2, 1);
	KDSM_SPAWN(note_by, 10);
	KDSM_SPAWN(note_by, 1000);
	KDSM_DROP();
	KDSM_SYNC(note_by);
	KDSM_POLL();
	EXPECT(KDSM_SYNC(sum) == 12345678);
	pair = KDSM_SYNC(swapped);
	EXPECT(pair.a == 2 && pair.b == 1);
	KDSM_SYNC(note);
	KDSM_CALL(note);
	EXPECT(KDSM_SYNC(seven) == 7 && KDSM_CALL(seven) == 7);
	EXPECT(KDSM_CALL(fib, (unsigned int)KDSM_CALL(seven)) == 13);
	EXPECT(!KDSM_CONTEXT() && KDSM_WORKER() < 64);
}

KDSM_TASK_DEFINE(struct pair, swapped, struct pair, p)
{
	uint64_t a = p.a;

	p.a = p.b;
	p.b = a;
	return p;
}

static void set_up(struct kdsm_tasks_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->argsz = sizeof(*attr);
	attr->workers = 2;
	attr->node_workers = 4;
	attr->deque = 1024;
}

static void use_tasks(struct kdsm_region *region)
{
	struct kdsm_tasks_attr attr;
	struct kdsm_tasks *tasks;
	uint64_t result = 0;

	set_up(&attr);
	EXPECT(kdsm_tasks_bytes(&attr) <= PART);
	EXPECT(!kdsm_tasks_open(region, 0, &attr, &tasks));
	EXPECT(!KDSM_RUN(tasks, &result, fib, 20) && result == 6765);
	EXPECT(!KDSM_RUN(tasks, NULL, all));
	EXPECT(!KDSM_RUN(tasks, NULL, note));
	/* Spawned, called and run; by 10; and by 1000 only where it was stolen before the drop. */
	EXPECT(notes == 13 || notes == 1013);
	kdsm_tasks_close(tasks);
}

/* ---- BDDs in tasks ---- */

KDSM_TASK(kdsm_bdd, both, uint32_t, first, uint32_t, end)
{
	KDSM_BDD_WORKER(w);
	uint32_t middle = first + (end - first) / 2;
	kdsm_bdd a, b;

	if (end - first == 1)
		return kdsm_bdd_variable(w, first);
	KDSM_SPAWN(both, middle, end);
	a = KDSM_CALL(both, first, middle);
	b = KDSM_SYNC(both);
	return kdsm_bdd_and(w, a, b);
}

static void use_bdds(struct kdsm_region *region)
{
	struct kdsm_bdd_attr attr;
	struct kdsm_tasks_attr tasks_attr;
	struct kdsm_bdd_store *store;
	struct kdsm_bdd_worker *worker;
	struct kdsm_tasks *tasks;
	uint32_t variables[6] = { 0, 1, 2, 3, 4, 5 };
	uint64_t behind, nodes;
	kdsm_bdd all_six;
	mpz_t states;

	memset(&attr, 0, sizeof(attr));
	attr.argsz = sizeof(attr);
	attr.table_bytes = 1 << 20;
	attr.cache_bytes = 1 << 20;
	behind = (kdsm_bdd_part_bytes(&attr, 1) + 63) / 64 * 64;
	set_up(&tasks_attr);
	EXPECT(behind + kdsm_tasks_bytes(&tasks_attr) <= PART);
	EXPECT(!kdsm_bdd_open(region, 0, &attr, &store));
	kdsm_bdd_tasks(store, &tasks_attr);
	EXPECT(!kdsm_tasks_open(region, behind, &tasks_attr, &tasks));
	EXPECT(!KDSM_RUN(tasks, &all_six, both, 0, 6));
	EXPECT(!kdsm_bdd_worker_new(store, &worker));
	EXPECT(!kdsm_bdd_count_nodes(worker, all_six, &nodes) && nodes == 6);
	mpz_init(states);
	EXPECT(!kdsm_bdd_count_states(worker, kdsm_bdd_not(all_six), variables, 6, states) &&
	       mpz_cmp_ui(states, 63) == 0);
	mpz_clear(states);
	kdsm_bdd_worker_free(worker);
	kdsm_tasks_close(tasks);
	kdsm_bdd_close(store);
}

/* ---- the rest ---- */

static void use_places(struct kdsm_region *region)
{
	struct kdsm_op op = kdsm_op_faa(0, 8, 1);
	uint64_t word = 42;

	EXPECT(!kdsm_put(region, 0, 8, &word, sizeof(word)));
	EXPECT(!kdsm_vector(region, &op, 1) && op.result == 42);
	EXPECT(!kdsm_get(region, 0, 8, &word, sizeof(word)) && word == 43);
	EXPECT(!kdsm_cas(region, 0, 8, 43, 0, &word) && word == 43);
}

static void use_locks(struct kdsm_region *region)
{
	struct kdsm_lock *lock;
	struct kdsm_cond cond;
	struct kdsm_sem sem;
	int32_t value;

	EXPECT(!kdsm_lock_create(region, "lock", 0, 0, &lock));
	EXPECT(!kdsm_cond_init(&cond, region, 0, 0));
	EXPECT(!kdsm_sem_init(&sem, region, KDSM_LINE_SIZE, 0, 1, NULL));
	EXPECT(!kdsm_lock(lock) && kdsm_lock_is_mine(lock) == 1);
	EXPECT(!kdsm_cond_signal(&cond));
	EXPECT(!kdsm_unlock(lock));
	EXPECT(!kdsm_sem_wait(&sem) && !kdsm_sem_value(&sem, &value) && value == 0);
	kdsm_lock_close(lock);
}

static void use_table(struct kdsm_region *region)
{
	struct kdsm_table_attr attr;
	struct kdsm_table *table;
	struct kdsm_table_worker *worker;
	struct kdsm_node node, found;
	uint64_t first, again;

	memset(&attr, 0, sizeof(attr));
	attr.argsz = sizeof(attr);
	attr.nodes = 1000;
	node.a = 1;
	node.b = 2;
	EXPECT(kdsm_table_part_bytes(&attr, 1) <= PART);
	EXPECT(!kdsm_table_open(region, 0, &attr, &table));
	EXPECT(!kdsm_table_worker_new(table, &worker));
	EXPECT(kdsm_table_find_or_put(worker, &node, &first) == 1);
	EXPECT(kdsm_table_find_or_put(worker, &node, &again) == 0 && first == again);
	EXPECT(!kdsm_table_read(worker, first, &found) && found.a == 1 && found.b == 2);
	kdsm_table_worker_free(worker);
	kdsm_table_close(table);
}

static void use_coherent(struct kdsm *kdsm)
{
	struct kdsm_region_attr attr;
	struct kdsm_region *region, *sync;
	struct kdsm_signature signature;
	struct kdsm_heap *heap;
	char *text;

	memset(&attr, 0, sizeof(attr));
	attr.argsz = sizeof(attr);
	attr.size = 1 << 20;
	EXPECT(!kdsm_region_open_coherent(kdsm, "coherent", &attr,
					  kdsm_heap_sync_size(attr.size, 0, 1), &region, &sync));
	EXPECT(!kdsm_heap_create(region, sync, 0, 0, &heap));
	text = (char *)kdsm_malloc(heap, 6);
	EXPECT(text && kdsm_usable_size(heap, text) >= 6);
	memcpy(text, "hello", 6);
	EXPECT(!kdsm_release(region, &signature) && !kdsm_acquire(region, &signature));
	EXPECT(!kdsm_free(heap, text) && !kdsm_heap_close(heap));
	kdsm_region_close(sync);
	kdsm_region_close(region);
}

static void use_region(struct kdsm *kdsm, const char *name, void (*use)(struct kdsm_region *))
{
	struct kdsm_region_attr attr;
	struct kdsm_region *region;

	memset(&attr, 0, sizeof(attr));
	attr.argsz = sizeof(attr);
	attr.size = PART;
	EXPECT(!kdsm_region_open(kdsm, name, &attr, &region));
	use(region);
	kdsm_region_close(region);
}

int main(void)
{
	struct kdsm *kdsm;

	EXPECT(!kdsm_open(KDSM_OPEN_LOCAL, &kdsm));
	use_region(kdsm, "places", use_places);
	use_region(kdsm, "locks", use_locks);
	use_region(kdsm, "table", use_table);
	use_region(kdsm, "tasks", use_tasks);
	use_region(kdsm, "bdds", use_bdds);
	use_coherent(kdsm);
	kdsm_close(kdsm);
	return 0;
}
