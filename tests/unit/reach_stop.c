// SPDX-License-Identifier: GPL-2.0
/*
 * Searches that kdsm_reach_stop() ends: all nodes stop, what they have found is a part of the
 * states, and a search that continues from the checkpoint has the exact result. Also the functions
 * that a search calls meanwhile.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <unistd.h>

#include "explicit.h"
#include "jobs.h"

#define NODES	3
#define NEVER	UINT_MAX

struct stop {
	struct job job;
	unsigned int after;	/* stop after so many us; 0: before the search; NEVER */
	unsigned int known, reports, wrong;
};

struct request {
	struct kdsm_reach *reach;
	unsigned int after;
};

static void *stop_later(void *data)
{
	const struct request *request = data;

	usleep(request->after);
	kdsm_reach_stop(request->reach);
	return NULL;
}

static void *search(void *data)
{
	struct stop *stop = data;
	struct request request = { .after = stop->after };
	struct job *job = &stop->job;
	pthread_t thread;

	job->result.argsz = sizeof(job->result);
	kdsm_reach_result_init(&job->result);
	job->status = kdsm_reach_open(job->kdsm, &job->options, &request.reach, &job->message);
	if (job->status)
		return NULL;
	if (!stop->after)
		kdsm_reach_stop(request.reach);
	else if (stop->after != NEVER)
		pthread_create(&thread, NULL, stop_later, &request);
	kdsm_reach_report(request.reach);
	job->status = kdsm_reach_search(request.reach, &job->result, &job->message);
	if (stop->after && stop->after != NEVER)
		pthread_join(thread, NULL);
	kdsm_reach_close(request.reach);
	return NULL;
}

static void know(void *context, const struct kdsm_reach_result *result)
{
	struct stop *stop = context;

	stop->known++;
	stop->wrong += !mpz_sgn(result->states) || !result->nodes || result->traces;
}

static void report(void *context, const struct kdsm_reach_progress *progress)
{
	struct stop *stop = context;

	stop->reports++;
	stop->wrong += progress->seconds < 0 || progress->table_used > progress->table_size ||
		       progress->level_seconds > progress->seconds;
}

/* Search with these options on three nodes, of which one may stop. The caller drops the results. */
static void search_all(struct stop stop[NODES], const struct kdsm_reach_options *options,
		       unsigned int which, unsigned int after)
{
	unsigned int i;

	sim_start(NODES);
	memset(stop, 0, NODES * sizeof(*stop));
	for (i = 0; i < NODES; i++) {
		stop[i].job.options = *options;
		stop[i].job.options.known = know;
		stop[i].job.options.progress = report;
		stop[i].job.options.context = &stop[i];
		stop[i].job.kdsm = sim.kdsm[i];
		stop[i].after = i == which ? after : NEVER;
		assert_int_equal(pthread_create(&stop[i].job.thread, NULL, search, &stop[i]), 0);
	}
	for (i = 0; i < NODES; i++) {
		pthread_join(stop[i].job.thread, NULL);
		if (stop[i].job.status)
			fail_msg("node %u: %s", i, stop[i].job.message.text);
		assert_int_equal(stop[i].job.result.stopped, stop[0].job.result.stopped);
		assert_int_equal(stop[i].known, i == 0);
		assert_int_equal(stop[i].wrong, 0);
	}
	sim_stop();
}

static void drop_all(struct stop *stop)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		kdsm_reach_result_free(&stop[i].job.result);
}

/* Stop a search repeatedly, the first time before its first round, until it ends. */
static void stop_and_go_on(const struct kdsm_reach_options *options, unsigned long states)
{
	unsigned int turn = 0, after = 0;
	struct stop stop[NODES];
	bool complete = false;

	while (!complete) {
		search_all(stop, options, turn % NODES, after);
		complete = stop[0].job.result.complete;
		assert_int_equal(complete, !stop[0].job.result.stopped);
		if (turn == 0) {
			assert_false(complete);
			assert_int_equal(stop[0].job.result.levels, 0);
			assert_int_equal(mpz_cmp_ui(stop[0].job.result.states, 1), 0);
		}
		assert_int_equal(access(options->checkpoint, R_OK), 0);
		assert_true(mpz_cmp_ui(stop[0].job.result.states, states) <= 0);
		if (complete)
			assert_int_equal(mpz_cmp_ui(stop[0].job.result.states, states), 0);
		assert_int_equal(!!mpz_sgn(stop[0].job.result.deadlocks), complete);
		drop_all(stop);
		turn++;
		after = after ? 2 * after : 1000;
	}
	assert_true(turn > 1);
}

static void all_strategies(void **state)
{
	char path[8192], directory[] = "/tmp/kdsm-stop.XXXXXX", checkpoint[64];
	struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = path, .job = "stop", .workers = 2, .timeout = 10000000000,
		.bdd = { .table_bytes = 64 << 20, .cache_bytes = 8 << 20 },
		.deadlocks = true, .checkpoint = checkpoint, .interval = UINT64_MAX / 2,
	};
	unsigned int strategy;

	(void)state;
	snprintf(path, sizeof(path), "%s/philosophers-10.pnml", models);
	assert_non_null(mkdtemp(directory));
	snprintf(checkpoint, sizeof(checkpoint), "%s/point", directory);
	for (strategy = 0; strategy < 3; strategy++) {
		options.chaining = strategy == 1;
		options.saturation = strategy == 2;
		stop_and_go_on(&options, 59049);
		assert_int_equal(unlink(checkpoint), 0);
	}
	assert_int_equal(rmdir(directory), 0);
}

/* Orders in turn: the states are those found in the order that the search stopped in. */
static void portfolio(void **state)
{
	char path[8192];
	struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = path, .job = "stop", .workers = 1, .timeout = 10000000000,
		.bdd = { .table_bytes = 64 << 20, .cache_bytes = 8 << 20 }, .saturation = true,
	};
	struct stop stop[NODES];

	(void)state;
	snprintf(path, sizeof(path), "%s/philosophers-10.pnml", models);
	search_all(stop, &options, 2, 0);
	assert_true(stop[0].job.result.stopped);
	assert_true(mpz_cmp_ui(stop[0].job.result.states, 59049) < 0);
	drop_all(stop);
}

/*
 * Breadth first without a checkpoint, so in windows: on node 0 alone, or on all nodes. A search
 * that is stopped has some of the states, and looks for no deadlocks.
 */
static void in_windows(void **state)
{
	static const unsigned int alone[] = { 0, 1000000 }, after[] = { 0, 1000, 4000, 16000 };
	char path[8192];
	struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = path, .job = "stop", .workers = 2, .timeout = 10000000000,
		.bdd = { .table_bytes = 64 << 20, .cache_bytes = 8 << 20 }, .deadlocks = true,
	};
	struct stop stop[NODES];
	unsigned int which, i, k;
	bool complete;

	(void)state;
	snprintf(path, sizeof(path), "%s/philosophers-10.pnml", models);
	for (i = 0; i < 2; i++)
		for (which = 0; which < NODES; which++)
			for (k = 0; k < 4; k++) {
				kd_operations_alone = alone[i];
				search_all(stop, &options, which, after[k]);
				complete = stop[0].job.result.complete;
				assert_int_equal(complete, !stop[0].job.result.stopped);
				assert_true(after[k] || !complete);
				assert_int_equal(!!mpz_sgn(stop[0].job.result.deadlocks), complete);
				/* the round after the last new state may be the one that stops */
				assert_true(mpz_cmp_ui(stop[0].job.result.states, 59049) <= 0);
				if (complete)
					assert_int_equal(mpz_cmp_ui(stop[0].job.result.states,
								    59049), 0);
				drop_all(stop);
			}
	kd_operations_alone = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_strategies),
		cmocka_unit_test(portfolio),
		cmocka_unit_test(in_windows),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_stop", tests, NULL, NULL);
}
