// SPDX-License-Identifier: GPL-2.0
/*
 * Programs without data races: words that a lock guards, and words that one thread
 * writes between two barriers, so close together that blocks are shared falsely.
 * So there is one right value for every load, which is kept here.
 */
#include <stdio.h>

#include "sim.h"

#define WORDS_MAX	128
#define LOCKS_MAX	12
#define THREADS_MAX	(SIM_NODES * SIM_PROCESSES * 4)
#define TRIES		3

struct word {
	u64 offset;
	unsigned int size;
	int lock;		/* which guards it; -1: barriers do */
	u64 value;
};

struct lock {
	bool writing;
	unsigned int reading;
	unsigned int waiting[SIM_NODES];
	int reserved;		/* for threads of this node: not released; or -1 */
	struct sim_queue queue;
	struct kdsm_signature signature;
};

struct thread {
	unsigned int number, node, process;
	u64 rounds;
};

static struct word words[WORDS_MAX];
static struct lock locks[LOCKS_MAX];
static struct thread threads[THREADS_MAX];
static unsigned int word_count, thread_count;
static u64 last_value, salt;

static struct {
	unsigned int count, phase;
	struct sim_queue queue;
	struct kdsm_signature signatures[2];	/* of this phase and the former */
} barrier;

/* ---- calls that may fail ---- */

bool sim_again(int err, unsigned int *tries, const char *what)
{
	if (!err)
		return false;
	sim_counts.errors++;
	sim_event(-1, "%s: error %d", what, err);
	if (!(err == -ENOMEM && sim.nomem) &&
	    !((err == -EIO || err == -EHOSTDOWN) && (sim.error || sim.down)) &&
	    !(err == -ETIMEDOUT && (sim.error || sim.stall || sim.down)))
		sim_fail(-1, "%s: error %d", what, err);
	if (++*tries > 10000)
		sim_fail(-1, "%s: error %d ten thousand times", what, err);
	sim_sleep(10);
	return true;
}

static void release(struct thread *thread, struct kdsm_signature *signature)
{
	struct kdsm_coherence *coherence = &sim_nodes[thread->node].coherence;
	unsigned int tries = 0;
	int err;

	do {
		sim_counts.releases++;
		sim_event(-1, "%u releases", thread->number);
		err = kdsm_coherence_release(coherence, signature);
	} while (sim_again(err, &tries, "release"));
	sim_event(-1, "%u has released: floor %llu, %u notices", thread->number,
		  signature->floor, signature->count);
	if (signature->floor)
		sim_counts.floors++;
}

static void acquire(struct thread *thread, const struct kdsm_signature *from)
{
	struct kdsm_coherence *coherence = &sim_nodes[thread->node].coherence;
	/* A copy, as from user memory. */
	struct kdsm_signature *signature = malloc(sizeof(*signature));
	unsigned int tries = 0;
	int err;

	*signature = *from;
	if (sim_broken == SIM_BREAK_FLOOR)
		signature->floor = 0;
	if (!kdsm_signature_sane(signature, sim.nodes, sim.region_blocks))
		sim_fail(-1, "a signature that is not sane");
	do {
		sim_counts.acquires++;
		sim_event(-1, "%u acquires: floor %llu, %u notices", thread->number,
			  signature->floor, signature->count);
		err = kdsm_coherence_acquire(coherence, signature);
	} while (sim_again(err, &tries, "acquire"));
	sim_event(-1, "%u has acquired", thread->number);
	free(signature);
}

static u64 mask(const struct word *word)
{
	return word->size == 8 ? U64_MAX : (1ULL << (8 * word->size)) - 1;
}

static void load(struct thread *thread, struct word *word)
{
	s64 block = sim_block_of(word->offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	u64 value = 0;
	int err;

	do {
		err = sim_load(thread->node, thread->process, word->offset, &value,
			       word->size);
	} while (sim_again(err, &tries, "load"));
	sim_counts.loads++;
	sim_event(block, "%u loads word %u at %llx: %llu", thread->number,
		  (unsigned int)(word - words), word->offset, value);
	if (value != word->value)
		sim_fail(block, "thread %u of node %u: word %u at %llx is %llu, not %llu",
			 thread->number, thread->node, (unsigned int)(word - words),
			 word->offset, value, word->value);
}

static void store(struct thread *thread, struct word *word)
{
	unsigned int tries = 0;
	u64 value;
	int err;

	value = (sim.values ? sim_below(sim.values) : ++last_value) & mask(word);
	do {
		err = sim_store(thread->node, thread->process, word->offset, &value,
				word->size);
	} while (sim_again(err, &tries, "store"));
	sim_counts.stores++;
	sim_event(sim_block_of(word->offset >> PAGE_SHIFT), "%u stores word %u at %llx: %llu",
		  thread->number, (unsigned int)(word - words), word->offset, value);
	word->value = value;
}

/* ---- locks ---- */

static bool lock_free(const struct lock *lock, const struct thread *thread, bool write)
{
	if (lock->reserved >= 0 && lock->reserved != (int)thread->node)
		return false;
	return write ? !lock->writing && !lock->reading : !lock->writing;
}

static void lock_take(struct thread *thread, struct lock *lock, bool write)
{
	lock->waiting[thread->node]++;
	sim_yield();
	while (!lock_free(lock, thread, write)) {
		sim_prepare(&lock->queue);
		sim_block(&lock->queue, U64_MAX);
	}
	lock->waiting[thread->node]--;
	if (write)
		lock->writing = true;
	else
		lock->reading++;
	sim_event(-1, "%u has lock %u for %s%s", thread->number,
		  (unsigned int)(lock - locks), write ? "writing" : "reading",
		  lock->reserved >= 0 ? ", by its own node" : "");
	if (lock->reserved < 0)
		acquire(thread, &lock->signature);
	if (sim_chance(16))
		sim_sleep(sim_below(2 * sim.delay));
}

static void lock_drop(struct thread *thread, struct lock *lock, bool write)
{
	struct kdsm_signature *signature;

	if (lock->waiting[thread->node] && sim_chance(2)) {
		/* Passed on within the node: nothing need be released yet. */
		lock->reserved = thread->node;
	} else {
		signature = malloc(sizeof(*signature));
		release(thread, signature);
		if (write && sim_chance(2))
			lock->signature = *signature;
		else
			kdsm_signature_merge(&lock->signature, signature);
		free(signature);
		lock->reserved = -1;
	}
	sim_event(-1, "%u drops lock %u", thread->number, (unsigned int)(lock - locks));
	if (write)
		lock->writing = false;
	else
		lock->reading--;
	sim_wake(&lock->queue);
	sim_yield();
}

/* ---- barriers ---- */

static void barrier_pass(struct thread *thread)
{
	struct kdsm_signature *signature = malloc(sizeof(*signature));
	unsigned int phase = barrier.phase;

	release(thread, signature);
	sim_yield();
	kdsm_signature_merge(&barrier.signatures[phase % 2], signature);
	free(signature);
	sim_event(-1, "%u is at barrier %u", thread->number, phase);
	if (++barrier.count == thread_count) {
		sim_check_quiet();
		barrier.count = 0;
		barrier.phase++;
		kdsm_signature_init(&barrier.signatures[barrier.phase % 2]);
		sim_wake(&barrier.queue);
	} else {
		while (barrier.phase == phase) {
			sim_prepare(&barrier.queue);
			sim_block(&barrier.queue, U64_MAX);
		}
	}
	acquire(thread, &barrier.signatures[phase % 2]);
}

/* Who may write the word in this phase; thread_count: nobody, so all may read. */
static unsigned int phase_writer(unsigned int word)
{
	u64 h = (salt ^ word * 0x9e3779b97f4a7c15ULL ^ barrier.phase * 0xc2b2ae3d27d4eb4fULL);

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ULL;
	h ^= h >> 32;
	return h % 3 ? h / 3 % thread_count : thread_count;
}

/* ---- threads ---- */

static void use(struct thread *thread, struct word *word, bool write)
{
	switch (sim_below(4)) {
	case 0:
		load(thread, word);
		break;
	case 1:
		load(thread, word);
		if (write)
			store(thread, word);
		break;
	case 2:
		if (write)
			store(thread, word);
		break;
	default:
		if (write)
			store(thread, word);
		load(thread, word);
	}
}

static void use_lock(struct thread *thread, unsigned int which)
{
	bool write = !sim_chance(4);
	unsigned int i, n = sim_between(1, 4);

	lock_take(thread, &locks[which], write);
	while (n--) {
		/* One of those that it guards. */
		for (i = 0; i < 64; i++) {
			struct word *word = &words[sim_below(word_count)];

			if (word->lock == (int)which) {
				use(thread, word, write);
				break;
			}
		}
	}
	if (sim_chance(8) && which + 1 < sim.locks)
		use_lock(thread, sim_between(which + 1, sim.locks - 1));
	lock_drop(thread, &locks[which], write);
}

static void use_phase(struct thread *thread)
{
	unsigned int n = sim_between(1, 4), i, writer;

	while (n--) {
		i = sim_below(word_count);
		if (words[i].lock >= 0)
			continue;
		writer = phase_writer(i);
		if (writer == thread->number)
			use(thread, &words[i], true);
		else if (writer == thread_count)
			load(thread, &words[i]);
	}
}

/* Block by block, what may be read without a lock: a sequence, in which misses read ahead. */
static void use_all(struct thread *thread)
{
	unsigned int block, i, writer;

	for (block = 0; block < sim.blocks; block++)
		for (i = 0; i < word_count; i++) {
			if (words[i].lock >= 0 ||
			    sim_block_of(words[i].offset >> PAGE_SHIFT) != (s64)sim.index[block])
				continue;
			writer = phase_writer(i);
			if (writer == thread->number || writer == thread_count) {
				load(thread, &words[i]);
				break;
			}
		}
}

/* Some neighbours. */
static void choose_range(u64 *first, u64 *last)
{
	unsigned int i = sim_below(sim.blocks);

	*first = sim.index[i];
	*last = *first;
	while (sim_chance(2) && i + 1 < sim.blocks && sim.index[i + 1] == *last + 1) {
		i++;
		++*last;
	}
}

void sim_advise_some(unsigned int node)
{
	enum kdsm_advice advice = sim_between(KDSM_ADVICE_PREFETCH, KDSM_ADVICE_OWN);
	unsigned int tries = 0;
	u64 first, last;
	int err;

	choose_range(&first, &last);
	do {
		sim_event(first, "advice %u up to block %llu", advice, last);
		err = kdsm_coherence_advise(&sim_nodes[node].coherence, advice, first, last);
	} while (sim_again(err, &tries, "advise"));
}

void sim_unmap_some(unsigned int node)
{
	u64 first, last;

	choose_range(&first, &last);
	if (sim_chance(3))
		sim_protect_process(node, sim_below(sim.processes), first, last);
	else
		sim_unmap_process(node, sim_below(sim.processes), first, last);
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int phase, round, i;

	for (phase = 0; phase < sim.phases; phase++) {
		for (round = sim_between(sim.rounds / 2, sim.rounds); round; round--) {
			if (sim_chance(sim.unmap))
				sim_unmap_some(thread->node);
			if (sim_chance(sim.advise))
				sim_advise_some(thread->node);
			if (sim.locks && !sim_chance(3))
				use_lock(thread, sim_below(sim.locks));
			else if (sim_chance(4))
				use_all(thread);
			else
				use_phase(thread);
			if (sim_chance(50))	/* an old signature does no harm */
				acquire(thread, &barrier.signatures[(barrier.phase + 1) % 2]);
			if (sim_chance(30))
				sim_sleep(sim_below(10 * sim.delay));
		}
		barrier_pass(thread);
	}
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
	barrier_pass(thread);
}

/* ---- start and stop ---- */

static void words_make(void)
{
	unsigned int block, cell, size, at;
	bool used[SIM_BLOCKS][2 * PAGE_SIZE / 64];

	memset(used, 0, sizeof(used));
	word_count = 0;
	while (word_count + 4 < sim.words) {
		block = sim_below(sim.blocks);
		cell = sim_below(sim.pages * PAGE_SIZE / 64);
		if (used[block][cell])
			continue;
		used[block][cell] = true;
		size = 8 >> sim_below(3);
		/* The parts of eight bytes are guarded by different locks. */
		for (at = 0; at < 8; at += size) {
			struct word *word = &words[word_count++];

			word->offset = sim.index[block] * sim.pages * PAGE_SIZE + 64 * cell + at;
			word->size = size;
			word->value = 0;
			word->lock = sim.locks && !sim_chance(4) ? (int)sim_below(sim.locks) : -1;
		}
	}
}

static void processes_make(void)
{
	unsigned int node, process;

	for (node = 0; node < sim.nodes; node++)
		for (process = 0; process < sim.processes; process++) {
			struct sim_process *p = &sim_nodes[node].processes[process];

			p->entries = calloc(sim_pages(), sizeof(*p->entries));
			p->tlb = calloc(sim_pages(), sizeof(*p->tlb));
			p->leaving = 0;
		}
}

void sim_program_start(void)
{
	unsigned int node, process, i;
	char name[24];

	processes_make();
	if (sim.policy == KDSM_POLICY_STRICT) {
		sim_race_start();
		return;
	}
	last_value = 0;
	salt = sim_random();
	words_make();
	memset(locks, 0, sizeof(locks));
	for (i = 0; i < sim.locks; i++)
		locks[i].reserved = -1;
	memset(&barrier, 0, sizeof(barrier));
	thread_count = 0;
	for (node = 0; node < sim.nodes; node++)
		for (process = 0; process < sim.processes; process++)
			for (i = 0; i < sim.threads; i++) {
				threads[thread_count] = (struct thread) {
					thread_count, node, process, 0,
				};
				snprintf(name, sizeof(name), "thread %u", thread_count);
				sim_spawn(node, name, 1 + sim_below(sim.delay), thread_run,
					  &threads[thread_count++]);
			}
}

/* Every node has to come by every block. */
static void thread_run_again(void *arg)
{
	struct thread *thread = arg;
	unsigned int i;

	for (i = 0; i < word_count; i++) {
		if (i % thread_count == thread->number)
			store(thread, &words[i]);
	}
	barrier_pass(thread);
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
	barrier_pass(thread);
	for (i = 0; i < word_count; i++) {
		if ((i + 1) % thread_count == thread->number)
			store(thread, &words[i]);
	}
	barrier_pass(thread);
	for (i = 0; i < word_count; i++)
		load(thread, &words[i]);
}

/* Also of the blocks that have no words: hints have been given for them. */
static void own_all(void *arg)
{
	unsigned int node = (unsigned long)arg, tries, i;
	int err;

	for (i = 0; i < sim.blocks; i++) {
		tries = 0;
		do {
			err = kdsm_coherence_advise(&sim_nodes[node].coherence, KDSM_ADVICE_OWN,
						    sim.index[i], sim.index[i]);
		} while (sim_again(err, &tries, "advise"));
	}
}

void sim_program_again(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		sim_spawn(i, "owns all", 1, own_all, (void *)(unsigned long)i);

	if (sim.policy == KDSM_POLICY_STRICT) {
		sim_race_again();
		return;
	}
	for (i = 0; i < thread_count; i++)
		sim_spawn(threads[i].node, "again", 1, thread_run_again, &threads[i]);
}

void sim_program_stop(void)
{
	unsigned int node, process;

	for (node = 0; node < sim.nodes; node++)
		for (process = 0; process < sim.processes; process++) {
			struct sim_process *p = &sim_nodes[node].processes[process];

			free(p->entries);
			free(p->tlb);
		}
}
