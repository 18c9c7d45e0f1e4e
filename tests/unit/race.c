// SPDX-License-Identifier: GPL-2.0
/*
 * Races of nodes (lib/reach/race.c): each node, or a team of nodes, wins once, and node 0 has the
 * same result whoever wins; nodes that only wait, or are lost, do not harm the search of node 0.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "jobs.h"
#include "small_nets.h"
#include "reach/internal.h"

#define NODES	8
/* Nodes that search a net in all their orders, and random nets */
#ifdef __SANITIZE_THREAD__
#define ORDERS	4
#define NETS	8
#else
#define ORDERS	NODES
#define NETS	30
#endif

static char path[64];

static int make_name(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/kdsm-race-%d", getpid());
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	kd_race_favourite = UINT_MAX;
	unlink(path);
	return 0;
}

static void write_file(const struct net *net)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	write_net(net, file);
	assert_int_equal(fclose(file), 0);
}

/* A ring of bits latches with one inverter, which has 2 * bits states */
static void write_ring(unsigned int bits)
{
	FILE *file = fopen(path, "w");
	unsigned int i;

	assert_non_null(file);
	fprintf(file, "aag %u 0 %u 0 0\n2 %u\n", bits, bits, 2 * bits + 1);
	for (i = 2; i <= bits; i++)
		fprintf(file, "%u %u\n", 2 * i, 2 * i - 2);
	assert_int_equal(fclose(file), 0);
}

static void prepare_race(struct job *job, unsigned int nodes, unsigned int workers)
{
	unsigned int i;

	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.saturation = true;
		job[i].options.race = true;
		job[i].options.order = KDSM_REACH_ORDER_AUTO;
		job[i].options.deadlocks = true;
	}
}

/* Search a net on several nodes, one of which wins. Compare the result with the net's states. */
static void search_net(const struct space *space, unsigned int nodes, unsigned int favourite)
{
	unsigned int place, i;
	struct job job[NODES];
	uint64_t most = 0;

	sim_start(nodes);
	kd_race_favourite = favourite;
	prepare_race(job, nodes, 1 + favourite % 2);
	for (i = 0; i < nodes; i++)
		job[i].options.counts = true;
	run_well(job, nodes);
	assert_int_equal(mpz_get_ui(job[0].result.states), space->states);
	assert_int_equal(mpz_get_ui(job[0].result.deadlocks), space->deadlocks);
	assert_int_equal(mpz_get_ui(job[0].result.fired), space->fired);
	for (place = 0; place < MOST_PLACES; place++)
		most = space->tokens[place] > most ? space->tokens[place] : most;
	assert_int_equal(job[0].result.place_tokens, most);
	assert_true(job[0].result.complete && job[0].result.saturation);
	assert_int_equal(job[0].result.winner, favourite);
	for (i = 0; i < nodes; i++)
		assert_false(job[i].result.stopped);
	drop(job, nodes);
	sim_stop();
}

/* Node 0 makes its places as wide as those of the winner, in the winner's order. */
static void orders(void **state)
{
	static struct space space;
	unsigned int nodes, favourite;
	struct net net = fuel_net(100);

	(void)state;
	explore_net(&net, &space, MOST_STATES);
	assert_true(space.whole);
	write_file(&net);
	for (nodes = 2; nodes <= ORDERS; nodes++)
		for (favourite = 0; favourite < nodes; favourite++)
			search_net(&space, nodes, favourite);
}

static void random_orders(void **state)
{
	static struct space space;
	unsigned int nets = 0;
	struct net net;

	(void)state;
	srandom(2);
	while (nets < NETS) {
		random_net(&net);
		explore_net(&net, &space, 600);
		if (!space.whole || space.states < 5)
			continue;
		write_file(&net);
		search_net(&space, 2 + nets % 3, nets % (2 + nets % 3));
		nets++;
	}
}

/* All nodes but node 0 search breadth first. */
static void team(void **state)
{
	unsigned int nodes, winner, bits;
	struct job job[NODES];

	(void)state;
	for (bits = 1; bits <= 9; bits += 4) {
		write_ring(bits);
		for (nodes = 2; nodes <= 4; nodes++)
			for (winner = 0; winner < 2; winner++) {
				sim_start(nodes);
				kd_race_favourite = winner;
				prepare_race(job, nodes, 2);
				run_well(job, nodes);
				assert_int_equal(mpz_get_ui(job[0].result.states), 2 * bits);
				assert_int_equal(mpz_get_ui(job[0].result.deadlocks), 0);
				assert_true(job[0].result.complete);
				assert_int_equal(job[0].result.saturation, !winner);
				assert_int_equal(job[0].result.winner, winner);
				if (winner)
					assert_int_equal(job[0].result.levels, 2 * bits);
				drop(job, nodes);
				sim_stop();
			}
	}
}

/* A search in windows that ends early tells so, whether or not node 0 has new states then. */
static void levels(void **state)
{
	const unsigned int bits = 11;
	unsigned int nodes, i;
	struct job job[NODES];
	uint64_t level;

	(void)state;
	write_ring(bits);
	kd_operations_alone = 1;	/* a round alone makes more than one state to divide */
	for (nodes = 2; nodes <= 3; nodes++)
		for (level = 1; level <= 2 * bits; level++) {
			sim_start(nodes);
			prepare_race(job, nodes, 1);
			for (i = 0; i < nodes; i++) {
				job[i].options.saturation = false;
				job[i].options.race = false;
				job[i].options.levels = level;
			}
			run_well(job, nodes);
			assert_int_equal(job[0].result.levels, level);
			assert_int_equal(job[0].result.complete, level == 2 * bits);
			assert_int_equal(mpz_get_ui(job[0].result.states),
					 level == 2 * bits ? level : level + 1);
			drop(job, nodes);
			sim_stop();
		}
	kd_operations_alone = 0;
}

static void note_level(void *context, const struct kdsm_reach_progress *progress)
{
	(void)progress;
	++*(uint64_t *)context;
}

/* Node 0 alone wants to hear of levels, and decides what all nodes do. */
static void levels_of_node_0(void **state)
{
	struct job job[3];
	uint64_t seen = 0;
	unsigned int i;

	(void)state;
	write_ring(9);
	sim_start(3);
	prepare_race(job, 3, 1);
	for (i = 0; i < 3; i++) {
		job[i].options.saturation = false;
		job[i].options.race = false;
	}
	job[0].options.level = note_level;
	job[0].options.context = &seen;
	run_well(job, 3);
	assert_int_equal(mpz_get_ui(job[0].result.states), 18);
	assert_int_equal(job[0].result.levels, 18);
	assert_int_equal(seen, 18);
	drop(job, 3);
	sim_stop();
}

/* ---- nodes that fail, or are lost ---- */

static unsigned int failures;

/* The first get of a parcel by node 2 fails. */
static int fail_once(struct kdsm_op *op, bool after)
{
	if (after || op->node != 1 || op->offset < KD_STORE ||
	    __atomic_exchange_n(&failures, 1, __ATOMIC_RELAXED))
		return 0;
	return -EIO;
}

/* A member of the team fails and lives. The team gives up, and node 0 ends its search. */
static void member_fails(void **state)
{
	struct job job[3];

	(void)state;
	write_ring(9);
	sim_start(3);
	kd_race_favourite = 0;
	failures = 0;
	prepare_race(job, 3, 1);
	__atomic_store_n(&sim.fault, fail_once, __ATOMIC_RELEASE);
	run_well(job, 3);
	__atomic_store_n(&sim.fault, NULL, __ATOMIC_RELEASE);
	assert_int_equal(failures, 1);
	assert_int_equal(mpz_get_ui(job[0].result.states), 18);
	assert_true(job[0].result.complete);
	drop(job, 3);
	sim_stop();
}

static unsigned int warned;
static bool lost;

static void warn(void *context, const char *text)
{
	(void)context;
	assert_non_null(strstr(text, "the result is complete, but lacks"));
	__atomic_add_fetch(&warned, 1, __ATOMIC_RELAXED);
}

/* All operations on node 2 fail once a node has used a word of the race. */
static int lose(struct kdsm_op *op, bool after)
{
	if (op->offset >= KD_RACE && op->offset < KD_STORE)
		__atomic_store_n(&lost, true, __ATOMIC_RELAXED);
	return !after && op->node == 2 && __atomic_load_n(&lost, __ATOMIC_RELAXED) ? -EHOSTDOWN : 0;
}

/* Node 0 has its result, also with an option for which the others only wait. */
static void lost_node(void **state)
{
	static struct space space;
	struct net net = fuel_net(40);
	unsigned int waits, i;
	struct job job[3];

	(void)state;
	explore_net(&net, &space, MOST_STATES);
	write_file(&net);
	for (waits = 0; waits < 2; waits++) {
		sim_start(3);
		lost = false;
		warned = 0;
		kd_race_favourite = 0;
		prepare_race(job, 3, 1);
		for (i = 0; i < 3; i++) {
			job[i].options.timeout = 1000000000;
			job[i].options.stop_at_violation = waits;
			job[i].options.deadlocks = !waits;
			job[i].options.warn = warn;
		}
		__atomic_store_n(&sim.fault, lose, __ATOMIC_RELEASE);
		start(job, 3);
		finish(job, 3);
		__atomic_store_n(&sim.fault, NULL, __ATOMIC_RELEASE);
		if (job[0].status)
			fail_msg("node 0: %s", job[0].message.text);
		assert_int_equal(mpz_get_ui(job[0].result.states), space.states);
		assert_true(job[0].result.complete);
		assert_int_equal(warned, 1);
		drop(job, 3);
		sim_stop();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(orders, make_name, remove_file),
		cmocka_unit_test_setup_teardown(random_orders, make_name, remove_file),
		cmocka_unit_test_setup_teardown(team, make_name, remove_file),
		cmocka_unit_test_setup_teardown(levels, make_name, remove_file),
		cmocka_unit_test_setup_teardown(levels_of_node_0, make_name, remove_file),
		cmocka_unit_test_setup_teardown(member_fails, make_name, remove_file),
		cmocka_unit_test_setup_teardown(lost_node, make_name, remove_file),
	};

	kd_operations_alone = 0;	/* small searches use all nodes of a team, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
