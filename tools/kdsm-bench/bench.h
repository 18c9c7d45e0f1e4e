/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench(1): declarations that its files share. */
#ifndef BENCH_H
#define BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>
#include <kdsm/kdsm.h>

#include "common/cli.h"
#include "common/table.h"
#include "common/virtual.h"

/* Upper bound of the parts of a list on the command line */
#define MAX_LIST 16
/* Upper bound of --repeat, in measurements */
#define MAX_REPEAT 99
/* Upper bound of the threads of a node */
#define MAX_THREADS 1024

/* The setting that --vary varies */
enum lock_vary {
	VARY_NOTHING,
	VARY_THREADS,
	VARY_T_DC,
	VARY_T_R,
	VARY_T_W,
	VARY_T_L,	/* all levels alike */
	VARY_KEEP,
};

/* Options of kind lock; kind held has threads and repeat only */
struct lock_options {
	const char *benchmark;		/* NULL: all */
	const char *kind;		/* NULL: all */
	unsigned int threads;		/* on each node; 0: the default of the kind */
	double writers[MAX_LIST];	/* shares of writers, in per cent */
	unsigned int writer_count;
	struct kdsm_lock_settings settings;
	uint64_t keep;			/* in ns, or KDSM_LOCK_KEEP_FOREVER */
	enum lock_vary vary;
	uint64_t values[MAX_LIST];	/* values of vary, in growing order */
	unsigned int value_count;	/* 1 if vary is VARY_NOTHING */
	unsigned int repeat;		/* measurements for each line; 0: the default of the kind */
	const char *sweep;		/* FILE of --sweep, or NULL */
};

/* Options of kinds task and steal */
struct task_options {
	unsigned int workers;		/* on each node */
	unsigned int steal;		/* enum kdsm_steal */
	const char *program;		/* NULL: all */
	unsigned int fib, depth;
};

/* The command line. */
struct options {
	const char *kind;	/* get, put, cas, ... */
	bool json;
	bool local;		/* use the local backend */
	unsigned int target;	/* or NEXT_NODE */
	uint64_t sizes[MAX_LIST];	/* in bytes */
	unsigned int size_count;	/* 0: the default of the kind */
	unsigned int vector;	/* operations in a call or in flight; 0: the default of the kind */
	unsigned int calls;	/* calls, rounds or runs that are measured */
	unsigned int warmup;	/* calls before them */
	uint64_t duration;	/* of a measurement, in ns; 0: the default of the kind */
	uint64_t timeout;	/* of a barrier, in ns */
	uint64_t entries;	/* table: nodes that it holds, all parts together */
	uint64_t cache;		/* table: nodes of other parts that are cached */
	unsigned int find;	/* table: enum kdsm_table_find */
	double loads[MAX_LIST];	/* table */
	unsigned int load_count;
	uint64_t block;		/* in bytes; 0: the default of the kind */
	uint64_t blocks, ranges;	/* fence; 0: the default */
	const char *only;	/* fault, fence: one part; NULL: all */
	struct lock_options lock;
	struct task_options task;
	struct virtual_options virtual;
};

/* The target is node 1, or node 0 if there is no other and the kind allows it. */
#define NEXT_NODE	UINT_MAX

/* Member that an option fills; values are a struct options. */
#define AT(member)	.offset = offsetof(struct options, member)

/* lock_options.c */
extern const struct cli_option lock_options_table[];
extern const struct cli_option held_options_table[];
extern const char *const lock_vary_names[];
/* Defaults that depend on other options. */
void lock_options_complete(struct lock_options *lock);

/* task_options.c */
extern const struct cli_option task_options_table[];	/* task and steal */
extern const struct cli_option task_programs_table[];	/* task */

/* virtual.c */
extern const struct cli_option virtual_options_table[];	/* task and barrier */
/*
 * Call bench() for this node of the cluster, with NULL, or for all nodes of a virtual run, with
 * the node. Returns an exit status: the first one that is not 0.
 */
int virtual_bench(const struct options *options,
		  int (*bench)(const struct options *options, struct kdsm *node, void *context),
		  void *context);
bool in_virtual_run(void);

/* A run: the cluster, the region in which it measures, and the result. */
struct run {
	const struct options *options;
	struct kdsm *kdsm;
	struct kdsm_region *region;
	struct kdsm_barrier barrier;
	unsigned int node, nodes, target;
	bool simulated;		/* by a virtual run */
	bool measures;		/* node 0 */
	struct json_object *result;
	struct table *table;	/* on node 0, unless JSON is printed; else NULL */
};

/* Offset of data in each part of the region, behind the barrier, in bytes */
#define DATA_OFFSET 4096

/* Print a line to stderr that begins with the program and the kind. Returns EXIT_FAILURE. */
int complain(const struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * run.c. Functions that can fail print a message and return an exit status. simulated is a node
 * of a virtual run, which run_close() leaves open, or NULL.
 */
int run_open(struct run *run, const struct options *options, struct kdsm *simulated);
/* Open the region that all nodes share, and wait for them. */
int run_region(struct run *run, uint64_t part_bytes);
/* Wait for all nodes at the barrier. */
int run_meet(struct run *run);
/* Where text is printed: begin a table, below a line of text. */
void run_table(struct run *run, const struct column *columns, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void run_close(struct run *run);

/* Measure on node 0, and serve the measurement on other nodes. Return an exit status. */
int bench_latency(const struct options *options);
int bench_bandwidth(const struct options *options);
int bench_ring(const struct options *options);
int bench_table(const struct options *options);
int bench_lock(const struct options *options);
int bench_held(const struct options *options);
int bench_task(const struct options *options);
int bench_barrier(const struct options *options);

/* samples.c: times of calls, in ns, or in virtual ns. */
struct samples {
	uint64_t *ns;
	unsigned int count, room;
};

struct summary {
	double min, median, mean, p90, p99, p999, max;	/* in us */
};

uint64_t now_ns(void);
int samples_init(struct samples *samples, unsigned int room);
/* Begin and end an operation. If samples is NULL, it is not measured. */
uint64_t samples_begin(const struct samples *samples);
void samples_end(struct samples *samples, uint64_t begin);
void samples_add(struct samples *samples, uint64_t ns);
/* Sorts the samples. */
void samples_summarise(struct samples *samples, struct summary *summary);
void samples_free(struct samples *samples);

/* report.c */
struct json_object *report_begin(const struct run *run);
struct json_object *report_latency(const struct summary *summary);
struct json_object *report_remote(const struct kdsm_counts *counts);
void report_remote_text(const struct kdsm_counts *counts, const char *calls);
void report_end(struct run *run);	/* prints the result as JSON, if that is wanted */
void counts_since(const struct run *run, const struct kdsm_counts *before,
		  struct kdsm_counts *difference);
const char *domain_name(const struct run *run);

#endif /* BENCH_H */
