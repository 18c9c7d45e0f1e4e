/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of data that locks guard, in a region of policy release.
 *
 * usage: PROGRAM [-m | -w] [PART-OF-A-TEST-NAME]
 *
 * -m: locks of kind RMA_MCS; -w: of kind RMA_RW, which look_lock() locks for reading;
 * without either: DMCS.
 */
#ifndef GUEST_GUARD_H
#define GUEST_GUARD_H

#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "crew.h"

#define BLOCK		4096
#define BLOCKS		64
#define WORDS		(BLOCK / 8)

static struct kdsm_region *region, *sync_region;
static uint64_t *words;		/* mapping of region */
static uint32_t kind = KDSM_LOCK_DMCS;

static inline struct kdsm_lock *make_lock(const char *name, uint64_t keep)
{
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = kind,
		.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = keep },
	};
	struct kdsm_lock *lock;

	must(kdsm_lock_create(region, name, 0, &attr, &lock), name);
	return lock;
}

static inline uint64_t *block_of(unsigned int number)
{
	return words + (uint64_t)number * WORDS;
}

/* Lock to read the guarded data, shared with other readers if the kind of lock permits it. */
static inline int look_lock(struct kdsm_lock *lock)
{
	return kind == KDSM_LOCK_RMA_RW ? kdsm_read_lock(lock) : kdsm_lock(lock);
}

static inline int look_unlock(struct kdsm_lock *lock)
{
	return kind == KDSM_LOCK_RMA_RW ? kdsm_read_unlock(lock) : kdsm_unlock(lock);
}

static inline void set_under(struct kdsm_lock *lock, uint64_t *word, uint64_t value)
{
	CHECK_IS(kdsm_lock(lock), 0);
	*(volatile uint64_t *)word = value;
	CHECK_IS(kdsm_unlock(lock), 0);
}

static inline uint64_t get_under(struct kdsm_lock *lock, const uint64_t *word)
{
	uint64_t value;

	CHECK_IS(look_lock(lock), 0);
	value = *(const volatile uint64_t *)word;
	CHECK_IS(look_unlock(lock), 0);
	return value;
}

/* meeting_name: of the meeting's region; name: of the region with the data. */
static inline int guard_main(int argc, char **argv, const char *meeting_name, const char *name,
			     const struct guest_test *tests)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = BLOCKS * BLOCK, .block_size = BLOCK, .policy = KDSM_POLICY_RELEASE,
	};
	int status;

	if (argc > 1 && (!strcmp(argv[1], "-m") || !strcmp(argv[1], "-w"))) {
		kind = argv[1][1] == 'm' ? KDSM_LOCK_RMA_MCS : KDSM_LOCK_RMA_RW;
		argc--;
		argv++;
	}
	guest_open(meeting_name);
	must(kdsm_region_open_coherent(kdsm, name, &attr, KDSM_LINE_SIZE * (2 + nodes),
				       &region, &sync_region), "kdsm_region_open_coherent");
	words = kdsm_region_address(region);
	meet();
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	kdsm_region_close(sync_region);
	guest_close();
	return status;
}

#endif /* GUEST_GUARD_H */
