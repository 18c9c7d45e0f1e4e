// SPDX-License-Identifier: GPL-2.0
/*
 * Synchronisation of programs for policy release: release and acquire, and locks and barriers that
 * carry signatures. Some locks use atomic operations, or flush and refresh the blocks that they
 * guard, instead of a signature.
 */
#include "sim.h"

/* How a lock makes what one holder wrote visible to the next */
enum order {
	BY_SIGNATURE,
	BY_ATOMIC,
	BY_RANGE,
};

struct lock {
	enum order order;	/* of the last holder */
	bool writing;
	unsigned int reading;
	unsigned int *waiting;	/* number of waiting threads, by node */
	int reserved;		/* node whose threads get the lock without a release; -1: none */
	struct sim_queue queue;
	struct kdsm_signature signature;
};

static struct lock locks[LOCKS_MAX];
static struct kdsm_signature signatures[2];	/* of this phase and the one before */
static struct mutex merging;	/* of signatures that several threads use */

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

	for (i = 0; err && err != -ENOMEM && (config.deaths || config.discard) &&
	     i < config.blocks; i++)
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

void sync_release(struct thread *thread, struct kdsm_signature *signature)
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

void sync_acquire(struct thread *thread, const struct kdsm_signature *from)
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
	if (!config.costs && sim_chance(8))
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

void sync_die(struct thread *thread)
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

/* Give a hint for each block that has words which the lock guards. */
static void lock_advise(struct thread *thread, unsigned int which, enum kdsm_advice advice)
{
	unsigned int i;
	s64 block, last = -1;

	for (i = 0; i < word_count; i++) {
		block = block_of(words[i].offset >> PAGE_SHIFT);
		if (words[i].lock == (int)which && block != last)
			advise(thread->node, advice, block, block);
		last = words[i].lock == (int)which ? block : last;
	}
	thread_check();
}

static void lock_acquire(struct thread *thread, unsigned int which)
{
	const struct lock *lock = &locks[which];

	if (lock->order == BY_SIGNATURE)
		sync_acquire(thread, &lock->signature);
	else if (lock->order == BY_ATOMIC)
		thread_atomic(thread, which % config.atoms, KDSM_ATOMIC_ACQUIRE);
	else
		lock_advise(thread, which, KDSM_ADVICE_REFRESH);
	counts.refreshes += lock->order == BY_RANGE;
}

/*
 * A thread that goes on from a refresh to another order loads all words first, because releases
 * pass on only what their node has read since the refresh.
 */
static void lock_reorder(struct thread *thread, unsigned int which)
{
	/* A lost block takes its node's releases with it */
	enum order order = config.atoms && !config.deaths && !config.discard ? sim_below(3) :
									       BY_SIGNATURE;
	unsigned int i;
	u64 value;

	for (i = 0; i < word_count && locks[which].order == BY_RANGE && order != BY_RANGE; i++)
		if (words[i].lock == (int)which)
			thread_load(thread, words[i].offset, words[i].size, &value);
	locks[which].order = order;
}

void lock_take(struct thread *thread, unsigned int which, bool write)
{
	struct lock *lock = &locks[which];

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
		  which, write ? "writing" : "reading",
		  lock->reserved >= 0 ? ", by its own node" : "");
	if (lock->reserved < 0)
		lock_acquire(thread, which);
	if (sim_chance(16))
		sim_sleep(sim_below(2 * sim.delay));
}

/* As the library's kdsm_signature_merge() */
static void signature_merge(struct kdsm_signature *signature, const struct kdsm_signature *other)
{
	struct kdsm_raised raised = {};
	unsigned int i;

	/* Threads switch between reading and writing a word. Programs merge with a lock, too. */
	mutex_lock(&merging);
	kdsm_signature_raise(signature, other->floor);
	for (i = 0; i < other->count; i++)
		kdsm_signature_add(signature, &other->notices[i], &raised);
	mutex_unlock(&merging);
}

static void lock_release(struct thread *thread, unsigned int which, bool write)
{
	struct lock *lock = &locks[which];
	struct kdsm_signature *signature;

	if (write)
		lock_reorder(thread, which);
	if (lock->order == BY_ATOMIC) {
		thread_atomic(thread, which % config.atoms, KDSM_ATOMIC_RELEASE);
		return;
	}
	if (lock->order == BY_RANGE) {
		lock_advise(thread, which, KDSM_ADVICE_FLUSH);
		return;
	}
	signature = malloc(sizeof(*signature));
	sync_release(thread, signature);
	if (write && sim_chance(2))
		lock->signature = *signature;
	else
		signature_merge(&lock->signature, signature);
	free(signature);
}

void lock_drop(struct thread *thread, unsigned int which, bool write)
{
	struct lock *lock = &locks[which];

	thread_check();
	if (lock->waiting[thread->node] && sim_chance(2)) {
		/* A hand-over within the node needs no release. */
		lock->reserved = thread->node;
	} else {
		lock_release(thread, which, write);
		if (thread->dead)	/* sync_die() has dropped the lock */
			sim_exit();
		lock->reserved = -1;
	}
	sim_event(SIM_NONE, "%u drops lock %u", thread->number, which);
	lock_count(thread, lock, write, false);
	sim_wake(&lock->queue);
	sim_yield();
}

/* ---- barriers ---- */

void sync_met(void)
{
	kdsm_signature_init(&signatures[(threads_phase() + 1) % 2]);
}

void barrier_pass(struct thread *thread)
{
	struct kdsm_signature *signature = malloc(sizeof(*signature));
	unsigned int phase = threads_phase();

	sync_release(thread, signature);
	sim_yield();
	signature_merge(&signatures[phase % 2], signature);
	free(signature);
	sim_event(SIM_NONE, "%u is at barrier %u", thread->number, phase);
	threads_meet(thread);
	sync_acquire(thread, &signatures[phase % 2]);
}

void barrier_stale(struct thread *thread)
{
	sync_acquire(thread, &signatures[(threads_phase() + 1) % 2]);
}

/* ---- start and stop ---- */

void sync_start(void)
{
	unsigned int i;

	mutex_init(&merging);
	for (i = 0; i < config.locks; i++) {
		locks[i].waiting = calloc(sim.nodes, sizeof(*locks[i].waiting));
		locks[i].reserved = -1;
	}
	memset(signatures, 0, sizeof(signatures));
}

void sync_stop(void)
{
	unsigned int i;

	for (i = 0; i < LOCKS_MAX; i++)
		free(locks[i].waiting);
	memset(locks, 0, sizeof(locks));
}
