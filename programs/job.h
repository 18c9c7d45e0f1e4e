/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The frame of the programs in this folder: workers, which are threads of one or more
 * processes on each node, memory that all workers share, and measurements.
 *
 * The same program runs on one machine (local backend: workers are threads and processes of
 * this machine) and on a cluster, where the user starts it on every node with the same
 * arguments. Workers are numbered over all nodes; those of one node have consecutive numbers.
 *
 * An error ends the process with a message. The other processes then time out.
 */
#ifndef PROGRAMS_JOB_H
#define PROGRAMS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kdsm/coherent.h>
#include <kdsm/uapi_netlink.h>

struct job;
struct worker;
struct total;

struct program {
	const char *name, *doc;
	/*
	 * Allocates memory by job_alloc(), job_alloc_sync() and job_spread(), the same on
	 * every node. The frame calls layout() twice: the first call finds the size of the
	 * memory, so the addresses that it gets are not valid.
	 */
	void (*layout)(struct job *job);
	/* The frame calls these in each process around its workers' lives; they may be NULL. */
	void (*open)(struct job *job);
	void (*close)(struct job *job);
	/* Runs in each worker; returns whether all its results were right. */
	bool (*work)(struct worker *worker);
	/* Prints, on node 0, the results and figures computed from the counters. */
	void (*print)(const struct job *job, const struct total *total);
};

/* A run of a program; constant while workers run. */
struct job {
	const struct program *program;
	const char *name;		/* of the regions */
	char class;			/* 'S' or 'W' */
	unsigned int threads;		/* of each process */
	unsigned int processes;		/* of each node */
	uint32_t block_size;		/* bytes */
	uint64_t timeout;		/* of a wait for other workers, in ns */
	bool packed;			/* nodes share blocks where their shares of a spread meet */
	bool local;			/* --local was given */

	struct kdsm *kdsm;
	struct kdsm_region *region, *sync;
	struct kdsm_tree_barrier barrier;
	unsigned int node, nodes;
	unsigned int process;		/* number on this node; the user started number 0 */
	unsigned int per_node;		/* workers of a node */
	unsigned int workers;		/* workers of all nodes */
	uintptr_t base;			/* address of the region; 0 in the first layout() */
	uint64_t used;			/* bytes allocated of the region */
	uint64_t sync_used;		/* bytes allocated of each part of sync */
	uint64_t failures, report;	/* offsets in each part of sync */
};

struct worker {
	struct job *job;
	unsigned int rank;		/* 0 to job->workers - 1 */
	bool first;			/* it is the first worker of its node */
	uint64_t barriers;		/* number of barriers since worker_begin() */
};

/* ---- memory, to be called by layout() ---- */

/* Allocate zeroed memory of the coherent region, which begins at a block. */
void *job_alloc(struct job *job, uint64_t bytes);
/*
 * Allocate zeroed memory in each part of the partitioned region. Returns its offset, a
 * multiple of 64.
 */
uint64_t job_alloc_sync(struct job *job, uint64_t bytes);

/*
 * An array of which every worker has an equal share. The elements of the workers of one node
 * begin at a block, so no block has elements of two nodes, unless the job is packed.
 */
struct spread {
	char *base;
	uint64_t stride;		/* from one node's elements to the next node's, bytes */
	uint64_t count;			/* number of elements */
	uint64_t size;			/* of an element, bytes */
	unsigned int nodes;
};

struct spread job_spread(struct job *job, uint64_t count, uint64_t size);

/* First index of the share that rank has in count things; the share ends at that of rank + 1. */
static inline uint64_t share(uint64_t count, unsigned int rank, unsigned int of)
{
	return count * rank / of;
}

/* Index of element i in the memory; size must divide the stride, as every power of two does. */
static inline uint64_t spread_index(const struct spread *spread, uint64_t i)
{
	unsigned int node = ((i + 1) * spread->nodes - 1) / spread->count;

	return node * (spread->stride / spread->size) + i -
	       share(spread->count, node, spread->nodes);
}

static inline void *spread_at(const struct spread *spread, uint64_t i)
{
	unsigned int node = ((i + 1) * spread->nodes - 1) / spread->count;

	return spread->base + node * spread->stride +
	       (i - share(spread->count, node, spread->nodes)) * spread->size;
}

/* ---- for workers ---- */

/*
 * Wait for all workers of all nodes. Afterwards each worker sees what the others wrote before.
 */
void worker_barrier(struct worker *worker);

/*
 * Begin and end the part whose time and remote operations are measured. The second barrier
 * of worker_begin() and the first one of worker_end() belong to this part.
 */
void worker_begin(struct worker *worker);
void worker_end(struct worker *worker);

/*
 * Report how many blocks this node has to read because other nodes wrote them. The first
 * worker of each node calls it, between worker_begin() and worker_end().
 */
void worker_expects(struct worker *worker, uint64_t blocks);

/* If error is a negative errno, end the process with a message that begins with what. */
void job_check(const char *what, int error);

/* ---- afterwards ---- */

/* Measurements of the whole job: sums over all nodes unless a comment says otherwise */
struct total {
	uint64_t ns;			/* time of node 0 */
	uint64_t barriers;		/* of the first worker of node 0, as of each other one */
	uint64_t expected;		/* blocks, from worker_expects() */
	uint64_t gets, puts, messages;	/* remote operations; messages: atomics included */
	uint64_t bytes;			/* moved by gets and puts */
	uint64_t coherence[KDSM_COHERENCE_COUNT];
};

/* Run the program from command line to output. Returns an exit status. */
int job_main(int argc, char **argv, const struct program *program);

#endif /* PROGRAMS_JOB_H */
