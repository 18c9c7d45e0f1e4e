// SPDX-License-Identifier: GPL-2.0
/*
 * lock: the actions of a thread with the lock, and after unlocking. The benchmarks are those of
 * Schmid, Besta and Hoefler, "High-Performance Distributed RMA Locks", HPDC 2016, section 5.
 *
 * The lock guards a counter, a pair of words and the cells of a hash table with linear probing,
 * all on node 0. Threads access them by plain gets and puts. If two threads have the lock for
 * writing at a time, an increment or a key is lost, and lock_verify() finds that. A reader that
 * has the lock at the same time as a writer finds the two words of the pair unequal.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "lock.h"

#define CELLS		4096
#define KEYS		(CELLS / 2)

struct guarded {
	uint64_t counter;

	_Alignas(64) uint64_t first;	/* the pair: writers increment first, and then second */
	_Alignas(64) uint64_t second;
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

static int get_word(struct lock_worker *worker, uint64_t place, uint64_t *value)
{
	return kdsm_get(worker->run->run.region, 0, place, value, sizeof(*value));
}

static int put_word(struct lock_worker *worker, uint64_t place, uint64_t value)
{
	return kdsm_put(worker->run->run.region, 0, place, &value, sizeof(value));
}

static int look(struct lock_worker *worker)
{
	uint64_t value;

	return get_word(worker, PLACE(counter), &value);
}

static int count(struct lock_worker *worker)
{
	uint64_t value;
	int ret;

	ret = get_word(worker, PLACE(counter), &value);
	if (ret)
		return ret;
	worker->number = value + 1;
	return put_word(worker, PLACE(counter), value + 1);
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

/* Read both words. Returns 1 if they differ, or are not *value unless that is 0. */
static int read_pair(struct lock_worker *worker, uint64_t *value)
{
	uint64_t first, second;
	int ret;

	ret = get_word(worker, PLACE(first), &first);
	lock_pause(worker);
	if (!ret)
		ret = get_word(worker, PLACE(second), &second);
	if (ret)
		return ret;
	ret = first != second || (*value && *value != first);
	*value = first;
	return ret;
}

static int write_pair(struct lock_worker *worker, uint64_t value)
{
	int ret = put_word(worker, PLACE(first), value);

	lock_pause(worker);
	worker->number = value;
	return ret ?: put_word(worker, PLACE(second), value);
}

/*
 * A reader looks twice, so that it also sees a writer that begins after its first look. A writer
 * looks before and after its write. Each acquisition counts once.
 */
static int pair(struct lock_worker *worker, bool write)
{
	uint64_t value = 0;
	int half, ret;

	half = read_pair(worker, &value);
	if (half < 0)
		return half;
	ret = write ? write_pair(worker, ++value) : 0;
	if (!ret)
		ret = read_pair(worker, &value);
	if (ret < 0)
		return ret;
	half |= ret;
	if (write)
		worker->times.half_writes += half;
	else
		worker->times.half_reads += half;
	return 0;
}

/* Find a random key. A writer puts a missing key into the first free cell. */
static int table(struct lock_worker *worker, bool write)
{
	uint64_t key = 1 + lock_random(worker) % KEYS, cell, at;
	int ret;

	for (at = key * 0x9e3779b97f4a7c15ULL >> 52;; at = (at + 1) % CELLS) {
		ret = get_word(worker, PLACE(cells) + at * 8, &cell);
		if (ret || cell == key || (!cell && !write))
			return ret;
		if (!cell)
			break;
	}
	ret = put_word(worker, PLACE(cells) + at * 8, key);
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
	{ .name = "pair", .what = "two words that must be equal", .inside = pair, .counts = true },
	{ .name = NULL }
};

/* ---- before and after ---- */

void lock_clear(struct run *run)
{
	memset(guarded_of(run), 0, offsetof(struct guarded, totals));
}

static int does_not_exclude(struct lock_run *run, const char *things, uint64_t number,
			    const char *and, uint64_t expected)
{
	return complain(run->run.options, "%s, %s, %g %% writers: %s is %llu and %s %llu: the lock does not exclude",
			run->round.benchmark->name, lock_name_of(run->round.kind),
			run->round.writers, things, (unsigned long long)number, and,
			(unsigned long long)expected);
}

static int verify_pair(struct lock_run *run, const struct lock_times *times)
{
	const struct guarded *guarded = guarded_of(&run->run);

	if (times->half_reads || times->half_writes)
		return complain(run->run.options, "pair, %s, %g %% writers: %llu of %llu readers and %llu of %llu writers saw half of a write: the lock does not exclude",
				lock_name_of(run->round.kind), run->round.writers,
				(unsigned long long)times->half_reads,
				(unsigned long long)times->reads,
				(unsigned long long)times->half_writes,
				(unsigned long long)times->writes);
	if (guarded->first != times->writes)
		return does_not_exclude(run, "the first word", guarded->first, "the writes are",
					times->writes);
	if (guarded->second != guarded->first)
		return does_not_exclude(run, "the first word", guarded->first, "the second",
					guarded->second);
	return 0;
}

static int verify_table(struct lock_run *run)
{
	const struct guarded *guarded = guarded_of(&run->run);
	static unsigned char seen[KEYS + 1];
	uint64_t keys = 0, i;

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
	if (guarded->counter != keys)
		return does_not_exclude(run, "the number of keys put", guarded->counter,
					"of keys there", keys);
	return 0;
}

int lock_verify(struct lock_run *run, const struct lock_totals *totals)
{
	int (*inside)(struct lock_worker *worker, bool write) = run->round.benchmark->inside;
	const struct guarded *guarded = guarded_of(&run->run);

	if (inside == nothing)
		return 0;
	if (inside == pair)
		return verify_pair(run, &totals->times);
	if (inside == table)
		return verify_table(run);
	if (guarded->counter != totals->times.writes)
		return does_not_exclude(run, "the counter", guarded->counter, "the writes are",
					totals->times.writes);
	return 0;
}
