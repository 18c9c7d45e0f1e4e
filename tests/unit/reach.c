// SPDX-License-Identifier: GPL-2.0
/*
 * Reachability. One to three nodes with one and four workers search the demonstration
 * models. The results must equal those in tests/models/expected.csv and those of an
 * explicit search. Also searches that must fail.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>

#include "bdd_store.h"
#include "explicit.h"
#include "jobs.h"
#include "bdd/bdd.h"
#include "task/internal.h"

/*
 * Most digits of a number of states. A sanitizer makes searches ten times slower, so omit
 * the large models.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MOST_DIGITS	5
#else
#define MOST_DIGITS	99
#endif

/* Number of nodes of the BDD of the explicit states, added one by one */
static uint64_t nodes_of(const struct explicit *e)
{
	struct kdsm_bdd_worker *worker;
	struct kdsm_bdd_store *store;
	struct kdsm_region *region;
	uint64_t nodes = 0;

	sim_start(1);
	open_bdd_store(sim.kdsm[0], "n", 128 << 20, 8 << 20, &region, &store);
	assert_int_equal(kdsm_bdd_worker_new(store, &worker), 0);
	assert_int_equal(kdsm_bdd_count_nodes(worker, set_of(worker, e, e->states),
					      &nodes), 0);
	kdsm_bdd_worker_free(worker);
	kdsm_bdd_close(store);
	kdsm_region_close(region);
	sim_stop();
	return nodes;
}

/* ---- the symbolic search ---- */

static void search_in(enum kdsm_domain domain, const struct expected *expected,
		      unsigned int nodes, unsigned int workers, unsigned int granularity)
{
	struct job job[SIM_NODES];
	char path[8192];
	unsigned int i;

	snprintf(path, sizeof(path), "%s/%s.pnml", models, expected->model);
	sim_start(nodes);
	sim.tear = true;
	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		sim.kdsm[i]->domain = domain;
		job[i].options.bdd.granularity = granularity;
	}
	run_well(job, nodes);
	check_result(&job[0].result, expected);
	assert_string_equal(job[0].result.model, expected->model);
	assert_int_equal(job[0].result.workers, nodes * workers);
	assert_int_equal(job[0].result.cluster_nodes, nodes);
	assert_true(job[0].result.table_used > expected->nodes);
	if (nodes == 1 && domain != KDSM_DOMAIN_HCA)
		assert_int_equal(job[0].result.remote.calls + job[0].result.remote.get +
				 job[0].result.remote.cas, 0);
	drop(job, nodes);
	sim_stop();
}

static void search(const struct expected *expected, unsigned int nodes,
		   unsigned int workers, unsigned int granularity)
{
	search_in(KDSM_DOMAIN_SW, expected, nodes, workers, granularity);
}

static void searches(unsigned int nodes)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), i;

	assert_true(n >= 6);
	for (i = 0; i < n; i++) {
		if (strlen(expected[i].states) > MOST_DIGITS)
			continue;
		search(&expected[i], nodes, 1, 0);
		search(&expected[i], nodes, 4, i % 3);
	}
}

enum strategy { BFS, CHAINING, SATURATION };

/*
 * Search by the strategy, and find the same states. Returns by how many the number of
 * levels exceeds the rounds of this search.
 */
static uint64_t search_by(enum strategy strategy, const struct expected *expected,
			  unsigned int nodes)
{
	struct job job[SIM_NODES];
	char path[8192];
	uint64_t rounds;
	unsigned int i;

	snprintf(path, sizeof(path), "%s/%s.pnml", models, expected->model);
	sim_start(nodes);
	prepare(job, nodes, 2, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.chaining = strategy == CHAINING;
		job[i].options.saturation = strategy == SATURATION;
	}
	run_well(job, nodes);
	check_states(&job[0].result, expected);
	assert_true(job[0].result.complete);
	if (strategy == CHAINING)
		assert_true(job[0].result.levels <= expected->levels);
	rounds = expected->levels - job[0].result.levels;
	drop(job, nodes);
	sim_stop();
	return rounds;
}

static void chaining(void **state)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), nodes, i;
	uint64_t rounds = 0;

	(void)state;
	for (nodes = 1; nodes <= 2; nodes++)
		for (i = 0; i < n; i++)
			/*
			 * Several workers that chain may need much memory for intermediate
			 * sets.
			 */
			if (strlen(expected[i].states) <= 5)
				rounds += search_by(CHAINING, &expected[i], nodes);
	assert_true(rounds > n);
}

static void saturation(void **state)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), nodes, i;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++)
		for (i = 0; i < n; i++)
			search_by(SATURATION, &expected[i], nodes);
}

static void one_node(void **state)
{
	(void)state;
	searches(1);
}

static void two_nodes(void **state)
{
	(void)state;
	searches(2);
}

static void three_nodes(void **state)
{
	(void)state;
	searches(3);
}

static void five_nodes(void **state)
{
	struct expected expected[1];

	(void)state;
	read_expected(expected, 1);
	search(expected, 5, 2, 1);
}

/* Domains in which devices do the atomics; with KDSM_DOMAIN_HCA, also those on the own part */
static void other_domains(void **state)
{
	struct expected expected[3];
	unsigned int n = read_expected(expected, 3), i;

	(void)state;
	for (i = 0; i < n; i++) {
		search_in(KDSM_DOMAIN_HCA, &expected[i], 1, 2, 0);
		search_in(KDSM_DOMAIN_HCA, &expected[i], 2, 2, 1);
		search_in(KDSM_DOMAIN_GLOB, &expected[i], 2, 2, 0);
	}
}

static void from_state_to_state(void **state)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), i, compared = 0;
	struct explicit e;
	char states[64];

	(void)state;
	for (i = 0; i < n; i++) {
		if (strlen(expected[i].states) > 7 ||
		    strlen(expected[i].states) > MOST_DIGITS)
			continue;
		explore(&e, expected[i].model, 2000000);
		snprintf(states, sizeof(states), "%zu", e.states);
		assert_string_equal(states, expected[i].states);
		assert_int_equal(e.levels, expected[i].levels);
		if (e.states < 100000)
			assert_int_equal(nodes_of(&e), expected[i].nodes);
		forget(&e);
		compared++;
	}
	assert_true(compared >= 4);
}

/* Results that formulas give without a search */
static void formulas(void **state)
{
	struct expected expected[20];
	unsigned int n = read_expected(expected, 20), i, size;
	char *text;
	mpz_t count;

	(void)state;
	mpz_init(count);
	for (i = 0; i < n; i++) {
		if (sscanf(expected[i].model, "philosophers-%u", &size) == 1) {
			mpz_ui_pow_ui(count, 3, size);
			assert_int_equal(expected[i].levels, size + 1);
		} else if (sscanf(expected[i].model, "token-ring-%u", &size) == 1) {
			mpz_set_ui(count, 3 * size);
			mpz_mul_2exp(count, count, size - 1);
		} else {
			continue;
		}
		text = mpz_get_str(NULL, 10, count);
		assert_string_equal(text, expected[i].states);
		free(text);
	}
	mpz_clear(count);
}

/* ---- failures ---- */

static void expect(const struct job *job, int status, const char *part)
{
	assert_int_equal(job->status, status);
	if (!strstr(job->message.text, part))
		fail_msg("expected '%s' in '%s'", part, job->message.text);
}

static void write_file(char *name, const char *text)
{
	FILE *file;

	strcpy(name, "/tmp/kdsm-reach-XXXXXX.pnml");
	file = fdopen(mkstemps(name, 5), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A net whose place flag gets a token again and again */
static void unbounded(void **state)
{
	struct job job[2];
	unsigned int i;
	char name[64];

	(void)state;
	write_file(name, "<pnml><net id='n' type='x/ptnet'>"
		   "<place id='source'><initialMarking><text>1</text></initialMarking></place>"
		   "<place id='flag'/><place id='sink'/>"
		   "<transition id='first'/><arc source='source' target='first'/>"
		   "<arc source='first' target='source'/><arc source='first' target='flag'/>"
		   "<transition id='second'/><arc source='flag' target='second'/>"
		   "<arc source='second' target='sink'/></net></pnml>");
	sim_start(2);
	prepare(job, 2, 1, name);
	start(job, 2);
	finish(job, 2);
	for (i = 0; i < 2; i++)
		expect(&job[i], -EDOM, "place flag has no bound");
	drop(job, 2);
	sim_stop();
	unlink(name);
}

static void table_full(void **state)
{
	char path[8192];
	struct job job[2];
	unsigned int i;

	(void)state;
	snprintf(path, sizeof(path), "%s/philosophers-20.pnml", models);
	sim_start(2);
	prepare(job, 2, 2, path);
	for (i = 0; i < 2; i++)
		job[i].options.bdd.table_bytes = 1 << 17;
	start(job, 2);
	finish(job, 2);
	for (i = 0; i < 2; i++) {
		assert_true(job[i].status == -ENOSPC || job[i].status == -ECANCELED);
		expect(&job[i], job[i].status, "give --table 2");
	}
	drop(job, 2);
	sim_stop();
}

enum { PLACES = 50 };			/* of philosophers-10 */

/*
 * Search on two nodes for a trace to each place and to a deadlock, with a table that has room for
 * a few traces at a time. All nodes collect garbage between two traces, or none does.
 */
static void trace_in_small_table(void **state)
{
	static const char *const kinds[] = { "Eat", "Left", "Think", "Right", "Fork" };
	const char *bound[PLACES];
	char text[PLACES][16], path[8192];
	struct job job[2];
	unsigned int i;

	(void)state;
	for (i = 0; i < PLACES; i++) {
		snprintf(text[i], sizeof(text[i]), "%s_%u=0", kinds[i / 10], i % 10 + 1);
		bound[i] = text[i];
	}
	snprintf(path, sizeof(path), "%s/philosophers-10.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	for (i = 0; i < 2; i++) {
		job[i].options.bdd.table_bytes = 256 << 10;
		job[i].options.bdd.cache_bytes = 128 << 10;
		job[i].options.bound = bound;
		job[i].options.bounds = PLACES;
		job[i].options.trace = true;
		job[i].options.deadlocks = true;
	}
	run_well(job, 2);
	assert_int_equal(mpz_cmp_ui(job[0].result.states, 59049), 0);
	assert_int_equal(job[0].result.traces, PLACES + 1);
	for (i = 0; i < PLACES; i++)
		assert_int_equal(job[0].result.trace[i].property, i);
	drop(job, 2);
	sim_stop();
}

static void nobody_comes(void **state)
{
	char path[8192];
	struct job job[2];

	(void)state;
	snprintf(path, sizeof(path), "%s/peterson.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	job[0].options.timeout = 1000000000;
	start(job, 1);
	finish(job, 1);
	expect(&job[0], -ETIMEDOUT, "node 1 did not come within 1 s");
	drop(job, 1);
	sim_stop();
}

static void other_model(void **state)
{
	char path[8192], other[8192];
	struct job job[2];

	(void)state;
	snprintf(path, sizeof(path), "%s/peterson.pnml", models);
	snprintf(other, sizeof(other), "%s/philosophers-4.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	job[1].options.path = other;
	start(job, 2);
	finish(job, 2);
	expect(&job[0], -EPROTO, "not all nodes have the same model");
	expect(&job[1], -ECANCELED, "node 0 gave up");
	drop(job, 2);
	sim_stop();
}

/* Nodes with different options would end differently, or wait for each other without end. */
static void disagree(void (*change)(struct kdsm_reach_options *options), bool deadlocks)
{
	struct job job[2];
	char path[8192];

	snprintf(path, sizeof(path), "%s/peterson.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	job[0].options.deadlocks = deadlocks;
	job[1].options.deadlocks = deadlocks;
	change(&job[1].options);
	start(job, 2);
	finish(job, 2);
	expect(&job[0], -EPROTO, "not all nodes have the same model and options");
	expect(&job[1], -ECANCELED, "node 0 gave up");
	drop(job, 2);
	sim_stop();
}

/* Nodes with different granularity would look for cached results in different places. */
static void other_granularity(struct kdsm_reach_options *options)
{
	options->bdd.granularity = 5;
}

/* Nodes that look for deadlocks collect once more before they look. */
static void deadlocks_wanted(struct kdsm_reach_options *options)
{
	options->deadlocks = true;
}

/* Node 0 is the root of all rounds then. */
static void trace_wanted(struct kdsm_reach_options *options)
{
	options->trace = true;
}

static void other_options(void **state)
{
	(void)state;
	disagree(other_granularity, false);
	disagree(deadlocks_wanted, false);
	disagree(trace_wanted, false);
	disagree(trace_wanted, true);
}

static void bad_on_one(void **state)
{
	struct timespec until_they_wait = { 2, 0 };
	char path[8192];
	struct job job[3];

	(void)state;
	snprintf(path, sizeof(path), "%s/peterson.pnml", models);
	sim_start(3);
	prepare(job, 3, 1, path);
	job[2].options.path = "/nonexistent.pnml";
	/*
	 * Node 2 starts last, because a failing node can tell only the nodes that have
	 * joined.
	 */
	start(job, 2);
	nanosleep(&until_they_wait, NULL);
	job[2].kdsm = sim.kdsm[2];
	assert_int_equal(pthread_create(&job[2].thread, NULL, run, &job[2]), 0);
	finish(job, 3);
	expect(&job[0], -ECANCELED, "node 2 gave up: No such file");
	expect(&job[1], -ECANCELED, "node 2 gave up: No such file");
	expect(&job[2], -ENOENT, "/nonexistent.pnml: No such file");
	drop(job, 3);
	sim_stop();
}

/* Every node has states of its own, which the others need. */
static void peer_vanishes(void **state)
{
	struct timespec while_searching = { 0, 400000000 };
	char path[8192];
	struct job job[2];
	unsigned int i;

	(void)state;
	snprintf(path, sizeof(path), "%s/token-ring-16.pnml", models);
	sim_start(2);
	sim.delay = 20000000;
	prepare(job, 2, 1, path);
	for (i = 0; i < 2; i++)
		job[i].options.timeout = 1000000000;
	start(job, 2);
	nanosleep(&while_searching, NULL);
	__atomic_store_n(&sim.dead, 2, __ATOMIC_RELAXED);
	finish(job, 2);
	expect(&job[0], -EHOSTDOWN, "node 1 cannot be reached");
	assert_true(job[1].status < 0 && job[1].message.text[0]);
	drop(job, 2);
	sim_stop();
}

/* A job follows a failed job under the same name. */
static void again(void **state)
{
	struct expected expected[1];

	other_model(state);
	read_expected(expected, 1);
	search(expected, 2, 1, 0);
	search(expected, 2, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas),
		cmocka_unit_test(from_state_to_state),
		cmocka_unit_test(chaining),
		cmocka_unit_test(saturation),
		cmocka_unit_test(one_node),
		cmocka_unit_test(two_nodes),
		cmocka_unit_test(three_nodes),
		cmocka_unit_test(five_nodes),
		cmocka_unit_test(other_domains),
		cmocka_unit_test(unbounded),
		cmocka_unit_test(table_full),
		cmocka_unit_test(trace_in_small_table),
		cmocka_unit_test(nobody_comes),
		cmocka_unit_test(other_model),
		cmocka_unit_test(other_options),
		cmocka_unit_test(bad_on_one),
		cmocka_unit_test(peer_vanishes),
		cmocka_unit_test(again),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
