/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process of hostile-fuzz: its state and its calls. calls.c makes the calls, locks.c
 * those about locks; hostile-fuzz.c starts and watches the processes.
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
#define WHAT		32	/* bytes of the name of a kind of call */
#define PAGE		4096UL

/*
 * Structs are placed in an arena of pages. The pages before VANISHING are always accessible.
 * The four pages from VANISHING on are unmapped and mapped again all the time, one is
 * read-only, and those from NO_ACCESS on are inaccessible.
 */
#define ARENA_PAGES	16
#define VANISHING	8
#define READ_ONLY	12
#define NO_ACCESS	13

/* Bytes of the memory that gets and puts use */
#define DATA		((2UL << 20) + PAGE)

struct bound {
	int file;
	uint64_t part_size, base;
	uint64_t ticket[TICKETS];
	uint32_t thread;	/* thread number by which this process owns locks, or 0 */
	uint32_t lock;		/* number of the lock that was opened last */
	uint64_t *words;	/* lock words, or NULL */
};

/*
 * Progress of a process, for its parent, which watches it. The process may overwrite it by the
 * result of a get, so it holds no pointer, and the parent relies on nothing in it.
 */
struct progress {
	volatile unsigned long calls;
	char what[WHAT];
	struct kind {
		char what[WHAT];
		unsigned long calls, good;
	} kinds[KINDS];
};

/* All state of one process */
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

/* Catch faults, and have a timer interrupt system calls. */
void fuzz_signals(void);
/* Return size, or sometimes any value, for the argsz of a struct. */
uint32_t fuzz_argsz(uint32_t size);
/* Make an ioctl with a copy of the struct, which is sometimes mangled or at a bad address. */
int fuzz_do(struct bound *bound, const char *what, unsigned long number, void *arg,
	    size_t size);
/* Make a random call about locks, or overwrite a lock word. */
int fuzz_lock(struct bound *bound);
/* Tell the parent what this process does. */
void fuzz_doing(const char *what);
/* Make one random call; return 0 or a negative errno. */
int fuzz_call(bool may_fork);

#endif /* KDSM_TESTS_FUZZ_H */
