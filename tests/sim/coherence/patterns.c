// SPDX-License-Identifier: GPL-2.0
/*
 * Access patterns, whose costs are measured: which node loads and stores which blocks, between
 * which barriers or under which lock. Those of the programs in programs/ have the sizes of class
 * S, and compute nothing. An array of which each node has a share gives each node blocks of its
 * own, as job_spread() does. A block stands for all that a node loads or stores of it.
 */
#include "sim.h"

/* Blocks of an array that each node has */
struct array {
	unsigned int first, each;
};

static unsigned int used;	/* blocks of the region that have been laid out */

/* An array that is spread over the nodes, of this many bytes in all */
static struct array spread(unsigned int bytes)
{
	unsigned int share = DIV_ROUND_UP_ULL(bytes, sim.nodes);
	struct array array = { used, max_t(unsigned int, 1, DIV_ROUND_UP_ULL(share, PAGE_SIZE)) };

	used += sim.nodes * array.each;
	return array;
}

/* Blocks that nodes share */
static struct array shared(unsigned int blocks)
{
	struct array array = { used, blocks };

	used += blocks;
	return array;
}

/* ---- accesses ---- */

static unsigned int block(struct array array, unsigned int node)
{
	return array.first + node * array.each;
}

static void load(struct thread *thread, unsigned int block)
{
	costs_load(thread, 2 * block);
}

static void store(struct thread *thread, unsigned int block)
{
	costs_store(thread, 2 * block);
}

/* The blocks that a node has */
static void load_of(struct thread *thread, struct array array, unsigned int node)
{
	unsigned int i;

	for (i = 0; i < array.each; i++)
		load(thread, block(array, node) + i);
}

static void store_own(struct thread *thread, struct array array)
{
	unsigned int i;

	for (i = 0; i < array.each; i++)
		store(thread, block(array, thread->node) + i);
}

static void barrier(struct thread *thread)
{
	costs_release(thread);
	barrier_pass(thread);
}

/* Number of repetitions that makes large clusters take about as long as small ones */
static unsigned int repetitions(void)
{
	return clamp_t(unsigned int, 128 / sim.nodes, 1, 16);
}

/* Repeat a part of a program, and measure all but the first two. */
static void repeat(struct thread *thread, const char *phase,
		   void (*run)(struct thread *thread, unsigned int number))
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		run(thread, i);
	costs_phase(thread, NULL, 0);
	for (i = 0; i < repetitions(); i++)
		run(thread, 2 + i);
	costs_phase(thread, phase, repetitions());
}

/* ---- cg: steps of the method of conjugate gradients ---- */

#define CG_ROWS		1400U
#define CG_ELEMENTS	8	/* of a random vector */

static struct array cg_p, cg_z, cg_slots;
/* Whether rows of this node have elements in columns of that one */
static bool cg_needs[KDSM_MAX_NODES][KDSM_MAX_NODES];

static void cg_layout(void)
{
	u64 state = 314159265;
	unsigned int nodes[CG_ELEMENTS], vector, i, j;

	cg_p = spread(CG_ROWS * sizeof(u64));
	cg_z = spread(CG_ROWS * sizeof(u64));
	cg_slots = spread(0);
	memset(cg_needs, 0, sizeof(cg_needs));
	for (vector = 0; vector < CG_ROWS; vector++) {
		for (i = 0; i < CG_ELEMENTS; i++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			nodes[i] = (state >> 33) % CG_ROWS * sim.nodes / CG_ROWS;
		}
		for (i = 0; i < CG_ELEMENTS; i++)
			for (j = 0; j < CG_ELEMENTS; j++)
				cg_needs[nodes[i]][nodes[j]] = true;
	}
}

/* A scalar product: every node adds the sums of all, which are in this word of their slots. */
static void cg_sum(struct thread *thread, unsigned int word)
{
	unsigned int node;

	costs_store(thread, 2 * block(cg_slots, thread->node) + word);
	barrier(thread);
	for (node = 0; node < sim.nodes; node++)
		costs_load(thread, 2 * block(cg_slots, node) + word);
}

static void cg_step(struct thread *thread, unsigned int number)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (cg_needs[thread->node][node])
			load_of(thread, cg_p, node);
	cg_sum(thread, 0);
	store_own(thread, cg_z);
	cg_sum(thread, 1);
	store_own(thread, cg_p);
	barrier(thread);
}

static void cg_run(struct thread *thread)
{
	store_own(thread, cg_p);
	barrier(thread);
	repeat(thread, "cg step", cg_step);
}

/* ---- is: rank keys by counting ---- */

#define IS_TABLE	(2048 * sizeof(u32))	/* a node's counts of all values, in bytes */

static struct array is_tables, is_ranks, is_sums;

static void is_layout(void)
{
	is_tables = spread(sim.nodes * IS_TABLE);
	is_ranks = spread(IS_TABLE);
	is_sums = spread(0);
}

static void is_iteration(struct thread *thread, unsigned int number)
{
	/* The node's share of the values begins and ends in this block of each table. */
	unsigned int share = thread->node * is_tables.each / sim.nodes, node, i;

	store_own(thread, is_tables);
	barrier(thread);
	for (node = 0; node < sim.nodes; node++)
		load(thread, block(is_tables, node) + share);
	store_own(thread, is_ranks);
	store_own(thread, is_sums);
	barrier(thread);
	for (node = 0; node < thread->node; node++)
		load(thread, block(is_sums, node));
	store_own(thread, is_ranks);
	barrier(thread);
	/* One node checks five ranks. */
	for (i = 0; thread->node == number % sim.nodes && i < 5; i++)
		load(thread, block(is_ranks, sim_below(sim.nodes)));
}

static void is_run(struct thread *thread)
{
	repeat(thread, "is iteration", is_iteration);
}

/* ---- matmul: multiply dense matrices, C = A B, by rows ---- */

#define MATMUL_BYTES	(256 * 256 * sizeof(u64))	/* of a matrix */

static struct array matmul_a, matmul_b, matmul_c, matmul_br;

static void matmul_layout(void)
{
	matmul_a = spread(MATMUL_BYTES);
	matmul_b = spread(MATMUL_BYTES);
	matmul_c = spread(MATMUL_BYTES);
	matmul_br = spread(256 * sizeof(u64));
}

static void matmul_run(struct thread *thread)
{
	unsigned int next = (thread->node + 1) % sim.nodes, row, node;

	costs_phase(thread, NULL, 0);
	store_own(thread, matmul_a);
	store_own(thread, matmul_b);
	barrier(thread);
	costs_phase(thread, "matmul fill", 1);
	for (row = 0; row < matmul_c.each; row++) {
		store(thread, block(matmul_c, thread->node) + row);
		load(thread, block(matmul_a, thread->node) + row);
		for (node = 0; node < sim.nodes; node++)
			load_of(thread, matmul_b, node);
	}
	barrier(thread);
	costs_phase(thread, "matmul product", 1);
	store_own(thread, matmul_br);
	barrier(thread);
	for (node = 0; node < sim.nodes; node++)
		load_of(thread, matmul_br, node);
	load_of(thread, matmul_a, next);
	load_of(thread, matmul_c, next);
	costs_phase(thread, "matmul check", 1);
}

/* ---- tree: nodes change a B-tree under a lock, then all read it ---- */

#define TREE_ACTIONS	8	/* in a section */
#define TREE_NOTE	24	/* bytes that an action appends to the list of actions */

static struct array tree_head, tree_upper, tree_leaves, tree_records, tree_notes;
static unsigned int tree_actions;	/* number of actions so far; the lock guards it */

static void tree_layout(void)
{
	unsigned int actions = (2 + repetitions()) * sim.nodes * TREE_ACTIONS;

	tree_head = shared(1);		/* root, numbers of records and actions */
	tree_upper = shared(1);		/* tree nodes that are no leaves */
	tree_leaves = shared(10);
	tree_records = shared(5);
	tree_notes = shared(actions * TREE_NOTE / PAGE_SIZE + 1);
	tree_actions = 0;
}

static void change(struct thread *thread, unsigned int block)
{
	load(thread, block);
	store(thread, block);
}

static void tree_section(struct thread *thread, unsigned int number)
{
	unsigned int i;

	lock_take(thread, 0, true);
	for (i = 0; i < TREE_ACTIONS; i++) {
		change(thread, tree_head.first);
		load(thread, tree_upper.first);
		change(thread, tree_leaves.first + sim_below(tree_leaves.each));
		change(thread, tree_records.first + sim_below(tree_records.each));
		store(thread, tree_notes.first + tree_actions++ * TREE_NOTE / PAGE_SIZE);
	}
	if (sim_chance(16))	/* a leaf is split */
		change(thread, tree_upper.first);
	costs_release(thread);
	lock_drop(thread, 0, true);
}

static void tree_run(struct thread *thread)
{
	repeat(thread, "tree section", tree_section);
	barrier(thread);
	load_of(thread, tree_head, 0);
	load_of(thread, tree_upper, 0);
	load_of(thread, tree_leaves, 0);
	load_of(thread, tree_records, 0);
	costs_phase(thread, "tree reading", 1);
}

/* ---- migrate: one node after the other changes a block ---- */

static struct array migrate_block;
static struct {
	unsigned int next;		/* node whose turn it is */
	struct kdsm_signature signature;	/* of the last turn */
	struct sim_queue queue;		/* nodes that wait for their turns */
} turn;

static void migrate_layout(void)
{
	migrate_block = shared(1);
	memset(&turn, 0, sizeof(turn));
}

static void migrate_turn(struct thread *thread, unsigned int number)
{
	while (turn.next != thread->node) {
		sim_prepare(&turn.queue);
		sim_block(&turn.queue, U64_MAX);
	}
	sync_acquire(thread, &turn.signature);
	change(thread, migrate_block.first);
	costs_release(thread);
	sync_release(thread, &turn.signature);
	turn.next = (turn.next + 1) % sim.nodes;
	sim_wake(&turn.queue);
}

static void migrate_run(struct thread *thread)
{
	repeat(thread, "migrate turn", migrate_turn);
}

/* ---- neighbours: exchange blocks with two other nodes, and read blocks that stay ---- */

static struct array neighbours_blocks[2], neighbours_constants;

static void neighbours_layout(void)
{
	neighbours_constants = shared(16);	/* node 0 stores these once */
	neighbours_blocks[0] = spread(0);
	neighbours_blocks[1] = spread(0);
}

static void neighbours_round(struct thread *thread, unsigned int number)
{
	struct array before = neighbours_blocks[(number + 1) % 2];

	store_own(thread, neighbours_blocks[number % 2]);
	load_of(thread, before, (thread->node + 1) % sim.nodes);
	load_of(thread, before, (thread->node + sim.nodes - 1) % sim.nodes);
	load_of(thread, neighbours_constants, 0);
	barrier(thread);
}

static void neighbours_run(struct thread *thread)
{
	if (!thread->node)
		store_own(thread, neighbours_constants);
	store_own(thread, neighbours_blocks[1]);
	barrier(thread);
	repeat(thread, "neighbours round", neighbours_round);
}

/* ---- constant: every node reads the same blocks, and writes one of its own ---- */

static struct array constant_blocks, constant_own;

static void constant_layout(void)
{
	constant_blocks = shared(64);	/* node 0 stores these once */
	constant_own = spread(0);
}

static void constant_round(struct thread *thread, unsigned int number)
{
	store_own(thread, constant_own);
	load_of(thread, constant_blocks, 0);
	barrier(thread);
}

static void constant_run(struct thread *thread)
{
	if (!thread->node)
		store_own(thread, constant_blocks);
	barrier(thread);
	repeat(thread, "constant round", constant_round);
}

/* ---- private: every node reads and writes blocks of its own only ---- */

static struct array private_blocks;

static void private_layout(void)
{
	private_blocks = shared(4 * sim.nodes);
	private_blocks.each = 4;
}

static void private_round(struct thread *thread, unsigned int number)
{
	load_of(thread, private_blocks, thread->node);
	store_own(thread, private_blocks);
	barrier(thread);
}

static void private_run(struct thread *thread)
{
	repeat(thread, "private round", private_round);
}

/* ---- the patterns ---- */

const char *const patterns[] = { "cg", "is", "matmul", "tree", "migrate", "neighbours",
				 "constant", "private", NULL };

static const struct {
	void (*layout)(void);
	void (*run)(struct thread *thread);
} functions[] = {
	{ cg_layout, cg_run },
	{ is_layout, is_run },
	{ matmul_layout, matmul_run },
	{ tree_layout, tree_run },
	{ migrate_layout, migrate_run },
	{ neighbours_layout, neighbours_run },
	{ constant_layout, constant_run },
	{ private_layout, private_run },
};

static unsigned int chosen;

unsigned int patterns_choose(const char *name)
{
	for (chosen = 0; strcmp(patterns[chosen], name); chosen++)
		;
	used = 0;
	functions[chosen].layout();
	return used;
}

void patterns_run(void *thread)
{
	functions[chosen].run(thread);
}
