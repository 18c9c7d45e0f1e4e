/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a process of hostile-fuzz has and does: calls.c makes the calls, locks.c those
 * about locks, hostile-fuzz.c starts and watches the processes.
 */
#ifndef KDSM_TESTS_FUZZ_H
#define KDSM_TESTS_FUZZ_H

#include "../genl.h"
#include "../hostile.h"
#include "../random.h"

#define FILES		6
#define NAMES		8
#define TICKETS		16
#define KINDS		40
#define PAGE		4096UL

/*
 * Where structs are put. The arena's pages are plain up to VANISHING; the four
 * from there are unmapped and mapped all the time; and so on.
 */
#define ARENA_PAGES	16
#define VANISHING	8
#define READ_ONLY	12
#define NO_ACCESS	13

/* Where gets and puts have their bytes. */
#define DATA		((2UL << 20) + PAGE)

struct bound {
	int file;
	uint64_t part_size, base;
	uint64_t ticket[TICKETS];
	uint32_t thread;	/* by which this process owns locks, or 0 */
	uint32_t lock;		/* the one that was opened last */
	uint64_t *words;	/* lock words, or NULL */
};

/* What a process is at, for the one that watches. */
struct progress {
	pid_t pid;
	volatile unsigned long calls;
	const char *volatile what;
	struct kind {
		const char *what;
		unsigned long calls, good;
	} kinds[KINDS];
};

/* All of one process. */
struct fuzz {
	struct random random;
	struct kdsm_info info;
	struct bound files[FILES];
	struct progress *progress;
	struct genl genl;
	bool privileged;
	char *arena, *data;
};

extern struct fuzz fuzz;

/* Catch faults, and have a signal every now and then. */
void fuzz_signals(void);
/* Mostly the right size of a struct. */
uint32_t fuzz_argsz(uint32_t size);
/* An ioctl with a copy of the struct, now and then mangled, or in a bad place. */
int fuzz_do(struct bound *bound, const char *what, unsigned long number, void *arg,
	    size_t size);
/* A call about locks, or lock words overwritten. */
int fuzz_lock(struct bound *bound);
/* One random call: 0 or a negative errno. */
int fuzz_call(bool may_fork);

#endif /* KDSM_TESTS_FUZZ_H */
