/* SPDX-License-Identifier: GPL-2.0 */
/* kdsm-bench(1): what its files share. */
#ifndef BENCH_H
#define BENCH_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>
#include <kdsm/kdsm.h>

#define MAX_LIST 16
#define MAX_REPEAT 99

/* What --vary goes through, one value after the other. */
enum lock_vary {
	VARY_NOTHING,
	VARY_THREADS,
	VARY_T_DC,
	VARY_T_R,
	VARY_T_W,
	VARY_T_L,	/* of all levels */
	VARY_KEEP,
};

/* lock_options.c */
struct lock_options {
	const char *benchmark;		/* one of them; NULL: all */
	const char *kind;		/* likewise */
	unsigned int threads;		/* on each node */
	double writers[MAX_LIST];	/* per cent */
	unsigned int writer_count;
	struct kdsm_lock_settings settings;
	enum lock_vary vary;
	uint64_t values[MAX_LIST];	/* of it; growing */
	unsigned int value_count;	/* 1, if it is VARY_NOTHING */
	unsigned int repeat;		/* each line, to MAX_REPEAT */
	const char *sweep;		/* file; NULL: none */
};

extern const char *const lock_vary_names[];

/* Of the command line; the input is a struct lock_options. */
extern const struct argp lock_argp;

/* task_options.c */
struct task_options {
	unsigned int workers;		/* on each node */
	bool half;			/* what a thief takes, not one */
	const char *program;		/* one of them; NULL: all */
	unsigned int fib, depth;
};

/* Of the command line; the input is a struct task_options. */
extern const struct argp task_argp;

/* What the command line says. */
struct options {
	const char *kind;	/* get, put, cas, ... */
	bool json;
	bool local;		/* the local backend */
	int target;		/* -1: the next node */
	uint64_t sizes[MAX_LIST];
	unsigned int size_count;	/* 0: the default of the kind */
	unsigned int vector;	/* operations a call; 0: the default */
	unsigned int calls;	/* measured; rounds, where a kind goes by rounds */
	unsigned int warmup;	/* calls before, not measured */
	double seconds;		/* bw: for each size and direction; lock; 0: as by default */
	double timeout;		/* for the others to come to a barrier */
	uint64_t entries;	/* table: of all nodes together */
	uint64_t cache;		/* table: remote nodes kept */
	uint32_t find;		/* table: enum kdsm_table_find */
	double loads[MAX_LIST];
	unsigned int load_count;
	uint32_t block;		/* bytes of a block; 0: the default of the kind */
	uint64_t blocks, ranges;	/* fence; 0: the default */
	const char *only;	/* fence: one of its three; NULL: all */
	struct lock_options lock;
	struct task_options task;
};

/* A run: the cluster, the region that it measures in, and the result. */
struct run {
	const struct options *options;
	struct kdsm *kdsm;
	struct kdsm_region *region;
	struct kdsm_barrier barrier;
	unsigned int node, nodes, target;
	bool measures;		/* node 0 */
	struct json_object *result;
};

/* Every part of the region begins with the barrier; this is what follows. */
#define DATA_OFFSET 4096

/* A line on stderr, with the program and the kind; gives 1, an exit status. */
int complain(const struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* run.c; those that can fail complain and give an exit status. */
int run_open(struct run *run, const struct options *options);
int run_region(struct run *run, uint64_t part_bytes);	/* and meet the others */
int run_meet(struct run *run);				/* the barrier */
void run_close(struct run *run);

/* Each measures if it is to, or serves; gives an exit status. */
int bench_latency(const struct options *options);
int bench_bandwidth(const struct options *options);
int bench_table(const struct options *options);
int bench_lock(const struct options *options);
int bench_task(const struct options *options);

/* samples.c: times of calls, nanoseconds. */
struct samples {
	uint64_t *ns;
	unsigned int count, room;
};

struct summary {
	double min, median, mean, p90, p99, p999, max;	/* microseconds */
};

uint64_t now_ns(void);
int samples_init(struct samples *samples, unsigned int room);
/* Around what is measured; NULL: it is not. */
uint64_t samples_begin(const struct samples *samples);
void samples_end(struct samples *samples, uint64_t begin);
void samples_add(struct samples *samples, uint64_t ns);
void samples_summarise(struct samples *samples, struct summary *summary); /* sorts */
void samples_free(struct samples *samples);

/* report.c */
struct json_object *report_begin(const struct run *run);
struct json_object *report_latency(const struct summary *summary);
struct json_object *report_remote(const struct kdsm_counts *counts);
void report_remote_text(const struct kdsm_counts *counts, const char *calls);
void report_end(struct run *run);	/* prints the result, if JSON is wanted */
void counts_since(const struct run *run, const struct kdsm_counts *before,
		  struct kdsm_counts *difference);
const char *domain_name(enum kdsm_domain domain);

#endif /* BENCH_H */
