// SPDX-License-Identifier: GPL-2.0
/*
 * lock: the actions of a thread with the lock, and after unlocking. The benchmarks are those of
 * Schmid, Besta and Hoefler, "High-Performance Distributed RMA Locks", HPDC 2016, section 5.
 *
 * The lock guards a counter and the cells of a hash table with linear probing, both on node 0.
 * Threads access them by plain gets and puts. So if two threads have the lock at a time, an
 * increment or a key is lost, and lock_verify() finds that.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "lock.h"

#define CELLS		4096
#define KEYS		(CELLS / 2)

struct guarded {
	uint64_t counter;

	_Alignas(64) uint64_t cells[CELLS];	/* keys, 0: free */
	struct lock_totals totals[KDSM_MAX_NODES];
};

#define PLACE(field) (DATA_OFFSET + offsetof(struct guarded, field))

/* The guarded data in the caller's own part. The caller is node 0. */
static struct guarded *guarded_of(const struct run *run)
{
	return (struct guarded *)((char *)kdsm_region_part(run->region) + DATA_OFFSET);
}

uint64_t lock_part_bytes(const struct run *run)
{
	return offsetof(struct guarded, totals) + run->nodes * sizeof(struct lock_totals);
}

uint64_t lock_totals_offset(unsigned int node)
{
	return PLACE(totals) + node * sizeof(struct lock_totals);
}

uint64_t lock_random(struct lock_worker *worker)
{
	uint64_t z = worker->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void lock_pause(struct lock_worker *worker)
{
	uint64_t end = now_ns() + 1000 + lock_random(worker) % 3001;

	while (now_ns() < end)
		;
}

/* ---- inside ---- */

static int nothing(struct lock_worker *worker, bool write)
{
	(void)worker;
	(void)write;
	return 0;
}

static int look(struct lock_worker *worker)
{
	uint64_t value;

	return kdsm_get(worker->run->run.region, 0, PLACE(counter), &value, sizeof(value));
}

static int count(struct lock_worker *worker)
{
	struct kdsm_region *region = worker->run->run.region;
	uint64_t value;
	int ret;

	ret = kdsm_get(region, 0, PLACE(counter), &value, sizeof(value));
	if (ret)
		return ret;
	value++;
	worker->number = value;
	return kdsm_put(region, 0, PLACE(counter), &value, sizeof(value));
}

static int single(struct lock_worker *worker, bool write)
{
	return write ? count(worker) : look(worker);
}

static int workload(struct lock_worker *worker, bool write)
{
	int ret = single(worker, write);

	lock_pause(worker);
	return ret;
}

/* Find a random key. A writer puts a missing key into the first free cell. */
static int table(struct lock_worker *worker, bool write)
{
	struct kdsm_region *region = worker->run->run.region;
	uint64_t key = 1 + lock_random(worker) % KEYS, cell, at;
	int ret;

	for (at = key * 0x9e3779b97f4a7c15ULL >> 52;; at = (at + 1) % CELLS) {
		ret = kdsm_get(region, 0, PLACE(cells) + at * 8, &cell, sizeof(cell));
		if (ret || cell == key || (!cell && !write))
			return ret;
		if (!cell)
			break;
	}
	ret = kdsm_put(region, 0, PLACE(cells) + at * 8, &key, sizeof(key));
	/* Count the keys put, so that lock_verify() finds a key that was lost or put twice. */
	return ret ? ret : count(worker);
}

const struct lock_benchmark lock_benchmarks[] = {
	{ .name = "latency", .what = "one thread alone", .inside = nothing, .alone = true },
	{ .name = "empty", .what = "nothing inside", .inside = nothing },
	{ .name = "single", .what = "one access inside", .inside = single,
	  .counts = true },
	{ .name = "workload", .what = "an access and 1 to 4 us of work inside",
	  .inside = workload, .counts = true },
	{ .name = "wait", .what = "1 to 4 us of work after each unlock", .inside = nothing,
	  .waits_after = true },
	{ .name = "table", .what = "a look into a hash table inside", .inside = table },
	{ .name = NULL }
};

/* ---- before and after ---- */

void lock_clear(struct run *run)
{
	memset(guarded_of(run), 0, offsetof(struct guarded, totals));
}

int lock_verify(struct lock_run *run, const struct lock_totals *totals)
{
	const struct guarded *guarded = guarded_of(&run->run);
	const struct lock_benchmark *benchmark = run->round.benchmark;
	static unsigned char seen[KEYS + 1];
	uint64_t keys = 0, i;

	if (benchmark->inside == nothing)
		return 0;
	if (benchmark->inside != table)
		return guarded->counter == totals->writes ? 0 :
		       complain(run->run.options, "the counter is %llu after %llu increments: the lock does not exclude",
				(unsigned long long)guarded->counter,
				(unsigned long long)totals->writes);
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < CELLS; i++) {
		uint64_t key = guarded->cells[i];

		if (!key)
			continue;
		keys++;
		if (key > KEYS || seen[key]++)
			return complain(run->run.options, "key %llu is in the table twice: the lock does not exclude",
					(unsigned long long)key);
	}
	return guarded->counter == keys ? 0 :
	       complain(run->run.options, "%llu keys were put and %llu are there: the lock does not exclude",
			(unsigned long long)guarded->counter, (unsigned long long)keys);
}
