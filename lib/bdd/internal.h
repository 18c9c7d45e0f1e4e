/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside collections: the threads of this process, and what goes from node to node.
 *
 * Steps. Marking, and putting what is alive into the index again, are each a number of
 * steps that the gang closes. In a step every node does what it can do in its own part,
 * and leaves words for the others in boxes: one for each destination, in the sender's
 * own part of the operation cache, which is going to be cleared anyway. In the next step
 * every destination gets its boxes. There are two sets of boxes, for odd and even steps:
 * a set is filled again two steps later, when all have got what was in it, because all
 * have closed the step in between. Both are over after a step in which nobody left
 * anything for others, or for itself.
 */
#ifndef KD_BDD_INTERNAL_H
#define KD_BDD_INTERNAL_H

#include <pthread.h>

#include "bdd/bdd.h"

#define KD_BUFFER	32	/* words kept before they go to a box together */
#define KD_FILTER	(1 << 15)	/* words, a power of two */
#define KD_CHUNK	4096	/* words brought from a box by one get */

struct kd_buffer {
	uint64_t word[KD_BUFFER];
	unsigned int count;
};

struct kd_collector;

struct kd_crew {
	struct kd_collector *collector;
	pthread_t thread;
	struct kd_stack stack;
	struct kd_buffer *out;		/* by part */
	uint64_t slot, end;		/* of data, left of the block begun */
	uint64_t chunk[KD_CHUNK];
};

struct kd_collector {
	struct kdsm_bdd_store *store;
	struct kdsm_table *table;
	struct kd_gang *gang;
	struct kd_stack roots;		/* edges not followed yet */

	struct kd_crew *crew;
	unsigned int threads;
	int (*work)(struct kd_crew *me);	/* a thread's share of what is on */
	int error;			/* the first one */
	unsigned int flags;		/* KD_GROW, KD_RESERVE */

	uint64_t step;			/* from 1 */
	unsigned int source;		/* nodes whose boxes have been begun */
	uint64_t box_words;		/* in a box, beside their count */
	uint64_t *filter;		/* numbers that were left for others lately */
	uint64_t posted, left, alive;	/* in this step; in all */
	uint64_t next;			/* block of data to be looked at */
	uint16_t *room;			/* by block: free slots */

	pthread_mutex_t lock;		/* of boxes, and of what follows */
	pthread_cond_t change;
	struct kd_stack pool;		/* given away by those who have much */
	unsigned int idle;		/* who want some */
};

/* collect.c */
int kd_collector_run(struct kd_collector *c, int (*work)(struct kd_crew *me));
int kd_collector_step(struct kd_collector *c, int (*work)(struct kd_crew *me), bool *over);

/*
 * Leave words, KD_BUFFER at most and a divisor of it, for a part. -ENOBUFS: its box is
 * full; they have not been left.
 */
int kd_post(struct kd_crew *me, unsigned int part, const uint64_t *words, unsigned int count);

/* A node whose box nobody looks into yet; false: none. */
bool kd_next_source(struct kd_collector *c, unsigned int *part);
/* How many words it has left for this node. */
int kd_box_count(struct kd_crew *me, unsigned int part, uint64_t *count);
/* Those from at on, KD_CHUNK at most, into me->chunk. */
int kd_box_get(struct kd_crew *me, unsigned int part, uint64_t at, uint64_t count);

/* collect_mark.c: mark all nodes that the roots lead to. */
int kd_mark(struct kd_collector *c);

/* collect_sweep.c: remove all others; fill the index, which is empty, with the rest. */
int kd_sweep(struct kd_collector *c);
void kd_list_blocks(struct kd_collector *c, bool reserve);
int kd_fill_index(struct kd_collector *c);

#endif /* KD_BDD_INTERNAL_H */
