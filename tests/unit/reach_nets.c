// SPDX-License-Identifier: GPL-2.0
/*
 * Searches of Petri nets whose places have several tokens: random nets against a search from
 * state to state, nets in which places must be widened during the search, tables that are too
 * small for the garbage, orders in turn, and checkpoints.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs.h"
#include "models.h"
#include "small_nets.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RANDOM_NETS	30
#else
#define RANDOM_NETS	90
#endif

static char path[64], checkpoint[64];

static void write_file(const struct net *net)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	write_net(net, file);
	assert_int_equal(fclose(file), 0);
}

static int make_names(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/kdsm-nets-%d.pnml", getpid());
	snprintf(checkpoint, sizeof(checkpoint), "/tmp/kdsm-nets-%d.checkpoint", getpid());
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(checkpoint);
	return 0;
}

enum strategy { BFS, CHAINING, SATURATION, STRATEGIES };

static void prepare_search(struct job *job, unsigned int nodes, unsigned int workers,
			   enum strategy strategy, enum kdsm_reach_order order)
{
	unsigned int i;

	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.chaining = strategy == CHAINING;
		job[i].options.saturation = strategy == SATURATION;
		job[i].options.order = order;
		job[i].options.bdd.table_bytes = 4 << 20;
		job[i].options.bdd.cache_bytes = 1 << 20;
	}
}

/* Compare the numbers of transitions and tokens. */
static void compare_numbers(const struct kdsm_reach_result *result, const struct space *space)
{
	unsigned int i, place = 0;

	assert_int_equal(mpz_get_ui(result->fired), space->fired);
	for (i = 0; i < MOST_PLACES; i++)
		place = space->tokens[i] > place ? space->tokens[i] : place;
	assert_int_equal(result->place_tokens, place);
	assert_int_equal(result->marking_tokens, most_tokens(space, -1));
	assert_int_equal(result->upper_bounds, 3);
	assert_string_equal(result->upper_bound[0].places, "p0");
	assert_int_equal(result->upper_bound[0].tokens, space->tokens[0]);
	assert_string_equal(result->upper_bound[1].places, "p0 + p2");
	assert_int_equal(result->upper_bound[1].tokens, most_tokens(space, 5));
	assert_int_equal(result->upper_bound[2].tokens, most_tokens(space, 6));
}

static void search(unsigned int nodes, unsigned int workers, enum strategy strategy,
		   enum kdsm_reach_order order, const struct space *space)
{
	static const char *const upper_bounds[] = { "p0", "p2,p0", "p1,p2" };
	struct job job[2];
	unsigned int i;

	sim_start(nodes);
	prepare_search(job, nodes, workers, strategy, order);
	for (i = 0; i < nodes; i++) {
		job[i].options.deadlocks = true;
		job[i].options.counts = true;
		job[i].options.upper_bound = upper_bounds;
		job[i].options.upper_bounds = 3;
	}
	run_well(job, nodes);
	assert_true(job[0].result.complete);
	compare_numbers(&job[0].result, space);
	assert_int_equal(mpz_get_ui(job[0].result.states), space->states);
	assert_int_equal(mpz_get_ui(job[0].result.deadlocks), space->deadlocks);
	if (strategy == BFS)
		assert_int_equal(job[0].result.levels, space->levels);
	drop(job, nodes);
	sim_stop();
}

static void random_nets(void **state)
{
	static struct space space;
	unsigned int nets = 0;
	struct net net;

	(void)state;
	srandom(1);
	while (nets < RANDOM_NETS) {
		random_net(&net);
		explore_net(&net, &space, 600);
		if (!space.whole || space.states < 5)
			continue;
		write_file(&net);
		search(1 + nets % 2, 1, nets % STRATEGIES,
		       KDSM_REACH_ORDER_AUTO + nets % (KDSM_REACH_ORDER_LAST + 1), &space);
		nets++;
	}
}

/* BDDs of which paths skip bits of a place, all its bits, or all bits of all places */
static void independent_places(void **state)
{
	static struct space space;
	unsigned int all, order;
	struct net net;

	(void)state;
	for (all = 0; all < 2; all++) {
		net = independent_net(all);
		explore_net(&net, &space, 100);
		assert_true(space.whole);
		assert_int_equal(space.states, all ? 16 : 4);
		write_file(&net);
		for (order = 0; order <= KDSM_REACH_ORDER_LAST; order++)
			search(1, 1, SATURATION, order, &space);
	}
}

/* ---- places that are widened during the search ---- */

/* Write the net of which one place must be widened several times, and explore it. */
static const struct space *begin_fuel(void)
{
	struct net net = fuel_net(100);
	static struct space space;
	struct kd_net *read;
	uint32_t unbounded;

	explore_net(&net, &space, MOST_STATES);
	assert_true(space.whole);
	assert_int_equal(space.states, 2601);
	assert_int_equal(space.tokens[1], 100);
	write_file(&net);
	read = read_net(path);
	assert_int_equal(kd_net_semiflows(read), 0);
	assert_int_equal(kd_net_walk(read, &unbounded), 0);
	assert_int_equal(unbounded, 0);
	assert_int_equal(read->place[1].bound, UINT64_MAX);
	assert_in_range(read->place[1].seen, 1, 15);	/* 5 bits at first, 7 in the end */
	kd_net_free(read);
	return &space;
}

static void widened(void **state)
{
	const struct space *space = begin_fuel();
	unsigned int nodes, strategy;

	(void)state;
	for (nodes = 1; nodes <= 2; nodes++)
		for (strategy = BFS; strategy < STRATEGIES; strategy++)
			search(nodes, nodes, strategy, KDSM_REACH_ORDER_AUTO, space);
}

/* Search to this level, or to the end, from the checkpoint if there is one. */
static void cut(unsigned int nodes, enum strategy strategy, uint64_t levels,
		struct kdsm_reach_result *result)
{
	struct job job[2];
	unsigned int i;

	sim_start(nodes);
	prepare_search(job, nodes, 1, strategy, KDSM_REACH_ORDER_FILE);
	for (i = 0; i < nodes; i++) {
		job[i].options.checkpoint = checkpoint;
		job[i].options.levels = levels;
		job[i].options.deadlocks = true;
		job[i].options.trace = strategy == BFS;
	}
	run_well(job, nodes);
	mpz_set(result->states, job[0].result.states);
	mpz_set(result->deadlocks, job[0].result.deadlocks);
	result->from_level = job[0].result.from_level;
	result->levels = job[0].result.levels;
	result->complete = job[0].result.complete;
	drop(job, nodes);
	sim_stop();
}

/*
 * Each run continues from the checkpoint of the one before, on another number of nodes. Some
 * runs widen a place, others find it wide.
 */
static void cut_and_continue(void **state)
{
	const struct space *space = begin_fuel();
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	unsigned int level, first, last;

	(void)state;
	kdsm_reach_result_init(&result);
	for (first = 0; first < 2; first++) {
		last = 0;
		for (level = 5; level < space->levels; level += 12) {
			cut(1 + (first + level) % 2, BFS, level, &result);
			assert_false(result.complete);
			assert_int_equal(result.levels, level);
			assert_int_equal(result.from_level, last);
			assert_int_equal(mpz_get_ui(result.states), space->end[level]);
			last = level;
		}
		cut(2 - first, BFS, 0, &result);
		assert_true(result.complete);
		assert_int_equal(result.from_level, last);
		assert_int_equal(result.levels, space->levels);
		assert_int_equal(mpz_get_ui(result.states), space->states);
		assert_int_equal(mpz_get_ui(result.deadlocks), space->deadlocks);
		unlink(checkpoint);
	}
	kdsm_reach_result_free(&result);
}

/* The rounds of other strategies find other states, but the end is the same. */
static void cut_other_strategies(void **state)
{
	const struct space *space = begin_fuel();
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	unsigned int nodes, strategy;
	uint64_t level;

	(void)state;
	kdsm_reach_result_init(&result);
	for (nodes = 1; nodes <= 2; nodes++)
		for (strategy = CHAINING; strategy < STRATEGIES; strategy++) {
			for (level = 1; level <= 3; level++) {
				cut(nodes, strategy, level, &result);
				assert_true(mpz_get_ui(result.states) <= space->states);
			}
			cut(3 - nodes, strategy, 0, &result);
			assert_true(result.complete);
			assert_int_equal(mpz_get_ui(result.states), space->states);
			assert_int_equal(mpz_get_ui(result.deadlocks), space->deadlocks);
			unlink(checkpoint);
		}
	kdsm_reach_result_free(&result);
}

/* ---- small tables ---- */

struct table {
	uint64_t first, most, cache;	/* in bytes */
};

static uint64_t steps;	/* of operations in the last search */
/* Bounds of the next searches: the first holds, and the second is violated; or none */
static const char *const *bounds;

/*
 * Search with saturation. Return the number of collections, or -ENOSPC if the table is too
 * small.
 */
static int saturate_in(const struct table *table, unsigned int nodes, unsigned int workers,
		       enum kdsm_reach_order order, const char *states)
{
	struct job job[SIM_NODES];
	unsigned int i;
	int r;

	sim_start(nodes);
	prepare_search(job, nodes, workers, SATURATION, order);
	for (i = 0; i < nodes; i++) {
		job[i].options.bdd.first_table_bytes = table->first;
		job[i].options.bdd.table_bytes = table->most;
		job[i].options.bdd.cache_bytes = table->cache;
		job[i].options.bound = bounds;
		job[i].options.bounds = bounds ? 2 : 0;
	}
	start(job, nodes);
	finish(job, nodes);
	for (i = 0; i < nodes; i++) {
		if (job[i].status == 0 && job[0].status == 0)
			continue;
		if (job[0].status == 0 ||
		    (job[i].status != -ENOSPC && job[i].status != -ECANCELED))
			fail_msg("node %u of %u: %d %s", i, nodes, job[i].status,
				 job[i].message.text);
	}
	r = job[0].status ? -ENOSPC : (int)job[0].result.collections.count;
	steps = job[0].result.tasks;
	if (r >= 0) {
		char *found = mpz_get_str(NULL, 10, job[0].result.states);

		assert_true(job[0].result.complete);
		assert_string_equal(found, states);
		free(found);
		assert_int_equal(job[0].result.properties, bounds ? 2 : 0);
		for (i = 0; bounds && i < 2; i++)
			assert_int_equal(job[0].result.verdict[i].violated, i);
	}
	drop(job, nodes);
	sim_stop();
	return r;
}

static const char *const kanban_states[] = { "1", "160", "4600", "58400", "454475" };

/* A table that is full many times, in the smallest of sizes that suffices */
static void full_tables(void **state)
{
	static const struct { unsigned int nodes, workers; } cluster[] = {
		{ 1, 1 }, { 1, 2 }, { 2, 1 }, { 2, 2 },
	};
	unsigned int cards, i, refused;
	int collections;

	(void)state;
	for (cards = 2; cards <= 3; cards++) {
		struct net net = kanban_net(cards);

		write_file(&net);
		for (i = 0; i < 4; i++) {
			struct table table = { .most = 1 << 12, .cache = 1 << 16 };

			for (refused = 0; ; refused++) {
				collections = saturate_in(&table, cluster[i].nodes,
							  cluster[i].workers,
							  KDSM_REACH_ORDER_FILE,
							  kanban_states[cards]);
				if (collections >= 0)
					break;
				table.most += table.most / 4;
				assert_true(table.most < 1 << 22);
			}
			printf("# %u cards, %u nodes, %u workers: %lu KiB after %u that were too small, %d collections\n",
			       cards, cluster[i].nodes, cluster[i].workers, table.most >> 10,
			       refused, collections);
			assert_true(refused > 0);
			assert_true(collections >= 1);
		}
	}
}

/* ---- several orders in turn ---- */

/*
 * Search on 1 and 2 nodes, first in one slice, which ends the search, and then in slices so
 * short that other orders are tried, too.
 */
static void in_turn(const struct table *table, const char *states)
{
	const uint64_t normal = kd_first_slice, few = 500, many = UINT64_C(1) << 40;
	unsigned int nodes, workers;
	uint64_t in_one;

	for (nodes = 1; nodes <= 2; nodes++)
		for (workers = 1; workers <= 2; workers++) {
			kd_first_slice = many;
			assert_true(saturate_in(table, nodes, workers, KDSM_REACH_ORDER_AUTO,
						states) >= 0);
			in_one = steps;
			kd_first_slice = few;
			assert_true(saturate_in(table, nodes, workers, KDSM_REACH_ORDER_AUTO,
						states) >= 0);
			/* several workers need different numbers of steps each time */
			if (nodes == 1 && workers == 1)
				assert_int_not_equal(steps, in_one);
		}
	kd_first_slice = normal;
}

/* Collections take place when attempts wait, because the table begins small. */
static void orders_in_turn(void **state)
{
	const struct table tables[] = {
		{ .most = 16 << 20, .cache = 1 << 20 },
		{ .first = 1 << 12, .most = 16 << 20, .cache = 1 << 16 },
	};
	unsigned int cards, t;

	(void)state;
	for (t = 0; t < 2; t++) {
		for (cards = 2; cards <= 4; cards++) {
			struct net net = kanban_net(cards);

			write_file(&net);
			in_turn(&tables[t], kanban_states[cards]);
		}
	}
}

/* Attempts widen places, each those of its own encoding, and check bounds in it. */
static void wide_in_turn(void **state)
{
	const struct table table = { .first = 1 << 12, .most = 16 << 20, .cache = 1 << 16 };
	static const char *const of_fuel[] = { "p1=100", "p1=99" };

	(void)state;
	begin_fuel();
	bounds = of_fuel;
	in_turn(&table, "2601");
	bounds = NULL;
}

/*
 * Pairs of places that share a token. All first places of pairs are in front of all second
 * ones, so the orders of the file need more than 3 * 2^PAIRS BDD nodes, and others a few.
 */
#define PAIRS	10

/* With a hub, every transition needs the token of the first place, and puts it back. */
static void write_pairs(unsigned int pairs, bool hub)
{
	FILE *file = fopen(path, "w");
	unsigned int i;

	assert_non_null(file);
	fprintf(file, "<pnml><net id='n' type='ptnet'>\n");
	if (hub)
		fprintf(file,
			"<place id='hub'><initialMarking><text>1</text></initialMarking></place>\n");
	for (i = 0; i < 2 * pairs; i++)
		fprintf(file,
			"<place id='p%u'><initialMarking><text>%d</text></initialMarking></place>\n",
			i, i < pairs);
	for (i = 0; i < pairs; i++)
		fprintf(file,
			"<transition id='t%u'/><arc source='p%u' target='t%u'/><arc source='t%u' target='p%u'/>\n"
			"<transition id='u%u'/><arc source='p%u' target='u%u'/><arc source='u%u' target='p%u'/>\n",
			i, i, i, i, i + pairs, i, i + pairs, i, i, i);
	for (i = 0; hub && i < pairs; i++)
		fprintf(file,
			"<arc source='hub' target='t%u'/><arc source='t%u' target='hub'/>\n"
			"<arc source='hub' target='u%u'/><arc source='u%u' target='hub'/>\n",
			i, i, i, i);
	fprintf(file, "</net></pnml>\n");
	fclose(file);
}

/* In a table with room for good orders only, attempts lose their states, or are given up. */
static void full_in_turn(void **state)
{
	const struct table table = { .most = 1 << 14, .cache = 1 << 16 };
	const uint64_t normal = kd_first_slice;
	unsigned int nodes;
	char states[12];

	(void)state;
	write_pairs(PAIRS, false);
	snprintf(states, sizeof(states), "%u", 1u << PAIRS);
	for (nodes = 1; nodes <= 2; nodes++) {
		assert_int_equal(saturate_in(&table, nodes, 1, KDSM_REACH_ORDER_FILE, states),
				 -ENOSPC);
		for (kd_first_slice = 500; kd_first_slice < 1000000; kd_first_slice *= 3)
			assert_true(saturate_in(&table, nodes, 1, KDSM_REACH_ORDER_AUTO,
						states) >= 0);
	}
	kd_first_slice = normal;
}

/* ---- files of states ---- */

/* Search, and save the states to the file. Return the order of the result. */
static enum kdsm_reach_order search_and_save(const char *file, unsigned int nodes,
					     enum kdsm_reach_order order)
{
	struct kdsm_reach_result *result;
	struct job job[SIM_NODES];

	sim_start(nodes);
	prepare_search(job, nodes, 1, SATURATION, order);
	job[0].options.save = file;
	run_well(job, nodes);
	result = &job[0].result;
	assert_int_equal(mpz_get_ui(result->states), 4600);
	order = result->order;
	drop(job, nodes);
	sim_stop();
	return order;
}

static void expect_same(const char *one, const char *other)
{
	FILE *a = fopen(one, "r"), *b = fopen(other, "r");
	int byte;

	assert_non_null(a);
	assert_non_null(b);
	do {
		byte = fgetc(a);
		assert_int_equal(byte, fgetc(b));
	} while (byte != EOF);
	fclose(a);
	fclose(b);
}

/* All states are in the set of the file, which belongs to this order and fits no other one. */
static void check_saved(const char *file, enum kdsm_reach_order order)
{
	struct job job;
	bool fits;

	/* two nodes may end in any order, also in the file's */
	for (fits = order == KDSM_REACH_ORDER_FILE; ; fits = true) {
		sim_start(1);
		prepare_search(&job, 1, 1, SATURATION, fits ? order : KDSM_REACH_ORDER_FILE);
		job.options.invariant = &file;
		job.options.invariants = 1;
		start(&job, 1);
		finish(&job, 1);
		if (fits)
			break;
		assert_int_equal(job.status, -EINVAL);
		assert_non_null(strstr(job.message.text, "in another order of the places"));
		drop(&job, 1);
		sim_stop();
	}
	assert_int_equal(job.status, 0);
	assert_false(job.result.verdict[0].violated);
	drop(&job, 1);
	sim_stop();
}

/* The variables of all encodings have those of the only one in files, and come back. */
static void file_variables(void **state)
{
	enum { PLACES = 6000, SHARES = 5 };	/* so many places have less room if they share */
	struct kd_marking *only, *m;
	struct kd_renaming to, from;
	unsigned int share, place, b;
	static uint32_t order[PLACES];
	uint32_t v, own;

	(void)state;
	for (place = 0; place < PLACES; place++)
		order[place] = (place + 7) % PLACES;
	assert_int_equal(kd_marking_new(&only, PLACES, order, 0, 1), 0);
	for (share = 0; share < SHARES; share++) {
		assert_int_equal(kd_marking_new(&m, PLACES, order, share, SHARES), 0);
		assert_true(m->room < only->room);
		kd_marking_to_file(m, &to);
		kd_marking_from_file(m, &from);
		for (place = 0; place < PLACES; place++)
			for (b = 0; b < only->room; b++) {
				v = kd_marking_variable(only, place, b);
				if (b >= m->room) {
					assert_int_equal(kd_renamed(&from, v), KD_NO_VARIABLE);
					continue;
				}
				own = kd_marking_variable(m, place, b);
				assert_int_equal(kd_renamed(&from, v), own);
				assert_int_equal(kd_renamed(&to, own), v);
			}
		kd_marking_free(m);
	}
	kd_marking_free(only);
}

/* A search that ends in another order than the first one saves what a search in that order does. */
static void saved_in_turn(void **state)
{
	const uint64_t normal = kd_first_slice;
	const struct net cards = kanban_net(2);
	enum kdsm_reach_order order;
	unsigned int nodes;
	struct kd_net *net;
	char alone[80];

	(void)state;
	snprintf(alone, sizeof(alone), "%s.alone", checkpoint);
	write_file(&cards);
	net = read_net(path);
	assert_int_equal(kd_net_orders(net), 0);
	for (nodes = 1; nodes <= 2; nodes++) {
		kd_first_slice = 20;
		do {
			order = search_and_save(checkpoint, nodes, KDSM_REACH_ORDER_AUTO);
			kd_first_slice += kd_first_slice / 4;
			assert_true(kd_first_slice < normal);
		} while (order == net->best[0]);
		assert_int_equal(search_and_save(alone, nodes, order), order);
		expect_same(checkpoint, alone);
		check_saved(checkpoint, order);
	}
	kd_first_slice = normal;
	kd_net_free(net);
	unlink(alone);
}

/* ---- an order from a file ---- */

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void expect_text(const char *name, const char *text)
{
	char there[64] = "";
	FILE *file = fopen(name, "r");

	assert_non_null(file);
	fread(there, 1, sizeof(there) - 1, file);
	fclose(file);
	assert_string_equal(there, text);
}

/* The places have several bits, and get more in the search. */
static void order_file(void **state)
{
	unsigned int nodes, strategy, i;
	char saved[80];
	struct job job[2];

	(void)state;
	begin_fuel();
	snprintf(saved, sizeof(saved), "%s.saved", checkpoint);
	write_text(checkpoint, "p1\r\n\np2\np0");
	for (nodes = 1; nodes <= 2; nodes++)
		for (strategy = BFS; strategy < STRATEGIES; strategy++) {
			sim_start(nodes);
			prepare_search(job, nodes, 1, strategy, KDSM_REACH_ORDER_FILE);
			for (i = 0; i < nodes; i++)
				job[i].options.order_file = checkpoint;
			job[0].options.save_order = saved;
			run_well(job, nodes);
			assert_int_equal(mpz_get_ui(job[0].result.states), 2601);
			assert_int_equal(job[0].result.order, KDSM_REACH_ORDER_GIVEN);
			assert_int_equal(job[0].result.orders, 1);
			expect_text(saved, "p1\np2\np0\n");
			drop(job, nodes);
			sim_stop();
		}
	unlink(saved);
}

/*
 * Nodes with different options for the order refuse each other, even if they read the same net in
 * the same order, and nodes with different files.
 */
static void other_orders(void **state)
{
	const enum kdsm_reach_order second[] = {
		KDSM_REACH_ORDER_REVERSED, KDSM_REACH_ORDER_AUTO, KDSM_REACH_ORDER_FILE,
	};
	const struct net twins = { .places = 2 };
	struct job job[2];
	unsigned int i;

	(void)state;
	write_file(&twins);
	write_text(checkpoint, "p1\np0\n");
	for (i = 0; i < 3; i++) {
		sim_start(2);
		prepare_search(job, 2, 1, SATURATION, KDSM_REACH_ORDER_FILE);
		job[1].options.order = second[i];
		job[1].options.order_file = second[i] == KDSM_REACH_ORDER_FILE ? checkpoint : NULL;
		start(job, 2);
		finish(job, 2);
		assert_true(job[0].status == -EPROTO || job[1].status == -EPROTO);
		drop(job, 2);
		sim_stop();
	}
}

/* ---- checkpoints within a round ---- */

#define MANY_PAIRS	13	/* with a hub: one round of much work */

static void prepare_hub(struct job *job, unsigned int nodes)
{
	static const char *const bounds[] = { "p0=0", "p0=1" };
	unsigned int i;

	prepare_search(job, nodes, 1, SATURATION, KDSM_REACH_ORDER_FILE);
	for (i = 0; i < nodes; i++) {
		job[i].options.bdd.table_bytes = 64 << 20;
		job[i].options.bdd.cache_bytes = 8 << 20;
		job[i].options.checkpoint = checkpoint;
		job[i].options.bound = bounds;
		job[i].options.bounds = 2;
	}
}

/* Kill the process as soon as there is a checkpoint. */
static void crash(void *context, const struct kdsm_reach_progress *progress)
{
	(void)context;
	(void)progress;
	if (access(checkpoint, F_OK) == 0)
		kill(getpid(), SIGKILL);
}

static void search_and_crash(unsigned int nodes)
{
	struct job job[SIM_NODES];

	sim_start(nodes);
	prepare_hub(job, nodes);
	job[0].options.progress = crash;
	job[0].options.progress_interval = 1000000;
	start(job, nodes);
	finish(job, nodes);
	_exit(1);
}

/*
 * The only round of a search writes checkpoints, from which another search continues, with
 * pauses for more of them.
 */
static void within_a_round(void **state)
{
	const uint64_t normal = kd_least_pause;
	struct job job[SIM_NODES];
	unsigned int nodes;
	int status;
	pid_t pid;

	(void)state;
	write_pairs(MANY_PAIRS, true);
	for (nodes = 1; nodes <= 3; nodes++) {
		kd_least_pause = 1000000;
		pid = fork();
		if (pid == 0)
			search_and_crash(nodes);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);

		/* Few pauses: each of them repeats some work. */
		kd_least_pause = 200000000;
		sim_start(4 - nodes);
		prepare_hub(job, 4 - nodes);
		run_well(job, 4 - nodes);
		assert_true(job[0].result.before > 0);
		assert_int_equal(job[0].result.from_level, 0);
		assert_true(job[0].result.complete);
		assert_int_equal(job[0].result.levels, 1);
		assert_int_equal(mpz_get_ui(job[0].result.states), 1 << MANY_PAIRS);
		assert_true(job[0].result.verdict[0].violated);
		assert_false(job[0].result.verdict[1].violated);
		drop(job, 4 - nodes);
		sim_stop();
		unlink(checkpoint);
	}
	kd_least_pause = normal;
}

/* ---- checkpoints of several orders ---- */

static void prepare_auto(struct job *job, unsigned int nodes, const char *const *bound)
{
	unsigned int i;

	prepare_search(job, nodes, 1, SATURATION, KDSM_REACH_ORDER_AUTO);
	for (i = 0; i < nodes; i++) {
		job[i].options.bdd.table_bytes = 64 << 20;
		job[i].options.bdd.cache_bytes = 8 << 20;
		job[i].options.bound = bound;
		job[i].options.bounds = bound ? 2 : 0;
	}
	job[0].options.checkpoint = checkpoint;
}

/* Let a search end in another order than the first one, and return its order. */
static enum kdsm_reach_order end_in_other_order(void)
{
	static const char *const bound[] = { "p0=0", "p0=1" };
	const uint64_t normal = kd_first_slice;
	struct kd_net *net = read_net(path);
	enum kdsm_reach_order order;
	struct job job;

	assert_int_equal(kd_net_orders(net), 0);
	kd_first_slice = 20;
	do {
		unlink(checkpoint);
		sim_start(1);
		prepare_auto(&job, 1, bound);
		run_well(&job, 1);
		assert_true(job.result.complete);
		order = job.result.order;
		drop(&job, 1);
		sim_stop();
		kd_first_slice += kd_first_slice / 4;
		assert_true(kd_first_slice < normal);
	} while (order == net->best[0]);
	kd_first_slice = normal;
	kd_net_free(net);
	return order;
}

/*
 * A search takes up the order of the checkpoint, also one that takes no other order, and so do all
 * its nodes. It knows the verdict of the first search, and finds that on a new property.
 */
static void order_of_checkpoint(void **state)
{
	static const char *const bound[] = { "p1=0", "p0=0" };
	const struct net cards = kanban_net(2);
	enum kdsm_reach_order order;
	struct job job[SIM_NODES];
	unsigned int nodes, i;
	bool alone;

	(void)state;
	write_file(&cards);
	order = end_in_other_order();
	for (nodes = 1; nodes <= 3; nodes++)
		for (alone = false; ; alone = true) {
			sim_start(nodes);
			prepare_auto(job, nodes, bound);
			for (i = 0; i < nodes; i++)
				job[i].options.levels = alone ? 1000 : 0;
			run_well(job, nodes);
			assert_int_equal(job[0].result.order, order);
			assert_int_equal(job[0].result.orders, 1);
			assert_int_equal(job[0].result.from_level, job[0].result.levels);
			assert_int_equal(mpz_get_ui(job[0].result.states), 4600);
			for (i = 0; i < 2; i++)
				assert_true(job[0].result.verdict[i].violated);
			drop(job, nodes);
			sim_stop();
			if (alone)
				break;
		}
	sim_start(1);
	prepare_auto(job, 1, NULL);
	job->options.order = KDSM_REACH_ORDER_FILE;
	start(job, 1);
	finish(job, 1);
	assert_int_equal(job->status, -EINVAL);
	assert_non_null(strstr(job->message.text, "another model, or with another --order"));
	drop(job, 1);
	sim_stop();
}

static ino_t file_number(void)
{
	struct stat st;

	return stat(checkpoint, &st) < 0 ? 0 : st.st_ino;
}

/* Crash when this search has written the file. */
static void crash_when_written(void *context, const struct kdsm_reach_progress *progress)
{
	(void)progress;
	if (file_number() != *(ino_t *)context)
		kill(getpid(), SIGKILL);
}

/* Return whether the search crashed. */
static bool search_in_turn_and_crash(unsigned int nodes)
{
	ino_t before = file_number();
	struct job job[SIM_NODES];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		sim_start(nodes);
		prepare_auto(job, nodes, NULL);
		job[0].options.progress = crash_when_written;
		job[0].options.context = &before;
		job[0].options.progress_interval = 1000000;
		start(job, nodes);
		finish(job, nodes);
		_exit(job[0].status ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

/* Searches that crash in slices of several orders, and a last one that does not */
static void crashes_in_turn(void **state)
{
	const uint64_t slice = kd_first_slice, pause = kd_least_pause;
	struct net net = kanban_net(20);
	unsigned int nodes, crashes, all = 0;
	struct job job[SIM_NODES];
	char *states;

	(void)state;
	write_file(&net);
	kd_first_slice = 3000;
	for (nodes = 1; nodes <= 3; nodes++) {
		kd_least_pause = 1000000;
		for (crashes = 0; crashes < 4; crashes++)
			if (!search_in_turn_and_crash(1 + (nodes + crashes) % 3))
				break;
		all += crashes;
		kd_least_pause = pause;
		sim_start(nodes);
		prepare_auto(job, nodes, NULL);
		run_well(job, nodes);
		assert_true(job[0].result.before > 0);
		assert_true(job[0].result.complete);
		states = mpz_get_str(NULL, 10, job[0].result.states);
		assert_string_equal(states, "805422366595");
		free(states);
		drop(job, nodes);
		sim_stop();
		unlink(checkpoint);
	}
	printf("# %u crashes\n", all);
	assert_true(all);	/* a search may end before it looks at the file */
	kd_first_slice = slice;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_nets, make_names, remove_files),
		cmocka_unit_test_setup_teardown(independent_places, make_names, remove_files),
		cmocka_unit_test_setup_teardown(widened, make_names, remove_files),
		cmocka_unit_test_setup_teardown(cut_and_continue, make_names, remove_files),
		cmocka_unit_test_setup_teardown(cut_other_strategies, make_names, remove_files),
		cmocka_unit_test_setup_teardown(full_tables, make_names, remove_files),
		cmocka_unit_test_setup_teardown(orders_in_turn, make_names, remove_files),
		cmocka_unit_test_setup_teardown(wide_in_turn, make_names, remove_files),
		cmocka_unit_test_setup_teardown(full_in_turn, make_names, remove_files),
		cmocka_unit_test(file_variables),
		cmocka_unit_test_setup_teardown(saved_in_turn, make_names, remove_files),
		cmocka_unit_test_setup_teardown(within_a_round, make_names, remove_files),
		cmocka_unit_test_setup_teardown(order_of_checkpoint, make_names, remove_files),
		cmocka_unit_test_setup_teardown(crashes_in_turn, make_names, remove_files),
		cmocka_unit_test_setup_teardown(order_file, make_names, remove_files),
		cmocka_unit_test_setup_teardown(other_orders, make_names, remove_files),
	};

	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_nets", tests, NULL, NULL);
}
