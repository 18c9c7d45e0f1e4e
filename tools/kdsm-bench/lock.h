/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench lock: declarations that its files share. */
#ifndef BENCH_LOCK_H
#define BENCH_LOCK_H

#include <pthread.h>
#include <kdsm/lock.h>
#include "bench.h"

struct lock_worker;

/* The action that each thread repeats with the lock */
struct lock_benchmark {
	const char *name;
	const char *what;		/* description for the titles of curves */
	/*
	 * Called with the lock held; write: not for reading. Returns 0 or a negative errno.
	 */
	int (*inside)(struct lock_worker *worker, bool write);
	bool counts;			/* inside() of a write sets worker->number */
	bool waits_after;		/* 1 to 4 us of work after each unlock */
	/* One thread of the target uses the lock; its home is another node if there is one. */
	bool alone;
};

/* One line of the result: a benchmark with one lock and one share of writers. */
struct lock_round {
	const struct lock_benchmark *benchmark;
	enum kdsm_lock_kind kind;
	double writers;			/* per cent */
	unsigned int threads;		/* on each node */
	uint64_t varied;		/* value of the setting that varies, or 0 */
	struct kdsm_lock_settings settings;
};

/* Classes of waits, in hand-overs; the last class has all longer waits, too */
#define LOCK_HANDOVERS	256

/* Totals of one round. Each node puts its own to node 0, which combines them. */
struct lock_totals {
	uint64_t locks, writes;		/* acquisitions, and how many were for writing */
	uint64_t elapsed;		/* time of the slowest node, in ns */
	uint64_t median, longest;	/* lock and unlock, in ns, of the node with the longest */
	uint64_t locking;		/* median of lock alone, in ns, of the same node */
	uint64_t remote;		/* remote operations and messages of the lock itself */
	uint64_t waits[KDSM_LOCK_WAITS];	/* the lock's own histogram of waits */
	uint64_t longest_wait;		/* in ns */
	/*
	 * Acquisitions for writing, by the number of others since the same thread had the lock
	 * last. This measure of a wait does not depend on the speed of hand-overs.
	 */
	uint64_t handovers[LOCK_HANDOVERS];
	uint64_t longest_handovers;
	uint64_t error;			/* errno of a thread, or 0 */
};

struct lock_run {
	struct run run;
	struct kdsm_lock *lock;
	struct lock_round round;
	struct kdsm_lock_info info;	/* settings of the last round's lock */
	unsigned int number;		/* of the round's first lock, and of no other round's */
	uint64_t measure, end;		/* with --seconds: when measuring begins and ends, in ns */
	bool go;			/* set when the threads of a node may begin */
};

struct lock_worker {
	struct lock_run *run;
	pthread_t thread;
	uint64_t random;		/* state of lock_random() */
	uint64_t count;			/* acquisitions, including those of the warm-up */
	struct samples samples;		/* lock and unlock, without the time between them */
	struct samples locking;		/* lock alone */
	uint64_t writes;
	uint64_t number;		/* last acquisition for writing, counted over all nodes */
	uint64_t handovers[LOCK_HANDOVERS];	/* see struct lock_totals */
	uint64_t longest_handovers;
	uint64_t longest;		/* longest lock and unlock, in ns */
	int error;			/* negative errno, or 0 */
};

/* lock_inside.c */
extern const struct lock_benchmark lock_benchmarks[];	/* the last name is NULL */
uint64_t lock_random(struct lock_worker *worker);
void lock_pause(struct lock_worker *worker);		/* 1 to 4 us of work */
/* Bytes of a part behind DATA_OFFSET */
uint64_t lock_part_bytes(const struct run *run);
/* Clear the data that the lock guards. On node 0, before a round. */
void lock_clear(struct run *run);
/*
 * Check the data that the lock guarded. On node 0, after a round. Returns 0, or an exit status
 * after printing a message.
 */
int lock_verify(struct lock_run *run, const struct lock_totals *totals);
/* Offset in node 0's part to which a node puts its totals */
uint64_t lock_totals_offset(unsigned int node);

/* lock_sweep.c: results as comma-separated values, and curves */
struct lock_sweep;

/* Returns NULL after printing a message. */
struct lock_sweep *lock_sweep_begin(const struct options *options, unsigned int nodes);
void lock_sweep_add(struct lock_sweep *sweep, const struct lock_run *run,
		    const struct lock_totals *totals);
/*
 * Draw the curves if the results are complete, and free the sweep. Returns 0, or an exit status
 * after printing a message.
 */
int lock_sweep_end(struct lock_sweep *sweep, bool complete);

#endif /* BENCH_LOCK_H */
