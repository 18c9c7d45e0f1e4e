/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internals of garbage collection: the threads of this process, and the boxes in which
 * members send each other words. The interface is kd_collect() in bdd.h. In the files of the
 * collection a "member" is the process of a cluster node, a "node" is a BDD node.
 *
 * Marking the live nodes, and filling the index with them, are each a sequence of steps. The
 * gang closes a step: no member begins the next one before all have ended this one. In a
 * step every member does all the work that concerns its own part, and writes words for the
 * other members into boxes. A member has one box for each destination, in its own part of
 * the operation cache, whose content a collection discards anyway. In the next step every
 * destination reads its boxes. Each member has two sets of boxes, one for odd and one for
 * even steps. A member writes to a set again two steps later. By then all destinations have
 * read the set, because all members have closed the step in between. A sequence ends with a
 * step in which no member wrote to a box or left work for itself.
 */
#ifndef KD_BDD_INTERNAL_H
#define KD_BDD_INTERNAL_H

#include <pthread.h>

#include "bdd/bdd.h"

#define KD_BUFFER	32	/* words that a thread gathers before it appends them to a box */
#define KD_FILTER	(1 << 15)	/* words of the filter of a member; a power of two */
#define KD_CHUNK	4096	/* most words that one get reads from a box */
#define KD_ENTRIES	1024	/* entries of the operation cache that a thread takes at a time */
/*
 * Entries of it that a thread moves (7 ns each) or looks at (25 ns) in about the time of one step
 * of a BDD operation, 150 ns
 */
#define KD_ENTRIES_A_STEP	8

struct kd_buffer {
	uint64_t word[KD_BUFFER];
	unsigned int count;
};

struct kd_collector;

/* A thread of the collection */
struct kd_crew {
	struct kd_collector *collector;
	struct kd_thread thread;
	struct kd_stack stack;
	uint64_t marked;		/* nodes that are not in the collector's count yet */
	unsigned int visited;		/* nodes since the thread last shared its stack */
	struct kd_buffer *out;		/* by destination part */
	uint64_t slot, end;		/* slots of data left in the thread's current block */
	uint64_t chunk[KD_CHUNK];
};

/* A collection in this process */
struct kd_collector {
	struct kdsm_bdd_store *store;
	struct kdsm_table *table;
	struct kd_gang *gang;
	struct kd_stack roots;		/* edges that the first thread has yet to follow */

	struct kd_crew *crew;
	unsigned int threads;
	int (*work)(struct kd_crew *me);	/* a thread's share of the current step */
	int error;			/* of the first thread that failed */
	unsigned int flags;		/* KD_GROW, KD_RESERVE, KD_KEEP, KD_RESULTS */
	bool keep;			/* all nodes are alive, and all results stay */
	bool results;			/* results between live nodes stay */

	uint64_t step;			/* number of the current step, from 1 */
	unsigned int source;		/* boxes that threads have begun to read in this step */
	uint64_t box_words;		/* capacity of a box, without its count */
	uint64_t *filter;		/* numbers that were posted recently */
	/* words posted, and work left over, in this step; live nodes in the own part */
	uint64_t posted, left, alive;
	uint64_t marked;		/* nodes of the own part, by all threads */
	uint64_t next;			/* next block of data or of results that a thread takes */
	uint64_t from, to;		/* entries of the operation cache that the threads move */
	char *array;			/* memory that the threads clear, and its size */
	uint64_t bytes;
	uint16_t *room;			/* free slots, by block */

	pthread_mutex_t lock;		/* protects the boxes and the fields below */
	pthread_cond_t change;
	struct kd_stack pool;		/* numbers that busy threads give to idle ones */
	unsigned int idle;		/* threads waiting for numbers, retired, or not started */
};

/* collect.c */
/* Run work on every thread. Returns 0, or the error of the first thread that failed. */
int kd_collector_run(struct kd_collector *c, int (*work)(struct kd_crew *me));
/* Run work on every thread as a step, and close it. *over: no member has work left. */
int kd_collector_step(struct kd_collector *c, int (*work)(struct kd_crew *me), bool *over);

/*
 * Post words to the member of a part. count divides KD_BUFFER. -ENOBUFS: the box is full, and
 * the caller posts the words again in the next step.
 */
int kd_post(struct kd_crew *me, unsigned int part, const uint64_t *words, unsigned int count);

/* Take a part whose box no thread reads yet. Return false if there is none left. */
bool kd_next_source(struct kd_collector *c, unsigned int *part);
/* Get the number of words that the member of a part has posted to this one. */
int kd_box_count(struct kd_crew *me, unsigned int part, uint64_t *count);
/* Get count words of this box, at most KD_CHUNK, from word "at" on, into me->chunk. */
int kd_box_get(struct kd_crew *me, unsigned int part, uint64_t at, uint64_t count);

/* collect_mark.c: mark all nodes that are reachable from the roots. */
int kd_mark(struct kd_collector *c);
/*
 * Also there, on a cluster of one node, between kd_mark() and kd_sweep(): mark results of
 * live operands, and drop the entries of the operation cache that name a node without a mark.
 */
int kd_keep_results(struct kd_collector *c);

/*
 * collect_sweep.c: kd_sweep() removes all unmarked nodes from the own part; kd_list_blocks()
 * lists the blocks with free slots; kd_fill_index() clears the index and fills it with the
 * live nodes.
 */
int kd_sweep(struct kd_collector *c);
void kd_list_blocks(struct kd_collector *c, bool reserve);
int kd_fill_index(struct kd_collector *c);
/* Also there: set memory to 0. */
int kd_clear(struct kd_collector *c, void *array, uint64_t bytes);

#endif /* KD_BDD_INTERNAL_H */
