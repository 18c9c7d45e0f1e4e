/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator of coherence protocols: nodes, processes and threads as fibers of
 * one OS thread, under a scheduler that a seed decides.
 */
#ifndef KDSM_SIM_H
#define KDSM_SIM_H

#include <linux/types.h>

#include "coherence/internal.h"

#define SIM_NODES	16
#define SIM_PROCESSES	2
#define SIM_BLOCKS	8

/* ---- chance (main.c) ---- */

u64 sim_random(void);
/* Less than n. */
static inline unsigned int sim_below(unsigned int n)
{
	return (sim_random() >> 32) % n;
}

/* One time in n; 0: never. */
static inline bool sim_chance(unsigned int n)
{
	return n && !sim_below(n);
}

static inline unsigned int sim_between(unsigned int a, unsigned int b)
{
	return a + sim_below(b - a + 1);
}

/* ---- one run ---- */

/* What the seed chose. */
struct sim_config {
	u32 policy;
	unsigned int nodes, processes, threads;	/* processes a node, threads a process */
	unsigned int blocks, pages;		/* in use; a block */
	u64 index[SIM_BLOCKS];			/* which */
	u64 region_blocks;
	unsigned int words, locks, phases, rounds;
	unsigned int values;		/* different ones; 0: each once */
	unsigned int yield;		/* one scheduling point in so many switches */
	unsigned int preempt;		/* one in so many sleeps long */
	unsigned int delay;		/* of messages, microseconds at most */
	unsigned int late;		/* one message in so many takes much longer */
	unsigned int slow;		/* this node is slow; nodes: none is */
	unsigned int unmap;		/* one operation in so many unmaps */
	unsigned int advise;		/* one operation in so many gives a hint */
	unsigned int evict;		/* one access in so many evicts a TLB entry */
	unsigned int nomem;		/* one allocation in so many fails */
	unsigned int error;		/* one message or operation in so many fails */
	unsigned int stall;		/* one operation in so many takes minutes */
	unsigned int pause;		/* what is tried again is so many times later */
	bool down;			/* a node goes away for a while */
	bool pieces;			/* memory is in one piece */
	bool healed;			/* it was so, and is over */
};

/* Deliberate faults. */
enum sim_break {
	SIM_BREAK_NONE,
	SIM_BREAK_RTS,
	SIM_BREAK_TWIN,
	SIM_BREAK_NOTICE,
	SIM_BREAK_FLOOR,
	SIM_BREAK_DIRTY,
	SIM_BREAK_MERGE,
	SIM_BREAK_UNMAP,
	SIM_BREAK_FORGET,
	SIM_BREAK_NUMBER,
	SIM_BREAK_OLD,
	SIM_BREAK_LEASE,
	SIM_BREAK_FLUSH,
	SIM_BREAK_LATE,
	SIM_BREAK_AHEAD,
	SIM_BREAK_STAMP,
	SIM_BREAK_ORDER,
	SIM_BREAK_END,
	/* of policy strict: */
	SIM_BREAK_READER,
	SIM_BREAK_EARLY,
	SIM_BREAK_STALE,
	SIM_BREAK_SET,
	SIM_BREAK_PROTECT,
	SIM_BREAK_DEFER,
	SIM_BREAK_MAP,
	SIM_BREAK_LOCK,
	SIM_BREAK_HASTE,
	SIM_BREAK_COUNT
};

struct sim_counts {
	u64 steps, loads, stores, acquires, releases, messages, fetches, floors;
	u64 unmaps, errors, ahead, probes;
	u64 stats[KDSM_COHERENCE_COUNT];
};

extern struct sim_config sim;
extern enum sim_break sim_broken;
extern const struct kdsm_mapping_ops sim_mapping_ops;
extern struct sim_counts sim_counts;
extern bool sim_tracing;	/* keep events */
extern bool sim_verbose;	/* print them at once */
/* The seed has failed: say what, and end the process. block: -1 if none. */
void __attribute__((noreturn, format(printf, 2, 3)))
sim_fail(s64 block, const char *format, ...);
void __attribute__((format(printf, 2, 3)))
sim_note(s64 block, const char *format, ...);

/* An event, about a block or (-1) none. */
#define sim_event(block, ...) do {					\
	if (unlikely(sim_tracing))					\
		sim_note(block, __VA_ARGS__);				\
} while (0)

/* ---- fibers (../harness/scheduler.c) ---- */

void sim_spawn(unsigned int node, const char *name, u64 delay, void (*run)(void *arg),
	       void *arg);
void sim_clock_start(void);
/* Until all fibers have ended. */
void sim_run(void);
unsigned int sim_fiber_node(void);
const char *sim_fiber_name(void);

/* ---- nodes ---- */

struct sim_entry {
	bool present, writable, dirty;
};

/* Page table, and what a CPU remembers of it. */
struct sim_process {
	struct sim_entry *entries, *tlb;	/* by page of the region */
	unsigned int leaving;			/* who is unmapping some of it */
};

struct kdsm_memory {
	unsigned int node;
	const char *name;
	u64 count;		/* of pages */
	size_t place;		/* in struct sim_node */
	struct page *piece;	/* all pages are of this, or NULL: each is alone */
	struct page **pages;
};

struct kdsm_fabric {
	unsigned int node;
};

struct kdsm_region {
	unsigned int node;
};

struct sim_node {
	struct kdsm_fabric fabric;
	struct kdsm_region region;
	struct kdsm_memory frames, twins, stamps;
	struct kdsm_coherence coherence;
	struct sim_process processes[SIM_PROCESSES];
};

extern struct sim_node sim_nodes[SIM_NODES];

static inline u64 sim_pages(void)
{
	return sim.region_blocks * sim.pages;
}

static inline s64 sim_block_of(u64 page)
{
	return page / sim.pages;
}

/* node.c */
void sim_fabric_start(void);
void sim_fabric_stop(void);
/* No message is under way. */
bool sim_quiet(void);
/* From now on nothing fails. */
void sim_fabric_heal(void);

/* mapping.c: what the CPU does. -errno as the fault handler gave. */
int sim_load(unsigned int node, unsigned int process, u64 offset, void *to,
	     unsigned int length);
int sim_store(unsigned int node, unsigned int process, u64 offset, const void *from,
	      unsigned int length);
/* An atomic instruction that adds; *old is what was there. */
int sim_add(unsigned int node, unsigned int process, u64 offset, u64 add,
	    unsigned int length, u64 *old);
/* Is there an entry for a page of the block, or does a TLB remember one? */
bool sim_is_mapped(unsigned int node, u64 index);
void sim_unmap_process(unsigned int node, unsigned int process, u64 first, u64 last);
void sim_protect_process(unsigned int node, unsigned int process, u64 first, u64 last);

/* race_free.c */
void sim_program_start(void);
/* When all of it has ended, and nothing fails: has what failed left no trace? */
void sim_program_again(void);
void sim_program_stop(void);
/* Shall what gave this be tried again? What fails has to work in the end. */
bool sim_again(int err, unsigned int *tries, const char *what);
/* A process of the node unmaps some blocks, or changes their protection and back. */
void sim_unmap_some(unsigned int node);
/* It asks for something ahead of time. */
void sim_advise_some(unsigned int node);

/* racing.c: threads of a program that has data races, for policy strict */
void sim_race_start(void);
void sim_race_again(void);

/* check.c: invariants of the protocol. */
void sim_check_start(void);
void sim_check_step(void);	/* with what may be at any time */
void sim_check_quiet(void);	/* when nobody wants anything, if nothing is under way */
void sim_check_end(void);	/* when nothing runs any more */

/* break.c: by --wrap, called instead and calling the real ones. */
int __real_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
int __wrap_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
bool __real_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice);
bool __wrap_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice);
void __real_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, bool keep);
int __real_kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int node, enum kdsm_message_type type,
		    struct kdsm_wire_answer *answer);
int __wrap_kdsm_ask(struct kdsm_coherence *coherence, struct kdsm_block *block,
		    unsigned int node, enum kdsm_message_type type,
		    struct kdsm_wire_answer *answer);
void __wrap_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, bool keep);
bool __real_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       u64 wts, u64 rts);
bool __wrap_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       u64 wts, u64 rts);
void __real_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
void __wrap_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);

#endif /* KDSM_SIM_H */
