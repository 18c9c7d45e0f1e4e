/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of this directory share: workers, which are threads of one or
 * more processes on each node, memory that all of them see, and the measuring of
 * what they do with it.
 *
 * A program is the same on one machine (the local backend: workers are threads, and
 * processes if one likes) and on a cluster, where it is started on every node with
 * the same arguments. Workers are numbered over all nodes, those of a node one after
 * the other.
 *
 * What fails here ends the process with a message; the other nodes find out by
 * their time-out.
 */
#ifndef PROGRAMS_JOB_H
#define PROGRAMS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kdsm/coherent.h>
#include <linux/kdsm_netlink.h>

struct job;
struct worker;
struct total;

struct program {
	const char *name, *doc;
	/*
	 * Share out memory by job_alloc() and its like, the same on every node.
	 * Called twice: at first to learn how much it takes, when the addresses
	 * that it gets are not to be used.
	 */
	void (*layout)(struct job *job);
	/* In every process, before its workers start and after they end; may be NULL. */
	void (*open)(struct job *job);
	void (*close)(struct job *job);
	/* A worker; whether what it saw was right. */
	bool (*work)(struct worker *worker);
	/* On node 0, the result, and what the program has to say of the counters. */
	void (*print)(const struct job *job, const struct total *total);
};

/* Constant once workers run. */
struct job {
	const struct program *program;
	const char *name;		/* of the regions */
	char class;			/* 'S' or 'W' */
	unsigned int threads, processes;	/* of a node; threads: of a process */
	uint32_t block_size;		/* bytes */
	uint64_t timeout;		/* ns to wait for others */
	bool packed;			/* spreads do not begin at blocks */
	bool local;

	struct kdsm *kdsm;
	struct kdsm_region *region, *sync;
	struct kdsm_tree_barrier barrier;
	unsigned int node, nodes;
	unsigned int process;		/* on this node; 0: the one that was started */
	unsigned int per_node, workers;	/* of a node, of all nodes */
	uintptr_t base;			/* of the region; 0 when layout is called first */
	uint64_t used, sync_used;	/* bytes shared out, of the region, of a part */
	uint64_t failures, report;	/* offsets in every part of sync */
};

struct worker {
	struct job *job;
	unsigned int rank;		/* 0 to job->workers - 1 */
	bool first;			/* of its node */
	uint64_t barriers;		/* that it came to since worker_begin() */
};

/* ---- memory, from layout ---- */

/* Zeroed memory of the coherent region, at a block of its own. */
void *job_alloc(struct job *job, uint64_t bytes);
/* So many bytes of every part of the partitioned region; their offset, 64-aligned. */
uint64_t job_alloc_sync(struct job *job, uint64_t bytes);

/*
 * An array of which every worker has an equal share. What belongs to the workers of
 * one node starts at a block of its own: no block has elements of two nodes, unless
 * the job is packed.
 */
struct spread {
	char *base;
	uint64_t stride;		/* bytes from one node's to the next one's */
	uint64_t count, size;		/* elements, bytes of one */
	unsigned int nodes;
};

struct spread job_spread(struct job *job, uint64_t count, uint64_t size);

/* The first of count things that belong to one of so many; the end is that of rank + 1. */
static inline uint64_t share(uint64_t count, unsigned int rank, unsigned int of)
{
	return count * rank / of;
}

/* Where element i is, in elements; size must divide the stride, as any power of two does. */
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

/* All workers of all nodes meet, and see what the others wrote before. */
void worker_barrier(struct worker *worker);

/*
 * Between these two is what is measured: time, and the operations of all nodes, two
 * barriers of these functions' own included.
 */
void worker_begin(struct worker *worker);
void worker_end(struct worker *worker);

/*
 * Called by the first worker of a node, within the above: so many blocks that others
 * wrote have to come here.
 */
void worker_expects(struct worker *worker, uint64_t blocks);

/* If error is negative: end with a message. */
void job_check(const char *what, int error);

/* ---- afterwards ---- */

/* Sums over all nodes. */
struct total {
	uint64_t ns;			/* that node 0 took */
	uint64_t barriers;		/* that each worker came to */
	uint64_t expected;		/* blocks, of worker_expects() */
	uint64_t gets, puts, messages;	/* remote operations */
	uint64_t bytes;			/* that they moved, without those of messages */
	uint64_t coherence[KDSM_COHERENCE_COUNT];
};

/* The whole life of a program: what main() returns. */
int job_main(int argc, char **argv, const struct program *program);

#endif /* PROGRAMS_JOB_H */
