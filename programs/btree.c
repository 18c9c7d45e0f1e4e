// SPDX-License-Identifier: GPL-2.0
/*
 * A B-tree that all nodes share: every node follows pointers in the heap of a coherent region.
 * In each round the workers first change the tree, one at a time under a lock, and then all
 * read it concurrently.
 *
 * Shared memory has a note of each action and its result, in order. In the end worker 0 replays
 * all actions on a plain array, which must give the same results and the same content.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kdsm/lock.h>

#include "job.h"
#include "random.h"
#include "tree.h"

#define ROUNDS	4
#define SECTIONS	16		/* critical sections of a worker in a round */
#define READS		64		/* keys that a worker looks up in a round */
#define NONE		UINT64_MAX	/* no value */

struct size {
	uint64_t keys;			/* bound of the keys */
	unsigned int actions;		/* in a section */
	uint64_t heap;			/* a node's share without the notes, in bytes */
};

static const struct size sizes[] = {
	{ 2048, 8, 16 << 20 },		/* S */
	{ 65536, 512, 64 << 20 },	/* W */
};

/* Action number "number" of a worker, from which action_of() computes the action. */
struct note {
	uint64_t worker, number;
	uint64_t was;			/* the key's value before, or NONE */
};

/* An object of the heap. A word in the part of node 0 holds its address. */
struct shared {
	struct tree tree;
	uint64_t notes;
	uint64_t sum;			/* of digest() over all records */
	struct note *note;
};

static uint64_t heap_offset, shared_offset;
static struct kdsm_heap *heap;
static struct kdsm_lock *lock;

static const struct size *size_of(const struct job *job)
{
	return &sizes[job->class == 'W'];
}

static uint64_t actions_of_worker(const struct job *job)
{
	return (uint64_t)ROUNDS * SECTIONS * size_of(job)->actions;
}

static void layout(struct job *job)
{
	uint64_t notes = job->workers * actions_of_worker(job) * sizeof(struct note);
	/* The notes are one object, which must fit into a share next to the other chunks. */
	uint64_t bytes = (size_of(job)->heap + 4 * notes) * job->nodes;

	job_alloc(job, bytes);
	bytes = job->used;
	heap_offset = job_alloc_sync(job, kdsm_heap_sync_size(bytes, job->block_size,
							      job->nodes));
	shared_offset = job_alloc_sync(job, sizeof(uint64_t));
}

static void open_heap(struct job *job)
{
	const struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };

	job_check("heap", kdsm_heap_create(job->region, job->sync, heap_offset, 0, &heap));
	/* A holder of the lock sees all writes of former holders. */
	job_check("lock", kdsm_lock_create(job->region, "btree", 0, &attr, &lock));
}

static void close_heap(struct job *job)
{
	(void)job;
	kdsm_lock_close(lock);
	job_check("heap", kdsm_heap_close(heap));
}

/* ---- actions ---- */

struct action {
	enum { FIND, INSERT, REMOVE } what;
	uint64_t key, value;
};

static struct action action_of(const struct job *job, unsigned int worker, uint64_t number)
{
	uint64_t random = mix((uint64_t)worker << 40 | number);
	unsigned int die = random % 10;

	return (struct action) {
		.what = die < 5 ? INSERT : die < 8 ? REMOVE : FIND,
		.key = mix(random) % size_of(job)->keys,
		.value = random >> 8,
	};
}

/* The sum over records does not depend on their order, and differs if a record differs. */
static uint64_t digest(uint64_t key, uint64_t value)
{
	return mix(mix(key) + value);
}

/* Returns the key's value before, or NONE. */
static uint64_t act(struct shared *shared, const struct action *action)
{
	struct tree_record *record = tree_find(&shared->tree, action->key);
	uint64_t was = record ? record->value : NONE;
	bool is_new;

	if (action->what == INSERT) {
		job_check("insertion", tree_insert(&shared->tree, heap, action->key, &record,
						   &is_new));
		if (!is_new)
			shared->sum -= digest(action->key, was);
		record->value = action->value;
		shared->sum += digest(action->key, action->value);
	} else if (action->what == REMOVE && record) {
		job_check("removal", tree_remove(&shared->tree, heap, action->key, &was));
		shared->sum -= digest(action->key, was);
	}
	return was;
}

static void change(struct worker *worker, struct shared *shared, uint64_t *number)
{
	const struct job *job = worker->job;
	unsigned int section, i;
	struct action action;

	for (section = 0; section < SECTIONS; section++) {
		job_check("lock", kdsm_lock_timed(lock, job->timeout));
		for (i = 0; i < size_of(job)->actions; i++) {
			action = action_of(job, worker->rank, *number);
			shared->note[shared->notes++] = (struct note) {
				.worker = worker->rank,
				.number = (*number)++,
				.was = act(shared, &action),
			};
		}
		job_check("lock", kdsm_unlock(lock));
	}
}

/* ---- concurrent reading ---- */

static void add_digest(void *context, const struct tree_record *record)
{
	*(uint64_t *)context += digest(record->key, record->value);
}

static bool read_all(struct worker *worker, const struct shared *shared, unsigned int round)
{
	const struct tree_record *record;
	uint64_t sum = 0, key;
	bool good = true;
	unsigned int i;

	for (i = 0; i < READS; i++) {
		key = mix((uint64_t)worker->rank << 32 | round << 16 | i) %
		      size_of(worker->job)->keys;
		record = tree_find(&shared->tree, key);
		good &= !record || record->key == key;
	}
	return tree_check(&shared->tree, add_digest, &sum) && sum == shared->sum && good;
}

/* ---- the replay ---- */

struct replay {
	uint64_t *values;		/* by key; NONE: no record */
	uint64_t records;
	bool good;
};

static void compare(void *context, const struct tree_record *record)
{
	struct replay *replay = context;

	replay->good &= replay->values[record->key] == record->value;
	replay->records++;
}

/* Do one action on the array. Each worker's actions must come in order, each once. */
static bool replay_note(const struct job *job, const struct note *note, uint64_t *values,
			uint64_t *done)
{
	struct action action;
	uint64_t was;

	if (note->worker >= job->workers || note->number != done[note->worker]++)
		return false;
	action = action_of(job, note->worker, note->number);
	was = values[action.key];
	if (action.what == INSERT)
		values[action.key] = action.value;
	else if (action.what == REMOVE)
		values[action.key] = NONE;
	return was == note->was;
}

static bool replay(const struct job *job, const struct shared *shared)
{
	uint64_t keys = size_of(job)->keys, records = 0, i;
	uint64_t *done = calloc(job->workers, sizeof(*done));
	struct replay replay = { .values = malloc(keys * sizeof(uint64_t)), .good = true };

	if (!done || !replay.values)
		job_check("private memory", -ENOMEM);
	for (i = 0; i < keys; i++)
		replay.values[i] = NONE;
	replay.good = shared->notes == job->workers * actions_of_worker(job);
	for (i = 0; replay.good && i < shared->notes; i++)
		replay.good = replay_note(job, &shared->note[i], replay.values, done);
	for (i = 0; i < keys; i++)
		records += replay.values[i] != NONE;
	if (replay.good)
		replay.good = tree_check(&shared->tree, compare, &replay) && replay.good &&
			      replay.records == records;
	free(replay.values);
	free(done);
	return replay.good;
}

/* ---- the program ---- */

static struct shared *make_shared(const struct job *job)
{
	struct shared *shared = kdsm_calloc(heap, 1, sizeof(*shared));

	if (!shared)
		job_check("heap", -ENOMEM);
	shared->note = kdsm_malloc(heap, job->workers * actions_of_worker(job) *
				   sizeof(struct note));
	if (!shared->note)
		job_check("heap", -ENOMEM);
	job_check("heap", tree_init(&shared->tree, heap));
	return shared;
}

/* Worker 0 makes the shared data, and all workers read its address. */
static struct shared *find_shared(struct worker *worker)
{
	struct kdsm_region *sync = worker->job->sync;
	uint64_t address;

	if (!worker->rank) {
		address = (uintptr_t)make_shared(worker->job);
		job_check("address", kdsm_put(sync, 0, shared_offset, &address, sizeof(address)));
	}
	worker_barrier(worker);
	job_check("address", kdsm_get(sync, 0, shared_offset, &address, sizeof(address)));
	return (struct shared *)(uintptr_t)address;
}

static uint64_t records, notes;		/* of worker 0, for print() */

static bool work(struct worker *worker)
{
	struct shared *shared = find_shared(worker);
	unsigned int round;
	uint64_t number = 0;
	bool good = true;

	worker_begin(worker);
	for (round = 0; round < ROUNDS; round++) {
		change(worker, shared, &number);
		worker_barrier(worker);
		good &= read_all(worker, shared, round);
		worker_barrier(worker);
	}
	worker_end(worker);
	if (!worker->rank) {
		good &= replay(worker->job, shared);
		records = shared->tree.count;
		notes = shared->notes;
	}
	return good;
}

static void print(const struct job *job, const struct total *total)
{
	unsigned int sections = job->workers * ROUNDS * SECTIONS;

	printf("%" PRIu64 " actions in %u sections, %" PRIu64 " records at the end\n", notes,
	       sections, records);
	if (job->nodes > 1)
		printf("remote operations a section: %.2f\n",
		       (double)(total->gets + total->messages + total->puts) / sections);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "btree",
		.doc = "Change and read a B-tree in shared memory, and compare it with a replay.",
		.layout = layout,
		.open = open_heap,
		.close = close_heap,
		.work = work,
		.print = print,
	};

	return job_main(argc, argv, &program);
}
