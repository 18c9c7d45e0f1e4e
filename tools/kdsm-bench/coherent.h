/* SPDX-License-Identifier: GPL-2.0 */
/* What the kinds have in common that measure coherent regions. */
#ifndef COHERENT_H
#define COHERENT_H

#include <kdsm/coherent.h>
#include "bench.h"
#include "common/counters.h"

/*
 * A coherent region of policy release beside the run's own, whose parts hold the
 * words to synchronise by.
 */
struct coherent {
	struct run run;
	struct kdsm_region *region;
	struct kdsm_tree_barrier barrier;
	volatile uint64_t *words;	/* the region */
	uint64_t size;
	uint32_t block;			/* bytes */
	uint64_t handed;		/* for the kinds: values of coherent_put() */
	struct counters before, sum;
};

/* coherent.c; those that can fail complain and give an exit status. */

/* The run and its region. It fails without a second node. */
int coherent_begin(struct coherent *coherent, const struct options *options);
/* A new region, after which, and before which, all nodes meet. */
int coherent_open(struct coherent *coherent, uint64_t size, uint32_t block);
int coherent_close(struct coherent *coherent);
void coherent_end(struct coherent *coherent);

int coherent_release(struct coherent *coherent, struct kdsm_signature *signature);
int coherent_acquire(struct coherent *coherent, const struct kdsm_signature *signature);
/* From node to node; value differs from that of the one before. */
int coherent_put(struct coherent *coherent, unsigned int to, uint64_t value,
		 const struct kdsm_signature *signature);
int coherent_get(struct coherent *coherent, uint64_t value, struct kdsm_signature *signature);
/* The barrier over all nodes that releases and acquires. */
int coherent_exchange(struct coherent *coherent);

/* Between begin and end this node's counters are added to coherent->sum. */
void counting_reset(struct coherent *coherent);
int counting_begin(struct coherent *coherent);
int counting_end(struct coherent *coherent);
double counted(const struct coherent *coherent, enum kdsm_coherence_stat which, double per);
/* Operations and messages. */
double counted_remote(const struct coherent *coherent, double per);

/* An entry of the results, with the counts; more may be added to it. */
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
