/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulation of the coherence protocols: nodes with frames of a region, processes
 * with page tables, and threads that load and store.
 */
#ifndef KDSM_SIM_COHERENCE_H
#define KDSM_SIM_COHERENCE_H

#include "coherence/internal.h"
#include "harness/harness.h"

#define PROCESSES_MAX	2	/* of a node */
#define BLOCKS_FEW	8	/* most blocks of a seed without --blocks */
#define BLOCKS_MAX	1024	/* most blocks of a seed */
#define SEGMENTS_MAX	3	/* of the region */

/* Deliberate defects; main.c describes them. */
enum {
	BREAK_RTS = 1,
	BREAK_TWIN,
	BREAK_NOTICE,
	BREAK_FLOOR,
	BREAK_SUMMARY,
	BREAK_RAISED,
	BREAK_DIRTY,
	BREAK_MERGE,
	BREAK_UNMAP,
	BREAK_FORGET,
	BREAK_NUMBER,
	BREAK_OLD,
	BREAK_LEASE,
	BREAK_FLUSH,
	BREAK_LATE,
	BREAK_AHEAD,
	BREAK_STAMP,
	BREAK_ORDER,
	BREAK_END,
	BREAK_KEEP,
	BREAK_SKIP,
	BREAK_ORIGIN,
	BREAK_DOUBT,
	BREAK_DIRECT,
	BREAK_RACE,
	BREAK_BLAME,
	BREAK_LEARN,
	BREAK_DROP,
	BREAK_SAME,
	BREAK_ATOMIC,
	BREAK_WEAK,
	BREAK_SOON,
	BREAK_ASK,
	/* of policy strict */
	BREAK_READER,
	BREAK_EARLY,
	BREAK_STALE,
	BREAK_SET,
	BREAK_PROTECT,
	BREAK_DEFER,
	BREAK_MAP,
	BREAK_LOCK,
	BREAK_HASTE,
	BREAK_FETCH,
	/* of its queue */
	BREAK_QUEUE,
	BREAK_LINE,
	BREAK_CANCEL,
	/* of nodes that die, or are away for a while */
	BREAK_DEAD,
	BREAK_LOST,
	BREAK_CLAIM,
	BREAK_DONE,
	BREAK_EXCLUDE,
	BREAK_BLIND,
	BREAK_TIE,
	BREAK_LOAN,
	BREAK_CLOSE,		/* when a region goes */
	/* when memory is short */
	BREAK_PLACE,
	BREAK_CIRCLE,
	BREAK_BEHIND,
	/* when nodes evict blocks */
	BREAK_KEY,
	BREAK_UNREAD,
	BREAK_KEPT,
	BREAK_MEMO,
	BREAK_LINK,
	BREAK_PAST,
	/* of records and leases */
	BREAK_RECORD,
	BREAK_COVER,
	BREAK_COPIES,
	BREAK_STAY,
	/* of costs */
	BREAK_WALK,
	BREAK_COUNT
};

/* Choices of the seed for this simulation. "One in n" means never if n is 0. */
struct config {
	u32 policy;
	unsigned int processes, threads;	/* processes of a node, threads of a process */
	unsigned int blocks;			/* blocks that are used */
	u64 *index;				/* their numbers */
	u64 region_blocks;			/* blocks of the region */
	unsigned int segments;
	struct segment {
		u64 first;			/* its first block */
		unsigned int pages;		/* of each of its blocks */
	} segment[SEGMENTS_MAX];
	unsigned int words, locks, phases, rounds;
	unsigned int values;		/* values that stores choose from; 0: all differ */
	unsigned int unmap;		/* one in n rounds unmaps */
	unsigned int reclaim;		/* one in n rounds makes the kernel ask for memory */
	unsigned int advise;		/* one in n rounds gives a hint */
	unsigned int evict;		/* one in n accesses evicts a TLB entry */
	unsigned int stall;		/* one in n remote reads takes minutes */
	bool outage;			/* a node is cut off for up to 20 ms */
	bool race;			/* policy release: nodes race for a word */
	unsigned int atoms;		/* policy release: words for atomic operations */
	unsigned int limit;		/* chunks that a node may hold; 0: any number */
	unsigned int deaths;		/* nodes that die for good; some reboot */
	unsigned int discard;		/* one in n errors for a lost block discards the block */
	u64 endless;			/* programs without end run until then, in us; 0: no */
	bool costs;			/* a seed measures a pattern of accesses */
	unsigned int writers;		/* of programs without end: nodes that write */
	unsigned int fair;		/* longest wait, in times of the mean one; 0: any */
	bool litmus;			/* a seed runs a litmus test */
	bool away;			/* a node is cut off for so long that others give it up */
	bool contiguous;		/* the pages of a memory are neighbours in memory */
	bool contiguous_homes;		/* all blocks of a home are neighbours */
	bool closing;			/* the region goes from a node in the end */
	bool healed;			/* the seed injected faults, and has ended them */
};

extern struct config config;

/* Sums over all seeds of the process. */
struct counts {
	u64 loads, stores, acquires, releases, floors, atomics, refreshes;
	u64 unmaps, errors, ahead, probes, stalls, outages;
	/* of programs without end */
	u64 reads, writes, read_nodes, starved, waits, longest, unfair;
	u64 messages[KDSM_MESSAGE_TYPES];
	u64 drops, stale;	/* chunks that were freed, and reads that failed therefore */
	u64 raced;		/* races for a word that nodes reported */
	u64 deaths, reboots, given_up, untied, unreachable, spoiled, discards, outcasts;
	u64 stats[KDSM_COHERENCE_COUNT];
};

extern struct counts counts;

/* ---- nodes ---- */

struct entry {
	bool present, writable, dirty;
};

/* A process: its page table and its TLB, by page of the region */
struct process {
	struct entry *entries, *tlb;
	unsigned int leaving;		/* threads that unmap pages of the region */
};

struct kdsm_memory {
	unsigned int node;
	const char *name;
	u64 resident;
	u64 count;			/* number of pages */
	size_t place;			/* offset of this struct in struct node */
	struct page *piece;		/* array of all pages; NULL: each page is allocated alone */
	struct page **pages;
	struct chunk *chunks;
	struct sim_queue idle;		/* waits for the end of reads */
};

/* A piece of a memory that is freed as a whole */
struct chunk {
	bool here;
	u64 dropped;			/* number of the drop, of all drops; 0: never */
	unsigned int reads;		/* in flight */
};

struct kdsm_region {
	unsigned int node;
};

struct node {
	struct kdsm_region region;
	struct kdsm_memory frames, twins, stamps;
	unsigned int chunks;		/* that frames and twins have */
	u64 lacked;			/* time when a chunk was missing last; 0: never */
	struct kdsm_coherence coherence;
	struct process processes[PROCESSES_MAX];
	bool *tried;			/* by block: a release has tried to take it over */
	unsigned int atomics;		/* operations that threads wait for */
	u16 *place;			/* by block: node to ask next, see break.c */
	bool inode_gone, closed;	/* the region goes from this node, and is gone */
	unsigned int serving;		/* messages that handlers serve */
	bool has_failed;		/* a release has failed to take over a block */
	u64 nomem;			/* allocations that had failed when the release began */
};

extern struct node *nodes;

/* Number of pages of a block */
static inline unsigned int block_pages(u64 index)
{
	unsigned int i, pages = 0;

	for (i = 0; i < config.segments && config.segment[i].first <= index; i++)
		pages = config.segment[i].pages;
	return pages;
}

/* First page of a block; for index config.region_blocks, the number of pages of the region */
static inline u64 block_page(u64 index)
{
	u64 page = 0, end;
	unsigned int i;

	for (i = 0; i < config.segments && config.segment[i].first < index; i++) {
		end = i + 1 < config.segments ? min(index, config.segment[i + 1].first) : index;
		page += (end - config.segment[i].first) * config.segment[i].pages;
	}
	return page;
}

static inline u64 region_pages(void)
{
	return block_page(config.region_blocks);
}

/* Number of the block that has this page of the region */
static inline s64 block_of(u64 page)
{
	unsigned int i = config.segments - 1;

	while (page < block_page(config.segment[i].first))
		i--;
	return config.segment[i].first +
	       (page - block_page(config.segment[i].first)) / config.segment[i].pages;
}

/* First byte of the i-th of the blocks that are used */
static inline u64 used_start(unsigned int i)
{
	return block_page(config.index[i]) * PAGE_SIZE;
}

/* A random offset, a multiple of 64, in the i-th of the blocks that are used */
static inline u64 used_cell(unsigned int i)
{
	return used_start(i) + 64 * sim_below(block_pages(config.index[i]) * PAGE_SIZE / 64);
}

/* node.c: memories, start and stop */

void nodes_start(void);
void nodes_stop(void);
/* Let the region go from a node that owes a block to another node. False: no two nodes live. */
bool region_close(void);
/* Policy release: a node acquires a notice that names all blocks. False: no node lives. */
bool notice_forge(void);
/* The memory of another node that has the same id. */
struct kdsm_memory *memory_of(unsigned int node, const struct kdsm_memory *memory);
/*
 * Begin and end a read of the node's memory by another node, which knows of the first since drops.
 * False: the content has been dropped since.
 */
bool memory_read_begin(struct kdsm_memory *memory, u64 offset, unsigned int length, u64 since);
void memory_read_end(struct kdsm_memory *memory, u64 offset, unsigned int length);
/* Copy a page piece by piece, so that other fibers see a half of the copy. */
void copy_torn(void *to, const void *from);

/* serve.c: operations and messages at their targets */

void serve_operation(unsigned int from, struct kdsm_operation *op);
int serve_message(struct sim_message *message, struct kdsm_request *request);
void message_send(const struct sim_message *message);
s64 message_block(const struct sim_message *message);
s64 operation_block(const struct kdsm_operation *op);
extern const char *const message_names[];

/* mapping.c: page tables, and accesses of CPUs, which return the error of a fault, or 0 */

extern const struct kdsm_mapping_ops mapping_ops;
void mappings_start(void);
void mappings_stop(void);
int cpu_load(unsigned int node, unsigned int process, u64 offset, void *to,
	     unsigned int length);
int cpu_store(unsigned int node, unsigned int process, u64 offset, const void *from,
	      unsigned int length);
/* An atomic instruction: add, and store the value before in *old. */
int cpu_add(unsigned int node, unsigned int process, u64 offset, u64 add,
	    unsigned int length, u64 *old);
/* An atomic exchange */
int cpu_exchange(unsigned int node, unsigned int process, u64 offset, u64 value,
		 unsigned int length, u64 *old);
/* Whether a page table or a TLB of the node has an entry for a page of the block */
bool is_mapped(unsigned int node, u64 index);
/* munmap() of blocks first to last */
void process_unmap(unsigned int node, unsigned int process, u64 first, u64 last);
/* mprotect() of blocks first to last, to the protection that they have */
void process_protect(unsigned int node, unsigned int process, u64 first, u64 last);

/* load.c: parts of the load that programs of both kinds share */

void load_start(void);
/* Start fibers that use every block on every node, to show that lost messages left no harm. */
void load_again(void);
void load_stop(void);
/*
 * Whether to repeat a call about blocks first to last that returned err. Fails the seed if no
 * fault explains err, or if the fault does not end. Ends the fiber if its node has died. False
 * with an error: the node cannot reach the owner of such a block any more, because nodes died.
 */
bool try_again(int err, unsigned int *tries, u64 first, u64 last, const char *what);
/* As try_again(), for an error of a call that no block explains. */
bool try_again_always(int err, unsigned int *tries, const char *what);
void stalls_start(void);
/* A read stalls until then: calls may fail meanwhile, however often. */
void stall_until(u64 until);
/* A process of the node unmaps some blocks, or changes their protection and back. */
void unmap_some(unsigned int node);
/* The kernel of the node asks for the memory of some chunks. */
void reclaim_some(unsigned int node);
/* The node gives a hint for blocks first to last. */
void advise(unsigned int node, enum kdsm_advice advice, u64 first, u64 last);
/* The node gives a hint for some blocks. */
void advise_some(unsigned int node);

#define WORDS_MAX	(2 * BLOCKS_MAX)

/* A piece of memory that threads load and store at once */
struct word {
	u64 offset;
	unsigned int size;
	int lock;		/* race_free.c: index of the lock that guards it; -1: barriers do */
	u64 value;		/* the value that a load must return */
	unsigned int node;	/* of the last writer */
	/* race_free.c: the last writer died, or its release failed, so any value is right */
	bool spoiled;
};

#define LOCKS_MAX	12

struct thread {
	unsigned int number, node, process;
	bool meeting;		/* waits in threads_meet() */
	bool dead;		/* with its node */
	/* race_free.c: locks that the thread has */
	bool reads[LOCKS_MAX], writes[LOCKS_MAX];
};

extern struct word words[WORDS_MAX];
extern unsigned int word_count, thread_count;
extern struct thread *threads;

/* Bits of the word */
u64 word_mask(const struct word *word);
/* A value to store */
u64 word_choose(const struct word *word);
/*
 * Check what an access returned. No other fiber has run since the value was there: code between
 * two scheduling points is one step.
 */
void word_seen(const struct thread *thread, const struct word *word, const char *how, u64 value);
/* From now on any value of the word is right. */
void word_spoil(struct word *word);
void word_stored(const struct thread *thread, struct word *word, u64 value);

/* Start a fiber for each thread of each process; later start one again for each of them. */
void threads_start(void (*run)(void *thread));
void threads_again(void (*run)(void *thread));
/* Wait for all threads of living nodes. */
void threads_meet(struct thread *thread);
/* End this fiber if its node has died; wait while its node is away. */
void thread_check(void);
/* The node has died: no other thread waits for its threads. */
void threads_die(unsigned int node);
/* Times that the threads have met */
unsigned int threads_phase(void);
/*
 * Load or store size bytes, and repeat that after a fault. Returns 0, or the error if the node
 * cannot reach the owner any more.
 */
int thread_load(struct thread *thread, u64 offset, unsigned int size, u64 *value);
int thread_store(struct thread *thread, u64 offset, unsigned int size, u64 value);

/* discard.c: lost blocks that programs discard */

/* While the program runs: discard a block if it is lost. 0 or an error that may pass. */
int discard_one(u64 index);
/* All nodes discard all blocks. Then each word has one right value, and all nodes can use it. */
void discard_all(struct thread *thread);

/* sync.c: synchronisation of programs for policy release */

void sync_start(void);
void sync_stop(void);
/* Release or acquire, and repeat the call after an injected fault. */
void sync_release(struct thread *thread, struct kdsm_signature *signature);
void sync_acquire(struct thread *thread, const struct kdsm_signature *from);
/* Take or drop one of config.locks locks. */
void lock_take(struct thread *thread, unsigned int which, bool write);
void lock_drop(struct thread *thread, unsigned int which, bool write);
/* All threads release, meet, and acquire what the others released. */
void barrier_pass(struct thread *thread);
/* Acquire what was released before the last barrier: it must do no harm. */
void barrier_stale(struct thread *thread);
/* All threads have met, and none has gone on. */
void sync_met(void);
/* The node of the thread has died: others get its locks. */
void sync_die(struct thread *thread);

/* atomics.c: atomic operations, for policy release */

#define ATOMS_MAX	4

void atomics_start(void);
/* Whether there is a word for atomic operations in these 64 bytes */
bool atomics_use_cell(u64 offset);
/* Perform an operation that stores, if flags have RELEASE only, or any. */
void thread_atomic(struct thread *thread, unsigned int which, unsigned int flags);
/* Perform some operations that order nothing else. */
void atomics_some(struct thread *thread);
/* An operation has just taken effect. */
void atomic_done(struct kdsm_atomic *atomic);

/* race_free.c: programs for policy release; racing.c: for policy strict */

void race_free_start(void);
void race_free_again(void);
void racing_start(void);
void racing_again(void);

/* forms.c: litmus tests */

/* List the tests of these policies, before all seeds. */
void forms_list(bool release, bool strict);
/* Add counters of the tests; returns their number. */
unsigned int forms_counters(struct sim_counter *counters, unsigned int room);
/* Returns whether each outcome was seen that must be. */
bool forms_report(void);
void forms_choose(u64 seed);
void forms_start(void);

/* race.c: a word that all nodes race for, for policy release */

/* Choose a place for the word. is_used: whether 64 bytes of the region are in use */
void race_start(bool (*is_used)(u64 offset));
void race_stop(void);
/*
 * All threads: the first of each node stores to the word. pass is a barrier that releases and
 * acquires. Checks what the nodes report.
 */
void race_run(struct thread *thread, void (*pass)(struct thread *thread));
/* A node has taken over a block. */
void race_taken(unsigned int node, u64 index);
/* A merge has found a race: it must be that one. */
void race_found(const struct kdsm_race *found);

/* costs.c: what patterns of accesses cost, for policy release. A block has two words. */

void costs_load(struct thread *thread, unsigned int word);
void costs_store(struct thread *thread, unsigned int word);
/* The node is about to release. */
void costs_release(struct thread *thread);
/*
 * All threads: a phase ends. Print its costs, divided by the number of nodes and by units, which
 * each node has done. NULL: only the next phase is of interest.
 */
void costs_phase(struct thread *thread, const char *phase, unsigned int units);
void costs_start(void);
void costs_stop(void);

/* patterns.c: these patterns */

extern const char *const patterns[];	/* their names; the last is NULL */

/* Choose one of them. Returns how many blocks it uses. */
unsigned int patterns_choose(const char *name);
void patterns_run(void *thread);

/* unfair.c: programs without end, for policy strict */

void unfair_start(void);
void unfair_stop(void);
void unfair_report(void);

/* death.c: nodes that die, reboot, or are away */

void deaths_start(void);
void deaths_stop(void);
void message_delivered(struct sim_message *message, bool cut);
/* Whether a node gave this one up, which does not know yet */
bool is_given_up(unsigned int node);
/* A message of node by to node did not arrive: by tries to reach node, or else gives it up */
void was_missed(unsigned int by, unsigned int node);
/* Whether the node has died, or another node has excluded it from the region */
bool is_out(unsigned int node);
/* Whether that is so, and the node has heard of others that gave it up, so it can know. */
bool can_know_out(unsigned int node);
/* Changes when one of two nodes gives up the other */
u64 tie_of(unsigned int a, unsigned int b);

/* check.c: invariants of the protocols */

/*
 * Check that a signature, after a notice was added, demands at least what it and the notice
 * demanded, and more only of blocks in raised
 */
void signature_check(const struct kdsm_signature *before, const struct kdsm_notice *added,
		     const struct kdsm_signature *after, const struct kdsm_raised *raised);
/* Whether the node finds the owner of the block along links, without a node that is dead */
bool is_reachable(unsigned int node, u64 index);
/* Whether the node keeps memory for a block whose owner, or next owner, has died */
bool is_stuck(unsigned int node);
/* Whether the node has unreleased writes to a block of another owner */
bool is_unreleased(unsigned int node, u64 index);
/* How often the block had been discarded, as far as the node knows */
u64 claims_of(unsigned int node, u64 index);
/*
 * The structure of a block on a node; NULL: the node knows nothing of the block. If the table has a
 * value, the result is made from that, and is valid until the next call for this node.
 */
struct kdsm_block *known_block(unsigned int node, u64 index);
/* Whether a task of the node did not get the block for want of another node */
bool is_missed(unsigned int node, u64 index);
/* Whether no node has the block, or is being given it, when no thread uses it */
bool is_lost(u64 index);
/* The node drops copies, and need not keep them for a lease. */
void check_untied(unsigned int node);

void check_start(void);
void check_stop(void);
void check_step(void);		/* called between any two steps */
void check_idle(void);		/* called while no thread accesses memory */
void check_end(void);		/* called when nothing is in flight any more */

/* break.c: the linker's --wrap calls __wrap_f() for f(), which is __real_f(). */

int __real_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
int __wrap_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block);
bool __real_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice, struct kdsm_raised *raised);
bool __wrap_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice, struct kdsm_raised *raised);
struct kdsm_broadcast *
__real_kdsm_broadcast_begin(struct kdsm_fabric *fabric, const unsigned long *nodes,
			    enum kdsm_message_type type, const void *data, unsigned int length);
struct kdsm_broadcast *
__wrap_kdsm_broadcast_begin(struct kdsm_fabric *fabric, const unsigned long *nodes,
			    enum kdsm_message_type type, const void *data, unsigned int length);
int __real_kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses,
			      unsigned long timeout, unsigned int state);
int __wrap_kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses,
			      unsigned long timeout, unsigned int state);
int __real_kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
			enum kdsm_message_type type, const void *data, unsigned int length,
			void *reply, unsigned int *reply_length);
int __wrap_kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
			enum kdsm_message_type type, const void *data, unsigned int length,
			void *reply, unsigned int *reply_length);
int __real_kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts);
int __wrap_kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts);
int __real_kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts);
int __wrap_kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts);
void __real_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, unsigned int from, bool keep);
void __wrap_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, unsigned int from, bool keep);
bool __real_kdsm_twin_is_here(const struct kdsm_block *block, unsigned int from, u64 wts);
bool __wrap_kdsm_twin_is_here(const struct kdsm_block *block, unsigned int from, u64 wts);
bool __real_kdsm_block_in_doubt(struct kdsm_coherence *coherence, struct kdsm_block *block);
bool __wrap_kdsm_block_in_doubt(struct kdsm_coherence *coherence, struct kdsm_block *block);
void __real_kdsm_race_found(struct kdsm_coherence *coherence, const struct kdsm_race *race,
			    bool keep);
void __wrap_kdsm_race_found(struct kdsm_coherence *coherence, const struct kdsm_race *race,
			    bool keep);
void __real_kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block);
void __wrap_kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block);
void __real_kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block);
void __wrap_kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block);
void __real_kdsm_block_unpack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
			      void *entry);
void __wrap_kdsm_block_unpack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
			      void *entry);
void __real_kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool is_cached);
void __wrap_kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool is_cached);
bool __real_kdsm_word_update(atomic64_t *bytes, struct kdsm_atomic *atomic);
bool __wrap_kdsm_word_update(atomic64_t *bytes, struct kdsm_atomic *atomic);
int __real_kdsm_acquire_until(struct kdsm_coherence *coherence, u64 floor);
int __wrap_kdsm_acquire_until(struct kdsm_coherence *coherence, u64 floor);
int __real_kdsm_release_refresh(struct kdsm_coherence *coherence, u64 first, u64 last);
int __wrap_kdsm_release_refresh(struct kdsm_coherence *coherence, u64 first, u64 last);
int __real_kdsm_release_acquire(struct kdsm_coherence *coherence,
				const struct kdsm_signature *signature);
int __wrap_kdsm_release_acquire(struct kdsm_coherence *coherence,
				const struct kdsm_signature *signature);
bool __real_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int from, u64 wts, u64 rts);
bool __wrap_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int from, u64 wts, u64 rts);
void __real_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
void __wrap_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block);
void __real_kdsm_batch_post(struct kdsm_batch *batch);
void __wrap_kdsm_batch_post(struct kdsm_batch *batch);

#endif /* KDSM_SIM_COHERENCE_H */
