// SPDX-License-Identifier: GPL-2.0
/*
 * A B-tree that all nodes share: every node follows pointers in the heap of a coherent region.
 * In each round the members first change the tree, one at a time under a lock, and then all
 * read it concurrently.
 *
 * Shared memory has a note of each action and its result, in order. In the end rank 0 replays
 * all actions on a plain array, which must give the same results and the same content.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kdsm/lock.h>

#include "frame.h"
#include "random.h"
#include "tree.h"

#define ROUNDS	4
#define SECTIONS	16		/* critical sections of a member in a round */
#define READS		64		/* keys that a member looks up in a round */
#define NONE		UINT64_MAX	/* no value */

struct size {
	uint64_t keys;			/* bound of the keys */
	unsigned int actions;		/* in a section */
};

static const struct size sizes[] = {
	{ 2048, 8 },		/* S */
	{ 65536, 512 },	/* W */
};

/* Action number "number" of a member, from which action_of() computes the action. */
struct note {
	uint64_t member, number;
	uint64_t was;			/* the key's value before, or NONE */
};

/* An object of the heap */
struct shared {
	struct tree tree;
	uint64_t notes;
	uint64_t sum;			/* of digest() over all records */
	struct note *note;
};

static struct kdsm_heap *heap;
static struct kdsm_lock *lock;

static const struct size *size_of(const struct frame *frame)
{
	return &sizes[frame->class == 'W'];
}

static uint64_t actions_of_member(const struct frame *frame)
{
	return (uint64_t)ROUNDS * SECTIONS * size_of(frame)->actions;
}

/* The heap takes all of the job's coherent memory. */
static void open_heap(const struct frame *frame)
{
	const struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	struct kdsm_region *region = kdsm_job_region(frame->job);
	uint64_t bytes, offset = 0;

	bytes = kdsm_heap_sync_size(kdsm_region_size(region), kdsm_region_block_size(region),
				    kdsm_nodes(kdsm_job_cluster(frame->job)));
	kdsm_job_alloc_sync(frame->job, bytes, &offset);
	frame_check("heap", kdsm_heap_create(region, kdsm_job_sync(frame->job), offset, 0, &heap));
	/* A holder of the lock sees all writes of former holders. */
	frame_check("lock", kdsm_lock_create(region, "btree", 0, &attr, &lock));
}

/* ---- actions ---- */

struct action {
	enum { FIND, INSERT, REMOVE } what;
	uint64_t key, value;
};

static struct action action_of(const struct frame *frame, uint32_t member, uint64_t number)
{
	uint64_t random = mix((uint64_t)member << 40 | number);
	unsigned int die = random % 10;

	return (struct action) {
		.what = die < 5 ? INSERT : die < 8 ? REMOVE : FIND,
		.key = mix(random) % size_of(frame)->keys,
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
		frame_check("insertion", tree_insert(&shared->tree, heap, action->key, &record,
						     &is_new));
		if (!is_new)
			shared->sum -= digest(action->key, was);
		record->value = action->value;
		shared->sum += digest(action->key, action->value);
	} else if (action->what == REMOVE && record) {
		frame_check("removal", tree_remove(&shared->tree, heap, action->key, &was));
		shared->sum -= digest(action->key, was);
	}
	return was;
}

static void change(struct frame *frame, struct shared *shared, uint64_t *number)
{
	unsigned int section, i;
	struct action action;

	for (section = 0; section < SECTIONS; section++) {
		frame_check("lock", kdsm_lock(lock));
		for (i = 0; i < size_of(frame)->actions; i++) {
			action = action_of(frame, frame->rank, *number);
			shared->note[shared->notes++] = (struct note) {
				.member = frame->rank,
				.number = (*number)++,
				.was = act(shared, &action),
			};
		}
		frame_check("lock", kdsm_unlock(lock));
	}
}

/* ---- concurrent reading ---- */

static void add_digest(void *context, const struct tree_record *record)
{
	*(uint64_t *)context += digest(record->key, record->value);
}

static bool read_all(const struct frame *frame, const struct shared *shared, unsigned int round)
{
	const struct tree_record *record;
	uint64_t sum = 0, key;
	bool good = true;
	unsigned int i;

	for (i = 0; i < READS; i++) {
		key = mix((uint64_t)frame->rank << 32 | round << 16 | i) %
		      size_of(frame)->keys;
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

/* Do one action on the array. Each member's actions must come in order, each once. */
static bool replay_note(const struct frame *frame, const struct note *note, uint64_t *values,
			uint64_t *done)
{
	struct action action;
	uint64_t was;

	if (note->member >= frame->size || note->number != done[note->member]++)
		return false;
	action = action_of(frame, note->member, note->number);
	was = values[action.key];
	if (action.what == INSERT)
		values[action.key] = action.value;
	else if (action.what == REMOVE)
		values[action.key] = NONE;
	return was == note->was;
}

static bool replay(const struct frame *frame, const struct shared *shared)
{
	uint64_t keys = size_of(frame)->keys, records = 0, i;
	uint64_t *done = frame_private(frame->size, sizeof(*done));
	struct replay replay = { .values = frame_private(keys, sizeof(uint64_t)), .good = true };

	for (i = 0; i < keys; i++)
		replay.values[i] = NONE;
	replay.good = shared->notes == frame->size * actions_of_member(frame);
	for (i = 0; replay.good && i < shared->notes; i++)
		replay.good = replay_note(frame, &shared->note[i], replay.values, done);
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

static struct shared *make_shared(const struct frame *frame)
{
	struct shared *shared = kdsm_calloc(heap, 1, sizeof(*shared));

	if (!shared)
		frame_check("heap", -ENOMEM);
	shared->note = kdsm_malloc(heap, frame->size * actions_of_member(frame) *
				   sizeof(struct note));
	if (!shared->note)
		frame_check("heap", -ENOMEM);
	frame_check("heap", tree_init(&shared->tree, heap));
	return shared;
}

static uint64_t records, notes;		/* of rank 0, for print() */

static bool work(struct frame *frame)
{
	struct shared *shared = NULL;
	unsigned int round;
	uint64_t number = 0;
	bool good = true;

	open_heap(frame);
	if (!frame->rank)
		shared = make_shared(frame);
	kdsm_job_broadcast(frame->job, 0, &shared, sizeof(shared));

	frame_begin(frame);
	for (round = 0; round < ROUNDS; round++) {
		change(frame, shared, &number);
		kdsm_job_barrier(frame->job);
		good &= read_all(frame, shared, round);
		kdsm_job_barrier(frame->job);
	}
	frame_end(frame);
	if (!frame->rank) {
		good &= replay(frame, shared);
		records = shared->tree.count;
		notes = shared->notes;
	}
	kdsm_job_barrier(frame->job);
	kdsm_lock_close(lock);
	frame_check("heap", kdsm_heap_close(heap));
	return good;
}

static void print(const struct frame *frame)
{
	unsigned int sections = frame->size * ROUNDS * SECTIONS;
	const struct total *total = &frame->total;

	printf("%" PRIu64 " actions in %u sections, %" PRIu64 " records at the end\n", notes,
	       sections, records);
	if (frame->nodes > 1)
		printf("remote operations a section: %.2f\n",
		       (double)(total->gets + total->messages + total->puts) / sections);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.doc = "Change and read a B-tree in shared memory, and compare it with a replay.",
		.sync = 8 << 20,	/* the heap's words for 256 MiB are 4 MiB */
		.work = work,
		.print = print,
	};

	return frame_main(argc, argv, &program);
}
