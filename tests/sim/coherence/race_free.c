// SPDX-License-Identifier: GPL-2.0
/*
 * Programs without data races, for policy release: a lock guards a word, or one thread
 * writes the word between two barriers. Words are so close together that there is false
 * sharing of blocks. Every load has one right value, which this file keeps.
 */
#include "sim.h"

struct lock {
	bool writing;
	unsigned int reading;
	unsigned int *waiting;	/* number of waiting threads, by node */
	int reserved;		/* node whose threads get the lock without a release; -1: none */
	struct sim_queue queue;
	struct kdsm_signature signature;
};

static struct lock locks[LOCKS_MAX];
static struct kdsm_signature signatures[2];	/* of this phase and the one before */
static u64 salt;

/* ---- calls that may fail ---- */

/*
 * As try_again(), for a release. A release that cannot take over a block, because a node died,
 * must have tried all others. The program goes on, so what others read where the blocks that are
 * left were written is its own fault.
 */
static bool release_again(const struct thread *thread, int err, unsigned int *tries)
{
	unsigned int node = thread->node, i;
	bool lost = false;

	for (i = 0; err && err != -ENOMEM && config.deaths && i < config.blocks; i++)
		lost |= is_unreleased(node, config.index[i]) &&
			!is_reachable(node, config.index[i]);
	if (!lost || sim_is_dead(node))
		return try_again_always(err, tries, "release");
	counts.unreachable++;
	/*
	 * Other threads of the node may have written a block since. Without memory, a release
	 * leaves a block before it takes the block over.
	 */
	for (i = 0; i < config.blocks && config.processes * config.threads == 1 &&
	     nodes[node].nomem == sim_counts.nomem; i++)
		if (is_unreleased(node, config.index[i]) && !nodes[node].tried[i])
			sim_fail(config.index[i], "a release of node %u ended with %d before this block",
				 node, err);
	for (i = 0; i < word_count; i++)
		if (words[i].node == node &&
		    is_unreleased(node, block_of(words[i].offset >> PAGE_SHIFT)))
			word_spoil(&words[i]);
	return false;
}

static void release(struct thread *thread, struct kdsm_signature *signature)
{
	struct kdsm_coherence *coherence = &nodes[thread->node].coherence;
	unsigned int tries = 0;
	int err;

	do {
		counts.releases++;
		memset(nodes[thread->node].tried, 0, config.blocks);
		nodes[thread->node].has_failed = false;
		nodes[thread->node].nomem = sim_counts.nomem;
		sim_event(SIM_NONE, "%u releases", thread->number);
		err = kdsm_coherence_release(coherence, signature);
	} while (release_again(thread, err, &tries));
	thread_check();
	sim_event(SIM_NONE, "%u has released: floor %llu, %u notices", thread->number,
		  signature->floor, signature->count);
	if (signature->floor)
		counts.floors++;
}

static void acquire(struct thread *thread, const struct kdsm_signature *from)
{
	struct kdsm_coherence *coherence = &nodes[thread->node].coherence;
	/* The module copies the signature from user memory. */
	struct kdsm_signature *signature = malloc(sizeof(*signature));
	unsigned int tries = 0;
	int err;

	*signature = *from;
	if (sim_broken == BREAK_FLOOR)
		signature->floor = 0;
	if (!kdsm_signature_sane(signature, sim.nodes, config.region_blocks))
		sim_fail(SIM_NONE, "a signature is not sane");
	/* As a program does that may only read: see kdsm_region_acquire() */
	if (sim_chance(8))
		kdsm_signature_flatten(signature);
	do {
		counts.acquires++;
		sim_event(SIM_NONE, "%u acquires: floor %llu, %u notices", thread->number,
			  signature->floor, signature->count);
		err = kdsm_coherence_acquire(coherence, signature);
	} while (try_again_always(err, &tries, "acquire"));
	sim_event(SIM_NONE, "%u has acquired", thread->number);
	free(signature);
	thread_check();
}

static void load(struct thread *thread, struct word *word)
{
	u64 value = 0, block = block_of(word->offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	int err;

	do {
		thread_check();
		err = cpu_load(thread->node, thread->process, word->offset, &value,
			       word->size);
	} while (try_again(err, &tries, block, block, "load"));
	if (!err)
		word_seen(thread, word, "loads", value);
}

static void store(struct thread *thread, struct word *word)
{
	u64 value = word_choose(word), block = block_of(word->offset >> PAGE_SHIFT);
	unsigned int tries = 0;
	int err;

	do {
		thread_check();
		err = cpu_store(thread->node, thread->process, word->offset, &value,
				word->size);
	} while (try_again(err, &tries, block, block, "store"));
	if (!err)
		word_stored(thread, word, value);
}

/* ---- locks ---- */

static bool lock_free(const struct lock *lock, const struct thread *thread, bool write)
{
	if (lock->reserved >= 0 && lock->reserved != (int)thread->node)
		return false;
	return write ? !lock->writing && !lock->reading : !lock->writing;
}

/* The thread takes or drops the lock. */
static void lock_count(struct thread *thread, struct lock *lock, bool write, bool take)
{
	unsigned int which = lock - locks;

	if (write) {
		lock->writing = take;
		thread->writes[which] = take;
	} else {
		lock->reading += take ? 1 : -1;
		thread->reads[which] = take;
	}
}

void race_free_die(struct thread *thread)
{
	unsigned int i;

	for (i = 0; i < config.locks; i++) {
		if (thread->writes[i])
			lock_count(thread, &locks[i], true, false);
		if (thread->reads[i])
			lock_count(thread, &locks[i], false, false);
		if (locks[i].reserved == (int)thread->node)
			locks[i].reserved = -1;
		locks[i].waiting[thread->node] = 0;
		sim_wake(&locks[i].queue);
	}
}

static void lock_take(struct thread *thread, struct lock *lock, bool write)
{
	lock->waiting[thread->node]++;
	sim_yield();
	while (!lock_free(lock, thread, write)) {
		sim_prepare(&lock->queue);
		sim_block(&lock->queue, U64_MAX);
		thread_check();
	}
	if (thread->dead)
		sim_exit();
	lock->waiting[thread->node]--;
	lock_count(thread, lock, write, true);
	sim_event(SIM_NONE, "%u has lock %u for %s%s", thread->number,
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

	thread_check();
	if (lock->waiting[thread->node] && sim_chance(2)) {
		/* A hand-over within the node needs no release. */
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
	sim_event(SIM_NONE, "%u drops lock %u", thread->number, (unsigned int)(lock - locks));
	lock_count(thread, lock, write, false);
	sim_wake(&lock->queue);
	sim_yield();
}

/* ---- barriers ---- */

void race_free_met(void)
{
	kdsm_signature_init(&signatures[(threads_phase() + 1) % 2]);
}

static void barrier_pass(struct thread *thread)
{
	struct kdsm_signature *signature = malloc(sizeof(*signature));
	unsigned int phase = threads_phase();

	release(thread, signature);
	sim_yield();
	kdsm_signature_merge(&signatures[phase % 2], signature);
	free(signature);
	sim_event(SIM_NONE, "%u is at barrier %u", thread->number, phase);
	threads_meet(thread);
	acquire(thread, &signatures[phase % 2]);
}

/* The thread that may write the word in this phase. thread_count: all threads may read it. */
static unsigned int phase_writer(unsigned int word)
{
	u64 h = (salt ^ word * 0x9e3779b97f4a7c15ULL ^ threads_phase() * 0xc2b2ae3d27d4eb4fULL);

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
		/* Try to find a word that the lock guards. */
		for (i = 0; i < 64; i++) {
			struct word *word = &words[sim_below(word_count)];

			if (word->lock == (int)which) {
				use(thread, word, write);
				break;
			}
		}
	}
	if (sim_chance(8) && which + 1 < config.locks)
		use_lock(thread, sim_between(which + 1, config.locks - 1));
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

/* Read a word without a lock in each of some blocks, in order, so that misses prefetch blocks. */
static void use_all(struct thread *thread)
{
	unsigned int block, end, i, writer;

	block = config.blocks > BLOCKS_FEW ? sim_below(config.blocks - BLOCKS_FEW) : 0;
	end = min(config.blocks, block + BLOCKS_FEW);
	for (; block < end; block++)
		for (i = 0; i < word_count; i++) {
			if (words[i].lock >= 0 ||
			    block_of(words[i].offset >> PAGE_SHIFT) != (s64)config.index[block])
				continue;
			writer = phase_writer(i);
			if (writer == thread->number || writer == thread_count) {
				load(thread, &words[i]);
				break;
			}
		}
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	unsigned int phase, round, i;

	for (phase = 0; phase < config.phases; phase++) {
		for (round = sim_between(config.rounds / 2, config.rounds); round; round--) {
			if (sim_chance(config.unmap))
				unmap_some(thread->node);
			if (sim_chance(config.advise))
				advise_some(thread->node);
			if (config.locks && !sim_chance(3))
				use_lock(thread, sim_below(config.locks));
			else if (sim_chance(4))
				use_all(thread);
			else
				use_phase(thread);
			if (sim_chance(50))	/* a stale signature must do no harm */
				acquire(thread, &signatures[(threads_phase() + 1) % 2]);
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

/* Whether there is a word in these 64 bytes */
static bool is_used(u64 offset)
{
	unsigned int i;

	for (i = 0; i < word_count; i++)
		if (words[i].offset / 64 == offset / 64)
			return true;
	return false;
}

static void words_make(void)
{
	unsigned int size, at;
	u64 cell;

	word_count = 0;
	while (word_count + 4 < config.words) {
		cell = config.index[sim_below(config.blocks)] * config.pages * PAGE_SIZE;
		cell += 64 * sim_below(config.pages * PAGE_SIZE / 64);
		if (is_used(cell))
			continue;
		size = 8 >> sim_below(3);
		/* Different locks guard the parts of eight bytes. */
		for (at = 0; at < 8; at += size) {
			struct word *word = &words[word_count++];
			bool locked = config.locks && !sim_chance(4);

			*word = (struct word) { .offset = cell + at, .size = size };
			word->lock = locked ? (int)sim_below(config.locks) : -1;
		}
	}
}

void race_free_start(void)
{
	unsigned int i;

	salt = sim_random();
	words_make();
	memset(locks, 0, sizeof(locks));
	for (i = 0; i < config.locks; i++) {
		locks[i].waiting = calloc(sim.nodes, sizeof(*locks[i].waiting));
		locks[i].reserved = -1;
	}
	memset(signatures, 0, sizeof(signatures));
	threads_start(thread_run);
}

/* Every node loads and stores in every block. */
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

void race_free_again(void)
{
	threads_again(thread_run_again);
}

void race_free_stop(void)
{
	unsigned int i;

	for (i = 0; i < config.locks; i++)
		free(locks[i].waiting);
}
