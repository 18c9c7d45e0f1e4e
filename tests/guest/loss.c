// SPDX-License-Identifier: GPL-2.0
/*
 * loss NODE, on every node at the same time: NODE loses its network for a while, as in
 * vanish.c, while it owns blocks of coherent regions that other nodes want. An access that
 * cannot be done raises SIGBUS with the address, a release that cannot be done returns an
 * errno, and no thread hangs. When NODE is back nothing has been lost, even where one side
 * of an exchange had seen it complete and the other had not.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#include <kdsm/kdsm.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define BLOCK		4096
#define WORDS		(BLOCK / 8)	/* of a block */
#define SIZE		(64 * BLOCK)
#define PATIENCE	80	/* for a repair when all packets arrive again, in s */
/* Limit of an access, in s: a miss may have to find two nodes unreachable in turn */
#define LIMIT		45.0
/* Limit of a wait in a queue, in s: the node before may have to time out first */
#define QUEUE_LIMIT	90.0
/*
 * Numbers of blocks: LOST is the first of 16 that NODE has written, SHARED is one that all
 * nodes write, KEPT one that only survivors use.
 */
#define LOST		16
#define SHARED		24
#define KEPT		40

static struct kdsm *kdsm;
static struct kdsm_region *region, *board, *strict;
static struct kdsm_barrier barrier;
static unsigned int node, nodes, gone;
static volatile uint64_t *words, *counters;
static struct kdsm_signature signature;
/* Locks of the region of policy release; their homes are different nodes. */
#define LOCKS		3
static struct kdsm_lock *locks[LOCKS];

static sigjmp_buf back;
static void *volatile where;

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	where = info->si_addr;
	siglongjmp(back, 1);
}

static void meet(void)
{
	must(kdsm_barrier_wait(&barrier, 300 * SECOND), "kdsm_barrier_wait");
}

static bool is_gone(int error)
{
	return error == -EIO || error == -EHOSTDOWN || error == -ETIMEDOUT;
}

/* Whether an access to a word succeeds. value is stored, or receives the loaded value. */
static bool load(volatile uint64_t *word, uint64_t *value)
{
	if (sigsetjmp(back, 1))
		return false;
	*value = *word;
	return true;
}

static bool store(volatile uint64_t *word, uint64_t value)
{
	if (sigsetjmp(back, 1))
		return false;
	*word = value;
	return true;
}

static bool increment(volatile uint64_t *word)
{
	if (sigsetjmp(back, 1))
		return false;
	__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	return true;
}

static void cannot_load(volatile uint64_t *word, const char *what)
{
	double start = now();
	uint64_t value = 0;
	bool done;

	where = NULL;
	done = load(word, &value);
	tap_ok(!done && where == word && now() - start < LIMIT * slowness(),
	       "%s: %s, the address is %s, after %.1f s", what, done ? "loaded" : "SIGBUS",
	       where == word ? "right" : "wrong", now() - start);
}

static void loads(volatile uint64_t *word, uint64_t expected, const char *what)
{
	uint64_t value = 0;
	bool done = load(word, &value);

	if (!tap_ok(done && value == expected, "%s", what))
		printf("# %s %llu, should be %llu\n", done ? "loaded" : "SIGBUS; ",
		       (unsigned long long)value, (unsigned long long)expected);
}

/* Every node leaves its signature in its own part, where the others fetch it. */
static void publish(void)
{
	must(kdsm_put(board, node, 4096, &signature, sizeof(signature)), "kdsm_put");
}

static int catch_up(unsigned int from)
{
	static struct kdsm_signature theirs;
	int error = kdsm_get(board, from, 4096, &theirs, sizeof(theirs));

	return error ?: kdsm_acquire(region, &theirs);
}

/* Each node writes its own word of a block. */
static volatile uint64_t *own_word(unsigned int block, unsigned int of)
{
	return &words[block * WORDS + of];
}

static uint64_t value_of(unsigned int of, unsigned int round)
{
	return 1000 * (of + 1) + round;
}

/*
 * NODE comes to own its blocks, a survivor those of the survivors; all nodes get a copy of
 * SHARED.
 */
static void prepare(void)
{
	unsigned int survivor = gone == 0, i;
	uint64_t value;

	if (node == gone) {
		for (i = LOST; i < LOST + 16; i++)
			*own_word(i, node) = value_of(node, 0);
		increment(&counters[0]);
		increment(&counters[WORDS]);
	} else if (node == survivor) {
		*own_word(KEPT, node) = value_of(node, 0);
		*own_word(KEPT + 1, node) = value_of(node, 0);
	}
	must(kdsm_release(region, &signature), "kdsm_release");
	publish();
	meet();
	must(catch_up(gone) ?: catch_up(survivor), "kdsm_acquire");
	loads(own_word(SHARED, gone), value_of(gone, 0), "the shared block before");
	if (node != gone && !load(own_word(KEPT, node), &value))
		tap_ok(false, "the survivors' block before");
	meet();
}

static uint64_t increments;

static void go(void)
{
	usleep(1500000);
	mute(true);
	cannot_load(own_word(KEPT + 1, 0), "a block without a network");
	loads(own_word(LOST, node), value_of(node, 0), "an own block without a network");
	*own_word(LOST, node) = value_of(node, 1);
	tap_result(kdsm_release(region, &signature), 0,
		   "releasing what it owns without a network");
	increments += increment(&counters[0]);
	meet_at_host();
	mute(false);
}

/*
 * This node has writes to a block of NODE, which it cannot release, when it hands a lock to
 * the other survivor. The next owner must not get the lock as if these writes were visible,
 * so it gets -EOWNERDEAD; and the lock must not stay with the first owner.
 */
static void pass_lock(unsigned int other)
{
	double start = now();
	uint64_t which = 0;
	int error;

	if (node < other) {
		/* Find a lock whose home is not NODE. */
		do {
			error = kdsm_lock(locks[which++]);
		} while (error && which < LOCKS);
		tap_result(error, 0, "a lock that two survivors share");
		must(kdsm_put_notify(board, other, 128, which), "kdsm_put_notify");
		must(kdsm_wait(board, 128, 0, 120 * SECOND), "kdsm_wait");
		tap_result(kdsm_unlock(locks[which - 1]), 0, "unlocking it");
	} else {
		must(kdsm_wait(board, 128, 0, 120 * SECOND), "kdsm_wait");
		must(kdsm_get(board, node, 128, &which, sizeof(which)), "kdsm_get");
		must(kdsm_put_notify(board, other, 128, which), "kdsm_put_notify");
		start = now();
		error = kdsm_lock_timed(locks[which - 1], 60 * SECOND * slowness());
		tap_ok(error == -EOWNERDEAD && now() - start > 8,
		       "getting it after writes that are not released: %s after %.1f s",
		       tap_error(error), now() - start);
		tap_result(kdsm_lock_consistent(locks[which - 1]), 0, "it is consistent");
		tap_result(kdsm_unlock(locks[which - 1]), 0, "unlocking it");
	}
}

static void survive(void)
{
	unsigned int other = 0;
	double start;
	int error;

	while (other == node || other == gone)
		other++;
	/* NODE is still reachable until an operation on it fails. */
	do {
		uint64_t former;

		error = kdsm_faa(board, gone, 0, 0, &former);
	} while (!error);
	cannot_load(own_word(LOST, 0), "a block of the node that went");
	cannot_load(&counters[WORDS], "a strict block of it");

	/* The survivors continue with each other. */
	*own_word(KEPT, node) = value_of(node, 1);
	start = now();
	tap_result(kdsm_release(region, &signature), 0, "releasing what survivors share");
	publish();
	must(kdsm_put_notify(board, other, 8 * (1 + node), 1), "kdsm_put_notify");
	must(kdsm_wait(board, 8 * (1 + other), 0, 120 * SECOND), "kdsm_wait");
	tap_result(catch_up(other), 0, "acquiring what survivors share");
	loads(own_word(KEPT, other), value_of(other, 1), "what the other survivor wrote");

	/* This node has a copy of the block, so a store succeeds, but the release fails. */
	tap_ok(store(own_word(SHARED, node), value_of(node, 2)),
	       "writing a copy of a block of the node that went");
	start = now();
	error = kdsm_release(region, &signature);
	tap_ok(is_gone(error) && now() - start < QUEUE_LIMIT * slowness(),
	       "releasing that: %s after %.1f s", tap_error(error), now() - start);
	pass_lock(other);
	start = now();
	increments += increment(&counters[0]);
	tap_ok(now() - start < QUEUE_LIMIT * slowness(),
	       "an increment in its strict block: %s after %.1f s",
	       increments ? "done" : "SIGBUS", now() - start);
	meet_at_host();
}

/* NODE is back: writes that could not be released now can be, and nothing is lost. */
static void recover(void)
{
	double start = now(), patience = PATIENCE * slowness();
	uint64_t former, sum;
	unsigned int on;
	int error = 0;

	for (on = 0; on < nodes; on++)
		while ((error = kdsm_faa(board, on, 0, 0, &former)) && now() - start < patience)
			usleep(200000);
	tap_result(error, 0, "operations on all nodes again");
	while ((error = kdsm_release(region, &signature)) && now() - start < patience)
		usleep(200000);
	tap_ok(!error, "releasing again: %s after %.1f s", tap_error(error), now() - start);
	for (on = 0; on < 20; on++)
		increments += increment(&counters[0]);
	publish();
	kdsm_faa(board, 0, 64, increments, &former);
	meet();
	for (on = 0; on < nodes; on++)
		tap_result(catch_up(on), 0, "acquiring what node %u released", on);
	loads(own_word(LOST, gone), value_of(gone, 1), "what was written during the loss");
	for (on = 0; on < nodes; on++)
		loads(own_word(SHARED, on), value_of(on, on == gone ? 0 : 2),
		      "the shared block after it");
	must(kdsm_faa(board, 0, 64, 0, &sum), "kdsm_faa");
	loads(&counters[0], sum + 1, "every increment that was made is there");
	meet();
}

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .mode = 0600, .size = SIZE };
	struct kdsm_region_attr small = { .argsz = sizeof(small), .size = 3 * 16384, .mode = 0600 };
	struct kdsm_lock_attr kind = { .argsz = sizeof(kind), .kind = KDSM_LOCK_DMCS };
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };
	unsigned int i;
	char name[32];

	sigaction(SIGBUS, &action, NULL);
	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	gone = argc > 1 ? strtoul(argv[1], NULL, 0) : nodes - 1;
	if (nodes != 3 || gone >= nodes)
		tap_bail("loss needs three nodes, and the number of one of them");
	remember_nodes(true);
	snprintf(name, sizeof(name), "loss-%u", gone);
	attr.policy = KDSM_POLICY_RELEASE;
	must(kdsm_region_open(kdsm, name, &attr, &region), "kdsm_region_open");
	attr.policy = KDSM_POLICY_STRICT;
	snprintf(name, sizeof(name), "loss-strict-%u", gone);
	must(kdsm_region_open(kdsm, name, &attr, &strict), "kdsm_region_open");
	snprintf(name, sizeof(name), "loss-board-%u", gone);
	must(kdsm_region_open(kdsm, name, &small, &board), "kdsm_region_open");
	kdsm_barrier_init(&barrier, board, 8192);
	words = kdsm_region_address(region);
	counters = kdsm_region_address(strict);
	for (i = 0; i < LOCKS; i++)
		must(kdsm_lock_create(region, NULL, i, &kind, &locks[i]), "kdsm_lock_create");
	meet();
	prepare();
	if (node == gone)
		go();
	else
		survive();
	recover();
	for (i = 0; i < LOCKS; i++)
		kdsm_lock_close(locks[i]);
	kdsm_region_close(board);
	kdsm_region_close(strict);
	kdsm_region_close(region);
	remember_nodes(false);
	kdsm_close(kdsm);
	return tap_end();
}
