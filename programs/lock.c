// SPDX-License-Identifier: GPL-2.0
/* See lock.h. */
#include <errno.h>
#include <stddef.h>

#include "lock.h"

/* A place to wait at, one for each worker of the node. */
struct place {
	_Alignas(64) uint64_t next;	/* 0, or who comes behind its worker and its turn */
	uint64_t turn;			/* how often its worker has come; only that uses it */

	_Alignas(64) uint8_t signature[KDSM_SIGNATURE_PLACE];
};

/* The words of a part; tail and saved are those of node 0. */
struct area {
	uint64_t tail;			/* 0: free; or 1 + the rank of who came last */

	_Alignas(64) uint8_t saved[KDSM_SIGNATURE_PLACE];	/* of who gave it last */
	struct place places[];
};

/*
 * A word that is put by a device may be seen in parts. In next each byte that has
 * come has its top bit set, so that it is whole if all have.
 */
#define ALL_HERE	0x8080808080808080
#define FIELD		28		/* bits; of a turn the lowest */

static uint64_t encode(unsigned int rank, uint64_t turn)
{
	uint64_t bits = (uint64_t)rank << FIELD | (turn & ((1 << FIELD) - 1));
	uint64_t word = ALL_HERE;
	int i;

	for (i = 0; i < 8; i++)
		word |= (bits >> 7 * i & 0x7f) << 8 * i;
	return word;
}

static void decode(uint64_t word, unsigned int *rank, uint64_t *turn)
{
	uint64_t bits = 0;
	int i;

	for (i = 0; i < 8; i++)
		bits |= (word >> 8 * i & 0x7f) << 7 * i;
	*rank = bits >> FIELD;
	*turn = bits & ((1 << FIELD) - 1);
}

uint64_t lock_sync_size(const struct job *job)
{
	return sizeof(struct area) + job->per_node * sizeof(struct place);
}

void lock_init(struct lock *lock, struct job *job, uint64_t offset)
{
	lock->job = job;
	lock->offset = offset;
}

#define AREA(lock, field)	((lock)->offset + offsetof(struct area, field))

static uint64_t place_of(const struct lock *lock, unsigned int rank)
{
	return AREA(lock, places) + rank % lock->job->per_node * sizeof(struct place);
}

static struct place *own_place(const struct lock *lock, const struct worker *worker)
{
	return (struct place *)((char *)kdsm_region_part(lock->job->sync) +
				place_of(lock, worker->rank));
}

/* Become the last in the queue; *former: 0, or 1 + who was it. */
static int enqueue(struct lock *lock, unsigned int rank, uint64_t *former)
{
	uint64_t guess = 0;
	int ret;

	for (;;) {
		ret = kdsm_cas(lock->job->sync, 0, AREA(lock, tail), guess, 1 + rank, former);
		if (ret || *former == guess)
			return ret;
		guess = *former;
	}
}

int lock_take(struct lock *lock, const struct worker *worker)
{
	struct kdsm_region *sync = lock->job->sync;
	struct place *own = own_place(lock, worker);
	struct kdsm_signature signature;
	uint64_t former, turn;
	int ret;

	turn = ++own->turn & ((1 << FIELD) - 1);
	ret = enqueue(lock, worker->rank, &former);
	if (ret)
		return ret;
	if (former) {
		former--;
		ret = kdsm_put_notify(sync, former / lock->job->per_node,
				      place_of(lock, former) + offsetof(struct place, next),
				      encode(worker->rank, turn));
		if (!ret)
			ret = kdsm_signature_wait(sync, place_of(lock, worker->rank) +
						  offsetof(struct place, signature), turn,
						  &signature, lock->job->timeout);
	} else {
		/* It was put there before the tail became 0, and stays while we have it. */
		ret = kdsm_get(sync, 0, AREA(lock, saved), &signature, sizeof(signature));
	}
	return ret ? ret : kdsm_acquire(lock->job->region, &signature);
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* Somebody has come behind: who? */
static int await_next(struct lock *lock, const struct worker *worker, uint64_t *next)
{
	uint64_t offset = place_of(lock, worker->rank) + offsetof(struct place, next);
	const struct place *own = own_place(lock, worker);
	int ret;

	while (((*next = load(&own->next)) & ALL_HERE) != ALL_HERE) {
		ret = kdsm_wait(lock->job->sync, offset, *next, lock->job->timeout);
		if (ret && ret != -EINTR)
			return ret;
	}
	return 0;
}

int lock_give(struct lock *lock, const struct worker *worker)
{
	struct kdsm_region *sync = lock->job->sync;
	struct place *own = own_place(lock, worker);
	struct kdsm_signature signature;
	uint64_t next, former, turn;
	unsigned int rank;
	int ret;

	ret = kdsm_release(lock->job->region, &signature);
	if (!ret && !load(&own->next)) {
		ret = kdsm_put(sync, 0, AREA(lock, saved), &signature,
			       KDSM_SIGNATURE_BYTES(signature.count));
		if (!ret)
			ret = kdsm_cas(sync, 0, AREA(lock, tail), 1 + worker->rank, 0, &former);
		if (!ret && former == 1 + worker->rank)
			return 0;
	}
	if (!ret)
		ret = await_next(lock, worker, &next);
	if (ret)
		return ret;
	decode(next, &rank, &turn);
	/* The next put here is of who comes behind us when we have come again. */
	__atomic_store_n(&own->next, 0, __ATOMIC_SEQ_CST);
	return kdsm_signature_put(sync, rank / lock->job->per_node,
				  place_of(lock, rank) + offsetof(struct place, signature),
				  &signature, turn);
}
