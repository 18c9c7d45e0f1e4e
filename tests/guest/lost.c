// SPDX-License-Identifier: GPL-2.0
/*
 * lost, on every node at the same time: the last node loses its network for a while, as in
 * vanish.c, and owns blocks of coherent regions. The other nodes lose these blocks and no others,
 * discard them, and use them again. The node that comes back has no part of these regions any more.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#include <kdsm/coherent.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define PAGE		4096
#define GROUP		(512 * PAGE)	/* blocks that belong to one node at first */
#define PATIENCE	30	/* for what the others see when a node is gone, or back, in s */
#define POLICIES	2

/* Places in each node's part of the board; all but the tree's are words */
enum { BARRIER = 0, COUNT = 4096, PLACE = 8192, TREE = 32768, PART = 131072 };

static const char *const names[POLICIES] = { "release", "strict" };

static struct kdsm *kdsm;
static struct kdsm_region *board, *regions[POLICIES];
static struct kdsm_barrier barrier;
static struct kdsm_tree_barrier tree;
static unsigned int node, nodes, gone;
static sigjmp_buf back;

static void on_sigbus(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/*
 * The word of a node in one of three blocks: the node that goes owns MOVED, whose first owner is
 * node 0, and OWN, which was its own at first; node 0 owns KEPT.
 */
enum block { MOVED, KEPT, OWN, BLOCKS };

static uint64_t offset_of(enum block block)
{
	return block == OWN ? (uint64_t)gone * GROUP : block * PAGE;
}

static volatile uint64_t *word(unsigned int i, enum block block, unsigned int of)
{
	return (uint64_t *)((char *)kdsm_region_address(regions[i]) + offset_of(block)) + of;
}

/* Load the word, or store in it unless value is NULL. False: SIGBUS. */
static bool use(volatile uint64_t *at, const uint64_t *value, uint64_t *loaded)
{
	if (sigsetjmp(back, 1))
		return false;
	if (value)
		*at = *value;
	else
		*loaded = *at;
	return true;
}

static bool is_gone(int error)
{
	return error == -EIO || error == -EHOSTDOWN || error == -ETIMEDOUT;
}

/* The nodes that are left meet. */
static void meet(void)
{
	static uint64_t rounds;
	uint64_t count = 0;

	must(kdsm_faa(board, 0, COUNT, 1, &count), "kdsm_faa");
	rounds++;
	while (count < rounds * (nodes - 1)) {
		usleep(10000);
		must(kdsm_get(board, 0, COUNT, &count, sizeof(count)), "kdsm_get");
	}
}

/* The other nodes that are left see what they wrote to the region of policy release. */
static void publish(uint64_t round)
{
	static struct kdsm_signature signature, other;
	unsigned int of;

	tap_result(kdsm_release(regions[0], &signature), 0, "round %d: a release", (int)round);
	for (of = 0; of < nodes; of++)
		if (of != gone && of != node)
			must(kdsm_signature_put(board, of, PLACE + node * KDSM_SIGNATURE_PLACE,
						&signature, round), "kdsm_signature_put");
	for (of = 0; of < nodes; of++) {
		if (of == gone || of == node)
			continue;
		must(kdsm_signature_wait(board, PLACE + of * KDSM_SIGNATURE_PLACE, round,
					 60 * SECOND, &other), "kdsm_signature_wait");
		tap_result(kdsm_acquire(regions[0], &other), 0, "round %d: an acquire", (int)round);
	}
	meet();
}

/* ---- the nodes that are left ---- */

/*
 * Release writes to a lost block and to another one. As soon as this node has given up the one that
 * owned the block, the block cannot be used any more.
 */
static void release_fails(void)
{
	const uint64_t value = 100 + node;
	double start = now();
	uint64_t loaded;
	int error;

	if (!use(word(0, MOVED, node), &value, NULL) || !use(word(0, KEPT, node), &value, NULL))
		tap_bail("a copy cannot be used");
	do {
		error = kdsm_release(regions[0], NULL);
	} while (is_gone(error) && use(word(0, MOVED, node), NULL, &loaded) &&
		 now() - start < PATIENCE * slowness());
	tap_result(error, -EHOSTDOWN, "a release of writes to a lost block");
	tap_result(kdsm_release(regions[0], NULL), -EHOSTDOWN, "the next release");
}

/* How many of the blocks the node lists as lost */
static void lists(unsigned int i, unsigned int expected)
{
	uint64_t offsets[BLOCKS + 1], next = 0;
	int count = kdsm_region_lost(regions[i], offsets, BLOCKS + 1, &next);
	bool right = count == (int)expected && next == kdsm_region_size(regions[i]);

	if (right && count)
		right = offsets[0] == offset_of(MOVED) && offsets[1] == offset_of(OWN);
	tap_ok(right, "policy %s: %d blocks are listed as lost", names[i], count);
}

/* Accesses to lost blocks raise SIGBUS as soon as this node has given up the other one. */
static void loses(unsigned int i)
{
	uint64_t offsets[BLOCKS], value, next;
	double start = now();

	while (now() - start < PATIENCE * slowness() &&
	       (use(word(i, MOVED, nodes), NULL, &value) || use(word(i, OWN, nodes), NULL, &value)))
		usleep(100000);
	value = 1;
	do {
		if (use(word(i, MOVED, nodes), &value, NULL) ||
		    use(word(i, OWN, nodes), &value, NULL))
			tap_ok(false, "policy %s: a lost block can be written", names[i]);
		next = 0;
	} while (kdsm_region_lost(regions[i], offsets, BLOCKS, &next) < 2 &&
		 now() - start < PATIENCE * slowness());
	lists(i, 2);
	tap_ok(use(word(i, KEPT, gone), NULL, &value) && value == 22,
	       "policy %s: another block has %llu", names[i], (unsigned long long)value);
}

static void discards(unsigned int i)
{
	double start = now();

	tap_result(kdsm_region_discard(regions[i], 0, kdsm_region_size(regions[i])), 0,
		   "policy %s: discarding the lost blocks of the region, after %.1f s", names[i],
		   now() - start);
	lists(i, 0);
}

/* The nodes that are left use all blocks. */
static void use_again(unsigned int i)
{
	const uint64_t value = 200 + node;
	uint64_t loaded = 1;

	for (enum block block = 0; block < BLOCKS; block++)
		tap_ok(use(word(i, block, gone), NULL, &loaded) &&
		       loaded == (block == KEPT ? 22 : 0),
		       "policy %s: block %d has %llu", names[i], block,
		       (unsigned long long)loaded);
	meet();
	for (enum block block = 0; block < BLOCKS; block++)
		tap_ok(use(word(i, block, node), &value, NULL),
		       "policy %s: block %d can be written", names[i], block);
	if (i == 0)
		publish(2);
	else
		meet();
	for (enum block block = 0; block < BLOCKS; block++)
		for (unsigned int of = 0; of < nodes; of++)
			if (of != gone)
				tap_ok(use(word(i, block, of), NULL, &loaded) && loaded == 200 + of,
				       "policy %s: block %d has %llu of node %u", names[i], block,
				       (unsigned long long)loaded, of);
	meet();
}

static void survive(void)
{
	uint64_t former;

	while (!kdsm_faa(board, gone, COUNT, 1, &former))
		usleep(100000);
	release_fails();
	meet();
	for (unsigned int i = 0; i < POLICIES; i++)
		loses(i);
	meet();
	for (unsigned int i = 0; i < POLICIES; i++)
		discards(i);
	publish(1);
	for (unsigned int i = 0; i < POLICIES; i++)
		use_again(i);
	meet_at_host();
}

/* ---- the node that goes ---- */

static void vanish(void)
{
	static struct kdsm_signature empty;
	uint64_t value = 5, former;
	double start;
	int error;

	usleep(1500000);
	mute(true);
	meet_at_host();
	mute(false);
	start = now();
	while (kdsm_faa(board, 0, COUNT + 8, 1, &former) &&
	       now() - start < 2 * PATIENCE * slowness())
		usleep(200000);
	start = now();
	while (is_gone(error = kdsm_acquire(regions[0], &empty)) &&
	       now() - start < PATIENCE * slowness())
		usleep(200000);
	tap_result(error, -ESTALE, "an acquire of a node that others took for dead");
	tap_result(kdsm_release(regions[0], NULL), -ESTALE, "a release of it");
	tap_result(kdsm_region_discard(regions[0], 0, PAGE), -ESTALE, "a discard of it");
	tap_ok(!use(word(1, MOVED, node), &value, NULL),
	       "policy strict: a write to a block that it owned raises SIGBUS");
	tap_ok(!use(word(1, KEPT, node), NULL, &value),
	       "policy strict: a read of another block raises SIGBUS");
}

int main(void)
{
	struct kdsm_region_attr small = { .argsz = sizeof(small), .mode = 0600 };
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .mode = 0600 };
	uint64_t value;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	gone = nodes - 1;
	if (nodes < 3)
		tap_bail("lost needs three nodes");
	signal(SIGBUS, on_sigbus);
	remember_nodes(true);
	small.size = (uint64_t)nodes * PART;
	attr.size = (uint64_t)nodes * GROUP;
	must(kdsm_region_open(kdsm, "lost-board", &small, &board), "kdsm_region_open");
	attr.policy = KDSM_POLICY_RELEASE;
	must(kdsm_region_open(kdsm, "lost-release", &attr, &regions[0]), "kdsm_region_open");
	attr.policy = KDSM_POLICY_STRICT;
	must(kdsm_region_open(kdsm, "lost-strict", &attr, &regions[1]), "kdsm_region_open");
	kdsm_barrier_init(&barrier, board, BARRIER);
	must(kdsm_tree_barrier_init(&tree, regions[0], board, TREE, NULL), "kdsm_tree_barrier_init");
	for (unsigned int i = 0; i < POLICIES; i++) {
		if (node == gone) {
			*word(i, MOVED, gone) = 11;
			*word(i, OWN, gone) = 33;
		} else if (node == 0) {
			*word(i, KEPT, gone) = 22;
		}
	}
	must(kdsm_tree_barrier_wait(&tree, 60 * SECOND, NULL), "kdsm_tree_barrier_wait");
	/* Copies of policy release, which stay valid */
	if (!use(word(0, MOVED, gone), NULL, &value) || value != 11 ||
	    !use(word(0, KEPT, gone), NULL, &value) || value != 22)
		tap_bail("the blocks have other content");
	must(kdsm_tree_barrier_wait(&tree, 60 * SECOND, NULL), "kdsm_tree_barrier_wait");
	if (node == gone)
		vanish();
	else
		survive();
	tap_result(kdsm_barrier_wait(&barrier, 300 * SECOND), 0, "a barrier when all are back");
	for (unsigned int i = 0; i < POLICIES; i++)
		kdsm_region_close(regions[i]);
	kdsm_region_close(board);
	remember_nodes(false);
	kdsm_close(kdsm);
	return tap_end();
}
