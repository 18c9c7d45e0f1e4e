/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench lock: what its files share. */
#ifndef BENCH_LOCK_H
#define BENCH_LOCK_H

#include <pthread.h>
#include <kdsm/lock.h>
#include "bench.h"

struct lock_worker;

/* What a thread does with the lock, over and over. */
struct lock_benchmark {
	const char *name;
	const char *what;		/* for people */
	/* With the lock. write: it was not locked for reading. Gives 0 or -errno. */
	int (*inside)(struct lock_worker *worker, bool write);
	bool counts;			/* inside() of a write sets worker->number */
	bool waits_after;		/* 1 to 4 us after each unlock */
	/* One thread of the target node, and nobody else; the home is another, if there is. */
	bool alone;
};

/* One line of the result: a benchmark with one lock and one share of writers. */
struct lock_round {
	const struct lock_benchmark *benchmark;
	enum kdsm_lock_kind kind;
	double writers;			/* per cent */
	unsigned int threads;		/* on each node */
	uint64_t varied;		/* the value of what is varied, or 0 */
	struct kdsm_lock_settings settings;
};

/* Waits for fewer hand-overs than this are counted one by one, longer ones together. */
#define LOCK_HANDOVERS	256

/* Of all nodes together; what each puts to node 0. */
struct lock_totals {
	uint64_t locks, writes;		/* acquisitions, and of these for writing */
	uint64_t elapsed;		/* ns of the slowest node */
	uint64_t median, longest;	/* ns, of the node whose is the longest */
	uint64_t locking;		/* ns, the median of that node without unlocking */
	uint64_t remote;		/* operations and messages of the lock itself */
	uint64_t waits[KDSM_LOCK_WAITS];	/* as the lock tells, without those of 0 */
	uint64_t longest_wait;
	/*
	 * Acquisitions for writing by how many others there were since the thread had the lock
	 * last. This measure of a wait does not depend on how fast the lock goes round.
	 */
	uint64_t handovers[LOCK_HANDOVERS];
	uint64_t longest_handovers;
	uint64_t error;			/* errno of a thread, or 0 */
};

struct lock_run {
	struct run run;
	struct kdsm_lock *lock;
	struct lock_round round;
	struct kdsm_lock_info info;	/* of the lock of the last round */
	unsigned int number;		/* the first of the round, which no other has */
	uint64_t measure, end;		/* from and until, ns; with --seconds */
	bool go;			/* the threads of a node begin together */
};

struct lock_worker {
	struct lock_run *run;
	pthread_t thread;
	uint64_t random;
	uint64_t count;			/* acquisitions, of which the first are not measured */
	struct samples samples;		/* lock and unlock, without what is inside */
	struct samples locking;		/* lock alone */
	uint64_t writes;
	uint64_t number;		/* of the last acquisition for writing, over all nodes */
	uint64_t handovers[LOCK_HANDOVERS];	/* see struct lock_totals */
	uint64_t longest_handovers;
	uint64_t longest;		/* ns */
	int error;
};

/* lock.c; "?": there is no such kind */
const char *lock_kind_name(enum kdsm_lock_kind kind);

/* lock_inside.c */
extern const struct lock_benchmark lock_benchmarks[];	/* ends with a name of NULL */
uint64_t lock_random(struct lock_worker *worker);
void lock_pause(struct lock_worker *worker);		/* 1 to 4 us of work */
/* Bytes of a part beside DATA_OFFSET. */
uint64_t lock_part_bytes(const struct run *run);
/* Node 0: as before any round. */
void lock_clear(struct run *run);
/* Node 0, after a round: is what the lock guarded as it has to be? Complains. */
int lock_verify(struct lock_run *run, const struct lock_totals *totals);
/* Where node 0 is told a node's totals. */
uint64_t lock_totals_offset(unsigned int node);

/* lock_sweep.c: a table of results, and curves of it. */
struct lock_sweep;

/* NULL: complained. */
struct lock_sweep *lock_sweep_begin(const struct options *options, unsigned int nodes);
void lock_sweep_add(struct lock_sweep *sweep, const struct lock_run *run,
		    const struct lock_totals *totals);
/* Draws, if all of it is there; complains. */
int lock_sweep_end(struct lock_sweep *sweep, bool complete);

#endif /* BENCH_LOCK_H */
