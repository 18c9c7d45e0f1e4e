/* SPDX-License-Identifier: GPL-2.0 */
/* Frame of the kinds that measure coherent regions. */
#ifndef COHERENT_H
#define COHERENT_H

#include <kdsm/coherent.h>
#include "bench.h"
#include "common/counters.h"

/*
 * A coherent region of policy release. The parts of the run's partitioned region hold the words
 * that nodes synchronise by.
 */
struct coherent {
	struct run run;
	struct kdsm_region *region;
	struct kdsm_tree_barrier barrier;
	volatile uint64_t *words;	/* content of the region */
	uint64_t size;
	uint32_t block;			/* size of a block, in bytes */
	uint64_t handed;		/* last value of coherent_put(), kept by each kind */
	struct counters before, sum;
};

/* coherent.c. Functions that can fail print a message and return an exit status. */

/* Open the run and its partitioned region. Fails on a cluster of one node. */
int coherent_begin(struct coherent *coherent, const struct options *options);
/* Open and close a new coherent region. All nodes wait for each other in both. */
int coherent_open(struct coherent *coherent, uint64_t size, uint32_t block);
int coherent_close(struct coherent *coherent);
void coherent_end(struct coherent *coherent);

int coherent_release(struct coherent *coherent, struct kdsm_signature *signature);
int coherent_acquire(struct coherent *coherent, const struct kdsm_signature *signature);
/* Pass a signature to another node, and wait for one. Consecutive values must differ. */
int coherent_put(struct coherent *coherent, unsigned int to, uint64_t value,
		 const struct kdsm_signature *signature);
int coherent_get(struct coherent *coherent, uint64_t value, struct kdsm_signature *signature);
/* Release, wait for all nodes at the tree barrier, and acquire. */
int coherent_exchange(struct coherent *coherent);

/* Add this node's counters between begin and end to coherent->sum. */
void counting_reset(struct coherent *coherent);
int counting_begin(struct coherent *coherent);
int counting_end(struct coherent *coherent);
double counted(const struct coherent *coherent, enum kdsm_coherence_stat which, double per);
/* Remote operations and messages. */
double counted_remote(const struct coherent *coherent, double per);

/* Add an entry with the counts to the results. The caller may add more to the entry. */
struct json_object *coherent_result(struct coherent *coherent, const char *what,
				    uint64_t size, double per);

/* Options that depend on each other: 0, or -1 with a reason. */
int check_regions(const struct options *options, char *reason);		/* fault */
int check_ranges(const struct options *options, char *reason);		/* fence */
int check_stripes(const struct options *options, char *reason);	/* falseshare */

int bench_fault(const struct options *options);
int bench_fence(const struct options *options);
int bench_share(const struct options *options);		/* falseshare, migrate */

#endif /* COHERENT_H */
