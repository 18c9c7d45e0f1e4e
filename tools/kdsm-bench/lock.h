/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench lock: declarations that its files share. */
#ifndef BENCH_LOCK_H
#define BENCH_LOCK_H

#include <pthread.h>
#include <kdsm/lock.h>
#include "bench.h"
#include "histogram.h"

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

/* --lock none: no lock at all, so that what a benchmark checks fails */
#define LOCK_NONE	0

/* One line of the result: a benchmark with one lock and one share of writers. */
struct lock_round {
	const struct lock_benchmark *benchmark;
	unsigned int kind;		/* enum kdsm_lock_kind, or LOCK_NONE */
	double writers;			/* per cent */
	unsigned int threads;		/* on each node */
	uint64_t varied;		/* value of the setting that varies, or 0 */
	struct kdsm_lock_settings settings;
};

/* Classes of waits, in hand-overs; the last class has all longer waits, too */
#define LOCK_HANDOVERS	256

/*
 * Waits for writing, by the number of other writes since the same thread had the lock last. This
 * measure of a wait does not depend on the speed of hand-overs.
 */
struct lock_handovers {
	uint64_t classes[LOCK_HANDOVERS];
	uint64_t longest;
};

/* Measurements of a thread, a node or all nodes in a round */
struct lock_times {
	struct histogram reading;	/* time to lock for reading; only rma-rw has any */
	struct histogram writing;	/* time to lock otherwise */
	struct histogram both;		/* time to lock and to unlock, without what is between */
	struct lock_handovers handovers;
	uint64_t reads, writes;		/* by what a thread does inside, with the warm-up */
	uint64_t half_reads, half_writes;	/* of these, saw half of another thread's write */
};

/* Totals of one round. Each node puts its own to node 0, which combines them. */
struct lock_totals {
	struct lock_times times;
	uint64_t locks;			/* acquisitions that were measured */
	uint64_t elapsed;		/* time of these on the slowest node, in ns */
	uint64_t remote, counted;	/* remote operations of this number of acquisitions */
	uint64_t pairs, lock_remote, unlock_remote;	/* alone: operations of locks, unlocks */
	uint64_t waits[KDSM_LOCK_WAITS];	/* the lock's own histogram of waits */
	uint64_t longest_wait;		/* in ns */
	uint64_t error;			/* errno of a thread, or 0 */
};

/* The numbers of a line. One that was not measured is NaN. Times are in us. */
enum lock_value {
	LOCK_LOCKS,
	LOCK_RATE,		/* acquisitions a second */
	LOCK_P50,		/* time to lock */
	LOCK_P99,
	LOCK_P999,
	LOCK_LONGEST,
	LOCK_WRITE_P50,		/* time to lock for writing */
	LOCK_WRITE_P99,
	LOCK_WRITE_LONGEST,
	LOCK_BOTH_P50,		/* time to lock and to unlock */
	LOCK_BOTH_P99,
	LOCK_FAIRNESS,		/* longest wait over the median, of acquisitions that wait */
	LOCK_REMOTE,		/* remote operations for each acquisition */
	LOCK_LOCK_REMOTE,	/* alone: of one lock */
	LOCK_UNLOCK_REMOTE,	/* alone: of one unlock */
	LOCK_HANDOVERS_P50,
	LOCK_HANDOVERS_P99,
	LOCK_HANDOVERS_LONGEST,
	LOCK_VALUES
};

struct lock_result {
	double value[LOCK_VALUES];	/* with --repeat: medians */
	double least[LOCK_VALUES], most[LOCK_VALUES];	/* over the repetitions */
};

enum lock_phase { LOCK_WARM_UP, LOCK_MEASURE, LOCK_END };

struct lock_run {
	struct run run;
	struct kdsm_lock *lock;		/* NULL: LOCK_NONE */
	struct lock_round round;
	struct kdsm_lock_info info;	/* settings of the last round's lock */
	unsigned int number;		/* of the round's first lock, and of no other round's */
	enum lock_phase phase;		/* with --seconds; changed while threads run */
	uint64_t freed;			/* alone: times that the node has given the lock back */
	bool go;			/* set when the threads of a node may begin */
};

struct lock_worker {
	struct lock_run *run;
	pthread_t thread;
	uint64_t random;		/* state of lock_random() */
	uint64_t count;			/* acquisitions, including those of the warm-up */
	uint64_t measured;		/* acquisitions without those */
	uint64_t begin, end;		/* of the measured acquisitions, in ns */
	uint64_t number;		/* last acquisition for writing, counted over all nodes */
	struct lock_times times;
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

/* lock_threads.c: let the threads of this node run. Returns 0 or a negative errno. */
int lock_threads_run(struct lock_run *run, struct lock_worker *workers, unsigned int threads,
		     struct lock_totals *totals);

/* lock_round.c: run one round. On node 0, *all gets the totals of all nodes. */
int lock_round(struct lock_run *run, struct lock_worker *workers, struct lock_totals *all);
/*
 * Create one of the locks that begin at number, as many as there are nodes, so that its home is
 * another node than that; in a cluster of one node, create the lock of that number. Returns 0 or
 * a negative errno.
 */
int lock_create_afar(struct run *run, const struct kdsm_lock_attr *attr, unsigned int number,
		     unsigned int node, struct kdsm_lock **lock);

/* lock_result.c */
extern const char *const lock_value_names[LOCK_VALUES];	/* of JSON and of columns */
void lock_times_add(struct lock_times *sum, const struct lock_times *times);
void lock_totals_add(struct lock_totals *all, const struct lock_totals *one);
void lock_result_of(const struct lock_round *round, const struct lock_totals *totals,
		    struct lock_result *result);
/* The medians of results, and their spread */
void lock_result_median(const struct lock_result *results, unsigned int count,
			struct lock_result *median);

/* lock_report.c */
const char *lock_name_of(unsigned int kind);	/* of LOCK_NONE, too */
void lock_report_begin(struct lock_run *run);
void lock_report(struct lock_run *run, const struct lock_result *result);

/* lock_sweep.c: results as comma-separated values, and curves */
struct lock_sweep;

/* Returns NULL after printing a message. */
struct lock_sweep *lock_sweep_begin(const struct options *options, unsigned int nodes);
void lock_sweep_add(struct lock_sweep *sweep, const struct lock_run *run,
		    const struct lock_result *result);
/*
 * Draw the curves if the results are complete, and free the sweep. Returns 0, or an exit status
 * after printing a message.
 */
int lock_sweep_end(struct lock_sweep *sweep, bool complete);

#endif /* BENCH_LOCK_H */
